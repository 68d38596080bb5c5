"""The explorers' numbers are exact."""

from itertools import pairwise

import numpy as np
import pytest

from transformer_lite.equations import scaled_dot_product_attention, softmax
from transformer_lite.explore import maths


def test_entropy_runs_from_zero_to_the_logarithm_of_n():
    assert maths.entropy([0.0, 1.0, 0.0]) == 0.0
    assert maths.entropy(np.full(10, 0.1)) == pytest.approx(np.log(10))
    assert maths.entropy([[0.5, 0.5, 0.0], [0.25, 0.25, 0.5]]) == pytest.approx([np.log(2), 1.5 * np.log(2)])
    assert maths.entropy([[0.5, 1.0], [0.5, 0.0]], axis=0) == pytest.approx([np.log(2), 0.0])


def test_the_jacobian_is_the_derivative_of_softmax():
    scores = np.array([0.3, -1.2, 2.0, 0.5])
    step = 1e-6
    measured = np.stack([(softmax(scores + step * e) - softmax(scores - step * e)) / (2 * step) for e in np.eye(4)], axis=1)
    assert maths.softmax_jacobian(softmax(scores)) == pytest.approx(measured, abs=1e-9)


def test_the_closed_form_of_the_norm_is_the_norm_of_the_matrix():
    weights = softmax(np.random.default_rng(3).standard_normal((5, 7)) * 4)
    expected = np.linalg.norm(maths.softmax_jacobian(weights), axis=(-2, -1))
    assert maths.softmax_jacobian_norm(weights) == pytest.approx(expected, abs=1e-9)
    assert maths.softmax_jacobian_norm([1.0, 0.0, 0.0]) == 0.0


def test_plane_attention_is_the_equation_of_one_query():
    rng = np.random.default_rng(5)
    query, keys, values = rng.standard_normal(2), rng.standard_normal((4, 2)), rng.standard_normal((4, 3))
    found = maths.plane_attention(query, keys, values)
    expected = scaled_dot_product_attention(query[None], keys, values)
    assert found.weights == pytest.approx(expected.weights[0])
    assert found.output == pytest.approx(expected.output[0])
    assert found.scores == pytest.approx(found.products / np.sqrt(2))
    assert maths.plane_attention(query, keys, values, scaled=False).scores == pytest.approx(keys @ query)


@pytest.mark.parametrize(
    ("query", "keys", "values"),
    [([1.0, 2.0, 3.0], np.ones((2, 2)), np.ones((2, 2))), ([1.0, 2.0], np.ones((2, 2)), np.ones((3, 2)))],
)
def test_plane_attention_says_which_shape_does_not_fit(query, keys, values):
    with pytest.raises(ValueError, match="must be"):
        maths.plane_attention(query, keys, values)


def test_scores_grow_with_the_root_of_d_k_unless_they_are_divided_by_it():
    for d_k in (4, 64, 512):
        plain, scaled = (maths.score_statistics(d_k, mode) for mode in (False, True))
        assert plain.variance == pytest.approx(d_k, rel=0.1)
        assert scaled.variance == pytest.approx(1.0, rel=0.1)
        assert plain.deviation == pytest.approx(scaled.deviation * np.sqrt(d_k))
        assert abs(scaled.mean) < 0.1


def test_without_the_division_softmax_saturates_and_its_gradient_vanishes():
    plain = [maths.score_statistics(d_k, False) for d_k in (1, 16, 64, 512)]
    assert all(a.entropy > b.entropy and a.largest < b.largest for a, b in pairwise(plain))
    assert plain[-1].entropy < 0.2 and plain[-1].largest > 0.9 and plain[-1].gradient < 0.1
    scaled = [maths.score_statistics(d_k, True) for d_k in (1, 16, 64, 512)]
    assert all(1.8 < one.entropy < 2.1 and 0.3 < one.gradient < 0.37 for one in scaled)


def test_the_statistics_are_those_of_fresh_vectors_with_that_many_components():
    world = maths.score_world(seed=7, draws=3, n_keys=4, largest_d_k=6)
    rng = np.random.default_rng(7)
    queries, keys = rng.standard_normal((3, 1, 6)), rng.standard_normal((3, 4, 6))
    for d_k in (1, 5, 6):
        assert world.scores(d_k, False) == pytest.approx((queries[..., :d_k] * keys[..., :d_k]).sum(axis=-1))
    with pytest.raises(ValueError, match="between 1 and 6"):
        world.scores(7, True)


def test_one_seed_gives_the_same_numbers_every_time():
    first = maths.score_statistics(33, True)
    maths.score_world.cache_clear()
    assert maths.score_statistics(33, True) == first
