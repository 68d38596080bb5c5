"""From data to a trained translator in one call: the grammar's small model, or one for files of the user's own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer_lite.model import Transformer, TransformerConfig, counting, device, saving
from transformer_lite.translation import corpora, grammar, scoring
from transformer_lite.translation.batching import Ids
from transformer_lite.translation.training import Progress, Result, Settings, Trainer
from transformer_lite.translation.translator import TextTranslator
from transformer_lite.translation.vocabulary import Subwords, Words

Report = Callable[[Progress], None]
SHARE_DEV, MOST_DEV = 0.02, 1_000  # of a user's corpus, held back to choose the best model by

GRAMMAR_MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 256, "n_layers": 2, "n_decoder_layers": 1, "norm": "pre", "dropout": 0.0}
GRAMMAR_SETTINGS = Settings(minutes=0.75, tokens=1024, warmup=200, factor=0.5)
TEXT_MODEL = {"d_model": 128, "n_heads": 4, "d_ff": 512, "n_layers": 2, "norm": "pre", "dropout": 0.1}
TEXT_SETTINGS = Settings(minutes=20, tokens=2048, warmup=800, factor=1.0)


class Made(NamedTuple):
    """A translator, and how its training went."""

    translator: TextTranslator
    result: Result
    figures: dict[str, Any]  # what ``--json`` prints


def on_grammar(
    folder: str | Path,
    settings: Settings = GRAMMAR_SETTINGS,
    n_train: int = 50_000,
    model: dict[str, Any] | None = None,
    report: Report = lambda progress: None,
    evaluate: bool = True,
) -> Made:
    """Train on sentences of the grammar and measure exact matches on sentences and compositions that it has not seen.

    Args:
        folder: where everything is kept; a training that stands there with the same settings is continued.
        settings: how to train; their seed also draws the sentences.
        n_train: pairs to learn from.
        model: settings of `TransformerConfig` other than the grammar's own small model.
        report: called after every step.
        evaluate: translate the test sentences at the end.
    """
    split = grammar.split(settings.seed, n_train)
    texts = [[(" ".join(p.source), " ".join(p.target)) for p in part] for part in split]
    source = Words.of(text for text, _ in texts[0])
    target = Words.of(text for _, text in texts[0])
    config = TransformerConfig(source_vocab=len(source), target_vocab=len(target), **GRAMMAR_MODEL | (model or {}))
    made = _train(Path(folder), config, source, target, texts[0], texts[1], settings, report, {"data": "grammar"})
    if made.result.finished and evaluate:
        for name, part in (("exact_unseen", texts[2]), ("exact_held_out", texts[3])):
            written = made.translator.translate([text for text, _ in part], beam=1)
            made.figures[name] = scoring.exact(written, [text for _, text in part])
        made.figures["alignment_error"] = alignment_error(made.translator, split.test[:100])
    return made


def on_text(
    folder: str | Path,
    paths: Sequence[str | Path],
    settings: Settings = TEXT_SETTINGS,
    pieces: int = 4_000,
    model: dict[str, Any] | None = None,
    report: Report = lambda progress: None,
    columns: tuple[int, int] = (0, 1),
    dev: Sequence[str | Path] | None = None,
) -> Made:
    """Train on parallel text: one tab-separated file, or two files line by line.

    Args:
        folder: as in `on_grammar`.
        paths: the files; see `corpora.read`.
        settings: how to train.
        pieces: subwords of each language.
        model: settings of `TransformerConfig` other than the default model of about 2 million parameters.
        report: called after every step.
        columns: of a tab-separated file.
        dev: files to choose the best model by; None: a part of the corpus is held back.
    """
    corpus = corpora.read(paths, columns)
    pairs = corpus.pairs
    if dev is not None:
        held_back = corpora.read(dev, columns).pairs
    else:
        order = np.random.default_rng(settings.seed).permutation(len(pairs))
        n_dev = min(MOST_DEV, max(1, int(SHARE_DEV * len(pairs)))) if len(pairs) > 1 else 0
        held_back, pairs = [pairs[i] for i in order[:n_dev]], [pairs[i] for i in sorted(order[n_dev:])]
    source = Subwords.of((text for text, _ in pairs), pieces)
    target = Subwords.of((text for _, text in pairs), pieces)
    config = TransformerConfig(source_vocab=len(source), target_vocab=len(target), **TEXT_MODEL | (model or {}))
    about = {"data": [str(path) for path in paths], "empty_lines": len(corpus.empty), "too_long": len(corpus.too_long)}
    return _train(Path(folder), config, source, target, pairs, held_back, settings, report, about)


def _train(
    folder: Path,
    config: TransformerConfig,
    source: Words | Subwords,
    target: Words | Subwords,
    train: Sequence[tuple[str, str]],
    dev: Sequence[tuple[str, str]],
    settings: Settings,
    report: Report,
    about: dict[str, Any],
) -> Made:
    started = time.monotonic()

    def ids(pairs: Sequence[tuple[str, str]]) -> list[Ids]:
        return [(source.encode(a), target.encode(b)) for a, b in pairs]

    torch.manual_seed(settings.seed)
    model = Transformer(config).to(device())
    translator = TextTranslator(model, source, target, about | {"pairs": len(train), "seed": settings.seed})
    translator.save_vocabularies(folder)
    trainer = Trainer(model, ids(train), ids(dev), settings, folder)
    result = trainer.run(report)
    if (folder / saving.WEIGHTS).is_file() and result.finished:
        translator = TextTranslator.load(folder, device())
    figures = {
        "parameters": counting.parameter_count(model),
        "pairs": len(train),
        "step": result.step,
        "steps": result.steps,
        "dev_loss": result.best_dev_loss,
        "seconds": round(time.monotonic() - started, 1),
        "finished": result.finished,
        "seed": settings.seed,
    }
    return Made(translator, result, figures)


def alignment_error(translator: TextTranslator, pairs: Sequence[grammar.Pair], layer: int = -1) -> float:
    """The alignment error rate of cross-attention, heads averaged, on pairs whose gold links are known.

    Only target words that have a link are counted: what a particle should look at nobody has said.
    """
    found: set[tuple[int, int, int]] = set()
    gold: set[tuple[int, int, int]] = set()
    for number, pair in enumerate(pairs):
        looked = translator.look(" ".join(pair.source), " ".join(pair.target))
        weights = looked.cross[layer].mean(axis=0)[: len(pair.target), : len(pair.source)]
        linked = {j for _, j in pair.links}
        found |= {(number, i, j) for i, j in scoring.links_of(weights) if j in linked}
        # A target word with several partners is right if it looks at any of them.
        for j in linked:
            partners = {i for i, k in pair.links if k == j}
            hit = next(((number, i, j) for i in partners if (number, i, j) in found), (number, min(partners), j))
            gold.add(hit)
    return scoring.alignment_error_rate(found, gold)


def longer(settings: Settings, minutes: float | None = None, steps: int | None = None, seed: int | None = None) -> Settings:
    """``settings`` with another budget or seed."""
    changes = {"minutes": minutes, "steps": steps, "seed": seed}
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})
