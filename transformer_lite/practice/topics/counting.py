"""Counting: parameters, and multiply-adds of attention and of a layer."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from transformer_lite import equations
from transformer_lite.practice.fixtures import MORE, Fixture
from transformer_lite.practice.properties import Asking, Shown
from transformer_lite.practice.registry import Exercise
from transformer_lite.traps import counting as traps

EXERCISES = (
    Exercise(
        id="parameter_count",
        version=1,
        chapter="assembling-encoder-and-decoder",
        reference=equations.parameter_count,
        parameters=("d_model", "d_ff", "n_layers", "vocab_size", "n_heads", "d_k", "biases"),
        optional=3,
        defaults=(8, None, True),
        returns=("count",),
        axes=((),),
        whole_numbers=True,
        minutes=4,
        difficulty=2,
        importance=2,
        exams=("e-shikaku",),
        n_hints=4,
        solution='''\
def parameter_count(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    """-> the number of learned parameters of an encoder-decoder Transformer with one shared embedding table."""
    d_v = d_model // n_heads
    if d_k is None:
        d_k = d_v
    queries_and_keys = 2 * (d_model + biases) * n_heads * d_k  # W^Q, W^K and their biases
    values_and_output = 2 * (d_model + biases) * d_model  # W^V, W^O and their biases
    attention = queries_and_keys + values_and_output
    feed_forward = (d_model * d_ff + d_ff) + (d_ff * d_model + d_model)
    norm = 2 * d_model  # gain and bias
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return n_layers * (encoder + decoder) + vocab_size * d_model
''',
    ),
    Exercise(
        id="attention_cost",
        version=1,
        chapter="cost-and-scale",
        reference=equations.attention_cost,
        parameters=("n", "d_model"),
        optional=0,
        returns=("scores", "weighted_sum"),
        axes=((), ()),
        whole_numbers=True,
        minutes=5,
        difficulty=1,
        importance=3,
        exams=("e-shikaku", "g-kentei"),
        n_hints=3,
        solution='''\
def attention_cost(n, d_model):
    """-> multiply-adds: (scores, weighted sum)."""
    scores = n * n * d_model  # n queries with n keys, d_model multiply-adds each
    weighted_sum = n * n * d_model  # n means over n values of width d_model
    return scores, weighted_sum
''',
    ),
    Exercise(
        id="layer_cost",
        version=1,
        chapter="cost-and-scale",
        reference=equations.layer_cost,
        parameters=("n", "d_model", "d_ff"),
        optional=0,
        returns=("projections", "scores", "weighted_sum", "feed_forward"),
        axes=((), (), (), ()),
        whole_numbers=True,
        minutes=10,
        difficulty=2,
        importance=2,
        exams=("e-shikaku",),
        n_hints=3,
        solution='''\
def layer_cost(n, d_model, d_ff):
    """-> multiply-adds: (projections, scores, weighted sum, feed-forward)."""
    projections = 4 * n * d_model**2  # W^Q, W^K, W^V, W^O for each of n tokens
    scores = n**2 * d_model
    weighted_sum = n**2 * d_model
    feed_forward = 2 * n * d_model * d_ff  # there and back
    return projections, scores, weighted_sum, feed_forward
''',
    ),
)

# Inputs ---------------------------------------------------------------------------------------------------------------

BASE = (512, 2048, 6, 37_000)


@cache
def _count_fixed() -> tuple[Fixture, ...]:
    return (
        Fixture("rectangular", (12, 40, 3, 50, 4)),
        Fixture("the base model", BASE),
        Fixture("small", (4, 8, 1, 10, 2)),
        Fixture("the base model without attention biases", (*BASE, 8, None, False)),
        Fixture("the big model", (1024, 4096, 6, 37_000, 16)),
        Fixture("narrow keys", (*BASE, 8, 16), phase=MORE),
        Fixture("wide keys without attention biases", (12, 40, 3, 50, 4, 5, False), phase=MORE),
    )


def _count_drawn(seed: int) -> Fixture:
    rng = np.random.default_rng(seed)
    n_heads = int(rng.integers(2, 7))
    d_model = n_heads * int(rng.integers(2, 9))
    return Fixture(
        "drawn", (d_model, int(rng.integers(50, 200)), int(rng.integers(2, 6)), int(rng.integers(200, 900)), n_heads), seed=seed
    )


@cache
def _attention_fixed() -> tuple[Fixture, ...]:
    return (
        Fixture("rectangular", (7, 5)),
        Fixture("small", (2, 3)),
        Fixture("a wide model", (10, 512)),
        Fixture("a long text", (4096, 512)),
        Fixture("square", (6, 6)),
    )


def _attention_drawn(seed: int) -> Fixture:
    n, d_model = np.random.default_rng(seed).choice(np.arange(3, 90), size=2, replace=False)
    return Fixture("drawn", (int(n), int(d_model)), seed=seed)


@cache
def _layer_fixed() -> tuple[Fixture, ...]:
    return tuple(
        Fixture(one.name, (*one.arguments, d_ff)) for one, d_ff in zip(_attention_fixed(), (11, 4, 2048, 2048, 24), strict=True)
    )


def _layer_drawn(seed: int) -> Fixture:
    n, d_model, d_ff = np.random.default_rng(seed).choice(np.arange(3, 90), size=3, replace=False)
    return Fixture("drawn", (int(n), int(d_model), int(d_ff)), seed=seed)


FIXTURES = {
    "parameter_count": (_count_fixed, _count_drawn),
    "attention_cost": (_attention_fixed, _attention_drawn),
    "layer_cost": (_layer_fixed, _layer_drawn),
}

# What can be checked again --------------------------------------------------------------------------------------------


def _of_the_base_model(key: str) -> Callable[[Asking], Shown]:
    """The count of the base model and how far off it is, if this mistake, alone or with one other, explains the count."""

    def shown(asking: Asking) -> Shown:
        seen = asking.seen["the base model"]
        if seen.arrays is None:
            return None
        count, right = int(seen.arrays[0]), int(seen.expected[0])
        family = traps.count
        settings = [setting for keys, setting in (*family.singles, *family.pairs) if key in keys]
        if count not in [int(family.core(*seen.fixture.arguments, **setting)[0]) for setting in settings]:
            return None
        numbers = {"count": f"{count:,}", "right": f"{right:,}", "difference": f"{count - right:+,}"}
        return {"call": ", ".join(map(str, BASE)), **numbers}

    return shown


def _growth(which: int, factor: int) -> Callable[[Asking], Shown]:
    """How much a term grows when n (0) or d_model (1) doubles; the right factors are 4 and 2."""

    def shown(asking: Asking) -> Shown:
        small: list[Any] = [20, 30, *([50] if len(asking.judgement.exercise.parameters) > 2 else [])]
        doubled = list(small)
        doubled[which] *= 2
        one, two = asking.ask(*small), asking.ask(*doubled)
        if one is None or two is None:
            return None
        names = asking.judgement.exercise.returns
        for name, before, after in zip(names, one, two, strict=True):
            if name in ("scores", "weighted_sum") and int(after) == factor * int(before):
                calls = {"first": ", ".join(map(str, small)), "second": ", ".join(map(str, doubled))}
                return {**calls, "term": name, "before": f"{int(before):,}", "after": f"{int(after):,}", "factor": factor}
        return None

    return shown


PROPERTIES: dict[str, Callable[[Asking], Shown]] = {
    **{f"PC{number}": _of_the_base_model(f"PC{number}") for number in range(1, 9)},
    "CO1": _growth(0, 2),
    "CO2": _growth(1, 4),
    "CO3": _growth(0, 8),
}
PROBES: dict[str, Any] = {}
