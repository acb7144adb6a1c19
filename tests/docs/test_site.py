"""The site builds without a warning, asks nothing from a network, and has no dead link."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

from dialeval.cli.main import dialeval_command
from dialeval.metrics.registry import registry
from docs.test_api import PUBLIC

ROOT = Path(__file__).parents[2]
LOADED = {("link", "href"), ("script", "src"), ("img", "src"), ("iframe", "src"), ("source", "src"), ("object", "data")}
"""What a browser fetches by itself; a link is followed by a reader."""


class Html(HTMLParser):
    """What a page links to, loads, and can be linked at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.places: set[str] = set()
        self.links: list[str] = []
        self.loads: list[str] = []
        self.feed(text)
        # Addresses of dialogues, which the script of a report draws when they are opened.
        shown = re.search(r'<script[^>]* id="explorer-data"[^>]*>(.*?)</script>', text, re.DOTALL)
        for block in json.loads(shown[1]) if shown else ():
            self.places |= {"dialogues", *(f"d{n}" for n in block["numbers"])}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        self.places |= {value for name in ("id", "name") if (value := given.get(name))}
        for name, value in given.items():
            if value and (tag, name) in LOADED:
                self.loads.append(value)
            elif value and (tag, name) == ("a", "href"):
                self.links.append(value)


@pytest.fixture(scope="module")
def pages(site: Path) -> dict[Path, Html]:
    return {path: Html(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}


def test_nothing_comes_from_a_network(site: Path, pages: dict[Path, Html]) -> None:
    outside = {(path.name, load) for path, page in pages.items() for load in page.loads if "//" in load}
    assert outside == set()
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"(?:url\(|@import)\s*['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


def test_no_link_is_dead(site: Path, pages: dict[Path, Html]) -> None:
    dead = []
    for path, page in pages.items():
        for link in {*page.links, *page.loads}:
            parts = urlsplit(link)
            if parts.scheme in ("http", "https", "data", "mailto") or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            anchor = unquote(parts.fragment).partition("?")[0]
            if not target.is_file() or (anchor and target in pages and anchor not in pages[target].places):
                dead.append(f"{path.relative_to(site)}: {link}")
    assert dead == []


def test_links_that_leave_the_site_are_few_and_known(pages: dict[Path, Html]) -> None:
    """Each is one more that may die; a new one is named here."""
    outside = {urlsplit(link).netloc for page in pages.values() for link in page.links if urlsplit(link).netloc}
    known = {"filesystem-spec.readthedocs.io", "aclanthology.org", "semver.org", "github.com", "squidfunk.github.io"}
    assert outside <= known


def test_every_metric_has_a_page(site: Path) -> None:
    for family, metric in registry().families.items():
        text = (site / "metrics" / f"{family}.html").read_text(encoding="utf-8")
        for part in ("What it measures", "Names", "Needs", "Settings", "Try it", *metric.presets):
            assert part in text, f"{family}: {part}"


def test_every_public_name_and_command_is_described(site: Path, pages: dict[Path, Html]) -> None:
    places = {place for path in (site / "api").glob("*.html") for place in pages[path].places}
    assert set(PUBLIC) <= places
    commands = pages[site / "commands.html"].places
    assert {f"dialeval-{name}" for name in dialeval_command.list_commands(None)} <= commands  # type: ignore[arg-type]


def test_the_gallery_has_its_reports(site: Path) -> None:
    reports = {path.name for path in (site / "gallery").glob("*.html")}
    assert reports == {"responses.html", "compared.html", "task-dialogues.html", "breakdown.html"}
    shown = (site / "report.html").read_text(encoding="utf-8")
    assert all(f'src="gallery/{name}"' in shown for name in reports)


def test_the_search_knows_the_pages(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"].partition("#")[0] for entry in index["docs"]}
    assert {"index.html", "start.html", "metrics/distinct.html", "api/compare.html"} <= found


def test_tables_of_numbers_are_not_searched(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))
    found = {entry["location"] for entry in index["docs"]}
    assert not {place for place in found if place.startswith("simulation-tables.html")}
    assert "floors.html#baselines" in found
    assert "floors.html#measured-values" not in found


def test_programs_find_every_page(site: Path) -> None:
    """llms.txt lists the pages by section, each with a summary; links lead to files."""
    text = (site / "llms.txt").read_text(encoding="utf-8")
    assert text.startswith("# dialeval\n\n> ")
    listed = re.findall(r"^- \[[^\]]+\]\(([^)]+)\): \S", text, re.MULTILINE)
    assert {"start.html", "faq.html", "metrics/bleu.html", "api/evaluate.html"} <= set(listed)
    assert [page for page in listed if not (site / page).is_file()] == []


def test_the_pictures_are_small() -> None:
    for name in ("report.png", "report-dark.png"):
        assert (ROOT / "docs" / "images" / name).stat().st_size < 150_000
