"""Best systems under each metric: the one with the best value, and those that are not significantly worse.

The system with the best value of a metric is compared with all others (`comparison`). It was chosen by the data, so
its comparisons are corrected as if every two systems had been compared under every metric (multiple comparisons with
the best, by Bonferroni over all pairs): with equal systems, one is left out with a probability of at most alpha. Where
that would take very many tests, only the best value is returned; systems that were not scored on the same units have no
best.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from dialeval.analysis.comparison import compare, enough_trials
from dialeval.analysis.difference import DEFAULT_ALPHA, Difference
from dialeval.analysis.values import metric_of
from dialeval.core.errors import SettingError
from dialeval.core.fold import Better
from dialeval.core.result import Result, Run
from dialeval.core.version import __version__

MOST_TESTS = 300


@dataclass(frozen=True)
class Best:
    """The best systems by key; none for a key that has no direction or one system only."""

    systems: Mapping[str, list[str]]
    tests: int
    """Pairs that were corrected for; 0 where nothing was tested."""
    alpha: float = DEFAULT_ALPHA


def best_of(means: Mapping[str, float], better: Better | None) -> list[str]:
    """The systems with the best value; none where neither higher nor lower is better."""
    known = [mean for mean in means.values() if not math.isnan(mean)]
    if better is None or not known:
        return []
    best = max(known) if better == "higher" else min(known)
    return [name for name, mean in means.items() if mean == best]


def best_systems(results: Mapping[str, Result], keys: Iterable[str]) -> Best:
    """The best systems of some results under some keys; floors and ceilings take no part."""
    real = {name: result for name, result in results.items() if result.role == "system"}
    firsts: dict[str, list[str]] = {}
    for key in keys:
        scored = {name: result[key] for name, result in real.items() if key in result}
        metrics = (metric_of(estimate) for estimate in scored.values())
        better = next((metric.better for metric in metrics if metric is not None), None)
        if len(scored) > 1 and (found := best_of({name: est.mean for name, est in scored.items()}, better)):
            firsts[key] = found
    having = {key: sum(key in result for result in real.values()) for key in firsts}
    pairs = sum(systems * (systems - 1) // 2 for systems in having.values())
    if not 0 < sum(having.values()) - len(having) <= MOST_TESTS:
        return Best(firsts, 0)
    run, trials = Run(real, __version__), enough_trials(pairs, DEFAULT_ALPHA, 1.0)
    rows: list[Difference] = []
    for first in dict.fromkeys(names[0] for names in firsts.values()):
        own = [key for key, names in firsts.items() if names[0] == first]
        by_keys: dict[tuple[str, ...], list[str]] = {}
        for other in (name for name in real if name != first):
            by_keys.setdefault(tuple(key for key in own if key in real[other]), []).append(other)
        by_keys.pop((), None)
        try:
            for shared, others in by_keys.items():
                compared = compare(run, baseline=first, systems=others, metrics=shared, trials=trials)
                if any(design.name == "unpaired" for design in compared.designs.values()):
                    return Best({}, 0)
                rows += compared.rows
        except SettingError:  # the run does not know its rows
            return Best(firsts, 0)
    for row in rows:
        if row.p * pairs >= DEFAULT_ALPHA and row.system not in firsts[row.key]:
            firsts[row.key].append(row.system)
    return Best(firsts, pairs)
