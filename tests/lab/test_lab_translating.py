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


@pytest.mark.parametrize(("given", "least", "seconds"), [({}, 1_000, 42), ({"minutes": 0.05}, 0, 3), ({"minutes": 0.7}, 0, 42)])
def test_the_minutes_that_are_asked_for_count_and_the_usual_ones_are_a_floor(given, least, seconds, learner, monkeypatch, capsys):
    asked = []

    def stop(folder, settings, report):
        asked.append(settings)
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "on_grammar", stop)
    monkeypatch.setattr(making, "GRAMMAR_SETTINGS", Settings(minutes=0.7))
    assert lab.train(**given) is None
    said = capsys.readouterr().out
    assert asked[0].at_least == least and f"about {seconds} seconds" in said and ("1,000 steps" in said) is bool(least)


def test_few_steps_are_noted(learner, capsys):
    lab.train(minutes=1)
    assert "Only 6 steps" in capsys.readouterr().out


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


# --- what a learner may give or break ---


def test_impossible_settings_are_said_and_put_nothing_aside(learner):
    lab.train()
    before = sorted(path.name for path in learner.iterdir())
    for name, value in (("minutes", 0), ("minutes", float("nan")), ("minutes", "5"), ("seed", -1), ("seed", "x")):
        with pytest.raises(lab.LabError, match=f"{name} must be"):
            lab.train(again=True, **{name: value})
    assert sorted(path.name for path in learner.iterdir()) == before


def test_training_anew_that_is_interrupted_goes_on_and_keeps_the_finished_one(learner, monkeypatch, capsys):
    lab.train()
    old = (learner / "translator" / "weights.safetensors").read_bytes()
    step = training.Trainer._step

    def stop_at_five(self, rows):
        if self.step == 4:
            raise KeyboardInterrupt
        return step(self, rows)

    with monkeypatch.context() as patch:
        patch.setattr(training.Trainer, "_step", stop_at_five)
        for seed in (1, 1, 2):  # begun, gone on with (to the same step), and begun anew with another seed
            assert lab.train(seed=seed, again=True) is None
    taken = []
    monkeypatch.setattr(training.Trainer, "_step", lambda self, rows: taken.append(self.step) or step(self, rows))
    lab.train(seed=2, again=True)
    assert taken == [4, 5]
    assert (learner / "translator-before" / "weights.safetensors").read_bytes() == old
    (learner / "translator" / "training.json").write_text("{")
    assert lab.train(again=True) is not None


def test_a_translator_that_trains_in_another_notebook_is_not_put_aside(learner):
    lab.train()
    with training.alone(learner / "translator"), pytest.raises(lab.LabError, match="Another training is running"):
        lab.train(again=True)
    assert (learner / "translator" / "weights.safetensors").is_file()


def test_stopping_before_the_first_or_after_the_last_step_is_no_trace(learner, monkeypatch, capsys):
    def stop(*given):
        raise KeyboardInterrupt

    monkeypatch.setattr(making, "alignment", stop)
    assert lab.train() is None and "Stopped" in capsys.readouterr().out


def test_a_damaged_state_is_no_trouble_of_ours(learner):
    lab.train()
    translating._trained = None
    for state in ("[]", "null", "{", ""):
        (learner / "translator" / "training.json").write_text(state)
        assert "犬が猫を追いかけた" in str(lab.translate("the dog chased the cat"))  # by the shipped one
    with pytest.raises(lab.LabError, match="again=True"):
        lab.train()


def test_a_file_in_the_way_is_named(learner):
    (learner / "translator").write_text("mine")
    with pytest.raises(lab.LabError, match="move it elsewhere"):
        lab.train()
    assert (learner / "translator").read_text() == "mine"


@pytest.mark.parametrize(
    ("text", "beam", "words"),
    [(None, 1, "quotation marks"), (["a"], 1, "quotation marks"), ("...", 1, "empty"), ("the dog ran", 0, "beam must be"),
     ("the dog ran", "2", "beam must be"), ("the dog ran", 10**9, "beam must be")],
)  # fmt: skip
def test_what_cannot_be_translated_is_said(text, beam, words, learner):
    with pytest.raises(lab.LabError, match=words):
        lab.translate(text, beam=beam)


def test_a_model_that_writes_nothing_is_told_from_an_empty_text(learner, monkeypatch):
    found, _ = translating._translator()
    monkeypatch.setattr(type(found), "translate", lambda self, texts, beam: [""])
    with pytest.raises(lab.LabError, match="ended before it wrote a word"):
        lab.translate("the dog ran")
