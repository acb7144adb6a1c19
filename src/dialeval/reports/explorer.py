"""The dialogues of a run for the page: what users said, the replies of every system side by side, and every score.

`make_data` writes aligned dialogues (`analysis.alignment`) as columns of plain data. Each distinct text is stored once
and rows refer to it by number. Of the context of a row only the turns since the reply before it are stored, so that a
long chat takes as much room as it has turns. Of very many rows a part is shown, in whole dialogues: those in which
systems differ most.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from statistics import fmean
from typing import Any, TypeAlias
from urllib.parse import quote

import numpy as np
import orjson

from dialeval.analysis.alignment import NONE, AlignedDialogues
from dialeval.analysis.slices import Slices
from dialeval.analysis.values import find_better, find_metric, require_table
from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import TextColumn
from dialeval.core.errors import escape_surrogates
from dialeval.core.fold import Level
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.validation import JsonObject
from dialeval.metrics.calls import MOST_PAIRS, Calls, Rule
from dialeval.metrics.trials import PASSED, WITHIN, count_trials
from dialeval.reports import markup
from dialeval.reports.documents import Table, find_extensions
from dialeval.reports.formatting import MISSING, plain, shorten
from dialeval.reports.summary import Block

MOST_ROWS, MOST_REPLIES = 10_000, 100_000
"""Rows of a system, and replies of all systems, that are shown."""
MOST_CHARACTERS = 11_000_000
"""Of texts and scores; of longer ones fewer rows are shown, so that the page opens at once."""
SCORE_CHARACTERS = 9
"""Of a score in the page."""
MOST_OF_A_TEXT = 200_000
MOST_TURNS = 100
"""Of the context of the first row of a dialogue, from its end."""


def make_data(
    run: Run, aligned: AlignedDialogues, key: str, keys: Sequence[str], slices: Slices | None = None
) -> JsonObject:
    """Return the dialogues of some systems for the page, the scores under `keys`, and the slices that they are in.

    `key`: the metric by which dialogues are sorted first.
    """
    shown = choose_dialogues(aligned, key, keys)
    numbers: dict[str, int] = {}
    sides = {name: _make_side(aligned, name, shown, numbers) for name in aligned.systems}
    first = aligned.systems[0]
    metrics = [name for name in keys if any(_has_items(aligned, system, name) for system in aligned.systems)]
    data: JsonObject = {
        "systems": [plain(name) for name in aligned.systems],
        "paired": [name == first or aligned.pairs_rows(name) for name in aligned.systems],
        "unpaired": [(design := aligned.designs.get(name)) is not None and design.name == "unpaired" for name in sides],
        "total": len(aligned.places),
        "numbers": shown + 1,
        "names": _list_names(aligned, shown),
        "sides": list(sides.values()),
        "key": metrics.index(key) if key in metrics else 0,
        "metrics": [
            {"name": plain(name), "better": find_better(aligned.results, name), "level": _find_level(aligned, name)}
            for name in metrics
        ],
        "scores": [[_list_scores(aligned, system, name, shown) for system in sides] for name in metrics],
        "slices": _locate_slices(aligned, shown, slices),
    }
    for explain in find_extensions(run, "rows"):
        for name in aligned.systems:
            rows = aligned.find_rows(name, shown)[0]
            more = explain(
                {name: run[name]}, rows, details=run.details, number=lambda text: _number_text(text, numbers)
            )
            sides[name] |= {column: values for column, values in more.items() if column not in ("reasons", "landed")}
            sides[name] |= {column: more[column][0] for column in ("reasons", "landed") if column in more}
    return {**data, "texts": list(numbers)}


def choose_dialogues(aligned: AlignedDialogues, key: str, keys: Sequence[str]) -> Ints:
    """Return which dialogues are shown, in order: as many as make up the most rows, at least one."""
    systems, tables = aligned.systems, [require_table(result) for result in aligned.results.values()]
    sizes = np.sum([np.diff(aligned.find_rows(name)[1]) for name in systems], axis=0)
    scored = sum(_has_items(aligned, system, name) for system in systems for name in keys)
    rows = max(1, int(sizes.sum()))
    characters = sum(map(_count_text_bytes, tables)) / rows + SCORE_CHARACTERS * scored / len(systems)
    most = min(MOST_CHARACTERS / max(characters, 1.0), MOST_REPLIES, MOST_ROWS * len(systems))
    if rows <= most:
        return np.arange(len(sizes))
    if len(systems) > 1:
        changes = [aligned.differences(name, key) for name in systems]
    else:
        values = aligned.list_values(systems[0], key)
        changes = [values - (np.nanmean(values) if np.isfinite(values).any() else 0.0)]
    order = np.argsort(-np.max(np.nan_to_num(np.abs(changes)), axis=0), kind="stable")
    return np.sort(order[: max(1, int((np.cumsum(sizes[order]) <= most).sum()))])


def _count_text_bytes(table: RowTable) -> int:
    columns = (column if isinstance(column, TextColumn) else column.values for column in table.texts.values())
    return sum(int((values.ends - values.starts).sum()) for values in columns)


def _has_items(aligned: AlignedDialogues, system: str, key: str) -> bool:
    result = aligned.results[system]
    return key in result and result[key].scores is not None


def _find_level(aligned: AlignedDialogues, key: str) -> str:
    return next(result[key].level.value for result in aligned.results.values() if key in result)


def _list_scores(aligned: AlignedDialogues, system: str, key: str, shown: Ints) -> Floats | None:
    """Return a value per row or, of a metric of dialogues, per dialogue."""
    if not _has_items(aligned, system, key):
        return None
    if aligned.results[system][key].level is Level.DIALOGUE:
        return aligned.list_values(system, key)[shown].astype(np.float32)
    items = aligned.results[system][key].scores
    return None if items is None else items[aligned.find_rows(system, shown)[0]].astype(np.float32)


def _list_names(aligned: AlignedDialogues, shown: Ints) -> list[str | None]:
    """Return the name of each dialogue, that of the first system that has it; None for the place of a row."""
    ids = [require_table(result).read_ids() for result in aligned.results.values()]
    firsts = (next((at, place) for at, place in enumerate(line) if place != NONE) for line in aligned.places[shown])
    names = (ids[at][place] for at, place in firsts)
    return [None if name is None else plain(escape_surrogates(name)) for name in names]


def _make_side(aligned: AlignedDialogues, system: str, shown: Ints, numbers: dict[str, int]) -> JsonObject:
    """Return the rows of a system in the dialogues that are shown."""
    table = require_table(aligned.results[system])
    rows, offsets = aligned.find_rows(system, shown)
    trials = _list_trials(table, rows)
    firsts = set(offsets[:-1].tolist()) | set(trials)
    whole, said = set(range(len(rows))), "response" if "response" in table.texts else "hypotheses"
    side: JsonObject = {"offsets": offsets}
    for name, new in (("context", firsts), ("roles", firsts), ("reference", whole), (said, whole)):
        side["response" if name == said else name] = _list_new_texts(table, name, rows, new, numbers)
    if trials:
        side |= {"trials": trials, "calls": _list_calls(aligned.results[system], rows)}
    return side


def _list_new_texts(
    table: RowTable, name: str, rows: Ints, firsts: set[int], numbers: dict[str, int]
) -> list[list[int]] | None:
    """Return the numbers of the texts of each row that are not those of the row before and its reply.

    `firsts`: the places of rows of which every text is new.
    """
    column = table.texts.get(name)
    if column is None:
        return None
    if isinstance(column, TextColumn):
        return [[_number_text(column[row], numbers)] for row in rows.tolist()]
    number: Callable[[int], int] = cache(lambda place: _number_text(column.values[place], numbers))
    spans, before = [], 0
    for at, (start, end) in enumerate(zip(column.starts[rows].tolist(), column.ends[rows].tolist(), strict=True)):
        size = end - start
        new = start if at in firsts else start + min(before + 1, max(0, size - 1))
        left_out = max(0, end - new - MOST_TURNS)
        note = [_number_text(f"… ({left_out:,} before these are left out)", numbers)] if left_out else []
        spans.append([*note, *map(number, range(new + left_out, end))])
        before = size
    return spans


def _number_text(text: str, numbers: dict[str, int]) -> int:
    """Return the number of a text among those met so far; a very long one is truncated."""
    if len(text) > MOST_OF_A_TEXT:
        text = f"{text[:MOST_OF_A_TEXT]} … ({len(text) - MOST_OF_A_TEXT:,} characters are left out)"
    return numbers.setdefault(text, len(numbers))


def _locate_slices(aligned: AlignedDialogues, shown: Ints, slices: Slices | None) -> list[JsonObject]:
    """Return every slice with the places of the dialogues among those shown that have a row in it."""
    numbers, located = aligned.number_dialogues(), []
    for part in () if slices is None else slices.slices:
        clusters = {name: require_table(aligned.results[name]).clusters[rows] for name, rows in part.places.items()}
        inside = np.concatenate([numbers[name][rows] for name, rows in clusters.items()])
        places, name = np.flatnonzero(np.isin(shown, inside)), f"{plain(part.field)}: {plain(part.label)}"
        located.append({"name": name, "whole": not part.cuts_dialogues, "dialogues": places})
    return located


# Trials of tasks: where each begins, how it ended, and its calls against those that were expected.


def _list_trials(table: RowTable, rows: Ints) -> dict[int, list[Mapping[str, Any]]]:
    """Return the trials that begin in some rows, by the place of the row."""
    trials = ((at, table.objects_at(inputs.TRIALS, row)) for at, row in enumerate(rows.tolist()))
    return {at: listed for at, listed in trials if listed}


def list_mistakes(result: Result) -> dict[tuple[str, str], str]:
    """Return the first call that was not expected, or never made, by task and trial."""
    table = require_table(result)
    rows = np.arange(len(table))
    begins, calls = _list_trials(table, rows), _list_calls(result, rows)
    marks: dict[tuple[str, str], str] = {}
    trial: Mapping[str, Any] | None = None
    for row in sorted({*begins, *calls}):
        trial = begins[row][-1] if row in begins else trial
        wrong = [line for line in calls.get(row, ()) if line[0] in "+-" and "order" not in line[2]]
        if trial is not None and wrong:
            kind, call, _ = min(wrong, key=lambda line: line[0] == "-")
            marks[str(trial["task"]), str(trial["trial"])] = f"{'calls' if kind == '+' else 'never calls'} {call}"
    return marks


def _list_calls(result: Result, rows: Ints) -> dict[int, list[list[str]]]:
    """Return the calls of trials by the place of the row that has them, as a difference from the expected ones."""
    table, columns_by_name = require_table(result), {}
    rule = Rule()
    for metric in map(find_metric, result.values()):
        rule = metric if isinstance(metric, Rule) else rule
    for at, row in enumerate(rows.tolist()):
        made, expected = (table.objects_at(name, row) for name in (inputs.CALLS, inputs.EXPECTED_CALLS))
        if made is not None or expected is not None:
            columns_by_name[at] = _diff_calls(made or [], expected, rule)
    return columns_by_name


def _diff_calls(made: Calls, expected: Calls | None, rule: Rule) -> list[list[str]]:
    """Return calls in order: `=` as expected, `-` never called, `+` not expected, ` ` where nothing was expected."""
    errors = ["error" if call.get("error") else "" for call in made]
    lines = list(map(_write_call, made))
    if expected is None or len(made) * len(expected) > MOST_PAIRS:
        return [[" ", *both] for both in zip(lines, errors, strict=True)]
    kinds = {
        at: next((to for to, other in enumerate(expected) if rule.is_equal(other, call)), at)
        for at, call in enumerate(expected)
    }
    others = list(kinds.values())
    keys = [next((kinds[at] for at, call in enumerate(expected) if rule.is_equal(call, one)), -1) for one in made]
    left, spare = Counter(others) - Counter(keys), Counter(keys) - Counter(others)
    steps: list[list[str]] = []
    for kind, a, b, c, d in SequenceMatcher(None, others, keys, autojunk=False).get_opcodes():
        if kind == "equal":
            steps += [["=", lines[at], errors[at]] for at in range(c, d)]
            continue
        for call, key in zip(expected[a:b], others[a:b], strict=True):
            steps.append(["-", _write_call(call), "" if left[key] > 0 else "called in another order"])
            left[key] -= 1
        for at in range(c, d):
            steps.append(["+", lines[at], errors[at] if spare[keys[at]] > 0 else "in another order"])
            spare[keys[at]] -= 1
    return steps


def _write_call(call: Mapping[str, object]) -> str:
    arguments = call.get("arguments")
    if isinstance(arguments, dict):
        shown = (
            (name, value if isinstance(value, str) else orjson.dumps(value).decode())
            for name, value in arguments.items()
        )
        inside = ", ".join(f"{name}={value}" for name, value in shown)
    else:
        inside = "" if arguments is None else str(arguments)
    return plain(f"{call.get('name', '')}({inside})")


# The section on agents, and how trials ended, from `details["trials"]` of the run.
#
# A mark is a trial, in the order of their numbers, and leads to its transcript. Next to the marks of a task is what
# most often went wrong: parts of the reward below 1, and the first call that was not expected or never made.

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
        yield "How trials ended", [list(table.head), *map(list, table.cells)]


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
    numbers, tables = block.aligned.number_dialogues(), {name: block.aligned.results[name].table for name in systems}
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
    return markup.section("tasks", "Task by task", table + ended, about)


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
        link = f"#d{place}?system={number}&amp;trial={chosen}"
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
