"""The command of the harness, called from the root of the repository.

    python -m tests.fuzz run                      every target, a minute each
    python -m tests.fuzz run --seconds 600 lines csv
    python -m tests.fuzz replay fuzz-findings/csv-0123456789ab.zip     once more, with the traceback
    python -m tests.fuzz list

`run` prints a table of inputs per target and ends with 1 where there is a finding. The input of each finding is kept in
`fuzz-findings/`, as small as can be had quickly.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))  # `fuzz` is a package of `tests`, as for pytest

import click
import msgspec

from dialeval.core.errors import DialevalError
from fuzz import harness


@click.group(help=__doc__)
def main() -> None:
    """See above."""


@main.command()
@click.argument("targets", nargs=-1)
@click.option("--seconds", type=float, default=60.0, show_default=True, help="For each target.")
@click.option("--inputs", type=int, help="At most so many for each target.")
@click.option("--seed", type=int, default=1, show_default=True)
@click.option("--findings", type=click.Path(path_type=Path), default=Path("fuzz-findings"), show_default=True)
def run(targets: tuple[str, ...], seconds: float, inputs: int | None, seed: int, findings: Path) -> None:
    """Attack targets, in a process that is started anew where it dies."""
    there = harness.all_targets()
    unknown = [name for name in targets if name not in there]
    if unknown:
        raise click.UsageError(f"no target is called {unknown[0]!r}; there are {', '.join(there)}")
    click.echo(f"{'target':24}{'inputs':>10}{'results':>10}{'refused':>10}{'findings':>10}{'a second':>10}")
    work = harness.Work(targets or tuple(there), seed, harness.Budget(inputs, seconds), str(findings.absolute()))
    ended = harness.fuzz(work, _print).values()
    every, found = sum(one.tally.inputs for one in ended), sum(len(one.findings) for one in ended)
    click.echo(f"{'all':24}{every:>10,}{'':20}{found:>10,}")
    sys.exit(1 if found else 0)


def _print(one: harness.Attacked) -> None:
    tally = one.tally
    figures = (tally.inputs, tally.results, tally.refused, len(one.findings))
    rate = tally.inputs / max(tally.seconds, 1e-9)
    click.echo(f"{tally.target:24}" + "".join(f"{figure:>10,}" for figure in figures) + f"{rate:>10,.0f}")
    for finding in one.findings:
        click.echo(f"  input {finding.number}: {finding.what!r}\n  python -m tests.fuzz replay {finding.path}")


@main.command()
@click.argument("file", type=click.Path(exists=True, dir_okay=False, path_type=Path))
@click.option("--target", help="Whose input it is.  [default: what the name of the file begins with]")
def replay(file: Path, target: str | None) -> None:
    """Give a kept input to its target once more, without limits; an exception that should not be has its traceback."""
    name = target or file.stem.rpartition("-")[0]
    there = harness.all_targets()
    if name not in there:
        raise click.UsageError(f"no target is called {name!r}; say --target")
    with tempfile.TemporaryDirectory() as folder:
        harness.write(harness.unpacked(file), Path(folder))
        try:
            result = there[name].read(Path(folder))
        except DialevalError as error:
            click.echo(f"refused: {str(error)!r}")
        else:
            click.echo(f"result: {result!r:.500}")


@main.command("list")
def list_targets() -> None:
    """Name the targets."""
    for name, each in harness.all_targets().items():
        click.echo(f"{name:24}{len(each.seeds())} seeds, {len(harness.found_before(name))} found before")


@main.command(hidden=True)
@click.argument("work")
@click.argument("note", type=click.Path(path_type=Path))
def child(work: str, note: Path) -> None:
    """What `run` starts."""
    harness.child(msgspec.json.decode(work, type=harness.Work), note)


if __name__ == "__main__":
    main()
