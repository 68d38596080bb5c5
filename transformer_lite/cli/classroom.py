"""The commands assign and grade: a chapter handed out as an assignment, and what came back graded."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from transformer_lite import cli, content
from transformer_lite.cli.reporting import visible
from transformer_lite.language import current, message, printable


def assign(
    chapters: Sequence[str], out: Path, exercises: str | None, questions: int | None, seed: int, bank: Path | None, as_json: bool
) -> int:
    """Make the assignments of ``chapters`` in the course in ``out``, in the language of the day."""
    from transformer_lite.classroom import assigning

    names = [name.strip() for name in exercises.split(",") if name.strip()] if exercises is not None else None
    made = assigning.assign(chapters, current(), out, exercises=names, questions=questions, seed=seed, bank=bank)
    if as_json:
        rows = [
            {"assignment": one.name, "release": str(one.release), "exercises": list(one.exercises), "questions": one.questions,
             "points": one.points, "changed": one.changed} for one in made
        ]  # fmt: skip
        _print_json({"assignments": rows})
        return cli.DONE
    for one in made:
        key = "made" if one.changed else "unchanged"
        figures = {"exercises": ", ".join(one.exercises) or "-", "questions": one.questions, "points": f"{one.points:g}"}
        cli._say(message(f"cli.classroom.{key}", name=one.name, **figures))
        cli._say(message("cli.classroom.hand_out", folder=one.release))
    cli._say(message("cli.classroom.then", submitted=out / "submitted", out=out))
    return cli.DONE


def grade(folder: Path, jobs: int, timeout: int, trust: bool, again: bool, as_json: bool) -> int:
    """Grade what was handed in, and print a row each."""
    from transformer_lite.classroom import grading, results

    with _bar(as_json) as report:
        rows = grading.grade(folder, jobs=jobs, seconds=timeout, trust=trust, again=again, progress=report)
    if as_json:
        _print_json({"schema": results.SCHEMA, "rows": [row.short() for row in rows]})
    else:
        _show(rows)
        counted = Counter(row.status for row in rows)
        parts = [f"{message(f'classroom.status.{status}')} {counted[status]}" for status in results.STATUSES if counted[status]]
        cli._say(message("cli.classroom.graded", count=len(rows), parts=", ".join(parts)))
        cli._say(message("cli.classroom.report_next", folder=folder))
    return cli.OUR_FAULT if any(row.status == "failed" for row in rows) else cli.DONE


def _print_json(data: Any) -> None:
    """Print ``data`` as JSON, the same to a reader in every encoding."""
    text = json.dumps(data, ensure_ascii=False)
    print(text if printable(text) == text else json.dumps(data))


def _show(rows: Sequence[Any]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table()
    for name in ("student", "assignment", "score", "status", "traps"):
        table.add_column(message(f"cli.classroom.column.{name}"), justify="right" if name == "score" else "left", overflow="fold")
    for row in rows:
        traps = ", ".join(f"{key} {content.trap(key).title(current())}" if key in content.traps() else key for key in row.traps)
        score = f"{row.score:g} / {row.max_score:g}"
        cells = (row.student, row.assignment, score, message(f"classroom.status.{row.status}"), traps)
        table.add_row(*(Text(visible(cell)) for cell in cells))
    console = Console()
    with console.capture() as drawn:
        console.print(table)
    cli._say(drawn.get().rstrip("\n"))


@contextmanager
def _bar(quiet: bool) -> Iterator[Callable[[int, int, Any], None]]:
    if quiet:
        yield lambda done, of, row: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True)) as shown:
        task = shown.add_task(printable(message("cli.classroom.grading"), sys.stderr.encoding), total=None)

        def report(done: int, of: int, row: Any) -> None:
            text = message("cli.classroom.grading") if row is None else visible(f"{row.student} · {row.assignment}")
            shown.update(task, completed=done, total=of, description=printable(text, sys.stderr.encoding))

        yield report
