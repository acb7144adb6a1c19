"""The other commands: help, metrics, validate, demo."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

import dialeval as package
from cli.conftest import Dialeval
from dialeval.cli.main import _COMMANDS


@pytest.mark.parametrize("command", list(_COMMANDS))
def test_every_command_has_help_with_an_example(dialeval: Dialeval, command: str) -> None:
    done = dialeval(command, "--help")
    assert done.returncode == 0
    assert "Example" in done.stdout
    assert f"dialeval {command}" in done.stdout


def test_help_and_version(dialeval: Dialeval) -> None:
    listing = dialeval("-h").stdout
    assert all(command in listing for command in _COMMANDS)
    assert dialeval("--version").stdout == f"dialeval, version {package.__version__}\n"
    done = dialeval("scroe")
    assert done.returncode == 2
    assert "scroe" in done.stderr


@pytest.mark.parametrize("command", ["metrics", "--help"])
def test_a_reader_that_has_gone_is_no_failed_gate(command: str) -> None:
    """As after `dialeval ... | head`: the status of a process that a closed pipe ended, and not a word."""
    reader, writer = os.pipe()
    os.close(reader)
    program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", command]
    done = subprocess.run(program, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert (done.returncode, done.stderr) == (141, b"")


def test_metrics_lists_and_explains(dialeval: Dialeval) -> None:
    listing = dialeval("metrics").stdout
    assert all(name in listing for name in ("length", "distinct-1", "distinct-2"))
    explained = dialeval("metrics", "distinct-2").stdout
    assert all(word in explained for word in ("Li et al. 2016", "per = corpus", "Edge cases", "distinct-2|n:2"))
    done = dialeval("metrics", "distnct")
    assert done.returncode == 2
    assert "did you mean" in done.stderr


def test_validate_lists_every_fault_of_every_file(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a\nb\n")
    (tmp_path / "bad.txt").write_bytes(b"a\n\xff\nb\n\xfe\n")
    (tmp_path / "bad.jsonl").write_text('{"response": "a"}\n{"respons": "b"}\n{broken\n')
    done = dialeval("validate", "good.txt", "bad.txt", "bad.jsonl", "nowhere.txt")
    assert done.returncode == 2
    places = [line.split(": ")[0] for line in done.stdout.splitlines()]
    assert places == ["good.txt", "bad.txt:2", "bad.txt:4", "bad.jsonl:2", "bad.jsonl:3", "nowhere.txt"]
    assert dialeval("validate", "good.txt").returncode == 0


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
