"""Feed-forward network, Add & Norm, encoder and decoder layer: every wrong version is named, every right one passes."""

from itertools import combinations

import numpy as np
import pytest
import sublayers_answers as answers

from transformer_lite import practice, traps
from transformer_lite.practice.comparing import TRAP_ABSOLUTE, TRAP_RELATIVE
from transformer_lite.practice.fixtures import PLAIN, fixtures
from transformer_lite.practice.judging import expected_of

IDS = ("feed_forward", "add_and_norm", "encoder_layer", "decoder_layer")
VARIANTS = {"FF3", "AN3", "BL6"}
SEEDS = range(8)
WRONG = [(exercise, key, function) for exercise, versions in answers.WRONG.items() for key, function in versions]
RIGHT = [(exercise, function) for exercise, versions in answers.RIGHT.items() for function in versions]


def name(value):
    return getattr(value, "__name__", None) or ("+".join(sorted(value)) if isinstance(value, set) else str(value))


@pytest.mark.parametrize(("exercise", "key", "function"), WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(exercise, key, function):
    status = "variant" if key in VARIANTS else "wrong"
    for seed in SEEDS:
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == (status, (key,), "exact"), result.text("en")
        assert result.evidence["property"]["key"] == key
    for lang in ("ja", "en"):
        text = result.text(lang, verbose=True)
        assert "{" not in text and f"[{key}]" in text
        # A variant is not called a mistake; a trap known by its property alone has no numbers of its own to agree with.
        assert ("mistake gives" in text or "誤りをした" in text) is (status == "wrong" and "fixtures" in result.evidence)


def test_every_trap_of_the_families_is_among_them():
    for exercise in IDS:
        assert set(traps.family(exercise).traps) == {key for key, _ in answers.WRONG[exercise]}
    every = {key for _, key, _ in WRONG}
    wanted = [f"FF{n}" for n in range(1, 10)] + [f"AN{n}" for n in range(1, 11)] + [f"BL{n}" for n in range(1, 10)]
    assert set(wanted) <= every


@pytest.mark.parametrize(("exercise", "function"), RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(exercise, function):
    for seed in (4, 5):
        result = practice.judge(exercise, function, seed=seed)
        assert result.status == "pass", result.text("en")
        assert bool(result) and result.traps == () and result.stage is None
        assert {note.code for note in result.notes} <= {"container", "precision", "no_broadcast", "slow"}


def test_there_are_ten_right_versions_of_each():
    assert all(len(answers.RIGHT[exercise]) >= 10 for exercise in IDS)


@pytest.mark.parametrize("exercise", IDS)
def test_the_solution_passes_without_a_remark(exercise):
    scope = {"np": np}
    exec(practice.exercise(exercise).solution, scope)
    result = practice.judge(exercise, scope[exercise])
    assert result.status == "pass" and not result.notes


@pytest.mark.parametrize("exercise", IDS)
def test_every_setting_of_every_trap_is_named_with_its_property(exercise):
    asked, family = practice.exercise(exercise), traps.family(exercise)
    for (key,), setting in family.singles:

        def answer(*given, setting=setting, **named):
            return family.core(*(given or tuple(named[one] for one in asked.parameters if one in named)), **setting)[0]

        result = practice.judge(exercise, answer, seed=11)
        assert (result.traps, result.certainty) == ((key,), "exact"), (setting, result.text("en"))
        assert result.evidence["property"]["key"] == key, setting


def apart(one, other):
    """The largest difference of two lists of outputs, in tolerances of the comparison with a trap."""
    largest = 0.0
    for mine, theirs in zip(one, other, strict=True):
        if mine is None or theirs is None or mine[0].shape != theirs[0].shape:
            if mine is not theirs:
                return np.inf
            continue
        difference = np.abs(mine[0] - theirs[0]) / (TRAP_ABSOLUTE + TRAP_RELATIVE * np.abs(theirs[0]))
        largest = max(largest, np.inf if not np.isfinite(difference).all() else float(difference.max()))
    return largest


@pytest.mark.parametrize("exercise", IDS)
def test_traps_lie_a_hundred_tolerances_from_each_other_and_from_what_is_right(exercise):
    family = traps.family(exercise)
    plain = [one for one in fixtures(exercise, 3) if one.phase == PLAIN]
    points = [("right", [expected_of(practice.exercise(exercise), one.arguments) for one in plain])]
    for (key,), setting in family.singles:
        points.append((key, [family.outputs(setting, one.arguments) for one in plain]))
    checked = 0
    for (key, one), (other_key, other) in combinations(points, 2):
        if key != other_key:
            assert apart(one, other) >= 100, (key, other_key)
            checked += 1
    assert checked > 90


@pytest.mark.parametrize(("exercise", "keys", "function"), answers.PAIRS, ids=name)
def test_two_mistakes_at_once_are_named_as_two(exercise, keys, function):
    result = practice.judge(exercise, function)
    assert (result.status, set(result.traps), result.certainty) == ("wrong", keys, "exact"), result.text("en")
    assert "Two things at once" in result.text("en") and "2 つの誤り" in result.text("ja")


@pytest.mark.parametrize("exercise", IDS)
def test_no_pair_of_mistakes_is_taken_for_a_third(exercise):
    asked, family = practice.exercise(exercise), traps.family(exercise)
    for keys, setting in family.pairs[:: max(1, len(family.pairs) // 40)]:

        def answer(*given, setting=setting, **named):
            return family.core(*(given or tuple(named[one] for one in asked.parameters if one in named)), **setting)[0]

        result = practice.judge(exercise, answer, seed=2)
        if len(result.traps) == 1:  # the one hides the other, as where a left-out part cannot be masked
            assert set(result.traps) < set(keys), (keys, result.traps, setting)


@pytest.mark.parametrize(("exercise", "function"), answers.UNLISTED, ids=name)
def test_a_mistake_nobody_registered_gets_no_name(exercise, function):
    result = practice.judge(exercise, function)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none"), result.text("en")
    assert "Not a mistake I recognise." in result.text("en")


@pytest.mark.parametrize("exercise", IDS)
def test_the_companions_own_function_is_noticed(exercise):
    reference = practice.exercise(exercise).reference
    assert practice.judge(exercise, lambda *args: reference(*args)).status == "uses_reference"


@pytest.mark.parametrize("exercise", IDS)
def test_the_words_and_the_picture_are_complete(exercise):
    asked = practice.exercise(exercise)
    for lang in ("ja", "en"):
        assert asked.title(lang) and asked.contract(lang).startswith(f"{exercise}(")
        assert 3 <= len(asked.hints) <= 4 and all(hint(lang) for hint in asked.hints)
    for function in (answers.RIGHT[exercise][0], answers.WRONG[exercise][0][1], lambda *args: args[0][..., 0]):
        result = practice.judge(exercise, function)
        for lang in ("ja", "en"):
            assert result.text(lang, verbose=True)
            picture = result.show(lang)
            assert picture.png[:4] == b"\x89PNG" and len(picture.table) > 1


def influence(exercise, function):
    """The influence matrix that `show` draws for the learner's function."""
    from transformer_lite.practice import picture

    own, right = picture._influences(practice.judge(exercise, function))
    return own.astype(int), right.astype(int)


def test_the_influence_matrices_show_who_sees_whom():
    diagonal, full, lower = np.eye(5, dtype=int), np.ones((5, 5), dtype=int), np.tri(5, dtype=int)
    for exercise, function, expected, right in (
        ("feed_forward", answers.ff4_mean, full, diagonal),
        ("add_and_norm", answers.an2, diagonal, diagonal),
        ("encoder_layer", answers.en_mc22, lower, full),
        ("decoder_layer", answers.de_bl1, full, lower),
        ("decoder_layer", answers.de_bl5, diagonal, lower),
    ):
        own, reference = influence(exercise, function)
        assert np.array_equal(own, expected) and np.array_equal(reference, right), exercise


@pytest.mark.parametrize("exercise", IDS)
def test_masks_have_a_hidden_and_a_visible_entry_in_every_row_and_column(exercise):
    seen = 0
    for seed in SEEDS:
        for one in fixtures(exercise, seed):
            named = dict(zip(practice.exercise(exercise).parameters, one.arguments, strict=False))
            for mask in (named.get("mask"), named.get("memory_mask")):
                if mask is not None and not one.remark_only:
                    assert mask.any(-1).all() and mask.any(-2).all() and (~mask).any(-1).all() and (~mask).any(-2).all()
                    seen += 1
    assert seen or exercise in ("feed_forward", "add_and_norm")
