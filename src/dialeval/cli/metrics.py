"""`dialeval metrics`: what can be measured, what exactly a number means, and a package for a metric of one's own."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli.output import tell

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from dialeval.core.fold import Metric

EXPLAIN = "explain"


class _Metrics(click.Group):
    """Commands, or the name of a metric, which is explained."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in self.commands and not args[0].startswith("-"):
            args = [EXPLAIN, *args]
        return super().parse_args(ctx, args)

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        from click.shell_completion import CompletionItem

        names = options.complete_metrics(ctx, None, incomplete)
        return [*super().shell_complete(ctx, incomplete), *map(CompletionItem, names)]


@options.examples("dialeval metrics", "dialeval metrics distinct-2", "dialeval metrics new polite-words")
@click.group(cls=_Metrics, invoke_without_command=True, subcommand_metavar="[NAME] | new NAME")
@click.pass_context
def metrics(context: click.Context) -> None:
    """List the metrics; with a NAME, explain that one: formula, settings, paper, edge cases."""
    if context.invoked_subcommand is None:
        tell(_list())


@metrics.command(EXPLAIN)
@click.argument("name", shell_complete=options.complete_metrics)
def explain(name: str) -> None:
    """Explain a metric; `dialeval metrics NAME` is the same."""
    from dialeval.core.errors import SettingError
    from dialeval.metrics.registry import registry

    try:
        metric = registry().parse(name)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    tell(_explanation(metric))


@options.examples("dialeval metrics new polite-words", "dialeval metrics new polite-words -o ~/metrics/polite")
@metrics.command()
@click.argument("name")
@click.option("-o", "--output", type=options.FOLDER, help="Folder of the package.  [default: dialeval-NAME]")
def new(name: str, output: Path | None) -> None:
    """Write a package with a metric called NAME, to be changed: a class, an entry point, and tests by the laws.

    It can be installed as it is (`pip install -e dialeval-NAME`); every command then knows the metric.
    """
    from dialeval.cli.metric_package import write_metric_package

    folder = output or Path(f"dialeval-{name}")
    write_metric_package(name, folder)
    tell(f"{folder} holds a metric that counts question marks. Change it:")
    tell(f"  pip install -e '{folder}[dev]'")
    tell(f"  pytest {folder}")
    tell(f"  dialeval metrics {name}")


def _list() -> str:
    from dialeval.engine.resources import lacking
    from dialeval.metrics.registry import GROUP_SETTINGS, GROUPS, registry

    rows = []
    for name in registry().presets:
        metric = registry().parse(name)
        missing = [reason for need in sorted(metric.needs) if (reason := lacking(need))]
        summary = "; ".join([_summary(metric), *(f"unavailable: {reason}" for reason in missing)])
        rows.append((name, ", ".join(sorted({need.argument for need in metric.needs})), summary))
    widths = [max(len(row[column]) for row in rows) for column in range(2)]
    lines = [f"{name:<{widths[0]}}  {needs:<{widths[1]}}  {summary}" for name, needs, summary in rows]
    for group, presets in GROUPS.items():
        settings = ", ".join(f"{name}={value}" for name, value in GROUP_SETTINGS[group].items())
        lines.append(f"{group}: a group of {len(presets)} of these, with {settings}")
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
            "Needs: " + ", ".join(dict.fromkeys(f"{need.argument} ({need.flag})" for need in sorted(metric.needs))),
            f"Presets: {', '.join(family.presets)}",
            f"Signature: {metric.signature()}",
        ]
    )


def _summary(metric: Metric[Any]) -> str:
    return (inspect.getdoc(type(metric)) or "").split("\n")[0]
