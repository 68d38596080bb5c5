"""What grows with n², and what does not: the operations of a layer, and the time and memory of attention, measured.

The first panel is counted: which share of a layer's multiply-adds the two products of attention have, whose number grows with n².
The others are measured, with four heads of the width of the paper's base model (64): attention that makes all weights at once
(`equations.scaled_dot_product_attention`), attention by blocks of queries (`equations.blocked_attention`), and PyTorch's
``scaled_dot_product_attention``.

Time is processor time on one thread, the fastest of several calls. Memory is the most that is held at once during one call, its
inputs not counted: for NumPy the bytes that Python's tracemalloc sees, for PyTorch, whose memory tracemalloc does not see, the
growth of a fresh process (Linux). What is shown was measured once (see `stored`); one length is measured anew for the picture.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from transformer_lite.equations import blocked_attention, layer_cost, scaled_dot_product_attention
from transformer_lite.experiments import stored
from transformer_lite.language import current, message

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from transformer_lite.explore.figures import Picture

WIDTHS = (512, 1024)  # d_model of the paper's base and big model; d_ff is four times as wide in both
SHARE_LENGTHS = tuple(2**i for i in range(6, 17))
SHARES_SHOWN = (128, 256, 512, 1024, 3072, 8192, 32768)
WAYS = ("explicit", "blocked", "torch")
N_HEADS = 4
D_K = 64
LENGTHS = (128, 256, 512, 1024, 2048, 4096)
UNIT = 512  # times are multiples of the explicit way's at this length
FITTED = 512  # slopes are those from this length on: below, the calls themselves cost as much as their work
RUNS = (0, 1, 2)
REPEATS = 8
LIVE_LENGTH = 1024

Way = Callable[[], object]


# --- what is counted ---


def quadratic_share(n: int, d_model: int, d_ff: int | None = None) -> float:
    """The share of a layer's multiply-adds that grows with n²: the scores and the weighted sum, n / (6 d_model + n) in the paper.

    Args:
        n: number of tokens.
        d_model: width.
        d_ff: inner width of the feed-forward network; 4 d_model if None, as in the paper.

    Source: Vaswani et al. 2017, §3.2, §3.3 and table 1.
    """
    cost = layer_cost(n, d_model, 4 * d_model if d_ff is None else d_ff)
    return (cost.scores + cost.weighted_sum) / sum(cost)


# --- what is measured ---


def ways(n: int, seed: int) -> dict[str, Way]:
    """Attention over the same n random tokens, in 8 heads, ready to be called in each of the three `WAYS`.

    Source: Vaswani et al. 2017, eq. 1.
    """
    import torch

    q, k, v = np.random.default_rng([seed, n]).standard_normal((3, N_HEADS, n, D_K), dtype=np.float32)
    tensors = [torch.from_numpy(each).unsqueeze(0) for each in (q, k, v)]  # (1, h, n, d_k), as PyTorch's kernel expects
    return {
        "explicit": lambda: scaled_dot_product_attention(q, k, v).output,
        "blocked": lambda: blocked_attention(q, k, v),
        "torch": lambda: torch.nn.functional.scaled_dot_product_attention(*tensors),
    }


def times(seed: int, lengths: Sequence[int] = LENGTHS, repeats: int = REPEATS) -> dict[str, list[float]]:
    """Seconds of processor time for one call, by way and length. The ways take turns; the fastest of ``repeats`` calls counts."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    found: dict[str, list[float]] = {way: [] for way in WAYS}
    try:
        for n in lengths:
            called = ways(n, seed)
            calls = max(1, round(2**20 / n**2))  # short ones together: the clock has its grain
            best = dict.fromkeys(WAYS, np.inf)
            for _ in range(repeats):
                for way, call in called.items():
                    begun = time.process_time()
                    for _ in range(calls):
                        call()
                    best[way] = min(best[way], (time.process_time() - begun) / calls)
            for way, seconds in best.items():
                found[way].append(seconds)
    finally:
        torch.set_num_threads(threads)
    return found


def system_share(seed: int, n: int = LENGTHS[-1], repeats: int = REPEATS) -> dict[str, float]:
    """Which share of its processor time a way lets the system work for it, mostly to hand out fresh memory; by way."""
    shares = {}
    for way, call in ways(n, seed).items():
        before = os.times()
        for _ in range(repeats):
            call()
        after = os.times()
        own, system = after.user - before.user, after.system - before.system
        shares[way] = system / max(own + system, 1e-9)
    return shares


def traced_memory(call: Way) -> int:
    """The most bytes that ``call`` holds at once, its result counted: tracemalloc's count, which knows NumPy, not PyTorch."""
    tracing = tracemalloc.is_tracing()  # somebody else's tracing must go on
    if not tracing:
        tracemalloc.start()
    try:
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        call()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if not tracing:
            tracemalloc.stop()


def resident_memory(way: str, n: int, seed: int = 0) -> int:
    """The bytes by which the peak of a fresh process rises during one call of any way. For Linux, which tells the peak.

    Raises:
        RuntimeError: another system.
    """
    if not Path("/proc/self/clear_refs").exists():
        raise RuntimeError("the peak memory of a process is read from /proc, which this system lacks: measure again on Linux.")
    return int(_in_fresh_process(f"print(growth._own_growth({way!r}, {n}, {seed}))"))


def _own_growth(way: str, n: int, seed: int) -> int:
    """For `resident_memory`, inside its process: peak − what was held before, in bytes."""
    ways(16, seed)[way]()  # loads what the first call loads
    call = ways(n, seed)[way]
    Path("/proc/self/clear_refs").write_text("5")  # the peak so far, that of the imports, is forgotten
    before = _status("VmRSS")
    call()
    return _status("VmHWM") - before


def _status(field: str) -> int:
    """A size of this process in bytes."""
    line = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith(field))
    return 1024 * int(line.split()[1])


def _in_fresh_process(code: str) -> str:
    """What ``code`` prints in a process of its own that has one thread."""
    one = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1")
    command = [sys.executable, "-c", f"import json; from transformer_lite.experiments import growth; {code}"]
    return subprocess.run(command, env=os.environ | one, check=True, capture_output=True, text=True).stdout


def slope(lengths: ArrayLike, values: ArrayLike) -> float:
    """The exponent p of values ≈ c · n^p, fitted to the logarithms."""
    return float(np.polyfit(np.log(lengths), np.log(values), 1)[0])


# --- what is kept ---


def measure_all() -> dict[str, Any]:
    """Measure time and memory of the three ways three times over: three minutes of one core, and 1 GB of memory."""
    seconds = [json.loads(_in_fresh_process(f"print(json.dumps(growth.times({run})))")) for run in RUNS]
    unit = [run["explicit"][LENGTHS.index(UNIT)] for run in seconds]
    system = [json.loads(_in_fresh_process(f"print(json.dumps(growth.system_share({run})))")) for run in RUNS]
    memory = {way: [[_peak(way, n, run) / 2**20 for n in LENGTHS] for run in RUNS] for way in WAYS}
    return {
        "runs": RUNS,
        "heads": N_HEADS,
        "d_k": D_K,
        "lengths": LENGTHS,
        # multiples of the explicit way's time at n = 512 in the same run: seconds belong to one machine
        "time (run, length)": {
            way: [[each / one for each in run[way]] for run, one in zip(seconds, unit, strict=True)] for way in WAYS
        },
        "system's share of the time at n = 4096 (run)": {way: [run[way] for run in system] for way in WAYS},
        "MiB (run, length)": memory,
    }


def _peak(way: str, n: int, seed: int) -> int:
    return resident_memory(way, n, seed) if way == "torch" else traced_memory(ways(n, seed)[way])


class Growth(NamedTuple):
    """What `measure_all` found and `stored` keeps; arrays are (n_runs, n_lengths)."""

    lengths: tuple[int, ...]
    times: dict[str, NDArray[np.floating]]  # the explicit way's at n = 512 is 1
    memory: dict[str, NDArray[np.floating]]  # MiB
    system: dict[str, NDArray[np.floating]]  # (n_runs,): the system's share of the time at the longest length

    def slopes(self, what: str, way: str) -> NDArray[np.floating]:
        """(n_runs,): the exponents of "times" or "memory" from n = 512 on."""
        fitted = [i for i, n in enumerate(self.lengths) if n >= FITTED]
        return np.array([slope([self.lengths[i] for i in fitted], row[fitted]) for row in getattr(self, what)[way]])


def kept() -> Growth:
    """The stored measurement."""
    data = stored.read("growth")
    return Growth(
        tuple(data["lengths"]),
        {way: np.array(rows) for way, rows in data["time (run, length)"].items()},
        {way: np.array(rows) for way, rows in data["MiB (run, length)"].items()},
        {way: np.array(row) for way, row in data["system's share of the time at n = 4096 (run)"].items()},
    )


class Live(NamedTuple):
    """What is measured while the reader waits."""

    times: dict[str, float]  # at `LIVE_LENGTH`, as multiples of the explicit way's at n = 512
    memory: dict[str, float]  # MiB, of the two NumPy ways


def live() -> Live:
    """Measure n = 1024 here and now: about a second."""
    seconds = times(0, (UNIT, LIVE_LENGTH), repeats=6)
    unit = seconds["explicit"][0]
    called = ways(LIVE_LENGTH, 0)
    memory = {way: traced_memory(called[way]) / 2**20 for way in ("explicit", "blocked")}
    return Live({way: both[1] / unit for way, both in seconds.items()}, memory)


# --- the picture ---


def picture(lang: str | None = None) -> Picture:
    """Draw the counted share and what is stored of time and memory, and on top of it n = 1024, measured now."""
    from transformer_lite.explore import figures

    lang = lang or current()
    result, now = kept(), live()

    def say(key: str, **given: object) -> str:
        return message(f"experiments.growth.{key}", lang, **given)

    table = [[say("share_title"), *(f"n = {n}" for n in SHARES_SHOWN)]]
    for d_model in WIDTHS:
        table.append([f"d_model = {d_model}", *(f"{100 * quadratic_share(n, d_model):.1f} %" for n in SHARES_SHOWN)])
    for what, here in (("times", now.times), ("memory", now.memory)):
        table.append([say(f"{what}_row"), *(f"n = {n}" for n in result.lengths), say("slope")])
        for way in WAYS:
            means = (_digits(mean) for mean in getattr(result, what)[way].mean(axis=0))
            table.append([say(way), *means, f"{result.slopes(what, way).mean():.2f}"])
        for way, value in here.items():
            cells = [_digits(value) if n == LIVE_LENGTH else "" for n in result.lengths]
            table.append([say("live_row", way=say(way)), *cells, ""])
    with figures.style():
        drawn = figures.new_figure(900, 400)
        share, time_axes, memory_axes = drawn.subplots(1, 3)
        for i, d_model in enumerate(WIDTHS):
            looks = {"color": figures.COLOURS[3 + i], "linestyle": figures.DASHES[i], "linewidth": 2}
            shares = [100 * quadratic_share(n, d_model) for n in SHARE_LENGTHS]
            share.plot(SHARE_LENGTHS, shares, label=f"$d_{{model}}$ = {d_model}", **looks)
            share.plot([6 * d_model], [50], marker="o", markersize=7, color=looks["color"])
        share.axhline(50, color="#666666", linewidth=1, linestyle=":")
        share.set_ylim(0, 100)
        share.legend(loc="upper left", frameon=False)
        for axes, what, here in ((time_axes, "times", now.times), (memory_axes, "memory", now.memory)):
            for i, way in enumerate(WAYS):
                looks = {"color": figures.COLOURS[i], "linestyle": figures.DASHES[i], "marker": figures.MARKERS[i]}
                _line(axes, result.lengths, getattr(result, what)[way], say(way), looks)
                if way in here:
                    axes.plot(LIVE_LENGTH, here[way], "*", ms=15, mfc="white", mec=looks["color"], mew=2, zorder=5)
            axes.set_yscale("log", base=2 if what == "times" else 10)
            axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        time_axes.plot([], [], "*", ms=13, mfc="white", mec="black", mew=1.5, ls="", label=say("live", n=LIVE_LENGTH))
        places = {"share": SHARE_LENGTHS[::3], "times": result.lengths, "memory": result.lengths}
        for axes, (name, x) in zip((share, time_axes, memory_axes), places.items(), strict=True):
            axes.set_xscale("log", base=2)
            axes.set_xticks(x, [str(n) for n in x])
            axes.set_title(say(f"{name}_title"))
            axes.set_xlabel(say("length"))
            axes.set_ylabel(say(f"{name}_axis"))
            axes.grid(True, color="#dddddd", linewidth=0.8)
            axes.set_axisbelow(True)
        title = say("title")
        drawn.suptitle(title, fontsize=12)
        drawn.legend(*time_axes.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
        return figures.picture(drawn, title=title, table=table, text=say("note", **_quoted(result)), lang=lang)


def _line(axes: Axes, x: Sequence[int], values: NDArray[np.floating], label: str, looks: dict[str, Any]) -> None:
    axes.plot(x, values.mean(axis=0), label=label, linewidth=2, markersize=6, **looks)
    axes.fill_between(x, values.min(axis=0), values.max(axis=0), color=looks["color"], alpha=0.25, linewidth=0)


def _digits(value: float) -> str:
    """Two decimals below 10, one below 100, none above."""
    return f"{value:.{2 if value < 10 else 1 if value < 100 else 0}f}"


def _quoted(result: Growth) -> dict[str, Any]:
    """The numbers of the sentence below the picture."""
    longest = result.lengths[-1]
    at = {way: result.memory[way][:, -1].mean() for way in WAYS}
    return {
        "runs": len(RUNS),
        "base": WIDTHS[0],
        "half": 6 * WIDTHS[0],
        "usual": UNIT,
        "usual_share": f"{100 * quadratic_share(UNIT, WIDTHS[0]):.0f}",
        "book": SHARES_SHOWN[-1],
        "book_share": f"{100 * quadratic_share(SHARES_SHOWN[-1], WIDTHS[0]):.0f}",
        "from_n": FITTED,
        "longest": longest,
        "most": f"{at['explicit']:.0f}",
        "system": f"{100 * result.system['explicit'].min():.0f}–{100 * result.system['explicit'].max():.0f}",
        "less_blocked": f"{at['explicit'] / at['blocked']:.0f}",
        "less_torch": f"{at['explicit'] / at['torch']:.0f}",
        **{f"time_{way}": f"{result.slopes('times', way).mean():.1f}" for way in WAYS},
        **{f"memory_{way}": f"{result.slopes('memory', way).mean():.1f}" for way in WAYS},
    }
