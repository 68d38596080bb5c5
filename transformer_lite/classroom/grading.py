"""Grades a class: every submission by itself in a sandbox, on a copy; only this process writes the gradebook.

A test earns its points if nbgrader gave them in the sandbox *and* the function, judged once more outside its notebook, deserves
them; questions are marked from the answers as they were handed in. So a notebook that changes its own grading gains nothing.
"""

from __future__ import annotations

import hashlib
import json
import secrets
import shutil
import stat
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import nbformat

from transformer_lite import __version__, content
from transformer_lite.classroom import assigning, locking, rejudging, results, sandbox, submission, testing
from transformer_lite.classroom.assigning import ANSWERS, BEGIN_HIDDEN, END_HIDDEN, QUESTIONS, ClassroomError
from transformer_lite.classroom.inside import STUDENT
from transformer_lite.classroom.results import Note, Row, TestScore
from transformer_lite.content.loading import cache_dir
from transformer_lite.course.files import replace as write_whole
from transformer_lite.language import message
from transformer_lite.practice.judging import PATIENCE

SECONDS = 20  # that a cell may take, if nobody says otherwise
WHOLE = 2  # times that, and START more, for a notebook
START = 40
LARGEST = 60_000_000  # bytes of an executed notebook that are read
STOPPED = ("KeyboardInterrupt", "CellTimeoutError")


@dataclass(frozen=True)
class Assignment:
    """What one assignment is graded by: its manifest, its source, and an nbgrader course of ours with nobody in it."""

    manifest: dict[str, Any]
    source: Any
    fresh: Path
    digest: str

    @property
    def name(self) -> str:
        return self.manifest["assignment"]

    @property
    def notebook(self) -> str:
        return self.manifest["file"]


@dataclass(frozen=True)
class _Submission:
    """What is to be graded: whose, and where it lies."""

    assignment: Assignment
    student: str
    folder: Path


@dataclass(frozen=True)
class _Way:
    """How this run grades."""

    seconds: int
    trusted: bool

    @property
    def environment(self) -> dict[str, str]:
        """More time for a cell is more time for the checker, too."""
        return {PATIENCE: str(max(1.0, self.seconds / SECONDS))}


def grade(
    folder: Path,
    *,
    jobs: int = 2,
    seconds: int = SECONDS,
    trust: bool = False,
    again: bool = False,
    progress: Callable[[int, int, Row | None], None] = lambda done, of, row: None,
) -> list[Row]:
    """Grade everything that was handed in to the course in ``folder``, and return all of its rows.

    Args:
        folder: of the course. ``submitted/<student>/<assignment>/`` holds the submissions.
        jobs: how many are graded at a time.
        seconds: that a cell may take.
        trust: grade without a sandbox where there is none.
        again: grade also what has been graded and has not changed since.
        progress: called with how many are done, of how many, and the last row.

    Raises:
        ClassroomError: this is no course, nobody has handed in anything, the gradebook or the folder cannot be written, another
            command is at work in it, or there is no sandbox and no ``trust``.
        KeyboardInterrupt: what was graded until then is kept, and the next run goes on.
    """
    assigning.needs_nbgrader()
    assigning.must_be_usable(folder)
    manifests = results.manifests(folder) if folder.is_dir() else {}
    if not manifests:
        raise ClassroomError(message("classroom.grade.no_course", folder=folder))
    missing = sandbox.trouble()
    if missing and not trust:
        raise ClassroomError(message("classroom.grade.no_sandbox", reason=missing))
    way = _Way(seconds, bool(missing))
    with (
        locking.alone(folder),
        tempfile.TemporaryDirectory(prefix="transformer_lite_grading_") as temporary,
        warnings.catch_warnings(),
    ):
        # What SQLAlchemy thinks of nbgrader, and the compiler of students' code, is not for the instructor's screen.
        warnings.simplefilter("ignore")
        pending: list[_Submission] = []  # not what they hold: a large class would fill the memory
        done: list[tuple[Assignment, Row]] = []
        for name, manifest in manifests.items():
            students = _students(folder, name)
            if not students:
                continue
            assignment = _prepared(folder, manifest, Path(temporary) / name)
            for student in students:
                called = submission.readable(student.name)
                handed_in = submission.read(called, student / name)
                kept = results.read(results.place(folder, name, called))
                known = kept is not None and kept.digest == _digest(handed_in, assignment, way, kept.status)
                if kept is not None and known and kept.status != "failed" and not again:
                    done.append((assignment, kept))
                else:
                    pending.append(_Submission(assignment, called, student / name))
        count = len(done) + len(pending)
        if not count:
            raise ClassroomError(message("classroom.grade.nobody", folder=folder / "submitted"))
        with _kept(folder):
            _forget_others(
                folder,
                {(assignment.name, row.student) for assignment, row in done}
                | {(each.assignment.name, each.student) for each in pending},
            )
            _complete_gradebook(folder, done, {each.assignment.name for each in pending})
        progress(len(done), count, None)
        _grade_all(folder, pending, way, jobs, lambda row, finished: progress(len(done) + finished, count, row))
    return results.rows(folder)


def _forget_others(folder: Path, handed_in: set[tuple[str, str]]) -> None:
    """Delete the rows of submissions that are no longer there; the gradebook keeps its own."""
    for row in results.rows(folder):
        if (row.assignment, row.student) not in handed_in:
            results.place(folder, row.assignment, row.student).unlink(missing_ok=True)


def _students(folder: Path, assignment: str) -> list[Path]:
    """The folders of the students who have handed in an assignment: folders of the course, no links."""
    submitted = folder / "submitted"
    try:
        listed = sorted(submitted.iterdir()) if submitted.exists() else []
    except OSError as trouble:
        raise ClassroomError(message("classroom.grade.no_reading", folder=submitted, reason=trouble.strerror)) from trouble
    return [student for student in listed if not student.name.startswith(".") and _handed_in(student, assignment)]


def _handed_in(student: Path, assignment: str) -> bool:
    """Whether a student has a folder of an assignment; also if nobody can tell, which is then said of it."""
    try:
        return all(stat.S_ISDIR(path.lstat().st_mode) for path in (student, student / assignment))
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True


def _digest(handed_in: submission.HandedIn, assignment: Assignment, way: _Way, status: str) -> str:
    """Of everything that the row depends on: how much time there was is of importance where it was not enough."""
    parts = (handed_in.digest, assignment.digest, __version__, str(way.seconds) if status == "timeout" else "")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _prepared(folder: Path, manifest: dict[str, Any], fresh: Path) -> Assignment:
    """A course with this one assignment in ``fresh``, made of the source as it stands now."""
    source = folder / "source" / manifest["assignment"]
    path = source / f"{manifest['file']}.ipynb"
    try:
        data = path.read_bytes()
        notebook = _without_keys(nbformat.reads(data.decode("utf-8"), as_version=4), manifest)
    except (OSError, ValueError) as trouble:
        raise ClassroomError(message("classroom.grade.no_source", path=path, reason=trouble)) from trouble
    place = fresh / "source" / manifest["assignment"]
    place.mkdir(parents=True)
    nbformat.write(notebook, place / path.name)
    if (source / QUESTIONS).is_file():
        shutil.copyfile(source / QUESTIONS, place / QUESTIONS)
    with assigning.nbgrader(fresh) as api:
        made = api.generate_assignment(manifest["assignment"], force=True, create=True)
    if not made["success"]:
        raise ClassroomError(
            message("classroom.assign.not_generated", assignment=manifest["assignment"], log=assigning.last(made))
        )
    shutil.rmtree(fresh / "release")
    (place / path.name).unlink()  # it holds the solutions, and nbgrader has all it needs of it in the gradebook
    _with_library(fresh)
    digest = hashlib.sha256(data + json.dumps([manifest["tests"], manifest["keys"]], sort_keys=True).encode()).hexdigest()
    return Assignment(manifest, notebook, fresh, digest)


def _without_keys(notebook: Any, manifest: dict[str, Any]) -> Any:
    """The source without the keys of questions: these are marked here, and what runs in the sandbox must not see them."""
    questions = {test["id"] for test in manifest["tests"] if "question" in test}
    for cell in notebook.cells:
        if cell.metadata.get("nbgrader", {}).get("grade_id") in questions:
            cell.source = "\n".join([cell.source.partition(BEGIN_HIDDEN)[0] + BEGIN_HIDDEN, "pass", END_HIDDEN])
    return notebook


def _with_library(fresh: Path) -> None:
    """Put the compiled questions and traps where the notebooks will look for them: reading the YAML takes seconds, each time."""
    content.library()
    kept = fresh / sandbox.HOME / "cache"
    kept.mkdir(parents=True)
    for path in cache_dir().glob("library-*.json"):
        shutil.copyfile(path, kept / path.name)


def _grade_all(
    folder: Path,
    pending: Sequence[_Submission],
    way: _Way,
    jobs: int,
    report: Callable[[Row, int], None],
) -> None:
    """Grade in ``jobs`` threads; rows and gradebook are written here, one after the other."""
    waiting = list(reversed(pending))
    running: dict[Future[tuple[Row, Any]], Assignment] = {}
    finished = 0
    sandbox.stopping.clear()
    with ThreadPoolExecutor(max_workers=max(1, jobs)) as pool:
        try:
            while waiting or running:
                while waiting and len(running) < max(1, jobs):
                    asked = waiting.pop()
                    running[pool.submit(_row, asked, way)] = asked.assignment
                ended, _ = wait(running, return_when=FIRST_COMPLETED)
                for future in ended:
                    assignment = running.pop(future)
                    row, notebook = future.result()
                    with _kept(folder):
                        _into_gradebook(folder, assignment, row)
                        _for_formgrader(folder, assignment, row, notebook)
                        results.write(folder, row)
                    finished += 1
                    report(row, finished)
        except BaseException:
            sandbox.stopping.set()  # ends what runs, so that the pool does not wait for it
            raise


def _row(asked: _Submission, way: _Way) -> tuple[Row, Any]:
    """Grade one submission: its row, and the notebook that was graded. A mistake of ours is a row too, and ends no batch."""
    started = time.monotonic()
    assignment, notebook = asked.assignment, None
    handed_in = submission.read(asked.student, asked.folder)
    try:
        row, notebook = _graded(assignment, handed_in, way)
    except Exception as trouble:
        if sandbox.stopping.is_set():
            raise
        note = Note("our_fault", {"error": f"{type(trouble).__name__}: {trouble}"[:300]})
        row = _scored(assignment, handed_in, "failed", {}, {}, [note])
    seconds = round(time.monotonic() - started, 2)
    return replace(row, digest=_digest(handed_in, assignment, way, row.status), seconds=seconds), notebook


def _graded(assignment: Assignment, handed_in: submission.HandedIn, way: _Way) -> tuple[Row, Any]:
    sheet = submission.sheet(handed_in, assignment.source, assignment.manifest)
    marks = _marks(assignment, handed_in, sheet)
    if sheet.notebook is None:
        return _scored(assignment, handed_in, sheet.status or "missing", {}, marks, sheet.notes), None
    with sandbox.emptied_afterwards("transformer_lite_student_") as place:
        ended, executed = _run(assignment, handed_in, sheet, place / "course", way)
        verdicts = _judged_again(assignment, place / "course", place / "again", way)
        if verdicts is None:
            verdicts = {name: {"verdict": None, "passes": None} for name in assignment.manifest["exercises"]}
            sheet.notes.append(Note("not_judged_again"))
    return _decided(assignment, handed_in, sheet, marks, _Run(ended, executed, verdicts)), sheet.notebook


@dataclass(frozen=True)
class _Run:
    """What came of running a notebook: how nbgrader ended, the executed test and solution cells by name, the second judgement."""

    ended: dict[str, Any]
    cells: dict[str, list[dict[str, Any]] | None]
    verdicts: dict[str, Any]

    def earns(self, name: str) -> bool:
        """Whether a test's cell was run and raised nothing."""
        outputs = self.cells.get(name)
        return outputs is not None and not any(output.get("output_type") == "error" for output in outputs)

    def raised(self) -> set[str]:
        """The kinds of errors in all cells."""
        return {
            str(output.get("ename"))
            for outputs in self.cells.values()
            for output in outputs or []
            if output.get("output_type") == "error"
        }


def _run(
    assignment: Assignment, handed_in: submission.HandedIn, sheet: submission.Sheet, place: Path, way: _Way
) -> tuple[dict[str, Any], dict[str, list[dict[str, Any]] | None]]:
    """Let nbgrader grade the sheet in the sandbox, and read what came of its cells."""
    shutil.copytree(assignment.fresh, place)
    (place / "handed").mkdir()
    there = place / "submitted" / STUDENT / assignment.name
    there.mkdir(parents=True)
    for name, data in submission.extra_files(handed_in).items():
        path = there / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    data = nbformat.writes(sheet.notebook).encode()
    (there / f"{assignment.notebook}.ipynb").write_bytes(data)
    inside = str(place) if way.trusted else sandbox.INSIDE
    ran = sandbox.run(
        "transformer_lite.classroom.inside",
        [assignment.name, str(way.seconds)],
        place,
        seconds=START + WHOLE * way.seconds,
        trusted=way.trusted,
        environment={testing.HANDED: f"{inside}/handed", **way.environment},
    )
    said = _last_json(ran.output) or {}
    success = ran.code == 0 and said.get("success") is True
    # Where nbgrader fails, that is a fault of ours, unless what it was to grade has been taken from it.
    taken = not success and not _as_it_was(place, there.relative_to(place) / f"{assignment.notebook}.ipynb", data)
    log = said.get("log") if isinstance(said.get("log"), str) else ran.errors[-2000:]
    ended = {"success": success, "died": said.get("died") is True or ran.code not in (0, None) or taken, "log": log}
    if ran.code is None:
        ended |= {"timeout": ran.stopped == "time", "died": ran.stopped != "time", "stopped": ran.stopped}
    executed = _left(place, f"autograded/{STUDENT}/{assignment.name}/{assignment.notebook}.ipynb", LARGEST)
    return ended, _cells(executed) if success and executed is not None else {}


def _as_it_was(place: Path, name: Path, data: bytes) -> bool:
    """Whether the file ``name`` still holds ``data``, and can be reached by whoever is not root."""
    try:
        ways = [place / way for way in name.parents]
        shut = any(way.lstat().st_mode & 0o500 != 0o500 for way in ways) or not (place / name).lstat().st_mode & 0o400
    except OSError:
        return False
    return not shut and _left(place, str(name), LARGEST) == data


def _left(place: Path, name: str, largest: int) -> bytes | None:
    """What a program left in the file ``name`` below ``place``; None if no file of at most ``largest`` bytes lies there.

    A link on the way to it could lead anywhere, a pipe would be waited for: these are no files.
    """
    path = place / name
    try:
        if path.resolve() != place.resolve() / name:
            return None
    except (OSError, RuntimeError):  # links in a circle
        return None
    data = submission.contents(path, largest)
    return None if data is None or len(data) > largest else data


def _cells(data: bytes) -> dict[str, list[dict[str, Any]] | None]:
    """The outputs of the cells of an executed notebook, by nbgrader's name or by id; None for a cell that was not run."""
    try:
        found = {}
        for cell in json.loads(data)["cells"]:
            if cell["cell_type"] == "code":
                name = cell["metadata"].get("nbgrader", {}).get("grade_id") or cell.get("id")
                outputs = [output for output in cell["outputs"] if isinstance(output, dict)]
                found[str(name)] = outputs if cell["execution_count"] is not None or outputs else None
        return found
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return {}


def _judged_again(assignment: Assignment, course: Path, place: Path, way: _Way) -> dict[str, Any] | None:
    """The functions that the notebook left behind, judged where none of its code runs; None if that did not come to its end."""
    exercises = assignment.manifest["exercises"]
    if not exercises:
        return {}
    (place / "handed").mkdir(parents=True)
    for name in exercises:
        for file in (f"{name}.pickle", f"{name}.json"):
            if (data := _left(course, f"handed/{file}", rejudging.LARGEST)) is not None:
                (place / "handed" / file).write_bytes(data)
    inside = str(place) if way.trusted else sandbox.INSIDE
    key = secrets.token_bytes(32)
    ran = sandbox.run(
        "transformer_lite.classroom.rejudging",
        [f"{inside}/handed", str(assignment.manifest["seed"] + 1), *exercises],
        place,
        seconds=START + WHOLE * way.seconds,
        trusted=way.trusted,
        environment=way.environment,
        told=key,
    )
    return rejudging.verdicts(ran.output, key)


def _last_json(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text.strip().splitlines()[-1])
    except (ValueError, IndexError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


# --- points -----------------------------------------------------------------------------------------------------------


def _marks(assignment: Assignment, handed_in: submission.HandedIn, sheet: submission.Sheet) -> dict[str, Any]:
    """The answers to the questions, marked: question -> `questions.Mark`."""
    keys = assignment.manifest["keys"]
    if not keys:
        return {}
    from transformer_lite.classroom import questions

    given, trouble = questions.written(submission.answers(handed_in))
    if trouble is not None:
        sheet.notes.append(Note(trouble, {"file": ANSWERS}))
    return {name: questions.mark(key, given.get(name)) for name, key in keys.items()}


def _decided(
    assignment: Assignment, handed_in: submission.HandedIn, sheet: submission.Sheet, marks: dict[str, Any], run: _Run
) -> Row:
    """The points and the status, from both judgements."""
    earned: dict[str, float] = {}
    happened: list[str] = []
    verdicts = []
    for name in assignment.manifest["exercises"]:
        again = run.verdicts.get(name)
        tests = [test for test in assignment.manifest["tests"] if test.get("exercise") == name]
        claimed = {test["id"] for test in tests if run.earns(test["id"])}
        if again is None:  # nothing was left: the function was never defined, or the tests were kept from running
            happened.append("tampered" if claimed else "error" if run.cells.get(name) and run.ended["success"] else "graded")
            deserved: set[str] = set()
        elif again["passes"] is None:
            happened.append("by_hand")
            deserved = claimed
        else:
            deserved = {test["id"] for test in tests if test["part"] in again["passes"]}
            if claimed - deserved:
                happened.append("tampered")
        if again is not None and again["verdict"] is not None:
            verdicts.append(again["verdict"])
        earned |= {test["id"]: test["points"] for test in tests if test["id"] in claimed & deserved}
    happened += [_happened(verdict["status"]) for verdict in verdicts]
    if not run.ended["success"]:
        happened.append("timeout" if run.ended.get("timeout") else "died" if run.ended.get("died") else "failed")
        if run.ended.get("stopped"):
            sheet.notes.append(Note(f"too_much_{run.ended['stopped']}"))
        elif run.ended.get("died"):
            sheet.notes.append(Note("kernel_died"))
        else:
            sheet.notes.append(Note("not_graded", {"log": run.ended.get("log", "").strip()[-500:]}))
    elif any(kind in STOPPED for kind in run.raised()):
        happened.append("timeout")
    status = results.gravest(happened)
    answered = any(mark.said for mark in marks.values())
    if status in ("graded", "blank") and not earned and not answered and all(v["status"] == "unsolved" for v in verdicts):
        status = "blank"
    return _scored(assignment, handed_in, status, earned, marks, sheet.notes, verdicts)


def _happened(status: str) -> str:
    """What a verdict's status says of its submission."""
    return {"error": "error", "timeout": "timeout", "grader_problem": "by_hand"}.get(status, "graded")


def _scored(
    assignment: Assignment,
    handed_in: submission.HandedIn,
    status: str,
    earned: dict[str, float],
    marks: dict[str, Any],
    notes: Sequence[Note],
    verdicts: Sequence[dict[str, Any]] = (),
) -> Row:
    tests = []
    for test in assignment.manifest["tests"]:
        question = test.get("question")
        mark = marks.get(question)
        points = test["points"] * mark.right if mark is not None else earned.get(test["id"], 0)
        about = (test.get("exercise"), test.get("part"), question, mark.traps if mark is not None else ())
        tests.append(TestScore(test["id"], float(points), float(test["points"]), *about))
    traps = dict.fromkeys(key for verdict in verdicts for key in verdict["traps"])
    traps |= dict.fromkeys(key for mark in marks.values() for key in mark.traps)
    return Row(
        assignment=assignment.name,
        student=handed_in.student,
        lang=assignment.manifest["lang"],
        score=sum(test.points for test in tests),
        max_score=sum(test.max_points for test in tests),
        status=status,
        traps=tuple(traps),
        tests=tuple(tests),
        verdicts=tuple(verdicts),
        notes=tuple(notes),
        submitted=handed_in.submitted,
    )


# --- what is kept -----------------------------------------------------------------------------------------------------


@contextmanager
def _kept(folder: Path) -> Iterator[None]:
    """Turn what hinders keeping a row into a `ClassroomError`."""
    from nbgrader.api import InvalidEntry, MissingEntry
    from sqlalchemy.exc import SQLAlchemyError

    try:
        yield
    except OSError as trouble:
        raise ClassroomError(message("classroom.assign.no_folder", folder=folder, reason=trouble.strerror)) from trouble
    except (InvalidEntry, MissingEntry, SQLAlchemyError) as trouble:
        reason = " ".join(str(getattr(trouble, "orig", None) or trouble).split())[:200]
        raise ClassroomError(message("classroom.no_gradebook", path=folder / assigning.GRADEBOOK, reason=reason)) from trouble


@contextmanager
def _gradebook(folder: Path) -> Iterator[Any]:
    from nbgrader.api import Gradebook

    with Gradebook(f"sqlite:///{(folder / assigning.GRADEBOOK).resolve()}") as book:
        yield book


def _complete_gradebook(folder: Path, done: Sequence[tuple[Assignment, Row]], others: set[str]) -> None:
    """See that the gradebook knows the assignments, and put in what was graded before and is not there: it may be a new one."""
    from nbgrader.api import MissingEntry

    lost = []
    with _gradebook(folder) as book:
        for name in others | {assignment.name for assignment, _ in done}:
            book.find_assignment(name)
        for assignment, row in done:
            try:
                book.find_submission(row.assignment, row.student)
            except MissingEntry:
                lost.append((assignment, row))
    for assignment, row in lost:
        _into_gradebook(folder, assignment, row)


def _into_gradebook(folder: Path, assignment: Assignment, row: Row) -> None:
    """Write the automatic points of a row; what an instructor gave by hand stays."""
    with _gradebook(folder) as book:
        book.update_or_create_student(row.student)
        book.update_or_create_submission(row.assignment, row.student)
        for test in row.tests:
            grade = book.find_grade(test.id, assignment.notebook, row.assignment, row.student)
            grade.auto_score = test.points
            grade.needs_manual_grade = row.status in ("by_hand", "failed")
        book.db.commit()


def _for_formgrader(folder: Path, assignment: Assignment, row: Row, notebook: Any) -> None:
    """The notebook that was graded, as code without what it printed, where nbgrader's formgrader looks for it."""
    place = folder / "autograded" / row.student / row.assignment
    path = place / f"{assignment.notebook}.ipynb"
    if notebook is None:
        path.unlink(missing_ok=True)
        return
    place.mkdir(parents=True, exist_ok=True)
    write_whole(path, (nbformat.writes(notebook) + "\n").encode())
