"""The verbs that show: explore and experiment."""

from __future__ import annotations

from typing import Any

from transformer_lite import experiments as experiments_room
from transformer_lite import explore as explore_room
from transformer_lite.content import Unknown
from transformer_lite.lab.session import friendly, in_notebook, say, static
from transformer_lite.lab.translating import look
from transformer_lite.language import current, message

OF_A_TRANSLATOR = ("generator", "attention-map")  # explorers that ask a trained translator what it does with a sentence


@friendly
def explore(name: str) -> Any:
    """Open an explorer by name, such as ``"qkv-bench"``.

    Raises:
        LabError: there is no such explorer (the nearest names are given).
    """
    show = explore_room.explorer(name)
    if not static() and not in_notebook():
        say(message("lab.explorer_needs_notebook", name=name))
    return show(current(), look=look) if name in OF_A_TRANSLATOR else show(current())


@friendly
def experiment(name: str) -> Any:
    """Run an experiment by name, such as ``"scaling"``, and return its picture with its table of numbers.

    Raises:
        LabError: there is no such experiment (the nearest names are given).
    """
    experiments = experiments_room.experiments()
    if not isinstance(name, str) or name not in experiments:
        raise Unknown("experiment", name, experiments)
    return experiments[name](current())
