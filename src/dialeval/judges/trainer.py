"""ADEM in PyTorch, as its authors describe it: the formula, training by Adam with early stopping, and saved models.

    score(c, r, r^) = (c' M r^ + r' N r^ - alpha) / beta
    loss = sum over the batch of (score - human score)^2 + l1 * (|M| + |N|)

|M| is the sum of the absolute values; `l1` is 0.3 unless given, the original's strength. M and N start as the identity
(on the shared part, where the vectors differ in length). alpha and beta are scalars; fitting sets them first so that
the untrained model has the mean and the standard deviation of the human scores, and they are learned along with M and N
unless `constants="fixed"`.

Paper: Lowe et al. 2017, "Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses", ACL.

Differences from the original program: arrays or tensors in, NumPy out, no session; gradients are clipped; training
stops early; weights are saved as safetensors and JSON. Nothing is read from a pickle.

`ADEM` takes vectors. `ADEMWithEncoder` takes word or character indices, and is differentiable end to end: an utterance
encoder (GRU or LSTM over words) makes a vector of each utterance; a context encoder (the same over utterance vectors)
makes one of the turns so far. Response and reference are encoded as utterances, by the same weights or by weights of
their own (`EncoderSettings.shared`).

Padded inputs come with masks of one of two kinds: of the shape of the words, true (or 1) where there is a word; or with
one dimension less, the number of words of each utterance, as the original takes them. A turn without a word is no turn.
Responses and references are (batch, words); of (batch, turns, words), as the original has them, the turns of a row are
read as one utterance. Sequences are packed, so that padding costs nothing and changes nothing.

The authors pre-train the encoder of a generator (VHRED); here `embeddings` may start from given word vectors. The
original program loops over the batch inside its graph, and has three encoders over words and turns; here a batch is one
pass, and only contexts have an encoder over turns.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, DialevalError, Problem, SettingError
from dialeval.io.packs import Progress
from dialeval.judges.adem import load_weights, save_weights
from dialeval.judges.schemas import SavedModel
from dialeval.judges.torch_encoder import check_device

L1 = 0.3
"""The weight of |M| + |N| in the loss, that of the original program."""
MAX_GRAD_NORM = 5.0
"""The largest norm of a gradient, that of the original program."""

_INPUTS = ("context", "model_response", "reference_response")
Constants = Literal["learned", "fixed"]
Tensors = tuple[Tensor, ...]
AnyTrainer = TypeVar("AnyTrainer", bound="Trainer")


class Bilinear(nn.Module):
    """M, N, alpha and beta, and the formula."""

    def __init__(self, context_dim: int, response_dim: int, reference_dim: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.M = nn.Parameter(torch.eye(context_dim, response_dim))
        self.N = nn.Parameter(torch.eye(reference_dim, response_dim))
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))
        self.beta = nn.Parameter(torch.tensor(float(beta)))

    def forward(self, context: Tensor, response: Tensor, reference: Tensor) -> Tensor:
        """Return the scores."""
        raw = ((context @ self.M + reference @ self.N) * response).sum(-1)
        return (raw - self.alpha) / self.beta

    def l1(self) -> Tensor:
        """Return |M| + |N|, the sums of the absolute values."""
        return self.M.abs().sum() + self.N.abs().sum()


@dataclass(frozen=True)
class Fitted:
    """The losses of a training."""

    epochs: int
    best_epoch: int
    train_losses: Sequence[float]
    """Per epoch: the mean squared error on the training rows, while they were learned."""
    validation_losses: Sequence[float] = field(default_factory=list)
    """Per epoch: the mean squared error on the rows that were held out."""


class Trainer:
    """A model and its optimizer. A subclass makes `network`, with the formula as `head`, and reads its inputs."""

    kind: ClassVar[str]
    """Name of the saved files."""
    epochs: ClassVar[int]
    patience: ClassVar[int]
    """Defaults of `fit`."""

    def __init__(
        self,
        network: nn.Module,
        head: Bilinear,
        learning_rate: float,
        l1: float,
        max_grad_norm: float,
        constants: Constants,
        device: str,
    ) -> None:
        if l1 < 0 or max_grad_norm <= 0:
            raise SettingError("max_grad_norm is above 0, l1 is 0 or more")
        if constants not in ("learned", "fixed"):
            raise SettingError(f"the constants alpha and beta are learned or fixed, not {constants!r}")
        check_device(device)
        self.l1, self.max_grad_norm, self.constants, self.device = l1, max_grad_norm, constants, device
        self.network, self.head = network.to(device), head
        for scalar in (head.alpha, head.beta):
            scalar.requires_grad_(constants == "learned")
        self.optimizer = torch.optim.Adam(parameter for parameter in network.parameters() if parameter.requires_grad)
        Trainer.assign_learning_rate(self, learning_rate)  # that of a subclass may take a session

    def assign_learning_rate(self, learning_rate: float) -> None:
        """Train with another learning rate from now on.

        Args:
            learning_rate: The learning rate.

        Raises:
            SettingError: It is not above 0.
        """
        if learning_rate <= 0:
            raise SettingError(f"a learning rate is above 0, not {learning_rate}")
        self.learning_rate = learning_rate
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def _inputs(self, inputs: Sequence[Any]) -> Tensors:
        """Return the inputs as tensors of the right type on the device."""
        raise NotImplementedError

    def _shape(self) -> dict[str, Any]:
        """Return the arguments of the constructor that only this kind of model has."""
        raise NotImplementedError

    @classmethod
    def _from_settings(cls: type[AnyTrainer], settings: dict[str, Any], device: str) -> AnyTrainer:
        """Return an untrained model with saved settings."""
        return cls(**settings, device=device)

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Save weights and settings in a folder.

        Args:
            folder: The folder, created if it does not exist.

        Returns:
            The folder.
        """
        common = {name: getattr(self, name) for name in ("learning_rate", "l1", "max_grad_norm", "constants")}
        state = {name: tensor.detach().cpu().numpy() for name, tensor in self.network.state_dict().items()}
        return save_weights(folder, {"kind": self.kind, "settings": self._shape() | common}, state, name=self.kind)

    @classmethod
    def load(cls: type[AnyTrainer], folder: str | os.PathLike[str], device: str = "cpu") -> AnyTrainer:
        """Load the model that `save` wrote.

        Args:
            folder: The folder.
            device: The device of PyTorch.

        Returns:
            The model.

        Raises:
            DataError: The folder has no such model.
        """
        remedy = "give a folder that `save` of this model wrote"
        if Path(folder).is_file():
            what = "is a file; weights are read from safetensors and JSON in a folder, never from a pickle"
            raise DataError(Problem(str(folder), None, what, remedy))
        document, _, tensors = load_weights(folder, SavedModel, remedy, cls.kind)
        try:
            model = cls._from_settings(document.settings, device)
            model.network.load_state_dict({name: torch.from_numpy(tensor) for name, tensor in tensors.items()})
            return model
        except DialevalError:
            raise
        except Exception as error:  # whatever PyTorch raises for settings and weights that do not fit
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            what = f"holds no model of the kind {cls.kind} ({reason})"[:300]
            raise DataError(Problem(str(folder), None, what, remedy)) from None

    def fit(
        self,
        *batch: Any,
        validation: Sequence[Any] | None = None,
        epochs: int | None = None,
        batch_size: int = 32,
        validation_share: float = 0.1,
        patience: int | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> Fitted:
        """Train on mini-batches until the held-out error has not fallen for `patience` epochs; keep the best weights.

        Args:
            *batch: The arguments of `train_on_single_batch`, all rows: the inputs, then the human scores.
            validation: The same arguments for rows to hold out. Rows with a common context should be on one side.
            epochs: The largest number of epochs (`ADEM`: 100, `ADEMWithEncoder`: 20).
            batch_size: Rows of a step.
            validation_share: The fraction of rows to hold out without `validation`; at least one row of several.
            patience: Epochs without a lower error after which training stops (`ADEM`: 5, `ADEMWithEncoder`: 3).
            seed: The seed of the split, of the order of rows, and of dropout.
            progress: Called with the number of epochs done and the largest number.

        Returns:
            The losses of every epoch.

        Raises:
            SettingError: There are no rows to train on, or a setting is out of range.
        """
        epochs = self.epochs if epochs is None else epochs
        patience = self.patience if patience is None else patience
        if epochs < 1 or batch_size < 1 or not 0 <= validation_share < 1:
            raise SettingError("epochs and batch_size are at least 1, validation_share must be at least 0 and below 1")
        order = torch.Generator().manual_seed(seed)
        (inputs, human), held = self._split(batch, validation, validation_share, order)
        if not len(human):
            raise SettingError("there is nothing to fit: no rows are left for training")
        torch.manual_seed(seed)  # dropout
        self._calibrate(inputs, human)
        train_losses: list[float] = []
        losses: list[float] = []
        best, best_state = epochs - 1, None
        for epoch in range(epochs):
            total = 0.0
            for rows in iterate_batches(len(human), batch_size, order):
                predicted, _ = self._step(take_rows(inputs, rows), human[rows])
                total += float((predicted - human[rows]).square().sum())
            train_losses.append(total / len(human))
            if progress is not None:
                progress(epoch + 1, epochs)
            if held is None:
                continue
            losses.append(float((self._evaluate(held[0]) - held[1]).square().mean()))
            if best_state is None or losses[-1] < losses[best]:
                best, best_state = epoch, {name: value.clone() for name, value in self.network.state_dict().items()}
            elif epoch - best >= patience:
                break
        if best_state is not None:
            self.network.load_state_dict(best_state)
        return Fitted(len(train_losses), best, train_losses, losses)

    def _train(self, inputs: Sequence[Any], human_score: Any, learning_rate: float | None) -> tuple[Floats, float]:
        """Take one step; return the predictions before it, and the loss."""
        if learning_rate is not None:
            Trainer.assign_learning_rate(self, learning_rate)  # that of a subclass may take a session
        predicted, loss = self._step(*self._rows((*inputs, human_score)))
        return _to_numpy(predicted), float(loss)

    def _predict(self, inputs: Sequence[Any]) -> Floats:
        return _to_numpy(self._evaluate(self._inputs(inputs)))

    def _evaluate(self, inputs: Tensors) -> Tensor:
        self.network.eval()
        with torch.no_grad():
            return self.network(*inputs)  # type: ignore[no-any-return]

    def _rows(self, batch: Sequence[Any]) -> tuple[Tensors, Tensor]:
        """Return inputs and scores as tensors, with one score for each row."""
        tensors = self._inputs(batch[:-1])
        rows = len(tensors[0])
        scores = to_tensor(batch[-1], torch.float32, self.device)
        if scores.numel() != rows or scores.shape[:1] not in ((rows,), ()):
            raise SettingError(f"human_score has the shape {tuple(scores.shape)}; one number for each of {rows} rows")
        if not scores.isfinite().all():
            raise SettingError("human_score has entries that are not finite numbers; leave those rows out")
        return tensors, scores.reshape(-1)

    def _step(self, inputs: Tensors, human: Tensor) -> tuple[Tensor, Tensor]:
        self.network.train()
        predicted = self.network(*inputs)
        loss = (predicted - human).square().sum() + self.l1 * self.head.l1()
        descend(self.optimizer, loss, self.max_grad_norm)
        return predicted.detach(), loss.detach()

    def _split(
        self, batch: Sequence[Any], validation: Sequence[Any] | None, share: float, order: torch.Generator
    ) -> tuple[tuple[Tensors, Tensor], tuple[Tensors, Tensor] | None]:
        """Return the rows to learn from, and those held out: the given ones, or a fraction of at least one row."""
        tensors, human = self._rows(batch)
        if validation is not None:
            held = self._rows(validation)
            if not len(held[1]):
                raise SettingError("validation holds no rows; leave it out, or give some")
            return (tensors, human), held
        if share == 0 or len(human) < 2:
            return (tensors, human), None
        mixed = torch.randperm(len(human), generator=order)
        many = min(max(round(len(human) * share), 1), len(human) - 1)
        drawn, kept = mixed[:many], mixed[many:]
        return (take_rows(tensors, kept), human[kept]), (take_rows(tensors, drawn), human[drawn])

    def _calibrate(self, inputs: Tensors, human: Tensor) -> None:
        """Set alpha and beta so that predictions have the mean and the standard deviation of the scores."""
        with torch.no_grad():
            raw = self._evaluate(inputs) * self.head.beta + self.head.alpha
            spread = human.std(correction=0)
            self.head.beta.copy_((raw.std(correction=0) / spread).clamp_min(1e-3) if spread > 0 else torch.tensor(1.0))
            self.head.alpha.copy_(raw.mean() - human.mean() * self.head.beta)


class ADEM(Trainer):
    """The model of ADEM for vectors that you have already, in PyTorch.

    Given the same numbers in the same order, training gives the same weights.

    Args:
        context_dim: The dimension of context vectors.
        model_response_dim: The dimension of response vectors.
        reference_response_dim: The dimension of reference vectors.
        learning_rate: The learning rate.
        l1: The weight of |M| + |N| in the loss.
        alpha: The first value of the constant alpha.
        beta: The first value of the constant beta.
        max_grad_norm: The largest norm of a gradient.
        constants: Whether alpha and beta are `"learned"` or `"fixed"`.
        device: The device of PyTorch.

    Examples:
        >>> import numpy as np
        >>> from dialeval.adem import ADEM
        >>> model = ADEM(4, 4, 4)
        >>> vectors = np.ones((2, 4))
        >>> predicted, loss = model.train_on_single_batch(vectors, vectors, vectors, [1.0, 5.0])
        >>> model.predict_on_single_batch(vectors, vectors, vectors).shape
        (2,)
    """

    kind = "adem"
    epochs, patience = 100, 5

    def __init__(
        self,
        context_dim: int,
        model_response_dim: int,
        reference_response_dim: int,
        learning_rate: float = 1e-3,
        *,
        l1: float = L1,
        alpha: float = 0.0,
        beta: float = 1.0,
        max_grad_norm: float = MAX_GRAD_NORM,
        constants: Constants = "learned",
        device: str = "cpu",
    ) -> None:
        self.dimensions = context_dim, model_response_dim, reference_response_dim
        if min(self.dimensions) < 1 or beta == 0:
            raise SettingError("vectors have at least one number, and beta is not 0")
        head = Bilinear(*self.dimensions, alpha, beta)
        super().__init__(head, head, learning_rate, l1, max_grad_norm, constants, device)

    def train_on_single_batch(
        self,
        context: Any,
        model_response: Any,
        reference_response: Any,
        human_score: Any,
        learning_rate: float | None = None,
    ) -> tuple[Floats, float]:
        """Take one step on one batch.

        Args:
            context: The contexts.
            model_response: The responses.
            reference_response: The references.
            human_score: The human ratings.
            learning_rate: Another learning rate, from this batch on.

        Returns:
            The predictions before the step, and the loss.
        """
        return self._train((context, model_response, reference_response), human_score, learning_rate)

    def predict_on_single_batch(self, context: Any, model_response: Any, reference_response: Any) -> Floats:
        """Predict the ratings of a batch.

        Args:
            context: The contexts.
            model_response: The responses.
            reference_response: The references.

        Returns:
            A score per row.
        """
        return self._predict((context, model_response, reference_response))

    def _inputs(self, inputs: Sequence[Any]) -> Tensors:
        tensors = tuple(to_tensor(part, torch.float32, self.device) for part in inputs)
        for name, tensor, dimension in zip(_INPUTS, tensors, self.dimensions, strict=True):
            if tensor.ndim != 2 or tensor.shape[1] != dimension or len(tensor) != len(tensors[0]):
                shape = tuple(tensor.shape)
                raise SettingError(f"{name} has the shape {shape}; one row per response and {dimension} numbers each")
            if not tensor.isfinite().all():
                raise SettingError(f"{name} has entries that are not finite numbers; leave those rows out")
        return tensors

    def _shape(self) -> dict[str, Any]:
        return {f"{name}_dim": dimension for name, dimension in zip(_INPUTS, self.dimensions, strict=True)}


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, max_norm: float) -> None:
    """Take one step of the optimizer down the clipped gradient of a loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_([each for group in optimizer.param_groups for each in group["params"]], max_norm)
    optimizer.step()


def iterate_batches(many: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """Yield the numbers of all rows in a random order, `size` at a time."""
    mixed = torch.randperm(many, generator=order)
    return (mixed[start : start + size] for start in range(0, many, size))


def take_rows(parts: Tensors, rows: Tensor) -> Tensors:
    """Return some rows of each part."""
    return tuple(part[rows] for part in parts)


def to_tensor(values: Any, dtype: torch.dtype, device: str) -> Tensor:
    """Return a tensor from an array, a list or a tensor."""
    if isinstance(values, Tensor):
        return values.detach().to(device, dtype)
    try:
        array = np.ascontiguousarray(values)
    except ValueError:
        raise SettingError("rows differ in length; pad them to an array of one shape") from None
    if array.dtype.kind not in "biuf":
        raise SettingError(f"numbers are wanted, not {array.dtype}")
    if not array.flags.writeable:
        array = array.copy()
    return torch.as_tensor(array).to(device, dtype)


def _to_numpy(tensor: Tensor) -> Floats:
    return tensor.detach().cpu().double().numpy()


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
        there = (lengths > 0).nonzero().squeeze(1)
        if not len(there):
            return states
        packed = pack_padded_sequence(sequences[there], lengths[there].cpu(), batch_first=True, enforce_sorted=False)
        state = self.cells(packed)[1]
        last = state[0][-1] if isinstance(state, tuple) else state[-1]
        return states.index_copy(0, there, last)


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
        return self.head(  # type: ignore[no-any-return]
            self.context(context, context_mask),
            self.utterance(response, response_mask, responses),
            self.utterance(reference, reference_mask, getattr(self, "references", responses)),
        )

    def utterance(self, indices: Tensor, mask: Tensor, cells: Recurrent) -> Tensor:
        """Return the vectors of utterances: (batch, words) to (batch, utterance)."""
        indices, lengths = _move_left(indices, mask)
        states = cells(self.dropout(self.embeddings(indices)), lengths)
        return self.dropout(states)  # type: ignore[no-any-return]

    def context(self, indices: Tensor, mask: Tensor) -> Tensor:
        """Return the vectors of contexts: (batch, turns, words) to (batch, context)."""
        batch, turns, words = indices.shape
        flat = batch * turns, words
        vectors = self.utterance(indices.reshape(flat), mask.reshape(flat), self.words)
        vectors = vectors.reshape(batch, turns, self.words.outputs)
        return self.dropout(self.turns(*_move_left(vectors, mask.any(-1))))  # type: ignore[no-any-return]


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
            network = HierarchicalNetwork(vocabulary_size, embedding_size, encoder, alpha, beta)
        table = network.embeddings.weight
        if embeddings is not None:
            given = to_tensor(embeddings, torch.float32, "cpu")
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
        context: Any,
        model_response: Any,
        reference_response: Any,
        context_mask: Any,
        model_response_mask: Any,
        reference_response_mask: Any,
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
        return self._predict(
            (context, model_response, reference_response, context_mask, model_response_mask, reference_response_mask)
        )

    def _inputs(self, inputs: Sequence[Any]) -> Tensors:
        if len(inputs) != 6:
            raise SettingError(
                f"inputs are six arrays, context, response and reference, then their masks: {len(inputs)}"
            )
        parts: list[Tensor] = []
        for words, mask, name in zip(inputs[:3], inputs[3:], _INPUTS, strict=True):
            parts += self._sequence(words, mask, 3 if name == "context" else 2, name)
        if len({len(part) for part in parts}) > 1:
            counts = ", ".join(str(len(part)) for part in parts[::2])
            raise SettingError(f"the arrays have different numbers of rows ({counts}); one row per response in each")
        return tuple(parts)

    def _sequence(self, indices: Any, mask: Any, dimensions: int, what: str) -> tuple[Tensor, Tensor]:
        words, there = to_tensor(indices, torch.long, self.device), to_tensor(mask, torch.long, self.device)
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


def _move_left(rows: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Return the words or turns that the mask has, moved to the front of their row, and how many there are."""
    order = mask.long().argsort(dim=1, descending=True, stable=True)
    order = order.reshape(*order.shape, *[1] * (rows.ndim - 2)).expand_as(rows)
    return rows.gather(1, order), mask.sum(1)
