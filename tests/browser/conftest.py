"""A real browser for the tests of pages: Debian's Chromium through Playwright, or one clear reason to skip."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

ARGUMENTS = [
    "--no-sandbox",
    "--headless",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """One browser for all tests; each test opens its own page."""
    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("needs Chromium on the path: apt-get install chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs Playwright: pip install playwright")
    with playwright.sync_playwright() as started:
        launched = started.chromium.launch(executable_path=chromium, args=ARGUMENTS)
        yield launched
        launched.close()
