"""Right and wrong answers for heads, projections and padding, each written as learners write."""

from __future__ import annotations

import math

import numpy as np

np.seterr(all="ignore")
INF = -np.inf


def soft(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def turned(keys):
    return np.swapaxes(keys, -1, -2)


def attend(q, k, v, mask=None):
    scores = q @ turned(k) / math.sqrt(k.shape[-1])
    if mask is not None:
        scores = np.where(mask, scores, INF)
    w = soft(scores)
    return w @ v, w


# split_heads ------------------------------------------------------------------------------------------------------------


def split_plain(x, n_heads):
    *lead, n, d = x.shape
    return x.reshape(*lead, n, n_heads, d // n_heads).swapaxes(-3, -2)


def split_mh5(x, n_heads):
    *lead, n, d = x.shape
    return x.reshape(*lead, n_heads, n, d // n_heads)


def split_mh5_minus_one(x, n_heads):
    return np.reshape(x, (*x.shape[:-2], n_heads, x.shape[-2], -1))


def split_mh5_not_swapped(x, n_heads):
    return x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads)


def split_mh5_sequence(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-2), axis=-3)


def split_mh5_sequence_reshape(x, n_heads):
    *lead, n, d = x.shape
    return x.reshape(*lead, n_heads, n // n_heads, d)


def split_mh11(x, n_heads):
    *lead, n, d = x.shape
    return np.moveaxis(x.reshape(*lead, n, d // n_heads, n_heads), -1, -3)


def split_mh11_steps(x, n_heads):
    return np.stack([x[..., i::n_heads] for i in range(n_heads)], axis=-3)


def split_mh12(x, n_heads):
    return x[..., None, :, :]


def split_mh12_unsplit(x, n_heads):
    return x


def split_mh12_whole(x, n_heads):
    return np.stack([x for _ in range(n_heads)], axis=-3)


def split_transpose(x, n_heads):
    axes = [*list(range(x.ndim - 2)), x.ndim - 1, x.ndim - 2, x.ndim]
    return x.reshape((*x.shape[:-1], n_heads, -1)).transpose(axes)


def split_stack(x, n_heads):
    d_k = x.shape[-1] // n_heads
    return np.stack([x[..., i * d_k : (i + 1) * d_k] for i in range(n_heads)], axis=-3)


def split_np_split(x, n_heads):
    return np.stack(np.split(x, n_heads, axis=-1), axis=-3)


def split_loops(x, n_heads):
    *lead, n, d = x.shape
    d_k = d // n_heads
    out = np.empty((*lead, n_heads, n, d_k))
    for h in range(n_heads):
        for j in range(d_k):
            out[..., h, :, j] = x[..., :, h * d_k + j]
    return out


def split_einsum(x, n_heads):
    return np.einsum("...nhk->...hnk", x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads))


def split_moveaxis(x, n_heads):
    return np.moveaxis(x.reshape(*x.shape[:-1], n_heads, x.shape[-1] // n_heads), -2, -3)


def split_single_precision(x, n_heads):
    return split_plain(x.astype(np.float32), n_heads)


def split_other_names(z, h):
    return split_plain(z, h)


def split_keyword_only(*, x, n_heads):
    return split_stack(x, n_heads)


def split_lists(x, n_heads):
    return split_plain(np.array(x), n_heads).tolist()


def split_torch(x, n_heads):
    import torch

    x = torch.as_tensor(x)
    return x.unflatten(-1, (n_heads, -1)).transpose(-3, -2)


def split_by_matrix(x, n_heads):
    d_k = x.shape[-1] // n_heads
    pick = np.eye(x.shape[-1]).reshape(-1, n_heads, d_k).transpose(1, 0, 2)
    return x[..., None, :, :] @ pick


def split_single_only(x, n_heads):
    n, d = x.shape
    return x.reshape(n, n_heads, d // n_heads).transpose(1, 0, 2)


# merge_heads ------------------------------------------------------------------------------------------------------------


def merge_plain(x):
    *lead, h, n, d = x.shape
    return x.swapaxes(-3, -2).reshape(*lead, n, h * d)


def merge_mh1(x):
    return x.sum(axis=-3)


def merge_mh1_loop(x):
    total = 0
    for i in range(x.shape[-3]):
        total = total + x[..., i, :, :]
    return total


def merge_mh2(x):
    return np.mean(x, axis=-3)


def merge_mh2_divided(x):
    return x.sum(-3) / x.shape[-3]


def merge_mh6(x):
    *lead, h, n, d = x.shape
    return x.reshape(*lead, n, h * d)


def merge_mh6_minus_one(x):
    return np.reshape(x, (*x.shape[:-3], x.shape[-2], -1))


def merge_mh11(x):
    *lead, h, n, d = x.shape
    return np.moveaxis(x, -3, -1).reshape(*lead, n, d * h)


def merge_mh11_stack(x):
    heads = [x[..., i, :, :] for i in range(x.shape[-3])]
    return np.stack(heads, axis=-1).reshape(*x.shape[:-3], x.shape[-2], -1)


def merge_concatenate(x):
    return np.concatenate([x[..., i, :, :] for i in range(x.shape[-3])], axis=-1)


def merge_hstack_batches(x):
    if x.ndim == 3:
        return np.hstack(list(x))
    return np.stack([merge_hstack_batches(one) for one in x])


def merge_einsum(x):
    return np.einsum("...hnd->...nhd", x).reshape(*x.shape[:-3], x.shape[-2], -1)


def merge_loops(x):
    *lead, h, n, d = x.shape
    out = np.zeros((*lead, n, h * d))
    for i in range(h):
        out[..., i * d : (i + 1) * d] = x[..., i, :, :]
    return out


def merge_moveaxis(x):
    return np.moveaxis(x, -3, -2).reshape(*x.shape[:-3], x.shape[-2], x.shape[-3] * x.shape[-1])


def merge_single_precision(x):
    return merge_plain(x.astype(np.float32))


def merge_other_name(heads):
    return merge_concatenate(heads)


def merge_keyword_only(*, x):
    return merge_loops(x)


def merge_lists(x):
    return merge_plain(x).tolist()


def merge_contiguous(x):
    y = np.ascontiguousarray(x.swapaxes(-2, -3))
    y.shape = (*y.shape[:-2], y.shape[-2] * y.shape[-1])
    return y


def merge_torch(x):
    import torch

    return torch.as_tensor(x).transpose(-3, -2).flatten(-2)


# self_attention ---------------------------------------------------------------------------------------------------------


def self_plain(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    output, w = attend(x @ w_q, x @ w_k, x @ w_v, mask)
    return output @ w_o, w


def _scored(change):
    """Self-attention with the scores changed after the product."""

    def function(x, projections, mask=None):
        w_q, w_k, w_v, w_o = projections
        scores = change(x @ w_q @ turned(x @ w_k), x.shape[-1])
        if mask is not None:
            scores = np.where(mask, scores, INF)
        w = soft(scores)
        return w @ (x @ w_v) @ w_o, w

    return function


self_at1 = _scored(lambda s, d: s)
self_at2 = _scored(lambda s, d: s / d)


def self_at1_einsum(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = np.einsum("...id,...jd->...ij", x @ w_q, x @ w_k)
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e9)
    w = soft(scores)
    return np.einsum("...ij,...jd->...id", w, x @ w_v) @ w_o, w


def self_at7(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, -1e9)
    w = soft(scores, axis=-2)
    return w @ (x @ w_v) @ w_o, w


def self_at8(x, projections, mask=None):
    scores = x @ projections[0] @ turned(x @ projections[1]) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = np.where(mask, scores, INF)
    e = np.exp(scores - scores.max())
    w = e / e.sum()
    return w @ (x @ projections[2]) @ projections[3], w


def self_mh3(x, projections, mask=None):
    w_q, w_k, w_v, _ = projections
    return attend(x @ w_q, x @ w_k, x @ w_v, mask)


def self_mh4(x, projections, mask=None):
    output, w = attend(x, x, x, mask)
    return output @ projections[3], w


def self_mh9(x, projections, mask=None):
    q = k = x @ projections.w_q
    output, w = attend(q, k, x @ projections.w_v, mask)
    return output @ projections.w_o, w


def self_mh9_keys(x, projections, mask=None):
    _, w_k, w_v, w_o = projections
    output, w = attend(x @ w_k, x @ w_k, x @ w_v, mask)
    return output @ w_o, w


def self_mh9_all(x, projections, mask=None):
    z = x @ projections[0]
    output, w = attend(z, z, z, mask)
    return output @ projections[3], w


def self_mh13(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    output, w = attend(x @ w_q, x @ w_k, x @ w_v, mask)
    return output @ w_o.T, w


def self_at11(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    _, w = attend(x @ w_q, x @ w_k, x @ w_v)
    if mask is not None:
        w = w * mask
    return w @ (x @ w_v) @ w_o, w


def self_at11_mixed(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    _, w = attend(x @ w_q, x @ w_k, x @ w_v)
    seen = w if mask is None else np.where(mask, w, 0)
    return seen @ (x @ w_v) @ w_o, w


def self_at12(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5
    w = soft(scores if mask is None else scores * mask)
    return w @ (x @ w_v) @ w_o, w


def self_at15(x, projections, mask=None):
    return self_plain(x, projections, None if mask is None else ~mask)


def self_at15_masked_fill(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.copy()
        scores[mask] = -1e9
    w = soft(scores)
    return w @ (x @ w_v) @ w_o, w


def self_at20(x, projections, mask=None):
    return self_plain(x, projections)


def self_at20_forgotten(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5
    if mask is not None:
        np.where(mask, scores, INF)  # the result is thrown away
    w = soft(scores)
    return w @ (x @ w_v) @ w_o, w


def self_pm5(x, projections, mask=None):
    if mask is not None:
        x = x * mask.any(axis=-2)[..., None]
    return self_plain(x, projections)


def self_pm5_first_row(x, projections, mask=None):
    if mask is not None:
        x = np.where(mask[..., 0, :, None], x, 0.0)
    return self_plain(x, projections)


def self_pm5_last_row(x, projections, mask=None):
    if mask is not None:
        x = x * mask[..., -1, :][..., None]
    return self_plain(x, projections)


def self_sm1(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    e = np.exp(x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5)
    if mask is not None:
        e = e * mask
    w = e / e.sum(axis=-1, keepdims=True)
    return w @ (x @ w_v) @ w_o, w


def self_loops(x, projections, mask=None):
    if x.ndim == 3:
        masks = [None] * len(x) if mask is None else mask
        both = [self_loops(one, projections, its) for one, its in zip(x, masks, strict=True)]
        return np.stack([one[0] for one in both]), np.stack([one[1] for one in both])
    w_q, w_k, w_v, w_o = projections
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    n, d = x.shape
    weights, output = np.zeros((n, n)), np.zeros((n, d))
    for i in range(n):
        allowed = [j for j in range(n) if mask is None or mask[min(i, len(mask) - 1), j]]
        scores = [float(q[i] @ k[j]) / math.sqrt(d) for j in allowed]
        top = max(scores)
        total = sum(math.exp(one - top) for one in scores)
        for j, score in zip(allowed, scores, strict=True):
            weights[i, j] = math.exp(score - top) / total
            output[i] += weights[i, j] * v[j]
    return output @ w_o, weights


def self_einsum(x, projections, mask=None):
    q, k, v = (np.einsum("...nd,de->...ne", x, w) for w in projections[:3])
    scores = np.einsum("...id,...jd->...ij", q, k) * x.shape[-1] ** -0.5
    if mask is not None:
        scores = np.where(mask, scores, -1e30)
    w = soft(scores)
    return np.einsum("...ij,...jd,de->...ie", w, v, projections[3]), w


def self_folded(x, projections, mask=None):
    """W^Q W^Kᵀ and W^V W^O folded into one matrix each."""
    w_q, w_k, w_v, w_o = projections
    scores = x @ (w_q @ w_k.T) @ turned(x) / np.sqrt(x.shape[-1])
    w = soft(scores if mask is None else np.where(mask, scores, INF))
    return w @ (x @ (w_v @ w_o)), w


def self_stacked(x, projections, mask=None):
    d = x.shape[-1]
    q, k, v = np.split(x @ np.concatenate(projections[:3], axis=1), 3, axis=-1)
    output, w = attend(q / d**0.25, k / d**0.25 * d**0.5, v, mask)
    return output @ projections.w_o, w


def self_added(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x @ w_q @ turned(x @ w_k) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores + np.where(mask, 0.0, -1e30)
    w = soft(scores)
    return w @ (x @ w_v @ w_o), w


def self_renormalised(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    _output, w = attend(x @ w_q, x @ w_k, x @ w_v)
    if mask is not None:
        w = w * mask
        w = w / w.sum(axis=-1, keepdims=True)
    return w @ (x @ w_v) @ w_o, w


def self_single_precision(x, projections, mask=None):
    w_q, w_k, w_v, w_o = (w.astype(np.float32) for w in projections)
    x = x.astype(np.float32)
    scores = x @ w_q @ turned(x @ w_k) / np.float32(np.sqrt(x.shape[-1]))
    w = soft(scores if mask is None else np.where(mask, scores, np.float32(-np.inf)))
    return w @ (x @ w_v) @ w_o, w


def self_in_place(x, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = x.copy() @ w_q @ turned(x @ w_k)
    scores /= np.sqrt(x.shape[-1])
    if mask is not None:
        scores[np.broadcast_to(~mask, scores.shape)] = INF
    scores -= scores.max(axis=-1, keepdims=True)
    np.exp(scores, out=scores)
    scores /= scores.sum(axis=-1, keepdims=True)
    return scores @ (x @ w_v) @ w_o, scores


def self_other_names(tokens, weights, m=None):
    return self_plain(tokens, weights, m)


def self_keyword_only(*, x, projections, mask=None):
    return self_folded(x, projections, mask)


def self_dictionary(x, projections, mask=None):
    output, weights = self_plain(x, projections, mask)
    return {"output": output, "weights": weights}


def self_torch(x, projections, mask=None):
    import torch

    x, w_q, w_k, w_v, w_o = (torch.as_tensor(one) for one in (x, *projections))
    scores = (x @ w_q) @ (x @ w_k).transpose(-1, -2) / x.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~torch.as_tensor(mask), float("-inf"))
    w = torch.softmax(scores, dim=-1)
    return w @ (x @ w_v) @ w_o, w


# cross_attention --------------------------------------------------------------------------------------------------------


def cross_plain(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    output, w = attend(y @ w_q, memory @ w_k, memory @ w_v, mask)
    return output @ w_o, w


def cross_ca1(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    output, w = attend(memory @ w_q, y @ w_k, y @ w_v, mask)
    return output @ w_o, w


def cross_ca1_alone(y, memory, projections, mask=None):
    return self_plain(memory, projections, mask)


def cross_ca2(y, memory, projections, mask=None):
    return self_plain(y, projections, mask)


def cross_ca3(y, memory, projections, mask=None):
    causal = np.tril(np.ones((y.shape[-2], memory.shape[-2]), dtype=bool))
    return cross_plain(y, memory, projections, causal if mask is None else causal & mask)


def cross_ca3_bottom_right(y, memory, projections, mask=None):
    n_q, n_k = y.shape[-2], memory.shape[-2]
    causal = np.arange(n_k)[None, :] <= np.arange(n_q)[:, None] + n_k - n_q
    return cross_plain(y, memory, projections, causal if mask is None else np.logical_and(causal, mask))


def cross_ca3_instead(y, memory, projections, mask=None):
    return cross_plain(y, memory, projections, np.tri(y.shape[-2], memory.shape[-2], dtype=bool))


def cross_ca6(y, memory, projections, mask=None):
    return cross_plain(y, memory[..., -1:, :], projections)


def cross_ca6_repeated(y, memory, projections, mask=None):
    last = np.broadcast_to(memory[..., -1:, :], memory.shape)
    return cross_plain(y, last, projections, mask)


def cross_ca6_by_mask(y, memory, projections, mask=None):
    only = np.zeros((y.shape[-2], memory.shape[-2]), dtype=bool)
    only[:, -1] = True
    return cross_plain(y, memory, projections, only)


def cross_ca7(y, memory, projections, mask=None):
    return cross_plain(y, memory.mean(axis=-2, keepdims=True), projections)


def cross_ca7_uniform(y, memory, projections, mask=None):
    _w_q, _w_k, w_v, w_o = projections
    w = np.full((*y.shape[:-1], memory.shape[-2]), 1 / memory.shape[-2])
    return w @ (memory @ w_v) @ w_o, w


def cross_mh3(y, memory, projections, mask=None):
    return attend(y @ projections.w_q, memory @ projections.w_k, memory @ projections.w_v, mask)


def cross_mh4(y, memory, projections, mask=None):
    output, w = attend(y, memory, memory, mask)
    return output @ projections.w_o, w


def cross_mh9(y, memory, projections, mask=None):
    w_q, _, w_v, w_o = projections
    output, w = attend(y @ w_q, memory @ w_q, memory @ w_v, mask)
    return output @ w_o, w


def cross_mh13(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    output, w = attend(y @ w_q, memory @ w_k, memory @ w_v, mask)
    return output @ np.transpose(w_o), w


def _cross(scores_to_weights):
    def function(y, memory, projections, mask=None):
        w_q, w_k, w_v, w_o = projections
        w = scores_to_weights((y @ w_q) @ turned(memory @ w_k), y.shape[-1], mask)
        return w @ (memory @ w_v) @ w_o, w

    return function


def _hide(scores, mask, value=INF):
    return scores if mask is None else np.where(mask, scores, value)


cross_at1 = _cross(lambda s, d, m: soft(_hide(s, m)))
cross_at2 = _cross(lambda s, d, m: soft(_hide(s / d, m, -1e9)))
cross_at7 = _cross(lambda s, d, m: soft(_hide(s / d**0.5, m), axis=-2))
cross_at11 = _cross(lambda s, d, m: soft(s / d**0.5) if m is None else np.where(m, soft(s / d**0.5), 0))
cross_at12 = _cross(lambda s, d, m: soft(_hide(s / d**0.5, m, 0)))
cross_at15 = _cross(lambda s, d, m: soft(s / d**0.5 if m is None else np.where(m, INF, s / d**0.5)))
cross_at20 = _cross(lambda s, d, m: soft(s / d**0.5))
cross_sm1 = _cross(lambda s, d, m: np.exp(_hide(s / d**0.5, m)) / np.exp(_hide(s / d**0.5, m)).sum(-1, keepdims=True))


def cross_loops(y, memory, projections, mask=None):
    if y.ndim == 3:
        masks = [None] * len(y) if mask is None else mask
        both = [cross_loops(a, b, projections, m) for a, b, m in zip(y, memory, masks, strict=True)]
        return np.stack([one[0] for one in both]), np.stack([one[1] for one in both])
    w_q, w_k, w_v, w_o = projections
    output, weights = [], []
    for i, token in enumerate(y):
        scores = np.array([token @ w_q @ (state @ w_k) for state in memory]) / math.sqrt(len(token))
        if mask is not None:
            scores[~mask[min(i, len(mask) - 1)]] = INF
        weights.append(soft(scores))
        output.append(sum(w * (state @ w_v) for w, state in zip(weights[-1], memory, strict=True)) @ w_o)
    return np.array(output), np.array(weights)


def cross_einsum(y, memory, projections, mask=None):
    scores = np.einsum("...id,de,...jf,fe->...ij", y, projections[0], memory, projections[1]) / np.sqrt(y.shape[-1])
    w = soft(_hide(scores, mask))
    return np.einsum("...ij,...jd,de,ef->...if", w, memory, projections[2], projections[3]), w


def cross_folded(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    w = soft(_hide(y @ (w_q @ w_k.T / y.shape[-1] ** 0.5) @ turned(memory), mask))
    return w @ memory @ (w_v @ w_o), w


cross_renormalised = _cross(
    lambda s, d, m: soft(s / d**0.5) if m is None else soft(s / d**0.5) * m / (soft(s / d**0.5) * m).sum(-1, keepdims=True)
)
cross_added = _cross(lambda s, d, m: soft(s / d**0.5 + (0 if m is None else np.where(m, 0.0, -1e30))))
cross_smallest = _cross(lambda s, d, m: soft(_hide(s / d**0.5, m, np.finfo(float).min)))


def cross_turned(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    scores = turned((memory @ w_k) @ turned(y @ w_q)) / np.sqrt(y.shape[-1])
    w = soft(_hide(scores, mask))
    return np.matmul(w, memory @ w_v).dot(w_o), w


def cross_single_precision(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = (w.astype(np.float32) for w in projections)
    y, memory = y.astype(np.float32), memory.astype(np.float32)
    w = soft(_hide((y @ w_q) @ turned(memory @ w_k) / np.float32(y.shape[-1] ** 0.5), mask, np.float32(-np.inf)))
    return w @ (memory @ w_v) @ w_o, w


def cross_in_place(y, memory, projections, mask=None):
    y = y.copy()
    y /= np.sqrt(y.shape[-1])
    scores = (y @ projections.w_q) @ turned(memory @ projections.w_k)
    w = soft(_hide(scores, mask))
    return w @ (memory @ projections.w_v) @ projections.w_o, w


def cross_other_names(target, source, ws, m=None):
    return cross_plain(target, source, ws, m)


def cross_keyword_only(*, y, memory, projections, mask=None):
    return cross_folded(y, memory, projections, mask)


def cross_torch(y, memory, projections, mask=None):
    import torch

    y, memory, w_q, w_k, w_v, w_o = (torch.as_tensor(one) for one in (y, memory, *projections))
    scores = (y @ w_q) @ (memory @ w_k).mT / y.shape[-1] ** 0.5
    if mask is not None:
        scores = torch.where(torch.as_tensor(mask), scores, float("-inf"))
    w = scores.softmax(-1)
    return w @ (memory @ w_v) @ w_o, w


# multi_head_attention ---------------------------------------------------------------------------------------------------


def headed(mask):
    return mask if mask is None or mask.ndim < 3 else mask[..., None, :, :]


def multi_plain(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    q, k, v = split_plain(x @ w_q, n_heads), split_plain(source @ w_k, n_heads), split_plain(source @ w_v, n_heads)
    heads, w = attend(q, k, v, headed(mask))
    return merge_plain(heads) @ w_o, w


def _multi(split=split_plain, merge=merge_plain, weigh=None, last=True):
    """Multi-head attention made of given parts."""

    def function(x, projections, n_heads, mask=None, memory=None):
        w_q, w_k, w_v, w_o = projections
        source = x if memory is None else memory
        q, k, v = split(x @ w_q, n_heads), split(source @ w_k, n_heads), split(source @ w_v, n_heads)
        if weigh is None:
            heads, w = attend(q, k, v, headed(mask))
        else:
            w = weigh(q @ turned(k), q.shape[-1], x.shape[-1], headed(mask))
            heads = w @ v
        merged = merge(heads)
        return (merged @ w_o[: merged.shape[-1]] if last else merged), w

    return function


multi_mh1 = _multi(merge=merge_mh1)
multi_mh2 = _multi(merge=merge_mh2)
multi_mh3 = _multi(last=False)
multi_mh5 = _multi(split=split_mh5)
multi_mh6 = _multi(merge=merge_mh6)
multi_mh7 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / np.sqrt(d_model), m)))
multi_mh10 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / np.sqrt(d_k), m), axis=-3))
multi_mh10_filled = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / np.sqrt(d_k), m, -1e9), axis=-3))
multi_mh11 = _multi(split=split_mh11)
multi_mh11_both = _multi(split=split_mh11_steps, merge=merge_mh11)
multi_at1 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s, m)))
multi_at2 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / d_k, m)))
multi_at7 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / d_k**0.5, m), axis=-2))
multi_at11 = _multi(weigh=lambda s, d_k, d_model, m: soft(s / d_k**0.5) * (1 if m is None else m))
multi_at12 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / d_k**0.5, m, 0.0)))
multi_at15 = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / d_k**0.5, None if m is None else ~m)))
multi_at20 = _multi(weigh=lambda s, d_k, d_model, m: soft(s / d_k**0.5))
multi_sm1 = _multi(
    weigh=lambda s, d_k, d_model, m: np.exp(_hide(s / d_k**0.5, m)) / np.exp(_hide(s / d_k**0.5, m)).sum(-1, keepdims=True)
)


def multi_mh1_loop(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    d_k = x.shape[-1] // n_heads
    total, weights = 0, []
    for i in range(n_heads):
        part = slice(i * d_k, (i + 1) * d_k)
        head, w = attend(x @ w_q[:, part], source @ w_k[:, part], source @ w_v[:, part], mask)
        total = total + head
        weights.append(w)
    return total @ w_o[:d_k], np.stack(weights, axis=-3)


def multi_mh4(x, projections, n_heads, mask=None, memory=None):
    source = x if memory is None else memory
    q, k, v = split_plain(x, n_heads), split_plain(source, n_heads), split_plain(source, n_heads)
    heads, w = attend(q, k, v, headed(mask))
    return merge_plain(heads) @ projections.w_o, w


def multi_mh5_not_swapped(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    q, k, v = (split_mh5_not_swapped(one, n_heads) for one in (x @ w_q, source @ w_k, source @ w_v))
    heads, w = attend(q, k, v, mask)
    return heads.reshape(x.shape) @ w_o, w


def multi_mh8(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    d_k = x.shape[-1] // n_heads
    heads, weights = [], []
    for _ in range(n_heads):
        head, w = attend(x @ w_q[:, :d_k], source @ w_k[:, :d_k], source @ w_v[:, :d_k], mask)
        heads.append(head)
        weights.append(w)
    return np.concatenate(heads, axis=-1) @ w_o, np.stack(weights, axis=-3)


def multi_mh8_weights(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    d_k = x.shape[-1] // n_heads
    _, w = attend(x @ w_q[:, :d_k], source @ w_k[:, :d_k], source @ w_v[:, :d_k], mask)
    return w @ (source @ w_v) @ w_o, np.stack([w] * n_heads, axis=-3)


def multi_mh9(x, projections, n_heads, mask=None, memory=None):
    return multi_plain(x, projections._replace(w_k=projections.w_q), n_heads, mask, memory)


def multi_mh9_typo(x, projections, n_heads, mask=None, memory=None):
    _w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    q, k, v = split_stack(x @ w_k, n_heads), split_stack(source @ w_k, n_heads), split_stack(source @ w_v, n_heads)
    heads, w = attend(q, k, v, headed(mask))
    return merge_plain(heads) @ w_o, w


def multi_mh12(x, projections, n_heads, mask=None, memory=None):
    return cross_plain(x, x if memory is None else memory, projections, mask)


def multi_mh12_axis(x, projections, n_heads, mask=None, memory=None):
    output, w = multi_mh12(x, projections, n_heads, mask, memory)
    return output, w[..., None, :, :]


def multi_mh12_scaled(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    w = soft(_hide((x @ w_q) @ turned(source @ w_k) / np.sqrt(x.shape[-1] // n_heads), mask))
    return w @ (source @ w_v) @ w_o, w


def multi_mh13(x, projections, n_heads, mask=None, memory=None):
    return multi_plain(x, projections._replace(w_o=projections.w_o.T), n_heads, mask, memory)


def multi_ca2(x, projections, n_heads, mask=None, memory=None):
    return multi_plain(x, projections, n_heads, mask)


def multi_loop(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    d_k = x.shape[-1] // n_heads
    heads, weights = [], []
    for i in range(n_heads):
        part = slice(i * d_k, (i + 1) * d_k)
        head, w = attend(x @ w_q[:, part], source @ w_k[:, part], source @ w_v[:, part], mask)
        heads.append(head)
        weights.append(w)
    return np.concatenate(heads, axis=-1) @ w_o, np.stack(weights, axis=-3)


def multi_sum_of_blocks(x, projections, n_heads, mask=None, memory=None):
    """Σ head_i W^O_i: the same as Concat and W^O."""
    w_q, w_k, w_v, w_o = projections
    source = x if memory is None else memory
    output, weights = 0, []
    for q, k, v, o in zip(*(np.hsplit(w, n_heads) for w in (w_q, w_k, w_v)), np.vsplit(w_o, n_heads), strict=True):
        head, w = attend(x @ q, source @ k, source @ v, mask)
        output = output + head @ o
        weights.append(w)
    return output, np.stack(weights, axis=-3)


def multi_einsum(x, projections, n_heads, mask=None, memory=None):
    w_q, w_k, w_v = (w.reshape(len(w), n_heads, -1) for w in projections[:3])
    source = x if memory is None else memory
    q, k, v = (
        np.einsum("...nd,dhk->...hnk", x, w_q),
        np.einsum("...nd,dhk->...hnk", source, w_k),
        np.einsum("...nd,dhk->...hnk", source, w_v),
    )
    scores = np.einsum("...hik,...hjk->...hij", q, k) * q.shape[-1] ** -0.5
    w = soft(_hide(scores, headed(mask)))
    w_o = projections.w_o.reshape(n_heads, -1, x.shape[-1])
    return np.einsum("...hij,...hjk,hkd->...id", w, v, w_o), w


def multi_expand_dims(x, projections, n_heads, mask=None, memory=None):
    if mask is not None:
        mask = np.expand_dims(mask, -3)  # (..., 1, n_q, n_k)
    w_q, w_k, w_v, w_o = projections
    source = memory if memory is not None else x
    q, k, v = split_stack(x @ w_q, n_heads), split_stack(source @ w_k, n_heads), split_stack(source @ w_v, n_heads)
    heads, w = attend(q, k, v, mask)
    return merge_concatenate(heads) @ w_o, w


multi_added = _multi(weigh=lambda s, d_k, d_model, m: soft(s / d_k**0.5 + (0 if m is None else np.where(m, 0.0, -1e30))))
multi_ten_billion = _multi(weigh=lambda s, d_k, d_model, m: soft(_hide(s / math.sqrt(d_k), m, -1e10)))


def multi_renormalised(x, projections, n_heads, mask=None, memory=None):
    def weigh(s, d_k, d_model, m):
        w = soft(s / d_k**0.5)
        w = w if m is None else w * m
        return w / w.sum(axis=-1, keepdims=True)

    return _multi(weigh=weigh)(x, projections, n_heads, mask, memory)


def multi_single_precision(x, projections, n_heads, mask=None, memory=None):
    projections = type(projections)(*(w.astype(np.float32) for w in projections))
    return multi_einsum(x.astype(np.float32), projections, n_heads, mask, None if memory is None else memory.astype(np.float32))


def multi_in_place(x, projections, n_heads, mask=None, memory=None):
    source = x if memory is None else memory
    q = x @ projections.w_q
    q /= np.sqrt(x.shape[-1] / n_heads)
    q, k, v = (
        split_plain(q, n_heads),
        split_plain(source @ projections.w_k, n_heads),
        split_plain(source @ projections.w_v, n_heads),
    )
    scores = q @ turned(k)
    if mask is not None:
        scores[~np.broadcast_to(headed(mask), scores.shape)] = INF
    w = soft(scores)
    return merge_loops(w @ v) @ projections.w_o, w


def multi_batch_loop(x, projections, n_heads, mask=None, memory=None):
    if x.ndim == 2:
        return multi_loop(x, projections, n_heads, mask, memory)
    both = [
        multi_loop(
            x[b], projections, n_heads, mask if mask is None or mask.ndim == 2 else mask[b], None if memory is None else memory[b]
        )
        for b in range(len(x))
    ]
    return np.stack([one[0] for one in both]), np.stack([one[1] for one in both])


def multi_other_names(inputs, ws, h, m=None, enc=None):
    return multi_plain(inputs, ws, h, m, enc)


def multi_keyword_only(*, x, projections, n_heads, mask=None, memory=None):
    return multi_loop(x, projections, n_heads, mask, memory)


def multi_torch(x, projections, n_heads, mask=None, memory=None):
    import torch

    x, w_q, w_k, w_v, w_o = (torch.as_tensor(one) for one in (x, *projections))
    source = x if memory is None else torch.as_tensor(memory)
    q, k, v = ((a @ w).unflatten(-1, (n_heads, -1)).transpose(-3, -2) for a, w in ((x, w_q), (source, w_k), (source, w_v)))
    scores = q @ k.mT / q.shape[-1] ** 0.5
    if mask is not None:
        scores = scores.masked_fill(~torch.as_tensor(mask).unsqueeze(-3), float("-inf"))
    w = scores.softmax(-1)
    return (w @ v).transpose(-3, -2).flatten(-2) @ w_o, w


# padding_mask -----------------------------------------------------------------------------------------------------------


def pm1(token_ids, pad_id):
    return np.ones((*token_ids.shape[:-1], 1, token_ids.shape[-1]), dtype=bool)


def pm1_always(token_ids, pad_id):
    return ((token_ids == pad_id) | (token_ids != pad_id))[..., None, :]


def pm2(token_ids, pad_id):
    return (token_ids != pad_id)[..., :, None]


def pm2_square(token_ids, pad_id):
    real = token_ids != pad_id
    return np.broadcast_to(real[..., None], (*real.shape, real.shape[-1]))


def pm3(token_ids, pad_id):
    return (token_ids == pad_id)[..., None, :]


def pm3_expand(token_ids, pad_id):
    return np.expand_dims(np.equal(token_ids, pad_id), -2)


def pm4(token_ids, pad_id):
    mask = np.ones(token_ids.shape, dtype=bool)
    mask[..., -1] = False
    return mask[..., None, :]


def pm4_if_padding(token_ids, pad_id):
    mask = np.ones(token_ids.shape, dtype=bool)
    mask[..., -1] = token_ids[..., -1] != pad_id
    return mask[..., None, :]


def pm6(token_ids, pad_id):
    n = token_ids.shape[-1]
    return np.tril(np.ones((n, n), dtype=bool))


def pm6_batch(token_ids, pad_id):
    n = token_ids.shape[-1]
    return np.tile(np.tri(n, dtype=bool), (*token_ids.shape[:-1], 1, 1))


def pm7(token_ids, pad_id):
    length = (token_ids != pad_id).sum(axis=-1, keepdims=True)
    return (np.arange(token_ids.shape[-1]) < length - 1)[..., None, :]


def pm7_next(token_ids, pad_id):
    real = token_ids != pad_id
    following = np.zeros_like(real)
    following[..., :-1] = real[..., 1:]
    return (real & following)[..., None, :]


def padding_plain(token_ids, pad_id):
    return (token_ids != pad_id)[..., np.newaxis, :]


def padding_not_equal(token_ids, pad_id):
    return np.not_equal(token_ids, pad_id)[..., None, :]


def padding_negated(token_ids, pad_id):
    return ~(token_ids == pad_id)[..., None, :]


def padding_expand(token_ids, pad_id):
    return np.expand_dims(token_ids != pad_id, axis=-2)


def padding_reshape(token_ids, pad_id):
    return (token_ids != pad_id).reshape(*token_ids.shape[:-1], 1, token_ids.shape[-1])


def padding_loops(token_ids, pad_id):
    if token_ids.ndim > 1:
        return np.stack([padding_loops(one, pad_id) for one in token_ids])
    return np.array([[bool(token != pad_id) for token in token_ids]])


def padding_filled(token_ids, pad_id):
    mask = np.ones((*token_ids.shape[:-1], 1, token_ids.shape[-1]), dtype=bool)
    mask[(token_ids == pad_id)[..., None, :]] = False
    return mask


def padding_where(token_ids, pad_id):
    return np.where(token_ids == pad_id, False, True)[..., None, :]


def padding_other_names(ids, pad):
    return padding_plain(ids, pad)


def padding_keyword_only(*, token_ids, pad_id):
    return padding_plain(token_ids, pad_id)


def padding_lists(token_ids, pad_id):
    return padding_plain(token_ids, pad_id).tolist()


def padding_isin(token_ids, pad_id):
    return np.isin(token_ids, [pad_id], invert=True)[..., None, :]


def padding_in_place(token_ids, pad_id):
    ids = token_ids.copy()
    ids -= pad_id
    return ids.astype(bool)[..., None, :]


def padding_torch(token_ids, pad_id):
    import torch

    return torch.as_tensor(token_ids).ne(pad_id).unsqueeze(-2)


WRONG = {
    "split_heads": {
        "MH5": (split_mh5, split_mh5_minus_one, split_mh5_not_swapped, split_mh5_sequence_reshape, split_mh5_sequence),
        "MH11": (split_mh11, split_mh11_steps),
        "MH12": (split_mh12, split_mh12_unsplit, split_mh12_whole),
    },
    "merge_heads": {
        "MH1": (merge_mh1, merge_mh1_loop),
        "MH2": (merge_mh2, merge_mh2_divided),
        "MH6": (merge_mh6, merge_mh6_minus_one),
        "MH11": (merge_mh11, merge_mh11_stack),
    },
    "self_attention": {
        "MH3": (self_mh3,),
        "MH4": (self_mh4,),
        "MH9": (self_mh9, self_mh9_keys, self_mh9_all),
        "MH13": (self_mh13,),
        "AT1": (self_at1, self_at1_einsum),
        "AT2": (self_at2,),
        "AT7": (self_at7,),
        "AT8": (self_at8,),
        "AT11": (self_at11, self_at11_mixed),
        "AT12": (self_at12,),
        "AT15": (self_at15, self_at15_masked_fill),
        "AT20": (self_at20, self_at20_forgotten),
        "PM5": (self_pm5, self_pm5_first_row, self_pm5_last_row),
        "SM1": (self_sm1,),
    },
    "cross_attention": {
        "CA1": (cross_ca1, cross_ca1_alone),
        "CA2": (cross_ca2,),
        "CA3": (cross_ca3, cross_ca3_bottom_right, cross_ca3_instead),
        "CA6": (cross_ca6, cross_ca6_repeated, cross_ca6_by_mask),
        "CA7": (cross_ca7, cross_ca7_uniform),
        "MH3": (cross_mh3,),
        "MH4": (cross_mh4,),
        "MH9": (cross_mh9,),
        "MH13": (cross_mh13,),
        "AT1": (cross_at1,),
        "AT2": (cross_at2,),
        "AT7": (cross_at7,),
        "AT11": (cross_at11,),
        "AT12": (cross_at12,),
        "AT15": (cross_at15,),
        "AT20": (cross_at20,),
        "SM1": (cross_sm1,),
    },
    "multi_head_attention": {
        "MH1": (multi_mh1, multi_mh1_loop),
        "MH2": (multi_mh2,),
        "MH3": (multi_mh3,),
        "MH4": (multi_mh4,),
        "MH5": (multi_mh5, multi_mh5_not_swapped),
        "MH6": (multi_mh6,),
        "MH7": (multi_mh7,),
        "MH8": (multi_mh8, multi_mh8_weights),
        "MH9": (multi_mh9, multi_mh9_typo),
        "MH10": (multi_mh10, multi_mh10_filled),
        "MH11": (multi_mh11, multi_mh11_both),
        "MH12": (multi_mh12, multi_mh12_axis, multi_mh12_scaled),
        "MH13": (multi_mh13,),
        "AT1": (multi_at1,),
        "AT2": (multi_at2,),
        "AT7": (multi_at7,),
        "AT11": (multi_at11,),
        "AT12": (multi_at12,),
        "AT15": (multi_at15,),
        "AT20": (multi_at20,),
        "CA2": (multi_ca2,),
        "SM1": (multi_sm1,),
    },
    "padding_mask": {
        "PM1": (pm1, pm1_always),
        "PM2": (pm2, pm2_square),
        "PM3": (pm3, pm3_expand),
        "PM4": (pm4, pm4_if_padding),
        "PM6": (pm6, pm6_batch),
        "PM7": (pm7, pm7_next),
    },
}
RIGHT = {
    "split_heads": (
        split_plain, split_transpose, split_stack, split_np_split, split_loops, split_einsum, split_moveaxis,
        split_single_precision, split_other_names, split_keyword_only, split_lists, split_torch, split_by_matrix,
    ),
    "merge_heads": (
        merge_plain, merge_concatenate, merge_hstack_batches, merge_einsum, merge_loops, merge_moveaxis, merge_single_precision,
        merge_other_name, merge_keyword_only, merge_lists, merge_contiguous, merge_torch,
    ),
    "self_attention": (
        self_plain, self_loops, self_einsum, self_folded, self_stacked, self_added, self_renormalised, self_single_precision,
        self_in_place, self_other_names, self_keyword_only, self_dictionary, self_torch,
    ),
    "cross_attention": (
        cross_plain, cross_loops, cross_einsum, cross_folded, cross_renormalised, cross_added, cross_smallest, cross_turned,
        cross_single_precision, cross_in_place, cross_other_names, cross_keyword_only, cross_torch,
    ),
    "multi_head_attention": (
        multi_plain, multi_sum_of_blocks, multi_einsum, multi_expand_dims, multi_added, multi_ten_billion, multi_renormalised,
        multi_single_precision, multi_in_place, multi_batch_loop, multi_other_names, multi_torch,
    ),
    "padding_mask": (
        padding_plain, padding_not_equal, padding_negated, padding_expand, padding_reshape, padding_loops, padding_filled,
        padding_where, padding_other_names, padding_keyword_only, padding_lists, padding_isin, padding_in_place, padding_torch,
    ),
}  # fmt: skip


# Two at once -------------------------------------------------------------------------------------------------------------


def self_two_scale_and_last(x, projections, mask=None):
    _, w = self_at1(x, projections, mask)
    return w @ (x @ projections.w_v), w


def cross_two_swapped_and_unscaled(y, memory, projections, mask=None):
    w_q, w_k, w_v, w_o = projections
    w = soft(_hide((memory @ w_q) @ turned(y @ w_k), mask))
    return w @ (y @ w_v) @ w_o, w


def pm_two_inverted_on_rows(token_ids, pad_id):
    return (token_ids == pad_id)[..., :, None]


TWO = [
    ("multi_head_attention", {"MH5", "MH6"}, _multi(split=split_mh5, merge=merge_mh6)),
    ("multi_head_attention", {"MH3", "MH7"}, _multi(weigh=lambda s, d, m, k: soft(_hide(s / m**0.5, k)), last=False)),
    ("multi_head_attention", {"MH1", "MH3"}, _multi(merge=merge_mh1, last=False)),
    ("multi_head_attention", {"MH11", "AT20"}, _multi(split=split_mh11, weigh=lambda s, d, m, k: soft(s / d**0.5))),
    ("self_attention", {"AT1", "MH3"}, self_two_scale_and_last),
    ("cross_attention", {"CA1", "AT1"}, cross_two_swapped_and_unscaled),
    ("padding_mask", {"PM2", "PM3"}, pm_two_inverted_on_rows),
]


def multi_biased(x, projections, n_heads, mask=None, memory=None):
    output, w = multi_plain(x, projections, n_heads, mask, memory)
    return output + 1.0, w


def self_residual(x, projections, mask=None):
    output, w = self_plain(x, projections, mask)
    return x + output, w


def padding_zero_always(token_ids, pad_id):
    return (token_ids != 0)[..., None, :]


NOBODY = [
    ("multi_head_attention", multi_biased),
    ("self_attention", self_residual),
    ("padding_mask", padding_zero_always),
    (
        "padding_mask",
        lambda token_ids, pad_id: (np.arange(token_ids.shape[-1]) <= (token_ids != pad_id).sum(-1, keepdims=True))[..., None, :],
    ),
    ("split_heads", lambda x, n_heads: split_plain(x, n_heads)[..., ::-1, :, :]),
    ("merge_heads", lambda x: merge_plain(x)[..., ::-1]),
    (
        "cross_attention",
        lambda y, memory, projections, mask=None: (
            2 * cross_plain(y, memory, projections, mask)[0],
            cross_plain(y, memory, projections, mask)[1],
        ),
    ),
]
