"""The builder: what it refuses and where it says so, what it writes, and when a notebook counts as stale."""

import json

import pytest

from transformer_lite import course
from transformer_lite.course import building
from transformer_lite.language import LANGUAGES, Text


def messages_of(path):
    with pytest.raises(course.BuildError) as caught:
        building.read(path)
    return caught.value.messages


def line_of(path, text):
    return next(number for number, line in enumerate(path.read_text("utf-8-sig").splitlines(), 1) if text in line)


def replace(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


def code(notebook, position):
    return [cell for cell in notebook.cells if cell.cell_type == "code"][position]


def test_each_language_gets_its_own_text_and_the_same_code(source):
    chapter = building.read(source)
    ja, en = building.blank(chapter, "ja"), building.blank(chapter, "en")
    texts = {
        notebook.metadata["transformer_lite"]["lang"]: [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
        for notebook in (ja, en)
    }
    assert len(texts["ja"]) == len(texts["en"]) == 3
    assert "足し算です。" in texts["ja"][1] and "練習です。" in texts["ja"][2]
    assert "An addition." in texts["en"][1] and "An exercise." in texts["en"][2]
    assert 'lab.start("ja")' in code(ja, 0).source and 'lab.start("en")' in code(en, 0).source
    assert all("lang" not in cell.metadata for cell in [*ja.cells, *en.cells])
    assert code(ja, 0).metadata == {"jupyter": {"source_hidden": True}} and code(en, 1).metadata == {
        "tags": ["nbval-check-output"]
    }
    assert ja.metadata["transformer_lite"] == {
        "chapter": "small-chapter",
        "number": 3,
        "sections": [
            {"id": "addition", "title": {"ja": "足し算", "en": "An addition"}, "g": 2, "e": 3},
            {"id": "practice", "title": {"ja": "練習", "en": "Practice"}, "e": 4},
        ],
        "lang": "ja",
        "title": {"ja": "小さな章", "en": "A small chapter"},
    }
    assert ja.metadata["kernelspec"]["name"] == "python3" and ja.metadata["language_info"] == {"name": "python"}


def texts_of(path, lang):
    return [cell.source for cell in building.blank(building.read(path), lang).cells if cell.cell_type == "markdown"]


def test_the_builder_writes_title_standing_paragraph_numbers_badges_and_references(source):
    ja, en = texts_of(source, "ja"), texts_of(source, "en")
    title, standing, goals = ja[0].split("\n\n")
    assert (title, goals) == ("# 第 3 章　小さな章", "**目標**")
    assert all(word in standing for word in ("7 分", "2 分", "**G**", "**E**", "非公式"))
    title, standing, goals = en[0].split("\n\n")
    assert (title, goals) == ("# Chapter 3: A small chapter", "**Goals**")
    assert all(word in standing for word in ("7 minutes", "2 minutes", "**G**", "**E**", "unofficial"))
    assert ja[1] == (
        '<a id="addition"></a>\n\n## 1. 足し算\n\n**G** 2 分・**E** 3 分\n\n足し算です。E資格向けの 2 節で使います。'
    )
    assert en[1] == (
        '<a id="addition"></a>\n\n## 1. An addition\n\n**G** 2 minutes, **E** 3 minutes\n\n'
        "An addition. Section 2, for the E資格, uses it."
    )
    assert '<a id="practice"></a>\n\n## 2. 練習\n\n**E**　4 分\n\n練習です。' in ja[2]
    assert '\n\n<a id="practice-softmax"></a>\n\n### Exercise 1  softmax' in en[2]
    assert not any("{" in text for text in [*ja, *en])
    assert building.read(source).anchors == ("addition", "practice", "practice-softmax")


def test_a_section_for_both_and_one_for_engineers_before_another_say_so_and_a_note_follows_the_minutes(source):
    replace(source, "{id: addition, g: 2, e: 3}", '{id: addition, e: 1, note: {ja: "注", en: "a note"}}')
    replace(source, "{id: practice, e: 4}", "{id: practice, g: 4, e: 4}")
    ja, en = texts_of(source, "ja"), texts_of(source, "en")
    assert "**E**　1 分（注）（G検定の方は 2 節へ進んでください）" in ja[1] and "**G** **E**　4 分" in ja[2]
    assert "**E**  1 minute (a note) (for the G検定, go on to Section 2)" in en[1] and "**G** **E**  4 minutes" in en[2]


def test_a_chapter_that_takes_both_readers_as_long_says_it_once(source):
    replace(source, "g: 2, e: 3", "g: 6, e: 2")
    standing = {lang: texts_of(source, lang)[0] for lang in LANGUAGES}
    assert standing["ja"].count("6 分") == 1 and standing["en"].count("6 minutes") == 1


def test_what_looks_like_a_heading_or_a_reference_inside_a_fence_stays(source):
    fenced = "````markdown\n# no title\n```\n## no section\n{sec:nothing}\n````"
    replace(source, "練習です。", f"練習です。\n\n{fenced}")
    assert fenced in texts_of(source, "ja")[2]


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("## An addition {#addition}\n\n", "", "{id: addition"),  # missing in one language
        ("## An addition {#addition}", "### An addition {#addition}", "{id: addition"),
        ("    - {id: practice", "    - {id: later, g: 1}\n    - {id: practice", "{id: later"),  # missing in both
        ("## An addition {#addition}", "## An addition", "## An addition"),
        ("## An addition {#addition}", "## An addition {#addition}\n\n## Another {#other}", "## Another"),
        ("## An addition {#addition}", "## An addition {#addition}\n\n## Another {#addition}", "## Another"),
        ("## An addition {#addition}", "## An addition {#addition}\n\n### Another {#An_id}", "### Another"),
        ("## An addition {#addition}", "## 1. An addition {#addition}", "## 1. An addition"),
        ("## An addition {#addition}", "## An addition {#addition}\n\n**G** **E**  2 minutes", "## An addition"),
        ("**Goals**", "# A small chapter\n\n**Goals**", "# A small chapter"),
        ("An exercise.", '<a id="here"></a>\n\nAn exercise.', '<a id="here">'),
        ("An exercise.", "An exercise, see {sec:practise}.", "practise"),
        ("An exercise.", "An exercise, see {sec:practice-softmax}.", "sec:practice-softmax"),
        ("### Exercise 1  softmax {#practice-softmax}", "### Exercise 1  softmax", "### 演習 1"),  # an anchor in one language
        ("print(1 + 1)", f"print(1 + 1)  # {'x' * 83}", "print(1 + 1)"),
        ("print(1 + 1)", f"print(1 + 1)  # ja: {'あ' * 41}\n# en: short", "print(1 + 1)"),  # each takes two columns
        ("print(1 + 1)", 'print("犬")  # ja', 'print("犬")'),
        ("print(1 + 1)", "print(1)  # ja\nprint(2)  # en\nprint(3", "print(3"),  # the line of the source, not of one language
    ],
)
def test_sections_and_lines_that_cannot_be_built_are_refused_with_their_line(source, old, new, where):
    replace(source, old, new)
    said = messages_of(source)
    assert any(f"03_small_chapter.md:{line_of(source, where)}: " in each for each in said), said


def test_sections_out_of_order_are_refused_in_the_language_where_they_are(source):
    replace(source, "## An addition {#addition}", "## An addition {#swapped}")
    replace(source, "## Practice {#practice}", "## Practice {#addition}")
    replace(source, "{#swapped}", "{#practice}")
    (said,) = messages_of(source)
    assert f":{line_of(source, '## Practice')}: " in said and "addition" in said


def test_a_line_may_be_96_columns_wide_and_a_hidden_one_wider(source):
    replace(source, "print(1 + 1)", f"print(1 + 1)  # {'x' * 80}")
    replace(source, "import numpy as np", f"import numpy as np  # {'x' * 200}")
    building.read(source)


def test_lines_for_one_language_lose_their_marker_and_the_other_language_s_lines(source):
    replace(
        source,
        "print(1 + 1)",
        'tokens = ["犬", "が"]  # (2,)  # ja\ntokens = ["dog"]  # en\n'
        'print(\n    "# ja",\n    end="。",  # ja\n    end=".",  # en\n)',
    )
    chapter = building.read(source)
    common = 'text = "# ja: this is a string"  # '
    assert code(building.blank(chapter, "ja"), 1).source == (
        common + '文字列\n# 日本語の注\ntokens = ["犬", "が"]  # (2,)\nprint(\n    "# ja",\n    end="。",\n)'
    )
    assert code(building.blank(chapter, "en"), 1).source == (
        common + 'a string\n# an English note\ntokens = ["dog"]\nprint(\n    "# ja",\n    end=".",\n)'
    )


def test_language_comments_lose_their_prefix_and_strings_keep_theirs(source):
    chapter = building.read(source)
    assert (
        code(building.blank(chapter, "ja"), 1).source == 'text = "# ja: this is a string"  # 文字列\n# 日本語の注\nprint(1 + 1)'
    )
    assert (
        code(building.blank(chapter, "en"), 1).source
        == 'text = "# ja: this is a string"  # a string\n# an English note\nprint(1 + 1)'
    )
    assert "# en: stays" in code(building.blank(chapter, "ja"), 2).source


def test_blank_has_an_ellipsis_where_solved_has_the_solution(source):
    chapter = building.read(source)
    assert code(building.blank(chapter, "en"), 2).source.splitlines()[2:] == [
        '    """x (..., n) -> (..., n)  # en: stays"""',
        "    ...",
        "lab.check()",
    ]
    solution = code(course.solved(source, "en"), 2).source
    assert "    # subtract the maximum\n    z = np.exp" in solution and "SOLUTION" not in solution and "ja:" not in solution
    assert [cell.id for cell in building.blank(chapter, "en").cells] == [cell.id for cell in course.solved(chapter, "en").cells]


def test_ids_come_from_content(source):
    before = building.blank(building.read(source), "ja")
    assert before.cells[-1].id == "ex-softmax"
    replace(
        source,
        '+++ {"lang": "ja"}\n\n## 足し算',
        '+++ {"lang": "ja"}\n\n## 前に入れた節 {#early}\n\n+++ {"lang": "en"}\n\n## Put in before {#early}\n\n'
        '```{code-cell} ipython3\nprint(0)\n```\n\n+++ {"lang": "ja"}\n\n## 足し算',
    )
    replace(source, "    - {id: addition", "    - {id: early, g: 1}\n    - {id: addition")
    after = building.blank(building.read(source), "ja").cells
    assert len(after) == len(before.cells) + 2
    assert "## 1. 足し算" in before.cells[2].source and "## 2. 足し算" in after[4].source  # its number changed, its id did not
    assert [cell.id for cell in after if cell not in (after[2], after[3])] == [cell.id for cell in before.cells]


def test_equal_cells_get_different_ids(source):
    source.write_text(source.read_text("utf-8") + "\n```{code-cell} ipython3\nprint(7)\n```\n" * 3, "utf-8")
    ids = [cell.id for cell in building.blank(building.read(source), "ja").cells]
    assert len(set(ids)) == len(ids) and ids[-1] == ids[-3] + "-3"


def test_text_without_a_language_is_refused_with_its_line(source):
    replace(source, "```{code-cell} ipython3\n:tags", "+++\n\n足した文。\n\n```{code-cell} ipython3\n:tags")
    (said,) = messages_of(source)
    assert said.startswith(f"notebooks/source/03_small_chapter.md:{line_of(source, '足した文。')}: ")
    assert '{"lang": "ja"}' in said


def test_one_sided_text_is_refused_with_its_line(source):
    replace(source, '+++ {"lang": "en"}\n\n**Goals**\n', "")
    (said,) = messages_of(source)
    assert f":{line_of(source, '**目標**')}: " in said


def test_one_sided_comment_is_refused_with_its_line(source):
    replace(source, "# en: an English note\n", "")
    (said,) = messages_of(source)
    assert f":{line_of(source, 'this is a string')}: " in said


@pytest.mark.parametrize(
    ("old", "new", "where"),
    [
        ("    ### END SOLUTION\n", "", "### BEGIN SOLUTION"),
        ("    ### BEGIN SOLUTION\n", "", "### END SOLUTION"),
        ("np.exp(x", "helper(x", "@lab.exercise"),
        ("print(1 + 1)", "print(1 +", "print(1 +"),
        ('lab.start("ja")', "pass", "---"),
        ("  sections:\n", "  minutes: 5\n  sections:\n", "transformer_lite:"),
        ("  sections:\n    - {id: addition, g: 2, e: 3}\n    - {id: practice, e: 4}\n", "  sections: []\n", "transformer_lite:"),
        ("id: addition, g: 2, e: 3", "id: addition, g: soon, e: 3", "id: addition"),
        ("id: addition, g: 2, e: 3", "id: addition, g: 0, e: 3", "id: addition"),
        ("id: addition, g: 2, e: 3", "id: addition", "id: addition"),
        ("    - {id: practice", "    - {id: addition, g: 1}\n    - {id: practice", "id: addition"),
        ("id: addition, g: 2, e: 3", "id: addition, g: 2, minutes: 3", "id: addition"),
        ("id: addition, g: 2, e: 3", 'id: addition, g: 2, note: {ja: "注"}', "id: addition"),
        ("- {id: addition, g: 2, e: 3}", "- addition", "sections:"),
        ('"A small chapter"}', '""}', "transformer_lite:"),
        ("number: 3", "number: 4", "transformer_lite:"),
        ("print(1 + 1)", "### BEGIN SOLUTION\nprint(1)\n### END SOLUTION", "### BEGIN SOLUTION"),
    ],
)
def test_other_mistakes_are_refused_with_their_line(source, old, new, where):
    replace(source, old, new)
    (said,) = messages_of(source)
    assert f"03_small_chapter.md:{line_of(source, where)}: " in said


def test_everything_wrong_in_all_sources_is_said_at_once(notebooks, source):
    replace(source, '+++ {"lang": "en"}\n\n**Goals**\n', "")
    (source.parent / "04_other.md").write_text("no header\n", "utf-8")
    said = course.stale(notebooks)
    assert len(said) == 2 and "03_small_chapter.md:" in said[0] and "04_other.md:" in said[1]


def test_a_chapter_is_built_by_name_although_another_has_mistakes_but_not_if_it_has_them_itself(notebooks, source):
    (source.parent / "04_other.md").write_text("no header\n", "utf-8")
    assert len(course.build([3], execute=False, notebooks=notebooks)) == 2
    for names in ([4], None):
        with pytest.raises(course.BuildError, match=r"04_other\.md:1: "):
            course.build(names, execute=False, notebooks=notebooks)


def test_a_byte_order_mark_changes_nothing(source):
    before = building.blank(building.read(source), "ja")
    source.write_text("\ufeff" + source.read_text("utf-8"), "utf-8")
    assert building.blank(building.read(source), "ja").cells == before.cells


def test_a_built_course_is_not_stale_and_the_second_build_changes_nothing(notebooks):
    assert len(course.stale(notebooks)) == 2  # both notebooks are missing
    built = course.build(notebooks=notebooks)
    assert sorted(path.relative_to(notebooks).as_posix() for path in built) == [
        "en/03_small_chapter.ipynb",
        "ja/03_small_chapter.ipynb",
    ]
    assert course.stale(notebooks) == []
    assert course.build(notebooks=notebooks) == []
    stored = json.loads((notebooks / "ja/03_small_chapter.ipynb").read_text("utf-8"))
    outputs = [cell["outputs"] for cell in stored["cells"] if cell["cell_type"] == "code"]
    assert outputs[1][0]["text"] == ["2\n"] and "widgets" not in stored["metadata"]


def test_stale_sees_sources_ids_and_metadata_but_not_outputs(notebooks, source):
    course.build(notebooks=notebooks, execute=False)
    path = notebooks / "en/03_small_chapter.ipynb"
    built = path.read_text("utf-8")

    def with_change(change):
        notebook = json.loads(built)
        change(notebook)
        path.write_text(json.dumps(notebook), "utf-8")
        return course.stale(notebooks)

    stdout = {"name": "stdout", "output_type": "stream", "text": ["9"]}
    assert with_change(lambda notebook: notebook["cells"][1]["outputs"].append(stdout)) == []
    assert len(with_change(lambda notebook: notebook["cells"][0].update(source=["# Another"]))) == 1
    assert len(with_change(lambda notebook: notebook["cells"][0].update(id="abc"))) == 1
    assert len(with_change(lambda notebook: notebook["cells"][0]["metadata"].update(tags=["x"]))) == 1
    assert len(with_change(lambda notebook: notebook["metadata"]["transformer_lite"].update(number=9))) == 1
    assert len(with_change(lambda notebook: notebook["cells"].pop())) == 1
    view = {"output_type": "display_data", "data": {building.WIDGET: {"model_id": "1"}}, "metadata": {}}
    assert len(with_change(lambda notebook: notebook["cells"][1]["outputs"].append(view))) == 1
    path.write_text("not json", "utf-8")
    assert len(course.stale(notebooks)) == 1
    path.write_text(built, "utf-8")
    replace(source, "An addition.", "A sum.")
    assert [problem.split(":")[0] for problem in course.stale(notebooks)] == ["notebooks/en/03_small_chapter.ipynb"]


def test_a_notebook_without_a_source_and_a_course_without_chapters_are_problems(notebooks, source):
    course.build(notebooks=notebooks, execute=False)
    (notebooks / "ja/99_left_over.ipynb").write_text("{}", "utf-8")
    assert len(course.stale(notebooks)) == 1
    source.unlink()
    assert course.stale(notebooks) != []


def test_a_build_without_running_keeps_the_outputs_of_unchanged_cells(notebooks, source):
    course.build(notebooks=notebooks)
    replace(source, "An addition.", "A sum.")
    replace(source, "lab.check()", "lab.check( )")
    changed = course.build(notebooks=notebooks, execute=False)
    assert len(changed) == 2
    cells = [cell for cell in json.loads(changed[0].read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]
    assert cells[1]["outputs"] and cells[1]["execution_count"] == 2
    assert cells[2]["execution_count"] is None


def test_a_cell_that_raises_stops_the_build_with_its_line_and_leaves_what_was_there(notebooks, source):
    built = {path: path.read_bytes() for path in course.build(notebooks=notebooks)}
    replace(source, "print(1 + 1)", "print(1 / 0)")
    with pytest.raises(course.BuildError) as caught:
        course.build(notebooks=notebooks)
    assert f":{line_of(source, 'this is a string')}: " in str(caught.value) and "ZeroDivisionError" in str(caught.value)
    assert {path: path.read_bytes() for path in built} == built
    for path in built:
        path.unlink()
    with pytest.raises(course.BuildError):
        course.build(notebooks=notebooks)
    assert not list(notebooks.glob("*/*.ipynb"))


def test_a_bad_stored_output_does_not_stop_the_build_that_replaces_it(notebooks):
    path = course.build(notebooks=notebooks)[0]
    stored = json.loads(path.read_text("utf-8"))
    code = next(cell for cell in stored["cells"] if cell["cell_type"] == "code")
    code["outputs"] = [{"output_type": "display_data", "data": {building.WIDGET: {"model_id": "1"}}, "metadata": {}}]
    path.write_text(json.dumps(stored), "utf-8")
    with pytest.raises(course.BuildError):
        course.build(notebooks=notebooks, execute=False)  # it would keep the widget
    assert course.build(notebooks=notebooks) == [path] and course.stale(notebooks) == []


def test_a_chapter_can_ask_for_the_list_of_chapters_while_the_first_build_runs_it(notebooks, source, monkeypatch):
    monkeypatch.setenv("FOLDER", str(notebooks / "en"))
    replace(source, "print(1 + 1)", 'import os; print(os.listdir(os.environ["FOLDER"]))')
    course.build(notebooks=notebooks)
    stored = json.loads((notebooks / "ja/03_small_chapter.ipynb").read_text("utf-8"))
    assert "03_small_chapter.ipynb" in str([cell.get("outputs") for cell in stored["cells"]])


def test_building_a_chapter_by_any_of_its_names(notebooks):
    for name in ("small-chapter", "3", 3, "03", "03_small_chapter.md"):
        course.build([name], execute=False, notebooks=notebooks)
    with pytest.raises(course.UnknownChapter) as caught:
        course.build(["smal-chapter"], execute=False, notebooks=notebooks)
    assert caught.value.nearest == ["small-chapter"] and "small-chapter" in str(caught.value)


def test_chapters_are_listed_from_the_built_notebooks_alone(notebooks, source):
    course.build(notebooks=notebooks, execute=False)
    source.unlink()
    (found,) = course.chapters(notebooks)
    assert (found.number, found.id, found.title("en"), found.file) == (3, "small-chapter", "A small chapter", "03_small_chapter")
    assert (found.g, found.e) == (2, 7)
    assert found.sections == (
        course.Section("addition", 1, Text("足し算", "An addition"), 2, 3),
        course.Section("practice", 2, Text("練習", "Practice"), None, 4),
    )
    for name in ("ja/03_small_chapter.ipynb", "03_small_chapter.new.ipynb", "C:\\x\\03_small_chapter.new2.ipynb"):
        assert course.chapter(name, (found,)) is found
    (notebooks / "ja/04_bad.ipynb").write_text("{", "utf-8")
    with pytest.raises(course.CourseError, match="04_bad"):
        course.chapters(notebooks)


def test_solved_notebooks_are_written_for_every_chapter(notebooks, tmp_path):
    (path,) = building.write_solved(tmp_path, "en", notebooks=notebooks)
    assert "z.sum" in path.read_text("utf-8") and path.name == "03_small_chapter.ipynb"
