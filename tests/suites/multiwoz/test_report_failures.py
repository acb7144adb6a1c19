"""Failed dialogues as text, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from types import SimpleNamespace
from typing import Any

from dialeval.suites.multiwoz.explanations import Cause
from dialeval.suites.multiwoz.report import (
    FIELDS,
    list_failures,
    write_failures_csv,
    write_failures_json,
    write_failures_table,
)


def lost(dialogue: str, *causes: str) -> Any:
    """As much of an explanation as the tables show."""
    made = [Cause("inform", "hotel", cause, f"so {cause}") for cause in causes]
    return SimpleNamespace(dialogue=dialogue, causes=made)


FAILURES: dict[str, list[Any]] = {
    "bot": [lost("d1", "rare"), lost("d2", "often"), lost("d3", "often", "rare", "often")],
    "good": [],
}


def test_a_row_per_cause() -> None:
    rows = list_failures(FAILURES)
    assert [(row["dialogue"], row["cause"]) for row in rows] == [
        ("d1", "rare"),
        ("d2", "often"),
        ("d3", "often"),
        ("d3", "rare"),
        ("d3", "often"),
    ]
    assert json.loads(write_failures_json(FAILURES)) == rows
    assert list(csv.DictReader(io.StringIO(write_failures_csv(FAILURES)))) == rows
    assert write_failures_csv({}) == ",".join(FIELDS) + "\n"


def test_causes_count_dialogues_and_the_commonest_comes_first() -> None:
    lines = write_failures_table(FAILURES).splitlines()
    assert lines[0] == "bot: 3 dialogues lost inform or success"
    counts = [line.split() for line in lines[2:5]]
    assert counts == [["cause", "dialogues", "lines"], ["often", "2", "3"], ["rare", "2", "2"]]
    below = [line.split()[3] for line in lines[7:12]]
    assert {cause: str(below.count(cause)) for cause in below} == {cause: listed for cause, _, listed in counts[1:]}
    assert "good: 0 dialogues lost inform or success" in lines
    assert write_failures_table({"bot": [lost("d1", "rare")]}).startswith("bot: 1 dialogue lost")
