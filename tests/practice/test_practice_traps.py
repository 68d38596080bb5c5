"""Every wrong version is named for what it is, none for another; every right version passes."""

import practice_answers as answers
import pytest

from transformer_lite import content, practice

SEEDS = (1, 2, 3)
WRONG = [(exercise, keys, function) for exercise, versions in answers.WRONG.items() for keys, function in versions]
RIGHT = [(exercise, function) for exercise, versions in answers.RIGHT.items() for function in versions]


def name(value):
    return getattr(value, "__name__", None) or ("+".join(value) if isinstance(value, tuple) else str(value))


@pytest.mark.parametrize(("exercise", "keys", "function"), WRONG, ids=name)
def test_a_wrong_version_is_named_exactly_whatever_input_is_drawn(exercise, keys, function):
    for seed in SEEDS:
        result = practice.judge(exercise, function, seed=seed)
        assert (result.status, result.traps, result.certainty) == ("wrong", keys, "exact"), result.text("en")
        assert result.evidence["property"]["key"] == keys[0]
        assert result.evidence.get("max_diff_correct", 1) > 1e-3 or "max_diff_correct" not in result.evidence


def test_every_trap_of_this_issue_is_among_them():
    wanted = (
        {f"SM{n}" for n in range(1, 10)}
        | {f"AT{n}" for n in range(1, 21)}
        | {f"CM{n}" for n in range(1, 8)}
        | {"CR1", "CR2", "CR3"}
    )
    assert wanted <= {key for _, keys, _ in WRONG for key in keys}


@pytest.mark.parametrize(("exercise", "function"), RIGHT, ids=name)
def test_a_right_version_passes_however_it_is_written(exercise, function):
    result = practice.judge(exercise, function, seed=4)
    assert result.status == "pass", result.text("en")
    assert bool(result) and result.traps == () and result.stage is None


def test_there_are_ten_right_versions_of_each():
    assert all(len(versions) >= 10 for versions in answers.RIGHT.values())


@pytest.mark.parametrize(
    ("exercise", "keys", "function"), answers.PAIRS, ids=lambda value: "+".join(sorted(value)) if isinstance(value, set) else ""
)
def test_two_mistakes_at_once_are_named_as_two(exercise, keys, function):
    result = practice.judge(exercise, function)
    assert set(result.traps) == keys and result.certainty == "exact"
    assert "Two things at once" in result.text("en") and "2 つの誤り" in result.text("ja")


def three_at_once(queries, keys, values, mask=None):
    w = answers.soft(answers.dots(queries, keys), axis=-2)
    w = w if mask is None else w * mask
    return w @ values, w


def weights_a_little_too_large(queries, keys, values):
    output, weights = answers.attention_plain(queries, keys, values)
    return 1.01 * output, 1.01 * weights


def uniform(queries, keys, values):
    _, weights = answers.attention_plain(queries, keys, values)
    weights = 0 * weights + 1 / keys.shape[-2]
    return weights @ values, weights


def squared_weights(queries, keys, values):
    _, weights = answers.attention_plain(queries, keys, values)
    weights = weights**2 / (weights**2).sum(-1, keepdims=True)
    return weights @ values, weights


def softmax_twice(queries, keys, values):
    _, weights = answers.attention_plain(queries, keys, values)
    weights = answers.soft(weights)
    return weights @ values, weights


def rounded_by_a_thousandth(queries, keys, values):
    output, weights = answers.attention_plain(queries, keys, values)
    return output, weights + 1e-3


def root_of_eight(queries, keys, values):
    weights = answers.soft(answers.dots(queries, keys) / 8**0.5)
    return weights @ values, weights


def forgot_softmax(queries, keys, values):
    weights = answers.dots(queries, keys) / queries.shape[-1] ** 0.5
    return weights @ values, weights


UNREGISTERED = [
    ("scaled_dot_product_attention", three_at_once, None),
    ("attention", weights_a_little_too_large, "sums_all"),
    ("attention", uniform, "uniform"),
    ("attention", squared_weights, "scale"),
    ("attention", softmax_twice, "sums_hold"),
    ("attention", rounded_by_a_thousandth, "output_right"),
    ("attention", root_of_eight, "scale"),
    ("attention", forgot_softmax, "raw_scores"),
    ("softmax", lambda x, axis=-1: answers.np.exp(x - x.max(axis=axis, keepdims=True)), "not_divided"),
    ("softmax", lambda x, axis=-1: answers.np.log(answers.soft(x, axis)), "logarithm"),
    ("softmax", lambda x, axis=-1: answers.soft(x), "axis_ignored"),
    ("attention_scores", lambda queries, keys: answers.soft(answers.scores_plain(queries, keys)), "softmax_already"),
    ("attention_scores", lambda queries, keys: 2 * answers.scores_plain(queries, keys), "proportional"),
    ("causal_mask", lambda n, m=None: answers.np.tri(n, m or n, k=2, dtype=bool), "count"),
]


@pytest.mark.parametrize(("exercise", "function", "law"), UNREGISTERED)
def test_a_mistake_nobody_registered_gets_no_name_but_a_place_and_a_law(exercise, function, law):
    result = practice.judge(exercise, function)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none")
    assert law is None or law in [one["law"] for one in result.evidence["laws"]]
    assert result.evidence["yours"] != result.evidence["right"]
    text = result.text("en")
    assert "Not a mistake I recognise." in text and "First difference:" in text and "Recognised" not in text


def test_readable_snippets_are_the_traps_they_illustrate():
    seen = 0
    for key, trap in content.traps().items():
        if not trap.snippet or not key.startswith(("SM", "AT", "CM", "CR")):
            continue
        scope = {"np": answers.np}
        exec(trap.snippet, scope)
        exercise = next(name for name in reversed(list(scope)) if name in practice.exercises())
        assert practice.judge(exercise, scope[exercise]).traps == (key,)
        seen += 1
    assert seen >= 20
