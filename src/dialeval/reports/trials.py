"""The trials of tasks: a grid of tasks by systems, and by system how trials ended, what failed, and what they cost.

The trials come with the run (`details["trials"]`). A mark is a trial, in the order of their numbers: ✓ passed, ✗
failed, ? without a reward. Next to the marks are the reasons of trials that failed: parts of the reward below 1, and
how they ended where that is not how trials of the system usually end.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.metrics.trials import MOST_LISTED, PASSED, WITHIN, count_trials
from dialeval.reports import markup
from dialeval.reports.figures import MISSING, plain

if TYPE_CHECKING:
    from dialeval.core.result import Run

PRINTED = 30
"""Tasks in the terminal."""
Trial = Mapping[str, Any]
_LEGEND = "✓ passed, ✗ failed, ? no reward"


def _tasks(run: Run) -> tuple[list[str], dict[str, dict[str, list[Trial]]]]:
    """Return all tasks in order, and the trials of each system by task."""
    tables: Mapping[str, Sequence[Trial]] = run.details["trials"]
    found: dict[str, dict[str, list[Trial]]] = {system: {} for system in tables}
    for system, trials in tables.items():
        for trial in trials:
            found[system].setdefault(trial["task"], []).append(trial)
    return list(dict.fromkeys(task for tasks in found.values() for task in tasks)), found


def _usual_end(trials: Sequence[Trial]) -> str | None:
    ends = Counter(trial["end"] for trial in trials if trial["end"] is not None)
    return ends.most_common(1)[0][0] if ends else None


def _cell(trials: Sequence[Trial], usual: str | None) -> str:
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


def _grid(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return the header and the lines of the grid."""
    tasks, found = _tasks(run)
    usual = {system: _usual_end([each for own in by.values() for each in own]) for system, by in found.items()}
    lines = [[task, *(_cell(by.get(task, ()), usual[system]) for system, by in found.items())] for task in tasks]
    return ["task", *found], lines


def _ends(run: Run) -> tuple[list[str], list[list[str]]]:
    """Return by system how many trials there are, how they ended, the mean of each part of the reward, and the cost."""
    lines = []
    for system, trials in run.details["trials"].items():
        ends = Counter(trial["end"] for trial in trials if trial["end"] is not None)
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
                ", ".join(f"{end} {number}" for end, number in ends.most_common()) or MISSING,
                ", ".join(f"{part} {sum(each) / len(each):.2f}" for part, each in sorted(parts.items())) or MISSING,
                f"{sum(costs) / len(costs):.4g}" if costs else MISSING,
            ]
        )
    return ["system", "passed", "without reward", "ended by", "mean of reward parts", "mean cost"], lines


def trials_table(run: Run) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield titles with a header and lines, for the terminal."""
    header, lines = _grid(run)
    more = "" if len(lines) <= PRINTED else f"; the first {PRINTED} of {len(lines)} tasks"
    yield f"Trials: {_LEGEND}{more}", [header, *lines[:PRINTED]]
    header, lines = _ends(run)
    if any(cell != MISSING for line in lines for cell in line[3:]):
        yield "How trials ended", [header, *lines]


def describe_trials(run: Run) -> str:
    """Return for the report how trials ended, and, folded, the trials of each task with the reasons of failed ones."""
    ends, grid = (
        _lay_out(_ends(run), "How trials ended, by system."),
        _lay_out(_grid(run), f"Trials by task: {_LEGEND}."),
    )
    full = max(map(len, run.details["trials"].values()), default=0) >= MOST_LISTED
    note = markup.note(f"The first {MOST_LISTED:,} trials of a system are listed.") if full else ""
    return ends + markup.details("Trials of each task, and why they failed", note + grid)


def _lay_out(table: tuple[list[str], list[list[str]]], caption: str) -> str:
    header, lines = table
    rows = [markup.row(_escape(line[0]), markup.cells(*map(_escape, line[1:]))) for line in lines]
    return markup.table("trials", caption, markup.heads(*map(_escape, header)), rows)


def _escape(text: str) -> str:
    return markup.text(plain(text))
