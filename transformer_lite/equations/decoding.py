"""Decoding token by token with a cache of keys and values: what inference adds to causal self-attention."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import Attention, floating, scaled_dot_product_attention
from transformer_lite.equations.guarding import reference
from transformer_lite.equations.heads import Projections, checked_projections


@reference
def cached_decoding(x: ArrayLike, projections: Projections) -> Attention:
    """Attend token by token, keeping the keys and values of the past: equals causal self-attention over the whole at once.

    At each step only the new token's query, key and value are computed; its key and value join the cache *before* it attends,
    since a token sees itself. A query is used once and never kept.

    Args:
        x: (..., n, d_model), the tokens in the order in which they come.
        projections: ``(w_q, w_k, w_v, w_o)``, each (d_model, d_model), one head.

    Returns:
        ``Attention(output, weights)``: output (..., n, d_model); weights (..., n, n), zero above the diagonal.

    Raises:
        ValueError: shapes that do not fit.

    Source: the paper's auto-regressive decoder (Vaswani et al. 2017, §3.1); the cache is common practice, not in the paper.
    """
    x = floating(x)
    if x.ndim < 2:
        raise ValueError(f"x must have shape (..., n, d_model); got {x.shape}.")
    w_q, w_k, w_v, w_o = checked_projections(projections, x.shape[-1])
    n = x.shape[-2]
    keys: NDArray = np.empty((*x.shape[:-2], 0, x.shape[-1]), dtype=x.dtype)
    values = keys
    outputs = np.empty_like(x)
    all_weights = np.zeros((*x.shape[:-1], n), dtype=x.dtype)
    for step in range(n):
        token = x[..., step : step + 1, :]  # (..., 1, d_model)
        keys = np.concatenate([keys, token @ w_k], axis=-2)  # (..., step + 1, d_model)
        values = np.concatenate([values, token @ w_v], axis=-2)
        output, weights = scaled_dot_product_attention(token @ w_q, keys, values)
        outputs[..., step : step + 1, :] = output @ w_o
        all_weights[..., step : step + 1, : step + 1] = weights
    return Attention(outputs, all_weights)
