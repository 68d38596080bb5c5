"""Training: the shifted decoder input, smoothed targets, the loss without padding, the schedule of the learning rate."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.practice.fixtures import EXTREME, MORE, Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise

CHAPTER = "training"

EXERCISES = (
    Exercise(
        id="shift_right",
        version=1,
        chapter=CHAPTER,
        reference=equations.shift_right,
        parameters=("labels", "bos_id"),
        optional=0,
        returns=("decoder_input",),
        axes=(("n",),),
        whole_numbers=True,
        minutes=3,
        difficulty=1,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=4,
        solution='''\
def shift_right(labels, bos_id):
    """(..., n), integers -> (..., n): the start symbol first, the last label dropped."""
    shifted = np.empty_like(labels)
    shifted[..., 0] = bos_id
    shifted[..., 1:] = labels[..., :-1]  # place i holds label i - 1
    return shifted
''',
    ),
    Exercise(
        id="label_smoothing",
        version=1,
        chapter=CHAPTER,
        reference=equations.label_smoothing,
        parameters=("targets", "vocab_size", "epsilon"),
        optional=0,
        returns=("distribution",),
        axes=(("n", "V"),),
        variants=("LS4",),
        minutes=3,
        difficulty=1,
        importance=2,
        exams=("e-shikaku",),
        n_hints=3,
        solution='''\
def label_smoothing(targets, vocab_size, epsilon):
    """(...), integers -> (..., V): (1 - epsilon) one-hot + epsilon / V; each row sums to 1."""
    one_hot = np.eye(vocab_size)[targets]  # (...) -> (..., V)
    return (1 - epsilon) * one_hot + epsilon / vocab_size
''',
    ),
    Exercise(
        id="masked_cross_entropy",
        version=1,
        chapter=CHAPTER,
        reference=equations.masked_cross_entropy,
        parameters=("logits", "targets", "real"),
        optional=0,
        returns=("loss",),
        axes=((),),
        minutes=7,
        difficulty=2,
        importance=2,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def masked_cross_entropy(logits, targets, real):
    """(..., V), (...), (...) -> one number: the mean of -log p(target) over the real tokens."""
    logits = logits - logits.max(axis=-1, keepdims=True)  # changes nothing, keeps exp from overflowing
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))  # (..., V), logarithm of the softmax
    at_target = np.take_along_axis(log_p, targets[..., np.newaxis], axis=-1)[..., 0]  # (...)
    return -at_target[real].mean()
''',
    ),
    Exercise(
        id="noam_learning_rate",
        version=1,
        chapter=CHAPTER,
        reference=equations.noam_learning_rate,
        parameters=("step", "d_model", "warmup"),
        optional=1,
        defaults=(4000,),
        returns=("learning_rate",),
        axes=((),),
        minutes=3,
        difficulty=1,
        importance=2,
        exams=("e-shikaku",),
        n_hints=3,
        solution='''\
def noam_learning_rate(step, d_model, warmup=4000):
    """-> the learning rate of this step (counted from 1); largest at step = warmup."""
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
''',
    ),
)

# Inputs ---------------------------------------------------------------------------------------------------------------

PAD, EOS = 0, 2


def _labels(name: str, labels: list[Any], bos_id: int, **more: Any) -> Fixture:
    array = np.array(labels)
    sizes = {"n": array.shape[-1]} | ({"batch": len(array)} if array.ndim > 1 else {})
    return Fixture(name, (array, bos_id), sizes, **more)


@cache
def _shift_fixed() -> tuple[Fixture, ...]:
    return (
        _labels("rectangular", [5, 9, 4, 7, 6, EOS], 1),
        _labels("small", [7, 8, EOS], 1),
        _labels("another start symbol", [4, 11, 6, 3, EOS], 50),
        _labels("batch", [[5, 9, 4, 7, EOS], [8, 3, EOS, PAD, PAD], [6, EOS, PAD, PAD, PAD]], 1, phase=MORE, may_raise=True),
        _labels("square batch", [[5, 9, EOS], [8, EOS, PAD], [3, 7, EOS]], 1, phase=MORE, may_raise=True),
    )


def _shift_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    words = rng.choice(np.arange(3, 40), size=int(rng.integers(4, 9)), replace=False)
    return _labels("drawn", [*words.tolist(), EOS], int(rng.integers(40, 60)), seed=seed)


def _targets(
    name: str, rng: np.random.Generator, shape: tuple[int, ...], vocab_size: int, epsilon: float, **more: Any
) -> Fixture:
    sizes = {"n": shape[-1], "V": vocab_size} | ({"batch": shape[0]} if len(shape) > 1 else {})
    return Fixture(name, (rng.integers(0, vocab_size, size=shape), vocab_size, epsilon), sizes, **more)


@cache
def _smoothing_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(17)
    return (
        _targets("rectangular", rng, (3,), 5, 0.1),
        _targets("square", rng, (6,), 6, 0.3),
        Fixture("small", (np.array([2, 0]), 4, 0.2), {"n": 2, "V": 4}),
        _targets("no smoothing", rng, (4,), 7, 0.0),
        _targets("batch", rng, (2, 3), 8, 0.15, phase=MORE, may_raise=True),
    )


def _smoothing_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n, vocab_size = rng.choice([3, 4, 5, 6, 7, 8], size=2, replace=False)
    return _targets("drawn", rng, (int(n),), int(vocab_size), float(rng.choice([0.1, 0.15, 0.2, 0.25])), seed=seed)


def _predictions(
    name: str, rng: np.random.Generator, shape: tuple[int, ...], vocab_size: int, padded: bool = True, **more: Any
) -> Fixture:
    """Logits of which no target gets next to nothing: log(p + 1e-7), which many books write, is then near enough."""
    sizes = {"n": shape[-1], "V": vocab_size} | ({"batch": shape[0]} if len(shape) > 1 else {})
    while True:
        logits, targets = rng.normal(0.3, 0.9, size=(*shape, vocab_size)), rng.integers(0, vocab_size, size=shape)
        real = rng.random(shape) < 0.65 if padded else np.ones(shape, dtype=bool)
        p = np.take_along_axis(equations.softmax(logits), targets[..., np.newaxis], axis=-1)[..., 0]
        if p.min() < 0.05 or (padded and not 2 <= real.sum() < real.size):
            continue
        losses, picked = -np.log(p), np.take_along_axis(logits, targets[..., np.newaxis], axis=-1)[real]
        telling = abs(losses.mean() - losses[real].mean()) > 0.05 and abs(losses.sum() / real.sum() - losses[real].mean()) > 0.05
        if abs(picked.mean()) > 0.1 and (telling or not padded):
            return Fixture(name, (logits, targets, real), sizes, **more)


@cache
def _loss_fixed() -> tuple[Fixture, ...]:
    rng = np.random.default_rng(23)
    small = np.array([[2.0, 0.0, 1.0, 0.0], [0.0, 1.0, 3.0, 0.0], [1.0, 1.0, 0.0, 2.0]])
    large = 1000.0 + np.array([[0.0, 1.0, 2.0, -1.0], [1.0, 0.0, -1.5, 0.5], [-1.0, 2.0, 1.0, 0.0]])
    return (
        _predictions("rectangular", rng, (5,), 7),
        _predictions("square", rng, (6,), 6),
        Fixture("small", (small, np.array([0, 2, 0]), np.array([True, True, False])), {"n": 3, "V": 4}),
        _predictions("nothing padded", rng, (4,), 5, padded=False),
        _predictions("batch", rng, (2, 4), 6, phase=MORE, may_raise=True),
        Fixture("large", (large, np.array([1, 0, 2]), np.array([True, True, False])), {"n": 3, "V": 4}, phase=EXTREME),
    )


def _loss_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n, vocab_size = rng.choice([4, 5, 6, 7, 8], size=2, replace=False)
    return _predictions("drawn", rng, (int(n),), int(vocab_size), seed=seed)


@cache
def _schedule_fixed() -> tuple[Fixture, ...]:
    return (
        Fixture("rising", (3, 25, 40)),
        Fixture("falling", (90, 16, 10)),
        Fixture("small", (1, 16, 4)),
        Fixture("at the peak", (9, 36, 9)),
        Fixture("late", (50_000, 4, 10)),
        Fixture("warmup left out", (2000, 4)),
        Fixture("the peak in the paper", (4000, 512, 4000)),
    )


def _schedule_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    warmup = int(rng.integers(10, 40))
    return Fixture("drawn", (int(rng.integers(2, 4 * warmup)), int(rng.integers(5, 40)), warmup), seed=seed)


FIXTURES = {
    "shift_right": (_shift_fixed, _shift_drawn),
    "label_smoothing": (_smoothing_fixed, _smoothing_drawn),
    "masked_cross_entropy": (_loss_fixed, _loss_drawn),
    "noam_learning_rate": (_schedule_fixed, _schedule_drawn),
}

# What can be checked again --------------------------------------------------------------------------------------------


def _plain_row(array: NDArray) -> str:
    return "[" + ", ".join(f"{float(one):.4g}" for one in np.ravel(array)) + "]"


def _of_labels(test: Callable[[NDArray, NDArray], bool]) -> Callable[[Asking], Shown]:
    """The labels and what became of them, if ``test`` says that the mistake shows."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        if seen.arrays is None or not test(seen.fixture.arguments[0], seen.arrays[0]):
            return None
        labels, bos_id = seen.fixture.arguments
        gave, right = _plain_row(seen.arrays[0]), _plain_row(seen.expected[0])
        return {"given": f"{_plain_row(labels)}, {bos_id}", "gave": gave, "right": right}

    return shown


def _of_shares(test: Callable[[float, float, float], bool]) -> Callable[[Asking], Shown]:
    """What the right token and another one get, and the sum of the row, if ``test`` of these says that the mistake shows."""

    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        targets, vocab_size, epsilon = seen.fixture.arguments
        if seen.arrays is None:
            return None
        row, gold = seen.arrays[0][0], int(targets[0])
        other, total = float(np.delete(row, gold)[0]), float(row.sum())
        if not test(float(row[gold]), other, total):
            return None
        shares = {"gold": f"{float(row[gold]):.4g}", "other": f"{other:.4g}", "sum": f"{total:.4g}"}
        return {"V": vocab_size, "epsilon": epsilon, **shares}

    return shown


def _ce1(asking: Asking) -> Shown:
    seen = asking.plain()
    logits, targets, real = seen.fixture.arguments
    moved = logits.copy()
    moved[~real] *= 3.0
    before, after = asking.ask(logits, targets, real), asking.ask(moved, targets, real)
    return _two_losses(before, after, lambda one, other: abs(one - other) > 1e-3)


Answer = tuple[NDArray, ...] | None


def _two_losses(one: Answer, other: Answer, test: Callable[[float, float], bool]) -> Shown:
    if one is None or other is None or not test(float(one[0]), float(other[0])):
        return None
    return {"before": f"{float(one[0]):.4g}", "after": f"{float(other[0]):.4g}"}


def _loss_ratio(number: Callable[[NDArray], float]) -> Callable[[Asking], Shown]:
    def shown(asking: Asking) -> Shown:
        seen = asking.plain()
        real = seen.fixture.arguments[2]
        if seen.arrays is None or not np.isclose(float(seen.arrays[0]), number(real) * float(seen.expected[0]), rtol=1e-4):
            return None
        details = {"loss": f"{float(seen.arrays[0]):.4g}", "right": f"{float(seen.expected[0]):.4g}"}
        return {**details, "real": int(real.sum()), "all": int(real.size)}

    return shown


def _ce4(asking: Asking) -> Shown:
    seen = asking.plain()
    _, targets, real = seen.fixture.arguments
    certain = asking.ask(100.0 * np.eye(seen.fixture.sizes["V"])[targets], targets, real)
    if certain is None or abs(float(certain[0])) < 0.1:
        return None
    return {"loss": f"{float(certain[0]):.4g}"}


def _ce5(asking: Asking) -> Shown:
    seen = asking.plain()
    negative = seen.arrays is not None and float(seen.arrays[0]) < 0
    return {"loss": f"{float(seen.arrays[0]):.4g}"} if negative and seen.arrays else None


def _ce6(asking: Asking) -> Shown:
    seen = asking.plain()
    logits, targets, real = seen.fixture.arguments
    vocab_size = seen.fixture.sizes["V"]
    answer = asking.ask(0.0 * logits, targets, real)
    if answer is None:
        return None
    if not np.isclose(float(answer[0]), np.log2(vocab_size), rtol=1e-4):
        return None
    return {"V": vocab_size, "loss": f"{float(answer[0]):.4g}", "right": f"{np.log(vocab_size):.4g}"}


def _ce7(asking: Asking) -> Shown:
    logits, targets, real = asking.plain().fixture.arguments
    return _two_losses(
        asking.ask(logits, targets, real),
        asking.ask(logits + 4.0, targets, real),
        lambda one, other: abs(other - one) > 1.0,
    )


def _two_rates(first: tuple[int, ...], second: tuple[int, ...], ratio: float) -> Callable[[Asking], Shown]:
    """Two calls whose values stand in a ratio that the right schedule does not have."""

    def shown(asking: Asking) -> Shown:
        one, other = asking.ask(*first), asking.ask(*second)
        if one is None or other is None or not np.isclose(float(other[0]), ratio * float(one[0]), rtol=1e-4):
            return None
        calls = {"first": ", ".join(map(str, first)), "second": ", ".join(map(str, second))}
        return {**calls, "one": f"{float(one[0]):.4g}", "other": f"{float(other[0]):.4g}"}

    return shown


PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    "SR1": _of_labels(lambda labels, gave: np.array_equal(gave, labels)),
    "SR2": _of_labels(lambda labels, gave: np.array_equal(gave[:-1], labels[1:])),
    "SR3": _of_labels(lambda labels, gave: len(gave) == len(labels) + 1),
    "SR4": _of_labels(lambda labels, gave: gave[0] in (EOS, labels[-1])),
    "SR5": _of_labels(lambda labels, gave: gave[0] == PAD),
    "SR6": _of_labels(lambda labels, gave: any((labels[i + 1], labels[i]) in pairwise(gave) for i in range(len(labels) - 1))),
    "SR7": _of_labels(lambda labels, gave: np.array_equal(gave[2 : len(labels)], labels[:-2])),
    "LS1": _of_shares(lambda gold, other, total: gold == 1 and other == 0),
    "LS2": _of_shares(lambda gold, other, total: gold < 0.5),
    "LS3": _of_shares(lambda gold, other, total: total > 1 + 1e-6),
    "LS4": _of_shares(lambda gold, other, total: abs(gold - 0.9) < 1e-6),
    "LS5": _of_shares(lambda gold, other, total: total < 1 - 1e-6),
    "LS6": _of_shares(lambda gold, other, total: abs(gold - other) < 1e-9),
    "CE1": _ce1,
    "CE2": _loss_ratio(lambda real: float(real.sum() / real.size)),
    "CE3": _loss_ratio(lambda real: float(real.sum())),
    "CE4": _ce4,
    "CE5": _ce5,
    "CE6": _ce6,
    "CE7": _ce7,
    "LR1": _two_rates((1, 64, 100), (4, 64, 100), 0.5),
    "LR2": _two_rates((100, 64, 100), (400, 64, 100), 4.0),
    "LR3": _two_rates((100, 64, 100), (400, 64, 100), 1.0),
    "LR4": _two_rates((400, 64, 100), (1600, 64, 100), 0.25),
    "LR5": _two_rates((50, 64, 100), (50, 256, 100), 2.0),
    "LR6": _two_rates((1, 64, 100), (1, 64, 400), 0.5),
    "LR7": _two_rates((100, 64, 100), (100_000, 64, 100), 0.0),
    "LR8": _two_rates((50, 64, 100), (50, 256, 100), 1.0),
}


def _as_labels(moved: NDArray) -> tuple[Any, ...]:
    """Five labels, so far apart that a nudge makes another one of each."""
    return np.round(10 * moved[:, 0]).astype(np.int64), 1


PROBES = {"shift_right": (np.array([[30.0], [50.0], [70.0], [90.0], [110.0]]), _as_labels)}
