"""The command as a user runs it."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.cli.main import main

Dialeval = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def dialeval(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Dialeval:
    """Run `dialeval ARGUMENTS` in an empty folder; in this process, since there are many."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", ["dialeval", *arguments])
        with pytest.raises(SystemExit) as end:
            main()
        out, err = capfd.readouterr()
        return subprocess.CompletedProcess(arguments, int(end.value.code or 0), out, err)

    return run
