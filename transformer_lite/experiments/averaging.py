"""Does one head blur what several keep apart? Section 3.2.2 of the paper says that with one head averaging inhibits it.

Every token of a ring of eight has to deliver four random numbers, one from each of four other places. Layers of the same width
and the same number of parameters, but with 1, 2, 4, 6 or 12 heads, learn it with the same number of steps; what counts is the
part of the numbers' variance that does not arrive. Beside it stands what is provable: what one query gets from a head whose
weights depend on positions alone is one row of weights times one matrix, so h heads cannot deliver more than h of the four.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import merge_heads, softmax, split_heads
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

HEADS = (1, 2, 4, 6, 12)
D_MODEL = 12  # eight one-hot positions and four random numbers
N_TOKENS = 8
PLACES = (-2, -1, 1, 2)  # number k comes from the token so many places on, round the ring
OFFSETS = (-3, -2, -1, 0, 1, 2, 3, 4)
N_STEPS = 400
BATCH = 8
RATE = 0.04
SHOWN = (1, 4)  # the numbers of heads whose weights are drawn

Weights = list[NDArray[np.floating]]


class Averaging(NamedTuple):
    """What ``averaging`` returns."""

    n_heads: tuple[int, ...]
    seeds: tuple[int, ...]
    missing: NDArray[np.floating]  # (n_h, n_seeds): the part of the variance not delivered; 0 all arrives, 1 nothing
    blind: NDArray[np.floating]  # (n_seeds,): the same for one head whose weights may depend on positions alone
    bound: NDArray[np.floating]  # (n_h,): the least that is possible with weights that depend on positions alone
    looks: dict[int, NDArray[np.floating]]  # by number of heads, (h, n_offsets): mean weights of the first seed
    parameters: NDArray[np.integer]  # (n_h,)
    multiply_adds: NDArray[np.integer]  # (n_h,)


def averaging(seeds: Sequence[int] = (0, 1, 2), n_heads: Sequence[int] = HEADS) -> Averaging:
    """Train layers that differ in nothing but the number of heads on a task that needs four places at once.

    Every layer is the paper's multi-head attention of width 12 with softmax and W^O, without a mask, trained for 400 steps by
    Adam on fresh sentences and tested on others.

    Args:
        seeds: one set of random starting weights each; at least one.
        n_heads: the numbers of heads; each must divide 12.

    Returns:
        ``Averaging``.

    Raises:
        ValueError: no seeds, or a number of heads that does not divide 12.

    Source: Vaswani et al. 2017, §3.2.2.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    for h in n_heads:
        if h < 1 or D_MODEL % h:
            raise ValueError(f"n_heads must divide d_model = {D_MODEL}; got {h}.")
    trained = {h: _train(h, seeds) for h in n_heads}
    tested = {h: _test(weights, h, len(seeds)) for h, weights in trained.items()}
    missing = np.array([left for left, _ in tested.values()])  # (n_h, n_seeds)
    blind, _ = _test(_train(1, seeds, blind=True), 1, len(seeds), blind=True)
    bound = np.array([max(0.0, 1 - h / len(PLACES)) for h in n_heads])
    looks = {h: _by_offset(attention[0]) for h, (_, attention) in tested.items() if h in SHOWN}
    parameters = np.array([sum(w[0].size for w in weights) for weights in trained.values()])
    costs = np.array([multiply_adds(N_TOKENS, D_MODEL, h) for h in n_heads])
    return Averaging(tuple(n_heads), seeds, missing, blind, bound, looks, parameters, costs)


def multiply_adds(n: int, d_model: int, n_heads: int, d_k: int | None = None) -> int:
    """Count the multiply-adds of multi-head self-attention over n tokens, matrix product by matrix product and head by head.

    Args:
        n: number of tokens.
        d_model: width.
        n_heads: h.
        d_k: width of a head's queries, keys and values; d_model / h if None.

    Raises:
        ValueError: ``n_heads`` does not divide ``d_model`` and no ``d_k`` is given.

    Source: Vaswani et al. 2017, §3.2.2: the total is similar to that of one head of full width.
    """
    if d_k is None:
        if n_heads < 1 or d_model % n_heads:
            raise ValueError(f"n_heads must divide d_model = {d_model}; got {n_heads}.")
        d_k = d_model // n_heads
    total = 0
    for _ in range(n_heads):
        total += 3 * n * d_model * d_k  # (n, d_model) @ (d_model, d_k), three times
        total += n * d_k * n  # (n, d_k) @ (d_k, n)
        total += n * n * d_k  # (n, n) @ (n, d_k)
    return total + n * (n_heads * d_k) * d_model  # (n, h·d_k) @ (h·d_k, d_model)


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2)) -> Picture:
    """Run ``averaging`` and draw it: what did not arrive against the number of heads, and where one head and four heads look."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = averaging(seeds)

    def say(key: str, **given: str | int) -> str:
        return message(f"experiments.averaging.{key}", lang, **given)

    table = [["h", "d_k", say("smallest"), say("largest"), say("bound"), say("parameters"), say("cost")]]
    for i, h in enumerate(result.n_heads):
        low, high = (f"{value:.3f}" for value in (result.missing[i].min(), result.missing[i].max()))
        counts = (f"{int(count):,}" for count in (result.parameters[i], result.multiply_adds[i]))
        table.append([f"h = {h}", str(D_MODEL // h), low, high, f"{result.bound[i]:.2f}", *counts])
    low, high = (f"{value:.3f}" for value in (result.blind.min(), result.blind.max()))
    table.append([say("blind"), str(D_MODEL), low, high, f"{result.bound[0]:.2f}", *table[1][-2:]])
    table.append([say("looks"), *(f"{place:+d}".replace("-", "−") for place in PLACES), say("elsewhere"), ""])
    for h, looks in result.looks.items():
        for head, row in enumerate(looks):
            there = [float(row[OFFSETS.index(place)]) for place in PLACES]
            numbers = (f"{weight:.2f}" for weight in (*there, row.sum() - sum(there)))
            table.append([say("head", h=h, number=head + 1), *numbers, ""])
    with figures.style():
        drawn = figures.new_figure(900, 440)
        left, right = drawn.subplots(1, 2, width_ratios=(1, 1.15))
        _dots(left, result, figures.COLOURS, say)
        _rows(right, result, figures.SEQUENTIAL, say)
        title = say("title", places=len(PLACES))
        drawn.suptitle(title, fontsize=12)
        drawn.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
        note = say(  # "at least" is rounded down and "at most" up, so that the sentence stays true
            "note",
            seeds=len(result.seeds),
            steps=N_STEPS,
            one=f"{np.floor(100 * result.missing[0].min()) / 100:.2f}",
            two=f"{np.floor(100 * result.missing[1].min()) / 100:.2f}",
            four=f"{np.ceil(1000 * result.missing[2].max()) / 1000:.3f}",
            narrow=f"{np.floor(100 * result.missing[-1].min()) / 100:.2f}",
            blind=f"{result.blind.mean():.2f}",
            bound=f"{result.bound[0]:.2f}",
        )
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _dots(axes: Axes, result: Averaging, colours: Sequence[str], say: Callable[..., str]) -> None:
    places = np.arange(len(result.n_heads))
    for i, row in enumerate(result.missing):
        spread = np.linspace(-0.12, 0.12, len(row)) if len(row) > 1 else np.zeros(1)
        label = say("trained") if i == 0 else None
        axes.plot(i + spread, row, linestyle="", marker="o", markersize=8, color=colours[0], label=label)
    spread = np.linspace(-0.12, 0.12, len(result.blind)) if len(result.blind) > 1 else np.zeros(1)
    axes.plot(spread, result.blind, linestyle="", marker="^", markersize=8, color=colours[1], mfc="none", label=say("blind"))
    axes.hlines(result.bound, places - 0.3, places + 0.3, color=colours[1], linestyle="--", label=say("bound"))
    axes.set_xticks(places, [f"{h}\n$d_k$ = {D_MODEL // h}" for h in result.n_heads])
    axes.set_ylim(-0.04, 1)
    axes.set_xlabel(say("heads_axis"))
    axes.set_ylabel(say("missing_axis"))
    axes.grid(True, axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _rows(axes: Axes, result: Averaging, colours: str, say: Callable[..., str]) -> None:
    shown = np.concatenate(list(result.looks.values()))  # (heads shown, n_offsets)
    names = [say("head", h=h, number=head + 1) for h, looks in result.looks.items() for head in range(len(looks))]
    axes.imshow(shown, cmap=colours, vmin=0, vmax=1, aspect="auto")
    for i, row in enumerate(shown):
        for j, weight in enumerate(row):
            if weight >= 0.1:
                axes.text(j, i, f"{weight:.2f}", ha="center", va="center", color="black" if weight > 0.5 else "white", fontsize=9)
    axes.set_xticks(range(len(OFFSETS)), [f"{offset:+d}".replace("-", "−").replace("+0", "0") for offset in OFFSETS])
    axes.set_yticks(range(len(names)), names)
    axes.axhline(0.5, color="white", linewidth=4)
    axes.set_xlabel(say("offset_axis"))
    axes.set_title(say("looks"))


# --- the layer, its gradient and its training ---


def _sentences(rng: np.random.Generator, n: int, n_seeds: int) -> tuple[NDArray, NDArray]:
    """Inputs (n_seeds, n, n_tokens, d_model) and what each token must deliver, (n_seeds, n, n_tokens, 4)."""
    numbers = rng.standard_normal((n_seeds, n, N_TOKENS, len(PLACES)))
    x = np.zeros((n_seeds, n, N_TOKENS, D_MODEL))
    x[..., :N_TOKENS] = np.eye(N_TOKENS)
    x[..., N_TOKENS:] = numbers
    wanted = [np.roll(numbers[..., k], -place, axis=-1) for k, place in enumerate(PLACES)]
    return x, np.stack(wanted, axis=-1)


def _seen(x: NDArray, blind: bool) -> NDArray:
    """What queries and keys are made from: everything, or the positions alone."""
    if not blind:
        return x
    seen = x.copy()
    seen[..., N_TOKENS:] = 0
    return seen


def _forward(x: NDArray, seen: NDArray, weights: Weights, h: int) -> tuple[NDArray, tuple[NDArray, ...]]:
    w_q, w_k, w_v, w_o = (w[:, np.newaxis] for w in weights)  # (n_seeds, 1, d_model, d_model)
    q, k, v = split_heads(seen @ w_q, h), split_heads(seen @ w_k, h), split_heads(x @ w_v, h)  # (n_seeds, B, h, n, d_k)
    attention = softmax(q @ k.swapaxes(-1, -2) / np.sqrt(D_MODEL // h))  # (n_seeds, B, h, n, n)
    merged = merge_heads(attention @ v)  # (n_seeds, B, n, d_model)
    return merged @ w_o, (q, k, v, attention, merged)


def _gradients(x: NDArray, wanted: NDArray, weights: Weights, h: int, blind: bool) -> Weights:
    """The gradient of the mean squared error, seed by seed, with respect to W^Q, W^K, W^V and W^O."""
    seen = _seen(x, blind)
    output, (q, k, v, attention, merged) = _forward(x, seen, weights, h)
    d_output = np.zeros_like(output)
    d_output[..., : len(PLACES)] = 2 * (output[..., : len(PLACES)] - wanted) / wanted[0].size
    d_heads = split_heads(d_output @ weights[3].swapaxes(-1, -2)[:, np.newaxis], h)
    d_attention = d_heads @ v.swapaxes(-1, -2)
    d_v = attention.swapaxes(-1, -2) @ d_heads
    d_scores = attention * (d_attention - (d_attention * attention).sum(axis=-1, keepdims=True)) / np.sqrt(D_MODEL // h)
    d_q, d_k = d_scores @ k, d_scores.swapaxes(-1, -2) @ q

    def rows(array: NDArray) -> NDArray:
        return array.reshape(len(array), -1, D_MODEL)  # (n_seeds, B, n, d_model) -> (n_seeds, B·n, d_model)

    pairs = ((seen, merge_heads(d_q)), (seen, merge_heads(d_k)), (x, merge_heads(d_v)), (merged, d_output))
    return [rows(before).swapaxes(-1, -2) @ rows(after) for before, after in pairs]


def _train(h: int, seeds: Sequence[int], blind: bool = False) -> Weights:
    """W^Q, W^K, W^V and W^O, each (n_seeds, d_model, d_model), after Adam with a rate that falls in the second half."""
    starts = [np.random.default_rng([seed, h]).standard_normal((4, D_MODEL, D_MODEL)) / np.sqrt(D_MODEL) for seed in seeds]
    weights = list(np.stack(starts, axis=1))  # (4, n_seeds, d_model, d_model)
    first, second = ([np.zeros_like(w) for w in weights] for _ in range(2))
    rng = np.random.default_rng(7)
    for step in range(1, N_STEPS + 1):
        x, wanted = _sentences(rng, BATCH, len(seeds))
        rate = RATE * min(1.0, 2 * (1 - step / N_STEPS) + 0.02)
        for i, gradient in enumerate(_gradients(x, wanted, weights, h, blind)):
            first[i] = 0.9 * first[i] + 0.1 * gradient
            second[i] = 0.99 * second[i] + 0.01 * gradient**2
            mean, square = first[i] / (1 - 0.9**step), second[i] / (1 - 0.99**step)
            weights[i] = weights[i] - rate * mean / (np.sqrt(square) + 1e-9)
    return weights


def _test(weights: Weights, h: int, n_seeds: int, blind: bool = False) -> tuple[NDArray, NDArray]:
    """What is missing on new sentences (n_seeds,), and the mean attention weights (n_seeds, h, n_tokens, n_tokens)."""
    x, wanted = _sentences(np.random.default_rng(99), 200, n_seeds)
    output, (_, _, _, attention, _) = _forward(x, _seen(x, blind), weights, h)
    error = (output[..., : len(PLACES)] - wanted) ** 2
    return error.mean(axis=(1, 2, 3)) / wanted.var(axis=(1, 2, 3)), attention.mean(axis=1)


def _by_offset(attention: NDArray[np.floating]) -> NDArray[np.floating]:
    """(h, n, n) -> (h, n_offsets): how much of a head's weight goes so many places on, averaged over the queries."""
    queries = np.arange(N_TOKENS)
    return np.stack([attention[:, queries, (queries + offset) % N_TOKENS].mean(axis=-1) for offset in OFFSETS], axis=-1)
