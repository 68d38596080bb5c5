"""From data to a trained translator in one call: the grammar's small model, or one for files of the user's own."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from transformer_lite.model import Transformer, TransformerConfig, counting, device, saving
from transformer_lite.translation import Refused, corpora, grammar, scoring, training
from transformer_lite.translation.batching import Ids
from transformer_lite.translation.training import Progress, Result, Settings, Trainer
from transformer_lite.translation.translator import ABOUT, SOURCE, TextTranslator, fingerprints
from transformer_lite.translation.vocabulary import Subwords, Words

Report = Callable[[Progress], None]
FEW_PAIRS = 5_000  # of real text: too few to learn to translate from
SHARE_DEV, MOST_DEV = 0.02, 500  # of a user's corpus, held back to choose the best model by

# Post-LN, as in the paper, and two decoder layers: with one, the last layer looks at a word's neighbours more often.
GRAMMAR_MODEL = {"d_model": 64, "n_heads": 4, "d_ff": 192, "n_layers": 2, "norm": "post", "dropout": 0.0}
GRAMMAR_SETTINGS = Settings(minutes=0.7, tokens=1024, warmup=200, factor=0.7)
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
        found = alignment(made.translator, split.test)
        made.figures["alignment_error"], made.figures["content_words_aligned"] = found.error_rate, found.content
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
    segment: bool | None = None,
    evaluate: bool = True,
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
        segment: part Japanese sentences into words first; None: where they are not yet.
        evaluate: score translations of the dev set at the end, beside those of the nearest training sentences.

    Raises:
        `corpora.BadCorpus`: a file cannot be used. `Refused`: a setting or a folder cannot.
    """
    corpus = corpora.read(paths, columns)
    if segment is None:
        segment = corpora.unsegmented([target for _, target in corpus.pairs])
    pairs = in_words(corpus.pairs) if segment else corpus.pairs
    if dev is not None:
        held_back = corpora.read(dev, columns).pairs
        held_back = in_words(held_back) if segment else held_back
    else:
        order = np.random.default_rng(settings.seed).permutation(len(pairs))
        n_dev = min(MOST_DEV, max(1, int(SHARE_DEV * len(pairs)))) if len(pairs) > 1 else 0
        held_back, pairs = [pairs[i] for i in order[:n_dev]], [pairs[i] for i in sorted(order[n_dev:])]
    source = Subwords.of((text for text, _ in pairs), pieces)
    target = Subwords.of((text for _, text in pairs), pieces)
    config = TransformerConfig(source_vocab=len(source), target_vocab=len(target), **TEXT_MODEL | (model or {}))
    about = {
        "data": [str(Path(path).absolute()) for path in paths], "columns": list(columns), "segmented": segment,
        "empty_lines": len(corpus.empty), "too_long": len(corpus.too_long),
    }  # fmt: skip
    made = _train(Path(folder), config, source, target, pairs, held_back, settings, report, about)
    made.figures["empty_lines"], made.figures["too_long"] = about["empty_lines"], about["too_long"]
    if made.result.finished and evaluate and held_back:
        asked, references = [source for source, _ in held_back], [target for _, target in held_back]
        for name, written in (
            ("dev_bleu", made.translator.translate(asked, beam=4)),
            ("nearest_bleu", scoring.nearest(asked, pairs)),
        ):
            made.figures[name] = round(scoring.scores(written, references)[0].value, 2)
    return made


def in_words(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """The pairs, the words of their Japanese targets parted by spaces."""
    return list(zip([source for source, _ in pairs], corpora.segmented([target for _, target in pairs]), strict=True))


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
    first = training.Spread().rank == 0
    with training.alone(folder) if first else nullcontext():
        _check_free(folder)
        trainer = Trainer(model, ids(train), ids(dev), settings, folder, fingerprints(source, target))
        if first:
            translator.save_vocabularies(folder)  # not before: the folder may hold another training, which was refused now
        result = trainer.run(report)
    if (folder / saving.WEIGHTS).is_file() and result.finished:
        translator = TextTranslator.load(folder, device())
    figures = {
        "parameters": counting.parameter_count(model),
        "pairs": len(train),
        "step": result.step,
        "steps": result.steps,
        "dev_loss": result.best_dev_loss if math.isfinite(result.best_dev_loss) else None,  # None: never validated
        "seconds": round(time.monotonic() - started, 1),
        "finished": result.finished,
        "seed": settings.seed,
    }
    return Made(translator, result, figures)


def _check_free(folder: Path) -> None:
    """Refuse to write over files that no training of ours has left there unfinished.

    Raises:
        Refused.
    """
    if any((folder / name).is_file() for name in (training.STATE, training.CURVE)):
        return  # a training to be continued; the trainer looks whether it is this one
    taken = [name for name in (saving.CONFIG, saving.WEIGHTS) if (folder / name).exists()]
    if (folder / ABOUT).exists() and not (folder / SOURCE).exists():
        taken.append(ABOUT)
    if taken:
        raise Refused("training.other_files", folder=folder, names=", ".join(taken))


class Alignment(NamedTuple):
    """How well cross-attention agrees with links that are known."""

    error_rate: float  # of all linked words, particles among them where they have a link
    content: float  # the share of content words (see `grammar.content`) whose row looks most at a partner


def alignment(translator: TextTranslator, pairs: Sequence[grammar.Pair], layer: int = -1, shift: int = 0) -> Alignment:
    """Cross-attention of one layer, its heads averaged, against gold links, while the gold translation is written.

    Args:
        translator: a Transformer's.
        pairs: sentences of the grammar.
        layer: of the decoder; the last by default.
        shift: 0 reads the row that *predicts* a word; 1 the row below, whose input is that word. The word is chosen in the row
            that predicts it, so that row has to look at its partner; the row below already looks for the next word.
    """
    found: set[tuple[int, int, int]] = set()
    gold: set[tuple[int, int, int]] = set()
    right = counted = 0
    for number, pair in enumerate(pairs):
        looked = translator.look(" ".join(pair.source), " ".join(pair.target))
        weights = looked.cross[layer].mean(axis=0)[shift : len(pair.target) + shift]  # (n_target, n_source), EOS as well
        linked = {j for _, j in pair.links}
        here = {(i, j) for i, j in scoring.links_of(weights) if j in linked and i < len(pair.source)}  # EOS is no partner
        for j, partners in grammar.content(pair).items():
            counted += 1
            right += any((i, j) in here for i in partners)
        # A target word with several partners is right if it looks at any of them.
        for j in linked:
            partners = {i for i, k in pair.links if k == j}
            gold.add((number, next((i for i in partners if (i, j) in here), min(partners)), j))
        found |= {(number, i, j) for i, j in here}
    return Alignment(scoring.alignment_error_rate(found, gold), right / max(counted, 1))


def longer(settings: Settings, minutes: float | None = None, steps: int | None = None, seed: int | None = None) -> Settings:
    """``settings`` with another budget or seed."""
    changes = {"minutes": minutes, "steps": steps, "seed": seed}
    return replace(settings, **{name: value for name, value in changes.items() if value is not None})
