"""The claims of the experiment on models that see the answer: what is stored, and that each leak is where it is said to be."""

import numpy as np
import pytest
import torch

from transformer_lite.experiments import experiments, leak, stored
from transformer_lite.experiments.learning import alone
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.translation import grammar
from transformer_lite.translation.batching import batch_of

CONFIG = TransformerConfig(source_vocab=20, target_vocab=20, **leak.MODEL)
PAIRS = [([5, 6, 7], [8, 9, 10, 11]), ([6, 5], [12, 13])]


@pytest.fixture(scope="module")
def kept():
    return stored.read("leak")


def all_of(kept, name, *ways):
    return [value for way in ways for value in kept[way][name]]


# --- what leaks ---


def moved(model, place):
    """Which places of the first sentence's output move when the decoder's input changes at ``place``."""
    batch = batch_of(PAIRS[:1], [0])
    changed = batch.target_input.clone()
    changed[0, place] = 14
    with torch.no_grad():
        difference = model.eval()(batch.source, changed) - model(batch.source, batch.target_input)
    return (difference.abs().amax(dim=-1) > 1e-6)[0].tolist()


def test_without_the_mask_later_words_move_earlier_outputs_and_with_it_they_do_not():
    with alone(0):
        proper, unmasked = Transformer(CONFIG), leak.Unmasked(CONFIG)
    assert moved(proper, 3) == [False, False, False, True, True]
    assert moved(unmasked, 3) == [True] * 5
    assert moved(unmasked, 0) == [True] * 5


def test_without_the_mask_padding_is_hidden_all_the_same():
    with alone(0):
        model = leak.Unmasked(CONFIG).eval()
    both, alone_ = batch_of(PAIRS, [0, 1]), batch_of(PAIRS, [1])
    with torch.no_grad():
        together = model(both.source, both.target_input)[1, : alone_.labels.shape[1]]
        torch.testing.assert_close(together, model(alone_.source, alone_.target_input)[0])


def test_without_the_shift_the_input_is_the_answer():
    batch = batch_of(PAIRS, [0, 1])
    (changed,) = leak.unshifted([batch])
    assert torch.equal(changed.target_input, batch.labels) and torch.equal(changed.labels, batch.labels)
    assert torch.equal(changed.source, batch.source) and not torch.equal(batch.target_input, batch.labels)


def test_the_unmasked_model_writes_as_it_was_trained():
    """Each step of its writing gives the last row of a whole pass over the words so far, in which all see one another."""
    with alone(0):
        model = leak.Unmasked(CONFIG).eval()
    source = torch.tensor([[5, 6, 7, 2]])
    with torch.inference_mode():
        state = model.start_without_cache(source, 1)
        for n in range(1, 5):
            logits = state.step(torch.tensor([[1, 9, 8, 7][n - 1]]))
            torch.testing.assert_close(logits[0], model(source, torch.tensor([[1, 9, 8, 7][:n]]))[0, -1])


# --- the data ---


def test_the_sentences_are_short_different_and_not_the_courses():
    given = leak.data(0)
    assert (len(given.train), len(given.test)) == (4_000, 200)
    sources = [tuple(source) for source, _ in given.train + given.test]
    assert len(set(sources)) == 4_200 and max(map(len, sources)) <= leak.LONGEST
    assert max(len(target) for _, target in given.train) + 1 <= leak.MOST_WORDS
    for pair in grammar.COURSE:
        ids = given.source.encode(" ".join(pair.source))
        assert 3 not in ids and tuple(ids) not in sources  # all its words are known, the sentence is not


# --- what is stored ---


def test_three_seeds_of_every_way_are_stored(kept):
    assert kept["seeds"] == list(leak.SEEDS) and len(set(kept["seeds"])) == 3
    assert (kept["steps"], kept["block"]) == (leak.STEPS, leak.BLOCK)
    for way in leak.WAYS:
        assert np.shape(kept[way]["loss"]) == (3, leak.STEPS // leak.BLOCK)
        assert all(len(kept[way][name]) == 3 for name in ("new", "strange", "exact", "course"))


def test_what_is_stored_was_measured_with_the_grammar_as_it_is(kept):
    for way in ("proper", "no_shift"):
        now = leak.measure(way, 0, steps=leak.BLOCK, n_test=2)
        assert now["loss"][0] == pytest.approx(kept[way]["loss"][0][0], rel=5e-3)


def test_all_start_from_the_same_loss(kept):
    first = [losses[0] for losses in all_of(kept, "loss", *leak.WAYS)]
    assert max(first) < 1.15 * min(first)


def test_a_leak_makes_the_loss_fall_far_sooner(kept):
    until = {way: [leak.steps_until(losses, 0.1) for losses in kept[way]["loss"]] for way in leak.WAYS}
    assert max(until["no_shift"]) < min(until["no_mask"]) <= max(until["no_mask"]) < min(until["proper"])


def test_a_leak_does_not_show_in_the_loss_on_new_sentences(kept):
    assert max(all_of(kept, "new", "no_mask", "no_shift")) < min(kept["proper"]["new"])


def test_only_the_proper_model_translates(kept):
    assert min(kept["proper"]["exact"]) > 0.85
    assert max(all_of(kept, "exact", "no_mask", "no_shift")) < 0.05


def test_only_the_proper_model_needs_the_source(kept):
    assert min(kept["proper"]["strange"]) > 10 * max(all_of(kept, "strange", "no_mask", "no_shift"))
    assert max(kept["no_shift"]["strange"]) < 1.5 * min(kept["no_shift"]["new"])


def test_steps_until_a_level():
    assert leak.steps_until([3.0, 0.5, 0.05, 0.2], 0.1) == 30
    assert leak.steps_until([3.0, 0.5], 0.1) is None


# --- live ---


def test_a_short_run_shows_it_and_the_proper_model_does_not():
    with_mask, without = (leak.measure(way, 5, steps=100, n_test=30) for way in ("proper", "no_mask"))
    shifted = leak.measure("no_shift", 5, steps=60, n_test=30)
    assert without["loss"][-1] < 0.7 * with_mask["loss"][-1]
    assert shifted["loss"][-1] < 0.2 * with_mask["loss"][5]
    assert with_mask["strange"] > 2 * with_mask["new"] and shifted["strange"] < 1.5 * shifted["new"]
    assert shifted["exact"] == 0.0


def test_the_same_seed_gives_the_same_numbers_and_another_seed_others():
    first, again, other = (leak.measure("no_shift", seed, steps=20, n_test=5)["loss"] for seed in (5, 5, 6))
    assert first == again != other


def test_no_such_way_is_an_error_that_says_so():
    with pytest.raises(ValueError, match="'no_mask', 'no_shift'; got 'no_idea'"):
        leak.measure("no_idea", 0)


@pytest.mark.parametrize(("lang", "words"), [("ja", "右シフトなし"), ("en", "no right shift")])
def test_the_picture_has_a_drawing_a_table_of_numbers_and_a_sentence_in_its_language(lang, words):
    picture = experiments()["leak"](lang)
    assert picture.png.startswith(b"\x89PNG")
    assert len(picture.table) == 1 + 3 + 1 and len({len(row) for row in picture.table}) == 1
    assert any(words in row[0] for row in picture.table)
    assert "{" not in picture.text and "150" in picture.text
    assert all(row[-1] for row in picture.table)  # also where nothing is written
