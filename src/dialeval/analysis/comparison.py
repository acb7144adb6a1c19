"""Comparing systems: the difference of each to a baseline, for every key that both have, and how sure it is.

`pairing` checks what may be compared, `difference` tests each key; here the p of all keys and systems are adjusted as
one family (Holm).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from dialeval.analysis import significance
from dialeval.analysis.difference import DEFAULT_ALPHA, LEAST_TRIALS, Baseline, Difference, Settings, Test
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED
from dialeval.analysis.pairing import Runs, chosen, keys_meant, mismatches, systems_of
from dialeval.core.arguments import checked
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.plain_text import plain
from dialeval.core.result import Result
from dialeval.core.tabular import Tabular

if TYPE_CHECKING:
    import pyarrow as pa

MOST_TRIALS = 1_000_000
"""The most that are made where their number is not given."""

STRONG = 0.2
"""Below this share of alpha an adjusted p has two marks."""

__all__ = ["Comparison", "Difference", "Settings", "adjusted_together", "compare", "enough_trials"]


@dataclass(frozen=True, repr=False)
class Comparison(Tabular, Shown):
    """Every difference to the baseline, system by system and key by key."""

    baseline: str
    systems: Sequence[str]
    rows: Sequence[Difference]
    settings: Settings
    clusters: int
    unit: str
    """What a cluster is: `dialogues` or `rows`."""
    results: Mapping[str, Result]
    """The results that were compared, by system, the baseline's among them."""
    forced: tuple[str, ...] = ()
    """What would have forbidden the comparison without `force`."""
    untested: tuple[str, ...] = ()
    """Systems that `most_tests` left out."""

    def __repr__(self) -> str:
        found = sum(row.significant for row in self.rows)
        units = f"{self.clusters:,} {self.unit}"
        with_baseline = f"{listed(self.systems, 'system')} with {plain(self.baseline)}"
        return f"<Comparison: {with_baseline}, {listed(self.keys, 'metric')}, {units}, {found} significant>"

    @property
    def keys(self) -> list[str]:
        """Every key, in order."""
        return list(dict.fromkeys(row.key for row in self.rows))

    def of(self, system: str) -> list[Difference]:
        """The differences of one system."""
        return [row for row in self.rows if row.system == system]

    def lines(self) -> list[dict[str, Any]]:
        """One line per system and key: every field of its difference, and the ends of the interval for the interval."""
        return [_flat(row) for row in self.rows]

    def to_arrow(self) -> pa.Table:
        """One line per system and key, see `Difference`; `low` and `high` are the ends of the interval."""
        import pyarrow as pa

        return pa.Table.from_pylist(self.lines())

    def to_dict(self) -> dict[str, Any]:
        """Plain data for JSON; NaN is null."""
        return {
            "baseline": self.baseline,
            "systems": list(self.systems),
            **asdict(self.settings),
            "clusters": self.clusters,
            "unit": self.unit,
            "forced": list(self.forced),
            "differences": [row.to_dict() for row in self.rows],
        }


def _flat(row: Difference) -> dict[str, Any]:
    low, high = row.interval or (None, None)
    flat: dict[str, Any] = {}
    for name, value in row.to_dict().items():
        flat |= {"low": low, "high": high} if name == "interval" else {name: value}
    return flat


@checked
def compare(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: Iterable[str] | None = None,
    test: Test = "randomisation",
    alpha: float = DEFAULT_ALPHA,
    level: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    trials: int | None = None,
    seed: int = DEFAULT_SEED,
    detect: float | None = None,
    force: bool = False,
    most_tests: int | None = None,
) -> Comparison:
    """Compare the systems of a run, or of several, with a baseline: the first system unless another is named.

    `runs`: a run, a list of runs, or a mapping of names to runs. `systems`, `metrics`: only these (all, but floors and
    ceilings). `resamples` of the bootstrap; `trials` of the randomisation, `enough_trials` unless given. `detect`: a
    difference, in units of each metric, for which the number of dialogues needed is given.
    `force` compares what was not scored alike; `Comparison.forced` then says what differs. `most_tests`: leave out the
    systems behind as many tests; `Comparison.untested` names them. The trials that each test takes grow with the number
    of tests, so that all of them take time with its square.
    """
    settings = Settings(test, alpha, level, resamples, LEAST_TRIALS if trials is None else trials, seed, detect)
    known = systems_of(runs)
    first, others = chosen(known, baseline, None if systems is None else list(systems))
    asked = None if metrics is None else list(metrics)
    common = {name: _common(known[first], known[name], asked) for name in others}
    untested = _behind(common, most_tests)
    others = [name for name in others if name not in untested]
    common = {name: common[name] for name in others}
    forced = [what for name in others for what in mismatches(first, name, known, common[name], force)]
    if trials is None:
        settings = replace(settings, trials=enough_trials(sum(map(len, common.values())), alpha))
    keys = [key for key in known[first] if any(key in shared for shared in common.values())]
    compared = Baseline(first, known[first], settings, keys)
    rows = [row for name in others for row in compared.against(name, known[name], common[name])]
    table = known[first].rows
    alone = table is None or len(table) == compared.clusters
    unit = "rows" if alone and (table is None or table.dialogues is None) else "dialogues"
    results = {name: known[name] for name in (first, *others)}
    adjusted = _adjusted(rows, alpha)
    return Comparison(first, others, adjusted, settings, compared.clusters, unit, results, tuple(forced), untested)


def adjusted_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with the p of all of them adjusted as one family."""
    everything = [row for each in comparisons for row in each.rows]
    rows = iter(_adjusted(everything, comparisons[0].settings.alpha) if comparisons else [])
    return [replace(each, rows=list(islice(rows, len(each.rows)))) for each in comparisons]


def _behind(common: Mapping[str, list[str]], most_tests: int | None) -> tuple[str, ...]:
    """The systems that come when there are as many tests; never the first."""
    before = list(accumulate(map(len, common.values())))
    fitting = sum(tests <= most_tests for tests in before) if most_tests is not None else len(before)
    return tuple(common)[max(fitting, 1) :]


def enough_trials(tests: int, alpha: float, share: float = STRONG) -> int:
    """Trials with which some of many tests can be far below alpha.

    After Holm's correction the least p is tests / trials. There are one and a half times as many trials as it takes for
    a p of `share` times alpha, in thousands.
    """
    enough = max(LEAST_TRIALS, math.ceil(1.5 * tests / (share * alpha) / 1000) * 1000)
    if enough > MOST_TRIALS:
        raise SettingError(
            f"an alpha of {alpha:g} for {tests} tests takes {enough:,} trials, more than the {MOST_TRIALS:,} that are "
            "made unasked; choose a larger --alpha, fewer metrics (-m), or --trials"
        )
    return enough


def _common(left: Result, right: Result, asked: list[str] | None) -> list[str]:
    keys = [key for key in left if key in right and left[key].corpus == right[key].corpus]
    if not keys:
        raise SettingError("the systems have no metric in common; score them with the same metrics")
    if asked is None:
        return keys
    if not asked:
        raise SettingError(f"no metric is named; the systems share {', '.join(keys)}")
    return keys_meant(asked, keys, "not every system has", "they share")


def _adjusted(rows: list[Difference], alpha: float) -> list[Difference]:
    adjusted = significance.holm([row.p for row in rows])
    return [
        replace(row, adjusted_p=p, significant=p < alpha)  # NaN is below nothing
        for row, p in zip(rows, adjusted, strict=True)
    ]
