"""The HTML report as text: well-formed, self-contained, deterministic, and inert to whatever names hold."""

from __future__ import annotations

import base64
import hashlib
import itertools
import json
import math
import re
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports import markup
from dialeval.reports.html import make_html, report

VOID = {"meta", "line", "circle", "rect", "polyline", "polygon", "path"}
HOSTILE = """<script>alert(1)</script>'"><img src=x onerror="alert(2)">&amp;\u202e\x00\udc80"""


def render(runs: Run | Sequence[Run], command: str | None = None, **settings: Any) -> str:
    """The page of runs as text."""
    with TemporaryDirectory() as folder:
        return report(runs, Path(folder, "report.html"), command, **settings).read_text(encoding="utf-8")


class Page(HTMLParser):
    """The tags of a page in order, its text, and whether every tag is closed where it should be."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.scripts: list[str] = []
        self.feed(text)
        self.close()
        assert not self.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        assert len(attrs) == len(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in VOID
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if "script" in self.open:
            self.scripts.append(data)
        elif "style" not in self.open:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str | None]]:
        return [attrs for name, attrs in self.tags if name == tag]


def estimate(key: str, *items: float, level: Level = Level.TURN) -> Estimate:
    values = np.array(items)
    finite = values[np.isfinite(values)]
    with np.errstate(over="ignore"):
        mean, std = (float(finite.mean()), float(finite.std())) if len(finite) else (math.nan, math.nan)
    made = Estimate(
        mean=mean,
        std=std,
        units=len(values),
        scored=len(finite),
        scores=values,
        level=level,
        signature=Signature.of(key, n=2),
    )
    return made.with_confidence(1.97)


def result(key: str = "bleu-4") -> Result:
    corpus = Estimate(0.25, 0.0, 3, 3, corpus=True, signature=Signature.of("distinct-2", n=2))
    return Result({key: estimate(key, 0.1, 0.5, math.nan), "distinct-2": corpus}, {"adem": "needs a model"})


def test_page_has_all_parts_in_order() -> None:
    page = Page(render(Run({"a": result(), "b": result()}, "0.1.0", ("line\nbreak",)), "dialeval score a b"))
    assert [attrs["id"] for attrs in page.of("section")] == ["metrics", "method"]
    for part in (
        "0.30",
        "0.02 to 0.58",
        "2 of 3 scored",
        "needs a model",
        "line\nbreak",
        "bleu-4|n:2",
        "dialeval score a b",
    ):
        assert part in page.text
    targets = {f"#{attrs.get('id')}" for _, attrs in page.tags}
    assert {attrs["href"] for attrs in page.of("a")} <= targets


def test_page_is_accessible() -> None:
    page = Page(render(Run({"a": result()}, "0.1.0")))
    assert page.of("html") == [{"lang": "en"}]
    assert {"header", "nav", "main"} <= {tag for tag, _ in page.tags}
    assert page.of("a")[0] == {"class": "skip", "href": "#main"}
    assert all(attrs.get("aria-labelledby") or attrs.get("class") for attrs in page.of("section"))
    headings = [int(tag[1]) for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings[0] == 1
    assert headings.count(1) == 1
    assert all(after <= before + 1 for before, after in itertools.pairwise(headings))
    assert all(attrs.get("scope") in {"row", "col"} for attrs in page.of("th"))
    assert all("aria-label" in attrs or attrs.get("aria-hidden") == "true" for attrs in page.of("svg"))


def test_page_asks_nobody_for_anything() -> None:
    text = render(Run({HOSTILE: result(HOSTILE)}, "0.1.0", (HOSTILE,)), HOSTILE)
    page = Page(text)
    policy = policy_of(page)
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not {tag for tag, _ in page.tags} & {"link", "img", "iframe", "object", "base", "form", "image", "use"}
    assert not {name for _, attrs in page.tags for name in attrs if name.startswith("on") or name in {"src", "style"}}
    assert "://" not in text.replace(HOSTILE, "")
    assert "url(" not in text
    assert "@import" not in text


def policy_of(page: Page) -> str:
    return next(attrs["content"] or "" for attrs in page.of("meta") if "http-equiv" in attrs)


def test_the_policy_allows_the_scripts_of_the_page_and_no_others() -> None:
    rows = RowTable(np.arange(4), texts={"response": TextColumn.from_strings(["a", "b", "c"])})
    page = Page(render(Run({"a": Result(result().estimates, table=rows)}, "0")))
    assert [attrs.get("type") for attrs in page.of("script")].count(None) == 2
    run = [text for text, attrs in zip(page.scripts, page.of("script"), strict=True) if not attrs]
    hashes = {base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in run}
    assert set(re.findall(r"script-src ([^;]*)", policy_of(page))[0].split()) == {f"'sha256-{each}'" for each in hashes}
    for text in page.scripts:
        assert not re.search("<!--|</?script", text, re.IGNORECASE)


@pytest.mark.parametrize("kind", ["alignments", "transcripts"])
@pytest.mark.parametrize("broken", [["a"], {"a": [{"dialogue": "x"}]}, {"a": None}])
def test_broken_details_never_reach_a_report(tmp_path: Path, kind: str, broken: object) -> None:
    folder = Run({"a": result()}, "0", details={kind: broken}).save(tmp_path)
    with pytest.raises(DataError, match=f"run.json: .*{kind}|run.json: {kind}"):
        load(folder)


def test_hostile_text_is_shown_as_text() -> None:
    run = Run({HOSTILE: Result(result(HOSTILE).estimates, {HOSTILE: HOSTILE})}, HOSTILE, (HOSTILE,))
    page = Page(render(run, HOSTILE))
    shown = HOSTILE.replace("\u202e", r"\u202e").replace("\x00", r"\x00").replace("\udc80", r"\udc80")
    assert page.text.count(shown) >= 5
    assert page.of("script").count({}) == 2  # the page's own
    assert not page.of("img")


@pytest.mark.parametrize("items", [[], [math.nan], [math.inf, 1.0], [2.0, 2.0], [0.0], [1e308, -1e308], [5e-324, 0.0]])
def test_odd_items_are_drawn_or_left_out(items: list[float]) -> None:
    page = Page(render(Run({"a": Result({"k": estimate("k", *items)})}, "0")))
    numbers = [value for tag, attrs in page.tags if tag in VOID - {"meta"} for value in attrs.values()]
    assert not {"nan", "inf", "-inf"} & set(numbers)


def test_nothing_to_report_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingError, match="at least one run"):
        report([Run({}, "0")], tmp_path / "report.html")


def test_a_place_that_cannot_be_written_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="cannot be written"):
        report(Run({"a": result()}, "0"), tmp_path)


def test_systems_without_a_common_metric_are_not_compared() -> None:
    systems = {name: Result({name: Estimate(0.5, 0.0, 3, 3, corpus=True)}) for name in ("a", "b")}
    assert "These systems cannot be compared" in Page(render(Run(systems, "0.1.0"))).text


def scored_on(words: str, *replies: str) -> Run:
    """Return a run on rows about some words."""
    contexts = [f"{words} {row}" for row in range(20)]
    systems = {name: [f"{name} {words} {row}" for row in range(20)] for name in replies}
    return dialeval.evaluate(systems, references=contexts, contexts=contexts, metrics="rouge-l,length")


def test_runs_of_the_same_data_are_compared(tmp_path: Path) -> None:
    one, two = scored_on("tea", "a"), scored_on("tea", "b")
    page = Page(report([one, two], tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "b against a" in page.text


# The frame, the end of the page, and the pieces of HTML.


def framed(title: str = "t", scripts: tuple[str, ...] = ("first();", "second();")) -> Page:
    return Page(make_html(title, "<main><p>lead</p></main>", "p { margin: 0 }", list(scripts)))


def test_every_script_and_the_style_have_their_hash() -> None:
    policy = policy_of(framed())
    assert policy.count("'sha256-") == 3
    assert policy.startswith("default-src 'none'")
    assert policy != policy_of(framed(scripts=("first();", "other();")))


def test_a_script_cannot_end_its_element() -> None:
    shown = framed(scripts=("x = '</script><SCRIPT></Script>';", "y();"))
    assert len(shown.of("script")) == 2
    assert shown.scripts[0] == r"x = '<\/script><SCRIPT><\/Script>';"


def test_titles_are_text() -> None:
    assert not framed(HOSTILE).of("img")


def test_commands_come_before_that_of_the_page() -> None:
    shown = Page(render(Run({"a": result()}, "1.2", details={"command": "made it"}), "wrote it")).text
    assert 0 < shown.index("made it") < shown.index("wrote it")
    assert "Use dialeval 1.2" in shown
    assert "Run it again" not in Page(render(Run({"a": result()}, "0"))).text


def test_the_section_comes_last() -> None:
    run = Run({"a": Result({"k": estimate("k", 1.0)}, {"x": "no"})}, "0")
    titles = [attrs["id"] for attrs in Page(render(run)).of("h2")]
    assert titles[-1] == "method-title"


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
