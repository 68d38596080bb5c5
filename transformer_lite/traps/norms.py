"""Traps of layer normalisation: LN1 to LN13."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family

_AXES = {"features": -1, "each matrix": (-2, -1), "all": None, "the first two": (0, 1)}


def core(
    x: ArrayLike,
    gain: ArrayLike,
    bias: ArrayLike,
    eps: float = 1e-5,
    *,
    along: int | str = "features",
    centre: bool = True,
    by: str = "deviation",
    correction: int = 0,
    stabilise: str = "inside",
    affine: str = "both",
) -> tuple[NDArray]:
    """Layer normalisation with knobs. No knob: that of the paper.

    Args:
        along: the axes over which mean and variance are taken: one by its number, the "features", "each matrix", "all", "all but
            the last" (as batch normalisation does) or "the first two".
        centre: whether the mean is subtracted (without it, the "variance" is the mean square).
        by: what the centred numbers are divided by: the "deviation", the "variance", "nothing", the "length" of the vector, or
            the "range" (then the smallest becomes 0).
        correction: 1 divides the sum of squares by d − 1 (the unbiased variance).
        stabilise: where eps goes: "inside" the root, "outside", or "nowhere".
        affine: of gain and bias "both", "gain", "bias" or "none" are used.
    """
    x, gain, bias = (np.asarray(array, dtype=np.float64) for array in (x, gain, bias))
    axis = tuple(range(x.ndim - 1)) if along == "all but the last" else _AXES.get(along, along)
    inside, outside = (eps if stabilise == place else 0.0 for place in ("inside", "outside"))
    with np.errstate(all="ignore"):
        if by == "range":
            low, high = x.min(axis=axis, keepdims=True), x.max(axis=axis, keepdims=True)
            normalised = (x - low) / (high - low + outside + inside)
        else:
            centred = x - x.mean(axis=axis, keepdims=True) if centre else x
            squares = centred**2
            count = squares.size // squares.sum(axis=axis, keepdims=True).size
            variance = squares.sum(axis=axis, keepdims=True) / (count - correction)
            divisor = {
                "deviation": np.sqrt(variance + inside) + outside,
                "variance": variance + inside + outside,
                "nothing": 1.0,
                "length": np.sqrt(squares.sum(axis=axis, keepdims=True) + inside) + outside,
            }[by]
            normalised = centred / divisor
        if affine in ("both", "gain"):
            normalised = normalised * gain
        if affine in ("both", "bias"):
            normalised = normalised + bias
    return (normalised,)


family = Family.of(
    core,
    {
        "LN1": ({"along": 0},),
        "LN2": ({"along": -2}, {"along": 1}),
        "LN3": ({"along": "each matrix"}, {"along": "all"}),
        "LN4": ({"along": "all but the last"}, {"along": "the first two"}),
        "LN5": ({"stabilise": "nowhere"},),
        "LN6": ({"correction": 1},),
        "LN7": ({"stabilise": "outside"},),
        "LN8": ({"affine": "none"}, {"affine": "gain"}, {"affine": "bias"}),
        "LN9": ({"centre": False}, {"centre": False, "affine": "gain"}),
        "LN10": ({"by": "variance"}, {"by": "variance", "stabilise": "nowhere"}),
        "LN11": ({"by": "nothing"},),
        "LN12": tuple(
            {"by": "length", "centre": centre, "stabilise": place}
            for centre in (False, True)
            for place in ("inside", "outside", "nowhere")
        ),
        "LN13": ({"by": "range", "stabilise": "nowhere"}, {"by": "range"}),
    },
)
