"""What a class misunderstands, written down: two pages for the instructor, a table of points, and a page for each student.

The numbers are those of `tallying`, the pages those of `pages`; nothing of a submission is run or opened here.
"""

from __future__ import annotations

import csv
import io
import sqlite3
import unicodedata
from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace as with_
from datetime import datetime
from pathlib import Path, PurePath

from transformer_lite import course as courses
from transformer_lite.classroom import pages, results
from transformer_lite.classroom.results import Row
from transformer_lite.classroom.tallying import Report, in_order, points, trap_counts
from transformer_lite.course.files import replace
from transformer_lite.language import LANGUAGES, check_language, message

FOLDER = "report"
CSV = "grades.csv"
COLUMNS = ("student", "assignment", "score", "max_score", "status", "traps")
FORMULA = "=+-@＝＋－＠\t\r\n"  # with one of these in front, a spreadsheet takes a cell for a formula


def report(course: Path, langs: Sequence[str] = LANGUAGES) -> Report:
    """Write the class report, the table of points and the students' pages of the course in folder ``course``.

    Args:
        course: the folder that `assign` made and `grade` graded in.
        langs: the languages of the pages.

    Raises:
        CourseError: the folder is no course, its definitions are damaged, or it cannot be written to.
    """
    for lang in langs:
        check_language(lang)
    found = read(course)
    when = datetime.now().strftime("%Y-%m-%d %H:%M")
    written = []
    for lang in langs:
        path = course / FOLDER / f"report.{lang}.html"
        _put(course, path, pages.class_page(found, lang, when).encode())
        written.append(path)
    table = course / FOLDER / CSV
    _put(course, table, grades(found.rows).encode("utf-8-sig", "replace"))
    unnamed = []
    given = 0
    for row in found.rows:
        if not (_is_name(row.student) and _is_name(row.assignment)):
            unnamed.append(row.student)
            continue
        for lang in langs:
            _put(course, feedback_place(course, row, lang), pages.feedback_page(row, found.name(row.student), lang).encode())
        given += 1
    return with_(found, pages=tuple(written), csv=table, feedback=given, unnamed=tuple(dict.fromkeys(unnamed)))


def read(course: Path) -> Report:
    """What the gradings of a course say; nothing is written.

    Raises:
        CourseError: the folder is no course, or its definitions are damaged.
    """
    _must_be_course(course)
    rows = in_order(results.rows(course))
    kept = sorted((course / results.FOLDER).glob("*/rows/*.json"))
    unread = tuple(path for path in kept if results.read(path) is None) if len(kept) != len(rows) else ()
    return Report(course, rows, tuple(trap_counts(rows)), _names(course / "gradebook.db"), unread)


def _must_be_course(folder: Path) -> None:
    expected = f"{results.FOLDER}/*/{results.MANIFEST}"
    if not results.manifests(folder):
        raise courses.CourseError(message("classroom.report.no_course", folder=folder, expected=expected))


def _names(gradebook: Path) -> dict[str, tuple[str, str]]:
    """The students' names by their ids. A gradebook that cannot be read costs the names and nothing else."""
    if not gradebook.is_file():
        return {}
    try:
        with closing(sqlite3.connect(f"{gradebook.resolve().as_uri()}?mode=ro", uri=True)) as opened:
            listed = opened.execute("SELECT id, first_name, last_name FROM student").fetchall()
    except sqlite3.Error:
        return {}
    return {str(student): (str(first or "").strip(), str(last or "").strip()) for student, first, last in listed}


# --- files --------------------------------------------------------------------------------------------------------------


def grades(rows: Sequence[Row]) -> str:
    """The table of points as CSV, a row a submission. No cell of it is a formula to a spreadsheet."""
    text = io.StringIO()
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    for row in rows:
        cells = (row.student, row.assignment, points(row.score), points(row.max_score), row.status, " ".join(row.traps))
        writer.writerow([harmless(cell) for cell in cells])
    return text.getvalue()


def harmless(cell: str) -> str:
    """``cell`` with an apostrophe in front where a spreadsheet would compute it, also after spaces."""
    cell = "".join(character for character in cell if character in "\t\r\n" or unicodedata.category(character) != "Cc")
    begins = cell.lstrip(" \u3000\u00a0\ufeff")
    return f"'{cell}" if begins[:1] and begins[0] in FORMULA else cell


def feedback_place(course: Path, row: Row, lang: str) -> Path:
    """The page that a student gets for a submission."""
    return course / pages.FEEDBACK / row.student / f"{row.assignment}.{lang}.html"


def _is_name(name: str) -> bool:
    """Whether ``name`` is the name of a file or folder, and no way to another one."""
    return name not in ("", ".", "..") and PurePath(name).name == name and "\0" not in name


def _put(folder: Path, path: Path, data: bytes) -> None:
    """Write a file of the course, whole or not at all, and nowhere else."""
    try:
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise courses.CourseError(message("classroom.report.outside", path=path.parent))
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, data)
    except OSError as trouble:
        raise courses.CourseError(message("classroom.report.cannot_write", path=path, reason=trouble.strerror)) from trouble
