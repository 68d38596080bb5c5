"""Tables of numbers and pages of tables, as HTML that every viewer keeps and as aligned text. All text is escaped."""

from __future__ import annotations

from dataclasses import dataclass, field
from html import escape
from typing import Any

from transformer_lite.language import current, printable, width


@dataclass(frozen=True)
class Table:
    """A table with a title. ``row_headers``: the first cell of each row names the row."""

    title: str
    header: list[str]
    rows: list[list[str]]
    row_headers: bool = False
    empty: str = ""

    def html(self) -> str:
        """The table as HTML, every text escaped."""
        head = "".join(f'<th scope="col" style="text-align:left">{escape(cell)}</th>' for cell in self.header)
        body = "".join(f"<tr>{self._html_cells(row)}</tr>" for row in self.rows)
        caption = f'<caption style="text-align:left;font-weight:bold;color:inherit">{escape(self.title)}</caption>'
        if not self.rows and self.empty:
            return f"<p><strong>{escape(self.title)}</strong> {escape(self.empty)}</p>"
        return f'<table lang="{current()}">{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>'

    def _html_cells(self, row: list[str]) -> str:
        cells = []
        for number, cell in enumerate(row):
            text = escape(cell).replace("\n", "<br>")
            if number == 0 and self.row_headers:
                cells.append(f'<th scope="row" style="text-align:left">{text}</th>')
            else:
                cells.append(f'<td style="text-align:left">{text}</td>')
        return "".join(cells)

    def text(self) -> str:
        """The table as text, columns aligned also where characters are two columns wide."""
        if not self.rows and self.empty:
            return f"{self.title}\n  {self.empty}"
        lines = [self.header, *self.rows]
        widths = [max(width(row[column]) for row in lines) for column in range(len(self.header))]
        drawn = ["  ".join(_padded(cell, size) for cell, size in zip(row, widths, strict=True)).rstrip() for row in lines]
        rule = "  ".join("-" * size for size in widths)
        return "\n".join([*([self.title] if self.title else []), drawn[0], rule, *drawn[1:]])

    def _repr_html_(self) -> str:
        return self.html()

    def __repr__(self) -> str:
        return printable(self.text())


@dataclass(frozen=True)
class Page:
    """Several tables under one title, with an optional picture above them and a note below."""

    title: str
    tables: list[Table]
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


def _padded(cell: str, size: int) -> str:
    return cell + " " * (size - width(cell))
