"""A small English–Japanese world with a synchronous grammar: both sentences grow from one tree, so every word's partner is known.

Subjects, objects, adjectives, adverbs, places, times, tense, negation, demonstratives, possessives, plurals, relative clauses;
verbs whose past is spelt like their present ("read") are left out, so that no English sentence has two Japanese ones. What must
be learned is the order (the verb goes last, a relative clause before its noun), the particles, and the forms of the verbs.

「犬 が 猫 を 追いかけた」 / "the dog chased the cat", the course's sentence, and its swap are two of them.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple


class Pair(NamedTuple):
    """A sentence in both languages, and which words belong together."""

    source: tuple[str, ...]  # English words
    target: tuple[str, ...]  # Japanese words
    links: frozenset[tuple[int, int]]  # (place in source, place in target), from 0


class Noun(NamedTuple):
    singular: str
    plural: str
    ja: str


class Verb(NamedTuple):
    base: str
    third: str
    past: str
    ja: tuple[str, str, str, str]  # present, past, present negative, past negative


def _noun(singular: str, ja: str, plural: str | None = None) -> Noun:
    return Noun(singular, plural or singular + "s", ja)


def _verb(base: str, past: str, *ja: str, third: str | None = None) -> Verb:
    return Verb(base, third or base + "s", past, ja)  # type: ignore[arg-type]


ANIMATE = (
    _noun("dog", "犬"), _noun("cat", "猫"), _noun("bird", "鳥"), _noun("horse", "馬"), _noun("teacher", "先生"),
    _noun("student", "学生"), _noun("doctor", "医者"), _noun("girl", "女の子"), _noun("boy", "男の子"), _noun("friend", "友達"),
    _noun("sister", "姉"), _noun("brother", "兄"), _noun("singer", "歌手"), _noun("neighbour", "隣人"),
)  # fmt: skip
THINGS = {  # what can be done with what: an object that fits its verb
    "food": (_noun("apple", "りんご"), _noun("fish", "魚", "fish"), _noun("cake", "ケーキ"), _noun("orange", "みかん"),
             _noun("egg", "卵")),
    "drink": (_noun("milk", "牛乳", "milk"), _noun("tea", "お茶", "tea"), _noun("water", "水", "water"),
              _noun("juice", "ジュース", "juice")),
    "text": (_noun("letter", "手紙"), _noun("book", "本"), _noun("song", "歌"), _noun("report", "報告書")),
    "tool": (_noun("car", "車"), _noun("box", "箱", "boxes"), _noun("chair", "椅子"), _noun("camera", "カメラ"),
             _noun("bag", "鞄")),
}  # fmt: skip
TRANSITIVE: tuple[tuple[Verb, tuple[str, ...]], ...] = (
    (_verb("chase", "chased", "追いかける", "追いかけた", "追いかけない", "追いかけなかった"), ("animate",)),
    (_verb("see", "saw", "見る", "見た", "見ない", "見なかった"), ("animate", "tool")),
    (_verb("help", "helped", "助ける", "助けた", "助けない", "助けなかった"), ("animate",)),
    (_verb("call", "called", "呼ぶ", "呼んだ", "呼ばない", "呼ばなかった"), ("animate",)),
    (_verb("praise", "praised", "ほめる", "ほめた", "ほめない", "ほめなかった"), ("animate", "text")),
    (_verb("find", "found", "見つける", "見つけた", "見つけない", "見つけなかった"), ("animate", "text", "tool")),
    (_verb("eat", "ate", "食べる", "食べた", "食べない", "食べなかった"), ("food",)),
    (_verb("buy", "bought", "買う", "買った", "買わない", "買わなかった"), ("food", "drink", "text", "tool")),
    (_verb("drink", "drank", "飲む", "飲んだ", "飲まない", "飲まなかった"), ("drink",)),
    (_verb("write", "wrote", "書く", "書いた", "書かない", "書かなかった"), ("text",)),
    (_verb("carry", "carried", "運ぶ", "運んだ", "運ばない", "運ばなかった", third="carries"), ("food", "text", "tool")),
    (_verb("wash", "washed", "洗う", "洗った", "洗わない", "洗わなかった", third="washes"), ("food", "tool")),
    (_verb("use", "used", "使う", "使った", "使わない", "使わなかった"), ("tool",)),
)
LIKE = _verb("like", "liked", "好きだ", "好きだった", "好きではない", "好きではなかった")  # its object takes が
LIKED = ("好きな", "好きだった", "好きではない", "好きではなかった")  # before a noun
INTRANSITIVE = (
    _verb("sleep", "slept", "眠る", "眠った", "眠らない", "眠らなかった"),
    _verb("run", "ran", "走る", "走った", "走らない", "走らなかった"),
    _verb("laugh", "laughed", "笑う", "笑った", "笑わない", "笑わなかった"),
    _verb("swim", "swam", "泳ぐ", "泳いだ", "泳がない", "泳がなかった"),
    _verb("work", "worked", "働く", "働いた", "働かない", "働かなかった"),
    _verb("dance", "danced", "踊る", "踊った", "踊らない", "踊らなかった"),
)
ADJECTIVES = {
    "animate": (("big", "大きい"), ("small", "小さい"), ("quiet", "静かな"), ("kind", "親切な"), ("famous", "有名な"),
                ("young", "若い"), ("busy", "忙しい")),
    "things": (("big", "大きい"), ("small", "小さい"), ("new", "新しい"), ("old", "古い"), ("red", "赤い"), ("white", "白い"),
               ("expensive", "高い")),
}  # fmt: skip
DEMONSTRATIVES = (("this", "these", "この"), ("that", "those", "その"))
POSSESSIVES = (("my", "私"), ("your", "あなた"), ("his", "彼"), ("her", "彼女"), ("our", "私たち"), ("their", "彼ら"))
PRONOUNS = (  # subject, object, Japanese, takes the verb's -s
    ("I", "me", "私", False), ("you", "you", "あなた", False), ("he", "him", "彼", True), ("she", "her", "彼女", True),
    ("we", "us", "私たち", False), ("they", "them", "彼ら", False),
)  # fmt: skip
NAMES = (("Ken", "ケン"), ("Emi", "エミ"), ("Tom", "トム"), ("Yuki", "ユキ"))
FREQUENCIES = (("always", "いつも"), ("often", "よく"), ("sometimes", "ときどき"))
PLACES = (  # the preposition that means で there
    ("in", "park", "公園"), ("in", "garden", "庭"), ("at", "station", "駅"), ("at", "school", "学校"),
    ("in", "library", "図書館"),
)  # fmt: skip
NEAR = (("near", "近く"), ("behind", "後ろ"))  # of every place: 公園 の 近く で
TIMES = {  # tense decides
    "past": ((("yesterday",), ("昨日",)), (("last", "week"), ("先週",)), (("this", "morning"), ("今朝",))),
    "present": ((("every", "day"), ("毎日",)), (("on", "Sundays"), ("日曜日", "に"))),
}

# Compositions that no training sentence holds as verb and object of its main clause; both words occur in others.
HELD_OUT = frozenset({
    ("chase", "horse"), ("see", "bird"), ("help", "doctor"), ("call", "girl"), ("eat", "fish"), ("buy", "tea"),
    ("write", "letter"), ("carry", "chair"), ("find", "camera"), ("wash", "apple"),
})  # fmt: skip

Word = tuple[str, int | None]  # a word and the key of what it means; words with one key belong together, None belongs to nothing


@dataclass
class _Phrase:
    """A noun phrase in both languages."""

    en: list[Word]
    ja: list[Word]
    third: bool = True  # takes the verb's -s
    head: str = ""


class _Tree:
    """Grows one sentence. Keys are numbered as they come."""

    def __init__(self, rng: random.Random):
        self.rng = rng
        self.keys = 0

    def key(self) -> int:
        self.keys += 1
        return self.keys

    def one(self, choices: Sequence) -> object:
        return choices[int(self.rng.random() * len(choices))]  # the same draw in every version of Python

    def chance(self, p: float) -> bool:
        return self.rng.random() < p

    # --- noun phrases ---

    def subject(self, depth: int = 0) -> _Phrase:
        kind = self.rng.random()
        if kind < 0.18:
            subject, _, ja, third = self.one(PRONOUNS)
            key = self.key()
            return _Phrase([(subject, key)], [(ja, key)], third, subject)
        if kind < 0.3:
            return self.name()
        return self.noun_phrase("animate", depth)

    def name(self) -> _Phrase:
        en, ja = self.one(NAMES)
        key = self.key()
        return _Phrase([(en, key)], [(ja, key)], True, en)

    def object_of(self, fits: tuple[str, ...], depth: int) -> _Phrase:
        group = self.one(fits)
        if group == "animate":
            kind = self.rng.random()
            if kind < 0.12:
                _, en, ja, _ = self.one(PRONOUNS)
                key = self.key()
                return _Phrase([(en, key)], [(ja, key)], head=en)
            if kind < 0.2:
                return self.name()
        return self.noun_phrase(group, depth)

    def noun_phrase(self, group: str, depth: int) -> _Phrase:
        animate = group == "animate"
        noun = self.one(ANIMATE if animate else THINGS[group])
        many = noun.plural != noun.singular and self.chance(0.3)
        en: list[Word] = []
        ja: list[Word] = []
        kind = self.rng.random()
        if kind < 0.5:
            en.append(("the", None))
        elif kind < 0.75:
            this, these, kono = self.one(DEMONSTRATIVES)
            key = self.key()
            en.append((these if many else this, key))
            ja.append((kono, key))
        else:
            mine, whose = self.one(POSSESSIVES)
            key = self.key()
            en.append((mine, key))
            ja += [(whose, key), ("の", key)]
        if self.chance(0.35):
            adjective, adjective_ja = self.one(ADJECTIVES["animate" if animate else "things"])
            key = self.key()
            en.append((adjective, key))
            ja.append((adjective_ja, key))
        key = self.key()
        en.append((noun.plural if many else noun.singular, key))
        ja.append((noun.ja, key))
        if many and animate and not noun.ja.endswith("達"):  # 友達 is one friend or several
            ja.append(("たち", key))
        phrase = _Phrase(en, ja, not many, noun.singular)
        if depth == 0 and self.chance(0.16):
            self.relative(phrase, group)
        return phrase

    def relative(self, phrase: _Phrase, group: str) -> None:
        """Add a relative clause: after the noun in English, before everything else in Japanese."""
        past, negative = self.chance(0.6), self.chance(0.2)
        form = 2 * negative + past
        key = self.key()
        if group == "animate" and self.chance(0.5):  # the dog that chased the cat
            verb, fits = self.one(TRANSITIVE)
            found = self.object_of(fits, depth=1)
            phrase.en += [("that", None), *_english(verb, past, negative, phrase.third, key), *found.en]
            phrase.ja[:0] = [*found.ja, ("を", None), (verb.ja[form], key)]
            return
        doer = self.subject(depth=1)  # the cat that the dog chased
        fitting = [verb for verb, fits in TRANSITIVE if group in fits]
        if self.chance(0.15):
            verb, word = LIKE, LIKED[form]
        else:
            verb = self.one(fitting)
            word = verb.ja[form]
        phrase.en += [("that", None), *doer.en, *_english(verb, past, negative, doer.third, key)]
        phrase.ja[:0] = [*doer.ja, ("が", None), (word, key)]

    # --- the sentence ---

    def sentence(self) -> tuple[list[Word], list[Word], tuple[str, str]]:
        past, negative = self.chance(0.6), self.chance(0.25)
        form = 2 * negative + past
        subject = self.subject()
        kind = self.rng.random()
        key = self.key()
        found, likes = None, False
        if kind < 0.72:
            verb, fits = self.one(TRANSITIVE)
            found = self.object_of(fits, depth=0)
        elif kind < 0.82:
            verb, likes = LIKE, True
            found = self.object_of((self.one(("animate", "food", "drink", "text", "tool")),), depth=0)
        else:
            verb = self.one(INTRANSITIVE)
        frequency = None if likes or not self.chance(0.22) else self.one(FREQUENCIES)
        place = None if likes or not self.chance(0.25) else self.one(PLACES)
        time = self.one(TIMES["past" if past else "present"]) if not likes and self.chance(0.3) else None

        en = list(subject.en)
        verb_en = _english(verb, past, negative, subject.third, key)
        ja_subject = [*subject.ja, ("は" if likes else "が", None)]
        ja_middle: list[Word] = []
        if frequency:
            adverb, adverb_ja = frequency
            of = self.key()
            verb_en.insert(len(verb_en) - 1, (adverb, of))
            ja_middle.append((adverb_ja, of))
        en += verb_en
        if found:
            en += found.en
        if place:
            preposition, noun, noun_ja = place
            side = self.one(NEAR) if self.chance(0.6) else None
            of, where = self.key(), self.key()
            en += [(side[0] if side else preposition, where), ("the", None), (noun, of)]
            ja_middle += [(noun_ja, of), *([("の", where), (side[1], where)] if side else []), ("で", where)]
        if found:
            ja_middle += [*found.ja, ("が" if likes else "を", None)]
        ja: list[Word] = []
        if time:
            words, words_ja = time
            of = self.key()
            en += [(word, of) for word in words]
            ja += [(word, of) for word in words_ja]
        ja += [*ja_subject, *ja_middle, (verb.ja[form], key)]
        return en, ja, (verb.base, found.head if found else "")


def _english(verb: Verb, past: bool, negative: bool, third: bool, key: int) -> list[Word]:
    if negative:
        do = "did" if past else "does" if third else "do"
        return [(do, key), ("not", key), (verb.base, key)]
    return [(verb.past if past else verb.third if third else verb.base, key)]


def draw(rng: random.Random) -> tuple[Pair, bool]:
    """One pair, and whether its main clause is a held-out composition."""
    en, ja, composition = _Tree(rng).sentence()
    links = frozenset((i, j) for i, (_, a) in enumerate(en) if a is not None for j, (_, b) in enumerate(ja) if a == b)
    return Pair(tuple(word for word, _ in en), tuple(word for word, _ in ja), links), composition in HELD_OUT


def sentences(seed: int, held_out: bool = False) -> Iterator[Pair]:
    """Different pairs without end: the ordinary ones, or those whose main clause is a held-out composition."""
    rng = random.Random(seed)
    seen: set[tuple[str, ...]] = set()
    while True:
        pair, composed = draw(rng)
        if composed is held_out and pair.source not in seen:
            seen.add(pair.source)
            yield pair


class Split(NamedTuple):
    """Pairs to learn from, to choose by, and to report on; no English sentence occurs in two of them."""

    train: list[Pair]
    dev: list[Pair]
    test: list[Pair]
    held_out: list[Pair]  # compositions of verb and object that no main clause in ``train`` has


def split(seed: int = 0, n_train: int = 50_000, n_dev: int = 500, n_test: int = 500, n_held_out: int = 500) -> Split:
    """Draw all four parts.

    Raises:
        ValueError: a negative number.
    """
    for name, count in (("n_train", n_train), ("n_dev", n_dev), ("n_test", n_test), ("n_held_out", n_held_out)):
        if count < 0:
            raise ValueError(f"{name} must be 0 or more; got {count}.")
    ordinary = sentences(seed)
    test = [next(ordinary) for _ in range(n_test)]
    dev = [next(ordinary) for _ in range(n_dev)]
    train = [next(ordinary) for _ in range(n_train)]
    composed = sentences(seed, held_out=True)
    return Split(train, dev, test, [next(composed) for _ in range(n_held_out)])


_ROLES = {  # what words without a partner of their own do: (in Japanese, in English)
    "が": ("主語", "subject"), "を": ("目的語", "object"), "は": ("主題", "topic"), "の": ("所有", "of"), "で": ("場所", "at"),
    "に": ("時", "on"), "たち": ("複数", "plural"), "the": ("冠詞", "article"), "that": ("関係詞", "that"),
    "not": ("否定", "not"), "did": ("過去の否定", "past"), "do": ("現在の否定", "present"), "does": ("現在の否定", "present"),
    "</s>": ("文の終わり", "end"), "<s>": ("文の始まり", "start"), "<unk>": ("未知の語", "unknown"),
}  # fmt: skip


@cache
def _dictionary() -> dict[str, str]:
    """One word of the other language for every word of the grammar."""
    found: dict[str, str] = {}

    def add(en: str, ja: str) -> None:
        found.setdefault(en, ja)
        found.setdefault(ja, en)

    for noun in (*ANIMATE, *(noun for nouns in THINGS.values() for noun in nouns)):
        add(noun.singular, noun.ja)
        add(noun.plural, noun.ja)
    for verb in (*(verb for verb, _ in TRANSITIVE), LIKE, *INTRANSITIVE):
        present, past, negative, past_negative = verb.ja
        add(verb.base, present)
        add(verb.third, present)
        add(verb.past, past)
        add(f"not {verb.base}", negative)
        add(f"did not {verb.base}", past_negative)
    for word, en in zip(LIKED, ("like", "liked", "not like", "did not like"), strict=True):
        add(en, word)
    for en, ja in (*(pair for pairs in ADJECTIVES.values() for pair in pairs), *POSSESSIVES, *NAMES, *FREQUENCIES):
        add(en, ja)
    for this, these, kono in DEMONSTRATIVES:
        add(this, kono)
        add(these, kono)
    for subject, object_, ja, _ in PRONOUNS:
        add(subject, ja)
        add(object_, ja)
        found[ja] = subject
    for preposition, noun, ja in PLACES:
        add(noun, ja)
        found.setdefault(preposition, "で")
    for en, ja in NEAR:
        add(en, ja)
    for words, words_ja in (pair for pairs in TIMES.values() for pair in pairs):
        for word in words:
            found.setdefault(word, words_ja[0])
        found.setdefault(words_ja[0], " ".join(words))
    return found


def gloss(word: str, lang: str) -> str:
    """What a word of either language means, for a reader of ``lang``: a word, or the role of a particle in brackets.

    A word that the grammar does not have gives "".
    """
    if word in _ROLES:
        return f"({_ROLES[word][lang != 'ja']})"
    return _dictionary().get(word, "")


_CAPITALS = {word.lower(): word for word in ("I", "Sundays", *(name for name, _ in NAMES))}


def tidied(text: str) -> str:
    """An English sentence as the grammar writes it: small letters but in I and names, no full stop and the like.

    >>> tidied("The dog chased ken, and i RAN!")
    'the dog chased Ken and I ran'
    """
    words = re.sub("[.,!?。、．，！？]", " ", text).split()
    return " ".join(_CAPITALS.get(word.lower(), word.lower()) for word in words)


FUNCTION_WORDS = frozenset({"が", "を", "は", "の", "で", "に", "たち"})  # Japanese; they carry no content of their own


def content(pair: Pair) -> dict[int, set[int]]:
    """The content words of the Japanese sentence: {its place: places of the English words that it may be aligned with}.

    Particles, の and たち are left out: what a particle should look at nobody has said.
    """
    found: dict[int, set[int]] = {}
    for i, j in pair.links:
        if pair.target[j] not in FUNCTION_WORDS:
            found.setdefault(j, set()).add(i)
    return found


COURSE = (  # the course's sentence and its swap
    Pair(("the", "dog", "chased", "the", "cat"), ("犬", "が", "猫", "を", "追いかけた"), frozenset({(1, 0), (2, 4), (4, 2)})),
    Pair(("the", "cat", "chased", "the", "dog"), ("猫", "が", "犬", "を", "追いかけた"), frozenset({(1, 0), (2, 4), (4, 2)})),
)
