from __future__ import annotations

from pathlib import Path

from tools.site.reference import list_formats

from dialeval.io.row_shapes import SHAPES

PAGE = (Path(__file__).parents[2] / "docs" / "formats.md").read_text(encoding="utf-8")


def test_the_page_of_the_site_has_a_line_for_every_format() -> None:
    shown = list_formats(PAGE)
    assert [shape.name for shape in SHAPES if f"| `{shape.name}` | {shape.title} |" not in shown] == []
