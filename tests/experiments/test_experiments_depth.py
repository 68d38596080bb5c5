"""The claims of chapter 7's experiment on deep stacks: its backward passes first, then what it measures."""

import numpy as np
import pytest

from transformer_lite import equations
from transformer_lite.experiments import experiments
from transformer_lite.experiments.depth import WAYS, depth, feed_forward, random_weights, scientific, self_attention, walk


@pytest.fixture(scope="module")
def result():
    return depth(seeds=(0, 1, 2, 3, 4))


def small(n_sublayers=4, seed=0):
    rng = np.random.default_rng(seed)
    x, g = rng.standard_normal((2, 3, 5))
    weights = [tuple(1.5 * matrix for matrix in matrices) for matrices in random_weights(n_sublayers, rng, d_model=5, d_ff=7)]
    return x, g, weights


# ------------------------------------------------------------------------------------------------------------- forwards


def test_the_sub_layers_are_those_of_the_equations():
    x, _, (attention, network) = small(2)
    expected = equations.scaled_dot_product_attention(x @ attention[0], x @ attention[1], x @ attention[2]).output @ attention[3]
    np.testing.assert_allclose(self_attention(x, attention)[0], expected, atol=1e-12)
    w1, w2 = network
    expected = equations.feed_forward(x, w1, np.zeros(7), w2, np.zeros(5))
    np.testing.assert_allclose(feed_forward(x, network)[0], expected, atol=1e-12)


def test_the_wirings_are_those_of_the_chapter():
    x, _, (attention, network) = small(2)
    one, zero = np.ones(5), np.zeros(5)

    def norm(z):
        return equations.layer_norm(z, one, zero)

    def attend(z):
        return self_attention(z, attention)[0]

    def transform(z):
        return feed_forward(z, network)[0]

    post = equations.add_and_norm(equations.add_and_norm(x, attend, one, zero), transform, one, zero)
    pre = x + attend(norm(x))
    expected = {
        "bare": transform(attend(x)),
        "norm_only": norm(transform(norm(attend(x)))),
        "residual_only": x + attend(x) + transform(x + attend(x)),
        "post": post,
        "pre": norm(pre + transform(norm(pre))),
    }
    for way in WAYS:
        walked = walk(way, x, [attention, network])
        np.testing.assert_allclose(walked.output, expected[way], atol=1e-12, err_msg=way)
        assert len(walked.states) == 3 and walked.states[0] is x


# ------------------------------------------------------------------------------------------------------------- backwards


def differences(function, array, step=1e-6):
    """The gradient of ``function(array)``, a number, by central differences."""
    found = np.zeros_like(array)
    for place in np.ndindex(array.shape):
        ends = []
        for sign in (1, -1):
            moved = array.copy()
            moved[place] += sign * step
            ends.append(function(moved))
        found[place] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("way", WAYS)
def test_the_gradients_agree_with_finite_differences(way):
    x, g, weights = small(4)
    on_states, on_weights = walk(way, x, weights).backward(g)

    def loss(x=x, weights=weights):
        return float((g * walk(way, x, weights).output).sum())

    def close(ours, theirs):
        assert np.abs(ours - theirs).max() <= 1e-6 * max(np.abs(theirs).max(), 1e-3)

    close(on_states[0], differences(lambda moved: loss(x=moved), x))
    for i, matrices in enumerate(weights):
        for j, matrix in enumerate(matrices):

            def moved_loss(moved, i=i, j=j, matrices=matrices):
                replaced = (*matrices[:j], moved, *matrices[j + 1 :])
                return loss(weights=[*weights[:i], replaced, *weights[i + 1 :]])

            close(on_weights[i][j], differences(moved_loss, matrix))


@pytest.mark.parametrize("way", WAYS)
def test_the_gradient_of_a_state_is_that_of_the_shorter_stack(way):
    x, g, weights = small(4)
    walked = walk(way, x, weights)
    on_states, _ = walked.backward(g)
    assert len(on_states) == 5
    rest, _ = walk(way, walked.states[2], weights[2:]).backward(g)
    np.testing.assert_allclose(on_states[2], rest[0], atol=1e-12)


def test_the_weights_have_glorots_variance():
    attention, network = random_weights(2, np.random.default_rng(0))
    assert [matrix.shape for matrix in attention + network] == [(64, 64)] * 4 + [(64, 256), (256, 64)]
    for matrix in attention + network:
        assert matrix.var() == pytest.approx(2 / sum(matrix.shape), rel=0.1)


# ---------------------------------------------------------------------------------------------------------- measurements


def test_every_way_starts_from_the_same_tokens_and_has_a_number_for_every_place(result):
    assert tuple(result.ways) == WAYS and result.n_sublayers == 48
    for measured in result.ways.values():
        assert measured.signal.shape == measured.differences.shape == measured.gradient.shape == (5, 49)
        assert measured.w1_gradient.shape == (5, 24)
        np.testing.assert_array_equal(measured.signal[:, 0], result.ways["bare"].signal[:, 0])
        for values in measured:
            assert np.isfinite(values).all() and (values >= 0).all()


def test_with_nothing_around_the_sub_layers_signal_and_gradient_vanish(result):
    bare = result.ways["bare"]
    assert (np.diff(bare.signal[:, ::6], axis=1) < 0).all() and (np.diff(bare.gradient[:, ::6], axis=1) > 0).all()
    assert (bare.signal[:, -1] < 1e-6).all() and (bare.gradient[:, 0] < 1e-6).all()
    assert (bare.w1_gradient < 1e-4).all()


def test_layer_norm_alone_keeps_the_size_and_loses_the_differences(result):
    alone = result.ways["norm_only"]
    np.testing.assert_allclose(alone.signal[:, 1:], 1, atol=1e-3)
    assert (alone.differences[:, 12:] < 1e-12).all()
    assert (result.ways["bare"].differences[:, 12:] < 1e-12).all()
    assert (alone.gradient[:, 0] > 0.01).all()  # its gradient does not vanish: the chapter does not say so


def test_with_a_residual_the_differences_are_still_there_after_six_layers(result):
    for way in ("residual_only", "post", "pre"):
        assert (result.ways[way].differences[:, 12] > 0.25).all(), way
    assert (result.ways["pre"].differences[:, -1] > 0.3).all()


def test_a_residual_without_layer_norm_makes_the_signal_swell(result):
    swelling = result.ways["residual_only"]
    assert (np.diff(swelling.signal, axis=1) > 0).all()
    assert (swelling.signal[:, -1] > 1e4).all() and (swelling.gradient[:, 0] > 1e4).all()


def test_post_ln_keeps_the_signal_at_1_and_pre_ln_lets_it_grow_slowly(result):
    np.testing.assert_allclose(result.ways["post"].signal[:, 1:], 1, atol=1e-3)
    pre = result.ways["pre"].signal
    assert (pre[:, -1] > 4).all() and (pre[:, -1] < np.sqrt(1 + 48)).all()  # √ of what 48 branches of size 1 would add


def test_in_neither_does_the_gradient_vanish(result):
    for way in ("post", "pre"):
        assert (result.ways[way].gradient > 0.05).all(), way


def test_at_the_start_post_ln_has_its_largest_w1_gradients_near_the_output_and_pre_ln_near_the_input(result):
    post, pre = result.ways["post"].w1_gradient, result.ways["pre"].w1_gradient
    assert (post[:, -1] > 1.1 * post[:, 0]).all() and (post[:, -1] > 2 * pre[:, -1]).all()
    assert (pre[:, -1] < 0.5 * pre[:, 0]).all()


def test_only_in_pre_ln_the_last_gradient_shrinks_with_the_depth_of_the_stack(result):
    """Xiong et al. 2020, theorem 1: of order 1 in Post-LN whatever the depth, of order 1/√L in Pre-LN."""
    assert result.depths == (12, 24, 48)
    post, pre = (result.last_w1[way].mean(axis=0) for way in ("post", "pre"))
    assert np.ptp(post) < 0.1 * post.mean()
    assert pre[0] / pre[2] == pytest.approx(2, rel=0.1)  # 4 times as deep


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (depth(seeds=seeds).ways["post"].w1_gradient for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_no_seeds_and_no_such_way_are_errors_that_say_so():
    with pytest.raises(ValueError, match="at least one integer"):
        depth(seeds=())
    with pytest.raises(ValueError, match="'post', 'pre'; got 'sandwich'"):
        walk("sandwich", np.ones((2, 3)), [])


def test_the_numbers_that_chapter_7_quotes(result):
    def mean(way, name, place):
        return float(getattr(result.ways[way], name).mean(axis=0)[place])

    assert [scientific(mean("bare", name, place)) for name, place in (("signal", -1), ("gradient", 0))] == ["1 × 10⁻⁷"] * 2
    assert [scientific(mean(way, "differences", 12)) for way in ("bare", "norm_only")] == ["< 10⁻¹²"] * 2
    assert [round(mean(way, "gradient", 0), 2) for way in ("norm_only", "post", "pre")] == [2.86, 0.59, 1.04]
    assert scientific(mean("residual_only", "signal", -1)) == "5 × 10⁴"
    assert scientific(mean("residual_only", "gradient", 0)) == "7 × 10⁷"
    assert [round(mean("pre", "signal", place), 2) for place in (12, -1)] == [2.23, 4.60]
    assert [round(mean(way, "differences", 12), 2) for way in ("residual_only", "post", "pre")] == [0.56, 0.35, 0.65]
    assert [f"{mean(way, 'differences', place):.2f}" for way, place in (("post", 24), ("pre", 48))] == ["0.05", "0.40"]
    assert [round(mean(way, "w1_gradient", place), 2) for way in ("post", "pre") for place in (0, -1)] == [3.24, 6.59, 5.70, 1.60]
    last = {way: [round(float(each), 2) for each in values.mean(axis=0)] for way, values in result.last_w1.items()}
    assert last == {"post": [6.26, 6.27, 6.59], "pre": [3.19, 2.18, 1.60]}


def test_numbers_are_written_as_people_write_them():
    assert [scientific(value) for value in (0, 4e-16, 1.4e-7, 4.85e4, 0.35, 4.6, 99.0)] == [
        "0.00", "< 10⁻¹²", "1 × 10⁻⁷", "5 × 10⁴", "0.35", "4.60", "99.00",
    ]  # fmt: skip


@pytest.mark.parametrize(("lang", "words"), [("ja", "残差接続だけ"), ("en", "residual only")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["depth"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + 3 * 5 + 2 and {len(row) for row in picture.table} == {7}
    assert picture.table[0][1:] == ["0", "6", "12", "24", "36", "48"]
    assert any(words in row[0] for row in picture.table)
    assert "{" not in picture.text and "4.60" in picture.text and "6.59" in picture.text
