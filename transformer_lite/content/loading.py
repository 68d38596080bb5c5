"""Reads the YAML of ``quizzes/``: every error at once as ``file:line: message``; at run time from a compiled form.

The compiled form is JSON with the file and line of each item, kept in the cache folder under a hash of the YAML files, so that it
can never be older than they are.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Collection, Iterable, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_lite import __version__
from transformer_lite.content.places import quizzes_dir

if TYPE_CHECKING:
    from transformer_lite.content import schema

LARGEST_FILE = 2_000_000  # bytes


class ContentError(ValueError):
    """The course's YAML is not as it should be. ``messages`` holds every ``file:line: message``."""

    def __init__(self, messages: Iterable[str]):
        self.messages = list(messages)
        super().__init__("\n".join(self.messages))


class Library:
    """All questions, predictions, traps and terms, checked, and the inventory of what is taught where."""

    def __init__(
        self,
        banks: list[schema.Bank],
        traps: list[schema.Trap],
        terms: list[schema.Term],
        rows: list[schema.InventoryRow],
    ):
        self.banks = {bank.chapter: bank for bank in banks}
        self.questions = {question.id: question for bank in banks for question in bank.questions}
        self.predictions = {prediction.id: prediction for bank in banks for prediction in bank.predictions}
        self.traps = {trap.key: trap for trap in traps}
        self.terms = {term.id: term for term in terms}
        self.inventory = {row.row: row for row in rows}


def load(folder: Path) -> Library:
    """Read and check every YAML file of ``folder``; raise `ContentError` with all that is wrong in any of them."""
    return Library(*_validated(_read(_found(folder))))


def bank(path: Path) -> schema.Bank:
    """Read and check one file of questions that is none of the course's; its traps are the course's.

    Raises:
        ContentError: with all that is wrong in it.
    """
    (checked,), *_ = _validated(_read([path]), models={}, known=set(library().traps))
    return checked


@cache
def library() -> Library:
    """The course's own library, from the compiled form where it is fresh."""
    folder = quizzes_dir()
    digest = hashlib.sha256(__version__.encode())
    digest.update((Path(__file__).parent / "schema.py").read_bytes())
    try:
        for path in _files(folder):
            digest.update(path.name.encode() + b"\0" + path.read_bytes())
    except OSError:  # one cannot be read: which one, and all else that is wrong, is said by
        return load(folder)
    compiled = cache_dir() / f"library-{digest.hexdigest()[:24]}.json"
    try:
        return Library(*_validated(json.loads(compiled.read_text("utf-8"))))
    except (OSError, ValueError, KeyError, TypeError):
        raw = _read(_found(folder))
        result = Library(*_validated(raw))
        _store(compiled, raw)
        return result


def cache_dir() -> Path:
    """Where compiled files go: ``cache`` in ``TRANSFORMER_LITE_HOME``, else the user's cache folder."""
    home = os.environ.get("TRANSFORMER_LITE_HOME")
    if home:
        return Path(home) / "cache"
    import platformdirs

    return Path(platformdirs.user_cache_dir("transformer_lite", appauthor=False))


def _store(path: Path, raw: list[dict[str, Any]]) -> None:
    """Write atomically; a cache that cannot be written is only slower."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, suffix=".tmp")
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            json.dump(raw, file, ensure_ascii=False)
        os.replace(name, path)
        for old in path.parent.glob("library-*.json"):
            if old != path:
                old.unlink(missing_ok=True)
    except OSError:
        pass


def _files(folder: Path) -> list[Path]:
    return sorted(path for path in folder.glob("*.yaml") if path.stem not in ("syllabus", "handouts"))  # see `exams`


def _found(folder: Path) -> list[Path]:
    paths = _files(folder)
    if not paths:
        raise ContentError([f"{folder}:1: no YAML file found; the folder must hold traps.yaml and the chapters' questions"])
    return paths


def _read(paths: list[Path]) -> list[dict[str, Any]]:
    """Every file as plain data: ``{"file", "data", "lines"}``, ``lines`` mapping a path in the data to its line."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    result, problems = [], []
    for path in paths:
        try:
            if path.stat().st_size > LARGEST_FILE:
                problems.append(f"{path.name}:1: larger than {LARGEST_FILE:,} bytes")
                continue
            text = path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError as error:
            problems.append(f"{path.name}:1: not UTF-8 (byte {error.start})")
            continue
        except OSError as error:
            problems.append(f"{path.name}:1: cannot be read ({error.strerror})")
            continue
        try:
            refused = _refused(text, path.name)
            if refused:  # loading them could fill the memory
                problems += refused
                continue
            tree = YAML(typ="rt").load(text)
        except YAMLError as error:
            mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
            what = getattr(error, "problem", None) or str(error).splitlines()[0]
            problems.append(f"{path.name}:{mark.line + 1 if mark else 1}: {what}")
            continue
        except RecursionError:
            problems.append(f"{path.name}:1: nested too deeply")
            continue
        if not isinstance(tree, dict):
            problems.append(f"{path.name}:1: must be a mapping that starts with `schema_version: 1`")
            continue
        lines: dict[str, int] = {}
        result.append({"file": path.name, "data": _plain(tree, "", lines), "lines": lines})
    if problems:
        # One bad file must not hide what is wrong in the good ones.
        try:
            _validated(result)
        except ContentError as error:
            problems += error.messages
        raise ContentError(problems)
    return result


def _refused(text: str, name: str) -> list[str]:
    """What YAML can do and a bank must not: aliases and tags."""
    from ruamel.yaml import YAML
    from ruamel.yaml.events import AliasEvent

    problems = []
    for event in YAML(typ="safe", pure=True).parse(text):
        place = f"{name}:{event.start_mark.line + 1}"
        if isinstance(event, AliasEvent) or getattr(event, "anchor", None):
            problems.append(f"{place}: anchors and aliases are not allowed; write the text out")
        if getattr(event, "tag", None) is not None:
            problems.append(f"{place}: tags (!...) are not allowed; put a text that starts with ! in quotes")
    return problems


def _plain(node: Any, path: str, lines: dict[str, int]) -> Any:
    """ruamel's tree as plain data, remembering the line of each key and item."""
    if isinstance(node, dict):
        for key in node:
            line = node.lc.value(key)[0] if isinstance(node[key], dict | list) else node.lc.key(key)[0]
            lines[f"{path}.{key}"] = min(line, node.lc.key(key)[0]) + 1
        return {str(key): _plain(value, f"{path}.{key}", lines) for key, value in node.items()}
    if isinstance(node, list):
        for index in range(len(node)):
            lines[f"{path}.{index}"] = node.lc.item(index)[0] + 1
        return [_plain(value, f"{path}.{index}", lines) for index, value in enumerate(node)]
    if isinstance(node, bool) or node is None:
        return node
    for kind in (int, float, str):
        if isinstance(node, kind):
            return kind(node)
    return node


def _validated(
    raw: list[dict[str, Any]], models: Mapping[str, str] | None = None, known: Collection[str] = ()
) -> tuple[list[schema.Bank], list[schema.Trap], list[schema.Term], list[schema.InventoryRow]]:
    """Check what was read. ``models``: file name -> model, the course's if None; ``known``: traps beside those of the files."""
    from pydantic import ValidationError

    from transformer_lite.content import schema

    banks: list[schema.Bank] = []
    traps: list[schema.Trap] = []
    terms: list[schema.Term] = []
    rows: list[schema.InventoryRow] = []
    problems: list[str] = []
    places: dict[str, str] = {}

    for item in raw:
        file, data, lines = item["file"], dict(item["data"]), item["lines"]
        model = (_MODELS if models is None else models).get(file, "Bank")
        for group in ("questions", "predictions", "traps"):
            if isinstance(data.get(group), list):
                data[group] = [
                    _placed(entry, group, index, file, lines, data.get("chapter")) for index, entry in enumerate(data[group])
                ]
        try:
            checked = getattr(schema, model).model_validate(_floats(data))
        except ValidationError as error:
            problems += [_message(file, lines, detail) for detail in error.errors()]
            continue
        if isinstance(checked, schema.Bank):
            banks.append(checked)
            entries = [(entry.id, entry.line) for entry in [*checked.questions, *checked.predictions]]
        elif isinstance(checked, schema.TrapFile):
            traps += checked.traps
            entries = [(entry.key, entry.line_number) for entry in checked.traps]
        elif isinstance(checked, schema.Glossary):
            terms += checked.terms
            entries = [(f"term {term.id}", lines.get(f".terms.{i}", 1)) for i, term in enumerate(checked.terms)]
        else:
            rows += checked.rows
            entries = [(f"row {row.row}", lines.get(f".rows.{i}", 1)) for i, row in enumerate(checked.rows)]
        for name, line in entries:
            if name in places:
                problems.append(f"{file}:{line}: {name} is already used at {places[name]}")
            places[name] = f"{file}:{line}"

    known = {trap.key for trap in traps} | set(known)
    for bank in banks if known else ():  # with traps.yaml broken, every question would add its own line to the same problem
        for question in bank.questions:
            for key in sorted(traps_of(question) - known):
                problems.append(f"{question.file}:{question.line}: {question.id}: there is no trap {key} in traps.yaml")
    if problems:
        raise ContentError(problems)
    return banks, traps, terms, rows


def traps_of(question: schema.Question) -> set[str]:
    """The keys of all traps that a wrong answer to ``question`` can show."""
    keys = {option.trap for option in getattr(question, "options", [])}
    keys |= {near.trap for near in getattr(question, "near", [])}
    keys |= {key for row in getattr(question, "rows", []) for key in row.traps.values()}
    keys.add(getattr(question, "trap", None))
    return {key for key in keys if key}


def _placed(entry: Any, group: str, index: int, file: str, lines: dict[str, int], chapter: Any) -> Any:
    if not isinstance(entry, dict):
        return entry
    line = lines.get(f".{group}.{index}", 1)
    if group == "traps":
        return {**entry, "file": file, "line_number": line}
    return {**entry, "file": file, "line": line, "chapter": chapter if isinstance(chapter, str) else ""}


_MODELS = {"traps.yaml": "TrapFile", "glossary.yaml": "Glossary", "inventory.yaml": "Inventory"}  # any other file is a bank
_FLOAT_FIELDS = {"answer", "tolerance", "value"}


def _floats(node: Any, key: str = "") -> Any:
    """Whole numbers written where a float is meant (`answer: 4`) become floats; pydantic is strict about the rest."""
    if isinstance(node, dict):
        return {name: _floats(value, name) for name, value in node.items()}
    if isinstance(node, list):
        return [_floats(value, key) for value in node]
    if key not in _FLOAT_FIELDS or not isinstance(node, int) or isinstance(node, bool):
        return node
    try:
        return float(node)
    except OverflowError:
        return math.inf


def _message(file: str, lines: dict[str, int], detail: Any) -> str:
    """One pydantic error as ``file:line: place: what``, with the line of the nearest thing that stands in the file."""
    kinds = {"single", "multiple", "numeric", "ordering", "matching", "recall"}
    location = [part for i, part in enumerate(detail["loc"]) if not (part in kinds and i == 2)]
    path = ""
    line = 1
    for part in location:
        path += f".{part}"
        line = lines.get(path, line)
    place = ".".join(str(part) for part in location)
    what = detail["msg"].removeprefix("Value error, ")
    if detail["type"] == "extra_forbidden":
        what = "there is no such key"
    return f"{file}:{line}: {place}: {what}"
