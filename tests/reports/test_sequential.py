"""Interim looks and trends in every format."""

from __future__ import annotations

import csv
import io
import json

import dialeval
from dialeval.core.result import Run
from dialeval.reports.documents import FORMATS, describe_result, lay_out
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


def test_every_format_of_trends() -> None:
    made = [
        dialeval.evaluate({f"v{at}": ["w " * (at + n % 3 + 1) for n in range(30)]}, metrics="length") for at in range(3)
    ]
    found = dialeval.fit_trend(Run({name: result for run in made for name, result in run.items()}, "0"))
    shown = describe_result(found)
    assert shown.sentences[0] == "Paired design: the same 30 rows in all systems."
    assert shown.sentences[1].startswith("length rises: +1.00")
    assert FORMATS["md"](found).startswith("Paired design")
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    assert [(line["system"], float(line["value"])) for line in lines] == [("v0", 2.0), ("v1", 3.0), ("v2", 4.0)]
    assert json.loads(FORMATS["json"](found))["design"] == "paired"
    assert "length" in FORMATS["latex"](found)
