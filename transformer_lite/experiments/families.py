"""The same blocks trained in two ways: as BERT, to fill gaps, and as GPT, to name the next word; then both are asked the same.

In the grammar's sentences the last words say when something happened, and so decide the tense of a verb that stands long before
them. "The dog [MASK] the cat yesterday" and "the dog [MASK] the cat every day" differ only to the right of the gap. Who sees both
sides can tell them apart; who sees the left side alone gives the same answer to both. The number of the verb is decided by the
subject, to its left: that both can know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from math import ceil, floor
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lite.experiments import stored
from transformer_lite.experiments.learning import alone
from transformer_lite.language import current, message
from transformer_lite.model.attention import causal_mask
from transformer_lite.model.families import (
    IGNORED,
    DecoderOnly,
    DecoderOnlyConfig,
    EncoderOnly,
    EncoderOnlyConfig,
)
from transformer_lite.translation import grammar
from transformer_lite.translation.batching import padded, plan
from transformer_lite.translation.vocabulary import BOS, EOS, UNK, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

WAYS = ("bert", "gpt", "blind")  # the last: as BERT in everything but a causal mask
MEASURES = ("agreement", "tense", "word", "continues")
SEEDS = (0, 1, 2)  # of what is stored
LONGEST = 7  # words of a sentence
N_TRAIN, N_TEST = 6_000, 150
N_TRIED = 50  # sentences in which every form of every verb is tried
STEPS, TOKENS = 1_500, 640
RATE, WARMUP = 0.003, 40
MASK = UNK  # every word is known, so that the number of unknown words is free
LIVE_SEED, LIVE_TEST = 3, 40
LIVE_STEPS = {"bert": 300, "gpt": 150}  # the second has more problems to learn from in each
MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_layers": 2, "dropout": 0.0, "max_positions": 20}

SUBJECT, OBJECT = ("the", "dog"), ("the", "cat")
ENDINGS = {"past": ("yesterday",), "present": ("every", "day")}  # of the questions shown
MISSING = 4  # words that follow the beginning "the dog" where a model must be told how many: as in "chased the cat yesterday"


class LeftOnly(EncoderOnly):
    """BERT-style, but no token sees what follows it."""

    def __init__(self, config: EncoderOnlyConfig):
        super().__init__(config)
        self.encoder.register_forward_pre_hook(_hide_what_follows)


def _hide_what_follows(_: nn.Module, given: tuple[Any, ...]) -> tuple[Any, ...]:
    x, real, *rest = given
    return (x, real & causal_mask(x.shape[1]), *rest)


# --- the grammar's facts ---


class Form(NamedTuple):
    """What the form of a finite verb tells: its tense, and whether its subject is he, she or it (None: the past does not)."""

    past: bool
    third: bool | None


@cache
def finite() -> dict[str, Form]:
    """Every word that can stand as a sentence's finite verb. No other word of the grammar is spelt like one of them."""
    found = {"did": Form(True, None), "does": Form(False, True), "do": Form(False, False)}
    for verb in (*(verb for verb, _ in grammar.TRANSITIVE), *grammar.INTRANSITIVE):
        found |= {verb.past: Form(True, None), verb.third: Form(False, True), verb.base: Form(False, False)}
    return found


def gap_of(sentence: Sequence[str]) -> int:
    """Where the finite verb stands. (In "did not chase" it is "did".)"""
    return next(i for i, word in enumerate(sentence) if word in finite())


def ending_of(sentence: Sequence[str]) -> tuple[str, ...] | None:
    """The words at its end that say when; None: there are none."""
    endings = [words for times in grammar.TIMES.values() for words, _ in times]
    return next((words for words in endings if tuple(sentence[-len(words) :]) == words), None)


def frame_of(sentence: Sequence[str]) -> tuple[str, ...]:
    """The sentence without its finite verb and without its ending: what a sentence and its twin in the other tense share."""
    gap, ending = gap_of(sentence), ending_of(sentence)
    return (*sentence[:gap], "_", *sentence[gap + 1 : len(sentence) - len(ending or ())])


def other_ending(ending: tuple[str, ...]) -> tuple[str, ...]:
    """A time that asks for the other tense: the first one of the grammar."""
    past = {words for words, _ in grammar.TIMES["past"]}
    return ENDINGS["present"] if ending in past else ENDINGS["past"]


def is_past(ending: tuple[str, ...]) -> bool:
    """The tense that the ending asks for."""
    return ending in {words for words, _ in grammar.TIMES["past"]}


@cache
def _pattern() -> re.Pattern[str]:
    """The sentences of the grammar that have an ending and no relative clause."""

    def one(*choices: str) -> str:
        return f"(?:{'|'.join(sorted(set(choices)))})"

    mine = [mine for mine, _ in grammar.POSSESSIVES]

    def phrase(group: str, many: bool) -> str:
        nouns = grammar.ANIMATE if group == "animate" else grammar.THINGS[group]
        these = [plural if many else singular for singular, plural, _ in grammar.DEMONSTRATIVES]
        kind = "animate" if group == "animate" else "things"
        named = [noun.plural if many else noun.singular for noun in nouns if not many or noun.plural != noun.singular]
        adjectives = [english for english, _ in grammar.ADJECTIVES[kind]]
        return f"{one('the', *mine, *these)} (?:{one(*adjectives)} )?{one(*named)}" if named else ""

    def thing(group: str) -> str:
        extra = []
        if group == "animate":
            extra = [*(him for _, him, _, _ in grammar.PRONOUNS), *(name for name, _ in grammar.NAMES)]
        return one(*filter(None, (phrase(group, False), phrase(group, True), *extra)))

    he = [phrase("animate", False), *(he for he, _, _, third in grammar.PRONOUNS if third), *(name for name, _ in grammar.NAMES)]
    they = [phrase("animate", True), *(they for they, _, _, third in grammar.PRONOUNS if not third)]
    often = f"(?:{one(*(word for word, _ in grammar.FREQUENCIES))} )?"
    verbs = [(verb, " " + one(*map(thing, fits))) for verb, fits in grammar.TRANSITIVE]
    verbs += [(verb, "") for verb in grammar.INTRANSITIVE]
    places = [f"{preposition} the {noun}" for preposition, noun, _ in grammar.PLACES]
    places += [f"{near} the {noun}" for near, _ in grammar.NEAR for _, noun, _ in grammar.PLACES]

    def clause(subject: str, form: str, does: str, tense: str) -> str:
        said = [
            one(f"{often}{getattr(verb, form)}", f"{does} not {often}{verb.base}") + rest for verb, rest in verbs
        ]  # fmt: skip
        when = one(*(" ".join(words) for words, _ in grammar.TIMES[tense]))
        return f"{subject} {one(*said)}(?: {one(*places)})? {when}"

    clauses = (
        clause(one(*he, *they), "past", "did", "past"),
        clause(one(*he), "third", "does", "present"),
        clause(one(*they), "base", "do", "present"),
    )
    return re.compile(one(*clauses))


def is_sentence(words: Sequence[str]) -> bool:
    """Whether the grammar can make this sentence: one with an ending and without a relative clause.

    >>> is_sentence("the dog chased the cat yesterday".split()), is_sentence("the dog chases the cat yesterday".split())
    (True, False)
    """
    return _pattern().fullmatch(" ".join(words)) is not None


# --- the data ---


class Data(NamedTuple):
    """Sentences as words. No frame of a test sentence occurs in training, nor does that of the course's sentence."""

    train: list[list[int]]  # ids, without BOS and EOS
    test: list[tuple[str, ...]]
    vocabulary: Words


@cache
def data(seed: int) -> Data:
    """6,000 short sentences with an ending to learn from and 150 others."""
    test: list[tuple[str, ...]] = []
    train: list[tuple[str, ...]] = []
    frames = {frame_of(pair.source) for pair in grammar.COURSE}
    for pair in grammar.sentences(seed):
        words = pair.source
        if len(words) > LONGEST or not is_sentence(words):
            continue
        if len(test) < N_TEST:
            test.append(words)
            frames.add(frame_of(words))
        elif frame_of(words) not in frames:
            train.append(words)
        if len(train) == N_TRAIN:
            break
    vocabulary = Words.of(" ".join(words) for words in (*test, *train))
    return Data([vocabulary.encode(" ".join(words)) for words in train], test, vocabulary)


# --- training ---


def build(way: str, vocab: int) -> nn.Module:
    """An untrained model; the sizes are the same in every way.

    Raises:
        ValueError: there is no such way.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(map(repr, WAYS))}; got {way!r}.")
    if way == "gpt":
        return DecoderOnly(DecoderOnlyConfig(vocab, **MODEL))
    return (EncoderOnly if way == "bert" else LeftOnly)(EncoderOnlyConfig(vocab, mask_id=MASK, **MODEL))


def batches(sentences: Sequence[list[int]], seed: int) -> Iterator[Tensor]:
    """(rows, n): epoch after epoch of sentences between BOS and EOS, without end."""
    pairs = [(sentence, []) for sentence in sentences]
    epoch = 0
    while True:
        for rows in plan(pairs, TOKENS, seed, epoch):
            yield padded([enclosed(sentences[i]) for i in rows])
        epoch += 1


def enclosed(sentence: Sequence[int]) -> list[int]:
    """The sentence with BOS, which stands where BERT has [CLS], and EOS, which stands where it has [SEP]."""
    return [BOS, *sentence, EOS]


def hidden(model: EncoderOnly, token_ids: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """A problem of the masked language model: 15 % of the words, and of these 80/10/10. BOS and EOS are never asked for."""
    given, labels = model.hide(token_ids, generator=generator)
    special = (token_ids == BOS) | (token_ids == EOS)
    return torch.where(special, token_ids, given), labels.masked_fill(special, IGNORED)


def train(model: nn.Module, given: Iterator[Tensor], steps: int, seed: int) -> int:
    """Train in place; give the number of places that were marked: each is one problem to learn from."""
    generator = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    model.train()
    marked = 0
    for step, token_ids in zip(range(1, steps + 1), given, strict=False):
        optimiser.zero_grad(set_to_none=True)
        if isinstance(model, DecoderOnly):
            loss = model.loss(token_ids)
            marked += int((token_ids[:, 1:] != model.config.pad_id).sum())
        else:
            shown, labels = hidden(model, token_ids, generator)
            loss = model.loss(shown, labels)
            marked += int((labels != IGNORED).sum())
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for group in optimiser.param_groups:
            group["lr"] = RATE * min(1.0, step / WARMUP, 2 * (1 - (step - 1) / steps))
        optimiser.step()
    model.eval()
    return marked


# --- the questions ---


@torch.no_grad()
def guesses(model: nn.Module, sentences: Sequence[Sequence[int]], gaps: Sequence[int]) -> Tensor:
    """What the model puts into one gap of each sentence, in a single pass: log-probabilities (rows, vocab).

    Args:
        model: BERT-style, which gets [MASK] in the gap; or GPT-style, which tells at the word before the gap what comes next.
        sentences: ids, without BOS and EOS. What stands in the gap does not matter.
        gaps: the place of each sentence's gap, from 0.
    """
    token_ids = padded([enclosed(sentence) for sentence in sentences])
    rows, places = torch.arange(len(token_ids)), torch.tensor(gaps) + 1  # after BOS
    if isinstance(model, DecoderOnly):
        logits = model(token_ids)[rows, places - 1]
    else:
        token_ids[rows, places] = MASK
        logits = model(token_ids)[rows, places]
    return logits.log_softmax(dim=-1)


@torch.no_grad()
def tried(model: DecoderOnly, sentences: Sequence[Sequence[int]], gaps: Sequence[int], candidates: Sequence[int]) -> Tensor:
    """The log-probability (rows, candidates) of each whole sentence with each candidate in its gap: one pass for each of them."""
    scores = []
    for word in candidates:
        token_ids = padded([enclosed([*s[:gap], word, *s[gap + 1 :]]) for s, gap in zip(sentences, gaps, strict=True)])
        logits = model(token_ids[:, :-1]).log_softmax(dim=-1)
        labels = token_ids[:, 1:]
        each = logits.gather(-1, labels.unsqueeze(-1)).squeeze(-1)  # (rows, n - 1)
        scores.append(each.masked_fill(labels == model.config.pad_id, 0.0).sum(dim=-1))
    return torch.stack(scores, dim=-1)


@torch.no_grad()
def write(model: nn.Module, beginning: Sequence[int], missing: int, told: bool = False) -> list[int]:
    """Go on from a beginning, the most probable word each time; the new ids.

    A GPT-style model writes until it ends the sentence itself. A BERT-style one has no way to end it: it stops after ``missing``
    words. For each it gets one [MASK] after what is there, and nothing behind it, as nothing is written there yet; or, if
    ``told``, from the start as many [MASK] as words are missing and EOS after them, which it fills from left to right.
    """
    if isinstance(model, DecoderOnly):
        most = model.config.max_positions - len(beginning) - 1
        written = model.generate(torch.tensor([[BOS, *beginning]]), most, temperature=0)[0].tolist()
        return written[: written.index(EOS)] if EOS in written else written
    token_ids = [BOS, *beginning]
    for left in range(missing, 0, -1):
        rest = [*[MASK] * left, EOS] if told else [MASK]
        logits = model(torch.tensor([[*token_ids, *rest]]))[0, len(token_ids)]
        logits[[model.config.pad_id, BOS, EOS, MASK]] = float("-inf")  # what was never an answer in training
        token_ids.append(int(logits.argmax()))
    return token_ids[len(beginning) + 1 :]


# --- the measurement ---


def measure(way: str, seed: int, steps: int = STEPS, n_test: int = N_TEST, n_tried: int = N_TRIED) -> dict[str, Any]:
    """Train one model, and ask it the same as all others, on sentences that it has not seen.

    Args:
        way: one of `WAYS`.
        seed: draws the sentences, their order, what is hidden and the first weights.
        steps: how many.
        n_test: sentences to ask about, at most 150.
        n_tried: of these, the sentences in which every verb form is tried.

    Returns:
        ``marked``: the places that the loss has counted in all of training. Of the gap at the finite verb, every sentence once
        with an ending of the past and once with one of the present: ``tense``, the share in which the forms of the right tense
        together are the more probable; ``past``, the mean probability of the past forms among all finite forms, with an ending
        of the past and with one of the present; ``agreement``, the share (of those with the present) in which the right number
        is the more probable. Of gaps at every word: ``word``, the share in which the top guess is the word that stood there, and
        ``perplexity``. ``continues``: the share of beginnings (all before the finite verb) that the model makes a sentence of.
        ``guesses``: the three top guesses for "the dog … the cat" with each ending; ``writes``: what follows "the dog". For the
        GPT-style model also ``tried`` (unless ``n_tried`` is 0): as ``tense``, with every form tried in the gap and the whole
        sentence scored. For the others ``told`` and ``writes_told``: as ``continues`` and ``writes``, told from the start how
        many words are missing.

    Raises:
        ValueError: there is no such way.

    Source: Devlin et al. 2019, §3.1; Radford et al. 2018, §3.1.
    """
    given = data(seed)
    with alone(seed):
        model = build(way, len(given.vocabulary))
        marked = train(model, batches(given.train, seed), steps, seed)
        found = {
            "marked": marked,
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            **_verbs(model, given, n_test, n_tried),
            **_words(model, given, n_test),
            **_beginnings(model, given, n_test),
            "guesses": {tense: top(model, given.vocabulary, tense) for tense in ENDINGS},
            "writes": _text(given, write(model, _ids(given, SUBJECT), MISSING)),
        }
        if not isinstance(model, DecoderOnly):
            found["writes_told"] = _text(given, write(model, _ids(given, SUBJECT), MISSING, told=True))
    return found


def measure_all() -> dict[str, Any]:
    """What is stored: ``measure`` of every way with each of three seeds, by way and then by what was measured."""
    found = {way: [measure(way, seed) for seed in SEEDS] for way in WAYS}
    return {"seeds": SEEDS, "steps": STEPS} | {
        way: {name: [each[name] for each in runs] for name in runs[0]} for way, runs in found.items()
    }


def question(tense: str) -> tuple[str, ...]:
    """The words of the question shown, its gap written as an underscore."""
    return (*SUBJECT, "_", *OBJECT, *ENDINGS[tense])


def top(model: nn.Module, vocabulary: Words, tense: str, count: int = 3) -> list[tuple[str, float]]:
    """The most probable words in the gap of the question shown, with their probabilities."""
    words = question(tense)
    sentence = [vocabulary.ids.get(word, MASK) for word in words]
    best = guesses(model, [sentence], [words.index("_")])[0].exp().topk(count)
    return [(vocabulary.words[i], float(p)) for p, i in zip(best.values, best.indices.tolist(), strict=True)]


def _ids(given: Data, words: Sequence[str]) -> list[int]:
    return given.vocabulary.encode(" ".join(words))


def _text(given: Data, ids: Sequence[int]) -> str:
    return " ".join(given.vocabulary.tokens(ids))


def _pairs(given: Data, n_test: int) -> list[tuple[tuple[str, ...], bool]]:
    """Each test sentence with its own ending and with one of the other tense, and whether the ending asks for the past."""
    pairs = []
    for words in given.test[:n_test]:
        own = ending_of(words)
        for ending in (own, other_ending(own)):
            pairs.append(((*words[: len(words) - len(own)], *ending), is_past(ending)))
    return pairs


def _verbs(model: nn.Module, given: Data, n_test: int, n_tried: int) -> dict[str, Any]:
    """The questions on the gap at the finite verb."""
    forms = finite()
    columns = [given.vocabulary.ids[word] for word in forms if word in given.vocabulary.ids]
    told = [forms[word] for word in forms if word in given.vocabulary.ids]
    of_past = torch.tensor([form.past for form in told])
    of_third, of_many = (torch.tensor([form.third is third for form in told]) for third in (True, False))
    pairs = _pairs(given, n_test)
    gaps = [gap_of(words) for words, _ in pairs]
    chances = guesses(model, [_ids(given, words) for words, _ in pairs], gaps)[:, columns].softmax(dim=-1)  # among finite forms
    past = chances[:, of_past].sum(dim=-1)
    asks = torch.tensor([yes for _, yes in pairs])
    present = [i for i, (words, yes) in enumerate(pairs) if not yes]
    third = torch.tensor([takes_s(pairs[i][0]) for i in present])
    agrees = (chances[present][:, of_third].sum(dim=-1) > chances[present][:, of_many].sum(dim=-1)) == third
    found = {
        "tense": float(((past > 0.5) == asks).float().mean()),
        "past": [float(past[asks].mean()), float(past[~asks].mean())],
        "agreement": float(agrees.float().mean()),
    }
    few = pairs[: 2 * n_tried]
    if isinstance(model, DecoderOnly) and few:
        scores = tried(model, [_ids(given, words) for words, _ in few], gaps[: len(few)], columns).softmax(dim=-1)
        found["tried"] = float(((scores[:, of_past].sum(dim=-1) > 0.5) == asks[: len(few)]).float().mean())
    return found


def takes_s(sentence: Sequence[str]) -> bool:
    """Whether the subject is he, she or it: decided by the word before the verb and its adverb."""
    often = {word for word, _ in grammar.FREQUENCIES}
    head = [word for word in sentence[: gap_of(sentence)] if word not in often][-1]
    pronouns = {he: third for he, _, _, third in grammar.PRONOUNS}
    return pronouns.get(head, head not in {noun.plural for noun in grammar.ANIMATE})


def _words(model: nn.Module, given: Data, n_test: int) -> dict[str, float]:
    """A gap at every word of every test sentence, one at a time."""
    sentences = [_ids(given, words) for words in given.test[:n_test]]
    every = [(sentence, gap) for sentence in sentences for gap in range(len(sentence))]
    right = torch.tensor([sentence[gap] for sentence, gap in every])
    found = guesses(model, [sentence for sentence, _ in every], [gap for _, gap in every])
    loss = -found[torch.arange(len(every)), right].mean()
    return {"word": float((found.argmax(dim=-1) == right).float().mean()), "perplexity": float(loss.exp())}


def _beginnings(model: nn.Module, given: Data, n_test: int) -> dict[str, float]:
    """Whether what is written from the words before each test sentence's finite verb is a sentence of the grammar."""

    def share(told: bool) -> float:
        right = []
        for words in given.test[:n_test]:
            gap = gap_of(words)
            written = write(model, _ids(given, words[:gap]), len(words) - gap, told)
            right.append(is_sentence((*words[:gap], *given.vocabulary.tokens(written))))
        return float(np.mean(right))

    return {"continues": share(False)} | ({} if isinstance(model, DecoderOnly) else {"told": share(True)})


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw the stored answers of three seeds, and on top of them those of two models trained now.

    The live runs are the BERT-style and the GPT-style model, with another seed and 300 and 150 steps in place of 1,500: about
    eight seconds.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    kept = stored.read("families")
    live = {way: measure(way, LIVE_SEED, steps, LIVE_TEST, n_tried=0) for way, steps in LIVE_STEPS.items()}

    def say(key: str, **given: object) -> str:
        return message(f"experiments.families.{key}", lang, **given)

    names = {way: say(way) for way in WAYS}
    with figures.style():
        drawn = figures.new_figure(900, 440)
        endings, answers = drawn.subplots(1, 2, width_ratios=(1, 1.75))
        _endings(endings, kept, live, names, say)
        _answers(answers, kept, live, say)
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        entries = {
            label: line for axes in (endings, answers) for line, label in zip(*axes.get_legend_handles_labels(), strict=True)
        }
        drawn.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=3, frameon=False)
        note = say("note", **quoted(kept))
        return figures.picture(drawn, title=title, table=_table(kept, live, names, say), text=note, lang=lang)


def quoted(kept: Mapping[str, Any]) -> dict[str, object]:
    """The numbers of the sentence below the picture; where seeds differ, the worst case for what is said, or both ends."""

    def ends(way: str, name: str) -> tuple[int, int]:
        """The worst run rounded down and the best rounded up, in percent: "at least" and "at most" stay true."""
        values = kept[way][name]
        return floor(100 * min(values)), ceil(100 * max(values))

    marked = {way: np.mean(kept[way]["marked"]) for way in WAYS}
    return {
        "seeds": len(kept["seeds"]),
        "steps": f"{kept['steps']:,}",
        **{f"{way}_live": steps for way, steps in LIVE_STEPS.items()},
        "bert_tense": ends("bert", "tense")[0],
        "gpt_tense": ends("gpt", "tense")[1],
        "blind_tense": ends("blind", "tense")[1],
        "gpt_agreement": ends("gpt", "agreement")[0],
        "bert_agreement_low": ends("bert", "agreement")[0],
        "bert_agreement_high": ends("bert", "agreement")[1],
        "bert_word": f"{100 * np.mean(kept['bert']['word']):.0f}",
        "gpt_word": f"{100 * np.mean(kept['gpt']['word']):.0f}",
        "gpt_continues": ends("gpt", "continues")[0],
        "bert_continues": ends("bert", "continues")[1],
        "told_low": ends("bert", "told")[0],
        "told_high": ends("bert", "told")[1],
        "bert_marked": f"{marked['bert']:,.0f}",
        "gpt_marked": f"{marked['gpt']:,.0f}",
        "times": f"{marked['gpt'] / marked['bert']:.1f}",
        "tried": ends("gpt", "tried")[0],
        "forms": len(finite()),
    }


def _endings(
    axes: Axes, kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]
) -> None:
    """How probable the past is in the gap at the verb, with either ending: joined by a line for every run."""
    from transformer_lite.explore import figures

    for i, way in enumerate(WAYS):
        look = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
        for run, past in enumerate(kept[way]["past"]):
            axes.plot((0, 1), past, linewidth=1.8, markersize=8, label=names[way] if run == 0 else None, **look)
    for way in LIVE_STEPS:
        axes.plot((0, 1), live[way]["past"], color="black", linestyle="", marker="x", markersize=9)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xlim(-0.35, 1.35)
    axes.set_xticks((0, 1), [say("ends_past"), say("ends_present")])
    axes.set_title(say("endings"))
    axes.set_ylabel(say("endings_axis"))
    _grid(axes)


def _answers(axes: Axes, kept: Mapping[str, Any], live: Mapping[str, Any], say: Callable[..., str]) -> None:
    """The share of right answers to each question: a mark for every run."""
    from transformer_lite.explore import figures

    for group, name in enumerate(MEASURES):
        if name in ("agreement", "tense"):  # one of two answers
            axes.plot((group - 0.42, group + 0.42), (0.5, 0.5), color="#777777", linewidth=1, linestyle=":")
        for i, way in enumerate(WAYS):
            x = group + 0.26 * (i - 1) + np.linspace(-0.06, 0.06, len(kept["seeds"]))
            look = {"color": figures.COLOURS[i], "linestyle": "", "marker": figures.MARKERS[i], "markersize": 8}
            axes.plot(x, kept[way][name], **look)
            if name == "continues" and "told" in kept[way]:
                axes.plot(x, kept[way]["told"], fillstyle="none", label=say("told_mark") if way == "bert" else None, **look)
            if way in live:
                axes.plot(x.mean(), live[way][name], color="black", linestyle="", marker="x", markersize=9, label=say("live"))
    axes.set_ylim(-0.03, 1.05)
    axes.set_xlim(-0.5, len(MEASURES) - 0.5)
    axes.set_xticks(range(len(MEASURES)), [say(f"{name}_short") for name in MEASURES])
    axes.set_title(say("answers"))
    axes.set_ylabel(say("answers_axis"))
    _grid(axes)


def _grid(axes: Axes) -> None:
    axes.grid(True, axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _table(
    kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]
) -> list[list[str]]:
    """The answers of all runs; then what the models of the first seed, and those trained now, say to the same questions."""

    def percents(values: Sequence[float]) -> str:
        return " / ".join(f"{100 * value:.3g}" for value in values) + " %"

    columns = ("agreement", "tense", "word", "perplexity", "continues", "told", "marked")
    table = [["", *(say(name) for name in columns)]]
    runs = {names[way]: kept[way] for way in WAYS}
    for way, steps in LIVE_STEPS.items():
        runs[say("now", name=names[way], steps=steps)] = {key: [value] for key, value in live[way].items()}
    for name, found in runs.items():
        row = [percents(found[column]) if column in found else "" for column in columns]
        row[3] = " / ".join(f"{value:.1f}" for value in found["perplexity"])
        row[6] = f"{np.mean(found['marked']):,.0f}"
        table.append([name, *row])
    table.append([say("tried", forms=len(finite())), "", percents(kept["gpt"]["tried"]), *[""] * 5])
    gaps = [" ".join(question(tense)).replace("_", "[MASK]") for tense in ENDINGS]
    begun = " ".join(SUBJECT) + " …"
    table.append([say("asked"), *gaps, begun, say("asked_told", beginning=begun), *[""] * 3])
    for name, found in runs.items():
        guessed = [", ".join(f"{word} {100 * p:.0f} %" for word, p in found["guesses"][0][tense]) for tense in ENDINGS]
        table.append([name, *guessed, found["writes"][0], found.get("writes_told", [""])[0], *[""] * 3])
    return table
