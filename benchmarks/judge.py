"""The checker's figures: the catalogue of traps, how long a judgement takes, how long the first one of a process.

python benchmarks/judge.py [seeds]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "practice")]

import catalogue  # noqa: E402

from transformer_lite import practice  # noqa: E402
from transformer_lite.explore.tables import Table  # noqa: E402

ATTENTION_BAR, BAR, FIRST_BAR = 60, 150, 1  # ms, ms, s
FIRST = """
import time
start = time.perf_counter()
import numpy as np
from transformer_lite import practice
def attention(queries, keys, values):
    scores = queries @ keys.swapaxes(-1, -2) {scale}
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights /= weights.sum(axis=-1, keepdims=True)
    return weights @ values, weights
practice.judge("attention", attention).text("en")
print(time.perf_counter() - start)
"""


def off_by_a_little(function: Callable[..., Any]) -> Callable[..., Any]:
    """A mistake that nobody listed, so that every trap and every pair of traps is tried in vain."""

    def wrong(*arguments: Any) -> Any:
        result = function(*arguments)
        return tuple(1.013 * one for one in result) if isinstance(result, tuple) else 1.013 * result

    return wrong


def median_ms(exercise: str, function: Callable[..., Any], times: int = 15) -> float:
    """The median of warm judgements, verdict in words included."""
    practice.judge(exercise, function)
    taken = []
    for _ in range(times):
        start = time.perf_counter()
        practice.judge(exercise, function).text("ja")
        taken.append(time.perf_counter() - start)
    return 1000 * statistics.median(taken)


def first_check_seconds(scale: str) -> float:
    """The first judgement of a fresh process, imports included: the median of three."""
    code = FIRST.replace("{scale}", scale)
    runs = [subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT) for _ in range(3)]
    return statistics.median(float(run.stdout) for run in runs)


def main() -> None:
    catalogue.main(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    wrong, right = catalogue.versions()
    rows = []
    for exercise in practice.exercises():
        times = [
            median_ms(exercise, right[exercise][0]),
            median_ms(exercise, wrong[exercise][0][1]),
            median_ms(exercise, off_by_a_little(right[exercise][0])),
        ]
        rows.append([exercise, *(f"{one:.1f}" for one in times)])
    header = ["exercise", "right", "a trap", "not recognised (all pairs tried)"]
    print(Table(f"\njudge, warm, median in ms (bar {BAR}; attention {ATTENTION_BAR})", header, rows, row_headers=True))
    seconds = first_check_seconds("/ np.sqrt(queries.shape[-1])"), first_check_seconds("")
    print(f"\nfirst check of a fresh process (bar {FIRST_BAR} s): {seconds[0]:.2f} s right, {seconds[1]:.2f} s with a trap named")


if __name__ == "__main__":
    main()
