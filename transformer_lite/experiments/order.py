"""Does attention see the order of its input? Section 3.5 of the paper says that order must be supplied; here it is taken away.

A random layer of multi-head attention reads sentences of five tokens four ways: with or without positional encoding, with or
without a causal mask. Two things are measured: what happens when the rows of the input change places, and whether any word of
one sentence gets another output in the sentence with its nouns swapped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations import Projections, causal_mask, embed, multi_head_attention, positional_encoding
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

D_MODEL = 16
N_HEADS = 4
SENTENCE = (2, 0, 3, 1, 4)  # dog ga cat wo chased
SWAPPED = (3, 0, 2, 1, 4)  # cat ga dog wo chased: the same five tokens
N_ORDERS = 20  # random orders of the sentence for each seed
CONDITIONS = ("nothing", "mask", "positions", "both")
_SMALLEST = 1e-17  # where an exact 0 is drawn: a logarithmic axis has no place for it


class Order(NamedTuple):
    """What ``order`` returns: two differences for each of the four conditions, each (n_conditions, n_seeds)."""

    conditions: tuple[str, ...]
    seeds: tuple[int, ...]
    reordered: NDArray[np.floating]  # largest |f(P x) − P f(x)| over the orders P
    sentences: NDArray[np.floating]  # largest |output of a word here − output of the same word in the swapped sentence|


def order(seeds: Sequence[int] = (0, 1, 2, 3, 4), encoding: ArrayLike | None = None) -> Order:
    """Measure whether one layer of multi-head attention tells the orders of five tokens apart.

    Everything is random: the embeddings, the four projections and the orders. In every condition the same layer reads the same
    tokens; only the positional encoding and the causal mask come and go.

    Args:
        seeds: one random layer each; at least one.
        encoding: (n_positions, 16) with at least 5 positions: what is added in the conditions "positions" and "both"; the
            paper's by default.

    Returns:
        ``Order``. A difference of about 1e-16 is rounding: there the layer cannot tell.

    Raises:
        ValueError: no seeds, or an encoding of the wrong shape.

    Source: Vaswani et al. 2017, §3.5.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    given = positional_encoding(len(SENTENCE), D_MODEL) if encoding is None else np.asarray(encoding, dtype=np.float64)
    measured = [[_measure(condition, given, seed) for seed in seeds] for condition in CONDITIONS]
    reordered, sentences = np.moveaxis(np.array(measured), -1, 0)  # (n_conditions, n_seeds, 2) -> two of (n_conditions, n_seeds)
    return Order(CONDITIONS, seeds, reordered, sentences)


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Picture:
    """Run ``order`` and draw it: one panel for each of the two measurements, one dot for each seed, on a logarithmic axis."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = order(seeds)
    names = [message(f"experiments.order.{condition}", lang) for condition in result.conditions]
    smallest, largest = (message(f"experiments.order.{end}", lang) for end in ("smallest", "largest"))
    table = [["", smallest, largest]]
    with figures.style():
        drawn = figures.new_figure(900, 380)
        panels = drawn.subplots(1, 2, sharey=True)
        for axes, kind in zip(panels, ("reordered", "sentences"), strict=True):
            values = getattr(result, kind)
            title = message(f"experiments.order.{kind}", lang)
            _dots(axes, values, figures.COLOURS, figures.MARKERS)
            axes.set_title(title)
            axes.set_xlabel(message("experiments.order.axis", lang))
            for name, row in zip(names, values, strict=True):
                table.append([f"{title}: {name}", power_of_ten(row.min()), power_of_ten(row.max())])
        panels[0].set_yticks(range(len(names)), names)
        panels[0].invert_yaxis()
        title = message("experiments.order.title", lang)
        drawn.suptitle(title, fontsize=12)
        least = [f"{min(row.min() for row in (result.reordered[i], result.sentences[i])):.2f}" for i in (1, 2, 3)]
        note = message(
            "experiments.order.note",
            lang,
            seeds=len(result.seeds),
            orders=N_ORDERS,
            nothing=power_of_ten(max(result.reordered[0].max(), result.sentences[0].max())),
            mask=least[0],
            positions=least[1],
            both=least[2],
        )
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def power_of_ten(value: float) -> str:
    """``4.4e-16`` as ``4 × 10⁻¹⁶``; two plain decimals from 0.01 on, and for 0."""
    if value == 0 or value >= 0.01:
        return f"{value:.2f}"
    digits, exponent = f"{value:.0e}".split("e")
    raised = str(abs(int(exponent))).translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"{digits} × 10⁻{raised}"


def _dots(axes: Axes, values: NDArray[np.floating], colours: Sequence[str], markers: Sequence[str]) -> None:
    for i, row in enumerate(values):
        spread = np.linspace(-0.15, 0.15, len(row)) if len(row) > 1 else np.zeros(1)
        axes.plot(np.maximum(row, _SMALLEST), i + spread, linestyle="", marker=markers[i], markersize=8, color=colours[i])
    axes.set_xscale("log")
    axes.set_xlim(_SMALLEST / 3, 30)
    axes.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1.0])
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _measure(condition: str, encoding: NDArray[np.floating], seed: int) -> tuple[float, float]:
    rng = np.random.default_rng([seed, 6])
    table = rng.standard_normal((len(SENTENCE), D_MODEL)) / np.sqrt(D_MODEL)
    projections = Projections(*(rng.standard_normal((D_MODEL, D_MODEL)) / np.sqrt(D_MODEL) for _ in range(4)))
    added = encoding if condition in ("positions", "both") else np.zeros_like(encoding)
    mask = causal_mask(len(SENTENCE)) if condition in ("mask", "both") else None

    def read(token_ids: ArrayLike) -> NDArray[np.floating]:
        return multi_head_attention(embed(np.asarray(token_ids), table, added), projections, N_HEADS, mask).output

    sentence = np.array(SENTENCE)
    output = read(sentence)  # (5, d_model)
    orders = [rng.permutation(len(sentence)) for _ in range(N_ORDERS)]
    reordered = max(float(np.abs(read(sentence[places]) - output[places]).max()) for places in orders)
    same_words = [SWAPPED.index(token) for token in SENTENCE]  # where each word of the first sentence stands in the other
    swapped = read(SWAPPED)[same_words]
    return reordered, float(np.abs(swapped - output).max())
