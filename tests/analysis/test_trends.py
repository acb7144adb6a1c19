"""Trends over systems in order, against direct computations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

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
    found = dialeval.trend(run)
    row = found.rows[0]
    values = np.array([run[name]["length"].items for name in run])
    slopes = values.T @ np.array([-0.5, 0.0, 0.5])
    assert (found.design, row.key) == ("paired", "length")
    assert row.slope == pytest.approx(slopes.mean())
    assert row.interval is not None
    error = slopes.std(ddof=1) / math.sqrt(40)
    assert row.interval[1] - row.slope == pytest.approx(2.0227 * error, rel=1e-3)
    assert row.significant


def test_independent_systems_add_their_variances() -> None:
    run = runs((40, 30, 50), (8, 8, 8))
    found = dialeval.trend(run)
    row = found.rows[0]
    assert (found.design, found.units) == ("unpaired", [40, 30, 50])
    variances = [np.var(run[name]["length"].items, ddof=1) / len(run[name]["length"].items) for name in run]  # type: ignore[arg-type]
    error = math.sqrt(0.25 * variances[0] + 0.25 * variances[2])
    assert row.interval is not None
    assert row.interval[1] - row.slope == pytest.approx(1.99 * error, rel=0.02)
    assert "depends on the amount of text" in str(found.rows[1].reason)
    assert found.to_dict()["metrics"][0]["key"] == "length"


def test_equal_systems_rarely_have_a_trend() -> None:
    wrong = sum(dialeval.trend(_equal(seed), metrics=["length"]).rows[0].significant for seed in range(200))
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
        dialeval.trend(Run({name: run[name] for name in ("v0", "v1")}, "0"))
    with pytest.raises(SettingError, match="the designs are paired and unpaired"):
        dialeval.trend(run, design="common")
    with pytest.raises(SettingError, match="must be between 0 and 1"):
        dialeval.trend(run, alpha=2.0)


def test_all_figures_of_a_paired_trend() -> None:
    run = runs((12, 12, 12, 12), (6, 7, 7.5, 9))
    found = dialeval.trend(run, metrics=["length"], alpha=0.02, confidence=0.9)
    (row,) = found.rows
    values = np.array([run[name]["length"].items for name in run])
    slopes = values.T @ (np.array([-1.5, -0.5, 0.5, 1.5]) / 5)
    error = slopes.std(ddof=1) / math.sqrt(12)
    half = stats.t.ppf(0.95, 11) * error
    assert (row.slope, *(row.interval or ())) == pytest.approx(
        (slopes.mean(), slopes.mean() - half, slopes.mean() + half)
    )
    assert row.p == pytest.approx(2 * stats.t.sf(abs(slopes.mean()) / error, 11))
    assert (row.adjusted_p, row.significant, row.reason) == (row.p, row.p < 0.02, None)
    assert (found.systems, found.unit, found.units) == (["v0", "v1", "v2", "v3"], "rows", [12] * 4)
    assert (found.alpha, found.confidence, found.panel) == (0.02, 0.9, ("length",))
    assert row.values == [run[name]["length"].mean for name in run]
    assert row.intervals == [run[name]["length"].interval for name in run]
    low, high = row.interval or (0.0, 0.0)
    first, last = (run[name]["length"] for name in ("v0", "v3"))
    assert found.lines()[0] == {
        "metric": "length",
        "system": "v0",
        "value": first.mean,
        "low": (first.interval or (0, 0))[0],
        "high": (first.interval or (0, 0))[1],
        "slope": row.slope,
        "slope_low": low,
        "slope_high": high,
        "p": row.p,
        "adjusted_p": row.p,
        "reason": None,
    }
    assert [line["value"] for line in found.lines()][3] == last.mean
    assert repr(found) == (f"<Trend: 4 systems (v0, v1, v2 and 1 more), 1 metrics, {int(row.significant)} significant>")


def test_all_figures_of_an_unpaired_trend() -> None:
    run = runs((14, 9, 20), (6, 8, 9))
    (row, distinct) = dialeval.trend(run).rows
    spreads = [np.asarray(run[name]["length"].items) for name in run]
    weights = np.array([-0.5, 0.0, 0.5])
    variances = weights**2 * [each.var(ddof=1) / len(each) for each in spreads]
    freedom = variances.sum() ** 2 / (variances**2 / [len(each) - 1 for each in spreads]).sum()
    half = stats.t.ppf(0.975, freedom) * math.sqrt(variances.sum())
    slope = weights @ [each.mean() for each in spreads]
    assert row.slope == pytest.approx(slope)
    assert row.interval == pytest.approx((slope - half, slope + half))
    assert row.p == pytest.approx(2 * stats.t.sf(abs(slope) / math.sqrt(variances.sum()), freedom))
    assert distinct.reason == ("it depends on the amount of text, and the systems have different numbers of dialogues")
    assert (math.isnan(distinct.slope), distinct.interval, distinct.significant) == (True, None, False)


def test_corpus_values_of_equal_logs_have_a_trend() -> None:
    def distinct(rows: list[str]) -> float:
        words = " ".join(rows).split()
        return len(set(words)) / len(words)

    said = [[f"w{(3 * at + row) % (5 + at)} w{row % 4} x" for row in range(8 + at % 2)] for at in range(3)]
    said[1] = said[1][:8]
    run = Run({f"v{at}": dialeval.evaluate(rows, metrics="distinct-1")["system"] for at, rows in enumerate(said)}, "0")
    found = dialeval.trend(run, design="unpaired")
    (row,) = found.rows
    variances = []
    for rows, weight in zip(said, (-0.5, 0, 0.5), strict=True):
        without = np.array([distinct(rows[:at] + rows[at + 1 :]) for at in range(8)])
        variances.append(weight**2 * 7 / 8 * ((without - without.mean()) ** 2).sum())
    freedom = sum(variances) ** 2 / sum(each**2 / 7 for each in variances)
    half = stats.t.ppf(0.975, freedom) * math.sqrt(sum(variances))
    slope = (distinct(said[2]) - distinct(said[0])) / 2
    assert (found.design, row.reason) == ("unpaired", None)
    assert (row.slope, *(row.interval or ())) == pytest.approx((slope, slope - half, slope + half))


def test_trends_of_few_or_equal_rows() -> None:
    same = runs((3, 3, 3), (6, 6, 6))
    equal = Run(dict.fromkeys(("x", "y", "z"), same["v0"]), "0")
    (row,) = dialeval.trend(equal, metrics=["length"]).rows
    assert (row.slope, row.interval, row.p, row.significant) == (0, (0, 0), 1, False)
    silent = {name: dialeval.evaluate([""] * 4, metrics="length") for name in "xyz"}
    (row,) = dialeval.trend(silent).rows
    assert (row.slope, row.p) == (0, 1)
    for rows, reason in ((1, "a trend needs at least two dialogues or rows of each system"), (2, None)):
        made = {f"v{at}": dialeval.evaluate(["a " * (1 + at)] * rows, metrics="length") for at in range(3)}
        (row,) = dialeval.trend(made).rows
        assert row.reason == reason
    assert (row.slope, row.p, row.significant) == (1, 0, True), "every row rises by the same"
    for wrong in ({"alpha": 0.0}, {"alpha": 1.0}, {"confidence": 0.0}, {"confidence": 1.0}):
        with pytest.raises(SettingError, match="alpha and the confidence level must be between 0 and 1"):
            dialeval.trend(same, **wrong)  # type: ignore[arg-type]


def test_one_pair_that_is_not_paired_makes_the_trend_unpaired() -> None:
    run = runs((10, 10, 7), (6, 7, 8))
    found = dialeval.trend(run, metrics=["length"])
    assert (found.design, found.units) == ("unpaired", [10, 10, 7])
