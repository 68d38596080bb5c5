"""The claims of chapter 7's experiment on LayerNorm and BatchNorm, against theory and against PyTorch's own layers."""

import numpy as np
import pytest
import torch

from transformer_lite.experiments import experiments
from transformer_lite.experiments.normalisation import BatchNorm, normalisation


@pytest.fixture(scope="module")
def result():
    return normalisation(seeds=(0, 1, 2, 3, 4))


def test_the_batch_norm_is_pytorchs_in_training_and_in_use():
    ours, theirs = BatchNorm(6), torch.nn.BatchNorm1d(6, dtype=torch.float64)
    rng = np.random.default_rng(0)
    for _ in range(3):
        x = 3 * rng.standard_normal((4, 5, 6)) + 2
        expected = theirs(torch.tensor(x).transpose(1, 2)).transpose(1, 2)  # (B, n, d) -> (B, d, n) and back
        np.testing.assert_allclose(ours.train(x), expected.detach().numpy(), atol=1e-12)
    theirs.eval()
    expected = theirs(torch.tensor(x).transpose(1, 2)).transpose(1, 2)
    np.testing.assert_allclose(ours.use(x), expected.detach().numpy(), atol=1e-12)


def test_nothing_moves_layer_norm(result):
    for name in ("layer_replaced", "layer_modes", "layer_padded"):
        assert (getattr(result, name) == 0).all(), name


def test_everything_moves_batch_norm_in_every_repetition(result):
    assert (result.batch_replaced > 0.05).all()
    assert (result.batch_modes > 0.05).all()
    assert (result.batch_padded[:, 0] == 0).all() and (result.batch_padded[:, 1:] > 0.4).all()


def test_a_larger_batch_makes_batch_norm_steadier_and_never_still(result):
    """The mean of m numbers is off by about 1/√m: 16 times as many sentences, a quarter of the change."""
    assert (np.diff(result.batch_replaced.mean(axis=0)) < 0).all()
    assert (np.diff(result.batch_modes.mean(axis=0)) < 0).all()
    mean = result.batch_replaced.mean(axis=0)
    assert mean[-1] / mean[1] == pytest.approx(1 / 4, rel=0.15)  # 64 sentences against 4


def test_more_padding_moves_batch_norm_further(result):
    assert (np.diff(result.batch_padded, axis=1) > 0).all()


def test_of_a_single_token_batch_norm_leaves_nothing(result):
    assert (result.batch_alone == 0).all()
    np.testing.assert_allclose(result.layer_alone, 1, atol=1e-4)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (normalisation(seeds=seeds).batch_replaced for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        normalisation(seeds=())


def test_the_numbers_that_chapter_7_quotes(result):
    assert result.batch_sizes.tolist() == [2, 4, 8, 16, 32, 64] and result.padding.tolist() == [0, 5, 10, 15]
    ends = [[round(float(values.mean(axis=0)[i]), 2) for i in (0, -1)] for values in (result.batch_replaced, result.batch_modes)]
    assert ends == [[0.40, 0.09], [0.42, 0.06]]
    assert [round(float(each), 2) for each in result.batch_padded.mean(axis=0)] == [0.00, 0.55, 0.88, 1.15]


@pytest.mark.parametrize(("lang", "words"), [("ja", "入れ替え"), ("en", "replaced")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["normalisation"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == (1 + 4) + (1 + 2) and {len(row) for row in picture.table} == {7}
    assert picture.table[0][1:] == ["2", "4", "8", "16", "32", "64"] and picture.table[5][1:] == ["0", "5", "10", "15", "", ""]
    assert words in picture.table[1][0]
    assert "LayerNorm" in picture.text and "{" not in picture.text and "0.40" in picture.text and "1.15" in picture.text
