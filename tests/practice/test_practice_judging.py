"""The stages of a judgement; and what must never be: a wrong "wrong", a solved that is not one's own, an exception of ours."""

import functools
import inspect
import json
import random
import warnings

import numpy as np
import practice_answers as answers
import pytest

from transformer_lite import equations, practice
from transformer_lite.equations import scaled_dot_product_attention as mine
from transformer_lite.practice import judging, source


def verdict(exercise, function):
    result = practice.judge(exercise, function)
    json.dumps(result.to_dict(), allow_nan=False)
    assert result.text("ja") and result.text("en", verbose=True)
    return result


# Blank --------------------------------------------------------------------------------------------------------------


def blank_dots(x, axis=-1):
    """(...) -> (...)"""
    ...  # noqa: PIE790


def blank_pass(x, axis=-1):
    pass


def blank_raise(x, axis=-1):
    raise NotImplementedError("write me")


def blank_line(x, axis=-1):
    return ____  # noqa: F821


def blank_none(x, axis=-1):
    return None


def blank_with_return(queries, keys, values):
    """(n_q, d_k), ..."""
    ...  # noqa: PIE790
    return output, weights  # noqa: F821


def blank_assignments(x, axis=-1):
    exponentials = ...
    return exponentials


@pytest.mark.parametrize(
    "function", [blank_dots, blank_pass, blank_raise, blank_line, blank_none, blank_assignments], ids=lambda f: f.__name__
)
def test_a_blank_body_is_unsolved_and_does_not_run(function):
    assert practice.is_blank(function)
    result = verdict("softmax", function)
    assert (result.status, result.stage, bool(result)) == ("unsolved", "blank", False)


def test_a_stub_with_its_return_line_is_blank_too():
    assert verdict("attention", blank_with_return).status == "unsolved"
    assert verdict("attention", None).status == verdict("attention", ...).status == "unsolved"


def test_a_blank_without_visible_source_is_noticed_when_it_runs():
    scope = {}
    exec("def softmax(x, axis=-1):\n    raise NotImplementedError", scope)
    assert verdict("softmax", scope["softmax"]).status == "unsolved"
    exec("def softmax(x, axis=-1):\n    return ...", scope)
    assert verdict("softmax", scope["softmax"]).status == "unsolved"


@pytest.mark.parametrize("function", [answers.softmax_plain, answers.sm5_plain, lambda x, axis=-1: ..., practice.judge])
def test_what_has_a_body_is_not_blank(function):
    assert not practice.is_blank(function)


def test_the_hash_of_code_is_that_of_what_it_does():
    scope = {}
    exec("def one(x):\n    return x + 1\ndef other(x):\n    return x + 2", scope)
    assert practice.code_hash(scope["one"]) != practice.code_hash(scope["other"])
    assert practice.code_hash(answers.sm7_plain) != practice.code_hash(answers.sm7_stable)
    assert practice.code_hash(answers.sm7_plain) == practice.code_hash(answers.sm7_plain)


# The companion's own function ------------------------------------------------------------------------------------------


def wrapper(queries, keys, values):
    return equations.scaled_dot_product_attention(queries, keys, values)


def hides_it(queries, keys, values):
    try:
        return mine(queries, keys, values)
    except Exception:
        return answers.attention_plain(queries, keys, values)


def hides_everything(queries, keys, values):
    try:
        return mine(queries, keys, values)
    except:  # noqa: E722
        return answers.attention_plain(queries, keys, values)


COMPANION = [
    mine,
    wrapper,
    hides_it,
    hides_everything,
    functools.partial(mine, mask=None),
    functools.partial(mine),
    lambda q, k, v: mine(q, k, v),
    mine.__wrapped__,
]


@pytest.mark.parametrize("function", COMPANION, ids=range(len(COMPANION)))
@pytest.mark.parametrize("exercise", ["attention", "scaled_dot_product_attention"])
def test_calling_the_exercise_s_own_reference_is_noticed_and_kindly_not_counted(exercise, function):
    result = verdict(exercise, function)
    assert (result.status, bool(result)) == ("uses_reference", False)
    assert result.text("en").startswith("USES THE COMPANION")


def hidden_behind_the_reference(queries, keys, values, mask=None):
    return mine.__wrapped__(queries, keys, values, mask)


def test_the_function_behind_the_reference_cannot_be_reached():
    for exercise in ("attention", "scaled_dot_product_attention"):
        result = verdict(exercise, hidden_behind_the_reference)
        assert (result.status, result.evidence["type"]) == ("error", "AttributeError")
    assert "weights" in inspect.getsource(mine)  # here, learners may read it


def test_another_exercise_s_function_may_be_used():
    def attention(queries, keys, values):
        weights = equations.softmax(equations.attention_scores(queries, keys))
        return weights @ values, weights

    assert verdict("attention", attention).status == "pass"
    assert verdict("softmax", lambda x, axis=-1: equations.softmax(x, axis)).status == "uses_reference"


def test_what_lab_made_of_a_function_is_unwrapped():
    class Proxy:
        def __init__(self, function):
            self.__transformer_lite_function__ = function

        def __call__(self, *arguments):
            raise AssertionError("the companion's would be called")

    assert verdict("softmax", Proxy(answers.softmax_plain)).status == "pass"
    assert verdict("softmax", Proxy(answers.sm5_plain)).traps == ("SM5",)
    assert practice.is_blank(Proxy(blank_dots)) and source.own_function(Proxy(blank_dots)) is blank_dots


def test_a_function_that_relies_on_others_of_the_notebook_is_judged_with_them():
    scope = {"np": np}
    exec("def first(x, axis):\n    return np.exp(x - x.max(axis=axis, keepdims=True))", scope)
    exec("def second(e, axis):\n    return e / e.sum(axis=axis, keepdims=True)", scope)
    exec("def softmax(x, axis=-1):\n    return second(first(x, axis), axis)", scope)
    assert verdict("softmax", scope["softmax"]).status == "pass"


# Signature, return, container, shape, dtype ----------------------------------------------------------------------------


def test_a_thing_that_is_no_function():
    result = verdict("softmax", 3)
    assert (result.status, result.stage) == ("error", "callable") and "int" in result.text("en")


def test_a_missing_parameter_is_named():
    result = verdict("attention", lambda queries, keys: queries)
    assert (result.status, result.stage) == ("wrong", "signature") and "values" in result.text("en")
    result = verdict("attention", lambda queries, keys, values, d_k: queries)
    assert result.stage == "signature" and "d_k" in result.text("en")


def test_a_missing_optional_parameter_is_asked_for_only_when_the_rest_is_right():
    result = verdict("scaled_dot_product_attention", answers.attention_plain)
    assert (result.status, result.stage, result.evidence["problem"]) == ("wrong", "signature", "missing_optional")
    assert "mask" in result.text("en")
    assert verdict("scaled_dot_product_attention", answers.at1).traps == ("AT1",)
    assert verdict("causal_mask", lambda n: np.tri(n, dtype=bool)).evidence["problem"] == "missing_optional"
    assert verdict("causal_mask", lambda n: np.tri(n, k=-1, dtype=bool)).traps == ("CM1",)


def returns_nothing(x, axis=-1):
    y = np.exp(x)
    y / y.sum(axis=axis, keepdims=True)


def prints_instead(x, axis=-1):
    print(answers.soft(x, axis))


def generator(x, axis=-1):
    yield answers.soft(x, axis)


async def coroutine(x, axis=-1):
    return answers.soft(x, axis)


def integers(x, axis=-1):
    return answers.soft(x, axis).astype(int)


def strings(x, axis=-1):
    return [["a"]]


def ragged(x, axis=-1):
    return [[1.0, 2.0], [3.0]]


def huge(x, axis=-1):
    return np.zeros((3000, 3000))


def whole_sum(x, axis=-1):
    return np.float64(1.0)


STAGES = [
    (returns_nothing, "return", "none"),
    (prints_instead, "return", "printed_instead"),
    (generator, "return", "unfinished"),
    (coroutine, "return", "unfinished"),
    (strings, "container", "not_numbers"),
    (ragged, "container", "ragged"),
    (huge, "shape", "too_big"),
    (whole_sum, "shape", "axis_lost"),
    (integers, "dtype", "integers"),
    (lambda x, axis=-1: (answers.soft(x, axis), 1), "return", "too_many"),
    (lambda x, axis=-1: answers.soft(x, axis).T, "shape", "transposed"),
    (lambda x, axis=-1: answers.soft(x, axis) + 0j, "dtype", "other_dtype"),
    (lambda x, axis=-1: np.log(np.abs(x) * 0), "finite", "log_of_zero"),
]


@pytest.mark.filterwarnings("ignore:coroutine")
@pytest.mark.parametrize(("function", "stage", "problem"), STAGES, ids=[one[2] for one in STAGES])
def test_the_first_problem_is_the_one_that_is_said(function, stage, problem):
    result = verdict("softmax", function)
    assert (result.status, result.stage, result.evidence["problem"]) == ("wrong", stage, problem)


def swapped(queries, keys, values):
    return answers.attention_plain(queries, keys, values)[::-1]


def swapped_and_wrong(queries, keys, values):
    return answers.at1(queries, keys, values)[::-1]


def only_the_output(queries, keys, values):
    return answers.attention_plain(queries, keys, values)[0]


def turned_weights(queries, keys, values):
    output, weights = answers.attention_plain(queries, keys, values)
    return output, weights.swapaxes(-1, -2)


def squeezed(queries, keys, values):
    return tuple(np.squeeze(one) for one in answers.attention_plain(queries, keys, values))


def first_of_the_batch(queries, keys, values):
    output, weights = answers.attention_plain(queries, keys, values)
    return (output, weights) if output.ndim == 2 else (output[0], weights[0])


def no_batch(queries, keys, values):
    weights = answers.soft(queries @ keys.T / np.sqrt(queries.shape[-1]))
    return weights @ values, weights


def weights_missing(queries, keys, values):
    return answers.attention_plain(queries, keys, values)[0], None


@pytest.mark.parametrize(
    ("function", "stage", "problem", "words"),
    [
        (swapped, "return", "swapped_right", "only the order is swapped"),
        (swapped_and_wrong, "return", "swapped", "wrong order"),
        (only_the_output, "return", "only_one", "shaped like output"),
        (weights_missing, "return", "part_none", "weights is None"),
        (turned_weights, "shape", "transposed", "(6, 4) = (n_k, n_q): transposed"),
        (squeezed, "shape", "axis_of_one_lost", "an axis of size 1 is gone"),
        (first_of_the_batch, "shape", "batch_lost", "the batch axis is lost"),
        (no_batch, "shape", "raises_batch", ".T reverses all axes"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_the_actual_cause_and_place_is_named(function, stage, problem, words):
    result = verdict("attention", function)
    assert (result.status, result.stage, result.evidence["problem"], result.traps) == ("wrong", stage, problem, ())
    assert words in result.text("en")


def test_zero_times_infinity_is_told_from_other_nan():
    def function(queries, keys, values, mask=None):
        scores = answers.dots(queries, keys) / np.sqrt(queries.shape[-1])
        if mask is not None:
            scores = scores + ~mask * -np.inf
        weights = answers.soft(scores)
        return weights @ values, weights

    result = verdict("scaled_dot_product_attention", function)
    assert (result.stage, result.evidence["problem"]) == ("finite", "zero_times_infinity")


def test_an_error_shows_the_learner_s_own_line():
    def attention(queries, keys, values):
        scores = answers.dots(queries, keys)
        weights = scores / scores.sum(axis=-1)
        return weights @ values, weights

    result = verdict("attention", attention)
    assert (result.status, result.stage) == ("error", "run")
    text = result.text("en")
    assert "weights = scores / scores.sum(axis=-1)" in text and "keepdims=True" in text and "queries (4, 9)" in text
    assert "keepdims=True" in result.text("ja") and "行目" in result.text("ja")
    assert "practice/" not in text and "Traceback" not in text


def test_a_mask_in_another_convention_is_a_variant_and_no_mistake():
    numbers = verdict("causal_mask", lambda n, m=None: np.tri(n, m or n, k=(m or n) - n))
    assert (numbers.status, numbers.evidence["problem"], numbers.traps, bool(numbers)) == ("variant", "numbers", (), False)
    additive = verdict("causal_mask", lambda n, m=None: np.where(np.tri(n, m or n, k=(m or n) - n), 0.0, -np.inf))
    assert (additive.status, additive.evidence["problem"]) == ("variant", "additive")
    assert additive.text("en").startswith("ANOTHER CONVENTION")
    inverted = verdict("causal_mask", lambda n, m=None: np.triu(np.full((n, m or n), -np.inf)))
    assert inverted.status == "wrong"


# Notes -----------------------------------------------------------------------------------------------------------------


def notes(result):
    return [note.code for note in result.notes]


def in_place(queries, keys, values):
    queries /= np.sqrt(queries.shape[-1])
    weights = answers.soft(answers.dots(queries, keys))
    return weights @ values, weights


def chatty(x, axis=-1):
    for i in range(10_000):
        print("line", i)
    return answers.soft(x, axis)


def test_dirty_hands_get_one_note_and_pass():
    result = verdict("attention", in_place)
    assert result.status == "pass" and notes(result) == ["mutated"] and "queries" in result.text("en")
    result = verdict("softmax", chatty)
    assert result.status == "pass" and notes(result) == ["printed"]
    assert len(result.text("en")) < 400
    assert notes(verdict("softmax", answers.softmax_list)) == ["container"]
    assert notes(verdict("softmax", answers.softmax_single_precision)) == ["precision"]


def test_a_clean_right_answer_gets_no_note():
    assert notes(verdict("softmax", answers.softmax_plain)) == []
    assert notes(verdict("attention", answers.attention_plain)) == []
    assert notes(verdict("scaled_dot_product_attention", answers.masked_infinity)) == []
    assert notes(verdict("causal_mask", answers.causal_tri)) == []


def test_a_mask_that_does_not_broadcast_is_remarked():
    def function(queries, keys, values, mask=None):
        scores = answers.dots(queries, keys) / np.sqrt(queries.shape[-1])
        if mask is not None:
            scores[~mask] = -np.inf
        weights = answers.soft(scores)
        return weights @ values, weights

    result = verdict("scaled_dot_product_attention", function)
    assert result.status == "pass" and notes(result) == ["no_broadcast"]


def test_randomness_is_noticed():
    result = verdict("softmax", lambda x, axis=-1: answers.soft(x, axis) + 1e-3 * np.random.rand(*x.shape))
    assert result.status == "wrong" and result.evidence["laws"] == [{"law": "unsteady"}]


def test_random_states_of_the_notebook_are_left_alone():
    def seeds(x, axis=-1):
        np.random.seed(0)
        random.seed(0)
        return answers.soft(x, axis)

    before = np.random.get_state()[1].tolist(), random.getstate()
    assert verdict("softmax", seeds).status == "pass"
    assert (np.random.get_state()[1].tolist(), random.getstate()) == before


def test_torch_is_welcome():
    pytest.importorskip("torch")
    result = verdict("attention", answers.attention_torch)
    assert result.status == "pass" and notes(result) == ["container"]
    result = verdict("attention", answers.attention_torch_library)
    assert result.status == "pass" and set(notes(result)) == {"container", "library"}
    assert verdict("scaled_dot_product_attention", answers.masked_torch).status == "pass"
    assert "library" in notes(verdict("softmax", answers.softmax_torch))


def test_the_drawn_input_catches_learned_answers_and_can_be_drawn_again():
    known = {}
    for seed in (1,):
        from transformer_lite.practice.fixtures import fixtures

        known = {one.arguments[0].tobytes(): equations.softmax(*one.arguments) for one in fixtures("softmax", seed)[:-1]}

    def learned(x, axis=-1):
        return known.get(x.tobytes(), np.full(x.shape, 1 / x.shape[-1]))

    result = verdict("softmax", learned)
    assert result.status == "wrong"
    first, second = (practice.judge("softmax", answers.sm5_plain, seed=77).to_dict() for _ in range(2))
    first.pop("seconds"), second.pop("seconds")
    assert first == second and first["evidence"]["seed"] == 77


def test_a_notebook_variable_is_pointed_out_when_the_answer_is_wrong():
    scope = {"np": np, "d_k": 8}
    exec("def attention_scores(queries, keys):\n    return queries @ keys.swapaxes(-1, -2) / np.sqrt(d_k)", scope)
    result = verdict("attention_scores", scope["attention_scores"])
    assert result.status == "wrong" and "d_k" in result.text("en")


# Our own mistakes ------------------------------------------------------------------------------------------------------


def test_a_mistake_of_ours_is_never_the_learner_s(monkeypatch):
    def broken(self, started):
        raise RuntimeError("ours")

    monkeypatch.setattr(judging._Judgement, "verdict", broken)
    result = verdict("softmax", lambda x, axis=-1: answers.soft(x, axis))
    assert (result.status, bool(result)) == ("grader_problem", False)
    assert result.text("en").startswith("NOT JUDGED") and "RuntimeError" in result.text("en")


def test_an_unknown_exercise_names_the_nearest():
    with pytest.raises(practice.UnknownExercise, match="softmax"):
        practice.judge("sofmax", answers.softmax_plain)
    with pytest.raises(practice.UnknownExercise, match="scaled_dot_product_attention"):
        practice.exercise("scaled-dot-product-attention")


STRANGE = [
    lambda *everything: None,
    lambda **everything: everything,
    lambda x, axis=-1: x[0],
    lambda x, axis=-1: [],
    lambda x, axis=-1: {},
    lambda x, axis=-1: (),
    lambda x, axis=-1: np.array([]),
    lambda x, axis=-1: np.array(["a"]),
    lambda x, axis=-1: np.ma.masked_array(x, x > 0),
    lambda x, axis=-1: np.array(x, dtype=object),
    lambda x, axis=-1: np.full(x.shape, np.inf),
    lambda x, axis=-1: np.datetime64("2024-01-01"),
    lambda x, axis=-1: type("Odd", (), {"__array__": lambda self, *a, **k: 1 / 0})(),
    lambda x, axis=-1: print,
    lambda x, axis=-1: np.matrix(answers.soft(x.reshape(len(x), -1), -1)),
    np.exp,
    len,
    dict,
    functools.partial(answers.softmax_plain, axis=-1),
    type("Called", (), {"__call__": lambda self, x, axis=-1: answers.soft(x, axis)})(),
]


@pytest.mark.parametrize("function", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("exercise", list(practice.exercises()))
def test_nothing_that_is_thrown_at_it_breaks_it(exercise, function):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = verdict(exercise, function)
    assert result.status != "grader_problem", result.evidence
