"""What to say after an answer, in one language: the same words for the card in the browser and for the text form."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_lite import content
from transformer_lite.language import message
from transformer_lite.quiz.sections import headings
from transformer_lite.quiz.shuffling import Paper

if TYPE_CHECKING:
    from transformer_lite.content.schema import Question
    from transformer_lite.quiz.grading import Feedback, Grade


class Reason(NamedTuple):
    """A heading that says which part is meant, and why it is right or wrong."""

    heading: str
    why: str


class Row(NamedTuple):
    """What stands in one row of the form after an answer: an option, a row of a matching question, or a step as it was placed."""

    name: str  # the letter or the number shown
    right: bool  # an option: whether it is a right one; a matched row or a placed step: whether the learner had it right
    plain: bool  # whether it was rightly left alone, so that it should not draw the eye
    mark: str
    title: str  # stands over the reason
    why: str
    open: bool  # whether the reason is shown at once
    traps: tuple[str, ...]


@dataclass(frozen=True)
class Explanation:
    """``verdict`` comes first, then ``reasons`` (what was chosen, then what is right); ``others`` are shown on demand."""

    status: str  # "correct", "incorrect", "unmarked" or "marked"
    verdict: str
    answer: str
    reasons: tuple[Reason, ...]
    others: tuple[Reason, ...]
    others_title: str
    traps: tuple[str, ...]
    section: str  # the anchor of the section to read again
    section_title: str
    rows: tuple[Row, ...]  # the same reasons by row of the form; () for a number and for free recall


def explain(
    question: Question, grade: Grade, lang: str, seed: int | str | None = None, sections: Mapping[str, str] | None = None
) -> Explanation:
    """Say in ``lang`` what ``grade`` means. ``sections``: anchor -> heading; those of the question's chapter if None."""
    if sections is None:
        sections = headings(question.chapter, lang) if question.chapter else {}
    paper = Paper([question], seed)
    tell: dict[str, Callable[..., tuple[list[Reason], list[Reason]]]] = {
        "single": _options,
        "multiple": _options,
        "numeric": _number,
        "ordering": _order,
        "matching": _pairs,
        "recall": _recall,
    }
    reasons, others = tell[question.kind](question, grade, lang, paper)
    status = _status(question, grade)
    return Explanation(
        status=status,
        verdict=verdict(question, grade, lang),
        answer=answer_shown(question, grade.chosen, lang, seed),
        reasons=tuple(reasons),
        others=tuple(others),
        others_title=message(f"quiz.others.{question.kind}", lang),
        traps=tuple(trap_line(key, lang) for key in grade.traps),
        section=question.anchor,
        section_title=message("quiz.section", lang, section=sections.get(question.anchor, question.anchor)),
        rows=_rows(question, grade, lang, paper),
    )


def verdict(question: Question, grade: Grade, lang: str) -> str:
    """The word that comes first."""
    status = _status(question, grade)
    if status == "marked":
        return message("quiz.marked", lang, mark=message(f"quiz.mark.{grade.chosen['mark']}", lang))
    return message(f"quiz.{status}", lang)


def answer_shown(question: Question, chosen: Any, lang: str, seed: int | str | None = None) -> str:
    """A chosen answer as the learner saw it: letters, a number, a text."""
    paper = Paper([question], seed)
    match question.kind:
        case "single":
            return paper.letter(question, chosen)
        case "multiple":
            return ", ".join(sorted(paper.letter(question, key) for key in chosen))
        case "numeric":
            return with_unit(question, chosen, lang)
        case "ordering":
            return " → ".join(paper.letter(question, key) for key in chosen)
        case "matching":
            return ", ".join(f"{i} {paper.letter(question, chosen[row.key])}" for i, row in enumerate(question.rows, 1))
        case _:
            return chosen["text"]


def trap_line(key: str, lang: str) -> str:
    """A trap by its title and code; by its code alone where the catalogue of traps does not have it."""
    try:
        return message("quiz.trap", lang, title=content.trap(key).title(lang), key=key)
    except (content.Unknown, content.ContentError):
        return message("quiz.trap_untitled", lang, key=key)


def trap_named(key: str, lang: str) -> str:
    """A trap by its title, without its code; where the catalogue does not have it, words that the code can follow."""
    try:
        return message("quiz.trap_named", lang, title=content.trap(key).title(lang))
    except (content.Unknown, content.ContentError):
        return message("quiz.trap_unnamed", lang)


def with_unit(question: Any, value: float, lang: str) -> str:
    number = f"{value:.12g}"
    return f"{number} {question.unit(lang)}" if question.unit else number


def stem(question: Any, lang: str) -> str:
    """The question's text without TeX."""
    plain = getattr(question, "plain", None)
    return (plain or question.stem)(lang)


def _status(question: Question, grade: Grade) -> str:
    if question.kind == "recall":
        return "unmarked" if grade.correct is None else "marked"
    return "correct" if grade.correct else "incorrect"


def _options(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[list[Reason], list[Reason]]:
    texts = {option.key: option.text(lang) for option in question.options}
    names = {"chosen_wrong": "chosen", "missed": "right", "chosen_right": "right", "left": "other"}

    def reason(item: Feedback) -> Reason:
        name = item.verdict if question.kind == "multiple" else names[item.verdict]
        letter = paper.letter(question, item.part)
        return Reason(message(f"quiz.{question.kind}.{name}", lang, letter=letter, text=texts[item.part]), item.why(lang))

    # Letters in the order shown, within one verdict.
    ordered = sorted(grade.feedback, key=lambda item: (_rank(grade, item.verdict), paper.letter(question, item.part)))
    return (
        [reason(item) for item in ordered if item.verdict != "left"],
        [reason(item) for item in ordered if item.verdict == "left"],
    )


def _rank(grade: Grade, verdict: str) -> int:
    return [item.verdict for item in grade.feedback].index(verdict)


def _number(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[list[Reason], list[Reason]]:
    reasons, others = [], []
    for item in grade.feedback:
        if item.part == "answer":
            heading = message("quiz.numeric.right", lang, value=with_unit(question, grade.right, lang))
            reasons.append(Reason(heading, item.why(lang)))
        elif item.verdict == "chosen_wrong":
            heading = message("quiz.numeric.chosen", lang, value=with_unit(question, grade.chosen, lang))
            reasons.append(Reason(heading, item.why(lang)))
        else:
            value = item.part.removeprefix("near:")
            others.append(Reason(message("quiz.numeric.other", lang, value=value), item.why(lang)))
    return reasons, others


def _order(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[list[Reason], list[Reason]]:
    texts = {step.key: step.text(lang) for step in question.steps}
    whys = {item.part: item.why(lang) for item in grade.feedback}
    reasons = []
    if grade.place is not None:
        first = grade.right[grade.place - 1]
        heading = message("quiz.ordering.first_wrong", lang, place=grade.place, text=texts[first])
        reasons.append(Reason(heading, whys[first]))
    steps = [message("quiz.ordering.step", lang, place=i, text=texts[key]) for i, key in enumerate(grade.right, 1)]
    reasons.append(Reason(message("quiz.ordering.right_order", lang), "\n".join(steps)))
    return reasons, [Reason(step, whys[key]) for step, key in zip(steps, grade.right, strict=True)]


def _pairs(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[list[Reason], list[Reason]]:
    rows = {row.key: row.text(lang) for row in question.rows}
    choices = {choice.key: choice.text(lang) for choice in question.choices}
    reasons, others = [], []
    for item in grade.feedback:
        right = choices[grade.right[item.part]]
        if item.verdict == "chosen_wrong":
            given = choices[grade.chosen[item.part]]
            heading = message("quiz.matching.wrong", lang, row=rows[item.part], given=given, right=right)
            reasons.append(Reason(heading, item.why(lang)))
        else:
            others.append(Reason(message("quiz.matching.right", lang, row=rows[item.part], right=right), item.why(lang)))
    # When every row is right there is nothing to put first: show them all.
    return (reasons, others) if reasons else (others, [])


def _rows(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[Row, ...]:
    told = {item.part: item for item in grade.feedback}
    match question.kind:
        case "single" | "multiple":
            traps = {option.key: option.trap for option in question.options}
            shown = paper.letters(question).items()
            return tuple(_option_row(question, told[key], letter, traps[key], lang) for letter, key in shown)
        case "matching":
            choices = {choice.key: choice.text(lang) for choice in question.choices}
            rows = []
            for number, row in enumerate(question.rows, 1):
                right, trap = grade.chosen[row.key] == row.choice, row.traps.get(grade.chosen[row.key])
                mark = message(f"quiz.row.matching.{'right' if right else 'wrong'}", lang, right=choices[row.choice])
                title = message("quiz.row.matching.why", lang, row=row.text(lang))
                rows.append(Row(str(number), right, False, mark, title, row.why(lang), not right, (trap,) if trap else ()))
            return tuple(rows)
        case "ordering":
            marks = []
            for place, key in enumerate(grade.chosen):
                right = key == grade.right[place]
                mark = message(f"quiz.row.ordering.{'right' if right else 'wrong'}", lang, place=grade.right.index(key) + 1)
                marks.append(Row(paper.letter(question, key), right, False, mark, "", "", False, ()))
            return tuple(marks)
        case _:
            return ()


def _option_row(question: Any, item: Feedback, letter: str, trap: str | None, lang: str) -> Row:
    right = item.verdict in ("chosen_right", "missed")
    chosen = item.verdict in ("chosen_right", "chosen_wrong")
    # Where all that apply are to be chosen, leaving one out is an answer, too.
    answered = chosen or (question.kind == "multiple" and item.verdict == "missed")
    return Row(
        name=letter,
        right=right,
        plain=item.verdict == "left",
        mark=message(f"quiz.row.{question.kind}.{item.verdict}", lang),
        title=message(f"quiz.row.{question.kind}.why_{'right' if right else 'wrong'}", lang, letter=letter),
        why=item.why(lang),
        open=answered,
        traps=(trap,) if trap and chosen else (),
    )


def _recall(question: Any, grade: Grade, lang: str, paper: Paper) -> tuple[list[Reason], list[Reason]]:
    points = "\n".join(f"・ {point(lang)}" if lang == "ja" else f"- {point(lang)}" for point in question.points)
    return [
        Reason(message("quiz.recall.model", lang), question.answer(lang)),
        Reason(message("quiz.recall.points", lang), points),
    ], []
