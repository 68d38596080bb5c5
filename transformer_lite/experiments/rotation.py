"""Is PE(pos + k) a linear function of PE(pos)? Section 3.5 of the paper says so for every fixed k; here it is fitted and tested.

For each way to make position vectors and each offset k, least squares looks for ONE matrix that takes the vector of a position
to that of the position k later. It sees half of the positions and is judged on the other half. A second part looks at the dot
products of position vectors, before and after two random projections.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from transformer_lite.equations import positional_encoding
from transformer_lite.experiments.order import power_of_ten
from transformer_lite.language import current, message
from transformer_lite.traps.positions import core

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

D_FITTED, N_FITTED = 16, 400  # width and number of the position vectors that are fitted
OFFSETS = (1, 5, 10, 50)
D_MODEL = 512  # of the dot products
PLACES, REACH = (60, 200), 50  # dot products of these positions with all up to this far away
WAYS = ("paper", "swapped", "slow", "unpaired", "sines", "random")
_KNOBS = {  # how each way differs from the paper's formula
    "paper": {},
    "swapped": {"waves": "cosine, sine"},  # PE1
    "slow": {"exponent": "i/d"},  # PE3
    "unpaired": {"exponent": "component/d"},  # PE4
    "sines": {"waves": "sine, sine"},  # PE11
}


class Rotation(NamedTuple):
    """What ``rotation`` returns."""

    ways: tuple[str, ...]
    offsets: tuple[int, ...]
    seeds: tuple[int, ...]
    error: NDArray[np.floating]  # (n_ways, n_offsets, n_seeds), on unseen positions, as a share of the vectors' size
    built: NDArray[np.floating]  # (n_offsets,), largest error of the paper's PE against rotations built from k alone
    distances: NDArray[np.integer]  # (n_distances,), from −REACH to REACH
    plain: NDArray[np.floating]  # (n_places, n_distances), PE(p)·PE(p + distance)
    projected: NDArray[np.floating]  # (n_seeds, n_places, n_distances), the same after random W^Q and W^K, divided by √d_model


def rotation(seeds: Sequence[int] = (0, 1, 2)) -> Rotation:
    """Fit one linear map for each offset, for the paper's encoding, for trap versions of it and for random vectors.

    Args:
        seeds: each draws which half of the positions is fitted, the random vectors and the random projections; at least one.

    Returns:
        ``Rotation``. An error of 1 is what a map to the zero vector would have; 1e-14 is rounding.

    Raises:
        ValueError: no seeds.

    Source: Vaswani et al. 2017, §3.5.
    """
    seeds = tuple(int(seed) for seed in seeds)
    if not seeds:
        raise ValueError("seeds must hold at least one integer; got none.")
    error = [[[_fitted(_vectors(way, seed), k, seed) for seed in seeds] for k in OFFSETS] for way in WAYS]
    encoding = positional_encoding(N_FITTED, D_FITTED)
    built = [np.abs(encoding[:-k] @ rotation_matrix(k, D_FITTED) - encoding[k:]).max() for k in OFFSETS]
    distances = np.arange(-REACH, REACH + 1)
    places = np.array(PLACES)[:, np.newaxis]  # (n_places, 1)
    long = positional_encoding(max(PLACES) + REACH + 1, D_MODEL)
    ours, others = long[places], long[places + distances]  # (n_places, 1, d), (n_places, n_distances, d)
    projected = []
    for seed in seeds:
        w_q, w_k = np.random.default_rng([seed, 7]).standard_normal((2, D_MODEL, D_MODEL)) / np.sqrt(D_MODEL)
        projected.append(((ours @ w_q) * (others @ w_k)).sum(axis=-1) / np.sqrt(D_MODEL))
    plain = (ours * others).sum(axis=-1)
    return Rotation(WAYS, OFFSETS, seeds, np.array(error), np.array(built), distances, plain, np.array(projected))


def rotation_matrix(k: int, d_model: int) -> NDArray[np.float64]:
    """The matrix that turns every pair by k times its frequency: ``PE(pos) @ matrix`` is PE(pos + k), for every pos.

    Args:
        k: the offset; negative ones go back.
        d_model: width, even.

    Returns:
        (d_model, d_model), 2 × 2 rotations along the diagonal. It depends on k, never on pos.

    Source: Vaswani et al. 2017, §3.5, and the addition theorems of sine and cosine.
    """
    angles = k * 10000.0 ** (-np.arange(0, d_model, 2) / d_model)  # (d_model / 2,)
    matrix, first = np.zeros((d_model, d_model)), np.arange(0, d_model, 2)
    matrix[first, first] = matrix[first + 1, first + 1] = np.cos(angles)
    matrix[first + 1, first], matrix[first, first + 1] = np.sin(angles), -np.sin(angles)
    return matrix


def picture(lang: str | None = None, seeds: Sequence[int] = (0, 1, 2)) -> Picture:
    """Run ``rotation`` and draw it: the errors of the fits, and the dot products before and after random projections."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result = rotation(seeds)
    names = [message(f"experiments.rotation.{way}", lang) for way in result.ways]
    titles = [message(f"experiments.rotation.{panel}", lang) for panel in ("error", "plain", "projected")]
    with figures.style():
        drawn = figures.new_figure(960, 640)
        grid = drawn.subplot_mosaic([["error", "error"], ["plain", "projected"]], height_ratios=[1, 1])
        _dots(grid["error"], result.error, figures.COLOURS, figures.MARKERS)
        grid["error"].set_yticks(range(len(names)), names)
        grid["error"].invert_yaxis()
        grid["error"].set_title(titles[0])
        grid["error"].set_xlabel(message("experiments.rotation.error_axis", lang))
        curves = [(grid["plain"], result.plain, titles[1]), (grid["projected"], result.projected[0], titles[2])]
        for axes, values, title in curves:
            series = {f"p = {place}": row for place, row in zip(PLACES, values, strict=True)}
            figures.draw_lines(axes, figures.Lines(result.distances, series, title, "$k$", ""))
        title = message("experiments.rotation.title", lang)
        drawn.suptitle(title, fontsize=12)
        table = [["", *(f"k = {k}" for k in result.offsets)]]
        for name, row in zip(names, result.error.max(axis=-1), strict=True):
            table.append([message("experiments.rotation.error_of", lang, way=name), *(power_of_ten(value) for value in row)])
        products = [result.plain[0, REACH + k] for k in (0, *result.offsets)]
        table.append([titles[1], *(f"{value:.1f}" for value in products[1:])])
        kept = [i for i, way in enumerate(result.ways) if way in ("paper", "swapped", "slow")]
        broken = [i for i in range(len(result.ways)) if i not in kept]
        note = message(
            "experiments.rotation.note",
            lang,
            seeds=len(result.seeds),
            n=N_FITTED,
            d=D_FITTED,
            kept=power_of_ten(result.error[kept].max()),
            broken=f"{result.error[broken].min():.2f}",
            d_model=D_MODEL,
            products=" / ".join(f"{value:.1f}" for value in products[:4]),
        )
        return figures.picture(drawn, title=title, table=table, text=note, lang=lang)


def _dots(axes: Axes, error: NDArray[np.floating], colours: Sequence[str], markers: Sequence[str]) -> None:
    for i, row in enumerate(error):
        values = row.ravel()
        axes.plot(values, i + np.linspace(-0.25, 0.25, values.size), linestyle="", marker=markers[i], color=colours[i])
    axes.set_xscale("log")
    axes.set_xlim(1e-17, 30)
    axes.set_xticks([1e-16, 1e-12, 1e-8, 1e-4, 1.0])
    axes.grid(True, axis="x", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)


def _vectors(way: str, seed: int) -> NDArray[np.floating]:
    """(N_FITTED, D_FITTED): the position vectors of one way."""
    if way == "random":
        return np.random.default_rng([seed, 5]).standard_normal((N_FITTED, D_FITTED))
    return core(N_FITTED, D_FITTED, **_KNOBS[way])[0]


def _fitted(vectors: NDArray[np.floating], k: int, seed: int) -> float:
    """Error of the best linear map from position to position + k, on positions that it was not fitted to."""
    here, there = vectors[:-k], vectors[k:]
    order = np.random.default_rng([seed, k]).permutation(len(here))
    seen, unseen = order[: len(here) // 2], order[len(here) // 2 :]
    matrix, *_ = np.linalg.lstsq(here[seen], there[seen], rcond=None)
    return float(np.linalg.norm(here[unseen] @ matrix - there[unseen]) / np.linalg.norm(there[unseen]))
