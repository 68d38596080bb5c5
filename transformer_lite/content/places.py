"""Where the course's files are: inside the package (a wheel), or beside it (a checkout)."""

from __future__ import annotations

from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent.parent


def _root() -> Path:
    """The folder that holds ``notebooks/`` and ``quizzes/``."""
    inside = _PACKAGE / "_course"
    if inside.is_dir():
        return inside
    beside = _PACKAGE.parent
    if (beside / "pyproject.toml").is_file():
        return beside
    raise FileNotFoundError(
        f"The course's notebooks and quizzes were found neither in {inside} nor beside the package in {beside}. "
        "Install transformer_lite again."
    )


def notebooks_dir(lang: str) -> Path:
    """The folder of the built notebooks in ``lang``."""
    return _root() / "notebooks" / lang


def quizzes_dir() -> Path:
    """The folder of the questions, traps and glossary."""
    return _root() / "quizzes"


def source_dir() -> Path | None:
    """The folder of the chapters' sources in a checkout; None in an installed wheel, which has none."""
    folder = _root() / "notebooks" / "source"
    return folder if folder.is_dir() else None
