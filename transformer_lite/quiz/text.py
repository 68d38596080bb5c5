"""Questions and explanations as text and as plain HTML: where no widget can show, and in notebooks that are stored."""

from __future__ import annotations

import html
import unicodedata
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from transformer_lite import language
from transformer_lite.language import message
from transformer_lite.quiz.explaining import Reason, explain, stem
from transformer_lite.quiz.shuffling import LETTERS, Paper, shown_order

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question
    from transformer_lite.quiz.grading import Grade


def by_exam(questions: Iterable[Question]) -> list[Question]:
    """The questions in the order of a stored notebook: those that the G exam asks, then those for the E exam alone."""
    return sorted(questions, key=lambda question: "g-kentei" not in question.exams)


def as_text(
    questions: Iterable[Question], lang: str | None = None, seed: int | str | None = None, titles: Mapping[int, str] | None = None
) -> str:
    """The questions with their letters and how to answer each in code; never which answer is right.

    ``titles``: 1-based number of a question -> what stands above it.
    """
    lang = lang or language.current()
    paper = Paper(questions, seed)
    if not paper.questions:
        return message("quiz.text.none", lang)
    parts = [message("quiz.text.title", lang, count=len(paper))]
    for place, question in enumerate(paper.questions, 1):
        if titles and place in titles:
            parts.append(titles[place])
        lines = [f"{place} / {len(paper)}  [{question.id}]", stem(question, lang)]
        if question.code:
            lines += ["", *("    " + line for line in question.code.rstrip().splitlines()), ""]
        if question.picture:
            lines.append(message("quiz.text.picture", lang, name=question.picture))
        lines.append(f"({message(f'quiz.kind.{question.kind}', lang)})")
        lines += [f"  {label}. {text}" for label, text in numbered_rows(question, lang)]
        lines += [f"  {letter}. {text}" for letter, text in lettered(question, lang, seed)]
        if question.kind == "numeric" and question.unit:
            lines.append("  " + message("quiz.text.unit", lang, unit=question.unit(lang)))
        lines.append(message("quiz.text.answer_with", lang, call=f'lab.answer("{question.id}", {_example(question, lang)})'))
        parts.append("\n".join(lines))
    return safe("\n\n".join(parts) + "\n")


def prediction_text(prediction: Prediction, lang: str | None = None) -> str:
    """A prediction with its letters and how to make it in code."""
    lang = lang or language.current()
    lines = [message("quiz.text.prediction", lang), prediction.stem(lang)]
    lines += [f"  {letter}. {text}" for letter, text in lettered(prediction, lang)]
    lines.append(message("quiz.text.answer_with", lang, call=f'lab.answer("{prediction.id}", "a")'))
    return safe("\n".join(lines) + "\n")


def explain_text(
    question: Question,
    grade: Grade,
    lang: str | None = None,
    seed: int | str | None = None,
    sections: Mapping[str, str] | None = None,
) -> str:
    """The explanation of an answer as text; the first word is the verdict."""
    lang = lang or language.current()
    told = explain(question, grade, lang, seed, sections)
    first = told.verdict
    if told.answer:
        first += f"  ({message('quiz.your_answer', lang, answer=told.answer)})"
    lines = [first]
    for reason in told.reasons:
        lines += _reason_lines(reason)
    lines += told.traps
    if told.status == "incorrect":
        lines.append(told.section_title)
    if told.others:
        lines += ["", told.others_title]
        for reason in told.others:
            lines += _reason_lines(reason, "  ")
    if told.status == "unmarked":
        lines.append(message("quiz.recall.how_to_mark", lang, name=f'"{question.id}"'))
    return safe("\n".join(lines) + "\n")


def as_html(
    questions: Iterable[Question], lang: str | None = None, seed: int | str | None = None, titles: Mapping[int, str] | None = None
) -> str:
    """The questions as escaped HTML without their answers. ``titles`` as in `as_text`."""
    lang = lang or language.current()
    paper = Paper(questions, seed)
    parts = [f'<section lang="{lang}"><p><strong>{_escaped(message("quiz.text.title", lang, count=len(paper)))}</strong></p>']
    if not titles or 1 not in titles:
        parts.append("<ol>")
    for place, question in enumerate(paper.questions, 1):
        if titles and place in titles:
            ended = "</ol>" if place > 1 else ""
            parts.append(f'{ended}<p><strong>{_escaped(titles[place])}</strong></p><ol start="{place}">')
        parts.append(f"<li><p>{_escaped(stem(question, lang))}</p>")
        if question.code:
            parts.append(f"<pre><code>{_escaped(question.code)}</code></pre>")
        if question.picture:
            parts.append(f"<p>{_escaped(message('quiz.text.picture', lang, name=question.picture))}</p>")
        parts.append(f"<p>{_escaped(message(f'quiz.kind.{question.kind}', lang))}</p>")
        parts.append(_html_list(numbered_rows(question, lang)) + _html_list(lettered(question, lang, seed)))
        if question.kind == "numeric" and question.unit:
            parts.append(f"<p>{_escaped(message('quiz.text.unit', lang, unit=question.unit(lang)))}</p>")
        parts.append("</li>")
    parts.append(f"</ol><p>{_escaped(message('quiz.text.static', lang))}</p></section>")
    return "".join(parts)


def prediction_as_html(prediction: Prediction, lang: str | None = None) -> str:
    """A prediction as escaped HTML."""
    lang = lang or language.current()
    return (
        f'<section lang="{lang}"><p><strong>{_escaped(message("quiz.text.prediction", lang))}</strong></p>'
        f"<p>{_escaped(prediction.stem(lang))}</p>{_html_list(lettered(prediction, lang))}"
        f"<p>{_escaped(message('quiz.text.static', lang))}</p></section>"
    )


def static_form(questions: Iterable[Question], lang: str | None = None, seed: int | str | None = None) -> Static:
    """The questions as a stored notebook shows them: the G exam's first, and then those for the E exam alone."""
    lang = lang or language.current()
    questions = by_exam(questions)
    for_g = sum("g-kentei" in question.exams for question in questions)
    titles = {}
    if 0 < for_g < len(questions):
        titles[1] = message("quiz.text.for_g", lang, count=for_g)
        titles[for_g + 1] = message("quiz.text.for_e", lang, count=len(questions) - for_g)
    return Static(as_html(questions, lang, seed, titles), as_text(questions, lang, seed, titles))


def static_prediction(prediction: Prediction, lang: str | None = None) -> Static:
    """A prediction as a stored notebook shows it."""
    return Static(prediction_as_html(prediction, lang), prediction_text(prediction, lang))


class Static:
    """What a stored notebook shows: HTML and text, no widget, no answers."""

    def __init__(self, html: str, text: str):
        self.html, self.text = html, text

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"text/html": self.html, "text/plain": self.text}

    def __repr__(self) -> str:
        return self.text


def lettered(question: Question | Prediction, lang: str, seed: int | str | None = None) -> list[tuple[str, str]]:
    """What is shown with letters, in the order shown: (letter, text)."""
    parts = getattr(question, "options", None) or getattr(question, "steps", None) or getattr(question, "choices", None) or []
    texts = {part.key: part.text(lang) for part in parts}
    return [(letter, texts[key]) for letter, key in zip(LETTERS, shown_order(question, seed), strict=False)]


def numbered_rows(question: Question, lang: str) -> list[tuple[str, str]]:
    """The rows of a matching question: (number, text)."""
    return [(str(i), row.text(lang)) for i, row in enumerate(getattr(question, "rows", []), 1)]


def safe(text: str) -> str:
    """``text`` without control characters, which a terminal would obey."""
    return "".join(character for character in text if character in "\n\t" or unicodedata.category(character) != "Cc")


def _example(question: Question, lang: str) -> str:
    letters = LETTERS[: len(shown_order(question))].lower()
    match question.kind:
        case "single":
            return '"a"'
        case "multiple":
            return '"a,b"'
        case "numeric":
            return "0"
        case "ordering":
            return f'"{",".join(letters)}"'
        case "matching":
            return '"' + " ".join(f"{i}a" for i in range(1, len(question.rows) + 1)) + '"'
        case _:
            return f'"{message("quiz.text.recall_example", lang)}"'


def _reason_lines(reason: Reason, indent: str = "") -> list[str]:
    return [indent + reason.heading, *(f"{indent}  {line}" for line in reason.why.splitlines())]


def _escaped(text: str) -> str:
    return html.escape(safe(text), quote=True).replace("\n", "<br>")


def _html_list(items: list[tuple[str, str]]) -> str:
    if not items:
        return ""
    return "<ul>" + "".join(f"<li>{label}. {_escaped(text)}</li>" for label, text in items) + "</ul>"
