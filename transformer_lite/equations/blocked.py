"""Attention in blocks of queries: the same numbers as equation 1, with memory that grows with n instead of n²."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import broadcast_mask, check_shapes, floating


def blocked_attention(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, mask: ArrayLike | None = None, block: int = 128
) -> NDArray[np.floating]:
    """The output of `scaled_dot_product_attention` without its weights: only ``block`` rows of them exist at a time.

    Blocks save memory, not work: the multiply-adds are the same n² · d. A row needs all its keys for its softmax and nothing of
    any other row, so rows can be done one block after another, in the same buffer.

    Args:
        queries: (..., n_q, d_k).
        keys: (..., n_k, d_k).
        values: (..., n_k, d_v).
        mask: Boolean, broadcastable to (..., n_q, n_k); True = may attend. None hides nothing.
        block: rows at a time.

    Returns:
        (..., n_q, d_v). A row whose keys are all hidden gives zeros.

    Raises:
        ValueError: shapes that do not fit, a mask that is not Boolean, or ``block`` below 1.

    Source: Vaswani et al. 2017, eq. 1; by rows as in Rabe and Staats 2021, "Self-attention does not need O(n²) memory".
    """
    queries, keys, values = floating(queries), floating(keys), floating(values)
    if block < 1:
        raise ValueError(f"block must be 1 or more; got {block}.")
    check_shapes(queries, keys, values)
    (n_q, d_k), n_k = queries.shape[-2:], keys.shape[-2]
    lead = np.broadcast_shapes(queries.shape[:-2], keys.shape[:-2], values.shape[:-2])
    if mask is not None:
        mask = broadcast_mask(mask, (*lead, n_q, n_k))
        lead = mask.shape[:-2]

    kind = np.result_type(queries, keys, values)
    output = np.zeros((*lead, n_q, values.shape[-1]), kind)
    if n_k == 0 or output.size == 0:
        return output
    turned = keys.swapaxes(-1, -2)  # (..., d_k, n_k)
    buffer = np.empty((min(block, n_q), n_k), kind)
    for place in np.ndindex(*lead):  # one matrix of the batch at a time
        q, k, v, hide = _one(queries, place), _one(turned, place), _one(values, place), _one(mask, place)
        for start in range(0, n_q, block):
            rows = q[start : start + block] / math.sqrt(d_k)  # (b, d_k)
            scores = np.matmul(rows, k, out=buffer[: len(rows)])  # (b, n_k)
            if hide is not None:
                scores[~hide[start : start + block]] = -np.inf
            largest = scores.max(axis=-1, keepdims=True)
            scores -= np.where(np.isneginf(largest), 0.0, largest)
            np.exp(scores, out=scores)
            total = scores.sum(axis=-1, keepdims=True)
            output[place][start : start + block] = scores @ v / np.where(total == 0.0, 1.0, total)
    return output


def _one(arrays: NDArray | None, place: tuple[int, ...]) -> NDArray | None:
    """The matrix of a batch that belongs to ``place`` in the broadcast batch."""
    if arrays is None:
        return None
    own = arrays.ndim - 2
    where = place[len(place) - own :] if own else ()
    return arrays[tuple(0 if size == 1 else i for i, size in zip(where, arrays.shape[:own], strict=True))]
