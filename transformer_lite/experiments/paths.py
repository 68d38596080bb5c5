"""How far apart two positions are inside a model, measured: the path lengths and serial steps of the paper's Table 1.

Every kind of layer is taken round by round. In one round every position may read once what its kind allows: a recurrence its left
neighbour, a convolution the window of k positions around it, self-attention every position. The influence matrix says after how
many rounds the last position has heard of the first. A second measurement asks how much is left of what it hears.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import Projections, influence_matrix, self_attention
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Lines, Picture

LENGTHS = (4, 8, 16, 32, 64)
KERNEL = 5  # a window holds a position and two on each side
KINDS = ("recurrence", "contiguous", "dilated", "attention")
DISTANCES = (1, 2, 4, 8, 16, 32, 63)
STRENGTHS = ("attention", "recurrence", "strong_recurrence")
D = 16  # features of a position
MAGNIFIED = 1e9  # through 32 layers of small weights almost nothing arrives, but not nothing: a double tells it from 0
NETWORKS = 40  # random networks to average over, for each seed

Sequence2D = NDArray[np.floating]  # (n, d)
Round = Callable[[Sequence2D, Sequence2D, int], Sequence2D]  # (what each position was given, its state, round) -> its new state


class Paths(NamedTuple):
    """What ``paths`` returns. The kinds are those of `KINDS`, the ways of ``strength`` those of `STRENGTHS`."""

    lengths: NDArray[np.integer]  # n
    seeds: tuple[int, ...]
    hops: NDArray[np.integer]  # (n_seeds, n_kinds, n_lengths): rounds until the last position depends on the first
    serial: NDArray[np.integer]  # (n_seeds, n_kinds, n_lengths): rounds until the outputs of one layer are final
    distances: NDArray[np.integer]
    strength: NDArray[np.floating]  # (n_seeds, n_ways, n_distances): relative change of the last output


def paths(seeds: Sequence[int] = (0, 1, 2)) -> Paths:
    """Count the rounds between the first and the last of n positions, and measure how strongly one moves the other.

    Args:
        seeds: one repetition of the whole experiment each, with its own random weights and inputs; at least one.

    Returns:
        ``Paths``.

    Raises:
        ValueError: no seeds.

    Source: Vaswani et al. 2017, §4 and Table 1.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    hops = [[[_hops(kind, n, seed) for n in LENGTHS] for kind in KINDS] for seed in seeds]
    serial = [[[_serial_steps(kind, n, seed) for n in LENGTHS] for kind in KINDS] for seed in seeds]
    strength = [[_strength(way, seed) for way in STRENGTHS] for seed in seeds]
    return Paths(np.array(LENGTHS), seeds, np.array(hops), np.array(serial), np.array(DISTANCES), np.array(strength))


# One round of each kind -----------------------------------------------------------------------------------------------


def _round(kind: str, seed: int) -> Round:
    """One round of a network with random weights. A stack of layers has new weights in each round, a recurrence the same."""
    if kind == "recurrence":
        w, u = _recurrent_weights(np.random.default_rng([seed, 1]), orthogonal=True)
        return lambda given, state, _: np.tanh(_before(state) @ w + given @ u)
    if kind == "attention":
        return lambda given, state, layer: self_attention(state, _projections(np.random.default_rng([seed, 2, layer]))).output
    return lambda given, state, layer: _convolution(state, np.random.default_rng([seed, 3, layer]), _dilation(kind, layer))


def _dilation(kind: str, layer: int) -> int:
    """The fastest growth at which windows centred on a position leave no gap: what was reached so far, and one more."""
    return (KERNEL // 2 + 1) ** layer if kind == "dilated" else 1


def _before(x: Sequence2D) -> Sequence2D:
    """The rows that stand one place earlier; zeros before the first. (n, d) -> (n, d)"""
    return np.pad(x, ((1, 0), (0, 0)))[:-1]


def _convolution(x: Sequence2D, rng: np.random.Generator, dilation: int) -> Sequence2D:
    kernels = rng.standard_normal((KERNEL, D, D)) / np.sqrt(KERNEL * D)
    reach = KERNEL // 2 * dilation
    padded = np.pad(x, ((reach, reach), (0, 0)))  # (n + 2 reach, d)
    return np.tanh(sum(padded[o * dilation :][: len(x)] @ kernel for o, kernel in enumerate(kernels)))


def _recurrent_weights(rng: np.random.Generator, orthogonal: bool = False) -> tuple[NDArray, NDArray]:
    w, u = rng.standard_normal((2, D, D)) / np.sqrt(D)
    return (np.linalg.qr(w)[0] if orthogonal else w), u


def _projections(rng: np.random.Generator) -> Projections:
    return Projections(*rng.standard_normal((4, D, D)) / np.sqrt(D))


def _inputs(n: int, seed: int) -> Sequence2D:
    # Small numbers keep tanh away from saturation: what arrives over 63 steps must not drown in rounding.
    return 0.05 * np.random.default_rng([seed, 4, n]).standard_normal((n, D))


# The three measurements -------------------------------------------------------------------------------------------------


def _hops(kind: str, n: int, seed: int) -> int:
    one_round, x = _round(kind, seed), _inputs(n, seed)
    start = np.tanh(x) if kind == "recurrence" else x  # every position knows its own word, and no other

    def last_after(rounds: int, first: Sequence2D) -> Sequence2D:
        given = np.vstack([first, x[1:]])
        state = np.vstack([np.tanh(first) if kind == "recurrence" else first, start[1:]])
        for number in range(rounds):
            state = one_round(given, state, number)
        return MAGNIFIED * state[-1:]

    for rounds in range(1, n + 1):
        if influence_matrix(lambda first, rounds=rounds: last_after(rounds, first), x[:1])[0, 0]:
            return rounds
    raise RuntimeError(f"{kind}: after {n} rounds the last of {n} positions has not heard of the first.")


def _serial_steps(kind: str, n: int, seed: int) -> int:
    """Repeat the first layer, all positions at once, until no output changes any more."""
    one_round, x = _round(kind, seed), _inputs(n, seed)
    state, steps = np.zeros((n, D)), 0
    while True:
        # What a recurrence reads besides its input is its own output so far; the other layers read their input alone.
        new = one_round(x, state if kind == "recurrence" else x, 0)
        if np.array_equal(new, state):
            return steps
        state, steps = new, steps + 1


def _strength(way: str, seed: int) -> NDArray[np.floating]:
    """(n_distances,): put another word at each distance, and see how far the last output moves, relative to its size."""
    n, moved = max(DISTANCES) + 1, np.zeros((NETWORKS, len(DISTANCES)))
    for network in range(NETWORKS):
        rng = np.random.default_rng([seed, 5, network])
        x = rng.standard_normal((n, D))
        last = _last_output(way, rng)
        still = last(x)
        for place, distance in enumerate(DISTANCES):
            other = x.copy()
            other[n - 1 - distance] = rng.standard_normal(D)
            moved[network, place] = np.linalg.norm(last(other) - still) / np.linalg.norm(still)
    return moved.mean(axis=0)


def _last_output(way: str, rng: np.random.Generator) -> Callable[[Sequence2D], NDArray]:
    if way == "attention":
        projections = _projections(rng)
        return lambda x: self_attention(x, projections).output[-1]
    w, u = _recurrent_weights(rng)
    w = 2.0 * w if way == "strong_recurrence" else w

    def last(x: Sequence2D) -> NDArray:
        state = np.zeros(D)
        for row in x @ u:
            state = np.tanh(state @ w + row)
        return state

    return last


# The picture ----------------------------------------------------------------------------------------------------------


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2)) -> Picture:
    """Run ``paths`` and draw it: hops and serial steps against n, and the strength against the distance."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = paths(seeds)

    def say(key: str, **details: object) -> str:
        return message(f"experiments.paths.{key}", lang, **details)

    kinds = {kind: say(kind, k=KERNEL) for kind in KINDS}
    ways = [say("attention"), say("recurrence"), say("strong_recurrence")]
    table = [["n", *(str(n) for n in result.lengths), *[""] * (len(DISTANCES) - len(LENGTHS))]]
    with figures.style():
        drawn = figures.new_figure(900, 460)
        all_axes = drawn.subplots(1, 3)
        for axes, name, counted in zip(all_axes, ("hops", "serial"), (result.hops, result.serial), strict=False):
            means = {kinds[kind]: counted[:, i].mean(axis=0) for i, kind in enumerate(KINDS)}
            panel = figures.Lines(result.lengths, means, say(name), "$n$", say(f"{name}_axis"), log_x=True, log_y=True)
            figures.draw_lines(axes, panel, legend=None)
            axes.set_yscale("log", base=2)
            axes.set_yticks([2**power for power in range(7)])
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
            blank = [""] * (len(DISTANCES) - len(LENGTHS))
            table += [[f"{say(name)}, {label}", *(figures.number(mean, 0) for mean in mean_of), *blank]
                      for label, mean_of in means.items()]  # fmt: skip
        means = {label: result.strength[:, i].mean(axis=0) for i, label in enumerate(ways)}
        panel = figures.Lines(result.distances, means, say("strength"), say("distance"), say("strength_axis"), log_x=True)
        _draw_strength(all_axes[2], panel, result)
        table += [[say("distance"), *(str(distance) for distance in result.distances)]]
        table += [
            [f"{say('strength')}, {label}", *(f"{100 * mean:.2f} %" for mean in mean_of)] for label, mean_of in means.items()
        ]
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        lines = all_axes[0].get_lines()
        drawn.legend(handles=[*lines, all_axes[2].get_lines()[2]], loc="outside lower center", ncols=3, frameon=False)
        note = say("note", **_numbers(result))
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _draw_strength(axes: Axes, panel: Lines, result: Paths) -> None:
    """The colours and marks of the two kinds are those of the other panels; a band from the smallest to the largest seed."""
    from transformer_lite.explore import figures

    looks = (3, 0, 4)  # attention, recurrence, the recurrence with larger weights
    for i, ((label, values), look) in enumerate(zip(panel.series.items(), looks, strict=True)):
        style = {"color": figures.COLOURS[look], "linestyle": figures.DASHES[look], "marker": figures.MARKERS[look]}
        axes.plot(panel.x, 100 * np.asarray(values), label=label, linewidth=2, markersize=6, **style)
        low, high = 100 * result.strength[:, i].min(axis=0), 100 * result.strength[:, i].max(axis=0)
        axes.fill_between(panel.x, low, high, color=figures.COLOURS[look], alpha=0.25, linewidth=0)
    axes.set_xscale("log", base=2)
    axes.set_xticks(panel.x)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axes.set_title(panel.title)
    axes.set_xlabel(panel.x_label)
    axes.set_ylabel(panel.y_label)
    axes.grid(True, color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _numbers(result: Paths) -> dict[str, str | int]:
    """What the sentence below the picture says, averaged over the seeds."""
    hops = result.hops[:, :, -1].mean(axis=0)
    far, near = list(DISTANCES).index(16), list(DISTANCES).index(1)
    percent = 100 * result.strength.mean(axis=0)
    return {
        "seeds": len(result.seeds),
        "n": int(result.lengths[-1]),
        **{kind: f"{hops[i]:g}" for i, kind in enumerate(KINDS)},
        "serial": f"{result.serial[:, 0, -1].mean():g}",
        "near_recurrence": f"{percent[1, near]:.0f}",
        "far_recurrence": f"{percent[1, far]:.2f}",
        "near_attention": f"{percent[0, near]:.0f}",
        "far_attention": f"{percent[0, far]:.0f}",
        "far_strong": f"{percent[2, far]:.0f}",
    }
