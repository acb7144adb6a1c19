"""Trends over systems in order, against direct computations."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import SettingError
from dialeval.core.result import Run


def texts(seed: int, words: float, rows: int = 40) -> list[str]:
    rng = np.random.default_rng(seed)
    return [" ".join(["w"] * max(1, round(rng.normal(words, 2)))) for _ in range(rows)]


def runs(sizes: tuple[int, ...], words: tuple[float, ...]) -> Run:
    made = [
        dialeval.evaluate({f"v{at}": texts(at, mean, rows)}, metrics="length,distinct-1")
        for at, (mean, rows) in enumerate(zip(words, sizes, strict=True))
    ]
    whole = made[0]
    for each in made[1:]:
        whole = whole + each
    return whole


def test_paired_systems_share_their_units() -> None:
    run = runs((40, 40, 40), (6, 8, 10))
    found = dialeval.fit_trend(run)
    row = found.metrics[0]
    values = np.array([run[name]["length"].scores for name in run])
    slopes = values.T @ np.array([-0.5, 0.0, 0.5])
    assert (found.design, row.key) == ("paired", "length")
    assert row.slope == pytest.approx(slopes.mean())
    assert row.interval is not None
    error = slopes.std(ddof=1) / math.sqrt(40)
    assert row.interval[1] - row.slope == pytest.approx(2.0227 * error, rel=1e-3)
    assert row.significant


def test_independent_systems_add_their_variances() -> None:
    run = runs((40, 30, 50), (8, 8, 8))
    found = dialeval.fit_trend(run)
    row = found.metrics[0]
    assert (found.design, found.units) == ("unpaired", [40, 30, 50])
    variances = [np.var(run[name]["length"].scores, ddof=1) / len(run[name]["length"].scores) for name in run]  # type: ignore[arg-type]
    error = math.sqrt(0.25 * variances[0] + 0.25 * variances[2])
    assert row.interval is not None
    assert row.interval[1] - row.slope == pytest.approx(1.99 * error, rel=0.02)
    assert "depends on the amount of text" in str(found.metrics[1].reason)
    assert found.to_dict()["metrics"][0]["key"] == "length"


def test_equal_systems_rarely_have_a_trend() -> None:
    wrong = sum(dialeval.fit_trend(_equal(seed), metrics=["length"]).metrics[0].significant for seed in range(200))
    assert wrong <= 10 + 3 * math.sqrt(9.5)


def _equal(seed: int) -> Run:
    sizes = (12, 20, 15, 30)
    made = [
        dialeval.evaluate({f"v{at}": texts(10 * seed + at, 8, rows)}, metrics="length") for at, rows in enumerate(sizes)
    ]
    return Run({name: result for run in made for name, result in run.items()}, "0")


def test_what_is_no_trend() -> None:
    run = runs((10, 10, 10), (6, 6, 6))
    with pytest.raises(SettingError, match="at least three systems"):
        dialeval.fit_trend(Run({name: run[name] for name in ("v0", "v1")}, "0"))
    with pytest.raises(SettingError, match="the designs are paired and unpaired"):
        dialeval.fit_trend(run, design="common")
    with pytest.raises(SettingError, match="must be between 0 and 1"):
        dialeval.fit_trend(run, alpha=2.0)
