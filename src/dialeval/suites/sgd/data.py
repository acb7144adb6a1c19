"""Schema-guided dialogues as they are in files: turns of a user and a system, with a frame per service in user turns.

    [{"dialogue_id": "1_00000", "turns": [
        {"speaker": "USER", "utterance": "A room with a garden, please.", "frames": [
            {"service": "Inns_1", "state": {"active_intent": "FindInn", "requested_slots": [],
                                            "slot_values": {"garden": ["True"]}},
             "slots": [{"slot": "inn_name", "start": 0, "exclusive_end": 5}]}]}, ...]}, ...]

`slots` may be left out. An object of id -> dialogue will do as well, and a folder of files: `*.json`, but not
`schema.json` nor the `dialogues_and_metrics.json` that the original leaves behind. Every fault of every file is
reported at once. Refused is what the original takes without a word and what cannot be meant: a dialogue, or a service
in a turn, that is there twice.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from dialeval.core.columns import ObjectColumn
from dialeval.core.errors import DataError, Problem, whole_characters
from dialeval.io import json
from dialeval.io.json import OBJECT, Shape, shape_faults
from dialeval.io.opening import PathSource, format_of, stem_of
from dialeval.io.reading import files_in, is_folder
from dialeval.io.rows import LISTS, all_of

USER = "USER"

_NO_DIALOGUES = frozenset({"schema", "dialogues_and_metrics"})
_FORM = "give a list of dialogues, each with dialogue_id and turns"
TURN_FORM = "give every turn a speaker, an utterance and frames"
_TEXT = Shape((str,), "a text", TURN_FORM)
_TEXTS = Shape(LISTS, "a list of texts", "give a list, the value that counts first", _TEXT)
STATE_FORM = "give every state active_intent, requested_slots and slot_values"
_STATE = Shape(
    OBJECT,
    "an object with active_intent, requested_slots and slot_values",
    STATE_FORM,
    {
        "active_intent": Shape((str,), "a text", "give NONE where there is no intent", required=True),
        "requested_slots": Shape(LISTS, "a list of texts", STATE_FORM, _TEXT, required=True),
        "slot_values": Shape(OBJECT, "an object of slot -> values", STATE_FORM, _TEXTS, required=True),
    },
)
_SERVICE = Shape((str,), "a text", "say which service a frame is of", required=True)
_PLACE = Shape((int,), "a whole number", "count characters from 0")
_SPAN = Shape(
    OBJECT,
    "an object with slot, start and exclusive_end",
    "say which characters of the utterance are the value of which slot",
    {"slot": replace(_SERVICE, remedy="name the slot"), "start": _PLACE, "exclusive_end": _PLACE},
)
_SPANS = Shape(LISTS, "a list of spans", _SPAN.remedy, _SPAN)
_FRAME = Shape(
    OBJECT, "an object with service and state", TURN_FORM, {"service": _SERVICE, "state": _STATE, "slots": _SPANS}
)
_FRAMES = Shape(LISTS, "a list of frames", TURN_FORM, _FRAME)
_SPEAKER = Shape((str,), "a text", f"say who speaks, {USER} or SYSTEM", required=True)
_TURN = Shape(
    OBJECT,
    "an object with speaker, utterance and frames",
    TURN_FORM,
    {"speaker": _SPEAKER, "utterance": _TEXT, "frames": _FRAMES},
)
_TURNS = Shape(LISTS, "a list of turns", _FORM, _TURN, required=True)
_ID = Shape((str,), "a text", _FORM, required=True)
_BY_ID = Shape(OBJECT, "an object of id -> dialogue", _FORM, Shape(OBJECT, "a dialogue", _FORM, {"turns": _TURNS}))
_LIST = Shape(
    LISTS, "a list of dialogues", _FORM, Shape(OBJECT, "a dialogue", _FORM, {"dialogue_id": _ID, "turns": _TURNS})
)


class Dialogue(NamedTuple):
    """The turns of a dialogue, and the file that they are in."""

    where: str
    turns: Sequence[Mapping[str, Any]]


def read_dialogues(source: Any, name: str) -> dict[str, Dialogue]:
    """The dialogues of a file, a folder or a parsed document by their ids, checked for their form."""
    if isinstance(source, str | os.PathLike):
        parts = all_of(partial(_file, path) for path in _files(source))
    else:
        parts = [_dialogues(source, name)]
    dialogues: dict[str, Dialogue] = {}
    faults: list[Problem] = []
    for part in parts:
        for dialogue, read in part:
            if dialogue in dialogues:
                also = f", also in {dialogues[dialogue].where}" if read.where != dialogues[dialogue].where else ""
                faults.append(Problem(f"{read.where}: {dialogue}", None, f"is there twice{also}", "keep one of them"))
            dialogues[dialogue] = read
    if faults:
        raise DataError(faults)
    if not dialogues:
        raise DataError(Problem(place_of(source, name), None, "holds no dialogue", _FORM))
    return dialogues


def place_of(source: Any, name: str) -> str:
    """The path of a source, or its name where it is in memory."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else name


def _files(source: PathSource) -> list[Path]:
    if not is_folder(source):
        return [Path(source)]
    found = files_in(source)
    files = [path for path in found if format_of(path) == "json" and stem_of(path) not in _NO_DIALOGUES]
    if not files:
        raise DataError(Problem(os.fspath(source), None, "holds no file of dialogues (*.json)", "name another folder"))
    return files


def _file(path: Path) -> list[tuple[str, Dialogue]]:
    return _dialogues(json.load(path, _FORM), str(path))


def _dialogues(document: Any, where: str) -> list[tuple[str, Dialogue]]:
    by_id = isinstance(document, Mapping)
    if faults := shape_faults(document, _BY_ID if by_id else _LIST, where):
        raise DataError(faults)
    named = document.items() if by_id else ((dialogue["dialogue_id"], dialogue) for dialogue in document)
    return [(whole_characters(str(name)), Dialogue(where, dialogue["turns"])) for name, dialogue in named]


def turn_faults(turn: Mapping[str, Any], where: str) -> Iterator[Problem]:
    """What is wrong with the frames of a user turn."""
    services = [frame["service"] for frame in turn.get("frames", ())]
    for service, times in Counter(services).items():
        if times > 1:
            yield Problem(where, None, f"has {times} frames of the service {service!r}", "keep one of them")
    for frame in turn.get("frames", ()):
        if "state" not in frame:
            yield Problem(where, None, f"the frame of {frame['service']!r} has no state", STATE_FORM)
            continue
        for slot, values in frame["state"]["slot_values"].items():
            if not values:
                what = f"the slot {slot!r} of {frame['service']!r} has no value"
                yield Problem(where, None, what, "leave the slot out where it has none")


# The schema of schema-guided dialogues: its services, and which of their slots are categorical.
#
#     [{"service_name": "Inns_1", "slots": [{"name": "garden", "is_categorical": true}, ...]}, ...]
#
# A schema holds more (descriptions, intents, possible values), which no figure depends on. Every fault of the file is
# reported at once.

_SCHEMA_FORM = "give a list of services, each with service_name and slots"
_NAME = Shape((str,), "a text", _SCHEMA_FORM, required=True)
_CATEGORICAL = Shape((bool,), "true or false", "say of every slot whether it is categorical", required=True)
_SLOT = Shape(
    OBJECT, "an object with name and is_categorical", _SCHEMA_FORM, {"name": _NAME, "is_categorical": _CATEGORICAL}
)
_SLOTS = Shape(LISTS, "a list of slots", _SCHEMA_FORM, _SLOT, required=True)
_SCHEMA_SERVICE = Shape(
    OBJECT, "an object with service_name and slots", _SCHEMA_FORM, {"service_name": _NAME, "slots": _SLOTS}
)
_SCHEMA = Shape(LISTS, "a list of services", _SCHEMA_FORM, _SCHEMA_SERVICE)


@dataclass(frozen=True, slots=True)
class Schema:
    """The slots of each service in the order of the file, and whether they are categorical."""

    services: Mapping[str, Mapping[str, bool]]
    digest: str


def read_schema(source: Any) -> Schema:
    """The schema in a file, or in a parsed document."""
    is_path = isinstance(source, str | os.PathLike)
    where = os.fspath(source) if is_path else "schema"
    document = json.load(source, _SCHEMA_FORM) if is_path else source
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


def _twice(document: Any, where: str) -> Iterator[Problem]:
    met = set()
    for number, service in enumerate(document):
        name, slots = service["service_name"], Counter(slot["name"] for slot in service["slots"])
        if name in met:
            yield Problem(f"{where}: [{number}]", None, f"the service {name!r} is there twice", "keep one of them")
        met.add(name)
        for slot in (slot for slot, times in slots.items() if times > 1):
            yield Problem(f"{where}: [{number}].slots", None, f"the slot {slot!r} is there twice", "keep one of them")
