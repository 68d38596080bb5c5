"""The relatives, the baselines, counting, saving and devices."""

import dataclasses
import json
import math
import subprocess
import sys

import pytest
import torch

from transformer_lite import equations, model
from transformer_lite.model import (
    Transformer,
    TransformerConfig,
    baselines,
    counting,
    families,
    saving,
)

SMALL = {"source_vocab": 11, "d_model": 16, "n_heads": 2, "d_ff": 32, "n_layers": 2}


# ------------------------------------------------------------------------------------------------------------- relatives


def bert(**changes):
    torch.manual_seed(0)
    return families.EncoderOnly(families.EncoderOnlyConfig(**{"vocab": 30, "d_model": 16, "n_heads": 2, "d_ff": 32} | changes))


def moved(function, ids, position, other):
    changed = ids.clone()
    changed[0, position] = other
    return ((function(changed) - function(ids)).abs().amax(dim=-1)[0] > 1e-7).tolist()


def test_bert_sees_both_sides_and_gpt_only_what_is_before():
    ids = torch.tensor([[5, 6, 7, 8, 9]])
    assert all(moved(bert().eval(), ids, 3, 12))
    torch.manual_seed(0)
    gpt = families.DecoderOnly(families.DecoderOnlyConfig(vocab=30, d_model=16, n_heads=2, d_ff=32)).eval()
    assert moved(gpt, ids, 3, 12) == [False, False, False, True, True]


def test_bert_hides_15_percent_as_published():
    ids = torch.randint(4, 30, (200, 100))
    ids[:, 90:] = 0
    hidden, labels = bert().hide(ids, generator=torch.Generator().manual_seed(1))
    chosen = labels != families.IGNORED
    assert not chosen[:, 90:].any()
    assert float(chosen[:, :90].float().mean()) == pytest.approx(0.15, abs=0.01)
    assert torch.equal(labels[chosen], ids[chosen]) and torch.equal(hidden[~chosen], ids[~chosen])
    masked, same = (hidden == 3) & chosen, (hidden == ids) & chosen
    assert float(masked.sum() / chosen.sum()) == pytest.approx(0.80 + 0.1 / 30, abs=0.02)
    assert float(same.sum() / chosen.sum()) == pytest.approx(0.10 + 0.1 / 30, abs=0.02)


def test_bert_never_hides_a_token_behind_padding():
    """Padding in place of a token would take the token's position out of the attention as well."""
    for pad_id in (0, 2, 5):
        net, ids = bert(vocab=6, pad_id=pad_id), torch.full((50, 50), 4)
        hidden, _ = net.hide(ids, 1.0, torch.Generator().manual_seed(1))
        assert set(hidden.unique().tolist()) == set(range(6)) - {pad_id}
    with pytest.raises(ValueError, match="mask_id must differ from pad_id"):
        bert(mask_id=0)


def test_bert_learns_from_ids_of_32_bits():
    net, ids = bert().eval(), torch.randint(4, 30, (2, 9))
    hidden, labels = net.hide(ids.int(), 0.5, torch.Generator().manual_seed(1))
    same, labels_64 = net.hide(ids, 0.5, torch.Generator().manual_seed(1))
    assert hidden.dtype == torch.int32 and torch.equal(hidden, same.int())
    assert float(net.loss(hidden, labels)) == float(net.loss(same, labels_64)) > 0


def test_the_losses_count_only_what_they_should():
    model_ = bert().eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    labels = torch.full_like(ids, families.IGNORED)
    assert float(model_.loss(ids, labels)) == 0.0
    labels[0, 2] = 9
    log_p = model_(ids).log_softmax(dim=-1)
    assert float(model_.loss(ids, labels)) == pytest.approx(-float(log_p[0, 2, 9]), rel=1e-5)
    gpt = families.DecoderOnly(families.DecoderOnlyConfig(vocab=30, d_model=16, n_heads=2, d_ff=32)).eval()
    padded = torch.tensor([[1, 5, 6, 0, 0]])
    assert float(gpt.loss(padded)) == pytest.approx(float(gpt.loss(padded[:, :3])), rel=1e-5)


def test_segments_and_positions_are_added():
    model_ = bert().eval()
    ids = torch.tensor([[5, 6]])
    assert model_.encode(ids).shape == (1, 2, 16)
    assert not torch.allclose(model_.encode(ids), model_.encode(ids, torch.tensor([[0, 1]])))
    with pytest.raises(ValueError, match="positions"):
        bert(max_positions=3)(torch.ones(1, 4, dtype=torch.long))


def test_published_sizes_are_met():
    big = families.EncoderOnly(families.EncoderOnlyConfig(vocab=30_522, d_model=768, n_heads=12, d_ff=3072, n_layers=12))
    head = sum(p.numel() for p in big.head.parameters()) + big.output_bias.numel()
    pooler = 768 * 768 + 768  # BERT's own count has a pooler in place of this head
    assert counting.parameter_count(big) - head + pooler == 109_482_240
    gpt = families.DecoderOnly(
        families.DecoderOnlyConfig(vocab=50_257, d_model=768, n_heads=12, d_ff=3072, n_layers=12, max_positions=1024)
    )
    assert counting.parameter_count(gpt) == 124_439_808
    vit = families.VisionTransformer(
        families.VisionTransformerConfig(1000, image_size=224, patch_size=16, d_model=768, n_heads=12, d_ff=3072, n_layers=12)
    )
    assert vit.config.n_patches == 196 and len(vit.positions) == 197
    assert round(counting.parameter_count(vit) / 1e6, 1) == 86.6


def test_an_image_becomes_patches_row_by_row():
    config = families.VisionTransformerConfig(n_classes=3, image_size=4, patch_size=2, channels=1, d_model=8, n_heads=2)
    vit = families.VisionTransformer(config).eval()
    image = torch.arange(16.0).view(1, 1, 4, 4)
    assert vit.patches(image)[0].tolist() == [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    weights = []
    assert vit(image, weights).shape == (1, 3)
    assert weights[0].shape == (1, 2, 5, 5)
    with pytest.raises(ValueError, match="images must have shape"):
        vit(torch.zeros(1, 3, 4, 4))
    with pytest.raises(ValueError, match="divide"):
        families.VisionTransformerConfig(n_classes=3, image_size=10, patch_size=4)


@pytest.mark.parametrize("kind", ["bert", "gpt", "vit"])
def test_relatives_learn(kind):
    torch.manual_seed(2)
    if kind == "vit":
        net = families.VisionTransformer(families.VisionTransformerConfig(2, 8, 4, 1, 16, 2, 32, 1, dropout=0.0))
        images = torch.randn(16, 1, 8, 8)
        labels = (images[:, 0, 0, 0] > 0).long()
        loss = lambda: net.loss(images, labels)  # noqa: E731
    elif kind == "gpt":
        net = families.DecoderOnly(families.DecoderOnlyConfig(12, 16, 2, 32, 1, dropout=0.0))
        ids = torch.randint(3, 12, (8, 7))
        loss = lambda: net.loss(ids)  # noqa: E731
    else:
        net = families.EncoderOnly(families.EncoderOnlyConfig(12, 16, 2, 32, 1, dropout=0.0))
        hidden, labels = net.hide(torch.randint(4, 12, (8, 7)), 0.4)
        loss = lambda: net.loss(hidden, labels)  # noqa: E731
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    first = float(loss().detach())
    for _ in range(60):
        optimiser.zero_grad()
        value = loss()
        value.backward()
        optimiser.step()
    assert float(loss().detach()) < 0.5 * first


# ------------------------------------------------------------------------------------------------------------- baselines


def translators():
    torch.manual_seed(0)
    sizes = {"source_vocab": 11, "target_vocab": 11, "d_model": 16}
    for attention, layers in (("none", 2), ("bahdanau", 1), ("gnmt", 3)):
        for cell in ("rnn", "lstm"):
            yield baselines.RecurrentTranslator(
                baselines.RecurrentConfig(**sizes, n_layers=layers, cell=cell, attention=attention)
            )
    for dilated in (False, True):
        yield baselines.ConvolutionalTranslator(baselines.ConvolutionalConfig(**sizes, dilated=dilated))
    yield Transformer(TransformerConfig(**SMALL))


@pytest.mark.parametrize(
    "net", list(translators()), ids=lambda net: f"{type(net).__name__}-{getattr(net.config, 'attention', '')}"
)
def test_one_interface_one_law(net):
    """Logits of one shape; padding changes nothing; no prediction sees a later token; one training loop serves all."""
    net.eval()
    source, target = torch.tensor([[3, 4, 5, 6], [7, 8, 0, 0]]), torch.tensor([[1, 3, 4], [1, 5, 6]])
    logits = net(source, target)
    assert logits.shape == (2, 3, 11)
    torch.testing.assert_close(net(source[1:, :2], target[1:]), logits[1:], rtol=1e-4, atol=1e-5)
    later = target.clone()
    later[:, 2] = 9
    torch.testing.assert_close(net(source, later)[:, :2], logits[:, :2])
    assert not torch.allclose(net(source, later)[:, 2], logits[:, 2])
    source_changed = source.clone()
    source_changed[0, 3] = 9
    assert not torch.allclose(net(source_changed, target)[0], logits[0])

    net.train()
    optimiser = torch.optim.Adam(net.parameters(), lr=1e-2)
    losses = []
    torch.manual_seed(0)
    for _ in range(40):
        loss = torch.nn.functional.cross_entropy(net(source, target).flatten(0, 1), torch.tensor([3, 4, 2, 5, 6, 2]))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        losses.append(float(loss.detach()))
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize(
    "net", list(translators()), ids=lambda net: f"{type(net).__name__}-{getattr(net.config, 'attention', '')}"
)
def test_a_source_of_nothing_but_padding_says_the_same_at_any_length(net):
    net.eval()
    nothing, target = torch.zeros(2, 4, dtype=torch.long), torch.tensor([[1, 3, 4], [1, 5, 6]])
    torch.testing.assert_close(net(nothing[:, :1], target), net(nothing, target), rtol=1e-4, atol=1e-5)
    net(nothing, target).sum().backward()
    assert all(torch.isfinite(p.grad).all() for p in net.parameters() if p.grad is not None)


@pytest.mark.parametrize("name", ["bos_id", "eos_id"])
@pytest.mark.parametrize(
    "make",
    [
        lambda **ids: TransformerConfig(**SMALL, **ids),
        lambda **ids: families.DecoderOnlyConfig(11, **ids),
        lambda **ids: baselines.RecurrentConfig(11, 11, **ids),
        lambda **ids: baselines.ConvolutionalConfig(11, 11, **ids),
    ],
)
def test_padding_has_a_number_of_its_own(make, name):
    """A BOS that is padding would be masked in training and not in writing; an EOS that is padding would never be written."""
    with pytest.raises(ValueError, match=f"{name} must differ from pad_id"):
        make(pad_id=3, **{name: 3})
    make(pad_id=3, bos_id=2, eos_id=2)


def test_without_attention_the_source_is_one_vector_of_fixed_length():
    plain, attends = (
        baselines.RecurrentTranslator(baselines.RecurrentConfig(11, 11, 16, attention=which)) for which in ("none", "bahdanau")
    )
    source = torch.randint(3, 11, (1, 9))
    assert plain._begin(source).keys is None and len(plain._begin(source).states) == 1
    assert attends._begin(source).keys.shape == (1, 9, 16)


@pytest.mark.parametrize(("dilated", "reach"), [(False, 3), (True, 1 + 3 + 9)])
def test_the_receptive_field_grows_by_addition_or_by_powers(dilated, reach):
    torch.manual_seed(0)
    net = baselines.ConvolutionalTranslator(baselines.ConvolutionalConfig(60, 11, 16, n_layers=3, dilated=dilated)).eval()
    source = torch.randint(3, 60, (1, 41))
    changed = source.clone()
    changed[0, 20] = 3 if source[0, 20] != 3 else 4
    moved_ = ((net.encode(changed)[0] - net.encode(source)[0]).abs().amax(dim=-1)[0] > 0).nonzero().flatten().tolist()
    assert (moved_[0], moved_[-1]) == (20 - reach, 20 + reach)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: baselines.RecurrentConfig(5, 5, cell="gru"), "cell"),
        (lambda: baselines.RecurrentConfig(5, 5, attention="luong"), "attention"),
        (lambda: baselines.RecurrentConfig(5, 5, attention="gnmt"), "n_layers"),
        (lambda: baselines.ConvolutionalConfig(5, 5, kernel=4), "kernel"),
        (lambda: baselines.ConvolutionalConfig(0, 5), "source_vocab"),
    ],
)
def test_impossible_baselines_are_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


# --------------------------------------------------------------------------------------------------------------- counting


def test_counts_agree_with_the_equations_and_the_modules():
    for bias in (True, False):
        base = TransformerConfig.base(bias=bias)
        assert counting.parameters_of(base) == equations.parameter_count(512, 2048, 6, 37_000, biases=bias)
    assert counting.parameters_of(TransformerConfig.base()) == 63_082_496
    for changes in (
        {},
        {"norm": "pre"},
        {"n_decoder_layers": 3, "norm": "pre"},
        {"bias": False, "d_k": 3},
        {"tied": False},
        {"target_vocab": 7},
        {"target_vocab": 7, "tied": False, "positions": "learned", "max_positions": 20},
        {"positions": "learned", "max_positions": 9, "final_norm": True},
    ):
        config = TransformerConfig(**SMALL | changes)
        assert counting.parameters_of(config) == counting.parameter_count(Transformer(config)), changes


def test_costs_agree_with_the_equations_and_with_what_torch_counts():
    config = TransformerConfig(**SMALL)
    cost = counting.forward_cost(config, 7, 5)
    own = equations.attention_cost(7, 16), equations.attention_cost(5, 16)
    assert cost.scores == 2 * (own[0].scores + own[1].scores + 5 * 7 * 16)
    layer = equations.layer_cost(7, 16, 32)
    alone = counting.forward_cost(config, 7, 5)._replace(output=0)
    assert alone.feed_forward == 2 * (layer.feed_forward + equations.layer_cost(5, 16, 32).feed_forward)

    from torch.utils.flop_counter import FlopCounterMode

    net = Transformer(config).eval()
    with FlopCounterMode(display=False) as counter:
        net(torch.randint(3, 11, (1, 7)), torch.randint(3, 11, (1, 5)), need_weights=True)  # the explicit path, which it can see
    assert counter.get_total_flops() == 2 * cost.total


def test_table_3_computed_against_published():
    assert len(counting.TABLE_3) == 20
    for row in counting.TABLE_3:
        if row.millions:
            assert counting.parameters_of(row.config) / 1e6 == pytest.approx(row.millions, rel=0.07), row
    by_change = {
        (row.row, row.config.n_layers, row.config.d_ff, row.config.d_k): counting.parameters_of(row.config)
        for row in counting.TABLE_3
    }
    base = by_change["base", 6, 2048, None]
    assert base - by_change["B", 6, 2048, 16] == 18 * 2 * 512 * 384  # differences agree with the paper where totals do not
    assert by_change["C", 6, 4096, None] - base == 12 * 2 * 512 * 2048 + 12 * 2048
    heads = {counting.parameters_of(row.config) for row in counting.TABLE_3 if row.row == "A"}
    assert heads == {base}  # the number of heads changes nothing
    best = min(counting.TABLE_3, key=lambda row: row.perplexity)
    assert best.row == "big" and best.bleu == max(row.bleu for row in counting.TABLE_3)


# ------------------------------------------------------------------------------------------------------ configuration, saving


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"n_heads": 3}, "n_heads must divide d_model = 16"),
        ({"d_model": 0}, "d_model"),
        ({"d_model": 16.0}, "d_model"),
        ({"dropout": 1.0}, "dropout"),
        ({"norm": "middle"}, "norm"),
        ({"activation": "tanh"}, "activation"),
        ({"positions": "rotary"}, "positions"),
        ({"d_model": 15, "n_heads": 3}, "even"),
        ({"pad_id": 11}, "pad_id"),
        ({"target_vocab": 2}, "eos_id"),
        ({"eps": 0.0}, "eps"),
    ],
)
def test_impossible_configurations_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        TransformerConfig(**SMALL | changes)


def test_the_configuration_is_the_papers_and_frozen():
    base, big = TransformerConfig.base(), TransformerConfig.big()
    assert (base.n_layers, base.d_model, base.d_ff, base.n_heads, base.dropout) == (6, 512, 2048, 8, 0.1)
    assert (big.n_layers, big.d_model, big.d_ff, big.n_heads, big.dropout) == (6, 1024, 4096, 16, 0.3)
    assert (base.norm, base.activation, base.positions, base.tied, base.has_final_norm) == (
        "post",
        "relu",
        "sinusoidal",
        True,
        False,
    )
    with pytest.raises(dataclasses.FrozenInstanceError):
        base.d_model = 3
    net = Transformer(TransformerConfig(**SMALL))
    assert net.output.weight is net.source_embedding.tokens.weight is net.target_embedding.tokens.weight


def test_learned_positions_end_and_sinusoids_do_not():
    learned, fixed = (
        Transformer(TransformerConfig(**SMALL, positions=p, max_positions=8)).eval() for p in ("learned", "sinusoidal")
    )
    ids = torch.randint(3, 11, (1, 12))
    with pytest.raises(ValueError, match="8 learned positions"):
        learned(ids, ids)
    assert fixed(ids, ids).shape == (1, 12, 11)
    torch.testing.assert_close(fixed.source_embedding.positions.table[:12], model.sinusoids(12, 16).float())


def every_model():
    yield Transformer(TransformerConfig(**SMALL, norm="pre", positions="learned", max_positions=9))
    yield families.EncoderOnly(families.EncoderOnlyConfig(vocab=11, d_model=16, n_heads=2, d_ff=32))
    yield families.DecoderOnly(families.DecoderOnlyConfig(vocab=11, d_model=16, n_heads=2, d_ff=32))
    yield families.VisionTransformer(families.VisionTransformerConfig(n_classes=3, d_model=16, n_heads=2, d_ff=32))
    yield baselines.RecurrentTranslator(baselines.RecurrentConfig(11, 9, 16, attention="bahdanau"))
    yield baselines.ConvolutionalTranslator(baselines.ConvolutionalConfig(11, 9, 16))


@pytest.mark.parametrize("net", list(every_model()), ids=lambda net: type(net).__name__)
def test_saved_and_loaded_it_is_the_same(net, tmp_path):
    saving.save(net, tmp_path / "model")
    again = saving.load(tmp_path / "model")
    assert type(again) is type(net) and again.config == net.config and not again.training
    assert set(again.state_dict()) == set(net.state_dict())
    for name, tensor in net.state_dict().items():
        assert torch.equal(again.state_dict()[name], tensor), name
    saving.save(again, tmp_path / "model")  # over what is there
    assert sorted(path.name for path in (tmp_path / "model").iterdir()) == ["config.json", "weights.safetensors"]


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_the_dtype_is_saved_too(dtype, tmp_path):
    net = Transformer(TransformerConfig(**SMALL)).double()
    with torch.no_grad():
        net.output.weight.div_(3)  # digits that float32 has not
    saving.save(net.to(dtype), tmp_path)
    again = saving.load(tmp_path)
    assert again.output.weight.dtype == dtype and torch.equal(again.output.weight, net.output.weight)


def test_what_could_not_be_loaded_is_not_saved(tmp_path):
    class Mine(Transformer):
        pass

    settings = TransformerConfig(**SMALL)
    for net in (torch.nn.Linear(2, 2), Mine(settings), torch.compile(Transformer(settings))):
        with pytest.raises(TypeError, match=r"model must be one of Transformer, .* got"):
            saving.save(net, tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_tied_matrices_stay_tied(tmp_path):
    saving.save(Transformer(TransformerConfig(**SMALL)), tmp_path)
    again = saving.load(tmp_path)
    assert again.output.weight is again.source_embedding.tokens.weight


def damage(folder, how):
    config, weights = folder / "config.json", folder / "weights.safetensors"
    about = json.loads(config.read_text())
    if how == "no folder":
        return folder / "elsewhere"
    if how == "no weights":
        weights.unlink()
    elif how == "cut off":
        weights.write_bytes(weights.read_bytes()[:-200])
    elif how == "empty":
        weights.write_bytes(b"")
    elif how == "a pickle":
        torch.save({"a": 1}, weights)
    elif how == "not json":
        config.write_text("{")
    elif how == "foreign json":
        config.write_text('{"architectures": ["MarianMTModel"]}')
    elif how == "a list for a name":
        config.write_text(json.dumps(about | {"model": ["Transformer"]}))
    elif how == "deep":
        config.write_text("[" * 200_000)
    elif how == "too big":
        config.write_text(json.dumps(about | {"config": about["config"] | {"d_ff": 10**15}}))
    elif how == "whole numbers":
        from safetensors.torch import save_file

        save_file({"output.weight": torch.zeros(11, 16, dtype=torch.int32)}, weights)
    elif how == "a list":
        config.write_text("[1]")
    elif how == "newer format":
        config.write_text(json.dumps(about | {"format": 99}))
    elif how == "unknown setting":
        config.write_text(json.dumps(about | {"config": about["config"] | {"experts": 8}}))
    elif how == "impossible setting":
        config.write_text(json.dumps(about | {"config": about["config"] | {"n_heads": 5}}))
    elif how == "other sizes":
        config.write_text(json.dumps(about | {"config": about["config"] | {"d_ff": 64}}))
    return folder


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ("no folder", FileNotFoundError, "config.json"),
        ("no weights", FileNotFoundError, "weights.safetensors"),
        ("cut off", saving.BadModelFile, "damaged or cut off"),
        ("empty", saving.BadModelFile, "damaged or cut off"),
        ("a pickle", saving.BadModelFile, "damaged or cut off"),
        ("not json", saving.BadModelFile, "not JSON"),
        ("foreign json", saving.BadModelFile, "does not describe a model"),
        ("a list", saving.BadModelFile, "does not describe a model"),
        ("a list for a name", saving.BadModelFile, "does not describe a model"),
        ("deep", saving.BadModelFile, "not JSON"),
        ("too big", saving.BadModelFile, "no model that can be built"),
        ("whole numbers", saving.BadModelFile, "does not fit"),
        ("newer format", saving.BadModelFile, "update transformer_lite"),
        ("unknown setting", saving.BadModelFile, "experts"),
        ("impossible setting", saving.BadModelFile, "n_heads must divide"),
        ("other sizes", saving.BadModelFile, "does not fit"),
    ],
)
def test_damaged_and_foreign_files_are_named(how, error, words, tmp_path):
    saving.save(Transformer(TransformerConfig(**SMALL)), tmp_path)
    with pytest.raises(error, match=words):
        saving.load(damage(tmp_path, how))


# ---------------------------------------------------------------------------------------------------------------- devices


def test_the_device_is_cuda_else_cpu_or_what_was_asked(monkeypatch):
    monkeypatch.delenv("TRANSFORMER_LITE_DEVICE", raising=False)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert model.device() == torch.device("cpu")  # MPS only when asked for
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert model.device() == torch.device("cuda")
    monkeypatch.setenv("TRANSFORMER_LITE_DEVICE", "cpu")
    assert model.device() == torch.device("cpu")
    monkeypatch.setenv("TRANSFORMER_LITE_DEVICE", "MPS")
    assert model.device() == torch.device("mps")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: False)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    for asked, words in (("mps", "no such device"), ("cuda:1", "no such device"), ("tpu!", "must be"), ("meta", "must be")):
        monkeypatch.setenv("TRANSFORMER_LITE_DEVICE", asked)
        with pytest.raises(ValueError, match=words):
            model.device()


def test_a_module_is_moved_and_compiled_only_if_asked(monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_DEVICE", "cpu")
    net = Transformer(TransformerConfig(**SMALL))
    assert model.to_device(net) is net
    compiled = model.to_device(net, compile=True)  # nothing is compiled before its first call
    assert compiled is not net and compiled._orig_mod is net


def test_importing_the_room_touches_no_device():
    code = (
        "import torch; calls = []\n"
        "torch.cuda.is_available = torch.cuda.device_count = lambda: calls.append(1) or 0\n"
        "torch.backends.mps.is_available = lambda: calls.append(1)\n"
        "import transformer_lite.model, transformer_lite.model.interop, transformer_lite.model.saving\n"
        "print(len(calls))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "0"


def test_perplexity_of_a_uniform_guess_is_the_vocabulary():
    """The families' loss is in nats: e^loss of a model that knows nothing is V."""
    gpt = families.DecoderOnly(families.DecoderOnlyConfig(vocab=30, d_model=16, n_heads=2, d_ff=32)).eval()
    with torch.no_grad():
        gpt.embedding.tokens.weight.zero_()
    assert math.exp(float(gpt.loss(torch.tensor([[1, 5, 6, 7]])).detach())) == pytest.approx(30, rel=1e-4)
