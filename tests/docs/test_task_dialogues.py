"""The page about task dialogues works as it shows."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dialeval import sample
from dialeval.resources.ontology import load_ontology

PAGE = (Path(__file__).parent.parent.parent / "docs" / "task-dialogues.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^dialeval .*$", PAGE, re.MULTILINE)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("town", "frames"):
        shutil.copytree(sample.folder() / name, tmp_path / name)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_commands(folder: Path, command: str) -> None:
    program = [sys.executable, "-c", "from dialeval.cli.main import main; main()", *command.split()[1:]]
    done = subprocess.run(program, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_python(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
    monkeypatch.chdir(folder)
    exec(code, {})
    assert "wrong venue" in capsys.readouterr().out


def test_the_ontology(folder: Path) -> None:
    path = folder / "ontology.toml"
    path.write_text("\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    assert set(load_ontology(path).domains) == {"inn", "ferry"}
