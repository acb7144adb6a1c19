"""The best systems of each metric: by their means, and by tests against the best."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

import dialeval
from dialeval.analysis.comparison import compare, find_best_systems
from dialeval.core.arrays import Floats
from dialeval.core.fold import Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature


def test_systems_that_are_not_significantly_worse_are_among_the_best(run: dialeval.Run) -> None:
    found = find_best_systems(run, ["length", "distinct-1"])
    assert found.systems.keys() == {"distinct-1"}, "length has no direction"
    assert sorted(found.systems["distinct-1"]) == ["a", "b"]
    means = {name: run[name]["distinct-1"].mean for name in run}
    assert found.systems["distinct-1"][0] == max(means, key=lambda name: means[name])
    assert found.tests == 3, "every pair of the three"


def test_equal_systems_are_rarely_left_out() -> None:
    """Multiple comparisons with the best: of six equal systems one is left out in at most 5% of cases."""
    rng = np.random.default_rng(1)
    left_out = 0
    for _ in range(60):
        values = rng.normal(size=(6, 30))
        results = {f"s{at}": row_result(values[at]) for at in range(6)}
        left_out += "rouge-l" in find_best_systems(results, ["rouge-l"]).systems
    assert left_out <= 6


def row_result(values: Floats) -> Result:
    estimate = Estimate(
        float(values.mean()), 0.0, len(values), len(values), scores=values, signature=Signature.of("rouge-l")
    )
    return Result({"rouge-l": estimate}, table=RowTable(np.arange(len(values) + 1)))


def test_systems_with_other_units_have_no_best() -> None:
    results = {"a": row_result(np.arange(9.0)), "b": row_result(np.arange(12.0))}
    assert find_best_systems(results, ["rouge-l"]).systems == {}


def test_one_family_of_tests(run: dialeval.Run) -> None:
    keys = [key for key in run["a"] if key != "length"]
    found = find_best_systems(run, keys)
    assert found.tests == 3 * len(found.systems)
    for key, names in found.systems.items():
        worse = [name for name in run if name not in names]
        if worse:
            rows = compare(run, baseline=names[0], systems=worse, metrics=[key]).differences
            assert all(row.p < 0.05 for row in rows), "less sure alone than as one of many is impossible"


def test_floors_take_no_part_and_one_system_is_not_the_best(run: dialeval.Run) -> None:
    floor = {"floor": replace(run["a"], role="floor"), "b": run["b"]}
    assert find_best_systems(floor, ["distinct-1"]).systems == {}
    assert find_best_systems({}, []).tests == 0


def test_systems_that_cannot_be_compared_are_not_tested(run: dialeval.Run) -> None:
    unknown = replace(run["b"], table=None)
    found = find_best_systems({**run, "b": unknown}, ["distinct-1"])
    assert found.tests == 0
    means = {name: result["distinct-1"].mean for name, result in run.items()}
    assert found.systems["distinct-1"] == [name for name, mean in means.items() if mean == max(means.values())]


def test_a_system_that_lacks_a_metric_takes_part_in_the_others(run: dialeval.Run) -> None:
    less = replace(run["b"], estimates={key: est for key, est in run["b"].items() if key != "distinct-1"})
    found = find_best_systems({**run, "b": less}, ["distinct-1", "distinct-2"])
    assert "b" not in found.systems["distinct-1"]
    assert found.tests == np.sum([1, 3])
