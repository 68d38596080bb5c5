"""The journal: what the learner did, as events in one SQLite file, and what follows from them, as codes.

Events are only ever added. They hold codes and parameters, no sentences, so that any language can tell them later and the union
of two files is what was done on two machines. What a learner has "solved" is never stored: it is worked out from the events.

Trouble with the file never stops a lesson: what cannot be written is kept in memory and written as soon as it can be.
"""

from transformer_lite.journal.events import Event
from transformer_lite.journal.file import Journal, default, trouble_message
from transformer_lite.journal.place import home, recording
from transformer_lite.journal.states import (
    ChapterProgress,
    QuestionState,
    TrapCount,
    chapter_progress,
    exercise_states,
    question_states,
    trap_counts,
)

__all__ = [
    "ChapterProgress",
    "Event",
    "Journal",
    "QuestionState",
    "TrapCount",
    "chapter_progress",
    "default",
    "exercise_states",
    "home",
    "question_states",
    "recording",
    "trap_counts",
    "trouble_message",
]
