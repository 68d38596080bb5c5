"""The influence matrix: which inputs move which outputs. The course's common picture of an architecture."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations.guarding import reference


@reference
def influence_matrix(function: Callable[[NDArray], ArrayLike], x: ArrayLike) -> NDArray[np.bool_]:
    """Find out which rows of the output move when one row of the input moves.

    Encoder self-attention fills the matrix, decoder self-attention its lower triangle, a feed-forward network the diagonal,
    convolution a band. Each input row is moved twice, by different amounts, so that a single accidental tie hides nothing.

    Args:
        function: maps (n_in, d) to (n_out, d').
        x: (n_in, d), the point at which to look.

    Returns:
        (n_out, n_in), Boolean: entry [i, j] is True if output row i moves when input row j moves.

    Raises:
        ValueError: ``x`` is not a matrix.

    Source: the course's own tool; the dependencies it shows are those of Vaswani et al. 2017, §3.2.3 and §4.
    """
    x = np.array(x, dtype=np.float64)
    if x.ndim != 2:
        raise ValueError(f"x must have shape (n_in, d); got {x.shape}.")
    still = np.asarray(function(x.copy()), dtype=np.float64)
    columns = []
    for j in range(len(x)):
        moved = np.zeros(len(still), dtype=bool)
        for direction in (np.linspace(0.5, 1.0, x.shape[1]), np.linspace(-0.9, -0.3, x.shape[1])):
            nudged = x.copy()
            nudged[j] += direction
            difference = np.asarray(function(nudged), dtype=np.float64) - still
            moved |= (np.abs(difference) > 1e-9).reshape(len(still), -1).any(axis=1)
        columns.append(moved)
    return np.stack(columns, axis=1) if columns else np.zeros((len(still), 0), dtype=bool)
