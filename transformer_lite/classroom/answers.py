"""What a student gives back to questions: `answers.json` beside the notebook. Read without trust, written whole.

The file is ``{"schema": 1, "answers": {question id: answer}}``. An answer is what was chosen by the letters shown ("B",
["A", "C"], {"1": "B"}) or typed ("1/8").
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from transformer_lite.course.files import locked, ordinary, replace

SCHEMA = 1
LARGEST_FILE = 1_000_000  # bytes
LONGEST = 200  # characters of an id or an answer
MOST = 20  # parts of an answer
PATIENCE = 2.0  # seconds to wait for another notebook that is writing


class Written(NamedTuple):
    """Answers by question id. ``note`` says why there are none: "no_answers", "answers_large", "answers_strange" (a folder, a
    link, a device) or "answers_unreadable"; None where the file was read.
    """

    answers: dict[str, Any]
    note: str | None


def written(source: Path | str | bytes) -> Written:
    """What a student has written: into the file ``source``, or the bytes of one, of which none stand for a file that is missing.

    Never raises: whatever is wrong, there are then no answers, with a note. What is no answer in itself (too long, nested,
    unprintable) is left out; the others stay.
    """
    try:
        data = source if isinstance(source, bytes) else ordinary(Path(source), LARGEST_FILE)
    except FileNotFoundError:
        return Written({}, "no_answers")
    except (OSError, ValueError):  # ValueError: a path that no system has
        return Written({}, "answers_strange")
    if isinstance(source, bytes) and not source:
        return Written({}, "no_answers")
    if len(data) > LARGEST_FILE:
        return Written({}, "answers_large")
    try:
        found = json.loads(data)  # of bytes: UTF-8, -16 or -32, with or without a BOM
    except (ValueError, RecursionError):
        return Written({}, "answers_unreadable")
    if not isinstance(found, dict) or found.get("schema", SCHEMA) != SCHEMA or not isinstance(found.get("answers"), dict):
        return Written({}, "answers_unreadable")
    return Written({name: answer for name, answer in found["answers"].items() if _short(name) and plain(answer)}, None)


def write(path: Path, name: str, answer: object) -> dict[str, Any]:
    """Set or (with None) clear the answer to the question ``name``, and return all that the file now holds.

    Other notebooks may write into the same file: what they wrote stays. A file that cannot be read is kept under another name.

    Raises:
        OSError: it cannot be written; what was there stays.
    """
    with _alone(path):
        answers, note = written(path)
        if note not in (None, "no_answers"):
            _set_aside(path)
        if answer is None:
            answers.pop(name, None)
        else:
            answers[name] = answer
        replace(path, (json.dumps({"schema": SCHEMA, "answers": answers}, ensure_ascii=False, indent=1) + "\n").encode())
        return answers


def plain(answer: object) -> bool:
    """Whether ``answer`` can be one: a short text, a number, or a few of these in a list or by short names."""
    if isinstance(answer, list):
        return len(answer) <= MOST and all(_single(part) for part in answer)
    if isinstance(answer, dict):
        return len(answer) <= MOST and all(_short(name) and _single(part) for name, part in answer.items())
    return _single(answer)


def _single(answer: object) -> bool:
    if isinstance(answer, bool):
        return False
    return _short(answer) if isinstance(answer, str) else isinstance(answer, int | float)


def _short(text: str) -> bool:
    return len(text) <= LONGEST and "".join(text.split()).isprintable()


def _set_aside(path: Path) -> None:
    number = 1
    while os.path.lexists(kept := path.with_name(f"{path.stem}.kept-{number}{path.suffix}")):
        number += 1
    os.rename(path, kept)


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Keep other notebooks of this machine from writing meanwhile. The lock lies outside the folder that is handed in."""
    try:
        digest = hashlib.sha256(str(path.resolve()).encode("utf-8", "surrogateescape")).hexdigest()[:24]
        lock = Path(tempfile.gettempdir()) / f"transformer_lite-answers-{digest}.lock"
        handle = os.open(lock, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o600)
    except OSError:  # no place for a lock: two notebooks at the same instant are rare
        yield
        return
    try:
        deadline = time.monotonic() + PATIENCE
        while not locked(handle) and time.monotonic() < deadline:
            time.sleep(0.02)
        yield
    finally:
        os.close(handle)  # which unlocks

