"""The learner's own translator: trained, kept, found again, replaced only on request; the shipped one where there is none."""

import json

import numpy as np
import pytest

from transformer_lite import lab, language
from transformer_lite.lab import translating
from transformer_lite.translation import grammar, making, training
from transformer_lite.translation.training import Settings


@pytest.fixture
def learner(tmp_path, monkeypatch):
    """A learner with a folder of their own, and trainings of a few steps."""
    monkeypatch.setenv("TRANSFORMER_LITE_RECORD", "1")
    monkeypatch.setenv("TRANSFORMER_LITE_HOME", str(tmp_path))
    monkeypatch.setattr(translating, "_trained", None)
    monkeypatch.setattr(making, "GRAMMAR_SETTINGS", Settings(steps=6, tokens=500, warmup=3, check_every=3))
    plain = making.on_grammar
    monkeypatch.setattr(making, "on_grammar", lambda folder, settings, report: plain(folder, settings, 400, report=report))
    language.use("en")
    return tmp_path


def test_it_is_trained_kept_and_used_by_the_chapters_after_it(learner, monkeypatch, capsys):
    made = lab.train()
    said = capsys.readouterr().out
    assert "400 sentence pairs" in said and "%" in said and "training loss" in said
    monkeypatch.setattr(translating, "_trained", None)  # another kernel
    found = lab.translator()
    assert "your own translator" in capsys.readouterr().out
    sentence = [translating.EXAMPLE]
    assert found.translate(sentence, beam=1) == made.translate(sentence, beam=1)
    again = lab.train()
    assert "already" in capsys.readouterr().out and again.translate(sentence) == found.translate(sentence)


def test_training_anew_keeps_the_old_one_once(learner, monkeypatch):
    lab.train()
    old = (learner / "translator" / "weights.safetensors").read_bytes()
    monkeypatch.setattr(translating, "_trained", None)
    lab.train(seed=1, again=True)
    assert (learner / "translator-before" / "weights.safetensors").read_bytes() == old
    assert (learner / "translator" / "weights.safetensors").read_bytes() != old


def test_an_interrupted_training_goes_on_and_another_one_is_not_begun_over_it(learner, monkeypatch, capsys):
    step = training.Trainer._step

    def stop_at_five(self, rows):
        if self.step == 4:
            raise KeyboardInterrupt
        return step(self, rows)

    monkeypatch.setattr(training.Trainer, "_step", stop_at_five)
    assert lab.train() is None
    assert "Stopped at step 4" in capsys.readouterr().out
    monkeypatch.setattr(training.Trainer, "_step", step)
    with pytest.raises(lab.LabError, match="again=True"):
        lab.train(seed=5)
    assert lab.translator().about["pairs"] > 400  # the shipped one: there is no finished own one yet
    capsys.readouterr()
    assert lab.train() is not None and json.loads((learner / "translator" / "training.json").read_text())["step"] == 6


def test_without_one_the_shipped_translator_is_used(learner, capsys):
    found = lab.translator()
    assert "comes with the course" in capsys.readouterr().out
    assert found.translate([" ".join(pair.source) for pair in grammar.COURSE], beam=1) == [
        " ".join(pair.target) for pair in grammar.COURSE
    ]
    size = sum(path.stat().st_size for path in translating.shipped().iterdir())
    assert (translating.shipped() / "weights.safetensors").stat().st_size <= 1_000_000 and size < 1_100_000


def test_a_damaged_one_is_named(learner):
    lab.train()
    translating._trained = None
    (learner / "translator" / "weights.safetensors").write_bytes(b"half")
    with pytest.raises(lab.LabError, match="again=True"):
        lab.translator()


def test_a_sentence_is_shown_with_glosses(learner, capsys):
    shown = str(lab.translate("The dog chased the cat."))
    assert "犬が猫を追いかけた" in shown and "(subject)" in shown and "chased" in shown
    language.use("ja")
    assert "追いかけた" in str(lab.translate("the platypus chased the cat")) and "platypus" in capsys.readouterr().out
    for text in ("", "dog " * 2_000):
        with pytest.raises(lab.LabError):
            lab.translate(text)


def test_looking_gives_arrays_and_glosses(learner):
    looked = translating.look(translating.EXAMPLE)
    n_target, n_source = len(looked["target"]), len(looked["source"])
    assert looked["target"][:2] == ["犬", "が"] and looked["target_glosses"][1] == "(subject)" and looked["own"] is False
    assert looked["cross"].shape[-2:] == (n_target, n_source) and np.allclose(looked["cross"].sum(-1), 1, atol=1e-4)
    assert [each[0][0] for each in looked["likely"]] == looked["target"]  # greedy writes what is most probable
    assert all(0 < sum(p for _, p in each) <= 1.0001 for each in looked["likely"]) and looked["doubts"] is None
    assert "platypus" in translating.look("the platypus slept")["doubts"]
    with pytest.raises(ValueError, match="empty"):
        translating.look(" ")
