"""The normalisation cube: which numbers of (batch, position, feature) share one mean, and what that does to the others.

Section 3.1 of the paper (LayerNorm(x + Sublayer(x))) and Ba et al. 2016.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations import layer_norm
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.language import Text, check_language, message

AXES = ("batch", "position", "feature")
EPSILON = 1e-5

TOKENS = (
    (Text("犬", "dog"), Text("猫", "cat"), Text("追いかけた", "chased")),
    (Text("猫", "cat"), Text("犬", "dog"), Text("見た", "saw")),
    (Text("鳥", "bird"), Text("魚", "fish"), Text("食べた", "ate")),
)
# (B, n, d) = (2, 3, 4), and the sentence that takes the second one's place.
BATCH = (((2, 4, 6, 0), (1, 3, -1, 5), (4, 0, 2, 2)), ((0, 2, 2, 4), (3, 1, 5, -1), (2, 6, 0, 4)))
OTHER = ((10, -6, 8, 4), (12, 2, -4, 6), (8, -2, 14, 0))

# What a choice of axes is called: a method, or the trap of writing it where the paper means LayerNorm.
NAMES = {
    (False, False, True): "layer",
    (True, True, False): "LN4",
    (False, True, False): "LN2",
    (True, False, False): "LN1",
    (False, True, True): "LN3",
    (True, True, True): "all",
    (True, False, True): "unnamed",
    (False, False, False): "none",
}

_WORDS = (
    "question", "open_answer", "answer", "hint", "axes", "axis_batch", "axis_position", "axis_feature", "rms", "before", "after",
    "cube_role", "sentence", "replaced_sentence", "feature", "groups", "group", "numbers", "mean", "variance", "mean_square",
    "replace", "restore", "now", "cell", "cell_rms", "waiting", "unchanged", "changed", "change_mark", "rms_suffix", "comma",
)  # fmt: skip


# --- maths ---


class Normalised(NamedTuple):
    """``values`` (B, n, d); of each group its ``mean`` (g,) and ``variance`` (g,) (the mean square without centring);
    ``groups`` (B, n, d): the number of each cell's group."""

    values: NDArray[np.float64]
    mean: NDArray[np.float64]
    variance: NDArray[np.float64]
    groups: NDArray[np.int64]


def normalise(x: ArrayLike, axes: tuple[bool, bool, bool], rms: bool = False) -> Normalised:
    """Give the numbers that differ only along the chosen ``axes`` one mean and one variance, and normalise them by these.

    Args:
        x: (B, n, d).
        axes: for batch, position and feature, whether mean and variance are taken over it. Only feature: `layer_norm`.
        rms: do not subtract the mean, and divide by the root of the mean square (Zhang and Sennrich 2019).

    Returns:
        `Normalised`; gain 1 and bias 0.
    """
    x = np.asarray(x, dtype=np.float64)
    taken = [axis for axis, chosen in enumerate(axes) if chosen]
    kept = [axis for axis, chosen in enumerate(axes) if not chosen]
    order = kept + taken
    rows = x.transpose(order).reshape(prod(x.shape[axis] for axis in kept), -1)  # (B, n, d) -> (groups, numbers of a group)
    mean = rows.mean(axis=-1)
    if rms:
        variance = (rows**2).mean(axis=-1)
        flat = rows / np.sqrt(variance + EPSILON)[:, np.newaxis]
    else:
        variance = rows.var(axis=-1)
        flat = layer_norm(rows, np.ones(rows.shape[-1]), np.zeros(rows.shape[-1]), EPSILON)

    def back(array: NDArray) -> NDArray:
        return array.reshape([x.shape[axis] for axis in order]).transpose(np.argsort(order))  # -> (B, n, d)

    groups = np.broadcast_to(np.arange(len(rows))[:, np.newaxis], rows.shape)
    return Normalised(back(flat), mean, variance, back(groups))


def batch(replaced: bool) -> NDArray[np.float64]:
    """(2, 3, 4): the two sentences, or the first with another one beside it."""
    return np.array([BATCH[0], OTHER if replaced else BATCH[1]], dtype=np.float64)


def largest_change(axes: tuple[bool, bool, bool], rms: bool = False) -> float:
    """How far the first sentence's normalised numbers move at most when only the second sentence is replaced."""
    first, second = (normalise(batch(replaced), axes, rms).values[0] for replaced in (False, True))
    return float(np.abs(first - second).max())


# --- the state ---


@dataclass(frozen=True)
class State:
    """What the cube shows: the axes, whether the mean stays in (``rms``), which second sentence, and the cell looked at."""

    batch: bool = True
    position: bool = True
    feature: bool = False
    rms: bool = False
    replaced: bool = False
    sentence: int = 0
    token: int = 0
    component: int = 2

    @property
    def axes(self) -> tuple[bool, bool, bool]:
        return self.batch, self.position, self.feature

    def normalised(self) -> Normalised:
        """The numbers of this state."""
        return normalise(batch(self.replaced), self.axes, self.rms)


# The surprise waits behind a button: in batch normalisation sentence 1 changes when sentence 2 is replaced.
START = State()
PRESETS = {
    "layer": State(False, False, True),
    "LN4": State(True, True, False),
    "LN1": State(True, False, False),
    "LN2": State(False, True, False),
    "LN3": State(False, True, True),
    "LN9": State(False, False, True, rms=True),
}


def explorer(lang: str, **state: Any) -> Any:
    """The normalisation cube: choose the axes that share mean and variance, then replace the other sentence.

    Args:
        lang: ``"ja"`` or ``"en"``.
        state: where it starts: ``batch``, ``position``, ``feature``, ``rms``, ``replaced`` (Boolean), and the cell: ``sentence``
            (0 or 1), ``token`` (0 to 2), ``component`` (0 to 3).

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: a cell outside the cube.
    """
    check_language(lang)
    first = State(**state)
    for name, size in zip(("sentence", "token", "component"), np.shape(BATCH), strict=True):
        if not 0 <= getattr(first, name) < size:
            raise ValueError(f"{name} must be between 0 and {size - 1}; got {getattr(first, name)!r}.")
    return picture(lang, first) if static() else widget_class()(lang, first)


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.norms.{key}", lang, **parameters)


def _texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    other = "en" if lang == "ja" else "ja"
    strings = {word: _say(word, lang) for word in _WORDS}
    strings |= {f"name_{name}": _say(f"name_{name}", lang) for name in (*NAMES.values(), "LN9")}
    strings |= {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")}
    return {
        "lang": lang,
        "strings": strings,
        "presets": [
            {"label": _say(f"preset.{name}.label", lang), "note": _say(f"preset.{name}.note", lang), **asdict(state)}
            for name, state in PRESETS.items()
        ],
        "tokens": [[{"word": token(lang), "gloss": token(other)} for token in sentence] for sentence in TOKENS],
    }


def letter(group: int) -> str:
    """The label of a group: A, B, C, …"""
    return chr(ord("A") + group)


def name(state: State, lang: str) -> str:
    """What the chosen way is called."""
    key = NAMES[state.axes]
    if state.rms:
        return _say("name_LN9", lang) if key == "layer" else _say(f"name_{key}", lang) + _say("rms_suffix", lang)
    return _say(f"name_{key}", lang)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class NormCube(bench_class()):
        """Lives in the browser; every part of its `State` comes back as the learner moves it."""

        _esm = script("norm_cube")
        batch = t.Bool(START.batch).tag(sync=True)
        position = t.Bool(START.position).tag(sync=True)
        feature = t.Bool(START.feature).tag(sync=True)
        rms = t.Bool(START.rms).tag(sync=True)
        replaced = t.Bool(START.replaced).tag(sync=True)
        sentence = t.Int(START.sentence, min=0, max=1).tag(sync=True)
        token = t.Int(START.token, min=0, max=2).tag(sync=True)
        component = t.Int(START.component, min=0, max=3).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        tokens = t.List(t.List(t.Dict())).tag(sync=True)
        numbers = t.List().tag(sync=True)
        other = t.List().tag(sync=True)

        def __init__(self, lang: str, first: State) -> None:
            super().__init__(initial=asdict(first), **_numbers(), **asdict(first), **_texts(lang))

        def spoken(self, lang: str) -> dict[str, Any]:
            return _texts(lang)

        def state(self) -> State:
            """What is shown now."""
            return State(*(getattr(self, field) for field in State.__dataclass_fields__))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.state())

        def picture(self) -> Picture:
            return picture(self.lang, self.state())

    return NormCube


def _numbers() -> dict[str, Any]:
    """The traits that never change."""
    return {"numbers": [[list(token) for token in sentence] for sentence in BATCH], "other": [list(token) for token in OTHER]}


# --- the static twin ---


def twin(lang: str, state: State) -> tuple[str, list[list[str]], str]:
    """Title, table (every token with its numbers, their groups and what becomes of them), and a sentence."""
    x, found = batch(state.replaced), state.normalised()
    features = range(1, x.shape[-1] + 1)
    header = [
        _say("before", lang),
        *(_say("feature", lang, number=i) for i in features),
        *(f"→ {_say('feature', lang, number=i)}" for i in features),
    ]
    rows = []
    for b, sentence in enumerate(_sentences(state)):
        for t, token in enumerate(sentence):
            title = _say("sentence", lang, number=b + 1)
            cells = [f"{number(x[b, t, i], 0)} {letter(found.groups[b, t, i])}" for i in range(x.shape[-1])]
            rows.append([f"{title}: {token(lang)}", *cells, *(number(value) for value in found.values[b, t])])
    return _say("title", lang), [header, *rows], ("" if lang == "ja" else " ").join(_sayings(state, lang))


def _sayings(state: State, lang: str) -> list[str]:
    """What the way is called, how the cell looked at comes about, and whether sentence 1 has moved."""
    return [_say("now", lang, name=name(state, lang)), _cell(state, lang), _changed(state, lang)]


def _sentences(state: State) -> tuple[tuple[Text, ...], tuple[Text, ...]]:
    return TOKENS[0], TOKENS[2] if state.replaced else TOKENS[1]


def _cell(state: State, lang: str) -> str:
    """How the number of the cell looked at comes about."""
    at = (state.sentence, state.token, state.component)
    x, found = batch(state.replaced), state.normalised()
    group = int(found.groups[at])
    return _say(
        "cell_rms" if state.rms else "cell",
        lang,
        group=letter(group),
        numbers=_say("comma", lang).join(number(value, 0) for value in x[found.groups == group]),
        mean=number(found.mean[group]),
        variance=number(found.variance[group]),
        x=number(x[at], 0),
        result=number(found.values[at]),
    )


def _changed(state: State, lang: str) -> str:
    if not state.replaced:
        return _say("waiting", lang)
    change = largest_change(state.axes, state.rms)
    return _say("changed" if change > 0.0005 else "unchanged", lang, change=number(change, 3))


def picture(lang: str, state: State = START) -> Picture:
    """The cube at one state, drawn with matplotlib: the two sentences before and after, each cell with its group's letter."""
    title, table, text = twin(lang, state)
    x, found = batch(state.replaced), state.normalised()
    from matplotlib.patches import Rectangle

    hatches = ("", "///", "...", "\\\\\\")
    with figures.style():
        figure = figures.new_figure(900, 380)
        grid = figure.subplots(2, 2)
        for b, sentence in enumerate(_sentences(state)):
            for column, key in enumerate(("before", "after")):
                axes = grid[b][column]
                for t in range(x.shape[1]):
                    for i in range(x.shape[2]):
                        group = int(found.groups[b, t, i])
                        colour = figures.COLOURS[group % 6]
                        box = {"facecolor": colour + "33", "edgecolor": colour, "hatch": hatches[group // 6 % 4], "linewidth": 1}
                        axes.add_patch(Rectangle((i, -t - 1), 0.96, 0.92, **box))
                        shown = f"{number(x[b, t, i], 0)}  {letter(group)}" if column == 0 else number(found.values[b, t, i])
                        frame = {"facecolor": "white", "edgecolor": "none", "pad": 1.5}
                        axes.text(i + 0.48, -t - 0.54, shown, ha="center", va="center", bbox=frame)
                axes.set(xlim=(-0.05, 4), ylim=(-3.05, 0.02), xticks=np.arange(4) + 0.48, yticks=-np.arange(3) - 0.54)
                axes.set_xticklabels([_say("feature", lang, number=i + 1) for i in range(4)] if b else [])
                axes.set_yticklabels([token(lang) for token in sentence])
                axes.tick_params(length=0)
                axes.spines[:].set_visible(False)
                heading = _say("replaced_sentence" if b and state.replaced else "sentence", lang, number=b + 1)
                axes.set_title(f"{_say(key, lang)} — {heading}", size=10)
        figure.suptitle(_say("now", lang, name=name(state, lang)), size=11)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)
