"""The claims of the experiment on the cost of attention: what is counted, what is measured, what is stored."""

import sys
import tracemalloc

import numpy as np
import pytest
import torch

from transformer_lite.equations import attention_cost, blocked_attention
from transformer_lite.experiments import experiments, growth
from transformer_lite.experiments.growth import (
    LENGTHS,
    WAYS,
    kept,
    quadratic_share,
    resident_memory,
    slope,
    times,
    traced_memory,
    ways,
)


@pytest.fixture(scope="module")
def result():
    return kept()


# ------------------------------------------------------------------------------------------------------------- counted


def test_the_quadratic_share_is_n_over_6_d_plus_n_and_one_half_at_6_d():
    for d_model in (64, 512, 1024):
        assert quadratic_share(6 * d_model, d_model) == 0.5
        for n in (1, 100, 8192):
            assert quadratic_share(n, d_model) == pytest.approx(n / (6 * d_model + n))


def test_a_narrower_feed_forward_network_makes_the_share_larger():
    assert quadratic_share(512, 512, 512) == pytest.approx(2 / (4 + 2 + 2))
    assert quadratic_share(512, 512, 512) > quadratic_share(512, 512)


def test_twice_the_tokens_are_four_times_the_quadratic_part_alone():
    assert sum(attention_cost(1024, 512)) == 4 * sum(attention_cost(512, 512))


# ------------------------------------------------------------------------------------------------------------ measured


def test_the_three_ways_compute_the_same():
    outputs = [np.asarray(call()).reshape(4, 300, 64) for call in ways(300, 0).values()]
    for output in outputs[1:]:
        np.testing.assert_allclose(output, outputs[0], atol=2e-6)
    assert outputs[0].dtype == np.float32
    assert not np.allclose(outputs[0], np.asarray(ways(300, 1)["explicit"]()))


def test_the_slope_is_the_exponent():
    n = np.array([512, 1024, 4096])
    assert slope(n, 3.0 * n**2) == pytest.approx(2)
    assert slope(n, 0.1 * n) == pytest.approx(1)
    assert slope(n, [7.0] * 3) == pytest.approx(0, abs=1e-12)


def test_one_call_holds_n_squared_numbers_or_n_times_the_block():
    weights = 4 * 4 * 512**2  # bytes of one (h, n, n) array of float32
    once, in_blocks = (traced_memory(ways(512, 0)[way]) for way in ("explicit", "blocked"))
    assert once > weights and in_blocks < weights / 4
    assert traced_memory(ways(1024, 0)["explicit"]) == pytest.approx(4 * once, rel=0.05)
    assert traced_memory(ways(1024, 0)["blocked"]) < 2.1 * in_blocks


def test_it_is_the_block_that_saves_memory():
    """With all rows in one block the blocked way's memory grows with n² too."""
    held = []
    for n in (512, 1024):
        q, k, v = np.random.default_rng(n).standard_normal((3, 4, n, 64), dtype=np.float32)
        held.append(traced_memory(lambda q=q, k=k, v=v, n=n: blocked_attention(q, k, v, block=n)))
    assert held[1] > 3 * held[0]


def test_the_inputs_and_what_was_held_before_do_not_count():
    kept_alive = []
    tracemalloc.start()
    try:
        kept_alive.append(np.zeros(10**7))
        assert traced_memory(lambda: np.zeros(10**6)) == pytest.approx(8 * 10**6, rel=0.01)
        assert tracemalloc.is_tracing()  # it was running before, and goes on
    finally:
        tracemalloc.stop()
    traced_memory(lambda: None)
    assert not tracemalloc.is_tracing()


@pytest.mark.skipif(sys.platform != "linux", reason="the peak of a process is read from /proc")
def test_the_two_rulers_of_memory_agree_where_both_can_measure():
    assert resident_memory("explicit", 512) == pytest.approx(traced_memory(ways(512, 0)["explicit"]), rel=0.1)


def test_the_threads_are_those_of_before_also_after_an_error(monkeypatch):
    threads = torch.get_num_threads()
    monkeypatch.setattr(growth, "ways", lambda n, seed: {way: lambda: 1 / 0 for way in WAYS})
    with pytest.raises(ZeroDivisionError):
        times(0, (16,), repeats=1)
    assert torch.get_num_threads() == threads


def test_more_tokens_take_more_time():
    measured = times(0, (64, 512), repeats=2)
    assert set(measured) == set(WAYS)
    for way, (short, long) in measured.items():
        assert 0 < short < long, way


# -------------------------------------------------------------------------------------------------------------- stored


def test_every_way_and_length_was_measured_three_times(result):
    assert result.lengths == LENGTHS
    for values in (*result.times.values(), *result.memory.values()):
        assert values.shape == (3, len(LENGTHS)) and (values > 0).all()
    assert set(result.times) == set(result.memory) == set(WAYS)
    np.testing.assert_array_equal(result.times["explicit"][:, LENGTHS.index(512)], 1)


def test_time_grows_with_n_squared_whichever_way(result):
    for way in ("blocked", "torch"):
        assert (np.abs(result.slopes("times", way) - 2) < 0.15).all(), way
    assert (result.slopes("times", "explicit") > 1.9).all()


def test_what_the_explicit_way_takes_beyond_that_goes_to_the_system(result):
    """Its slope lies above 2 because of the longest length, where about half of the time is the system's, not attention's."""
    own = result.times["explicit"][:, -1] * (1 - result.system["explicit"])
    assert (result.system["explicit"] > 0.3).all() and max(result.system["blocked"].max(), result.system["torch"].max()) < 0.05
    assert np.mean([slope((512, 4096), (1, each)) for each in own]) == pytest.approx(2, abs=0.15)
    assert (np.abs(np.log(result.times["explicit"][:, LENGTHS.index(2048)]) / np.log(4) - 2) < 0.15).all()


def test_memory_grows_with_n_squared_only_where_all_weights_exist_at_once(result):
    assert (np.abs(result.slopes("memory", "explicit") - 2) < 0.02).all()
    for way in ("blocked", "torch"):
        slopes = result.slopes("memory", way)
        assert (np.abs(slopes - 1) < 0.15).all(), way
        assert result.slopes("memory", "explicit").min() - slopes.max() > 10 * np.ptp(slopes)  # not the spread of the runs


def test_a_stored_memory_is_what_is_measured_today(result):
    for way in ("explicit", "blocked"):
        today = traced_memory(ways(512, 0)[way]) / 2**20
        assert result.memory[way][0, LENGTHS.index(512)] == pytest.approx(today, rel=0.1)


# ------------------------------------------------------------------------------------------------------------- picture


def test_the_numbers_that_the_sentence_quotes(result):
    quoted = growth._quoted(result)
    assert [quoted[key] for key in ("usual_share", "half", "book_share")] == ["14", 3072, "91"]
    assert [quoted[f"time_{way}"] for way in WAYS] == ["2.3", "2.0", "2.0"]
    assert [quoted[f"memory_{way}"] for way in WAYS] == ["2.0", "0.9", "0.9"]
    assert [quoted[key] for key in ("most", "system", "less_blocked", "less_torch")] == ["768", "38–55", "125", "171"]


@pytest.mark.parametrize(("lang", "words"), [("ja", "NumPy（128 行ずつ）"), ("en", "NumPy, 128 rows at a time")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["growth"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 3 + (1 + 3 + 3) + (1 + 3 + 2) and {len(row) for row in picture.table} == {8}
    assert words in [row[0] for row in picture.table]
    assert picture.table[1][5] == "50.0 %"  # d_model = 512, n = 3072
    assert "{" not in picture.text and "3072" in picture.text
