"""train, translate and score as a user runs them."""

import csv
import io
import json
import re

import pytest

from transformer_lite import cli
from transformer_lite.lab.translating import shipped
from transformer_lite.translation import grammar
from transformer_lite.translation.corpora import is_japanese


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A translator of a few steps; it translates badly, and quickly."""
    out = tmp_path_factory.mktemp("translator")
    assert cli.main(["train", "grammar", "--steps", "40", "--out", str(out), "--json", "--lang", "en"]) == 0
    return out


def test_training_says_what_came_out_and_leaves_curve_and_model(tmp_path, capsys):
    out = tmp_path / "new" / "folder"
    assert cli.main(["train", "grammar", "--steps", "25", "--seed", "3", "--out", str(out), "--json", "--lang", "en"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert figures["step"] == figures["steps"] == 25 and figures["seed"] == 3 and figures["finished"]
    assert {"exact_unseen", "exact_held_out", "seconds", "parameters", "alignment_error"} <= set(figures)
    assert (out / "curve.png").read_bytes().startswith(b"\x89PNG")
    with (out / "curve.csv").open(encoding="utf-8") as file:
        assert len(list(csv.DictReader(file))) == 25
    assert cli.main(["train", "grammar", "--steps", "25", "--seed", "3", "--out", str(out), "--lang", "en"]) == 0  # done already
    assert "Trained 25 steps" in capsys.readouterr().out
    assert cli.main(["train", "grammar", "--steps", "26", "--seed", "3", "--out", str(out), "--lang", "en"]) == 3
    assert "another folder" in capsys.readouterr().err


def test_translating_a_sentence_and_lines_of_the_input(folder, capsys, monkeypatch, tmp_path):
    assert cli.main(["translate", str(shipped()), "the dog chased the cat", "--show-attention", "--lang", "en"]) == 0
    first, *table = capsys.readouterr().out.splitlines()
    assert first == "犬 が 猫 を 追いかけた"
    (row,) = (line for line in table if line.startswith("追いかけた"))
    assert "█" in row or ("▓" in row and sum(map(int, re.findall(r"\d+", row))) in range(97, 104))
    monkeypatch.setattr("sys.stdin", io.StringIO("Ken slept\n\nthe platypus ran\n"))
    assert cli.main(["translate", str(folder), "-", "--beam", "1", "--json", "--lang", "en"]) == 0
    shown = capsys.readouterr()
    lines = [json.loads(line) for line in shown.out.splitlines()]
    assert [line["source"] for line in lines] == ["Ken slept", "", "the platypus ran"] and lines[1]["target"] == ""
    assert "platypus" in shown.err
    for name in ("a.png", "a.html"):
        assert cli.main(["translate", str(folder), "Ken slept", "--picture", str(tmp_path / name), "--lang", "ja"]) == 0
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    assert "<table" in (tmp_path / "a.html").read_text("utf-8")


def test_scoring(folder, capsys, tmp_path):
    lines = [f"{' '.join(pair.source)}\t{' '.join(pair.target)}" for pair in grammar.split(0, 0, 0, 20, 0).test]
    (tmp_path / "test.tsv").write_text("\n".join(lines), "utf-8")
    assert cli.main(["score", str(folder), str(tmp_path / "test.tsv"), "--beam", "1", "--json", "--lang", "en"]) == 0
    figures = json.loads(capsys.readouterr().out)
    assert 0 <= figures["BLEU"] <= 100 and figures["sentences"] == 20
    assert 5 < figures["nearest_BLEU"] < 100 and "tok:none" in figures["signatures"]["BLEU"]
    assert cli.main(["score", str(folder), str(tmp_path / "test.tsv"), "--beam", "1", "--lang", "ja"]) == 0
    said = capsys.readouterr().out
    assert "完全一致" in said and f"{figures['nearest_BLEU']:.2f}" in said


def test_a_line_that_is_too_long_does_not_take_the_others_with_it(folder, capsys, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO("Ken slept\n" + "dog " * 10_000 + "\n犬 が 走った\nKen ran\n"))
    assert cli.main(["translate", str(folder), "--beam", "1", "--lang", "ja"]) == 3
    said = capsys.readouterr()
    lines = said.out.split("\n")
    assert len(lines) == 5 and not lines[1]
    assert "2 行目" in said.err and "10,000" in said.err and "3 行目" in said.err
    assert "知っている語が 1 つもありません" in said.err


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["translate", "NOWHERE", "x"], 3, "config.json"),
        (["translate", "NOWHERE", "x", "--beam", "0"], 2, "--beam"),
        (["train", "NOWHERE.tsv", "--out", "OUT"], 3, "NOWHERE.tsv"),
        (["train", "grammar", "--minutes", "0", "--out", "OUT"], 3, "minutes"),
        (["train", "grammar"], 2, "--out"),
        (["train", "BAD", "--out", "OUT"], 3, "BAD:1"),
    ],
)
def test_what_is_wrong_is_said_without_a_trace(arguments, code, words, lang, tmp_path, capsys):
    (tmp_path / "BAD").write_text("no tab\n", "utf-8")
    given = [str(tmp_path / each) if each.isupper() or each.startswith("NOWHERE") else each for each in arguments]
    assert cli.main([*given, "--lang", lang]) == code
    said = capsys.readouterr().err
    assert words in said and "Traceback" not in said
    if code == 3:
        assert is_japanese(said) is (lang == "ja")
