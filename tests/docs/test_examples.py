"""The metric that CONTRIBUTING.md adds is one, and the version is written once."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import dialeval

ROOT = Path(__file__).parent.parent.parent


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
