"""The plan: which metrics run on which inputs, and what the others lack. It is made before any work is done.

A metric that was asked for by its own name and cannot run is an error. One that was asked for as part of a group
(`all`, a family, or nothing in particular) is skipped, with one line that says what would bring it back. `all` means
all that measure what is there: nobody who scores responses wants to read that there are no breakdown labels. A metric
that is costly, because it takes longer than all others together, is not among them; `all,adem` adds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Metric
from dialeval.core.needs import Need
from dialeval.engine.resources import lacking
from dialeval.metrics.registry import registry, split_names


@dataclass(frozen=True, slots=True)
class Plan:
    """The metrics to compute, in order, and those left out with the reason."""

    metrics: Mapping[str, Metric[Any]]
    """By the name under which their results are shown: that by which they were asked for."""
    skipped: Mapping[str, str]


def make_plan(
    asked: str | Iterable[str | Metric[Any]] | None,
    available: frozenset[Need],
    settings: Mapping[str, Mapping[str, object]] | None = None,
) -> Plan:
    """Decide what to compute from the inputs that are there; `settings` changes the defaults of families."""
    names = ["all"] if asked is None else split_names(asked) if isinstance(asked, str) else list(asked)
    if not names:
        raise SettingError("no metric was asked for; name some, or `all`")
    metrics: dict[str, Metric[Any]] = {}
    skipped: dict[str, str] = {}
    for name in names:
        for plain in _all(available) if name == "all" else registry().select([name]):
            metric = _with(plain, settings or {})
            reasons = _reasons(metric, available)
            if not reasons:
                metrics[plain.name] = metric
            elif registry().is_group(name):
                skipped[plain.name] = reasons
            else:
                raise NeedError(f"{plain.name} {reasons}")
    if not metrics:
        lacking = "; ".join(f"{key} {reason}" for key, reason in skipped.items())
        raise NeedError(f"nothing can be computed: {lacking}")
    return Plan(metrics, skipped)


def _all(available: frozenset[Need]) -> list[Metric[Any]]:
    """What `all` stands for."""
    return [metric for metric in registry().measuring(available) if not metric.costly]


def _reasons(metric: Metric[Any], available: frozenset[Need]) -> str:
    """Why a metric cannot run; empty if it can."""
    reasons = [lacking(need) or need.remedy for need in sorted(metric.needs - available)]
    if metric.one_of and not metric.one_of & available:
        reasons.append(" or ".join(need.remedy for need in sorted(metric.one_of)))
    return "; ".join(reasons)


def _with(metric: Metric[Any], settings: Mapping[str, Mapping[str, object]]) -> Metric[Any]:
    """The metric with the settings of its family changed, unless it was asked for with settings of its own."""
    changes = settings.get(metric.family, {})
    unknown = [name for name in changes if name not in metric.setting_names()]
    if unknown:
        raise SettingError(f"{metric.family} has no setting {unknown[0]!r}; it has {', '.join(metric.setting_names())}")
    return replace(metric, **changes) if metric.name in metric.presets else metric
