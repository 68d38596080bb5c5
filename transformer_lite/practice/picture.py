"""What came back beside what is right, and the influence matrix of both: the picture of a verdict."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.language import message
from transformer_lite.practice.judging import expected_of
from transformer_lite.practice.registry import exercise

if TYPE_CHECKING:
    from transformer_lite.explore.figures import Matrix, Picture
    from transformer_lite.practice.verdict import Case, CheckResult

PREFERRED = ("five tokens", "small")
LIMIT = 1.0  # seconds for finding out what moves what


def picture(result: CheckResult, lang: str) -> Picture:
    """Draw the matrix that came back beside the right one, then the influence matrices (see `CheckResult.show`)."""
    with warnings.catch_warnings():  # of numbers that are complex, or too large: that is not about the picture
        warnings.simplefilter("ignore")
        return _picture(result, lang)


def _picture(result: CheckResult, lang: str) -> Picture:
    from transformer_lite.explore import figures

    asked = exercise(result.exercise)
    case = _case(result)
    which = _telling(case)
    name = asked.returns[which]
    if case is None:
        right = expected_of(asked, _arguments(result.exercise))[which]
        yours = None
    else:
        right = case.right[which]
        yours = None if case.yours is None or len(case.yours) != len(case.right) else case.yours[which]
    by_token = result.exercise.endswith("attention") or result.exercise in ("attention_scores", "causal_mask")
    plain = {"row_axis": _say("rows", lang), "column_axis": _say("columns", lang)}
    axes: dict[str, Any] = {} if by_token and which == -1 else plain
    drawn: list[Matrix] = []
    if (
        yours is not None and yours.ndim == 3 and yours.shape == right.shape
    ):  # a mistake that only a batch shows: its first sequence
        yours, right = yours[0], right[0]
    yours, right = _flat(yours), _flat(right)
    if yours is not None and yours.ndim == 2 and yours.size:
        drawn.append(figures.Matrix(_drawable(yours), _say("yours", lang, name=name), mark=_worst(yours, right), **axes))
    drawn.append(figures.Matrix(right, _say("right", lang, name=name), **axes))
    moves = {"row_axis": _say("outputs", lang), "column_axis": _say("inputs", lang)}
    own, reference = _influences(result)
    if own is not None:
        drawn.append(figures.Matrix(own, _say("influence_yours", lang), **moves))
    if reference is not None:
        drawn.append(figures.Matrix(reference, _say("influence_right", lang), **moves))
    title = _say("title", lang, exercise=message(f"practice.exercise.{result.exercise}.title", lang))
    note = _sentence(yours, right, lang)
    if yours is not None and reference is not None:
        note += ("" if lang == "ja" else " ") + _say("moves", lang)
    return figures.matrices_picture(drawn, title=title, lang=lang, note=note)


def _say(key: str, lang: str, **details: Any) -> str:
    return message(f"practice.picture.{key}", lang, **details)


def _case(result: CheckResult) -> Case | None:
    """A small input; if nothing is wrong on it, the first on which something is."""
    named = {case.name: case for case in result.cases}
    order = [named[name] for name in PREFERRED if name in named] + list(result.cases)
    telling = [case for case in order if case.yours is not None and len(case.yours) == len(case.right) and _differs(case)]
    flat = [case for case in telling if case.right[-1].ndim == 2]
    return next(iter(flat or telling or order), None)


def _differs(case: Case) -> bool:
    assert case.yours is not None
    return any(_apart(one, other) for one, other in zip(case.yours, case.right, strict=True))


def _apart(one: NDArray, other: NDArray) -> bool:
    return one.shape != other.shape or not np.allclose(one, other, rtol=1e-4, atol=1e-5)


def _telling(case: Case | None) -> int:
    """Which of the things returned to draw: the weights, or what differs where the weights are right (counted from the end)."""
    if case is None or case.yours is None or len(case.yours) != len(case.right):
        return -1
    wrong = [place for place in range(-1, -len(case.right) - 1, -1) if _apart(case.yours[place], case.right[place])]
    return wrong[0] if wrong else -1


def _arguments(exercise_id: str) -> tuple[Any, ...]:
    from transformer_lite.practice.fixtures import fixtures

    return fixtures(exercise_id, 0)[0].arguments


def _flat(array: NDArray | None) -> NDArray | None:
    """A matrix that can be drawn: of a batch or several heads the first, a vector or a number as one row."""
    if array is None:
        return None
    while array.ndim > 2:
        array = array[0]
    return np.atleast_2d(array)


def _drawable(array: NDArray) -> NDArray:
    return array if array.dtype == bool else np.nan_to_num(array.astype(np.float64), nan=0.0, posinf=0.0, neginf=0.0)


def _worst(yours: NDArray, right: NDArray) -> tuple[int, int] | None:
    if yours.shape != right.shape:
        return None
    difference = np.abs(_drawable(yours).astype(np.float64) - right.astype(np.float64))
    if difference.max() < 1e-6:
        return None
    row, column = np.unravel_index(difference.argmax(), difference.shape)
    return int(row), int(column)


def _sentence(yours: NDArray | None, right: NDArray, lang: str) -> str:
    if yours is None:
        return _say("nothing", lang)
    if yours.shape != right.shape:
        return _say("shapes", lang, yours=str(yours.shape), right=str(right.shape))
    worst = _worst(yours, right)
    if worst is None:
        return _say("same", lang)
    count = int((np.abs(_drawable(yours).astype(np.float64) - right.astype(np.float64)) > 1e-6).sum())
    return _say("differ", lang, count=count, total=right.size, row=worst[0], column=worst[1])


# Who moves whom -------------------------------------------------------------------------------------------------------


def _influences(result: CheckResult) -> tuple[NDArray | None, NDArray | None]:
    """The influence matrix of the learner's function and of the right one, on the same four tokens."""
    asked = exercise(result.exercise)
    x = np.random.default_rng(5).normal(size=(4, 4))
    mask = equations.causal_mask(4)
    from transformer_lite.practice import topics

    probe = topics.probes().get(result.exercise)
    if probe is not None:
        x, arguments = probe
        reference = equations.influence_matrix(lambda moved: expected_of(asked, arguments(moved))[0], x)
        return _own_influence(result, arguments, x), reference
    if asked.reference not in (equations.causal_mask, equations.softmax, equations.attention_scores) and (
        result.exercise not in ("attention", "scaled_dot_product_attention")
    ):
        return None, None  # nothing that a token could move
    arguments = {
        "softmax": lambda moved: (moved,),
        "attention_scores": lambda moved: (moved, x),
        "attention": lambda moved: (moved, moved, moved),
        "scaled_dot_product_attention": lambda moved: (moved, moved, moved, mask),
    }.get(result.exercise)
    if arguments is None:
        return _through_masks(result, x)
    reference = equations.influence_matrix(lambda moved: expected_of(asked, arguments(moved))[0], x)
    return _own_influence(result, arguments, x), reference


def _own_influence(result: CheckResult, arguments: Any, x: NDArray) -> NDArray | None:
    """First collect the inputs that `influence_matrix` would ask for, then run all of them in the worker, then let it look."""
    if result.again is None:
        return None
    asked: list[NDArray] = []

    def collect(moved: NDArray) -> NDArray:
        asked.append(moved)
        return np.zeros((len(x), 1))

    equations.influence_matrix(collect, x)
    outcomes = result.again([arguments(moved) for moved in asked], LIMIT).outcomes
    if len(outcomes) < len(asked):
        return None
    arrays = [outcome.values[0].array if outcome.values else None for outcome in outcomes]
    if any(array is None or array.ndim not in (1, 2) or len(array) != len(x) for array in arrays):
        return None
    answers = iter(arrays)
    return equations.influence_matrix(lambda _: np.nan_to_num(next(answers)), x)  # type: ignore[arg-type]


def _through_masks(result: CheckResult, x: NDArray) -> tuple[NDArray | None, NDArray]:
    """A mask moves nothing by itself: attention under the mask does."""

    def influence(mask: NDArray) -> NDArray:
        x_here = np.random.default_rng(5).normal(size=(len(mask), 4))
        return equations.influence_matrix(
            lambda moved: equations.scaled_dot_product_attention(moved, moved, moved, mask).output, x_here
        )

    case = next((case for case in result.cases if case.name == "five tokens"), None)
    yours = case.yours[0] if case is not None and case.yours is not None and len(case.yours) == 1 else None
    usable = yours is not None and yours.shape == (5, 5)
    return (influence(yours.astype(bool)) if usable else None), influence(equations.causal_mask(5))  # type: ignore[union-attr]
