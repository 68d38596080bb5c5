"""Explorers: pictures that a learner moves, each with its numbers as a table. One module each; see `explorers`.

Importing this room loads neither matplotlib nor ipywidgets; calling an explorer does. With ``TRANSFORMER_LITE_STATIC=1`` an
explorer gives a `figures.Picture` (drawing, table, text) and opens no connection to the browser.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

from transformer_lite.content import Unknown
from transformer_lite.explore.controls import static
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
    "static",
]


class UnknownExplorer(Unknown):
    """No explorer has this name. ``nearest`` holds the names most like it, or all of them."""

    def __init__(self, name: str) -> None:
        super().__init__("explorer", name, explorers(), otherwise=explorers())

    def __str__(self) -> str:
        return message("explore.unknown", name=self.name, nearest=", ".join(self.nearest))


_MODULES = {  # the name that ``lab.explore(name)`` takes, and the module whose ``explorer`` it is
    "qkv-bench": "qkv",
    "scaling": "scaling",
    "path-race": "path_race",
    "wiring-board": "wiring",
    "mask-painter": "masks",
    "head-explorer": "heads",
    "positional-encoding": "positions",
    "normalisation-cube": "norms",
    "block-builder": "blocks",
    "parameter-ledger": "ledger",
    "shift-viewer": "shifting",
    "generator": "generating",
    "attention-map": "attending",
    "crossover": "crossover",
    "family-switch": "families",
}


def explorers() -> dict[str, Callable[..., Any]]:
    """Every explorer by the name that ``lab.explore(name)`` takes; its module is loaded when it is called.

    An explorer takes the language (the one in use if None) and returns a widget, or a `figures.Picture` of its first state when
    ``TRANSFORMER_LITE_STATIC=1``.
    """
    return {name: partial(_open, module) for name, module in _MODULES.items()}


def _open(module: str, lang: str | None = None, **options: Any) -> Any:
    return import_module(f"transformer_lite.explore.{module}").explorer(lang or current(), **options)


def explorer(name: str) -> Callable[..., Any]:
    """The explorer called ``name``; `UnknownExplorer` with the nearest names if there is none."""
    try:
        return explorers()[name]
    except (KeyError, TypeError):  # a name that is no text at all is unknown, too
        raise UnknownExplorer(name) from None
