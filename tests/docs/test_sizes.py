"""The page of `python -m benchmarks sizes`: drawing, table and figures belong together."""

from __future__ import annotations

from itertools import pairwise
from xml.etree import ElementTree as ET

from benchmarks.loglog import drawing
from benchmarks.sizes import FOLDER, OURS, table, written_rows

SVG = "{http://www.w3.org/2000/svg}"


def test_the_page_and_the_plot_are_those_of_the_figures() -> None:
    rows = written_rows()
    panels: dict[str, dict[str, list[tuple[float, float]]]] = {}
    for what, program, size, cost in rows:
        panels.setdefault(what, {}).setdefault(program, []).append((size, cost))
    assert table(rows) in (FOLDER / "sizes.md").read_text()
    assert drawing(panels, "lines", "CPU seconds") == (FOLDER / "sizes.svg").read_text()
    assert all(OURS in lines and len(lines) > 1 for lines in panels.values())


def test_a_line_goes_up_and_to_the_right_and_names_are_text() -> None:
    drawn = drawing({"<a>": {"ours & theirs": [(100, 0.1), (1000, 1), (10_000, 10)]}}, "lines", "seconds")
    root = ET.fromstring(drawn)
    line = next(root.iter(f"{SVG}polyline")).attrib["points"]
    points = [tuple(map(float, pair.split(","))) for pair in line.split()]
    steps = [(x2 - x1, y1 - y2) for (x1, y1), (x2, y2) in pairwise(points)]
    assert all(right > 0 and up > 0 for right, up in steps)
    assert abs(steps[0][0] - steps[1][0]) < 0.2, "ten times is as far everywhere"
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "<a>" in texts
    assert "ours & theirs" in texts
