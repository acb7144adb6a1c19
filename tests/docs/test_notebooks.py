"""The notebooks run without a network, and show what they store; the site has a page of each."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tools.notebooks import NOTEBOOKS, outputs_of

from tools.site import notebooks

TOOL = NOTEBOOKS.parents[1] / "tools" / "notebooks.py"
PATHS = sorted(NOTEBOOKS.glob("*.ipynb"))
NO_NETWORK = """\
import socket


def refuse(self, address):
    raise OSError(f"a notebook asked for {address}")


socket.socket.connect = socket.socket.connect_ex = refuse
"""


def run_sealed(path: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Execute a notebook into a folder, in a kernel that cannot connect to anything."""
    (folder / "sitecustomize.py").write_text(NO_NETWORK)
    found = os.pathsep.join(filter(None, (str(folder), os.environ.get("PYTHONPATH"))))
    command = [sys.executable, str(TOOL), str(path), str(folder / "done.ipynb")]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": found}, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_notebook_gives_the_outputs_that_it_stores(path: Path, tmp_path: Path) -> None:
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    pytest.importorskip("pandas")
    done = run_sealed(path, tmp_path)
    assert done.returncode == 0, done.stderr
    shown, stored = (outputs_of(json.loads(each.read_text("utf-8"))) for each in (tmp_path / "done.ipynb", path))
    assert shown == stored, "run `make notebooks`, and check the difference"
    assert (tmp_path / "report.html").stat().st_size > 10_000


def test_there_are_three() -> None:
    assert [path.stem for path in PATHS] == ["compare-chat-logs", "human-evaluation", "task-dialogues"]


@pytest.mark.parametrize("path", PATHS, ids=lambda path: path.stem)
def test_a_page_has_every_cell_and_output(path: Path) -> None:
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    text = dict(notebooks.pages())[f"notebooks/{path.stem}.md"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]
    assert text.count("```python\n") == len(code)
    assert all("".join(cell["source"]) in text for cell in code)
    html = [each for cell in code for each in cell["outputs"] if "text/html" in each.get("data", {})]
    assert text.count('<div class="notebook-output">') == len(html) > 2
    assert "<style scoped>" not in text
    assert f"[Download this notebook]({path.name})" in text
    assert text.startswith("# ")


def test_a_notebook_that_asks_for_a_network_fails(tmp_path: Path) -> None:
    """So that the test above means something."""
    pytest.importorskip("nbclient")
    pytest.importorskip("ipykernel")
    cell: dict[str, Any] = {"cell_type": "code", "id": "one", "metadata": {}, "outputs": [], "execution_count": None}
    cell["source"] = "import socket; socket.create_connection(('127.0.0.1', 9))"
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    asking = tmp_path / "asking.ipynb"
    asking.write_text(json.dumps({"cells": [cell], "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}))
    done = run_sealed(asking, tmp_path)
    assert done.returncode != 0
    assert "a notebook asked for ('127.0.0.1', 9)" in done.stderr
