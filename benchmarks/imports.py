"""How long it takes to import the course: ``python benchmarks/imports.py``.

Each figure is the median of 7 fresh processes, measured inside them around the import, so that Python's own start is not in it.
"""

import importlib.util
import statistics
import subprocess
import sys

BAR = 0.15  # seconds, for each
RUNS = 7

MEASURE = """
import time
start = time.perf_counter()
{statement}
print(time.perf_counter() - start)
"""


def seconds(statement: str) -> list[float]:
    """Times of ``statement`` in fresh processes; the first, which may find a cold disk, is not counted."""
    command = [sys.executable, "-c", MEASURE.format(statement=statement)]
    return [float(subprocess.run(command, capture_output=True, text=True, check=True).stdout) for _ in range(RUNS + 1)][1:]


def main() -> int:
    """Print the figures; 1 if one is over the bar."""
    statements = {"import transformer_lite": "transformer_lite", "from transformer_lite import lab": "transformer_lite.lab"}
    over = False
    for statement, module in statements.items():
        if importlib.util.find_spec(module) is None:
            print(f"{statement:36} not there")
            over = True
            continue
        times = seconds(statement)
        median = statistics.median(times)
        over |= median > BAR
        verdict = "over the bar" if median > BAR else "ok"
        spread = f"{min(times):.3f} to {max(times):.3f}"
        print(f"{statement:36} {median:.3f} s ({spread}), {median / BAR:.2f} of the bar of {BAR} s: {verdict}")
    return int(over)


if __name__ == "__main__":
    sys.exit(main())
