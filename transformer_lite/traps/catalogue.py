"""Which family of traps belongs to which exercise."""

from __future__ import annotations

from transformer_lite.traps import attention, masks, softmax
from transformer_lite.traps.knobs import Family

_FAMILIES = {
    "softmax": softmax.family,
    "attention_scores": attention.scores_only,
    "attention": attention.without_mask,
    "causal_mask": masks.family,
    "scaled_dot_product_attention": attention.family,
}


def family(exercise_id: str) -> Family:
    """The traps of an exercise; ``KeyError`` for an exercise that has none."""
    return _FAMILIES[exercise_id]
