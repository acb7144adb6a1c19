"""`dialeval metrics`: what can be measured, and what exactly a number means."""

from __future__ import annotations

import inspect
import sys
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli.output import tell

if TYPE_CHECKING:
    from dialeval.core.fold import Metric


@options.examples("dialeval metrics", "dialeval metrics distinct-2")
@click.command()
@click.argument("name", required=False)
def metrics(name: str | None) -> None:
    """List the metrics; with a NAME, explain that one: formula, settings, paper, edge cases."""
    from dialeval.core.errors import SettingError
    from dialeval.metrics.registry import registry

    if not name:
        tell(_list())
        return
    try:
        metric = registry().parse(name)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    tell(_explanation(metric))


def _list() -> str:
    from dialeval.engine.resources import lacking
    from dialeval.metrics.registry import registry

    rows = []
    for name in registry().presets:
        metric = registry().parse(name)
        missing = [reason for need in sorted(metric.needs) if (reason := lacking(need))]
        summary = "; ".join([_summary(metric), *(f"unavailable: {reason}" for reason in missing)])
        rows.append((name, ", ".join(sorted(need.argument for need in metric.needs)), summary))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{name:<{widths[0]}}  {needs:<{widths[1]}}  {summary}" for name, needs, summary in rows]
    return "\n".join([*lines, *(f"{name}: cannot be loaded ({why})" for name, why in registry().broken.items())])


def _explanation(metric: Metric[Any]) -> str:
    family = type(metric)
    settings = [f"{name}={getattr(metric, name)}" for name in metric.setting_names()]
    shown = "".join(f"\n  {setting.replace('=', ' = ', 1)}" for setting in settings)
    example = f"{metric.family}({','.join(settings[:2])})"
    return "\n\n".join(
        [
            f"{metric}: {_summary(metric)}",
            (sys.modules[family.__module__].__doc__ or "").strip(),
            f"Settings (change them as in {example}):{shown}" if settings else "Settings: none",
            "Needs: " + ", ".join(f"{need.argument} ({need.flag})" for need in sorted(metric.needs)),
            f"Presets: {', '.join(family.presets)}",
            f"Signature: {metric.signature()}",
        ]
    )


def _summary(metric: Metric[Any]) -> str:
    return (inspect.getdoc(type(metric)) or "").split("\n")[0]
