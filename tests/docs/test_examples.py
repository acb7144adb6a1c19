"""The metric that CONTRIBUTING.md adds is one, modules that pages name exist, and version and citation agree."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

import dialeval

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

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


@pytest.mark.parametrize("page", ["CONTRIBUTING.md", "SECURITY.md", "docs/architecture.md", "docs/own-task.md"])
def test_modules_that_a_page_names_exist(page: str) -> None:
    """Paths are given from the package or from the root of the repository; `test_security` looks for tests."""
    text = (ROOT / page).read_text(encoding="utf-8")
    named = set(re.findall(r"`(?!tests/)([a-z_]+/[\w/-]+\.(?:py|js|toml|md))[`:]", text))
    missing = [path for path in named if not any((ROOT / base / path).exists() for base in ("", "src/dialeval"))]
    assert not missing


def test_the_version_is_written_once() -> None:
    assert f"## {dialeval.__version__}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")


def test_the_citation_is_that_of_the_package_and_of_the_page() -> None:
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    page = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
    assert {"cff-version", "message", "title", "authors"} <= set(cited)  # what the format asks for
    assert cited["version"] == dialeval.__version__
    assert cited["license"] == project["license"]
    assert cited["authors"] == project["authors"]
    assert cited["abstract"] == project["description"]
    assert cited.get("repository-code") == project["urls"].get("Source")
    assert f"title  = {{{cited['title']}}}" in page
    assert f"author = {{{{{cited['authors'][0]['name']}}}}}" in page
    assert f"note   = {{Version {dialeval.__version__}}}" in page
