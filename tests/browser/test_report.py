"""The HTML report in a real browser: quiet, offline, inert, readable in the light, in the dark and on paper."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pytest

from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.signature import Signature
from dialeval.reports.html import report

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

KEYS = {"length": (15, 7), "utterance-unigram-entropy": (113, 51), "coherence": (0.8, 0.1), "bleu-4": (0.12, 0.16)}
HOSTILE = [
    "<script>window.hacked = 1</script>",
    "</script></style></title><script>window.hacked = 2</script>",
    "\"><img src=x onerror='window.hacked = 3'>",
    "<svg/onload=window.hacked=4>",
    "javascript:window.hacked=5",
    "right\u202eto left",
]


def result(seed: int, prefix: str = "") -> Result:
    random = np.random.default_rng(seed)
    estimates = {}
    for key, (mean, std) in KEYS.items():
        items = np.abs(random.normal(mean, std, 60))
        signature = Signature.of(prefix + key, n=4, tokeniser="words.1", definition=1)
        made = Estimate(float(items.mean()), float(items.std()), 60, 60, items=items, signature=signature)
        estimates[prefix + key] = made.with_confidence(1.97)
    estimates["distinct-2"] = Estimate(0.1 + seed / 10, 0.0, 60, 60, corpus=True)
    return Result(estimates, {"adem": "needs a model"})


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, page: Page, path: Path) -> None:
        self.page = page
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))
        page.goto(path.as_uri())

    @property
    def background(self) -> str:
        return str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    systems = {name: result(seed) for seed, name in enumerate(("careful", "chatty", "generic"))}
    return report(Run(systems, "0.1.0", ("two responses are empty",)), tmp_path / "report.html", "dialeval score r.txt")


def test_opens_quietly_and_asks_for_nothing_else(page: Page, path: Path) -> None:
    opened = Opened(page, path)
    assert opened.said == []
    assert opened.asked == [path.as_uri()]
    assert page.locator("h1").inner_text() == "Evaluation report"
    assert page.locator(".summary tbody tr").count() == len(KEYS) + 1


def test_the_style_is_allowed_by_the_policy(page: Page, path: Path) -> None:
    assert Opened(page, path).background == "rgb(253, 253, 251)"


def test_hostile_text_is_text(page: Page, tmp_path: Path) -> None:
    systems = {name: result(seed, prefix=HOSTILE[0]) for seed, name in enumerate([*HOSTILE, "x" * 100_000])}
    path = report(Run(systems, "0.1.0", tuple(HOSTILE)), tmp_path / "report.html", "\n".join(HOSTILE))
    opened = Opened(page, path)
    assert opened.said == []
    assert opened.asked == [path.as_uri()]
    assert page.evaluate("window.hacked") is None
    assert page.locator("script, img, [onerror], [onload]").count() == 0
    shown = page.locator("#warnings li").all_inner_texts()
    assert shown == [text.replace("\u202e", r"\u202e") for text in HOSTILE]
    page.locator("details").evaluate("element => { element.open = true }")
    assert "x" * 100_000 in page.locator("details").inner_text()
    assert not page.evaluate("document.documentElement.scrollWidth > innerWidth")


def test_dark_mode_is_dark(page: Page, path: Path) -> None:
    light = Opened(page, path).background
    page.emulate_media(color_scheme="dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (light, dark) == ("rgb(253, 253, 251)", "rgb(22, 25, 28)")


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_does_not_scroll_sideways(page: Page, path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    Opened(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_no_table_scrolls_sideways_for_three_systems(page: Page, path: Path) -> None:
    Opened(page, path)
    wide = "elements => elements.filter(e => e.scrollWidth > e.clientWidth).length"
    assert page.locator(".wide").evaluate_all(wide) == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast(page: Page, path: Path, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light")
    Opened(page, path)
    ground = luminance(str(page.evaluate("getComputedStyle(document.body).backgroundColor")))
    for place in ("body", ".lead", ".spread", "nav a", "caption", ".summary thead th"):
        ink = luminance(str(page.locator(place).first.evaluate("element => getComputedStyle(element).color")))
        low, high = sorted((ink, ground))
        assert (high + 0.05) / (low + 0.05) >= 4.5, place


def test_prints_to_paper_width(page: Page, path: Path) -> None:
    Opened(page, path)
    assert page.pdf(format="A4").startswith(b"%PDF-")
    page.emulate_media(media="print")
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins, in CSS pixels
    assert page.evaluate("document.documentElement.scrollWidth") <= 718


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` as WCAG defines it."""
    channels = [int(part) / 255 for part in colour[4:-1].split(",")]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
