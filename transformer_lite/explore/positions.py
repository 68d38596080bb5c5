"""The positional-encoding map: every component of every position, each pair as a point on a circle, and what a swap shows.

Sections 3.5 (the formula, and that a step of k is one rotation) and 3.2.1 (attention itself does not see order) of the paper.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import positional_encoding, scaled_dot_product_attention
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.language import Text, check_language, message

MOST_POSITIONS = 50
WIDTHS = (4, 8, 16, 64, 128)
MOST_OFFSET = 20
LISTED_PAIRS = 8
# The paper's formula, and the traps by their keys in quizzes/traps.yaml (PE9: a table of random numbers, as before learning).
ENCODINGS = ("paper", "PE1", "PE3", "PE4", "PE5", "PE6", "PE9")

_WORDS = (
    "open_answer", "question", "answer", "hint", "map", "map_role", "map_position", "map_component", "circle", "curve",
    "curve_k", "curve_y", "n", "d_model", "offset", "encoding", "pairs", "pair", "frequency", "wavelength", "here", "there",
    "turn", "dot_here", "dot_there", "wave_line", "wave_paper", "wave_none", "turn_same", "turn_differs", "curve_note",
    "curve_moves", "state", "swap", "swap_on", "word", "first_output", "second_output", "difference", "swap_same",
    "swap_differs", "swap_how", "none",
)  # fmt: skip


# --- maths ---


def frequencies(d_model: int, kind: str = "paper") -> NDArray[np.float64]:
    """The frequency of each component, (d_model,), in radians per position; NaN where the encoding follows no formula.

    The paper's components 2i and 2i + 1 share 1 / 10000^(2i / d_model).
    """
    component = np.arange(d_model)
    pair = component // 2
    if kind == "PE9":
        return np.full(d_model, np.nan)
    power = {"PE3": pair / d_model, "PE4": component / d_model}.get(kind, 2 * pair / d_model)
    return (1000.0 if kind == "PE6" else 10000.0) ** -power


def encode(n: int, d_model: int, kind: str = "paper") -> NDArray[np.float64]:
    """(n, d_model): the paper's encoding of n positions, or the one that a trap makes of it.

    Args:
        n: number of positions.
        d_model: even.
        kind: one of `ENCODINGS`.

    Raises:
        ValueError: an unknown ``kind``.
    """
    if kind == "paper":
        return positional_encoding(n, d_model)
    if kind not in ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}; got {kind!r}.")
    if kind == "PE9":
        return _learned()[:n, :d_model].copy()
    first = 1 if kind == "PE5" else 0
    angles = (np.arange(n) + first)[:, np.newaxis] * frequencies(d_model, kind)  # (n, d_model)
    even, odd = (np.cos, np.sin) if kind == "PE1" else (np.sin, np.cos)
    return np.where(np.arange(d_model) % 2 == 0, even(angles), odd(angles))


@cache
def _learned() -> NDArray[np.float64]:
    """(positions, largest d_model) random numbers between −1 and 1, from a generator so small that the browser has the same."""
    seed, numbers = 1, []
    for _ in range((MOST_POSITIONS + MOST_OFFSET) * max(WIDTHS)):
        seed = (1664525 * seed + 1013904223) % 2**32  # a linear congruential generator (Knuth's constants)
        numbers.append(seed / 2**31 - 1)
    table = np.array(numbers).reshape(-1, max(WIDTHS))
    table.setflags(write=False)
    return table


class Turns(NamedTuple):
    """Pair i at every position p and at p + k: the ``angle`` (n,) between, −π to π, and the first's ``radius`` (n,)."""

    angle: NDArray[np.float64]
    radius: NDArray[np.float64]
    same: bool


def turns(n: int, d_model: int, pair: int, offset: int, kind: str = "paper") -> Turns:
    """How far the point (cos, sin) of one pair turns between position p and p + k, measured for each of n positions.

    ``same`` says whether one rotation takes every position k further: equal angles, and radius 1 throughout.
    """
    encoding = encode(n + offset, d_model, kind)
    y, x = encoding[:, 2 * pair], encoding[:, 2 * pair + 1]
    if kind == "PE1":
        x, y = y, x
    points = x + 1j * y
    quotient = points[offset:] / points[:n]
    turned = quotient / np.abs(quotient)
    same = bool(np.abs(turned - turned[0]).max() < 1e-9 and np.abs(np.abs(points) - 1).max() < 1e-9)
    return Turns(np.angle(turned), np.abs(points[:n]), same)


def similarities(n: int, d_model: int, position: int, kind: str = "paper") -> NDArray[np.float64]:
    """(n,): the dot product of the encoding of ``position`` with that of each of the n positions."""
    encoding = encode(n, d_model, kind)
    return encoding @ encoding[position]  # (n, d_model) @ (d_model,) -> (n,)


# The running example and its swap: dog and cat change places. Each word keeps its vector.
WORDS = {
    "dog": (Text("犬", "dog"), (1.0, 0.5, -0.5, 1.0)),
    "cat": (Text("猫", "cat"), (-0.5, 1.0, 1.0, 0.5)),
    "chased": (Text("追いかけた", "chased"), (0.5, -1.0, 1.0, 1.0)),
    "ga": (Text("が", "(subject)"), (0.0, 0.5, 0.0, -1.0)),
    "o": (Text("を", "(object)"), (0.0, -0.5, 0.5, -1.0)),
    "the": (Text("（冠詞）", "the"), (0.5, 0.0, 0.0, -1.0)),
}
SENTENCE = {"ja": ("dog", "ga", "cat", "o", "chased"), "en": ("the", "dog", "chased", "the", "cat")}


class Swap(NamedTuple):
    """Self-attention's outputs for the words of the first sentence, in its order: ``first`` (n, 4), and ``second`` (n, 4) for the
    same words in the swapped sentence; ``difference`` (n,) is the largest between the two."""

    first: NDArray[np.float64]
    second: NDArray[np.float64]
    difference: NDArray[np.float64]


def swapped_places(lang: str) -> list[int]:
    """For each place of the swapped sentence, the place in the first sentence that its word comes from."""
    words = SENTENCE[lang]
    dog, cat = words.index("dog"), words.index("cat")
    return [cat if i == dog else dog if i == cat else i for i in range(len(words))]


def swap(lang: str, with_positions: bool, kind: str = "paper") -> Swap:
    """Self-attention (Q = K = V = x) over the sentence and over its swap, with or without positional encodings added."""
    x = np.array([WORDS[word][1] for word in SENTENCE[lang]])  # (n, 4)
    places = swapped_places(lang)
    encoding = encode(*x.shape, kind) if with_positions else np.zeros_like(x)
    first, other = (scaled_dot_product_attention(each, each, each).output for each in (x + encoding, x[places] + encoding))
    second = other[np.argsort(places)]
    return Swap(first, second, np.abs(first - second).max(axis=-1))


# --- the state ---


@dataclass(frozen=True)
class State:
    """What the explorer shows: the encoding, its size, the cursor (position, pair), the step k, and the switch of the swap."""

    encoding: str = "paper"
    n: int = MOST_POSITIONS
    d_model: int = 128
    position: int = 24
    pair: int = 40
    offset: int = 1
    with_positions: bool = False

    def clamped(self) -> State:
        """The same with the cursor inside the map, whatever order its parts arrived in."""
        return State(
            self.encoding,
            self.n,
            self.d_model,
            min(self.position, self.n - 1),
            min(self.pair, self.d_model // 2 - 1),
            self.offset,
            self.with_positions,
        )


# The surprise: wide as a model is, and between neighbouring positions most of it stands still.
START = State()
PRESETS = {
    "table": State("paper", 10, 4, 1, 1, 1),
    "PE1": State("PE1", 10, 4, 0, 0, 1),
    "PE3": State("PE3", 50, 64, 10, 31, 3),
    "PE4": State("PE4", 50, 8, 3, 1, 3),
    "PE5": State("PE5", 10, 4, 0, 0, 1),
    "PE6": State("PE6", 50, 64, 10, 31, 3),
    "PE9": State("PE9", 50, 64, 24, 3, 1, True),
}


def explorer(lang: str, **state: Any) -> Any:
    """The positional-encoding map: a cursor on (position, pair), its point on the circle, the rotation by k, and the word swap.

    Args:
        lang: ``"ja"`` or ``"en"``.
        state: where it starts: ``encoding`` ("paper", "PE1", "PE3", "PE4", "PE5", "PE6", "PE9"), ``n`` (2 to 50), ``d_model`` (4,
            8, 16, 64 or 128), ``position``, ``pair``, ``offset`` (0 to 20), ``with_positions``.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: a state that the map cannot show.
    """
    check_language(lang)
    first = _checked(State(**state)) if state else START
    return picture(lang, first) if static() else widget_class()(lang, first)


def _checked(state: State) -> State:
    limits = {
        "n": (2, MOST_POSITIONS), "position": (0, state.n - 1), "pair": (0, state.d_model // 2 - 1), "offset": (0, MOST_OFFSET)
    }  # fmt: skip
    if state.encoding not in ENCODINGS:
        raise ValueError(f"encoding must be one of {', '.join(ENCODINGS)}; got {state.encoding!r}.")
    if state.d_model not in WIDTHS:
        raise ValueError(f"d_model must be one of {', '.join(map(str, WIDTHS))}; got {state.d_model!r}.")
    for name, (low, high) in limits.items():
        if not low <= getattr(state, name) <= high:
            raise ValueError(f"{name} must be between {low} and {high}; got {getattr(state, name)!r}.")
    return state


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.positions.{key}", lang, **parameters)


def _texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    strings = {word: _say(word, lang) for word in _WORDS}
    strings |= {f"encoding_{kind}": _say(f"encoding_{kind}", lang) for kind in ENCODINGS}
    strings |= {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")}
    other = "en" if lang == "ja" else "ja"
    return {
        "lang": lang,
        "strings": strings,
        "presets": [
            {"label": _say(f"preset.{name}.label", lang), "note": _say(f"preset.{name}.note", lang), **asdict(state)}
            for name, state in PRESETS.items()
        ],
        "sentence": [
            {"word": WORDS[word][0](lang), "gloss": WORDS[word][0](other), "vector": list(WORDS[word][1])}
            for word in SENTENCE[lang]
        ],
        "places": swapped_places(lang),
    }


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class PositionMap(bench_class()):
        """Lives in the browser; every part of its `State` comes back as the learner moves it."""

        _esm = script("position_map")
        encoding = t.Enum(ENCODINGS, START.encoding).tag(sync=True)
        n = t.Int(START.n, min=2, max=MOST_POSITIONS).tag(sync=True)
        d_model = t.Enum(WIDTHS, START.d_model).tag(sync=True)
        position = t.Int(START.position, min=0, max=MOST_POSITIONS - 1).tag(sync=True)
        pair = t.Int(START.pair, min=0, max=max(WIDTHS) // 2 - 1).tag(sync=True)
        offset = t.Int(START.offset, min=0, max=MOST_OFFSET).tag(sync=True)
        with_positions = t.Bool(START.with_positions).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        sentence = t.List(t.Dict()).tag(sync=True)
        places = t.List(t.Int()).tag(sync=True)

        def __init__(self, lang: str, first: State) -> None:
            super().__init__(initial=asdict(first), **asdict(first), **_texts(lang))

        def spoken(self, lang: str) -> dict[str, Any]:
            return _texts(lang)

        def state(self) -> State:
            """What is shown now."""
            return State(*(getattr(self, name) for name in State.__dataclass_fields__)).clamped()

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.state())

        def picture(self) -> Picture:
            return picture(self.lang, self.state())

    return PositionMap


# --- the static twin ---


def listed_pairs(d_model: int, pair: int) -> list[int]:
    """The pairs that the table lists: all, or eight from the fastest to the slowest and the one under the cursor."""
    pairs = d_model // 2
    step = max(pairs // LISTED_PAIRS, 1)
    return sorted({*range(0, pairs, step), pairs - 1, pair})


def twin(lang: str, state: State) -> tuple[str, list[list[str]], str]:
    """Title, table of pairs at the cursor's position and k further, and a sentence."""
    n, d, p, k, kind = state.n, state.d_model, state.position, state.offset, state.encoding
    encoding = encode(n + k, d, kind)
    waves = frequencies(d, kind)[0::2]
    header = [
        _say("pair", lang),
        _say("frequency", lang),
        _say("wavelength", lang),
        _say("here", lang, position=p),
        _say("there", lang, position=p + k),
        _say("turn", lang, k=k),
    ]
    rows = []
    for i in listed_pairs(d, state.pair):
        turned = turns(n, d, i, k, kind)
        rows.append(
            [
                str(i),
                number(waves[i], 4) if np.isfinite(waves[i]) else _say("none", lang),
                number(2 * np.pi / waves[i], 1) if np.isfinite(waves[i]) else _say("none", lang),
                _pair(encoding[p, 2 * i : 2 * i + 2]),
                _pair(encoding[p + k, 2 * i : 2 * i + 2]),
                number(turned.angle[p], 4),
            ]
        )
    return _say("title", lang), [header, *rows], ("" if lang == "ja" else " ").join(_sentences(lang, state))


def _pair(values: NDArray[np.float64]) -> str:
    return f"({number(values[0], 3)}, {number(values[1], 3)})"


def _sentences(lang: str, state: State) -> list[str]:
    """What is under the cursor, how it turns, and what the swap does."""
    n, d, p, k, kind = state.n, state.d_model, state.position, state.offset, state.encoding
    values = encode(p + 1, d, kind)[p, 2 * state.pair : 2 * state.pair + 2]
    turned = turns(n, d, state.pair, k, kind)
    turn = (
        _say("turn_same", lang, k=k, turn=number(turned.angle[p], 4))
        if turned.same
        else _say("turn_differs", lang, k=k, low=number(turned.angle.min()), high=number(turned.angle.max()))
    )
    difference = swap(lang, state.with_positions, kind).difference.max()
    first, second = (number(value, 3) for value in values)
    return [
        _say("state", lang, encoding=_say(f"encoding_{kind}", lang), position=p, pair=state.pair, first=first, second=second),
        turn,
        _say("swap_differs" if state.with_positions else "swap_same", lang, difference=number(difference, 3)),
    ]


def picture(lang: str, state: State = START) -> Picture:
    """The explorer at one state, drawn with matplotlib: the map, the circle of one pair, and the curve of dot products."""
    title, table, text = twin(lang, state)
    n, d, p, i, k, kind = state.n, state.d_model, state.position, state.pair, state.offset, state.encoding
    encoding = encode(n + k, d, kind)
    from matplotlib.patches import Rectangle

    with figures.style():
        figure = figures.new_figure(900, 330)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1.35, 0.9, 1])
        drawn = left.imshow(encoding[:n], cmap="PuOr", vmin=-1, vmax=1, aspect="auto", interpolation="nearest")
        bar = figure.colorbar(drawn, ax=left, fraction=0.05, pad=0.02)
        bar.set_ticks([-1, 0, 1], labels=["−1", "0", "1"])
        for edge, thickness in (("white", 3.5), ("black", 1.6)):
            left.add_patch(Rectangle((-0.5, p - 0.5), d, 1, fill=False, edgecolor=edge, linewidth=thickness))
            left.add_patch(Rectangle((2 * i - 0.5, -0.5), 2, n, fill=False, edgecolor=edge, linewidth=thickness))
        left.set(title=_say("map", lang), xlabel=_say("map_component", lang), ylabel=_say("map_position", lang))

        points = encoding[:, 2 * i : 2 * i + 2]
        x, y = (points[:, 0], points[:, 1]) if kind == "PE1" else (points[:, 1], points[:, 0])
        around = np.linspace(0, 2 * np.pi, 200)
        middle.plot(np.cos(around), np.sin(around), color="#999999", linewidth=1)
        middle.plot(x[:n], y[:n], ".", color="#999999", markersize=5)
        middle.plot(x[p], y[p], "o", color=figures.COLOURS[0], markersize=10, label=_say("dot_here", lang, position=p))
        middle.plot(
            x[p + k],
            y[p + k],
            "s",
            markerfacecolor="none",
            markeredgecolor=figures.COLOURS[1],
            markersize=15,
            markeredgewidth=2.2,
            label=_say("dot_there", lang, position=p + k),
        )
        middle.set(xlim=(-1.3, 1.3), ylim=(-1.75, 1.3), aspect="equal", xticks=[-1, 0, 1], yticks=[-1, 0, 1])
        middle.set(title=_say("circle", lang, pair=i), xlabel="cos", ylabel="sin")
        middle.legend(loc="lower center", fontsize=8, ncols=2, columnspacing=0.8, handletextpad=0.2)

        dots = similarities(n, d, p, kind)
        right.plot(np.arange(n) - p, dots, color=figures.COLOURS[0], linewidth=2)
        right.plot(0, dots[p], "o", color="black")
        right.set(xlim=(1 - n, n - 1), ylim=(min(0, dots.min() * 1.1), dots.max() * 1.1))
        right.set(title=_say("curve", lang), xlabel=_say("curve_k", lang), ylabel=_say("curve_y", lang))
        right.grid(True, color="#dddddd", linewidth=0.8)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)
