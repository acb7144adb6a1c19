"""Best systems of a table: the system with the best value of each metric, and those not significantly worse.

`find_best_systems` compares the system with the best value of a metric with all others. It was chosen by the data, so
its comparisons are corrected as if every two systems had been compared under every metric (multiple comparisons with
the best, by Bonferroni over all pairs): with equal systems, one is left out with a probability of at most alpha. Where
that would take very many tests, only the best value is returned; systems that were not scored on the same units have no
best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from dialeval.analysis.comparison import MOST_TESTS, Comparison, choose_trials, compare
from dialeval.analysis.difference import DEFAULT_ALPHA
from dialeval.analysis.values import find_better
from dialeval.analysis.verdict import decide
from dialeval.core.errors import SettingError
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__


@dataclass(frozen=True)
class Best:
    """The best systems by key; none where neither higher nor lower is better, or for one system only."""

    systems: Mapping[str, list[str]]
    tests: int
    """Pairs that were corrected for; 0 where nothing was tested."""


def find_best_systems(
    results: Mapping[str, Result], keys: Iterable[str], tested: bool = True, comparison: Comparison | None = None
) -> Best:
    """Find the system with the best value of each key and, if tested, those not significantly worse.

    Floors and ceilings are never the best, and a key under which no system is worse than the best has none. What a
    `comparison` says of the same systems holds: none that it calls worse than the baseline is the best, nor is the
    baseline where another one is better. Of two systems it decides alone, under the ranked metric its groups do.
    """
    real = {name: result for name, result in results.items() if result.role == "system"}
    best: dict[str, list[str]] = {}
    sizes: list[int] = []
    for key in keys:
        means = {name: result[key].mean for name, result in real.items() if key in result}
        known, better = [mean for mean in means.values() if not math.isnan(mean)], find_better(real, key)
        if len(means) > 1 and known and better is not None:
            top = max(known) if better == "higher" else min(known)
            best[key] = [name for name, mean in means.items() if mean == top]
            sizes.append(len(means))
    pairs = sum(size * (size - 1) // 2 for size in sizes)
    two = comparison is not None and len(real) == 2
    if two or not tested or not 0 < sum(sizes) - len(sizes) <= MOST_TESTS:
        every = {key: [name for name in real if key in real[name]] for key in best} if two else best
        return _agree(Best(every, pairs if two else 0), comparison, real)
    try:
        comparisons = list(_compare_with_best(real, best, choose_trials(pairs, DEFAULT_ALPHA, 1.0)))
    except SettingError:  # the run does not know its rows
        return _agree(Best(best, 0), comparison, real)
    if any(design.name == "unpaired" for each in comparisons for design in each.designs.values()):
        return Best({}, 0)
    for row in (row for each in comparisons for row in each.differences):
        undecided = row.p * pairs >= DEFAULT_ALPHA or row.left_out is not None
        if undecided and row.system not in best.get(row.key, [row.system]):
            best[row.key].append(row.system)
    return _agree(Best(best, pairs), comparison, real)


def _agree(best: Best, comparison: Comparison | None, real: Mapping[str, Result]) -> Best:
    """Return the best systems without those that a comparison calls worse, and without keys where nothing differs."""
    systems = {key: list(names) for key, names in best.systems.items()}
    ranking = None if comparison is None else comparison.ranking
    if ranking is not None and ranking.key in systems:
        first = {name for group in ranking.groups if ranking.systems[0] in group for name in group}
        systems[ranking.key] = [name for name in ranking.systems if name in first]
    for row in () if comparison is None else comparison.differences:
        beaten = {"worse": row.system, "better": row.baseline}.get(decide(row))
        if row.key in systems and beaten in systems[row.key]:
            systems[row.key].remove(beaten)
    sizes = {key: sum(key in result for result in real.values()) for key in systems}
    decided = best.tests > 0 or ranking is not None
    kept = {key: names for key, names in systems.items() if names and (len(names) < sizes[key] or not decided)}
    return replace(best, systems=kept)


def _compare_with_best(real: Mapping[str, Result], best: Mapping[str, list[str]], trials: int) -> Iterator[Comparison]:
    """Compare each best system with the others, those together that have the same keys."""
    run = Run(dict(real), __version__)
    for first in dict.fromkeys(names[0] for names in best.values()):
        own = [key for key, names in best.items() if names[0] == first]
        by_keys: dict[tuple[str, ...], list[str]] = {}
        for other in (name for name in real if name != first):
            by_keys.setdefault(tuple(key for key in own if key in real[other]), []).append(other)
        for shared, others in by_keys.items():
            if shared:
                yield compare(run, baseline=first, systems=others, metrics=shared, trials=trials, pairwise=False)
