"""Agreement with people as tables."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from typing import Any

import pytest
from msgspec.structs import replace
from rich.console import Console

import dialeval
from analysis.test_agreement import rated
from dialeval.analysis.agreement import MetricRanking, Place
from dialeval.reports.analyses import state_verdict
from dialeval.reports.documents import FORMATS, lay_out


@pytest.fixture(scope="module")
def found() -> dialeval.Agreement:
    rows = rated()
    for row in rows:
        row["system"] = row["system"].replace("s0", "a|b_<i>")
    return dialeval.measure_agreement(rows, metrics="rouge-l,nlg-bleu-4", resamples=30)


def printed(found: dialeval.Agreement, width: int = 80) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(lay_out(found))
    return console.file.getvalue()  # type: ignore[attr-defined]


def test_the_terminal_shows_levels_ceiling_and_control(found: dialeval.Agreement) -> None:
    text = printed(found)
    assert [line for line in text.splitlines() if " level, n = " in line] == [
        "turn level, n = 60",
        "dialogue level, n = 30",
        "system level, n = 3",
    ]
    family = "corrected by Holm for all coefficients of a table: " + ", ".join(
        f"9 at {level} level" for level in ("turn", "dialogue")
    )
    assert f"* differs from 0 (significance level 0.05, {family})" in " ".join(text.split())
    assert "group: metrics that share a letter do not differ significantly" in text
    assert "Krippendorff's alpha: nominal" in text
    assert re.search(rf"{found['rouge-l']['turn'].pearson:.3f}\*? \(", text)


def test_a_star_stands_where_the_corrected_p_is_small(found: dialeval.Agreement) -> None:
    table = [line.split("|") for line in FORMATS["md"](found).split("dialogue level")[0].splitlines() if "|" in line]
    lines = {cells[1].strip(): cells[3:6] for cells in table}
    for key in found.metrics:
        for name, cell in zip(("pearson", "spearman", "kendall"), lines[key.replace("_", r"\_")], strict=True):
            each = found[key]["turn"]
            assert ("*" in cell) == (getattr(each, f"{name}_adjusted_p") < 0.05), (key, name)
            low, high = getattr(each, f"{name}_interval")
            assert "*" not in cell or low > 0 or high < 0, (key, name)


def test_the_best_metric_stands_first_at_the_level_of_the_ranking(found: dialeval.Agreement) -> None:
    rows = [line.split()[0] for line in printed(found).split("turn level, n")[1].splitlines()[3:6]]
    assert rows == [place.metric for place in found.ranking.metrics]
    values = [place.value for place in found.ranking.metrics]
    assert values == sorted(values, reverse=True)


def place(metric: str, value: float, groups: str = "a", turned: bool = False) -> Place:
    return Place(metric, value, turned, groups)


def ranked(*places: Place) -> MetricRanking:
    return MetricRanking("spearman", "turn", len(places) * (len(places) - 1) // 2, places)


def said(found: dialeval.Agreement, *places: Place, **more: Any) -> str:
    (sentence,) = state_verdict(replace(found, ranking=ranked(*places), **more))
    return sentence


def test_the_verdict_names_the_best_and_what_it_can_be_told_from(found: dialeval.Agreement) -> None:
    best = found["length"]["turn"]
    assert best.spearman_interval is not None
    assert best.spearman_interval[0] > 0
    first = f"length has the highest correlation with human ratings: Spearman rho {best.spearman:.2f} ("

    def places(*groups: str) -> list[Place]:
        names = ["length", "rouge-l", "nlg-bleu-4"]
        return [place(name, best.spearman, group) for name, group in zip(names, groups, strict=True)]

    some = said(found, *places("a", "b", "ab"))
    assert some.startswith(first)
    better = ") over 60 turns. It is better than rouge-l; no significant difference from nlg-bleu-4"
    assert f"{better} (significance level 0.05, corrected for 3 tests)." in some
    every = said(found, *places("a", "b", "c"))
    assert "It is better than rouge-l and nlg-bleu-4 (significance level 0.05" in every
    assert "told from" not in every
    none = said(found, *places("a", "a", "a"), control=replace(found.control, not_above=["rouge-l"]))
    assert "No significant difference from rouge-l and nlg-bleu-4 (significance level 0.05" in none
    assert "better than" not in none
    assert "Not shown" not in none, "length is the best"
    assert said(found, places("a", "a", "a")[0]).endswith(" turns.")
    swapped = said(found, place("length", 0.5, turned=True))
    assert f"rho 0.50 (−{best.spearman_interval[1]:.2f}" in swapped


def test_no_metric_is_said_to_agree_without_a_small_corrected_p(found: dialeval.Agreement) -> None:
    flat = replace(found["length"]["turn"], spearman_adjusted_p=0.06)
    unsure = replace(found, metrics={**found.metrics, "length": {"turn": flat}})
    sentence = said(unsure, place("length", 0.4), place("rouge-l", 0.3, "b"))
    assert sentence.startswith("No metric correlates significantly with human ratings: the highest, length, has ")
    assert said(found) == "No metric could be correlated with human ratings of overall."


def test_no_interval_is_broken_over_lines(found: dialeval.Agreement) -> None:
    figures = [line for line in printed(found).splitlines() if re.match(r"(rouge-l|length)  .*\(", line)]
    assert sum(line.count("(") for line in figures) == 2 * 6, "three systems have none"
    assert all(line.count("(") == line.count(")") for line in figures)


def test_a_level_that_repeats_another_is_left_out() -> None:
    single = [{**row, "dialog_id": f"d{number}"} for number, row in enumerate(rated())]
    shown = printed(dialeval.measure_agreement(single, metrics="length", resamples=5))
    assert "turn level" in shown
    assert "dialogue level" not in shown


def test_csv_reads_back_to_the_last_digit(found: dialeval.Agreement) -> None:
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    assert len(lines) == 9
    for line in lines:
        each = found[line["metric"]][line["level"]]
        assert float(line["spearman"]) == each.spearman
        if line["level"] != "system":
            assert (float(line["kendall_low"]), float(line["kendall_high"])) == each.kendall_interval
        assert int(line["n"]) == each.n


def test_json_markdown_and_latex(found: dialeval.Agreement) -> None:
    assert json.loads(FORMATS["json"](found)) == found.to_dict()
    assert (
        "\n| turn level, n = 60: metric | group | Pearson r | Spearman rho | Kendall tau |\n| --- | ---: |"
        in FORMATS["md"](found)
    )
    latex = FORMATS["latex"](found)
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") > 0
    assert "Pearson r" in latex
    assert latex.count(r"\caption{") == latex.count(r"\label{") == 1
    assert "has the highest correlation with human ratings" in latex.split(r"\label")[0]


def test_what_has_no_figures_is_a_dash() -> None:
    rows = rated(scores=3)
    none = dialeval.measure_agreement(rows, metrics="length", resamples=5)
    assert printed(none).startswith("No metric could be correlated with human ratings of overall.")
    assert " level, n" not in printed(none)
    assert all(math.isnan(each.pearson) for each in none["length"].values())
    one = dialeval.measure_agreement([{**row, "reference": None} for row in rated()], metrics="length", resamples=5)
    assert "–" not in FORMATS["md"](one)
