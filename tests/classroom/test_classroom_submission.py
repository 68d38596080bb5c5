"""What students do to notebooks, repaired: the notebook to grade has every cell that it should have, once, and theirs."""

import copy
import json
import os
import tempfile
from pathlib import Path

import nbformat
import pytest
import submissions
from submissions import FILE, Sheets, as_file, cell_of, grade_id

from transformer_lite.classroom import results, submission
from transformer_lite.classroom.assigning import exercise_in


@pytest.fixture(scope="module")
def manifest(made_course):
    return results.manifests(made_course)[submissions.CHAPTER]


@pytest.fixture(scope="module")
def source(made_course):
    return nbformat.read(made_course / "source" / submissions.CHAPTER / FILE, as_version=4)


@pytest.fixture(scope="module")
def make(release):
    return Sheets(release)


@pytest.fixture
def sheet(source, manifest, tmp_path):
    def made(files):
        folder = Path(tempfile.mkdtemp(dir=tmp_path))
        for name, data in files.items():
            (folder / name).write_bytes(data)
        return submission.sheet(submission.read("s", folder), source, manifest)

    return made


def codes(made):
    return [note.code for note in made.notes]


def names(notebook):
    return [cell.metadata.nbgrader.grade_id for cell in notebook.cells if "nbgrader" in cell.metadata]


def everything_once(made, source):
    assert names(made.notebook) == names(source)
    marked = ([cell for cell in notebook.cells if "nbgrader" in cell.metadata] for notebook in (made.notebook, source))
    for cell, ours in zip(*marked, strict=True):
        assert cell.metadata.nbgrader == ours.metadata.nbgrader
        if cell.metadata.nbgrader.grade:
            assert cell.source == ours.source
    nbformat.validate(made.notebook)
    return True


def test_a_right_notebook_needs_no_repair_and_runs_only_what_it_needs(sheet, make, source):
    made = sheet(as_file(make.right()))
    assert codes(made) == [] and everything_once(made, source)
    text = "\n".join(cell.source for cell in made.notebook.cells)
    assert 'lab.start("ja")' in text and "lab.explore" not in text and "import torch" not in text and "lab.quiz" not in text
    assert "lab.start" in made.notebook.cells[0].source


def test_what_a_students_cell_uses_of_the_chapter_is_kept(sheet, make, source):
    chapter = "\n".join(cell.source for cell in source.cells if cell.cell_type == "code")
    assert "tokens = [" in chapter
    used = sheet(as_file(make.with_cell("print(len(tokens))", last=True)))
    assert any("tokens = [" in cell.source for cell in used.notebook.cells)
    unused = sheet(as_file(make.right()))
    assert not any("tokens = [" in cell.source for cell in unused.notebook.cells)


@pytest.mark.parametrize("how", ["deleted", "edited", "doubled", "retyped"])
def test_tests_are_put_back(sheet, make, source, how):
    notebook = make.right()
    tests = submissions.tests_of(notebook, "attention")
    for test in tests:
        if how == "deleted":
            notebook["cells"].remove(test)
        elif how == "edited":
            test["source"] = "pass"
        elif how == "doubled":
            notebook["cells"].append(copy.deepcopy(test))
        else:
            test["cell_type"] = "markdown"
    made = sheet(as_file(notebook))
    assert everything_once(made, source)
    assert codes(made) == {"deleted": ["restored"], "edited": ["edited_tests"], "doubled": [], "retyped": ["restored"]}[how]


def test_a_doubled_answer_is_run_in_its_order_and_a_blank_copy_left_out(sheet, make, source):
    notebook = make.right()
    at = notebook["cells"].index(cell_of(notebook, "attention"))
    other = {**copy.deepcopy(notebook["cells"][at]), "source": submissions.HEAD + submissions.TRAPS["AT1"]}
    notebook["cells"].insert(at + 1, other)
    made = sheet(as_file(notebook))
    assert codes(made) == ["duplicate"] and everything_once(made, source)
    defined = [cell.source for cell in made.notebook.cells if exercise_in(cell) == "attention"]
    assert len(defined) == 2 and "sqrt" in defined[0] and "sqrt" not in defined[1]

    notebook = make.right()
    blank = cell_of(make.blank(), "attention")
    for place in (at, at + 2):
        notebook["cells"].insert(place, copy.deepcopy(blank))
    made = sheet(as_file(notebook))
    assert everything_once(made, source)
    defined = [cell.source for cell in made.notebook.cells if exercise_in(cell) == "attention"]
    assert len(defined) == 1 and "sqrt" in defined[0]


def test_a_deleted_answer_is_blank_and_the_rest_is_graded(sheet, make, source):
    notebook = make.right()
    notebook["cells"].remove(cell_of(notebook, "attention"))
    made = sheet(as_file(notebook))
    assert codes(made) == ["solution_deleted"] and everything_once(made, source)
    assert set(made.solutions) == {"softmax", "attention_scores"}


def test_other_programs_names_kernels_and_marks(sheet, make, source):
    notebook = make.right()
    notebook["metadata"] = {"kernelspec": {"name": "ir"}, "widgets": {"x": 1}}
    for cell in notebook["cells"]:
        cell["metadata"] = {"colab": {}}
        cell.pop("id", None)
        cell["source"] = "".join(cell["source"]).splitlines(keepends=True)
    made = sheet({"私の 課題(1).ipynb": b"\xef\xbb\xbf" + as_file(notebook)[FILE]})
    assert set(codes(made)) == {"renamed", "bom", "kernel", "names_lost"} and everything_once(made, source)
    assert made.notebook.metadata.kernelspec.name == "python3" and len(made.solutions) == 3


def test_old_notebooks_are_read(sheet, make, source):
    old = nbformat.convert(nbformat.reads(json.dumps(make.right()), as_version=4), 3)
    made = sheet({FILE: nbformat.writes(old).encode()})
    assert everything_once(made, source) and len(made.solutions) == 3


def test_the_notebook_of_the_assignment_is_chosen_among_several(sheet, make, source):
    cell = {"cell_type": "code", "source": "1 + 1", "metadata": {}}
    other = {"cells": [cell], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    made = sheet(as_file(make.right(), "z.ipynb") | {"a.ipynb": json.dumps(other).encode(), "b.ipynb": b"no"})
    assert codes(made) == ["renamed", "several"] and everything_once(made, source)


@pytest.mark.parametrize(
    "files, status",
    [
        ({}, "missing"),
        ({"answer.txt": b"42"}, "missing"),
        ({FILE: b""}, "unreadable"),
        ({FILE: b"[]"}, "unreadable"),
        ({FILE: b'{"cells": 3}'}, "unreadable"),
        ({FILE: b'{"cells": [1]}'}, "unreadable"),
        ({FILE: b"\xff\xfe\x00"}, "unreadable"),
        ({FILE: b"[" * 100_000}, "unreadable"),
        ({"other.ipynb": b'{"cells": [], "metadata": {}}'}, "missing"),
    ],
)
def test_what_is_no_notebook(sheet, files, status):
    assert sheet(files).status == status


@pytest.mark.parametrize(
    "raw",
    [
        {"cells": [], "metadata": None},
        {"cells": [{"cell_type": "code", "source": None}], "metadata": {"kernelspec": "x"}},
        {"cells": [{"cell_type": "code", "source": ["a", 1], "metadata": {"nbgrader": {"grade_id": []}}, "id": 7}]},
        {"cells": [{"cell_type": "raw", "source": "x", "metadata": {"nbgrader": "yes"}}], "metadata": {}, "nbformat": 4},
    ],
)
def test_odd_notebooks_are_graded_as_what_they_hold(sheet, source, raw):
    made = sheet({FILE: json.dumps(raw).encode()})
    assert made.status is None and everything_once(made, source) and made.solutions == {}


def test_a_cell_that_does_not_parse_keeps_what_its_words_name(sheet, make):
    made = sheet(as_file(make.with_cell("%time print(tokens")))
    text = [cell.source for cell in made.notebook.cells]
    assert "%time print(tokens" in text and any("tokens = [" in each for each in text)


def test_links_special_and_large_files_are_left_out(tmp_path):
    folder = tmp_path / "s"
    (folder / "sub").mkdir(parents=True)
    (tmp_path / "secret").write_text("secret")
    (folder / "link").symlink_to(tmp_path / "secret")
    (folder / "folder").symlink_to(tmp_path)
    os.link(tmp_path / "secret", folder / "hard")
    os.mkfifo(folder / "fifo")
    (folder / "large").write_bytes(b"0" * (submission.LARGEST_FILE + 1))
    (folder / ".hidden").write_text("x")
    (folder / "sub" / "helper.py").write_text("x = 1\n")
    (folder / "timestamp.txt").write_text("2026-05-01 10:00:00 UTC\n")
    read = submission.read("s", folder)
    assert read.files == {"sub/helper.py": b"x = 1\n"} and read.submitted == "2026-05-01 10:00:00 UTC"
    assert sorted((note.code, note.details["file"]) for note in read.notes) == [
        ("link", "folder"), ("link", "hard"), ("link", "link"), ("special", "fifo"), ("too_large", "large"),
    ]  # fmt: skip


def test_many_files_are_cut_off(tmp_path):
    for number in range(submission.MOST_FILES + 5):
        (tmp_path / f"{number}.txt").write_text("x")
    read = submission.read("s", tmp_path)
    assert len(read.files) == submission.MOST_FILES and [note.code for note in read.notes] == ["too_large"] * 5


def test_the_digest_is_of_names_and_contents(tmp_path):
    (tmp_path / "a").write_text("bc")
    first = submission.read("s", tmp_path).digest
    (tmp_path / "a").rename(tmp_path / "ab")
    (tmp_path / "ab").write_text("c")
    assert submission.read("s", tmp_path).digest != first
    assert grade_id({"metadata": {}}) == ""


@pytest.mark.parametrize(
    "name, text",
    [
        ("half a character", "x = '\\ud800'"),
        ("a NUL", "x = 1\0"),
        ("deep brackets", "x = " + "(" * 500 + ")" * 500),
        ("deep minus", "x = " + "-" * 90_000 + "1"),
        ("long", "x = [" + "1, " * 1_000_000 + "]"),
    ],
)
def test_strange_texts_hinder_nothing(sheet, make, source, name, text):
    notebook = make.with_cell(text)
    cell_of(notebook, "softmax")["source"] += f"\n{text}"
    made = sheet({FILE: json.dumps(notebook).encode()})
    assert made.status is None and everything_once(made, source)
    assert nbformat.writes(made.notebook).encode()


def test_a_hundred_copies_are_one_note(sheet, make):
    notebook = make.right()
    notebook["cells"] += [copy.deepcopy(cell_of(notebook, "softmax")) for _ in range(100)]
    assert codes(sheet(as_file(notebook))) == ["duplicate"]


def test_names_of_any_bytes_and_folders_that_nobody_may_open(tmp_path, monkeypatch):
    (tmp_path / os.fsdecode(b"\xff.py")).write_text("x = 1")
    (tmp_path / "data").mkdir()
    scandir = os.scandir

    def guarded(path):
        if str(path).endswith("data"):
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", guarded)
    found = submission.read("s", tmp_path)
    assert list(found.files) == ["\\udcff.py"] and found.digest
    assert [(note.code, note.details) for note in found.notes] == [("unopened", {"file": "data"})]


def test_a_notebook_that_is_there_but_not_read_is_not_missing(source, manifest, tmp_path):
    (tmp_path / FILE).symlink_to("elsewhere.ipynb")
    assert submission.sheet(submission.read("s", tmp_path), source, manifest).status == "unreadable"


def test_files_beside_the_notebook_do_not_take_its_place(tmp_path):
    for number in range(2 * submission.MOST_FILES):
        (tmp_path / f"00_{number:03}.txt").write_text("x")
    (tmp_path / FILE).write_text("{}")
    assert FILE in submission.read("s", tmp_path).files


def test_what_is_no_file_is_not_read(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "link").symlink_to(__file__)
    assert [submission.contents(tmp_path / name, 9) for name in ("pipe", "link", "missing")] == [None, None, None]


def test_folders_named_as_what_the_grading_puts_there_are_left_out(tmp_path):
    for name in (FILE, "questions.json", "timestamp.txt", "data"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "x.txt").write_text("x")
    assert list(submission.extra_files(submission.read("s", tmp_path))) == ["data/x.txt"]
