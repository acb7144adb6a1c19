"""ADEM in PyTorch, as its authors describe it, for vectors of any kind; formula, loss and training are in `trainer`."""

from __future__ import annotations

from typing import Any

import torch

from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.trainer import (
    L1,
    MAX_GRAD_NORM,
    Bilinear,
    Constants,
    Fitted,
    Inputs,
    Schedule,
    Tensors,
    Trainer,
    as_tensor,
)
from dialeval.resources.progress import Progress


class ADEM(Trainer):
    """The model for vectors that you have already.

    `l1` weighs |M| + |N| in the loss, `max_grad_norm` is the largest norm of a gradient. Given the same numbers in the
    same order, training gives the same weights.
    """

    kind = "adem"

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
        super().__init__(learning_rate, l1, max_grad_norm, constants, device)
        dimensions = context_dim, model_response_dim, reference_response_dim
        if min(dimensions) < 1 or beta == 0:
            raise SettingError("vectors have at least one number, and beta is not 0")
        self.dimensions = dimensions
        self.network = self.head = Bilinear(*dimensions, alpha, beta)
        self._ready()

    def train_on_single_batch(
        self,
        context: Any,
        model_response: Any,
        reference_response: Any,
        human_score: Any,
        learning_rate: float | None = None,
    ) -> tuple[Floats, float]:
        """One step on one batch; the predictions before the step, and the loss.

        A learning rate holds from this batch on, as one given to `assign_learning_rate` does.
        """
        return self._train((context, model_response, reference_response), human_score, learning_rate)

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
        progress: Progress | None = None,
    ) -> Fitted:
        """Train on mini-batches until the held-out error has not fallen for `patience` epochs; keep the best weights.

        Held out are the rows of `validation`, in the order of the other arguments, or a share of the rows drawn by
        `seed` (at least one, unless there is only one row). Rows with a common context should be on one side: pass
        `validation` then. `progress` counts epochs.
        """
        held = None if validation is None else (validation[:3], validation[3])
        schedule = Schedule(epochs, batch_size, validation_share, patience, seed)
        return self._fit((context, model_response, reference_response), human_score, held, schedule, progress)

    def _inputs(self, inputs: Inputs) -> Tensors:
        tensors = tuple(as_tensor(part, torch.float32, self.device) for part in inputs)
        names = ("context", "model_response", "reference_response")
        for name, tensor, dimension in zip(names, tensors, self.dimensions, strict=True):
            if tensor.ndim != 2 or tensor.shape[1] != dimension or len(tensor) != len(tensors[0]):
                shape = tuple(tensor.shape)
                raise SettingError(f"{name} has the shape {shape}; one row per response and {dimension} numbers each")
            if not tensor.isfinite().all():
                raise SettingError(f"{name} has entries that are not finite numbers; leave those rows out")
        return tensors

    def _shape(self) -> dict[str, Any]:
        return {"dimensions": list(self.dimensions)}

    @classmethod
    def _made(cls, settings: dict[str, Any], device: str) -> ADEM:
        return cls(*settings.pop("dimensions"), **settings, device=device)
