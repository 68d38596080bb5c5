"""From text to token ids and back: whole words for the grammar, subwords (SentencePiece) for real text."""

from __future__ import annotations

import io
import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Protocol

from transformer_lite.translation import Refused

PAD, BOS, EOS, UNK = 0, 1, 2, 3
FULL_WIDTH_DIGITS = "０１２３４５６７８９"
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")


class Vocabulary(Protocol):
    """Turns a sentence into token ids, without BOS and EOS, and back."""

    def __len__(self) -> int: ...
    def encode(self, sentence: str) -> list[int]: ...
    def decode(self, ids: Iterable[int]) -> str: ...
    def tokens(self, ids: Iterable[int]) -> list[str]: ...
    def save(self, path: Path) -> None: ...


class Words:
    """Whole words, parted by spaces.

    Args:
        words: every word once; the four special tokens are put before them.
    """

    def __init__(self, words: Sequence[str]):
        self.words = [*SPECIAL, *words]
        self.ids = {word: i for i, word in enumerate(self.words)}
        if len(self.ids) != len(self.words):
            raise ValueError("words must differ from one another and from the special tokens.")

    @classmethod
    def of(cls, sentences: Iterable[str], at_least: int = 1) -> Words:
        """Every word that occurs ``at_least`` so often, the most frequent first."""
        counts = Counter(word for sentence in sentences for word in sentence.split())
        kept = [word for word, count in counts.items() if count >= at_least and word not in SPECIAL]
        return cls(sorted(kept, key=lambda word: (-counts[word], word)))

    def __len__(self) -> int:
        return len(self.words)

    def encode(self, sentence: str) -> list[int]:
        """Ids of the words; `UNK` for one that is not known."""
        return [self.ids.get(word, UNK) for word in sentence.split()]

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The words of ``ids``, special ones as they are written."""
        return [self.words[i] for i in ids]

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence; PAD, BOS and EOS are left out."""
        return " ".join(self.words[i] for i in ids if i not in (PAD, BOS, EOS))

    def save(self, path: Path) -> None:
        """Write to ``path`` as JSON."""
        path.write_text(json.dumps({"kind": "words", "words": self.words[len(SPECIAL) :]}, ensure_ascii=False), "utf-8")


class Subwords:
    """Parts of words, learned by SentencePiece (BPE): rare words fall into pieces, and Japanese needs no spaces.

    Args:
        model: what SentencePiece has learned, as bytes.
    """

    def __init__(self, model: bytes):
        from sentencepiece import SentencePieceProcessor

        self.model = model
        self.processor = SentencePieceProcessor(model_proto=model)

    @classmethod
    def of(cls, sentences: Iterable[str], size: int = 4_000) -> Subwords:
        """Learn ``size`` pieces; fewer where the text does not give so many.

        Raises:
            Refused: the text has more different characters than there may be pieces, or none at all.
        """
        import sentencepiece

        learned, sentences = io.BytesIO(), list(sentences)
        try:
            cls._learn(sentencepiece.SentencePieceTrainer, sentences, size, learned)
        except (RuntimeError, ValueError) as error:  # ValueError: a number of pieces that SentencePiece cannot even read
            raise Refused("training.pieces", pieces=size, error=str(error).rpartition("] ")[2] or error) from None
        return cls(learned.getvalue())

    @staticmethod
    def _learn(trainer: type, sentences: list[str], size: int, learned: io.BytesIO) -> None:
        # Digits and Latin letters are pieces however rare they are: any text may hold them.
        plain = {c for sentence in sentences for c in sentence if (c.isascii() and c.isprintable()) or c in FULL_WIDTH_DIGITS}
        trainer.train(
            sentence_iterator=iter(sentences),
            required_chars="".join(sorted(plain - {" "})),
            model_writer=learned,
            model_type="bpe",
            vocab_size=size,
            hard_vocab_limit=False,
            character_coverage=0.9998,
            normalization_rule_name="identity",  # NFKC would turn full-width digits into others, and references keep theirs
            pad_id=PAD, bos_id=BOS, eos_id=EOS, unk_id=UNK,
            pad_piece=SPECIAL[PAD], bos_piece=SPECIAL[BOS], eos_piece=SPECIAL[EOS], unk_piece=SPECIAL[UNK],
            num_threads=1,  # the same text gives the same pieces
            minloglevel=2,
        )  # fmt: skip

    def __len__(self) -> int:
        return self.processor.get_piece_size()

    def encode(self, sentence: str) -> list[int]:
        """Ids of the pieces."""
        return self.processor.encode(sentence)

    def tokens(self, ids: Iterable[int]) -> list[str]:
        """The pieces of ``ids``; ▁ stands for a space before a word."""
        return [self.processor.id_to_piece(int(i)) for i in ids]

    def decode(self, ids: Iterable[int]) -> str:
        """The sentence; special tokens are left out."""
        return self.processor.decode([int(i) for i in ids if int(i) not in (PAD, BOS, EOS)])

    def save(self, path: Path) -> None:
        """Write to ``path`` as SentencePiece does."""
        path.write_bytes(self.model)


def load(path: Path) -> Vocabulary:
    """Read what ``save`` has written.

    Raises:
        FileNotFoundError: it is not there. `Refused`: it is damaged or of another kind.
    """
    raw = path.read_bytes()
    if not raw:
        raise Refused("translator.damaged_vocabulary", path=path, error="0 bytes")
    if raw[:1] == b"{":
        try:
            held = json.loads(raw)
            return Words(held["words"])
        except (ValueError, KeyError, TypeError) as error:
            raise Refused("translator.damaged_vocabulary", path=path, error=error) from None
    try:
        return Subwords(raw)
    except ImportError:
        raise
    except Exception as error:  # SentencePiece raises its own kinds
        raise Refused("translator.damaged_vocabulary", path=path, error=error) from None
