"""The reference label of a turn, out of what its annotators said.

Annotators call a turn O (not a breakdown), T (possibly one) or X (a breakdown); the *shares* are the fractions of them.

    reference          = the label with the largest share (ties: O before T before X), O if that share < threshold
    lenient reference  = O if O >= T + X;  X (which stands for T and X) if T + X >= threshold;  else O

Shares are floats and are compared as floats, as in the original: T + X is a sum of two rounded shares. A turn without
any O, T or X has no reference.

The columns: `Need.ANNOTATIONS` holds three counts per turn (O, T, X), `Need.LABELS` four numbers: the code of the
detector's label (`O`, `T`, `X`, `OTHER` for anything else, NaN where there is none) and its three probabilities.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.needs import Need

LABELS = ("O", "T", "X")
O, T, X = range(3)  # noqa: E741  (the challenge's own names)
OTHER = 3
"""The code of a label that is none of the three."""


def shares(counts: Floats) -> Floats:
    """The share of each label per turn; NaN for a turn without any."""
    with np.errstate(invalid="ignore"):  # 0 / 0
        share: Floats = counts / counts.sum(axis=1, keepdims=True)
    return share


def hard_reference(share: Floats, threshold: float) -> Floats:
    """The code of the reference label per turn; NaN where there is none."""
    codes = np.argmax(share, axis=1).astype(np.float64)  # the first of equal ones
    codes[share.max(axis=1, initial=-np.inf) < threshold] = O
    return np.where(np.isnan(share[:, O]), np.nan, codes)


def lenient_reference(share: Floats, threshold: float) -> Floats:
    """`O` or `X` per turn, T and X being taken together; NaN where there is no reference."""
    broken = share[:, T] + share[:, X]
    codes = np.where((share[:, O] < broken) & (broken >= threshold), float(X), float(O))
    return np.where(np.isnan(share[:, O]), np.nan, codes)


def shares_of(batch: Batch) -> Floats:
    """The shares of a batch, computed once."""
    counts = batch.numbers(Need.ANNOTATIONS)
    return batch.derived("breakdown-shares", lambda: shares(counts))


class Codes(NamedTuple):
    """Codes of the label, the reference and the lenient reference per turn; NaN where there is none."""

    label: Floats
    reference: Floats
    lenient: Floats

    @classmethod
    def of(cls, labels: Floats, share: Floats, threshold: float) -> Codes:
        """The codes of a detector's labels and of what annotators said."""
        return cls(labels[:, 0], hard_reference(share, threshold), lenient_reference(share, threshold))

    @property
    def scored(self) -> npt.NDArray[np.bool_]:
        """The turns with a label and a reference."""
        return ~(np.isnan(self.label) | np.isnan(self.reference))


def codes_of(batch: Batch, threshold: float) -> Codes:
    """The codes of a batch, computed once per threshold."""
    share, labels = shares_of(batch), batch.numbers(Need.LABELS)
    return batch.derived(("breakdown-codes", threshold), lambda: Codes.of(labels, share, threshold))
