"""The path race: how many steps a signal needs from one word to another in an RNN, in convolutions and in self-attention.

Section 4 and Table 1 of the paper: maximum path length, and the operations that must wait for one another.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from functools import cache
from typing import Any

import numpy as np

from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture
from transformer_lite.language import Text, check_language, message

MOST_WORDS = 32
KERNELS = (3, 5, 7)
LANES = ("rnn", "convolution", "dilated", "attention")
# Table 1 of the paper: maximum path length, and sequential operations of one layer.
ORDERS = {
    "rnn": ("O(n)", "O(n)"),
    "convolution": ("O(n/k)", "O(1)"),
    "dilated": ("O(logₖ n)", "O(1)"),
    "attention": ("O(1)", "O(1)"),
}
# The running example, shown instead of numbers where it is long enough.
SENTENCE = {
    "ja": (Text("犬", "dog"), Text("が", "(subject)"), Text("猫", "cat"), Text("を", "(object)"), Text("追いかけた", "chased")),
    "en": (Text("（冠詞）", "the"), Text("犬", "dog"), Text("追いかけた", "chased"), Text("（冠詞）", "the"), Text("猫", "cat")),
}

_WORDS = (
    "question", "open_answer", "answer", "hint", "strip", "strip_role", "source", "target", "n", "kernel", "step", "play",
    "pause", "lane_rnn", "lane_convolution", "lane_dilated", "lane_attention", "word", "timeline", "timeline_label", "arrived",
    "running", "never", "table", "column_lane", "column_now", "column_longest", "column_sequential", "column_path",
    "column_operations", "serial", "layers", "counting", "counting_text", "state", "state_lane", "state_never", "backwards",
    "comma",
)  # fmt: skip


# --- maths ---


def passes_to(lane: str, n: int, position: int, layer: int, kernel: int = 3) -> list[int]:
    """Where what stands at ``position`` can be after one more step: the next word (RNN), or the words whose window reaches it.

    Args:
        lane: "rnn" (left to right), "convolution", "dilated" or "attention".
        n: number of words.
        position: from 0.
        layer: which layer it enters, from 0. The dilation of layer l is ((kernel + 1) / 2)^l: the fastest growth at which
            windows centred on a word leave no gap within the sentence.
        kernel: the width of the window, odd.
    """
    if lane == "attention":
        return list(range(n))
    if lane == "rnn":
        return [position + 1] if position + 1 < n else []
    radius = (kernel - 1) // 2
    dilation = (radius + 1) ** layer if lane == "dilated" else 1
    return [p for p in range(position - radius * dilation, position + radius * dilation + 1, dilation) if 0 <= p < n]


def path(lane: str, n: int, source: int, target: int, kernel: int = 3) -> list[int] | None:
    """The positions of a shortest way from ``source`` to ``target``, both included, one step apart; None if there is no way.

    Found breadth first, layer by layer. A position that comes twice in a row is a layer in which the signal goes straight up.

    Raises:
        ValueError: an unknown lane, positions outside, source and target the same, or a kernel that is not odd.

    >>> path("dilated", 9, 0, 5)
    [0, 1, 1, 5]
    """
    _check(lane, n, source, target, kernel)
    layers: list[dict[int, int]] = []  # of each layer: position -> where it came from, as near to the source as can be
    reached = {source}
    while target not in reached:
        came: dict[int, int] = {}
        for position in sorted(reached, key=lambda p: abs(p - source)):
            for p in passes_to(lane, n, position, len(layers), kernel):
                came.setdefault(p, position)
        if not came:
            return None
        layers.append(came)
        reached = set(came)
    found = [target]
    for came in reversed(layers):
        found.append(came[found[-1]])
    return found[::-1]


def hops(lane: str, n: int, source: int, target: int, kernel: int = 3) -> int | None:
    """How many steps (RNN) or layers it takes until the output at ``target`` can depend on the input at ``source``; None: never.

    >>> [hops(lane, 32, 0, 31) for lane in LANES]
    [31, 31, 5, 1]
    """
    found = path(lane, n, source, target, kernel)
    return None if found is None else len(found) - 1


def longest(lane: str, n: int, kernel: int = 3) -> int:
    """The maximum path length: `hops` between the words that are farthest apart."""
    return hops(lane, n, 0, n - 1, kernel)  # type: ignore[return-value]  # to the right there always is a way


def sequential_steps(lane: str, n: int, kernel: int = 3) -> int:
    """How many steps wait for one another until every word is computed and can depend on every word (RNN: on all to its left).

    An RNN computes its n states one after the other; the other layers compute all words at once, and only layers wait.
    """
    return n if lane == "rnn" else longest(lane, n, kernel)


def _check(lane: str, n: int, source: int, target: int, kernel: int) -> None:
    if lane not in LANES:
        raise ValueError(f"lane must be one of {', '.join(LANES)}; got {lane!r}.")
    if kernel < 3 or kernel % 2 == 0:
        raise ValueError(f"kernel must be odd and at least 3; got {kernel}.")
    if not (0 <= source < n and 0 <= target < n) or source == target:
        raise ValueError(f"source and target must be two different positions from 0 to {n - 1}; got {source} and {target}.")


# --- the state ---


@dataclass(frozen=True)
class State:
    """What the race shows: ``n`` words, a signal from ``source`` to ``target`` at time ``step``, the window ``kernel``."""

    n: int = MOST_WORDS
    source: int = 0
    target: int = MOST_WORDS - 1
    kernel: int = 3
    step: int = 5

    def clamped(self) -> State:
        """The same inside the sentence, with two different words, whatever order its parts arrived in."""
        source, target = (min(each, self.n - 1) for each in (self.source, self.target))
        if source == target:
            target = source - 1 if source else 1
        return replace(self, source=source, target=target)

    def paths(self) -> dict[str, list[int] | None]:
        """The way in each lane."""
        return {lane: path(lane, self.n, self.source, self.target, self.kernel) for lane in LANES}


# The surprise: at step 5 the dilated convolution has arrived, attention has long been there, and the RNN has hardly left.
START = State()
PRESETS = {
    "MC71": State(step=1),
    "half": State(16, 0, 15, 3, 4),
    "neighbours": State(32, 15, 16, 3, 1),
    "sentence": State(5, 0, 4, 3, 1),
    "backwards": State(32, 31, 0, 3, 5),
    "wide": State(32, 0, 31, 7, 3),
}


def explorer(lang: str, **state: Any) -> Any:
    """The path race: choose two words and see how many steps a signal takes between them in four architectures.

    Args:
        lang: ``"ja"`` or ``"en"``.
        state: where it starts: ``n`` (2 to 32), ``source`` and ``target`` (different positions from 0), ``kernel`` (3, 5 or 7),
            ``step``.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: a state that the race cannot show.
    """
    check_language(lang)
    first = _checked(replace(State(), **state), state) if state else START
    return picture(lang, first) if static() else widget_class()(lang, first)


def _checked(first: State, given: dict[str, Any]) -> State:
    if not 2 <= first.n <= MOST_WORDS:
        raise ValueError(f"n must be between 2 and {MOST_WORDS}; got {first.n!r}.")
    if first.kernel not in KERNELS:
        raise ValueError(f"kernel must be one of {', '.join(map(str, KERNELS))}; got {first.kernel!r}.")
    if not 0 <= first.step < MOST_WORDS:
        raise ValueError(f"step must be between 0 and {MOST_WORDS - 1}; got {first.step!r}.")
    if "target" not in given:
        first = replace(first, target=first.n - 1)
    _check("rnn", first.n, first.source, first.target, first.kernel)
    return first


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.path_race.{key}", lang, **parameters)


def _texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    other = "en" if lang == "ja" else "ja"
    return {
        "lang": lang,
        "strings": {word: _say(word, lang) for word in _WORDS}
        | {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")},
        "presets": [
            {"label": _say(f"preset.{name}.label", lang), "note": _say(f"preset.{name}.note", lang), **asdict(state)}
            for name, state in PRESETS.items()
        ],
        "sentence": [{"word": word(lang), "gloss": word(other)} for word in SENTENCE[lang]],
        "orders": [{"lane": lane, "path": ORDERS[lane][0], "operations": ORDERS[lane][1]} for lane in LANES],
    }


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class PathRace(bench_class()):
        """Lives in the browser; every part of its `State` comes back as the learner moves it."""

        _esm = script("path_race")
        n = t.Int(START.n, min=2, max=MOST_WORDS).tag(sync=True)
        source = t.Int(START.source, min=0, max=MOST_WORDS - 1).tag(sync=True)
        target = t.Int(START.target, min=0, max=MOST_WORDS - 1).tag(sync=True)
        kernel = t.Enum(KERNELS, START.kernel).tag(sync=True)
        step = t.Int(START.step, min=0, max=MOST_WORDS - 1).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        sentence = t.List(t.Dict()).tag(sync=True)
        orders = t.List(t.Dict()).tag(sync=True)

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

    return PathRace


# --- the static twin ---


def _name(lane: str, state: State, lang: str) -> str:
    return _say(f"lane_{lane}", lang, kernel=state.kernel)


def _word(state: State, position: int, lang: str) -> str:
    if state.n <= len(SENTENCE[lang]):
        return SENTENCE[lang][position](lang)
    return _say("word", lang, number=position + 1)


def twin(lang: str, state: State) -> tuple[str, list[list[str]], str]:
    """Title, table of the four lanes, and a sentence."""
    columns = ("lane", "now", "longest", "sequential", "path", "operations")
    header = [_say(f"column_{name}", lang) for name in columns]
    rows, said = [], []
    for lane, way in state.paths().items():
        now = "—" if way is None else str(len(way) - 1)
        steps = sequential_steps(lane, state.n, state.kernel)
        serial = _say("serial" if lane == "rnn" else "layers", lang, steps=steps)
        rows.append([_name(lane, state, lang), now, str(longest(lane, state.n, state.kernel)), serial, *ORDERS[lane]])
        said.append(_say("state_never" if way is None else "state_lane", lang, lane=_name(lane, state, lang), hops=now))
    text = _say(
        "state",
        lang,
        source=_word(state, state.source, lang),
        target=_word(state, state.target, lang),
        lanes=_say("comma", lang).join(said),
    )
    if state.target < state.source:
        text += ("" if lang == "ja" else " ") + _say("backwards", lang)
    return _say("title", lang), [header, *rows], text


def picture(lang: str, state: State = START) -> Picture:
    """The race at one state, drawn with matplotlib: each lane's way, and beside it what is computed at which step."""
    title, table, text = twin(lang, state)
    with figures.style():
        figure = figures.new_figure(900, 430)
        grid = figure.subplots(len(LANES), 2, width_ratios=[4.2, 1], sharex="col")
        for (track, timeline), (lane, way) in zip(grid, state.paths().items(), strict=True):
            track.plot(range(state.n), np.zeros(state.n), "o", color="#bbbbbb", markersize=4)
            track.plot(state.source, 0, "s", color=figures.COLOURS[0], markersize=9)
            track.plot(state.target, 0, "o", color="black", markersize=13, fillstyle="none", markeredgewidth=2, clip_on=False)
            for i, (a, b) in enumerate(zip((way or [])[:-1], (way or [])[1:], strict=True)):
                taken = i < state.step
                along, up = _arc(a, b)
                track.plot(
                    along,
                    up,
                    color=figures.COLOURS[1] if taken else "#777777",
                    linewidth=2.2 if taken else 1,
                    linestyle="-" if taken else ":",
                )
            at = way[min(state.step, len(way) - 1)] if way else state.source
            track.plot(at, 0, "o", color=figures.COLOURS[1], markersize=8, clip_on=False)
            track.set(xlim=(-0.7, state.n - 0.3), ylim=(-0.3, 1.2), yticks=[])
            track.set_title(_result(lane, state, way, lang), loc="left", size=10)
            track.spines[["left", "bottom"]].set_visible(False)
            track.tick_params(length=0)
            timeline.imshow(_timeline(lane, state), cmap="Greys", vmin=0, vmax=1.4, aspect="auto", interpolation="nearest")
            timeline.set(xlim=(-0.5, MOST_WORDS - 0.5 if state.n > 5 else 4.5), xticks=[], yticks=[])
        names = [_word(state, position, lang) for position in range(state.n)]
        few = range(state.n) if state.n <= 5 else range(0, state.n, max(state.n // 8, 1))
        grid[-1][0].set_xticks(list(few), [names[i] if state.n <= 5 else str(i + 1) for i in few])
        grid[0][1].set_title(_say("timeline", lang), size=9)
        grid[-1][1].set_xlabel(_say("timeline_label", lang), size=9)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _arc(a: int, b: int) -> tuple[np.ndarray, np.ndarray]:
    """A curve from one position to the next; a small loop where the signal stays and only goes up a layer."""
    t = np.linspace(0, 1, 40)
    if a == b:
        return a + 0.3 * np.sin(2 * np.pi * t), 0.2 * (1 - np.cos(2 * np.pi * t))
    return a + (b - a) * t, min(0.15 + 0.05 * abs(b - a), 1.0) * 4 * t * (1 - t)


def _result(lane: str, state: State, way: list[int] | None, lang: str) -> str:
    if way is None:
        return f"{_name(lane, state, lang)}: {_say('never', lang)}"
    hops_ = len(way) - 1
    key = "arrived" if state.step >= hops_ else "running"
    return f"{_name(lane, state, lang)}: {_say(key, lang, hops=hops_, step=min(state.step, hops_))}"


def _timeline(lane: str, state: State) -> np.ndarray:
    """(n, steps): 1 where a word is computed at that step."""
    steps = sequential_steps(lane, state.n, state.kernel)
    return np.eye(state.n) if lane == "rnn" else np.ones((state.n, steps))
