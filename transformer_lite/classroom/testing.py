"""The tests of an exercise in an assignment: one that students see, and hidden ones, each for one kind of mistake.

The judgement is that of `practice.judge`. Its parts are the test of the *form* (it runs and returns things of the right shape),
one test a knob of the exercise's family of traps (a function with the trap AT1 loses the points of ``scale`` and nothing else),
and the test of the *values*, which mistakes without a name lose. A function that does not run, or whose mistake has no name,
loses the knobs' tests too: nothing can be said for them.
"""

from __future__ import annotations

import json
import linecache
import os
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

from transformer_lite import practice, traps
from transformer_lite.language import current
from transformer_lite.practice import guard, source

FORM, VALUES = "form", "values"
HANDED = "TRANSFORMER_LITE_HANDED"  # the folder in which a graded notebook leaves its functions, to be judged a second time
EARLY = ("blank", "callable", "identity", "signature", "run", "return", "container", "shape", "dtype")
POINTS = {FORM: 2, VALUES: 2}
SEED = 0


@cache
def knobs(exercise_id: str) -> dict[str, str]:
    """The hidden test that each trap of an exercise loses, by the trap's key: the first knob that it turns."""
    return {key: next(iter(trap.settings[0])) for key, trap in traps.family(exercise_id).traps.items()}


def parts(exercise_id: str) -> tuple[str, ...]:
    """The tests of an exercise, in their order; the first one is seen by students."""
    return (FORM, *dict.fromkeys(knobs(exercise_id).values()), VALUES)


def points(part: str) -> int:
    """What a test is worth."""
    return POINTS.get(part, 1)


def passes(result: practice.CheckResult, part: str) -> bool:
    """Whether a function judged so passes one of its tests."""
    if result.status in ("pass", "variant"):
        return True
    lost = {knobs(result.exercise).get(key, VALUES) for key in result.traps}
    if result.status == "wrong" and lost:
        return part not in lost
    if result.status == "wrong":
        return part == FORM and result.stage not in EARLY
    return False


def test(exercise_id: str, function: Any, part: str = FORM) -> None:
    """Raise AssertionError unless ``function`` passes the test ``part`` of the exercise; what is wrong is said for the form only.

    Where a grading asks for it, the function is handed on, so that it can be judged once more outside the notebook.
    """
    own = source.own_function(function)
    folder = os.environ.get(HANDED)
    result = _in_grading(Path(folder), exercise_id, own) if folder else practice.judge(exercise_id, own, seed=SEED)
    if not passes(result, part):
        raise AssertionError(result.text(current()) if part == FORM else f"{exercise_id}: {part}")


test.__test__ = False  # type: ignore[attr-defined]  # for pytest


_tested: dict[str, tuple[Any, practice.CheckResult]] = {}  # in a grading: what was tested last, and the verdict


def _in_grading(folder: Path, exercise_id: str, function: Any) -> practice.CheckResult:
    """The verdict on a function, which is handed on.

    The hidden tests stand at the end of the notebook. Who passed the visible one keeps that verdict there, though a name that
    the function uses may be another thing by then, and its own name an array (``attention = attention(q, k, v)``).
    """
    before = _tested.get(exercise_id)
    if before is not None and (function is before[0] or not callable(function)):
        function, result = before
        if passes(result, FORM):
            return result
    hand_on(folder, exercise_id, function)
    result = practice.judge(exercise_id, function, seed=SEED)
    _tested[exercise_id] = function, result
    return result


def _beside() -> list[ModuleType]:
    """The modules that come from files in the notebook's folder."""
    here = os.getcwd() + os.sep
    return [module for module in sys.modules.values() if str(getattr(module, "__file__", None) or "").startswith(here)]


def hand_on(folder: Path, exercise_id: str, function: Any) -> None:
    """Leave ``function`` and the source that it was read from in ``folder``, if it can be taken out of the notebook."""
    pickled = b""
    for modules in (_beside(), []):  # the files beside the notebook will not be there
        with suppress(guard.NotInWorker):
            pickled = guard.dumps(function, modules)
            break
    code = getattr(function, "__code__", None)
    file = getattr(code, "co_filename", "")
    seen = {"file": file, "lines": linecache.getlines(file), "name": getattr(code, "co_name", "")}
    (folder / f"{exercise_id}.json").write_text(json.dumps(seen), "utf-8")
    (folder / f"{exercise_id}.pickle").write_bytes(pickled)
