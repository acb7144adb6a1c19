"""The rating server with real browsers: two raters at once, and a server that is killed between ratings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dialeval
from browser.test_kinds import violations
from browser.test_rating_page import reply, status

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, Route

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.hacked = 1'></script><script>window.hacked = 2</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"dialog_id": f"d{n}", "turn": 0, "response": f"reply {n} {HOSTILE}", "context": [HOSTILE]} for n in range(12)
    ]
    run = dialeval.evaluate({"main": rows}, metrics="length", execution=dialeval.Execution(threads=1))
    dialeval.sample(run, 12).save(tmp_path / "to-rate")
    return tmp_path


class Team:
    """A server in a process of its own, which may be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port, self.lead = folder, 0, ""
        self.links: dict[str, str] = {}

    def start(self, *more: str) -> None:
        program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "rate", "serve", "to-rate"]
        command = [*program, "--db", "ratings.sqlite", "--port", str(self.port), *more]
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=pipe, stderr=pipe, text=True)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        for _ in range(2):
            name, link = self.process.stdout.readline().split()
            self.links[name] = link
            self.port = int(link.split(":")[2].partition("/")[0])
        while not self.lead:
            line = self.process.stderr.readline()
            self.lead = line.split()[-1] if "/l/" in line else ""

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()

    def ratings(self) -> list[dict[str, Any]]:
        from dialeval.human.store import read_stored_lines

        return [line for _, line in read_stored_lines(self.folder / "ratings.sqlite")]


@pytest.fixture
def team(folder: Path) -> Iterator[Team]:
    made = Team(folder)
    (folder / "form.toml").write_text("repeat = 0\n")
    made.start("--raters", "ann,bob", "--form", "form.toml")
    yield made
    made.kill()


def opened(browser: Browser, link: str) -> Page:
    page = browser.new_context().new_page()
    page.goto(link)
    if page.get_by_role("button", name="Start").count():
        page.keyboard.press("Enter")
    return page


def rate(page: Page, value: int) -> str:
    said = reply(page)
    page.keyboard.press(str(value))
    page.keyboard.press("Enter")
    return said


def wait_until(team: Team, number: int) -> None:
    end = time.monotonic() + 120
    while len(team.ratings()) < number and time.monotonic() < end:
        time.sleep(0.05)
    assert len(team.ratings()) == number


def test_two_raters_at_once(browser: Browser, team: Team) -> None:
    ann, bob = (opened(browser, team.links[name]) for name in ("ann", "bob"))
    said: list[str] = []
    asked: list[str] = []
    ann.on("console", lambda message: said.append(message.text))
    ann.on("request", lambda request: asked.append(request.url))
    orders: dict[str, list[str]] = {"ann": [], "bob": []}
    for number in range(12):
        orders["ann"].append(rate(ann, 1 + number % 5))
        orders["bob"].append(rate(bob, 5))
    wait_until(team, 24)
    assert orders["ann"] != orders["bob"]
    assert sorted(orders["ann"]) == sorted(orders["bob"])
    assert status(ann) == "12 of 12 rated"
    ann.locator("#done", has_text="your ratings are on the server").wait_for()
    by_rater = {name: [line for line in team.ratings() if line["rater"] == name] for name in ("ann", "bob")}
    assert [line["scores"]["overall"] for line in by_rater["ann"]] == [1 + number % 5 for number in range(12)]
    assert {line["scores"]["overall"] for line in by_rater["bob"]} == {5}
    assert "bob" not in ann.content()
    assert said == []
    assert set(asked) == {team.links["ann"] + "ratings"}
    assert ann.evaluate("window.hacked") is None
    assert ann.locator("img").count() == 0
    for page in (ann, bob):
        page.context.close()


def test_a_server_that_is_killed_between_ratings_loses_none(browser: Browser, team: Team) -> None:
    page = opened(browser, team.links["ann"])
    for _ in range(3):
        rate(page, 4)
    wait_until(team, 3)
    page.locator("#saved", has_text=re.compile("^Saved$")).wait_for()
    team.kill()
    for _ in range(2):
        rate(page, 2)
    alert = page.get_by_role("alert")
    page.get_by_text("2 ratings not saved yet:").wait_for()
    assert "2 ratings not saved yet: the server cannot be reached; trying again." in alert.inner_text()
    assert status(page) == "6 of 12, 5 rated"  # one goes on
    team.start("--form", "form.toml")
    wait_until(team, 5)
    alert.wait_for(state="hidden")
    page.locator("#saved", has_text=re.compile("^Saved$")).wait_for()
    page.reload()
    assert status(page) == "6 of 12, 5 rated"
    assert [line["scores"]["overall"] for line in team.ratings()] == [4, 4, 4, 2, 2]
    page.context.close()


def test_nobody_is_thanked_before_everything_is_saved(browser: Browser, team: Team) -> None:
    """The server dies after one rating of twelve, and the rater goes on to the end."""
    page = opened(browser, team.links["ann"])
    rate(page, 1)
    wait_until(team, 1)
    team.kill()
    for _ in range(11):
        rate(page, 2)
    page.locator("#done", has_text="All are rated, but 11 ratings not saved yet.").wait_for()
    assert "Thank you" not in page.locator("main").inner_text()
    page.locator("#saved", has_text=re.compile("^11 ratings not saved yet$")).wait_for()
    with page.expect_download() as download:
        page.get_by_role("button", name="Download your ratings").click()
    lines = [json.loads(line) for line in download.value.path().read_text("utf-8").splitlines()]
    assert [line["scores"]["overall"] for line in lines] == [1, *[2] * 11]
    assert len(team.ratings()) == 1
    team.start("--form", "form.toml")
    page.get_by_role("button", name="Try again now").click()
    page.get_by_text("your ratings are on the server. Thank you.").wait_for()
    page.get_by_role("alert").wait_for(state="hidden")
    assert [line["scores"]["overall"] for line in team.ratings()] == [1, *[2] * 11]
    assert page.evaluate("Object.keys(localStorage).filter(each => each.includes('unsent'))") == []
    page.context.close()


def test_a_page_that_is_closed_sends_the_rest_when_it_is_opened_again(browser: Browser, team: Team) -> None:
    page = opened(browser, team.links["ann"])
    rate(page, 5)
    wait_until(team, 1)
    team.kill()
    for _ in range(3):
        rate(page, 3)
    page.get_by_text("3 ratings not saved yet:").wait_for()
    context = page.context
    page.close(run_before_unload=False)
    team.start("--form", "form.toml")
    assert len(team.ratings()) == 1
    page = context.new_page()
    page.goto(team.links["ann"])
    assert status(page) == "5 of 12, 4 rated"
    wait_until(team, 4)
    page.locator("#saved", has_text=re.compile("^Saved$")).wait_for()
    assert [line["scores"]["overall"] for line in team.ratings()] == [5, 3, 3, 3]
    context.close()


def answer(route: Route, statuses: dict[int, int]) -> None:
    """Answer for the server to ratings of some values."""
    status = statuses.get(json.loads(route.request.post_data or "")["scores"]["overall"])
    if status is None:
        route.continue_()
    else:
        route.fulfill(status=status, body="<p>hello</p>")


def test_a_rating_that_is_refused_does_not_hold_up_the_others(browser: Browser, team: Team) -> None:
    page = opened(browser, team.links["ann"])
    statuses = {1: 400}
    page.route("**/ratings", lambda route: answer(route, statuses))
    for value in (3, 1, *[4] * 10):
        rate(page, value)
    page.get_by_text("but the server does not have all of your ratings").wait_for()
    assert len(team.ratings()) == 11
    page.get_by_role("alert").filter(has_text="The server refused your rating of row 2.").wait_for()
    assert "Thank you" not in page.locator("main").inner_text()
    page.reload()  # it is sent once more, and refused once more
    page.get_by_text("The server refused your rating of row 2.").wait_for()
    assert len(team.ratings()) == 11
    statuses.clear()
    page.reload()
    page.get_by_text("your ratings are on the server. Thank you.").wait_for()
    assert sorted(line["scores"]["overall"] for line in team.ratings()) == [1, 3, *[4] * 10]
    page.context.close()


def test_only_an_acknowledgment_is_one(browser: Browser, team: Team) -> None:
    """A proxy that answers for the server with a page of its own has saved nothing; one failure holds up no other."""
    page = browser.new_context().new_page()
    page.clock.install()
    page.goto(team.links["ann"])
    page.keyboard.press("Enter")
    statuses = {1: 200, 2: 404, 3: 502}
    page.route("**/ratings", lambda route: answer(route, statuses))
    for value in (1, 2, 3, 4, 5):
        rate(page, value)
    unsaved = page.get_by_text("3 ratings not saved yet:")
    for _ in range(200):
        if unsaved.is_visible():
            break
        page.clock.fast_forward("00:10")  # the page waits longer and longer between its tries
        page.wait_for_timeout(20)
    unsaved.wait_for()
    assert {line["scores"]["overall"] for line in team.ratings()} == {4, 5}
    statuses.clear()
    page.clock.fast_forward("02:00")
    page.locator("#saved", has_text=re.compile("^Saved$")).wait_for()
    assert len(team.ratings()) == 5
    page.context.close()


def test_a_downloaded_file_is_imported_in_another_browser(browser: Browser, team: Team, tmp_path: Path) -> None:
    """So nothing is lost where the server comes back when the first browser is gone."""
    page = opened(browser, team.links["ann"])
    team.kill()
    for _ in range(12):
        rate(page, 3)
    assert "left" not in status(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download your ratings").click()
    download.value.save_as(tmp_path / "ratings.jsonl")
    page.context.close()
    team.start("--form", "form.toml")
    other = opened(browser, team.links["ann"])
    other.get_by_role("button", name="Pause").click()
    assert other.get_by_role("button", name="Another rater").count() == 0
    other.get_by_label("Import a file of yours:").set_input_files(tmp_path / "ratings.jsonl")
    other.get_by_text("your ratings are on the server. Thank you.").wait_for()
    assert [line["scores"]["overall"] for line in team.ratings()] == [3] * 12
    other.context.close()


def test_without_storage_the_page_says_so(browser: Browser, team: Team) -> None:
    page = browser.new_context().new_page()
    page.add_init_script("Storage.prototype.setItem = () => { throw new Error('full') }")
    page.goto(team.links["ann"])
    page.keyboard.press("Enter")
    rate(page, 4)
    wait_until(team, 1)
    team.kill()
    rate(page, 2)
    page.get_by_text("This browser stores nothing: leave this page open.").wait_for()
    team.start("--form", "form.toml")
    page.locator("#saved", has_text=re.compile("^Saved$")).wait_for()
    assert len(team.ratings()) == 2
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_where_something_is_not_saved(browser: Browser, team: Team, scheme: str) -> None:
    page = opened(browser, team.links["ann"])
    page.emulate_media(color_scheme="dark" if scheme == "dark" else "light", reduced_motion="reduce")
    team.kill()
    rate(page, 4)
    page.get_by_role("alert").wait_for()
    assert violations(page) == {}
    page.context.close()


def test_undo_changes_what_the_server_has(browser: Browser, team: Team) -> None:
    page = opened(browser, team.links["bob"])
    first = rate(page, 1)
    wait_until(team, 1)
    page.keyboard.press("u")
    assert reply(page) == first
    with page.expect_response("**/ratings") as answer:
        rate(page, 3)
    assert answer.value.status == 204
    assert [json.dumps(line["scores"]) for line in team.ratings()] == ['{"overall": 3.0}']
    page.context.close()


def test_the_lead_watches_without_reloading(browser: Browser, team: Team) -> None:
    """Nothing at first; then who is where, a histogram per rater, and disputed rows as links to their conversations."""
    page = browser.new_context(viewport={"width": 390, "height": 800}).new_page()
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(team.lead)
    assert page.locator("tbody tr").count() == 2
    assert page.get_by_text("not started").count() == 2
    ann, bob = (opened(browser, team.links[name]) for name in ("ann", "bob"))
    for number in range(12):
        rate(ann, 1 + number % 5)
        if number < 7:
            rate(bob, 5)
    wait_until(team, 19)
    for progress in ("12 of 12", "7 of 12"):
        page.get_by_text(progress).wait_for(timeout=15_000)
    by_rater = {line["id"]: line["scores"]["overall"] for line in team.ratings() if line["rater"] == "ann"}
    both = [line["id"] for line in team.ratings() if line["rater"] == "bob"]
    far = [row for row in both if by_rater[row] <= 3]
    rows = page.locator(".disputed details")
    assert {row.removeprefix("row-") for row in rows.evaluate_all("all => all.map(({id}) => id)")} == set(far)
    assert page.get_by_role("img", name="overall: 1: 0, 2: 0, 3: 0, 4: 0, 5: 7").count() == 1
    assert f"{len(far)} rows are disputed" in page.locator("h1").inner_text()
    rows.first.locator("summary").click()
    assert HOSTILE in rows.first.inner_text()
    page.goto(f"{team.lead}#{rows.last.get_attribute('id')}")
    page.reload()
    page.locator(".disputed details[open]").first.wait_for()
    assert page.locator(".disputed details[open]").count() == 1
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert page.evaluate("window.hacked") is None
    assert violations(page) == {}
    assert said == []
    for each in (page, ann, bob):
        each.context.close()
