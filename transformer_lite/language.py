"""The course's two languages: a text in both, the language in use, and the one catalogue of messages.

Messages live in ``transformer_lite/messages/*.toml``, both languages side by side, so that a gap is visible:

    [check.pass]
    ja = "正解です。"
    en = "Correct."

The key of that message is ``"check.pass"``; ``{name}`` in a text is filled from keyword arguments.
"""

from __future__ import annotations

import locale
import os
import sys
import tomllib
import unicodedata
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

Language = Literal["ja", "en"]
LANGUAGES: tuple[Language, ...] = ("ja", "en")

_current: Language | None = None


@dataclass(frozen=True)
class Text:
    """One text in both languages. ``text("ja")`` gives the Japanese; ``text()`` the language in use."""

    ja: str
    en: str

    def __call__(self, lang: str | None = None) -> str:
        return self.ja if (lang or current()) == "ja" else self.en


def check_language(lang: str) -> Language:
    """Return ``lang`` if the course speaks it; otherwise ``ValueError`` naming the two that it does."""
    if lang in LANGUAGES:
        return lang  # type: ignore[return-value]
    raise ValueError(f'language must be "ja" or "en"; got {lang!r}.')


def from_locale() -> Language | None:
    """The language that the machine's locale asks for, or None when it asks for neither of ours."""
    variables = [os.environ.get(variable, "") for variable in ("LC_ALL", "LC_MESSAGES", "LANGUAGE", "LANG")]
    for name in variables:
        if name.startswith(LANGUAGES):
            return name[:2]  # type: ignore[return-value]
    if any(variables):  # such as C.UTF-8, which is no language, and which Python calls English
        return None
    try:
        name = locale.getlocale()[0] or ""
    except ValueError:
        return None
    if name.startswith(("ja", "Japanese")):
        return "ja"
    if name.startswith(("en", "English")):
        return "en"
    return None


def current() -> Language:
    """The language in use: what was set, else ``TRANSFORMER_LITE_LANG``, else the locale, else Japanese."""
    if _current is not None:
        return _current
    wanted = os.environ.get("TRANSFORMER_LITE_LANG", "")
    return wanted if wanted in LANGUAGES else (from_locale() or "ja")  # type: ignore[return-value]


def use(lang: str) -> Language:
    """Set the language in use for this process and return it."""
    global _current
    _current = check_language(lang)
    return _current


@cache
def catalogue() -> dict[str, Text]:
    """Every message by key, read once from the files in ``messages/`` (the file's name is not part of the key)."""
    texts: dict[str, Text] = {}
    for path in sorted((Path(__file__).parent / "messages").glob("*.toml")):
        with path.open("rb") as file:
            _flatten(tomllib.load(file), "", path.name, texts)
    return texts


def _flatten(table: dict[str, Any], prefix: str, file: str, texts: dict[str, Text]) -> None:
    if set(table) == set(LANGUAGES) and all(isinstance(text, str) for text in table.values()):
        if prefix in texts:
            raise ValueError(f"{file}: the message {prefix!r} is defined twice.")
        texts[prefix] = Text(**table)
        return
    for key, value in table.items():
        name = f"{prefix}.{key}" if prefix else key
        if not isinstance(value, dict):
            raise ValueError(f"{file}: {name!r} must be a table with the keys ja and en; got {value!r}.")
        _flatten(value, name, file, texts)


def message(key: str, lang: str | None = None, /, **parameters: object) -> str:
    """The message ``key`` in ``lang`` (else the language in use), with its ``{parameters}`` filled in."""
    text = catalogue()[key](lang)
    return text.format(**parameters) if parameters else text


def width(text: str) -> int:
    """Columns that ``text`` takes in a terminal: East Asian wide characters count 2."""
    return sum(2 if unicodedata.east_asian_width(character) in "WF" else 1 for character in text)


# Characters of ours that a Japanese Windows console (cp932) or an ASCII pipe cannot show, and what stands for them there.
_SUBSTITUTES = {"—": "-", "–": "-", "−": "-", "≈": "~", "·": "*", "√": "sqrt ", "×": "x", "≥": ">=", "≤": "<=", "…": "...",
                "→": "->", "←": "<-", "■": "#", "□": ".", "ᵀ": "^T", "ₖ": "_k", "‖": "||", "•": "-", "’": "'", "“": '"', "”": '"',
                "÷": "/", "①": "(1)", "②": "(2)", "③": "(3)", "④": "(4)", "Σ": "sum", "∞": "inf", "₁": "1", "₂": "2", "₃": "3",
                "²": "^2", "³": "^3", "ε": "epsilon", "✓": "o", "⋮": ":", "⋯": "...", "↓": "v", "↑": "^", "≠": "!=",
                "●": "*", "°": " degrees", "π": "pi", "ω": "omega"}


def printable(text: str, encoding: str | None = None) -> str:
    """``text`` with every character that ``encoding`` (stdout's, if None) cannot show replaced by one that it can."""
    encoding = encoding or getattr(sys.stdout, "encoding", None) or "utf-8"
    try:
        text.encode(encoding)
        return text
    except (UnicodeEncodeError, LookupError):
        pass
    result = []
    for character in text:
        try:
            character.encode(encoding)
            result.append(character)
        except (UnicodeEncodeError, LookupError):
            result.append(_SUBSTITUTES.get(character, "?"))
    return "".join(result)
