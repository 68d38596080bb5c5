"""The wiring board: plug Q, K and V into their sources, and see which attention it is (section 3.2.3 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import (
    Attention,
    Projections,
    attention_scores,
    cross_attention,
    influence_matrix,
    scaled_dot_product_attention,
    self_attention,
    softmax,
)
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Matrix, Picture, number
from transformer_lite.language import check_language, message

SOURCES = ("x", "memory", "y")  # the encoder's input, its final output, the decoder's states
GOALS = ("encoder", "decoder", "cross")
DIRECTIONS = ("ja-en", "en-ja")
SENTENCES = {"ja": ("犬", "が", "猫", "を", "追いかけた"), "en": ("the", "dog", "chased", "the", "cat")}
GLOSSES = {"ja": ("dog", "subject", "cat", "object", "chased"), "en": ("冠詞", "犬", "追いかけた", "冠詞", "猫")}
END, END_GLOSS = "<EOS>", {"ja": "end", "en": "文末"}  # by the language of the sentence that it ends

# Features of a token: dog, cat, chase, subject, object, end. A decoder's state tells which word its position is about to write.
_ENCODER = {
    "ja": [[2, 0, 0, 1, 0, 0], [0, 0, 0, 2, 0, 0], [0, 2, 0, 0, 1, 0], [0, 0, 0, 0, 2, 0], [0, 0, 2, 0, 0, 1]],
    "en": [[0, 0, 0, 1, 0, 0], [2, 0, 0, 1.6, 0, 0], [0, 0, 2, 0, 0, 0], [0, 0, 0, 0, 1, 0], [0, 2, 0, 0, 1.6, 1]],
}
_DECODER = {
    "en": [[1, 0, 0, 1, 0, 0], [2, 0, 0, 0.5, 0, 0], [0, 0, 2, 0, 0, 0], [0, 1, 0, 0, 1, 0], [0, 2, 0, 0, 0.5, 0],
           [0, 0, 0.5, 0, 0, 2]],
    "ja": [[2, 0, 0, 0.5, 0, 0], [0.5, 0, 0, 1.5, 0, 0], [0, 2, 0, 0, 0.5, 0], [0, 0.5, 0, 0, 1.5, 0], [0, 0, 2, 0, 0, 0],
           [0, 0, 0, 0, 0, 2]],
}  # fmt: skip
D_MODEL = 6

_WORDS = (
    "guess", "question", "open_answer", "answer", "presets", "reset", "hint", "goal", "goal_encoder", "goal_decoder",
    "goal_cross", "direction", "direction_ja-en", "direction_en-ja", "causal", "board", "source_x", "source_memory", "source_y",
    "from", "map", "map_role", "queries", "weights", "row_query", "column_key", "row_sum", "influence", "row_output",
    "column_input", "influence_none", "shapes", "shapes_none", "unit", "right", "trap", "influence_cell", "moves", "stays",
    "state", "state_weight", "comma", "legend",
)  # fmt: skip
_UNITS = (
    "self_encoder",
    "self_causal_encoder",
    "self_decoder",
    "self_unmasked",
    "cross",
    "reversed",
    "sided",
    "split",
    "impossible",
)
_VERDICTS = (
    "impossible", "right_encoder", "next_layer", "mc22", "encoder_y", "encoder_mixed", "right_decoder", "cm4", "decoder_cross",
    "decoder_other", "right_cross", "ca1", "ca2", "ca3", "ca4", "ca5", "mc30",
)  # fmt: skip
RIGHT = ("right_encoder", "next_layer", "right_decoder", "right_cross")


class Wiring(NamedTuple):
    """What the board shows: which sublayer is wanted, where its three inputs come from, and whether a causal mask is on."""

    goal: str
    query_from: str
    key_from: str
    value_from: str
    causal: bool = False


START = Wiring("cross", "memory", "y", "y")  # the surprise: no error, but five outputs for six words
PRESETS = {
    "right_cross": Wiring("cross", "y", "memory", "memory"),
    "right_encoder": Wiring("encoder", "x", "x", "x"),
    "right_decoder": Wiring("decoder", "y", "y", "y", True),
    "ca1": START,
    "ca2": Wiring("cross", "y", "y", "y", True),
    "ca3": Wiring("cross", "y", "memory", "memory", True),
    "ca4": Wiring("cross", "y", "x", "x"),
    "ca5": Wiring("cross", "y", "memory", "x"),
    "mc31": Wiring("cross", "y", "memory", "y"),
    "mc22": Wiring("encoder", "x", "x", "x", True),
    "cm4": Wiring("decoder", "y", "y", "y"),
}


def explorer(lang: str, direction: str = "ja-en") -> Any:
    """The wiring board: where Q, K and V come from decides which attention it is, its shapes and who can influence whom.

    Args:
        lang: ``"ja"`` or ``"en"``.
        direction: ``"ja-en"`` (the decoder writes English) or ``"en-ja"``.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: an unknown language or direction.
    """
    check_language(lang)
    if direction not in DIRECTIONS:
        raise ValueError(f"direction must be one of {', '.join(DIRECTIONS)}; got {direction!r}.")
    return picture(lang, direction, START) if static() else widget_class()(lang, direction)


# --- the numbers ---


@cache
def projections() -> Projections:
    """W^Q, W^K, W^V, W^O, each (6, 6): tokens ask for their like, and a verb asks for its subject and its object as well."""
    w_q = 1.2 * np.eye(D_MODEL)
    w_q[2, 3] = w_q[2, 4] = 0.8  # chase -> subject, object
    return Projections(w_q, 1.2 * np.eye(D_MODEL), np.eye(D_MODEL), np.eye(D_MODEL))


def sources(direction: str) -> dict[str, NDArray[np.float64]]:
    """``x`` (n_src, d), ``memory`` (n_src, d) and ``y`` (n_tgt, d): x + self_attention(x) stands for the encoder."""
    source, target = direction.split("-")
    x = np.asarray(_ENCODER[source], dtype=np.float64)
    memory = x + self_attention(x, projections()).output
    return {"x": x, "memory": memory, "y": np.asarray(_DECODER[target], dtype=np.float64)}


def attend(given: dict[str, NDArray[np.float64]], wiring: Wiring) -> Attention | None:
    """Attention as wired, or None where keys and values differ in number and cannot be multiplied.

    Args:
        given: the `sources`.
        wiring: which of them is Q, K and V. With ``causal`` query i sees keys 0 to i.

    Returns:
        ``Attention(output, weights)``: output (n_q, d), weights (n_q, n_k).
    """
    queries, keys, values = (given[name] for name in (wiring.query_from, wiring.key_from, wiring.value_from))
    if len(keys) != len(values):
        return None
    mask = np.tri(len(queries), len(keys), dtype=bool) if wiring.causal else None
    if wiring.key_from == wiring.value_from:
        return cross_attention(queries, keys, projections(), mask)
    w = projections()
    output, weights = scaled_dot_product_attention(queries @ w.w_q, keys @ w.w_k, values @ w.w_v, mask)
    return Attention(output @ w.w_o, weights)


def weights_of(given: dict[str, NDArray[np.float64]], wiring: Wiring) -> NDArray[np.float64]:
    """(n_q, n_k): the attention weights, which need no values and so exist for every wiring."""
    w = projections()
    scores = attention_scores(given[wiring.query_from] @ w.w_q, given[wiring.key_from] @ w.w_k)
    return softmax(np.where(np.tri(*scores.shape, dtype=bool), scores, -np.inf) if wiring.causal else scores)


def influence(given: dict[str, NDArray[np.float64]], wiring: Wiring) -> NDArray[np.bool_] | None:
    """(n_q, n_x + n_memory + n_y): which outputs move when a row of a source does, the other sources staying as they are."""
    if attend(given, wiring) is None:
        return None
    cuts = np.cumsum([len(given[name]) for name in SOURCES])[:-1]

    def run(rows: NDArray[np.float64]) -> NDArray[np.floating]:
        return attend(dict(zip(SOURCES, np.split(rows, cuts), strict=True)), wiring).output  # type: ignore[union-attr]

    return influence_matrix(run, np.concatenate([given[name] for name in SOURCES]))


def unit(wiring: Wiring) -> str:
    """What this wiring is, whatever was wanted: a key of the messages ``explore.wiring.unit_…``."""
    q, k, v = wiring[1:4]
    if (k == "y") != (v == "y"):
        return "impossible"
    if k != v:
        return "split"
    if q == k == "y":
        return "self_decoder" if wiring.causal else "self_unmasked"
    if q == k:
        return "self_causal_encoder" if wiring.causal else "self_encoder"
    if q == "y":
        return "cross"
    return "reversed" if k == "y" else "sided"


def verdict(wiring: Wiring) -> str:
    """Whether the wiring is what was wanted, and if not, which trap it is: a key of the messages ``explore.wiring.verdict_…``."""
    goal, q, k, v, causal = wiring
    if (k == "y") != (v == "y"):
        return "impossible"
    if goal == "encoder":
        if "y" in (q, k, v):
            return "encoder_y"
        if not q == k == v:
            return "encoder_mixed"
        return "mc22" if causal else "right_encoder" if q == "x" else "next_layer"
    if goal == "decoder":
        if q == k == v == "y":
            return "right_decoder" if causal else "cm4"
        return "decoder_cross" if q == "y" and k == v else "decoder_other"
    if k == v == "y":
        return "ca2" if q == "y" else "ca1"
    if q != "y":
        return "mc30"
    if k != v:
        return "ca5"
    if k == "x":
        return "ca4"
    return "ca3" if causal else "right_cross"


# --- words ---


def words(lang: str) -> dict[str, str]:
    """Every text that the board in the browser shows."""
    shared = ("guess", "presets", "reset")
    plain = {word: message(f"explore.qkv.{word}" if word in shared else f"explore.wiring.{word}", lang) for word in _WORDS}
    plain |= {f"unit_{name}": message(f"explore.wiring.unit_{name}", lang) for name in _UNITS}
    return plain | {f"verdict_{name}": message(f"explore.wiring.verdict_{name}", lang) for name in _VERDICTS}


def tokens(direction: str) -> dict[str, list[dict[str, str]]]:
    """The tokens of every source, each with its gloss in the other language and its own language."""
    source, target = direction.split("-")
    encoder, decoder = (
        [{"token": token, "gloss": gloss, "own": own} for token, gloss in zip(SENTENCES[own], GLOSSES[own], strict=True)]
        for own in (source, target)
    )
    decoder.append({"token": END, "gloss": END_GLOSS[target], "own": target})
    return {"x": encoder, "memory": encoder, "y": decoder}


def presets(lang: str) -> list[dict[str, Any]]:
    """The named wirings: the right ones and the traps. What to look at is said by the verdict that each of them gets."""
    return [
        {"label": message(f"explore.wiring.preset.{name}", lang), "note": "", **wiring._asdict()}
        for name, wiring in PRESETS.items()
    ]


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class WiringBoard(bench_class()):
        """Lives in the browser; plugs, goal, direction, mask and the chosen row come back as the learner moves them."""

        _esm = script("wiring_board")
        scenes = t.Dict().tag(sync=True)
        projections = t.List().tag(sync=True)
        goal = t.Enum(GOALS, "cross").tag(sync=True)
        direction = t.Enum(DIRECTIONS, "ja-en").tag(sync=True)
        query_from = t.Enum(SOURCES, "memory").tag(sync=True)
        key_from = t.Enum(SOURCES, "y").tag(sync=True)
        value_from = t.Enum(SOURCES, "y").tag(sync=True)
        causal = t.Bool(False).tag(sync=True)
        row = t.Int(-1, min=-1, max=5).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)

        def __init__(self, lang: str, direction: str) -> None:
            super().__init__(**state(lang, direction))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def wiring(self) -> Wiring:
            """The board as it stands."""
            return Wiring(*(getattr(self, name) for name in Wiring._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.direction, self.wiring)

        def picture(self) -> Picture:
            return picture(self.lang, self.direction, self.wiring)

    return WiringBoard


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    return {"lang": lang, "strings": words(lang), "presets": presets(lang)}


def state(lang: str, direction: str = "ja-en") -> dict[str, Any]:
    """All traits of the first state."""
    scenes = {
        way: {"tokens": tokens(way), "vectors": {name: rows.tolist() for name, rows in sources(way).items()}}
        for way in DIRECTIONS
    }
    first = {**START._asdict(), "direction": direction, "row": 4}
    numbers = {"scenes": scenes, "projections": [matrix.tolist() for matrix in projections()]}
    return {**texts(lang), **first, **numbers, "initial": first, "preset": -1}


# --- the static twin ---


def twin(lang: str, direction: str, wiring: Wiring) -> tuple[str, list[list[str]], str]:
    """Title, table of the weights and sentence of one state."""
    given, named = sources(direction), tokens(direction)
    weights = weights_of(given, wiring)
    say = lambda key, **values: message(f"explore.wiring.{key}", lang, **values)  # noqa: E731
    header = [say("weights"), *(key["token"] for key in named[wiring.key_from]), say("row_sum")]
    table = [header]
    for query, row in zip(named[wiring.query_from], weights, strict=True):
        table.append([f"{query['token']} {query['gloss']}", *(number(weight) for weight in row), number(float(row.sum()))])
    moved = influence(given, wiring)
    if moved is not None:  # a column per source, a digit per token
        cuts = np.cumsum([len(given[name]) for name in SOURCES])[:-1]
        empty = [""] * (len(header) - 1 - len(SOURCES))
        table.append([say("influence"), *SOURCES, *empty])
        for query, row in zip(named[wiring.query_from], moved, strict=True):
            digits = ("".join(str(int(yes)) for yes in part) for part in np.split(row, cuts))
            table.append([f"{query['token']} {query['gloss']}", *digits, *empty])
    return say("title"), table, sentence(lang, direction, wiring)


def sentence(lang: str, direction: str, wiring: Wiring) -> str:
    """What is plugged where, what that is called, its shapes, and the verdict."""
    given = sources(direction)
    say = lambda key, **values: message(f"explore.wiring.{key}", lang, **values)  # noqa: E731
    n_q, n_k, n_v = (len(given[name]) for name in wiring[1:4])
    shapes = say("shapes", n_q=n_q, n_k=n_k) if n_k == n_v else say("shapes_none", n_q=n_q, n_k=n_k, n_v=n_v)
    found = verdict(wiring)
    parts = [
        f"Q = {wiring.query_from}, K = {wiring.key_from}, V = {wiring.value_from}",
        say("unit", name=say(f"unit_{unit(wiring)}")),
        shapes,
        say("right" if found in RIGHT else "trap", goal=say(f"goal_{wiring.goal}"))
        + " " * (lang == "en")
        + say(f"verdict_{found}"),
    ]
    return ("。" if lang == "ja" else ". ").join(part.rstrip("。.") for part in parts) + ("。" if lang == "ja" else ".")


def picture(lang: str, direction: str, wiring: Wiring) -> Picture:
    """The board at one state, drawn with matplotlib: the sentence map and, where there is an output, the influence matrix."""
    title, table, text = twin(lang, direction, wiring)
    given, named = sources(direction), tokens(direction)
    say = lambda key: message(f"explore.wiring.{key}", lang)  # noqa: E731
    rows = [f"{query['token']} {query['gloss']}" for query in named[wiring.query_from]]
    drawn = f"Q = {wiring.query_from}, K = {wiring.key_from}, V = {wiring.value_from}"
    panels = [Matrix(weights_of(given, wiring), drawn, rows, [key["token"] for key in named[wiring.key_from]])]
    moved = influence(given, wiring)
    if moved is not None:
        columns = [f"{token['token']} ({name})" for name in SOURCES for token in named[name]]
        axes = {"row_axis": say("output"), "column_axis": say("input")}
        panels.append(Matrix(moved, say("influence"), [query["token"] for query in named[wiring.query_from]], columns, **axes))
    made = figures.matrices_picture(panels, title=title, lang=lang)
    return replace(made, table=table, text=text)
