"""Print the tables of docs/simulation-tables.md: coverage of intervals, error rates and power of tests.

    python tools/simulate.py [--sets NUMBER] [--seed 1] [--processes 2] [--only coverage,kinds,size,power,heavy,...]

Data sets are drawn from distributions whose truth is known. They go through `dialeval.evaluate`, `dialeval.compare` and
`dialeval.with_intervals`, as any user's do. A dialogue has one to thirty turns (`unequal`), a single row (`rows`), or
most often few and sometimes up to sixty (`very unequal`); its turns resemble each other. Every row carries numbers for
each of these, and a metric reads them:

    mean     normal, twice the variance of a turn within its dialogue (truth 0)
    skewed   an exponential of the dialogue times a gamma of the turn (truth 1)
    yes/no   0 or 1, with a chance of 1 that differs by dialogue (truth 0.8)
    F1       counts of a detector, in the formula of breakdown detection
    BLEU     counts of n-grams, in the formula of corpus BLEU

`kinds` are distinct-1 and distinct-2 of texts: words by Zipf's law, and canned replies. Their truth is the mean over
all data sets.

For tests, two systems answer the same dialogues. They are alike (`size`), so that a test at 5% should find a difference
in at most 5% of data sets. For `power` one data set says which difference it could detect; in the next one the second
system is better by just that, and it should be found in 80%.

Other tables have generators of their own, on which no method was developed:

    heavy       rows with rare large values, or with rare yes
    trials      pass^k of tasks of several difficulties
    sorted      more than 1,000 replies, sorted and shuffled
    kl          KL divergence of two systems that are alike
    best        3, 6 and 10 systems that are alike: is one of them called worse than the best?
    sequential  a thousand interim looks at a difference of 0
"""

from __future__ import annotations

import argparse
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from typing import Any, Literal

import numpy as np
import pyarrow as pa

import dialeval
from dialeval.analysis.comparison import find_best_systems
from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.metrics.bleu import NlgBleu
from dialeval.metrics.breakdown import BreakdownDetection
from dialeval.metrics.counting import Flags
from dialeval.metrics.registry import registry
from dialeval.stats.independent import ClusterSums
from dialeval.stats.intervals import two_sided_t
from dialeval.stats.sequences import confidence_sequence

RESAMPLES = 600
"""Enough for what is asked here: a share of data sets."""
METHODS = ("default", "studentized")
TEST = "randomization"

Lengths = Literal["unequal", "very unequal", "rows"]
_MEAN, _SKEWED, _YES, _F1, _BLEU = slice(0, 1), slice(1, 2), slice(2, 3), slice(3, 6), slice(6, 16)
"""Where the numbers of each metric stand in a row."""


def numbers(batch: Batch) -> Floats:
    """The numbers of every row, a line each."""
    texts = batch.texts(inputs.RESPONSE)

    def parsed() -> Floats:
        return np.array(" ".join(texts).split(), np.float64).reshape(len(texts), -1)

    return batch.derive("simulated numbers", parsed)


@dataclass(frozen=True)
class Mean(RowMetric):
    """The first number of a row."""

    family = "simulated-mean"
    presets = {"simulated-mean": {}}
    needs = frozenset({inputs.RESPONSE})

    def score(self, batch: Batch) -> Floats:
        return numbers(batch)[:, _MEAN].ravel()


@dataclass(frozen=True)
class Skewed(RowMetric):
    """The second one, which is never negative."""

    family = "simulated-skewed"
    presets = {"simulated-skewed": {}}
    needs = frozenset({inputs.RESPONSE})
    bounds = (0.0, math.inf)

    def score(self, batch: Batch) -> Floats:
        return numbers(batch)[:, _SKEWED].ravel()


@dataclass(frozen=True)
class YesNo(RowMetric):
    """The third one, 0 or 1."""

    family = "simulated-yes-no"
    presets = {"simulated-yes-no": {}}
    needs = frozenset({inputs.RESPONSE})
    bounds = (0.0, 1.0)

    def score(self, batch: Batch) -> Floats:
        return numbers(batch)[:, _YES].ravel()


@dataclass(frozen=True)
class F1(BreakdownDetection):
    """The formula of breakdown detection over simulated counts."""

    family = "simulated-detection"
    presets = {"simulated-f1": {}}
    subject = inputs.RESPONSE
    needs = frozenset({inputs.RESPONSE})

    def __str__(self) -> str:
        return "simulated-f1"

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counts = numbers(batch)[:, _F1].astype(np.int64)
        return counts, np.ones(len(counts), np.bool_)


@dataclass(frozen=True)
class CorpusBleu(NlgBleu):
    """The formula of corpus BLEU over simulated counts."""

    family = "simulated-bleu"
    presets = {"simulated-bleu-4": {"per": "corpus"}}
    needs = frozenset({inputs.RESPONSE})

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counts = numbers(batch)[:, _BLEU].astype(np.int64)
        return counts, np.ones(len(counts), np.bool_)


@dataclass(frozen=True)
class Rated(RowMetric):
    """The first number of a row, of which more is better."""

    family = "simulated-rated"
    presets = {"simulated-rated": {}}
    needs = frozenset({inputs.RESPONSE})
    better = "higher"

    def score(self, batch: Batch) -> Floats:
        return numbers(batch)[:, _MEAN].ravel()


SIMULATED: Mapping[str, Any] = {
    "mean": Mean(),
    "skewed": Skewed(),
    "yes/no": YesNo(),
    "F1": F1(),
    "BLEU": CorpusBleu(per="corpus"),
}


def registered() -> None:
    """Make the metrics known, so that their values can be resampled."""
    for metric in (*SIMULATED.values(), Rated()):
        registry().register(type(metric))


def lengths_of(rng: np.random.Generator, dialogues: int, lengths: Lengths) -> Ints:
    """How many turns each dialogue has."""
    if lengths == "rows":
        return np.ones(dialogues, np.int64)
    if lengths == "unequal":
        return rng.integers(1, 31, size=dialogues)
    return np.minimum(60, np.ceil(rng.lognormal(1.5, 1.0, size=dialogues))).astype(np.int64)


def rows_of(rng: np.random.Generator, turns: Ints, of_dialogues: int) -> Floats:
    """The numbers of one system's rows; what is hard about a dialogue is drawn from a seed of its own."""
    shared, number = np.random.default_rng(of_dialogues), len(turns)
    rows = int(turns.sum())

    def each(values: Floats) -> Floats:
        return np.repeat(values, turns)

    mean = each(shared.normal(size=number)) + each(rng.normal(size=number)) + rng.normal(size=rows)
    skewed = each(shared.exponential(size=number)) * rng.gamma(2.0, 0.5, size=rows)
    yes = rng.random(rows) < each(shared.beta(4.0, 1.0, size=number))
    right = each(shared.beta(6.0, 4.0, size=number))
    real = rng.random(rows) < 0.5
    labeled = np.where(real, rng.random(rows) < right, rng.random(rows) < 1 - right)
    detected = np.column_stack([real & labeled, labeled, real])
    chance = each(shared.beta(6.0, 3.0, size=number))
    words = rng.integers(6, 19, size=rows)
    matches = [rng.binomial(words - n, chance ** (n + 1)) for n in range(4)]
    bleu = np.column_stack([words, words + rng.integers(-2, 4, size=rows), *matches, *(words - n for n in range(4))])
    return np.column_stack([mean, skewed, yes, detected, bleu]).astype(np.float64)


def truths() -> dict[str, float]:
    """What every value tends to with more and more dialogues."""
    powers = [math.prod((6 + i) / (9 + i) for i in range(n + 1)) for n in range(4)]  # E[p^(n+1)] of a beta
    words = 12.0
    counts = [words, words + 0.5, *(powers[n] * (words - n) for n in range(4)), *(words - n for n in range(4))]
    found, labeled, real = 0.5 * 0.6, 0.5 * 0.6 + 0.5 * 0.4, 0.5
    return {
        "mean": 0.0,
        "skewed": 1.0,
        "yes/no": 0.8,
        "F1": 2 * found / (labeled + real),
        "BLEU": float(CorpusBleu(per="corpus").formula(np.array([counts]))[0]),
    }


def table_of(turns: Ints, responses: Sequence[str]) -> Any:
    """Rows as Arrow holds them."""
    ids = np.repeat(np.arange(len(turns)), turns).astype(str)
    return pa.table({"dialog_id": ids, "response": responses})


def run_of(turns: Ints, systems: Mapping[str, Floats], names: Iterable[str] = SIMULATED) -> dialeval.Run:
    """Simulated numbers, evaluated."""
    tables = {name: table_of(turns, [" ".join(map(repr, row)) for row in of.tolist()]) for name, of in systems.items()}
    return dialeval.evaluate(
        tables, metrics=[SIMULATED[name] for name in names], execution=dialeval.Execution(threads=1)
    )


Case = tuple[str, str, int]
"""A value, the lengths of dialogues, and how many dialogues there are."""
Hits = dict[tuple[Case, str], list[bool]]
"""For every case and method (or test), whether each data set was a hit."""


def coverage(seeds: Iterable[int], dialogues: int, lengths: Lengths) -> Hits:
    """Whether each interval covers the truth."""
    registered()
    hits: Hits = defaultdict(list)
    known = truths()
    for seed in seeds:
        rng = np.random.default_rng([seed, dialogues])
        turns = lengths_of(rng, dialogues, lengths)
        run = run_of(turns, {"a": rows_of(rng, turns, seed)})
        runs = {"default": run, "studentized": dialeval.with_intervals(run, resamples=RESAMPLES, seed=seed)}
        for method, made in runs.items():
            for name, metric in SIMULATED.items():
                low, high = _interval(made["a"][metric.name])
                if not math.isnan(low):
                    hits[(name, lengths, dialogues), method].append(low <= known[name] <= high)
    return hits


def _interval(estimate: Any) -> tuple[float, float]:
    return (math.nan, math.nan) if estimate.interval is None else estimate.interval


WORDS = 1 / np.arange(1, 2001)
CANNED = [" ".join(f"c{reply}x{word}" for word in range(7)) for reply in range(40)]
OFTEN = 1 / np.arange(1, 41)


def texts_of(rng: np.random.Generator, turns: int, text: str) -> list[str]:
    """Replies of words by Zipf's law, seven of ten of them canned if they are."""
    ids = rng.choice(len(WORDS), size=(turns, 6), p=WORDS / WORDS.sum())
    replies = [" ".join(f"w{word}" for word in row) for row in ids.tolist()]
    canned = rng.choice(len(CANNED), size=turns, p=OFTEN / OFTEN.sum())
    use = (rng.random(turns) < 0.7) & (text == "canned")
    return [CANNED[number] if used else reply for number, used, reply in zip(canned, use, replies, strict=True)]


def kinds(seeds: Iterable[int], dialogues: int, text: str) -> dict[str, list[tuple[float, float, float]]]:
    """The value of distinct with its interval, in every data set."""
    found = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, dialogues])
        turns = rng.integers(1, 9, size=dialogues)
        table = table_of(turns, texts_of(rng, int(turns.sum()), text))
        run = dialeval.with_intervals(
            dialeval.evaluate({"a": table}, metrics="distinct-1,distinct-2", execution=dialeval.Execution(threads=1))
        )
        for key, estimate in run["a"].items():
            found[key].append((estimate.mean, *_interval(estimate)))
    return found


SHIFTED = ("mean", "skewed")
"""What a system can be made better in by just so much."""


def shifted_of(rng: np.random.Generator, seed: int, turns: Ints, by: Mapping[str, float]) -> dialeval.Run:
    """Two systems on the same dialogues, the second one better by these differences."""
    first, second = (rows_of(rng, turns, seed) for _ in range(2))
    second[:, _MEAN] += by.get("mean", 0.0)
    second[:, _SKEWED] += by.get("skewed", 0.0)
    return run_of(turns, {"a": first, "b": second}, SHIFTED)


def size(seeds: Iterable[int], dialogues: int, lengths: Lengths) -> Hits:
    """Whether the test finds a difference where there is none."""
    registered()
    hits: Hits = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, dialogues])
        turns = lengths_of(rng, dialogues, lengths)
        run = run_of(turns, {name: rows_of(rng, turns, seed) for name in ("a", "b")})
        for name, row in _compared(run, seed, SIMULATED):
            hits[(name, lengths, dialogues), TEST].append(row.p <= 0.05)
    return hits


def power(seeds: Iterable[int], dialogues: int, lengths: Lengths) -> Hits:
    """Whether the test finds what it said it could detect, in the next data set."""
    registered()
    hits: Hits = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, dialogues])
        turns = lengths_of(rng, dialogues, lengths)
        pilot = shifted_of(rng, seed, turns, {})
        said = {name: row.detectable for name, row in _compared(pilot, seed, SHIFTED)}
        again = lengths_of(rng, dialogues, lengths)
        known = {name: said[name] for name in SHIFTED if not math.isnan(said[name])}
        run = shifted_of(rng, seed + 10**6, again, known)
        for name, row in _compared(run, seed, known):
            hits[(name, lengths, dialogues), TEST].append(row.p <= 0.05)
    return hits


def _compared(run: dialeval.Run, seed: int, names: Iterable[str]) -> Iterator[tuple[str, Any]]:
    """The test of every value."""
    keys = {SIMULATED[name].name: name for name in names}
    if keys:
        found = dialeval.compare(run, metrics=list(keys), resamples=RESAMPLES, trials=1100, seed=seed)
        yield from ((keys[row.key], row) for row in found.differences)


def heavy_values(rng: np.random.Generator, number: int, name: str) -> tuple[str, Floats, float]:
    """Draw rows of a distribution; return the metric that reads them, the values, and their true mean."""
    if name == "lognormal":
        return "skewed", rng.lognormal(0.0, 1.3, size=number), math.exp(1.3**2 / 2)
    if name == "zero-inflated":
        return "skewed", np.where(rng.random(number) < 0.12, rng.gamma(1.5, 2.0, size=number), 0.0), 0.12 * 3.0
    if name == "Pareto":
        return "skewed", rng.pareto(2.2, size=number), 1 / 1.2
    return "yes/no", (rng.random(number) < 0.04).astype(np.float64), 0.04


def heavy(seeds: Iterable[int], rows: int, name: str) -> Hits:
    """Whether each interval covers the mean of rows with rare large values, or with rare yes."""
    registered()
    hits: Hits = defaultdict(list)
    for seed in seeds:
        metric, values, truth = heavy_values(np.random.default_rng([seed, rows, 1]), rows, name)
        run = run_of(np.ones(rows, np.int64), {"a": np.tile(values[:, None], 3)}, [metric])
        runs = {"default": run, "studentized": dialeval.with_intervals(run, resamples=RESAMPLES, seed=seed)}
        for method, made in runs.items():
            low, high = _interval(made["a"][SIMULATED[metric].name])
            hits[(name, "rows", rows), method].append(low <= truth <= high)
    return hits


DIFFICULTIES: Mapping[str, Any] = {
    "easy": lambda u: 1 - 0.4 * u**2,
    "hard": lambda u: 0.9 * u**12,
    "bimodal": lambda u: np.where(u < 0.35, 0.92, 0.06),
    "few possible": lambda u: np.where(u < 0.06, 0.85, 0.0),
    "all alike": lambda u: np.full(len(u), 0.5),
}
"""The probability that a trial of a task passes, as a function of a uniform random number."""
PASSES = (1, 2, 4)


def trials(seeds: Iterable[int], sizes: tuple[int, int], difficulty: str) -> Hits:
    """Whether the interval of pass^k covers the mean of p^k over the population of tasks."""
    tasks, tried = sizes
    chance, hits = DIFFICULTIES[difficulty], defaultdict(list)
    every = chance((np.arange(10**6) + 0.5) / 10**6)
    truth = {k: float((every**k).mean()) for k in PASSES}
    for seed in seeds:
        rng = np.random.default_rng([seed, tasks, tried])
        passed = rng.random((tasks, tried)) < chance(rng.random(tasks))[:, None]
        ids, trial = np.divmod(np.arange(tasks * tried), tried)
        rows = {"dialog_id": ids.astype(str), "trial": trial, "reward": passed.ravel().astype(float)}
        table = pa.table({**rows, "response": ["done"] * len(ids)})
        run = dialeval.evaluate(
            {"a": table}, metrics=[f"pass-hat-{k}" for k in PASSES], execution=dialeval.Execution(threads=1)
        )
        for k in PASSES:
            low, high = _interval(run["a"][f"pass-hat-{k}"])
            hits[(difficulty, f"{tried} trials", tasks), f"pass^{k}"].append(low <= truth[k] <= high)
    return hits


def ordered(seeds: Iterable[int], rows: int, order: str) -> dict[str, list[tuple[float, float, float]]]:
    """The values of replies in some order with their intervals, in every data set."""
    found = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, rows])
        replies = (rng.zipf(1.4, size=rows) % 5000).tolist()
        texts = [" ".join(f"r{reply}w{word}" for word in range(2 + reply % 9)) for reply in replies]
        texts = sorted(texts) if order == "sorted" else texts
        run = dialeval.evaluate(
            {"a": texts}, metrics="distinct-1,distinct-2,length", execution=dialeval.Execution(threads=1)
        )
        for key, estimate in dialeval.with_intervals(run, resamples=RESAMPLES, seed=seed)["a"].items():
            found[key].append((estimate.mean, *_interval(estimate)))
    return found


def divergence(seeds: Iterable[int], rows: int, words: str) -> Hits:
    """Whether the test finds a difference between the KL divergences of two systems that are alike."""
    hits: Hits = defaultdict(list)
    likely = 1 / np.arange(2, 602)
    other = likely if words == "as the references" else np.roll(1 / np.arange(30, 630), 150)
    for seed in seeds:
        rng = np.random.default_rng([seed, rows])

        def texts(chances: Floats, rng: np.random.Generator = rng) -> list[str]:
            ids = rng.choice(len(chances), size=(rows, 8), p=chances / chances.sum())
            return [" ".join(f"w{word}" for word in row) for row in ids.tolist()]

        systems = {name: texts(other) for name in ("a", "b")}
        run = dialeval.evaluate(
            systems, texts(likely), metrics="unigram-kl-div", execution=dialeval.Execution(threads=1)
        )
        found = dialeval.compare(run, resamples=RESAMPLES, trials=1100, seed=seed)
        hits[(words, "rows", rows), TEST] += [row.p <= 0.05 for row in found.differences if not math.isnan(row.p)]
    return hits


def best(seeds: Iterable[int], systems: int, _: str) -> Hits:
    """Whether one of some systems that are alike is called worse than the best one."""
    registered()
    hits: Hits = defaultdict(list)
    for seed in seeds:
        rng = np.random.default_rng([seed, systems])
        turns = rng.integers(1, 7, size=60)
        shared = np.repeat(rng.logistic(size=60), turns)
        numbers = {f"s{each}": (shared + rng.standard_t(5, size=len(shared)))[:, None] for each in range(systems)}
        tables = {name: table_of(turns, [repr(row[0]) for row in of.tolist()]) for name, of in numbers.items()}
        run = dialeval.evaluate(tables, metrics=[Rated()], execution=dialeval.Execution(threads=1))
        found = find_best_systems(run.systems, [Rated().name])
        hits[("rated", "1 to 6 turns", systems), "left out"].append(Rated().name in found.systems)
    return hits


UNBOUNDED = (-math.inf, math.inf)
LOOKS: Mapping[str, tuple[tuple[float, float], Any]] = {
    "yes/no": ((0.0, 1.0), lambda rng, n: rng.choice([-1.0, 0.0, 1.0], p=[0.25, 0.5, 0.25], size=n)),
    "deviation 0.1": ((0.0, 1.0), lambda rng, n: np.clip(0.1 * rng.normal(size=n), -1, 1)),
    "deviation 0.02": ((0.0, 1.0), lambda rng, n: 0.02 * rng.normal(size=n)),
    "rare losses": ((0.0, 1.0), lambda rng, n: np.where(rng.random(n) < 0.02, -0.98, 0.02)),
    "logistic": (UNBOUNDED, lambda rng, n: rng.logistic(size=n)),
    "Weibull 0.6": (UNBOUNDED, lambda rng, n: rng.weibull(0.6, size=n) - math.gamma(1 + 1 / 0.6)),
    "Pareto 3": (UNBOUNDED, lambda rng, n: rng.pareto(3.0, size=n) - 0.5),
    "rare losses, no bounds": (
        UNBOUNDED,
        lambda rng, n: np.where(rng.random(n) < 0.02, -49.0, 1.0) + rng.normal(size=n),
    ),
}
"""Differences with the mean 0: the bounds of the metric, and how they are drawn."""
WIDTHS = (100, 300, 1000)


def interim(seeds: Iterable[int], looks: int, name: str) -> dict[str, list[float]]:
    """For each data set whether 0 was outside at one of the looks, and the width over that of Student's interval."""
    bounds, draw = LOOKS[name]
    found: dict[str, list[float]] = defaultdict(list)
    for seed in seeds:
        values = draw(np.random.default_rng([seed, looks]), looks)
        ones = np.ones(looks)
        low, high, by = confidence_sequence(ClusterSums(0 * ones, ones), ClusterSums(values, ones), bounds, 0.05)
        found[by].append(bool(((low > 0) | (high < 0)).any()))
        for number in WIDTHS:
            ordinary = 2 * two_sided_t(0.95, number) * values[:number].std(ddof=1) / math.sqrt(number)
            if math.isfinite(high[number - 1]) and ordinary:
                found[f"width at {number}"].append(float(high[number - 1] - low[number - 1]) / ordinary)
    return found


def joined(parts: Iterable[Hits]) -> Hits:
    """The hits of all parts."""
    hits: Hits = defaultdict(list)
    for part in parts:
        for key, found in part.items():
            hits[key] += found
    return hits


COVERED: Sequence[tuple[Lengths, int]] = (
    *(("unequal", dialogues) for dialogues in (8, 10, 20, 50, 100)),
    *(("very unequal", dialogues) for dialogues in (20, 50, 100)),
    *(("rows", dialogues) for dialogues in (10, 20, 50)),
)
SIZED: Sequence[tuple[Lengths, int]] = (
    *(("unequal", dialogues) for dialogues in (8, 10, 20, 50)),
    *(("very unequal", dialogues) for dialogues in (8, 20)),
    *(("rows", dialogues) for dialogues in (8, 20)),
)
POWERED: Sequence[tuple[Lengths, int]] = tuple(("unequal", dialogues) for dialogues in (8, 10, 20, 30, 50))
SETS = {"coverage": 400, "kinds": 400, "size": 500, "power": 500}
SETS |= {"heavy": 400, "trials": 400, "variances": 400, "sorted": 400, "kl": 400, "best": 400, "sequential": 400}
"""Data sets of every case of a table, unless another number is given."""
HEAVY = tuple(
    (name, rows) for name in ("lognormal", "zero-inflated", "Pareto", "rare yes") for rows in (10, 20, 50, 200)
)
TRIED = tuple((name, sizes) for name in DIFFICULTIES for sizes in ((5, 4), (20, 8), (50, 8), (115, 4)))
SPLIT = tuple((name, sizes) for name in DIFFICULTIES for sizes in ((10, 2), (50, 4)))
ORDERED = (("shuffled", 1500), ("sorted", 1500))
DIVERGED = tuple((words, rows) for words in ("as the references", "unlike them") for rows in (50, 400))
COMPARED = (("rated", 3), ("rated", 6), ("rated", 10))
WATCHED = tuple((name, 1000) for name in LOOKS)
KINDS = tuple((text, dialogues) for text in ("Zipf", "canned") for dialogues in (10, 20, 50, 100))


SPLIT_HEAD = (
    *("tasks are", "each", "tasks", "task-variance: truth", "estimates", "trial-variance: truth", "estimates"),
    *("error of pass^1: observed", "from the variances", "difference of pass^2 covered"),
)


class Simulations:
    """All simulations with some number of data sets, from one seed, shared by some processes."""

    def __init__(self, sets: int, seed: int, processes: int) -> None:
        self.sets, self.seed, self.processes = sets, seed, processes
        self.parts = [range(start, min(start + 25, sets)) for start in range(0, sets, 25)]

    def _each(self, work: Any, cases: Iterable[tuple[Any, ...]]) -> Iterator[tuple[tuple[Any, ...], list[Any]]]:
        """What a simulation found for all parts of the seeds, case by case."""
        with ProcessPoolExecutor(self.processes, mp_context=get_context("spawn")) as pool:
            waiting = {}
            for case in cases:
                seeds = [range(self.seed * 10**7 + part.start, self.seed * 10**7 + part.stop) for part in self.parts]
                waiting[case] = [pool.submit(work, part, case[1], case[0]) for part in seeds]
            for case, parts in waiting.items():
                yield case, [part.result() for part in parts]

    def hits(self, work: Any, cases: Iterable[tuple[Any, ...]]) -> Hits:
        """The hits of a simulation over all its cases."""
        return joined(part for _, parts in self._each(work, cases) for part in parts)

    def kinds(self, work: Any, cases: Iterable[tuple[Any, ...]]) -> Iterator[tuple[str, str, int, str, str]]:
        """The text, the key, the dialogues, how often the interval covered, and its mean width."""
        for (text, dialogues), parts in self._each(work, cases):
            for key in parts[0]:
                values, low, high = np.array([line for part in parts for line in part[key]]).T
                covered = float(((low <= values.mean()) & (values.mean() <= high)).mean())
                yield text, key, dialogues, f"{100 * covered:.1f}", f"{float((high - low).mean()):.4f}"

    def variances(self) -> Iterator[list[str]]:
        """The lines of the table of the split of the variance: truth and mean estimate of each part."""
        for (difficulty, (tasks, tried)), parts in self._each(variances, SPLIT):
            every = DIFFICULTIES[difficulty]((np.arange(10**6) + 0.5) / 10**6)
            values = np.array([line for part in parts for line in part])
            _, between, within, covered = values.mean(axis=0)
            truth = every.var(), (every * (1 - every)).mean()
            errors = values[:, 0].std(), math.sqrt((between + within / tried) / tasks)
            shown = (f"{number:.4f}" for number in (truth[0], between, truth[1], within, *errors))
            yield [difficulty, f"{tried} trials", str(tasks), *shown, f"{100 * covered:.1f}"]

    def interim(self) -> Iterator[list[str]]:
        """The lines of the table of interim looks."""
        for (name, _), parts in self._each(interim, WATCHED):
            found = {key: [each for part in parts for each in part.get(key, [])] for part in parts for key in part}
            by = next(key for key in found if key in ("betting", "asymptotic"))
            widths = (found.get(f"width at {number}", []) for number in WIDTHS)
            wide = [f"{float(np.median(each)):.1f}" if len(each) > self.sets / 2 else "–" for each in widths]
            yield [name, by, share([bool(each) for each in found[by]]), *wide]


def variances(seeds: Iterable[int], sizes: tuple[int, int], difficulty: str) -> list[tuple[float, ...]]:
    """Success rate and both variances of a verdict, and whether the interval of a difference of pass^2 covers it.

    The other system passes the same tasks with nine tenths of the chance.
    """
    tasks, tried = sizes
    chance, found = DIFFICULTIES[difficulty], []
    change = (0.9**2 - 1) * float((chance((np.arange(10**6) + 0.5) / 10**6) ** 2).mean())
    for seed in seeds:
        rng = np.random.default_rng([seed, tasks, tried])
        easy = chance(rng.random(tasks))
        ids, trial = np.divmod(np.arange(tasks * tried), tried)
        rows = {"dialog_id": ids.astype(str), "trial": trial, "response": ["done"] * len(ids)}
        passed = {name: (rng.random((tasks, tried)) < part * easy[:, None]).ravel() for name, part in TENTHS.items()}
        tables = {name: pa.table({**rows, "reward": each.astype(float)}) for name, each in passed.items()}
        run = dialeval.evaluate(
            tables,
            metrics="pass-hat-1,pass-hat-2,task-variance,trial-variance",
            execution=dialeval.Execution(threads=1),
        )
        (row,) = dialeval.compare(run, metrics=["pass-hat-2"], resamples=20, trials=20).differences
        low, high = row.interval or (math.nan, math.nan)
        own = [run["a"][key].mean for key in ("pass-hat-1", "task-variance", "trial-variance")]
        found.append((*own, float(low <= change <= high)))
    return found


TENTHS = {"a": 1.0, "b": 0.9}


def share(hits: Sequence[bool]) -> str:
    """Hits in percent."""
    return f"{100 * float(np.mean(hits)):.1f}" if hits else "–"


def markdown(head: Sequence[str], lines: Iterable[Sequence[object]]) -> str:
    """A table."""
    rows = [head, ["---"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(map(str, row))} |" for row in rows) + "\n"


def of_hits(hits: Hits, columns: Sequence[str], head: Sequence[str] = ("value", "lengths", "dialogues")) -> str:
    """A table of hits in percent, a line per case."""
    names = [*SIMULATED]
    cases = sorted(
        dict.fromkeys(case for case, _ in hits),
        key=lambda case: (case[1] != "unequal", case[1], names.index(case[0]), case[2]) if case[0] in names else (),
    )
    lines = ([*case, *(share(hits.get((case, column), [])) for column in columns)] for case in cases)
    return markdown([*head, *columns], lines)


def hard_table_named(name: str, simulations: Simulations) -> str:
    """Return a table of cases with a generator of their own, with its title."""
    below = f"\n\n{simulations.sets} data sets per case.\n\n"
    if name == "heavy":
        table = of_hits(simulations.hits(heavy, HEAVY), METHODS, ("values", "lengths", "rows"))
        return f"### Coverage of 95% intervals with heavy tails{below}{table}"
    if name == "trials":
        columns = [f"pass^{k}" for k in PASSES]
        table = of_hits(simulations.hits(trials, TRIED), columns, ("tasks are", "each", "tasks"))
        return f"### Coverage of 95% intervals of pass^k{below}{table}"
    if name == "variances":
        return f"### Variance of tasks and trials{below}{markdown(SPLIT_HEAD, simulations.variances())}"
    if name == "sorted":
        table = markdown(["order", "value", "rows", "covers", "width"], simulations.kinds(ordered, ORDERED))
        return f"### Coverage of 95% intervals of sorted rows{below}{table}"
    if name == "kl":
        table = of_hits(simulations.hits(divergence, DIVERGED), [TEST], ("words", "lengths", "rows"))
        return f"### Differences of KL divergence found at 5% where there are none{below}{table}"
    if name == "best":
        table = of_hits(simulations.hits(best, COMPARED), ["left out"], ("value", "lengths", "systems"))
        return f"### Equal systems that are called worse than the best{below}{table}"
    head = ["differences", "sequence", "misses", *(f"width at {number}" for number in WIDTHS)]
    return f"### A thousand interim looks at a difference of 0{below}{markdown(head, simulations.interim())}"


def table_named(name: str, simulations: Simulations) -> str:
    """A table with its title."""
    below = f"\n\n{simulations.sets} data sets per case.\n\n"
    if name == "coverage":
        return f"### Coverage of 95% intervals{below}{of_hits(simulations.hits(coverage, COVERED), METHODS)}"
    if name == "kinds":
        lines = [line[:4] for line in simulations.kinds(kinds, KINDS)]
        table = markdown(["text", "value", "dialogues", "jackknife"], lines)
        return f"### Coverage of 95% intervals of distinct{below}{table}"
    if name == "size":
        found = of_hits(simulations.hits(size, SIZED), [TEST])
        return f"### Differences found at 5% where there are none{below}{found}"
    if name == "power":
        return f"### Detectable differences that are found{below}{of_hits(simulations.hits(power, POWERED), [TEST])}"
    return hard_table_named(name, simulations)


def main() -> None:
    """Print what was asked for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--sets", type=int, help=f"data sets of every case, instead of {SETS}")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--only", default=",".join(SETS), help="some of the tables, by commas")
    given = parser.parse_args()
    for name in given.only.split(","):
        print(table_named(name, Simulations(given.sets or SETS[name], given.seed, given.processes)), flush=True)


if __name__ == "__main__":
    main()
