"""`dialeval metrics`: what can be measured, and what exactly a number means."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from dialeval.core.fold import Metric


@click.command(
    epilog="""\b
Examples:
  dialeval metrics
  dialeval metrics distinct-2
"""
)
@click.argument("name", required=False)
def metrics(name: str | None) -> None:
    """List the metrics; with a NAME, explain that one: formula, settings, paper, edge cases."""
    click.echo(_explanation(name) if name else _list(), nl=False)


def _list() -> str:
    from dialeval.engine.resources import lacking
    from dialeval.metrics.registry import registry

    here = registry()
    rows = []
    for name in here.presets:
        metric = here.parse(name)
        missing = [reason for need in sorted(metric.needs) if (reason := lacking(need))]
        summary = "; ".join([_summary(metric), *(f"unavailable: {reason}" for reason in missing)])
        rows.append((name, ", ".join(sorted(need.argument for need in metric.needs)), summary))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{name:<{widths[0]}}  {needs:<{widths[1]}}  {summary}" for name, needs, summary in rows]
    lines += [f"{name}: cannot be loaded ({reason})" for name, reason in here.broken.items()]
    return "\n".join(lines) + "\n"


def _explanation(name: str) -> str:
    from dialeval.core.errors import SettingError
    from dialeval.metrics.registry import registry

    try:
        metric = registry().parse(name)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    family = type(metric)
    settings = [f"  {name} = {getattr(metric, name)}" for name in metric.setting_names()]
    parts = [
        f"{metric}: {_summary(metric)}",
        (sys.modules[family.__module__].__doc__ or "").strip(),
        "Settings (change them as in " + f"{metric.family}({_example(metric)})):\n" + "\n".join(settings)
        if settings
        else "Settings: none",
        "Needs: " + ", ".join(f"{need.argument} ({need.flag})" for need in sorted(metric.needs)),
        f"Presets: {', '.join(family.presets)}",
        f"Signature: {metric.signature()}",
    ]
    return "\n\n".join(parts) + "\n"


def _summary(metric: Metric[Any]) -> str:
    return (inspect.getdoc(type(metric)) or "").split("\n")[0]


def _example(metric: Metric[Any]) -> str:
    return ",".join(f"{name}={getattr(metric, name)}" for name in metric.setting_names()[:2])
