"""What is measured once and kept: its files are whole, belong to experiments, and are written as they are read."""

import json
from importlib import import_module

import numpy as np
import pytest

from transformer_lite.experiments import _MODULES, depth, stored


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(stored, "FOLDER", tmp_path / "data")
    return tmp_path / "data"


def test_what_is_written_is_read_with_four_digits(folder):
    data = {"seeds": (0, 1), "accuracy": {"a model": np.array([[0.123456, 1.0], [12345.6, 2e-7]])}, "rate": np.float32(0.1)}
    path = stored.write("recall", data)
    assert path == folder / "recall.json"
    assert stored.read("recall") == {
        "seeds": [0, 1], "accuracy": {"a model": [[0.1235, 1.0], [12350.0, 2e-7]]}, "rate": 0.1,
    }  # fmt: skip
    assert data["accuracy"]["a model"][0, 0] == 0.123456  # what was given stays as it was


def test_every_entry_of_a_dictionary_has_its_line_and_the_text_is_what_people_read(folder):
    stored.write("recall", {"時間": {"a": [1, 2], "b": []}, "空": {}})
    text = (folder / "recall.json").read_text("utf-8")
    assert text == '{\n "時間": {\n  "a": [1, 2],\n  "b": []\n },\n "空": {}\n}\n'


def test_a_reader_may_change_what_it_got(folder):
    stored.write("recall", {"seeds": [0]})
    stored.read("recall")["seeds"].append(1)
    assert stored.read("recall") == {"seeds": [0]}


@pytest.mark.parametrize("bad", [float("nan"), np.array([1.0, np.inf])])
def test_no_number_that_is_none_is_kept(folder, bad):
    stored.write("recall", {"value": 1})
    with pytest.raises(ValueError):
        stored.write("recall", {"value": bad})
    assert stored.read("recall") == {"value": 1}  # a measurement that went wrong does not destroy the last one


def test_what_was_never_measured_says_how_to_measure_it(folder):
    with pytest.raises(FileNotFoundError, match=r"experiments\.stored recall"):
        stored.read("recall")


def test_the_command_measures_again_and_writes(folder, monkeypatch, capsys):
    monkeypatch.setattr(depth, "measure_all", lambda: {"seeds": [3]}, raising=False)
    assert stored.main(["depth"]) == 0
    assert stored.read("depth") == {"seeds": [3]}
    assert str(folder / "depth.json") in capsys.readouterr().out


@pytest.mark.parametrize(("name", "words"), [("depth", "nothing to store"), ("height", "invalid choice")])
def test_the_command_refuses_what_it_cannot_measure(folder, capsys, name, words):
    with pytest.raises(SystemExit) as refused:
        stored.main([name])
    assert refused.value.code == 2
    assert words in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize("path", sorted(stored.FOLDER.glob("*")), ids=lambda path: path.name)
def test_every_stored_file_is_small_whole_and_of_an_experiment_that_can_measure_it_again(path):
    assert path.suffix == ".json" and path.stem in _MODULES
    assert path.stat().st_size < 30_000
    text = path.read_text("utf-8")
    assert stored._pretty(stored._plain(json.loads(text))) + "\n" == text  # written by `write`, not by hand
    assert callable(import_module(f"transformer_lite.experiments.{_MODULES[path.stem]}").measure_all)
