"""What a grading found: one row a submission, kept as JSON, so that a second run goes on and a report needs no notebook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transformer_lite import course
from transformer_lite.course.files import replace
from transformer_lite.language import message

SCHEMA = 1
FOLDER = "grading"  # of a course: manifests and rows, for the instructor only
MANIFEST = "assignment.json"
LONGEST = 200  # bytes of the name of a row's file
# From the mildest to the gravest: a row's status is the gravest thing that happened.
STATUSES = ("graded", "blank", "error", "timeout", "died", "by_hand", "tampered", "missing", "unreadable", "failed")


@dataclass(frozen=True)
class TestScore:
    """The points of one test: of a part of an exercise, or of a question, with the traps that the answer to it showed."""

    __test__ = False  # for pytest

    id: str
    points: float
    max_points: float
    exercise: str | None = None
    part: str | None = None
    question: str | None = None
    traps: tuple[str, ...] = ()


@dataclass(frozen=True)
class Note:
    """Something that was repaired in a submission, or left out of it: its code and the words that belong to it."""

    code: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Row:
    """One submission graded.

    Attributes:
        assignment, student: their names in the course; the assignment's is its chapter's id.
        lang: of the notebook.
        score, max_score: points.
        status: one of `STATUSES`.
        traps: their keys, each once, in the order of the exercises and questions.
        tests: every test of the assignment, in its order.
        verdicts: of the exercises, as ``practice.CheckResult.to_dict`` gives them.
        notes: what was repaired or left out.
        submitted: when it was handed in, if that is known.
        digest: of what was handed in and of what it was graded by; another one is graded anew.
        seconds: that the grading took.
    """

    assignment: str
    student: str
    lang: str
    score: float
    max_score: float
    status: str
    traps: tuple[str, ...] = ()
    tests: tuple[TestScore, ...] = ()
    verdicts: tuple[dict[str, Any], ...] = ()
    notes: tuple[Note, ...] = ()
    submitted: str | None = None
    digest: str = ""
    seconds: float = 0.0

    def short(self) -> dict[str, Any]:
        """What ``grade --json`` prints of it."""
        return {
            "assignment": self.assignment,
            "student": self.student,
            "score": self.score,
            "max_score": self.max_score,
            "status": self.status,
            "traps": list(self.traps),
        }


def gravest(statuses: Iterable[str]) -> str:
    """The gravest of ``statuses``, "graded" if there are none."""
    return max(statuses, key=STATUSES.index, default="graded")


class Damaged(course.CourseError):
    """A file of the classroom's own cannot be read; the text says which one and how to mend it."""


def place(course: Path, assignment: str, student: str) -> Path:
    """Where the row of a submission is kept."""
    name = student
    if len(student.encode()) > LONGEST:  # a folder may have a longer name than a file with an ending
        name = student.encode()[:100].decode("utf-8", "ignore") + "-" + hashlib.sha256(student.encode()).hexdigest()[:32]
    return course / FOLDER / assignment / "rows" / f"{name}.json"


def write(course: Path, row: Row) -> None:
    """Keep ``row``: whole or not at all. Halves of characters, which a student's text may hold and no file can, become "?"."""
    path = place(course, row.assignment, row.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps({"schema": SCHEMA, **asdict(row)}, ensure_ascii=False, indent=1) + "\n"
    replace(path, text.encode("utf-8", "replace"))


def read(path: Path) -> Row | None:
    """The row kept in ``path``; None if there is none, or none that this version can read."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept.pop("schema") != SCHEMA:
            return None
        kept["traps"], kept["verdicts"] = tuple(kept["traps"]), tuple(kept["verdicts"])
        kept["tests"] = tuple(TestScore(**{**test, "traps": tuple(test["traps"])}) for test in kept["tests"])
        kept["notes"] = tuple(Note(**note) for note in kept["notes"])
        row = Row(**kept)
        return row if row.status in STATUSES and isinstance(row.score + row.max_score, int | float) else None
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None


def rows(course: Path) -> list[Row]:
    """All rows of a course, by assignment and student."""
    found = (read(path) for path in sorted((course / FOLDER).glob("*/rows/*.json")))
    return sorted((row for row in found if row is not None), key=lambda row: (row.assignment, row.student))


def manifests(course: Path) -> dict[str, dict[str, Any]]:
    """What each assignment of a course tests, by its name.

    Raises:
        Damaged: a manifest cannot be read, or is of another version.
    """
    return {path.parent.name: manifest(path) for path in sorted((course / FOLDER).glob(f"*/{MANIFEST}"))}


def manifest(path: Path) -> dict[str, Any]:
    """What the assignment described in ``path`` tests. Raises `Damaged`."""
    try:
        found = json.loads(path.read_text("utf-8"))
        if found["schema"] != SCHEMA:
            raise ValueError(f"schema {found['schema']!r}")
        if found["assignment"] != path.parent.name or {"file", "lang", "seed", "tests", "exercises", "keys"} - set(found):
            raise ValueError("assignment")
        return found
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError) as trouble:
        reason = getattr(trouble, "strerror", None) or str(trouble) or type(trouble).__name__
        raise Damaged(message("classroom.damaged_manifest", path=path, reason=reason)) from trouble
