"""What both ADEMs in PyTorch share: the formula, training by Adam, and folders of safetensors and JSON.

    score(c, r, r^) = (c' M r^ + r' N r^ - alpha) / beta
    loss = sum over the batch of (score - human score)^2 + l1 * (|M| + |N|)

|M| is the sum of the absolute values; `l1` is 0.3 unless given, the original's strength. M and N start as the identity
(on the shared part, where the vectors differ in length). alpha and beta are scalars; fitting sets them first so that
the untrained model has the mean and the spread of the human scores, and they are learned along with M and N unless
`constants="fixed"`.

Paper: Lowe et al. 2017, "Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses", ACL.

Differences from the original program: arrays or tensors in, NumPy out, no session; gradients are clipped; training
stops early; weights are saved as safetensors and JSON. Nothing is read from a pickle.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from dialeval.core import gate
from dialeval.core.arrays import Floats
from dialeval.core.errors import DataError, DialevalError, Fault, SettingError
from dialeval.core.files import place_of, replacing_together
from dialeval.core.jsondata import dump
from dialeval.metrics.learned.torch_encoder import check_device
from dialeval.resources.progress import Progress
from dialeval.resources.schemas import Model

L1 = 0.3
"""The weight of |M| + |N| in the loss, that of the original program."""
MAX_GRAD_NORM = 5.0
"""The largest norm of a gradient, that of the original program."""

FORMAT = 1
"""Layout of a saved model."""

Constants = Literal["learned", "fixed"]
Inputs = tuple[Any, ...]
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
        """The score."""
        raw = ((context @ self.M + reference @ self.N) * response).sum(-1)
        return (raw - self.alpha) / self.beta

    def l1(self) -> Tensor:
        """|M| + |N|, the sums of the absolute values."""
        return self.M.abs().sum() + self.N.abs().sum()


@dataclass(frozen=True)
class Fitted:
    """How a training went."""

    epochs: int
    best_epoch: int
    train_losses: Sequence[float]
    """Per epoch: the mean squared error on the training rows, while they were learned."""
    validation_losses: Sequence[float] = field(default_factory=list)
    """Per epoch: the mean squared error on the rows that were held out."""


@dataclass(frozen=True)
class Schedule:
    """How long to train, on how many rows at a time, and how many rows to hold out where none are given."""

    epochs: int
    batch_size: int
    validation_share: float
    patience: int
    seed: int

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.batch_size < 1 or not 0 <= self.validation_share < 1:
            raise SettingError("epochs and batch_size are at least 1, validation_share lies from 0 to below 1")


class Trainer:
    """A model and its optimiser. A subclass makes `network`, with the formula as `head`, and reads its inputs."""

    kind: ClassVar[str]
    """Name of the saved files."""
    network: nn.Module
    head: Bilinear

    def __init__(
        self, learning_rate: float, l1: float, max_grad_norm: float, constants: Constants, device: str
    ) -> None:
        _check_learning_rate(learning_rate)
        if l1 < 0 or max_grad_norm <= 0:
            raise SettingError("max_grad_norm is above 0, l1 is 0 or more")
        if constants not in ("learned", "fixed"):
            raise SettingError(f"the constants alpha and beta are learned or fixed, not {constants!r}")
        check_device(device)
        self.learning_rate, self.l1, self.max_grad_norm = learning_rate, l1, max_grad_norm
        self.constants, self.device = constants, device

    def _ready(self) -> None:
        """To be called once the network is made."""
        self.network.to(self.device)
        for scalar in (self.head.alpha, self.head.beta):
            scalar.requires_grad_(self.constants == "learned")
        learned = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.Adam(learned, self.learning_rate)

    def assign_learning_rate(self, learning_rate: float) -> None:
        """Train with another learning rate from now on."""
        _check_learning_rate(learning_rate)
        self.learning_rate = learning_rate
        for group in self.optimiser.param_groups:
            group["lr"] = learning_rate

    def _inputs(self, inputs: Inputs) -> Tensors:
        """The inputs as tensors of the right type on the device."""
        raise NotImplementedError

    def _shape(self) -> dict[str, Any]:
        """The settings that only this kind of model has."""
        raise NotImplementedError

    @classmethod
    def _made(cls: type[AnyTrainer], settings: dict[str, Any], device: str) -> AnyTrainer:
        """An untrained model with saved settings."""
        raise NotImplementedError

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write weights and settings into a folder, made if it is not there."""
        from safetensors.torch import save

        folder = Path(folder)
        common = {name: getattr(self, name) for name in ("learning_rate", "l1", "max_grad_norm", "constants")}
        document: dict[str, Any] = {"format": FORMAT, "kind": self.kind, "settings": self._shape() | common}
        state = {name: tensor.detach().cpu().contiguous() for name, tensor in self.network.state_dict().items()}
        with replacing_together(folder, f"{self.kind}.json") as files:
            document["sha256"] = files.add_bytes(f"{self.kind}.safetensors", save(state))
            files.add_bytes(f"{self.kind}.json", dump(document))
        return folder

    @classmethod
    def load(cls: type[AnyTrainer], folder: str | os.PathLike[str], device: str = "cpu") -> AnyTrainer:
        """The model that `save` wrote."""
        from safetensors.torch import load

        folder = Path(folder)
        facts, weights = folder / f"{cls.kind}.json", folder / f"{cls.kind}.safetensors"
        remedy = "give a folder that `save` of this model wrote"
        if folder.is_file():
            what = "is a file; weights are read from safetensors and JSON in a folder, never from a pickle"
            raise DataError(Fault(str(folder), None, what, remedy))
        document = gate.read_json(facts, Model, remedy)
        if document.format > FORMAT:
            raise DataError(Fault(str(facts), None, f"layout {document.format} is newer", "upgrade dialeval"))
        content = gate.read_bytes(place_of(weights, document.sha256), remedy, document.sha256, facts.name)
        try:
            model = cls._made(document.settings, device)
            model.network.load_state_dict(load(content))
            if not all(value.isfinite().all() for value in model.network.state_dict().values()):
                raise ValueError("some weights are not finite")
            return model
        except DialevalError:
            raise
        except Exception as error:  # whatever PyTorch raises for settings and weights that do not fit
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            what = f"holds no model of the kind {cls.kind} ({reason})"[:300]
            raise DataError(Fault(str(folder), None, what, remedy)) from None

    def _train(self, inputs: Inputs, human_score: Any, learning_rate: float | None) -> tuple[Floats, float]:
        """One step; the predictions before it, and the loss."""
        if learning_rate is not None:
            Trainer.assign_learning_rate(self, learning_rate)  # that of a subclass may take a session
        tensors, human = self._rows(inputs, human_score)
        predicted, loss = self._step(tensors, human)
        return _numbers(predicted), float(loss)

    def _predict(self, inputs: Inputs) -> Floats:
        return _numbers(self._evaluated(self._inputs(inputs)))

    def _evaluated(self, inputs: Tensors) -> Tensor:
        self.network.eval()
        with torch.no_grad():
            return self.network(*inputs)  # type: ignore[no-any-return]

    def _rows(self, inputs: Inputs, human_score: Any) -> tuple[Tensors, Tensor]:
        """Inputs and scores as tensors, with one score for each row."""
        tensors = self._inputs(inputs)
        rows = len(tensors[0])
        scores = as_tensor(human_score, torch.float32, self.device)
        if scores.numel() != rows or scores.shape[:1] not in ((rows,), ()):
            raise SettingError(f"human_score has the shape {tuple(scores.shape)}; one number for each of {rows} rows")
        if not scores.isfinite().all():
            raise SettingError("human_score has entries that are not finite numbers; leave those rows out")
        return tensors, scores.reshape(-1)

    def _step(self, inputs: Tensors, human: Tensor) -> tuple[Tensor, Tensor]:
        self.network.train()
        predicted = self.network(*inputs)
        loss = (predicted - human).square().sum() + self.l1 * self.head.l1()
        self._descend(loss)
        return predicted.detach(), loss.detach()

    def _descend(self, loss: Tensor) -> None:
        """One step of the optimiser down the clipped gradient of a loss."""
        self.optimiser.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.max_grad_norm)
        self.optimiser.step()

    def _fit(
        self,
        inputs: Inputs,
        human_score: Any,
        validation: tuple[Inputs, Any] | None,
        schedule: Schedule,
        progress: Progress | None,
    ) -> Fitted:
        """See `ADEM.fit`."""
        order = torch.Generator().manual_seed(schedule.seed)
        known, held = self._split(inputs, human_score, validation, schedule.validation_share, order)
        if not len(known[1]):
            raise SettingError("there is nothing to fit: no rows are left for training")
        torch.manual_seed(schedule.seed)  # dropout
        self._calibrate(*known)
        train_losses: list[float] = []
        losses: list[float] = []
        best, best_state = schedule.epochs - 1, None
        for epoch in range(schedule.epochs):
            train_losses.append(self._epoch(*known, schedule.batch_size, order))
            if progress is not None:
                progress(epoch + 1, schedule.epochs)
            if held is None:
                continue
            losses.append(float((self._evaluated(held[0]) - held[1]).square().mean()))
            if best_state is None or losses[-1] < losses[best]:
                best, best_state = epoch, {name: value.clone() for name, value in self.network.state_dict().items()}
            elif epoch - best >= schedule.patience:
                break
        if best_state is not None:
            self.network.load_state_dict(best_state)
        return Fitted(len(train_losses), best, train_losses, losses)

    def _split(
        self,
        inputs: Inputs,
        human_score: Any,
        validation: tuple[Inputs, Any] | None,
        share: float,
        order: torch.Generator,
    ) -> tuple[tuple[Tensors, Tensor], tuple[Tensors, Tensor] | None]:
        """The rows to learn from, and those held out: the given ones, or a share of at least one row."""
        tensors, human = self._rows(inputs, human_score)
        if validation is not None:
            held = self._rows(*validation)
            if not len(held[1]):
                raise SettingError("validation holds no rows; leave it out, or give some")
            return (tensors, human), held
        if share == 0 or len(human) < 2:
            return (tensors, human), None
        mixed = torch.randperm(len(human), generator=order)
        many = min(max(round(len(human) * share), 1), len(human) - 1)
        drawn, kept = mixed[:many], mixed[many:]
        return (take(tensors, kept), human[kept]), (take(tensors, drawn), human[drawn])

    def _calibrate(self, inputs: Tensors, human: Tensor) -> None:
        """Set alpha and beta so that predictions have the mean and the spread of the scores."""
        with torch.no_grad():
            raw = self._evaluated(inputs) * self.head.beta + self.head.alpha
            spread = human.std(correction=0)
            self.head.beta.copy_((raw.std(correction=0) / spread).clamp_min(1e-3) if spread > 0 else torch.tensor(1.0))
            self.head.alpha.copy_(raw.mean() - human.mean() * self.head.beta)

    def _epoch(self, inputs: Tensors, human: Tensor, batch_size: int, order: torch.Generator) -> float:
        """One pass over all rows; the mean squared error."""
        total = 0.0
        for rows in batches(len(human), batch_size, order):
            predicted, _ = self._step(take(inputs, rows), human[rows])
            total += float((predicted - human[rows]).square().sum())
        return total / len(human)


def _check_learning_rate(learning_rate: float) -> None:
    if learning_rate <= 0:
        raise SettingError(f"a learning rate is above 0, not {learning_rate}")


def batches(many: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """The numbers of all rows in a random order, `size` at a time."""
    mixed = torch.randperm(many, generator=order)
    return (mixed[start : start + size] for start in range(0, many, size))


def take(parts: Tensors, rows: Tensor) -> Tensors:
    """Some rows of each part."""
    return tuple(part[rows] for part in parts)


def as_tensor(values: Any, dtype: torch.dtype, device: str) -> Tensor:
    """A tensor from an array, a list or a tensor."""
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


def _numbers(tensor: Tensor) -> Floats:
    numbers: Floats = tensor.detach().cpu().double().numpy()
    return numbers
