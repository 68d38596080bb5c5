"""The family switch: mask, head and loss turn one stack of blocks into BERT, GPT, ViT or the original Transformer."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.content import traps
from transformer_lite.equations import (
    DecoderParameters,
    EncoderParameters,
    causal_mask,
    decoder_layer,
    encoder_layer,
    influence_matrix,
)
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture
from transformer_lite.language import check_language, message

TOKENS = ("words", "patches")
MASKS = ("none", "causal", "cross")  # everything is seen; the past and oneself; encoder-decoder with cross-attention
HEADS = ("vocabulary", "class", "none")  # a word at every position; one class, read at the first; no head
LOSSES = ("hidden", "next", "class")  # the hidden word (MLM); the next word, everywhere; the class

SENTENCES = {"ja": ("犬", "が", "猫", "を", "追いかけた"), "en": ("the", "dog", "chased", "the", "cat")}
GLOSSES = {"ja": ("dog", "subject", "cat", "object", "chased"), "en": ("冠詞", "犬", "追いかけた", "冠詞", "猫")}
SOURCE, TARGET = "en", "ja"  # the original Transformer reads and writes as the course's translator does
N_WORDS, N_PATCHES = 5, 4
D_MODEL, D_FF, N_HEADS = 8, 16, 2

KINDS = ("", "used", "mask", "answer", "later")  # of a token, for a prediction
VERDICTS = (
    "bert", "classifier", "vit", "gpt", "original", "captioner", "leak", "left_only", "gap_decoder", "blind_cls",
    "idle_decoder", "no_head", "no_vocabulary", "wants_words", "wants_class",
)  # fmt: skip
FAMILIES = ("bert", "classifier", "vit", "gpt", "original")  # the verdicts that have a name
SOUND = (*FAMILIES, "captioner")  # the verdicts with which nothing is wrong
WRITES = ("yes", "copies", "fills", "fills_left", "class_only", "no_head", "no_vocabulary", "untrained")
_TRAPS = {"leak": "BL1", "left_only": "MC80", "blind_cls": "MC22"}  # verdicts that are traps of the catalogue

_WORDS = (
    "question", "open_answer", "answer", "hint", "tokens", "tokens_words", "tokens_patches", "mask", "mask_none",
    "mask_causal", "mask_cross", "head", "head_vocabulary", "head_class", "head_none", "loss", "loss_hidden", "loss_next",
    "loss_class", "diagram", "diagram_role", "row_predictions", "row_vectors", "row_input", "row_decoder", "row_source",
    "row_source_patches", "class_token", "vector", "mark_counted", "mark_uncounted", "mark_leak", "influence", "row_prediction",
    "row_vector", "column_token", "counted_column", "group_source", "group_patches", "group_own", "legend_used", "legend_mask",
    "legend_answer", "legend_later", "legend_dim", "cell_used", "cell_mask", "cell_answer", "cell_later", "cell_none",
    "is_name", "is_counted", "is_leak", "is_writes", "is_good", "counted", "uncounted", "leak_yes", "leak_no", "leak_class",
    "leak_nothing", "trap", "sees", "sees_nothing", "comma",
)  # fmt: skip


class Setup(NamedTuple):
    """The switches, and the chosen word (counted from 0): the one whose prediction is looked at, and that the MLM loss hides."""

    tokens: str = "words"
    mask: str = "none"
    head: str = "vocabulary"
    loss: str = "next"
    at: int = 2


START = Setup()  # the surprise: GPT's head and loss without the mask; it wins in training, and cannot write
PRESETS = {
    "bert": Setup("words", "none", "vocabulary", "hidden"),
    "gpt": Setup("words", "causal", "vocabulary", "next"),
    "original": Setup("words", "cross", "vocabulary", "next"),
    "vit": Setup("patches", "none", "class", "class"),
    "classifier": Setup("words", "none", "class", "class"),
    "leak": START,
    "left_only": Setup("words", "causal", "vocabulary", "hidden"),
    "blind_cls": Setup("words", "causal", "class", "class"),
}
_SWITCHES = {"tokens": TOKENS, "mask": MASKS, "head": HEADS, "loss": LOSSES}


def explorer(lang: str, **switches: Any) -> Any:
    """The family switch: choose mask, head and loss, and see which model it is, what it sees and whether it can write.

    Args:
        lang: ``"ja"`` or ``"en"``.
        switches: where it starts: ``tokens`` (one of `TOKENS`), ``mask`` (`MASKS`), ``head`` (`HEADS`), ``loss`` (`LOSSES`) and
            ``at``, the chosen word (0 to 4).

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: an unknown language, switch or word.
    """
    check_language(lang)
    first = START._replace(**switches)
    for name, known in _SWITCHES.items():
        if getattr(first, name) not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {getattr(first, name)!r}.")
    if type(first.at) is not int or first.at not in range(N_WORDS):
        raise ValueError(f"at must be one of 0 to {N_WORDS - 1}; got {first.at!r}.")
    return picture(lang, first) if static() else widget_class()(lang, first)


# --- the numbers ---
#
# The stack is always fed [front, token 1, ..., token n]; front is [CLS] or BOS. The MLM loss replaces the chosen token by [MASK].
# A word's prediction is read at its own position, or, for the next-word loss, one position earlier: that is the right shift.


def n_tokens(setup: Setup) -> int:
    """How many tokens, without the front, the stack that predicts is fed."""
    return N_PATCHES if setup.tokens == "patches" and setup.mask != "cross" else N_WORDS


def n_source(setup: Setup) -> int:
    """How many tokens the encoder reads in an encoder-decoder; 0 where there is one stack only."""
    if setup.mask != "cross":
        return 0
    return N_PATCHES if setup.tokens == "patches" else N_WORDS


def chosen(setup: Setup) -> int:
    """The chosen token; there are fewer patches than words."""
    return min(setup.at, n_tokens(setup) - 1)


def hidden(setup: Setup) -> int:
    """The token that [MASK] stands for, or −1."""
    return chosen(setup) if setup.loss == "hidden" else -1


def front(setup: Setup) -> str:
    """What stands before the tokens."""
    return "BOS" if setup.loss == "next" and setup.head != "class" else "[CLS]"


def read_at(setup: Setup) -> list[int]:
    """The position, counted from the front, at which each prediction (without a head: each vector) is read."""
    if setup.head == "class":
        return [0]
    early = setup.head == "vocabulary" and setup.loss == "next"
    return [k if early else k + 1 for k in range(n_tokens(setup))]


def allowed(setup: Setup) -> NDArray[np.bool_]:
    """(1 + n, 1 + n): which positions of the stack that predicts may attend to which."""
    n = 1 + n_tokens(setup)
    return np.ones((n, n), dtype=bool) if setup.mask == "none" else causal_mask(n)


@cache
def _world() -> tuple[tuple[EncoderParameters, ...], tuple[DecoderParameters, ...], NDArray[np.float64], NDArray[np.float64]]:
    """Two encoder layers, two decoder layers, the vectors of the front and of [MASK] (2, 8), and those of tokens (10, 8)."""
    rng = np.random.default_rng(12)

    def small(parameters: Any) -> Any:  # W^Q and W^K so small that no softmax saturates: what can move an output is seen to
        return replace(parameters, w_q=parameters.w_q / 4, w_k=parameters.w_k / 4)

    encoders = tuple(small(EncoderParameters.random(D_MODEL, D_FF, rng)) for _ in range(2))
    decoders = tuple(small(DecoderParameters.random(D_MODEL, D_FF, rng)) for _ in range(2))
    return encoders, decoders, rng.standard_normal((2, D_MODEL)), rng.standard_normal((2 * N_WORDS, D_MODEL))


def outputs(setup: Setup, true: NDArray[np.float64]) -> NDArray[np.floating]:
    """(1 + n, 8): what the stack that predicts gives out at every position.

    Args:
        setup: the switches; those of head and loss matter only in so far as the loss hides a token.
        true: (n_source + n, 8), the vectors of the true tokens, those of the source first.
    """
    encoders, decoders, (start, mask), _ = _world()
    cut = n_source(setup)
    memory, own = true[:cut], true[cut:].copy()
    if hidden(setup) >= 0:
        own[hidden(setup)] = mask
    x = np.concatenate([start[np.newaxis], own])  # (1 + n, 8)
    if not cut:
        for parameters in encoders:
            x = encoder_layer(x, parameters, N_HEADS, allowed(setup))
        return x
    for parameters in encoders:
        memory = encoder_layer(memory, parameters, N_HEADS)
    for parameters in decoders:
        x = decoder_layer(x, memory, parameters, N_HEADS, allowed(setup))
    return x


@cache
def _stack_influence(setup: Setup) -> NDArray[np.bool_]:
    """(1 + n, n_source + n): which positions of the stack's output move when a true token does."""
    tokens = _world()[3][: n_source(setup) + n_tokens(setup)]
    return influence_matrix(lambda true: outputs(setup, true), tokens)


def influence(setup: Setup) -> NDArray[np.bool_]:
    """(predictions, n_source + n): which predictions move when a true token does; those of the source come first."""
    # Every head reads the same stack; which token is chosen matters to it only if it is hidden.
    stack = setup._replace(head="none", loss="hidden" if hidden(setup) >= 0 else "next", at=max(hidden(setup), 0))
    return _stack_influence(stack)[read_at(setup)]  # (1 + n, ...) -> (predictions, ...)


def verdict(setup: Setup) -> str:
    """What this combination is, and if it is nothing, why: one of `VERDICTS`."""
    tokens, mask, head, loss, _ = setup
    if head == "none":
        return "no_head"
    if head == "class" and loss != "class":
        return "wants_words"
    if head == "vocabulary" and tokens == "patches" and mask != "cross":
        return "no_vocabulary"
    if head == "vocabulary" and loss == "class":
        return "wants_class"
    if head == "class":
        return {"none": "vit" if tokens == "patches" else "classifier", "causal": "blind_cls", "cross": "idle_decoder"}[mask]
    if loss == "hidden":
        return {"none": "bert", "causal": "left_only", "cross": "gap_decoder"}[mask]
    return {"none": "leak", "causal": "gpt", "cross": "captioner" if tokens == "patches" else "original"}[mask]


def counted(setup: Setup) -> list[bool]:
    """Which predictions the loss marks."""
    rows = len(read_at(setup))
    if verdict(setup) in ("no_head", "no_vocabulary", "wants_words", "wants_class"):
        return [False] * rows
    return [k == hidden(setup) for k in range(rows)] if setup.loss == "hidden" else [True] * rows


def kinds(setup: Setup) -> list[list[str]]:
    """What each token is for each prediction, one of `KINDS`; the columns are those of `influence`.

    "" it does not move the prediction; "mask" its place is seen, but [MASK] stands there; "answer" it is what a marked prediction
    must say; "later" it comes after that, and the next-word loss is taken; "used" it moves the prediction.
    """
    moved, marked, may = influence(setup), counted(setup), allowed(setup)
    cut = n_source(setup)

    def kind(k: int, j: int) -> str:
        own = j - cut  # the token's number; negative for one of the source
        if own == hidden(setup) and own >= 0:
            return "mask" if may[read_at(setup)[k], own + 1] else ""
        if not moved[k, j]:
            return ""
        if own >= 0 and marked[k] and setup.head == "vocabulary":
            if own == k:
                return "answer"
            if own > k and setup.loss == "next":
                return "later"
        return "used"

    return [[kind(k, j) for j in range(moved.shape[1])] for k in range(len(moved))]


def leaks(setup: Setup) -> int:
    """How many of the marked predictions see their own answer."""
    return sum("answer" in row for row in kinds(setup))


def leak_kind(setup: Setup) -> str:
    """Whether the answer leaks: a key of the messages ``explore.families.leak_…``."""
    if not any(counted(setup)):
        return "nothing"
    if setup.head == "class":
        return "class"
    return "yes" if leaks(setup) else "no"


def writes(setup: Setup) -> str:
    """Whether it can write on, and if not, why: one of `WRITES`."""
    found = verdict(setup)
    special = {
        "leak": "copies", "bert": "fills", "left_only": "fills_left", "gap_decoder": "fills_left", "no_head": "no_head",
        "no_vocabulary": "no_vocabulary", "wants_class": "untrained",
    }  # fmt: skip
    return special.get(found, "class_only" if setup.head == "class" else "yes")


# --- words ---


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.families.{key}", lang, **parameters)


def words(lang: str) -> dict[str, str]:
    """Every text that the switch in the browser shows."""
    texts = {word: _say(word, lang) for word in _WORDS}
    texts |= {f"{part}_{name}": _say(f"{part}_{name}", lang) for part in ("name", "why", "good") for name in VERDICTS}
    texts |= {f"writes_{name}": _say(f"writes_{name}", lang) for name in WRITES}
    return texts | {word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")}


@cache
def trap_names(lang: str) -> dict[str, dict[str, str]]:
    """The traps that verdicts are: title, and code in the catalogue."""
    return {name: {"title": traps()[code].title(lang), "code": code} for name, code in _TRAPS.items()}


def tokens(lang: str) -> dict[str, list[dict[str, str]]]:
    """Every row of tokens that may be shown, each token with its gloss in the other language and its own language."""
    rows = {
        own: [{"token": token, "gloss": gloss, "own": own} for token, gloss in zip(SENTENCES[own], GLOSSES[own], strict=True)]
        for own in SENTENCES
    }
    patches = [{"token": _say("patch", lang, number=i + 1), "gloss": "", "own": lang} for i in range(N_PATCHES)]
    return {"own": rows[lang], "source": rows[SOURCE], "target": rows[TARGET], "patches": patches}


def shown_tokens(lang: str, setup: Setup) -> tuple[list[dict[str, str]], list[dict[str, str]]]:
    """The source's tokens (none without a second stack), and those of the stack that predicts."""
    rows = tokens(lang)
    if setup.mask == "cross":
        return rows["patches" if setup.tokens == "patches" else "source"], rows["target"]
    return [], rows["patches" if setup.tokens == "patches" else "own"]


def presets(lang: str) -> list[dict[str, Any]]:
    """The families and the known mistakes; what each of them is, is said by its verdict."""
    return [{"label": _say(f"preset.{name}", lang), "note": "", **setup._asdict()} for name, setup in PRESETS.items()]


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class FamilySwitch(bench_class()):
        """Lives in the browser; the switches and the chosen word come back as the learner moves them."""

        _esm = script("family_switch")
        tokens = t.Enum(TOKENS, START.tokens).tag(sync=True)
        mask = t.Enum(MASKS, START.mask).tag(sync=True)
        head = t.Enum(HEADS, START.head).tag(sync=True)
        loss = t.Enum(LOSSES, START.loss).tag(sync=True)
        at = t.Int(START.at, min=0, max=N_WORDS - 1).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        rows = t.Dict().tag(sync=True)
        traps = t.Dict().tag(sync=True)

        def __init__(self, lang: str, first: Setup) -> None:
            super().__init__(**traits(lang, first))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def setup(self) -> Setup:
            """The switches as they stand."""
            return Setup(*(getattr(self, name) for name in Setup._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.setup)

        def picture(self) -> Picture:
            return picture(self.lang, self.setup)

    return FamilySwitch


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    return {"lang": lang, "strings": words(lang), "presets": presets(lang), "rows": tokens(lang), "traps": trap_names(lang)}


def traits(lang: str, first: Setup = START) -> dict[str, Any]:
    """All traits of the first state."""
    return {**texts(lang), **first._asdict(), "preset": -1, "initial": first._asdict()}


# --- the static twin ---


def twin(lang: str, setup: Setup) -> tuple[str, list[list[str]], str]:
    """Title, table (a row per prediction: 1 where the true token moves it, M where [MASK] stands) and sentence of one state."""
    source, own = shown_tokens(lang, setup)
    group = _say("group_patches" if setup.tokens == "patches" else "group_source", lang)
    columns = [f"{group}: {token['token']}" for token in source] + [token["token"] for token in own]
    row_name = _say("row_vector" if setup.head == "none" else "row_prediction", lang)
    table = [[f"{row_name} / {_say('column_token', lang)}", *columns, _say("counted_column", lang)]]
    for name, row, marked in zip(row_names(lang, setup), kinds(setup), counted(setup), strict=True):
        cells = ["0" if not kind else "M" if kind == "mask" else "1" for kind in row]
        table.append([name, *cells, "✓" if marked else "–"])
    return _say("title", lang), table, sentence(lang, setup)


def row_names(lang: str, setup: Setup) -> list[str]:
    """What each prediction is about."""
    if setup.head == "class":
        return [_say("class_token", lang)]
    return [f"{token['token']} {token['gloss']}".strip() for token in shown_tokens(lang, setup)[1]]


def facts(lang: str, setup: Setup) -> list[tuple[str, str]]:
    """(heading, text) of what is said about the combination."""
    found, marked = verdict(setup), counted(setup)
    many = _say("counted" if any(marked) else "uncounted", lang, rows=len(marked), counted=sum(marked))
    leak = _say(f"leak_{leak_kind(setup)}", lang, counted=sum(marked), leaks=leaks(setup))
    return [
        (_say("is_name", lang), _say(f"name_{found}", lang)),
        (_say("is_counted", lang), many),
        (_say("is_leak", lang), leak),
        (_say("is_writes", lang), _say(f"writes_{writes(setup)}", lang)),
        (_say("is_good", lang), _say(f"good_{found}", lang)),
    ]


def view(lang: str, setup: Setup) -> str:
    """Which true tokens the chosen prediction uses."""
    source, own = shown_tokens(lang, setup)
    row = 0 if setup.head == "class" else chosen(setup)
    used = [
        token["token"]
        for token, kind in zip([*source, *own], kinds(setup)[row], strict=True)
        if kind not in ("", "mask")
    ]  # fmt: skip
    name = _say("class_token", lang) if setup.head == "class" else own[chosen(setup)]["token"]
    return _say("sees" if used else "sees_nothing", lang, name=name, tokens=_say("comma", lang).join(used))


def sentence(lang: str, setup: Setup) -> str:
    """The switches and what is said about the combination."""
    parts = [_say(f"{name}_{getattr(setup, name)}", lang) for name in ("mask", "head", "loss")]
    switches = _say("state", lang, mask=parts[0], head=parts[1], loss=parts[2])
    said = [_say("fact", lang, heading=heading, text=text) for heading, text in facts(lang, setup)]
    stop, gap = ("。", "") if lang == "ja" else (".", " ")
    parts = [switches, *said, _say(f"why_{verdict(setup)}", lang), view(lang, setup)]
    return gap.join(part.rstrip(stop) + stop for part in parts)


_SIGNS = {"": "", "used": "●", "mask": "M", "answer": "!", "later": "→"}
_TINTS = {"": "white", "used": figures.COLOURS[5], "mask": "#dddddd", "answer": figures.COLOURS[1], "later": figures.COLOURS[4]}


def picture(lang: str, setup: Setup = START) -> Picture:
    """The stack with what the chosen prediction sees, and the influence matrix, drawn with matplotlib."""
    title, table, text = twin(lang, setup)
    with figures.style():
        figure = figures.new_figure(900, 420)
        axes = figure.subplots(1, 2, width_ratios=[1.3, 1.0 if not n_source(setup) else 1.4])
        _draw_stack(axes[0], lang, setup)
        _draw_influence(axes[1], lang, setup)
        present = {kind for row in kinds(setup) for kind in row}
        legend = "   ".join(_say(f"legend_{kind}", lang) for kind in KINDS[1:] if kind in present)
        figure.suptitle(f"{_say(f'name_{verdict(setup)}', lang)}\n{legend}", size=10)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _draw_stack(axes: Any, lang: str, setup: Setup) -> None:
    """From the bottom up: the source, if there is one; the input; the predictions; which of them the loss marks."""
    from matplotlib.patches import FancyBboxPatch

    source, own = shown_tokens(lang, setup)
    positions, marked, may = read_at(setup), counted(setup), allowed(setup)
    row = 0 if setup.head == "class" else chosen(setup)
    rows_of_kinds = kinds(setup)
    axes.set(xlim=(-0.1, N_WORDS + 1), ylim=(-1.75 if source else -0.2, 3.6), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)

    def box(i: int, bottom: float, text: str, colour: str = "white", wide: float = 1.0, dashed: bool = False) -> None:
        look = {"facecolor": colour, "edgecolor": "#999999" if dashed else "black", "linestyle": ":" if dashed else "-"}
        shape = "round,pad=0,rounding_size=0.08"
        axes.add_patch(FancyBboxPatch((i + 0.04, bottom), 0.92, 0.62, boxstyle=shape, linewidth=wide, **look))
        size, ink = 7.5 if source else 9, "#888888" if dashed else "black"
        axes.text(i + 0.5, bottom + 0.31, text, ha="center", va="center", size=size, color=ink)

    at = positions[row]
    inputs = [front(setup), *("[MASK]" if k == hidden(setup) else token["token"] for k, token in enumerate(own))]
    for i, text in enumerate(inputs):
        kind = rows_of_kinds[row][len(source) + i - 1] if i else ""
        tint = {"answer": "#f3c6a5", "mask": "#dddddd"}.get(kind, "#cfe8f7")
        box(i, 0.3, text, tint if may[at, i] else "white", dashed=not may[at, i])
        if may[at, i]:
            colour, width = (figures.COLOURS[1], 3.0) if kind == "answer" else (figures.COLOURS[0], 1.4)
            axes.plot([i + 0.5, at + 0.5], [0.92, 2.0], color=colour, linewidth=width, zorder=0)
    for k, position in enumerate(positions):
        name = {"class": _say("class_token", lang), "none": _say("vector", lang)}.get(setup.head, own[k]["token"])
        box(position, 2.0, name, wide=2.6 if k == row else 1.0, dashed=not marked[k])
        leak = "answer" in rows_of_kinds[k]
        sign = "!" if leak else "✓" if marked[k] else "–"
        axes.text(position + 0.5, 2.85, sign, ha="center", va="center", size=13, color=figures.COLOURS[1 if leak else 2])
    for i, token in enumerate(source):
        box(i + 1, -1.3, token["token"], "#d5efe5")
        axes.plot([i + 1.5, at + 0.5], [-0.68, 0.3], color=figures.COLOURS[2], linewidth=1.4, zorder=0)
    axes.text(0, 3.3, _say("row_vectors" if setup.head == "none" else "row_predictions", lang), ha="left", size=9.5)
    axes.text(0, 0.05, _say("row_decoder" if source else "row_input", lang), ha="left", va="center", size=9.5)
    if source:
        read = _say("row_source_patches" if setup.tokens == "patches" else "row_source", lang)
        axes.text(0, -1.55, read, ha="left", va="center", size=9.5)


def _draw_influence(axes: Any, lang: str, setup: Setup) -> None:
    from matplotlib.patches import Rectangle

    source, own = shown_tokens(lang, setup)
    rows, marked, cut = kinds(setup), counted(setup), len(source)
    for i, row in enumerate(rows):
        for j, kind in enumerate(row):
            look = {"facecolor": _TINTS[kind], "edgecolor": "#888888", "linewidth": 0.8, "alpha": 1.0 if marked[i] else 0.45}
            axes.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, **look))
            axes.text(j + 0.5, i + 0.5, _SIGNS[kind], ha="center", va="center", size=11, color="black")
    if cut:
        axes.axvline(cut, color="black", linewidth=2)
    axes.set(xlim=(0, cut + len(own)), ylim=(len(rows), 0), aspect="equal")
    axes.set_xticks(np.arange(cut + len(own)) + 0.5, [token["token"] for token in [*source, *own]], rotation=90)
    axes.set_yticks(np.arange(len(rows)) + 0.5, row_names(lang, setup))
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(_say("influence", lang), size=10, loc="right" if cut else "center")
    axes.set_ylabel(_say("row_vector" if setup.head == "none" else "row_prediction", lang))
    axes.set_xlabel(_say("column_token", lang))
