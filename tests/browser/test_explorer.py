"""The explorer of rows in a real browser: sort, search, filter, keys, the address, and ten thousand rows at once."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pytest

from browser.conftest import Opened
from browser.test_report import NAMELESS
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.reports.html import report

if TYPE_CHECKING:
    from pathlib import Path

    from playwright.sync_api import Page

    from dialeval.core.arrays import Floats

pytestmark = pytest.mark.browser

WORDS = ["tea", "rain", "lamp", "boat", "key", "pie", "bell", "map", "dog", "card", "garden", "bench", "soup"]
TURNS = 4
FAST_MS = 300


def items(seed: int, rows: int) -> Floats:
    values: Floats = np.round(np.random.default_rng(seed).normal(0.5, 0.2, rows), 3)
    values[0] = np.nan
    return values


def system(seed: int, rows: int, metrics: int = 2) -> Result:
    random = np.random.default_rng(seed)
    said = [" ".join(random.choice(WORDS, 12)) for _ in range(rows)]
    asked = np.random.default_rng(99)
    context = [[" ".join(asked.choice(WORDS, 8)) for _ in range(2)] for _ in range(rows)]
    texts: dict[str, TextColumn | RaggedColumn] = {"response": TextColumn.from_strings(said)}
    texts |= {"context": RaggedColumn.from_lists(context)}
    texts |= {"reference": RaggedColumn.from_lists([[f"reference number {row}"] for row in range(rows)])}
    table = RowTable(
        np.arange(0, rows + 1, TURNS), [f"d{at}" for at in range(rows // TURNS)], np.arange(rows) % TURNS, texts
    )
    columns = {f"k{at}": items(10 * seed + at, rows) for at in range(metrics)}
    estimates = {key: Estimate(0.5, 0.2, rows, rows - 1, scores=values) for key, values in columns.items()}
    return Result(estimates, rows=table)


def run_of(rows: int, metrics: int = 2) -> Run:
    return Run({name: system(seed, rows, metrics) for seed, name in enumerate(("base", "warm", "cold"), 1)}, "0")


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return report(run_of(200), tmp_path_factory.mktemp("explorer") / "report.html")


@pytest.fixture
def opened(page: Page, path: Path) -> Opened:
    """The rows of the first system in the order of the file."""
    return Opened(page, path, "#explorer?system=0&minus=&sort=file")


def test_the_first_rows_are_those_in_which_the_second_system_differs_most(page: Page, path: Path) -> None:
    opened = Opened(page, path)
    away = items(20, 200)[1:] - items(10, 200)[1:]
    wanted = away[np.argsort(-np.abs(away), kind="stable")]
    assert values(page)[:5] == [f"{value:+.4f}" for value in wanted[:5]]
    assert page.evaluate("location.hash") == "", "the address says what was chosen, and nothing was"
    opened.assert_quiet()


def test_the_chosen_score_stands_first_and_words_of_the_reference_are_underlined(page: Page, path: Path) -> None:
    Opened(page, path, "#explorer?key=1")
    pane = page.locator(".pane")
    assert pane.locator("tbody tr").first.locator("th").inner_text() == "k1"
    assert pane.locator("tbody tr th").all_inner_texts().count("k1") == 1
    run = run_of(8)
    rows = run["warm"].rows
    assert rows is not None
    said = TextColumn.from_strings(["a reference, Number <b>7</b>", *["x"] * 7])
    rows.texts["response"] = said  # type: ignore[index]
    Opened(page, report(run, path.with_name("shared.html")), "#explorer?row=0")
    assert pane.locator(".shared").all_inner_texts() == ["reference", "Number"]


def values(page: Page) -> list[str]:
    return page.locator("#row-list .line .value").all_inner_texts()


def settle(page: Page) -> None:
    page.wait_for_timeout(200)  # longer than the pause after the last key


def count(page: Page) -> str:
    return page.locator(".count").inner_text()


def test_rows_stand_in_the_order_of_the_file(page: Page, opened: Opened) -> None:
    assert count(page) == "200 of 200 rows"
    assert page.locator("#row-list .line .place bdi").first.inner_text() == "d0 · turn 0"
    assert values(page)[:2] == ["–", f"{items(10, 200)[1]:.4f}"]
    opened.assert_quiet()


def test_rows_are_sorted_by_a_score_and_those_without_come_last(page: Page, opened: Opened) -> None:
    page.get_by_label("Score", exact=True).select_option("k1")
    page.get_by_label("of", exact=True).select_option("warm")
    page.get_by_label("Order").select_option("highest first")
    settle(page)
    wanted = np.sort(items(21, 200)[1:])[::-1]
    assert values(page)[:5] == [f"{value:.4f}" for value in wanted[:5]]
    page.get_by_label("Order").select_option("lowest first")
    settle(page)
    assert values(page)[:5] == [f"{value:.4f}" for value in wanted[::-1][:5]]
    page.locator("#row-list").press("End")
    assert values(page)[-1] == "–"
    opened.assert_quiet()


def test_rows_are_sorted_by_the_difference_of_two_systems(page: Page, opened: Opened) -> None:
    assert page.get_by_label("Order").locator("option").count() == 3
    page.get_by_label("minus").select_option("cold")
    settle(page)
    page.get_by_label("Order").select_option("largest difference first")
    settle(page)
    away = items(10, 200)[1:] - items(30, 200)[1:]
    wanted = away[np.argsort(-np.abs(away), kind="stable")]
    assert values(page)[:5] == [f"{value:+.4f}" for value in wanted[:5]]


def test_search_looks_through_every_text_and_marks_what_it_found(page: Page, opened: Opened) -> None:
    page.get_by_label("Search", exact=True).fill("NUMBER 17")
    settle(page)
    rows = [row for row in range(200) if "17" in f"{row} d{row // TURNS}"]
    assert count(page) == f"{len(rows)} of 200 rows"
    assert page.locator(".pane .current mark").all_inner_texts() == ["number", "17"]
    page.get_by_label("Search", exact=True).fill("d12 boat")
    settle(page)
    assert 0 < int(count(page).split()[0]) < 20
    page.get_by_label("Search", exact=True).fill("nobody says <this> [.*")
    settle(page)
    assert count(page) == "0 of 200 rows"
    assert page.locator(".pane").inner_text() == "No matching row."
    page.get_by_role("button", name="Clear").click()
    assert count(page) == "200 of 200 rows"
    assert page.evaluate("document.activeElement.id") == "by-search"
    opened.assert_quiet()


def test_rows_are_filtered_by_score_dialogue_and_disagreement(page: Page, opened: Opened) -> None:
    base = items(10, 200)
    page.get_by_label("from", exact=True).fill("0.4")
    page.get_by_label("to", exact=True).fill("0.6")
    settle(page)
    assert count(page) == f"{int(((base >= 0.4) & (base <= 0.6)).sum())} of 200 rows"
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Dialogue", exact=True).fill("d7")
    settle(page)
    assert count(page) == f"{TURNS * sum('d7' in f'd{at}' for at in range(50))} of 200 rows"
    page.get_by_role("button", name="Clear").click()
    page.get_by_label("Systems disagree").check()
    every = np.array([items(10, 200), items(20, 200), items(30, 200)])[:, 1:]
    apart = (every.max(axis=0) - every.min(axis=0)) / every.std() >= 1
    assert count(page) == f"{int(apart.sum())} of 200 rows"
    opened.assert_quiet()


def test_systems_stand_side_by_side(page: Page, opened: Opened) -> None:
    page.locator("#row-list .line").nth(2).click()
    pane = page.locator(".pane")
    assert page.locator(".pane-bar h3").inner_text() == "d0 · turn 2"
    assert pane.locator("thead th").all_inner_texts() == ["Score", "base", "warm", "cold"]
    said = [system(seed, 200).rows for seed in (1, 2, 3)]
    current = pane.locator(".exchange.current")
    assert current.locator(".said").all_inner_texts() == [str(rows.texts["response"][2]) for rows in said if rows]
    scores = [f"{items(seed, 200)[2]:.4f}" for seed in (10, 20, 30)]
    assert [chip.split("\n")[0] for chip in current.locator(".chip").all_inner_texts()] == [f"k0 {s}" for s in scores]
    assert pane.locator("tbody tr").first.locator("td").all_inner_texts() == scores
    assert current.locator(".speaker").all_inner_texts() == ["Reference"]


def test_a_dialogue_is_a_transcript_with_a_link(page: Page, path: Path) -> None:
    opened = Opened(page, path, "#d3")
    pane = page.locator(".pane")
    assert page.locator(".pane-bar h3").inner_text() == "d2 · turn 0"
    assert pane.locator(".exchange h4").all_inner_texts() == [f"Turn {turn}" for turn in range(TURNS)]
    assert pane.locator("[aria-current]").count() == 1
    assert page.locator(".permalink").get_attribute("href") == "#d3"
    page.locator("#row-list").press("ArrowDown")
    assert page.locator(".pane-bar h3").inner_text() == "d2 · turn 1"
    assert pane.locator(".exchange.current h4").inner_text() == "Turn 1"
    page.evaluate("location.hash = '#d5'")
    page.wait_for_function("document.querySelector('.pane-bar h3').innerText.startsWith('d4')")
    for strange in ("#d0", "#d999", "#d1-9", "#d1x"):
        page.evaluate("hash => { location.hash = hash }", strange)
        assert count(page) == "200 of 200 rows"
    opened.assert_quiet()


def test_keys_lead_to_the_next_failure(page: Page, opened: Opened) -> None:
    base = items(10, 200)
    known = np.sort(base[1:])
    failed = np.flatnonzero(base <= known[len(known) // 10])
    rows = page.locator("#row-list")
    for at in failed[:3]:
        rows.press("n")
        assert page.locator(".pane-bar h3").inner_text() == f"d{at // TURNS} · turn {at % TURNS}"
        assert "weak" in str(page.locator(".exchange.current .chip").first.get_attribute("class"))
    rows.press("p")
    assert page.locator(".pane-bar h3").inner_text() == f"d{failed[1] // TURNS} · turn {failed[1] % TURNS}"
    page.get_by_role("button", name="Next failure").click()
    assert page.locator(".pane-bar h3").inner_text() == f"d{failed[2] // TURNS} · turn {failed[2] % TURNS}"
    page.get_by_label("Search", exact=True).press("n")
    assert page.get_by_label("Search", exact=True).input_value() == "n", "keys are those of the list and the row"
    opened.assert_quiet()


def test_tools_are_folded_and_speakers_are_named(page: Page, tmp_path: Path) -> None:
    texts: dict[str, TextColumn | RaggedColumn] = {
        "response": TextColumn.from_strings(["done"]),
        "context": RaggedColumn.from_lists([["book it", '{"id": 7}', "which one?", "the first"]]),
        "roles": RaggedColumn.from_lists([["user", "tool", "assistant", "user"]]),
    }
    estimate = Estimate(0.5, 0.2, 1, 1, scores=np.array([0.5]))
    run = Run({"a": Result({"k": estimate}, rows=RowTable(np.array([0, 1]), texts=texts))}, "0")
    opened = Opened(page, report(run, tmp_path / "report.html"))
    pane = page.locator(".pane")
    assert pane.locator(".speaker").all_inner_texts() == ["user", "tool", "assistant", "user"]
    assert pane.locator(".bubble.by-right").count() == 2
    assert not pane.get_by_text('{"id": 7}').is_visible()
    pane.locator("details.tool summary").click()
    assert pane.get_by_text('{"id": 7}').is_visible()
    opened.assert_quiet()


def test_keys_move_through_the_rows(page: Page, opened: Opened) -> None:
    rows = page.locator("#row-list")
    rows.focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowUp"):
        page.keyboard.press(key)
    active = rows.get_attribute("aria-activedescendant")
    assert active == "line-2"
    assert page.locator(f"#{active}").get_attribute("aria-selected") == "true"
    assert page.locator("#row-list [aria-selected=true]").count() == 1
    assert page.locator(".pane-bar h3").inner_text() == "d0 · turn 2"
    page.keyboard.press("End")
    assert page.locator(".pane-bar h3").inner_text() == "d49 · turn 3"
    assert page.locator("#line-199").is_visible()
    page.keyboard.press("PageUp")
    page.keyboard.press("Home")
    assert page.locator(".pane-bar h3").inner_text() == "d0 · turn 0"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.className") == "pane"
    page.keyboard.press("Escape")
    assert page.evaluate("document.activeElement.id") == "row-list"


def test_the_address_keeps_what_is_shown(page: Page, opened: Opened) -> None:
    page.get_by_label("minus").select_option("warm")
    settle(page)
    page.get_by_label("Order").select_option("lowest first")
    page.get_by_label("Search", exact=True).fill("boat")
    settle(page)
    page.locator("#row-list").press("ArrowDown")
    before = (count(page), page.locator(".pane").inner_text())
    assert "#explorer?" in page.url
    page.reload()
    assert (count(page), page.locator(".pane").inner_text()) == before
    assert page.get_by_label("Search", exact=True).input_value() == "boat"
    opened.assert_quiet()


@pytest.mark.parametrize(
    "at", ["row=99999", "sort=__proto__", "key=-1&system=1e9&minus=x", "low=Infinityy", "group=7&row"]
)
def test_a_strange_address_is_harmless(page: Page, path: Path, at: str) -> None:
    opened = Opened(page, path, f"#explorer?{at}")
    assert count(page) == "200 of 200 rows"
    opened.assert_quiet()


def test_every_control_has_a_name(page: Page, opened: Opened) -> None:
    assert page.evaluate(NAMELESS) == []
    assert page.get_by_role("listbox", name="Rows").count() == 1
    assert page.get_by_role("region", name="The chosen row").count() == 1
    assert page.locator("#row-list [role=option]").first.get_attribute("aria-setsize") == "200"
    assert page.locator(".count").get_attribute("aria-live") == "polite"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_page_does_not_scroll_sideways(page: Page, path: Path, width: int) -> None:
    page.set_viewport_size({"width": width, "height": 900})
    Opened(page, path)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_one_system_has_nothing_to_differ_from(page: Page, tmp_path: Path) -> None:
    opened = Opened(page, report(Run({"one": system(1, 8)}, "0"), tmp_path / "report.html"))
    assert not page.get_by_label("minus").is_visible()
    assert not page.get_by_label("Systems disagree").is_visible()
    assert not page.get_by_label("Rows of", exact=True).is_visible()
    opened.assert_quiet()


def test_groups_of_other_rows_can_be_chosen(page: Page, tmp_path: Path) -> None:
    run = Run({"one": system(1, 8), "two": system(2, 12)}, "0")
    opened = Opened(page, report(run, tmp_path / "report.html"))
    assert count(page) == "8 of 8 rows"
    page.get_by_label("Rows of", exact=True).select_option("two")
    assert count(page) == "12 of 12 rows"
    opened.assert_quiet()


def test_ten_thousand_rows_do_not_lag(page: Page, tmp_path: Path) -> None:
    path = report(run_of(10_000, metrics=6), tmp_path / "report.html", compared=False)
    opened = Opened(page, path)
    took = "parseFloat(document.querySelector('.count').dataset.took)"
    assert count(page) == "10,000 of 10,000 rows"
    assert page.locator("#row-list .line").count() < 40
    page.get_by_label("minus").select_option("warm")
    settle(page)
    page.get_by_label("Order").select_option("largest difference first")
    settle(page)
    assert page.evaluate(took) < FAST_MS
    for word in ("boat", "boat lamp", "number 77"):
        page.get_by_label("Search", exact=True).fill(word)
        settle(page)
        assert page.evaluate(took) < FAST_MS
        assert count(page) != "10,000 of 10,000 rows"
    page.get_by_role("button", name="Clear").click()
    started = page.evaluate("performance.now()")
    for _ in range(20):
        page.locator("#row-list").evaluate("element => { element.scrollTop += 20000 }")
    assert page.evaluate("performance.now()") - started < 20 * FAST_MS
    opened.assert_quiet()


def test_a_thousand_rows_fit_into_three_megabytes(tmp_path: Path) -> None:
    path = report(run_of(1000, metrics=20), tmp_path / "report.html")
    assert path.stat().st_size < 3_000_000


@pytest.fixture(scope="module")
def sliced(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two systems that kept a field, which the first forty rows have."""
    run = run_of(200)
    topics = RaggedColumn.from_lists([["taxi"] if row < 40 else [] for row in range(200)])
    systems = {
        name: replace(each, rows=replace(each.rows, fields={"topic": topics}))  # type: ignore[type-var]
        for name, each in run.items()
    }
    return report(Run(systems, "0"), tmp_path_factory.mktemp("slices") / "report.html")


def test_rows_of_a_slice(page: Page, sliced: Path) -> None:
    opened = Opened(page, sliced, "#explorer?system=0&minus=&sort=file")
    choices = page.locator("#by-slice option").all_inner_texts()
    assert choices == ["all rows", "topic: taxi", "topic: (no value)"]
    page.locator("#by-slice").select_option("0")
    settle(page)
    assert count(page) == "40 of 200 rows"
    assert "slice=0" in page.evaluate("location.hash")
    page.locator("#by-slice").select_option("1")
    settle(page)
    assert count(page) == "160 of 200 rows"
    page.get_by_role("button", name="Clear").click()
    assert count(page) == "200 of 200 rows"
    opened.assert_quiet()
    Opened(page, sliced, "#explorer?slice=0")
    assert count(page) == "40 of 200 rows"
    Opened(page, sliced, "#explorer?slice=7")
    assert count(page) == "200 of 200 rows"


def test_a_report_without_slices_offers_none(page: Page, opened: Opened) -> None:
    assert page.locator("#by-slice").is_hidden()


def test_twenty_systems_of_twenty_thousand_rows_open_at_once(page: Page, tmp_path: Path) -> None:
    """Less than two seconds and 15 MB; the page says that it has a part of the rows."""
    rows, base = 20_000, system(1, 20_000, metrics=6)
    assert base.rows is not None
    random = np.random.default_rng(3)
    said = random.choice(WORDS, (20, rows, 12))
    systems = {}
    for at in range(20):
        texts = {**base.rows.texts, "response": TextColumn.from_strings([" ".join(words) for words in said[at]])}
        items = {key: np.round(random.normal(0.5, 0.2, rows), 4) for key in base}
        estimates = {key: replace(each, scores=items[key]) for key, each in base.items()}
        systems[f"system-{at}"] = Result(estimates, rows=replace(base.rows, texts=texts))
    path = report(Run(systems, "0"), tmp_path / "report.html", compared=False)
    assert path.stat().st_size < 15_000_000
    opened = Opened(page, path)
    page.reload()  # the first page of a browser also starts its processes
    timing = "performance.getEntriesByType('navigation')[0]"
    assert page.evaluate(f"{timing}.loadEventEnd - {timing}.startTime") < 2_000
    assert "Of the 20,000 rows of" in page.locator("#explorer .note").first.inner_text()
    opened.assert_quiet()
