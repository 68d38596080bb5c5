"""The checker's figures: which wrong version is recognised as what, how long a judgement takes, how long the first one.

python benchmarks/judge.py [seeds]
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests" / "practice")]

import practice_answers as answers  # noqa: E402

from transformer_lite import practice  # noqa: E402

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


def traps_table(seeds: int) -> int:
    """Print a line per wrong version and return how many were called something else in any draw."""
    print(f"{'exercise':30} {'wrong version':28} {'trap':8} {'recognised as':16} misnamed of {seeds}")
    misnamed = 0
    for exercise, versions in answers.WRONG.items():
        for keys, function in versions:
            results = [practice.judge(exercise, function, seed=seed) for seed in range(seeds)]
            wrong = sum(result.traps != keys for result in results)
            misnamed += wrong
            said = " or ".join(sorted({"+".join(result.traps) or "-" for result in results}))
            print(f"{exercise:30} {function.__name__.strip('<>'):28} {'+'.join(keys):8} {said:16} {wrong}")
    for exercise, pair, function in answers.PAIRS:
        results = [practice.judge(exercise, function, seed=seed) for seed in range(seeds)]
        wrong = sum(set(result.traps) != pair for result in results)
        misnamed += wrong
        print(f"{exercise:30} {'two at once':28} {'+'.join(sorted(pair)):8} {'+'.join(results[0].traps):16} {wrong}")
    return misnamed


def rejected() -> int:
    """How many right versions do not pass."""
    return sum(practice.judge(exercise, one).status != "pass" for exercise, versions in answers.RIGHT.items() for one in versions)


def median_ms(exercise: str, function: object, times: int = 40) -> float:
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
    seeds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    misnamed = traps_table(seeds)
    versions = sum(map(len, answers.WRONG.values())) + len(answers.PAIRS)
    right = sum(map(len, answers.RIGHT.values()))
    print(f"\nwrong versions: {versions}, misnamed in {seeds} draws each: {misnamed}")
    print(f"right versions: {right}, not passed: {rejected()}")
    print(f"judge on attention, warm, median: right {median_ms('attention', answers.attention_plain):.1f} ms (limit 60)")
    print(f"                                  no scale (AT1) {median_ms('attention', answers.at1):.1f} ms")
    print(f"                                  two at once {median_ms('attention', answers.no_scale_and_keys):.1f} ms")
    print(f"first check of a fresh process: right {first_check_seconds('/ np.sqrt(queries.shape[-1])'):.2f} s (limit 1)")
    print(f"                                no scale, named {first_check_seconds(''):.2f} s")


if __name__ == "__main__":
    main()
