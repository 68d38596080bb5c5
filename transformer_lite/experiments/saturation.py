"""Why the dot products are divided by √d_k, measured: section 3.2.1 of the paper and its footnote on the variance.

The paper *suspects* that large dot products push softmax to where its gradients are extremely small. Here random queries meet
random keys of growing size, without a division, with the paper's and with one by d_k itself, and four numbers say what became of
the weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import softmax
from transformer_lite.explore.maths import entropy, softmax_jacobian_norm
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

SIZES = (4, 8, 16, 32, 64, 128, 256, 512)
N_KEYS = 10
N_QUERIES = 400


class Measured(NamedTuple):
    """Four measurements, each (n_seeds, n_sizes)."""

    variance: NDArray[np.floating]  # of the numbers that enter softmax
    entropy: NDArray[np.floating]  # of one query's weights, in nats, averaged over the queries; ln n_keys if all are equal
    largest: NDArray[np.floating]  # the largest weight of a query, averaged over the queries
    gradient: NDArray[np.floating]  # Frobenius norm of softmax's Jacobian, averaged over the queries


class Scaling(NamedTuple):
    """What ``scaling`` returns: the sizes d_k, the seeds, and what was measured for each way to divide."""

    d_k: NDArray[np.integer]
    seeds: tuple[int, ...]
    n_keys: int
    unscaled: Measured  # q·k as it is
    scaled: Measured  # divided by √d_k, as in the paper
    flattened: Measured  # divided by d_k, the root forgotten


def scaling(seeds: Sequence[int] = (0, 1, 2)) -> Scaling:
    """Let 400 random queries attend to 10 random keys each, for d_k from 4 to 512, and divide q·k by 1, by √d_k and by d_k.

    All components are independent with mean 0 and variance 1, as the paper's footnote assumes. All three ways see the same
    vectors.

    Args:
        seeds: one repetition of the whole experiment each; at least one.

    Returns:
        ``Scaling``: d_k (n_sizes,), and three ``Measured`` of (n_seeds, n_sizes).

    Raises:
        ValueError: no seeds.

    Source: Vaswani et al. 2017, §3.2.1 and footnote 4.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    products = [[_dot_products(d_k, seed) for d_k in SIZES] for seed in seeds]
    ways = []
    for power in (0.0, 0.5, 1.0):
        measured = [[_measure(x / d_k**power) for x, d_k in zip(row, SIZES, strict=True)] for row in products]
        ways.append(Measured(*np.moveaxis(np.array(measured), -1, 0)))  # (n_seeds, n_sizes, 4) -> four of (n_seeds, n_sizes)
    return Scaling(np.array(SIZES), seeds, N_KEYS, *ways)


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2)) -> Picture:
    """Run ``scaling`` and draw it: one panel for each of the four measurements, against d_k.

    A line is the mean over the seeds, the band around it reaches from the smallest to the largest; the table holds the means.
    """
    from transformer_lite.explore import figures

    lang = lang or current()
    result = scaling(seeds)
    # The d_k slider draws the paper's way first and no division second, so the colours and marks agree.
    ways = {message(f"experiments.scaling.{way}", lang): getattr(result, way) for way in ("scaled", "unscaled", "flattened")}
    table = [["d_k", *(str(d_k) for d_k in result.d_k)]]
    with figures.style():
        drawn = figures.new_figure(900, 680)
        for axes, name in zip(drawn.subplots(2, 2).flat, Measured._fields, strict=True):
            title = message(f"experiments.scaling.{name}", lang)
            means = {way: getattr(measured, name).mean(axis=0) for way, measured in ways.items()}
            unit = message(f"experiments.scaling.{name}_axis", lang)
            panel = figures.Lines(result.d_k, means, title, "$d_k$", unit, log_x=True, log_y=name == "variance")
            figures.draw_lines(axes, panel, legend=None)
            _band(axes, result.d_k, [getattr(measured, name) for measured in ways.values()], figures.COLOURS)
            digits = 3 if name == "variance" else 2
            table += [[f"{title}, {way}", *(figures.number(mean, digits) for mean in means[way])] for way in means]
        title = message("experiments.scaling.title", lang, n_keys=result.n_keys)
        drawn.suptitle(title, fontsize=12)
        drawn.legend(handles=drawn.axes[0].get_lines(), loc="outside lower center", ncols=len(ways), frameon=False)
        note = message("experiments.scaling.note", lang, **_last_numbers(result))
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _band(axes: Axes, d_k: NDArray[np.integer], repetitions: list[NDArray[np.floating]], colours: Sequence[str]) -> None:
    for values, colour in zip(repetitions, colours, strict=False):
        axes.fill_between(d_k, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.25, linewidth=0)


def _last_numbers(result: Scaling) -> dict[str, str | int]:
    """What the sentence below the picture says: the right-hand end of the curves, averaged over the seeds."""

    def last(way: Measured, name: str, digits: int) -> str:
        return f"{getattr(way, name)[:, -1].mean():.{digits}f}"

    return {
        "seeds": len(result.seeds),
        "d_k": int(result.d_k[-1]),
        "variance": last(result.unscaled, "variance", 0),
        "variance_scaled": last(result.scaled, "variance", 2),
        "largest": last(result.unscaled, "largest", 2),
        "largest_scaled": last(result.scaled, "largest", 2),
        "gradient": last(result.unscaled, "gradient", 2),
        "gradient_scaled": last(result.scaled, "gradient", 2),
        "entropy_flat": last(result.flattened, "entropy", 2),
        "entropy_most": f"{np.log(result.n_keys):.2f}",
    }


def _dot_products(d_k: int, seed: int) -> NDArray[np.floating]:
    rng = np.random.default_rng([seed, d_k])
    queries = rng.standard_normal((N_QUERIES, 1, d_k))
    keys = rng.standard_normal((N_QUERIES, N_KEYS, d_k))  # no two queries share a key
    return (queries @ keys.swapaxes(-1, -2))[:, 0]  # (n_queries, 1, n_keys) -> (n_queries, n_keys)


def _measure(scores: NDArray[np.floating]) -> tuple[float, float, float, float]:
    weights = softmax(scores, axis=-1)
    return scores.var(), entropy(weights).mean(), weights.max(axis=-1).mean(), softmax_jacobian_norm(weights).mean()
