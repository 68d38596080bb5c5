"""Reads an answer as a learner types it, and grades it. No display, no journal: what happened goes back to the caller.

An answer has two forms. What the learner gives uses the *letters shown* ("b", 2, "a,c", "1/8", {1: "b"}); `read` turns it into
the *chosen* form, which uses the keys of the YAML, is JSON-able, and is what a journal keeps. `judge` grades the chosen form.
"""

from __future__ import annotations

import math
import numbers
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from transformer_lite import language
from transformer_lite.quiz.shuffling import LETTERS, shown_order

if TYPE_CHECKING:
    from transformer_lite.content.schema import Both, Prediction, Question

LONGEST_NUMBER = 100  # characters
LONGEST_TEXT = 10_000
MARKS = (0, 1, 2)  # how much of a recalled answer the learner said: not yet, some of it, all the points


class InvalidAnswer(ValueError):
    """An answer that cannot be read, so it is neither right nor wrong and must not be recorded.

    ``key`` is the message's key in the catalogue and ``parameters`` what fills it; ``text(lang)`` says it.
    """

    def __init__(self, key: str, **parameters: object):
        self.key, self.parameters = key, parameters
        super().__init__(key)

    def text(self, lang: str | None = None) -> str:
        return language.message(self.key, lang, **self.parameters)

    def __str__(self) -> str:
        return self.text()


class Feedback(NamedTuple):
    """What is to be said about one part of a question: its key, a verdict code, and the reason in both languages.

    Verdicts: ``chosen_right``, ``chosen_wrong``, ``missed`` (right, not chosen), ``left`` (wrong, rightly not chosen);
    ``model`` and ``point`` for a recalled answer.
    """

    part: str
    verdict: str
    why: Both


@dataclass(frozen=True)
class Grade:
    """How an answer was graded. ``feedback`` comes in the order in which it should be read: what was chosen first."""

    correct: bool | None  # None: a recalled answer that the learner has not marked yet
    chosen: Any  # the answer by keys, JSON-able
    traps: tuple[str, ...]
    feedback: tuple[Feedback, ...]
    right: Any  # the right answer in the form of ``chosen``; None for a recalled answer
    place: int | None = None  # ordering: the first place (from 1) that is wrong

    def __repr__(self) -> str:
        """Short: the reasons are shown as a card, by the letters shown, and the keys in ``chosen`` are other letters."""
        return f"Grade(correct={self.correct}, traps={self.traps})"

    def _ipython_display_(self) -> None:
        """Nothing: as the last line of a cell it stands below what has been explained already."""


def grade(question: Question, answer: object, seed: int | str | None = None) -> Grade:
    """Grade what a learner typed or clicked, by the letters shown for ``seed``. Raises `InvalidAnswer`.

    single: ``"b"`` or ``2``. multiple: ``"a,c"`` or ``["a", "c"]``. numeric: a number or text such as ``"1/8"``.
    ordering: ``"c,a,b"`` or a list. matching: ``{1: "b", 2: "a"}`` or ``"1b 2a"``. recall: text, or a mark 0, 1, 2.
    """
    return judge(question, read(question, answer, seed))


def read(question: Question, answer: object, seed: int | str | None = None, order: tuple[str, ...] | None = None) -> Any:
    """The chosen form of a learner's answer. Raises `InvalidAnswer`.

    ``order``: the keys as they were shown, where another order than that of ``seed`` was.
    """
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise InvalidAnswer("quiz.invalid.empty")
    order = shown_order(question, seed) if order is None else order
    match question.kind:
        case "single":
            return _one(answer, order)
        case "multiple":
            chosen = {_option(token, order) for token in _tokens(answer, order)}
            return [option.key for option in question.options if option.key in chosen]
        case "numeric":
            return number(answer, units=(question.unit.ja, question.unit.en) if question.unit else ())
        case "ordering":
            chosen = [_option(token, order) for token in _tokens(answer, order)]
            if sorted(chosen) != sorted(order):
                raise _order_problem(order)
            return chosen
        case "matching":
            return _pairs(question, answer, order)
        case _:
            return _recalled(answer)


def predicted(prediction: Prediction, answer: object) -> str:
    """The key of the option that a learner guessed, by letter or number. Raises `InvalidAnswer`."""
    if answer is None or (isinstance(answer, str) and not answer.strip()):
        raise InvalidAnswer("quiz.invalid.empty")
    return _one(answer, shown_order(prediction))


def judge(question: Question, chosen: Any) -> Grade:
    """Grade the chosen form (keys, as a journal keeps it). Raises `InvalidAnswer` when it does not fit the question."""
    judges = {
        "single": _judge_options,
        "multiple": _judge_options,
        "numeric": _judge_number,
        "ordering": _judge_order,
        "matching": _judge_pairs,
        "recall": _judge_recall,
    }
    return judges[question.kind](question, chosen)


# ---------------------------------------------------------------------------------------------------------------------- reading


def number(answer: object, units: Iterable[str] = ()) -> float:
    """The finite number that ``answer`` means: NFKC, any minus sign, fractions, thousands commas. Raises `InvalidAnswer`.

    >>> number("１，０００"), number("−½"), number("1e－3")
    (1000.0, -0.5, 0.001)
    """
    if isinstance(answer, bool) or not isinstance(answer, str | numbers.Real):
        raise InvalidAnswer("quiz.invalid.number", given=_given(answer))
    if not isinstance(answer, str):
        return _finite(answer, answer)
    if len(answer) > LONGEST_NUMBER:
        raise InvalidAnswer("quiz.invalid.long", limit=LONGEST_NUMBER)
    text = _folded(answer)
    for unit in sorted((_folded(unit) for unit in units), key=len, reverse=True):
        if unit and text.endswith(unit) and text != unit:
            text = text.removesuffix(unit).strip()
            break
    # NFKC turns － into - but leaves these alone; ー and ‐ are minus signs only before a digit or after an exponent's e.
    text = re.sub(r"[−–—‐‑ー](?=[\d.])", "-", text).replace("⁄", "/")
    # ASCII digits only: float() would also take underscores, "nan" and the digits of other scripts.
    sign, plain = r"[+-]?\s*", r"(?:\d+(?:\.\d*)?|\.\d+)"
    commas = r"[1-9]\d{0,2}(?:,\d{3})+(?:\.\d*)?"
    if "," in text:
        if not re.fullmatch(sign + commas, text, re.ASCII):
            raise InvalidAnswer("quiz.invalid.comma", given=_given(answer))
        text = text.replace(",", "")
    # NFKC makes 21/2 of "2½", which means 2.5.
    if mixed := re.fullmatch(r"\s*([+\-−ー－]?)\s*([0-9０-９]+)\s*([¼½¾⅐-⅞])\s*", answer):
        whole = int(unicodedata.normalize("NFKC", mixed[2])) + unicodedata.numeric(mixed[3])
        return -whole if mixed[1] not in ("", "+") else whole
    if fraction := re.fullmatch(f"({sign}{plain})\\s*/\\s*({sign}{plain})", text, re.ASCII):
        top, bottom = (Fraction(part.replace(" ", "")) for part in fraction.groups())
        if bottom == 0:
            raise InvalidAnswer("quiz.invalid.zero", given=_given(answer))
        return _finite(top / bottom, answer)
    if re.fullmatch(f"{sign}{plain}(?:e[+-]?\\d+)?", text, re.ASCII):
        return _finite(text.replace(" ", ""), answer)
    if text.lstrip("+-") in ("nan", "inf", "infinity", "∞"):
        raise InvalidAnswer("quiz.invalid.finite", given=_given(answer))
    raise InvalidAnswer("quiz.invalid.number", given=_given(answer))


def _finite(value: Any, answer: object) -> float:
    try:
        result = float(value)
    except OverflowError:
        result = math.inf
    if not math.isfinite(result):
        raise InvalidAnswer("quiz.invalid.finite", given=_given(answer))
    return result + 0.0  # -0.0 becomes 0.0, which reads better


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _given(answer: object) -> str:
    """What was given, short enough for a message."""
    text = answer if isinstance(answer, str) else repr(answer)
    text = "".join(character if character.isprintable() else " " for character in text).strip()
    return text if len(text) <= 40 else text[:39] + "…"


def _shown(order: tuple[str, ...]) -> str:
    return ", ".join(LETTERS[: len(order)])


def _one(answer: object, order: tuple[str, ...]) -> str:
    if isinstance(answer, list | tuple | set | frozenset | dict):
        raise InvalidAnswer("quiz.invalid.one", letters=_shown(order))
    return _option(answer, order)


def _option(token: object, order: tuple[str, ...]) -> str:
    """The key meant by a letter shown, a 1-based number, or a key too long to be a letter."""
    if isinstance(token, str):
        text = _folded(token).strip("()[].。「」 ")
    elif isinstance(token, numbers.Integral) and not isinstance(token, bool):
        text = str(int(token))
    else:
        text = ""
    if len(text) == 1 and text.upper() in LETTERS[: len(order)]:
        return order[LETTERS.index(text.upper())]
    if re.fullmatch(r"[1-9]", text, re.ASCII) and int(text) <= len(order):
        return order[int(text) - 1]
    if len(text) > 1 and text in order:
        return text
    raise InvalidAnswer("quiz.invalid.letter", given=_given(token), letters=_shown(order))


def _tokens(answer: object, order: tuple[str, ...]) -> list[object]:
    """Several letters as one text ("a,c", "A、C", "ac") or as a collection."""
    if isinstance(answer, str):
        text = _folded(answer)
        tokens: list[object] = [token for token in re.split(r"[\s,、;/・→>]+", text) if token]
        if len(tokens) == 1 and len(text) > 1 and text not in order and text.isalnum():
            tokens = list(text)
    elif isinstance(answer, list | tuple | set | frozenset):
        tokens = list(answer)
    else:
        tokens = [answer]
    if not tokens:
        raise InvalidAnswer("quiz.invalid.empty")
    return tokens


def _order_problem(order: tuple[str, ...]) -> InvalidAnswer:
    letters = LETTERS[: len(order)].lower()
    return InvalidAnswer("quiz.invalid.order", letters=_shown(order), example=",".join(letters))


def _pairs(question: Any, answer: object, order: tuple[str, ...]) -> dict[str, str]:
    rows = [row.key for row in question.rows]
    if isinstance(answer, Mapping):
        given = list(answer.items())
    elif isinstance(answer, str) and re.search(r"\d", answer):
        text = _folded(answer)
        pair = r"(\d+)\s*[=:.\-→]*\s*([a-z])(?![a-z])"
        if re.sub(pair, "", text, flags=re.ASCII).strip(" ,、;/・"):
            raise InvalidAnswer("quiz.invalid.pairs", given=_given(answer))
        given = re.findall(pair, text, re.ASCII)
    elif isinstance(answer, str | list | tuple):
        given = list(zip(range(1, len(rows) + 1), _tokens(answer, order), strict=False))
    else:
        raise InvalidAnswer("quiz.invalid.pairs", given=_given(answer))
    chosen: dict[str, str] = {}
    for row, choice in given:
        if choice is not None and choice != "":
            chosen[_row(row, rows)] = _option(choice, order)
    missing = [str(place) for place, row in enumerate(rows, 1) if row not in chosen]
    if missing:
        raise InvalidAnswer("quiz.invalid.rows", missing=", ".join(missing))
    return {row: chosen[row] for row in rows}


def _row(name: object, rows: list[str]) -> str:
    text = _folded(str(name))
    if text in rows:
        return text
    if re.fullmatch(r"[1-9]", text, re.ASCII) and int(text) <= len(rows):
        return rows[int(text) - 1]
    raise InvalidAnswer("quiz.invalid.row", given=_given(name), last=len(rows))


def _recalled(answer: object) -> dict[str, Any]:
    if isinstance(answer, str):
        if len(answer) > LONGEST_TEXT:
            raise InvalidAnswer("quiz.invalid.long", limit=LONGEST_TEXT)
        return {"text": answer.strip(), "mark": None}
    if isinstance(answer, numbers.Integral) and not isinstance(answer, bool):
        if answer not in MARKS:
            raise InvalidAnswer("quiz.invalid.mark")
        return {"text": "", "mark": int(answer)}
    if isinstance(answer, Mapping) and set(answer) <= {"text", "mark"}:
        return _recalled_parts(answer.get("text", ""), answer.get("mark"))
    raise InvalidAnswer("quiz.invalid.text")


def _recalled_parts(text: object, mark: object) -> dict[str, Any]:
    if not isinstance(text, str) or len(text) > LONGEST_TEXT:
        raise InvalidAnswer("quiz.invalid.text")
    if isinstance(mark, bool) or mark not in (None, *MARKS):
        raise InvalidAnswer("quiz.invalid.mark")
    return {"text": text.strip(), "mark": mark}


# ---------------------------------------------------------------------------------------------------------------------- judging


def _judge_options(question: Any, chosen: Any) -> Grade:
    keys = [option.key for option in question.options]
    marked = [chosen] if question.kind == "single" else chosen
    if not isinstance(marked, list | tuple) or not marked or any(key not in keys for key in marked):
        raise InvalidAnswer("quiz.invalid.letter", given=_given(chosen), letters=_shown(tuple(keys)))
    verdicts = {True: {True: "chosen_right", False: "chosen_wrong"}, False: {True: "missed", False: "left"}}
    feedback = [Feedback(option.key, verdicts[option.key in marked][option.correct], option.why) for option in question.options]
    reading_order = ["chosen_wrong", "missed", "chosen_right", "left"]
    feedback.sort(key=lambda item: reading_order.index(item.verdict))
    right = [option.key for option in question.options if option.correct]
    traps = [option.trap for option in question.options if option.trap and option.key in marked]
    return Grade(
        correct=set(marked) == set(right),
        chosen=chosen if question.kind == "single" else [key for key in keys if key in marked],
        traps=_distinct(traps),
        feedback=tuple(feedback),
        right=right[0] if question.kind == "single" else right,
    )


def _judge_number(question: Any, chosen: Any) -> Grade:
    value = number(chosen)
    # The slack lets 0.35 count as within 0.05 of 0.3, whatever binary fractions make of it.
    slack = 1e-12 * max(1.0, abs(question.answer))
    correct = abs(value - question.answer) <= question.tolerance + slack
    met = None
    if not correct:
        # Someone who got 0.35355 may type 0.354: half a percent is still that number.
        met = min(question.near, key=lambda near: abs(value - near.value), default=None)
        if met is not None and abs(value - met.value) > max(question.tolerance, 0.005 * abs(met.value)) + slack:
            met = None
    feedback = [Feedback("answer", "chosen_right" if correct else "missed", question.why)]
    if met is not None:
        feedback.insert(0, Feedback(f"near:{met.value:.12g}", "chosen_wrong", met.why))
    feedback += [Feedback(f"near:{near.value:.12g}", "left", near.why) for near in question.near if near is not met]
    traps = (met.trap,) if met is not None and met.trap else ()
    return Grade(correct, value, traps, tuple(feedback), question.answer)


def _judge_order(question: Any, chosen: Any) -> Grade:
    right = [step.key for step in question.steps]
    if not isinstance(chosen, list | tuple) or sorted(map(str, chosen)) != sorted(right):
        raise _order_problem(tuple(right))
    place = next((i for i, (given, wanted) in enumerate(zip(chosen, right, strict=True), 1) if given != wanted), None)
    feedback = [
        Feedback(step.key, "chosen_right" if given == step.key else "chosen_wrong", step.why)
        for step, given in zip(question.steps, chosen, strict=True)
    ]
    if place is not None:
        # The step that belongs at the first wrong place comes first; the rest keeps the right order.
        feedback.insert(0, feedback.pop(place - 1))
    traps = (question.trap,) if place is not None and question.trap else ()
    return Grade(place is None, list(chosen), traps, tuple(feedback), right, place)


def _judge_pairs(question: Any, chosen: Any) -> Grade:
    choices = [choice.key for choice in question.choices]
    right = {row.key: row.choice for row in question.rows}
    if not isinstance(chosen, Mapping) or set(chosen) != set(right) or any(key not in choices for key in chosen.values()):
        raise InvalidAnswer("quiz.invalid.pairs", given=_given(chosen))
    feedback = [
        Feedback(row.key, "chosen_right" if chosen[row.key] == row.choice else "chosen_wrong", row.why) for row in question.rows
    ]
    feedback.sort(key=lambda item: item.verdict == "chosen_right")
    traps = [row.traps.get(chosen[row.key]) for row in question.rows]
    return Grade(
        correct=all(chosen[row] == choice for row, choice in right.items()),
        chosen={row: chosen[row] for row in right},
        traps=_distinct(trap for trap in traps if trap),
        feedback=tuple(feedback),
        right=right,
    )


def _judge_recall(question: Any, chosen: Any) -> Grade:
    parts = _recalled(chosen)
    feedback = [Feedback("answer", "model", question.answer)]
    feedback += [Feedback(f"point{i}", "point", point) for i, point in enumerate(question.points, 1)]
    mark = parts["mark"]
    return Grade(None if mark is None else mark == max(MARKS), parts, (), tuple(feedback), None)


def _distinct(keys: Iterable[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(keys))
