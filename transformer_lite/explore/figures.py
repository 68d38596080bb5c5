"""Pictures that hold their numbers: matplotlib figures made without pyplot, each with a table and a sentence that say the same.

A picture is white with black text in every theme, names its axes, uses colours that colour-blind readers can tell apart, and
never relies on colour alone. In a picture of attention a row is a query and a column is a key.
"""

from __future__ import annotations

import base64
import html
import io
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.explore.tables import html_table, plain_table
from transformer_lite.language import current, message, printable, width

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 100
PLAIN_FONT = "DejaVu Sans"
# Okabe and Ito's palette without its yellow, which vanishes on white. Told apart in all three kinds of colour blindness.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
DASHES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (8, 3)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
SEQUENTIAL = "cividis"
CELLS_WITH_NUMBERS = 16  # a matrix with more rows or columns than this gets no numbers on its cells
LONGEST_TABLE = 400  # cells; above it only the largest of each row are listed

# Where matplotlib-fontja is missing: what Windows, macOS and Linux call their own Japanese fonts.
_SYSTEM_FONTS = ("Noto Sans CJK JP", "Noto Sans JP", "Hiragino Sans", "Yu Gothic", "Meiryo", "MS Gothic", "IPAexGothic",
                 "IPAGothic", "VL Gothic", "TakaoGothic")  # fmt: skip


# --- fonts and style ---


@cache
def japanese_font() -> str | None:
    """The family name of the font used for Japanese, or None when there is none (pictures then show boxes, nothing fails)."""
    from matplotlib import font_manager, rc_context

    try:
        with rc_context(), warnings.catch_warnings():  # importing it changes the global settings: kept inside
            warnings.simplefilter("ignore")
            import matplotlib_fontja

            path = matplotlib_fontja.get_font_ttf_path()
            family = font_manager.FontProperties(fname=path).get_name()
            if not any(font.fname == path for font in font_manager.fontManager.ttflist):
                font_manager.fontManager.addfont(path)
            return family
    except (ImportError, OSError, AttributeError):
        pass
    installed = {font.name for font in font_manager.fontManager.ttflist}
    return next((name for name in _SYSTEM_FONTS if name in installed), None)


def font_trouble() -> str | None:
    """None, or the code of what is wrong with the fonts: ``"no_japanese_font"``."""
    return None if japanese_font() else "no_japanese_font"


@contextmanager
def style() -> Iterator[None]:
    """Draw inside this: the course's fonts, sizes and white background, the learner's own settings back afterwards."""
    import matplotlib

    font = japanese_font()
    # The Japanese font comes first: text with $maths$ in it uses the first family only.
    settings = {
        "font.family": [font, PLAIN_FONT] if font else [PLAIN_FONT],
        "font.size": 10.0,
        "axes.unicode_minus": True,
        "axes.titlesize": 11.0,
        "axes.labelsize": 10.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "figure.facecolor": "white",
        "savefig.facecolor": "white",
        "axes.facecolor": "white",
        "text.color": "black",
        "axes.labelcolor": "black",
        "axes.edgecolor": "black",
        "xtick.color": "black",
        "ytick.color": "black",
    }
    fonts = logging.getLogger("matplotlib.font_manager")
    level = fonts.level
    with matplotlib.rc_context(), warnings.catch_warnings():
        matplotlib.rcdefaults()  # a learner's dark style must not leak in
        matplotlib.rcParams.update(settings)
        if font is None:
            warnings.filterwarnings("ignore", message="Glyph .* missing")
            fonts.setLevel(logging.ERROR)
        try:
            yield
        finally:
            fonts.setLevel(level)


def new_figure(width_px: int, height_px: int) -> Figure:
    """An empty white figure that pyplot does not know (nothing piles up in memory). Call it inside `style`."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    made = Figure(figsize=(width_px / DPI, height_px / DPI), dpi=DPI, layout="constrained")
    FigureCanvasAgg(made)
    return made


def to_png(drawn: Figure, *, cropped: bool = False) -> bytes:
    """The figure as PNG. The same figure gives the same bytes: neither a date nor matplotlib's version is written into it."""
    buffer = io.BytesIO()
    crop = {"bbox_inches": "tight", "pad_inches": 0.08} if cropped else {}
    drawn.savefig(buffer, format="png", dpi=drawn.dpi, metadata={"Software": None}, **crop)
    return buffer.getvalue()


# --- a picture and its numbers ---


@dataclass(frozen=True)
class Picture:
    """A drawing with its text twin. As a cell's result it shows the drawing, the sentence, and the table folded below.

    ``table`` holds rows of strings, the header first; the first cell of each row names the row.
    """

    png: bytes
    title: str
    table: Sequence[Sequence[str]]
    text: str
    lang: str = field(default_factory=current)

    def html_table(self, folded: bool = True) -> str:
        """The numbers as an HTML table with caption and header cells, everything escaped."""
        return html_table(self.table, self.title, self.lang, folded=folded)

    def plain(self) -> str:
        """Title, sentence and an aligned table for a terminal."""
        return "\n".join([self.title, self.text, plain_table(self.table)]).strip("\n")

    def html(self) -> str:
        """The whole picture as one piece of HTML that needs nothing from outside."""
        source = base64.b64encode(self.png).decode()
        alternative = html.escape(f"{self.title}. {self.text}", quote=True)
        return (
            f'<figure lang="{self.lang}" style="margin:0"><img alt="{alternative}" src="data:image/png;base64,{source}" '
            f'style="max-width:100%"><figcaption>{_paragraph(self.text)}</figcaption></figure>{self.html_table()}'
        )

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, str]:
        return {"image/png": base64.b64encode(self.png).decode(), "text/html": self.html(), "text/plain": self.plain()}

    def _ipython_display_(self) -> None:
        # A notebook shows only the richest type of a bundle, and which one differs from viewer to viewer. Two outputs, the
        # drawing and then its numbers, are read the same in JupyterLab (trusted or not), on GitHub and by nbconvert.
        from IPython.display import display

        display({"image/png": base64.b64encode(self.png).decode(), "text/plain": self.title}, raw=True)
        numbers = f'<div lang="{self.lang}">{_paragraph(self.text)}{self.html_table()}</div>'
        display({"text/html": numbers, "text/plain": "\n".join([self.text, plain_table(self.table)]).strip("\n")}, raw=True)

    def __repr__(self) -> str:
        return printable(self.plain())


def without_tex(label: str) -> str:
    """A drawing's label as plain text: ``$d_k$`` becomes d_k. Drawings may hold such simple TeX, tables may not."""
    return label.replace("$", "").replace("\\sqrt{d_k}", "√d_k").replace("\\", "")


def _paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>" if text else ""


def number(value: float, digits: int = 2) -> str:
    """``value`` as a learner reads it: few digits, a true minus sign, never −0.00."""
    if np.isnan(value):
        return "NaN"
    if np.isinf(value):
        return "∞" if value > 0 else "−∞"
    text = f"{value:.1e}" if abs(value) >= 1e5 else f"{value:.{digits}f}"
    return (text.removeprefix("-") if float(text) == 0 else text).replace("-", "−")


# --- matrices ---


@dataclass(frozen=True)
class Matrix:
    """One panel of `matrices_picture`: ``values`` (n_rows, n_columns) with a name for each row and column.

    Boolean values (an influence matrix) are written 1 and 0. ``mark`` outlines one cell, (row, column).
    ``row_axis`` and ``column_axis`` default to the exam's words for query and key.
    """

    values: ArrayLike
    title: str
    row_labels: Sequence[str] | None = None
    column_labels: Sequence[str] | None = None
    mark: tuple[int, int] | None = None
    row_axis: str | None = None
    column_axis: str | None = None


def attention_picture(
    weights: ArrayLike,
    row_labels: Sequence[str] | None = None,
    column_labels: Sequence[str] | None = None,
    *,
    title: str,
    lang: str | None = None,
    note: str | None = None,
) -> Picture:
    """A matrix of attention weights (n_q, n_k): row = query, column = key, the number on each cell, the sum beside each row.

    Args:
        weights: (n_q, n_k).
        row_labels: n_q names of the queries; their positions if None.
        column_labels: n_k names of the keys; their positions if None.
        title: shown above.
        note: the sentence below; if None, one is made from the numbers.

    Raises:
        ValueError: ``weights`` is not a matrix, or the labels do not fit it.
    """
    matrix = Matrix(weights, title, row_labels, column_labels)
    return matrices_picture([matrix], title=title, lang=lang, note=note or describe_attention(matrix, lang), row_sums=True)


def describe_attention(matrix: Matrix, lang: str | None = None) -> str:
    """One sentence from the numbers of a weight matrix: do the rows sum to 1, and where does each row look most?"""
    values, rows, columns = _checked(matrix)
    if values.size == 0 or not np.isfinite(values).all():
        return message("explore.picture.not_finite", lang)
    sums = values.sum(axis=1)
    sentence = (
        message("explore.picture.rows_sum_to_one", lang)
        if np.allclose(sums, 1.0, atol=1e-6)
        else message("explore.picture.rows_do_not", lang, smallest=number(sums.min()), largest=number(sums.max()))
    )
    row, column = np.unravel_index(values.argmax(), values.shape)
    where = message(
        "explore.picture.largest", lang, row=rows[row], column=columns[column], weight=number(values[row, column])
    )
    return sentence + ("" if (lang or current()) == "ja" else " ") + where


def matrices_picture(
    matrices: Sequence[Matrix],
    *,
    title: str,
    lang: str | None = None,
    note: str = "",
    row_sums: bool = False,
) -> Picture:
    """Several matrices side by side with the number on each cell: the learner's weights beside the right ones, for example.

    Cells are coloured from 0 to 1 where all values lie there, else from the matrix's own smallest to its largest. More than
    16 rows or columns get no numbers on the cells; the table then lists the five largest of each row.

    Raises:
        ValueError: no matrix, one that is not two-dimensional, or labels that do not fit.
    """
    if not matrices:
        raise ValueError("matrices must hold at least one Matrix; got none.")
    lang = lang or current()
    checked = [_checked(matrix) for matrix in matrices]
    with style():
        size, cells = _matrices_size(checked, [_cell(values, len(matrices)) for values, _, _ in checked], title)
        figure = new_figure(*size)
        all_axes = figure.subplots(1, len(matrices), squeeze=False)[0]
        for axes, matrix, cell, (values, rows, columns) in zip(all_axes, matrices, cells, checked, strict=True):
            _draw_matrix(axes, matrix, values, rows, columns, cell, lang, row_sums)
        if len(matrices) > 1:
            figure.suptitle(title, fontsize=12)
        png = to_png(figure, cropped=True)
    table: list[list[str]] = []
    for matrix, (values, rows, columns) in zip(matrices, checked, strict=True):
        table += _matrix_table(matrix, values, rows, columns, lang, titled=len(matrices) > 1, row_sums=row_sums)
    longest = max(len(row) for row in table)
    return Picture(png, title, [row + [""] * (longest - len(row)) for row in table], note, lang)


def _checked(matrix: Matrix) -> tuple[NDArray[np.float64], list[str], list[str]]:
    values = np.asarray(matrix.values)
    if values.ndim != 2:
        raise ValueError(f"a matrix to draw must have shape (n_rows, n_columns); got {values.shape}.")
    labels = []
    for name, given, count in zip(("row", "column"), (matrix.row_labels, matrix.column_labels), values.shape, strict=True):
        if given is not None and len(given) != count:
            raise ValueError(f"{name}_labels must hold {count} names, one per {name}; got {len(given)}.")
        labels.append([str(label) for label in given] if given is not None else [str(i) for i in range(count)])
    return values.astype(np.float64), labels[0], labels[1]


def _cell(values: NDArray[np.float64], panels: int) -> int:
    """How many pixels wide a cell wants to be: wide enough for its number, and for short names below it where there is room."""
    longest = max(values.shape, default=0)
    if longest <= 4 and panels <= 2:
        return 76
    return 54 if longest <= 8 else 40 if longest <= CELLS_WITH_NUMBERS else 12


def _matrices_size(
    checked: Sequence[tuple[NDArray[np.float64], list[str], list[str]]], cells: Sequence[int], title: str
) -> tuple[tuple[int, int], list[float]]:
    """(width, height) in pixels, 900 wide at most, and the width of each matrix's cells. What stays empty is cropped."""
    panel_widths, heights = [], []
    for (values, rows, _), cell in zip(checked, cells, strict=True):
        panel_widths.append(max(cell * values.shape[1] + min(7 * max(map(width, rows), default=0), 160) + 90, 230))
    total = min(max(sum(panel_widths), 300, 9 * width(title)), 900)
    all_cells = sum(cell * values.shape[1] for (values, _, _), cell in zip(checked, cells, strict=True))
    too_wide = max(sum(panel_widths) - total, 0)  # the cells give it up; a height that ignored it would leave an empty band
    shrunk = [max(cell * (1 - too_wide / max(all_cells, 1)), 12.0) for cell in cells]
    for (values, _, columns), cell in zip(checked, shrunk, strict=True):
        turned = min(7 * max(map(width, columns), default=0), 130) if _turn(columns, cell) else 16
        heights.append(max(cell * values.shape[0], 60) + turned + 80)
    return (round(total), round(min(max(heights) + (42 if len(checked) > 1 else 0), 760))), shrunk


def _turn(labels: Sequence[str], cell: float) -> bool:
    """Whether names must stand upright to fit below their cells."""
    return max(map(width, labels), default=0) * 7 > cell - 4


def _draw_matrix(
    axes: Axes,
    matrix: Matrix,
    values: NDArray[np.float64],
    rows: list[str],
    columns: list[str],
    cell: float,
    lang: str,
    row_sums: bool,
) -> None:
    from matplotlib import colormaps
    from matplotlib.patches import Rectangle

    finite = values[np.isfinite(values)]
    inside = finite.size == 0 or (finite.min() >= 0 and finite.max() <= 1 + 1e-9)
    low, high = (0.0, 1.0) if inside else (finite.min(), finite.max())
    palette = colormaps[SEQUENTIAL].with_extremes(bad="#bbbbbb")
    if values.size:
        axes.imshow(np.where(np.isfinite(values), values, np.nan), cmap=palette, vmin=low, vmax=high or 1.0, aspect="equal")
    axes.set_title(matrix.title)
    few_columns, few_rows = len(columns) <= 40, len(rows) <= 40
    axes.set_xticks(range(len(columns)) if few_columns else [], columns if few_columns else [])
    axes.set_yticks(range(len(rows)) if few_rows else [], rows if few_rows else [])
    if _turn(columns, cell):
        axes.tick_params(axis="x", labelrotation=90)
    axes.tick_params(length=0)
    axes.set_xlabel(matrix.column_axis or message("explore.picture.key_axis", lang))
    axes.set_ylabel(matrix.row_axis or message("explore.picture.query_axis", lang))
    for spine in axes.spines.values():
        spine.set_visible(False)
    if max(values.shape, default=0) <= CELLS_WITH_NUMBERS:
        whole = np.asarray(matrix.values).dtype.kind in "biu"
        size = 10 if max(values.shape, default=0) <= 8 and cell >= 34 else 8 if cell >= 26 else 7
        for (row, column), value in np.ndenumerate(values):
            shade = palette((value - low) / ((high - low) or 1.0)) if np.isfinite(value) else (0.73, 0.73, 0.73, 1.0)
            axes.text(column, row, number(value, 0 if whole else 2), ha="center", va="center", size=size, color=_ink(shade))
        if row_sums:
            for row, total in enumerate(values.sum(axis=1)):
                axes.text(len(columns) - 0.4, row, f"Σ {number(total)}", ha="left", va="center", size=9)
    if matrix.mark is not None:
        row, column = matrix.mark
        corner = (column - 0.48, row - 0.48)
        axes.add_patch(Rectangle(corner, 0.96, 0.96, fill=False, edgecolor="white", linewidth=4.5, clip_on=False))
        axes.add_patch(Rectangle(corner, 0.96, 0.96, fill=False, edgecolor=COLOURS[1], linewidth=2.5, clip_on=False))


def _ink(shade: Sequence[float]) -> str:
    """Black or white, whichever stands out from ``shade`` (WCAG relative luminance)."""
    linear = [c / 12.92 if c <= 0.03928 else ((c + 0.055) / 1.055) ** 2.4 for c in shade[:3]]
    return "black" if 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2] > 0.179 else "white"


def _matrix_table(
    matrix: Matrix, values: NDArray[np.float64], rows: list[str], columns: list[str], lang: str, *, titled: bool, row_sums: bool
) -> list[list[str]]:
    corner = without_tex(matrix.title) if titled else message("explore.picture.corner", lang)
    whole = np.asarray(matrix.values).dtype.kind in "biu"
    if values.size > LONGEST_TABLE:
        header = [corner, *(message("explore.picture.nth_largest", lang, rank=rank) for rank in range(1, 6))]
        body = []
        for name, row in zip(rows, values, strict=True):
            best = np.argsort(-np.nan_to_num(row, nan=-np.inf))[:5]
            body.append([name, *(f"{columns[column]}: {number(row[column])}" for column in best)])
        return [header, *body]
    header = [corner, *columns] + ([message("explore.picture.row_sum", lang)] if row_sums else [])
    body = [
        [name, *(number(value, 0 if whole else 3) for value in row)] + ([number(row.sum(), 3)] if row_sums else [])
        for name, row in zip(rows, values, strict=True)
    ]
    return [header, *body]


# --- curves ---


@dataclass(frozen=True)
class Lines:
    """One panel of `lines_picture`: ``series`` maps a name to its y values, all over the same ``x`` (n,)."""

    x: ArrayLike
    series: Mapping[str, ArrayLike]
    title: str
    x_label: str
    y_label: str
    log_x: bool = False
    log_y: bool = False
    digits: int = 2


def lines_picture(panels: Lines | Sequence[Lines], *, title: str, lang: str | None = None, note: str = "") -> Picture:
    """Curves, each told apart by dash, marker and colour together; several panels stand side by side.

    The table has one row per x and one column per curve.

    Raises:
        ValueError: no panel, or a curve whose length is not that of x.
    """
    panels = [panels] if isinstance(panels, Lines) else list(panels)
    if not panels:
        raise ValueError("panels must hold at least one Lines; got none.")
    lang = lang or current()
    for panel in panels:
        for name, y in panel.series.items():
            if np.shape(y) != np.shape(panel.x):
                raise ValueError(f"the curve {name!r} must have shape {np.shape(panel.x)} as x; got {np.shape(y)}.")
    with style():
        figure = new_figure(min(460 * len(panels) + 60, 900), 360)
        all_axes = figure.subplots(1, len(panels), squeeze=False)[0]
        for axes, panel in zip(all_axes, panels, strict=True):
            draw_lines(axes, panel)
        if len(panels) > 1 or panels[0].title != title:
            figure.suptitle(title, fontsize=12)
        png = to_png(figure)
    table: list[list[str]] = []
    for panel in panels:
        if len(panels) > 1:
            table.append([without_tex(panel.title)])
        table.append([without_tex(name) for name in (panel.x_label, *panel.series)])
        whole = np.asarray(panel.x).dtype.kind in "iu"
        for i, x in enumerate(np.asarray(panel.x, dtype=np.float64)):
            ys = (number(float(np.asarray(y)[i]), panel.digits) for y in panel.series.values())
            table.append([number(x, 0 if whole else panel.digits), *ys])
    longest = max(len(row) for row in table)
    return Picture(png, title, [row + [""] * (longest - len(row)) for row in table], note, lang)


def draw_lines(axes: Axes, panel: Lines, legend: str | None = "best") -> None:
    """Draw ``panel`` on axes of one's own, its legend at matplotlib's place ``legend`` (None: none). Call it inside `style`."""
    x = np.asarray(panel.x, dtype=np.float64)
    few = x.size <= 20
    for i, (name, y) in enumerate(panel.series.items()):
        axes.plot(
            x,
            np.asarray(y, dtype=np.float64),
            label=name,
            color=COLOURS[i % len(COLOURS)],
            linestyle=DASHES[i % len(DASHES)],
            linewidth=2,
            marker=MARKERS[i % len(MARKERS)],
            markersize=6,
            markevery=1 if few else max(x.size // 8, 1),
        )
    if panel.log_x:
        axes.set_xscale("log", base=2)
        axes.set_xticks(x if few else axes.get_xticks())
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.set_xlim(x.min() / 1.2, x.max() * 1.2)
    if panel.log_y:
        axes.set_yscale("log")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    if legend and len(panel.series) > 1:
        axes.legend(loc=legend, frameon=True, framealpha=0.9)


def picture(figure: Figure, *, title: str, table: Sequence[Sequence[str]], text: str, lang: str | None = None) -> Picture:
    """Wrap a figure of one's own, made with `new_figure` inside `style`, as a `Picture`."""
    return Picture(to_png(figure), title, [list(row) for row in table], text, lang or current())
