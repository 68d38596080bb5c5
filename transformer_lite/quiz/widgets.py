"""The forms that a learner answers in, by mouse or keyboard."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any

from transformer_lite import language

if TYPE_CHECKING:
    from transformer_lite.content.schema import Prediction, Question
    from transformer_lite.quiz.grading import Grade


def form(
    questions: Iterable[Question],
    on_answer: Callable[[Question, Grade], Any] | None = None,
    lang: str | None = None,
    answered: Mapping[str, Any] | None = None,
    *,
    exam: str | None = None,
    on_exam: Callable[[str | None], Any] | None = None,
    seed: int | str | None = None,
    sections: Mapping[str, str] | None = None,
    pictures: Callable[[str], Any] | None = None,
) -> Any:
    """A quiz, one card at a time, ten to a session: an ipywidget, or its plain form when ``TRANSFORMER_LITE_STATIC=1``.

    Args:
        questions: in the order in which they are asked, those of both exams.
        on_answer: called with the question and its `Grade` after each answer that could be read; for a recalled answer after the
            learner has marked it.
        answered: question id -> the ``chosen`` of an earlier `Grade` (for a recalled answer its mark is enough).
        exam: "g-kentei" or "e-shikaku": where the card's switch stands at first; None = both. Where the questions are all for the
            same exams there is no switch.
        on_exam: called with "g-kentei", "e-shikaku" or None whenever the learner moves the switch.
        seed: shuffles the letters; None for those that the text form and `grade` use.
        sections: anchor -> heading; those of each question's chapter if None.
        pictures: name -> picture with ``png`` and ``text``.
    """
    from transformer_lite.quiz import text

    lang = language.check_language(lang or language.current())
    questions = tuple(questions)
    if not questions or os.environ.get("TRANSFORMER_LITE_STATIC") == "1":
        return text.static_form([question for question in questions if exam in (None, *question.exams)], lang, seed)
    from transformer_lite.quiz.card import QuizCard

    return QuizCard(questions, on_answer, lang, answered, exam, on_exam, seed, sections, pictures)


def prediction_form(
    prediction: Prediction,
    on_answer: Callable[[Prediction, str], Any] | None = None,
    lang: str | None = None,
    answered: str | None = None,
) -> Any:
    """A one-click guess, not graded: an ipywidget, or its plain form when ``TRANSFORMER_LITE_STATIC=1``.

    ``on_answer`` is called with the prediction and the key of the option chosen; ``answered`` is that key from an earlier time.
    """
    from transformer_lite.quiz import text

    lang = language.check_language(lang or language.current())
    if os.environ.get("TRANSFORMER_LITE_STATIC") == "1":
        return text.static_prediction(prediction, lang)
    from transformer_lite.quiz.card import PredictionCard

    return PredictionCard(prediction, on_answer, lang, answered)
