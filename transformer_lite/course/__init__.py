"""The chapters: which there are, how they are built from their sources, and the learner's own copies of them."""

from __future__ import annotations

from transformer_lite.course.building import BuildError, build, solved, stale
from transformer_lite.course.listing import Chapter, CourseError, Section, UnknownChapter, chapter, chapters

__all__ = [
    "BuildError",
    "Chapter",
    "CourseError",
    "Section",
    "UnknownChapter",
    "build",
    "chapter",
    "chapters",
    "solved",
    "stale",
]
