"""The public interface: every name is documented, its parameters and attributes by their names, with an example."""

from __future__ import annotations

import doctest
import inspect
import pydoc
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import griffe
import pytest

MODULES = ("dialeval", "dialeval.lsdscc", "dialeval.multiwoz", "dialeval.sgd", "dialeval.adem", "dialeval.breakdown")
EMPTY = inspect.Parameter.empty
STARS: dict[Any, str] = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
TORCH = ("dialeval.adem.ADEM", "dialeval.adem.ADEMWithEncoder", "dialeval.adem.EncoderSettings")
API = Path(__file__).parents[2] / "docs" / "api"


def public_names() -> Iterator[str]:
    for module in MODULES:
        yield from (f"{module}.{name}" for name in import_module(module).__all__ if not name.startswith("__"))
    yield "dialeval.sample_data.folder"


PUBLIC = list(public_names())


def found(name: str) -> Any:
    module, _, attribute = name.rpartition(".")
    if name in TORCH:
        pytest.importorskip("torch")
    return getattr(import_module(module), attribute)


def sections(documented: object) -> dict[str, Any]:
    """The parts of a docstring by their kind."""
    text = inspect.getdoc(documented)
    assert text, f"{documented} has no docstring"
    return {part.kind.value: part.value for part in griffe.Docstring(text, parser="google").parse(warnings=False)}


def parameters(function: Any) -> dict[str, inspect.Parameter]:
    given = inspect.signature(function).parameters.values()
    return {STARS.get(each.kind, "") + each.name: each for each in given if each.name not in ("self", "cls")}


def check_function(name: str, function: Any) -> None:
    parts = sections(function)
    documented = [each.name for each in parts.get("parameters", ())]
    assert documented == list(parameters(function)), name
    returned = inspect.signature(function).return_annotation
    if returned not in (None, "None", EMPTY) and documented:
        assert "returns" in parts or "yields" in parts, f"{name}: what it returns"


def own_methods(kind: type) -> Iterator[tuple[str, Any]]:
    """The public methods and properties that are defined in the package, each as it is found in its class."""
    for name in dir(kind):
        home = next((base for base in kind.__mro__ if name in vars(base)), None)
        if not name.startswith("_") and home is not None and home.__module__.startswith("dialeval"):
            yield name, vars(home)[name]


def attributes_of(kind: type) -> list[str]:
    if is_dataclass(kind) and "__dataclass_fields__" in vars(kind):
        return [each.name for each in fields(kind)]
    return list(getattr(kind, "__struct_fields__", getattr(kind, "_fields", ())))


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_documented(name: str) -> None:
    subject = found(name)
    assert "examples" in sections(subject), f"{name}: an example"
    first = str(inspect.getdoc(subject)).splitlines()[0]
    assert first.endswith((".", "`.")), f"{name}: the first line is a sentence"
    if not inspect.isclass(subject):
        check_function(name, subject)
        assert first.split()[0].removesuffix("s") == first.split()[0], f"{name}: begins with a verb in the imperative"
        return
    parts = sections(subject)
    documented = [each.name for each in parts.get("attributes", ())]
    if declared := attributes_of(subject):
        assert documented == declared, name
    if given := [each.name for each in parts.get("parameters", ())]:
        assert given == list(parameters(subject)), name
    for method, defined in own_methods(subject):
        inside = getattr(defined, "__func__", getattr(defined, "func", getattr(defined, "fget", defined)))
        if inspect.isfunction(inside):
            assert inspect.getdoc(getattr(subject, method)), f"{name}.{method}"
            if not isinstance(defined, property) and inside is not getattr(defined, "func", None):
                check_function(f"{name}.{method}", inside)


@pytest.mark.parametrize("name", PUBLIC)
def test_its_example_runs(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    test = doctest.DocTestParser().get_doctest(str(inspect.getdoc(found(name))), {}, name, None, 0)
    assert test.examples
    lines: list[str] = []
    doctest.DocTestRunner().run(test, out=lines.append)
    assert not lines, "".join(lines)


@pytest.mark.parametrize("name", PUBLIC)
def test_help_shows_signature_and_text(name: str) -> None:
    subject = found(name)
    shown = pydoc.plain(pydoc.render_doc(subject))
    assert str(inspect.getdoc(subject)).splitlines()[0] in shown
    if inspect.isfunction(subject):
        assert f"{subject.__name__}({next(iter(inspect.signature(subject).parameters), '')}" in shown


def test_every_public_name_is_on_an_api_page() -> None:
    pages = {path: path.read_text(encoding="utf-8").splitlines() for path in sorted(API.glob("*.md"))}
    described = [line.removeprefix("::: ") for lines in pages.values() for line in lines if line.startswith("::: ")]
    assert sorted(described) == sorted(PUBLIC)


def test_the_package_is_typed() -> None:
    package: ModuleType = import_module("dialeval")
    assert (Path(str(package.__file__)).parent / "py.typed").exists()
