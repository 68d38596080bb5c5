"""Attention in PyTorch: section 3.2 of the paper. Batch first; masks are Boolean, True = may attend."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def causal_mask(n_queries: int, n_keys: int | None = None, device: torch.device | str | None = None) -> Tensor:
    """(n_queries, n_keys), True where a query may attend: to itself and to what stands before it.

    With more keys than queries (a cache holds the earlier ones) the last query sees every key.
    """
    n_keys = n_queries if n_keys is None else n_keys
    if n_keys < n_queries:
        raise ValueError(f"n_keys must be at least n_queries = {n_queries}; got {n_keys}.")
    return torch.ones(n_queries, n_keys, dtype=torch.bool, device=device).tril(n_keys - n_queries)


def padding_mask(token_ids: Tensor, pad_id: int) -> Tensor:
    """(batch, 1, n_keys), True at the real tokens of ``token_ids`` (batch, n_keys): every query may attend to those keys only."""
    return (token_ids != pad_id).unsqueeze(-2)


class Causal:
    """The causal mask without its n² entries: accepted wherever a self-attention takes a mask, and faster. See `CAUSAL`."""

    def __repr__(self) -> str:
        return "CAUSAL"


CAUSAL = Causal()
"""Says "to itself and to what stands before it" to a self-attention, as ``causal_mask(n)`` does, in no memory at all."""

Mask = Tensor | Causal | None


def with_head_axis(mask: Tensor | None) -> Tensor | None:
    """A mask as attention over heads (batch, h, n_q, n_k) needs it.

    Args:
        mask: (n_q, n_k), or (batch, n_q or 1, n_k), to which the head's axis is added; four axes are taken as they are.

    Raises:
        TypeError: not Boolean. ValueError: another number of axes.
    """
    if mask is None:
        return None
    if mask.dtype != torch.bool:
        raise TypeError(f"a mask must be Boolean, True = may attend; got {mask.dtype}.")
    if mask.dim() == 3:
        return mask.unsqueeze(1)  # (batch, n_q or 1, n_k) -> (batch, 1, n_q or 1, n_k)
    if mask.dim() not in (2, 4):
        raise ValueError(f"a mask must have shape (n_q, n_k) or (batch, n_q or 1, n_k); got {tuple(mask.shape)}.")
    return mask


def scaled_dot_product_attention(
    queries: Tensor, keys: Tensor, values: Tensor, mask: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """softmax(QKᵀ / √d_k) V, step by step: the path that shows the weights.

    Args:
        queries: (..., n_q, d_k).
        keys: (..., n_k, d_k).
        values: (..., n_k, d_v).
        mask: Boolean, broadcastable to (..., n_q, n_k); True = may attend. A row without any True gives zeros.

    Returns:
        Output (..., n_q, d_v) and weights (..., n_q, n_k).

    Source: Vaswani et al. 2017, equation 1.
    """
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])  # (..., n_q, n_k)
    if mask is None:
        weights = scores.softmax(dim=-1)
    else:
        # The lowest finite number, not -inf: a row of nothing but -inf would give NaN, also in its gradient.
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1)
        weights = weights.masked_fill(~mask, 0.0)
    return weights @ values, weights


class KeyValueCache:
    """The keys and values that one attention has computed so far: (batch, h, n, d_k) and (batch, h, n, d_v).

    Room for ``capacity`` tokens is made once, so that a step writes only its own token.
    """

    def __init__(self, capacity: int):
        self.capacity = capacity
        self.length = 0
        self._keys: Tensor | None = None
        self._values: Tensor | None = None

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """Take in the keys and values of new tokens; return those of all tokens so far."""
        if self._keys is None:
            self._keys = keys.new_empty(*keys.shape[:2], self.capacity, keys.shape[-1])
            self._values = values.new_empty(*values.shape[:2], self.capacity, values.shape[-1])
        start, end = self.length, self.length + keys.shape[-2]
        if end > self.capacity:
            raise ValueError(f"the cache has room for {self.capacity} tokens; token number {end} does not fit.")
        self.length = end
        self._keys[:, :, start : self.length] = keys
        self._values[:, :, start : self.length] = values
        return self._keys[:, :, : self.length], self._values[:, :, : self.length]

    def reorder(self, rows: Tensor) -> None:
        """Keep the sentences ``rows`` (new_batch,) of the batch, in that order: what beam search chose to go on with."""
        if self._keys is not None:
            self._keys, self._values = self._keys[rows], self._values[rows]


class MultiHeadAttention(nn.Module):
    """h attentions side by side, each in a projection of its own: Concat(head_1, ..., head_h) W^O.

    W^Q, W^K and W^V of all heads are stored as one matrix, so that self-attention needs one matrix product for the three.

    Args:
        d_model: width of queries, memory and output.
        n_heads: h; must divide d_model.
        d_k: width of a head's queries and keys; d_model / h if None. Values have d_model / h; where the two differ PyTorch has no
            fused path on a CPU, and attention holds all of its weights in memory.
        bias: whether the projections have biases; the paper writes none.

    Source: Vaswani et al. 2017, §3.2.2.
    """

    def __init__(self, d_model: int, n_heads: int, *, d_k: int | None = None, bias: bool = True):
        super().__init__()
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}; got {n_heads}.")
        self.d_model, self.n_heads = d_model, n_heads
        self.d_v = d_model // n_heads
        self.d_k = self.d_v if d_k is None else d_k
        self.widths = (n_heads * self.d_k, n_heads * self.d_k, n_heads * self.d_v)  # of W^Q, W^K and W^V
        self.w_qkv = nn.Parameter(torch.empty(sum(self.widths), d_model))  # rows: W^Q, W^K, W^V; applied as x @ w.T
        self.b_qkv = nn.Parameter(torch.empty(sum(self.widths))) if bias else None
        self.w_o = nn.Linear(n_heads * self.d_v, d_model, bias=bias)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Glorot's uniform numbers for each of the four matrices, zeros for the biases."""
        for matrix in self.w_qkv.split(self.widths):
            nn.init.xavier_uniform_(matrix)
        nn.init.xavier_uniform_(self.w_o.weight)
        if self.b_qkv is not None:
            nn.init.zeros_(self.b_qkv)
            nn.init.zeros_(self.w_o.bias)

    def forward(
        self,
        queries: Tensor,
        memory: Tensor | None = None,
        mask: Mask = None,
        need_weights: bool = False,
        cache: KeyValueCache | None = None,
    ) -> Tensor | tuple[Tensor, Tensor]:
        """Attend from ``queries`` to ``memory``, or to ``queries`` themselves where there is no memory.

        Args:
            queries: (batch, n_q, d_model).
            memory: (batch, n_k, d_model): keys and values come from here (cross-attention); None: self-attention.
            mask: Boolean, (n_q, n_k) or (batch, n_q or 1, n_k); True = may attend. A row without any True gives zeros
                before W^O. `CAUSAL` stands for the causal mask of self-attention.
            need_weights: return the weights as well; takes the explicit path, which holds all of them in memory.
            cache: of self-attention: keys and values of earlier tokens, to which those of ``queries`` are added.

        Returns:
            (batch, n_q, d_model); with ``need_weights`` also the weights (batch, h, n_q, n_k).

        Raises:
            ValueError: ``queries`` or ``memory`` of another shape. TypeError: a mask that is not Boolean.
        """
        for name, n, x in (("queries", "n_q", queries), ("memory", "n_k", memory)):
            # Without a batch the axes of positions and features would change places, and nothing else would notice.
            if x is not None and (x.dim() != 3 or x.shape[-1] != self.d_model):
                raise ValueError(f"{name} must have shape (batch, {n}, d_model = {self.d_model}); got {tuple(x.shape)}.")
        if memory is None:
            q, k, v = self.split_heads(F.linear(queries, self.w_qkv, self.b_qkv))
            if cache is not None:
                k, v = cache.append(k, v)
        else:
            q, (k, v) = self.project_queries(queries), self.project_memory(memory)
        if mask is CAUSAL:
            if memory is None and not need_weights and q.shape[-2] == k.shape[-2]:
                return self.w_o(merge_heads(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
            mask = causal_mask(q.shape[-2], k.shape[-2], q.device)
        mask = with_head_axis(mask)
        if need_weights:
            heads, weights = scaled_dot_product_attention(q, k, v, mask)
            return self.w_o(merge_heads(heads)), weights
        return self.w_o(merge_heads(F.scaled_dot_product_attention(q, k, v, attn_mask=mask)))

    def split_heads(self, qkv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """(batch, n, h·(2 d_k + d_v)) -> q, k, v, each (batch, h, n, d)."""
        q, k, v = qkv.split(self.widths, dim=-1)
        return self._heads(q), self._heads(k), self._heads(v)

    def project_queries(self, x: Tensor) -> Tensor:
        """(batch, n_q, d_model) -> (batch, h, n_q, d_k)."""
        n = self.widths[0]
        return self._heads(F.linear(x, self.w_qkv[:n], None if self.b_qkv is None else self.b_qkv[:n]))

    def project_memory(self, memory: Tensor) -> tuple[Tensor, Tensor]:
        """(batch, n_k, d_model) -> keys (batch, h, n_k, d_k) and values (batch, h, n_k, d_v)."""
        n = self.widths[0]
        kv = F.linear(memory, self.w_qkv[n:], None if self.b_qkv is None else self.b_qkv[n:])
        k, v = kv.split(self.widths[1:], dim=-1)
        return self._heads(k), self._heads(v)

    def _heads(self, x: Tensor) -> Tensor:
        return x.unflatten(-1, (self.n_heads, -1)).transpose(1, 2)  # (batch, n, h·d) -> (batch, h, n, d)


def merge_heads(heads: Tensor) -> Tensor:
    """Concat: (batch, h, n, d_v) -> (batch, n, h·d_v)."""
    return heads.transpose(1, 2).flatten(-2)
