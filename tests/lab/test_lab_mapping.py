"""The exam map and the page to print: complete, linked, unofficial, in both languages."""

import re

import pytest

from transformer_lite import content, course, journal, lab, language
from transformer_lite.content import exams

NAMES = ("g-kentei", "e-shikaku")


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize("exam", NAMES)
def test_the_map_shows_every_point_with_sections_that_exist(exam, lang):
    language.use(lang)
    page = lab.exam_map(exam)
    html, text = page.html(), page.text()
    points = [point for each in exams.syllabus().exams if each.id == exam for item in each.items for point in item.points]
    assert all(point.name(lang) in text for point in points) and len(points) >= 15
    assert ("非公式" if lang == "ja" else "nofficial") in html
    files = set(re.findall(r'href="([^"]+)"', html))
    assert files == {f"{chapter.file}.ipynb" for chapter in course.chapters() if any(
        chapter.id in point.sections for point in points)}  # fmt: skip
    for row in (row for field in page.tables for row in field.rows):
        assert row.places and len(row.questions) >= 2
        assert all(exam in content.question(name).exams for name in row.questions)


def test_a_generalists_map_names_no_section_and_no_trap_that_only_code_needs():
    language.use("ja")
    chapters = {f"{chapter.file}.ipynb": chapter for chapter in course.chapters()}
    ideas = {trap.title("ja") for trap in content.traps().values() if trap.family == "idea"}
    for row in (row for field in lab.exam_map("g-kentei").tables for row in field.rows):
        assert set(row.traps) <= ideas
        for title, file in row.places:
            number = int(re.search(r"章 (\d+) 節", title)[1])
            assert chapters[file].sections[number - 1].g is not None, f"{row.name}: {title}"


def test_answers_are_counted(tmp_path, monkeypatch):
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    row = lab.exam_map("g-kentei").tables[0].rows[0]
    assert row.right == 0
    question = row.questions[0]
    journal.default().record("answer", question, correct=True, version=1)
    assert lab.exam_map("g-kentei").tables[0].rows[0].right == 1


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize("exam", NAMES)
def test_the_page_to_print_is_written_and_shown(exam, lang, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    language.use(lang)
    sheet = lab.handout(exam)
    written = (tmp_path / f"{exam}-{lang}.html").read_text("utf-8")
    assert f"{exam}-{lang}.html" in capsys.readouterr().out
    (handout,) = (each for each in exams.handouts().handouts if each.exam == exam)
    lines = [line(lang) for block in handout.blocks for line in block.lines]
    assert all(f"\n  {line}" in sheet.text() for line in lines) and written.count("<li>") == len(lines)
    assert "A4" in written and ("非公式" if lang == "ja" else "nofficial") in written


def test_a_place_that_cannot_be_written_is_said(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    language.use("en")
    (tmp_path / "g-kentei-en.html").mkdir()
    assert "Transformer" in lab.handout("g-kentei").text()
    assert "could not be written" in capsys.readouterr().out

    def gone(cls):
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr("pathlib.Path.cwd", classmethod(gone))  # the notebook's folder was deleted
    assert "Transformer" in lab.handout("g-kentei").text()
    assert "could not be written" in capsys.readouterr().out


@pytest.mark.parametrize("verb", [lab.exam_map, lab.handout])
def test_another_exam_is_refused(verb):
    with pytest.raises(lab.LabError, match="g-kentei"):
        verb("g-kente")
