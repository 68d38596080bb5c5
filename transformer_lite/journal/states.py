"""What follows from the events: pure functions from events to codes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from transformer_lite.journal.events import Event

ExerciseState = Literal["yours", "with_help", "seen", "tried"]

_RANK: dict[str | None, int] = {None: 0, "tried": 1, "seen": 2, "with_help": 3, "yours": 4}


@dataclass(frozen=True)
class TrapCount:
    """How often a trap was met, when last (UTC), and whether an exercise or question where it was met has been passed since."""

    met: int
    last: datetime
    passed_since: bool


@dataclass(frozen=True)
class QuestionState:
    """A question: whether the last answer was right (None: free recall, which the learner marks), and how often one came."""

    correct: bool | None
    times: int
    right: int
    last: datetime


@dataclass(frozen=True)
class ChapterProgress:
    """A chapter's row in the progress report. ``exercises`` maps each id to its state, "open" where nothing was tried."""

    chapter: str
    opened: bool
    exercises: dict[str, str]
    questions: int
    answered: int
    right: int
    wrong: int
    last: datetime | None

    def count(self, state: str) -> int:
        """Exercises in ``state``: "yours", "with_help", "seen", "tried" or "open"."""
        return sum(1 for each in self.exercises.values() if each == state)


def exercise_states(events: Iterable[Event]) -> dict[str, ExerciseState]:
    """What the learner has made of each exercise that they touched; the best state ever reached stays.

    "yours": passed before any hint or solution. "with_help": passed after a hint. "seen": the solution was revealed first,
    whether or not a pass followed. "tried": none of these yet. A blank exercise ("unsolved") and a fault of the checker
    ("grader_problem") are no tries. After a "reset" the exercise begins anew.
    """
    states: dict[str, ExerciseState] = {}
    helped: set[str] = set()
    revealed: set[str] = set()
    for event in _in_order(events):
        exercise, reached = event.subject, None
        if event.kind == "reset":
            states.pop(exercise, None)
            helped.discard(exercise)
            revealed.discard(exercise)
        elif event.kind == "hint":
            helped.add(exercise)
            reached = "tried"
        elif event.kind == "solution":
            revealed.add(exercise)
            reached = "seen"
        elif event.kind == "check" and event.parameters.get("status") == "pass":
            with_hint = exercise in helped or bool(event.parameters.get("hints"))
            reached = "seen" if exercise in revealed else "with_help" if with_hint else "yours"
        elif event.kind == "check" and event.parameters.get("status") not in ("unsolved", "grader_problem"):
            reached = "tried"
        if _RANK[reached] > _RANK[states.get(exercise)]:
            states[exercise] = reached
    return states


def trap_counts(events: Iterable[Event]) -> dict[str, TrapCount]:
    """How often each trap was met, in checks and in wrong answers, the most frequent first.

    A check that only resembles a trap (certainty "closest") does not count: a report holds what is known.
    """
    met: dict[str, int] = {}
    last: dict[str, datetime] = {}
    places: dict[str, set[tuple[str, str]]] = {}  # where a trap was met: what tests it
    passed: set[str] = set()
    for event in _in_order(events):
        if event.kind == "check":
            right = event.parameters.get("status") == "pass"
            sure = event.parameters.get("certainty", "exact") == "exact"
        elif event.kind == "answer":
            right = bool(event.parameters.get("correct"))
            sure = True
        else:
            continue
        place = (event.kind, event.subject)
        if right:
            passed.update(trap for trap, where in places.items() if place in where)
        elif sure:
            for trap in dict.fromkeys(event.parameters.get("traps") or ()):
                met[trap] = met.get(trap, 0) + 1
                last[trap] = event.at
                places.setdefault(trap, set()).add(place)
                passed.discard(trap)
    return {trap: TrapCount(met[trap], last[trap], trap in passed) for trap in sorted(met, key=lambda trap: (-met[trap], trap))}


def question_states(events: Iterable[Event]) -> dict[str, QuestionState]:
    """Each question that was answered (or, for free recall, marked): the last answer, and how many there were."""
    states: dict[str, QuestionState] = {}
    for event in _in_order(events):
        if event.kind not in ("answer", "recall"):
            continue
        correct = bool(event.parameters.get("correct")) if event.kind == "answer" else None
        before = states.get(event.subject)
        times, right = (before.times, before.right) if before else (0, 0)
        states[event.subject] = QuestionState(correct, times + 1, right + bool(correct), event.at)
    return states


def chapter_progress(
    events: Iterable[Event],
    exercises_by_chapter: Mapping[str, Sequence[str]],
    questions_by_chapter: Mapping[str, Sequence[str]],
) -> list[ChapterProgress]:
    """One row per chapter of the two mappings (chapter id -> ids), in their order; chapters of the second alone come last."""
    events = _in_order(events)
    states, questions = exercise_states(events), question_states(events)
    rows = []
    for chapter in dict.fromkeys([*exercises_by_chapter, *questions_by_chapter]):
        exercises = exercises_by_chapter.get(chapter, ())
        asked = questions_by_chapter.get(chapter, ())
        answered = [questions[question] for question in asked if question in questions]
        subjects = {chapter, *exercises, *asked}
        rows.append(
            ChapterProgress(
                chapter=chapter,
                opened=any(event.kind == "open" and event.subject == chapter for event in events),
                exercises={exercise: states.get(exercise, "open") for exercise in exercises},
                questions=len(asked),
                answered=len(answered),
                right=sum(1 for state in answered if state.correct is True),
                wrong=sum(1 for state in answered if state.correct is False),
                last=max((event.at for event in events if event.subject in subjects), default=None),
            )
        )
    return rows


def _in_order(events: Iterable[Event]) -> list[Event]:
    return sorted(events, key=lambda event: event.at)
