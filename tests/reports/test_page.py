"""The frame of the page: a policy of hashes, scripts that cannot end early, contents that lead to the sections."""

from __future__ import annotations

from dialeval.reports.html import make_page, make_script, read_assets
from dialeval.reports.markup import Section
from reports.test_html import HOSTILE, Page, policy_of

SECTIONS = [Section("one", "First", "<p>a</p>"), Section("two", "Second", "<p>b</p>")]


def made(title: str = "t", scripts: tuple[str, ...] = ("first();", "second();")) -> Page:
    return Page(make_page(title, "<p>lead</p>", SECTIONS, "", list(scripts)))


def test_contents_lead_to_sections_with_headings() -> None:
    shown = made()
    assert [attrs["href"] for attrs in shown.of("a")] == ["#main", "#one", "#two"]
    assert [attrs["aria-labelledby"] for attrs in shown.of("section")] == ["one-title", "two-title"]


def test_the_first_script_runs_before_anything_is_shown() -> None:
    tags = [tag for tag, _ in made().tags]
    assert tags.index("script") < tags.index("body") < len(tags) - 1 - tags[::-1].index("script")


def test_every_script_and_the_style_have_their_hash() -> None:
    policy = policy_of(made())
    assert policy.count("'sha256-") == 3
    assert policy.startswith("default-src 'none'")
    assert policy != policy_of(made(scripts=("first();", "other();")))


def test_a_script_cannot_end_its_element() -> None:
    shown = made(scripts=("x = '</script><SCRIPT></Script>';", "y();"))
    assert len(shown.of("script")) == 2
    assert shown.scripts[0] == r"x = '<\/script><SCRIPT><\/Script>';"


def test_titles_are_text() -> None:
    assert not made(HOSTILE).of("img")


def test_scripts_have_names_of_their_own() -> None:
    both = make_script("text.js", "rows.js")
    assert both.startswith('(() => {\n"use strict";\n')
    assert read_assets("text.js") + read_assets("rows.js") in both
