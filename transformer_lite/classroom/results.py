"""What a grading found: one row a submission, kept as JSON, so that a second run goes on and a report needs no notebook."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transformer_lite.course.files import replace

SCHEMA = 1
FOLDER = "grading"  # of a course: manifests and rows, for the instructor only
MANIFEST = "assignment.json"
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


def place(course: Path, assignment: str, student: str) -> Path:
    """Where the row of a submission is kept."""
    return course / FOLDER / assignment / "rows" / f"{student}.json"


def write(course: Path, row: Row) -> None:
    """Keep ``row``: whole or not at all."""
    path = place(course, row.assignment, row.student)
    path.parent.mkdir(parents=True, exist_ok=True)
    replace(path, (json.dumps({"schema": SCHEMA, **asdict(row)}, ensure_ascii=False, indent=1) + "\n").encode())


def read(path: Path) -> Row | None:
    """The row kept in ``path``; None if there is none, or none that this version can read."""
    try:
        kept = json.loads(path.read_text("utf-8"))
        if kept.pop("schema") != SCHEMA:
            return None
        kept["traps"], kept["verdicts"] = tuple(kept["traps"]), tuple(kept["verdicts"])
        kept["tests"] = tuple(TestScore(**{**test, "traps": tuple(test["traps"])}) for test in kept["tests"])
        kept["notes"] = tuple(Note(**note) for note in kept["notes"])
        return Row(**kept)
    except (OSError, ValueError, KeyError, TypeError):
        return None


def rows(course: Path) -> list[Row]:
    """All rows of a course, by assignment and student."""
    found = (read(path) for path in sorted((course / FOLDER).glob("*/rows/*.json")))
    return sorted((row for row in found if row is not None), key=lambda row: (row.assignment, row.student))


def manifests(course: Path) -> dict[str, dict[str, Any]]:
    """What each assignment of a course tests, by its name."""
    paths = sorted((course / FOLDER).glob(f"*/{MANIFEST}"))
    return {path.parent.name: json.loads(path.read_text("utf-8")) for path in paths}
