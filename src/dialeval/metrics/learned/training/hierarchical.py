"""ADEM with its own encoder: word or character indices in, end to end differentiable.

An utterance encoder (GRU or LSTM over words) makes a vector of each utterance; a context encoder (the same over
utterance vectors) makes one of the turns so far. Response and reference are encoded as utterances, by the same weights.
The vectors go into the formula of `trainer`. Padded inputs come with masks: true (or 1) where there is a word; a turn
without a word is no turn. Sequences are packed, so that padding costs nothing and changes nothing.

`pretrain` teaches the encoder on plain dialogues first: which of the utterances of the batch comes next, by the softmax
of c' W u over all of them.

Paper: Lowe et al. 2017 (see `trainer`), who pre-train the encoder of a generator (VHRED) instead. The original program
loops over the batch inside its graph; here a batch is one pass.
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
from dialeval.metrics.learned.training.trainer import (
    Bilinear,
    Constants,
    Fitted,
    Inputs,
    Schedule,
    Tensors,
    Trainer,
    as_tensor,
    batches,
    take,
)
from dialeval.resources.progress import Progress


@dataclass(frozen=True)
class EncoderSettings:
    """The shape of the hierarchical encoder."""

    vocabulary: int
    """Number of distinct indices; index 0 is padding where the mask says so, and a word like others elsewhere."""
    embedding: int = 100
    utterance: int = 200
    context: int = 200
    layers: int = 1
    dropout: float = 0.0
    cell: Literal["gru", "lstm"] = "gru"

    def __post_init__(self) -> None:
        if min(self.vocabulary, self.embedding, self.utterance, self.context, self.layers) < 1:
            raise SettingError("sizes and layers of an encoder are at least 1")
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout lies from 0 to below 1, not {self.dropout}")
        if self.cell not in ("gru", "lstm"):
            raise SettingError(f"an encoder's cell is gru or lstm, not {self.cell!r}")


class Recurrent(nn.Module):
    """A recurrent encoder of padded sequences: the last layer's state behind each sequence's last element."""

    def __init__(self, inputs: int, outputs: int, settings: EncoderSettings) -> None:
        super().__init__()
        kind = nn.GRU if settings.cell == "gru" else nn.LSTM
        between = settings.dropout if settings.layers > 1 else 0.0
        self.cells = kind(inputs, outputs, settings.layers, batch_first=True, dropout=between)
        self.outputs = outputs

    def forward(self, sequences: Tensor, lengths: Tensor) -> Tensor:
        """One vector per sequence; that of an empty one is zero."""
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

    def __init__(self, settings: EncoderSettings) -> None:
        super().__init__()
        self.embeddings = nn.Embedding(settings.vocabulary, settings.embedding)
        self.words = Recurrent(settings.embedding, settings.utterance, settings)
        self.turns = Recurrent(settings.utterance, settings.context, settings)
        self.dropout = nn.Dropout(settings.dropout)

    def utterance(self, indices: Tensor, mask: Tensor) -> Tensor:
        """The vectors of utterances: (batch, words) to (batch, utterance)."""
        indices, lengths = _left(indices, mask)
        return self.dropout(self.words(self.dropout(self.embeddings(indices)), lengths))  # type: ignore[no-any-return]

    def context(self, indices: Tensor, mask: Tensor) -> Tensor:
        """The vectors of contexts: (batch, turns, words) to (batch, context)."""
        batch, turns, words = indices.shape
        flat = batch * turns, words
        vectors = self.utterance(indices.reshape(flat), mask.reshape(flat)).reshape(batch, turns, self.words.outputs)
        return self.dropout(self.turns(*_left(vectors, mask.any(-1))))  # type: ignore[no-any-return]


class _Network(nn.Module):
    def __init__(self, settings: EncoderSettings, alpha: float, beta: float) -> None:
        super().__init__()
        self.encoder = HierarchicalEncoder(settings)
        self.head = Bilinear(settings.context, settings.utterance, settings.utterance, alpha, beta)
        self.next = nn.Linear(settings.context, settings.utterance, bias=False)

    def forward(self, *inputs: Tensor) -> Tensor:
        context, context_mask, response, response_mask, reference, reference_mask = inputs
        return self.head(  # type: ignore[no-any-return]
            self.encoder.context(context, context_mask),
            self.encoder.utterance(response, response_mask),
            self.encoder.utterance(reference, reference_mask),
        )

    def next_utterance(self, context: Tensor, context_mask: Tensor, following: Tensor, mask: Tensor) -> Tensor:
        """The loss of telling which utterance of the batch follows each context."""
        contexts = self.next(self.encoder.context(context, context_mask))
        scores = contexts @ self.encoder.utterance(following, mask).T
        return nn.functional.cross_entropy(scores, torch.arange(len(scores), device=scores.device))


class ADEMWithEncoder(Trainer):
    """The model for words or characters that were mapped to indices.

    `embeddings` are word vectors to start from, one row per index; `train_embeddings=False` keeps them as they are.
    `seed` draws the first weights.
    """

    kind = "adem-with-encoder"
    network: _Network

    def __init__(
        self,
        encoder: EncoderSettings,
        learning_rate: float = 1e-3,
        *,
        embeddings: Any = None,
        train_embeddings: bool = True,
        l1: float = 0.0,
        alpha: float = 0.0,
        beta: float = 1.0,
        clip: float = 5.0,
        constants: Constants = "learned",
        seed: int = 0,
        device: str = "cpu",
    ) -> None:
        super().__init__(learning_rate, l1, clip, constants, device)
        if beta == 0:
            raise SettingError("beta is not 0")
        self.settings, self.train_embeddings = encoder, train_embeddings
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            self.network = _Network(encoder, alpha, beta)
        self.head = self.network.head
        table = self.network.encoder.embeddings.weight
        if embeddings is not None:
            given = as_tensor(embeddings, torch.float32, "cpu")
            if given.shape != table.shape:
                raise SettingError(f"embeddings have the shape {tuple(given.shape)}, not {tuple(table.shape)}")
            with torch.no_grad():
                table.copy_(given)
        table.requires_grad_(train_embeddings)
        self._ready()

    def train_on_single_batch(
        self,
        context: Any,
        context_mask: Any,
        model_response: Any,
        model_response_mask: Any,
        reference_response: Any,
        reference_response_mask: Any,
        human_score: Any,
    ) -> tuple[Floats, float]:
        """One step on one batch; contexts are (batch, turns, words), responses and references (batch, words)."""
        inputs = context, context_mask, model_response, model_response_mask, reference_response, reference_response_mask
        return self._train(inputs, human_score)

    def predict_on_single_batch(
        self,
        context: Any,
        context_mask: Any,
        model_response: Any,
        model_response_mask: Any,
        reference_response: Any,
        reference_response_mask: Any,
    ) -> Floats:
        """One score per row."""
        return self._predict(
            (context, context_mask, model_response, model_response_mask, reference_response, reference_response_mask)
        )

    def fit(
        self,
        inputs: Sequence[Any],
        human_score: Any,
        *,
        epochs: int = 20,
        batch_size: int = 32,
        validation: tuple[Sequence[Any], Any] | None = None,
        validation_share: float = 0.1,
        patience: int = 3,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fitted:
        """See `ADEM.fit`; `inputs` are the six arrays that `predict_on_single_batch` takes, in that order."""
        held = None if validation is None else (tuple(validation[0]), validation[1])
        schedule = Schedule(epochs, batch_size, validation_share, patience, seed)
        return self._fit(tuple(inputs), human_score, held, schedule, progress)

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
        """Teach the encoder which utterance follows a context; the mean loss of each epoch."""
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
                self._descend(loss)
                total += float(loss.detach()) * len(rows)
            losses.append(total / len(parts[0]))
            if progress is not None:
                progress(epoch + 1, epochs)
        return losses

    def _inputs(self, inputs: Inputs) -> Tensors:
        if len(inputs) != 6:
            raise SettingError(
                f"inputs are six arrays, words and mask of context, response and reference: {len(inputs)}"
            )
        return self._sequences(inputs, ("context", "model_response", "reference_response"))

    def _sequences(self, inputs: Inputs, names: Sequence[str]) -> Tensors:
        """Words and masks of contexts (with a dimension for turns) and of utterances, all with as many rows."""
        parts: list[Tensor] = []
        for words, mask, name in zip(inputs[::2], inputs[1::2], names, strict=True):
            parts += self._sequence(words, mask, 3 if name == "context" else 2, name)
        if len({len(part) for part in parts}) > 1:
            counts = ", ".join(str(len(part)) for part in parts[::2])
            raise SettingError(f"the arrays have different numbers of rows ({counts}); one row per response in each")
        return tuple(parts)

    def _sequence(self, indices: Any, mask: Any, dimensions: int, what: str) -> tuple[Tensor, Tensor]:
        words, there = as_tensor(indices, torch.long, self.device), as_tensor(mask, torch.bool, self.device)
        if words.ndim != dimensions or words.shape != there.shape:
            shapes = f"{tuple(words.shape)} with a mask of {tuple(there.shape)}"
            raise SettingError(f"{what} has the shape {shapes}; both have {dimensions} dimensions and the same shape")
        if words.numel() and not 0 <= int(words.min()) <= int(words.max()) < self.settings.vocabulary:
            raise SettingError(f"{what} holds indices outside of 0 to {self.settings.vocabulary - 1}")
        return words, there

    def _shape(self) -> dict[str, Any]:
        return {"encoder": asdict(self.settings), "train_embeddings": self.train_embeddings}

    @classmethod
    def _made(cls, settings: dict[str, Any], device: str) -> ADEMWithEncoder:
        return cls(EncoderSettings(**settings.pop("encoder")), **settings, device=device)


def _left(rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """The words or turns that the mask has, moved to the front of their row, and how many there are."""
    order = mask.long().argsort(dim=1, descending=True, stable=True)
    order = order.reshape(*order.shape, *[1] * (rows.ndim - 2)).expand_as(rows)
    return rows.gather(1, order), mask.sum(1)
