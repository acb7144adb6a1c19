"""`dialeval demo`."""

from __future__ import annotations

import json
import socket
from pathlib import Path

import pytest

import dialeval as package
from cli.conftest import Dialeval


def test_demo_writes_a_report_and_prints_its_path_last(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("demo")
    assert done.returncode == 0, done.stderr
    report = Path(done.stdout.splitlines()[-1])
    assert report == tmp_path / "dialeval-demo" / "report.html"
    assert report.read_text(encoding="utf-8").lower().startswith("<!doctype html>")
    run = json.loads((tmp_path / "dialeval-demo" / "run.json").read_text())
    assert len(run["systems"]) == 3
    assert package.load(tmp_path / "dialeval-demo")


def test_nothing_reaches_for_the_network(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    from click.testing import CliRunner

    from dialeval.cli.main import dialeval_command

    def refuse(*arguments: object, **more: object) -> None:
        raise AssertionError("a socket was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(dialeval_command, ["demo"], standalone_mode=False)
    assert done.exception is None
