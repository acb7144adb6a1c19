"""Agreement with people: how far each metric ranks responses, dialogues and systems as they do.

At three levels, each with Pearson's r, Spearman's rho and Kendall's tau-b:

- `turn`: one point per rated response;
- `dialogue`: one point per system and dialogue, the means over its rated responses (or the rating of the whole);
- `system`: one point per system, the means over its rated responses.

Only rows that people rated and that every metric scores count, so that n is the same for all (`levels.on_common_rows`);
what that leaves out is told. Intervals and p-values are over dialogues, with the replies of all systems to them: of
turns and dialogues Student's on Fisher's z scale (`jackknife`); of systems, of which there are few and whose order a
single dialogue hardly changes, percentiles of a bootstrap that draws whole dialogues, with Student's factor
(`intervals.interval`), and p = the value over its standard deviation in the resamples. The p of all coefficients of all
metrics at one level are one family (Holm), since they stand in one table. Pearson's r has heavy tails where the
kurtosis of the metric or of the ratings is above 6, twice that of normal values: it then rests on few points, intervals
may be too narrow, and a warning says so. What the figures are to be read against: the agreement of the annotators
(`annotators`), and the length of the response, which needs no reference and no model (`metric_differences`).
`metric_ranking` says which metrics can be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import product
from os import PathLike, cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.annotators import Ceiling, ceiling
from dialeval.analysis.correlation import NAMES, MeanPoints, Points, kurtosis
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, check_resampling, draws
from dialeval.analysis.influence import leaving_out
from dialeval.analysis.intervals import interval
from dialeval.analysis.jackknife import FISHER, jackknife
from dialeval.analysis.levels import LEVELS, NoPointsError, on_common_rows, points_of
from dialeval.analysis.matching import RatedRows, match_ratings, on_one_scale, score_ratings
from dialeval.analysis.metric_differences import CONTROL, MetricDifference, metric_differences
from dialeval.analysis.metric_ranking import RANKED_BY, Ranking, not_above, rank
from dialeval.analysis.pairing import keys_meant
from dialeval.analysis.sampling import read_sample
from dialeval.analysis.significance import holm, least_p
from dialeval.core.arguments import checked
from dialeval.core.arrays import Floats
from dialeval.core.display import Shown, listed
from dialeval.core.errors import SettingError
from dialeval.core.jsondata import null_for_nan
from dialeval.core.plain_text import plain
from dialeval.core.result import RUN_FILE, Run, load
from dialeval.core.student import two_sided_p
from dialeval.core.tabular import Tabular
from dialeval.core.version import __version__
from dialeval.data.rows.ratings import OVERALL, Ratings, read_ratings
from dialeval.engine.resources import Resources
from dialeval.metrics.registry import split_names
from dialeval.text.tokenise import Tokeniser

if TYPE_CHECKING:
    import pyarrow as pa

LEAST_SPREAD = 1e-9
"""Of ratings, relative to their size."""
HEAVY_TAILS = 6.0
"""The kurtosis of metric or ratings above which Pearson's r rests on few points; that of normal values is 3."""


@dataclass(frozen=True)
class Correlation:
    """How far one metric agrees with people at one level; `reason` says why there are no figures."""

    n: int
    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    p: Mapping[str, float] = field(default_factory=dict)
    adjusted_p: Mapping[str, float] = field(default_factory=dict)
    """Corrected (Holm) for all coefficients of all metrics at the same level."""
    reason: str | None = None

    @property
    def pearson(self) -> float:
        """Pearson's r."""
        return self.values.get("pearson", math.nan)

    @property
    def spearman(self) -> float:
        """Spearman's rho."""
        return self.values.get("spearman", math.nan)

    @property
    def kendall(self) -> float:
        """Kendall's tau-b."""
        return self.values.get("kendall", math.nan)

    def flat(self) -> dict[str, float | None]:
        """Return each coefficient, its interval, its p and its adjusted p, under names of their own; None for none."""
        figures: dict[str, float | None] = {}
        for name in NAMES:
            low, high = self.intervals.get(name, (None, None))
            figures |= {name: self.values.get(name), f"{name}_low": low, f"{name}_high": high}
            figures |= {f"{name}_p": self.p.get(name), f"{name}_adjusted_p": self.adjusted_p.get(name)}
        return figures

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON; NaN is null."""
        figures = {
            "n": self.n,
            **{name: self.values.get(name) for name in NAMES},
            **{f"{name}_interval": self.intervals.get(name) for name in NAMES},
            **{f"{name}_p": self.p.get(name) for name in NAMES},
            **{f"{name}_adjusted_p": self.adjusted_p.get(name) for name in NAMES},
        }
        plain: dict[str, Any] = null_for_nan(figures if self.reason is None else {**figures, "reason": self.reason})
        return plain


@dataclass(frozen=True, repr=False)
class Agreement(Tabular, Shown):
    """What `dialeval.agreement` gives: `agreement["bleu-4"]["turn"].spearman`."""

    quality: str
    metrics: Mapping[str, Mapping[str, Correlation]]
    ceiling: Ceiling
    level: str
    """The level at which metrics are compared with each other and with the control: the first that has figures."""
    not_above_control: Sequence[str]
    """Metrics that are not significantly better than the length of the response, by the ranking."""
    differences: Sequence[MetricDifference]
    resamples: int
    seed: int
    confidence: float
    rows: int
    rated: int
    ranking: Ranking
    """The metrics at `level`, the best first, in groups that cannot be told apart."""
    excluded: Sequence[str] = ()
    """Which rated rows and metrics were left out so that all metrics have the same rows, and why."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    version: str = __version__

    def __getitem__(self, metric: str) -> Mapping[str, Correlation]:
        return self.metrics[metric]

    def __repr__(self) -> str:
        return f"<Agreement with {plain(self.quality)}: {listed(self.metrics, 'metric')}, {self.rated:,} rated rows>"

    def _ipython_key_completions_(self) -> list[str]:
        return list(self.metrics)

    def lines(self) -> list[dict[str, Any]]:
        """One line per metric and level."""
        return [
            {"metric": key, "level": level, "n": each.n, **each.flat(), "reason": each.reason}
            for key, levels in self.metrics.items()
            for level, each in levels.items()
        ]

    def to_arrow(self) -> pa.Table:
        """One line per metric and level: n, and each coefficient with the ends of its interval, p and adjusted p."""
        import pyarrow as pa

        texts, numbers = ("metric", "level", "reason"), ("n",)
        names = ["metric", "level", "n", *Correlation(0).flat(), "reason"]
        kinds = [pa.string() if name in texts else pa.int64() if name in numbers else pa.float64() for name in names]
        return pa.Table.from_pylist(self.lines(), pa.schema(zip(names, kinds, strict=True)))

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN is null."""
        document = {
            "dialeval": self.version,
            "quality": self.quality,
            "rows": self.rows,
            "rated": self.rated,
            "agreement": {
                key: {level: each.to_dict() for level, each in levels.items()} for key, levels in self.metrics.items()
            },
            "ceiling": asdict(self.ceiling),
            "control": {"metric": CONTROL, "level": self.level, "not_above": list(self.not_above_control)},
            "differences": [asdict(difference) for difference in self.differences],
            "ranking": {
                "by": RANKED_BY,
                "level": self.ranking.level,
                "tests": self.ranking.tests,
                "metrics": [asdict(place) for place in self.ranking.places],
            },
            "excluded": list(self.excluded),
            "bootstrap": {"resamples": self.resamples, "seed": self.seed, "confidence": self.confidence},
            "signatures": dict(self.signatures),
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }
        plain: dict[str, Any] = null_for_nan(document)
        return plain


@checked
def agreement(
    subject: Any,
    ratings: Any = None,
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
    embeddings: Any = None,
    settings: Mapping[str, Mapping[str, object]] | None = None,
    tokeniser: Tokeniser | None = None,
    threads: int | None = None,
    sample: str | PathLike[str] | None = None,
) -> Agreement:
    """How far metrics agree with human scores.

    `subject`: a run or the folder of a saved one, with `ratings` the rated rows of its responses; or the rated rows
    themselves, which are then scored by `metrics` (None: all that they allow). Rated rows: a file (.jsonl, .json, .csv,
    .tsv, .parquet) or a list of objects with `response`, `scores` and, where known, `reference`, `context`, `system`
    and `dialog_id`; `fields` maps their names. `quality`: which of the `scores` counts. `levels`: some of turn,
    dialogue, system. `train`, `vocabulary`, `embeddings`, `settings`, `tokeniser`: as in `dialeval.evaluate`. `sample`:
    the folder that the rated rows were drawn into, where ratings name them by their ids.
    """
    run = _run_of(subject)
    rated = _ratings_of(subject if run is None else ratings, fields, sample)
    if quality not in rated.values:
        raise SettingError(f"nobody rated {quality!r}; there is {', '.join(rated.values)}")
    rated, rescaled = on_one_scale(rated, quality)
    names = split_names(metrics) if isinstance(metrics, str) else None if metrics is None else list(metrics)
    if run is None:
        resources = Resources(train, vocabulary, embeddings)
        asked = None if names is None else [*names, CONTROL]
        rows = score_ratings(rated, quality, resources, asked, settings, tokeniser)
    else:
        rows = match_ratings(run, rated, quality)
        if names is not None:
            keys = keys_meant(names, list(rows.metrics), "the run has no", "it has")
            rows = replace(rows, metrics={key: rows.metrics[key] for key in keys})
    if CONTROL not in rows.metrics:
        words = np.array([len(response.split()) for response in rated.responses], np.float64)
        if rows.unmatched and rows.metrics:  # the run does not have these rows
            words[np.all([np.isnan(values) for values in rows.metrics.values()], axis=0)] = np.nan
        rows = replace(rows, metrics={**rows.metrics, CONTROL: words})
    found = agree(
        rows,
        rated.annotations[quality],
        quality,
        levels=levels,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
        threads=threads,
    )
    return found if rescaled is None else replace(found, warnings=[rescaled, *found.warnings])


def _run_of(subject: Any) -> Run | None:
    """The run that a subject is or that lies in it; None for anything else."""
    if isinstance(subject, str | PathLike):
        path = Path(subject)
        return load(path) if path.is_dir() or path.name == RUN_FILE else None
    return subject if isinstance(subject, Run) else None


def _ratings_of(source: Any, fields: Mapping[str, str] | None, sample: str | PathLike[str] | None) -> Ratings:
    if source is None:
        raise SettingError("a run says nothing about people; give the ratings of its responses as well")
    sampled = None if sample is None else read_sample(sample).by_id()
    return source if isinstance(source, Ratings) else read_ratings(source, fields, sampled)


def agree(
    rows: RatedRows,
    annotations: Sequence[Floats],
    quality: str,
    *,
    levels: Sequence[str] | None = None,
    resamples: int = DEFAULT_RESAMPLES,
    seed: int = DEFAULT_SEED,
    confidence: float = DEFAULT_LEVEL,
    threads: int | None = None,
) -> Agreement:
    """The agreement of every metric of some rated rows with the ratings; `annotations` are the values behind them."""
    asked = _checked(levels)
    check_resampling(confidence, resamples)
    _check_spread(rows.human, quality)
    points: dict[tuple[str, str], Points | MeanPoints] = {}
    correlations: dict[tuple[str, str], Correlation] = {}
    rows, left_out, excluded = on_common_rows(rows)
    for key, level in product(rows.metrics, asked):
        try:
            points[key, level] = points_of(rows, key, level)
        except NoPointsError as error:
            correlations[key, level] = Correlation(error.n, reason=left_out.get(key, str(error)))
    level = next((at for at in asked if any(at == own for _, own in points)), asked[0])
    drawn_for = {place: each for place, each in points.items() if place[1] == level or isinstance(each, MeanPoints)}
    samples = _resampled(drawn_for, int(rows.dialogue.max(initial=-1)) + 1, resamples, seed, threads)
    nothing = np.empty((0, len(NAMES)))
    with ThreadPoolExecutor(threads or cpu_count() or 1) as pool:
        made = pool.map(lambda at: _correlation(points[at], samples.get(at, nothing), confidence), points)
        correlations |= dict(zip(points, made, strict=True))
    for at in asked:
        correlations |= _adjusted({place: each for place, each in correlations.items() if place[1] == at})
    found = {key: {level: correlations[key, level] for level in asked} for key in rows.metrics}
    signed = [key for (key, at), each in points.items() if at == level and isinstance(each, Points)]
    differences = metric_differences(rows, signed, level, resamples, seed)
    here = {key: each for (key, at), each in points.items() if at == level}
    column = NAMES.index(RANKED_BY)
    drawn = {key: samples[key, level][:, column] for key in here}
    clusters = max((each.dialogues for each in here.values()), default=0)
    ranking = rank(level, {key: found[key][level].values[RANKED_BY] for key in here}, drawn, clusters)
    return Agreement(
        quality,
        found,
        ceiling([values for values, human in zip(annotations, rows.human, strict=True) if not math.isnan(human)]),
        level,
        not_above(ranking, CONTROL),
        differences,
        resamples,
        seed,
        confidence,
        len(rows),
        int((~np.isnan(rows.human)).sum()),
        ranking,
        excluded,
        rows.signatures,
        rows.skipped,
        [*_warnings(rows, found, asked), *_heavy_tails(points)],
    )


def _check_spread(human: Floats, quality: str) -> None:
    known = human[~np.isnan(human)]
    if len(known) and 0 < np.ptp(known) <= LEAST_SPREAD * np.abs(known).max():
        raise SettingError(
            f"the ratings of {quality} differ by less than a billionth of their size, which is hardly more than the "
            "rounding of their means; subtract what they have in common"
        )


def _checked(levels: Sequence[str] | None) -> Sequence[str]:
    asked = LEVELS if levels is None else levels
    unknown = [level for level in asked if level not in LEVELS]
    if unknown or not asked:
        raise SettingError(f"the levels of agreement are {', '.join(LEVELS)}, not {', '.join(unknown) or 'none'}")
    return asked


def _resampled(
    points: Mapping[tuple[str, str], Points | MeanPoints], clusters: int, resamples: int, seed: int, threads: int | None
) -> dict[tuple[str, str], Floats]:
    """The coefficients of every resample, a row each; every metric and level sees the same resamples."""
    parts: dict[tuple[str, str], list[Floats]] = {place: [] for place in points}
    with ThreadPoolExecutor(threads or cpu_count() or 1) as pool:
        for counts in draws(clusters, resamples, seed):
            made = pool.map(lambda each, counts=counts: each.resampled(counts), points.values())
            for place, values in zip(points, made, strict=True):
                parts[place].append(values)
    return {place: np.concatenate(values) for place, values in parts.items()}


def _correlation(points: Points | MeanPoints, samples: Floats, confidence: float) -> Correlation:
    """Return the coefficients of some points with their intervals; `samples` are those of resamples, for systems."""
    values = dict(zip(NAMES, points.values().tolist(), strict=True))
    if isinstance(points, Points):
        clusters, codes = np.unique(points.clusters, return_inverse=True)
        own = Points(points.first, points.second, codes.ravel())
        without = np.concatenate([own.resampled(counts) for counts in leaving_out(len(clusters))])
        sizes = np.bincount(own.clusters).astype(np.float64)
        made = {name: jackknife(values[name], without[:, at], sizes, FISHER) for at, name in enumerate(NAMES)}
        intervals = {name: each.interval(confidence) for name, each in made.items()}
        return Correlation(len(points), values, intervals, {name: each.p for name, each in made.items()})
    found = {
        name: _over_resamples(values[name], column, points.dialogues, confidence)
        for name, column in zip(NAMES, samples.T, strict=True)
    }
    intervals, ps = {name: ends for name, (ends, _) in found.items()}, {name: p for name, (_, p) in found.items()}
    return Correlation(len(points), values, intervals, ps)


def _over_resamples(value: float, drawn: Floats, clusters: int, confidence: float) -> tuple[tuple[float, float], float]:
    """Return the interval of a correlation of systems and its p, which is not below 1 - confidence if 0 is within."""
    known = drawn[~np.isnan(drawn)]
    if clusters < 2 or len(known) < 2:
        return (math.nan, math.nan), math.nan
    low, high = interval(known, confidence, clusters)
    error = float(known.std(ddof=1)) * math.sqrt(clusters / (clusters - 1))
    p = two_sided_p(value / error, clusters - 1) if error else least_p(clusters) if value else 1.0
    return (low, high), max(p, 1 - confidence) if low <= 0 <= high else p


_AtLevel = dict[tuple[str, str], Correlation]


def _adjusted(correlations: _AtLevel) -> _AtLevel:
    """Return the correlations of one level with their p corrected as one family."""
    tests = [(place, name, p) for place, each in correlations.items() for name, p in each.p.items()]
    adjusted: dict[tuple[str, str], dict[str, float]] = {}
    for (place, name, _), p in zip(tests, holm([p for *_, p in tests]), strict=True):
        adjusted.setdefault(place, {})[name] = p
    return {place: replace(each, adjusted_p=adjusted.get(place, {})) for place, each in correlations.items()}


def _heavy_tails(points: Mapping[tuple[str, str], Points | MeanPoints]) -> list[str]:
    """Return warnings about values of Pearson's r that rest on few points."""
    heavy: dict[str, list[str]] = {}
    for (key, level), each in points.items():
        if isinstance(each, Points):
            columns = {key: each.first, "the ratings": each.second}
            heavy.setdefault(level, []).extend(
                name for name, column in columns.items() if kurtosis(column) > HEAVY_TAILS
            )
    return [
        f"{', '.join(dict.fromkeys(names))} at {level} level: heavy tails (kurtosis above {HEAVY_TAILS:g}), so that "
        "Pearson's r rests on few points and its interval may be too narrow; Spearman's rho does not"
        for level, names in heavy.items()
        if names
    ]


def _warnings(rows: RatedRows, found: Mapping[str, Mapping[str, Correlation]], asked: Sequence[str]) -> list[str]:
    warnings = []
    if rows.unmatched:
        warnings.append(f"{rows.unmatched} of {len(rows)} rated rows are not in the run and are left out")
    both = {"turn", "dialogue"} <= set(asked)
    if both and any(each["turn"].n and each["turn"].n == each["dialogue"].n for each in found.values()):
        warnings.append("every dialogue has one rated turn: the levels turn and dialogue are the same")
    return warnings
