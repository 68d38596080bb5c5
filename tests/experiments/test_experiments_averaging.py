"""The claims of chapter 5's experiment on heads: against theory, where it could come out otherwise, and as quoted."""

import re

import numpy as np
import pytest

from transformer_lite.equations import Projections, attention_cost, layer_cost, multi_head_attention
from transformer_lite.experiments import averaging as module
from transformer_lite.experiments import experiments
from transformer_lite.experiments.averaging import HEADS, PLACES, averaging, multiply_adds


@pytest.fixture(scope="module")
def result():
    return averaging()


def test_one_head_leaves_most_behind_and_four_heads_deliver_it_all_in_every_run(result):
    assert result.n_heads == HEADS == (1, 2, 4, 6, 12) and result.missing.shape == (5, 3)
    one, two, four, _, twelve = result.missing
    assert (one > 0.5).all()
    assert (two > 0.05).all()
    assert (four < 0.02).all()
    assert (twelve > 0.1).all()  # each head is one number wide: too narrow to point at a place


def test_other_starting_weights_say_the_same():
    one, four = averaging(seeds=(11, 12, 13), n_heads=(1, 4)).missing
    assert (one > 0.5).all() and (four < 0.1).all()


def test_a_head_that_sees_positions_alone_comes_to_the_bound_and_not_below(result):
    np.testing.assert_allclose(result.bound, [0.75, 0.5, 0, 0, 0])
    assert (result.blind > 0.74).all() and (result.blind < 0.80).all()  # the test set's own sampling is about 0.01


def test_the_bound_is_what_the_singular_values_say():
    """What one query must deliver, as a matrix (places, number from × number to), has four equal singular values."""
    k = len(PLACES)
    wanted = np.zeros((8, k, k))
    for number, place in enumerate(PLACES):
        wanted[place % 8, number, number] = 1
    values = np.linalg.svd(wanted.reshape(8, k * k), compute_uv=False)
    np.testing.assert_allclose(values[:k], 1)
    left = [(values[h:] ** 2).sum() / (values**2).sum() for h in (1, 2, 4)]
    np.testing.assert_allclose(left, [0.75, 0.5, 0.0], atol=1e-12)


def test_the_formula_of_the_derivation_never_falls_below_three_numbers():
    """Row w that sums to 1, the best factor for each number: what is missing is 4 − Σ w_p² / Σ w² of 4."""
    rng = np.random.default_rng(0)
    rows = rng.dirichlet(np.full(8, 0.3), size=2000)
    at = [place % 8 for place in PLACES]
    missing = 4 - (rows[:, at] ** 2).sum(axis=1) / (rows**2).sum(axis=1)
    assert missing.min() >= 3 - 1e-12
    shared = np.zeros(8)
    shared[at] = 0.25
    factors = shared[at] / (shared**2).sum()
    errors = [(1 - c * shared[p]) ** 2 + c**2 * ((shared**2).sum() - shared[p] ** 2) for c, p in zip(factors, at, strict=True)]
    assert sum(errors) == pytest.approx(3)


def test_all_layers_have_the_same_parameters_and_multiply_adds(result):
    assert set(result.parameters.tolist()) == {4 * 12**2} and set(result.multiply_adds.tolist()) == {6144}
    for n, d_model in ((8, 12), (100, 512)):
        theory = layer_cost(n, d_model, 1)[0] + sum(attention_cost(n, d_model))
        assert {multiply_adds(n, d_model, h) for h in (1, 2, 4)} == {theory}


def test_heads_of_full_width_would_cost_h_times_as_much():
    assert multiply_adds(100, 512, 8, d_k=512) == 8 * multiply_adds(100, 512, 1)


def test_the_layer_is_the_papers():
    rng = np.random.default_rng(1)
    x, weights = rng.normal(size=(1, 2, 8, 12)), list(rng.normal(size=(4, 1, 12, 12)))
    for h in HEADS:
        right = multi_head_attention(x[0], Projections(*(w[0] for w in weights)), h)
        output, (_, _, _, attention, _) = module._forward(x, x, weights, h)
        np.testing.assert_allclose(output[0], right.output, atol=1e-12)
        np.testing.assert_allclose(attention[0], right.weights, atol=1e-12)


@pytest.mark.parametrize("blind", [False, True])
def test_the_gradient_is_that_of_the_loss(blind):
    rng = np.random.default_rng(2)
    x, wanted = module._sentences(rng, 3, 1)
    weights = list(rng.normal(size=(4, 1, 12, 12)) / 3)

    def loss(changed):
        output, _ = module._forward(x, module._seen(x, blind), changed, 4)
        return ((output[..., :4] - wanted) ** 2).mean()

    gradients = module._gradients(x, wanted, weights, 4, blind)
    for i in range(4):
        direction = rng.normal(size=(1, 12, 12))
        ahead, behind = ([w + (j == i) * step * direction for j, w in enumerate(weights)] for step in (1e-5, -1e-5))
        assert (loss(ahead) - loss(behind)) / 2e-5 == pytest.approx((gradients[i] * direction).sum(), rel=1e-5, abs=1e-9)


def test_four_heads_look_at_four_places_and_one_head_shares_its_row_out(result):
    (one,), four = result.looks[1], result.looks[4]
    np.testing.assert_allclose([one.sum(), *four.sum(axis=1)], 1, atol=1e-9)
    assert one.max() < 0.8 < four.max(axis=1).min()
    assert sorted(module.OFFSETS[row.argmax()] for row in four) == [-2, -1, 1, 2]


def test_wrong_arguments_are_errors_that_say_so():
    with pytest.raises(ValueError, match="at least one integer"):
        averaging(seeds=())
    with pytest.raises(ValueError, match="divide d_model = 12"):
        averaging(n_heads=(5,))
    with pytest.raises(ValueError, match="divide d_model = 512"):
        multiply_adds(10, 512, 3)


def test_the_numbers_that_chapter_5_quotes(result):
    """The chapter says at least 0.6, at least 0.1, below 0.01 and at least 0.15 for 1, 2, 4 and 12 heads."""
    assert result.missing[0].min() >= 0.6 and result.missing[1].min() >= 0.1
    assert result.missing[2].max() < 0.01 and result.missing[4].min() >= 0.15
    assert result.blind.mean() == pytest.approx(0.75, abs=0.01)


@pytest.mark.parametrize(("lang", "words"), [("ja", "ヘッド"), ("en", "one head")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["heads"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + len(HEADS) + 1 + 1 + 5 and {len(row) for row in picture.table} == {7}
    assert words in picture.text and "{" not in picture.text and "0.75" in picture.text


def test_the_sentence_below_the_picture_is_true_to_its_last_digit(result):
    text = experiments()["heads"]("en").text
    one, two, four, narrow = (
        float(re.search(pattern, text)[1])
        for pattern in (
            r"at least ([0-9.]+) is missing in",
            r"leave at least ([0-9.]+);",
            r"it is ([0-9.]+) or",
            r"1, and at least ([0-9.]+) is",
        )
    )
    assert one <= result.missing[0].min() < one + 0.01 and two <= result.missing[1].min() < two + 0.01
    assert narrow <= result.missing[4].min() < narrow + 0.01 and four - 0.001 < result.missing[2].max() <= four
