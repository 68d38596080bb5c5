"""Pages made from data: the exams' view, the summary and the progress page."""

from __future__ import annotations

from typing import Any

import numpy as np

from transformer_lite import content, course, journal, practice
from transformer_lite.explore.tables import Page, Table
from transformer_lite.lab.examining import lenses
from transformer_lite.lab.session import events, friendly, say_trouble
from transformer_lite.language import current, message

STATES = ("yours", "with_help", "seen", "tried")


@friendly
def exam_view(chapter: str | int) -> Page:
    """The exams' view of a chapter (非公式 / unofficial): the traps that its questions use most, and what each exam asks.

    Made from ``traps.yaml`` and the bank of questions. The G検定 comes first, without what only code can get wrong; the E資格
    adds what is not among the cards of the G検定.
    """
    where = course.chapter(chapter)
    return Page(message("lab.exam_title", chapter=where.title(current())), lenses(where), note=message("lab.unofficial"))


@friendly
def summary(chapter: str | int) -> Page:
    """The card that closes a chapter: its terms in both languages, what to look at again, and what comes next."""
    where = course.chapter(chapter)
    lang = current()
    new, met = _terms(where)
    terms = Table(
        message("lab.terms"),
        ["日本語", "English", message("lab.term_meaning")],
        [[term.ja, term.en, term.definition(lang)] for term in new],
    )
    following = [other for other in course.chapters() if other.number > where.number]
    lines = [message("lab.again", what=what) for what in _look_again(where.id)] or [message("lab.nothing_due")]
    if following:
        lines.append(message("lab.next_chapter", number=following[0].number, title=following[0].title(lang)))
    else:
        lines.append(message("lab.last_chapter"))
    if met:
        both = message("lab.lens_comma").join(f"{term.ja} ({term.en})" for term in met)
        lines.insert(0, message("lab.terms_met", terms=both))
    return Page(message("lab.summary_title", chapter=where.title(lang)), [terms], note="\n".join(lines))


@friendly
def progress() -> Page:
    """How far you are: per chapter and per trap. Yours, with help, seen, tried; a picture and the same as a table."""
    lang = current()
    states = journal.exercise_states(events())
    answers = journal.question_states(events())
    rows: list[list[str]] = []
    bars: list[tuple[str, dict[str, int], int]] = []
    for where in course.chapters():
        exercises = [exercise.id for exercise in practice.exercises().values() if exercise.chapter == where.id]
        questions = _bank(where.id)
        if not exercises and not questions:
            continue
        counts = {state: sum(states.get(name) == state for name in exercises) for state in STATES}
        right = sum(answers[name].correct is True for name in questions if name in answers)
        answered = sum(name in answers for name in questions)
        label = f"{where.number}. {where.title(lang)}"
        rows.append(
            [label, *(str(counts[state]) for state in counts), str(len(exercises)), f"{right} / {answered} / {len(questions)}"]
        )
        if exercises:
            bars.append((label, counts, len(exercises)))
    chapters = Table(
        message("lab.progress_chapters"),
        [message(f"lab.progress_{column}") for column in ("chapter", "yours", "with_help", "seen", "tried", "all", "questions")],
        rows,
        row_headers=True,
    )
    met = [
        [f"{_trap_title(key, lang)} [{key}]", str(count.met), count.last.date().isoformat(), _yes(count.passed_since)]
        for key, count in sorted(journal.trap_counts(events()).items(), key=lambda item: -item[1].met)
    ]
    traps = Table(
        message("lab.progress_traps"),
        [message(f"lab.progress_{column}") for column in ("trap", "met", "last", "passed_since")],
        met,
        row_headers=True,
        empty=message("lab.no_traps_yet"),
    )
    if not journal.recording():
        note = message("lab.journal_off")
    else:
        say_trouble(journal.default())
        note = message("lab.journal_at", path=journal.default().path)
    title = message("lab.progress_title")
    return Page(title, [chapters, traps], note=note, picture=_progress_picture(bars, title))


def _progress_picture(bars: list[tuple[str, dict[str, int], int]], title: str) -> Any:
    """One bar a chapter, split by how its exercises were solved; told apart by hatching and number as well as by colour."""
    from transformer_lite.explore import figures

    with figures.style():
        figure = figures.new_figure(900, 150 + 46 * len(bars))
        axes = figure.add_subplot()
        left = np.zeros(len(bars))
        for state, colour, hatch in zip(STATES, figures.COLOURS, ("", "//", "..", "xx"), strict=False):
            counts = np.array([bar[1][state] for bar in bars])
            name = message(f"lab.progress_{state}")
            drawn = axes.barh(range(len(bars)), counts, left=left, color=colour, hatch=hatch, edgecolor="white", label=name)
            axes.bar_label(drawn, [str(count) if count else "" for count in counts], label_type="center", color="white")
            left += counts
        totals = [bar[2] for bar in bars]
        axes.barh(range(len(bars)), totals, facecolor="none", edgecolor="black", label=message("lab.progress_all"))
        axes.set_yticks(range(len(bars)), [bar[0] for bar in bars])
        axes.invert_yaxis()
        axes.set_xlim(0, max([1, *totals]) + 0.2)
        axes.xaxis.get_major_locator().set_params(integer=True)
        axes.set_xlabel(message("lab.progress_axis"))
        axes.set_title(title)
        figure.legend(loc="outside lower center", ncols=5, frameon=False)
        return figures.Picture(figures.to_png(figure), title, [], "")


def _terms(where: course.Chapter) -> tuple[list[Any], list[Any]]:
    """The chapter's terms: those that it introduces, and those that an earlier chapter has introduced."""
    numbers = {chapter.id: chapter.number for chapter in course.chapters()}
    new, met = [], []
    for term in content.glossary(where.id):
        first = min((numbers[chapter] for chapter in term.chapters if chapter in numbers), default=where.number)
        (new if first >= where.number else met).append(term)
    return new, met


def _look_again(chapter: str) -> list[str]:
    """What is due: questions whose last answer was wrong, and traps met and not passed since."""
    lang = current()
    happened = events()
    due = [
        (question.plain or question.stem)(lang)
        for question in content.questions(chapter)
        if (state := journal.question_states(happened).get(question.id)) is not None and state.correct is False
    ]
    for key, count in journal.trap_counts(happened).items():
        trap = content.traps().get(key)
        if trap is not None and trap.chapter == chapter and not count.passed_since:
            due.append(f"{trap.title(lang)} [{key}]")
    return due


def _bank(chapter: str) -> list[str]:
    try:
        return [question.id for question in content.questions(chapter) if question.kind != "recall"]  # as the quiz counts
    except content.Unknown:
        return []


def _trap_title(key: str, lang: str) -> str:
    trap = content.traps().get(key)
    return trap.title(lang) if trap else ""


def _yes(value: bool) -> str:
    return message("lab.yes" if value else "lab.no")

