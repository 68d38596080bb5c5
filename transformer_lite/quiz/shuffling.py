"""In which order options are shown, and which letter stands for which: the same for the same question and seed, everywhere."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import TYPE_CHECKING

from transformer_lite import content

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question

LETTERS = "ABCDEFGH"


def shown_order(question: Question | Prediction, seed: int | str | None = None) -> tuple[str, ...]:
    """The keys of what is shown with letters (options, steps or choices), in the order shown; ``()`` where nothing is.

    The order follows from the question's id and ``seed`` alone (not from Python's random numbers), so the letters are the same in
    the widget, in text and after a restart. The steps of an ordering question never start in the right order.
    """
    kind = getattr(question, "kind", "prediction")
    if kind == "prediction" or (kind in ("single", "multiple") and not question.shuffle):
        return tuple(option.key for option in question.options)
    parts = {"single": "options", "multiple": "options", "ordering": "steps", "matching": "choices"}.get(kind)
    if parts is None:
        return ()
    keys = [part.key for part in getattr(question, parts)]
    shuffled = sorted(keys, key=lambda key: hashlib.sha256(f"{seed}/{question.id}/{key}".encode()).digest())
    if kind == "ordering" and shuffled == keys:
        shuffled = shuffled[1:] + shuffled[:1]
    return tuple(shuffled)


class Paper:
    """Questions in one order, with the letter of each option. ``seed=None``: the letters that the text form shows.

    >>> paper.find(3)              # doctest: +SKIP
    >>> paper.key(question, "B")   # doctest: +SKIP
    """

    def __init__(self, questions: Iterable[Question], seed: int | str | None = None):
        self.questions = tuple(questions)
        self.seed = seed
        self._orders = {question.id: shown_order(question, seed) for question in self.questions}
        if len(self._orders) != len(self.questions):
            raise ValueError("a paper cannot hold the same question twice")

    def __len__(self) -> int:
        return len(self.questions)

    def letters(self, question: Question) -> dict[str, str]:
        """Shown letter -> key, in the order shown."""
        return dict(zip(LETTERS, self._orders[question.id], strict=False))

    def letter(self, question: Question, key: str) -> str:
        """The letter shown for ``key``."""
        return LETTERS[self._orders[question.id].index(key)]

    def key(self, question: Question, letter: str) -> str:
        """The key that is shown as ``letter``; `KeyError` when there is none."""
        return self.letters(question)[letter.upper()]

    def find(self, name: int | str) -> Question:
        """The question of that 1-based number or id. Unknown: `content.Unknown` with the nearest ids."""
        text = str(name).strip()
        if text.isdecimal() and 1 <= int(text) <= len(self.questions):
            return self.questions[int(text) - 1]
        by_id = {question.id: question for question in self.questions}
        if text in by_id:
            return by_id[text]
        raise content.Unknown("question", text, by_id)
