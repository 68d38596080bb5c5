"""Parallel text from files: tab-separated (as Tatoeba and Anki export) or two files line by line.

UTF-8 with or without BOM, any line ends. Lines that hold nothing in one language are left out and counted, never guessed at.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from transformer_lite.translation import Refused

LONGEST = 2_000  # characters in a line; longer ones are no sentences


class BadCorpus(Refused):
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
        BadCorpus: a file is not there or not UTF-8, two files of unequal length, no tab, no pair at all.
    """
    if len(paths) == 1:
        corpus = _tabbed(Path(paths[0]), columns)
    elif len(paths) == 2:
        corpus = _side_by_side(Path(paths[0]), Path(paths[1]))
    else:
        raise BadCorpus("corpora.files", count=len(paths))
    if not corpus.pairs:
        raise BadCorpus("corpora.no_pair", path=paths[0], empty=len(corpus.empty), too_long=len(corpus.too_long))
    return corpus


def lines_of(path: Path) -> list[str]:
    """The lines of a UTF-8 file without their ends; a BOM is dropped.

    Raises:
        BadCorpus.
    """
    if not path.is_file():
        raise BadCorpus("corpora.not_there", path=path)
    raw = path.read_bytes()
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise BadCorpus("corpora.not_utf8", path=path, line=raw[: error.start].count(b"\n") + 1) from None
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
            raise BadCorpus("corpora.columns", path=path, line=number, got=len(cells), needed=max(columns) + 1)
        _take(corpus, number, cells[columns[0]], cells[columns[1]])
    return corpus


def _side_by_side(source: Path, target: Path) -> Corpus:
    left, right = lines_of(source), lines_of(target)
    if len(left) != len(right):
        shorter, n = (source, len(left)) if len(left) < len(right) else (target, len(right))
        raise BadCorpus(
            "corpora.lines", source=source, target=target, n_source=len(left), n_target=len(right), shorter=shorter, line=n
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


# --- Japanese, which writes no spaces ---


def is_japanese(text: str) -> bool:
    """Whether kana stand in it, or Chinese characters."""
    return any("\u3040" <= character <= "\u30ff" or "\u4e00" <= character <= "\u9fff" for character in text)


def unsegmented(sentences: Sequence[str], seen: int = 200) -> bool:
    """Whether these are Japanese sentences whose words are not parted by spaces yet, by the first few of them."""
    japanese = [sentence for sentence in sentences[:seen] if is_japanese(sentence)]
    if len(japanese) * 2 < len(sentences[:seen]) or not japanese:
        return False
    characters = sum(len(sentence) for sentence in japanese)
    return sum(sentence.count(" ") for sentence in japanese) < characters / 20


def segmented(sentences: Sequence[str]) -> list[str]:
    """The words of Japanese sentences (SudachiPy, its shortest units), parted by single spaces.

    Raises:
        BadCorpus: SudachiPy or its dictionary is not installed.
    """
    tokenizer, mode = _segmenter()
    return [" ".join(word.surface() for word in tokenizer.tokenize(each, mode) if word.surface().strip()) for each in sentences]


def joined(sentence: str) -> str:
    """``sentence`` as Japanese is printed: no space beside a Japanese character, those between other words kept."""
    kept = []
    words = sentence.split()
    for left, right in zip(words, [*words[1:], ""], strict=True):
        kept.append(left)
        if right and not _wide(left[-1]) and not _wide(right[0]):
            kept.append(" ")
    return "".join(kept)


def _wide(character: str) -> bool:
    return is_japanese(character) or "\u3000" <= character <= "\u303f" or "\uff00" <= character <= "\uffef"


@cache
def _segmenter() -> tuple[Any, Any]:
    try:
        from sudachipy import Dictionary, SplitMode

        return Dictionary(dict="small").tokenizer(), SplitMode.A
    except (ImportError, ModuleNotFoundError) as missing:  # the library, or its dictionary
        raise BadCorpus("corpora.segmenter") from missing
