"""Answers written without a look at the catalogue: right ones pass, unlisted mistakes get no name, two at once get both."""

import json
import re

import numpy as np
import pytest

from transformer_lite import practice
from transformer_lite.equations import (
    add_and_norm,
    layer_norm,
    multi_head_attention,
    scaled_dot_product_attention,
    softmax,
)


def judged(exercise, function):
    """The verdict, after every way of showing it was tried."""
    result = practice.judge(exercise, function)
    for text in (result.text(lang, verbose=verbose) for lang in ("ja", "en") for verbose in (False, True)):
        assert text.strip() and not re.search(r"\{[a-zA-Z_]\w*\}", text), text
    result.show("ja")
    json.dumps(result.to_dict())
    return result


# Right ----------------------------------------------------------------------------------------------------------------


def via_phase(n_positions, d_model):
    place = np.arange(d_model)
    angle = np.arange(n_positions)[:, None] / 10000 ** (place // 2 * 2 / d_model)
    return np.sin(angle + np.pi / 2 * (place % 2))


def head_by_head(x, projections, n_heads, mask=None, memory=None):
    source = x if memory is None else memory
    w_q, w_k, w_v, w_o = projections
    total, weights = 0, []
    for part in np.split(np.arange(x.shape[-1]), n_heads):
        one = scaled_dot_product_attention(x @ w_q[:, part], source @ w_k[:, part], source @ w_v[:, part], mask)
        total = total + one.output @ w_o[part]
        weights.append(one.weights)
    return total, np.stack(weights, axis=-3)


class Decoder:
    def __call__(self, y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
        p, y = parameters, y.copy()
        y += multi_head_attention(y, p.self_projections, n_heads, self_mask).output
        y = layer_norm(y, p.attention_gain, p.attention_bias)
        y += multi_head_attention(y, p.memory_projections, n_heads, memory_mask, memory).output
        y = layer_norm(y, p.memory_gain, p.memory_bias)
        hidden = y @ p.w1 + p.b1
        y += hidden * (hidden > 0) @ p.w2 + p.b2
        return layer_norm(y, p.feed_forward_gain, p.feed_forward_bias)


def one_by_one(x, sublayer, gain, bias, eps=1e-5):
    def row(z):
        mean = sum(z) / len(z)
        return (z - mean) / (sum((z - mean) ** 2) / len(z) + eps) ** 0.5 * gain + bias

    return np.apply_along_axis(row, -1, x + sublayer(x)).tolist()


RIGHT = [
    ("softmax", lambda x, axis=-1: np.exp(x - np.logaddexp.reduce(x, axis=axis, keepdims=True))),
    ("causal_mask", lambda n, m=None: np.flip(np.triu(np.ones((n, m or n), dtype=bool)))),
    ("positional_encoding", via_phase),
    ("multi_head_attention", head_by_head),
    ("add_and_norm", one_by_one),
    ("decoder_layer", Decoder()),
    ("shift_right", lambda labels, bos_id: np.insert(labels, 0, bos_id, axis=-1)[..., : labels.shape[-1]]),
    ("noam_learning_rate", lambda s, d, w=4000: (d * max(s, w**3 / s**2)) ** -0.5),
    # Numbers in one array unpack like those in a tuple.
    ("attention_cost", lambda n, d_model: np.array([n * n * d_model, n * n * d_model])),
    ("layer_cost", lambda n, d, f: np.prod([[4 * n, d, d], [n, n, d], [n, n, d], [2 * n, d, f]], axis=1)),
]


@pytest.mark.parametrize(("exercise", "function"), RIGHT)
def test_a_right_answer_passes_in_whatever_style(exercise, function):
    result = judged(exercise, function)
    assert result.status == "pass" and not result.traps, result.text("en")


# Wrong ----------------------------------------------------------------------------------------------------------------


def attends(y, memory, projections, mask=None):
    found = scaled_dot_product_attention(y @ projections[0], memory @ projections[1], memory @ projections[2], mask)
    return found.output @ projections[3], found.weights


def asks_the_wrong_side(y, memory, projections, mask=None):
    return attends(memory, y, projections, None if mask is None else np.swapaxes(mask, -1, -2))


@pytest.mark.parametrize(
    ("key", "function"),
    [
        ("CA1", asks_the_wrong_side),
        ("CA1", lambda y, memory, projections, mask=None: attends(memory, y, projections)),
        ("CA2", lambda y, memory, projections, mask=None: attends(y, y, projections)),
    ],
)
def test_a_mask_made_to_fit_a_wrong_wiring_is_no_second_mistake(key, function):
    result = judged("cross_attention", function)
    assert (result.status, result.traps, result.certainty) == ("wrong", (key,), "exact"), result.text("en")


def losses(logits, targets):
    return np.logaddexp.reduce(logits, axis=-1) - np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0]


@pytest.mark.parametrize(
    ("exercise", "function"),
    [
        ("masked_cross_entropy", lambda logits, targets, real: losses(logits, targets) * real),
        ("noam_learning_rate", lambda step, d_model, warmup=4000: [1.0, 2.0, 3.0]),
    ],
)
def test_an_array_in_place_of_one_number_is_called_that(exercise, function):
    result = judged(exercise, function)
    assert (result.status, result.stage, result.evidence["problem"]) == ("wrong", "shape", "one_number")
    assert "One number" in result.text("en") and "一つの数" in result.text("ja")


def test_a_count_of_numbers_that_is_not_the_right_one_is_not_unpacked():
    result = judged("layer_cost", lambda n, d_model, d_ff: np.array([n, d_model, d_ff]))
    assert (result.status, result.stage) == ("wrong", "return")


UNLISTED = [
    ("softmax", lambda x, axis=-1: np.exp(x) / np.sqrt((np.exp(x) ** 2).sum(axis=axis, keepdims=True))),
    ("causal_mask", lambda n, m=None: np.tri(n, m or n, (m or n) - n, dtype=bool) & (np.arange(m or n) != 1)),
    ("feed_forward", lambda x, w1, b1, w2, b2: np.abs(x @ w1 + b1) @ w2 + b2),
    ("add_and_norm", lambda x, sublayer, gain, bias, eps=1e-5: layer_norm(x + 2 * sublayer(x), gain, bias, eps)),
    ("merge_heads", lambda x: np.concatenate([x[..., h, :, :] for h in range(x.shape[-3])][::-1], axis=-1)),
    ("embed", lambda ids, table, encoding: table[ids] * table.shape[1] ** 0.5 - encoding[: ids.shape[-1]]),
    ("masked_cross_entropy", lambda logits, targets, real: np.median(losses(logits[real], targets[real]))),
    ("shift_right", lambda labels, bos_id: labels + 1),
]


@pytest.mark.parametrize(("exercise", "function"), UNLISTED)
def test_a_mistake_of_nobodys_list_gets_no_name_but_a_place(exercise, function):
    result = judged(exercise, function)
    assert (result.status, result.traps, result.certainty) == ("wrong", (), "none"), result.text("en")
    assert result.evidence["index"] is not None


def uncaused(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = add_and_norm(y, lambda z: multi_head_attention(z, p.self_projections, n_heads)[0], p.attention_gain, p.attention_bias)
    return add_and_norm(
        y, lambda z: multi_head_attention(z, p.memory_projections, n_heads, memory_mask, memory)[0], p.memory_gain, p.memory_bias
    )


def unscaled_by_columns(queries, keys, values):
    weights = softmax(queries @ keys.swapaxes(-1, -2), axis=-2)
    return weights @ values, weights


DOUBLE = [
    ("attention", {"AT1", "AT7"}, unscaled_by_columns),
    ("decoder_layer", {"BL1", "BL4"}, uncaused),
    ("masked_cross_entropy", {"CE1", "CE6"}, lambda logits, targets, real: losses(logits, targets).mean() / np.log(2)),
    ("feed_forward", {"FF1", "FF6"}, lambda x, w1, b1, w2, b2: x @ (w1 @ w2)),
    ("noam_learning_rate", {"LR1", "LR8"}, lambda step, d_model, warmup=4000: step**-0.5),
]


@pytest.mark.parametrize(("exercise", "keys", "function"), DOUBLE)
def test_two_mistakes_at_once_get_both_names(exercise, keys, function):
    result = judged(exercise, function)
    assert (result.status, set(result.traps), result.certainty) == ("wrong", keys, "exact"), result.text("en")
