"""A real browser for the tests of pages: Debian's Chromium through Playwright, or one clear reason to skip."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser, Page

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


class Opened:
    """A page with what it said and asked for."""

    def __init__(self, page: Page, path: Path, at: str = "") -> None:
        self.page = page
        self.path = path
        self.said: list[str] = []
        self.asked: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.asked.append(request.url))
        page.on("dialog", lambda dialog: self.said.append(dialog.message))
        page.goto(path.as_uri() + at)

    @property
    def background(self) -> str:
        """Return whether the page is `dark` or `light`; `none` where it has no style."""
        color = str(self.page.evaluate("getComputedStyle(document.body).backgroundColor"))
        if color.startswith("rgba"):
            return "none"
        return "dark" if sum(map(int, re.findall(r"\d+", color))) < 3 * 128 else "light"

    def assert_quiet(self) -> None:
        """Nothing was said, nothing was asked for but the page itself, nothing from outside has run."""
        assert self.said == []
        assert {url.partition("#")[0] for url in self.asked} == {self.path.as_uri()}
        assert self.page.evaluate("window.hacked") is None


@pytest.fixture
def page(browser: Browser) -> Iterator[Page]:
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    yield page
    page.close()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; each test opens its own page."""
    chromium = shutil.which("chromium-headless-shell") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium on the path: apt-get install chromium-headless-shell")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()
