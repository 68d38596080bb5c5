"""Practice: judges a learner's function, names the trap it fell into, and shows the numbers.

from transformer_lite import practice
print(practice.judge("softmax", my_softmax))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_lite.practice.guard import shutdown, warm
    from transformer_lite.practice.judging import judge
    from transformer_lite.practice.registry import Exercise, UnknownExercise, exercise, exercises
    from transformer_lite.practice.source import code_hash, is_blank
    from transformer_lite.practice.verdict import CheckResult, Note

__all__ = [
    "CheckResult",
    "Exercise",
    "Note",
    "UnknownExercise",
    "code_hash",
    "exercise",
    "exercises",
    "is_blank",
    "judge",
    "shutdown",
    "warm",
]

_HOMES = {
    "CheckResult": "verdict",
    "Note": "verdict",
    "Exercise": "registry",
    "UnknownExercise": "registry",
    "exercise": "registry",
    "exercises": "registry",
    "judge": "judging",
    "code_hash": "source",
    "is_blank": "source",
    "shutdown": "guard",
    "warm": "guard",
}


def __getattr__(name: str) -> Any:
    """Import on first use: the worker process imports this package too, and needs a small part of it only."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
