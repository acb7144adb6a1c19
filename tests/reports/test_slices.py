"""Slices for people: worst first, marks only where a corrected test is significant, nothing claimed otherwise."""

from __future__ import annotations

import io
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace as replace_fields
from rich.console import Console

from analysis.test_slices import QUICK, drawn, result
from dialeval import sample_data
from dialeval.analysis.slices import Slices, compare_slices
from dialeval.core.result import Run
from dialeval.multiwoz import evaluate
from dialeval.reports.slices import choose_keys, lay_out, list_notes, state_losses
from reports.test_html import HOSTILE, Page, render


@pytest.fixture(scope="module")
def found() -> Slices:
    return compare_slices(drawn(1, "train"), "topic", **QUICK)


@pytest.fixture(scope="module")
def alike() -> Slices:
    return compare_slices(drawn(2), "topic", **QUICK)


def printed(of: Slices, width: int = 100) -> str:
    console = Console(width=width, file=io.StringIO())
    console.print(lay_out(of))
    text: str = console.file.getvalue()  # type: ignore[attr-defined]
    return text


def test_nothing_is_claimed_that_is_not_significant(alike: Slices) -> None:
    assert state_losses(alike) == []
    assert (
        next(iter(list_notes(alike)))
        == "No slice differs significantly from old (significance level 0.05, corrected for 3 tests in all slices)."
    )
    assert not any(mark in printed(alike).split("No slice")[0] for mark in "▲▼◆")


def test_what_was_not_tested_is_said() -> None:
    few = [["rare"] if row < 4 else ["often"] for row in range(120)]
    run = Run({name: result(each["rouge-l"].scores, few) for name, each in drawn(3).items()}, "0")
    assert "Not tested: topic rare (fewer than 10 dialogues)." in list(
        list_notes(compare_slices(run, "topic", **QUICK))
    )
    many = Run({"old": run["old"], **{f"s{n}": run["new"] for n in range(4)}}, "0")
    said = list(list_notes(compare_slices(many, "topic", most_tests=2, **QUICK)))
    assert any(line.startswith("Not tested: s2, s3; so many tests take long.") for line in said)


def test_what_depends_on_other_rows_is_said() -> None:
    folder = sample_data.folder() / "town" / "predictions"
    town = evaluate({name: str(folder / f"{name}.json") for name in ("patient", "hasty")}, "town")
    by_turn = list(list_notes(compare_slices(town, "turn")))
    assert "inform, success, combined: uses statistics of all rows, also within a slice." in by_turn
    assert "inform, success: of whole dialogues, those with a row in the slice." in by_turn
    assert not any("whole dialogues" in line for line in list_notes(compare_slices(town, "domain")))


def test_few_metrics_are_shown_at_once(found: Slices) -> None:
    keys = [f"m{n}" for n in range(5)]
    row = found.differences[0]
    rows = [replace_fields(row, key=key, adjusted_p=1 - at / 10) for at, key in enumerate(keys)]
    some = replace_fields(found.comparisons[0], differences=rows)
    assert choose_keys(replace(found, keys=keys, slices=[replace(found.slices[0], comparison=some)])) == [
        "m2",
        "m3",
        "m4",
    ]


def test_names_are_text() -> None:
    items = np.random.default_rng(1).random(60)
    label = HOSTILE.encode(errors="ignore").decode()
    labels = [[label if row < 30 else "[bold]x"] for row in range(60)]
    run = Run({HOSTILE: result(items, labels), "b\x1b[31m": result(items * 0.3, labels)}, "0")
    cut: Any = compare_slices(run, "topic", **QUICK)
    page = Page(render(run, by="topic"))
    assert page.of("script").count({}) == 2
    assert "Where" in page.text
    assert not page.of("img")
    assert "\x1b" not in printed(cut)
    assert "[bold]x" in printed(cut)
