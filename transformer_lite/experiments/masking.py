"""Where the mask goes, and with which value, measured: section 3.2.3 of the paper (−∞ in the input of the softmax).

Random sentences go through causal attention in four ways: −∞ before the softmax, weights zeroed after it with and without
dividing by the new sum, and 0 put in place of the hidden scores. Then the tokens that a row must not see are replaced, and a
number says how far that row's output moves. A second measurement finds how far a hidden score may stand above the visible ones
before dividing by the new sum becomes 0 ÷ 0.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import attention_scores, causal_mask, softmax
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

N_TOKENS = 8
D_K = 16
N_SENTENCES = 200
LARGEST_GAP = 1000
PRECISIONS = ("float16", "float32", "float64")

Weighing = Callable[[NDArray[np.floating], NDArray[np.bool_]], NDArray[np.floating]]


def before(scores: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Hidden scores become −∞, then softmax: the paper's way. (..., n_q, n_k) -> (..., n_q, n_k)."""
    return softmax(np.where(mask, scores, np.array(-np.inf, scores.dtype)))


def renormalised(scores: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Softmax over everything, hidden weights zeroed, then each row divided by its sum. (..., n_q, n_k) -> (..., n_q, n_k)."""
    weights = after(scores, mask)
    return weights / weights.sum(axis=-1, keepdims=True)


def after(scores: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Softmax over everything, then hidden weights zeroed and nothing else. (..., n_q, n_k) -> (..., n_q, n_k)."""
    return np.where(mask, softmax(scores), np.array(0.0, scores.dtype))


def zero(scores: NDArray[np.floating], mask: NDArray[np.bool_]) -> NDArray[np.floating]:
    """Hidden scores become 0, then softmax. (..., n_q, n_k) -> (..., n_q, n_k)."""
    return softmax(np.where(mask, scores, np.array(0.0, scores.dtype)))


WAYS: dict[str, Weighing] = {"before": before, "renormalised": renormalised, "after": after, "zero": zero}


class Masking(NamedTuple):
    """What ``masking`` returns. Arrays are (n_seeds, n_ways), in the order of ``ways``."""

    ways: tuple[str, ...]
    seeds: tuple[int, ...]
    row_sum: NDArray[np.floating]  # of the rows that have something to hide, averaged
    hidden: NDArray[np.floating]  # the weight that such a row gives to hidden keys, averaged
    key_leak: NDArray[np.floating]  # how far its output moves when the hidden keys are replaced, relative to its length
    value_leak: NDArray[np.floating]  # the same when the hidden values are replaced
    gap: dict[str, int]  # by floating type: how far above the visible scores a hidden one makes ``renormalised`` NaN


def masking(seeds: Sequence[int] = (0, 1, 2)) -> Masking:
    """Let 200 random sentences of 8 tokens attend causally in each of the four ways, and replace what a row must not see.

    Queries, keys and values are independent with mean 0 and variance 1, d_k = d_v = 16. All ways see the same vectors and the
    same replacements. Row i is looked at when every token behind i is replaced; the last row, which hides nothing, is left out.

    Args:
        seeds: one repetition of the whole experiment each; at least one.

    Returns:
        ``Masking``: four arrays (n_seeds, n_ways), and for each floating type the smallest whole gap between a hidden score
        and the largest visible one at which zeroing and dividing by the new sum gives NaN.

    Raises:
        ValueError: no seeds.

    Source: Vaswani et al. 2017, §3.2.3.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    measured = np.array([[_measure(way, seed) for way in WAYS.values()] for seed in seeds])
    return Masking(tuple(WAYS), seeds, *np.moveaxis(measured, -1, 0), {kind: first_gap(kind) for kind in PRECISIONS})


def first_gap(precision: str) -> int:
    """The smallest whole number by which a hidden score must exceed two equal visible ones for `renormalised` to give NaN.

    Args:
        precision: a NumPy floating type, such as "float32".

    Returns:
        The gap, at most 1000.

    Raises:
        ValueError: no gap up to 1000 gives NaN.
    """
    mask = np.array([[False, True, True]])
    for gap in range(1, LARGEST_GAP + 1):
        scores = np.array([[gap, 0, 0]], dtype=precision)
        with np.errstate(invalid="ignore", under="ignore"):
            if np.isnan(renormalised(scores, mask)).any():
                return gap
    raise ValueError(f"no gap up to {LARGEST_GAP} gives NaN in {precision}.")


def _measure(way: Weighing, seed: int) -> tuple[float, float, float, float]:
    rng = np.random.default_rng(seed)
    queries, keys, values, other_keys, other_values = rng.standard_normal((5, N_SENTENCES, N_TOKENS, D_K))
    mask = causal_mask(N_TOKENS)
    weights = way(attention_scores(queries, keys), mask)
    output = weights @ values  # (n_sentences, n, n) @ (n_sentences, n, d_v) -> (n_sentences, n, d_v)
    key_leak, value_leak = [], []
    for i in range(N_TOKENS - 1):
        later = ~mask[i][:, np.newaxis]  # (n, 1): the tokens that row i must not see
        moved = way(attention_scores(queries, np.where(later, other_keys, keys)), mask) @ values
        key_leak.append(_distance(moved[:, i], output[:, i]))
        value_leak.append(_distance((weights @ np.where(later, other_values, values))[:, i], output[:, i]))
    hides = slice(0, N_TOKENS - 1)
    row_sum = weights.sum(axis=-1)[:, hides].mean()
    hidden = np.where(mask, 0.0, weights).sum(axis=-1)[:, hides].mean()
    return row_sum, hidden, float(np.mean(key_leak)), float(np.mean(value_leak))


def _distance(moved: NDArray[np.floating], still: NDArray[np.floating]) -> NDArray[np.floating]:
    return np.linalg.norm(moved - still, axis=-1) / np.linalg.norm(still, axis=-1)


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2)) -> Picture:
    """Run ``masking`` and draw it: the row sums, the two leaks, and the gap at which dividing by the new sum fails.

    A bar is the mean over the seeds, the thin line on it reaches from the smallest to the largest; the table holds the means.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    result = masking(seeds)

    def say(key: str, **parameters: object) -> str:
        return message(f"experiments.masking.{key}", lang, **parameters)

    names = [say(way) for way in result.ways]
    columns = ("row_sum", "hidden", "key_leak", "value_leak")
    with figures.style():
        drawn = figures.new_figure(900, 640)
        grid = drawn.add_gridspec(2, 2, height_ratios=(1.2, 1))
        sums, leaks, gaps = drawn.add_subplot(grid[0, 0]), drawn.add_subplot(grid[0, 1]), drawn.add_subplot(grid[1, :])
        _bars(sums, names, {say("row_sum"): result.row_sum, say("hidden"): result.hidden})
        _bars(leaks, names, {say("key_leak"): result.key_leak, say("value_leak"): result.value_leak})
        sums.set(title=say("sums_title"), xlabel=say("weight_axis"))
        leaks.set(title=say("leak_title"), xlabel=say("leak_axis"))
        leaks.set_yticklabels([])
        bars = gaps.barh(list(result.gap), list(result.gap.values()), color=figures.COLOURS[0], height=0.6)
        gaps.bar_label(bars, padding=3)
        gaps.invert_yaxis()
        gaps.set(title=say("gap_title"), xlabel=say("gap_axis"))
        title = say("title", sentences=N_SENTENCES, tokens=N_TOKENS)
        drawn.suptitle(title, fontsize=12)
        table = [[say("way"), *(say(column) for column in columns)]]
        for place, name in enumerate(names):
            means = [getattr(result, column)[:, place].mean() for column in columns]
            table.append([name, *(figures.number(mean, 3) for mean in means)])
        table.append([say("precision"), say("gap_axis"), "", "", ""])
        table += [[kind, str(gap), "", "", ""] for kind, gap in result.gap.items()]
        return figures.picture(drawn, title=title, table=table, text=say("note", **_numbers(result)), lang=lang)


def _bars(axes: Axes, names: Sequence[str], measured: dict[str, NDArray[np.floating]]) -> None:
    from transformer_lite.explore import figures

    height = 0.38
    for i, (label, values) in enumerate(measured.items()):
        places, means = np.arange(len(names)) + (i - 0.5) * height, values.mean(axis=0)
        spread = np.abs(np.stack([values.min(axis=0), values.max(axis=0)]) - means)
        axes.barh(places, means, height, label=label, color=figures.COLOURS[i], hatch=("", "///")[i], edgecolor="white")
        axes.errorbar(means, places, xerr=spread, fmt="none", ecolor="black", linewidth=1)
        for place, mean in zip(places, means, strict=True):
            axes.text(mean + 0.02, place, figures.number(mean), va="center", size=9)
    axes.set_yticks(range(len(names)), names)
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.set_xlim(0, 1.25 * max(values.max() for values in measured.values()))
    axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.2), ncols=2, frameon=False)


def _numbers(result: Masking) -> dict[str, str | int]:
    """What the sentence below the picture says."""

    def mean(name: str, way: str) -> str:
        return f"{getattr(result, name)[:, result.ways.index(way)].mean():.2f}"

    return {
        "seeds": len(result.seeds),
        "sum_after": mean("row_sum", "after"),
        "leak_after": mean("key_leak", "after"),
        "hidden_zero": mean("hidden", "zero"),
        "leak_zero": mean("value_leak", "zero"),
        **result.gap,
    }
