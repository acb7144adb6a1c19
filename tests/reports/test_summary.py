"""The summary: what is best, what differs from the first system, what is a floor, and what cannot be compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.summary import make_summary
from reports.test_html import Page

if TYPE_CHECKING:
    from dialeval.core.arrays import Floats

RANDOM = np.random.default_rng(7)
LOW: Floats = RANDOM.uniform(0.1, 0.3, 80)


def result(items: Floats, key: str = "bleu-4", signature: str | None = None) -> Result:
    signed = Signature.of(signature or key, n=4)
    made = Estimate(float(items.mean()), float(items.std()), len(items), len(items), scores=items, signature=signed)
    return Result({key: made.with_confidence(1.97)}, rows=RowTable(np.arange(len(items) + 1)))


def cells(run: Run, **options: Any) -> list[tuple[str, str]]:
    """Class and text of the figures of the first table of values, without the names that narrow windows show."""
    table = make_summary(run, **options).content.partition('<table class="summary')[2].partition("</tbody>")[0]
    found = re.findall(r'<td class="(figure[^"]*)">(.*?)</td>', table)
    shown = ((kind, re.sub('<title>.*?</title>|<span class="who">.*?</bdi></span>', "", text)) for kind, text in found)
    return [(kind, re.sub("<[^>]*>", "", text)) for kind, text in shown]


def test_the_best_is_bold_and_a_difference_has_a_mark_and_a_strip() -> None:
    less = result(LOW * 0.5)
    run = Run({"base": result(LOW), "same": result(LOW + 1e-5), "more": result(LOW + 0.4), "less": less}, "0")
    base, same, more, worse = cells(run)
    kinds = [kind for kind, _ in (base, same, more, worse)]
    assert kinds == ["figure", "figure up", "figure best up", "figure down"]
    assert not set("▲▼") & set(base[1])
    assert ("▲" in more[1], "▼" in worse[1]) == (True, True)
    drawn = [attrs["aria-label"] for attrs in Page(make_summary(run).content).of("svg") if "aria-label" in attrs]
    assert [label.split(",")[0] for label in map(str, drawn[:3])] == ["same", "more", "less"]
    assert str(drawn[1]).endswith(", better")
    assert str(drawn[2]).endswith(", worse")


def test_where_lower_is_better_the_lowest_is_bold() -> None:
    run = Run({"base": result(LOW, "jsd-o-t-x"), "more": result(LOW + 0.4, "jsd-o-t-x")}, "0")
    assert [kind for kind, _ in cells(run)] == ["figure best", "figure down"]
    assert "lower is better" in Page(make_summary(run).content).text


def test_where_no_direction_is_known_nothing_is_best() -> None:
    for key in ("length", "unheard-of"):
        run = Run({"base": result(LOW, key), "more": result(LOW + 0.4, key)}, "0")
        assert [kind for kind, _ in cells(run)] == ["figure", "figure other"]
        text = Page(make_summary(run).content).text
        assert "higher is better" not in text
        assert "lower is better" not in text
