"""Grading for real: nbgrader in the sandbox, the second judgement, the gradebook, a run that goes on where one was stopped."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from contextlib import closing

import nbformat
import pytest
import submissions
from submissions import CHAPTER, FILE, FULL, Sheets, Student, as_file, hand_in, released, thirty

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


@pytest.mark.parametrize("stop", [signal.SIGINT, signal.SIGKILL])
def test_a_grading_that_was_stopped_goes_on(course, release, stop):
    make = Sheets(release)
    slow = make.with_cell("import time\n\ntime.sleep(600)")
    hand_in(course, {"a": Student({FILE: b""}, 0, "unreadable"), "b": Student(as_file(slow), 0, "timeout")})
    command = [sys.executable, "-m", "transformer_lite.cli", "grade", str(course), "--json", "--timeout", "600", "--jobs", "1"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
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
