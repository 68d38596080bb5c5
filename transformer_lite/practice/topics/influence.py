"""The influence matrix: the course's own tool, so the catalogue has no trap of it; laws say what is off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.practice.fixtures import Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise

if TYPE_CHECKING:
    from transformer_lite.practice.judging import _Judgement

EXERCISES = (
    Exercise(
        id="influence_matrix",
        version=1,
        chapter="why-the-transformer",
        reference=equations.influence_matrix,
        parameters=("function", "x"),
        optional=0,
        returns=("influence",),
        axes=(("n_out", "n_in"),),
        boolean=True,
        minutes=10,
        difficulty=2,
        importance=2,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def influence_matrix(function, x):
    """function: (n_in, d) -> (n_out, d'), x (n_in, d) -> (n_out, n_in), True where output i moves when input j moves."""
    still = function(x)
    columns = []
    for j in range(len(x)):
        moved = x.copy()  # only one row at a time is moved
        moved[j] += 1.0
        columns.append((function(moved) != still).any(axis=1))  # (n_out, d') -> (n_out,)
    return np.stack(columns, axis=1)  # one column per input row
''',
    ),
)

# Functions to look at: they travel to the worker, so they are classes of a module, not lambdas ---------------------------


@dataclass(frozen=True)
class Window:
    """A convolution along the positions: row i of the output reads the rows i − r to i + r of the input; zeros outside."""

    kernel: NDArray[np.floating]  # (2r + 1,)

    def __call__(self, x: NDArray) -> NDArray:
        reach = len(self.kernel) // 2
        padded = np.pad(x, ((reach, reach), (0, 0)))  # (n + 2r, d)
        return np.tanh(sum(weight * padded[o : o + len(x)] for o, weight in enumerate(self.kernel)))


@dataclass(frozen=True)
class Recurrence:
    """h_t = tanh(W h_{t−1} + U x_t): row i of the output reads the rows 0 to i."""

    w: NDArray[np.floating]  # (d_h, d_h)
    u: NDArray[np.floating]  # (d_h, d)

    def __call__(self, x: NDArray) -> NDArray:
        state, states = np.zeros(len(self.w)), []
        for row in x:
            state = np.tanh(self.w @ state + self.u @ row)
            states.append(state)
        return np.stack(states)


@dataclass(frozen=True)
class Pairs:
    """Adds up neighbouring rows two by two: (2n, d) -> (n, d)."""

    def __call__(self, x: NDArray) -> NDArray:
        return x[0::2] + 2.0 * x[1::2]


@dataclass(frozen=True)
class Next:
    """Row i of the output is row i plus the row after it."""

    def __call__(self, x: NDArray) -> NDArray:
        return x + np.vstack([x[1:], 0.0 * x[:1]])


@dataclass(frozen=True)
class LastFeature:
    """Row i of the output reads the last feature of the rows from i on."""

    def __call__(self, x: NDArray) -> NDArray:
        later = np.cumsum(x[::-1, -1])[::-1]  # (n,)
        return np.stack([later, -2.0 * later], axis=1)


@dataclass(frozen=True)
class BothSides:
    """The first feature of row i reads the rows from i on, the second one the rows up to i."""

    def __call__(self, x: NDArray) -> NDArray:
        rows = x.sum(axis=1)  # (n,)
        return np.stack([np.cumsum(rows[::-1])[::-1], np.cumsum(rows)], axis=1)


@dataclass(frozen=True)
class Everything:
    """Every row of the output reads every row of the input."""

    def __call__(self, x: NDArray) -> NDArray:
        return np.tanh(x + x.mean(axis=0))


# Inputs ---------------------------------------------------------------------------------------------------------------


def _looked_at(name: str, function: Callable[[NDArray], NDArray], x: NDArray, **more: Any) -> Fixture:
    return Fixture(name, (function, x), {"n_out": len(function(x)), "n_in": len(x)}, **more)


def _recurrence(rng: np.random.Generator, d: int) -> Recurrence:
    return Recurrence(0.9 * np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(3, d)) / np.sqrt(d))


@cache
def _fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(71)
    return (
        _looked_at("rectangular", Pairs(), rng.normal(size=(8, 3))),
        _looked_at("a recurrence", _recurrence(rng, 2), 0.5 * rng.normal(size=(5, 2))),
        _looked_at("small", Next(), np.array([[1.0, 0.0], [0.0, 2.0], [3.0, 1.0]])),
        _looked_at("a window", Window(np.array([0.4, -0.3, 0.2])), 0.5 * rng.normal(size=(6, 2))),
        _looked_at("one feature only", LastFeature(), rng.normal(size=(4, 3))),
        _looked_at("both sides", BothSides(), rng.normal(size=(5, 2))),
        _looked_at("everything", Everything(), 0.5 * rng.normal(size=(4, 2))),
    )


def _drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(4, 8)), int(rng.integers(2, 5))
    return _looked_at("drawn", _recurrence(rng, d), 0.5 * rng.normal(size=(n, d)), seed=seed)


FIXTURES = {"influence_matrix": (_fixed, _drawn)}
PROPERTIES: dict[str, Callable[[Asking], Shown]] = {}
PROBES: dict[str, Any] = {}

# What is off ----------------------------------------------------------------------------------------------------------

Wrong = Callable[[Callable[[NDArray], NDArray], NDArray, NDArray], NDArray]


def _differences(function: Callable[[NDArray], NDArray], x: NDArray, features: slice = slice(None)) -> NDArray[np.bool_]:
    """(n_out, n_in, d'): which output features move when the given features of input row j do."""
    still, columns = function(x), []
    for j in range(len(x)):
        moved = x.copy()
        moved[j, features] += 1.0
        columns.append(np.abs(function(moved) - still) > 1e-9)
    return np.stack(columns, axis=1)


_OFF: dict[str, Wrong] = {  # what an answer with this mistake gives; (function, x, the right answer)
    "influence_inverted": lambda function, x, right: ~right,
    "influence_mirrored": lambda function, x, right: right.T if right.shape[0] == right.shape[1] else right,
    "influence_whole": lambda function, x, right: np.broadcast_to(right.any(axis=0), right.shape),
    "influence_own_row": lambda function, x, right: right & np.eye(*right.shape, dtype=bool),
    "influence_not_undone": lambda function, x, right: np.logical_or.accumulate(right, axis=1),
    "influence_first_in": lambda function, x, right: _differences(function, x, slice(0, 1)).any(axis=-1),
    "influence_first_out": lambda function, x, right: _differences(function, x)[..., 0],
    "influence_all_out": lambda function, x, right: _differences(function, x).all(axis=-1),
}


def _off(judgement: _Judgement) -> list[dict[str, Any]]:
    """The one thing that explains the answer on every input, or how many entries are True on the first that is wrong."""
    truths = [(judgement.mask(seen)[0], seen) for seen in judgement.seen]
    known = [(truth, seen) for truth, seen in truths if truth is not None and truth.shape == seen.expected[0].shape]
    for law, wrong in _OFF.items():
        if len(known) == len(truths) and all(
            np.array_equal(truth, wrong(*seen.fixture.arguments, seen.expected[0])) for truth, seen in known
        ):
            return [{"law": law}]
    truth, seen = next((one for one in known if not np.array_equal(one[0], one[1].expected[0])), (None, None))
    if truth is None or seen is None:
        return []
    return [{"law": "count", "yours": int(truth.sum()), "right": int(seen.expected[0].sum())}]


LAWS = {"influence_matrix": _off}
