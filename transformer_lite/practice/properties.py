"""One property per trap that a learner can check with two lines of code, shown with the numbers that their function gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.practice.comparing import same_mistake

if TYPE_CHECKING:
    from transformer_lite.practice.judging import Seen, _Judgement

Shown = dict[str, Any] | None


class Asking:
    """Calls the learner's function a few more times, and knows what it gave before."""

    def __init__(self, judgement: _Judgement, limit: float) -> None:
        self.judgement, self.limit = judgement, limit
        self.seen = {seen.fixture.name: seen for seen in judgement.seen}

    def ask(self, *arguments: Any) -> tuple[NDArray, ...] | None:
        outcomes = self.judgement.run([arguments], self.limit).outcomes
        if not outcomes or outcomes[0].error is not None or not outcomes[0].values:
            return None
        arrays = tuple(value.array for value in outcomes[0].values)
        return None if any(array is None for array in arrays) else arrays  # type: ignore[return-value]

    def plain(self) -> Seen:
        """The input whose sizes all differ, without a mask."""
        return self.seen.get("rectangular") or self.judgement.seen[0]

    def masked(self) -> Seen:
        return self.seen["rectangular, masked"]


def show(key: str, judgement: _Judgement, limit: float) -> Shown:
    """The numbers of a trap's property, or None if this function does not show it (two mistakes at once may hide it)."""
    from transformer_lite.practice import topics

    own = topics.properties()
    property_of = own.get(f"{judgement.exercise.id}.{key}") or _PROPERTIES.get(key) or own.get(key)
    if property_of is None:
        return None
    try:
        return property_of(Asking(judgement, limit))
    except (ValueError, IndexError, KeyError, TypeError):
        return None


def _row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.3g}" for one in np.ravel(array)) + "]"


def _weights(seen: Seen) -> NDArray:
    assert seen.arrays is not None
    return seen.arrays[-1]


def _of_vector(x: list[float], test: Callable[[NDArray], bool]) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        for given in (np.array([x]), np.array(x)):
            answer = asking.ask(given)
            if answer is not None and test(answer[0].ravel()):
                return {"given": _row(np.array(x)), "gave": _row(answer[0])}
        return None

    return shown


def _sm1(asking: Asking) -> Shown:
    def broken(row: NDArray) -> bool:
        return not np.isfinite(row).all() or abs(row.sum()) < 1e-9

    if "values" in asking.judgement.exercise.parameters:
        queries, *others = asking.plain().fixture.arguments[:3]
        answer = asking.ask(1e4 * queries, *others)
        shown = answer is not None and any(broken(row) for row in answer[-1])
        return {"row": _row(next(row for row in answer[-1] if broken(row))), "variant": "attention"} if shown and answer else None
    return _of_vector([1000.0, 0.0], broken)(asking) or _of_vector([10000.0, 0.0], broken)(asking)


def _at7(asking: Asking) -> Shown:
    shown = _sm2(asking)
    if shown is not None:
        return shown
    batch = asking.seen.get("batch")  # axis=1 is the keys without a batch axis and the queries with one
    if batch is None or batch.arrays is None:
        return None
    return {"columns": _row(_weights(batch)[0].sum(axis=0)), "rows": _row(_weights(batch)[0].sum(axis=-1)), "variant": "batch"}


def _sm2(asking: Asking) -> Shown:
    weights = _weights(asking.plain())
    columns, rows = weights.sum(axis=0), weights.sum(axis=-1)
    return {"columns": _row(columns), "rows": _row(rows)} if np.allclose(columns, 1, atol=1e-4) else None


def _total(asking: Asking) -> Shown:
    weights = _weights(asking.plain())
    total = float(weights.sum())
    return {"total": f"{total:.4g}", "rows": _row(weights.sum(axis=-1))} if abs(total - 1) < 1e-4 else None


def _sm4(asking: Asking) -> Shown:
    (x,) = asking.plain().fixture.arguments
    tripled = asking.ask(3 * x)
    if tripled is None or not same_mistake(tripled[0], _weights(asking.plain())):
        return None
    return {"low": f"{float(_weights(asking.plain()).min()):.3g}"}


def _only_0_and_1(asking: Asking) -> Shown:
    weights = _weights(asking.plain())
    return {"row": _row(weights[0])} if np.isin(weights, (0, 1)).all() else None


def _sm8(asking: Asking) -> Shown:
    two = _of_vector([1.0, 0.0], lambda row: bool(np.isclose(row[0], 2 / 3, atol=1e-4)))(asking)
    ten = None if two else _of_vector([1.0, 0.0], lambda row: bool(np.isclose(row[0], 10 / 11, atol=1e-4)))(asking)
    return two or (ten and {**ten, "variant": "ten"})


def _sm9(asking: Asking) -> Shown:
    plain = asking.plain()
    x, weights = plain.fixture.arguments[0], _weights(plain)
    largest = weights[np.arange(len(x)), x.argmax(axis=-1)]
    return {"row": _row(weights[0]), "given": _row(x[0])} if np.isclose(largest, 0, atol=1e-9).any() else None


def _scaled_queries(formula: str, number: Callable[[dict[str, int]], float]) -> Callable[[Asking], Shown]:
    """A wrong scale is undone by multiplying the queries."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        constant = float(number(seen.fixture.sizes))
        queries, *others = seen.fixture.arguments
        answer = asking.ask(constant * queries, *others)
        if answer is None or not same_mistake(answer[-1], seen.expected[-1]):
            return None
        return {
            "constant": f"{constant:.3g}",
            "formula": formula,
            **{k: v for k, v in seen.fixture.sizes.items() if k != "batch"},
        }

    return shown


def _at5(asking: Asking) -> Shown:
    for symbol in ("n_k", "n_q"):
        shown = _scaled_queries(f"√({symbol}/d_k)", lambda sizes, symbol=symbol: (sizes[symbol] / sizes["d_k"]) ** 0.5)(asking)
        if shown is not None:
            return {**shown, "length": symbol}
    return {"variant": "plain"}


def _at6(asking: Asking) -> Shown:
    seen = asking.plain()
    sums, d_k = _weights(seen).sum(axis=-1), seen.fixture.sizes["d_k"]
    if np.allclose(sums, d_k**-0.5, atol=1e-4):
        return {"sum": f"{float(sums[0]):.3g}", "d_k": d_k}
    # Only the output was divided: values of 1 must average to 1.
    answer = asking.ask(*seen.fixture.arguments[:2], np.ones_like(seen.fixture.arguments[2]))
    if answer is not None and np.allclose(answer[0], d_k**-0.5, atol=1e-4):
        return {"sum": f"{float(answer[0].flat[0]):.3g}", "d_k": d_k, "variant": "output"}
    return None


def _at9(asking: Asking) -> Shown:
    queries, *others = asking.plain().fixture.arguments
    once, twice = (asking.plain().arrays or (None,))[0], asking.ask(2 * queries, *others)
    if once is None or twice is None:
        return None
    if not same_mistake(twice[0], 2 * once):
        moved = asking.ask(queries, others[0], others[1] + 100.0, *others[2:])
        return {"row": _row(once[0]), "variant": "shift"} if moved is not None and same_mistake(moved[0], once) else None
    return {"once": _row(once[0]), "twice": _row(twice[0][0])}


def _at10(asking: Asking) -> Shown:
    seen = asking.plain()
    queries, keys, values = seen.fixture.arguments[:3]
    if seen.outcome.error is not None:
        return {"variant": "roles", "d_k": seen.fixture.sizes["d_k"], "d_v": seen.fixture.sizes["d_v"]}
    other = asking.ask(queries, keys, values + 100.0)
    if other is None or seen.arrays is None or not same_mistake(other[0], seen.arrays[0]):
        return None
    return {"shape": str(seen.arrays[0].shape), **{k: seen.fixture.sizes[k] for k in ("n_q", "d_k", "d_v")}}


def _at11(asking: Asking) -> Shown:
    seen = asking.masked()
    mask, weights, sizes = seen.fixture.arguments[3], _weights(seen), seen.fixture.sizes
    sums = weights.sum(axis=-1)
    if not weights[~mask].any() and sums.max() < 1 - 1e-6:
        return {"sums": _row(sums)}
    answer = asking.ask(*seen.fixture.arguments[:2], np.ones((sizes["n_k"], sizes["d_v"])), mask)
    if answer is not None and answer[0].max() < 1 - 1e-6:
        return {"sums": _row(answer[0][:, 0]), "variant": "output"}
    return None


def _hidden(asking: Asking) -> Shown:
    """A hidden key that still gets weight."""
    seen = asking.masked()
    mask, weights = seen.fixture.arguments[3], _weights(seen)
    hidden = np.where(mask, -np.inf, weights)
    i, j = (int(one) for one in np.unravel_index(hidden.argmax(), hidden.shape))
    return {"i": i, "j": j, "weight": f"{float(weights[i, j]):.3g}"} if weights[i, j] > 1e-30 else None


def _at13(asking: Asking) -> Shown:
    shown = _hidden(asking)
    if shown is not None and float(shown["weight"]) > 1e-6:
        return shown
    seen = asking.seen.get("large, masked")
    if seen is None or seen.arrays is None:
        return shown
    mask, weights = seen.fixture.arguments[3], _weights(seen)
    return {"sum": f"{float(np.where(mask, 0.0, weights).sum(axis=-1).max()):.3g}", "variant": "large"}


def _unmasked_difference(asking: Asking) -> float | None:
    masked, plain = asking.masked(), asking.seen["rectangular"]
    if masked.arrays is None or plain.arrays is None:
        return None
    return float(np.abs(_weights(masked) - _weights(plain)).max())


def _at14(asking: Asking) -> Shown:
    difference = _unmasked_difference(asking)
    return {"difference": f"{difference:.2g}"} if difference else None


def _at20(asking: Asking) -> Shown:
    return {"difference": "0"} if _unmasked_difference(asking) == 0.0 else None


def _at15(asking: Asking) -> Shown:
    seen = asking.masked()
    mask, weights = seen.fixture.arguments[3], _weights(seen)
    if weights[mask].any():
        return None
    return {"hidden": f"{float(weights[~mask].sum() / len(weights)):.3g}"}


def _at16(asking: Asking) -> Shown:
    seen = asking.plain()
    answer = asking.ask(0 * seen.fixture.arguments[0], *seen.fixture.arguments[1:3])
    n_k = seen.fixture.sizes["n_k"]
    if answer is None:
        return None
    if np.allclose(answer[-1], 0.5):
        return {"weight": "0.5", "n_k": n_k}
    # Divided by the sum of the row: for queries of 0 it looks right, so look at how slowly the weights react.
    far = asking.ask(100.0 * seen.fixture.arguments[0], *seen.fixture.arguments[1:3])
    return None if far is None else {"row": _row(far[-1][0]), "variant": "normalised"}


def _at17(asking: Asking) -> Shown:
    seen = asking.plain()
    answer = asking.ask(7 * seen.fixture.arguments[0], *seen.fixture.arguments[1:])
    if answer is None or not same_mistake(answer[-1], _weights(seen)):
        return None
    return {"row": _row(_weights(seen)[0])}


def _at19(asking: Asking) -> Shown:
    seen = asking.plain()
    queries, keys, *others = seen.fixture.arguments
    answer = asking.ask(queries + 1.0, keys + 1.0, *others)
    if answer is None or not same_mistake(answer[-1], _weights(seen)):
        return None
    return {"row": _row(_weights(seen)[0])}


def _counted(*arguments: int) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        for seen in asking.judgement.seen:
            if seen.fixture.arguments == arguments:
                truth, _ = asking.judgement.mask(seen)
                if truth is None:
                    return None
                call = ", ".join(str(one) for one in arguments)
                row = min(1, len(truth) - 1)
                yours = " ".join("1" if one else "0" for one in truth[row])
                wanted = " ".join("1" if one else "0" for one in seen.expected[0][row])
                counts = {"count": int(truth.sum()), "right": int(seen.expected[0].sum())}
                return {"call": call, **counts, "row": row, "yours": yours, "wanted": wanted}
        return None

    return shown


_PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    "SM1": _sm1,
    "SM2": _sm2,
    "SM3": _total,
    "SM4": _sm4,
    "SM5": _of_vector([0.0, 0.0, 0.0, 0.0], lambda row: np.allclose(row, 0.5)),
    "SM6": _only_0_and_1,
    "SM7": _of_vector([1.0, 0.0], lambda row: row[0] < row[1]),
    "SM8": _sm8,
    "SM9": _sm9,
    "AT1": _scaled_queries("1/√d_k", lambda sizes: sizes["d_k"] ** -0.5),
    "AT2": _scaled_queries("√d_k", lambda sizes: sizes["d_k"] ** 0.5),
    "AT3": _scaled_queries("1/d_k", lambda sizes: 1 / sizes["d_k"]),
    "AT4": _scaled_queries("√(d_v/d_k)", lambda sizes: (sizes["d_v"] / sizes["d_k"]) ** 0.5),
    "AT5": _at5,
    "AT6": _at6,
    "AT7": _at7,
    "AT8": _total,
    "AT9": _at9,
    "AT10": _at10,
    "AT11": _at11,
    "AT12": _hidden,
    "AT13": _at13,
    "AT14": _at14,
    "AT15": _at15,
    "AT16": _at16,
    "AT17": _at17,
    "AT18": _only_0_and_1,
    "AT19": _at19,
    "AT20": _at20,
    **{f"CM{number}": _counted(5) for number in range(1, 8)},
    **{f"CR{number}": _counted(2, 6) for number in range(1, 4)},
}
