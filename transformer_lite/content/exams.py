"""The two exams: which sections serve which of their fields (``syllabus.yaml``), and what to remember (``handouts.yaml``)."""

from __future__ import annotations

from functools import cache
from typing import Any, Literal, TypeVar

from pydantic import Field, ValidationError

from transformer_lite.content.loading import ContentError
from transformer_lite.content.places import quizzes_dir
from transformer_lite.content.schema import Both, Exam, Model, NonEmpty, QuestionId

File = TypeVar("File", bound=Model)
SYLLABUS, HANDOUTS = "syllabus.yaml", "handouts.yaml"


class Point(Model):
    """Something to know, and the sections that teach it: {chapter: [anchor, ...]}."""

    name: Both
    sections: dict[QuestionId, list[NonEmpty]] = Field(min_length=1)

    def places(self) -> set[tuple[str, str]]:
        """(chapter, anchor) of its sections."""
        return {(chapter, anchor) for chapter, anchors in self.sections.items() for anchor in anchors}


class Item(Model):
    """A field of an exam. ``number`` follows public transcriptions; "" where there is none."""

    id: QuestionId
    number: str
    name: Both
    points: list[Point] = Field(min_length=1)


class ExamMap(Model):
    id: Exam
    name: Both
    edition: NonEmpty
    items: list[Item] = Field(min_length=1)


class Syllabus(Model):
    schema_version: Literal[1]
    unofficial: Both
    exams: list[ExamMap] = Field(min_length=1)


class Block(Model):
    """A few lines under one title."""

    title: Both
    lines: list[Both] = Field(min_length=1)


class Handout(Model):
    """What to remember before an exam, on one page."""

    exam: Exam
    title: Both
    blocks: list[Block] = Field(min_length=1)


class Handouts(Model):
    schema_version: Literal[1]
    unofficial: Both
    handouts: list[Handout] = Field(min_length=1)


@cache
def syllabus() -> Syllabus:
    """Both exams' fields. `ContentError` where the file is not as it must be."""
    return _read(SYLLABUS, Syllabus)


@cache
def handouts() -> Handouts:
    """Both exams' pages of what to remember. `ContentError` where the file is not as it must be."""
    return _read(HANDOUTS, Handouts)


def _read(name: str, shape: type[File]) -> File:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    path = quizzes_dir() / name
    try:
        data: Any = YAML(typ="safe").load(path.read_text("utf-8-sig"))
        return shape.model_validate(data)
    except (OSError, UnicodeDecodeError, YAMLError) as error:
        raise ContentError([f"{name}:1: cannot be read ({error})"]) from None
    except ValidationError as error:
        places = ((".".join(map(str, each["loc"])), each["msg"]) for each in error.errors())
        raise ContentError([f"{name}:1: {place}: {what}" for place, what in places]) from None
