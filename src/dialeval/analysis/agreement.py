"""Agreement with people: how far each metric ranks responses, dialogues and systems as they do.

At three levels, each with Pearson's r, Spearman's rho and Kendall's tau-b:

- `turn`: one point per rated response;
- `dialogue`: one point per system and dialogue, the means over its rated responses (or the rating of the whole);
- `system`: one point per system, the means over its rated responses.

Only rows with both values count: n says how many. Intervals are percentiles of a bootstrap that draws whole dialogues,
with the replies of all systems to it; equal seeds mean equal resamples, so metrics are compared on the same ones. What
the figures are to be read against: the agreement of the annotators (`annotators`), and the length of the response,
which needs no reference and no model (`control`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from os import PathLike, cpu_count
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.analysis.annotators import Ceiling, ceiling
from dialeval.analysis.control import CONTROL, differences_of, not_above_control
from dialeval.analysis.correlation import NAMES, MeanPoints, Points, p_values
from dialeval.analysis.dependent import Difference
from dialeval.analysis.draws import DEFAULT_LEVEL, DEFAULT_RESAMPLES, DEFAULT_SEED, draws, percentiles
from dialeval.analysis.levels import LEVELS, count_points, points_of
from dialeval.analysis.matching import RatedRows, match_ratings, score_ratings
from dialeval.core.arrays import Floats
from dialeval.core.errors import SettingError
from dialeval.core.result import RUN_FILE, Run, load
from dialeval.core.version import __version__
from dialeval.data.rows.ratings import OVERALL, Ratings, read_ratings
from dialeval.engine.resources import Resources
from dialeval.metrics.registry import registry, split_names


@dataclass(frozen=True)
class Correlation:
    """How far one metric agrees with people at one level; `reason` says why there are no figures."""

    n: int
    values: Mapping[str, float] = field(default_factory=dict)
    intervals: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    p: Mapping[str, float] = field(default_factory=dict)
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

    def to_dict(self) -> dict[str, Any]:
        """The figures for JSON; NaN is null."""
        found: dict[str, Any] = {"n": self.n}
        found |= {name: _number(self.values.get(name)) for name in NAMES}
        for name in NAMES:
            interval = self.intervals.get(name)
            found[f"{name}_interval"] = None if interval is None else [_number(bound) for bound in interval]
        found |= {f"{name}_p": _number(self.p.get(name)) for name in NAMES}
        return found | ({} if self.reason is None else {"reason": self.reason})


@dataclass(frozen=True)
class Agreement:
    """What `dialeval.agreement` gives: `agreement["bleu-4"]["turn"].spearman`."""

    quality: str
    metrics: Mapping[str, Mapping[str, Correlation]]
    ceiling: Ceiling
    level: str
    """The level at which metrics are compared with each other and with the control: the first that has figures."""
    not_above_control: Sequence[str]
    """Metrics that are not significantly above the length of the response."""
    differences: Sequence[Difference]
    resamples: int
    seed: int
    confidence: float
    rows: int
    rated: int
    signatures: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    warnings: Sequence[str] = ()
    version: str = __version__

    def __getitem__(self, metric: str) -> Mapping[str, Correlation]:
        return self.metrics[metric]

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; NaN is null."""
        found = {
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
            "bootstrap": {"resamples": self.resamples, "seed": self.seed, "confidence": self.confidence},
            "signatures": dict(self.signatures),
            "skipped": dict(self.skipped),
            "warnings": list(self.warnings),
        }
        cleaned: dict[str, Any] = _cleaned(found)
        return cleaned


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
    threads: int | None = None,
) -> Agreement:
    """How far metrics agree with human scores.

    `subject`: a run or the folder of a saved one, with `ratings` the rated rows of its responses; or the rated rows
    themselves, which are then scored by `metrics` (None: all that they allow). Rated rows: a file (.jsonl, .json, .csv,
    .tsv, .parquet) or a list of objects with `response`, `scores` and, where known, `reference`, `context`, `system`
    and `dialog_id`; `fields` maps their names. `quality`: which of the `scores` counts. `levels`: some of turn,
    dialogue, system. `train`, `vocabulary`, `embeddings`, `settings`: as in `dialeval.evaluate`.
    """
    run = _run_of(subject)
    rated = _ratings_of(subject if run is None else ratings, fields)
    if quality not in rated.values:
        raise SettingError(f"nobody rated {quality!r}; there is {', '.join(rated.values)}")
    if run is None:
        resources = Resources(train, vocabulary, embeddings)
        asked = None if metrics is None else [*_names(metrics), CONTROL]
        rows = score_ratings(rated, quality, resources, asked, settings)
    else:
        rows = _chosen(match_ratings(run, rated, quality), metrics)
    if CONTROL not in rows.metrics:
        words = np.array([len(response.split()) for response in rated.responses], np.float64)
        rows = replace(rows, metrics={**rows.metrics, CONTROL: words})
    return agree(
        rows,
        rated.annotations[quality],
        quality,
        levels=levels,
        resamples=resamples,
        seed=seed,
        confidence=confidence,
        threads=threads,
    )


def _run_of(subject: Any) -> Run | None:
    """The run that a subject is or that lies in it; None for anything else."""
    if isinstance(subject, Run) or not isinstance(subject, str | PathLike):
        return subject if isinstance(subject, Run) else None
    path = Path(subject)
    return load(path) if path.is_dir() or path.name == RUN_FILE else None


def _ratings_of(source: Any, fields: Mapping[str, str] | None) -> Ratings:
    if source is None:
        raise SettingError("a run says nothing about people; give the ratings of its responses as well")
    return source if isinstance(source, Ratings) else read_ratings(source, fields)


def _names(metrics: str | Iterable[str]) -> list[str]:
    return split_names(metrics) if isinstance(metrics, str) else list(metrics)


def _chosen(rows: RatedRows, metrics: str | Iterable[str] | None) -> RatedRows:
    """The metrics of a run that are asked for, by their keys or by families."""
    if metrics is None:
        return rows
    wanted: list[str] = []
    for name in _names(metrics):
        group = [name] if name in rows.metrics else [metric.name for metric in registry().select([name])]
        there = [*rows.metrics] if name == "all" else [key for key in group if key in rows.metrics]
        if not there:
            raise SettingError(f"the run has no {name}; it has {', '.join(rows.metrics)}")
        wanted += there
    return replace(rows, metrics={key: rows.metrics[key] for key in dict.fromkeys(wanted)})


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
    asked = _checked(levels, resamples, confidence)
    points = {(key, level): points_of(rows, key, level) for key in rows.metrics for level in asked}
    drawable = {place: each for place, each in points.items() if not isinstance(each, str)}
    samples = _resampled(drawable, int(rows.dialogue.max(initial=-1)) + 1, resamples, seed, threads)
    found: dict[str, dict[str, Correlation]] = {key: {} for key in rows.metrics}
    for (key, level), each in points.items():
        n = count_points(rows, key, level)
        if isinstance(each, str):
            found[key][level] = Correlation(n, reason=each)
        else:
            found[key][level] = _correlation(each, samples[key, level], confidence)
    level = next((at for at in asked if any(not math.isnan(found[key][at].pearson) for key in found)), asked[0])
    signed = [key for (key, at), each in drawable.items() if at == level and isinstance(each, Points)]
    differences = differences_of(rows, signed, level, resamples, seed)
    return Agreement(
        quality,
        found,
        ceiling([values for values, human in zip(annotations, rows.human, strict=True) if not math.isnan(human)]),
        level,
        not_above_control(differences, signed),
        differences,
        resamples,
        seed,
        confidence,
        len(rows),
        int((~np.isnan(rows.human)).sum()),
        rows.signatures,
        rows.skipped,
        _warnings(rows, found, asked),
    )


def _checked(levels: Sequence[str] | None, resamples: int, confidence: float) -> Sequence[str]:
    asked = LEVELS if levels is None else levels
    unknown = [level for level in asked if level not in LEVELS]
    if unknown or not asked:
        raise SettingError(f"the levels of agreement are {', '.join(LEVELS)}, not {', '.join(unknown) or 'none'}")
    if resamples < 1:
        raise SettingError(f"there is at least one resample, not {resamples}")
    if not 0 < confidence < 1:
        raise SettingError(f"a confidence level lies between 0 and 1, such as 0.95; it is not {confidence}")
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
    values = points.values()
    return Correlation(
        len(points),
        dict(zip(NAMES, values.tolist(), strict=True)),
        {name: percentiles(samples[:, column], confidence) for column, name in enumerate(NAMES)},
        dict(zip(NAMES, p_values(points, values).tolist(), strict=True)),
    )


def _warnings(rows: RatedRows, found: Mapping[str, Mapping[str, Correlation]], asked: Sequence[str]) -> list[str]:
    told = []
    if rows.unmatched:
        told.append(f"{rows.unmatched} of {len(rows)} rated rows do not stand in the run and are left out")
    both = {"turn", "dialogue"} <= set(asked)
    if both and any(each["turn"].n and each["turn"].n == each["dialogue"].n for each in found.values()):
        told.append("every dialogue has one rated turn: the levels turn and dialogue are the same")
    return told


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _cleaned(value: Any) -> Any:
    """Plain data with null for NaN, lists for tuples."""
    if isinstance(value, Mapping):
        return {key: _cleaned(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_cleaned(inner) for inner in value]
    return _number(value) if isinstance(value, float) else value
