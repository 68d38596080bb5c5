"""Right and wrong answers on feed-forward network, Add & Norm and layers, each written as learners write."""

from __future__ import annotations

import math

import numpy as np

from transformer_lite import equations
from transformer_lite.equations import multi_head_attention as mha


def ln(x, gain=1.0, bias=0.0, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def relu(x):
    return np.maximum(x, 0)


def net(x, p):
    return relu(x @ p.w1 + p.b1) @ p.w2 + p.b2


# feed_forward, wrong ----------------------------------------------------------------------------------------------------


def ff1(x, w1, b1, w2, b2):
    return (x @ w1 + b1) @ w2 + b2


def ff1_one_matrix(x, w1, b1, w2, b2):
    return x @ (w1 @ w2) + b1 @ w2 + b2


def ff2(x, w1, b1, w2, b2):
    return relu((x @ w1 + b1) @ w2 + b2)


def ff2_twice(x, w1, b1, w2, b2):
    return relu(relu(x @ w1 + b1) @ w2 + b2)


def ff3(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    h = np.array([0.5 * v * (1 + math.erf(v / 2**0.5)) for v in h.ravel()]).reshape(h.shape)
    return h @ w2 + b2


def ff3_tanh(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    h = 0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))
    return h @ w2 + b2


def ff3_sigmoid(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    return (h / (1 + np.exp(-1.702 * h))) @ w2 + b2


def ff4_mean(x, w1, b1, w2, b2):
    h = relu(x @ w1 + b1)
    h = h.mean(axis=-2, keepdims=True) + 0 * h
    return h @ w2 + b2


def ff4_pooled(x, w1, b1, w2, b2):
    return relu(x.mean(axis=-2) @ w1 + b1) @ w2 + b2


def ff4_neighbour(x, w1, b1, w2, b2):
    return relu(np.roll(x, 1, axis=-2) @ w1 + b1) @ w2 + b2


def ff5_turned(x, w1, b1, w2, b2):
    out = np.empty_like(x)
    for i in range(x.shape[-2]):
        out[..., i, :] = relu(x[..., i, :] @ np.roll(w1, i, axis=0) + b1) @ w2 + b2
    return out


def ff5_scaled(x, w1, b1, w2, b2):
    position = np.arange(1, x.shape[-2] + 1)[:, None]
    return relu(position * (x @ w1) + b1) @ w2 + b2


def ff5_one_set_each(x, w1, b1, w2, b2):
    """Weights of its own for every position, the first one's as given."""
    rows = []
    for i in range(x.shape[-2]):
        own = w1 + (0 if i == 0 else np.random.default_rng(i).normal(size=w1.shape))
        rows.append(relu(x[..., i, :] @ own + b1) @ w2 + b2)
    return np.stack(rows, axis=-2)


def ff5_other_bias_each(x, w1, b1, w2, b2):
    position = np.arange(x.shape[-2])[:, None]
    return relu(x @ w1 + b1 + 0.1 * position) @ w2 + b2


def ff6(x, w1, b1, w2, b2):
    return relu(x @ w1) @ w2


def ff6_first_only(x, w1, b1, w2, b2):
    return np.dot(relu(np.dot(x, w1) + b1), w2)


def ff6_second_only(x, w1, b1, w2, b2):
    return relu(x @ w1) @ w2 + b2


def ff7(x, w1, b1, w2, b2):
    return (1 / (1 + np.exp(-(x @ w1 + b1)))) @ w2 + b2


def ff8(x, w1, b1, w2, b2):
    return (relu(x) @ w1 + b1) @ w2 + b2


def ff8_too(x, w1, b1, w2, b2):
    return relu(relu(x) @ w1 + b1) @ w2 + b2


def ff9(x, w1, b1, w2, b2):
    return np.minimum(0, x @ w1 + b1) @ w2 + b2


def ff9_where(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    return np.where(h > 0, 0, h) @ w2 + b2


FEED_FORWARD_WRONG = [
    ("FF1", ff1),
    ("FF1", ff1_one_matrix),
    ("FF2", ff2),
    ("FF2", ff2_twice),
    ("FF3", ff3),
    ("FF3", ff3_tanh),
    ("FF3", ff3_sigmoid),
    ("FF4", ff4_mean),
    ("FF4", ff4_pooled),
    ("FF4", ff4_neighbour),
    ("FF5", ff5_turned),
    ("FF5", ff5_scaled),
    ("FF5", ff5_one_set_each),
    ("FF5", ff5_other_bias_each),
    ("FF6", ff6),
    ("FF6", ff6_first_only),
    ("FF6", ff6_second_only),
    ("FF7", ff7),
    ("FF8", ff8),
    ("FF8", ff8_too),
    ("FF9", ff9),
    ("FF9", ff9_where),
]


# feed_forward, right ----------------------------------------------------------------------------------------------------


def ffr_plain(x, w1, b1, w2, b2):
    return np.maximum(0, x @ w1 + b1) @ w2 + b2


def ffr_where(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    return np.where(h > 0, h, 0.0) @ w2 + b2


def ffr_einsum(x, w1, b1, w2, b2):
    h = np.einsum("...m,mf->...f", x, w1) + b1
    return np.einsum("...f,fm->...m", h.clip(min=0), w2) + b2


def ffr_loops(x, w1, b1, w2, b2):
    rows = x.reshape(-1, x.shape[-1])
    out = []
    for row in rows:
        hidden = [max(0.0, sum(row[i] * w1[i, j] for i in range(len(row))) + b1[j]) for j in range(len(b1))]
        out.append([sum(hidden[j] * w2[j, k] for j in range(len(b1))) + b2[k] for k in range(len(b2))])
    return np.array(out).reshape(x.shape)


def ffr_single_precision(x, w1, b1, w2, b2):
    x, w1, b1, w2, b2 = (one.astype(np.float32) for one in (x, w1, b1, w2, b2))
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2


def ffr_in_place(x, w1, b1, w2, b2):
    h = x @ w1
    h += b1
    h[h < 0] = 0
    out = h @ w2
    out += b2
    return out


def ffr_keywords(*, x, w1, b1, w2, b2):
    return ffr_plain(x, w1, b1, w2, b2)


def ffr_torch(x, w1, b1, w2, b2):
    import torch

    x, w1, b1, w2, b2 = (torch.as_tensor(one) for one in (x, w1, b1, w2, b2))
    return torch.relu(x @ w1 + b1) @ w2 + b2


def ffr_half_of_sum(x, w1, b1, w2, b2):
    h = x @ w1 + b1
    return (h + np.abs(h)) / 2 @ w2 + b2


def ffr_per_position(x, w1, b1, w2, b2):
    return np.apply_along_axis(lambda token: np.maximum(token @ w1 + b1, 0) @ w2 + b2, -1, x)


def ffr_other_names(tokens, a, c, b, d):
    return np.dot(np.dot(tokens, a).__add__(c).clip(0), b) + d


def ffr_flattened(x, w1, b1, w2, b2):
    flat = x.reshape(-1, x.shape[-1])
    return (relu(flat @ w1 + b1) @ w2 + b2).reshape(x.shape)


FEED_FORWARD_RIGHT = [
    ffr_plain,
    ffr_where,
    ffr_einsum,
    ffr_loops,
    ffr_single_precision,
    ffr_in_place,
    ffr_keywords,
    ffr_torch,
    ffr_half_of_sum,
    ffr_per_position,
    ffr_other_names,
    ffr_flattened,
]


# add_and_norm -----------------------------------------------------------------------------------------------------------


def an1(x, sublayer, gain, bias, eps=1e-5):
    return ln(sublayer(x), gain, bias, eps)


def an1_companion(x, sublayer, gain, bias, eps=1e-5):
    return equations.layer_norm(sublayer(x), gain, bias, eps)


def an2(x, sublayer, gain, bias, eps=1e-5):
    return x + sublayer(x)


def an3(x, sublayer, gain, bias, eps=1e-5):
    return x + sublayer(ln(x, gain, bias, eps))


def an3_companion(x, sublayer, gain, bias, eps=1e-5):
    normed = equations.layer_norm(x, gain, bias, eps)
    return sublayer(normed) + x


def an4(x, sublayer, gain, bias, eps=1e-5):
    return x + ln(sublayer(x), gain, bias, eps)


def an5(x, sublayer, gain, bias, eps=1e-5):
    return ln(x, gain, bias, eps) + sublayer(x)


def an5_both(x, sublayer, gain, bias, eps=1e-5):
    x = ln(x, gain, bias, eps)
    return x + sublayer(x)


def an6(x, sublayer, gain, bias, eps=1e-5):
    return ln(x * sublayer(x), gain, bias, eps)


def an7(x, sublayer, gain, bias, eps=1e-5):
    return ln(np.concatenate([x, sublayer(x)], axis=-1), np.tile(gain, 2), np.tile(bias, 2), eps)


def an7_plain(x, sublayer, gain, bias, eps=1e-5):
    return ln(np.concatenate([x, sublayer(x)], axis=-1), eps=eps)


def an8(x, sublayer, gain, bias, eps=1e-5):
    return ln(x, gain, bias, eps)


def an8_doubled(x, sublayer, gain, bias, eps=1e-5):
    return ln(x + x, gain, bias, eps)


def an9(x, sublayer, gain, bias, eps=1e-5):
    return ln(x + sublayer(ln(x, gain, bias, eps)), gain, bias, eps)


def an9_twice(x, sublayer, gain, bias, eps=1e-5):
    x = ln(x, gain, bias, eps)
    return ln(x + sublayer(x), gain, bias, eps)


def an10(x, sublayer, gain, bias, eps=1e-5):
    return ln(x - sublayer(x), gain, bias, eps)


def an10_turned(x, sublayer, gain, bias, eps=1e-5):
    return ln(sublayer(x) - x, gain, bias, eps)


ADD_AND_NORM_WRONG = [
    ("AN1", an1),
    ("AN1", an1_companion),
    ("AN2", an2),
    ("AN3", an3),
    ("AN3", an3_companion),
    ("AN4", an4),
    ("AN5", an5),
    ("AN5", an5_both),
    ("AN6", an6),
    ("AN7", an7),
    ("AN7", an7_plain),
    ("AN8", an8),
    ("AN8", an8_doubled),
    ("AN9", an9),
    ("AN9", an9_twice),
    ("AN10", an10),
    ("AN10", an10_turned),
]


def anr_plain(x, sublayer, gain, bias, eps=1e-5):
    return ln(x + sublayer(x), gain, bias, eps)


def anr_companion(x, sublayer, gain, bias, eps=1e-5):
    return equations.layer_norm(x + sublayer(x), gain, bias, eps)


def anr_long(x, sublayer, gain, bias, eps=1e-5):
    total = sublayer(x) + x
    mean = np.mean(total, axis=-1, keepdims=True)
    variance = np.mean((total - mean) ** 2, axis=-1, keepdims=True)
    return gain * (total - mean) / (variance + eps) ** 0.5 + bias


def anr_loops(x, sublayer, gain, bias, eps=1e-5):
    total = x + sublayer(x)
    flat = total.reshape(-1, total.shape[-1])
    rows = []
    for row in flat:
        mean = sum(row) / len(row)
        variance = sum((one - mean) ** 2 for one in row) / len(row)
        rows.append([(one - mean) / math.sqrt(variance + eps) * g + b for one, g, b in zip(row, gain, bias, strict=True)])
    return np.array(rows).reshape(x.shape)


def anr_einsum(x, sublayer, gain, bias, eps=1e-5):
    total = x + sublayer(x)
    centred = total - total.mean(axis=-1)[..., None]
    variance = np.einsum("...i,...i->...", centred, centred) / total.shape[-1]
    return np.einsum("...i,i->...i", centred / np.sqrt(variance + eps)[..., None], gain) + bias


def anr_single_precision(x, sublayer, gain, bias, eps=1e-5):
    total = (x + sublayer(x)).astype(np.float32)
    return ln(total, gain.astype(np.float32), bias.astype(np.float32), np.float32(eps))


def anr_in_place(x, sublayer, gain, bias, eps=1e-5):
    total = x.copy()
    total += sublayer(x)
    total -= total.mean(-1, keepdims=True)
    total /= np.sqrt((total**2).mean(-1, keepdims=True) + eps)
    total *= gain
    total += bias
    return total


def anr_keywords(*, x, sublayer, gain, bias, eps=1e-5):
    return ln(sublayer(x) + x, gain, bias, eps)


def anr_torch(x, sublayer, gain, bias, eps=1e-5):
    import torch

    total = torch.as_tensor(x + sublayer(x))
    return torch.nn.functional.layer_norm(total, total.shape[-1:], torch.as_tensor(gain), torch.as_tensor(bias), eps)


def anr_moments(x, sublayer, gain, bias, eps=1e-5):
    total = np.add(x, sublayer(x))
    mean, square = total.mean(-1, keepdims=True), (total**2).mean(-1, keepdims=True)
    return (total - mean) / np.sqrt(square - mean**2 + eps) * gain + bias


def anr_std(x, sublayer, gain, bias, eps=1e-5):
    total = x + sublayer(x)
    deviation = np.sqrt(np.std(total, axis=-1, keepdims=True) ** 2 + eps)
    return bias + gain * ((total - total.mean(axis=-1, keepdims=True)) / deviation)


ADD_AND_NORM_RIGHT = [
    anr_plain,
    anr_companion,
    anr_long,
    anr_loops,
    anr_einsum,
    anr_single_precision,
    anr_in_place,
    anr_keywords,
    anr_torch,
    anr_moments,
    anr_std,
]


# Encoder layer ----------------------------------------------------------------------------------------------------------


def attend(x, p, n_heads, mask=None):
    return mha(x, p.self_projections, n_heads, mask).output


def read(y, memory, p, n_heads, mask=None):
    return mha(y, p.memory_projections, n_heads, mask, memory).output


def ln1(x, p):
    return ln(x, p.attention_gain, p.attention_bias)


def ln2(x, p):
    return ln(x, p.memory_gain, p.memory_bias)


def ln3(x, p):
    return ln(x, p.feed_forward_gain, p.feed_forward_bias)


def en_bl4(x, parameters, n_heads, mask=None):
    p = parameters
    return ln1(x + attend(x, p, n_heads, mask), p)


def en_bl4_norm_kept(x, parameters, n_heads, mask=None):
    p = parameters
    return ln3(ln1(x + attend(x, p, n_heads, mask), p), p)


def en_bl6(x, parameters, n_heads, mask=None):
    p = parameters
    x = x + attend(ln1(x, p), p, n_heads, mask)
    return x + net(ln3(x, p), p)


def en_bl6_companion(x, parameters, n_heads, mask=None):
    p = parameters
    x = x + attend(equations.layer_norm(x, p.attention_gain, p.attention_bias), p, n_heads, mask)
    inner = equations.layer_norm(x, p.feed_forward_gain, p.feed_forward_bias)
    return x + equations.feed_forward(inner, p.w1, p.b1, p.w2, p.b2)


def en_bl7(x, parameters, n_heads, mask=None):
    p = parameters
    return ln3(x + attend(x, p, n_heads, mask) + net(x, p), p)


def en_bl7_first_norm(x, parameters, n_heads, mask=None):
    p = parameters
    return ln1(x + attend(x, p, n_heads, mask) + net(x, p), p)


def en_bl7_each(x, parameters, n_heads, mask=None):
    p = parameters
    return ln1(x + attend(x, p, n_heads, mask), p) + ln3(x + net(x, p), p)


def en_bl8(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln3(x + net(x, p), p)
    return ln1(x + attend(x, p, n_heads, mask), p)


def en_bl8_norms_in_place(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(x + net(x, p), p)
    return ln3(x + attend(x, p, n_heads, mask), p)


def en_bl9(x, parameters, n_heads, mask=None):
    p = parameters
    h = ln1(x + attend(x, p, n_heads, mask), p)
    return ln3(x + net(h, p), p)


def en_an1(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(attend(x, p, n_heads, mask), p)
    return ln3(net(x, p), p)


def en_an2(x, parameters, n_heads, mask=None):
    p = parameters
    x = x + attend(x, p, n_heads, mask)
    return x + net(x, p)


def en_mc22(x, parameters, n_heads, mask=None):
    p = parameters
    causal = np.tri(x.shape[-2], dtype=bool)
    mask = causal if mask is None else mask & causal
    return enr_plain(x, p, n_heads, mask)


def en_mc22_only(x, parameters, n_heads, mask=None):
    return enr_plain(x, parameters, n_heads, equations.causal_mask(x.shape[-2]))


def en_at20(x, parameters, n_heads, mask=None):
    return enr_plain(x, parameters, n_heads)


def en_mh12(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(x + equations.self_attention(x, p.self_projections, mask).output, p)
    return ln3(x + net(x, p), p)


ENCODER_WRONG = [
    ("BL4", en_bl4),
    ("BL4", en_bl4_norm_kept),
    ("BL6", en_bl6),
    ("BL6", en_bl6_companion),
    ("BL7", en_bl7),
    ("BL7", en_bl7_first_norm),
    ("BL7", en_bl7_each),
    ("BL8", en_bl8),
    ("BL8", en_bl8_norms_in_place),
    ("BL9", en_bl9),
    ("AN1", en_an1),
    ("AN2", en_an2),
    ("MC22", en_mc22),
    ("MC22", en_mc22_only),
    ("AT20", en_at20),
    ("MH12", en_mh12),
]


def enr_plain(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(x + attend(x, p, n_heads, mask), p)
    return ln3(x + net(x, p), p)


def enr_companion(x, parameters, n_heads, mask=None):
    p = parameters
    x = equations.add_and_norm(x, lambda z: attend(z, p, n_heads, mask), p.attention_gain, p.attention_bias)
    return equations.add_and_norm(x, lambda z: net(z, p), p.feed_forward_gain, p.feed_forward_bias)


def by_hand(x, memory, matrices, n_heads, mask=None):
    """Multi-head attention without the companion."""
    w_q, w_k, w_v, w_o = matrices
    d = x.shape[-1] // n_heads
    heads = []
    for h in range(n_heads):
        part = slice(h * d, (h + 1) * d)
        scores = (x @ w_q[:, part]) @ (memory @ w_k[:, part]).swapaxes(-1, -2) / d**0.5
        if mask is not None:
            scores = np.where(mask, scores, -1e9)
        e = np.exp(scores - scores.max(-1, keepdims=True))
        heads.append(e / e.sum(-1, keepdims=True) @ (memory @ w_v[:, part]))
    return np.concatenate(heads, axis=-1) @ w_o


def enr_loops(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(x + by_hand(x, x, (p.w_q, p.w_k, p.w_v, p.w_o), n_heads, mask), p)
    return ln3(x + net(x, p), p)


def einsum_attention(x, memory, matrices, n_heads, mask=None):
    w_q, w_k, w_v = (one.reshape(one.shape[0], n_heads, -1) for one in matrices[:3])
    q, k, v = (np.einsum("...nm,mhd->...hnd", a, w) for a, w in ((x, w_q), (memory, w_k), (memory, w_v)))
    scores = np.einsum("...hid,...hjd->...hij", q, k) / np.sqrt(q.shape[-1])
    if mask is not None:
        scores = np.where(mask[..., None, :, :], scores, -np.inf)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    mixed = np.einsum("...hij,...hjd->...ihd", e / e.sum(-1, keepdims=True), v)
    return mixed.reshape(x.shape) @ matrices[3]


def enr_einsum(x, parameters, n_heads, mask=None):
    p = parameters
    x = ln1(x + einsum_attention(x, x, (p.w_q, p.w_k, p.w_v, p.w_o), n_heads, mask), p)
    return ln3(x + net(x, p), p)


def enr_single_precision(x, parameters, n_heads, mask=None):
    p, x = parameters, x.astype(np.float32)
    x = ln1(x + by_hand(x, x, [w.astype(np.float32) for w in (p.w_q, p.w_k, p.w_v, p.w_o)], n_heads, mask), p)
    return ln3(x + net(x, p), p).astype(np.float32)


def enr_in_place(x, parameters, n_heads, mask=None):
    p, x = parameters, x.copy()
    x += attend(x, p, n_heads, mask)
    x[...] = ln1(x, p)
    x += net(x, p)
    return ln3(x, p)


def enr_keywords(*, x, parameters, n_heads, mask=None):
    return enr_plain(x, parameters, n_heads, mask)


def enr_torch(x, parameters, n_heads, mask=None):
    import torch

    p, f = parameters, torch.nn.functional
    t = {name: torch.as_tensor(one) for name, one in vars(p).items()}
    x = torch.as_tensor(x)
    q, k, v = ((x @ t[w]).unflatten(-1, (n_heads, -1)).transpose(-3, -2) for w in ("w_q", "w_k", "w_v"))
    seen = None if mask is None else torch.as_tensor(mask).unsqueeze(-3)
    heads = f.scaled_dot_product_attention(q, k, v, seen).transpose(-3, -2).flatten(-2)
    d = x.shape[-1:]
    x = f.layer_norm(x + heads @ t["w_o"], d, t["attention_gain"], t["attention_bias"])
    return f.layer_norm(
        x + torch.relu(x @ t["w1"] + t["b1"]) @ t["w2"] + t["b2"], d, t["feed_forward_gain"], t["feed_forward_bias"]
    )


def enr_per_sequence(x, parameters, n_heads, mask=None):
    """One sequence after the other."""
    if x.ndim == 2:
        return enr_plain(x, parameters, n_heads, mask)
    masks = [mask] * len(x) if mask is None or mask.ndim == 2 else mask
    return np.stack([enr_per_sequence(one, parameters, n_heads, its) for one, its in zip(x, masks, strict=True)])


def enr_all_visible(x, parameters, n_heads, mask=None):
    if mask is None:
        mask = np.ones((x.shape[-2], x.shape[-2]), dtype=bool)
    return enr_plain(x, parameters, n_heads, mask)


def enr_other_names(tokens, params, heads, mask=None):
    after = ln1(tokens + attend(tokens, params, heads, mask), params)
    return ln3(after + equations.feed_forward(after, params.w1, params.b1, params.w2, params.b2), params)


ENCODER_RIGHT = [
    enr_plain,
    enr_companion,
    enr_loops,
    enr_einsum,
    enr_single_precision,
    enr_in_place,
    enr_keywords,
    enr_torch,
    enr_per_sequence,
    enr_all_visible,
    enr_other_names,
]


# Decoder layer ----------------------------------------------------------------------------------------------------------


def de_bl1(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return der_plain(y, memory, parameters, n_heads, None, memory_mask)


def de_bl2(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln2(y + read(y, memory, p, n_heads, memory_mask), p)
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    return ln3(y + net(y, p), p)


def de_bl2_norms_in_place(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + read(y, memory, p, n_heads, memory_mask), p)
    y = ln2(y + attend(y, p, n_heads, self_mask), p)
    return ln3(y + net(y, p), p)


def de_bl3(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    return ln3(y + net(y, p), p)


def de_bl3_as_encoder(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return equations.encoder_layer(y, parameters, n_heads, self_mask)


def de_bl4(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    return ln2(y + read(y, memory, p, n_heads, memory_mask), p)


def de_bl4_norm_kept(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return ln3(de_bl4(y, memory, parameters, n_heads, self_mask, memory_mask), parameters)


def de_bl5(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln2(y + read(y, memory, p, n_heads, memory_mask), p)
    return ln3(y + net(y, p), p)


def de_bl5_norm_kept(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return de_bl5(ln1(y, parameters), memory, parameters, n_heads, self_mask, memory_mask)


def de_bl6(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = y + attend(ln1(y, p), p, n_heads, self_mask)
    y = y + read(ln2(y, p), memory, p, n_heads, memory_mask)
    return y + net(ln3(y, p), p)


def de_bl7(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    return ln3(y + attend(y, p, n_heads, self_mask) + read(y, memory, p, n_heads, memory_mask) + net(y, p), p)


def de_bl7_each(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    first = ln1(y + attend(y, p, n_heads, self_mask), p)
    second = ln2(y + read(y, memory, p, n_heads, memory_mask), p)
    return first + second + ln3(y + net(y, p), p)


def de_bl8(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln3(y + net(y, p), p)
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    return ln2(y + read(y, memory, p, n_heads, memory_mask), p)


def de_bl8_norms_in_place(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + net(y, p), p)
    y = ln2(y + attend(y, p, n_heads, self_mask), p)
    return ln3(y + read(y, memory, p, n_heads, memory_mask), p)


def de_bl9(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    h = ln1(y + attend(y, p, n_heads, self_mask), p)
    h = ln2(y + read(h, memory, p, n_heads, memory_mask), p)
    return ln3(y + net(h, p), p)


def de_bl9_at_the_end(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return ln3(y + net(de_bl4(y, memory, parameters, n_heads, self_mask, memory_mask), parameters), parameters)


def de_an1(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(attend(y, p, n_heads, self_mask), p)
    y = ln2(read(y, memory, p, n_heads, memory_mask), p)
    return ln3(net(y, p), p)


def de_an2(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = y + attend(y, p, n_heads, self_mask)
    y = y + read(y, memory, p, n_heads, memory_mask)
    return y + net(y, p)


def de_at20(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return der_plain(y, memory, parameters, n_heads, self_mask)


def de_mh12(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + equations.self_attention(y, p.self_projections, self_mask).output, p)
    y = ln2(y + equations.cross_attention(y, memory, p.memory_projections, memory_mask).output, p)
    return ln3(y + net(y, p), p)


def de_ca2(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    y = ln2(y + mha(y, p.memory_projections, n_heads).output, p)
    return ln3(y + net(y, p), p)


def de_ca2_fails_with_the_mask(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    y = ln2(y + mha(y, p.memory_projections, n_heads, memory_mask).output, p)
    return ln3(y + net(y, p), p)


DECODER_WRONG = [
    ("BL1", de_bl1),
    ("BL2", de_bl2),
    ("BL2", de_bl2_norms_in_place),
    ("BL3", de_bl3),
    ("BL3", de_bl3_as_encoder),
    ("BL4", de_bl4),
    ("BL4", de_bl4_norm_kept),
    ("BL5", de_bl5),
    ("BL5", de_bl5_norm_kept),
    ("BL6", de_bl6),
    ("BL7", de_bl7),
    ("BL7", de_bl7_each),
    ("BL8", de_bl8),
    ("BL8", de_bl8_norms_in_place),
    ("BL9", de_bl9),
    ("BL9", de_bl9_at_the_end),
    ("AN1", de_an1),
    ("AN2", de_an2),
    ("AT20", de_at20),
    ("MH12", de_mh12),
    ("CA2", de_ca2),
    ("CA2", de_ca2_fails_with_the_mask),
]


def der_plain(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln1(y + attend(y, p, n_heads, self_mask), p)
    y = ln2(y + read(y, memory, p, n_heads, memory_mask), p)
    return ln3(y + net(y, p), p)


def der_companion(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p, add = parameters, equations.add_and_norm
    y = add(y, lambda z: attend(z, p, n_heads, self_mask), p.attention_gain, p.attention_bias)
    y = add(y, lambda z: read(z, memory, p, n_heads, memory_mask), p.memory_gain, p.memory_bias)
    return add(y, lambda z: net(z, p), p.feed_forward_gain, p.feed_forward_bias)


def der_with(attention):
    def layer(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
        p = parameters
        y = ln1(y + attention(y, y, (p.w_q, p.w_k, p.w_v, p.w_o), n_heads, self_mask), p)
        own = (p.memory_w_q, p.memory_w_k, p.memory_w_v, p.memory_w_o)
        y = ln2(y + attention(y, memory, own, n_heads, memory_mask), p)
        return ln3(y + net(y, p), p)

    layer.__name__ = f"der_{attention.__name__}"
    return layer


def der_single_precision(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    y, memory = y.astype(np.float32), memory.astype(np.float32)
    return der_with(by_hand)(y, memory, parameters, n_heads, self_mask, memory_mask).astype(np.float32)


def der_in_place(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p, y = parameters, np.array(y)
    y += attend(y, p, n_heads, self_mask)
    y[...] = ln1(y, p)
    y += read(y, memory, p, n_heads, memory_mask)
    y[...] = ln2(y, p)
    y += net(y, p)
    return ln3(y, p)


def der_keywords(*, y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return der_plain(y, memory, parameters, n_heads, self_mask=self_mask, memory_mask=memory_mask)


def der_torch(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    import torch

    f, p = torch.nn.functional, parameters

    def torch_attention(x, source, matrices, heads, mask):
        x, source, *w = (torch.as_tensor(one) for one in (x, source, *matrices))
        q, k, v = ((a @ b).unflatten(-1, (heads, -1)).transpose(-3, -2) for a, b in ((x, w[0]), (source, w[1]), (source, w[2])))
        seen = None if mask is None else torch.as_tensor(mask).unsqueeze(-3)
        return (f.scaled_dot_product_attention(q, k, v, seen).transpose(-3, -2).flatten(-2) @ w[3]).numpy()

    y = ln1(y + torch_attention(y, y, p.self_projections, n_heads, self_mask), p)
    y = ln2(y + torch_attention(y, memory, p.memory_projections, n_heads, memory_mask), p)
    return torch.as_tensor(ln3(y + net(y, p), p))


def der_row_by_row(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    """Each row of the result by itself, from as much as it needs."""
    rows = [der_plain(y, memory, parameters, n_heads, self_mask, memory_mask)[..., i, :] for i in range(y.shape[-2])]
    return np.stack(rows, axis=-2)


def der_steps_in_a_list(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    steps = [
        (lambda z: attend(z, p, n_heads, self_mask), p.attention_gain, p.attention_bias),
        (lambda z: read(z, memory, p, n_heads, memory_mask), p.memory_gain, p.memory_bias),
        (lambda z: net(z, p), p.feed_forward_gain, p.feed_forward_bias),
    ]
    for step, gain, bias in steps:
        y = equations.layer_norm(y + step(y), gain, bias)
    return y


def der_other_names(y, enc, params, h, mask=None, src_mask=None):
    return der_plain(y, enc, params, h, mask, src_mask)


DECODER_RIGHT = [
    der_plain,
    der_companion,
    der_with(by_hand),
    der_with(einsum_attention),
    der_single_precision,
    der_in_place,
    der_keywords,
    der_torch,
    der_row_by_row,
    der_steps_in_a_list,
    der_other_names,
]

WRONG = {
    "feed_forward": FEED_FORWARD_WRONG,
    "add_and_norm": ADD_AND_NORM_WRONG,
    "encoder_layer": ENCODER_WRONG,
    "decoder_layer": DECODER_WRONG,
}
RIGHT = {
    "feed_forward": FEED_FORWARD_RIGHT,
    "add_and_norm": ADD_AND_NORM_RIGHT,
    "encoder_layer": ENCODER_RIGHT,
    "decoder_layer": DECODER_RIGHT,
}


# Two mistakes at once, and some that nobody registered --------------------------------------------------------------------


def pair_no_bias_gelu(x, w1, b1, w2, b2):
    h = x @ w1
    return (0.5 * h * (1 + np.tanh(np.sqrt(2 / np.pi) * (h + 0.044715 * h**3)))) @ w2


def pair_end_no_bias(x, w1, b1, w2, b2):
    return relu(x @ w1 @ w2)


def pair_sigmoid_first(x, w1, b1, w2, b2):
    return (1 / (1 + np.exp(-x)) @ w1 + b1) @ w2 + b2


def pair_no_residual_no_norm(x, sublayer, gain, bias, eps=1e-5):
    return sublayer(x)


def pair_product_without_norm(x, sublayer, gain, bias, eps=1e-5):
    return x * sublayer(x)


def pair_no_residual_pre_norm(x, sublayer, gain, bias, eps=1e-5):
    return sublayer(ln(x, gain, bias, eps))


def pair_encoder_causal_no_residual(x, parameters, n_heads, mask=None):
    return en_an1(x, parameters, n_heads, np.tri(x.shape[-2], dtype=bool))


def pair_encoder_pre_norm_first(x, parameters, n_heads, mask=None):
    p = parameters
    x = x + net(ln3(x, p), p)
    return x + attend(ln1(x, p), p, n_heads, mask)


def pair_decoder_unmasked_cross_first(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return de_bl2(y, memory, parameters, n_heads, None, memory_mask)


def pair_decoder_no_masks(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return der_plain(y, memory, parameters, n_heads)


def pair_decoder_pre_norm_no_cross(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    return en_bl6(y, parameters, n_heads, self_mask)


PAIRS = [
    ("feed_forward", {"FF3", "FF6"}, pair_no_bias_gelu),
    ("feed_forward", {"FF2", "FF6"}, pair_end_no_bias),
    ("feed_forward", {"FF7", "FF8"}, pair_sigmoid_first),
    ("add_and_norm", {"AN1", "AN2"}, pair_no_residual_no_norm),
    ("add_and_norm", {"AN2", "AN6"}, pair_product_without_norm),
    ("add_and_norm", {"AN1", "AN3"}, pair_no_residual_pre_norm),
    ("encoder_layer", {"AN1", "MC22"}, pair_encoder_causal_no_residual),
    ("encoder_layer", {"BL6", "BL8"}, pair_encoder_pre_norm_first),
    ("decoder_layer", {"BL1", "BL2"}, pair_decoder_unmasked_cross_first),
    ("decoder_layer", {"BL1", "AT20"}, pair_decoder_no_masks),
    ("decoder_layer", {"BL3", "BL6"}, pair_decoder_pre_norm_no_cross),
]


def unlisted_tanh(x, w1, b1, w2, b2):
    return np.tanh(x @ w1 + b1) @ w2 + b2


def unlisted_two_more(x, w1, b1, w2, b2):
    return relu(x @ w1 + 2 * b1) @ w2 + 2 * b2


def unlisted_positions_and_activation(x, w1, b1, w2, b2):
    """Weights of its own for every position, and no activation: two mistakes, one of them in a way nobody listed."""
    return ff1(x, w1, b1, w2, b2) + 0.3 * np.arange(x.shape[-2])[:, None]


def unlisted_half_residual(x, sublayer, gain, bias, eps=1e-5):
    return ln(0.5 * x + sublayer(x), gain, bias, eps)


def unlisted_norm_each(x, sublayer, gain, bias, eps=1e-5):
    return ln(x, gain, bias, eps) + ln(sublayer(x), gain, bias, eps)


def unlisted_encoder_one_norm(x, parameters, n_heads, mask=None):
    p = parameters
    x = x + attend(x, p, n_heads, mask)
    return ln3(x + net(x, p), p)


def unlisted_encoder_twice(x, parameters, n_heads, mask=None):
    return enr_plain(enr_plain(x, parameters, n_heads, mask), parameters, n_heads, mask)


def unlisted_decoder_wrong_norms(y, memory, parameters, n_heads, self_mask=None, memory_mask=None):
    p = parameters
    y = ln2(y + attend(y, p, n_heads, self_mask), p)
    y = ln1(y + read(y, memory, p, n_heads, memory_mask), p)
    return ln3(y + net(y, p), p)


UNLISTED = [
    ("feed_forward", unlisted_tanh),
    ("feed_forward", unlisted_two_more),
    ("feed_forward", unlisted_positions_and_activation),
    ("add_and_norm", unlisted_half_residual),
    ("add_and_norm", unlisted_norm_each),
    ("encoder_layer", unlisted_encoder_one_norm),
    ("encoder_layer", unlisted_encoder_twice),
    ("decoder_layer", unlisted_decoder_wrong_norms),
]
