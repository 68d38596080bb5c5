"""The Q·K·V bench: its first state, its widget in the browser, and its static twin (section 3.2.1 of the paper, d_k = 2)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.explore.maths import plane_attention
from transformer_lite.language import Text, check_language, message

MOST_TOKENS = 10
LIMIT = 4.0  # the planes reach from -4 to 4; the browser's bench keeps the query within this length

TOKENS = (Text("犬", "dog"), Text("猫", "cat"), Text("追いかけた", "chased"))
# The query points almost along the key of the dog, but the cat's longer key wins: a dot product is not an angle.
KEYS = ((1.5, 0.0), (2.5, 2.0), (-1.0, 1.5))
VALUES = ((-3.0, -1.5), (3.0, -1.0), (0.0, 3.0))
QUERY = (2.4, -0.4)
NEAR, WINNER = 0, 1

_WORDS = (
    "guess", "open_answer", "plane_keys", "plane_values", "plane_role", "table", "token", "key", "score_scaled", "score_unscaled",
    "weight", "value", "total", "output", "direction", "length", "scale", "presets", "reset", "hint", "state", "state_weight",
    "state_comma",
)  # fmt: skip


def explorer(
    lang: str,
    tokens: Sequence[str] | None = None,
    *,
    keys: ArrayLike | None = None,
    values: ArrayLike | None = None,
    query: ArrayLike | None = None,
) -> Any:
    """The Q·K·V bench: turn and stretch one query in the plane, and see scores, weights and output follow.

    Args:
        lang: ``"ja"`` or ``"en"``.
        tokens: 1 to 10 names; 犬, 猫, 追いかけた (dog, cat, chased) if None.
        keys: (n, 2) between −4 and 4; made for the tokens if None.
        values: (n, 2) between −4 and 4; made for the tokens if None.
        query: (2,), no longer than 4; where the bench starts.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: too many tokens, or arrays that do not fit them.
    """
    first = start(lang, tokens, keys, values, query)
    return picture(first) if static() else bench(first)


@dataclass(frozen=True)
class Start:
    """The bench's first state: ``tokens`` (n), ``keys`` (n, 2), ``values`` (n, 2), ``query`` (2,)."""

    lang: str
    tokens: tuple[str, ...]
    glosses: tuple[str, ...]
    keys: NDArray[np.float64]
    values: NDArray[np.float64]
    query: NDArray[np.float64]
    story: bool  # whether the question about the dog and the cat fits


def start(
    lang: str,
    tokens: Sequence[str] | None = None,
    keys: ArrayLike | None = None,
    values: ArrayLike | None = None,
    query: ArrayLike | None = None,
) -> Start:
    """Check what the learner gave and fill in the rest; ``ValueError`` says what does not fit."""
    check_language(lang)
    ours = tokens is None
    names = tuple(token(lang) for token in TOKENS) if tokens is None else tuple(str(token) for token in tokens)
    glosses = tuple(token("en" if lang == "ja" else "ja") for token in TOKENS) if ours else ("",) * len(names)
    if not 1 <= len(names) <= MOST_TOKENS:
        raise ValueError(f"tokens must hold 1 to {MOST_TOKENS} names; got {len(names)}.")
    given = [keys, values]
    for i, default in enumerate((KEYS, VALUES)):
        if given[i] is None:
            given[i] = default if ours else _ring(len(names), turn=i)
    return Start(
        lang=lang,
        tokens=names,
        glosses=glosses,
        keys=_points(given[0], "keys", len(names)),
        values=_points(given[1], "values", len(names)),
        query=_query(QUERY if query is None else query),
        story=ours and keys is None and query is None,
    )


def _ring(n: int, turn: int) -> NDArray[np.float64]:
    """n different points around the origin, in halves, so that no two labels fall on each other."""
    angles = 2 * np.pi * (np.arange(n) * (3 if turn and n % 3 else 1) / n + 0.08)
    lengths = np.where(np.arange(n) % 2 == 0, 3.5, 2.2)
    return np.round(np.stack([lengths * np.cos(angles), lengths * np.sin(angles)], axis=1), 1)


def _points(points: Any, name: str, n: int) -> NDArray[np.float64]:
    array = np.asarray(points, dtype=np.float64)
    if array.shape != (n, 2):
        raise ValueError(f"{name} must have shape (n, 2) with n = {n} tokens; got {array.shape}.")
    if not np.isfinite(array).all() or np.abs(array).max() > LIMIT:
        raise ValueError(f"{name} must lie between -{LIMIT:g} and {LIMIT:g}, where the plane shows them.")
    return array


def _query(query: ArrayLike) -> NDArray[np.float64]:
    array = np.asarray(query, dtype=np.float64)
    if array.shape != (2,) or not np.isfinite(array).all() or np.hypot(*array) > LIMIT + 1e-9:
        raise ValueError(f"query must be two finite numbers and no longer than {LIMIT:g}; got {array.tolist()}.")
    return array


# --- words ---


def words(first: Start) -> dict[str, str]:
    """Every text that the bench in the browser shows, in the bench's language."""
    found = {word: message(f"explore.qkv.{word}", first.lang) for word in _WORDS}
    if first.story:
        names = {"near": first.tokens[NEAR], "winner": first.tokens[WINNER]}
        found["question"] = message("explore.qkv.question", first.lang, **names)
        found["answer"] = message("explore.qkv.answer", first.lang, **names)
    else:
        found["question"] = message("explore.qkv.question_general", first.lang)
        found["answer"] = message("explore.qkv.answer_general", first.lang)
    return found


def presets(first: Start) -> list[dict[str, Any]]:
    """The named states: each is a trap that exams set, with a sentence that says what to look at."""
    length = float(np.hypot(*first.query))
    longest = first.query * (LIMIT / length) if length else np.array([LIMIT, 0.0])
    states: dict[str, tuple[NDArray[np.float64], bool]] = {
        "unscaled": (first.query, False),
        "zero": (np.zeros(2), True),
        "longest": (np.round(longest, 3), True),
    }
    negative = _all_negative(first.keys)
    if negative is not None:
        states["negative"] = (negative, True)
    return [
        {
            "label": message(f"explore.qkv.preset.{name}.label", first.lang),
            "note": message(f"explore.qkv.preset.{name}.note", first.lang),
            "query": query.tolist(),
            "scaled": scaled,
        }
        for name, (query, scaled) in states.items()
    ]


def _all_negative(keys: NDArray[np.float64]) -> NDArray[np.float64] | None:
    """A query whose dot product with every key is negative (the most negative worst case), or None where keys lie all around."""
    angles = np.deg2rad(np.arange(0, 360, 5))
    queries = np.round(1.5 * np.stack([np.cos(angles), np.sin(angles)], axis=1), 1)
    worst = (queries @ keys.T).max(axis=1)  # (72, 2) @ (2, n) -> (72, n)
    best = int(worst.argmin())
    return queries[best] if worst[best] < -0.1 else None


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class QkvBench(bench_class()):
        """Lives in the browser; ``query``, ``scaled`` and ``preset`` come back as the learner moves it."""

        _esm = script("qkv_bench")
        tokens = t.List(t.Unicode()).tag(sync=True)
        glosses = t.List(t.Unicode()).tag(sync=True)
        key_vectors = t.List(t.List(t.Float())).tag(sync=True)  # "keys" is ipywidgets' own
        value_vectors = t.List(t.List(t.Float())).tag(sync=True)
        query = t.List(t.Float(), minlen=2, maxlen=2).tag(sync=True)
        scaled = t.Bool(True).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)

        def __init__(self, first: Start) -> None:
            self._first = first
            super().__init__(query=first.query.tolist(), initial={"query": first.query.tolist(), "scaled": True}, **_texts(first))

        @t.validate("query")
        def _check_query(self, proposal: Any) -> list[float]:
            return _query(proposal["value"]).tolist()

        def spoken(self, lang: str) -> dict[str, Any]:
            first = self._first
            story = start(lang) if first.glosses[0] else first
            self._first = replace(first, lang=lang, tokens=story.tokens, glosses=story.glosses)
            return _texts(self._first)

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self._first, np.asarray(self.query), self.scaled)

        def picture(self) -> Picture:
            return picture(self._first, np.asarray(self.query), self.scaled)

    return QkvBench


def _texts(first: Start) -> dict[str, Any]:
    """The traits that follow from the first state and its language."""
    return {
        "lang": first.lang,
        "tokens": list(first.tokens),
        "glosses": list(first.glosses),
        "key_vectors": first.keys.tolist(),
        "value_vectors": first.values.tolist(),
        "strings": words(first),
        "presets": presets(first),
    }


def bench(first: Start) -> Any:
    """The widget in its first state."""
    return widget_class()(first)


# --- the static twin ---


def twin(first: Start, query: NDArray[np.float64], scaled: bool) -> tuple[str, list[list[str]], str]:
    """Title, table and sentence of one state."""
    lang = first.lang
    products, scores, weights, output = plane_attention(query, first.keys, first.values, scaled)
    header = [
        message("explore.qkv.token", lang),
        message("explore.qkv.key", lang),
        "q·k",
        message(f"explore.qkv.score_{'scaled' if scaled else 'unscaled'}", lang),
        message("explore.qkv.weight", lang),
        message("explore.qkv.value", lang),
    ]
    rows = [
        [token, _pair(key, 1), number(product), number(score), number(weight), _pair(value, 1)]
        for token, key, product, score, weight, value in zip(
            first.tokens, first.keys, products, scores, weights, first.values, strict=True
        )
    ]
    total = [message("explore.qkv.total", lang), "", "", "", number(float(weights.sum())), _pair(output, 2)]
    weight_list = message("explore.qkv.state_comma", lang).join(
        message("explore.qkv.state_weight", lang, token=token, weight=number(weight))
        for token, weight in zip(first.tokens, weights, strict=True)
    )
    text = message(
        "explore.qkv.state",
        lang,
        x=number(query[0]),
        y=number(query[1]),
        weights=weight_list,
        out_x=number(output[0]),
        out_y=number(output[1]),
    )
    return message("explore.qkv.title", lang), [header, *rows, total], text


def _pair(point: NDArray[np.float64], digits: int) -> str:
    return f"({number(point[0], digits)}, {number(point[1], digits)})"


def picture(first: Start, query: NDArray[np.float64] | None = None, scaled: bool = True) -> Picture:
    """The bench at one state, drawn with matplotlib: query and keys, weights, values and output."""
    lang = first.lang
    query = first.query if query is None else query
    title, table, text = twin(first, query, scaled)
    _, _, weights, output = plane_attention(query, first.keys, first.values, scaled)
    colours = [figures.COLOURS[i % len(figures.COLOURS)] for i in range(len(first.tokens))]
    with figures.style():
        figure = figures.new_figure(900, 330)
        left, middle, right = figure.subplots(1, 3, width_ratios=[1, 0.72, 1])
        for axes, name in ((left, "plane_keys"), (right, "plane_values")):
            axes.set(xlim=(-4.3, 4.3), ylim=(-4.3, 4.3), aspect="equal", xticks=range(-4, 5, 2), yticks=range(-4, 5, 2))
            axes.set_title(message(f"explore.qkv.{name}", lang))
            axes.axhline(0, color="#999999", linewidth=0.8)
            axes.axvline(0, color="#999999", linewidth=0.8)
        for token, key, weight, colour in zip(first.tokens, first.keys, weights, colours, strict=True):
            arrow = {"arrowstyle": "-|>", "color": colour, "linewidth": 1.5 + 3 * weight, "shrinkA": 0, "shrinkB": 0}
            left.annotate("", key, (0, 0), arrowprops=arrow)
            _label(left, token, key)
        left.annotate("", query, (0, 0), arrowprops=arrow | {"color": "black", "linewidth": 2.5})
        _label(left, "q", query, below=query[1] < 0)

        places = np.arange(len(first.tokens))
        middle.barh(places, weights, color=colours)
        for i, weight in enumerate(weights):
            middle.text(weight + 0.02, i, number(weight), va="center")
        middle.set(xlim=(0, 1.25), xticks=[0, 0.5, 1.0], yticks=places, yticklabels=first.tokens)
        middle.invert_yaxis()
        middle.set_title(message("explore.qkv.weight", lang))

        corners = _hull(first.values)
        right.fill(corners[:, 0], corners[:, 1], facecolor="#eeeeee", edgecolor="#777777", linestyle="--")
        for token, value, weight, colour in zip(first.tokens, first.values, weights, colours, strict=True):
            right.plot([value[0], output[0]], [value[1], output[1]], color=colour, linewidth=1 + 5 * weight)
            right.plot(*value, "o", color=colour, markersize=6 + 10 * np.sqrt(weight))
            _label(right, token, value, away=11)
        right.plot(*output, "D", color="black", markersize=9, markeredgecolor="white")
        _label(right, message("explore.qkv.output", lang), output, below=True)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _label(axes: Any, name: str, point: NDArray[np.float64], below: bool | None = None, away: float = 6) -> None:
    below = point[1] < 0 if below is None else below
    side = "right" if point[0] > 2 else "left" if point[0] < -2 else "center"
    from matplotlib.patheffects import withStroke

    axes.annotate(
        name,
        point,
        (0, -away if below else away),
        textcoords="offset points",
        ha=side,
        va="top" if below else "bottom",
        path_effects=[withStroke(linewidth=3, foreground="white")],
    )


def _hull(points: NDArray[np.float64]) -> NDArray[np.float64]:
    """The corners of the smallest convex polygon around ``points`` (n, 2), counter-clockwise (Andrew's monotone chain)."""
    ordered = sorted(map(tuple, points.tolist()))
    if len(ordered) < 3:
        return np.asarray(ordered)

    def chain(list_: list[tuple[float, float]]) -> list[tuple[float, float]]:
        kept: list[tuple[float, float]] = []
        for p in list_:
            while len(kept) > 1 and _cross(kept[-2], kept[-1], p) <= 0:
                kept.pop()
            kept.append(p)
        return kept[:-1]

    return np.asarray(chain(ordered) + chain(ordered[::-1]))


def _cross(o: tuple[float, float], a: tuple[float, float], b: tuple[float, float]) -> float:
    return (a[0] - o[0]) * (b[1] - o[1]) - (a[1] - o[1]) * (b[0] - o[0])
