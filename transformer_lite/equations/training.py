"""What training adds: the shifted decoder input, the targets, the loss and the learning rate. Sections 3.1 and 5 of the paper."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.attention import floating
from transformer_lite.equations.guarding import reference


@reference
def shift_right(labels: ArrayLike, bos_id: int) -> NDArray[np.integer]:
    """Make the decoder's input from the labels: the start symbol first, every label one place later, the last one dropped.

    Position i of the input holds label i − 1 and predicts label i, so together with the causal mask no prediction can see the
    label that it must predict.

    Args:
        labels: (..., n), integers.
        bos_id: the id of the start symbol.

    Returns:
        Same shape as ``labels``.

    Raises:
        ValueError: ``labels`` has no axis.

    Source: Vaswani et al. 2017, §3.1 ("offset by one position"), figure 1 ("outputs (shifted right)").

    >>> shift_right([7, 8, 2], bos_id=1)
    array([1, 7, 8])
    """
    labels = np.asarray(labels)
    if labels.ndim < 1:
        raise ValueError(f"labels must have shape (..., n); got {labels.shape}.")
    shifted = np.empty_like(labels)
    shifted[..., :1] = bos_id
    shifted[..., 1:] = labels[..., :-1]
    return shifted


@reference
def label_smoothing(targets: ArrayLike, vocab_size: int, epsilon: float) -> NDArray[np.float64]:
    """Soften one-hot targets: (1 − ε) · one-hot + ε / V. The right token keeps 1 − ε + ε/V, every other gets ε/V.

    Args:
        targets: (...), integers from 0 to vocab_size − 1.
        vocab_size: V.
        epsilon: ε between 0 and 1; 0.1 in the paper.

    Returns:
        (..., V); each row sums to 1.

    Raises:
        ValueError: a target outside the vocabulary, or ε outside 0 to 1.

    Source: Szegedy et al. 2016, as used by Vaswani et al. 2017, §5.4.

    >>> label_smoothing(2, vocab_size=5, epsilon=0.1)
    array([0.02, 0.02, 0.92, 0.02, 0.02])
    """
    targets = np.asarray(targets)
    if not 0.0 <= epsilon <= 1.0:
        raise ValueError(f"epsilon must lie between 0 and 1; got {epsilon}.")
    _check_targets(targets, vocab_size, f"vocab_size = {vocab_size}")
    one_hot = np.eye(vocab_size)[targets]  # (...) -> (..., V)
    return (1.0 - epsilon) * one_hot + epsilon / vocab_size


@reference
def masked_cross_entropy(logits: ArrayLike, targets: ArrayLike, real: ArrayLike) -> float:
    """Average −log p(target) over the real tokens, in nats; padding does not count, neither above nor below the line.

    Args:
        logits: (..., V), before the softmax.
        targets: (...), integers.
        real: (...), Boolean; True = a real token, False = padding.

    Returns:
        The mean over the real tokens (nats per token); exp of it is the perplexity.

    Raises:
        ValueError: shapes that do not fit, a target outside the vocabulary, or no real token at all.

    Source: Vaswani et al. 2017, §5 (training on the log-likelihood); the padding is every batch's.
    """
    logits, targets, real = floating(logits), np.asarray(targets), np.asarray(real)
    if logits.ndim < 1 or logits.shape[:-1] != targets.shape:
        raise ValueError(f"targets must have shape (...) = {logits.shape[:-1]} as logits (..., V); got {targets.shape}.")
    if real.dtype != bool or real.shape != targets.shape:
        raise ValueError(f"real must be Boolean of shape {targets.shape} as targets; got {real.dtype} of shape {real.shape}.")
    if not real.any():
        raise ValueError("real must be True for at least one token; got none.")
    _check_targets(targets[real], logits.shape[-1], f"V = {logits.shape[-1]} as in logits")
    largest = logits.max(axis=-1, keepdims=True)
    log_total = np.log(np.exp(logits - largest).sum(axis=-1)) + largest[..., 0]  # log Σ exp, without overflow
    at_target = np.take_along_axis(logits, np.where(real, targets, 0)[..., np.newaxis], axis=-1)[..., 0]
    return float((log_total - at_target)[real].mean())


@reference
def noam_learning_rate(step: int, d_model: int, warmup: int = 4000) -> float:
    """The paper's learning rate: rises in a straight line for ``warmup`` steps, then falls with 1/√step.

    d_model^−0.5 · min(step^−0.5, step · warmup^−1.5).

    Args:
        step: counts from 1.
        d_model: width of the model.
        warmup: number of rising steps, 1 or more.

    Returns:
        The learning rate of that step; largest at step = warmup.

    Raises:
        ValueError: a step or a warm-up below 1.

    Source: Vaswani et al. 2017, §5.3, eq. 3.

    >>> round(noam_learning_rate(4000, 512), 6)
    0.000699
    """
    if step < 1:
        raise ValueError(f"step must be 1 or more; got {step}.")
    if warmup < 1:
        raise ValueError(f"warmup must be 1 or more; got {warmup}.")
    return float(d_model**-0.5 * min(step**-0.5, step * warmup**-1.5))


def _check_targets(targets: NDArray, vocab_size: int, what: str) -> None:
    if not np.issubdtype(targets.dtype, np.integer):
        raise ValueError(f"targets must be integers; got {targets.dtype}.")
    if targets.size and not (targets.min() >= 0 and targets.max() < vocab_size):
        raise ValueError(f"targets must lie between 0 and {vocab_size - 1} ({what}); got {targets.min()} to {targets.max()}.")
