"""The frame of the page: a policy of hashes, scripts that cannot end early."""

from __future__ import annotations

from dialeval.reports.html import make_html
from reports.test_html import HOSTILE, Page, policy_of


def made(title: str = "t", scripts: tuple[str, ...] = ("first();", "second();")) -> Page:
    return Page(make_html(title, "<main><p>lead</p></main>", "p { margin: 0 }", list(scripts)))


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
