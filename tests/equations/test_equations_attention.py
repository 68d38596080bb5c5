"""Softmax and attention: laws that hold for all inputs, parity with PyTorch, and the numbers that the chapters quote."""

import numpy as np
import pytest
import torch
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from transformer_lite.equations import (
    Attention,
    attention_scores,
    blocked_attention,
    causal_mask,
    scaled_dot_product_attention,
    softmax,
)

settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")

numbers = st.floats(-50, 50, allow_nan=False, width=64)
sizes = st.integers(1, 6)


@st.composite
def problems(draw, masked=False):
    """Queries, keys, values (and a mask) of unequal sizes: n_q ≠ n_k, d_k ≠ d_v, with and without a batch of 1 or 3."""
    n_q, n_k, d_k, d_v = draw(sizes), draw(sizes), draw(sizes), draw(sizes)
    assume(n_q != n_k and d_k != d_v)
    batch = draw(st.sampled_from([(), (1,), (3,), (3, 2)]))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    arrays = [rng.normal(scale=2, size=(*batch, *shape)) for shape in ((n_q, d_k), (n_k, d_k), (n_k, d_v))]
    if masked:
        arrays.append(rng.random((*draw(st.sampled_from([batch, ()])), n_q, n_k)) < draw(st.sampled_from([0.0, 0.3, 0.7, 1.0])))
    return arrays


def by_loops(queries, keys, values, mask):
    """Attention of one sentence, one number at a time: an implementation that shares nothing with the reference."""
    weights = np.zeros((len(queries), len(keys)))
    for i, query in enumerate(queries):
        allowed = [j for j in range(len(keys)) if mask is None or mask[i, j]]
        exponentials = {j: np.exp(sum(query * keys[j]) / len(query) ** 0.5) for j in allowed}
        for j in allowed:
            weights[i, j] = exponentials[j] / sum(exponentials.values())
    output = np.array([[sum(weights[i, j] * values[j, c] for j in range(len(keys))) for c in range(values.shape[1])]
                       for i in range(len(queries))])
    return output, weights


# --- softmax ---


@given(npst.arrays(np.float64, npst.array_shapes(max_dims=3, max_side=5), elements=numbers), st.data())
def test_softmax_gives_weights_that_sum_to_1_along_the_axis(x, data):
    axis = data.draw(st.integers(-x.ndim, x.ndim - 1))
    weights = softmax(x, axis)
    assert weights.shape == x.shape
    assert (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=axis), 1)


@given(npst.arrays(np.float64, npst.array_shapes(max_dims=3, max_side=5), elements=numbers), numbers)
def test_softmax_does_not_see_a_number_added_to_all(x, shift):
    np.testing.assert_allclose(softmax(x + shift), softmax(x), rtol=1e-9)


@given(npst.arrays(np.float64, (2, 5), elements=numbers, unique=True))
def test_softmax_keeps_the_order(x):
    rank = np.argsort(x, axis=-1)
    assert (np.diff(np.take_along_axis(softmax(x), rank, axis=-1), axis=-1) >= 0).all()


@given(npst.arrays(np.float64, (3, 4), elements=numbers), st.permutations(range(4)))
def test_softmax_follows_a_permutation(x, order):
    np.testing.assert_allclose(softmax(x[:, order]), softmax(x)[:, order], rtol=1e-12)


@pytest.mark.parametrize("axis", [-1, 0, 1])
def test_softmax_agrees_with_torch(axis):
    x = np.random.default_rng(0).normal(size=(3, 4, 5))
    np.testing.assert_allclose(softmax(x, axis), torch.softmax(torch.from_numpy(x), dim=axis).numpy(), rtol=1e-12)


def test_softmax_of_large_numbers_neither_overflows_nor_warns():
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_array_equal(softmax([1e4, 0.0, -1e4]), [1, 0, 0])


def test_softmax_gives_minus_infinity_the_weight_0():
    np.testing.assert_array_equal(softmax([-np.inf, 0.0, 0.0]), [0, 0.5, 0.5])


def test_softmax_of_nothing_but_minus_infinity_is_zeros_without_a_warning():
    with np.errstate(all="raise"):
        np.testing.assert_array_equal(softmax([[-np.inf, -np.inf], [0.0, 0.0]]), [[0, 0], [0.5, 0.5]])


def test_softmax_does_not_change_its_argument():
    x = np.array([1.0, 2.0])
    softmax(x)
    np.testing.assert_array_equal(x, [1, 2])


@pytest.mark.parametrize(
    ("given_type", "expected"), [("int64", "float64"), ("bool", "float64"), ("float32", "float32"), ("float16", "float16")]
)
def test_softmax_keeps_a_floating_type(given_type, expected):
    assert softmax(np.ones(3, dtype=given_type)).dtype == expected


@pytest.mark.parametrize(("x", "axis", "message"), [
    (1.0, -1, r"x must have an axis -1; got shape \(\)"),
    (np.zeros((2, 3)), 2, r"x must have an axis 2; got shape \(2, 3\)"),
    (np.zeros((2, 3)), -3, r"x must have an axis -3; got shape \(2, 3\)"),
])
def test_softmax_names_the_axis_that_is_missing(x, axis, message):
    with pytest.raises(ValueError, match=message):
        softmax(x, axis)


# --- scores ---


@given(problems())
def test_scores_are_the_dot_products_divided_by_the_root_of_d_k(problem):
    queries, keys, _ = problem
    products = np.einsum("...id,...jd->...ij", queries, keys)
    np.testing.assert_allclose(attention_scores(queries, keys), products / queries.shape[-1] ** 0.5, atol=1e-12)


@given(problems(), st.floats(-3, 3))
def test_scores_grow_with_the_queries(problem, factor):
    queries, keys, _ = problem
    np.testing.assert_allclose(attention_scores(factor * queries, keys), factor * attention_scores(queries, keys), atol=1e-9)


def test_the_division_brings_the_variance_back_to_1():
    rng = np.random.default_rng(0)
    for d_k in (4, 64, 512):
        scores = attention_scores(rng.normal(size=(20_000, 1, d_k)), rng.normal(size=(20_000, 1, d_k)))
        assert scores.var() == pytest.approx(1, rel=0.05)
        assert (scores * d_k**0.5).var() == pytest.approx(d_k, rel=0.05)


# --- attention ---


@given(problems(masked=True))
def test_attention_agrees_with_loops(problem):
    queries, keys, values, mask = problem
    output, weights = scaled_dot_product_attention(queries, keys, values, mask)
    assert output.shape == (*queries.shape[:-1], values.shape[-1])
    assert weights.shape == (*queries.shape[:-1], keys.shape[-2])
    mask = np.broadcast_to(mask, weights.shape)
    for place in np.ndindex(queries.shape[:-2]):
        expected = by_loops(queries[place], keys[place], values[place], mask[place])
        np.testing.assert_allclose(output[place], expected[0], atol=1e-9)
        np.testing.assert_allclose(weights[place], expected[1], atol=1e-9)


def by_torch(queries, keys, values, **options):
    return torch.nn.functional.scaled_dot_product_attention(*map(torch.from_numpy, (queries, keys, values)), **options).numpy()


@given(problems(masked=True))
def test_attention_agrees_with_torch_where_a_row_has_a_key_left(problem):
    *arrays, mask = problem
    output, weights = scaled_dot_product_attention(*arrays, mask)
    mask = np.broadcast_to(mask, weights.shape).copy()
    left = mask.any(axis=-1)
    np.testing.assert_allclose(output[left], by_torch(*arrays, attn_mask=torch.from_numpy(mask))[left], atol=1e-9)


@given(problems())
def test_attention_without_mask_agrees_with_torch(problem):
    np.testing.assert_allclose(scaled_dot_product_attention(*problem).output, by_torch(*problem), atol=1e-9)


def test_causal_attention_agrees_with_torch():
    arrays = np.random.default_rng(1).normal(size=(3, 2, 5, 4))
    output = scaled_dot_product_attention(*arrays, causal_mask(5)).output
    np.testing.assert_allclose(output, by_torch(*arrays, is_causal=True), atol=1e-12)


@given(problems(masked=True))
def test_each_row_of_the_weights_sums_to_1_and_is_0_where_hidden(problem):
    *_, mask = problem
    weights = scaled_dot_product_attention(*problem).weights
    mask = np.broadcast_to(mask, weights.shape)
    assert (weights[~mask] == 0).all() and (weights >= 0).all()
    np.testing.assert_allclose(weights.sum(axis=-1), mask.any(axis=-1))


@given(problems(masked=True), st.data())
def test_a_hidden_key_cannot_be_noticed(problem, data):
    queries, keys, values, mask = problem
    j = data.draw(st.integers(0, keys.shape[-2] - 1))
    mask = mask.copy()
    mask[..., j] = False
    before = scaled_dot_product_attention(queries, keys, values, mask)
    keys[..., j, :] += 7.0
    values[..., j, :] -= 7.0
    after = scaled_dot_product_attention(queries, keys, values, mask)
    np.testing.assert_array_equal(before.output, after.output)


@pytest.mark.parametrize("batch", [(), (1,), (3,)])
def test_a_row_with_everything_hidden_is_zeros_without_a_warning(batch):
    rng = np.random.default_rng(2)
    mask = np.array([[True, False, True], [False, False, False]])
    with np.errstate(all="raise"):
        output, weights = scaled_dot_product_attention(
            rng.normal(size=(*batch, 2, 4)), rng.normal(size=(*batch, 3, 4)), rng.normal(size=(*batch, 3, 5)), mask
        )
    assert (output[..., 1, :] == 0).all() and (weights[..., 1, :] == 0).all()
    np.testing.assert_allclose(weights[..., 0, :].sum(axis=-1), 1)


@given(problems())
def test_a_mask_that_hides_nothing_changes_nothing(problem):
    everything = np.ones((problem[0].shape[-2], problem[1].shape[-2]), dtype=bool)
    unmasked = scaled_dot_product_attention(*problem)
    np.testing.assert_array_equal(scaled_dot_product_attention(*problem, everything).output, unmasked.output)


@given(problems(), st.randoms(use_true_random=False))
def test_the_order_of_the_keys_does_not_matter_and_that_of_the_queries_is_kept(problem, random):
    queries, keys, values = problem
    order, turn = list(range(keys.shape[-2])), list(range(queries.shape[-2]))
    random.shuffle(order)
    random.shuffle(turn)
    output, weights = scaled_dot_product_attention(queries, keys, values)
    permuted = scaled_dot_product_attention(queries[..., turn, :], keys[..., order, :], values[..., order, :])
    np.testing.assert_allclose(permuted.output, output[..., turn, :], atol=1e-12)
    np.testing.assert_allclose(permuted.weights, weights[..., turn, :][..., order], atol=1e-12)


@given(problems())
def test_the_output_is_a_mean_of_the_values(problem):
    output, values = scaled_dot_product_attention(*problem).output, problem[2]
    assert (output <= values.max(axis=-2, keepdims=True) + 1e-9).all()
    assert (output >= values.min(axis=-2, keepdims=True) - 1e-9).all()


def test_one_key_is_looked_at_whatever_it_says():
    output, weights = scaled_dot_product_attention(np.ones((2, 3)), np.full((1, 3), -9.0), [[4.0, 5.0]])
    np.testing.assert_array_equal(weights, [[1], [1]])
    np.testing.assert_array_equal(output, [[4, 5], [4, 5]])


def test_batch_items_do_not_see_one_another():
    queries, keys, values = (np.random.default_rng(3).normal(size=(3, n, d)) for n, d in ((2, 4), (5, 4), (5, 6)))
    together = scaled_dot_product_attention(queries, keys, values).output
    for item in range(3):
        alone = scaled_dot_product_attention(queries[item], keys[item], values[item]).output
        np.testing.assert_allclose(together[item], alone, atol=1e-12)


def test_float64_is_kept_and_integers_become_it():
    for kind in (float, int):
        result = scaled_dot_product_attention(*(np.ones(shape, dtype=kind) for shape in ((2, 4), (3, 4), (3, 5))))
        assert isinstance(result, Attention)
        assert result.output.dtype == result.weights.dtype == np.float64


Q, K, V = np.zeros((2, 64)), np.zeros((10, 64)), np.zeros((10, 5))


@pytest.mark.parametrize(("arguments", "message"), [
    ((np.zeros(64), K, V), r"queries must have shape \(\.\.\., n_q, d_k\); got \(64,\)"),
    ((Q, np.zeros((10, 32)), V), r"keys must have shape \(\.\.\., n_k, d_k\) with d_k = 64 as in queries; got \(10, 32\)"),
    ((Q, K.T, V), r"keys must have shape .* with d_k = 64 .*; got \(64, 10\)"),
    ((Q, np.zeros(64), V), r"keys must have shape .*; got \(64,\)"),
    ((Q, K, np.zeros((9, 5))), r"values must have shape \(\.\.\., n_k, d_v\) with n_k = 10 as in keys; got \(9, 5\)"),
    ((Q, K, np.zeros(10)), r"values must have shape .*; got \(10,\)"),
    ((Q, K, V, np.ones((2, 10))), r"mask must be Boolean, True = may attend; got dtype float64"),
    ((Q, K, V, np.ones((10, 2), dtype=bool)), r"mask must be broadcastable to \(\.\.\., n_q, n_k\) = \(2, 10\); got \(10, 2\)"),
])
def test_a_wrong_argument_is_named_with_what_was_expected_and_what_was_given(arguments, message):
    with pytest.raises(ValueError, match=message):
        scaled_dot_product_attention(*arguments)


# --- the numbers that the chapters quote ---


def test_the_two_keys_of_the_worked_example():
    np.testing.assert_array_equal(softmax([1.0, 0.0]).round(3), [0.731, 0.269])
    assert (softmax([1.0, 0.0]) @ [4.0, 10.0]).round(2) == 5.61
    np.testing.assert_array_equal(softmax([0.5, 0.0]).round(3), [0.622, 0.378])  # divided by d_k = 4 instead of its root


def test_the_worked_example_through_the_whole_equation():
    output, weights = scaled_dot_product_attention([[2.0, 0, 0, 0]], [[1.0, 0, 0, 0], [0, 1.0, 0, 0]], [[4.0], [10.0]])
    np.testing.assert_array_equal(weights.round(3), [[0.731, 0.269]])
    np.testing.assert_array_equal(output.round(2), [[5.61]])


def test_unscaled_scores_of_wide_vectors_saturate_softmax():
    rng = np.random.default_rng(0)
    largest = {}
    for d_k in (4, 64, 512):
        queries, keys = rng.normal(size=(500, 1, d_k)), rng.normal(size=(500, 10, d_k))
        scaled = attention_scores(queries, keys)
        largest[d_k] = softmax(scaled).max(axis=-1).mean(), softmax(scaled * d_k**0.5).max(axis=-1).mean()
    assert all(0.2 < scaled < 0.4 for scaled, _ in largest.values())
    assert largest[4][1] < largest[64][1] < largest[512][1] and largest[512][1] > 0.9


# --------------------------------------------------------------------------------------------------------------- in blocks


@given(problems(masked=True), st.integers(1, 7))
def test_in_blocks_it_is_the_same(problem, block):
    queries, keys, values, mask = problem
    expected = scaled_dot_product_attention(queries, keys, values, mask=mask).output
    np.testing.assert_allclose(blocked_attention(queries, keys, values, mask, block), expected, rtol=1e-12, atol=1e-12)


def test_in_blocks_batches_are_broadcast_and_the_type_is_kept():
    rng = np.random.default_rng(0)
    queries, keys, values = rng.normal(size=(2, 1, 5, 4)), rng.normal(size=(3, 6, 4)), rng.normal(size=(6, 2))
    expected = scaled_dot_product_attention(queries, keys, values).output
    got = blocked_attention(queries, keys, values, block=2)
    assert got.shape == (2, 3, 5, 2)
    np.testing.assert_allclose(got, expected, rtol=1e-12)
    masked = blocked_attention(queries, keys, values, np.tri(5, 6, dtype=bool), 2)
    np.testing.assert_allclose(masked, scaled_dot_product_attention(queries, keys, values, mask=np.tri(5, 6, dtype=bool)).output)
    assert blocked_attention(*(x.astype(np.float32) for x in (queries, keys, values))).dtype == np.float32


def test_in_blocks_large_scores_do_not_overflow():
    queries, keys, values = np.full((2, 4), 1e3), np.eye(3, 4) * 1e3, np.eye(3)
    with np.errstate(all="raise", under="ignore"):
        np.testing.assert_allclose(blocked_attention(queries, keys, values), np.full((2, 3), 1 / 3))


def test_in_blocks_memory_grows_with_n_and_not_with_its_square():
    import tracemalloc

    def peak(n):
        rng = np.random.default_rng(1)
        arrays = [rng.normal(size=(n, 8)).astype(np.float32) for _ in range(3)]
        tracemalloc.start()
        blocked_attention(*arrays, block=64)
        most = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return most

    assert peak(2048) < 2.5 * peak(1024)
    assert peak(2048) < 2048**2  # a quarter of what one matrix of weights would take


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"block": 0}, "block"),
        ({"queries": np.ones(3)}, "queries"),
        ({"keys": np.ones((4, 2))}, "keys"),
        ({"values": np.ones((3, 2))}, "values"),
        ({"mask": np.ones((2, 4))}, "Boolean"),
        ({"mask": np.ones((3, 4), dtype=bool)}, "broadcastable"),
    ],
)
def test_in_blocks_wrong_input_is_named(change, words):
    given_ = {"queries": np.ones((2, 3)), "keys": np.ones((4, 3)), "values": np.ones((4, 2))}
    with pytest.raises(ValueError, match=words):
        blocked_attention(**given_ | change)
