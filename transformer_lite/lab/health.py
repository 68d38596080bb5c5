"""The doctor: looks at everything the course stands on, and says `ok` or how to mend it."""

from __future__ import annotations

import importlib.metadata
import platform
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from transformer_lite import __version__, content, course, journal, practice
from transformer_lite.explore.tables import Table
from transformer_lite.lab.session import device, friendly
from transformer_lite.language import current, message

PACKAGES = ("numpy", "torch", "matplotlib", "jupyterlab", "ipywidgets", "anywidget")


@dataclass(frozen=True)
class Finding:
    """One thing looked at: its name, what was found, and how to mend it (empty when it is well)."""

    name: str
    found: str
    mend: str = ""

    @property
    def ok(self) -> bool:
        """Whether nothing needs mending."""
        return not self.mend


@friendly
def doctor() -> Table:
    """Versions, device, journal, Japanese font, encoding, checker and content: each `ok`, or how to mend it."""
    return as_table(findings())


def as_table(found: list[Finding]) -> Table:
    """The findings as a table in the language in use."""
    return Table(
        message("lab.doctor_title"),
        [message(f"lab.doctor_{column}") for column in ("what", "found", "mend")],
        [[message(f"lab.doctor_{finding.name}"), finding.found, finding.mend or "ok"] for finding in found],
        row_headers=True,
    )


def findings() -> list[Finding]:
    """Look at everything; a look that itself fails is a finding, never an exception."""
    looks: list[tuple[str, Callable[[], tuple[str, str]]]] = [
        ("python", _python),
        ("packages", _packages),
        ("device", lambda: (str(device()), "")),
        ("journal", _journal),
        ("font", _font),
        ("encoding", _encoding),
        ("checker", _checker),
        ("content", _content),
        ("language", lambda: (current(), "")),
    ]
    result = []
    for name, look in looks:
        try:
            found, mend = look()
        except Exception as error:
            found, mend = f"{type(error).__name__}: {error}", message("lab.doctor_reinstall")
        result.append(Finding(name, found, mend))
    return result


def _python() -> tuple[str, str]:
    found = f"{platform.python_version()} ({sys.executable})"
    return found, "" if sys.version_info >= (3, 11) else message("lab.doctor_mend_python")


def _packages() -> tuple[str, str]:
    found, missing = [f"transformer_lite {__version__}"], []
    for name in PACKAGES:
        try:
            found.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            missing.append(name)
    return ", ".join(found), message("lab.doctor_mend_packages", missing=", ".join(missing)) if missing else ""


def _journal() -> tuple[str, str]:
    book = journal.default()
    book.events()
    state = message("lab.doctor_recording_on" if journal.recording() else "lab.doctor_recording_off")
    return f"{book.path} ({state})", book.trouble_message(current(), again=True) or _unwritable(book.path)


def _unwritable(path: Path) -> str:
    """How to mend a journal folder that cannot be written; the nearest folder that exists is the one that counts."""
    import os

    folder = path.parent
    while not folder.exists() and folder != folder.parent:
        folder = folder.parent
    if os.access(folder, os.W_OK) and (not path.exists() or os.access(path, os.W_OK)):
        return ""
    return message("lab.doctor_mend_journal", path=path.parent)


def _font() -> tuple[str, str]:
    from transformer_lite.explore import figures

    font = figures.japanese_font()
    return font or "-", "" if font else message("lab.doctor_mend_font")


def _encoding() -> tuple[str, str]:
    encoding = getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        "正解".encode(encoding)
    except (UnicodeEncodeError, LookupError):
        return encoding, message("lab.doctor_mend_encoding")
    return encoding, ""


def _checker() -> tuple[str, str]:
    exercise = practice.exercise("softmax")
    scope: dict[str, object] = {}
    exec(compile("import numpy as np\n" + exercise.solution, "<doctor>", "exec"), scope)
    status = practice.judge("softmax", scope["softmax"]).status  # type: ignore[arg-type]
    return status, "" if status == "pass" else message("lab.doctor_reinstall")


def _content() -> tuple[str, str]:
    chapters = course.chapters()
    questions = sum(len(bank.questions) for bank in content.library().banks.values())
    found = message("lab.doctor_content_found", chapters=len(chapters), questions=questions, traps=len(content.traps()))
    return found, "" if chapters and questions else message("lab.doctor_reinstall")
