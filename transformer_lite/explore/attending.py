"""The attention map: every head of every layer at a glance, and one to read row by row (sections 3.2.3 and 4 of the paper)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.explore import figures, looking
from transformer_lite.explore.controls import script, static
from transformer_lite.explore.figures import CELLS_WITH_NUMBERS, Picture, number
from transformer_lite.explore.looking import EXAMPLE, MEAN, MOST, Look, Sentence, Token, head_name, layer_name, named
from transformer_lite.language import check_language, message, width

KINDS = ("encoder", "decoder", "cross")
SHOWS = KINDS
LISTED = 5  # of the columns of a row, in the table of numbers where it would be too wide

_WORDS = (
    "question", "open_answer", "answer", "hint", "kind", "kind_encoder", "kind_decoder", "kind_cross", "shape_encoder",
    "shape_decoder", "shape_cross", "grid", "grid_mean", "thumb", "map", "map_role", "corner_encoder", "corner_decoder",
    "row_encoder", "row_decoder", "cell", "cell_masked", "reading", "reading_encoder", "read_row", "row_below",
    "no_row_below", "most", "which", "which_decoder", "row", "legend_read", "legend_below", "legend_top", "legend_masked",
    "numbers", "numbers_corner", "numbers_rank", "numbers_cell", "cut", "column_encoder", "column_decoder", "column_cross",
)  # fmt: skip
_PRESETS = ("alignment", "triangle", "square", "first_layer")


class State(NamedTuple):
    """What the explorer shows: which attention, one ``layer`` and ``head`` (or `MEAN`) of it, and the cell of the cursor."""

    kind: str
    layer: int
    head: int
    row: int
    column: int


def explorer(lang: str, look: Look | None = None, text: str = EXAMPLE) -> Any:
    """The attention map: which layer and head looks where, and which row of the map says how a word came about.

    Args:
        lang: ``"ja"`` or ``"en"``.
        look: asks a translator, see `looking`. Without it one stored sentence is shown.
        text: the sentence to begin with, if there is a translator.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    check_language(lang)
    found, trouble = looking.first(look, text, lang)
    found = cropped(found)
    return picture(lang, found, start(found)) if static() else widget_class()(lang, look, found, trouble)


def start(found: Sentence) -> State:
    """The surprise: the row that predicts the last word, whose weight lies far from the diagonal."""
    last_layer = len(found.cross) - 1
    row = max(len(found.target) - 1 - found.ended, 0)
    first = State("cross", last_layer, MEAN, row, 0)
    return first._replace(column=int(weights(found, first)[row].argmax()))


# --- the numbers ---


def cropped(found: Sentence) -> Sentence:
    """The sentence with no more rows than fit a map: those of the first `MOST` tokens written."""
    if len(found.target) <= MOST:
        return found
    return found._replace(
        cropped=True,
        target=found.target[:MOST],
        held=found.held[:MOST],
        likely=found.likely[:MOST],
        cross=found.cross[:, :, :MOST],
        decoder=found.decoder[:, :, :MOST, :MOST],
        ended=False,
    )


def weights(found: Sentence, now: State) -> NDArray[np.float64]:
    """(n_q, n_k): the weights that are shown; each row sums to 1."""
    return looking.head_weights(getattr(found, now.kind), now.layer, now.head)


def queries(found: Sentence, kind: str) -> list[tuple[Token, Token | None]]:
    """Of each row, the token that it holds, and the one that it predicts: in an encoder none."""
    if kind == "encoder":
        return [(token, None) for token in found.source]
    return list(zip(found.held, found.target, strict=True))


def keys(found: Sentence, kind: str) -> list[Token]:
    """The token of each column."""
    return found.held if kind == "decoder" else found.source


def masked(kind: str, row: int, column: int) -> bool:
    """Whether the causal mask hides this cell."""
    return kind == "decoder" and column > row


# --- words ---


def _say(key: str, lang: str, **given: object) -> str:
    return message(f"explore.attending.{key}", lang, **given)


def words(lang: str) -> dict[str, str]:
    """Every text that the explorer in the browser shows."""
    return looking.words(lang) | {word: _say(word, lang) for word in _WORDS}


def presets(lang: str, found: Sentence) -> list[dict[str, Any]]:
    """The named views, each with what there is to see."""
    last = len(found.cross) - 1
    views = {"alignment": ("cross", last), "triangle": ("decoder", 0), "square": ("encoder", 0), "first_layer": ("cross", 0)}
    return [
        {
            "label": _say(f"preset.{name}.label", lang),
            "note": _say(f"preset.{name}.note", lang),
            "kind": views[name][0],
            "layer": views[name][1],
            "head": MEAN,
        }
        for name in _PRESETS
    ]


def map_name(now: State, lang: str) -> str:
    """What the large map shows."""
    kind = _say(f"kind_{now.kind}", lang)
    return _say("map", lang, kind=kind, layer=layer_name(now.layer, lang), head=head_name(now.head, lang))


def row_name(found: Sentence, kind: str, row: int, lang: str) -> str:
    """A row in words: what it holds and what it predicts."""
    held, predicted = queries(found, kind)[row]
    if predicted is None:
        return named(held, "source", lang)
    return _say("row", lang, held=held.token, predicted=named(predicted, "target", lang))


def _side(kind: str) -> str:
    return "target" if kind == "decoder" else "source"


def readout(lang: str, found: Sentence, now: State) -> str:
    """The cell of the cursor in words: row, column, weight."""
    held, predicted = queries(found, now.kind)[now.row]
    column = named(keys(found, now.kind)[now.column], _side(now.kind), lang)
    if predicted is None:
        row = _say("row_encoder", lang, token=named(held, "source", lang))
    else:
        row = _say("row_decoder", lang, held=named(held, "target", lang), predicted=named(predicted, "target", lang))
    if masked(now.kind, now.row, now.column):
        return _say("cell_masked", lang, row=row, column=column)
    return _say("cell", lang, row=row, column=column, weight=number(float(weights(found, now)[now.row, now.column])))


def comparison(lang: str, found: Sentence, now: State) -> list[str]:
    """Which row to read for the word of the cursor's row, and what the row below it, which holds the word, would say instead."""
    said = []
    shown = weights(found, now)
    for row in (now.row, now.row + 1):
        if row < len(shown):
            best = int(shown[row].argmax())
            token = named(keys(found, now.kind)[best], _side(now.kind), lang)
            name = row_name(found, now.kind, row, lang)
            said.append(_say("most", lang, row=name, token=token, weight=number(float(shown[row, best]))))
    return said


def sentence(lang: str, found: Sentence, now: State) -> str:
    """What is shown, the cell of the cursor, and the two rows that are easily confused."""
    parts = [_say("shown", lang, map=map_name(now, lang), cell=readout(lang, found, now))]
    if now.kind != "encoder":
        read, *below = comparison(lang, found, now)
        parts.append(_say("which_read", lang, row=read))
        parts += [_say("which_below", lang, row=row) for row in below]
    return ("" if lang == "ja" else " ").join(parts)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class AttentionMap(looking.asking_class()):
        """Lives in the browser; the fields of `State` come back as the learner moves them, and a new sentence to translate."""

        _esm = script("looking", "attention_map")
        shows = SHOWS
        kind = t.Enum(KINDS, "cross").tag(sync=True)
        layer = t.Int(0, min=0).tag(sync=True)
        head = t.Int(MEAN, min=MEAN).tag(sync=True)
        row = t.Int(0, min=0).tag(sync=True)
        column = t.Int(0, min=0).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)

        def __init__(self, lang: str, look: Look | None, found: Sentence, trouble: str = "") -> None:
            super().__init__(look, found, **traits(lang, found, look is not None, trouble))

        def form(self, found: Sentence) -> Sentence:
            return cropped(found)

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"strings": words(lang), "presets": presets(lang, self.found), **self.relooked(lang)}

        def begin(self, found: Sentence) -> dict[str, Any]:
            """The same kind, layer and head, so that sentences can be compared; the cursor where it begins."""
            first = start(found)
            now = self.state._replace(layer=min(self.layer, first.layer), head=min(self.head, found.cross.shape[1] - 1))
            if now.kind == "encoder":
                return {**now._replace(row=0, column=0)._asdict(), "initial": first._asdict()}
            row = weights(found, now)[first.row]
            return {**now._replace(row=first.row, column=int(row.argmax()))._asdict(), "initial": first._asdict()}

        @property
        def state(self) -> State:
            """The explorer as it stands."""
            return State(*(getattr(self, name) for name in State._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.found, self.state)

        def picture(self) -> Picture:
            return picture(self.lang, self.found, self.state)

    return AttentionMap


def traits(lang: str, found: Sentence, can_ask: bool = False, trouble: str = "") -> dict[str, Any]:
    """All traits of the first state."""
    return {
        **looking.traits(lang, found, SHOWS, can_ask, trouble),
        **start(found)._asdict(),
        "initial": start(found)._asdict(),
        "preset": -1,
        "presets": presets(lang, found),
        "strings": words(lang),
    }


# --- the static twin ---


def table(lang: str, found: Sentence, now: State) -> list[list[str]]:
    """The map's numbers, header first; of a map wider than `CELLS_WITH_NUMBERS` the largest of each row."""
    shown, columns = weights(found, now), keys(found, now.kind)
    rows = [_row_label(held, predicted) for held, predicted in queries(found, now.kind)]
    corner = _say("numbers_corner", lang)
    if len(columns) <= CELLS_WITH_NUMBERS:
        body = [
            [name, *("–" if masked(now.kind, i, j) else number(float(value), 3) for j, value in enumerate(row))]
            for i, (name, row) in enumerate(zip(rows, shown, strict=True))
        ]
        return [[corner, *(column.token for column in columns)], *body]
    body = []
    for name, row in zip(rows, shown, strict=True):
        best = np.argsort(-row, kind="stable")[:LISTED]
        body.append([name, *(_say("numbers_cell", lang, token=columns[j].token, weight=number(float(row[j]), 3)) for j in best)])
    return [[corner, *(_say("numbers_rank", lang, rank=rank) for rank in range(1, LISTED + 1))], *body]


def _row_label(held: Token, predicted: Token | None) -> str:
    return held.token if predicted is None else f"{held.token} → {predicted.token}"


def twin(lang: str, found: Sentence, now: State) -> tuple[str, list[list[str]], str]:
    """Title, table and sentence of one state."""
    return _say("title", lang, text=found.text), table(lang, found, now), sentence(lang, found, now)


def picture(lang: str, found: Sentence, now: State) -> Picture:
    """Every head of the chosen attention small, and the chosen map large with its numbers; with matplotlib."""
    from matplotlib.patches import Rectangle

    title, numbers, text = twin(lang, found, now)
    layers, heads = getattr(found, now.kind).shape[:2]
    shown = weights(found, now)
    small = [
        [looking.head_weights(getattr(found, now.kind), layer, head) for head in (*range(heads), MEAN)] for layer in range(layers)
    ]
    with figures.style():
        figure = figures.new_figure(900, 440 + 9 * max(len(shown) - 12, 0))
        left, right = figure.subfigures(1, 2, width_ratios=[1.15, 1.0])
        axes = left.subplots()
        _draw(axes, now.kind, shown)
        both = [(f"{token.token} {token.gloss}".rstrip(), token.token) for token in keys(found, now.kind)]
        few = max(shown.shape) <= 12
        size = 9 if few else 7
        axes.set_xticks(range(len(both)), [full if few else bare for full, bare in both], rotation=90, size=size)
        axes.set_yticks(
            range(len(shown)), [_row_label(held, predicted) for held, predicted in queries(found, now.kind)], size=size
        )
        axes.set_xlabel(_say(f"column_{now.kind}", lang))
        axes.set_ylabel(_say("corner_encoder" if now.kind == "encoder" else "corner_decoder", lang))
        axes.set_title(map_name(now, lang), size=10)
        if max(shown.shape) <= 10:
            for (i, j), value in np.ndenumerate(shown):
                if not masked(now.kind, i, j):
                    ink = "black" if value > 0.5 else "white"
                    axes.text(j, i, number(float(value)), ha="center", va="center", size=8, color=ink)
        axes.add_patch(Rectangle((now.column - 0.5, now.row - 0.5), 1, 1, fill=False, edgecolor=figures.COLOURS[1], linewidth=3))
        top, _ = right.subfigures(2, 1, height_ratios=[1.0, 0.5])
        top.suptitle(_say("grid", lang), size=10)
        grid = top.subplots(layers, heads + 1, squeeze=False)
        for layer, row in enumerate(small):
            for place, one in enumerate(row):
                _draw(grid[layer][place], now.kind, one)
                grid[layer][place].set_xticks([])
                grid[layer][place].set_yticks([])
                if layer == 0:
                    grid[layer][place].set_title(head_name(place, lang) if place < heads else _say("grid_mean", lang), size=8)
            grid[layer][0].set_ylabel(layer_name(layer, lang), size=8, rotation=0, ha="right", va="center")
        figure.suptitle(title, size=12 if width(title) <= 90 else 8)
        png = figures.to_png(figure)
    return Picture(png, title, numbers, text, lang)


def _draw(axes: Any, kind: str, values: NDArray[np.float64]) -> None:
    from matplotlib import colormaps

    hidden = np.array([[masked(kind, i, j) for j in range(values.shape[1])] for i in range(values.shape[0])])
    palette = colormaps[figures.SEQUENTIAL].with_extremes(bad="#dddddd")
    axes.imshow(np.ma.array(values, mask=hidden), cmap=palette, vmin=0, vmax=1, aspect="equal")
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set_visible(False)
