"""Agreement with people as tables."""

from __future__ import annotations

import csv
import io
import json
import math

import pytest
from rich.console import Console

import dialeval
from analysis.test_agreement import rated
from dialeval.reports.agreement import FORMATS, table


@pytest.fixture(scope="module")
def found() -> dialeval.Agreement:
    rows = rated()
    for row in rows:
        row["system"] = row["system"].replace("s0", "a|b_<i>")
    return dialeval.agreement(rows, metrics="rouge-l,nlg-bleu-4", resamples=30)


def printed(found: dialeval.Agreement, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(table(found))
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def test_the_terminal_shows_levels_ceiling_and_control(found: dialeval.Agreement) -> None:
    text = printed(found)
    assert [line for line in text.splitlines() if line.endswith(" level")] == [
        "turn level",
        "dialogue level",
        "system level",
    ]
    assert "rouge-l *" in text
    assert "* not above length at turn level" in text
    assert "Krippendorff's alpha: nominal" in text
    assert f"{found['rouge-l']['turn'].pearson:.3f} [" in text


def test_intervals_fit_eighty_columns(found: dialeval.Agreement) -> None:
    figures = [line for line in printed(found).splitlines() if line.startswith(("rouge-l", "length"))]
    assert len(figures) == 6
    assert all(line.count("[") == line.count("]") == 3 for line in figures)


def test_a_level_that_repeats_another_is_left_out() -> None:
    single = [{**row, "dialog_id": f"d{number}"} for number, row in enumerate(rated())]
    shown = printed(dialeval.agreement(single, metrics="length", resamples=5))
    assert "turn level" in shown
    assert "dialogue level" not in shown


def test_csv_reads_back_to_the_last_digit(found: dialeval.Agreement) -> None:
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    assert len(lines) == 9
    for line in lines:
        each = found[line["metric"]][line["level"]]
        assert float(line["spearman"]) == each.spearman
        assert (float(line["kendall_low"]), float(line["kendall_high"])) == each.intervals["kendall"]
        assert int(line["n"]) == each.n


def test_json_markdown_and_latex(found: dialeval.Agreement) -> None:
    assert json.loads(FORMATS["json"](found)) == found.to_dict()
    assert FORMATS["md"](found).startswith(
        "| turn: metric | n | Pearson r | Spearman rho | Kendall tau |\n| --- | ---: |"
    )
    latex = FORMATS["latex"](found)
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 1
    assert latex.count("&") == 4 * 12
    assert all(line.startswith("%") for line in latex.split(r"\end{tabular}")[1].strip().splitlines())


def test_what_has_no_figures_is_a_dash() -> None:
    rows = rated(scores=3)
    none = dialeval.agreement(rows, metrics="length", resamples=5)
    assert "level" not in printed(none).split("\n")[0]
    assert all(math.isnan(each.pearson) for each in none["length"].values())
    one = dialeval.agreement([{**row, "reference": None} for row in rated()], metrics="length", resamples=5)
    assert "–" not in FORMATS["md"](one)
