"""Assertions for tests: a run is no worse than a baseline, else an AssertionError that says where it is worse.

    def test_the_new_model():
        run = dialeval.evaluate("new.txt", "references.txt")
        dialeval.assert_no_worse(run, "baseline/", "bleu-4")

The question is that of `dialeval compare --no-worse-than` (`gates`): without a margin it fails if the run is
significantly worse, with one unless the interval rules out that it is worse by more than the margin.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping

import numpy as np

from dialeval.analysis.alignment import DesignName
from dialeval.analysis.comparison import Comparison, Difference, compare
from dialeval.analysis.difference import DEFAULT_ALPHA, Test
from dialeval.analysis.draws import DEFAULT_SEED
from dialeval.analysis.gates import baseline_gates
from dialeval.analysis.pairing import systems_of
from dialeval.core.arguments import checked
from dialeval.core.errors import SettingError
from dialeval.core.fold import Level
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import NO_TURN
from dialeval.metrics.registry import split_names

Saved = Run | str | os.PathLike[str]
"""A run, or the folder that it is saved in."""

_SHOWN_CHARACTERS = 300
"""A text of a row is shown up to here."""


@checked
def assert_no_worse(
    run: Saved,
    baseline: Saved,
    metrics: str | Iterable[str],
    *,
    margin: float | Mapping[str, float] | None = None,
    alpha: float = DEFAULT_ALPHA,
    test: Test = "randomisation",
    seed: int = DEFAULT_SEED,
    rows: int = 3,
    design: DesignName | None = None,
    adjust: str | Iterable[str] | None = None,
) -> Comparison:
    """AssertionError if a system of a run is worse than the one system of a baseline; else the comparison.

    `run`, `baseline`: runs, or folders that they are saved in. `metrics`: names, by commas or in a list; all of them
    are corrected for together. `margin`: by how much a metric may be worse, one number for all or one by name; the run
    then has to show that it is not worse by more. `rows`: so many of the rows that lost most are shown for each metric.
    `design`, `adjust`: as in `dialeval.compare`.
    """
    runs = {"baseline": _loaded(baseline), "run": _loaded(run)}
    known = systems_of(runs)
    names = [[name for name in some if known[name].role == "system"] for some in _split(known, len(runs["baseline"]))]
    if len(names[0]) != 1:
        raise SettingError(f"a baseline is a run of one system; this one has {', '.join(names[0]) or 'none'}")
    keys = split_names(metrics) if isinstance(metrics, str) else list(metrics)
    settings = {"alpha": alpha, "test": test, "seed": seed, "design": design, "adjust": adjust}
    found = compare(runs, baseline=names[0][0], systems=[*names[0], *names[1]], metrics=keys, **settings)  # type: ignore[arg-type]
    undirected = [key for key in found.keys if next(row for row in found.rows if row.key == key).better is None]
    if undirected:
        raise SettingError(f"neither higher nor lower values of {undirected[0]} are better, so that it is never worse")
    margins = margin if isinstance(margin, Mapping) else {} if margin is None else dict.fromkeys(found.keys, margin)
    lines: list[str] = []
    for gate in baseline_gates(found, margins, named=True):
        if gate.failure is not None and gate.difference is not None:
            lines += [gate.failure, *_figures(gate.difference, found), *_lost(gate.difference, found, rows)]
    if lines:
        raise AssertionError("\n".join(lines))
    return found


def _loaded(run: Saved) -> Run:
    return run if isinstance(run, Run) else load(run)


def _split(names: Iterable[str], at: int) -> tuple[list[str], list[str]]:
    every = list(names)
    return every[:at], every[at:]


def _figures(row: Difference, found: Comparison) -> Iterator[str]:
    interval = "" if row.interval is None else " [{:+.4g}, {:+.4g}]".format(*row.interval)
    settings, design = found.settings, found.designs[row.system]
    over = f"{design.clusters:,} {design.unit}"
    yield f"  {design.describe(row.baseline, row.system)}"
    yield f"  difference {row.difference:+.4g}{interval}, {100 * settings.level:g}% over {over}"
    tests = len(found.rows)
    adjusted = f", adjusted for {tests} tests {row.adjusted_p:.4g}" if tests > 1 else ""
    yield f"  p {row.p:.4g}{adjusted} ({settings.test}, seed {settings.seed}); alpha {settings.alpha:g}"
    if row.reason is not None:
        yield f"  not tested: {row.reason}"
    if row.wins is not None:
        yield f"  won {row.wins:,}, tied {row.ties:,}, lost {row.losses:,}"


def _lost(row: Difference, found: Comparison, most: int) -> Iterator[str]:
    """The rows in which the system lost most, with their texts; none where rows are not paired."""
    alignment = found.alignments[row.system]
    left, right = alignment.left, alignment.right
    before, after = left[row.key].items, right[row.key].items
    if before is None or after is None or not alignment.by_row:
        return
    losses = (before - after) if row.better == "higher" else (after - before)
    order = np.argsort(-np.nan_to_num(losses, nan=-np.inf), kind="stable")
    worst = [at for at in order[:most].tolist() if losses[at] > 0]
    if worst:
        yield "  lost most:"
    for at in worst:
        yield f"    {_place(right, at, right[row.key].level)}: {before[at]:.4g} -> {after[at]:.4g}"
        if right[row.key].level is Level.TURN:
            yield from _texts(left, right, at)


def _place(result: Result, at: int, level: Level) -> str:
    rows = result.rows
    number = f"{'row' if level is Level.TURN else 'dialogue'} {at + 1}"
    if rows is None or rows.dialogues is None:
        return number
    name, turn = rows.dialogues[int(rows.clusters[at]) if level is Level.TURN else at], ""
    if level is Level.TURN and rows.turns is not None and rows.turns[at] != NO_TURN:
        turn = f", turn {rows.turns[at]}"
    return number if name is None else f"{number} ({name}{turn})"


def _texts(left: Result, right: Result, at: int) -> Iterator[str]:
    shown = {"reference": (right, "reference"), "was": (left, "response"), "is": (right, "response")}
    for word, (result, name) in shown.items():
        if result.rows is not None and name in result.rows.texts:
            text = result.rows.texts[name][at]
            yield f"      {word:9} {text!r:.{_SHOWN_CHARACTERS}}"
