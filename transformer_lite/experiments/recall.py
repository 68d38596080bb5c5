"""How far back can a model reach? One capital letter among small ones must be named at the end, at a growing distance.

A source of small letters holds one capital, and the decoder's first token must be that capital. Four encoder-decoders of about
64,500 parameters learn it in 300 steps, anew for every distance: an LSTM whose decoder sees nothing but the encoder's last state,
an LSTM with Bahdanau's attention, a stack after GNMT, and a Transformer. A fifth, the first LSTM with its forget gates opened by
hand, asks whether the way through the gates is what stops it. All see the same batches and have the same optimiser; the learning
rate is the best of four for each model and each distance, chosen with a seed that is not among the three that are shown.

A second measurement times a training step of the same models, with source and target of n tokens, on one thread.

What is shown was measured once (see `stored`); the point at distance 16 is measured anew when the picture is made.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from transformer_lite.experiments import stored
from transformer_lite.experiments.learning import alone
from transformer_lite.language import current, message
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.model.baselines import RecurrentConfig, RecurrentTranslator
from transformer_lite.model.counting import parameter_count

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

MODELS = ("lstm", "open_lstm", "bahdanau", "gnmt", "transformer")
ATTENDING = ("bahdanau", "gnmt", "transformer")
DISTANCES = (4, 8, 16, 32, 64)
SEEDS = (0, 1, 2)
DEV_SEED = 100  # chooses the learning rates, and appears nowhere else
RATES = (0.001, 0.003, 0.01, 0.03)
N_STEPS = 300
BATCH = 32
N_LETTERS = 16
N_BEFORE = 8  # up to so many letters stand before the reach of the distance, so that no fixed place holds the capital
BOS = 1
SMALL, CAPITAL = 3, 3 + N_LETTERS  # the first small letter and the first capital; 0 to 2 are padding, BOS and EOS
VOCAB = CAPITAL + N_LETTERS
CHANCE = 1 / N_LETTERS
N_TESTED = 1024
OPENED = 2.0  # added to the biases of the forget gates
LIVE = ("lstm", "bahdanau")  # what is trained while the reader waits, and at which distance
LIVE_DISTANCE = 16
BEYOND = 32  # from this distance on the LSTM fails whatever its forget gates
TIMED = ("lstm", "bahdanau", "gnmt", "transformer")
LENGTHS = (8, 16, 32, 64, 128, 256)
TIMED_BATCH = 16
ROUNDS = 5

D_MODEL = 32  # of the Transformer
_SIZES = {  # d_model and layers of each stack that come to the same number of parameters
    "lstm": (60, 1),
    "open_lstm": (60, 1),
    "bahdanau": (52, 1),
    "gnmt": (32, 3),
}


# --- the task ---


def sources(rng: np.random.Generator, distance: int, n: int, before: int) -> tuple[Tensor, Tensor]:
    """``n`` sources (n, before + distance) of small letters with one capital, ``distance`` tokens from the end, and it (n,).

    Raises:
        ValueError: a distance below 1, or ``before`` below 0.
    """
    if distance < 1 or before < 0:
        raise ValueError(f"distance must be 1 or more and before 0 or more; got {distance} and {before}.")
    letters = rng.integers(SMALL, CAPITAL, (n, before + distance))
    capitals = rng.integers(CAPITAL, VOCAB, n)
    letters[:, before] = capitals
    return torch.from_numpy(letters), torch.from_numpy(capitals)


# --- the models, their training and their test ---


def build(model: str, seed: int) -> nn.Module:
    """A model with random weights.

    Args:
        model: one of `MODELS`.
        seed: of the weights.

    Raises:
        ValueError: there is no such model.
    """
    if model not in MODELS:
        raise ValueError(f"model must be one of {', '.join(map(repr, MODELS))}; got {model!r}.")
    with alone(seed):
        if model == "transformer":
            return Transformer(TransformerConfig(VOCAB, d_model=D_MODEL, n_heads=4, d_ff=144, n_layers=2, dropout=0.0))
        d_model, n_layers = _SIZES[model]
        attention = model if model in ATTENDING else "none"
        made = RecurrentTranslator(RecurrentConfig(VOCAB, VOCAB, d_model, n_layers, attention=attention))
    if model == "open_lstm":
        with torch.no_grad():
            for layer in (*made.encoder, *made.decoder):
                layer.bias_ih_l0[d_model : 2 * d_model] += OPENED  # PyTorch's order: input, forget, cell, output
    return made


def train(model: nn.Module, distance: int, seed: int, rate: float, n_steps: int = N_STEPS) -> nn.Module:
    """Train ``model`` in place on one distance; the same seed gives every model the same batches.

    Adam, gradients clipped to 1, a learning rate that rises over the first tenth and falls to 0 over the second half.
    """
    rng = np.random.default_rng([seed, distance])
    optimiser = torch.optim.Adam(model.parameters(), lr=rate, betas=(0.9, 0.98))
    model.train()
    for step in range(n_steps):
        letters, capitals = sources(rng, distance, BATCH, int(rng.integers(N_BEFORE)))
        for group in optimiser.param_groups:
            group["lr"] = rate * min(1.0, 10 * (step + 1) / n_steps, 2 * (1 - step / n_steps))
        optimiser.zero_grad()
        F.cross_entropy(_first_logits(model, letters), capitals).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model


@torch.no_grad()
def evaluate(model: nn.Module, distance: int, seed: int) -> tuple[float, float]:
    """The share of 1,024 new sources whose capital is named, and the loss on them in nats."""
    rng = np.random.default_rng([seed, distance, 1])
    model.eval()
    right = loss = 0.0
    for before in range(N_BEFORE):
        letters, capitals = sources(rng, distance, N_TESTED // N_BEFORE, before)
        logits = _first_logits(model, letters)
        right += float((logits.argmax(dim=-1) == capitals).sum())
        loss += float(F.cross_entropy(logits, capitals, reduction="sum"))
    return right / N_TESTED, loss / N_TESTED


def _first_logits(model: nn.Module, letters: Tensor) -> Tensor:
    """(n, n_source) -> (n, vocab): what the decoder makes of BOS."""
    return model(letters, torch.full((len(letters), 1), BOS))[:, 0]


def measure(seed: int, model: str, distance: int, rate: float, n_steps: int = N_STEPS) -> tuple[float, float]:
    """Build, train and test one model on one distance; its accuracy and its loss on new sources. The same seed, the same numbers.

    Args:
        seed: of weights, training and test.
        model: one of `MODELS`.
        distance: the capital is so many tokens before the end, 1 being the last one.
        rate: the highest learning rate.
        n_steps: of training.
    """
    with alone(seed):
        return evaluate(train(build(model, seed), distance, seed, rate, n_steps), distance, seed)


# --- time ---


def step_times(run: int, lengths: Sequence[int] = LENGTHS, rounds: int = ROUNDS) -> dict[str, list[float]]:
    """Seconds of processor time for one training step with 16 sources and targets of n tokens each, by model.

    The models take turns, so that a slower moment of the machine hits all; of ``rounds`` steps the fastest counts.
    """
    rng = np.random.default_rng([run, 2])
    with alone(run):
        models = {name: build(name, run).train() for name in TIMED}
        optimisers = {name: torch.optim.Adam(model.parameters(), lr=0.001) for name, model in models.items()}
        best = {name: [np.inf] * len(lengths) for name in TIMED}
        for i, n in enumerate(lengths):
            ids = torch.from_numpy(rng.integers(SMALL, VOCAB, (TIMED_BATCH, n)))
            for again in range(rounds + 1):  # the first round warms up
                for name, model in models.items():
                    begun = time.process_time()
                    optimisers[name].zero_grad()
                    F.cross_entropy(model(ids, ids).flatten(0, 1), ids.flatten()).backward()
                    optimisers[name].step()
                    if again:
                        best[name][i] = min(best[name][i], time.process_time() - begun)
    return best


# --- what is kept ---


def best_rate(accuracies: Sequence[float]) -> float:
    """The rate of `RATES` with the highest accuracy; of several equally good ones the middle, farthest from where training fails.

    Args:
        accuracies: one for each rate.
    """
    best = [rate for rate, right in zip(RATES, accuracies, strict=True) if right == max(accuracies)]
    return best[(len(best) - 1) // 2]


def measure_all() -> dict[str, Any]:
    """Choose the learning rates, train every model on every distance with three seeds, time the steps: ten minutes of a core."""
    rates: dict[str, list[float]] = {}
    tried: dict[str, list[list[float]]] = {}
    accuracy: dict[str, list[list[float]]] = {}
    for model in MODELS:
        dev = [[measure(DEV_SEED, model, distance, rate) for rate in RATES] for distance in DISTANCES]
        tried[model] = [[right for right, _ in row] for row in dev]
        rates[model] = [best_rate(row) for row in tried[model]]
        pairs = list(zip(DISTANCES, rates[model], strict=True))
        accuracy[model] = [[measure(seed, model, distance, rate)[0] for distance, rate in pairs] for seed in SEEDS]
    runs = [step_times(run) for run in SEEDS]
    return {
        "steps": N_STEPS,
        "batch": BATCH,
        "tested": N_TESTED,
        "seeds": SEEDS,
        "distances": DISTANCES,
        "parameters": {model: parameter_count(build(model, 0)) for model in MODELS},
        "accuracy (seed, distance)": accuracy,
        "chosen rate (distance)": rates,
        "rates tried": RATES,
        "accuracy of the rates tried (distance, rate)": tried,
        "lengths": LENGTHS,
        # as multiples of the Transformer's time at the shortest length of the same run: seconds belong to one machine
        "time (run, length)": {
            model: [[seconds / run["transformer"][0] for seconds in run[model]] for run in runs] for model in TIMED
        },
    }


class Recall(NamedTuple):
    """What `measure_all` found and `stored` keeps."""

    seeds: tuple[int, ...]
    distances: tuple[int, ...]
    n_steps: int
    parameters: dict[str, int]
    accuracy: dict[str, NDArray[np.floating]]  # (n_seeds, n_distances)
    rates: dict[str, list[float]]  # chosen, (n_distances,)
    lengths: tuple[int, ...]
    times: dict[str, NDArray[np.floating]]  # (n_runs, n_lengths), the Transformer at the shortest length is 1

    def ratio(self, model: str) -> NDArray[np.floating]:
        """(n_runs, n_lengths): the time of a step, the Transformer's at the same length and in the same run being 1."""
        return self.times[model] / self.times["transformer"]


def kept() -> Recall:
    """The stored measurement."""
    data = stored.read("recall")
    accuracy = {model: np.array(rows) for model, rows in data["accuracy (seed, distance)"].items()}
    times = {model: np.array(rows) for model, rows in data["time (run, length)"].items()}
    return Recall(
        tuple(data["seeds"]),
        tuple(data["distances"]),
        data["steps"],
        data["parameters"],
        accuracy,
        data["chosen rate (distance)"],
        tuple(data["lengths"]),
        times,
    )


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw what is stored, and on top of it the LSTM without and with attention at distance 16, trained now (three seconds)."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = kept()
    place = result.distances.index(LIVE_DISTANCE)
    live = {model: measure(result.seeds[0], model, LIVE_DISTANCE, result.rates[model][place])[0] for model in LIVE}

    def say(key: str, **given: object) -> str:
        return message(f"experiments.recall.{key}", lang, **given)

    table = [[say("recalled"), *(f"D = {distance}" for distance in result.distances), say("parameters")]]
    for model in MODELS:
        values = [_range(column) for column in result.accuracy[model].T]
        table.append([say(model), *values, f"{result.parameters[model]:,}"])
    for model, value in live.items():
        cells = [f"{value:.2f}" if distance == LIVE_DISTANCE else "" for distance in result.distances]
        table.append([say("live_row", model=say(model)), *cells, ""])
    table.append([say("times"), *(f"n = {n}" for n in result.lengths)])
    for model in TIMED:
        table.append([say(model), *(_range(column) for column in result.ratio(model).T)])
    with figures.style():
        drawn = figures.new_figure(900, 440)
        left, right = drawn.subplots(1, 2, width_ratios=(1.1, 1))
        for i, model in enumerate(MODELS):
            looks = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
            beside = 2 ** (0.08 * (i - 2))  # several lines run along 1: their markers stand side by side
            _line(left, beside * np.array(result.distances), result.accuracy[model], say(model), looks)
            if model in TIMED:
                _line(right, result.lengths, result.ratio(model), say(model), looks)
            if model in live:
                left.plot(beside * LIVE_DISTANCE, live[model], "*", ms=17, mfc="white", mec=looks["color"], mew=2, zorder=5)
        left.plot([], [], "*", ms=14, mfc="white", mec="black", mew=1.5, ls="", label=say("live"))
        left.axhline(CHANCE, color="#666666", linewidth=1, linestyle=":", label=say("chance"))
        left.set_ylim(-0.04, 1.06)
        for axes, name, places in ((left, "recall", result.distances), (right, "time", result.lengths)):
            axes.set_xscale("log", base=2)
            axes.set_xticks(places, [str(each) for each in places])
            axes.set_title(say(f"{name}_title"))
            axes.set_xlabel(say(f"{name}_x"))
            axes.set_ylabel(say(f"{name}_y"))
            axes.grid(True, color="#dddddd", linewidth=0.8)
            axes.set_axisbelow(True)
        right.set_yscale("log", base=2)
        right.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        title = say("title", steps=result.n_steps)
        drawn.suptitle(title, fontsize=12)
        drawn.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        note = say("note", seeds=len(result.seeds), steps=result.n_steps, **_quoted(result))
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _line(axes: Axes, x: ArrayLike, values: NDArray[np.floating], label: str, looks: dict[str, Any]) -> None:
    axes.plot(x, values.mean(axis=0), label=label, linewidth=2, markersize=6, **looks)
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=looks["color"], alpha=0.25, linewidth=0)


def _range(values: NDArray[np.floating]) -> str:
    """The smallest and the largest with two decimals, or the one number that both are."""
    low, high = f"{values.min():.2f}", f"{values.max():.2f}"
    return low if low == high else f"{low}–{high}"


def _quoted(result: Recall) -> dict[str, Any]:
    """The numbers of the sentence below the picture."""
    right = {model: dict(zip(result.distances, values.T, strict=True)) for model, values in result.accuracy.items()}
    ratios = {model: result.ratio(model)[:, -1].mean() for model in TIMED}
    return {
        "near": 8,
        "live": LIVE_DISTANCE,
        "far": result.distances[-1],
        "before_far": result.distances[-2],
        "beyond": BEYOND,
        "lstm_near": _range(right["lstm"][8]),
        "lstm_live": _range(right["lstm"][LIVE_DISTANCE]),
        "open_live": _range(right["open_lstm"][LIVE_DISTANCE]),
        "open_beyond": _range(result.accuracy["open_lstm"][:, result.distances.index(BEYOND) :]),
        "bahdanau": _range(result.accuracy["bahdanau"]),
        "gnmt": _range(result.accuracy["gnmt"][:, :-1]),
        "gnmt_far": _range(right["gnmt"][result.distances[-1]]),
        "transformer": _range(result.accuracy["transformer"]),
        "chance": f"{CHANCE:.2f}",
        "n": result.lengths[-1],
        "d_model": D_MODEL,
        **{f"{model}_time": f"{ratio:.2g}" for model, ratio in ratios.items()},
    }
