"""Comparing arrays: how close is right, and where the first difference is."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

# By the precision of what came back: relative and absolute.
_RIGHT = {2: (1e-2, 1e-2), 4: (1e-4, 1e-5), 8: (1e-6, 1e-8)}
# A trap may be written with a small constant in it (a norm + 1e-8), and traps lie further apart than 1e-2.
TRAP_RELATIVE, TRAP_ABSOLUTE = 1e-5, 2e-6


def tolerance(array: NDArray) -> tuple[float, float]:
    """(relative, absolute) within which ``array`` is right."""
    return _RIGHT.get(array.dtype.itemsize, _RIGHT[8]) if array.dtype.kind == "f" else _RIGHT[8]


def right(actual: NDArray, expected: NDArray) -> bool:
    """True if ``actual`` is the right answer: the same shape (nothing is broadcast) and the same numbers."""
    if actual.shape != expected.shape:
        return False
    if expected.dtype == bool:
        return actual.dtype == bool and bool(np.array_equal(actual, expected))
    if expected.dtype.kind in "iu":  # a count is right or wrong: nothing is near
        return bool(np.array_equal(actual, expected))
    relative, absolute = tolerance(actual)
    return bool(np.allclose(actual, expected, rtol=relative, atol=absolute, equal_nan=False))


def same_mistake(actual: NDArray, mistaken: NDArray) -> bool:
    """True if ``actual`` is what a trap gives, infinities and NaN included."""
    if actual.shape != mistaken.shape:
        return False
    if mistaken.dtype.kind in "biu":
        return bool(np.array_equal(actual, mistaken))
    relative, absolute = tolerance(actual)
    relative, absolute = max(relative, TRAP_RELATIVE), max(absolute, TRAP_ABSOLUTE)
    if actual.size and actual.dtype.kind == "f":  # thousands of mistakes are tried, and one number rules most of them out
        one, other = float(actual.item(0)), float(mistaken.item(0))
        if abs(one - other) > absolute + relative * abs(other):
            return False
    with np.errstate(all="ignore"):
        return bool(np.allclose(actual, mistaken, rtol=relative, atol=absolute, equal_nan=True))


def largest_difference(one: NDArray, other: NDArray) -> float | None:
    """The largest difference between finite entries; None where there is none to compare."""
    if one.shape != other.shape or one.size == 0:
        return None
    with np.errstate(all="ignore"):
        difference = np.abs(np.asarray(one, dtype=np.float64) - np.asarray(other, dtype=np.float64))
    finite = difference[np.isfinite(difference)]
    return float(finite.max()) if finite.size else None


def first_difference(actual: NDArray, expected: NDArray) -> dict[str, Any]:
    """Where two arrays of one shape first differ, and two values that look different."""
    if expected.dtype.kind in "biu":
        wrong = np.asarray(actual != expected)
    else:
        relative, absolute = tolerance(actual)
        wrong = ~np.isclose(actual, expected, rtol=relative, atol=absolute, equal_nan=False)
    index = tuple(int(i) for i in np.argwhere(wrong)[0])
    yours, right_one = visibly_different(actual[index], expected[index])
    return {"index": list(index), "yours": yours, "right": right_one, "count": int(wrong.sum()), "of": int(wrong.size)}


def visibly_different(one: Any, other: Any) -> tuple[str, str]:
    """Two numbers as text, with as many digits as it takes for them to look different."""
    if isinstance(one, (bool, np.bool_)):
        return str(bool(one)), str(bool(other))
    if isinstance(other, np.integer) and float(one).is_integer():
        return str(int(one)), str(int(other))
    for digits in range(3, 18):
        texts = f"{float(one):#.{digits}g}", f"{float(other):#.{digits}g}"
        if texts[0] != texts[1]:
            return texts
    return repr(float(one)), repr(float(other))


def number(value: float | None) -> str:
    """A number for a sentence: three figures, or as many as it takes not to look like a whole number that it is not (0.9996)."""
    if value is None:
        return "-"
    text = f"{value:.3g}"
    if abs(value) < 100 and float(text).is_integer() and abs(value - float(text)) > 1e-6:
        return next(more for digits in range(4, 10) if float(more := f"{value:.{digits}g}") != float(text))
    return text


def as_mask(every: list[NDArray], array: NDArray) -> tuple[NDArray | None, str]:
    """What a mask says in True and False, and in which style: "boolean", "numbers" (1 and 0) or "additive" (0 and −∞).

    Args:
        every: all masks that the function gave: a lone 0 says nothing about the style, so the others decide.
        array: the one to read.

    Returns:
        (None, "") if it cannot be read as a mask.
    """
    if array.dtype == bool:
        return array, "boolean"
    if array.dtype.kind == "c":
        return None, ""
    if any((one <= -1e4).any() for one in every if one.dtype.kind in "iuf"):
        return (array == 0, "additive") if ((array == 0) | (array <= -1e4)).all() else (None, "")
    return (array == 1, "numbers") if ((array == 0) | (array == 1)).all() else (None, "")
