"""The learner's own copies of the chapters: given, refreshed while they are untouched, and never overwritten once they are not.

A workspace looks like this, with one folder per language so that switching keeps both:

    workspace/
      ja/02_scaled_dot_product_attention.ipynb
      ja/02_scaled_dot_product_attention.new.ipynb    the course's newer version, beside one that the learner has changed
      en/02_scaled_dot_product_attention.ipynb
      .transformer_lite.json                          what was put there: a hash of each notebook's cells

Touched means that the text of a cell differs from what was put there. Running a notebook changes outputs only, and the empty
cell that Jupyter adds below the last one when it is run says nothing either.
"""

from __future__ import annotations

import errno
import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from transformer_lite.course.files import replace
from transformer_lite.course.listing import Chapter, CourseError, chapters
from transformer_lite.language import check_language, message

RECORD = ".transformer_lite.json"

Status = Literal["new", "refreshed", "current", "kept", "beside", "no_notebook", "in_the_way", "failed"]


@dataclass(frozen=True)
class Change:
    """What happened to one chapter in the workspace.

    ``status``: "new" (put there), "refreshed" (it was untouched), "current" (nothing to do), "kept" (the learner's, and the
    course has nothing newer), "beside" (the learner's; the newer one is ``beside``), "no_notebook" (the file is no notebook; a
    good copy is ``beside``), "in_the_way" (a folder has that name), "failed" (it could not be written; nothing was lost).
    """

    status: Status
    chapter: str
    path: Path
    beside: Path | None = None
    reason: str = ""

    @property
    def notebook(self) -> Path | None:
        """The file to open for this chapter: the learner's own where it is one."""
        if self.status in ("no_notebook", "in_the_way"):
            return self.beside
        return self.path if self.path.is_file() else None

    def text(self, lang: str | None = None) -> str:
        """One sentence about it, "" where there is nothing to say."""
        if self.status in ("current", "kept"):
            return ""
        beside = self.beside.name if self.beside else ""
        return message(f"course.workspace.{self.status}", lang, path=self.path, beside=beside, reason=self.reason)


@dataclass(frozen=True)
class Update:
    """What `update` did: one change per chapter, and what else the learner should know."""

    changes: tuple[Change, ...]
    notes: tuple[str, ...] = ()

    def change(self, chapter: str) -> Change:
        """The change of the chapter with that id."""
        return next(change for change in self.changes if change.chapter == chapter)


def fingerprint(data: bytes) -> str | None:
    """A hash of the cells' kinds and texts, without outputs, ids and empty cells; None if ``data`` is no notebook."""
    try:
        notebook = json.loads(data.decode("utf-8-sig"))
        # Notebooks of other makers hold a cell's text as one string or as a list of lines.
        cells = [(cell["cell_type"], "".join(cell["source"])) for cell in notebook["cells"]]
    except (ValueError, KeyError, TypeError, RecursionError):
        return None
    said = [[kind, text.strip()] for kind, text in cells if text.strip()]
    return hashlib.sha256(json.dumps(said, ensure_ascii=False).encode("utf-8", "surrogatepass")).hexdigest()


def update(target: Path | str, lang: str, listed: Iterable[Chapter] | None = None) -> Update:
    """Bring the workspace in folder ``target`` up to date with the course's notebooks in ``lang``.

    Raises `CourseError` if the folder cannot be made. What goes wrong with a single file is told in its `Change` instead, so
    that one bad file keeps nobody from the other chapters.
    """
    target = Path(target)
    folder = target / check_language(lang)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as trouble:
        raise CourseError(message("course.workspace.no_folder", path=folder, reason=_reason(trouble))) from trouble
    record, notes = _read_record(target / RECORD)
    before = json.dumps(record)
    changes = []
    for chapter in chapters() if listed is None else tuple(listed):
        path = folder / f"{chapter.file}.ipynb"
        try:
            changes.append(_bring(chapter, path, chapter.notebook(lang).read_bytes(), record, lang))
        except OSError as trouble:
            changes.append(Change("failed", chapter.id, path, reason=_reason(trouble)))
    if json.dumps(record) != before:
        try:
            replace(target / RECORD, (json.dumps(record, indent=1, sort_keys=True) + "\n").encode())
        except OSError as trouble:
            notes.append(message("course.workspace.no_record", path=target / RECORD, reason=_reason(trouble)))
    return Update(tuple(changes), tuple(notes))


def _bring(chapter: Chapter, path: Path, course: bytes, record: dict[str, dict[str, str]], lang: str) -> Change:
    put, offered = record["put"], record["offered"]
    name = f"{lang}/{path.name}"
    newest = fingerprint(course)
    if newest is None:
        raise CourseError(message("course.damaged_notebook", path=chapter.notebook(lang)))
    if path.is_dir():
        return Change("in_the_way", chapter.id, path, _put_beside(path, course, newest, record, lang))
    if not path.exists():
        replace(path, course)
        put[name] = newest
        return Change("new", chapter.id, path)
    mine = fingerprint(path.read_bytes())
    if mine is None:
        return Change("no_notebook", chapter.id, path, _put_beside(path, course, newest, record, lang))
    if mine == newest:
        put[name] = newest
        return Change("current", chapter.id, path)
    if mine == put.get(name):
        replace(path, course)
        put[name] = newest
        return Change("refreshed", chapter.id, path)
    # From here on the learner has written in it: it stays as it is.
    if newest in (put.get(name), offered.get(name)):
        return Change("kept", chapter.id, path)
    beside = _put_beside(path, course, newest, record, lang)
    offered[name] = newest
    return Change("beside", chapter.id, path, beside)


def _put_beside(path: Path, course: bytes, newest: str, record: dict[str, dict[str, str]], lang: str) -> Path:
    """Put the course's notebook beside ``path`` under the first name that overwrites nothing of the learner's."""
    number = 1
    while True:
        beside = path.with_name(f"{path.stem}.new{'' if number == 1 else number}.ipynb")
        name = f"{lang}/{beside.name}"
        there = fingerprint(beside.read_bytes()) if beside.is_file() else None
        if there == newest:
            record["put"][name] = newest
            return beside
        if not beside.exists() or (there is not None and there == record["put"].get(name)):
            replace(beside, course)
            record["put"][name] = newest
            return beside
        number += 1


def _read_record(path: Path) -> tuple[dict[str, dict[str, str]], list[str]]:
    """What was put into the workspace. A damaged record is set aside: then whatever differs counts as the learner's."""
    empty: dict[str, dict[str, str]] = {"put": {}, "offered": {}}
    try:
        text = path.read_text("utf-8")
    except FileNotFoundError:
        return empty, []
    except (OSError, ValueError):
        text = ""
    try:
        stored = json.loads(text)
        record = {part: dict(stored.get(part, {})) for part in empty}
        if all(isinstance(value, str) for part in record.values() for value in part.values()):
            return record, []
    except (ValueError, TypeError, AttributeError):
        pass
    aside = path.with_name(path.name + ".damaged")
    try:
        path.replace(aside)
    except OSError:
        aside = path
    return empty, [message("course.workspace.damaged_record", path=aside)]


def _reason(trouble: OSError) -> str:
    """What the operating system said, in words for the few things that happen to learners."""
    if trouble.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
        return message("course.workspace.read_only")
    if trouble.errno in (errno.ENOSPC, getattr(errno, "EDQUOT", -1)):
        return message("course.workspace.disk_full")
    if trouble.errno in (errno.EEXIST, errno.ENOTDIR):
        return message("course.workspace.file_in_the_way")
    return trouble.strerror or str(trouble)
