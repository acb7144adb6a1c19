"""Intervals cover, tests keep their level, and what is said to be detectable is found: on data with a known truth.

`tools/simulate.py` has the simulations, and docs/simulation-tables.md its tables.
What runs with every commit is small and
has a fixed seed; `pytest -m slow` runs what the tables are made of, with fewer data sets.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
import pytest
from tools.simulate import METHODS, SIMULATED, TEST, Lengths, coverage, kinds, power, registered, size

from dialeval.stats.resampling import draw_resamples, percentiles
from metrics.evaluated import unregister
from tools import simulate

PAGE = (Path(__file__).parents[2] / "docs" / "simulation-tables.md").read_text()
SLOW_SETS = 300
TARGETS = ("mean", "yes/no", "F1", "BLEU")
"""What intervals are held to; those of skewed values cover less, and say so."""


@pytest.fixture(autouse=True)
def metrics() -> Iterator[None]:
    registered()
    yield
    for metric in (*SIMULATED.values(), simulate.Rated()):
        unregister(type(metric))


def chance(share: float, sets: int) -> float:
    """Three standard deviations of a share of data sets."""
    return 3 * math.sqrt(share * (1 - share) / sets)


def pooled(hits: simulate.Hits, column: str, names: Iterable[str] = SIMULATED) -> float:
    """The share of hits of a method or test over several values."""
    return float(np.mean([found for (case, which), found in hits.items() if which == column and case[0] in names]))


def test_intervals_cover() -> None:
    hits = coverage(range(25), 8, "unequal")
    assert {case[0] for case, _ in hits} == set(SIMULATED)
    for method in METHODS:
        assert pooled(hits, method, TARGETS) >= 0.9, method


def test_rows_that_are_taken_for_dialogues_cover_too_little() -> None:
    """The simulations would notice: intervals over the rows of the same data miss the truth far too often."""
    covered = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        turns = simulate.lengths_of(rng, 20, "unequal")
        items = simulate.rows_of(rng, turns, seed)[:, 0]
        covered.append(abs(items.mean()) <= 1.96 * items.std() / math.sqrt(len(items)))
    assert np.mean(covered) < 0.7


def test_tests_keep_their_level() -> None:
    hits = size(range(25), 8, "unequal")
    assert {case[0] for case, _ in hits} == set(SIMULATED)
    assert pooled(hits, TEST) <= 0.1


def test_what_is_detectable_is_found() -> None:
    hits = power(range(60), 8, "unequal")
    assert pooled(hits, TEST) >= 0.65


def test_intervals_of_distinct_cover() -> None:
    for text in ("Zipf", "canned"):
        for values in kinds(range(20), 20, text).values():
            value, low, high = np.array(values).T
            assert np.mean((low <= value.mean()) & (value.mean() <= high)) >= 0.95 - chance(0.95, 20)


def test_intervals_of_rare_yes_cover() -> None:
    """Percentiles of the same rows show that the simulation would notice."""
    hits = simulate.heavy(range(40), 20, "rare yes")
    covered = {method: float(np.mean(found)) for (_, method), found in hits.items()}
    assert min(covered["default"], covered["studentized"]) >= 0.95 - chance(0.95, 40)
    plain = []
    for seed in range(40):
        _, values, truth = simulate.heavy_values(np.random.default_rng([seed, 20, 1]), 20, "rare yes")
        low, high = percentiles(np.concatenate(list(draw_resamples(20, 200, seed))) @ values / 20)
        plain.append(low <= truth <= high)
    assert np.mean(plain) < 0.8


@pytest.mark.parametrize("difficulty", ["hard", "few possible"])
def test_intervals_of_repeated_trials_cover(difficulty: str) -> None:
    hits = simulate.trials(range(25), (50, 8), difficulty)
    assert {column for _, column in hits} == {"pass^1", "pass^2", "pass^4"}
    for found in hits.values():
        assert np.mean(found) >= 0.95 - chance(0.95, 25)


def test_intervals_of_sorted_rows_are_those_of_shuffled_ones() -> None:
    widths = {}
    for order, rows in simulate.ORDERED:
        for key, values in simulate.ordered(range(3), rows, order).items():
            _, low, high = np.array(values).T
            widths[order, key] = float((high - low).mean())
    for key in ("distinct-1", "distinct-2", "length"):
        assert widths["sorted", key] == pytest.approx(widths["shuffled", key], rel=0.1)


def test_interim_looks_at_values_with_bounds_hold_where_others_fail() -> None:
    bounded = simulate.interim(range(15), 1000, "rare losses")
    unbounded = simulate.interim(range(60), 1000, "rare losses, no bounds")
    assert np.mean(bounded["betting"]) <= 0.05 + chance(0.05, 15)
    assert np.mean(unbounded["asymptotic"]) > 0.2, "which is why the sequence says so"
    assert np.mean(simulate.interim(range(60), 1000, "Weibull 0.6")["asymptotic"]) <= 0.05 + chance(0.05, 60)


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [20, 50, 100])
@pytest.mark.parametrize("lengths", ["unequal", "very unequal"])
def test_coverage(dialogues: int, lengths: Lengths) -> None:
    hits = coverage(range(SLOW_SETS), dialogues, lengths)
    for name in TARGETS:
        for method in METHODS:
            covered = float(np.mean(hits[(name, lengths, dialogues), method]))
            assert 0.92 - chance(0.92, SLOW_SETS) <= covered <= 0.97 + chance(0.97, SLOW_SETS), (name, method)


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [8, 10, 20, 50])
def test_size(dialogues: int) -> None:
    for (case, test), found in size(range(SLOW_SETS), dialogues, "unequal").items():
        assert np.mean(found) <= 0.06 + chance(0.06, SLOW_SETS), (case, test)


@pytest.mark.slow
@pytest.mark.parametrize("dialogues", [20, 30, 50])
def test_power(dialogues: int) -> None:
    hits = power(range(SLOW_SETS), dialogues, "unequal")
    found = float(np.mean(hits[("mean", "unequal", dialogues), TEST]))
    assert found == pytest.approx(0.8, abs=0.05 + chance(0.8, SLOW_SETS))


def lines_of(title: str) -> list[list[str]]:
    """The cells of the table below a title of the page."""
    (part,) = (part for part in PAGE.split("\n### ") if part.startswith(title))
    return [line.strip("| ").split(" | ") for line in part.splitlines() if line.startswith("| ")]


def test_the_page_has_the_tables_that_the_command_prints() -> None:
    for title, cases, columns in (
        ("Coverage of 95% intervals\n", simulate.COVERED, METHODS),
        ("Differences found at 5%", simulate.SIZED, [TEST]),
        ("Detectable differences", simulate.POWERED, [TEST]),
    ):
        head, _, *lines = lines_of(title)
        assert head == ["value", "lengths", "dialogues", *columns]
        assert {(line[1], int(line[2])) for line in lines} == set(cases)
    _, _, *lines = lines_of("Coverage of 95% intervals of distinct")
    assert {(line[0], int(line[2])) for line in lines} == set(simulate.KINDS)
    for title, hard in (
        ("Coverage of 95% intervals with heavy tails", simulate.HEAVY),
        ("Coverage of 95% intervals of sorted rows", simulate.ORDERED),
        ("Differences of KL divergence", simulate.DIVERGED),
        ("Equal systems", simulate.COMPARED),
    ):
        assert {(line[0], int(line[2])) for line in lines_of(title)[2:]} == set(hard), title
    tried = {(name, f"{tried} trials", str(tasks)) for name, (tasks, tried) in simulate.TRIED}
    assert {tuple(line[:3]) for line in lines_of("Coverage of 95% intervals of pass^k")[2:]} == tried
    assert [line[0] for line in lines_of("A thousand interim looks")[2:]] == [*simulate.LOOKS]


def test_the_page_keeps_its_promises() -> None:
    sets = simulate.SETS
    for value, lengths, dialogues, *shares in lines_of("Coverage of 95% intervals\n")[2:]:
        if value in TARGETS and lengths == "unequal" and int(dialogues) >= 20:
            for covered in map(float, shares):
                assert 92 <= covered <= 97, (value, dialogues)
    for difficulty, _, tasks, *shares in lines_of("Coverage of 95% intervals of pass^k")[2:]:
        assert min(map(float, shares)) >= 95 - 100 * chance(0.95, sets["trials"]), (difficulty, tasks)
    for value, _, dialogues, *shares in lines_of("Differences found at 5%")[2:]:
        assert max(map(float, shares)) <= 6 + 100 * chance(0.06, sets["size"]), (value, dialogues)
    for _, _, systems, left_out in lines_of("Equal systems that are called worse than the best")[2:]:
        assert float(left_out) <= 5 + 100 * chance(0.05, sets["best"]), systems
    for *_, by_randomization in lines_of("Differences of KL divergence")[2:]:
        assert by_randomization == "–", "it is not tested"
    for value, _, dialogues, *shares in lines_of("Detectable differences")[2:]:
        if value == "mean" and int(dialogues) >= 20:
            for found in map(float, shares):
                assert found == pytest.approx(80, abs=5 + 100 * chance(0.8, sets["power"])), dialogues


def test_the_page_says_how_it_was_made() -> None:
    assert "`python tools/simulate.py --seed 1`" in PAGE
    for number in simulate.SETS.values():
        assert f"\n{number} data sets per case.\n" in PAGE
