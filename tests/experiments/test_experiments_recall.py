"""The claims of the experiment on reaching back: its task, its models, its fairness, and what is stored."""

import numpy as np
import pytest
import torch

from transformer_lite.experiments import experiments, recall, stored
from transformer_lite.experiments.recall import (
    ATTENDING,
    CAPITAL,
    CHANCE,
    DEV_SEED,
    DISTANCES,
    LENGTHS,
    LIVE,
    LIVE_DISTANCE,
    MODELS,
    RATES,
    SMALL,
    TIMED,
    VOCAB,
    best_rate,
    build,
    kept,
    measure,
    sources,
    step_times,
    train,
)
from transformer_lite.model.counting import parameter_count


@pytest.fixture(scope="module")
def result():
    return kept()


# ---------------------------------------------------------------------------------------------------------------- task


@pytest.mark.parametrize(("distance", "before"), [(1, 0), (4, 7), (64, 3)])
def test_a_source_has_one_capital_at_its_distance_and_that_is_the_answer(distance, before):
    letters, capitals = sources(np.random.default_rng(0), distance, 50, before)
    assert letters.shape == (50, before + distance) and capitals.shape == (50,)
    large = (letters >= CAPITAL) & (letters < VOCAB)
    assert (large.sum(dim=1) == 1).all() and (letters[~large] >= SMALL).all()
    torch.testing.assert_close(letters[:, -distance], capitals)


def test_every_capital_is_asked_for_and_the_small_letters_do_not_tell_it():
    letters, capitals = sources(np.random.default_rng(0), 4, 4000, 4)
    assert capitals.unique().numel() == 16
    beside = letters[:, -3]  # the letter after the capital
    assert float((beside - SMALL == capitals - CAPITAL).float().mean()) == pytest.approx(1 / 16, abs=0.015)


def test_a_distance_that_cannot_be_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="distance must be 1 or more"):
        sources(np.random.default_rng(0), 0, 3, 4)


# -------------------------------------------------------------------------------------------------------------- models


def test_the_models_have_equally_many_parameters(result):
    counts = {model: parameter_count(build(model, 0)) for model in MODELS}
    assert counts == result.parameters
    assert max(counts.values()) < 1.02 * min(counts.values())


def test_opening_the_forget_gates_changes_their_biases_alone():
    closed, opened = (dict(build(model, 3).named_parameters()) for model in ("lstm", "open_lstm"))
    for name, values in closed.items():
        moved = (opened[name] - values).detach()
        if name.endswith("bias_ih_l0"):
            assert moved[60:120].numpy() == pytest.approx(2.0, abs=1e-6)
            moved[60:120] = 0
        assert (moved == 0).all(), name


def test_building_and_measuring_leave_the_readers_random_numbers_and_threads_alone():
    torch.manual_seed(5)
    before, threads = torch.get_rng_state(), torch.get_num_threads()
    measure(0, "lstm", 4, 0.01, n_steps=2)
    assert torch.equal(torch.get_rng_state(), before) and torch.get_num_threads() == threads


def test_every_model_learns_from_the_same_batches(monkeypatch):
    seen = []
    monkeypatch.setattr(recall, "sources", lambda *given: seen.append(sources(*given)) or seen[-1])
    for model in MODELS:
        train(build(model, 0), 8, seed=0, rate=0.001, n_steps=3)
    for i in range(3, len(seen)):
        torch.testing.assert_close(seen[i], seen[i - 3])
    assert not torch.equal(seen[0][1], seen[1][1])


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (measure(seed, "lstm", 4, 0.01, n_steps=10) for seed in (5, 5, 6))
    assert first == again != other


def test_no_such_model_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="'gnmt', 'transformer'; got 'bert'"):
        build("bert", 0)


# ----------------------------------------------------------------------------------------------------- another outcome


def test_it_is_the_way_through_the_forget_gates_that_stops_the_lstm(result):
    """With the gates opened by hand the same model, batches and steps reach where it does not reach by itself."""
    opened, _ = measure(0, "open_lstm", 16, 0.003)
    assert result.accuracy["lstm"][0, DISTANCES.index(16)] < 0.1 and opened > 0.9


def test_with_next_to_no_training_the_transformer_only_guesses():
    assert measure(0, "transformer", 16, 0.003, n_steps=3)[0] < 0.3


# -------------------------------------------------------------------------------------------------------------- stored


def test_what_is_stored_is_complete(result):
    assert result.seeds == (0, 1, 2) and result.distances == DISTANCES and result.lengths == LENGTHS
    assert set(result.accuracy) == set(MODELS) and set(result.times) == set(TIMED)
    for values in result.accuracy.values():
        assert values.shape == (3, len(DISTANCES)) and (values >= 0).all() and (values <= 1).all()
    for values in result.times.values():
        assert values.shape == (3, len(LENGTHS)) and (values > 0).all()


def test_every_model_got_the_best_of_the_same_rates_chosen_with_another_seed(result):
    data = stored.read("recall")
    assert tuple(data["rates tried"]) == RATES and DEV_SEED not in result.seeds
    for model, rows in data["accuracy of the rates tried (distance, rate)"].items():
        for rate, row in zip(result.rates[model], rows, strict=True):
            assert row[RATES.index(rate)] == max(row), model


def at(result, model, distance):
    return result.accuracy[model][:, DISTANCES.index(distance)]


def test_the_lstm_without_attention_guesses_from_distance_16_on(result):
    assert (result.accuracy["lstm"][:, : DISTANCES.index(16)] > 0.95).all()
    assert (np.abs(result.accuracy["lstm"][:, DISTANCES.index(16) :] - CHANCE) < 0.03).all()


def test_opened_forget_gates_take_it_further_but_not_far(result):
    assert at(result, "open_lstm", 16).min() > at(result, "lstm", 16).max() + 0.25
    assert (np.abs(result.accuracy["open_lstm"][:, DISTANCES.index(32) :] - CHANCE) < 0.03).all()


def test_with_attention_the_distance_makes_no_difference_but_for_the_deep_stack(result):
    for model in ("bahdanau", "transformer"):
        assert (result.accuracy[model] > 0.99).all(), model
    assert (result.accuracy["gnmt"][:, :-1] > 0.9).all()
    assert (at(result, "gnmt", 64) > 0.5).all()


def test_the_difference_is_larger_than_the_spread_of_the_seeds(result):
    for distance in (16, 32, 64):
        without = at(result, "lstm", distance)
        for model in ATTENDING:
            with_attention = at(result, model, distance)
            gap = with_attention.min() - without.max()
            assert gap > np.ptp(without) and gap > np.ptp(with_attention), (model, distance)


def test_on_one_thread_the_plain_lstm_is_the_quickest_and_bahdanaus_attention_the_slowest(result):
    for model, holds in (("lstm", lambda ratio: ratio < 1), ("bahdanau", lambda ratio: ratio > 1.5)):
        assert holds(result.ratio(model)).all(), model
    lstm, gnmt, bahdanau = (result.ratio(model)[:, -1] for model in ("lstm", "gnmt", "bahdanau"))
    assert lstm.max() < 0.2 and gnmt.min() > 1.2 and gnmt.max() < bahdanau.min()


def test_a_step_is_timed_for_every_model_and_length():
    measured = step_times(0, lengths=(4, 48), rounds=2)
    assert set(measured) == set(TIMED)
    for model, (short, long) in measured.items():
        assert short > 0 and long > 0, model
    assert measured["bahdanau"][1] > 2 * measured["bahdanau"][0]  # its decoder goes token by token
    assert measured["bahdanau"][1] > measured["lstm"][1]


def test_of_equally_good_rates_the_middle_one_is_taken():
    assert best_rate([0.2, 0.9, 0.8, 0.1]) == RATES[1]
    assert best_rate([0.9, 1.0, 1.0, 1.0]) == RATES[2]
    assert best_rate([1.0, 1.0, 1.0, 1.0]) == best_rate([0.0, 1.0, 1.0, 0.9]) == RATES[1]


def test_the_numbers_that_the_sentence_quotes(result):
    quoted = recall._quoted(result)
    assert [quoted[key] for key in ("lstm_near", "lstm_live", "open_live", "open_beyond")] == [
        "1.00", "0.06–0.07", "0.39–1.00", "0.05–0.08",
    ]  # fmt: skip
    assert [quoted[key] for key in ("bahdanau", "transformer", "gnmt", "gnmt_far")] == ["1.00", "1.00", "0.94–1.00", "0.55–1.00"]
    assert [quoted[f"{model}_time"] for model in ("lstm", "gnmt", "bahdanau")] == ["0.14", "1.4", "3.9"]
    assert (quoted["n"], quoted["d_model"], quoted["far"]) == (256, 32, 64)


# ------------------------------------------------------------------------------------------------------------- picture


def test_the_live_points_come_out_as_the_stored_ones(result):
    """Another processor rounds otherwise, and training magnifies that: on which side they lie is what must be the same."""
    place = DISTANCES.index(LIVE_DISTANCE)
    without, having = (measure(0, model, LIVE_DISTANCE, result.rates[model][place])[0] for model in LIVE)
    assert without < 0.4 and having > 0.95
    assert result.accuracy["lstm"][0, place] < 0.4 and result.accuracy["bahdanau"][0, place] > 0.95


@pytest.mark.parametrize(("lang", "words"), [("ja", "LSTM ＋ Bahdanau の注意"), ("en", "LSTM + Bahdanau's attention")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words, monkeypatch):
    trained = []
    monkeypatch.setattr(recall, "measure", lambda seed, model, distance, rate: trained.append((model, distance)) or (0.42, 1.0))
    picture = experiments()["recall"](lang)
    assert trained == [(model, LIVE_DISTANCE) for model in LIVE]
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + len(MODELS) + len(LIVE) + 1 + len(TIMED) and {len(row) for row in picture.table} == {7}
    assert [row[3] for row in picture.table[1 + len(MODELS) :][: len(LIVE)]] == ["0.42"] * len(LIVE)
    assert words in [row[0] for row in picture.table]
    assert "{" not in picture.text and "0.55–1.00" in picture.text
