"""Attention with projections: split_heads, merge_heads, self_attention, cross_attention, multi_head_attention, padding_mask."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.equations.heads import Projections
from transformer_lite.practice.comparing import same_mistake
from transformer_lite.practice.fixtures import EXTREME, MORE, Fixture, irregular_mask
from transformer_lite.practice.registry import Exercise
from transformer_lite.traps.heads import multi_core

if TYPE_CHECKING:
    from transformer_lite.practice.judging import Seen
    from transformer_lite.practice.properties import Asking, Shown

EXERCISES: tuple[Exercise, ...] = (
    Exercise(
        id="self_attention",
        version=1,
        chapter="self-and-cross-attention",
        reference=equations.self_attention,
        parameters=("x", "projections", "mask"),
        optional=1,
        defaults=(None,),
        returns=("output", "weights"),
        axes=(("n", "d_model"), ("n", "n")),
        minutes=7,
        difficulty=2,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def self_attention(x, projections, mask=None):
    """x (..., n, d_model), four matrices (d_model, d_model) -> output (..., n, d_model), weights (..., n, n)."""
    w_q, w_k, w_v, w_o = projections
    queries, keys, values = x @ w_q, x @ w_k, x @ w_v  # (..., n, d_model), all from the same x
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1])  # (..., n, n)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ values @ w_o, weights
''',
    ),
    Exercise(
        id="cross_attention",
        version=1,
        chapter="self-and-cross-attention",
        reference=equations.cross_attention,
        parameters=("y", "memory", "projections", "mask"),
        optional=1,
        defaults=(None,),
        returns=("output", "weights"),
        axes=(("n_q", "d_model"), ("n_q", "n_k")),
        minutes=5,
        difficulty=2,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def cross_attention(y, memory, projections, mask=None):
    """y (..., n_q, d_model), memory (..., n_k, d_model) -> output (..., n_q, d_model), weights (..., n_q, n_k)."""
    w_q, w_k, w_v, w_o = projections
    queries = y @ w_q  # from the decoder
    keys, values = memory @ w_k, memory @ w_v  # both from the encoder's output
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1])  # (..., n_q, n_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ values @ w_o, weights
''',
    ),
    Exercise(
        id="padding_mask",
        version=1,
        chapter="masks",
        reference=equations.padding_mask,
        parameters=("token_ids", "pad_id"),
        optional=0,
        returns=("mask",),
        axes=(("1", "n_k"),),
        boolean=True,
        minutes=4,
        difficulty=1,
        importance=3,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def padding_mask(token_ids, pad_id):
    """(..., n_k) -> (..., 1, n_k), True = a real token."""
    return (token_ids != pad_id)[..., np.newaxis, :]  # the 1 broadcasts over the queries
''',
    ),
    Exercise(
        id="split_heads",
        version=1,
        chapter="multi-head-attention",
        reference=equations.split_heads,
        parameters=("x", "n_heads"),
        optional=0,
        returns=("heads",),
        axes=(("h", "n", "d_k"),),
        minutes=4,
        difficulty=2,
        importance=3,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def split_heads(x, n_heads):
    """(..., n, d_model) -> (..., h, n, d_model / h)."""
    *lead, n, d_model = x.shape
    x = x.reshape(*lead, n, n_heads, d_model // n_heads)  # (..., n, d_model) -> (..., n, h, d_k)
    return x.swapaxes(-3, -2)  # (..., n, h, d_k) -> (..., h, n, d_k)
''',
    ),
    Exercise(
        id="merge_heads",
        version=1,
        chapter="multi-head-attention",
        reference=equations.merge_heads,
        parameters=("x",),
        optional=0,
        returns=("merged",),
        axes=(("n", "d_model"),),
        minutes=3,
        difficulty=2,
        importance=3,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def merge_heads(x):
    """(..., h, n, d_v) -> (..., n, h * d_v)."""
    *lead, n_heads, n, d_v = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, n, n_heads * d_v)
''',
    ),
    Exercise(
        id="multi_head_attention",
        version=1,
        chapter="multi-head-attention",
        reference=equations.multi_head_attention,
        parameters=("x", "projections", "n_heads", "mask", "memory"),
        optional=2,
        defaults=(None, None),
        returns=("output", "weights"),
        axes=(("n_q", "d_model"), ("h", "n_q", "n_k")),
        minutes=8,
        difficulty=3,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def multi_head_attention(x, projections, n_heads, mask=None, memory=None):
    """x (..., n_q, d_model) -> output (..., n_q, d_model), weights (..., h, n_q, n_k)."""
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory

    def split(projected):  # (..., n, d_model) -> (..., h, n, d_k)
        *lead, n, d_model = projected.shape
        return projected.reshape(*lead, n, n_heads, d_model // n_heads).swapaxes(-3, -2)

    queries, keys, values = split(x @ w_q), split(source @ w_k), split(source @ w_v)
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1])  # (..., h, n_q, n_k)
    if mask is not None:
        if mask.ndim > 2:
            mask = mask[..., np.newaxis, :, :]  # the same for every head
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    heads = (weights @ values).swapaxes(-3, -2)  # (..., h, n_q, d_k) -> (..., n_q, h, d_k)
    return heads.reshape(x.shape) @ w_o, weights  # side by side, then W^O
''',
    ),
)


# Inputs ---------------------------------------------------------------------------------------------------------------


def _projections(rng: np.random.Generator, d_model: int) -> Projections:
    """Four matrices that keep numbers of the order of 1."""
    return Projections(*(1.3 * rng.normal(size=(d_model, d_model)) / np.sqrt(d_model) for _ in range(4)))


def _tokens(rng: np.random.Generator, n: int, d_model: int, batch: int | None = None) -> NDArray:
    return rng.normal(size=(n, d_model) if batch is None else (batch, n, d_model)) + 0.2


def _mask(rng: np.random.Generator, n_q: int, n_k: int, batch: int | None = None) -> NDArray[np.bool_]:
    """An irregular mask in which the first query sees the first key, so that a causal mask on top leaves no row empty."""
    if batch is not None:
        return np.stack([_mask(rng, n_q, n_k) for _ in range(batch)])
    while True:
        mask = irregular_mask(rng, n_q, n_k)
        if all(mask[i, : i + 1].any() for i in range(n_q)):
            return mask


def _self(name: str, rng: np.random.Generator, n: int, d: int, batch: int | None = None, **more: Any) -> Fixture:
    sizes = {"n": n, "d_model": d} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (_tokens(rng, n, d, batch), _projections(rng, d)), sizes, **more)


def _with_mask(name: str, fixture: Fixture, mask: NDArray, **more: Any) -> Fixture:
    return Fixture(name, (*fixture.arguments, mask), fixture.sizes, **more)


_SMALL_PROJECTIONS = Projections(
    np.array([[1.0, 0.0], [0.0, 2.0]]),
    np.array([[0.0, 1.0], [1.0, 0.0]]),
    np.array([[1.0, 2.0], [0.0, 1.0]]),
    np.array([[1.0, 0.0], [1.0, 1.0]]),
)


@cache
def _self_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(41)
    plain, square, batch = _self("rectangular", rng, 5, 6), _self("square", rng, 4, 4), _self("", rng, 4, 6, batch=3)
    padded = np.tile([True, True, True, False, False], (5, 1))
    return (
        plain,
        _with_mask("rectangular, masked", plain, _mask(rng, 5, 5)),
        square,
        _with_mask("square, masked", square, _mask(rng, 4, 4)),
        _with_mask("padded sentence", _self("", rng, 5, 3), padded),
        Fixture("small", (np.array([[1.0, 0.0], [1.0, 1.0], [0.0, 2.0]]), _SMALL_PROJECTIONS), {"n": 3, "d_model": 2}),
        Fixture("batch", batch.arguments, batch.sizes, phase=MORE, may_raise=True),
        _with_mask("batch, masked", batch, _mask(rng, 4, 4, 3), phase=MORE, may_raise=True),
        _with_mask("padding", plain, padded[:1], phase=MORE, remark_only=True),
        _large("self_attention", lambda rng: _self("large", rng, 4, 5, phase=EXTREME)),
    )


def _self_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n, d = (int(one) for one in rng.choice([3, 4, 5, 6, 7], size=2, replace=False))
    return _with_mask("drawn, masked", _self("", rng, n, d), _mask(rng, n, n), seed=seed)


def _large(exercise_id: str, make: Callable[[np.random.Generator], Fixture]) -> Fixture:
    """Scores of tens of thousands, far enough apart for the largest to take everything."""
    reference = {one.id: one.reference for one in EXERCISES}[exercise_id]
    rng = np.random.default_rng(77)
    while True:
        fixture = make(rng)
        x, *others = fixture.arguments
        near = np.log(reference(x, *others).weights)
        ordered = np.sort(1e4 * near, axis=-1)
        if (ordered[..., -1] - ordered[..., -2]).min() > 1000:
            return Fixture(fixture.name, (1e4 * x, *others), fixture.sizes, EXTREME)


def _cross(name: str, rng: np.random.Generator, n_q: int, n_k: int, d: int, batch: int | None = None, **more: Any) -> Fixture:
    sizes = {"n_q": n_q, "n_k": n_k, "d_model": d} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (_tokens(rng, n_q, d, batch), _tokens(rng, n_k, d, batch), _projections(rng, d)), sizes, **more)


@cache
def _cross_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(43)
    plain, square, batch = _cross("rectangular", rng, 4, 6, 5), _cross("square", rng, 4, 4, 4), _cross("", rng, 3, 5, 4, batch=2)
    y, memory = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[1.0, 1.0], [0.0, 2.0], [2.0, 0.0]])
    return (
        plain,
        _with_mask("rectangular, masked", plain, _mask(rng, 4, 6)),
        square,
        _with_mask("square, masked", square, _mask(rng, 4, 4)),
        Fixture("small", (y, memory, _SMALL_PROJECTIONS), {"n_q": 2, "n_k": 3, "d_model": 2}),
        Fixture("batch", batch.arguments, batch.sizes, phase=MORE, may_raise=True),
        _with_mask("batch, masked", batch, _mask(rng, 3, 5, 2), phase=MORE, may_raise=True),
        _with_mask("padding", plain, np.array([[True, True, True, True, False, False]]), phase=MORE, remark_only=True),
        _large("cross_attention", lambda rng: _cross("large", rng, 3, 4, 5, phase=EXTREME)),
    )


def _cross_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n_q, n_k, d = (int(one) for one in (*np.sort(rng.choice([3, 4, 5, 6, 7], size=2, replace=False)), rng.integers(3, 8)))
    return _with_mask("drawn, masked", _cross("", rng, n_q, n_k, d), _mask(rng, n_q, n_k), seed=seed)


def _heads(name: str, rng: np.random.Generator, n: int, d: int, h: int, batch: int | None = None, **more: Any) -> Fixture:
    sizes = {"n_q": n, "d_model": d, "h": h, "d_k": d // h} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (_tokens(rng, n, d, batch), _projections(rng, d), h), sizes, **more)


def _with_memory(name: str, fixture: Fixture, memory: NDArray, mask: NDArray | None = None, **more: Any) -> Fixture:
    return Fixture(name, (*fixture.arguments, mask, memory), {**fixture.sizes, "n_k": memory.shape[-2]}, **more)


@cache
def _multi_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(47)
    plain, square, batch = _heads("rectangular", rng, 5, 12, 3), _heads("square", rng, 4, 4, 2), _heads("", rng, 5, 6, 3, batch=2)
    memory = _tokens(rng, 7, 12)
    identity = np.eye(4)
    small = Projections(identity[[1, 0, 2, 3]], identity, identity[[0, 1, 3, 2]], np.tri(4))
    x = np.array([[1.0, 0.0, 2.0, 0.0], [0.0, 1.0, 0.0, 1.0]])
    return (
        plain,
        _with_mask("rectangular, masked", plain, _mask(rng, 5, 5)),
        square,
        _with_mask("square, masked", square, _mask(rng, 4, 4)),
        Fixture("small", (x, small, 2), {"n_q": 2, "d_model": 4, "h": 2, "d_k": 2}),
        _with_memory("with memory", plain, memory),
        _with_memory("with memory, masked", plain, memory, _mask(rng, 5, 7)),
        Fixture("batch", batch.arguments, batch.sizes, phase=MORE, may_raise=True),
        _with_mask("batch, masked", batch, _mask(rng, 5, 5, 2), phase=MORE, may_raise=True),
        _with_mask("padding", plain, np.array([[True, True, True, False, False]]), phase=MORE, remark_only=True),
        _large("multi_head_attention", lambda rng: _heads("large", rng, 3, 4, 2, phase=EXTREME)),
    )


_HEADS = ((6, 2), (6, 3), (8, 2), (8, 4), (9, 3), (10, 2), (12, 3), (12, 4))  # (d_model, h)


def _multi_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    (d, h), n = _HEADS[rng.integers(len(_HEADS))], int(rng.choice([5, 7]))
    return _with_mask("drawn, masked", _heads("", rng, n, d, h), _mask(rng, n, n), seed=seed)


def _split(name: str, rng: np.random.Generator, n: int, d: int, h: int, batch: int | None = None, **more: Any) -> Fixture:
    sizes = {"n": n, "d_model": d, "h": h, "d_k": d // h} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (_tokens(rng, n, d, batch), h), sizes, **more)


@cache
def _split_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(53)
    return (
        _split("rectangular", rng, 5, 12, 3),
        _split("square", rng, 6, 6, 2),
        Fixture("small", (np.array([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]]), 2), {"n": 2, "d_model": 4, "h": 2, "d_k": 2}),
        _split("batch", rng, 4, 6, 3, batch=5, phase=MORE, may_raise=True),
    )


def _split_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    d, h = _HEADS[rng.integers(len(_HEADS))]
    return _split("drawn", rng, int(rng.choice([5, 7])), d, h, seed=seed)


def _merge(name: str, rng: np.random.Generator, h: int, n: int, d_v: int, batch: int | None = None, **more: Any) -> Fixture:
    sizes = {"h": h, "n": n, "d_v": d_v, "d_model": h * d_v} | ({} if batch is None else {"batch": batch})
    return Fixture(name, (rng.normal(size=(h, n, d_v) if batch is None else (batch, h, n, d_v)) + 0.2,), sizes, **more)


@cache
def _merge_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(59)
    return (
        _merge("rectangular", rng, 3, 5, 4),
        _merge("square", rng, 3, 3, 3),
        Fixture("small", (np.array([[[1.0, 2.0], [5.0, 6.0]], [[3.0, 4.0], [7.0, 8.0]]]),), {"h": 2, "n": 2, "d_v": 2}),
        _merge("batch", rng, 3, 4, 2, batch=5, phase=MORE, may_raise=True),
    )


def _merge_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    h, n, d_v = (int(one) for one in rng.choice([2, 3, 4, 5, 6], size=3, replace=False))
    return _merge("drawn", rng, h, n, d_v, seed=seed)


def _sentences(name: str, rows: list[list[int]], pad_id: int = 0, **more: Any) -> Fixture:
    ids = np.array(rows)
    return Fixture(name, (ids, pad_id), {"batch": ids.shape[0], "n_k": ids.shape[1]}, **more)


@cache
def _padding_fixed() -> tuple[Fixture, ...]:
    return (
        _sentences("rectangular", [[5, 8, 3, 0, 0, 0], [4, 9, 2, 7, 6, 0], [8, 1, 6, 3, 9, 5], [7, 7, 0, 0, 0, 0]]),
        _sentences("square", [[6, 2, 9, 4], [3, 8, 0, 0], [5, 1, 7, 0], [2, 6, 0, 0]]),
        _sentences("small", [[7, 8, 0], [4, 5, 6]]),
        _sentences("another pad_id", [[5, 0, 3, 1, 1], [4, 9, 1, 1, 1], [0, 7, 6, 2, 8]], pad_id=1),
        _sentences("padding in front", [[0, 0, 5, 8], [0, 4, 9, 2], [3, 6, 8, 7]], phase=MORE),
        Fixture("one sentence", (np.array([7, 8, 4, 0, 0]), 0), {"n_k": 5}, phase=MORE, may_raise=True),
    )


def _padding_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    batch, n = (int(one) for one in rng.choice([3, 4, 5, 6, 7], size=2, replace=False))
    ids = rng.integers(1, 10, size=(batch, n))
    lengths = rng.integers(1, n - 1, size=batch)  # two positions of padding at least
    return _sentences("drawn", np.where(np.arange(n) < lengths[:, np.newaxis], ids, 0).tolist(), seed=seed)


FIXTURES: dict[str, tuple[Callable[[], tuple[Fixture, ...]], Callable[[int], Fixture]]] = {
    "self_attention": (_self_fixed, _self_drawn),
    "cross_attention": (_cross_fixed, _cross_drawn),
    "padding_mask": (_padding_fixed, _padding_drawn),
    "split_heads": (_split_fixed, _split_drawn),
    "merge_heads": (_merge_fixed, _merge_drawn),
    "multi_head_attention": (_multi_fixed, _multi_drawn),
}


# What moves what ------------------------------------------------------------------------------------------------------


@cache
def _probes() -> dict[str, tuple[NDArray, Callable[[NDArray], tuple[Any, ...]]]]:
    rng = np.random.default_rng(5)
    x, y, projections, causal = rng.normal(size=(4, 4)), rng.normal(size=(4, 4)), _projections(rng, 4), equations.causal_mask(4)
    return {
        "self_attention": (x, lambda moved: (moved, projections, causal)),
        "cross_attention": (x, lambda moved: (y, moved, projections)),  # the encoder's states are moved
        "multi_head_attention": (x, lambda moved: (moved, projections, 2, causal)),
    }


PROBES = _probes()


# Properties -----------------------------------------------------------------------------------------------------------


def _row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.3g}" for one in np.ravel(array)) + "]"


def _first(array: NDArray) -> NDArray:
    """Of a batch or several heads the first matrix."""
    while array.ndim > 2:
        array = array[0]
    return array


def _of(seen: Seen) -> tuple[tuple[NDArray, ...], NDArray]:
    """What came back, and its weights (or whatever came last)."""
    if seen.arrays is None:
        raise ValueError("no arrays came back")
    return seen.arrays, seen.arrays[-1]


def _replaced(arguments: tuple[Any, ...], **matrices: NDArray) -> tuple[Any, ...]:
    """The same arguments with other projections."""
    return tuple(one._replace(**matrices) if isinstance(one, Projections) else one for one in arguments)


def _matrices(seen: Seen) -> Projections:
    return next(one for one in seen.fixture.arguments if isinstance(one, Projections))


def _hidden_by(seen: Seen) -> NDArray[np.bool_]:
    mask = next(one for one in seen.fixture.arguments if isinstance(one, np.ndarray) and one.dtype == bool)
    return ~np.broadcast_to(mask, _of(seen)[1].shape)


def _undone_by(name: str, number: Callable[[Seen], float], formula: str) -> Callable[[Asking], Shown]:
    """A wrong scale is undone by multiplying one matrix."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        constant = number(seen)
        answer = asking.ask(*_replaced(seen.fixture.arguments, **{name: constant * getattr(_matrices(seen), name)}))
        if answer is None or not same_mistake(answer[-1], seen.expected[-1]):
            return None
        return {"constant": f"{constant:.3g}", "formula": formula, "d_k": _width(seen), "variant": "projected"}

    return shown


def _width(seen: Seen) -> int:
    return seen.fixture.sizes.get("d_k", seen.fixture.sizes["d_model"])


def _unmoved_by(part: int, *names: str, variant: str | None = None) -> Callable[[Asking], Shown]:
    """Matrices that are not used can be changed without any effect on the output (part 0) or the weights (part 1)."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        arrays, _ = _of(seen)
        answer = asking.ask(*_replaced(seen.fixture.arguments, **{name: -2 * getattr(_matrices(seen), name) for name in names}))
        if answer is None or not same_mistake(answer[part], arrays[part]):
            return None
        return {"row": _row(_first(arrays[part])[0])} | ({"variant": variant} if variant else {})

    return shown


def _either(*ways: Callable[[Asking], Shown]) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        return next((found for way in ways if (found := way(asking)) is not None), None)

    return shown


def _columns(asking: Asking) -> Shown:
    weights = _first(_of(asking.plain())[1])
    columns = weights.sum(axis=0)
    return {"columns": _row(columns), "rows": _row(weights.sum(axis=-1))} if np.allclose(columns, 1, atol=1e-4) else None


def _total(asking: Asking) -> Shown:
    weights = _first(_of(asking.plain())[1])
    total = float(weights.sum())
    return {"total": f"{total:.4g}", "rows": _row(weights.sum(axis=-1))} if abs(total - 1) < 1e-4 else None


def _not_renormalised(asking: Asking) -> Shown:
    seen = asking.masked()
    hidden, weights = _hidden_by(seen), _of(seen)[1]
    sums = weights.sum(axis=-1)
    if not weights[hidden].any() and sums.max() < 1 - 1e-6:
        return {"sums": _row(_first(sums[..., np.newaxis]))}
    # Only the mixing was masked: with W^V = W^O = 1 the output is the mean of what is seen.
    if np.allclose(sums, 1, atol=1e-4):
        identity = np.eye(_matrices(seen).w_v.shape[0])
        source = seen.fixture.arguments[1] if "memory" in asking.judgement.exercise.parameters[:2] else seen.fixture.arguments[0]
        ones = np.linalg.lstsq(source, np.ones_like(source), rcond=None)[0]
        if not np.allclose(source @ ones, 1):
            return {"sums": _row(_first(np.where(hidden, 0.0, weights).sum(axis=-1, keepdims=True))), "variant": "mixed"}
        answer = asking.ask(*_replaced(seen.fixture.arguments, w_v=ones, w_o=identity))
        return {"sums": _row(_first(answer[0])[:, 0]), "variant": "output"} if answer is not None else None
    return None


def _hidden_weight(asking: Asking) -> Shown:
    seen = asking.masked()
    hidden, weights = _hidden_by(seen), _of(seen)[1]
    first, where = _first(weights), _first(hidden)
    i, j = (int(one) for one in np.unravel_index(np.where(where, first, -np.inf).argmax(), first.shape))
    return {"i": i, "j": j, "weight": f"{float(first[i, j]):.3g}"} if first[i, j] > 1e-30 else None


def _inverted(asking: Asking) -> Shown:
    seen = asking.masked()
    hidden, weights = _hidden_by(seen), _of(seen)[1]
    if np.nan_to_num(weights[~hidden]).any():
        return None
    return {"hidden": f"{float(_first(weights).sum(axis=-1)[0]):.3g}"}


def _mask_unused(asking: Asking) -> Shown:
    with_mask, without = _of(asking.masked())[1], _of(asking.plain())[1]
    return {"difference": "0"} if np.array_equal(with_mask, without) else None


def _overflow(asking: Asking) -> Shown:
    _, weights = _of(asking.seen["large"])
    rows = weights.reshape(-1, weights.shape[-1])
    broken = next((row for row in rows if not np.isfinite(row).all() or abs(row.sum()) < 1e-9), None)
    return None if broken is None else {"row": _row(broken), "variant": "projected"}


def _transposed(asking: Asking) -> Shown:
    seen = asking.plain()
    answer = asking.ask(*_replaced(seen.fixture.arguments, w_o=_matrices(seen).w_o.T.copy()))
    if answer is None or not same_mistake(answer[0], seen.expected[0]):
        return None
    return {"row": _row(_first(_of(seen)[0][0])[0])}


def _zeroed(asking: Asking) -> Shown:
    seen = asking.seen["padded sentence"]
    weights = _first(_of(seen)[1])
    n = len(weights)
    if not np.allclose(weights[-1], 1 / n, atol=1e-4):  # a token of zeros asks with a query of zeros
        return None
    return {"weight": f"{float(weights[0, -1]):.3g}", "row": _row(weights[-1]), "n": n}


# Heads


def _reordered(seen: Seen, order: NDArray) -> tuple[Any, ...]:
    """The arguments with the heads' blocks of the first three matrices in another order."""
    h = seen.fixture.sizes["h"]
    matrices = {
        name: np.hstack([np.hsplit(getattr(_matrices(seen), name), h)[i] for i in order]) for name in ("w_q", "w_k", "w_v")
    }
    return _replaced(seen.fixture.arguments, **matrices)


def _blind_to_order(mean: bool) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        (output, *_), h = _of(seen)[0], seen.fixture.sizes["h"]
        if asking.judgement.exercise.id == "merge_heads":
            (x,) = seen.fixture.arguments
            answer = asking.ask(np.ones_like(x))
            if answer is None or not np.allclose(answer[0], 1 if mean else h):
                return None
            return {"shape": str(output.shape), "value": f"{float(answer[0].flat[0]):.3g}", "h": h, "variant": "merge"}
        answer = asking.ask(*_reordered(seen, np.arange(h)[::-1]))
        if answer is None or not same_mistake(answer[0], output):
            return None
        summed, _ = multi_core(*seen.fixture.arguments, together="sum")
        if not same_mistake((h if mean else 1) * output, summed):
            return {"row": _row(output[0]), "h": h, "variant": "order"}
        return {"row": _row(output[0]), "h": h}

    return shown


def _not_equivariant(part: int) -> Callable[[Asking], Shown]:
    """Tokens in the opposite order must give the same numbers in the opposite order."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        arrays, weights = _of(seen)
        x, *others = seen.fixture.arguments
        if weights.shape != seen.expected[-1].shape:
            n_q, h = seen.fixture.sizes["n_q"], seen.fixture.sizes["h"]
            return {"shape": str(weights.shape), "h": h, "n_q": n_q, "variant": "shape"} if weights.shape == (n_q, h, h) else None
        answer = asking.ask(x[::-1].copy(), *others)
        if answer is None:
            return None
        back = answer[0][::-1] if part == 0 else answer[1][..., ::-1, ::-1]
        difference = float(np.abs(back - arrays[part]).max())
        return {"difference": f"{difference:.3g}"} if difference > 1e-4 else None

    return shown


def _split_tokens(asking: Asking) -> Shown:
    seen = asking.plain()
    x, h = seen.fixture.arguments
    n, d = x.shape
    answer = asking.ask(np.repeat(np.arange(n, dtype=float)[:, np.newaxis], d, axis=1), h)
    if answer is None:
        return {"n": n, "h": h, "variant": "divides"} if n % h else None
    heads = answer[0]
    if heads.shape != (h, n, d // h):
        return {"shape": str(heads.shape), "wanted": str((h, n, d // h)), "variant": "wrong_shape"}
    tokens = heads[0, :, 0]
    return (
        None
        if np.array_equal(tokens, np.arange(n))
        else {"tokens": _row(tokens), "wanted": _row(np.arange(n)), "variant": "tokens"}
    )


def _split_features(asking: Asking) -> Shown:
    seen = asking.plain()
    x, h = seen.fixture.arguments
    n, d = x.shape
    answer = asking.ask(np.tile(np.arange(d, dtype=float), (n, 1)), h)
    if answer is None or answer[0].shape != (h, n, d // h) or np.array_equal(answer[0][0, 0], np.arange(d // h)):
        return None
    return {"features": _row(answer[0][0, 0]), "wanted": _row(np.arange(d // h)), "variant": "split"}


def _split_one(asking: Asking) -> Shown:
    seen = asking.plain()
    heads, sizes = _of(seen)[1], seen.fixture.sizes
    if heads.shape == seen.expected[0].shape:
        return None
    return {
        "shape": str(heads.shape),
        "wanted": str(seen.expected[0].shape),
        "h": sizes["h"],
        "d_k": sizes["d_k"],
        "variant": "split",
    }


def _merged_numbers(asking: Asking) -> Shown:
    """Heads filled with their own number show where they end up."""
    seen = asking.plain()
    (x,) = seen.fixture.arguments
    h, _, d_v = x.shape
    answer = asking.ask(np.broadcast_to(np.arange(h, dtype=float)[:, np.newaxis, np.newaxis], x.shape).copy())
    wanted = np.repeat(np.arange(h), d_v)
    if answer is None or np.array_equal(answer[0][0], wanted):
        return None
    return {"row": _row(answer[0][0]), "wanted": _row(wanted), "variant": "merge"}


def _interleaved(asking: Asking) -> Shown:
    seen = asking.plain()
    h, width = seen.fixture.sizes["h"], seen.fixture.sizes["d_k"]
    order = np.arange(h * width).reshape(h, width).T.ravel()  # column j·h + i of the new one is column i·d_k + j
    matrices = {name: getattr(_matrices(seen), name)[:, order].copy() for name in ("w_q", "w_k", "w_v")}
    answer = asking.ask(*_replaced(seen.fixture.arguments, **matrices))
    if answer is None or not same_mistake(answer[1], seen.expected[1]):
        return None
    return {"columns": _row(np.arange(width) * h), "wanted": _row(np.arange(width))}


def _one_head(asking: Asking) -> Shown:
    weights = _of(asking.plain())[1]
    n, h = asking.plain().fixture.sizes["n_q"], asking.plain().fixture.sizes["h"]
    return {"shape": str(weights.shape), "wanted": str((h, n, n)), "h": h} if weights.shape in ((n, n), (1, n, n)) else None


def _all_the_same(asking: Asking) -> Shown:
    weights = _of(asking.plain())[1]
    if not np.allclose(weights, weights[:1], atol=1e-6):
        return None
    return {"one": _row(weights[0, 0]), "other": _row(weights[-1, 0]), "last": len(weights) - 1}


def _over_heads(asking: Asking) -> Shown:
    weights = _of(asking.plain())[1]
    if not np.allclose(weights.sum(axis=0), 1, atol=1e-4):
        return None
    return {"heads": _row(weights[:, 0, 0]), "rows": _row(weights[0].sum(axis=-1))}


# Encoder and decoder


def _asked_by_memory(asking: Asking) -> Shown:
    seen = asking.plain()
    output, sizes = _of(seen)[0][0], seen.fixture.sizes
    if output.shape[-2] != sizes["n_k"]:
        return None
    return {"shape": str(output.shape), "n_q": sizes["n_q"], "n_k": sizes["n_k"]}


def _memory_unused(asking: Asking) -> Shown:
    multi = asking.judgement.exercise.id == "multi_head_attention"
    seen = asking.seen["with memory"] if multi else asking.plain()
    output, arguments = _of(seen)[0][0], list(seen.fixture.arguments)
    place = 4 if multi else 1
    arguments[place] = -2 * arguments[place]
    answer = asking.ask(*arguments)
    return {"row": _row(output[0])} if answer is not None and same_mistake(answer[0], output) else None


def _future_hidden(asking: Asking) -> Shown:
    seen = asking.plain()
    output, weights = _of(seen)[0]
    y, memory, *others = seen.fixture.arguments
    moved = memory.copy()
    moved[-1] = -2 * moved[-1]
    answer = asking.ask(y, moved, *others)
    if answer is None or not same_mistake(answer[0][0], output[0]):
        return None
    return {"row": _row(weights[0]), "last": len(memory) - 1}


def _only_last(asking: Asking) -> Shown:
    seen = asking.plain()
    output = _of(seen)[0][0]
    y, memory, *others = seen.fixture.arguments
    moved = np.vstack([-2 * memory[:-1], memory[-1:]])
    answer = asking.ask(y, moved, *others)
    return {"row": _row(output[0]), "n_k": len(memory)} if answer is not None and same_mistake(answer[0], output) else None


def _one_mean(asking: Asking) -> Shown:
    seen = asking.plain()
    output = _of(seen)[0][0]
    y, *others = seen.fixture.arguments
    answer = asking.ask(-2 * y, *others)
    if answer is None or not same_mistake(answer[0], output):
        return None
    return {"one": _row(output[0]), "other": _row(output[1])}


# Padding


def _sentence(asking: Asking) -> Shown:
    """What is hidden of one sentence."""
    for seen in asking.judgement.seen:
        truth, _ = asking.judgement.mask(seen)
        if truth is None or truth.shape != seen.expected[0].shape or truth.ndim != 3:
            continue
        for ids, yours, wanted in zip(seen.fixture.arguments[0], truth[:, 0], seen.expected[0][:, 0], strict=True):
            if not np.array_equal(yours, wanted):
                details = {"ids": str(ids.tolist()), "pad_id": seen.fixture.arguments[1]}
                return {**details, "yours": _bits(yours), "wanted": _bits(wanted)}
    return None


def _bits(mask: NDArray) -> str:
    return " ".join("1" if one else "0" for one in mask)


def _other_shape(asking: Asking) -> Shown:
    seen = asking.plain()
    truth, _ = asking.judgement.mask(seen)
    if truth is None or truth.shape == seen.expected[0].shape:
        return None
    sentence = truth if truth.ndim == 2 else truth[0]
    return {
        "shape": str(truth.shape),
        "wanted": str(seen.expected[0].shape),
        "row": _bits(sentence[0]),
        "ids": str(seen.fixture.arguments[0][0].tolist()),
    }


def _per_exercise(**ways: Callable[[Asking], Shown]) -> Callable[[Asking], Shown]:
    return lambda asking: ways[asking.judgement.exercise.id](asking)


_SHARED: dict[str, Callable[[Asking], Shown]] = {
    "AT1": _undone_by("w_q", lambda seen: _width(seen) ** -0.5, "1/√d_k"),
    "AT2": _undone_by("w_q", lambda seen: _width(seen) ** 0.5, "√d_k"),
    "AT7": _columns,
    "AT8": _total,
    "AT11": _not_renormalised,
    "AT12": _hidden_weight,
    "AT15": _inverted,
    "AT20": _mask_unused,
    "SM1": _overflow,
}

PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    # The traps of attention look different where the queries are made inside: under "exercise.trap".
    **{
        f"{exercise}.{key}": shown
        for exercise in ("self_attention", "cross_attention", "multi_head_attention")
        for key, shown in _SHARED.items()
    },
    "MH1": _blind_to_order(mean=False),
    "MH2": _blind_to_order(mean=True),
    "MH3": _unmoved_by(0, "w_o"),
    "MH4": _unmoved_by(0, "w_q", "w_k", "w_v"),
    "MH5": _per_exercise(split_heads=_split_tokens, multi_head_attention=_not_equivariant(1)),
    "MH6": _per_exercise(merge_heads=_merged_numbers, multi_head_attention=_not_equivariant(0)),
    "MH7": _undone_by("w_q", lambda seen: seen.fixture.sizes["h"] ** 0.5, "√h"),
    "MH8": _all_the_same,
    "MH9": _either(_unmoved_by(1, "w_k"), _unmoved_by(1, "w_q", variant="queries")),
    "MH10": _over_heads,
    "MH11": _per_exercise(split_heads=_split_features, merge_heads=_merged_numbers, multi_head_attention=_interleaved),
    "MH12": _per_exercise(split_heads=_split_one, multi_head_attention=_one_head),
    "MH13": _transposed,
    "CA1": _asked_by_memory,
    "CA2": _memory_unused,
    "CA3": _future_hidden,
    "CA6": _only_last,
    "CA7": _one_mean,
    "PM1": _sentence,
    "PM2": _other_shape,
    "PM3": _sentence,
    "PM4": _sentence,
    "PM5": _zeroed,
    "PM6": _other_shape,
    "PM7": _sentence,
}
