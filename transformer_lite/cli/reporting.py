"""The command report: the class's pages, its table of points, and the students' pages, from what `grade` found."""

from __future__ import annotations

import io
import json
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transformer_lite import cli
from transformer_lite.language import current, message

WIDE = 200  # columns of a table that nobody reads on a terminal


def report(folder: Path, as_json: bool) -> int:
    """Write the report of the course in ``folder`` and say what it says; "not so" if nothing has been graded yet."""
    from transformer_lite.classroom import reporting

    found = reporting.report(folder)
    code = cli.DONE if found.rows else cli.NOT_SO
    if as_json:
        print(json.dumps(_as_json(found), ensure_ascii=False))
        return code
    if found.rows:
        cli._say(_rows(found))
        cli._say()
        cli._say(_traps(found))
        cli._say()
    else:
        cli._say(_say("none_yet"), error=True)
    for text in _troubles(found):
        cli._say(text, error=True)
    cli._say(_say("command.pages", pages=_say("comma").join(map(str, found.pages))))
    cli._say(_say("command.csv", path=found.csv))
    if found.feedback:
        cli._say(_say("command.feedback", count=found.feedback, path=folder / "feedback"))
    return code


def _say(key: str, **details: object) -> str:
    return message(f"classroom.report.{key}", **details)


def _troubles(found: Any) -> list[str]:
    """What could not be read or written, in words."""
    unread = _say("comma").join(f"{path.parent.parent.name}/{path.stem}" for path in found.unread)
    said = [_say("unread", count=len(found.unread), files=unread)] if found.unread else []
    return said + [_say("unnamed", student=student) for student in found.unnamed]


def _as_json(found: Any) -> dict[str, Any]:
    traps = [
        {
            "trap": trap.key,
            "title": trap.title(current()),
            "students": len(trap.students),
            "of": found.seen_in(trap.assignments),
            "exercises": list(trap.exercises),
            "questions": list(trap.questions),
            "again": trap.lesson.text(current()) if trap.lesson else None,
        }
        for trap in found.traps
    ]
    written = {"pages": [str(path) for path in found.pages], "csv": str(found.csv), "feedback": found.feedback}
    troubles = {"unread": [str(path) for path in found.unread], "without_page": list(found.unnamed)}
    return {"rows": [row.short() for row in found.rows], "traps": traps, **written, **troubles}


def _rows(found: Any) -> str:
    columns = ("assignment", "student", "score", "status_title", "traps_title")
    cells = [
        [
            row.assignment,
            row.student,
            f"{row.score:g}/{row.max_score:g}",
            message(f"classroom.status.{row.status}"),
            " ".join(row.traps),
        ]
        for row in found.rows
    ]
    return _table([_say(column) for column in columns], cells, numbers=(2,))


def _traps(found: Any) -> str:
    if not found.traps:
        return _say("command.no_traps")
    columns = ("traps_title", "students", "where", "again")
    cells = []
    for trap in found.traps:
        where = [*trap.exercises, *trap.questions]
        number = _say("count_of", count=len(trap.students), of=found.seen_in(trap.assignments))
        again = trap.lesson.text(current()) if trap.lesson else ""
        cells.append([trap.title(current()), number, _say("comma").join(where), again])
    return f"{_say('command.traps')}\n{_table([_say(column) for column in columns], cells)}"


def _table(header: Sequence[str], rows: Sequence[Sequence[str]], numbers: Sequence[int] = ()) -> str:
    """The rows as a table of text as wide as the terminal; without lines, which not every console can draw."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        shown.add_column(Text(name), justify="right" if place in numbers else "left", overflow="fold")
    for row in rows:
        shown.add_row(*(Text(visible(cell)) for cell in row))  # no markup: an id in brackets stays one
    text = io.StringIO()
    Console(file=text, width=shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE, color_system=None).print(shown)
    return "\n".join(line.rstrip() for line in text.getvalue().rstrip("\n").splitlines())


def visible(text: str) -> str:
    """``text`` without the control characters that a terminal would obey, on one line."""
    return "".join(character if character.isprintable() else " " for character in text)
