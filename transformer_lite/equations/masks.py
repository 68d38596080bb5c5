"""Masks: who may attend to whom. Section 3.2.3 of the paper. True = may attend."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.guarding import reference


@reference
def causal_mask(n_queries: int, n_keys: int | None = None) -> NDArray[np.bool_]:
    """Let position i attend to itself and to earlier positions, never to later ones.

    With ``n_keys`` > ``n_queries`` the queries are the *last* positions (the earlier keys come from a cache), so the mask is
    aligned at the bottom right.

    Args:
        n_queries: number of queries, n_q ≥ 0.
        n_keys: number of keys, n_k ≥ n_q; n_q if None.

    Returns:
        (n_queries, n_keys), Boolean, True = may attend.

    Raises:
        ValueError: a negative size, or fewer keys than queries.

    Source: Vaswani et al. 2017, §3.2.3: "up to and including that position".

    >>> causal_mask(3).astype(int)
    array([[1, 0, 0],
           [1, 1, 0],
           [1, 1, 1]])
    """
    if n_keys is None:
        n_keys = n_queries
    if n_queries < 0:
        raise ValueError(f"n_queries must be 0 or more; got {n_queries}.")
    if n_keys < n_queries:
        raise ValueError(f"n_keys must be at least n_queries = {n_queries}; got {n_keys}.")
    return np.tri(n_queries, n_keys, k=n_keys - n_queries, dtype=bool)


@reference
def padding_mask(token_ids: ArrayLike, pad_id: int) -> NDArray[np.bool_]:
    """Hide the keys that are padding, from every query.

    Args:
        token_ids: (..., n_k), integers.
        pad_id: the id of the padding token.

    Returns:
        (..., 1, n_k), Boolean, True = a real token. The 1 broadcasts over the queries.

    Raises:
        ValueError: ``token_ids`` has no axis.

    Source: the paper does not write it down; every batch of sentences of unequal length needs it.

    >>> padding_mask([7, 8, 0], pad_id=0)
    array([[ True,  True, False]])
    """
    token_ids = np.asarray(token_ids)
    if token_ids.ndim < 1:
        raise ValueError(f"token_ids must have shape (..., n_k); got {token_ids.shape}.")
    return (token_ids != pad_id)[..., np.newaxis, :]  # (..., n_k) -> (..., 1, n_k)
