"""The classroom: notebooks to hand out, graded in a sandbox, and what the class misunderstands.

from transformer_lite import classroom
classroom.test("attention", attention)
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformer_lite.classroom.questions import ask, check_answer
    from transformer_lite.classroom.testing import test

__all__ = ["ask", "check_answer", "test"]

_HOMES = {"ask": "questions", "check_answer": "questions", "test": "testing"}


def __getattr__(name: str) -> Any:
    """Import on first use: a student's notebook needs none of the grading."""
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value
