"""JSON Schemas of the files and documents of dialeval, made from the types by which files are checked when read.

    make_schema("run")             the JSON Schema of run.json (draft 2020-12), as plain data
    WRITTEN                        every name, with the file and who writes it

Readers may rely on what they define: fields, types, ranges. A file may hold more fields than its schema names; later
versions add some without a new `format`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from inspect import cleandoc
from pkgutil import resolve_name
from typing import Any

from msgspec import Struct, json

from dialeval.core.errors import SettingError, suggest
from dialeval.core.features import WrittenFile, list_features
from dialeval.core.validation import JsonObject

DRAFT = "https://json-schema.org/draft/2020-12/schema"
_SAVED_ONLY = ("format", "digest", "scores", "rows", "contributions", "statistics")
"""Fields of a saved run that a printed one does not have."""


WRITTEN: Mapping[str, WrittenFile] = {
    name: written for feature in list_features() for name, written in feature.files.items()
}


def make_schema(name: str) -> JsonObject:
    """Return the JSON Schema of a name in `WRITTEN`."""
    if name not in WRITTEN:
        raise SettingError(f"there is no schema {name!r}; {suggest(name, WRITTEN)}")
    written = WRITTEN[name]
    kind = resolve_name(written.place)
    kind = kind if isinstance(kind, type) else kind()
    document: JsonObject = _make_portable(json.schema(kind), written.printed)
    if name == "printed-run":
        _remove_fields(document["$defs"][kind.__name__], _SAVED_ONLY)
    return {"$schema": DRAFT, "title": f"dialeval: {name}", **document}


def _make_portable(part: object, printed: bool) -> Any:
    """Return the schema in terms that all validators know: `\\Z` is Python's, and in printed documents NaN is null."""
    if isinstance(part, list):
        return [_make_portable(item, printed) for item in part]
    if not isinstance(part, dict):
        return part
    plain = {key: _make_portable(value, printed) for key, value in part.items()}
    if isinstance(plain.get("pattern"), str):
        plain["pattern"] = plain["pattern"].replace(r"\Z", "$")
    if printed and plain.get("type") == "number":
        plain["type"] = ["number", "null"]
    if printed:
        plain.pop("default", None)  # of a dataclass: NaN, which JSON does not know
    if "properties" in plain and "description" in plain:
        _describe_properties(plain)
    return plain


_ATTRIBUTE = re.compile(r"^    (?P<name>\w+): (?P<text>.+(?:\n {8}.+)*)", re.MULTILINE)


def _describe_properties(definition: JsonObject) -> None:
    """Move the descriptions of attributes from a docstring to their properties."""
    definition["description"], _, rest = cleandoc(definition["description"]).partition("\n\nAttributes:\n")
    for attribute in _ATTRIBUTE.finditer(rest.partition("\n\n")[0]):
        if attribute["name"] in definition["properties"]:
            definition["properties"][attribute["name"]]["description"] = " ".join(attribute["text"].split())


def _remove_fields(definition: JsonObject, names: tuple[str, ...]) -> None:
    definition["properties"] = {key: value for key, value in definition["properties"].items() if key not in names}
    definition["required"] = [name for name in definition["required"] if name not in names]


# Types of documents that are written by other means than `msgspec`.


class TaskVerdict(Struct):
    """A line of `dialeval multiwoz --dialogues`."""

    system: str
    dialog_id: str
    inform: dict[str, bool]
    success: dict[str, bool]


class BreakdownLabel(Struct, rename={"o": "prob-O", "t": "prob-T", "x": "prob-X"}):
    """What a detector says of a turn."""

    breakdown: str
    o: float
    t: float
    x: float


class BreakdownTurn(Struct, rename={"index": "turn-index"}):
    """The labels of a turn."""

    index: int
    labels: list[BreakdownLabel]


class BreakdownLabels(Struct, rename={"dialogue": "dialogue-id"}):
    """A file, or a line, of `dialeval breakdown detect -o`."""

    dialogue: str
    turns: list[BreakdownTurn]
