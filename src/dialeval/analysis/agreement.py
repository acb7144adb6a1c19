"""Agreement of metrics with human ratings: correlations over responses, dialogues and systems.

At three levels, each with Pearson's r, Spearman's rho and Kendall's tau-b:

- `turn`: one point per rated response;
- `dialogue`: one point per system and dialogue, the means over its rated responses (or the rating of the whole);
- `system`: one point per system, the means over its rated responses.

Only rows that people rated and that every metric scores count, so that n is the same for all (`keep_common_rows`); what
that leaves out is reported (`excluded`). A judge has no value on rows that it learned from (`find_training_rows`).
Intervals and p-values are Student's on Fisher's z scale (`jackknife`): of turns and dialogues over dialogues, with the
replies of all systems to them; of systems over systems, since a correlation of systems is about further systems. There
they need `FEWEST_SYSTEMS` systems, and the interval contains what the sampled dialogues contribute. The p of all
coefficients of all metrics at one level are one family (Holm), since they are in one table. Pearson's r has heavy tails
where the kurtosis of the metric or of the ratings is above 6, twice that of normal values: it then rests on few points,
intervals may be too narrow, and a warning says so. Coefficients are to be read against the ceiling that the annotators
set (`correlation.measure_ceiling`; a Pearson correlation above it is flagged), and the length of the response, which
needs no reference and no model (`list_not_above`). `rank_metrics` tests which metrics differ.

Metrics are ranked by Spearman's rho with the human scores, turned so that higher is better (`find_direction`). Two
metrics are compared by a bootstrap that draws whole dialogues and gives both metrics the same resamples:

    t = (rho1 - rho2) / (standard deviation of rho1 - rho2 over the resamples * sqrt(k / (k - 1)))

with k dialogues and k - 1 degrees of freedom, two-sided; p is adjusted for all pairs (Holm). At the level of systems
whole systems are drawn instead, from `FEWEST_SYSTEMS` systems on. Groups are letters, as in the compact displays of
statisticians: two metrics share a letter exactly if they do not differ significantly. A metric may be in several
groups, for it may be close to two others that differ.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import combinations, product
from os import PathLike, cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np
from msgspec import Struct

from dialeval.analysis.matching import (
    FEWEST_SYSTEMS,
    LEVELS,
    NoPointsError,
    RatedRows,
    bring_to_one_scale,
    find_used_rows,
    keep_common_rows,
    make_points,
    match_ratings,
    number_points,
    score_ratings,
)
from dialeval.analysis.pairing import find_keys
from dialeval.core.arrays import Floats
from dialeval.core.display import Displayable, Tabular, count_names
from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.features import find_place
from dialeval.core.result import Run, load
from dialeval.core.rowtable import RUN_FILE
from dialeval.core.run_schema import Record
from dialeval.core.version import __version__
from dialeval.engine.plan import list_fields
from dialeval.engine.resources import Resources
from dialeval.io.ratings import OVERALL, Ratings, read_ratings
from dialeval.metrics.registry import registry, split_names
from dialeval.stats.correlation import NAMES, Ceiling, Points, kurtosis, measure_ceiling, measure_highest_correlation
from dialeval.stats.intervals import DEFAULT_LEVEL, two_sided_p
from dialeval.stats.resampling import (
    DEFAULT_RESAMPLES,
    DEFAULT_SEED,
    FISHER,
    check_resampling,
    draw_resamples,
    jackknife,
    leave_out_clusters,
)
from dialeval.stats.significance import find_homogeneous_groups, holm, letter_display
from dialeval.text.tokenizers import Tokenizer

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_SPREAD = 1e-9
"""Of ratings, relative to their size."""
HEAVY_TAILS = 6.0
"""The kurtosis of metric or ratings above which Pearson's r rests on few points; that of normal values is 3."""
RANKED_BY = "spearman"
SIGNIFICANT = 0.05
CONTROL = "length"
"""The metric that every other is compared with."""
_ROUNDING = 1e-12
"""Two correlations that differ by less than that are equal."""

Interval = tuple[float, float]


class Correlation(Record, frozen=True, kw_only=True):
    """The correlation of one metric with human ratings at one level.

    Attributes:
        n: The number of points: responses, dialogues or systems.
        pearson: Pearson's r.
        spearman: Spearman's rho.
        kendall: Kendall's tau-b.
        pearson_interval: The confidence interval of Pearson's r.
        spearman_interval: The confidence interval of Spearman's rho.
        kendall_interval: The confidence interval of Kendall's tau-b.
        pearson_p: The p-value of Pearson's r.
        spearman_p: The p-value of Spearman's rho.
        kendall_p: The p-value of Kendall's tau-b.
        pearson_adjusted_p: The p-value adjusted by Holm's method for all coefficients of all metrics at the level.
        spearman_adjusted_p: The same of Spearman's rho.
        kendall_adjusted_p: The same of Kendall's tau-b.
        reason: Why there are no coefficients.

    Examples:
        >>> import dialeval
        >>> rated = [
        ...     {"response": "yes " * n, "reference": "yes " * 9, "scores": {"overall": n // 2}, "dialog_id": str(n)}
        ...     for n in range(1, 9)
        ... ]
        >>> found = dialeval.measure_agreement(rated, metrics="rouge-l", resamples=100)
        >>> found["rouge-l"]["turn"].n, found["rouge-l"]["system"].reason
        (8, 'no rated row names its system')
    """

    n: int
    pearson: float = math.nan
    spearman: float = math.nan
    kendall: float = math.nan
    pearson_interval: Interval | None = None
    spearman_interval: Interval | None = None
    kendall_interval: Interval | None = None
    pearson_p: float = math.nan
    spearman_p: float = math.nan
    kendall_p: float = math.nan
    pearson_adjusted_p: float = math.nan
    spearman_adjusted_p: float = math.nan
    kendall_adjusted_p: float = math.nan
    reason: str | None = None

    def flat(self) -> dict[str, float | None]:
        """Return each coefficient, the ends of its interval, its p-value and its adjusted p-value, by name.

        Returns:
            Names and numbers; None where there is none.
        """
        found: dict[str, float | None] = {}
        for name in NAMES:
            low, high = getattr(self, f"{name}_interval") or (None, None)
            found |= {name: getattr(self, name), f"{name}_low": low, f"{name}_high": high}
            found |= {f"{name}_{p}": getattr(self, f"{name}_{p}") for p in ("p", "adjusted_p")}
        return found if self.reason is None else dict.fromkeys(found)


class Place(Struct, frozen=True):
    """A metric in the ranking."""

    metric: str
    value: float
    """Its correlation, turned so that higher is better."""
    turned: bool
    """Whether that is -1 times its correlation."""
    groups: str
    """A letter for each group that it is in."""


class MetricRanking(Struct, frozen=True):
    """The metrics that have coefficients at one level, the best first."""

    by: str
    level: str
    tests: int
    """The pairs that were tested."""
    metrics: Sequence[Place]
    test: str = ""
    """The test of the difference of two correlations."""
    p: Mapping[str, Mapping[str, float]] = {}
    """The adjusted p-value of each two metrics, the better one first; NaN where they were not tested."""

    def differ(self, one: str, other: str) -> bool:
        """Return whether two metrics differ significantly: they share no letter."""
        groups = [re.findall("[a-z][0-9]*", place.groups) for place in self.metrics if place.metric in (one, other)]
        return len(groups) == 2 and set(groups[0]).isdisjoint(groups[1])


class Control(Struct, frozen=True):
    """The length of the response, as a metric."""

    metric: str
    level: str
    """The level at which metrics are compared with each other and with the control: the first with coefficients."""
    not_above: Sequence[str]
    """Metrics that are not significantly better than the control, by the ranking."""


class Bootstrap(Struct, frozen=True):
    """Resamples and seed of the bootstrap that compares metrics, and the confidence level of all intervals."""

    resamples: int
    seed: int
    confidence: float


class Agreement(
    Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval", "metrics": "agreement"}
):
    """The result of `dialeval.measure_agreement`: `agreement["rouge-l"]["turn"].spearman`.

    Attributes:
        version: The version of dialeval.
        quality: The quality that was rated.
        units: The number of rated responses or dialogues.
        rated: How many of them have a rating of the quality.
        metrics: The correlations, by metric and level.
        ceiling: The agreement of the annotators over the same rows, and the highest correlation that it allows.
        above_ceiling: By level, the metrics whose Pearson's r is above the ceiling: by chance, or because they have
            seen the ratings.
        control: The length of the response as a metric, and which metrics are not significantly better than it.
        ranking: The metrics, best first, in groups without significant differences.
        excluded: Rated rows and metrics that were left out so that all metrics have the same rows, and why.
        bootstrap: Resamples, seed and confidence.
        signatures: The signatures of the metrics.
        skipped: Metrics that could not be computed, each with its reason.
        warnings: Remarks about the data.

    Examples:
        >>> import dialeval
        >>> rated = [
        ...     {"response": "yes " * n, "reference": "yes " * 9, "scores": {"overall": n // 2}, "dialog_id": str(n)}
        ...     for n in range(1, 9)
        ... ]
        >>> dialeval.measure_agreement(rated, metrics="rouge-l", resamples=100)
        <Agreement with overall: 2 metrics (rouge-l, length), 8 rated rows>
    """

    version: str
    quality: str
    units: int
    rated: int
    metrics: Mapping[str, Mapping[str, Correlation]]
    ceiling: Ceiling
    above_ceiling: Mapping[str, Sequence[str]]
    control: Control
    ranking: MetricRanking
    excluded: Sequence[str]
    bootstrap: Bootstrap
    signatures: Mapping[str, str]
    skipped: Mapping[str, str]
    warnings: Sequence[str]

    def __getitem__(self, metric: str) -> Mapping[str, Correlation]:
        return self.metrics[metric]

    def __repr__(self) -> str:
        metrics = count_names(self.metrics, "metric")
        return f"<Agreement with {escape_controls(self.quality)}: {metrics}, {self.rated:,} rated rows>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.metrics)

    def lines(self) -> list[dict[str, Any]]:
        """Return a line per metric and level: n, and each coefficient with its interval, p-value and adjusted p-value.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [
            {"metric": key, "level": level, "n": each.n, **each.flat(), "reason": each.reason}
            for key, levels in self.metrics.items()
            for level, each in levels.items()
        ]

    def to_arrow(self) -> pa.Table:
        """Return a line per metric and level as an Arrow table."""
        import pyarrow as pa

        types = {"metric": pa.string(), "level": pa.string(), "n": pa.int64()}
        types |= {**dict.fromkeys(Correlation(n=0).flat(), pa.float64()), "reason": pa.string()}
        return pa.Table.from_pylist(self.lines(), pa.schema(types.items()))


def measure_agreement(
    subject: object,
    ratings: object = None,
    *,
    quality: str = OVERALL,
    metrics: str | Iterable[str] | None = None,
    levels: Sequence[str] | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
    confidence: float = DEFAULT_LEVEL,
    fields: Mapping[str, str] | None = None,
    train: Any = None,
    vocabulary: Any = None,
    vectors: Any = None,
    judge: Any = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    tokenizer: Tokenizer | None = None,
    threads: int | None = None,
    sample: str | PathLike[str] | None = None,
) -> Agreement:
    """Correlate metrics with human ratings over turns, dialogues and systems.

    Coefficients are Pearson's r, Spearman's rho and Kendall's tau-b, with confidence intervals over dialogues; of
    systems, over systems. Rows that a judge learned from are left out.

    Rated rows are objects with `response`, `scores` and, where known, `reference`, `context`, `system` and `dialog_id`.

    Args:
        subject: A run or the folder of a saved one; or the rated rows, a file (.jsonl, .json, .csv, .tsv, .parquet) or
            a list, which are then scored by `metrics`.
        ratings: The rated rows of the responses, where `subject` is a run.
        quality: Which of the `scores` counts.
        metrics: The metrics, in a comma-separated text or a list; None: all of the run, or all that the rows allow.
        levels: Some of `turn`, `dialogue` and `system`; None: all.
        resamples: Resamples of the bootstrap.
        seed: Their seed.
        confidence: The confidence level of the intervals.
        fields: The names of fields in the rated rows, by ours.
        train: The training text, as in `dialeval.evaluate`.
        vocabulary: The in-vocabulary words, likewise.
        vectors: Word vectors, likewise.
        judge: A judge or the folder of one, likewise.
        settings: Settings of metric families, likewise.
        tokenizer: The tokenizer, likewise.
        threads: The number of threads; None: one per core.
        sample: The folder of the sample that was rated, where ratings name rows by their ids.

    Returns:
        The correlations by metric and level, and which metrics differ significantly.

    Raises:
        DataError: The rated rows cannot be read.
        SettingError: There are no ratings of the quality, the metric does not exist, or it learned from all ratings.

    Examples:
        >>> import dialeval
        >>> rated = [
        ...     {"response": "yes " * n, "reference": "yes " * 9, "scores": {"overall": n // 2}, "dialog_id": str(n)}
        ...     for n in range(1, 9)
        ... ]
        >>> found = dialeval.measure_agreement(rated, metrics="rouge-l", resamples=100)
        >>> round(found["rouge-l"]["turn"].spearman, 3)
        0.982
    """
    names = split_names(metrics) if isinstance(metrics, str) else None if metrics is None else list(metrics)
    run, rated, rescaled = read_rated(subject, ratings, quality, fields, sample, names)
    if run is None:
        resources = Resources(train, vocabulary, vectors, judge)
        asked = None if names is None else [*names, CONTROL]
        rows = score_ratings(rated, quality, resources, asked, settings, tokenizer)
    else:
        rows = match_metrics(run, rated, quality, names)
    trained = [key for key in rows.learned if np.isnan(rows.metrics[key]).all()]
    if trained and {*trained} >= {key for key in rows.metrics if key != CONTROL}:
        raise SettingError(f"{', '.join(trained)} learned from all of these ratings; measure agreement with others")
    if CONTROL not in rows.metrics:
        words = np.array([len(response.split()) for response in rated.responses], np.float64)
        if rows.unmatched and rows.metrics:  # the run does not have these rows
            words[np.all([np.isnan(values) for values in rows.metrics.values()], axis=0)] = np.nan
        rows = replace(rows, metrics={**rows.metrics, CONTROL: words})
    chosen = (levels, resamples, seed, confidence, threads)
    same_raters = len(who := {*rated.raters.get(quality, [()])}) == 1 and () not in who
    found = correlate_metrics(rows, rated.annotations[quality], quality, *chosen, same_raters)
    return found if rescaled is None else msgspec.structs.replace(found, warnings=[rescaled, *found.warnings])


def read_rated(
    subject: Any,
    ratings: Any,
    quality: str,
    fields: Mapping[str, str] | None,
    sample: str | PathLike[str] | None,
    metrics: Sequence[str] | None,
) -> tuple[Run | None, Ratings, str | None]:
    """Read a run, if there is one, and ratings; return also a sentence if these were brought to one scale."""
    run = subject if isinstance(subject, Run) else None
    if isinstance(subject, str | PathLike) and (Path(subject).is_dir() or Path(subject).name == RUN_FILE):
        run = load(subject)
    rated = subject if run is None else ratings
    if rated is None:
        raise SettingError("a run has no human ratings; give the ratings of its responses as well")
    if not isinstance(rated, Ratings):
        sampled = None if sample is None else find_place("loaders", "sample")(sample).by_id()
        asked = list_fields(metrics) if run is None and metrics is not None else ()
        rated = read_ratings(rated, fields, sampled, *asked)
    if quality not in rated.values:
        raise SettingError(f"no ratings of {quality!r}; there are ratings of {', '.join(rated.values)}")
    return run, *bring_to_one_scale(rated, quality)


def match_metrics(run: Run, rated: Ratings, quality: str, names: Sequence[str] | None) -> RatedRows:
    """Look rated rows up in a run, with the values of some of its metrics."""
    rows = match_ratings(run, rated, quality)
    if names is None:
        return rows
    keys = find_keys(names, list(rows.metrics), "the run has no", "it has")
    return replace(rows, metrics={key: rows.metrics[key] for key in keys})


_Points = dict[tuple[str, str], Points]
"""By metric and level."""


def correlate_metrics(
    rows: RatedRows,
    annotations: Sequence[Floats],
    quality: str,
    levels: Sequence[str] | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
    confidence: float = DEFAULT_LEVEL,
    threads: int | None = None,
    same_raters: bool = False,
) -> Agreement:
    """Correlate every metric of some rated rows with the ratings; `annotations` are the values behind them."""
    asked = LEVELS if levels is None else levels
    if not asked or not set(asked) <= set(LEVELS):
        unknown = ", ".join(at for at in asked if at not in LEVELS)
        raise SettingError(f"the levels of agreement are {', '.join(LEVELS)}, not {unknown or 'none'}")
    check_resampling(confidence, resamples)
    _check_spread(rows.human, quality)
    rows, left_out, excluded = keep_common_rows(rows)
    points: _Points = {}
    correlations: dict[tuple[str, str], Correlation] = {}
    for key, at in product(rows.metrics, asked):
        try:
            points[key, at] = make_points(rows, key, at)
        except NoPointsError as error:
            correlations[key, at] = Correlation(n=error.n, reason=left_out.get(key, str(error)))
    level = next((at for at in asked if any(at == own for _, own in points)), asked[0])
    with ThreadPoolExecutor(threads or cpu_count() or 1) as pool:
        made = pool.map(lambda place: _correlate(points[place], place[1], confidence), points)
        correlations |= dict(zip(points, made, strict=True))
    for at in asked:
        correlations |= _adjust({place: correlations[place] for place in points if place[1] == at})
    here = {key: each for (key, at), each in points.items() if at == level}
    values = {key: getattr(correlations[key, level], RANKED_BY) for key in here}
    clusters = max((len(np.unique(each.clusters)) for each in here.values()), default=0)
    few = level == "system" and clusters < FEWEST_SYSTEMS
    drawn = dict.fromkeys(here, np.empty(0)) if few else _resample(here, resamples, seed, threads)
    ranking = rank_metrics(level, values, drawn, clusters)
    ceiling = _measure_ceiling(rows, annotations, points, same_raters, confidence)
    found = {key: {at: correlations[key, at] for at in asked} for key in rows.metrics}
    rated = ~np.isnan(rows.human)
    return Agreement(
        version=__version__,
        quality=quality,
        units=len(rows),
        rated=int(rated.sum()),
        metrics=found,
        ceiling=ceiling,
        above_ceiling={
            at: [key for key in found if abs(found[key][at].pearson) > highest]
            for at, highest in ceiling.highest.items()
        },
        control=Control(CONTROL, level, list_not_above(ranking, CONTROL)),
        ranking=ranking,
        excluded=excluded,
        bootstrap=Bootstrap(resamples, seed, confidence),
        signatures=rows.signatures,
        skipped=rows.skipped,
        warnings=[*rows.warnings, *_list_warnings(rows, found, asked), *_warn_of_heavy_tails(points)],
    )


def _check_spread(human: Floats, quality: str) -> None:
    known = human[~np.isnan(human)]
    if len(known) and 0 < np.ptp(known) <= LEAST_SPREAD * np.abs(known).max():
        raise SettingError(
            f"the ratings of {quality} differ by less than a billionth of their size, which is hardly more than the "
            "rounding of their means; subtract what they have in common"
        )


def _resample(points: Mapping[str, Points], resamples: int, seed: int, threads: int | None) -> dict[str, Floats]:
    """Return the coefficient by which metrics are ranked in every resample; every metric sees the same resamples."""
    parts: dict[str, list[Floats]] = {key: [] for key in points}
    which = np.unique(np.concatenate([np.empty(0, np.int64), *(each.clusters for each in points.values())]))
    own = [replace(each, clusters=np.searchsorted(which, each.clusters)) for each in points.values()]
    with ThreadPoolExecutor(threads or cpu_count() or 1) as pool:
        for counts in draw_resamples(len(which), resamples, seed):
            made = pool.map(lambda each, counts=counts: each.correlate_resamples(counts), own)
            for key, values in zip(points, made, strict=True):
                parts[key].append(values[:, NAMES.index(RANKED_BY)])
    return {key: np.concatenate(values) for key, values in parts.items()}


def _measure_ceiling(
    rows: RatedRows, annotations: Sequence[Floats], points: _Points, same_raters: bool, confidence: float
) -> Ceiling:
    """Return the agreement of the annotators over the rows that metrics are correlated over, at every level."""
    several = np.array([len(values) > 1 for values in annotations], np.bool_)
    used = {at: find_used_rows(rows, key, at) for key, at in reversed(points)}  # the same of every metric
    counted = np.unique(np.concatenate([*used.values()] or [np.flatnonzero(~np.isnan(rows.human))]))
    ceiling = measure_ceiling([annotations[row] for row in counted.tolist()], rows.dialogue[counted], confidence)
    highest, intervals = {}, {}
    for at in (at for at in LEVELS if at in used and several[used[at]].any()):
        known = used[at][several[used[at]]]
        values = [annotations[row] for row in known.tolist()]
        points_of = number_points(rows, known, at)
        highest[at], intervals[at] = measure_highest_correlation(values, *points_of, same_raters, confidence)
    return msgspec.structs.replace(ceiling, highest=highest, highest_interval=intervals)


def _correlate(points: Points, level: str, confidence: float) -> Correlation:
    """Return the coefficients of some points, with their intervals unless these are of too few systems."""
    values: list[float] = points.correlate().tolist()
    fields: dict[str, Any] = dict(zip(NAMES, values, strict=True))
    if level == "system" and len(points) < FEWEST_SYSTEMS:
        return Correlation(n=len(points), **fields)
    clusters, codes = np.unique(points.clusters, return_inverse=True)
    own = Points(points.first, points.second, codes.ravel())
    without = np.concatenate([own.correlate_resamples(counts) for counts in leave_out_clusters(len(clusters))])
    sizes = np.bincount(own.clusters).astype(np.float64)
    for name, value, column in zip(NAMES, values, without.T, strict=True):
        error = jackknife(value, column, sizes, FISHER)
        fields |= {f"{name}_interval": error.interval(confidence), f"{name}_p": error.p}
    return Correlation(n=len(points), **fields)


def _adjust(correlations: Mapping[tuple[str, str], Correlation]) -> dict[tuple[str, str], Correlation]:
    """Return the correlations of one level with their p corrected as one family."""
    adjusted = iter(holm([getattr(each, f"{name}_p") for each in correlations.values() for name in NAMES]))
    return {
        place: msgspec.structs.replace(each, **{f"{name}_adjusted_p": next(adjusted) for name in NAMES})
        for place, each in correlations.items()
    }


def _warn_of_heavy_tails(points: _Points) -> list[str]:
    """Return warnings about values of Pearson's r that rest on few points."""
    heavy: dict[str, list[str]] = {}
    for (key, level), each in points.items():
        columns = {key: each.first, "the ratings": each.second}
        names = [name for name, column in columns.items() if kurtosis(column) > HEAVY_TAILS]
        heavy.setdefault(level, []).extend(names)
    return [
        f"{', '.join(dict.fromkeys(names))} at {level} level: heavy tails (kurtosis above {HEAVY_TAILS:g}), so "
        "Pearson's r depends on few points and its interval may be too narrow; prefer Spearman's rho"
        for level, names in heavy.items()
        if names
    ]


def _list_warnings(rows: RatedRows, found: Mapping[str, Mapping[str, Correlation]], asked: Sequence[str]) -> list[str]:
    warnings = []
    if rows.unmatched:
        warnings.append(f"{rows.unmatched} of {len(rows)} rated rows are not in the run and are left out")
    both = {"turn", "dialogue"} <= set(asked)
    if both and any(each["turn"].n and each["turn"].n == each["dialogue"].n for each in found.values()):
        warnings.append("every dialogue has one rated turn: the levels turn and dialogue are the same")
    systems = [own["system"].n for own in found.values() if "system" in own and own["system"].reason is None]
    if systems and max(systems) < FEWEST_SYSTEMS:
        warnings.append(f"{max(systems)} systems: no intervals at system level, which need {FEWEST_SYSTEMS} systems")
    return warnings


def find_direction(metric: str, correlation: float) -> float:
    """Return 1, or -1 where lower values are better; where neither is, the sign of the correlation."""
    try:
        better = registry().parse(metric).better
    except SettingError:  # a result of a family that is no metric of its own
        better = "higher"
    return {"higher": 1.0, "lower": -1.0, None: math.copysign(1.0, correlation)}[better]


def rank_metrics(
    level: str, values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int
) -> MetricRanking:
    """Rank metrics by their correlations; `samples` are those of resamples of `clusters` dialogues or systems."""
    signs = {metric: find_direction(metric, value) for metric, value in values.items()}
    turned = {metric: signs[metric] * value for metric, value in values.items()}
    ps = compare_pairs(turned, {metric: signs[metric] * samples[metric] for metric in values}, clusters)
    order = sorted(values, key=lambda metric: -turned[metric])
    different = {frozenset(pair) for pair, p in ps.items() if p < SIGNIFICANT}
    letters = letter_display(find_homogeneous_groups(order, different))
    places = [Place(metric, turned[metric], signs[metric] < 0, letters[metric]) for metric in order]
    over = f"{clusters} {'systems' if level == 'system' else 'dialogues'}"
    test = f"paired bootstrap of the difference in {RANKED_BY} over {over}, Student's t, adjusted by Holm"
    known = ps | {(other, one): p for (one, other), p in ps.items()}
    table = {one: {other: known[one, other] for other in order[at:]} for at, one in enumerate(order[:-1], 1)}
    return MetricRanking(RANKED_BY, level, sum(not math.isnan(p) for p in ps.values()), places, test, table)


def compare_pairs(
    values: Mapping[str, float], samples: Mapping[str, Floats], clusters: int
) -> dict[tuple[str, str], float]:
    """Return the p of the difference of every two metrics, in the order in which they were given, adjusted by Holm."""
    pairs = list(combinations(values, 2))
    ps = [_compute_p(values[one] - values[other], samples[one] - samples[other], clusters) for one, other in pairs]
    return dict(zip(pairs, holm(ps), strict=True))


def list_not_above(ranking: MetricRanking, control: str) -> list[str]:
    """Return the metrics that are not significantly better than a control; none where that has no coefficient."""
    values = {place.metric: place.value for place in ranking.metrics}
    others = [metric for metric in values if metric != control and control in values]
    return [metric for metric in others if values[metric] < values[control] or not ranking.differ(metric, control)]


def _compute_p(difference: float, samples: Floats, clusters: int) -> float:
    """Return the two-sided p of a difference, from its values in resamples; NaN with fewer than two of them."""
    known = samples[~np.isnan(samples)]
    if clusters < 2 or len(known) < 2:
        return math.nan
    error = float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    if error <= _ROUNDING or abs(difference) <= _ROUNDING:
        return 1.0
    return two_sided_p(difference / error, clusters - 1)
