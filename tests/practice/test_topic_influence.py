"""The influence matrix: right ways pass, wrong ones get no name but the law that they break, in both languages."""

import influence_answers as answers
import numpy as np
import pytest

from transformer_lite import equations, practice, traps
from transformer_lite.practice.fixtures import fixtures
from transformer_lite.practice.judging import expected_of
from transformer_lite.practice.topics import influence

EXERCISE = "influence_matrix"


def name(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize("function", answers.RIGHT[EXERCISE], ids=name)
def test_a_right_version_passes_however_it_is_written(function):
    for seed in (4, 5):
        result = practice.judge(EXERCISE, function, seed=seed)
        assert result.status == "pass" and result.traps == () and result.stage is None, result.text("en", verbose=True)
    assert {note.code for note in result.notes} <= {"container"}, result.text("en")


@pytest.mark.parametrize(("function", "law"), answers.LAWS.items(), ids=name)
def test_a_wrong_version_gets_the_law_that_it_breaks_whatever_input_is_drawn(function, law):
    for seed in range(1, 9):
        result = practice.judge(EXERCISE, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", (), "none"), result.text("en")
        assert [one["law"] for one in result.evidence["laws"]] == [law], result.text("en")
        assert result.evidence["what"] == "influence"
    for lang in ("ja", "en"):
        assert len(result.text(lang).splitlines()) >= 4
    assert "mask" not in result.text("en").lower() and "マスク" not in result.text("ja")


def test_a_transposed_answer_is_told_by_its_shape():
    result = practice.judge(EXERCISE, answers.swaps_rows_and_columns)
    assert (result.status, result.stage, result.evidence["problem"]) == ("wrong", "shape", "transposed")
    assert "(n_in, n_out)" in result.text("en")


def test_transposed_only_where_the_shape_cannot_tell_is_told_by_the_law():
    def mirrors_squares(function, x):
        right = answers.column_by_column(function, x)
        return right.T if right.shape[0] == right.shape[1] else right

    result = practice.judge(EXERCISE, mirrors_squares)
    assert [one["law"] for one in result.evidence["laws"]] == ["influence_mirrored"]


def test_how_far_instead_of_whether_is_told_without_a_word_about_masks():
    result = practice.judge(EXERCISE, answers.returns_how_far)
    assert (result.status, result.evidence["problem"]) == ("wrong", "not_boolean")
    assert "whether something moved" in result.text("en") and "マスク" not in result.text("ja")


def test_ones_and_zeros_are_a_variant():
    result = practice.judge(EXERCISE, lambda function, x: answers.column_by_column(function, x).astype(int))
    assert (result.status, result.evidence["problem"]) == ("variant", "ones_and_zeros")
    assert "mask" not in result.text("en").lower()


@pytest.mark.parametrize(
    "function", [equations.influence_matrix, lambda function, x: equations.influence_matrix(function, x)], ids=["it", "calls it"]
)
def test_the_companions_own_function_is_noticed(function):
    assert practice.judge(EXERCISE, function).status == "uses_reference"


def test_every_law_has_words_in_both_languages():
    from transformer_lite import language

    for law in influence._OFF:
        text = language.catalogue()[f"practice.law.{law}"]
        assert text("ja") != text("en")


def test_the_inputs_tell_every_law_from_every_other_and_from_what_is_right():
    given = list(fixtures(EXERCISE, 3))
    ways = {"right": lambda function, x, right: right, **influence._OFF}
    outputs = {
        law: [np.array(wrong(*one.arguments, expected_of(practice.exercise(EXERCISE), one.arguments)[0])) for one in given]
        for law, wrong in ways.items()
    }
    for law, mine in outputs.items():
        for other, theirs in outputs.items():
            same = all(np.array_equal(one, two) for one, two in zip(mine, theirs, strict=True))
            assert same == (law == other), (law, other)


def test_the_small_input_can_be_worked_by_hand():
    small = next(one for one in fixtures(EXERCISE, 0) if one.name == "small")
    assert equations.influence_matrix(*small.arguments).astype(int).tolist() == [[1, 1, 0], [0, 1, 1], [0, 0, 1]]


def test_the_catalogue_has_no_trap_of_it_and_the_family_gives_the_reference():
    family = traps.family(EXERCISE)
    assert not family.traps
    for fixture in fixtures(EXERCISE, 3):
        np.testing.assert_array_equal(family.outputs({}, fixture.arguments)[0], equations.influence_matrix(*fixture.arguments))
