"""Traps of positional encoding (PE1 to PE11) and of the embedding that it is added to (EM1 to EM9)."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.traps.knobs import Family


def core(
    n_positions: int,
    d_model: int,
    *,
    waves: str = "sine, cosine",
    layout: str = "interleaved",
    exponent: str = "2i/d",
    base: float = 10000.0,
    frequency: str = "falling",
    first: int = 0,
    unit: str = "radians",
    instead: str = "nothing",
) -> tuple[NDArray]:
    """Positional encoding with knobs. No knob: that of the paper.

    Args:
        waves: what the first and the second component of each pair are.
        layout: pairs "interleaved" (2i, 2i + 1), or all first components and then all second ones: "halves".
        exponent: of the base in the denominator, with i the number of the pair: "2i/d", "i/d", or "i/(d/2 - 1)"; or with i the
            number of the component, so that every component has a frequency of its own: "component/d", "2 component/d".
        frequency: "falling", or "rising" (multiplied by the power, not divided by it).
        first: the number of the first position.
        unit: of the angle.
        instead: of waves: the position as a share of the length, "pos/n", "pos/(n - 1)" or "(pos + 1)/n", or "random numbers".
    """
    if instead == "random numbers":
        return (np.random.default_rng(0).normal(size=(n_positions, d_model)),)
    if instead != "nothing":
        return (_ramp(n_positions, d_model, instead),)
    pair, component = np.arange(d_model) // 2, np.arange(d_model)
    with np.errstate(all="ignore"):
        power = {
            "2i/d": 2 * pair / d_model,
            "i/d": pair / d_model,
            "i/(d/2 - 1)": pair / (d_model / 2 - 1),
            "component/d": component / d_model,
            "2 component/d": 2 * component / d_model,
        }[exponent]
        frequencies = base ** (power if frequency == "rising" else -power)  # (d_model,)
    angles = (np.arange(n_positions) + first)[:, np.newaxis] * frequencies  # (n, d_model)
    if unit == "degrees":
        angles = np.deg2rad(angles)
    even, odd = {"sine, cosine": (np.sin, np.cos), "cosine, sine": (np.cos, np.sin), "sine, sine": (np.sin, np.sin)}[waves]
    encoding = np.where(component % 2 == 0, even(angles), odd(angles))
    if layout == "halves":
        encoding = np.concatenate([encoding[:, 0::2], encoding[:, 1::2]], axis=-1)
    return (encoding,)


def _ramp(n_positions: int, d_model: int, instead: str) -> NDArray:
    numbers = np.arange(n_positions, dtype=np.float64)
    column = {
        "pos/n": numbers / n_positions,
        "pos/(n - 1)": numbers / (n_positions - 1),
        "(pos + 1)/n": (numbers + 1) / n_positions,
    }[instead]
    return np.repeat(column[:, np.newaxis], d_model, axis=1)


encoding_family = Family.of(
    core,
    {
        "PE1": ({"waves": "cosine, sine"},),
        "PE2": ({"layout": "halves"}, {"layout": "halves", "exponent": "i/(d/2 - 1)"}),
        "PE3": ({"exponent": "i/d"},),
        "PE4": ({"exponent": "component/d"}, {"exponent": "2 component/d"}),
        "PE5": ({"first": 1},),
        "PE6": ({"base": 1000.0},),  # (base 100 gives what the exponent i/d gives, PE3)
        "PE7": ({"unit": "degrees"},),
        "PE8": tuple({"instead": ramp} for ramp in ("pos/n", "pos/(n - 1)", "(pos + 1)/n")),
        "PE9": ({"instead": "random numbers"},),
        "PE10": ({"frequency": "rising"},),
        "PE11": ({"waves": "sine, sine"},),
    },
)


def embedding(
    token_ids: ArrayLike,
    table: ArrayLike,
    encoding: ArrayLike,
    *,
    factor: str = "√d_model",
    scaled: str = "embedding",
    join: str = "add",
    row: str = "position",
) -> tuple[NDArray]:
    """Embedding and encoding with knobs. No knob: embedding × √d_model + encoding.

    Args:
        factor: what is multiplied with: "√d_model", "1", "1/√d_model", "d_model".
        scaled: the "embedding" or the "sum".
        join: "add", "multiply", put "side by side" or "one below the other" (also "encoding first"), or only one of them.
        row: which row of the encoding a token gets: that of its "position", or that of its "token id".
    """
    token_ids = np.asarray(token_ids)
    table, encoding = np.asarray(table, dtype=np.float64), np.asarray(encoding, dtype=np.float64)
    d_model = table.shape[-1]
    number = {"√d_model": np.sqrt(d_model), "1": 1.0, "1/√d_model": 1 / np.sqrt(d_model), "d_model": float(d_model)}[factor]
    embedded = table[token_ids]  # (..., n, d_model)
    rows = encoding[token_ids] if row == "token id" else encoding[: token_ids.shape[-1]]
    rows = np.broadcast_to(rows, embedded.shape)
    if scaled == "embedding":
        embedded = embedded * number
    match join:
        case "add":
            joined = embedded + rows
        case "multiply":
            joined = embedded * rows
        case "side by side":
            joined = np.concatenate([embedded, rows], axis=-1)
        case "side by side, encoding first":
            joined = np.concatenate([rows, embedded], axis=-1)
        case "one below the other":
            joined = np.concatenate([embedded, rows], axis=-2)
        case "embedding only":
            joined = embedded
        case "encoding only":
            joined = rows
    return (joined * number if scaled == "sum" else joined,)


embedding_family = Family.of(
    embedding,
    {
        "EM1": ({"factor": "1"},),
        "EM2": ({"factor": "1/√d_model"},),
        "EM3": ({"factor": "d_model"},),
        "EM4": ({"scaled": "sum"},),
        "EM5": ({"join": "side by side"}, {"join": "side by side, encoding first"}, {"join": "one below the other"}),
        "EM6": ({"join": "multiply"},),
        "EM7": ({"join": "embedding only"},),
        "EM8": ({"row": "token id"},),
        "EM9": ({"join": "encoding only"},),
    },
)
