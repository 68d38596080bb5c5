"""Why Post-LN needs care at the start: gradients at initialisation, and learning with and without warm-up (Xiong et al. 2020).

Two Transformers of six layers in each stack, one with LayerNorm after each residual addition as in the paper (Post-LN), one with
LayerNorm inside the branches (Pre-LN). First the gradient of the decoder's feed-forward networks before any training, layer by
layer; then the loss while both learn the course's grammar, with a learning rate that is there from the first step or rises to it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from transformer_lite.experiments import stored
from transformer_lite.experiments.learning import alone, batches, learn
from transformer_lite.language import current, message
from transformer_lite.model import Transformer, TransformerConfig
from transformer_lite.translation import grammar
from transformer_lite.translation.batching import Ids
from transformer_lite.translation.training import loss_of
from transformer_lite.translation.vocabulary import EOS, Words

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

NORMS = ("post", "pre")
STARTS = ("at_once", "warmup")
SEEDS = (0, 1, 2)  # of what is stored
LIVE_SEED = 3
N_LAYERS = 6
N_PAIRS = 3_000
GRADIENT_MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 256}
GRADIENT_TOKENS = 2048
MODEL = {"d_model": 32, "n_heads": 4, "d_ff": 128}  # small enough for two dozen trainings
TOKENS = 256
STEPS, WARMUP = 400, 200
RATES = (0.0005, 0.002, 0.005)
SHOWN_RATE = 0.002  # whose curves are drawn
BLOCK = 20  # steps whose mean loss is kept as one number
LAST = 100  # steps at the end whose mean is "the loss after training": one batch is easier than the next


# --- the measurements ---


@cache
def data(seed: int) -> tuple[list[Ids], int, int]:
    """3,000 sentences of the grammar as ids, and how many words there are in each language."""
    texts = [(" ".join(pair.source), " ".join(pair.target)) for pair in islice(grammar.sentences(seed), N_PAIRS)]
    source, target = (Words.of(side) for side in zip(*texts, strict=True))
    return [(source.encode(english), target.encode(japanese)) for english, japanese in texts], len(source), len(target)


def _model(norm: str, n_source: int, n_target: int, n_layers: int, sizes: Mapping[str, int]) -> Transformer:
    return Transformer(
        TransformerConfig(source_vocab=n_source, target_vocab=n_target, n_layers=n_layers, norm=norm, dropout=0.0, **sizes)
    )


def gradients(norm: str, seed: int, n_layers: int = N_LAYERS) -> list[float]:
    """The size of the gradient of W₁ in each decoder layer, from the input to the output, before any training.

    Args:
        norm: "post" or "pre".
        seed: of the weights and of the one batch of sentences.
        n_layers: layers in each stack.

    Returns:
        ``n_layers`` Frobenius norms, of the mean loss per token.

    Source: Xiong et al. 2020, theorem 1 and figure 3.
    """
    pairs, *sizes = data(seed)
    with alone(seed):
        model = _model(norm, *sizes, n_layers, GRADIENT_MODEL)
        batch = next(batches(pairs, GRADIENT_TOKENS, seed))
        (loss_of(model, batch) / batch.tokens).backward()
        return [float(layer.feed_forward.w_1.weight.grad.norm()) for layer in model.decoder.layers]


def losses(norm: str, start: str, peak: float, seed: int, steps: int = STEPS, n_layers: int = N_LAYERS) -> list[float]:
    """The loss of every step while a model learns, in nats per token, gradients unclipped.

    Args:
        norm: "post" or "pre".
        start: "at_once": the learning rate is ``peak`` from the first step; "warmup": it rises to it over 200 steps.
        peak: the learning rate.
        seed: of the weights and of the order of the sentences.
        steps: how many.
        n_layers: layers in each stack.

    Raises:
        ValueError: there is no such start.
    """
    if start not in STARTS:
        raise ValueError(f"start must be one of {', '.join(map(repr, STARTS))}; got {start!r}.")
    pairs, *sizes = data(seed)

    def rate(step: int) -> float:
        return peak if start == "at_once" else peak * min(1.0, step / WARMUP)

    with alone(seed):
        model = _model(norm, *sizes, n_layers, MODEL)
        return learn(model, batches(pairs, TOKENS, seed), rate, steps, clip=None)


def frequency_loss(seed: int) -> float:
    """The least loss, in nats per token, of a model that knows how often each word occurs and nothing else."""
    pairs, *_ = data(seed)
    _, counts = np.unique([word for _, target in pairs for word in (*target, EOS)], return_counts=True)
    shares = counts / counts.sum()
    return float(-(shares * np.log(shares)).sum())


def measure_all() -> dict[str, Any]:
    """What is stored: both measurements for three seeds; of the losses the means of every twenty steps."""
    kept: dict[str, Any] = {"seeds": SEEDS, "rates": RATES, "steps": STEPS, "warmup": WARMUP, "block": BLOCK}
    kept["frequencies"] = [frequency_loss(seed) for seed in SEEDS]
    kept["gradients"] = {norm: [gradients(norm, seed) for seed in SEEDS] for norm in NORMS}
    kept["losses"] = {  # (n_rates, n_seeds, n_blocks)
        f"{norm} {start}": [[in_blocks(losses(norm, start, peak, seed)) for seed in SEEDS] for peak in RATES]
        for norm in NORMS
        for start in STARTS
    }
    return kept


def in_blocks(values: Sequence[float]) -> list[float]:
    """The mean of every twenty."""
    return np.reshape(values, (-1, BLOCK)).mean(axis=1).tolist()


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw what is stored of three seeds, and on top of it the gradients of one more seed, computed now."""
    from transformer_lite.explore import figures

    lang = lang or current()
    kept = stored.read("stability")
    live = {norm: gradients(norm, LIVE_SEED) for norm in NORMS}

    def say(key: str, **given: object) -> str:
        return message(f"experiments.stability.{key}", lang, **given)

    names = {f"{norm} {start}": f"{say(norm)}{say('and')}{say(start)}" for norm in NORMS for start in STARTS}
    with figures.style():
        drawn = figures.new_figure(900, 430)
        left, middle, right = drawn.subplots(1, 3)
        _gradients(left, kept, live, say)
        _curves(middle, kept, names, say)
        _by_rate(right, kept, names, say)
        title = say("title", layers=N_LAYERS)
        drawn.suptitle(title, fontsize=12)
        drawn.legend(handles=middle.get_lines(), loc="outside lower center", ncols=3, frameon=False)
        note = say("note", **quoted(kept, live))
        return figures.picture(drawn, title=title, table=_table(kept, live, names, say), text=note, lang=lang)


def last_losses(kept: Mapping[str, Any], peak: float) -> dict[str, NDArray[np.floating]]:
    """The mean loss of the last 100 steps of every seed, (n_seeds,), by norm and start, for one learning rate."""
    at = kept["rates"].index(peak)
    return {key: np.array(runs[at])[:, -LAST // BLOCK :].mean(axis=1) for key, runs in kept["losses"].items()}


def quoted(kept: Mapping[str, Any], live: Mapping[str, list[float]]) -> dict[str, object]:
    """The numbers of the sentence below the picture: means of the seeds."""
    grown = {norm: np.array(kept["gradients"][norm]) for norm in NORMS}  # (n_seeds, n_layers)
    numbers: dict[str, object] = {
        "seeds": len(kept["seeds"]),
        "steps": kept["steps"],
        "warmup": kept["warmup"],
        "last": LAST,
        "frequencies": f"{np.mean(kept['frequencies']):.2f}",
        **{f"{norm}_first": f"{grown[norm][:, 0].mean():.2f}" for norm in NORMS},
        **{f"{norm}_last": f"{grown[norm][:, -1].mean():.2f}" for norm in NORMS},
        "live_growth": f"{live['post'][-1] / live['post'][0]:.1f}",
    }
    for name, peak in zip(("small", "medium", "large"), kept["rates"], strict=True):
        numbers[name] = f"{peak:g}"
        for key, values in last_losses(kept, peak).items():
            numbers[f"{name}_{key.replace(' ', '_')}"] = f"{values.mean():.2f}"
    return numbers


def _look(key: str) -> dict[str, Any]:
    """Post-LN and Pre-LN are told apart by colour and marker, the start by the dash and by whether the marker is filled."""
    from transformer_lite.explore import figures

    norm, start = key.split()
    i, warm = NORMS.index(norm), start == "warmup"
    return {"color": figures.COLOURS[i], "marker": figures.MARKERS[i], "linestyle": figures.DASHES[warm], "linewidth": 2,
            "markersize": 6, "markerfacecolor": "white" if warm else figures.COLOURS[i]}  # fmt: skip


def _gradients(axes: Axes, kept: Mapping[str, Any], live: Mapping[str, list[float]], say: Callable[..., str]) -> None:
    from transformer_lite.explore import figures

    layers = np.arange(1, N_LAYERS + 1)
    for i, norm in enumerate(NORMS):
        runs = np.array(kept["gradients"][norm])  # (n_seeds, n_layers)
        look = {"color": figures.COLOURS[i], "marker": figures.MARKERS[i]}
        axes.plot(layers, runs.mean(axis=0), label=say(norm), linewidth=2, markersize=6, **look)
        axes.fill_between(layers, runs.min(axis=0), runs.max(axis=0), color=figures.COLOURS[i], alpha=0.25, linewidth=0)
        label = f"{say(norm)}{say('and')}{say('live')}"
        axes.plot(layers, live[norm], label=label, color="black", linestyle="", marker="x+"[i], markersize=7)
    axes.set_ylim(bottom=0)
    axes.set_xticks(layers)
    axes.set_title(say("gradient"))
    axes.set_xlabel(say("layer"))
    axes.set_ylabel(say("gradient_axis"))
    axes.legend(loc="upper left", frameon=True, framealpha=0.9)
    _grid(axes)


def _curves(axes: Axes, kept: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]) -> None:
    at = kept["rates"].index(SHOWN_RATE)
    for key, name in names.items():
        runs = np.array(kept["losses"][key][at])  # (n_seeds, n_blocks)
        steps = BLOCK * np.arange(1, runs.shape[1] + 1) - BLOCK / 2
        axes.plot(steps, runs.mean(axis=0), label=name, markevery=(1, 4), **_look(key))
        axes.fill_between(steps, runs.min(axis=0), runs.max(axis=0), color=_look(key)["color"], alpha=0.2, linewidth=0)
    _frequencies(axes, kept, say)
    axes.set_title(say("loss", rate=f"{SHOWN_RATE:g}"))
    axes.set_xlabel(say("steps"))
    axes.set_ylabel(say("loss_axis"))
    _grid(axes)


def _by_rate(axes: Axes, kept: Mapping[str, Any], names: Mapping[str, str], say: Callable[..., str]) -> None:
    places = np.arange(len(kept["rates"]))
    lasts = [last_losses(kept, peak) for peak in kept["rates"]]
    for key in names:
        runs = np.array([each[key] for each in lasts])  # (n_rates, n_seeds)
        axes.plot(places, runs.mean(axis=1), **_look(key))
        axes.fill_between(places, runs.min(axis=1), runs.max(axis=1), color=_look(key)["color"], alpha=0.2, linewidth=0)
    _frequencies(axes, kept, say)
    axes.set_xlim(-0.3, len(places) - 0.7)
    axes.set_xticks(places, [f"{peak:g}" for peak in kept["rates"]])
    axes.set_title(say("last", last=LAST))
    axes.set_xlabel(say("rate"))
    axes.set_ylabel(say("loss_axis"))
    _grid(axes)


def _frequencies(axes: Axes, kept: Mapping[str, Any], say: Callable[..., str]) -> None:
    axes.axhline(np.mean(kept["frequencies"]), label=say("frequencies"), color="#555555", linestyle=":", linewidth=1.5)


def _grid(axes: Axes) -> None:
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _table(
    kept: Mapping[str, Any], live: Mapping[str, list[float]], names: Mapping[str, str], say: Callable[..., str]
) -> list[list[str]]:
    """Gradients by layer (means of the seeds, and the live run), then the last losses: mean, and the seeds' range."""
    table = [[say("layer"), *(str(layer) for layer in range(1, N_LAYERS + 1))]]
    for norm in NORMS:
        means = np.mean(kept["gradients"][norm], axis=0)
        table.append([f"{say('gradient')}: {say(norm)}", *(f"{mean:.2f}" for mean in means)])
        table.append([f"{say('gradient')}: {say(norm)}{say('and')}{say('live')}", *(f"{value:.2f}" for value in live[norm])])
    blank = [""] * (N_LAYERS - len(kept["rates"]))
    table.append([say("rate"), *(f"{peak:g}" for peak in kept["rates"]), *blank])
    for key, name in names.items():
        lasts = [last_losses(kept, peak)[key] for peak in kept["rates"]]
        cells = [f"{runs.mean():.2f} ({runs.min():.2f}–{runs.max():.2f})" for runs in lasts]
        table.append([f"{say('last', last=LAST)}: {name}", *cells, *blank])
    return table
