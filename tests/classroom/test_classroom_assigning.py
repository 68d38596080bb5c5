"""An assignment: what students get gives nothing away, what grades is right, and doing it again changes nothing."""

import json
from pathlib import Path

import nbformat
import pytest
import submissions
from nbgrader.nbgraderformat import MetadataValidator

from transformer_lite import course as chapters
from transformer_lite import practice
from transformer_lite.classroom import assigning, locking, results, testing
from transformer_lite.classroom.assigning import ClassroomError, assign, exercise_in, leaks, with_solution
from transformer_lite.cli import main


def everything(folder):
    return {path.relative_to(folder): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def opened(path):
    return nbformat.read(path, as_version=4)


def texts(notebook):
    return "\n".join(cell.source for cell in notebook.cells)


@pytest.fixture(scope="module")
def manifest(made_course):
    return results.manifests(made_course)[submissions.CHAPTER]


@pytest.fixture(scope="module")
def source(made_course):
    return opened(made_course / "source" / submissions.CHAPTER / submissions.FILE)


def test_source_and_release_are_right_by_nbgraders_own_validator(made_course, source):
    MetadataValidator().validate_nb(source)
    MetadataValidator().validate_nb(opened(made_course / "release" / submissions.CHAPTER / submissions.FILE))
    for notebook in made_course.rglob("*.ipynb"):
        nbformat.validate(opened(notebook))


def test_students_get_no_solution_no_hidden_test_and_no_output(made_course, release):
    said = "\n".join("".join(cell["source"]) for cell in release["cells"])
    assert "SOLUTION" not in said and "HIDDEN" not in said
    blank = texts(opened(chapters.chapter(submissions.CHAPTER).notebook("ja")))
    for name in ("softmax", "attention_scores", "attention"):
        own = [line for line in assigning.solution_lines(name) if line not in blank]
        assert own
        for path in (made_course / "release").rglob("*"):
            if path.is_file():
                assert not [line for line in own if line in path.read_text("utf-8").replace('\\"', '"')], path
        assert f'classroom.test("{name}", {name})' in said
        assert f'classroom.test("{name}", {name}, ' not in said
    assert all(not cell.get("outputs") for cell in release["cells"])


def test_what_would_be_given_away_is_found(made_course, course, manifest):
    blank = opened(chapters.chapter(submissions.CHAPTER).notebook("ja"))
    folder = course / "release" / submissions.CHAPTER
    assert leaks(folder, blank, manifest) == []
    path = folder / submissions.FILE
    notebook = opened(path)
    for text in ("x = x - x.max(axis=axis, keepdims=True)  # changes nothing in the result, keeps exp from overflowing",
                 'classroom.test("softmax", softmax, "along")', "### BEGIN SOLUTION"):  # fmt: skip
        notebook.cells[3].source = f"    {text}"
        nbformat.write(notebook, path)
        assert leaks(folder, blank, manifest), text
    (folder / "keys.json").write_text('{"correct": true}')
    notebook.cells[3].source = ""
    nbformat.write(notebook, path)
    assert leaks(folder, blank, manifest)


def test_the_release_is_the_chapter(release):
    chapter = opened(chapters.chapter(submissions.CHAPTER).notebook("ja"))
    kept = ["".join(cell["source"]) for cell in release["cells"]]
    assert [cell.source for cell in chapter.cells if cell.source not in kept] == []


def test_hidden_tests_cover_every_part_and_names_tell_nothing(manifest, source):
    hidden = {cell.metadata.nbgrader.grade_id for cell in source.cells if "HIDDEN" in cell.source}
    for name in manifest["exercises"]:
        tests = [test for test in manifest["tests"] if test["exercise"] == name]
        assert tuple(test["part"] for test in tests) == testing.parts(name)
        assert tests[0]["part"] == testing.FORM and tests[0]["id"] not in hidden
        assert {test["id"] for test in tests[1:]} <= hidden
        assert all(test["part"] not in test["id"] for test in tests)
    assert sum(test["points"] for test in manifest["tests"]) == submissions.FULL


def test_doing_it_again_changes_nothing(course):
    submissions.hand_in(course, {"s1": submissions.Student({submissions.FILE: b"{}"}, 0, "unreadable")})
    (course / "nbgrader_config.py").write_text((course / "nbgrader_config.py").read_text() + "\n# mine\n")
    before = everything(course)
    (again,) = assign([submissions.CHAPTER], "ja", course)
    assert not again.changed and everything(course) == before


def test_another_version_is_refused_once_somebody_has_handed_in(course):
    (other,) = assign([submissions.CHAPTER], "ja", course, exercises=["softmax"])
    assert other.changed and other.exercises == ("softmax",)
    submissions.hand_in(course, {"s1": submissions.Student({submissions.FILE: b"{}"}, 0, "unreadable")})
    before = everything(course)
    with pytest.raises(ClassroomError, match="s1"):
        assign([submissions.CHAPTER], "en", course)
    assert everything(course) == before


def test_only_the_chosen_exercises_are_graded(course):
    assign([submissions.CHAPTER], "en", course, exercises=["attention"])
    notebook = opened(course / "release" / submissions.CHAPTER / submissions.FILE)
    marked = {cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata}
    assert "attention" in marked and "softmax" not in marked
    assert {exercise_in(cell) for cell in notebook.cells} >= {"softmax", "attention_scores", "attention"}


@pytest.mark.parametrize(
    "given, error",
    [
        ({"exercises": ["atention"]}, practice.UnknownExercise),
        ({"exercises": ["layer_norm"]}, ClassroomError),
        ({"exercises": []}, ClassroomError),
        ({"questions": 3}, ClassroomError),
    ],
)
def test_what_cannot_be_assigned_is_said_and_nothing_is_made(tmp_path, given, error):
    with pytest.raises(error):
        assign([submissions.CHAPTER], "ja", tmp_path / "new", **given)
    assert not list(tmp_path.rglob("*.ipynb"))


def test_unknown_chapters_and_folders_that_are_files(tmp_path):
    with pytest.raises(chapters.UnknownChapter):
        assign(["scaled-dot-product-atention"], "ja", tmp_path / "new")
    (tmp_path / "file").write_text("")
    with pytest.raises(ClassroomError):
        assign([2], "ja", tmp_path / "file")


def test_every_exercise_can_be_filled_in_with_its_official_solution():
    filled = {}
    for chapter in chapters.chapters():
        for lang in ("ja", "en"):
            for cell in opened(chapter.notebook(lang)).cells:
                if (name := exercise_in(cell)) is not None:
                    text = with_solution(cell.source, name)
                    compile(text, name, "exec")
                    assert "    ...\n" not in text
                    filled[name, lang] = text
    assert {name for name, _ in filled} == set(practice.exercises())


def test_hand_made_config_and_manifest_hold_what_grading_needs(made_course):
    kept = json.loads((made_course / "grading" / submissions.CHAPTER / "assignment.json").read_text("utf-8"))
    assert kept["schema"] == results.SCHEMA and kept["file"] == submissions.FILE.removesuffix(".ipynb") and kept["made"]
    assert (made_course / "gradebook.db").is_file()
    config = (made_course / "nbgrader_config.py").read_text()
    assert "IgnorePattern" in config and "code_stub" in config


BANK = Path(__file__).parent / "data" / "bank.yaml"


def test_whatever_is_asked_for_in_vain_is_found_before_anything_is_made(tmp_path):
    with pytest.raises(ClassroomError, match="bert-gpt"):
        assign([2, 12], "ja", tmp_path / "c")
    assert main(["assign", "2", "--exercises", "nope", "--out", str(tmp_path / "c")]) == 2
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["a?b", "a*b", "a[1]", "a%20b"])
def test_folders_that_nbgrader_would_take_for_patterns_are_refused(tmp_path, name):
    for lang in ("ja", "en"):
        assert main(["assign", "11", "--lang", lang, "--out", str(tmp_path / name)]) == 3
        assert main(["grade", str(tmp_path / name), "--lang", lang]) == 3
    assert list(tmp_path.iterdir()) == []


def test_making_that_was_broken_off_is_done_again(course, monkeypatch):
    generate = assigning._generate

    def killed(out, name, files):
        generate(out, name, files)
        raise KeyboardInterrupt

    before = assigning._digest_of_source(course, submissions.CHAPTER)
    monkeypatch.setattr(assigning, "_generate", killed)
    with pytest.raises(KeyboardInterrupt):
        assign([submissions.CHAPTER], "ja", course, exercises=["softmax"])
    monkeypatch.undo()
    (course / f"{assigning.WORKSHOP}left").mkdir()
    (made,) = assign([submissions.CHAPTER], "ja", course)
    assert made.changed and made.exercises == ("softmax", "attention_scores", "attention")
    assert "attention_scores-1" in (made.release / submissions.FILE).read_text("utf-8")
    assert assigning._digest_of_source(course, submissions.CHAPTER) == before
    assert not list(course.glob(".assign-*"))
    (again,) = assign([submissions.CHAPTER], "ja", course)
    assert not again.changed


def test_a_lost_gradebook_is_made_again_and_a_strange_one_is_not_touched(course):
    book = course / assigning.GRADEBOOK
    book.unlink()
    (made,) = assign([submissions.CHAPTER], "ja", course)
    assert made.changed and book.stat().st_size > 0
    book.write_bytes(b"no database")
    with pytest.raises(ClassroomError, match="gradebook"):
        assign([submissions.CHAPTER], "ja", course)
    assert book.read_bytes() == b"no database"


def test_a_damaged_manifest_is_said_and_made_again_when_it_is_gone(course):
    manifest = course / results.FOLDER / submissions.CHAPTER / results.MANIFEST
    kept = json.loads(manifest.read_text("utf-8"))
    for text in ("", "{", "[]", "null", '{"schema": 99}', "[" * 100_000):
        manifest.write_text(text)
        for command in (["assign", "2", "--out", str(course)], ["grade", str(course)], ["report", str(course)]):
            assert main([*command, "--lang", "ja"]) == 3
    manifest.unlink()
    (course / "submitted" / "s" / submissions.CHAPTER).mkdir(parents=True)
    (course / "submitted" / "s" / submissions.CHAPTER / "file").touch()
    with pytest.raises(ClassroomError):  # the source shows that these are other settings
        assign([submissions.CHAPTER], "ja", course, exercises=["softmax"])
    assign([submissions.CHAPTER], "ja", course)
    assert json.loads(manifest.read_text("utf-8"))["digest"] == kept["digest"]


def test_what_was_graded_once_is_not_made_otherwise(course):
    row = results.Row(submissions.CHAPTER, "s", "ja", 0, 23, "blank")
    results.write(course, row)
    with pytest.raises(ClassroomError, match="s"):
        assign([submissions.CHAPTER], "ja", course, exercises=["softmax"])


def test_two_commands_do_not_work_in_one_course(course, capsys):
    with locking.alone(course):
        for command in (["assign", "2", "--out", str(course)], ["grade", str(course)]):
            for lang in ("ja", "en"):
                assert main([*command, "--lang", lang]) == 3
                assert str(course) in capsys.readouterr().err
    (made,) = assign([submissions.CHAPTER], "ja", course)
    assert not made.changed


def test_a_full_disk_is_said(course, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(assigning, "_generate", full)
    with pytest.raises(ClassroomError, match="No space left"):
        assign([submissions.CHAPTER], "ja", course, exercises=["softmax"])


def test_a_bank_that_quotes_a_solution_is_refused(tmp_path):
    text = BANK.read_text("utf-8")
    line = assigning.solution_lines("attention")[0]
    (tmp_path / "bank.yaml").write_text(text.replace("  options:", f"  code: |\n    {line}\n  options:", 1), "utf-8")
    with pytest.raises(ClassroomError, match="queries @ keys"):
        assign([2], "ja", tmp_path / "c", bank=tmp_path / "bank.yaml")
    assert not (tmp_path / "c" / "release" / submissions.CHAPTER).exists()
