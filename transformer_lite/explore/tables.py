"""Tables and pages of tables: as HTML that every viewer keeps, and as aligned text. All text is escaped."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any, Protocol

import numpy as np

from transformer_lite.language import current, message, printable, width

_NUMBER = re.compile(r"[-−+]?[\d.,∞]+(e[-−+]?\d+)?%?|NaN|")

# JupyterLab sets every cell to the right; words read better from the left.
_LEFT = ' style="text-align:left"'


def html_table(
    rows: Sequence[Sequence[str]], caption: str, lang: str | None = None, *, folded: bool = True, row_headers: bool = True
) -> str:
    """An HTML table of strings. The first row (and column, if ``row_headers``) are headers; ``folded`` hides it in <details>."""
    if not rows:
        return ""
    numeric = _numeric_columns(rows)
    named = zip(rows[0], numeric, strict=False)
    head = "".join(f'<th scope="col"{_LEFT * (not right)}>{escape(cell)}</th>' for cell, right in named)
    body = "".join(f"<tr>{_html_cells(row, row_headers, numeric)}</tr>" for row in rows[1:])
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    table = f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    if not folded:
        return table
    return f"<details><summary>{escape(message('explore.picture.numbers', lang))}</summary>{table}</details>"


def plain_table(rows: Sequence[Sequence[str]]) -> str:
    """The rows as aligned text; Japanese characters count two columns. Words to the left, columns of numbers to the right."""
    if not rows:
        return ""
    widths = [max(width(cell) for cell in column) for column in itertools.zip_longest(*rows, fillvalue="")]
    numeric = _numeric_columns(rows)
    lines = []
    for row in rows:
        cells = (
            " " * (size - width(cell)) + cell if right else cell + " " * (size - width(cell))
            for cell, size, right in zip(row, widths, numeric, strict=False)
        )
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)


def cell_text(value: Any, decimals: int | str = 3) -> str:
    """A cell as a learner reads it: truth values as 1 and 0, whole numbers as they are, a true minus sign, never −0.000.

    ``decimals`` is the number of digits after the point, or a format such as ``".0e"``. Words stay as they are.
    """
    if isinstance(value, bool | np.bool_):
        return "1" if value else "0"
    if isinstance(value, int | np.integer):
        return str(value).replace("-", "−")
    try:
        if np.isnan(value):
            return "NaN"
        if np.isinf(value):
            return "∞" if value > 0 else "−∞"
        text = format(value, f".{decimals}f" if isinstance(decimals, int) else decimals)
    except (TypeError, ValueError):  # a word, None
        return str(value)
    return (text.removeprefix("-") if not text.strip("-0.") else text).replace("-", "−")


@dataclass(frozen=True)
class Table:
    """A table with a title. ``row_headers``: the first cell of each row names it; ``empty`` is said of a table without rows."""

    title: str
    header: list[str]
    rows: list[list[str]]
    row_headers: bool = False
    empty: str = ""

    def html(self) -> str:
        """The table as HTML."""
        if not self.rows and self.empty:
            return f"<p><strong>{escape(self.title)}</strong> {escape(self.empty)}</p>"
        table = html_table([self.header, *self.rows], self.title, folded=False, row_headers=self.row_headers)
        return f'<div lang="{current()}">{table}</div>'

    def text(self) -> str:
        """The table as text."""
        body = f"  {self.empty}" if not self.rows and self.empty else plain_table([self.header, *self.rows])
        return f"{self.title}\n{body}" if self.title else body

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return printable(self.text())


class Part(Protocol):
    """Something that a page can hold: it is HTML and text."""

    def html(self) -> str:
        """As HTML."""

    def text(self) -> str:
        """As text."""


@dataclass(frozen=True)
class Page:
    """Several tables (or other parts) under one title, with an optional picture above them and a note below."""

    title: str
    tables: Sequence[Part]
    note: str = ""
    picture: Any = field(default=None, repr=False)

    def html(self) -> str:
        """The page as HTML, without its picture."""
        tables = "".join(table.html() for table in self.tables)
        note = "".join(f"<p>{escape(line)}</p>" for line in self.note.splitlines())
        return f'<div lang="{current()}"><p><strong>{escape(self.title)}</strong></p>{tables}{note}</div>'

    def text(self) -> str:
        """The page as text."""
        return "\n\n".join([self.title, *(table.text() for table in self.tables), *([self.note] if self.note else [])])

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if self.picture is not None:
            display(self.picture)
        display({"text/html": self.html(), "text/plain": printable(self.text())}, raw=True)

    def __repr__(self) -> str:
        return printable(self.text())


def _numeric_columns(rows: Sequence[Sequence[str]]) -> list[bool]:
    """Which columns hold numbers only; the first names its row and never does."""
    columns = itertools.zip_longest(*rows, fillvalue="")
    return [place > 0 and all(_NUMBER.fullmatch(cell) for cell in column[1:]) for place, column in enumerate(columns)]


def _html_cells(row: Sequence[str], row_headers: bool, numeric: list[bool]) -> str:
    cells = []
    for place, (cell, right) in enumerate(zip(row, numeric, strict=False)):
        tag, scope = ("th", ' scope="row"') if place == 0 and row_headers else ("td", "")
        cells.append(f"<{tag}{scope}{_LEFT * (not right)}>{escape(cell)}</{tag}>".replace("\n", "<br>"))
    return "".join(cells)
