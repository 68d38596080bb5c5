"""One kernel's session: its start, its language, its chapter, what it may record, and how errors reach the learner."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable
from datetime import datetime
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

from transformer_lite import __version__, content, course, journal, language, practice
from transformer_lite.explore import static
from transformer_lite.language import message

P = ParamSpec("P")
R = TypeVar("R")


class LabError(Exception):
    """Something the learner asked for cannot be done, and the message says how to mend it. Shown without a stack trace."""

    def _render_traceback_(self) -> list[str]:
        """What Jupyter shows instead of a stack trace."""
        return [language.printable(str(self))]


def friendly(function: Callable[P, R]) -> Callable[P, R]:
    """Turn what goes wrong inside a verb into a message for the learner.

    An unknown name becomes a `LabError` with the nearest names; a failure of ours is written to a log file, said in one
    paragraph, and stops nothing: the verb then returns None.
    """

    @wraps(function)
    def verb(*args: P.args, **kwargs: P.kwargs) -> R:
        __tracebackhide__ = True
        try:
            return function(*args, **kwargs)
        except LabError:
            raise
        except Exception as error:
            if hasattr(error, "nearest"):
                raise LabError(unknown(error)) from None
            if isinstance(error, ValueError) and hasattr(error, "messages"):  # content.ContentError
                raise LabError(message("lab.content_broken", problems="\n".join(error.messages))) from None
            if static():  # a build or a test must fail, not store this sentence in a notebook
                raise
            say(message("lab.our_fault", verb=function.__name__, error=f"{type(error).__name__}: {error}", log=_log(error)))
            return None  # type: ignore[return-value]

    return verb


def unknown(error: Any) -> str:
    """The message for an unknown exercise, chapter, question or explorer, with the nearest names (or all, where none is near)."""
    if not error.nearest:
        return str(error)
    return message("lab.unknown", name=getattr(error, "name", ""), nearest=", ".join(str(name) for name in error.nearest))


def say(text: str) -> None:
    """Print ``text`` so that no terminal encoding can break it."""
    print(language.printable(text))


def in_notebook() -> bool:
    """Whether a Jupyter kernel runs this, so that widgets can be shown."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return shell is not None and getattr(shell, "kernel", None) is not None


def record(kind: str, subject: str, **parameters: object) -> bool:
    """Write one event, if this session may, and say it once when that does not work."""
    if not journal.recording():
        return False
    book = journal.default()
    stored = book.record(kind, subject, **parameters)
    say_trouble(book)
    return stored


def say_trouble(book: journal.Journal) -> None:
    """Say what is wrong with the journal, once."""
    text = book.trouble_message(language.current())
    if text:
        say(text)


def events() -> list[journal.Event]:
    """What the journal holds, or nothing when this session neither reads nor writes one."""
    if not journal.recording():
        return []
    book = journal.default()
    found = book.events()
    say_trouble(book)
    return found


@friendly
def start(lang: str | None = None) -> None:
    """Begin a session: choose the language, get the checker ready, remember which chapter is open.

    Never required: every verb works without it.

    Args:
        lang: "ja" or "en"; None keeps the language in use.

    Raises:
        LabError: a language that the course does not speak.
    """
    if lang is not None:
        try:
            language.use(lang)
        except ValueError:
            raise LabError(message("lab.unknown_language", lang=repr(lang))) from None
    practice.warm()
    chapter = _open_chapter()
    if chapter is not None:
        record("open", chapter.id, lang=language.current(), notebook=_notebook_name())
    if static():
        say(message("lab.ready"))
    elif not journal.recording():
        say(f"{message('lab.ready')} {message('lab.journal_off')}")
    else:
        say(f"{message('lab.ready')} {_so_far(chapter)}".rstrip())


def _so_far(chapter: course.Chapter | None) -> str:
    """What the learner has done of the open chapter, or nothing where there is nothing to tell."""
    if chapter is None:
        return ""
    states, answers = journal.exercise_states(events()), journal.question_states(events())
    exercises = [name for name, exercise in practice.exercises().items() if exercise.chapter == chapter.id]
    bank = content.library().banks.get(chapter.id)
    questions = [question.id for question in bank.questions if not question.retired] if bank else []
    done = sum(states.get(name) in ("yours", "with_help", "seen") for name in exercises)
    right = sum(answers[name].correct is True for name in questions if name in answers)
    if not any(name in states for name in exercises) and not any(name in answers for name in questions):
        return ""
    return message("lab.ready_so_far", done=done, exercises=len(exercises), right=right, questions=len(questions))


def _notebook_name() -> str:
    return os.path.basename(os.environ.get("JPY_SESSION_NAME", ""))


def _open_chapter() -> course.Chapter | None:
    """The chapter that this kernel's notebook holds, by its file name."""
    name = _notebook_name()
    if not name:
        return None
    try:
        return course.chapter(name)
    except KeyError:
        return None


def device() -> Any:
    """The torch device to compute on: CUDA where there is one, else the CPU (`model.device`). Loads torch when called.

    Raises:
        LabError: ``TRANSFORMER_LITE_DEVICE`` asks for a device that is not there.
    """
    from transformer_lite import model

    try:
        return model.device()
    except ValueError:
        raise LabError(message("lab.no_device", asked=os.environ.get("TRANSFORMER_LITE_DEVICE", ""))) from None


def _log(error: BaseException) -> str:
    """Append the stack trace to the error log and return where it is."""
    path = Path(journal.home()) / "errors.log"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            file.write(f"--- {datetime.now().isoformat(timespec='seconds')} transformer_lite {__version__}\n")
            file.writelines(traceback.format_exception(error))
    except OSError:
        return "-"
    return str(path)
