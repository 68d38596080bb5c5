"""What a question, a trap and a term are: the shapes that the YAML files of ``quizzes/`` must have.

Strict: unknown keys, wrong types and one-sided texts are errors. The same models read the compiled form at run time.
"""

from __future__ import annotations

import math
import unicodedata
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, StringConstraints, field_validator, model_validator

NonEmpty = Annotated[str, StringConstraints(min_length=1, pattern=r"\S")]
Key = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*$")]
QuestionId = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9]*([.-][a-z0-9]+)*$", max_length=100)]
TrapKey = Annotated[str, StringConstraints(pattern=r"^[A-Z]{2}[0-9]{1,2}$")]
Exam = Literal["g-kentei", "e-shikaku"]


class Model(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)


class Both(Model):
    """One text in both languages. ``text("ja")`` gives the Japanese."""

    ja: NonEmpty
    en: NonEmpty

    def __call__(self, lang: str) -> str:
        return self.ja if lang == "ja" else self.en


class Common(Model):
    """What every question has, whatever its kind."""

    id: QuestionId
    version: int = Field(default=1, ge=1)
    exams: list[Exam] = Field(min_length=1)
    difficulty: Literal[1, 2, 3]
    patterns: list[Annotated[str, StringConstraints(pattern=r"^P[0-9]{2}$")]] = []
    anchor: NonEmpty  # the chapter's section that teaches it: its {#anchor}
    stem: Both
    plain: Both | None = None  # the stem without TeX, where the stem has any
    code: NonEmpty | None = None  # shown under the stem; run by the tests
    picture: NonEmpty | None = None  # a picture of the explorers, by name
    check: NonEmpty | None = None  # a Python expression; the tests compare its value with the key
    source: NonEmpty | None = None  # section, figure or equation of the paper
    retired: bool = False
    chapter: str = ""  # filled in from the file
    file: str = ""
    line: int = 0

    @model_validator(mode="after")
    def _plain_twin(self) -> Common:
        if "$" in self.stem.ja + self.stem.en and self.plain is None:
            raise ValueError("a stem with TeX needs `plain`: the same without TeX")
        return self


class Option(Model):
    key: Key
    text: Both
    why: Both
    correct: bool = False
    trap: TrapKey | None = None
    value: NonEmpty | None = None  # a Python literal, compared with the question's `check`


class Choice(Common):
    options: list[Option] = Field(min_length=2, max_length=8)
    shuffle: bool = True

    @model_validator(mode="after")
    def _distinct(self) -> Choice:
        _unique([option.key for option in self.options], "option keys")
        for lang in ("ja", "en"):
            _unique([normalised(option.text(lang)) for option in self.options], f"option texts ({lang})")
        for option in self.options:
            if option.correct and option.trap:
                raise ValueError(f"option {option.key} is correct, so it cannot have a trap")
        return self


class Single(Choice):
    """Choose one."""

    kind: Literal["single"]

    @model_validator(mode="after")
    def _one_correct(self) -> Single:
        if sum(option.correct for option in self.options) != 1:
            raise ValueError("exactly one option must be correct")
        return self


class Multiple(Choice):
    """Choose all that apply."""

    kind: Literal["multiple"]

    @model_validator(mode="after")
    def _some_correct(self) -> Multiple:
        right = sum(option.correct for option in self.options)
        if right == 0 or right == len(self.options):
            raise ValueError("at least one option must be correct and at least one wrong")
        return self


class Near(Model):
    """A wrong number that people get, and what it shows."""

    value: float
    why: Both
    trap: TrapKey | None = None
    check: NonEmpty | None = None

    @field_validator("value")
    @classmethod
    def _finite(cls, value: float) -> float:
        return _finite(value)


class Numeric(Common):
    """Type a number."""

    kind: Literal["numeric"]
    answer: float
    tolerance: float = Field(default=1e-9, ge=0)  # absolute
    unit: Both | None = None
    why: Both
    near: list[Near] = []

    @field_validator("answer", "tolerance")
    @classmethod
    def _finite(cls, value: float) -> float:
        return _finite(value)

    @model_validator(mode="after")
    def _near_is_wrong(self) -> Numeric:
        for near in self.near:
            if abs(near.value - self.answer) <= self.tolerance:
                raise ValueError(f"the near value {near.value} would be accepted as right")
        return self


class Step(Model):
    key: Key
    text: Both
    why: Both


class Ordering(Common):
    """Put the steps in order. They are listed in the right order."""

    kind: Literal["ordering"]
    steps: list[Step] = Field(min_length=3, max_length=8)
    trap: TrapKey | None = None  # what a wrong order shows

    @model_validator(mode="after")
    def _distinct(self) -> Ordering:
        _unique([step.key for step in self.steps], "step keys")
        return self


class Row(Model):
    key: Key
    text: Both
    choice: Key
    why: Both
    traps: dict[Key, TrapKey] = {}  # which trap a wrong choice shows


class Target(Model):
    key: Key
    text: Both


class Matching(Common):
    """Match each row with one choice. A choice may be used more than once, or not at all."""

    kind: Literal["matching"]
    rows: list[Row] = Field(min_length=2, max_length=8)
    choices: list[Target] = Field(min_length=2, max_length=8)

    @model_validator(mode="after")
    def _complete(self) -> Matching:
        _unique([row.key for row in self.rows], "row keys")
        _unique([choice.key for choice in self.choices], "choice keys")
        known = {choice.key for choice in self.choices}
        for row in self.rows:
            for key in (row.choice, *row.traps):
                if key not in known:
                    raise ValueError(f"row {row.key}: there is no choice {key!r}")
            if row.choice in row.traps:
                raise ValueError(f"row {row.key}: the right choice {row.choice!r} cannot show a trap")
        return self


class Recall(Common):
    """Say it yourself: type freely, then compare with the model answer and mark yourself."""

    kind: Literal["recall"]
    answer: Both
    points: list[Both] = Field(min_length=1)  # what the answer should contain


Question = Annotated[Single | Multiple | Numeric | Ordering | Matching | Recall, Field(discriminator="kind")]
KINDS = ("single", "multiple", "numeric", "ordering", "matching", "recall")


class Prediction(Model):
    """A guess before reading on: one click, never graded."""

    id: QuestionId
    stem: Both
    options: list[Option] = Field(min_length=2, max_length=5)
    after: Both  # what is said once a guess is made: where the answer will be found
    chapter: str = ""
    file: str = ""
    line: int = 0

    @model_validator(mode="after")
    def _one_correct(self) -> Prediction:
        _unique([option.key for option in self.options], "option keys")
        if sum(option.correct for option in self.options) != 1:
            raise ValueError("exactly one option must be correct")
        return self


class Bank(Model):
    """One file of questions: those of one chapter."""

    schema_version: Literal[1]
    chapter: QuestionId
    questions: list[Question] = Field(min_length=1)
    predictions: list[Prediction] = []


class Trap(Model):
    """A named misconception that the exams exploit. Its key is the catalogue's code."""

    key: TrapKey
    family: NonEmpty  # the exercise or topic: softmax, attention, causal-mask, ... or "idea" where there is no code
    title: Both
    rule: Both  # what is right
    line: Both  # one good line of explanation
    exams: list[Exam] = []
    chapter: QuestionId
    anchor: NonEmpty | None = None
    ideas: list[TrapKey] = []  # the misconceptions (MC..) that this code embodies
    asked: Both | None = None  # how the exams ask it
    tempts: Both | None = None  # why it tempts
    hints: list[Both] = []
    snippet: NonEmpty | None = None  # a readable wrong version
    file: str = ""
    line_number: int = 0


class TrapFile(Model):
    schema_version: Literal[1]
    traps: list[Trap] = Field(min_length=1)


class Term(Model):
    """A term of the field in both languages."""

    id: QuestionId
    ja: NonEmpty
    en: NonEmpty
    variants: list[NonEmpty] = []
    definition: Both
    chapters: list[QuestionId] = Field(min_length=1)


class Glossary(Model):
    schema_version: Literal[1]
    terms: list[Term] = Field(min_length=1)


class Place(Model):
    """A section of a chapter."""

    chapter: QuestionId
    anchor: NonEmpty


class InventoryRow(Model):
    """One statement that the course must teach, and where it does."""

    row: Annotated[str, StringConstraints(pattern=r"^S[02]-[0-9]{2,3}$")]
    what: Both
    taught: list[Place] = Field(min_length=1)


class Inventory(Model):
    schema_version: Literal[1]
    rows: list[InventoryRow] = Field(min_length=1)


def normalised(text: str) -> str:
    """``text`` as it is compared: NFKC, lower case, single spaces."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise ValueError("must be a finite number")
    return value


def _unique(values: list[str], what: str) -> None:
    repeated = sorted({value for value in values if values.count(value) > 1})
    if repeated:
        raise ValueError(f"{what} must differ; repeated: {', '.join(repeated)}")
