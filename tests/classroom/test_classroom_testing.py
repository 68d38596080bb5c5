"""The tests of an exercise: each mistake with a name loses one of them, the others lose what cannot be said for them."""

import numpy as np
import pytest

from transformer_lite import practice, traps
from transformer_lite.classroom import testing
from transformer_lite.practice import CheckResult


def result(exercise, status, stage=None, traps=()):
    return CheckResult(exercise, 1, status, stage, tuple(traps), "exact" if traps else "none")


@pytest.mark.parametrize("exercise", sorted(practice.exercises()))
def test_every_trap_of_an_exercise_loses_exactly_one_hidden_test(exercise):
    parts = testing.parts(exercise)
    assert parts[0] == testing.FORM and parts[-1] == testing.VALUES and len(set(parts)) == len(parts)
    for key in traps.family(exercise).traps:
        lost = [part for part in parts if not testing.passes(result(exercise, "wrong", "value", [key]), part)]
        assert lost == [testing.knobs(exercise)[key]] and lost[0] not in (testing.FORM, testing.VALUES)


@pytest.mark.parametrize(
    "status, stage, kept",
    [
        ("pass", None, "all"),
        ("variant", "dtype", "all"),
        ("wrong", "value", [testing.FORM]),
        ("wrong", "finite", [testing.FORM]),
        ("wrong", "shape", []),
        ("wrong", "return", []),
        ("wrong", "signature", []),
        ("unsolved", "blank", []),
        ("error", "run", []),
        ("timeout", "run", []),
        ("uses_reference", "run", []),
        ("grader_problem", None, []),
    ],
)
def test_what_a_verdict_without_a_name_keeps(status, stage, kept):
    parts = testing.parts("attention")
    passed = [part for part in parts if testing.passes(result("attention", status, stage), part)]
    assert passed == (list(parts) if kept == "all" else kept)


def test_two_mistakes_lose_two_tests():
    two = result("attention", "wrong", "value", ["AT1", "AT7"])
    assert [part for part in testing.parts("attention") if not testing.passes(two, part)] == ["scale", "along"]


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def columns(x, axis=-1):
    e = np.exp(x - x.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


def test_the_test_in_the_notebook_says_what_is_wrong_for_the_form_only():
    for part in testing.parts("softmax"):
        testing.test("softmax", softmax, part)
    testing.test("softmax", columns)
    with pytest.raises(AssertionError) as hidden:
        testing.test("softmax", columns, "along")
    assert "SM2" not in str(hidden.value) and str(hidden.value) == "softmax: along"
    with pytest.raises(AssertionError, match="softmax"):
        testing.test("softmax", lambda x, axis=-1: None)


def test_functions_are_left_behind_where_a_grading_asks_for_them(tmp_path, monkeypatch):
    testing.test("softmax", softmax)
    assert not list(tmp_path.iterdir())
    monkeypatch.setenv(testing.HANDED, str(tmp_path))
    testing.test("softmax", softmax)
    assert {path.name for path in tmp_path.iterdir()} == {"softmax.json", "softmax.pickle"}


def test_a_name_used_again_for_a_result_loses_no_function(tmp_path, monkeypatch):
    monkeypatch.setattr(testing, "_tested", {})

    def softmax(x, axis=-1):
        e = np.exp(x - x.max(axis=axis, keepdims=True))
        return e / e.sum(axis=axis, keepdims=True)

    with pytest.raises(AssertionError):
        testing.test("softmax", np.ones(3))
    monkeypatch.setenv(testing.HANDED, str(tmp_path))
    testing.test("softmax", softmax)
    testing.test("softmax", np.ones(3))
    with pytest.raises(AssertionError):  # another function is another answer
        testing.test("softmax", lambda x, axis=-1: x, "values")


def test_a_helpers_name_used_again_loses_nothing_and_a_helper_that_comes_later_is_found(tmp_path, monkeypatch):
    monkeypatch.setattr(testing, "_tested", {})
    monkeypatch.setenv(testing.HANDED, str(tmp_path))
    space = {"np": np}
    exec("def softmax(x, axis=-1):\n    return over(np.exp(x - x.max(axis=axis, keepdims=True)), axis)", space)
    with pytest.raises(AssertionError):
        testing.test("softmax", space["softmax"])
    space["over"] = lambda e, axis: e / e.sum(axis=axis, keepdims=True)
    for part in testing.parts("softmax"):
        testing.test("softmax", space["softmax"], part)
    handed = (tmp_path / "softmax.pickle").read_bytes()
    space["over"] = np.ones(3)
    for part in testing.parts("softmax"):
        testing.test("softmax", space["softmax"], part)
    assert (tmp_path / "softmax.pickle").read_bytes() == handed
