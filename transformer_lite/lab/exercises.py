"""The verbs of an exercise: exercise, check, hint, solution, use, reset."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from transformer_lite import content, practice
from transformer_lite.lab.session import LabError, friendly, record, say, unknown
from transformer_lite.language import current, message

_answers: dict[str, ExerciseFunction] = {}
_results: dict[str, practice.CheckResult] = {}
_hints_read: dict[str, int] = {}
_latest: str | None = None


class ExerciseFunction:
    """A learner's function, or the companion's in its place until the learner's is right.

    ``source`` says whose is called: "yours" or "companion".
    """

    def __init__(self, exercise_id: str, function: Callable[..., Any]):
        update_wrapper(self, function)
        self.exercise_id = exercise_id
        self.source = "companion"
        self.__transformer_lite_function__ = function

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.active(*args, **kwargs)

    @property
    def active(self) -> Callable[..., Any]:
        """The function that a call reaches."""
        if self.source == "yours":
            return self.__transformer_lite_function__
        return practice.exercise(self.exercise_id).reference

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel to the checker's process as the plain function that is called."""
        return _itself, (self.active,)

    def __repr__(self) -> str:
        return f"<{self.exercise_id}: {self.source}>"


def _itself(function: Callable[..., Any]) -> Callable[..., Any]:
    return function


def exercise(exercise_id: str) -> Callable[[Callable[..., Any]], ExerciseFunction]:
    """Decorate a learner's function as the answer to an exercise.

    Judged at once and silently: right → the rest of the notebook calls it; blank or not yet right → the companion's function
    is called in its place, with one banner, and the exercise does not count as solved. Only `check` records.

    Args:
        exercise_id: the exercise, such as ``"softmax"``.

    Raises:
        LabError: there is no such exercise (the nearest names are given).
    """
    _exercise(exercise_id)

    def decorate(function: Callable[..., Any]) -> ExerciseFunction:
        global _latest
        answer = ExerciseFunction(exercise_id, getattr(function, "__transformer_lite_function__", function))
        _answers[exercise_id] = answer
        _latest = exercise_id
        result = practice.judge(exercise_id, answer)
        if result.status == "pass":
            answer.source = "yours"
        elif not _cell_checks():
            say(_banner(exercise_id, result))
        return answer

    return decorate


@friendly
def check(which: Any = None, *, verbose: bool = False) -> practice.CheckResult | None:
    """Judge the learner's own answer, say what is right or wrong with it, and record it.

    Args:
        which: an exercise id or the function itself; None = the exercise defined last.
        verbose: also show the smallest test in full.

    Returns:
        The `CheckResult`; None when nothing has been defined yet.
    """
    exercise_id = _which(which)
    answer = _answers.get(exercise_id)
    if answer is None:
        raise LabError(message("lab.not_defined", exercise=exercise_id))
    result = practice.judge(exercise_id, answer)
    _results[exercise_id] = result
    if result.status == "pass":
        answer.source = "yours"
    record(
        "check",
        exercise_id,
        version=result.version,
        status=result.status,
        traps=list(result.traps),
        certainty=result.certainty,
        code=practice.code_hash(answer.__transformer_lite_function__),
        hints=_hints_read.get(exercise_id, 0),
    )
    say(result.text(current(), verbose=verbose))
    if result.status not in ("pass", "grader_problem") and answer.source == "companion":
        say(message("lab.companion_until_then", exercise=exercise_id))
    _mark_shown(result)
    return result


@friendly
def hint(which: Any = None, level: int | None = None) -> None:
    """Show the next hint; with ``level``, show hints 1 to ``level`` again.

    If the last check recognised a trap, the ladder starts with that trap's own hints.
    """
    exercise_id = _which(which)
    if level is not None and (isinstance(level, bool) or not isinstance(level, int)):
        raise LabError(message("lab.hint_level", level=repr(level), exercise=exercise_id))
    ladder = _ladder(exercise_id)
    read = min(_hints_read.get(exercise_id, 0), len(ladder))
    if level is None and read == len(ladder):
        say(message("lab.hints_over", exercise=exercise_id, count=len(ladder)))
        return
    last = max(1, min(level, len(ladder))) if level is not None else read + 1
    first = 1 if level is not None else last
    for number in range(first, last + 1):
        say(message("lab.hint", number=number, count=len(ladder), text=ladder[number - 1]))
    if last > read:
        _hints_read[exercise_id] = last
        record("hint", exercise_id, level=last)
    say(message("lab.after_hint" if last < len(ladder) else "lab.after_last_hint", exercise=exercise_id))


@friendly
def solution(which: Any = None, *, reveal: bool = False) -> None:
    """Show a right answer, after saying what that costs: the exercise then counts as seen, and returns in review."""
    exercise_id = _which(which)
    if not reveal:
        say(message("lab.solution_costs", exercise=exercise_id))
        return
    record("solution", exercise_id)
    say(message("lab.solution", exercise=exercise_id, code=_exercise(exercise_id).solution.rstrip()))


@friendly
def use(which: Any, whose: str) -> None:
    """Choose whose function the notebook calls: ``"mine"`` or ``"companion"``."""
    exercise_id = _which(which)
    if not isinstance(whose, str) or whose not in ("mine", "companion"):
        raise LabError(message("lab.use_what", whose=repr(whose), exercise=exercise_id))
    if exercise_id not in _answers:
        raise LabError(message("lab.not_defined", exercise=exercise_id))
    _answers[exercise_id].source = "yours" if whose == "mine" else "companion"
    say(message(f"lab.uses_{whose}", exercise=exercise_id))


@friendly
def reset(which: Any = None, *, confirm: bool = False) -> None:
    """Start an exercise afresh: its hints from the first, its progress from nothing. What happened stays in the journal."""
    exercise_id = _which(which)
    if not confirm:
        say(message("lab.reset_costs", exercise=exercise_id))
        return
    _hints_read.pop(exercise_id, None)
    _results.pop(exercise_id, None)
    if exercise_id in _answers:
        _answers[exercise_id].source = "companion"
    record("reset", exercise_id)
    say(message("lab.reset", exercise=exercise_id))


def _exercise(exercise_id: str) -> practice.Exercise:
    try:
        return practice.exercise(exercise_id)
    except KeyError as error:
        raise LabError(unknown(error)) from None


def _which(which: Any) -> str:
    if which is None:
        if _latest is None:
            raise LabError(message("lab.no_exercise_yet"))
        return _latest
    if isinstance(which, ExerciseFunction):
        return which.exercise_id
    return _exercise(str(which) if isinstance(which, str) else getattr(which, "__name__", str(which))).id


def _ladder(exercise_id: str) -> list[str]:
    lang = current()
    hints: list[str] = []
    result = _results.get(exercise_id)
    for key in result.traps if result else ():
        if key in content.traps():
            hints += [text(lang) for text in content.trap(key).hints]
    return hints + [text(lang) for text in _exercise(exercise_id).hints]


def _banner(exercise_id: str, result: practice.CheckResult) -> str:
    return message("lab.blank" if result.status == "unsolved" else "lab.not_yet", exercise=exercise_id)


def _shell() -> Any:
    ipython = sys.modules.get("IPython")
    return ipython.get_ipython() if ipython else None


def _cell_checks() -> bool:
    """Whether the running cell calls `check` itself, which will say what the banner would."""
    shell = _shell()
    cells = shell.user_ns.get("In") if shell is not None else None
    return bool(cells) and "lab.check(" in cells[-1]


def _mark_shown(result: practice.CheckResult) -> None:
    """Keep Jupyter from showing a result a second time when `check` is the last expression of the cell that printed it."""
    shell = _shell()
    if shell is not None:
        object.__setattr__(result, "_shown_in", shell.execution_count)
