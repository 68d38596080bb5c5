"""The head explorer: what h changes and what not, and four roles that one head blurs (section 3.2.2 and table 3 of the paper)."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import (
    Attention,
    Projections,
    attention_cost,
    layer_cost,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from transformer_lite.explore import figures
from transformer_lite.explore.controls import bench_class, script, static
from transformer_lite.explore.figures import Matrix, Picture, number
from transformer_lite.language import check_language, message

HEADS = (1, 2, 4, 8, 16, 32)
WIDTHS = (64, 512, 1024)
LENGTHS = (5, 100, 512, 2048)
MOST_SHOWN = 4  # the small example has four roles
TOKENS = {"ja": ("犬", "が", "猫", "を", "追いかけた"), "en": ("the", "dog", "chased", "the", "cat")}
GLOSSES = {"ja": ("dog", "subject", "cat", "object", "chased"), "en": ("冠詞", "犬", "追いかけた", "冠詞", "猫")}
_PLACES = {"ja": (0, 2, 4), "en": (1, 4, 2)}  # of the subject, the object and the verb
ROLES = ("subject", "object", "neighbour", "verb")
D_EXAMPLE = 16
# Vaswani et al. 2017, table 3, rows base and A: heads, d_k, perplexity and BLEU (English-German, development set newstest2013).
TABLE_3 = ((1, 512, 5.29, 24.9), (4, 128, 5.00, 25.5), (8, 64, 4.92, 25.8), (16, 32, 4.91, 25.8), (32, 16, 5.01, 25.4))

_WORDS = (
    "guess", "question", "open_answer", "answer", "presets", "reset", "hint", "heads", "width", "length", "ledger", "what", "one",
    "now", "times", "d_k", "divisor", "projected", "split_shape", "scores_shape", "concat_shape", "parameters",
    "projection_cost", "score_cost", "weight_count", "bleu", "bleu_h", "bleu_ppl", "bleu_score", "maps", "maps_few", "head",
    "role_subject", "role_object", "role_neighbour", "role_verb", "role_joined", "role_piece", "row_query", "column_key", "row",
    "query", "row_head", "row_weight", "row_pieces", "comma", "order", "split", "split_features", "split_reshape", "together",
    "together_concat", "together_sum", "reverse", "rows", "difference", "difference_zero", "difference_none", "difference_one",
)  # fmt: skip


class Ledger(NamedTuple):
    """What multi-head attention over n tokens costs, and its sizes: multiply-adds for ``…_cost``, numbers stored for the rest."""

    d_k: int
    divisor: float
    parameters: int
    projection_cost: int
    score_cost: int
    weight_count: int


class State(NamedTuple):
    """What the explorer shows. ``split`` "features" or "reshape" (MC40), ``together`` "concat" or "sum" (MC34)."""

    n_heads: int = 1
    d_model: int = 512
    n: int = 512
    split: str = "features"
    together: str = "concat"
    reverse: bool = False  # the heads' order
    rows: bool = False  # the rows of W^O follow that order


START = State()  # the surprise: four roles are in the matrices, and the one head shows none of them
PRESETS = {
    "roles": State(4),
    "mc37": State(8),
    "mc38": State(32),
    "mc40": State(4, split="reshape"),
    "mc34": State(4, together="sum", reverse=True),
    "order": State(4, reverse=True),
    "both": State(4, reverse=True, rows=True),
}


def explorer(lang: str) -> Any:
    """The head explorer: sizes, cost and roles for h = 1 to 32 heads.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    check_language(lang)
    return picture(lang, START) if static() else widget_class()(lang)


# --- the numbers ---


def ledger(n_heads: int, d_model: int, n: int) -> Ledger:
    """Sizes and costs of one multi-head attention; only d_k, the divisor and the number of weights depend on h.

    Args:
        n_heads: h; must divide d_model.
        d_model: width.
        n: number of tokens.

    Raises:
        ValueError: h does not divide d_model, or a size below 1.

    Source: Vaswani et al. 2017, §3.2.2: with d_k = d_model / h the total cost is about that of one full head.
    """
    if n_heads < 1 or d_model % n_heads:
        raise ValueError(f"n_heads must divide d_model = {d_model}; got {n_heads}.")
    d_k = d_model // n_heads
    projection_cost = layer_cost(n, d_model, 1)[0]
    return Ledger(d_k, d_k**0.5, 4 * d_model**2, projection_cost, sum(attention_cost(n, d_model)), n_heads * n * n)


@cache
def example(lang: str) -> tuple[NDArray[np.float64], Projections]:
    """A sentence x (5, 16) and projections (16, 16) with a role in every four columns of W^Q and W^K.

    Columns 0-3 ask for the subject, 4-7 for the object, 8-11 for a neighbour (the word before in Japanese, after in English, so
    that the verb asks for four different words), 12-15 for the verb. Cut into four heads each head has one role; with one head
    the four scores are added before the one softmax.
    """
    subject, object_, verb = _PLACES[lang]
    x = np.zeros((5, D_EXAMPLE))
    x[subject, 0] = x[object_, 1] = x[verb, 2] = 1.0
    x[:, 3] = 1.0
    x[np.arange(5), 4 + np.arange(5)] = 1.0  # the position
    w_q, w_k = np.zeros((2, D_EXAMPLE, D_EXAMPLE))
    for role, feature in ((0, 0), (1, 1), (3, 2)):
        w_q[3, 4 * role], w_k[feature, 4 * role] = 1.4, 2.8
        w_q[2, 4 * role] = 1.4  # the verb asks twice as strongly as the others
    before = lang == "ja"
    for position in range(4):  # position p + 1 asks for p, or p for p + 1
        w_q[4 + position + before, 8 + position] = w_k[4 + position + (not before), 8 + position] = 2.8
    rng = np.random.default_rng(3)
    return x, Projections(w_q, w_k, *(0.25 * rng.standard_normal((2, D_EXAMPLE, D_EXAMPLE))).round(2))


def example_heads(lang: str, n_heads: int, split: str = "features") -> Attention:
    """Every head of the small example: outputs (h, n, d_k) and weights (h, n, n).

    With ``split="reshape"`` (h, n, d_k) is made by reshape alone, which cuts the sequence instead of the features (trap MC40).
    """
    x, w = example(lang)

    def cut(projected: NDArray[np.float64]) -> NDArray[np.floating]:
        if split == "features":
            return split_heads(projected, n_heads)
        return projected.reshape(n_heads, len(x), D_EXAMPLE // n_heads)  # wrong: the numbers are only filled in anew

    return scaled_dot_product_attention(cut(x @ w.w_q), cut(x @ w.w_k), cut(x @ w.w_v))


def put_together(lang: str, state: State) -> NDArray[np.floating]:
    """(n, d_model): the small example's output, with heads and rows of W^O in the order that ``state`` says."""
    n_heads = min(state.n_heads, MOST_SHOWN)
    outputs, w_o = example_heads(lang, n_heads, state.split).output, example(lang)[1].w_o
    if state.reverse:
        outputs = outputs[::-1]
    if state.together == "sum":
        return outputs.sum(axis=0) @ w_o[: D_EXAMPLE // n_heads]
    if state.rows and state.reverse:
        w_o = w_o.reshape(n_heads, -1, D_EXAMPLE)[::-1].reshape(D_EXAMPLE, D_EXAMPLE)  # (h, d_k, d_model), a block per head
    n = outputs.shape[1]
    merged = merge_heads(outputs) if state.split == "features" else outputs.reshape(n, D_EXAMPLE)
    return merged @ w_o


def order_difference(lang: str, state: State) -> float:
    """By how much, at most, the output changes when the order of the heads (and of W^O's rows) changes as ``state`` says."""
    return float(np.abs(put_together(lang, state) - put_together(lang, state._replace(reverse=False, rows=False))).max())


def pieces(n_heads: int, n: int = 5) -> list[list[tuple[int, int]]]:
    """[head][row]: (token, part) that a row holds where heads were split by reshape alone; part counts from 0 to h − 1."""
    return [[divmod(head * n + row, n_heads) for row in range(n)] for head in range(n_heads)]


# --- words ---


def words(lang: str) -> dict[str, str]:
    """Every text that the explorer in the browser shows."""
    shared = ("guess", "presets", "reset")
    return {word: message(f"explore.qkv.{word}" if word in shared else f"explore.heads.{word}", lang) for word in _WORDS}


def presets(lang: str) -> list[dict[str, Any]]:
    """The named states: the roles, the traps, and the test of the order."""
    return [
        {
            "label": message(f"explore.heads.preset.{name}.label", lang),
            "note": message(f"explore.heads.preset.{name}.note", lang),
            **state._asdict(),
        }
        for name, state in PRESETS.items()
    ]


def head_title(lang: str, head: int, n_heads: int, split: str) -> str:
    """The caption of one head's map: its number and the roles in its columns."""
    say = lambda key, **given: message(f"explore.heads.{key}", lang, **given)  # noqa: E731
    if split == "reshape" and n_heads > 1:
        return say("head", number=head + 1, role=say("role_piece", part=head + 1, h=n_heads))
    share = len(ROLES) // n_heads
    role = say("role_joined").join(say(f"role_{name}") for name in ROLES[head * share : (head + 1) * share])
    return say("head", number=head + 1, role=role)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class HeadExplorer(bench_class()):
        """Lives in the browser; the fields of `State` and the chosen query ``row`` come back as the learner moves them."""

        _esm = script("head_explorer")
        tokens = t.List(t.Unicode()).tag(sync=True)
        glosses = t.List(t.Unicode()).tag(sync=True)
        choices = t.Dict().tag(sync=True)
        vectors = t.List().tag(sync=True)
        projections = t.List().tag(sync=True)
        n_heads = t.Enum(HEADS, 1).tag(sync=True)
        d_model = t.Enum(WIDTHS, 512).tag(sync=True)
        n = t.Enum(LENGTHS, 512).tag(sync=True)
        split = t.Enum(("features", "reshape"), "features").tag(sync=True)
        together = t.Enum(("concat", "sum"), "concat").tag(sync=True)
        reverse = t.Bool(False).tag(sync=True)
        rows = t.Bool(False).tag(sync=True)
        row = t.Int(4, min=0, max=4).tag(sync=True)
        preset = t.Int(-1).tag(sync=True)
        presets = t.List(t.Dict()).tag(sync=True)

        def __init__(self, lang: str) -> None:
            super().__init__(**traits(lang))

        def spoken(self, lang: str) -> dict[str, Any]:
            return texts(lang)

        @property
        def state(self) -> State:
            """The explorer as it stands."""
            return State(*(getattr(self, name) for name in State._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.state)

        def picture(self) -> Picture:
            return picture(self.lang, self.state)

    return HeadExplorer


def texts(lang: str) -> dict[str, Any]:
    """The traits that follow from the language; the sentence itself is one of them."""
    x, w = example(lang)
    verb = _PLACES[lang][2]
    return {
        "lang": lang,
        "tokens": list(TOKENS[lang]),
        "glosses": list(GLOSSES[lang]),
        "vectors": x.tolist(),
        "projections": [matrix.tolist() for matrix in w],
        "row": verb,
        "initial": {**START._asdict(), "row": verb},
        "strings": words(lang),
        "presets": presets(lang),
    }


def traits(lang: str) -> dict[str, Any]:
    """All traits of the first state."""
    choices = {"heads": HEADS, "widths": WIDTHS, "lengths": LENGTHS, "table_3": TABLE_3}
    return {**texts(lang), **START._asdict(), "preset": -1, "choices": {name: list(values) for name, values in choices.items()}}


# --- the static twin ---


def twin(lang: str, now: State) -> tuple[str, list[list[str]], str]:
    """Title, table (the ledger of one head beside that of h heads, then table 3) and sentence of one state."""
    say = lambda key, **given: message(f"explore.heads.{key}", lang, **given)  # noqa: E731
    one, many = ledger(1, now.d_model, now.n), ledger(now.n_heads, now.d_model, now.n)
    table = [[say("what"), say("one"), say("now", h=now.n_heads), say("times")]]
    for name, before, after in zip(Ledger._fields, one, many, strict=True):
        table.append([say(name), *(_figure(name, value) for value in (before, after)), f"× {after / before:.4g}"])
    for name, shape in (("split_shape", "(B, {h}, n, {d_k})"), ("scores_shape", "(B, {h}, n, n)")):
        first, second = (shape.format(h=h, d_k=sizes.d_k) for h, sizes in ((1, one), (now.n_heads, many)))
        table.append([say(name), first, second, "=" if first == second else "≠"])
    table.append([say("bleu_h"), "d_k", say("bleu_ppl"), say("bleu_score")])
    table += [[str(h), str(d_k), number(perplexity), number(bleu, 1)] for h, d_k, perplexity, bleu in TABLE_3]
    return say("title"), table, sentence(lang, now)


def _figure(name: str, value: float) -> str:
    return number(value) if name == "divisor" else f"{value:,}"


def sentence(lang: str, now: State) -> str:
    """Where the verb's row looks in every head of the example, and whether the order of the heads matters."""
    say = lambda key, **given: message(f"explore.heads.{key}", lang, **given)  # noqa: E731
    n_heads, verb = min(now.n_heads, MOST_SHOWN), _PLACES[lang][2]
    parts = []
    if now.split == "features":
        rows = example_heads(lang, n_heads).weights[:, verb]
        heads = say("comma").join(_row_words(lang, head, row) for head, row in enumerate(rows))
        parts.append(say("query", token=TOKENS[lang][verb], heads=heads))
    else:
        parts.append(say("row_pieces"))
    if now.reverse and n_heads > 1:
        difference = order_difference(lang, now)
        parts.append(say("difference", value=number(difference)) if difference > 1e-9 else say("difference_zero"))
    return ("" if lang == "ja" else " ").join(parts)


def _row_words(lang: str, head: int, row: NDArray[np.floating]) -> str:
    """The keys that get at least 0.15 in this row, in words."""
    say = lambda key, **given: message(f"explore.heads.{key}", lang, **given)  # noqa: E731
    strong = " ".join(say("row_weight", token=TOKENS[lang][j], weight=number(float(row[j]))) for j in np.flatnonzero(row >= 0.15))
    return say("row_head", number=head + 1, weights=strong)


def picture(lang: str, now: State) -> Picture:
    """The maps of the small example's heads (four at most), drawn with matplotlib; the ledger is the table."""
    title, table, text = twin(lang, now)
    n_heads = min(now.n_heads, MOST_SHOWN)
    weights = example_heads(lang, n_heads, now.split).weights
    tokens, glosses = TOKENS[lang], GLOSSES[lang]
    panels = []
    for head in range(n_heads):
        names = [f"{tokens[token]} {part + 1}/{n_heads}" for token, part in pieces(n_heads)[head]]
        whole = now.split == "features" or n_heads == 1
        rows = (
            [f"{token} {gloss}" if head == 0 else token for token, gloss in zip(tokens, glosses, strict=True)] if whole else names
        )
        axis = None if head == 0 else " "  # named once
        title_of_head = head_title(lang, head, n_heads, now.split)
        panels.append(Matrix(weights[head], title_of_head, rows, list(tokens) if whole else names, row_axis=axis))
    drawn = figures.matrices_picture(panels, title=title, lang=lang)
    return replace(drawn, table=table, text=text)
