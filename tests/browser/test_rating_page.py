"""The page on which people rate, in a real browser: by keys alone, over reloads, out into a file and in again."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from browser.conftest import Opened
from browser.test_hostile import SHORT, shown
from browser.test_kinds import violations
from dialeval.human.form import Form, Quality
from dialeval.human.page import make_rating_page
from human.rated_samples import sample_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

TWO = Form(repeat=0.1, quality=[Quality("overall"), Quality("polite", "Is it polite?", "yes-no")])


@pytest.fixture
def written(tmp_path: Path) -> Callable[..., Path]:
    def write(form: Form, name: str = "rate.html", **settings: Any) -> Path:
        path = tmp_path / name
        path.write_text(make_rating_page(sample_of(**settings), form), encoding="utf-8")
        return path

    return write


def start(page: Page, rater: str = "ann") -> None:
    """As a rater does it: the name, and Enter, which answers nothing yet."""
    page.keyboard.type(rater)
    page.keyboard.press("Enter")
    assert "Not answered" not in page.locator("body").inner_text()


def reply(page: Page) -> str:
    return page.locator(".reply p").inner_text()


def status(page: Page) -> str:
    return page.locator("#status").text_content() or ""


def downloaded(page: Page) -> list[dict[str, Any]]:
    page.get_by_role("button", name="Pause").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download", exact=True).click()
    page.get_by_role("button", name="Close").click()
    return [json.loads(line) for line in download.value.path().read_text("utf-8").split("\n") if line]


def test_twenty_rows_by_keys_alone(page: Page, written: Callable[..., Path]) -> None:
    """Rated, reloaded in the middle, exported, and imported into another browser."""
    opened = Opened(page, written(TWO))
    start(page)
    given: dict[str, tuple[int, int]] = {}
    twice = 0
    for number in range(22):
        if number == 9:
            page.reload()
        assert status(page) == f"{number + 1} of 22, {number} rated"
        said = reply(page)
        value = 1 + number % 5
        page.keyboard.press(str(value))
        page.keyboard.press("y" if number % 2 else "n")
        if number == 3:
            page.keyboard.press("c")
            page.keyboard.type("well 1 u ?")
        page.keyboard.press("Enter")
        twice += said in given
        given.setdefault(said, (value, number % 2))
    assert twice == 2
    assert len(given) == 20
    assert "22 of 22 rated" in status(page)
    with page.expect_download():
        page.keyboard.press("Space")  # the download has the focus
    lines = downloaded(page)
    by_id = {row.id: row.response for row in sample_of().responses}
    first = [line for line in lines if "again" not in line]
    assert {by_id[line["id"]]: (line["scores"]["overall"], line["scores"]["polite"]) for line in first} == given
    assert [line["comment"] for line in lines if "comment" in line] == ["well 1 u ?"]
    assert {line["rater"] for line in lines} == {"ann"}
    assert all(line["seconds"] >= 0 for line in lines)
    assert len([line for line in lines if line.get("again")]) == 2
    opened.assert_quiet()


def test_an_export_is_taken_up_again_elsewhere(
    browser: Browser, page: Page, written: Callable[..., Path], tmp_path: Path
) -> None:
    path = written(Form(repeat=0))
    Opened(page, path)
    start(page)
    for _ in range(5):
        page.keyboard.press("4")
        page.keyboard.press("Enter")
    lines = downloaded(page)
    assert len(lines) == 5
    file = tmp_path / "ratings.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    other = browser.new_context().new_page()
    opened = Opened(other, path)
    start(other)
    assert status(other) == "1 of 20, 0 rated"
    other.get_by_role("button", name="Pause").click()
    other.get_by_label("Import a file of yours:").set_input_files(file)
    other.get_by_text("5 ratings were taken up.").wait_for()
    assert status(other) == "6 of 20, 5 rated"
    other.get_by_role("button", name="Close").click()
    other.keyboard.press("2")
    other.keyboard.press("Enter")
    assert len(downloaded(other)) == 6
    opened.assert_quiet()
    other.context.close()


def test_what_cannot_be_imported_is_named_line_by_line(
    page: Page, written: Callable[..., Path], tmp_path: Path
) -> None:
    Opened(page, written(Form(repeat=0)))
    start(page)
    good = {"id": "k003abcd", "rater": "ann", "scores": {"overall": 3}}
    bad = [{**good, "rater": "<b>bob"}, {**good, "id": "elsewhere"}, {**good, "scores": {"overall": 9}}, 3]
    file = tmp_path / "ratings.jsonl"
    file.write_text("\n".join([json.dumps(good), "{", *map(json.dumps, bad)]))
    page.get_by_role("button", name="Pause").click()
    page.get_by_label("Import a file of yours:").set_input_files(file)
    page.locator(".problems li").first.wait_for()
    assert page.locator(".problems li").all_inner_texts() == [
        "line 2: not JSON",
        "line 3: of another rater (<b>bob)",
        "line 4: of a row that is not to be rated here",
        "line 5: has no answer to overall",
        "line 6: not a rating",
    ]
    assert status(page) == "1 of 20, 0 rated"


def test_order_differs_between_raters_and_not_between_openings(page: Page, written: Callable[..., Path]) -> None:
    path = written(Form(repeat=0))

    def order(rater: str) -> list[str]:
        Opened(page, path)
        page.evaluate("localStorage.clear()")
        page.reload()
        start(page, rater)
        seen = []
        for _ in range(6):
            seen.append(reply(page))
            page.keyboard.press("1")
            page.keyboard.press("Enter")
        return seen

    ann, bob, again = order("ann"), order("bob"), order("ann")
    assert ann == again
    assert ann != bob
    assert len(set(ann)) == len(set(bob)) == 6


def test_sides_are_shuffled_and_found_again(page: Page, written: Callable[..., Path]) -> None:
    opened = Opened(page, written(Form(compare=True, repeat=0), contexts=24))
    start(page)
    wanted = {}
    swapped = 0
    for number in range(24):
        left, right = page.locator(".reply p").all_inner_texts()
        swapped += left.endswith("y")
        side = number % 3
        way = number // 3 % 3
        if way == 0:
            page.keyboard.press(("ArrowLeft", "ArrowDown", "ArrowRight")[side])
        elif way == 1 or side == 1:
            page.keyboard.press(str(1 + side))
        else:
            page.locator(".card").nth(side // 2).click()
        page.keyboard.press("Enter")
        wanted[left.split()[1]] = (left[-1], "", right[-1])[side]
    assert 4 < swapped < 20
    lines = downloaded(page)
    assert {str(int(line["id"][1:4])): {1: "x", 0: "", -1: "y"}[line["scores"]["overall"]] for line in lines} == wanted
    opened.assert_quiet()


def test_undo_arrows_and_help(page: Page, written: Callable[..., Path]) -> None:
    Opened(page, written(TWO))
    start(page)
    first = reply(page)
    page.keyboard.press("Enter")
    assert "Not answered yet: How good is the reply?" in page.locator(".hint").inner_text()
    assert page.get_by_role("button", name="Next").is_disabled()
    assert page.locator("input:checked, input:focus").count() == 0, "nothing looks chosen"
    page.keyboard.press("5")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("n")
    page.wait_for_timeout(300)
    page.keyboard.press("Enter")
    assert page.get_by_role("alert").count() == 0
    assert reply(page) != first
    page.keyboard.press("u")
    assert reply(page) == first
    assert page.locator("label:has(:checked) bdi").all_inner_texts() == ["good", "No"]
    page.keyboard.press("2")
    page.keyboard.press("Enter")
    (line,) = downloaded(page)
    assert line["scores"] == {"overall": 2, "polite": 0}
    assert line["seconds"] >= 0.3  # of both visits
    page.keyboard.press("?")
    page.get_by_role("dialog", name="Instructions").wait_for()
    page.keyboard.press("Escape")
    page.get_by_role("dialog").wait_for(state="hidden")


def test_by_touch_and_for_screen_readers(browser: Browser, written: Callable[..., Path]) -> None:
    context = browser.new_context(has_touch=True, viewport={"width": 390, "height": 800}, color_scheme="dark")
    page = context.new_page()
    opened = Opened(page, written(TWO))
    assert opened.background == "dark"
    page.get_by_label("Your name or initials").fill("ann")
    page.get_by_role("button", name="Start").tap()
    page.get_by_role("group", name="How good is the reply?").get_by_role("radio", name="4").tap()
    page.get_by_role("group", name="Is it polite?").get_by_role("radio", name="Yes").tap()
    page.get_by_role("button", name="Next").tap()
    assert status(page) == "2 of 22, 1 rated"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    small = "all => all.filter(each => each.getBoundingClientRect().height < 44).length"
    assert page.locator("label.choice, button:visible").evaluate_all(small) == 0
    opened.assert_quiet()
    context.close()


def test_hostile_text_stays_text(page: Page, written: Callable[..., Path]) -> None:
    text = "\n".join(SHORT.values())
    quality = Quality("__proto__", text, labels=[text, text])
    form = Form(title=text[:200], instructions=text, reference=True, repeat=0, quality=[quality])
    opened = Opened(page, written(form, text=text, contexts=2))
    start(page, "<img src=x onerror=window.hacked=9>")
    content = "elements => elements.map(each => each.textContent)"
    wanted = shown(text)
    assert page.locator(".reply .text").evaluate_all(content) == [wanted, wanted]
    assert page.locator(".context .text").evaluate_all(content) == [wanted, "and then?"]
    assert page.locator(".context .aside").evaluate_all(content) == [wanted, "user"]
    assert page.locator("legend").evaluate_all(content) == [wanted]
    for _ in range(4):
        page.keyboard.press("3")
        page.keyboard.press("Enter")
    lines = downloaded(page)
    assert [line["scores"] for line in lines] == [{"__proto__": 3}] * 4
    assert page.evaluate("[...document.scripts].filter(each => !each.type).length") == 2
    foreign = "img, iframe, object, base, link, form, svg, [onerror], [onload], [style]"
    assert page.locator(foreign).count() == 0
    opened.assert_quiet()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("form", [TWO, Form(compare=True, reference=True)], ids=["scales", "pairs"])
def test_axe_finds_nothing(page: Page, written: Callable[..., Path], form: Form, scheme: str) -> None:
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    Opened(page, written(form))
    assert violations(page) == {}
    start(page)
    page.keyboard.press("Enter")
    assert violations(page) == {}
    for name in ("Instructions", "Pause"):
        page.get_by_role("button", name=name).click()
        page.get_by_role("dialog", name=name).wait_for()
        assert violations(page) == {}
        page.keyboard.press("Escape")
    page.keyboard.press("ArrowRight")
    assert violations(page) == {}


def test_without_storage_it_says_so(page: Page, written: Callable[..., Path]) -> None:
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full') }")
    Opened(page, written(Form(repeat=0)))
    start(page)
    page.keyboard.press("3")
    page.keyboard.press("Enter")
    page.get_by_role("alert").filter(has_text="keeps nothing").wait_for()
    assert len(downloaded(page)) == 1


LONG = "I would like to book a table for two people at eight, near the window if there is one. " * 3
FITS = """() => [...document.querySelectorAll("fieldset, #next")].filter(each => {
    const box = each.getBoundingClientRect();
    return box.top < 0 || box.bottom > innerHeight || box.left < 0 || box.right > innerWidth;
}).map(each => each.outerHTML.slice(0, 120))"""


@pytest.mark.parametrize(("width", "height"), [(1400, 900), (390, 844)])
@pytest.mark.parametrize("form", [Form(), TWO, Form(compare=True, both_bad=True, uncertain=True)])
def test_the_conversation_is_there_from_its_first_turn_and_the_questions_stay_in_sight(
    page: Page, written: Callable[..., Path], form: Form, width: int, height: int
) -> None:
    page.set_viewport_size({"width": width, "height": height})
    opened = Opened(page, written(form, text=LONG))
    start(page)
    page.keyboard.press("3")
    page.keyboard.press("y")
    page.keyboard.press("Enter")
    assert ", 1 rated" in status(page)
    assert page.evaluate(FITS) == []
    assert page.locator(".context li").first.bounding_box()["y"] > 0  # type: ignore[index]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    opened.assert_quiet()


def test_options_of_the_form_are_on_the_page(page: Page, written: Callable[..., Path]) -> None:
    """Uncertain, both bad, a rubric, and going on by itself; what was answered is found again."""
    opened = Opened(page, written(Form(compare=True, both_bad=True, uncertain=True, repeat=0), contexts=3))
    start(page)
    for key in ("b", "s", "ArrowDown"):
        page.keyboard.press(key)
        page.keyboard.press("Enter")
    lines = downloaded(page)
    answers = [(line["scores"]["overall"], line.get("both_bad")) for line in lines]
    assert answers == [(0, ["overall"]), (None, None), (0, None)]
    for label in ("No difference", "Uncertain", "Both are bad"):
        page.get_by_role("button", name="Back").click()
        assert page.locator("label:has(:checked) bdi").inner_text() == label
    opened.assert_quiet()
    rubric = [f"stands for {number}" for number in range(1, 6)]
    opened = Opened(page, written(Form(advance=True, repeat=0, quality=[Quality(rubric=rubric)]), "other.html"))
    start(page)
    assert page.locator(".rubric dd").all_inner_texts() == rubric
    page.keyboard.press("4")
    page.get_by_text("2 of 20").wait_for()
    assert page.get_by_role("button", name="Next").is_disabled()
    opened.assert_quiet()


def test_the_start_says_how_much_there_is(page: Page, written: Callable[..., Path]) -> None:
    Opened(page, written(TWO))
    assert "22 replies to rate, about" in page.locator("#workload").inner_text()
    assert "minute" in page.locator("#workload").inner_text()
    start(page)
    labels = page.get_by_role("group", name="How good is the reply?").locator("label bdi").all_inner_texts()
    assert labels == ["bad", "poor", "fair", "good", "excellent"]


def test_turns_are_marked_and_marks_are_found_again(page: Page, written: Callable[..., Path]) -> None:
    form = Form(repeat=0, unit="conversation", mark="Mark the turns that are wrong")
    opened = Opened(page, written(form))
    start(page)
    assert page.locator("legend").inner_text() == "How good is the conversation?"
    turns = page.locator(".context .line").count()
    page.get_by_role("button", name="Mark turn 1").click()
    page.get_by_role("button", name=f"Mark turn {turns + 1}").click()
    page.keyboard.press("2")
    page.get_by_role("button", name="Next").click()
    (line,) = downloaded(page)
    assert line["marked"] == [1, turns + 1]
    page.get_by_role("button", name="Back").click()
    pressed = page.locator(".mark[aria-pressed=true]")
    assert pressed.count() == 2
    pressed.first.click()
    page.get_by_role("button", name="Next").click()
    assert downloaded(page)[0]["marked"] == [turns + 1]
    assert violations(page) == {}
    opened.assert_quiet()
