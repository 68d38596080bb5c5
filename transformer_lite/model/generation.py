"""Writing token by token: greedy decoding, beam search, sampling (section 6.1 of the paper for the beam and its penalty).

Whatever can ``start`` and ``step`` is decoded here: the Transformer, with its cache or without, and the baselines alike.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import torch
from torch import Tensor, nn


class State(Protocol):
    """Where the writing of a batch stands."""

    def step(self, token_ids: Tensor) -> Tensor:
        """Take in one token of each continuation, (rows,); return the logits of the next one, (rows, vocab)."""

    def reorder(self, rows: Tensor) -> None:
        """Go on with the continuations ``rows``, in that order."""


class Translator(nn.Module):
    """An encoder-decoder model that writes. ``config`` holds its ``pad_id``, ``bos_id`` and ``eos_id``."""

    config: Any

    def start(self, source_ids: Tensor, beam: int, capacity: int) -> State:
        """Read the source and prepare to write up to ``capacity`` tokens, ``beam`` continuations a sentence."""
        raise NotImplementedError

    def start_without_cache(self, source_ids: Tensor, beam: int) -> State:
        """The same, but every step computes all tokens so far anew, where a model can do otherwise."""
        raise NotImplementedError

    def generate(
        self,
        source_ids: Tensor,
        max_new_tokens: int | None = None,
        beam: int = 1,
        *,
        length_penalty: float = 0.6,
        cache: bool = True,
    ) -> Tensor:
        """Write the target token by token.

        Args:
            source_ids: (batch, n_source).
            max_new_tokens: at most so many; None: n_source + 50, as in the paper.
            beam: 1 is greedy decoding; more is beam search with so many hypotheses a sentence (the paper: 4).
            length_penalty: α of beam search; log-probabilities are divided by ((5 + length) / 6)^α (the paper: 0.6).
            cache: keep what earlier tokens left behind; without it every step computes it anew. The tokens are the same.

        Returns:
            (batch, n), n ≤ max_new_tokens: the tokens after BOS up to and with EOS, filled up with ``config.pad_id``.

        Raises:
            ValueError: ``source_ids`` is no batch, a number below 1, or a negative length penalty.

        Source: Vaswani et al. 2017, §6.1.
        """
        with writing(self):
            written = _translate(self, source_ids, max_new_tokens, beam, length_penalty, cache)
        return written.clone()  # what inference mode makes could be neither changed nor trained on


@contextmanager
def writing(model: nn.Module) -> Iterator[None]:
    """Evaluation and inference mode; afterwards every part of the model is in the mode in which it was."""
    training = [module for module in model.modules() if module.training]
    for module in training:
        module.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for module in training:
            module.training = True


def _translate(
    model: Translator, source_ids: Tensor, max_new_tokens: int | None, beam: int, length_penalty: float, cache: bool
) -> Tensor:
    if source_ids.dim() != 2:
        raise ValueError(f"source_ids must have shape (batch, n_source); got {tuple(source_ids.shape)}.")
    limit = source_ids.shape[1] + 50 if max_new_tokens is None else max_new_tokens
    for name, size in (("max_new_tokens", limit), ("beam", beam)):
        if size < 1:
            raise ValueError(f"{name} must be 1 or more; got {size}.")
    if not length_penalty >= 0:  # the search ends early because the penalty grows with the length
        raise ValueError(f"length_penalty must be 0 or more; got {length_penalty}.")
    if len(source_ids) == 0:
        return source_ids.new_empty(0, 0)
    state = model.start(source_ids, beam, limit) if cache else model.start_without_cache(source_ids, beam)
    config, first = model.config, source_ids.new_full((len(source_ids),), model.config.bos_id)
    if beam == 1:
        return greedy(state, first, limit, config.eos_id, config.pad_id)
    return beam_search(state, first, limit, beam, config.eos_id, config.pad_id, length_penalty)


def greedy(state: State, first: Tensor, limit: int, eos_id: int, pad_id: int) -> Tensor:
    """Take the most probable token each time, until every sentence has ended.

    Args:
        state: of a batch.
        first: (batch,), the tokens that open the sentences.
        limit: at most so many tokens.
        eos_id, pad_id: what ends a sentence, and what fills it up.

    Returns:
        (batch, n), n ≤ ``limit``, without ``first``.
    """
    written = first.new_full((len(first), limit), pad_id)
    ended = torch.zeros_like(first, dtype=torch.bool)
    token = first
    for i in range(limit):
        logits = state.step(token)
        logits[:, pad_id] = float("-inf")  # it fills up what is finished, and says nothing
        token = logits.argmax(dim=-1).masked_fill_(ended, pad_id)
        written[:, i] = token
        ended |= token == eos_id
        if ended.all():
            return written[:, : i + 1]
    return written


def beam_search(
    state: State, first: Tensor, limit: int, beam: int, eos_id: int, pad_id: int, length_penalty: float
) -> Tensor:
    """Keep the ``beam`` most probable continuations of each sentence; return the best finished one.

    A finished hypothesis of length n (EOS counted) scores log P / ((5 + n) / 6)^α. A sentence is done when none of its open
    hypotheses can still do better than its best finished one.

    Args:
        state: of a batch, ``beam`` continuations a sentence, those of one sentence together.
        first: (batch,), the tokens that open the sentences.
        limit, eos_id, pad_id: as in `greedy`.
        beam: 2 or more.
        length_penalty: α; 0 leaves the log-probabilities as they are, which favours short sentences.

    Returns:
        (batch, n), n ≤ ``limit``.

    Source: Vaswani et al. 2017, §6.1; the penalty is Wu et al. 2016, §7, without coverage.
    """
    batch, device = len(first), first.device
    rows = torch.arange(batch, device=device).unsqueeze(1)  # (batch, 1)
    written = first.new_full((batch, beam, limit), pad_id)
    scores = torch.full((batch, beam), float("-inf"), device=device)
    scores[:, 0] = 0.0  # all continuations of a sentence are still the same one
    best = first.new_full((batch, limit), pad_id)
    best_score = torch.full((batch,), float("-inf"), device=device)
    token = first.repeat_interleave(beam)
    longest = penalty(limit, length_penalty)
    for i in range(limit):
        logits = state.step(token)
        vocab = logits.shape[-1]
        log_p = logits.float().log_softmax(dim=-1).view(batch, beam, vocab)
        log_p[..., pad_id] = float("-inf")  # it fills up what is finished, and says nothing
        # Of 2 · beam candidates at most beam end here, so beam open ones remain.
        top, candidate = (scores.unsqueeze(2) + log_p).flatten(1).topk(min(2 * beam, beam * vocab), dim=1)
        origin, chosen = candidate // vocab, candidate % vocab  # (batch, 2 · beam)

        ends = chosen == eos_id
        finished = (top / penalty(i + 1, length_penalty)).masked_fill(~ends, float("-inf"))
        finished[:, beam:] = float("-inf")  # only what is among the best ``beam`` may end
        score, place = finished.max(dim=1)
        better = score > best_score
        if bool(better.any()):
            ending = written[rows[:, 0], origin[rows[:, 0], place]]  # (batch, limit)
            ending[:, i] = eos_id
            best = torch.where(better.unsqueeze(1), ending, best)
            best_score = torch.where(better, score, best_score)

        open_top = top.masked_fill(ends, float("-inf"))
        scores, place = open_top.topk(beam, dim=1)  # (batch, beam)
        origin, chosen = origin.gather(1, place), chosen.gather(1, place)
        written = written[rows, origin]
        written[:, :, i] = chosen
        if bool((best_score >= scores[:, 0] / longest).all()):  # log P only falls, and the penalty is largest at the limit
            break
        state.reorder((rows * beam + origin).flatten())
        token = chosen.flatten()
    unfinished = best_score == float("-inf")
    best = torch.where(unfinished.unsqueeze(1), written[:, 0], best)
    length = int((best != pad_id).any(dim=0).nonzero().max()) + 1
    return best[:, :length]


def penalty(length: int, alpha: float) -> float:
    """((5 + length) / 6)^α."""
    return ((5 + length) / 6) ** alpha


def next_token(
    logits: Tensor,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Draw the next token of each row.

    Args:
        logits: (rows, vocab).
        temperature: divides the logits; near 0 sharpens, above 1 flattens; exactly 0 takes the most probable token.
        top_k: draw among the k most probable tokens only.
        top_p: draw among the most probable tokens whose probabilities first reach p together (nucleus sampling).
        generator: where the chance comes from.

    Returns:
        (rows,).
    """
    if temperature < 0:
        raise ValueError(f"temperature must be 0 or more; got {temperature}.")
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k must be 1 or more; got {top_k}.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p must be greater than 0 and at most 1; got {top_p}.")
    if temperature == 0:
        return logits.argmax(dim=-1)
    logits = logits.float()
    logits = (logits - logits.amax(dim=-1, keepdim=True)) / temperature  # 0 at most: near temperature 0 nothing overflows
    if top_k is not None and top_k < logits.shape[-1]:
        kept = logits.topk(top_k, dim=-1)  # exactly k, also where some are equally probable
        logits = torch.full_like(logits, float("-inf")).scatter(-1, kept.indices, kept.values)
    if top_p is not None:
        ordered, order = logits.sort(dim=-1, descending=True)
        p = ordered.softmax(dim=-1)
        beyond = p.cumsum(dim=-1) - p >= top_p  # what comes before it has reached p already
        logits = logits.masked_fill(beyond.scatter(-1, order, beyond), float("-inf"))
    return torch.multinomial(logits.softmax(dim=-1), 1, generator=generator).squeeze(1)
