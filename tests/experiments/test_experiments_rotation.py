"""The claims of chapter 6's experiment on shifted positions: against the addition theorems, and as the chapter quotes them."""

import numpy as np
import pytest

from transformer_lite.equations import positional_encoding
from transformer_lite.experiments import experiments
from transformer_lite.experiments.rotation import OFFSETS, PLACES, REACH, WAYS, rotation, rotation_matrix

KEPT = [WAYS.index(way) for way in ("paper", "swapped", "slow")]
BROKEN = [WAYS.index(way) for way in ("unpaired", "sines", "random")]


@pytest.fixture(scope="module")
def result():
    return rotation()


def test_one_matrix_takes_every_position_to_the_one_k_later(result):
    assert result.error.shape == (6, 4, 3)
    assert (result.error[KEPT] < 1e-12).all()


def test_without_pairs_of_sine_and_cosine_no_matrix_does(result):
    assert (result.error[BROKEN] > 0.25).all()
    assert (result.error[WAYS.index("random")] > 0.9).all()  # as bad as the zero vector


def test_the_matrix_can_be_built_from_k_alone(result):
    assert (result.built < 1e-12).all()
    encoding = positional_encoding(300, 64)
    for k in (1, 7, 100):
        np.testing.assert_allclose(encoding[:-k] @ rotation_matrix(k, 64), encoding[k:], atol=1e-12)
        np.testing.assert_allclose(encoding[k:] @ rotation_matrix(-k, 64), encoding[:-k], atol=1e-12)


def test_the_matrix_is_a_rotation_and_two_steps_are_one():
    one, other = rotation_matrix(3, 8), rotation_matrix(5, 8)
    np.testing.assert_allclose(one @ one.T, np.eye(8), atol=1e-15)
    np.testing.assert_allclose(np.linalg.det(one), 1)
    np.testing.assert_allclose(one @ other, rotation_matrix(8, 8), atol=1e-15)
    assert not np.allclose(one, other)


def test_the_dot_product_depends_on_the_distance_alone_and_is_symmetric(result):
    np.testing.assert_allclose(result.plain[0], result.plain[1], atol=1e-9)
    np.testing.assert_allclose(result.plain, result.plain[:, ::-1], atol=1e-9)
    frequencies = 10000.0 ** (-np.arange(0, 512, 2) / 512)
    theory = np.cos(result.distances[:, np.newaxis] * frequencies).sum(axis=-1)
    np.testing.assert_allclose(result.plain[0], theory, atol=1e-9)


def test_projections_change_that_in_every_run(result):
    largest = np.abs(result.projected).max(axis=-1)
    assert (np.abs(result.projected - result.projected[..., ::-1]).max(axis=-1) > 0.3 * largest).all()  # left is not right
    assert (np.abs(result.projected[:, 0] - result.projected[:, 1]).max(axis=-1) > 0.3 * largest[:, 0]).all()  # p matters


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (rotation(seeds=seeds) for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first.error, again.error)
    np.testing.assert_array_equal(first.projected, again.projected)
    assert (first.projected != other.projected).any()
    assert (first.error[BROKEN] != other.error[BROKEN]).all()


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        rotation(seeds=())


def test_the_numbers_that_chapter_6_quotes(result):
    assert PLACES == (60, 200) and OFFSETS == (1, 5, 10, 50)
    assert [round(float(result.plain[0, REACH + k]), 1) for k in (0, 1, 5, 10)] == [256.0, 249.1, 189.6, 173.8]
    assert round(float(result.error[BROKEN].min()), 2) == 0.27


def test_the_wavelengths_and_angles_that_chapter_6_quotes():
    turns = 10000.0 ** (np.arange(0, 512, 2) / 512)
    assert [round(2 * np.pi * turns[0], 1), round(turns[-1]), round(turns[1] / turns[0], 2)] == [6.3, 9647, 1.04]
    assert [round(np.degrees(angle), 1) for angle in (1, 0.01)] == [57.3, 0.6]
    assert round(512**0.5, 1) == 22.6
    np.testing.assert_allclose(np.linalg.norm(positional_encoding(50, 512), axis=-1), 16)


@pytest.mark.parametrize(("lang", "words"), [("ja", "丸め誤差"), ("en", "rounding")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["rotation"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.table[0] == ["", "k = 1", "k = 5", "k = 10", "k = 50"]
    assert len(picture.table) == 1 + 6 + 1 and all(len(row) == 5 for row in picture.table)
    assert picture.table[-1][1:4] == ["249.1", "189.6", "173.8"]
    assert words in picture.text and "{" not in picture.text and "256.0 / 249.1 / 189.6 / 173.8" in picture.text
