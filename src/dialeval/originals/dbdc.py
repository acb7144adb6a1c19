"""The names of the challenge's eval.py (DBDC), for one turn; see `dialeval.breakdown` for whole files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.metrics import breakdown as metrics
from dialeval.metrics.breakdown import LABELS

__all__ = ["calc_distribution", "jsd", "kld", "majority_label", "majority_label_lenient", "mse"]


def calc_distribution(annotations: Iterable[Mapping[str, object]]) -> list[float]:
    """Return the fractions of O, T and X among the annotations of a turn; NaN where there is none of these."""
    labels = [annotation["breakdown"] for annotation in annotations]
    counts = np.array([[labels.count(label) for label in LABELS]], np.float64)
    return [float(share) for share in metrics.shares(counts)[0]]


def majority_label(prob_O: float, prob_T: float, prob_X: float, threshold: float) -> str:  # noqa: N803
    """Return the reference label of a turn: O, T or X."""
    return LABELS[int(metrics.hard_reference(np.array([[prob_O, prob_T, prob_X]]), threshold)[0])]


def majority_label_lenient(prob_O: float, prob_T: float, prob_X: float, threshold: float) -> str:  # noqa: N803
    """Return the reference label of a turn with T and X as one: O_l or X_l."""
    return LABELS[int(metrics.lenient_reference(np.array([[prob_O, prob_T, prob_X]]), threshold)[0])] + "_l"


def kld(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Kullback-Leibler divergence of two distributions, in bits; infinity where q lacks what p has."""
    with np.errstate(all="ignore"):  # 0 / 0 where both are 0
        return float(metrics.divergence(_columns(p), _columns(q))[0])


def jsd(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the Jensen-Shannon divergence of two distributions, in bits."""
    with np.errstate(all="ignore"):  # 0 / 0 where both are 0
        return float(metrics.jensen_shannon(_columns(p), _columns(q))[0])


def mse(p: Sequence[float], q: Sequence[float]) -> float:
    """Return the mean squared difference of two distributions."""
    return float(metrics.squared_error(_columns(p), _columns(q))[0])


def _columns(distribution: Sequence[float]) -> list[Floats]:
    return [np.array([value], np.float64) for value in distribution]
