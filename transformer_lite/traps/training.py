"""Traps of training: SR1 to SR7 (shifted input), LS1 to LS6 (smoothed targets), CE1 to CE7 (loss), LR1 to LR8 (schedule)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family

PAD, EOS = 0, 2  # ids that people write into the program: those of the running example


def shifted(
    labels: ArrayLike,
    bos_id: int,
    *,
    by: int = 1,
    starts_with: int | str = "the start symbol",
    ends_with: int | str = "the start symbol",
    order: str = "forward",
    length: str = "as many as labels",
) -> tuple[NDArray]:
    """The decoder's input with knobs: shifted how far, started with what, and cut off or not.

    Args:
        by: places to the right; negative: to the left.
        starts_with: "the start symbol", "the last label" (as ``np.roll`` does) or an id.
        ends_with: what fills the place that a shift to the left leaves free: also "the last label" or "the first label".
        order: "forward", or "backward": labels from last to first.
        length: "as many as labels", or "more": nothing is cut off.
    """
    labels = np.asarray(labels)
    if order == "backward":
        labels = labels[..., ::-1]
    if by <= 0:
        moved = labels[..., -by:]
        filler = {"the start symbol": bos_id, "the last label": labels[..., -1:], "the first label": labels[..., :1]}.get(
            ends_with, ends_with
        )
        return (np.concatenate([moved, np.broadcast_to(filler, (*labels.shape[:-1], -by))], axis=-1),)
    if starts_with == "the last label":
        first = labels[..., -by:]
    else:
        first = np.broadcast_to(bos_id if starts_with == "the start symbol" else starts_with, (*labels.shape[:-1], by))
    kept = labels if length == "more" else labels[..., :-by]
    return (np.concatenate([first, kept], axis=-1),)


def smoothed(
    targets: ArrayLike, vocab_size: int, epsilon: float, *, gold: str = "1 − ε + ε/V", other: str = "ε/V"
) -> tuple[NDArray]:
    """Smoothed targets with two knobs: what the right token gets, and what every other gets."""
    e, v = epsilon, vocab_size
    values = {
        "1 − ε + ε/V": 1 - e + e / v,
        "1 − ε": 1 - e,
        "1": 1.0,
        "1 + ε": 1 + e,
        "1 + ε/V": 1 + e / v,
        "ε": e,
        "ε + (1 − ε)/V": e + (1 - e) / v,
        "1/V": 1 / v,
        "0": 0.0,
        "ε/V": e / v,
        "ε/(V − 1)": e / (v - 1),
        "(1 − ε)/V": (1 - e) / v,
        "(1 − ε)/(V − 1)": (1 - e) / (v - 1),
    }
    is_gold = np.arange(vocab_size) == np.asarray(targets)[..., np.newaxis]
    return (np.where(is_gold, values[gold], values[other]),)


def cross_entropy(
    logits: ArrayLike,
    targets: ArrayLike,
    real: ArrayLike,
    *,
    counted: str = "real",
    divided_by: str = "what is counted",
    of: str = "log softmax",
    sign: float = -1.0,
    base: float = np.e,
) -> tuple[NDArray]:
    """The loss with knobs: over which tokens, divided by what, of which numbers, with which sign and logarithm.

    Args:
        counted: "real" tokens or "all".
        divided_by: "what is counted", "all", "real" or "1".
        of: "log softmax", "log softmax of the softmax" or "logits".
    """
    logits, targets, real = np.asarray(logits, dtype=np.float64), np.asarray(targets), np.asarray(real, dtype=bool)
    numbers = logits if of == "logits" else _log_softmax(logits)
    if of == "log softmax of the softmax":
        numbers = _log_softmax(np.exp(numbers))
    at_target = np.take_along_axis(numbers, targets[..., np.newaxis], axis=-1)[..., 0] / np.log(base)
    chosen = np.ones_like(real) if counted == "all" else real
    count = {"all": real.size, "real": real.sum(), "1": 1}.get(divided_by, chosen.sum())
    return (np.asarray(sign * at_target[chosen].sum() / count),)


def _log_softmax(x: NDArray) -> NDArray:
    x = x - x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


def learning_rate(
    step: int,
    d_model: int,
    warmup: int = 4000,
    *,
    width: float = -0.5,
    slope: float = -1.5,
    falls: str = "with the root",
    takes: str = "the smaller",
) -> tuple[NDArray]:
    """The schedule with knobs: the power of d_model, how steeply it rises, how it falls, and how the two are put together.

    Args:
        width: the power of d_model.
        slope: the power of ``warmup`` in the rising part.
        falls: "with the root", "with the step" (1/step), "with the step, from the peak", "not at all", or "in a line" to 0 at
            step 100,000.
        takes: "the smaller" of the rising and the falling part, "the larger", or "the falling one" from the start.
    """
    rising = step * warmup**slope
    falling = {
        "with the root": step**-0.5,
        "with the step": step**-1.0,
        "with the step, from the peak": warmup**0.5 / step,
        "not at all": warmup**-0.5,
        "in a line": warmup**-0.5 * max(0.0, (100_000 - step) / (100_000 - warmup)),
    }[falls]
    taken = {"the smaller": min(rising, falling), "the larger": max(rising, falling), "the falling one": falling}[takes]
    return (np.asarray(float(d_model) ** width * taken),)


shift = Family.of(
    shifted,
    {
        "SR1": ({"by": 0},),
        "SR2": (
            {"by": -1},
            {"by": -1, "ends_with": "the last label"},
            {"by": -1, "ends_with": "the first label"},
            {"by": -1, "ends_with": PAD},
            {"by": -1, "ends_with": EOS},
        ),
        "SR3": ({"length": "more"},),
        "SR4": ({"starts_with": "the last label"}, {"starts_with": EOS}),
        "SR5": ({"starts_with": PAD},),
        "SR6": ({"order": "backward"}, {"order": "backward", "by": 0}),
        "SR7": ({"by": 2},),
    },
)

smoothing = Family.of(
    smoothed,
    {
        "LS1": ({"gold": "1", "other": "0"},),
        "LS2": ({"gold": "ε + (1 − ε)/V", "other": "(1 − ε)/V"}, {"gold": "ε", "other": "(1 − ε)/(V − 1)"}),
        "LS3": ({"gold": "1 + ε", "other": "ε"}, {"gold": "1", "other": "ε"}, {"gold": "1 + ε/V", "other": "ε/V"}),
        "LS4": ({"gold": "1 − ε", "other": "ε/(V − 1)"},),
        "LS5": ({"gold": "1 − ε", "other": "0"},),
        "LS6": ({"gold": "1/V", "other": "1/V"},),
    },
)
# The right token's share and everyone else's are one decision, and so no two of these mistakes can be made at once.

loss = Family.of(
    cross_entropy,
    {
        "CE1": ({"counted": "all"}, {"counted": "all", "divided_by": "real"}),
        "CE2": ({"divided_by": "all"},),
        "CE3": ({"divided_by": "1"},),
        "CE4": ({"of": "log softmax of the softmax"},),
        "CE5": ({"sign": 1.0},),
        "CE6": ({"base": 2.0},),
        "CE7": ({"of": "logits"},),
    },
)

schedule = Family.of(
    learning_rate,
    {
        "LR1": ({"takes": "the falling one"},),
        "LR2": ({"takes": "the larger"},),
        "LR3": ({"falls": "not at all"},),
        "LR4": ({"falls": "with the step"}, {"falls": "with the step, from the peak"}),
        "LR5": ({"width": 0.5},),
        "LR6": ({"slope": -0.5},),
        "LR7": ({"falls": "in a line"},),
        "LR8": ({"width": 0.0},),
    },
)
