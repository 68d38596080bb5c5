"""Traps of decoding with a cache: KV1, KV3, KV4, KV5 (positions that restart, KV2, are a question only)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family
from transformer_lite.traps.weighting import weigh


def core(
    x: ArrayLike,
    projections: Sequence[ArrayLike],
    *,
    cached: int | str = "all so far",
    keys_kept: str = "each its own",
    columns: str = "their own",
) -> tuple[NDArray, NDArray]:
    """Attention token by token with knobs: what the cache holds when a token attends, and where the weights are written.

    Args:
        cached: "all so far" with the token itself, "the token alone", "all before" it, or a number: the last so many.
        keys_kept: "each its own"; "only the newest", for everyone; or "first place only": the newest in the first place, zeros
            in the others.
        columns: of the weights that a token gives: "their own", or "from the left".
    """
    x = np.asarray(x, dtype=np.float64)
    w_q, w_k, w_v, w_o = (np.asarray(matrix, dtype=np.float64) for matrix in projections)
    queries, keys, values = x @ w_q, x @ w_k, x @ w_v
    n = x.shape[-2]
    outputs, all_weights = np.zeros_like(values), np.zeros((*x.shape[:-1], n))
    for step in range(n):
        first, last = {"all so far": (0, step + 1), "the token alone": (step, step + 1), "all before": (0, step)}.get(
            cached, (max(0, step + 1 - cached) if isinstance(cached, int) else 0, step + 1)
        )
        if first == last:
            continue  # nothing to attend to: zeros
        seen = keys[..., first:last, :]
        if keys_kept != "each its own":
            seen = np.broadcast_to(keys[..., last - 1 : last, :], seen.shape).copy()
        if keys_kept == "first place only":
            seen[..., 1:, :] = 0.0
        scores = (queries[..., step : step + 1, :] * seen).sum(axis=-1) / np.sqrt(x.shape[-1])  # (..., last - first)
        weights = weigh(scores, -1, "exponential", "maximum")
        outputs[..., step, :] = (weights[..., np.newaxis] * values[..., first:last, :]).sum(axis=-2)
        place = 0 if columns == "from the left" else first
        all_weights[..., step, place : place + last - first] = weights
    return outputs @ w_o, all_weights


family = Family.of(
    core,
    {
        "KV1": ({"cached": "the token alone"}, {"cached": "the token alone", "columns": "from the left"}),
        "KV3": ({"cached": "all before"},),
        "KV4": ({"keys_kept": "only the newest"}, {"keys_kept": "first place only"}),
        "KV5": ({"cached": 2}, {"cached": 2, "columns": "from the left"}),
    },
)
