"""The encoder layer and the decoder layer: section 3.1 and figure 1 of the paper."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import floating
from transformer_lite.equations.guarding import reference
from transformer_lite.equations.heads import Projections, multi_head_attention
from transformer_lite.equations.sublayers import add_and_norm, feed_forward


@dataclass(frozen=True)
class EncoderParameters:
    """The learned arrays of one encoder layer: one field for each matrix of the paper. W are (d_model, d_model) unless said."""

    w_q: NDArray[np.floating]
    w_k: NDArray[np.floating]
    w_v: NDArray[np.floating]
    w_o: NDArray[np.floating]
    attention_gain: NDArray[np.floating]  # (d_model,), of the LayerNorm after self-attention
    attention_bias: NDArray[np.floating]  # (d_model,)
    w1: NDArray[np.floating]  # (d_model, d_ff)
    b1: NDArray[np.floating]  # (d_ff,)
    w2: NDArray[np.floating]  # (d_ff, d_model)
    b2: NDArray[np.floating]  # (d_model,)
    feed_forward_gain: NDArray[np.floating]  # (d_model,), of the LayerNorm after the feed-forward network
    feed_forward_bias: NDArray[np.floating]  # (d_model,)

    @property
    def self_projections(self) -> Projections:
        """W^Q, W^K, W^V, W^O of the self-attention."""
        return Projections(self.w_q, self.w_k, self.w_v, self.w_o)

    @classmethod
    def random(cls, d_model: int, d_ff: int, rng: np.random.Generator) -> Self:
        """Arrays of the right shapes, drawn from ``rng``: gains near 1, biases near 0, matrices that keep the size of x."""
        return cls(**_random(cls, d_model, d_ff, rng))


@dataclass(frozen=True)
class DecoderParameters(EncoderParameters):
    """The learned arrays of one decoder layer: those of the encoder layer, and those of the attention to the encoder's output."""

    memory_w_q: NDArray[np.floating]
    memory_w_k: NDArray[np.floating]
    memory_w_v: NDArray[np.floating]
    memory_w_o: NDArray[np.floating]
    memory_gain: NDArray[np.floating]  # (d_model,), of the LayerNorm after cross-attention
    memory_bias: NDArray[np.floating]  # (d_model,)

    @property
    def memory_projections(self) -> Projections:
        """W^Q, W^K, W^V, W^O of the cross-attention."""
        return Projections(self.memory_w_q, self.memory_w_k, self.memory_w_v, self.memory_w_o)


@reference
def encoder_layer(
    x: ArrayLike, parameters: EncoderParameters, n_heads: int, mask: ArrayLike | None = None
) -> NDArray[np.floating]:
    """One encoder layer: self-attention, then the feed-forward network, each inside Add & Norm (Post-LN).

    Args:
        x: (..., n, d_model).
        parameters: `EncoderParameters`.
        n_heads: h; must divide d_model.
        mask: Boolean, broadcastable to (..., n, n); True = may attend. Padding only: the encoder sees both sides.

    Returns:
        Same shape as ``x``.

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.1, figure 1 (left). Dropout belongs to training and is left out.
    """
    p = parameters
    x = add_and_norm(
        floating(x),
        lambda inner: multi_head_attention(inner, p.self_projections, n_heads, mask).output,
        p.attention_gain,
        p.attention_bias,
    )
    return add_and_norm(
        x, lambda inner: feed_forward(inner, p.w1, p.b1, p.w2, p.b2), p.feed_forward_gain, p.feed_forward_bias
    )


@reference
def decoder_layer(
    y: ArrayLike,
    memory: ArrayLike,
    parameters: DecoderParameters,
    n_heads: int,
    self_mask: ArrayLike | None = None,
    memory_mask: ArrayLike | None = None,
) -> NDArray[np.floating]:
    """One decoder layer: masked self-attention, attention to the encoder's output, feed-forward; each inside Add & Norm.

    Args:
        y: (..., n, d_model).
        memory: (..., n_source, d_model), the final output of the encoder, the same for every decoder layer.
        parameters: `DecoderParameters`.
        n_heads: h; must divide d_model.
        self_mask: Boolean, broadcastable to (..., n, n); True = may attend. The causal mask belongs here.
        memory_mask: Boolean, broadcastable to (..., n, n_source); True = may attend. Padding of the source only.

    Returns:
        Same shape as ``y``.

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.1, figure 1 (right).
    """
    p = parameters
    y = add_and_norm(
        floating(y),
        lambda inner: multi_head_attention(inner, p.self_projections, n_heads, self_mask).output,
        p.attention_gain,
        p.attention_bias,
    )
    y = add_and_norm(
        y,
        lambda inner: multi_head_attention(inner, p.memory_projections, n_heads, memory_mask, memory).output,
        p.memory_gain,
        p.memory_bias,
    )
    return add_and_norm(
        y, lambda inner: feed_forward(inner, p.w1, p.b1, p.w2, p.b2), p.feed_forward_gain, p.feed_forward_bias
    )


def _random(kind: type, d_model: int, d_ff: int, rng: np.random.Generator) -> dict[str, NDArray[np.floating]]:
    shapes = {"w1": (d_model, d_ff), "b1": (d_ff,), "w2": (d_ff, d_model)}
    arrays = {}
    for name in kind.__dataclass_fields__:
        is_vector = name in ("b1", "b2") or name.endswith(("_gain", "_bias"))
        shape = shapes.get(name, (d_model,) if is_vector else (d_model, d_model))
        centre = 1.0 if name.endswith("_gain") else 0.0
        spread = 0.3 if is_vector else 1.0 / np.sqrt(shape[0])
        arrays[name] = centre + spread * rng.standard_normal(shape)
    return arrays
