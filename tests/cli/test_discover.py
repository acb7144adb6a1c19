"""The commands `discover`, `survival` and `users` on the logs of users: chat logs, saved runs, every format."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from analysis.test_discovery import rows_of
from conftest import Dialeval


@pytest.fixture
def logs(tmp_path: Path, dialeval: Dialeval) -> Path:
    for name, rows in {"old": rows_of(1, effect=0), "new": rows_of(1, effect=1.5, system=1)}.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    done = dialeval("score", "old.jsonl", "new.jsonl", "-m", "scores", "-o", "run")
    assert done.returncode == 0, done.stderr
    return tmp_path


def test_the_commands_say_what_was_found(dialeval: Dialeval, logs: Path) -> None:
    done = dialeval("discover", "run")
    assert done.returncode == 0, done.stderr
    text = " ".join(done.stdout.split())
    assert "new is worse against old in" in text
    assert "dialogues with: refund" in text
    done = dialeval("discover", "run", "-f", "json")
    assert json.loads(done.stdout)["groups"][0]["name"].startswith("refund")
    done = dialeval("survival", "run", "-m", "score:quality", "--below", "-1", "-f", "md")
    assert "new does not clearly differ from old" in done.stdout
    done = dialeval("users", "old.jsonl", "new.jsonl", "-f", "csv")
    assert done.stdout.startswith("name,real,simulated")
    assert len(done.stdout.splitlines()) == 12
    assert "cannot be told apart" in " ".join(dialeval("users", "run", "old.jsonl").stdout.split())


def test_what_is_refused_says_why(dialeval: Dialeval, logs: Path) -> None:
    done = dialeval("survival", "run", "-m", "score:quality")
    assert done.returncode == 2
    assert "--below" in done.stderr
