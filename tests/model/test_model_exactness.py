"""The PyTorch components against the NumPy equations (float64, forward and gradients) and against ``torch.nn`` (float32)."""

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from torch import nn

from transformer_lite import equations
from transformer_lite.model import (
    CAUSAL,
    AddAndNorm,
    Decoder,
    DecoderLayer,
    Encoder,
    EncoderLayer,
    FeedForward,
    KeyValueCache,
    MultiHeadAttention,
    TokenEmbedding,
    Transformer,
    TransformerConfig,
    causal_mask,
    interop,
    padding_mask,
    scaled_dot_product_attention,
    sinusoids,
)

D, H, FF, N = 12, 3, 20, 2
SIZES = {"source_vocab": 11, "d_model": D, "n_heads": H, "d_ff": FF, "n_layers": N, "dropout": 0.0}


def config(**changes):
    return TransformerConfig(**SIZES | changes)


@pytest.fixture
def float64():
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def shaken(module, seed=0):
    """The module with every parameter moved: gains that are 1 and biases that are 0 would hide mistakes."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in module.parameters():
            noise = torch.randn(parameter.shape, generator=generator).to(parameter)
            parameter.add_(0.3 * noise)
    return module


def arrays(attention):
    """W^Q, W^K, W^V, W^O of an attention without biases, as the equations want them: x @ w."""
    w_q, w_k, w_v = attention.w_qkv.detach().split(attention.widths)
    return equations.Projections(*(w.T.numpy() for w in (w_q, w_k, w_v, attention.w_o.weight.detach())))


def network(feed_forward):
    w_1, w_2 = feed_forward.w_1, feed_forward.w_2
    return [part.detach().numpy() for part in (w_1.weight.T, w_1.bias, w_2.weight.T, w_2.bias)]


def norm_of(around):
    return around.norm.weight.detach().numpy(), around.norm.bias.detach().numpy()


def encoder_parameters(layer):
    w_q, w_k, w_v, w_o = arrays(layer.self_attention)
    return equations.EncoderParameters(
        w_q, w_k, w_v, w_o, *norm_of(layer.around_attention), *network(layer.feed_forward), *norm_of(layer.around_feed_forward)
    )


def decoder_parameters(layer):
    own, cross = arrays(layer.self_attention), arrays(layer.cross_attention)
    return equations.DecoderParameters(
        *own,
        *norm_of(layer.around_self_attention),
        *network(layer.feed_forward),
        *norm_of(layer.around_feed_forward),
        *cross,
        *norm_of(layer.around_cross_attention),
    )


def draw(*shape, seed=1):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def close(ours, theirs, limit=1e-10):
    assert ours.shape == theirs.shape
    assert np.abs(ours.detach().numpy() - theirs).max() <= limit


# ----------------------------------------------------------------------------------------------------- against the equations


@pytest.mark.parametrize("masked", [False, True])
def test_attention_is_the_equation(masked, float64):
    q, k, v = draw(2, 4, 5), draw(2, 6, 5, seed=2), draw(2, 6, 3, seed=3)
    mask = torch.rand(2, 4, 6, generator=torch.Generator().manual_seed(4)) < 0.6 if masked else None
    if masked:
        mask[0, 1] = False  # a row that may attend to nothing
    output, weights = scaled_dot_product_attention(q, k, v, mask)
    expected = equations.scaled_dot_product_attention(
        *(x.numpy() for x in (q, k, v)), mask=None if mask is None else mask.numpy()
    )
    close(output, expected.output)
    close(weights, expected.weights)
    if masked:
        assert not output[0, 1].any() and not weights[0, 1].any()


@pytest.mark.parametrize("need_weights", [False, True])
@pytest.mark.parametrize("kind", ["self", "causal", "padded", "cross"])
def test_multi_head_attention_is_the_equation(kind, need_weights, float64):
    attention = shaken(MultiHeadAttention(D, H, bias=False))
    x, memory = draw(2, 5, D), draw(2, 7, D, seed=2)
    mask = {"causal": causal_mask(5), "padded": torch.tensor([[[True] * 5], [[True] * 3 + [False] * 2]])}.get(kind)
    given = memory if kind == "cross" else None
    got = attention(x, given, mask, need_weights=need_weights)
    # In the equations a mask needs the heads' axis only where it has a batch of its own.
    as_array = None if mask is None else (mask.unsqueeze(1) if mask.dim() == 3 else mask).numpy()
    expected = equations.multi_head_attention(
        x.numpy(),
        arrays(attention),
        H,
        mask=None if as_array is None else mask.numpy(),
        memory=None if given is None else given.numpy(),
    )
    close(got[0] if need_weights else got, expected.output)
    if need_weights:
        close(got[1], expected.weights)


def test_the_other_parts_are_the_equations(float64):
    x = draw(2, 5, D)
    feed_forward = shaken(FeedForward(D, FF))
    close(feed_forward(x), equations.feed_forward(x.numpy(), *network(feed_forward)))
    around = shaken(AddAndNorm(config()))
    close(around(x, torch.sin), equations.add_and_norm(x.numpy(), np.sin, *norm_of(around)))
    close(sinusoids(50, D), equations.positional_encoding(50, D))
    embedding = TokenEmbedding(11, config())
    ids = torch.tensor([[3, 4, 4], [5, 9, 0]])
    table = embedding.tokens.weight.detach().numpy()
    close(embedding(ids), equations.embed(ids.numpy(), table, equations.positional_encoding(3, D)))


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_a_layer_is_the_equation(kind, float64):
    x, memory = draw(2, 5, D), draw(2, 7, D, seed=2)
    if kind == "encoder":
        layer = shaken(EncoderLayer(config(bias=False)))
        expected = equations.encoder_layer(x.numpy(), encoder_parameters(layer), H)
        close(layer(x), expected)
    else:
        layer = shaken(DecoderLayer(config(bias=False)))
        expected = equations.decoder_layer(x.numpy(), memory.numpy(), decoder_parameters(layer), H, causal_mask(5).numpy())
        close(layer(x, memory, causal_mask(5)), expected)


def test_the_whole_model_is_the_equations_one_after_another(float64):
    """Embeddings, both stacks, the tied projection: with padding in the source."""
    model = shaken(Transformer(config(bias=False))).eval()
    source, target = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 9, 3], [1, 4, 10]])
    table = model.source_embedding.tokens.weight.detach().numpy()
    for row in range(2):
        real = source[row][source[row] != 0]  # padding must make no difference, so the equations do without it
        x = equations.embed(real.numpy(), table, equations.positional_encoding(len(real), D))
        for layer in model.encoder.layers:
            x = equations.encoder_layer(x, encoder_parameters(layer), H)
        y = equations.embed(target[row].numpy(), table, equations.positional_encoding(3, D))
        for layer in model.decoder.layers:
            y = equations.decoder_layer(y, x, decoder_parameters(layer), H, equations.causal_mask(3))
        close(model(source, target)[row], y @ table.T)


@pytest.mark.parametrize("norm", ["post", "pre"])
@pytest.mark.parametrize("kind", ["attention", "cross", "network", "encoder", "decoder"])
def test_gradients_are_those_of_finite_differences(kind, norm, float64):
    x, memory = draw(1, 3, D).requires_grad_(), draw(1, 4, D, seed=2).requires_grad_()
    mask = causal_mask(3).clone()
    mask[0] = False  # also with a row that may attend to nothing
    settings = config(norm=norm, activation="gelu")  # ReLU has a corner, where differences say nothing
    module = shaken(
        {
            "attention": lambda: MultiHeadAttention(D, H),
            "cross": lambda: MultiHeadAttention(D, H),
            "network": lambda: FeedForward(D, FF, "gelu"),
            "encoder": lambda: EncoderLayer(settings),
            "decoder": lambda: DecoderLayer(settings),
        }[kind]()
    )
    function = {
        "attention": lambda x, memory: module(x, mask=mask),
        "cross": lambda x, memory: module(x, memory),
        "network": lambda x, memory: module(x),
        "encoder": lambda x, memory: module(x, mask),
        "decoder": lambda x, memory: module(x, memory, mask),
    }[kind]
    assert torch.autograd.gradcheck(function, (x, memory), eps=1e-6, atol=1e-6)


# ------------------------------------------------------------------------------------------------------- against torch.nn


def agree(ours, theirs, limit=1e-5):
    assert ours.shape == theirs.shape
    assert float((ours - theirs).abs().max() / theirs.abs().max()) <= limit


LENGTHS = torch.tensor([7, 4, 1])
REAL = torch.arange(7) < LENGTHS.unsqueeze(1)  # (3, 7), True at real tokens


@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("activation", ["relu", "gelu"])
def test_layers_agree_with_torch(norm_first, activation, train):
    torch.manual_seed(3)
    options = {"dropout": 0.0, "activation": activation, "norm_first": norm_first, "batch_first": True}
    x, y = torch.randn(3, 7, 24), torch.randn(3, 5, 24)
    encoder = shaken(nn.TransformerEncoderLayer(24, 4, 40, **options)).train(train)
    ours = interop.from_torch(encoder)
    assert ours.training is train
    expected = encoder(x, src_key_padding_mask=~REAL)
    got = ours(x, REAL.unsqueeze(1))
    for i, n in enumerate(LENGTHS):  # torch's fast path leaves zeros at padding
        agree(got[i, :n], expected[i, :n])

    decoder = shaken(nn.TransformerDecoderLayer(24, 4, 40, **options), seed=1).train(train)
    ours = interop.from_torch(decoder)
    future = ~causal_mask(5)
    agree(ours(y, x, causal_mask(5), REAL.unsqueeze(1)), decoder(y, x, tgt_mask=future, memory_key_padding_mask=~REAL))


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("batch_first", [True, False])
def test_attention_agrees_with_torch(batch_first, bias):
    torch.manual_seed(4)
    theirs = shaken(nn.MultiheadAttention(24, 4, bias=bias, batch_first=batch_first)).eval()
    ours = interop.from_torch(theirs)
    y, x = torch.randn(3, 5, 24), torch.randn(3, 7, 24)
    turned = (lambda t: t) if batch_first else (lambda t: t.transpose(0, 1))
    output, weights = theirs(
        turned(y), turned(x), turned(x), key_padding_mask=~REAL, need_weights=True, average_attn_weights=False
    )
    got, asked = ours(y, x, REAL.unsqueeze(1), need_weights=True)
    agree(got, turned(output))
    agree(asked, weights)
    agree(ours(y, x, REAL.unsqueeze(1)), turned(output))


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("with_norms", [True, False])
def test_stacks_agree_with_torch(norm_first, with_norms):
    torch.manual_seed(5)
    theirs = shaken(nn.Transformer(24, 4, 2, 3, 40, dropout=0.0, norm_first=norm_first, batch_first=True)).eval()
    if not with_norms:
        theirs.encoder.norm = theirs.decoder.norm = None  # the paper's Post-LN model
    x, y = torch.randn(3, 7, 24), torch.randn(3, 5, 24)
    ours = interop.from_torch(theirs)
    expected = theirs(x, y, tgt_mask=~causal_mask(5), src_key_padding_mask=~REAL, memory_key_padding_mask=~REAL)
    agree(ours(x, y, REAL.unsqueeze(1), None, REAL.unsqueeze(1)), expected)


@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("norm", ["post", "pre"])
def test_weights_go_to_torch_and_back(norm, batch_first):
    for made in (MultiHeadAttention(24, 4), EncoderLayer(config(d_model=24, n_heads=4, norm=norm)),
                 DecoderLayer(config(d_model=24, n_heads=4, norm=norm, activation="gelu"))):  # fmt: skip
        module = shaken(made).eval()
        back = interop.from_torch(interop.to_torch(module, batch_first=batch_first))
        assert not back.training
        for name, parameter in module.state_dict().items():
            assert torch.equal(back.state_dict()[name], parameter), name
    model = shaken(Transformer(config(d_model=24, n_heads=4, norm=norm))).eval()
    theirs = interop.to_torch(model)
    assert (theirs.encoder.norm is None) == (norm == "post")
    source, y = torch.randn(2, 6, 24), torch.randn(2, 4, 24)
    memory = model.encoder(source)
    agree(model.decoder(y, memory, causal_mask(4)), theirs(source, y, tgt_mask=~causal_mask(4)))


def test_a_layer_without_biases_goes_to_torch_with_zeros():
    layer = shaken(EncoderLayer(config(bias=False))).eval()
    theirs = interop.to_torch(layer)
    assert not theirs.self_attn.in_proj_bias.any() and not theirs.self_attn.out_proj.bias.any()
    x = torch.randn(2, 5, D)
    agree(layer(x), theirs(x))


@pytest.mark.parametrize(
    ("module", "error", "words"),
    [
        (nn.Linear(3, 3), TypeError, "Linear"),
        (nn.MultiheadAttention(8, 2, kdim=4), ValueError, "kdim"),
        (nn.MultiheadAttention(8, 2, add_zero_attn=True), ValueError, "add_zero_attn"),
        (nn.TransformerEncoderLayer(8, 2, 16, activation=torch.tanh), ValueError, "activation"),
        (nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1), ValueError, "eval"),
    ],
)
def test_what_the_paper_has_not_is_refused(module, error, words):
    with pytest.raises(error, match=words):
        interop.from_torch(module)


@pytest.mark.parametrize("kind", ["encoder", "decoder"])
def test_torch_layers_without_biases_come_with_zeros(kind):
    torch.manual_seed(12)
    options = {"dropout": 0.0, "bias": False, "batch_first": True, "layer_norm_eps": 1e-2}
    x, y = torch.randn(2, 7, 24), torch.randn(2, 5, 24)
    if kind == "encoder":
        theirs = shaken(nn.TransformerEncoderLayer(24, 4, 40, **options)).eval()
        ours = interop.from_torch(theirs)
        agree(ours(x), theirs(x))
    else:
        theirs = shaken(nn.TransformerDecoderLayer(24, 4, 40, **options)).eval()
        ours = interop.from_torch(theirs)
        agree(ours(y, x, causal_mask(5)), theirs(y, x, tgt_mask=~causal_mask(5)))
    assert ours.self_attention.b_qkv is None and not ours.feed_forward.w_1.bias.any()


def test_float64_weights_keep_all_their_digits_both_ways():
    theirs = shaken(nn.Transformer(24, 4, 1, 2, 40, dropout=0.0, batch_first=True, dtype=torch.float64)).eval()
    ours = interop.from_torch(theirs)
    assert torch.equal(ours.encoder.layers[0].self_attention.w_qkv, theirs.encoder.layers[0].self_attn.in_proj_weight)
    x, y = draw(2, 7, 24), draw(2, 5, 24, seed=2)
    agree(ours(x, y), theirs(x, y, tgt_mask=~causal_mask(5)), 1e-13)
    agree(interop.to_torch(ours)(x, y, tgt_mask=~causal_mask(5)), ours(x, y), 1e-13)
    attention = shaken(MultiHeadAttention(24, 4).double())
    assert torch.equal(interop.to_torch(attention).in_proj_weight, attention.w_qkv)


def test_every_layer_and_norm_of_a_stack_keeps_its_own_choices():
    torch.manual_seed(13)
    theirs = shaken(nn.Transformer(24, 4, 2, 1, 40, dropout=0.0, batch_first=True)).eval()
    other = nn.TransformerEncoderLayer(24, 4, 10, 0.0, "gelu", norm_first=True, batch_first=True)
    theirs.encoder.layers[1] = shaken(other, seed=1).eval()
    theirs.encoder.layers[0].norm2.eps = theirs.decoder.norm.eps = 0.5
    x, y = torch.randn(2, 7, 24), torch.randn(2, 5, 24)
    ours = interop.from_torch(theirs)
    agree(ours(x, y), theirs(x, y, tgt_mask=~causal_mask(5)))
    agree(interop.to_torch(ours)(x, y, tgt_mask=~causal_mask(5)), ours(x, y))


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"num_encoder_layers": 0}, "encoder .* 1 layer or more"), ({"custom_decoder": nn.Linear(8, 8)}, "decoder .* got Linear")],
)
def test_stacks_of_something_else_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        interop.from_torch(nn.Transformer(**{"d_model": 8, "nhead": 2, "dim_feedforward": 8, "dropout": 0.0} | changes))


def test_another_key_width_cannot_go_to_torch():
    with pytest.raises(ValueError, match="d_k"):
        interop.to_torch(MultiHeadAttention(8, 2, d_k=3))


# --------------------------------------------------------------------------------------------------- both paths, and the laws


@pytest.mark.parametrize("d_k", [None, 2, 7])
def test_the_fast_path_and_the_explicit_one_agree(d_k):
    torch.manual_seed(6)
    attention = MultiHeadAttention(24, 4, d_k=d_k)
    x, memory = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    mask = torch.rand(2, 5, 7) < 0.5
    mask[0, 2] = False
    fast, (explicit, weights) = attention(x, memory, mask), attention(x, memory, mask, need_weights=True)
    torch.testing.assert_close(fast, explicit, rtol=1e-5, atol=1e-5)
    assert weights.shape == (2, 4, 5, 7)
    torch.testing.assert_close(attention(x, memory, mask.unsqueeze(1)), fast)  # four axes are taken as they are


def test_the_causal_mask_by_name_is_the_causal_mask():
    torch.manual_seed(12)
    attention, layer = MultiHeadAttention(24, 4), DecoderLayer(config(d_model=24, n_heads=4))
    x, memory = torch.randn(2, 5, 24), torch.randn(2, 7, 24)
    torch.testing.assert_close(attention(x, mask=CAUSAL), attention(x, mask=causal_mask(5)))
    shown, weights = attention(x, mask=CAUSAL, need_weights=True)
    torch.testing.assert_close(shown, attention(x, mask=CAUSAL))
    assert not weights.triu(1).any()
    torch.testing.assert_close(layer(x, memory, CAUSAL), layer(x, memory, causal_mask(5)))


@pytest.mark.parametrize("need_weights", [False, True])
def test_a_row_that_may_attend_to_nothing_gives_zeros_and_finite_gradients(need_weights):
    attention = MultiHeadAttention(8, 2, bias=False)
    x = torch.randn(2, 3, 8, requires_grad=True)
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[0, 1] = False
    got = attention(x, mask=mask, need_weights=need_weights)
    output = got[0] if need_weights else got
    assert not output[0, 1].any() and output[0, 0].any()
    output.square().sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in (x, *attention.parameters()))


def test_a_mask_of_numbers_or_of_one_axis_is_refused():
    attention = MultiHeadAttention(8, 2)
    with pytest.raises(TypeError, match="Boolean"):
        attention(torch.randn(1, 3, 8), mask=torch.ones(3, 3))
    with pytest.raises(ValueError, match="n_q, n_k"):
        attention(torch.randn(1, 3, 8), mask=torch.ones(3, dtype=torch.bool))


def test_vectors_without_a_batch_or_of_another_width_are_refused():
    """Unnoticed, every token would attend within itself."""
    attention = MultiHeadAttention(8, 2)
    x = torch.randn(1, 3, 8)
    for queries, memory, words in (
        (x[0], None, r"queries .*n_q, d_model = 8\); got \(3, 8\)"),
        (x, x[0], r"memory .*n_k, d_model = 8\); got \(3, 8\)"),
        (torch.randn(1, 3, 6), None, r"queries .*got \(1, 3, 6\)"),
    ):
        with pytest.raises(ValueError, match=words):
            attention(queries, memory)


def test_a_cache_is_reordered_and_stays_as_it_was_when_it_is_full():
    attention, cache = MultiHeadAttention(8, 2), KeyValueCache(3)
    x, rows = torch.randn(3, 3, 8), torch.tensor([2, 0])
    attention(x[:, :2], mask=causal_mask(2), cache=cache)
    cache.reorder(rows)
    torch.testing.assert_close(attention(x[rows, 2:], cache=cache), attention(x[rows], mask=causal_mask(3))[:, 2:])
    with pytest.raises(ValueError, match="room for 3 tokens"):
        attention(x[rows, 2:], cache=cache)
    assert cache.length == 3


def test_sinusoids_follow_to_another_dtype_with_all_their_digits():
    model = Transformer(config(max_positions=4)).bfloat16().double()
    table = model.source_embedding.positions.table
    assert torch.equal(table, sinusoids(4, D))
    model.encode(torch.tensor([[3] * 9]))
    assert torch.equal(model.source_embedding.positions.table[:9], sinusoids(9, D))


def influence(function, x):
    return equations.influence_matrix(lambda rows: function(torch.from_numpy(rows)[None])[0].detach().numpy(), x.numpy()[0])


def test_influence_is_full_triangular_rectangular_and_diagonal(float64):
    x, memory = draw(1, 5, D), draw(1, 7, D, seed=2)
    settings = config()
    encoder, decoder = shaken(Encoder(settings)), shaken(Decoder(settings))
    assert influence(encoder, x).all()
    assert np.array_equal(influence(lambda y: decoder(y, memory, causal_mask(5)), x), np.tri(5, dtype=bool))
    cross = influence(lambda m: decoder(x, m, causal_mask(5)), memory)
    assert cross.shape == (5, 7) and cross.all()
    assert np.array_equal(influence(shaken(FeedForward(D, FF)), x), np.eye(5, dtype=bool))


def test_without_positions_the_encoder_only_permutes(float64):
    order = torch.tensor([3, 0, 4, 1, 2])
    ids = torch.tensor([[3, 4, 5, 6, 7]])
    without, with_them = (shaken(Transformer(config(positions=which))).eval() for which in ("none", "sinusoidal"))
    torch.testing.assert_close(without.encode(ids[:, order]), without.encode(ids)[:, order])
    assert float((with_them.encode(ids[:, order]) - with_them.encode(ids)[:, order]).abs().max()) > 0.01


def test_a_label_influences_only_later_predictions(float64):
    """Mask and right shift together: strictly lower triangular on labels."""
    model = shaken(Transformer(config())).eval()
    source, labels = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7, 8, 9]])
    shifted = lambda labels: F.pad(labels[:, :-1], (1, 0), value=1)  # noqa: E731
    before = model(source, shifted(labels))
    for j in range(4):
        other = labels.clone()
        other[0, j] = 10
        moved = (model(source, shifted(other)) - before).abs().amax(dim=-1)[0] > 1e-9
        assert moved.tolist() == [i > j for i in range(4)]


def test_padding_makes_no_difference_to_real_tokens():
    torch.manual_seed(8)
    model = shaken(Transformer(config())).eval()
    source, target = torch.tensor([[3, 4, 5, 0, 0]]), torch.tensor([[1, 6, 7, 0]])
    torch.testing.assert_close(model(source, target)[:, :3], model(source[:, :3], target[:, :3]), rtol=1e-5, atol=1e-5)
    assert torch.equal(padding_mask(source, 0), torch.tensor([[[True, True, True, False, False]]]))


def test_weights_by_layer_and_head_sum_to_one_and_cost_nothing_unless_asked():
    torch.manual_seed(9)
    model = Transformer(config()).eval()
    source, target = torch.tensor([[3, 4, 5, 0]]), torch.tensor([[1, 6, 7]])
    logits, weights = model(source, target, need_weights=True)
    torch.testing.assert_close(logits, model(source, target), rtol=1e-5, atol=1e-5)
    assert [len(each) for each in (weights.encoder, weights.decoder, weights.cross)] == [N, N, N]
    assert weights.cross[0].shape == (1, H, 3, 4)
    assert not weights.cross[1][..., 3].any() and not weights.decoder[0].triu(1).any()
    for each in (*weights.encoder, *weights.decoder, *weights.cross):
        torch.testing.assert_close(each.sum(dim=-1), torch.ones(each.shape[:-1]))


def test_dropout_stands_where_the_paper_has_it():
    """On every sub-layer's output and on embedding + position; not on attention weights, not within the network."""
    model = Transformer(config(dropout=0.5, n_layers=1))
    dropped = [name for name, module in model.named_modules() if isinstance(module, nn.Dropout)]
    assert dropped == [
        "source_embedding.dropout",
        *(f"encoder.layers.0.around_{part}.dropout" for part in ("attention", "feed_forward")),
        *(f"decoder.layers.0.around_{part}.dropout" for part in ("self_attention", "cross_attention", "feed_forward")),
    ]
    attention = MultiHeadAttention(8, 2).train()
    x = torch.randn(1, 3, 8)
    assert torch.equal(attention(x), attention(x))


def test_bfloat16_autocast_is_the_same_within_its_precision():
    torch.manual_seed(10)
    model = Transformer(config(d_model=24, n_heads=4)).eval()
    source, target = torch.randint(3, 11, (2, 9)), torch.randint(3, 11, (2, 6))
    exact = model(source, target)
    with torch.autocast("cpu", dtype=torch.bfloat16):
        rough = model(source, target)
    assert float((rough - exact).abs().max() / exact.abs().max()) < 0.05


def compiles():
    import shutil

    return any(map(shutil.which, ("g++", "clang++", "c++")))


@pytest.mark.skipif(not compiles(), reason="torch.compile needs a C++ compiler (g++ or clang++), and there is none")
def test_compiled_it_is_the_same_and_compiles_anew_at_most_once_for_other_lengths():
    torch.manual_seed(11)
    torch._dynamo.reset()
    compilations = []

    def counting(graph, inputs):
        from torch._inductor.compile_fx import compile_fx

        compilations.append(1)
        return compile_fx(graph, inputs)

    model = Transformer(config()).eval()
    compiled = torch.compile(model, backend=counting)
    with torch.inference_mode():
        for n_source, n_target in ((5, 4), (7, 6), (9, 3), (12, 11)):
            source, target = torch.randint(3, 11, (2, n_source)), torch.randint(3, 11, (2, n_target))
            torch.testing.assert_close(compiled(source, target), model(source, target), rtol=1e-4, atol=1e-4)
    assert len(compilations) <= 2  # once, and once more for lengths that vary
