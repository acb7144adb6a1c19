"""Krippendorff's alpha against the package of that name, at its ends, and by the example of the paper."""

from __future__ import annotations

import math

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import SettingError
from dialeval.stats.correlation import Distance, compute_krippendorff_alpha


@given(
    st.lists(st.lists(st.sampled_from([1.0, 2.0, 4.5, 5.0]), max_size=5), min_size=2, max_size=6).filter(
        lambda said: any(len(row) > 1 for row in said)
    ),
    st.sampled_from(["nominal", "ordinal", "interval"]),
)
def test_alpha_is_that_of_the_package(said: list[list[float]], distance: Distance) -> None:
    pairable = [row for row in said if len(row) > 1]
    values = np.unique([value for row in pairable for value in row])
    counts = np.array([[row.count(value) for value in values] for row in said], np.float64)
    found = compute_krippendorff_alpha(counts, distance, values)
    if len(values) < 2:
        assert math.isnan(found)
        return
    oracle = krippendorff.alpha(value_counts=counts, value_domain=values, level_of_measurement=distance)
    assert found == pytest.approx(oracle, abs=1e-9)


def test_alpha_at_its_ends() -> None:
    agreed = np.array([[5.0, 0.0, 0.0], [0.0, 0.0, 5.0]])
    assert compute_krippendorff_alpha(agreed) == compute_krippendorff_alpha(agreed, "ordinal") == 1.0
    assert compute_krippendorff_alpha(np.array([[1.0, 0.0, 1.0]] * 9)) < 0
    near, far = np.array([[3.0, 1.0, 0.0], [0.0, 1.0, 3.0]]), np.array([[3.0, 0.0, 1.0], [1.0, 0.0, 3.0]])
    assert compute_krippendorff_alpha(near, "ordinal") > compute_krippendorff_alpha(far, "ordinal")
    with pytest.raises(SettingError, match="nominal, ordinal or interval"):
        compute_krippendorff_alpha(near, "ratio")  # type: ignore[arg-type]


@pytest.mark.parametrize(("distance", "expected"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849)])
def test_the_example_of_the_paper(distance: Distance, expected: float) -> None:
    """Four observers and twelve units, with values that are missing."""
    observers = ["123321412...", "1233224125.3", ".3332342251.", "12332441251."]
    units = [[int(value) for value in unit if value != "."] for unit in zip(*observers, strict=True)]
    counts = np.array([[unit.count(value) for value in range(1, 6)] for unit in units], np.float64)
    assert compute_krippendorff_alpha(counts, distance) == pytest.approx(expected, abs=0.0005)
