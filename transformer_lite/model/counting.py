"""Parameters and multiply-adds of a configuration, and table 3 of the paper as data."""

from __future__ import annotations

from typing import NamedTuple

from torch import nn

from transformer_lite.model.config import TransformerConfig


def parameter_count(model: nn.Module) -> int:
    """The learned numbers of a module; shared matrices count once."""
    return sum(parameter.numel() for parameter in model.parameters())


def parameters_of(config: TransformerConfig) -> int:
    """The learned numbers of the Transformer that ``config`` describes, without building it."""
    c = config
    d_v = c.d_model // c.n_heads
    d_k = d_v if c.d_k is None else c.d_k
    queries_and_keys = 2 * c.n_heads * d_k * (c.d_model + c.bias)
    values = c.n_heads * d_v * (c.d_model + c.bias)
    output = c.d_model * (c.n_heads * d_v + c.bias)
    attention = queries_and_keys + values + output
    feed_forward = 2 * c.d_model * c.d_ff + c.d_ff + c.d_model
    norm = 2 * c.d_model
    encoder = c.n_layers * (attention + feed_forward + 2 * norm)
    decoder = c.decoder_layers * (2 * attention + feed_forward + 3 * norm)
    layers = encoder + decoder + c.has_final_norm * 2 * norm
    target_vocab = c.target_vocab or c.source_vocab
    tables = c.source_vocab + (0 if c.shared_vocabulary else target_vocab) + (0 if c.tied else target_vocab)
    learned_positions = (1 if c.shared_vocabulary else 2) * c.max_positions if c.positions == "learned" else 0
    return layers + (tables + learned_positions) * c.d_model


class Cost(NamedTuple):
    """Multiply-adds of one forward pass of one sentence pair, by term."""

    projections: int  # W^Q, W^K, W^V, W^O of all attentions
    scores: int  # queries times keys
    weighted_sum: int  # weights times values
    feed_forward: int
    output: int  # the projection to the vocabulary

    @property
    def total(self) -> int:
        return sum(self)


def forward_cost(config: TransformerConfig, n_source: int, n_target: int) -> Cost:
    """Multiply-adds of one forward pass (two floating-point operations each; a backward pass costs about twice as much).

    LayerNorm, softmax, activations and additions are left out: they grow with n · d only, or n² without a factor d.
    """
    c = config
    d_v = c.d_model // c.n_heads
    d_k = d_v if c.d_k is None else c.d_k
    wide_k, wide_v = c.n_heads * d_k, c.n_heads * d_v
    projections = scores = weighted = 0
    for n_layers, n_q, n_k in (
        (c.n_layers, n_source, n_source),
        (c.decoder_layers, n_target, n_target),
        (c.decoder_layers, n_target, n_source),
    ):
        projections += n_layers * c.d_model * (n_q + n_k) * (wide_k + wide_v)
        scores += n_layers * n_q * n_k * wide_k
        weighted += n_layers * n_q * n_k * wide_v
    feed_forward = 2 * c.d_model * c.d_ff * (c.n_layers * n_source + c.decoder_layers * n_target)
    vocab = c.target_vocab or c.source_vocab
    return Cost(projections, scores, weighted, feed_forward, n_target * c.d_model * vocab)


class Published(NamedTuple):
    """A row of table 3: what differs from the base model, and what was measured on the development set (newstest2013)."""

    row: str
    config: TransformerConfig
    steps: int
    label_smoothing: float
    perplexity: float
    bleu: float
    millions: int | None  # parameters; None where the table leaves it open (as the base model)


def _row(
    row: str,
    perplexity: float,
    bleu: float,
    millions: int | None = None,
    *,
    label_smoothing: float = 0.1,
    steps: int = 100_000,
    **changes: object,
) -> Published:
    return Published(row, TransformerConfig.base(bias=False, **changes), steps, label_smoothing, perplexity, bleu, millions)


TABLE_3 = (
    _row("base", 4.92, 25.8, 65),
    _row("A", 5.29, 24.9, n_heads=1),
    _row("A", 5.00, 25.5, n_heads=4),
    _row("A", 4.91, 25.8, n_heads=16),
    _row("A", 5.01, 25.4, n_heads=32),
    _row("B", 5.16, 25.1, 58, d_k=16),
    _row("B", 5.01, 25.4, 60, d_k=32),
    _row("C", 6.11, 23.7, 36, n_layers=2),
    _row("C", 5.19, 25.3, 50, n_layers=4),
    _row("C", 4.88, 25.5, 80, n_layers=8),
    _row("C", 5.75, 24.5, 28, d_model=256),
    _row("C", 4.66, 26.0, 168, d_model=1024),
    _row("C", 5.12, 25.4, 53, d_ff=1024),
    _row("C", 4.75, 26.2, 90, d_ff=4096),
    _row("D", 5.77, 24.6, dropout=0.0),
    _row("D", 4.95, 25.5, dropout=0.2),
    _row("D", 4.67, 25.3, label_smoothing=0.0),
    _row("D", 5.47, 25.7, label_smoothing=0.2),
    _row("E", 4.92, 25.7, positions="learned"),
    _row("big", 4.33, 26.4, 213, d_model=1024, d_ff=4096, n_heads=16, dropout=0.3, steps=300_000),
)
"""Table 3 of the paper (English-German, development set newstest2013, no checkpoint averaging, perplexity per word piece).

Two rows of section C change d_model with d_k = d_v = d_model / 8. The published counts fit a vocabulary of about 41,000 (the big
row: 36,000), not the 37,000 that the text names; computed ones therefore lie up to 7 % away.
"""
