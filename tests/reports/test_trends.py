"""Trends as tables."""

from __future__ import annotations

import csv
import io
import json

import dialeval
from dialeval.core.result import Run
from dialeval.reports.trends import FORMATS, document


def test_every_format() -> None:
    made = [
        dialeval.evaluate({f"v{at}": ["w " * (at + n % 3 + 1) for n in range(30)]}, metrics="length") for at in range(3)
    ]
    found = dialeval.trend(Run({name: result for run in made for name, result in run.items()}, "0"))
    shown = document(found)
    assert shown.said[0] == "Paired design: the same 30 rows in all systems."
    assert shown.said[1].startswith("length rises: +1.000")
    assert FORMATS["md"](found).startswith("Paired design")
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    assert [(line["system"], float(line["value"])) for line in lines] == [("v0", 2.0), ("v1", 3.0), ("v2", 4.0)]
    assert json.loads(FORMATS["json"](found))["design"] == "paired"
    assert "length" in FORMATS["latex"](found)
