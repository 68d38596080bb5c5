"""Translation measured: what the trainings reach, and how fast a sentence is translated.

    python benchmarks/translation.py grammar [--seeds 3] [--minutes M]
    python benchmarks/translation.py text TRAIN... --test FILE... [--minutes 20] [--seed 0]
    python benchmarks/translation.py speed [DIR] [--text FILE] [--rounds N]

``grammar`` trains the small model once a seed and reports exact matches on sentences and on compositions that it has not seen,
and its alignments. ``text`` trains on parallel files, chooses the best checkpoint on a part of them, and scores the test files
beside the baseline that copies the nearest training sentence. ``speed`` translates sentences one by one, in batches, and without
the cache: rounds are interleaved, and the ratios are those of the medians.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from transformer_lite.explore.tables import Table  # noqa: E402
from transformer_lite.lab.translating import shipped  # noqa: E402
from transformer_lite.translation import corpora, grammar, making, scoring, training  # noqa: E402
from transformer_lite.translation.translator import TextTranslator  # noqa: E402

SENTENCES = 1_000
SHARES = ("exact_unseen", "exact_held_out", "content_words_aligned", "alignment_error")


def on_grammar(seeds: int, minutes: float | None) -> None:
    """One line a seed."""
    rows = []
    for seed in range(seeds):
        with tempfile.TemporaryDirectory() as folder:
            started = time.monotonic()
            figures = making.on_grammar(folder, making.longer(making.GRAMMAR_SETTINGS, minutes, seed=seed)).figures
            whole = time.monotonic() - started
        rows.append(
            [str(seed), f"{figures['steps']:,}", f"{figures['parameters']:,}", f"{figures['seconds']:.1f}", f"{whole:.1f}",
             *(f"{100 * figures[name]:.1f}" for name in SHARES)]
        )  # fmt: skip
    header = ["seed", "steps", "parameters", "s", "s with evaluation", *(f"{name} %" for name in SHARES)]
    print(Table(f"grammar, {torch.get_num_threads()} threads", header, rows))


def on_text(train: list[Path], test: list[Path], minutes: float, seed: int) -> None:
    """The curve, the scores of the test files, and those of the baseline."""
    pairs = corpora.read(test).pairs
    asked, references = [source for source, _ in pairs], [target for _, target in pairs]
    with tempfile.TemporaryDirectory() as folder:
        made = making.on_text(folder, train, making.longer(making.TEXT_SETTINGS, minutes, seed=seed))
        rows = [[f"{row['step']:.0f}", f"{row['loss']:.3f}", f"{row['dev_loss']:.3f}"]
                for row in training.curve(Path(folder)) if "dev_loss" in row]  # fmt: skip
    print(Table("curve", ["step", "training loss", "dev loss"], rows[:: max(1, len(rows) // 12)]))
    print(json.dumps(made.figures))
    copied = scoring.nearest(asked, corpora.read(train).pairs)
    results = {"nearest training sentence": copied} | {
        f"beam {beam}": made.translator.translate(asked, beam=beam) for beam in (1, 4)
    }
    scores = {name: scoring.scores(written, references) for name, written in results.items()}
    print(Table(f"{len(pairs)} test sentences", ["", "BLEU", "chrF"],
                [[name, *(f"{each.value:.2f}" for each in found)] for name, found in scores.items()]))  # fmt: skip
    print(*(each.signature for each in scores["beam 4"]), sep="\n")


def speed(folder: Path, text: Path | None, rounds: int) -> None:
    """Greedy translation: one by one, in batches, without the cache."""
    translator = TextTranslator.load(folder)
    if text is None:
        sentences = [" ".join(pair.source) for pair in grammar.split(1, 0, 0, SENTENCES, 0).test]
    else:
        sentences = corpora.lines_of(text)[:SENTENCES]
    few = sentences[:: max(1, len(sentences) // 100)]

    def one_by_one() -> None:
        for sentence in few:
            translator.translate([sentence], beam=1)

    def without_cache() -> None:
        generate, translator.model.generate = translator.model.generate, uncached
        try:
            one_by_one()
        finally:
            translator.model.generate = generate

    generate = translator.model.generate

    def uncached(*arguments: object, **settings: object) -> torch.Tensor:
        return generate(*arguments, **settings, cache=False)

    work: dict[str, tuple[Callable[[], object], int]] = {
        "one by one": (one_by_one, len(few)),
        "one by one, no cache": (without_cache, len(few)),
        f"all {len(sentences)} in batches": (lambda: translator.translate(sentences, beam=1), len(sentences)),
        "one by one, beam 4": (lambda: [translator.translate([each], beam=4) for each in few], len(few)),
    }
    took: dict[str, list[float]] = {name: [] for name in work}
    for _ in range(rounds + 1):
        for name, (run, count) in work.items():
            started = time.perf_counter()
            run()
            took[name].append((time.perf_counter() - started) / count * 1000)
    first = statistics.median(took["one by one"][1:])  # the first round warms up
    rows = []
    for name, values in took.items():
        middle = statistics.median(values[1:])
        rows.append([name, f"{middle:.2f}", f"{min(values[1:]):.2f}-{max(values[1:]):.2f}", f"{first / middle:.2f}"])
    print(Table(f"greedy, ms a sentence, {torch.get_num_threads()} threads", ["", "median", "range", "times as fast"], rows))


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    kinds = parser.add_subparsers(dest="kind", required=True)
    first = kinds.add_parser("grammar")
    first.add_argument("--seeds", type=int, default=3)
    first.add_argument("--minutes", type=float)
    second = kinds.add_parser("text")
    second.add_argument("train", nargs="+", type=Path)
    second.add_argument("--test", nargs="+", type=Path, required=True)
    second.add_argument("--minutes", type=float, default=20)
    second.add_argument("--seed", type=int, default=0)
    third = kinds.add_parser("speed")
    third.add_argument("folder", nargs="?", type=Path, default=shipped())
    third.add_argument("--text", type=Path)
    third.add_argument("--rounds", type=int, default=5)
    given = parser.parse_args()
    if given.kind == "grammar":
        on_grammar(given.seeds, given.minutes)
    elif given.kind == "text":
        on_text(given.train, given.test, given.minutes, given.seed)
    else:
        speed(given.folder, given.text, given.rounds)


if __name__ == "__main__":
    main()
