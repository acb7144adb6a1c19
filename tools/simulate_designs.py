"""Simulate comparisons of independent logs: false positive rates, coverage, and the bias of an unequal case mix.

    python tools/simulate_designs.py --seed 1 [--replicates 1000]

prints the tables of docs/simulation-tables.md, "Independent logs". Each dialogue has a random effect, so that
their turns are alike; the truth is known. Logs of `10 and 30` dialogues have different spreads as well (1 and 2).
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from dialeval.analysis.difference import Difference, Settings
from dialeval.analysis.unpaired import compare_unpaired
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.fold import ANY_NUMBER, Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.engine.evaluate import evaluate
from dialeval.stats.intervals import DEFAULT_LEVEL

SIZES = ((10, 10), (10, 30), (30, 30), (200, 200))
TURNS = ("one", "five", "1 to 10", "few long")
VALUES = ("normal", "lognormal", "zero-inflated", "yes/no")
ALPHA = 0.05


class Rates(NamedTuple):
    """How often a difference was found, and how often the interval has the truth."""

    found: float
    covered: float

    def __str__(self) -> str:
        return f"{100 * self.found:.1f} / {100 * self.covered:.1f}"


def draw_turns(rng: np.random.Generator, dialogues: int, turns: str) -> Ints:
    """Draw the number of turns of each dialogue."""
    if turns == "1 to 10":
        return rng.integers(1, 11, dialogues)
    if turns == "few long":
        return np.where(rng.random(dialogues) < 0.1, 30, 3)
    return np.full(dialogues, 1 if turns == "one" else 5)


def draw_values(rng: np.random.Generator, turns: Ints, kind: str, spread: float) -> Floats:
    """Draw a value for each row, with mean 0 (numbers) or 0.8 (yes/no)."""
    rows = int(turns.sum())
    base = np.sqrt(0.4) * np.repeat(rng.normal(size=len(turns)), turns) + np.sqrt(0.6) * rng.normal(size=rows)
    there = np.repeat(rng.random(len(turns)) < 0.3, turns)
    values: dict[str, Floats] = {
        "normal": spread * base,
        "lognormal": spread * (np.exp(base) - np.exp(0.5)),
        "zero-inflated": spread * (np.where(there, 2 + base, 0.0) - 0.6),
        "yes/no": (base < 0.8416).astype(np.float64),
    }
    return values[kind]


def make_result(values: Floats, turns: Ints, key: str) -> Result:
    """Make a result with known values."""
    estimate = Estimate(float(values.mean()), 0.0, len(values), len(values), scores=values, signature=Signature.of(key))
    return Result({key: estimate}, table=RowTable(offsets_of(turns)))


def compare_logs(*given: Any) -> list[Difference]:
    """Compare two logs as `dialeval.compare` does."""
    return [tested.settle(ANY_NUMBER, DEFAULT_LEVEL, 2).row for tested in compare_unpaired(*given)]


def simulate_means(cell: tuple[str, str, tuple[int, int]], replicates: int, seed: int) -> Rates:
    """Compare two logs of equal means again and again."""
    kind, turns, sizes = cell
    rng = np.random.default_rng([seed, VALUES.index(kind), TURNS.index(turns), SIZES.index(sizes)])
    key = "accuracy" if kind == "yes/no" else "length"
    found = covered = 0
    for _ in range(replicates):
        logs = []
        for size, spread in zip(sizes, (1.0, 2.0 if sizes[0] != sizes[1] else 1.0), strict=True):
            numbers = draw_turns(rng, size, turns)
            logs.append(make_result(draw_values(rng, numbers, kind, spread), numbers, key))
        (row,) = compare_logs("a", "b", logs[0], logs[1], [key], Settings(trials=999))
        found += row.p < ALPHA
        covered += row.interval is not None and row.interval[0] <= 0 <= row.interval[1]
    return Rates(found / replicates, covered / replicates)


def simulate_texts(cell: tuple[str, tuple[int, int]], replicates: int, seed: int) -> Rates:
    """Compare corpus metrics of two logs whose texts are drawn alike."""
    key, sizes = cell
    rng = np.random.default_rng([seed, 99, SIZES.index(sizes)])
    weights = 1 / np.arange(1, 201)
    found = covered = 0
    for _ in range(replicates):
        runs = []
        for name, size in zip("ab", sizes, strict=True):
            turns = draw_turns(rng, size, "1 to 10")
            rows = []
            for dialogue, count in enumerate(turns.tolist()):
                for _turn in range(count):
                    words = rng.choice(200, 12, p=weights / weights.sum())
                    kept = np.where(rng.random(12) < 0.5, words, rng.choice(200, 12))
                    said, given = (" ".join(f"w{word}" for word in each) for each in (kept, words))
                    rows.append({"dialog_id": f"{name}{dialogue}", "response": said, "reference": given})
            runs.append(evaluate({name: rows}, metrics=key)[name])
        (row,) = compare_logs("a", "b", runs[0], runs[1], list(runs[0]), Settings(resamples=500))
        found += row.p < ALPHA
        covered += row.interval is not None and row.interval[0] <= 0 <= row.interval[1]
    return Rates(found / replicates, covered / replicates)


def simulate_mix(sizes: tuple[int, int], replicates: int, seed: int) -> tuple[float, float, Rates, Rates]:
    """Compare logs with other mixes of three topics of other means; the true difference within each topic is 0.2."""
    rng = np.random.default_rng([seed, 7, SIZES.index(sizes)])
    means, mixes = np.array([0.0, 1.0, 3.0]), ([0.6, 0.3, 0.1], [0.2, 0.3, 0.5])
    rows: list[Difference] = []
    for _ in range(replicates):
        logs, strata = [], []
        for at, size in enumerate(sizes):
            turns = draw_turns(rng, size, "1 to 10")
            topics = rng.choice(3, size, p=mixes[at])
            values = draw_values(rng, turns, "normal", 1.0) + np.repeat(means[topics], turns) + 0.2 * at
            logs.append(make_result(values, turns, "length"))
            strata.append([str(topic) for topic in np.repeat(topics, turns)])
        settings = Settings(trials=99)
        rows += compare_logs("a", "b", logs[0], logs[1], ["length"], settings, (strata[0], strata[1]))
    known = [row for row in rows if row.interval is not None and row.unadjusted_interval is not None]
    plain = [
        row.unadjusted_interval[0] <= 0.2 <= row.unadjusted_interval[1] for row in known if row.unadjusted_interval
    ]
    adjusted = [row.interval[0] <= 0.2 <= row.interval[1] for row in known if row.interval]
    bias = [float(np.mean([value - 0.2 for value in values])) for values in _two(known)]
    return bias[0], bias[1], Rates(0.0, float(np.mean(plain))), Rates(0.0, float(np.mean(adjusted)))


def _two(rows: list[Difference]) -> tuple[list[float], list[float]]:
    return [row.unadjusted for row in rows], [row.difference for row in rows]


def tables(replicates: int, seed: int) -> Iterator[str]:
    """Yield the lines of all tables."""
    heads = [f"{first} and {second}" for first, second in SIZES]
    with ProcessPoolExecutor() as pool:
        cells = [(kind, turns, sizes) for kind in VALUES for turns in TURNS for sizes in SIZES]
        rates = dict(
            zip(cells, pool.map(partial(simulate_means, replicates=replicates, seed=seed), cells), strict=True)
        )
        yield "False positives at 5% / coverage of 95% intervals, in %, of means:\n"
        yield f"| values | turns | {' | '.join(heads)} |\n|---|---|{'---|' * len(heads)}"
        for kind in VALUES:
            for turns in TURNS:
                yield f"| {kind} | {turns} | {' | '.join(str(rates[kind, turns, sizes]) for sizes in SIZES)} |"
        texts = [(key, sizes) for key in ("bleu(per=corpus)", "distinct-2") for sizes in SIZES[:3]]
        fewer = max(1, replicates // 4)
        of_texts = partial(simulate_texts, replicates=fewer, seed=seed)
        found = dict(zip(texts, pool.map(of_texts, texts), strict=True))
        yield f"\nThe same of corpus metrics ({fewer} replicates):\n"
        yield f"| metric | {' | '.join(heads[:3])} |\n|---|{'---|' * 3}"
        for key in ("bleu(per=corpus)", "distinct-2"):
            yield f"| {key} | {' | '.join(str(found[key, sizes]) for sizes in SIZES[:3])} |"
        mixed = list(pool.map(partial(simulate_mix, replicates=replicates, seed=seed), SIZES[1:]))
        yield "\nLogs with other mixes of topics (true difference 0.2), without and with adjustment:\n"
        yield "| dialogues | bias, unadjusted | bias, adjusted | coverage, unadjusted | coverage, adjusted |"
        yield "|---|---|---|---|---|"
        for head, (plain, adjusted, before, after) in zip(heads[1:], mixed, strict=True):
            covered = f"{100 * before.covered:.1f} | {100 * after.covered:.1f}"
            yield f"| {head} | {plain:+.2f} | {adjusted:+.2f} | {covered} |"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--replicates", type=int, default=1000)
    arguments = parser.parse_args()
    for line in tables(arguments.replicates, arguments.seed):
        print(line, flush=True)


if __name__ == "__main__":
    main()
