"""The exercises beyond attention and its mask, one module per topic.

Each module holds ``EXERCISES``, ``FIXTURES`` (id -> how its inputs are made), ``PROPERTIES`` (trap -> the numbers that show it)
and ``PROBES`` (id -> an input of n tokens, and how it becomes the arguments, for the influence matrix). One with a trap that has
no numbers of its own (random ones, say) also holds ``BY_PROPERTY``: id -> what names such a trap from all that was seen, or not;
one may hold ``LAWS``: id -> what says of a wrong answer without a name which law it breaks.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

from numpy.typing import NDArray

if TYPE_CHECKING:
    from transformer_lite.practice.fixtures import Fixture
    from transformer_lite.practice.judging import _Judgement
    from transformer_lite.practice.properties import Asking, Shown
    from transformer_lite.practice.registry import Exercise

Maker = tuple[Callable[[], "tuple[Fixture, ...]"], Callable[[int], "Fixture"]]
Probe = tuple[NDArray, Callable[[NDArray], tuple[Any, ...]]]


@cache
def _modules() -> tuple[ModuleType, ...]:
    from transformer_lite.practice.topics import counting, decoding, heads, influence, norms, positions, sublayers, training

    return (counting, decoding, heads, influence, norms, positions, sublayers, training)


def exercises() -> list[Exercise]:
    """The exercises of all topics."""
    return [exercise for module in _modules() for exercise in module.EXERCISES]


@cache
def fixtures() -> dict[str, Maker]:
    """How the inputs of each exercise are made: the fixed ones, and the one drawn by a seed."""
    return {name: maker for module in _modules() for name, maker in module.FIXTURES.items()}


@cache
def properties() -> dict[str, Callable[[Asking], Shown]]:
    """The property of each trap."""
    return {key: shown for module in _modules() for key, shown in module.PROPERTIES.items()}


@cache
def probes() -> dict[str, Probe]:
    """The input for the influence matrix of each exercise that has one."""
    return {name: probe for module in _modules() for name, probe in module.PROBES.items()}


@cache
def by_property() -> dict[str, Callable[[_Judgement], str | None]]:
    """What recognises, exercise by exercise, a trap that gives no particular numbers; asked when no numbers fit."""
    return {name: named for module in _modules() for name, named in getattr(module, "BY_PROPERTY", {}).items()}


@cache
def laws() -> dict[str, Callable[[_Judgement], list[dict[str, Any]]]]:
    """What says, exercise by exercise, which law an answer breaks that no trap explains."""
    return {name: broken for module in _modules() for name, broken in getattr(module, "LAWS", {}).items()}
