"""Traps of attention with projections: MH1 to MH13 (heads), CA1 to CA7 (encoder and decoder), and padding, PM1 to PM7.

The scores, the softmax and the mask have the knobs of `attention.core`; what is added here is where queries, keys and values
come from, how they are cut into heads, and how the heads are put together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps import attention
from transformer_lite.traps.knobs import Family, Setting

# Splitting and merging ------------------------------------------------------------------------------------------------


def split_core(x: ArrayLike, n_heads: int, *, split: str = "blocks") -> tuple[NDArray]:
    """Cut features into heads, with one knob: how.

    Args:
        split: "blocks" (right); "reshape" straight to the right shape; "not swapped" (tokens before heads); "sequence" (heads
            get tokens rather than features); "interleaved" features; "one head" of everything; "unsplit"; "whole" (every head
            gets all features).
    """
    x = np.asarray(x, dtype=np.float64)
    lead, (n, d_model) = x.shape[:-2], x.shape[-2:]
    width = d_model // n_heads
    match split:
        case "blocks":
            return (x.reshape(*lead, n, n_heads, width).swapaxes(-3, -2),)
        case "reshape":
            return (x.reshape(*lead, n_heads, n, width),)
        case "reshape, no batch":
            return (x.reshape(n_heads, n, width),)
        case "not swapped":
            return (x.reshape(*lead, n, n_heads, width),)
        case "sequence":
            return (x.reshape(*lead, n_heads, n // n_heads, d_model),)
        case "interleaved":
            return (np.moveaxis(x.reshape(*lead, n, width, n_heads), -1, -3),)
        case "one head":
            return (x[..., np.newaxis, :, :],)
        case "unsplit":
            return (x,)
        case "whole":
            return (np.stack([x] * n_heads, axis=-3),)
    raise KeyError(split)


def merge_core(x: ArrayLike, *, together: str = "side by side") -> tuple[NDArray]:
    """Put heads together, with one knob: "side by side" (right), "reshape" only, "interleaved", their "sum" or "mean"."""
    x = np.asarray(x, dtype=np.float64)
    lead, (n_heads, n, width) = x.shape[:-3], x.shape[-3:]
    match together:
        case "side by side":
            return (x.swapaxes(-3, -2).reshape(*lead, n, n_heads * width),)
        case "reshape":
            return (x.reshape(*lead, n, n_heads * width),)
        case "interleaved":
            return (np.moveaxis(x, -3, -1).reshape(*lead, n, n_heads * width),)
        case "sum":
            return (x.sum(axis=-3),)
        case "mean":
            return (x.mean(axis=-3),)
    raise KeyError(together)


split_family = Family.of(
    split_core,
    {
        "MH5": ({"split": "reshape"}, {"split": "not swapped"}, {"split": "sequence"}),
        "MH11": ({"split": "interleaved"},),
        "MH12": ({"split": "one head"}, {"split": "unsplit"}, {"split": "whole"}),
    },
)
merge_family = Family.of(
    merge_core,
    {
        "MH1": ({"together": "sum"},),
        "MH2": ({"together": "mean"},),
        "MH6": ({"together": "reshape"},),
        "MH11": ({"together": "interleaved"},),
    },
)


# One head -------------------------------------------------------------------------------------------------------------


def self_core(
    x: ArrayLike, projections: tuple[ArrayLike, ...], mask: ArrayLike | None = None, **knobs: Any
) -> tuple[NDArray, ...]:
    """Self-attention with the knobs of `_attend`; ``hide`` may also be "zeroed, …": the tokens instead of the scores."""
    x = np.asarray(x, dtype=np.float64)
    hide = knobs.get("hide", "before")
    if hide.startswith("zeroed"):
        knobs = {**knobs, "hide": "ignored"}
        if mask is not None:
            mask = np.asarray(mask, dtype=bool)
            seen = {
                "zeroed, seen by nobody": mask.any(axis=-2),
                "zeroed, first row": mask[..., 0, :],
                "zeroed, last row": mask[..., -1, :],
                "zeroed, not seen by all": mask.all(axis=-2),
            }[hide]
            x = x * seen[..., np.newaxis]
    return _attend(x, x, projections, mask, **knobs)


def cross_core(
    y: ArrayLike,
    memory: ArrayLike,
    projections: tuple[ArrayLike, ...],
    mask: ArrayLike | None = None,
    *,
    wiring: str = "y asks memory",
    states: str = "all",
    future: str = "visible",
    **knobs: Any,
) -> tuple[NDArray, ...]:
    """Cross-attention with the knobs of `_attend` and three of its own.

    Args:
        wiring: "y asks memory" (right), "memory asks y" (also with "mask turned", so that it fits), "memory alone", "y alone".
        states: of the encoder: "all", or only the "last" or the "mean"; "…, repeated" as often as there are states,
            "…, mask cut" to the one that is left; "last, by mask" instead of the mask given.
        future: "visible"; "hidden" by a causal mask from the top left, or "hidden, bottom right".
    """
    y, memory = np.asarray(y, dtype=np.float64), np.asarray(memory, dtype=np.float64)
    mask = None if mask is None else np.asarray(mask, dtype=bool)
    match wiring:
        case "memory asks y":
            y, memory = memory, y
        case "memory asks y, mask turned":
            y, memory = memory, y
            mask = None if mask is None else mask.swapaxes(-1, -2)
        case "memory alone":
            y = memory
        case "y alone":
            memory = y
    n_q, n_k = y.shape[-2], memory.shape[-2]
    which, _, how = states.partition(", ")
    if how == "by mask":
        mask = np.arange(n_k) == n_k - 1
        mask = mask[np.newaxis, :]
    elif which != "all":
        memory = memory[..., -1:, :] if which == "last" else memory.mean(axis=-2, keepdims=True)
        if how == "repeated":
            memory = np.repeat(memory, n_k, axis=-2)
        elif how == "mask cut" and mask is not None:
            mask = mask[..., -1:]
    if future != "visible":
        causal = np.tri(n_q, n_k, k=n_k - n_q if future == "hidden, bottom right" else 0, dtype=bool)
        mask = causal if mask is None or future == "hidden, nothing else" else mask & causal
    return _attend(y, memory, projections, mask, **knobs)


def _attend(
    y: NDArray,
    memory: NDArray,
    projections: tuple[ArrayLike, ...],
    mask: ArrayLike | None,
    *,
    queries: str = "w_q",
    keys: str = "w_k",
    values: str = "w_v",
    last: str = "w_o",
    empty: str = "NaN",
    **knobs: Any,
) -> tuple[NDArray, ...]:
    """One head: which matrix projects what ("nothing": none does), what comes last, and the knobs of `attention.core`.

    Args:
        last: "w_o", "nothing", or its transpose "w_oᵀ".
        empty: what a row gives that hides everything: "NaN" or "zeros".
    """
    q, k, v = _project(y, memory, projections, queries, keys, values)
    heads, weights = attention.core(q, k, v, mask, **knobs)
    if empty == "zeros" and knobs.get("hide") != "values":
        weights = np.nan_to_num(weights)
        heads = weights @ v
    return _finish(heads, projections, last), weights


def _project(y: NDArray, memory: NDArray, projections: tuple[ArrayLike, ...], *names: str) -> tuple[NDArray, NDArray, NDArray]:
    matrices = dict(zip(("w_q", "w_k", "w_v"), projections, strict=False))
    projected = [
        source if name == "nothing" else source @ matrices[name] for source, name in zip((y, memory, memory), names, strict=True)
    ]
    return projected[0], projected[1], projected[2]


def _finish(heads: NDArray, projections: tuple[ArrayLike, ...], last: str, rows: int | None = None) -> NDArray:
    """What comes after the heads: W^O, or its first ``rows`` where the heads were added."""
    w_o = np.asarray(projections[3])
    match last:
        case "w_o":
            return heads @ w_o[:rows]
        case "w_oᵀ":
            return heads @ w_o.T[:rows]
        case "nothing":
            return heads
    raise KeyError(last)


_PROJECTIONS: dict[str, tuple[Setting, ...]] = {
    "MH3": ({"last": "nothing"},),
    "MH4": ({"queries": "nothing", "keys": "nothing", "values": "nothing"},),
    "MH9": ({"keys": "w_q"}, {"queries": "w_k"}, {"keys": "w_q", "values": "w_q"}),
    "MH13": ({"last": "w_oᵀ"},),
}
_SCORES: dict[str, tuple[Setting, ...]] = {
    "AT1": ({"scale": "1"},),
    "AT2": ({"scale": "d_k"},),
    "AT7": ({"along": -2},),
}
_MASKS: dict[str, tuple[Setting, ...]] = {
    "AT11": ({"hide": "after"}, {"hide": "values"}),
    "AT12": ({"hide": "fill", "constant": 0.0},),
    "AT15": ({"hide": "inverted"}, {"hide": "after, inverted"}),
    "AT20": ({"hide": "ignored"},),
}
_OVERFLOWS = ({"subtract": "nothing"}, {"subtract": "logarithm"}, {"subtract": "mean"})

self_family = Family.of(
    self_core,
    {
        **_PROJECTIONS,
        **_SCORES,
        # A column of padding is hidden from everyone: what a softmax along it gives depends on how it was hidden.
        "AT7": (
            {"along": -2},
            {"along": -2, "empty": "zeros"},
            {"along": -2, "hide": "fill", "constant": -1e9},
            {"along": -2, "hide": "add", "constant": -1e9},
        ),
        "AT8": ({"along": "all"}, {"along": "each matrix"}),
        **_MASKS,
        "PM5": (
            {"hide": "zeroed, seen by nobody"},
            {"hide": "zeroed, first row"},
            {"hide": "zeroed, last row"},
            {"hide": "zeroed, not seen by all"},
        ),
        "SM1": _OVERFLOWS,
    },
    alone=_OVERFLOWS,
)

cross_family = Family.of(
    cross_core,
    {
        # The mask does not fit the wrong way round: turned or left out, it is part of the same mistake.
        "CA1": (
            {"wiring": "memory asks y"},
            {"wiring": "memory asks y, mask turned"},
            {"wiring": "memory asks y", "hide": "ignored"},
            {"wiring": "memory alone"},
        ),
        "CA2": ({"wiring": "y alone"}, {"wiring": "y alone", "hide": "ignored"}),
        "CA3": (
            {"future": "hidden"},
            {"future": "hidden, bottom right"},
            {"future": "hidden, nothing else"},
            {"future": "hidden", "empty": "zeros"},
        ),
        "CA6": (
            {"states": "last"},
            {"states": "last, repeated"},
            {"states": "last, by mask"},
            {"states": "last, mask cut"},
            {"states": "last, mask cut", "empty": "zeros"},
            {"states": "last", "hide": "ignored"},
            {"states": "last, repeated", "hide": "ignored"},
        ),
        "CA7": (
            {"states": "mean"},
            {"states": "mean, repeated"},
            {"states": "mean", "hide": "ignored"},
            {"states": "mean, repeated", "hide": "ignored"},
        ),
        **_PROJECTIONS,
        **_SCORES,
        **_MASKS,
        "SM1": _OVERFLOWS,
    },
    alone=_OVERFLOWS,
)


# Several heads --------------------------------------------------------------------------------------------------------


def multi_core(
    x: ArrayLike,
    projections: tuple[ArrayLike, ...],
    n_heads: int,
    mask: ArrayLike | None = None,
    memory: ArrayLike | None = None,
    *,
    queries: str = "w_q",
    keys: str = "w_k",
    values: str = "w_v",
    source: str = "memory",
    split: str = "blocks",
    shared: str = "nothing",
    together: str = "side by side",
    last: str = "w_o",
    empty: str = "NaN",
    **knobs: Any,
) -> tuple[NDArray, NDArray]:
    """Multi-head attention with the knobs of `_attend`, `split_core`, `merge_core` and two of its own.

    Args:
        source: of keys and values: "memory" where there is one, or always "x".
        shared: "nothing"; "head 0": every head is the first; "weights of head 0": only its weights.
    """
    x = np.asarray(x, dtype=np.float64)
    memory = x if memory is None or source == "x" else np.asarray(memory, dtype=np.float64)
    d_model = x.shape[-1]
    q, k, v = (split_core(one, n_heads, split=split)[0] for one in _project(x, memory, projections, queries, keys, values))
    if shared != "nothing":
        if split == "unsplit":
            raise ValueError("without heads there is none to share")
        first = slice(0, 1)
        q, k = (np.repeat(one[..., first, :, :], n_heads, axis=-3) for one in (q, k))
        v = np.repeat(v[..., first, :, :], n_heads, axis=-3) if shared == "head 0" else v
    if mask is not None:
        mask = np.asarray(mask, dtype=bool)
        if mask.ndim > 2 and split != "unsplit":
            mask = mask[..., np.newaxis, :, :]
    scale = knobs.pop("scale", "√d_k")
    scale = {"√d_model": d_model**-0.5, "√(d_model/h)": (d_model / n_heads) ** -0.5}.get(scale, scale)
    heads, weights = attention.core(q, k, v, mask, scale=scale, **knobs)
    if empty == "zeros" and knobs.get("hide") != "values":
        weights = np.nan_to_num(weights)
        heads = weights @ v
    if split == "unsplit":
        return _finish(heads, projections, last), weights
    if split == "not swapped":
        merged = heads.reshape(*heads.shape[:-2], heads.shape[-2] * heads.shape[-1])
    else:
        (merged,) = merge_core(heads, together=together)
    return _finish(merged, projections, last, merged.shape[-1] if together in ("sum", "mean") else None), weights


multi_family = Family.of(
    multi_core,
    {
        "MH1": ({"together": "sum"},),
        "MH2": ({"together": "mean"},),
        "MH3": _PROJECTIONS["MH3"],
        "MH4": _PROJECTIONS["MH4"],
        "MH5": ({"split": "reshape"}, {"split": "not swapped"}),
        "MH6": ({"together": "reshape"},),
        "MH7": ({"scale": "√d_model"},),
        "MH8": ({"shared": "head 0"}, {"shared": "weights of head 0"}),
        "MH9": _PROJECTIONS["MH9"],
        "MH10": (
            {"along": -3},
            {"along": -3, "empty": "zeros"},
            {"along": -3, "hide": "fill", "constant": -1e9},
            {"along": -3, "hide": "add", "constant": -1e9},
        ),
        "MH11": ({"split": "interleaved"}, {"split": "interleaved", "together": "interleaved"}),
        "MH12": (
            {"split": "one head"},
            {"split": "unsplit"},
            {"split": "one head", "scale": "√(d_model/h)"},
            {"split": "unsplit", "scale": "√(d_model/h)"},
        ),
        "MH13": _PROJECTIONS["MH13"],
        **_SCORES,
        **_MASKS,
        "CA2": ({"source": "x"},),
        "SM1": _OVERFLOWS,
    },
    alone=_OVERFLOWS,
)


# The mask of padding --------------------------------------------------------------------------------------------------


def padding_core(
    token_ids: ArrayLike, pad_id: int, *, hides: str = "padding", lies: str = "along the keys"
) -> tuple[NDArray[np.bool_]]:
    """The padding mask with two knobs: what it hides, and along which axis it lies.

    Args:
        hides: "padding" (right), "nothing", "the real tokens", "the last position", "the last position if padding", "one too
            many" (the last real token as well), "one too many, by length", "the future", "the future, per sentence".
        lies: "along the keys" (..., 1, n_k), "along the queries" (..., n_k, 1), "along the queries, square" (..., n_k, n_k).
    """
    ids = np.asarray(token_ids)
    n = ids.shape[-1]
    real = ids != pad_id
    at = np.arange(n)
    match hides:
        case "nothing":
            real = np.ones_like(real)
        case "the real tokens":
            real = ~real
        case "the last position":
            real = np.broadcast_to(at < n - 1, real.shape)
        case "the last position if padding":
            real = (at < n - 1) | real
        case "one too many":
            real = real & np.concatenate([real[..., 1:], np.zeros_like(real[..., :1])], axis=-1)
        case "one too many, by length":
            real = at < real.sum(axis=-1, keepdims=True) - 1
        case "one too many, if padded":
            real = real & np.concatenate([real[..., 1:], np.ones_like(real[..., :1])], axis=-1)
        case "the future":
            return (np.tri(n, dtype=bool),)
        case "the future, per sentence":
            return (np.broadcast_to(np.tri(n, dtype=bool), (*ids.shape, n)),)
    match lies:
        case "along the keys":
            return (real[..., np.newaxis, :],)
        case "along the queries":
            return (real[..., :, np.newaxis],)
        case "along the queries, square":
            return (np.repeat(real[..., :, np.newaxis], n, axis=-1),)
    raise KeyError(lies)


padding_family = Family.of(
    padding_core,
    {
        "PM1": ({"hides": "nothing"},),
        "PM2": ({"lies": "along the queries"}, {"lies": "along the queries, square"}),
        "PM3": ({"hides": "the real tokens"},),
        "PM4": ({"hides": "the last position"}, {"hides": "the last position if padding"}),
        "PM6": ({"hides": "the future"}, {"hides": "the future, per sentence"}),
        "PM7": ({"hides": "one too many"}, {"hides": "one too many, by length"}, {"hides": "one too many, if padded"}),
    },
)
