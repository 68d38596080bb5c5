"""The claims of chapter 1's experiment: Table 1 of the paper, counted, and how an influence fades."""

import math
import subprocess
import sys

import numpy as np
import pytest

from transformer_lite.experiments import experiments
from transformer_lite.experiments.paths import DISTANCES, KERNEL, KINDS, LENGTHS, STRENGTHS, paths


@pytest.fixture(scope="module")
def result():
    return paths(seeds=(0, 1, 2))


THEORY = {
    "recurrence": lambda n: n - 1,
    "contiguous": lambda n: math.ceil((n - 1) / (KERNEL // 2)),
    "dilated": lambda n: next(layers for layers in range(1, 99) if (KERNEL // 2 + 1) ** layers >= n),  # a logarithm
    "attention": lambda n: 1,
}


@pytest.mark.parametrize("kind", KINDS)
def test_the_hops_are_those_of_theory_in_every_repetition(result, kind):
    assert result.hops.shape == (3, len(KINDS), len(LENGTHS))
    counted = result.hops[:, KINDS.index(kind)]
    assert counted.tolist() == [[THEORY[kind](n) for n in LENGTHS]] * 3


@pytest.mark.parametrize("kind", KINDS)
def test_only_the_recurrence_waits_n_steps(result, kind):
    wanted = list(LENGTHS) if kind == "recurrence" else [1] * len(LENGTHS)
    assert result.serial[:, KINDS.index(kind)].tolist() == [wanted] * 3


def test_hops_do_not_depend_on_the_kernel_by_accident(monkeypatch):
    from transformer_lite.experiments import paths as module

    monkeypatch.setattr(module, "KERNEL", 7)
    assert [module._hops("contiguous", n, 7) for n in (4, 8, 16)] == [1, 3, 5]
    assert [module._hops("dilated", n, 7) for n in (4, 8, 32)] == [1, 2, 3]


def strength(result, way):
    return result.strength[:, STRENGTHS.index(way)]


def test_in_the_recurrence_an_influence_fades_with_the_distance(result):
    assert (np.diff(strength(result, "recurrence"), axis=1) < 0).all()
    near, far = strength(result, "recurrence")[:, 0], strength(result, "recurrence")[:, DISTANCES.index(16)]
    assert (near > 0.5).all() and (far < 0.005).all() and (far > 0).all()


def test_in_self_attention_the_distance_makes_no_difference(result):
    values = strength(result, "attention").mean(axis=0)
    assert values.max() < 1.4 * values.min()
    assert (strength(result, "attention") > 0.05).all()


def test_nearby_the_recurrence_is_the_stronger_one(result):
    assert (strength(result, "recurrence")[:, 0] > 3 * strength(result, "attention")[:, 0]).all()
    assert (strength(result, "recurrence")[:, 3] < strength(result, "attention")[:, 3]).all()


def test_with_larger_weights_it_fades_more_slowly(result):
    assert (strength(result, "strong_recurrence")[:, 3:] > 3 * strength(result, "recurrence")[:, 3:]).all()


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (paths(seeds=seeds).strength for seeds in ((5,), (5,), (6,)))
    np.testing.assert_array_equal(first, again)
    assert (first != other).all()


def test_no_seeds_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="at least one integer"):
        paths(seeds=())


def test_the_numbers_that_chapter_1_quotes(result):
    def percent(way, digits):
        return [round(100 * float(mean), digits) for mean in strength(result, way).mean(axis=0)]

    assert percent("recurrence", 1)[:4] == [69.8, 44.3, 17.9, 2.9]
    assert percent("recurrence", 2)[4] == 0.12
    assert percent("attention", 1) == [11.2, 10.0, 10.6, 10.7, 9.1, 10.7, 8.6]
    assert percent("strong_recurrence", 1)[4] == 29.8
    assert result.hops[0, :, -1].tolist() == [63, 32, 4, 1]


@pytest.mark.parametrize(("lang", "words"), [("ja", "膨張畳み込み"), ("en", "dilated convolution")])
def test_the_picture_has_a_drawing_a_table_of_all_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["paths"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert picture.table[0][:6] == ["n", "4", "8", "16", "32", "64"]
    assert len(picture.table) == 1 + 2 * len(KINDS) + 1 + len(STRENGTHS)
    assert len({len(row) for row in picture.table}) == 1
    assert words in picture.table[3][0] and words in picture.text
    assert "63" in picture.text and "0.12" in picture.text


def test_it_needs_no_torch():
    code = "import sys; from transformer_lite.experiments.paths import paths; paths((0,)); assert 'torch' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
