"""What students get of questions: `questions.json`, and how it looks where no widget can be shown.

Its models are strict, so that nothing else than what is listed here can be in the file, and nothing else is believed of it.
"""

from __future__ import annotations

import html
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, ValidationError, model_validator

from transformer_lite.classroom.answers import SCHEMA, written
from transformer_lite.language import message
from transformer_lite.quiz import grading
from transformer_lite.quiz.shuffling import LETTERS
from transformer_lite.quiz.text import Static, safe

LARGEST_FILE = 2_000_000  # bytes
Words = Annotated[str, StringConstraints(min_length=1)]
Letter = Literal["A", "B", "C", "D", "E", "F", "G", "H"]


class SheetUnreadable(Exception):
    """There is no sheet of questions, or it is not as it was handed out. The text says so, and how to mend it."""


class _Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Part(_Model):
    """An option, step or choice."""

    letter: Letter
    text: Words


class Line(_Model):
    """A row of a matching question."""

    number: Annotated[str, StringConstraints(pattern=r"^[1-8]$")]
    text: Words


class Asked(_Model):
    """One question as it is asked, in one language; what is right is not in it."""

    id: Annotated[str, StringConstraints(min_length=1, max_length=100)]
    kind: Literal["single", "multiple", "numeric", "ordering", "matching"]
    stem: Words
    code: str = ""
    options: list[Part] = []
    rows: list[Line] = []
    unit: str = ""

    @model_validator(mode="after")
    def _complete(self) -> Asked:
        letters, numbers = self.letters, [row.number for row in self.rows]
        if "".join(letters) != LETTERS[: len(letters)] or numbers != [str(place) for place in range(1, len(numbers) + 1)]:
            raise ValueError("letters and numbers must be in order")
        if (self.kind == "numeric") == bool(letters) or (self.kind == "matching") != bool(numbers):
            raise ValueError("its parts are missing")
        return self

    @property
    def letters(self) -> tuple[str, ...]:
        return tuple(option.letter for option in self.options)

    def read(self, answer: object) -> Any:
        """``answer`` by letters and numbers: "B", ["A", "C"], {"1": "B"}, or a number. Raises `grading.InvalidAnswer`."""
        return grading.read(question_like(self.kind, self.letters, [row.number for row in self.rows], [self.unit]), answer,
                            order=self.letters)  # fmt: skip


class Sheet(_Model):
    """The questions of one assignment in one language."""

    schema_version: Literal[1] = Field(alias="schema")
    lang: Literal["ja", "en"]
    questions: list[Asked] = Field(min_length=1)

    @model_validator(mode="after")
    def _distinct(self) -> Sheet:
        if len({question.id for question in self.questions}) != len(self.questions):
            raise ValueError("ids must differ")
        return self


def question_like(kind: str, letters: tuple[str, ...], rows: list[str], units: list[str]) -> Any:
    """What `grading` needs to know of a question to read an answer, with the letters themselves for keys."""
    unit = SimpleNamespace(ja=units[0], en=units[-1]) if any(units) else None
    parts = [SimpleNamespace(key=letter, correct=False, trap=None, why=None) for letter in letters]
    lines = [SimpleNamespace(key=row, choice=None, traps={}, why=None) for row in rows]
    return SimpleNamespace(kind=kind, options=parts, steps=parts, choices=parts, rows=lines, unit=unit)


def read(path: Path | str) -> Sheet:
    """The questions handed out in ``path``. Raises `SheetUnreadable`."""
    try:
        with Path(path).open("rb") as file:
            data = file.read(LARGEST_FILE + 1)
    except FileNotFoundError:
        raise SheetUnreadable(message("classroom.questions.no_sheet", file=path, folder=Path.cwd())) from None
    except OSError as trouble:
        reason = trouble.strerror or type(trouble).__name__
        raise SheetUnreadable(message("classroom.questions.sheet_closed", file=path, reason=reason)) from None
    try:
        if len(data) > LARGEST_FILE:
            raise ValueError("too large")
        return Sheet.model_validate(json.loads(data))
    except (ValidationError, ValueError, RecursionError):
        raise SheetUnreadable(message("classroom.questions.sheet_changed", file=path)) from None


# ----------------------------------------------------------------------------------------------------------- without widgets


def plain_form(sheet: Sheet, answers: Path) -> Static:
    """The questions as text and as escaped HTML, with what is answered already and how to write the file of answers by hand."""
    said, _ = written(answers)
    about = [_described(place, asked, said.get(asked.id), sheet) for place, asked in enumerate(sheet.questions, 1)]
    count = sum(done for *_, done in about)
    top = message("classroom.questions.count", sheet.lang, total=len(about), answered=count)
    how = message("classroom.questions.by_hand", sheet.lang, file=answers.name)
    blank = {"schema": SCHEMA, "answers": {asked.id: said.get(asked.id, "") for asked in sheet.questions}}
    file = json.dumps(blank, ensure_ascii=False, indent=1)
    text = "\n\n".join([top, *("\n".join(lines) for lines, _, _ in about), how, file]) + "\n"
    page = "".join(f"<li>{part}</li>" for _, part, _ in about)
    shown = f'<section lang="{sheet.lang}"><p><strong>{_escaped(top)}</strong></p><ol>{page}</ol><p>{_escaped(how)}</p>'
    return Static(f"{shown}<pre><code>{_code(file)}</code></pre></section>", safe(text))


def notice(text: str, lang: str) -> Static:
    """A sentence in place of the questions."""
    return Static(f'<p lang="{lang}"><strong>{_escaped(text)}</strong></p>', safe(text))


def _described(place: int, asked: Asked, answer: object, sheet: Sheet) -> tuple[list[str], str, bool]:
    """A question as lines of text, as HTML, and whether it is answered."""
    lang = sheet.lang
    try:
        asked.read(answer)
        done = True
    except grading.InvalidAnswer:
        done = False
    hint = message(f"quiz.kind.{asked.kind}", lang)
    unit = message("quiz.text.unit", lang, unit=asked.unit) if asked.unit else ""
    form = message("classroom.questions.form", lang, id=json.dumps(asked.id), example=_example(asked))
    now = message("classroom.questions.now", lang, answer=json.dumps(answer, ensure_ascii=False)) if done else ""
    rows = [f"{row.number}. {row.text}" for row in asked.rows]
    options = [f"{option.letter}. {option.text}" for option in asked.options]
    lines = [f"{place} / {len(sheet.questions)}  [{asked.id}]", asked.stem]
    if asked.code:
        lines += ["", *("    " + line for line in asked.code.rstrip().splitlines()), ""]
    lines += [f"({hint})", *("  " + line for line in rows + options), *(line for line in (unit, form, now) if line)]
    parts = [f"<p>{_escaped(asked.stem)}</p>"]
    if asked.code:
        parts.append(f"<pre><code>{_code(asked.code)}</code></pre>")
    parts.append(f"<p>{_escaped(hint)}</p>")
    for group in (rows, options):
        if group:
            parts.append("<ul>" + "".join(f"<li>{_escaped(line)}</li>" for line in group) + "</ul>")
    parts += [f"<p>{_escaped(line)}</p>" for line in (unit, form, now) if line]
    return lines, "".join(parts), done


def _example(asked: Asked) -> str:
    """An answer of the right form; its letters are the first ones, whatever is right."""
    letters = list(asked.letters)
    examples = {
        "single": letters[:1] and letters[0],
        "multiple": letters[:2],
        "numeric": "1/8",
        "ordering": letters,
        "matching": {row.number: letters[place % len(letters)] for place, row in enumerate(asked.rows)},
    }
    return json.dumps(examples[asked.kind])


def _escaped(text: str) -> str:
    return _code(text).replace("\n", "<br>")


def _code(text: str) -> str:
    return html.escape(safe(text), quote=True)
