"""Graded questions: drawn from a bank that students do not have, asked without their keys, and marked from a file of answers.

What students get is `paper`; what marks them is `key_of`, which stays with the instructor. Both know a question's parts by the
letters shown, so that nothing handed out comes from the bank but the texts.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_lite import content, course
from transformer_lite.classroom.answers import plain, written
from transformer_lite.language import check_language, message
from transformer_lite.quiz import grading
from transformer_lite.quiz.explaining import stem
from transformer_lite.quiz.shuffling import LETTERS

if TYPE_CHECKING:
    from transformer_lite.content.schema import Question

__all__ = ["BankError", "Mark", "ask", "check_answer", "draw", "key_of", "mark", "paper", "written"]

SCHEMA = 1
PARTS = {"single": "options", "multiple": "options", "ordering": "steps", "matching": "choices"}


class BankError(course.CourseError):
    """A bank cannot be used for graded questions. ``messages`` holds every ``file:line: message``, where there are any."""

    def __init__(self, text: str, messages: Iterable[str] = ()):
        self.messages = tuple(messages)
        super().__init__("\n".join([text, *self.messages]))


class Mark(NamedTuple):
    """An answer marked: all or nothing. ``said`` is the answer as it was read, "" where there was none to read."""

    right: bool
    traps: tuple[str, ...]
    said: str


# ------------------------------------------------------------------------------------------------------------ the instructor


def draw(bank: Path, count: int | None, seed: int, chapter: str | None = None) -> tuple[Question, ...]:
    """The questions that an assignment asks, in the order of the bank; the same for the same bank, ``count`` and ``seed``.

    Args:
        bank: a YAML file in the form of ``quizzes/NN_name.yaml``.
        count: how many; all that can be graded if None.
        seed: which of them.
        chapter: only if the bank is of that chapter (by its id); of any if None.

    Returns:
        Questions that can be graded and are not retired. None at all only where the bank is of another chapter and ``count`` is
        None.

    Raises:
        BankError: the file is not as it should be, students have its keys, or it holds too few questions.
    """
    path = Path(bank)
    try:
        checked = content.bank(path)
    except content.ContentError as error:
        raise BankError(message("classroom.questions.bank_wrong", file=path), error.messages) from None
    if known := _known_to_students(checked.questions):
        raise BankError(message("classroom.questions.bank_shipped", file=path), known)
    if pictured := [f"{question.file}:{question.line}: {question.id}" for question in checked.questions if question.picture]:
        raise BankError(message("classroom.questions.bank_picture", file=path), pictured)
    elsewhere = chapter not in (None, checked.chapter)
    there = [] if elsewhere else [each for each in checked.questions if each.kind != "recall" and not each.retired]
    if count is None and (there or elsewhere):
        return tuple(there)
    if count is not None and (isinstance(count, bool) or not isinstance(count, int) or count < 1):
        raise BankError(message("classroom.questions.bank_count", count=count))
    if count is None or count > len(there):
        word = "bank_elsewhere" if elsewhere else "bank_few"
        details = {"file": path, "of": checked.chapter, "chapter": chapter, "count": count or 1, "there": len(there)}
        raise BankError(message(f"classroom.questions.{word}", **details))
    chosen = set(sorted((each.id for each in there), key=lambda name: _digest(seed, name))[:count])
    return tuple(each for each in there if each.id in chosen)


def paper(questions: Iterable[Question], lang: str, seed: int) -> dict[str, Any]:
    """What students get, as JSON: stems, code, and parts with letters, in an order that has nothing to do with what is right."""
    from transformer_lite.classroom import sheet

    check_language(lang)
    asked = []
    for question in questions:
        rows = [{"number": str(place), "text": row.text(lang)} for place, row in enumerate(getattr(question, "rows", []), 1)]
        unit = getattr(question, "unit", None)
        options = [{"letter": letter, "text": part.text(lang)} for letter, part in _lettered(question, seed).items()]
        shown = {"id": question.id, "kind": question.kind, "stem": stem(question, lang), "code": question.code or ""}
        asked.append({**shown, "options": options, "rows": rows, "unit": unit(lang) if unit else ""})
    checked = sheet.Sheet.model_validate({"schema": SCHEMA, "lang": lang, "questions": asked})
    return checked.model_dump(mode="json", by_alias=True, exclude_defaults=True)


def key_of(question: Question, seed: int) -> dict[str, Any]:
    """What `mark` needs to know of a question, as JSON, by the letters of `paper` with the same ``seed``; in any language.

    Its ``right`` is the right answer in the form of an answer.
    """
    parts = _lettered(question, seed)
    letters = {part.key: letter for letter, part in parts.items()}
    key: dict[str, Any] = {"schema": SCHEMA, "id": question.id, "kind": question.kind, "letters": "".join(parts)}
    match question.kind:
        case "single" | "multiple":
            right = [letter for letter, option in parts.items() if option.correct]
            traps = {letter: option.trap for letter, option in parts.items() if option.trap}
            return {**key, "right": right[0] if question.kind == "single" else right, "traps": traps}
        case "numeric":
            units = [question.unit.ja, question.unit.en] if question.unit else []
            near = [{"value": near.value, "trap": near.trap} for near in question.near]
            return {**key, "right": question.answer, "tolerance": question.tolerance, "units": units, "near": near}
        case "ordering":
            return {**key, "right": [letters[step.key] for step in question.steps], "trap": question.trap}
        case "matching":
            rows = {str(place): row for place, row in enumerate(question.rows, 1)}
            traps = {number: {letters[each]: trap for each, trap in row.traps.items()} for number, row in rows.items()}
            right = {number: letters[row.choice] for number, row in rows.items()}
            return {**key, "right": right, "traps": {number: named for number, named in traps.items() if named}}
        case _:
            raise ValueError(f"a question of the kind {question.kind!r} is marked by the learner, so it has no key")


def mark(key: dict[str, Any], answer: object) -> Mark:
    """Mark an answer by the letters shown. One that cannot be read, or is none, is wrong; it never raises for an answer."""
    question, order = _question(key)
    if not plain(answer):
        return Mark(False, (), "")
    try:
        grade = grading.judge(question, grading.read(question, answer, order=order))
    except grading.InvalidAnswer:
        return Mark(False, (), "")
    return Mark(grade.correct is True, grade.traps, _said(grade.chosen, question.kind))


def check_answer(key: dict[str, Any], answers: Path | str = "answers.json") -> None:
    """The hidden test of a question: raise AssertionError, which does not say what is right, unless the answer is."""
    given, _ = written(answers)
    name = key["id"]
    if name not in given:
        raise AssertionError(message("classroom.questions.unanswered", id=name, file=answers))
    marked = mark(key, given[name])
    if not marked.right:
        word = "not_right" if marked.said else "unread"
        raise AssertionError(message(f"classroom.questions.{word}", id=name, file=answers, answer=marked.said))


# --------------------------------------------------------------------------------------------------------------- the student


def ask(path: Path | str = "questions.json", answers: Path | str = "answers.json") -> Any:
    """Show the questions handed out in ``path``; each choice is written to ``answers`` at once. Both lie beside the notebook.

    Returns:
        In a notebook a widget; elsewhere, and where ``TRANSFORMER_LITE_STATIC=1``, the questions as text, with how to write the
        answers by hand. Where there is no sheet of questions, a sentence that says how to get one.
    """
    from transformer_lite.classroom import sheet
    from transformer_lite.language import current

    try:
        handed_out = sheet.read(path)
    except sheet.SheetUnreadable as trouble:
        return sheet.notice(str(trouble), current())
    file = Path(answers).absolute()  # the notebook may go to another folder meanwhile
    if os.environ.get("TRANSFORMER_LITE_STATIC") == "1" or not _in_notebook():
        return sheet.plain_form(handed_out, file)
    from transformer_lite.classroom.sheet_widget import AnswerSheet

    return AnswerSheet(handed_out, file)


def _in_notebook() -> bool:
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return getattr(shell, "kernel", None) is not None


# ------------------------------------------------------------------------------------------------------------------- letters


def _lettered(question: Question, seed: int) -> dict[str, Any]:
    """Letter -> part, in the order shown.

    The order follows from the texts that students see and from ``seed``: whoever works it out again learns nothing of the bank,
    such as which option stands first there.
    """
    parts = list(getattr(question, PARTS.get(question.kind, ""), []))
    if getattr(question, "shuffle", True):
        shuffled = sorted(parts, key=lambda part: _digest(seed, question.id, part.text.ja, part.text.en))
        if question.kind == "ordering" and shuffled == parts:  # it must not start in the right order
            shuffled = shuffled[1:] + shuffled[:1]
        parts = shuffled
    return dict(zip(LETTERS, parts, strict=False))


def _digest(*parts: object) -> bytes:
    return hashlib.sha256(json.dumps(parts, ensure_ascii=False).encode()).digest()


def _known_to_students(questions: Iterable[Question]) -> list[str]:
    """The questions that ship with the course, under their own id or under another."""
    shipped = content.library().questions
    texts = {_text(question): question.id for question in shipped.values()}
    found = []
    for question in questions:
        other = question.id if question.id in shipped else texts.get(_text(question))
        if other is not None:
            found.append(f"{question.file}:{question.line}: {question.id}" + (f" = {other}" if other != question.id else ""))
    return found


def _text(question: Question) -> tuple[str, ...]:
    from transformer_lite.content.schema import normalised

    parts = [part.text.ja for name in ("options", "steps", "rows", "choices") for part in getattr(question, name, [])]
    return (question.kind, normalised(question.stem.ja), question.code or "", *sorted(normalised(part) for part in parts))


# ------------------------------------------------------------------------------------------------------------------- marking


def _question(key: dict[str, Any]) -> tuple[Any, tuple[str, ...]]:
    """A key as `grading` wants a question to be, and the letters in the order shown."""
    if key.get("schema") != SCHEMA:
        raise ValueError(f"the key of a question must have the schema {SCHEMA}; got {key.get('schema')!r}")
    kind, order, right = key["kind"], tuple(key["letters"]), key["right"]
    about: dict[str, Any] = {"kind": kind, "unit": None}
    match kind:
        case "single" | "multiple":
            about["options"] = [_part(each, correct=each in right, trap=key["traps"].get(each)) for each in order]
        case "numeric":
            units = key["units"]
            about["unit"] = SimpleNamespace(ja=units[0], en=units[1]) if units else None
            about |= {"answer": right, "tolerance": key["tolerance"], "why": None}
            about["near"] = [SimpleNamespace(**near, why=None) for near in key["near"]]
        case "ordering":
            about |= {"steps": [_part(each) for each in right], "trap": key["trap"]}
        case "matching":
            about["rows"] = [_part(row, choice=each, traps=key["traps"].get(row, {})) for row, each in right.items()]
            about["choices"] = [_part(each) for each in order]
        case _:
            raise ValueError(f"the key of a question cannot be of the kind {kind!r}")
    return SimpleNamespace(**about), order


def _part(key: str, **about: Any) -> SimpleNamespace:
    return SimpleNamespace(key=key, why=None, **about)


def _said(chosen: Any, kind: str) -> str:
    match kind:
        case "numeric":
            return f"{chosen:.12g}"
        case "multiple":
            return ", ".join(chosen)
        case "ordering":
            return " → ".join(chosen)
        case "matching":
            return " ".join(f"{row}{choice}" for row, choice in chosen.items())
        case _:
            return str(chosen)
