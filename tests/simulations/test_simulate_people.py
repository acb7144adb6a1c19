"""Estimates of people's opinion cover it, and are as narrow as theory says: on data with a known truth.

`tools/simulate_people.py` has the simulations, and docs/people.md its tables. What runs with every commit is small and
has a fixed seed; `pytest -m slow` runs what the tables are made of.
"""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from tools.simulate_people import (
    CORRELATIONS,
    DESIGNS,
    KINDS,
    RATED_SETS,
    TARGETS,
    Found,
    by_dialogue,
    coverage,
    formula,
    judged,
    looks,
    of_ratings,
    ratio,
)

from dialeval.analysis.prediction_powered import Target
from dialeval.data.rows.ratings import read_ratings
from simulations.test_simulations import chance

PAGE = (Path(__file__).parents[2] / "docs" / "people.md").read_text(encoding="utf-8")
RATINGS = Path(__file__).parents[3] / "shared" / "data" / "ratings"
ENOUGH = tuple(design for design in DESIGNS if design != "dialogues")
"""Designs with ratings of many dialogues; 13 whole ones are few, and a warning says so."""


def covered(found: Found, column: int = 0) -> float:
    return float(np.mean([each[column] for each in found]))


@pytest.mark.parametrize("of", TARGETS)
def test_intervals_cover(of: Target) -> None:
    found = [each for design in DESIGNS for r in (0.0, 0.6) for each in coverage(range(20), design, r, of)]
    assert covered(found) >= 0.95 - chance(0.95, len(found))
    assert covered(found, 1) >= 0.95 - chance(0.95, len(found))


@pytest.mark.parametrize("r", CORRELATIONS)
def test_widths_are_those_of_the_formula(r: float) -> None:
    for of in TARGETS:
        assert ratio(coverage(range(100), "alone", r, of)) == pytest.approx(formula(r, of=of), rel=0.03)


def test_rows_that_are_taken_for_dialogues_would_be_noticed() -> None:
    """The simulations see a fault: of other dialogues, the interval for just this run covers too little."""
    of_run = [coverage([seed], "plain", 0.9, "run")[0] for seed in range(30)]
    of_dialogues = [coverage([seed], "plain", 0.9, "dialogues")[0] for seed in range(30)]
    assert np.mean([one[2] / other[2] for one, other in zip(of_run, of_dialogues, strict=True)]) < 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_looks(kind: str) -> None:
    missed, ordinary = looks(range(20 if kind == "yes/no" else 100), kind)
    assert np.mean(missed) <= 0.05 + chance(0.05, len(missed))
    assert np.mean(ordinary) > 0.2


def tables() -> dict[str, list[list[str]]]:
    """The tables of the page by the first words of their titles."""
    found = {}
    for title, text in re.findall(r"^### (.*?)\n\n((?:\|.*\n)+)", PAGE, re.MULTILINE):
        rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines()]
        found[title.split(",")[0]] = rows[2:]
    return found


def test_the_page_says_what_is_promised() -> None:
    made = tables()
    rows = made["Coverage of 95% intervals"]
    assert len(rows) == len(TARGETS) * len(DESIGNS) * len(CORRELATIONS)
    for _, design, _, covers, alone, width, theory in rows:
        if design in ENOUGH:
            assert 93 - 1.5 <= float(covers) <= 97 + 1.5, design
            assert 93 - 1.5 <= float(alone) <= 97 + 1.5, design
        if theory != "–":
            assert float(width) == pytest.approx(float(theory), rel=0.03)
    shares = [float(row[3]) for row in rows if row[1] in ENOUGH]
    assert 94 <= np.mean(shares) <= 96
    assert {row[0] for row in made["Sets that people rated"]} == set(RATED_SETS)
    assert all(float(row[3]) >= 93 - 1.5 for row in made["Sets that people rated"])
    assert all(float(row[2]) <= 5 for row in made["A thousand looks"])


@pytest.mark.slow
@pytest.mark.parametrize("of", TARGETS)
@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("r", CORRELATIONS)
def test_coverage_of_every_case(design: str, r: float, of: Target) -> None:
    found = coverage(range(400), design, r, of)
    few = design == "dialogues"
    assert (0.91 if few else 0.93) - chance(0.95, 400) / 3 <= covered(found) <= 0.97 + chance(0.95, 400) / 3
    if design == "alone":
        assert ratio(found) == pytest.approx(formula(r, of=of), rel=0.03)
    else:
        assert ratio(found) <= (1.1 if few else 1.02)


@pytest.mark.slow
@pytest.mark.parametrize("name", RATED_SETS)
def test_sets_that_people_rated(name: str) -> None:
    if not RATINGS.exists():
        pytest.skip("needs the rated sets")
    ratings = read_ratings(RATINGS / f"{name}.jsonl.gz")
    found = of_ratings(*by_dialogue(ratings, judged(ratings)), range(500))
    assert 0.93 - chance(0.95, 500) / 3 <= covered(found) <= 0.97 + chance(0.95, 500) / 3
    assert ratio(found) < 1.01
