"""The interface that scripts depend on, compared with a list of it: metrics, functions and commands, with all defaults.

A change of the interface changes `interface.txt`, where a reader of the commit sees it:
`python tests/golden/test_interface.py` writes the list anew.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

import dialeval
from dialeval.cli.main import dialeval_command
from dialeval.metrics.registry import registry

PACKAGE = Path(dialeval.__file__).parent
LIST = Path(__file__).with_name("interface.txt")
MODULES = ("dialeval", "dialeval.lsdscc", "dialeval.multiwoz", "dialeval.sgd", "dialeval.adem", "dialeval.breakdown")


def list_metrics() -> Iterator[str]:
    """Yield every preset with its signature (but for the version), bounds, direction, level and needs."""
    for name in registry().presets:
        metric = registry().parse(name)
        signature = str(metric.signature()).rpartition("|dialeval:")[0]
        direction = f"{metric.better or 'neither'} is better"
        (low, high), needs = metric.bounds, ", ".join(sorted(str(need) for need in metric.needs))
        yield f"metric {name}: {signature}; {low} to {high}; {direction}; {metric.level.value}; {needs}"


def list_functions() -> Iterator[str]:
    """Yield public functions and classes, with the methods that are their own, their parameters and defaults."""
    for module in MODULES:
        public = import_module(module)
        for name in sorted(public.__all__):
            value = getattr(public, name)
            if callable(value) and not (inspect.isclass(value) and issubclass(value, Exception)):
                yield f"{module}.{name}{show_parameters(value)}"
            for method, member in sorted(vars(value).items()) if inspect.isclass(value) else ():
                if inspect.isfunction(member) and not method.startswith("_"):
                    yield f"{module}.{name}.{method}{show_parameters(member)}"


def show_parameters(function: object) -> str:
    """Return names and defaults; annotations are written in another way by each version of Python."""
    parameters = inspect.signature(function).parameters.values()  # type: ignore[arg-type]
    text = ", ".join(str(each.replace(annotation=inspect.Parameter.empty)) for each in parameters)
    return f"({text.replace(str(PACKAGE), 'PACKAGE')})"


def list_options(command: click.Command = dialeval_command, name: str = "dialeval") -> Iterator[str]:
    """Yield the arguments and options of a command and of those below it."""
    for each in command.params:
        choices = getattr(each.type, "choices", None)
        limits = [getattr(each.type, end, None) for end in ("min", "max")]
        of = f"one of {', '.join(choices)}" if choices else f"{each.type.name} {limits if any(limits) else ''}".strip()
        default = each.to_info_dict().get("default")
        many = " repeated" if getattr(each, "multiple", False) or each.nargs != 1 else ""
        yield f"{name} {' '.join(each.opts)}: {of}{many}{' required' if each.required else ''}; default {default!r}"
    if isinstance(command, click.Group):
        context = click.Context(command)
        for below in command.list_commands(context):
            found = command.get_command(context, below)
            assert found is not None
            yield from list_options(found, f"{name} {below}")


def list_interface() -> list[str]:
    return [*list_metrics(), *list_functions(), *list_options()]


def test_the_interface_is_the_one_that_is_listed() -> None:
    pytest.importorskip("torch")  # the classes that train need it
    listed, there = LIST.read_text(encoding="utf-8").splitlines(), list_interface()
    assert sorted(set(there) - set(listed)) == [], "not in the list"
    assert sorted(set(listed) - set(there)) == [], "in the list alone"


if __name__ == "__main__":
    LIST.write_text("\n".join([*list_interface(), ""]), encoding="utf-8")
