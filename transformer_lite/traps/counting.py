"""Traps of counting: PC1 to PC8 (parameters), CO1 to CO3 (multiply-adds)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from transformer_lite.traps.knobs import Family

FORMS = {
    "n² · d": lambda n, d: n * n * d,
    "n · d": lambda n, d: n * d,
    "n · d²": lambda n, d: n * d * d,
    "n³ · d": lambda n, d: n**3 * d,
    "n³": lambda n, d: n**3,
}


def parameters(
    d_model: int,
    d_ff: int,
    n_layers: int,
    vocab_size: int,
    n_heads: int = 8,
    d_k: int | None = None,
    biases: bool = True,
    *,
    output_projection: str = "there",
    per_head: str = "d_model / h",
    decoder: str = "two attentions",
    feed_forward: str = "two matrices",
    tables: int = 1,
    positions: int = 0,
    norms: int = 5,
    norm_vectors: int = 2,
    attention_biases: bool = True,
    feed_forward_biases: bool = True,
) -> tuple[NDArray]:
    """The number of parameters with knobs: what is forgotten, and what is counted too often.

    Args:
        output_projection: of every attention: "there", "forgotten", or forgotten "but for its bias".
        per_head: how wide a head is thought to be: "d_model / h", or "d_model" in "all four" matrices, in the "matrices only"
            (not in the biases), or in "all but the output" projection.
        decoder: "two attentions", "one attention" or "one attention, three norms".
        feed_forward: "two matrices", or "one matrix" with both biases, with the "outer bias" or with the "inner bias".
        tables: how many embedding tables (and output projections) there are.
        positions: rows of a table of positional encodings.
        norms: in an encoder and a decoder layer together.
        norm_vectors: of a norm: 2 = gain and bias.
    """
    d_v = d_model // n_heads
    d_k = d_v if d_k is None else d_k
    bias = int(biases and attention_biases)
    times = {"d_model / h": (1, 1, 1), "all four": (n_heads,) * 3, "matrices only": (n_heads, 1, n_heads)}.get(
        per_head, (n_heads, n_heads, 1)
    )  # how often the heads multiply: the matrices of Q, K, V; their biases; the matrix of the output
    into = d_model * n_heads * (2 * d_k + d_v) * times[0] + bias * n_heads * (2 * d_k + d_v) * times[1]
    out_bias = bias * d_model * (n_heads if per_head == "all four" else 1)
    out = {"there": d_model * n_heads * d_v * times[2] + out_bias, "forgotten": 0}.get(output_projection, out_bias)
    attentions = 3 if decoder == "two attentions" else 2
    counted_norms = norms - (decoder == "one attention" and norms > 0)
    inner = {
        "two matrices": 2 * d_model * d_ff + feed_forward_biases * (d_ff + d_model),
        "one matrix": d_model * d_ff + feed_forward_biases * (d_ff + d_model),
        "outer bias": d_model * d_ff + feed_forward_biases * d_model,
        "inner bias": d_model * d_ff + feed_forward_biases * d_ff,
    }[feed_forward]
    layers = attentions * (into + out) + 2 * inner + counted_norms * norm_vectors * d_model
    return (np.asarray(n_layers * layers + tables * vocab_size * d_model + positions * d_model),)


def attention_terms(n: int, d_model: int, *, scores: str = "n² · d", weighted_sum: str = "n² · d") -> tuple[NDArray, NDArray]:
    """The two terms of attention with a knob each: which power of n and d."""
    return np.asarray(FORMS[scores](n, d_model)), np.asarray(FORMS[weighted_sum](n, d_model))


def layer_terms(
    n: int, d_model: int, d_ff: int, *, scores: str = "n² · d", weighted_sum: str = "n² · d"
) -> tuple[NDArray, NDArray, NDArray, NDArray]:
    """The four terms of an encoder layer, with the knobs of `attention_terms`."""
    terms = attention_terms(n, d_model, scores=scores, weighted_sum=weighted_sum)
    return np.asarray(4 * n * d_model**2), *terms, np.asarray(2 * n * d_model * d_ff)


count = Family.of(
    parameters,
    {
        "PC1": ({"output_projection": "forgotten"}, {"output_projection": "but for its bias"}),
        "PC2": ({"per_head": "all four"}, {"per_head": "matrices only"}, {"per_head": "all but the output"}),
        "PC3": ({"decoder": "one attention"}, {"decoder": "one attention, three norms"}),
        "PC4": ({"feed_forward": "one matrix"}, {"feed_forward": "outer bias"}, {"feed_forward": "inner bias"}),
        "PC5": ({"tables": 3},),
        "PC6": ({"positions": 5000}, {"positions": 10_000}, {"positions": 512}, {"positions": 1024}),
        "PC7": ({"norms": 0},),
        "PC8": (
            {"attention_biases": False},
            {"feed_forward_biases": False},
            {"attention_biases": False, "feed_forward_biases": False},
            {"attention_biases": False, "feed_forward_biases": False, "norm_vectors": 1},
        ),
    },
)


def _in_either(form: str) -> tuple[dict[str, str], ...]:
    """The wrong form in both terms, or in one of them."""
    return {"scores": form, "weighted_sum": form}, {"scores": form}, {"weighted_sum": form}


_COSTS = {
    "CO1": _in_either("n · d"),
    "CO2": _in_either("n · d²"),
    "CO3": (*_in_either("n³ · d"), *_in_either("n³")),
}
attention_cost = Family.of(attention_terms, _COSTS)
layer_cost = Family.of(layer_terms, _COSTS)
