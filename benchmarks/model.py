"""The PyTorch model side by side with its peers: forward, backward, writing, and how time and memory grow with n.

    python benchmarks/model.py [forward] [decode] [growth] [--rounds N]

Peers: ``torch.nn.Transformer``, the same model with an explicit softmax and separate projections, Hugging Face's Marian (``pip
install transformers``; left out where it is missing). One thread is measured in CPU time, which a busy machine disturbs least,
two threads in wall-clock time. Rounds are interleaved: every round measures every contender once, in a new order.
"""

from __future__ import annotations

import math
import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import numpy as np  # noqa: E402
import torch  # noqa: E402
import torch.nn.functional as F  # noqa: E402
from torch import Tensor, nn  # noqa: E402

from transformer_lite.explore.tables import Table  # noqa: E402
from transformer_lite.model import Transformer, TransformerConfig, causal_mask, device  # noqa: E402
from transformer_lite.model.counting import forward_cost  # noqa: E402

VOCAB, BATCH, N = 1000, 16, 32
SIZES = {
    "base": {"d_model": 512, "n_heads": 8, "d_ff": 2048, "n_layers": 6},
    "small": {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 3},
}
Work = Callable[[], Any]


# --- contenders ---


def ours(size: str) -> Transformer:
    torch.manual_seed(0)
    return Transformer(TransformerConfig(source_vocab=VOCAB, dropout=0.0, **SIZES[size])).to(device())


class WithTorch(nn.Module):
    """Our embeddings and output around ``torch.nn.Transformer``, whose last LayerNorms are taken away (the paper has none)."""

    def __init__(self, like: Transformer):
        super().__init__()
        c = like.config
        self.like = like
        self.stacks = nn.Transformer(
            c.d_model, c.n_heads, c.n_layers, c.n_layers, c.d_ff, dropout=0.0, batch_first=True, device=device()
        )
        self.stacks.encoder.norm = self.stacks.decoder.norm = None
        self.future = ~causal_mask(N, device=device())

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        x, y = self.like.source_embedding(source), self.like.target_embedding(target)
        real = source == self.like.config.pad_id
        memory = self.stacks.encoder(x, src_key_padding_mask=real)
        y = self.stacks.decoder(y, memory, tgt_mask=self.future, memory_key_padding_mask=real)
        return F.linear(y, self.like.output.weight)


class Explicit(nn.Module):
    """The model as many tutorials write it: separate projections, softmax on screen."""

    class Attention(nn.Module):
        def __init__(self, d: int, h: int):
            super().__init__()
            self.h = h
            self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))

        def forward(self, x: Tensor, memory: Tensor, mask: Tensor) -> Tensor:
            split = lambda x: x.view(len(x), -1, self.h, x.shape[-1] // self.h).transpose(1, 2)  # noqa: E731
            q, k, v = split(self.q(x)), split(self.k(memory)), split(self.v(memory))
            scores = q @ k.transpose(-2, -1) / math.sqrt(q.shape[-1])
            weights = scores.masked_fill(~mask, -1e9).softmax(dim=-1)
            return self.o((weights @ v).transpose(1, 2).flatten(-2))

    def __init__(self, like: Transformer):
        super().__init__()
        c = like.config
        self.like = like
        make = lambda: Explicit.Attention(c.d_model, c.n_heads)  # noqa: E731
        network = lambda: nn.Sequential(nn.Linear(c.d_model, c.d_ff), nn.ReLU(), nn.Linear(c.d_ff, c.d_model))  # noqa: E731
        norm = lambda: nn.LayerNorm(c.d_model)  # noqa: E731
        self.encoder = nn.ModuleList(nn.ModuleList([make(), network(), norm(), norm()]) for _ in range(c.n_layers))
        self.decoder = nn.ModuleList(
            nn.ModuleList([make(), make(), network(), norm(), norm(), norm()]) for _ in range(c.n_layers)
        )
        self.to(device())

    def forward(self, source: Tensor, target: Tensor) -> Tensor:
        real = (source != self.like.config.pad_id)[:, None, None]
        before = causal_mask(target.shape[1], device=target.device)
        x, y = self.like.source_embedding(source), self.like.target_embedding(target)
        for attention, network, *norms in self.encoder:
            x = norms[0](x + attention(x, x, real))
            x = norms[1](x + network(x))
        for own, cross, network, *norms in self.decoder:
            y = norms[0](y + own(y, y, before))
            y = norms[1](y + cross(y, x, real))
            y = norms[2](y + network(y))
        return F.linear(y, self.like.output.weight)


def marian(size: str) -> Any:
    """Hugging Face's Marian of the same sizes, or None."""
    try:
        from transformers import MarianConfig, MarianMTModel, logging
    except ImportError:
        return None
    logging.set_verbosity_error()
    d, h, ff, n = SIZES[size].values()
    config = MarianConfig(
        vocab_size=VOCAB, d_model=d, encoder_layers=n, decoder_layers=n, encoder_attention_heads=h, decoder_attention_heads=h,
        encoder_ffn_dim=ff, decoder_ffn_dim=ff, dropout=0.0, attention_dropout=0.0, activation_dropout=0.0,
        activation_function="relu", scale_embedding=True, pad_token_id=0, eos_token_id=2, decoder_start_token_id=1,
        forced_eos_token_id=None, attn_implementation="sdpa",
    )  # fmt: skip
    model = MarianMTModel(config).eval().to(device())
    for name in ("forced_eos_token_id", "eos_token_id", "bad_words_ids"):
        setattr(model.generation_config, name, None)
    return model


# --- measuring ---


def rounds(contenders: dict[str, Work], count: int, clock: Callable[[], float]) -> dict[str, list[float]]:
    """Seconds of each contender in each round."""
    taken: dict[str, list[float]] = {name: [] for name in contenders}
    for work in contenders.values():
        work(), work()
    names = list(contenders)
    for _ in range(count):
        random.shuffle(names)
        for name in names:
            start = clock()
            contenders[name]()
            if device().type == "cuda":
                torch.cuda.synchronize()
            taken[name].append(clock() - start)
    return taken


def median(values: list[float]) -> float:
    return statistics.median(values)


def spread(values: list[float]) -> str:
    """Half the distance between the quartiles, in percent of the median."""
    low, _, high = statistics.quantiles(values, n=4)
    return f"± {50 * (high - low) / median(values):.1f} %"


def ratio(theirs: list[float], mine: list[float]) -> float:
    """How many times as fast we are: the median over the rounds of theirs / ours, measured close together."""
    return statistics.median(a / b for a, b in zip(theirs, mine, strict=True))


def peak(threads: int) -> float:
    """Floating-point operations a second of a large matrix product, as fast as it gets here."""
    a, b = torch.randn(1024, 1024, device=device()), torch.randn(1024, 1024, device=device())
    clock = time.process_time if threads == 1 and device().type == "cpu" else time.perf_counter
    best = math.inf
    for _ in range(20):
        start = clock()
        a @ b
        if device().type == "cuda":
            torch.cuda.synchronize()
        best = min(best, clock() - start)
    return 2 * 1024**3 / best


def forward(count: int) -> None:
    """Forward and forward + backward against the peers."""
    for threads in (1, 2):
        torch.set_num_threads(threads)
        clock = time.process_time if threads == 1 and device().type == "cpu" else time.perf_counter
        most = peak(threads)
        rows = []
        for size in SIZES:
            model = ours(size)
            operations = 2 * BATCH * forward_cost(model.config, N, N).total
            source, target = torch.randint(3, VOCAB, (2, BATCH, N), device=device())
            peers: dict[str, nn.Module] = {"ours": model, "nn.Transformer": WithTorch(model), "explicit": Explicit(model)}
            hf = marian(size)

            def call(peer: Any, source: Tensor = source, target: Tensor = target) -> Tensor:
                return peer(source, target)

            def call_hf(hf: Any = hf, source: Tensor = source, target: Tensor = target) -> Tensor:
                return hf(input_ids=source, decoder_input_ids=target, use_cache=False).logits

            works = {name: lambda peer=peer: call(peer) for name, peer in peers.items()}
            if hf is not None:
                peers["Marian (sdpa)"], works["Marian (sdpa)"] = hf, call_hf

            def inference(work: Work) -> Work:
                def run() -> None:
                    with torch.inference_mode():
                        work()

                return run

            def training(name: str, works: dict[str, Work] = works, peers: dict[str, nn.Module] = peers) -> Work:
                def run() -> None:
                    peers[name].zero_grad(set_to_none=True)
                    works[name]().square().mean().backward()

                return run

            for kind, times, timed in (
                ("forward", 1, {name: inference(work) for name, work in works.items()}),
                ("forward + backward", 3, {name: training(name) for name in works}),
            ):
                for peer in peers.values():
                    peer.train(kind != "forward")
                taken = rounds(timed, count, clock)
                for name, values in taken.items():
                    share = times * operations / median(values) / most
                    faster = "" if name == "ours" else f"{ratio(values, taken['ours']):.2f}"
                    shown = [f"{1000 * median(values):.1f}", spread(values), f"{100 * share:.0f} %", faster]
                    rows.append([size, kind, name, *shown])
        title = f"{threads} thread(s), batch {BATCH} × {N}, {device()}: peak {most / 1e9:.0f} GFLOP/s"
        print(Table(title, ["size", "", "", "ms", "spread", "of peak", "ours is × as fast"], rows), "\n")


def decode(count: int) -> None:
    """Writing 32 tokens with a cache, greedily and by beam."""
    torch.set_num_threads(1)
    clock = time.process_time if device().type == "cpu" else time.perf_counter
    rows = []
    for size, batch, beam in (("small", 1, 1), ("small", 16, 1), ("base", 1, 1), ("base", 16, 1), ("small", 8, 4)):
        model, hf = ours(size).eval(), marian(size)
        source = torch.randint(3, VOCAB, (batch, N), device=device())

        def write(cache: bool, model: Any = model, source: Tensor = source, beam: int = beam) -> Tensor:
            return model.generate(source, N, beam=beam, cache=cache)

        def write_hf(hf: Any = hf, source: Tensor = source, beam: int = beam) -> Tensor:
            real = torch.ones_like(source)
            with torch.inference_mode():
                return hf.generate(source, attention_mask=real, max_new_tokens=N, num_beams=beam, do_sample=False)

        assert write(True).shape[1] == N, "the random model ended early: choose another seed"
        works: dict[str, Work] = {"ours": lambda write=write: write(True)}
        if size == "small":
            works["ours without cache"] = lambda write=write: write(False)
        if hf is not None:
            works["Marian generate"] = write_hf
        taken = rounds(works, count, clock)
        for name, values in taken.items():
            faster = "" if name == "ours" else f"{ratio(values, taken['ours']):.2f}"
            what = "greedy" if beam == 1 else f"beam {beam}"
            rows.append([size, f"{what}, batch {batch}", name, f"{1000 * median(values):.1f}", spread(values), faster])
    print(Table(f"{N} tokens, 1 thread, {device()}", ["size", "", "", "ms", "spread", "ours is × as fast"], rows), "\n")


GROWTH = """
import resource, sys, time
import numpy as np, torch
torch.set_num_threads(1)
way, n = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
q, k, v = (rng.standard_normal((1, 8, n, 64), dtype=np.float32) for _ in range(3))
from transformer_lite import equations
from transformer_lite.model import Transformer, TransformerConfig, scaled_dot_product_attention
if way == "NumPy, explicit":
    work = lambda: equations.scaled_dot_product_attention(q, k, v)
elif way == "NumPy, in blocks":
    work = lambda: equations.blocked_attention(q, k, v)
elif way == "PyTorch, explicit":
    t = [torch.from_numpy(x) for x in (q, k, v)]
    work = lambda: scaled_dot_product_attention(*t)
elif way == "PyTorch, fast":
    t = [torch.from_numpy(x) for x in (q, k, v)]
    work = lambda: torch.nn.functional.scaled_dot_product_attention(*t)
else:
    sizes = {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 2, "max_positions": n}
    model = Transformer(TransformerConfig(source_vocab=50, dropout=0.0, **sizes)).eval()
    ids = torch.randint(3, 50, (1, n))
    work = lambda: model(ids, ids)
def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))
before = most()
with torch.inference_mode():
    start = time.process_time(); work(); taken = time.process_time() - start
print(taken, (most() - before) / 1024)
"""


def growth(count: int) -> None:
    """Time and memory of one attention (h = 8, d_k = 64) and of a forward pass against n; and of a cached token."""
    lengths = (512, 1024, 2048, 4096)
    rows = []
    ways = ("NumPy, explicit", "NumPy, in blocks", "PyTorch, explicit", "PyTorch, fast", "Transformer, 2 + 2 layers, d 128")
    for way in ways:
        seconds, memory = [], []
        here = (*lengths, 8192) if way.startswith("Transformer") else lengths
        for n in here:
            tries = []
            for _ in range(3):
                done = subprocess.run(
                    [sys.executable, "-c", GROWTH, way, str(n)], capture_output=True, text=True, check=True, cwd=ROOT,
                    env=os.environ | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)},
                )  # fmt: skip
                tries.append([float(x) for x in done.stdout.split()])
            seconds.append(min(t for t, _ in tries))
            memory.append(statistics.median(m for _, m in tries))
        cells = [f"{1000 * t:.0f} / {m:.1f}" for t, m in zip(seconds, memory, strict=True)]
        cells += ["–"] * (len(lengths) + 1 - len(cells))
        rows.append([way, *cells, f"{slope(here, seconds):.2f}", f"{slope(here, memory):.2f}"])
    title = "ms / MiB more than before (1 thread, a process of its own each)"
    print(Table(title, ["", *(f"n = {n}" for n in (*lengths, 8192)), "slope of time", "slope of memory"], rows), "\n")

    torch.set_num_threads(1)
    model = ours("small").eval()
    source = torch.randint(3, VOCAB, (1, N), device=device())
    at, taken = (64, 256, 1024, 4096), []
    with torch.inference_mode():
        state = model.start(source, 16, at[-1] + 40)
        token = torch.full((16,), 5, device=device())
        for n in at:
            while state.length < n:
                state.step(token)
            times = []
            for _ in range(max(count, 15)):
                start = time.process_time()
                state.step(token)
                times.append(time.process_time() - start)
            taken.append(median(times))
    cells = [f"{1000 * t:.2f}" for t in taken]
    beyond = [t - taken[0] for t in taken[1:]]  # less what does not depend on n
    title = "One cached token, small, 16 rows: ms after n tokens"
    print(Table(title, [*(f"n = {n}" for n in at), "slope of what grows"], [[*cells, f"{slope(at[1:], beyond):.2f}"]]))


def slope(sizes: tuple[int, ...], values: list[float]) -> float:
    """The exponent of growth: the slope of log value against log size."""
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(values, 1e-9)), 1)[0])


def main() -> None:
    arguments = sys.argv[1:]
    count = int(arguments.pop(arguments.index("--rounds") + 1)) if "--rounds" in arguments else 15
    parts = [name for name in arguments if name != "--rounds"] or ["forward", "decode", "growth"]
    for name in parts:
        {"forward": forward, "decode": decode, "growth": growth}[name](count)


if __name__ == "__main__":
    main()
