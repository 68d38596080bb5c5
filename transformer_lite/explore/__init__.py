"""Explorers: pictures that a learner moves, each with its numbers as a table. Section 3.2.1 of the paper so far.

Importing this room loads neither matplotlib nor ipywidgets; calling an explorer does. With ``TRANSFORMER_LITE_STATIC=1`` an
explorer gives a `figures.Picture` (drawing, table, text) and opens no connection to the browser.
"""

from __future__ import annotations

import difflib
import os
from collections.abc import Callable, Sequence
from typing import Any

from transformer_lite.explore.figures import Lines, Matrix, Picture, attention_picture, lines_picture, matrices_picture
from transformer_lite.language import current, message

__all__ = [
    "Lines",
    "Matrix",
    "Picture",
    "UnknownExplorer",
    "attention_picture",
    "explorer",
    "explorers",
    "lines_picture",
    "matrices_picture",
    "qkv_bench",
    "scaling_bench",
]


class UnknownExplorer(KeyError):
    """No explorer has this name. ``nearest`` holds the names most like it, or all of them."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.nearest = difflib.get_close_matches(str(name), explorers(), n=3, cutoff=0.4) or list(explorers())
        super().__init__(name)

    def __str__(self) -> str:
        return message("explore.unknown", name=self.name, nearest=", ".join(self.nearest))


def qkv_bench(
    lang: str | None = None,
    tokens: Sequence[str] | None = None,
    *,
    keys: Any = None,
    values: Any = None,
    query: Any = None,
) -> Any:
    """The Q·K·V bench: turn and stretch one query in the plane, and see scores, weights and output follow.

    Args:
        lang: ``"ja"`` or ``"en"``; the language in use if None.
        tokens: 1 to 10 names; 犬, 猫, 追いかけた (dog, cat, chased) if None.
        keys: (n, 2) between −4 and 4; made for the tokens if None.
        values: (n, 2) between −4 and 4; made for the tokens if None.
        query: (2,), no longer than 4; where the bench starts.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.

    Raises:
        ValueError: too many tokens, or arrays that do not fit them.
    """
    from transformer_lite.explore import qkv

    start = qkv.start(lang or current(), tokens, keys, values, query)
    return qkv.picture(start) if static() else qkv.bench(start)


def scaling_bench(lang: str | None = None) -> Any:
    """The d_k slider: how scores, weights, entropy and gradient change with d_k, with and without the division by √d_k.

    Returns:
        A widget; a `figures.Picture` of its first state when ``TRANSFORMER_LITE_STATIC=1``.
    """
    from transformer_lite.explore import scaling

    return scaling.picture(lang or current()) if static() else scaling.bench(lang or current())


def explorers() -> dict[str, Callable[..., Any]]:
    """Every explorer by the name that ``lab.explore(name)`` takes."""
    return {"qkv-bench": qkv_bench, "scaling": scaling_bench}


def explorer(name: str) -> Callable[..., Any]:
    """The explorer called ``name``; `UnknownExplorer` with the nearest names if there is none."""
    try:
        return explorers()[name]
    except (KeyError, TypeError):  # a name that is no text at all is unknown, too
        raise UnknownExplorer(name) from None


def static() -> bool:
    """Whether explorers must show pictures only (``TRANSFORMER_LITE_STATIC=1``), as when notebooks are built."""
    return os.environ.get("TRANSFORMER_LITE_STATIC") == "1"
