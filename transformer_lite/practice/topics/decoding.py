"""Decoding token by token with a cache of keys and values."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.equations import Projections
from transformer_lite.practice.comparing import right, same_mistake
from transformer_lite.practice.fixtures import EXTREME, MORE, Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise

EXERCISES = (
    Exercise(
        id="cached_decoding",
        version=1,
        chapter="inference",
        reference=equations.cached_decoding,
        parameters=("x", "projections"),
        optional=0,
        returns=("output", "weights"),
        axes=(("n", "d_model"), ("n", "n")),
        minutes=12,
        difficulty=3,
        importance=1,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def cached_decoding(x, projections):
    """(..., n, d_model) -> output (..., n, d_model), weights (..., n, n), zero above the diagonal."""
    w_q, w_k, w_v, w_o = projections
    n, d_model = x.shape[-2:]
    keys = values = np.zeros((*x.shape[:-2], 0, d_model))  # the cache, empty at first
    output, weights = np.zeros(x.shape), np.zeros((*x.shape[:-1], n))
    for t in range(n):
        token = x[..., t : t + 1, :]  # (..., 1, d_model): only the new token is projected
        keys = np.concatenate([keys, token @ w_k], axis=-2)  # first into the cache, (..., t + 1, d_model)
        values = np.concatenate([values, token @ w_v], axis=-2)
        scores = token @ w_q @ keys.swapaxes(-1, -2) / np.sqrt(d_model)  # (..., 1, t + 1)
        exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
        row = exponentials / exponentials.sum(axis=-1, keepdims=True)
        output[..., t : t + 1, :] = row @ values @ w_o  # then attend
        weights[..., t : t + 1, : t + 1] = row
    return output, weights
''',
    ),
)


def _tokens(name: str, rng: np.random.Generator, n: int, d_model: int, batch: int | None = None, **more: Any) -> Fixture:
    x = rng.normal(size=(n, d_model) if batch is None else (batch, n, d_model))
    matrices = (1.2 * rng.normal(size=(d_model, d_model)) / np.sqrt(d_model) for _ in range(4))
    sizes = {"n": n, "d_model": d_model} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (x, Projections(*matrices)), sizes, **more)


@cache
def _fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(31)
    one, turned = np.eye(2), np.array([[0.0, 1.0], [1.0, 0.0]])
    small = np.array([[1.0, 0.0], [0.0, 2.0], [1.0, 1.0], [2.0, 0.0]])
    return (
        _tokens("rectangular", rng, 6, 4),
        _tokens("square", rng, 5, 5),
        Fixture("small", (small, Projections(one, one, 2 * one, turned)), {"n": 4, "d_model": 2}),
        _tokens("a single token", rng, 1, 3),
        _tokens("batch", rng, 5, 4, batch=2, phase=MORE, may_raise=True),
        Fixture("large", (30 * small, Projections(one, one, 2 * one, turned)), {"n": 4, "d_model": 2}, phase=EXTREME),
    )


def _drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    return _tokens("drawn", rng, int(rng.integers(5, 8)), int(rng.integers(2, 5)), seed=seed)


FIXTURES = {"cached_decoding": (_fixed, _drawn)}


def _row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.3g}" for one in np.ravel(array)) + "]"


def _kv1(asking: Asking) -> Shown:
    weights = (asking.plain().arrays or ())[-1]
    return {"row": _row(weights[-1])} if np.isclose(weights.max(axis=-1), 1.0).all() else None


def _kv3(asking: Asking) -> Shown:
    output, weights = asking.plain().arrays or ()
    return {"output": _row(output[0]), "row": _row(weights[1])} if not output[0].any() else None


def _kv4(asking: Asking) -> Shown:
    seen = asking.plain()
    x, projections = seen.fixture.arguments
    moved = x.copy()
    moved[1] *= -3.0
    answer = asking.ask(moved, projections)
    if answer is None or seen.arrays is None or not same_mistake(answer[1][-1], seen.arrays[1][-1]):
        return None
    return {"row": _row(seen.arrays[1][-1])}


def _kv5(asking: Asking) -> Shown:
    seen = asking.plain()
    output, weights = seen.arrays or ()
    agree = [bool(right(one, other)) for one, other in zip(output, seen.expected[0], strict=True)]
    seen_by_last = int((weights[-1] > 0).sum())
    if all(agree) or seen_by_last >= len(weights):
        return None
    return {"first": agree.index(False), "row": _row(weights[-1]), "count": seen_by_last, "n": len(weights)}


PROPERTIES: dict[str, Callable[[Asking], Shown]] = {"KV1": _kv1, "KV3": _kv3, "KV4": _kv4, "KV5": _kv5}


@cache
def _probe_projections() -> Projections:
    rng = np.random.default_rng(6)
    return Projections(*(rng.normal(size=(4, 4)) / 2 for _ in range(4)))


def _as_tokens(moved: NDArray) -> tuple[Any, ...]:
    return moved, _probe_projections()


PROBES = {"cached_decoding": (np.random.default_rng(5).normal(size=(4, 4)), _as_tokens)}
