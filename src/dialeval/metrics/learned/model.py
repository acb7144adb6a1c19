"""ADEM in PyTorch, as its authors describe it, for vectors of any kind.

    score(c, r, r^) = (c' M r^ + r' N r^ - alpha) / beta
    loss = sum over the batch of (score - human score)^2 + l1 * (|M| + |N|)

M and N start as the identity (on the shared part, where the vectors differ in length). alpha and beta are scalars;
`fit` sets them first so that the untrained model has the mean and the spread of the human scores, and they are learned
along with M and N unless `constants="fixed"`. Optimiser: Adam.

Paper: Lowe et al. 2017, "Towards an Automatic Turing Test: Learning to Evaluate Dialogue Responses", ACL.

Differences from the original program: arrays or tensors in, NumPy out, no session; gradients are clipped; training
stops early; weights are saved as safetensors and JSON. Nothing is read from a pickle.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor, nn

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.metrics.learned.tensors import load_model, save_model

Constants = Literal["learned", "fixed"]
Inputs = tuple[Any, ...]


class Bilinear(nn.Module):
    """M, N, alpha and beta, and the formula."""

    def __init__(self, context_dim: int, response_dim: int, reference_dim: int, alpha: float, beta: float) -> None:
        super().__init__()
        self.M = nn.Parameter(torch.eye(context_dim, response_dim))
        self.N = nn.Parameter(torch.eye(reference_dim, response_dim))
        self.alpha = nn.Parameter(torch.tensor(float(alpha)))
        self.beta = nn.Parameter(torch.tensor(float(beta)))

    def raw(self, context: Tensor, response: Tensor, reference: Tensor) -> Tensor:
        """c' M r^ + r' N r^."""
        return ((context @ self.M + reference @ self.N) * response).sum(-1)

    def forward(self, context: Tensor, response: Tensor, reference: Tensor) -> Tensor:
        """The score."""
        return (self.raw(context, response, reference) - self.alpha) / self.beta

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


class Trainer:
    """What both ADEMs share: single batches and fitting. A subclass gives `network` and says how inputs are read."""

    network: nn.Module
    head: Bilinear

    def __init__(self, learning_rate: float, l1: float, clip: float, constants: Constants, device: str) -> None:
        if learning_rate <= 0 or l1 < 0 or clip <= 0:
            raise SettingError("learning_rate and clip are above 0, l1 is 0 or more")
        if constants not in ("learned", "fixed"):
            raise SettingError(f"the constants alpha and beta are learned or fixed, not {constants!r}")
        _check_device(device)
        self.learning_rate, self.l1, self.clip, self.constants, self.device = learning_rate, l1, clip, constants, device

    def _ready(self) -> None:
        """To be called once the network is made."""
        self.network.to(self.device)
        for scalar in (self.head.alpha, self.head.beta):
            scalar.requires_grad_(self.constants == "learned")
        learned = [parameter for parameter in self.network.parameters() if parameter.requires_grad]
        self.optimiser = torch.optim.Adam(learned, self.learning_rate)

    def _inputs(self, inputs: Inputs) -> tuple[Tensor, ...]:
        """The inputs as tensors of the right type on the device."""
        raise NotImplementedError

    def _loss(self, inputs: tuple[Tensor, ...], human: Tensor) -> tuple[Tensor, Tensor]:
        predicted = self.network(*inputs)
        return predicted, (predicted - human).square().sum() + self.l1 * self.head.l1()

    def _step(self, inputs: tuple[Tensor, ...], human: Tensor) -> tuple[Tensor, Tensor]:
        self.network.train()
        self.optimiser.zero_grad()
        predicted, loss = self._loss(inputs, human)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.network.parameters(), self.clip)
        self.optimiser.step()
        return predicted.detach(), loss.detach()

    def _train(self, inputs: Inputs, human_score: Any) -> tuple[Floats, float]:
        there = self._inputs(inputs)
        predicted, loss = self._step(there, self._scores(human_score, len(there[0])))
        return _numbers(predicted), float(loss)

    def _predict(self, inputs: Inputs) -> Floats:
        self.network.eval()
        with torch.no_grad():
            return _numbers(self.network(*self._inputs(inputs)))

    def _scores(self, human_score: Any, rows: int) -> Tensor:
        scores = as_tensor(human_score, torch.float32, self.device)
        if scores.numel() != rows or scores.shape[:1] not in ((rows,), ()):
            raise SettingError(f"human_score has the shape {tuple(scores.shape)}; one number for each of {rows} rows")
        if not scores.isfinite().all():
            raise SettingError("human_score holds what is no number; leave those rows out")
        return scores.reshape(-1)

    def _fit(
        self,
        inputs: Inputs,
        human_score: Any,
        *,
        epochs: int,
        batch_size: int,
        validation: tuple[Inputs, Any] | None,
        validation_share: float,
        patience: int,
        seed: int,
        progress: Callable[[int], None] | None,
    ) -> Fitted:
        """See `ADEM.fit`."""
        if epochs < 1 or batch_size < 1 or not 0 <= validation_share < 1:
            raise SettingError("epochs and batch_size are at least 1, validation_share lies from 0 to below 1")
        there = self._inputs(inputs)
        human = self._scores(human_score, len(there[0]))
        order = torch.Generator().manual_seed(seed)
        held: tuple[tuple[Tensor, ...], Tensor] | None = None
        if validation is not None:
            out_of_sight = self._inputs(validation[0])
            held = out_of_sight, self._scores(validation[1], len(out_of_sight[0]))
            if not len(held[1]):
                raise SettingError("validation holds no rows; leave it out, or give some")
        elif validation_share > 0 and len(human) > 1:
            mixed = torch.randperm(len(human), generator=order)
            many = min(max(round(len(human) * validation_share), 1), len(human) - 1)
            out, kept = mixed[:many], mixed[many:]
            held = tuple(part[out] for part in there), human[out]
            there, human = tuple(part[kept] for part in there), human[kept]
        if not len(human):
            raise SettingError("there is nothing to fit: no rows are left for training")
        torch.manual_seed(seed)  # dropout
        self._calibrate(there, human)
        train_losses: list[float] = []
        losses: list[float] = []
        best: tuple[float, int, dict[str, Tensor]] | None = None
        for epoch in range(epochs):
            train_losses.append(self._epoch(there, human, batch_size, order))
            if progress is not None:
                progress(1)
            if held is None:
                continue
            losses.append(self._error(held))
            if best is None or losses[-1] < best[0]:
                best = losses[-1], epoch, {name: value.clone() for name, value in self.network.state_dict().items()}
            elif epoch - best[1] >= patience:
                break
        if best is not None:
            self.network.load_state_dict(best[2])
        return Fitted(len(train_losses), best[1] if best else len(train_losses) - 1, train_losses, losses)

    def _calibrate(self, inputs: tuple[Tensor, ...], human: Tensor) -> None:
        """Set alpha and beta so that predictions have the mean and the spread of the scores."""
        self.network.eval()
        with torch.no_grad():
            raw = self.network(*inputs) * self.head.beta + self.head.alpha
            spread = human.std(correction=0)
            self.head.beta.copy_((raw.std(correction=0) / spread).clamp_min(1e-3) if spread > 0 else torch.tensor(1.0))
            self.head.alpha.copy_(raw.mean() - human.mean() * self.head.beta)

    def _epoch(self, inputs: tuple[Tensor, ...], human: Tensor, batch_size: int, order: torch.Generator) -> float:
        total = 0.0
        for rows in batches(len(human), batch_size, order):
            predicted, _ = self._step(tuple(part[rows] for part in inputs), human[rows])
            total += float((predicted - human[rows]).square().sum())
        return total / len(human)

    def _error(self, held: tuple[tuple[Tensor, ...], Tensor]) -> float:
        self.network.eval()
        with torch.no_grad():
            return float((self.network(*held[0]) - held[1]).square().mean())


class ADEM(Trainer):
    """The model for vectors that you have already.

    `l1` weighs |M| + |N| in the loss, `clip` is the largest norm of a gradient. Given the same numbers in the same
    order, training gives the same weights.
    """

    def __init__(
        self,
        context_dim: int,
        model_response_dim: int,
        reference_response_dim: int,
        learning_rate: float = 1e-3,
        *,
        l1: float = 0.0,
        alpha: float = 0.0,
        beta: float = 1.0,
        clip: float = 5.0,
        constants: Constants = "learned",
        device: str = "cpu",
    ) -> None:
        super().__init__(learning_rate, l1, clip, constants, device)
        dimensions = context_dim, model_response_dim, reference_response_dim
        if min(dimensions) < 1 or beta == 0:
            raise SettingError("vectors have at least one number, and beta is not 0")
        self.dimensions = dimensions
        self.network = self.head = Bilinear(context_dim, model_response_dim, reference_response_dim, alpha, beta)
        self._ready()

    def train_on_single_batch(
        self, context: Any, model_response: Any, reference_response: Any, human_score: Any
    ) -> tuple[Floats, float]:
        """One step on one batch; the predictions before the step, and the loss."""
        return self._train((context, model_response, reference_response), human_score)

    def predict_on_single_batch(self, context: Any, model_response: Any, reference_response: Any) -> Floats:
        """One score per row."""
        return self._predict((context, model_response, reference_response))

    def fit(
        self,
        context: Any,
        model_response: Any,
        reference_response: Any,
        human_score: Any,
        *,
        epochs: int = 100,
        batch_size: int = 32,
        validation: tuple[Any, Any, Any, Any] | None = None,
        validation_share: float = 0.1,
        patience: int = 5,
        seed: int = 0,
        progress: Callable[[int], None] | None = None,
    ) -> Fitted:
        """Train on mini-batches until the held-out error has not fallen for `patience` epochs; keep the best weights.

        Held out are the rows of `validation`, in the order of the other arguments, or a share of the rows drawn by
        `seed` (at least one, unless there is only one row). Rows with a common context should be on one side: pass
        `validation` then.
        """
        held = None if validation is None else (tuple(validation[:3]), validation[3])
        return self._fit(
            (context, model_response, reference_response),
            human_score,
            epochs=epochs,
            batch_size=batch_size,
            validation=held,
            validation_share=validation_share,
            patience=patience,
            seed=seed,
            progress=progress,
        )

    def _inputs(self, inputs: Inputs) -> tuple[Tensor, ...]:
        tensors = tuple(as_tensor(part, torch.float32, self.device) for part in inputs)
        names = ("context", "model_response", "reference_response")
        for name, tensor, dimension in zip(names, tensors, self.dimensions, strict=True):
            if tensor.ndim != 2 or tensor.shape[1] != dimension or len(tensor) != len(tensors[0]):
                shape = tuple(tensor.shape)
                raise SettingError(f"{name} has the shape {shape}; one row per response and {dimension} numbers each")
            if not tensor.isfinite().all():
                raise SettingError(f"{name} holds what is no number; leave those rows out")
        return tensors

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write weights and settings into a folder."""
        settings: Mapping[str, Any] = {
            "dimensions": list(self.dimensions),
            "learning_rate": self.learning_rate,
            "l1": self.l1,
            "clip": self.clip,
            "constants": self.constants,
        }
        return save_model(folder, "adem", settings, self.network.state_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike[str], device: str = "cpu") -> ADEM:
        """The model that `save` wrote."""
        return load_model(folder, "adem", lambda settings: cls(*settings.pop("dimensions"), **settings, device=device))


def _check_device(device: str) -> None:
    try:
        kind = torch.device(device).type
    except RuntimeError:
        raise SettingError(f"PyTorch knows no device {device!r}; give cpu or cuda") from None
    if kind == "cuda" and not torch.cuda.is_available():
        raise SettingError("PyTorch finds no GPU here; leave the device out, or install a build of it for CUDA")


def batches(many: int, size: int, order: torch.Generator) -> Iterator[Tensor]:
    """The numbers of all rows in a random order, `size` at a time."""
    mixed = torch.randperm(many, generator=order)
    return (mixed[start : start + size] for start in range(0, many, size))


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
    found: Floats = tensor.detach().cpu().double().numpy()
    return found
