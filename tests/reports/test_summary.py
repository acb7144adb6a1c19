"""The first screen and the table of metrics: what is better, what is best, and what cannot be compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import numpy as np
import pytest
from msgspec.structs import replace

from dialeval.analysis.comparison import compare
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.html import report
from dialeval.reports.summary import read_difference
from reports.test_html import HOSTILE, Page, render

if TYPE_CHECKING:
    from pathlib import Path

    from dialeval.core.arrays import Floats

RANDOM = np.random.default_rng(7)
LOW: Floats = RANDOM.uniform(0.1, 0.3, 80)


def result(items: Floats, key: str = "bleu-4", signature: str | None = None) -> Result:
    signed = Signature.of(signature or key, n=4)
    made = Estimate(float(items.mean()), float(items.std()), len(items), len(items), scores=items, signature=signed)
    return Result({key: made.with_confidence(1.97)}, table=RowTable(np.arange(len(items) + 1)))


def first_table(run: Run, kind: str) -> str:
    return render(run).partition(f'<table class="{kind}"')[2].partition("</table>")[0]


@pytest.mark.parametrize(
    ("key", "more", "reading"),
    [
        ("bleu-4", 0.4, "▲ better"),
        ("bleu-4", -0.05, "▼ worse"),
        ("jsd-o-t-x", 0.4, "▼ worse"),
        ("length", 3.0, "longer"),
        ("bleu-4", 0.0, "no clear difference"),
    ],
)
def test_what_is_decided_is_read_off_a_line(key: str, more: float, reading: str) -> None:
    other = LOW + more if more else RANDOM.permutation(LOW)
    run = Run({"base": result(LOW, key), "new": result(other, key)}, "0")
    assert reading in first_table(run, "metrics")
    headline = Page(render(run)).text
    if "better" in reading or "worse" in reading:
        assert f"new is {reading[2:]} than base" in headline


def test_of_many_systems_the_best_is_bold_and_the_worse_are_marked() -> None:
    systems = {"base": LOW, "more": LOW + 0.4, "less": LOW * 0.5}
    run = Run({name: result(items) for name, items in systems.items()}, "0")
    lines = re.findall(r"<tr><th scope=\"row\">(.*?)</tr>", first_table(run, "systems"))
    assert [re.search("(base|more|less)</bdi>", line)[1] for line in lines] == ["more", "base", "less"]  # type: ignore[index]
    assert ["<b>" in line for line in lines] == [True, False, False]
    assert ["▲" in line for line in lines] == [True, False, False]
    assert ["▼" in line for line in lines] == [False, False, True]
    text = render(run)
    assert "All pairs" in text
    assert len(re.findall('class="hit"', text)) == 2 * 3, "every system is a link, in both drawings"


def test_every_dialogue_is_a_link_and_of_very_many_a_bin_is() -> None:
    few = render(Run({"base": result(LOW), "new": result(LOW * RANDOM.uniform(0.5, 1, 80))}, "0"))
    assert len(set(re.findall('<a href="#(d[0-9]+)"><title>', few))) == 80
    items = RANDOM.uniform(0, 1, 2_000)
    many = render(Run({"base": result(items), "new": result(items * RANDOM.uniform(0.5, 1, 2_000))}, "0"))
    assert not re.findall('<a href="#d[0-9]+"><title>', many)
    assert 10 < len(re.findall("#dialogues\\?low=", many)) < 100


def test_one_system_has_its_value_and_its_worst_dialogues() -> None:
    page = Page(render(Run({"alone": result(LOW)}, "0")))
    assert f"alone: bleu-4 {LOW.mean():.2f}" in page.text
    assert "Read the worst dialogues" in page.text


def test_the_verdict_is_a_picture_to_share(tmp_path: Path) -> None:
    run = Run({HOSTILE.replace("\udc80", ""): result(LOW), "new": result(LOW * 0.8)}, "0")
    card = tmp_path / "card.svg"
    report(run, tmp_path / "report.html", card=card)
    drawn = card.read_text(encoding="utf-8")
    assert 'width="1200" height="630"' in drawn
    assert "new is worse than" in drawn
    assert "<script>" not in drawn
    assert drawn.count("<circle") > 80, "the first figure is in it"


def test_systems_that_cannot_be_compared_say_why() -> None:
    one, other = Result({"k": Estimate(0.5, 0.1, 3, 3)}), Result({"k": Estimate(0.7, 0.1, 3, 3)})
    page = Page(render(Run({"a": one, "b": other}, "0")))
    assert "These systems cannot be compared" in page.text
    assert "score the responses again" in page.text


def test_floors_and_ceilings_are_shown_and_names_are_text() -> None:
    floor = Result(result(LOW).estimates, role="floor")
    page = Page(render(Run({HOSTILE: result(LOW), "b": result(LOW), f"floor/{HOSTILE}": floor}, "0")))
    assert "Floors and ceilings" in page.text
    assert not page.of("img")


def test_a_reading_says_that_the_correction_decided() -> None:
    """The interval of one test excludes 0; next to it "no clear difference" alone would contradict it."""
    run = Run({"a": result(LOW), "b": result(LOW + RANDOM.normal(0, 0.1, 80))}, "0")
    row = compare(run).differences[0]
    unclear = replace(row, difference=0.1, interval=(0.01, 0.2), p=0.03, adjusted_p=0.09, significant=False)
    assert read_difference(unclear) == "not clear after correction"
    assert read_difference(replace(unclear, interval=(-0.01, 0.2))) == "no clear difference"
