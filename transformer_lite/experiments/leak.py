"""What becomes of a model that sees the answer while it learns: the loss falls to 0, and nothing can be written (section 3.1).

One small model learns sentences of the course's grammar three ways: properly; without the decoder's causal mask; and with the
mask but without the right shift, so that the decoder's input holds at each place the very word that is to be predicted there.
Then all three translate sentences that they have not seen, word by word, with no answer to look at.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from transformer_lite.experiments import stored
from transformer_lite.experiments.learning import alone, batches, learn
from transformer_lite.language import current, message
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.model.decoding import RecomputedState
from transformer_lite.translation import grammar, scoring
from transformer_lite.translation.batching import Batch, Ids, batch_of, padded
from transformer_lite.translation.training import loss_of
from transformer_lite.translation.vocabulary import EOS, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

WAYS = ("proper", "no_mask", "no_shift")
SEEDS = (0, 1, 2)  # of what is stored
LONGEST = 8  # English words of a sentence
N_TRAIN, N_TEST = 4_000, 200
STEPS = 400
BLOCK = 10  # steps whose mean loss is kept as one number
TOKENS = 512
MOST_WORDS = 20  # that are written; no translation in the data has as many
RATE, WARMUP = 0.004, 40
LIVE_WAY, LIVE_SEED, LIVE_STEPS, LIVE_TEST = "no_mask", 3, 150, 50
# Its output matrix is not the embedding table: where the two are one, the model without the shift need learn nothing to repeat
# its input, and the three curves would not begin at the same loss.
MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_layers": 2, "n_decoder_layers": 1, "norm": "pre", "dropout": 0.0,
         "tied": False}  # fmt: skip


class Unmasked(Transformer):
    """The model with its decoder's causal mask forgotten: every place of the target sees all others."""

    def decode(self, target_ids: Tensor, memory: Tensor, memory_mask: Tensor | None, weights: Any = None) -> Tensor:
        """As `Transformer.decode`; only padding is hidden."""
        return self.decoder(self.target_embedding(target_ids), memory, self.real(target_ids), memory_mask)

    def start_without_cache(self, source_ids: Tensor, beam: int) -> _UnmaskedState:
        """As `Transformer.start_without_cache`. (A cache hides what comes later, and so is no way to run this model.)"""
        return _UnmaskedState(self, source_ids, beam)


class _UnmaskedState(RecomputedState):
    """All words so far see one another, as in training; only that the later ones are not there yet."""

    def step(self, token_ids: Tensor) -> Tensor:
        self.tokens = torch.cat([self.tokens, token_ids.unsqueeze(1)], dim=1)
        y = self.model.decode(self.tokens, self.memory, self.memory_mask)
        return self.model.output(y[:, -1])


def unshifted(given: Iterable[Batch]) -> Iterator[Batch]:
    """The batches with the right shift forgotten: the decoder's input is the row of labels itself."""
    return (batch._replace(target_input=batch.labels) for batch in given)


# --- the measurement ---


class Data(NamedTuple):
    """Sentences as ids, and the vocabularies. The course's sentence is among neither part."""

    train: list[Ids]
    test: list[Ids]
    source: Words
    target: Words


@cache
def data(seed: int) -> Data:
    """4,000 short sentences of the grammar to learn from and 200 others."""
    taught = {pair.source for pair in grammar.COURSE}
    short = (pair for pair in grammar.sentences(seed) if len(pair.source) <= LONGEST and pair.source not in taught)
    texts = [(" ".join(pair.source), " ".join(pair.target)) for pair in islice(short, N_TEST + N_TRAIN)]
    source, target = (Words.of(side) for side in zip(*texts[N_TEST:], strict=True))
    ids = [(source.encode(english), target.encode(japanese)) for english, japanese in texts]
    return Data(ids[N_TEST:], ids[:N_TEST], source, target)


def measure(way: str, seed: int, steps: int = STEPS, n_test: int = N_TEST) -> dict[str, Any]:
    """Train one model, and see what its loss says and what it writes.

    Args:
        way: one of `WAYS`.
        seed: draws the sentences, their order and the first weights.
        steps: how many of the 400 steps.
        n_test: sentences to translate, at most 200.

    Returns:
        ``loss``: the mean of every ten steps, nats per token. ``new``: the loss on sentences not seen in training, under the
        same conditions as in training. ``strange``: the same where every sentence stands beside the source of another one.
        ``exact``: the share of these sentences translated without a mistake, word by word and greedily. ``course``: what is
        written for "the dog chased the cat".

    Raises:
        ValueError: there is no such way.

    Source: Vaswani et al. 2017, §3.1: the mask and the shift together keep the answer from being seen. Label smoothing, with
    which no loss comes near 0, is off.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(map(repr, WAYS))}; got {way!r}.")
    given = data(seed)
    test = given.test[:n_test]
    shift: Callable[[Iterable[Batch]], Iterable[Batch]] = unshifted if way == "no_shift" else iter
    config = TransformerConfig(source_vocab=len(given.source), target_vocab=len(given.target), **MODEL)
    with alone(seed):
        model = (Unmasked if way == "no_mask" else Transformer)(config)
        losses = learn(model, shift(batches(given.train, TOKENS, seed)), rate, steps)
        strange = [(test[i - 1][0], target) for i, (_, target) in enumerate(test)]
        new_loss, strange_loss = (_loss(model, *shift([batch_of(pairs, range(len(pairs)))])) for pairs in (test, strange))
        written = write(model, [source for source, _ in test], given.target)
        course = write(model, [given.source.encode(" ".join(grammar.COURSE[0].source))], given.target)
    blocks = np.array(losses[: steps // BLOCK * BLOCK]).reshape(-1, BLOCK)
    wanted = [given.target.decode(target) for _, target in test]
    return {
        "loss": blocks.mean(axis=1).tolist(),
        "new": new_loss,
        "strange": strange_loss,
        "exact": scoring.exact(written, wanted),
        "course": course[0],
    }


def measure_all() -> dict[str, Any]:
    """What is stored: ``measure`` of every way with each of three seeds, by way and then by what was measured."""
    found = {way: [measure(way, seed) for seed in SEEDS] for way in WAYS}
    return {"seeds": SEEDS, "steps": STEPS, "block": BLOCK} | {
        way: {name: [each[name] for each in runs] for name in runs[0]} for way, runs in found.items()
    }


def rate(step: int) -> float:
    """The learning rate: up in the first steps, level, and down to 0 in the second half of the 400."""
    return RATE * min(1.0, step / WARMUP, 2 * (1 - (step - 1) / STEPS))


def write(model: Transformer, sources: Sequence[list[int]], target: Words) -> list[str]:
    """The greedy translations of the sources, as text. Nothing is cached: every step is computed as in training."""
    written = model.generate(padded([[*source, EOS] for source in sources]), MOST_WORDS, cache=False).tolist()
    return [target.decode(row[: row.index(EOS)] if EOS in row else row) for row in written]


@torch.no_grad()
def _loss(model: nn.Module, batch: Batch) -> float:
    model.eval()
    return float(loss_of(model, batch)) / batch.tokens


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw the stored losses and exact matches of three seeds, and on top of them one run made now.

    The live run is the model without the mask, with another seed and 150 of the 400 steps: about two seconds.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    kept = stored.read("leak")
    live = measure(LIVE_WAY, LIVE_SEED, LIVE_STEPS, LIVE_TEST)

    def say(key: str, **given: object) -> str:
        return message(f"experiments.leak.{key}", lang, **given)

    names = {way: say(way) for way in WAYS}
    now = say("live", name=names[LIVE_WAY], steps=LIVE_STEPS)
    with figures.style():
        drawn = figures.new_figure(900, 430)
        losses, sources, exact = drawn.subplots(1, 3, width_ratios=(1.5, 1, 1))
        _losses(losses, kept, live, names, now, say)
        _by_source(sources, kept, live, names, say)
        _exact(exact, kept, live, names, say)
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        drawn.legend(handles=losses.get_lines(), loc="outside lower center", ncols=2, frameon=False)
        note = say("note", **quoted(kept, live))
        return figures.picture(drawn, title=title, table=_table(kept, live, names, now, say), text=note, lang=lang)


def steps_until(losses: Sequence[float], level: float) -> int | None:
    """The step at whose end the mean loss of a block is first below ``level``; None: never."""
    return next(((i + 1) * BLOCK for i, loss in enumerate(losses) if loss < level), None)


def quoted(kept: Mapping[str, Any], live: Mapping[str, Any]) -> dict[str, object]:
    """The numbers of the sentence below the picture; where seeds differ, the worst case for what is said."""
    until = {way: [steps_until(losses, 0.1) for losses in kept[way]["loss"]] for way in WAYS}
    leaking = [run for way in WAYS[1:] for run in kept[way]["exact"]]
    return {
        "seeds": len(kept["seeds"]),
        **{f"{way}_steps": f"{np.mean(until[way]):.0f}" for way in WAYS},
        **{f"{way}_{name}": f"{np.mean(kept[way][name]):#.2g}" for way in WAYS for name in ("new", "strange")},
        "proper_exact": f"{100 * min(kept['proper']['exact']):g}",
        "leaking_exact": f"{100 * max(leaking):g}",
        "live_steps": LIVE_STEPS,
        "live_loss": f"{live['loss'][-1]:.2f}",
        "live_exact": f"{100 * live['exact']:.0f}",
    }


def _losses(
    axes: Axes, kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], now: str, say: Callable[..., str]
) -> None:
    from transformer_lite.explore import figures

    for i, way in enumerate(WAYS):
        runs = np.array(kept[way]["loss"])  # (n_seeds, n_blocks)
        steps = BLOCK * np.arange(1, runs.shape[1] + 1) - BLOCK / 2
        look = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
        axes.plot(steps, runs.mean(axis=0), label=names[way], linewidth=2, markersize=6, markevery=(2, 6), **look)
        axes.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=figures.COLOURS[i], alpha=0.25, linewidth=0)
    steps = BLOCK * np.arange(1, len(live["loss"]) + 1) - BLOCK / 2
    axes.plot(steps, live["loss"], label=now, color="black", linestyle="", marker="x", markersize=6)
    axes.set_yscale("log")
    axes.set_title(say("loss"))
    axes.set_xlabel(say("steps"))
    axes.set_ylabel(say("loss_axis"))
    _grid(axes)


def _by_source(
    axes: Axes, kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]
) -> None:
    """The loss on new sentences, beside their own source and beside another's: joined by a line for every run."""
    from transformer_lite.explore import figures

    for i, way in enumerate(WAYS):
        look = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
        for pair in zip(kept[way]["new"], kept[way]["strange"], strict=True):
            axes.plot((0, 1), pair, linewidth=1.5, markersize=7, **look)
    axes.plot((0, 1), (live["new"], live["strange"]), color="black", linestyle="", marker="x", markersize=7)
    axes.set_yscale("log")
    axes.set_xlim(-0.4, 1.4)
    axes.set_xticks((0, 1), [say("own"), say("other")])
    axes.set_title(say("sources"))
    axes.set_ylabel(say("loss_axis"))
    _grid(axes)


def _exact(
    axes: Axes, kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]
) -> None:
    from transformer_lite.explore import figures

    for i, way in enumerate(WAYS):
        runs = kept[way]["exact"]
        x = i + np.linspace(-0.15, 0.15, len(runs))
        axes.plot(x, runs, linestyle="", marker=figures.MARKERS[i], markersize=8, color=figures.COLOURS[i])
    axes.plot(WAYS.index(LIVE_WAY), live["exact"], color="black", linestyle="", marker="x", markersize=8)
    axes.set_ylim(-0.05, 1.05)
    axes.set_xlim(-0.5, len(WAYS) - 0.5)
    axes.set_xticks(range(len(WAYS)), [say(f"{way}_short") for way in WAYS])
    axes.set_title(say("exact"))
    axes.set_ylabel(say("exact_axis"))
    _grid(axes)


def _grid(axes: Axes) -> None:
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _table(
    kept: Mapping[str, Any], live: Mapping[str, Any], names: Mapping[str, str], now: str, say: Callable[..., str]
) -> list[list[str]]:
    """One row for each way, means of the seeds; one for the live run."""
    shown = (50, 100, 150, 400)
    table = [["", *(say("after", steps=steps) for steps in shown), say("new"), say("strange"), say("exact"), say("course")]]
    for way in WAYS:
        runs = kept[way]
        means = np.mean(runs["loss"], axis=0)
        row = [f"{means[steps // BLOCK - 1]:#.2g}" for steps in shown]
        exact = " / ".join(f"{100 * each:g} %" for each in runs["exact"])
        table.append([names[way], *row, f"{np.mean(runs['new']):#.2g}", f"{np.mean(runs['strange']):#.2g}", exact,
                      _cut(runs["course"][0], say)])  # fmt: skip
    row = [f"{live['loss'][steps // BLOCK - 1]:#.2g}" if steps <= LIVE_STEPS else "" for steps in shown]
    exact = f"{100 * live['exact']:g} %"
    return [*table, [now, *row, f"{live['new']:#.2g}", f"{live['strange']:#.2g}", exact, _cut(live["course"], say)]]


def _cut(text: str, say: Callable[..., str], most: int = 6) -> str:
    words = text.split()
    return " ".join(words[:most]) + (" …" if len(words) > most else "") if words else say("nothing")
