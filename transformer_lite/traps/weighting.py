"""Ways to turn scores into weights: softmax, and what people write instead of it. Shared by the families."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Axis = int | tuple[int, ...] | None


def weigh(x: NDArray, axis: Axis, kind: str = "exponential", subtract: str = "maximum") -> NDArray:
    """Turn ``x`` into weights along ``axis`` (None: all entries together).

    Args:
        x: (...), scores.
        axis: an axis, several, or None for all.
        kind: "exponential" is softmax; the others are mistakes.
        subtract: what is subtracted before the exponential: "maximum", "mean", or "nothing"; "logarithm" divides in the exponent.
    """
    match kind:
        case "exponential":
            return _softmax(x, axis, subtract)
        case "negative":
            return _softmax(-x, axis, subtract)
        case "base 2":
            return _softmax(x * np.log(2.0), axis, subtract)
        case "base 10":
            return _softmax(x * np.log(10.0), axis, subtract)
        case "sigmoid":
            return _sigmoid(x)
        case "sigmoid, normalised":
            return _sigmoid(x) / _sigmoid(x).sum(axis=axis, keepdims=True)
        case "largest only":
            return _largest(x, axis)
        case "proportion":
            return x / x.sum(axis=axis, keepdims=True)
        case "proportion of sizes":
            return x / np.abs(x).sum(axis=axis, keepdims=True)
        case "sizes":
            return np.abs(x) / np.abs(x).sum(axis=axis, keepdims=True)
        case "shifted":
            shifted = x - x.max(axis=axis, keepdims=True)
            return shifted / shifted.sum(axis=axis, keepdims=True)
        case "shifted by the largest of all":
            shifted = x - x.max()
            return shifted / shifted.sum(axis=axis, keepdims=True)
    raise KeyError(kind)


def _softmax(x: NDArray, axis: Axis, subtract: str) -> NDArray:
    match subtract:
        case "maximum":
            x = x - x.max(axis=axis, keepdims=True)
        case "mean":
            x = x - x.mean(axis=axis, keepdims=True)
        case "logarithm":
            return np.exp(x - np.log(np.exp(x).sum(axis=axis, keepdims=True)))
    exponentials = np.exp(x)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)


def _sigmoid(x: NDArray) -> NDArray:
    return 1.0 / (1.0 + np.exp(-x))


def _largest(x: NDArray, axis: Axis) -> NDArray:
    return (x == x.max(axis=axis, keepdims=True)).astype(np.float64)
