"""The generator: a translation token by token, its probabilities, its cross-attention, its work (section 3 of the paper)."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.explore import figures, looking
from transformer_lite.explore.controls import script, static
from transformer_lite.explore.figures import Picture, number
from transformer_lite.explore.looking import EXAMPLE, MEAN, Look, Sentence, head_name, layer_name, named
from transformer_lite.language import check_language, message

SHOWS = ("cross",)

_WORDS = (
    "question", "open_answer", "answer", "hint", "first", "back", "next", "last", "steps", "step", "step_of", "source",
    "source_note", "source_word", "target", "target_note", "written", "so_far", "probabilities", "rank", "token",
    "probability", "attention", "weight", "work", "in_this", "in_all", "without", "with", "encoder", "decoder", "positions",
    "repeated", "source_rows", "scores", "triangle", "triangle_without", "triangle_with", "legend_new", "legend_again",
    "legend_kept", "said_first", "said", "said_end", "said_cut", "pass", "pass_work",
)  # fmt: skip


class State(NamedTuple):
    """What the explorer shows: pass ``step``, from 1 on, and the cross-attention of one ``layer`` and ``head`` (or `MEAN`)."""

    step: int
    layer: int
    head: int


class Work(NamedTuple):
    """What one pass computes: in each layer where it is not said otherwise."""

    encoder: int  # passes
    decoder: int  # passes
    positions: int  # that go through the decoder; each makes one row of K and V for self-attention
    repeated: int  # of them, computed in an earlier pass already
    source_rows: int  # rows of K and V for cross-attention, made from the memory
    scores: int  # of self-attention, in one head


def explorer(lang: str, look: Look | None = None, text: str = EXAMPLE) -> Any:
    """The generator: how a translation comes about token by token, and what each pass of the decoder costs.

    Args:
        lang: ``"ja"`` or ``"en"``.
        look: asks a translator, see `looking`. Without it one stored sentence is shown.
        text: the sentence to begin with, if there is a translator.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    check_language(lang)
    found, trouble = looking.first(look, text, lang)
    return picture(lang, found, start(found)) if static() else widget_class()(lang, look, found, trouble)


def start(found: Sentence) -> State:
    """The surprise: only BOS has gone in, and the first word is chosen; the last layer shows best where from."""
    return State(1, len(found.cross) - 1, MEAN)


# --- the numbers ---


def work(step: int, n_source: int, cache: bool) -> Work:
    """What pass number ``step`` computes for a source of ``n_source`` tokens, with a KV cache or without one.

    Without it, the pass takes all ``step`` tokens through the decoder again; with it the newest one alone, whose query meets
    the keys that were kept.
    """
    positions = 1 if cache else step
    makes_memory_rows = step == 1 or not cache
    return Work(int(step == 1), 1, positions, positions - 1, n_source if makes_memory_rows else 0, positions * step)


def work_so_far(step: int, n_source: int, cache: bool) -> Work:
    """The sum of `work` over the passes 1 to ``step``."""
    return Work(*np.sum([work(t, n_source, cache) for t in range(1, step + 1)], axis=0).tolist())


def attention(found: Sentence, now: State) -> NDArray[np.float64]:
    """(n_source,): the cross-attention of the row that predicts the token of this pass."""
    return looking.head_weights(found.cross, now.layer, now.head)[now.step - 1]


def probability(found: Sentence, step: int) -> float:
    """p(y_t | y_<t, x) of the token written in pass ``step``: the first of the most probable ones, as decoding is greedy."""
    return found.likely[step - 1][0][1]


def so_far(found: Sentence, step: int) -> float:
    """The product of the probabilities up to pass ``step``."""
    return float(np.prod([probability(found, t) for t in range(1, step + 1)]))


# --- words ---


def _say(key: str, lang: str, **given: object) -> str:
    return message(f"explore.generating.{key}", lang, **given)


def words(lang: str) -> dict[str, str]:
    """Every text that the explorer in the browser shows."""
    return looking.words(lang) | {word: _say(word, lang) for word in _WORDS}


def sentence(lang: str, found: Sentence, now: State) -> str:
    """What happens in this pass: what went in last, what is chosen, and where the row that chooses it looks most."""
    row = attention(found, now)
    given = {
        "t": now.step,
        "held": named(found.held[now.step - 1], "target", lang),
        "token": named(found.target[now.step - 1], "target", lang),
        "p": number(probability(found, now.step), 3),
        "source": named(found.source[int(row.argmax())], "source", lang),
        "weight": number(float(row.max())),
    }
    said = _say("said_first" if now.step == 1 else "said", lang, **given)
    if now.step < len(found.target):
        return said
    return said + ("" if lang == "ja" else " ") + _say("said_end" if found.ended else "said_cut", lang)


# --- the widget ---


@cache
def widget_class() -> type:
    """The widget's class, made on first use so that importing this module loads neither anywidget nor ipywidgets."""
    import traitlets as t

    class Generator(looking.asking_class()):
        """Lives in the browser; the fields of `State` come back as the learner moves them, and a new sentence to translate."""

        _esm = script("looking", "generator")
        shows = SHOWS
        step = t.Int(1, min=1).tag(sync=True)
        layer = t.Int(0, min=0).tag(sync=True)
        head = t.Int(MEAN, min=MEAN).tag(sync=True)

        def __init__(self, lang: str, look: Look | None, found: Sentence, trouble: str = "") -> None:
            super().__init__(look, found, **traits(lang, found, look is not None, trouble))

        def spoken(self, lang: str) -> dict[str, Any]:
            return {"strings": words(lang), **self.relooked(lang)}

        def begin(self, found: Sentence) -> dict[str, Any]:
            return start(found)._asdict()

        @property
        def state(self) -> State:
            """The explorer as it stands."""
            return State(*(getattr(self, name) for name in State._fields))

        def twin(self) -> tuple[str, list[list[str]], str]:
            return twin(self.lang, self.found, self.state)

        def picture(self) -> Picture:
            return picture(self.lang, self.found, self.state)

    return Generator


def traits(lang: str, found: Sentence, can_ask: bool = False, trouble: str = "") -> dict[str, Any]:
    """All traits of the first state."""
    return {
        **looking.traits(lang, found, SHOWS, can_ask, trouble),
        **start(found)._asdict(),
        "strings": words(lang),
    }


# --- the static twin ---


def twin(lang: str, found: Sentence, now: State) -> tuple[str, list[list[str]], str]:
    """Title, table (a row for each pass: what goes in, what comes out, where it looks, what it computes) and sentence."""
    header = ("pass", "target", "next_token", "probability", "attention_short", "positions_without", "positions_with")
    table = [[_say(name, lang) for name in header]]
    n_source = len(found.source)
    for t in range(1, len(found.target) + 1):
        row = attention(found, now._replace(step=t))
        best = int(row.argmax())
        costs = (
            _of_all(work(t, n_source, cached).positions, work_so_far(t, n_source, cached).positions) for cached in (False, True)
        )
        table.append(
            [
                str(t),
                " ".join(token.token for token in found.held[:t]),
                named(found.target[t - 1], "target", lang),
                number(probability(found, t), 3),
                f"{named(found.source[best], 'source', lang)} {number(float(row[best]))}",
                *costs,
            ]
        )
    return _say("title", lang, text=found.text), table, sentence(lang, found, now)


def _of_all(here: int, so_far: int) -> str:
    return f"{here} / {so_far}"


def picture(lang: str, found: Sentence, now: State) -> Picture:
    """The pass as two charts of bars, what is probable and where the predicting row looks; with matplotlib."""
    title, table, text = twin(lang, found, now)
    probable = [(f"{token.token}  {token.gloss}".rstrip(), p) for token, p in found.likely[now.step - 1]]
    looked = zip(found.source, attention(found, now).tolist(), strict=True)
    seen = [(f"{token.token}  {token.gloss}".rstrip(), weight) for token, weight in looked]
    where = _say("attention_drawn", lang, layer=layer_name(now.layer, lang), head=head_name(now.head, lang))
    with figures.style():
        figure = figures.new_figure(900, max(230, 90 + 24 * len(seen)))
        panels = ((probable, _say("probabilities", lang), 3), (seen, where, 2))
        for axes, (bars, name, digits), colour in zip(figure.subplots(1, 2), panels, figures.COLOURS, strict=False):
            places = np.arange(len(bars))
            axes.barh(places, [value for _, value in bars], 0.6, color=colour)
            for place, (_, value) in zip(places, bars, strict=True):
                axes.text(value, place, f" {number(value, digits)}", va="center", size=9)
            axes.set_yticks(places, [label for label, _ in bars])
            axes.set_ylim(max(len(probable), len(seen)) - 0.5, -0.5)  # bars of one thickness in both
            axes.set_xlim(0, 1.15)
            axes.set_title(name)
        figure.suptitle(_say("drawn", lang, t=now.step, input=_ending(found, now.step), token=found.target[now.step - 1].token))
        png = figures.to_png(figure)
    return Picture(png, title, table, text, lang)


def _ending(found: Sentence, step: int, most: int = 8) -> str:
    """What has gone in, or its end where that is long."""
    held = [token.token for token in found.held[:step]]
    return " ".join(held if step <= most else ["…", *held[-most:]])
