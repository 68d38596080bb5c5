"""The claims of the experiment on longer sequences and missing positions."""

from math import factorial

import numpy as np
import pytest
import torch

from transformer_lite.experiments import experiments, longer, stored
from transformer_lite.experiments.learning import alone
from transformer_lite.model import LearnedPositions, Transformer, TransformerConfig

POSITIONED = ("sinusoidal", "learned")


@pytest.fixture(scope="module")
def kept():
    return stored.read("longer")


def at(kept, way, name, n):
    """The three seeds' shares for sequences of ``n`` words."""
    return np.array(kept[way][name])[:, kept["lengths"].index(n)]


# --- the task ---


def test_the_words_are_45_different_ones_in_both_languages_and_hold_the_courses():
    for column, lang in enumerate(longer.LANGUAGES):
        words = [pair[column] for pair in longer.WORDS]
        assert len(set(words)) == len(words) == 45
        for sentence in longer.SWAP[lang]:
            assert longer._text(longer._ids(sentence, lang), lang).split() == list(sentence)


def test_a_task_is_to_write_what_is_read():
    batch = next(longer.tasks(0, 8))
    for source, given, labels in zip(*(part.tolist() for part in batch), strict=True):
        words = [word for word in source if word >= longer.FIRST]
        assert 1 <= len(words) <= 8 and len(set(words)) == len(words)
        assert labels[: len(words) + 1] == [*words, 2] and given[: len(words) + 1] == [1, *words]
    lengths = {int((batch.source[i] >= longer.FIRST).sum()) for i in range(longer.ROWS)}
    assert lengths == set(range(1, 9))


def test_learned_positions_beyond_the_training_sequences_stay_as_they_were_drawn():
    config = TransformerConfig(source_vocab=50, positions="learned", max_positions=20, **longer.MODEL)
    with alone(0):
        model = Transformer(config)
        tables = [module.table for module in model.modules() if isinstance(module, LearnedPositions)]
        before = [table.detach().clone() for table in tables]
        longer.learn(model, longer.tasks(0, 8), longer.rate, 3)
    assert tables
    for table, old in zip(tables, before, strict=True):
        assert torch.equal(table[9:], old[9:]) and not torch.equal(table[:9], old[:9])  # 8 words and EOS, or BOS and 8 words


# --- what is stored ---


def test_three_seeds_of_every_way_are_stored(kept):
    assert kept["seeds"] == list(longer.SEEDS) and tuple(kept["lengths"]) == longer.LENGTHS
    for way in longer.WAYS:
        for name in ("exact", "in_place", "same_words"):
            shares = np.array(kept[way][name])
            assert shares.shape == (3, len(longer.LENGTHS)) and (shares >= 0).all() and (shares <= 1).all()
            if name != "exact":
                assert (shares >= np.array(kept[way]["exact"]) - 1e-9).all()


@pytest.mark.parametrize("way", POSITIONED)
def test_with_positions_the_task_is_learned_at_every_length_of_training(kept, way):
    assert min(at(kept, way, "exact", n).min() for n in longer.LENGTHS if n <= longer.LONGEST) >= 0.95


def test_the_very_next_length_is_hard_already_and_harder_for_learned_positions(kept):
    sinusoidal, learned = (at(kept, way, "exact", longer.LONGEST + 1) for way in POSITIONED)
    assert sinusoidal.max() < 0.9 and learned.max() <= 0.05 and sinusoidal.min() > 0.3


@pytest.mark.parametrize("way", POSITIONED)
def test_and_is_lost_a_few_words_beyond(kept, way):
    assert max(at(kept, way, "exact", n).max() for n in longer.LENGTHS if n > longer.LONGEST + 3) <= 0.02


def test_the_model_could_do_it_had_it_seen_such_lengths(kept):
    assert min(at(kept, "trained_longer", "exact", n).min() for n in (9, 10, 12, 14)) >= 0.95
    assert at(kept, "trained_longer", "exact", 16).min() >= 0.8
    assert max(at(kept, "trained_longer", "exact", n).max() for n in (20, 24)) <= 0.02


def test_without_positions_the_words_are_right_and_their_order_is_chance(kept):
    assert at(kept, "none", "same_words", 2).min() >= 0.95 and at(kept, "none", "same_words", 3).min() >= 0.9
    for n in (2, 3, 4):
        expected = 1 / factorial(n)
        spread = 4 * np.sqrt(expected * (1 - expected) / (3 * longer.N_TEST))
        assert abs(at(kept, "none", "exact", n).mean() - expected) <= spread


def test_without_positions_a_sequence_read_backwards_gives_the_same(kept):
    assert min(kept["none"]["reversed"]) >= 0.99
    assert max(kept["sinusoidal"]["reversed"] + kept["learned"]["reversed"]) == 0.0
    for lang, (sentence, swapped) in longer.SWAP.items():
        for written in kept["none"]["swap"]:
            assert written[lang][0] == written[lang][1]
        for way in POSITIONED:
            for written in kept[way]["swap"]:
                assert written[lang] == [longer._ids(sentence, lang), longer._ids(swapped, lang)]


# --- live ---


def test_a_short_run_without_positions_and_one_with_them():
    without, with_them = (longer.measure(way, 5, steps=140, lengths=(1, 4), n_test=60) for way in ("none", "sinusoidal"))
    assert without["reversed"] >= 0.98 and without["exact"][0] >= 0.9 and without["exact"][1] <= 0.1
    assert with_them["reversed"] <= 0.1 and with_them["exact"][1] >= 0.3


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (longer.measure("none", seed, steps=60, lengths=(1, 2), n_test=40) for seed in (5, 5, 6))
    assert first == again != other


def test_wrong_ways_and_lengths_are_errors_that_say_so():
    with pytest.raises(ValueError, match="'none', 'trained_longer'; got 'rotary'"):
        longer.measure("rotary", 0)
    with pytest.raises(ValueError, match=r"1 to 24; got \(25,\)"):
        longer.measure("none", 0, lengths=(25,))


@pytest.mark.parametrize(("lang", "words"), [("ja", "位置なし"), ("en", "no positions")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["longer"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len({len(row) for row in picture.table}) == 1 and len(picture.table) == 1 + 3 * (4 + 1) + 1 + 3
    assert any(words in row[0] for row in picture.table)
    assert "{" not in picture.text and " 8" in picture.text
    assert " ".join(longer.SWAP[lang][0]) in picture.table[-4]
