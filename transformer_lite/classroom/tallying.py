"""The numbers of a class report: which traps are frequent and where they are taught, which tests are lost, the points."""

from __future__ import annotations

import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import mean, median
from typing import Any

from transformer_lite import content, course
from transformer_lite.classroom.results import Row, TestScore
from transformer_lite.language import LANGUAGES, Text, message
from transformer_lite.quiz.sections import headings

LOOK = ("failed", "unreadable", "missing", "tampered", "by_hand")  # statuses that an instructor must settle, the gravest first
UNSEEN = ("failed", "unreadable", "missing")  # statuses of submissions whose code nobody has seen


@dataclass(frozen=True)
class Lesson:
    """The place of the course that teaches something: its chapter, and the heading of its section if that is known."""

    number: int
    chapter: Text
    section: Text | None = None

    def text(self, lang: str) -> str:
        """Chapter and section in words."""
        if self.section is None:
            return message("classroom.report.lesson_chapter", lang, number=self.number, title=self.chapter(lang))
        about = {"number": self.number, "title": self.chapter(lang), "section": self.section(lang)}
        return message("classroom.report.lesson", lang, **about)


@dataclass(frozen=True)
class TrapCount:
    """One trap in a class: who fell into it, in which assignments, and in which of their exercises and questions."""

    key: str
    students: tuple[str, ...]
    assignments: tuple[str, ...]
    exercises: tuple[str, ...] = ()
    questions: tuple[str, ...] = ()

    def title(self, lang: str) -> str:
        """Its name with its key, or the key alone where the catalogue has no such trap."""
        return trap_title(self.key, lang)

    @property
    def lesson(self) -> Lesson | None:
        """Where it is taught."""
        return lesson(self.key)


@dataclass(frozen=True)
class LessonCount:
    """A section, and the students who fell into its traps, in which assignments."""

    lesson: Lesson
    students: tuple[str, ...]
    assignments: tuple[str, ...]
    traps: tuple[str, ...]


@dataclass(frozen=True)
class TestCount:
    """How a class did in one test: ``full`` of ``of`` submissions got all of its points, ``mean`` points on average."""

    __test__ = False  # for pytest

    score: TestScore
    full: int
    of: int
    mean: float


@dataclass(frozen=True)
class Report:
    """What a course's gradings say, and where it was written.

    Attributes:
        course: the folder.
        rows: of all submissions, by chapter and student.
        traps: the most frequent one first.
        names: of the students, as far as the gradebook has them: (first name, last name).
        unread: records of the grading that could not be read.
        pages: the class report, a page a language.
        csv: the table of points.
        feedback: how many submissions got a page for their student.
        unnamed: students for whom no page could be written, because their name is none for a file.
    """

    course: Path
    rows: tuple[Row, ...]
    traps: tuple[TrapCount, ...]
    names: dict[str, tuple[str, str]] = field(default_factory=dict)
    unread: tuple[Path, ...] = ()
    pages: tuple[Path, ...] = ()
    csv: Path | None = None
    feedback: int = 0
    unnamed: tuple[str, ...] = ()

    @property
    def students(self) -> tuple[str, ...]:
        """Everybody who handed something in."""
        return tuple(sorted({row.student for row in self.rows}))

    @property
    def assignments(self) -> dict[str, tuple[Row, ...]]:
        """The rows of each assignment."""
        found: dict[str, list[Row]] = defaultdict(list)
        for row in self.rows:
            found[row.assignment].append(row)
        return {name: tuple(rows) for name, rows in found.items()}

    @property
    def lessons(self) -> tuple[LessonCount, ...]:
        """The sections to teach again, the one that most students need first."""
        taught: dict[Lesson, list[TrapCount]] = defaultdict(list)
        for trap in self.traps:
            if (place := trap.lesson) is not None:
                taught[place].append(trap)
        counted = [
            LessonCount(
                place,
                tuple(sorted({student for trap in traps for student in trap.students})),
                tuple(dict.fromkeys(name for trap in traps for name in trap.assignments)),
                tuple(trap.key for trap in traps),
            )
            for place, traps in taught.items()
        ]
        return tuple(sorted(counted, key=lambda each: (-len(each.students), each.lesson.number, each.traps)))

    def seen_in(self, assignments: Sequence[str]) -> int:
        """How many students have answers in any of ``assignments`` that could be seen."""
        return len(
            {row.student for row in self.rows if row.assignment in assignments and (row.status not in UNSEEN or answered(row))}
        )

    def name(self, student: str) -> str:
        """The student's name in the order in which it is written, empty if the gradebook has none."""
        first, last = self.names.get(student, ("", ""))
        eastern = any(unicodedata.east_asian_width(character) in "WF" for character in first + last)
        return " ".join(part for part in ((last, first) if eastern else (first, last)) if part)


# --- traps --------------------------------------------------------------------------------------------------------------


def trap_counts(rows: Sequence[Row]) -> list[TrapCount]:
    """How many students fell into each trap, the most frequent first."""
    students: dict[str, set[str]] = defaultdict(set)
    assignments: dict[str, dict[str, None]] = defaultdict(dict)
    exercises: dict[str, dict[str, None]] = defaultdict(dict)
    questions: dict[str, dict[str, None]] = defaultdict(dict)
    for row in rows:
        for trap in mistakes(row):
            students[trap].add(row.student)
            assignments[trap][row.assignment] = None
            exercises[trap] |= dict.fromkeys(verdict["exercise"] for verdict in verdicts_of(row, trap))
            questions[trap] |= dict.fromkeys(test.question for test in row.tests if test.question and trap in test.traps)
    counted = [
        TrapCount(key, tuple(sorted(who)), tuple(assignments[key]), tuple(exercises[key]), tuple(questions[key]))
        for key, who in students.items()
    ]
    return sorted(counted, key=lambda each: (-len(each.students), each.key))


def mistakes(row: Row) -> list[str]:
    """The traps of a submission that are mistakes: not those which only name another way of writing a right answer."""
    other_ways = {key for verdict in row.verdicts if verdict["status"] == "variant" for key in verdict["traps"]}
    return [key for key in row.traps if key not in other_ways or verdicts_of(row, key)]


def verdicts_of(row: Row, trap: str) -> list[dict[str, Any]]:
    """The verdicts that found ``trap`` to be a mistake."""
    return [verdict for verdict in row.verdicts if trap in verdict["traps"] and verdict["status"] != "variant"]


def answered(row: Row) -> bool:
    """Whether answers to questions were marked, which can come without a notebook."""
    return any(test.question is not None and (test.points or test.traps) for test in row.tests)


def lost_questions(row: Row) -> list[TestScore]:
    """The questions that were not answered rightly."""
    return [test for test in row.tests if test.question is not None and test.points < test.max_points]


def trap_title(key: str, lang: str) -> str:
    """A trap's name with its key, or the key alone where the catalogue has no such trap."""
    trap = content.traps().get(key)
    return key if trap is None else message("classroom.report.trap_named", lang, title=trap.title(lang), key=key)


@cache
def lesson(key: str) -> Lesson | None:
    """Where the course teaches what the trap ``key`` gets wrong; None if there is no such trap or chapter."""
    trap = content.traps().get(key)
    if trap is None:
        return None
    try:
        chapter = course.chapter(trap.chapter)
    except (course.CourseError, course.UnknownChapter):
        return None
    section = next((each for each in chapter.sections if trap.anchor in each.anchors), None)
    if section is None:
        return Lesson(chapter.number, chapter.title)
    titles = {lang: _heading(chapter.id, section, trap.anchor, lang) for lang in LANGUAGES}
    return Lesson(chapter.number, chapter.title, Text(**titles))


def _heading(chapter: str, section: course.Section, anchor: str | None, lang: str) -> str:
    """The heading of a section as the notebook shows it, with the one inside it that ``anchor`` names."""
    shown = headings(chapter, lang)
    outer = shown.get(section.id) or f"{section.number}. {section.title(lang)}"
    inner = shown.get(anchor or "")
    if anchor == section.id or not inner:
        return outer
    return message("classroom.report.inside", lang, section=outer, heading=" ".join(inner.split()))


def in_order(rows: Sequence[Row]) -> tuple[Row, ...]:
    """The rows by their chapters' places in the course, then by student."""
    numbers = {name: _number(name) for name in {row.assignment for row in rows}}
    return tuple(sorted(rows, key=lambda row: (numbers[row.assignment], row.assignment, row.student)))


def _number(assignment: str) -> int:
    try:
        return course.chapter(assignment).number
    except (course.CourseError, course.UnknownChapter):
        return len(course.chapters())


# --- points -------------------------------------------------------------------------------------------------------------


def counted(rows: Sequence[Row]) -> list[Row]:
    """The rows that say something of the class: a fault on our side is no zero of a student's."""
    return [row for row in rows if row.status != "failed"]


def share(row: Row) -> float:
    """The share of the points, from 0 to 1."""
    return min(1.0, max(0.0, row.score / row.max_score)) if row.max_score > 0 else 0.0


def average(rows: Sequence[Row]) -> tuple[float, float] | None:
    """Mean and median of the points; None without rows."""
    scores = [row.score for row in counted(rows)]
    return (mean(scores), median(scores)) if scores else None


def distribution(rows: Sequence[Row]) -> list[tuple[str, int]]:
    """How many submissions have 0–9 % of the points, 10–19 %, ..., 90–99 %, and 100 %."""
    bins = [f"{low}–{low + 9}" for low in range(0, 100, 10)] + ["100"]
    numbers = [0] * len(bins)
    for row in counted(rows):
        numbers[int(share(row) * 10 + 1e-9)] += 1
    return list(zip(bins, numbers, strict=True))


def test_counts(rows: Sequence[Row]) -> list[TestCount]:
    """How a class did in each test of one assignment, in the assignment's order, without the submissions that nobody has seen."""
    found: dict[str, list[TestScore]] = defaultdict(list)
    for row in rows:
        for test in row.tests if row.status not in UNSEEN else ():
            found[test.id].append(test)
    return [TestCount(tests[0], *_summed(tests)) for tests in found.values()]


def _summed(tests: Sequence[TestScore]) -> tuple[int, int, float]:
    full = sum(test.points >= test.max_points for test in tests)
    return full, len(tests), mean(test.points for test in tests)


test_counts.__test__ = False  # type: ignore[attr-defined]  # for pytest


def points(value: float) -> str:
    """Points as people write them: 5, 2.5, 3.33."""
    return f"{value:.2f}".rstrip("0").rstrip(".")
