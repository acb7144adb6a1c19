"""ADEM with a hierarchical encoder, in PyTorch: words to vectors of utterances, utterances to vectors of contexts.

`ADEMWithEncoder` takes word or character indices, and is differentiable end to end: an utterance encoder (GRU or LSTM
over words) makes a vector of each utterance; a context encoder (the same over utterance vectors) makes one of the turns
so far. Response and reference are encoded as utterances, by the same weights or by weights of their own
(`EncoderSettings.shared`).

Padded inputs come with masks of one of two kinds: of the shape of the words, true (or 1) where there is a word; or with
one dimension less, the number of words of each utterance, as the original takes them. A turn without a word is no turn.
Responses and references are (batch, words); of (batch, turns, words), as the original has them, the turns of a row are
read as one utterance. Sequences are packed, so that padding costs nothing and changes nothing.

The authors pre-train the encoder of a generator (VHRED); here `embeddings` may start from given word vectors. The
original program loops over the batch inside its graph, and has three encoders over words and turns; here a batch is one
pass, and only contexts have an encoder over turns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.validation import JsonObject
from dialeval.judges.trainer import INPUTS, L1, MAX_GRAD_NORM, Array, Bilinear, Constants, Tensors, Trainer, to_tensor


@dataclass(frozen=True)
class EncoderSettings:
    """The shape of the hierarchical encoder.

    Attributes:
        utterance: The dimension of the vector of an utterance, and so of a response and of a reference.
        context: The dimension of the vector of a context.
        layers: Recurrent layers over words, and over turns.
        dropout: The dropout of embeddings, between layers, and of the vectors.
        cell: The recurrent unit, `gru` or `lstm`.
        shared: Who shares the weights over words: `all` (context, response and reference), `replies` (the last two) or
            `none`, as in the original.

    Examples:
        >>> from dialeval.adem import EncoderSettings
        >>> EncoderSettings(utterance=50, cell="lstm").context
        200
    """

    utterance: int = 200
    context: int = 200
    layers: int = 1
    dropout: float = 0.0
    cell: Literal["gru", "lstm"] = "gru"
    shared: Literal["all", "replies", "none"] = "all"

    def __post_init__(self) -> None:
        if min(self.utterance, self.context, self.layers) < 1:
            raise SettingError("sizes and layers of an encoder are at least 1")
        if not 0 <= self.dropout < 1:
            raise SettingError(f"dropout must be at least 0 and below 1, not {self.dropout}")
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
        filled = (lengths > 0).nonzero().squeeze(1)
        if not len(filled):
            return states
        packed = pack_padded_sequence(sequences[filled], lengths[filled].cpu(), batch_first=True, enforce_sorted=False)
        state = self.cells(packed)[1]
        last = state[0][-1] if isinstance(state, tuple) else state[-1]
        return states.index_copy(0, filled, last)


class HierarchicalNetwork(nn.Module):
    """Utterances to vectors, contexts of several utterances to vectors, and the formula."""

    def __init__(
        self, vocabulary_size: int, embedding_size: int, settings: EncoderSettings, alpha: float, beta: float
    ) -> None:
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
        self.head = Bilinear(settings.context, settings.utterance, settings.utterance, alpha, beta)

    def forward(self, *inputs: Tensor) -> Tensor:
        """Return the scores."""
        context, context_mask, response, response_mask, reference, reference_mask = inputs
        responses = getattr(self, "responses", self.words)
        return self.head(
            self.encode_contexts(context, context_mask),
            self.encode_utterances(response, response_mask, responses),
            self.encode_utterances(reference, reference_mask, getattr(self, "references", responses)),
        )

    def encode_utterances(self, indices: Tensor, mask: Tensor, cells: Recurrent) -> Tensor:
        """Return the vectors of utterances: (batch, words) to (batch, utterance)."""
        indices, lengths = _move_left(indices, mask)
        states = cells(self.dropout(self.embeddings(indices)), lengths)
        return self.dropout(states)

    def encode_contexts(self, indices: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of contexts: (batch, turns, words) to (batch, context)."""
        batch, turns, words = indices.shape
        flat = batch * turns, words
        vectors = self.encode_utterances(indices.reshape(flat), mask.reshape(flat), self.words)
        vectors = vectors.reshape(batch, turns, self.words.outputs)
        return self.dropout(self.turns(*_move_left(vectors, mask.any(-1))))


class ADEMWithEncoder(Trainer):
    """The model of ADEM for words or characters that were mapped to indices, in PyTorch.

    Indices are from 0 to `vocabulary_size` - 1; index 0 is padding where the mask says so, and a word elsewhere.

    Args:
        vocabulary_size: The number of indices.
        embedding_size: The dimension of word vectors.
        encoder: The shape of the encoder.
        learning_rate: The learning rate.
        embeddings: Word vectors to start from, one row per index.
        train_embeddings: Train the word vectors too.
        l1: The weight of |M| + |N| in the loss.
        alpha: The first value of the constant alpha.
        beta: The first value of the constant beta.
        max_grad_norm: The largest norm of a gradient.
        constants: Whether alpha and beta are `"learned"` or `"fixed"`.
        seed: The seed of the first weights.
        device: The device of PyTorch.

    Examples:
        >>> import numpy as np
        >>> from dialeval.adem import ADEMWithEncoder, EncoderSettings
        >>> model = ADEMWithEncoder(10, 4, EncoderSettings(utterance=4, context=4))
        >>> turns, words = np.ones((2, 1, 3), int), np.ones((2, 3), int)
        >>> model.predict_on_single_batch(turns, words, words, turns, words, words).shape
        (2,)
    """

    kind = "adem-with-encoder"
    epochs, patience = 20, 3
    network: HierarchicalNetwork

    def __init__(
        self,
        vocabulary_size: int,
        embedding_size: int,
        encoder: EncoderSettings = _USUAL,
        learning_rate: float = 1e-3,
        *,
        embeddings: Array | None = None,
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
            network = HierarchicalNetwork(vocabulary_size, embedding_size, encoder, alpha, beta)
        table = network.embeddings.weight
        if embeddings is not None:
            initial = to_tensor(embeddings, torch.float32, "cpu")
            if initial.shape != table.shape:
                raise SettingError(f"embeddings have the shape {tuple(initial.shape)}, not {tuple(table.shape)}")
            with torch.no_grad():
                table.copy_(initial)
        table.requires_grad_(train_embeddings)
        sizes = {"vocabulary_size": vocabulary_size, "embedding_size": embedding_size}
        settings = {**sizes, "encoder": asdict(encoder), "train_embeddings": train_embeddings}
        super().__init__(network, network.head, settings, learning_rate, l1, max_grad_norm, constants, device)

    def train_on_single_batch(
        self,
        context: Array,
        model_response: Array,
        reference_response: Array,
        context_mask: Array,
        model_response_mask: Array,
        reference_response_mask: Array,
        human_score: Array,
        learning_rate: float | None = None,
    ) -> tuple[Floats, float]:
        """Take one step on one batch; the order is that of the original, words first and then masks.

        Args:
            context: The contexts.
            model_response: The responses.
            reference_response: The references.
            context_mask: The masks of the contexts, or their lengths.
            model_response_mask: Those of the responses.
            reference_response_mask: Those of the references.
            human_score: The human ratings.
            learning_rate: Another learning rate, from this batch on.

        Returns:
            The predictions before the step, and the loss.
        """
        inputs = context, model_response, reference_response, context_mask, model_response_mask, reference_response_mask
        return self._train(inputs, human_score, learning_rate)

    def predict_on_single_batch(
        self,
        context: Array,
        model_response: Array,
        reference_response: Array,
        context_mask: Array,
        model_response_mask: Array,
        reference_response_mask: Array,
    ) -> Floats:
        """Predict the ratings of a batch.

        Args:
            context: The contexts.
            model_response: The responses.
            reference_response: The references.
            context_mask: The masks of the contexts, or their lengths.
            model_response_mask: Those of the responses.
            reference_response_mask: Those of the references.

        Returns:
            A score per row.
        """
        inputs = context, model_response, reference_response, context_mask, model_response_mask, reference_response_mask
        return self._predict(inputs)

    def _read_inputs(self, inputs: Sequence[Array]) -> Tensors:
        if len(inputs) != 6:
            what = "inputs are six arrays, context, response and reference, then their masks"
            raise SettingError(f"{what}: {len(inputs)}")
        parts: list[Tensor] = []
        for words, mask, name in zip(inputs[:3], inputs[3:], INPUTS, strict=True):
            parts += self._read_sequence(words, mask, 3 if name == "context" else 2, name)
        if len({len(part) for part in parts}) > 1:
            counts = ", ".join(str(len(part)) for part in parts[::2])
            raise SettingError(f"the arrays have different numbers of rows ({counts}); one row per response in each")
        return tuple(parts)

    def _read_sequence(self, indices: Array, mask: Array, dimensions: int, what: str) -> tuple[Tensor, Tensor]:
        words, present = to_tensor(indices, torch.long, self.device), to_tensor(mask, torch.long, self.device)
        several = "3" if dimensions == 3 else "2 or 3"
        if words.ndim not in (dimensions, 3) or present.shape not in (words.shape, words.shape[:-1]):
            shapes = f"{tuple(words.shape)} with a mask of {tuple(present.shape)}"
            remedy = f"words have {several} dimensions, a mask has the same, or one less if it holds lengths"
            raise SettingError(f"{what} has the shape {shapes}; {remedy}")
        if words.numel() and not 0 <= int(words.min()) <= int(words.max()) < self.vocabulary_size:
            raise SettingError(f"{what} holds indices outside of 0 to {self.vocabulary_size - 1}")
        lengths = present.shape != words.shape
        if present.numel() and not 0 <= int(present.min()) <= int(present.max()) <= (words.shape[-1] if lengths else 1):
            kind = f"lengths from 0 to {words.shape[-1]}" if lengths else "0 and 1"
            raise SettingError(f"the mask of {what} holds other numbers than {kind}")
        if lengths:
            present = torch.arange(words.shape[-1], device=present.device) < present[..., None]
        if words.ndim > dimensions:  # the turns of a reply are read as one utterance
            words, present = words.flatten(1), present.flatten(1)
        return words, present.bool()

    @classmethod
    def _from_settings(cls, settings: JsonObject, device: str) -> ADEMWithEncoder:
        return cls(**{**settings, "encoder": EncoderSettings(**settings["encoder"])}, device=device)


def _move_left(rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the words or turns that the mask has, moved to the front of their row, and how many there are."""
    order = mask.long().argsort(dim=1, descending=True, stable=True)
    order = order.reshape(*order.shape, *[1] * (rows.ndim - 2)).expand_as(rows)
    return rows.gather(1, order), mask.sum(1)
