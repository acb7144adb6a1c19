"""Pages of the notebooks in docs/notebooks, made from their stored outputs; nothing is executed and nothing fetched."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

NOTEBOOKS = Path(__file__).parents[2] / "docs" / "notebooks"


def pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of each page."""
    for path in sorted(NOTEBOOKS.glob("*.ipynb")):
        yield f"notebooks/{path.stem}.md", page(json.loads(path.read_text(encoding="utf-8")), path.name)


def page(notebook: Mapping[str, Any], name: str) -> str:
    """Return a notebook as Markdown, with a link to the file."""
    title, *rest = (part for cell in notebook["cells"] for part in _parts(cell))
    head, _, lead = title.partition("\n")
    return "\n\n".join([head, f"[Download this notebook]({name}).", lead.strip(), *rest]) + "\n"


def _parts(cell: Mapping[str, Any]) -> Iterator[str]:
    source = "".join(cell["source"])
    if cell["cell_type"] == "markdown":
        yield source
        return
    yield f"```python\n{source}\n```"
    for output in cell["outputs"]:
        data = output.get("data", {})
        if "text/html" in data:
            yield f'<div class="notebook-output">\n{_plain_table("".join(data["text/html"]))}\n</div>'
        else:
            yield f"```text\n{''.join(output.get('text') or data['text/plain']).rstrip()}\n```"


def _plain_table(html: str) -> str:
    """Return a table of pandas without its own style, so that it looks like all tables of the site."""
    return re.sub(
        r"<style scoped>.*?</style>\s*|(?<=<table) border=\"1\" class=\"dataframe\"", "", html, flags=re.DOTALL
    )
