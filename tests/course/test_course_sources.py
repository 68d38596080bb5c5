"""The chapters' own sources: what a reader would see wrong although the builder accepts it."""

import re

import pytest

from transformer_lite import content
from transformer_lite.course import building
from transformer_lite.language import LANGUAGES

SOURCES = sorted(content.source_dir().glob("*.md"))


def built_texts(path, lang):
    """The text cells of a chapter as a learner reads them."""
    return [cell.source for cell in building.blank(building.read(path), lang).cells if cell.cell_type == "markdown"]


def test_there_are_sources():
    assert len(SOURCES) >= 2


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_bold_is_bold(path, lang):
    """Markdown does not close ``**…（…）**は``: the stars would be shown."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable("table")
    seen = []
    for text in built_texts(path, lang):
        for token in parser.parse(text):
            seen += [child.content for child in token.children or () if child.type == "text"]
    assert seen
    assert [line for line in seen if "**" in line] == []


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_every_chapter_says_that_it_is_unofficial_and_numbers_agree_between_the_languages(path):
    texts = {lang: "\n".join(built_texts(path, lang)) for lang in LANGUAGES}
    assert "非公式" in texts["ja"] and "unofficial" in texts["en"].lower()
    decimals = {lang: sorted(set(re.findall(r"\d+\.\d+", text))) for lang, text in texts.items()}
    assert decimals["ja"] == decimals["en"]


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_what_is_folded_has_empty_lines_around_it(path):
    """JupyterLab shows Markdown inside ``<details>`` raw otherwise."""
    for lang in LANGUAGES:
        for text in built_texts(path, lang):
            assert text.count("<details") == len(re.findall(r"</summary>\n\n", text)) == len(re.findall(r"\n\n</details>", text))


def unannounced(source, lang):
    """Paragraphs in sections for the G検定 that send their reader to a section for the E資格 alone without saying so."""
    readers = {section.id: section.g is not None for section in source.chapter.sections}
    found = []
    for section, text in source.prose(lang).items():
        for paragraph in re.split(r"\n\s*\n", text):
            elsewhere = [name for name in building.REFERENCE.findall(paragraph) if not readers[name]]
            if readers[section] and elsewhere and "E資格" not in paragraph:
                found.append(f"{source.path.name}: {section} -> {', '.join(elsewhere)}: {paragraph}")
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
@pytest.mark.parametrize("path", SOURCES, ids=lambda path: path.stem)
def test_a_reader_for_the_g_exam_is_told_when_a_section_is_for_the_other_one(path, lang):
    assert unannounced(building.read(path), lang) == []


def test_that_test_finds_what_it_looks_for(source):
    assert unannounced(building.read(source), "ja") == []
    source.write_text(source.read_text("utf-8").replace("E資格向けの {sec", "{sec"), "utf-8")
    (found,) = unannounced(building.read(source), "ja")
    assert "addition -> practice" in found and unannounced(building.read(source), "en") == []
