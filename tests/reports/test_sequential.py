"""Interim looks in every format."""

from __future__ import annotations

import csv
import io
import json

import dialeval
from dialeval.reports.documents import FORMATS, lay_out
from human.rated_runs import run_of
from human.test_report import printed

RUN, _ = run_of(dialogues=60)
FOUND = dialeval.run_sequential_test(RUN)


def test_interim_looks_in_the_terminal() -> None:
    text = printed(lay_out(FOUND))
    assert text.startswith("Paired design: the systems have the same 60 dialogues (180 rows), matched by id.")
    assert "confidence sequences" in text
    assert "Alpha is divided by 2" in text


def test_what_has_no_interval_says_why() -> None:
    short, _ = run_of(dialogues=10)
    assert "judge: fewer than 50 dialogues." in printed(lay_out(dialeval.run_sequential_test(short, metrics=["judge"])))


def test_every_format_of_interim_looks() -> None:
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](FOUND))))
    assert [line["key"] for line in lines] == ["length", "judge"]
    assert float(lines[1]["difference"]) == FOUND.differences[1].difference
    assert "\n| metric | system |" in FORMATS["md"](FOUND)
    assert r"\toprule" in FORMATS["latex"](FOUND)
    assert json.loads(FORMATS["json"](FOUND)) == FOUND.to_dict()
