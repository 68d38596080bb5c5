"""Attention as a soft look-up, and why W^Q and W^K are two matrices: section 3.2 of the paper, with random numbers.

A dictionary returns the one entry whose heading fits. Attention mixes all entries; here the query is made longer and longer,
and the distance of its output to that one entry is measured. Then the queries and keys of a random sentence are made in three
ways: with two matrices, with one matrix for both, and with none. Measured is whether i → j and j → i get the same score.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations import attention_scores, scaled_dot_product_attention, softmax
from transformer_lite.explore.figures import Picture
from transformer_lite.language import current, message

N_ENTRIES = 8  # keys, each with its value; also the tokens of the sentence
SIZE = 16  # d_k = d_v = d_model
FACTORS = tuple(2.0**power for power in range(-6, 9))  # what the query is multiplied by: 1/64 to 256
PROJECTIONS = ("two", "one", "none")  # W^Q and W^K different; the same; queries and keys both the input itself


class LookUp(NamedTuple):
    """What ``look_up`` returns. Distances are relative: 1 is the distance from the mean of the values to the entry looked up."""

    seeds: tuple[int, ...]
    factors: NDArray[np.floating]  # (n_factors,)
    to_entry: NDArray[np.floating]  # (n_seeds, n_factors): from the output to the value whose key fits best
    to_mean: NDArray[np.floating]  # (n_seeds, n_factors): from the output to the mean of all values
    projections: tuple[str, ...]
    asymmetry: NDArray[np.floating]  # (3, n_seeds): ‖S − Sᵀ‖ / ‖S‖ of the scores S
    weights_asymmetry: NDArray[np.floating]  # (3, n_seeds): the same of the weights softmax(S)
    self_first: NDArray[np.floating]  # (3, n_seeds): the share of tokens that give themselves the largest weight


def look_up(seeds: Sequence[int] = (0, 1, 2, 3, 4), factors: ArrayLike = FACTORS) -> LookUp:
    """Measure how close attention comes to a look-up as its query grows, and how symmetric scores are without two matrices.

    All vectors have independent components of variance 1, and the matrices keep that variance.

    Args:
        seeds: one run each; at least one.
        factors: (n_factors,) positive numbers that the query is multiplied by; its direction stays.

    Returns:
        ``LookUp``.

    Raises:
        ValueError: no seeds, or factors that are not positive.

    Source: Vaswani et al. 2017, §3.2 (an output is a weighted sum of the values) and §3.2.2 (W^Q and W^K).
    """
    seeds = tuple(int(seed) for seed in seeds)
    factors = np.atleast_1d(np.asarray(factors, dtype=np.float64))
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    if factors.ndim != 1 or not (factors > 0).all():
        raise ValueError(f"factors must be positive numbers of shape (n_factors,); got {factors!r}.")
    to_entry, to_mean = np.array([_distances(seed, factors) for seed in seeds]).swapaxes(0, 1)  # two of (n_seeds, n_factors)
    scores = np.array([[_scores(how, seed) for seed in seeds] for how in PROJECTIONS])  # (3, n_seeds, n, n)
    weights = softmax(scores)
    self_first = (weights.argmax(axis=-1) == np.arange(N_ENTRIES)).mean(axis=-1)
    return LookUp(seeds, factors, to_entry, to_mean, PROJECTIONS, _asymmetry(scores), _asymmetry(weights), self_first)


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Picture:
    """Run ``look_up`` and draw it: on the left the distances over the factor, on the right one dot for each run and way."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = look_up(seeds)

    def say(key: str, **numbers: object) -> str:
        return message(f"experiments.look_up.{key}", lang, **numbers)

    names = [say(how) for how in result.projections]
    distances = {say("to_entry"): result.to_entry.mean(axis=0), say("to_mean"): result.to_mean.mean(axis=0)}
    table = [[say("factor"), *distances, ""]]
    table += [
        [_fraction(factor), *(figures.number(value) for value in values), ""]
        for factor, *values in zip(result.factors, *distances.values(), strict=True)
    ]
    columns = ("asymmetry", "weights_asymmetry", "self_first")
    table.append([say("projections"), *(say(column) for column in columns)])
    for i, name in enumerate(names):
        table.append([name, *(figures.number(getattr(result, column)[i].mean(), 3) for column in columns)])
    with figures.style():
        drawn = figures.new_figure(900, 400)
        left, right = drawn.subplots(1, 2, width_ratios=(3, 2))
        curves = figures.Lines(result.factors, distances, say("left"), say("factor"), say("distance"), log_x=True)
        figures.draw_lines(left, curves, None)
        left.legend(loc="center left", fontsize=9)
        left.xaxis.set_major_formatter(lambda value, _: _fraction(value))
        left.set_xticks(result.factors[::2])
        for i, row in enumerate(result.asymmetry):
            spread = np.linspace(-0.15, 0.15, len(row)) if len(row) > 1 else np.zeros(1)
            right.plot(row, i + spread, linestyle="", marker=figures.MARKERS[i], markersize=8, color=figures.COLOURS[i])
        right.set_yticks(range(len(names)), names)
        right.invert_yaxis()
        right.set_xlim(-0.1, 2.0)
        right.set_title(say("right"))
        right.set_xlabel(say("asymmetry"))
        right.grid(True, axis="x", color="#dddddd", linewidth=0.8)
        right.set_axisbelow(True)
        drawn.suptitle(say("title"), fontsize=12)
        note = say(
            "note",
            seeds=len(result.seeds),
            entries=N_ENTRIES,
            small=figures.number(distances[say("to_mean")][0]),
            plain=figures.number(distances[say("to_entry")][list(result.factors).index(1.0)]),
            large=figures.number(distances[say("to_entry")][-1]),
            least=figures.number(result.asymmetry[0].min()),
            tied=figures.number(result.asymmetry[1].max()),
        )
        return figures.picture(drawn, title=say("title"), table=table, text=note, lang=lang)


def _distances(seed: int, factors: NDArray[np.floating]) -> tuple[NDArray[np.floating], NDArray[np.floating]]:
    rng = np.random.default_rng([seed, 3])
    query = rng.standard_normal(SIZE)
    keys, values = rng.standard_normal((2, N_ENTRIES, SIZE))
    entry, mean = values[(keys @ query).argmax()], values.mean(axis=0)
    queries = factors[:, np.newaxis] * query  # (n_factors, d_k)
    output = scaled_dot_product_attention(queries, keys, values).output  # (n_factors, d_v)
    unit = np.linalg.norm(mean - entry)
    return tuple(np.linalg.norm(output - place, axis=-1) / unit for place in (entry, mean))


def _scores(how: str, seed: int) -> NDArray[np.floating]:
    rng = np.random.default_rng([seed, 33])
    x = rng.standard_normal((N_ENTRIES, SIZE))
    w_q, w_k = rng.standard_normal((2, SIZE, SIZE)) / np.sqrt(SIZE)
    if how == "two":
        return attention_scores(x @ w_q, x @ w_k)
    return attention_scores(x @ w_q, x @ w_q) if how == "one" else attention_scores(x, x)


def _asymmetry(matrices: NDArray[np.floating]) -> NDArray[np.floating]:
    """‖M − Mᵀ‖ / ‖M‖ (Frobenius) of the last two axes: 0 for a symmetric matrix."""
    difference = matrices - matrices.swapaxes(-1, -2)
    return np.linalg.norm(difference, axis=(-2, -1)) / np.linalg.norm(matrices, axis=(-2, -1))


def _fraction(value: float) -> str:
    return f"1/{round(1 / value)}" if value < 1 else f"{value:g}"
