"""Self-attention, cross-attention and multi-head attention: sections 3.2.2 and 3.2.3 of the paper."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import Attention, floating, scaled_dot_product_attention
from transformer_lite.equations.guarding import reference


class Projections(NamedTuple):
    """The learned matrices W^Q, W^K, W^V, W^O of one attention, each (d_model, d_model), applied as ``x @ w``, without biases."""

    w_q: NDArray[np.floating]
    w_k: NDArray[np.floating]
    w_v: NDArray[np.floating]
    w_o: NDArray[np.floating]


@reference
def split_heads(x: ArrayLike, n_heads: int) -> NDArray[np.floating]:
    """Cut the features of every token into ``n_heads`` parts and give each head its part of every token.

    Args:
        x: (..., n, d_model).
        n_heads: h; must divide d_model.

    Returns:
        (..., h, n, d_model / h).

    Raises:
        ValueError: fewer than two axes, or d_model is not a multiple of ``n_heads``.

    Source: Vaswani et al. 2017, §3.2.2 (d_k = d_v = d_model / h).

    >>> split_heads([[1.0, 2.0, 3.0, 4.0], [5.0, 6.0, 7.0, 8.0]], n_heads=2)[0]
    array([[1., 2.],
           [5., 6.]])
    """
    x = floating(x)
    if x.ndim < 2:
        raise ValueError(f"x must have shape (..., n, d_model); got {x.shape}.")
    d_model = x.shape[-1]
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model = {d_model}; got {n_heads}.")
    x = x.reshape(*x.shape[:-1], n_heads, d_model // n_heads)  # (..., n, d_model) -> (..., n, h, d_model/h)
    return x.swapaxes(-3, -2)  # (..., n, h, d_model/h) -> (..., h, n, d_model/h)


@reference
def merge_heads(x: ArrayLike) -> NDArray[np.floating]:
    """Put the heads' outputs side by side again, token by token: the Concat of the paper.

    Args:
        x: (..., h, n, d_v).

    Returns:
        (..., n, h·d_v). ``merge_heads(split_heads(x, h))`` is ``x``.

    Raises:
        ValueError: fewer than three axes.

    Source: Vaswani et al. 2017, §3.2.2.
    """
    x = floating(x)
    if x.ndim < 3:
        raise ValueError(f"x must have shape (..., h, n, d_v); got {x.shape}.")
    n_heads, n, d_v = x.shape[-3:]
    return x.swapaxes(-3, -2).reshape(*x.shape[:-3], n, n_heads * d_v)  # (..., h, n, d_v) -> (..., n, h·d_v)


@reference
def self_attention(x: ArrayLike, projections: Projections, mask: ArrayLike | None = None) -> Attention:
    """Let every token of a sequence attend to the tokens of the same sequence, with one head.

    Queries, keys and values are three learned projections of the same ``x``; the output is projected once more.

    Args:
        x: (..., n, d_model).
        projections: ``(w_q, w_k, w_v, w_o)``, each (d_model, d_model), applied as ``x @ w``.
        mask: Boolean, broadcastable to (..., n, n); True = may attend.

    Returns:
        ``Attention(output, weights)``: output (..., n, d_model), weights (..., n, n).

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.2.3: keys, values and queries come from the same place.
    """
    return _attend(x, x, projections, mask, "x")


@reference
def cross_attention(y: ArrayLike, memory: ArrayLike, projections: Projections, mask: ArrayLike | None = None) -> Attention:
    """Let every token of the decoder attend to the encoder's output, with one head.

    Queries come from the decoder (``y``), keys and values both from the encoder's final output (``memory``).

    Args:
        y: (..., n_q, d_model), the decoder's tokens.
        memory: (..., n_k, d_model), the encoder's output.
        projections: ``(w_q, w_k, w_v, w_o)``, each (d_model, d_model).
        mask: Boolean, broadcastable to (..., n_q, n_k); True = may attend. No causal mask here: the whole source is known.

    Returns:
        ``Attention(output, weights)``: output (..., n_q, d_model), weights (..., n_q, n_k).

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.2.3, encoder-decoder attention.
    """
    return _attend(y, memory, projections, mask, "y")


@reference
def multi_head_attention(
    x: ArrayLike, projections: Projections, n_heads: int, mask: ArrayLike | None = None, memory: ArrayLike | None = None
) -> Attention:
    """Attend in ``n_heads`` projected subspaces at once, put the heads side by side and project: Concat(head_1, …, head_h) W^O.

    Args:
        x: (..., n_q, d_model): the queries come from here.
        projections: ``(w_q, w_k, w_v, w_o)``, each (d_model, d_model); head i uses columns i·d_k to (i+1)·d_k of the first three.
        n_heads: h; must divide d_model. Each head has d_k = d_v = d_model / h and divides its scores by √d_k.
        mask: Boolean, broadcastable to (..., n_q, n_k); True = may attend; the same for every head.
        memory: (..., n_k, d_model): keys and values come from here; from ``x`` if None.

    Returns:
        ``Attention(output, weights)``: output (..., n_q, d_model), weights (..., h, n_q, n_k).

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.2.2.
    """
    x = floating(x)
    source = x if memory is None else floating(memory)
    w_q, w_k, w_v, w_o = checked_projections(projections, _d_model(x, "x"))
    _same_width(source, x.shape[-1], "memory")
    queries = split_heads(x @ w_q, n_heads)  # (..., h, n_q, d_k)
    keys = split_heads(source @ w_k, n_heads)  # (..., h, n_k, d_k)
    values = split_heads(source @ w_v, n_heads)  # (..., h, n_k, d_v)
    if mask is not None:
        mask = np.asarray(mask)
        if mask.ndim > 2:
            mask = mask[..., np.newaxis, :, :]  # (..., n_q, n_k) -> (..., 1, n_q, n_k), broadcast over the heads
    heads, weights = scaled_dot_product_attention(queries, keys, values, mask)
    return Attention(merge_heads(heads) @ w_o, weights)  # (..., h, n_q, d_v) -> (..., n_q, d_model)


def checked_projections(projections: Projections, d_model: int) -> Projections:
    """The four matrices as arrays; ``ValueError`` naming the one whose shape is not (d_model, d_model)."""
    if len(projections) != 4:
        raise ValueError(f"projections must be (w_q, w_k, w_v, w_o); got {len(projections)} matrices.")
    checked = Projections(*(floating(w) for w in projections))
    for name, w in zip(Projections._fields, checked, strict=True):
        if w.shape != (d_model, d_model):
            raise ValueError(f"{name} must have shape (d_model, d_model) with d_model = {d_model}; got {w.shape}.")
    return checked


def _attend(y: ArrayLike, memory: ArrayLike, projections: Projections, mask: ArrayLike | None, name: str) -> Attention:
    y, memory = floating(y), floating(memory)
    w_q, w_k, w_v, w_o = checked_projections(projections, _d_model(y, name))
    _same_width(memory, y.shape[-1], "memory")
    output, weights = scaled_dot_product_attention(y @ w_q, memory @ w_k, memory @ w_v, mask)
    return Attention(output @ w_o, weights)


def _d_model(x: NDArray, name: str) -> int:
    if x.ndim < 2:
        raise ValueError(f"{name} must have shape (..., n, d_model); got {x.shape}.")
    return x.shape[-1]


def _same_width(memory: NDArray, d_model: int, name: str) -> None:
    if memory.ndim < 2 or memory.shape[-1] != d_model:
        raise ValueError(f"{name} must have shape (..., n_k, d_model) with d_model = {d_model}; got {memory.shape}.")
