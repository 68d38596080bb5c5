"""What the Transformer is compared with: recurrent and convolutional encoder-decoders with the same interface.

``model(source_ids, target_ids)`` gives logits (batch, n_target, vocab), ``model.generate`` writes: one training loop serves all.
They are small and for comparison; none is a copy of a published system. Padding belongs at the end of a sentence.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from transformer_lite.model.attention import padding_mask
from transformer_lite.model.config import own_padding
from transformer_lite.model.generation import Translator

Cell = Literal["rnn", "lstm"]
Style = Literal["none", "bahdanau", "gnmt"]


@dataclass(frozen=True)
class RecurrentConfig:
    """A recurrent encoder-decoder.

    Attributes:
        source_vocab, target_vocab: numbers of tokens.
        d_model: width of embeddings and states.
        n_layers: stacked layers in the encoder and in the decoder each.
        cell: "rnn" (tanh) or "lstm".
        attention: "none": the decoder starts from the encoder's last state and sees nothing else of the source (Sutskever et al.
            2014); "bahdanau": before every step additive attention reads all states of a bidirectional encoder (Bahdanau et al.
            2014); "gnmt": a stack with residual connections whose bottom decoder layer attends to the encoder's top, for all
            layers above (after Wu et al. 2016). GNMT has 8 layers of 1,024 in each stack; 3 or more make sense here.
        dropout: between layers and on the embeddings.
        pad_id, bos_id, eos_id: the tokens that fill up, open and close a sentence.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 128
    n_layers: int = 1
    cell: Cell = "lstm"
    attention: Style = "none"
    dropout: float = 0.0
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        _sizes(self, "source_vocab", "target_vocab", "d_model", "n_layers")
        if self.cell not in ("rnn", "lstm"):
            raise ValueError(f"cell must be 'rnn' or 'lstm'; got {self.cell!r}.")
        if self.attention not in ("none", "bahdanau", "gnmt"):
            raise ValueError(f"attention must be 'none', 'bahdanau' or 'gnmt'; got {self.attention!r}.")
        if self.attention != "none" and self.d_model % 2:
            raise ValueError(f"d_model must be even, as a bidirectional layer halves it; got {self.d_model}.")
        if self.attention == "gnmt" and self.n_layers < 2:
            raise ValueError(f"n_layers must be 2 or more with attention='gnmt'; got {self.n_layers}.")
        own_padding(self.pad_id, self.bos_id, self.eos_id)

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class AdditiveAttention(nn.Module):
    """score(q, k) = vᵀ tanh(W_q q + W_k k): a small network in place of the dot product (Bahdanau et al. 2014)."""

    def __init__(self, d_model: int):
        super().__init__()
        self.w_q = nn.Linear(d_model, d_model, bias=False)
        self.w_k = nn.Linear(d_model, d_model)
        self.v = nn.Linear(d_model, 1, bias=False)

    def forward(self, queries: Tensor, keys: Tensor, memory: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """Contexts (batch, n_q, d_model) and weights (batch, n_q, n_k).

        Args:
            queries: (batch, n_q, d_model).
            keys: (batch, n_k, d_model), ``w_k(memory)``, computed once for all queries.
            memory: (batch, n_k, d_model).
            mask: (batch, 1, n_k), True at real tokens. Where there are none, context and weights are zeros.
        """
        scores = self.v(torch.tanh(self.w_q(queries).unsqueeze(2) + keys.unsqueeze(1))).squeeze(-1)  # (batch, n_q, n_k)
        weights = scores.masked_fill(~mask, torch.finfo(scores.dtype).min).softmax(dim=-1).masked_fill(~mask, 0.0)
        return weights @ memory, weights


class RecurrentTranslator(Translator):
    """A recurrent encoder-decoder: without attention, with Bahdanau's, or stacked like GNMT."""

    def __init__(self, config: RecurrentConfig):
        super().__init__()
        self.config = config
        d, n = config.d_model, config.n_layers
        self.source_embedding = nn.Embedding(config.source_vocab, d)
        self.target_embedding = nn.Embedding(config.target_vocab, d)
        self.dropout = nn.Dropout(config.dropout)
        attends = config.attention != "none"
        # With attention the first encoder layer reads both ways, so that a state knows both sides of its token.
        self.encoder = nn.ModuleList(_recurrent(config.cell, d, d, both_ways=attends and i == 0) for i in range(n))
        with_context = {"none": (), "bahdanau": range(n), "gnmt": range(1, n)}[config.attention]
        self.decoder = nn.ModuleList(_recurrent(config.cell, 2 * d if i in with_context else d, d) for i in range(n))
        if attends:
            self.attention = AdditiveAttention(d)
            self.bridge = nn.Linear(d, d)  # from the source's mean to the decoder's first state
        self.output = nn.Linear(d * (2 if attends else 1), config.target_vocab)

    # --- the encoder ---

    def encode(self, source_ids: Tensor) -> tuple[Tensor, list[Any]]:
        """States (batch, n_source, d_model) of the top layer, zero at padding, and each layer's last state."""
        x = self.dropout(self.source_embedding(source_ids))
        lengths = (source_ids != self.config.pad_id).sum(dim=1).clamp(min=1).cpu()
        last = []
        for i, layer in enumerate(self.encoder):
            packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
            out, state = layer(packed)
            out, _ = pad_packed_sequence(out, batch_first=True, total_length=x.shape[1])
            x = out + x if self.config.attention == "gnmt" and i >= 2 else out  # residual from the third layer on
            x = self.dropout(x)
            last.append(state)
        return x, last

    def _first_states(self, memory: Tensor, last: list[Any], mask: Tensor) -> list[Any]:
        if self.config.attention == "none":
            return last
        real = mask.squeeze(1).unsqueeze(-1)  # (batch, n_source, 1)
        mean = (memory * real).sum(dim=1) / real.sum(dim=1).clamp(min=1)
        start = torch.tanh(self.bridge(mean)).unsqueeze(0)  # (1, batch, d_model)
        return [(start, torch.zeros_like(start)) if self.config.cell == "lstm" else start for _ in self.decoder]

    # --- the decoder ---

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits (batch, n_target, vocab); ``target_ids`` is the target shifted right, as for `Transformer`."""
        return self._begin(source_ids).read(target_ids)

    def _begin(self, source_ids: Tensor) -> RecurrentState:
        mask = padding_mask(source_ids, self.config.pad_id)
        memory, last = self.encode(source_ids)
        return RecurrentState(self, memory, mask, self._first_states(memory, last, mask))

    def start(self, source_ids: Tensor, beam: int, capacity: int) -> RecurrentState:
        """Read the source and prepare to write; see `generation`."""
        state = self._begin(source_ids)
        state.repeat(beam)
        return state

    def start_without_cache(self, source_ids: Tensor, beam: int) -> RecurrentState:
        """A recurrent model carries a state of fixed size anyway."""
        return self.start(source_ids, beam, 0)


class RecurrentState:
    """Where reading or writing the target stands: each decoder layer's state, and what attention reads."""

    def __init__(self, model: RecurrentTranslator, memory: Tensor, mask: Tensor, states: list[Any]):
        self.model, self.memory, self.mask, self.states = model, memory, mask, states
        self.keys = model.attention.w_k(memory) if model.config.attention != "none" else None

    def read(self, target_ids: Tensor) -> Tensor:
        """Take in (batch, n) tokens; logits (batch, n, vocab)."""
        model, style = self.model, self.model.config.attention
        y = model.dropout(model.target_embedding(target_ids))  # (batch, n, d_model)
        if style == "bahdanau":  # what attention looks for depends on the state before: one token at a time
            return torch.cat([self._bahdanau(y[:, i : i + 1]) for i in range(y.shape[1])], dim=1)
        for i, layer in enumerate(model.decoder):
            below = y
            if style == "gnmt" and i == 1:
                context, _ = model.attention(y, self.keys, self.memory, self.mask)
            y, self.states[i] = layer(torch.cat([y, context], dim=-1) if style == "gnmt" and i >= 1 else y, self.states[i])
            if style == "gnmt" and i >= 2:
                y = y + below
            y = model.dropout(y)
        return model.output(torch.cat([y, context], dim=-1) if style == "gnmt" else y)

    def _bahdanau(self, y: Tensor) -> Tensor:
        model = self.model
        state = self.states[-1]
        query = (state[0] if isinstance(state, tuple) else state).transpose(0, 1)  # (1, batch, d) -> (batch, 1, d)
        context, _ = model.attention(query, self.keys, self.memory, self.mask)
        for i, layer in enumerate(model.decoder):
            y, self.states[i] = layer(torch.cat([y, context], dim=-1), self.states[i])
            y = model.dropout(y)
        return model.output(torch.cat([y, context], dim=-1))

    def step(self, token_ids: Tensor) -> Tensor:
        """Take in one token of each continuation; logits (rows, vocab) of the next."""
        return self.read(token_ids.unsqueeze(1))[:, 0]

    def repeat(self, beam: int) -> None:
        """Make ``beam`` continuations of each sentence, those of one sentence together."""
        if beam > 1:
            self._keep(torch.arange(len(self.memory), device=self.memory.device).repeat_interleave(beam), everything=True)

    def reorder(self, rows: Tensor) -> None:
        """Go on with the continuations ``rows``, in that order."""
        self._keep(rows, everything=False)  # continuations never change their sentence

    def _keep(self, rows: Tensor, everything: bool) -> None:
        self.states = [
            tuple(part[:, rows].contiguous() for part in state) if isinstance(state, tuple) else state[:, rows].contiguous()
            for state in self.states
        ]
        if everything:
            self.memory, self.mask = self.memory[rows], self.mask[rows]
            self.keys = None if self.keys is None else self.keys[rows]


def _recurrent(cell: Cell, d_in: int, d_out: int, both_ways: bool = False) -> nn.Module:
    kind = nn.LSTM if cell == "lstm" else nn.RNN
    return kind(d_in, d_out // 2 if both_ways else d_out, batch_first=True, bidirectional=both_ways)


@dataclass(frozen=True)
class ConvolutionalConfig:
    """A convolutional encoder-decoder, after ConvS2S (Gehring et al. 2017) and ByteNet (Kalchbrenner et al. 2016).

    Attributes:
        source_vocab, target_vocab: numbers of tokens.
        d_model: width.
        n_layers: layers in each stack.
        kernel: k, tokens that one layer looks at; odd.
        dilated: layer i skips k^i tokens, so that the receptive field grows as k^layers; else it grows by k − 1 a layer.
        dropout: on every layer's input.
        max_positions: learned positions.
        pad_id, bos_id, eos_id: the tokens that fill up, open and close a sentence.
    """

    source_vocab: int
    target_vocab: int
    d_model: int = 128
    n_layers: int = 3
    kernel: int = 3
    dilated: bool = False
    dropout: float = 0.0
    max_positions: int = 512
    pad_id: int = 0
    bos_id: int = 1
    eos_id: int = 2

    def __post_init__(self) -> None:
        _sizes(self, "source_vocab", "target_vocab", "d_model", "n_layers", "kernel", "max_positions")
        if self.kernel % 2 == 0:
            raise ValueError(f"kernel must be odd, so that it has a middle; got {self.kernel}.")
        own_padding(self.pad_id, self.bos_id, self.eos_id)

    def dilation(self, layer: int) -> int:
        """How far apart the tokens are that layer number ``layer`` (from 0) looks at."""
        return self.kernel**layer if self.dilated else 1

    def to_dict(self) -> dict[str, Any]:
        """As plain values, for JSON."""
        return asdict(self)


class Convolution(nn.Module):
    """x + a gated convolution over the positions (GLU). ``causal``: it looks back only."""

    def __init__(self, config: ConvolutionalConfig, layer: int, causal: bool):
        super().__init__()
        self.dilation = config.dilation(layer)
        reach = (config.kernel - 1) * self.dilation
        self.around = (reach, 0) if causal else (reach // 2, reach // 2)
        self.convolution = nn.Conv1d(config.d_model, 2 * config.d_model, config.kernel, dilation=self.dilation)
        self.dropout = nn.Dropout(config.dropout)

    def forward(self, x: Tensor, real: Tensor | None = None) -> Tensor:
        """(batch, n, d_model) -> same; ``real`` (batch, n, 1) is False at padding, which then counts as nothing."""
        inner = self.dropout(x if real is None else x * real)
        inner = F.pad(inner.transpose(1, 2), self.around)  # (batch, d_model, n + reach)
        return (x + F.glu(self.convolution(inner), dim=1).transpose(1, 2)) * 0.5**0.5


class ConvolutionalTranslator(Translator):
    """Convolutions in both stacks; each decoder layer reads the encoder by dot-product attention, as ConvS2S does."""

    def __init__(self, config: ConvolutionalConfig):
        super().__init__()
        self.config = config
        d = config.d_model
        self.source_embedding = nn.Embedding(config.source_vocab, d)
        self.target_embedding = nn.Embedding(config.target_vocab, d)
        self.source_positions = nn.Embedding(config.max_positions, d)
        self.target_positions = nn.Embedding(config.max_positions, d)
        self.encoder = nn.ModuleList(Convolution(config, i, causal=False) for i in range(config.n_layers))
        self.decoder = nn.ModuleList(Convolution(config, i, causal=True) for i in range(config.n_layers))
        self.queries = nn.ModuleList(nn.Linear(d, d) for _ in range(config.n_layers))
        self.contexts = nn.ModuleList(nn.Linear(d, d) for _ in range(config.n_layers))
        self.output = nn.Linear(d, config.target_vocab)
        for table in (self.source_embedding, self.target_embedding, self.source_positions, self.target_positions):
            nn.init.normal_(table.weight, std=0.1)

    def encode(self, source_ids: Tensor) -> tuple[Tensor, Tensor]:
        """Memory (batch, n_source, d_model), and what attention averages: memory + embedding, as in ConvS2S."""
        real = (source_ids != self.config.pad_id).unsqueeze(-1)
        embedded = self._embed(source_ids, self.source_embedding, self.source_positions)
        x = embedded
        for layer in self.encoder:
            x = layer(x, real)
        return x, x + embedded

    def _embed(self, ids: Tensor, tokens: nn.Embedding, positions: nn.Embedding) -> Tensor:
        n = ids.shape[1]
        if n > self.config.max_positions:
            raise ValueError(f"there are {self.config.max_positions} positions; got {n} tokens.")
        return tokens(ids) + positions.weight[:n]

    def forward(self, source_ids: Tensor, target_ids: Tensor) -> Tensor:
        """Logits (batch, n_target, vocab); ``target_ids`` is the target shifted right, as for `Transformer`."""
        return self.decode(target_ids, *self.encode(source_ids), padding_mask(source_ids, self.config.pad_id))

    def decode(self, target_ids: Tensor, keys: Tensor, values: Tensor, mask: Tensor) -> Tensor:
        """Logits (batch, n_target, vocab) given what the encoder made of the source."""
        y = self._embed(target_ids, self.target_embedding, self.target_positions)
        for layer, query, context in zip(self.decoder, self.queries, self.contexts, strict=True):
            y = layer(y)
            y = y + context(F.scaled_dot_product_attention(query(y), keys, values, attn_mask=mask))
        return self.output(y)

    def start(self, source_ids: Tensor, beam: int, capacity: int) -> ConvolutionalState:
        """Read the source and prepare to write; see `generation`."""
        return ConvolutionalState(self, source_ids, beam)

    def start_without_cache(self, source_ids: Tensor, beam: int) -> ConvolutionalState:
        """As `start`: the convolutions are computed anew for every token."""
        return ConvolutionalState(self, source_ids, beam)


class ConvolutionalState:
    """The tokens so far; every step runs the decoder over all of them."""

    def __init__(self, model: ConvolutionalTranslator, source_ids: Tensor, beam: int):
        self.model = model
        rows = torch.arange(len(source_ids), device=source_ids.device).repeat_interleave(beam)
        self.source = [part[rows] for part in (*model.encode(source_ids), padding_mask(source_ids, model.config.pad_id))]
        self.tokens = source_ids.new_empty(len(rows), 0)

    def step(self, token_ids: Tensor) -> Tensor:
        """Take in one token of each continuation; logits (rows, vocab) of the next."""
        self.tokens = torch.cat([self.tokens, token_ids.unsqueeze(1)], dim=1)
        return self.model.decode(self.tokens, *self.source)[:, -1]

    def reorder(self, rows: Tensor) -> None:
        """Go on with the continuations ``rows``, in that order."""
        self.tokens = self.tokens[rows]


def _sizes(config: Any, *names: str) -> None:
    for name in names:
        if getattr(config, name) < 1:
            raise ValueError(f"{name} must be 1 or more; got {getattr(config, name)}.")
