"""The claims of the experiment on Post-LN, Pre-LN and warm-up: gradients before training, and the loss in the first steps."""

import numpy as np
import pytest

from transformer_lite.experiments import experiments, stability, stored


@pytest.fixture(scope="module")
def kept():
    return stored.read("stability")


def last(kept, norm, start, peak):
    return stability.last_losses(kept, peak)[f"{norm} {start}"]


# --- what is stored ---


def test_three_seeds_of_everything_are_stored(kept):
    assert kept["seeds"] == list(stability.SEEDS) and kept["rates"] == list(stability.RATES)
    assert (kept["steps"], kept["warmup"], kept["block"]) == (stability.STEPS, stability.WARMUP, stability.BLOCK)
    for norm in stability.NORMS:
        assert np.shape(kept["gradients"][norm]) == (3, stability.N_LAYERS)
        for start in stability.STARTS:
            shape = (len(stability.RATES), 3, stability.STEPS // stability.BLOCK)
            assert np.shape(kept["losses"][f"{norm} {start}"]) == shape


def test_before_training_post_lns_gradients_grow_towards_the_output_and_pre_lns_do_not(kept):
    post, pre = (np.array(kept["gradients"][norm]) for norm in ("post", "pre"))
    assert (post[:, -1] > 4 * post[:, 0]).all()
    assert (pre[:, -1] < 1.2 * pre[:, 0]).all() and (pre.max(axis=1) < 2 * pre.min(axis=1)).all()
    assert post[:, -1].min() > 2 * pre[:, -1].max()


def spread(runs):
    return runs.max() - runs.min()


def test_at_the_middle_rate_post_ln_needs_the_warm_up(kept):
    at_once, warmed = (last(kept, "post", start, 0.002) for start in stability.STARTS)
    assert (at_once > np.array(kept["frequencies"]) - 0.15).all()  # hardly more learned than how frequent the words are
    assert at_once.min() > warmed.max()
    assert at_once.mean() - warmed.mean() > max(spread(at_once), spread(warmed))


def test_pre_ln_does_not_and_is_ahead_of_post_ln_everywhere(kept):
    for peak in stability.RATES:
        for start in stability.STARTS:
            assert last(kept, "pre", start, peak).max() < last(kept, "post", start, peak).min() - 0.2
    at_once, warmed = (last(kept, "pre", start, 0.002) for start in stability.STARTS)
    assert at_once.max() < 2.1 and warmed.max() < 2.1


def test_at_the_small_rate_post_ln_learns_without_warm_up(kept):
    at_once, warmed = (last(kept, "post", start, 0.0005) for start in stability.STARTS)
    assert (at_once < np.array(kept["frequencies"]) - 0.5).all()
    assert at_once.mean() < warmed.mean()  # there warm-up only costs time


def test_at_the_large_rate_this_warm_up_does_not_help_post_ln(kept):
    for start in stability.STARTS:
        assert (last(kept, "post", start, 0.005) > np.array(kept["frequencies"]) - 0.15).all()
        assert last(kept, "pre", start, 0.005).max() < 2.5


# --- live ---


@pytest.mark.parametrize("seed", [3, 4])
def test_the_growth_comes_with_the_depth(seed):
    """It is not Post-LN as such: with two layers hardly anything grows, with six and nine it does; in Pre-LN never."""

    def growth(norm, n_layers):
        measured = stability.gradients(norm, seed, n_layers)
        assert len(measured) == n_layers
        return measured[-1] / measured[0]

    two, six, nine = (growth("post", n) for n in (2, 6, 9))
    assert two < 2 and six > 2 * two and nine > 1.5 * six
    assert max(growth("pre", n) for n in (2, 6, 9)) < 1.2


def test_the_stored_gradients_and_frequencies_are_these(kept):
    assert stability.frequency_loss(0) == pytest.approx(kept["frequencies"][0], rel=1e-3)
    for norm in stability.NORMS:
        np.testing.assert_allclose(stability.gradients(norm, 0), kept["gradients"][norm][0], rtol=2e-3)


def test_warm_up_changes_the_first_steps_and_nothing_else():
    at_once, warmed = (stability.losses("pre", start, 0.002, 5, steps=8, n_layers=1) for start in stability.STARTS)
    assert at_once[0] == warmed[0] and at_once[-1] < warmed[-1]


def test_a_shallow_post_ln_model_learns_without_warm_up():
    """It is not Post-LN as such that fails at this rate: with one layer it learns, from the first step on."""
    shallow = stability.losses("post", "at_once", 0.002, 5, steps=150, n_layers=1)
    assert np.mean(shallow[-20:]) < 3.4


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (stability.losses("post", "warmup", 0.002, seed, steps=3, n_layers=2) for seed in (5, 5, 6))
    assert first == again != other


def test_no_such_start_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="'at_once', 'warmup'; got 'slowly'"):
        stability.losses("post", "slowly", 0.001, 0)


@pytest.mark.parametrize(("lang", "words"), [("ja", "ウォームアップ"), ("en", "warm-up")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["stability"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len({len(row) for row in picture.table}) == 1 and len(picture.table) == 1 + 4 + 1 + 4
    assert any(words in row[0] for row in picture.table)
    assert "{" not in picture.text and words in picture.text
