"""The section on agents, and the trials of tasks in the terminal: which tasks flip, how trials ended, what failed.

The trials come with the run (`details["trials"]`). A mark is a trial, in the order of their numbers: ✓ passed, ✗
failed, ? without a reward. Next to the marks are the reasons of trials that failed: parts of the reward below 1, and
how they ended where that is not how trials of the system usually end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dialeval.core.validation import JsonObject
from dialeval.metrics.trials import MOST_LISTED, PASSED, WITHIN, count_trials
from dialeval.reports import markup
from dialeval.reports.drawings import draw_pass_k, draw_tasks, lay_out_figures
from dialeval.reports.formatting import MISSING, plain
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.result import Result, Run

PRINTED = 30
"""Tasks in the terminal."""
Trial: TypeAlias = JsonObject
_LEGEND = "✓ passed, ✗ failed, ? no reward"


def _group_by_task(run: Run) -> tuple[list[str], dict[str, dict[str, list[Trial]]]]:
    """Return all tasks in order, and the trials of each system by task."""
    tables: Mapping[str, Sequence[Trial]] = run.details["trials"]
    by_system: dict[str, dict[str, list[Trial]]] = {system: {} for system in tables}
    for system, trials in tables.items():
        for trial in trials:
            by_system[system].setdefault(trial["task"], []).append(trial)
    return list(dict.fromkeys(task for tasks in by_system.values() for task in tasks)), by_system


def _count_ends(trials: Sequence[Trial]) -> list[tuple[str, int]]:
    """Return how trials ended and how many did so, the usual end first."""
    return Counter(trial["end"] for trial in trials if trial["end"] is not None).most_common()


def _make_cell(trials: Sequence[Trial], usual: str) -> str:
    """Return the marks of a task, and the reasons of the trials that failed."""
    if not trials:
        return MISSING
    reasons: dict[str, None] = {}
    marks = ""
    for trial in trials:
        passed = trial["reward"] is not None and abs(trial["reward"] - PASSED) <= WITHIN
        marks += "?" if trial["reward"] is None else "✓" if passed else "✗"
        if not passed:
            reasons |= dict.fromkeys(part for part, value in trial["parts"].items() if value < PASSED - WITHIN)
            reasons |= {} if trial["end"] in (None, usual) else {str(trial["end"]): None}
    return " ".join((marks, ", ".join(reasons))).strip()


def _make_grid(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return the header and the lines of the grid."""
    tasks, grouped = _group_by_task(run)
    usual = {system: next(iter(_count_ends(trials)), ("", 0))[0] for system, trials in run.details["trials"].items()}
    lines = [[task, *(_make_cell(by.get(task, ()), usual[system]) for system, by in grouped.items())] for task in tasks]
    return ["task", *grouped], lines


def _summarize(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return by system its trials, how they ended, the mean of each part of the reward, and the cost.

    Columns that are empty for all systems are left out.
    """
    lines = []
    for system, trials in run.details["trials"].items():
        parts: dict[str, list[float]] = {}
        for trial in trials:
            for part, value in trial["parts"].items():
                parts.setdefault(part, []).append(value)
        costs = [trial["cost"] for trial in trials if trial["cost"] is not None]
        judged, passed = count_trials(trials)
        lines.append(
            [
                system,
                f"{passed} of {judged}",
                str(len(trials) - judged),
                ", ".join(f"{end} {number}" for end, number in _count_ends(trials)) or MISSING,
                ", ".join(f"{part} {fmean(values):.2f}" for part, values in sorted(parts.items())) or MISSING,
                f"{fmean(costs):.4g}" if costs else MISSING,
            ]
        )
    heads = ["system", "passed", "without reward", "ended by", "mean of reward parts", "mean cost"]
    kept = [at for at in range(len(heads)) if any(line[at] not in (MISSING, "0") for line in lines)]
    return [heads[at] for at in kept], [[line[at] for at in kept] for line in lines]


def list_trials(run: Run) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield titles with a header and lines, for the terminal."""
    header, lines = _make_grid(run)
    more = "" if len(lines) <= PRINTED else f"; the first {PRINTED} of {len(lines)} tasks"
    yield f"Trials: {_LEGEND}{more}", [header, *lines[:PRINTED]]
    header, lines = _summarize(run)
    if len(header) > 2:
        yield "How trials ended", [header, *lines]


def make_agents_section(run: Run) -> Section | None:
    """Return the section on repeated trials: tasks that flip, pass^k, every trial; None for a run without trials."""
    systems = [name for name, result in run.items() if result.role == "system" and "pass-hat-1" in result]
    trials: Mapping[str, Sequence[Trial]] = run.details.get("trials", {})
    if not systems and not trials:
        return None
    header, lines = _summarize(run) if trials else (["system"], [[name] for name in systems])
    summaries = {line[0]: line[1:] for line in lines}
    heads = ["System", "Tasks", "Always passed", "Flip", "Never passed", *(head.capitalize() for head in header[1:])]
    rows = [
        [name, *_count_tasks(run[name]), *summaries.get(name, [MISSING] * len(header[1:]))]
        for name in dict.fromkeys((*systems, *summaries))
    ]
    counts = "Tasks and trials by system. A task flips if some of its trials pass and others fail."
    content = _lay_out(heads, rows, counts) + lay_out_figures([draw_pass_k(run), draw_tasks(run)])
    if trials:
        full = max(map(len, trials.values())) >= MOST_LISTED
        note = markup.note(f"The first {MOST_LISTED:,} trials of a system are listed.") if full else ""
        grid = _lay_out(*_make_grid(run), f"Trials by task: {_LEGEND}.")
        content += markup.details("Trials of each task, and why they failed", note + grid)
    return Section("agents", "Agents", content)


def _count_tasks(result: Result) -> list[str]:
    """Return how many tasks there are, always pass, flip and never pass."""
    passed = result["pass-hat-1"].scores if "pass-hat-1" in result else None
    if passed is None:
        return [MISSING] * 4
    rates = passed[np.isfinite(passed)]
    parts = (rates >= 0, rates == 1, (rates > 0) & (rates < 1), rates == 0)
    return [f"{int(part.sum()):,}" for part in parts]


def _lay_out(header: Sequence[str], lines: Sequence[Sequence[str]], caption: str) -> str:
    rows = [markup.row(_escape(line[0]), markup.cells(*map(_escape, line[1:]))) for line in lines]
    return markup.table("trials", caption, markup.heads(*map(_escape, header)), rows)


def _escape(text: str) -> str:
    return markup.text(plain(text))
