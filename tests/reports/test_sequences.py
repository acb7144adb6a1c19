"""Watched differences as a table."""

from __future__ import annotations

import csv
import io
import json

import dialeval
from analysis.rated_runs import run_of
from dialeval.reports import sequences
from reports.test_people import printed

RUN, _ = run_of(dialogues=60)
FOUND = dialeval.watch(RUN)


def test_the_terminal() -> None:
    text = printed(sequences.table(FOUND))
    assert text.startswith("Paired design: the systems have the same 60 dialogues, matched by id.")
    assert "confidence sequences" in text
    assert "Alpha is divided by 2" in text


def test_what_has_no_interval_says_why() -> None:
    short, _ = run_of(dialogues=10)
    assert "judge: fewer than 50 dialogues." in printed(sequences.table(dialeval.watch(short, metrics=["judge"])))


def test_every_format() -> None:
    lines = list(csv.DictReader(io.StringIO(sequences.to_csv(FOUND))))
    assert [line["key"] for line in lines] == ["length", "judge"]
    assert float(lines[1]["difference"]) == FOUND.rows[1].difference
    assert "\n| metric | system |" in sequences.FORMATS["md"](FOUND)
    assert r"\toprule" in sequences.FORMATS["latex"](FOUND)
    assert json.loads(sequences.FORMATS["json"](FOUND)) == FOUND.to_dict()
