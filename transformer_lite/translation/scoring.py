"""How good translations are: exact matches, BLEU and chrF with their signatures, and alignments against gold ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from transformer_lite.translation import Refused

Links = Iterable[tuple[int, ...]]  # (place in source, place in target), the sentence's number before them where there are several


class Score(NamedTuple):
    """One figure of one measure, and what exactly was measured."""

    name: str
    value: float  # 0 to 100
    signature: str


def exact(translations: Sequence[str], references: Sequence[str]) -> float:
    """The share of translations that are their reference, 0 to 1."""
    _same_number(translations, references)
    return sum(a == b for a, b in zip(translations, references, strict=True)) / max(len(references), 1)


def scores(translations: Sequence[str], references: Sequence[str], tokenize: str = "none") -> list[Score]:
    """BLEU and chrF by sacrebleu.

    Args:
        translations, references: one a line, of one length.
        tokenize: sacrebleu's: "none" where the text's words are parted by spaces already, "char", "ja-mecab", "13a".

    Raises:
        ImportError: sacrebleu is missing. `Refused`: there is no line, or no such tokenizer. ValueError: the numbers of lines
            differ.
    """
    import sacrebleu

    _same_number(translations, references)
    if not references:
        raise Refused("scoring.nothing")
    bleu = bleu_measure(tokenize)
    chrf = sacrebleu.CHRF()
    found = []
    for name, measure in (("BLEU", bleu), ("chrF", chrf)):
        value = measure.corpus_score(list(translations), [list(references)]).score
        found.append(Score(name, float(value), str(measure.get_signature())))
    return found


def bleu_measure(tokenize: str) -> Any:
    """sacrebleu's BLEU with one of its tokenizers.

    Raises:
        Refused: there is no such tokenizer, or what it needs is not installed.
    """
    import sacrebleu

    if tokenize not in sacrebleu.BLEU.TOKENIZERS:
        raise Refused("scoring.tokenizer", value=repr(tokenize), known=", ".join(sacrebleu.BLEU.TOKENIZERS))
    try:
        return sacrebleu.BLEU(tokenize=tokenize, force=True)
    except (RuntimeError, ImportError, OSError) as error:  # OSError: some tokenizers are downloaded when they are first used
        raise Refused("scoring.no_tokenizer", value=tokenize, error=" ".join(str(error).split())) from None


def nearest(sources: Sequence[str], pairs: Sequence[tuple[str, str]]) -> list[str]:
    """The baseline that has learned nothing: for each sentence the target of the most similar source among ``pairs``.

    Args:
        sources: sentences, their words parted by spaces.
        pairs: what a model was trained on.

    Returns:
        Targets. Similar is the share of words that two sentences have in common (Jaccard: |A ∩ B| / |A ∪ B|); of equally
        similar ones the first is taken.
    """
    if not pairs:
        raise Refused("training.no_pair")
    places: dict[str, list[int]] = {}
    sizes = np.empty(len(pairs), dtype=np.int64)
    for number, (source, _) in enumerate(pairs):
        words = set(source.split())
        sizes[number] = len(words)
        for word in words:
            places.setdefault(word, []).append(number)
    where = {word: np.array(numbers) for word, numbers in places.items()}
    found = []
    for source in sources:
        words = set(source.split())
        shared = np.zeros(len(pairs), dtype=np.int64)
        for word in words & where.keys():
            shared[where[word]] += 1
        similar = shared / np.maximum(sizes + len(words) - shared, 1)
        found.append(pairs[int(similar.argmax())][1])
    return found


def links_of(weights: ArrayLike) -> set[tuple[int, int]]:
    """Where each target token looks most: {(place in source, place in target)}.

    Args:
        weights: (n_target, n_source), of one head or averaged over heads.
    """
    weights = np.asarray(weights)
    return {(int(row.argmax()), i) for i, row in enumerate(weights) if row.size}


def alignment_error_rate(found: Links, gold: Links) -> float:
    """1 − 2 |A ∩ G| / (|A| + |G|): 0 where the links are the gold ones (Och and Ney 2003, all gold links being sure)."""
    found, gold = set(found), set(gold)
    if not found and not gold:
        return 0.0
    return 1 - 2 * len(found & gold) / (len(found) + len(gold))


def _same_number(translations: Sequence[str], references: Sequence[str]) -> None:
    if len(translations) != len(references):
        raise ValueError(f"there must be one translation a reference; got {len(translations)} and {len(references)}.")
