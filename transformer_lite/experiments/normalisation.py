"""Does a sentence mind the company it keeps? LayerNorm (section 3.1 of the paper) against BatchNorm, while the batch changes.

The first sentence never changes. Around it the other sentences are replaced, padding is added, the batch shrinks to a single
token, and training mode gives way to use; what is measured is how far the normalised numbers of the first sentence move.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import layer_norm
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

BATCH_SIZES = (2, 4, 8, 16, 32, 64)
PADDING = (0, 5, 10, 15)  # PAD tokens added to each sentence
N_TOKENS = 5
D_MODEL = 16
PADDED_BATCH = 4  # sentences in the batch that gets padding
N_TRAINING_BATCHES = 200
MOMENTUM = 0.1
EPSILON = 1e-5


class Normalisation(NamedTuple):
    """What ``normalisation`` returns. A change is the root mean square over the numbers of sentence 1, which vary by about 1."""

    batch_sizes: NDArray[np.integer]
    padding: NDArray[np.integer]
    seeds: tuple[int, ...]
    batch_replaced: NDArray[np.floating]  # (n_seeds, n_sizes): BatchNorm, the other sentences replaced
    layer_replaced: NDArray[np.floating]  # (n_seeds, n_sizes): LayerNorm, the same
    batch_modes: NDArray[np.floating]  # (n_seeds, n_sizes): BatchNorm, training against use
    layer_modes: NDArray[np.floating]  # (n_seeds, n_sizes): LayerNorm, the same
    batch_padded: NDArray[np.floating]  # (n_seeds, n_paddings): BatchNorm, PAD added to every sentence
    layer_padded: NDArray[np.floating]  # (n_seeds, n_paddings): LayerNorm, the same
    batch_alone: NDArray[np.floating]  # (n_seeds,): size of BatchNorm's output for a batch of one token
    layer_alone: NDArray[np.floating]  # (n_seeds,): size of LayerNorm's


class BatchNorm:
    """Normalise each feature over batch and positions, and keep running averages for use, as ``nn.BatchNorm1d`` does.

    Gain 1 and bias 0. Source: Ioffe and Szegedy 2015, algorithms 1 and 2.
    """

    def __init__(self, d_model: int):
        self.mean = np.zeros(d_model)
        self.variance = np.ones(d_model)

    def train(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """(B, n, d_model) -> the same shape, with the mean and variance of this batch, which also enter the averages."""
        rows = x.reshape(-1, x.shape[-1])  # (B, n, d_model) -> (B·n, d_model)
        mean, variance = rows.mean(axis=0), rows.var(axis=0)
        if len(rows) > 1:
            unbiased = variance * len(rows) / (len(rows) - 1)
            self.mean = (1 - MOMENTUM) * self.mean + MOMENTUM * mean
            self.variance = (1 - MOMENTUM) * self.variance + MOMENTUM * unbiased
        return (x - mean) / np.sqrt(variance + EPSILON)

    def use(self, x: NDArray[np.floating]) -> NDArray[np.floating]:
        """(B, n, d_model) -> the same shape, with the averages that training has left."""
        return (x - self.mean) / np.sqrt(self.variance + EPSILON)


def normalisation(seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Normalisation:
    """Change everything around one sentence and measure how far its normalised numbers move.

    The tokens are random vectors with independent components of mean 0 and variance 1.

    Args:
        seeds: one repetition of the whole experiment each; at least one.

    Returns:
        ``Normalisation``.

    Raises:
        ValueError: no seeds.

    Source: Ba et al. 2016, §3 and §5; Vaswani et al. 2017, §3.1.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    by_size = np.array([[_company(size, seed) for size in BATCH_SIZES] for seed in seeds])  # (n_seeds, n_sizes, 4)
    by_padding = np.array([_padded(seed) for seed in seeds])  # (n_seeds, n_paddings, 2)
    alone = np.array([_alone(seed) for seed in seeds])  # (n_seeds, 2)
    return Normalisation(
        np.array(BATCH_SIZES),
        np.array(PADDING),
        seeds,
        *np.moveaxis(by_size, -1, 0),
        *np.moveaxis(by_padding, -1, 0),
        *np.moveaxis(alone, -1, 0),
    )


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Picture:
    """Run ``normalisation`` and draw it: the changes against the size of the batch, and against the padding.

    A line is the mean over the seeds, the band around it reaches from the smallest to the largest; the table holds the means.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    result = normalisation(seeds)

    def say(key: str, **parameters: object) -> str:
        return message(f"experiments.normalisation.{key}", lang, **parameters)

    panels = (
        ("company", result.batch_sizes, ("batch_replaced", "layer_replaced", "batch_modes", "layer_modes"), True),
        ("padding", result.padding, ("batch_padded", "layer_padded"), False),
    )
    width = 1 + max(len(BATCH_SIZES), len(PADDING))
    table = []
    with figures.style():
        drawn = figures.new_figure(900, 430)
        for axes, (panel, x, names, log_x) in zip(drawn.subplots(1, 2), panels, strict=True):
            means = {say(name): getattr(result, name).mean(axis=0) for name in names}
            lines = figures.Lines(x, means, say(panel), say(f"{panel}_axis"), say("change"), log_x=log_x)
            figures.draw_lines(axes, lines, legend="upper right" if log_x else "upper left")
            axes.set_xticks(x)
            axes.set_ylim(-0.05, 1.35)
            _band(axes, x, [getattr(result, name) for name in names], figures.COLOURS)
            rows = [[say(f"{panel}_axis"), *(str(each) for each in x)]]
            rows += [[name, *(figures.number(mean, 3) for mean in row)] for name, row in means.items()]
            table += [row + [""] * (width - len(row)) for row in rows]
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        note = say(
            "note",
            seeds=len(result.seeds),
            small=int(result.batch_sizes[0]),
            large=int(result.batch_sizes[-1]),
            replaced_small=f"{result.batch_replaced[:, 0].mean():.2f}",
            replaced_large=f"{result.batch_replaced[:, -1].mean():.2f}",
            modes_small=f"{result.batch_modes[:, 0].mean():.2f}",
            pad=int(result.padding[-1]),
            padded=f"{result.batch_padded[:, -1].mean():.2f}",
            layer=f"{max(result.layer_replaced.max(), result.layer_modes.max(), result.layer_padded.max()):.2f}",
            batch_alone=f"{result.batch_alone.max():.2f}",
            layer_alone=f"{result.layer_alone.mean():.2f}",
        )
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _band(axes: Axes, x: NDArray[np.integer], repetitions: list[NDArray[np.floating]], colours: Sequence[str]) -> None:
    for values, colour in zip(repetitions, colours, strict=False):
        axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0)


def _layer_norm(x: NDArray[np.floating]) -> NDArray[np.floating]:
    return layer_norm(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]), EPSILON)


def _apart(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    return float(np.sqrt(((one - other) ** 2).mean()))


def _company(size: int, seed: int) -> tuple[float, float, float, float]:
    """BatchNorm and LayerNorm: the other sentences replaced, then training against use (the first four measurements)."""
    rng = np.random.default_rng([seed, size])
    sentence = rng.standard_normal((1, N_TOKENS, D_MODEL))
    here, there = (np.concatenate([sentence, rng.standard_normal((size - 1, N_TOKENS, D_MODEL))]) for _ in range(2))
    batch_norm = BatchNorm(D_MODEL)
    for _ in range(N_TRAINING_BATCHES):
        batch_norm.train(rng.standard_normal((size, N_TOKENS, D_MODEL)))
    used = batch_norm.use(here)[0]
    batch = [batch_norm.train(x)[0] for x in (here, there)]
    layer = [_layer_norm(x)[0] for x in (here, there)]
    # LayerNorm stores nothing, so that in use it is the same function; there the sentence may also come alone.
    return _apart(*batch), _apart(*layer), _apart(batch[0], used), _apart(layer[0], _layer_norm(sentence)[0])


def _padded(seed: int) -> list[tuple[float, float]]:
    """BatchNorm and LayerNorm: the real tokens of sentence 1 with PAD behind every sentence, against none."""
    rng = np.random.default_rng([seed, 0])
    x, pad = rng.standard_normal((PADDED_BATCH, N_TOKENS, D_MODEL)), rng.standard_normal(D_MODEL)
    plain = BatchNorm(D_MODEL).train(x)[0], _layer_norm(x)[0]
    changes = []
    for count in PADDING:
        longer = np.concatenate([x, np.broadcast_to(pad, (PADDED_BATCH, count, D_MODEL))], axis=1)
        padded = BatchNorm(D_MODEL).train(longer)[0, :N_TOKENS], _layer_norm(longer)[0, :N_TOKENS]
        changes.append((_apart(plain[0], padded[0]), _apart(plain[1], padded[1])))
    return changes


def _alone(seed: int) -> tuple[float, float]:
    """The size of what BatchNorm, in training mode, and LayerNorm make of a batch of one sentence of one token."""
    token = np.random.default_rng([seed, 1]).standard_normal((1, 1, D_MODEL))
    return tuple(float(np.sqrt((norm(token) ** 2).mean())) for norm in (BatchNorm(D_MODEL).train, _layer_norm))  # type: ignore[return-value]
