"""What takes too long to measure while a learner waits, measured once and kept in ``data/<name>.json`` beside this module.

``python -m transformer_lite.experiments.stored NAME…`` measures the named experiments again, with the ``measure_all()`` of their
modules, and writes what came out. The tests assert on the stored numbers what the chapters say of them.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from transformer_lite.experiments import _MODULES

FOLDER = Path(__file__).parent / "data"
DIGITS = 4  # significant digits of a stored number: more than any picture or sentence shows


def read(name: str) -> dict[str, Any]:
    """The stored numbers of the experiment ``name``; every call gives a copy of its own.

    Raises:
        FileNotFoundError: nothing is stored under that name.
    """
    path = FOLDER / f"{name}.json"
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing; `python -m transformer_lite.experiments.stored {name}` measures it and writes it."
        )
    return json.loads(path.read_text("utf-8"))


def write(name: str, data: Mapping[str, Any]) -> Path:
    """Keep ``data`` as the numbers of the experiment ``name``, floats rounded to four significant digits.

    Args:
        name: the experiment; the file is called after it.
        data: dictionaries with strings as keys, sequences, NumPy arrays and numbers, strings, Booleans, None.

    Returns:
        The file written.

    Raises:
        ValueError: a number that is NaN or infinite.
        TypeError: something that JSON has no form for.
    """
    text = _pretty(_plain(data)) + "\n"
    FOLDER.mkdir(exist_ok=True)
    path = FOLDER / f"{name}.json"
    path.write_text(text, "utf-8", newline="\n")
    return path


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure the named experiments again and write their files."""
    parser = argparse.ArgumentParser(prog="python -m transformer_lite.experiments.stored", description=main.__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", choices=list(_MODULES))
    for name in parser.parse_args(arguments).names:
        module = import_module(f"transformer_lite.experiments.{_MODULES[name]}")
        if not hasattr(module, "measure_all"):
            parser.error(f"the experiment {name} runs in full whenever it is shown: there is nothing to store.")
        print(f"{name} …", flush=True)
        begun = time.monotonic()
        path = write(name, module.measure_all())
        print(f"{path}  ({path.stat().st_size} bytes, {time.monotonic() - begun:.0f} s)", flush=True)
    return 0


def _plain(value: Any) -> Any:
    """``value`` as JSON knows it, its floats rounded."""
    if hasattr(value, "tolist"):  # NumPy's arrays and numbers, PyTorch's tensors
        value = value.tolist()
    if isinstance(value, Mapping):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(each) for each in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}")
    return value


def _pretty(value: Any, indent: int = 0) -> str:
    """One line for each entry of a dictionary, so that two measurements can be compared line by line."""
    if not isinstance(value, dict) or not value:
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    space = " " * (indent + 1)
    entries = (f"{space}{json.dumps(key, ensure_ascii=False)}: {_pretty(each, indent + 1)}" for key, each in value.items())
    return "{\n" + ",\n".join(entries) + "\n" + " " * indent + "}"


if __name__ == "__main__":
    sys.exit(main())
