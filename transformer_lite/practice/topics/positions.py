"""Exercises on positions and embeddings: `positional_encoding` and `embed`."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.practice.comparing import same_mistake
from transformer_lite.practice.fixtures import MORE, Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise

if TYPE_CHECKING:
    from transformer_lite.practice.judging import _Judgement

EXERCISES = (
    Exercise(
        id="positional_encoding",
        version=1,
        chapter="embedding-and-positional-encoding",
        reference=equations.positional_encoding,
        parameters=("n_positions", "d_model"),
        optional=0,
        returns=("encoding",),
        axes=(("n_positions", "d_model"),),
        minutes=9,
        difficulty=2,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        variants=("PE2",),
        solution='''\
def positional_encoding(n_positions, d_model):
    """-> (n_positions, d_model): sines in the even columns, cosines in the odd ones."""
    positions = np.arange(n_positions)[:, np.newaxis]  # (n, 1)
    frequencies = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (d_model / 2,): 2i = 0, 2, 4, ...
    encoding = np.empty((n_positions, d_model))
    encoding[:, 0::2] = np.sin(positions * frequencies)
    encoding[:, 1::2] = np.cos(positions * frequencies)
    return encoding
''',
    ),
    Exercise(
        id="embed",
        version=1,
        chapter="embedding-and-positional-encoding",
        reference=equations.embed,
        parameters=("token_ids", "table", "encoding"),
        optional=0,
        returns=("embedded",),
        axes=(("n", "d_model"),),
        minutes=6,
        difficulty=1,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def embed(token_ids, table, encoding):
    """token_ids (..., n), table (vocab_size, d_model), encoding (n_positions, d_model) -> (..., n, d_model)."""
    n, d_model = token_ids.shape[-1], table.shape[-1]
    return table[token_ids] * np.sqrt(d_model) + encoding[:n]  # (..., n, d_model) + (n, d_model)
''',
    ),
)


# Inputs ---------------------------------------------------------------------------------------------------------------


def _sizes(name: str, n_positions: int, d_model: int, **more: Any) -> Fixture:
    return Fixture(name, (n_positions, d_model), {"n_positions": n_positions, "d_model": d_model}, **more)


@cache
def _encoding_fixed() -> tuple[Fixture, ...]:
    return (
        _sizes("rectangular", 7, 12),
        _sizes("square", 6, 6),
        _sizes("small", 3, 4),
        _sizes("two positions", 2, 10),
        _sizes("many positions", 48, 8),
    )


def _encoding_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    return _sizes("drawn", int(rng.choice([3, 5, 7, 9, 11])), int(rng.choice([4, 6, 8, 10, 14])), seed=seed)


def _embedding(
    name: str, rng: np.random.Generator, ids: Any, vocab_size: int, encoding: NDArray, batch: int | None = None, **more: Any
) -> Fixture:
    token_ids, (n_positions, d_model) = np.asarray(ids), encoding.shape
    sizes = {"n": token_ids.shape[-1], "vocab_size": vocab_size, "d_model": d_model, "n_positions": n_positions}
    table = rng.normal(size=(vocab_size, d_model))
    sizes |= {} if batch is None else {"batch": batch}
    return Fixture(name, (token_ids, table, encoding), sizes, **more)


@cache
def _embedding_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(31)
    # Every sequence has a token twice, none has its tokens in the order of their ids, and ids stay below the number of positions.
    return (
        _embedding("rectangular", rng, [3, 6, 1, 3, 0], 7, equations.positional_encoding(9, 6)),
        _embedding("square", rng, [2, 0, 3, 2], 4, equations.positional_encoding(4, 4)),
        Fixture(
            "small",
            (
                np.array([2, 0, 2]),
                np.array([[1.0, 0.0, -1.0, 2.0], [0.5, 0.5, 0.5, 0.5], [0.0, 1.0, 2.0, -1.0]]),
                equations.positional_encoding(3, 4),
            ),
            {"n": 3, "vocab_size": 3, "d_model": 4, "n_positions": 3},
        ),
        _embedding("one token", rng, [4], 5, equations.positional_encoding(6, 8)),
        _embedding(
            "batch", rng, [[1, 4, 1, 0], [3, 3, 2, 5]], 6, equations.positional_encoding(7, 10), 2, phase=MORE, may_raise=True
        ),
    )


def _embedding_drawn(seed: int) -> Fixture:
    """Learned positions: whoever makes sinusoids instead of using the encoding that is given is found out here."""
    rng = np.random.default_rng(seed)
    n, vocab_size, d_model = (int(rng.choice(sizes)) for sizes in ((3, 5, 7), (9, 11), (4, 6, 8, 10)))
    token_ids = rng.integers(0, vocab_size, size=n)
    token_ids[0], token_ids[-1] = vocab_size - 1, vocab_size - 1
    return _embedding("drawn", rng, token_ids, vocab_size, rng.normal(size=(max(n, vocab_size) + 1, d_model)), seed=seed)


FIXTURES = {
    "positional_encoding": (_encoding_fixed, _encoding_drawn),
    "embed": (_embedding_fixed, _embedding_drawn),
}


# Properties -----------------------------------------------------------------------------------------------------------


def _row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.3g}" for one in np.ravel(array)) + "]"


def _small(asking: Asking) -> NDArray:
    """The encoding of 3 positions in 4 dimensions, which can be worked by hand."""
    arrays = asking.seen["small"].arrays
    assert arrays is not None
    return arrays[0].astype(np.float64)


def _close(one: Any, other: Any) -> bool:
    return bool(np.shape(one) == np.shape(other) and np.allclose(one, other, rtol=1e-4, atol=1e-5))


def _first_row(wanted: list[float]) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        row = _small(asking)[0]
        return {"row": _row(row)} if _close(row, wanted) else None

    return shown


def _pair_1(angle: float) -> Callable[[Asking], Shown]:
    """Position 1 in pair 1: the sine of one frequency."""

    def shown(asking: Asking) -> Shown:
        value = float(_small(asking)[1, 2])
        return {"value": f"{value:.4f}"} if _close(value, np.sin(angle)) else None

    return shown


def _pe4(asking: Asking) -> Shown:
    row = _small(asking)[1]
    total = float(row[2] ** 2 + row[3] ** 2)
    if abs(total - 1) < 1e-3:
        total, first = float(row[0] ** 2 + row[1] ** 2), 0
    else:
        first = 2
    return {"total": f"{total:.4f}", "first": first, "second": first + 1} if abs(total - 1) > 1e-4 else None


def _pe5(asking: Asking) -> Shown:
    encoding = _small(asking)
    right = equations.positional_encoding(4, 4)
    return {"row": _row(encoding[0])} if _close(encoding, right[1:]) else None


def _pe6(asking: Asking) -> Shown:
    value = float(_small(asking)[1, 2])
    if not 0 < value < 1:
        return None
    base = np.arcsin(value) ** -2
    return {"value": f"{value:.4f}", "base": f"{base:.0f}"} if abs(base - 10000) > 1 else None


def _pe7(asking: Asking) -> Shown:
    value = float(_small(asking)[1, 0])
    return {"value": f"{value:.5f}"} if _close(value, np.sin(np.pi / 180)) else None


def _pe8(asking: Asking) -> Shown:
    encoding = _small(asking)
    return {"row": _row(encoding[1])} if _close(encoding, np.repeat(encoding[:, :1], 4, axis=1)) else None


def _pe9(asking: Asking) -> Shown:
    seen = asking.seen["many positions"]
    if seen.arrays is None or seen.arrays[0].shape != seen.expected[0].shape:
        return None
    squares = (seen.arrays[0].astype(np.float64) ** 2).sum(axis=-1)
    low, high = float(squares.min()), float(squares.max())
    if high - low < 0.02 * high:
        return None
    return {"low": f"{low:.3g}", "high": f"{high:.3g}", "right": seen.fixture.arguments[1] // 2}


def _token_twice(asking: Asking) -> tuple[int, int]:
    ids = list(asking.plain().fixture.arguments[0])
    j = next(j for j in range(len(ids)) if ids[j] in ids[:j])
    return ids.index(ids[j]), j


def _same_rows(asking: Asking) -> dict[str, Any] | None:
    """The two places of a token that stands in the sequence twice, if their rows are equal."""
    arrays = asking.plain().arrays
    i, j = _token_twice(asking)
    if arrays is None or len(arrays[0]) <= j or not _close(arrays[0][i], arrays[0][j]):
        return None
    return {"i": i, "j": j, "ids": str([int(one) for one in asking.plain().fixture.arguments[0]]), "row": _row(arrays[0][i][:3])}


def _factor(number: Callable[[int], float]) -> Callable[[Asking], Shown]:
    """With an encoding of 0, what the table was multiplied by."""

    def shown(asking: Asking) -> Shown:
        token_ids, table, encoding = asking.plain().fixture.arguments
        answer, d_model = asking.ask(token_ids, table, 0 * encoding), table.shape[1]
        if answer is None or not _close(answer[0], number(d_model) * table[token_ids]):
            return None
        return {"ratio": f"{number(d_model):.3g}", "right": f"{d_model**0.5:.3g}", "d_model": d_model}

    return shown


def _em4(asking: Asking) -> Shown:
    token_ids, table, encoding = asking.plain().fixture.arguments
    answer, d_model = asking.ask(token_ids, 0 * table, encoding), table.shape[1]
    if answer is None or answer[0].shape != (len(token_ids), d_model) or _close(answer[0], encoding[: len(token_ids)]):
        return None
    ratio = float(answer[0][0, 1] / encoding[0, 1])
    return {"ratio": f"{ratio:.3g}", "d_model": d_model} if _close(answer[0], ratio * encoding[: len(token_ids)]) else None


def _em5(asking: Asking) -> Shown:
    seen = asking.plain()
    if seen.arrays is None or seen.arrays[0].size != 2 * seen.expected[0].size:
        return None
    return {"shape": str(seen.arrays[0].shape), "right": str(seen.expected[0].shape)}


def _em6(asking: Asking) -> Shown:
    token_ids, table, encoding = asking.plain().fixture.arguments
    answer = asking.ask(token_ids, 0 * table, encoding)
    if answer is None or answer[0].any():
        return None
    return {"row": _row(encoding[0][:4])}


def _em7(asking: Asking) -> Shown:
    token_ids, table, encoding = asking.plain().fixture.arguments
    moved, arrays = asking.ask(token_ids, table, encoding + 1.0), asking.plain().arrays
    unmoved = moved is not None and arrays is not None and same_mistake(moved[0], arrays[0])
    return _same_rows(asking) if unmoved else None


def _em9(asking: Asking) -> Shown:
    token_ids, table, encoding = asking.plain().fixture.arguments
    other, arrays = asking.ask(token_ids, 0 * table, encoding), asking.plain().arrays
    if other is None or arrays is None or not same_mistake(other[0], arrays[0]):
        return None
    return {"row": _row(arrays[0][0][:4])}


PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    "PE1": _first_row([1.0, 0.0, 1.0, 0.0]),
    "PE2": _first_row([0.0, 0.0, 1.0, 1.0]),
    "PE3": _pair_1(10000 ** (-1 / 4)),
    "PE4": _pe4,
    "PE5": _pe5,
    "PE6": _pe6,
    "PE7": _pe7,
    "PE8": _pe8,
    "PE9": _pe9,
    "PE10": _pair_1(10000 ** (2 / 4)),
    "PE11": _first_row([0.0, 0.0, 0.0, 0.0]),
    "EM1": _factor(lambda d_model: 1.0),
    "EM2": _factor(lambda d_model: d_model**-0.5),
    "EM3": _factor(lambda d_model: float(d_model)),
    "EM4": _em4,
    "EM5": _em5,
    "EM6": _em6,
    "EM7": _em7,
    "EM8": _same_rows,
    "EM9": _em9,
}


# A trap that no list of numbers can hold --------------------------------------------------------------------------------


def _random_numbers(judgement: _Judgement) -> str | None:
    """PE9 for encodings drawn in any way: rows of different lengths, and no column that has anything of a wave.

    Every formula of this family has a slow column, where neighbouring positions are alike; in random numbers there is none.
    """
    asking = Asking(judgement, 0.0)
    arrays = asking.seen["many positions"].arrays if "many positions" in asking.seen else None
    if arrays is None or not np.isfinite(arrays[0]).all() or _pe9(asking) is None:
        return None
    encoding = arrays[0].astype(np.float64)
    if len(np.unique(encoding)) < 0.9 * encoding.size:
        return None
    centred = encoding - encoding.mean(axis=0)
    alike = np.abs((centred[1:] * centred[:-1]).sum(axis=0) / (centred**2).sum(axis=0))  # of each column, between neighbours
    return "PE9" if alike.max() < 0.5 and alike.mean() < 0.25 else None


BY_PROPERTY = {"positional_encoding": _random_numbers}


# What moves what: the rows of the table, token by token. An embedding mixes nothing, so the matrix is diagonal.
_PLACES = equations.positional_encoding(4, 4)
PROBES = {"embed": (np.random.default_rng(5).normal(size=(4, 4)), lambda moved: (np.arange(4), moved, _PLACES))}
