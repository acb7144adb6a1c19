"""Options of `dialeval score` for more than one machine's memory or cores, and what they choose.

Without any of them a run is `evaluate`: everything is read, and one value per row stays at hand. A pattern, an address,
`--shards`, `--jobs`, `--engine` or `--resume` make it `evaluate_shards`: in batches, by whichever engine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from dialeval.cli.intervals import as_it_is
from dialeval.cli.progress import MODES, metered
from dialeval.cli.saving import command_line, save
from dialeval.core.files import check_writable

if TYPE_CHECKING:
    from dialeval.core.result import Run
    from dialeval.engine.job import Engine

Command = TypeVar("Command", bound=Callable[..., Any])

_OPTIONS = (
    click.option("--shards", is_flag=True, help="The files of a directory are the parts of one system."),
    click.option("--jobs", type=click.IntRange(min=1), help="Read in batches, in this many processes."),
    click.option("--engine", type=click.Choice(["local", "ray"]), help="Where to work.  [default: local]"),
    click.option("--address", help="An existing Ray cluster, such as auto or ray://host:10001."),
    click.option(
        "--gpus-per-task",
        type=click.FloatRange(min=0),
        default=0.0,
        help="Share of a GPU for a learned metric's worker (Ray).",
    ),
    click.option(
        "--resume",
        type=click.Path(file_okay=False, path_type=Path),
        help="Keep finished batches here; go on from them.",
    ),
    click.option("--items/--no-items", default=True, help="With -o: save one value per response.  [default: items]"),
    click.option("--approx", is_flag=True, help="Count different n-grams for distinct by HyperLogLog, within 0.41 %."),
    click.option(
        "--progress", type=click.Choice(MODES), default="auto", help="On stderr.  [default: a bar, if a terminal]"
    ),
)


@dataclass(frozen=True)
class Scaling:
    """How a run is to be done."""

    shards: bool
    jobs: int | None
    engine: str | None
    address: str | None
    gpus_per_task: float
    resume: Path | None
    items: bool
    approx: bool
    progress: str


def scaling_options(command: Command) -> Command:
    """Give a command the options; it gets them as one argument, `scaling`."""

    def called(**arguments: Any) -> Any:
        chosen = {field.name: arguments.pop(field.name) for field in fields(Scaling)}
        return command(**arguments, scaling=Scaling(**chosen))

    called.__doc__ = command.__doc__
    called.__name__ = command.__name__
    called.__click_params__ = getattr(command, "__click_params__", [])  # type: ignore[attr-defined]
    for option in reversed(_OPTIONS):
        called = option(called)
    return called  # type: ignore[return-value]


def scored(
    scaling: Scaling,
    responses: Any,
    references: Any,
    *,
    output: Path | None,
    resampled: Callable[[Run], Run],
    anchors: bool,
    settings: Mapping[str, Mapping[str, object]],
    threads: int | None,
    **inputs: Any,
) -> Run:
    """The run that the options ask for, saved where `output` says."""
    if scaling.engine != "ray" and (scaling.address or scaling.gpus_per_task):
        raise click.UsageError("--address and --gpus-per-task go with --engine ray")
    if output is not None:
        check_writable(output)
    if scaling.approx:
        settings = {**settings, "distinct": {**settings.get("distinct", {}), "count": "approx"}}
    with metered(scaling.progress) as meter:
        from dialeval.engine.evaluate import evaluate

        if not _streamed(scaling, responses, references, inputs.get("contexts")):
            told = None if meter is None else meter.run
            options = {"settings": settings, "threads": threads, "progress": told, "anchors": anchors, **inputs}
            run = resampled(evaluate(responses, references, **options))
            if output is not None:
                save(run, output)
            return run
        if anchors or resampled is not as_it_is:
            raise click.UsageError("--anchors and --intervals need all rows at hand; a run in batches lets them go")
        run = evaluate(
            responses,
            references,
            **{**inputs, "judge": _judge(scaling, inputs.get("judge"))},
            settings=settings,
            shards=scaling.shards,
            engine=_engine(scaling, threads),
            output=output,
            items=scaling.items,
            resume=scaling.resume,
            details={"command": command_line()},
            progress=None if meter is None else meter.run,
        )
        if output is not None:
            click.echo(f"saved in {output}", err=True)
        return run


def _streamed(scaling: Scaling, *inputs: Any) -> bool:
    from dialeval.data.formats.streams import is_pattern

    paths = [path for given in inputs for path in (given.values() if isinstance(given, Mapping) else [given])]
    far = any(path is not None and ("://" in path or is_pattern(path)) for path in paths)
    return far or scaling.shards or not scaling.items or bool(scaling.jobs or scaling.engine or scaling.resume)


def _judge(scaling: Scaling, folder: str | None) -> Any:
    """The judge for adem; on a GPU where its workers hold one."""
    if not scaling.gpus_per_task:
        return folder
    from dialeval.metrics.learned.judge import LazyJudge

    return LazyJudge(folder, device="cuda")


def _engine(scaling: Scaling, threads: int | None) -> Engine:
    if scaling.engine == "ray":
        if scaling.jobs:
            raise click.UsageError("--jobs is for this machine; a Ray cluster uses the cores it has")
        from dialeval.engine.cluster import Cluster

        return Cluster(scaling.address, scaling.gpus_per_task)
    if scaling.jobs and scaling.jobs > 1:
        from dialeval.engine.processes import Processes

        return Processes(scaling.jobs)
    from os import cpu_count

    from dialeval.engine.threads import Threads

    return Threads(threads or cpu_count() or 1)
