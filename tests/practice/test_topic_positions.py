"""Positional encoding and embeddings: every wrong version is named for what it is, every right one passes."""

import itertools
from functools import partial

import numpy as np
import positions_answers as answers
import pytest

from transformer_lite import content, equations, practice, traps
from transformer_lite.practice import topics
from transformer_lite.practice.comparing import TRAP_ABSOLUTE, TRAP_RELATIVE, same_mistake
from transformer_lite.practice.fixtures import fixtures

SEEDS = range(8)
EXERCISES = ("positional_encoding", "embed")
WRONG = [(exercise, keys, function) for exercise, versions in answers.POSITIONS_WRONG.items() for keys, function in versions]
RIGHT = [(exercise, function) for exercise, versions in answers.POSITIONS_RIGHT.items() for function in versions]
PAIRS = [one for one in answers.PAIRS if one[0] in EXERCISES]
UNREGISTERED = [one for one in answers.UNREGISTERED if one[0] in EXERCISES]


def name(value):
    return getattr(value, "__name__", None) or ("+".join(sorted(value)) if isinstance(value, (tuple, set)) else str(value))


@pytest.mark.parametrize(("exercise", "keys", "function"), WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(exercise, keys, function):
    wanted = "variant" if keys == ("PE2",) else "wrong"
    for seed in SEEDS:
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == (wanted, keys, "exact"), result.text("en")
        assert result.evidence["property"]["key"] == keys[0]
        if keys != ("PE9",) and "max_diff_correct" in result.evidence and result.stage == "value":
            assert result.evidence["max_diff_correct"] > 1e-3


def test_every_trap_of_the_two_families_is_among_them():
    met = {key for _, keys, _ in WRONG for key in keys}
    assert met == {f"PE{n}" for n in range(1, 12)} | {f"EM{n}" for n in range(1, 10)}
    assert met == {key for exercise in EXERCISES for key in traps.family(exercise).traps}
    assert met <= set(topics.properties())


@pytest.mark.parametrize(("exercise", "function"), RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(exercise, function):
    for seed in (4, 5):
        result = practice.judge(exercise, function, seed=seed)
        assert result.status == "pass", result.text("en")
        assert bool(result) and result.traps == () and result.stage is None
        assert {note.code for note in result.notes} <= {"container", "precision", "slow"}


def test_there_are_ten_right_versions_of_each():
    assert all(len(versions) >= 10 for versions in answers.POSITIONS_RIGHT.values())


@pytest.mark.parametrize("exercise", EXERCISES)
def test_the_solution_that_is_shown_passes(exercise):
    scope = {"np": np}
    exec(practice.exercise(exercise).solution, scope)
    assert practice.judge(exercise, scope[exercise]).status == "pass"


@pytest.mark.parametrize(("exercise", "keys", "function"), PAIRS, ids=name)
def test_two_mistakes_at_once_are_named_as_two(exercise, keys, function):
    result = practice.judge(exercise, function)
    assert (result.status, set(result.traps), result.certainty) == ("wrong", keys, "exact")


@pytest.mark.parametrize("exercise", EXERCISES)
def test_no_two_mistakes_are_taken_for_a_single_other_one(exercise):
    family = traps.family(exercise)
    two = 0
    for keys, setting in family.pairs:
        result = practice.judge(exercise, partial(family.core, **setting), seed=1)
        assert set(result.traps) <= set(keys), (keys, setting, result.traps)
        two += set(result.traps) == set(keys)
        if len(result.traps) == 1:  # then the other mistake changes nothing: the numbers are those of the one that is named
            arguments = fixtures(exercise, 1)[0].arguments
            alike = (family.outputs(ways, arguments) for ways in family.traps[result.traps[0]].settings)
            given = family.outputs(setting, arguments)[0]
            assert any(same_mistake(given, one[0]) for one in alike)
    assert two >= 30


@pytest.mark.parametrize(("exercise", "function"), UNREGISTERED, ids=name)
def test_a_mistake_nobody_registered_gets_no_name(exercise, function):
    for seed in (1, 2):
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", (), "none")
        assert "Not a mistake I recognise." in result.text("en")


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("exercise", EXERCISES)
def test_traps_lie_a_hundred_tolerances_apart(exercise, seed):
    family = traps.family(exercise)
    inputs = [fixture.arguments for fixture in fixtures(exercise, seed)]
    given = [((), [family.outputs({}, one) for one in inputs])]
    given += [(keys, [family.outputs(setting, one) for one in inputs]) for keys, setting in family.singles]
    for (keys, mine), (others, theirs) in itertools.combinations(given, 2):
        assert keys == others or max(map(_apart, mine, theirs)) >= 100, (keys, others)


def _apart(one, other):
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    a, b = one[0], other[0]
    if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
        return np.inf
    difference = np.abs(a - b) / (TRAP_ABSOLUTE + TRAP_RELATIVE * np.abs(b))
    return float(difference[np.isfinite(difference)].max(initial=0.0))


def test_a_random_table_is_known_by_its_rows_and_not_by_its_numbers():
    for seed in range(25):

        def drawn(n_positions, d_model, seed=seed):
            return np.random.default_rng([seed, 3]).normal(size=(n_positions, d_model))

        result = practice.judge("positional_encoding", drawn, seed=seed)
        assert result.traps == ("PE9",), seed
        shown = result.evidence["property"]
        assert float(shown["low"]) < float(shown["high"]) and shown["right"] == 4


def test_a_random_table_is_named_whether_or_not_two_calls_agree():
    again = practice.judge("positional_encoding", answers.pe9_new_each_time)
    fixed = practice.judge("positional_encoding", answers.pe9_learned)
    assert again.traps == fixed.traps == ("PE9",)
    assert "unsteady" in [note.code for note in again.notes] and "unsteady" not in [note.code for note in fixed.notes]


def test_halves_are_a_variant_and_not_a_mistake():
    result = practice.judge("positional_encoding", answers.pe2)
    assert result.status == "variant" and not result
    assert result.text("ja").startswith("別の流儀") and result.text("en").startswith("ANOTHER CONVENTION")
    assert "[0, 0, 1, 1]" in result.text("en")
    assert "mistake" not in result.text("en") and "誤り" not in result.text("ja")


def test_sinusoids_of_one_s_own_are_no_answer_when_the_encoding_is_given():
    def own_sinusoids(token_ids, table, encoding):
        n, d_model = token_ids.shape[-1], table.shape[1]
        return table[token_ids] * np.sqrt(d_model) + answers.encoding_woven(n, d_model)

    result = practice.judge("embed", own_sinusoids)
    assert (result.status, result.traps) == ("wrong", ()) and result.evidence["test"] == "drawn"


def test_a_batch_that_is_not_handled_is_said_in_so_many_words():
    def rows(token_ids, table, encoding):
        return np.array([table[t] * table.shape[1] ** 0.5 + encoding[i] for i, t in enumerate(token_ids)])

    def one_sequence(token_ids, table, encoding):
        (n,) = token_ids.shape
        return table[token_ids] * table.shape[1] ** 0.5 + encoding[:n]

    assert practice.judge("embed", one_sequence).evidence["problem"] == "raises_batch"
    assert practice.judge("embed", rows).traps == ()


@pytest.mark.parametrize("exercise", EXERCISES)
def test_readable_snippets_are_the_traps_they_illustrate(exercise):
    for key in traps.family(exercise).traps:
        snippet = content.trap(key).snippet
        if snippet:
            scope = {"np": np}
            exec(snippet, scope)
            assert practice.judge(exercise, scope[exercise]).traps == (key,)


def test_verdicts_have_words_in_both_languages():
    for exercise, keys, function in WRONG:
        result = practice.judge(exercise, function, seed=2)
        for lang in ("ja", "en"):
            text = result.text(lang, verbose=True)
            assert f"[{keys[0]}]" in text and ("Check: " if lang == "en" else "確かめ方: ") in text
    for exercise in EXERCISES:
        asked = practice.exercise(exercise)
        for text in (asked.title, asked.contract, *asked.hints):
            assert text.ja and text.en and text.ja != text.en


def test_the_pictures_show_right_and_wrong():
    for exercise, function in (
        ("positional_encoding", answers.pe1),
        ("positional_encoding", answers.encoding_woven),
        ("embed", answers.em5),
        ("embed", answers.em8),
        ("embed", answers.embed_plain),
    ):
        for lang in ("ja", "en"):
            picture = practice.judge(exercise, function, seed=0).show(lang)
            assert picture.png.startswith(b"\x89PNG") and picture.table


def test_an_embedding_mixes_no_tokens():
    x, arguments = topics.probes()["embed"]
    moves = equations.influence_matrix(lambda moved: equations.embed(*arguments(moved)), x)
    assert (moves == np.eye(4, dtype=bool)).all()


def test_inputs_have_different_sizes_and_a_token_twice():
    for seed in range(10):
        for fixture in fixtures("embed", seed):
            ids, table, encoding = fixture.arguments
            assert ids.max() < len(table) and ids.shape[-1] <= len(encoding)
        first = fixtures("embed", seed)[0]
        assert len(set(first.sizes.values())) == len(first.sizes) == 4
        assert len(set(first.arguments[0].tolist())) < first.sizes["n"]
        n, d_model = fixtures("positional_encoding", seed)[-1].arguments
        assert n != d_model and d_model % 2 == 0
