"""The grammar, files of parallel text, vocabularies and batches."""

import itertools
import random
from collections import defaultdict

import pytest
import torch

from transformer_lite import language
from transformer_lite.translation import Refused, batching, corpora, grammar, scoring, vocabulary
from transformer_lite.translation.vocabulary import BOS, EOS, PAD, UNK, Subwords, Words

# ---------------------------------------------------------------------------------------------------------------- grammar


@pytest.fixture(scope="module")
def drawn():
    return list(itertools.islice(grammar.sentences(0), 20_000))


def test_no_english_sentence_has_two_japanese_ones():
    rng, found = random.Random(5), defaultdict(set)
    for _ in range(40_000):  # with repetitions, and held-out ones as well
        pair, _ = grammar.draw(rng)
        found[pair.source].add(pair.target)
    assert max(map(len, found.values())) == 1 < len(found)


def test_there_are_more_than_a_million_pairs():
    """A draw of n from N pairs repeats about n² / 2N times if all are equally likely, and more often if they are not: the
    number of repetitions bounds N from below."""
    rng, seen, n = random.Random(7), set(), 60_000
    for _ in range(n):
        seen.add(grammar.draw(rng)[0].source)
    relative = sum("that" in s and len(s) > 7 for s in seen)
    assert relative > 5_000
    long = [s for s in seen if len(s) >= 9]
    assert len(long) > 15_000
    # Long sentences alone: hardly any repeats, so there must be far more than a million of them.
    rng, again, repeats, count = random.Random(8), set(), 0, 0
    while count < 30_000:
        source = grammar.draw(rng)[0].source
        if len(source) >= 9:
            count += 1
            repeats += source in again
            again.add(source)
    assert count**2 / (2 * max(repeats, 1)) > 1_000_000


def test_every_construction_occurs(drawn):
    english = {word for pair in drawn for word in pair.source}
    japanese = {word for pair in drawn for word in pair.target}
    assert {"not", "did", "does", "do", "this", "these", "my", "that", "always", "yesterday", "park", "dogs"} <= english
    assert {"の", "たち", "この", "いつも", "昨日", "公園", "で", "に", "を", "が", "は", "追いかけなかった"} <= japanese
    assert "read" not in english and "友達 たち" not in " ".join(" ".join(pair.target) for pair in drawn)
    relative = [pair for pair in drawn if "that" in pair.source[2:]]
    assert len(relative) > 1_500


def test_the_verb_goes_last_and_most_pairs_cross(drawn):
    for pair in drawn[:2_000]:
        last = len(pair.target) - 1
        assert any(j == last for _, j in pair.links), pair
    crossing = sum(
        any(a < c and b > d for (a, b) in pair.links for (c, d) in pair.links) for pair in drawn[:2_000] if len(pair.source) > 4
    )
    assert crossing > 1_200


def test_gold_links_are_right(drawn):
    words = {
        "dog": "犬",
        "cat": "猫",
        "chased": "追いかけた",
        "yesterday": "昨日",
        "Ken": "ケン",
        "I": "私",
        "big": "大きい",
        "park": "公園",
    }
    checked = 0
    for pair in drawn:
        for i, word in enumerate(pair.source):
            if word in words:
                partners = {pair.target[j] for a, j in pair.links if a == i}
                assert words[word] in partners, pair
                checked += 1
        assert all(pair.source[i] not in ("the",) for i, _ in pair.links)
        assert all(pair.target[j] not in ("が", "を", "は") for _, j in pair.links)
    assert checked > 5_000
    negated = next(pair for pair in drawn if "did" in pair.source and "not" in pair.source)
    did = negated.source.index("did")
    assert {j for i, j in negated.links if i == did} == {j for i, j in negated.links if i == did + 1} != set()


class Chosen(random.Random):
    """Returns the numbers that it is given, so that a sentence of one's own choice is drawn."""

    def __init__(self, *numbers):
        super().__init__(0)
        self.numbers = iter(numbers)

    def random(self):
        return next(self.numbers)


@pytest.mark.parametrize(("number", "nouns"), [(0, (0.0, 0.1)), (1, (0.1, 0.0))])
def test_the_course_sentence_and_its_swap_are_in_it(number, nouns):
    no = 0.99
    subject, object_ = ((noun, no, 0.0, no, no) for noun in nouns)  # which, not plural, "the", no adjective, no relative clause
    past_and_positive, verb, nothing_else = (0.0, no), (0.0, 0.0), (no, no, no)
    rng = Chosen(*past_and_positive, no, *subject, *verb, 0.0, no, *object_, *nothing_else)
    assert grammar.draw(rng) == (grammar.COURSE[number], False)
    assert next(rng.numbers, None) is None


def test_a_preposition_says_something_of_its_own(drawn):
    """Where only one can stand before a noun, the model looks at it for the noun."""
    before = defaultdict(set)
    for pair in drawn:
        for i, word in enumerate(pair.source[:-2]):
            if word in ("in", "at", "near", "behind"):
                before[pair.source[i + 2]].add(word)
    assert len(before) == 5 and all(len(words) == 3 for words in before.values())


def test_a_split_holds_no_sentence_twice_and_no_held_out_composition_in_training():
    split = grammar.split(3, n_train=3_000, n_dev=100, n_test=100, n_held_out=60)
    parts = [{pair.source for pair in part} for part in split]
    assert [len(part) for part in parts] == [3_000, 100, 100, 60]
    for a, b in itertools.combinations(parts, 2):
        assert not a & b
    assert grammar.split(3, 50, 5, 5, 5) == grammar.split(3, 50, 5, 5, 5) != grammar.split(4, 50, 5, 5, 5)
    again = {grammar.draw(random.Random(s))[1] for s in range(300)}
    assert again == {True, False}
    trained = {word for pair in split.train for word in (*pair.source, *pair.target)}
    held = {word for pair in split.held_out for word in (*pair.source, *pair.target)}
    assert held <= trained  # every word is known; only the composition is new
    with pytest.raises(ValueError, match="n_dev"):
        grammar.split(0, 1, -1)


# ------------------------------------------------------------------------------------------------------------------ files


def test_a_tabbed_file_with_bom_windows_ends_empty_lines_and_licences(tmp_path):
    path = tmp_path / "anki.txt"
    path.write_bytes("\ufeffHi.\tやあ。\tCC-BY\r\n\r\nGo on.\t続けて。\tCC-BY\r\nOnly one\t\tx\r\n".encode())
    corpus = corpora.read([path])
    assert corpus.pairs == [("Hi.", "やあ。"), ("Go on.", "続けて。")]
    assert corpus.empty == [2, 4] and len(corpus) == 2
    assert corpora.read([path], columns=(1, 0)).pairs[0] == ("やあ。", "Hi.")


def test_two_files_line_by_line(tmp_path):
    en, ja = tmp_path / "a.en", tmp_path / "a.ja"
    en.write_text("one\u2028half\n\nthree\n" + "x" * 3_000 + "\n", "utf-8")
    ja.write_text("一\n二\n三\n四\n", "utf-8")
    corpus = corpora.read([en, ja])
    assert corpus.pairs == [("one\u2028half", "一"), ("three", "三")]
    assert corpus.empty == [2] and corpus.too_long == [4]


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a": "x\ty\nno tab here\n"}, "a:2: 1 column"),
        ({"a": "one\ntwo\n", "b": "一\n"}, "b ends at line 1"),
        ({"a": b"fine\tfine\n\xff\xfe\tbad\n"}, "a:2: not UTF-8"),
        ({"a": "\n\n"}, "no sentence pair"),
        ({"a": "", "b": ""}, "no sentence pair"),
        ({"a": "1", "b": "2", "c": "3"}, "got 3 files"),
    ],
)
def test_bad_files_are_named_with_their_line(files, words, tmp_path):
    for name, text in files.items():
        (tmp_path / name).write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(corpora.BadCorpus, match=words):
        corpora.read([tmp_path / name for name in files])


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(corpora.BadCorpus, match="nowhere"):
        corpora.read([tmp_path / "nowhere.tsv"])


@pytest.mark.parametrize("key", ["not_there", "files", "no_pair"])
def test_what_is_refused_is_said_in_japanese_too(key, tmp_path):
    (tmp_path / "empty").write_text("\n")
    paths = {"not_there": ["nowhere"], "files": [], "no_pair": [tmp_path / "empty"]}[key]
    language.use("ja")
    with pytest.raises(corpora.BadCorpus) as refused:
        corpora.read(paths)
    assert corpora.is_japanese(str(refused.value))


def test_japanese_without_spaces_is_parted_into_words_and_joined_again():
    plain = ["私は昨日、公園で犬を追いかけた。", "明日は雨が降る。"]
    parted = corpora.segmented(plain)
    assert parted[1].split() == ["明日", "は", "雨", "が", "降る", "。"] and [corpora.joined(each) for each in parted] == plain
    assert corpora.joined("私 は New York で iPhone 10 を 見 た") == "私はNew YorkでiPhone 10を見た"
    assert corpora.unsegmented(plain) and not corpora.unsegmented(parted)
    assert not corpora.unsegmented(["the dog", "a cat"]) and not corpora.unsegmented([])


def test_a_missing_segmenter_is_explained(monkeypatch):
    import sys

    corpora._segmenter.cache_clear()
    monkeypatch.setitem(sys.modules, "sudachipy", None)
    with pytest.raises(corpora.BadCorpus, match="SudachiPy"):
        corpora.segmented(["犬"])
    corpora._segmenter.cache_clear()


def test_the_nearest_training_sentence_is_copied():
    pairs = [("the dog ran", "犬"), ("the cat ran home", "猫"), ("a cat", "ねこ")]
    assert scoring.nearest(["the cat ran", "dog", "zebra"], pairs) == ["猫", "犬", "犬"]  # 3/4 beats 2/4; of equals the first
    by_hand = max(pairs, key=lambda pair: len({"a", "cat"} & set(pair[0].split())) / len({"a", "cat"} | set(pair[0].split())))
    assert scoring.nearest(["a cat"], pairs) == [by_hand[1]]
    with pytest.raises(Refused):
        scoring.nearest(["x"], [])


def test_content_words_leave_particles_out():
    pair = next(pair for pair in grammar.sentences(2) if "たち" in pair.target and "の" in pair.target and "で" in pair.target)
    found = grammar.content(pair)
    assert {pair.target[j] for j in found}.isdisjoint({"が", "を", "は", "の", "で", "に", "たち"})
    assert found == {j: {i for i, k in pair.links if k == j} for j in found} and len(found) >= 3
    assert len(found) == sum(word not in grammar.FUNCTION_WORDS for word in pair.target)


# ------------------------------------------------------------------------------------------------------------ vocabularies


def test_words_there_and_back(tmp_path):
    words = Words.of(["the dog chased the cat", "a dog"])
    assert words.words[:6] == [*vocabulary.SPECIAL, "dog", "the"]  # the most frequent first, then by spelling
    ids = words.encode("the cow")
    assert ids == [words.ids["the"], UNK]
    assert words.decode([BOS, *ids, EOS, PAD]) == "the <unk>"
    words.save(tmp_path / "v")
    assert vocabulary.load(tmp_path / "v").words == words.words
    with pytest.raises(ValueError, match="differ"):
        Words(["a", "a"])


def test_subwords_there_and_back_without_changing_full_width_digits(tmp_path):
    sentences = ["犬が猫を追いかけた。", "１０匹の犬がいた。", "猫が犬を追いかけなかった。", "a b c"] * 20
    pieces = Subwords.of(sentences, size=60)
    assert [pieces.tokens([i])[0] for i in (PAD, BOS, EOS, UNK)] == list(vocabulary.SPECIAL)
    for sentence in sentences[:4]:
        assert pieces.decode([BOS, *pieces.encode(sentence), EOS, PAD]) == sentence
    assert Subwords.of(sentences, size=60).model == pieces.model
    pieces.save(tmp_path / "v")
    assert vocabulary.load(tmp_path / "v").encode(sentences[1]) == pieces.encode(sentences[1])


def test_what_the_grammar_writes_is_tidy():
    written = [" ".join(pair.source) for pair in grammar.split(0, 3_000, 0, 0, 200).train]
    assert [grammar.tidied(text) for text in written] == written
    assert [grammar.tidied(text[0].upper() + text[1:] + ".") for text in written] == written
    assert grammar.tidied(" The dog ran, and i SWAM on sundays! ") == "the dog ran and I swam on Sundays"


def test_rare_digits_and_letters_are_known():
    sentences = ["the dog chased the cat"] * 3_000 + ["７ 犬", "at 5 o'clock, Q"]
    pieces = Subwords.of(sentences, size=60)
    assert UNK not in pieces.encode("Q at 5 ７")


@pytest.mark.parametrize(("sentences", "size"), [(["a b c d e"], 5), ([], 100), (["a b c d e"], 10**11)])
def test_impossible_numbers_of_pieces_are_refused(sentences, size):
    with pytest.raises(Refused, match="--pieces"):
        Subwords.of(sentences, size)


@pytest.mark.parametrize("raw", [b"{", b'{"kind": "words"}', b"\x00\x01rubbish"])
def test_a_damaged_vocabulary_is_named(raw, tmp_path):
    (tmp_path / "v").write_bytes(raw)
    with pytest.raises(ValueError, match="train again"):
        vocabulary.load(tmp_path / "v")


# ---------------------------------------------------------------------------------------------------------------- batches


def pairs(n=200, seed=0):
    rng = random.Random(seed)
    return [([4] * rng.randint(1, 9), [5] * rng.randint(1, 12)) for _ in range(n)]


def test_an_epoch_holds_every_pair_once_in_batches_of_bounded_size():
    data = pairs()
    batches = batching.plan(data, tokens=120, seed=1, epoch=0)
    assert sorted(itertools.chain.from_iterable(batches)) == list(range(200))
    for rows in batches:
        longest = max(len(data[i][0]) + 1 for i in rows) + max(len(data[i][1]) + 1 for i in rows)
        assert len(rows) * longest <= 120
    full = sum(len(data[i][0]) + len(data[i][1]) + 2 for i in range(200)) / sum(
        len(rows) * (max(len(data[i][0]) for i in rows) + max(len(data[i][1]) for i in rows) + 2) for rows in batches
    )
    assert full > 0.8  # of like length, so little padding
    assert batching.plan(data, 120, 1, 0) == batches != batching.plan(data, 120, 1, 1)
    assert batching.plan(data, 120, 2, 0) != batches
    assert len(batching.plan(data, 1, 0, 0)) == 200  # a pair that is too long stands alone
    assert batching.plan([], 10, 0, 0) == []
    with pytest.raises(ValueError, match="tokens"):
        batching.plan(data, 0, 0, 0)


def test_a_batch_is_padded_and_shifted():
    batch = batching.batch_of([([4, 5], [6]), ([7], [8, 9])], [0, 1])
    assert batch.source.tolist() == [[4, 5, EOS], [7, EOS, PAD]]
    assert batch.target_input.tolist() == [[BOS, 6, PAD], [BOS, 8, 9]]
    assert batch.labels.tolist() == [[6, EOS, PAD], [8, 9, EOS]]
    assert batch.tokens == 5 and batch.source.dtype == torch.long


# ----------------------------------------------------------------------------------------------------------------- scores


def test_scores_and_their_signatures():
    references = ["犬 が 猫 を 追いかけた", "猫 が 眠った"]
    best = {score.name: score for score in scoring.scores(references, references)}
    assert best["BLEU"].value == pytest.approx(100) and best["chrF"].value == pytest.approx(100)
    assert "tok:none" in best["BLEU"].signature and "version" in best["chrF"].signature
    worse = {score.name: score.value for score in scoring.scores(["犬 が 猫 を 見た", "猫 が 眠った"], references)}
    assert 0 < worse["BLEU"] < 100
    assert scoring.exact(["a", "b"], ["a", "c"]) == 0.5
    with pytest.raises(ValueError, match="got 1 and 2"):
        scoring.scores(["a"], references)
    with pytest.raises(Refused, match="nothing"):
        scoring.scores([], [])


def test_a_tokenizer_that_is_not_there_is_refused(monkeypatch):
    with pytest.raises(Refused, match=r"'nonsense'.* one of none, "):
        scoring.scores(["a"], ["a"], "nonsense")
    import sacrebleu

    def lacks(self, **given):
        raise RuntimeError("Japanese tokenization requires extra dependencies.\n\n    pip install sacrebleu[ja]")

    monkeypatch.setattr(sacrebleu.BLEU, "__init__", lacks)
    with pytest.raises(Refused, match=r"ja-mecab.*pip install sacrebleu\[ja\]"):
        scoring.scores(["a"], ["a"], "ja-mecab")


def test_alignments():
    weights = [[0.1, 0.9, 0.0], [0.6, 0.2, 0.2]]
    assert scoring.links_of(weights) == {(1, 0), (0, 1)}
    assert scoring.alignment_error_rate({(1, 0), (0, 1)}, {(1, 0), (0, 1)}) == 0
    assert scoring.alignment_error_rate({(1, 0)}, {(0, 1)}) == 1
    assert scoring.alignment_error_rate({(1, 0), (2, 2)}, {(1, 0)}) == pytest.approx(1 - 2 / 3)
    assert scoring.alignment_error_rate([], []) == 0
