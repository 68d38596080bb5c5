"""What the experiments that train a model share: one thread, a seed of their own, and a training loop of a few lines."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager

import torch
from torch import nn

from transformer_lite.translation.batching import Batch, Ids, batch_of, plan
from transformer_lite.translation.training import loss_of


@contextmanager
def alone(seed: int) -> Iterator[None]:
    """One thread and PyTorch's random numbers from ``seed``; afterwards both are as they were.

    The sums of several threads are added in an order that varies, and small differences grow while a model learns.
    """
    threads = torch.get_num_threads()
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield
        finally:
            torch.set_num_threads(threads)


def batches(pairs: Sequence[Ids], tokens: int, seed: int) -> Iterator[Batch]:
    """Epoch after epoch without end, in batches of at most ``tokens`` places."""
    epoch = 0
    while True:
        yield from (batch_of(pairs, rows) for rows in plan(pairs, tokens, seed, epoch))
        epoch += 1


def learn(
    model: nn.Module,
    given: Iterable[Batch],
    rate: Callable[[int], float],
    steps: int,
    *,
    clip: float | None = 1.0,
) -> list[float]:
    """Train ``model`` with Adam as in section 5.3 of the paper.

    Args:
        model: trained in place, on the CPU.
        given: at least ``steps`` batches.
        rate: the learning rate of step 1, 2, …
        steps: how many.
        clip: the gradient's largest norm; None: it is left as it is.

    Returns:
        The loss of every step's batch before the step, in nats per token.
    """
    optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
    model.train()
    losses = []
    for step, batch in zip(range(1, steps + 1), given, strict=False):
        optimiser.zero_grad(set_to_none=True)
        mean = loss_of(model, batch) / batch.tokens
        mean.backward()
        if clip is not None:
            nn.utils.clip_grad_norm_(model.parameters(), clip)
        for group in optimiser.param_groups:
            group["lr"] = rate(step)
        optimiser.step()
        losses.append(float(mean.detach()))
    return losses
