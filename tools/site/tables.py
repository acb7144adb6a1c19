"""Tables of Markdown pages, read back: what docs/metrics.md and docs/floors.md say is written nowhere else."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """The head of a table, and its lines."""

    head: list[str]
    rows: list[list[str]]


def tables(markdown: str) -> Iterator[Table]:
    """Every table of a page, in order."""
    for block in re.findall(r"(?:^\|.*\n?)+", markdown, re.MULTILINE):
        head, _, *rows = (_cells(line) for line in block.splitlines())
        yield Table(head, rows)


def table(head: list[str], rows: list[list[str]]) -> str:
    """A table as Markdown."""
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, ["---"] * len(head), *rows))


def quoted(cell: str) -> list[str]:
    """The names in a cell that are set as code."""
    return re.findall(r"`([^`]+)`", cell)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line.strip().strip("|"))]
