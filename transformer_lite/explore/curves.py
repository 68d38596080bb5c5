"""The curve of a training: loss and learning rate, step by step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from transformer_lite.explore.figures import COLOURS, Picture, new_figure, number, picture, style
from transformer_lite.language import current, message

ROWS = 10  # of the table: so many steps, evenly spread
SMOOTHED = 25  # steps that one point of the smoothed curve averages


def training_picture(rows: Sequence[Mapping[str, float]], lang: str | None = None) -> Picture:
    """Loss and learning rate of a training.

    Args:
        rows: one a step: ``step``, ``loss`` (nats per token, with label smoothing), ``learning_rate``, and ``dev_loss`` where
            the model was validated (without smoothing).
        lang: of the labels.

    Raises:
        ValueError: there is no step.
    """
    lang = lang or current()
    if not rows:
        raise ValueError("rows must hold at least one step; got none.")
    steps = np.array([row["step"] for row in rows])
    losses = np.array([row["loss"] for row in rows])
    rates = np.array([row["learning_rate"] for row in rows])
    checked = [(row["step"], row["dev_loss"]) for row in rows if "dev_loss" in row]
    width = min(SMOOTHED, len(losses))
    smooth = np.convolve(losses, np.ones(width) / width, mode="valid")  # each point is the mean of the steps up to it
    title = message("explore.curves.title", lang)
    with style():
        drawn = new_figure(860, 340)
        left, right = drawn.subplots(1, 2, width_ratios=[3, 2])
        left.plot(steps, losses, color=COLOURS[0], alpha=0.25, linewidth=0.8)
        left.plot(steps[width - 1 :], smooth, color=COLOURS[0], label=message("explore.curves.train", lang))
        if checked:
            left.plot(*zip(*checked, strict=True), "s--", color=COLOURS[1], label=message("explore.curves.dev", lang))
        left.set(xlabel=message("explore.curves.step", lang), ylabel=message("explore.curves.nats", lang), ylim=(0, None))
        left.legend(frameon=False)
        right.plot(steps, rates, color=COLOURS[2])
        right.set(xlabel=message("explore.curves.step", lang), title=message("explore.curves.rate", lang), ylim=(0, None))
        right.ticklabel_format(axis="y", style="sci", scilimits=(0, 0))
    header = [message(f"explore.curves.{name}", lang) for name in ("step", "train", "dev", "rate")]
    shown = sorted({*np.linspace(0, len(rows) - 1, min(ROWS, len(rows))).astype(int)})
    latest = dict(checked)
    table = [header]
    for i in shown:
        seen = [loss for step, loss in latest.items() if step <= steps[i]]
        near = losses[max(0, i - width + 1) : i + 1].mean()
        table.append([str(int(steps[i])), number(near), number(seen[-1]) if seen else "", f"{rates[i]:.1e}"])
    text = message("explore.curves.text", lang, first=number(losses[0]), last=number(smooth[-1]), steps=int(steps[-1]))
    return picture(drawn, title=title, table=table, text=text, lang=lang)
