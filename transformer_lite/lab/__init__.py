"""The learner's front door: ``from transformer_lite import lab``.

Every verb a notebook uses is here. ``lab`` renders text in the learner's language and is the only room that writes the journal.
"""

from transformer_lite.lab.exercises import ExerciseFunction, check, exercise, hint, reset, solution, use
from transformer_lite.lab.health import doctor
from transformer_lite.lab.mapping import exam_map, handout
from transformer_lite.lab.pages import exam_view, progress, summary
from transformer_lite.lab.pictures import experiment, explore
from transformer_lite.lab.quizzes import answer, predict, quiz, recall
from transformer_lite.lab.session import LabError, device, start
from transformer_lite.lab.tables import compare, matrices, matrix, reveal, table
from transformer_lite.lab.translating import train, translate, translator

__all__ = [
    "ExerciseFunction",
    "LabError",
    "answer",
    "check",
    "compare",
    "device",
    "doctor",
    "exam_map",
    "exam_view",
    "exercise",
    "experiment",
    "explore",
    "handout",
    "hint",
    "matrices",
    "matrix",
    "predict",
    "progress",
    "quiz",
    "recall",
    "reset",
    "reveal",
    "solution",
    "start",
    "summary",
    "table",
    "train",
    "translate",
    "translator",
    "use",
]
