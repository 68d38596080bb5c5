"""From token ids to the vectors that enter a stack: sections 3.4 and 3.5 of the paper."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Self

import torch
from torch import Tensor, nn

from transformer_lite.model.config import TransformerConfig


def sinusoids(n_positions: int, d_model: int) -> Tensor:
    """(n_positions, d_model): sin in the even components, cos in the odd ones, float64.

    Source: Vaswani et al. 2017, §3.5.
    """
    positions = torch.arange(n_positions, dtype=torch.float64).unsqueeze(1)  # (n, 1)
    frequencies = 10_000.0 ** (-torch.arange(0, d_model, 2, dtype=torch.float64) / d_model)  # (d/2,), one for each pair
    angles = positions * frequencies  # (n, d/2)
    return torch.stack([angles.sin(), angles.cos()], dim=-1).flatten(-2)  # (n, d/2, 2) -> (n, d)


class SinusoidalPositions(nn.Module):
    """The paper's fixed encoding. No parameters, and no longest length: the table grows when a longer sequence comes."""

    table: Tensor

    def __init__(self, n_positions: int, d_model: int):
        super().__init__()
        self.register_buffer("table", sinusoids(n_positions, d_model).to(torch.get_default_dtype()), persistent=False)

    def forward(self, n: int, start: int = 0) -> Tensor:
        """The encodings (n, d_model) of positions ``start`` to ``start + n − 1``."""
        if start + n > len(self.table):
            longer = sinusoids(max(start + n, 2 * len(self.table)), self.table.shape[1])
            self.table = longer.to(self.table)
        return self.table[start : start + n]

    def _apply(self, fn: Callable[[Tensor], Tensor], recurse: bool = True) -> Self:
        super()._apply(fn, recurse)
        self.table = sinusoids(*self.table.shape).to(self.table)  # computed anew: a wider dtype is to have all of its digits
        return self


class LearnedPositions(nn.Module):
    """One learned vector for each position, as in BERT and GPT. There are no more than were made."""

    def __init__(self, n_positions: int, d_model: int):
        super().__init__()
        self.table = nn.Parameter(torch.empty(n_positions, d_model))
        nn.init.normal_(self.table, std=0.02)

    def forward(self, n: int, start: int = 0) -> Tensor:
        """The vectors (n, d_model) of positions ``start`` to ``start + n − 1``."""
        if start + n > len(self.table):
            raise ValueError(
                f"there are {len(self.table)} learned positions; position {start + n - 1} (from 0) is not one of them: "
                "read or write fewer tokens, or make more with max_positions."
            )
        return self.table[start : start + n]


class NoPositions(nn.Module):
    """Nothing is added: the model cannot tell one order of its input from another, except by a causal mask."""

    def forward(self, n: int, start: int = 0) -> float:
        return 0.0


def positions_of(config: TransformerConfig) -> nn.Module:
    """The positions that a configuration describes."""
    if config.positions == "none":
        return NoPositions()
    kind = SinusoidalPositions if config.positions == "sinusoidal" else LearnedPositions
    return kind(config.max_positions, config.d_model)


class TokenEmbedding(nn.Module):
    """Embedding · √d_model + positions, then dropout.

    Args:
        vocab: number of tokens.
        config: width, positions and dropout.
    """

    def __init__(self, vocab: int, config: TransformerConfig):
        super().__init__()
        self.tokens = nn.Embedding(vocab, config.d_model)
        nn.init.normal_(self.tokens.weight, std=config.d_model**-0.5)  # · √d_model makes the components' variance 1
        self.positions = positions_of(config)
        self.dropout = nn.Dropout(config.dropout)
        self.scale = math.sqrt(config.d_model)

    def forward(self, token_ids: Tensor, start: int = 0) -> Tensor:
        """(batch, n) -> (batch, n, d_model). ``start`` is the position of the first token."""
        return self.dropout(self.tokens(token_ids) * self.scale + self.positions(token_ids.shape[-1], start))
