"""The explorers' numbers, without any drawing: section 3.2.1 of the paper and its footnote 4, in NumPy.

The browser's bench computes the same things in JavaScript; ``tests/explore`` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations import softmax

LARGEST_D_K = 512
N_KEYS = 10
N_DRAWS = 300
SEED = 0


def entropy(weights: ArrayLike, axis: int = -1) -> NDArray[np.floating]:
    """How evenly ``weights`` are spread: −Σ p ln p in nats, from 0 (one weight is 1) to ln n (all equal).

    Args:
        weights: (..., n), not negative and summing to 1 along ``axis``. A weight of 0 adds nothing.
        axis: the axis of the n weights.

    Returns:
        (...), the same shape without ``axis``.

    >>> float(entropy([0.5, 0.5]).round(3))
    0.693
    """
    weights = np.asarray(weights, dtype=np.float64)
    logarithms = np.log(np.where(weights > 0, weights, 1.0))
    return -(weights * logarithms).sum(axis=axis) + 0.0  # + 0.0 turns -0.0 into 0.0


def softmax_jacobian(weights: ArrayLike) -> NDArray[np.floating]:
    """The derivative of softmax at the point where it gives ``weights``: ∂p_i/∂s_j = p_i (δ_ij − p_j).

    Args:
        weights: (..., n), the softmax of some scores.

    Returns:
        (..., n, n): row i is the gradient of weight i with respect to the n scores.
    """
    weights = np.asarray(weights, dtype=np.float64)
    return weights[..., :, None] * (np.eye(weights.shape[-1]) - weights[..., None, :])  # (..., n, 1) * (..., n, n)


def softmax_jacobian_norm(weights: ArrayLike) -> NDArray[np.floating]:
    """The Frobenius norm of `softmax_jacobian`, without building the matrix: how much gradient gets through softmax.

    Args:
        weights: (..., n), the softmax of some scores.

    Returns:
        (...): √(Σp² − 2Σp³ + (Σp²)²); 0 when one weight is 1, and 1/√2 at most (two weights of one half).

    >>> float(softmax_jacobian_norm([0.5, 0.5]))
    0.5
    """
    weights = np.asarray(weights, dtype=np.float64)
    squares = (weights**2).sum(axis=-1)
    cubes = (weights**3).sum(axis=-1)
    return np.sqrt(np.maximum(squares - 2 * cubes + squares**2, 0.0))  # rounding may leave -1e-17 at saturation


class PlaneAttention(NamedTuple):
    """One query against n keys: ``products`` (n,), ``scores`` (n,), ``weights`` (n,), ``output`` (d_v,)."""

    products: NDArray[np.floating]
    scores: NDArray[np.floating]
    weights: NDArray[np.floating]
    output: NDArray[np.floating]


def plane_attention(query: ArrayLike, keys: ArrayLike, values: ArrayLike, scaled: bool = True) -> PlaneAttention:
    """Attention of one query, every step kept, with or without the division by √d_k.

    Args:
        query: (d_k,); the bench uses d_k = 2.
        keys: (n, d_k).
        values: (n, d_v).
        scaled: divide the dot products by √d_k, as the paper does.

    Raises:
        ValueError: shapes that do not fit.

    Source: Vaswani et al. 2017, §3.2.1, eq. 1.

    >>> plane_attention([2.0, 0.0], [[1.0, 0.0], [0.0, 1.0]], [[4.0], [10.0]], scaled=False).scores
    array([2., 0.])
    """
    query, keys, values = (np.asarray(x, dtype=np.float64) for x in (query, keys, values))
    if query.ndim != 1 or keys.ndim != 2 or keys.shape[1] != query.shape[0]:
        raise ValueError(f"query must be (d_k,) and keys (n, d_k); got {query.shape} and {keys.shape}.")
    if values.ndim != 2 or values.shape[0] != keys.shape[0]:
        raise ValueError(f"values must be (n, d_v) with n = {keys.shape[0]} as in keys; got {values.shape}.")
    products = keys @ query  # (n, d_k) @ (d_k,) -> (n,)
    scores = products / np.sqrt(query.shape[0]) if scaled else products
    weights = softmax(scores)
    return PlaneAttention(products, scores, weights, weights @ values)


@dataclass(frozen=True)
class ScoreStatistics:
    """What softmax meets at one d_k, averaged over many random queries (n keys each).

    ``variance`` and ``deviation`` are of the scores that enter softmax; ``entropy`` (nats), ``largest`` (weight) and
    ``gradient`` (Frobenius norm of softmax's Jacobian) are means over the draws.
    """

    d_k: int
    scaled: bool
    mean: float
    variance: float
    deviation: float
    entropy: float
    largest: float
    gradient: float


@dataclass(frozen=True)
class ScoreWorld:
    """Random queries and keys whose components are independent, with mean 0 and variance 1 (the paper's footnote 4).

    ``products[d - 1]`` (draws, n) are the dot products of the first d components, so that moving d_k from d to d + 1 adds one
    component to the same vectors instead of drawing new ones.
    """

    products: NDArray[np.float64]  # (d_k, draws, n)

    @property
    def largest_d_k(self) -> int:
        return self.products.shape[0]

    def scores(self, d_k: int, scaled: bool) -> NDArray[np.float64]:
        """(draws, n): what enters softmax."""
        if not 1 <= d_k <= self.largest_d_k:
            raise ValueError(f"d_k must be between 1 and {self.largest_d_k}; got {d_k}.")
        products = self.products[d_k - 1]
        return products / np.sqrt(d_k) if scaled else products

    def statistics(self, d_k: int, scaled: bool) -> ScoreStatistics:
        scores = self.scores(d_k, scaled)
        weights = softmax(scores)
        return ScoreStatistics(
            d_k=d_k,
            scaled=scaled,
            mean=float(scores.mean()),
            variance=float(scores.var()),
            deviation=float(scores.std()),
            entropy=float(entropy(weights).mean()),
            largest=float(weights.max(axis=-1).mean()),
            gradient=float(softmax_jacobian_norm(weights).mean()),
        )


@cache
def score_world(seed: int = SEED, draws: int = N_DRAWS, n_keys: int = N_KEYS, largest_d_k: int = LARGEST_D_K) -> ScoreWorld:
    """Draw ``draws`` queries with ``n_keys`` keys each, all of ``largest_d_k`` components, from one seeded generator."""
    rng = np.random.default_rng(seed)
    queries = rng.standard_normal((draws, 1, largest_d_k))
    keys = rng.standard_normal((draws, n_keys, largest_d_k))
    products = np.cumsum(queries * keys, axis=-1)  # (draws, n, d_k): the dot product of the first 1, 2, ... components
    products = np.ascontiguousarray(products.transpose(2, 0, 1))  # (draws, n, d_k) -> (d_k, draws, n)
    products.setflags(write=False)  # cached and shared
    return ScoreWorld(products)


def score_statistics(d_k: int, scaled: bool, *, draws: int = N_DRAWS, n_keys: int = N_KEYS, seed: int = SEED) -> ScoreStatistics:
    """`ScoreStatistics` of random queries and keys of ``d_k`` components (1 to 512), with or without the division by √d_k.

    >>> round(score_statistics(64, scaled=True).variance)
    1
    """
    return score_world(seed, draws, n_keys).statistics(d_k, scaled)
