"""Comparison of systems with a baseline: the difference under every metric that both have, with interval and test.

`alignment` finds the rows that two systems have in common and the design that follows, `pairing` the metrics whose
inputs are the same, `difference` (paired) and `unpaired` test each metric. P-values are adjusted for the number of
tests (Holm) in two families: the panel that the verdict is about, over all systems, and all other metrics. The panel is
the metrics that were asked for and for which higher or lower is better; without such a choice, one metric of each kind
(`pairing.main_keys`). So the level holds for the verdict, and metrics that nobody asked for cost it no power.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, islice
from typing import TYPE_CHECKING, Any

from dialeval.analysis import significance
from dialeval.analysis.alignment import Alignment, Design, DesignName, align
from dialeval.analysis.case_mix import check_adjusted, compare_mixes, list_strata
from dialeval.analysis.difference import DEFAULT_ALPHA, LEAST_TRIALS, Baseline, Difference, Settings, Test, untested
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED
from dialeval.analysis.pairing import Runs, Weight, chosen, describe_inputs, keys_meant, main_keys, systems_of, weigh
from dialeval.analysis.unpaired import unpaired_differences
from dialeval.analysis.values import metric_of
from dialeval.core.arguments import checked
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
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
    alignments: Mapping[str, Alignment]
    """By system the rows that were compared, and the design."""
    results: Mapping[str, Result]
    """All rows of the systems, the baseline's among them."""
    panel: tuple[str, ...] = ()
    """The metrics that the verdict is about, whose p-values are adjusted as one family."""
    adjusted_for: tuple[str, ...] = ()
    """Fields whose mix was made equal."""
    warnings: tuple[str, ...] = ()
    untested: tuple[str, ...] = ()
    """Systems that `most_tests` left out."""

    @property
    def designs(self) -> dict[str, Design]:
        """The design of the comparison of each system."""
        return {name: alignment.design for name, alignment in self.alignments.items()}

    @property
    def design(self) -> Design:
        """The design of the first comparison, which is that of all where all are alike."""
        return next(iter(self.designs.values()))

    def __repr__(self) -> str:
        found = sum(row.significant for row in self.rows)
        units = f"{self.design.name} design, {self.design.clusters:,} {self.design.unit}"
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
            "designs": {name: design.to_dict() for name, design in self.designs.items()},
            "panel": list(self.panel),
            "adjusted_for": list(self.adjusted_for),
            "warnings": list(self.warnings),
            "differences": [row.to_dict() for row in self.rows],
        }


def _flat(row: Difference) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for name, value in row.to_dict().items():
        if name in ("interval", "unadjusted_interval"):
            prefix = name.removesuffix("interval")
            flat |= dict(zip((f"{prefix}low", f"{prefix}high"), value or (None, None), strict=True))
        else:
            flat[name] = value
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
    design: DesignName | None = None,
    weight: Weight = "rows",
    adjust: str | Iterable[str] | None = None,
    most_tests: int | None = None,
) -> Comparison:
    """Compare the systems of a run, or of several, with a baseline: the first system unless another is named.

    `runs`: a run, a list of runs, or a mapping of names to runs. `systems`, `metrics`: only these (all, but floors and
    ceilings). `resamples` of the bootstrap; `trials` of the randomisation, `enough_trials` unless given. `detect`: a
    difference, in units of each metric, for which the number of dialogues needed is given.
    `design`: `paired`, `common` (paired on the units in common) or `unpaired`; chosen by what the systems have in
    common unless given (`alignment`). `weight`: means are over `rows`, or over `dialogues` that count once each.
    `adjust`: fields that the runs kept, whose mix is made equal in unpaired designs (post-stratification).
    `most_tests`: leave out the systems behind as many tests; `Comparison.untested` names them. The trials that each
    test takes grow with the number of tests, so that all of them take time with its square.
    """
    settings = Settings(test, alpha, level, resamples, LEAST_TRIALS if trials is None else trials, seed, detect)
    known = weigh(systems_of(runs), weight)
    first, others = chosen(known, baseline, None if systems is None else list(systems))
    asked = None if metrics is None else list(metrics)
    fields = check_adjusted(adjust, known, [first, *others])
    common = {name: _common(known[first], known[name], asked) for name in others}
    behind = _behind(common, most_tests)
    others = [name for name in others if name not in behind]
    alignments = {name: _aligned(first, name, known, design) for name in others}
    left_out = {
        (name, key): reason
        for name, alignment in alignments.items()
        for key in common[name]
        if (reason := _why_left_out(known[first][key], known[name][key], alignment, key)) is not None
    }
    tested = {name: [key for key in common[name] if (name, key) not in left_out] for name in others}
    everything = list(dict.fromkeys(key for keys in common.values() for key in keys))
    panel = choose_panel({name: known[name] for name in (first, *others)}, everything, asked is not None)
    if trials is None:
        inside = sum(key in panel for keys in tested.values() for key in keys)
        outside = sum(map(len, tested.values())) - inside
        settings = replace(settings, trials=max(enough_trials(inside, alpha), enough_trials(outside, alpha, 1.0)))
    same = [name for name in others if alignments[name].design.name != "unpaired" and not alignments[name].changed]
    keys = [key for key in known[first] if any(key in tested[name] for name in same)]
    shared = Baseline(first, known[first], settings, keys) if keys else None
    rows: list[Difference] = []
    for name in others:
        found = {
            row.key: row for row in _differences(first, name, alignments[name], tested[name], settings, shared, fields)
        }
        for key in common[name]:
            reason = left_out.get((name, key))
            rows.append(found[key] if reason is None else _leave_out(first, name, known, key, reason))
    warnings = [line for name in others for line in compare_mixes(first, name, alignments[name], fields, settings)]
    results = {name: known[name] for name in (first, *others)}
    return Comparison(
        first,
        others,
        _adjusted(rows, alpha, panel),
        settings,
        alignments,
        results,
        panel,
        tuple(fields),
        tuple(dict.fromkeys(warnings)),
        behind,
    )


def choose_panel(known: Mapping[str, Result], keys: Sequence[str], asked: bool) -> tuple[str, ...]:
    """Choose the metrics that a verdict is about among some keys; `asked`: they were named.

    Where no metric says which system is better, it is about all keys.
    """
    metrics = {key: metric_of(next(result[key] for result in known.values() if key in result)) for key in keys}
    panel = [key for key in keys if (metric := metrics[key]) is not None and metric.better is not None]
    if not asked:
        chosen_keys = main_keys(known)
        panel = [key for key in panel if key in chosen_keys]
    evidence = any((metric := metrics[key]) is not None and not metric.descriptive for key in panel)
    return tuple(panel) if panel and (asked or evidence) else tuple(keys)


def _aligned(baseline: str, system: str, known: Mapping[str, Result], design: DesignName | None) -> Alignment:
    try:
        return align(known[baseline], known[system], design)
    except SettingError as error:
        raise SettingError(f"{system} cannot be compared with {baseline}: {error}") from None


def _differences(
    baseline: str,
    system: str,
    alignment: Alignment,
    keys: Sequence[str],
    settings: Settings,
    shared: Baseline | None,
    fields: Sequence[str],
) -> Iterable[Difference]:
    """Compare one system by its design; `shared` is the baseline with all its rows."""
    if alignment.design.name == "unpaired":
        strata = list_strata(alignment, fields) if fields else None
        return unpaired_differences(baseline, system, alignment.left, alignment.right, keys, settings, strata)
    if fields:
        what = "have the same units, so that their case mix is the same"
        raise SettingError(f"{system} and {baseline} {what}; leave --adjust out, or choose --design unpaired")
    if alignment.changed or shared is None:
        shared = Baseline(baseline, alignment.left, settings, keys)
    return shared.against(system, alignment.right, keys, alignment.by_row)


def _why_left_out(here: Estimate, there: Estimate, alignment: Alignment, key: str) -> str | None:
    """Say why a metric is left out of a comparison: other inputs, or no value for the rows in common."""
    for side in (alignment.left, alignment.right):
        if key not in side:
            return side.skipped.get(key, "it has no value for the rows in common")
    return describe_inputs(here, there, alignment)


def _leave_out(baseline: str, system: str, known: Mapping[str, Result], key: str, reason: str) -> Difference:
    """Return a difference that must not be computed, with the reason."""
    plain = untested(baseline, system, known[baseline][key], known[system][key], key)
    return replace(plain, difference=math.nan, reason=reason)


def adjusted_together(comparisons: Sequence[Comparison]) -> list[Comparison]:
    """The comparisons with the p of all of them adjusted as one family."""
    everything = [row for each in comparisons for row in each.rows]
    panel = tuple(dict.fromkeys(row.key for row in everything))
    rows = iter(_adjusted(everything, comparisons[0].settings.alpha, panel) if comparisons else [])
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


def _judge(row: Difference) -> Difference:
    """Add a note where a difference is significant although its interval contains 0."""
    if not row.significant or row.interval is None or not row.interval[0] <= 0 <= row.interval[1]:
        return row
    doubt = f"the test (p = {row.p:.2g}) and the interval, which contains 0, disagree: take the difference as unclear"
    return replace(row, note="; ".join(filter(None, (row.note, doubt))))


def _adjusted(rows: list[Difference], alpha: float, panel: Sequence[str]) -> list[Difference]:
    """Adjust the p-values of the panel, and those of all other metrics, each as one family."""
    families = [[at for at, row in enumerate(rows) if (row.key in panel) == inside] for inside in (True, False)]
    adjusted = list(rows)
    for family in families:
        for at, p in zip(family, significance.holm([rows[at].p for at in family]), strict=True):
            adjusted[at] = _judge(replace(rows[at], adjusted_p=p, significant=p < alpha))  # NaN is below nothing
    return adjusted
