"""The two widgets. The browser draws (`common.js`, `card.js`) and sends answers; Python grades and sends back what is to be said.

No key, reason or trap leaves Python before its question is answered: the browser knows letters and texts only.
"""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import anywidget
import traitlets

from transformer_lite.language import catalogue, message
from transformer_lite.quiz import grading, text
from transformer_lite.quiz.explaining import explain, trap_named, verdict
from transformer_lite.quiz.shuffling import Paper

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question

HERE = Path(__file__).parent
UI = "quiz.ui."
SESSION = 10  # questions asked in one go
EXAMS = ("g-kentei", "e-shikaku")


def script(path: Path) -> str:
    """The ES module of a widget: ``common.js`` followed by the file ``path``, in one text that imports nothing."""
    return "\n".join(part.read_text("utf-8") for part in (HERE / "common.js", path))


def interface(lang: str) -> dict[str, str]:
    """The words of buttons and labels, which the browser fills in itself."""
    words = {key.removeprefix(UI): words(lang) for key, words in catalogue().items() if key.startswith(UI)}
    marks = {f"mark{mark}": message(f"quiz.mark.{mark}", lang) for mark in grading.MARKS}
    return words | marks | {"correct": message("quiz.correct", lang), "incorrect": message("quiz.incorrect", lang)}


class _Card(anywidget.AnyWidget):
    """What both widgets share. ``cards`` are drawn; ``results`` holds, by position, what Python said to an answer."""

    _esm = script(HERE / "card.js")
    _css = HERE / "card.css"

    lang = traitlets.Unicode("ja").tag(sync=True)
    words = traitlets.Dict().tag(sync=True)
    cards = traitlets.List().tag(sync=True)
    results = traitlets.Dict().tag(sync=True)
    index = traitlets.Int(0).tag(sync=True)
    asking = traitlets.Dict().tag(sync=True)
    lasts = traitlets.Dict().tag(sync=True)

    def __init__(self, **traits: Any):
        super().__init__(**traits)
        self._count = 0
        self.on_msg(lambda _, content, buffers: self.receive(content))

    def receive(self, content: Any) -> None:
        """Handle one message of the browser: ``{"do": ..., "card": position, ...}``. What is not one is ignored."""
        card = content.get("card") if isinstance(content, dict) else None
        if isinstance(card, int) and not isinstance(card, bool) and 0 <= card < len(self.cards):
            self._handle(content.get("do"), card, content.get("answer"))

    def _handle(self, do: object, card: int, answer: object) -> None:
        raise NotImplementedError

    def _say(self, card: int, result: dict[str, Any] | None) -> None:
        """Set or clear the result of a card. The count makes the browser notice the same result twice."""
        self._count += 1
        results = {key: value for key, value in self.results.items() if key != str(card)}
        if result is not None:
            results[str(card)] = result | {"count": self._count}
        self.results = results

    def _report(self, on_answer: Callable[[Any, Any], Any] | None, subject: Any, what: Any) -> str:
        """Tell the caller. Its trouble must not cost the learner the explanation, so it comes back as a sentence."""
        if on_answer is None:
            return ""
        try:
            on_answer(subject, what)
        except Exception as error:
            return message("quiz.not_recorded", self.lang, reason=type(error).__name__)
        return ""

    def _static(self) -> text.Static:
        raise NotImplementedError

    def _repr_mimebundle_(self, **options: Any) -> Any:
        """The widget, and under it the plain form for viewers that cannot run one."""
        bundle = super()._repr_mimebundle_(**options)
        if bundle is None:
            return None
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle, {})
        return data | self._static()._repr_mimebundle_(), metadata


class QuizCard(_Card):
    """One question at a time, ten to a session, those of the exam that the switch stands at.

    ``asking`` says what is being asked: the places of the session in ``cards``, how many questions of the exam come after it, and
    how many each exam has. ``lasts`` holds, by place, how the question was answered before: what this card has seen included.
    """

    def __init__(
        self,
        questions: Iterable[Question],
        on_answer: Callable[[Question, grading.Grade], Any] | None,
        lang: str,
        answered: Mapping[str, Any] | None = None,
        exam: str | None = None,
        on_exam: Callable[[str | None], Any] | None = None,
        seed: int | str | None = None,
        sections: Mapping[str, str] | None = None,
        pictures: Callable[[str], Any] | None = None,
    ):
        self.paper = Paper(questions, seed)
        self._on_answer, self._on_exam = on_answer, on_exam
        self._sections = sections
        cards = [_drawn(question, lang, seed, pictures) for question in self.paper.questions]
        super().__init__(lang=lang, words=interface(lang), cards=cards)
        self._earlier: dict[int, grading.Grade] = {}
        for place, question in enumerate(self.paper.questions):
            earlier = _earlier(question, (answered or {}).get(question.id))
            if earlier is not None:
                self._earlier[place] = earlier
        self.lasts = {str(place): self._last(place, grade) for place, grade in self._earlier.items()}
        self._exam = exam if self._places(exam) else None
        self._asked: set[int] = set()
        self._begin(self._places(self._exam))

    @property
    def asked(self) -> tuple[Question, ...]:
        """The questions of the session on the card, as they are numbered there."""
        return tuple(self.paper.questions[place] for place in self.asking["session"])

    def _places(self, exam: str | None) -> list[int]:
        return [place for place, question in enumerate(self.paper.questions) if exam in (None, *question.exams)]

    def _begin(self, places: list[int]) -> None:
        """Ask the first ten of ``places``."""
        session = places[:SESSION]
        self._asked.update(session)
        index = next((place for place in session if not self._settled(place)), session[0])
        total = len(self.paper)
        counts = {exam: len(self._places(exam)) for exam in EXAMS}
        with self.hold_sync():
            self.index = index
            self.asking = {
                "exam": self._exam or "both",
                "session": session,
                "left": len(places) - len(session),
                "index": index,
                "total": len(self._places(self._exam)),
                "counts": counts | {"both": total} if any(0 < count < total for count in counts.values()) else {},
                "count": self.asking.get("count", 0) + 1,
            }

    def _settled(self, place: int) -> bool:
        return self.results.get(str(place), {}).get("status") in ("correct", "incorrect", "marked")

    def _mistakes_first(self, places: list[int]) -> list[int]:
        return sorted(places, key=lambda place: bool(self.lasts.get(str(place), {}).get("right")))

    def _switch(self, exam: object) -> None:
        if exam not in ("both", *EXAMS) or not self._places(None if exam == "both" else str(exam)):
            return
        self._exam = None if exam == "both" else str(exam)
        self._asked.clear()
        # What has been answered on this card stays answered; it comes last.
        self._begin(sorted(self._places(self._exam), key=self._settled))
        if self._on_exam is not None:
            self._on_exam(self._exam)

    def _next_session(self) -> None:
        places = [place for place in self._places(self._exam) if place not in self._asked]
        if not places:
            self._asked.clear()
            places = self._mistakes_first(self._places(self._exam))
            again = {str(place) for place in places}
            with self.hold_sync():  # one message: the browser draws the new session, not the old one without its results
                self.results = {place: result for place, result in self.results.items() if place not in again}
                self._begin(places)
        else:
            self._begin(sorted(places, key=self._settled))

    def _handle(self, do: object, card: int, answer: object) -> None:
        question = self.paper.questions[card]
        if do == "exam":
            self._switch(answer)
        elif do == "session":
            self._next_session()
        elif do == "again":
            self._say(card, None)
        elif do == "last":
            if card in self._earlier:
                self._seen(card, self._earlier[card])
                self._say(card, self._told(question, self._earlier[card]))
        elif do == "answer":
            try:
                graded = grading.grade(question, answer, self.paper.seed)
            except grading.InvalidAnswer as problem:
                self._say(card, {"status": "invalid", "verdict": problem.text(self.lang)})
                return
            told = self._told(question, graded)
            # A recalled answer counts once the learner has marked it.
            if graded.correct is not None:
                told["note"] = self._report(self._on_answer, question, graded)
                self._seen(card, graded)
            self._say(card, told)

    def _seen(self, card: int, grade: grading.Grade) -> None:
        """The card itself now shows how the question was answered, so there is nothing to say of last time."""
        self.lasts = self.lasts | {str(card): {"right": grade.correct is True, "line": ""}}

    def _told(self, question: Question, grade: grading.Grade) -> dict[str, Any]:
        told = explain(question, grade, self.lang, self.paper.seed, self._sections)
        # A form with rows says in them what was chosen and why; for a wrong order the right one follows.
        by_row = question.kind in ("single", "multiple", "matching")
        shows_order = question.kind == "ordering" and grade.correct
        in_form = question.kind in ("matching", "ordering")
        return {
            "status": told.status,
            "right": grade.correct is True,
            "verdict": told.verdict,
            "answer": message("quiz.your_answer", self.lang, answer=told.answer) if told.answer and not in_form else "",
            "rows": {row.name: row._asdict() | {"traps": self._traps(row.traps)} for row in told.rows},
            "reasons": [] if by_row or shows_order else [list(reason) for reason in told.reasons],
            "others": [] if by_row else [list(reason) for reason in told.others],
            "othersTitle": told.others_title,
            "traps": [] if by_row else self._traps(grade.traps),
            "section": told.section,
            "sectionTitle": told.section_title,
            "draft": _draft(question, grade.chosen, self.paper),
        }

    def _traps(self, keys: Iterable[str]) -> list[list[str]]:
        return [[trap_named(key, self.lang), key] for key in keys]

    def _last(self, place: int, grade: grading.Grade) -> dict[str, Any]:
        word = verdict(self.paper.questions[place], grade, self.lang)
        return {"right": grade.correct is True, "line": message("quiz.last_time", self.lang, verdict=word)}

    def _static(self) -> text.Static:
        return text.static_form(self.paper.questions, self.lang, self.paper.seed)


class PredictionCard(_Card):
    """A guess by one click. It is not graded."""

    def __init__(
        self,
        prediction: Prediction,
        on_answer: Callable[[Prediction, str], Any] | None,
        lang: str,
        answered: str | None = None,
    ):
        self.prediction = prediction
        self._on_answer = on_answer
        options = [{"letter": letter, "text": words} for letter, words in text.lettered(prediction, lang)]
        card = {"kind": "prediction", "stem": prediction.stem(lang), "options": options}
        super().__init__(lang=lang, words=interface(lang), cards=[card])
        if any(option.key == answered for option in prediction.options):
            self.results = {"0": self._told(str(answered)) | {"count": 0}}

    def _handle(self, do: object, card: int, answer: object) -> None:
        if do != "answer":
            return
        try:
            key = grading.predicted(self.prediction, answer)
        except grading.InvalidAnswer as problem:
            self._say(card, {"status": "invalid", "verdict": problem.text(self.lang)})
            return
        self._say(card, self._told(key) | {"note": self._report(self._on_answer, self.prediction, key)})

    def _told(self, key: str) -> dict[str, Any]:
        paper = Paper([self.prediction])
        letter = paper.letter(self.prediction, key)
        chosen = dict(text.lettered(self.prediction, self.lang))[letter]
        return {
            "status": "guessed",
            "verdict": message("quiz.ui.your_guess", self.lang, answer=f"{letter}. {chosen}"),
            "after": self.prediction.after(self.lang),
            "draft": letter,
        }

    def _static(self) -> text.Static:
        return text.static_prediction(self.prediction, self.lang)


def _drawn(
    question: Any, lang: str, seed: int | str | None, pictures: Callable[[str], Any] | None
) -> dict[str, Any]:
    """What the browser needs to draw a question: letters and texts, no keys."""
    card = {
        "kind": question.kind,
        "stem": text.stem(question, lang),
        "hint": message(f"quiz.kind.{question.kind}", lang),
        "code": question.code or "",
        "options": [{"letter": letter, "text": words} for letter, words in text.lettered(question, lang, seed)],
        "rows": [{"number": row, "text": words} for row, words in text.numbered_rows(question, lang)],
        "unit": question.unit(lang) if question.kind == "numeric" and question.unit else "",
        "exams": list(question.exams),
    }
    if question.picture:
        picture = pictures(question.picture) if pictures else None
        if picture is None:
            card["picture"] = {"alt": message("quiz.text.picture", lang, name=question.picture)}
        else:
            card["picture"] = {"alt": picture.text, "png": base64.b64encode(picture.png).decode()}
    return card


def _earlier(question: Question, chosen: Any) -> grading.Grade | None:
    """An earlier answer graded again; None where there is none or the question has changed since so that it no longer fits."""
    if chosen is None:
        return None
    try:
        earlier = grading.judge(question, chosen)
    except grading.InvalidAnswer:
        return None
    return None if earlier.correct is None else earlier


def _draft(question: Any, chosen: Any, paper: Paper) -> Any:
    """A chosen answer as the controls of the browser hold it."""
    match question.kind:
        case "single":
            return paper.letter(question, chosen)
        case "multiple" | "ordering":
            return [paper.letter(question, key) for key in chosen]
        case "matching":
            return {str(i): paper.letter(question, chosen[row.key]) for i, row in enumerate(question.rows, 1)}
        case "numeric":
            return f"{chosen:.12g}"
        case _:
            return chosen["text"]
