"""The page about comparing works as it shows, command after command."""

from __future__ import annotations

import json
import re
import shlex
import sys
from pathlib import Path

import pytest

from dialeval import sample
from dialeval.cli.main import main

PAGE = (Path(__file__).parent.parent.parent / "docs" / "comparing.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)
COMMANDS = [line for kind, block in BLOCKS if not kind for line in block.splitlines()]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the logs of two systems that answered the same users."""
    here, made = sample.folder(), tmp_path_factory.mktemp("tutorial")
    (made / "logs").mkdir()
    contexts, references = ((here / f"{name}.txt").read_text().splitlines() for name in ("contexts", "references"))
    for system, source in {"main": "careful", "branch": "careful"}.items():
        responses = (here / "responses" / f"{source}.txt").read_text().splitlines()
        rows = [
            {
                "dialog_id": f"d{n // 3}",
                "turn": n % 3,
                "system": system,
                "topic": ("tea", "library")[n // 3 % 2],
                "context": [c],
                "response": r,
                "reference": t,
            }
            for n, (c, r, t) in enumerate(zip(contexts, responses, references, strict=True))
        ]
        if system == "branch":
            rows[7]["response"] = "yes , of course ."
        (made / "logs" / f"{system}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return made


def ran(command: str, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr(sys, "argv", shlex.split(command))
    monkeypatch.setenv("COLUMNS", "120")
    with pytest.raises(SystemExit) as end:
        main()
    return int(end.value.code or 0)


def test_commands_python_and_table(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(folder)
    assert ran("dialeval demo", monkeypatch) == 0
    assert len(COMMANDS) > 8
    for command in COMMANDS:
        capsys.readouterr()
        assert ran(command, monkeypatch) == 0, f"{command}: {capsys.readouterr().err}"
        if "dialeval-demo" in command:
            (table,) = (block for kind, block in BLOCKS if kind == "text")
            assert capsys.readouterr().out.startswith(table)
    assert (folder / "report.html").exists()
    assert r"\toprule" in (folder / "table.tex").read_text()
    exec("".join(block for kind, block in BLOCKS if kind == "python"), {})
    assert (folder / "bleu-2.svg").exists()
    assert "branch distinct-2" in capsys.readouterr().out
