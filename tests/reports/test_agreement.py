"""Agreement with people as tables."""

from __future__ import annotations

import csv
import io
import json
import math
import re
from dataclasses import replace
from html import escape
from typing import Any

import pytest
from rich.console import Console

import dialeval
from analysis.test_agreement import rated
from dialeval.analysis.metric_ranking import Place, Ranking
from dialeval.reports.agreement import FORMATS, notes, table, verdict


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
    assert [line for line in text.splitlines() if " level, n = " in line] == [
        "turn level, n = 60",
        "dialogue level, n = 30",
        "system level, n = 3",
    ]
    family = "corrected by Holm for all coefficients of a table: " + ", ".join(
        f"9 at {level} level" for level in ("turn", "dialogue", "system")
    )
    assert f"* differs from 0 (5% level, {family})" in " ".join(text.split())
    assert "group: metrics that share a letter cannot be told apart" in text
    assert "Krippendorff's alpha: nominal" in text
    assert re.search(rf"{found['rouge-l']['turn'].pearson:.3f}\*? \[", text)


def test_a_star_stands_where_the_corrected_p_is_small(found: dialeval.Agreement) -> None:
    table = [line.split("|") for line in FORMATS["md"](found).split("dialogue level")[0].splitlines() if "|" in line]
    lines = {cells[1].strip(): cells[3:6] for cells in table}
    for key in found.metrics:
        for name, cell in zip(("pearson", "spearman", "kendall"), lines[key.replace("_", r"\_")], strict=True):
            each = found[key]["turn"]
            assert ("*" in cell) == (each.adjusted_p[name] < 0.05), (key, name)
            low, high = each.intervals[name]
            assert "*" not in cell or low > 0 or high < 0, (key, name)


def test_the_best_metric_stands_first_at_the_level_of_the_ranking(found: dialeval.Agreement) -> None:
    rows = [line.split()[0] for line in printed(found).split("turn level, n")[1].splitlines()[3:6]]
    assert rows == [place.metric for place in found.ranking.places]
    values = [place.value for place in found.ranking.places]
    assert values == sorted(values, reverse=True)


def place(metric: str, value: float, groups: str = "a", turned: bool = False) -> Place:
    return Place(metric, value, turned, groups)


def said(found: dialeval.Agreement, ranking: Ranking, **more: Any) -> str:
    (sentence,) = verdict(replace(found, ranking=ranking, **more))
    return sentence


def test_the_verdict_names_the_best_and_what_it_can_be_told_from(found: dialeval.Agreement) -> None:
    best = found["length"]["turn"]
    assert best.intervals["spearman"][0] > 0
    first = f"length agrees best with people: Spearman rho {best.spearman:.2f} ["
    names = ["length", "rouge-l", "nlg-bleu-4"]
    places = [place(name, best.spearman) for name in names]
    ps = {("length", "rouge-l"): 0.01, ("length", "nlg-bleu-4"): 0.2, ("rouge-l", "nlg-bleu-4"): 1.0}
    ranking = Ranking("turn", places, ps)
    assert said(found, ranking).startswith(first)
    better = "] over 60 turns. It is better than rouge-l; it cannot be told from nlg-bleu-4"
    assert f"{better} (5% level, corrected for 3 tests)." in said(found, ranking)
    told = Ranking("turn", places, dict.fromkeys(ps, 0.01))
    assert "It is better than rouge-l and nlg-bleu-4 (5% level" in said(found, told)
    assert "told from" not in said(found, told)
    none = Ranking("turn", places, dict.fromkeys(ps, 0.06))
    assert "It cannot be told from rouge-l and nlg-bleu-4 (5% level" in said(found, none)
    assert "better than" not in said(found, none)
    assert "Not shown" not in said(found, none, not_above_control=["rouge-l"]), "length is the best"
    assert said(found, Ranking("turn", places[:1])).endswith(" turns.")
    swapped = Ranking("turn", [place("length", 0.5, turned=True)])
    assert f"rho 0.50 [-{best.intervals['spearman'][1]:.2f}".replace("-0.", "-.") in said(found, swapped)


def test_no_metric_is_said_to_agree_without_a_small_corrected_p(found: dialeval.Agreement) -> None:
    flat = replace(found["length"]["turn"], adjusted_p={"spearman": 0.06})
    unsure = replace(found, metrics={**found.metrics, "length": {"turn": flat}})
    ranking = Ranking("turn", [place("length", 0.4), place("rouge-l", 0.3)], {("length", "rouge-l"): 0.01})
    assert said(unsure, ranking).startswith("No metric can be said to agree with people: the highest, length, has ")
    assert said(found, Ranking("turn")) == "No metric could be correlated with what people say of overall."


def test_intervals_fit_eighty_columns(found: dialeval.Agreement) -> None:
    figures = [line for line in printed(found).splitlines() if re.match(r"(rouge-l|length)  .*\[", line)]
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
    assert (
        "\n| turn level, n = 60: metric | group | Pearson r | Spearman rho | Kendall tau |\n| --- | ---: |"
        in FORMATS["md"](found)
    )
    latex = FORMATS["latex"](found)
    assert latex.count(r"\toprule") == latex.count(r"\bottomrule") == 1
    assert latex.count("&") == 4 * 12
    assert latex.count(r"\caption{") == latex.count(r"\label{tab:agreement}") == 1
    assert "agrees best with people" in latex.split(r"\label")[0]


def test_the_page_says_the_same_and_holds_names_as_text() -> None:
    found = dialeval.agreement(rated(), metrics="rouge-l", resamples=30)
    hostile = replace(found, quality="<script>alert(1)</script>", warnings=["<img src=x>"])
    page = FORMATS["html"](hostile)
    assert page.startswith("<!DOCTYPE html>")
    assert "<script>alert" not in page
    assert "<img" not in page
    for line in (*verdict(found), *notes(found)[1:]):
        assert escape(line) in page
    assert page.count('<table class="agreement">') == 3


def test_what_has_no_figures_is_a_dash() -> None:
    rows = rated(scores=3)
    none = dialeval.agreement(rows, metrics="length", resamples=5)
    assert printed(none).startswith("No metric could be correlated with what people say of overall.")
    assert " level, n" not in printed(none)
    assert all(math.isnan(each.pearson) for each in none["length"].values())
    one = dialeval.agreement([{**row, "reference": None} for row in rated()], metrics="length", resamples=5)
    assert "–" not in FORMATS["md"](one)
