"""Traps of softmax: SM1 to SM9."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family
from transformer_lite.traps.weighting import weigh


def core(
    x: ArrayLike,
    axis: int | None = None,
    *,
    along: int | str = "the axis asked for",
    kind: str = "exponential",
    subtract: str = "maximum",
) -> tuple[NDArray]:
    """Softmax with knobs: along which axis, with what instead of exp, with what subtracted first."""
    x = np.asarray(x, dtype=np.float64)
    match along:
        case "the axis asked for":
            along = -1 if axis is None else axis
        case "0 unless asked":
            along = 0 if axis is None else axis
        case "all":
            along = None
        case "each matrix":
            along = (-2, -1)
    return (weigh(x, along, kind, subtract),)


family = Family.of(
    core,
    {
        "SM1": ({"subtract": "nothing"}, {"subtract": "logarithm"}, {"subtract": "mean"}),
        "SM2": ({"along": 0}, {"along": -2}, {"along": "0 unless asked"}),
        "SM3": ({"along": "all"}, {"along": "each matrix"}),
        "SM4": ({"kind": "proportion"}, {"kind": "proportion of sizes"}, {"kind": "sizes"}),
        "SM5": ({"kind": "sigmoid"}, {"kind": "sigmoid, normalised"}),
        "SM6": ({"kind": "largest only"},),
        "SM7": ({"kind": "negative"},),
        "SM8": ({"kind": "base 2"}, {"kind": "base 10"}),
        "SM9": ({"kind": "shifted"}, {"kind": "shifted by the largest of all"}),
    },
    alone=({"subtract": "nothing"}, {"subtract": "logarithm"}, {"subtract": "mean"}),
)
