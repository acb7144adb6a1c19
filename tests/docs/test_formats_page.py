from __future__ import annotations

from pathlib import Path

from dialeval.io.row_shapes import OWN, SHAPES

PAGE = Path(__file__).parents[2] / "docs" / "formats.md"
START, END = "<!-- shapes -->\n", "<!-- end of shapes -->"


def table() -> str:
    cells = [(f"`{shape.name}`", shape.title, "yes" if shape.seen else "no") for shape in (OWN, *SHAPES)]
    rows = [("name", "a row is", "read in a real file"), ("---",) * 3, *cells]
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def test_the_page_has_the_table_of_the_command() -> None:
    shown = PAGE.read_text(encoding="utf-8").partition(START)[2].partition(END)[0]
    assert shown == table()
