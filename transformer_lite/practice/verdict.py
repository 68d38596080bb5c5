"""The verdict on an answer: codes and numbers, and the text made of them in either language."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass, field, fields, is_dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.language import current, message, printable
from transformer_lite.practice.comparing import number
from transformer_lite.practice.registry import exercises

if TYPE_CHECKING:
    from transformer_lite.explore.figures import Picture

SCHEMA = 1


@dataclass(frozen=True)
class Note:
    """A remark that makes no verdict negative: its code and its numbers."""

    code: str
    details: dict[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One input with what came back and what is right."""

    name: str
    arguments: dict[str, Any]
    returns: tuple[str, ...]
    yours: tuple[NDArray, ...] | None
    right: tuple[NDArray, ...]


@dataclass(frozen=True)
class CheckResult:
    """The verdict on one answer to one exercise.

    Attributes:
        status: "pass", "variant" (a known other way: not wrong, not what was asked), "wrong", "unsolved", "error" (the code
            raised), "timeout", "uses_reference" (it calls the companion's own function) or "grader_problem" (our mistake).
        stage: where it stopped: "blank", "callable", "identity", "signature", "run", "return", "container", "shape", "dtype",
            "finite", "value"; None when it passed.
        traps: the keys of the traps recognised, two if two mistakes were made at once.
        certainty: of the traps: "exact" (equal on every input), "closest" (on all but one) or "none".
        evidence: codes and numbers, all of which JSON can hold.
        notes: remarks.
        seconds: how long the judgement took.
    """

    exercise: str
    version: int
    status: str
    stage: str | None = None
    traps: tuple[str, ...] = ()
    certainty: str = "none"
    evidence: dict[str, Any] = field(default_factory=dict)
    notes: tuple[Note, ...] = ()
    seconds: float = 0.0
    cases: tuple[Case, ...] = field(default=(), repr=False, compare=False)
    smallest: str = field(default="", repr=False, compare=False)
    again: Callable[..., Any] | None = field(default=None, repr=False, compare=False)  # runs the function once more

    def __bool__(self) -> bool:
        return self.status == "pass"

    def __repr__(self) -> str:
        traps = f" {'+'.join(self.traps)}" if self.traps else ""
        return f"<CheckResult {self.exercise}: {self.status}{traps}>"

    def __str__(self) -> str:
        return self.text()

    def _ipython_display_(self) -> None:
        """Show the verdict as a cell's result, unless `lab.check` has already printed it in that very cell."""
        ipython = sys.modules.get("IPython")
        shell = ipython.get_ipython() if ipython else None
        if shell is None or getattr(self, "_shown_in", None) != shell.execution_count:
            print(printable(self.text()))

    def to_dict(self) -> dict[str, Any]:
        """Codes and numbers only, as JSON holds them: text is made of them later, in any language."""
        return {
            "schema": SCHEMA,
            "exercise": self.exercise,
            "version": self.version,
            "status": self.status,
            "stage": self.stage,
            "traps": list(self.traps),
            "certainty": self.certainty,
            "evidence": _plain(self.evidence),
            "notes": [{"code": note.code, "details": _plain(note.details)} for note in self.notes],
            "seconds": round(self.seconds, 4),
        }

    def text(self, lang: str | None = None, verbose: bool = False) -> str:
        """The verdict in words: its status first, at most one problem, then the next thing to type.

        Args:
            lang: "ja" or "en"; the language in use if None.
            verbose: add the smallest input in full, with what came back and what is right.
        """
        return "\n".join(_Words(self, lang or current()).lines(verbose))

    def show(self, lang: str | None = None) -> Picture:
        """The learner's weights (or matrix) beside the right ones, and the influence matrix of both: a picture with its table."""
        from transformer_lite.practice.picture import picture

        return picture(self, lang or current())


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {str(key): _plain(one) for key, one in value.items()}
        case list() | tuple():
            return [_plain(one) for one in value]
        case np.generic():
            return _plain(value.item())
        case float():
            return value if math.isfinite(value) else str(value)
        case None | bool() | int() | str():
            return value
    return str(value)


class _Words:
    """Makes the lines of one verdict in one language."""

    def __init__(self, result: CheckResult, lang: str) -> None:
        self.result, self.lang, self.evidence = result, lang, result.evidence

    def say(self, key: str, **details: Any) -> str:
        return message(f"practice.{key}", self.lang, **details)

    def lines(self, verbose: bool) -> list[str]:
        result = self.result
        title = message(f"practice.exercise.{result.exercise}.title", self.lang)
        first = f"{self.say('status.' + result.status)}   {result.exercise}   {title}"
        if result.status == "pass":
            first += "      " + self.say("tests", tests=self.evidence.get("tests", 0))
        lines = [first, *self._body()]
        lines += [self.say("note", text=self.say(f"note_of.{note.code}", **note.details)) for note in result.notes]
        if verbose:
            lines += self._smallest()
        return [*lines, self.say(f"next.{result.status}", exercise=result.exercise)]

    def _body(self) -> list[str]:
        result, evidence = self.result, self.evidence
        if result.traps:
            return self._traps()
        match result.status:
            case "pass":
                return []
            case "unsolved":
                return [self.say("unsolved")]
            case "uses_reference":
                return [self.say("uses_reference", name=result.evidence.get("name", result.exercise))]
            case "grader_problem":
                return [self.say("grader_problem", code=evidence.get("code", "?"))]
            case "timeout":
                return [self.say("timeout", limit=f"{evidence['limit']:g}", shapes=evidence["shapes"]), self.say("timeout_look")]
            case "error":
                return self._error()
        details = {**evidence, "test": self.test()}
        alone = evidence["problem"] == "differs" and not evidence["index"]
        lines = [self.say(f"problem.{'number_differs' if alone else evidence['problem']}", **self._indexed(details))]
        if evidence["problem"].startswith("raises_") and evidence.get("source"):
            lines.append(self._place())
            if ".T" in evidence["source"]:
                lines.append(self.say("error.keys_t"))
        if evidence["problem"] == "differs":
            lines = [self.say("unrecognised"), *self._laws(), *lines]
        return lines

    def test(self) -> str:
        name = self.evidence.get("test", "")
        return message(f"practice.test.{_slug(name)}", self.lang) if name else ""

    def _indexed(self, details: dict[str, Any]) -> dict[str, Any]:
        if isinstance(details.get("index"), list):
            index = ", ".join(str(i) for i in details["index"])
            details["index"] = f"[{index}]" if index else ""  # a single number has none
        return details

    def _traps(self) -> list[str]:
        result, evidence = self.result, self.evidence
        named = [self._named(key) for key in result.traps]
        joint = self.say("and")
        known = result.status == "variant"  # other people's way: no word of a mistake, then
        code = "two" if len(named) > 1 else ("resembles" if result.certainty == "closest" else "recognised")
        code = "variant" if known else code
        lines = [self.say(f"trap.{code}", traps=joint.join(named))]
        if evidence.get("only_extreme"):
            lines.append("  " + self.say("trap.only_extreme"))
        elif "fixtures" in evidence:
            details = {
                "what": self.say(f"what.{evidence['what']}"),
                "matched": evidence["matched"],
                "fixtures": evidence["fixtures"],
                "trap_difference": number(evidence["max_diff_trap"]),
                "difference": number(evidence["max_diff_correct"]),
            }
            everywhere = evidence["matched"] == evidence["fixtures"]
            equal = "trap.variant_equal" if known else "trap.equal"
            lines.append("  " + self.say(equal if everywhere else "trap.nearly", **details))
            asked = exercises()[result.exercise]
            # How far off a truth value or an id is says nothing, and a count's own property says it better.
            told = not (known or asked.boolean or asked.whole_numbers)
            if told and evidence["max_diff_correct"] > 0:
                lines.append("  " + self.say("trap.from_right", **details))
        if "property" in evidence:
            shown = dict(evidence["property"])
            key, variant = shown.pop("key"), shown.pop("variant", None)
            lines.append("  " + self.say(f"property.{key}{'_' + variant if variant else ''}", name=result.exercise, **shown))
        if evidence.get("batch_differs_too"):
            lines.append("  " + self.say("trap.batch_too"))
        return lines

    def _named(self, key: str) -> str:
        title = _trap_title(key, self.lang)
        return f"{title} [{key}]" if title else f"[{key}]"

    def _error(self) -> list[str]:
        evidence = self.evidence
        if evidence["problem"] == "not_callable":
            return [self.say("problem.not_callable", type=evidence["type"])]
        if evidence["problem"] == "died":
            return [self.say("problem.died", exit_code=evidence["exit_code"], shapes=evidence["shapes"])]
        lines = [f"{evidence['type']}: {evidence['text']}".rstrip(": ")]
        if evidence.get("line"):
            lines.append(self._place())
        gloss = _gloss(evidence["bases"], evidence["text"])
        if gloss:
            lines.append(self.say(f"gloss.{gloss}"))
        lines.append(self.say("error.arguments", shapes=evidence["shapes"]))
        return lines

    def _place(self) -> str:
        where = {"line": self.evidence["line"], "function": self.evidence["function"]}
        source = self.evidence.get("source")
        return self.say("error.at_source", **where, source=source) if source else self.say("error.at", **where)

    def _laws(self) -> list[str]:
        lines = []
        for law in self.evidence.get("laws", []):
            details = {name: number(value) if isinstance(value, float) else value for name, value in law.items() if name != "law"}
            lines.append("  " + self.say(f"law.{law['law']}", **details))
        return lines

    def _smallest(self) -> list[str]:
        case = next((case for case in self.result.cases if case.name == self.result.smallest), None)
        if case is None:
            return []
        lines = [self.say("smallest", test=message(f"practice.test.{_slug(case.name)}", self.lang))]
        lines += [line for name, argument in case.arguments.items() for line in _argument(name, argument)]
        for i, (name, right) in enumerate(zip(case.returns, case.right, strict=True)):
            if case.yours is not None and i < len(case.yours):
                lines.append(_shown(self.say("yours", name=name), case.yours[i]))
            lines.append(_shown(self.say("right", name=name), right))
        return lines


def _slug(name: str) -> str:
    return name.replace(", ", "_").replace(" ", "_")


def _argument(name: str, value: Any) -> list[str]:
    """An argument in full; of one that holds named arrays, each by its name."""
    if is_dataclass(value):
        value = {one.name: getattr(value, one.name) for one in fields(value)}
    elif hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, dict):
        return [_shown(f"{name}.{part}", array) for part, array in value.items()]
    return [_shown(name, getattr(value, "__name__", value))]


def _shown(name: str, value: Any) -> str:
    if not isinstance(value, np.ndarray):
        return f"  {name} = {value}"
    array = np.array2string(value, precision=4, suppress_small=True, threshold=200)
    return f"  {name} =\n" + "\n".join("    " + line for line in array.splitlines())


def _trap_title(key: str, lang: str) -> str | None:
    """The trap's name from the catalogue, or None where the catalogue cannot be read: a verdict does not fail for that."""
    try:
        from transformer_lite import content

        return content.trap(key).title(lang)
    except Exception:
        return None


# The first of these whose words are in the error's text explains it; a type alone explains the rest.
_GLOSSES: tuple[tuple[str, str, str], ...] = (
    ("InputAsked", "", "input"),
    ("ProcessExit", "", "exit"),
    ("SystemExit", "", "exit"),
    ("RecursionError", "", "recursion"),
    ("MemoryError", "", "memory"),
    ("UnboundLocalError", "", "unbound"),
    ("NameError", "", "name"),
    ("ModuleNotFoundError", "", "module"),
    ("Exception", "ellipsis", "ellipsis"),
    ("Exception", "NoneType", "none"),
    ("Exception", "truth value of an array", "truth"),
    ("Exception", "could not be broadcast", "broadcast"),
    ("Exception", "boolean index did not match", "boolean_index"),
    ("Exception", "mismatch in its core dimension", "matmul"),
    ("Exception", "not aligned", "matmul"),
    ("Exception", "shapes cannot be multiplied", "matmul"),
    ("Exception", "must match the size of tensor", "broadcast"),
    ("Exception", "axes don't match", "axes"),
    ("AxisError", "", "axes"),
    ("Exception", "out of bounds", "index"),
    ("IndexError", "", "index"),
    ("Exception", "positional argument", "arguments"),
    ("Exception", "keyword argument", "arguments"),
    ("Exception", "not callable", "not_callable"),
    ("Exception", "only length-1 arrays", "scalar"),
    ("Exception", "only 0-dimensional arrays", "scalar"),
    ("ZeroDivisionError", "", "zero"),
    ("AttributeError", "", "attribute"),
    ("AssertionError", "", "assertion"),
)


def _gloss(bases: list[str], text: str) -> str | None:
    for base, words, gloss in _GLOSSES:
        if base in bases and words.lower() in text.lower():
            return gloss
    return None
