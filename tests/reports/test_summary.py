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
from dialeval.reports.summary import MANY, make_summary
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


def test_a_folded_metric_does_not_squeeze_the_strips_of_the_first_table() -> None:
    rng = np.random.default_rng(3)

    def make(bleu: Floats, length: Floats) -> Result:
        both = {**result(bleu), **result(length, "length")}
        return Result(both, rows=RowTable(np.arange(len(bleu) + 1)))

    base = make(LOW, rng.uniform(4, 5, len(LOW)))
    longer = make(LOW + rng.normal(0.01, 0.06, len(LOW)), rng.uniform(14, 15, len(LOW)))
    alone = make_summary(Run({"a": result(LOW), "b": Result({"bleu-4": longer["bleu-4"]}, rows=longer.rows)}, "0"))
    tables = make_summary(Run({"a": base, "b": longer}, "0")).content.split('<table class="summary')[1:]
    axes = [re.findall(r"<text[^>]*>([^<]*)</text>", table.partition("</tbody>")[2]) for table in tables]
    assert len(list(filter(None, axes))) == 2
    assert axes[0] != axes[1]
    assert axes[0] == re.findall(r"<text[^>]*>([^<]*)</text>", alone.content.partition("</tbody>")[2])[: len(axes[0])]


def test_many_systems_are_rows_and_floors_stand_last() -> None:
    names = [f"s{at}" for at in range(MANY)]
    systems = {"floor/x": replace(result(LOW), role="floor"), **{name: result(LOW) for name in names}}
    section = make_summary(Run(systems, "0"), compared=False)
    body = section.content.partition("<tbody>")[2].partition("</tbody>")[0]
    heads = re.findall(r'<th scope="row">.*?<bdi class="name">(.*?)</bdi>', body)
    assert heads == [*names, "floor/x"]
    kinds = [kind for kind, _ in cells(Run(systems, "0"), compared=False)]
    assert kinds == ["figure best"] * MANY + ["figure anchor"], "all are equal"
    few = dict(list(systems.items())[:3])
    columns = make_summary(Run(few, "0"), compared=False).content.partition("<thead>")[2].partition("</thead>")[0]
    assert re.findall(r'<bdi class="name">(.*?)</bdi>', columns) == ["s0", "s1", "floor/x"]


def test_the_verdict_on_many_systems_is_one_sentence_and_the_rest_is_folded() -> None:
    by = {"base": 0.0, "up": 0.4, "down": -0.2, "same": 1e-9, "far": 0.5, "low": -0.1}
    run = Run({name: result(LOW + value) for name, value in by.items()}, "0")
    content = make_summary(run).content
    first = Page(content.partition('<ul class="answer">')[2].partition("</ul>")[0]).text
    assert "better: up, same, far; worse: down, low." in first
    assert content.index("System by system") < content.index("<table")
    assert "Ranking by bleu-4: far > up > same > base > low > down." in first
    assert content.partition("<table")[0].count("<li>") == 2 + len(by) - 1


def test_the_caption_says_which_intervals_there_are() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")
    assert "Means with intervals, over rows (mean ± 1.97 · std / √n)." in Page(make_summary(run).content).text


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


def test_floors_and_ceilings_are_marked_and_take_no_part() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.1), "gold": replace(result(LOW + 0.6), role="ceiling")}, "0")
    page = Page(make_summary(run).content)
    assert [kind for kind, _ in cells(run)] == ["figure", "figure best up", "figure anchor"]
    assert "ceiling" in page.text
    assert "baseline" in page.text
    assert "gold against" not in page.text
    alone = Page(make_summary(Run({"base": result(LOW), "constant": replace(result(LOW), role="floor")}, "0")).content)
    assert "Differences" not in alone.text


def test_rows_are_counted_where_systems_have_not_as_many() -> None:
    run = Run({"base": result(LOW), "short": result(LOW[:40])}, "0")
    text = Page(make_summary(run).content).text
    assert "base80 turns" in text
    assert "short40 turns" in text
    assert "base80 turns" not in Page(make_summary(Run({"base": result(LOW), "same": result(LOW)}, "0")).content).text


def test_differences_can_be_opened() -> None:
    page = Page(make_summary(Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")).content)
    for part in ("Differences from base", "more against base", "+0.4000", "80/0/0", "seed 12345, one test"):
        assert part in page.text


def test_what_was_scored_otherwise_is_not_compared_and_the_page_says_why() -> None:
    run = Run({"base": result(LOW), HOSTILE: result(LOW, signature=f"bleu({HOSTILE})")}, "0")
    page = Page(make_summary(run).content)
    assert "Not compared: bleu-4: settings of metric differ" in page.text
    assert not page.of("img")
    shorter = Run({"base": result(LOW), "short": result(LOW[:40])}, "0")
    assert "Unpaired design: 80 rows of base and 40 of short" in Page(make_summary(shorter).content).text
    unknown = Run({"base": result(LOW), "short": replace(result(LOW), rows=None)}, "0")
    page = Page(make_summary(unknown).content)
    assert "Not compared: " in page.text
    assert "Differences" not in page.text


def test_without_comparison_there_are_no_marks() -> None:
    run = Run({"base": result(LOW), "more": result(LOW + 0.4)}, "0")
    assert not [text for _, text in cells(run, compared=False) if set("▲▼◆") & set(text)]
    assert "Differences" not in Page(render(run, compared=False)).text
