"""The journal's file: recording, reading, merging, and what to do when the disk gives trouble."""

from __future__ import annotations

import atexit
import errno
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TypeVar

from transformer_lite.journal.events import (
    MIGRATIONS,
    Event,
    NewerFile,
    insert,
    migrate,
    plain,
    salvage,
    select,
    transaction,
    version,
)
from transformer_lite.journal.place import FILE_NAME, home, on_network, recording

PATIENCE = 5.0  # seconds that a writer waits for another kernel
SHORT_PATIENCE = 0.2  # the same once waiting has been in vain: a lesson must not stand still at every check
REPEAT = timedelta(minutes=1)

T = TypeVar("T")


class _Immovable(Exception):
    """A damaged file that could not be renamed."""


_TROUBLES = (sqlite3.Error, OSError, NewerFile, _Immovable)


class Journal:
    """One journal file. Threads and processes may share it; nothing is created before the first event is recorded.

    ``trouble`` is a code, or None while all is well: "read_only", "disk_full", "locked" (another program holds the file),
    "unavailable" (anything else about the disk), "newer" (a later course wrote the file: it is read, not written), "damaged"
    (and could not be moved), "damaged_renamed" (moved aside; what could still be read was carried over).
    ``trouble_parameters`` are what its message is filled with.
    """

    def __init__(self, path: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(path) if path is not None else home() / FILE_NAME
        self.trouble: str | None = None
        self.trouble_parameters: dict[str, object] = {}
        self._untold: list[tuple[str, dict[str, object]]] = []
        self._kept: list[Event] = []  # what could not be written yet
        self._lock = threading.RLock()
        self._sound: tuple[int, int] | None = None  # the file that was looked over
        self._mode: str | None = None
        self._patience = PATIENCE

    def record(self, kind: str, subject: str, **parameters: object) -> bool:
        """Add an event; True if it is in the file now. Never raises for what is wrong with the disk: see ``trouble``.

        Not stored, without trouble: anything while `recording` is false, and what only repeats the last event, so that running
        a notebook twice inflates nothing. A "check" repeats the last one of its exercise if code, status and exercise version
        (``code``, ``status``, ``version``) are the same, whenever that was, unless there was a "reset" since; without a ``code``
        it is never a repetition.
        A "language" repeats the language in use. An "open" repeats the last chapter opened, and any other event the last of its
        kind and subject, if it is the same within a minute: a cell run twice, a second click. Later it is a new answer.
        """
        if not recording():
            return False
        event = Event(_now(), kind, subject, plain(parameters))
        with self._lock:
            try:
                stored = self._write(lambda connection: self._add(connection, event))
            except _TROUBLES as error:
                self._note(error)
                if not _repeats(event, self.last):
                    self._kept.append(event)
                return False
            self._all_written()
            return stored

    def events(self, kind: str | None = None, subject: str | None = None) -> list[Event]:
        """The events, oldest first, those that could not be written yet among them."""
        with self._lock:
            found = self._read(lambda connection: select(connection, kind, subject)) or []
            found += [event for event in self._kept if event.is_about(kind, subject)]
        return sorted(found, key=lambda event: event.at)  # stable: equal times stay in the order in which they were recorded

    def last(self, kind: str, subject: str | None = None) -> Event | None:
        """The newest event of a kind (about a subject), or None."""
        with self._lock:
            found = self._read(lambda connection: select(connection, kind, subject, newest=True)) or []
            found += [event for event in self._kept if event.is_about(kind, subject)]
        return max(reversed(found), key=lambda event: event.at, default=None)  # of equal times, the one recorded last

    def export(self, path: str | os.PathLike[str]) -> Path:
        """Write all events to a new journal file at ``path``, which `merge` reads. Raises OSError if it cannot be written."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
        try:
            connection = sqlite3.connect(part, isolation_level=None)
            try:
                with transaction(connection):
                    migrate(connection)
                    insert(connection, self.events())
            finally:
                connection.close()
            os.replace(part, path)
        except sqlite3.Error as error:
            raise OSError(f"{path} could not be written: {error}.") from error
        finally:
            part.unlink(missing_ok=True)
        return path

    def merge(self, path: str | os.PathLike[str]) -> int:
        """Add the events of another journal file that are not here yet; returns how many. The other file is not changed.

        Raises:
            ValueError: ``path`` is no journal, or one of a later version of the course.
        """
        path = Path(path)
        try:
            with Journal(path)._reading() as connection:
                written_by, theirs = version(connection), select(connection)
        except (sqlite3.Error, OSError) as error:
            raise ValueError(f"path must be a journal file, as export writes it; {path} cannot be read: {error}.") from None
        if written_by == 0:
            raise ValueError(f"path must be a journal file, as export writes it; {path} holds no journal.")
        if written_by > len(MIGRATIONS):
            raise ValueError(f"{path} was written by a later version of this course; update the course first.")
        with self._lock:
            known = {event.id for event in self.events()}
            new = [event for event in theirs if event.id not in known]
            self._kept += new
            self._write_kept()
        return len(new)

    def close(self) -> None:
        """Write what is still kept in memory, if that has become possible. The journal may be used again afterwards."""
        with self._lock:
            if recording():
                self._write_kept()

    def trouble_message(self, lang: str, again: bool = False) -> str | None:
        """What went wrong and what to do, in ``lang``, each trouble once; None if there is nothing (new) to tell.

        ``again`` tells the present trouble once more.
        """
        with self._lock:
            troubles, self._untold = self._untold, []
            if again and self.trouble is not None:
                troubles = [(self.trouble, self.trouble_parameters)]
        return "\n".join(_text(code, lang).format(**parameters) for code, parameters in troubles) or None

    # --- one operation at a time ---
    # A connection lives for one operation: a file that is moved or deleted meanwhile is noticed at the next one, and no kernel
    # holds the file open (Windows would then refuse to move it).

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path, timeout=self._patience, isolation_level=None)

    def _write(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Do ``work`` in one transaction; a damaged file is first moved aside, and where WAL cannot work it is given up."""
        deadline = time.monotonic() + self._patience
        mended = without_wal = False
        while True:
            identity = _identity(self.path)
            try:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                with self._writing() as connection, transaction(connection):
                    migrate(connection)
                    return work(connection)
            except sqlite3.DatabaseError as error:
                if _is_damage(error) and not mended:
                    self._set_aside(identity)
                    mended = True
                elif _code(error) in _NO_SHARED_MEMORY and self._mode == "wal":
                    self._mode = "delete"
                    without_wal = True
                # Some of SQLite's busy states (recovery, a change of mode) do not wait by themselves.
                elif _code(error) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL) and time.monotonic() < deadline:
                    time.sleep(0.005)
                else:
                    if without_wal:  # that was not the reason
                        self._mode = None
                    raise

    def _read(self, work: Callable[[sqlite3.Connection], list[Event]]) -> list[Event]:
        """Do ``work`` on what is on the disk; nothing is created or changed there, but that a damaged file is moved aside."""
        for _ in range(2):
            identity = _identity(self.path)
            if identity is None:
                return []
            try:
                with self._reading() as connection:
                    return work(connection)
            except (sqlite3.Error, OSError) as error:
                if not _is_damage(error) or not recording():
                    self._note(error)
                    return []
            try:
                self._set_aside(identity)
            except (OSError, _Immovable) as error:
                self._note(error)
                return []
            self._write_kept()  # what was carried over must not wait for an event that may never come
        return []

    def _add(self, connection: sqlite3.Connection, event: Event) -> bool:
        insert(connection, self._kept)
        if _repeats(event, lambda kind, subject: next(iter(select(connection, kind, subject, newest=True)), None)):
            return False
        insert(connection, [event])
        return True

    def _write_kept(self) -> None:
        if not self._kept:
            return
        try:
            self._write(lambda connection: insert(connection, self._kept))
        except _TROUBLES as error:
            self._note(error)
        else:
            self._all_written()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        connection = self._connect()
        try:
            self._choose_mode(connection)
            self._look_over(connection)
            yield connection
        finally:
            connection.close()

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        connection = self._connect_to_read()
        try:
            self._look_over(connection)
            yield connection
        finally:
            connection.close()

    def _connect_to_read(self) -> sqlite3.Connection:
        """In the usual way; else without shared memory; else, where nothing can be created beside the file, as it lies there."""
        uri = self.path.absolute().as_uri()
        for number, query in enumerate(("?mode=rw", "?mode=rw", "?mode=ro&immutable=1")):
            connection = None
            try:
                connection = sqlite3.connect(uri + query, uri=True, timeout=self._patience, isolation_level=None)
                if number == 1:
                    connection.execute("PRAGMA locking_mode=EXCLUSIVE")
                connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
                return connection
            except sqlite3.OperationalError as error:
                if connection is not None:
                    connection.close()
                if number == 2 or _code(error) not in _NO_SHARED_MEMORY:
                    raise
        raise AssertionError("unreachable: the last way returns or raises")

    def _choose_mode(self, connection: sqlite3.Connection) -> None:
        """WAL, where a writer does not wait for readers; the rollback journal where its shared memory cannot work."""
        if self._mode is None:
            self._mode = "delete" if on_network(self.path.parent) else "wal"
        if self._mode == "delete" and _is_wal(self.path):
            connection.execute("PRAGMA locking_mode=EXCLUSIVE")  # a file in WAL mode can so be opened without shared memory
        if connection.execute("PRAGMA journal_mode").fetchone()[0] != self._mode:
            connection.execute(f"PRAGMA journal_mode={self._mode}")
        connection.execute("PRAGMA locking_mode=NORMAL")

    def _look_over(self, connection: sqlite3.Connection) -> None:
        """Check the file once, and again if another has come into its place."""
        identity = _identity(self.path)
        if identity == self._sound:
            return
        finding = connection.execute("PRAGMA quick_check(1)").fetchone()[0]
        if finding != "ok":
            error = sqlite3.DatabaseError(finding)
            error.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
            raise error
        self._sound = identity

    # --- trouble ---

    def _set_aside(self, identity: tuple[int, int] | None) -> None:
        """Rename a damaged file and keep what can still be read of it for the new one."""
        if _identity(self.path) != identity:
            return  # another kernel has moved it already; what stands there now is a new one
        moved = self.path.with_name(f"{self.path.stem}.damaged-{_now():%Y%m%dT%H%M%S%f}{self.path.suffix}")
        try:
            os.replace(self.path, moved)
        except OSError as error:
            raise _Immovable(str(moved)) from error
        for suffix in ("-wal", "-shm"):  # they belong to the damaged file; beside a new one they would damage it in turn
            sidecar = self.path.with_name(self.path.name + suffix)
            if sidecar.exists():
                os.replace(sidecar, moved.with_name(moved.name + suffix))
        self._sound = None
        known = {event.id for event in self._kept}
        carried = [event for event in salvage(moved) if event.id not in known]
        self._kept[:0] = carried
        self._trouble("damaged_renamed", moved=str(moved), carried=len(carried))

    def _note(self, error: Exception) -> None:
        code, number = _code(error), getattr(error, "errno", None)
        if isinstance(error, NewerFile):
            self._trouble("newer")
        elif isinstance(error, _Immovable):
            self._trouble("damaged", moved=str(error))
        elif code == sqlite3.SQLITE_FULL or number in (errno.ENOSPC, errno.EDQUOT):
            self._trouble("disk_full")
        elif code in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_PROTOCOL):
            self._patience = SHORT_PATIENCE
            self._trouble("locked")
        elif (
            code in (sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM)
            or number in (errno.EACCES, errno.EPERM, errno.EROFS)
            or (code in (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR) and not _may_write(self.path))
        ):
            self._trouble("read_only")
        else:
            self._trouble("unavailable", reason=f"{type(error).__name__}: {error}")

    def _trouble(self, code: str, **parameters: object) -> None:
        parameters["path"] = str(self.path)
        if code != self.trouble:
            self._untold.append((code, parameters))
        self.trouble, self.trouble_parameters = code, parameters

    def _all_written(self) -> None:
        self._kept.clear()
        self._patience = PATIENCE
        self._untold = [(code, parameters) for code, parameters in self._untold if code == "damaged_renamed"]
        if self.trouble != "damaged_renamed":  # that has happened, whatever works now
            self.trouble, self.trouble_parameters = None, {}


_default: Journal | None = None
_default_lock = threading.Lock()


def default() -> Journal:
    """The process's journal, in `home`. If that has moved (another ``TRANSFORMER_LITE_HOME``), the one there."""
    global _default
    path = home() / FILE_NAME
    with _default_lock:
        if _default is None or _default.path != path:
            if _default is not None:
                _default.close()
            _default = Journal(path)
        return _default


@atexit.register
def _close_default() -> None:
    if _default is not None:
        _default.close()  # the last chance for what is still kept in memory


def trouble_message(lang: str, again: bool = False) -> str | None:
    """`Journal.trouble_message` of the process's journal."""
    return default().trouble_message(lang, again)


def _text(code: str, lang: str) -> str:
    # Rooms of the first floor do not import one another, so the journal reads its own page of the catalogue.
    import tomllib

    with (Path(__file__).parents[1] / "messages" / "journal.toml").open("rb") as file:
        return tomllib.load(file)["journal"]["trouble"][code][lang]


def _repeats(event: Event, newest: Callable[[str, str | None], Event | None]) -> bool:
    """Whether ``event`` only repeats the ``newest`` (of a kind, about a subject); see `Journal.record`."""
    # Where one is, and in which language, is a state of the course: what counts is the last of the kind, whatever it was about.
    last = newest(event.kind, None if event.kind in ("open", "language") else event.subject)
    if last is None or last.subject != event.subject:
        return False
    ours, theirs = event.parameters, last.parameters
    if event.kind == "check":
        if ours.get("code") is None or any(ours.get(name) != theirs.get(name) for name in ("code", "status", "version")):
            return False
        reset = newest("reset", event.subject)
        return reset is None or reset.at < last.at
    return ours == theirs and (event.kind == "language" or abs(event.at - last.at) < REPEAT)


def _now() -> datetime:
    return datetime.now(UTC)


# What SQLite says where a file in WAL mode cannot have its shared memory.
_NO_SHARED_MEMORY = (sqlite3.SQLITE_CANTOPEN, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_PROTOCOL, sqlite3.SQLITE_READONLY)


def _code(error: BaseException) -> int | None:
    """SQLite's result code without its details, which are above the lowest eight bits."""
    code = getattr(error, "sqlite_errorcode", None)
    return None if code is None else code & 0xFF


def _is_damage(error: BaseException) -> bool:
    return _code(error) in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = path.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_wal(path: Path) -> bool:
    """Whether the file's header says that it is in WAL mode (asking SQLite would need the shared memory)."""
    try:
        with path.open("rb") as file:
            return file.read(20)[18:19] == b"\x02"
    except OSError:
        return False


def _may_write(path: Path) -> bool:
    """Whether this process may write the file, or create it and what belongs beside it."""
    effective = {"effective_ids": True} if os.access in os.supports_effective_ids else {}
    return all(os.access(place, os.W_OK, **effective) for place in (path, path.parent) if place.exists())
