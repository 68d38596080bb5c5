"""The inputs that an answer is tried on.

A square input hides most mistakes (a learner who divides by √n_k where n_k = d_k is "right"), so the sizes differ; masks have a
hidden and a visible entry in every row and column; one input is drawn anew each time, by a seed that the verdict reports.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

PLAIN, MORE, EXTREME = 1, 2, 3  # judged in this order: a mistake is looked for where the numbers are ordinary first


@dataclass(frozen=True)
class Fixture:
    """One input.

    Attributes:
        name: what the verdict calls it.
        arguments: by position; parameters that may be left out are.
        sizes: the named sizes, to tell a shape in words.
        phase: PLAIN, MORE (batches, other axes) or EXTREME (numbers that overflow a careless exp).
        may_raise: an answer that raises here, and is right elsewhere, passes with a note.
        remark_only: tried only to make a note, never to judge.
        seed: of an input drawn anew.
    """

    name: str
    arguments: tuple[Any, ...]
    sizes: dict[str, int] = field(default_factory=dict)
    phase: int = PLAIN
    may_raise: bool = False
    remark_only: bool = False
    seed: int | None = None


def fixtures(exercise_id: str, seed: int) -> list[Fixture]:
    """The inputs of an exercise, the one drawn by ``seed`` last."""
    from transformer_lite.practice import topics

    fixed, drawn = _MAKERS[exercise_id] if exercise_id in _MAKERS else topics.fixtures()[exercise_id]
    return [*fixed(), drawn(seed)]


def smallest(exercise_id: str) -> str:
    """The name of the input that can be worked by hand."""
    return "small"


# softmax --------------------------------------------------------------------------------------------------------------


@cache
def _softmax_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(11)
    return (
        Fixture("rectangular", (_spread(rng, (3, 5)),)),
        Fixture("square", (_spread(rng, (4, 4)),)),
        Fixture("small", (np.array([[2.0, 1.0, -1.0], [0.0, 3.0, 0.5]]),)),
        Fixture("columns", (_spread(rng, (3, 5)), 0), phase=MORE),
        Fixture("batch", (_spread(rng, (2, 3, 4)),), phase=MORE, may_raise=True),
        Fixture("vector", (np.array([0.3, -1.2, 2.0, 0.7, -0.1]),), phase=MORE, may_raise=True),
        Fixture("large", (np.array([[1000.0, 0.0, 999.0], [998.0, 1000.0, 3.0]]),), phase=EXTREME),
        Fixture("very negative", (np.array([[-1000.0, -1001.0, -1003.0], [-1002.0, -1000.0, -1001.5]]),), phase=EXTREME),
        Fixture("huge", (np.array([[10000.0, 0.0, 9999.0], [9990.0, 10000.0, 9998.0]]),), phase=EXTREME),
    )


def _softmax_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    rows, columns = rng.choice([2, 3, 4, 5, 6, 7], size=2, replace=False)
    return Fixture("drawn", (_spread(rng, (rows, columns)),), seed=seed)


def _spread(rng: np.random.Generator, shape: tuple[int, ...]) -> NDArray:
    """Numbers of both signs whose sums along every axis stay away from 0, so that no mistake divides by almost nothing."""
    while True:
        x = rng.normal(0.2, 1.2, size=shape)
        sums = [np.abs(x.sum(axis=axis)).min() for axis in range(x.ndim)]
        if min(sums) > 0.2 and (x.min(axis=-1) < -0.1).any() and abs(x.sum()) > 0.5:
            return x


# Attention ------------------------------------------------------------------------------------------------------------


def _attention(
    name: str,
    rng: np.random.Generator,
    n_q: int,
    n_k: int,
    d_k: int,
    d_v: int,
    batch: int | None = None,
    masked: bool = False,
    **more: Any,
) -> Fixture:
    lead = () if batch is None else (batch,)
    queries = rng.normal(size=(*lead, n_q, d_k))
    keys = rng.normal(size=(*lead, n_k, d_k))
    values = rng.normal(size=(*lead, n_k, d_v)) + 0.5
    sizes = {"n_q": n_q, "n_k": n_k, "d_k": d_k, "d_v": d_v} | ({} if batch is None else {"batch": batch})
    mask = (irregular_mask(rng, n_q, n_k, batch),) if masked else ()
    return Fixture(name, (queries, keys, values, *mask), sizes, **more)


def irregular_mask(rng: np.random.Generator, n_q: int, n_k: int, batch: int | None = None) -> NDArray[np.bool_]:
    """A mask with a hidden and a visible entry in every row and in every column."""
    if batch is not None:
        return np.stack([irregular_mask(rng, n_q, n_k) for _ in range(batch)])
    while True:
        mask = rng.random((n_q, n_k)) < 0.6
        counts = mask.sum(axis=1), mask.sum(axis=0)
        if counts[0].min() > 0 and counts[0].max() < n_k and counts[1].min() > 0 and counts[1].max() < n_q:
            return mask


_SMALL = (
    np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 2.0, 0.0, -1.0]]),
    np.array([[1.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0], [1.0, 1.0, 0.0, 0.0]]),
    np.array([[1.0], [2.0], [4.0]]),
)
_SMALL_SIZES = {"n_q": 2, "n_k": 3, "d_k": 4, "d_v": 1}


@cache
def _attention_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(7)
    return (
        _attention("rectangular", rng, 4, 6, 9, 3),
        _attention("keys as wide as values", rng, 3, 7, 4, 4),
        _attention("square", rng, 5, 5, 5, 5),
        _attention("one query", rng, 1, 3, 8, 2),
        Fixture("small", _SMALL, _SMALL_SIZES),
        _attention("batch", rng, 3, 5, 7, 4, batch=2, phase=MORE, may_raise=True),
        _large(rng),
    )


def _large(rng: np.random.Generator) -> Fixture:
    """Scores of the order of 10,000, far enough apart for the largest to take everything."""
    while True:
        queries, keys = 1e4 * rng.normal(size=(3, 2)), rng.normal(size=(4, 2))
        ordered = np.sort(queries @ keys.T, axis=-1)
        if (ordered[:, -1] - ordered[:, -2]).min() > 1000 and ordered[:, -1].min() > 3000:
            return Fixture(
                "large", (queries, keys, rng.normal(size=(4, 5))), {"n_q": 3, "n_k": 4, "d_k": 2, "d_v": 5}, phase=EXTREME
            )


def _attention_drawn(seed: int) -> Fixture:
    return _attention("drawn", np.random.default_rng(seed), *_sizes(seed), seed=seed)


def _sizes(seed: int) -> list[int]:
    return [int(size) for size in np.random.default_rng([seed, 1]).choice([2, 3, 4, 5, 6, 7, 9], size=4, replace=False)]


@cache
def _masked_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(23)
    rectangular = _attention("rectangular, masked", rng, 4, 6, 9, 3, masked=True)
    plain = _attention_fixed()
    batch = _attention("batch, masked", rng, 3, 5, 7, 4, batch=2, masked=True, phase=MORE, may_raise=True)
    return (
        rectangular,
        # The same numbers without the mask: whether the mask does anything at all is seen bit by bit.
        Fixture("rectangular", rectangular.arguments[:3], rectangular.sizes),
        _attention("keys as wide as values, masked", rng, 3, 7, 4, 4, masked=True),
        _attention("square, masked", rng, 5, 5, 5, 5, masked=True),
        plain[3],
        Fixture("small", (*_SMALL, np.array([[True, False, True], [False, True, False]])), _SMALL_SIZES),
        plain[5],
        batch,
        plain[6],
        _large_masked(),
        Fixture(
            "padding",
            (*rectangular.arguments[:3], np.array([[True, True, False, True, True, False]])),
            rectangular.sizes,
            phase=MORE,
            remark_only=True,
        ),
    )


def _large_masked() -> Fixture:
    """Hidden keys that match far better than the visible ones: a mask that subtracts only 100 lets them through."""
    mask = np.array([[True, False, True, False], [False, True, False, True], [True, True, False, False]])
    steps = np.array([[0.0, 7.0, 3.0, 11.0], [5.0, 2.0, 9.0, 0.5], [1.5, 6.0, 4.0, 8.0]])
    scores = np.where(mask, -130.0, 30.0) + steps
    values = np.array(
        [[1.0, 0.0, 2.0, -1.0, 0.5], [0.0, 3.0, 1.0, 1.0, 2.0], [2.0, -1.0, 0.0, 4.0, 1.5], [-2.0, 1.0, 5.0, 0.0, 3.0]]
    )
    sizes = {"n_q": 3, "n_k": 4, "d_k": 4, "d_v": 5}
    return Fixture("large, masked", (2.0 * scores, np.eye(4), values, mask), sizes, phase=EXTREME)  # √d_k = 2


def _masked_drawn(seed: int) -> Fixture:
    return _attention("drawn, masked", np.random.default_rng(seed), *_sizes(seed), masked=True, seed=seed)


def _scores(fixture: Fixture) -> Fixture:
    sizes = {name: size for name, size in fixture.sizes.items() if name != "d_v"}
    return Fixture(fixture.name, fixture.arguments[:2], sizes, fixture.phase, fixture.may_raise, seed=fixture.seed)


# causal_mask ----------------------------------------------------------------------------------------------------------


def _mask_sizes(n_queries: int, n_keys: int) -> dict[str, int]:
    return {"n_queries": n_queries} | ({} if n_keys == n_queries else {"n_keys": n_keys})


@cache
def _causal_fixed() -> tuple[Fixture, ...]:
    return (
        Fixture("five tokens", (5,), _mask_sizes(5, 5)),
        Fixture("small", (3,), _mask_sizes(3, 3)),
        Fixture("one token", (1,), _mask_sizes(1, 1)),
        Fixture("as many keys, given", (4, 4), _mask_sizes(4, 4)),
        Fixture("a cache of four", (2, 6), _mask_sizes(2, 6), phase=MORE),
        Fixture("a cache of two", (3, 5), _mask_sizes(3, 5), phase=MORE),
        Fixture("one new token", (1, 4), _mask_sizes(1, 4), phase=MORE),
    )


def _causal_drawn(seed: int) -> Fixture:
    n = int(np.random.default_rng(seed).integers(4, 10))
    return Fixture("drawn", (n,), _mask_sizes(n, n), seed=seed)


_MAKERS: dict[str, tuple[Callable[[], tuple[Fixture, ...]], Callable[[int], Fixture]]] = {
    "softmax": (_softmax_fixed, _softmax_drawn),
    "attention_scores": (
        cache(lambda: tuple(_scores(one) for one in _attention_fixed() if one.phase != EXTREME)),
        lambda seed: _scores(_attention_drawn(seed)),
    ),
    "attention": (_attention_fixed, _attention_drawn),
    "causal_mask": (_causal_fixed, _causal_drawn),
    "scaled_dot_product_attention": (_masked_fixed, _masked_drawn),
}
