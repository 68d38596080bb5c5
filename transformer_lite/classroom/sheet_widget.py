"""The answer sheet in a notebook. The browser draws (`sheet.js`) and sends each choice; Python writes it into the file at once.

What is shown as saved has been read back from the file, so it outlives the kernel, and two notebooks show the same.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import anywidget
import traitlets

from transformer_lite.classroom.answers import LONGEST, plain, write, written
from transformer_lite.classroom.sheet import Asked, Sheet, plain_form
from transformer_lite.language import catalogue, message
from transformer_lite.quiz.card import HERE as QUIZ
from transformer_lite.quiz.card import script
from transformer_lite.quiz.grading import InvalidAnswer

UI = "classroom.questions.ui."
BORROWED = ("up", "down", "moved", "choose", "answer", "jump", "previous_short", "next_short", "next", "item", "open")


def interface(lang: str) -> dict[str, str]:
    """The words of buttons and labels, which the browser fills in itself."""
    words = {key.removeprefix(UI): words(lang) for key, words in catalogue().items() if key.startswith(UI)}
    return {name: message(f"quiz.ui.{name}", lang) for name in BORROWED} | words


class AnswerSheet(anywidget.AnyWidget):
    """Questions, one at a time, and what the file holds of the answers. Nothing is marked.

    ``states`` says by place what is in the file: "open", "answered", or "partial" for what cannot be read as an answer (yet),
    with the draft that the controls show and a line that says what is missing. ``heard`` is the last thing the browser asked for,
    and whether it is in the file; ``trouble`` says why not.
    """

    _esm = script(Path(__file__).with_name("sheet.js"))
    _css = QUIZ / "card.css"

    lang = traitlets.Unicode("ja").tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    cards = traitlets.List().tag(sync=True)
    file = traitlets.Unicode().tag(sync=True)
    longest = traitlets.Int(LONGEST).tag(sync=True)
    states = traitlets.List().tag(sync=True)
    heard = traitlets.Dict().tag(sync=True)
    trouble = traitlets.Unicode().tag(sync=True)

    def __init__(self, sheet: Sheet, answers: Path):
        self._sheet, self._answers = sheet, answers
        cards = [_drawn(asked, sheet.lang) for asked in sheet.questions]
        given, note = written(answers)
        super().__init__(lang=sheet.lang, words=interface(sheet.lang), cards=cards, file=answers.name, states=self._states(given))
        if note not in (None, "no_answers"):
            self.trouble = message("classroom.questions.will_set_aside", sheet.lang, file=answers.name)
        self.on_msg(lambda _, content, buffers: self.receive(content))

    def receive(self, content: Any) -> None:
        """Handle one message of the browser: ``{"do": "write", "card", "answer", "token"}`` or ``{"do": "look"}``."""
        if not isinstance(content, dict):
            return
        place, token = content.get("card"), content.get("token")
        if content.get("do") == "look":
            given, note = written(self._answers)
            if note in (None, "no_answers"):
                self.states = self._states(given)
        elif content.get("do") == "write" and type(place) is int and 0 <= place < len(self._sheet.questions):
            self._write(place, content.get("answer"), str(token))

    def _write(self, place: int, answer: object, token: str) -> None:
        answer = _cleaned(answer)
        try:
            given = write(self._answers, self._sheet.questions[place].id, answer)
        except OSError as trouble:
            reason = trouble.strerror or type(trouble).__name__
            said = message("classroom.questions.not_saved", self.lang, file=self.file, folder=self._answers.parent, reason=reason)
            with self.hold_sync():
                self.trouble = said
                self.heard = {"card": place, "token": token, "saved": False}
            return
        with self.hold_sync():  # one message: the browser draws the states, not those of before
            self.trouble = ""
            self.states = self._states(given)
            self.heard = {"card": place, "token": token, "saved": True}

    def _states(self, given: dict[str, Any]) -> list[dict[str, Any]]:
        return [_state(asked, given.get(asked.id), self._sheet.lang) for asked in self._sheet.questions]

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and under it the plain form for viewers that cannot run one."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return data | plain_form(self._sheet, self._answers)._repr_mimebundle_(), metadata


def _drawn(asked: Asked, lang: str) -> dict[str, Any]:
    return {**asked.model_dump(mode="json"), "hint": message(f"quiz.kind.{asked.kind}", lang)}


def _cleaned(answer: object) -> Any:
    """What the browser sent, as it may stand in the file; None for nothing."""
    if isinstance(answer, str):
        answer = "".join(character for character in answer if character.isprintable() or character.isspace()).strip()[:LONGEST]
    return answer if plain(answer) and answer not in ("", [], {}) else None


def _state(asked: Asked, answer: object, lang: str) -> dict[str, Any]:
    if answer in (None, "", [], {}):
        return {"status": "open", "draft": None, "line": ""}
    try:
        return {"status": "answered", "draft": _draft(asked, asked.read(answer), answer), "line": ""}
    except InvalidAnswer as problem:
        return {"status": "partial", "draft": _half(asked, answer), "line": problem.text(lang)}


def _draft(asked: Asked, chosen: Any, answer: object) -> Any:
    """An answer as the controls hold it: letters as they are shown; a number as it was typed."""
    if asked.kind == "numeric":
        return answer if isinstance(answer, str) else f"{chosen:.12g}"
    return chosen


def _half(asked: Asked, answer: object) -> Any:
    """What the controls can show of an answer that is none yet: typed text, and the rows that are chosen already."""
    if asked.kind == "numeric":
        return answer if isinstance(answer, str) else None
    if asked.kind == "matching" and isinstance(answer, dict):
        rows = [row.number for row in asked.rows]
        return {row: answer[row] for row in rows if answer.get(row) in asked.letters}
    return None
