"""How a learner's function wants to be called: by position, or by the names of the contract."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from transformer_lite.practice.registry import Exercise
from transformer_lite.practice.running import Call

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_NAMED = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)


@dataclass(frozen=True)
class Convention:
    """How to call a function.

    Attributes:
        by_name: with the contract's names.
        accepts: how many of the contract's parameters it takes.
        defaults_missing: it has no default for a parameter that may be left out.
        missing: parameters of the contract that it lacks, although every call gives them.
        asks_for: parameters without a default that the contract does not know.
    """

    by_name: bool = False
    accepts: int = 99
    defaults_missing: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    asks_for: tuple[str, ...] = ()

    def call(self, exercise: Exercise, arguments: tuple[Any, ...]) -> Call:
        """The call that gives the function these arguments of the contract."""
        if self.defaults_missing:
            arguments = exercise.filled(arguments)[: self.accepts]
        if self.by_name:
            return Call(named=dict(zip(exercise.parameters, arguments, strict=False)))
        return Call(positional=arguments)


def convention(exercise: Exercise, function: Callable[..., Any]) -> Convention:
    """Read the signature of ``function`` and say how to call it, or why it cannot be called as the contract says."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):  # some built-in functions have none
        return Convention()
    names = exercise.parameters
    named = {one.name: one for one in parameters if one.kind in _NAMED}
    if any(one.kind is one.VAR_POSITIONAL for one in parameters):
        return Convention()
    if all(name in named for name in names[: exercise.required]):
        any_name = any(one.kind is one.VAR_KEYWORD for one in parameters)
        accepts = len(names) if any_name else _prefix(names, named)
        used = [named[name] for name in names[:accepts] if name in named]
        others = [one.name for one in parameters if one not in used and _needed(one)]
        # The optional one may stand in its place under another name (`dim` for `axis`, `m` for `mask`).
        if not (accepts < len(names) and _stand_in(exercise, parameters, accepts)):
            missing_defaults = tuple(one.name for one in used[exercise.required :] if _needed(one))
            return Convention(True, accepts, missing_defaults, (), tuple(others))
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    keyword_only = tuple(one.name for one in parameters if one.kind is one.KEYWORD_ONLY and _needed(one))
    if any(one.kind is one.VAR_KEYWORD for one in parameters) and not positional:
        return Convention(by_name=True)
    accepts = min(len(positional), len(names))
    missing = tuple(name for name in names[: exercise.required] if name not in named)[: max(exercise.required - accepts, 0)]
    extra = tuple(one.name for one in positional[len(names) :] if _needed(one)) + keyword_only
    needed = tuple(one.name for one in positional[exercise.required : len(names)] if _needed(one))
    return Convention(False, accepts, needed, missing, extra)


def _needed(parameter: inspect.Parameter) -> bool:
    return parameter.default is parameter.empty and parameter.kind in (*_POSITIONAL, parameter.KEYWORD_ONLY)


def _prefix(names: tuple[str, ...], named: dict[str, inspect.Parameter]) -> int:
    count = 0
    while count < len(names) and names[count] in named:
        count += 1
    return count


def _stand_in(exercise: Exercise, parameters: list[inspect.Parameter], accepts: int) -> bool:
    names = exercise.parameters
    positional = [one for one in parameters if one.kind in _POSITIONAL]
    if tuple(one.name for one in positional[:accepts]) != names[:accepts] or len(positional) <= accepts:
        return False
    default = positional[accepts].default
    return default is inspect.Parameter.empty or type(default) is {"axis": int}.get(names[accepts], type(None))
