"""Batches of about equal numbers of tokens, the same ones in the same order for the same seed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transformer_lite.translation.vocabulary import BOS, EOS, PAD

Ids = tuple[list[int], list[int]]  # source and target of one pair, without BOS and EOS
POOL = 100  # batches that are sorted by length together; between pools the order is random


class Batch(NamedTuple):
    """What one step learns from, padded: the decoder's input is the target shifted right."""

    source: Tensor  # (rows, n_source), ends with EOS
    target_input: Tensor  # (rows, n_target), begins with BOS
    labels: Tensor  # (rows, n_target), ends with EOS

    @property
    def tokens(self) -> int:
        """Labels that count."""
        return int((self.labels != PAD).sum())


def plan(pairs: Sequence[Ids], tokens: int, seed: int, epoch: int) -> list[list[int]]:
    """Which pairs stand in which batch of an epoch: every pair once, in batches of at most ``tokens`` places, both sides padded.

    Args:
        pairs: all of them.
        tokens: rows · (longest source + longest target) of a batch; one pair alone may have more.
        seed, epoch: decide the order.
    """
    if tokens < 1:
        raise ValueError(f"tokens must be 1 or more; got {tokens}.")
    rng = np.random.default_rng([seed, epoch])
    sizes = np.array([(len(source) + 1, len(target) + 1) for source, target in pairs]).reshape(-1, 2)
    order = rng.permutation(len(pairs))
    mean = max(1.0, float(sizes.sum(axis=1).mean())) if len(pairs) else 1.0
    pool = max(1, int(POOL * tokens / mean))
    batches: list[list[int]] = []
    for start in range(0, len(order), pool):
        here = order[start : start + pool]
        here = here[np.lexsort((sizes[here, 0], sizes[here, 1]))]  # by target, then by source
        rows: list[int] = []
        longest = np.zeros(2, dtype=int)
        for i in here:
            longer = np.maximum(longest, sizes[i])
            if rows and (len(rows) + 1) * int(longer.sum()) > tokens:
                batches.append(rows)
                rows, longer = [], sizes[i]
            rows.append(int(i))
            longest = longer
        if rows:
            batches.append(rows)
    return [batches[i] for i in rng.permutation(len(batches))]


def batch_of(pairs: Sequence[Ids], rows: Sequence[int]) -> Batch:
    """The padded arrays of the pairs numbered ``rows``."""
    source = padded([[*pairs[i][0], EOS] for i in rows])
    target_input = padded([[BOS, *pairs[i][1]] for i in rows])
    labels = padded([[*pairs[i][1], EOS] for i in rows])
    return Batch(source, target_input, labels)


def padded(sentences: Sequence[Sequence[int]]) -> Tensor:
    """(rows, longest), filled up with PAD."""
    longest = max((len(sentence) for sentence in sentences), default=0)
    return torch.tensor([[*sentence, *[PAD] * (longest - len(sentence))] for sentence in sentences], dtype=torch.long).reshape(
        len(sentences), longest
    )
