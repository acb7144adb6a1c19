"""The HTML report in a real browser: quiet, offline, inert, readable in the light, in the dark and on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from browser.conftest import Opened
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.reports.html import report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

NAMELESS = """() => [...document.querySelectorAll("button, input, select, a, summary, [tabindex='0'], [role=img]")]
    .filter(e => !(e.ariaLabel || e.labels?.length || e.textContent.trim())).map(e => e.outerHTML)"""

KEYS = {"length": (15, 7), "utterance-unigram-entropy": (113, 51), "coherence": (0.8, 0.1), "bleu-4": (0.12, 0.16)}


def result(seed: int, prefix: str = "") -> Result:
    random = np.random.default_rng(seed)
    estimates = {}
    for key, (mean, std) in KEYS.items():
        items = np.abs(random.normal(mean, std, 60))
        signature = Signature.of(prefix + key, n=4, tokenizer="words.1", definition=1)
        made = Estimate(float(items.mean()), float(items.std()), 60, 60, scores=items, signature=signature)
        estimates[prefix + key] = made.with_confidence(1.97)
    estimates["distinct-2"] = Estimate(0.1 + seed / 10, 0.0, 60, 60, corpus=True)
    return Result(estimates, {"adem": "needs a model"}, table=RowTable(np.arange(61)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    systems = {name: result(seed) for seed, name in enumerate(("careful", "chatty", "generic"))}
    return report(Run(systems, "0.1.0", ("two responses are empty",)), tmp_path / "report.html", "dialeval score r.txt")


def test_opens_quietly_and_asks_for_nothing_else(page: Page, path: Path) -> None:
    Opened(page, path).assert_quiet()
    assert "lead" in page.locator("h1").inner_text() or "Too close" in page.locator("h1").inner_text()
    assert page.locator("table.systems").first.locator("tbody tr").count() == 3


def test_the_style_is_allowed_by_the_policy(page: Page, path: Path) -> None:
    assert Opened(page, path).background != "none"


def test_dark_mode_is_dark(page: Page, path: Path) -> None:
    opened = Opened(page, path)
    assert opened.background == "light"
    page.emulate_media(color_scheme="dark")
    assert opened.background == "dark"
    page.emulate_media(media="print")
    assert opened.background == "light"


@pytest.mark.parametrize("width", [1280, 420, 390])
def test_the_page_does_not_scroll_sideways(page: Page, path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    Opened(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_key_leads_past_the_contents(page: Page, path: Path) -> None:
    Opened(page, path)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the results"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"


def test_every_control_has_a_name_and_every_part_a_heading(page: Page, path: Path) -> None:
    Opened(page, path)
    assert page.evaluate(NAMELESS) == []
    assert page.locator("main section").count() == page.locator("main section > h2").count()
    assert page.get_by_role("navigation", name="Contents").count() == 1


def test_commands_are_copied_by_a_click(page: Page, path: Path) -> None:
    opened = Opened(page, path)
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    for button in (page.locator(".copy").first, page.locator("[data-copy]")):
        button.click()
        button.filter(has_text="Copied").wait_for()
    opened.assert_quiet()


def test_without_scripts_everything_but_the_rows_is_there(browser: Browser, path: Path) -> None:
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(path.as_uri())
    assert page.locator("table.systems").first.locator("tbody tr").count() == 3
    assert page.locator(".hero svg").first.is_visible()
    assert not page.locator(".copy").first.is_visible()
    context.close()


def test_the_method_is_open_on_paper(page: Page, path: Path) -> None:
    Opened(page, path)
    folded = page.locator("#method .drawer")
    assert folded.evaluate_all("each => each.some(one => one.open)") is False
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert folded.evaluate_all("each => each.every(one => one.open)") is True
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    assert folded.evaluate_all("each => each.some(one => one.open)") is False


def test_no_table_scrolls_sideways_for_three_systems(page: Page, path: Path) -> None:
    Opened(page, path)
    wide = "elements => elements.filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.locator(".wide").evaluate_all(wide) == 0


def test_prints_to_paper_width(page: Page, path: Path) -> None:
    Opened(page, path)
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins, in CSS pixels
    assert page.evaluate("document.documentElement.scrollWidth") <= 718
