"""Which family of traps belongs to which exercise."""

from __future__ import annotations

from transformer_lite.traps import attention, counting, decoding, heads, masks, norms, positions, softmax, sublayers, training
from transformer_lite.traps.knobs import Family

_FAMILIES = {
    "softmax": softmax.family,
    "attention_scores": attention.scores_only,
    "attention": attention.without_mask,
    "causal_mask": masks.family,
    "scaled_dot_product_attention": attention.family,
    "self_attention": heads.self_family,
    "cross_attention": heads.cross_family,
    "padding_mask": heads.padding_family,
    "split_heads": heads.split_family,
    "merge_heads": heads.merge_family,
    "multi_head_attention": heads.multi_family,
    "positional_encoding": positions.encoding_family,
    "embed": positions.embedding_family,
    "layer_norm": norms.family,
    "feed_forward": sublayers.feed_forward_family,
    "add_and_norm": sublayers.add_and_norm_family,
    "encoder_layer": sublayers.encoder_family,
    "decoder_layer": sublayers.decoder_family,
    "shift_right": training.shift,
    "label_smoothing": training.smoothing,
    "masked_cross_entropy": training.loss,
    "noam_learning_rate": training.schedule,
    "cached_decoding": decoding.family,
    "parameter_count": counting.count,
    "attention_cost": counting.attention_cost,
    "layer_cost": counting.layer_cost,
}


def family(exercise_id: str) -> Family:
    """The traps of an exercise; ``KeyError`` for an exercise that has none."""
    return _FAMILIES[exercise_id]
