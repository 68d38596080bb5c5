"""Grading for real: nbgrader in the sandbox, the second judgement, the gradebook, a run that goes on where one was stopped."""

import io
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path

import nbformat
import pytest
import submissions
from submissions import CHAPTER, FILE, FULL, LATER, Sheets, Student, as_file, hand_in, released, thirty

from transformer_lite import course as chapters
from transformer_lite import practice
from transformer_lite.classroom import assigning, grading, results, sandbox
from transformer_lite.classroom.assigning import ClassroomError, exercise_in
from transformer_lite.cli import main

pytestmark = pytest.mark.usefixtures("walls")
FEW = ("right", "blank", "trap_AT1", "edited_tests", "judge_replaced", "not_json", "gradebook")


def scores(course):
    """What stands in the gradebook: student -> points given automatically, and those given by hand."""
    question = (
        "select student.id, total(grade.auto_score), count(grade.manual_score) from grade"
        " join submitted_notebook on grade.notebook_id = submitted_notebook.id"
        " join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id"
        " join student on submitted_assignment.student_id = student.id group by student.id"
    )
    with closing(sqlite3.connect(course / "gradebook.db")) as book:
        return {student: (points, by_hand) for student, points, by_hand in book.execute(question)}


def tree(folder):
    return {str(path.relative_to(folder)): path.lstat().st_mtime_ns for path in sorted(folder.rglob("*"))}


def as_expected(course, expected, outside):
    rows = {row.student: row for row in results.rows(course)}
    told = {name: (row.score, row.status, row.traps) for name, row in rows.items()}
    assert told == {name: (each.score, each.status, each.traps) for name, each in expected.items()}
    assert all(row.max_score == FULL and len(row.tests) == 17 for row in rows.values())
    assert scores(course) == {name: (each.score, 0) for name, each in expected.items()}
    assert outside.read_text() == "secret\n"
    return rows


def test_a_few_students(course, release, tmp_path, capsys):
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n")
    students = {name: each for name, each in thirty(release, course, outside).items() if name in FEW}
    hand_in(course, students)
    before = tree(course / "submitted")
    assert main(["grade", str(course), "--json", "--lang", "en"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert [row["student"] for row in printed["rows"]] == sorted(FEW)
    assert set(printed["rows"][0]) == {"assignment", "student", "score", "max_score", "status", "traps"}
    rows = as_expected(course, students, outside)
    assert tree(course / "submitted") == before
    lost = [test.part for test in rows["trap_AT1"].tests if test.points < test.max_points]
    assert lost == ["scale"]
    assert [note.code for note in rows["edited_tests"].notes] == ["edited_tests"]
    shown = nbformat.read(course / "autograded" / "trap_AT1" / CHAPTER / FILE, as_version=4)
    assert all(not cell.get("outputs") for cell in shown.cells) and any("attention" in cell.source for cell in shown.cells)

    # Nothing has changed, so nothing is graded again; what an instructor gave by hand stays when something has.
    seen = []
    with closing(sqlite3.connect(course / "gradebook.db")) as book, book:
        book.execute("update grade set manual_score = 0.5 where rowid = (select min(rowid) from grade)")
    grading.grade(course, progress=lambda done, of, row: seen.append((done, of, row and row.student)))
    assert seen == [(len(FEW), len(FEW), None)]
    shutil.copyfile(course / "submitted" / "right" / CHAPTER / FILE, course / "submitted" / "blank" / CHAPTER / FILE)
    seen.clear()
    grading.grade(course, jobs=1, progress=lambda done, of, row: seen.append((done, of, row and row.student)))
    assert seen == [(len(FEW) - 1, len(FEW), None), (len(FEW), len(FEW), "blank")]
    assert scores(course)["blank"][0] == FULL and sum(by_hand for _, by_hand in scores(course).values()) == 1


@pytest.mark.whole_class
def test_a_class_of_thirty(course, release, tmp_path):
    outside = tmp_path / "outside.txt"
    outside.write_text("secret\n")
    students = thirty(release, course, outside)
    hand_in(course, students)
    before = tree(course / "submitted")
    grading.grade(course)
    rows = as_expected(course, students, outside)
    assert tree(course / "submitted") == before
    for key in submissions.TRAPS:
        (lost,) = [test for test in rows[f"trap_{key}"].tests if test.points < test.max_points]
        assert lost.exercise == "attention" and lost.part not in ("form", "values")
    notes = {name: [note.code for note in row.notes] for name, row in rows.items()}
    assert notes["symlink"] == ["link"] and notes["duplicate"] == ["duplicate"] and notes["deleted_tests"] == ["restored"]
    assert notes["exit"] == ["kernel_died"] and notes["deaf_loop"] == ["too_much_time"]
    assert set(notes["elsewhere"]) == {"renamed", "bom", "kernel", "names_lost"}


@pytest.mark.whole_class
@pytest.mark.parametrize("lang", ["ja", "en"])
def test_official_solutions_get_full_marks_and_blank_sheets_none(tmp_path, lang):
    course = tmp_path / "course"
    with_exercises = {practice.exercise(name).chapter for name in practice.exercises()}
    listed = [chapter for chapter in chapters.chapters() if chapter.id in with_exercises]
    made = assigning.assign([chapter.id for chapter in listed], lang, course)
    for one, chapter in zip(made, listed, strict=True):
        release = released(course, one.name, f"{chapter.file}.ipynb")
        make = Sheets(release)
        for name, notebook in (("right", make.right()), ("blank", make.blank())):
            hand_in(course, {name: Student(as_file(notebook, f"{chapter.file}.ipynb"), 0, "")}, one.name)
    rows = grading.grade(course)
    found = {(row.assignment, row.student): (row.score, row.status) for row in rows}
    right = {(one.name, "right"): (one.points, "graded") for one in made}
    assert found == right | {(one.name, "blank"): (0, "blank") for one in made}


@pytest.mark.whole_class
def test_nbgraders_own_commands_take_the_course(course):
    """``validate`` runs the whole notebook with its solutions and hidden tests; ``autograde`` works without our command, too."""
    path = os.pathsep.join([os.path.dirname(sys.executable), os.environ["PATH"]])
    environment = {**os.environ, "PATH": path, "TRANSFORMER_LITE_STATIC": "1"}

    def nbgrader(*arguments):
        command = [sys.executable, "-m", "nbgrader", *arguments]
        return subprocess.run(command, cwd=course, env=environment, capture_output=True, text=True, timeout=300)

    validated = nbgrader("validate", f"source/{CHAPTER}/{FILE}")
    assert "Success" in validated.stdout, validated.stdout + validated.stderr
    again = nbgrader("generate_assignment", CHAPTER, "--force")
    assert again.returncode == 0, again.stderr
    make = Sheets(released(course))
    hand_in(course, {"right": Student(as_file(make.right()), FULL, "graded")})
    graded = nbgrader("autograde", CHAPTER)
    assert graded.returncode == 0, graded.stderr
    assert scores(course) == {"right": (FULL, 0)}


LISTEN = "import os, signal, sys; signal.signal(signal.SIGINT, signal.SIG_DFL); os.execv(sys.argv[1], sys.argv[1:])"


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_grading_that_was_stopped_goes_on(course, release, stop):
    make = Sheets(release)
    slow = make.with_cell("import time\n\ntime.sleep(600)")
    hand_in(course, {"a": Student({FILE: b""}, 0, "unreadable"), "b": Student(as_file(slow), 0, "timeout")})
    command = [sys.executable, "-m", "transformer_lite.cli", "grade", str(course), "--json", "--timeout", "600", "--jobs", "1"]
    # Whatever started the tests may ignore Ctrl-C (a job in the background does), and programs inherit that.
    listening = [sys.executable, "-c", LISTEN, *command]
    running = subprocess.Popen(listening, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    first = results.place(course, CHAPTER, "a")
    deadline = time.monotonic() + 120
    while not first.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    running.send_signal(stop)
    out, errors = running.communicate(timeout=60)
    assert first.exists() and out == "" and "Traceback" not in errors
    assert running.returncode == (130 if stop == signal.SIGINT else -signal.SIGKILL)
    assert [row.student for row in results.rows(course)] == ["a"]
    shutil.rmtree(course / "submitted" / "b")
    hand_in(course, {"b": Student({FILE: b"{}"}, 0, "unreadable")})
    seen = []
    rows = grading.grade(course, progress=lambda done, of, row: seen.append((done, of)))
    assert [row.status for row in rows] == ["unreadable", "unreadable"] and seen == [(1, 2), (2, 2)]


def test_without_a_sandbox_grading_is_refused_unless_the_submissions_are_trusted(course, release, monkeypatch, capsys):
    make = Sheets(release)
    hand_in(course, {"s": Student(as_file(make.attention(submissions.TRAPS["AT1"])), FULL - 1, "graded")})
    monkeypatch.setattr(sandbox, "trouble", lambda: "no bwrap")
    assert main(["grade", str(course), "--lang", "en"]) == 3
    said = capsys.readouterr()
    assert "apt install bubblewrap" in said.err and "--trust-submissions" in said.err
    assert results.rows(course) == []
    assert main(["grade", str(course), "--trust-submissions", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert (row["score"], row["status"], row["traps"]) == (FULL - 1, "graded", ["AT1"])


def test_what_is_no_course_or_has_no_submission_is_said(course, tmp_path, capsys):
    for folder in (tmp_path, tmp_path / "nowhere", course):
        for lang in ("ja", "en"):
            assert main(["grade", str(folder), "--lang", lang]) == 3
            said = capsys.readouterr()
            assert str(folder) in said.err and "Traceback" not in said.err
    hand_in(course, {"s": Student({FILE: b""}, 0, "unreadable")})
    (course / "source" / CHAPTER / FILE).unlink()
    with pytest.raises(ClassroomError, match=FILE):
        grading.grade(course)


def test_folders_that_are_links_are_no_submissions(course, tmp_path):
    elsewhere = tmp_path / "elsewhere" / CHAPTER
    elsewhere.mkdir(parents=True)
    (elsewhere / FILE).write_bytes(b"")
    (course / "submitted").mkdir()
    (course / "submitted" / "s").symlink_to(elsewhere.parent)
    (course / "submitted" / "t").mkdir()
    (course / "submitted" / "t" / CHAPTER).symlink_to(elsewhere)
    with pytest.raises(ClassroomError):
        grading.grade(course)


def test_one_mistake_of_ours_does_not_end_the_batch(course, monkeypatch):
    hand_in(course, {name: Student({FILE: b""}, 0, "") for name in ("a", "b")})
    sheet = grading.submission.sheet

    def broken(handed_in, *others):
        if handed_in.student == "a":
            raise RuntimeError("ours")
        return sheet(handed_in, *others)

    monkeypatch.setattr(grading.submission, "sheet", broken)
    rows = grading.grade(course)
    assert [(row.student, row.status) for row in rows] == [("a", "failed"), ("b", "unreadable")]
    monkeypatch.undo()
    assert [row.status for row in grading.grade(course)] == ["unreadable", "unreadable"]  # what failed is tried again
    assert exercise_in({"cell_type": "markdown", "source": ""}) is None


def test_a_submission_that_was_taken_away_leaves_the_rows(course):
    hand_in(course, {name: Student({FILE: b""}, 0, "") for name in ("a", "b")})
    assert [row.student for row in grading.grade(course)] == ["a", "b"]
    shutil.rmtree(course / "submitted" / "a")
    assert [row.student for row in grading.grade(course)] == ["b"]


def test_more_time_for_a_cell_is_more_time_for_the_checker(course, release):
    slow = submissions.SCORES + "    import time\n    time.sleep(0.4)\n" + submissions.WEIGHTS
    hand_in(course, {"slow": Student(as_file(Sheets(release).attention(slow)), FULL, "graded")})
    (row,) = grading.grade(course)
    assert row.status == "timeout" and row.score < FULL
    (row,) = grading.grade(course, seconds=120)
    assert (row.status, row.score) == ("graded", FULL)


NAMES = (
    "a\nb",
    "\x1b[31mred\x1b]0;title\x07",
    "\u202egnp.exe",
    "=1+1",
    "<img src=x>",
    "-rf",
    "[bold]x",
    "x" * 255,
    "日" * 85,
    "a'b\"c",
)


def test_names_of_every_kind_are_kept_and_shown_without_harm(course, capsys, monkeypatch):
    strange = os.fsdecode(b"\xff\xfe")
    hand_in(course, {name: Student({FILE: b""}, 0, "unreadable") for name in (*NAMES, strange)})
    for lang in ("en", "ja"):
        assert main(["grade", str(course), "--lang", lang]) == 0
        said = capsys.readouterr()
        assert "\x1b" not in said.out and "\u202e" not in said.out + said.err and "<img src=x>" in said.out
    assert {row.student for row in results.rows(course)} == {*NAMES, "\\udcff\\udcfe"} == set(scores(course))
    assert main(["report", str(course), "--lang", "ja"]) == 0
    capsys.readouterr()
    for encoding in ("ascii", "cp932", "utf-8"):
        out = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", out)
        assert main(["grade", str(course), "--json"]) == 0 and main(["grade", str(course), "--lang", "ja"]) == 0
        out.flush()
        first = out.buffer.getvalue().decode(encoding).splitlines()[0]
        assert {row["student"] for row in json.loads(first)["rows"]} == {row.student for row in results.rows(course)}


def test_what_nobody_may_read_is_said(course, monkeypatch):
    hand_in(course, {name: Student({FILE: b""}, 0, "unreadable") for name in ("a", "b")})
    scandir = os.scandir

    def guarded(path):
        if str(path).endswith(f"a/{CHAPTER}"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    rows = grading.grade(course)
    assert [(row.student, row.status, [note.code for note in row.notes]) for row in rows] == [
        ("a", "unreadable", ["unopened"]),
        ("b", "unreadable", []),
    ]
    monkeypatch.undo()
    shutil.rmtree(course / "submitted")
    (course / "submitted").write_text("no folder")
    with pytest.raises(ClassroomError, match="submitted"):
        grading.grade(course)


def test_no_key_of_a_question_enters_the_sandbox(tmp_path):
    course = tmp_path / "course"
    bank = os.path.join(os.path.dirname(__file__), "data", "bank.yaml")
    assigning.assign([CHAPTER], "ja", course, bank=bank)
    manifest = results.manifests(course)[CHAPTER]
    assignment = grading._prepared(course, manifest, tmp_path / "fresh")
    copies = {path: path.read_bytes() for path in (tmp_path / "fresh").rglob("*") if path.is_file() and "cache" not in path.parts}
    sheet = json.dumps(assignment.source)
    for key in manifest["keys"].values():
        assert all(repr(key).encode() not in data and b"check_answer" not in data for data in copies.values())
        assert repr(key) not in sheet and "check_answer" not in sheet
    assert any(b"question-1" in data for data in copies.values())


def test_points_return_into_a_gradebook_that_was_lost(course):
    hand_in(course, {"a": Student({FILE: b""}, 0, "unreadable")})
    grading.grade(course)
    (course / "gradebook.db").unlink()
    with pytest.raises(ClassroomError, match="assign"):
        grading.grade(course)
    assigning.assign([CHAPTER], "ja", course)
    seen = []
    grading.grade(course, progress=lambda done, of, row: seen.append((done, of, row)))
    assert seen == [(1, 1, None)] and scores(course) == {"a": (0, 0)}
    (course / "gradebook.db").write_bytes(b"no database")
    for lang in ("ja", "en"):
        assert main(["grade", str(course), "--lang", lang]) == 3


def test_what_a_sandbox_leaves_is_read_without_trust(tmp_path):
    place, outside = tmp_path / "place", tmp_path / "outside"
    for folder in (place / "folder", outside):
        folder.mkdir(parents=True)
        (folder / "file").write_bytes(b"1234")
    (place / "way").symlink_to(outside)
    (place / "link").symlink_to(outside / "file")
    (place / "circle").symlink_to(place / "circle")
    os.mkfifo(place / "pipe")
    names = ("folder/file", "way/file", "link", "circle", "circle/file", "pipe", "folder", "missing")
    assert [grading._left(place, name, 9) for name in names] == [b"1234", *[None] * 7]
    assert grading._left(place, "folder/file", 3) is None
    odd = [
        b"",
        b"[]",
        b"null",
        b'{"cells": 3}',
        b'{"cells": [1]}',
        b"[" * 100_000,
        b'{"cells": [{"cell_type": "code"}]}',
        b"\xff",
    ]
    assert all(grading._cells(data) == {} for data in odd)
    cell = {"cell_type": "code", "id": "c", "metadata": {}, "execution_count": 1, "outputs": [3, {"output_type": "error"}, None]}
    assert grading._cells(json.dumps({"cells": [cell]}).encode()) == {"c": [{"output_type": "error"}]}


HELPER = b"""\
import numpy as np


def soft(s):
    w = np.exp(s - s.max(-1, keepdims=True))
    return w / w.sum(-1, keepdims=True)
"""
RECURSIVE = """\
    if queries.ndim > 2:
        batch = range(len(queries))
        one = lambda array, i: array[i] if array.ndim == queries.ndim else array
        pairs = [attention(queries[i], one(keys, i), one(values, i)) for i in batch]
        return np.stack([a for a, _ in pairs]), np.stack([b for _, b in pairs])
"""


@pytest.mark.whole_class
def test_honest_ways_of_writing_lose_nothing(course, release):
    make = Sheets(release)
    right = submissions.SCORES + submissions.WEIGHTS

    def answer(text):
        notebook = make.right()
        submissions.cell_of(notebook, "attention")["source"] = text
        return as_file(notebook)

    scale = "import functools\n\n\n@functools.cache\ndef scale(d):\n    return np.sqrt(d)\n\n\n"
    call = "    return (lambda w: (w @ values, w))(helper.soft(queries @ keys.swapaxes(-1, -2) / np.sqrt(keys.shape[-1])))\n"
    used = "q = np.ones((2, 3))\nattention, w = attention(q, q, q)\nsoftmax = softmax(q)"
    students = {
        "module": answer("import helper\n\n\n" + submissions.HEAD + call) | {"helper.py": HELPER},
        "recursive": answer(submissions.HEAD + RECURSIVE + right),
        "cached": answer(scale + submissions.HEAD + right.replace("np.sqrt(queries.shape[-1])", "scale(queries.shape[-1])")),
        "name used again": as_file(make.with_cell(used, last=True)),
        "exit": as_file(make.with_cell("exit()")),
        "quit": as_file(make.with_cell("quit")),
        "half a character": {FILE: json.dumps(make.with_cell("x = '\ud800'")).encode()},
        "installs": as_file(make.with_cell("!pip install nothing-of-this-name")),
        "torch": answer(submissions.HEAD.replace("@lab", "import torch\n\n\n@lab") + """\
    q, k, v = (torch.tensor(array) for array in (queries, keys, values))
    w = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
    return w @ v, w
"""),
    }  # fmt: skip
    hand_in(course, {name: Student(files, FULL, "graded") for name, files in students.items()})
    told = {row.student: (row.score, row.status, [note.code for note in row.notes]) for row in grading.grade(course)}
    assert told == {name: (FULL, "graded", []) for name in students}


@pytest.mark.whole_class
def test_text_that_no_file_can_hold_ends_no_batch(course, release):
    hand_in(course, {"s": Student(as_file(Sheets(release).attention("    raise ValueError('\\ud800')\n")), LATER, "error")})
    (row,) = grading.grade(course)
    assert (row.score, row.status) == (LATER, "error")


def test_whether_a_notebook_is_as_it_was(tmp_path):
    name = Path("a/b/file")
    for change in (None, "content", "file", "folder", "gone", "link"):
        place = tmp_path / str(change)
        (place / "a" / "b").mkdir(parents=True)
        (place / name).write_bytes(b"1")
        match change:
            case "content":
                (place / name).write_bytes(b"2")
            case "file":
                (place / name).chmod(0)
            case "folder":
                (place / "a").chmod(0)
            case "gone":
                (place / name).unlink()
            case "link":
                (place / "a").rename(place / "c")
                (place / "a").symlink_to("c")
        assert grading._as_it_was(place, name, b"1") is (change is None), change
        (place / "a").chmod(0o700)


@pytest.mark.whole_class
def test_who_takes_away_what_is_graded_is_no_fault_of_ours(course, release):
    make = Sheets(release)
    shut = "import os\nfor here, _, files in os.walk('/course', topdown=False):\n    os.chmod(here, 0)"
    cells = {"deletes": "import shutil\nshutil.rmtree('/course', ignore_errors=True)", "shuts": shut}
    hand_in(course, {name: Student(as_file(make.with_cell(cell)), 0, "died") for name, cell in cells.items()})
    assert main(["grade", str(course), "--json"]) == 0
    assert {row.student: (row.score, row.status) for row in results.rows(course)} == dict.fromkeys(cells, (0, "died"))
