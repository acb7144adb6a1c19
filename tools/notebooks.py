"""Execute the notebooks of docs/notebooks and store their outputs: `make notebooks`.

    notebooks.py                     every notebook, in place
    notebooks.py NOTEBOOK OUTPUT     one, into another file, in whose folder it runs

The site and GitHub show the stored outputs; `tests/docs/test_notebooks.py` executes the notebooks again and compares.
Execution needs nbclient and ipykernel (the dev extra), and no network.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

NOTEBOOKS = Path(__file__).parents[1] / "docs" / "notebooks"
_ADDRESS = re.compile(r"0x[0-9a-f]{6,}")
SECONDS = 300
"""That one cell may take."""


def execute(path: Path, folder: Path) -> Any:
    """Return the notebook with the outputs that its cells have in a folder."""
    import nbformat
    from jupyter_client.manager import AsyncKernelManager
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    with TemporaryDirectory(prefix="nb") as own:
        # Over a Unix socket, not over TCP; its path must be short.
        manager = AsyncKernelManager(kernel_name="python3", connection_file=f"{own}/kernel.json")
        manager.transport = "ipc" if os.name == "posix" else "tcp"
        client = NotebookClient(
            notebook, manager, timeout=SECONDS, record_timing=False, resources={"metadata": {"path": str(folder)}}
        )
        client.execute(env={**os.environ, "IPYTHONDIR": own})
    notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"], "language_info": {"name": "python"}}
    return notebook


def outputs_of(notebook: Mapping[str, Any]) -> list[list[Any]]:
    """Return the outputs of every code cell, without what differs from one execution to the next."""
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    return [[_plain(each) for each in cell["outputs"]] for cell in cells]


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        kept = {name: part for name, part in value.items() if name not in ("execution_count", "metadata")}
        return {name: _plain(part) for name, part in kept.items()}
    text = "".join(value) if isinstance(value, list) else value
    return _ADDRESS.sub("0x", text) if isinstance(text, str) else text


def main() -> None:
    """Execute the notebooks that are asked for, and write them with their outputs."""
    import nbformat

    if len(sys.argv) == 3:
        source, target = map(Path, sys.argv[1:])
        nbformat.write(execute(source, target.parent), target)
        return
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        with TemporaryDirectory() as folder:
            nbformat.write(execute(path, Path(folder)), path)
        print(path.relative_to(NOTEBOOKS.parents[1]))


if __name__ == "__main__":
    main()
