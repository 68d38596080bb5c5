"""Three relatives built from the same blocks: encoder only (as BERT), decoder only (as GPT), and one that reads images (as ViT).

What makes each of them is its mask, its head and its loss; the rest is the paper's. They are small and for learning; no published
weights are meant to fit.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.model import generation
from transformer_lite.model.attention import CAUSAL, KeyValueCache, Mask, causal_mask, padding_mask
from transformer_lite.model.config import TransformerConfig
from transformer_lite.model.embedding import TokenEmbedding
from transformer_lite.model.layers import Encoder

IGNORED = -100  # a label that no loss counts


@dataclass(frozen=True)
class EncoderOnlyConfig:
    """A BERT-style model. The defaults are a small one; BERT base is 768, 12, 3072, 12 with 30,522 tokens."""

    vocab: int
    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    dropout: float = 0.1
    n_segments: int = 2
    max_positions: int = 512
    pad_id: int = 0
    mask_id: int = 3

    def __post_init__(self) -> None:
        self.blocks()
        if not 0 <= self.mask_id < self.vocab:
            raise ValueError(f"mask_id must be one of the {self.vocab} tokens; got {self.mask_id}.")
        if self.mask_id == self.pad_id:
            raise ValueError(f"mask_id must differ from pad_id, which no token attends to; both are {self.mask_id}.")
        if self.n_segments < 1:
            raise ValueError(f"n_segments must be 1 or more; got {self.n_segments}.")

    def blocks(self) -> TransformerConfig:
        """The blocks that it is made of: Post-LN as the paper, GELU, learned positions."""
        return _blocks(self, norm="post", activation="gelu", eps=1e-12)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class EncoderOnly(nn.Module):
    """BERT-style: every token sees every other, both ways; the task is to name hidden tokens (masked language model).

    Token, position and segment embeddings are added, normalised and dropped out. The head is a linear map, GELU, LayerNorm, and
    the token table once more.
    """

    def __init__(self, config: EncoderOnlyConfig):
        super().__init__()
        self.config = config
        blocks, d = config.blocks(), config.d_model
        self.tokens = nn.Embedding(config.vocab, d)
        self.positions = nn.Embedding(config.max_positions, d)
        self.segments = nn.Embedding(config.n_segments, d)
        self.norm = nn.LayerNorm(d, eps=blocks.eps)
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(blocks)
        self.head = nn.Sequential(nn.Linear(d, d), nn.GELU(), nn.LayerNorm(d, eps=blocks.eps))
        self.output_bias = nn.Parameter(torch.zeros(config.vocab))
        for table in (self.tokens, self.positions, self.segments):
            nn.init.normal_(table.weight, std=0.02)

    def encode(self, token_ids: Tensor, segment_ids: Tensor | None = None, weights: list[Tensor] | None = None) -> Tensor:
        """(batch, n) -> (batch, n, d_model). ``segment_ids`` (batch, n) tell sentence A (0) from B (1); all 0 if None."""
        n = token_ids.shape[1]
        if n > self.config.max_positions:
            raise ValueError(f"there are {self.config.max_positions} positions; got {n} tokens.")
        segment_ids = torch.zeros_like(token_ids) if segment_ids is None else segment_ids
        positions = self.positions.weight[:n]
        x = self.tokens(token_ids) + positions + self.segments(segment_ids)  # added: still d_model wide
        x = self.dropout(self.norm(x))
        return self.encoder(x, padding_mask(token_ids, self.config.pad_id), weights)

    def forward(self, token_ids: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        """Logits (batch, n, vocab) for the token that stands, or stood, at each position."""
        return F.linear(self.head(self.encode(token_ids, segment_ids)), self.tokens.weight, self.output_bias)

    def loss(self, token_ids: Tensor, labels: Tensor, segment_ids: Tensor | None = None) -> Tensor:
        """Cross-entropy at the hidden positions only: where ``labels`` (batch, n) are not −100."""
        return _mean_loss(self(token_ids, segment_ids), labels, IGNORED)

    def hide(self, token_ids: Tensor, share: float = 0.15, generator: torch.Generator | None = None) -> tuple[Tensor, Tensor]:
        """Choose ``share`` of the real tokens; of these 80 % become [MASK], 10 % a random one, never padding, 10 % stay.

        Returns:
            The tokens with some hidden, and the labels: the old token at the chosen positions, −100 elsewhere.
        """
        real = token_ids != self.config.pad_id
        draw = torch.rand(token_ids.shape, generator=generator).to(token_ids.device)
        chosen = real & (draw < share)
        labels = token_ids.long().masked_fill(~chosen, IGNORED)  # a loss wants its labels in 64 bits
        how = torch.rand(token_ids.shape, generator=generator).to(token_ids.device)
        other = torch.randint(self.config.vocab - 1, token_ids.shape, generator=generator).to(token_ids)
        other = other + (other >= self.config.pad_id)  # skips the number of padding, which the mask would take out
        hidden = token_ids.masked_fill(chosen & (how < 0.8), self.config.mask_id)
        return torch.where(chosen & (how >= 0.9), other, hidden), labels


@dataclass(frozen=True)
class DecoderOnlyConfig:
    """A GPT-style model. The defaults are a small one; GPT-2 small is 768, 12, 3072, 12 with 50,257 tokens, 1,024 positions."""

    vocab: int
    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    dropout: float = 0.1
    max_positions: int = 512
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        self.blocks()

    def blocks(self) -> TransformerConfig:
        """The blocks that it is made of: Pre-LN with a last LayerNorm, GELU, learned positions."""
        return _blocks(self, norm="pre", activation="gelu")

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class DecoderOnly(nn.Module):
    """GPT-style: every token sees itself and what stands before it; the task is the next token. There is no cross-attention."""

    def __init__(self, config: DecoderOnlyConfig):
        super().__init__()
        self.config = config
        blocks = config.blocks()
        self.embedding = TokenEmbedding(config.vocab, blocks)
        self.embedding.scale = 1.0  # GPT adds learned positions to the tokens as they are
        nn.init.normal_(self.embedding.tokens.weight, std=0.02)
        self.stack = Encoder(blocks)  # a decoder without cross-attention is an encoder with a causal mask

    def forward(self, token_ids: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """Logits (batch, n, vocab) of the token after each position. Padding belongs at the end, where nobody looks."""
        real = padding_mask(token_ids, self.config.pad_id)
        mask: Mask = CAUSAL
        if torch.compiler.is_compiling() or not bool(real.all()):
            mask = causal_mask(token_ids.shape[1], device=token_ids.device) & real
        return F.linear(self.stack(self.embedding(token_ids), mask, weights), self.embedding.tokens.weight)

    def loss(self, token_ids: Tensor) -> Tensor:
        """Cross-entropy of each token given those before it; padding does not count."""
        return _mean_loss(self(token_ids[:, :-1]), token_ids[:, 1:], self.config.pad_id)

    def generate(
        self,
        token_ids: Tensor,
        max_new_tokens: int,
        *,
        temperature: float = 1.0,
        top_k: int | None = None,
        top_p: float | None = None,
        generator: torch.Generator | None = None,
        cache: bool = True,
    ) -> Tensor:
        """Go on from a prompt, drawing one token at a time; see `generation.next_token` for the choices.

        Args:
            token_ids: (batch, n), prompts of one length, without padding.
            max_new_tokens: at most so many.
            temperature: 0 takes the most probable token each time.
            top_k, top_p: draw among the most probable tokens only.
            generator: where the chance comes from.
            cache: keep keys and values; without it every step computes them anew. The tokens are the same.

        Returns:
            (batch, n_new), the new tokens up to and with EOS, filled up with ``config.pad_id``.
        """
        config = self.config
        if token_ids.dim() != 2 or token_ids.shape[1] < 1 or bool((token_ids == config.pad_id).any()):
            raise ValueError("token_ids must be prompts of one length, (batch, n) with n of 1 or more, without padding.")
        if max_new_tokens < 1:
            raise ValueError(f"max_new_tokens must be 1 or more; got {max_new_tokens}.")
        with generation.writing(self):
            caches = [KeyValueCache(token_ids.shape[1] + max_new_tokens) for _ in self.stack.layers] if cache else None
            fed, everything = token_ids, token_ids
            written = token_ids.new_full((len(token_ids), max_new_tokens), config.pad_id)
            ended = torch.zeros(len(token_ids), dtype=torch.bool, device=token_ids.device)
            for i in range(max_new_tokens):
                logits = self._continue(fed, caches) if cache else self(everything)[:, -1]
                logits[:, config.pad_id] = float("-inf")
                token = generation.next_token(logits, temperature, top_k, top_p, generator).masked_fill(ended, config.pad_id)
                written[:, i] = token
                ended |= token == config.eos_id
                if ended.all():
                    written = written[:, : i + 1]
                    break
                # What follows EOS is never read; EOS stands in for padding, so that no row is masked as a whole.
                fed = token.masked_fill(ended, config.eos_id).unsqueeze(1)
                everything = torch.cat([everything, fed], dim=1)
        return written.clone()  # what inference mode makes could be neither changed nor trained on

    def _continue(self, token_ids: Tensor, caches: list[KeyValueCache]) -> Tensor:
        """Take in (batch, n) new tokens; logits (batch, vocab) of the next one."""
        start = caches[0].length
        x = self.embedding(token_ids, start=start)
        mask = causal_mask(token_ids.shape[1], start + token_ids.shape[1], device=x.device) if token_ids.shape[1] > 1 else None
        for layer, cache in zip(self.stack.layers, caches, strict=True):
            x = layer.around_attention(
                x, lambda x, layer=layer, cache=cache: layer.self_attention(x, mask=mask, cache=cache)
            )
            x = layer.around_feed_forward(x, layer.feed_forward)
        return F.linear(self.stack.norm(x[:, -1]), self.embedding.tokens.weight)


@dataclass(frozen=True)
class VisionTransformerConfig:
    """A ViT-style model. The defaults are a small one; ViT-B/16 is 224, 16, 768, 12, 3072, 12."""

    n_classes: int
    image_size: int = 32
    patch_size: int = 8
    channels: int = 3
    d_model: int = 64
    n_heads: int = 4
    d_ff: int = 256
    n_layers: int = 2
    dropout: float = 0.1

    def __post_init__(self) -> None:
        self.blocks()
        for name in ("n_classes", "image_size", "patch_size", "channels"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be 1 or more; got {getattr(self, name)}.")
        if self.image_size % self.patch_size:
            raise ValueError(f"patch_size must divide image_size = {self.image_size}; got {self.patch_size}.")

    @property
    def n_patches(self) -> int:
        """(image_size / patch_size)²; with CLS the model has one token more."""
        return (self.image_size // self.patch_size) ** 2

    def blocks(self) -> TransformerConfig:
        """The blocks that it is made of: Pre-LN with a last LayerNorm, GELU."""
        return _blocks(self, norm="pre", activation="gelu", positions="none", eps=1e-6)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class VisionTransformer(nn.Module):
    """ViT-style: an image is cut into patches, each becomes a token; CLS stands before them and tells the class. No mask."""

    def __init__(self, config: VisionTransformerConfig):
        super().__init__()
        self.config = config
        d, patch = config.d_model, config.channels * config.patch_size**2
        self.patch_embedding = nn.Linear(patch, d)
        self.cls = nn.Parameter(torch.zeros(1, 1, d))
        self.positions = nn.Parameter(torch.empty(config.n_patches + 1, d))
        self.dropout = nn.Dropout(config.dropout)
        self.encoder = Encoder(config.blocks())
        self.head = nn.Linear(d, config.n_classes)
        for table in (self.cls, self.positions):
            nn.init.normal_(table, std=0.02)

    def patches(self, images: Tensor) -> Tensor:
        """(batch, channels, size, size) -> (batch, n_patches, channels · p²), row by row from the upper left."""
        c = self.config
        if images.dim() != 4 or images.shape[1:] != (c.channels, c.image_size, c.image_size):
            expected = f"(batch, {c.channels}, {c.image_size}, {c.image_size})"
            raise ValueError(f"images must have shape {expected}; got {tuple(images.shape)}.")
        return F.unfold(images, kernel_size=c.patch_size, stride=c.patch_size).transpose(1, 2)

    def forward(self, images: Tensor, weights: list[Tensor] | None = None) -> Tensor:
        """(batch, channels, size, size) -> logits (batch, n_classes)."""
        x = self.patch_embedding(self.patches(images))
        x = torch.cat([self.cls.expand(len(x), -1, -1), x], dim=1)  # (batch, 1 + n_patches, d_model)
        x = self.encoder(self.dropout(x + self.positions), None, weights)
        return self.head(x[:, 0])

    def loss(self, images: Tensor, labels: Tensor) -> Tensor:
        """Cross-entropy of the classes ``labels`` (batch,)."""
        return F.cross_entropy(self(images), labels)


def _mean_loss(logits: Tensor, labels: Tensor, ignored: int) -> Tensor:
    """The mean over the labels that count; 0, not NaN, where none does."""
    total = F.cross_entropy(logits.flatten(0, 1), labels.flatten(), ignore_index=ignored, reduction="sum")
    return total / (labels != ignored).sum().clamp(min=1)


def _blocks(
    config: Any,
    norm: Literal["post", "pre"],
    activation: Literal["relu", "gelu"],
    positions: Literal["learned", "none"] = "learned",
    eps: float = 1e-5,
) -> TransformerConfig:
    """The paper's blocks in the sizes of a relative."""
    vocab, pad_id = getattr(config, "vocab", 3), getattr(config, "pad_id", 0)
    unused = (pad_id + 1) % vocab  # BOS and EOS of a relative that has none
    return TransformerConfig(
        source_vocab=vocab,
        d_model=config.d_model,
        n_heads=config.n_heads,
        d_ff=config.d_ff,
        n_layers=config.n_layers,
        dropout=config.dropout,
        norm=norm,
        activation=activation,
        positions=positions,
        max_positions=getattr(config, "max_positions", 1),
        eps=eps,
        pad_id=pad_id,
        bos_id=getattr(config, "bos_id", unused),
        eos_id=getattr(config, "eos_id", unused),
    )
