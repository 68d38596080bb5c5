"""Builds the notebooks that learners open from the sources that people edit: one text, two languages, blank or solved."""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import io
import json
import os
import re
import symtable
import tempfile
import tokenize
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from dataclasses import replace as altered
from pathlib import Path
from typing import Any

from transformer_lite import content
from transformer_lite.course.files import replace
from transformer_lite.course.listing import Chapter, CourseError, Section, UnknownChapter, chapter
from transformer_lite.language import LANGUAGES, Text, message, width

LARGEST = 1_000_000  # bytes of a built notebook: what a learner downloads and a reviewer can still look at
TIMEOUT = 120  # seconds that one cell may take
WIDGET = "application/vnd.jupyter.widget-view+json"
KERNEL = {"display_name": "Python 3", "language": "python", "name": "python3"}
BEGIN, END = "### BEGIN SOLUTION", "### END SOLUTION"
SETUP = re.compile(r"""\blab\.start\((["'])ja\1\)""")
IN_ONE_LANGUAGE = re.compile(r"#\s*(ja|en):\s?")
LINE_IN_ONE_LANGUAGE = re.compile(r"#\s*(ja|en)\s*$")  # behind code: the whole line is for that language
WIDEST = 96  # columns of a line of code: what JupyterLab shows beside its side bar without scrolling
WORDS = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
FENCE = re.compile(r"\s{0,3}(```+|~~~+)")
HEADING = re.compile(r"(#{1,6})\s+(.*?)\s*(?:\{#([^{}]*)\}\s*)?$")
REFERENCE = re.compile(r"\{sec:([^{}]*)\}")
NUMBERED = re.compile(r"(\d+|第\s*\d+\s*節)\s*[.．、　:](?!\d)")
BADGES = re.compile(r"\*\*[GE]\*\*(\s|$)")


class BuildError(CourseError):
    """A chapter cannot be built. ``messages`` holds everything that was found, each as ``file:line: message``."""

    def __init__(self, messages: Iterable[str]):
        self.messages = list(messages)
        super().__init__("\n".join(self.messages))


@dataclass(frozen=True)
class Cell:
    """One cell of a source; ``line`` is the source's line that holds the first line of its text."""

    kind: str
    text: str
    metadata: dict[str, Any]
    line: int
    exercise: str | None = None

    @property
    def hidden(self) -> bool:
        """Whether JupyterLab folds the cell's code away."""
        return bool(self.metadata.get("jupyter", {}).get("source_hidden"))


@dataclass(frozen=True)
class Heading:
    """A heading in a text cell: its row (from 0) in the cell, its level, its text and the id in ``{#id}`` behind it."""

    row: int
    level: int
    text: str
    anchor: str | None


@dataclass(frozen=True, eq=False)
class Source:
    """One chapter as it is written: both languages, with the solutions. ``notes``: what stands beside a section's minutes."""

    path: Path
    chapter: Chapter
    cells: tuple[Cell, ...]
    notes: dict[str, Text] = field(default_factory=dict)

    @property
    def anchors(self) -> tuple[str, ...]:
        """The ids of all sections and subsections, in order; they are the same in both languages."""
        texts = [cell.text for cell in self.cells if cell.metadata.get("lang") == LANGUAGES[0]]
        return tuple(heading.anchor for text in texts for heading in headings(text) if heading.anchor)

    def prose(self, lang: str) -> dict[str, str]:
        """The text of each section as it is written in ``lang``, without its heading, by the section's id."""
        found: dict[str, list[str]] = {}
        lines: list[str] = []  # what stands before the first section belongs to none
        for cell in self.cells:
            if cell.metadata.get("lang") != lang:
                continue
            begun = {heading.row: heading.anchor for heading in headings(cell.text) if heading.level == 2}
            for row, line in enumerate(cell.text.splitlines()):
                if row in begun:
                    lines = found.setdefault(begun[row] or "", [])
                else:
                    lines.append(line)
            lines.append("")
        return {anchor: "\n".join(lines) for anchor, lines in found.items()}


@dataclass
class _Problems:
    """Collects what is wrong in one source, so that its author sees everything at once."""

    path: Path
    messages: list[str] = field(default_factory=list)

    def add(self, line: int, key: str, **parameters: object) -> None:
        self.messages.append(f"{_shown(self.path)}:{line}: {message(f'course.build.{key}', **parameters)}")

    def raise_if_any(self) -> None:
        if self.messages:
            raise BuildError(self.messages)


def _shown(path: Path) -> str:
    """``path`` as a person in the course's folder would type it."""
    for folder in path.resolve().parents:
        if (folder / "notebooks").is_dir() and "notebooks" in path.resolve().parts:
            return path.resolve().relative_to(folder).as_posix()
    return path.as_posix()


def _tool(name: str) -> Any:
    """A library that only builds need, so that learners do not have to install it."""
    try:
        return importlib.import_module(name)
    except ImportError as trouble:
        raise CourseError(message("course.build.no_tools", name=name.partition(".")[0])) from trouble


# --- reading a source ---------------------------------------------------------------------------------------------------


def read(path: Path) -> Source:
    """Read and check one source. Everything that is wrong is raised at once, as `BuildError`."""
    problems = _Problems(path)
    try:
        text = path.read_text("utf-8-sig")  # a byte order mark would turn the header into a text cell
    except UnicodeDecodeError as trouble:
        raise BuildError([f"{_shown(path)}:1: {message('course.build.not_utf8', reason=trouble)}"]) from trouble
    lines = text.splitlines()
    try:
        notebook = _tool("jupytext.myst").myst_to_notebook(text, add_source_map=True)
    except Exception as trouble:  # the reader raises whatever YAML and Markdown parsers raise
        if isinstance(trouble, CourseError):
            raise
        problems.add(1, "unreadable", reason=" ".join(str(trouble).split()))
        raise BuildError(problems.messages) from trouble
    about, notes = _header(path, lines, notebook.metadata.get("transformer_lite"), problems)
    cells = []
    for raw, start in zip(notebook.cells, notebook.metadata["source_map"], strict=True):
        line = _first_line(lines, raw.source, start)
        cells.append(Cell(raw.cell_type, raw.source, json.loads(json.dumps(raw.metadata)), line, _exercise(raw)))
    _check_languages(cells, problems)
    titles = {lang: _check_sections(cells, lang, about, lines, problems) for lang in LANGUAGES}
    _check_anchors(cells, problems)
    _check_code(cells, problems)
    problems.raise_if_any()
    sections = [altered(each, title=Text(**{lang: titles[lang][each.id] for lang in LANGUAGES})) for each in about.sections]
    return Source(path, altered(about, sections=tuple(sections)), tuple(cells), notes)


def _header(path: Path, lines: list[str], about: Any, problems: _Problems) -> tuple[Chapter, dict[str, Text]]:
    """The chapter, its sections still without titles, and the notes of those that have one."""
    line = next((number for number, text in enumerate(lines, 1) if text.startswith("transformer_lite:")), 1)
    try:
        title, number, identity, listed = about["title"], about["number"], about["id"], about["sections"]
        right = set(about) == {"id", "number", "title", "sections"} and _both_languages(title) and type(number) is int
        right = right and WORDS.fullmatch(identity) and isinstance(listed, list) and listed
    except (KeyError, TypeError):
        right = False
    if not right:
        problems.add(line, "header")
        problems.raise_if_any()
    if path.stem.partition("_")[0] != f"{number:02d}":
        problems.add(line, "number", file=path.name, number=f"{number:02d}")
    sections, notes = [], {}
    for place, entry in enumerate(listed, 1):
        if not _is_section(entry):
            problems.add(_line_of_section(lines, entry), "section_entry", number=place)
            continue
        if any(entry["id"] == section.id for section in sections):
            problems.add(_line_of_section(lines, entry), "section_entry_twice", section=entry["id"])
        sections.append(Section(entry["id"], place, Text("", ""), entry.get("g"), entry.get("e")))
        if "note" in entry:
            notes[entry["id"]] = Text(**entry["note"])
    problems.raise_if_any()
    return Chapter(number, identity, Text(**title), tuple(sections), path.stem), notes


def _both_languages(text: Any) -> bool:
    return set(text) == set(LANGUAGES) and all(isinstance(each, str) and each.strip() for each in text.values())


def _is_section(entry: Any) -> bool:
    """Whether ``entry`` is ``{id: …, g: minutes, e: minutes, note: {ja: …, en: …}}`` with g or e or both, and perhaps a note."""
    try:
        minutes = [entry[reader] for reader in ("g", "e") if reader in entry]
        right = minutes and all(type(each) is int and each > 0 for each in minutes) and set(entry) <= {"id", "g", "e", "note"}
        return bool(right and WORDS.fullmatch(entry["id"]) and ("note" not in entry or _both_languages(entry["note"])))
    except (AttributeError, KeyError, TypeError):
        return False


def _line_of_section(lines: list[str], entry: Any) -> int:
    """The header's line that lists the section ``entry``, or else the line ``sections:``."""
    wanted = entry.get("id") if isinstance(entry, dict) else entry
    at = next((row for row, text in enumerate(lines) if text.strip().startswith("sections:")), 0)
    for row in range(at, len(lines)):
        if re.search(rf"\bid:\s*[\"']?{re.escape(str(wanted))}[\"']?\s*([,}}#]|$)", lines[row]):
            return row + 1
        if lines[row].strip() == "---":
            break
    return at + 1


def _first_line(lines: list[str], text: str, start: int) -> int:
    """The line (from 1) where a cell's text stands; the reader only knows the marker above it."""
    wanted = text.splitlines()
    for index in range(max(start - 1, 0), len(lines)):
        if wanted and lines[index : index + len(wanted)] == wanted:
            return index + 1
    return max(start, 1)


def _exercise(cell: Any) -> str | None:
    """The id in ``@lab.exercise("id")``, if the cell defines an exercise."""
    if cell.cell_type != "code":
        return None
    found = re.findall(r"""^@lab\.exercise\((["'])([\w-]+)\1""", cell.source, re.MULTILINE)
    return found[0][1] if found else None


def _check_languages(cells: list[Cell], problems: _Problems) -> None:
    """Every text cell says its language, and between two code cells both languages have as many."""
    group: list[Cell] = []
    for cell in [*cells, None]:
        if cell is not None and cell.kind != "code":
            if cell.kind != "markdown":
                problems.add(cell.line, "cell_kind", kind=cell.kind)
            elif cell.metadata.get("lang") not in LANGUAGES:
                problems.add(cell.line, "no_lang")
            else:
                group.append(cell)
            continue
        count = {lang: sum(text.metadata["lang"] == lang for text in group) for lang in LANGUAGES}
        if count["ja"] != count["en"]:
            problems.add(group[0].line, "one_sided", **count)
        group = []


def prose_lines(text: str) -> Iterator[tuple[int, str]]:
    """The rows (from 0) and lines of a text that are not inside a fence, where ``#`` and braces mean other things."""
    fence = ""
    for row, line in enumerate(text.splitlines()):
        mark = FENCE.match(line)
        if fence:
            # Only a fence of the same kind, at least as long and with nothing behind it, ends one.
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif mark:
            fence = mark[1]
        else:
            yield row, line


def headings(text: str) -> list[Heading]:
    """The headings in the text of a cell."""
    found = [(row, HEADING.match(line)) for row, line in prose_lines(text)]
    return [Heading(row, len(match[1]), match[2], match[3]) for row, match in found if match]


def _check_sections(cells: list[Cell], lang: str, about: Chapter, lines: list[str], problems: _Problems) -> dict[str, str]:
    """The titles of the sections in ``lang`` by id; they must be those of the header, in its order, and nothing made by hand."""
    places = {section.id: section.number for section in about.sections}
    titles: dict[str, str] = {}
    last = 0
    for cell in cells:
        if cell.metadata.get("lang") != lang:
            continue
        text = cell.text.splitlines()
        for heading in headings(cell.text):
            line, anchor = cell.line + heading.row, heading.anchor
            if heading.level == 1:
                problems.add(line, "title_by_hand")
            elif anchor is not None and not WORDS.fullmatch(anchor):
                problems.add(line, "anchor_form", anchor=anchor)
            elif heading.level == 2 and anchor is None:
                problems.add(line, "section_without_id")
            elif heading.level == 2 and anchor not in places:
                problems.add(line, "section_unknown", section=anchor)
            elif heading.level == 2:
                if places[anchor] < last:
                    problems.add(line, "section_order", section=anchor)
                last = max(last, places[anchor])
                titles.setdefault(anchor, heading.text)
                below = next((each for each in text[heading.row + 1 :] if each.strip()), "")
                if NUMBERED.match(heading.text) or BADGES.match(below):
                    problems.add(line, "section_by_hand")
        for row, line in prose_lines(cell.text):
            if "<a id=" in line:
                problems.add(cell.line + row, "anchor_by_hand")
            for name in REFERENCE.findall(line):
                if name not in places:
                    problems.add(cell.line + row, "reference", section=name, known=", ".join(places))
    for section in places:
        if section not in titles:
            problems.add(_line_of_section(lines, {"id": section}), "section_missing", section=section, lang=lang)
    return titles


def _check_anchors(cells: list[Cell], problems: _Problems) -> None:
    """An anchor stands once in each language; what is wrong with a section's own anchor has been said already."""
    seen: dict[str, dict[str, tuple[int, int]]] = {lang: {} for lang in LANGUAGES}
    for cell in cells:
        for heading in headings(cell.text) if cell.metadata.get("lang") in LANGUAGES else ():
            if heading.anchor is None:
                continue
            mine = seen[cell.metadata["lang"]]
            if heading.anchor in mine:
                problems.add(cell.line + heading.row, "anchor_twice", anchor=heading.anchor)
            mine.setdefault(heading.anchor, (cell.line + heading.row, heading.level))
    for lang, other in (LANGUAGES, LANGUAGES[::-1]):
        for anchor, (line, level) in seen[lang].items():
            if anchor not in seen[other] and level > 2:
                problems.add(line, "anchor_one_sided", anchor=anchor, lang=other)


def _check_code(cells: list[Cell], problems: _Problems) -> None:
    code = [cell for cell in cells if cell.kind == "code"]
    if not any(SETUP.search(cell.text) for cell in code):
        problems.add(1, "no_start")
    seen: set[str] = set()
    known = set(dir(builtins))
    for cell in code:
        try:
            regions, comments, lined = _regions(cell.text), _language_comments(cell.text), _language_lines(cell.text)
            trees = [_parsed(cell.text, lang) for lang in LANGUAGES]
        except (SyntaxError, tokenize.TokenError) as trouble:
            row, reason = _syntax_error(cell.text, trouble)
            problems.add(cell.line + row - 1, "not_python", reason=reason)
            continue
        except _Unbalanced as trouble:
            problems.add(cell.line + trouble.row - 1, "unbalanced")
            continue
        count = {lang: sum(part[0] == lang for parts in comments.values() for part in parts) for lang in LANGUAGES}
        if count["ja"] != count["en"]:
            problems.add(cell.line + min(comments)[0] - 1, "one_sided_comment", **count)
        if lined and set(lined.values()) != set(LANGUAGES):
            problems.add(cell.line + min(lined) - 1, "one_sided_line", lang=next(iter(lined.values())))
        if not cell.hidden:
            _check_width(cell, problems)
        if cell.exercise:
            if cell.exercise in seen:
                problems.add(cell.line, "exercise_twice", exercise=cell.exercise)
            seen.add(cell.exercise)
            if len(regions) != 1:
                problems.add(cell.line, "no_solution", exercise=cell.exercise)
            for name in sorted(set().union(*(_free_names(in_language(cell.text, lang)) for lang in LANGUAGES)) - known):
                problems.add(cell.line, "free_name", exercise=cell.exercise, name=name)
        elif regions:
            problems.add(cell.line + regions[0][0] - 1, "solution_without_exercise")
        known |= set().union(*map(_public_names, trees))


def _parsed(code: str, lang: str) -> ast.Module:
    """``code`` as one language has it: a line for the other may give the same argument again, which is no Python together."""
    rows = _rows_in_language(code, lang)
    try:
        return ast.parse("\n".join(line for _, line in rows))
    except SyntaxError as trouble:
        if trouble.lineno and rows:
            trouble.lineno = rows[min(trouble.lineno, len(rows)) - 1][0]
        raise


def _syntax_error(code: str, trouble: SyntaxError | tokenize.TokenError) -> tuple[int, str]:
    """Row (from 1) and reason of what makes ``code`` no Python. Where the tokenizer met the end, the parser knows why."""
    if isinstance(trouble, tokenize.TokenError):
        try:
            ast.parse(code)
        except SyntaxError as better:
            trouble = better
    return getattr(trouble, "lineno", None) or 1, trouble.args[0]


def _check_width(cell: Cell, problems: _Problems) -> None:
    """No line that a learner sees may have to be scrolled to, in either language."""
    columns: dict[int, int] = {}
    for row, line in (each for lang in LANGUAGES for each in _rows_in_language(cell.text, lang)):
        columns[row] = max(width(line), columns.get(row, 0))
    for row, wide in sorted(columns.items()):
        if wide > WIDEST:
            problems.add(cell.line + row - 1, "wide", columns=wide, most=WIDEST)


def _public_names(tree: ast.Module) -> set[str]:
    """Names that a later exercise may use: what a cell imports or defines, but not its data."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            names |= {(alias.asname or alias.name).partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


def _free_names(code: str) -> set[str]:
    """Global names that the functions of an exercise cell use and the cell does not define."""
    top = symtable.symtable(code, "exercise", "exec")
    own = {symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()}
    names: set[str] = set()
    pending = list(top.get_children())
    while pending:
        table = pending.pop()
        names |= {symbol.get_name() for symbol in table.get_symbols() if symbol.is_global() and symbol.is_referenced()}
        pending += table.get_children()
    return names - own


# --- one language, blank or solved --------------------------------------------------------------------------------------


class _Unbalanced(Exception):
    """A solution's marker without its partner, in ``row`` (from 1) of the cell."""

    def __init__(self, row: int):
        self.row = row
        super().__init__(row)


def _comments(code: str) -> Iterator[tokenize.TokenInfo]:
    """The comments of ``code``. Only a tokenizer tells them from strings and docstrings that look the same."""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            yield token


def _regions(code: str) -> list[tuple[int, int]]:
    """Rows (from 1) of the markers of each solution in ``code``."""
    regions: list[tuple[int, int]] = []
    begun = None
    for token in _comments(code):
        marker, row = token.string.strip(), token.start[0]
        if marker not in (BEGIN, END):
            continue
        if (marker == BEGIN) != (begun is None):
            raise _Unbalanced(row)
        if begun is None:
            begun = row
        else:
            regions.append((begun, row))
            begun = None
    if begun is not None:
        raise _Unbalanced(begun)
    return regions


def without_solution(code: str) -> str:
    """``code`` with every solution replaced by ``...`` at the same indentation."""
    lines = code.splitlines()
    for first, last in reversed(_regions(code)):
        indentation = lines[first - 1][: len(lines[first - 1]) - len(lines[first - 1].lstrip())]
        lines[first - 1 : last] = [indentation + "..."]
    return "\n".join(lines)


def without_markers(code: str) -> str:
    """``code`` with its solutions, but without the comments that mark them."""
    lines = code.splitlines()
    for first, last in reversed(_regions(code)):
        del lines[last - 1], lines[first - 1]
    return "\n".join(lines)


def _language_comments(code: str) -> dict[tuple[int, int], list[tuple[str, str]]]:
    """Position of each comment that is for one language -> its parts ``(lang, text)``; ``# ja: 犬  # en: dog`` has two."""
    found = {}
    for token in _comments(code):
        if IN_ONE_LANGUAGE.match(token.string):
            pieces = IN_ONE_LANGUAGE.split(token.string)[1:]
            found[token.start] = [(lang, text.strip()) for lang, text in zip(pieces[::2], pieces[1::2], strict=True)]
    return found


def _language_lines(code: str) -> dict[int, str]:
    """Row (from 1) of each line of code that is for one language -> that language: ``tokens = ["犬"]  # ja``."""
    lines = code.splitlines()
    found = {}
    for token in _comments(code):
        mark = LINE_IN_ONE_LANGUAGE.search(token.string)
        row, column = token.start
        if mark and lines[row - 1][:column].strip():
            found[row] = mark[1]
    return found


def _rows_in_language(code: str, lang: str) -> list[tuple[int, str]]:
    """The lines of ``code`` that ``lang`` keeps, as it sees them, each with its row (from 1) in ``code``."""
    lines: list[str | None] = list(code.splitlines())
    for (row, column), parts in _language_comments(code).items():
        before = lines[row - 1][:column]
        kept = " ".join(text for part, text in parts if part == lang)
        if kept:
            lines[row - 1] = f"{before}# {kept}"
        else:
            lines[row - 1] = before.rstrip() or None
    for row, language in _language_lines(code).items():
        lines[row - 1] = LINE_IN_ONE_LANGUAGE.sub("", lines[row - 1]).rstrip() if language == lang else None
    return [(row, line) for row, line in enumerate(lines, 1) if line is not None]


def in_language(code: str, lang: str) -> str:
    """``code`` with the lines and comments of ``lang`` (without what marks them) and none of the other language's."""
    return "\n".join(line for _, line in _rows_in_language(code, lang))


def text_in_language(source: Source, cell: Cell, lang: str) -> str:
    """The text of a cell with everything that the builder writes: anchors, numbers, badges, minutes, references."""
    lines = cell.text.splitlines()
    sections = {section.id: section for section in source.chapter.sections}

    def number(match: re.Match[str]) -> str:
        return message("course.page.reference", lang, number=sections[match[1]].number)

    for row, line in prose_lines(cell.text):
        lines[row] = REFERENCE.sub(number, line)
    for heading in headings(cell.text):
        if heading.anchor is None:
            continue
        marks, text = "#" * heading.level, REFERENCE.sub(number, heading.text)
        if heading.level == 2:
            section = sections[heading.anchor]
            text = f"{section.number}. {text}\n\n{_reading(source, section, lang)}"
        lines[heading.row] = f'<a id="{heading.anchor}"></a>\n\n{marks} {text}'
    return "\n".join(lines)


def _reading(source: Source, section: Section, lang: str) -> str:
    """Who reads a section and how long it takes them, as the line below its heading says it."""
    if section.g is None or section.e is None:
        reader, count = ("E", section.e) if section.g is None else ("G", section.g)
        line = message("course.page.one", lang, reader=reader, time=_minutes(count, lang))
    elif section.g == section.e:
        line = message("course.page.same", lang, time=_minutes(section.g, lang))
    else:
        line = message("course.page.both", lang, g=_minutes(section.g, lang), e=_minutes(section.e, lang))
    if section.id in source.notes:
        line += message("course.page.note", lang, note=source.notes[section.id](lang))
    onward = next((each for each in source.chapter.sections[section.number :] if each.g is not None), None)
    if section.g is None and onward is not None:
        line += message("course.page.skip", lang, number=onward.number)
    return line


def _minutes(count: int, lang: str) -> str:
    return message("course.page.minute" if count == 1 else "course.page.minutes", lang, count=count)


def _opening(about: Chapter, lang: str) -> str:
    """The title of a chapter and the paragraph that stands at the start of every one."""
    title = message("course.page.title", lang, number=about.number, title=about.title(lang))
    key = "time_same" if about.g == about.e else "time"
    time = message(f"course.page.{key}", lang, g=_minutes(about.g, lang), e=_minutes(about.e, lang))
    return f"# {title}\n\n{time}{message('course.page.standing', lang)}\n\n"


def _render(source: Source, lang: str, solution: bool) -> Any:
    nbformat = _tool("nbformat")
    used: dict[str, int] = {}
    opening = _opening(source.chapter, lang)
    cells = []
    for cell in source.cells:
        metadata = {key: value for key, value in cell.metadata.items() if key != "lang"}
        if cell.kind == "markdown":
            if cell.metadata["lang"] != lang:
                continue
            text = opening + text_in_language(source, cell, lang)
            opening = ""
            # The id comes from what the author wrote, so that a section put in before it, which changes numbers, keeps it.
            cells.append(nbformat.v4.new_markdown_cell(text, id=_identity(cell, cell.text, used), metadata=metadata))
            continue
        blank = SETUP.sub(f'lab.start("{lang}")', in_language(without_solution(cell.text), lang))
        text = in_language(without_markers(cell.text), lang) if solution and cell.exercise else blank
        cells.append(nbformat.v4.new_code_cell(text, id=_identity(cell, blank, used), metadata=metadata))
    about = source.chapter
    ours = {
        "chapter": about.id,
        "lang": lang,
        "number": about.number,
        "sections": [_stored(section) for section in about.sections],
        "title": {"en": about.title.en, "ja": about.title.ja},
    }
    metadata = {"kernelspec": dict(KERNEL), "language_info": {"name": "python"}, "transformer_lite": ours}
    notebook = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    return notebook


def _stored(section: Section) -> dict[str, Any]:
    """A section as the built notebook's metadata hold it."""
    minutes = {reader: count for reader, count in (("e", section.e), ("g", section.g)) if count is not None}
    return {**minutes, "id": section.id, "title": {"en": section.title.en, "ja": section.title.ja}}


def _identity(cell: Cell, text: str, used: dict[str, int]) -> str:
    """An id from what the cell says, so that a cell put in before it changes nothing."""
    name = f"ex-{cell.exercise}" if cell.exercise else hashlib.sha256(f"{cell.kind}\n{text}".encode()).hexdigest()[:12]
    used[name] = used.get(name, 0) + 1
    return name if used[name] == 1 else f"{name}-{used[name]}"


def blank(source: Source, lang: str) -> Any:
    """The notebook that a learner gets: exercises hold ``...``. Not executed."""
    return _render(source, lang, solution=False)


def solved(source: Source | Path, lang: str) -> Any:
    """The same notebook with the solutions in, for tests; it has the cell ids of the blank one. Not executed."""
    return _render(source if isinstance(source, Source) else read(source), lang, solution=True)


# --- running, writing, comparing ----------------------------------------------------------------------------------------


def _folder(notebooks: Path | None) -> Path:
    """The folder that holds ``source/``, ``ja/`` and ``en/``."""
    if notebooks is not None:
        return notebooks
    source = content.source_dir()
    if source is None:
        raise CourseError(message("course.build.no_sources"))
    return source.parent


def _sources(notebooks: Path, names: Iterable[str | int] | None = None) -> list[Source]:
    """The sources of the named chapters (all by default), read and checked; what is wrong in any is raised at once.

    A chapter that is named is built although another one, which somebody may be writing just now, has mistakes.
    """
    found, messages = [], []
    for path in sorted((notebooks / "source").glob("*.md")):
        try:
            found.append(read(path))
        except BuildError as trouble:
            messages += trouble.messages
    for attribute in ("id", "number"):
        values = [getattr(source.chapter, attribute) for source in found]
        for source in found:
            value = getattr(source.chapter, attribute)
            if values.count(value) > 1:
                messages.append(f"{_shown(source.path)}:1: {message('course.build.chapter_twice', value=value)}")
    if not found and not messages:
        raise BuildError([message("course.build.nothing", folder=_shown(notebooks / "source"))])
    if names is None:
        if messages:
            raise BuildError(messages)
        return found
    listed = tuple(source.chapter for source in found)
    try:
        wanted = {chapter(name, listed).file for name in names}
    except UnknownChapter:
        if messages:  # it may be the one that could not be read
            raise BuildError(messages) from None
        raise
    return [source for source in found if source.chapter.file in wanted]


@contextmanager
def _quiet_surroundings() -> Iterator[tuple[str, dict[str, str]]]:
    """A working folder and environment in which a chapter draws static pictures and leaves no trace in anyone's journal."""
    with tempfile.TemporaryDirectory(prefix="transformer_lite_build_") as folder:
        work = Path(folder) / "work"
        work.mkdir()
        yield (
            str(work),
            {
                **os.environ,
                "TRANSFORMER_LITE_STATIC": "1",
                "TRANSFORMER_LITE_RECORD": "0",
                "TRANSFORMER_LITE_HOME": str(Path(folder) / "home"),
                "PYTHONHASHSEED": "0",
            },
        )


def execute(notebook: Any, where: Callable[[int], str]) -> None:
    """Run ``notebook`` in place, with static pictures. ``where(index)`` names a cell in errors."""
    nbclient = _tool("nbclient")
    exceptions = _tool("nbclient.exceptions")
    running = [0]
    with _quiet_surroundings() as (folder, environment):
        client = nbclient.NotebookClient(
            notebook,
            kernel_name=KERNEL["name"],
            timeout=TIMEOUT,
            record_timing=False,
            coalesce_streams=True,
            # ipykernel warns about every kernel that listens on TCP; a build is not the place to say it.
            extra_arguments=["--log-level=40"],
            resources={"metadata": {"path": folder}},
            on_cell_start=lambda cell, cell_index: running.__setitem__(0, cell_index),
        )
        try:
            client.execute(env=environment)
        except exceptions.CellExecutionError as trouble:
            reason = f"{trouble.ename}: {trouble.evalue}"
            raise BuildError([f"{where(running[0])}: {message('course.build.raised', reason=reason)}"]) from trouble
        except (exceptions.CellTimeoutError, exceptions.DeadKernelError) as trouble:
            raise BuildError([f"{where(running[0])}: {message('course.build.stopped', seconds=TIMEOUT)}"]) from trouble
    notebook.metadata.pop("widgets", None)
    # The kernel describes its exact Python version here; that would make every build differ.
    notebook.metadata["language_info"] = {"name": "python"}
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)


def _output_problems(notebook: Any) -> list[tuple[int, str]]:
    """What may not be stored in a built notebook: ``(index of the cell, message key)``."""
    found = []
    for index, cell in enumerate(notebook["cells"]):
        for output in cell.get("outputs", ()):
            if WIDGET in output.get("data", {}):
                found.append((index, "widget"))
            if output.get("output_type") == "error":
                found.append((index, "error_output"))
    return found


def build(
    chapters: Iterable[str | int] | None = None,
    execute: bool = True,
    *,
    notebooks: Path | None = None,
    progress: Callable[[Path], None] = lambda path: None,
) -> list[Path]:
    """Build the notebooks of ``chapters`` (all by default) in both languages and return those whose bytes changed.

    Args:
        chapters: ids, numbers or file names; unknown ones raise `UnknownChapter` with the nearest names.
        execute: run them. If false, a cell that says the same as before keeps its stored outputs, others have none.
        notebooks: the folder that holds ``source/``, ``ja/`` and ``en/``; the course's own by default.
        progress: called with each notebook's path before it is built.

    Raises `BuildError` with everything that is wrong as ``file:line: message``; what was there of that chapter stays then.
    """
    folder = _folder(notebooks)
    sources = _sources(folder, chapters)
    paths = {(source, lang): folder / lang / f"{source.chapter.file}.ipynb" for source in sources for lang in LANGUAGES}
    before = {path: path.read_bytes() if path.is_file() else None for path in paths.values()}
    unfinished = dict(before)
    try:
        # A chapter that runs asks which chapters there are, and these very notebooks say so. So all are put there first, not yet
        # run; what does not come to its end is taken back below.
        for (source, lang), path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            draft = blank(source, lang)
            _keep_outputs(draft, path)
            replace(path, _bytes(draft))
        for source in sources:
            built = {}
            for lang in LANGUAGES:
                path = paths[source, lang]
                progress(path)
                built[path] = _finished(source, lang, path, execute)
            for path, data in built.items():
                replace(path, data)
                del unfinished[path]
    finally:
        for path, data in unfinished.items():
            if data is None:
                path.unlink(missing_ok=True)
            else:
                replace(path, data)
    return [path for path in paths.values() if path.read_bytes() != before[path]]


def _finished(source: Source, lang: str, path: Path, run: bool) -> bytes:
    notebook = blank(source, lang)
    lines = [cell.line for cell in source.cells if cell.metadata.get("lang") in (None, lang)]

    def where(index: int) -> str:
        return f"{_shown(source.path)}:{lines[index]}"

    if run:
        execute(notebook, where)
    else:
        _keep_outputs(notebook, path)
    problems = [f"{where(index)}: {message(f'course.build.{key}')}" for index, key in _output_problems(notebook)]
    data = _bytes(notebook)
    if len(data) > LARGEST:
        problems.append(f"{where(0)}: {message('course.build.too_large', kilobytes=len(data) // 1000, lang=lang)}")
    if problems:
        raise BuildError(problems)
    return data


def _bytes(notebook: Any) -> bytes:
    return (_tool("nbformat").writes(notebook).rstrip("\n") + "\n").encode("utf-8")


def _keep_outputs(notebook: Any, path: Path) -> None:
    """Give the cells that say the same as in ``path`` the outputs that are stored there."""
    stored = _load(path) if path.is_file() else None
    before = {cell["id"]: cell for cell in stored["cells"] if cell["cell_type"] == "code"} if stored else {}
    for cell in notebook.cells:
        same = before.get(cell["id"])
        if cell["cell_type"] == "code" and same is not None and same["source"] == cell["source"]:
            cell["outputs"], cell["execution_count"] = same["outputs"], same["execution_count"]


def _load(path: Path) -> Any:
    """A stored notebook, or None if the file does not hold one."""
    try:
        return _tool("nbformat").reads(path.read_text("utf-8"), as_version=4)
    except CourseError:
        raise
    except Exception:  # nbformat raises different things for each way of being no notebook
        return None


def _comparable(notebook: Any) -> tuple[Any, list[Any]]:
    """What must agree: metadata and, cell by cell, id, kind, text and metadata; never outputs."""
    cells = [(cell.get("id"), cell["cell_type"], cell["source"], dict(cell["metadata"])) for cell in notebook["cells"]]
    return json.loads(json.dumps(notebook["metadata"])), cells


def stale(notebooks: Path | None = None) -> list[str]:
    """What the built notebooks lack against their sources, as ``file:line: message`` or ``file: message``; [] if nothing.

    Compares sources, ids and metadata, never outputs. Finding no source, or an error in one, is a problem too.
    """
    folder = _folder(notebooks)
    try:
        sources = _sources(folder)
    except BuildError as trouble:
        return trouble.messages
    problems = []
    for lang in LANGUAGES:
        expected = {f"{source.chapter.file}.ipynb": source for source in sources}
        for path in sorted((folder / lang).glob("*.ipynb")):
            if path.name not in expected:
                problems.append(f"{_shown(path)}: {message('course.build.without_source')}")
        for name, source in expected.items():
            difference = _difference(folder / lang / name, source, lang)
            problems += [f"{_shown(folder / lang / name)}: {difference}"] if difference else []
    return problems


def _difference(path: Path, source: Source, lang: str) -> str | None:
    """Why the notebook at ``path`` is not what ``source`` would give, or None."""
    if not path.is_file():
        return message("course.build.missing")
    stored = _load(path)
    if stored is None:
        return message("course.build.no_notebook")
    for index, key in _output_problems(stored):
        return f"{message('course.build.cell', number=index + 1)} {message(f'course.build.{key}')}"
    if path.stat().st_size > LARGEST:
        return message("course.build.too_large", kilobytes=path.stat().st_size // 1000, lang=lang)
    (metadata, cells), (wanted_metadata, wanted) = _comparable(stored), _comparable(blank(source, lang))
    if cells == wanted and metadata == wanted_metadata:
        return None
    for index, (cell, right) in enumerate(zip(cells, wanted, strict=False)):
        if cell != right:
            return message("course.build.stale_cell", number=index + 1)
    return message("course.build.stale")


def write_solved(folder: Path, lang: str, *, notebooks: Path | None = None) -> list[Path]:
    """Write every chapter's solved notebook in ``lang`` into ``folder``, not executed, and return the paths."""
    paths = []
    for source in _sources(_folder(notebooks)):
        path = folder / f"{source.chapter.file}.ipynb"
        replace(path, _bytes(solved(source, lang)))
        paths.append(path)
    return paths


__all__ = [
    "BuildError",
    "Source",
    "UnknownChapter",
    "blank",
    "build",
    "execute",
    "headings",
    "in_language",
    "read",
    "solved",
    "stale",
    "without_solution",
    "write_solved",
]
