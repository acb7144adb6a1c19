"""Modules that somebody put into the working folder, next to the data: none of them may be imported."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import dialeval

NAMES = (
    *("threading", "selectors", "signal", "socket", "pickle", "tempfile", "struct", "random", "logging", "runpy"),
    *("orjson", "numpy", "msgspec", "pyarrow", "llvmlite", "numba", "ray", "cloudpickle", "dialeval", "sitecustomize"),
)
_PROGRAM = "from dialeval.cli.main import main\n\nif __name__ == '__main__':\n    main()\n"


def run_among_planted_modules(folder: Path, *options: str, first: str = "") -> dict[str, object]:
    """Score a file in a folder that holds such modules, after lines of Python; return what is printed as JSON.

    Raises:
        AssertionError: One of the modules was imported, or the command failed.
    """
    here, program = folder / "data", folder / "programs" / "program.py"
    here.mkdir()
    program.parent.mkdir()
    program.write_text(first + _PROGRAM)
    marks = folder / "marks"
    marks.mkdir()
    for name in NAMES:
        (here / f"{name}.py").write_text(f"open({str(marks / name)!r}, 'w').close()\nraise ImportError('planted')\n")
    rows = [{"response": f"word {number}"} for number in range(20)]
    (here / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = [sys.executable, str(program), "score", "bot=rows.jsonl", "-m", "length", "-f", "json", *options]
    path = os.pathsep.join([str(Path(dialeval.__file__).parents[1]), *filter(None, sys.path)])
    environment = {**os.environ, "PYTHONPATH": path, "HOME": str(folder / "home")}
    done = subprocess.run(command, cwd=here, env=environment, capture_output=True, text=True, timeout=300, check=False)
    assert [mark.name for mark in marks.iterdir()] == []
    assert done.returncode == 0, done.stderr
    printed: dict[str, object] = json.loads(done.stdout)
    return printed
