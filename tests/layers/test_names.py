"""Names have one meaning in the whole package."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import dialeval

PACKAGE = Path(dialeval.__file__).parent
COMPATIBLE = PACKAGE / "originals"
"""Its classes have the names of the original programs, whatever else has them."""


def test_a_class_has_a_name_of_its_own() -> None:
    places = defaultdict(list)
    for path in PACKAGE.rglob("*.py"):
        if COMPATIBLE not in path.parents:
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                    places[node.name].append(path.relative_to(PACKAGE).as_posix())
    assert len(places) > 200
    assert {name: modules for name, modules in places.items() if len(modules) > 1} == {}
