"""The schema of schema-guided dialogues: its services, and which of their slots are categorical.

    [{"service_name": "Inns_1", "slots": [{"name": "garden", "is_categorical": true}, ...]}, ...]

A schema holds more (descriptions, intents, possible values), which no figure depends on. Every fault of the file is
reported at once.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from dialeval.core.columns import ObjectColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.plain_text import whole_characters
from dialeval.data.formats import json_document
from dialeval.data.formats.records import LISTS
from dialeval.data.task.shapes import OBJECT, Shape, shape_faults

_FORM = "give a list of services, each with service_name and slots"
_NAME = Shape((str,), "a text", _FORM, required=True)
_CATEGORICAL = Shape((bool,), "true or false", "say of every slot whether it is categorical", required=True)
_SLOT = Shape(OBJECT, "an object with name and is_categorical", _FORM, {"name": _NAME, "is_categorical": _CATEGORICAL})
_SLOTS = Shape(LISTS, "a list of slots", _FORM, _SLOT, required=True)
_SERVICE = Shape(OBJECT, "an object with service_name and slots", _FORM, {"service_name": _NAME, "slots": _SLOTS})
_SCHEMA = Shape(LISTS, "a list of services", _FORM, _SERVICE)


@dataclass(frozen=True, slots=True)
class Schema:
    """The slots of each service in the order of the file, and whether they are categorical."""

    services: Mapping[str, Mapping[str, bool]]
    digest: str


def read_schema(source: Any) -> Schema:
    """The schema in a file, or in a parsed document."""
    is_path = isinstance(source, str | os.PathLike)
    where = os.fspath(source) if is_path else "schema"
    document = json_document.load(source, _FORM) if is_path else source
    if faults := shape_faults(document, _SCHEMA, where):
        raise DataError(faults)
    if faults := list(_twice(document, where)):
        raise DataError(faults)
    services = {
        whole_characters(service["service_name"]): {
            whole_characters(slot["name"]): slot["is_categorical"] for slot in service["slots"]
        }
        for service in document
    }
    # The order of slots is part of it, as products are taken in that order.
    return Schema(services, ObjectColumn([[name, list(slots.items())] for name, slots in services.items()]).digest)


def _twice(document: Any, where: str) -> Iterator[Fault]:
    met = set()
    for number, service in enumerate(document):
        name, slots = service["service_name"], Counter(slot["name"] for slot in service["slots"])
        if name in met:
            yield Fault(f"{where}: [{number}]", None, f"the service {name!r} is there twice", "keep one of them")
        met.add(name)
        for slot in (slot for slot, times in slots.items() if times > 1):
            yield Fault(f"{where}: [{number}].slots", None, f"the slot {slot!r} is there twice", "keep one of them")
