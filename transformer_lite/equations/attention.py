"""Attention: section 3.2.1 of the paper."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.guarding import reference


class Attention(NamedTuple):
    """What attention returns: ``output`` (..., n_q, d_v) and ``weights`` (..., n_q, n_k)."""

    output: NDArray[np.floating]
    weights: NDArray[np.floating]


@reference
def softmax(x: ArrayLike, axis: int = -1) -> NDArray[np.floating]:
    """Turn numbers into positive weights that sum to 1 along ``axis``: exp(x) / Σ exp(x).

    The maximum is subtracted first, which changes nothing in the result and keeps exp from overflowing.
    ``-inf`` gets weight 0; a slice that is all ``-inf`` gives zeros, never NaN.

    Args:
        x: (...), any shape with at least one axis.
        axis: the axis along which the weights sum to 1.

    Returns:
        Same shape as ``x``; float64 unless ``x`` has a floating type of its own.

    Raises:
        ValueError: ``x`` has no axis, or none numbered ``axis``.

    Source: Vaswani et al. 2017, §3.2.1, the softmax of eq. 1.

    >>> softmax([1.0, 0.0]).round(3)
    array([0.731, 0.269])
    """
    x = floating(x)
    if not -x.ndim <= axis < x.ndim:
        raise ValueError(f"x must have an axis {axis}; got shape {x.shape}.")
    if x.shape[axis] == 0:
        return x.copy()
    largest = x.max(axis=axis, keepdims=True)
    exponentials = np.exp(x - np.where(np.isneginf(largest), 0.0, largest))
    total = exponentials.sum(axis=axis, keepdims=True)
    return exponentials / np.where(total == 0.0, 1.0, total)


@reference
def attention_scores(queries: ArrayLike, keys: ArrayLike) -> NDArray[np.floating]:
    """Compare every query with every key: the dot products divided by √d_k.

    If the components of q and k are independent with mean 0 and variance 1, q·k has variance d_k; the division brings it
    back to 1, so that softmax does not saturate.

    Args:
        queries: (..., n_q, d_k).
        keys: (..., n_k, d_k).

    Returns:
        (..., n_q, n_k): row i holds query i's score with each key.

    Raises:
        ValueError: fewer than two axes, or the two last axes differ.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1: QKᵀ / √d_k.

    >>> attention_scores([[2.0, 0.0, 0.0, 0.0]], [[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0]])
    array([[1., 0.]])
    """
    queries, keys = floating(queries), floating(keys)
    check_shapes(queries, keys)
    return queries @ keys.swapaxes(-1, -2) / math.sqrt(queries.shape[-1])  # (..., n_q, d_k) @ (..., d_k, n_k) -> (..., n_q, n_k)


@reference
def scaled_dot_product_attention(
    queries: ArrayLike, keys: ArrayLike, values: ArrayLike, mask: ArrayLike | None = None
) -> Attention:
    """Average the values with weights that say how well each query matches each key: softmax(QKᵀ / √d_k) V.

    Args:
        queries: (..., n_q, d_k).
        keys: (..., n_k, d_k).
        values: (..., n_k, d_v).
        mask: Boolean, broadcastable to (..., n_q, n_k); True = this query may attend to this key. None hides nothing.

    Returns:
        ``Attention(output, weights)``: output (..., n_q, d_v), weights (..., n_q, n_k). Each row of the weights sums to 1.
        A row whose keys are all hidden gives zeros in both, never NaN (``torch.nn.MultiheadAttention`` gives NaN there).

    Raises:
        ValueError: shapes that do not fit, or a mask that is not Boolean.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1; the mask, §3.2.3 (illegal connections are set to −∞ before the softmax).

    >>> output, weights = scaled_dot_product_attention([[1.0, 0.0]], [[2.0 ** 0.5, 0.0], [0.0, 1.0]], [[4.0], [10.0]])
    >>> weights.round(3), output.round(2)
    (array([[0.731, 0.269]]), array([[5.61]]))
    """
    queries, keys, values = floating(queries), floating(keys), floating(values)
    check_shapes(queries, keys, values)
    scores = attention_scores(queries, keys)
    if mask is not None:
        scores = np.where(broadcast_mask(mask, scores.shape), scores, -np.inf)
    weights = softmax(scores, axis=-1)
    return Attention(weights @ values, weights)  # (..., n_q, n_k) @ (..., n_k, d_v) -> (..., n_q, d_v)


def floating(x: ArrayLike) -> NDArray[np.floating]:
    """``x`` as an array of floating-point numbers; a floating type of its own is kept."""
    x = np.asarray(x)
    return x if np.issubdtype(x.dtype, np.floating) else x.astype(np.float64)


def check_shapes(queries: NDArray, keys: NDArray, values: NDArray | None = None) -> None:
    """`ValueError` naming the argument, the shape expected and the one given, where attention's arguments do not fit."""
    if queries.ndim < 2:
        raise ValueError(f"queries must have shape (..., n_q, d_k); got {queries.shape}.")
    d_k = queries.shape[-1]
    if keys.ndim < 2 or keys.shape[-1] != d_k:
        raise ValueError(f"keys must have shape (..., n_k, d_k) with d_k = {d_k} as in queries; got {keys.shape}.")
    n_keys = keys.shape[-2]
    if values is not None and (values.ndim < 2 or values.shape[-2] != n_keys):
        raise ValueError(f"values must have shape (..., n_k, d_v) with n_k = {n_keys} as in keys; got {values.shape}.")


def broadcast_mask(mask: ArrayLike, shape: tuple[int, ...]) -> NDArray[np.bool_]:
    """A Boolean ``mask`` as a view that covers scores of ``shape`` (..., n_q, n_k); `ValueError` if it is not one."""
    mask = np.asarray(mask)
    if mask.dtype != bool:
        raise ValueError(f"mask must be Boolean, True = may attend; got dtype {mask.dtype}.")
    try:
        return np.broadcast_to(mask, np.broadcast_shapes(mask.shape, shape))  # a view: no n² bytes are made
    except ValueError:
        raise ValueError(f"mask must be broadcastable to (..., n_q, n_k) = {shape}; got {mask.shape}.") from None
