"""The table of failed dialogues: how many lost Inform or Success by each cause, and each of them with its detail."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dialeval.core.jsondata import dump
from dialeval.metrics.task.explain import by_cause
from dialeval.reports.figures import plain
from dialeval.reports.formats import csv_text

if TYPE_CHECKING:
    from dialeval.metrics.task.explain import Explanation

FIELDS = ("system", "dialogue", "lost", "domain", "cause", "detail")


def failure_rows(failures: Mapping[str, Sequence[Explanation]]) -> list[dict[str, str]]:
    """One row per cause of a failed dialogue."""
    return [
        dict(zip(FIELDS, (system, each.dialogue, cause.measure, cause.domain, cause.cause, cause.detail), strict=True))
        for system, found in failures.items()
        for each in found
        for cause in each.causes
    ]


def failures_table(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """Return for people a summary by cause for each system, dialogues and lines below, then all rows by cause."""
    rows = failure_rows(failures)
    parts = []
    for system, lost in failures.items():
        own = [row for row in rows if row["system"] == system]
        causes = by_cause(lost)
        number = "1 dialogue" if len(lost) == 1 else f"{len(lost)} dialogues"
        parts.append(f"{plain(system)}: {number} lost inform or success\n\n")
        listed = Counter(row["cause"] for row in own)
        counts = [(cause, str(len(lost_by)), str(listed[cause])) for cause, lost_by in causes.items()]
        parts.append(_columns(("cause", "dialogues", "lines"), counts))
        ordered = sorted(own, key=lambda row: list(causes).index(row["cause"]))
        heads = FIELDS[1:]
        parts.append("\n" + _columns(heads, [[plain(row[head]) for head in heads] for row in ordered]) + "\n")
    return "".join(parts)


def failures_csv(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """For other programs: one line per cause."""
    return csv_text(FIELDS, (row.values() for row in failure_rows(failures)))


def failures_json(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """For other programs: a list of rows."""
    return dump(failure_rows(failures)).decode()


def _columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)
