"""The sizes and choices of a Transformer: table 3 of the paper is a list of such configurations."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

Norm = Literal["post", "pre"]
Activation = Literal["relu", "gelu"]
Positions = Literal["sinusoidal", "learned", "none"]


@dataclass(frozen=True)
class TransformerConfig:
    """An encoder-decoder Transformer, in the paper's symbols. The defaults are the paper's base model.

    Attributes:
        source_vocab: V, tokens of the source.
        target_vocab: tokens of the target; None: one vocabulary, and so one embedding table, for both.
        d_model: width of every sub-layer's output.
        n_heads: h.
        d_ff: inner width of the feed-forward network.
        n_layers: N, in the encoder and in the decoder each.
        n_decoder_layers: another number of layers in the decoder; None: as many as in the encoder, as in the paper.
        dropout: P_drop, on each sub-layer's output and on embedding + position.
        d_k: width of a head's queries and keys; d_model / h if None. Values keep d_model / h.
        norm: "post" as in the paper, LayerNorm(x + Sublayer(x)), or "pre", x + Sublayer(LayerNorm(x)).
        final_norm: a LayerNorm after each stack; None: with "pre", which needs one, and not with "post", as in the paper.
        activation: of the feed-forward network; the paper's is "relu".
        positions: "sinusoidal" as in the paper, "learned", or "none".
        max_positions: how many learned positions there are; sinusoids are computed as far as they are needed.
        tied: the output projection is the target's embedding table, as in the paper; else a matrix of its own.
        bias: whether attention projections have biases, as in PyTorch; the paper writes none.
        eps: of LayerNorm.
        pad_id, bos_id, eos_id: the tokens that fill up, open and close a sentence; only the last two may be the same one.

    Source: Vaswani et al. 2017, §3 and table 3.
    """

    source_vocab: int = 37_000
    target_vocab: int | None = None
    d_model: int = 512
    n_heads: int = 8
    d_ff: int = 2048
    n_layers: int = 6
    dropout: float = 0.1
    d_k: int | None = None
    norm: Norm = "post"
    final_norm: bool | None = None
    activation: Activation = "relu"
    positions: Positions = "sinusoidal"
    max_positions: int = 1024
    tied: bool = True
    bias: bool = True
    eps: float = 1e-5
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2
    n_decoder_layers: int | None = None

    def __post_init__(self) -> None:
        for name in ("source_vocab", "d_model", "n_heads", "d_ff", "n_layers", "max_positions"):
            _positive(name, getattr(self, name))
        for name in ("target_vocab", "d_k", "n_decoder_layers"):
            if getattr(self, name) is not None:
                _positive(name, getattr(self, name))
        if self.d_model % self.n_heads:
            raise ValueError(f"n_heads must divide d_model = {self.d_model}; got {self.n_heads}.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout must be at least 0 and less than 1; got {self.dropout}.")
        if self.eps <= 0:
            raise ValueError(f"eps must be greater than 0; got {self.eps}.")
        _one_of("norm", self.norm, ("post", "pre"))
        _one_of("activation", self.activation, ("relu", "gelu"))
        _one_of("positions", self.positions, ("sinusoidal", "learned", "none"))
        if self.positions == "sinusoidal" and self.d_model % 2:
            raise ValueError(f"d_model must be even for sinusoidal positions, which come in pairs; got {self.d_model}.")
        smallest = min(self.source_vocab, self.target_vocab or self.source_vocab)
        for name in ("pad_id", "bos_id", "eos_id"):
            if not 0 <= getattr(self, name) < smallest:
                raise ValueError(f"{name} must be one of the {smallest} tokens, 0 to {smallest - 1}; got {getattr(self, name)}.")
        own_padding(self.pad_id, self.bos_id, self.eos_id)

    @classmethod
    def base(cls, vocab: int = 37_000, **changes: Any) -> Self:
        """The paper's base model: N = 6, d_model = 512, d_ff = 2048, h = 8, P_drop = 0.1."""
        return cls(**{"source_vocab": vocab} | changes)

    @classmethod
    def big(cls, vocab: int = 37_000, **changes: Any) -> Self:
        """The paper's big model: N = 6, d_model = 1024, d_ff = 4096, h = 16, P_drop = 0.3 (0.1 for English-French)."""
        big = {"source_vocab": vocab, "d_model": 1024, "d_ff": 4096, "n_heads": 16, "dropout": 0.3}
        return cls(**big | changes)

    @property
    def shared_vocabulary(self) -> bool:
        """Whether source and target share one embedding table."""
        return self.target_vocab is None

    @property
    def decoder_layers(self) -> int:
        """How many layers the decoder has."""
        return self.n_layers if self.n_decoder_layers is None else self.n_decoder_layers

    @property
    def has_final_norm(self) -> bool:
        """Whether a LayerNorm follows each stack."""
        return self.norm == "pre" if self.final_norm is None else self.final_norm

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


def _positive(name: str, size: Any) -> None:
    if not isinstance(size, int) or isinstance(size, bool) or size < 1:
        raise ValueError(f"{name} must be a whole number, 1 or more; got {size!r}.")


def own_padding(pad_id: int, bos_id: int, eos_id: int) -> None:
    """Padding is hidden and never written: a BOS of the same number would be hidden with it, such an EOS never be written."""
    for name, token in (("bos_id", bos_id), ("eos_id", eos_id)):
        if token == pad_id:
            raise ValueError(f"{name} must differ from pad_id, which is hidden by the masks and never written; both are {token}.")


def _one_of(name: str, given: Any, choices: tuple[str, ...]) -> None:
    if given not in choices:
        raise ValueError(f"{name} must be one of {', '.join(map(repr, choices))}; got {given!r}.")
