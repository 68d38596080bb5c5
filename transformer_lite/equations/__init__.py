"""The paper in NumPy: one function per equation of Vaswani et al. 2017, "Attention Is All You Need".

This is the course's trusted reference. Arrays keep float64; leading batch axes are allowed; masks are Boolean, **True = may
attend**. A row of a picture or matrix of attention is one query, a column one key.
"""

from transformer_lite.equations.attention import Attention, attention_scores, scaled_dot_product_attention, softmax
from transformer_lite.equations.blocked import blocked_attention
from transformer_lite.equations.counting import AttentionCost, LayerCost, attention_cost, layer_cost, parameter_count
from transformer_lite.equations.decoding import cached_decoding
from transformer_lite.equations.guarding import ReferenceUsed, forbid, seal
from transformer_lite.equations.heads import (
    Projections,
    cross_attention,
    merge_heads,
    multi_head_attention,
    self_attention,
    split_heads,
)
from transformer_lite.equations.influence import influence_matrix
from transformer_lite.equations.layers import DecoderParameters, EncoderParameters, decoder_layer, encoder_layer
from transformer_lite.equations.masks import causal_mask, padding_mask
from transformer_lite.equations.positions import embed, positional_encoding
from transformer_lite.equations.sublayers import add_and_norm, feed_forward, layer_norm
from transformer_lite.equations.training import label_smoothing, masked_cross_entropy, noam_learning_rate, shift_right

__all__ = [
    "Attention",
    "AttentionCost",
    "DecoderParameters",
    "EncoderParameters",
    "LayerCost",
    "Projections",
    "ReferenceUsed",
    "add_and_norm",
    "attention_cost",
    "attention_scores",
    "blocked_attention",
    "cached_decoding",
    "causal_mask",
    "cross_attention",
    "decoder_layer",
    "embed",
    "encoder_layer",
    "feed_forward",
    "forbid",
    "influence_matrix",
    "label_smoothing",
    "layer_cost",
    "layer_norm",
    "masked_cross_entropy",
    "merge_heads",
    "multi_head_attention",
    "noam_learning_rate",
    "padding_mask",
    "parameter_count",
    "positional_encoding",
    "scaled_dot_product_attention",
    "seal",
    "self_attention",
    "shift_right",
    "softmax",
    "split_heads",
]
