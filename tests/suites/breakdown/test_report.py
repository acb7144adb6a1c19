"""A run of detectors as text: the lines of the original program, the confusion tables, a row per turn."""

from __future__ import annotations

import csv
import io

from dialeval.suites.breakdown.evaluation import BreakdownRun
from dialeval.suites.breakdown.report import original, tables_text, turns_csv


def test_the_original_prints_the_first_detector_and_threshold_unless_given(run: BreakdownRun) -> None:
    assert original(run) == original(run, "keywords", 0.0)
    assert len({original(run), original(run, "cautious"), original(run, threshold=0.5)}) == 3
    table = run.tables["keywords"][0.0]
    assert f"Accuracy : \t\t{table.correct / table.scored:f} ({table.correct}/{table.scored})\n" in original(run)
    assert f"JS divergence (O,T,X) : \t{run['keywords']['jsd-o-t-x'].mean:f}\n" in original(run)


def test_there_is_a_confusion_table_for_each_detector_and_threshold(run: BreakdownRun) -> None:
    heads = [line.split(":")[0] for line in tables_text(run).splitlines() if ", threshold " in line]
    assert heads == [f"{name}, threshold {at:g}" for name in run.tables for at in (0.0, 0.5)]
    line = next(line for line in tables_text(run).splitlines() if line.startswith("O "))
    table = run.tables[next(iter(run.tables))][0.0]
    assert [cell for cell in line.split()[1:] if cell != "|"] == [
        str(n) for rows in (table.confusion, table.confusion_lenient) for n in rows["O"].values()
    ]


def test_turns_have_a_line_each(run: BreakdownRun) -> None:
    lines = list(csv.DictReader(io.StringIO(turns_csv(run))))
    turns = list(run.turns())
    assert len(lines) == len(turns)
    for line, turn in zip(lines, turns, strict=True):
        for name, value in turn.items():
            shown = line[name]
            assert shown == ("" if value is None or value != value else str(value))
