"""The claims of chapter 6's experiment on word order: against theory, where it could come out otherwise, and as quoted."""

import numpy as np
import pytest

from transformer_lite.equations import causal_mask, encoder_layer, positional_encoding, scaled_dot_product_attention
from transformer_lite.equations.layers import EncoderParameters
from transformer_lite.experiments import experiments
from transformer_lite.experiments.order import D_MODEL, SENTENCE, SWAPPED, order, power_of_ten

NOTHING, MASK, POSITIONS, BOTH = range(4)


@pytest.fixture(scope="module")
def result():
    return order()


def test_the_two_sentences_hold_the_same_tokens_in_another_order():
    assert SENTENCE != SWAPPED and sorted(SENTENCE) == sorted(SWAPPED) == [0, 1, 2, 3, 4]


def test_without_positions_and_mask_attention_is_permutation_equivariant_in_every_run(result):
    assert result.conditions == ("nothing", "mask", "positions", "both")
    assert result.reordered.shape == result.sentences.shape == (4, 5)
    assert (result.reordered[NOTHING] < 1e-14).all()
    assert (result.sentences[NOTHING] < 1e-14).all()


@pytest.mark.parametrize("condition", [MASK, POSITIONS, BOTH])
def test_positions_or_a_causal_mask_make_the_order_visible_in_every_run(result, condition):
    assert (result.reordered[condition] > 0.3).all()
    assert (result.sentences[condition] > 0.3).all()


def test_positions_that_are_all_the_same_vector_show_no_order():
    """So it is not the adding that does it, but that the vectors differ: the experiment can come out otherwise."""
    same = np.tile(positional_encoding(5, D_MODEL)[3], (5, 1))
    assert (order(encoding=same).reordered[POSITIONS] < 1e-14).all()
    assert (order(encoding=same).sentences[POSITIONS] < 1e-14).all()


def test_random_positions_show_the_order_as_well_as_sinusoids_do():
    random = np.random.default_rng(0).normal(size=(5, D_MODEL))
    assert (order(encoding=random).sentences[POSITIONS] > 0.3).all()


def test_a_whole_encoder_layer_does_not_see_the_order_either():
    """Residual, LayerNorm and feed-forward network treat every position alike, as the chapter says."""
    rng = np.random.default_rng(3)
    parameters = EncoderParameters.random(D_MODEL, 32, rng)
    x, places = rng.normal(size=(5, D_MODEL)), np.array([3, 1, 2, 0, 4])
    np.testing.assert_allclose(encoder_layer(x[places], parameters, 4), encoder_layer(x, parameters, 4)[places], atol=1e-12)


def test_under_a_causal_mask_alone_the_last_word_still_sees_a_set():
    """One layer: the rows of the nouns differ, that of the verb at the end does not; with positions it does."""
    table = np.array([[0.5, 0, 0, 0], [0, 0.5, 0, 0], [1, 0, 0.5, 0], [0, 1, 0.5, 0], [0, 0, 0.5, 1]]) * 2
    mask, places = causal_mask(5), positional_encoding(5, 4)

    def read(token_ids, added):
        x = table[list(token_ids)] + added
        return scaled_dot_product_attention(x, x, x, mask).output

    here, there = read(SENTENCE, 0), read(SWAPPED, 0)
    np.testing.assert_allclose(here[-1], there[-1], atol=1e-12)
    np.testing.assert_allclose(here[-1], [0.246, 0.246, 0.886, 1.394], atol=5e-4)
    assert np.abs(here[0] - there[2]).max() > 0.1  # dog
    assert np.abs(read(SENTENCE, places)[-1] - read(SWAPPED, places)[-1]).max() > 1e-4


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (order(seeds=seeds).reordered[POSITIONS] for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        order(seeds=())


def test_the_numbers_that_chapter_6_quotes(result):
    least = [round(min(result.reordered[i].min(), result.sentences[i].min()), 2) for i in (MASK, POSITIONS, BOTH)]
    assert least == [1.45, 0.39, 1.42]
    assert max(result.reordered[NOTHING].max(), result.sentences[NOTHING].max()) < 1e-15


def test_small_numbers_are_written_as_people_write_them():
    assert [power_of_ten(value) for value in (0, 4.4e-16, 0.39, 1.446)] == ["0.00", "4 × 10⁻¹⁶", "0.39", "1.45"]


@pytest.mark.parametrize(("lang", "words"), [("ja", "位置エンコーディング"), ("en", "causal mask")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["order"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + 2 * 4 and all(len(row) == 3 for row in picture.table)
    assert words in picture.text and "{" not in picture.text and "0.39" in picture.text and "1.45" in picture.text
