"""The whole Transformer in one picture, with the chapter that treats each part: a map of the course."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, NamedTuple

from transformer_lite.explore import figures
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes


class Part(NamedTuple):
    """One box: its words in the catalogue, the chapters that treat it, its stack, its place from the bottom, whether it mixes."""

    name: str
    chapters: tuple[int, ...]
    stack: str  # "encoder" or "decoder"
    height: float
    mixes: bool = False  # whether positions exchange something here


PARTS = (
    Part("source", (), "encoder", 0.0),
    Part("embedding", (6,), "encoder", 1.0),
    Part("self_attention", (2, 3, 5), "encoder", 2.4, mixes=True),
    Part("add_norm", (7,), "encoder", 3.3),
    Part("feed_forward", (7,), "encoder", 4.4),
    Part("add_norm", (7,), "encoder", 5.3),
    Part("target", (9,), "decoder", 0.0),
    Part("embedding", (6,), "decoder", 1.0),
    Part("masked_self_attention", (2, 4, 5), "decoder", 2.4, mixes=True),
    Part("add_norm", (7,), "decoder", 3.3),
    Part("cross_attention", (2, 3, 5), "decoder", 4.4, mixes=True),
    Part("add_norm", (7,), "decoder", 5.3),
    Part("feed_forward", (7,), "decoder", 6.4),
    Part("add_norm", (7,), "decoder", 7.3),
    Part("output", (8,), "decoder", 8.6),
    Part("next_word", (10,), "decoder", 9.5),
)
CENTRES = {"encoder": 2.2, "decoder": 8.5}
HALF_WIDTH, HALF_HEIGHT = 1.95, 0.32
PLAIN, MIXING = "#f4f4f4", "#cfe6f5"


def whole_model(lang: str | None = None) -> figures.Picture:
    """Draw encoder and decoder from the input to the next word; every box names its chapter.

    Boxes with a thick edge are those in which positions exchange something: the three attentions. Everything else treats each
    position by itself.

    Source: Vaswani et al. 2017, §3 and Figure 1 (drawn anew).
    """
    lang = lang or current()
    with figures.style():
        drawn = figures.new_figure(860, 720)
        axes = drawn.subplots()
        axes.set_xlim(-0.7, 11.4)
        axes.set_ylim(-0.3, 9.8)
        axes.axis("off")
        _frames(axes, lang)
        for part in PARTS:
            _box(axes, part, lang)
        _arrows(axes, lang)
        title = _say("title", lang)
        axes.set_title(title, fontsize=12)
        table = [[_say(f"column_{name}", lang) for name in ("stack", "part", "chapter", "mixes")]]
        for part in PARTS:
            chapters = ", ".join(map(str, part.chapters)) or "–"
            mixing = _say("yes" if part.mixes else "no", lang)
            table.append([_say(part.stack, lang), _say(part.name, lang), chapters, mixing])
        return figures.picture(drawn, title=title, table=table, text=_say("note", lang), lang=lang)


def _say(key: str, lang: str, **details: object) -> str:
    return message(f"explore.whole_model.{key}", lang, **details)


def _label(part: Part, lang: str) -> str:
    name = _say(part.name, lang)
    if not part.chapters:
        return name
    return f"{name}  {_say('chapters', lang, numbers=', '.join(map(str, part.chapters)))}"


def _box(axes: Axes, part: Part, lang: str) -> None:
    from matplotlib.patches import FancyBboxPatch

    x = CENTRES[part.stack]
    ends = part.name in ("source", "target", "next_word")
    if not ends:
        axes.add_patch(
            FancyBboxPatch(
                (x - HALF_WIDTH, part.height - HALF_HEIGHT),
                2 * HALF_WIDTH,
                2 * HALF_HEIGHT,
                boxstyle="round,pad=0.02,rounding_size=0.08",
                facecolor=MIXING if part.mixes else PLAIN,
                edgecolor=figures.COLOURS[0] if part.mixes else "#555555",
                linewidth=2.6 if part.mixes else 1.0,
            )
        )
    axes.text(x, part.height, _label(part, lang), ha="center", va="center", size=9.5)


def _frames(axes: Axes, lang: str) -> None:
    """A dashed frame around what is repeated N = 6 times."""
    from matplotlib.patches import Rectangle

    for stack, top in (("encoder", 5.3), ("decoder", 7.3)):
        x = CENTRES[stack]
        low, high = 2.4 - 0.62, top + 0.62
        style = {"fill": False, "edgecolor": "#777777", "linestyle": "--", "linewidth": 1.2}
        axes.add_patch(Rectangle((x - 2.25, low), 4.5, high - low, **style))
        outside, side = (-2.35, "right") if stack == "encoder" else (2.35, "left")
        axes.text(x + outside, (low + high) / 2, "× 6", ha=side, va="center", size=12)
        axes.text(x - 2.25, high + 0.08, _say(stack, lang), ha="left", va="bottom", size=11)


def _arrows(axes: Axes, lang: str) -> None:
    def arrow(start: tuple[float, float], end: tuple[float, float]) -> None:
        axes.annotate(
            "", end, start, arrowprops={"arrowstyle": "-|>", "color": "black", "linewidth": 1.3, "shrinkA": 0, "shrinkB": 0}
        )

    for stack in CENTRES:
        heights = [part.height for part in PARTS if part.stack == stack]
        for low, high in itertools.pairwise(heights):
            arrow((CENTRES[stack], low + HALF_HEIGHT + 0.03), (CENTRES[stack], high - HALF_HEIGHT - 0.03))
    # The encoder's output goes to the cross-attention of every decoder layer.
    x, top, across = CENTRES["encoder"], 5.3, CENTRES["decoder"] - HALF_WIDTH
    across_at = sum(CENTRES.values()) / 2
    axes.plot([x + HALF_WIDTH + 0.02, across_at, across_at], [top, top, 4.4], color="black", linewidth=1.3)
    arrow((across_at, 4.4), (across - 0.03, 4.4))
    axes.text(across_at, top + 0.12, _say("memory", lang), ha="center", va="bottom", size=9)
