"""What raters said, as tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from rich.console import Console

from analysis.test_merged_ratings import line, written
from dialeval.analysis.merged_ratings import MergedRatings, merge_ratings
from dialeval.reports.people import FORMATS, table


@pytest.fixture
def merged(tmp_path: Path) -> MergedRatings:
    lines = [line(f"r{n}", rater, (n + m) % 5) for n in range(8) for m, rater in enumerate(("ann", "b|ob"))]
    return merge_ratings([written(tmp_path, "a.jsonl", [*lines, line("r0", "ann", 0, again=True, seconds=4)])])


def test_the_terminal_has_all_tables(merged: MergedRatings) -> None:
    console = Console(width=120, record=True, file=None, quiet=False)
    with console.capture() as captured:
        console.print(table(merged))
    shown = captured.get()
    assert "16 ratings of 8 rows by 2 raters." in shown
    for words in ("alpha", "ann 4, b|ob 0", "100%", "to adjudicate"):
        assert words in shown


def test_markdown_and_json(merged: MergedRatings) -> None:
    assert "| b\\|ob |" in FORMATS["md"](merged)
    assert json.loads(FORMATS["json"](merged))["qualities"]["overall"]["n"] == 8
