"""`dialeval rate` as a user meets it."""

from __future__ import annotations

import http.client
import json
import random
import shutil
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
import time
import urllib.request
from contextlib import closing, suppress
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval.human import store
from dialeval.human.server import RatingServer
from dialeval.human.store import RatingStore, read_stored_lines
from human.rated_runs import run_of


@pytest.fixture(autouse=True)
def sample(dialeval: Dialeval, tmp_path: Path) -> None:
    run_of(dialogues=30)[0].save(tmp_path / "run")
    assert dialeval("sample", "run", "-n", "20", "-o", "to-rate").returncode == 0


def test_a_page_is_written(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("rate", "page", "to-rate", "--save", "rate.html")
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    assert "20 to rate" in done.stderr
    assert "says" in (tmp_path / "rate.html").read_text()
    (tmp_path / "form.toml").write_text("compare = true\n")
    done = dialeval("rate", "page", "to-rate", "--form", "form.toml", "--save", "rate.html")
    assert "10 to rate" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["to-rate"], "--save"),
        (["run", "--save", "rate.html"], "sample.json"),
        (["to-rate", "--save", "to-rate/rows.jsonl"], "is an input"),
        (["to-rate", "--form", "form.toml", "--save", "form.toml"], "is an input"),
        (["to-rate", "--form", "form.toml", "--save", "rate.html"], "form.toml: not TOML"),
    ],
)
def test_what_is_refused(dialeval: Dialeval, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "form.toml").write_text("=")
    done = dialeval("rate", "page", *arguments)
    assert done.returncode == 2
    assert words in done.stderr
    assert not (tmp_path / "rate.html").exists()
    assert (tmp_path / "form.toml").read_text() == "="


def rated(tmp_path: Path, rater: str, shift: int) -> None:
    rows = [json.loads(line) for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    lines = [
        {"id": row["id"], "rater": rater, "scores": {"overall": 1 + (row["row"] + shift * (n % 3)) % 5}}
        for n, row in enumerate(rows)
    ]
    (tmp_path / f"{rater}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))


def test_ratings_are_merged_and_go_on_to_meta_and_estimate(dialeval: Dialeval, tmp_path: Path) -> None:
    rated(tmp_path, "ann", 0)
    rated(tmp_path, "bob", 1)
    done = dialeval(
        *("rate", "merge", "ann.jsonl", "bob.jsonl", "--sample", "to-rate"),
        *("--save", "ratings.jsonl", "--adjudicate", "disputed.html", "--most", "3"),
    )
    assert done.returncode == 0, done.stderr
    assert "40 ratings of 20 rows by 2 raters." in done.stdout
    page = (tmp_path / "disputed.html").read_text()
    assert page.count('"responses"') == 3
    done = dialeval(
        "agreement", "ratings.jsonl", "-m", "length", "--human", "overall", "--resamples", "20", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    done = dialeval("estimate", "run", "--human", "ratings.jsonl", "--sample", "to-rate", "--judge", "judge")
    assert done.returncode == 0, done.stderr
    both = dialeval("estimate", "run", "--human", "ann.jsonl", "--human", "bob.jsonl", "--sample", "to-rate")
    one = dialeval("estimate", "run", "--human", "ratings.jsonl", "--sample", "to-rate")
    assert both.stdout == one.stdout


def test_merge_says_what_is_wrong(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "ann.jsonl").write_text('{"id": "x"}\n{"rater": 1}\n')
    done = dialeval("rate", "merge", "ann.jsonl", "--sample", "to-rate", "--save", "ratings.jsonl")
    assert done.returncode == 2
    assert "ann.jsonl:1" in done.stderr
    assert "ann.jsonl:2" in done.stderr
    assert not (tmp_path / "ratings.jsonl").exists()
    rated(tmp_path, "ann", 0)
    assert dialeval("rate", "merge", "ann.jsonl", "--save", "ann.jsonl").returncode == 2
    assert dialeval("rate", "merge", "ann.jsonl", "--adjudicate", "page.html").returncode == 2
    done = dialeval("rate", "merge", "ann.jsonl", "--sample", "to-rate", "--adjudicate", "page.html", "-f", "json")
    assert done.returncode == 0, done.stderr
    assert "nothing to adjudicate" in done.stderr
    assert not (tmp_path / "page.html").exists()


def test_second_answers_are_the_same_for_merge_and_estimate(dialeval: Dialeval, tmp_path: Path) -> None:
    rated(tmp_path, "ann", 0)
    once = dialeval("estimate", "run", "--human", "ann.jsonl", "--sample", "to-rate")
    lines = [json.loads(line) for line in (tmp_path / "ann.jsonl").read_text().splitlines()]
    second = [{**line, "again": True, "scores": {"overall": 1 + n % 5}} for n, line in enumerate(lines)]
    (tmp_path / "twice.jsonl").write_text("".join(json.dumps(line) + "\n" for line in (*lines, *second)))
    done = dialeval("rate", "merge", "twice.jsonl", "--sample", "to-rate", "--save", "merged.jsonl")
    assert done.returncode == 0, done.stderr
    for file in ("twice.jsonl", "merged.jsonl"):
        assert dialeval("estimate", "run", "--human", file, "--sample", "to-rate").stdout == once.stdout


def test_merge_refuses_what_is_no_answer(dialeval: Dialeval, tmp_path: Path) -> None:
    rated(tmp_path, "ann", 0)
    lines = [json.loads(line) for line in (tmp_path / "ann.jsonl").read_text().splitlines()]
    lines[6]["scores"]["overall"] = 500
    (tmp_path / "ann.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    done = dialeval("rate", "merge", "ann.jsonl", "--sample", "to-rate", "--save", "ratings.jsonl")
    assert done.returncode == 2
    assert "ann.jsonl:7: overall is 500, which is none of its answers" in done.stderr
    assert not (tmp_path / "ratings.jsonl").exists()
    (tmp_path / "form.toml").write_text('[[quality]]\nname = "overall"\n[[quality]]\nname = "polite"\n')
    done = dialeval("rate", "merge", "ann.jsonl", "--sample", "to-rate", "--form", "form.toml")
    assert "ann.jsonl:1: polite has no answer" in done.stderr
    assert dialeval("rate", "merge", "ann.jsonl", "--any-scores").returncode == 0
    assert dialeval("rate", "merge", "ann.jsonl", "--any-scores", "--form", "form.toml").returncode == 2


class Served:
    """`dialeval rate serve` in a process of its own, as a user runs it."""

    def __init__(self, folder: Path, *arguments: str, largest_file: int | None = None) -> None:
        code = "from dialeval.cli.main import main; main()"
        if largest_file is not None:  # then writing fails as on a full disk
            limited = "import resource, signal; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
            code = f"{limited}resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file})); {code}"
        program = [sys.executable, "-c", code, "rate", "serve", "to-rate"]
        self.process = subprocess.Popen(
            [*program, *arguments], cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        self.links: dict[str, str] = {}

    def wait_for(self, *raters: str) -> None:
        assert self.process.stdout is not None
        while not self.links.keys() >= set(raters):
            name, _, link = self.process.stdout.readline().partition(" ")
            assert link, self.process.communicate()[1]
            self.links[name] = link.strip()

    def rate(self, rater: str, identity: str, value: int) -> int:
        body = json.dumps({"id": identity, "scores": {"overall": value}}).encode()
        request = urllib.request.Request(
            f"{self.links[rater]}ratings", body, {"Content-Type": "application/json"}, method="POST"
        )
        with urllib.request.urlopen(request, timeout=120) as answer:
            return int(answer.status)


def test_a_killed_server_has_lost_no_rating_that_it_took(dialeval: Dialeval, tmp_path: Path) -> None:
    ids = [json.loads(line)["id"] for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    taken: dict[tuple[str, str], int] = {}
    links = {}
    for kill in range(2):
        served = Served(tmp_path, *(["--raters", "ann,bob"] if not kill else []))
        served.wait_for("ann", "bob")
        links[kill] = served.links
        for number, identity in enumerate(ids[kill * 7 : kill * 7 + 7]):
            rater = "ann" if number % 2 else "bob"
            assert served.rate(rater, identity, 1 + number % 5) == 204
            taken[identity, rater] = 1 + number % 5
        served.process.kill()  # SIGKILL
        served.process.communicate()
    assert links[0] == links[1]
    done = dialeval(
        "rate", "merge", "to-rate/ratings.sqlite", "--sample", "to-rate", "--save", "ratings.jsonl", "-f", "json"
    )
    assert done.returncode == 0, done.stderr
    rows = [json.loads(line) for line in (tmp_path / "ratings.jsonl").read_text().splitlines()]
    assert {(row["id"], row["rater"]): row["scores"]["overall"] for row in rows} == taken


@pytest.mark.parametrize("kills", [4, pytest.param(300, marks=pytest.mark.slow)])
def test_kills_while_raters_send_lose_nothing(tmp_path: Path, kills: int) -> None:
    """What was acknowledged is there; what was under way may be. The next start has the same links."""
    ids = [json.loads(line)["id"] for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    rng = random.Random(1)
    possible: dict[tuple[str, str], set[int | None]] = {}
    """By rater and row: the last acknowledged value, None where there is none, and those sent since."""
    acknowledged = 0
    links: dict[str, str] = {}

    def send(rater: str, seed: int) -> None:
        nonlocal acknowledged
        own = random.Random(seed)
        with suppress(OSError, http.client.HTTPException):
            while True:
                key, value = (rater, own.choice(ids)), own.randint(1, 5)
                possible.setdefault(key, {None}).add(value)
                assert served.rate(*key, value) == 204
                possible[key] = {value}
                acknowledged += 1

    for kill in range(kills):
        served = Served(tmp_path, "--raters", "ann,bob")
        served.wait_for("ann", "bob")
        assert links in ({}, served.links)
        links = served.links
        threads = [threading.Thread(target=send, args=(rater, 2 * kill + n)) for n, rater in enumerate(links)]
        for thread in threads:
            thread.start()
        time.sleep(rng.random() * 0.3)
        served.process.kill()
        served.process.communicate()
        for thread in threads:
            thread.join()
        stored = {
            (line["rater"], line["id"]): line["scores"]["overall"]
            for _, line in read_stored_lines(tmp_path / "to-rate" / "ratings.sqlite")
        }
        assert {key: stored.get(key) for key in possible if stored.get(key) not in possible[key]} == {}
    assert acknowledged > 2 * kills


def test_ratings_are_merged_while_the_server_runs_and_from_a_copy(dialeval: Dialeval, tmp_path: Path) -> None:
    ids = [json.loads(line)["id"] for line in (tmp_path / "to-rate" / "rows.jsonl").read_text().splitlines()]
    served = Served(tmp_path, "--raters", "ann,bob")
    served.wait_for("ann", "bob")
    for number, identity in enumerate(ids[:7]):
        assert served.rate("ann", identity, 1 + number % 5) == 204
    done = dialeval("rate", "merge", "to-rate/ratings.sqlite", "--save", "merged.jsonl")
    assert done.returncode == 0, done.stderr
    shutil.copyfile(tmp_path / "to-rate" / "ratings.sqlite", tmp_path / "copy.sqlite")  # the file alone
    served.process.kill()
    served.process.communicate()
    rows = [json.loads(line) for line in (tmp_path / "merged.jsonl").read_text().splitlines()]
    assert [(row["id"], row["rater"], row["scores"]["overall"]) for row in rows] == [
        (identity, "ann", 1 + number % 5) for number, identity in enumerate(ids[:7])
    ]
    assert dialeval("rate", "merge", "copy.sqlite", "--save", "again.jsonl").returncode == 0
    assert (tmp_path / "again.jsonl").read_bytes() == (tmp_path / "merged.jsonl").read_bytes()
    for wrong in ("none.sqlite", "run/run.json", "to-rate"):
        done = dialeval("rate", "merge", wrong)
        assert (done.returncode, done.stdout) == (2, "")
    assert "is an input" in dialeval("rate", "merge", "copy.sqlite", "--save", "copy.sqlite").stderr


def test_a_port_that_is_taken_by_now_is_told(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RatingServer, "serve_forever", ends)
    first = dialeval("rate", "serve", "to-rate", "--raters", "ann")
    port = int(first.stdout.split(":")[2].partition("/")[0])
    assert port > 1023
    assert dialeval("rate", "serve", "to-rate").stdout == first.stdout
    with socket.create_server(("127.0.0.1", port)):
        taken = dialeval("rate", "serve", "to-rate")
        other = dialeval("rate", "serve", "to-rate", "--port", "0")
    assert taken.returncode == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in taken.stderr
    assert "--port 0: any free one" in taken.stderr
    assert other.returncode == 0
    assert other.stdout != first.stdout
    assert int(other.stdout.split(":")[2].partition("/")[0]) > 1023


def test_a_database_of_others_is_not_touched(dialeval: Dialeval, tmp_path: Path) -> None:
    path = tmp_path / "other.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE accounts (name)")
        connection.commit()
    before = path.read_bytes()
    done = dialeval("rate", "serve", "to-rate", "--db", "other.sqlite", "--raters", "ann")
    assert done.returncode == 2
    assert "other.sqlite: is not a database of ratings" in done.stderr
    assert path.read_bytes() == before
    assert not list(tmp_path.glob("other.sqlite-*"))


def test_a_locked_database_is_named(dialeval: Dialeval, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    RatingStore(tmp_path / "r.sqlite", "d").close()
    monkeypatch.setattr(store, "PATIENCE", 0.05)
    with closing(sqlite3.connect(tmp_path / "r.sqlite", isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        for arguments in (["serve", "to-rate", "--db", "r.sqlite", "--raters", "a"], ["merge", "r.sqlite"]):
            done = dialeval("rate", *arguments)
            assert done.returncode == 2
            assert "r.sqlite: cannot be used (database is locked); another program uses it" in done.stderr


def test_a_full_disk_at_the_start_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    served = Served(tmp_path, "--db", "r.sqlite", "--raters", "ann", largest_file=8192)
    out, errors = served.process.communicate(timeout=120)
    assert (served.process.returncode, out) == (2, "")
    assert "r.sqlite: cannot be used" in errors
    assert not list(tmp_path.glob("r.sqlite*"))


def test_control_c_ends_the_server_well(tmp_path: Path) -> None:
    served = Served(tmp_path, "--raters", "ann,bob,cy", "--per-row", "2")
    served.wait_for("ann", "bob", "cy")
    assert all(link.startswith("http://127.0.0.1:") for link in served.links.values())
    served.process.send_signal(signal.SIGINT)
    _, errors = served.process.communicate(timeout=120)
    assert served.process.returncode == 0
    assert "ann: 0 of 13 rated" in errors or "ann: 0 of 14 rated" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ([], "--raters"),
        (["--db", "r.txt", "--raters", "a"], ".sqlite"),
        (["--db", "r.sqlite", "--raters", "a", "--per-row", "2"], "there are 1"),
        (["--db", "r.sqlite", "--raters", "a", "--host", "0.0.0.0"], "not an address for a link"),
        (["--db", "r.sqlite", "--raters", "a" * 65], "64 characters"),
        (["--db", "bad.sqlite", "--raters", "a"], "bad.sqlite"),
    ],
)
def test_what_cannot_be_served(dialeval: Dialeval, tmp_path: Path, arguments: list[str], words: str) -> None:
    (tmp_path / "bad.sqlite").write_text("no database, though it is called one" * 100)
    done = dialeval("rate", "serve", "to-rate", *arguments)
    assert done.returncode == 2
    assert words in done.stderr


def test_a_server_that_others_reach_is_warned_of(dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch) -> None:
    def ends(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(RatingServer, "serve_forever", ends)
    arguments = ["rate", "serve", "to-rate", "--db", "r.sqlite", "--raters", "ann"]
    alone = dialeval(*arguments)
    assert (alone.returncode, "warning" in alone.stderr) == (0, False)
    monkeypatch.setattr("dialeval.human.server.is_loopback", lambda _: False)
    reached = dialeval(*arguments)
    assert reached.returncode == 0
    assert "warning: whoever reaches this address and has a link can rate; nothing is encrypted" in reached.stderr
