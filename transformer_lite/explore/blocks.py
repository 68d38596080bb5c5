"""The block builder: snap sub-layers into an encoder or decoder layer, and see what moves what (figure 1 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache, reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.content import traps
from transformer_lite.equations import (
    DecoderParameters,
    EncoderParameters,
    causal_mask,
    encoder_layer,
    feed_forward,
    influence_matrix,
    layer_norm,
    multi_head_attention,
)
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Picture
from transformer_lite.language import Text, check_language, message

GOALS = ("encoder", "decoder")
PIECES = ("masked", "unmasked", "cross", "ffn", "norm")  # "norm" is Add & Norm
N_SLOTS = 6
JOINED = ("after", "before", "input", "parallel")  # Post-LN; Pre-LN; residual always from the layer's input; side by side
D_MODEL, D_FF, N_HEADS = 8, 16, 2
# What goes in: the encoder's tokens, and the decoder's, shifted right.
TOKENS = {"encoder": ("the", "dog", "chased", "the", "cat"), "decoder": ("BOS", "犬", "が", "猫", "を", "追いかけた")}
GLOSSES = {
    "encoder": ("冠詞", "犬", "追いかけた", "冠詞", "猫"),
    "decoder": (Text("文頭", "start"), "dog", "subject", "cat", "object", "chased"),
}
OWN = {"encoder": "en", "decoder": "ja"}  # the language of the tokens
PAPER = {"encoder": ("unmasked", "norm", "ffn", "norm", "", ""), "decoder": ("masked", "norm", "cross", "norm", "ffn", "norm")}
# Mistakes, in the order in which they are told. Keys of the catalogue have their words there, the others among the messages.
FINDINGS = (
    "empty", "BL1", "MC22", "cross_in_encoder", "BL5", "no_self", "BL3", "BL4", "BL2", "BL8", "ffn_between", "repeated",
    "no_add_norm", "idle_norm", "BL6", "BL9", "BL7",
)  # fmt: skip
_CODES = {"cross_in_encoder": "MC62", "no_add_norm": "AN1, AN2"}  # of the mistakes whose words are among the messages

_WORDS = (
    "question", "open_answer", "answer", "hint", "goal", "goal_encoder", "goal_decoder", "joined", "joined_after",
    "joined_before", "joined_input", "joined_parallel", "pieces", "piece_masked", "piece_unmasked", "piece_cross", "piece_ffn",
    "piece_norm", "piece_add", "piece_empty", "remove", "clear", "stack", "stack_role", "input_encoder", "input_decoder",
    "output", "from_memory", "norm_before", "slot", "influence", "own", "memory", "no_memory", "impossible", "right",
    "wrong", "counts", "counts_memory", "same", "leaks", "missing", "legend_same", "legend_leak", "legend_missing",
    "cell_same", "cell_leak", "cell_missing", "cell_none", "comma",
)  # fmt: skip


class State(NamedTuple):
    """What is built: which layer is wanted, the pieces from the bottom slot up ("" is empty), and how Add & Norm is wired."""

    goal: str = "decoder"
    slots: tuple[str, ...] = ("unmasked", "norm", "cross", "norm", "ffn", "norm")
    joined: str = "after"


START = State()  # the surprise: a decoder layer that raises no error and sees the whole future
PRESETS = {
    "right_decoder": State("decoder", PAPER["decoder"]),
    "right_encoder": State("encoder", PAPER["encoder"]),
    "BL1": START,
    "BL2": State("decoder", ("cross", "norm", "masked", "norm", "ffn", "norm")),
    "BL3": State("decoder", ("masked", "norm", "ffn", "norm", "", "")),
    "BL4": State("decoder", ("masked", "norm", "cross", "norm", "", "")),
    "BL5": State("decoder", ("cross", "norm", "ffn", "norm", "", "")),
    "BL6": State("decoder", PAPER["decoder"], "before"),
    "BL7": State("decoder", PAPER["decoder"], "parallel"),
    "BL8": State("decoder", ("ffn", "norm", "masked", "norm", "cross", "norm")),
    "BL9": State("decoder", PAPER["decoder"], "input"),
    "MC22": State("encoder", ("masked", "norm", "ffn", "norm", "", "")),
}


def explorer(lang: str, **state: Any) -> Any:
    """The block builder: choose pieces for six slots, and see the layer's influence matrices and whether it is the paper's.

    Args:
        lang: ``"ja"`` or ``"en"``.
        state: where it starts: ``goal`` ("encoder" or "decoder"), ``slots`` (up to six of `PIECES` from the bottom up, "" for an
            empty one) and ``joined`` (one of `JOINED`).

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: an unknown goal, piece or wiring, or more than six pieces.
    """
    check_language(lang)
    first = START._replace(**state)
    if not isinstance(first.slots, list | tuple):
        raise ValueError(f"slots must be a list of pieces; got {first.slots!r}.")
    slots = tuple(first.slots)
    first = first._replace(slots=slots + ("",) * (N_SLOTS - len(slots)))
    for name, value, known in (("goal", first.goal, GOALS), ("joined", first.joined, JOINED)):
        if value not in known:
            raise ValueError(f"{name} must be one of {', '.join(known)}; got {value!r}.")
    if len(slots) > N_SLOTS or any(piece not in (*PIECES, "") for piece in slots):
        raise ValueError(f'slots must hold at most {N_SLOTS} of {", ".join(PIECES)} or ""; got {slots!r}.')
    return picture(lang, first) if static() else widget_class()(lang, first)


# --- the numbers ---


@cache
def parameters() -> DecoderParameters:
    """The arrays of one layer, (d_model, d_ff) = (8, 16), the same wherever a piece stands.

    W^Q and W^K of self-attention are small: even where nothing is normalised no softmax saturates, and what can move an output
    is seen to move it.
    """
    p = DecoderParameters.random(D_MODEL, D_FF, np.random.default_rng(8))
    return replace(p, w_q=p.w_q / 4, w_k=p.w_k / 4)


@cache
def sources(goal: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The layer's own input (n, 8), and the memory (n_memory, 8) that an encoder layer has made of other numbers."""
    rng = np.random.default_rng(80)
    n_source = len(TOKENS["encoder"])
    memory = encoder_layer(
        rng.standard_normal((n_source, D_MODEL)), EncoderParameters.random(D_MODEL, D_FF, rng), N_HEADS
    )  # (n_source, 8)
    return rng.standard_normal((len(TOKENS[goal]), D_MODEL)), memory


class Stream(NamedTuple):
    """What has become of the layer's input after the pieces so far; arrays (..., n, d_model).

    ``x`` leaves the layer if nothing more is put on. The next Add & Norm adds ``branch`` to ``kept`` and normalises with the
    gain and bias of ``last``, the sub-layer before it ("" right after an Add & Norm).
    """

    start: NDArray[np.floating]
    x: NDArray[np.floating]
    branch: NDArray[np.floating]
    kept: NDArray[np.floating]
    last: str = ""


def put_on(stream: Stream, piece: str, memory: NDArray[np.floating], joined: str = "after") -> Stream:
    """Put one more piece on top.

    Args:
        stream: so far.
        piece: one of `PIECES`. A sub-layer works on what comes out below it; Add & Norm adds the input of the sub-layers since
            the Add & Norm before it.
        memory: (..., n_memory, d_model).
        joined: "after": LayerNorm(x + Sublayer(x)), the paper; "before": x + Sublayer(LayerNorm(x)); "input": x is always the
            layer's input; "parallel": every Sublayer works on the layer's input, and all are added up.
    """
    start, x, branch, kept, last = stream
    if piece == "norm":
        if joined == "before":
            x = kept + (branch if last else _norm(branch, last))
            return Stream(start, x, x, x)
        kept = kept + branch
        x = _norm(kept, last)
        if joined == "parallel":
            return Stream(start, x, start, kept)
        return Stream(start, x, x, start if joined == "input" else x)
    if joined == "before" and not last:
        branch = _norm(branch, piece)
    made = _sublayer(piece, branch, memory)
    # Only while no Add & Norm follows do the last sub-layers stand alone: one after the other, and without a norm.
    alone = made if joined in ("after", "input") else _sublayer(piece, x, memory)
    return Stream(start, alone, made, kept, piece)


def _norm(x: NDArray[np.floating], last: str) -> NDArray[np.floating]:
    """LayerNorm with the gain and bias that belong to the sub-layer ``last``."""
    p = parameters()
    gain, bias = {"cross": (p.memory_gain, p.memory_bias), "ffn": (p.feed_forward_gain, p.feed_forward_bias)}.get(
        last, (p.attention_gain, p.attention_bias)
    )
    return layer_norm(x, gain, bias)


def _sublayer(piece: str, x: NDArray[np.floating], memory: NDArray[np.floating]) -> NDArray[np.floating]:
    p = parameters()
    if piece == "ffn":
        return feed_forward(x, p.w1, p.b1, p.w2, p.b2)
    if piece == "cross":
        return multi_head_attention(x, p.memory_projections, N_HEADS, memory=memory).output
    mask = causal_mask(x.shape[-2]) if piece == "masked" else None
    return multi_head_attention(x, p.self_projections, N_HEADS, mask).output


def layer(state: State, own: NDArray[np.floating], memory: NDArray[np.floating]) -> NDArray[np.floating]:
    """What the layer as built makes of ``own`` (..., n, d_model): same shape. Empty slots pass everything on."""
    pieces = filter(None, state.slots)
    return reduce(lambda stream, piece: put_on(stream, piece, memory, state.joined), pieces, Stream(own, own, own, own)).x


def can_run(state: State) -> bool:
    """Whether the layer has all that it needs. The memory is what the encoder makes: inside the encoder there is none yet."""
    return state.goal == "decoder" or "cross" not in state.slots


def influence(state: State) -> NDArray[np.bool_] | None:
    """(n, n + n_memory): which outputs move when a row of the layer's own input, or of the memory, moves; None if it cannot run.

    An encoder layer has no columns for the memory.
    """
    if not can_run(state):
        return None
    own, memory = sources(state.goal)
    n = len(own)
    if state.goal == "encoder":
        return influence_matrix(lambda x: layer(state, x, memory), own)
    return influence_matrix(lambda rows: layer(state, rows[:n], rows[n:]), np.concatenate([own, memory]))


def findings(state: State) -> tuple[str, ...]:
    """Keys of `FINDINGS`: in what the layer differs from the paper's. None: it is the paper's layer."""
    pieces = [piece for piece in state.slots if piece]
    if not pieces:
        return ("empty",)
    decoder = state.goal == "decoder"
    kinds = ["self" if piece in ("masked", "unmasked") else piece for piece in pieces if piece != "norm"]
    attentions = [i for i, kind in enumerate(kinds) if kind in ("self", "cross")]
    first = {kind: kinds.index(kind) for kind in kinds}
    below = ["norm", *pieces]  # what stands below piece i; at the bottom no sub-layer does
    norms = pieces.count("norm")
    ffn_early = "ffn" in first and bool(attentions) and first["ffn"] < max(attentions)
    found = {
        "BL1": decoder and "unmasked" in pieces,
        "MC22": not decoder and "masked" in pieces,
        "cross_in_encoder": not decoder and "cross" in pieces,
        "BL5": decoder and "self" not in first,
        "no_self": not decoder and "self" not in first,
        "BL3": decoder and "cross" not in first,
        "BL4": "ffn" not in first,
        "BL2": decoder and "self" in first and "cross" in first and first["cross"] < first["self"],
        "BL8": ffn_early and first["ffn"] == 0,
        "ffn_between": ffn_early and first["ffn"] > 0,
        "repeated": len(first) < len(kinds),
        "no_add_norm": any(piece != "norm" and above != "norm" for piece, above in zip(pieces, [*pieces[1:], ""], strict=True)),
        "idle_norm": any(piece == "norm" == under for piece, under in zip(pieces, below, strict=False)),
        "BL6": state.joined == "before" and norms > 0,
        "BL9": state.joined == "input" and norms > 1,  # the first residual starts there anyway
        "BL7": state.joined == "parallel" and norms > 1,
    }
    return tuple(key for key in FINDINGS if found.get(key))


class Marks(NamedTuple):
    """How many cells of one influence matrix move, and how they differ from those of the paper's layer."""

    moved: int
    expected: int
    leaks: int  # move, and must not
    missing: int  # should move, and do not


def compared(moved: NDArray[np.bool_], expected: NDArray[np.bool_]) -> Marks:
    """Count the cells of ``moved`` against those of the paper's layer, ``expected``; both (n, m)."""
    return Marks(*(int(cells.sum()) for cells in (moved, expected, moved & ~expected, expected & ~moved)))


@cache
def expected(goal: str) -> NDArray[np.bool_]:
    """The influence of the paper's layer: (5, 5) for the encoder, (6, 6 + 5) for the decoder."""
    return influence(State(goal, PAPER[goal]))  # type: ignore[return-value]


# --- words ---


def _say(key: str, lang: str, **parameters: object) -> str:
    return message(f"explore.blocks.{key}", lang, **parameters)


def words(lang: str) -> dict[str, str]:
    """Every text that the builder in the browser shows, but for the mistakes."""
    return {word: _say(word, lang) for word in _WORDS} | {
        word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")
    } | {word: message(f"explore.wiring.{word}", lang) for word in ("row_output", "column_input")}  # fmt: skip


@cache
def mistakes(lang: str) -> dict[str, dict[str, dict[str, str]]]:
    """[goal][key of `FINDINGS`]: the mistake's title, its code in the catalogue (or "") and what is wrong with it."""
    catalogue = traps()

    def told(goal: str, key: str) -> dict[str, str]:
        if key not in catalogue:
            return {
                "title": _say(f"mistake.{key}.title", lang),
                "code": _CODES.get(key, ""),
                "why": _say(f"mistake.{key}.why", lang),
            }
        # The line of BL7 speaks of cross-attention, which an encoder has not.
        own = "mistake.BL7_encoder.why" if (goal, key) == ("encoder", "BL7") else ""
        return {"title": catalogue[key].title(lang), "code": key, "why": _say(own, lang) if own else catalogue[key].line(lang)}

    return {goal: {key: told(goal, key) for key in FINDINGS} for goal in GOALS}


def tokens(lang: str) -> dict[str, list[dict[str, str]]]:
    """The tokens of encoder and decoder, each with its gloss in the other language and its own language."""

    def gloss(word: str | Text) -> str:
        return word(lang) if isinstance(word, Text) else word

    return {
        goal: [
            {"token": token, "gloss": gloss(word), "own": OWN[goal]}
            for token, word in zip(TOKENS[goal], GLOSSES[goal], strict=True)
        ]
        for goal in GOALS
    }


def presets(lang: str) -> list[dict[str, Any]]:
    """The named layers: the two of the paper and the known mistakes; what is wrong with each is said by its verdict."""
    return [{"label": _say(f"preset.{name}", lang), "note": "", **_traits(state)} for name, state in PRESETS.items()]


def _traits(state: State) -> dict[str, Any]:
    return {"goal": state.goal, "slots": list(state.slots), "joined": state.joined}


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class BlockBuilder(bench_class()):
        """Lives in the browser; goal, slots, wiring and the slot of the cursor come back as the learner moves them."""

        _esm = script("block_builder")
        goal = t.Enum(GOALS, START.goal).tag(sync=True)
        slots = t.List(t.Enum((*PIECES, "")), list(START.slots), minlen=N_SLOTS, maxlen=N_SLOTS).tag(sync=True)
        joined = t.Enum(JOINED, START.joined).tag(sync=True)
        cursor = t.Int(0, min=0, max=N_SLOTS - 1).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)
        tokens = t.Dict().tag(sync=True)
        mistakes = t.Dict().tag(sync=True)

        def __init__(self, lang: str, first: State) -> None:
            super().__init__(**traits(lang, first))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def state(self) -> State:
            """The layer as it stands."""
            return State(self.goal, tuple(self.slots), self.joined)

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.state)

        def picture(self) -> Picture:
            return picture(self.lang, self.state)

    return BlockBuilder


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language."""
    return {
        "lang": lang,
        "strings": words(lang),
        "presets": presets(lang),
        "tokens": tokens(lang),
        "mistakes": mistakes(lang),
    }


def traits(lang: str, first: State = START) -> dict[str, Any]:
    """All traits of the first state."""
    return {**texts(lang), **_traits(first), "cursor": 0, "preset": -1, "initial": {**_traits(first), "cursor": 0}}


# --- the static twin ---


def piece_name(lang: str, state: State, slot: int) -> str:
    """What the piece in a slot is called: only Add where the Norm has gone below its sub-layer, or to the end of all."""
    piece = state.slots[slot]
    above = "norm" in state.slots[slot + 1 :]
    only_add = piece == "norm" and (state.joined == "before" or (state.joined == "parallel" and above))
    return _say("piece_add" if only_add else f"piece_{piece or 'empty'}", lang)


def twin(lang: str, state: State) -> tuple[str, list[list[str]], str]:
    """Title, table (a row per output: 1 where it moves with the input or memory of that column) and sentence of one state."""
    named, moved = tokens(lang), influence(state)
    rows = [f"{token['token']} {token['gloss']}" for token in named[state.goal]]
    columns = [token["token"] for token in named[state.goal]]
    if state.goal == "decoder":
        columns += [f"memory {token['token']}" for token in named["encoder"]]
    corner = f"{message('explore.wiring.row_output', lang)} / {message('explore.wiring.column_input', lang)}"
    table = [[corner, *columns]]
    for i, row in enumerate(rows):
        cells = ["–"] * len(columns) if moved is None else [str(int(yes)) for yes in moved[i]]
        table.append([row, *cells])
    return _say("title", lang), table, sentence(lang, state)


def sentence(lang: str, state: State) -> str:
    """What stands in the slots, whether that is the paper's layer, and what the influence matrices show."""
    named = [piece_name(lang, state, i) for i, piece in enumerate(state.slots) if piece] or [_say("piece_empty", lang)]
    stack = _say("state", lang, pieces=" → ".join(named), joined=_say(f"joined_{state.joined}", lang))
    gap = "" if lang == "ja" else " "
    return gap.join([stack, verdict(lang, state), *whys(lang, state), *sights(lang, state)])


def verdict(lang: str, state: State) -> str:
    """Whether it is the paper's layer."""
    wrong = len(findings(state))
    return _say("wrong" if wrong else "right", lang, goal=_say(f"goal_{state.goal}", lang), n=wrong)


def whys(lang: str, state: State) -> list[str]:
    """Every mistake by its title and code, with what is wrong about it."""
    told = [mistakes(lang)[state.goal][key] for key in findings(state)]
    return [f"{one['title']}{' ({})'.format(one['code']) if one['code'] else ''}: {one['why']}" for one in told]


def sights(lang: str, state: State) -> list[str]:
    """What the influence matrices show, beside those of the paper's layer."""
    moved = influence(state)
    if moved is None:
        return [_say("impossible", lang)]
    n = len(TOKENS[state.goal])
    parts = [compared(*pair) for pair in _split(moved, expected(state.goal), n)]
    said = [_say("counts", lang, moved=parts[0].moved, expected=parts[0].expected)]
    if state.goal == "decoder":
        said.append(_say("counts_memory", lang, moved=parts[1].moved, expected=parts[1].expected))
    leaks, missing = (sum(getattr(part, name) for part in parts) for name in ("leaks", "missing"))
    if leaks:
        said.append(_say("leaks", lang, n=leaks))
    if missing:
        said.append(_say("missing", lang, n=missing))
    if findings(state) and not leaks and not missing:
        said.append(_say("same", lang))
    return said


def _split(moved: NDArray[np.bool_], wanted: NDArray[np.bool_], n: int) -> list[tuple[NDArray[np.bool_], NDArray[np.bool_]]]:
    """(moved, wanted) of the layer's own input, then of the memory (without columns for an encoder)."""
    return [(moved[:, :n], wanted[:, :n]), (moved[:, n:], wanted[:, n:])]


# The colours of the pieces in figures.COLOURS, as in block_builder.css.
_TINTS = {"masked": 0, "unmasked": 5, "cross": 1, "ffn": 2, "norm": 3}


def picture(lang: str, state: State = START) -> Picture:
    """The layer as a stack of pieces, and its influence matrices, drawn with matplotlib."""
    title, table, text = twin(lang, state)
    moved, n = influence(state), len(TOKENS[state.goal])
    decoder = state.goal == "decoder"
    with figures.style():
        figure = figures.new_figure(900, 420)
        axes = figure.subplots(1, 3 if decoder else 2, width_ratios=[1.15, 1.0, 0.9] if decoder else [1.15, 1.0])
        _draw_stack(axes[0], lang, state)
        labels = [token["token"] for token in tokens(lang)[state.goal]]
        rows = labels if OWN[state.goal] == lang else [f"{token['token']} {token['gloss']}" for token in tokens(lang)[state.goal]]
        wanted = expected(state.goal)
        nothing = np.zeros_like(wanted)
        parts = _split(nothing if moved is None else moved, nothing if moved is None else wanted, n)
        _draw_influence(axes[1], lang, *parts[0], f"{_say('own', lang)} ({n}, {n})", rows, labels)
        if decoder:
            _draw_influence(
                axes[2], lang, *parts[1], f"{_say('memory', lang)} ({n}, {len(TOKENS['encoder'])})", rows, list(TOKENS["encoder"])
            )
        legend = "   ".join(_say(f"legend_{name}", lang) for name in ("same", "leak", "missing"))
        figure.suptitle(f"{verdict(lang, state)}\n{legend}", size=10)
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _draw_stack(axes: Any, lang: str, state: State) -> None:
    """The slots from the bottom up, with the residual connections at their left."""
    from matplotlib.patches import FancyBboxPatch

    axes.set(xlim=(-0.35, 1.0), ylim=(-1.05, N_SLOTS + 0.8), xticks=[], yticks=[])
    axes.spines[:].set_visible(False)
    axes.set_title(_say("stack", lang))
    for i, piece in enumerate(state.slots):
        colour = figures.COLOURS[_TINTS[piece]] if piece else "#999999"
        box = {"facecolor": f"{colour}2b" if piece else "white", "edgecolor": colour, "linestyle": "-" if piece else ":"}
        axes.add_patch(FancyBboxPatch((0.03, i + 0.12), 0.94, 0.74, boxstyle="round,pad=0,rounding_size=0.06", **box))
        name = piece_name(lang, state, i)
        if piece == "cross":
            name += f"  {_say('from_memory', lang)}"
        axes.text(0.5, i + 0.49, name, ha="center", va="center", size=9.5)
    for low, high, lane in residuals(state.slots, state.joined):
        x = -0.05 - 0.05 * lane
        axes.plot([0.03, x, x], [low, low, high + 0.5], color="black", linewidth=1.3)
        axes.annotate("", (0.03, high + 0.5), (x, high + 0.5), arrowprops={"arrowstyle": "-|>", "color": "black", "shrinkB": 0})
    axes.text(0.5, -0.25, _say(f"input_{state.goal}", lang), ha="center", va="top", size=9.5)
    axes.text(0.5, N_SLOTS + 0.2, _say("output", lang), ha="center", va="bottom", size=9.5)


def residuals(slots: tuple[str, ...], joined: str) -> list[tuple[int, int, int]]:
    """(from below slot a, to slot b, lane) of every residual connection. Side by side, there is one: to the last Add & Norm."""
    norms = [i for i, piece in enumerate(slots) if piece == "norm"]
    if joined == "parallel":
        return [(0, norms[-1], 0)] if norms else []
    if joined == "input":
        return [(0, norm, lane) for lane, norm in enumerate(norms)]
    return [(start, norm, 0) for start, norm in zip([0, *(norm + 1 for norm in norms)], norms, strict=False)]


def _draw_influence(
    axes: Any,
    lang: str,
    moved: NDArray[np.bool_],
    wanted: NDArray[np.bool_],
    title: str,
    rows: list[str],
    columns: list[str],
) -> None:
    """One influence matrix: filled as in the paper's layer, ! where it must not move, a square where it should."""
    from matplotlib.patches import Rectangle

    for (i, j), yes in np.ndenumerate(moved):
        colour = "white" if not yes else figures.COLOURS[5] if wanted[i, j] else figures.COLOURS[1]
        axes.add_patch(Rectangle((j + 0.03, i + 0.03), 0.94, 0.94, facecolor=colour, edgecolor="#888888", linewidth=0.8))
        sign = ("●" if wanted[i, j] else "!") if yes else ("□" if wanted[i, j] else "")
        axes.text(j + 0.5, i + 0.5, sign, ha="center", va="center", size=11, color="black")
    axes.set(xlim=(0, len(columns)), ylim=(len(rows), 0), aspect="equal")
    axes.set_xticks(np.arange(len(columns)) + 0.5, columns, rotation=90)
    axes.set_yticks(np.arange(len(rows)) + 0.5, rows)
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    axes.set_title(title, size=10)
    axes.set_ylabel(message("explore.wiring.output", lang))
