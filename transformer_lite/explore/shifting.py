"""The shift viewer: what the decoder is fed, what it must predict, and who sees the answer (section 3.1 and figure 1)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import causal_mask, shift_right
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture
from transformer_lite.language import check_language, message

# The course's sentence and its swap, in both languages. Every one ends with EOS, which must be predicted, too.
SENTENCES = {
    "dog-ja": ("犬", "が", "猫", "を", "追いかけた", "EOS"),
    "cat-ja": ("猫", "が", "犬", "を", "追いかけた", "EOS"),
    "dog-en": ("the", "dog", "chased", "the", "cat", "EOS"),
    "cat-en": ("the", "cat", "chased", "the", "dog", "EOS"),
}
GLOSSES = {  # by the language of the sentence, in the other one
    "ja": {"犬": "dog", "が": "subject", "猫": "cat", "を": "object", "追いかけた": "chased", "BOS": "start", "EOS": "end"},
    "en": {"the": "冠詞", "dog": "犬", "chased": "追いかけた", "cat": "猫", "BOS": "文頭", "EOS": "文末"},
}
N_LABELS = 6
SETTINGS = ("both", "no_shift", "no_mask", "neither")
KINDS = ("", "earlier", "answer", "later")  # of a label, for the position that predicts another: not seen, or where it stands

_WORDS = (
    "question", "open_answer", "answer", "hint", "sentence", "shift", "mask", "fed_shifted", "fed_as_is", "labels", "diagram",
    "diagram_role", "mark_leak", "mark_line", "mark_copy", "influence", "row_label", "column_label", "legend_earlier",
    "legend_answer", "legend_later", "cell_earlier", "cell_answer", "cell_later", "cell_none", "leaks", "clean", "sees",
    "where_own", "where_next_seen", "where_next_hidden", "where_nowhere", "twice", "learns", "learns_both", "learns_no_shift",
    "learns_no_mask", "learns_neither", "teaching", "tried", "tried_mask", "tried_no_mask", "tried_shift", "tried_no_shift",
    "untried", "tried_cell", "untried_cell", "product", "product_note", "mask_matrix", "shift_matrix", "row_position",
    "column_input", "row_input", "column_held", "cell_may", "cell_may_not", "cell_holds", "cell_holds_not", "comma",
)  # fmt: skip


class State(NamedTuple):
    """What is shown: the sentence, whether the labels are shifted right, whether a causal mask is on, and the chosen position."""

    sentence: str = "dog-ja"
    shift: bool = False
    causal: bool = True
    position: int = 2  # counted from 0 here, from 1 in everything that is shown


START = State()  # the surprise: the mask is on, and every position sees its own answer


def explorer(lang: str, **state: Any) -> Any:
    """The shift viewer: input row above label row, right shift and causal mask to be switched, and where the answer leaks.

    Args:
        lang: ``"ja"`` or ``"en"``.
        state: where it starts: ``sentence`` (one of `SENTENCES`; by default the course's sentence in ``lang``), ``shift`` (the
            right shift; False), ``causal`` (the mask; True) and ``position`` (0 to 5; 2).

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: an unknown language, sentence or position.
    """
    check_language(lang)
    first = START._replace(**{"sentence": f"dog-{lang}", **state})
    if first.sentence not in tuple(SENTENCES):
        raise ValueError(f"sentence must be one of {', '.join(SENTENCES)}; got {first.sentence!r}.")
    if type(first.position) is not int or first.position not in range(N_LABELS):
        raise ValueError(f"position must be one of 0 to {N_LABELS - 1}; got {first.position!r}.")
    return picture(lang, first) if static() else widget_class()(lang, first)


# --- the numbers ---


def placed(n: int, shift: bool) -> NDArray[np.bool_]:
    """(n positions, n labels): True where the input of position p is label j. With the shift, position 0 holds BOS: no label."""
    labels = np.arange(n)
    fed = shift_right(labels, -1) if shift else labels
    return fed[:, np.newaxis] == labels


def allowed(n: int, causal: bool) -> NDArray[np.bool_]:
    """(n positions, n inputs): True where position p may attend to input q."""
    return causal_mask(n) if causal else np.ones((n, n), dtype=bool)


def seen(n: int, shift: bool, causal: bool) -> NDArray[np.bool_]:
    """The influence matrix on labels, (n, n): True where the prediction of label i moves when label j moves.

    It does if some input that position i may attend to is label j: the Boolean product of `allowed` and `placed`.
    """
    return allowed(n, causal) @ placed(n, shift)  # (n, n inputs) (n inputs, n) -> (n, n)


def kinds(moved: NDArray[np.bool_]) -> list[list[str]]:
    """What each cell of an influence matrix on labels (n, n) is: one of `KINDS`."""
    return [["" if not yes else KINDS[2 + int(np.sign(j - i))] for j, yes in enumerate(row)] for i, row in enumerate(moved)]


def leaking(moved: NDArray[np.bool_]) -> list[int]:
    """The positions whose own label, their answer, is among what they see."""
    return [int(i) for i in np.flatnonzero(moved.diagonal())]


def setting(shift: bool, causal: bool) -> str:
    """The name of the two switches: one of `SETTINGS`."""
    return SETTINGS[(not shift) + 2 * (not causal)]


def whereabouts(state: State) -> str:
    """Where the answer of the chosen position is: a key of the messages ``explore.shifting.where_…``."""
    if not state.shift:
        return "own"
    if state.position == N_LABELS - 1:
        return "nowhere"  # shifted out: the last label is never fed
    return "next_hidden" if state.causal else "next_seen"


def twice(labels: tuple[str, ...], moved: NDArray[np.bool_], position: int) -> int:
    """Another label that is the same word as the answer of ``position`` and is seen there; −1: there is none."""
    return next((j for j, label in enumerate(labels) if j != position and label == labels[position] and moved[position, j]), -1)


# --- words ---


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.shifting.{key}", lang, **parameters)


def words(lang: str) -> dict[str, str]:
    """Every text that the viewer in the browser shows."""
    shared = {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "reset")}
    return {word: _say(word, lang) for word in _WORDS} | shared


def own_language(sentence: str) -> str:
    """The language that a sentence is in."""
    return sentence.rpartition("-")[2]


def tokens(sentence: str) -> dict[str, Any]:
    """The labels of a sentence and BOS, each with its gloss in the other language and its own language."""
    own = own_language(sentence)
    made = [{"token": token, "gloss": GLOSSES[own][token], "own": own} for token in ("BOS", *SENTENCES[sentence])]
    return {"start": made[0], "labels": made[1:]}


def fed(state: State) -> list[str]:
    """What stands at the decoder's input, position by position."""
    labels = SENTENCES[state.sentence]
    return ["BOS", *labels[:-1]] if state.shift else list(labels)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class ShiftViewer(bench_class()):
        """Lives in the browser; sentence, switches, position and the settings already tried come back as the learner goes on."""

        _esm = script("shift_viewer")
        sentence = t.Enum(tuple(SENTENCES), START.sentence).tag(sync=True)
        shift = t.Bool(START.shift).tag(sync=True)
        causal = t.Bool(START.causal).tag(sync=True)
        position = t.Int(START.position, min=0, max=N_LABELS - 1).tag(sync=True)
        tried = t.List(t.Enum(SETTINGS)).tag(sync=True)
        sentences = t.Dict().tag(sync=True)

        def __init__(self, lang: str, first: State) -> None:
            super().__init__(**traits(lang, first))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def state(self) -> State:
            """The viewer as it stands."""
            return State(*(getattr(self, name) for name in State._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.state)

        def picture(self) -> Picture:
            return picture(self.lang, self.state)

    return ShiftViewer


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    return {"lang": lang, "strings": words(lang)}


def traits(lang: str, first: State = START) -> dict[str, Any]:
    """All traits of the first state."""
    begin = {**first._asdict(), "tried": []}
    return {**texts(lang), **begin, "sentences": {name: tokens(name) for name in SENTENCES}, "initial": begin}


# --- the static twin ---


def twin(lang: str, state: State) -> tuple[str, list[list[str]], str]:
    """Title, table (the input, then a row per label: 1 where it is seen by the position that predicts it) and sentence."""
    labels = SENTENCES[state.sentence]
    numbered = [f"{i} {label}" for i, label in enumerate(labels, 1)]
    moved = seen(N_LABELS, state.shift, state.causal)
    corner = f"{_say('row_label', lang)} / {_say('column_label', lang)}"
    table = [[corner, *numbered, _say("leak_column", lang)], [_say("fed_row", lang), *fed(state), ""]]
    for i, row in enumerate(moved):
        leak = _say("leak_yes" if row[i] else "leak_no", lang)
        table.append([numbered[i], *(str(int(yes)) for yes in row), leak])
    return _say("title", lang), table, sentence(lang, state)


def summary(lang: str, state: State) -> str:
    """At how many positions the answer leaks."""
    leaks = len(leaking(seen(N_LABELS, state.shift, state.causal)))
    return _say("leaks" if leaks else "clean", lang, leaks=leaks, n=N_LABELS)


def view(lang: str, state: State) -> str:
    """What the chosen position sees, and where its answer is."""
    row = fed(state)
    visible = [row[q] for q in np.flatnonzero(allowed(N_LABELS, state.causal)[state.position])]
    label = SENTENCES[state.sentence][state.position]
    position = state.position + 1
    sees = _say("sees", lang, position=position, label=label, inputs=_say("comma", lang).join(visible))
    parts = [sees, _say(f"where_{whereabouts(state)}", lang, label=label, next=position + 1)]
    other = twice(SENTENCES[state.sentence], seen(N_LABELS, state.shift, state.causal), state.position)
    if other >= 0:
        parts.append(_say("twice", lang, other=other + 1, label=label))
    return _gap(lang).join(parts)


def learns(lang: str, state: State) -> str:
    """What training would learn with these switches."""
    return _say("learns", lang) + _say(f"learns_{setting(state.shift, state.causal)}", lang)


def sentence(lang: str, state: State) -> str:
    """The switches, the leaks, the chosen position and what would be learned."""
    switches = _say("state", lang, shift=_on(lang, state.shift), mask=_on(lang, state.causal))
    parts = [switches, summary(lang, state), view(lang, state), learns(lang, state), _say("teaching", lang, n=N_LABELS)]
    return _gap(lang).join(parts)


def _on(lang: str, yes: bool) -> str:
    return _say("on" if yes else "off", lang)


def _gap(lang: str) -> str:
    return "" if lang == "ja" else " "


_SIGNS = {"": "", "earlier": "●", "answer": "!", "later": "→"}
_TINTS = {"": "white", "earlier": figures.COLOURS[5], "answer": figures.COLOURS[1], "later": figures.COLOURS[4]}


def picture(lang: str, state: State = START) -> Picture:
    """The two rows with what the chosen position sees, and the influence matrix on labels, drawn with matplotlib."""
    title, table, text = twin(lang, state)
    with figures.style():
        figure = figures.new_figure(900, 400)
        axes = figure.subplots(1, 2, width_ratios=[1.45, 1.0])
        _draw_rows(axes[0], lang, state)
        _draw_influence(axes[1], lang, state)
        legend = "   ".join(_say(f"legend_{kind}", lang) for kind in KINDS[1:])
        figure.suptitle(f"{summary(lang, state)}\n{legend}", size=10)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _draw_rows(axes: Any, lang: str, state: State) -> None:
    """The input above the labels, and lines from what the chosen position may see to the label that it predicts."""
    from matplotlib.patches import FancyBboxPatch

    given = tokens(state.sentence)
    inputs = [given["start"], *given["labels"][:-1]] if state.shift else given["labels"]
    may, leaks = allowed(N_LABELS, state.causal), leaking(seen(N_LABELS, state.shift, state.causal))
    answers = placed(N_LABELS, state.shift)[:, state.position]  # (n,): which input is the answer
    axes.set(xlim=(-0.1, N_LABELS), ylim=(-0.75, 3.35), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)

    def box(i: int, bottom: float, token: dict[str, str], colour: str, shown: bool, wide: float) -> None:
        look = {"facecolor": colour, "edgecolor": "black" if shown else "#999999", "linestyle": "-" if shown else ":"}
        shape = "round,pad=0,rounding_size=0.08"
        axes.add_patch(FancyBboxPatch((i + 0.04, bottom), 0.92, 0.72, boxstyle=shape, linewidth=wide, **look))
        ink = "black" if shown else "#888888"
        axes.text(i + 0.5, bottom + 0.45, token["token"], ha="center", va="center", size=9.5, color=ink)
        axes.text(i + 0.5, bottom + 0.15, token["gloss"], ha="center", va="center", size=7.5, color=ink)

    for i in range(N_LABELS):
        visible, answer = bool(may[state.position, i]), bool(answers[i])
        tint = "white" if not visible else "#f3c6a5" if answer else "#cfe8f7"
        box(i, 2.2, inputs[i], tint, visible, 1.0)
        chosen = i == state.position
        box(i, 0.0, given["labels"][i], "white", True, 2.6 if chosen else 1.0)
        axes.text(i + 0.5, 3.02, str(i + 1), ha="center", va="bottom", size=8.5)
        leak = i in leaks
        colour = figures.COLOURS[1] if leak else figures.COLOURS[2]
        axes.text(i + 0.5, -0.3, "!" if leak else "✓", ha="center", va="center", size=13, color=colour)
        if visible:
            colour, width = (figures.COLOURS[1], 3.0) if answer else (figures.COLOURS[0], 1.4)
            axes.plot([i + 0.5, state.position + 0.5], [2.2, 0.72], color=colour, linewidth=width)
    axes.text(0.04, 3.32, _say("fed_shifted" if state.shift else "fed_as_is", lang), ha="left", va="bottom", size=9.5)
    axes.text(0.04, -0.62, f"{_say('labels', lang)}   {_say('mark_leak', lang)}", ha="left", va="top", size=9.5)


def _draw_influence(axes: Any, lang: str, state: State) -> None:
    from matplotlib.patches import Rectangle

    labels = [f"{i} {label}" for i, label in enumerate(SENTENCES[state.sentence], 1)]
    for i, row in enumerate(kinds(seen(N_LABELS, state.shift, state.causal))):
        for j, kind in enumerate(row):
            look = {"facecolor": _TINTS[kind], "edgecolor": "#888888", "linewidth": 0.8}
            axes.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, **look))
            axes.text(j + 0.5, i + 0.5, _SIGNS[kind], ha="center", va="center", size=11, color="black")
    axes.add_patch(Rectangle((0, state.position), N_LABELS, 1, fill=False, edgecolor="black", linewidth=2.2, clip_on=False))
    axes.set(xlim=(0, N_LABELS), ylim=(N_LABELS, 0), aspect="equal")
    axes.set_xticks(np.arange(N_LABELS) + 0.5, labels, rotation=90)
    axes.set_yticks(np.arange(N_LABELS) + 0.5, labels)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(_say("influence", lang), size=10)
    axes.set_ylabel(_say("row_label", lang))
    axes.set_xlabel(_say("column_label", lang))
