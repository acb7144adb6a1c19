"""The stand-in for the functions of eval.py, against their definitions."""

from __future__ import annotations

import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.breakdown import BreakdownRun
from dialeval.originals.dbdc import calc_distribution, jsd, kld, majority_label, majority_label_lenient, mse
from dialeval.suites.breakdown.report import format_original

shares = st.lists(st.integers(0, 9), min_size=3, max_size=3).filter(any)


def annotated(labels: str) -> list[dict[str, str]]:
    return [{"breakdown": label} for label in labels]


def test_shares() -> None:
    assert calc_distribution(annotated("OOTTTXXXXX")) == [0.2, 0.3, 0.5]
    assert calc_distribution(annotated("Oo?T")) == [0.5, 0.5, 0.0]
    assert all(map(math.isnan, calc_distribution([])))


@pytest.mark.parametrize(
    ("share", "threshold", "label", "lenient"),
    [
        ((0.2, 0.3, 0.5), 0.5, "X", "X_l"),  # the example of the challenge's document
        ((0.2, 0.3, 0.5), 0.6, "O", "X_l"),
        ((0.2, 0.3, 0.5), 0.9, "O", "O_l"),
        ((0.2, 0.5, 0.3), 0.0, "T", "X_l"),
        ((0.5, 0.5, 0.0), 0.0, "O", "O_l"),
        ((0, 0, 1), 0.5, "X", "X_l"),  # any numbers
        ((10**400, 0, 1), 0.5, "O", "O_l"),
        ((Fraction(1, 5), Fraction(3, 5), Fraction(1, 5)), 0.5, "T", "X_l"),
        ((math.nan, 0.5, 0.5), 0.5, "O", "O_l"),
    ],
)
def test_reference_labels(share: tuple[float, float, float], threshold: float, label: str, lenient: str) -> None:
    assert majority_label(*share, threshold) == label
    named = dict(zip(("prob_O", "prob_T", "prob_X"), share, strict=True))
    assert majority_label(**named, threshold=threshold) == label
    assert majority_label_lenient(**named, threshold=threshold) == lenient
    assert majority_label_lenient(*share, threshold) == lenient


@given(shares, shares)
def test_distances(left: list[int], right: list[int]) -> None:
    p, q = ([number / sum(counts) for number in counts] for counts in (left, right))
    middle = [(a + b) / 2 for a, b in zip(p, q, strict=True)]
    parts = [sum(a * math.log2(a / m) for a, m in zip(each, middle, strict=True) if a > 0) for each in (p, q)]
    assert jsd(p, q) == pytest.approx(sum(parts) / 2, abs=1e-12)
    assert mse(p, q) == pytest.approx(sum((a - b) ** 2 for a, b in zip(p, q, strict=True)) / 3, abs=1e-12)
    assert jsd(p[:2], p[:2]) == mse(p[:2], p[:2]) == 0
    assert kld(p, middle) == pytest.approx(parts[0], abs=1e-12)
    assert jsd(p, q) == pytest.approx((kld(p, middle) + kld(q, middle)) / 2, abs=1e-12)


def test_kld_of_what_the_other_lacks() -> None:
    assert kld([1.0, 0.0], [0.5, 0.5]) == 1
    assert kld([0.5, 0.5], [1.0, 0.0]) == math.inf  # the original divides by zero


class Indexed:
    """A distribution that has `__len__` and `__getitem__` and nothing else."""

    def __init__(self, values: list[float]) -> None:
        self._values = values

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> float:
        return self._values[index]


def test_objects_with_an_index_and_a_length() -> None:
    p, q = [0.2, 0.3, 0.5], [0.5, 0.25, 0.25]
    for distance in (jsd, kld, mse):
        assert distance(Indexed(p), Indexed(q)) == distance(p, q)  # type: ignore[arg-type]


# A run of detectors as text: the lines of the original program, the confusion tables, a row per turn.


def test_the_original_prints_the_first_detector_and_threshold_unless_given(run: BreakdownRun) -> None:
    assert format_original(run) == format_original(run, "keywords", 0.0)
    assert len({format_original(run), format_original(run, "cautious"), format_original(run, threshold=0.5)}) == 3
    table = run.tables["keywords"][0.0]
    assert f"Accuracy : \t\t{table.correct / table.scored:f} ({table.correct}/{table.scored})\n" in format_original(run)
    assert f"JS divergence (O,T,X) : \t{run['keywords']['jsd-o-t-x'].mean:f}\n" in format_original(run)
