"""The layers and their stacks: section 3.1 and figure 1 of the paper."""

from __future__ import annotations

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.model.attention import Mask, MultiHeadAttention
from transformer_lite.model.config import TransformerConfig

# ReLU overwrites what W_1 has just made: nobody else needs it, and at d_ff = 2048 a second array costs 4 % of the time.
ACTIVATIONS = {"relu": F.relu_, "gelu": F.gelu}


class FeedForward(nn.Module):
    """FFN(x) = max(0, x W_1 + b_1) W_2 + b_2, the same for every position (section 3.3)."""

    def __init__(self, d_model: int, d_ff: int, activation: str = "relu"):
        super().__init__()
        if activation not in ACTIVATIONS:
            raise ValueError(f"activation must be one of {', '.join(map(repr, ACTIVATIONS))}; got {activation!r}.")
        self.w_1 = nn.Linear(d_model, d_ff)
        self.w_2 = nn.Linear(d_ff, d_model)
        self.activation = activation
        for linear in (self.w_1, self.w_2):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    def forward(self, x: Tensor) -> Tensor:
        """(batch, n, d_model) -> (batch, n, d_model)."""
        return self.w_2(ACTIVATIONS[self.activation](self.w_1(x)))


class AddAndNorm(nn.Module):
    """A residual connection around a sub-layer, and LayerNorm: after the addition ("post", the paper's) or before ("pre")."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps)
        self.dropout = nn.Dropout(config.dropout)
        self.pre = config.norm == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """LayerNorm(x + Dropout(Sublayer(x))), or x + Dropout(Sublayer(LayerNorm(x)))."""
        if self.pre:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network, each inside Add & Norm."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.self_attention = attention_of(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.around_attention = AddAndNorm(config)
        self.around_feed_forward = AddAndNorm(config)

    def forward(self, x: Tensor, mask: Mask = None, weights: list[Tensor] | None = None) -> Tensor:
        """(batch, n, d_model) -> (batch, n, d_model).

        Args:
            x: (batch, n, d_model).
            mask: Boolean, (n, n) or (batch, n or 1, n); True = may attend.
            weights: a list to which the attention weights (batch, h, n, n) are added; asked for, they cost memory.
        """
        x = self.around_attention(x, lambda x: attended(self.self_attention, x, None, mask, weights))
        return self.around_feed_forward(x, self.feed_forward)


class DecoderLayer(nn.Module):
    """Masked self-attention, attention to the encoder's output, feed-forward network, each inside Add & Norm."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.self_attention = attention_of(config)
        self.cross_attention = attention_of(config)
        self.feed_forward = FeedForward(config.d_model, config.d_ff, config.activation)
        self.around_self_attention = AddAndNorm(config)
        self.around_cross_attention = AddAndNorm(config)
        self.around_feed_forward = AddAndNorm(config)

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        self_mask: Mask = None,
        memory_mask: Tensor | None = None,
        self_weights: list[Tensor] | None = None,
        cross_weights: list[Tensor] | None = None,
    ) -> Tensor:
        """(batch, n, d_model) -> (batch, n, d_model).

        Args:
            y: (batch, n, d_model).
            memory: (batch, n_source, d_model), the final output of the encoder.
            self_mask: Boolean, (n, n) or (batch, n, n); True = may attend; or `CAUSAL`. The causal mask belongs here.
            memory_mask: Boolean, (n, n_source) or (batch, n or 1, n_source); True = may attend.
            self_weights: a list to which the weights (batch, h, n, n) are added.
            cross_weights: a list to which the weights (batch, h, n, n_source) are added.
        """
        y = self.around_self_attention(y, lambda y: attended(self.self_attention, y, None, self_mask, self_weights))
        y = self.around_cross_attention(y, lambda y: attended(self.cross_attention, y, memory, memory_mask, cross_weights))
        return self.around_feed_forward(y, self.feed_forward)


class Encoder(nn.Module):
    """N encoder layers, alike in form, each with weights of its own."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.n_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps) if config.has_final_norm else nn.Identity()

    def forward(self, x: Tensor, mask: Mask = None, weights: list[Tensor] | None = None) -> Tensor:
        """(batch, n, d_model) -> (batch, n, d_model). ``weights``, if given, is filled with one (batch, h, n, n) per layer."""
        for layer in self.layers:
            x = layer(x, mask, weights)
        return self.norm(x)


class Decoder(nn.Module):
    """N decoder layers. Every layer reads the same memory: the final output of the encoder."""

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = nn.LayerNorm(config.d_model, eps=config.eps) if config.has_final_norm else nn.Identity()

    def forward(
        self,
        y: Tensor,
        memory: Tensor,
        self_mask: Mask = None,
        memory_mask: Tensor | None = None,
        self_weights: list[Tensor] | None = None,
        cross_weights: list[Tensor] | None = None,
    ) -> Tensor:
        """(batch, n, d_model) -> (batch, n, d_model); the lists, if given, are filled with one array of weights per layer."""
        for layer in self.layers:
            y = layer(y, memory, self_mask, memory_mask, self_weights, cross_weights)
        return self.norm(y)


def attention_of(config: TransformerConfig) -> MultiHeadAttention:
    """The multi-head attention that a configuration describes."""
    return MultiHeadAttention(config.d_model, config.n_heads, d_k=config.d_k, bias=config.bias)


def attended(
    attention: MultiHeadAttention, x: Tensor, memory: Tensor | None, mask: Mask, weights: list[Tensor] | None
) -> Tensor:
    """The attention's output; its weights go to the list, if there is one."""
    if weights is None:
        return attention(x, memory, mask)
    output, asked = attention(x, memory, mask, need_weights=True)
    weights.append(asked)
    return output
