"""The learner's own translator: trained in chapter 9, used in the chapters after it. Loads torch when a verb is called."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from transformer_lite import journal
from transformer_lite.lab.session import LabError, friendly, in_notebook, record, say, static
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from transformer_lite.explore.tables import Table
    from transformer_lite.translation.translator import TextTranslator

FOLDER = "translator"  # in the learner's folder; the one before it is kept beside it
BEFORE = "translator-before"
MINUTES = 0.7
LEAST = 1_000  # steps: with fewer, on a slow machine, it does not learn to translate
EXAMPLE = "the dog chased the cat"

_trained: TextTranslator | None = None  # by this kernel


@friendly
def train(minutes: float | None = None, seed: int = 0, again: bool = False) -> TextTranslator | None:
    """Train a small English-Japanese translator on the course's grammar, with a progress bar, and show how it went.

    What is trained is kept as the learner's own, and the later chapters use it. Interrupted, it goes on where it was when it is
    called again. Where nothing is recorded (a build, a test), it is trained all the same and kept until the kernel ends.

    Args:
        minutes: the budget; it is turned into a number of steps. None: 0.7, and 1,000 steps at least on a slow machine.
        seed: of the sentences, the weights and the order.
        again: train anew although there is one already; the old one is kept until the next has been trained to its end and is
            replaced. A training of the same settings that was interrupted goes on.

    Returns:
        The translator; None if the training was interrupted.

    Raises:
        LabError: the settings or the folder cannot be used.
    """
    from transformer_lite.translation import Refused, making, training

    folder = _folder()
    finished = _finished(folder)
    if finished and not again:
        say(message("lab.train.there", steps=f"{finished:,}"))
        return translator()
    try:
        settings = making.longer(making.GRAMMAR_SETTINGS, MINUTES if minutes is None else minutes, seed=seed)
    except Refused as refused:
        raise LabError(str(refused)) from None
    # Where the learner says how long, or nobody uses what it learns, the budget alone counts.
    settings = replace(settings, at_least=LEAST if minutes is None and not static() else 0)
    try:
        if finished:
            _put_aside(folder)
        begins = "lab.train.begins_at_least" if settings.at_least else "lab.train.begins"
        say(message(begins, seconds=round(60 * settings.minutes), steps=f"{settings.at_least:,}"))
        with _bar() as report:
            try:
                made = making.on_grammar(folder, settings, report=report)
            except Refused:  # an unfinished training with another seed or budget stands there, or a damaged one
                if not again:
                    raise
                _put_aside(folder)
                made = making.on_grammar(folder, settings, report=report)
        rows = training.curve(folder)
    except Refused as refused:
        begun = message("lab.train.begun") if (folder / training.STATE).exists() else ""
        raise LabError(f"{refused} {begun}".rstrip()) from None
    except OSError as error:
        raise LabError(message("lab.train.folder", folder=folder, error=error)) from None
    except KeyboardInterrupt:  # before the first step, or after the last one
        say(message("lab.train.stopped"))
        return None
    from transformer_lite.explore.curves import training_picture

    _show(training_picture(rows, current()))
    if not made.result.finished:
        say(message("lab.train.interrupted", step=made.result.step))
        return None
    global _trained
    _trained = made.translator
    figures = made.figures
    record("train", "translator", steps=figures["steps"], unseen=figures["exact_unseen"], held_out=figures["exact_held_out"])
    say(
        message(
            "lab.train.done",
            seconds=f"{figures['seconds']:.0f}", parameters=f"{figures['parameters']:,}", pairs=f"{figures['pairs']:,}",
            unseen=f"{100 * figures['exact_unseen']:.1f}", held_out=f"{100 * figures['exact_held_out']:.1f}",
        )
    )  # fmt: skip
    if figures["steps"] < LEAST and not static():
        say(message("lab.train.few", steps=figures["steps"], least=f"{LEAST:,}"))
    return made.translator


@friendly
def translator() -> TextTranslator:
    """The learner's own translator if there is one, else the small one that comes with the course; it is said which.

    Raises:
        LabError: the learner's own cannot be read.
    """
    found, own = _translator()
    say(message("lab.translator.own" if own else "lab.translator.shipped", pairs=f"{found.about.get('pairs', 0):,}"))
    return found


@friendly
def translate(text: str = EXAMPLE, beam: int = 1) -> Table:
    """Show the translation of an English sentence, word by word with glosses.

    Args:
        text: in the words of the grammar, parted by spaces.
        beam: hypotheses; 1 is greedy.

    Raises:
        LabError: the text is empty or too long, or the beam is no number that can be used.
    """
    from transformer_lite.explore.tables import Table
    from transformer_lite.translation import Refused, corpora, grammar

    found, _ = _translator()
    sentence = _one_line(text, found)
    if not sentence:
        raise LabError(message("translation.translator.empty"))
    try:
        words = found.translate([sentence], beam)[0].split()
    except Refused as refused:
        raise LabError(str(refused)) from None
    if not words:
        raise LabError(message("lab.translate.nothing"))
    doubts = found.doubts(sentence)
    if doubts:
        say(doubts)
    lang = current()
    title = message("lab.translate.title", source=sentence, target=corpora.joined(" ".join(words)))
    if lang == "ja":  # what a Japanese reader may not know are the English words
        source = sentence.split()
        rows = [source, [grammar.gloss(word, lang) for word in source]]
        names = [message("lab.translate.english"), message("lab.translate.meaning")]
    else:
        rows = [words, [grammar.gloss(word, lang) for word in words]]
        names = [message("lab.translate.japanese"), message("lab.translate.meaning")]
    numbers = [str(i + 1) for i in range(len(rows[0]))]
    return Table(title, ["", *numbers], [[name, *row] for name, row in zip(names, rows, strict=True)])


def look(text: str) -> dict[str, Any]:
    """What the explorers of generation show: the arrays of one sentence, with glosses in the learner's language.

    Returns:
        ``source`` and ``target`` (tokens, EOS last), ``source_glosses`` and ``target_glosses``, ``cross`` (layers, h, n_target,
        n_source), ``encoder`` and ``decoder`` weights, ``likely`` (for each target token the most probable ones with their
        probabilities) and ``glosses`` of these, ``doubts`` (a warning or None) and ``own`` (whether the translator is the
        learner's).

    Raises:
        ValueError: the text is empty or too long; the message can be shown.
    """
    from transformer_lite.translation import grammar

    found, own = _translator()
    text = _one_line(text, found)
    looked = found.look(text, beam=1)
    lang = current()
    return {
        "source": looked.source,
        "target": looked.target,
        "source_glosses": [grammar.gloss(token, lang) for token in looked.source],
        "target_glosses": [grammar.gloss(token, lang) for token in looked.target],
        "cross": looked.cross,
        "encoder": looked.encoder,
        "decoder": looked.decoder,
        "likely": looked.likely,
        "glosses": {token: grammar.gloss(token, lang) for row in looked.likely for token, _ in row},
        "doubts": found.doubts(text),
        "own": own,
    }


def shipped() -> Path:
    """The folder of the translator that comes with the course."""
    import transformer_lite

    return Path(transformer_lite.__file__).parent / "translation" / "shipped"


# --- where it is ---


@cache
def _temporary() -> Path:
    return Path(tempfile.mkdtemp(prefix="transformer_lite_"))


def _folder() -> Path:
    """Where the learner's own is kept; a temporary place where nothing may be recorded."""
    return (Path(journal.home()) if journal.recording() else _temporary()) / FOLDER


def _finished(folder: Path) -> int | None:
    """The steps of a training that has ended there; None if there is none, or an unfinished one."""
    from transformer_lite.translation import training

    return training.finished(folder)


def _put_aside(folder: Path) -> None:
    """Make room for a new training. A finished one is kept, in the place of the one before it.

    Raises:
        Refused: a training is running there.
    """
    from transformer_lite.translation import training

    if not folder.is_dir():
        return
    with training.alone(folder):
        pass
    before = folder.parent / BEFORE
    if not _finished(folder) and before.exists():
        shutil.rmtree(folder)
        return
    shutil.rmtree(before, ignore_errors=True)
    folder.rename(before)


def _translator() -> tuple[TextTranslator, bool]:
    from transformer_lite.model.saving import BadModelFile
    from transformer_lite.translation import Refused
    from transformer_lite.translation.translator import TextTranslator

    if _trained is not None:
        return _trained, True
    folder = _folder()
    if not _finished(folder):
        return _load_shipped(), False
    try:
        return TextTranslator.load(folder), True
    except (BadModelFile, Refused, OSError) as damaged:
        raise LabError(message("lab.translator.damaged", folder=folder, error=damaged)) from None


@cache
def _load_shipped() -> TextTranslator:
    from transformer_lite.translation.translator import TextTranslator

    return TextTranslator.load(shipped())


def _one_line(text: str, translator: TextTranslator) -> str:
    """``text`` as the grammar writes it: no capital at the start of "The", no full stop."""
    if not isinstance(text, str):
        raise LabError(message("lab.translate.no_text", value=repr(text), example=EXAMPLE))
    return " ".join(translator.tidied(text).split())


# --- what is shown meanwhile ---


@contextmanager
def _bar() -> Iterator[Callable[[Any], None]]:
    """A progress bar in the notebook; nothing where no one watches."""
    if static() or not in_notebook():
        yield lambda progress: None
        return
    import ipywidgets
    from IPython.display import display

    bar = ipywidgets.IntProgress(max=1, layout={"width": "60%"})
    words = ipywidgets.Label()
    box = ipywidgets.HBox([bar, words])
    display(box)
    started = shown = time.monotonic()

    def report(progress: Any) -> None:
        nonlocal shown
        now = time.monotonic()
        if now - shown < 0.25 and progress.step != progress.steps:
            return
        shown = now
        if progress.steps:
            bar.max, bar.value = progress.steps, progress.step
            left = (now - started) / progress.step * (progress.steps - progress.step)
        words.value = message(
            "lab.train.progress",
            step=f"{progress.step:,}", loss=f"{progress.loss:.2f}", speed=f"{progress.tokens_per_second:,.0f}",
            left=f"{left:.0f}" if progress.steps else "?",
        )  # fmt: skip

    try:
        yield report
    finally:
        box.close()


def _show(picture: Any) -> None:
    if in_notebook():
        from IPython.display import display

        display(picture)
    else:
        say(picture.plain())
