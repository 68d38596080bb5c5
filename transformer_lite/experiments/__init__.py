"""The measured claims of the chapters: each experiment could have come out otherwise, and shows its numbers.

An experiment is a module with a function of its seeds that returns numbers, and ``picture(lang)``, which runs it and draws what
came out; ``lab.experiment(name)`` shows that.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformer_lite.explore.figures import Picture

__all__ = ["experiments"]

_MODULES = {  # the name that ``lab.experiment(name)`` takes, and the module whose ``picture`` it is
    "scaling": "saturation",
    "paths": "paths",
    "look-up": "look_up",
    "masking": "masking",
    "heads": "averaging",
    "order": "order",
    "rotation": "rotation",
    "normalisation": "normalisation",
    "depth": "depth",
    "leak": "leak",
    "stability": "stability",
    "longer": "longer",
    "recall": "recall",
    "growth": "growth",
    "families": "families",
}


def experiments() -> dict[str, Callable[[str], Picture]]:
    """The experiments by name; each takes the language ("ja" or "en"), runs, and returns its picture."""
    return {name: partial(_run, module) for name, module in _MODULES.items()}


def _run(module: str, lang: str) -> Picture:
    return import_module(f"transformer_lite.experiments.{module}").picture(lang)
