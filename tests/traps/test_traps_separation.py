"""The inputs tell the traps apart, from each other and from the right answer, by a hundred times the tolerance at least."""

import itertools

import numpy as np
import pytest

from transformer_lite import equations, traps
from transformer_lite.practice.comparing import TRAP_ABSOLUTE, TRAP_RELATIVE
from transformer_lite.practice.fixtures import fixtures
from transformer_lite.practice.judging import expected_of
from transformer_lite.practice.registry import exercise, exercises

EXERCISES = list(exercises())


def distance(one, other):
    """How many tolerances apart two results are; infinitely, if their shapes or their NaN differ or only one raises."""
    if one is None or other is None:
        return 0.0 if one is other else np.inf
    apart = 0.0
    for a, b in zip(one, other, strict=True):
        if a.shape != b.shape or (np.isfinite(a) != np.isfinite(b)).any():
            return np.inf
        a, b = a.astype(float), b.astype(float)
        with np.errstate(all="ignore"):
            difference = np.abs(a - b) / (TRAP_ABSOLUTE + TRAP_RELATIVE * np.abs(b))
        apart = max(apart, difference[np.isfinite(difference)].max(initial=0.0))
    return apart


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", EXERCISES)
def test_every_trap_is_far_from_every_other_and_from_the_right_answer(name, seed):
    family = traps.family(name)
    inputs = [fixture for fixture in fixtures(name, seed) if not fixture.remark_only]
    results = [((), {}, [expected_of(exercise(name), fixture.arguments) for fixture in inputs])]
    results += [(keys, ways, [family.outputs(ways, fixture.arguments) for fixture in inputs]) for keys, ways in family.singles]
    for (keys, ways, one), (others, other_ways, other) in itertools.combinations(results, 2):
        if keys == others or {*keys, *others} == {"AT14", "AT20"}:  # 1e-9 added, or nothing: told apart by their bits
            continue
        apart = max(distance(a, b) for a, b in zip(one, other, strict=True))
        assert apart >= 100, (keys, ways, others, other_ways, apart)


@pytest.mark.parametrize("name", EXERCISES)
def test_without_a_knob_turned_the_family_is_the_reference(name):
    for fixture in fixtures(name, 5):
        for one, other in zip(
            traps.family(name).outputs({}, fixture.arguments), expected_of(exercise(name), fixture.arguments), strict=True
        ):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-14)


def test_the_traps_of_the_exercise_without_a_mask_need_none():
    assert not {"AT11", "AT12", "AT13", "AT14", "AT15", "AT20"} & set(traps.family("attention").traps)
    assert set(traps.family("attention").traps) < set(traps.family("scaled_dot_product_attention").traps)
    assert {f"AT{n}" for n in range(1, 21)} <= set(traps.family("scaled_dot_product_attention").traps)
    assert list(traps.family("softmax").traps) == [f"SM{n}" for n in range(1, 10)]
    assert set(traps.family("attention_scores").traps) == {"AT1", "AT2", "AT3", "AT5", "AT17", "AT19"}


def test_masks_hide_and_show_in_every_row_and_column():
    seen = 0
    for seed in range(20):
        for fixture in fixtures("scaled_dot_product_attention", seed):
            if len(fixture.arguments) < 4 or fixture.remark_only or fixture.name in ("small", "large, masked"):
                continue
            mask = fixture.arguments[3]
            for axis in (-1, -2):
                assert mask.any(axis=axis).all() and not mask.all(axis=axis).any()
            seen += 1
    assert seen > 40


def test_the_sizes_of_the_first_input_all_differ():
    for name in ("attention", "scaled_dot_product_attention"):
        sizes = fixtures(name, 0)[0].sizes
        assert len(set(sizes.values())) == len(sizes) == 4
    for seed in range(20):
        assert len(set(fixtures("attention", seed)[-1].sizes.values())) == 4


def test_a_trap_s_functions_are_called_like_the_exercise():
    queries, keys, values = fixtures("attention", 0)[0].arguments
    output, weights = traps.family("attention").traps["AT6"].functions[0](queries, keys, values)
    np.testing.assert_allclose(weights.sum(axis=-1), 1 / np.sqrt(queries.shape[-1]))
    np.testing.assert_allclose(output, weights @ values)
    (mask,) = traps.family("causal_mask").traps["CM6"].functions[0](4)
    assert (mask == ~equations.causal_mask(4)).all()


def test_pairs_turn_different_knobs():
    family = traps.family("scaled_dot_product_attention")
    assert len(family.pairs) > 500
    assert all(len(keys) == 2 and keys[0] != keys[1] for keys, _ in family.pairs)
