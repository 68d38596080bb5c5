"""Runs a learner's function on given inputs and writes down what happened: inside the worker, or without one where need be."""

from __future__ import annotations

import builtins
import contextlib
import copy
import importlib
import io
import os
import random
import sys
import time
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, fields, is_dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import ReferenceUsed, forbid

PRINTED_KEPT = 500  # characters
WARNINGS_KEPT = 5
ARRAY_KEPT = 16 * 2**20  # bytes; of a larger one only shape and dtype are reported
SLOW_IMPORTS = {"torch", "scipy", "tensorflow", "jax", "pandas", "sklearn", "matplotlib"}


class InputAsked(RuntimeError):
    """The learner's code called input(), which nobody can answer while it is judged."""


class OutOfTime(BaseException):
    """The time limit was reached. A BaseException, so that ``except Exception`` cannot hide it."""


class ProcessExit(RuntimeError):
    """The learner's code asked the whole Python process to end."""


@dataclass
class Value:
    """An array that came back, or why none could be made of it.

    Attributes:
        container: "ndarray", "Tensor", "list", "float", ... the type it had.
        problem: None, "none", "ellipsis", "not numbers", "ragged", "too big", "unfinished" (a coroutine or a generator).
    """

    container: str
    shape: tuple[int, ...] = ()
    dtype: str = ""
    problem: str | None = None
    array: NDArray | None = None


@dataclass
class Outcome:
    """One call: what it returned or raised, and what it did besides."""

    values: list[Value] = field(default_factory=list)
    structure: str = ""  # the type of what was returned
    many: bool = False  # it returned several things
    error: dict[str, Any] | None = None
    printed: str = ""
    printed_characters: int = 0
    warned: list[str] = field(default_factory=list)
    mutated: list[int] = field(default_factory=list)
    seconds: float = 0.0
    reference: bool = False

    def to_json(self) -> dict[str, Any]:
        """Everything but the arrays."""
        plain = asdict(self)
        for value in plain["values"]:
            del value["array"]
        return plain

    @classmethod
    def from_json(cls, plain: dict[str, Any], arrays: Iterator[NDArray | None]) -> Outcome:
        """The way back from `to_json`."""
        values = [
            Value(**{**value, "shape": tuple(value["shape"])}, array=array)
            for value, array in zip(plain.pop("values"), arrays, strict=True)
        ]
        return cls(**plain, values=values)


@dataclass(frozen=True)
class Call:
    """Arguments for one call of the learner's function."""

    positional: tuple[Any, ...] = ()
    named: dict[str, Any] = field(default_factory=dict)

    def copy(self) -> Call:
        """The same arguments in new arrays, so that the callee may do with them what it likes."""
        return Call(tuple(_copy(one) for one in self.positional), {key: _copy(one) for key, one in self.named.items()})

    def arguments(self) -> list[Any]:
        """All arguments in order."""
        return [*self.positional, *self.named.values()]


def _copy(argument: Any) -> Any:
    return argument.copy() if isinstance(argument, np.ndarray) else copy.deepcopy(argument)


def arrays_in(argument: Any) -> list[NDArray]:
    """The arrays that an argument is or holds (projections, parameters of a layer)."""
    if isinstance(argument, np.ndarray):
        return [argument]
    if is_dataclass(argument) and not isinstance(argument, type):
        argument = [getattr(argument, one.name) for one in fields(argument)]
    return [array for part in argument for array in arrays_in(part)] if isinstance(argument, (tuple, list)) else []


def _changed(one: Any, other: Any) -> bool:
    pairs = zip(arrays_in(one), arrays_in(other), strict=True)
    return any(a.shape != b.shape or not np.array_equal(a, b, equal_nan=a.dtype.kind == "f") for a, b in pairs)


def run_calls(
    function: Callable[..., Any],
    calls: list[Call],
    forbidden: str | None,
    names: tuple[str, ...],
    done: Callable[[Outcome], None],
) -> None:
    """Call ``function`` with each of ``calls`` and hand each `Outcome` to ``done`` as soon as it is there."""
    with _protected(), forbid(forbidden or "") as noticed:
        for call in calls:
            outcome = _run(function, call.copy(), call, names)
            outcome.reference = outcome.reference or bool(noticed)
            done(outcome)


def _run(function: Callable[..., Any], given: Call, kept: Call, names: tuple[str, ...]) -> Outcome:
    outcome = Outcome()
    printed = _Capped()
    started = time.perf_counter()
    with _captured(printed, outcome.warned):
        try:
            returned = function(*given.positional, **given.named)
            outcome.seconds = time.perf_counter() - started
            _describe(returned, names, outcome)
        except ReferenceUsed:
            outcome.reference = True
        except (KeyboardInterrupt, OutOfTime):
            raise
        except BaseException as error:
            outcome.seconds = time.perf_counter() - started
            outcome.error = _error(error, function)
    outcome.printed, outcome.printed_characters = printed.text(), printed.characters
    for i, (one, other) in enumerate(zip(given.arguments(), kept.arguments(), strict=True)):
        if _changed(one, other):
            outcome.mutated.append(i)
    return outcome


# What came back -------------------------------------------------------------------------------------------------------


def _describe(returned: Any, names: tuple[str, ...], outcome: Outcome) -> None:
    outcome.structure = type(returned).__name__
    parts = [returned]
    if isinstance(returned, dict) and set(returned) == set(names):
        parts, outcome.many = [returned[name] for name in names], True
    elif isinstance(returned, tuple) and (len(names) > 1 or not _numbers(returned)):
        # (A tuple of plain numbers where one thing is wanted is that thing, oddly packed.)
        parts, outcome.many = list(returned), True
    elif len(names) > 1 and _unpacks(returned, len(names)):
        parts, outcome.many = list(returned), True
    outcome.values = [_value(part) for part in parts[:8]]
    if outcome.many and len(parts) == len(names) == 1:  # return x, with a comma too many
        outcome.many, outcome.values[0].container = False, outcome.structure


def _unpacks(returned: Any, count: int) -> bool:
    """A list of so many things, or so many numbers in one array or tensor."""
    return len(returned) == count if isinstance(returned, list) else getattr(returned, "shape", None) == (count,)


def _numbers(nested: Any) -> bool:
    if isinstance(nested, (tuple, list)):
        return all(_numbers(one) for one in nested)
    return isinstance(nested, (int, float, np.number))


def _value(part: Any) -> Value:
    container = type(part).__name__
    if part is None:
        return Value(container, problem="none")
    if part is Ellipsis or part is NotImplemented:
        return Value(container, problem="ellipsis")
    if isinstance(part, (types.CoroutineType, types.GeneratorType, types.AsyncGeneratorType)) or callable(part):
        return Value(container, problem="unfinished")
    try:
        if hasattr(part, "detach"):  # a torch tensor, perhaps with a gradient, perhaps on a GPU
            part = part.detach().cpu()
            part = (part.float() if str(part.dtype) == "torch.bfloat16" else part).numpy()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            array = np.asarray(part)
    except ValueError:
        return Value(container, problem="ragged")
    except Exception:
        return Value(container, problem="not numbers")
    if array.dtype == object:
        try:
            array = array.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return Value(container, tuple(array.shape), "object", problem="not numbers")
        container = "object"
    if array.dtype.kind not in "biufc":
        return Value(container, tuple(array.shape), str(array.dtype), problem="not numbers")
    if array.nbytes > ARRAY_KEPT:
        return Value(container, tuple(array.shape), str(array.dtype), problem="too big")
    if array.dtype.itemsize > 8 and array.dtype.kind == "f":  # long double: np.save would keep it, comparing gains nothing
        array = array.astype(np.float64)
    return Value(container, tuple(array.shape), str(array.dtype), array=np.ascontiguousarray(array).reshape(array.shape))


def _error(error: BaseException, function: Callable[..., Any]) -> dict[str, Any]:
    """The learner's own place in a traceback: the innermost frame that is neither ours nor a library's."""
    frames = [(frame.filename, frame.lineno or 0, frame.name) for frame in traceback.extract_tb(error.__traceback__, limit=-200)]
    own = [frame for frame in frames if not _library(frame[0])]
    home = getattr(getattr(function, "__code__", None), "co_filename", None)
    place = next((frame for frame in reversed(own) if frame[0] == home), own[-1] if own else None)
    try:
        text = str(error)
    except (KeyboardInterrupt, OutOfTime):
        raise
    except BaseException:
        text = ""
    return {
        "type": type(error).__name__,
        "bases": [base.__name__ for base in type(error).__mro__],
        "text": text[:PRINTED_KEPT],
        "file": place[0] if place else None,
        "line": place[1] if place else None,
        "function": place[2] if place else None,
    }


_HOME = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
_LIBRARIES = tuple({os.path.dirname(os.__file__), os.path.dirname(os.path.dirname(np.__file__)), sys.prefix + os.sep, _HOME})


def _library(file: str) -> bool:
    return file.startswith(_LIBRARIES) or file.startswith("<frozen") or file == "<__array_function__ internals>"


# What is kept from spilling -------------------------------------------------------------------------------------------


class _Capped(io.TextIOBase):
    """A stream that keeps the first characters and counts the rest."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        self.kept = 0
        self.characters = 0

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        self.characters += len(text)
        if self.kept < PRINTED_KEPT:
            part = text[: PRINTED_KEPT - self.kept]
            self.parts.append(part)
            self.kept += len(part)
        return len(text)

    def text(self) -> str:
        return "".join(self.parts)


@contextlib.contextmanager
def _captured(printed: _Capped, warned: list[str]) -> Iterator[None]:
    def note(text: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
        line = f"{category.__name__}: {text}"
        if len(warned) < WARNINGS_KEPT and line not in warned:
            warned.append(line[:PRINTED_KEPT])

    with (
        contextlib.redirect_stdout(printed),
        contextlib.redirect_stderr(printed),
        warnings.catch_warnings(),
        np.errstate(all="warn", under="ignore"),
    ):
        warnings.simplefilter("always")
        warnings.showwarning = note
        yield


@contextlib.contextmanager
def _protected() -> Iterator[None]:
    """Random states, the working directory, print options, ``input`` and the ways to end a process: put back afterwards."""
    state, numpy_state = random.getstate(), np.random.get_state()
    torch = sys.modules.get("torch")
    torch_state = torch.get_rng_state() if torch is not None and hasattr(torch, "get_rng_state") else None
    options = np.get_printoptions()
    folder = _folder()
    process, end, kill = os.getpid(), os._exit, os.kill

    def no_exit(code: int = 1, *_: Any) -> None:
        if os.getpid() != process:  # a process that the learner's code has forked may end as it likes
            end(code)
        raise ProcessExit("os._exit() or os.abort() was called.")

    def no_kill(pid: int, number: int) -> None:
        if pid in (process, os.getppid(), 0, -1):  # this process, or the notebook's
            raise ProcessExit("os.kill() was called on the process itself or its parent.")
        kill(pid, number)

    replaced = [(builtins, "input", _no_input), (os, "_exit", no_exit), (os, "abort", no_exit), (builtins, "exit", sys.exit)]
    replaced.append((os, "kill", no_kill))
    before = [(module, name, getattr(module, name, None)) for module, name, _ in replaced]
    stdin, sys.stdin = sys.stdin, _NoInput()
    limit = sys.getrecursionlimit()
    for module, name, stand_in in replaced:
        setattr(module, name, stand_in)
    try:
        yield
    finally:
        sys.stdin = stdin
        sys.setrecursionlimit(limit)
        for module, name, original in before:
            if original is None:
                delattr(module, name)
            else:
                setattr(module, name, original)
        random.setstate(state)
        np.random.set_state(numpy_state)
        if torch_state is not None:
            torch.set_rng_state(torch_state)
        np.set_printoptions(**options)
        if folder is not None and _folder() != folder:
            os.chdir(folder)


def _folder() -> str | None:
    try:
        return os.getcwd()
    except OSError:
        return None


def _no_input(prompt: object = "") -> str:
    raise InputAsked("input() has nobody to answer it while your function is judged.")


class _NoInput(io.TextIOBase):
    def readable(self) -> bool:
        return True

    def read(self, *_: Any) -> str:
        return _no_input()

    def readline(self, *_: Any) -> str:  # type: ignore[override]
        return _no_input()


def import_early(function: Callable[..., Any]) -> None:
    """Import the slow libraries that ``function`` imports in its body, so that their start does not count as its own time."""
    pending, seen = [getattr(function, "__code__", None)], set()
    while pending:
        code = pending.pop()
        if code is None or code in seen:
            continue
        seen.add(code)
        pending.extend(constant for constant in code.co_consts if isinstance(constant, types.CodeType))
        for name in code.co_names:
            if name.partition(".")[0] in SLOW_IMPORTS:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
