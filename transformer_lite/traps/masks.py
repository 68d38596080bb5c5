"""Traps of the causal mask: CM1 to CM7 for as many keys as queries, CR1 to CR3 for more keys than queries (a cache)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transformer_lite.traps.knobs import Family


def core(
    n_queries: int,
    n_keys: int | None = None,
    *,
    diagonal: int = 0,
    sees: str = "the past",
    inverted: bool = False,
    rectangle: str = "aligned at the bottom right",
) -> tuple[NDArray[np.bool_]]:
    """The causal mask with knobs: how far it sees, in which direction, which way round, and what a rectangle looks like."""
    n_keys = n_queries if n_keys is None else n_keys
    cached = n_keys - n_queries
    shift = 0 if rectangle == "aligned at the top left" else cached
    distance = np.arange(n_queries)[:, np.newaxis] + shift - np.arange(n_keys)  # how far back key j is from query i
    match sees:
        case "the past":
            mask = distance >= -diagonal
        case "the future":
            mask = distance <= diagonal
        case "everything":
            mask = np.ones((n_queries, n_keys), dtype=bool)
        case "itself":
            mask = distance == 0
        case "itself and one before":
            mask = (distance == 0) | (distance == 1)
    if inverted:
        mask = ~mask
    if cached > 0 and rectangle == "all visible":
        mask = np.ones_like(mask)
    if cached > 0 and rectangle == "only the new block":
        mask = mask & (np.arange(n_keys) >= cached)
    return (mask,)


family = Family.of(
    core,
    {
        "CM1": ({"diagonal": -1},),
        "CM2": ({"sees": "the future"},),
        "CM3": ({"diagonal": 1},),
        "CM4": ({"sees": "everything"},),
        "CM5": ({"sees": "itself"},),
        "CM6": ({"inverted": True},),
        "CM7": ({"sees": "itself and one before"},),
        "CR1": ({"rectangle": "aligned at the top left"},),
        "CR2": ({"rectangle": "all visible"},),
        "CR3": ({"rectangle": "only the new block"},),
    },
    alone=({"sees": "everything"},),  # turned round, it would be zeros: nothing written yet rather than two mistakes
)
