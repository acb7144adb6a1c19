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
from urllib.parse import quote

from dialeval.core.validation import JsonObject
from dialeval.metrics.trials import PASSED, WITHIN, count_trials
from dialeval.reports import markup
from dialeval.reports.explorer import list_mistakes
from dialeval.reports.formatting import MISSING, plain, shorten
from dialeval.reports.summary import Block

if TYPE_CHECKING:
    from dialeval.core.result import Run

PRINTED = 30
"""Tasks in the terminal."""
MOST_SYSTEMS, MOST_TASKS = 4, 60
"""Systems, and tasks of a group, whose trials the page shows."""
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


# Agents on the page: pass^k, and every trial of every task as a mark that leads to its transcript.

_MARKS = {True: ("p", "✓", "passed"), False: ("f", "✕", "failed"), None: ("x", "?", "no result")}


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
    ids = {name: block.aligned.results[name].table for name in systems}
    numbers = block.aligned.number_dialogues()
    places = {
        task: int(numbers[name][at]) + 1
        for name, table in ids.items()
        if table is not None
        for at, task in enumerate(table.read_ids())
        if task is not None
    }
    mistakes = {name: list_mistakes(block.aligned.results[name]) for name in systems}
    groups: dict[str, list[tuple[float, str]]] = {}
    pair = [systems[0], block.system if block.system in systems else systems[-1]]
    for task, by_system in tasks.items():
        rates = [_rate(by_system.get(name, ())) for name in pair]
        change = rates[1] - rates[0] if len(systems) > 1 else rates[0]
        title = "Tasks" if len(systems) == 1 else "Worse" if change < 0 else "Better" if change > 0 else "The same"
        groups.setdefault(title, []).append((change, _write_task(task, by_system, systems, places, block, mistakes)))
    lines = []
    for title in ("Worse", "Better", "The same", "Tasks"):
        if title in groups:
            words = f"{title} with {markup.name(pair[1])}" if title in ("Worse", "Better") else title
            lines.append(f'<tr class="group"><th colspan="{len(systems) + 3}" scope="colgroup">{words}</th></tr>')
            ordered = sorted(groups[title], key=lambda line: line[0] if title != "Better" else -line[0])
            lines += [line for _, line in ordered[:MOST_TASKS]]
            left = len(ordered) - MOST_TASKS
            lines += [f'<tr><td colspan="{len(systems) + 3}">{left:,} more tasks</td></tr>'] if left > 0 else []
    heads = [
        "task",
        *(markup.system_name(at, name) for at, name in enumerate(systems)),
        "trials passed",
        "what goes wrong",
    ]
    table = markup.table("trials", "", markup.heads(*heads), lines)
    header, rows = _summarize(block.run)
    ends = [markup.row(_escape(line[0]), markup.cells(*map(_escape, line[1:]))) for line in rows]
    below = markup.details("How trials ended", markup.table("ends", "", markup.heads(*map(_escape, header)), ends))
    about = "Each square is one trial; select it to read it."
    return markup.section(f"{block.prefix}tasks", "Task by task", table + below, about)


def _rate(trials: Sequence[Trial]) -> float:
    judged, passed = count_trials(trials)
    return passed / judged if judged else 0.0


def _write_task(
    task: str,
    by_system: Mapping[str, Sequence[Trial]],
    systems: Sequence[str],
    places: Mapping[str, int],
    block: Block,
    mistakes: Mapping[str, Mapping[tuple[str, str], str]],
) -> str:
    cells, counts = [], []
    wrong: Counter[str] = Counter()
    for name in systems:
        marks = ""
        for trial in by_system.get(name, ()):
            passed = None if trial["reward"] is None else abs(trial["reward"] - PASSED) <= WITHIN
            kind, mark, word = _MARKS[passed]
            number = block.systems.index(name)
            chosen = markup.attribute(quote(str(trial["trial"])))
            link = f"#{block.prefix}d{places.get(task, 0)}?system={number}&amp;trial={chosen}"
            label = markup.attribute(f"{shorten(name)}, {shorten(task)}, trial {trial['trial']}: {word}")
            marks += f'<a class="cell {kind}" href="{link}" title="{label}" aria-label="{label}">{mark}</a>'
            if passed is False and name == systems[-1]:
                parts = [part for part, value in trial["parts"].items() if value < PASSED - WITHIN]
                call = mistakes[name].get((task, str(trial["trial"])), "")
                wrong["; ".join(filter(None, (", ".join(parts), call))) or str(trial["end"] or "")] += 1
        cells.append(f'<span class="cells">{marks or MISSING}</span>')
        judged, passed_trials = count_trials(by_system.get(name, ()))
        counts.append(f"{passed_trials} of {judged}")
    first, often = wrong.most_common(1)[0] if wrong else ("", 0)
    said = f"{markup.text(first, most=90)}{f' ({often} times)' if often > 1 else ''}" if first else ""
    return markup.row(_escape(task), markup.cells(*cells, " → ".join(counts), said, kind="l"))


def _escape(text: str) -> str:
    return markup.text(plain(text))
