"""The chapters' own sources: what a reader would see wrong although the builder accepts it."""

import re

import pytest

from transformer_lite import content
from transformer_lite.course import building

SOURCES = sorted(content.source_dir().glob("*.md"))


def text_cells(path):
    return [cell for cell in building.read(path).cells if cell.kind != "code"]


def test_there_are_sources():
    assert len(SOURCES) >= 2


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_bold_is_bold(path):
    """Markdown does not close ``**…（…）**は``: the stars would be shown."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    seen = []
    for cell in text_cells(path):
        for token in parser.parse(cell.text):
            seen += [f"{path.name}:{cell.line}: {child.content}" for child in token.children or () if child.type == "text"]
    assert seen
    assert [line for line in seen if "**" in line] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_chapter_says_that_it_is_unofficial_and_numbers_agree_between_the_languages(path):
    texts = {lang: "\n".join(cell.text for cell in text_cells(path) if cell.metadata["lang"] == lang) for lang in ("ja", "en")}
    assert "非公式" in texts["ja"] and "unofficial" in texts["en"].lower()
    decimals = {lang: sorted(set(re.findall(r"\d+\.\d+", text))) for lang, text in texts.items()}
    assert decimals["ja"] == decimals["en"]
