"""Features: what suites, judges, human evaluation and installed packages add to dialeval.

A feature is one record of places (`module:name`), each of which is imported when it is used. Ours are named in
`features.ini`, one line each; other packages name theirs under the entry point group `dialeval.features`, in the same
syntax. Nothing below the layer of features names one: the registry of metrics, the resources of a run, saved details,
the report and the command line ask `list_features`.

The entry points of other packages are read only when something asks for them (a metric or a command that is unknown, or
all of them): reading them takes as long as a short command.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, NamedTuple

from dialeval.core.errors import add_warning
from dialeval.core.inputs import Input

if TYPE_CHECKING:
    from dialeval.core.validation import JsonObject

GROUP = "dialeval.features"
"""The entry point group of other packages."""
_OURS = Path(__file__).parents[1] / "features.ini"


class Command(NamedTuple):
    """A command of the command line."""

    place: str
    """The click command."""
    summary: str
    section: str = "Other packages"
    """The heading under which `dialeval --help` lists it."""


@dataclass(frozen=True)
class Feature:
    """What one suite, judge or package adds; every place is `module:name`.

    Attributes:
        name: Its name.
        topic: The heading under which its metrics are listed.
        metrics: Metric classes, or functions of `metric_of_rows`, by the column that they score (`response`).
        resources: Classes of resources that ship with it, such as judges, by the resource that they are.
        loaders: Functions that lower layers call by what they make: the `judge` of a folder, a `language_model`, the
            `verdict` of a comparison, a `sample`, the section on `people`, the `html` and the `plot` of a result.
        details: The types of details that it saves in a run, by the name of the detail.
        sections: Functions for the report, by a detail or the beginning of a metric's name: a `section` (a `Document`,
            or None), a `table` of the terminal, fields of the explorer's `rows`, or a `note` above these.
        documents: Functions that describe a result in a report or notebook, by the name of its class.
        formats: TOML files with row shapes, as `package:file`; `io/row_shapes.toml` is one.
        packs: TOML files with the sources of data packs, as `package:file`; `io/packs.toml` is one.
        commands: Commands, by name.
    """

    name: str
    topic: str = "Other packages"
    metrics: Mapping[str, Sequence[str]] = field(default_factory=dict)
    resources: Mapping[Input, str] = field(default_factory=dict)
    loaders: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, str] = field(default_factory=dict)
    sections: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    documents: Mapping[str, str] = field(default_factory=dict)
    formats: Sequence[str] = ()
    packs: Sequence[str] = ()
    commands: Mapping[str, Command] = field(default_factory=dict)


@cache
def list_features() -> tuple[Feature, ...]:
    """Return the features that ship with dialeval."""
    lines = _OURS.read_text(encoding="utf-8").splitlines()
    places = (line.partition("=")[2].strip() for line in lines if "=" in line and not line.startswith("#"))
    return tuple(map(resolve_name, places))


@cache
def list_installed() -> tuple[Feature, ...]:
    """Return the features of other packages; one that cannot be loaded is left out with a warning."""
    from importlib.metadata import entry_points

    features = []
    for point in entry_points(group=GROUP):
        try:
            feature = point.load()
            if not isinstance(feature, Feature):
                raise TypeError(f"it is a {type(feature).__name__} and no dialeval.plugin.Feature")
            features.append(feature)
        except Exception as error:  # a package that does not load must not take everything down with it
            add_warning(f"the installed feature {point.name} cannot be loaded: {type(error).__name__}: {error}")
    return tuple(features)


def list_known(everything: bool = False) -> tuple[Feature, ...]:
    """Return ours and those of other packages, the latter only if they are loaded already or all are asked for."""
    loaded = everything or list_installed.cache_info().currsize > 0
    return (*list_features(), *(list_installed() if loaded else ()))


def find_command(name: str) -> Any:
    """Return the command of another package; None if there is none of that name."""
    places = (feature.commands[name].place for feature in list_installed() if name in feature.commands)
    return next(map(resolve_name, places), None)


def find_place(field_name: str, key: str) -> Any:
    """Return what a feature has under a key of one of its fields, imported; None if no feature has it."""
    for list_some in (list_features, list_installed):
        for feature in list_some():
            if (place := getattr(feature, field_name).get(key)) is not None:
                return resolve_name(place)
    return None


def read_table(place: str) -> JsonObject:
    """Read a TOML file of a feature, `package:file`."""
    from importlib.resources import files

    from dialeval.core.validation import parse_toml  # which needs NumPy

    package, _, name = place.partition(":")
    return parse_toml(files(package).joinpath(name).read_bytes(), place, f"install {package.partition('.')[0]} again")
