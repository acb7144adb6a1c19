"""The end of the report: what was left out and why, warnings, signatures, and how to make the numbers again."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.columns import TextColumn
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.judges.judge import CONTINUITY, reasons
from dialeval.reports import markup
from dialeval.reports.figures import MISSING, plain
from dialeval.reports.markup import Section
from dialeval.stats.correlation import FEWEST_POINTS, spearman_matrix

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dialeval.core.result import Result, Run


COMMANDS = "commands"
"""Where a run holds the command lines that made it."""


def provenance(run: Run, command: str | None) -> Section:
    """The section: what was left out, everything that each number depends on, and the commands that made it."""
    return Section("provenance", "Provenance", _skipped(run) + _signatures(run) + _again(run, command))


def _part(name: str, title: str, content: str) -> str:
    return f'<section id="{name}" aria-labelledby="{name}-title"><h3 id="{name}-title">{title}</h3>{content}</section>'


def _skipped(run: Run) -> str:
    """Metrics that were not computed, and what they lack."""
    lacking: dict[tuple[str, str], list[str]] = {}
    for system, result in run.items():
        for key, reason in result.skipped.items():
            lacking.setdefault((key, reason), []).append(system)
    if not lacking:
        return ""
    lines = [
        markup.row(markup.name(key), markup.cells(markup.text(reason), markup.names(systems, run)))
        for (key, reason), systems in lacking.items()
    ]
    caption = "Metrics that were left out, and what they lack."
    content = markup.table("skipped", caption, markup.heads("Metric", "Reason", "Systems"), lines)
    return _part("skipped", "Not computed", content)


def warnings(run: Run) -> Section | None:
    """What should be read before the numbers are believed."""
    lines = "".join(f"<li>{markup.text(text, lines=True)}</li>" for text in run.warnings)
    return Section("warnings", "Warnings", f'<div class="notice"><ul>{lines}</ul></div>') if lines else None


def _signatures(run: Run) -> str:
    """Everything that each number depends on."""
    lines = []
    for key in run.keys_in_order:
        by_line: dict[str, list[str]] = {}
        for system, result in run.items():
            if key in result and result[key].signature is not None:
                by_line.setdefault(str(result[key].signature), []).append(system)
        for line, systems in by_line.items():
            whose = markup.names(systems, run) if len(by_line) > 1 else "all"
            lines.append(markup.row(markup.name(key), markup.cells(f"<code>{markup.text(line)}</code>", whose)))
    caption = "Everything a number depends on. Numbers may be compared where these lines agree."
    content = markup.table("signatures", caption, markup.heads("Metric", "Signature", "Systems"), lines)
    return _part("signatures", "Signatures", content) if lines else ""


def _again(run: Run, command: str | None) -> str:
    """The commands that made the runs and the page, each to be copied."""
    commands: Sequence[str] = [*run.details.get(COMMANDS, ()), *([] if command is None else [command])]
    note = f"Use dialeval {markup.text(run.version)} on the same inputs; the signatures name the settings and the data."
    blocks = "".join(
        f'<div class="command"><pre tabindex="0"><code>{markup.text(each, lines=True)}</code></pre>'
        '<button type="button" class="copy" hidden>Copy</button></div>'
        for each in commands
    )
    status = '<p class="hidden" role="status" id="copied"></p>' if blocks else ""
    return _part("again", "How to reproduce", f"<p>{note}</p>{blocks}{status}")


# The section that shows which metrics move together over the rows of a system: a table of rank correlations.

MOST_SYSTEMS = 12
"""Systems that are shown, the first ones."""
STEPS = 5
"""Shades on each side of zero."""


def correlations(run: Run) -> Section | None:
    """The section; None where no system has two metrics with a value per row."""
    tables = [
        (system, level, matrix)
        for system, result in run.items()
        if result.role == "system"
        for level in Level
        if (matrix := _matrix(result, level)) is not None
    ]
    if not tables:
        return None
    note = markup.note(
        "Spearman’s rank correlation of metrics over the rows of one system. Metrics that always agree say one thing "
        "twice; one that follows length may measure nothing else."
    )
    drawn = [_table(*each, opened=at == 0) for at, each in enumerate(tables[:MOST_SYSTEMS])]
    left = len(tables) - MOST_SYSTEMS
    more = markup.note(f"{markup.count(left, 'further table')} left out.") if left > 0 else ""
    return Section("correlations", "Correlations", note + "".join(drawn) + more)


def _matrix(result: Result, level: Level) -> tuple[list[str], Floats] | None:
    columns: Mapping[str, Floats] = {
        key: est.items
        for key, est in result.items()
        if est.items is not None and est.level is level and len(est.items) >= FEWEST_POINTS
    }
    if len(columns) < 2 or len({len(values) for values in columns.values()}) > 1:
        return None
    return list(columns), spearman_matrix(columns)


def _table(system: str, level: Level, keys_and_matrix: tuple[list[str], Floats], *, opened: bool) -> str:
    keys, matrix = keys_and_matrix
    heads = "".join(f'<th scope="col"><span>{markup.name(key)}</span></th>' for key in keys[:-1])
    lines = [
        markup.row(markup.name(key), "".join(map(_cell, matrix[at, :at].tolist()))) for at, key in enumerate(keys) if at
    ]
    caption = markup.span("hidden", f"Rank correlations of the metrics of {markup.name(system)}, over {level}s")
    table = markup.table("heat", caption, f"<tr><td></td>{heads}</tr>", lines)
    return markup.details(f"{markup.name(system)} {markup.span('aside', f'over {level}s')}", table, opened=opened)


def _cell(value: float) -> str:
    if math.isnan(value):
        return markup.cells(MISSING, kind="figure")
    step = min(STEPS, math.floor(abs(value) * STEPS + 0.5))
    kind = f"{'less' if value < 0 else 'more'}-{step}" if step else "none"
    return markup.cells(f"{round(value, 2) + 0.0:.2f}", kind=f"figure {kind}")


# The turns with the lowest `judge/continuity`, where a dialogue most probably breaks, worst first.
#
# A turn is listed if its value is below a third, that of an average turn in the systems of the breakdown challenge.
# The value orders turns and is no probability. Next to it are the judge's reasons, in words, where it has any
# (`metrics.learned.judge`).

HIGHEST = 1 / 3
LISTED, PRINTED = 50, 10
"""Turns of a system in the report, and in the terminal."""
MOST_CHARACTERS = 300
"""Of a text that is shown."""


class WeakTurn(NamedTuple):
    """A turn and its continuity."""

    system: str
    place: str
    continuity: float
    before: str
    """What it answers."""
    said: str
    reasons: list[str]


def weak_turns(run: Run, most: int) -> list[WeakTurn]:
    """Of each system the turns with the most probable breakdowns, those of all systems together worst first."""
    systems = [(name, result) for name, result in run.items() if result.role == "system"]
    found = [turn for name, result in systems for turn in _of_system(name, result, most)]
    return sorted(found, key=lambda turn: turn.continuity)


def _of_system(name: str, result: Result, most: int) -> list[WeakTurn]:
    rows = result.rows
    parts = judged_parts(result)
    values = parts.get(CONTINUITY)
    if rows is None or values is None or len(values) != len(rows) or "response" not in rows.texts:
        return []
    order = np.argsort(np.where(np.isnan(values), np.inf, values), kind="stable")[:most]
    chosen = [row for row in order.tolist() if values[row] < HIGHEST]
    return [
        WeakTurn(
            name,
            _place(rows, row),
            float(values[row]),
            _last(rows.texts.get("context"), row),
            _last(rows.texts["response"], row),
            reasons({part: float(column[row]) for part, column in parts.items()}),
        )
        for row in chosen
    ]


def judged_parts(result: Result) -> dict[str, Floats]:
    """What the judge says of every row of a system beside its score, by the names of the parts."""
    return {
        key.removeprefix("judge/"): estimate.items
        for key, estimate in result.items()
        if key.startswith("judge/") and estimate.level is Level.TURN and estimate.items is not None
    }


def _place(rows: RowTable, row: int) -> str:
    dialogue = rows.dialogues[int(rows.clusters[row])] if rows.dialogues is not None else None
    turn = NO_TURN if rows.turns is None else int(rows.turns[row])
    return ", ".join(filter(None, (dialogue or f"row {row + 1}", f"turn {turn}" if turn != NO_TURN else "")))


def _last(column: Any, row: int) -> str:
    """The last text of a row, cut where it is very long."""
    if column is None:
        return ""
    text = column[row] if isinstance(column, TextColumn) else next(iter(list(column[row])[-1:]), "")
    return text if len(text) <= MOST_CHARACTERS else f"{text[:MOST_CHARACTERS]} …"


def weak_turns_table(run: Run) -> list[list[str]]:
    """A header and a row per turn, for the terminal; empty where there is nothing to list."""
    turns = weak_turns(run, PRINTED)[:PRINTED]
    if not turns:
        return []
    header = ["system", "turn", "continuity", "said", "why"]
    return [
        header,
        *([turn.system, turn.place, f"{turn.continuity:.2f}", turn.said, "; ".join(turn.reasons)] for turn in turns),
    ]


def section(run: Run) -> Section | None:
    """The section of the report; None for a run without such turns."""
    turns = weak_turns(run, LISTED)[:LISTED]
    if not turns:
        return None
    note = markup.note(
        "Where people would most probably see the dialogue break, worst first, by the judge's score of continuity. "
        "It orders turns and is no probability."
    )
    lines = [
        markup.row(
            f"{markup.name(turn.system)}, {markup.text(plain(turn.place))}",
            markup.cells(
                f"{turn.continuity:.2f}",
                *(markup.text(plain(text)) for text in (turn.before, turn.said)),
                markup.text("; ".join(turn.reasons) or "–"),
            ),
        )
        for turn in turns
    ]
    heads = markup.heads("Turn", "Continuity", "Before it", "Said", "Why")
    return Section("weak-turns", "Where dialogues break", note + markup.table("", "Turns, worst first.", heads, lines))
