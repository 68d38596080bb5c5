"""Notices when an exercise's own reference is called while a learner's answer to that exercise is judged."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
R = TypeVar("R")

_forbidden: ContextVar[str | None] = ContextVar("forbidden_reference", default=None)
_guarded: list[Callable[..., object]] = []
_noticed: ContextVar[list[str] | None] = ContextVar("noticed_reference", default=None)


class ReferenceUsed(BaseException):
    """The exercise's own reference was called. A BaseException, so that a learner's ``except Exception`` cannot hide it."""


@contextmanager
def forbid(name: str) -> Iterator[list[str]]:
    """While open, calling the equation ``name`` raises `ReferenceUsed`; yields the list of calls noticed (even if swallowed)."""
    calls: list[str] = []
    tokens = _forbidden.set(name), _noticed.set(calls)
    try:
        yield calls
    finally:
        _forbidden.reset(tokens[0])
        _noticed.reset(tokens[1])


def reference(function: Callable[P, R]) -> Callable[P, R]:
    """Mark ``function`` as the reference of the exercise of its name."""
    name = function.__name__

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        if _forbidden.get() == name:
            calls = _noticed.get()
            if calls is not None:
                calls.append(name)
            raise ReferenceUsed(name)
        return function(*args, **kwargs)

    _guarded.append(guarded)
    return guarded


def seal() -> None:
    """Hide the functions behind the references, which `inspect` and IPython's ``??`` show, where learners' code runs."""
    for guarded in _guarded:
        guarded.__dict__.pop("__wrapped__", None)
