"""Which family of traps belongs to which exercise."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite import equations
from transformer_lite.traps import attention, counting, decoding, heads, masks, norms, positions, softmax, sublayers, training
from transformer_lite.traps.knobs import Family


def _influence(function: Any, x: NDArray) -> tuple[NDArray[np.bool_]]:
    return (equations.influence_matrix(function, x),)


_FAMILIES = {
    "influence_matrix": Family.of(_influence, {}),  # the course's own tool: nothing in the catalogue is about it
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
