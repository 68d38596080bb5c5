"""The paper in NumPy: one function per equation of Vaswani et al. 2017, "Attention Is All You Need".

This is the course's trusted reference. Arrays keep float64; leading batch axes are allowed; masks are Boolean, **True = may
attend**.
A row of a picture or matrix of attention is one query, a column one key.
"""

from transformer_lite.equations.attention import Attention, attention_scores, scaled_dot_product_attention, softmax
from transformer_lite.equations.guarding import ReferenceUsed, forbid
from transformer_lite.equations.influence import influence_matrix
from transformer_lite.equations.masks import causal_mask, padding_mask

__all__ = [
    "Attention",
    "ReferenceUsed",
    "attention_scores",
    "causal_mask",
    "forbid",
    "influence_matrix",
    "padding_mask",
    "scaled_dot_product_attention",
    "softmax",
]
