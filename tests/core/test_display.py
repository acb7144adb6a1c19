"""Estimates and tables as Python shows them, and as data frames."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pytest

import dialeval
from dialeval.core.display import Tabular
from dialeval.core.errors import NeedError
from dialeval.core.fold import Estimate

ROWS = [{"dialog_id": f"d{n // 2}", "response": "one two three"[: 3 + n], "reference": "one two"} for n in range(8)]


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    return dialeval.evaluate(
        {"a": ROWS, "b\x1b[2J\n": [{**row, "response": "else"} for row in ROWS]}, metrics="length,distinct,rouge-l"
    )


def test_everything_public_prints_as_one_short_line(run: dialeval.Run) -> None:
    comparison = dialeval.compare(run, resamples=20, trials=20)
    rated = [{**row, "scores": number % 5, "system": "a"} for number, row in enumerate(ROWS)]
    agreement = dialeval.measure_agreement(rated, metrics="rouge-l", resamples=5)
    for shown in (run, run["a"], run["a"]["length"], comparison, agreement, run.score_table):
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


@dataclass
class Two(Tabular):
    def to_arrow(self) -> pa.Table:
        return pa.table({"key": ["a", "b"], "value": [1.5, None]})


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_what_is_missing_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch, library: str
) -> None:
    monkeypatch.setitem(sys.modules, library, None)
    with pytest.raises(NeedError, match=f"pip install {library}"):
        getattr(Two(), f"to_{library}")()
