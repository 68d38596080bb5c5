"""What becomes of signal and gradient in a deep stack, with and without residual connections and LayerNorm (section 3.1).

Sub-layers with random weights, attention and feed-forward network in turn, are stacked five ways: nothing around them, LayerNorm
only, a residual connection only, Post-LN (the paper's) and Pre-LN. Nothing is trained: all numbers are those of the first step.
The backward passes are written out by hand; the tests compare them with finite differences.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import softmax
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

Array = NDArray[np.floating]
Weights = tuple[Array, ...]
Backward = Callable[[Array], tuple[Array, Weights]]  # gradient of the output -> of the input, and of the weights

WAYS = ("bare", "norm_only", "residual_only", "post", "pre")
N_SUBLAYERS = 48  # 24 layers of two sub-layers
DEPTHS = (12, 24, 48)
D_MODEL = 64
D_FF = 256
N_TOKENS = 16
EPSILON = 1e-5


# --- sub-layers, each with its backward pass ---


def norm(x: Array) -> tuple[Array, Callable[[Array], Array]]:
    """LayerNorm with gain 1 and bias 0: (n, d_model) -> the same shape, and from the gradient of that to the gradient of x."""
    centred = x - x.mean(axis=-1, keepdims=True)
    inverse = 1 / np.sqrt((centred**2).mean(axis=-1, keepdims=True) + EPSILON)
    y = centred * inverse

    def backward(g: Array) -> Array:
        return inverse * (g - g.mean(axis=-1, keepdims=True) - y * (g * y).mean(axis=-1, keepdims=True))

    return y, backward


def feed_forward(x: Array, weights: Weights) -> tuple[Array, Backward]:
    """max(0, x W₁) W₂: (n, d_model) -> (n, d_model). The biases are 0, as at initialisation."""
    w1, w2 = weights
    before = x @ w1  # (n, d_model) @ (d_model, d_ff) -> (n, d_ff)
    hidden = np.maximum(before, 0)

    def backward(g: Array) -> tuple[Array, Weights]:
        g_before = (g @ w2.T) * (before > 0)
        return g_before @ w1.T, (x.T @ g_before, hidden.T @ g)

    return hidden @ w2, backward


def self_attention(x: Array, weights: Weights) -> tuple[Array, Backward]:
    """softmax(x W^Q (x W^K)ᵀ / √d_k) x W^V W^O, one head of d_k = d_model: (n, d_model) -> (n, d_model)."""
    w_q, w_k, w_v, w_o = weights
    q, k, v = x @ w_q, x @ w_k, x @ w_v
    scale = 1 / np.sqrt(k.shape[-1])
    shares = softmax(q @ k.T * scale)  # (n, n)
    mixed = shares @ v

    def backward(g: Array) -> tuple[Array, Weights]:
        g_mixed = g @ w_o.T
        g_shares, g_v = g_mixed @ v.T, shares.T @ g_mixed
        # the Jacobian of softmax, row by row: w_i (δ_ij − w_j)
        g_scores = shares * (g_shares - (g_shares * shares).sum(axis=-1, keepdims=True)) * scale
        g_q, g_k = g_scores @ k, g_scores.T @ q
        g_x = g_q @ w_q.T + g_k @ w_k.T + g_v @ w_v.T
        return g_x, (x.T @ g_q, x.T @ g_k, x.T @ g_v, mixed.T @ g)

    return mixed @ w_o, backward


# --- the stack ---


@dataclass(frozen=True)
class Walk:
    """One forward pass: ``states`` (n_sublayers + 1 arrays of (n, d_model)), the ``output``, and the way back.

    ``backward(g)`` takes the gradient of the output and returns the gradient of every state, and of every sub-layer's weights.
    """

    states: list[Array]
    output: Array
    backward: Callable[[Array], tuple[list[Array], list[Weights]]]


def walk(way: str, x: Array, weights: Sequence[Weights]) -> Walk:
    """Send ``x`` through the sub-layers, wired in the given way.

    Args:
        way: "bare" S(x), "norm_only" LayerNorm(S(x)), "residual_only" x + S(x), "post" LayerNorm(x + S(x)), or "pre"
            x + S(LayerNorm(x)) with one more LayerNorm at the very end, as in GPT-2.
        x: (n, d_model).
        weights: of each sub-layer: four matrices for attention, two for a feed-forward network.

    Returns:
        `Walk`.

    Raises:
        ValueError: there is no such way.
    """
    if way not in WAYS:
        raise ValueError(f"way must be one of {', '.join(map(repr, WAYS))}; got {way!r}.")
    states, steps = [x], []
    for matrices in weights:
        inner, from_norm = norm(x) if way == "pre" else (x, None)
        branch, from_branch = (self_attention if len(matrices) == 4 else feed_forward)(inner, matrices)
        total = branch if way in ("bare", "norm_only") else x + branch
        x, from_total = norm(total) if way in ("norm_only", "post") else (total, None)
        steps.append((from_norm, from_branch, from_total))
        states.append(x)
    output, from_output = norm(x) if way == "pre" else (x, None)

    def backward(g: Array) -> tuple[list[Array], list[Weights]]:
        g = from_output(g) if from_output else g
        on_states, on_weights = [g], []
        for from_norm, from_branch, from_total in reversed(steps):
            g = from_total(g) if from_total else g
            through, on_matrices = from_branch(g)
            through = from_norm(through) if from_norm else through
            g = through if way in ("bare", "norm_only") else g + through  # the shortcut hands the gradient on as it is
            on_states.append(g)
            on_weights.append(on_matrices)
        return on_states[::-1], on_weights[::-1]

    return Walk(states, output, backward)


def random_weights(n_sublayers: int, rng: np.random.Generator, d_model: int = D_MODEL, d_ff: int = D_FF) -> list[Weights]:
    """Attention and feed-forward network in turn, Glorot-initialised: variance 2 / (inputs + outputs)."""

    def glorot(n_in: int, n_out: int) -> Array:
        return rng.standard_normal((n_in, n_out)) * np.sqrt(2 / (n_in + n_out))

    attention, network = ((d_model, d_model),) * 4, ((d_model, d_ff), (d_ff, d_model))
    return [tuple(glorot(*shape) for shape in (network if i % 2 else attention)) for i in range(n_sublayers)]


# --- the measurements ---


class Measured(NamedTuple):
    """What one way of stacking does, each (n_seeds, n_sublayers + 1) but the last."""

    signal: Array  # root mean square of the numbers after 0, 1, … sub-layers
    differences: Array  # how far the tokens are from their mean, as a share of the signal: 0 if all tokens are alike
    gradient: Array  # size of the gradient that arrives there, as a share of the gradient at the output
    w1_gradient: Array  # (n_seeds, n_sublayers // 2): the same for W₁ of each feed-forward network


class Depth(NamedTuple):
    """What ``depth`` returns: a `Measured` by way for ``n_sublayers``, and the last network's W₁ in stacks of other depths."""

    n_sublayers: int
    seeds: tuple[int, ...]
    ways: dict[str, Measured]
    depths: tuple[int, ...]
    last_w1: dict[str, Array]  # (n_seeds, n_depths), for "post" and "pre"


def depth(seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Depth:
    """Stack 48 random sub-layers five ways, and follow the signal forwards and the gradient of a random function backwards.

    All ways see the same weights, the same 16 random tokens and the same gradient at the output.

    Args:
        seeds: one repetition of the whole experiment each; at least one.

    Returns:
        ``Depth``.

    Raises:
        ValueError: no seeds.

    Source: Vaswani et al. 2017, §3.1; He et al. 2016 on residual connections; Xiong et al. 2020 on where LayerNorm stands.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    ways = {}
    for way in WAYS:
        measured = [_measure(way, N_SUBLAYERS, seed) for seed in seeds]
        ways[way] = Measured(*(np.array(rows) for rows in zip(*measured, strict=True)))
    last = {
        way: np.array([[_measure(way, count, seed)[-1][-1] for count in DEPTHS] for seed in seeds]) for way in ("post", "pre")
    }
    return Depth(N_SUBLAYERS, seeds, ways, DEPTHS, last)


def _measure(way: str, n_sublayers: int, seed: int) -> tuple[Array, Array, Array, Array]:
    rng = np.random.default_rng([seed, 7])
    x, g = rng.standard_normal((2, N_TOKENS, D_MODEL))
    walked = walk(way, x, random_weights(n_sublayers, rng))
    on_states, on_weights = walked.backward(g)
    signal = np.array([_rms(state) for state in walked.states])
    spread = np.array([_rms(state - state.mean(axis=0)) for state in walked.states])
    gradient = np.array([_norm(each) for each in on_states]) / _norm(g)
    w1_gradient = np.array([_norm(matrices[0]) for matrices in on_weights if len(matrices) == 2]) / _norm(g)
    return signal, spread / signal, gradient, w1_gradient


def _rms(x: Array) -> float:
    return float(np.sqrt((x**2).mean()))


def _norm(x: Array) -> float:
    return float(np.sqrt((x**2).sum()))  # np.linalg.norm hands such small sums to several threads, which slows a busy machine


# --- the picture ---


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2, 3, 4)) -> Picture:
    """Run ``depth`` and draw it: one panel for each of the four measurements, against the number of sub-layers.

    A line is the mean over the seeds, the band around it reaches from the smallest to the largest; the table holds the means.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    result = depth(seeds)

    def say(key: str, **parameters: object) -> str:
        return message(f"experiments.depth.{key}", lang, **parameters)

    places = np.arange(result.n_sublayers + 1)
    panels = {  # the measurement, where along the stack it is taken, and whether its axis is logarithmic
        "signal": (places, WAYS, True),
        "differences": (places, WAYS, False),
        "gradient": (places, WAYS, True),
        "w1_gradient": (places[2::2], ("post", "pre"), False),
    }
    shown = (0, 6, 12, 24, 36, 48)
    table = [[say("sublayers"), *(str(place) for place in shown)]]
    with figures.style():
        drawn = figures.new_figure(900, 720)
        for axes, (name, (x, ways, log_y)) in zip(drawn.subplots(2, 2).flat, panels.items(), strict=True):
            for way in ways:
                values, i = getattr(result.ways[way], name), WAYS.index(way)
                _line(axes, x, values, say(way), figures.COLOURS[i], figures.DASHES[i], figures.MARKERS[i])
                at = dict(zip(x.tolist(), values.mean(axis=0), strict=True))
                table.append([f"{say(name)}: {say(way)}", *(scientific(at[each]) if each in at else "" for each in shown)])
            axes.set_title(say(name))
            axes.set_xlabel(say("sublayers"))
            axes.set_ylabel(say(f"{name}_axis"))
            axes.set_xticks(places[::12])
            axes.set_yscale("log" if log_y else "linear")
            if not log_y:
                axes.set_ylim(bottom=0)
            axes.grid(True, color="#dddddd", linewidth=0.8)
            axes.set_axisbelow(True)
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        drawn.legend(handles=drawn.axes[0].get_lines(), loc="outside lower center", ncols=3, frameon=False)
        note = say("note", seeds=len(result.seeds), **_quoted(result))
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _line(axes: Axes, x: NDArray[np.integer], values: Array, label: str, colour: str, dash: object, marker: str) -> None:
    mean = values.mean(axis=0)
    axes.plot(x, mean, label=label, color=colour, linestyle=dash, linewidth=2, marker=marker, markersize=6, markevery=x.size // 6)
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0)


def _quoted(result: Depth) -> dict[str, str]:
    """The numbers of the sentence below the picture: means over the seeds."""
    ends = {way: {name: getattr(each, name).mean(axis=0) for name in Measured._fields} for way, each in result.ways.items()}
    return {
        "bare_signal": scientific(ends["bare"]["signal"][-1]),
        "bare_gradient": scientific(ends["bare"]["gradient"][0]),
        "alike": scientific(ends["norm_only"]["differences"][12]),
        "residual_signal": scientific(ends["residual_only"]["signal"][-1]),
        "pre_signal": scientific(ends["pre"]["signal"][-1]),
        "post_first": scientific(ends["post"]["w1_gradient"][0]),
        "post_last": scientific(ends["post"]["w1_gradient"][-1]),
        "pre_first": scientific(ends["pre"]["w1_gradient"][0]),
        "pre_last": scientific(ends["pre"]["w1_gradient"][-1]),
    }


def scientific(value: float) -> str:
    """``1.4e-07`` as ``1 × 10⁻⁷``, ``4.7e4`` as ``5 × 10⁴``; two plain decimals from 0.01 up to 100.

    What is below 10⁻¹² is rounding, and differs from machine to machine: ``< 10⁻¹²``.
    """
    if 0 < abs(value) < 1e-12:
        return "< 10⁻¹²"
    if value == 0 or 0.005 <= abs(value) < 100:
        return f"{value:.2f}"
    digits, exponent = f"{value:.0e}".split("e")
    return f"{digits} × 10{str(int(exponent)).translate(str.maketrans('-0123456789', '⁻⁰¹²³⁴⁵⁶⁷⁸⁹'))}"
