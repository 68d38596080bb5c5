"""Traps of the feed-forward network (FF1 to FF9), of Add & Norm (AN1 to AN10) and of whole layers (BL1 to BL9).

Layers also know mistakes of other families, made when the parts are put together: no residual or no norm (AN1, AN2), a mask or
n_heads not handed on (AT20, MH12), an encoder that hides the future (MC22), a decoder without its memory (CA2).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.heads import multi_head_attention
from transformer_lite.equations.layers import DecoderParameters, EncoderParameters
from transformer_lite.equations.masks import causal_mask
from transformer_lite.equations.sublayers import feed_forward, layer_norm
from transformer_lite.traps.knobs import Family, Setting

# The feed-forward network ---------------------------------------------------------------------------------------------


def feed_forward_core(
    x: ArrayLike,
    w1: ArrayLike,
    b1: ArrayLike,
    w2: ArrayLike,
    b2: ArrayLike,
    *,
    activation: str = "relu",
    place: str = "between",
    biases: str = "both",
    mixes: str = "nothing",
    weights: str = "the same everywhere",
) -> tuple[NDArray]:
    """The feed-forward network with knobs. No knob: max(0, x W₁ + b₁) W₂ + b₂ at every position.

    Args:
        activation: "relu", "nothing", "gelu", "gelu, tanh", "gelu, sigmoid", "sigmoid", "min".
        place: where it stands: "between", "end", "between and end", "first" or "first and between".
        biases: "both", "none", "only the second", "only the first".
        mixes: what positions share: "nothing"; or "mean", "sum", "largest", "pooled", "mean added" or "one before", and where:
            "of x", "inside" or "at the end".
        weights: "the same everywhere", or matrices that depend on the position: "turned", "turned, both", "scaled".
    """
    x, w1, b1, w2, b2 = (np.asarray(array, dtype=np.float64) for array in (x, w1, b1, w2, b2))
    active = _ACTIVATIONS[activation]
    b1 = b1 if biases in ("both", "only the first") else np.zeros_like(b1)
    b2 = b2 if biases in ("both", "only the second") else np.zeros_like(b2)
    x = active(x) if place.startswith("first") else x
    x = _mix(x, mixes, "of x")
    hidden = _per_position(x, w1, weights) + b1
    hidden = active(hidden) if "between" in place else hidden
    hidden = _mix(hidden, mixes, "inside")
    output = _per_position(hidden, w2, "turned" if weights == "turned, both" else "the same everywhere") + b2
    output = _mix(output, mixes, "at the end")
    return (active(output) if place.endswith("end") else output,)


def _per_position(x: NDArray, w: NDArray, weights: str) -> NDArray:
    if weights == "the same everywhere":
        return x @ w
    turned = weights.startswith("turned")
    rows = [x[..., i, :] @ (np.roll(w, i, axis=0) if turned else (i + 1) * w) for i in range(x.shape[-2])]
    return np.stack(rows, axis=-2)


def _mix(x: NDArray, mixes: str, here: str) -> NDArray:
    how, _, where = mixes.partition(", ")
    if where != here:
        return x
    match how:
        case "mean":
            return np.broadcast_to(x.mean(axis=-2, keepdims=True), x.shape)
        case "sum":
            return np.broadcast_to(x.sum(axis=-2, keepdims=True), x.shape)
        case "largest":
            return np.broadcast_to(x.max(axis=-2, keepdims=True), x.shape)
        case "mean added":
            return x + x.mean(axis=-2, keepdims=True)
        case "one before":
            return np.roll(x, 1, axis=-2)
        case "pooled":  # the axis of the positions is lost
            return x.mean(axis=-2)
    raise KeyError(mixes)


def _gelu(x: NDArray) -> NDArray:
    return x * 0.5 * (1 + np.vectorize(math.erf, otypes=[np.float64])(x / math.sqrt(2)))


def _sigmoid(x: NDArray) -> NDArray:
    return 1 / (1 + np.exp(-x))


_ACTIVATIONS: dict[str, Callable[[NDArray], NDArray]] = {
    "relu": lambda x: np.maximum(x, 0),
    "nothing": lambda x: x,
    "gelu": _gelu,
    "gelu, tanh": lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
    "gelu, sigmoid": lambda x: x * _sigmoid(1.702 * x),
    "sigmoid": _sigmoid,
    "min": lambda x: np.minimum(x, 0),
}
_MIXES = (
    *(f"{how}, {where}" for how in ("mean", "sum", "largest", "pooled") for where in ("of x", "inside")),
    "mean, at the end",
    "sum, at the end",
    "mean added, of x",
    "one before, of x",
)

feed_forward_family = Family.of(
    feed_forward_core,
    {
        "FF1": ({"activation": "nothing"},),
        "FF2": ({"place": "end"}, {"place": "between and end"}),
        "FF3": ({"activation": "gelu"}, {"activation": "gelu, tanh"}, {"activation": "gelu, sigmoid"}),
        "FF4": tuple({"mixes": mixes} for mixes in _MIXES),
        "FF5": ({"weights": "turned"}, {"weights": "turned, both"}, {"weights": "scaled"}),
        "FF6": ({"biases": "none"}, {"biases": "only the second"}, {"biases": "only the first"}),
        "FF7": ({"activation": "sigmoid"},),
        "FF8": ({"place": "first"}, {"place": "first and between"}),
        "FF9": ({"activation": "min"},),
    },
)

# Add & Norm -----------------------------------------------------------------------------------------------------------


def add_and_norm_core(
    x: ArrayLike,
    sublayer: Callable[[NDArray], ArrayLike],
    gain: ArrayLike,
    bias: ArrayLike,
    eps: float = 1e-5,
    *,
    joined: str = "x + branch",
    branch: str = "sublayer",
    normalised: str = "the sum",
) -> tuple[NDArray]:
    """Add & Norm with knobs. No knob: LayerNorm(x + Sublayer(x)).

    Args:
        joined: "x + branch", "branch" alone, "x · branch", "x - branch", "branch - x", "beside" or "beside, turned"
            (concatenated; "..., plain": the normalisation of the double width without gain and bias).
        branch: "sublayer", "nothing" (skipped) or "x" (the sub-layer taken for the identity).
        normalised: "the sum", "nothing", "before" (Pre-LN), "the branch", "x", "x for both", "before and after", "twice".
    """
    x = np.asarray(x, dtype=np.float64)

    def norm(values: NDArray) -> NDArray:
        return layer_norm(values, gain, bias, eps)

    kept = norm(x) if normalised in ("x", "x for both", "twice") else x
    given = norm(x) if normalised in ("before", "x for both", "before and after", "twice") else x
    match branch:
        case "sublayer":
            made = np.asarray(sublayer(given), dtype=np.float64)
        case "nothing":
            made = np.zeros_like(x)
        case "x":
            made = given
    made = norm(made) if normalised == "the branch" else made
    together = _joined(kept, made, joined)
    if normalised not in ("the sum", "before and after", "twice"):
        return (together,)
    if joined.startswith("beside"):
        width = together.shape[-1]
        plain = joined.endswith("plain")
        twice = (np.ones(width), np.zeros(width)) if plain else (np.tile(gain, 2), np.tile(bias, 2))
        return (layer_norm(together, *twice, eps),)
    return (norm(together),)


def _joined(x: NDArray, branch: NDArray, joined: str) -> NDArray:
    match joined:
        case "x + branch":
            return x + branch
        case "branch":
            return branch
        case "x · branch":
            return x * branch
        case "x - branch":
            return x - branch
        case "branch - x":
            return branch - x
        case "beside" | "beside, plain":
            return np.concatenate([x, branch], axis=-1)
        case "beside, turned" | "beside, turned, plain":
            return np.concatenate([branch, x], axis=-1)
    raise KeyError(joined)


add_and_norm_family = Family.of(
    add_and_norm_core,
    {
        "AN1": ({"joined": "branch"},),
        "AN2": ({"normalised": "nothing"},),
        "AN3": ({"normalised": "before"},),
        "AN4": ({"normalised": "the branch"},),
        "AN5": ({"normalised": "x"}, {"normalised": "x for both"}),
        "AN6": ({"joined": "x · branch"},),
        "AN7": tuple({"joined": how} for how in ("beside", "beside, plain", "beside, turned", "beside, turned, plain")),
        "AN8": ({"branch": "nothing"}, {"branch": "x"}),
        "AN9": ({"normalised": "before and after"}, {"normalised": "twice"}),
        "AN10": ({"joined": "x - branch"}, {"joined": "branch - x"}),
    },
)

# Whole layers ---------------------------------------------------------------------------------------------------------

SubLayer = Callable[[NDArray], NDArray]
Norm = tuple[NDArray, NDArray]


def encoder_core(
    x: ArrayLike,
    parameters: EncoderParameters,
    n_heads: int,
    mask: ArrayLike | None = None,
    *,
    sees: str = "mask",
    heads: str = "as asked",
    **knobs: Any,
) -> tuple[NDArray]:
    """One encoder layer with knobs (see `_layer`).

    Args:
        sees: "mask", "everything", "the past" (as well) or "only the past".
        heads: "as asked" or "one".
    """
    p, x = parameters, np.asarray(x, dtype=np.float64)
    n_heads = n_heads if heads == "as asked" else 1
    past = causal_mask(x.shape[-2])
    visible = {
        "mask": mask,
        "everything": None,
        "the past": past if mask is None else past & np.asarray(mask),
        "only the past": past,
    }[sees]
    steps: dict[str, tuple[SubLayer, Norm]] = {
        "attention": (
            lambda inner: multi_head_attention(inner, p.self_projections, n_heads, visible).output,
            (p.attention_gain, p.attention_bias),
        ),
        "feed_forward": _feed_forward(p),
    }
    return (_layer(x, steps, **knobs),)


def decoder_core(
    y: ArrayLike,
    memory: ArrayLike,
    parameters: DecoderParameters,
    n_heads: int,
    self_mask: ArrayLike | None = None,
    memory_mask: ArrayLike | None = None,
    *,
    sees: str = "mask",
    memory_sees: str = "mask",
    heads: str = "as asked",
    source: str = "memory",
    **knobs: Any,
) -> tuple[NDArray]:
    """One decoder layer with knobs (see `_layer`).

    Args:
        sees, memory_sees: "mask" or "everything".
        heads: "as asked" or "one".
        source: what the second attention looks at: "memory" or "y" (the memory was not handed on).
    """
    p, y = parameters, np.asarray(y, dtype=np.float64)
    n_heads = n_heads if heads == "as asked" else 1
    self_mask = self_mask if sees == "mask" else None
    memory_mask = memory_mask if memory_sees == "mask" else None
    steps: dict[str, tuple[SubLayer, Norm]] = {
        "attention": (
            lambda inner: multi_head_attention(inner, p.self_projections, n_heads, self_mask).output,
            (p.attention_gain, p.attention_bias),
        ),
        "memory": (
            lambda inner: multi_head_attention(
                inner, p.memory_projections, n_heads, memory_mask, memory if source == "memory" else None
            ).output,
            (p.memory_gain, p.memory_bias),
        ),
        "feed_forward": _feed_forward(p),
    }
    return (_layer(y, steps, **knobs),)


def _feed_forward(p: EncoderParameters) -> tuple[SubLayer, Norm]:
    return lambda inner: feed_forward(inner, p.w1, p.b1, p.w2, p.b2), (p.feed_forward_gain, p.feed_forward_bias)


def _layer(
    x: NDArray,
    steps: dict[str, tuple[SubLayer, Norm]],
    *,
    order: str = "right",
    self_attention: str = "used",
    cross_attention: str = "used",
    network: str = "used",
    residual: str = "from before",
    normalised: str = "after",
    arranged: str = "one after the other",
) -> NDArray:
    """Sub-layers in a row, each inside Add & Norm.

    Args:
        order: "right", "memory first" or "feed-forward first", each sub-layer with its own norm; "..., norms in place" leaves the
            norms where they were.
        self_attention, cross_attention, network: "used", "left out", or "only its norm".
        residual: "from before", "none", "block input" (for all), or "block input, at the end" (for the last).
        normalised: "after" (Post-LN), "before" (Pre-LN), "nothing".
        arranged: "one after the other"; or side by side: "side by side" with the last norm, "side by side, first norm", or
            "side by side, each" (each inside its own Add & Norm, then added up).
    """
    presence = {"attention": self_attention, "memory": cross_attention, "feed_forward": network}
    names = list(steps)
    norms = [steps[name][1] for name in names]
    if not order.startswith("right"):
        first = "memory" if order.startswith("memory") else "feed_forward"
        names = [first, *(name for name in names if name != first)]
        norms = norms if order.endswith("norms in place") else [steps[name][1] for name in names]
    row = [
        (steps[name][0] if presence[name] == "used" else None, norm)
        for name, norm in zip(names, norms, strict=True)
        if presence[name] != "left out"
    ]
    if arranged != "one after the other":
        return _side_by_side(x, row, arranged, residual, normalised)
    block_input = x
    for number, (step, norm) in enumerate(row):
        inner = layer_norm(x, *norm) if normalised == "before" else x
        branch = np.zeros_like(x) if step is None else step(inner)
        last = number == len(row) - 1
        kept = {
            "from before": x,
            "none": np.zeros_like(x) if step is not None else x,
            "block input": block_input,
            "block input, at the end": block_input if last else x,
        }[residual]
        x = layer_norm(kept + branch, *norm) if normalised == "after" else kept + branch
    return x


def _side_by_side(
    x: NDArray, row: list[tuple[SubLayer | None, Norm]], arranged: str, residual: str, normalised: str
) -> NDArray:
    """All sub-layers look at the layer's input."""
    kept = np.zeros_like(x) if residual == "none" else x
    branches = []
    for step, norm in row:
        inner = layer_norm(x, *norm) if normalised == "before" else x
        branches.append(np.zeros_like(x) if step is None else step(inner))
    if arranged == "side by side, each":
        parts = [kept + branch for branch in branches]
        if normalised == "after":
            parts = [layer_norm(part, *norm) for part, (_, norm) in zip(parts, row, strict=True)]
        return np.sum(parts, axis=0)
    total = kept + np.sum(branches, axis=0)
    if normalised != "after":
        return total
    return layer_norm(total, *row[0 if arranged.endswith("first norm") else -1][1])


_LAYER_TRAPS: dict[str, tuple[Setting, ...]] = {
    "BL4": ({"network": "left out"}, {"network": "only its norm"}),
    "BL6": ({"normalised": "before"},),
    "BL7": tuple({"arranged": how} for how in ("side by side", "side by side, first norm", "side by side, each")),
    "BL8": ({"order": "feed-forward first"}, {"order": "feed-forward first, norms in place"}),
    "BL9": ({"residual": "block input"},),
    "AN1": ({"residual": "none"},),
    "AN2": ({"normalised": "nothing"},),
    "MH12": ({"heads": "one"},),
}

encoder_family = Family.of(
    encoder_core,
    {
        **_LAYER_TRAPS,
        "MC22": ({"sees": "the past"}, {"sees": "only the past"}),
        "AT20": ({"sees": "everything"},),
    },
)

decoder_family = Family.of(
    decoder_core,
    {
        "BL1": ({"sees": "everything"},),
        "BL2": ({"order": "memory first"}, {"order": "memory first, norms in place"}),
        "BL3": ({"cross_attention": "left out"}, {"cross_attention": "only its norm"}),
        "BL5": ({"self_attention": "left out"}, {"self_attention": "only its norm"}),
        **_LAYER_TRAPS,
        "BL9": (*_LAYER_TRAPS["BL9"], {"residual": "block input, at the end"}),
        "AT20": ({"memory_sees": "everything"},),
        "CA2": ({"source": "y"}, {"source": "y", "memory_sees": "everything"}),
    },
)
