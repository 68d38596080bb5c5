"""Whatever happens to the disk, a lesson goes on and no event is lost."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
import threading
from contextlib import closing
from pathlib import Path

import pytest

from transformer_lite import language
from transformer_lite.journal import Journal, default, events, file, place, trouble_message


def start(code: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-c", textwrap.dedent(code), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def fill(journal: Journal, n: int) -> None:
    for number in range(n):
        assert journal.record("check", "softmax", status="wrong", code=str(number), note="x" * 200)


def codes(journal: Journal) -> list[str]:
    return [event.parameters["code"] for event in journal.events()]


# --- several at once ---


@pytest.mark.parametrize("mode", ["wal", "delete"])
def test_four_processes_lose_nothing(journal, mode):
    code = """
        import sys
        from transformer_lite.journal import Journal, file
        file.on_network = lambda folder: sys.argv[3] == "delete"
        journal = Journal(sys.argv[1])
        stored = [journal.record("check", "softmax", code=f"{sys.argv[2]}-{i}", status="wrong") for i in range(100)]
        journal.close()  # on a busy machine one may have had to wait too long, and keep an event for later
        print(len(stored), journal.trouble)
    """
    processes = [start(code, str(journal.path), str(number), mode) for number in range(4)]
    results = [process.communicate() for process in processes]
    assert [out.split() for out, _ in results] == [["100", "None"]] * 4, results
    assert sorted(codes(journal)) == sorted(f"{number}-{i}" for number in range(4) for i in range(100))
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == (mode,)


def test_what_is_kept_is_tried_once_more_when_the_kernel_stops(monkeypatch, tmp_path):
    code = """
        from transformer_lite.journal import default, file
        write = file.Journal._write
        file.Journal._write = lambda self, work: (_ for _ in ()).throw(OSError("not now"))
        print(default().record("hint", "softmax", level=1), default().trouble)
        file.Journal._write = write
    """
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    out, err = start(code).communicate()
    assert out.split() == ["False", "unavailable"] and err == ""
    assert len(default().events()) == 1


def test_four_threads_lose_nothing(journal):
    def work(number):
        for i in range(25):
            journal.record("check", f"exercise-{number}", code=str(i), status="wrong")

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(journal.events()) == 100 and journal.trouble is None


def test_two_kernels_that_check_the_same_code_record_it_once(journal):
    second = Journal(journal.path)
    assert journal.record("check", "softmax", code="a", status="pass")
    assert second.record("check", "softmax", code="a", status="pass") is False


def test_a_kernel_killed_while_it_writes_leaves_every_event_that_it_had_recorded(journal):
    code = """
        import itertools, sys
        from transformer_lite.journal import Journal
        journal = Journal(sys.argv[1])
        for i in itertools.count():
            journal.record("check", "softmax", code=str(i), status="wrong")
            print(i, flush=True)
    """
    process = start(code, str(journal.path))
    for _ in range(30):
        process.stdout.readline()
    process.kill()
    recorded = 30 + len(process.stdout.read().split("\n")) - 1
    process.wait()
    found = codes(journal)
    assert found == [str(i) for i in range(len(found))] and len(found) >= recorded >= 30
    assert journal.record("hint", "softmax", level=1) and journal.trouble is None


def test_a_program_that_holds_the_file_is_waited_for_then_the_event_is_kept_and_written_later(journal, monkeypatch):
    fill(journal, 1)
    monkeypatch.setattr(journal, "_patience", 0.05)
    with closing(sqlite3.connect(journal.path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert journal.record("hint", "softmax", level=1) is False
        assert journal.trouble == "locked"
        assert journal.record("hint", "softmax", level=1) is False  # kept once
        other.execute("ROLLBACK")
    assert [event.kind for event in journal.events()] == ["check", "hint"]
    assert journal.record("hint", "softmax", level=2) and journal.trouble is None
    assert [event.parameters.get("level") for event in Journal(journal.path).events("hint")] == [1, 2]


# --- a disk that takes nothing ---


class SmallDisk(Journal):
    """A journal on a disk with so many pages."""

    pages = 12

    def _connect(self):
        connection = super()._connect()
        connection.execute(f"PRAGMA max_page_count={self.pages}")
        return connection


def test_on_a_full_disk_events_are_kept_and_written_when_there_is_space(tmp_path):
    journal = SmallDisk(tmp_path / "journal.db")
    stored = [journal.record("check", "softmax", code=str(i), status="wrong", note="x" * 500) for i in range(100)]
    assert any(stored) and not all(stored)
    assert journal.trouble == "disk_full"
    assert codes(journal) == [str(i) for i in range(100)]
    assert journal.last("check").parameters["code"] == "99"
    on_disk = len(Journal(journal.path).events())
    assert on_disk == sum(stored)
    journal.pages = 1000
    journal.close()
    assert journal.trouble is None
    assert codes(Journal(journal.path)) == [str(i) for i in range(100)]


def test_what_is_kept_does_not_inflate_either(tmp_path):
    journal = SmallDisk(tmp_path / "journal.db")
    journal.pages = 1
    assert [journal.record("check", "softmax", code="a", status="wrong") for _ in range(3)] == [False] * 3
    assert len(journal.events()) == 1


def test_what_is_kept_is_exported(tmp_path):
    journal = SmallDisk(tmp_path / "journal.db")
    journal.pages = 1
    journal.record("hint", "softmax", level=1)
    assert len(Journal(journal.export(tmp_path / "export.db")).events()) == 1


@pytest.mark.skipif(sys.platform == "win32", reason="rights of folders are another matter on Windows")
def test_a_read_only_folder_is_read_and_what_is_new_is_kept():
    code = """
        import os, sys
        from transformer_lite.journal import Journal
        if os.geteuid() == 0:
            os.seteuid(65534)  # the superuser may write anywhere
        for path in (sys.argv[1], os.path.join(os.path.dirname(sys.argv[1]), "new", "journal.db")):
            journal = Journal(path)
            before = len(journal.events())
            stored = journal.record("hint", "softmax", level=1)
            print(before, stored, journal.trouble, len(journal.events()))
    """
    with tempfile.TemporaryDirectory() as name:  # not pytest's own: those are closed to other users
        folder = Path(name)
        journal = Journal(folder / "journal.db")
        fill(journal, 3)
        journal.path.chmod(0o444)
        folder.chmod(0o555)
        out, err = start(code, str(journal.path)).communicate()
        folder.chmod(0o755)
        assert out.splitlines() == ["3 False read_only 4", "0 False read_only 1"], err
        assert [path.name for path in folder.iterdir()] == ["journal.db"]


def test_a_folder_that_cannot_be_one_is_trouble_not_an_exception(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    journal = Journal(tmp_path / "file" / "journal.db")
    assert journal.record("hint", "softmax", level=1) is False
    assert journal.trouble == "unavailable" and len(journal.events()) == 1
    assert "Error" in journal.trouble_message("en")


def test_a_folder_where_the_file_should_be_is_trouble_not_an_exception(tmp_path):
    (tmp_path / "journal.db").mkdir()
    journal = Journal(tmp_path / "journal.db")
    assert journal.record("hint", "softmax", level=1) is False
    assert journal.trouble == "unavailable" and len(journal.events()) == 1


@pytest.mark.parametrize(
    ("number", "expected"),
    [(sqlite3.SQLITE_FULL, "disk_full"), (sqlite3.SQLITE_READONLY, "read_only"), (sqlite3.SQLITE_IOERR_WRITE, "unavailable")],
)
def test_what_sqlite_reports_becomes_a_code(journal, monkeypatch, number, expected):
    fill(journal, 1)

    def fail(connection):
        error = sqlite3.OperationalError("as the disk would have it")
        error.sqlite_errorcode = number
        raise error

    with monkeypatch.context() as patch:
        patch.setattr(file, "migrate", fail)
        assert journal.record("hint", "softmax", level=1) is False
        assert journal.trouble == expected
    assert journal.record("hint", "softmax", level=2) is True
    assert len(Journal(journal.path).events()) == 3


# --- where WAL cannot work ---


def test_on_a_network_disk_the_rollback_journal_is_used_even_for_a_file_in_wal_mode(journal, monkeypatch):
    fill(journal, 1)
    monkeypatch.setattr(file, "on_network", lambda folder: True)
    moved_home = Journal(journal.path)
    assert moved_home.record("hint", "softmax", level=1)
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    assert len(moved_home.events()) == 2


@pytest.mark.parametrize("existing", [True, False])
def test_without_shared_memory_the_rollback_journal_is_used(journal, existing):
    if existing:
        fill(journal, 1)
    journal.path.with_name("journal.db-shm").mkdir(parents=True)  # nothing can be mapped there
    assert len(journal.events()) == existing
    assert journal.record("hint", "softmax", level=1), journal.trouble_parameters
    assert journal.trouble is None and len(journal.events()) == 1 + existing
    assert not file._is_wal(journal.path)


def test_the_file_system_is_that_of_the_nearest_mount(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setattr(place, "_mounts", lambda: [("/", "ext4"), (str(tmp_path), "nfs4"), (str(tmp_path / "local"), "tmpfs")])
    assert place.on_network(tmp_path / "home" / "me")
    assert not place.on_network(tmp_path / "local" / "me")
    assert not place.on_network(tmp_path.parent)


def test_this_machines_mounts_are_read():
    if sys.platform == "win32":
        pytest.skip("Windows is asked for the drive instead")
    assert "/" in dict(place._mounts())


# --- damage ---


def damaged_files(journal: Journal) -> list[str]:
    return [path.name for path in journal.path.parent.iterdir() if "damaged" in path.name]


def test_a_file_that_is_no_database_is_moved_aside_and_said_once(journal):
    journal.path.parent.mkdir()
    journal.path.write_bytes(b"coffee " * 1000)
    assert journal.record("hint", "softmax", level=1)
    assert journal.trouble == "damaged_renamed"
    (name,) = damaged_files(journal)
    assert name.startswith("journal.damaged-20") and name.endswith(".db")
    assert journal.path.with_name(name).read_bytes() == b"coffee " * 1000
    assert name in journal.trouble_message("ja")
    assert journal.trouble_message("ja") is None
    assert name in journal.trouble_message("en", again=True)
    assert journal.record("hint", "softmax", level=2) and len(journal.events()) == 2
    assert len(damaged_files(journal)) == 1


@pytest.mark.parametrize("first", ["read", "write"])
def test_what_can_still_be_read_of_a_damaged_file_is_carried_over(journal, first):
    fill(journal, 200)
    content = bytearray(journal.path.read_bytes())
    content[-8192:-4096] = os.urandom(4096)
    journal.path.write_bytes(content)
    again = Journal(journal.path)
    if first == "write":
        assert again.record("hint", "softmax", level=1)
    carried = again.events("check")
    assert again.trouble == "damaged_renamed" and again.trouble_parameters["carried"] == len(carried)
    assert 100 < len(carried) < 200
    assert len(Journal(journal.path).events("check")) == len(carried)
    assert len(damaged_files(journal)) == 1


def test_damage_that_happens_while_the_journal_is_in_use_is_noticed(journal):
    fill(journal, 5)
    journal.path.write_bytes(b"\0" * 20000)
    assert journal.record("hint", "softmax", level=1)
    assert journal.trouble == "damaged_renamed" and len(journal.events()) == 1


def test_a_file_cut_off_is_no_reason_to_stop(journal):
    fill(journal, 100)
    content = journal.path.read_bytes()
    journal.path.write_bytes(content[: len(content) // 2])
    again = Journal(journal.path)
    assert again.record("hint", "softmax", level=1)
    assert again.trouble == "damaged_renamed" and again.events("hint")


def test_a_damaged_file_that_cannot_be_renamed_stays_and_events_are_kept(journal, monkeypatch):
    fill(journal, 1)
    journal.path.write_bytes(b"coffee " * 1000)

    def refuse(*paths):
        raise PermissionError(13, "in use by another process")

    again = Journal(journal.path)
    monkeypatch.setattr(file.os, "replace", refuse)
    assert again.record("hint", "softmax", level=1) is False
    assert again.trouble == "damaged" and len(again.events()) == 1
    assert journal.path.read_bytes() == b"coffee " * 1000


def test_another_kernels_new_file_is_not_moved_aside(journal):
    fill(journal, 1)
    identity = file._identity(journal.path)
    os.replace(journal.path, journal.path.with_name("moved.db"))
    fill(Journal(journal.path), 2)
    journal._set_aside(identity)
    assert len(journal.events()) == 2 and damaged_files(journal) == []


def test_where_nothing_is_recorded_a_damaged_file_stays_where_it_is(journal, monkeypatch):
    journal.path.parent.mkdir()
    journal.path.write_bytes(b"coffee " * 1000)
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "0")
    assert journal.events() == []
    assert [path.name for path in journal.path.parent.iterdir()] == ["journal.db"]


def test_a_file_deleted_while_in_use_is_begun_anew(journal):
    fill(journal, 2)
    journal.path.unlink()
    assert journal.record("hint", "softmax", level=1) and len(journal.events()) == 1


def test_a_row_that_nobody_wrote_does_not_hide_the_others(journal):
    fill(journal, 2)
    with closing(sqlite3.connect(journal.path)) as connection, connection:
        rows = [(90, "x", "yesterday", "{}"), (91, "y", "2026-09-01T00:00:00+00:00", "{")]
        connection.executemany("INSERT INTO event VALUES (?, ?, ?, 'check', 'softmax', ?)", rows)
    assert codes(Journal(journal.path)) == ["0", "1"]


# --- versions ---


def test_a_file_of_a_later_course_is_read_and_not_written(journal):
    fill(journal, 2)
    with closing(sqlite3.connect(journal.path)) as connection:
        connection.execute(f"PRAGMA user_version={len(events.MIGRATIONS) + 1}")
    again = Journal(journal.path)
    assert again.record("hint", "softmax", level=1) is False
    assert again.trouble == "newer" and len(again.events()) == 3
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("SELECT count(*) FROM event").fetchone() == (2,)
    with pytest.raises(ValueError, match="later version"):
        Journal(journal.path.with_name("mine.db")).merge(journal.path)


def test_a_file_of_an_earlier_course_is_brought_up_to_date(journal, monkeypatch):
    fill(journal, 2)
    monkeypatch.setattr(events, "MIGRATIONS", (*events.MIGRATIONS, ("ALTER TABLE event ADD COLUMN place TEXT",)))
    again = Journal(journal.path)
    assert len(again.events()) == 2
    assert again.record("hint", "softmax", level=1)
    with closing(sqlite3.connect(journal.path)) as connection:
        assert connection.execute("PRAGMA user_version").fetchone() == (2,)
        assert connection.execute("SELECT count(place), count(*) FROM event").fetchone() == (0, 3)


def test_a_migration_that_fails_changes_nothing(journal, monkeypatch):
    fill(journal, 2)
    with monkeypatch.context() as patch:
        patch.setattr(events, "MIGRATIONS", (*events.MIGRATIONS, ("DELETE FROM event", "no SQL at all")))
        assert journal.record("hint", "softmax", level=1) is False
        assert journal.trouble == "unavailable" and len(journal.events()) == 3
    assert journal.record("hint", "softmax", level=2) and len(Journal(journal.path).events()) == 4


# --- said, in both languages ---


def test_every_trouble_has_its_message_and_no_other_has():
    named = {"read_only", "disk_full", "locked", "unavailable", "newer", "damaged", "damaged_renamed"}
    keys = {key.removeprefix("journal.trouble.") for key in language.catalogue() if key.startswith("journal.trouble.")}
    assert keys == named
    assert all(f'"{code}"' in Journal.__doc__ for code in named)


@pytest.mark.parametrize("lang", language.LANGUAGES)
@pytest.mark.parametrize("code", ["read_only", "disk_full", "locked", "unavailable", "newer", "damaged", "damaged_renamed"])
def test_a_trouble_is_told_once_with_everything_filled_in(journal, code, lang):
    journal._trouble(code, reason="why", moved="/there", carried=3)
    told = journal.trouble_message(lang)
    assert told and "{" not in told
    assert told == language.message(f"journal.trouble.{code}", lang, **journal.trouble_parameters)
    journal._trouble(code, reason="why", moved="/there", carried=3)
    assert journal.trouble_message(lang) is None


def test_damage_is_told_even_if_other_trouble_follows_before_anyone_asks(journal):
    journal._trouble("damaged_renamed", moved="/there", carried=3)
    journal._trouble("disk_full")
    assert journal.trouble_message("en").count("\n") == 1


def test_no_trouble_is_nothing_to_tell(monkeypatch, tmp_path):
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    assert trouble_message("ja") is None
    default()._trouble("disk_full")
    assert str(tmp_path) in trouble_message("ja")
