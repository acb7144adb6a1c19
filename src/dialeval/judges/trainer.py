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

`ADEM` takes vectors; `ADEMWithEncoder` (`hierarchical`) takes word or character indices.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import ClassVar, Literal, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, DialevalError, Problem, SettingError
from dialeval.core.validation import JsonObject
from dialeval.io.packs import Progress
from dialeval.judges.adem import load_weights, save_weights
from dialeval.judges.schemas import SavedModel

L1 = 0.3
"""The weight of |M| + |N| in the loss, that of the original program."""
MAX_GRAD_NORM = 5.0
"""The largest norm of a gradient, that of the original program."""

INPUTS = ("context", "model_response", "reference_response")
Constants = Literal["learned", "fixed"]
Tensors = tuple[Tensor, ...]
Array: TypeAlias = npt.ArrayLike | Tensor
"""What becomes a tensor: an array, lists of numbers, or a tensor."""
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
    """A model and its optimizer.

    A subclass makes `network`, with the formula as `head`, and reads its inputs; `settings` are the arguments of the
    constructor that only this kind of model has.
    """

    kind: ClassVar[str]
    """Name of the saved files."""
    epochs: ClassVar[int]
    patience: ClassVar[int]
    """Defaults of `fit`."""

    def __init__(
        self,
        network: nn.Module,
        head: Bilinear,
        settings: Mapping[str, object],
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
        self.network, self.head, self._settings = network.to(device), head, settings
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

    def _read_inputs(self, inputs: Sequence[Array]) -> Tensors:
        """Return the inputs as tensors of the right type on the device."""
        raise NotImplementedError

    @classmethod
    def _from_settings(cls: type[AnyTrainer], settings: JsonObject, device: str) -> AnyTrainer:
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
        document = {"kind": self.kind, "settings": {**self._settings, **common}}
        return save_weights(folder, document, state, name=self.kind)

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
        except Exception as error:  # whatever PyTorch raises for settings and weights that do not fit
            if isinstance(error, DialevalError):
                raise
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            what = f"holds no model of the kind {cls.kind} ({reason})"[:300]
            raise DataError(Problem(str(folder), None, what, remedy)) from None

    def fit(
        self,
        *batch: Array,
        validation: Sequence[Array] | None = None,
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
                predicted, _ = self._take_step(take_rows(inputs, rows), human[rows])
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

    def _train(self, inputs: Sequence[Array], human_score: Array, learning_rate: float | None) -> tuple[Floats, float]:
        """Take one step; return the predictions before it, and the loss."""
        if learning_rate is not None:
            Trainer.assign_learning_rate(self, learning_rate)  # that of a subclass may take a session
        predicted, loss = self._take_step(*self._read_rows((*inputs, human_score)))
        return _to_numpy(predicted), float(loss)

    def _predict(self, inputs: Sequence[Array]) -> Floats:
        return _to_numpy(self._evaluate(self._read_inputs(inputs)))

    def _evaluate(self, inputs: Tensors) -> Tensor:
        self.network.eval()
        with torch.no_grad():
            return self.network(*inputs)

    def _read_rows(self, batch: Sequence[Array]) -> tuple[Tensors, Tensor]:
        """Return inputs and scores as tensors, with one score for each row."""
        tensors = self._read_inputs(batch[:-1])
        rows = len(tensors[0])
        scores = to_tensor(batch[-1], torch.float32, self.device)
        if scores.numel() != rows or scores.shape[:1] not in ((rows,), ()):
            raise SettingError(f"human_score has the shape {tuple(scores.shape)}; one number for each of {rows} rows")
        if not scores.isfinite().all():
            raise SettingError("human_score has entries that are not finite numbers; leave those rows out")
        return tensors, scores.reshape(-1)

    def _take_step(self, inputs: Tensors, human: Tensor) -> tuple[Tensor, Tensor]:
        self.network.train()
        predicted = self.network(*inputs)
        loss = (predicted - human).square().sum() + self.l1 * self.head.l1()
        descend(self.optimizer, loss, self.max_grad_norm)
        return predicted.detach(), loss.detach()

    def _split(
        self, batch: Sequence[Array], validation: Sequence[Array] | None, share: float, order: torch.Generator
    ) -> tuple[tuple[Tensors, Tensor], tuple[Tensors, Tensor] | None]:
        """Return the rows to learn from, and those held out: the given ones, or a fraction of at least one row."""
        tensors, human = self._read_rows(batch)
        if validation is not None:
            held = self._read_rows(validation)
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
        settings = {f"{name}_dim": dimension for name, dimension in zip(INPUTS, self.dimensions, strict=True)}
        super().__init__(head, head, settings, learning_rate, l1, max_grad_norm, constants, device)

    def train_on_single_batch(
        self,
        context: Array,
        model_response: Array,
        reference_response: Array,
        human_score: Array,
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

    def predict_on_single_batch(self, context: Array, model_response: Array, reference_response: Array) -> Floats:
        """Predict the ratings of a batch.

        Args:
            context: The contexts.
            model_response: The responses.
            reference_response: The references.

        Returns:
            A score per row.
        """
        return self._predict((context, model_response, reference_response))

    def _read_inputs(self, inputs: Sequence[Array]) -> Tensors:
        tensors = tuple(to_tensor(part, torch.float32, self.device) for part in inputs)
        for name, tensor, dimension in zip(INPUTS, tensors, self.dimensions, strict=True):
            if tensor.ndim != 2 or tensor.shape[1] != dimension or len(tensor) != len(tensors[0]):
                shape = tuple(tensor.shape)
                raise SettingError(f"{name} has the shape {shape}; one row per response and {dimension} numbers each")
            if not tensor.isfinite().all():
                raise SettingError(f"{name} has entries that are not finite numbers; leave those rows out")
        return tensors


def check_device(device: str) -> None:
    """Raise SettingError unless PyTorch has the device here."""
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise SettingError(f"PyTorch knows no device {device!r}; give cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("PyTorch finds no GPU here; leave the device out, or install a build of it for CUDA")


def descend(optimizer: torch.optim.Optimizer, loss: Tensor, max_norm: float) -> None:
    """Take one step of the optimizer down the clipped gradient of a loss."""
    optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    nn.utils.clip_grad_norm_([parameter for group in optimizer.param_groups for parameter in group["params"]], max_norm)
    optimizer.step()


def iterate_batches(many: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """Yield the numbers of all rows in a random order, `size` at a time."""
    mixed = torch.randperm(many, generator=order)
    return (mixed[start : start + size] for start in range(0, many, size))


def take_rows(parts: Tensors, rows: Tensor) -> Tensors:
    """Return some rows of each part."""
    return tuple(part[rows] for part in parts)


def to_tensor(values: Array, dtype: torch.dtype, device: str) -> Tensor:
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
