"""The judgement: stage after stage, from "is it a function" to "are the numbers right"; it stops at the first problem.

Correctness outranks diagnosis: traps are looked for only when something is wrong, and a remark never makes a verdict negative.
"""

from __future__ import annotations

import hashlib
import inspect
import os
import secrets
import threading
import time
import traceback
import warnings
import weakref
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.practice import guard, source
from transformer_lite.practice.calling import Convention, convention
from transformer_lite.practice.comparing import as_mask, first_difference, right
from transformer_lite.practice.fixtures import EXTREME, MORE, PLAIN, Fixture, fixtures, smallest
from transformer_lite.practice.registry import Exercise, exercise
from transformer_lite.practice.running import Outcome, Value, arrays_in
from transformer_lite.practice.verdict import Case, CheckResult, Note

SLOW = 0.5  # seconds for all calls together, from which on it is remarked
PATIENCE = "TRANSFORMER_LITE_PATIENCE"
REMEMBERED = 1.0  # seconds of the function's own from which on a verdict is kept: a definition and its check do not wait twice


@dataclass
class Problem:
    """What is wrong, in codes: text is made of it later, in the language of the day."""

    status: str
    stage: str
    code: str
    details: dict[str, Any] = field(default_factory=dict)
    fixture: Fixture | None = None


@dataclass
class Seen:
    """One input, what came back, and what should have."""

    fixture: Fixture
    outcome: Outcome
    expected: tuple[NDArray, ...]

    @property
    def arrays(self) -> tuple[NDArray, ...] | None:
        """What came back, if all of it is arrays."""
        arrays = tuple(value.array for value in self.outcome.values)
        return None if not arrays or any(array is None for array in arrays) else arrays  # type: ignore[return-value]

    @property
    def right(self) -> bool:
        arrays = self.arrays
        return (
            arrays is not None
            and len(arrays) == len(self.expected)
            and all(right(actual, expected) for actual, expected in zip(arrays, self.expected, strict=True))
        )


def judge(exercise_id: str, function: Any, *, seed: int | None = None, pickled: bytes | None = None) -> CheckResult:
    """Judge a learner's function.

    It runs in a worker process, so that nothing it does can harm this one. `lab.exercise`'s stand-in is unwrapped: what is
    judged is always the learner's own code.

    Args:
        exercise_id: the id of an exercise, such as "softmax".
        function: what the learner wrote.
        seed: draws the input that is new each time; the verdict's evidence says which it was. None: a new one.
        pickled: the function as `guard.dumps` gives it. Then ``function`` is only looked at, and nothing runs outside the worker.

    Returns:
        The verdict, always; a mistake of ours gives the status "grader_problem".

    Raises:
        UnknownExercise: there is no such exercise.
        KeyboardInterrupt: the learner interrupted.
    """
    asked = exercise(exercise_id)
    try:
        with (
            warnings.catch_warnings(),
            np.errstate(all="ignore"),
        ):  # comparing wild numbers warns, and that is ours, not the learner's
            warnings.simplefilter("ignore")
            return _judge(asked, source.own_function(function), _new_seed() if seed is None else seed, pickled)
    except Exception as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__} {frame.filename.rpartition('transformer_lite')[2].strip('/')}:{frame.lineno}"
        return CheckResult(asked.id, asked.version, "grader_problem", evidence={"code": place, "text": str(error)[:200]})


def _new_seed() -> int:
    """A new draw each time; always the same where outputs are made to be stored, so that a rebuild changes nothing."""
    return 0 if _static() else secrets.randbelow(10**6)


def limit_of(exercise: Exercise) -> float:
    """Seconds for all calls of one judgement; so many times more where `PATIENCE` says so, as a grading may."""
    return exercise.limit * float(os.environ.get(PATIENCE, 1))


def _static() -> bool:
    return os.environ.get("TRANSFORMER_LITE_STATIC") == "1"


def _judge(exercise: Exercise, function: Any, seed: int, handed: bytes | None = None) -> CheckResult:
    started = time.perf_counter()
    before = _before_running(exercise, function)
    if isinstance(before, CheckResult):
        return before
    called, problem = before
    if problem is not None:
        return _result(exercise, problem, started)
    try:
        pickled = handed or guard.dumps(function)
    except guard.NotInWorker:
        pickled = None
    key = _remembered.key(exercise, function, pickled)
    if key is not None and _static():  # with the same draw the same verdict: a definition, its check and its tests judge once
        key = (*key, seed)
    if (known := _remembered.get(key, function)) is not None:
        return known
    judgement = _Judgement(exercise, function, called, pickled, seed, only_there=handed is not None)
    result = judgement.verdict(started)
    if judgement.ran.ended != "done" or judgement.ran.seconds > REMEMBERED or _static():
        _remembered.keep(key, function, result)
    return result


def _before_running(exercise: Exercise, function: Any) -> CheckResult | tuple[Convention, Problem | None]:
    if function is None or function is Ellipsis or source.is_blank(function):
        return CheckResult(exercise.id, exercise.version, "unsolved", "blank")
    if not callable(function):
        return CheckResult(
            exercise.id,
            exercise.version,
            "error",
            "callable",
            evidence={"problem": "not_callable", "type": type(function).__name__},
        )
    if _is_reference(exercise, function):
        return CheckResult(exercise.id, exercise.version, "uses_reference", "identity")
    called = convention(exercise, function)
    wanted = ", ".join(exercise.parameters)
    if called.missing or called.accepts < exercise.required:
        missing = called.missing or exercise.parameters[called.accepts : exercise.required]
        return called, Problem("wrong", "signature", "missing_parameter", {"missing": ", ".join(missing), "wanted": wanted})
    if called.asks_for:
        return called, Problem("wrong", "signature", "extra_parameter", {"extra": ", ".join(called.asks_for), "wanted": wanted})
    return called, None


def _is_reference(exercise: Exercise, function: Any) -> bool:
    while isinstance(function, partial):
        function = function.func
    code = getattr(inspect.unwrap(function), "__code__", None)
    return code is not None and code is getattr(inspect.unwrap(exercise.reference), "__code__", None)


class _Judgement:
    """One function under judgement: the runs, what was seen, and the verdict."""

    def __init__(
        self, exercise: Exercise, function: Any, called: Convention, pickled: bytes | None, seed: int, only_there: bool = False
    ) -> None:
        self.exercise, self.function, self.called, self.pickled = exercise, function, called, pickled
        self.seed, self.only_there = seed, only_there
        every = fixtures(exercise.id, self.seed)
        # A function without the optional parameter is tried on everything that does not need it.
        self.fixtures = [one for one in every if len(one.arguments) <= called.accepts]
        self.left_out = exercise.parameters[called.accepts :] if len(self.fixtures) < len(every) else ()
        self.seen: list[Seen] = []
        self.remarks: list[Seen] = []
        self.again: Outcome | None = None
        self.ran = guard.Run()

    def run(self, arguments: list[tuple[Any, ...]], limit: float | None = None) -> guard.Run:
        """Call the learner's function."""
        calls = [self.called.call(self.exercise, one) for one in arguments]
        return guard.run(
            self.function,
            calls,
            forbidden=self.exercise.reference.__name__,
            names=self.exercise.returns,
            limit=limit or limit_of(self.exercise),
            pickled=self.pickled,
            only_there=self.only_there,
        )

    def verdict(self, started: float) -> CheckResult:
        self.ran = ran = self.run([*(one.arguments for one in self.fixtures), self.fixtures[0].arguments])
        if any(outcome.reference for outcome in ran.outcomes):
            return replace(
                _result(self.exercise, Problem("uses_reference", "run", "called"), started),
                evidence={"name": self.exercise.reference.__name__},
            )
        if ran.ended != "done":
            return self._unfinished(started)
        if source.computes_in_single_precision(self.function):
            _lower_precision(ran.outcomes)
        for fixture, outcome in zip(self.fixtures, ran.outcomes, strict=False):
            expected = expected_of(self.exercise, fixture.arguments)
            (self.remarks if fixture.remark_only else self.seen).append(Seen(fixture, outcome, expected))
        self.again = ran.outcomes[-1]
        problem = self._first_problem()
        if problem is None and self.left_out:
            problem = Problem(
                "wrong",
                "signature",
                "missing_optional",
                {"missing": ", ".join(self.left_out), "wanted": ", ".join(self.exercise.parameters)},
            )
        if problem is None:
            return self._finish(_result(self.exercise, None, started), started)
        if problem.status == "unsolved":
            return CheckResult(self.exercise.id, self.exercise.version, "unsolved", "blank")
        return self._finish(self._diagnosed(problem, started), started)

    def _diagnosed(self, problem: Problem, started: float) -> CheckResult:
        from transformer_lite.practice import diagnosis

        result = _result(self.exercise, problem, started)
        if (
            problem.stage in ("signature", "return", "container")
            or problem.status == "variant"
            or problem.code.startswith("raises_")
        ):
            return result
        found = diagnosis.diagnose(self, problem)
        if problem.status == "error" and not found.traps:
            return result
        evidence = {**result.evidence, **found.evidence}
        status = "wrong" if found.traps else result.status
        if found.certainty == "exact" and found.traps and set(found.traps) <= set(self.exercise.variants):
            status = "variant"
        return replace(result, status=status, traps=found.traps, certainty=found.certainty, evidence=evidence)

    def _unfinished(self, started: float) -> CheckResult:
        ran, reached = self.ran, self.fixtures[min(len(self.ran.outcomes), len(self.fixtures) - 1)]
        evidence = {"test": reached.name, "shapes": self._shapes(reached), "limit": limit_of(self.exercise), "where": ran.where}
        status, code = ("timeout", "no_result") if ran.ended == "timeout" else ("error", "died")
        if code == "died":
            evidence["exit_code"] = ran.detail
        return _result(self.exercise, Problem(status, "run", code, evidence, reached), started)

    def _shapes(self, fixture: Fixture) -> str:
        return ", ".join(
            f"{name} {_size(argument)}"
            for name, argument in zip(self.exercise.parameters, fixture.arguments, strict=False)
        )

    # Stages ---------------------------------------------------------------------------------------------------------

    def _first_problem(self) -> Problem | None:
        for phase in (PLAIN, MORE, EXTREME):
            here = [seen for seen in self.seen if seen.fixture.phase == phase]
            for stage in (self._run, self._return, self._container, self._shape, self._dtype, self._finite, self._value):
                for seen in here:
                    problem = stage(seen)
                    if problem is not None:
                        problem.fixture = seen.fixture
                        problem.details.setdefault("test", seen.fixture.name)
                        return problem
        return None

    def _run(self, seen: Seen) -> Problem | None:
        error = seen.outcome.error
        if error is None:
            return None
        if error["type"] == "NotImplementedError":
            return Problem("unsolved", "blank", "not_implemented")
        details = {key: error[key] for key in ("type", "bases", "text", "line", "function")}
        details["source"] = source.line_of(self.function, error["function"], error["line"])
        details["shapes"] = self._shapes(seen.fixture)
        if seen.fixture.may_raise:  # everything before this was right: an error, but a friendly one
            return Problem("wrong", "shape", "raises_batch" if "batch" in seen.fixture.name else "raises_vector", details)
        return Problem("error", "run", "raised", details)

    def _return(self, seen: Seen) -> Problem | None:
        values, names = seen.outcome.values, self.exercise.returns
        wanted = ", ".join(names)
        if len(values) == 1 and values[0].problem == "none" and not seen.outcome.many:
            return Problem("wrong", "return", "printed_instead" if seen.outcome.printed else "none", {"wanted": wanted})
        if len(values) == 1 and values[0].problem == "ellipsis":
            return Problem("unsolved", "blank", "ellipsis")
        if any(value.problem == "unfinished" for value in values):
            return Problem("wrong", "return", "unfinished", {"type": seen.outcome.structure, "wanted": wanted})
        if len(values) < len(names):
            shape = values[0].shape if values else ()
            fits = [name for name, expected in zip(names, seen.expected, strict=True) if expected.shape == shape]
            code = "only_one" if len(fits) == 1 else "too_few"
            return Problem("wrong", "return", code, {"wanted": wanted, "what": fits[0] if fits else "", "shape": str(shape)})
        if len(values) > len(names):
            return Problem("wrong", "return", "too_many", {"count": len(values), "wanted": wanted})
        missing = [name for name, value in zip(names, values, strict=True) if value.problem in ("none", "ellipsis")]
        if missing:
            return Problem("wrong", "return", "part_none", {"what": missing[0], "wanted": wanted})
        if len(names) == 2 and self._swapped(seen):
            arrays = seen.arrays or ()
            both = all(right(actual, expected) for actual, expected in zip(reversed(arrays), seen.expected, strict=True))
            code = "swapped_right" if both else "swapped"
            return Problem("wrong", "return", code, {"wanted": wanted})
        return None

    def _swapped(self, seen: Seen) -> bool:
        shapes = [value.shape for value in seen.outcome.values]
        expected = [array.shape for array in seen.expected]
        return shapes == expected[::-1] and shapes != expected

    def _container(self, seen: Seen) -> Problem | None:
        for name, value in zip(self.exercise.returns, seen.outcome.values, strict=True):
            if value.problem == "too big":
                return Problem("wrong", "shape", "too_big", {"what": name, "shape": str(value.shape)})
            if value.problem is not None:
                return Problem("wrong", "container", value.problem.replace(" ", "_"), {"what": name, "type": value.container})
        return None

    def _shape(self, seen: Seen) -> Problem | None:
        for name, value, expected in zip(self.exercise.returns, seen.outcome.values, seen.expected, strict=True):
            if value.shape != expected.shape:
                return self._wrong_shape(seen, name, value, expected)
        return None

    def _wrong_shape(self, seen: Seen, name: str, value: Value, expected: NDArray) -> Problem:
        sizes, shape = seen.fixture.sizes, value.shape
        if not expected.ndim:
            code = "one_number"
        elif len(shape) >= 2 and shape == (*expected.shape[:-2], *expected.shape[:-3:-1]):
            code = "transposed"
        elif "batch" in sizes and (shape == expected.shape[1:] or (shape and sizes["batch"] not in shape)):
            code = "batch_lost"
        elif shape == tuple(size for size in expected.shape if size != 1):
            code = "axis_of_one_lost"
        elif len(shape) < expected.ndim:
            code = "axis_lost"
        elif self.exercise.boolean and shape == (sizes.get("n_queries"),) * 2 and shape != expected.shape:
            code = "n_keys_ignored"
        else:
            code = "other_shape"
        symbols = {size: symbol for symbol, size in sizes.items() if list(sizes.values()).count(size) == 1}
        named = "(" + ", ".join(symbols.get(size, str(size)) for size in shape) + ("," if len(shape) == 1 else "") + ")"
        axes = self.exercise.axes[self.exercise.returns.index(name)]
        wanted = "(" + ", ".join([*(["batch"] if "batch" in sizes else []), *axes]) + ")" if sizes else str(expected.shape)
        details = {"what": name, "shape": str(shape), "named": named if sizes else str(shape), "expected": str(expected.shape)}
        return Problem("wrong", "shape", code, {**details, "wanted": wanted})

    def _dtype(self, seen: Seen) -> Problem | None:
        for name, value in zip(self.exercise.returns, seen.outcome.values, strict=True):
            assert value.array is not None
            if self.exercise.boolean or (self.exercise.whole_numbers and value.array.dtype.kind in "iuf"):
                continue
            if value.array.dtype.kind != "f":
                code = "integers" if value.array.dtype.kind in "iu" else "other_dtype"
                return Problem("wrong", "dtype", code, {"what": name, "dtype": value.dtype})
        return None

    def _finite(self, seen: Seen) -> Problem | None:
        for name, value in zip(self.exercise.returns, seen.outcome.values, strict=True):
            assert value.array is not None
            bad = ~np.isfinite(value.array) if value.array.dtype.kind in "fc" else np.zeros(value.array.shape, dtype=bool)
            if self.exercise.boolean:
                bad = np.isnan(value.array) if value.array.dtype.kind == "f" else bad
            if bad.any():
                if self._underflow(seen):
                    return None
                index = [int(i) for i in np.argwhere(bad)[0]]
                details = {"what": name, "index": index, "value": str(value.array[tuple(index)]), "count": int(bad.sum())}
                return Problem("wrong", "finite", self._cause(seen, bad), details)
        return None

    def _cause(self, seen: Seen, bad: NDArray) -> str:
        warned = " ".join(seen.outcome.warned)
        if "encountered in multiply" in warned:
            return "zero_times_infinity"
        if seen.fixture.phase == EXTREME:
            return "overflow"
        if "overflow encountered in exp" in warned:
            return "overflow"
        if "encountered in log" in warned:
            return "log_of_zero"
        if self.exercise.boolean:
            return "zero_times_infinity"
        if "encountered in divide" in warned or "encountered in true_divide" in warned:
            return "zero_over_zero"
        return "unknown"

    def _underflow(self, seen: Seen) -> bool:
        """Masking after the softmax and renormalising is right; that it underflows in the extreme is a remark, not a mistake."""
        if seen.fixture.name != "large, masked" or seen.arrays is None:
            return False
        weights, mask = seen.arrays[1], seen.fixture.arguments[3]
        return not np.nan_to_num(weights[~mask]).any() and bool((~(np.nan_to_num(weights).sum(axis=-1) > 0.5)).any())

    def _value(self, seen: Seen) -> Problem | None:
        if seen.right or self._underflow(seen):
            return None
        if self.exercise.boolean:
            return self._mask_value(seen)
        for name, actual, expected in zip(self.exercise.returns, seen.arrays or (), seen.expected, strict=True):
            if not right(actual, expected):
                return Problem("wrong", "value", "differs", {"what": name, **first_difference(actual, expected)})
        return None

    def _mask_value(self, seen: Seen) -> Problem | None:
        truth, style = self.mask(seen)
        what, dtype = self.exercise.returns[0], seen.outcome.values[0].dtype
        if truth is None or (what != "mask" and style == "additive"):
            code = "not_a_mask" if what == "mask" else "not_boolean"
            return Problem("wrong", "value", code, {"what": what, "dtype": dtype})
        if not np.array_equal(truth, seen.expected[0]):
            return Problem("wrong", "value", "differs", {"what": what, **first_difference(truth, seen.expected[0])})
        if style == "boolean" or not self._all_masks_right():
            return None
        return Problem("variant", "dtype", style if what == "mask" else "ones_and_zeros", {"what": what, "dtype": dtype})

    def mask(self, seen: Seen) -> tuple[NDArray | None, str]:
        """What a returned mask says in True and False, and in which style (see `as_mask`)."""
        every = [one.arrays[0] for one in self.seen if one.arrays is not None and len(one.arrays) == 1]
        return as_mask(every, seen.arrays[0]) if seen.arrays else (None, "")

    def _all_masks_right(self) -> bool:
        truths = [(self.mask(seen)[0], seen.expected[0]) for seen in self.seen]
        return all(truth is not None and np.array_equal(truth, expected) for truth, expected in truths)

    # Remarks --------------------------------------------------------------------------------------------------------

    def _finish(self, result: CheckResult, started: float) -> CheckResult:
        evidence = {**result.evidence, "tests": len(self.seen), "seed": self.seed}
        cases = tuple(
            Case(seen.fixture.name, self._named(seen.fixture), self.exercise.returns, seen.arrays, seen.expected)
            for seen in self.seen
        )
        return replace(
            result,
            evidence=evidence,
            notes=(*result.notes, *self._notes(result.status)),
            seconds=time.perf_counter() - started,
            cases=cases,
            smallest=smallest(self.exercise.id),
            again=self.run,
        )

    def _named(self, fixture: Fixture) -> dict[str, Any]:
        return dict(zip(self.exercise.parameters, fixture.arguments, strict=False))

    def _notes(self, status: str) -> list[Note]:
        notes: list[Note] = []
        outcomes = [seen.outcome for seen in self.seen]
        mutated = {index for outcome in outcomes for index in outcome.mutated}
        if mutated:
            names = ", ".join(self.exercise.parameters[index] for index in sorted(mutated))
            notes.append(Note("mutated", {"names": names}))
        if self._unsteady():
            notes.append(Note("unsteady"))
        printed = sum(outcome.printed_characters for outcome in outcomes)
        if printed:
            notes.append(Note("printed", {"characters": printed}))
        if self.ran.seconds > SLOW:
            notes.append(Note("slow", {"seconds": round(self.ran.seconds, 1)}))
        if self.called.defaults_missing:
            notes.append(Note("no_default", {"names": ", ".join(self.called.defaults_missing)}))
        if self.ran.where != "worker":
            notes.append(Note("in_notebook", {"limit": limit_of(self.exercise)}))
        if status in ("pass", "variant"):
            notes += self._notes_on_right()
        elif (read := source.variables_read(self.function)) and status == "wrong":
            notes.append(Note("reads_variable", {"names": ", ".join(read[:4])}))
        return notes

    def _unsteady(self) -> bool:
        first, again = self.seen[0], self.again
        if again is None or first.arrays is None or len(again.values) != len(first.arrays):
            return False
        return any(
            value.array is None
            or value.array.shape != array.shape
            or (not np.allclose(value.array, array, rtol=1e-6, atol=1e-9, equal_nan=True) if array.dtype != bool else False)
            for value, array in zip(again.values, first.arrays, strict=True)
        )

    def _notes_on_right(self) -> list[Note]:
        notes: list[Note] = []
        values = [value for seen in self.seen for value in seen.outcome.values]
        # Where one number is asked for, it may come as any kind of number.
        arrays = [
            value
            for seen in self.seen
            for value, expected in zip(seen.outcome.values, seen.expected, strict=False)
            if expected.ndim
        ]
        containers = sorted({value.container for value in arrays} - {"ndarray", "float64", "bool", "bool_"})
        if containers:
            notes.append(Note("container", {"types": ", ".join(containers)}))
        low = sorted({value.dtype for value in values if value.dtype in ("float32", "float16", "bfloat16")})
        if low and not containers:
            notes.append(Note("precision", {"dtype": ", ".join(low)}))
        if any(self._underflow(seen) for seen in self.seen if seen.fixture.name == "large, masked"):
            notes.append(Note("underflow"))
        if any(seen.outcome.error is not None or not seen.right for seen in self.remarks):
            notes.append(Note("no_broadcast"))
        if library := _library_call(self.exercise, self.function):
            notes.append(Note("library", {"name": library}))
        return notes


def expected_of(exercise: Exercise, arguments: tuple[Any, ...]) -> tuple[NDArray, ...]:
    """The right answer, as a tuple of arrays."""
    result = exercise.reference(*arguments)
    return tuple(np.asarray(one) for one in result) if isinstance(result, tuple) else (np.asarray(result),)


def _size(argument: Any) -> str:
    if isinstance(argument, np.ndarray):
        return str(argument.shape)
    arrays = arrays_in(argument)
    if arrays:
        return f"({len(arrays)} arrays, the first {arrays[0].shape})"
    return getattr(argument, "__name__", str(argument))


def _lower_precision(outcomes: list[Outcome]) -> None:
    """float32 times a float64 scalar is float64 by name, but not by its digits: compare it as float32."""
    for outcome in outcomes:
        for value in outcome.values:
            if value.array is not None and value.array.dtype == np.float64:
                with np.errstate(all="ignore"):
                    value.array = value.array.astype(np.float32)
                value.dtype = "float32"


def _library_call(exercise: Exercise, function: Any) -> str | None:
    """The name of a library's function that is the whole exercise, if the answer uses one."""
    attention = "scaled_dot_product_attention"
    wanted = {
        "softmax": "softmax",
        "masked_cross_entropy": "cross_entropy",
        **dict.fromkeys(("attention", "self_attention", "cross_attention", attention), attention),
    }.get(exercise.id)
    if wanted is None or wanted not in source.names_used(function):
        return None
    scope = getattr(inspect.unwrap(function), "__globals__", {})
    imported = [name for name in source.names_used(function) if name in ("torch", "scipy")]
    for name in source.names_used(function):
        thing = scope.get(name)
        home = getattr(thing, "__name__", "") if inspect.ismodule(thing) else getattr(thing, "__module__", None) or ""
        if home.partition(".")[0] in ("torch", "scipy", "jax", "tensorflow"):
            imported.append(home.partition(".")[0])
    return f"{imported[0]} {wanted}" if imported else None


def _result(exercise: Exercise, problem: Problem | None, started: float) -> CheckResult:
    seconds = time.perf_counter() - started
    if problem is None:
        return CheckResult(exercise.id, exercise.version, "pass", seconds=seconds)
    evidence = {"problem": problem.code, **problem.details}
    return CheckResult(exercise.id, exercise.version, problem.status, problem.stage, evidence=evidence, seconds=seconds)


class _Remembered:
    """Verdicts that took long, by function object and by what it uses: a changed helper is a new question."""

    def __init__(self) -> None:
        self.verdicts: dict[tuple[Any, ...], tuple[Callable[[], Any], CheckResult]] = {}
        self.lock = threading.Lock()

    def key(self, exercise: Exercise, function: Any, pickled: bytes | None) -> tuple[Any, ...] | None:
        if pickled is None:
            digest: Any = source.code_hash(function)
        else:
            digest = hashlib.blake2b(pickled, digest_size=16).digest()
        return exercise.id, exercise.version, id(function), digest

    def get(self, key: tuple[Any, ...] | None, function: Any) -> CheckResult | None:
        with self.lock:
            found = self.verdicts.get(key) if key is not None else None
        return found[1] if found is not None and found[0]() is function else None

    def keep(self, key: tuple[Any, ...] | None, function: Any, result: CheckResult) -> None:
        if key is None:
            return
        try:
            same = weakref.ref(function)
        except TypeError:
            return
        with self.lock:
            if len(self.verdicts) > 200:
                self.verdicts.clear()
            self.verdicts[key] = (same, result)


_remembered = _Remembered()
