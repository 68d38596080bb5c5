"""Layer normalisation: every wrong version is named for what it is, every right one passes."""

import itertools
from functools import partial

import numpy as np
import positions_answers as answers
import pytest

from transformer_lite import content, equations, practice, traps
from transformer_lite.practice import topics
from transformer_lite.practice.comparing import TRAP_ABSOLUTE, TRAP_RELATIVE, same_mistake
from transformer_lite.practice.fixtures import fixtures

SEEDS = range(8)
PAIRS = [(keys, function) for exercise, keys, function in answers.PAIRS if exercise == "layer_norm"]
UNREGISTERED = [function for exercise, function in answers.UNREGISTERED if exercise == "layer_norm"]


def judge(function, seed=None):
    return practice.judge("layer_norm", function, seed=seed)


def name(value):
    return getattr(value, "__name__", None) or "+".join(sorted(value))


@pytest.mark.parametrize(("keys", "function"), answers.NORM_WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(keys, function):
    for seed in SEEDS:
        result = judge(function, seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", keys, "exact"), result.text("en")
        assert result.evidence["property"]["key"] == keys[0]
        assert result.evidence["max_diff_correct"] > 1e-3


def test_every_trap_of_the_family_is_among_them():
    met = {key for keys, _ in answers.NORM_WRONG for key in keys}
    assert met == {f"LN{n}" for n in range(1, 14)} == set(traps.family("layer_norm").traps)
    assert met <= set(topics.properties())


@pytest.mark.parametrize("function", answers.NORM_RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(function):
    for seed in (4, 5):
        result = judge(function, seed)
        assert result.status == "pass", result.text("en")
        assert result.traps == () and result.stage is None
        assert {note.code for note in result.notes} <= {"container", "precision", "slow", "no_default"}


def test_there_are_ten_right_versions():
    assert len(answers.NORM_RIGHT) >= 10


def test_the_solution_that_is_shown_passes():
    scope = {"np": np}
    exec(practice.exercise("layer_norm").solution, scope)
    assert judge(scope["layer_norm"]).status == "pass"


@pytest.mark.parametrize(("keys", "function"), PAIRS, ids=name)
def test_two_mistakes_at_once_are_named_as_two(keys, function):
    result = judge(function)
    assert (result.status, set(result.traps), result.certainty) == ("wrong", keys, "exact")


def test_no_two_mistakes_are_taken_for_a_single_other_one():
    family = traps.family("layer_norm")
    arguments = fixtures("layer_norm", 1)[0].arguments
    two = 0
    for keys, setting in family.pairs:
        result = judge(partial(family.core, **setting), seed=1)
        assert result.status == "wrong" and result.traps, (keys, setting)
        two += set(result.traps) == set(keys)
        if set(result.traps) != set(keys):  # then what is named gives the same numbers
            ways = [ways for named, ways in (*family.singles, *family.pairs) if set(named) == set(result.traps)]
            given = family.outputs(setting, arguments)[0]
            assert any(same_mistake(given, family.outputs(way, arguments)[0]) for way in ways), (keys, setting, result.traps)
        if len(result.traps) == 1:
            assert result.traps[0] in keys
    assert two >= 150


@pytest.mark.parametrize("function", UNREGISTERED, ids=name)
def test_a_mistake_nobody_registered_gets_no_name(function):
    for seed in (1, 2):
        result = judge(function, seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", (), "none")
        assert "Not a mistake I recognise." in result.text("en")


@pytest.mark.parametrize("seed", range(4))
def test_traps_lie_a_hundred_tolerances_apart(seed):
    family = traps.family("layer_norm")
    inputs = [fixture.arguments for fixture in fixtures("layer_norm", seed)]
    given = [((), [family.outputs({}, one) for one in inputs])]
    given += [(keys, [family.outputs(setting, one) for one in inputs]) for keys, setting in family.singles]
    for (keys, mine), (others, theirs) in itertools.combinations(given, 2):
        assert keys == others or max(map(_apart, mine, theirs)) >= 100, (keys, others)


def _apart(one, other):
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    a, b = one[0], other[0]
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
        return np.inf
    with np.errstate(all="ignore"):
        difference = np.abs(a - b) / (TRAP_ABSOLUTE + TRAP_RELATIVE * np.abs(b))
    return float(difference[np.isfinite(difference)].max(initial=0.0))


def test_the_right_value_with_another_eps_by_default_is_found_out():
    def other_default(x, gain, bias, eps=1e-3):
        return answers.norm_plain(x, gain, bias, eps)

    def ignored(x, gain, bias, eps=1e-5):
        return answers.norm_plain(x, gain, bias)

    assert (judge(other_default).status, judge(other_default).traps) == ("wrong", ())
    result = judge(ignored)
    assert (result.status, result.traps, result.evidence["test"]) == ("wrong", (), "eps given")


def test_without_the_parameter_eps_it_is_right_but_not_done():
    def three_parameters(x, gain, bias):
        return answers.norm_plain(x, gain, bias)

    result = judge(three_parameters)
    assert result.evidence["problem"] == "missing_optional" and "eps" in result.text("en")


def test_a_vector_that_is_not_handled_is_said_in_so_many_words():
    assert judge(answers.norm_only_matrices).evidence["problem"] == "raises_vector"


def test_what_is_not_finite_only_for_a_constant_token_is_no_other_mistake():
    def divides_by_zero(x, gain, bias, eps=1e-5):
        spread = x.max(-1, keepdims=True) - x.min(-1, keepdims=True)
        return answers.norm_plain(x, gain, bias, eps) * spread / spread

    result = judge(divides_by_zero)
    assert (result.status, result.stage, result.traps) == ("wrong", "finite", ())
    assert result.evidence["test"] == "a constant token"


def test_readable_snippets_are_the_traps_they_illustrate():
    for key in traps.family("layer_norm").traps:
        snippet = content.trap(key).snippet
        if snippet:
            scope = {"np": np}
            exec(snippet, scope)
            assert judge(scope["layer_norm"]).traps == (key,)


def test_verdicts_have_words_in_both_languages():
    for keys, function in answers.NORM_WRONG:
        result = judge(function, seed=2)
        for lang in ("ja", "en"):
            text = result.text(lang, verbose=True)
            assert f"[{keys[0]}]" in text and ("Check: " if lang == "en" else "確かめ方: ") in text
    asked = practice.exercise("layer_norm")
    for text in (asked.title, asked.contract, *asked.hints):
        assert text.ja and text.en and text.ja != text.en


def test_the_pictures_show_right_and_wrong():
    for function in (answers.ln1, answers.ln7, answers.norm_plain):
        for lang in ("ja", "en"):
            picture = judge(function, seed=0).show(lang)
            assert picture.png.startswith(b"\x89PNG") and picture.table


def test_each_token_is_normalised_by_itself_and_over_positions_it_is_not():
    x, arguments = topics.probes()["layer_norm"]
    right = equations.influence_matrix(lambda moved: equations.layer_norm(*arguments(moved)), x)
    assert (right == np.eye(4, dtype=bool)).all()
    assert equations.influence_matrix(lambda moved: answers.ln2(*arguments(moved)), x).all()


def test_the_sizes_of_the_first_and_of_the_drawn_input_all_differ():
    for seed in range(10):
        for fixture in (fixtures("layer_norm", seed)[0], fixtures("layer_norm", seed)[-1]):
            assert len(set(fixture.sizes.values())) == len(fixture.sizes) == 3
