"""Charts: scales, bins, intervals; every chart is valid SVG with a title, axes and words, whatever its texts are."""

from __future__ import annotations

import math
import re
import xml.etree.ElementTree as ET
from typing import TYPE_CHECKING

import numpy as np
import pytest

from dialeval.core.errors import NeedError, SettingError
from dialeval.reports import charts
from dialeval.reports.charts import Figure, Mark, Point, average_by_bin

if TYPE_CHECKING:
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
        "curves": charts.curves(dict.fromkeys(names, line), name, name, name, notes=[name], width=width),
        "numbered": charts.curves(
            {name: [point._replace(x=at) for at, point in enumerate(line)]}, name, name, name, width=width
        ),
        "bins": charts.curves({each: [Point(1, 0.5, 0.4, 0.6)] for each in names}, name, name, name, width=width),
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


def test_missing_values_are_in_no_bin() -> None:
    found = average_by_bin(np.array([0, 0, 1]), np.array([1.0, math.nan, math.nan]))
    assert [(each.x, each.y) for each in found] == [(0.0, 1.0)]


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
    monkeypatch.setattr(charts, "find_spec", lambda _name: None)
    with pytest.raises(NeedError, match=r"dialeval\[report\]"):
        drawn.save(tmp_path / "x.pdf")
