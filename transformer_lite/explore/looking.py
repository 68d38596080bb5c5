"""What the explorers of generation share: one sentence, what a trained translator did with it, and a field to ask for another.

The translator itself is on a higher floor. It comes in as ``look(text)``, a function that returns a mapping:

    source, target                      tokens, EOS last
    source_glosses, target_glosses      what each means, in the learner's language
    cross, encoder, decoder             weights (layers, h, n_q, n_k); in cross and decoder row i predicts target token i
    likely                              for each target token the most probable ones with their probabilities
    doubts, own                         a warning or None; whether the translator is the learner's
    glosses                             optional: {token: gloss} of the tokens in ``likely``

and raises ValueError, with a message for the learner, where a text cannot be translated. Without one, the sentence of
``data/looked.json`` is shown, which ``python tests/explore/looked.py`` makes from the translator that ships with the course.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.explore.controls import bench_class
from transformer_lite.language import current, message, use

Look = Callable[[str], Mapping[str, Any]]

EXAMPLE = "the dog chased the cat"
EXAMPLES = ("the cat chased the dog", "Ken did not eat the small fish in the park", "the cat that the dog chased saw Emi")
MOST = 30  # tokens, EOS counted: more of them would not fit a map
BEYOND = 50  # tokens that may be written more than the source has, as in section 6.1 of the paper
MEAN = -1  # the "head" that stands for the mean of all
SIDES = {"source": "en", "target": "ja"}  # the languages of the course's translator
AXES = {"cross": ("target", "source"), "encoder": ("source", "source"), "decoder": ("target", "target")}  # (queries, keys)
WEIGHTS = tuple(AXES)
_NAMES = {"<s>": "BOS", "</s>": "EOS"}  # as exams and chapters call them
DATA = Path(__file__).parent / "data" / "looked.json"

_WORDS = (
    "sentence", "go", "working", "late", "kept", "own", "shipped", "stored", "examples", "mean", "head", "layer", "head_choice",
    "layer_choice", "named",
)  # fmt: skip


class Token(NamedTuple):
    """A token and what it means, "" where there is nothing to say."""

    token: str
    gloss: str


class Sentence(NamedTuple):
    """One sentence and what every head of every layer attended to while it was written."""

    text: str
    source: list[Token]  # EOS last
    target: list[Token]  # EOS last, unless it was cut off
    held: list[Token]  # what the decoder's rows hold: BOS and the target but its last
    likely: list[list[tuple[Token, float]]]  # for each target token
    cross: NDArray[np.float64]  # (layers, h, n_target, n_source)
    encoder: NDArray[np.float64]  # (layers, h, n_source, n_source)
    decoder: NDArray[np.float64]  # (layers, h, n_target, n_target)
    ended: bool  # by EOS, and not by the limit
    doubts: str  # "" where there are none
    own: bool | None  # the learner's translator, the shipped one, or what is stored (None)
    cropped: bool = False  # more was written than is shown


# --- getting a sentence ---


@cache
def _data() -> dict[str, Any]:
    return json.loads(DATA.read_text("utf-8"))


def stored(lang: str) -> Sentence:
    """The sentence that is kept with the course."""
    raw = _data()
    per_language = {name: raw[name][lang] for name in ("source_glosses", "target_glosses", "glosses")}
    return sentence({**raw, **per_language}, raw["text"], lang)


def asked(look: Look, text: str, lang: str) -> Sentence:
    """What the translator does with ``text``.

    Raises:
        ValueError: it cannot be translated or is too long to be shown; the message says so in ``lang``.
    """
    with speaking(lang):
        words = len(text.split())
        if words >= MOST:  # before a long text is translated in vain
            raise ValueError(message("explore.looking.too_long", lang, tokens=words, most=MOST - 1))
        raw = look(text)
    found = sentence(raw, text, lang)
    if len(found.source) > MOST:
        raise ValueError(message("explore.looking.too_long", lang, tokens=len(found.source) - 1, most=MOST - 1))
    return found


def first(look: Look | None, text: str, lang: str) -> tuple[Sentence, str]:
    """The sentence to begin with, and what went wrong if it is not the one that was asked for."""
    if look is None:
        return stored(lang), ""
    try:
        return asked(look, text, lang), ""
    except ValueError as refused:
        return stored(lang), str(refused)


@contextmanager
def speaking(lang: str) -> Iterator[None]:
    """``look`` speaks the language in use; here it is ``lang``."""
    before = current()
    if before == lang:
        yield
        return
    use(lang)
    try:
        yield
    finally:
        use(before)


def sentence(raw: Mapping[str, Any], text: str, lang: str) -> Sentence:
    """What ``look`` returned, checked and put into the explorers' form.

    Raises:
        ValueError: the weights do not fit the tokens.
    """
    source, target = list(raw["source"]), list(raw["target"])
    weights = {name: np.asarray(raw[name], dtype=np.float64) for name in WEIGHTS}
    sizes = {"source": len(source), "target": len(target)}
    for name, (queries, keys) in AXES.items():
        expected = (sizes[queries], sizes[keys])
        if weights[name].ndim != 4 or weights[name].shape[2:] != expected:
            raise ValueError(f"{name} must have shape (layers, h, {expected[0]}, {expected[1]}); got {weights[name].shape}.")
    glosses = dict(zip([*source, *target], [*raw["source_glosses"], *raw["target_glosses"]], strict=True))
    glosses = {**raw.get("glosses", {}), **glosses, "<s>": message("explore.looking.bos", lang)}

    def token(name: str) -> Token:
        return Token(_NAMES.get(name, name), glosses.get(name, ""))

    # A translator that has not ended at the limit has been cut off there: it never chose the EOS that look puts last.
    ended = len(target) <= len(source) + BEYOND
    kept = len(target) - (not ended)
    written = [token(name) for name in target[:kept]]
    return Sentence(
        text,
        [token(name) for name in source],
        written,
        [token("<s>"), *written[:-1]],
        [[(token(name), float(p)) for name, p in likely] for likely in raw["likely"][:kept]],
        weights["cross"][:, :, :kept],
        weights["encoder"],
        weights["decoder"][:, :, :kept, :kept],
        ended,
        raw.get("doubts") or "",
        raw.get("own"),
    )


# --- reading it ---


def head_weights(weights: NDArray[np.float64], layer: int, head: int) -> NDArray[np.float64]:
    """(n_q, n_k): one head of one layer of ``weights`` (layers, h, n_q, n_k), or with `MEAN` the mean of its heads."""
    return weights[layer].mean(axis=0) if head == MEAN else weights[layer, head]


def named(token: Token, side: str, lang: str) -> str:
    """A token within a sentence: with its gloss in brackets if the learner may not read it."""
    if SIDES[side] == lang or not token.gloss or token.token in _NAMES.values():
        return token.token
    return message("explore.looking.named", lang, token=token.token, gloss=token.gloss.strip("()"))


def head_name(head: int, lang: str) -> str:
    """Which head, in words."""
    return message("explore.looking.mean", lang) if head == MEAN else message("explore.looking.head", lang, number=head + 1)


def layer_name(layer: int, lang: str) -> str:
    """Which layer, in words."""
    return message("explore.looking.layer", lang, number=layer + 1)


# --- the browser ---


def words(lang: str) -> dict[str, str]:
    """The texts of the field and of what the explorers name alike."""
    return {name: message(f"explore.looking.{name}", lang) for name in _WORDS} | {
        word: message(f"explore.qkv.{word}", lang) for word in ("guess", "presets", "reset")
    }


def wire(found: Sentence, weights: Sequence[str]) -> dict[str, Any]:
    """The sentence as the browser gets it, with those of its ``weights`` that are shown."""

    def tokens(row: Sequence[Token]) -> list[dict[str, str]]:
        return [token._asdict() for token in row]

    return {
        "text": found.text,
        **{name: tokens(getattr(found, name)) for name in ("source", "target", "held")},
        "likely": [[{**token._asdict(), "p": round(p, 5)} for token, p in row] for row in found.likely],
        **{name: np.round(getattr(found, name), 4).tolist() for name in weights},
        "ended": found.ended,
        "cropped": found.cropped,
        "own": found.own,
    }


def traits(lang: str, found: Sentence, weights: Sequence[str], can_ask: bool, trouble: str = "") -> dict[str, Any]:
    """The traits of `asking_class` in the first state."""
    return {
        "lang": lang,
        "sentence": found.text,
        "asked": 0,
        "answered": 0,
        "trouble": trouble,
        "doubts": found.doubts,
        "looked": wire(found, weights),
        "can_ask": can_ask,
        "examples": list(EXAMPLES),
    }


@cache
def asking_class() -> type:
    """The base of the widgets that show a sentence and take another, made on first use: importing it loads no widget library."""
    import traitlets as t

    class Asking(bench_class()):
        """The browser sets ``sentence`` and counts ``asked`` up; Python answers with ``looked`` and sets ``answered`` to it.

        A subclass names the weights that it shows in ``shows`` and gives the place to begin at in a new sentence by `begin`.
        """

        shows: tuple[str, ...] = ()
        sentence = t.Unicode().tag(sync=True)
        asked = t.Int(0).tag(sync=True)
        answered = t.Int(0).tag(sync=True)
        trouble = t.Unicode().tag(sync=True)  # why the last text could not be shown; "" if it could
        doubts = t.Unicode().tag(sync=True)
        looked = t.Dict().tag(sync=True)
        can_ask = t.Bool(False).tag(sync=True)
        examples = t.List(t.Unicode()).tag(sync=True)

        def __init__(self, look: Look | None, found: Sentence, **given: Any) -> None:
            self._look, self.found = look, found
            super().__init__(**given)

        def begin(self, found: Sentence) -> dict[str, Any]:
            """The traits that say what of ``found`` is shown at first."""
            raise NotImplementedError

        def form(self, found: Sentence) -> Sentence:
            """``found`` as this explorer shows it."""
            return found

        @t.observe("asked")
        def _answer(self, change: Any) -> None:
            if self._look is None or change["new"] == self.answered:
                return
            try:
                found, trouble = asked(self._look, self.sentence, self.lang), ""
            except ValueError as refused:
                found, trouble = None, str(refused)
            except Exception as error:  # whatever it is, the learner must not be left waiting
                found, trouble = None, message("explore.looking.trouble", self.lang, error=error)
            with self.hold_sync():
                if found is not None:
                    self.found = found = self.form(found)
                    for name, value in {"looked": wire(found, self.shows), "doubts": found.doubts, **self.begin(found)}.items():
                        setattr(self, name, value)
                self.trouble = trouble
                self.answered = change["new"]

        def relooked(self, lang: str) -> dict[str, Any]:
            """The traits that a change of language changes: the glosses are in the learner's language."""
            if self.found.own is None:
                self.found = self.form(stored(lang))
            elif self._look is not None:
                with suppress(ValueError):  # a translator that has been trained anew since may refuse it: it stays as it is
                    self.found = self.form(asked(self._look, self.found.text, lang))
            return {"looked": wire(self.found, self.shows), "doubts": self.found.doubts, "trouble": ""}

    return Asking
