"""Agreement of judges with people about labels and about pairs, and the rows on which they disagree most.

`compare_labels` compares a metric with the label that most annotators gave: the metric's value is rounded to the
nearest label. Rows on which annotators are split are left out and counted, and so are metrics whose values are not on
the scale of the labels. `stats.labels` has the statistics; their intervals are over dialogues.

`measure_pair_agreement` compares the preferences of a judge with those of the human majority: the fraction of pairs in
which it prefers the same response, where a tie of the judge counts a half. Next to it is the same for the rule that the
longer response is better, which needs no judge.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from typing import Any

import numpy as np
from msgspec import Struct

from dialeval.analysis.agreement import match_metrics, read_rated
from dialeval.analysis.matching import RatedRows, score_ratings
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate
from dialeval.core.result import Run
from dialeval.core.run_schema import Record
from dialeval.core.signature import Signature, name_family
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.engine.intervals import compute_interval
from dialeval.engine.resources import Resources
from dialeval.io.ratings import OVERALL
from dialeval.metrics.registry import split_names
from dialeval.stats.intervals import DEFAULT_LEVEL
from dialeval.stats.labels import (
    compare_labels,
    correct_rate,
    count_confusions,
    estimate_bias,
    estimate_rate_size,
)

JUDGES = ("llm", "judge", "adem")
"""Families of metrics that are judges."""
_MOST_LABELS = 12
FEWEST_DIALOGUES = 10
"""Of a regression of errors on features."""
SAME_FAMILY = "same model family"
_LIST = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+\S", re.MULTILINE)


class RateEstimate(Struct, frozen=True):
    """A value with its interval over dialogues, of n rows."""

    value: float
    interval: tuple[float, float]
    n: int


class CorrectedRate(Struct, frozen=True):
    """How often a judge says yes about all rows of a system, and the same without its known errors."""

    judged: RateEstimate
    corrected: RateEstimate


class LabelFit(Struct, frozen=True):
    """The agreement of the labels of a metric with human labels."""

    n: int
    confusion: Sequence[Sequence[int]]
    """Rows with each label by people (a line) and by the metric (a column)."""
    statistics: Mapping[str, RateEstimate]
    """With two labels also `tpr` and `tnr`, the fractions of human yes (the higher label) and no that it repeats."""
    rates: Mapping[str, CorrectedRate] = {}
    """Of two labels, the rates of yes of each system of a run."""
    bias: Mapping[str, RateEstimate] = {}
    """By feature of the reply: how much the metric less the label of people changes with it; NaN: not known."""


class Dispute(Struct, frozen=True):
    """A row on which a metric and people differ, by its id, where ratings have one."""

    metric: str
    id: str | None
    human: float
    value: float
    gap: float
    """The difference of both in standard deviations."""


class LabelAgreement(Displayable, Tabular, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `compare_labels`, and its JSON."""

    version: str
    quality: str
    labels: Sequence[float]
    metrics: Mapping[str, LabelFit]
    split: int
    """Rows without a label that most annotators gave."""
    excluded: Sequence[str]
    """Metrics that are not on the scale of the labels."""
    judges: Sequence[str]
    disputes: Sequence[Dispute]
    level: float

    def lines(self) -> list[JsonObject]:
        """Return one line per metric and statistic."""
        return [
            {"metric": key, "statistic": name, "n": each.n, "value": each.value}
            | dict(zip(("low", "high"), each.interval, strict=True))
            for key, fit in self.metrics.items()
            for name, each in fit.statistics.items()
        ]


def measure_label_agreement(
    subject: object,
    ratings: object = None,
    *,
    quality: str = OVERALL,
    metrics: str | Iterable[str] | None = None,
    level: float = DEFAULT_LEVEL,
    fields: Mapping[str, str] | None = None,
    sample: str | PathLike[str] | None = None,
    most: int = 20,
    models: Mapping[str, str] | None = None,
) -> LabelAgreement:
    """Compare the labels of metrics with those of people.

    Args:
        subject: A run, the folder of a saved one, or rated rows.
        ratings: The rated rows of a run's responses.
        quality: Quality (score name) to use.
        metrics: Only these.
        level: The level of the intervals.
        fields: The names of fields in the rated rows.
        sample: The folder that the rated rows were drawn into, where ratings name them by their ids.
        most: How many rows on which they differ most are listed.
        models: The model behind each system, to estimate how judges grade systems of their own model family; also
            those behind metrics that are grades of a language model and whose signatures do not name it.

    Returns:
        The agreement of each metric.

    Raises:
        SettingError: The ratings are no labels, no metric is on their scale, or a model is missing.
    """
    names = split_names(metrics) if isinstance(metrics, str) else None if metrics is None else list(metrics)
    run, rated, _ = read_rated(subject, ratings, quality, fields, sample, names)
    if run is None:
        rows = score_ratings(rated, quality, Resources(), names)
    else:
        rows = match_metrics(run, rated, quality, names)
    known = np.flatnonzero(~np.isnan(rows.human))
    majority = np.full(len(rows), np.nan)
    for row in known.tolist():
        values, counts = np.unique(rated.annotations[quality][row], return_counts=True)
        if (counts == counts.max()).sum() == 1:
            majority[row] = values[counts.argmax()]
    labels = np.unique(np.concatenate([rated.annotations[quality][row] for row in known.tolist()] or [np.empty(0)]))
    if not 2 <= len(labels) <= _MOST_LABELS:
        raise SettingError(f"{quality} has {len(labels)} different values; labels are 2 to {_MOST_LABELS} of them")
    fits, excluded = {}, []
    families = {} if models is None else _mark_families(models, _name_systems(run, rated, known), rows)
    for key, values in rows.metrics.items():
        there = ~np.isnan(values) & ~np.isnan(majority)
        half = float(np.diff(labels).min()) / 2
        off_scale = (values[there] < labels[0] - half) | (values[there] > labels[-1] + half)
        if not there.any() or off_scale.any():
            excluded.append(key)
            continue
        nearest = np.abs(values[there][:, None] - labels).argmin(axis=1)
        human, size = np.searchsorted(labels, majority[there]), int(there.sum())
        table = count_confusions(human, nearest, len(labels), np.zeros(size, np.int64))[0].astype(int).tolist()
        found = compare_labels(human, nearest, len(labels), rows.dialogue[there], level)
        statistics = {name: RateEstimate(*each, size) for name, each in found.items()}
        rates: Mapping[str, CorrectedRate] = {}
        if len(labels) == 2 and 0 < human.sum() < size:
            hits, dialogue = (human == nearest).astype(np.float64), rows.dialogue[there]
            sides = {"tpr": human == 1, "tnr": human == 0}
            statistics |= {name: estimate_rate(hits[side], dialogue[side], level) for name, side in sides.items()}
            sizes = {name: estimate_rate_size(hits[side], dialogue[side]) for name, side in sides.items()}
            tpr, tnr = ((statistics[name].value, sizes[name]) for name in sides)
            rates = {} if run is None else _correct_rates(run, key, labels, (tpr, tnr), level)
        texts = [(rated.responses[row], len(rated.contexts[row])) for row in np.flatnonzero(there).tolist()]
        family = families[key][there] if key in families else None
        bias = _measure_bias(values[there] - majority[there], texts, family, rows.dialogue[there], level)
        fits[key] = LabelFit(size, table, statistics, rates, bias)
    if not fits:
        raise SettingError(f"no metric has values on the scale of {quality}, {labels[0]:g} to {labels[-1]:g}")
    judges = [
        key for key in fits if key.partition("(")[0].split("-")[0] in JUDGES and "/" not in key.rpartition(")")[2]
    ]
    return LabelAgreement(
        version=__version__,
        quality=quality,
        labels=labels.tolist(),
        metrics=fits,
        split=int(len(known) - (~np.isnan(majority)).sum()),
        excluded=excluded,
        judges=judges,
        disputes=_find_disputes({key: rows.metrics[key] for key in judges or fits}, rows.human, rated, most),
        level=level,
    )


def _name_systems(run: Run | None, rated: Any, known: Ints) -> list[str | None]:
    """Return the system of each rated row; None of rows without a rating."""
    real = [] if run is None else [name for name in run if name not in run.baselines]
    named = [name or (real[0] if len(real) == 1 else "") for name in rated.systems]
    rows = set(known.tolist())
    return [name if row in rows else None for row, name in enumerate(named)]


def _mark_families(models: Mapping[str, str], systems: Sequence[str | None], rows: RatedRows) -> dict[str, Floats]:
    """Return, for each metric that is a judge of a known model, whether that is of the family of each row's system."""
    if "" in systems:
        raise SettingError("rated rows without a system have no model; give each its system")
    if unknown := models.keys() - {*systems, *rows.metrics}:
        raise SettingError(f"no system or metric is called {min(unknown)}: a model is of one of those with ratings")
    if missing := {name for name in systems if name is not None} - models.keys():
        raise SettingError(f"the model behind {min(missing)} is not known; name that of every system")
    judges = {}
    for key in rows.metrics:
        signature = Signature.parse(rows.signatures[key]) if key in rows.signatures else {}
        stated = signature.get("model", signature["llm"].partition(",prompt=")[0]) if "llm" in signature else ""
        if model := models.get(key, stated):
            judges[key] = name_family(model)
    if not judges:
        raise SettingError(f"no metric names the model of its judge; name it as well: {next(iter(rows.metrics))}=MODEL")
    own = {name: name_family(models[name]) for name in systems if name is not None}
    if strange := {name for name, family in (own | judges).items() if not family}:
        raise SettingError(f"the model of {min(strange)} begins with no letters that name a family")
    return {
        key: np.array([name is not None and own[name] == family for name in systems], np.float64)
        for key, family in judges.items()
    }


def _measure_bias(
    errors: Floats, texts: Sequence[tuple[str, int]], family: Floats | None, dialogue: Ints, level: float
) -> dict[str, RateEstimate]:
    """Return how errors depend on length, place and format of replies; nothing where dialogues are few.

    `family`: whether each reply is by a system of the judge's model family; NaN where that cannot be estimated.
    """
    features = {
        "twice as many words": [np.log2(1 + len(text.split())) for text, _ in texts],
        "twice as many turns before": [np.log2(1 + turns) for _, turns in texts],
        "a list": [len(_LIST.findall(text)) > 1 for text, _ in texts],
        "code": ["```" in text for text, _ in texts],
    }
    unknown = {}
    if family is not None:
        features[SAME_FAMILY] = family.tolist()
        unknown[SAME_FAMILY] = RateEstimate(np.nan, (np.nan, np.nan), len(errors))
    columns = {name: np.array(column, np.float64) for name, column in features.items() if len(set(column)) > 1}
    if not columns or len(np.unique(dialogue)) < FEWEST_DIALOGUES:
        return unknown
    found = estimate_bias(errors, np.column_stack(list(columns.values())), dialogue, level)
    known = {name: RateEstimate(*each, len(errors)) for name, each in zip(columns, found, strict=True)}
    return known if SAME_FAMILY in columns else known | unknown


def _correct_rates(
    run: Run, key: str, labels: Floats, known: tuple[tuple[float, float], tuple[float, float]], level: float
) -> dict[str, CorrectedRate]:
    """Return how often a metric says yes about each system, and the corrected rate."""
    rates = {}
    for name, result in run.items():
        scores, table = (result[key].scores if key in result else None), result.table
        if result.role != "system" or scores is None or table is None:
            continue
        there = ~np.isnan(scores)
        clusters = table.clusters if len(scores) == len(table) else np.arange(len(scores))
        if there.any():
            hits = (np.abs(scores[there][:, None] - labels).argmin(axis=1) == 1).astype(np.float64)
            judged = estimate_rate(hits, clusters[there], level)
            size = estimate_rate_size(hits, clusters[there])
            corrected = correct_rate((judged.value, size), *known, level)
            rates[name] = CorrectedRate(judged, RateEstimate(*corrected, judged.n))
    return rates


def _find_disputes(metrics: Mapping[str, Floats], human: Floats, rated: Any, most: int) -> list[Dispute]:
    """Return the rows on which metrics and people differ most, in standard deviations of each, the strongest first."""
    found = []
    for key, column in metrics.items():
        there = np.flatnonzero(~np.isnan(column) & ~np.isnan(human)).tolist()
        values, ratings = column[there], human[there]
        if len(there) < 2 or not values.std() or not ratings.std():
            continue
        gaps = (values - values.mean()) / values.std() - (ratings - ratings.mean()) / ratings.std()
        rows = zip(there, ratings.tolist(), values.tolist(), gaps.tolist(), strict=True)
        found += [Dispute(key, rated.ids[row], *each) for row, *each in rows]
    return sorted(found, key=lambda each: -abs(each.gap))[:most]


class PairAgreement(Struct, frozen=True, kw_only=True):
    """The agreement of the preferences of a judge with human preferences."""

    pairs: int
    """Pairs of which most annotators prefer one response, and the judge has a verdict."""
    judge: RateEstimate
    """Fraction of pairs in which the judge prefers the same response; its ties count a half."""
    longer: RateEstimate
    """The same for the rule that the longer response is better."""
    difference: RateEstimate
    """Judge less longer."""


def estimate_rate(
    values: Floats, dialogue: Ints, level: float = DEFAULT_LEVEL, bounds: Bounds = (0, 1)
) -> RateEstimate:
    """Return the mean of values with its interval over dialogues; NaN are left out."""
    order = np.argsort(dialogue, kind="stable")
    sizes = np.bincount(np.unique(dialogue, return_inverse=True)[1].ravel())
    estimate = Estimate.of_moments(Moments.of(values[order], offsets_of(sizes)), bounds)
    found = compute_interval(estimate, bounds, level)
    return RateEstimate(estimate.mean, (np.nan, np.nan) if found is None else found[0], estimate.scored)


def measure_pair_agreement(
    human: Ints, judge: Floats, length_ratio: Floats, dialogue: Ints, level: float = DEFAULT_LEVEL
) -> PairAgreement:
    """Compare the preferences of a judge with those of people.

    Args:
        human: 1 where most people prefer the first response, -1 the second, 0 neither.
        judge: The same of the judge; NaN where it has no verdict.
        length_ratio: The logarithm of the ratio of the lengths, first to second.
        dialogue: The number of each pair's dialogue.
        level: The level of the intervals.

    Returns:
        The agreement over pairs with a preference of people and a verdict.
    """
    there = (human != 0) & ~np.isnan(judge)
    human, judge, ratio, dialogue = human[there], judge[there], np.sign(length_ratio[there]), dialogue[there]
    if not len(human):
        raise SettingError("no pair has both a human preference and a verdict of the judge")
    right, longer = (1 + human * judge) / 2, (1 + human * ratio) / 2
    return PairAgreement(
        pairs=len(human),
        judge=estimate_rate(right, dialogue, level),
        longer=estimate_rate(longer, dialogue, level),
        difference=estimate_rate(right - longer, dialogue, level, (-1, 1)),
    )
