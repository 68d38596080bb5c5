"""The exercises: what each asks for, what it is compared with, its hints and its solution."""

from __future__ import annotations

import difflib
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from transformer_lite import content, equations
from transformer_lite.language import Text, catalogue, message
from transformer_lite.practice.guard import TIME_LIMIT


class UnknownExercise(content.Unknown):
    """There is no exercise of that name."""

    def __init__(self, name: str, nearest: list[str]) -> None:
        super().__init__("exercise", name, nearest, otherwise=[])
        self.nearest = nearest

    def __str__(self) -> str:
        if self.nearest:
            return message("practice.unknown.nearest", name=self.name, nearest=", ".join(self.nearest))
        return message("practice.unknown.all", name=self.name, names=", ".join(_every()))


@dataclass(frozen=True)
class Exercise:
    """One exercise.

    Attributes:
        id, version: the id stays for ever; the version changes with the inputs or the statement.
        chapter: the id of its chapter.
        reference: the equation that an answer is compared with.
        parameters: their names, in order; the last ``optional`` ones may be left out in a call.
        returns: the names of what it returns.
        axes: the symbols of the axes of each thing returned, without batch axes.
        boolean: it returns True and False rather than numbers.
        whole_numbers: it returns integers.
        defaults: of the optional parameters, in order.
        variants: traps of its family that are no mistakes but other people's ways (their verdict is "variant").
        minutes, difficulty, importance: for the learner (difficulty and importance 1 to 3).
        exams: which exams ask for it.
        n_hints: how many general hints there are.
        solution: the source of a right answer.
        limit: seconds that all the calls of one judgement may take together.
    """

    id: str
    version: int
    chapter: str
    reference: Callable[..., Any]
    parameters: tuple[str, ...]
    optional: int
    returns: tuple[str, ...]
    axes: tuple[tuple[str, ...], ...]
    minutes: int
    difficulty: int
    importance: int
    exams: tuple[str, ...]
    n_hints: int
    solution: str
    boolean: bool = False
    whole_numbers: bool = False
    defaults: tuple[Any, ...] = ()
    variants: tuple[str, ...] = ()
    limit: float = TIME_LIMIT

    @property
    def title(self) -> Text:
        """Its name in words."""
        return catalogue()[f"practice.exercise.{self.id}.title"]

    @property
    def contract(self) -> Text:
        """What goes in, what must come out."""
        return catalogue()[f"practice.exercise.{self.id}.contract"]

    @property
    def hints(self) -> tuple[Text, ...]:
        """From a question about the idea to all but the last line."""
        return tuple(catalogue()[f"practice.exercise.{self.id}.hint{level}"] for level in range(1, self.n_hints + 1))

    @property
    def required(self) -> int:
        """How many parameters every call gives."""
        return len(self.parameters) - self.optional

    def filled(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        """``arguments`` with those that were left out: for an answer that has no default for them."""
        if self.defaults:
            return arguments + self.defaults[len(arguments) - self.required :]
        left_out = {"axis": -1, "mask": None, "n_keys": arguments[0] if self.boolean else None}
        return arguments + tuple(left_out[name] for name in self.parameters[len(arguments) :])


_EXERCISES = {
    exercise.id: exercise
    for exercise in (
        Exercise(
            id="softmax",
            version=1,
            chapter="scaled-dot-product-attention",
            reference=equations.softmax,
            parameters=("x", "axis"),
            optional=1,
            returns=("result",),
            axes=(("rows", "columns"),),
            minutes=7,
            difficulty=1,
            importance=3,
            exams=("e-shikaku", "g-kentei"),
            n_hints=4,
            solution='''\
def softmax(x, axis=-1):
    """(...) -> (...), positive, sums to 1 along axis."""
    x = x - x.max(axis=axis, keepdims=True)  # changes nothing in the result, keeps exp from overflowing
    exponentials = np.exp(x)
    return exponentials / exponentials.sum(axis=axis, keepdims=True)
''',
        ),
        Exercise(
            id="attention_scores",
            version=1,
            chapter="scaled-dot-product-attention",
            reference=equations.attention_scores,
            parameters=("queries", "keys"),
            optional=0,
            returns=("scores",),
            axes=(("n_q", "n_k"),),
            minutes=6,
            difficulty=1,
            importance=3,
            exams=("e-shikaku", "g-kentei"),
            n_hints=4,
            solution='''\
def attention_scores(queries, keys):
    """(..., n_q, d_k), (..., n_k, d_k) -> (..., n_q, n_k)."""
    d_k = queries.shape[-1]
    return queries @ keys.swapaxes(-1, -2) / np.sqrt(d_k)  # (..., n_q, d_k) @ (..., d_k, n_k) -> (..., n_q, n_k)
''',
        ),
        Exercise(
            id="attention",
            version=1,
            chapter="scaled-dot-product-attention",
            reference=equations.scaled_dot_product_attention,
            parameters=("queries", "keys", "values"),
            optional=0,
            returns=("output", "weights"),
            axes=(("n_q", "d_v"), ("n_q", "n_k")),
            minutes=5,
            difficulty=2,
            importance=3,
            exams=("e-shikaku", "g-kentei"),
            n_hints=4,
            solution='''\
def attention(queries, keys, values):
    """(..., n_q, d_k), (..., n_k, d_k), (..., n_k, d_v) -> output (..., n_q, d_v), weights (..., n_q, n_k)."""
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])  # (..., n_q, n_k)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ values, weights  # (..., n_q, n_k) @ (..., n_k, d_v) -> (..., n_q, d_v)
''',
        ),
        Exercise(
            id="causal_mask",
            version=1,
            chapter="masks",
            reference=equations.causal_mask,
            parameters=("n_queries", "n_keys"),
            optional=1,
            returns=("mask",),
            axes=(("n_queries", "n_keys"),),
            boolean=True,
            minutes=5,
            difficulty=2,
            importance=3,
            exams=("e-shikaku", "g-kentei"),
            n_hints=4,
            solution='''\
def causal_mask(n_queries, n_keys=None):
    """-> (n_queries, n_keys), True = may attend; aligned at the bottom right."""
    if n_keys is None:
        n_keys = n_queries
    return np.tri(n_queries, n_keys, k=n_keys - n_queries, dtype=bool)
''',
        ),
        Exercise(
            id="scaled_dot_product_attention",
            version=1,
            chapter="masks",
            reference=equations.scaled_dot_product_attention,
            parameters=("queries", "keys", "values", "mask"),
            optional=1,
            returns=("output", "weights"),
            axes=(("n_q", "d_v"), ("n_q", "n_k")),
            minutes=6,
            difficulty=2,
            importance=3,
            exams=("e-shikaku", "g-kentei"),
            n_hints=4,
            solution='''\
def scaled_dot_product_attention(queries, keys, values, mask=None):
    """mask (..., n_q, n_k), True = may attend -> output (..., n_q, d_v), weights (..., n_q, n_k)."""
    scores = queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])  # (..., n_q, n_k)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    exponentials = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = exponentials / exponentials.sum(axis=-1, keepdims=True)
    return weights @ values, weights
''',
        ),
    )
}


@cache
def _every() -> dict[str, Exercise]:
    from transformer_lite.practice import topics

    return _EXERCISES | {exercise.id: exercise for exercise in topics.exercises()}


def exercises() -> dict[str, Exercise]:
    """Every exercise by its id."""
    return dict(_every())


def exercise(name: str) -> Exercise:
    """The exercise of that id.

    Raises:
        UnknownExercise: there is none; the error names the nearest.
    """
    try:
        return _every()[name]
    except (KeyError, TypeError):
        nearest = difflib.get_close_matches(str(name).replace("-", "_").lower(), _every(), n=3, cutoff=0.5)
        raise UnknownExercise(name, nearest) from None
