"""`dialeval demo`."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval


def test_demo_writes_a_report_and_prints_its_path_last(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("demo")
    assert done.returncode == 0, done.stderr
    lines = (done.stdout + done.stderr).splitlines()
    assert len(lines) <= 24, "one screen"
    assert max(map(len, lines[:-1])) <= 80
    assert lines[0] == "▼ v2 is worse than v1"
    assert lines[-2].startswith("Every dialogue with the replies")
    report = Path(done.stdout.splitlines()[-1])
    assert report == tmp_path / "dialeval-demo" / "report.html"
    assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    run = json.loads((tmp_path / "dialeval-demo" / "run.json").read_text())
    assert list(run["systems"]) == ["v1", "v2"]
    assert package.load(tmp_path / "dialeval-demo")


def test_all_has_every_type_of_evaluation(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("demo", "--all")
    assert done.returncode == 0, done.stderr
    for title in ("Responses", "Sampled answers", "Task dialogues", "Breakdown detection"):
        assert title in done.stdout.splitlines()
        assert package.load(tmp_path / "dialeval-demo" / title.lower().replace(" ", "-"))


def test_the_report_is_opened_and_nothing_reaches_for_the_network(
    dialeval: Dialeval, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("a socket was opened")

    opened: list[str] = []
    monkeypatch.setattr("click.launch", opened.append)
    monkeypatch.setattr(socket.socket, "connect", refuse)
    done = dialeval("demo", "-o", "there", "--open")
    assert done.returncode == 0, done.stderr
    assert opened == [Path(done.stdout.splitlines()[-1]).as_uri()]
