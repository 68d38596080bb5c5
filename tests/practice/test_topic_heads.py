"""Heads, projections and the mask of padding: every wrong version is named, every right one passes."""

import heads_answers as answers
import numpy as np
import pytest

from transformer_lite import equations, practice, traps
from transformer_lite.practice import topics
from transformer_lite.practice.fixtures import fixtures

SEEDS = range(8)
EXERCISES = tuple(answers.WRONG)
WRONG = [
    (exercise, key, function)
    for exercise, families in answers.WRONG.items()
    for key, functions in families.items()
    for function in functions
]
RIGHT = [(exercise, function) for exercise, functions in answers.RIGHT.items() for function in functions]


def name(value):
    return getattr(value, "__name__", str(value))


@pytest.mark.parametrize(("exercise", "key", "function"), WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(exercise, key, function):
    for seed in SEEDS:
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", (key,), "exact"), (seed, result.text("en"))
        assert result.evidence["property"]["key"] == key
    for lang in ("ja", "en"):
        text = result.text(lang, verbose=True)
        assert {"ja": "確かめ方: ", "en": "Check: "}[lang] in text and f"[{key}]" in text


def test_every_trap_of_every_family_is_written_by_hand():
    for exercise in EXERCISES:
        assert set(answers.WRONG[exercise]) == set(traps.family(exercise).traps)
    assert {f"MH{n}" for n in range(1, 14)} <= set(answers.WRONG["multi_head_attention"])
    assert {"CA1", "CA2", "CA3", "CA6", "CA7"} <= set(answers.WRONG["cross_attention"])
    named = {key for families in answers.WRONG.values() for key in families}
    assert {f"PM{n}" for n in range(1, 8)} <= named


@pytest.mark.parametrize(("exercise", "function"), RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(exercise, function):
    for seed in (4, 5):
        result = practice.judge(exercise, function, seed=seed)
        assert result.status == "pass" and result.traps == () and result.stage is None, result.text("en")
    codes = {note.code for note in result.notes}
    assert codes <= {"container", "precision"}, result.text("en")


def test_there_are_ten_right_versions_of_each():
    assert all(len(versions) >= 10 for versions in answers.RIGHT.values())


@pytest.mark.parametrize(
    ("exercise", "keys", "function"), answers.TWO, ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else ""
)
def test_two_mistakes_at_once_are_named_as_two(exercise, keys, function):
    for seed in range(4):
        result = practice.judge(exercise, function, seed=seed)
        assert set(result.traps) == keys and result.certainty == "exact", result.text("en")
    assert "Two things at once" in result.text("en") and "2 つの誤り" in result.text("ja")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_a_pair_is_never_named_as_another_single_mistake(exercise):
    """Settings put together, as answers of their own: named as these two, or as something that gives the very same numbers."""
    family = traps.family(exercise)
    for keys, setting in family.pairs[:: max(1, len(family.pairs) // 12)]:

        def function(*arguments, setting=setting):
            with np.errstate(all="ignore"):
                result = family.core(*arguments, **setting)
            return result if len(result) > 1 else result[0]

        result = practice.judge(exercise, function, seed=3)
        if result.status == "wrong" and result.traps:
            assert set(result.traps) & set(keys), (keys, setting, result.traps)


@pytest.mark.parametrize(("exercise", "function"), answers.NOBODY)
def test_a_mistake_nobody_registered_gets_no_name_but_a_place(exercise, function):
    result = practice.judge(exercise, function, seed=2)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none"), result.text("en")
    assert "First difference:" in result.text("en") and "最初の違い" in result.text("ja")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_passes_and_the_words_are_there(exercise):
    asked = practice.exercise(exercise)
    scope = {"np": np}
    exec(asked.solution, scope)
    result = practice.judge(exercise, scope[exercise], seed=0)
    assert result.status == "pass" and result.notes == (), result.text("en")
    assert len(asked.hints) == asked.n_hints
    for text in (asked.title, asked.contract, *asked.hints):
        assert text("ja") and text("en") and text("ja") != text("en")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_right_and_wrong_can_be_shown(exercise):
    _key, functions = next(iter(answers.WRONG[exercise].items()))
    for function in (answers.RIGHT[exercise][0], functions[0]):
        for lang in ("ja", "en"):
            shown = practice.judge(exercise, function, seed=1).show(lang)
            assert shown.png[:4] == b"\x89PNG" and shown.text


def test_influence_shows_who_is_asked():
    def moves(exercise):
        x, arguments = topics.probes()[exercise]
        reference = practice.exercise(exercise).reference
        return equations.influence_matrix(lambda moved: reference(*arguments(moved)).output, x)

    assert (moves("self_attention") == np.tri(4, dtype=bool)).all()
    assert (moves("multi_head_attention") == np.tri(4, dtype=bool)).all()
    assert moves("cross_attention").all()


def test_the_first_sizes_differ_and_masks_hide_and_show_everywhere():
    for exercise in EXERCISES:
        first = fixtures(exercise, 0)[0]
        assert first.name == "rectangular" and len(set(first.sizes.values())) == len(first.sizes)
        assert [one.name for one in fixtures(exercise, 0)].count("small") == 1
    seen = 0
    for exercise in ("self_attention", "cross_attention", "multi_head_attention"):
        for seed in range(20):
            for fixture in fixtures(exercise, seed):
                if not fixture.name.endswith("masked"):
                    continue
                mask = next(one for one in fixture.arguments if isinstance(one, np.ndarray) and one.dtype == bool)
                for axis in (-1, -2):
                    assert mask.any(axis=axis).all() and not mask.all(axis=axis).any()
                seen += 1
    assert seen > 60


def test_an_answer_for_a_single_sequence_is_told_so():
    result = practice.judge("split_heads", answers.split_single_only, seed=1)
    assert (result.status, result.evidence["problem"]) == ("wrong", "raises_batch")
    result = practice.judge("padding_mask", lambda token_ids, pad_id: (token_ids != pad_id)[:, None, :], seed=1)
    assert (result.status, result.evidence["problem"]) == ("wrong", "raises_vector")


def test_a_padding_mask_in_another_style_is_a_variant():
    for function in (
        lambda ids, pad: (ids != pad)[..., None, :].astype(int),
        lambda ids, pad: np.where(ids == pad, -np.inf, 0.0)[..., None, :],
    ):
        assert practice.judge("padding_mask", function, seed=1).status == "variant"


def test_without_memory_the_answer_is_asked_for_it():
    result = practice.judge(
        "multi_head_attention",
        lambda x, projections, n_heads, mask=None: answers.multi_plain(x, projections, n_heads, mask),
        seed=1,
    )
    assert (result.status, result.evidence["problem"]) == ("wrong", "missing_optional")


def test_an_answer_that_always_raises_is_an_error_and_no_trap():
    def broken(x, projections, n_heads, mask=None, memory=None):
        return projections[0] @ x[:1, :3]

    result = practice.judge("multi_head_attention", broken, seed=1)
    assert (result.status, result.traps, result.certainty) == ("error", (), "none"), result.text("en")


def test_the_picture_shows_the_output_where_the_weights_are_right():
    rows = practice.judge("multi_head_attention", answers.multi_mh6, seed=1).show("en").table
    assert any("output" in cell for row in rows for cell in row)
