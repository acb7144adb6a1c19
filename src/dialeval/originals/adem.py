"""The names of the module `ADEM`, whose methods are given a TensorFlow session; see `dialeval.adem`."""

from __future__ import annotations

from typing import Any

from dialeval import adem
from dialeval.core.arrays import Floats

__all__ = ["ADEM", "ADEMWithEncoder"]


class _WithSession:
    """Methods that are given a session first, which is not looked at and may be None."""

    def train_on_single_batch(self, train_session: Any, *batch: Any, **named: Any) -> tuple[Floats, float]:
        trained: tuple[Floats, float] = super().train_on_single_batch(*batch, **named)  # type: ignore[misc]
        return trained

    def predict_on_single_batch(self, session: Any, *batch: Any, **named: Any) -> Floats:
        predicted: Floats = super().predict_on_single_batch(*batch, **named)  # type: ignore[misc]
        return predicted


# One argument more than what they stand in for: that is what the stand-ins are for.
class ADEM(_WithSession, adem.ADEM):  # type: ignore[misc]
    """The model for vectors that you have already."""


class ADEMWithEncoder(_WithSession, adem.ADEMWithEncoder):  # type: ignore[misc]
    """The model for words or characters that were mapped to indices."""
