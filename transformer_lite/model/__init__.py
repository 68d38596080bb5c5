"""The Transformer in PyTorch: the paper's components, written to be held beside it, on the fast path where nobody looks inside.

Batch first. Masks are Boolean, True = may attend, without head axis: (n_q, n_k) or (batch, n_q or 1, n_k).
"""

from transformer_lite.model.attention import (
    CAUSAL,
    KeyValueCache,
    MultiHeadAttention,
    causal_mask,
    padding_mask,
    scaled_dot_product_attention,
)
from transformer_lite.model.config import TransformerConfig
from transformer_lite.model.devices import device, to_device
from transformer_lite.model.embedding import LearnedPositions, SinusoidalPositions, TokenEmbedding, sinusoids
from transformer_lite.model.layers import AddAndNorm, Decoder, DecoderLayer, Encoder, EncoderLayer, FeedForward
from transformer_lite.model.transformer import Transformer, Weights

__all__ = [
    "CAUSAL",
    "AddAndNorm",
    "Decoder",
    "DecoderLayer",
    "Encoder",
    "EncoderLayer",
    "FeedForward",
    "KeyValueCache",
    "LearnedPositions",
    "MultiHeadAttention",
    "SinusoidalPositions",
    "TokenEmbedding",
    "Transformer",
    "TransformerConfig",
    "Weights",
    "causal_mask",
    "device",
    "padding_mask",
    "scaled_dot_product_attention",
    "sinusoids",
    "to_device",
]
