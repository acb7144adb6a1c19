"""The plan: which metrics run on which inputs, and what the others lack. It is made before any work is done.

A metric that was asked for by its own name and cannot run is an error. One that was asked for as part of a group
(`all`, a family, or nothing in particular) is skipped, with one line that says what would bring it back.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Metric
from dialeval.core.needs import Need
from dialeval.metrics.registry import registry, split_names


@dataclass(frozen=True, slots=True)
class Plan:
    """The metrics to compute, in order, and those left out with the reason."""

    metrics: tuple[Metric[Any], ...]
    skipped: Mapping[str, str]


def make_plan(asked: str | Iterable[str | Metric[Any]] | None, available: frozenset[Need]) -> Plan:
    """Decide what to compute from the inputs that are there."""
    names = ["all"] if asked is None else split_names(asked) if isinstance(asked, str) else list(asked)
    if not names:
        raise SettingError("no metric was asked for; name some, or `all`")
    metrics: dict[Metric[Any], None] = {}
    skipped: dict[str, str] = {}
    for name in names:
        for metric in registry().select([name]):
            lacking = sorted(metric.needs - available)
            if not lacking:
                metrics[metric] = None
            elif registry().is_group(name):
                skipped[metric.name] = "; ".join(need.remedy for need in lacking)
            else:
                raise NeedError(f"{metric.name} " + "; ".join(need.remedy for need in lacking))
    if not metrics:
        reasons = "; ".join(f"{key} {reason}" for key, reason in skipped.items())
        raise NeedError(f"nothing can be computed: {reasons}")
    return Plan(tuple(metrics), skipped)
