"""Who may attend to whom, and the picture of it."""

import doctest
import importlib
import pkgutil

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transformer_lite import equations
from transformer_lite.equations import (
    ReferenceUsed,
    attention_scores,
    causal_mask,
    forbid,
    influence_matrix,
    padding_mask,
    scaled_dot_product_attention,
    softmax,
)

settings.register_profile("course", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("course")


# --- causal ---


@given(st.integers(0, 8), st.integers(0, 4))
def test_a_causal_mask_shows_position_i_everything_up_to_itself(n_queries, earlier):
    mask = causal_mask(n_queries, n_queries + earlier)
    assert mask.shape == (n_queries, n_queries + earlier) and mask.dtype == bool
    for i in range(n_queries):
        np.testing.assert_array_equal(np.flatnonzero(mask[i]), np.arange(earlier + i + 1))


@given(st.integers(1, 8), st.integers(0, 8))
def test_with_cached_keys_the_mask_is_the_last_rows_of_the_full_one(n_queries, earlier):
    np.testing.assert_array_equal(causal_mask(n_queries, n_queries + earlier), causal_mask(n_queries + earlier)[earlier:])


def test_of_five_positions_15_pairs_are_allowed_and_10_hidden():
    mask = causal_mask(5)
    assert (mask.sum(), (~mask).sum()) == (15, 10)


@pytest.mark.parametrize(("arguments", "message"), [
    ((-1,), "n_queries must be 0 or more; got -1"),
    ((4, 3), "n_keys must be at least n_queries = 4; got 3"),
])
def test_a_size_that_cannot_be_is_named(arguments, message):
    with pytest.raises(ValueError, match=message):
        causal_mask(*arguments)


# --- padding ---


@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 4), (2, 3, 4)])
def test_a_padding_mask_hides_the_padding_from_every_query(shape):
    token_ids = np.random.default_rng(0).integers(0, 3, size=shape)
    mask = padding_mask(token_ids, pad_id=0)
    assert mask.shape == (*shape[:-1], 1, 4) and mask.dtype == bool
    np.testing.assert_array_equal(mask[..., 0, :], token_ids != 0)


def test_padding_and_future_are_hidden_together():
    mask = padding_mask([[7, 8, 0], [7, 8, 9]], pad_id=0) & causal_mask(3)
    assert mask.shape == (2, 3, 3)
    np.testing.assert_array_equal(mask[0].astype(int), [[1, 0, 0], [1, 1, 0], [1, 1, 0]])
    np.testing.assert_array_equal(mask[1], causal_mask(3))


def test_a_shorter_sentence_comes_out_the_same_alone_and_padded():
    rng = np.random.default_rng(1)
    queries, keys, values = rng.normal(size=(2, 4)), rng.normal(size=(5, 4)), rng.normal(size=(5, 6))
    padded = scaled_dot_product_attention(queries, keys, values, padding_mask([3, 1, 4, 0, 0], pad_id=0))
    alone = scaled_dot_product_attention(queries, keys[:3], values[:3])
    np.testing.assert_allclose(padded.output, alone.output, atol=1e-12)


def test_one_token_is_no_row_of_tokens():
    with pytest.raises(ValueError, match=r"token_ids must have shape \(\.\.\., n_k\); got \(\)"):
        padding_mask(3, pad_id=0)


# --- influence ---


X = np.random.default_rng(2).normal(size=(5, 4))


def attend(x, mask=None):
    return scaled_dot_product_attention(x, x, x, mask).output


# Nobody reads the keys and values of the two padded positions; their own queries still move their own rows.
PADDED = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 0, 0], [1, 1, 1, 1, 0], [1, 1, 1, 0, 1]])


@pytest.mark.parametrize(("function", "expected"), [
    (attend, np.ones((5, 5))),
    (lambda x: attend(x, causal_mask(5)), np.tri(5)),
    (lambda x: attend(x, padding_mask([1, 1, 1, 0, 0], pad_id=0)), PADDED),
    (lambda x: np.maximum(x @ np.ones((4, 3)), -100) ** 2, np.eye(5)),
    (lambda x: x[1:] + x[:-1], np.tri(4, 5, 1) - np.tri(4, 5, -1)),
    (lambda x: x.mean(axis=0, keepdims=True), np.ones((1, 5))),
    (lambda x: np.ones((2, 7)), np.zeros((2, 5))),
    (lambda x: np.sum(x, axis=-1), np.eye(5)),
], ids=["encoder", "decoder", "padding", "feed-forward", "convolution", "mean", "constant", "vector"])
def test_the_influence_matrix_shows_the_architecture(function, expected):
    seen = influence_matrix(function, X)
    assert seen.dtype == bool
    np.testing.assert_array_equal(seen, np.asarray(expected, dtype=bool))


@given(st.lists(st.booleans(), min_size=36, max_size=36), st.integers(0, 1000))
def test_the_influence_of_keys_and_values_is_the_mask(hidden, seed):
    rng = np.random.default_rng(seed)
    mask = np.array(hidden).reshape(6, 6)
    queries, memory = rng.normal(size=(6, 4)), rng.normal(size=(6, 4))
    seen = influence_matrix(lambda y: scaled_dot_product_attention(queries, y, y, mask).output, memory)
    np.testing.assert_array_equal(seen, mask)


def test_looking_at_a_function_does_not_change_its_input():
    before = X.copy()

    def careless(x):
        x *= 2
        return x

    np.testing.assert_array_equal(influence_matrix(careless, X), np.eye(5, dtype=bool))
    np.testing.assert_array_equal(X, before)


def test_only_a_matrix_can_be_looked_at():
    with pytest.raises(ValueError, match=r"x must have shape \(n_in, d\); got \(3,\)"):
        influence_matrix(lambda x: x, np.zeros(3))


def test_no_inputs_have_no_influence():
    assert influence_matrix(lambda x: np.ones((2, 3)), np.zeros((0, 4))).shape == (2, 0)


# --- the reference knows when it may not be used ---


def test_a_forbidden_reference_is_noticed_even_if_the_exception_is_swallowed():
    with forbid("softmax") as calls:
        with pytest.raises(ReferenceUsed):
            softmax([1.0])
        with pytest.raises(ReferenceUsed):
            scaled_dot_product_attention(X, X, X)  # it uses softmax
        assert attention_scores(X, X).shape == (5, 5)
    assert calls == ["softmax", "softmax"]
    assert softmax([1.0]) == [1.0]


def test_the_exception_cannot_be_caught_as_an_ordinary_one():
    assert not issubclass(ReferenceUsed, Exception)


# --- docstrings ---

MODULES = [module.name for module in pkgutil.iter_modules(equations.__path__, equations.__name__ + ".")]


def test_the_examples_in_the_docstrings_are_true():
    results = [doctest.testmod(importlib.import_module(name)) for name in MODULES]
    assert sum(result.failed for result in results) == 0
    assert sum(result.attempted for result in results) >= 6


@pytest.mark.parametrize("name", sorted({name for name in equations.__all__ if name.islower()} - {"forbid", "seal"}))
def test_every_equation_says_its_shapes_its_errors_and_its_source(name):
    text = getattr(equations, name).__doc__
    assert "Source:" in text and "Raises:" in text and "Returns:" in text
