"""The site from disk, in a real browser: it searches, and it asks nothing from a network."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).parents[2]
CONFIG = """
site_name: small
docs_dir: docs
theme: {name: material, font: false}
extra: {polyfills: [assets/iframe-worker.js]}
plugins: [search, offline]
"""


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pages, with the script by which the site searches from disk."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    place = tmp_path_factory.mktemp("small")
    (place / "docs" / "assets").mkdir(parents=True)
    shutil.copy(ROOT / "docs" / "assets" / "iframe-worker.js", place / "docs" / "assets")
    (place / "docs" / "index.md").write_text("# Home\n\nNothing here.\n")
    (place / "docs" / "ferry.md").write_text("# Ferry\n\nIt leaves from the quay.\n")
    (place / "mkdocs.yml").write_text(CONFIG)
    build(load_config(str(place / "mkdocs.yml")))
    return place / "site"


def test_search_from_disk(page: Page, site: Path) -> None:
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.goto((site / "index.html").as_uri())
    page.keyboard.press("/")
    page.keyboard.type("quay")
    link = page.locator(".md-search-result__link").first
    link.wait_for()
    assert "ferry.html" in (link.get_attribute("href") or "")
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:"))] == []
