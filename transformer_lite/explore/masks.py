"""The mask painter: paint who may attend to whom, and see weights, influence and leaks (section 3.2.3 of the paper)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.content import traps
from transformer_lite.equations import (
    Attention,
    Projections,
    attention_scores,
    causal_mask,
    influence_matrix,
    padding_mask,
    self_attention,
    softmax,
)
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Matrix, Picture, number
from transformer_lite.language import Text, check_language, message

TOKENS = {"ja": ("犬", "が", "猫", "を", "追いかけた"), "en": ("the", "dog", "chased", "the", "cat")}
GLOSSES = {"ja": ("dog", "subject", "cat", "object", "chased"), "en": ("冠詞", "犬", "追いかけた", "冠詞", "猫")}
PAD = Text("PAD", "PAD")
N_REAL, N_PADDED, D_MODEL = 5, 7, 4
WAYS = ("before", "after", "zero")  # hidden scores −∞; hidden weights × 0 after softmax; hidden scores 0
_CODES = {"after": "AT11", "zero": "AT12"}  # of the ways that are traps

_WORDS = (
    "guess", "question", "open_answer", "answer", "presets", "reset", "hint", "mask", "weights_1", "weights_2", "influence_1",
    "influence_2", "row_query", "column_key", "row_output", "column_input", "row_sum", "cell", "open", "closed", "layers",
    "layer_1", "layer_2", "way", "way_before", "way_after", "way_zero", "pads", "clean", "leak", "pad_clean", "pad_leak",
    "empty", "comma", "influence_cell", "moves", "stays", "lamps", "legend",
)  # fmt: skip


def explorer(lang: str) -> Any:
    """The mask painter: a mask (n, n) under the learner's brush, True = may attend, with weights, influence and leaks beside it.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    check_language(lang)
    return picture(lang, *START) if static() else bench(lang)


# --- the numbers ---


@cache
def world() -> tuple[NDArray[np.float64], tuple[Projections, Projections]]:
    """Token vectors (7, 4), the last two of them PAD, and the projections of two attention layers, each matrix (4, 4)."""
    rng = np.random.default_rng(12)
    x = rng.standard_normal((N_PADDED, D_MODEL)).round(1)
    x[N_REAL:] = x[N_REAL]  # every PAD has the same vector
    # Small, so that no softmax saturates: an influence that is there must be large enough to be seen.
    layers = tuple(Projections(*(0.5 * rng.standard_normal((4, D_MODEL, D_MODEL))).round(1)) for _ in range(2))
    return x, layers  # type: ignore[return-value]


def painted_layer(x: ArrayLike, projections: Projections, mask: ArrayLike, way: str = "before") -> Attention:
    """Self-attention under a mask that is applied the right way or in one of two wrong ways.

    Args:
        x: (n, d_model).
        projections: ``(w_q, w_k, w_v, w_o)``, each (d_model, d_model).
        mask: (n, n), Boolean, True = may attend.
        way: "before" (hidden scores are −∞ before softmax), "after" (hidden weights are multiplied by 0 after softmax, trap AT11)
            or "zero" (hidden scores are 0, trap AT12).

    Returns:
        ``Attention(output, weights)``: output (n, d_model), weights (n, n).

    Source: Vaswani et al. 2017, §3.2.3, for "before".
    """
    if way == "before":
        return self_attention(x, projections, mask)
    x, mask = np.asarray(x, dtype=np.float64), np.asarray(mask, dtype=bool)
    scores = attention_scores(x @ projections.w_q, x @ projections.w_k)  # (n, n)
    weights = softmax(scores) * mask if way == "after" else softmax(np.where(mask, scores, 0.0))
    return Attention(weights @ (x @ projections.w_v) @ projections.w_o, weights)


def painted_stack(x: ArrayLike, mask: ArrayLike, layers: int, way: str = "before") -> NDArray[np.floating]:
    """``layers`` (1 or 2) attention layers on top of each other, all with the same mask; no residual connection around them.

    Without the residual connection a row that may look at nothing shows: its output no longer depends on anything.
    """
    output = np.asarray(x, dtype=np.float64)
    for projections in world()[1][:layers]:
        output = painted_layer(output, projections, mask, way).output
    return output


def influence(mask: ArrayLike, layers: int, way: str = "before") -> NDArray[np.bool_]:
    """(n, n): entry [i, j] is True if the output of token i moves when token j moves."""
    x = world()[0][: len(np.asarray(mask))]
    return influence_matrix(lambda moved: painted_stack(moved, mask, layers, way), x)


def leaks(moved: ArrayLike) -> tuple[int, int]:
    """The pairs that leak in an influence matrix (n, n): (real tokens that see a later real token, real tokens that see PAD)."""
    moved = np.asarray(moved, dtype=bool)
    future = np.triu(moved[:N_REAL, :N_REAL], k=1)
    return int(future.sum()), int(moved[:N_REAL, N_REAL:].sum())


def _one_cell_open() -> NDArray[np.bool_]:
    mask = causal_mask(N_REAL)
    mask[0, N_REAL - 1] = True
    return mask


def _padded(mask: Callable[[int], NDArray[np.bool_]]) -> NDArray[np.bool_]:
    return mask(N_PADDED) & padding_mask([1] * N_REAL + [0] * (N_PADDED - N_REAL), pad_id=0)  # (n, n) & (1, n)


def _everything(n: int) -> NDArray[np.bool_]:
    return np.ones((n, n), dtype=bool)


START = (_one_cell_open(), 2, "before")  # the surprise: one open cell, seven pairs that leak
PRESETS: dict[str, tuple[NDArray[np.bool_], int, str]] = {
    "encoder": (_everything(N_REAL), 2, "before"),
    "causal": (causal_mask(N_REAL), 2, "before"),
    "cm1": (np.tri(N_REAL, k=-1, dtype=bool), 2, "before"),
    "cm2": (causal_mask(N_REAL).T, 2, "before"),
    "cm3": (np.tri(N_REAL, k=1, dtype=bool), 2, "before"),
    "cm7": (causal_mask(N_REAL) & ~np.tri(N_REAL, k=-2, dtype=bool), 2, "before"),
    "at11": (causal_mask(N_REAL), 1, "after"),
    "at12": (causal_mask(N_REAL), 1, "zero"),
    "pm1": (_everything(N_PADDED), 1, "before"),
    "padding": (_padded(_everything), 1, "before"),
    "both": (_padded(causal_mask), 2, "before"),
}


# --- words ---


def words(lang: str) -> dict[str, str]:
    """Every text that the painter in the browser shows."""
    shared = ("guess", "presets", "reset")
    return {word: message(f"explore.qkv.{word}" if word in shared else f"explore.masks.{word}", lang) for word in _WORDS}


def names(lang: str, n: int = N_PADDED) -> tuple[list[str], list[str]]:
    """The first ``n`` tokens and their glosses in the other language."""
    pads = [PAD(lang)] * (N_PADDED - N_REAL)
    return [*TOKENS[lang], *pads][:n], [*GLOSSES[lang], *([""] * len(pads))][:n]


def presets(lang: str) -> list[dict[str, Any]]:
    """The named masks, right and wrong: a sentence that says what to look at, and the code and title of a trap."""

    def title(code: str) -> str:
        return f"{code}: {traps()[code].title(lang)}" if code in traps() else ""

    return [
        {
            "label": message(f"explore.masks.preset.{name}.label", lang),
            "note": message(f"explore.masks.preset.{name}.note", lang),
            "title": title(name.upper()),
            "mask": mask.tolist(),
            "layers": layers,
            "way": way,
        }
        for name, (mask, layers, way) in PRESETS.items()
    ]


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class MaskPainter(bench_class()):
        """Lives in the browser; ``mask`` (5×5, or 7×7 with two PAD), ``layers`` (1 or 2) and ``way`` come back as they change."""

        _esm = script("mask_painter")
        tokens = t.List(t.Unicode()).tag(sync=True)
        glosses = t.List(t.Unicode()).tag(sync=True)
        n_real = t.Int(N_REAL).tag(sync=True)
        vectors = t.List().tag(sync=True)
        projections = t.List().tag(sync=True)
        mask = t.List(t.List(t.Bool())).tag(sync=True)
        layers = t.Int(2, min=1, max=2).tag(sync=True)
        way = t.Enum(WAYS, "before").tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)

        def __init__(self, lang: str) -> None:
            super().__init__(**state(lang))

        @t.validate("mask")
        def _check_mask(self, proposal: Any) -> list[list[bool]]:
            rows = proposal["value"]
            if len(rows) not in (N_REAL, N_PADDED) or any(len(row) != len(rows) for row in rows):
                raise t.TraitError(f"mask must be {N_REAL} x {N_REAL} or {N_PADDED} x {N_PADDED}, rows of True and False.")
            return rows

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, np.array(self.mask), self.layers, self.way)

        def picture(self) -> Picture:
            return picture(self.lang, np.array(self.mask), self.layers, self.way)

    return MaskPainter


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    tokens, glosses = names(lang)
    return {"lang": lang, "tokens": tokens, "glosses": glosses, "strings": words(lang), "presets": presets(lang)}


def state(lang: str) -> dict[str, Any]:
    """All traits of the first state."""
    x, layers = world()
    first = {"mask": START[0].tolist(), "layers": START[1], "way": START[2]}
    numbers = {"vectors": x.tolist(), "projections": [[matrix.tolist() for matrix in layer] for layer in layers]}
    return {**texts(lang), **first, **numbers, "initial": first, "n_real": N_REAL, "preset": -1}


def bench(lang: str) -> Any:
    """The widget in its first state."""
    return widget_class()(lang)


# --- the static twin ---


def twin(lang: str, mask: NDArray[np.bool_], layers: int, way: str) -> tuple[str, list[list[str]], str]:
    """Title, table (mask, weights and influence below each other) and sentence of one state."""
    tokens, glosses = names(lang, len(mask))
    x, stack = world()
    weights = painted_layer(x[: len(mask)], stack[0], mask, way).weights
    moved = influence(mask, layers, way)
    table = []
    for title, rows, sums in (
        (message("explore.masks.mask", lang), [[str(int(cell)) for cell in row] for row in mask], None),
        (
            message(f"explore.masks.weights_{layers}", lang),
            [[number(cell) for cell in row] for row in weights],
            weights.sum(axis=1),
        ),
        (message(f"explore.masks.influence_{layers}", lang), [[str(int(cell)) for cell in row] for row in moved], None),
    ):
        table.append([title, *tokens, "" if sums is None else message("explore.masks.row_sum", lang)])
        for i, row in enumerate(rows):
            table.append([f"{tokens[i]} {glosses[i]}".strip(), *row, "" if sums is None else number(float(sums[i]))])
    return message("explore.masks.title", lang), table, sentence(lang, mask, weights, moved, layers, way)


def sentence(
    lang: str, mask: NDArray[np.bool_], weights: NDArray[np.float64], moved: NDArray[np.bool_], layers: int, way: str
) -> str:
    """What the lights and the rows say, as text."""
    tokens, _ = names(lang, len(mask))
    future, pad = leaks(moved)
    say = lambda key, **given: message(f"explore.masks.{key}", lang, **given)  # noqa: E731
    code = f" ({_CODES[way]})" if way in _CODES else ""
    empty = [say("comma").join(tokens[i] for i in np.flatnonzero(weights.sum(axis=1) == 0))]
    parts = [
        say("state", open=int(mask.sum()), cells=mask.size, layers=layers, way=say(f"way_{way}") + code),
        say("leak", n=future) if future else say("clean"),
    ]
    if len(mask) > N_REAL:
        parts.append(say("pad_leak", n=pad) if pad else say("pad_clean"))
    if empty[0]:
        parts.append(say("empty", tokens=empty[0]))
    return ("" if lang == "ja" else " ").join(parts)


def picture(lang: str, mask: NDArray[np.bool_], layers: int, way: str) -> Picture:
    """The painter at one state, drawn with matplotlib: the mask, the weights, the influence."""
    title, table, text = twin(lang, mask, layers, way)
    tokens, glosses = names(lang, len(mask))
    weights = painted_layer(world()[0][: len(mask)], world()[1][0], mask, way).weights
    say = lambda key: message(f"explore.masks.{key}", lang)  # noqa: E731
    panels = [
        Matrix(mask, say("mask"), [f"{token} {gloss}" for token, gloss in zip(tokens, glosses, strict=True)], tokens),
        Matrix(weights, say(f"weights_{layers}"), tokens, tokens),
        Matrix(
            influence(mask, layers, way),
            say(f"influence_{layers}"),
            tokens,
            tokens,
            row_axis=say("output"),
            column_axis=say("input"),
        ),
    ]
    drawn = figures.matrices_picture(panels, title=title, lang=lang)
    return replace(drawn, table=table, text=text)
