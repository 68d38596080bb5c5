"""How good translations are: exact matches, BLEU and chrF with their signatures, and alignments against gold ones."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
        ImportError: sacrebleu is missing. ValueError: the numbers of lines differ, or there is none.
    """
    import sacrebleu

    _same_number(translations, references)
    if not references:
        raise ValueError("there is nothing to score.")
    bleu = sacrebleu.BLEU(tokenize=tokenize, force=True)
    chrf = sacrebleu.CHRF()
    found = []
    for name, measure in (("BLEU", bleu), ("chrF", chrf)):
        value = measure.corpus_score(list(translations), [list(references)]).score
        found.append(Score(name, float(value), str(measure.get_signature())))
    return found


def links_of(weights: ArrayLike) -> set[tuple[int, int]]:
    """Where each target token looks most: {(place in source, place in target)}.

    Args:
        weights: (n_target, n_source), of one head or averaged over heads; leave EOS out of both sides before.
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
