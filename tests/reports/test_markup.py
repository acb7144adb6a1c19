"""The pieces of HTML: escaped where they come from outside, and well-formed."""

from __future__ import annotations

import json
from types import SimpleNamespace

import pytest

from dialeval.core.result import Result, Run
from dialeval.reports import markup
from reports.test_html import HOSTILE, Page


@pytest.mark.parametrize("made", [markup.text(HOSTILE), markup.name(HOSTILE), markup.text(HOSTILE, lines=True)])
def test_texts_from_outside_are_no_markup(made: str) -> None:
    page = Page(made)
    assert [tag for tag, _ in page.tags] == ["bdi"]
    assert "\u202e" not in page.text
    assert "<script>" in page.text


def test_line_ends_and_lengths() -> None:
    assert Page(markup.text("a\nb")).text == r"a\nb"
    assert Page(markup.text("a\nb", lines=True)).text == "a\nb"
    assert Page(markup.text("abcdef", most=4)).text == "abc…"
    assert Page(markup.text("abcd", most=4)).text == "abcd"


def test_which_systems_are_meant() -> None:
    run = Run({"a": Result({}), "b": Result({})}, "0")
    assert markup.names(["a", "b"], run) == "all"
    assert Page(markup.names(["b"], run)).text == "b"


def test_numbers_of_things() -> None:
    assert [markup.count(number, "row") for number in (0, 1, 2000)] == ["0 rows", "1 row", "2,000 rows"]


def test_a_table_is_well_formed_and_scrolls_by_keyboard() -> None:
    line = markup.row("<i>title</i>", markup.cells("1", "2", kind="figure") + markup.cells("x"))
    page = Page(markup.table("kind", "caption", markup.heads("a", "b"), [line], "<tr><td>foot</td></tr>"))
    assert page.of("div") == [{"class": "wide", "tabindex": "0"}]
    assert [attrs.get("class") for attrs in page.of("td")] == ["figure", "figure", None, None]
    assert [attrs["scope"] for attrs in page.of("th")] == ["col", "col", "row"]
    assert page.of("tfoot")
    assert not Page(markup.table("kind", "caption", "", [])).of("tfoot")


def test_details_open_only_if_asked() -> None:
    assert Page(markup.details("s", "c", "kind", opened=True)).of("details") == [{"class": "kind", "open": None}]
    assert Page(markup.details("s", "c")).of("details") == [{}]


def test_entries_of_systems_are_put_together_by_dialogue() -> None:
    one, two = SimpleNamespace(dialogue="d1"), SimpleNamespace(dialogue="d2")
    assert markup.group_by_dialogue({"a": [one, two], "b": [one]}) == {"d1": {"a": one, "b": one}, "d2": {"a": two}}


def test_embedded_data_cannot_end_its_element() -> None:
    hostile = "</script><!-- & \u2028\u2029"
    page = Page(markup.embed_json("place", {"x": hostile}))
    assert not set("<>&\u2028\u2029") & set(page.scripts[0])
    assert json.loads(page.scripts[0]) == {"x": hostile}
