"""Numbers with their labels: a table, a matrix, matrices side by side, two compared; and an answer folded away."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.explore.matrices import KINDS, Folded, MatrixTable, SideBySide, Words, strongest
from transformer_lite.explore.tables import Part, Table, cell_text
from transformer_lite.lab.session import LabError
from transformer_lite.language import catalogue, message

QUERY_KEY = ("query", "key")


class _Markup:
    """Something that a notebook shows as HTML: a picture, a data frame."""

    def __init__(self, markup: str, words: str):
        self._markup, self._words = markup, words

    def html(self) -> str:
        return self._markup

    def text(self) -> str:
        return self._words


def table(
    matrix: ArrayLike,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str = "",
    decimals: int | str = 3,
) -> Table:
    """Show numbers (or words) with a label for every row and column.

    Args:
        matrix: (n_rows, n_columns), or (n_columns,) for one row.
        rows: n_rows labels; none if None.
        columns: n_columns labels; numbered from 1 if None.
        title: what the numbers are.
        decimals: digits after the point, or a format such as ``".0e"``.

    Raises:
        LabError: the labels do not fit the matrix.
    """
    numbers, _ = _numbers(matrix, "table")
    _fits("table", numbers.shape, rows, columns)
    header = [str(label) for label in (columns if columns is not None else range(1, numbers.shape[1] + 1))]
    body = [[cell_text(value, decimals) for value in row] for row in numbers]
    if rows is not None:
        header = ["", *header]
        body = [[str(label), *cells] for label, cells in zip(rows, body, strict=True)]
    return Table(title, header, body, row_headers=rows is not None)


def matrix(
    values: ArrayLike,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    title: str = "",
    decimals: int | str = 3,
    sums: bool = False,
    mark: Iterable[tuple[int, int]] | None = None,
    kind: str | None = None,
    axes: tuple[str, str] | None = QUERY_KEY,
) -> MatrixTable:
    """Show one matrix as a matrix: equal cells with number and tint, the shape in the caption. A row is a query, a column a key.

    Args:
        values: (n_rows, n_columns), or (n_columns,) for one row.
        rows: n_rows labels; numbered from 1 if None (none for one row).
        columns: n_columns labels; numbered from 1 if None.
        title: what the numbers are.
        decimals: digits after the point, or a format such as ``".0e"``.
        sums: whether to add the sum of each row, ruled off, as a column Σ.
        mark: the cells to outline, as (row, column) counted from 0.
        kind: "mask" shows ✓ and ×, "influence" filled cells with 1 and empty ones with 0; None numbers.
        axes: what a row and what a column is: the words query, key, value, token, position, dimension, head, input, output are
            shown in the learner's language, any other as it is. None where that need not be said.

    Raises:
        LabError: no matrix, labels or marks that do not fit it, an unknown kind.
    """
    numbers, shape = _numbers(values, "matrix")
    return _matrix("matrix", numbers, shape, rows, columns, title, decimals, sums, mark, kind, axes)


def matrices(
    named: Mapping[str, ArrayLike],
    rows: Sequence[str] | Mapping[str, Sequence[str] | None] | None = None,
    columns: Sequence[str] | Mapping[str, Sequence[str] | None] | None = None,
    decimals: int | str = 3,
    title: str = "",
    sums: bool = False,
    mark: Mapping[str, Iterable[tuple[int, int]]] | None = None,
    kind: str | None = None,
    axes: tuple[str, str] | None = None,
) -> SideBySide:
    """Show several matrices side by side, such as ``lab.matrices({"Q": q, "K": k, "V": v}, rows=tokens)``.

    Args:
        named: the matrices by name; the name stands above each.
        rows: labels for the rows of all, or by the matrix's name.
        columns: labels for the columns of all, or by the matrix's name.
        decimals, sums, kind, axes: as for `matrix`.
        title: what they are together.
        mark: by the matrix's name, the cells to outline.

    Raises:
        LabError: no matrices by name, or one that `matrix` refuses.
    """
    if not isinstance(named, Mapping) or not named:
        raise LabError(message("lab.matrices_what"))
    parts = []
    for name, values in named.items():
        numbers, shape = _numbers(values, "matrices")
        own = [labels.get(name) if isinstance(labels, Mapping) else labels for labels in (rows, columns)]
        cells = mark.get(name) if mark else None
        parts.append(_matrix("matrices", numbers, shape, *own, str(name), decimals, sums, cells, kind, axes))
    return SideBySide(parts, title)


def compare(
    right: ArrayLike,
    wrong: ArrayLike,
    rows: Sequence[str] | None = None,
    columns: Sequence[str] | None = None,
    titles: tuple[str, str] | None = None,
    decimals: int | str = 3,
    sums: bool = False,
    kind: str | None = None,
    axes: tuple[str, str] | None = QUERY_KEY,
) -> SideBySide:
    """Show two matrices side by side, with the cells that differ outlined in both and counted below.

    Args:
        right: (n_rows, n_columns).
        wrong: the same shape; of another shape, only the shapes are compared.
        rows, columns: labels, as for `matrix`.
        titles: what stands above each; "right" and "wrong" if None.
        decimals, sums, kind, axes: as for `matrix`.

    Raises:
        LabError: one that `matrix` refuses, or not two titles.
    """
    first, second = _numbers(right, "compare"), _numbers(wrong, "compare")
    if titles is None:
        titles = (message("lab.compare_right"), message("lab.compare_wrong"))
    if isinstance(titles, str) or len(titles) != 2:
        raise LabError(message("lab.compare_titles"))
    if first[0].shape == second[0].shape:
        pair = first[0].astype(np.float64), second[0].astype(np.float64)
        differing = [(int(i), int(j)) for i, j in np.argwhere(~np.isclose(*pair, equal_nan=True))]
        note = message("lab.compare_differ", count=len(differing)) if differing else message("lab.compare_same")
    else:
        differing, note = [], message("lab.compare_shapes", right=first[1], wrong=second[1])
        rows = columns = None
    largest = max(strongest(numbers) for numbers, _ in (first, second))
    parts = [
        _matrix("compare", numbers, shape, rows, columns, name, decimals, sums, differing, kind, axes, largest)
        for (numbers, shape), name in zip((first, second), titles, strict=True)
    ]
    return SideBySide(parts, note=note)


def reveal(thing: Any, question: str | None = None) -> Folded:
    """Show a question and fold the answer until the reader opens it.

    Args:
        thing: a table, a matrix, a picture, a text, numbers; or a list of such things.
        question: what to think about first.

    Raises:
        LabError: ``thing`` cannot be folded, such as an explorer, which lives in its own output.
    """
    things = thing if isinstance(thing, list | tuple) and any(_displayed(one) for one in thing) else [thing]
    return Folded("" if question is None else str(question), [_shown(one) for one in things])


def _displayed(thing: Any) -> bool:
    return isinstance(thing, str) or hasattr(thing, "html") or hasattr(thing, "_repr_html_")


def _shown(thing: Any) -> Part:
    if isinstance(thing, str):
        return Words(thing)
    if hasattr(thing, "html") and hasattr(thing, "text") and callable(thing.text):
        return thing  # type: ignore[no-any-return]
    if hasattr(thing, "html") and hasattr(thing, "plain"):  # a picture
        return _Markup(thing.html(), thing.plain())
    if hasattr(thing, "comm") or hasattr(thing, "_view_name"):  # a widget
        raise LabError(message("lab.reveal_what"))
    if hasattr(thing, "_repr_html_"):
        return _Markup(thing._repr_html_(), repr(thing))
    if hasattr(thing, "__array__") and np.ndim(thing) in (1, 2):
        return matrix(thing, axes=None)
    return Words(str(thing))


def _matrix(
    verb: str,
    numbers: NDArray[Any],
    shape: tuple[int, ...],
    rows: Sequence[str] | None,
    columns: Sequence[str] | None,
    title: str,
    decimals: int | str,
    sums: bool,
    mark: Iterable[tuple[int, int]] | None,
    kind: str | None,
    axes: tuple[str, str] | None,
    largest: float | None = None,
) -> MatrixTable:
    _fits(verb, numbers.shape, rows, columns)
    if not (np.issubdtype(numbers.dtype, np.number) or numbers.dtype == bool) or np.iscomplexobj(numbers):
        raise LabError(message("lab.matrix_words", verb=verb))
    if kind is not None and kind not in KINDS:
        raise LabError(message("lab.matrix_kind", verb=verb, kind=repr(kind)))
    if axes is not None and (isinstance(axes, str) or len(axes) != 2):
        raise LabError(message("lab.matrix_two_axes", verb=verb, axes=repr(axes)))
    if rows is None:
        rows = [] if len(shape) == 1 else range(1, numbers.shape[0] + 1)  # type: ignore[assignment]
    if columns is None:
        columns = range(1, numbers.shape[1] + 1)  # type: ignore[assignment]
    return MatrixTable(
        numbers,
        [str(label) for label in rows or []],
        [str(label) for label in columns or []],
        str(title),
        shape,
        (_axis(axes[0]), _axis(axes[1])) if axes else None,
        decimals,
        sums,
        _marked(verb, mark, numbers.shape),
        kind or "",
        largest,
        compact=verb != "matrix",
    )


def _numbers(values: Any, verb: str) -> tuple[NDArray[Any], tuple[int, ...]]:
    """The values as (n_rows, n_columns), and the shape in which they came. PyTorch tensors are welcome."""
    if hasattr(values, "detach"):
        values = values.detach().cpu()
    try:
        numbers = np.asarray(values)
    except ValueError:  # rows of different lengths
        raise LabError(message("lab.table_ragged", verb=verb)) from None
    if numbers.ndim not in (1, 2):
        raise LabError(message("lab.table_shape", verb=verb, shape=numbers.shape))
    return np.atleast_2d(numbers), numbers.shape


def _fits(verb: str, shape: tuple[int, ...], rows: Sequence[str] | None, columns: Sequence[str] | None) -> None:
    for labels, size, what in ((rows, shape[0], "rows"), (columns, shape[1], "columns")):
        if isinstance(labels, str):
            raise LabError(message("lab.labels_one_text", verb=verb, what=what, given=repr(labels)))
        if labels is not None and len(labels) != size:
            raise LabError(message("lab.table_labels", verb=verb, what=what, given=len(labels), size=size))


def _marked(verb: str, mark: Iterable[tuple[int, int]] | None, shape: tuple[int, ...]) -> frozenset[tuple[int, int]]:
    cells = set()
    for cell in mark or ():
        try:
            i, j = (int(index) for index in cell)
        except (TypeError, ValueError):
            raise LabError(message("lab.matrix_mark", verb=verb, cell=repr(cell), shape=shape)) from None
        if not (0 <= i < shape[0] and 0 <= j < shape[1]):
            raise LabError(message("lab.matrix_mark", verb=verb, cell=repr(cell), shape=shape))
        cells.add((i, j))
    return frozenset(cells)


def _axis(word: str) -> str:
    key = f"lab.axis_{word}"
    return message(key) if key in catalogue() else str(word)
