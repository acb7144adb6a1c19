"""Reports of every kind in a real browser: contrast and names by axe-core, narrow windows, links, the first screen."""

from __future__ import annotations

from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import dialeval
from browser.conftest import Opened
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.multiwoz import Evaluator
from dialeval.reports.html import report
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from human.rated_runs import ratings_of
from human.rated_runs import run_of as run_of_people

if TYPE_CHECKING:
    from collections.abc import Callable

    from playwright.sync_api import Page

pytestmark = pytest.mark.browser

HERE = sample_data.folder()
DRAWN = "() => new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done))))"
"""Waits until events of the window have been handled and a frame is drawn."""
BELOW_THE_BAR = 4
"""Pixels by which a link may miss its target."""


def scored(seed: int, rows: int = 40) -> Result:
    items = np.random.default_rng(seed).normal(0.4 + 0.05 * (seed % 5), 0.1, rows).clip(0, 1)
    estimates = {key: Estimate(0.0, 0.0, rows, rows, scores=items**power) for key, power in METRICS.items()}
    made = {
        key: replace(each, mean=float(each.scores.mean()), std=float(each.scores.std())).with_confidence(1.97)
        for key, each in estimates.items()
        if each.scores is not None
    }
    return Result(made, {"adem": "needs a model"}, table=RowTable(np.arange(rows + 1)))


METRICS = {"bleu-4": 2, "rouge-l": 1, "length": 3}


def systems(number: int) -> Run:
    long = "a-very-long-name-of-a-system-checkpoint-120000-beam4"
    made = {long if at == 4 else f"system-{at}": scored(at) for at in range(number)}
    baselines = {f"floor/{name}": replace(scored(99), role="floor") for name in ("constant", "shuffled-gold")}
    return Run({**made, **baselines}, "0", ("one warning",))


def answers() -> Run:
    given: Any = {name: HERE / "lsdscc" / f"{name}.txt" for name in ("varied", "safe")}
    return evaluate_hypotheses(given, reference_groups=HERE / "lsdscc" / "groups.json")


def town() -> Run:
    evaluator, predictions = Evaluator(data="town", dst=True), HERE / "town" / "predictions"
    return evaluator.with_transcripts(evaluator.run(predictions), predictions)


def detectors() -> Run:
    return evaluate_breakdown(
        HERE / "breakdown" / "data", [HERE / "breakdown" / name for name in ("keywords", "cautious")]
    )


def chats() -> Run:
    return dialeval.evaluate(
        HERE / "responses", HERE / "references.txt", HERE / "contexts.txt", metrics="bleu-4,rouge-l,length,distinct-2"
    )


def agents() -> Run:
    """Two agents with four trials of twelve tasks."""
    random = np.random.default_rng(4)
    systems = {
        name: [
            {"dialog_id": f"task-{task}", "trial": trial, "reward": float(random.random() < chance ** (1 + task % 3))}
            | {"context": ["book a table for two", "when?", "at eight"], "response": f"done by {name}, try {trial}"}
            for task in range(12)
            for trial in range(4)
        ]
        for name, chance in (("steady", 0.9), ("lucky", 0.6))
    }
    return dialeval.evaluate(systems, metrics="pass-hat,flips,length")


def rated() -> tuple[Run, dict[str, Any]]:
    """A run of three systems, and what people say of it."""
    run, opinions = run_of_people(dialogues=60, systems={"warm": 3.4, "brief": 3.0, "formal": 2.6})
    drawn = dialeval.sample(run, 90)
    ratings = ratings_of(drawn, opinions)
    pairs = [
        {"a": "warm", "b": other, "better": "a" if row % 3 else "b", "dialog_id": str(row)}
        for row in range(30)
        for other in ("brief", "formal")
    ]
    with TemporaryDirectory() as folder:
        agreement = dialeval.measure_agreement(run, ratings, sample=drawn.save(folder))
    said = {
        "people": dialeval.estimate_ratings(run, ratings, judge="judge", sample=drawn),
        "agreement": agreement,
        "ranking": dialeval.rank(pairs),
    }
    return run, said


KINDS: dict[str, Callable[[], Run]] = {
    "one": lambda: systems(1),
    "three": chats,
    "eight": lambda: systems(8),
    "twelve": lambda: systems(12),
    "thirty": lambda: systems(30),
    "agents": agents,
    "people": lambda: rated()[0],
    "town": town,
    "lsdscc": answers,
    "breakdown": detectors,
}


@pytest.fixture(scope="module")
def path_of(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The report of a kind, made once."""
    folder = tmp_path_factory.mktemp("kinds")
    made: dict[str, Path] = {}

    def path_of(kind: str) -> Path:
        if kind not in made:
            said = rated()[1] if kind == "people" else {}
            made[kind] = report(KINDS[kind](), folder / f"{kind}.html", "dialeval report", date="2026-01-01", **said)
        return made[kind]

    return path_of


def violations(page: Page, scheme: str = "light") -> dict[str, list[str]]:
    """The rules of WCAG A and AA that a page breaks, with the first elements that do; in the dark those of colors."""
    found = find_spec("axe_playwright_python")
    if found is None or found.origin is None:
        pytest.skip("needs axe-core: pip install axe-playwright-python")
    page.evaluate(Path(found.origin).with_name("axe.min.js").read_text(encoding="utf-8"))
    chosen = ["wcag2a", "wcag2aa"] if scheme == "light" else {"type": "rule", "values": ["color-contrast"]}
    rules = {"runOnly": chosen, "resultTypes": ["violations"], "elementRef": False}
    broken = page.evaluate("rules => axe.run(document, rules).then(found => found.violations)", rules)
    return {each["id"]: [node["html"][:150] for node in each["nodes"][:3]] for each in broken}


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("eight", "thirty")])
def test_axe_finds_nothing(page: Page, path_of: Callable[[str], Path], kind: str) -> None:
    """Of many systems twelve are checked: more of them have the same elements."""
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    opened = Opened(page, path_of(kind))
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert violations(page) == {}
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    page.evaluate(DRAWN)
    assert opened.background == "dark"
    assert violations(page, "dark") == {}


def test_axe_sees_a_faint_text_and_a_control_without_a_name(page: Page, path_of: Callable[[str], Path]) -> None:
    Opened(page, path_of("one"))
    page.evaluate("document.querySelector('.lead').style.color = '#cccccc'")
    page.evaluate("document.querySelector('[data-copy]').replaceChildren()")
    assert set(violations(page)) == {"color-contrast", "button-name"}


WIDTHS = (320, 390, 768, 1280, 1440, 1920, 2560)
CLIPPED = """() => [...document.querySelectorAll(".wide, .sides, .talk, figure, .body, .hero, .slices")]
    .filter(each => each.clientWidth && each.scrollWidth > each.clientWidth + 1)
    .map(each => each.outerHTML.slice(0, 160))"""


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind not in ("one", "eight")])
def test_no_table_and_no_figure_is_clipped_at_any_width(page: Page, path_of: Callable[[str], Path], kind: str) -> None:
    """Every table, figure and transcript fits its place, folded parts included; the page does not scroll sideways."""
    opened = Opened(page, path_of(kind))
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
        page.evaluate(DRAWN)
        assert page.evaluate("document.documentElement.scrollWidth") <= width, width
        assert page.evaluate(CLIPPED) == [], width
    opened.assert_quiet()


def test_wide_screens_are_used_and_lines_stay_short(page: Page, path_of: Callable[[str], Path]) -> None:
    page.set_viewport_size({"width": 1920, "height": 1080})
    Opened(page, path_of("three"))
    figure = page.locator(".hero figure").first.bounding_box()
    assert figure is not None
    assert figure["width"] > 800
    assert figure["y"] < 700, "it is on the first screen"


@pytest.mark.parametrize("kind", KINDS)
def test_paper_is_wide_enough(page: Page, path_of: Callable[[str], Path], kind: str) -> None:
    page.set_viewport_size({"width": 718, "height": 1000})  # A4 without its margins, in CSS pixels
    Opened(page, path_of(kind))
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.evaluate("document.documentElement.scrollWidth") <= 718


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_screen_answers_and_links_land_where_they_say(
    page: Page, path_of: Callable[[str], Path], kind: str
) -> None:
    page.emulate_media(reduced_motion="reduce")
    page.set_viewport_size({"width": 1400, "height": 900})
    Opened(page, path_of(kind))
    for place in ("h1", ".verdict .lead, .verdict .read"):
        box = page.locator(place).first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] <= 500, place
    heights = [
        float(each.evaluate("each => parseFloat(getComputedStyle(each).fontSize)"))
        for each in page.locator("h1, h2, h3, p").all()
    ]
    if kind == "people":
        assert page.locator("h1").inner_text().replace("\n", " ") == "People rate brief and formal lower than warm"
    largest = float(page.locator("h1").evaluate("each => parseFloat(getComputedStyle(each).fontSize)"))
    assert largest == max(heights), "the verdict is the largest text"
    for width in (1400, 420):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate(DRAWN)
        padding = float(page.evaluate("parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop)"))
        for link in page.locator("nav[aria-label=Contents] a").all():
            link.evaluate("each => each.click()")
            target = page.locator(f"[id='{str(link.get_attribute('href'))[1:]}']")
            top = float(target.evaluate("each => each.getBoundingClientRect().top"))
            bar = float(page.locator("header.top").evaluate("each => Math.max(0, each.getBoundingClientRect().bottom)"))
            at_end = page.evaluate("Math.ceil(scrollY + innerHeight) >= document.documentElement.scrollHeight - 1")
            assert at_end or abs(top - padding) <= BELOW_THE_BAR
            assert top >= bar - BELOW_THE_BAR, "the bar hides no heading"


def test_a_cause_leaves_the_dialogues_that_it_lost(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("town"))
    assert page.locator(".dialogue").count() == 8
    bar = page.locator(".cause").filter(has_text="missing PHONE")
    bar.click()
    assert bar.get_attribute("aria-current") == "true"
    assert "1 of 8 dialogues are shown" in page.locator("#lost-shown").inner_text()
    shown = page.locator(".dialogue:visible")
    assert shown.count() == 1
    assert "missing PHONE" in shown.first.inner_text()
    bar.click()
    assert page.locator("#lost-shown").inner_text() == ""
    opened.assert_quiet()


def test_a_domain_of_the_heat_map_lists_its_dialogues(page: Page, path_of: Callable[[str], Path]) -> None:
    opened = Opened(page, path_of("town"))
    page.locator(".heat tr").filter(has_text="inn").locator("a").last.click()
    page.locator(".chip").filter(has_text="domain: inn").wait_for()
    assert 0 < page.locator("details.dlg").count() < 8
    opened.assert_quiet()


def test_every_shape_of_a_figure_has_a_color_of_the_page(page: Page, path_of: Callable[[str], Path]) -> None:
    """In the dark a shape that no rule paints would be black."""
    page.emulate_media(color_scheme="dark")
    for kind in ("breakdown", "three", "twelve"):
        Opened(page, path_of(kind))
        painted = "all => all.every(each => getComputedStyle(each).fill !== 'rgb(0, 0, 0)')"
        shapes = page.locator(".verdict svg, .hero svg:visible").locator("path:not(.rule, .arrow), circle")
        assert shapes.evaluate_all(painted), kind
