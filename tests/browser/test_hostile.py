"""Hostile text in every field of a run: it is shown as text, nothing runs, nothing is asked for, nothing is moved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from browser.conftest import Opened
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run, load
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.html import report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

HOSTILE = {
    "script": "<script>window.hacked = 1</script>",
    "end": "</script></style></title></textarea><script>window.hacked = 2</script>",
    "image": "\"><img src=x onerror='window.hacked = 3'>",
    "vector": "<svg/onload=window.hacked=4>",
    "address": "<a href=javascript:window.hacked=5>javascript:window.hacked=5</a>",
    "style": "</style><style>body{display:none}</style><b style=position:fixed;inset:0>x",
    "request": "<link rel=stylesheet href=http://127.0.0.1:9/x.css><img src=//127.0.0.1:9/x.png>",
    "expression": "${window.hacked=6}{{constructor.constructor('window.hacked=7')()}}",
    "comment": "<!--<script>]]>--><![CDATA[",
    "direction": "\u202eright\u2066 to \u202dleft\u200f",
    "control": "nul\x00 bell\x07 escape\x1b[31m delete\x7f next\x85 line\u2028paragraph\u2029",
    "entity": "&lt;img src=x onerror=window.hacked=8&gt; &#60;b&#62; &amp;amp;",
    "prototype": "__proto__",
    "long": "x" * 100_000,
}
SHORT = {kind: text for kind, text in HOSTILE.items() if kind != "long"}


def shown(text: str) -> str:
    """The text as the page writes it."""
    for char in "\x00\x07\x1b\x7f\x85":
        text = text.replace(char, f"\\x{ord(char):02x}")
    for char in "\u202e\u2066\u202d\u2028\u2029":
        text = text.replace(char, f"\\u{ord(char):04x}")
    return text


def hostile_run(text: str, rows: int = 3) -> Run:
    """A run that says `text` wherever it can say something."""
    texts: dict[str, TextColumn | RaggedColumn] = {
        "response": TextColumn.from_strings([text] * rows),
        "context": RaggedColumn.from_lists([[text, text]] * rows),
        "reference": RaggedColumn.from_lists([[text]] * rows),
    }
    several: dict[str, TextColumn | RaggedColumn] = {"hypotheses": RaggedColumn.from_lists([[text, text]] * rows)}
    signature = Signature.of(text, setting=text)
    values = np.linspace(0, 1, rows)
    estimates = {
        name: Estimate(0.5, 0.1, rows, rows, scores=values, signature=signature, level=Level.TURN).with_confidence(2.0)
        for name in (text, f"second {text}")
    }
    skipped = {f"skipped {text}": text}
    table = RowTable(np.arange(rows + 1), [f"{at}{text}" for at in range(rows)], np.arange(rows), texts)
    systems = {
        text: Result(estimates, skipped, text, table),
        f"other {text}": Result(estimates, skipped, text, table),
        f"sampled {text}": Result(estimates, skipped, text, RowTable(np.arange(rows + 1), texts=several)),
    }
    return Run(systems, text, (text, f"second {text}"), details(text))


def details(text: str) -> dict[str, Any]:
    group = {"group": text, "references": [text]}
    aligned = {"query": text, "mds": 1.0, "pds": 1.0, "max-bleu": 1.0, "groups": [group, {**group, "group": "b"}]}
    aligned |= {"unreached": ["b"], "hypotheses": [{"text": text, "group": text, "score": 0.5}]}
    turn = {"turn": 0, "user": text, "response": text, "notes": [text], "steps": [text]}
    transcript = {"dialogue": text, "inform": True, "success": False, "goal": [text], "turns": [turn]}
    transcript |= {"causes": [{"lost": text, "domain": text, "cause": text, "detail": text}]}
    families = {"transcripts": transcript}
    sampled = {"alignments": {f"sampled {text}": [aligned] * 3}, "failures": {text: {text: [text, f"2{text}"]}}}
    return {"command": f"dialeval {text}", **sampled, **{name: {text: [entry]} for name, entry in families.items()}}


@pytest.mark.parametrize("texts", [list(SHORT.values()), [HOSTILE["long"]]], ids=["short", "long"])
def test_hostile_text_in_every_field_does_nothing(page: Page, tmp_path: Path, texts: list[str]) -> None:
    runs = [load(hostile_run(text).save(tmp_path / str(at))) for at, text in enumerate(texts)]
    title = "".join(texts)[:5000]
    opened = Opened(page, report(runs, tmp_path / "report.html", title, title=title))
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    for section in page.locator("main section").all():
        section.evaluate("each => each.scrollIntoView({ behavior: 'instant' })")
    assert page.evaluate("[...document.scripts].filter(each => !each.type).length") == 2
    foreign = "img, iframe, object, base, link, textarea, form, [onerror], [onload], [style*=fixed]"
    assert page.locator(foreign).count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    assert page.evaluate("document.styleSheets.length") == 1
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    opened.assert_quiet()


@pytest.mark.parametrize("kind", SHORT)
def test_hostile_text_is_shown_as_it_is(page: Page, tmp_path: Path, kind: str) -> None:
    text = SHORT[kind]
    opened = Opened(page, report(hostile_run(text), tmp_path / "report.html", text, title=text))
    wanted = shown(text)
    assert page.title() == " ".join(wanted.split())
    content = "elements => elements.map(each => each.textContent)"
    assert page.locator("header.top bdi").first.evaluate("each => each.textContent") == wanted
    method = page.locator("#method").evaluate("each => each.textContent")
    for part in (wanted, f"second {wanted}", f"dialeval {wanted}"):
        assert part in method
    line = page.locator("#dialogues details.dlg[open]").first
    assert line.locator(".said bdi").evaluate_all(content) == [wanted, wanted]
    assert line.locator(".refs bdi").evaluate_all(content) == [wanted]
    assert wanted in line.locator(".bub").first.evaluate("each => each.textContent")
    assert wanted[:20] in line.locator(".heads").evaluate("each => each.textContent")
    scores = page.locator("#dialogues [data-name=key] option")
    assert scores.evaluate_all(content) == [wanted, f"second {wanted}"]
    assert wanted[:20] in page.locator("#transcripts").evaluate("each => each.textContent")
    opened.assert_quiet()


@pytest.mark.parametrize("kind", SHORT)
def test_hostile_answers_land_as_text(page: Page, tmp_path: Path, kind: str) -> None:
    text = SHORT[kind]
    run = hostile_run(text)
    sampled = f"sampled {text}"
    alone = Run({sampled: Result(run[text].estimates, table=run[sampled].table)}, "0", details=run.details)
    opened = Opened(page, report(alone, tmp_path / "report.html"), "#d1")
    groups = page.locator("#d1 section h4").evaluate_all("elements => elements.map(each => each.textContent)")
    assert groups[0] == f"Group {shown(text)}"
    assert shown(text) in page.locator("#d1 .bub").first.evaluate("each => each.textContent")
    opened.assert_quiet()


def test_searching_for_hostile_text_finds_it(page: Page, tmp_path: Path) -> None:
    opened = Opened(page, report(hostile_run(HOSTILE["image"]), tmp_path / "report.html"))
    page.locator("#dialogues").get_by_label("Search in dialogues").fill("onerror='window.hacked")
    page.locator("#dialogues mark").first.wait_for()
    assert page.locator("#dialogues details.dlg").count() == 3
    assert set(page.locator("#dialogues mark").all_inner_texts()) == {"onerror='window.hacked"}
    opened.assert_quiet()


def test_the_address_cannot_bring_markup_in(page: Page, tmp_path: Path) -> None:
    path = report(hostile_run("plain"), tmp_path / "report.html")
    query = "q=%3Cimg%20src%3Dx%20onerror%3D%22window.hacked%3D1%22%3E&slice=%3Cb%3E&low=1e999&show=constructor"
    opened = Opened(page, path, f"#dialogues?{query}")
    assert page.locator("#dialogues details.dlg").count() == 0
    opened.assert_quiet()


def test_text_of_the_other_direction_stays_in_its_place(page: Page, tmp_path: Path) -> None:
    hebrew = "שלום עולם 123"
    Opened(page, report(hostile_run(hebrew), tmp_path / "report.html"))
    said = page.locator(".said bdi").first
    assert said.get_attribute("dir") == "auto"
    assert said.evaluate("each => getComputedStyle(each).direction") == "rtl"
    assert said.evaluate("each => getComputedStyle(each).unicodeBidi") == "isolate"


def test_a_long_line_is_cut_until_one_asks_for_it(page: Page, tmp_path: Path) -> None:
    opened = Opened(page, report(hostile_run(HOSTILE["long"]), tmp_path / "report.html"))
    reply = page.locator(".bub").first
    assert len(reply.inner_text()) < 2_000
    reply.get_by_role("button", name="Show all, 98,500 more characters").click()
    assert HOSTILE["long"] in reply.inner_text()
    opened.assert_quiet()
