"""Answers to the exercises on positions, embeddings and layer normalisation, right and wrong, written as learners write."""

from __future__ import annotations

import math

import numpy as np

# positional_encoding, wrong -----------------------------------------------------------------------------------------------


def angles(n, d, exponent=2.0, base=10000.0):
    return np.arange(n)[:, None] / base ** (exponent * np.arange(d // 2) / d)


def woven(even, odd):
    return np.stack([even, odd], axis=-1).reshape(len(even), -1)


def pe1(n_positions, d_model):
    a = angles(n_positions, d_model)
    return woven(np.cos(a), np.sin(a))


def pe1_loops(n_positions, d_model):
    table = np.zeros((n_positions, d_model))
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            table[pos, i + 1] = math.sin(pos / 10000 ** (i / d_model))
            table[pos, i] = math.cos(pos / 10000 ** (i / d_model))
    return table


def pe2(n_positions, d_model):
    a = angles(n_positions, d_model)
    return np.concatenate([np.sin(a), np.cos(a)], axis=1)


def pe2_library(n_positions, d_model):
    half = d_model // 2
    step = math.log(10000.0) / (half - 1)
    a = np.arange(n_positions)[:, None] * np.exp(-step * np.arange(half))[None, :]
    return np.concatenate([np.sin(a), np.cos(a)], axis=1)


def pe3(n_positions, d_model):
    a = angles(n_positions, d_model, exponent=1.0)
    return woven(np.sin(a), np.cos(a))


def pe3_loops(n_positions, d_model):
    table = np.empty((n_positions, d_model))
    for pos in range(n_positions):
        for i in range(d_model // 2):
            table[pos, 2 * i] = np.sin(pos / 10000 ** (i / d_model))
            table[pos, 2 * i + 1] = np.cos(pos / 10000 ** (i / d_model))
    return table


def pe4(n_positions, d_model):
    a = np.arange(n_positions)[:, None] / 10000.0 ** (np.arange(d_model) / d_model)
    a[:, 0::2], a[:, 1::2] = np.sin(a[:, 0::2]), np.cos(a[:, 1::2])
    return a


def pe4_doubled(n_positions, d_model):
    table = np.zeros((n_positions, d_model))
    for pos in range(n_positions):
        for i in range(0, d_model, 2):
            table[pos, i] = math.sin(pos / (10000 ** ((2 * i) / d_model)))
            table[pos, i + 1] = math.cos(pos / (10000 ** ((2 * (i + 1)) / d_model)))
    return table


def pe5(n_positions, d_model):
    positions = np.arange(1, n_positions + 1)[:, np.newaxis]
    a = positions * np.exp(-np.log(10000) * np.arange(0, d_model, 2) / d_model)
    return woven(np.sin(a), np.cos(a))


def pe6(n_positions, d_model):
    a = angles(n_positions, d_model, base=1000.0)
    return woven(np.sin(a), np.cos(a))


def pe6_power(n_positions, d_model):
    a = np.outer(np.arange(n_positions), np.power(1e3, -np.arange(0, d_model, 2) / d_model))
    return woven(np.sin(a), np.cos(a))


def pe7(n_positions, d_model):
    a = np.radians(angles(n_positions, d_model))
    return woven(np.sin(a), np.cos(a))


def pe7_pi(n_positions, d_model):
    a = angles(n_positions, d_model) * math.pi / 180
    return woven(np.sin(a), np.cos(a))


def pe8(n_positions, d_model):
    return np.tile((np.arange(n_positions) / n_positions)[:, None], (1, d_model))


def pe8_to_one(n_positions, d_model):
    return np.linspace(0, 1, n_positions)[:, None] * np.ones(d_model)


def pe8_from_one(n_positions, d_model):
    return np.repeat(np.arange(1, n_positions + 1)[:, None] / n_positions, d_model, axis=1)


def pe9(n_positions, d_model):
    return np.random.default_rng(0).normal(size=(n_positions, d_model))


def pe9_new_each_time(n_positions, d_model):
    return np.random.randn(n_positions, d_model)


def pe9_learned(n_positions, d_model):
    return 0.02 * np.random.default_rng(7).standard_normal((n_positions, d_model))


def pe9_uniform(n_positions, d_model):
    rng = np.random.RandomState(3)
    return rng.uniform(-1, 1, (n_positions, d_model))


LEARNED = np.random.default_rng(12).normal(size=(200, 64))


def pe9_table(n_positions, d_model):
    return LEARNED[:n_positions, :d_model]


def pe10(n_positions, d_model):
    a = np.arange(n_positions)[:, None] * 10000.0 ** (np.arange(0, d_model, 2) / d_model)
    return woven(np.sin(a), np.cos(a))


def pe10_exp(n_positions, d_model):
    a = np.arange(n_positions)[:, None] * np.exp(np.log(10000.0) * np.arange(0, d_model, 2) / d_model)
    return woven(np.sin(a), np.cos(a))


def pe11(n_positions, d_model):
    a = angles(n_positions, d_model)
    return woven(np.sin(a), np.sin(a))


def pe11_repeat(n_positions, d_model):
    return np.sin(np.repeat(angles(n_positions, d_model), 2, axis=1))


ENCODING_WRONG = [
    (("PE1",), pe1),
    (("PE1",), pe1_loops),
    (("PE2",), pe2),
    (("PE2",), pe2_library),
    (("PE3",), pe3),
    (("PE3",), pe3_loops),
    (("PE4",), pe4),
    (("PE4",), pe4_doubled),
    (("PE5",), pe5),
    (("PE6",), pe6),
    (("PE6",), pe6_power),
    (("PE7",), pe7),
    (("PE7",), pe7_pi),
    (("PE8",), pe8),
    (("PE8",), pe8_to_one),
    (("PE8",), pe8_from_one),
    (("PE9",), pe9),
    (("PE9",), pe9_new_each_time),
    (("PE9",), pe9_learned),
    (("PE9",), pe9_uniform),
    (("PE9",), pe9_table),
    (("PE10",), pe10),
    (("PE10",), pe10_exp),
    (("PE11",), pe11),
    (("PE11",), pe11_repeat),
]


# positional_encoding, right -----------------------------------------------------------------------------------------------


def encoding_slices(n_positions, d_model):
    table = np.zeros((n_positions, d_model))
    table[:, ::2], table[:, 1::2] = np.sin(angles(n_positions, d_model)), np.cos(angles(n_positions, d_model))
    return table


def encoding_woven(n, d):
    a = angles(n, d)
    return woven(np.sin(a), np.cos(a))


def encoding_loops(n_positions, d_model):
    table = np.zeros((n_positions, d_model))
    for pos in range(n_positions):
        for i in range(d_model // 2):
            angle = pos / 10000 ** (2 * i / d_model)
            table[pos, 2 * i], table[pos, 2 * i + 1] = math.sin(angle), math.cos(angle)
    return table


def encoding_by_component(n_positions, d_model):
    i = np.arange(d_model)
    a = np.arange(n_positions)[:, None] / np.power(10000, (2 * (i // 2)) / np.float32(d_model))
    a[:, 0::2] = np.sin(a[:, 0::2])
    a[:, 1::2] = np.cos(a[:, 1::2])
    return a


def encoding_phase(n_positions, d_model):
    return np.sin(np.repeat(angles(n_positions, d_model), 2, axis=1) + np.pi / 2 * (np.arange(d_model) % 2))


def encoding_complex(n_positions, d_model):
    turned = np.exp(1j * angles(n_positions, d_model))
    return np.stack([turned.imag, turned.real], axis=-1).reshape(n_positions, d_model)


def encoding_lists(n_positions, d_model):
    def entry(pos, i):
        return (math.cos if i % 2 else math.sin)(pos / 10000 ** ((i - i % 2) / d_model))

    return [[entry(pos, i) for i in range(d_model)] for pos in range(n_positions)]


def encoding_einsum(n_positions, d_model):
    frequencies = np.exp(np.arange(0, d_model, 2) * -(np.log(10000.0) / d_model))
    a = np.einsum("p,i->pi", np.arange(n_positions), frequencies)
    table = np.empty((n_positions, d_model))
    table[:, 0::2], table[:, 1::2] = np.sin(a), np.cos(a)
    return table


def encoding_float32(n_positions, d_model):
    a = np.outer(np.arange(n_positions, dtype=np.float32), 1e4 ** (-np.arange(0, d_model, 2, dtype=np.float32) / d_model))
    return woven(np.sin(a), np.cos(a)).astype(np.float32)


def encoding_keywords(*, n_positions, d_model):
    return encoding_woven(n_positions, d_model)


def encoding_rotations(n_positions, d_model):
    """Every row is the row before, turned pair by pair."""
    frequencies = 10000.0 ** (-2 * np.arange(d_model // 2) / d_model)
    sine, cosine = np.zeros(d_model // 2), np.ones(d_model // 2)
    rows = []
    for _ in range(n_positions):
        rows.append(woven(sine[:, None], cosine[:, None]).reshape(-1))
        c, s = np.cos(frequencies), np.sin(frequencies)
        sine, cosine = sine * c + cosine * s, cosine * c - sine * s
    return np.array(rows)


def encoding_torch(n_positions, d_model):
    import torch

    table = torch.zeros(n_positions, d_model)
    position = torch.arange(0, n_positions).unsqueeze(1)
    div_term = torch.exp(torch.arange(0, d_model, 2) * -(math.log(10000.0) / d_model))
    table[:, 0::2] = torch.sin(position * div_term)
    table[:, 1::2] = torch.cos(position * div_term)
    return table


ENCODING_RIGHT = [
    encoding_slices,
    encoding_woven,
    encoding_loops,
    encoding_by_component,
    encoding_phase,
    encoding_complex,
    encoding_lists,
    encoding_einsum,
    encoding_float32,
    encoding_keywords,
    encoding_rotations,
    encoding_torch,
]


# embed, wrong -------------------------------------------------------------------------------------------------------------


def em1(token_ids, table, encoding):
    return table[token_ids] + encoding[: token_ids.shape[-1]]


def em1_loops(token_ids, table, encoding):
    return np.array([table[token] + encoding[i] for i, token in enumerate(token_ids)])


def em2(token_ids, table, encoding):
    return table[token_ids] / np.sqrt(table.shape[1]) + encoding[: token_ids.shape[-1]]


def em3(token_ids, table, encoding):
    return table[token_ids] * table.shape[1] + encoding[: token_ids.shape[-1]]


def em4(token_ids, table, encoding):
    return (table[token_ids] + encoding[: token_ids.shape[-1]]) * np.sqrt(table.shape[1])


def em5(token_ids, table, encoding):
    e = table[token_ids] * np.sqrt(table.shape[1])
    return np.concatenate([e, np.broadcast_to(encoding[: e.shape[-2]], e.shape)], axis=-1)


def em5_single(token_ids, table, encoding):
    return np.hstack([table[token_ids] * np.sqrt(table.shape[1]), encoding[: len(token_ids)]])


def em5_first(token_ids, table, encoding):
    return np.concatenate([encoding[: len(token_ids)], table[token_ids] * table.shape[1] ** 0.5], axis=1)


def em5_below(token_ids, table, encoding):
    return np.concatenate([table[token_ids] * np.sqrt(table.shape[1]), encoding[: len(token_ids)]])


def em6(token_ids, table, encoding):
    return table[token_ids] * np.sqrt(table.shape[1]) * encoding[: token_ids.shape[-1]]


def em7(token_ids, table, encoding):
    return table[token_ids] * np.sqrt(table.shape[1])


def em8(token_ids, table, encoding):
    return table[token_ids] * np.sqrt(table.shape[1]) + encoding[token_ids]


def em9(token_ids, table, encoding):
    return encoding[: len(token_ids)]


def em9_batch(token_ids, table, encoding):
    return np.zeros((*token_ids.shape, table.shape[1])) + encoding[: token_ids.shape[-1]]


EMBED_WRONG = [
    (("EM1",), em1),
    (("EM1",), em1_loops),
    (("EM2",), em2),
    (("EM3",), em3),
    (("EM4",), em4),
    (("EM5",), em5),
    (("EM5",), em5_single),
    (("EM5",), em5_first),
    (("EM5",), em5_below),
    (("EM6",), em6),
    (("EM7",), em7),
    (("EM8",), em8),
    (("EM9",), em9),
    (("EM9",), em9_batch),
]


# embed, right -------------------------------------------------------------------------------------------------------------


def embed_plain(token_ids, table, encoding):
    return table[token_ids] * np.sqrt(table.shape[-1]) + encoding[: token_ids.shape[-1]]


def embed_other_names(t, e, p):
    return p[: t.shape[-1], :] + math.sqrt(e.shape[1]) * e[t]


def embed_take(token_ids, table, encoding):
    return np.take(table, token_ids, axis=0) * table.shape[1] ** 0.5 + np.take(encoding, range(token_ids.shape[-1]), axis=0)


def embed_one_hot(token_ids, table, encoding):
    return np.eye(len(table))[token_ids] @ (table * np.sqrt(table.shape[1])) + encoding[: token_ids.shape[-1]]


def embed_einsum(token_ids, table, encoding):
    hot = (token_ids[..., None] == np.arange(len(table))).astype(float)
    return np.einsum("...nv,vd->...nd", hot, table) * np.sqrt(table.shape[1]) + encoding[: token_ids.shape[-1]]


def embed_loops(token_ids, table, encoding):
    if token_ids.ndim > 1:
        return np.stack([embed_loops(one, table, encoding) for one in token_ids])
    d_model = table.shape[1]
    out = np.zeros((len(token_ids), d_model))
    for i, token in enumerate(token_ids):
        for j in range(d_model):
            out[i, j] = math.sqrt(d_model) * table[token, j] + encoding[i, j]
    return out


def embed_single_sequence(token_ids, table, encoding):
    return np.array([table[t] * len(table[t]) ** 0.5 + encoding[i] for i, t in enumerate(token_ids.ravel())]).reshape(
        *token_ids.shape, -1
    ) if token_ids.ndim == 1 else np.stack([embed_single_sequence(one, table, encoding) for one in token_ids])


def embed_in_place(token_ids, table, encoding):
    x = table[token_ids]  # a copy
    x *= np.sqrt(x.shape[-1])
    x += encoding[: x.shape[-2]]
    return x


def embed_float32(token_ids, table, encoding):
    return (table[token_ids] * np.sqrt(table.shape[1]) + encoding[: token_ids.shape[-1]]).astype(np.float32)


def embed_keywords(*, token_ids, table, encoding):
    return embed_plain(token_ids, table, encoding)


def embed_scaled_table(token_ids, table, encoding):
    return (table * np.sqrt(table.shape[1]))[token_ids] + encoding[np.arange(token_ids.shape[-1])]


def embed_torch(token_ids, table, encoding):
    import torch

    table = torch.tensor(table, requires_grad=True)
    looked_up = torch.nn.functional.embedding(torch.as_tensor(token_ids), table)
    return looked_up * table.shape[1] ** 0.5 + torch.as_tensor(encoding)[: token_ids.shape[-1]]


EMBED_RIGHT = [
    embed_plain,
    embed_other_names,
    embed_take,
    embed_one_hot,
    embed_einsum,
    embed_loops,
    embed_single_sequence,
    embed_in_place,
    embed_float32,
    embed_keywords,
    embed_scaled_table,
    embed_torch,
]


# layer_norm, wrong --------------------------------------------------------------------------------------------------------


def normalised(x, axis, eps):
    return (x - x.mean(axis=axis, keepdims=True)) / np.sqrt(x.var(axis=axis, keepdims=True) + eps)


def ln1(x, gain, bias, eps=1e-5):
    return normalised(x, 0, eps) * gain + bias


def ln1_plain(x, gain, bias, eps=1e-5):
    return gain * (x - np.mean(x, 0)) / np.sqrt(np.var(x, 0) + eps) + bias


def ln2(x, gain, bias, eps=1e-5):
    return normalised(x, -2, eps) * gain + bias


def ln2_axis_1(x, gain, bias, eps=1e-5):
    return normalised(x, 1, eps) * gain + bias


def ln3(x, gain, bias, eps=1e-5):
    return normalised(x, (-2, -1), eps) * gain + bias


def ln3_no_axis(x, gain, bias, eps=1e-5):
    return (x - x.mean()) / np.sqrt(x.var() + eps) * gain + bias


def ln4(x, gain, bias, eps=1e-5):
    return normalised(x, tuple(range(x.ndim - 1)), eps) * gain + bias


def ln4_flat(x, gain, bias, eps=1e-5):
    flat = x.reshape(-1, x.shape[-1])
    return (normalised(flat, 0, eps) * gain + bias).reshape(x.shape)


def ln5(x, gain, bias, eps=1e-5):
    return normalised(x, -1, 0.0) * gain + bias


def ln5_std(x, gain, bias):
    return (x - x.mean(-1, keepdims=True)) / x.std(-1, keepdims=True) * gain + bias


def ln6(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True, ddof=1) + eps) * gain + bias


def ln7(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True) + eps) * gain + bias


def ln7_root(x, gain, bias, eps=1e-5):
    return gain * (x - x.mean(-1, keepdims=True)) / (np.sqrt(x.var(-1, keepdims=True)) + eps) + bias


def ln8(x, gain, bias, eps=1e-5):
    return normalised(x, -1, eps)


def ln8_no_bias(x, gain, bias, eps=1e-5):
    return normalised(x, -1, eps) * gain


def ln8_no_gain(x, gain, bias, eps=1e-5):
    return normalised(x, -1, eps) + bias


def ln9(x, gain, bias, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gain + bias


def ln9_as_published(x, gain, bias, eps=1e-5):
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + eps) * gain


def ln10(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / (x.var(-1, keepdims=True) + eps) * gain + bias


def ln10_no_eps(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) / x.var(-1, keepdims=True) * gain + bias


def ln11(x, gain, bias, eps=1e-5):
    return (x - x.mean(-1, keepdims=True)) * gain + bias


def ln12(x, gain, bias, eps=1e-5):
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * gain + bias


def ln12_eps(x, gain, bias, eps=1e-5):
    return x / (np.linalg.norm(x, axis=-1, keepdims=True) + eps) * gain + bias


def ln12_centred(x, gain, bias, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / np.sqrt((c**2).sum(-1, keepdims=True) + eps) * gain + bias


def ln13(x, gain, bias, eps=1e-5):
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return (x - low) / (high - low) * gain + bias


def ln13_eps(x, gain, bias, eps=1e-5):
    low, high = x.min(-1, keepdims=True), x.max(-1, keepdims=True)
    return (x - low) / (high - low + eps) * gain + bias


NORM_WRONG = [
    (("LN1",), ln1),
    (("LN1",), ln1_plain),
    (("LN2",), ln2),
    (("LN2",), ln2_axis_1),
    (("LN3",), ln3),
    (("LN3",), ln3_no_axis),
    (("LN4",), ln4),
    (("LN4",), ln4_flat),
    (("LN5",), ln5),
    (("LN5",), ln5_std),
    (("LN6",), ln6),
    (("LN7",), ln7),
    (("LN7",), ln7_root),
    (("LN8",), ln8),
    (("LN8",), ln8_no_bias),
    (("LN8",), ln8_no_gain),
    (("LN9",), ln9),
    (("LN9",), ln9_as_published),
    (("LN10",), ln10),
    (("LN10",), ln10_no_eps),
    (("LN11",), ln11),
    (("LN12",), ln12),
    (("LN12",), ln12_eps),
    (("LN12",), ln12_centred),
    (("LN13",), ln13),
    (("LN13",), ln13_eps),
]


# layer_norm, right --------------------------------------------------------------------------------------------------------


def norm_plain(x, gain, bias, eps=1e-5):
    return normalised(x, -1, eps) * gain + bias


def norm_by_hand(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    mean = x.sum(-1, keepdims=True) / d
    variance = ((x - mean) ** 2).sum(-1, keepdims=True) / d
    return gain * ((x - mean) / (variance + eps) ** 0.5) + bias


def norm_mean_of_squares(x, gain, bias, eps=1e-5):
    mean = x.mean(-1, keepdims=True)
    variance = (x**2).mean(-1, keepdims=True) - mean**2
    return (x - mean) / np.sqrt(variance + eps) * gain + bias


def norm_loops(x, gain, bias, eps=1e-5):
    flat = x.reshape(-1, x.shape[-1])
    out = np.zeros_like(flat)
    for row, token in enumerate(flat):
        mean = sum(token) / len(token)
        variance = sum((one - mean) ** 2 for one in token) / len(token)
        for j in range(len(token)):
            out[row, j] = (token[j] - mean) / math.sqrt(variance + eps) * gain[j] + bias[j]
    return out.reshape(x.shape)


def norm_apply(x, gain, bias, eps=1e-5):
    return np.apply_along_axis(lambda token: (token - token.mean()) / np.sqrt(token.var() + eps) * gain + bias, -1, x)


def norm_einsum(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    c = x - np.einsum("...d->...", x)[..., None] / d
    return c / np.sqrt(np.einsum("...d,...d->...", c, c)[..., None] / d + eps) * gain + bias


def norm_centring_matrix(x, gain, bias, eps=1e-5):
    d = x.shape[-1]
    c = x @ (np.eye(d) - np.full((d, d), 1 / d))
    return c * ((c**2).mean(-1, keepdims=True) + eps) ** -0.5 * gain + bias


def norm_in_place(x, gain, bias, eps=1e-5):
    x = x.copy()
    x -= x.mean(axis=-1, keepdims=True)
    x /= np.sqrt((x * x).mean(axis=-1, keepdims=True) + eps)
    x *= gain
    x += bias
    return x


def norm_float32(x, gain, bias, eps=1e-5):
    x, gain, bias = (one.astype(np.float32) for one in (x, gain, bias))
    return normalised(x, -1, np.float32(eps)) * gain + bias


def norm_keywords(*, x, gain, bias, eps=1e-5):
    return norm_plain(x, gain, bias, eps)


def norm_required_eps(x, gamma, beta, epsilon):
    return gamma * normalised(x, x.ndim - 1, epsilon) + beta


def norm_only_matrices(x, gain, bias, eps=1e-5):
    n = x.shape[-2]
    mean, variance = x.mean(-1), x.var(-1)
    rows = [(x[..., i, :] - mean[..., i, None]) / np.sqrt(variance[..., i, None] + eps) for i in range(n)]
    return np.stack(rows, axis=-2) * gain + bias


def norm_torch(x, gain, bias, eps=1e-5):
    import torch

    x, gain, bias = (torch.as_tensor(one) for one in (x, gain, bias))
    c = x - x.mean(dim=-1, keepdim=True)
    return c / torch.sqrt(x.var(dim=-1, keepdim=True, unbiased=False) + eps) * gain + bias


NORM_RIGHT = [
    norm_plain,
    norm_by_hand,
    norm_mean_of_squares,
    norm_loops,
    norm_apply,
    norm_einsum,
    norm_centring_matrix,
    norm_in_place,
    norm_float32,
    norm_keywords,
    norm_required_eps,
    norm_torch,
]


# Two mistakes at once -------------------------------------------------------------------------------------------------------


def swapped_from_one(n_positions, d_model):
    a = np.arange(1, n_positions + 1)[:, None] / 10000 ** (2 * np.arange(d_model // 2) / d_model)
    return woven(np.cos(a), np.sin(a))


def one_frequency_each_sine_only(n_positions, d_model):
    return np.sin(np.arange(n_positions)[:, None] / 10000 ** (np.arange(d_model) / d_model))


def halves_swapped(n_positions, d_model):
    a = angles(n_positions, d_model)
    return np.concatenate([np.cos(a), np.sin(a)], axis=1)


def unscaled_side_by_side(token_ids, table, encoding):
    return np.concatenate([table[token_ids], encoding[: len(token_ids)]], axis=-1)


def unscaled_by_token(token_ids, table, encoding):
    return table[token_ids] + encoding[token_ids]


def only_the_table(token_ids, table, encoding):
    return table[token_ids]


def unbiased_outside(x, gain, bias, eps=1e-5):
    return gain * (x - x.mean(-1, keepdims=True)) / (x.std(-1, keepdims=True, ddof=1) + eps) + bias


def over_positions_no_affine(x, gain, bias, eps=1e-5):
    return normalised(x, -2, eps)


def batch_outside(x, gain, bias, eps=1e-5):
    axis = tuple(range(x.ndim - 1))
    return (x - x.mean(axis)) / (x.std(axis) + eps) * gain + bias


PAIRS = [
    ("positional_encoding", {"PE1", "PE5"}, swapped_from_one),
    ("positional_encoding", {"PE4", "PE11"}, one_frequency_each_sine_only),
    ("positional_encoding", {"PE1", "PE2"}, halves_swapped),
    ("embed", {"EM1", "EM5"}, unscaled_side_by_side),
    ("embed", {"EM1", "EM8"}, unscaled_by_token),
    ("embed", {"EM1", "EM7"}, only_the_table),
    ("layer_norm", {"LN6", "LN7"}, unbiased_outside),
    ("layer_norm", {"LN2", "LN8"}, over_positions_no_affine),
    ("layer_norm", {"LN4", "LN7"}, batch_outside),
]


# Wrong in a way that has no name -------------------------------------------------------------------------------------------


def encoding_a_little_too_large(n_positions, d_model):
    return 1.01 * encoding_woven(n_positions, d_model)


def encoding_with_noise(n_positions, d_model):
    return encoding_woven(n_positions, d_model) + 1e-3 * np.random.default_rng(1).normal(size=(n_positions, d_model))


def encoding_with_much_noise(n_positions, d_model):
    return encoding_woven(n_positions, d_model) + 0.3 * np.random.default_rng(1).normal(size=(n_positions, d_model))


def encoding_exponent_doubled(n_positions, d_model):
    a = angles(n_positions, d_model, exponent=4.0)
    return woven(np.sin(a), np.cos(a))


def encoding_base_too_large(n_positions, d_model):
    a = angles(n_positions, d_model, base=100000.0)
    return woven(np.sin(a), np.cos(a))


def encoding_one_hot(n_positions, d_model):
    return np.eye(n_positions, d_model)


def encoding_zeros(n_positions, d_model):
    return np.zeros((n_positions, d_model))


def encoding_position_itself(n_positions, d_model):
    return np.arange(n_positions, dtype=float)[:, None] + np.zeros((n_positions, d_model))


def encoding_three_mistakes(n_positions, d_model):
    a = np.deg2rad(np.arange(1, n_positions + 1)[:, None] / 1000 ** (2 * np.arange(d_model // 2) / d_model))
    return woven(np.cos(a), np.sin(a))


def encoding_of_length_one(n_positions, d_model):
    x = np.random.default_rng(2).normal(size=(n_positions, d_model))
    return x / np.linalg.norm(x, axis=-1, keepdims=True) * np.sqrt(d_model / 2)


def embed_both_scaled_differently(token_ids, table, encoding):
    return table[token_ids] * 2.0 + encoding[: token_ids.shape[-1]]


def embed_minus(token_ids, table, encoding):
    return table[token_ids] * np.sqrt(table.shape[1]) - encoding[: token_ids.shape[-1]]


def norm_a_little_too_large(x, gain, bias, eps=1e-5):
    return 1.01 * norm_plain(x, gain, bias, eps)


def norm_affine_first(x, gain, bias, eps=1e-5):
    return normalised(x * gain + bias, -1, eps)


def norm_not_centred(x, gain, bias, eps=1e-5):
    return x / np.sqrt(x.var(-1, keepdims=True) + eps) * gain + bias


def norm_absolute(x, gain, bias, eps=1e-5):
    c = x - x.mean(-1, keepdims=True)
    return c / (np.abs(c).mean(-1, keepdims=True) + eps) * gain + bias


UNREGISTERED = [
    ("positional_encoding", encoding_a_little_too_large),
    ("positional_encoding", encoding_with_noise),
    ("positional_encoding", encoding_with_much_noise),
    ("positional_encoding", encoding_exponent_doubled),
    ("positional_encoding", encoding_base_too_large),
    ("positional_encoding", encoding_one_hot),
    ("positional_encoding", encoding_zeros),
    ("positional_encoding", encoding_position_itself),
    ("positional_encoding", encoding_three_mistakes),
    ("positional_encoding", encoding_of_length_one),
    ("embed", embed_both_scaled_differently),
    ("embed", embed_minus),
    ("layer_norm", norm_a_little_too_large),
    ("layer_norm", norm_affine_first),
    ("layer_norm", norm_not_centred),
    ("layer_norm", norm_absolute),
]

POSITIONS_WRONG = {"positional_encoding": ENCODING_WRONG, "embed": EMBED_WRONG}
POSITIONS_RIGHT = {"positional_encoding": ENCODING_RIGHT, "embed": EMBED_RIGHT}
NORMS_WRONG = {"layer_norm": NORM_WRONG}
NORMS_RIGHT = {"layer_norm": NORM_RIGHT}
WRONG = POSITIONS_WRONG | NORMS_WRONG
RIGHT = POSITIONS_RIGHT | NORMS_RIGHT
