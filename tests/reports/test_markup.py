"""The pieces of HTML: escaped where they come from outside, and well-formed."""

from __future__ import annotations

import json

import pytest

from dialeval.reports import markup
from reports.test_html import HOSTILE, Page


@pytest.mark.parametrize("made", [markup.text(HOSTILE), markup.name(HOSTILE), markup.text(HOSTILE, lines=True)])
def test_texts_from_outside_are_no_markup(made: str) -> None:
    page = Page(made)
    assert [tag for tag, _ in page.tags] == ["bdi"]
    assert "\u202e" not in page.text
    assert "<script>" in page.text


def test_a_table_is_well_formed_and_scrolls_by_keyboard() -> None:
    line = markup.row("<i>title</i>", markup.cells("1", "2", kind="figure") + markup.cells("x"))
    page = Page(markup.table("kind", "caption", markup.heads("a", "b"), [line]))
    assert page.of("div") == [{"class": "wide", "tabindex": "0"}]
    assert [attrs.get("class") for attrs in page.of("td")] == ["figure", "figure", None]
    assert [attrs["scope"] for attrs in page.of("th")] == ["col", "col", "row"]


def test_embedded_data_cannot_end_its_element() -> None:
    hostile = "</script><!-- & \u2028\u2029"
    page = Page(markup.embed_json("place", {"x": hostile}))
    assert not set("<>&\u2028\u2029") & set(page.scripts[0])
    assert json.loads(page.scripts[0]) == {"x": hostile}
