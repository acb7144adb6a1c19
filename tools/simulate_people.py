"""Print the tables of docs/people.md: how often estimates of people's opinion cover it, and what a judge is worth.

    python tools/simulate_people.py [--sets NUMBER] [--seed 1] [--only coverage,ratings,looks] [--ratings FOLDER]

`coverage`: data sets are drawn from a distribution whose truth is known. Dialogues have one to thirty turns, which
resemble each other (three tenths of the variance lie between dialogues); a judge has a correlation with people. Rows
are drawn as `dialeval.draw` draws them in each design, and estimated as by `dialeval.estimate`, without the files in
between. `alone` are rows that stand alone, for which the formula of the width holds: sqrt(1 - r^2 (1 - n / N)).

`ratings`: sets that people did rate. The mean of their ratings of all rows is the truth; a hundred are drawn, and the
shipped judge does the rest. `looks`: how often a confidence sequence misses at one of a thousand looks.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.analysis.prediction_powered import RatedSystem, Target, powered
from dialeval.analysis.sampling import allocated, inclusion, systematic, unsureness
from dialeval.analysis.sequences import FIRST, sequence
from dialeval.core.arrays import Floats, Ints
from dialeval.data.rows.ratings import OVERALL, Ratings, read_ratings

SETS = {"coverage": 500, "ratings": 500, "looks": 500}
"""Data sets of every case, unless another number is given."""
BETWEEN = 0.3
"""The share of the variance that lies between dialogues."""
MEAN = 3.0
CORRELATIONS = (0.0, 0.3, 0.6, 0.9)
DESIGNS = ("plain", "strata", "unsure", "dialogues", "alone")
TARGETS: tuple[Target, ...] = ("dialogues", "run")
DRAWN = 200
DIALOGUES = 120
ALONE = 1000
RATED = 100
RATED_SETS = (
    *("abc_eval", "conture", "convai2_thumbs", "engage_dailydialog", "grade_convai2", "grade_empathetic"),
    *("gupta_dailydialog", "humod_test", "llmeval_dailydialog", "usr_topicalchat", "zhao_dailydialog"),
)
"""Sets of up to a few thousand single replies."""


def simulated(rng: np.random.Generator, lengths: Ints, r: float) -> tuple[Floats, Floats]:
    """What people say of every row, and a judge whose correlation with it is r."""
    rows = int(lengths.sum())

    def values() -> Floats:
        shared = np.repeat(rng.normal(size=len(lengths)), lengths)
        both: Floats = math.sqrt(BETWEEN) * shared + math.sqrt(1 - BETWEEN) * rng.normal(size=rows)
        return both

    people = values()
    judge: Floats = r * people + math.sqrt(1 - r * r) * values()
    return MEAN + people, judge


def rated(rng: np.random.Generator, design: str, lengths: Ints, people: Floats, judge: Floats, n: int) -> RatedSystem:
    """The rows of a system of which about n were drawn and rated."""
    rows = len(people)
    dialogue = np.repeat(np.arange(len(lengths)), lengths)
    unit = dialogue if design == "dialogues" else np.arange(rows)
    units = int(unit[-1]) + 1
    sizes = unsureness(judge) if design == "unsure" else np.ones(units)
    stratum = np.zeros(units, np.int64)
    if design == "strata":
        stratum = np.searchsorted(np.quantile(judge, [0.25, 0.5, 0.75]), judge)
    numbers = allocated(np.bincount(stratum, sizes).astype(np.float64), np.bincount(stratum), round(n * units / rows))
    probability, taken = np.zeros(units), np.zeros(units, np.bool_)
    for code, number in enumerate(numbers.tolist()):
        own = np.flatnonzero(stratum == code)
        probability[own] = inclusion(sizes[own], number)
        taken[own] = systematic(probability[own], rng)
    said = np.where(taken[unit], people, np.nan)
    return RatedSystem(said, judge[:, None], probability[unit], stratum[unit], unit, dialogue)


Found = list[tuple[bool, bool, float, float]]
"""Of each data set: whether the interval covered, whether that of ratings alone did, both standard errors."""


def coverage(seeds: Iterable[int], design: str, r: float, of: Target, n: int = DRAWN) -> Found:
    """What estimates do where the truth is known."""
    found = []
    for seed in seeds:
        rng = np.random.default_rng([seed, round(100 * r)])
        alone = design == "alone"
        lengths = np.ones(ALONE, np.int64) if alone else rng.integers(1, 31, size=DIALOGUES)
        people, judge = simulated(rng, lengths, r)
        figure = powered(rated(rng, design, lengths, people, judge, n), target=of)
        found.append(_hit(figure, MEAN if of == "dialogues" else float(people.mean())))
    return found


def _hit(figure: Any, truth: float) -> tuple[bool, bool, float, float]:
    (low, high), (alone_low, alone_high) = figure.interval, figure.alone_interval
    return low <= truth <= high, alone_low <= truth <= alone_high, figure.error, figure.alone_error


def ratio(found: Found) -> float:
    """How wide intervals are against those of ratings alone, over all data sets."""
    errors = np.array([each[2:] for each in found])
    return float(np.sqrt((errors[:, 0] ** 2).mean() / (errors[:, 1] ** 2).mean()))


def formula(r: float, n: int = DRAWN, rows: int = ALONE, of: Target = "dialogues") -> float:
    """The width against ratings alone, as theory has it for rows that stand alone."""
    return math.sqrt(1 - r * r * (1 - n / rows)) if of == "dialogues" else math.sqrt(1 - r * r)


def by_dialogue(ratings: Ratings, judge: Floats) -> tuple[Ints, Floats, Floats]:
    """The lengths of dialogues, what people said and what the judge says; rows without a rating are left out."""
    values = ratings.values[OVERALL]
    known = np.flatnonzero(~np.isnan(values) & ~np.isnan(judge))
    _, codes = np.unique(np.array(ratings.dialogues, object)[known], return_inverse=True)
    order = known[np.argsort(codes.ravel(), kind="stable")]
    return np.bincount(codes.ravel()).astype(np.int64), values[order], judge[order]


def judged(ratings: Ratings) -> Floats:
    """What the shipped judge says of every rated row."""
    from dialeval.analysis.matching import score_ratings
    from dialeval.engine.resources import Resources

    rows: Floats = score_ratings(ratings, OVERALL, Resources(None, None, None), ["judge"]).metrics["judge"]
    return rows


def of_ratings(lengths: Ints, people: Floats, judge: Floats, seeds: Iterable[int], of: Target = "run") -> Found:
    """What estimates of a rated set do with a hundred of its ratings."""
    truth = float(people.mean())
    systems = (rated(np.random.default_rng(seed), "plain", lengths, people, judge, RATED) for seed in seeds)
    return [_hit(powered(system, target=of), truth) for system in systems]


def looks(seeds: Iterable[int], kind: str, number: int = 1000) -> tuple[list[bool], list[bool]]:
    """Whether a sequence, and an ordinary interval, miss the truth at one of so many looks."""
    missed, ordinary = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        values, bounds = _differences(rng, kind, number)
        low, high, _ = sequence(values, bounds, 0.05)
        missed.append(bool(((low > 0) | (high < 0)).any()))
        times = np.arange(1, number + 1)
        means = np.cumsum(values) / times
        spread = np.sqrt(np.maximum(np.cumsum(values**2) / times - means**2, 0))
        ordinary.append(bool((np.abs(means) > 1.96 * spread / np.sqrt(times))[FIRST:].any()))
    return missed, ordinary


def _differences(rng: np.random.Generator, kind: str, number: int) -> tuple[Floats, tuple[float, float]]:
    if kind == "yes/no":
        return rng.choice([-1.0, 0.0, 1.0], p=[0.15, 0.7, 0.15], size=number), (0.0, 1.0)
    if kind == "normal":
        return rng.normal(size=number), (-math.inf, math.inf)
    return rng.exponential(size=number) - 1, (-math.inf, math.inf)


KINDS = ("yes/no", "normal", "skewed")


def share(hits: Iterable[bool]) -> str:
    """Hits in percent."""
    return f"{100 * float(np.mean(list(hits))):.1f}"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def coverage_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of coverage."""
    for of in TARGETS:
        for design in DESIGNS:
            for r in CORRELATIONS:
                found = coverage(seeds, design, r, of)
                covered, alone = (share(bool(each[column]) for each in found) for column in (0, 1))
                theory = f"{formula(r, of=of):.3f}" if design == "alone" else "–"
                yield [of, design, r, covered, alone, f"{ratio(found):.3f}", theory]


def ratings_lines(seeds: range, folder: Path) -> Iterator[Sequence[object]]:
    """The lines of the table of rated sets."""
    for name in RATED_SETS:
        ratings = read_ratings(folder / f"{name}.jsonl.gz")
        lengths, people, judge = by_dialogue(ratings, judged(ratings))
        found = of_ratings(lengths, people, judge, seeds)
        r = float(np.corrcoef(judge, people)[0, 1])
        covered, alone = (share(bool(each[column]) for each in found) for column in (0, 1))
        worth = 1 / (1 / len(people) + ratio(found) ** 2 * (1 / RATED - 1 / len(people)))
        yield [name, len(people), f"{r:.2f}", covered, alone, f"{ratio(found):.3f}", f"{worth:.0f}"]


def looks_lines(seeds: range) -> Iterator[Sequence[object]]:
    """The lines of the table of looks."""
    for kind in KINDS:
        missed, ordinary = looks(seeds, kind)
        yield [kind, "betting" if kind == "yes/no" else "asymptotic", share(missed), share(ordinary)]


def table_named(name: str, sets: int, seed: int, folder: Path) -> str:
    """A table with its title."""
    seeds = range(seed * 10**6, seed * 10**6 + sets)
    if name == "coverage":
        head = ["of", "design", "r", "covers", "alone covers", "width", "formula"]
        title, table = f"Coverage of 95% intervals, {sets} data sets a case", markdown(head, coverage_lines(seeds))
    elif name == "ratings":
        head = ["set", "rows", "r", "covers", "alone covers", "width", "100 ratings are worth"]
        title = f"Sets that people rated, {RATED} ratings drawn {sets} times"
        table = markdown(head, ratings_lines(seeds, folder))
    else:
        head = ["differences", "sequence", "misses", "ordinary interval misses"]
        title, table = f"A thousand looks, {sets} data sets a case", markdown(head, looks_lines(seeds))
    return f"### {title}\n\n{table}"


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, help=f"data sets of every case, instead of {SETS}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default=",".join(SETS), help="some of the tables, by commas")
    parser.add_argument("--ratings", type=Path, default=Path("../shared/data/ratings"), help="folder of rated sets")
    given = parser.parse_args()
    for name in given.only.split(","):
        print(table_named(name, given.sets or SETS[name], given.seed, given.ratings), flush=True)


if __name__ == "__main__":
    main()
