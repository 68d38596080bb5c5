"""Training, counting and decoding: every mistake by its name, every right way passes, every verdict speaks both languages."""

import numpy as np
import pytest
import training_answers as answers

from transformer_lite import content, practice, traps
from transformer_lite.practice.comparing import TRAP_ABSOLUTE, TRAP_RELATIVE
from transformer_lite.practice.fixtures import fixtures
from transformer_lite.practice.judging import expected_of

SEEDS = range(1, 9)
EXERCISES = tuple(answers.WRONG)
WRONG = [(exercise, keys, function) for exercise, versions in answers.WRONG.items() for keys, function in versions]
RIGHT = [(exercise, function) for exercise, versions in answers.RIGHT.items() for function in versions]
TWO = [(exercise, keys, function) for exercise, keys, function in answers.PAIRS]


def name(value):
    return getattr(value, "__name__", None) or ("+".join(sorted(value)) if isinstance(value, (tuple, set)) else str(value))


@pytest.mark.parametrize(("exercise", "keys", "function"), WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(exercise, keys, function):
    status = "variant" if keys == ("LS4",) else "wrong"
    for seed in SEEDS:
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == (status, keys, "exact"), result.text("en")
        assert result.evidence["property"]["key"] == keys[0], result.text("en")


def test_every_trap_of_these_topics_is_among_them():
    wanted = (
        {f"SR{n}" for n in range(1, 8)}
        | {f"LS{n}" for n in range(1, 7)}
        | {f"CE{n}" for n in range(1, 8)}
        | {f"LR{n}" for n in range(1, 9)}
        | {f"PC{n}" for n in range(1, 9)}
        | {"CO1", "CO2", "CO3", "KV1", "KV3", "KV4", "KV5"}
    )
    assert wanted == {key for _, keys, _ in WRONG for key in keys}
    assert wanted == {key for exercise in EXERCISES for key in traps.family(exercise).traps}


@pytest.mark.parametrize(("exercise", "function"), RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(exercise, function):
    for seed in (4, 5):
        result = practice.judge(exercise, function, seed=seed)
        assert result.status == "pass" and result.traps == () and result.stage is None, result.text("en", verbose=True)
    harmless = {"container", "precision", "library", "in_notebook", "slow"}
    assert {note.code for note in result.notes} <= harmless, result.text("en")


def test_there_are_ten_right_versions_of_each():
    assert all(len(versions) >= 10 for versions in answers.RIGHT.values())


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_reference_is_the_family_without_a_knob_turned_and_the_solution_passes(exercise):
    asked = practice.exercise(exercise)
    for fixture in fixtures(exercise, 3):
        given = traps.family(exercise).outputs({}, fixture.arguments)
        for one, other in zip(given, expected_of(asked, fixture.arguments), strict=True):
            assert one.shape == other.shape
            np.testing.assert_allclose(one, other, rtol=1e-9)
    scope = {"np": np}
    exec(asked.solution, scope)
    result = practice.judge(exercise, scope[exercise])
    assert result.status == "pass" and not result.notes


def distance(some, others):
    """How many tolerances apart two ways of answering are, on the input that shows it best."""
    apart = 0.0
    for one, other in zip(some, others, strict=True):
        if one is None or other is None:
            if (one is None) != (other is None):
                return np.inf
            continue
        for a, b in zip(one, other, strict=True):
            if a.shape != b.shape:
                return np.inf
            difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
            if not np.isfinite(difference).all():
                return np.inf
            # Whole numbers are compared exactly: a difference of 1 is as far apart as can be.
            exact = a.dtype.kind in "iu" and b.dtype.kind in "iu"
            if exact and difference.any():
                return np.inf
            apart = max(apart, float((difference / (TRAP_ABSOLUTE + TRAP_RELATIVE * np.abs(b))).max(initial=0.0)))
    return apart


@pytest.mark.parametrize("exercise", EXERCISES)
def test_any_two_traps_and_the_reference_lie_far_apart(exercise):
    family = traps.family(exercise)
    given = [one for one in fixtures(exercise, 3) if one.phase == 1]  # ordinary inputs alone must tell them apart
    ways = [((), {}), *family.singles]
    outputs = [[family.outputs(setting, fixture.arguments) for fixture in given] for _, setting in ways]
    for i, (keys, setting) in enumerate(ways):
        for j in range(i):
            if ways[j][0] != keys or not keys:
                assert distance(outputs[i], outputs[j]) >= 100, (keys, setting, *ways[j])


@pytest.mark.parametrize(("exercise", "keys", "function"), TWO, ids=name)
def test_two_mistakes_at_once_are_named_as_two(exercise, keys, function):
    for seed in (1, 2, 3):
        result = practice.judge(exercise, function, seed=seed)
        assert set(result.traps) == keys and result.certainty == "exact", result.text("en")
        assert result.evidence["property"]["key"] in keys
    assert "Two things at once" in result.text("en") and "2 つの誤り" in result.text("ja")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_pair_of_mistakes_is_taken_for_one_that_is_not_in_it(exercise):
    """Every pair of knobs turned at once gives the numbers of a single trap only where that trap is one of the two."""
    family = traps.family(exercise)
    given = [one for one in fixtures(exercise, 3) if one.phase == 1]
    outputs = {}
    for keys, setting in family.singles:
        outputs.setdefault(keys[0], []).append([family.outputs(setting, fixture.arguments) for fixture in given])
    for keys, setting in family.pairs:
        both = [family.outputs(setting, fixture.arguments) for fixture in given]
        taken_for = {key for key, versions in outputs.items() for one in versions if distance(both, one) < 1}
        assert not taken_for or taken_for & set(keys), (keys, setting, taken_for)


@pytest.mark.parametrize(("exercise", "function", "law"), answers.UNREGISTERED, ids=name)
def test_a_mistake_nobody_registered_gets_no_name_but_a_place(exercise, function, law):
    result = practice.judge(exercise, function, seed=2)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none"), result.text("en")
    assert law is None or law in [one["law"] for one in result.evidence["laws"]]
    assert result.evidence["yours"] != result.evidence["right"]
    for lang in ("ja", "en"):
        text = result.text(lang, verbose=True)
        assert "[]" not in text and "{" not in text.replace("{'", "")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_every_verdict_has_its_words_in_both_languages_and_a_picture(exercise):
    functions = [function for _, function in answers.WRONG[exercise]] + answers.RIGHT[exercise][:1]
    for function in functions:
        result = practice.judge(exercise, function, seed=6)
        japanese, english = (result.text(lang, verbose=True) for lang in ("ja", "en"))
        assert japanese != english and "practice." not in japanese + english
        assert "確かめ方" in japanese or result.status == "pass"
    for function in (functions[0], functions[-1]):
        picture = practice.judge(exercise, function, seed=6).show("ja")
        assert picture.png.startswith(b"\x89PNG") and len(picture.table) > 1 and picture.text


def test_labels_reach_only_the_place_after_theirs_and_a_cache_sees_only_the_past():
    right = practice.judge("shift_right", answers.shift_slices).show("en")
    unshifted = practice.judge("shift_right", answers.sr1).show("en")
    assert right.table != unshifted.table and "influence, yours" in str(unshifted.table)
    assert "influence, yours" in str(practice.judge("cached_decoding", answers.kv1).show("en").table)


def test_a_count_that_is_off_by_one_in_a_million_is_wrong_and_the_verdict_says_both_numbers():
    result = practice.judge("parameter_count", answers.count_off_by_one)
    assert not result and result.traps == ()
    big = next(case for case in result.cases if case.name == "the base model")
    assert int(big.right[0]) == 63_082_496 and int(big.yours[0]) == 63_082_497
    first = next(case for case in result.cases if case.name == "rectangular")
    assert str(int(first.right[0])) in result.text("en") and str(int(first.right[0]) + 1) in result.text("en")


def test_a_warm_up_that_cannot_be_chosen_is_asked_for():
    result = practice.judge("noam_learning_rate", lambda step, d_model: answers.rate_min(step, d_model))
    assert (result.status, result.stage) == ("wrong", "signature") and "warmup" in result.text("en")
    short = practice.judge("parameter_count", lambda a, b, c, d: answers.count_parts(a, b, c, d))
    assert "n_heads, d_k, biases" in short.text("en")


def test_readable_snippets_are_the_traps_they_illustrate():
    shown = {key: trap.snippet for key, trap in content.traps().items() if key[:2] in ("SR", "LS", "CE", "LR", "PC", "CO", "KV")}
    assert sum(snippet is not None for snippet in shown.values()) >= 10
    for key, snippet in shown.items():
        if snippet:
            scope = {"np": np}
            exec(snippet, scope)
            exercise = next(name for name in reversed(list(scope)) if name in practice.exercises())
            assert practice.judge(exercise, scope[exercise]).traps == (key,)


def test_weights_that_overflow_are_told_apart_from_wrong_ones():
    def careless(x, projections):
        w_q, w_k, w_v, w_o = projections
        e = np.exp((x @ w_q) @ (x @ w_k).swapaxes(-1, -2) / np.sqrt(x.shape[-1])) * np.tri(x.shape[-2])
        weights = e / e.sum(axis=-1, keepdims=True)
        return weights @ (x @ w_v) @ w_o, weights

    result = practice.judge("cached_decoding", careless)
    assert (result.status, result.stage, result.traps) == ("wrong", "finite", ())


def test_a_loss_that_overflows_is_told_apart_from_a_wrong_one():
    def careless(logits, targets, real):
        p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
        return -np.log(np.take_along_axis(p, targets[..., None], -1)[..., 0][real]).mean()

    result = practice.judge("masked_cross_entropy", careless)
    assert (result.status, result.stage, result.traps) == ("wrong", "finite", ()) and "overflow" in result.text("en")
