"""Finds the course's notebooks and quizzes, and reads its questions, traps and glossary."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

from transformer_lite.content.loading import ContentError, bank, library, load, traps_of
from transformer_lite.content.places import notebooks_dir, quizzes_dir, source_dir

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question, Term, Trap

T = TypeVar("T")

__all__ = [
    "ContentError",
    "Unknown",
    "bank",
    "glossary",
    "library",
    "load",
    "notebooks_dir",
    "prediction",
    "question",
    "questions",
    "quizzes_dir",
    "source_dir",
    "trap",
    "traps",
    "traps_of",
]


class Unknown(KeyError):
    """Something was asked for by a name that does not exist. ``nearest`` holds the names that look like it.

    Where none does, it holds ``otherwise``: the first three of the ``known`` names if that is not given.
    """

    def __init__(self, what: str, name: str, known: Iterable[str], otherwise: Iterable[str] | None = None):
        known = sorted(known)
        self.what, self.name = what, name
        near = difflib.get_close_matches(str(name), known, n=3, cutoff=0.4)
        self.nearest = near or list(known[:3] if otherwise is None else otherwise)
        super().__init__(name)

    def __str__(self) -> str:
        return f"There is no {self.what} {self.name!r}. Did you mean: {', '.join(self.nearest)}?"


def questions(chapter: str) -> tuple[Question, ...]:
    """The questions of a chapter (by its id), without retired ones. Unknown chapter: `Unknown`."""
    banks = library().banks
    if chapter not in banks:
        raise Unknown("chapter with questions", chapter, banks)
    return tuple(question for question in banks[chapter].questions if not question.retired)


def question(question_id: str) -> Question:
    """The question of that id. Unknown: `Unknown` with the nearest ids."""
    return _get("question", question_id, library().questions)


def prediction(prediction_id: str) -> Prediction:
    """The prediction of that id. Unknown: `Unknown` with the nearest ids."""
    return _get("prediction", prediction_id, library().predictions)


def trap(key: str) -> Trap:
    """The trap of that key, such as ``AT1``. Unknown: `Unknown`."""
    return _get("trap", key, library().traps)


def traps() -> dict[str, Trap]:
    """All traps by key, in the order of the file."""
    return library().traps


def glossary(chapter: str | None = None) -> tuple[Term, ...]:
    """The terms of a chapter, or all of them."""
    return tuple(term for term in library().terms.values() if chapter is None or chapter in term.chapters)


def _get(what: str, name: str, known: dict[str, T]) -> T:
    if not isinstance(name, str) or name not in known:
        raise Unknown(what, name, known)
    return known[name]
