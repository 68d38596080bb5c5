"""A trained model with its vocabularies: from text to text, and a look at what it attends to."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from transformer_lite.model import Transformer, saving
from transformer_lite.translation import vocabulary
from transformer_lite.translation.batching import padded
from transformer_lite.translation.vocabulary import BOS, EOS, PAD, UNK, Vocabulary

SOURCE, TARGET, ABOUT = "source.vocabulary", "target.vocabulary", "about.json"


@dataclass(frozen=True)
class Looked:
    """One sentence and what every head of every layer attended to while it was written."""

    source: list[str]  # tokens, EOS last
    target: list[str]  # tokens, EOS last
    cross: NDArray[np.float32]  # (layers, h, n_target, n_source): row i belongs to the step that writes target token i
    encoder: NDArray[np.float32]  # (layers, h, n_source, n_source)
    decoder: NDArray[np.float32]  # (layers, h, n_target, n_target): row i sees BOS and the tokens before i


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

    @classmethod
    def load(cls, folder: str | Path, device: torch.device | str = "cpu") -> TextTranslator:
        """Read what training has written to ``folder``.

        Raises:
            FileNotFoundError, `saving.BadModelFile`, ValueError: something is missing or damaged; the message says what.
        """
        folder = Path(folder)
        model = saving.load(folder, device)
        for name in (SOURCE, TARGET):
            if not (folder / name).is_file():
                raise FileNotFoundError(f"{folder} holds no {name}; it is no translator's folder.")
        source, target = vocabulary.load(folder / SOURCE), vocabulary.load(folder / TARGET)
        own = (len(source), len(target))
        sizes = (model.config.source_vocab, model.config.target_vocab or model.config.source_vocab)
        if own != sizes:
            raise saving.BadModelFile(f"{folder}: the vocabularies have {own} tokens, the model {sizes}; train again.")
        about = json.loads((folder / ABOUT).read_text("utf-8")) if (folder / ABOUT).is_file() else {}
        return cls(model, source, target, about)

    def save_vocabularies(self, folder: Path) -> None:
        """Write the vocabularies and what there is to say about the model beside it."""
        folder.mkdir(parents=True, exist_ok=True)
        self.source.save(folder / SOURCE)
        self.target.save(folder / TARGET)
        (folder / ABOUT).write_text(json.dumps(self.about, ensure_ascii=False, indent=1) + "\n", "utf-8")

    def unknown(self, text: str) -> list[str]:
        """The words of ``text`` that the model has never seen."""
        ids = self.source.encode(text)
        return [word for word, i in zip(text.split(), ids, strict=False) if i == UNK] if UNK in ids else []

    def translate(
        self, texts: Sequence[str], beam: int = 4, length_penalty: float = 0.6, max_new_tokens: int | None = None, rows: int = 64
    ) -> list[str]:
        """The translation of each text; an empty text gives an empty one.

        Args:
            texts: sentences.
            beam: hypotheses a sentence; 1 is greedy.
            length_penalty: α of the beam.
            max_new_tokens: at most so many; None: as the paper, source + 50.
            rows: sentences at a time; the result does not depend on it.
        """
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
            ValueError: the text is empty. TypeError: the model has no attention to look at.
        """
        if not isinstance(self.model, Transformer):
            raise TypeError(f"only a Transformer shows its attention; this is a {type(self.model).__name__}.")
        ids = self.source.encode(text)
        if not ids:
            raise ValueError("the text is empty.")
        device = next(self.model.parameters()).device
        source = torch.tensor([[*ids, EOS]], device=device)
        generated = self.model.generate(source, beam=beam)[0].tolist() if target is None else self.target.encode(target)
        written = _until_end(generated)
        fed = torch.tensor([[BOS, *written]], device=device)  # the row that writes token i holds the token before it
        _, weights = self.model(source, fed, need_weights=True)

        def stacked(layers: list[torch.Tensor]) -> NDArray[np.float32]:
            return torch.stack([layer[0] for layer in layers]).float().cpu().numpy()

        return Looked(
            self.source.tokens([*ids, EOS]),
            self.target.tokens([*written, EOS]),
            stacked(weights.cross),
            stacked(weights.encoder),
            stacked(weights.decoder),
        )


def _until_end(tokens: Sequence[int]) -> list[int]:
    kept = []
    for token in tokens:
        if token in (EOS, PAD):
            break
        kept.append(token)
    return kept
