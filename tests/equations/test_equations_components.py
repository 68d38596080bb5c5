"""Every other component against an independent implementation (PyTorch or loops), its laws, and its error messages."""

import math
from dataclasses import fields

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transformer_lite import equations as eq

RNG = np.random.default_rng(7)
D_MODEL, D_FF, HEADS = 12, 20, 3


def tensor(x):
    return torch.from_numpy(np.array(x))


def projections(rng=RNG):
    return eq.Projections(*(rng.standard_normal((D_MODEL, D_MODEL)) / np.sqrt(D_MODEL) for _ in range(4)))


def torch_attention(p):
    """nn.MultiheadAttention with the same matrices (it applies x @ W.T)."""
    module = torch.nn.MultiheadAttention(D_MODEL, HEADS, bias=False, batch_first=True, dtype=torch.float64)
    with torch.no_grad():
        module.in_proj_weight.copy_(tensor(np.concatenate([p.w_q.T, p.w_k.T, p.w_v.T])))
        module.out_proj.weight.copy_(tensor(p.w_o.T))
    return module


def fill(module, name, p, kind):
    attention = getattr(module, name)
    prefix = "memory_" if kind == "memory" else ""
    with torch.no_grad():
        attention.in_proj_weight.copy_(tensor(np.concatenate([getattr(p, f"{prefix}w_{x}").T for x in "qkv"])))
        attention.in_proj_bias.zero_()
        attention.out_proj.weight.copy_(tensor(getattr(p, f"{prefix}w_o").T))
        attention.out_proj.bias.zero_()


def norm(module, gain, bias):
    with torch.no_grad():
        module.weight.copy_(tensor(gain))
        module.bias.copy_(tensor(bias))


# --- heads ---


@given(st.integers(1, 4), st.integers(1, 5), st.integers(1, 4), st.sampled_from([(), (1,), (3,)]))
def test_merging_undoes_splitting_and_each_head_holds_its_part_of_every_token(h, n, d_head, batch):
    x = np.random.default_rng(n).standard_normal((*batch, n, h * d_head))
    heads = eq.split_heads(x, h)
    assert heads.shape == (*batch, h, n, d_head)
    for head in range(h):
        np.testing.assert_array_equal(heads[..., head, :, :], x[..., head * d_head : (head + 1) * d_head])
    np.testing.assert_array_equal(eq.merge_heads(heads), x)


@pytest.mark.parametrize("batch", [(), (3,)])
@pytest.mark.parametrize("with_memory", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_multi_head_attention_equals_pytorch(batch, with_memory, masked):
    p = projections()
    x = RNG.standard_normal((*batch, 5, D_MODEL))
    memory = RNG.standard_normal((*batch, 7, D_MODEL)) if with_memory else None
    mask = eq.causal_mask(5, 7 if with_memory else 5) if masked else None
    ours = eq.multi_head_attention(x, p, HEADS, mask, memory)
    source = tensor(x if memory is None else memory)
    theirs = torch_attention(p)(
        tensor(x), source, source, attn_mask=None if mask is None else ~tensor(mask), average_attn_weights=False
    )
    np.testing.assert_allclose(ours.output, theirs[0].detach().numpy(), atol=1e-12)
    np.testing.assert_allclose(ours.weights, theirs[1].detach().numpy(), atol=1e-12)


def test_one_head_is_self_attention_and_cross_attention():
    p, x, memory = projections(), RNG.standard_normal((2, 4, D_MODEL)), RNG.standard_normal((2, 6, D_MODEL))
    one = eq.multi_head_attention(x, p, 1)
    own = eq.self_attention(x, p)
    np.testing.assert_allclose(own.output, one.output, atol=1e-12)
    assert own.weights.shape == (2, 4, 4)
    across = eq.cross_attention(x, memory, p)
    np.testing.assert_allclose(across.output, eq.multi_head_attention(x, p, 1, memory=memory).output, atol=1e-12)
    assert across.weights.shape == (2, 4, 6)


def test_a_padding_mask_of_a_batch_reaches_every_head():
    p, x = projections(), RNG.standard_normal((2, 4, D_MODEL))
    mask = eq.padding_mask([[5, 6, 0, 0], [5, 6, 7, 8]], pad_id=0)
    weights = eq.multi_head_attention(x, p, HEADS, mask).weights
    assert weights.shape == (2, HEADS, 4, 4) and not weights[0, :, :, 2:].any() and weights[1].all()


# --- positions ---


@given(st.integers(0, 40), st.integers(0, 60))
def test_a_shift_of_the_positional_encoding_is_one_rotation(position, offset):
    d_model = 16
    encoding = eq.positional_encoding(120, d_model)
    for pair in range(d_model // 2):
        angle = offset / 10000 ** (2 * pair / d_model)
        sine, cosine = encoding[position, 2 * pair : 2 * pair + 2]
        turned = [sine * math.cos(angle) + cosine * math.sin(angle), cosine * math.cos(angle) - sine * math.sin(angle)]
        np.testing.assert_allclose(encoding[position + offset, 2 * pair : 2 * pair + 2], turned, atol=1e-12)


def test_positional_encoding_has_the_numbers_of_the_formula():
    encoding = eq.positional_encoding(3, 4)
    np.testing.assert_allclose(encoding[2], [math.sin(2), math.cos(2), math.sin(0.02), math.cos(0.02)])
    np.testing.assert_allclose((eq.positional_encoding(50, 512) ** 2).sum(axis=1), 256)


def test_embedding_scales_the_table_and_adds_the_position():
    table, encoding = RNG.standard_normal((9, 6)), eq.positional_encoding(10, 6)
    ids = np.array([[3, 3, 8], [0, 1, 2]])
    embedded = eq.embed(ids, table, encoding)
    for b in range(2):
        for i in range(3):
            np.testing.assert_allclose(embedded[b, i], table[ids[b, i]] * math.sqrt(6) + encoding[i])


# --- sub-layers and layers ---


def test_layer_norm_equals_pytorch_and_does_not_divide_by_zero():
    x, gain, bias = RNG.standard_normal((2, 5, 7)), RNG.standard_normal(7), RNG.standard_normal(7)
    theirs = torch.nn.functional.layer_norm(tensor(x), (7,), tensor(gain), tensor(bias), eps=1e-5)
    np.testing.assert_allclose(eq.layer_norm(x, gain, bias), theirs.numpy(), atol=1e-12)
    np.testing.assert_array_equal(eq.layer_norm(np.full(4, 3.0), np.ones(4), np.zeros(4)), 0)


def test_feed_forward_looks_at_one_position_at_a_time():
    arrays = [RNG.standard_normal(shape) for shape in ((6, 9), (9,), (9, 6), (6,))]
    x = RNG.standard_normal((4, 6))
    np.testing.assert_array_equal(eq.influence_matrix(lambda x: eq.feed_forward(x, *arrays), x), np.eye(4, dtype=bool))
    by_hand = [max(0.0, float(x[1] @ arrays[0][:, j] + arrays[1][j])) for j in range(9)]
    np.testing.assert_allclose(eq.feed_forward(x, *arrays)[1], np.array(by_hand) @ arrays[2] + arrays[3])


def test_encoder_layer_equals_pytorch():
    p = eq.EncoderParameters.random(D_MODEL, D_FF, RNG)
    x = RNG.standard_normal((3, 5, D_MODEL))
    mask = eq.padding_mask([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1], [1, 0, 0, 0, 0]], pad_id=0)
    layer = torch.nn.TransformerEncoderLayer(D_MODEL, HEADS, D_FF, dropout=0.0, batch_first=True, dtype=torch.float64).train()
    fill(layer, "self_attn", p, "self")
    with torch.no_grad():
        for linear, w, b in ((layer.linear1, p.w1, p.b1), (layer.linear2, p.w2, p.b2)):
            linear.weight.copy_(tensor(w.T))
            linear.bias.copy_(tensor(b))
    norm(layer.norm1, p.attention_gain, p.attention_bias)
    norm(layer.norm2, p.feed_forward_gain, p.feed_forward_bias)
    theirs = layer(tensor(x), src_key_padding_mask=~tensor(mask[:, 0, :])).detach().numpy()
    np.testing.assert_allclose(eq.encoder_layer(x, p, HEADS, mask), theirs, atol=1e-12)


def test_decoder_layer_equals_pytorch_and_its_influence_is_a_lower_triangle():
    p = eq.DecoderParameters.random(D_MODEL, D_FF, RNG)
    y, memory = RNG.standard_normal((2, 5, D_MODEL)), RNG.standard_normal((2, 7, D_MODEL))
    layer = torch.nn.TransformerDecoderLayer(D_MODEL, HEADS, D_FF, dropout=0.0, batch_first=True, dtype=torch.float64).train()
    fill(layer, "self_attn", p, "self")
    fill(layer, "multihead_attn", p, "memory")
    with torch.no_grad():
        for linear, w, b in ((layer.linear1, p.w1, p.b1), (layer.linear2, p.w2, p.b2)):
            linear.weight.copy_(tensor(w.T))
            linear.bias.copy_(tensor(b))
    norm(layer.norm1, p.attention_gain, p.attention_bias)
    norm(layer.norm2, p.memory_gain, p.memory_bias)
    norm(layer.norm3, p.feed_forward_gain, p.feed_forward_bias)
    mask = eq.causal_mask(5)
    theirs = layer(tensor(y), tensor(memory), tgt_mask=~tensor(mask)).detach().numpy()
    np.testing.assert_allclose(eq.decoder_layer(y, memory, p, HEADS, self_mask=mask), theirs, atol=1e-12)
    influence = eq.influence_matrix(lambda y: eq.decoder_layer(y, memory[0], p, HEADS, self_mask=mask), y[0])
    np.testing.assert_array_equal(influence, np.tri(5, dtype=bool))
    assert eq.influence_matrix(lambda m: eq.decoder_layer(y[0], m, p, HEADS, self_mask=mask), memory[0]).all()


def test_every_matrix_of_a_layer_matters():
    """No field of the parameters is unused: changing any one changes the output."""
    p = eq.DecoderParameters.random(D_MODEL, D_FF, RNG)
    y, memory = RNG.standard_normal((5, D_MODEL)), RNG.standard_normal((7, D_MODEL))
    before = eq.decoder_layer(y, memory, p, HEADS)
    for field in fields(p):
        changed = {other.name: getattr(p, other.name) for other in fields(p)}
        changed[field.name] = changed[field.name] + RNG.standard_normal(changed[field.name].shape)
        assert not np.allclose(eq.decoder_layer(y, memory, eq.DecoderParameters(**changed), HEADS), before), field.name


# --- training and decoding ---


def test_shift_and_mask_together_hide_the_label_that_is_predicted():
    p = projections()
    table = RNG.standard_normal((9, D_MODEL))
    labels = np.array([4, 7, 2, 8, 3])

    def predictions(labels):
        return eq.self_attention(table[eq.shift_right(labels, bos_id=1)], p, eq.causal_mask(5)).output

    for j in range(5):
        moved = labels.copy()
        moved[j] = 5
        differs = np.abs(predictions(moved) - predictions(labels)).max(axis=1) > 1e-9
        assert not differs[: j + 1].any() and differs[j + 1 :].all()


def test_label_smoothing_equals_pytorchs_loss():
    logits, targets = RNG.standard_normal((6, 5)), np.array([0, 4, 2, 2, 1, 3])
    log_p = np.log(eq.softmax(logits))
    ours = -(eq.label_smoothing(targets, 5, 0.1) * log_p).sum(axis=-1).mean()
    theirs = torch.nn.functional.cross_entropy(tensor(logits), tensor(targets), label_smoothing=0.1)
    assert ours == pytest.approx(theirs.item())
    assert eq.label_smoothing(targets, 5, 0.1).sum(axis=-1) == pytest.approx(1)


def test_masked_cross_entropy_equals_pytorchs_with_ignored_padding():
    logits, targets = RNG.standard_normal((2, 4, 6)) * 5, np.array([[1, 2, 0, 0], [5, 3, 1, 0]])
    real = targets != 0
    theirs = torch.nn.functional.cross_entropy(tensor(logits).flatten(0, 1), tensor(targets).flatten(), ignore_index=0)
    assert eq.masked_cross_entropy(logits, targets, real) == pytest.approx(theirs.item())
    assert eq.masked_cross_entropy(np.array([[1e4, 0.0]]), np.array([1]), np.array([True])) == pytest.approx(1e4)
    assert math.exp(eq.masked_cross_entropy(np.zeros((3, 4)), np.array([0, 1, 2]), np.ones(3, dtype=bool))) == pytest.approx(4)


def test_the_learning_rate_has_the_papers_numbers():
    rates = {step: eq.noam_learning_rate(step, 512) for step in (1, 2000, 4000, 16000, 100000)}
    assert [f"{rate:.3g}" for rate in rates.values()] == ["1.75e-07", "0.000349", "0.000699", "0.000349", "0.00014"]
    assert f"{eq.noam_learning_rate(4000, 1024):.3g}" == "0.000494"


@pytest.mark.parametrize("batch", [(), (3,)])
def test_cached_decoding_equals_the_causal_pass(batch):
    p, x = projections(), RNG.standard_normal((*batch, 5, D_MODEL))
    cached, whole = eq.cached_decoding(x, p), eq.self_attention(x, p, eq.causal_mask(5))
    np.testing.assert_allclose(cached.output, whole.output, atol=1e-12)
    np.testing.assert_allclose(cached.weights, whole.weights, atol=1e-12)


# --- counting ---


def test_parameter_counts_are_the_papers_and_pytorchs():
    assert eq.parameter_count(512, 2048, 6, 37_000) == 63_082_496
    assert eq.parameter_count(512, 2048, 6, 37_000, biases=False) == 63_045_632
    assert eq.parameter_count(512, 2048, 6, 37_000, n_heads=1) == eq.parameter_count(512, 2048, 6, 37_000)
    narrow = eq.parameter_count(512, 2048, 6, 37_000, d_k=16, biases=False)
    assert eq.parameter_count(512, 2048, 6, 37_000, biases=False) - narrow == 18 * 2 * 512 * 384
    module = torch.nn.Transformer(D_MODEL, HEADS, 2, 2, D_FF)
    final_norms = 2 * 2 * D_MODEL  # nn.Transformer adds one LayerNorm after each stack, which the paper does not have
    theirs = sum(parameter.numel() for parameter in module.parameters()) - final_norms
    assert eq.parameter_count(D_MODEL, D_FF, 2, 50, n_heads=HEADS) == theirs + 50 * D_MODEL


def test_costs_count_the_multiplications_that_matrix_products_do():
    n, d, d_ff = 5, 6, 7
    cost = eq.layer_cost(n, d, d_ff)
    assert cost == (4 * n * d * d, n * n * d, n * n * d, 2 * n * d * d_ff)
    assert sum(eq.attention_cost(2 * n, d)) == 4 * sum(eq.attention_cost(n, d))
    quadratic = lambda n: (lambda c: (c.scores + c.weighted_sum) / sum(c))(eq.layer_cost(n, 512, 2048))  # noqa: E731
    assert [round(100 * quadratic(n)) for n in (128, 512, 1024, 3072, 8192)] == [4, 14, 25, 50, 73]


# --- errors ---


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: eq.split_heads(np.ones((2, 5)), 2), ["n_heads", "d_model = 5", "2"]),
        (lambda: eq.merge_heads(np.ones((2, 5))), ["x", "(..., h, n, d_v)", "(2, 5)"]),
        (lambda: eq.self_attention(np.ones((2, 5)), projections()), ["w_q", "(d_model, d_model)", "(12, 12)"]),
        (lambda: eq.cross_attention(np.ones((2, 12)), np.ones((3, 4)), projections()), ["memory", "d_model = 12", "(3, 4)"]),
        (lambda: eq.multi_head_attention(np.ones((2, 12)), projections()[:3], 3), ["projections", "3"]),
        (lambda: eq.positional_encoding(3, 5), ["d_model", "even", "5"]),
        (lambda: eq.embed([0.5], np.ones((3, 4)), np.ones((5, 4))), ["token_ids", "integers", "float64"]),
        (lambda: eq.embed([3], np.ones((3, 4)), np.ones((5, 4))), ["token_ids", "between 0 and 2", "3"]),
        (lambda: eq.embed([0, 1], np.ones((3, 4)), np.ones((1, 4))), ["encoding", "n_positions >= 2", "(1, 4)"]),
        (lambda: eq.layer_norm(np.ones((2, 5)), np.ones(4), np.ones(5)), ["gain", "d_model = 5", "(4,)"]),
        (lambda: eq.feed_forward(np.ones((2, 5)), np.ones((5, 7)), np.ones(7), np.ones((5, 7)), np.ones(5)), ["w2", "(7, 5)"]),
        (lambda: eq.add_and_norm(np.ones((2, 5)), lambda x: x[:1], np.ones(5), np.ones(5)), ["sublayer", "(2, 5)", "(1, 5)"]),
        (lambda: eq.label_smoothing([1], 5, 1.5), ["epsilon", "1.5"]),
        (lambda: eq.label_smoothing([5], 5, 0.1), ["targets", "between 0 and 4"]),
        (lambda: eq.masked_cross_entropy(np.ones((2, 4)), [0, 1], [False, False]), ["real", "at least one"]),
        (lambda: eq.masked_cross_entropy(np.ones((2, 4)), [0], [True]), ["targets", "(2,)", "(1,)"]),
        (lambda: eq.noam_learning_rate(0, 512), ["step", "0"]),
        (lambda: eq.parameter_count(512, 2048, 6, 100, n_heads=7), ["n_heads", "512", "7"]),
        (lambda: eq.layer_cost(0, 4, 4), ["n", "0"]),
        (lambda: eq.shift_right(3, 1), ["labels", "()"]),
    ],
)
def test_errors_name_the_argument_what_was_expected_and_what_was_given(call, words):
    with pytest.raises(ValueError) as caught:
        call()
    assert all(word in str(caught.value) for word in words), str(caught.value)
