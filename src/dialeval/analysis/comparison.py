"""Comparison of systems with a baseline: the difference under every metric that both have, with interval and test.

`alignment` finds the rows that two systems have in common and the design that follows, `pairing` the metrics whose
inputs are the same, `difference` (paired) and `unpaired` test each metric. P-values are adjusted for the other tests
(Westfall and Young's minP where differences were permuted, else Holm) in two families: the panel that the verdict is
about, over all systems and with all pairs of them that are ranked, and all other metrics. The panel is
the metrics that were asked for and for which higher or lower is better; without such a choice, one metric of each kind
(`pairing.choose_main_keys`). So the level holds for the verdict, and metrics that nobody asked for cost it no power.
"""

from __future__ import annotations

import math
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_fields
from inspect import signature
from itertools import islice
from os import PathLike
from typing import Any, NamedTuple

from msgspec import to_builtins
from msgspec.structs import asdict, replace

from dialeval.analysis.alignment import Design, DesignName
from dialeval.analysis.crossed import cross_tests, list_ways
from dialeval.analysis.difference import (
    DEFAULT_ALPHA,
    LEAST_TRIALS,
    MOST_DRAWS,
    Baseline,
    Difference,
    Settings,
    Tested,
    exchange_means,
    subtract_estimates,
)
from dialeval.analysis.pairing import (
    USERS,
    Runs,
    Selection,
    Weight,
    describe_estimand,
    find_key,
    select,
)
from dialeval.analysis.unpaired import check_adjusted, compare_mixes, compare_unpaired, list_strata
from dialeval.analysis.values import Values, find_better, find_bounds, find_metric, sort_clusters
from dialeval.analysis.verdict import Verdict, check_margins, decide, mark_left_out
from dialeval.core import validation
from dialeval.core.account import FAILURES, describe_accounts
from dialeval.core.arrays import Ints
from dialeval.core.display import Displayable, Tabular, count_names, flatten_intervals
from dialeval.core.errors import SettingError, escape_controls, escape_lines
from dialeval.core.features import find_place
from dialeval.core.result import Result, Run, read_comparison
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.resampling import DEFAULT_RESAMPLES, DEFAULT_SEED, has_all_swaps
from dialeval.stats.significance import find_homogeneous_groups, westfall_young

MOST_TRIALS = 1_000_000
"""The most that are made where their number is not given."""
STRONG = 0.2
"""Below this fraction of alpha an adjusted p has two marks."""
MOST_TESTS = 300
"""Tests that tables and reports make, and `find_best_systems`."""
_SPLIT = "sort the rows by dialogue"
"""Part of the warning of a run whose dialogues are not whole: its intervals are too narrow."""
_MOST_CORPUS_PAIRS = 28
"""Pairs of systems that are tested under a corpus value without being asked for: those of eight systems."""
_NEAR = 3.0
"""More trials are made where p is fewer standard errors of its trials from where its adjusted value is alpha."""
_MOST_REPEATED, _MOST_CELLS, _CELLS_OF_TRIAL, _CELLS_OF_CORPUS = 200_000, 1 << 30, 8, 16
"""The most trials of that, also by cells (a few seconds): some per dialogue, one per mean, more per corpus value."""
_PAIR_RESAMPLES = 50
"""Resamples of pairs whose intervals are not shown."""


class SystemRanking(Record, frozen=True):
    """Systems ordered by one metric, with the groups that tests of all pairs do not tell apart.

    Attributes:
        key: The metric, the first of the panel that says which replies are better.
        systems: The systems, best first.
        groups: Systems without a significant difference; any two systems that do not differ share a group.
        tests: The number of pairs; those without the baseline are tests of the family of the panel, too.
    """

    key: str
    systems: list[str]
    groups: list[list[str]]
    tests: int


class Comparison(Tabular, Displayable, Record, frozen=True, kw_only=True):
    """The result of `dialeval.compare`: the difference of every system to the baseline under every metric.

    In a notebook it shows the verdict and the tables of the command line, and `print` prints the verdict. `to_pandas`
    has a line per system and metric.

    Attributes:
        baseline: The system that the others are compared with.
        systems: The other systems.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        resamples: Resamples of the bootstrap that intervals are from.
        trials: Trials of the randomization test of the metrics of the panel.
        seed: The seed of resamples and trials.
        detect: The difference for which the number of dialogues needed was computed.
        designs: By system, how its rows or dialogues relate to those of the baseline.
        panel: The metrics of the verdict, whose p-values are adjusted as one family.
        adjusted_for: Fields whose mix was made equal.
        warnings: Remarks about the comparison, such as a case mix that differs.
        differences: The differences, system by system and metric by metric.
        untested: Systems that `most_tests` left out.
        signatures: By metric, the signature of the baseline's value: what must be the same where values are compared.
        margins: By metric, the margin within which systems are equivalent.
        weight: Whether every row or every dialogue has equal weight in a mean.
        cluster: The field whose values are the clusters, or two fields; None: dialogues.
        replicate: The field that numbers the replicates of a system.
        estimand: What means are of, `reply` or `dialogue`; None where no dialogue has several rows.
        pairs: Tests of systems other than the baseline with each other, which are tests of the family of the panel.
        accounts: By system, what is missing from what was read of it, if anything is.
        ranking: Of three or more systems: their order by the first metric of the panel, and which pairs differ.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> run = dialeval.evaluate({"old": ["sorry ?"] * 12, "new": references}, references, metrics="rouge-l")
        >>> dialeval.compare(run).to_pandas()[["system", "key", "difference", "significant"]].values.tolist()
        [['new', 'rouge-l', 1.0, True]]
    """

    baseline: str
    systems: list[str]
    alpha: float
    confidence: float
    resamples: int
    trials: int
    seed: int
    detect: float | None
    designs: dict[str, Design]
    panel: tuple[str, ...] = ()
    adjusted_for: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    differences: list[Difference]
    untested: tuple[str, ...] = ()
    signatures: dict[str, str] = {}
    margins: dict[str, float] = {}
    weight: Weight = "rows"
    cluster: str | None = None
    replicate: str | None = None
    estimand: str | None = None
    pairs: int = 0
    accounts: dict[str, str] = {}
    ranking: SystemRanking | None = None

    @property
    def design(self) -> Design:
        """The design of the first comparison, which is that of all where all are alike."""
        return next(iter(self.designs.values()))

    def __repr__(self) -> str:
        found = sum(row.significant for row in self.differences)
        units = f"{self.design.name} design, {self.design.clusters:,} {self.design.unit}"
        with_baseline = f"{count_names(self.systems, 'system')} with {escape_controls(self.baseline)}"
        return f"<Comparison: {with_baseline}, {count_names(self.keys, 'metric')}, {units}, {found} significant>"

    @property
    def keys(self) -> list[str]:
        """The metrics, in order."""
        return list(dict.fromkeys(row.key for row in self.differences))

    @property
    def tests(self) -> int:
        """The number of tests in the family of the panel."""
        return self.pairs + sum(not math.isnan(row.p) and row.key in self.panel for row in self.differences)

    @property
    def verdict(self) -> Verdict:
        """The verdict: its kind, a headline, the sentences of the command line, and the numbers behind them."""
        made: Verdict = find_place("loaders", "verdict")(self)
        return made

    def __str__(self) -> str:
        return escape_lines("\n".join([self.verdict.headline, *self.verdict.sentences]))

    def to_dict(self) -> JsonObject:
        """Return plain data for JSON, with the verdict; NaN is None.

        Returns:
            The data, with the names that the JSON has.
        """
        return {**super().to_dict(), "verdict": self.verdict.to_dict()}

    def of(self, system: str) -> list[Difference]:
        """Return the differences of one system.

        Args:
            system: The system.

        Returns:
            A difference per metric.
        """
        return [row for row in self.differences if row.system == system]

    def lines(self) -> list[JsonObject]:
        """Return a line per system and metric: the fields of `Difference`, with `low` and `high` for the interval.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [flatten_intervals(row.to_dict()) for row in self.differences]


class SavedComparison(Record, frozen=True):
    """`comparison.json`: a comparison that was saved with its run, and the arguments of `compare` that gave it."""

    dialeval: str
    settings: dict[str, object]
    """Those that differ from their defaults."""
    comparison: Comparison

    def __post_init__(self) -> None:
        found = self.comparison
        if set(found.systems) != found.designs.keys() or any(
            row.system not in found.systems for row in found.differences
        ):
            raise ValueError("the systems, designs and differences of a comparison do not belong together")


def dump_comparison(comparison: Comparison, **settings: object) -> bytes:
    """Return the document to save with the run; `settings` are the arguments of `compare`.

    Numbers that are not finite are texts: JSON has no others, and every digit counts.
    """
    changed = _drop_defaults(settings)
    if not comparison.untested:
        changed.pop("most_tests", None)  # it left nothing out
    saved = SavedComparison(__version__, changed, comparison)
    return validation.dump(_spell_infinite(to_builtins(saved, enc_hook=float)))


def load_comparison(path: str | PathLike[str], run: Run, **settings: Any) -> Comparison | None:
    """Return the comparison that was saved with a run, if `compare` would give the same with these arguments.

    Where it is only that of the panel, all other metrics are tested now.

    Raises:
        DataError: What was saved is no comparison, or that of another run.
    """
    saved = _read_saved(path)
    if saved is None or not {saved.comparison.baseline, *saved.comparison.systems} <= run.keys():
        return None
    changed = _drop_defaults(settings)
    if changed.get("baseline") == saved.comparison.baseline:
        changed["baseline"] = saved.settings.get("baseline")
    if "most_tests" not in saved.settings:
        changed.pop("most_tests", None)
    changed = _drop_defaults(changed)
    if saved.dialeval != __version__:
        return None
    if saved.settings == changed:
        return saved.comparison
    panel = {name: value for name, value in saved.settings.items() if name != "metrics"}
    return compare_tested(run, **settings, saved=saved.comparison)[0] if panel == changed else None


def load_choices(path: str | PathLike[str]) -> JsonObject:
    """Return the margin, clusters and replicates of the comparison that was saved with a run."""
    settings = saved.settings if (saved := _read_saved(path)) is not None else {}
    return {name: settings[name] for name in ("margin", "cluster", "replicate") if name in settings}


def _read_saved(path: str | PathLike[str]) -> SavedComparison | None:
    remedy = "delete the run, and score again"
    document = read_comparison(path)
    return None if document is None else validation.convert(document, SavedComparison, str(path), remedy, strict=False)


def _drop_defaults(settings: Mapping[str, object]) -> dict[str, object]:
    """Return the arguments of `compare` that differ from their defaults, as plain data."""
    defaults = signature(compare).parameters
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    return {name: value for name, value in plain.items() if value != defaults[name].default}


def _spell_infinite(value: object) -> object:
    """Return plain data with texts for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _spell_infinite(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_spell_infinite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def compare(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    alpha: float = DEFAULT_ALPHA,
    confidence: float = DEFAULT_LEVEL,
    resamples: int = DEFAULT_RESAMPLES,
    trials: int | None = None,
    seed: int = DEFAULT_SEED,
    detect: float | None = None,
    design: DesignName | None = None,
    weight: Weight = "rows",
    adjust: str | Iterable[str] | None = None,
    most_tests: int | None = None,
    pairwise: bool = True,
    margin: float | Mapping[str, float] | None = None,
    cluster: str | None = None,
    replicate: str | None = None,
) -> Comparison:
    """Compare systems with a baseline: difference, confidence interval and p-value under every metric.

    Dialogues are the units of every test and interval, so that turns of one dialogue are not taken for independent.
    P-values are adjusted for all tests of a family, by the same permutations (Westfall and Young) or by Holm's method.
    There are two families: the metrics of the verdict (`Comparison.panel`), and all others.

    Args:
        runs: A run, a list of runs, or a mapping of names to runs.
        baseline: The system that the others are compared with; None: the first.
        systems: Only these systems; None: all but floor and ceiling systems.
        metrics: Only these metrics; None: all.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        resamples: Resamples of the bootstrap that intervals are from.
        trials: Trials of the randomization test; None: enough for the number of tests, and more where a p-value is so
            near alpha that another seed might decide otherwise.
        seed: The seed of resamples and trials.
        detect: A difference, in units of each metric, for which the number of dialogues needed is computed.
        design: `"paired"` (the same rows or dialogues in both systems), `"common"` (paired on those that both have),
            `"openings"` (paired on the rows before user turns differ), `"ids"` (paired by id, whatever users said) or
            `"unpaired"` (independent samples); None: chosen by what the systems have in common.
        weight: `"rows"`: every row counts equally in a mean. `"dialogues"`: every dialogue does.
        adjust: Fields that the runs kept, whose mix is made equal in an unpaired design (post-stratification).
        most_tests: The largest number of tests; systems beyond it are not tested, and `Comparison.untested` names them.
        pairwise: Also test all pairs of three or more systems under one metric (`Comparison.ranking`).
        margin: The margin within which two systems are equivalent, in units of the metric: one number for all metrics
            of the verdict, or one by metric.
        cluster: A field that the runs kept, such as the user; its values are sampled as wholes. Two fields, such as
            `"user,prompt"`, are crossed.
        replicate: A field that the runs kept, which numbers the generation seeds or training runs of each system, so
            that intervals hold for other ones.

    Returns:
        The differences of every system to the baseline.

    Raises:
        SettingError: There is nothing to compare, a name does not exist, or the design does not fit the systems.

    Examples:
        >>> import dialeval
        >>> references = [f"a table for {n}" for n in range(12)]
        >>> run = dialeval.evaluate({"old": ["sorry ?"] * 12, "new": references}, references, metrics="rouge-l")
        >>> found = dialeval.compare(run)
        >>> found
        <Comparison: 1 system (new) with old, 1 metric (rouge-l), paired design, 12 rows, 1 significant>
        >>> found.of("new")[0].difference
        1.0
    """
    return compare_tested(**locals())[0]


def compare_tested(
    runs: Runs,
    *,
    baseline: str | None = None,
    systems: Iterable[str] | None = None,
    metrics: str | Iterable[str] | None = None,
    trials: int | None = None,
    design: DesignName | None = None,
    weight: Weight = "rows",
    adjust: str | Iterable[str] | None = None,
    most_tests: int | None = None,
    pairwise: bool = True,
    margin: float | Mapping[str, float] | None = None,
    cluster: str | None = None,
    replicate: str | None = None,
    saved: Comparison | None = None,
    **given: Any,
) -> tuple[Comparison, list[Tested]]:
    """Return what `compare` does, and the differences with what they are adjusted by for further tests.

    `saved`: a comparison of the panel by the same arguments, which is not tested again.
    """
    settings = Settings(trials=LEAST_TRIALS if trials is None else trials, **given)
    selection = select(runs, baseline, systems, metrics, design, weight, most_tests, cluster, replicate)
    fields = check_adjusted(adjust, selection.known, [selection.first, *selection.others])
    chosen = fields, metrics is not None, trials is None
    if saved is not None and (saved.panel, saved.systems) == (selection.panel, list(selection.others)):
        tests = [(Tested(row), row) for row in saved.differences if row.key in saved.panel]
        before = Settings(**{name: getattr(saved, name) for name in Settings.__struct_fields__})
        panel = _Family(tests, saved.pairs, saved.ranking, before)
    else:
        panel = _test_family(selection.take(selection.panel), settings, *chosen, STRONG, pairwise, most_tests)
    places = [(name, key) for name in selection.others for key in selection.common[name]]
    rest = {key for _, key in places if key not in selection.panel}
    paired = (design.common for design in selection.designs.values() if design.name != "unpaired")
    if any(has_all_swaps(clusters, panel.settings.trials) for clusters in paired):
        settings = replace(settings, trials=panel.settings.trials)  # all metrics have every permutation
    others = _test_family(selection.take(rest), settings, *chosen, 1.0) if rest else None
    found = {(row.system, row.key): (each, row) for each, row in (*panel.tests, *(others.tests if others else ()))}
    ordered = [found[place] for place in places]
    margins = _find_margins(margin, [row for _, row in ordered], selection.panel)
    tested = [each._replace(row=replace(each.row, margin=margins.get(row.key))) for each, row in ordered]
    rows = [replace(row, margin=margins.get(row.key)) for _, row in ordered]
    rows = mark_left_out(rows, selection.alignments, settings.alpha)
    rows = [_note_replies(row, selection, settings) if selection.designs[row.system].whole else row for row in rows]
    names = (selection.first, *selection.others)
    tables = [selection.known[name].table for name in names]
    users = [name for table in tables if table is not None for name in table.fields if name.lower() in USERS]
    ignored = [*fields, *users, *list_ways(cluster, None), *filter(None, [replicate])]
    listed = [runs] if isinstance(runs, Run) else runs.values() if isinstance(runs, dict) else runs
    split = [line for run in listed if isinstance(run, Run) for line in run.warnings if _SPLIT in line]
    mixes = (compare_mixes(selection.first, *each, ignored, settings) for each in selection.alignments.items())
    comparison = Comparison(
        baseline=selection.first,
        systems=list(selection.others),
        **asdict(panel.settings),
        designs=selection.designs,
        panel=selection.panel,
        adjusted_for=tuple(fields),
        warnings=tuple(dict.fromkeys([*split, *(line for lines in mixes for line in lines)])),
        differences=rows,
        untested=selection.untested,
        signatures={
            key: str(estimate.signature)
            for key, estimate in selection.known[selection.first].items()
            if estimate.signature is not None and any(key in shared for shared in selection.common.values())
        },
        margins=margins,
        weight=weight,
        cluster=cluster,
        replicate=replicate,
        estimand=describe_estimand(selection, weight),
        pairs=panel.pairs,
        ranking=panel.ranking,
        accounts=describe_accounts({name: selection.known[name].account for name in names}),
    )
    return comparison, tested


class _Family(NamedTuple):
    """The tests of metrics whose p-values are adjusted together."""

    tests: list[tuple[Tested, Difference]]
    """Each difference as it was tested, and with the adjusted p-value."""
    pairs: int
    """Tests of systems other than the baseline with each other, under the metric of the ranking."""
    ranking: SystemRanking | None
    settings: Settings
    """With the trials and resamples that were made."""


def _test_family(
    selection: Selection,
    settings: Settings,
    fields: Sequence[str],
    asked: bool,
    repeat: bool,
    share: float,
    pairwise: bool = False,
    most_tests: int | None = None,
) -> _Family:
    """Test all metrics of a selection as one family; `repeat`: with as many trials as that takes.

    `asked`: the metrics were named. `share`: the fraction of alpha that an adjusted p can be below.
    """
    if repeat:
        tests, pairs = sum(map(len, selection.tested.values())), math.comb(len(selection.others), 2) if pairwise else 0
        every = tests + (pairs if pairs <= (most_tests or pairs) else 0)
        needed = choose_trials(tests, settings.alpha, share), choose_trials(every, settings.alpha, 1.0)
        settings = replace(settings, trials=max(settings.trials, *needed))
    while True:
        tested = _test_differences(selection, settings, fields, asked)
        untestable = {each.row.key for each in tested if math.isnan(each.row.p)}
        ranked = _choose_ranked(selection, untestable, most_tests) if pairwise and not fields else None
        counted = any(each.row.key == ranked and each.row.interval_by == "tango" for each in tested)
        between = _test_pairs(selection, ranked, settings, not counted) if ranked is not None else []
        rows = _adjust([*tested, *between], settings)
        more = draw_more([*tested, *between], rows, selection.designs, settings) if repeat else settings
        if more == settings:
            ranking = None if ranked is None else _rank_systems(selection, ranked, rows)
            return _Family(list(zip(tested, rows, strict=False)), len(between), ranking, settings)
        settings = more  # of all tests, since p-values are adjusted by the same permutations


def _test_differences(selection: Selection, settings: Settings, fields: Sequence[str], asked: bool) -> list[Tested]:
    """Compare each system with the baseline, not yet adjusted for many tests; `asked`: the metrics were named."""
    tested, cells = [], 0
    for each in _find_differences(selection, settings, fields):
        bounds = find_bounds(each.row.key, selection.known[selection.first][each.row.key])
        cells += 0 if each.draws is None else len(each.draws[1])
        kept = each if cells <= MOST_DRAWS else each._replace(draws=None)
        settled = kept.settle(bounds, settings.confidence, selection.designs[each.row.system].clusters)
        directed = settled.row.better is not None and settled.row.key in selection.panel
        evidence = directed if asked else settled.row.evidence  # what was asked for is no mere description
        tested.append(settled._replace(row=replace(settled.row, evidence=evidence)))
    return tested


def draw_more(
    tested: Sequence[Tested], rows: Sequence[Difference], designs: Mapping[str, Design], settings: Settings
) -> Settings:
    """Return the settings with the trials and resamples after which no p-value is near alpha, within limits.

    `rows`: the differences with adjusted p-values. The error of an adjusted p is mostly that of p. Where p is not that
    of the trials, its error is that of the resamples of its interval, if it has some, and what the other tests add.
    Resamples are as many as they are where another number than the default was chosen.
    """
    made, needed = (settings.trials, settings.resamples), [0.0, 0.0]
    for each, row in zip(tested, rows, strict=True):
        drawn = each.draws is not None and len(each.draws[1]) > settings.trials  # else every permutation once, or none
        by_trials = each.draws is not None and each.p_of_draws
        resampled = not by_trials and row.interval_by == "studentized" and settings.resamples == DEFAULT_RESAMPLES
        of_others = (row.adjusted_p - row.p) * (1 - row.adjusted_p + row.p)
        away = row.adjusted_p - settings.alpha
        for at, number in enumerate(made):
            variance = 0.0 if by_trials or at else of_others
            if row.p and (by_trials, resampled)[at]:  # of a p-value that no trial reaches the error is 0
                variance = (row.adjusted_p / row.p) ** 2 * (row.p - 1 / (number + 1)) * (1 - row.p)
            if variance > 0 and (drawn, resampled)[at]:
                enough = _NEAR**2 * variance / away**2 if away else math.inf
                needed[at] = max(needed[at], enough if enough > number else 0)
    clusters = max((design.clusters for design in designs.values()), default=0) or 1
    cells = sum(_CELLS_OF_CORPUS if row.corpus else 1 for row in rows) + _CELLS_OF_TRIAL * len(designs)
    most = min(_MOST_CELLS / max(clusters * cells, 1), _MOST_REPEATED)
    trials, resamples = (
        max(round(min(max(number, 4 * before), most)), before) if number else before
        for number, before in zip(needed, made, strict=True)
    )
    return replace(settings, trials=trials, resamples=resamples)


def _find_margins(
    margin: float | Mapping[str, float] | None, rows: Sequence[Difference], panel: Sequence[str]
) -> dict[str, float]:
    """Return the margin of each metric; one number is that of all metrics of the panel with a better direction."""
    directions = {row.key: row.better for row in rows}
    if margin is None:
        return {}
    if isinstance(margin, Mapping):
        margins = {find_key(key, directions): value for key, value in margin.items()}
    else:
        margins = {key: margin for key in panel if directions.get(key) is not None}
    check_margins(margins, directions)
    return margins


def _note_replies(row: Difference, selection: Selection, settings: Settings) -> Difference:
    """Return a difference of dialogues as wholes, with a note where that of replies has another sign."""
    means = [selection.known[name][row.key].mean for name in (row.baseline, row.system)]
    if row.corpus or not row.p < settings.alpha or (means[1] - means[0]) * row.difference >= 0:
        return row
    way = "higher" if means[1] > means[0] else "lower"
    return replace(row, note=f"per reply it is {way}; dialogues with different numbers of turns are compared as wholes")


def _choose_ranked(selection: Selection, untestable: Container[str], most_tests: int | None) -> str | None:
    """Return the first metric that says which replies are better, and under which all pairs of systems are tested.

    Metrics whose differences to the baseline have no p-value are passed over (`untestable`). It is a mean if many pairs
    of a corpus value would take long, unless there is none and tests are not limited. None for two systems or without
    such a metric.
    """
    names = [selection.first, *selection.others]
    pairs = math.comb(len(names), 2)
    baseline = selection.known[selection.first]
    if not 1 < pairs <= (most_tests or pairs):
        return None
    shared = [key for key in selection.panel if key in baseline and key not in untestable]
    results = selection.known.values()
    hidden = [key for key in shared if any(key in result and result[key].missing for result in results)]
    last = [key for key in shared if key == FAILURES and hidden]  # what leaves failures out ranks no system
    keys = [key for key in shared if key not in (FAILURES, *hidden)] + last
    if pairs > _MOST_CORPUS_PAIRS:
        slow = [key for key in keys if baseline[key].corpus]
        keys = [key for key in keys if key not in slow] + (slow if most_tests is None else [])
    for key in keys:
        metric = find_metric(baseline[key])
        if metric is None or not metric.better or metric.descriptive:
            continue
        if all(key in selection.known[name] for name in names):
            return None if any((name, key) in selection.left_out for name in names) else key
    return None


def _rank_systems(selection: Selection, key: str, rows: Sequence[Difference]) -> SystemRanking | None:
    """Order the systems by a metric, with the groups that the tests of all pairs do not tell apart.

    None where not all pairs were tested, or where a significant difference contradicts the order, since it is over the
    rows that both systems have a value for.
    """
    names = [selection.first, *selection.others]
    found = [row for row in rows if row.key == key]
    significant = [row for row in found if row.significant]
    sign = -1.0 if find_better(selection.known, key) == "higher" else 1.0
    order = sorted(names, key=lambda name: sign * selection.known[name][key].mean)
    contradicted = any(row.worse != (order.index(row.system) > order.index(row.baseline)) for row in significant)
    if len(found) < math.comb(len(names), 2) or contradicted or any(math.isnan(row.p) for row in found):
        return None
    different = {frozenset((row.baseline, row.system)) for row in significant}
    return SystemRanking(key, order, find_homogeneous_groups(order, different), len(found))


def _test_pairs(selection: Selection, key: str, settings: Settings, same: bool) -> list[Tested]:
    """Test every two systems other than the baseline under a key; nothing where some pair has another design.

    `same`: they are means whose p-values follow from swapping dialogues alone.
    """
    names, designs = list(selection.others), {design.name for design in selection.designs.values()}
    order = None
    if designs == {"paired"} and not any(each.changed for each in selection.alignments.values()):
        order = sort_clusters(*(selection.known[name] for name in (selection.first, *names)))  # that of the baseline
    same = same and selection.replicate is None and all(each.by_row for each in selection.alignments.values())
    values = {name: Values.of(selection.known[name], [key], alone=True) for name in names}
    if order is not None and same and all(each.items for each in values.values()):
        return exchange_means(values, {name: selection.known[name][key] for name in names}, key, settings, order)
    # Only p-values are used, which do not depend on the resamples of intervals.
    settings = replace(settings, resamples=min(settings.resamples, _PAIR_RESAMPLES))
    found: list[Tested] = []
    run = Run({name: selection.known[name] for name in names}, __version__)
    try:
        for at, name in enumerate(names[:-1]):
            ways: dict[str, Any] = {"cluster": selection.cluster, "replicate": selection.replicate}
            pair = select(run, name, names[at + 1 :], [key], selection.design, **ways)
            found += (each._replace(curve=None) for each in _find_differences(pair, settings, (), order))
            designs |= {design.name for design in pair.designs.values()}
    except SettingError:  # two of the systems cannot be compared with each other
        return []
    return [] if len(designs) > 1 or designs & {"common", "openings"} else found


def _find_differences(
    selection: Selection, settings: Settings, fields: Sequence[str], order: Ints | None = None
) -> Iterator[Tested]:
    """Compare each system by its design, key by key, over all the ways in which clusters were sampled."""
    found = _find_one_way(selection, settings, fields, order)
    if not selection.crossed:
        return found
    ways, quick = [selection.alignments, *selection.crossed], replace(settings, trials=1, resamples=_PAIR_RESAMPLES)
    others = [] if selection.replicate is not None else selection.crossed
    errors = (_find_one_way(replace_fields(selection, alignments=way), quick, fields) for way in others)
    return cross_tests(zip(found, *errors, strict=True), ways, selection.replicate, settings)


def _find_one_way(
    selection: Selection, settings: Settings, fields: Sequence[str], order: Ints | None = None
) -> Iterator[Tested]:
    """Compare each system by its design, key by key; a key that must not be compared has the reason.

    `order`: that of the clusters of systems that are paired on all of their units, if it is known.
    """
    first, known, tested = selection.first, selection.known, selection.tested
    same = [name for name, each in selection.alignments.items() if each.design.name != "unpaired" and not each.changed]
    keys = [key for key in known[first] if any(key in tested[name] for name in same)]
    shared = None
    if keys:
        order = sort_clusters(known[first], *(known[name] for name in same)) if order is None else order
        shared = Baseline(first, known[first], settings, keys, order, order.tobytes())
    for name, alignment in selection.alignments.items():
        left, right, here = alignment.left, alignment.right, tested[name]
        if alignment.design.name == "unpaired":
            strata = list_strata(left, right, fields)
            found = compare_unpaired(first, name, left, right, here, settings, strata)
        elif fields:
            what = "have the same units, so that their case mix is the same"
            raise SettingError(f"{name} and {first} {what}; leave --adjust out, or choose --design unpaired")
        else:
            own = None if alignment.changed else shared
            own = own or Baseline(first, left, settings, here, sort_clusters(left, right))
            found = own.compare(name, right, here, alignment.by_row)
        rows = {each.row.key: each for each in found}
        for key in selection.common[name]:
            if key not in rows:
                without = subtract_estimates(first, name, known[first][key], known[name][key], key)
                rows[key] = Tested(replace(without, difference=math.nan, reason=selection.left_out[name, key]))
            yield rows[key]


def adjust_together(compared: Sequence[tuple[Comparison, list[Tested]]]) -> list[Comparison]:
    """Return the comparisons with the p-values of all of them adjusted as one family."""
    everything = [
        tested if tested.draws is None else tested._replace(draws=((at, tested.draws[0]), tested.draws[1]))
        for at, (_, each) in enumerate(compared)
        for tested in each
    ]
    rows = iter(_adjust(everything, compared[0][0]) if compared else [])
    return [
        replace(
            comparison,
            differences=[  # what was left out is known by rows, and not by tests
                replace(new, missing=old.missing, left_out=old.left_out)
                for old, new in zip(comparison.differences, islice(rows, len(each)), strict=True)
            ],
        )
        for comparison, each in compared
    ]


def _adjust(tested: Sequence[Tested], settings: Settings | Comparison) -> list[Difference]:
    """Return the differences of a family with adjusted p-values, and the intervals that agree with these."""
    ps, alpha = westfall_young([each.row.p for each in tested], [each.draws for each in tested]), settings.alpha
    rows = []
    for each, p in zip(tested, ps, strict=True):
        tail = alpha * each.row.p / p if p else alpha
        interval = each.find_interval(tail)
        if interval is not None and each.row.interval is not None and tail <= 1 - settings.confidence:
            (low, high), (least, largest) = interval, each.row.interval  # a higher level is never narrower
            interval = min(low, least), max(high, largest)
        rows.append(replace(each.row, adjusted_p=p, significant=p < alpha, adjusted_interval=interval))
    return rows


def choose_trials(tests: int, alpha: float, share: float = STRONG) -> int:
    """Return the trials with which some of many tests can be far below alpha.

    After Holm's correction the least p is tests / trials. There are one and a half times as many trials as it takes for
    a p of `share` times alpha, in thousands.
    """
    enough = max(LEAST_TRIALS, math.ceil(1.5 * tests / (share * alpha) / 1000) * 1000)
    if enough > MOST_TRIALS:
        raise SettingError(
            f"an alpha of {alpha:g} for {tests} tests takes {enough:,} trials, more than the limit of "
            f"{MOST_TRIALS:,}; choose a larger --alpha, fewer metrics (-m), or --trials"
        )
    return enough


# Best systems of a table: the system with the best value of each metric, and those not significantly worse.
#
# The system with the best value of a metric is compared with all others. It was chosen by the data, so its comparisons
# are corrected as if every two systems had been compared under every metric (multiple comparisons with the best, by
# Bonferroni over all pairs): with equal systems, one is left out with a probability of at most alpha. Where that would
# take very many tests, only the best value is returned; systems that were not scored on the same units have no best.


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
    means = {key: {name: result[key].mean for name, result in real.items() if key in result} for key in keys}
    best: dict[str, list[str]] = {}
    for key, of in means.items():
        known, better = [mean for mean in of.values() if not math.isnan(mean)], find_better(real, key)
        if len(of) > 1 and known and better is not None:
            top = max(known) if better == "higher" else min(known)
            best[key] = [name for name, mean in of.items() if mean == top]
    pairs = sum(math.comb(len(means[key]), 2) for key in best)
    ranking = None if comparison is None else comparison.ranking
    if comparison is not None and len(real) == 2:
        best = {key: list(means[key]) for key in best}
    elif tested and 0 < sum(len(means[key]) - 1 for key in best) <= MOST_TESTS:
        try:
            others = {key: names for key, names in best.items() if ranking is None or key != ranking.key}
            compared = {key: _compare_with_best(real, key, names, pairs) for key, names in others.items()}
        except SettingError:  # the run does not know its rows
            compared, pairs = {}, 0
        designs = [each.designs.values() for each in (comparison, *compared.values()) if each is not None]
        if any(design.name == "unpaired" for of in designs for design in of):
            return Best({}, 0)
        for key, each in compared.items():
            rows = [row for row in each.differences if row.key == key and row.system not in best[key]]
            undecided = (row for row in rows if row.p * pairs >= DEFAULT_ALPHA or row.left_out is not None)
            best[key] += [row.system for row in undecided]
    else:
        pairs = 0
    if ranking is not None and ranking.key in best:
        first = {name for group in ranking.groups if ranking.systems[0] in group for name in group}
        best[ranking.key] = [name for name in ranking.systems if name in first]
    for row in () if comparison is None else comparison.differences:
        beaten = {"worse": row.system, "better": row.baseline}.get(decide(row))
        best[row.key] = [name for name in best.get(row.key, []) if name != beaten]
    decided = pairs > 0 or ranking is not None
    kept = {key: names for key, names in best.items() if names and (len(names) < len(means[key]) or not decided)}
    return Best(kept, pairs)


def _compare_with_best(real: Mapping[str, Result], key: str, names: Sequence[str], pairs: int) -> Comparison:
    """Compare the first of the systems with the best value of a key with all others."""
    others = [name for name in real if name != names[0] and key in real[name]]
    trials = choose_trials(pairs, DEFAULT_ALPHA, 1.0)
    run = Run(dict(real), __version__)
    return compare(run, baseline=names[0], systems=others, metrics=[key], trials=trials, pairwise=False)
