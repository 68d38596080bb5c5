"""Training: it learns, it resumes to the bit, two processes draw the curve of one; and what a translator's folder holds."""

import json
import os
import signal
import subprocess
import sys
import time
import types
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from transformer_lite.model import Transformer, TransformerConfig, baselines, saving
from transformer_lite.translation import Refused, grammar, making, training
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


def test_a_slow_machine_takes_longer_rather_than_too_few_steps(tmp_path):
    settings = Settings(minutes=1e-6, at_least=35, tokens=60, warmup=6, check_every=1_000)
    assert Trainer(model(), PAIRS, [], settings, tmp_path / "a").run().steps == 35
    settings = Settings(minutes=1e-6, tokens=60, warmup=6, check_every=1_000)
    assert Trainer(model(), PAIRS, [], settings, tmp_path / "b").run().steps == training.TIMED


def test_ctrl_c_waits_for_the_step_and_a_second_one_for_the_checkpoint(tmp_path, monkeypatch):
    whole = model()
    Trainer(whole, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "whole").run()
    broken = model()
    trainer = Trainer(broken, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "broken")
    moved, save = trainer.optimiser.step, trainer.save
    before = signal.getsignal(signal.SIGINT)

    def interrupted_step():
        if trainer.step == 5:
            signal.raise_signal(signal.SIGINT)  # after the step has been counted, before the weights have moved
        moved()

    def interrupted_save():
        signal.raise_signal(signal.SIGINT)
        save()

    monkeypatch.setattr(trainer.optimiser, "step", interrupted_step)
    monkeypatch.setattr(trainer, "save", interrupted_save)
    result = trainer.run()
    assert result.step == 5 and not result.finished and signal.getsignal(signal.SIGINT) is before
    broken = model()
    assert Trainer(broken, PAIRS, PAIRS[:9], SETTINGS, tmp_path / "broken").run().finished and same(whole, broken)


def test_another_schedule_or_other_data_are_refused_in_a_used_folder(tmp_path):
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).run()
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).save()
    for settings, data in ((Settings(steps=3, tokens=60), PAIRS), (Settings(steps=2, tokens=60), PAIRS[:5])):
        with pytest.raises(ValueError, match="another folder"):
            Trainer(model(), data, [], settings, tmp_path)
    good = (tmp_path / "training.json").read_text()
    for damaged in ("{", "", "[]", "null", good.replace('"warmup"', '"warmups"'), good.replace('"epoch"', '"epochs"')):
        (tmp_path / "training.json").write_text(damaged)
        with pytest.raises(Refused, match="cannot be continued"):
            Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path)


def test_other_data_of_the_same_number_and_other_tensors_are_refused(tmp_path):
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).save()
    with pytest.raises(Refused, match="another folder"):
        Trainer(model(), PAIRS[::-1], [], Settings(steps=2, tokens=60), tmp_path)
    saving.save(model(), tmp_path)
    (tmp_path / "weights.safetensors").replace(tmp_path / "training-0.safetensors")
    with pytest.raises(Refused, match="cannot be continued"):
        Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path)


def test_a_checkpoint_from_before_data_were_told_apart_goes_on(tmp_path):
    Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).save()
    about = json.loads((tmp_path / "training.json").read_text())
    del about["data"]
    (tmp_path / "training.json").write_text(json.dumps(about))
    assert Trainer(model(), PAIRS, [], Settings(steps=2, tokens=60), tmp_path).run().finished


@pytest.mark.parametrize("cut", ["", "step,loss,learning_rate,tokens,dev_loss\n1,5.0,0.1,9,\n2,4.9,0.1,9,\n"])
def test_a_training_killed_before_its_first_checkpoint_draws_no_step_twice(cut, tmp_path):
    (tmp_path / "curve.csv").write_text(cut)
    Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path).run()
    assert [row["step"] for row in training.curve(tmp_path)] == list(range(1, 25))


def test_a_file_that_is_no_curve_is_not_cut(tmp_path):
    (tmp_path / "curve.csv").write_text("mine\n")
    with pytest.raises(Refused, match=r"curve\.csv is not the curve"):
        Trainer(model(), PAIRS, [], SETTINGS, tmp_path)
    assert (tmp_path / "curve.csv").read_text() == "mine\n"
    (tmp_path / "curve.csv").write_text("step,loss\n1,2,3,4\n")
    with pytest.raises(Refused, match=r"curve\.csv is not the curve"):
        training.curve(tmp_path)


def test_a_finished_training_whose_model_was_deleted_gives_it_again(tmp_path):
    Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path).run()
    (tmp_path / "weights.safetensors").unlink()
    again = Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path)
    assert again.run().finished and same(saving.load(tmp_path), again.model)


def test_one_folder_is_trained_in_by_one_process_at_a_time(tmp_path):
    with training.alone(tmp_path):
        with pytest.raises(Refused, match="Another training is running"), training.alone(tmp_path):
            pass
        held = [sys.executable, "-c", "import sys, pathlib; from transformer_lite.translation import training\n"
                "with training.alone(pathlib.Path(sys.argv[1])): pass", str(tmp_path)]  # fmt: skip
        other = subprocess.run(held, capture_output=True, text=True, env=os.environ | {"PYTHONPATH": str(ROOT)}, check=False)
        assert other.returncode and "Refused" in other.stderr
    with training.alone(tmp_path):
        pass
    assert not list(tmp_path.glob("*.lock"))


def test_a_loss_that_is_no_number_stops_and_keeps_what_was_saved(tmp_path):
    net = model()

    def poison(progress):
        if progress.step == 11:
            with torch.no_grad():
                net.output.weight[0, 0] = float("nan")

    with pytest.raises(training.Diverged, match=r"step 12 .* nan.*up to step 8 is still in"):
        Trainer(net, PAIRS, PAIRS[:9], SETTINGS, tmp_path).run(poison)
    again = Trainer(model(), PAIRS, PAIRS[:9], SETTINGS, tmp_path)
    assert again.step == 8 and again.run().finished
    poisoned = model()
    with torch.no_grad():
        poisoned.output.weight[0, 0] = float("nan")
    with pytest.raises(training.Diverged, match=r"step 1 .* nan; nothing was saved"):
        Trainer(poisoned, PAIRS, [], SETTINGS, tmp_path / "other").run()


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
     ({"label_smoothing": 1.0}, "label_smoothing"), ({"warmup": 0}, "warmup"), ({"minutes": "5"}, "minutes .* '5'"),
     ({"minutes": float("nan")}, "minutes"), ({"steps": "9"}, "steps"), ({"seed": -1}, "seed"), ({"seed": 1.5}, "seed"),
     ({"seed": 2**63}, "seed")],
)  # fmt: skip
def test_impossible_settings_are_refused(changes, words):
    with pytest.raises(ValueError, match=words):
        Settings(**changes)


def test_one_training_loop_serves_the_baselines_too(tmp_path):
    torch.manual_seed(3)
    for i, net in enumerate(
        (
            baselines.RecurrentTranslator(baselines.RecurrentConfig(10, 10, 16, attention="bahdanau")),
            baselines.ConvolutionalTranslator(baselines.ConvolutionalConfig(10, 10, 16)),
        )
    ):
        Trainer(net, PAIRS, PAIRS[:9], Settings(steps=60, tokens=60, warmup=10, factor=2.0), tmp_path / str(i)).run()
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
    with pytest.raises(Refused, match="no folder"):
        TextTranslator.load(tmp_path / "nowhere")
    with pytest.raises(Refused, match=r"config\.json"):
        TextTranslator.load(tmp_path)
    saving.save(loaded.model, tmp_path)
    with pytest.raises(Refused, match=r"source\.vocabulary"):
        TextTranslator.load(tmp_path)
    Words(["a"]).save(tmp_path / "source.vocabulary")
    loaded.target.save(tmp_path / "target.vocabulary")
    with pytest.raises(Refused, match="vocabularies have"):
        TextTranslator.load(tmp_path)


@pytest.mark.parametrize("value", ["nan", "inf"])
def test_weights_that_are_no_numbers_are_named(value, made, tmp_path):
    loaded = TextTranslator.load(made[1])
    with torch.no_grad():
        loaded.model.output.weight[0, 0] = float(value)
    saving.save(loaded.model, tmp_path)
    with pytest.raises(Refused, match="holds NaN or infinity"):
        TextTranslator.load(tmp_path)


@pytest.mark.parametrize("raw", [b"{", b"[1]", b"\xff", b""])
def test_a_damaged_about_is_named(raw, made, tmp_path):
    for path in made[1].iterdir():
        (tmp_path / path.name).write_bytes(path.read_bytes())
    (tmp_path / "about.json").write_bytes(raw)
    with pytest.raises(Refused, match=r"about\.json cannot be read"):
        TextTranslator.load(tmp_path)


@pytest.mark.parametrize("beam", [0, -1, 10**9, "2", 1.5, None])
def test_an_impossible_beam_is_refused(beam, made):
    with pytest.raises(Refused, match="beam must be"):
        made[0].translator.translate(["the dog ran"], beam=beam)
    with pytest.raises(Refused, match="beam must be"):
        made[0].translator.look("the dog ran", beam=beam)


def test_a_vocabulary_of_the_same_size_from_another_training_is_noticed(made, tmp_path):
    _, folder = made
    for name in ("config.json", "weights.safetensors", "source.vocabulary", "target.vocabulary"):
        (tmp_path / name).write_bytes((folder / name).read_bytes())
    loaded = TextTranslator.load(tmp_path)  # without about.json
    first, second, *others = loaded.source.words[4:]
    Words([second, first, *others]).save(tmp_path / "source.vocabulary")
    with pytest.raises(Refused, match=r"source\.vocabulary is not the vocabulary"):
        TextTranslator.load(tmp_path)
    (tmp_path / "source.vocabulary").write_bytes((folder / "source.vocabulary").read_bytes())
    saving.save(loaded.model, tmp_path)  # weights that say nothing of their vocabularies are believed
    assert TextTranslator.load(tmp_path).translate(["Ken slept"]) == loaded.translate(["Ken slept"])


def test_texts_that_cannot_be_translated_well_are_named(made):
    translator = made[0].translator
    with pytest.raises(Refused, match="10,000 tokens"):
        translator.translate(["Ken slept", "dog " * 10_000])
    with pytest.raises(Refused, match="10,000"):
        translator.look("dog " * 10_000)
    assert "platypus" in translator.doubts("the platypus ran") and "the dog" not in translator.doubts("the platypus ran")
    assert "none of these words" in translator.doubts("犬 が 走った") and translator.doubts("the dog ran") is None
    assert translator.doubts("") is None
    assert translator.translate(["🦆 \u0000 dog"])[0] is not None  # it says something all the same


def test_looking_shows_every_layer_head_and_step(made):
    looked = made[0].translator.look("the dog chased the cat", "犬 が 猫 を 追いかけた")
    assert looked.source == ["the", "dog", "chased", "the", "cat", "</s>"]
    assert looked.target == ["犬", "が", "猫", "を", "追いかけた", "</s>"]
    assert looked.cross.shape == looked.encoder.shape == looked.decoder.shape == (2, 4, 6, 6)
    assert looked.cross.sum(axis=-1) == pytest.approx(1, abs=1e-5)
    assert not looked.decoder[0, 0][0, 1:].any()  # the first step sees BOS only
    with pytest.raises(ValueError, match="empty"):
        made[0].translator.look("")


class Pretender:
    """Looks where it is told to: at the gold partner of the word that the row predicts, or ``late`` rows later."""

    def __init__(self, late=0, eos=False):
        self.late, self.eos = late, eos

    def look(self, text, target):
        pair = next(p for p in PRETENDED if " ".join(p.source) == text)
        weights = np.zeros((1, 2, len(pair.target) + 1, len(pair.source) + 1))
        weights[..., -1] = 0.1  # EOS
        for i, j in pair.links:
            if j + self.late < len(pair.target) + 1:
                weights[0, :, j + self.late, -1 if self.eos else i] = 0.5
        return types.SimpleNamespace(cross=weights)


PRETENDED = [next(grammar.sentences(seed)) for seed in range(8)]


def test_alignment_is_that_of_the_gold_links_and_reads_the_row_that_predicts():
    assert making.alignment(Pretender(), PRETENDED) == (0.0, 1.0)
    late = making.alignment(Pretender(late=1), PRETENDED)
    assert late.content < 0.5 and late.error_rate > 0.3
    assert making.alignment(Pretender(late=1), PRETENDED, shift=1).content == 1.0
    assert making.alignment(Pretender(eos=True), PRETENDED) == (1.0, 0.0)


def test_text_files_are_trained_on(tmp_path):
    lines = [
        f"{pair.source[0]} {' '.join(pair.source[1:])}\t{''.join(pair.target)}" for pair in grammar.split(0, 300, 0, 0, 0).train
    ]
    (tmp_path / "pairs.tsv").write_text("\n".join(lines), "utf-8")
    start = time.monotonic()
    made = making.on_text(tmp_path / "out", [tmp_path / "pairs.tsv"], Settings(steps=3, tokens=400), pieces=200)
    assert made.result.finished and made.figures["pairs"] == 294 and time.monotonic() - start < 60
    assert made.translator.about["data"] == [str(tmp_path / "pairs.tsv")] and made.translator.about["segmented"]
    assert made.figures["dev_bleu"] < made.figures["nearest_bleu"] <= 100  # three steps have learned nothing
    assert " " in made.translator.target.decode(made.translator.target.encode("犬 が 猫 を 追いかけた"))
    left = making.on_text(
        tmp_path / "left", [tmp_path / "pairs.tsv"], Settings(steps=1, tokens=400), pieces=200, segment=False, evaluate=False
    )
    assert not left.translator.about["segmented"] and "dev_bleu" not in left.figures
    assert isinstance(TextTranslator.load(tmp_path / "out").translate(["the dog ran"], beam=1)[0], str)


# --- a folder that is in use already ---


def trained_in(folder, seed=0):
    return making.on_grammar(folder, Settings(steps=3, tokens=300, warmup=2, seed=seed), 200, evaluate=False)


def test_a_training_that_is_refused_leaves_the_translator_of_another_as_it_was(tmp_path):
    trained_in(tmp_path)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(Refused, match="another folder"):
        trained_in(tmp_path, seed=1)
    lines = "".join(f"the dog number {i} ran\t犬 が {i} 走った\n" for i in range(30))
    (tmp_path.parent / "other.tsv").write_text(lines, "utf-8")
    with pytest.raises(Refused, match="another folder"):
        making.on_text(tmp_path, [tmp_path.parent / "other.tsv"], Settings(steps=3), pieces=60)
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    TextTranslator.load(tmp_path)


@pytest.mark.parametrize("names", [["config.json"], ["about.json"], ["weights.safetensors", "source.vocabulary"]])
def test_files_that_no_training_has_left_are_not_written_over(names, tmp_path):
    for name in names:
        (tmp_path / name).write_text("mine")
    with pytest.raises(Refused, match=names[0]):
        trained_in(tmp_path)
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(names, "mine")


def test_one_pair_can_be_trained_on_without_validation(tmp_path):
    (tmp_path / "one.tsv").write_text("hello\tこんにちは\n", "utf-8")
    made = making.on_text(tmp_path / "out", [tmp_path / "one.tsv"], Settings(steps=1), pieces=30)
    assert made.figures["dev_loss"] is None and json.dumps(made.figures, allow_nan=False)
