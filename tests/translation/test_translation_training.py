"""Training: it learns, it resumes to the bit, two processes draw the curve of one; and what a translator's folder holds."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch
from torch import nn

from transformer_lite.model import Transformer, TransformerConfig, baselines, saving
from transformer_lite.translation import grammar, making, training
from transformer_lite.translation.training import Settings, Trainer
from transformer_lite.translation.translator import TextTranslator
from transformer_lite.translation.vocabulary import Words

ROOT = Path(__file__).resolve().parents[2]
PAIRS = [([4 + i % 5, 5 + i % 3], [4 + (i + 1) % 5, 6, 7 + i % 2]) for i in range(60)]
SETTINGS = Settings(steps=24, tokens=60, warmup=6, check_every=8, seed=3)


def model(dropout=0.3, seed=0):
    torch.manual_seed(seed)
    return Transformer(
        TransformerConfig(source_vocab=10, target_vocab=10, d_model=16, n_heads=2, d_ff=32, n_layers=1, dropout=dropout)
    )


def weights(net: nn.Module) -> list[torch.Tensor]:
    return [parameter.detach().clone() for parameter in net.parameters()]


def same(left: nn.Module, right: nn.Module) -> bool:
    return all(torch.equal(a, b) for a, b in zip(weights(left), weights(right), strict=True))


def test_an_interrupted_training_goes_on_to_the_bit(tmp_path):
    whole = model()
    result = Trainer(whole, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "whole").run()
    assert result.finished and result.step == result.steps == 24

    def interrupt(progress):
        if progress.step in stops:
            stops.remove(progress.step)
            raise KeyboardInterrupt

    broken, stops = None, [5, 16]  # between two checkpoints, and at one
    for expected in (5, 16, 24):
        broken = model()  # a new process would build it anew
        result = Trainer(broken, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "broken").run(interrupt)
        assert result.step == expected and result.finished is (expected == 24)
    assert same(whole, broken)
    assert training.curve(tmp_path / "whole") == training.curve(tmp_path / "broken")
    assert [row["step"] for row in training.curve(tmp_path / "whole")] == list(range(1, 25))
    assert len(list((tmp_path / "broken").glob("training-*.safetensors"))) == 1


KILLED = """
import sys, time, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[2])
import test_translation_training as t
def slowly(progress):
    print(progress.step, flush=True)
    time.sleep(0.02)
t.Trainer(t.model(), t.PAIRS, t.PAIRS[:9], t.SETTINGS, t.Path(sys.argv[1])).run(slowly)
"""


def test_a_killed_training_goes_on_to_the_bit(tmp_path):
    process = subprocess.Popen(
        [sys.executable, "-c", KILLED, str(tmp_path / "killed"), str(Path(__file__).parent)],
        stdout=subprocess.PIPE, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    for line in process.stdout:
        if line.strip() == "13":  # after the checkpoint of step 8, before that of step 16
            process.send_signal(signal.SIGKILL)
            break
    process.wait(30)
    again = model()
    trainer = Trainer(again, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "killed")
    assert trainer.step == 8
    trainer.run()
    whole = model()
    Trainer(whole, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "whole").run()
    assert same(whole, again)
    assert training.curve(tmp_path / "whole") == training.curve(tmp_path / "killed")


def test_minutes_become_steps_once_and_survive_a_resume(tmp_path):
    settings = Settings(minutes=0.05, tokens=60, warmup=6, check_every=1_000)
    seen = []

    def stop(progress):
        seen.append(progress.steps)
        if progress.step == training.TIMED + 5:
            raise KeyboardInterrupt

    Trainer(model(), PAIRS, [], settings, tmp_path).run(stop)
    assert seen[training.TIMED - 2] is None and seen[training.TIMED - 1] >= training.TIMED
    again = Trainer(model(), PAIRS, [], settings, tmp_path)
    assert again.steps == seen[-1] and again.step == training.TIMED + 5


def test_another_schedule_or_other_data_are_refused_in_a_used_folder(tmp_path):
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).run()
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).save()
    for settings, data in ((Settings(steps=3, tokens=60), PAIRS), (Settings(steps=2, tokens=60), PAIRS[:5])):
        with pytest.raises(ValueError, match="another folder"):
            Trainer(model(), data, [], settings, tmp_path)
    (tmp_path / "training.json").write_text("{")
    with pytest.raises(saving.BadModelFile, match="cannot be continued"):
        Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path)


def test_a_loss_that_is_no_number_stops_and_keeps_what_was_saved(tmp_path):
    net = model()

    def poison(progress):
        if progress.step == 11:
            with torch.no_grad():
                net.output.weight[0, 0] = float("nan")

    with pytest.raises(training.Diverged, match=r"step 12 .* is nan.*checkpoint"):
        Trainer(net, PAIRS, PAIRS[:9], SETTINGS, tmp_path).run(poison)
    again = Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path)
    assert again.step == 8 and again.run().finished


def test_a_full_disk_leaves_the_old_checkpoint(tmp_path, monkeypatch):
    import safetensors.torch

    trainer = Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path)
    trainer.step = 1
    trainer.save()

    def full(tensors, path):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(safetensors.torch, "save_file", full)
    trainer.step = 2
    with pytest.raises(OSError, match="No space"):
        trainer.save()
    monkeypatch.undo()
    assert [path.name for path in tmp_path.glob("training-*")] == ["training-1.safetensors"]
    assert Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path).step == 1


SPREAD = """
import sys, torch
torch.set_num_threads(1)
sys.path.insert(0, sys.argv[2])
import test_translation_training as t
t.Trainer(t.model(dropout=0.0), t.PAIRS, t.PAIRS[:9], t.SETTINGS, t.Path(sys.argv[1])).run()
"""


def test_two_processes_draw_the_curve_of_one(tmp_path):
    Trainer(model(dropout=0.0), PAIRS, PAIRS[:9], SETTINGS, tmp_path / "one").run()
    script = tmp_path / "spread.py"
    script.write_text(SPREAD)
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2", str(script), str(tmp_path / "two"),
         str(Path(__file__).parent)],
        capture_output=True, text=True, timeout=120, env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    one, two = training.curve(tmp_path / "one"), training.curve(tmp_path / "two")
    assert len(one) == len(two) == 24
    for a, b in zip(one, two, strict=True):
        assert b["loss"] == pytest.approx(a["loss"], rel=1e-4) and b["tokens"] == a["tokens"]
        assert ("dev_loss" in a) == ("dev_loss" in b)
        assert b.get("dev_loss", 0.0) == pytest.approx(a.get("dev_loss", 0.0), rel=1e-4)


def test_the_learning_rate_is_the_papers_and_falls_to_zero_where_asked():
    from transformer_lite import equations

    paper = Settings(factor=1.0, warmup=4000, decay=False)
    for step in (1, 2000, 4000, 16_000):
        assert training.learning_rate(step, 512, paper, None) == pytest.approx(equations.noam_learning_rate(step, 512))
    falling = Settings(factor=1.0, warmup=10, decay=True)
    rates = [training.learning_rate(step, 64, falling, 100) for step in range(1, 101)]
    assert max(rates) == rates[9] and rates[-1] == pytest.approx(training.learning_rate(100, 64, paper_like(10), None) / 100)


def paper_like(warmup):
    return Settings(factor=1.0, warmup=warmup, decay=False)


def test_the_loss_is_the_equations_mean_over_real_tokens():
    import numpy as np

    from transformer_lite import equations
    from transformer_lite.translation.batching import batch_of

    net, batch = model().eval(), batch_of(PAIRS, [0, 7, 9])
    logits = net(batch.source, batch.target_input).detach().numpy()
    expected = equations.masked_cross_entropy(logits, batch.labels.numpy(), batch.labels.numpy() != 0)
    assert float(training.loss_of(net, batch)) / batch.tokens == pytest.approx(float(expected), rel=1e-5)
    smooth = equations.label_smoothing(batch.labels.numpy(), 10, 0.1)
    log_p = logits - np.log(np.exp(logits).sum(axis=-1, keepdims=True))
    by_hand = -(smooth * log_p).sum(axis=-1)[batch.labels.numpy() != 0].sum()
    assert float(training.loss_of(net, batch, 0.1)) == pytest.approx(float(by_hand), rel=1e-5)


@pytest.mark.parametrize(
    ("changes", "words"),
    [({"steps": 0}, "steps"), ({"minutes": 0}, "minutes"), ({"tokens": 0}, "tokens"), ({"factor": 0}, "factor"),
     ({"label_smoothing": 1.0}, "label_smoothing"), ({"warmup": 0}, "warmup")],
)  # fmt: skip
def test_impossible_settings_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        Settings(**changes)


def test_one_training_loop_serves_the_baselines_too(tmp_path):
    for i, net in enumerate(
        (
            baselines.RecurrentTranslator(baselines.RecurrentConfig(10, 10, 16, attention="bahdanau")),
            baselines.ConvolutionalTranslator(baselines.ConvolutionalConfig(10, 10, 16)),
        )
    ):
        Trainer(net, PAIRS, PAIRS[:9], Settings(steps=30, tokens=60, warmup=5, factor=2.0), tmp_path / str(i)).run()
        losses = [row["loss"] for row in training.curve(tmp_path / str(i))]
        assert losses[-1] < 0.7 * losses[0]


# ------------------------------------------------------------------------------------------------------------- translators


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A translator trained for seconds on short sentences of the grammar."""
    folder = tmp_path_factory.mktemp("grammar")
    settings = Settings(steps=260, tokens=1500, warmup=60, factor=1.0, check_every=100)
    return making.on_grammar(folder, settings, n_train=6_000), folder


def test_it_learns_the_grammar_and_reports_what_it_did(made):
    result, folder = made
    figures = result.figures
    assert figures["parameters"] < 250_000 and figures["steps"] == 260 and figures["finished"]
    assert 0.05 < figures["exact_unseen"] <= 1  # it has begun to: chance is 0
    assert figures["dev_loss"] < 1.0
    losses = [row["loss"] for row in training.curve(folder)]
    assert losses[-1] < 0.5 * losses[0]
    assert json.dumps(figures)


def test_a_translators_folder_can_be_loaded_and_says_what_is_wrong(made, tmp_path):
    _, folder = made
    loaded = TextTranslator.load(folder)
    sentences = ["Ken slept", "", "the dog ran"]
    written = loaded.translate(sentences, beam=2)
    assert written[1] == "" and written[0].startswith("ケン")
    assert [loaded.translate([s], beam=2)[0] for s in sentences] == written
    assert loaded.unknown("the platypus ran") == ["platypus"] and loaded.unknown("the dog ran") == []
    with pytest.raises(FileNotFoundError, match=r"config\.json"):
        TextTranslator.load(tmp_path)
    saving.save(loaded.model, tmp_path)
    with pytest.raises(FileNotFoundError, match=r"source\.vocabulary"):
        TextTranslator.load(tmp_path)
    Words(["a"]).save(tmp_path / "source.vocabulary")
    loaded.target.save(tmp_path / "target.vocabulary")
    with pytest.raises(saving.BadModelFile, match="vocabularies have"):
        TextTranslator.load(tmp_path)


def test_looking_shows_every_layer_head_and_step(made):
    looked = made[0].translator.look("the dog chased the cat", "犬 が 猫 を 追いかけた")
    assert looked.source == ["the", "dog", "chased", "the", "cat", "</s>"]
    assert looked.target == ["犬", "が", "猫", "を", "追いかけた", "</s>"]
    assert looked.cross.shape == (1, 4, 6, 6) and looked.encoder.shape == (2, 4, 6, 6) and looked.decoder.shape == (1, 4, 6, 6)
    assert looked.cross.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert not looked.decoder[0, 0][0, 1:].any()  # the first step sees BOS only
    with pytest.raises(ValueError, match="empty"):
        made[0].translator.look("")


def test_alignment_error_is_that_of_the_gold_links(made):
    error = making.alignment_error(made[0].translator, grammar.COURSE)
    assert 0 <= error <= 1


def test_text_files_are_trained_on(tmp_path):
    lines = [
        f"{pair.source[0]} {' '.join(pair.source[1:])}\t{''.join(pair.target)}" for pair in grammar.split(0, 300, 0, 0, 0).train
    ]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), "utf-8")
    start = time.monotonic()
    made = making.on_text(tmp_path / "out", [tmp_path / "pairs.tsv"], Settings(steps=3, tokens=400), pieces=200)
    assert made.result.finished and made.figures["pairs"] == 294 and time.monotonic() - start < 60
    assert made.translator.about["data"] == [str(tmp_path / "pairs.tsv")]
    assert isinstance(TextTranslator.load(tmp_path / "out").translate(["the dog ran"], beam=1)[0], str)
