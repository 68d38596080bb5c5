"""The learner's workspace: what is refreshed, what is left alone, and that nothing is ever lost."""

import errno
import json
import os
import sys

import pytest

from transformer_lite.course import CourseError, files, workspace
from transformer_lite.course.listing import Chapter
from transformer_lite.language import Text

NAME = "03_small_chapter.ipynb"


def notebook(*texts, outputs=()):
    cells = [
        {"cell_type": "code", "id": f"c{n}", "source": text, "metadata": {}, "outputs": list(outputs), "execution_count": None}
        for n, text in enumerate(texts)
    ]
    return json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


@pytest.fixture
def shipped(tmp_path, monkeypatch):
    """A course with one chapter; ``shipped(text)`` publishes a version of it."""
    folder = tmp_path / "course"

    def publish(text):
        for lang in ("ja", "en"):
            (folder / lang).mkdir(parents=True, exist_ok=True)
            (folder / lang / NAME).write_bytes(notebook(f"{text} {lang}", "..."))

    monkeypatch.setattr("transformer_lite.content.notebooks_dir", lambda lang: folder / lang)
    publish("first")
    return publish


CHAPTER = Chapter(3, "small-chapter", Text("小さな章", "A small chapter"), (), "03_small_chapter")


@pytest.fixture
def target(tmp_path):
    return tmp_path / "ワークスペース with a space"


def update(target, lang="ja"):
    done = workspace.update(target, lang, [CHAPTER])
    return done.change("small-chapter")


def texts(path):
    return [cell["source"] for cell in json.loads(path.read_text("utf-8"))["cells"]]


def write_answer(path, answer="return x"):
    stored = json.loads(path.read_text("utf-8"))
    stored["cells"][1]["source"] = [answer]
    path.write_text(json.dumps(stored), "utf-8")
    return path.read_bytes()


def run(path):
    """What Jupyter leaves after Run All and Shift+Enter on the last cell: outputs, counts, an empty cell."""
    stored = json.loads(path.read_text("utf-8"))
    for cell in stored["cells"]:
        cell.update(
            execution_count=7, outputs=[{"output_type": "stream", "name": "stdout", "text": ["hi"]}], source=[cell["source"]]
        )
    stored["cells"].append({"cell_type": "code", "id": "e", "source": [], "metadata": {}, "outputs": [], "execution_count": None})
    path.write_text(json.dumps(stored, indent=4), "utf-8")
    return path.read_bytes()


def test_a_new_workspace_gets_the_chapter(shipped, target):
    change = update(target)
    assert change.status == "new" and change.notebook == target / "ja" / NAME and str(change.path) in change.text("en")
    assert texts(change.path) == ["first ja", "..."]
    assert update(target).status == "current" and update(target).text() == ""


def test_an_untouched_chapter_is_refreshed(shipped, target):
    path = update(target).path
    shipped("second")
    assert update(target).status == "refreshed" and texts(path)[0] == "second ja"


def test_a_chapter_that_was_only_run_is_untouched(shipped, target):
    path = update(target).path
    after_run = run(path)
    assert update(target).status == "current" and path.read_bytes() == after_run
    shipped("second")
    assert update(target).status == "refreshed" and texts(path)[0] == "second ja"


def test_a_touched_chapter_is_never_overwritten(shipped, target):
    path = update(target).path
    mine = write_answer(path)
    assert update(target).status == "kept" and path.read_bytes() == mine
    shipped("second")
    change = update(target)
    assert change.status == "beside" and change.beside.name == "03_small_chapter.new.ipynb" and change.notebook == path
    assert path.read_bytes() == mine and texts(change.beside)[0] == "second ja"
    assert change.beside.name in change.text("ja") and change.beside.name in change.text("en")
    assert update(target).status == "kept"


def test_the_newer_version_beside_is_refreshed_until_it_is_touched_too(shipped, target):
    path = update(target).path
    mine = write_answer(path)
    shipped("second")
    first = update(target).beside
    shipped("third")
    assert update(target).beside == first and texts(first)[0] == "third ja"
    also_mine = write_answer(first)
    shipped("fourth")
    second = update(target).beside
    assert second.name == "03_small_chapter.new2.ipynb" and texts(second)[0] == "fourth ja"
    assert path.read_bytes() == mine and first.read_bytes() == also_mine


def test_a_version_beside_that_the_learner_removed_does_not_come_back(shipped, target):
    write_answer(update(target).path)
    shipped("second")
    update(target).beside.unlink()
    assert update(target).status == "kept" and not (target / "ja/03_small_chapter.new.ipynb").exists()


def test_a_removed_chapter_comes_back(shipped, target):
    update(target).path.unlink()
    assert update(target).status == "new"


def test_both_languages_keep_their_own_file(shipped, target):
    mine = write_answer(update(target, "ja").path)
    assert update(target, "en").path == target / "en" / NAME
    assert (target / "ja" / NAME).read_bytes() == mine


@pytest.mark.parametrize("bad", [b"", b"{", b"\xff\xfe\x00", b"[]", b'{"cells": 3}', b'"text"', b"[" * 100_000])
def test_a_file_that_is_no_notebook_stays_and_a_good_copy_comes_beside(shipped, target, bad):
    path = update(target).path
    path.write_bytes(bad)
    change = update(target)
    assert change.status == "no_notebook" and path.read_bytes() == bad
    assert change.notebook == change.beside and texts(change.beside) == ["first ja", "..."]
    assert update(target).beside == change.beside


def test_a_folder_in_the_way_stays(shipped, target):
    (target / "ja" / NAME / "inside").mkdir(parents=True)
    change = update(target)
    assert change.status == "in_the_way" and (target / "ja" / NAME / "inside").is_dir() and change.notebook.is_file()
    (change.beside).unlink()
    change.beside.mkdir()
    assert update(target).beside.name == "03_small_chapter.new2.ipynb"


def test_a_lost_record_makes_differing_files_the_learners(shipped, target):
    path = update(target).path
    (target / workspace.RECORD).unlink()
    assert update(target).status == "current"
    (target / workspace.RECORD).unlink()
    shipped("second")
    before = path.read_bytes()
    assert update(target).status == "beside" and path.read_bytes() == before


@pytest.mark.parametrize("bad", ["{", "[]", '{"put": {"a": 1}}', '{"put": []}', "\x00"])
def test_a_damaged_record_is_set_aside_and_said(shipped, target, bad):
    path = update(target).path
    (target / workspace.RECORD).write_text(bad if bad != '{"put": []}' else '{"put": [1]}', "utf-8")
    shipped("second")
    done = workspace.update(target, "ja", [CHAPTER])
    assert done.changes[0].status == "beside" and texts(path)[0] == "first ja"
    assert len(done.notes) == 1 and (target / (workspace.RECORD + ".damaged")).exists()


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EACCES, errno.EROFS])
def test_what_cannot_be_written_is_said_and_leaves_everything_as_it_was(shipped, target, monkeypatch, number):
    path = update(target).path
    before = path.read_bytes()
    shipped("second")

    def refuse(descriptor):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files.os, "fsync", refuse)
    done = workspace.update(target, "en", [CHAPTER])
    assert done.changes[0].status == "failed" and done.changes[0].notebook is None and done.changes[0].reason
    change = update(target)
    assert change.status == "failed" and change.notebook == path and path.read_bytes() == before
    assert not list(target.rglob("*.tmp"))


def test_a_record_that_cannot_be_written_is_said_and_the_notebook_is_there(shipped, target):
    (target / workspace.RECORD).mkdir(parents=True)
    (target / workspace.RECORD / "x").touch()
    (target / (workspace.RECORD + ".damaged")).mkdir()
    (target / (workspace.RECORD + ".damaged") / "x").touch()
    done = workspace.update(target, "ja", [CHAPTER])
    assert done.changes[0].status == "new" and len(done.notes) == 2


def test_a_workspace_that_cannot_be_made_is_refused(shipped, target):
    target.write_text("a file", "utf-8")
    with pytest.raises(CourseError, match="--workspace"):
        update(target)
    assert target.read_text("utf-8") == "a file"


@pytest.mark.skipif(sys.platform == "win32" or os.geteuid() == 0, reason="needs a user whom permissions bind")
def test_a_read_only_folder_is_refused(shipped, target):
    target.mkdir()
    target.chmod(0o500)
    with pytest.raises(CourseError):
        update(target)


def test_an_interrupted_write_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a.txt"
    path.write_bytes(b"old")

    def interrupt(source, destination):
        raise KeyboardInterrupt

    monkeypatch.setattr(files.os, "replace", interrupt)
    with pytest.raises(KeyboardInterrupt):
        files.replace(path, b"new")
    assert path.read_bytes() == b"old" and [each.name for each in tmp_path.iterdir()] == ["a.txt"]
