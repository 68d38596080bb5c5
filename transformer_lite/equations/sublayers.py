"""Feed-forward network, layer normalisation and the residual connection: sections 3.1 and 3.3 of the paper."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import floating
from transformer_lite.equations.guarding import reference


@reference
def layer_norm(x: ArrayLike, gain: ArrayLike, bias: ArrayLike, eps: float = 1e-5) -> NDArray[np.floating]:
    """Give the features of each token mean 0 and variance 1, then scale and shift them by learned numbers.

    (x − mean) / √(variance + eps) · gain + bias. Mean and variance (divided by d_model) are taken over the features of one
    token, never over the batch or the positions, in training and in use alike.

    Args:
        x: (..., d_model).
        gain: (d_model,).
        bias: (d_model,).
        eps: added to the variance, inside the root, so that a constant token gives no division by 0.

    Returns:
        Same shape as ``x``.

    Raises:
        ValueError: ``gain`` or ``bias`` does not fit ``x``.

    Source: Ba et al. 2016, as used by Vaswani et al. 2017, §3.1.

    >>> layer_norm([1.0, 3.0], gain=[1.0, 1.0], bias=[0.0, 0.0]).round(3)
    array([-1.,  1.])
    """
    x, gain, bias = floating(x), floating(gain), floating(bias)
    if x.ndim < 1:
        raise ValueError(f"x must have shape (..., d_model); got {x.shape}.")
    for name, vector in (("gain", gain), ("bias", bias)):
        if vector.shape != x.shape[-1:]:
            raise ValueError(f"{name} must have shape (d_model,) with d_model = {x.shape[-1]}; got {vector.shape}.")
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred**2).mean(axis=-1, keepdims=True)
    return centred / np.sqrt(variance + eps) * gain + bias


@reference
def feed_forward(x: ArrayLike, w1: ArrayLike, b1: ArrayLike, w2: ArrayLike, b2: ArrayLike) -> NDArray[np.floating]:
    """Send every position through the same two linear maps with a ReLU between them: max(0, x W₁ + b₁) W₂ + b₂.

    Args:
        x: (..., d_model).
        w1: (d_model, d_ff).
        b1: (d_ff,).
        w2: (d_ff, d_model).
        b2: (d_model,).

    Returns:
        Same shape as ``x``. No position looks at another.

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.3, eq. 2.
    """
    x, w1, b1, w2, b2 = (floating(each) for each in (x, w1, b1, w2, b2))
    d_model = x.shape[-1] if x.ndim else 0
    if w1.ndim != 2 or w1.shape[0] != d_model:
        raise ValueError(f"w1 must have shape (d_model, d_ff) with d_model = {d_model}; got {w1.shape}.")
    d_ff = w1.shape[1]
    for name, array, shape, symbols in (
        ("b1", b1, (d_ff,), "(d_ff,)"),
        ("w2", w2, (d_ff, d_model), "(d_ff, d_model)"),
        ("b2", b2, (d_model,), "(d_model,)"),
    ):
        if array.shape != shape:
            raise ValueError(f"{name} must have shape {symbols} = {shape}; got {array.shape}.")
    return np.maximum(x @ w1 + b1, 0) @ w2 + b2  # (..., d_model) -> (..., d_ff) -> (..., d_model)


@reference
def add_and_norm(
    x: ArrayLike, sublayer: Callable[[NDArray], ArrayLike], gain: ArrayLike, bias: ArrayLike, eps: float = 1e-5
) -> NDArray[np.floating]:
    """Add what a sub-layer makes of ``x`` to ``x`` itself, then normalise: LayerNorm(x + Sublayer(x)).

    The sum comes first and the normalisation last (Post-LN), as in the paper.

    Args:
        x: (..., d_model).
        sublayer: maps (..., d_model) to the same shape.
        gain: (d_model,), of the normalisation.
        bias: (d_model,), of the normalisation.
        eps: as in `layer_norm`.

    Returns:
        Same shape as ``x``.

    Raises:
        ValueError: the sub-layer changes the shape, so that nothing can be added.

    Source: Vaswani et al. 2017, §3.1.
    """
    x = floating(x)
    branch = np.asarray(sublayer(x))
    if branch.shape != x.shape:
        raise ValueError(f"sublayer must keep the shape {x.shape} of x, so that both can be added; it gave {branch.shape}.")
    return layer_norm(x + branch, gain, bias, eps)
