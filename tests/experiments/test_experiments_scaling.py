"""The claims of chapter 2's experiment, against what theory says they must be."""

import subprocess
import sys

import numpy as np
import pytest

from transformer_lite.experiments import experiments
from transformer_lite.experiments.saturation import scaling


@pytest.fixture(scope="module")
def result():
    return scaling(seeds=(0, 1, 2))


def test_the_variance_of_a_dot_product_is_d_k(result):
    assert result.d_k.tolist() == [4, 8, 16, 32, 64, 128, 256, 512]
    assert result.unscaled.variance.shape == (3, 8)
    # 4000 draws: the spread of a variance is about 2-3 %, so 10 % is well outside chance
    np.testing.assert_allclose(result.unscaled.variance, np.tile([4, 8, 16, 32, 64, 128, 256, 512], (3, 1)), rtol=0.10)


def test_dividing_by_the_root_brings_the_variance_back_to_1_and_by_d_k_below_it(result):
    np.testing.assert_allclose(result.scaled.variance, 1.0, rtol=0.10)
    np.testing.assert_allclose(result.flattened.variance[:, -1], 1 / 512, rtol=0.10)


def test_without_scaling_softmax_saturates_in_every_repetition(result):
    assert (np.diff(result.unscaled.entropy, axis=1) < 0).all()
    assert (np.diff(result.unscaled.largest, axis=1) > 0).all()
    assert (result.unscaled.largest[:, -1] > 0.93).all()
    assert (result.unscaled.gradient[:, -1] < 0.25 * result.unscaled.gradient[:, 0]).all()


def test_with_scaling_hardly_anything_depends_on_d_k(result):
    for name in ("entropy", "largest", "gradient"):
        values = getattr(result.scaled, name)
        assert np.ptp(values) < 0.12 * values.mean(), name  # unscaled, each moves by more than 80 %


def test_dividing_by_d_k_makes_the_weights_equal_but_keeps_a_gradient(result):
    np.testing.assert_allclose(result.flattened.entropy[:, -1], np.log(10), atol=0.01)
    np.testing.assert_allclose(result.flattened.largest[:, -1], 0.1, atol=0.01)
    np.testing.assert_allclose(result.flattened.gradient[:, -1], 0.3, atol=0.01)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (scaling(seeds=seeds).unscaled.entropy for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        scaling(seeds=())


def test_the_numbers_that_chapter_2_quotes(result):
    def ends(way, name):
        means = getattr(way, name).mean(axis=0)
        return [round(float(means[i]), 2) for i in (0, -1)]

    assert ends(result.unscaled, "largest") == [0.49, 0.95]
    assert ends(result.unscaled, "entropy") == [1.44, 0.11]
    assert ends(result.unscaled, "gradient") == [0.34, 0.06]
    assert ends(result.scaled, "largest") == [0.31, 0.32]
    assert ends(result.scaled, "entropy") == [1.94, 1.92]
    assert ends(result.scaled, "gradient") == [0.34, 0.35]
    assert ends(result.flattened, "largest") == [0.19, 0.11]
    assert ends(result.flattened, "entropy") == [2.19, 2.30]
    assert ends(result.flattened, "gradient") == [0.32, 0.30]


@pytest.mark.parametrize(("lang", "words"), [("ja", "割らない"), ("en", "no division")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["scaling"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.table[0] == ["d_k", "4", "8", "16", "32", "64", "128", "256", "512"]
    assert len(picture.table) == 1 + 4 * 3
    assert all(len(row) == 9 for row in picture.table)
    assert words in picture.table[2][0]
    assert "{" not in picture.text and "512" in picture.text


def test_importing_the_room_loads_neither_torch_nor_matplotlib():
    code = "import sys, transformer_lite.experiments as e; e.experiments(); print({'torch', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
