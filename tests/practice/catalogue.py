"""Proves the catalogue of traps: judges every wrong version written by hand, under several draws, and prints a table.

python tests/practice/catalogue.py [number of seeds]

Ends with 1 if any version is called by another name than its own, any right version is rejected, or any exercise has none.
The versions stand in the ``*_answers.py`` beside this file: ``WRONG`` maps an exercise to (trap or traps, function) pairs or to
{trap: functions}, ``RIGHT`` to functions.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections import defaultdict
from pathlib import Path

HERE = Path(__file__).resolve().parent
os.environ.setdefault("TRANSFORMER_LITE_RECORD", "0")
sys.path.insert(0, str(HERE))

from transformer_lite import practice  # noqa: E402
from transformer_lite.explore.tables import Table  # noqa: E402


def versions() -> tuple[dict[str, list], dict[str, list]]:
    """All wrong and right versions by exercise."""
    wrong, right = defaultdict(list), defaultdict(list)
    for path in sorted(HERE.glob("*_answers.py")):
        module = importlib.import_module(path.stem)
        for exercise, entries in module.WRONG.items():
            if isinstance(entries, dict):
                entries = [(key, function) for key, functions in entries.items() for function in functions]
            wrong[exercise] += [((keys,) if isinstance(keys, str) else keys, function) for keys, function in entries]
        for exercise, functions in module.RIGHT.items():
            right[exercise] += functions
    return wrong, right


def _name(function: object) -> str:
    return getattr(function, "__name__", type(function).__name__)


def main(seeds: int = 8) -> int:
    """Print the table and return the exit code."""
    wrong, right = versions()
    rows, failures = [], []
    for exercise in practice.exercises():
        named, misnamed = 0, 0
        for keys, function in wrong[exercise]:
            for seed in range(seeds):
                result = practice.judge(exercise, function, seed=seed)
                certainty = "exact" if keys else "none"  # a mistake that the catalogue has no name for
                if result.traps == keys and result.certainty == certainty and result.status in ("wrong", "variant"):
                    named += 1
                else:
                    misnamed += 1
                    said = "+".join(result.traps) or result.status
                    failures.append(f"{exercise}: {'+'.join(keys)} ({_name(function)}, seed {seed}) was called {said}")
        rejected = [_name(one) for one in right[exercise] if practice.judge(exercise, one, seed=1).status != "pass"]
        failures += [f"{exercise}: the right version {name} was rejected" for name in rejected]
        if not wrong[exercise] or not right[exercise]:
            failures.append(f"{exercise}: no wrong or no right version is written for it")
        traps = len({key for keys, _ in wrong[exercise] for key in keys})
        rows.append([exercise, *map(str, (traps, len(wrong[exercise]), named, misnamed, len(right[exercise]), len(rejected)))])
    total = ["all", *(str(sum(int(row[column]) for row in rows)) for column in range(1, 7))]
    header = ["exercise", "traps", "wrong versions", f"named ({seeds} seeds)", "misnamed", "right versions", "rejected"]
    print(Table("The catalogue of traps", header, [*rows, total], row_headers=True))
    for failure in failures:
        print(failure)
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*(int(argument) for argument in sys.argv[1:2])))
