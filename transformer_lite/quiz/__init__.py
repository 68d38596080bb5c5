"""Questions: reading and grading answers, the forms they are answered in, and the explanations that follow."""

from transformer_lite.quiz.grading import Feedback, Grade, InvalidAnswer, grade, judge, predicted, read
from transformer_lite.quiz.shuffling import Paper
from transformer_lite.quiz.text import as_text, by_exam, explain_text, prediction_text, static_form
from transformer_lite.quiz.widgets import form, prediction_form

__all__ = [
    "Feedback",
    "Grade",
    "InvalidAnswer",
    "Paper",
    "as_text",
    "by_exam",
    "explain_text",
    "form",
    "grade",
    "judge",
    "predicted",
    "prediction_form",
    "prediction_text",
    "read",
    "static_form",
]
