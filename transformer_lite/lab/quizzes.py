"""The verbs of questions: quiz, answer, predict, recall."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transformer_lite import content, course, journal
from transformer_lite import quiz as quiz_room
from transformer_lite.lab.session import LabError, events, friendly, in_notebook, record, say, static
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question

_asked: Any = ()  # what was shown last: the questions as they were numbered, or the card that holds them
_exam: str | None = None  # where the learner left the switch of a quiz card


@friendly
def quiz(chapter: str | int, *, exam: str | None = None, form: str | None = None) -> Any:
    """Ask the questions of a chapter, free recall apart (`recall`): first those answered wrongly, then those never answered.

    Args:
        chapter: a chapter's id, number or file name.
        exam: "g-kentei" or "e-shikaku" for that exam's questions only; the card's switch can be moved from there. None = where
            that switch was left in this session (in the text form, which has none: all).
        form: "widgets" or "text"; None = widgets where they can be shown.

    Returns:
        The widget to show; None in the text form, which is printed.

    Raises:
        LabError: there is no such chapter, or it has no questions.
    """
    if exam not in (None, "g-kentei", "e-shikaku"):
        raise LabError(message("lab.exam_what", exam=repr(exam)))
    questions = [question for question in _questions(chapter) if question.kind != "recall"]
    return _ask(questions, form, exam)


@friendly
def recall(chapter: str | int, *, form: str | None = None) -> Any:
    """Ask the free-recall prompts of a chapter: type an answer, compare, and mark it yourself."""
    questions = [question for question in _questions(chapter) if question.kind == "recall"]
    return _ask(questions, form)


@friendly
def answer(which: str | int, value: Any) -> quiz_room.Grade | None:
    """Answer a question by its id or its number in the list shown last; print what is right and why.

    Args:
        which: the question's id (or a prediction's), or its number in the quiz shown last.
        value: "b"; a list for several options, an order of steps; a mapping of rows; a number; your own words, and then a mark.

    Raises:
        LabError: there is no such question, or the answer is not of its kind; nothing is recorded then.
    """
    try:
        if isinstance(which, str) and which in content.library().predictions:
            return _guess(content.prediction(which), value)
        question = _numbered(which) if isinstance(which, int) else content.question(which)
        grade = quiz_room.grade(question, value)
    except quiz_room.InvalidAnswer as error:
        raise LabError(error.text(current())) from None
    if question.kind != "recall" or grade.correct is not None:  # free recall counts once it is marked
        _record_answer(question, grade)
    say(quiz_room.explain_text(question, grade, current()))
    return grade


@friendly
def predict(prediction_id: str) -> Any:
    """Ask for a guess before reading on: one click, never graded."""
    prediction = content.prediction(prediction_id)
    earlier = next((event for event in reversed(events()) if event.kind == "predict" and event.subject == prediction_id), None)
    if not static() and not in_notebook():
        say(quiz_room.prediction_text(prediction, current()))
        return None
    return quiz_room.prediction_form(
        prediction, _record_prediction, current(), answered=earlier.parameters.get("chosen") if earlier else None
    )


def _questions(chapter: str | int) -> tuple[Question, ...]:
    return content.questions(course.chapter(chapter).id)


def _ask(questions: list[Question], form: str | None, exam: str | None = None) -> Any:
    global _asked
    wanted = [question for question in questions if exam in (None, *question.exams)]
    if not wanted:
        say(message("lab.no_questions"))
        return None
    if form not in (None, "widgets", "text"):
        raise LabError(message("lab.form_what", form=repr(form)))
    if static():
        _asked = quiz_room.by_exam(wanted)
        return quiz_room.static_form(_asked, current())
    happened = events()
    if form == "text" or (form is None and not in_notebook()):
        _asked = _most_needed_first(wanted, happened)
        say(quiz_room.as_text(_asked, current()))
        return None
    _asked = quiz_room.form(
        _most_needed_first(questions, happened),
        _record_answer,
        current(),
        answered=_earlier_answers(questions, happened),
        exam=exam or _exam,
        on_exam=_remember,
    )
    return _asked


def _remember(exam: str | None) -> None:
    global _exam
    _exam = exam


def _most_needed_first(questions: list[Question], happened: list[journal.Event]) -> list[Question]:
    """Those whose last answer was wrong, those never answered, and those answered rightly, the longest ago first."""
    states = journal.question_states(happened)

    def need(question: Question) -> tuple[int, float]:
        state = states.get(question.id)
        if state is None:
            return 1, 0.0
        return (2, state.last.timestamp()) if state.correct else (0, 0.0)

    return sorted(questions, key=need)


def _earlier_answers(questions: list[Question], happened: list[journal.Event]) -> dict[str, Any]:
    ids = {question.id for question in questions}
    answered: dict[str, Any] = {}
    for event in happened:
        if event.kind == "answer" and event.subject in ids:
            answered[event.subject] = event.parameters.get("chosen")
    return answered


def _record_answer(question: Question, grade: quiz_room.Grade) -> None:
    # The journal holds codes, not sentences: of free recall only the learner's own mark is kept.
    chosen = {"mark": grade.chosen.get("mark")} if question.kind == "recall" else grade.chosen
    record(
        "answer",
        question.id,
        version=question.version,
        correct=grade.correct,
        chosen=chosen,
        traps=list(grade.traps),
        chapter=question.chapter,
    )


def _guess(prediction: Prediction, value: Any) -> None:
    chosen = quiz_room.predicted(prediction, value)
    _record_prediction(prediction, chosen)
    say(prediction.after(current()))


def _record_prediction(prediction: Prediction, chosen: str) -> None:
    record("predict", prediction.id, chosen=chosen, chapter=prediction.chapter)


def _numbered(number: int) -> Question:
    asked = getattr(_asked, "asked", _asked)
    if not asked:
        raise LabError(message("lab.no_quiz_yet"))
    if not 1 <= number <= len(asked):
        raise LabError(message("lab.number_range", number=number, count=len(asked)))
    return asked[number - 1]
