"""What a student handed in, read without trusting it, and the notebook made of it that can be graded.

Nothing of a submission is changed. The notebook to grade has the cells of the one that was handed out: what students wrote into
the cells of exercises, every cell that they added or changed, the tests as they were, and of the chapter what these need to run.
"""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import os
import re
import stat
import symtable
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import nbformat

from transformer_lite.classroom.assigning import ANSWERS, BEGIN_HIDDEN, QUESTIONS, exercise_in
from transformer_lite.classroom.results import Note
from transformer_lite.course.files import ordinary

LARGEST_NOTEBOOK, LARGEST_FILE, LARGEST, MOST_FILES = 20_000_000, 2_000_000, 20_000_000, 100
HIDDEN = re.compile(r"^(\.|__pycache__$|~\$)")
NAME = re.compile(r"[A-Za-z_]\w*")
LONGEST_PARSED = 100_000  # characters of a cell; the tree of a longer one takes much memory
RUNNING = re.compile(r"\blab\.start\(")


@dataclass(frozen=True)
class HandedIn:
    """The files of a submission: regular files only, none too large.

    Attributes:
        student: whose it is.
        folder: where it lies.
        files: names, as they stand below ``folder``, and contents.
        notes: what was left out.
        submitted: what stands in ``timestamp.txt``.
    """

    student: str
    folder: Path
    files: dict[str, bytes]
    notes: tuple[Note, ...] = ()
    submitted: str | None = None

    @property
    def digest(self) -> str:
        """Of names and contents."""
        parts = (f"{name}\0{len(data)}\0".encode() + data for name, data in sorted(self.files.items()))
        return hashlib.sha256(b"".join(parts)).hexdigest()


@dataclass
class Sheet:
    """A submission made ready: the notebook to grade (None: there is none that could be read), and what was done to it."""

    notebook: Any = None
    status: str | None = None  # "missing" or "unreadable" where there is no notebook
    notes: list[Note] = field(default_factory=list)
    solutions: dict[str, str] = field(default_factory=dict)  # what stands in the exercises' cells


def read(student: str, folder: Path) -> HandedIn:
    """Read the files below ``folder``. Links, special files, hidden files and what is too large are left out and noted."""
    files: dict[str, bytes] = {}
    notes: list[Note] = []
    total = 0
    # The notebooks first: nothing that lies beside them may take their place.
    for path, kind in sorted(_walk(folder), key=lambda found: found[0].suffix != ".ipynb"):
        name = readable(path.relative_to(folder).as_posix())
        largest = LARGEST_NOTEBOOK if path.suffix == ".ipynb" else LARGEST_FILE
        if kind != "file":
            notes.append(Note(kind, {"file": name}))
            continue
        data = contents(path, largest)
        if data is None:
            notes.append(Note("unopened", {"file": name}))
        elif len(data) > largest or total + len(data) > LARGEST or len(files) >= MOST_FILES:
            notes.append(Note("too_large", {"file": name}))
        else:
            files[name] = data
            total += len(data)
    time = files.pop("timestamp.txt", b"").decode("utf-8", "replace").strip()[:40] or None
    return HandedIn(student, folder, files, tuple(notes), time)


def readable(text: str) -> str:
    """``text`` with the halves of characters and the bytes of strange names, which no file can hold, written out."""
    return text.encode("utf-8", "backslashreplace").decode()


def _walk(folder: Path) -> Iterator[tuple[Path, str]]:
    """Every entry below ``folder``: files, and links and special things by what they are. No link is followed."""
    pending = [folder]
    seen = 0
    while pending:
        here = pending.pop()
        try:
            with os.scandir(here) as entries:
                listed = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            yield here, "unopened"
            continue
        for entry in listed:
            seen += 1
            if seen > 20 * MOST_FILES:
                return
            try:
                about = entry.stat(follow_symlinks=False)
            except OSError:
                yield Path(entry.path), "unopened"
                continue
            if stat.S_ISLNK(about.st_mode):
                yield Path(entry.path), "link"
            elif HIDDEN.match(entry.name):
                continue
            elif stat.S_ISDIR(about.st_mode):
                pending.append(Path(entry.path))
            elif stat.S_ISREG(about.st_mode):
                yield Path(entry.path), "link" if about.st_nlink > 1 else "file"
            else:
                yield Path(entry.path), "special"


def contents(path: Path, largest: int) -> bytes | None:
    """Up to ``largest`` bytes of a file and one more; None if it cannot be opened, or is a link or no file."""
    try:
        return ordinary(path, largest)
    except OSError:
        return None


# --- the notebook that can be graded ------------------------------------------------------------------------------------


def sheet(handed_in: HandedIn, source: Any, manifest: dict[str, Any]) -> Sheet:
    """The notebook to grade, from what was handed in and the assignment's own ``source``."""
    made = Sheet(notes=list(handed_in.notes))
    candidates = sorted(name for name in handed_in.files if name.endswith(".ipynb") and "/.ipynb_checkpoints/" not in f"/{name}")
    if not candidates:
        # There may be one that could not be read, or must not be.
        there = any(note.code == "unopened" or note.details.get("file", "").endswith(".ipynb") for note in made.notes)
        made.status = "unreadable" if there else "missing"
        return made
    opened = {name: parsed for name in candidates if (parsed := _parsed(handed_in.files[name])) is not None}
    if not opened:
        made.status = "unreadable"
        return made
    skeleton = _Skeleton(source, manifest)
    wanted = f"{manifest['file']}.ipynb"
    name = max(opened, key=lambda each: (skeleton.familiar(opened[each]), each == wanted, -len(each)))
    if skeleton.familiar(opened[name]) == 0 and name != wanted:
        made.status = "missing"
        return made
    if name != wanted:
        made.notes.append(Note("renamed", {"file": name}))
    if len(opened) > 1:
        made.notes.append(Note("several", {"file": name, "count": len(opened)}))
    if handed_in.files[name].startswith(b"\xef\xbb\xbf"):
        made.notes.append(Note("bom"))
    if opened[name].get("metadata", {}).get("kernelspec", {}).get("name", "python3") != source.metadata["kernelspec"]["name"]:
        made.notes.append(Note("kernel", {"name": str(opened[name]["metadata"]["kernelspec"].get("name"))[:40]}))
    skeleton.fill(opened[name], made)
    return made


def _parsed(data: bytes) -> dict[str, Any] | None:
    """A notebook of any version as version 4, its cells with plain sources; None if ``data`` is none."""
    try:
        raw = json.loads(data.decode("utf-8-sig"))
        if raw.get("nbformat", 4) < 4:
            raw = json.loads(nbformat.writes(nbformat.convert(nbformat.reads(json.dumps(raw), as_version=3), 4)))
        cells = []
        for cell in raw["cells"]:
            text = cell.get("source", "")
            metadata = cell.get("metadata")
            cells.append(
                {
                    "cell_type": str(cell["cell_type"]),
                    "source": readable(text if isinstance(text, str) else "".join(map(str, text or ()))).replace("\r\n", "\n"),
                    "metadata": metadata if isinstance(metadata, dict) else {},
                    "id": str(cell.get("id", "")),
                }
            )
        about = raw.get("metadata")
        about = about if isinstance(about, dict) else {}
        if not isinstance(about.get("kernelspec", {}), dict):
            about["kernelspec"] = {}
        return {"cells": cells, "metadata": about}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    except Exception:  # nbformat raises its own kinds for old notebooks that are damaged
        return None


def _grade_id(cell: dict[str, Any]) -> str | None:
    about = cell["metadata"].get("nbgrader")
    name = about.get("grade_id") if isinstance(about, dict) else None
    return name if isinstance(name, str) else None


class _Skeleton:
    """The cells of the notebook that was handed out, and where a student's cells belong among them."""

    def __init__(self, source: Any, manifest: dict[str, Any]) -> None:
        self.source = source
        self.cells = [cell for cell in source.cells if cell.cell_type == "code"]
        self.tests = {test["id"] for test in manifest["tests"]}
        self.exercises = manifest["exercises"]
        self.by_grade = {name: at for at, cell in enumerate(self.cells) if (name := _grade_id(cell)) is not None}
        self.by_id = {cell.get("id", ""): at for at, cell in enumerate(self.cells) if cell.get("id")}
        self.by_text = {cell.source.strip(): at for at, cell in enumerate(self.cells)}
        self.hidden: dict[str, list[int]] = {}  # students see the same line in all of them
        for at, cell in enumerate(self.cells):
            if BEGIN_HIDDEN in cell.source:
                self.hidden.setdefault(_released(cell.source), []).append(at)

    def familiar(self, notebook: dict[str, Any]) -> int:
        """How many cells of a notebook are of this assignment."""
        return sum(self.place(cell) is not None for cell in notebook["cells"] if cell["cell_type"] == "code")

    def place(self, cell: dict[str, Any]) -> int | None:
        """Which cell this one was: by nbgrader's name, by the exercise that it answers, by id, by text."""
        if (name := _grade_id(cell)) in self.by_grade:
            return self.by_grade[name]
        if (name := exercise_in(cell)) in self.exercises:
            return self.by_grade[name]
        if cell["id"] in self.by_id:
            return self.by_id[cell["id"]]
        return self.by_text.get(cell["source"].strip())

    def fill(self, notebook: dict[str, Any], made: Sheet) -> None:
        """Put what a student wrote into the skeleton."""
        own: dict[int, list[str]] = {}  # the student's cells behind each of ours; -1: before the first one
        written: dict[int, str] = {}
        changed: dict[int, str] = {}
        seen: set[int] = set()
        edited = lost_names = 0
        last = -1
        for cell in notebook["cells"]:
            text = cell["source"]
            if cell["cell_type"] != "code" and not (
                _grade_id(cell) in self.exercises or exercise_in({**cell, "cell_type": "code"})
            ):
                continue
            at = self.place({**cell, "cell_type": "code"})
            if at is None and (unmarked := [place for place in self.hidden.get(text.strip(), ()) if place not in seen]):
                at = unmarked[0]
                lost_names += 1
            if at is None:
                if text.strip():
                    own.setdefault(last, []).append(text)
                continue
            ours = self.cells[at]
            name = _grade_id(ours)
            if name in self.tests:
                seen.add(at)
                edited += _released(ours.source) != text.strip()
            elif name in self.exercises:
                lost_names += _grade_id(cell) is None
                if at not in written:
                    written[at] = text
                else:
                    if Note("duplicate", {"exercise": name}) not in made.notes:
                        made.notes.append(Note("duplicate", {"exercise": name}))
                    if _blank(written[at], name):
                        written[at] = text
                    elif not _blank(text, name):
                        own.setdefault(at, []).append(text)
                seen.add(at)
            elif at in seen or ours.source.strip() != text.strip():
                if at in seen:
                    own.setdefault(last, []).append(text)
                else:
                    changed[at] = text
                seen.add(at)
            else:
                seen.add(at)
            last = max(last, at)
        self._note(made, written, seen, edited, lost_names)
        made.solutions = {_grade_id(self.cells[at]) or "": text for at, text in written.items()}
        made.notebook = self._notebook(own, written, changed)

    def _note(self, made: Sheet, written: dict[int, str], seen: set[int], edited: int, lost_names: int) -> None:
        gone = [name for name in self.exercises if self.by_grade[name] not in written]
        made.notes += [Note("solution_deleted", {"exercise": name}) for name in gone]
        tests = sum(self.by_grade[name] not in seen for name in self.tests)
        for code, count in (("restored", tests), ("edited_tests", edited), ("names_lost", lost_names)):
            if count:
                made.notes.append(Note(code, {"count": count}))

    def _notebook(self, own: dict[int, list[str]], written: dict[int, str], changed: dict[int, str]) -> Any:
        theirs = [*written.values(), *changed.values(), *(text for texts in own.values() for text in texts)]
        kept = self._needed([*theirs, *(cell.source for cell in self.cells if _grade_id(cell) in self.tests)])
        result = nbformat.v4.new_notebook(metadata=copy.deepcopy(self.source.metadata))
        result.cells = [self._added(text, -1, number) for number, text in enumerate(own.get(-1, []))]
        for at, ours in enumerate(self.cells):
            name = _grade_id(ours)
            if name in self.tests or name in self.exercises:
                cell = copy.deepcopy(ours)
                if name in self.exercises:
                    cell.source = written.get(at, f"# {name}")
                result.cells.append(cell)
            elif at in changed or at in kept:
                result.cells.append(nbformat.v4.new_code_cell(changed.get(at, ours.source), id=f"cell-{at}"))
            result.cells += [self._added(text, at, number) for number, text in enumerate(own.get(at, []))]
        return result

    def _added(self, text: str, at: int, number: int) -> Any:
        return nbformat.v4.new_code_cell(text, id=f"own-{at + 1}-{number}")

    def _needed(self, texts: Iterable[str]) -> set[int]:
        """The cells of the chapter without which ``texts`` would not run: the set-up, and what defines their names."""
        plain = {at: cell.source for at, cell in enumerate(self.cells) if _grade_id(cell) is None}
        bound = {at: _bound(text) for at, text in plain.items()}
        kept = {at for at, text in plain.items() if RUNNING.search(text)}
        wanted = set().union(*map(_used, texts), *(_used(plain[at]) for at in kept))
        while more := {at for at in plain if at not in kept and bound[at] & wanted}:
            kept |= more
            wanted = wanted.union(*(_used(plain[at]) for at in more))
        return kept


def _released(source: str) -> str:
    """A test's cell as students have it: without what is hidden."""
    return source.split(BEGIN_HIDDEN)[0].strip()


def _blank(text: str, exercise: str) -> bool:
    """Whether an exercise's cell still holds nothing but its ``...``."""
    try:
        tree = _tree(text)
    except ValueError:
        return False
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == exercise]
    body = [node for function in functions for node in function.body]
    return all(isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) for node in body)


def _tree(text: str) -> ast.Module:
    """Its syntax tree. Raises ValueError if it has none, or is too long or too deep to be looked at."""
    return _parsed_by(ast.parse, text)


def _table(text: str) -> symtable.SymbolTable:
    """Its table of names. Raises ValueError as `_tree` does."""
    return _parsed_by(lambda source: symtable.symtable(source, "cell", "exec"), text)


def _parsed_by(parse: Callable[[str], Any], text: str) -> Any:
    if len(text) > LONGEST_PARSED:
        raise ValueError("too long to be parsed here")
    try:
        return parse(text)
    except (SyntaxError, RecursionError, MemoryError) as trouble:
        raise ValueError("cannot be parsed") from trouble


def _bound(text: str) -> set[str]:
    """Names that a cell defines."""
    try:
        table = _table(text)
    except ValueError:
        return set()
    return {symbol.get_name() for symbol in table.get_symbols() if symbol.is_assigned() or symbol.is_imported()}


def _used(text: str) -> set[str]:
    """Names that a cell takes from elsewhere; of one that does not parse, every word."""
    try:
        tree, table = _tree(text), _table(text)
    except ValueError:
        return set(NAME.findall(text))
    names: set[str] = set()
    pending = list(table.get_children())
    while pending:
        inner = pending.pop()
        names |= {symbol.get_name() for symbol in inner.get_symbols() if symbol.is_referenced() and symbol.is_global()}
        pending += inner.get_children()
    names -= _bound(text)
    stored: dict[str, int] = {}
    read: dict[str, int] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            where = stored if isinstance(node.ctx, ast.Store) else read
            where[node.id] = min(where.get(node.id, node.lineno), node.lineno)
    outermost = {
        symbol.get_name()
        for symbol in table.get_symbols()
        if symbol.is_referenced() and not symbol.is_imported() and not symbol.is_namespace()
    }
    # A name that is read before, or where, the cell sets it has come from elsewhere.
    return names | {name for name in outermost & set(read) if read[name] <= stored.get(name, read[name])}


def extra_files(handed_in: HandedIn) -> dict[str, bytes]:
    """What lies beside the notebook and goes into the sandbox with it: modules of the student's, data, answers."""
    ours = (QUESTIONS, "timestamp.txt")  # a folder may be called so
    tops = {name: name.split("/")[0] for name in handed_in.files}
    return {
        name: data
        for name, data in handed_in.files.items()
        if tops[name] not in ours and not tops[name].endswith(".ipynb") and not name.endswith(".ipynb")
    }


def answers(handed_in: HandedIn) -> bytes:
    """The answers to the questions as they were handed in."""
    return handed_in.files.get(ANSWERS, b"")
