"""Training as in section 5 of the paper: Adam, warm-up, label smoothing; with validation, checkpoints that resume to the bit, and
the same curve on one process or several.

Nothing here prints; what happens is reported to a callback.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import signal
import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import Tensor, nn

from transformer_lite.language import message
from transformer_lite.model import saving
from transformer_lite.translation import Refused
from transformer_lite.translation.batching import Batch, Ids, batch_of, plan
from transformer_lite.translation.vocabulary import PAD

STATE, TENSORS, CURVE, LOCK = "training.json", "training.safetensors", "curve.csv", ".training.lock"
COLUMNS = ("step", "loss", "learning_rate", "tokens", "dev_loss")  # of the curve
LARGEST_SEED = 2**63 - 1  # of torch
TIMED, SHARE_TIMED = 20, 0.02  # so many steps at least, and so much of the minutes, tell how long a step takes
FEW_STEPS = 1_000  # with fewer, hardly a model learns to translate
MARGIN = 0.92  # of the minutes for steps; the rest is for validation and writing


@dataclass(frozen=True)
class Settings:
    """How to train. Either ``steps`` or ``minutes`` ends it.

    Attributes:
        steps: how many; None: as many as ``minutes`` allow, counted once after the first few and kept.
        minutes: the budget; used only where ``steps`` is None.
        at_least: so many steps even where the budget does not allow them: on a slow machine it takes longer.
        seed: of the data's order and of dropout.
        tokens: places in a batch, source and target together.
        warmup: steps in which the learning rate rises (the paper: 4,000).
        factor: the learning rate's factor (the paper: 1).
        decay: let the rate fall to 0 at the last step, besides the paper's 1/√step.
        label_smoothing: ε (the paper: 0.1).
        clip: the gradient's largest norm.
        check_every: steps between validations and checkpoints.
    """

    steps: int | None = None
    minutes: float = 1.0
    at_least: int = 0
    seed: int = 0
    tokens: int = 1024
    warmup: int = 200
    factor: float = 0.5
    decay: bool = True
    label_smoothing: float = 0.1
    clip: float = 1.0
    check_every: int = 250

    def __post_init__(self) -> None:
        for name, value in asdict(self).items():
            if not isinstance(value, int | float) and (name, value) != ("steps", None):
                raise Refused("settings.number", name=name, value=repr(value))
        if not isinstance(self.seed, int) or not 0 <= self.seed <= LARGEST_SEED:
            raise Refused("settings.seed", value=self.seed, largest=LARGEST_SEED)
        for name in ("tokens", "warmup", "check_every"):
            if getattr(self, name) < 1:
                raise Refused("settings.at_least_one", name=name, value=getattr(self, name))
        if self.steps is not None and self.steps < 1:
            raise Refused("settings.at_least_one", name="steps", value=self.steps)
        if not 0 <= self.label_smoothing < 1:
            raise Refused("settings.share", name="label_smoothing", value=self.label_smoothing)
        for name in ("factor", "clip", "minutes"):
            if not 0 < getattr(self, name) < math.inf:
                raise Refused("settings.positive", name=name, value=getattr(self, name))


class Progress(NamedTuple):
    """What is reported after a step."""

    step: int
    steps: int | None  # None until a budget in minutes has been turned into steps
    loss: float  # nats per token, of this step's batch, with label smoothing
    learning_rate: float
    tokens_per_second: float  # labels that count, since the last report
    dev_loss: float | None  # nats per token, without smoothing; only where validation has just run


class Result(NamedTuple):
    """What ``train`` returns."""

    step: int
    steps: int
    best_dev_loss: float
    seconds: float  # of this call
    finished: bool  # False: it was interrupted, and can go on


class Diverged(Refused):
    """The loss is no number any more. What was saved before is still there."""


class Spread:
    """The processes that train together; one alone where there are no others (``torchrun`` sets WORLD_SIZE)."""

    def __init__(self) -> None:
        self.size = int(os.environ.get("WORLD_SIZE", "1"))
        self.rank = int(os.environ.get("RANK", "0"))
        if self.size > 1 and not dist.is_initialized():
            dist.init_process_group("nccl" if torch.cuda.is_available() else "gloo")

    def total(self, *numbers: float) -> list[float]:
        """Sums over the processes, the same in each of them."""
        if self.size == 1:
            return list(numbers)
        held = torch.tensor(numbers, dtype=torch.float64)
        if dist.get_backend() == "nccl":
            held = held.cuda()
        dist.all_reduce(held)
        return held.tolist()

    def average_gradients(self, model: nn.Module) -> None:
        """Sum the gradients over the processes; each has divided by the tokens of all."""
        if self.size == 1:
            return
        for parameter in model.parameters():
            if parameter.grad is None:  # a process whose share of the batch was empty
                parameter.grad = torch.zeros_like(parameter)
            dist.all_reduce(parameter.grad)


def learning_rate(step: int, d_model: int, settings: Settings, steps: int | None) -> float:
    """factor · d_model^−½ · min(step^−½, step · warmup^−3/2), and down to 0 at the last step where ``decay`` is on.

    Source: Vaswani et al. 2017, equation 3; the decay is ours.
    """
    rate = settings.factor * d_model**-0.5 * min(step**-0.5, step * settings.warmup**-1.5)
    if settings.decay and steps:
        rate *= max(0.0, 1 - (step - 1) / steps)
    return rate


def loss_of(model: nn.Module, batch: Batch, smoothing: float = 0.0) -> Tensor:
    """The sum of the cross-entropies over the labels that count, in nats."""
    logits = model(batch.source, batch.target_input)
    return F.cross_entropy(
        logits.flatten(0, 1), batch.labels.flatten(), ignore_index=PAD, label_smoothing=smoothing, reduction="sum"
    )


@torch.no_grad()
def dev_loss(model: nn.Module, pairs: Sequence[Ids], tokens: int, device: torch.device) -> float:
    """Nats per token, without smoothing and dropout."""
    was_training = model.training
    model.eval()
    total = counted = 0.0
    for rows in plan(pairs, 4 * tokens, seed=0, epoch=0):
        batch = to(batch_of(pairs, rows), device)
        total += float(loss_of(model, batch))
        counted += batch.tokens
    model.train(was_training)
    return total / max(counted, 1)


def to(batch: Batch, device: torch.device) -> Batch:
    """The batch on a device."""
    return Batch(*(part.to(device) for part in batch))


class Trainer:
    """A model in training, with its optimiser, its place in the data, and its folder.

    Args:
        model: on the device it shall be trained on; its ``config`` is saved with it.
        train, dev: pairs as ids.
        settings: how to train. A folder that holds a training begun with other settings is refused.
        folder: where everything is kept; what is there is continued.
        metadata: kept with the weights, see `saving.save`.
    """

    def __init__(
        self,
        model: nn.Module,
        train: Sequence[Ids],
        dev: Sequence[Ids],
        settings: Settings,
        folder: Path,
        metadata: dict[str, str] | None = None,
    ):
        if not train:
            raise Refused("training.no_pair")
        self.model, self.pairs, self.dev, self.folder, self.metadata = model, train, dev, folder, metadata
        self.settings = settings
        self.spread = Spread()
        self.device = next(model.parameters()).device
        self.optimiser = torch.optim.Adam(model.parameters(), lr=0.0, betas=(0.9, 0.98), eps=1e-9)
        self.step = self.epoch = self.position = 0  # position: batches of this epoch that are done
        self.steps = settings.steps
        self.best = math.inf
        self.seconds_per_step: list[float] = []
        torch.manual_seed(settings.seed)
        self.data = _digest(train)
        if (folder / STATE).is_file():
            self._resume()
        self._cut_curve()

    def run(self, report: Callable[[Progress], None] = lambda progress: None) -> Result:
        """Train to the last step, or until it is interrupted (Ctrl-C): then what is done is saved and can be continued.

        A step that is being taken is taken to its end first, and saving is not interrupted by a second Ctrl-C.
        """
        with _asked_to_stop(self.spread.size == 1) as asked:
            return self._run(report, asked)

    def _run(self, report: Callable[[Progress], None], asked: list[int]) -> Result:
        started = reported = time.monotonic()
        counted = 0
        self.model.train()
        batches = plan(self.pairs, self.settings.tokens, self.settings.seed, self.epoch)
        try:
            while self.steps is None or self.step < self.steps:
                if self.position == len(batches):
                    self.epoch, self.position = self.epoch + 1, 0
                    batches = plan(self.pairs, self.settings.tokens, self.settings.seed, self.epoch)
                begun = time.monotonic()
                loss, tokens, rate = self._step(batches[self.position])
                self.position += 1
                counted += tokens
                self._budget(time.monotonic() - begun)
                checked = None
                if self.step % self.settings.check_every == 0 or self.step == self.steps:
                    checked = self._check()
                now = time.monotonic()
                self._write_curve(loss, rate, tokens, checked)
                report(Progress(self.step, self.steps, loss, rate, counted / max(now - reported, 1e-9), checked))
                reported, counted = now, 0
                if checked is not None:
                    self.save()
                if asked and self.step != self.steps:
                    raise KeyboardInterrupt
        except KeyboardInterrupt:
            self.save()
            return Result(self.step, self.steps or 0, self.best, time.monotonic() - started, finished=False)
        if self.spread.rank == 0 and not (self.folder / saving.WEIGHTS).is_file():  # deleted since: this one is the best left
            saving.save(self.model, self.folder, self.metadata)
        return Result(self.step, self.steps, self.best, time.monotonic() - started, finished=True)

    def _step(self, rows: list[int]) -> tuple[float, int, float]:
        mine = rows[self.spread.rank :: self.spread.size]
        batch = to(batch_of(self.pairs, mine), self.device)
        total, tokens = 0.0, batch.tokens
        (all_tokens,) = self.spread.total(float(tokens))
        self.optimiser.zero_grad(set_to_none=True)
        if mine:
            summed = loss_of(self.model, batch, self.settings.label_smoothing)
            (summed / all_tokens).backward()
            total = float(summed.detach())
        (everywhere,) = self.spread.total(total)
        if not math.isfinite(everywhere):
            saved = (self.folder / saving.WEIGHTS).is_file()
            raise Diverged(
                "training.diverged" if saved else "training.diverged_early",
                step=self.step + 1, loss=everywhere, saved=self.step // self.settings.check_every * self.settings.check_every,
                folder=self.folder, factor=self.settings.factor, warmup=self.settings.warmup,
            )  # fmt: skip
        self.spread.average_gradients(self.model)
        nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip)
        self.step += 1
        rate = learning_rate(self.step, self.model.config.d_model, self.settings, self.steps)
        for group in self.optimiser.param_groups:
            group["lr"] = rate
        self.optimiser.step()
        return everywhere / all_tokens, int(all_tokens), rate

    def _budget(self, seconds: float) -> None:
        """After the first steps, turn the minutes into a number of steps, once: the schedule must survive a resume."""
        if self.steps is not None:
            return
        (mean,) = self.spread.total(seconds / self.spread.size)  # so that every process decides at the same step
        self.seconds_per_step.append(mean)
        spent = sum(self.seconds_per_step)
        if len(self.seconds_per_step) >= TIMED and spent >= SHARE_TIMED * 60 * self.settings.minutes:
            usual = statistics.median(self.seconds_per_step[len(self.seconds_per_step) // 2 :])  # the very first are slower
            self.steps = max(self.step, self.settings.at_least, round(60 * self.settings.minutes * MARGIN / usual))

    def _check(self) -> float:
        """Validate; keep the model if it is the best so far."""
        loss = dev_loss(self.model, self.dev, self.settings.tokens, self.device) if self.dev else math.inf
        if (loss < self.best or not self.dev) and self.spread.rank == 0:
            saving.save(self.model, self.folder, self.metadata)
        self.best = min(loss, self.best)
        return loss

    # --- what is kept ---

    def save(self) -> None:
        """Write a checkpoint: never half of one under the true name."""
        if self.spread.rank:
            return
        from safetensors.torch import save_file

        self.folder.mkdir(parents=True, exist_ok=True)
        tensors = {"random": torch.get_rng_state()}
        for name, parameter in self.model.named_parameters():
            tensors[f"model.{name}"] = parameter.detach().contiguous().clone()
            for moment, held in self.optimiser.state.get(parameter, {}).items():
                tensors[f"{moment}.{name}"] = torch.as_tensor(held).detach().contiguous().clone()
        about = {
            "step": self.step, "epoch": self.epoch, "position": self.position, "steps": self.steps,
            "best": None if math.isinf(self.best) else self.best, "settings": asdict(self.settings),
            "pairs": len(self.pairs), "data": self.data, "seconds_per_step": self.seconds_per_step,
        }  # fmt: skip
        # The two files belong together: the JSON names its tensors' file by the step, and is replaced last.
        about["tensors"] = f"training-{self.step}.safetensors"
        try:
            save_file(tensors, self.folder / about["tensors"])
        except BaseException:  # a full disk: half a file must not stay beside the good one
            if not self._is_named(about["tensors"]):
                (self.folder / about["tensors"]).unlink(missing_ok=True)
            raise
        unfinished = self.folder / f".{STATE}.unfinished"
        unfinished.write_text(json.dumps(about, indent=1) + "\n", "utf-8")
        unfinished.replace(self.folder / STATE)
        for old in self.folder.glob("training-*.safetensors"):
            if old.name != about["tensors"]:
                old.unlink(missing_ok=True)

    def _is_named(self, tensors: str) -> bool:
        """Whether the checkpoint that stands uses this file."""
        path = self.folder / STATE
        return path.is_file() and json.loads(path.read_text("utf-8")).get("tensors") == tensors

    def _resume(self) -> None:
        from safetensors import SafetensorError
        from safetensors.torch import load_file

        path = self.folder / STATE
        try:
            about: dict[str, Any] = json.loads(path.read_text("utf-8"))
            tensors = load_file(self.folder / about["tensors"], device=str(self.device))
            before = Settings(**about["settings"])
            begun_with = (about["pairs"], about.get("data", self.data))  # the digest is missing in older checkpoints
        except (ValueError, KeyError, TypeError, OSError, SafetensorError) as error:
            raise Refused("training.no_resume", path=path, error=error) from None
        # More minutes or steps than before are not the same schedule either.
        differences = [*self._other_data(*begun_with), *_differences(before, self.settings)]
        if differences:
            raise Refused("training.other_settings", folder=self.folder, differences="; ".join(differences))
        try:
            self._take(about, tensors)
        except (KeyError, TypeError, RuntimeError) as error:  # tensors that are missing or of another shape
            raise Refused("training.no_resume", path=path, error=error) from None

    def _other_data(self, pairs: int, data: str) -> list[str]:
        """How these data differ from those that the training was begun with, in words."""
        if pairs != len(self.pairs):
            return [message("translation.training.other_pairs", before=f"{pairs:,}", now=f"{len(self.pairs):,}")]
        return [] if data == self.data else [message("translation.training.other_sentences")]

    @torch.no_grad()
    def _take(self, about: dict[str, Any], tensors: dict[str, Tensor]) -> None:
        for name, parameter in self.model.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
            moments = ("step", "exp_avg", "exp_avg_sq")
            if f"step.{name}" in tensors:
                self.optimiser.state[parameter] = {moment: tensors[f"{moment}.{name}"].clone() for moment in moments}
                self.optimiser.state[parameter]["step"] = self.optimiser.state[parameter]["step"].cpu()
        torch.set_rng_state(tensors["random"].cpu())
        self.step, self.epoch, self.position = about["step"], about["epoch"], about["position"]
        self.steps = about["steps"]
        self.best = math.inf if about["best"] is None else about["best"]
        self.seconds_per_step = about["seconds_per_step"]

    def _write_curve(self, loss: float, rate: float, tokens: int, checked: float | None) -> None:
        if self.spread.rank:
            return
        path = self.folder / CURVE
        self.folder.mkdir(parents=True, exist_ok=True)
        new = not path.is_file() or path.stat().st_size == 0
        with path.open("a", encoding="utf-8", newline="") as file:
            writer = csv.writer(file)
            if new:
                writer.writerow(COLUMNS)
            writer.writerow([self.step, f"{loss:.6f}", f"{rate:.8f}", tokens, "" if checked is None else f"{checked:.6f}"])

    def _cut_curve(self) -> None:
        """Drop what an interrupted run wrote after its last checkpoint, or before its first: those steps are taken again."""
        path = self.folder / CURVE
        if self.spread.rank or not path.is_file():
            return
        lines = path.read_text("utf-8", errors="replace").splitlines()
        if lines[:1] != [",".join(COLUMNS)][: len(lines)]:
            raise Refused("training.curve", path=path, columns=", ".join(COLUMNS))
        kept = [line for line in lines[1:] if line.split(",")[0].isdigit() and int(line.split(",")[0]) <= self.step]
        path.write_text("".join(f"{line}\n" for line in lines[:1] + kept), "utf-8")


def _differences(before: Settings, now: Settings) -> list[str]:
    """What differs between two schedules, each as "name: then → now"; of what the commands have no option for, only where nothing
    else does.

    It may be saved more or less often than before, and the least number of steps counts only until there is a number of steps.
    """
    old, new = asdict(before), asdict(now)
    then, today = ("minutes" if settings.steps is None else "steps" for settings in (before, now))
    if then != today:
        changed = [f"{then}: {old[then]} → {today}: {new[today]}"]
    else:
        changed = [f"{then}: {old[then]} → {new[then]}"] if old[then] != new[then] else []
    others = [name for name in old if name not in ("steps", "minutes", "at_least", "check_every") and old[name] != new[name]]
    if changed or "seed" in others:
        others = [name for name in others if name == "seed"]
    return changed + [f"{name}: {old[name]} → {new[name]}" for name in others]


def finished(folder: Path) -> int | None:
    """The steps of a training that has come to its end in ``folder``; None if there is none, or an unfinished one."""
    try:
        about = json.loads((folder / STATE).read_text("utf-8"))
        return about["step"] if about["step"] == about["steps"] else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Keep ``folder`` for this process while it trains there. The system lets go of it when the process ends, however it ends.

    Raises:
        Refused: another process, or another training of this one, is at work there.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / LOCK).open("a") as file:
        try:
            _lock(file.fileno())
        except (BlockingIOError, PermissionError):  # PermissionError: what Windows says
            raise Refused("training.in_use", folder=folder) from None
        except (OSError, ImportError):  # a disk that has no locks
            pass
        try:
            yield
        finally:
            with suppress(OSError):  # Windows deletes no open file; it does no harm there
                (folder / LOCK).unlink()


@contextmanager
def _asked_to_stop(patiently: bool) -> Iterator[list[int]]:
    """The interrupts (Ctrl-C) so far: a list that grows, where they would otherwise break in anywhere. The third one does.

    Args:
        patiently: False, as outside of the main thread: interrupts break in as ever.
    """
    asked: list[int] = []

    def ask(number: int, frame: Any) -> None:
        asked.append(number)
        if len(asked) > 2:
            raise KeyboardInterrupt

    if not patiently or threading.current_thread() is not threading.main_thread():
        yield asked
        return
    before = signal.signal(signal.SIGINT, ask)
    try:
        yield asked
    finally:
        signal.signal(signal.SIGINT, before)


def _lock(descriptor: int) -> None:
    if os.name == "nt":
        import msvcrt

        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _digest(pairs: Sequence[Ids]) -> str:
    """What tells one training's data from another's."""
    return hashlib.sha256(json.dumps(list(pairs)).encode()).hexdigest()


def curve(folder: Path) -> list[dict[str, float]]:
    """The training curve of a folder, one row a step; ``dev_loss`` only where validation ran.

    Raises:
        Refused: the file is not the curve of a training.
    """
    path = folder / CURVE
    try:
        with path.open(encoding="utf-8", newline="") as file:
            return [{name: float(value) for name, value in row.items() if value} for row in csv.DictReader(file)]
    except (TypeError, ValueError):
        raise Refused("training.curve", path=path, columns=", ".join(COLUMNS)) from None
