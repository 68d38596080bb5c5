"""Embeddings and positional encoding: sections 3.4 and 3.5 of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import floating
from transformer_lite.equations.guarding import reference


@reference
def positional_encoding(n_positions: int, d_model: int) -> NDArray[np.float64]:
    """Give every position a vector of sines and cosines of falling frequency.

    PE(pos, 2i) = sin(pos / 10000^(2i/d_model)), PE(pos, 2i+1) = cos(pos / 10000^(2i/d_model)); positions count from 0. The
    encoding of position pos + k is a rotation of that of pos, the same rotation for every pos.

    Args:
        n_positions: number of positions, 0 or more.
        d_model: width, even: each frequency takes a pair of components.

    Returns:
        (n_positions, d_model).

    Raises:
        ValueError: a negative size, or an odd ``d_model``.

    Source: Vaswani et al. 2017, §3.5.

    >>> positional_encoding(2, 4).round(4)
    array([[0.    , 1.    , 0.    , 1.    ],
           [0.8415, 0.5403, 0.01  , 1.    ]])
    """
    if n_positions < 0:
        raise ValueError(f"n_positions must be 0 or more; got {n_positions}.")
    if d_model < 2 or d_model % 2:
        raise ValueError(f"d_model must be even and at least 2; got {d_model}.")
    positions = np.arange(n_positions)[:, np.newaxis]  # (n, 1)
    frequencies = 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    encoding = np.empty((n_positions, d_model))
    encoding[:, 0::2] = np.sin(positions * frequencies)
    encoding[:, 1::2] = np.cos(positions * frequencies)
    return encoding


@reference
def embed(token_ids: ArrayLike, table: ArrayLike, encoding: ArrayLike) -> NDArray[np.floating]:
    """Look the tokens up, multiply by √d_model, and add the encoding of each position.

    Args:
        token_ids: (..., n), integers from 0 to vocab_size − 1.
        table: (vocab_size, d_model), the learned embeddings.
        encoding: (n_positions, d_model) with n_positions ≥ n.

    Returns:
        (..., n, d_model): what enters the lowest layer. The encoding is added, never concatenated, and only here.

    Raises:
        ValueError: ids that are no integers or not in the table, or shapes that do not fit.

    Source: Vaswani et al. 2017, §3.4 (multiplied by √d_model) and §3.5 (summed).
    """
    token_ids, table, encoding = np.asarray(token_ids), floating(table), floating(encoding)
    if table.ndim != 2:
        raise ValueError(f"table must have shape (vocab_size, d_model); got {table.shape}.")
    vocab_size, d_model = table.shape
    if token_ids.ndim < 1 or not np.issubdtype(token_ids.dtype, np.integer):
        raise ValueError(f"token_ids must be integers of shape (..., n); got {token_ids.dtype} of shape {token_ids.shape}.")
    if token_ids.size and not (token_ids.min() >= 0 and token_ids.max() < vocab_size):
        raise ValueError(f"token_ids must lie between 0 and {vocab_size - 1}; got {token_ids.min()} to {token_ids.max()}.")
    n = token_ids.shape[-1]
    if encoding.ndim != 2 or encoding.shape[1] != d_model or encoding.shape[0] < n:
        raise ValueError(f"encoding must have shape (n_positions, {d_model}) with n_positions >= {n}; got {encoding.shape}.")
    return table[token_ids] * np.sqrt(d_model).astype(table.dtype) + encoding[:n]  # (..., n, d_model)
