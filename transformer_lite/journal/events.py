"""An event, and the table of events in SQLite."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

# One entry per version of the file: the statements that lead to it from the version before. Entries are only added, never edited.
MIGRATIONS: tuple[tuple[str, ...], ...] = (
    (
        "CREATE TABLE event (number INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT NOT NULL UNIQUE, at TEXT NOT NULL, "
        "kind TEXT NOT NULL, subject TEXT NOT NULL, parameters TEXT NOT NULL)",
        "CREATE INDEX event_by_subject ON event (kind, subject, at)",
    ),
)

_COLUMNS = "id, at, kind, subject, parameters"


@dataclass(frozen=True)
class Event:
    """One thing that happened: when (UTC), what kind, about what, and its parameters (plain JSON values).

    ``id`` is the event's own: by it, events that two files have in common are known again.
    """

    at: datetime
    kind: str
    subject: str
    parameters: dict[str, Any]
    id: str = field(default_factory=lambda: uuid.uuid4().hex, compare=False)

    def is_about(self, kind: str | None, subject: str | None) -> bool:
        """Whether it is of this kind and subject; None stands for any."""
        return kind in (None, self.kind) and subject in (None, self.subject)


def plain(parameters: Mapping[str, object]) -> dict[str, Any]:
    """Parameters as JSON gives them back: tuples as lists, NumPy numbers as numbers."""

    def simpler(value: Any) -> Any:
        if isinstance(value, (set, frozenset)):
            return sorted(value, key=str)
        return value.tolist() if hasattr(value, "tolist") else str(value)

    return json.loads(json.dumps(dict(parameters), default=simpler, skipkeys=True))


class NewerFile(Exception):
    """The file was written by a later version of the course."""


def version(connection: sqlite3.Connection) -> int:
    """The version of the file; 0 before anything was written."""
    return connection.execute("PRAGMA user_version").fetchone()[0]


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the present version, inside the caller's transaction."""
    found = version(connection)
    if found > len(MIGRATIONS):
        raise NewerFile
    if found < len(MIGRATIONS):
        for statements in MIGRATIONS[found:]:
            for statement in statements:
                connection.execute(statement)
        connection.execute(f"PRAGMA user_version={len(MIGRATIONS)}")


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """A transaction that has the file to itself from its start, so that what it reads is still true when it writes.

    (In WAL mode, one that first reads and then writes fails at once if another process wrote in between, whatever the timeout.)
    """
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def insert(connection: sqlite3.Connection, events: Iterable[Event]) -> None:
    """Add the events that are not there yet."""
    connection.executemany(
        f"INSERT OR IGNORE INTO event ({_COLUMNS}) VALUES (?, ?, ?, ?, ?)",
        [
            (
                event.id,
                event.at.astimezone(UTC).isoformat(timespec="microseconds"),  # of one width: sorting the texts sorts the times
                event.kind,
                event.subject,
                json.dumps(event.parameters),
            )
            for event in sorted(events, key=lambda event: event.at)
        ],
    )


def select(
    connection: sqlite3.Connection, kind: str | None = None, subject: str | None = None, newest: bool = False
) -> list[Event]:
    """The events in the file, oldest first; with ``newest`` only the last one."""
    if version(connection) == 0:
        return []
    wanted = {column: value for column, value in (("kind", kind), ("subject", subject)) if value is not None}
    where = "WHERE " + " AND ".join(f"{column} = ?" for column in wanted) if wanted else ""
    order = "ORDER BY at DESC, number DESC LIMIT 1" if newest else "ORDER BY at, number"
    rows = connection.execute(f"SELECT {_COLUMNS} FROM event {where} {order}", list(wanted.values()))
    return [event for event in map(_event, rows) if event is not None]


def salvage(path: Path) -> list[Event]:
    """What can still be read of a damaged file: row after row, until the damage."""
    events: list[Event] = []
    try:
        connection = sqlite3.connect(path, isolation_level=None)
    except sqlite3.Error:
        return events
    try:
        for row in connection.execute(f"SELECT {_COLUMNS} FROM event NOT INDEXED ORDER BY number"):
            if (event := _event(row)) is not None:
                events.append(event)
    except sqlite3.Error:
        pass  # as far as the file can be read
    finally:
        connection.close()
    return events


def _event(row: tuple[str, str, str, str, str]) -> Event | None:
    """The event of a row; None for a row that no version of the course wrote: one such must not hide the others."""
    try:
        at = datetime.fromisoformat(row[1])
        parameters = json.loads(row[4])
    except (TypeError, ValueError):
        return None
    return Event(at, row[2], row[3], parameters, row[0]) if at.tzinfo and isinstance(parameters, dict) else None
