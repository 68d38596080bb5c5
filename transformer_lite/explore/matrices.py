"""A matrix drawn as a matrix: equal cells, each with its number on a tint, names for rows and columns, the shape in the caption.

The HTML carries its looks as inline styles, because JupyterLab takes style sheets out of what it does not trust, and tints with
translucent colours, so that text keeps the theme's colour. Where a viewer drops the styles too, numbers, names and bold remain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.explore.tables import Part, cell_text
from transformer_lite.language import current, message, printable, width

LARGEST = 16  # rows or columns; of a larger matrix the first and the last are shown
KINDS = ("mask", "influence")
_POSITIVE, _NEGATIVE = "0,114,178", "213,94,0"  # Okabe and Ito's blue and vermilion
_LINE = "rgba(128,128,128,0.55)"
_GAP = "⋯"


class _Displayed:
    """Shown by a notebook as HTML, by a terminal as text."""

    def _repr_html_(self: Part) -> str:
        return self.html()

    def __repr__(self: Part) -> str:
        return printable(self.text())


@dataclass(frozen=True, repr=False, eq=False)
class MatrixTable(_Displayed):
    """One matrix with its labels.

    Args:
        values: (n_rows, n_columns) of numbers or truth values.
        rows: n_rows names; none if empty.
        columns: n_columns names.
        title: what the numbers are.
        shape: the shape to name in the caption, (n_columns,) for a vector.
        axes: what a row and what a column stands for, or None.
        decimals: digits after the point, or a format such as ".0e".
        sums: whether a column Σ with the sums of the rows follows.
        mark: cells to outline, (row, column).
        kind: "mask" (✓ and ×), "influence" (1 filled, 0 empty) or "" (numbers).
        largest: the value of the strongest tint; the matrix's own if None.
        compact: whether the names of rows may take several lines.
    """

    values: NDArray[Any]
    rows: Sequence[str]
    columns: Sequence[str]
    title: str = ""
    shape: tuple[int, ...] = ()
    axes: tuple[str, str] | None = None
    decimals: int | str = 3
    sums: bool = False
    mark: frozenset[tuple[int, int]] = frozenset()
    kind: str = ""
    largest: float | None = None
    compact: bool = False

    def html(self) -> str:
        """The matrix as an HTML table."""
        shown_rows, shown_columns = _shown(self.values.shape[0]), _shown(self.values.shape[1])
        size, name = self._cell_width(), _word_width(self.rows) if self.compact else None
        head = self._corner() if self.rows else ""
        head += "".join(_head("col", self.columns[j] if j is not None else _GAP, size) for j in shown_columns)
        head += _head("col", "Σ", self._number_width(), ruled=True) if self.sums else ""
        body = []
        for i in shown_rows:
            cells = _head("row", self.rows[i] if i is not None else "⋮", name) if self.rows else ""
            cells += "".join(self._cell(i, j, size) for j in shown_columns)
            if self.sums:
                cells += _td("⋮" if i is None else self._sum(i), self._number_width(), ruled=True)
            # Notebooks shade every other row, which would look like a tint.
            body.append(f'<tr style="background-color:transparent">{cells}</tr>')
        caption = " ".join(part for part in (escape(self.title), self._shape()) if part)
        return (
            f'<div lang="{current()}" style="overflow-x:auto"><table style="border-collapse:collapse;margin:0 0 8px 0">'
            f'<caption style="caption-side:top;text-align:left;padding:0 0 4px 0">{caption}</caption>'
            f"<thead><tr>{head}</tr></thead><tbody>{''.join(body)}</tbody></table></div>"
        )

    def text(self) -> str:
        """The matrix as aligned text, marked cells in brackets."""
        shown_rows, shown_columns = _shown(self.values.shape[0]), _shown(self.values.shape[1])
        lines = [["", *(self.columns[j] if j is not None else _GAP for j in shown_columns), *(["|", "Σ"] * self.sums)]]
        for i in shown_rows:
            cells = [self._word(i, j) for j in shown_columns]
            marked = [f"[{cell}]" if (i, j) in self.mark else cell for cell, j in zip(cells, shown_columns, strict=True)]
            total = ["|", "⋮" if i is None else self._sum(i)] if self.sums else []
            lines.append([(self.rows[i] if i is not None else "⋮") if self.rows else "", *marked, *total])
        if not self.rows:
            lines = [line[1:] for line in lines]
        axes = message("matrix.axes", row=self.axes[0], column=self.axes[1]) if self.axes and self.rows else ""
        caption = "  ".join(part for part in (self.title, self._shape(), axes) if part)
        return "\n".join([caption, *_aligned(lines, bool(self.rows))])

    def _shape(self) -> str:
        shape = self.shape or self.values.shape
        return "(" + ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "") + ")"

    def _corner(self) -> str:
        if not self.axes:
            return "<td></td>"
        row, column = (escape(axis) for axis in self.axes)
        words = message("matrix.corner", row=row, column=column).replace("\n", "<br>")
        return (
            f'<td style="text-align:left;vertical-align:bottom;white-space:nowrap;padding:2px 10px 2px 0;font-size:85%">'
            f"{words}</td>"
        )

    def _word(self, i: int | None, j: int | None) -> str:
        if i is None or j is None:
            return "⋮" if j is not None else _GAP
        value = self.values[i, j]
        if self.kind == "mask":
            return "✓" if value else "×"
        return cell_text(bool(value) if self.kind == "influence" else value, self.decimals)

    def _sum(self, i: int) -> str:
        row = self.values[i]
        return cell_text(row.astype(int).sum() if row.dtype == bool else row.sum(), self.decimals)

    def _cell(self, i: int | None, j: int | None, size: float) -> str:
        if i is None or j is None:
            return _td(self._word(i, j), size)
        marked = (i, j) in self.mark
        style = self._tint(self.values[i, j])
        if marked:  # drawn inside its own cell, so that neither a neighbour nor the table's edge hides it
            style += "box-shadow:inset 0 0 0 3px #D55E00;"
        strong = marked or (self.kind == "influence" and bool(self.values[i, j]))
        return _td(self._word(i, j), size, style, strong=strong)

    def _tint(self, value: Any) -> str:
        number = float(value)
        largest = self.largest if self.largest is not None else strongest(self.values)
        if self.kind == "influence":
            share = 0.9 if number else 0.0
        elif not np.isfinite(number):
            share = 1.0 if np.isinf(number) else 0.0
        else:
            share = min(abs(number) / largest, 1.0) if largest else 0.0
        if share == 0:
            return ""
        colour = _NEGATIVE if number < 0 else _POSITIVE
        return f"background-color:rgba({colour},{0.04 + 0.46 * share:.2f});"

    def _cell_width(self) -> float:
        """The width of every cell in em: the widest number, or the widest word of a name up to a limit."""
        return max(self._number_width(), _word_width(self.columns))

    def _number_width(self) -> float:
        numbers = [self._word(i, j) for i in _shown(self.values.shape[0]) for j in _shown(self.values.shape[1])]
        return max(2.0, 0.6 * max(map(width, numbers), default=0) + 0.4)


@dataclass(frozen=True, repr=False)
class SideBySide(_Displayed):
    """Several matrices in a row (one below the other where there is no room), with a title above and a note below."""

    parts: Sequence[Part]
    title: str = ""
    note: str = ""

    def html(self) -> str:
        """The parts as HTML."""
        title = f"<p><strong>{escape(self.title)}</strong></p>" if self.title else ""
        note = f"<p>{escape(self.note)}</p>" if self.note else ""
        parts = "".join(f"<div>{part.html()}</div>" for part in self.parts)
        row = f'<div style="display:flex;flex-wrap:wrap;align-items:flex-start;gap:12px 20px">{parts}</div>'
        return f'<div lang="{current()}">{title}{row}{note}</div>'

    def text(self) -> str:
        """The parts as text, one below the other."""
        return "\n\n".join(part for part in (self.title, *(part.text() for part in self.parts), self.note) if part)


@dataclass(frozen=True, repr=False)
class Folded(_Displayed):
    """A question with its answer folded away until the reader opens it. Text cannot fold: there the answer follows."""

    question: str
    answers: Sequence[Part]
    label: str = field(default="")

    def html(self) -> str:
        """The question, and the answer in <details>."""
        asked = f"<p><strong>{_lines(self.question)}</strong></p>" if self.question else ""
        answers = "".join(answer.html() for answer in self.answers)
        summary = f'<summary style="cursor:pointer">{escape(self.label or message("fold.answer"))}</summary>'
        return f'<div lang="{current()}">{asked}<details>{summary}<div style="padding:6px 0 0 0">{answers}</div></details></div>'

    def text(self) -> str:
        """The question and the answer."""
        label = self.label or message("fold.answer_text")
        return "\n\n".join(part for part in (self.question, label, *(answer.text() for answer in self.answers)) if part)


@dataclass(frozen=True)
class Words:
    """A paragraph."""

    words: str

    def html(self) -> str:
        """The paragraph as HTML."""
        return f"<p>{_lines(self.words)}</p>"

    def text(self) -> str:
        """The paragraph."""
        return self.words


def strongest(values: NDArray[Any]) -> float:
    """The value of the strongest tint: 1 for shares (all between 0 and 1), else the largest size of a finite value."""
    numbers = np.abs(values.astype(np.float64))
    numbers = numbers[np.isfinite(numbers)]
    largest = float(numbers.max()) if numbers.size else 0.0
    integers = np.issubdtype(values.dtype, np.integer) or values.dtype == bool
    return 1.0 if 0 < largest <= 1 and not integers and (values[np.isfinite(values.astype(float))] >= 0).all() else largest


def _shown(count: int) -> list[int | None]:
    """The indices that are shown; None stands for those left out."""
    if count <= LARGEST:
        return list(range(count))
    return [*range(LARGEST - 5), None, *range(count - 4, count)]


def _lines(words: str) -> str:
    return escape(words).replace("\n", "<br>")


def _word_width(names: Sequence[str]) -> float:
    """Room in em for the longest word of the names, up to a limit: a name may take several lines."""
    return min(0.52 * max((width(word) for name in names for word in name.split()), default=0) + 0.3, 6.0)


def _head(scope: str, name: str, size: float | None = None, *, ruled: bool = False) -> str:
    side = "text-align:center;vertical-align:bottom;" if scope == "col" else "text-align:left;"
    fixed = "white-space:nowrap;"
    if size:
        fixed = f"width:{size:.1f}em;min-width:{size:.1f}em;white-space:normal;word-break:keep-all;"
    rule = f"border-left:3px double {_LINE};" if ruled else ""
    return f'<th scope="{scope}" style="{side}{fixed}{rule}padding:3px 5px">{escape(name)}</th>'


def _td(word: str, size: float, style: str = "", *, strong: bool = False, ruled: bool = False) -> str:
    shown = f"<strong>{escape(word)}</strong>" if strong else escape(word)
    border = f"border-left:3px double {_LINE};" if ruled else f"border:1px solid {_LINE};"
    fixed = f"width:{size:.1f}em;min-width:{size:.1f}em;white-space:nowrap;"
    return f'<td style="text-align:center;padding:4px 5px;{fixed}{border}{style}">{shown}</td>'


def _aligned(lines: Sequence[Sequence[str]], named: bool) -> list[str]:
    """Columns to the right, names of rows to the left; a wide character counts two columns."""
    sizes = [max(map(width, column)) for column in zip(*lines, strict=True)]
    result = []
    for line in lines:
        cells = [
            cell + " " * (size - width(cell)) if named and place == 0 else " " * (size - width(cell)) + cell
            for place, (cell, size) in enumerate(zip(line, sizes, strict=True))
        ]
        result.append("  ".join(cells).rstrip())
    return result
