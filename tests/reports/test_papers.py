"""Tables for papers: several data sets, percentages, digits, bold within a data set only."""

from __future__ import annotations

import re

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.reports.papers import make_paper_table
from reports.test_summary import LOW, result


def run_of(**values: float) -> Run:
    """Return systems with values near each other, or far."""
    return Run({name: result(LOW + value, "rouge-l") for name, value in values.items()}, "0")


def cells(table: str, system: str) -> list[str]:
    line = next(line for line in table.splitlines() if re.match(rf"\|? ?{system} ", line))
    return [cell.strip() for cell in re.split(r"[&|]", line.replace("\\\\", "").strip("| "))]


def test_data_sets_have_columns_of_their_own_and_bold_stays_within_one() -> None:
    noise = 1e-3 * np.random.default_rng(1).normal(size=len(LOW))
    near = Run({"a": result(LOW + 0.4, "rouge-l"), "b": result(LOW + 0.4 + noise, "rouge-l")}, "0")
    table = make_paper_table({"one": run_of(a=0.0, b=0.3), "two": near}, percent=True, digits=1)
    mean = float(LOW.mean())
    assert cells(table, "a") == ["a", f"{100 * mean:.1f}", f"{100 * (mean + 0.4):.1f}"]
    assert cells(table, "b")[1] == rf"\textbf{{{100 * (mean + 0.3):.1f}}}"
    assert not cells(table, "b")[2].startswith(r"\textbf"), "nothing is bold where nothing differs"
    assert r"\multicolumn{1}{c}{one} & \multicolumn{1}{c}{two}" in table
    assert r"\cmidrule(lr){2-2} \cmidrule(lr){3-3}" in table
    assert "not significantly worse" in table
    assert "approximate randomization" in table
    assert r"rouge-l (\%) $\uparrow$" in table


def test_a_system_that_a_data_set_lacks_has_no_value() -> None:
    table = make_paper_table({"one": run_of(a=0.0, b=0.3), "two": run_of(a=0.0, c=0.1)}, form="md", digits=3)
    assert cells(table, "b")[2] == "--"
    assert cells(table, "c")[1] == "--"
    assert cells(table, "c")[2] == f"**{float(LOW.mean()) + 0.1:.3f}**"
    assert "| system | one: rouge-l ↑ | two: rouge-l ↑ |" in table


def test_percentages_are_for_fractions_only() -> None:
    run = dialeval.evaluate({"a": ["one two three"]}, references=["one two"], metrics="rouge-l,length")
    table = make_paper_table({"data": run}, ["length", "rouge-l"], form="md", percent=True, digits=0)
    assert cells(table, "a")[1] == "3"
    assert "rouge-l (%)" in table
    assert "length (%)" not in table


def test_names_are_texts_and_unknown_metrics_are_refused() -> None:
    hostile = Run({r"a_1 & \input{x}": result(LOW, "rouge-l")}, "0")
    assert r"a\_1 \& \textbackslash{}input\{x\}" in make_paper_table({"50%": hostile})
    with pytest.raises(SettingError, match="no run has 'blue'"):
        make_paper_table({"data": hostile}, ["blue"])
    with pytest.raises(SettingError, match="at least one run"):
        make_paper_table({})
