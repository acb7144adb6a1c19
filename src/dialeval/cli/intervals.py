"""Options of every command that makes a run: intervals by resampling."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from dialeval.core.result import Run

R = TypeVar("R", bound="Run")
F = TypeVar("F", bound=Callable[..., Any])

_OPTIONS = (
    click.option(
        "--intervals",
        type=click.Choice(["percentile", "bca"]),
        help="Intervals by resampling dialogues, also for values of all rows together.",
    ),
    click.option("--resamples", type=click.IntRange(min=1), help="Resamples of --intervals.  [default: 1000]"),
    click.option("--seed", type=click.IntRange(min=0), help="Seed of --intervals.  [default: 12345]"),
)


def as_it_is(made: R) -> R:
    """The run of a command that was not asked for intervals by resampling."""
    return made


def interval_options(command: F) -> F:
    """Give a command --intervals, --resamples and --seed; it gets `resampled`, a function from a run to a run."""

    @wraps(command)
    def run(*arguments: Any, intervals: str | None, resamples: int | None, seed: int | None, **options: Any) -> Any:
        given = {"resamples": resamples, "seed": seed, "level": options.get("confidence")}
        chosen = {name: value for name, value in given.items() if value is not None}
        if intervals is None and (resamples is not None or seed is not None):
            raise click.UsageError("--resamples and --seed are those of --intervals percentile or bca")

        def resampled(made: R) -> R:
            from dialeval.analysis.intervals import with_intervals

            return with_intervals(made, intervals, **chosen)  # type: ignore[arg-type]

        return command(*arguments, resampled=as_it_is if intervals is None else resampled, **options)

    wrapped: Any = run
    for option in reversed(_OPTIONS):
        wrapped = option(wrapped)
    return wrapped  # type: ignore[no-any-return]
