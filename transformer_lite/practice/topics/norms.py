"""The exercise on layer normalisation."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.practice.comparing import same_mistake
from transformer_lite.practice.fixtures import EXTREME, MORE, Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise

EXERCISES = (
    Exercise(
        id="layer_norm",
        version=1,
        chapter="ffn-residual-layer-norm",
        reference=equations.layer_norm,
        parameters=("x", "gain", "bias", "eps"),
        optional=1,
        defaults=(1e-5,),
        returns=("normalised",),
        axes=(("n", "d_model"),),
        minutes=7,
        difficulty=2,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def layer_norm(x, gain, bias, eps=1e-5):
    """x (..., d_model), gain and bias (d_model,) -> (..., d_model)."""
    centred = x - x.mean(axis=-1, keepdims=True)  # the mean over the features of one token
    variance = (centred**2).mean(axis=-1, keepdims=True)  # divided by d_model, not by d_model - 1
    return centred / np.sqrt(variance + eps) * gain + bias
''',
    ),
)


# Inputs ---------------------------------------------------------------------------------------------------------------


def _tokens(
    name: str, rng: np.random.Generator, *shape: int, scale: float = 1.0, eps: float | None = None, **more: Any
) -> Fixture:
    """Numbers whose mean is far from 0, so that it shows whether it was subtracted."""
    d_model = shape[-1]
    x = scale * (rng.normal(size=shape) + 0.7 * rng.normal(size=(*shape[:-1], 1)) + 0.5)
    gain = rng.uniform(0.5, 2.0, size=d_model) * rng.choice([-1.0, 1.0], size=d_model, p=[0.3, 0.7])
    bias = rng.normal(size=d_model) + 0.3
    sizes = dict(zip(("batch", "n", "d_model")[-len(shape) :], shape, strict=True))
    return Fixture(name, (x, gain, bias, *(() if eps is None else (eps,))), sizes, **more)


@cache
def _fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(41)
    return (
        # Which axes are meant shows only with a batch, so the first input has one.
        _tokens("rectangular", rng, 4, 3, 6),
        _tokens("square", rng, 5, 5),
        Fixture(
            "small",
            (
                np.array([[1.0, 3.0, 2.0, 6.0], [0.0, -2.0, 4.0, 2.0]]),
                np.array([1.0, 1.0, 2.0, 1.0]),
                np.array([0.0, 1.0, 0.0, 0.0]),
            ),
            {"n": 2, "d_model": 4},
        ),
        _tokens("tiny numbers", rng, 3, 5, scale=1e-3),
        _tokens("eps given", rng, 3, 4, 7, eps=0.1),
        _tokens("vector", rng, 6, phase=MORE, may_raise=True),
        _tokens("large", rng, 3, 4, scale=1e3, phase=EXTREME),
        _constant(rng),
    )


def _constant(rng: np.random.Generator) -> Fixture:
    """A token whose features are all equal: its variance is 0."""
    x, gain, bias = _tokens("", rng, 3, 4).arguments
    x[1] = 2.0
    return Fixture("a constant token", (x, gain, bias), {"n": 3, "d_model": 4}, phase=EXTREME)


def _drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    return _tokens("drawn", rng, *(int(size) for size in rng.choice([3, 4, 5, 6, 7], size=3, replace=False)), seed=seed)


FIXTURES = {"layer_norm": (_fixed, _drawn)}


# Properties -----------------------------------------------------------------------------------------------------------


def _row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.3g}" for one in np.ravel(array)) + "]"


def _bare(asking: Asking, x: Any = None) -> NDArray | None:
    """What comes out with gain 1 and bias 0."""
    x = asking.plain().fixture.arguments[0] if x is None else np.asarray(x)
    answer = asking.ask(x, np.ones(x.shape[-1]), np.zeros(x.shape[-1]))
    return None if answer is None or answer[0].shape != x.shape else answer[0].astype(np.float64)


def _means(*ways: tuple[Any, str]) -> Callable[[Asking], Shown]:
    """The axis along which the means are 0; that of a token is not."""

    def shown(asking: Asking) -> Shown:
        normalised = _bare(asking)
        if normalised is None:
            return None
        token = float(normalised[0, 0].mean())
        for axis, variant in ways:
            if np.abs(normalised.mean(axis=axis)).max() < 1e-5 < abs(token):
                found = {"token": f"{token:.3g}"}
                return found | ({"variant": variant} if variant else {})
        return None

    return shown


def _ln5(asking: Asking) -> Shown:
    normalised = _bare(asking, [[2.0, 2.0, 2.0, 2.0]])
    return {"gave": _row(normalised)} if normalised is not None and not np.isfinite(normalised).all() else None


def _ln6(asking: Asking) -> Shown:
    normalised = _bare(asking)
    if normalised is None:
        return None
    d, squares = normalised.shape[-1], (normalised**2).mean(axis=-1)
    if not np.allclose(squares, (d - 1) / d, atol=1e-2):
        return None
    return {"square": f"{float(squares[0, 0]):.3f}", "d": d, "less": d - 1}


def _ln7(asking: Asking) -> Shown:
    normalised = _bare(asking, [[1e-4, -1e-4, 1e-4, -1e-4]])
    if normalised is None or not np.isfinite(normalised).all() or not 0.5 < normalised.std() < 0.95:
        return None
    return {"deviation": f"{float(normalised.std()):.3f}"}


def _ln8(asking: Asking) -> Shown:
    x, gain, bias = asking.plain().fixture.arguments
    once = asking.plain().arrays
    doubled, raised = asking.ask(x, 2 * gain, bias), asking.ask(x, gain, bias + 100.0)
    if once is None or doubled is None or raised is None:
        return None
    no_gain, no_bias = same_mistake(doubled[0], once[0]), same_mistake(raised[0], once[0])
    if not no_gain and not no_bias:
        return None
    return {"row": _row(once[0][0, 0])} | ({} if no_gain and no_bias else {"variant": "gain" if no_gain else "bias"})


def _ln9(asking: Asking) -> Shown:
    normalised = _bare(asking)
    if normalised is None or not np.allclose((normalised**2).mean(axis=-1), 1, atol=1e-3):
        return None
    mean = float(normalised[0, 0].mean())
    return {"square": f"{float((normalised[0, 0] ** 2).mean()):.3g}", "mean": f"{mean:.3g}"} if abs(mean) > 1e-3 else None


def _scaled(factor: float) -> Callable[[Asking], Shown]:
    """Twice the input gives ``factor`` times the output."""

    def shown(asking: Asking) -> Shown:
        once, twice = _bare(asking), _bare(asking, 2 * asking.plain().fixture.arguments[0])
        if once is None or twice is None or not np.allclose(twice, factor * once, rtol=1e-2, atol=1e-3):
            return None
        return {"once": _row(once[0, 0][:3]), "twice": _row(twice[0, 0][:3])}

    return shown


def _ln12(asking: Asking) -> Shown:
    normalised = _bare(asking)
    if normalised is None:
        return None
    squares = (normalised**2).sum(axis=-1)
    return {"total": f"{float(squares[0, 0]):.3g}", "right": normalised.shape[-1]} if np.allclose(squares, 1, atol=1e-2) else None


def _ln13(asking: Asking) -> Shown:
    normalised = _bare(asking)
    if normalised is None:
        return None
    low, high = normalised.min(axis=-1), normalised.max(axis=-1)
    if not np.allclose(low, 0, atol=1e-6) or not np.allclose(high, 1, atol=1e-3):
        return None
    return {"low": f"{abs(float(low[0, 0])):.3g}", "high": f"{float(high[0, 0]):.3g}"}


PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    "LN1": _means((0, "")),
    "LN2": _means((1, "")),
    "LN3": _means(((-2, -1), ""), (None, "all")),
    "LN4": _means(((0, 1), "")),
    "LN5": _ln5,
    "LN6": _ln6,
    "LN7": _ln7,
    "LN8": _ln8,
    "LN9": _ln9,
    "LN10": _scaled(0.5),
    "LN11": _scaled(2.0),
    "LN12": _ln12,
    "LN13": _ln13,
}

# Each token by itself: the influence matrix is diagonal.
PROBES = {
    "layer_norm": (
        np.random.default_rng(5).normal(size=(4, 4)),
        lambda moved: (moved, np.array([1.0, 2.0, 0.5, 1.5]), np.array([0.0, 1.0, -1.0, 0.5])),
    )
}
