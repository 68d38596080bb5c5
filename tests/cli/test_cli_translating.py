"""train, translate and score as a user runs them."""

import csv
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

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
    shown = capsys.readouterr()
    assert "finished already (25 steps)" in shown.out and "Trained" not in shown.out and "measuring" not in shown.err
    held = {path.name: path.read_bytes() for path in out.iterdir()}
    for given, differences in (
        (["grammar", "--steps", "26", "--seed", "3"], "steps: 25 → 26)"),
        (["grammar", "--minutes", "1", "--seed", "4"], "are as many; steps: 25 → minutes: 1.0; seed: 3 → 4)"),
        ([str(tmp_path / "real.tsv"), "--steps", "9", "--pieces", "60"], "pairs: 50,000 → 2; steps: 25 → 9; seed: 3 → 0)"),
    ):
        (tmp_path / "real.tsv").write_text("one fish\t魚 が 一匹\ntwo fish\t魚 が 二匹\nred fish\t赤い 魚\n", "utf-8")
        assert cli.main(["train", *given, "--out", str(out), "--lang", "en"]) == 3
        said = capsys.readouterr().err
        assert "another folder" in said and differences in said and "Settings" not in said
        assert {path.name: path.read_bytes() for path in out.iterdir()} == held


def test_few_steps_and_few_pairs_are_noted(tmp_path, capsys):
    (tmp_path / "real.tsv").write_text("one fish\t魚 が 一匹\ntwo fish\t魚 が 二匹\nred fish\t赤い 魚\n", "utf-8")
    given = ["train", str(tmp_path / "real.tsv"), "--steps", "2", "--pieces", "60", "--out", str(tmp_path / "out")]
    assert cli.main([*given, "--json", "--lang", "ja"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["steps"] == 2 and "2 ステップしか" in shown.err and "2 組だけ" in shown.err


def test_a_training_stopped_before_its_first_model_does_not_speak_of_one(tmp_path, capsys, monkeypatch):
    from transformer_lite.translation import training

    step = training.Trainer._step

    def stop_at_two(self, rows):
        if self.step == 1:
            raise KeyboardInterrupt
        return step(self, rows)

    monkeypatch.setattr(training.Trainer, "_step", stop_at_two)
    assert cli.main(["train", "grammar", "--steps", "9", "--out", str(tmp_path / "out"), "--lang", "en"]) == 130
    shown = capsys.readouterr()
    assert "Stopped at step 1. There is no model yet" in shown.out and "goes on from here" in shown.out
    assert "inf" not in shown.out and "The model is in" not in shown.out and "Note" not in shown.err


def test_translating_a_sentence_and_lines_of_the_input(folder, capsys, monkeypatch, tmp_path):
    assert cli.main(["translate", str(shipped()), "the dog chased the cat", "--show-attention", "--lang", "en"]) == 0
    first, legend, *table = capsys.readouterr().out.splitlines()
    assert first == "犬 が 猫 を 追いかけた" and "last decoder layer, mean of its heads" in legend and "%" in legend
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
        assert str(tmp_path / name) in capsys.readouterr().err
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


def test_a_sentence_as_people_write_it_is_tidied_and_unknown_words_are_told_what_is_known(capsys):
    for text in ("The dog chased the cat.", "the DOG chased the cat!", "The dog chased, the cat?"):
        assert cli.main(["translate", str(shipped()), text, "--lang", "en"]) == 0
        assert capsys.readouterr() == ("犬 が 猫 を 追いかけた\n", "")
    assert cli.main(["translate", str(shipped()), "A dog chased ken.", "--json", "--lang", "en"]) == 0
    shown = capsys.readouterr()
    assert json.loads(shown.out)["source"] == "A dog chased ken." and "ケン" in shown.out
    assert "never seen: a " in shown.err and "write the" in shown.err


def test_an_empty_translation_is_noted(capsys, monkeypatch):
    from transformer_lite.translation.translator import TextTranslator

    monkeypatch.setattr(TextTranslator, "translate", lambda self, texts, beam: [""] * len(texts))
    monkeypatch.setattr("sys.stdin", io.StringIO("the dog ran\n\n"))
    assert cli.main(["translate", str(shipped()), "--lang", "en"]) == 0
    shown = capsys.readouterr()
    assert shown.out == "\n\n" and "Line 1: The translation of “the dog ran” is empty" in shown.err and "Line 2" not in shown.err


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_references_without_spaces_are_compared_by_characters(lang, tmp_path, capsys):
    lines = ["The dog chased the cat.\t犬が猫を追いかけた", "the cat chased the dog\t猫が犬を追いかけた"]
    (tmp_path / "test.tsv").write_text("\n".join(lines), "utf-8")
    for more in ([], ["--tokenize", "char"]):
        assert cli.main(["score", str(shipped()), str(tmp_path / "test.tsv"), "--json", *more, "--lang", lang]) == 0
        shown = capsys.readouterr()
        figures = json.loads(shown.out)
        assert figures["BLEU"] > 99 and figures["exact"] == 1 and figures["nearest_BLEU"] > 10
        assert "tok:char" in figures["signatures"]["BLEU"] and ("--tokenize char" in shown.err) is not bool(more)


@pytest.mark.parametrize("lang", ["ja", "en"])
@pytest.mark.parametrize(
    ("arguments", "name", "words"),
    [
        (["train", "grammar"], "--out", ("がありません", "is missing")),
        (["train", "grammar", "--out"], "--out", ("値が必要", "needs a value")),
        (["train", "--minute", "1"], "--minutes", ("近い名前", "nearest")),
        (["translate", "x", "y", "--beam", "0"], "--beam", ("1 以上", "1 or more")),
        (["train", "grammar", "--out", "x", "--minutes", "long"], "--minutes", ("数を指定", "must be a number")),
        (["translate", "a", "b", "c", "d"], "c d", ("余分な引数", "too many arguments")),
    ],
)
def test_wrong_usage_is_said_in_the_language_and_points_to_the_commands_own_help(arguments, name, words, lang, capsys):
    assert cli.main([*arguments, "--lang", lang]) == 2
    said = capsys.readouterr().err
    assert name in said and words[lang == "en"] in said and f"course.py {arguments[0]} --help" in said
    assert is_japanese(said) is (lang == "ja")


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
        (["translate", "NOWHERE", "x"], 3, "--out"),
        (["translate", "NOWHERE", "x", "--beam", "0"], 2, "--beam"),
        (["train", "NOWHERE.tsv", "--out", "OUT"], 3, "NOWHERE.tsv"),
        (["train", "grammar", "--minutes", "0", "--out", "OUT"], 3, "minutes"),
        (["train", "grammar"], 2, "--out"),
        (["train", "grammar", "--steps", "5", "--minutes", "1", "--out", "OUT"], 3, "--minutes"),
        (["train", "BAD", "--out", "OUT"], 3, "BAD:1"),
        (["train", "grammar", "--steps", "1", "--seed", str(2**63), "--out", "OUT"], 3, str(2**63)),
        (["train", "grammar", "--steps", "1", "--out", "BAD"], 3, "BAD"),
        (["translate", "SHIPPED", ""], 3, "文が空です|empty"),
        (["translate", "SHIPPED", "dog \udc83\udc65"], 3, "UTF-8"),
        (["translate", "SHIPPED", "dog", "--beam", "1001"], 3, "1,000"),
        (["translate", "SHIPPED", "dog", "--picture", "x.jpg"], 3, ".png"),
        (["translate", "SHIPPED", "dog", "--picture", "NOWHERE/x.png"], 3, "x.png"),
        (["score", "SHIPPED", "LONG"], 3, "a a a"),
        (["score", "SHIPPED", "LONG", "LONG", "LONG"], 3, "3"),
        (["score", "SHIPPED", "LONG", "--tokenize", "nonsense"], 3, "ja-mecab"),
    ],
)
def test_what_is_wrong_is_said_without_a_trace(arguments, code, words, lang, tmp_path, capsys):
    (tmp_path / "BAD").write_text("no tab\n", "utf-8")
    (tmp_path / "LONG").write_text("a " * 501 + "\t犬\n", "utf-8")
    given = [str(tmp_path / each) if each.isupper() or each.startswith("NOWHERE") else each for each in arguments]
    given = [str(shipped()) if each == str(tmp_path / "SHIPPED") else each for each in given]
    assert cli.main([*given, "--lang", lang]) == code
    said = capsys.readouterr().err
    assert any(word in said for word in words.split("|")) and "Traceback" not in said
    if code == 3:
        assert is_japanese(said) is (lang == "ja")


# --- what comes in and goes out, in a process of its own ---


def run(*arguments, given=b"", **environment):
    command = [sys.executable, "-m", "transformer_lite.cli", *arguments, "--beam", "1"]
    return subprocess.run(
        command, input=given, capture_output=True, check=False, timeout=120,
        env=os.environ | {"PYTHONPATH": str(Path(cli.__file__).parents[2]), "OMP_NUM_THREADS": "1"} | environment,
    )  # fmt: skip


def test_input_with_a_bom_and_windows_ends_is_text(monkeypatch, capsys):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"\xef\xbb\xbfthe dog ran\r\n\r\nthe cat ran\r\n"), "utf-8"))
    assert cli.main(["translate", str(shipped()), "--beam", "1", "--json", "--lang", "en"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["source"] for line in shown.out.splitlines()] == ["the dog ran", "", "the cat ran"]
    assert not shown.err


@pytest.mark.parametrize("lang", ["ja", "en"])
def test_input_that_is_no_text_is_named_with_its_line(lang, monkeypatch, capsys):
    for errors in ("strict", "surrogateescape"):  # what Python chooses depends on the locale
        monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"the dog ran\n\x83\x65\x83X\n"), "utf-8", errors))
        assert cli.main(["translate", str(shipped()), "--lang", lang]) == 3
        shown = capsys.readouterr()
        assert "PYTHONUTF8=1" in shown.err and "2" in shown.err and not shown.out
    monkeypatch.setattr("sys.stdin", None)  # closed
    assert cli.main(["translate", str(shipped()), "--lang", lang]) == 3
    assert "translate DIR < FILE" in capsys.readouterr().err


def test_json_is_json_on_a_console_that_shows_no_japanese():
    done = run("translate", str(shipped()), "the dog \U0001f600 ran", "--json", "--lang", "en", PYTHONIOENCODING="cp932")
    assert done.returncode == 0 and json.loads(done.stdout.decode("cp932"))["source"] == "the dog \U0001f600 ran"


def test_a_reader_that_has_read_enough_is_no_trouble():
    read, write = os.pipe()
    os.close(read)
    command = [sys.executable, "-m", "transformer_lite.cli", "translate", str(shipped()), "the dog ran", "--lang", "en"]
    done = subprocess.run(command, stdout=write, stderr=subprocess.PIPE, check=False, timeout=120)
    os.close(write)
    assert done.returncode == 1 and not done.stderr


def test_a_training_without_validation_says_so_in_json(tmp_path, capsys):
    (tmp_path / "one.tsv").write_text("hello\tこんにちは\n", "utf-8")
    given = ["train", str(tmp_path / "one.tsv"), "--steps", "1", "--pieces", "30", "--out", str(tmp_path / "out")]
    assert cli.main([*given, "--json", "--lang", "en"]) == 0
    assert json.loads(capsys.readouterr().out, parse_constant=pytest.fail)["dev_loss"] is None
    assert cli.main([*given[:-1], str(tmp_path / "again"), "--lang", "en"]) == 0
    assert "Trained 1 steps. The model" in capsys.readouterr().out


def test_the_curve_that_was_deleted_or_never_begun_is_not_drawn(tmp_path, capsys, monkeypatch):
    given = ["train", "grammar", "--steps", "2", "--out", str(tmp_path / "out"), "--lang", "en"]
    from transformer_lite.translation import training

    def stop(self, rows):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(training.Trainer, "_step", stop)
        assert cli.main(given) == 130
    assert "same command goes on" in capsys.readouterr().out
    assert cli.main(given) == 0
    (tmp_path / "out" / "curve.csv").unlink()
    assert cli.main(given) == 0


def test_ctrl_c_after_the_last_step_is_no_trace(tmp_path, capsys, monkeypatch):
    from transformer_lite.translation import making

    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "alignment", stop)
    assert cli.main(["train", "grammar", "--steps", "2", "--out", str(tmp_path / "out"), "--json", "--lang", "ja"]) == 130
    assert "同じコマンドで続きから" in capsys.readouterr().err
