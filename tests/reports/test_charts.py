"""Charts: scales, bins, intervals; every chart is valid SVG with a title, axes and words, whatever its texts are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.errors import NeedError, SettingError
from dialeval.reports import canvas, charts
from dialeval.reports.canvas import ChartScale, Figure
from dialeval.reports.charts import Mark, Point, assign_quantile_bins, average_by_bin
from dialeval.stats.intervals import t_factor

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

HOSTILE = '<script>alert(1)</script>" onload="x" \u202e]]>'
RANDOM = np.random.default_rng(3)
SVG = "{http://www.w3.org/2000/svg}"


def all_charts(name: str, width: int = 460) -> dict[str, Figure | None]:
    """Every chart, with a name of a system in it."""
    names = [name, "other"]
    values = {each: RANDOM.normal(at, 1.0, 60) for at, each in enumerate(names)}
    line = [Point(1, 0.1, 0.0, 0.2), Point(2, 0.2, 0.1, 0.3), Point(3, math.nan)]
    return {
        "forest": charts.forest([Mark(each, 0.5, (0.1, 0.9)) for each in names], name, name, zero=True, width=width),
        "distribution": charts.distribution(values, name, name, width=width),
        "scatter": charts.scatter({each: (v, v + 1) for each, v in values.items()}, name, name, name, width=width),
        "calibration": charts.calibration(values[name], values["other"], name, name, name, width=width),
        "curves": charts.curves(dict.fromkeys(names, line), name, name, name, notes=[name], width=width),
        "numbered": charts.curves(
            {name: [point._replace(x=at) for at, point in enumerate(line)]}, name, name, name, width=width
        ),
        "trend": charts.curves({name: line}, name, name, name, labels=[name] * 4, width=width),
        "bins": charts.curves({each: [Point(1, 0.5, 0.4, 0.6)] for each in names}, name, name, name, width=width),
        "bars": charts.bars({name: dict.fromkeys(names, 3)}, name, name, width=width),
        "matrix": charts.matrix(np.array([[0.1, math.nan]]), [name], names, name, name, width=width),
        "wins": charts.win_matrix({name: {"other": (3, 1, 2)}, "other": {name: (2, 1, 3)}}, width=width),
        "length": charts.length_preference(np.exp(RANDOM.normal(size=50)), RANDOM.random(50).round(), width=width),
        "tasks": charts.task_trial_grid({name: {name: [1.0, 0.0, math.nan]}, "b": {}}, name, width=width),
    }


@pytest.mark.parametrize("width", [240, 460, 900])
def test_every_chart_is_valid_svg_in_which_texts_stay_texts(width: int) -> None:
    for kind, drawn in all_charts(HOSTILE, width).items():
        assert drawn is not None
        for markup in (drawn.svg, drawn.inline):
            root = ET.fromstring(markup)
            assert root.get("role") == "img"
            tags = ["svg", "style", "text", "line", "g", "title", "rect", "path", "circle", "polygon", "polyline"]
            assert {each.tag.removeprefix(SVG) for each in root.iter()} <= set(tags), kind
            assert not [name for each in root.iter() for name in each.attrib if name in ("onload", "style")]
        assert float(root.get("width") or 0) == width
        assert "\u202e" not in drawn.svg


def test_every_chart_has_a_title_axis_titles_and_words() -> None:
    for kind, drawn in all_charts("a").items():
        assert drawn is not None
        root = ET.fromstring(drawn.svg)
        titles = [each.text for each in root.iter(f"{SVG}text") if each.get("class") == "title"]
        assert titles, kind
        assert str(root.get("aria-label")).startswith(f"{drawn.title}. ")
        assert drawn.description, kind
        axes = [each for each in root.iter(f"{SVG}text") if each.get("class") in ("axis-title", "tick start")]
        assert axes, kind


def test_nothing_is_drawn_outside_of_a_chart() -> None:
    for kind, drawn in all_charts("a name of a system that is rather long").items():
        assert drawn is not None
        root = ET.fromstring(drawn.svg)
        for each in root.iter():
            for name, most in (("x", drawn.width), ("y", drawn.height), ("x2", drawn.width), ("y2", drawn.height)):
                assert float(each.get(name) or 0) <= most + 0.1, (kind, each.attrib)


def test_without_values_there_is_no_distribution() -> None:
    assert charts.distribution({"a": np.array([math.nan])}, "t", "x") is None
    assert charts.distribution({}, "t", "x") is None


def test_twelve_systems_differ_in_shape_without_color() -> None:
    shapes = [re.sub(r'(transform|cx|cy)="[^"]*"', "", canvas.draw_marker(5, 5, number)) for number in range(12)]
    assert len(set(shapes)) == 12


@pytest.mark.parametrize("ends", [(0.0, 1.0), (-3.0, 7.5), (0.1814, 0.1815), (0.0, 1e-12), (1e9, 1e9 + 1), (4.0, 4.0)])
def test_ticks_are_round_and_inside(ends: tuple[float, float]) -> None:
    scale = ChartScale.from_values(ends, 300)
    assert scale is not None
    assert 1 <= len(scale.ticks) <= 6
    assert all(0 <= scale(tick) <= 300 for tick in scale.ticks)
    assert scale(scale.low) < scale(scale.high)


def test_a_scale_without_a_finite_value_is_none() -> None:
    assert ChartScale.from_values([], 100) is None
    assert ChartScale.from_values([math.nan, math.inf], 100) is None
    assert ChartScale.from_values([-1e308, 1e308], 100) is None, "its width is no float"


def test_equal_values_stand_in_the_middle() -> None:
    for value in (4.0, 0.0, -2.0):
        scale = ChartScale.from_values([value, value], 100)
        assert scale is not None
        assert scale(value) == 50


def test_bars_of_a_histogram_are_fractions_of_the_rows() -> None:
    values = {"a": np.array([1.0] * 3 + [2.0]), "b": np.array([5.0] * 4)}
    drawn = charts.distribution(values, "t", "x", unit="ratings")
    assert drawn is not None
    assert "the tallest bar is 100%" in drawn.inline
    assert drawn.description == "a: mean 1.2, 4 ratings. b: mean 5.0, 4 ratings."
    polygons = [each.get("points") for each in ET.fromstring(drawn.svg).iter(f"{SVG}polygon")]
    heights = [{round(float(y), 1) for _, y in (p.split(",") for p in str(points).split())} for points in polygons]
    (first, second) = ([max(own) - y for y in sorted(own)] for own in heights)
    assert np.allclose(first, [0.75 * second[0], 0.25 * second[0], 0.0], atol=0.11), "one bin for each whole number"


def test_intervals_of_bins_are_over_clusters() -> None:
    values = RANDOM.normal(size=40)
    (alone,) = average_by_bin(np.zeros(40, np.int64), values)
    error = values.std(ddof=1) / math.sqrt(40)
    assert np.isclose(alone.high - alone.y, t_factor(0.95, 39) * error)
    (paired,) = average_by_bin(np.zeros(80, np.int64), np.repeat(values, 2), np.repeat(np.arange(40), 2))
    assert np.isclose(paired.high, alone.high), "a value that occurs twice is no more evidence"
    (one,) = average_by_bin(np.zeros(3, np.int64), values[:3], np.zeros(3, np.int64))
    assert math.isnan(one.low)


def test_intervals_of_proportions_stay_between_0_and_1() -> None:
    (found,) = average_by_bin(np.zeros(9, np.int64), np.ones(9))
    assert (found.y, found.high) == (1.0, 1.0)
    assert 0.5 < found.low < 1


def test_missing_values_are_in_no_bin() -> None:
    found = average_by_bin(np.array([0, 0, 1]), np.array([1.0, math.nan, math.nan]))
    assert [(each.x, each.y) for each in found] == [(0.0, 1.0)]


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=60))
def test_quantile_bins_keep_the_order_and_equal_values_together(values: list[float]) -> None:
    column = np.array(values)
    bins = assign_quantile_bins(column)
    order = np.argsort(column, kind="stable")
    assert (np.diff(bins[order]) >= 0).all()
    assert len({(value, number) for value, number in zip(values, bins.tolist(), strict=True)}) == len(set(values))


def test_a_win_is_framed_where_its_interval_excludes_a_half() -> None:
    even = charts.win_matrix({"a": {"b": (10, 0, 10)}, "b": {"a": (10, 0, 10)}})
    clear = charts.win_matrix({"a": {"b": (90, 0, 10)}, "b": {"a": (10, 0, 90)}})
    assert " marked" not in even.inline
    assert clear.inline.count(' marked"') == 2
    assert "a, b: 90% [83, 94] (marked)." in clear.description


def test_length_is_seen_from_both_sides() -> None:
    longer = np.full(60, 2.0)
    drawn = charts.length_preference(longer, np.array([1.0] * 45 + [0.0] * 15))
    assert drawn.description == "all pairs: from 0.250 to 0.750."


def test_tasks_that_flip_come_first() -> None:
    outcomes = {"always": [1.0, 1.0], "flips": [1.0, 0.0], "never": [0.0, math.nan]}
    drawn = charts.task_trial_grid({"a": outcomes}, "t")
    names = [each.text for each in ET.fromstring(drawn.svg).iter(f"{SVG}text") if each.text in ("always", "flips")]
    assert names == ["flips", "always"]
    assert drawn.description == "Tasks that pass in some trials and fail in others: a: 1 of 3 tasks."
    both = charts.task_trial_grid({"a": outcomes, "b": {"never": [0.0, 1.0], "always": [1.0]}}, "t")
    texts = [each.text for each in ET.fromstring(both.svg).iter(f"{SVG}text")]
    assert texts[1:6] == ["a", "b", "flips", "never", "always"], "systems side by side, tasks that flip in any first"
    assert both.content.count('class="passed"') == 5
    assert both.content.count('class="failed"') == 3


@pytest.mark.parametrize(("form", "head"), [("svg", b"<svg"), ("png", b"\x89PNG"), ("pdf", b"%PDF-")])
def test_a_chart_is_saved_by_its_suffix(tmp_path: Path, form: str, head: bytes) -> None:
    if form != "svg":
        pytest.importorskip("vl_convert", reason="needs the extra report")
    drawn = charts.forest([Mark("a", 0.5, (0.1, 0.9))], "t", "x", width=288)
    content = drawn.save(tmp_path / f"x.{form}").read_bytes()
    assert content.startswith(head)
    if form == "pdf":
        box = re.search(rb"MediaBox \[0 0 ([\d.]+)", content)
        assert box is not None
        assert float(box[1]) == 216, "3 inches of 72 points"


def test_other_forms_are_refused_and_a_missing_extra_has_a_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    drawn = charts.forest([Mark("a", 0.5)], "t", "x")
    with pytest.raises(SettingError, match="svg, png, pdf"):
        drawn.save(tmp_path / "x.gif")
    monkeypatch.setattr(canvas, "find_spec", lambda _name: None)
    with pytest.raises(NeedError, match=r"dialeval\[report\]"):
        drawn.save(tmp_path / "x.pdf")


def test_a_notebook_shows_the_chart() -> None:
    drawn: Callable[[], str] = charts.forest([Mark("a", 0.5)], "t", "x")._repr_html_
    assert "<style>" in drawn()
