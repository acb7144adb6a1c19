"""Every module has a test file of its name, or a reason in `modules_without_tests.toml`.

`src/dialeval/a/b.py` is tested by `tests/a/test_b.py`, and so is `src/dialeval/a/b_kernel.py`. After a move of
modules `python tests/layers/test_modules_have_tests.py` writes the table anew and keeps the reasons that still apply.
"""

from __future__ import annotations

import ast
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).resolve().parents[1]
PACKAGE = TESTS.parent / "src" / "dialeval"
TABLE = Path(__file__).with_name("modules_without_tests.toml")
HEADING = "# Modules without a test file of their name, and why; see test_modules_have_tests.py.\n\n"


def defines_something(path: Path) -> bool:
    """Not so for front doors, which hand out names of other modules, and for constants."""
    body = ast.parse(path.read_text(encoding="utf-8")).body
    defined = {node.name for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    return bool(defined - {"__getattr__", "__dir__"})


def has_test(module: str) -> bool:
    path = Path(module)
    names = {path.stem, path.stem.removesuffix("_kernel")}
    return any((TESTS / path.parent / f"test_{name}.py").exists() for name in names)


def modules() -> list[str]:
    """The modules that should have a test, as paths in the package."""
    paths = sorted(path for path in PACKAGE.rglob("*.py") if path.name != "__init__.py" and defines_something(path))
    return [path.relative_to(PACKAGE).as_posix() for path in paths]


def reasons() -> dict[str, str]:
    table: dict[str, str] = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    return table


def test_every_module_has_a_test_of_its_name() -> None:
    without = [module for module in modules() if not has_test(module)]
    assert [module for module in without if module not in reasons()] == []


def test_only_modules_without_a_test_are_listed() -> None:
    known = modules()
    assert [module for module in reasons() if module not in known or has_test(module)] == []


def test_every_exception_has_a_reason() -> None:
    assert [module for module, reason in reasons().items() if not reason.strip()] == []


if __name__ == "__main__":
    before = reasons()
    without = [module for module in modules() if not has_test(module)]
    lines = [f'"{module}" = "{before.get(module, "to be written")}"\n' for module in without]
    TABLE.write_text(HEADING + "".join(lines), encoding="utf-8")
