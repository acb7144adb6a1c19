"""Trials of tasks: how they ended, in the terminal, and the section of the page on agents.

The trials come with the run (`details["trials"]`). A mark is a trial, in the order of their numbers, and leads to its
transcript. Next to the marks of a task is what most often went wrong: parts of the reward below 1, and the first call
that was not expected or never made.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean
from typing import TypeAlias
from urllib.parse import quote

from dialeval.core.result import Run
from dialeval.core.validation import JsonObject
from dialeval.metrics.trials import PASSED, WITHIN, count_trials
from dialeval.reports import markup
from dialeval.reports.documents import Table
from dialeval.reports.explorer import list_mistakes
from dialeval.reports.formatting import MISSING, shorten
from dialeval.reports.summary import Block

MOST_SYSTEMS, MOST_TASKS = 4, 60
"""Systems, and tasks of a group, whose trials the page shows."""
Trial: TypeAlias = JsonObject
_MARKS = {True: ("p", "✓", "passed"), False: ("f", "✕", "failed"), None: ("x", "?", "no result")}


def _summarize(run: Run) -> Table:
    """Return by system its trials, how they ended, the mean of each part of the reward, and the cost.

    Columns that are empty for all systems are left out.
    """
    columns = [["system", "passed", "without reward", "ended by", "mean of reward parts", "mean cost"]]
    for system, trials in run.details["trials"].items():
        parts: dict[str, list[float]] = {}
        for trial in trials:
            for part, value in trial["parts"].items():
                parts.setdefault(part, []).append(value)
        ends = Counter(trial["end"] for trial in trials if trial["end"] is not None)
        costs = [trial["cost"] for trial in trials if trial["cost"] is not None]
        judged, passed = count_trials(trials)
        cells = [
            system,
            f"{passed} of {judged}",
            str(len(trials) - judged),
            ", ".join(f"{end} {number}" for end, number in ends.most_common()) or MISSING,
            ", ".join(f"{part} {fmean(values):.2f}" for part, values in sorted(parts.items())) or MISSING,
            f"{fmean(costs):.4g}" if costs else MISSING,
        ]
        columns.append(cells)
    kept = [cells for cells in zip(*columns, strict=True) if set(cells[1:]) - {MISSING, "0"}]
    head, *rows = zip(*kept, strict=True)
    return Table(head, rows)


def list_trials(run: Run) -> Iterator[tuple[str, list[list[str]]]]:
    """Yield title and lines of the table of the terminal, if more is known of trials than whether they passed."""
    table = _summarize(run)
    if len(table.head) > 2:
        yield "How trials ended", [list(table.head), *map(list, table.rows)]


# Agents on the page: every trial of every task as a mark that leads to its transcript.


def write_agents(block: Block) -> str | None:
    """Return the section on repeated trials; None for a block without them."""
    trials: Mapping[str, Sequence[Trial]] = block.run.details.get("trials", {})
    systems = [name for name in block.systems if name in trials][:MOST_SYSTEMS]
    if not systems or block.aligned is None:
        return None
    tasks: dict[str, dict[str, list[Trial]]] = {}
    for name in systems:
        for trial in trials[name]:
            tasks.setdefault(str(trial["task"]), {}).setdefault(name, []).append(trial)
    numbers, tables = block.aligned.number_dialogues(), {name: block.aligned.results[name].rows for name in systems}
    places = {
        task: int(numbers[name][at]) + 1
        for name, table in tables.items()
        if table is not None
        for at, task in enumerate(table.read_ids())
        if task is not None
    }
    mistakes = list_mistakes(block.aligned.results[systems[-1]])
    groups: dict[str, list[tuple[float, str]]] = {"Worse": [], "Better": [], "The same": [], "Tasks": []}
    other = block.system if block.system in systems else systems[-1]
    for task, by_system in tasks.items():
        before, after = (_rate(by_system.get(name, ())) for name in (systems[0], other))
        change = after - before if len(systems) > 1 else before
        title = "Tasks" if len(systems) == 1 else "Worse" if change < 0 else "Better" if change > 0 else "The same"
        cells = [_write_cells(block, name, by_system.get(name, ()), places.get(task, 0)) for name in systems]
        counts = " → ".join("{1} of {0}".format(*count_trials(by_system.get(name, ()))) for name in systems)
        wrong = _describe_failures(by_system.get(systems[-1], ()), mistakes)
        line = markup.row(markup.text(task), markup.cells(*cells, counts, wrong, kind="l"))
        groups[title].append((-change if title == "Better" else change, line))
    lines, width = [], len(systems) + 3
    for title, members in groups.items():
        words = f"{title} with {markup.name(other)}" if title in ("Worse", "Better") else title
        group = f'<tr class="group"><th colspan="{width}" scope="colgroup">{words}</th></tr>'
        ordered = [line for _, line in sorted(members, key=lambda member: member[0])]
        left = len(ordered) - MOST_TASKS
        lines += [group, *ordered[:MOST_TASKS]] if members else []
        lines += [f'<tr><td colspan="{width}">{left:,} more tasks</td></tr>'] if left > 0 else []
    sides = [markup.system_name(at, name) for at, name in enumerate(systems)]
    table = markup.table("trials", "", markup.heads("task", *sides, "trials passed", "what goes wrong"), lines)
    ended = markup.details("How trials ended", markup.plain_table("ends", _summarize(block.run)))
    about = "Each square is one trial; select it to read it."
    return markup.section(f"{block.prefix}tasks", "Task by task", table + ended, about)


def _rate(trials: Sequence[Trial]) -> float:
    judged, passed = count_trials(trials)
    return passed / judged if judged else 0.0


def _has_passed(trial: Trial) -> bool | None:
    return None if trial["reward"] is None else abs(trial["reward"] - PASSED) <= WITHIN


def _write_cells(block: Block, system: str, trials: Sequence[Trial], place: int) -> str:
    """Return the marks of the trials of a task, each a link to its transcript."""
    marks, number = "", block.systems.index(system)
    for trial in trials:
        kind, mark, word = _MARKS[_has_passed(trial)]
        chosen = markup.attribute(quote(str(trial["trial"])))
        link = f"#{block.prefix}d{place}?system={number}&amp;trial={chosen}"
        label = markup.attribute(f"{shorten(system)}, {shorten(str(trial['task']))}, trial {trial['trial']}: {word}")
        marks += f'<a class="cell {kind}" href="{link}" title="{label}" aria-label="{label}">{mark}</a>'
    return f'<span class="cells">{marks or MISSING}</span>'


def _describe_failures(trials: Sequence[Trial], mistakes: Mapping[tuple[str, str], str]) -> str:
    """Return what most often went wrong in the trials of a task that failed, as markup."""
    wrong: Counter[str] = Counter()
    for trial in trials:
        if _has_passed(trial) is False:
            parts = ", ".join(part for part, value in trial["parts"].items() if value < PASSED - WITHIN)
            call = mistakes.get((str(trial["task"]), str(trial["trial"])), "")
            wrong["; ".join(filter(None, (parts, call))) or str(trial["end"] or "")] += 1
    first, often = wrong.most_common(1)[0] if wrong else ("", 0)
    return f"{markup.text(first, most=90)}{f' ({often} times)' if often > 1 else ''}" if first else ""
