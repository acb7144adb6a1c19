"""From the first screen to transcripts: one click to the worst dialogue, two to those of a slice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dialeval
from browser.conftest import Opened
from dialeval import sample_data
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.reports.html import report
from suites.lsdscc.test_report import run_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from playwright.sync_api import Page

    from dialeval.core.arrays import Floats

pytestmark = pytest.mark.browser

HERE = sample_data.folder()
WORDS = ["tea", "rain", "lamp", "boat", "key", "pie", "bell", "map", "dog", "card", "garden", "bench", "soup"]
TURNS = 4


def items(seed: int, rows: int) -> Floats:
    values: Floats = np.round(np.random.default_rng(seed).normal(0.5, 0.2, rows), 3)
    values[0] = np.nan
    return values


def system(seed: int, rows: int, metrics: int = 2) -> Result:
    """A system whose dialogues have the same user turns as those of the others."""
    random, asked = np.random.default_rng(seed), np.random.default_rng(99)
    said = [" ".join(random.choice(WORDS, 12)) for _ in range(rows)]
    context = [[" ".join(asked.choice(WORDS, 8)) for _ in range(2)] for _ in range(rows)]
    texts: dict[str, TextColumn | RaggedColumn] = {"response": TextColumn.from_strings(said)}
    texts |= {"context": RaggedColumn.from_lists(context)}
    texts |= {"reference": RaggedColumn.from_lists([[f"reference number {row}"] for row in range(rows)])}
    table = RowTable(
        np.arange(0, rows + 1, TURNS), [f"d{at}" for at in range(rows // TURNS)], np.arange(rows) % TURNS, texts
    )
    columns = {f"k{at}": items(10 * seed + at, rows) for at in range(metrics)}
    estimates = {key: Estimate(0.5, 0.2, rows, rows - 1, scores=values) for key, values in columns.items()}
    return Result(estimates, table=table)


def score(*names: str, **options: Any) -> Run:
    logs = {name: HERE / "logs" / f"{name}.jsonl" for name in names}
    return dialeval.evaluate(logs, metrics="length", keep="place", **options)


def failing() -> Run:
    """Two logs with 28 of 30 dialogues in common; the second loses by a metric that says what is better."""
    run = score("v1", "v2")
    random = np.random.default_rng(3)
    systems = {}
    for name, result in run.items():
        rows = len(result["length"].scores)  # type: ignore[arg-type]
        values = random.uniform(0.4, 0.9, rows) - (0.3 if name == "v2" else 0.0)
        quality = Estimate(
            float(values.mean()), float(values.std()), rows, rows, scores=values, signature=result_signature()
        )
        estimates = {"rouge-l": quality.with_confidence(2.0), **result.estimates}
        systems[name] = Result(estimates, table=result.table, account=result.account)
    return Run(systems, "0")


def result_signature() -> Any:
    from dialeval.core.signature import Signature

    return Signature.of("rouge-l", n=1)


def many() -> Run:
    return Run({f"system-{seed}": system(seed, 80) for seed in range(1, 13)}, "0")


def agents() -> Run:
    names = {name: HERE / "agents" / f"{name}.jsonl" for name in ("careful", "quick")}
    return dialeval.evaluate(names, metrics="pass-hat,call-f1,length")


KINDS: dict[str, Callable[[], Run]] = {
    "common": failing,
    "unpaired": lambda: score("march", "april"),
    "many": many,
    "agents": agents,
    "one": lambda: score("v1"),
}


@pytest.fixture(scope="module")
def path_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    folder = tmp_path_factory.mktemp("dialogues")
    made: dict[str, Path] = {}

    def path_of(kind: str) -> Path:
        if kind not in made:
            made[kind] = report(KINDS[kind](), folder / f"{kind}.html")
        return made[kind]

    return path_of


def open_lines(page: Page) -> list[str]:
    return page.locator("details.dlg[open] .q").all_inner_texts()


@pytest.mark.parametrize("kind", KINDS)
def test_the_worst_dialogue_is_one_click_from_the_first_screen(
    page: Page, path_of: Callable[[str], Path], kind: str
) -> None:
    """Its transcript is open at the top of the list, and a mark of the first figure leads to a dialogue."""
    opened = Opened(page, path_of(kind))
    lines = page.locator("details.dlg")
    assert lines.first.get_attribute("open") is not None
    assert lines.first.locator(".bub").count() > 0
    mark = page.locator(".hero figcaption a" if kind == "agents" else ".hero figure .w-only svg a").first
    assert mark.bounding_box()["y"] < 900  # type: ignore[index]
    link = str(mark.get_attribute("href"))
    page.evaluate("link => { location.hash = link }", link)
    page.wait_for_timeout(300)
    assert page.locator("details.dlg[open] .bub").first.is_visible()
    opened.assert_quiet()


@pytest.mark.parametrize("kind", ["common", "unpaired", "one"])
def test_the_dialogues_of_a_slice_are_two_clicks_away(page: Page, path_of: Callable[[str], Path], kind: str) -> None:
    opened = Opened(page, path_of(kind))
    rows = page.locator("#where .slice")
    assert rows.count() >= 3
    name = rows.first.locator("b bdi").inner_text()
    number = int(rows.first.locator("small").inner_text().split()[0].replace(",", ""))
    rows.first.click()
    chip = page.locator(".chip[aria-pressed=true]").filter(has_text=name).last
    chip.wait_for()
    assert page.locator("details.dlg[open] .bub").first.is_visible()
    shown = page.locator("details.dlg").count()
    assert shown <= number
    if kind == "common":
        assert shown == min(number, 8)
    chip.click()
    assert page.evaluate("location.hash") == "#dialogues"
    opened.assert_quiet()


def test_both_versions_are_next_to_each_other_with_the_difference_of_each_reply(
    page: Page, path_of: Callable[[str], Path]
) -> None:
    run = failing()
    Opened(page, path_of("common"))
    first = page.locator("details.dlg").first
    assert first.locator(".heads b").all_inner_texts() == ["v1", "v2"]
    turns = first.locator(".turn")
    for turn in turns.all():
        assert turn.locator(".bub").count() == 2
        before, after = (float(text.split("\n")[0]) for text in turn.locator(".v").all_inner_texts())
        change = turn.locator(".v i").inner_text().replace("−", "-")
        assert float(change) == pytest.approx(after - before, abs=0.011)
    if turns.count() > 1:
        assert first.locator(".tag").inner_text() == "Decisive turn"
    assert page.locator(".chip").all_inner_texts()[0].startswith("Got worse")
    assert run["v1"].table is not None
    page.get_by_role("button", name="Not in all systems").click()
    assert page.locator("details.dlg").count() == 2


def test_dialogues_stand_in_order_of_their_loss_and_the_order_can_be_chosen(
    page: Page, path_of: Callable[[str], Path]
) -> None:
    def values() -> list[float]:
        shown = page.locator("details.dlg > summary .d").all_inner_texts()
        return [float(text.replace("−", "-")) for text in shown]

    opened = Opened(page, path_of("common"))
    page.get_by_role("button", name="Show all 28 dialogues").click()
    assert len(values()) == 28
    assert values() == sorted(values())
    page.get_by_label("Order").select_option("best first")
    assert values()[:5] == sorted(values(), reverse=True)[:5]
    assert "sort=gain" in page.evaluate("location.hash")
    page.reload()
    assert page.get_by_label("Order").input_value() == "gain"
    opened.assert_quiet()


def test_the_address_of_a_dialogue_opens_it_and_keys_go_on(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("many"), "#d17")
    line = page.locator("#d17")
    assert line.get_attribute("open") is not None
    assert page.locator("#d17 .bub").first.is_visible()
    page.keyboard.press("n")
    page.wait_for_url(lambda url: not url.endswith("#d17"))
    other = str(page.evaluate("location.hash"))
    page.locator(f"{other}[open] .bub").first.wait_for()
    page.keyboard.press("p")
    page.wait_for_url(lambda url: url.endswith("#d17"))
    page.locator("#d17").get_by_role("button", name="Next", exact=True).click()
    page.wait_for_url(lambda url: url.endswith(other))
    opened.assert_quiet()


def test_search_marks_what_it_finds(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("many"))
    page.get_by_label("Search in dialogues").fill("NUMBER 17")
    page.locator("details.dlg").nth(2).wait_for(state="detached")
    assert page.locator("details.dlg").count() == 2, "d4 has reference number 17, and d17 has a reference"
    page.locator("details.dlg > summary").nth(1).click()
    page.locator("details.dlg mark", has_text="17").first.wait_for()
    assert set(page.locator("details.dlg mark").all_inner_texts()) == {"number", "17"}
    page.get_by_label("Search in dialogues").fill("nobody says <this> [.*")
    page.locator("details.dlg").first.wait_for(state="detached")
    opened.assert_quiet()


def test_a_system_of_many_leads_to_its_dialogues(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("many"))
    name = page.locator("table.systems tbody th a").nth(3)
    wanted = name.inner_text()
    name.click()
    if wanted != "system-1":
        chosen = page.locator("[data-name=system] option:checked", has_text=wanted)
        chosen.wait_for(state="attached")
        assert chosen.inner_text() == wanted
    page.get_by_label("Order").select_option("systems differ most")
    assert page.locator("details.dlg[open] .turn").first.locator(".bub").count() == 12
    opened.assert_quiet()


def test_a_square_leads_to_its_trial_with_calls_as_a_difference(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("agents"))
    row = page.locator("table.trials tr").filter(has_text="not-mine")
    row.locator("a.cell.f").nth(1).click()
    page.locator(".dlg[open] .chip[aria-pressed=true]", has_text="Trial 1").wait_for()
    shown = page.locator("details.dlg[open]").last
    sides = page.locator("[data-trial='1-1']")
    assert "✕ failed" in sides.inner_text()
    assert sides.locator(".diff .add").count() > 0
    assert "cancel_reservation" in sides.locator(".diff .add").first.inner_text()
    assert "✓ passed" in page.locator("[data-trial='0-1']").inner_text()
    assert shown.is_visible()
    opened.assert_quiet()


def test_heads_sort_their_table(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("many"))
    head = page.locator("table.systems thead th").nth(2)
    column = page.locator("table.systems tbody td:nth-child(3)")
    head.get_by_role("button").click()
    values = [float(text.split()[-1]) for text in column.all_inner_texts()]
    assert values == sorted(values, reverse=True)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    opened.assert_quiet()


def test_a_query_shows_its_groups_and_who_landed_there(page: Page, tmp_path: Path) -> None:
    opened = Opened(page, report(run_of("a b c d", "zz"), tmp_path / "report.html"), "#d1")
    shown = page.locator("#d1")
    assert shown.locator("section h4").all_inner_texts() == ["Group letters", "Group end", "In no group"]
    letters, end, none = (shown.locator("section").nth(at).inner_text() for at in range(3))
    assert "a b c d" in letters
    assert "no answer here" in end
    assert "zz" in none
    opened.assert_quiet()


@pytest.mark.parametrize("kind", ["common", "unpaired", "one"])
def test_the_page_is_short_and_fits_every_window(page: Page, path_of: Callable[[str], Path], kind: str) -> None:
    Opened(page, path_of(kind))
    assert page.evaluate("document.documentElement.scrollHeight") < 4_000
    for width in (320, 390, 768, 1280, 1920, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        page.wait_for_timeout(100)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width


def test_a_figure_becomes_a_picture(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("common"))
    with page.expect_download() as got:
        page.evaluate("() => { navigator.clipboard.write = () => Promise.reject(new Error('no clipboard')) }")
        page.locator("figure .png").first.evaluate("each => each.click()")
    assert got.value.suggested_filename == "figure.png"
    assert got.value.path().read_bytes().startswith(b"\x89PNG")
    assert opened.said == []


def test_twenty_thousand_rows_of_twenty_systems_open_in_time(page: Page, tmp_path: Path) -> None:
    run = Run({f"system-{seed}": system(seed, 20_000) for seed in range(20)}, "0")
    path = report(run, tmp_path / "report.html", compared=False)
    assert path.stat().st_size < 15e6
    opened = Opened(page, path)
    took = page.evaluate("performance.getEntriesByType('navigation')[0].domContentLoadedEventEnd")
    assert took < 2000
    opened.assert_quiet()


def test_unpaired_logs_list_the_worst_dialogues_of_each_system(page: Page, path_of: Callable[[str], Path]) -> None:
    """A mark of the first system opens its dialogue in the list of that system, with values."""
    Opened(page, path_of("unpaired"), "#d3")
    assert page.get_by_label("System").input_value() == "0"
    values = page.locator("details.dlg .d").all_inner_texts()
    assert values
    assert "–" not in values
    page.get_by_label("System").select_option("april")
    assert page.locator("details.dlg[open]").count() == 1


def test_the_first_screen_on_agents_counts_passed_trials(page: Page, path_of: Callable[[str], Path]) -> None:
    Opened(page, path_of("agents"))
    assert "It passed 14 of 31 trials, careful 27 of 32." in page.locator(".lead").inner_text()
    assert page.locator(".key dd").first.inner_text() == "14 of 31"
