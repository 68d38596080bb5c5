"""What positions are good for, and how far: sequences longer than in training, and a model without any positions (section 3.5).

The task could not be plainer: write the words that you read, in the same order. Models with sinusoids, with learned positions and
with no positions learn it on sequences of at most eight words, and are asked to copy up to twenty-four. Nothing but the positions
says which word comes first, and nothing but positions beyond the eighth is new.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import factorial
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer_lite.experiments import stored
from transformer_lite.experiments.learning import alone, learn
from transformer_lite.language import current, message
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.translation import grammar
from transformer_lite.translation.batching import Batch, batch_of, padded
from transformer_lite.translation.vocabulary import EOS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

WAYS = ("sinusoidal", "learned", "none", "trained_longer")  # the last: sinusoids, and sequences of up to 16 words in training
SHARES = ("exact", "in_place", "same_words")
SEEDS = (0, 1, 2)  # of what is stored
LONGEST, TWICE = 8, 16  # words of a training sequence, in the first three ways and in the last
LENGTHS = (1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 12, 14, 16, 18, 20, 24)
N_TEST = 100  # sequences of each length
STEPS, ROWS = 600, 32
RATE, WARMUP = 0.003, 40
LIVE_WAY, LIVE_SEED, LIVE_STEPS, LIVE_LENGTHS, LIVE_TEST = "sinusoidal", 3, 240, (2, 4, 6, 8, 10, 12, 16), 50
MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_layers": 2, "n_decoder_layers": 1, "norm": "pre", "dropout": 0.0}

# 45 words of the grammar, English and Japanese; which one is only a number to the model, and a sequence any of them in any order.
WORDS = (
    *((noun.singular, noun.ja) for noun in grammar.ANIMATE),
    *((noun.singular, noun.ja) for nouns in grammar.THINGS.values() for noun in nouns),
    *((verb.past, verb.ja[1]) for verb, _ in grammar.TRANSITIVE),
)
FIRST = 3  # the id of the first word, after padding, BOS and EOS
SWAP = {
    "en": (("dog", "chased", "cat"), ("cat", "chased", "dog")),
    "ja": (("犬", "猫", "追いかけた"), ("猫", "犬", "追いかけた")),
}
LANGUAGES = ("en", "ja")  # in the order of `WORDS`


# --- the measurement ---


def sequences(rng: np.random.Generator, n: int, count: int) -> list[list[int]]:
    """``count`` sequences of ``n`` different words, as ids."""
    return [(FIRST + rng.permutation(len(WORDS))[:n]).tolist() for _ in range(count)]


def tasks(seed: int, longest: int) -> Iterator[Batch]:
    """Batches without end: fresh sequences of 1 to ``longest`` words, every length as likely, to be copied."""
    rng = np.random.default_rng([seed, 1])
    while True:
        rows = [words for n in rng.integers(1, longest + 1, ROWS) for words in sequences(rng, int(n), 1)]
        yield batch_of([(words, words) for words in rows], range(ROWS))


def measure(way: str, seed: int, steps: int = STEPS, lengths: Sequence[int] = LENGTHS, n_test: int = N_TEST) -> dict[str, Any]:
    """Train one model to copy, and let it copy sequences of every length.

    Args:
        way: one of `WAYS`.
        seed: of the first weights and of the sequences.
        steps: how many.
        lengths: words of the sequences to copy; at most 24.
        n_test: sequences of each length.

    Returns:
        For each length, shares of the sequences: ``exact`` copied without a mistake, ``same_words`` written with the right
        words in whatever order; and of the words, ``in_place`` written at their places. ``reversed``: the share of sequences of
        three words that give the same output when they are read backwards. ``swap``: for each language the ids written for the
        words of the course's sentence and for those of its swap.

    Raises:
        ValueError: there is no such way, or a length is not 1 to 24.

    Source: Vaswani et al. 2017, §3.5, which says that sinusoids "may" extend to longer sequences; Press et al. 2022 measured
    that they hardly do.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(map(repr, WAYS))}; got {way!r}.")
    if not all(1 <= n <= max(LENGTHS) for n in lengths):
        raise ValueError(f"lengths must be 1 to {max(LENGTHS)}; got {tuple(lengths)}.")
    config = TransformerConfig(
        source_vocab=FIRST + len(WORDS),
        positions="sinusoidal" if way == "trained_longer" else way,
        max_positions=2 * max(LENGTHS),  # of the learned ones, those beyond the training sequences stay as they were drawn
        **MODEL,
    )
    rng = np.random.default_rng([seed, 2])
    found: dict[str, Any] = {name: [] for name in SHARES}
    with alone(seed):
        model = Transformer(config)
        learn(model, tasks(seed, TWICE if way == "trained_longer" else LONGEST), lambda step: rate(step, steps), steps)
        for n in lengths:
            wanted = sequences(rng, n, n_test)
            written = copy(model, wanted)
            pairs = list(zip(written, wanted, strict=True))
            found["exact"].append(float(np.mean([a == b for a, b in pairs])))
            found["same_words"].append(float(np.mean([sorted(a) == sorted(b) for a, b in pairs])))
            found["in_place"].append(float(np.mean([sum(x == y for x, y in zip(a, b, strict=False)) / n for a, b in pairs])))
        three = sequences(rng, 3, n_test)
        backwards = copy(model, [words[::-1] for words in three])
        found["reversed"] = float(np.mean([a == b for a, b in zip(copy(model, three), backwards, strict=True)]))
        found["swap"] = {lang: copy(model, [_ids(words, lang) for words in both]) for lang, both in SWAP.items()}
    return found


def measure_all() -> dict[str, Any]:
    """What is stored: ``measure`` of every way with each of three seeds, by way and then by what was measured."""
    found = {way: [measure(way, seed) for seed in SEEDS] for way in WAYS}
    return {"seeds": SEEDS, "lengths": LENGTHS} | {
        way: {name: [each[name] for each in runs] for name in runs[0]} for way, runs in found.items()
    }


def rate(step: int, steps: int = STEPS) -> float:
    """The learning rate: up in the first steps, level, and down to 0 in the second half of all ``steps``."""
    return RATE * min(1.0, step / WARMUP, 2 * (1 - (step - 1) / steps))


def copy(model: Transformer, sources: Sequence[list[int]]) -> list[list[int]]:
    """What the model writes for each source, greedily, without the EOS."""
    longest = max(map(len, sources))
    rows = model.generate(padded([[*words, EOS] for words in sources]), longest + 5).tolist()
    return [row[: row.index(EOS)] if EOS in row else row for row in rows]


def _ids(words: Sequence[str], lang: str) -> list[int]:
    known = [pair[LANGUAGES.index(lang)] for pair in WORDS]
    return [FIRST + known.index(word) for word in words]


def _text(ids: Sequence[int], lang: str) -> str:
    return " ".join(WORDS[i - FIRST][LANGUAGES.index(lang)] for i in ids if i >= FIRST)


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw the stored shares of three seeds against the length, and on top of them one run made now.

    The live run is the model with sinusoids, with another seed and 240 steps in place of 600: about four seconds.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    kept = stored.read("longer")
    live = measure(LIVE_WAY, LIVE_SEED, LIVE_STEPS, LIVE_LENGTHS, LIVE_TEST)

    def say(key: str, **given: object) -> str:
        return message(f"experiments.longer.{key}", lang, **given)

    names = {way: say(way, longest=LONGEST, twice=TWICE) for way in WAYS}
    now = say("live", steps=LIVE_STEPS)
    with figures.style():
        drawn = figures.new_figure(900, 450)
        panels = drawn.subplots(1, 3)
        for axes, name in zip(panels, SHARES, strict=True):
            _panel(axes, kept, name, live, names, now, say)
        _references(panels[0], panels[1], say)
        title = say("title", longest=LONGEST)
        drawn.suptitle(title, fontsize=12)
        entries = {label: line for axes in panels[:2] for line, label in zip(*axes.get_legend_handles_labels(), strict=True)}
        drawn.legend(entries.values(), entries.keys(), loc="outside lower center", ncols=2, frameon=False)
        note = say("note", **quoted(kept, live))
        return figures.picture(drawn, title=title, table=_table(kept, live, names, now, lang, say), text=note, lang=lang)


def quoted(kept: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, object]:
    """The numbers of the sentence below the picture, in percent."""
    at = {n: i for i, n in enumerate(kept["lengths"])}

    def percent(way: str, name: str, n: int) -> str:
        return f"{100 * np.mean([run[at[n]] for run in kept[way][name]]):.0f}"

    known = [run[at[n]] for way in ("sinusoidal", "learned") for run in kept[way]["exact"] for n in LENGTHS if n <= LONGEST]
    beyond = [run[at[n]] for way in ("sinusoidal", "learned") for run in kept[way]["exact"] for n in LENGTHS if n > LONGEST + 2]
    return {
        "seeds": len(kept["seeds"]),
        "longest": LONGEST,
        "twice": TWICE,
        "known": f"{100 * min(known):.0f}",
        "beyond": f"{100 * max(beyond):.0f}",
        "sinusoidal_next": percent("sinusoidal", "exact", LONGEST + 1),
        "learned_next": percent("learned", "exact", LONGEST + 1),
        "sinusoidal_place": percent("sinusoidal", "in_place", 12),
        "learned_place": percent("learned", "in_place", 12),
        "longer_at": percent("trained_longer", "exact", 12),
        "longer_end": percent("trained_longer", "exact", 24),
        "none_words": percent("none", "same_words", 3),
        "none_exact": percent("none", "exact", 3),
        "chance": f"{100 / factorial(3):.0f}",
        "none_reversed": f"{100 * np.mean(kept['none']['reversed']):.0f}",
        "live_steps": LIVE_STEPS,
        "live_known": f"{100 * live['exact'][LIVE_LENGTHS.index(6)]:.0f}",
        "live_beyond": f"{100 * live['exact'][LIVE_LENGTHS.index(12)]:.0f}",
    }


def _panel(
    axes: Axes,
    kept: Mapping[str, Any],
    name: str,
    live: Mapping[str, Any],
    names: Mapping[str, str],
    now: str,
    say: Callable[..., str],
) -> None:
    """One share against the length: the mean of the seeds, a band from the smallest to the largest, and the live run."""
    from transformer_lite.explore import figures

    lengths = np.array(kept["lengths"])
    for end in (LONGEST, TWICE):
        axes.axvline(end + 0.5, color="#888888", linestyle=":", linewidth=1)
    for i, way in enumerate(WAYS):
        runs = np.array(kept[way][name])  # (n_seeds, n_lengths)
        look = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
        axes.plot(lengths, runs.mean(axis=0), label=names[way], linewidth=2, markersize=5, **look)
        axes.fill_between(lengths, runs.min(axis=0), runs.max(axis=0), color=figures.COLOURS[i], alpha=0.25, linewidth=0)
    axes.plot(LIVE_LENGTHS, live[name], label=now, color="black", linestyle="", marker="x", markersize=7)
    axes.set_ylim(-0.03, 1.03)
    axes.set_xticks((1, 4, 8, 12, 16, 20, 24))
    axes.set_title(say(name))
    axes.set_xlabel(say("length"))
    axes.set_ylabel(say(f"{name}_axis"))
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _references(exact: Axes, in_place: Axes, say: Callable[..., str]) -> None:
    """What can be computed without any model: the right words in a random order, and only the first eight words right."""
    few = np.arange(1, 9)
    exact.plot(few, [1 / factorial(int(n)) for n in few], color="#555555", linewidth=1, linestyle="-", label=say("chance"))
    many = np.arange(LONGEST, max(LENGTHS) + 1)
    in_place.plot(many, LONGEST / many, color="#555555", linewidth=1, linestyle="--", label=say("only_first", longest=LONGEST))


def _table(
    kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], now: str, lang: str, say: Callable[..., str]
) -> list[list[str]]:
    """Means of the seeds for each length, the live run, and what is written for the course's sentence and its swap."""
    shown = (1, 2, 3, 4, 6, 8, 9, 10, 12, 16, 18, 24)
    at = [kept["lengths"].index(n) for n in shown]
    table = [[say("length"), *map(str, shown)]]
    for name in SHARES:
        for way in WAYS:
            means = np.mean(kept[way][name], axis=0)
            table.append([f"{say(name)}: {names[way]}", *(f"{means[i]:.2f}" for i in at)])
        measured = dict(zip(LIVE_LENGTHS, live[name], strict=True))
        table.append([f"{say(name)}: {now}", *(f"{measured[n]:.2f}" if n in measured else "" for n in shown)])
    blank = [""] * (len(shown) - 2)
    table.append([say("swap"), *(" ".join(words) for words in SWAP[lang]), *blank])
    for way in WAYS[:3]:
        table.append([say("written", name=names[way]), *(_text(ids, lang) for ids in kept[way]["swap"][0][lang]), *blank])
    return table
