"""The measured claims of the chapters: each experiment could have come out otherwise, and shows its numbers.

An experiment is a function of its seeds that returns numbers, and a picture of them that ``lab.experiment(name)`` shows.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from transformer_lite.experiments.saturation import Measured, Scaling, scaling, scaling_picture

if TYPE_CHECKING:
    from transformer_lite.explore.figures import Picture

__all__ = ["Measured", "Scaling", "experiments", "scaling"]


def experiments() -> dict[str, Callable[[str], Picture]]:
    """The experiments by name; each takes the language ("ja" or "en"), runs, and returns its picture."""
    return {"scaling": scaling_picture}
