"""Nothing below the layer of features names one: not by an import (import-linter) and not by a text."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import dialeval

PACKAGE = Path(dialeval.__file__).parent
LAYERS = [
    "core",
    "text stats",
    "io",
    "metrics",
    "engine",
    "analysis",
    "reports",
    "judges",
    "suites human",
    "cli originals",
]
RANKS = {folder: rank for rank, folders in enumerate(LAYERS) for folder in folders.split()}
PLACE = re.compile(r"dialeval\.(\w+)[\w.]*(:[\w,]+)?")


def list_texts(path: Path) -> Iterator[str]:
    """The texts of a module that are not docstrings; of a table, its whole text line by line."""
    text = path.read_text(encoding="utf-8")
    if path.suffix != ".py":
        yield from re.findall(r'"([^"]*)"', text)
        return
    tree = ast.parse(text)
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def test_only_features_name_modules_of_higher_layers() -> None:
    upward: dict[str, list[str]] = {}
    for path in [*PACKAGE.rglob("*.py"), *PACKAGE.rglob("*.toml")]:
        folder = path.relative_to(PACKAGE).parts[0]
        if path.name == "feature.py" or folder not in RANKS:
            continue
        for text in list_texts(path):
            place = PLACE.fullmatch(text.strip())
            if place is not None and RANKS.get(place[1], -1) > RANKS[folder]:
                upward.setdefault(path.relative_to(PACKAGE).as_posix(), []).append(text)
    assert upward == {}


@pytest.mark.parametrize("suite", ["sgd", "lsdscc"])
def test_a_suite_is_registered_by_one_line(suite: str) -> None:
    """No other module of the package names it, but for its public module and the flags of the original."""
    lines = (PACKAGE / "features.ini").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if f"suites.{suite}" in line] == [
        f"{suite} = dialeval.suites.{suite}.feature:FEATURE"
    ]
    allowed = {PACKAGE / f"{suite}.py", PACKAGE / "cli" / "compat.py"}
    naming = [
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if path not in allowed and not {PACKAGE / "suites" / suite, PACKAGE / "originals"} & set(path.parents)
        if f"suites.{suite}" in path.read_text(encoding="utf-8")
    ]
    assert naming == []
