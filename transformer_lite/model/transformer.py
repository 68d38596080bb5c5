"""The whole model: figure 1 of the paper."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, overload

import torch
from torch import Tensor, nn

from transformer_lite.model.attention import CAUSAL, Mask, causal_mask, padding_mask
from transformer_lite.model.config import TransformerConfig
from transformer_lite.model.decoding import DecodingState, RecomputedState
from transformer_lite.model.embedding import TokenEmbedding
from transformer_lite.model.generation import Translator
from transformer_lite.model.layers import Decoder, Encoder


@dataclass
class Weights:
    """The attention weights of one forward pass, one array per layer."""

    encoder: list[Tensor] = field(default_factory=list)  # (batch, h, n_source, n_source)
    decoder: list[Tensor] = field(default_factory=list)  # (batch, h, n_target, n_target)
    cross: list[Tensor] = field(default_factory=list)  # (batch, h, n_target, n_source)


class Transformer(Translator):
    """An encoder-decoder Transformer.

    Args:
        config: sizes and choices.

    Source: Vaswani et al. 2017, §3, figure 1.
    """

    def __init__(self, config: TransformerConfig):
        super().__init__()
        self.config = config
        self.source_embedding = TokenEmbedding(config.source_vocab, config)
        if config.shared_vocabulary:  # one table for both, as in the paper
            self.target_embedding = self.source_embedding
        else:
            self.target_embedding = TokenEmbedding(config.target_vocab, config)
        self.encoder = Encoder(config)
        self.decoder = Decoder(config)
        target_vocab = config.target_vocab or config.source_vocab
        self.output = nn.Linear(config.d_model, target_vocab, bias=False)
        if config.tied:
            self.output.weight = self.target_embedding.tokens.weight
        else:
            nn.init.normal_(self.output.weight, std=config.d_model**-0.5)

    @overload
    def forward(self, source_ids: Tensor, target_ids: Tensor, need_weights: Literal[False] = False) -> Tensor: ...
    @overload
    def forward(self, source_ids: Tensor, target_ids: Tensor, need_weights: Literal[True]) -> tuple[Tensor, Weights]: ...

    def forward(self, source_ids: Tensor, target_ids: Tensor, need_weights: bool = False) -> Any:
        """Logits of the token after each position of the target, all at once (teacher forcing).

        Args:
            source_ids: (batch, n_source); padding is where they are ``config.pad_id``.
            target_ids: (batch, n_target), the decoder's input: BOS and the target shifted right.
            need_weights: return the attention weights of every layer and head as well.

        Returns:
            Logits (batch, n_target, vocab); with ``need_weights`` also `Weights`.
        """
        weights = Weights() if need_weights else None
        memory_mask = self.real(source_ids)
        memory = self._encode(source_ids, memory_mask, weights)
        y = self.decode(target_ids, memory, memory_mask, weights)
        logits = self.output(y)
        return (logits, weights) if need_weights else logits

    def encode(self, source_ids: Tensor) -> Tensor:
        """The memory (batch, n_source, d_model): what the encoder makes of the source."""
        return self._encode(source_ids, self.real(source_ids))

    def _encode(self, source_ids: Tensor, mask: Tensor | None, weights: Weights | None = None) -> Tensor:
        return self.encoder(self.source_embedding(source_ids), mask, None if weights is None else weights.encoder)

    def real(self, token_ids: Tensor) -> Tensor | None:
        """The padding mask (batch, 1, n) of ``token_ids`` (batch, n); None, which costs nothing, where there is no padding."""
        mask = padding_mask(token_ids, self.config.pad_id)
        if torch.compiler.is_compiling():  # compiled code does not branch on what the numbers are
            return mask
        return None if bool(mask.all()) else mask

    def decode(self, target_ids: Tensor, memory: Tensor, memory_mask: Tensor | None, weights: Weights | None = None) -> Tensor:
        """The decoder's output (batch, n_target, d_model), before the projection to the vocabulary."""
        real = self.real(target_ids)
        self_mask: Mask = CAUSAL
        if real is not None:
            self_mask = causal_mask(target_ids.shape[1], device=target_ids.device) & real  # (batch, n_target, n_target)
        y = self.target_embedding(target_ids)
        asked = (None, None) if weights is None else (weights.decoder, weights.cross)
        return self.decoder(y, memory, self_mask, memory_mask, *asked)

    def start(self, source_ids: Tensor, beam: int, capacity: int) -> DecodingState:
        """Read the source and prepare to write up to ``capacity`` tokens, ``beam`` continuations a sentence."""
        return DecodingState(self, source_ids, beam, capacity)

    def start_without_cache(self, source_ids: Tensor, beam: int) -> RecomputedState:
        """The same, but every step runs the decoder over all tokens so far."""
        return RecomputedState(self, source_ids, beam)
