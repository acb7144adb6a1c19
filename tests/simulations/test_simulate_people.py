"""Estimates of people's opinion cover it, and are as narrow as theory says: on data with a known truth.

`tools/simulate_people.py` has the simulations, and docs/simulation-tables.md its tables.
What runs with every commit is small and
has a fixed seed; `pytest -m slow` runs what the tables are made of.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tools.simulate_people import (
    ANSWERS,
    COMPARED_DIALOGUES,
    COPULA_CORRELATIONS,
    CORRELATIONS,
    DEALT,
    DESIGNS,
    HEAVY,
    KINDS,
    MARGINALS,
    RANKED,
    RATED_DIALOGUES,
    RATED_SETS,
    RATERS,
    SHARES,
    TARGETS,
    Found,
    agreement_coverage,
    by_dialogue,
    ceiling_coverage,
    coverage,
    formula,
    judged,
    looks,
    of_ratings,
    rank_coverage,
    rater_coverage,
    ratio,
    share_coverage,
    starred,
    system_coverage,
    told_apart,
)

from dialeval.io.ratings import read_ratings
from dialeval.stats.prediction_powered import Target
from simulations.test_simulations import chance

PAGE = (Path(__file__).parents[2] / "docs" / "simulation-tables.md").read_text(encoding="utf-8")
RATINGS = Path(__file__).parents[3] / "shared" / "data" / "ratings"
ENOUGH = tuple(design for design in DESIGNS if design != "dialogues")
"""Designs with ratings of many dialogues; 13 whole ones are few, and a warning says so."""


def covered(found: Found, column: int = 0) -> float:
    return float(np.mean([each[column] for each in found]))


def test_intervals_hold_for_other_systems_and_raters() -> None:
    assert np.mean(system_coverage(range(60), 0.0, 6)) >= 0.95 - chance(0.95, 60)
    assert np.mean(told_apart(range(60), 8, 0.0, 0.5, raters="random")) <= 0.1
    assert np.mean(told_apart(range(60), 8, 0.0, 0.5)) > 0.1, "these raters may prefer one of them"
    for covers in ceiling_coverage(range(60), 40, 3, 2.0):
        assert np.mean(covers) >= 0.85


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
    """The simulations see a problem: of other dialogues, the interval for just this run covers too little."""
    of_run = [coverage([seed], "plain", 0.9, "run")[0] for seed in range(30)]
    of_dialogues = [coverage([seed], "plain", 0.9, "dialogues")[0] for seed in range(30)]
    assert np.mean([one[2] / other[2] for one, other in zip(of_run, of_dialogues, strict=True)]) < 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_a_thousand_looks(kind: str) -> None:
    missed, ordinary = looks(range(20 if kind == "yes/no" else 100), kind)
    assert np.mean(missed) <= 0.05 + chance(0.05, len(missed))
    assert np.mean(ordinary) > 0.2


@pytest.mark.parametrize("of", TARGETS)
def test_shares_near_their_end_are_covered(of: Target) -> None:
    """Intervals of 40 answers covered 31% at a share of 99% before."""
    for yes in (0.97, 0.99):
        found, differences = share_coverage(range(40), yes, 40, of)
        for hits in ([each[0] for each in found], [each[1] for each in found], differences):
            assert np.mean(hits) >= 0.95 - chance(0.95, len(hits))


def test_other_raters_are_covered() -> None:
    for design in DEALT:
        fixed, fixed_differences = rater_coverage(range(30), design, 5, "fixed")
        random, differences = rater_coverage(range(30), design, 5, "random")
        assert np.mean(fixed) < 0.9
        for hits in (random, fixed_differences, differences):
            assert np.mean(hits) >= 0.95 - chance(0.95, len(hits))


@pytest.mark.parametrize(("kind", "quality"), RANKED[:2])
def test_rankings_of_ten_dialogues_are_covered(kind: str, quality: tuple[float, ...]) -> None:
    """Percentiles of a bootstrap covered 86 to 90% before."""
    for hits in rank_coverage(range(120), kind, quality, 10)[:2]:
        assert np.mean(hits) >= 0.95 - chance(0.95, len(hits) // 3)


def test_correlations_are_covered_or_warned_about() -> None:
    for marginal in ("stars", "pareto"):
        covered, warned = agreement_coverage(range(60), marginal, 0.8, 100, 1)
        pearson, *ranks = zip(*covered, strict=True)
        for hits in (*ranks, *([] if marginal == "pareto" else [pearson])):
            assert np.mean(hits) >= 0.95 - chance(0.95, len(hits))
        assert np.mean(warned) > 0.85 if marginal == "pareto" else not any(warned)


def test_stars_of_unrelated_metrics_are_rare() -> None:
    corrected, plain = starred(range(60), 30, 1)
    assert np.mean(corrected) <= 0.05 + chance(0.05, len(corrected))
    assert np.mean(plain) > 0.1


def tables() -> dict[str, list[list[str]]]:
    """The tables of the page by their titles."""
    found = {}
    for part in PAGE.split("\n### ")[1:]:
        lines = [line for line in part.splitlines() if line.startswith("|")]
        found[part.partition("\n")[0]] = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]
    return found


def test_the_page_says_what_is_promised() -> None:
    made = tables()
    rows = made["Estimates"]
    assert len(rows) == len(TARGETS) * len(DESIGNS) * len(CORRELATIONS)
    for _, design, _, covers, alone, width, theory in rows:
        if design in ENOUGH:
            assert 93 - 1.5 <= float(covers) <= 97 + 1.5, design
            assert 93 - 1.5 <= float(alone) <= 97 + 1.5, design
        if theory != "–":
            assert float(width) == pytest.approx(float(theory), rel=0.03)
    shares = [float(row[3]) for row in rows if row[1] in ENOUGH]
    assert 94 <= np.mean(shares) <= 96
    answers = made["Yes/no answers"]
    assert len(answers) == len(TARGETS) * len(SHARES) * len(ANSWERS)
    assert all(float(cell) >= 93.5 for row in answers for cell in row[3:])
    raters = made["Raters"]
    assert len(raters) == len(DEALT) * len(RATERS)
    assert all(float(cell) >= 92.5 for row in raters for cell in (row[3], *row[4:]) if cell != "–")
    ranked = made["Rankings"]
    assert len(ranked) == len(RANKED) * len(COMPARED_DIALOGUES)
    assert all(float(cell) >= 93.5 for row in ranked for cell in row[4:6])
    assert all(float(row[6]) <= 5 + 1.5 for row in ranked if row[6] != "–")
    agreed = made["Agreement"]
    assert len(agreed) == len(MARGINALS) * len(COPULA_CORRELATIONS) * len(RATED_DIALOGUES)
    assert all(float(cell) >= 92.5 for row in agreed for cell in row[4:6])
    assert all(float(row[3]) >= 92.5 for row in agreed if row[0] not in HEAVY)
    assert all(float(row[6]) >= 60 for row in agreed if row[0] in HEAVY)
    assert all(float(row[1]) <= 5 for row in made["Unrelated metrics"])
    assert {row[0] for row in made["Public data sets"]} == set(RATED_SETS)
    assert all(float(row[3]) >= 93 - 1.5 for row in made["Public data sets"])
    assert all(float(row[2]) <= 5 for row in made["Interim looks"])


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
