"""Results in one line, and what notebooks ask of them."""

from __future__ import annotations

import hashlib
import math
import subprocess
import sys

import numpy as np
import pytest

import dialeval
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.display import (
    Tabular,
    count_names,
    flatten_estimates,
    flatten_intervals,
    list_some,
    make_estimate_table,
)
from dialeval.core.fold import Analytic, Estimate, Level
from dialeval.core.result import Result
from dialeval.core.rowtable import NO_TURN, RowTable
from dialeval.core.signature import Signature

ROWS = [{"dialog_id": f"d{n // 2}", "response": "one two three"[: 3 + n], "reference": "one two"} for n in range(8)]


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    return dialeval.evaluate(
        {"a": ROWS, "b\x1b[2J\n": [{**row, "response": "else"} for row in ROWS]}, metrics="length,distinct,rouge-l"
    )


def test_names_are_listed_and_counted() -> None:
    assert count_names([], "system") == "0 systems"
    assert count_names(["a"], "system") == "1 system (a)"
    assert count_names({"a": 1, "b": 2, "c": 3}, "system") == "3 systems (a, b, c)"
    assert count_names(list("abcde"), "metric") == "5 metrics (a, b, c and 2 more)"


def test_everything_public_prints_as_one_short_line(run: dialeval.Run) -> None:
    comparison = dialeval.compare(run, resamples=20, trials=20)
    rated = [{**row, "scores": number % 5, "system": "a"} for number, row in enumerate(ROWS)]
    agreement = dialeval.agreement(rated, metrics="rouge-l", resamples=5)
    for shown in (run, run["a"], run["a"]["length"], comparison, agreement, run.item_table):
        text = repr(shown)
        assert len(text) < 200, text
        assert text.isprintable(), text
    assert repr(run["a"]["length"]).startswith("<Estimate 2 [0.7")
    assert repr(run["a"]["length"]).endswith("], 8 turns>")
    assert repr(Estimate(1.0, 0.0, 5, 3)) == "<Estimate 1, 3 of 5 turns>"
    assert repr(run).startswith("<Run: 2 systems (a, b\\x1b[2J\\n), 4 metrics (length, ")
    assert repr(comparison).startswith("<Comparison: 1 system (b\\x1b[2J\\n) with a, 4 metrics (")
    assert repr(agreement) == "<Agreement with overall: 2 metrics (rouge-l, length), 8 rated rows>"


def test_estimates_are_compared_by_every_digit_though_they_print_few(run: dialeval.Run) -> None:
    from dataclasses import replace

    estimate = run["a"]["length"]
    near = replace(estimate, mean=float(np.nextafter(estimate.mean, 9)))
    assert repr(near) == repr(estimate)
    assert replace(run["a"], estimates={"length": near}) != replace(run["a"], estimates={"length": estimate})


def test_keys_are_completed(run: dialeval.Run) -> None:
    assert run._ipython_key_completions_() == list(run)
    assert run["a"]._ipython_key_completions_() == ["length", "distinct-1", "distinct-2", "rouge-l"]


def test_core_loads_no_layer_above_until_something_is_shown() -> None:
    program = (
        "import sys, dialeval.core.result as result\n"
        "run = result.Run({}, 'x')\n"
        "repr(run), run._ipython_key_completions_()\n"
        "assert 'dialeval.reports' not in sys.modules\n"
        "print(run._repr_html_())\n"
        "assert 'dialeval.reports.html' in sys.modules\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("<table>")


def test_more_names_than_are_listed_are_counted() -> None:
    assert count_names(list("abcd"), "metric") == "4 metrics (a, b, c and 1 more)"
    assert count_names([str(number) for number in range(1234)], "row") == "1,234 rows (0, 1, 2 and 1,231 more)"
    assert list_some(["a", "b"], 2) == "a, b"
    assert list_some(["a", "b", "c"], 2) == "a, b and 1 more"


def test_intervals_are_two_columns() -> None:
    fields = {"a": 1, "interval": (2, 3), "other_interval": None, "b": 4}
    assert list(flatten_intervals(fields).items()) == [
        ("a", 1),
        ("low", 2),
        ("high", 3),
        ("other_low", None),
        ("other_high", None),
        ("b", 4),
    ]


def test_lines_of_estimates() -> None:
    how = Analytic("student", 0.95, "rows", 3, 2.0)
    estimates = {
        "x": Estimate(1.0, 0.5, 3, 2, interval=(0.0, 3.0), interval_by=how, signature=Signature.of("x", n=1)),
        "y": Estimate(2.0, 0.5, 3, 3, corpus=True, level=Level.DIALOGUE, interval_by=how),
    }
    one, two = make_estimate_table({"bot": Result(estimates, role="floor")}).to_pylist()
    assert one == {
        "system": "bot",
        "role": "floor",
        "metric": "x",
        "mean": 1.0,
        "std": 0.5,
        "low": 0.0,
        "high": 3.0,
        "half_width": 1.5,
        "interval_by": "student",
        "rows": 3,
        "scored": 2,
        "of": "rows",
        "level": "turn",
        "signature": str(Signature.of("x", n=1)),
    }
    assert math.isnan(two.pop("std"))
    assert math.isnan(two.pop("half_width"))
    none = dict.fromkeys(("low", "high", "interval_by", "signature"))
    counts = {"rows": 3, "scored": 3, "of": "corpus", "level": "dialogue"}
    assert two == {"system": "bot", "role": "floor", "metric": "y", "mean": 2.0, **none, **counts}


def test_flat_names() -> None:
    def names(*given: str) -> list[str]:
        flat = flatten_estimates({None: {name: Estimate(1.0, 0.0, 3, 2) for name in given}})
        assert list(flat)[1::3] == [f"{name[:-5]}/rows" for name in list(flat)[::3]]
        return [name.removesuffix("/mean") for name in list(flat)[::3]]

    assert names("a b", "a_b", "A_B", "a+b") == ["a_b", "a_b-2", "A_B-3", "a_b-4"]
    assert names("_x.", "..", "x/mean", "x/MEAN/y", "Rows") == ["x", "_", "x/mean_", "x/MEAN_/y", "Rows_"]
    for length in (200, 201):
        cut = f"{'x' * 200}-{hashlib.sha256(b'x' * length).hexdigest()[:8]}"
        assert names("x" * length) == ["x" * 200 if length == 200 else cut]
    estimate = Estimate(1.0, 0.0, 3, 2, interval=(0.5, math.inf))
    assert flatten_estimates({"bot": {"x": estimate, "y": Estimate(math.nan, 0.0, 3, 0)}, "Bot": {"x": estimate}}) == {
        "bot/x/mean": 1.0,
        "bot/x/low": 0.5,
        "bot/x/rows": 3,
        "bot/x/scored": 2,
        "bot/y/rows": 3,
        "bot/y/scored": 0,
        "Bot-2/x/mean": 1.0,
        "Bot-2/x/low": 0.5,
        "Bot-2/x/rows": 3,
        "Bot-2/x/scored": 2,
    }


def test_lines_of_items_have_places_texts_and_fields() -> None:
    rows = RowTable(
        np.array([0, 2, 3]),
        ["d1", ""],
        np.array([1, NO_TURN, 2]),
        {"response": TextColumn.from_strings(["a", "b", "c"]), "context": RaggedColumn.from_lists([["x"], [], ["y"]])},
        {
            "city": RaggedColumn.from_lists([["Bern"], ["Bern"], []]),
            "turn": RaggedColumn.from_lists([["one"], ["two"], ["three"]]),
            "tags": RaggedColumn.from_lists([["p", "q"], ["q"], []]),
        },
    )
    turns = Estimate(2.0, 0.0, 3, 3, items=np.array([1.0, 2.0, 3.0]))
    dialogues = Estimate(5.0, 0.0, 2, 2, items=np.array([4.0, 6.0]), level=Level.DIALOGUE)
    run = dialeval.Run({"s": Result({"z": dialogues, "x": turns}, rows=rows), "t": Result({"x": turns})}, "0")
    table = run.item_table.to_arrow()
    places = ["system", "level", "row", "dialog_id", "turn", "response", "context", "city", "field/turn", "tags"]
    assert table.column_names == [*places, "z", "x"]
    columns = table.to_pydict()
    assert columns["system"] == ["s"] * 5 + ["t"] * 3
    assert columns["level"] == ["turn"] * 3 + ["dialogue"] * 2 + ["turn"] * 3
    assert columns["row"] == [1, 2, 3, 1, 2, 1, 2, 3]
    assert columns["dialog_id"] == ["d1", "d1", None, "d1", None, None, None, None]
    assert columns["turn"] == [1, None, 2, *[None] * 5]
    assert columns["response"] == ["a", "b", "c", *[None] * 5]
    assert columns["context"] == [["x"], [], ["y"], *[None] * 5]
    assert columns["city"] == ["Bern", "Bern", None, "Bern", None, *[None] * 3]
    assert columns["field/turn"] == ["one", "two", "three", None, "three", *[None] * 3]
    assert columns["tags"] == [["p", "q"], ["q"], [], ["p", "q"], [], *[None] * 3]
    assert columns["z"] == [None] * 3 + [4.0, 6.0] + [None] * 3
    assert columns["x"] == [1.0, 2.0, 3.0, None, None, 1.0, 2.0, 3.0]
    assert repr(run.item_table) == f"<items of {run!r}>"
    empty = dialeval.Run({"s": Result({"x": Estimate(2.0, 0.0, 3, 3)})}, "0").item_table.to_arrow()
    assert (empty.column_names, len(empty)) == (["system", "level", "row"], 0)


def test_a_table_of_lines() -> None:
    class Lines(Tabular):
        def lines(self) -> list[dict[str, object]]:
            return [{"a": 1}, {"a": None}]

    assert Lines().to_arrow().to_pylist() == [{"a": 1}, {"a": None}]
    run = dialeval.Run({"s": Result({"x": Estimate(2.0, 0.0, 3, 3, items=np.zeros(3))})}, "0")
    assert run.item_table.lines() == run.item_table.to_arrow().to_pylist()
    assert len(run.item_table.lines()) == 3
