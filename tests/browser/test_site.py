"""The site from disk, in a real browser: search finds the standard terms, no network is used, pages fit a phone."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote, urlsplit

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

ROOT = Path(__file__).parents[2]
TERMS = {
    "tokenizer": "metrics",
    "license": "faq",
    "FAQ": "faq",
    "troubleshooting": "faq",
    "install": "start",
    "confidence interval": "statistics",
    "p-value": "statistics",
    "significance": "statistics",
    "bootstrap": "statistics",
    "permutation test": "statistics",
    "effect size": "verdicts",
    "statistical power": "verdicts",
    "sample size": "verdicts",
    "multiple testing": "statistics",
    "sequential testing": "ci",
    "non-inferiority": "ci",
    "CI": "ci",
    "GitHub Actions": "ci",
    "pytest": "ci",
    "inter-annotator agreement": "agreement",
    "Krippendorff": "agreement",
    "LLM judge": "llm-judges",
    "human evaluation": "human-evaluation",
    "reference-free": "judges",
    "GPU": "judges",
    "model card": "judge-card",
    "HuggingFace": "faq",
    "pandas": "faq",
    "BERTScore": "faq",
    "METEOR": "metrics/meteor-exact",
    "ROUGE": "metrics/rouge-score",
    "BLEU": "metrics/bleu",
    "sacreBLEU": "faq",
    "MultiWOZ": "task-dialogues",
    "repeated trials": "agents",
    "OpenAI": "formats",
    "CSV": "formats",
    "Chinese": "metrics",
    "wandb": "python",
    "slices": "slices",
    "exit status": "command-line",
    "out of memory": "faq",
    "cite": "papers",
}
"""What people search for, and the page that must come first."""


def test_search_from_disk(page: Page, site: Path) -> None:
    """Search for every term; the first result must be its page, and nothing may come from a network."""
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    found: dict[str, str] = {}
    page.goto(f"{(site / 'index.html').as_uri()}?q={quote(next(iter(TERMS)))}")
    field, link = page.locator(".md-search__input"), page.locator(".md-search-result__link:not(.old)").first
    for term in TERMS:
        if found:
            page.evaluate("document.querySelectorAll('.md-search-result__link').forEach(e => e.classList.add('old'))")
            field.fill(term)
            field.dispatch_event("keyup")
        link.wait_for(state="attached")
        found[term] = urlsplit(link.get_attribute("href") or "").path.removeprefix(f"{site}/").removesuffix(".html")
    assert found == TERMS
    assert [url for url in asked if not url.startswith(("file:", "data:", "about:", "blob:"))] == []


@pytest.mark.parametrize("name", ["index", "statistics", "metrics", "floors", "command-line"])
def test_pages_fit_a_phone(browser: Browser, site: Path, name: str) -> None:
    """A wide table scrolls by itself; the page does not."""
    page = browser.new_page(viewport={"width": 390, "height": 844})
    page.goto((site / f"{name}.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.close()


def test_the_picture_follows_the_color_scheme(browser: Browser, site: Path) -> None:
    for scheme, shown in {"light": "report.png", "dark": "report-dark.png"}.items():
        page = browser.new_page(color_scheme="dark" if scheme == "dark" else "light")
        page.goto((site / "index.html").as_uri())
        visible = [image.get_attribute("src") or "" for image in page.locator("article img:visible").all()]
        assert [urlsplit(source).path.rpartition("/")[2] for source in visible] == [shown]
        page.close()
