"""What the instructors' guides name exists, in the course as it is now, and both guides name the same."""

import ast
import re
from functools import cache

import nbformat
import pytest

from transformer_lite import cli, content, course, explore, lab, practice
from transformer_lite.classroom import assigning, grading, questions, results, testing
from transformer_lite.language import message

LANGUAGES = ("en", "ja")
DOCS = content.source_dir().parents[1] / "docs"
LESSON = 75  # minutes, without opening and closing
LESSONS = range(1, 16)
GRADED = range(1, 13)  # chapters; chapter 0 rehearses an exercise of chapter 2
SECTION = {
    "en": re.compile(r"“([^”]+)” \((?:G (\d+))?(?:, )?(?:E (\d+))?\)"),
    "ja": re.compile(r"『([^』]+)』（(?:G (\d+))?、?(?:E (\d+))?）"),
}
LESSON_HEADING = {
    "en": re.compile(r"^### Lesson (\d+)\. (.+)$", re.MULTILINE),
    "ja": re.compile(r"^### 第 (\d+) 回　(.+)$", re.MULTILINE),
}
MINUTES = {"en": re.compile(r" \((\d+)(?: minutes)?[);]"), "ja": re.compile(r"（(\d+) 分[）。]")}
EXERCISE = re.compile(r"`(\w+)` (\d+)")
TRAP = re.compile(r"`([A-Z]{2}\d+)`")


@cache
def guide(lang):
    return (DOCS / {"en": "instructors.md", "ja": "instructors.ja.md"}[lang]).read_text("utf-8")


@cache
def notebook(number, lang):
    return nbformat.read(course.chapter(number).notebook(lang), as_version=4)


def sections(number):
    return notebook(number, "en").metadata["transformer_lite"]["sections"]


def minutes(numbers, exam):
    return sum(section.get(exam, 0) for number in numbers for section in sections(number))


def exercises_of(number):
    return [name for cell in notebook(number, "en").cells if (name := assigning.exercise_in(cell)) is not None]


@cache
def table(lang):
    """The rows of the syllabus: lesson -> (chapters, (chapter, rest) of G, of E, exercises with minutes, minutes at home)."""
    rows = {}
    for line in guide(lang).splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if len(cells) == 6 and cells[0].isdigit():
            chapters = [int(number) for number in re.findall(r"\d+", cells[1])]
            tracks = [tuple(map(int, cell.split(" + "))) for cell in cells[2:4]]
            assigned = {name: int(time) for name, time in EXERCISE.findall(cells[4])}
            rows[int(cells[0])] = (chapters, *tracks, assigned, int(cells[5]))
    return rows


@cache
def lessons(lang):
    """What stands under the heading of each lesson, by its number, with the heading's title."""
    text = guide(lang).split("\n## 4. ")[0]
    parts = LESSON_HEADING[lang].split(text)[1:]
    return {int(number): (title, body) for number, title, body in zip(parts[::3], parts[1::3], parts[2::3], strict=True)}


def named(lang, lesson):
    """The sections that a lesson names: (chapter, id, minutes of G, minutes of E)."""
    found = []
    for title, g, e in SECTION[lang].findall(lessons(lang)[lesson][1]):
        chapters = table(lang)[lesson][0]
        fits = [(number, each) for number in chapters for each in sections(number) if each["title"][lang] == title]
        assert fits, f"lesson {lesson}: no section {title!r} in chapters {chapters}"
        wanted = (int(g or 0), int(e or 0))
        fits = [(number, each["id"]) for number, each in fits if (each.get("g", 0), each.get("e", 0)) == wanted]
        assert len(fits) == 1, f"lesson {lesson}: the minutes of {title!r} are not G {g}, E {e}"
        found.append((*fits[0], g, e))
    return found


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_lesson_takes_seventy_five_minutes_and_every_chapter_comes_once(lang):
    rows = table(lang)
    assert sorted(rows) == sorted(lessons(lang)) == list(LESSONS)
    for chapters, g, e, assigned, home in rows.values():
        assert sum(g) == sum(e) == LESSON
        assert (g[0], e[0]) == (minutes(chapters, "g"), minutes(chapters, "e"))
        assert home == sum(assigned.values())
    assert [number for chapters, *_ in rows.values() for number in chapters] == [chapter.number for chapter in course.chapters()]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_exercise_is_assigned_once_in_the_lesson_of_its_chapter(lang):
    for chapters, *_, assigned, _home in table(lang).values():
        assert list(assigned) == [name for number in chapters if number in GRADED for name in exercises_of(number)]
        assert assigned == {name: practice.exercise(name).minutes for name in assigned}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_minutes_of_an_exercise_are_those_beside_its_heading_in_the_notebook(lang):
    heading = re.compile({"en": r"`(\w+)` \((\d+) minutes,", "ja": r"`(\w+)`（(\d+) 分、"}[lang])
    beside = {}
    for number in GRADED:
        text = "\n".join(cell.source for cell in notebook(number, lang).cells if cell.cell_type == "markdown")
        beside |= {name: int(time) for name, time in heading.findall(text)}
    assert beside == {name: practice.exercise(name).minutes for number in GRADED for name in exercises_of(number)}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_parts_of_a_workshop_fill_the_lesson(lang):
    workshops = [lesson for lesson, row in table(lang).items() if not row[0]]
    assert workshops == [6, 10, 15]
    for lesson in workshops:
        doing = next(part for part in lessons(lang)[lesson][1].split("\n- ") if part.startswith(("**Do**", "**進め方**")))
        together, *tracks = re.split(r"\b[GE][:：]", doing)
        shared = sum(map(int, MINUTES[lang].findall(together)))
        for track in tracks or [""]:
            assert shared + sum(map(int, MINUTES[lang].findall(track))) == LESSON, (lesson, track)


@pytest.mark.parametrize("lang", LANGUAGES)
def test_the_short_way_for_the_g_exam_adds_up(lang):
    start = {"en": "**If everybody prepares", "ja": "**全員が"}[lang]
    line = guide(lang).split(start)[1].split("\n\n")[0]
    pairs = re.findall(r"(\d+)(?:\s+and\s+| と )(\d+)[（ (\n]+(\d+)", line)
    assert [tuple(map(int, pair)) for pair in pairs] == [
        (number, number + 1, minutes((number, number + 1), "g")) for number in range(0, 12, 2)
    ]
    assert f"{minutes((12,), 'g')} + {LESSON - minutes((12,), 'g')}" in line


@pytest.mark.parametrize("lang", LANGUAGES)
def test_lessons_are_called_as_their_chapters(lang):
    for lesson, (chapters, *_) in table(lang).items():
        if chapters:
            assert lessons(lang)[lesson][0] == course.chapter(chapters[-1]).title(lang)


def test_sections_have_their_titles_and_minutes_and_are_the_same_in_both_guides():
    for lesson in LESSONS:
        assert named("en", lesson) == named("ja", lesson)
        assert named("en", lesson) or not table("en")[lesson][0]
    count = sum(len(named("en", lesson)) for lesson in LESSONS)
    for lang in LANGUAGES:
        written = re.findall(r"[(（](?:G \d+[,、] ?)?E \d+[)）]", guide(lang))
        assert len(written) == count  # none stands there in a form that `named` does not read


def test_traps_have_their_titles_and_belong_to_the_chapters():
    for lesson in LESSONS:
        keys = {lang: TRAP.findall(lessons(lang)[lesson][1]) for lang in LANGUAGES}
        assert keys["en"] == keys["ja"]
        for key in keys["en"]:
            trap = content.trap(key)
            assert course.chapter(trap.chapter).number in table("en")[lesson][0], key
            assert f"`{key}` ({trap.title('en')})" in lessons("en")[lesson][1]
            assert f"`{key}`（{trap.title('ja')}）" in lessons("ja")[lesson][1]


def test_what_is_called_exists_and_is_the_same_in_both_guides():
    calls = {lang: sorted(set(re.findall(r"lab\.(\w+)\(([^)`]*)\)", guide(lang)))) for lang in LANGUAGES}
    assert calls["en"] == calls["ja"]
    assert calls["en"]
    for name, _ in calls["en"]:
        assert callable(getattr(lab, name))
    for lesson in LESSONS:
        shown = {lang: re.findall(r'lab\.explore\("([\w-]+)"\)', lessons(lang)[lesson][1]) for lang in LANGUAGES}
        assert shown["en"] == shown["ja"]
        assert set(shown["en"]) <= set(explore.explorers())
        for number in table("en")[lesson][0][-1:]:
            code = "\n".join(cell.source for cell in notebook(number, "en").cells)
            assert all(f'lab.explore("{name}")' in code for name in shown["en"])


@pytest.mark.parametrize("lang", LANGUAGES)
def test_exercises_named_anywhere_exist(lang):
    known = set(practice.exercises())
    for lesson in LESSONS:
        words = re.findall(r"`([a-z]+(?:_[a-z]+)*)`", lessons(lang)[lesson][1])
        assert set(words) <= known, lesson
    listed = [name for text in re.findall(r"--exercises ([\w,]+)", guide(lang)) for name in text.split(",")]
    assert listed
    assert set(listed) <= known


def commands(lang):
    """The lines of the blocks that are of no language of their own, Python's or YAML's."""
    blocks = re.findall(r"^ *```(\w*)\n(.*?)^ *```$", guide(lang), re.MULTILINE | re.DOTALL)
    return [line.strip() for kind, block in blocks if not kind for line in block.splitlines()]


def test_commands_are_the_same_in_both_guides():
    spoken = {"<このリポジトリ>": "<this repository>", "太郎": "Taro", "山田": "Yamada"}
    translated = commands("ja")
    for ja, en in spoken.items():
        translated = [line.replace(ja, en) for line in translated]
    assert [re.sub(" --lang ja", "", line) for line in translated] == [re.sub(" --lang en", "", line) for line in commands("en")]


@pytest.mark.parametrize("lang", LANGUAGES)
def test_commands_and_options_exist(lang, capsys):
    named_options: dict[str, set[str]] = {}
    for command, rest in re.findall(r"(?:transformer-lite|python3 course\.py) (\w+)([^\n`]*)", guide(lang)):
        named_options.setdefault(command, set()).update(re.findall(r"--[\w-]+", rest))
    assert {"assign", "grade", "report"} <= set(named_options)
    everywhere = set(re.findall(r"`(--[\w-]+)", guide(lang)))
    known = {"--lang", "--help"}
    for command, options in named_options.items():
        assert cli.main([command, "--help"]) == 0
        there = set(re.findall(r"--[\w-]+", capsys.readouterr().out)) | {"--lang"}
        assert options <= there, command
        known |= there
    assert everywhere <= known


@pytest.mark.parametrize("lang", LANGUAGES)
def test_every_status_is_explained_in_the_words_that_are_shown(lang):
    rows = re.findall(r"^\| `(\w+)` \| ([^|]+) \|", guide(lang), re.MULTILINE)
    assert dict(rows) == {status: message(f"classroom.status.{status}", lang) for status in results.STATUSES}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_limits_sizes_and_folders_are_those_of_the_program(lang):
    (row,) = (line for line in guide(lang).splitlines() if line.startswith("| `timeout` |"))
    assert re.search(rf"{grading.SECONDS} (seconds|秒)", row)
    launcher = (DOCS.parent / "course.py").read_text("utf-8")
    more = ast.literal_eval(re.search(r"^MEGABYTES_MORE = (.+)$", launcher, re.MULTILINE)[1])
    assert re.search(rf"(about|約) {more['classroom']} MB", guide(lang))
    for folder in ("source", "grading", "submitted", "autograded", "report", "feedback"):
        assert guide(lang).count(f"`{folder}/") >= 2, folder  # in the table, and among what must not be published


@pytest.mark.parametrize("lang", LANGUAGES)
def test_points_are_those_of_the_tests(lang):
    heading = {"en": "### What the points are", "ja": "### 配点"}[lang]
    part = guide(lang).split(heading)[1].split("\n### ")[0]
    points = [int(number) for number in re.findall(r"^\|[^|]+\| \D*?(\d+)(?: each)? \|", part, re.MULTILINE)]
    assert points == [testing.points(testing.FORM), testing.points("a knob"), testing.points(testing.VALUES), 1]
    everything = sum(testing.points(each) for name in exercises_of(2) for each in testing.parts(name))
    assert re.search(rf"(worth|3 つで) {everything} (points|点)", part)


def test_the_bank_in_the_guides_can_be_drawn_from(tmp_path):
    banks = [re.findall(r"^```yaml\n(.*?)^```$", guide(lang), re.MULTILINE | re.DOTALL) for lang in LANGUAGES]
    assert banks[0] == banks[1]
    assert len(banks[0]) == 1
    path = tmp_path / "bank.yaml"
    path.write_text(banks[0][0], "utf-8")
    drawn = questions.draw(path, 2, 7)
    assert [question.kind for question in drawn] == ["single", "numeric"]
    for anchor in re.findall(r"`anchor: ([\w-]+)`", guide("en")):
        assert anchor in {section["id"] for section in sections(12)}


@pytest.mark.parametrize("lang", LANGUAGES)
def test_links_lead_somewhere(lang):
    headings = re.findall(r"^#+ (.+)$", guide(lang), re.MULTILINE)
    anchors = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
    for target in re.findall(r"\]\(([^)]+)\)", guide(lang)):
        assert target[1:] in anchors if target.startswith("#") else (DOCS / target).resolve().is_file(), target


@pytest.mark.parametrize("lang", LANGUAGES)
def test_a_paragraph_about_an_exam_says_that_it_is_unofficial(lang):
    word = {"en": "nofficial", "ja": "非公式"}[lang]
    assert word in guide(lang).split("\n1. ")[0]
    part = guide(lang).split("\n## 3. ")[1].split("\n| ")[0]
    assert part.count(word) == len(re.findall("G検定|E資格", part))
    for name in ("README.md", "README.ja.md"):
        assert f"docs/instructors{'.ja' if '.ja' in name else ''}.md" in (DOCS.parent / name).read_text("utf-8")
