"""One step of an encoder-decoder Transformer's decoder, written out for speed: what `Transformer.generate` runs for every token.

The mathematics is that of `layers.DecoderLayer` for a single query. Keys and values of the source are computed once, those of
earlier tokens are kept, and no module is called: at this size calling costs more than computing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.model.attention import causal_mask, padding_mask
from transformer_lite.model.layers import ACTIVATIONS

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
        padding = ~padding_mask(source_ids, model.config.pad_id)  # (batch, 1, n_source), True at padding
        # (batch · h, 1, n_source), or None where there is none
        padding = padding.repeat_interleave(model.config.n_heads, dim=0) if bool(padding.any()) else None
        self.table = model.target_embedding.tokens.weight
        self.scale = model.target_embedding.scale
        self.positions = model.target_embedding.positions
        self.layers = [_Step(layer, memory, padding, beam, capacity) for layer in model.decoder.layers]
        self.norm = model.decoder.norm
        self.output = linear(model.output.weight, None, len(source_ids) * beam)
        self.length = 0

    def step(self, token_ids: Tensor) -> Tensor:
        """Take in one token of each continuation, (batch · beam,); return the logits of the next, (batch · beam, vocab)."""
        y = F.embedding(token_ids, self.table) * self.scale + self.positions(1, self.length)  # (rows, d_model)
        for layer in self.layers:
            y = layer(y, self.length)
        self.length += 1
        return self.output(self.norm(y))

    def reorder(self, rows: Tensor) -> None:
        """Go on with the continuations ``rows`` (batch · beam,), in that order."""
        for layer in self.layers:
            layer.reorder(rows, self.length)


class _Step:
    """A decoder layer for one token of each row."""

    def __init__(self, layer: DecoderLayer, memory: Tensor, padding: Tensor | None, beam: int, capacity: int):
        own, cross, network = layer.self_attention, layer.cross_attention, layer.feed_forward
        self.batch, self.rows, self.heads = len(memory), len(memory) * beam, own.n_heads
        self.widths, n = own.widths, cross.widths[0]
        self.qkv = linear(own.w_qkv, own.b_qkv, self.rows)
        self.out = linear(own.w_o.weight, own.w_o.bias, self.rows)
        self.cross_q = linear(cross.w_qkv[:n], None if cross.b_qkv is None else cross.b_qkv[:n], self.rows)
        self.cross_out = linear(cross.w_o.weight, cross.w_o.bias, self.rows)
        # Every row's every head is one small problem: (rows · h, n, d) is what a batched matrix product takes fastest.
        self.source_keys, self.source_values = (x.flatten(0, 1) for x in cross.project_memory(memory))  # (batch · h, n_source, d)
        self.padding = padding
        self.w_1 = linear(network.w_1.weight, network.w_1.bias, self.rows)
        self.w_2 = linear(network.w_2.weight, network.w_2.bias, self.rows)
        self.activation = ACTIVATIONS[network.activation]
        around = (layer.around_self_attention, layer.around_cross_attention, layer.around_feed_forward)
        self.pre = around[0].pre
        self.norms = [_norm(each.norm) for each in around]
        self.keys = memory.new_empty(self.rows, self.heads, capacity, own.d_k)
        self.values = memory.new_empty(self.rows, self.heads, capacity, own.d_v)
        self.nothing = memory.new_zeros(1, 1, 1)
        self.scale = 1 / math.sqrt(own.d_k)

    def __call__(self, y: Tensor, position: int) -> Tensor:
        """(rows, d_model) -> (rows, d_model); ``position`` counts the tokens before this one."""
        for norm, sublayer in zip(self.norms, (self._attend, self._look_up, self._network), strict=True):
            y = y + sublayer(norm(y), position) if self.pre else norm(y + sublayer(y, position))
        return y

    def _attend(self, y: Tensor, position: int) -> Tensor:
        q, k, v = self.qkv(y).split(self.widths, dim=-1)  # each (rows, h·d)
        self.keys[:, :, position] = k.view(self.rows, self.heads, -1)
        self.values[:, :, position] = v.view(self.rows, self.heads, -1)
        so_far = position + 1
        keys, values = self.keys.flatten(0, 1)[:, :so_far], self.values.flatten(0, 1)[:, :so_far]
        found = self._attention(q.reshape(self.rows * self.heads, 1, -1), keys, values)  # (rows · h, 1, d_v)
        return self.out(found.view(self.rows, -1))

    def _look_up(self, y: Tensor, position: int) -> Tensor:
        q = self.cross_q(y)  # (batch · beam, h·d_k)
        # A beam's continuations ask the same source: they are queries of one sentence, which is not copied for them.
        q = q.view(self.batch, -1, self.heads, q.shape[-1] // self.heads).transpose(1, 2)  # (batch, h, beam, d_k)
        found = self._attention(q.flatten(0, 1), self.source_keys, self.source_values, self.padding)  # (batch · h, beam, d_v)
        found = found.unflatten(0, (self.batch, self.heads)).transpose(1, 2)  # (batch, beam, h, d_v)
        return self.cross_out(found.reshape(self.rows, -1))

    def _attention(self, q: Tensor, k: Tensor, v: Tensor, hidden: Tensor | None = None) -> Tensor:
        """softmax(QKᵀ / √d_k) V for (problems, n_q, d_k), (problems, n_k, d_k), (problems, n_k, d_v)."""
        scores = torch.baddbmm(self.nothing, q, k.transpose(1, 2), beta=0, alpha=self.scale)
        if hidden is None:
            return torch.bmm(torch.softmax(scores, dim=-1), v)
        weights = torch.softmax(scores.masked_fill_(hidden, torch.finfo(scores.dtype).min), dim=-1)
        return torch.bmm(weights.masked_fill_(hidden, 0.0), v)  # where all is hidden: zeros, as everywhere in this package

    def _network(self, y: Tensor, position: int) -> Tensor:
        return self.w_2(self.activation(self.w_1(y)))

    def reorder(self, rows: Tensor, length: int) -> None:
        for kept in (self.keys, self.values):
            kept[:, :, :length] = kept[rows, :, :length]


FEW_ROWS, SMALL = 2, 2**17  # measured: see benchmarks/model.py


def linear(weight: Tensor, bias: Tensor | None, rows: int) -> Map:
    """x ↦ x @ weight.T + bias, for ``rows`` rows at a time.

    On a CPU a product with few rows is a matter of reading the matrix, and one with more outputs than inputs is read up to twice
    as fast if its columns lie together: it is turned once, before the first token.
    """
    n_out, n_in = weight.shape
    if weight.device.type == "cpu" and n_out > n_in and (rows <= FEW_ROWS or weight.numel() <= SMALL):
        turned = weight.t().contiguous()
        return (lambda x: x @ turned) if bias is None else (lambda x: torch.addmm(bias, x, turned))
    return lambda x: F.linear(x, weight, bias)


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
