"""What a family of traps is: one function with knobs, and the settings of the knobs that people get wrong."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property, partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

Setting = dict[str, Any]
Arrays = tuple[NDArray, ...]


@dataclass(frozen=True)
class Trap:
    """One misconception: its key in the catalogue and the settings of the knobs (each a way to write it)."""

    key: str
    settings: tuple[Setting, ...]
    core: Callable[..., Arrays] = field(repr=False)

    @property
    def functions(self) -> tuple[Callable[..., Arrays], ...]:
        """The wrong implementations, called like the exercise's own function."""
        return tuple(partial(self.core, **setting) for setting in self.settings)


@dataclass(frozen=True)
class Family:
    """The traps of one exercise.

    Attributes:
        core: takes the exercise's arguments and, by keyword, the knobs; gives a tuple of arrays. No knob: the right answer.
        traps: by key, in the order in which they are tried.
        alone: settings that show only on special inputs, so that together with another mistake nobody could tell them.
    """

    core: Callable[..., Arrays]
    traps: dict[str, Trap]
    alone: tuple[Setting, ...] = ()

    @classmethod
    def of(cls, core: Callable[..., Arrays], settings: dict[str, tuple[Setting, ...]], alone: tuple[Setting, ...] = ()) -> Family:
        """Build a family from the settings of each trap."""
        return cls(core, {key: Trap(key, ways, core) for key, ways in settings.items()}, alone)

    @cached_property
    def singles(self) -> tuple[tuple[tuple[str, ...], Setting], ...]:
        """Every way to make one mistake: ((key,), setting)."""
        return tuple(((trap.key,), setting) for trap in self.traps.values() for setting in trap.settings)

    @cached_property
    def pairs(self) -> tuple[tuple[tuple[str, ...], Setting], ...]:
        """Every way to make two mistakes that turn different knobs: ((key, key), setting)."""
        return tuple(self._pairs())

    def _pairs(self) -> Iterator[tuple[tuple[str, ...], Setting]]:
        for first, second in combinations(self.traps.values(), 2):
            for one in first.settings:
                for other in second.settings:
                    if not set(one) & set(other) and one not in self.alone and other not in self.alone:
                        yield (first.key, second.key), {**one, **other}

    def outputs(self, setting: Setting, arguments: tuple[Any, ...]) -> Arrays | None:
        """What the function set like this gives, or None where it raises (a shape that does not fit)."""
        try:
            with np.errstate(all="ignore"):
                return tuple(np.asarray(array) for array in self.core(*arguments, **setting))
        except (ValueError, IndexError):
            return None
