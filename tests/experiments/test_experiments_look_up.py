"""The claims of chapter 3's experiment on soft look-up and symmetry: against theory, when it comes out otherwise, as quoted."""

import numpy as np
import pytest

from transformer_lite.equations import Projections, cross_attention, self_attention
from transformer_lite.experiments import experiments
from transformer_lite.experiments.look_up import FACTORS, N_ENTRIES, PROJECTIONS, look_up

TWO, ONE, NONE = range(3)


@pytest.fixture(scope="module")
def result():
    return look_up()


def test_a_short_query_gives_the_mean_and_a_long_one_the_entry_looked_up_in_every_run(result):
    assert result.to_entry.shape == result.to_mean.shape == (5, len(FACTORS))
    assert (result.to_mean[:, 0] < 0.02).all() and (result.to_entry[:, 0] > 0.98).all()
    assert (result.to_entry[:, -1] < 0.001).all() and (result.to_mean[:, -1] > 0.999).all()


def test_the_way_to_the_entry_gets_shorter_with_every_doubling(result):
    assert (np.diff(result.to_entry, axis=1) <= 0).all() and (np.diff(result.to_mean, axis=1) >= -1e-15).all()
    assert (np.diff(result.to_entry.mean(axis=0)) < 0).all()


def test_as_it_is_the_query_gives_neither_in_any_run(result):
    plain = FACTORS.index(1.0)
    assert (result.to_entry[:, plain] > 0.5).all() and (result.to_mean[:, plain] > 0.05).all()


def test_for_small_factors_the_distance_to_the_mean_is_proportional_to_the_factor():
    """The first-order expansion of softmax at equal scores: doubling the query doubles the distance."""
    small = look_up(factors=[2**-12, 2**-11]).to_mean
    np.testing.assert_allclose(small[:, 1] / small[:, 0], 2, rtol=1e-2)


def test_a_close_second_needs_a_longer_query(result):
    """It need not be quick: where two keys fit almost equally well, four times the query is still a mixture."""
    four = result.to_entry[:, FACTORS.index(4.0)]
    assert four.min() < 0.1 and four.max() > 0.8


def test_one_matrix_for_queries_and_keys_makes_the_scores_symmetric_and_two_do_not(result):
    assert result.projections == PROJECTIONS == ("two", "one", "none")
    assert (result.asymmetry[[ONE, NONE]] < 1e-14).all()
    assert (result.asymmetry[TWO] > 0.8).all()


def test_with_two_matrices_the_asymmetry_is_what_independent_scores_would_have():
    """E‖S − Sᵀ‖² / E‖S‖² of independent entries is 2 (n² − n) / n²."""
    many = look_up(seeds=range(40)).asymmetry[TWO]
    assert np.sqrt((many**2).mean()) == pytest.approx(np.sqrt(2 * (1 - 1 / N_ENTRIES)), rel=0.05)


def test_symmetric_scores_do_not_make_symmetric_weights(result):
    """softmax divides every row by its own sum."""
    assert (result.weights_asymmetry[ONE] > 0.1).all()


def test_with_one_matrix_every_token_looks_at_itself_most_and_with_two_it_does_not(result):
    assert (result.self_first[[ONE, NONE]] == 1).all()
    assert look_up(seeds=range(40)).self_first[TWO].mean() == pytest.approx(1 / N_ENTRIES, abs=0.06)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (look_up(seeds=seeds) for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first.to_entry, again.to_entry)
    assert (first.to_entry != other.to_entry).any() and first.asymmetry[TWO] != other.asymmetry[TWO]


@pytest.mark.parametrize(
    ("arguments", "message"), [({"seeds": ()}, "at least one integer"), ({"factors": [0.0, 1.0]}, "positive numbers")]
)
def test_bad_arguments_are_an_error_that_says_so(arguments, message):
    with pytest.raises(ValueError, match=message):
        look_up(**arguments)


def test_the_numbers_that_chapter_3_quotes(result):
    mean = {factor: round(value, 2) for factor, value in zip(FACTORS, result.to_entry.mean(axis=0), strict=True)}
    assert [mean[factor] for factor in (1 / 64, 1, 4, 16, 64, 256)] == [1.00, 0.75, 0.26, 0.11, 0.02, 0.00]
    assert round(result.to_mean.mean(axis=0)[0], 2) == 0.01
    assert [round(row.mean(), 2) for row in result.asymmetry] == [1.22, 0, 0]
    assert round(result.asymmetry[TWO].min(), 2) == 0.84
    assert [round(row.mean(), 2) for row in result.weights_asymmetry] == [0.86, 0.22, 0.12]
    assert [round(row.mean(), 3) for row in result.self_first] == [0.075, 1, 1]


@pytest.mark.parametrize(("lang", "words"), [("ja", "非対称さ"), ("en", "look-up")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["look-up"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + len(FACTORS) + 1 + 3 and all(len(row) == 4 for row in picture.table)
    assert words in picture.text and "{" not in picture.text and "0.75" in picture.text and "0.84" in picture.text


def test_the_examples_of_the_exercises_in_chapter_3():
    matrices = Projections(*(np.array([[float(number)]]) for number in (2, 1, 3, 1)))
    output, weights = self_attention([[1.0], [0.0]], matrices)
    np.testing.assert_allclose(weights, [[0.881, 0.119], [0.5, 0.5]], atol=5e-4)
    np.testing.assert_allclose(output, [[2.642], [1.5]], atol=5e-4)
    output, weights = cross_attention([[1.0]], [[1.0], [0.0], [0.0]], matrices)
    np.testing.assert_allclose(weights, [[0.787, 0.107, 0.107]], atol=5e-4)
    np.testing.assert_allclose(output, [[2.361]], atol=5e-4)
