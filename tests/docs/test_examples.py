"""What the documents show works as they show it."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import dialeval
from dialeval import sample

ROOT = Path(__file__).parent.parent.parent


def commands() -> list[str]:
    """The commands in the plain code blocks of the README, without the remarks behind them."""
    found, inside = [], ""
    for line in (ROOT / "README.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = "" if inside else line
        elif inside == "```" and line.startswith("dialeval "):
            found.append(line.split("  ")[0].strip())
    return found


COMMANDS = commands()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with the files that the README speaks of."""
    for name in ("damd", "ubar", "new", "references", "contexts", "train", "outputs/x", "outputs/y"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / f"{name}.txt").write_text("hello there my friend\ngoodbye now\n")
    (tmp_path / "groups.json").write_text('{"hi": {"1": ["hello"], "2": ["good day"]}, "bye": {"1": ["so long"]}}')
    shutil.copytree(sample.folder() / "breakdown", tmp_path, dirs_exist_ok=True)
    (tmp_path / "vectors.txt").write_text("hello 1 0\nthere 0 1\ngoodbye 1 1\n")
    row = '{"dialog_id": "d1", "system": "damd", "context": ["hi"], "response": "hello there", "reference": "hello"}\n'
    (tmp_path / "rows.jsonl").write_text(row)
    (tmp_path / "outputs" / "z.jsonl").write_text(row.replace("damd", "z") * 2)
    rated = [
        {
            "dialog_id": f"d{n // 2}",
            "system": "xy"[n % 2],
            "response": "hello " * (n % 4),
            "reference": "hello",
            "scores": n % 5,
        }
        for n in range(240)
    ]
    (tmp_path / "ratings.jsonl").write_text("".join(json.dumps(each) + "\n" for each in rated))
    run = dialeval.evaluate(tmp_path / "ratings.jsonl", metrics="length,rouge-l")
    run.save(tmp_path / "results")
    drawn = dialeval.draw(run, 60)
    drawn.save(tmp_path / "to-rate")
    lines = [{"id": row.id, "rater": "ann", "scores": {"overall": row.row % 5}} for row in drawn.rows]
    (tmp_path / "rated.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    pairs = [{"a": "x", "b": "y", "better": ("a", "b", "tie")[n % 3]} for n in range(9)]
    (tmp_path / "pairs.jsonl").write_text("".join(json.dumps(pair) + "\n" for pair in pairs))
    (tmp_path / "logs").mkdir()
    for month in ("2026-01", "2026-02"):
        (tmp_path / "logs" / f"{month}.jsonl").write_text(row * 3)
    return tmp_path


def test_there_are_commands_to_try() -> None:
    assert len(COMMANDS) > 5


@pytest.mark.parametrize("command", COMMANDS)
def test_commands_of_the_readme(folder: Path, command: str) -> None:
    if " data add " in command:
        pytest.skip("downloads a public file of a gigabyte")
    if "-o results/" in command:
        shutil.rmtree(folder / "results")  # a run of other files, which is not replaced unasked
    program = f'{sys.executable} -c "from dialeval.cli.main import main; main()"'
    done = subprocess.run(
        command.replace("dialeval", program, 1), shell=True, cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


def test_python_of_the_readme(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL)
    monkeypatch.chdir(folder)
    shutil.rmtree("results")  # a run of other files, which is not replaced unasked
    exec(code, {})
    assert (folder / "report.html").exists()


def test_the_metric_of_the_contributing_page(tmp_path: Path) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "questions.py").write_text(code)
    program = (
        "import questions, dialeval\n"
        "from dialeval.metrics.registry import register\n"
        "register(questions.Questions)\n"
        "print(dialeval.evaluate(['what ?', 'yes'], metrics='questions')['system']['questions'].mean)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "0.5"


def test_the_version_is_written_once() -> None:
    assert f"## {dialeval.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
