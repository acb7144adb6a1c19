"""Slices for people: worst first, marks only where a corrected test is significant, nothing claimed otherwise."""

from __future__ import annotations

import csv
import io
import json
import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields
from rich.console import Console

from analysis.test_slices import QUICK, TOPICS, drawn, result
from dialeval import sample_data
from dialeval.analysis.slices import Slices, slices
from dialeval.core.result import Run
from dialeval.multiwoz import evaluate
from dialeval.reports.explorer import make_explorer
from dialeval.reports.html import render
from dialeval.reports.slices import FORMATS, choose_keys, lay_out, list_notes, make_section, state_losses
from dialeval.reports.summary import make_summary
from reports.test_html import HOSTILE, Page


@pytest.fixture(scope="module")
def found() -> Slices:
    return slices(drawn(1, "train"), "topic", **QUICK)


@pytest.fixture(scope="module")
def alike() -> Slices:
    return slices(drawn(2), "topic", **QUICK)


def printed(of: Slices, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(lay_out(of))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_the_sentence_names_the_slice_with_the_largest_significant_loss(found: Slices) -> None:
    (sentence,) = state_losses(found)
    assert re.fullmatch(
        r"new loses most to old where topic is train: rouge-l -0\.\d+ \[-0\.\d+, -0\.\d+\] "
        r"\(significance level 0.05, corrected for 3 tests in all slices\)\.",
        sentence,
    )


def test_nothing_is_claimed_that_is_not_significant(alike: Slices) -> None:
    assert state_losses(alike) == []
    assert (
        next(iter(list_notes(alike)))
        == "No slice differs significantly from old (significance level 0.05, corrected for 3 tests in all slices)."
    )
    assert not any(mark in printed(alike).split("No slice")[0] for mark in "▲▼◆")


def test_a_gain_is_no_loss() -> None:
    turned = slices(drawn(1, "train"), "topic", baseline="new", **QUICK)
    assert state_losses(turned) == []
    assert "▲" in printed(turned)


def test_the_table_has_all_rows_and_every_slice_worst_first(found: Slices) -> None:
    lines = [line.split() for line in printed(found).splitlines()]
    names = [line[0] for line in lines if line and line[0] in (*TOPICS, "all")]
    assert names[:2] == ["all", "train"]
    assert set(names[2:4]) == {"taxi", "hotel"}
    (train,) = (line for line in lines if line and line[0] == "train")
    assert train[1] == "20"
    assert train.count("▼") == 1
    assert all(len(line) <= 60 for line in printed(found, 60).splitlines())


def test_every_format_has_every_slice(found: Slices) -> None:
    lines = list(csv.DictReader(io.StringIO(FORMATS["csv"](found))))
    assert {(line["slice"], line["system"]) for line in lines} == {(t, s) for t in TOPICS for s in ("old", "new")}
    (train,) = (line for line in lines if (line["slice"], line["system"]) == ("train", "new"))
    assert float(train["mean"]) == found.slices[2].run["new"]["rouge-l"].mean
    assert float(train["adjusted_p"]) < 0.05
    assert train["significant"] == "True"
    assert json.loads(FORMATS["json"](found))["slices"][2]["slice"] == "train"
    assert "| train | 20 |" in FORMATS["md"](found)
    assert "▼" in FORMATS["md"](found)
    latex = FORMATS["latex"](found)
    assert r"rouge-l $\uparrow$ by topic & dialogues & old & new \\" in latex
    assert re.search(r"train & 20 & [\d.]+ \[[\d., ]+\] & [\d.]+ \$\^\{-\}\$ \[[\d., ]+\] \\\\", latex)
    assert latex.isascii()


def test_what_was_not_tested_is_said() -> None:
    few = [["rare"] if row < 4 else ["often"] for row in range(120)]
    run = Run({name: result(each["rouge-l"].items, few) for name, each in drawn(3).items()}, "0")
    assert "Not tested: topic rare (fewer than 10 dialogues)." in list(list_notes(slices(run, "topic", **QUICK)))
    many = Run({"old": run["old"], **{f"s{n}": run["new"] for n in range(4)}}, "0")
    said = list(list_notes(slices(many, "topic", most_tests=2, **QUICK)))
    assert any(line.startswith("Not tested: s2, s3; so many tests take long.") for line in said)


def test_what_depends_on_other_rows_is_said() -> None:
    folder = sample_data.folder() / "town" / "predictions"
    town = evaluate({name: str(folder / f"{name}.json") for name in ("patient", "hasty")}, "town")
    by_turn = list(list_notes(slices(town, "turn")))
    assert "inform, success, combined: uses statistics of all rows, also within a slice." in by_turn
    assert "inform, success: of whole dialogues, those with a row in the slice." in by_turn
    assert not any("whole dialogues" in line for line in list_notes(slices(town, "domain")))


def test_few_metrics_are_shown_at_once(found: Slices) -> None:
    keys = [f"m{n}" for n in range(5)]
    row = found.differences[0]
    rows = [replace_fields(row, key=key, adjusted_p=1 - at / 10) for at, key in enumerate(keys)]
    some = replace_fields(found.comparisons[0], rows=rows)
    assert choose_keys(replace(found, keys=keys, slices=[replace(found.slices[0], comparison=some)])) == [
        "m2",
        "m3",
        "m4",
    ]


def test_the_section_shows_the_sentence_strips_and_values(found: Slices) -> None:
    page = Page(make_section([found]).content)
    assert "new loses most to old where topic is train" in page.text
    assert "By topic" in page.text
    assert len(page.of("table")) == 1
    content = make_section([found]).content
    assert content.index(">train<") < content.index(">taxi<")
    assert content.count('class="mean"') == 3
    assert content.count('class="figure down"') == 1
    alone = make_section([slices(Run({"new": drawn(1)["new"]}, "0"), "topic")]).content
    assert len(Page(alone).of("table")) == 1
    assert 'class="mean"' not in alone


def test_the_page_has_slices_by_the_fields_that_the_run_kept() -> None:
    run = drawn(1, "train")
    whole = Page(render(run))
    assert "Where it fails" in whole.text
    sentence = "new loses most to old where topic is train"
    assert whole.text.count(sentence) == 2, "in the verdict and in the section"
    assert "Where it fails" in Page(render(run, by=["turn"])).text
    assert sentence not in Page(render(run, by=["turn"])).text
    plain = Run({name: replace(each, rows=replace(each.rows, fields={})) for name, each in run.items()}, "0")  # type: ignore[type-var]
    assert "Where it fails" not in Page(render(plain)).text
    assert sentence in make_summary(run, more=[f"{sentence}."]).content


def test_the_explorer_knows_the_slices_of_its_rows(found: Slices) -> None:
    shown = make_explorer(drawn(1, "train"), [found])
    assert shown is not None
    (group,) = shown[1]["groups"]
    assert [each["name"] for each in group["slices"]] == [f"topic: {topic}" for topic in sorted(TOPICS)]
    assert sorted(row for each in group["slices"] for row in each["rows"]) == list(range(120))
    without = make_explorer(drawn(1))
    assert without is not None
    assert without[1]["groups"][0]["slices"] == []


def test_names_are_text() -> None:
    items = np.random.default_rng(1).random(60)
    label = HOSTILE.encode(errors="ignore").decode()
    labels = [[label if row < 30 else "[bold]x"] for row in range(60)]
    run = Run({HOSTILE: result(items, labels), "b\x1b[31m": result(items * 0.3, labels)}, "0")
    cut: Any = slices(run, "topic", **QUICK)
    page = Page(make_section([cut]).content)
    assert not page.of("script")
    assert not page.of("img")
    assert "\x1b" not in printed(cut)
    assert "[bold]x" in printed(cut)
