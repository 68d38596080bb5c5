"""Traps of attention: AT1 to AT20, and the mistakes in its softmax that belong to the softmax family (SM4, SM7, SM8, SM9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family, Setting
from transformer_lite.traps.weighting import weigh

NEEDS_MASK = ("AT11", "AT12", "AT13", "AT14", "AT15", "AT20")


def scores(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike | None = None, *, similarity: str = "dot", scale: float | str = "√d_k"
) -> tuple[NDArray]:
    """Attention scores with two knobs: how a query is compared with a key, and what the comparison is multiplied by."""
    queries, keys = np.asarray(queries, dtype=np.float64), np.asarray(keys, dtype=np.float64)
    if similarity == "values":  # the roles of keys and values swapped
        keys = np.asarray(values, dtype=np.float64)
    return (_compare(queries, keys, similarity) * factor(scale, queries, keys, values),)


def core(
    queries: ArrayLike,
    keys: ArrayLike,
    values: ArrayLike,
    mask: ArrayLike | None = None,
    *,
    similarity: str = "dot",
    scale: float | str = "√d_k",
    weighting: str = "exponential",
    subtract: str = "maximum",
    along: int | str = -1,
    hide: str = "before",
    constant: float = -np.inf,
    rescale: str = "nothing",
    again: float | str = "√d_k",
    mix: str = "values",
) -> tuple[NDArray, NDArray]:
    """Scaled dot-product attention with knobs. No knob: (output, weights) of the paper.

    Args:
        similarity: "dot", "cosine", "distance", "distance²" (both negated), "+distance", "+distance²", "values".
        scale: what the scores are divided by ("√d_k"), "1", "d_k", or multiplied by ("·√d_k"); a number multiplies.
        weighting, subtract: see `weigh`.
        along: the axis of the softmax, "all" entries, or all of "each matrix".
        hide: how the mask is used: "before" the softmax, "fill" or "add" ``constant`` in the scores, "inverted", "after" the
            softmax without renormalising, only on the "values", or "ignored".
        rescale: what is divided by √d_k after the softmax: "nothing", "weights" or "output".
        mix: what the weights average: "values", "keys", or a softmax of the values.
    """
    queries, keys, values = (np.asarray(array, dtype=np.float64) for array in (queries, keys, values))
    visible = None if mask is None or hide == "ignored" else np.asarray(mask, dtype=bool)
    (compared,) = scores(queries, keys, values, similarity=similarity, scale=scale)
    if visible is not None:
        compared = _hide(compared, visible, hide, constant)
    axis = {"all": None, "each matrix": (-2, -1)}.get(along, along)
    weights = weigh(compared, axis, weighting, subtract)
    if visible is not None and hide in ("after", "after, inverted"):
        weights = weights * (visible if hide == "after" else ~visible)
    divisor = factor(again, queries, keys, values)
    if rescale == "weights":
        weights = weights * divisor
    mixing = weights * visible if visible is not None and hide == "values" else weights
    output, weights = _mix(mixing, weights, compared, keys, values, mix)
    return (output * divisor if rescale == "output" else output), weights


def _compare(queries: NDArray, keys: NDArray, similarity: str) -> NDArray:
    if similarity == "cosine":
        queries = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
        keys = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    dots = queries @ keys.swapaxes(-1, -2)  # (..., n_q, d_k) @ (..., d_k, n_k) -> (..., n_q, n_k)
    if similarity in ("dot", "cosine", "values"):
        return dots
    difference = queries[..., :, np.newaxis, :] - keys[..., np.newaxis, :, :]  # (..., n_q, n_k, d_k)
    squared = (difference**2).sum(axis=-1)
    measured = squared if similarity.endswith("²") else np.sqrt(squared)
    return measured if similarity.startswith("+") else -measured


def factor(scale: float | str, queries: NDArray, keys: NDArray, values: NDArray | None) -> float:
    """The number that the scores are multiplied by."""
    if not isinstance(scale, str):
        return scale
    d_k = queries.shape[-1]
    match scale:
        case "√d_k":
            return 1 / np.sqrt(d_k)
        case "1":
            return 1.0
        case "d_k":
            return 1 / d_k
        case "·√d_k":
            return float(np.sqrt(d_k))
        case "√d_v":
            return 1 / np.sqrt(np.asarray(values).shape[-1])
        case "√n_k":
            return 1 / np.sqrt(keys.shape[-2])
        case "√n_q":
            return 1 / np.sqrt(queries.shape[-2])
        case "√len(keys)":  # the length without a batch axis, the size of the batch with one
            return 1 / np.sqrt(keys.shape[0])
        case "√len(queries)":
            return 1 / np.sqrt(queries.shape[0])
        case "√shape[1]":  # d_k without a batch axis, the length with one
            return 1 / np.sqrt(queries.shape[1])
        case "n_k":
            return 1 / keys.shape[-2]
    raise KeyError(scale)


def _hide(compared: NDArray, visible: NDArray, hide: str, constant: float) -> NDArray:
    match hide:
        case "before":
            return np.where(visible, compared, -np.inf)
        case "inverted":
            return np.where(visible, -np.inf, compared)
        case "fill":
            return np.where(visible, compared, constant)
        case "add":
            return compared + np.where(visible, 0.0, constant)
        case "add, inverted":
            return compared + np.where(visible, constant, 0.0)
    return compared


def _mix(
    mixing: NDArray, weights: NDArray, compared: NDArray, keys: NDArray, values: NDArray, mix: str
) -> tuple[NDArray, NDArray]:
    match mix:
        case "values":
            return mixing @ values, weights
        case "keys":
            return mixing @ keys, weights
        case "queries' keys":
            return mixing @ keys, weights
    what, _, returned = mix.partition("; returns ")
    axis = {"softmax of the values, rows": -1, "softmax of the values, columns": -2, "softmax of the values, all": None}[what]
    shares = weigh(values, axis)
    given = {"scores": compared, "weights": weights, "shares": shares, "both": weights}[returned]
    return (mixing if returned == "both" else compared) @ shares, given


_SOFTMAX_OF_VALUES = tuple(
    {"mix": f"softmax of the values, {axis}; returns {returned}"}
    for axis in ("columns", "rows", "all")
    for returned in ("scores", "weights", "shares", "both")
)
# Scores that never meet a softmax are masked in ways of their own.
_SOFTMAX_OF_VALUES_MASKED = tuple(
    {**mix, "hide": hide, "constant": constant}
    for mix in _SOFTMAX_OF_VALUES
    for hide, constant in (("fill", -1e9), ("add", -1e9), ("fill", 0.0))
)
_DISTANCES = ("distance²", "distance", "+distance²", "+distance")
_SMALL = (-1.0, -2.0, -5.0, -10.0, -50.0, -100.0)

_SCORE_TRAPS: dict[str, tuple[Setting, ...]] = {
    "AT1": ({"scale": "1"},),
    "AT2": ({"scale": "d_k"},),
    "AT3": ({"scale": "·√d_k"},),
    "AT4": ({"scale": "√d_v"},),
    "AT5": tuple({"scale": scale} for scale in ("√n_k", "√n_q", "√len(keys)", "√len(queries)", "n_k", "√shape[1]")),
    "AT17": ({"similarity": "cosine", "scale": "√d_k"}, {"similarity": "cosine", "scale": "1"}),
    "AT19": tuple({"similarity": kind, "scale": scale} for kind in _DISTANCES for scale in ("√d_k", "1", "d_k", 0.5)),
}

family = Family.of(
    core,
    {
        "AT1": _SCORE_TRAPS["AT1"],
        "AT2": _SCORE_TRAPS["AT2"],
        "AT3": _SCORE_TRAPS["AT3"],
        "AT4": _SCORE_TRAPS["AT4"],
        "AT5": _SCORE_TRAPS["AT5"],
        "AT6": (
            {"scale": "1", "rescale": "weights"},
            {"scale": "1", "rescale": "output"},
            {"rescale": "weights"},
            {"rescale": "output"},
        ),
        "AT7": ({"along": -2}, {"along": 0}, {"along": 1}),
        "AT8": ({"along": "all"}, {"along": "each matrix"}),
        "AT9": _SOFTMAX_OF_VALUES + _SOFTMAX_OF_VALUES_MASKED,
        "AT10": ({"mix": "keys"}, {"similarity": "values", "mix": "queries' keys"}),
        "AT11": ({"hide": "after"}, {"hide": "values"}),
        "AT12": ({"hide": "fill", "constant": 0.0},),
        "AT13": (
            *({"hide": "add", "constant": constant} for constant in _SMALL),
            *({"hide": "fill", "constant": constant} for constant in (*_SMALL, 1.0, 1e4, 1e9)),
        ),
        "AT14": ({"hide": "add", "constant": 1e-9}, {"hide": "add", "constant": -1e-9}),
        "AT15": ({"hide": "inverted"}, {"hide": "after, inverted"}),
        "AT16": ({"weighting": "sigmoid"}, {"weighting": "sigmoid, normalised"}),
        "AT17": _SCORE_TRAPS["AT17"],
        "AT18": ({"weighting": "largest only"},),
        "AT19": _SCORE_TRAPS["AT19"],
        "AT20": ({"hide": "ignored"},),
        "SM4": ({"weighting": "proportion"}, {"weighting": "proportion of sizes"}),
        "SM7": ({"weighting": "negative"},),
        "SM8": ({"weighting": "base 2"}, {"weighting": "base 10"}),
        "SM9": ({"weighting": "shifted"},),
        "SM1": ({"subtract": "nothing"}, {"subtract": "logarithm"}, {"subtract": "mean"}),
    },
    alone=(
        {"subtract": "nothing"},
        {"subtract": "logarithm"},
        {"subtract": "mean"},
        {"scale": "√shape[1]"},
        {"along": 1},
        {"hide": "fill", "constant": -100.0},
        {"hide": "add", "constant": -100.0},
        *_SOFTMAX_OF_VALUES_MASKED,
    ),
)

without_mask = Family.of(
    core,
    {key: _SOFTMAX_OF_VALUES if key == "AT9" else trap.settings for key, trap in family.traps.items() if key not in NEEDS_MASK},
    family.alone,
)
scores_only = Family.of(scores, {key: settings for key, settings in _SCORE_TRAPS.items() if key != "AT4"})
