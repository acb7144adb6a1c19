"""The command itself: help, version, and how a process ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
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


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one two three\nfour\n")
    command = f"{sys.executable} -c 'from dialeval.cli.main import main; main()' score a.txt -f json | true"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_control_c_ends_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", str(pipe)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.strip() == "dialeval: interrupted"
