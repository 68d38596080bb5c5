"""Right and wrong answers about training, counting and decoding, each written as learners write."""

from __future__ import annotations

import math
from collections import namedtuple

import numpy as np

np.seterr(all="ignore")


def soft(scores, axis=-1):
    e = np.exp(scores - scores.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


# shift_right ------------------------------------------------------------------------------------------------------------


def sr1(labels, bos_id):
    return labels


def sr1_copy(labels, bos_id):
    decoder_input = labels.copy()
    decoder_input[..., :] = labels[..., :]
    return decoder_input


def sr2(labels, bos_id):
    return np.concatenate([labels[1:], [bos_id]])


def sr2_roll(labels, bos_id):
    return np.roll(labels, -1, axis=-1)


def sr2_keeps_last(labels, bos_id):
    out = labels.copy()
    out[..., :-1] = labels[..., 1:]
    return out


def sr3(labels, bos_id):
    return np.concatenate([[bos_id], labels])


def sr3_insert(labels, bos_id):
    return np.insert(labels, 0, bos_id, axis=-1)


def sr4_roll(labels, bos_id):
    return np.roll(labels, 1, axis=-1)


def sr4_flat_roll(labels, bos_id):
    return np.roll(labels, 1)


def sr4_eos(labels, bos_id, eos_id=2):
    return np.concatenate([[eos_id], labels[:-1]])


def sr5(labels, bos_id):
    shifted = np.zeros_like(labels)
    shifted[..., 1:] = labels[..., :-1]
    return shifted


def sr5_pad(labels, bos_id):
    return np.pad(labels, (1, 0))[:-1]


def sr6(labels, bos_id):
    return labels[..., ::-1]


def sr6_with_start(labels, bos_id):
    return np.array([bos_id, *list(labels)[::-1][:-1]])


def sr7(labels, bos_id):
    return np.concatenate([[bos_id, bos_id], labels[:-2]])


def sr7_slices(labels, bos_id):
    shifted = np.full_like(labels, bos_id)
    shifted[..., 2:] = labels[..., :-2]
    return shifted


def shift_slices(labels, bos_id):
    shifted = np.empty_like(labels)
    shifted[..., 0] = bos_id
    shifted[..., 1:] = labels[..., :-1]
    return shifted


def shift_full(labels, bos_id):
    shifted = np.full(labels.shape, bos_id)
    shifted[..., 1:] = labels[..., :-1]
    return shifted


def shift_roll(labels, bos_id):
    shifted = np.roll(labels, 1, axis=-1)
    shifted[..., 0] = bos_id
    return shifted


def shift_concatenate(labels, bos_id):
    start = np.full((*labels.shape[:-1], 1), bos_id)
    return np.concatenate([start, labels[..., :-1]], axis=-1)


def shift_in_place(labels, bos_id):
    labels = np.array(labels)
    labels[..., 1:] = labels[..., :-1].copy()
    labels[..., 0] = bos_id
    return labels


def shift_insert(labels, bos_id):
    return np.insert(labels, 0, bos_id, axis=-1)[..., :-1]


def shift_loops(labels, bos_id):
    def one(row):
        return [bos_id, *row[:-1]]

    return np.array([one(row) for row in labels] if labels.ndim == 2 else one(labels))


def shift_names(*, labels, bos_id):
    return np.concatenate([np.broadcast_to(bos_id, labels[..., :1].shape), labels], -1)[..., : labels.shape[-1]]


def shift_float(labels, bos_id):
    shifted = np.zeros(labels.shape)
    shifted[..., 0], shifted[..., 1:] = bos_id, labels[..., :-1]
    return shifted


def shift_where(labels, bos_id):
    return np.where(np.arange(labels.shape[-1]) == 0, bos_id, np.roll(labels, 1, axis=-1))


def shift_torch(labels, bos_id):
    import torch

    labels = torch.as_tensor(labels)
    shifted = labels.new_full(labels.shape, bos_id)
    shifted[..., 1:] = labels[..., :-1]
    return shifted


SHIFT_WRONG = [
    (("SR1",), sr1),
    (("SR1",), sr1_copy),
    (("SR2",), sr2),
    (("SR2",), sr2_roll),
    (("SR2",), sr2_keeps_last),
    (("SR3",), sr3),
    (("SR3",), sr3_insert),
    (("SR4",), sr4_roll),
    (("SR4",), sr4_flat_roll),
    (("SR4",), sr4_eos),
    (("SR5",), sr5),
    (("SR5",), sr5_pad),
    (("SR6",), sr6),
    (("SR6",), sr6_with_start),
    (("SR7",), sr7),
    (("SR7",), sr7_slices),
]
SHIFT_RIGHT = [
    shift_slices, shift_full, shift_roll, shift_concatenate, shift_in_place, shift_insert, shift_loops, shift_names, shift_float,
    shift_where, shift_torch,
]  # fmt: skip

# label_smoothing --------------------------------------------------------------------------------------------------------


def ls1(targets, vocab_size, epsilon):
    return np.eye(vocab_size)[targets]


def ls1_integers(targets, vocab_size, epsilon):
    one_hot = np.zeros((*targets.shape, vocab_size), dtype=int)
    np.put_along_axis(one_hot, targets[..., None], 1, axis=-1)
    return one_hot


def ls2(targets, vocab_size, epsilon):
    return epsilon * np.eye(vocab_size)[targets] + (1 - epsilon) / vocab_size


def ls2_shared(targets, vocab_size, epsilon):
    return np.where(np.eye(vocab_size)[targets] == 1, epsilon, (1 - epsilon) / (vocab_size - 1))


def ls3(targets, vocab_size, epsilon):
    return np.eye(vocab_size)[targets] + epsilon


def ls3_not_divided(targets, vocab_size, epsilon):
    return (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon


def ls3_nothing_taken(targets, vocab_size, epsilon):
    return np.eye(vocab_size)[targets] + epsilon / vocab_size


def ls4(targets, vocab_size, epsilon):
    out = np.full((*targets.shape, vocab_size), epsilon / (vocab_size - 1))
    np.put_along_axis(out, targets[..., None], 1 - epsilon, axis=-1)
    return out


def ls4_formula(targets, vocab_size, epsilon):
    one_hot = np.eye(vocab_size)[targets]
    return (1 - epsilon) * one_hot + epsilon / (vocab_size - 1) * (1 - one_hot)


def ls5(targets, vocab_size, epsilon):
    return (1 - epsilon) * np.eye(vocab_size)[targets]


def ls5_where(targets, vocab_size, epsilon):
    return np.where(np.arange(vocab_size) == targets[..., None], 1 - epsilon, 0.0)


def ls6(targets, vocab_size, epsilon):
    return np.ones((*targets.shape, vocab_size)) / vocab_size


def ls6_average(targets, vocab_size, epsilon):
    return np.repeat(np.eye(vocab_size)[targets].mean(axis=-1, keepdims=True), vocab_size, axis=-1)


def smooth_eye(targets, vocab_size, epsilon):
    return (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon / vocab_size


def smooth_fill(targets, vocab_size, epsilon):
    out = np.full((*targets.shape, vocab_size), epsilon / vocab_size)
    np.put_along_axis(out, targets[..., None], 1 - epsilon + epsilon / vocab_size, axis=-1)
    return out


def smooth_where(targets, vocab_size, epsilon):
    gold = np.arange(vocab_size) == targets[..., None]
    return np.where(gold, 1 - epsilon, 0.0) + epsilon / vocab_size


def smooth_mixture(targets, vocab_size, epsilon):
    uniform = np.ones(vocab_size) / vocab_size
    return (1 - epsilon) * np.eye(vocab_size)[targets] + epsilon * uniform


def smooth_loops(targets, vocab_size, epsilon):
    flat = []
    for target in np.ravel(targets):
        row = [epsilon / vocab_size] * vocab_size
        row[target] += 1 - epsilon
        flat.append(row)
    return np.array(flat).reshape(*np.shape(targets), vocab_size)


def smooth_lists(targets, vocab_size, epsilon):
    if np.ndim(targets) > 0:
        return [smooth_lists(one, vocab_size, epsilon) for one in targets]
    return [(1 - epsilon) * (one == targets) + epsilon / vocab_size for one in range(vocab_size)]


def smooth_float32(targets, vocab_size, epsilon):
    one_hot = np.eye(vocab_size, dtype=np.float32)[targets]
    return np.float32(1 - epsilon) * one_hot + np.float32(epsilon / vocab_size)


def smooth_in_place(targets, vocab_size, epsilon):
    out = np.eye(vocab_size)[targets]
    out *= 1 - epsilon
    out += epsilon / vocab_size
    return out


def smooth_other_order(targets, vocab_size, epsilon=0.1):
    one_hot = np.identity(vocab_size)[targets]
    return one_hot - epsilon * (one_hot - 1 / vocab_size)


def smooth_einsum(targets, vocab_size, epsilon):
    matrix = (1 - epsilon) * np.eye(vocab_size) + epsilon / vocab_size
    return np.einsum("...i,ij->...j", np.eye(vocab_size)[targets], matrix)


def smooth_torch(targets, vocab_size, epsilon):
    import torch

    one_hot = torch.nn.functional.one_hot(torch.as_tensor(targets), vocab_size).double()
    return one_hot * (1 - epsilon) + epsilon / vocab_size


SMOOTHING_WRONG = [
    (("LS1",), ls1),
    (("LS1",), ls1_integers),
    (("LS2",), ls2),
    (("LS2",), ls2_shared),
    (("LS3",), ls3),
    (("LS3",), ls3_not_divided),
    (("LS3",), ls3_nothing_taken),
    (("LS4",), ls4),
    (("LS4",), ls4_formula),
    (("LS5",), ls5),
    (("LS5",), ls5_where),
    (("LS6",), ls6),
    (("LS6",), ls6_average),
]
SMOOTHING_RIGHT = [
    smooth_eye, smooth_fill, smooth_where, smooth_mixture, smooth_loops, smooth_lists, smooth_float32, smooth_in_place,
    smooth_other_order, smooth_einsum, smooth_torch,
]  # fmt: skip

# masked_cross_entropy ---------------------------------------------------------------------------------------------------


def log_p(logits, targets):
    return np.take_along_axis(np.log(soft(logits)), targets[..., None], axis=-1)[..., 0]


def ce1(logits, targets, real):
    return -log_p(logits, targets).mean()


def ce1_total(logits, targets, real):
    return -log_p(logits, targets).sum() / real.sum()


def ce2(logits, targets, real):
    return -(log_p(logits, targets) * real).mean()


def ce2_where(logits, targets, real):
    losses = np.where(real, -log_p(logits, targets), 0.0)
    return losses.sum() / losses.size


def ce3(logits, targets, real):
    return -log_p(logits, targets)[real].sum()


def ce3_product(logits, targets, real):
    return float(-(log_p(logits, targets) * real).sum())


def ce4(logits, targets, real):
    return -log_p(soft(logits), targets)[real].mean()


def ce4_log_softmax(logits, targets, real):
    p = np.exp(logits) / np.exp(logits).sum(-1, keepdims=True)
    p = p - np.log(np.exp(p).sum(-1, keepdims=True))
    return -np.take_along_axis(p, targets[..., None], -1)[..., 0][real].mean()


def ce5(logits, targets, real):
    return log_p(logits, targets)[real].mean()


def ce5_sum(logits, targets, real):
    return (log_p(logits, targets) * real).sum() / real.sum()


def ce6(logits, targets, real):
    p = np.take_along_axis(soft(logits), targets[..., None], axis=-1)[..., 0]
    return -np.log2(p[real]).mean()


def ce6_divided(logits, targets, real):
    return -(log_p(logits, targets)[real] / np.log(2)).mean()


def ce7(logits, targets, real):
    return -np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0][real].mean()


def ce7_loop(logits, targets, real):
    picked = [logits[i, t] for i, t in enumerate(targets) if real[i]]
    return -sum(picked) / len(picked)


def ce_log_sum_exp(logits, targets, real):
    z = logits - logits.max(axis=-1, keepdims=True)
    z = z - np.log(np.exp(z).sum(axis=-1, keepdims=True))
    return -np.take_along_axis(z, targets[..., None], -1)[..., 0][real].mean()


def ce_softmax_log(logits, targets, real):
    return -log_p(logits, targets)[real].mean()


def ce_one_hot(logits, targets, real):
    losses = -(np.eye(logits.shape[-1])[targets] * np.log(soft(logits))).sum(-1)
    return (losses * real).sum() / real.sum()


def ce_average(logits, targets, real):
    return np.average(-log_p(logits, targets), weights=real)


def ce_loops(logits, targets, real):
    total, count = 0.0, 0
    for row, target, counts in zip(logits.reshape(-1, logits.shape[-1]), targets.ravel(), real.ravel(), strict=True):
        if counts:
            largest = max(row)
            total += math.log(sum(math.exp(one - largest) for one in row)) + largest - row[target]
            count += 1
    return total / count


def ce_select_first(logits, targets, real):
    z, t = logits[real], targets[real]
    z = z - z.max(1, keepdims=True)
    return np.mean(np.log(np.exp(z).sum(1)) - z[np.arange(len(t)), t])


def ce_small_constant(logits, targets, real):
    p = np.take_along_axis(soft(logits), targets[..., None], axis=-1)[..., 0]
    return -np.sum(np.log(p + 1e-7) * real) / np.sum(real)


def ce_float32(logits, targets, real):
    return np.float32(ce_log_sum_exp(logits.astype(np.float32), targets, real))


def ce_einsum(logits, targets, real):
    one_hot = np.eye(logits.shape[-1])[targets]
    return -np.einsum("...v,...v,...->...", one_hot, np.log(soft(logits)), real / real.sum()).sum()


def ce_names(*, logits, targets, real):
    return np.array(ce_log_sum_exp(logits, targets, real))


def ce_masked_array(logits, targets, real):
    return float(np.ma.masked_array(-log_p(logits, targets), mask=~real).mean())


def ce_torch(logits, targets, real):
    import torch

    real = torch.as_tensor(real)
    return torch.nn.functional.cross_entropy(torch.as_tensor(logits)[real], torch.as_tensor(targets)[real])


LOSS_WRONG = [
    (("CE1",), ce1),
    (("CE1",), ce1_total),
    (("CE2",), ce2),
    (("CE2",), ce2_where),
    (("CE3",), ce3),
    (("CE3",), ce3_product),
    (("CE4",), ce4),
    (("CE4",), ce4_log_softmax),
    (("CE5",), ce5),
    (("CE5",), ce5_sum),
    (("CE6",), ce6),
    (("CE6",), ce6_divided),
    (("CE7",), ce7),
    (("CE7",), ce7_loop),
]
LOSS_RIGHT = [
    ce_log_sum_exp, ce_softmax_log, ce_one_hot, ce_average, ce_loops, ce_select_first, ce_small_constant, ce_float32, ce_einsum,
    ce_names, ce_masked_array, ce_torch,
]  # fmt: skip

# noam_learning_rate -----------------------------------------------------------------------------------------------------


def lr1(step, d_model, warmup=4000):
    return d_model**-0.5 * step**-0.5


def lr1_root(step, d_model, warmup=4000):
    return 1 / math.sqrt(d_model * step)


def lr2(step, d_model, warmup=4000):
    return d_model**-0.5 * max(step**-0.5, step * warmup**-1.5)


def lr2_maximum(step, d_model, warmup=4000):
    return np.maximum(step**-0.5, step / warmup**1.5) / np.sqrt(d_model)


def lr3(step, d_model, warmup=4000):
    return d_model**-0.5 * min(step, warmup) * warmup**-1.5


def lr3_branches(step, d_model, warmup=4000):
    peak = (d_model * warmup) ** -0.5
    return peak * step / warmup if step < warmup else peak


def lr4(step, d_model, warmup=4000):
    return d_model**-0.5 * min(1 / step, step * warmup**-1.5)


def lr4_from_the_peak(step, d_model, warmup=4000):
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, warmup / step)


def lr5(step, d_model, warmup=4000):
    return d_model**0.5 * min(step**-0.5, step * warmup**-1.5)


def lr5_root(step, d_model, warmup=4000):
    return math.sqrt(d_model) * min(1 / math.sqrt(step), step / warmup**1.5)


def lr6(step, d_model, warmup=4000):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-0.5)


def lr6_root(step, d_model, warmup=4000):
    return min(1 / math.sqrt(step), step / math.sqrt(warmup)) / math.sqrt(d_model)


def lr7(step, d_model, warmup=4000):
    peak = (d_model * warmup) ** -0.5
    if step < warmup:
        return peak * step / warmup
    return peak * max(0.0, (100_000 - step) / (100_000 - warmup))


def lr8(step, d_model, warmup=4000):
    return min(step**-0.5, step * warmup**-1.5)


def lr8_unused(step, d_model, warmup=4000):
    return np.minimum(1 / np.sqrt(step), step / warmup**1.5)


def rate_min(step, d_model, warmup=4000):
    return d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)


def rate_minimum(step, d_model, warmup=4000):
    return np.minimum(1 / np.sqrt(step), step / warmup**1.5) / np.sqrt(d_model)


def rate_branches(step, d_model, warmup=4000):
    if step <= warmup:
        return step / (math.sqrt(d_model) * warmup * math.sqrt(warmup))
    return 1 / math.sqrt(d_model * step)


def rate_peak(step, d_model, warmup=4000):
    peak = (d_model * warmup) ** -0.5
    return peak * min(step / warmup, (warmup / step) ** 0.5)


def rate_logarithm(step, d_model, warmup=4000):
    return math.exp(-0.5 * math.log(d_model) + min(-0.5 * math.log(step), math.log(step) - 1.5 * math.log(warmup)))


def rate_array(step, d_model, warmup=4000):
    return np.array([step**-0.5, step * warmup**-1.5]).min() * np.float64(d_model) ** -0.5


def rate_sorted(step, d_model, warmup=4000):
    return sorted([step**-0.5, step * warmup**-1.5])[0] / d_model**0.5


def rate_names(*, step, d_model, warmup=4000):
    return np.power(float(d_model), -0.5) * min(np.power(float(step), -0.5), step * np.power(float(warmup), -1.5))


def rate_other_names(t, width, w=4000):
    return width**-0.5 * (t**-0.5 if t > w else t * w**-1.5)


def rate_float32(step, d_model, warmup=4000):
    step, d_model, warmup = np.float32(step), np.float32(d_model), np.float32(warmup)
    return min(step ** np.float32(-0.5), step * warmup ** np.float32(-1.5)) * d_model ** np.float32(-0.5)


def rate_torch(step, d_model, warmup=4000):
    import torch

    step = torch.tensor(float(step), dtype=torch.float64)
    return d_model**-0.5 * torch.minimum(step.rsqrt(), step * warmup**-1.5)


SCHEDULE_WRONG = [
    (("LR1",), lr1),
    (("LR1",), lr1_root),
    (("LR2",), lr2),
    (("LR2",), lr2_maximum),
    (("LR3",), lr3),
    (("LR3",), lr3_branches),
    (("LR4",), lr4),
    (("LR4",), lr4_from_the_peak),
    (("LR5",), lr5),
    (("LR5",), lr5_root),
    (("LR6",), lr6),
    (("LR6",), lr6_root),
    (("LR7",), lr7),
    (("LR8",), lr8),
    (("LR8",), lr8_unused),
]
SCHEDULE_RIGHT = [
    rate_min, rate_minimum, rate_branches, rate_peak, rate_logarithm, rate_array, rate_sorted, rate_names, rate_other_names,
    rate_float32, rate_torch,
]  # fmt: skip

# parameter_count --------------------------------------------------------------------------------------------------------


def parts(d, d_ff, h, d_k, biases):
    """(queries and keys, values, output, feed-forward, norm) of one of each."""
    b, v = int(biases), d // h
    k = v if d_k is None else d_k
    return 2 * (d + b) * h * k, (d + b) * h * v, (h * v + b) * d, 2 * d * d_ff + d_ff + d, 2 * d


def pc1(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, _, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    return n_layers * (3 * (qk + v) + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc1_keeps_bias(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return pc1(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 3 * n_layers * d_model * int(biases)


def pc2(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    return n_layers * (3 * n_heads * (qk + v + o) + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc2_weights(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, _, _ = parts(d_model, d_ff, n_heads, d_k, False)
    right = count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases)
    return right + 3 * n_layers * (n_heads - 1) * (qk + v + o)


def pc2_full_heads(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    attention = n_heads * qk + n_heads * v + o
    return n_layers * (3 * attention + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc3(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    return 2 * n_layers * (qk + v + o + ffn + 2 * norm) + vocab_size * d_model


def pc3_three_norms(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    return n_layers * (2 * (qk + v + o) + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc4(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, _, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    ffn = d_model * d_ff + d_ff + d_model
    return n_layers * (3 * (qk + v + o) + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc4_inner_only(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, _, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    ffn = (d_model + 1) * d_ff
    return n_layers * (3 * (qk + v + o) + 2 * ffn + 5 * norm) + vocab_size * d_model


def pc5(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 2 * vocab_size * d_model


def pc5_three_terms(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    source = target = output = vocab_size * d_model
    return count_parts(d_model, d_ff, n_layers, 0, n_heads, d_k, biases) + source + target + output


def pc6(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 5000 * d_model


def pc6_short(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size + 512, n_heads, d_k, biases)


def pc7(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, _ = parts(d_model, d_ff, n_heads, d_k, biases)
    encoder, decoder = qk + v + o + ffn, 2 * (qk + v + o) + ffn
    return n_layers * (encoder + decoder) + vocab_size * d_model


def pc8_attention(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, False)


def pc8_feed_forward(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) - 2 * n_layers * (d_ff + d_model)


def pc8_all(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return pc8_feed_forward(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, False)


def count_parts(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
    encoder, decoder = qk + v + o + ffn + 2 * norm, 2 * (qk + v + o) + ffn + 3 * norm
    return n_layers * (encoder + decoder) + vocab_size * d_model


def count_matrices(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    d_v = d_model // n_heads
    k = (d_k or d_v) * n_heads
    shapes = []
    for _ in range(3 * n_layers):
        shapes += [(d_model, k), (d_model, k), (d_model, d_model), (d_model, d_model)]
        if biases:
            shapes += [(k,), (k,), (d_model,), (d_model,)]
    for _ in range(2 * n_layers):
        shapes += [(d_model, d_ff), (d_ff,), (d_ff, d_model), (d_model,)]
    shapes += 5 * n_layers * [(d_model,), (d_model,)]
    return sum(int(np.prod(shape)) for shape in shapes) + vocab_size * d_model


def count_formula(d, f, n, v, h=8, d_k=None, biases=True):
    k = d // h if d_k is None else d_k
    attention = 2 * d * h * k + 2 * d * d + (2 * h * k + 2 * d if biases else 0)
    return n * (3 * attention + 2 * (2 * d * f + f + d) + 10 * d) + v * d


def count_loops(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    total = vocab_size * d_model
    for _ in range(n_layers):
        for attentions, norms in ((1, 2), (2, 3)):
            qk, v, o, ffn, norm = parts(d_model, d_ff, n_heads, d_k, biases)
            total += attentions * (qk + v + o) + ffn + norms * norm
    return total


def count_float(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return float(count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases))


def count_numpy(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    qk, v, o, ffn, norm = np.array(parts(d_model, d_ff, n_heads, d_k, biases), dtype=np.int64)
    return np.dot([3 * n_layers, 2 * n_layers, 5 * n_layers, 1], [qk + v + o, ffn, norm, vocab_size * d_model])


def count_division(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    d_v = d_model / n_heads
    d_k = d_v if d_k is None else d_k
    attention = 2 * n_heads * d_k * (d_model + biases) + 2 * d_model * (n_heads * d_v + biases)
    return n_layers * (3 * attention + 4 * d_model * d_ff + 2 * d_ff + 12 * d_model) + vocab_size * d_model


def count_names(*, d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return np.array(count_formula(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases))


def count_helpers(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    def linear(a, b, bias=True):
        return a * b + (b if bias else 0)

    k = n_heads * (d_k if d_k is not None else d_model // n_heads)
    attention = 2 * linear(d_model, k, biases) + 2 * linear(d_model, d_model, biases)
    feed_forward = linear(d_model, d_ff) + linear(d_ff, d_model)
    return n_layers * (3 * attention + 2 * feed_forward + 5 * 2 * d_model) + vocab_size * d_model


def count_all_at_once(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True, **_):
    return sum(count_formula(d_model, d_ff, 1, 0, n_heads, d_k, biases) for _ in range(n_layers)) + sum([vocab_size] * d_model)


COUNT_WRONG = [
    (("PC1",), pc1),
    (("PC1",), pc1_keeps_bias),
    (("PC2",), pc2),
    (("PC2",), pc2_weights),
    (("PC2",), pc2_full_heads),
    (("PC3",), pc3),
    (("PC3",), pc3_three_norms),
    (("PC4",), pc4),
    (("PC4",), pc4_inner_only),
    (("PC5",), pc5),
    (("PC5",), pc5_three_terms),
    (("PC6",), pc6),
    (("PC6",), pc6_short),
    (("PC7",), pc7),
    (("PC8",), pc8_attention),
    (("PC8",), pc8_feed_forward),
    (("PC8",), pc8_all),
]
COUNT_RIGHT = [
    count_parts, count_matrices, count_formula, count_loops, count_float, count_numpy, count_division, count_names, count_helpers,
    count_all_at_once,
]  # fmt: skip

# attention_cost, layer_cost ---------------------------------------------------------------------------------------------

Costs = namedtuple("Costs", "scores weighted_sum")


def co1(n, d_model):
    return n * d_model, n * d_model


def co1_scores(n, d_model):
    return n * d_model, n * n * d_model


def co2(n, d_model):
    return n * d_model**2, n * d_model**2


def co2_sum(n, d_model):
    return n**2 * d_model, n * d_model * d_model


def co3(n, d_model):
    return n**3 * d_model, n**3 * d_model


def co3_bare(n, d_model):
    return Costs(n**3, n**3)


def cost_plain(n, d_model):
    return n * n * d_model, n * n * d_model


def cost_named(n, d_model):
    return Costs(scores=n**2 * d_model, weighted_sum=n**2 * d_model)


def cost_dict(n, d_model):
    return {"weighted_sum": n * n * d_model, "scores": n * n * d_model}


def cost_list(n, d_model):
    return [n * n * d_model] * 2


def cost_float(n, d_model):
    return float(n) ** 2 * d_model, float(n) ** 2 * d_model


def cost_numpy(n, d_model):
    return np.prod([n, n, d_model]), np.int64(n) * n * d_model


def cost_loops(n, d_model):
    count = 0
    for _ in range(min(n, 50)):
        count += d_model
    per_pair = count // min(n, 50)
    return per_pair * n * n, per_pair * n * n


def cost_names(*, n, d_model):
    return n**2 * d_model, n**2 * d_model


def cost_other_names(length, width):
    pairs = length * length
    return pairs * width, width * pairs


def cost_shapes(n, d_model):
    def product(a, b):
        return a[0] * a[1] * b[1]

    return product((n, d_model), (d_model, n)), product((n, n), (n, d_model))


def cost_star(*sizes):
    n, d = sizes
    return tuple(n * n * d for _ in range(2))


COST_WRONG = [
    (("CO1",), co1),
    (("CO1",), co1_scores),
    (("CO2",), co2),
    (("CO2",), co2_sum),
    (("CO3",), co3),
    (("CO3",), co3_bare),
]
COST_RIGHT = [
    cost_plain, cost_named, cost_dict, cost_list, cost_float, cost_numpy, cost_loops, cost_names, cost_other_names, cost_shapes,
    cost_star,
]  # fmt: skip


class Layered:
    """An attention's cost, right or wrong, with the two terms of a layer around it: can be sent to another process."""

    def __init__(self, attention):
        self.attention = attention
        self.__name__ = f"layer_{attention.__name__}"

    def __call__(self, n, d_model, d_ff):
        terms = self.attention(n=n, d_model=d_model) if self.attention is cost_names else self.attention(n, d_model)
        terms = (terms["scores"], terms["weighted_sum"]) if isinstance(terms, dict) else terms
        return 4 * n * d_model**2, *terms, 2 * n * d_model * d_ff


LAYER_WRONG = [(keys, Layered(function)) for keys, function in COST_WRONG]
LAYER_RIGHT = [Layered(function) for function in COST_RIGHT]

# cached_decoding --------------------------------------------------------------------------------------------------------


def decode(x, projections, remember):
    """Token by token; ``remember(keys, values, key, value)`` gives the cache that the token attends to."""
    w_q, w_k, w_v, w_o = projections
    keys = values = np.zeros((*x.shape[:-2], 0, x.shape[-1]))
    output, weights = np.zeros(x.shape), np.zeros((*x.shape[:-1], x.shape[-2]))
    for t in range(x.shape[-2]):
        token = x[..., t : t + 1, :]
        keys, values = remember(keys, values, token @ w_k, token @ w_v)
        row = soft(token @ w_q @ keys.swapaxes(-1, -2) / x.shape[-1] ** 0.5)
        output[..., t : t + 1, :] = row @ values @ w_o
        weights[..., t : t + 1, : row.shape[-1]] = row
    return output, weights


def both(keys, values, key, value):
    return np.concatenate([keys, key], axis=-2), np.concatenate([values, value], axis=-2)


def kv1(x, projections):
    return decode(x, projections, lambda keys, values, key, value: (key, value))


def kv1_diagonal(x, projections):
    _, _, w_v, w_o = projections
    n = x.shape[-2]
    return x @ w_v @ w_o, np.broadcast_to(np.eye(n), (*x.shape[:-1], n))


def kv3(x, projections):
    w_q, w_k, w_v, w_o = projections
    n, d = x.shape[-2:]
    keys, values = [], []
    output, weights = np.zeros(x.shape), np.zeros((n, n))
    for t in range(n):
        if keys:
            row = soft(x[t] @ w_q @ np.array(keys).T / np.sqrt(d))
            output[t], weights[t, :t] = row @ np.array(values) @ w_o, row
        keys.append(x[t] @ w_k)
        values.append(x[t] @ w_v)
    return output, weights


def kv3_no_guard(x, projections):
    w_q, w_k, w_v, w_o = projections
    n, d = x.shape
    keys, values = np.zeros((0, d)), np.zeros((0, d))
    output, weights = np.zeros((n, d)), np.zeros((n, n))
    for t in range(n):
        e = np.exp(x[t] @ w_q @ keys.T / np.sqrt(d))
        weights[t, :t] = e / e.sum()
        output[t] = weights[t, :t] @ values @ w_o
        keys, values = np.vstack([keys, x[t] @ w_k]), np.vstack([values, x[t] @ w_v])
    return output, weights


def kv4(x, projections):
    def overwritten(keys, values, key, value):
        keys, values = both(keys, values, key, value)
        keys[..., :, :] = key
        return keys, values

    return decode(x, projections, overwritten)


def kv4_first_place(x, projections):
    w_q, w_k, w_v, w_o = projections
    n, d = x.shape[-2:]
    keys, values = np.zeros(x.shape), np.zeros(x.shape)
    output, weights = np.zeros(x.shape), np.zeros((*x.shape[:-1], n))
    for t in range(n):
        keys[..., 0, :] = x[..., t, :] @ w_k
        values[..., t, :] = x[..., t, :] @ w_v
        row = soft((x[..., t : t + 1, :] @ w_q) @ keys[..., : t + 1, :].swapaxes(-1, -2) / np.sqrt(d))
        output[..., t : t + 1, :] = row @ values[..., : t + 1, :] @ w_o
        weights[..., t : t + 1, : t + 1] = row
    return output, weights


def kv5(x, projections):
    def window(keys, values, key, value):
        return tuple(one[..., -2:, :] for one in both(keys, values, key, value))

    return decode(x, projections, window)


def kv5_true_places(x, projections, width=2):
    w_q, w_k, w_v, w_o = projections
    n = x.shape[-2]
    band = np.tri(n, dtype=bool) & ~np.tri(n, k=-width, dtype=bool)
    scores = (x @ w_q) @ (x @ w_k).swapaxes(-1, -2) / np.sqrt(x.shape[-1])
    weights = soft(np.where(band, scores, -np.inf))
    return weights @ (x @ w_v) @ w_o, weights


def kv_concatenate(x, projections):
    return decode(x, projections, both)


def kv_full_pass(x, projections):
    w_q, w_k, w_v, w_o = projections
    n = x.shape[-2]
    scores = (x @ w_q) @ (x @ w_k).swapaxes(-1, -2) / np.sqrt(x.shape[-1])
    weights = soft(np.where(np.tri(n, dtype=bool), scores, -np.inf))
    return weights @ (x @ w_v) @ w_o, weights


def kv_lists(x, projections):
    if x.ndim == 3:
        return tuple(np.stack(part) for part in zip(*(kv_lists(one, projections) for one in x), strict=True))
    w_q, w_k, w_v, w_o = projections
    keys, values, outputs, rows = [], [], [], []
    for token in x:
        keys.append(token @ w_k)
        values.append(token @ w_v)
        row = soft(np.array([token @ w_q @ key for key in keys]) / len(token) ** 0.5)
        outputs.append(sum(w * v for w, v in zip(row, values, strict=True)) @ w_o)
        rows.append([*row, *[0.0] * (len(x) - len(row))])
    return np.array(outputs), np.array(rows)


def kv_allocated(x, projections):
    w_q, w_k, w_v, w_o = projections
    n, d = x.shape[-2:]
    keys, values, output = np.empty_like(x), np.empty_like(x), np.empty_like(x)
    weights = np.zeros((*x.shape[:-1], n))
    for t in range(n):
        keys[..., t, :], values[..., t, :] = x[..., t, :] @ w_k, x[..., t, :] @ w_v
        scores = np.einsum("...d,...kd->...k", x[..., t, :] @ w_q, keys[..., : t + 1, :]) / np.sqrt(d)
        weights[..., t, : t + 1] = soft(scores)
        output[..., t, :] = np.einsum("...k,...kd->...d", weights[..., t, : t + 1], values[..., : t + 1, :]) @ w_o
    return output, weights


def kv_named(x, projections):
    keys, values = x @ projections.w_k, x @ projections.w_v
    output, weights = np.zeros_like(x), np.zeros((*x.shape[:-1], x.shape[-2]))
    for t in range(x.shape[-2]):
        query = x[..., [t], :] @ projections.w_q
        row = soft(query @ np.moveaxis(keys[..., : t + 1, :], -1, -2) / x.shape[-1] ** 0.5)
        weights[..., [t], : t + 1] = row
        output[..., [t], :] = row @ values[..., : t + 1, :]
    return {"weights": weights, "output": output @ projections.w_o}


def kv_float32(x, projections):
    return kv_concatenate(x.astype(np.float32), [one.astype(np.float32) for one in projections])


def kv_keywords(*, x, projections):
    output, weights = kv_allocated(x, projections)
    return [output, weights]


def kv_other_names(tokens, matrices):
    return kv_concatenate(tokens, matrices)


def kv_scaled_queries(x, projections):
    w_q, w_k, w_v, w_o = projections
    return kv_concatenate(x, (w_q, w_k, w_v @ w_o, np.eye(x.shape[-1])))


def kv_in_place(x, projections):
    w_q, w_k, w_v, w_o = (one.copy() for one in projections)
    w_q /= x.shape[-1] ** 0.5
    w_q *= x.shape[-1] ** 0.5
    return kv_full_pass(x, (w_q, w_k, w_v, w_o))


def kv_torch(x, projections):
    import torch

    x = torch.as_tensor(x)
    w_q, w_k, w_v, w_o = (torch.as_tensor(one) for one in projections)
    n = x.shape[-2]
    scores = (x @ w_q) @ (x @ w_k).mT / x.shape[-1] ** 0.5
    weights = scores.masked_fill(~torch.ones(n, n, dtype=torch.bool).tril(), float("-inf")).softmax(-1)
    return weights @ (x @ w_v) @ w_o, weights


DECODING_WRONG = [
    (("KV1",), kv1),
    (("KV1",), kv1_diagonal),
    (("KV3",), kv3),
    (("KV3",), kv3_no_guard),
    (("KV4",), kv4),
    (("KV4",), kv4_first_place),
    (("KV5",), kv5),
    (("KV5",), kv5_true_places),
]
DECODING_RIGHT = [
    kv_concatenate, kv_full_pass, kv_lists, kv_allocated, kv_named, kv_float32, kv_keywords, kv_other_names, kv_scaled_queries,
    kv_in_place, kv_torch,
]  # fmt: skip

# Two at once ------------------------------------------------------------------------------------------------------------


def ce2_ce5(logits, targets, real):
    return (log_p(logits, targets) * real).mean()


def ce1_ce6(logits, targets, real):
    return -(log_p(logits, targets) / np.log(2)).mean()


def ce3_ce7(logits, targets, real):
    return -np.take_along_axis(logits, targets[..., None], axis=-1)[..., 0][real].sum()


def lr1_lr8(step, d_model, warmup=4000):
    return step**-0.5


def lr2_lr5(step, d_model, warmup=4000):
    return d_model**0.5 * max(step**-0.5, step * warmup**-1.5)


def lr3_lr8(step, d_model, warmup=4000):
    return min(step, warmup) * warmup**-1.5


def pc1_pc5(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return pc1(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 2 * vocab_size * d_model


def pc6_pc7(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return pc7(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 5000 * d_model


def co1_co2(n, d_model):
    return n * d_model, n * d_model**2


def sr3_sr5(labels, bos_id):
    return np.concatenate([[0], labels])


def kv1_kv4_like(x, projections):  # the cache holds two, and the keys are overwritten
    def window(keys, values, key, value):
        keys, values = (one[..., -2:, :] for one in both(keys, values, key, value))
        return np.broadcast_to(key, keys.shape), values

    return decode(x, projections, window)


PAIRS = [
    ("masked_cross_entropy", {"CE2", "CE5"}, ce2_ce5),
    ("masked_cross_entropy", {"CE1", "CE6"}, ce1_ce6),
    ("masked_cross_entropy", {"CE3", "CE7"}, ce3_ce7),
    ("noam_learning_rate", {"LR1", "LR8"}, lr1_lr8),
    ("noam_learning_rate", {"LR2", "LR5"}, lr2_lr5),
    ("noam_learning_rate", {"LR3", "LR8"}, lr3_lr8),
    ("parameter_count", {"PC1", "PC5"}, pc1_pc5),
    ("parameter_count", {"PC6", "PC7"}, pc6_pc7),
    ("attention_cost", {"CO1", "CO2"}, co1_co2),
    ("layer_cost", {"CO1", "CO2"}, Layered(co1_co2)),
    ("shift_right", {"SR3", "SR5"}, sr3_sr5),
    ("cached_decoding", {"KV4", "KV5"}, kv1_kv4_like),
]

# Wrong in a way of its own ----------------------------------------------------------------------------------------------


def shift_drops_the_first(labels, bos_id):
    return np.concatenate([[bos_id], labels[1:]])


def smoothed_half(targets, vocab_size, epsilon):
    return (1 - epsilon / 2) * np.eye(vocab_size)[targets] + epsilon / 2 / vocab_size


def smoothed_a_little_short(targets, vocab_size, epsilon):
    return np.where(np.arange(vocab_size) == targets[..., None], 1 - epsilon, epsilon / vocab_size)


def loss_in_tens(logits, targets, real):
    return ce_log_sum_exp(logits, targets, real) / np.log(10)


def decoding_window_of_three(x, projections):
    return kv5_true_places(x, projections, width=3)


def loss_twice(logits, targets, real):
    return 2 * ce_log_sum_exp(logits, targets, real)


def perplexity(logits, targets, real):
    return np.exp(ce_log_sum_exp(logits, targets, real))


def rate_thousandth(step, d_model, warmup=4000):
    return rate_min(step, d_model, warmup) + 1e-3


def count_off_by_one(d_model, d_ff, n_layers, vocab_size, n_heads=8, d_k=None, biases=True):
    return count_parts(d_model, d_ff, n_layers, vocab_size, n_heads, d_k, biases) + 1


def cost_upper_half(n, d_model):
    return n * (n + 1) // 2 * d_model, n * n * d_model


def layer_three_projections(n, d_model, d_ff):
    return 3 * n * d_model**2, n * n * d_model, n * n * d_model, 2 * n * d_model * d_ff


def decoding_unscaled(x, projections):
    w_q, w_k, w_v, w_o = projections
    return kv_full_pass(x, (w_q * np.sqrt(x.shape[-1]), w_k, w_v, w_o))


UNREGISTERED = [
    ("shift_right", shift_drops_the_first, None),
    ("label_smoothing", smoothed_half, None),
    ("masked_cross_entropy", loss_twice, "times"),
    ("masked_cross_entropy", perplexity, None),
    ("masked_cross_entropy", loss_in_tens, "times"),
    ("label_smoothing", smoothed_a_little_short, "sums_all"),
    ("cached_decoding", decoding_window_of_three, None),
    ("noam_learning_rate", rate_thousandth, None),
    ("parameter_count", count_off_by_one, "plus"),
    ("attention_cost", cost_upper_half, "part_right"),
    ("layer_cost", layer_three_projections, "part_right"),
    ("cached_decoding", decoding_unscaled, None),
]

WRONG = {
    "shift_right": SHIFT_WRONG,
    "label_smoothing": SMOOTHING_WRONG,
    "masked_cross_entropy": LOSS_WRONG,
    "noam_learning_rate": SCHEDULE_WRONG,
    "parameter_count": COUNT_WRONG,
    "attention_cost": COST_WRONG,
    "layer_cost": LAYER_WRONG,
    "cached_decoding": DECODING_WRONG,
}
RIGHT = {
    "shift_right": SHIFT_RIGHT,
    "label_smoothing": SMOOTHING_RIGHT,
    "masked_cross_entropy": LOSS_RIGHT,
    "noam_learning_rate": SCHEDULE_RIGHT,
    "parameter_count": COUNT_RIGHT,
    "attention_cost": COST_RIGHT,
    "layer_cost": LAYER_RIGHT,
    "cached_decoding": DECODING_RIGHT,
}
