"""The summary: what is best, what differs from the first system, what is a floor, and what cannot be compared."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.html import render
from dialeval.reports.summary import summary
from reports.test_html import HOSTILE, Page

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats

RANDOM = np.random.default_rng(7)
LOW: Floats = RANDOM.uniform(0.1, 0.3, 80)


def result(items: Floats, key: str = "bleu-4", signature: str | None = None) -> Result:
    signed = Signature.of(signature or key, n=4)
    made = Estimate(float(items.mean()), float(items.std()), len(items), len(items), items=items, signature=signed)
    return Result({key: made.with_confidence(1.97)}, rows=RowTable(np.arange(len(items) + 1)))


def cells(run: Run, **options: Any) -> list[tuple[str, str]]:
    """Class and text of the figures of the first table of values."""
    table = summary(run, **options).content.partition('<table class="summary">')[2].partition("</table>")[0]
    found = re.findall(r'<td class="(figure[^"]*)">(.*?)</td>', table)
    return [(kind, re.sub("<[^>]*>", "", text)) for kind, text in found]


def test_the_best_is_bold_and_a_difference_has_a_mark() -> None:
    run = Run({"base": result(LOW), "same": result(LOW), "more": result(LOW + 0.4)}, "0")
    base, same, more = cells(run)
    assert (base[0], same[0], more[0]) == ("figure", "figure", "figure best")
    assert "*" not in base[1] + same[1]
    assert "*" in more[1]
    assert "differs, p = 0.0" in more[1]


def test_the_caption_says_which_intervals_there_are() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")
    assert "Intervals: over rows (mean ± 1.97 · std / √n)." in Page(summary(run).content).text


def test_where_lower_is_better_the_lowest_is_bold() -> None:
    run = Run({"base": result(LOW, "jsd-o-t-x"), "more": result(LOW + 0.4, "jsd-o-t-x")}, "0")
    assert [kind for kind, _ in cells(run)] == ["figure best", "figure"]
    assert "lower is better" in Page(summary(run).content).text


def test_where_no_direction_is_known_nothing_is_best() -> None:
    for key in ("length", "unheard-of"):
        run = Run({"base": result(LOW, key), "more": result(LOW + 0.4, key)}, "0")
        assert [kind for kind, _ in cells(run)] == ["figure", "figure"]
        text = Page(summary(run).content).text
        assert "higher is better" not in text
        assert "lower is better" not in text


def test_floors_and_ceilings_are_marked_and_take_no_part() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.1), "gold": replace(result(LOW + 0.6), role="ceiling")}, "0")
    page = Page(summary(run).content)
    assert [kind for kind, _ in cells(run)] == ["figure", "figure best", "figure"]
    assert "ceiling" in page.text
    assert "baseline" in page.text
    assert "gold against" not in page.text
    alone = Page(summary(Run({"base": result(LOW), "constant": replace(result(LOW), role="floor")}, "0")).content)
    assert "Differences" not in alone.text


def test_differences_can_be_opened() -> None:
    page = Page(summary(Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")).content)
    for part in ("Differences from base", "more against base", "+0.4000", "80, 0, 0", "adjusted by Holm for 1 tests"):
        assert part in page.text


def test_what_was_scored_otherwise_is_not_compared_and_the_page_says_why() -> None:
    run = Run({"base": result(LOW), HOSTILE: result(LOW, signature=f"bleu({HOSTILE})")}, "0")
    page = Page(summary(run).content)
    assert "Not compared: " in page.text
    assert not page.of("img")
    assert "Differences" not in page.text
    shorter = Run({"base": result(LOW), "short": result(LOW[:40])}, "0")
    assert "Not compared: " in Page(summary(shorter).content).text


def test_without_comparison_there_are_no_marks() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")
    assert not [text for _, text in cells(run, compared=False) if "*" in text]
    assert "Differences" not in Page(render(run, compared=False)).text
