"""Small commands about inputs and outputs: `dialeval metrics`, `formats`, `schema`, `validate`."""

from __future__ import annotations

import inspect
import json
import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from dialeval.cli import options
from dialeval.cli.output import json_bytes, show, tell

if TYPE_CHECKING:
    from dialeval.core.fold import Metric
    from dialeval.data.rows.system import Rows


@options.examples("dialeval metrics", "dialeval metrics distinct-2")
@click.command()
@click.argument("name", required=False, shell_complete=options.complete_metrics)
def metrics(name: str | None) -> None:
    """List the metrics; with a NAME, explain that one: formula, settings, paper, edge cases."""
    from dialeval.core.errors import SettingError
    from dialeval.metrics.registry import registry

    if name is None:
        tell(_list_metrics())
        return
    try:
        metric = registry().parse(name)
    except SettingError as error:
        raise click.UsageError(str(error)) from None
    tell(_explain_metric(metric))


def _list_metrics() -> str:
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


def _explain_metric(metric: Metric[Any]) -> str:
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


@options.examples("dialeval formats", "dialeval formats sharegpt")
@click.command()
@click.argument("name", required=False)
def formats(name: str | None) -> None:
    """List the shapes of rows that are recognized: where each holds our fields, and an example; or explain one NAME.

    Any of them may be in .jsonl, .json, .parquet, .arrow or, as far as cells hold it, .csv and .tsv; also in .gz and
    .zst. For others, `--field response=NAME` maps names, and `--field response=output.text` leads into objects.
    """
    from dialeval.data.formats.row_shapes import OWN, SHAPES

    shapes = {shape.name: shape for shape in (OWN, *SHAPES)}
    if name is not None and name not in shapes:
        raise click.UsageError(f"there is no shape {name!r}; there are {', '.join(shapes)}")
    for shape in shapes.values() if name is None else [shapes[name]]:
        example = json.dumps(shape.example, ensure_ascii=False, indent=None if name is None else 2)
        tell(f"{shape.name}: {shape.title}\n  {shape.explained}\n  {example}")


@options.examples("dialeval schema", "dialeval schema run > run.schema.json")
@click.command()
@click.argument("name", required=False)
def schema(name: str | None) -> None:
    """List what dialeval writes; with a NAME, print its JSON Schema."""
    from dialeval.core.errors import SettingError
    from dialeval.reports import schemas

    if name is None:
        width = max(map(len, schemas.WRITTEN))
        files = max(len(each.file) for each in schemas.WRITTEN.values())
        tell("\n".join(f"{known:<{width}}  {each.file:<{files}}  {each.by}" for known, each in schemas.WRITTEN.items()))
        return
    try:
        show(json_bytes(schemas.schema(name)).decode())
    except SettingError as error:
        raise click.UsageError(str(error)) from None


@options.examples("dialeval validate outputs/*.txt rows.jsonl")
@click.command()
@click.argument("files", nargs=-1, required=True, type=click.Path())
@options.row_fields
@options.reading
def validate(files: tuple[str, ...], fields: Mapping[str, str], **reading: Any) -> int:
    """List every problem of every file, or what each good file holds. Exit status 2 if there is a problem."""
    from dialeval.data.rows.reading import check

    status = 0
    for file in files:
        systems, faults, notes = check(file, fields or None, **reading)
        lines = list(map(str, faults)) or [_describe(file, systems), *(f"  {note}" for note in notes)]
        tell("\n".join(lines))
        status = 2 if faults else status
    return status


def _describe(file: str, systems: Sequence[Rows]) -> str:
    """Return one line about what a file, or a folder of files, holds."""
    from dialeval.data.formats.opening import format_of
    from dialeval.data.rows.reading import is_folder

    columns = [str(need) for need in dict.fromkeys(need for rows in systems for need in rows.columns)]
    columns += ["dialog_id"] * any(rows.dialogues is not None for rows in systems)
    columns += ["turn"] * any(rows.turns is not None for rows in systems)
    kind, number = "folder" if is_folder(file) else format_of(file), sum(map(len, systems))
    rows = "1 row" if number == 1 else f"{number} rows"
    named = "system" if len(systems) == 1 else f"{len(systems)} systems:"
    return f"{file}: {kind}, {rows}, {named} {', '.join(each.system for each in systems)}; {', '.join(columns)}"
