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
    MODELS,
    RATES,
    SMALL,
    TIMED,
    VOCAB,
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
    place = DISTANCES.index(16)
    closed, _ = measure(0, "lstm", 16, result.rates["lstm"][place])
    opened, _ = measure(0, "open_lstm", 16, result.rates["open_lstm"][place])
    assert closed < 0.3 and opened > 0.9


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


def test_a_stored_number_is_what_is_measured_today(result):
    place = DISTANCES.index(8)
    today, _ = measure(0, "bahdanau", 8, result.rates["bahdanau"][place])
    assert today == pytest.approx(result.accuracy["bahdanau"][0, place], abs=0.05)


def test_the_lstm_without_attention_guesses_from_some_distance_on(result):
    lstm = result.accuracy["lstm"]
    assert (lstm[:, 0] > 0.95).all()
    assert (lstm[:, DISTANCES.index(32) :] < CHANCE + 0.05).all()


def test_with_attention_the_distance_makes_next_to_no_difference(result):
    for model in ATTENDING:
        assert (result.accuracy[model] > 0.9).all(), model
    far = result.distances.index(64)
    spread = max(np.ptp(values[:, far]) for values in result.accuracy.values())
    assert min(result.accuracy[model][:, far].min() for model in ATTENDING) - result.accuracy["lstm"][:, far].max() > 5 * spread
