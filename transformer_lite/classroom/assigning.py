"""An assignment made of a chapter: an nbgrader course with the notebook to hand out, and the one that grades it."""

from __future__ import annotations

import ast
import copy
import hashlib
import importlib.util
import json
import os
import re
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import nbformat

from transformer_lite import course, practice
from transformer_lite.classroom import results, testing
from transformer_lite.course.files import replace
from transformer_lite.language import check_language, message

QUESTIONS, ANSWERS = "questions.json", "answers.json"
CONFIG, GRADEBOOK = "nbgrader_config.py", "gradebook.db"
WORKSHOP = ".assign-"  # of the folder in which an assignment is made
MAKING = "making"  # beside a manifest: the assignment is being made, or the making of it was broken off
BEGIN_SOLUTION, END_SOLUTION = "### BEGIN SOLUTION", "### END SOLUTION"
BEGIN_HIDDEN, END_HIDDEN = "### BEGIN HIDDEN TESTS", "### END HIDDEN TESTS"
STUB = re.compile(r"^( +)\.\.\.$", re.MULTILINE)

CONFIGURATION = """\
# An nbgrader course made by `transformer-lite assign`.
# `transformer-lite grade` grades it, and runs what students wrote in a sandbox.
c = get_config()  # noqa: F821

c.CourseDirectory.course_id = {name!r}
c.ClearSolutions.code_stub = {{"python": "..."}}
c.IgnorePattern.enabled = True  # a warning on the standard error is no mistake
c.IgnorePattern.pattern = ".*"
c.Execute.timeout = 30
"""


class ClassroomError(course.CourseError):
    """Something that the instructor must mend; the text says what and how."""


@dataclass(frozen=True)
class Assigned:
    """One assignment: its name, what students get, how much there is to earn, and whether anything changed."""

    name: str
    release: Path
    exercises: tuple[str, ...]
    questions: int
    points: float
    changed: bool


def assign(
    chapters: Sequence[str | int],
    lang: str,
    out: Path,
    *,
    exercises: Sequence[str] | None = None,
    questions: int | None = None,
    seed: int = 0,
    bank: Path | None = None,
) -> list[Assigned]:
    """Make the assignments of ``chapters`` in the course in folder ``out``; what is there of others stays.

    Args:
        chapters: ids, numbers or file names.
        lang: of the notebooks, "ja" or "en".
        out: the course's folder; made if it is missing.
        exercises: those to be graded; all of the chapters if None.
        questions: how many questions of ``bank`` are asked; all of them if None.
        seed: draws the questions and their options.
        bank: a file of questions that students do not have.

    Raises:
        ClassroomError: nbgrader is missing, there is nothing to grade, students have handed in another version, something of a
            release would give a solution away, the folder or its gradebook cannot be used, or another command is at work in it.
            What is wrong with what is asked for is found before anything is written.
        UnknownChapter, UnknownExercise: with the nearest names.
    """
    check_language(lang)
    needs_nbgrader()
    must_be_usable(out)
    if questions is not None and bank is None:
        raise ClassroomError(message("classroom.assign.bank_missing"))
    chosen = list(dict.fromkeys(course.chapter(name) for name in chapters))
    wanted = None if exercises is None else [practice.exercise(name).id for name in exercises]
    plans = []
    for chapter in chosen:
        notebook = nbformat.read(chapter.notebook(lang), as_version=4)
        there = [name for cell in notebook.cells if (name := exercise_in(cell)) is not None]
        drawn: tuple[Any, ...] = ()
        if bank is not None:
            from transformer_lite.classroom import questions as asked

            drawn = asked.draw(bank, questions, seed, chapter.id if len(chosen) > 1 else None)
        plans.append((chapter, notebook, [name for name in there if wanted is None or name in wanted], drawn))
    if wanted is not None and (strange := set(wanted) - {name for _, _, names, _ in plans for name in names}):
        raise ClassroomError(message("classroom.assign.elsewhere", exercises=", ".join(sorted(strange))))
    if empty := [chapter.id for chapter, _, names, drawn in plans if not names and not drawn]:
        raise ClassroomError(message("classroom.assign.nothing", chapter=", ".join(empty)))
    from transformer_lite.classroom.locking import alone

    try:
        _course(out)
        with alone(out):
            for left in out.glob(f"{WORKSHOP}*"):  # by a command that was killed
                shutil.rmtree(left)
            return [_assignment(out, *plan, lang, seed) for plan in plans]
    except OSError as trouble:
        raise ClassroomError(message("classroom.assign.no_folder", folder=out, reason=trouble.strerror)) from trouble


def needs_nbgrader() -> None:
    """Raise `ClassroomError` where nbgrader is not installed."""
    if importlib.util.find_spec("nbgrader") is None:
        raise ClassroomError(message("classroom.no_nbgrader"))


def must_be_usable(folder: Path) -> None:
    """Raise `ClassroomError` if nbgrader would take the folder's path for something else: a pattern, or a part of an address."""
    if found := sorted(set(str(folder.resolve())) & set("*?[%")):
        raise ClassroomError(message("classroom.assign.odd_folder", folder=folder.resolve(), characters=" ".join(found)))


def exercise_in(cell: Any) -> str | None:
    """The exercise that a cell answers: the id in ``@lab.exercise("id")``."""
    if cell["cell_type"] != "code":
        return None
    found = re.search(r"""^@lab\.exercise\(\s*(["'])([\w-]+)\1""", "".join(cell["source"]), re.MULTILINE)
    return found[2] if found else None


def _course(out: Path) -> None:
    """The folder of the course, with its configuration; what an instructor changed there stays."""
    out.mkdir(parents=True, exist_ok=True)
    if not (out / CONFIG).exists():
        name = re.sub(r"[^\w-]+", "-", out.resolve().name) or "course"
        replace(out / CONFIG, CONFIGURATION.format(name=name).encode())


def _assignment(
    out: Path, chapter: course.Chapter, notebook: Any, names: list[str], drawn: tuple[Any, ...], lang: str, seed: int
) -> Assigned:
    blank = copy.deepcopy(notebook)
    manifest = _manifest(chapter, names, drawn, lang, seed)
    source = _source(notebook, manifest, lang)
    files = {f"{chapter.file}.ipynb": (nbformat.writes(source) + "\n").encode()}
    if drawn:
        from transformer_lite.classroom import questions as asked

        files[QUESTIONS] = (json.dumps(asked.paper(drawn, lang, seed), ensure_ascii=False, indent=1) + "\n").encode()
    manifest["digest"] = _digest(files)
    place = out / results.FOLDER / chapter.id / results.MANIFEST
    making = place.with_name(MAKING)
    release = out / "release" / chapter.id
    points = sum(test["points"] for test in manifest["tests"])
    kept = results.manifest(place) if place.is_file() else {}
    before = kept.get("digest") or _digest_of_source(out, chapter.id)
    made = (release / f"{chapter.file}.ipynb").is_file() and not making.exists() and _in_gradebook(out, chapter.id)
    same = bool(kept) and made and before == manifest["digest"]
    if not same:
        handed_in = _students(out, chapter.id)
        if handed_in and before not in (None, manifest["digest"]):
            text = message(
                "classroom.assign.handed_in", assignment=chapter.id, count=len(handed_in), students=", ".join(handed_in[:5])
            )
            raise ClassroomError(text)
        place.parent.mkdir(parents=True, exist_ok=True)
        making.touch()
        _generate(out, chapter.id, files)
        given_away = leaks(release, blank, manifest)
        if given_away:
            shutil.rmtree(release)
            raise ClassroomError(message("classroom.assign.gives_away", assignment=chapter.id, lines=" / ".join(given_away[:3])))
        replace(place, (json.dumps({**manifest, "made": _now()}, ensure_ascii=False, indent=1) + "\n").encode())
        making.unlink()
    return Assigned(chapter.id, release, tuple(names), len(drawn), points, not same)


def _digest_of_source(out: Path, name: str) -> str | None:
    """The digest of an assignment whose manifest is lost; None if it has no source either."""
    files = {path.name: path.read_bytes() for path in (out / "source" / name).glob("*") if path.is_file()}
    return _digest(files) if files else None


def _digest(files: dict[str, bytes]) -> str:
    return hashlib.sha256(b"".join(name.encode() + data for name, data in sorted(files.items()))).hexdigest()


def _in_gradebook(out: Path, name: str) -> bool:
    """Whether the gradebook knows an assignment. A new one may have been begun."""
    if not (out / GRADEBOOK).exists():
        return False
    try:
        with closing(sqlite3.connect(f"{(out / GRADEBOOK).resolve().as_uri()}?mode=ro", uri=True)) as book:
            return book.execute("select 1 from assignment where name = ?", (name,)).fetchone() is not None
    except sqlite3.Error as trouble:
        raise ClassroomError(message("classroom.no_gradebook", path=out / GRADEBOOK, reason=trouble)) from trouble


def _students(out: Path, name: str) -> list[str]:
    """Those who have handed in an assignment, or had done so when it was graded."""
    there = {path.parent.name for path in (out / "submitted").glob(f"*/{name}") if _holds_something(path)}
    return sorted(there | {row.student for row in results.rows(out) if row.assignment == name})


def _holds_something(folder: Path) -> bool:
    """Whether something lies in a folder, or nobody can tell."""
    try:
        return folder.is_dir() and any(folder.iterdir())
    except OSError:
        return True


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _manifest(chapter: course.Chapter, names: list[str], drawn: tuple[Any, ...], lang: str, seed: int) -> dict[str, Any]:
    tests: list[dict[str, Any]] = []
    for name in names:
        for number, part in enumerate(testing.parts(name), 1):
            # The id is in what students get: it must not say what is tested.
            tests.append({"id": f"{name}-{number}", "exercise": name, "part": part, "points": testing.points(part)})
    keys = {}
    for number, question in enumerate(drawn, 1):
        from transformer_lite.classroom import questions as asked

        keys[question.id] = asked.key_of(question, seed)
        tests.append({"id": f"question-{number}", "question": question.id, "points": 1})
    about = {"schema": results.SCHEMA, "assignment": chapter.id, "chapter": chapter.id, "lang": lang, "file": chapter.file}
    return {**about, "exercises": names, "seed": seed, "tests": tests, "keys": keys}


# --- the notebook that grades -------------------------------------------------------------------------------------------


def _source(notebook: Any, manifest: dict[str, Any], lang: str) -> Any:
    """The chapter's notebook with solutions, tests and questions, as nbgrader wants a source to be."""
    by_exercise: dict[str, list[dict[str, Any]]] = {name: [] for name in manifest["exercises"]}
    for test in manifest["tests"]:
        if "exercise" in test:
            by_exercise[test["exercise"]].append(test)
    cells = [_text(message("classroom.sheet.opening", lang, **_opening(manifest, lang)), "opening")]
    for cell in notebook.cells:
        name = exercise_in(cell)
        if name not in by_exercise:
            cells.append(_without_outputs(cell))
            continue
        cell.source = with_solution(cell.source, name)
        cells += [_marked(_without_outputs(cell), name, solution=True), _visible(name, by_exercise[name][0], lang)]
    if manifest["keys"]:
        cells.append(_text(message("classroom.sheet.questions", lang, count=len(manifest["keys"]), file=ANSWERS), "questions"))
        cells.append(_code("from transformer_lite import classroom\n\nclassroom.ask()", "ask"))
    cells.append(_text(message("classroom.sheet.hidden", lang), "hidden"))
    for tests in by_exercise.values():
        cells += [_hidden(test, _call(test["exercise"], test["part"]), lang) for test in tests[1:]]
    for test in manifest["tests"]:
        if "question" in test:
            cells.append(_hidden(test, f"classroom.check_answer({manifest['keys'][test['question']]!r})", lang))
    notebook.cells = cells
    notebook.metadata.pop("widgets", None)
    return notebook


def _opening(manifest: dict[str, Any], lang: str) -> dict[str, Any]:
    files = f"`{manifest['file']}.ipynb`" + (f", `{ANSWERS}`" if manifest["keys"] else "")
    names = ", ".join(f"`{name}`" for name in manifest["exercises"]) or message("classroom.sheet.no_exercise", lang)
    return {"exercises": names, "points": sum(test["points"] for test in manifest["tests"]), "files": files}


def _call(exercise: str, part: str) -> str:
    asked = "" if part == testing.FORM else f", {part!r}".replace("'", '"')
    return f'classroom.test("{exercise}", {practice.exercise(exercise).id}{asked})'


def _visible(name: str, test: dict[str, Any], lang: str) -> Any:
    title = message("classroom.sheet.visible", lang, points=test["points"])
    return _tested(_code(f"# {title}\nfrom transformer_lite import classroom\n\n{_call(name, testing.FORM)}", test["id"]), test)


def _hidden(test: dict[str, Any], call: str, lang: str) -> Any:
    title = message("classroom.sheet.one_hidden", lang, points=test["points"])
    lines = [f"# {title}", BEGIN_HIDDEN, "from transformer_lite import classroom", "", call, END_HIDDEN]
    cell = _tested(_code("\n".join(lines), test["id"]), test)
    cell.metadata["jupyter"] = {"source_hidden": True}
    return cell


def _tested(cell: Any, test: dict[str, Any]) -> Any:
    return _marked(cell, test["id"], points=test["points"])


def _marked(cell: Any, name: str, *, solution: bool = False, points: float | None = None) -> Any:
    """``cell`` with what nbgrader wants to know of it."""
    about = {
        "schema_version": 3,
        "grade_id": name,
        "solution": solution,
        "grade": not solution,
        "locked": not solution,
        "task": False,
    }
    if points is not None:
        about["points"] = points
    cell.metadata["nbgrader"] = about
    return cell


def _code(text: str, name: str) -> Any:
    return nbformat.v4.new_code_cell(text, id=f"classroom-{name}"[:64])


def _text(text: str, name: str) -> Any:
    return nbformat.v4.new_markdown_cell(text, id=f"classroom-{name}")


def _without_outputs(cell: Any) -> Any:
    if cell.cell_type == "code":
        cell.outputs, cell.execution_count = [], None
    return cell


def with_solution(blank: str, exercise: str) -> str:
    """The cell of an exercise with the official solution between nbgrader's marks, in place of its ``...``."""
    solution = practice.exercise(exercise).solution
    tree = ast.parse(solution)
    function = next(node for node in tree.body if isinstance(node, ast.FunctionDef))
    statements = function.body[1:] if ast.get_docstring(function) is not None else function.body
    end = function.body[0].end_lineno if len(statements) < len(function.body) else None
    lines = solution.splitlines()
    body = lines[(end if end is not None else function.body[0].lineno - 1) : function.end_lineno]
    before = lines[: function.lineno - 1]
    text = "\n".join([f"    {BEGIN_SOLUTION}", *body, f"    {END_SOLUTION}"])
    found = STUB.search(blank)
    if found is None or [line for line in before if line.strip() and not line.startswith(("#", "import", "from"))]:
        raise RuntimeError(f"the cell of {exercise} cannot be filled in")
    return blank[: found.start()] + text + blank[found.end() :]


# --- nbgrader -----------------------------------------------------------------------------------------------------------


@contextmanager
def nbgrader(folder: Path) -> Iterator[Any]:
    """nbgrader's own interface to the course in ``folder``, quiet; it starts programs that lie beside this Python."""
    from nbgrader.apps import NbGraderAPI
    from traitlets.config import Config
    from traitlets.config.loader import PyFileConfigLoader

    config = Config()
    if (folder / CONFIG).is_file():
        config.merge(PyFileConfigLoader(CONFIG, path=str(folder)).load_config())
    config.CourseDirectory.root = str(folder.resolve())
    # Without a course's name it would look for one in a hub.
    config.CourseDirectory.course_id = config.CourseDirectory.get("course_id", "course")
    config.Application.log_level = 50
    path = os.environ.get("PATH", "")
    os.environ["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), path])
    try:
        yield NbGraderAPI(config=config)
    finally:
        os.environ["PATH"] = path


def _generate(out: Path, name: str, files: dict[str, bytes]) -> None:
    """Have nbgrader make the release; the old source and release stay if it cannot."""
    with tempfile.TemporaryDirectory(prefix=WORKSHOP, dir=out) as new:
        fresh, target = Path(new) / "source", out / "source" / name
        fresh.mkdir()
        for file, data in files.items():
            (fresh / file).write_bytes(data)
        old = Path(new) / "old"
        target.parent.mkdir(parents=True, exist_ok=True)
        if target.exists():
            target.rename(old)
        fresh.rename(target)
        with nbgrader(out) as api:
            done = api.generate_assignment(name, force=True, create=True)
        if not done["success"]:
            shutil.rmtree(target)
            if old.exists():
                old.rename(target)
            raise ClassroomError(message("classroom.assign.not_generated", assignment=name, log=last(done)))


def last(done: dict[str, Any]) -> str:
    """The last lines of what nbgrader said."""
    lines = [line for line in (str(done.get("log") or "") + str(done.get("error") or "")).splitlines() if line.strip()]
    return " / ".join(lines[-3:])[:500]


# --- what a release must not hold -----------------------------------------------------------------------------------


def leaks(release: Path, blank: Any, manifest: dict[str, Any]) -> list[str]:
    """What of the solutions, keys and hidden tests can be found in the files of a release.

    Args:
        release: the folder that students get.
        blank: the chapter's notebook as learners open it; what it says is no secret.
        manifest: of the assignment.
    """
    texts = {path: path.read_text("utf-8") for path in sorted(release.rglob("*")) if path.is_file()}
    everything = "\n".join(_said(text) for text in texts.values())
    known = "\n".join(cell.source for cell in blank.cells)
    secrets = [BEGIN_SOLUTION, BEGIN_HIDDEN, "check_answer", '"correct"', '"why"', '"trap"']
    for name in manifest["exercises"]:
        secrets += [line for line in solution_lines(name) if line not in known]
        secrets += [_call(name, part) for part in testing.parts(name)[1:]]
    secrets += [repr(key) for key in manifest["keys"].values()]
    lines = {line.strip() for line in everything.splitlines()}
    return [secret for secret in secrets if secret in lines or (len(secret) > 8 and secret in everything)]


def solution_lines(exercise: str) -> list[str]:
    """The lines of an exercise's official solution that say something of it."""
    lines = with_solution("    ...", exercise).splitlines()[1:-1]
    return [line.strip() for line in lines if len(line.strip()) > 8]


def _said(text: str) -> str:
    """A file as a reader sees it: in a notebook, the cells' sources instead of their JSON, and the metadata after them."""
    try:
        notebook = json.loads(text)
        cells = notebook["cells"]
    except (ValueError, KeyError, TypeError):
        return text
    return "\n".join(["".join(cell["source"]) for cell in cells] + [text])
