"""The command as a user runs it: a process of its own."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Dialeval = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def dialeval(tmp_path: Path) -> Dialeval:
    """Run `dialeval ARGUMENTS` in an empty folder."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", *arguments]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, encoding="utf-8")

    return run
