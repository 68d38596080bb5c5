"""The claims of chapter 4's experiment, against what theory says they must be."""

import re
import subprocess
import sys

import numpy as np
import pytest

from transformer_lite import content
from transformer_lite.equations import causal_mask, scaled_dot_product_attention
from transformer_lite.experiments import experiments
from transformer_lite.experiments.masking import WAYS, first_gap, masking


@pytest.fixture(scope="module")
def result():
    return masking(seeds=(0, 1, 2))


def measured(result, name, way):
    return getattr(result, name)[:, result.ways.index(way)]


def test_minus_infinity_before_softmax_leaks_nothing_at_all(result):
    assert result.row_sum.shape == (3, 4)
    np.testing.assert_allclose(measured(result, "row_sum", "before"), 1.0, atol=1e-12)
    for name in ("hidden", "key_leak", "value_leak"):
        np.testing.assert_array_equal(measured(result, name, "before"), 0.0)


def test_zeroing_afterwards_and_dividing_again_agrees_with_it_to_rounding(result):
    np.testing.assert_allclose(measured(result, "row_sum", "renormalised"), 1.0, atol=1e-12)
    np.testing.assert_allclose(measured(result, "key_leak", "renormalised"), 0.0, atol=1e-12)
    np.testing.assert_array_equal(measured(result, "value_leak", "renormalised"), 0.0)


def test_zeroing_afterwards_halves_the_rows_and_leaks_the_keys_only(result):
    # Alike keys share 1 equally on average: row i keeps i/8 of it, and the mean of 1/8, ..., 7/8 is 1/2.
    np.testing.assert_allclose(measured(result, "row_sum", "after"), 0.5, atol=0.01)
    np.testing.assert_array_equal(measured(result, "hidden", "after"), 0.0)
    assert (measured(result, "key_leak", "after") > 0.25).all()
    np.testing.assert_array_equal(measured(result, "value_leak", "after"), 0.0)


def test_a_score_of_0_keeps_the_row_sums_and_leaks_the_values_only(result):
    np.testing.assert_allclose(measured(result, "row_sum", "zero"), 1.0, atol=1e-12)
    assert (np.abs(measured(result, "hidden", "zero") - 0.44) < 0.02).all()
    np.testing.assert_array_equal(measured(result, "key_leak", "zero"), 0.0)
    assert (measured(result, "value_leak", "zero") > 0.7).all()


def test_the_first_way_is_the_course_s_attention():
    rng = np.random.default_rng(3)
    queries, keys = rng.normal(size=(2, 5, 4))
    weights = WAYS["before"](queries @ keys.T / 2, causal_mask(5))
    np.testing.assert_allclose(weights, scaled_dot_product_attention(queries, keys, keys, causal_mask(5)).weights)


@pytest.mark.parametrize("precision", ["float16", "float32", "float64"])
def test_dividing_again_fails_where_the_exponential_rounds_to_0(result, precision):
    def rounds_to_zero(gap):
        with np.errstate(under="ignore"):
            return np.exp(-np.dtype(precision).type(gap)) == 0

    gap = result.gap[precision]
    assert gap == first_gap(precision)
    assert rounds_to_zero(gap) and not rounds_to_zero(gap - 1)


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (masking(seeds=seeds).key_leak[0, 2] for seeds in ((5,), (5,), (6,)))
    assert first == again != other


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        masking(seeds=())


def test_a_precision_that_never_fails_is_an_error_that_says_so():
    if np.finfo(np.longdouble).nmant <= 52:
        pytest.skip("here long double is float64")
    with pytest.raises(ValueError, match="no gap up to 1000"):
        first_gap("longdouble")


def test_the_numbers_that_chapter_4_quotes(result):
    quoted = {("row_sum", "after"): 0.50, ("key_leak", "after"): 0.33, ("hidden", "zero"): 0.44, ("value_leak", "zero"): 0.76}
    for (name, way), number in quoted.items():
        assert round(float(measured(result, name, way).mean()), 2) == number, (name, way)
    assert result.gap == {"float16": 18, "float32": 104, "float64": 746}
    source = content.source_dir()
    if source is None:
        pytest.skip("a wheel has no sources")
    text = (source / "04_masks.md").read_text("utf-8")
    for number in quoted.values():
        assert len(re.findall(rf"\*\*{number:.2f}\*\*", text)) == 2  # once in each language
    assert "float32 なら 104、float16 なら 18" in text and "104 in float32 and 18 in float16" in text


@pytest.mark.parametrize(("lang", "words"), [("ja", "後で 0、そのまま"), ("en", "0 after, left as it is")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["masking"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.table[3] == [words, "0.501", "0.000", "0.327", "0.000"]
    assert [row[:2] for row in picture.table[-3:]] == [["float16", "18"], ["float32", "104"], ["float64", "746"]]
    assert all(len(row) == 5 for row in picture.table)
    assert "{" not in picture.text and "0.76" in picture.text


def test_importing_the_experiment_loads_neither_torch_nor_matplotlib():
    code = "import sys, transformer_lite.experiments.masking; print({'torch', 'matplotlib'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "set()"
