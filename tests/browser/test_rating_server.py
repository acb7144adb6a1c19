"""The rating server with real browsers: two raters at once, and a server that is killed between ratings."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import dialeval
from browser.test_rating_page import reply, status

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.browser

HOSTILE = "<img src=x onerror='window.hacked = 1'></script><script>window.hacked = 2</script>"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rows = [
        {"dialog_id": f"d{n}", "turn": 0, "response": f"reply {n} {HOSTILE}", "context": [HOSTILE]} for n in range(12)
    ]
    run = dialeval.evaluate({"main": rows}, metrics="length", threads=1)
    dialeval.draw(run, 12).save(tmp_path / "to-rate")
    return tmp_path


class Team:
    """A server in a process of its own, which may be killed and started again at the same port."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.links: dict[str, str] = {}

    def start(self, *more: str) -> None:
        program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "rate", "serve", "to-rate"]
        command = [*program, "--db", "ratings.sqlite", "--port", str(self.port), *more]
        self.process = subprocess.Popen(command, cwd=self.folder, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        for _ in range(2):
            name, link = self.process.stdout.readline().split()
            self.links[name] = link
            self.port = int(link.split(":")[2].partition("/")[0])

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()

    def ratings(self) -> list[dict[str, Any]]:
        from dialeval.analysis.rating_store import stored_lines

        return [line for _, line in stored_lines(self.folder / "ratings.sqlite")]  # type: ignore[misc]


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
    return page


def rate(page: Page, value: int) -> str:
    said = reply(page)
    page.keyboard.press(str(value))
    page.keyboard.press("Enter")
    return said


def wait_until(team: Team, number: int) -> None:
    end = time.monotonic() + 20
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
    assert "12 of 12 rated" in status(ann)
    assert ann.get_by_text("your ratings are on the server").is_visible()
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
    team.kill()
    for _ in range(2):
        rate(page, 2)
    alert = page.get_by_role("alert")
    alert.wait_for()
    assert "not saved yet" in alert.inner_text()
    team.start("--form", "form.toml")
    wait_until(team, 5)
    alert.wait_for(state="hidden")
    page.reload()
    assert status(page).startswith("Row 6 of 12. 5 of 12 rated")
    assert [line["scores"]["overall"] for line in team.ratings()] == [4, 4, 4, 2, 2]
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
