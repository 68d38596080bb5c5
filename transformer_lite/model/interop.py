"""Weights to and from ``torch.nn``: MultiheadAttention, TransformerEncoderLayer, TransformerDecoderLayer and Transformer.

What to mind: ``torch.nn`` stacks W^Q, W^K, W^V as this package does; its masks of `nn.MultiheadAttention` and its padding masks
say True for what is *ignored*; ``batch_first`` is off unless asked for; `nn.Transformer` puts a LayerNorm after each stack even
when it is Post-LN, where the paper has none; and it has no embeddings, no positions and no output projection.
"""

from __future__ import annotations

from typing import Any, overload

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.model.attention import CAUSAL, MultiHeadAttention
from transformer_lite.model.config import TransformerConfig
from transformer_lite.model.layers import Decoder, DecoderLayer, Encoder, EncoderLayer


class Stacks(nn.Module):
    """What ``nn.Transformer`` is: an encoder and a decoder, from vectors to vectors, without embeddings and output.

    Args:
        encoder, decoder: stacks of one width.
    """

    def __init__(self, encoder: Encoder, decoder: Decoder):
        super().__init__()
        self.encoder, self.decoder = encoder, decoder

    def forward(
        self,
        x: Tensor,
        y: Tensor,
        source_mask: Tensor | None = None,
        self_mask: Tensor | None = None,
        memory_mask: Tensor | None = None,
    ) -> Tensor:
        """(batch, n_source, d_model) and (batch, n_target, d_model) -> (batch, n_target, d_model).

        Masks are Boolean, True = may attend; ``self_mask`` is the causal one if None.
        """
        return self.decoder(y, self.encoder(x, source_mask), CAUSAL if self_mask is None else self_mask, memory_mask)


@overload
def from_torch(module: nn.MultiheadAttention) -> MultiHeadAttention: ...
@overload
def from_torch(module: nn.TransformerEncoderLayer) -> EncoderLayer: ...
@overload
def from_torch(module: nn.TransformerDecoderLayer) -> DecoderLayer: ...
@overload
def from_torch(module: nn.Transformer) -> Stacks: ...


def from_torch(module: nn.Module) -> Any:
    """This package's module with a copy of the weights of a ``torch.nn`` module, in the same mode, dtype and device.

    Args:
        module: `nn.MultiheadAttention`, `nn.TransformerEncoderLayer`, `nn.TransformerDecoderLayer` or `nn.Transformer`, with
            ``batch_first`` or without: the copy is batch first. Biases that it lacks (``bias=False``) are zeros here.

    Raises:
        TypeError: another class. ValueError: a setting that the paper's model has not (other widths of keys and values,
            ``add_bias_kv``, ``add_zero_attn``, an activation other than ReLU and GELU, dropout within attention while training,
            stacks without layers or of other classes).
    """
    for kind, convert in (
        (nn.MultiheadAttention, _attention_from),
        (nn.TransformerEncoderLayer, _encoder_layer_from),
        (nn.TransformerDecoderLayer, _decoder_layer_from),
        (nn.Transformer, _stacks_from),
    ):
        if isinstance(module, kind):
            return convert(module).train(module.training)
    raise TypeError(
        "module must be nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerDecoderLayer or nn.Transformer; "
        f"got {type(module).__name__}."
    )


def to_torch(module: nn.Module, *, batch_first: bool = True) -> nn.Module:
    """The ``torch.nn`` module with a copy of the weights of one of this package's: the reverse of `from_torch`.

    While it trains with dropout the new module drops attention weights and inner features as well; evaluating it is the same.

    Args:
        module: `MultiHeadAttention`, `EncoderLayer`, `DecoderLayer`, `Stacks`, or a `Transformer`, whose stacks are taken
            (``torch.nn`` has no embeddings and no output projection).
        batch_first: of the new module.

    Raises:
        TypeError: another class. ValueError: d_k other than d_model / h, which ``torch.nn`` cannot express.
    """
    if isinstance(module, MultiHeadAttention):
        made = _attention_to(module, batch_first)
    elif isinstance(module, DecoderLayer):
        made = _decoder_layer_to(module, batch_first)
    elif isinstance(module, EncoderLayer):
        made = _encoder_layer_to(module, batch_first)
    elif isinstance(getattr(module, "encoder", None), Encoder) and isinstance(getattr(module, "decoder", None), Decoder):
        made = _stacks_to(module, batch_first)
    else:
        raise TypeError(
            f"module must be MultiHeadAttention, EncoderLayer, DecoderLayer, Stacks or Transformer; got {type(module).__name__}."
        )
    return made.train(module.training)


# --- from torch.nn ---


def _attention_from(theirs: nn.MultiheadAttention) -> MultiHeadAttention:
    if not theirs._qkv_same_embed_dim:
        raise ValueError("keys and values must be as wide as queries (kdim and vdim unset): the paper has one d_model.")
    if theirs.bias_k is not None or theirs.add_zero_attn:
        raise ValueError("add_bias_kv and add_zero_attn must be off: the paper attends to tokens only.")
    ours = MultiHeadAttention(theirs.embed_dim, theirs.num_heads, bias=theirs.in_proj_bias is not None)
    ours.to(theirs.in_proj_weight)  # before the copy: float64 would lose its last digits on the way through float32
    with torch.no_grad():
        _copy_attention(theirs.in_proj_weight, theirs.in_proj_bias, theirs.out_proj, ours)
    return ours


def _copy_attention(weight: Tensor, bias: Tensor | None, out: nn.Linear, ours: MultiHeadAttention) -> None:
    ours.w_qkv.copy_(weight)
    if bias is not None:
        ours.b_qkv.copy_(bias)
    _copy(out, ours.w_o)


def _copy(source: nn.Module, target: nn.Module) -> None:
    """A linear map or a LayerNorm. A bias that the source has not is zero in the target."""
    target.weight.copy_(source.weight)
    if target.bias is not None:
        target.bias.copy_(torch.zeros_like(target.bias) if source.bias is None else source.bias)
    if isinstance(source, nn.LayerNorm):
        target.eps = source.eps


def _config_of(layer: nn.TransformerEncoderLayer | nn.TransformerDecoderLayer, **changes: Any) -> TransformerConfig:
    name = layer.activation
    if name is F.relu or isinstance(name, nn.ReLU):
        activation = "relu"
    elif name is F.gelu or (isinstance(name, nn.GELU) and name.approximate == "none"):
        activation = "gelu"
    else:
        raise ValueError(f"the activation must be ReLU or GELU; got {name!r}.")
    if layer.training and (layer.dropout.p or layer.self_attn.dropout):
        raise ValueError("torch.nn also drops attention weights and inner features, which the paper does not: call eval() first.")
    return TransformerConfig(
        **{
            "source_vocab": 3,
            "d_model": layer.self_attn.embed_dim,
            "n_heads": layer.self_attn.num_heads,
            "d_ff": layer.linear1.out_features,
            "n_layers": 1,
            "dropout": layer.dropout1.p,
            "norm": "pre" if layer.norm_first else "post",
            "activation": activation,
            "positions": "none",
            "bias": layer.self_attn.in_proj_bias is not None,
            "eps": layer.norm1.eps,
        }
        | changes
    )


def _encoder_layer_from(theirs: nn.TransformerEncoderLayer) -> EncoderLayer:
    return _layer_from(theirs, EncoderLayer)


def _decoder_layer_from(theirs: nn.TransformerDecoderLayer) -> DecoderLayer:
    return _layer_from(theirs, DecoderLayer)


@torch.no_grad()
def _layer_from(theirs: Any, kind: Any) -> Any:
    ours = kind(_config_of(theirs)).to(theirs.linear1.weight)
    for attention, mine in _attentions(theirs, ours):
        _copy_attention(attention.in_proj_weight, attention.in_proj_bias, attention.out_proj, mine)
    for part, mine in _parts(theirs, ours):
        _copy(part, mine)
    return ours


def _attentions(theirs: Any, ours: EncoderLayer | DecoderLayer) -> list[tuple[nn.MultiheadAttention, MultiHeadAttention]]:
    """Which attention of a layer of ``torch.nn`` is which of ours."""
    pairs = [(theirs.self_attn, ours.self_attention)]
    if isinstance(ours, DecoderLayer):
        pairs.append((theirs.multihead_attn, ours.cross_attention))
    return pairs


def _parts(theirs: Any, ours: EncoderLayer | DecoderLayer) -> list[tuple[nn.Module, nn.Module]]:
    """Which linear map and LayerNorm of a layer of ``torch.nn`` is which of ours."""
    network = [(theirs.linear1, ours.feed_forward.w_1), (theirs.linear2, ours.feed_forward.w_2)]
    if isinstance(ours, DecoderLayer):
        around = (ours.around_self_attention, ours.around_cross_attention, ours.around_feed_forward)
        norms = (theirs.norm1, theirs.norm2, theirs.norm3)
    else:
        around, norms = (ours.around_attention, ours.around_feed_forward), (theirs.norm1, theirs.norm2)
    return network + [(norm, each.norm) for norm, each in zip(norms, around, strict=True)]


@torch.no_grad()
def _stacks_from(theirs: nn.Transformer) -> Stacks:
    halves = []
    for name, stack, kind, convert in (
        ("encoder", theirs.encoder, Encoder, _encoder_layer_from),
        ("decoder", theirs.decoder, Decoder, _decoder_layer_from),
    ):
        if not isinstance(stack, nn.TransformerEncoder | nn.TransformerDecoder) or not len(stack.layers):
            got = f"{type(stack).__name__} of {len(getattr(stack, 'layers', ()))}"
            raise ValueError(f"the {name} must be an nn.Transformer{name.title()} of 1 layer or more; got {got}.")
        ours = kind(_config_of(stack.layers[0], final_norm=stack.norm is not None))
        ours.layers = nn.ModuleList(map(convert, stack.layers))  # each with its own choices
        if stack.norm is not None:
            ours.norm.to(stack.norm.weight)
            _copy(stack.norm, ours.norm)
        halves.append(ours)
    return Stacks(*halves)


# --- to torch.nn ---


def _attention_to(ours: MultiHeadAttention, batch_first: bool) -> nn.MultiheadAttention:
    _same_width(ours)
    theirs = nn.MultiheadAttention(ours.d_model, ours.n_heads, bias=ours.b_qkv is not None, batch_first=batch_first)
    theirs.to(ours.w_qkv)
    _export_attention(ours, theirs)
    return theirs


@torch.no_grad()
def _export_attention(ours: MultiHeadAttention, theirs: nn.MultiheadAttention) -> None:
    theirs.in_proj_weight.copy_(ours.w_qkv)
    if theirs.in_proj_bias is not None:  # a layer of torch.nn always has biases; where ours has none they are zero
        theirs.in_proj_bias.copy_(torch.zeros_like(theirs.in_proj_bias) if ours.b_qkv is None else ours.b_qkv)
    _copy(ours.w_o, theirs.out_proj)


def _same_width(ours: MultiHeadAttention) -> None:
    if ours.d_k != ours.d_v:
        raise ValueError(f"torch.nn needs d_k = d_model / h = {ours.d_v}; this attention has d_k = {ours.d_k}.")


def _arguments(ours: EncoderLayer | DecoderLayer, around: Any, batch_first: bool) -> dict[str, Any]:
    _same_width(ours.self_attention)
    return {
        "d_model": ours.self_attention.d_model,
        "nhead": ours.self_attention.n_heads,
        "dim_feedforward": ours.feed_forward.w_1.out_features,
        "dropout": around.dropout.p,
        "activation": ours.feed_forward.activation,
        "layer_norm_eps": around.norm.eps,
        "batch_first": batch_first,
        "norm_first": around.pre,
        "device": ours.self_attention.w_qkv.device,
        "dtype": ours.self_attention.w_qkv.dtype,
    }


def _encoder_layer_to(ours: EncoderLayer, batch_first: bool) -> nn.TransformerEncoderLayer:
    return _layer_to(ours, nn.TransformerEncoderLayer(**_arguments(ours, ours.around_attention, batch_first)))


def _decoder_layer_to(ours: DecoderLayer, batch_first: bool) -> nn.TransformerDecoderLayer:
    return _layer_to(ours, nn.TransformerDecoderLayer(**_arguments(ours, ours.around_self_attention, batch_first)))


@torch.no_grad()
def _layer_to(ours: EncoderLayer | DecoderLayer, theirs: Any) -> Any:
    for attention, mine in _attentions(theirs, ours):
        _export_attention(mine, attention)
    for part, mine in _parts(theirs, ours):
        _copy(mine, part)
    return theirs


def _stacks_to(ours: Any, batch_first: bool) -> nn.Transformer:
    first = ours.encoder.layers[0]
    theirs = nn.Transformer(
        **_arguments(first, first.around_attention, batch_first),
        num_encoder_layers=len(ours.encoder.layers),
        num_decoder_layers=len(ours.decoder.layers),
    )
    theirs.encoder.layers = nn.ModuleList(_encoder_layer_to(layer, batch_first) for layer in ours.encoder.layers)
    theirs.decoder.layers = nn.ModuleList(_decoder_layer_to(layer, batch_first) for layer in ours.decoder.layers)
    for mine, stack in ((ours.encoder, theirs.encoder), (ours.decoder, theirs.decoder)):
        if isinstance(mine.norm, nn.LayerNorm):
            with torch.no_grad():
                _copy(mine.norm, stack.norm)
        else:
            stack.norm = None
    return theirs
