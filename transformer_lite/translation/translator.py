"""A trained model with its vocabularies: from text to text, and a look at what it attends to."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transformer_lite.language import message
from transformer_lite.model import Transformer, saving
from transformer_lite.translation import Refused, grammar, vocabulary
from transformer_lite.translation.batching import padded
from transformer_lite.translation.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

SOURCE, TARGET, ABOUT = "source.vocabulary", "target.vocabulary", "about.json"
SHOWN = 5  # of the probable tokens of each place
LONGEST = 500  # tokens of a text; a sentence has fewer, and the work grows with the square
WIDEST = 1_000  # hypotheses of a beam: they all take memory


@dataclass(frozen=True)
class Looked:
    """One sentence and what every head of every layer attended to while it was written."""

    source: list[str]  # tokens, EOS last
    target: list[str]  # tokens, EOS last
    cross: NDArray[np.float32]  # (layers, h, n_target, n_source): row i belongs to the step that writes target token i
    encoder: NDArray[np.float32]  # (layers, h, n_source, n_source)
    decoder: NDArray[np.float32]  # (layers, h, n_target, n_target): row i sees BOS and the tokens before i
    likely: list[list[tuple[str, float]]]  # for each target token, what was most probable in its place: (token, probability)


class TextTranslator:
    """Translates text with a model and its two vocabularies.

    Args:
        model: of this package, in any mode.
        source, target: its vocabularies.
        about: what was trained on what, for reports.
    """

    def __init__(self, model: nn.Module, source: Vocabulary, target: Vocabulary, about: dict[str, Any] | None = None):
        self.model, self.source, self.target = model.eval(), source, target
        self.about = about or {}

    def __repr__(self) -> str:
        return f"TextTranslator({type(self.model).__name__}, {len(self.source)} source and {len(self.target)} target tokens)"

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> TextTranslator:
        """Read what training has written to ``folder``.

        Raises:
            `saving.BadModelFile`, `Refused`: something is missing, damaged or from another training; the message says what.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise Refused("translator.no_folder", folder=folder)
        for name in (saving.CONFIG, saving.WEIGHTS):
            if not (folder / name).is_file():
                raise Refused("translator.no_file", folder=folder, name=name)
        model = saving.load(folder, device)
        for name, values in model.state_dict().items():
            if not bool(torch.isfinite(values).all()):
                raise Refused("translator.not_finite", path=folder / saving.WEIGHTS, name=name)
        trained_with = saving.metadata(folder)
        for name in (SOURCE, TARGET):
            if not (folder / name).is_file():
                raise Refused("translator.no_file", folder=folder, name=name)
        source, target = vocabulary.load(folder / SOURCE), vocabulary.load(folder / TARGET)
        own = (len(source), len(target))
        sizes = (model.config.source_vocab, model.config.target_vocab or model.config.source_vocab)
        if own != sizes:
            raise Refused("translator.other_sizes", folder=folder, own=own, expected=sizes)
        for name, held in fingerprints(source, target).items():
            if trained_with.get(name, held) != held:
                raise Refused("translator.other_vocabulary", path=folder / name)
        return cls(model, source, target, _about(folder / ABOUT))

    def save_vocabularies(self, folder: Path) -> None:
        """Write the vocabularies and what there is to say about the model beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source.save(folder / SOURCE)
        self.target.save(folder / TARGET)
        (folder / ABOUT).write_text(json.dumps(self.about, ensure_ascii=False, indent=1) + "\n", "utf-8")

    @property
    def on_grammar(self) -> bool:
        """Whether it was trained on the sentences of the course's grammar."""
        return self.about.get("data") == "grammar"

    def tidied(self, text: str) -> str:
        """``text`` as it was written in training: for the grammar's translator see `grammar.tidied`; for others as it is."""
        return grammar.tidied(text) if self.on_grammar else text

    def unknown(self, text: str) -> list[str]:
        """The words of ``text``, parted by spaces, that hold something the model has never seen."""
        return [word for word in text.split() if UNK in self.source.encode(word)]

    def refuse(self, text: str) -> None:
        """Refuse what cannot be translated: more than `LONGEST` tokens.

        Raises:
            Refused: the message says how to mend it.
        """
        tokens = len(self.source.encode(text))
        if tokens > LONGEST:
            raise Refused("translator.too_long", tokens=f"{tokens:,}", longest=LONGEST)

    def doubts(self, text: str) -> str | None:
        """What speaks against the translation of ``text`` in the user's language, if anything does: words never seen."""
        unknown = self.unknown(text)
        if not unknown:
            return None
        if len(unknown) == len(text.split()):
            known = [token.strip("▁") for token in self.source.tokens(range(UNK + 1, len(self.source)))]
            examples = [token for token in known if len(token) > 2][:5]
            doubts = message("translation.translator.all_unknown", examples=", ".join(examples))
        else:
            doubts = message("translation.translator.some_unknown", words=", ".join(unknown[:10]))
        return doubts + message("translation.translator.grammar_words") if self.on_grammar else doubts

    def translate(
        self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6, max_new_tokens: int | None = None, rows: int = 64
    ) -> list[str]:
        """The translation of each text; an empty text gives an empty one.

        Words are parted by spaces where the model learned them so; see `corpora.joined`.

        Args:
            texts: sentences.
            beam: hypotheses a sentence; 1 is greedy.
            length_penalty: α of the beam.
            max_new_tokens: at most so many; None: as the paper, source + 50.
            rows: sentences at a time; the result does not depend on it.

        Raises:
            Refused: a text is too long, see `refuse`, or the beam is no number from 1 to `WIDEST`.
        """
        _check_beam(beam)
        for text in texts:
            self.refuse(text)
        ids = [self.source.encode(text) for text in texts]
        order = sorted((i for i in range(len(texts)) if ids[i]), key=lambda i: len(ids[i]))
        found = [""] * len(texts)
        device = next(self.model.parameters()).device
        for start in range(0, len(order), rows):
            here = order[start : start + rows]
            source = padded([[*ids[i], EOS] for i in here]).to(device)
            written = self.model.generate(source, max_new_tokens, beam, length_penalty=length_penalty).tolist()
            for i, tokens in zip(here, written, strict=True):
                found[i] = self.target.decode(_until_end(tokens))
        return found

    @torch.no_grad()
    def look(self, text: str, target: str | None = None, beam: int = 4) -> Looked:
        """The attention of every layer and head while ``text`` is translated, or while ``target`` is written if given.

        Raises:
            Refused: the text is empty or too long, the beam is too wide, or the model has no attention to look at.
        """
        _check_beam(beam)
        if not isinstance(self.model, Transformer):
            raise Refused("translator.no_attention", kind=type(self.model).__name__)
        ids = self.source.encode(text)
        if not ids:
            raise Refused("translator.empty")
        self.refuse(text)
        device = next(self.model.parameters()).device
        source = torch.tensor([[*ids, EOS]], device=device)
        generated = self.model.generate(source, beam=beam)[0].tolist() if target is None else self.target.encode(target)
        written = _until_end(generated)
        fed = torch.tensor([[BOS, *written]], device=device)  # the row that writes token i holds the token before it
        logits, weights = self.model(source, fed, need_weights=True)
        probabilities, places = logits[0].float().softmax(dim=-1).topk(min(SHOWN, logits.shape[-1]), dim=-1)
        likely = [
            list(zip(self.target.tokens(here), each, strict=True))
            for here, each in zip(places.tolist(), probabilities.tolist(), strict=True)
        ]

        def stacked(layers: list[torch.Tensor]) -> NDArray[np.float32]:
            return torch.stack([layer[0] for layer in layers]).float().cpu().numpy()

        return Looked(
            self.source.tokens([*ids, EOS]),
            self.target.tokens([*written, EOS]),
            stacked(weights.cross),
            stacked(weights.encoder),
            stacked(weights.decoder),
            likely,
        )


def fingerprints(source: Vocabulary, target: Vocabulary) -> dict[str, str]:
    """What the weights' file keeps to know its vocabularies again: the SHA-256 of their tokens in order."""
    return {
        name: hashlib.sha256("\n".join(held.tokens(range(len(held)))).encode()).hexdigest()
        for name, held in ((SOURCE, source), (TARGET, target))
    }


def _check_beam(beam: int) -> None:
    if not isinstance(beam, int) or not 1 <= beam <= WIDEST:
        raise Refused("translator.beam", value=repr(beam), widest=f"{WIDEST:,}")


def _about(path: Path) -> dict[str, Any]:
    """What was trained on what; nothing where it is not told."""
    if not path.is_file():
        return {}
    try:
        about = json.loads(path.read_text("utf-8"))
    except ValueError as error:
        raise Refused("translator.damaged_about", path=path, error=error) from None
    if not isinstance(about, dict):
        raise Refused("translator.damaged_about", path=path, error=type(about).__name__)
    return about


def _until_end(tokens: Sequence[int]) -> list[int]:
    kept = []
    for token in tokens:
        if token in (EOS, PAD):
            break
        kept.append(token)
    return kept
