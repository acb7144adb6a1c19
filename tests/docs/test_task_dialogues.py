"""The ontology that the page about own tasks writes, table by table, is one."""

from __future__ import annotations

import re
from pathlib import Path

from dialeval.suites.multiwoz.venues import load_ontology

PAGE = (Path(__file__).parent.parent.parent / "docs" / "own-task.md").read_text(encoding="utf-8")


def test_the_ontology(tmp_path: Path) -> None:
    path = tmp_path / "ontology.toml"
    path.write_text("\n".join(re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)))
    assert set(load_ontology(path).domains) == {"inn", "ferry"}
