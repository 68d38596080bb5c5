"""The chapters of the course, as the built notebooks themselves say: so a wheel, which has no sources, knows them too."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from transformer_lite import content
from transformer_lite.language import LANGUAGES, Text, message


class CourseError(Exception):
    """Something of the course cannot be used as it is. The text says what, and how to mend it."""


class UnknownChapter(content.Unknown):
    """A chapter was asked for by an id, a number or a file name that the course does not have."""

    def __init__(self, name: str, known: list[str], numbers: list[int] | None = None):
        super().__init__("chapter", name, known)
        self.numbers = numbers or []

    def __str__(self) -> str:
        if self.name.isdecimal() and self.numbers:
            return message("course.no_such_number", name=self.name, first=min(self.numbers), last=max(self.numbers))
        return message("course.unknown_chapter", name=self.name, nearest=", ".join(self.nearest))


@dataclass(frozen=True)
class Section:
    """One section of a chapter: ``g`` and ``e`` are its minutes for each reader, None where it is not meant for that one.

    The title is Markdown, as it is written in the source.
    """

    id: str
    number: int
    title: Text
    g: int | None
    e: int | None
    anchors: frozenset[str] = field(default=frozenset(), compare=False)  # of all headings inside it, its own too


@dataclass(frozen=True)
class Chapter:
    """One sitting of the course. ``file`` is the stem that its source and its notebooks share."""

    number: int
    id: str
    title: Text
    sections: tuple[Section, ...]
    file: str

    @property
    def g(self) -> int:
        """Minutes for a reader who prepares for the G検定."""
        return sum(section.g or 0 for section in self.sections)

    @property
    def e(self) -> int:
        """Minutes for a reader who prepares for the E資格."""
        return sum(section.e or 0 for section in self.sections)

    def notebook(self, lang: str) -> Path:
        """The built notebook in ``lang``, as it came with the course."""
        return content.notebooks_dir(lang) / f"{self.file}.ipynb"


@lru_cache(maxsize=256)
def _read(path: Path, _changed: int) -> Chapter:
    try:
        notebook = json.loads(path.read_text("utf-8"))
        about = notebook["metadata"]["transformer_lite"]
        anchors = _anchors(notebook["cells"], [str(each["id"]) for each in about["sections"]])
        title = Text(**about["title"])
        sections = tuple(
            Section(
                str(each["id"]), number, Text(**each["title"]), each.get("g"), each.get("e"), anchors.get(each["id"], frozenset())
            )
            for number, each in enumerate(about["sections"], 1)
        )
        return Chapter(int(about["number"]), str(about["chapter"]), title, sections, path.stem)
    except (AttributeError, ValueError, KeyError, TypeError) as trouble:
        raise CourseError(message("course.damaged_notebook", path=path)) from trouble


def _anchors(cells: Sequence[Mapping[str, Any]], sections: Collection[str]) -> dict[str, frozenset[str]]:
    """The anchors that stand in each section: its own, and those of the headings before the next one."""
    found: dict[str, set[str]] = {}
    inside = ""
    for cell in cells:
        if cell["cell_type"] == "markdown":
            for anchor in re.findall(r'<a id="([^"]+)"', "".join(cell["source"])):
                inside = anchor if anchor in sections else inside
                found.setdefault(inside, set()).add(anchor)
    return {section: frozenset(anchors) for section, anchors in found.items()}


def chapters(notebooks: Path | None = None) -> tuple[Chapter, ...]:
    """Every chapter that has been built, in order.

    ``notebooks`` is the folder that holds ``ja/`` and ``en/``; the course's own by default. A built notebook that cannot be
    read raises `CourseError` naming it.
    """
    found = {}
    for lang in reversed(LANGUAGES):
        folder = notebooks / lang if notebooks else content.notebooks_dir(lang)
        for path in folder.glob("*.ipynb"):
            if not path.name.startswith("."):
                found[path.stem] = _read(path, path.stat().st_mtime_ns)
    return tuple(sorted(found.values(), key=lambda chapter: (chapter.number, chapter.file)))


def chapter(name: str | int, among: tuple[Chapter, ...] | None = None) -> Chapter:
    """The chapter of that id, number (``2``, ``"02"``) or file name (with or without folder and ending).

    Unknown: `UnknownChapter` with the nearest names.
    """
    among = chapters() if among is None else among
    text = str(name).strip().replace("\\", "/").rsplit("/", 1)[-1]
    # A newer version that was put beside a learner's own ends in .new.ipynb, .new2.ipynb and so on.
    stem = re.sub(r"(\.new\d*)?(\.ipynb|\.md)$", "", text)
    for candidate in among:
        if stem in (candidate.id, candidate.file) or (stem.isdecimal() and int(stem) == candidate.number):
            return candidate
    raise UnknownChapter(str(name), [candidate.id for candidate in among], [candidate.number for candidate in among])
