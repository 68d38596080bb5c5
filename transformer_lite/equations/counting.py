"""Counting parameters and multiply-adds: tables 1 and 3 of the paper."""

from __future__ import annotations

from typing import NamedTuple

from transformer_lite.equations.guarding import reference


class AttentionCost(NamedTuple):
    """Multiply-adds of one attention over n tokens, by term."""

    scores: int  # n² · d: every query with every key
    weighted_sum: int  # n² · d: weights times values


class LayerCost(NamedTuple):
    """Multiply-adds of one encoder layer over n tokens, by term."""

    projections: int  # 4 · n · d²: W^Q, W^K, W^V, W^O
    scores: int  # n² · d
    weighted_sum: int  # n² · d
    feed_forward: int  # 2 · n · d · d_ff


@reference
def parameter_count(
    d_model: int,
    d_ff: int,
    n_layers: int,
    vocab_size: int,
    n_heads: int = 8,
    d_k: int | None = None,
    biases: bool = True,
) -> int:
    """Count the learned numbers of an encoder-decoder Transformer with one shared embedding table.

    A decoder layer has two attentions, an encoder layer one; both embeddings and the output projection share one table;
    the sinusoidal encoding has no parameters. The number of heads alone changes nothing: h · d_k stays d_model.

    Args:
        d_model: width.
        d_ff: inner width of the feed-forward network.
        n_layers: N, in the encoder and in the decoder each.
        vocab_size: V, shared.
        n_heads: h.
        d_k: width of a head's queries and keys; d_model / h if None. Values keep d_model / h.
        biases: whether the attention projections have biases, as in PyTorch; the paper writes none.

    Returns:
        The count; 63,082,496 for the base model with V = 37,000 (63,045,632 without attention biases).

    Raises:
        ValueError: a size below 1, or ``n_heads`` does not divide ``d_model``.

    Source: Vaswani et al. 2017, §3 and table 3 (whose published counts fit a somewhat larger vocabulary).
    """
    _positive(d_model=d_model, d_ff=d_ff, n_layers=n_layers, vocab_size=vocab_size, n_heads=n_heads)
    if d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model = {d_model}; got {n_heads}.")
    d_v = d_model // n_heads
    d_k = d_v if d_k is None else d_k
    _positive(d_k=d_k)
    queries_and_keys = 2 * (d_model * n_heads * d_k + biases * n_heads * d_k)
    values_and_output = 2 * (d_model * n_heads * d_v + biases * d_model)
    attention = queries_and_keys + values_and_output
    feed_forward = 2 * d_model * d_ff + d_ff + d_model
    norm = 2 * d_model
    encoder = attention + feed_forward + 2 * norm
    decoder = 2 * attention + feed_forward + 3 * norm
    return n_layers * (encoder + decoder) + vocab_size * d_model


@reference
def attention_cost(n: int, d_model: int) -> AttentionCost:
    """Multiply-adds of self-attention over ``n`` tokens, all heads together, without the projections: O(n² · d).

    Args:
        n: number of tokens.
        d_model: width; the number of heads does not matter, since h · d_k = d_model.

    Returns:
        `AttentionCost`, both terms n² · d_model.

    Raises:
        ValueError: a size below 1.

    Source: Vaswani et al. 2017, §4, table 1.
    """
    _positive(n=n, d_model=d_model)
    return AttentionCost(n * n * d_model, n * n * d_model)


@reference
def layer_cost(n: int, d_model: int, d_ff: int) -> LayerCost:
    """Multiply-adds of one encoder layer over ``n`` tokens, by term; only two of the four grow with n².

    Args:
        n: number of tokens.
        d_model: width.
        d_ff: inner width of the feed-forward network.

    Returns:
        `LayerCost`.

    Raises:
        ValueError: a size below 1.

    Source: Vaswani et al. 2017, §3.2, §3.3 and table 1.
    """
    _positive(n=n, d_model=d_model, d_ff=d_ff)
    return LayerCost(4 * n * d_model**2, *attention_cost(n, d_model), 2 * n * d_model * d_ff)


def _positive(**sizes: int) -> None:
    for name, size in sizes.items():
        if size < 1:
            raise ValueError(f"{name} must be 1 or more; got {size}.")
