"""Parallel text from files: tab-separated (as Tatoeba and Anki export) or two files line by line.

UTF-8 with or without BOM, any line ends. Lines that hold nothing in one language are left out and counted, never guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

LONGEST = 2_000  # characters in a line; longer ones are no sentences


class BadCorpus(ValueError):
    """Files that cannot be read as parallel text; the message names the file and the line, and says how to mend it."""


@dataclass
class Corpus:
    """Sentence pairs, and what was left out while reading them."""

    pairs: list[tuple[str, str]] = field(default_factory=list)
    empty: list[int] = field(default_factory=list)  # numbers of lines, from 1, with nothing in one language
    too_long: list[int] = field(default_factory=list)  # of more than `LONGEST` characters

    def __len__(self) -> int:
        return len(self.pairs)


def read(paths: Sequence[str | Path], columns: tuple[int, int] = (0, 1)) -> Corpus:
    """Read one tab-separated file, or two files whose lines belong together (source first).

    Args:
        paths: one or two files.
        columns: of a tab-separated file, from 0: where source and target stand. Further columns (licences) are ignored.

    Raises:
        FileNotFoundError: a file is not there.
        BadCorpus: not UTF-8, two files of unequal length, no tab, no pair at all.
    """
    if len(paths) == 1:
        corpus = _tabbed(Path(paths[0]), columns)
    elif len(paths) == 2:
        corpus = _side_by_side(Path(paths[0]), Path(paths[1]))
    else:
        raise BadCorpus(f"give one tab-separated file, or two files line by line; got {len(paths)} files.")
    if not corpus.pairs:
        raise BadCorpus(f"{paths[0]} holds no sentence pair ({len(corpus.empty)} lines with an empty side).")
    return corpus


def lines_of(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends; a BOM is dropped.

    Raises:
        FileNotFoundError, BadCorpus.
    """
    if not path.is_file():
        raise FileNotFoundError(f"{path} is not there, or is no file.")
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        number = raw[: error.start].count(b"\n") + 1
        raise BadCorpus(f"{path}:{number}: not UTF-8; save the file as UTF-8 (many editors: “save with encoding”).") from None
    # Not splitlines(): U+2028 and form feeds stand within sentences.
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return lines[:-1] if lines[-1] == "" else lines


def _tabbed(path: Path, columns: tuple[int, int]) -> Corpus:
    corpus = Corpus()
    for number, line in enumerate(lines_of(path), 1):
        if not line.strip():
            corpus.empty.append(number)
            continue
        cells = line.split("\t")
        if len(cells) <= max(columns):
            raise BadCorpus(
                f"{path}:{number}: {len(cells)} column(s), but column {max(columns) + 1} is needed; columns are parted by a tab."
            )
        _take(corpus, number, cells[columns[0]], cells[columns[1]])
    return corpus


def _side_by_side(source: Path, target: Path) -> Corpus:
    left, right = lines_of(source), lines_of(target)
    if len(left) != len(right):
        shorter, n = (source, len(left)) if len(left) < len(right) else (target, len(right))
        raise BadCorpus(
            f"{source} has {len(left)} lines and {target} {len(right)}; every line must have its partner. "
            f"{shorter} ends at line {n}: look there, or for a sentence broken over two lines before it."
        )
    corpus = Corpus()
    for number, (one, other) in enumerate(zip(left, right, strict=True), 1):
        _take(corpus, number, one, other)
    return corpus


def _take(corpus: Corpus, number: int, source: str, target: str) -> None:
    source, target = source.strip(), target.strip()
    if not source or not target:
        corpus.empty.append(number)
    elif max(len(source), len(target)) > LONGEST:
        corpus.too_long.append(number)
    else:
        corpus.pairs.append((source, target))
