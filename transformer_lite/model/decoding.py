"""One step of an encoder-decoder Transformer's decoder, written out for speed: what `Transformer.generate` runs for every token.

The mathematics is that of `layers.DecoderLayer` for a single query. Keys and values of the source are computed once, those of
earlier tokens are kept, and no module is called: at this size calling costs more than computing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.model.attention import causal_mask, padding_mask

if TYPE_CHECKING:
    from transformer_lite.model.layers import DecoderLayer
    from transformer_lite.model.transformer import Transformer

Map = Callable[[Tensor], Tensor]


class DecodingState:
    """Where the writing of a batch stands: the source's keys and values, and those of the tokens so far.

    Args:
        model: in evaluation mode.
        source_ids: (batch, n_source).
        beam: continuations of each sentence; those of one sentence stand together.
        capacity: at most so many tokens will be written.
    """

    def __init__(self, model: Transformer, source_ids: Tensor, beam: int, capacity: int):
        memory = model.encode(source_ids)  # (batch, n_source, d_model)
        mask = padding_mask(source_ids, model.config.pad_id).unsqueeze(1)  # (batch, 1, 1, n_source)
        mask = None if bool(mask.all()) else mask
        self.table = model.target_embedding.tokens.weight
        self.scale = model.target_embedding.scale
        self.positions = model.target_embedding.positions
        self.layers = [_Step(layer, memory, mask, beam, capacity) for layer in model.decoder.layers]
        self.norm = model.decoder.norm
        self.output = model.output.weight
        self.length = 0

    def step(self, token_ids: Tensor) -> Tensor:
        """Take in one token of each continuation, (batch · beam,); return the logits of the next, (batch · beam, vocab)."""
        y = F.embedding(token_ids, self.table) * self.scale + self.positions(1, self.length)  # (rows, d_model)
        for layer in self.layers:
            y = layer(y, self.length)
        self.length += 1
        return F.linear(self.norm(y), self.output)

    def reorder(self, rows: Tensor) -> None:
        """Go on with the continuations ``rows`` (batch · beam,), in that order."""
        for layer in self.layers:
            layer.reorder(rows, self.length)


class _Step:
    """A decoder layer for one token of each row."""

    def __init__(self, layer: DecoderLayer, memory: Tensor, memory_mask: Tensor | None, beam: int, capacity: int):
        own, cross, network = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.batch, self.rows, self.heads = len(memory), len(memory) * beam, own.n_heads
        n = own.widths[0]
        self.widths = own.widths
        self.w_qkv, self.b_qkv, self.w_o, self.b_o = own.w_qkv, own.b_qkv, own.w_o.weight, own.w_o.bias
        self.cross_w_q, self.cross_b_q = cross.w_qkv[:n], None if cross.b_qkv is None else cross.b_qkv[:n]
        self.cross_w_o, self.cross_b_o = cross.w_o.weight, cross.w_o.bias
        self.source_keys, self.source_values = cross.project_memory(memory)  # (batch, h, n_source, d)
        self.source_mask = memory_mask
        self.w_1, self.b_1, self.w_2, self.b_2 = network.w_1.weight, network.w_1.bias, network.w_2.weight, network.w_2.bias
        self.activation = network.activation
        around = (layer.around_self_attention, layer.around_cross_attention, layer.around_feed_forward)
        self.pre = around[0].pre
        self.norms = [_norm(each.norm) for each in around]
        self.keys = memory.new_empty(self.rows, self.heads, capacity, own.d_k)
        self.values = memory.new_empty(self.rows, self.heads, capacity, own.d_v)

    def __call__(self, y: Tensor, position: int) -> Tensor:
        """(rows, d_model) -> (rows, d_model); ``position`` counts the tokens before this one."""
        for norm, sublayer in zip(self.norms, (self._attend, self._look_up, self._network), strict=True):
            y = y + sublayer(norm(y), position) if self.pre else norm(y + sublayer(y, position))
        return y

    def _attend(self, y: Tensor, position: int) -> Tensor:
        q, k, v = F.linear(y, self.w_qkv, self.b_qkv).split(self.widths, dim=-1)  # each (rows, h·d)
        self.keys[:, :, position] = k.view(self.rows, self.heads, -1)
        self.values[:, :, position] = v.view(self.rows, self.heads, -1)
        so_far = position + 1
        found = F.scaled_dot_product_attention(
            q.view(self.rows, self.heads, 1, -1), self.keys[:, :, :so_far], self.values[:, :, :so_far]
        )  # (rows, h, 1, d_v)
        return F.linear(found.view(self.rows, -1), self.w_o, self.b_o)

    def _look_up(self, y: Tensor, position: int) -> Tensor:
        q = F.linear(y, self.cross_w_q, self.cross_b_q)  # (batch · beam, h·d_k)
        # A beam's continuations ask the same source: they are queries of one sentence, which is not copied for them.
        q = q.view(self.batch, -1, self.heads, q.shape[-1] // self.heads).transpose(1, 2)  # (batch, h, beam, d_k)
        found = F.scaled_dot_product_attention(q, self.source_keys, self.source_values, attn_mask=self.source_mask)
        return F.linear(found.transpose(1, 2).reshape(self.rows, -1), self.cross_w_o, self.cross_b_o)

    def _network(self, y: Tensor, position: int) -> Tensor:
        return F.linear(self.activation(F.linear(y, self.w_1, self.b_1)), self.w_2, self.b_2)

    def reorder(self, rows: Tensor, length: int) -> None:
        self.keys[:, :, :length] = self.keys[rows, :, :length]
        self.values[:, :, :length] = self.values[rows, :, :length]


def _norm(norm: nn.LayerNorm) -> Map:
    shape, weight, bias, eps = norm.normalized_shape, norm.weight, norm.bias, norm.eps
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


class RecomputedState:
    """The same without a cache: every step runs the decoder over all tokens so far. Slow; the measure of what a cache saves."""

    def __init__(self, model: Transformer, source_ids: Tensor, beam: int):
        self.model = model
        self.memory = model.encode(source_ids).repeat_interleave(beam, dim=0)
        self.memory_mask = padding_mask(source_ids, model.config.pad_id).repeat_interleave(beam, dim=0)
        self.tokens = source_ids.new_empty(len(self.memory), 0)

    def step(self, token_ids: Tensor) -> Tensor:
        """As `DecodingState.step`."""
        self.tokens = torch.cat([self.tokens, token_ids.unsqueeze(1)], dim=1)
        y = self.model.target_embedding(self.tokens)
        mask = causal_mask(self.tokens.shape[1], device=y.device)
        y = self.model.decoder(y, self.memory, mask, self.memory_mask)
        return F.linear(y[:, -1], self.model.output.weight)

    def reorder(self, rows: Tensor) -> None:
        """As `DecodingState.reorder`."""
        self.tokens = self.tokens[rows]
