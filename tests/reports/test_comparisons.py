"""Comparisons as tables: marks, bold figures, names that are text in every format, any width of terminal."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

import dialeval
from dialeval import sample_data
from dialeval.analysis.comparison import Comparison, compare
from dialeval.reports import comparisons
from dialeval.reports.documents import to_markdown


def made(name: str = "poor", **settings: float) -> Comparison:
    good = [f"w{n} w{n + 1} w{n % 7}" for n in range(30)]
    bad = [f"w{n % 3} w1" for n in range(30)]
    run = dialeval.evaluate({"good": good, name: bad}, metrics="distinct-1,length")
    return compare(run, resamples=100, trials=300, **settings)  # type: ignore[arg-type]


def printed(comparison: Comparison, width: int) -> str:
    console = Console(file=io.StringIO(), width=width)
    console.print(comparisons.lay_out(comparison))
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("name", ["a|b", "[bold]x", "*b*_i_", "\x1b[31mred", "50% & $x"])
def test_names_stay_text(name: str) -> None:
    comparison = made(name)
    markdown = comparisons.FORMATS["md"](comparison)
    assert all(line.replace(r"\|", "").count("|") == 6 for line in markdown.splitlines() if line.startswith("|"))
    assert "\x1b" not in markdown + comparison.to_latex() + printed(comparison, 120)
    if name == "[bold]x":
        assert name in printed(comparison, 160)


@pytest.mark.parametrize("width", [50, 80, 200])
def test_every_figure_is_shown_at_any_width(width: int) -> None:
    shown = printed(made(detect=0.1), width)
    for head in (
        "metric",
        "good",
        "poor",
        "difference",
        "p",
        "needed",
    ):
        assert head in shown
    assert max(map(len, shown.splitlines())) <= width


def test_an_unclear_verdict_takes_three_lines_of_80_columns() -> None:
    agents = {name: sample_data.folder() / "agents" / f"{name}.jsonl" for name in ("careful", "quick")}
    verdict, _, below = printed(compare(dialeval.evaluate(agents, metrics="pass-hat,pass-at-2")), 80).partition("\n\n")
    assert len(verdict.splitlines()) == 3
    assert "Rough (~)" in below


def few(rows: int, **settings: Any) -> Comparison:
    """A comparison of so many rows."""
    texts = {"a": [f"w{n} w{n}" for n in range(rows)], "b": [f"w{n} w{n + 1} " + "x " * (n % 3) for n in range(rows)]}
    run = dialeval.evaluate(texts, metrics="distinct-1,length")
    return compare(run, resamples=100, trials=300, detect=0.1, **settings)


def test_few_rows_are_marked_and_explained() -> None:
    shown = to_markdown(comparisons.to_document(few(8), details=True))
    assert "p-values: exact randomization test, all 256 permutations" in shown
    assert "~: rough approximation, because there are few rows" in shown
    (line,) = (line for line in shown.splitlines() if line.startswith("| length"))
    detectable, needed = line.split(" | ")[-2:]
    assert detectable.startswith(r"\~")
    assert needed.startswith(r"\~")
    assert "~" not in few(8).to_latex()
    assert "~" not in to_markdown(comparisons.to_document(few(30), details=True))


def test_it_is_said_where_nothing_can_be_significant() -> None:
    assert "No difference can be significant: p is at least 0.062" in comparisons.FORMATS["md"](few(5))
    assert "No difference can" not in comparisons.FORMATS["md"](few(8))
    agents = {name: sample_data.folder() / "agents" / f"{name}.jsonl" for name in ("careful", "quick")}
    several = compare(dialeval.evaluate(agents, metrics="call-f1,call-order,call-exact,reward,tool-f1,tool-recall"))
    assert any(row.significant for row in several.differences)
    assert "No difference can" not in comparisons.FORMATS["md"](several)


def test_how_intervals_were_made_is_told() -> None:
    text = comparisons.FORMATS["md"](few(30))
    assert "paired studentized bootstrap, 100 resamples; jackknife for counts of distinct types," in text
    assert "approximate randomization test with 300 trials" in text
    lengths = compare(dialeval.evaluate({"a": ["x"] * 9, "b": ["x y"] * 9}, metrics="length"), resamples=9)
    assert "jackknife" not in comparisons.FORMATS["md"](lengths)
    assert {row["interval_by"] for row in few(30).to_dict()["differences"]} == {"studentized", "jackknife"}


def test_signatures_are_in_every_format() -> None:
    """So that a table can be cited: what has to be the same where values are compared."""
    run = dialeval.evaluate({"a": ["x y"] * 9, "b": ["x"] * 9}, ["x z"] * 9, metrics="sacrebleu,length")
    comparison = compare(run, resamples=9)
    line = "length|tokenizer:words.1|definition:1|dialeval:"
    assert comparison.signatures["length"].startswith(line)
    latex = comparison.to_latex()
    assert f"\n% {line}" in latex
    assert "\n% sacreBLEU: BLEU|nrefs:1|case:mixed|eff:no|tok:13a|smooth:exp|" in latex
    assert "Signatures:" in comparisons.FORMATS["md"](comparison)
    assert comparison.to_dict()["signatures"]["length"].startswith(line)
