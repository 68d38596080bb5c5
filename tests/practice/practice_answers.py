"""Right and wrong answers, each written as learners write: what the checker is tried on. (name of what is expected, function)"""

from __future__ import annotations

import math

import numpy as np

np.seterr(all="ignore")


def soft(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# softmax, wrong ---------------------------------------------------------------------------------------------------------


def sm1_plain(x, axis=-1):
    return np.exp(x) / np.exp(x).sum(axis=axis, keepdims=True)


def sm1_log(x, axis=-1):
    return np.exp(x - np.log(np.sum(np.exp(x), axis=axis, keepdims=True)))


def sm1_mean(x, axis=-1):
    e = np.exp(x - np.mean(x, axis, keepdims=True))
    return e / np.sum(e, axis, keepdims=True)


def sm1_hidden_nan(x, axis=-1):
    e = np.exp(x)
    return np.nan_to_num(e / e.sum(axis=axis, keepdims=True))


def sm2_zero(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / e.sum(axis=0)


def sm2_zero_plain(x, axis=-1):
    return np.exp(x) / np.sum(np.exp(x), axis=0)


def sm2_minus_two(x, axis=-1):
    e = np.exp(x - x.max(axis=-2, keepdims=True))
    return e / e.sum(axis=-2, keepdims=True)


def sm2_default(x, axis=0):
    return soft(x, axis)


def sm2_transposed(x, axis=-1):
    return soft(x.T).T


def sm3_all(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def sm3_plain(x, axis=-1):
    return np.exp(x) / np.exp(x).sum()


def sm3_no_axis_parameter(x):
    e = np.exp(x)
    return e / e.sum()


def sm3_flat(x, axis=-1):
    flat = np.exp(x.reshape(-1) - x.max())
    return (flat / flat.sum()).reshape(x.shape)


def sm4_plain(x, axis=-1):
    return x / x.sum(axis=axis, keepdims=True)


def sm4_sizes(x, axis=-1):
    return np.abs(x) / np.abs(x).sum(axis=axis, keepdims=True)


def sm5_plain(x, axis=-1):
    return 1 / (1 + np.exp(-x))


def sm5_stable(x, axis=-1):
    return np.where(x >= 0, 1 / (1 + np.exp(-np.abs(x))), np.exp(-np.abs(x)) / (1 + np.exp(-np.abs(x))))


def sm5_tanh(x, axis=-1):
    return 0.5 * (1 + np.tanh(x / 2))


def sm6_eye(x, axis=-1):
    return (x == np.max(x, axis=axis, keepdims=True)).astype(float)


def sm6_argmax(x, axis=-1):
    out = np.zeros_like(x)
    np.put_along_axis(out, np.expand_dims(np.argmax(x, axis=axis), axis), 1.0, axis=axis)
    return out


def sm7_plain(x, axis=-1):
    return np.exp(-x) / np.exp(-x).sum(axis=axis, keepdims=True)


def sm7_stable(x, axis=-1):
    return soft(-x, axis)


def sm7_turned(x, axis=-1):
    e = np.exp(x.max(axis=axis, keepdims=True) - x)
    return e / e.sum(axis=axis, keepdims=True)


def sm8_two(x, axis=-1):
    e = 2.0 ** (x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sm8_exp2(x, axis=-1):
    return np.exp2(x) / np.exp2(x).sum(axis=axis, keepdims=True)


def sm8_ten(x, axis=-1):
    e = np.power(10.0, x - x.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def sm9_plain(x, axis=-1):
    e = x - x.max(axis=axis, keepdims=True)
    return e / e.sum(axis=axis, keepdims=True)


def sm9_all(x, axis=-1):
    e = x - np.max(x)
    return e / np.sum(e, axis=axis, keepdims=True)


SOFTMAX_WRONG = [
    (("SM1",), sm1_plain),
    (("SM1",), sm1_log),
    (("SM1",), sm1_mean),
    (("SM1",), sm1_hidden_nan),
    (("SM2",), sm2_zero),
    (("SM2",), sm2_zero_plain),
    (("SM2",), sm2_minus_two),
    (("SM2",), sm2_default),
    (("SM2",), sm2_transposed),
    (("SM3",), sm3_all),
    (("SM3",), sm3_plain),
    (("SM3",), sm3_no_axis_parameter),
    (("SM3",), sm3_flat),
    (("SM4",), sm4_plain),
    (("SM4",), sm4_sizes),
    (("SM5",), sm5_plain),
    (("SM5",), sm5_stable),
    (("SM5",), sm5_tanh),
    (("SM6",), sm6_eye),
    (("SM6",), sm6_argmax),
    (("SM7",), sm7_plain),
    (("SM7",), sm7_stable),
    (("SM7",), sm7_turned),
    (("SM8",), sm8_two),
    (("SM8",), sm8_exp2),
    (("SM8",), sm8_ten),
    (("SM9",), sm9_plain),
    (("SM9",), sm9_all),
]


# softmax, right ---------------------------------------------------------------------------------------------------------


def softmax_plain(x, axis=-1):
    return soft(x, axis)


def softmax_global_maximum(x, axis=-1):
    e = np.exp(x - np.max(x))
    return e / np.sum(e, axis=axis, keepdims=True)


def softmax_log_sum_exp(x, axis=-1):
    m = np.max(x, axis=axis, keepdims=True)
    return np.exp(x - (m + np.log(np.sum(np.exp(x - m), axis=axis, keepdims=True))))


def softmax_loops(x, axis=-1):
    x = np.asarray(x)
    moved = np.moveaxis(x, axis, -1)
    out = np.empty(moved.shape)
    for index in np.ndindex(moved.shape[:-1]):
        row = [math.exp(v - max(moved[index])) for v in moved[index]]
        for j, value in enumerate(row):
            out[(*index, j)] = value / sum(row)
    return np.moveaxis(out, -1, axis)


def softmax_expand_dims(x, axis=-1):
    x = x - np.expand_dims(np.max(x, axis), axis)
    e = np.exp(x)
    return e / np.expand_dims(np.sum(e, axis), axis)


def softmax_in_place(x, axis=-1):
    x = x.copy()
    x -= x.max(axis=axis, keepdims=True)
    np.exp(x, out=x)
    x /= x.sum(axis=axis, keepdims=True)
    return x


def softmax_single_precision(x, axis=-1):
    return soft(x.astype(np.float32), axis)


def softmax_other_names(z, dim=-1):
    return soft(z, dim)


def softmax_along_axis(x, axis=-1):
    return np.apply_along_axis(lambda row: np.exp(row - row.max()) / np.exp(row - row.max()).sum(), axis, x)


def softmax_list(x, axis=-1):
    return soft(np.array(x), axis).tolist()


def softmax_keyword_only(*, x, axis=-1):
    return soft(x, axis)


def softmax_differences(x, axis=-1):
    """1 / Σ exp(x_j − x_i): never overflows to NaN."""
    moved = np.moveaxis(x, axis, -1)
    with np.errstate(over="ignore"):
        weights = 1 / np.exp(moved[..., np.newaxis, :] - moved[..., :, np.newaxis]).sum(axis=-1)
    return np.moveaxis(weights, -1, axis)


def softmax_torch(x, axis=-1):
    import torch

    return torch.softmax(torch.as_tensor(x), dim=axis)


SOFTMAX_RIGHT = [
    softmax_plain,
    softmax_global_maximum,
    softmax_log_sum_exp,
    softmax_loops,
    softmax_expand_dims,
    softmax_in_place,
    softmax_single_precision,
    softmax_other_names,
    softmax_along_axis,
    softmax_list,
    softmax_keyword_only,
    softmax_differences,
]


# attention scores -------------------------------------------------------------------------------------------------------


def as1(queries, keys):
    return queries @ np.swapaxes(keys, -1, -2)


def as1_no_batch(queries, keys):
    return queries @ keys.T


def as1_einsum(q, k):
    return np.einsum("...qd,...kd->...qk", q, k)


def as2(queries, keys):
    return np.einsum("...qd,...kd->...qk", queries, keys) / queries.shape[-1]


def as3(queries, keys):
    return np.sqrt(queries.shape[-1]) * (queries @ keys.swapaxes(-1, -2))


def as5_keys(queries, keys):
    return queries @ keys.swapaxes(-1, -2) / math.sqrt(keys.shape[-2])


def as5_len(queries, keys):
    return np.dot(queries, keys.T) / np.sqrt(len(keys))


def as5_queries(queries, keys):
    return queries @ keys.swapaxes(-1, -2) / queries.shape[-2] ** 0.5


def as17(queries, keys):
    norms = np.linalg.norm(queries, axis=-1)[..., :, None] * np.linalg.norm(keys, axis=-1)[..., None, :]
    return queries @ keys.swapaxes(-1, -2) / norms


def as17_scaled(queries, keys):
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    return q @ k.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])


def as19(queries, keys):
    return -np.sum((queries[..., :, None, :] - keys[..., None, :, :]) ** 2, axis=-1)


def as19_root(queries, keys):
    return -np.linalg.norm(queries[..., :, None, :] - keys[..., None, :, :], axis=-1)


def as19_tempered(queries, keys):
    return -0.3 * np.sum((queries[..., :, None, :] - keys[..., None, :, :]) ** 2, axis=-1)


SCORES_WRONG = [
    (("AT1",), as1),
    (("AT1",), as1_no_batch),
    (("AT1",), as1_einsum),
    (("AT2",), as2),
    (("AT3",), as3),
    (("AT5",), as5_keys),
    (("AT5",), as5_len),
    (("AT5",), as5_queries),
    (("AT17",), as17),
    (("AT17",), as17_scaled),
    (("AT19",), as19),
    (("AT19",), as19_root),
    (("AT19",), as19_tempered),
]


def scores_plain(queries, keys):
    return queries @ keys.swapaxes(-1, -2) / np.sqrt(queries.shape[-1])


def scores_einsum(queries, keys):
    return np.einsum("...ik,...jk->...ij", queries, keys) * keys.shape[-1] ** -0.5


def scores_half_each(queries, keys):
    root = queries.shape[-1] ** 0.25
    return (queries / root) @ np.moveaxis(keys / root, -1, -2)


def scores_broadcast(q, k):
    return (q[..., :, None, :] * k[..., None, :, :]).sum(-1) / math.sqrt(q.shape[-1])


def scores_turned(queries, keys):
    return (keys @ queries.swapaxes(-1, -2)).swapaxes(-1, -2) / np.sqrt(keys.shape[-1])


def scores_matmul(queries, keys):
    return np.divide(np.matmul(queries, np.swapaxes(keys, -2, -1)), np.sqrt(queries.shape[-1]))


def scores_single_precision(queries, keys):
    return scores_plain(queries.astype(np.float32), keys.astype(np.float32))


def scores_in_place(queries, keys):
    scores = queries @ keys.swapaxes(-1, -2)
    scores /= np.sqrt(queries.shape[-1])
    return scores


def scores_loops(queries, keys):
    if queries.ndim > 2:
        return np.stack([scores_loops(q, k) for q, k in zip(queries, keys, strict=True)])
    out = np.zeros((len(queries), len(keys)))
    for i in range(len(queries)):
        for j in range(len(keys)):
            for c in range(queries.shape[1]):
                out[i, j] += queries[i, c] * keys[j, c]
    return out / math.sqrt(queries.shape[1])


def scores_list(queries, keys):
    return scores_plain(queries, keys).tolist()


def scores_by_name(keys, queries):
    return scores_plain(queries, keys)


SCORES_RIGHT = [
    scores_plain,
    scores_einsum,
    scores_half_each,
    scores_broadcast,
    scores_turned,
    scores_matmul,
    scores_single_precision,
    scores_in_place,
    scores_loops,
    scores_list,
    scores_by_name,
]


# attention, wrong -------------------------------------------------------------------------------------------------------


def dots(q, k):
    return q @ k.swapaxes(-1, -2)


def at1(queries, keys, values):
    w = soft(dots(queries, keys))
    return w @ values, w


def at1_naive_no_batch(queries, keys, values):
    scores = queries @ keys.T
    w = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    return w @ values, w


def at1_einsum(q, k, v):
    w = np.exp(np.einsum("...id,...jd->...ij", q, k))
    w /= w.sum(-1, keepdims=True)
    return np.einsum("...ij,...jd->...id", w, v), w


def at1_single_precision(queries, keys, values):
    return at1(queries.astype(np.float32), keys.astype(np.float32), values.astype(np.float32))


def at2(queries, keys, values):
    w = soft(dots(queries, keys) / queries.shape[-1])
    return w @ values, w


def at2_naive(queries, keys, values):
    d_k = keys.shape[-1]
    e = np.exp(dots(queries, keys) / d_k)
    w = e / e.sum(axis=-1, keepdims=True)
    return np.matmul(w, values), w


def at3(queries, keys, values):
    w = soft(dots(queries, keys) * math.sqrt(queries.shape[-1]))
    return w @ values, w


def at4(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(values.shape[-1]))
    return w @ values, w


def at5_keys(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(keys.shape[-2]))
    return w @ values, w


def at5_len(queries, keys, values):
    w = soft(queries @ keys.T / np.sqrt(len(keys)))
    return w @ values, w


def at5_queries(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-2]))
    return w @ values, w


def at6_both(queries, keys, values):
    w = soft(dots(queries, keys)) / np.sqrt(queries.shape[-1])
    return w @ values, w


def at6_output(queries, keys, values):
    w = soft(dots(queries, keys))
    return w @ values / np.sqrt(queries.shape[-1]), w


def at6_twice(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1])) / np.sqrt(queries.shape[-1])
    return w @ values, w


def at7_minus_two(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]), axis=-2)
    return w @ values, w


def at7_zero(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]), axis=0)
    return w @ values, w


def at7_turned(queries, keys, values):
    w = soft(dots(keys, queries) / np.sqrt(queries.shape[-1])).swapaxes(-1, -2)
    return w @ values, w


def at7_one_in_a_batch(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]), axis=1)
    return w @ values, w


def at8(queries, keys, values):
    e = np.exp(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    w = e / e.sum()
    return w @ values, w


def at8_matrix(queries, keys, values):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    e = np.exp(s - s.max())
    w = e / e.sum(axis=(-1, -2), keepdims=True)
    return w @ values, w


def at9_columns(queries, keys, values):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    return s @ soft(values, axis=-2), s


def at9_rows(queries, keys, values):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    return s @ soft(values), soft(s)


def at9_both(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    return w @ soft(values), w


def at10(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    return w @ keys, w


def at10_roles(queries, keys, values):
    w = soft(dots(queries, values) / np.sqrt(queries.shape[-1]))
    return w @ keys, w


def at16(queries, keys, values):
    w = 1 / (1 + np.exp(-dots(queries, keys) / np.sqrt(queries.shape[-1])))
    return w @ values, w


def at16_normalised(queries, keys, values):
    w = 1 / (1 + np.exp(-dots(queries, keys) / np.sqrt(queries.shape[-1])))
    w = w / w.sum(axis=-1, keepdims=True)
    return w @ values, w


def at17(queries, keys, values):
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    w = soft(q @ k.swapaxes(-1, -2))
    return w @ values, w


def at17_scaled(queries, keys, values):
    q = queries / (np.linalg.norm(queries, axis=-1, keepdims=True) + 1e-8)
    k = keys / (np.linalg.norm(keys, axis=-1, keepdims=True) + 1e-8)
    w = soft(q @ k.swapaxes(-1, -2) / np.sqrt(queries.shape[-1]))
    return w @ values, w


def at17_tempered(queries, keys, values):
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    w = soft(q @ k.swapaxes(-1, -2) / 0.1)
    return w @ values, w


def at18_one_hot(queries, keys, values):
    s = dots(queries, keys)
    w = np.eye(keys.shape[-2])[s.argmax(axis=-1)]
    return w @ values, w


def at18_equal(queries, keys, values):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    w = (s == s.max(axis=-1, keepdims=True)).astype(float)
    return w @ values, w


def at19_squared(queries, keys, values):
    d = ((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(-1)
    w = soft(-d)
    return w @ values, w


def at19_root_scaled(queries, keys, values):
    d = np.sqrt(((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(-1))
    w = soft(-d / np.sqrt(queries.shape[-1]))
    return w @ values, w


def at19_expanded(queries, keys, values):
    d = (queries**2).sum(-1)[..., :, None] + (keys**2).sum(-1)[..., None, :] - 2 * dots(queries, keys)
    w = np.exp(-d / np.sqrt(queries.shape[-1]))
    w /= w.sum(-1, keepdims=True)
    return w @ values, w


def at19_tempered(queries, keys, values):
    d = ((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(-1)
    w = soft(-d / 3.0)
    return w @ values, w


def at_sm1(queries, keys, values):
    e = np.exp(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ values, w


ATTENTION_WRONG = [
    (("AT1",), at1),
    (("AT1",), at1_naive_no_batch),
    (("AT1",), at1_einsum),
    (("AT1",), at1_single_precision),
    (("AT2",), at2),
    (("AT2",), at2_naive),
    (("AT3",), at3),
    (("AT4",), at4),
    (("AT5",), at5_keys),
    (("AT5",), at5_len),
    (("AT5",), at5_queries),
    (("AT6",), at6_both),
    (("AT6",), at6_output),
    (("AT6",), at6_twice),
    (("AT7",), at7_minus_two),
    (("AT7",), at7_zero),
    (("AT7",), at7_turned),
    (("AT7",), at7_one_in_a_batch),
    (("AT8",), at8),
    (("AT8",), at8_matrix),
    (("AT9",), at9_columns),
    (("AT9",), at9_rows),
    (("AT9",), at9_both),
    (("AT10",), at10),
    (("AT10",), at10_roles),
    (("AT16",), at16),
    (("AT16",), at16_normalised),
    (("AT17",), at17),
    (("AT17",), at17_scaled),
    (("AT17",), at17_tempered),
    (("AT18",), at18_one_hot),
    (("AT18",), at18_equal),
    (("AT19",), at19_squared),
    (("AT19",), at19_root_scaled),
    (("AT19",), at19_expanded),
    (("AT19",), at19_tempered),
    (("SM1",), at_sm1),
]


def masked(make_weights):
    """Most of the function is right; ``make_weights(scores, mask)`` is not."""

    def scaled_dot_product_attention(queries, keys, values, mask=None):
        scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
        w = make_weights(scores, mask) if mask is not None else soft(scores)
        return w @ values, w

    return scaled_dot_product_attention


def at11_values(queries, keys, values, mask=None):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    return (w if mask is None else w * mask) @ values, w


def at13_before_the_scale(queries, keys, values, mask=None):
    s = dots(queries, keys)
    if mask is not None:
        s = s - 10.0 * (1 - mask)
    w = soft(s / np.sqrt(queries.shape[-1]))
    return w @ values, w


def at11_in_place(queries, keys, values, mask=None):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    if mask is not None:
        w[~np.broadcast_to(mask, w.shape)] = 0
    return w @ values, w


def at12_in_place(queries, keys, values, mask=None):
    scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        scores[np.broadcast_to(mask == 0, scores.shape)] = 0.0
    w = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    return w @ values, w


def at15_additive(queries, keys, values, mask=None):
    scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        scores = scores + mask * -1e9
    w = soft(scores)
    return w @ values, w


def masked_at1(queries, keys, values, mask=None):
    scores = dots(queries, keys)
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    w = np.exp(scores - scores.max(-1, keepdims=True))
    w /= w.sum(-1, keepdims=True)
    return w @ values, w


def masked_at6(queries, keys, values, mask=None):
    scores = dots(queries, keys)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    w = soft(scores) / np.sqrt(queries.shape[-1])
    return w @ values, w


def masked_at7(queries, keys, values, mask=None):
    scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    w = soft(scores, axis=-2)
    return w @ values, w


def masked_at17(queries, keys, values, mask=None):
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    scores = q @ k.swapaxes(-1, -2)
    if mask is not None:
        scores = np.where(mask, scores, -np.inf)
    w = soft(scores)
    return w @ values, w


def at20_no_parameter_used(queries, keys, values, mask=None):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    return w @ values, w


def at20_forgotten_assignment(queries, keys, values, mask=None):
    scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        np.where(mask, scores, -np.inf)
    w = soft(scores)
    return w @ values, w


def masked_at9(fill):
    def scaled_dot_product_attention(queries, keys, values, mask=None):
        scores = dots(queries, keys) / np.sqrt(queries.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, fill)
        return scores @ soft(values), scores

    return scaled_dot_product_attention


def masked_at10(queries, keys, values, mask=None):
    weights = masked_infinity(queries, keys, values, mask)[1]
    return weights @ keys, weights


def masked_at16(queries, keys, values, mask=None):
    w = 1 / (1 + np.exp(-dots(queries, keys) / np.sqrt(queries.shape[-1])))
    w = w if mask is None else w * mask
    return w @ values, w


def masked_at18(queries, keys, values, mask=None):
    scores = dots(queries, keys)
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    w = np.zeros_like(scores)
    np.put_along_axis(w, scores.argmax(-1)[..., None], 1.0, -1)
    return w @ values, w


def masked_at19(queries, keys, values, mask=None):
    s = -((queries[..., :, None, :] - keys[..., None, :, :]) ** 2).sum(-1) / (2 * np.sqrt(queries.shape[-1]))
    w = soft(s if mask is None else np.where(mask, s, -1e9))
    return w @ values, w


MASKED_WRONG = [
    (("AT11",), masked(lambda s, m: soft(s) * m)),
    (("AT11",), at11_values),
    (("AT11",), at11_in_place),
    (("AT11",), masked(lambda s, m: np.where(m, soft(s), 0))),
    (("AT12",), masked(lambda s, m: soft(np.where(m, s, 0)))),
    (("AT12",), masked(lambda s, m: soft(s * m))),
    (("AT12",), at12_in_place),
    (("AT13",), masked(lambda s, m: soft(s + np.where(m, 0, -1)))),
    (("AT13",), masked(lambda s, m: soft(np.where(m, s, -1)))),
    (("AT13",), masked(lambda s, m: soft(s + m))),
    (("AT13",), masked(lambda s, m: soft(s - 5 * (1 - m)))),
    (("AT13",), masked(lambda s, m: soft(np.where(m, s, -7.5)))),
    (("AT13",), masked(lambda s, m: soft(np.where(m, s, -50)))),
    (("AT13",), masked(lambda s, m: soft(s + (1 - m) * -100.0))),
    (("AT13",), masked(lambda s, m: soft(np.where(m, s, 1e9)))),
    (("AT13",), masked(lambda s, m: soft(np.where(m, s, 1.0)))),
    (("AT13",), at13_before_the_scale),
    (("AT14",), masked(lambda s, m: soft(s + (1 - m) * 1e-9))),
    (("AT14",), masked(lambda s, m: soft(s + ~m * -1e-9))),
    (("AT14",), masked(lambda s, m: soft(np.where(m, s, s + 1e-9)))),
    (("AT14",), masked(lambda s, m: soft(np.where(m, s, 1e-9)))),
    (("AT15",), masked(lambda s, m: soft(np.where(m, -np.inf, s)))),
    (("AT15",), at15_additive),
    (("AT15",), masked(lambda s, m: soft(np.where(m == 0, s, -1e9)))),
    (("AT20",), at20_no_parameter_used),
    (("AT20",), at20_forgotten_assignment),
    (("AT20",), masked(lambda s, m: soft(s + 0 * m))),
    (("AT1",), masked_at1),
    (("AT6",), masked_at6),
    (("AT7",), masked_at7),
    (("AT17",), masked_at17),
    (("AT9",), masked_at9(-1e9)),
    (("AT9",), masked_at9(0.0)),
    (("AT9",), masked_at9(-np.inf)),
    (("AT10",), masked_at10),
    (("AT16",), masked_at16),
    (("AT18",), masked_at18),
    (("AT19",), masked_at19),
]


# Two at once ------------------------------------------------------------------------------------------------------------


def no_scale_and_columns(queries, keys, values, mask=None):
    w = soft(dots(queries, keys), axis=-2)
    return w @ values, w


def no_scale_and_mask_after(queries, keys, values, mask=None):
    w = soft(dots(queries, keys))
    if mask is not None:
        w = w * mask
    return w @ values, w


def d_k_and_inverted(queries, keys, values, mask=None):
    s = dots(queries, keys) / queries.shape[-1]
    if mask is not None:
        s = np.where(mask, -1e9, s)
    w = soft(s)
    return w @ values, w


def no_scale_and_zero(queries, keys, values, mask=None):
    s = dots(queries, keys)
    if mask is not None:
        s = s * mask
    w = soft(s)
    return w @ values, w


def no_scale_and_minus_three(queries, keys, values, mask=None):
    s = dots(queries, keys)
    if mask is not None:
        s = np.where(mask, s, s - 3.3)
    w = soft(s)
    return w @ values, w


def cosine_and_ignored(queries, keys, values, mask=None):
    q = queries / np.linalg.norm(queries, axis=-1, keepdims=True)
    k = keys / np.linalg.norm(keys, axis=-1, keepdims=True)
    w = soft(q @ k.swapaxes(-1, -2))
    return w @ values, w


def no_scale_and_keys(queries, keys, values):
    w = soft(dots(queries, keys))
    return w @ keys, w


def d_k_and_sigmoid(queries, keys, values):
    w = 1 / (1 + np.exp(-dots(queries, keys) / queries.shape[-1]))
    return w @ values, w


PAIRS = [
    ("attention", {"AT1", "AT7"}, lambda queries, keys, values: no_scale_and_columns(queries, keys, values)),
    ("attention", {"AT1", "AT10"}, no_scale_and_keys),
    ("attention", {"AT2", "AT16"}, d_k_and_sigmoid),
    ("scaled_dot_product_attention", {"AT1", "AT11"}, no_scale_and_mask_after),
    ("scaled_dot_product_attention", {"AT2", "AT15"}, d_k_and_inverted),
    ("scaled_dot_product_attention", {"AT1", "AT12"}, no_scale_and_zero),
    ("scaled_dot_product_attention", {"AT1", "AT13"}, no_scale_and_minus_three),
    ("scaled_dot_product_attention", {"AT17", "AT20"}, cosine_and_ignored),
    ("softmax", {"SM2", "SM4"}, lambda x, axis=-1: x / x.sum(axis=0)),
    ("softmax", {"SM3", "SM7"}, lambda x, axis=-1: np.exp(-x) / np.exp(-x).sum()),
]


# attention, right -------------------------------------------------------------------------------------------------------


def attention_plain(queries, keys, values):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    return w @ values, w


def attention_einsum(q, k, v):
    s = np.einsum("...qd,...kd->...qk", q, k) / math.sqrt(q.shape[-1])
    s = np.exp(s - s.max(axis=-1, keepdims=True))
    w = s / s.sum(axis=-1, keepdims=True)
    return np.einsum("...qk,...kd->...qd", w, v), w


def attention_loops(queries, keys, values):
    if queries.ndim > 2:
        parts = [attention_loops(q, k, v) for q, k, v in zip(queries, keys, values, strict=True)]
        return np.stack([o for o, _ in parts]), np.stack([w for _, w in parts])
    n_q, n_k, d_k = len(queries), len(keys), queries.shape[-1]
    weights = np.zeros((n_q, n_k))
    output = np.zeros((n_q, values.shape[-1]))
    for i in range(n_q):
        row = [sum(queries[i, c] * keys[j, c] for c in range(d_k)) / math.sqrt(d_k) for j in range(n_k)]
        top = max(row)
        total = sum(math.exp(v - top) for v in row)
        for j in range(n_k):
            weights[i, j] = math.exp(row[j] - top) / total
            output[i] += weights[i, j] * values[j]
    return output, weights


def attention_log_sum_exp(queries, keys, values):
    s = dots(queries, keys) * queries.shape[-1] ** -0.5
    m = s.max(-1, keepdims=True)
    w = np.exp(s - m - np.log(np.exp(s - m).sum(-1, keepdims=True)))
    return w @ values, w


def attention_scaled_queries(queries, keys, values):
    queries = queries / np.sqrt(queries.shape[-1])
    w = soft(dots(queries, keys))
    return w @ values, w


def attention_in_place_on_a_copy(queries, keys, values):
    queries = queries.copy()
    queries /= np.sqrt(queries.shape[-1])
    w = soft(dots(queries, keys))
    return w @ values, w


def attention_single_precision(queries, keys, values):
    q, k, v = (one.astype(np.float32) for one in (queries, keys, values))
    return attention_plain(q, k, v)


def attention_lists(queries, keys, values):
    output, weights = attention_plain(queries, keys, values)
    return [output.tolist(), weights.tolist()]


def attention_other_order(values, keys, queries):
    return attention_plain(queries, keys, values)


def attention_divided_late(queries, keys, values):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    e = np.exp(s - s.max(axis=-1, keepdims=True))
    return (e @ values) / e.sum(-1, keepdims=True), e / e.sum(-1, keepdims=True)


def attention_default(queries, keys, values, scale=None):
    scale = 1 / np.sqrt(queries.shape[-1]) if scale is None else scale
    w = soft(dots(queries, keys) * scale)
    return w @ values, w


def attention_dictionary(queries, keys, values):
    output, weights = attention_plain(queries, keys, values)
    return {"output": output, "weights": weights}


def attention_torch(queries, keys, values):
    import torch

    q, k, v = (torch.as_tensor(one) for one in (queries, keys, values))
    w = torch.softmax(q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5, dim=-1)
    return w @ v, w


def attention_torch_library(queries, keys, values):
    import torch
    import torch.nn.functional as F

    q, k, v = (torch.as_tensor(one) for one in (queries, keys, values))
    weights = F.scaled_dot_product_attention(q, k, torch.eye(k.shape[-2], dtype=q.dtype).expand(*k.shape[:-1], k.shape[-2]))
    return F.scaled_dot_product_attention(q, k, v), weights.requires_grad_()


ATTENTION_RIGHT = [
    attention_plain,
    attention_einsum,
    attention_loops,
    attention_log_sum_exp,
    attention_scaled_queries,
    attention_in_place_on_a_copy,
    attention_single_precision,
    attention_lists,
    attention_other_order,
    attention_divided_late,
    attention_default,
    attention_dictionary,
]


def masked_infinity(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -np.inf)
    w = soft(s)
    return w @ values, w


def masked_large_number(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        s = s + (1 - mask.astype(float)) * -1e9
    w = soft(s)
    return w @ values, w


def masked_before_the_scale(queries, keys, values, mask=None):
    s = dots(queries, keys)
    if mask is not None:
        s = np.where(mask, s, -1e30)
    w = soft(s / np.sqrt(queries.shape[-1]))
    return w @ values, w


def masked_smallest_number(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        s = np.where(mask, s, np.finfo(s.dtype).min)
    w = soft(s)
    return w @ values, w


def masked_ten_thousand(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        s = np.where(mask, s, -1e4)
    w = soft(s)
    return w @ values, w


def masked_renormalised(queries, keys, values, mask=None):
    w = soft(dots(queries, keys) / np.sqrt(queries.shape[-1]))
    if mask is not None:
        w = w * mask
        w = w / w.sum(axis=-1, keepdims=True)
    return w @ values, w


def masked_renormalised_exponentials(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    e = np.exp(s - s.max(-1, keepdims=True))
    if mask is not None:
        e = e * mask
    w = e / (e.sum(-1, keepdims=True) + 1e-9)
    return w @ values, w


def masked_renormalised_single_precision(queries, keys, values, mask=None):
    w = soft((dots(queries, keys) / np.sqrt(queries.shape[-1])).astype(np.float32))
    if mask is not None:
        w = w * mask
        w = w / w.sum(axis=-1, keepdims=True)
    return w @ values.astype(np.float32), w


def masked_einsum(q, k, v, m=None):
    s = np.einsum("...qd,...kd->...qk", q, k) * q.shape[-1] ** -0.5
    s = s if m is None else np.where(m == 0, float("-inf"), s)
    w = soft(s)
    return np.einsum("...qk,...kd->...qd", w, v), w


def masked_in_place(queries, keys, values, mask=None):
    s = dots(queries, keys) / np.sqrt(queries.shape[-1])
    if mask is not None:
        s[~np.broadcast_to(mask, s.shape)] = -np.inf
    w = soft(s)
    return w @ values, w


def masked_only_visible_keys(queries, keys, values, mask=None):
    if queries.ndim > 2:
        masks = [None] * len(queries) if mask is None else np.broadcast_to(mask, (len(queries), *mask.shape[-2:]))
        parts = [masked_only_visible_keys(*one) for one in zip(queries, keys, values, masks, strict=True)]
        return np.stack([o for o, _ in parts]), np.stack([w for _, w in parts])
    n_q, n_k = len(queries), len(keys)
    mask = np.ones((n_q, n_k), dtype=bool) if mask is None else np.broadcast_to(mask, (n_q, n_k))
    weights = np.zeros((n_q, n_k))
    for i in range(n_q):
        weights[i, mask[i]] = soft(keys[mask[i]] @ queries[i] / np.sqrt(queries.shape[-1]))
    return weights @ values, weights


def masked_required_parameter(queries, keys, values, mask):
    return masked_infinity(queries, keys, values, mask)


def masked_torch(queries, keys, values, mask=None):
    import torch

    q, k, v = (torch.as_tensor(one) for one in (queries, keys, values))
    s = q @ k.transpose(-2, -1) / q.size(-1) ** 0.5
    if mask is not None:
        s = s.masked_fill(~torch.as_tensor(mask), float("-inf"))
    w = s.softmax(dim=-1)
    return w @ v, w


MASKED_RIGHT = [
    masked_infinity,
    masked_large_number,
    masked_before_the_scale,
    masked_smallest_number,
    masked_ten_thousand,
    masked_renormalised,
    masked_renormalised_exponentials,
    masked_renormalised_single_precision,
    masked_einsum,
    masked_in_place,
    masked_only_visible_keys,
    masked_required_parameter,
]


# causal_mask ------------------------------------------------------------------------------------------------------------


def cm1(n_queries, n_keys=None):
    return np.tril(np.ones((n_queries, n_keys or n_queries), dtype=bool), k=-1)


def cm1_compare(n, m=None):
    return np.arange(n)[:, None] > np.arange(n if m is None else m)[None, :]


def cm2(n_queries, n_keys=None):
    return np.triu(np.ones((n_queries, n_keys or n_queries), dtype=bool))


def cm2_turned(n_queries, n_keys=None):
    return np.tri(n_queries, n_keys or n_queries, dtype=bool).T


def cm3(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return np.tri(n_queries, n_keys, k=n_keys - n_queries + 1, dtype=bool)


def cm4(n_queries, n_keys=None):
    return np.ones((n_queries, n_keys or n_queries), dtype=bool)


def cm4_square_only(n):
    return np.full((n, n), True)


def cm5(n_queries, n_keys=None):
    return np.eye(n_queries, n_keys, dtype=bool)


def cm6(n_queries, n_keys=None):
    return np.triu(np.ones((n_queries, n_keys or n_queries)), k=1).astype(bool)


def cm6_numbers(n_queries, n_keys=None):
    return np.triu(np.ones((n_queries, n_keys or n_queries)), k=1)


def cm7(n_queries, n_keys=None):
    full = np.tri(n_queries, n_keys or n_queries, dtype=bool)
    return full & ~np.tri(n_queries, n_keys or n_queries, k=-2, dtype=bool)


def cr1(n_queries, n_keys=None):
    return np.tril(np.ones((n_queries, n_keys or n_queries), dtype=bool))


def cr1_loops(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return np.array([[j <= i for j in range(n_keys)] for i in range(n_queries)])


def cr2(n_queries, n_keys=None):
    if n_keys is not None and n_keys > n_queries:
        return np.ones((n_queries, n_keys), dtype=bool)
    return np.tri(n_queries, dtype=bool)


def cr3(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    mask = np.zeros((n_queries, n_keys), dtype=bool)
    mask[:, n_keys - n_queries :] = np.tri(n_queries, dtype=bool)
    return mask


CAUSAL_WRONG = [
    (("CM1",), cm1),
    (("CM1",), cm1_compare),
    (("CM2",), cm2),
    (("CM2",), cm2_turned),
    (("CM3",), cm3),
    (("CM4",), cm4),
    (("CM4",), cm4_square_only),
    (("CM5",), cm5),
    (("CM6",), cm6),
    (("CM6",), cm6_numbers),
    (("CM7",), cm7),
    (("CR1",), cr1),
    (("CR1",), cr1_loops),
    (("CR2",), cr2),
    (("CR3",), cr3),
]


def causal_tri(n_queries, n_keys=None):
    n_keys = n_queries if n_keys is None else n_keys
    return np.tri(n_queries, n_keys, k=n_keys - n_queries, dtype=bool)


def causal_tril(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return np.tril(np.ones((n_queries, n_keys)), k=n_keys - n_queries).astype(bool)


def causal_compare(n, m=None):
    m = m or n
    return np.arange(m)[None, :] <= np.arange(m - n, m)[:, None]


def causal_loops(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    mask = np.zeros((n_queries, n_keys), dtype=bool)
    for i in range(n_queries):
        for j in range(n_keys):
            if j <= i + n_keys - n_queries:
                mask[i, j] = True
    return mask


def causal_negated(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return ~np.triu(np.ones((n_queries, n_keys), dtype=bool), k=1 + n_keys - n_queries)


def causal_last_rows(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return np.tri(n_keys, dtype=bool)[n_keys - n_queries :]


def causal_lists(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return [[j - (n_keys - n_queries) <= i for j in range(n_keys)] for i in range(n_queries)]


def causal_concatenated(n_queries, n_keys=None):
    past = (n_keys or n_queries) - n_queries
    return np.concatenate([np.ones((n_queries, past), dtype=bool), np.tri(n_queries, dtype=bool)], axis=1)


def causal_equal(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return np.tril(np.ones((n_queries, n_keys)), k=n_keys - n_queries) == 1


def causal_from_function(n_queries, n_keys=None):
    n_keys = n_keys or n_queries
    return np.fromfunction(lambda i, j: j <= i + (n_keys - n_queries), (n_queries, n_keys))


CAUSAL_RIGHT = [
    causal_tri,
    causal_tril,
    causal_compare,
    causal_loops,
    causal_negated,
    causal_last_rows,
    causal_lists,
    causal_concatenated,
    causal_equal,
    causal_from_function,
]

WRONG = {
    "softmax": SOFTMAX_WRONG,
    "attention_scores": SCORES_WRONG,
    "attention": ATTENTION_WRONG,
    "scaled_dot_product_attention": MASKED_WRONG,
    "causal_mask": CAUSAL_WRONG,
}
RIGHT = {
    "softmax": SOFTMAX_RIGHT,
    "attention_scores": SCORES_RIGHT,
    "attention": ATTENTION_RIGHT,
    "scaled_dot_product_attention": MASKED_RIGHT,
    "causal_mask": CAUSAL_RIGHT,
}
