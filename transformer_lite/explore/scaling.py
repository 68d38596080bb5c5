"""The d_k slider: what the division by √d_k does to scores, weights, entropy and gradient (section 3.2.1 and its footnote 4)."""

from __future__ import annotations

import html
import io
from contextlib import nullcontext
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from transformer_lite.equations import softmax
from transformer_lite.explore import figures
from transformer_lite.explore.controls import static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.explore.maths import LARGEST_D_K, N_DRAWS, N_KEYS, score_world
from transformer_lite.language import check_language, message

if TYPE_CHECKING:
    from matplotlib.figure import Figure

START = (512, False)  # the surprise: one weight near 1
WIDTH = 840  # pixels: what a cell of JupyterLab shows without shrinking it
EXAMPLE = 0  # which of the random queries is drawn
CURVE = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)
PRESETS = {"one": (1, False), "head": (64, True), "forgotten": (64, False)}
_SCORE_EDGES = np.arange(-71.0, 72.0, 2.0)
_SHADES = {True: figures.COLOURS[0], False: figures.COLOURS[1]}


def explorer(lang: str) -> Any:
    """The d_k slider: how scores, weights, entropy and gradient change with d_k, with and without the division by √d_k.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    return picture(lang) if static() else bench(lang)


class Stage:
    """One figure whose axes and curves are drawn once; `png` redraws only what moves (blitting)."""

    def __init__(self, lang: str) -> None:
        self.lang = lang
        with figures.style():
            self.figure = self._draw_still()
            self.canvas = self.figure.canvas
            self.figure.draw_without_rendering()
            self.figure.set_layout_engine("none")  # the layout is settled; moving things must not change it
            self.canvas.draw()
            self.still = self.canvas.copy_from_bbox(self.figure.bbox)

    def _draw_still(self) -> Figure:
        say = lambda key: message(f"explore.scaling.{key}", self.lang)  # noqa: E731
        figure = figures.new_figure(WIDTH, 410)
        (scores, weights), (entropy, gradient) = figure.subplots(2, 2)
        scores.set(xlim=(-72, 72), xlabel=say("score"), ylabel=say("share"), title=say("histogram"))
        weights.set(xlim=(0.4, N_KEYS + 0.6), xticks=range(1, N_KEYS + 1))
        for axes, top in ((scores, 1.4), (weights, 1.15)):
            axes.set(ylim=(0, top), yticks=[0, 0.5, 1])
        weights.set(xlabel=say("key"), ylabel=say("weight"), title=say("weights"))
        for axes, name, unit, legend in ((entropy, "entropy", "nats", None), (gradient, "gradient", "norm", "lower left")):
            series = {
                say(mode): [getattr(_statistics(d_k, mode == "scaled"), name) for d_k in CURVE] for mode in ("scaled", "unscaled")
            }
            figures.draw_lines(axes, figures.Lines(CURVE, series, say(name), say("d_k"), say(unit), log_x=True), legend)
        entropy.axhline(np.log(N_KEYS), color="#555555", linewidth=1, linestyle=":")
        entropy.text(1, np.log(N_KEYS) + 0.04, say("uniform"), size=9, va="bottom")
        entropy.set_ylim(0, 2.65)
        gradient.set_ylim(0, 0.45)

        edges = _SCORE_EDGES
        self.histogram = scores.stairs(np.zeros(len(edges) - 1), edges, fill=True)
        self.deviation = scores.text(0.98, 0.97, "", transform=scores.transAxes, ha="right", va="top")
        self.bars = weights.bar(range(1, N_KEYS + 1), np.zeros(N_KEYS)).patches
        # Digits need no Japanese font and no parsing for $maths$; without both they draw twice as fast.
        plain = {"family": figures.PLAIN_FONT, "parse_math": False, "size": 9}
        self.numbers = [weights.text(i, 0, "", ha="center", va="bottom", **plain) for i in range(1, N_KEYS + 1)]
        ring = {"markersize": 13, "fillstyle": "none", "markeredgewidth": 2.5, "color": "black", "clip_on": False}
        self.points = [axes.plot([1], [0], "o", **ring)[0] for axes in (entropy, gradient)]
        self.rules = [axes.axvline(1, color="black", linewidth=1) for axes in (entropy, gradient)]
        self.moving = [self.histogram, self.deviation, *self.bars, *self.numbers, *self.rules, *self.points]
        for artist in self.moving:
            artist.set_animated(True)
        return figure

    def png(self, d_k: int, scaled: bool) -> bytes:
        """The picture at one state, as PNG."""
        world, shade = score_world(), _SHADES[scaled]
        scores = world.scores(d_k, scaled)
        counts, _ = np.histogram(scores, _SCORE_EDGES)
        self.histogram.set_data(counts / counts.max())
        self.histogram.set_facecolor(shade)
        self.deviation.set_text(message("explore.scaling.deviation", self.lang, value=number(float(scores.std()))))
        for bar, label, weight in zip(self.bars, self.numbers, softmax(scores[EXAMPLE]), strict=True):
            bar.set_height(weight)
            bar.set_facecolor(shade)
            label.set_y(weight)
            label.set_text(number(float(weight)) if weight >= 0.005 else "")  # text is the slow part; no bar says 0 too
        now = _statistics(d_k, scaled)
        for point, rule, value in zip(self.points, self.rules, (now.entropy, now.gradient), strict=True):
            point.set_data([d_k], [value])
            rule.set_xdata([d_k, d_k])

        # Fonts and colours were settled when the artists were made; without a Japanese font, style() keeps the warnings away.
        with figures.style() if figures.font_trouble() else nullcontext():
            self.canvas.restore_region(self.still)
            for artist in self.moving:
                artist.axes.draw_artist(artist)
        return _encode(np.asarray(self.canvas.buffer_rgba()))


def _encode(rgba: np.ndarray) -> bytes:
    """PNG fast rather than small: this runs at every step of the slider."""
    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(rgba).convert("RGB").save(buffer, "PNG", compress_level=1)
    return buffer.getvalue()


@cache
def _statistics(d_k: int, scaled: bool) -> Any:
    return score_world().statistics(d_k, scaled)


def twin(d_k: int, scaled: bool, lang: str) -> tuple[str, list[list[str]], str]:
    """Caption, table (unscaled beside scaled) and sentence of one state."""
    modes = (message(f"explore.scaling.{mode}", lang) for mode in ("unscaled", "scaled"))
    rows = [[message("explore.scaling.column.what", lang), *modes]]
    both = [_statistics(d_k, mode) for mode in (False, True)]
    for name in ("variance", "deviation", "largest", "entropy", "gradient"):
        digits = 3 if name == "gradient" else 2
        rows.append([message(f"explore.scaling.row.{name}", lang), *(number(getattr(one, name), digits) for one in both)])
    drawn = [float(softmax(score_world().scores(d_k, mode)[EXAMPLE]).max()) for mode in (False, True)]
    rows.append([message("explore.scaling.row.example", lang), *(number(value) for value in drawn)])
    now = both[int(scaled)]
    text = message(
        "explore.scaling.text",
        lang,
        d_k=d_k,
        mode=message(f"explore.scaling.{'scaled' if scaled else 'unscaled'}", lang),
        deviation=number(now.deviation),
        largest=number(now.largest),
        entropy=number(now.entropy),
        gradient=number(now.gradient, 3),
    )
    return message("explore.scaling.table", lang, d_k=d_k, draws=N_DRAWS), rows, text


def picture(lang: str, d_k: int = START[0], scaled: bool = START[1]) -> Picture:
    """The explorer at one state, without controls."""
    check_language(lang)
    caption, table, text = twin(d_k, scaled, lang)
    return Picture(Stage(lang).png(d_k, scaled), f"{message('explore.scaling.title', lang)} — {caption}", table, text, lang)


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither ipywidgets nor matplotlib."""
    import ipywidgets as w

    from transformer_lite.explore.controls import guard

    class ScalingBench(w.VBox):
        """``d_k`` (1 to 512) and ``scaled`` are its controls; ``image``, ``table`` and ``note`` follow them."""

        def __init__(self, lang: str) -> None:
            check_language(lang)
            self._lang = lang
            self._stage = Stage(lang)
            say = lambda key: message(f"explore.scaling.{key}", lang)  # noqa: E731
            self.d_k = w.IntSlider(START[0], 1, LARGEST_D_K, description=say("slider"), layout=w.Layout(width="440px"))
            self.d_k.style.description_width = "40px"
            options = [(say("unscaled"), False), (say("scaled"), True)]
            self.scaled = w.ToggleButtons(options=options, value=START[1])
            self.scaled.style.button_width = "120px"
            self.image = w.Image(format="png", layout=w.Layout(width=f"{WIDTH}px", max_width="100%"))
            self.table, self.note = w.HTML(), w.HTML()
            self.presets = {}
            for name, state in PRESETS.items():
                self.presets[name] = self._button(say(f"preset.{name}.label"), state, say(f"preset.{name}.note"))
            self.presets["reset"] = self._button(say("reset"), START, "")
            self._guard = guard([say("slider_name")], lang)
            self._redraw()
            for control in (self.d_k, self.scaled):
                control.observe(self._redraw, names="value")
            row = w.Layout(flex_flow="row wrap", align_items="center")
            children = [
                w.HTML(_question(lang)),
                w.HBox([self.d_k, w.Label(say("mode")), self.scaled], layout=row),
                self.image,
                w.HBox([w.Label(message("explore.qkv.presets", lang)), *self.presets.values()], layout=row),
                self.note,
                self.table,
                self._guard,
            ]
            super().__init__(children)
            self.add_class("tl-guarded")

        def _button(self, label: str, state: tuple[int, bool], note: str) -> Any:
            button = w.Button(description=label, layout=w.Layout(width="auto"))

            def press(_: Any) -> None:
                self._held = True  # both controls change; the picture is drawn once
                self.d_k.value, self.scaled.value = state
                self._held = False
                self.note.value = f'<p class="tl-note">{html.escape(note)}</p>' if note else ""
                self._redraw()

            button.on_click(press)
            return button

        _held = False

        def _redraw(self, change: Any = None) -> None:
            if self._held:
                return
            d_k, scaled = self.d_k.value, self.scaled.value
            self.image.value = self._stage.png(d_k, scaled)
            caption, table, text = twin(d_k, scaled, self._lang)
            self.table.value = f'<div class="tl-root">{figures.html_table(table, caption, self._lang, folded=False)}</div>'
            self._guard.alternative = text

        def picture(self) -> Picture:
            """The explorer as it stands now, as a drawing with its table."""
            return picture(self._lang, self.d_k.value, self.scaled.value)

        def _repr_mimebundle_(self, **options: Any) -> Any:
            shown = super()._repr_mimebundle_(**options)
            data, metadata = shown if isinstance(shown, tuple) else (shown, {})
            caption, table, text = twin(self.d_k.value, self.scaled.value, self._lang)
            data = dict(data or {})  # where no widget can be shown, the table is
            data["text/html"] = figures.html_table(table, caption, self._lang, folded=False)
            data["text/plain"] = "\n".join([message("explore.scaling.title", self._lang), text, figures.plain_table(table)])
            return data, metadata

    return ScalingBench


def _question(lang: str) -> str:
    def say(key: str) -> str:
        return html.escape(message(key, lang))

    return (
        f'<div class="tl-root" lang="{lang}"><div class="tl-question">'
        f"<p><strong>{say('explore.qkv.guess')}</strong>{say('explore.scaling.question')}</p>"
        f"<details><summary>{say('explore.scaling.open_answer')}</summary><p>{say('explore.scaling.answer')}</p></details></div></div>"
    )


def bench(lang: str) -> Any:
    """The widget in its first state."""
    return widget_class()(lang)
