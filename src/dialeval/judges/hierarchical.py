"""ADEM with its own encoder: word or character indices in, end to end differentiable.

An utterance encoder (GRU or LSTM over words) makes a vector of each utterance; a context encoder (the same over
utterance vectors) makes one of the turns so far. Response and reference are encoded as utterances, by the same weights
or by weights of their own (`EncoderSettings.shared`). The vectors go into the formula of `trainer`.

Padded inputs come with masks of one of two kinds: of the shape of the words, true (or 1) where there is a word; or with
one dimension less, the number of words of each utterance, as the original takes them. A turn without a word is no turn.
Responses and references are (batch, words); of (batch, turns, words), as the original has them, the turns of a row are
read as one utterance. Sequences are packed, so that padding costs nothing and changes nothing.

`pretrain` teaches the encoder on plain dialogues first: which of the utterances of the batch comes next, by the softmax
of c' W u over all of them.

Paper: Lowe et al. 2017 (see `trainer`), who pre-train the encoder of a generator (VHRED) instead. The original program
loops over the batch inside its graph; here a batch is one pass. It has three encoders over words and turns; here only
contexts have one over turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.io.packs import Progress
from dialeval.judges.trainer import (
    L1,
    MAX_GRAD_NORM,
    Bilinear,
    Constants,
    Tensors,
    Trainer,
    as_tensor,
    batches,
    descend,
    take,
)


@dataclass(frozen=True)
class EncoderSettings:
    """The shape of the hierarchical encoder."""

    utterance: int = 200
    """Numbers in the vector of an utterance, and so of a response and of a reference."""
    context: int = 200
    """Numbers in the vector of a context."""
    layers: int = 1
    """Recurrent layers over words, and over turns."""
    dropout: float = 0.0
    """Share of the numbers that are left out while training: of embeddings, between layers, of the vectors."""
    cell: Literal["gru", "lstm"] = "gru"
    """The kind of recurrent unit."""
    shared: Literal["all", "replies", "none"] = "all"
    """Who shares the weights over words: context, response and reference; the last two; or none, as in the original."""

    def __post_init__(self) -> None:
        if min(self.utterance, self.context, self.layers) < 1:
            raise SettingError("sizes and layers of an encoder are at least 1")
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout lies from 0 to below 1, not {self.dropout}")
        if self.cell not in ("gru", "lstm"):
            raise SettingError(f"an encoder's cell is gru or lstm, not {self.cell!r}")
        if self.shared not in ("all", "replies", "none"):
            raise SettingError(f"an encoder's weights are shared by all, replies or none, not by {self.shared!r}")


_USUAL = EncoderSettings()


class Recurrent(nn.Module):
    """A recurrent encoder of padded sequences: the last layer's state behind each sequence's last element."""

    def __init__(self, inputs: int, outputs: int, settings: EncoderSettings) -> None:
        super().__init__()
        kind = nn.GRU if settings.cell == "gru" else nn.LSTM
        between = settings.dropout if settings.layers > 1 else 0.0
        self.cells = kind(inputs, outputs, settings.layers, batch_first=True, dropout=between)
        self.outputs = outputs

    def forward(self, sequences: Tensor, lengths: Tensor) -> Tensor:
        """Return one vector per sequence; that of an empty one is zero."""
        states = sequences.new_zeros(len(sequences), self.outputs)
        there = (lengths > 0).nonzero().squeeze(1)
        if not len(there):
            return states
        packed = pack_padded_sequence(sequences[there], lengths[there].cpu(), batch_first=True, enforce_sorted=False)
        state = self.cells(packed)[1]
        last = state[0][-1] if isinstance(state, tuple) else state[-1]
        return states.index_copy(0, there, last)


class HierarchicalEncoder(nn.Module):
    """Utterances to vectors, and contexts of several utterances to vectors."""

    def __init__(self, vocabulary_size: int, embedding_size: int, settings: EncoderSettings) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(vocabulary_size, embedding_size)
        self.words = Recurrent(embedding_size, settings.utterance, settings)
        self.turns = Recurrent(settings.utterance, settings.context, settings)
        self.dropout = nn.Dropout(settings.dropout)
        # Each side is read by cells of its own, or by those of the side before it.
        if settings.shared != "all":
            self.responses = Recurrent(embedding_size, settings.utterance, settings)
        if settings.shared == "none":
            self.references = Recurrent(embedding_size, settings.utterance, settings)

    def response(self, indices: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of responses."""
        return self.utterance(indices, mask, getattr(self, "responses", self.words))

    def reference(self, indices: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of references."""
        return self.utterance(indices, mask, getattr(self, "references", getattr(self, "responses", self.words)))

    def utterance(self, indices: Tensor, mask: Tensor, cells: Recurrent) -> Tensor:
        """Return the vectors of utterances: (batch, words) to (batch, utterance)."""
        indices, lengths = _left(indices, mask)
        states = cells(self.dropout(self.embeddings(indices)), lengths)
        return self.dropout(states)  # type: ignore[no-any-return]

    def context(self, indices: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of contexts: (batch, turns, words) to (batch, context)."""
        batch, turns, words = indices.shape
        flat = batch * turns, words
        vectors = self.utterance(indices.reshape(flat), mask.reshape(flat), self.words)
        vectors = vectors.reshape(batch, turns, self.words.outputs)
        return self.dropout(self.turns(*_left(vectors, mask.any(-1))))  # type: ignore[no-any-return]


class _Network(nn.Module):
    def __init__(
        self, vocabulary_size: int, embedding_size: int, settings: EncoderSettings, alpha: float, beta: float
    ) -> None:
        super().__init__()
        self.encoder = HierarchicalEncoder(vocabulary_size, embedding_size, settings)
        self.head = Bilinear(settings.context, settings.utterance, settings.utterance, alpha, beta)
        self.next = nn.Linear(settings.context, settings.utterance, bias=False)

    def forward(self, *inputs: Tensor) -> Tensor:
        context, context_mask, response, response_mask, reference, reference_mask = inputs
        return self.head(  # type: ignore[no-any-return]
            self.encoder.context(context, context_mask),
            self.encoder.response(response, response_mask),
            self.encoder.reference(reference, reference_mask),
        )

    def next_utterance(self, context: Tensor, context_mask: Tensor, following: Tensor, mask: Tensor) -> Tensor:
        """Return the loss of telling which utterance of the batch follows each context."""
        contexts = self.next(self.encoder.context(context, context_mask))
        scores = contexts @ self.encoder.response(following, mask).T
        return nn.functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


class ADEMWithEncoder(Trainer):
    """The model for words or characters that were mapped to indices.

    Indices go from 0 to `vocabulary_size` - 1; index 0 is padding where the mask says so, and a word like others
    elsewhere. `encoder` says how large the rest is; `l1` and `max_grad_norm` are those of `ADEM`. `embeddings` are word
    vectors to start from, one row per index; `train_embeddings=False` keeps them as they are. `seed` draws the first
    weights.
    """

    kind = "adem-with-encoder"
    epochs, patience = 20, 3
    network: _Network

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        encoder: EncoderSettings = _USUAL,
        learning_rate: float = 1e-3,
        *,
        embeddings: Any = None,
        train_embeddings: bool = True,
        l1: float = L1,
        alpha: float = 0.0,
        beta: float = 1.0,
        max_grad_norm: float = MAX_GRAD_NORM,
        constants: Constants = "learned",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        if min(vocabulary_size, embedding_size) < 1 or beta == 0:
            raise SettingError("vocabulary_size and embedding_size are at least 1, and beta is not 0")
        self.vocabulary_size, self.embedding_size = vocabulary_size, embedding_size
        self.settings, self.train_embeddings = encoder, train_embeddings
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            network = _Network(vocabulary_size, embedding_size, encoder, alpha, beta)
        table = network.encoder.embeddings.weight
        if embeddings is not None:
            given = as_tensor(embeddings, torch.float32, "cpu")
            if given.shape != table.shape:
                raise SettingError(f"embeddings have the shape {tuple(given.shape)}, not {tuple(table.shape)}")
            with torch.no_grad():
                table.copy_(given)
        table.requires_grad_(train_embeddings)
        super().__init__(network, network.head, learning_rate, l1, max_grad_norm, constants, device)

    def train_on_single_batch(
        self,
        context: Any,
        model_response: Any,
        reference_response: Any,
        context_mask: Any,
        model_response_mask: Any,
        reference_response_mask: Any,
        human_score: Any,
        learning_rate: float | None = None,
    ) -> tuple[Floats, float]:
        """Take one step on one batch, see `ADEM`; the order is that of the original, words first and then masks."""
        inputs = context, model_response, reference_response, context_mask, model_response_mask, reference_response_mask
        return self._train(inputs, human_score, learning_rate)

    def predict_on_single_batch(
        self,
        context: Any,
        model_response: Any,
        reference_response: Any,
        context_mask: Any,
        model_response_mask: Any,
        reference_response_mask: Any,
    ) -> Floats:
        """Return one score per row."""
        return self._predict(
            (context, model_response, reference_response, context_mask, model_response_mask, reference_response_mask)
        )

    def pretrain(
        self,
        context: Any,
        context_mask: Any,
        following: Any,
        following_mask: Any,
        *,
        epochs: int = 1,
        batch_size: int = 64,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> list[float]:
        """Teach the encoder which utterance follows a context; return the mean loss of each epoch."""
        if epochs < 1 or batch_size < 2:
            raise SettingError("epochs are at least 1, and a batch has at least 2 utterances to choose from")
        parts = self._sequences((context, context_mask, following, following_mask), ("context", "following"))
        if len(parts[0]) < 2:
            raise SettingError("there is nothing to learn from: give at least two contexts and what follows them")
        order = torch.Generator().manual_seed(seed)
        torch.manual_seed(seed)
        losses = []
        for epoch in range(epochs):
            total = 0.0
            for rows in batches(len(parts[0]), batch_size, order):
                self.network.train()
                loss = self.network.next_utterance(*take(parts, rows))
                descend(self.optimizer, loss, self.max_grad_norm)
                total += float(loss.detach()) * len(rows)
            losses.append(total / len(parts[0]))
            if progress is not None:
                progress(epoch + 1, epochs)
        return losses

    def _inputs(self, inputs: Sequence[Any]) -> Tensors:
        if len(inputs) != 6:
            raise SettingError(
                f"inputs are six arrays, context, response and reference, then their masks: {len(inputs)}"
            )
        words_and_masks = tuple(part for pair in zip(inputs[:3], inputs[3:], strict=True) for part in pair)
        return self._sequences(words_and_masks, ("context", "model_response", "reference_response"))

    def _sequences(self, inputs: Sequence[Any], names: Sequence[str]) -> Tensors:
        """Return words and masks of contexts (with a dimension for turns) and of utterances, all with as many rows."""
        parts: list[Tensor] = []
        for words, mask, name in zip(inputs[::2], inputs[1::2], names, strict=True):
            parts += self._sequence(words, mask, 3 if name == "context" else 2, name)
        if len({len(part) for part in parts}) > 1:
            counts = ", ".join(str(len(part)) for part in parts[::2])
            raise SettingError(f"the arrays have different numbers of rows ({counts}); one row per response in each")
        return tuple(parts)

    def _sequence(self, indices: Any, mask: Any, dimensions: int, what: str) -> tuple[Tensor, Tensor]:
        words, there = as_tensor(indices, torch.long, self.device), as_tensor(mask, torch.long, self.device)
        several = "3" if dimensions == 3 else "2 or 3"
        if words.ndim not in (dimensions, 3) or there.shape not in (words.shape, words.shape[:-1]):
            shapes = f"{tuple(words.shape)} with a mask of {tuple(there.shape)}"
            remedy = f"words have {several} dimensions, a mask has the same, or one less if it holds lengths"
            raise SettingError(f"{what} has the shape {shapes}; {remedy}")
        if words.numel() and not 0 <= int(words.min()) <= int(words.max()) < self.vocabulary_size:
            raise SettingError(f"{what} holds indices outside of 0 to {self.vocabulary_size - 1}")
        lengths = there.shape != words.shape
        if there.numel() and not 0 <= int(there.min()) <= int(there.max()) <= (words.shape[-1] if lengths else 1):
            kind = f"lengths from 0 to {words.shape[-1]}" if lengths else "0 and 1"
            raise SettingError(f"the mask of {what} holds other numbers than {kind}")
        if lengths:
            there = torch.arange(words.shape[-1], device=there.device) < there[..., None]
        if words.ndim > dimensions:  # the turns of a reply are read as one utterance
            words, there = words.flatten(1), there.flatten(1)
        return words, there.bool()

    def _shape(self) -> dict[str, Any]:
        sizes = {"vocabulary_size": self.vocabulary_size, "embedding_size": self.embedding_size}
        return {**sizes, "encoder": asdict(self.settings), "train_embeddings": self.train_embeddings}

    @classmethod
    def _from_settings(cls, settings: dict[str, Any], device: str) -> ADEMWithEncoder:
        return cls(**{**settings, "encoder": EncoderSettings(**settings["encoder"])}, device=device)


def _left(rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the words or turns that the mask has, moved to the front of their row, and how many there are."""
    order = mask.long().argsort(dim=1, descending=True, stable=True)
    order = order.reshape(*order.shape, *[1] * (rows.ndim - 2)).expand_as(rows)
    return rows.gather(1, order), mask.sum(1)
