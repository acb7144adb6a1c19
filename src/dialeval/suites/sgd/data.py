"""Schema-guided dialogues as they are in files: turns of a user and a system, with a frame per service in user turns.

    [{"dialogue_id": "1_00000", "turns": [
        {"speaker": "USER", "utterance": "A room with a garden, please.", "frames": [
            {"service": "Inns_1", "state": {"active_intent": "FindInn", "requested_slots": [],
                                            "slot_values": {"garden": ["True"]}},
             "slots": [{"slot": "inn_name", "start": 0, "exclusive_end": 5}]}]}, ...]}, ...]

`slots` may be left out. An object of id -> dialogue will do as well, and a folder of files: `*.json`, but not
`schema.json` nor the `dialogues_and_metrics.json` that the original leaves behind. Every problem of every file is
reported at once. Refused is what the original takes without a word and what cannot be meant: a dialogue, or a service
in a turn, that occurs twice.

A row is a frame of the references, in their order, so that the rows of all systems line up. Dialogues, and turns at the
end of one, may be missing in predictions: their rows are None. Everything else of the references has to be there, with
the same speakers and the same words of the user.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from msgspec import UNSET, Struct, UnsetType, ValidationError, convert, to_builtins

from dialeval.core.columns import ColumnData, ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem
from dialeval.core.inputs import Input
from dialeval.io import json
from dialeval.io.opening import PathSource, format_of, stem_of
from dialeval.io.reading import find_response_files, is_folder
from dialeval.io.rows import Rows, read_each
from dialeval.io.schemas import check_types
from dialeval.suites.sgd import FRAMES, SPANS, TRUE_FRAMES

T = TypeVar("T")
USER = "USER"

_NO_DIALOGUES = frozenset({"schema", "dialogues_and_metrics"})
_FORM = "give a list of dialogues, each with dialogue_id and turns"
TURN_FORM = "give every turn a speaker, an utterance and frames"
STATE_FORM = "give every state active_intent, requested_slots and slot_values"
_REMEDIES = {
    "active_intent": "give NONE where there is no intent",
    "requested_slots": STATE_FORM,
    "slot_values": "give a list of values for each slot, the one that counts first",
    "service": "say which service a frame is of",
    "slots": "say which characters of the utterance are the value of which slot",
    "slot": "name the slot",
    "start": "count characters from 0",
    "exclusive_end": "count characters from 0",
    "speaker": f"say who speaks, {USER} or SYSTEM",
    "frames": TURN_FORM,
    "utterance": TURN_FORM,
}


class _State(Struct):
    active_intent: str
    requested_slots: list[str]
    slot_values: dict[str, list[str]]


class _Span(Struct):
    slot: str
    start: int | UnsetType = UNSET
    exclusive_end: int | UnsetType = UNSET


class Frame(Struct):
    """A service in a turn: its state and the spans of its slots, as far as they are there."""

    service: str
    state: _State | UnsetType = UNSET
    slots: list[_Span] | UnsetType = UNSET


class Turn(Struct):
    """A turn of a dialogue."""

    speaker: str
    utterance: str | UnsetType = UNSET
    frames: list[Frame] = []


class _Turns(Struct):
    turns: list[Turn]


class _Dialogue(_Turns):
    dialogue_id: str


class SGDDialogue(NamedTuple):
    """The turns of a dialogue, and the file that they are in."""

    where: str
    turns: Sequence[Turn]


def read_dialogues(source: object, name: str) -> dict[str, SGDDialogue]:
    """Return the dialogues of a file, a folder or a parsed document by their ids, checked for their form."""
    if isinstance(source, str | os.PathLike):
        parts = read_each(partial(_read_file, path) for path in _list_files(source))
    else:
        parts = [_check_dialogues(source, name)]
    dialogues: dict[str, SGDDialogue] = {}
    problems: list[Problem] = []
    for part in parts:
        for dialogue, read in part:
            if dialogue in dialogues:
                also = f", also in {dialogues[dialogue].where}" if read.where != dialogues[dialogue].where else ""
                problems.append(Problem(f"{read.where}: {dialogue}", None, f"occurs twice{also}", "keep one of them"))
            dialogues[dialogue] = read
    if problems:
        raise DataError(problems)
    if not dialogues:
        raise DataError(Problem(name_source(source, name), None, "holds no dialogue", _FORM))
    return dialogues


def name_source(source: object, name: str) -> str:
    """Return the path of a source, or its name where it is in memory."""
    return os.fspath(source) if isinstance(source, str | os.PathLike) else name


def _list_files(source: PathSource) -> list[Path]:
    if not is_folder(source):
        return [Path(source)]
    listed = find_response_files(source)
    files = [path for path in listed if format_of(path) == "json" and stem_of(path) not in _NO_DIALOGUES]
    if not files:
        raise DataError(Problem(os.fspath(source), None, "holds no file of dialogues (*.json)", "name another folder"))
    return files


def _read_file(path: Path) -> list[tuple[str, SGDDialogue]]:
    return _check_dialogues(json.load(path, _FORM), str(path))


def _check_dialogues(document: object, where: str) -> list[tuple[str, SGDDialogue]]:
    if isinstance(document, Mapping):
        by_id = _convert(document, dict[str, _Turns], where, _FORM)
        return [(name, SGDDialogue(where, dialogue.turns)) for name, dialogue in by_id.items()]
    dialogues = _convert(document, list[_Dialogue], where, _FORM)
    return [(dialogue.dialogue_id, SGDDialogue(where, dialogue.turns)) for dialogue in dialogues]


def _convert(document: object, kind: type[T], where: str, form: str) -> T:
    """Return a parsed document as a type; DataError with everything that does not fit."""
    try:
        return convert(document, kind)
    except (ValidationError, UnicodeEncodeError) as error:
        problems = check_types(document, kind, where, form, **_REMEDIES)
        raise DataError(problems or Problem(where, None, str(error), form)) from None


def check_turn(turn: Turn, where: str) -> Iterator[Problem]:
    """Yield what is wrong with the frames of a user turn."""
    for service, times in Counter(frame.service for frame in turn.frames).items():
        if times > 1:
            yield Problem(where, None, f"has {times} frames of the service {service!r}", "keep one of them")
    for frame in turn.frames:
        if frame.state is UNSET:
            yield Problem(where, None, f"the frame of {frame.service!r} has no state", STATE_FORM)
            continue
        for slot, values in frame.state.slot_values.items():
            if not values:
                what = f"the slot {slot!r} of {frame.service!r} has no value"
                yield Problem(where, None, what, "leave the slot out where it has none")


# The schema of schema-guided dialogues: its services, and which of their slots are categorical.
#
#     [{"service_name": "Inns_1", "slots": [{"name": "garden", "is_categorical": true}, ...]}, ...]
#
# A schema holds more (descriptions, intents, possible values), which no figure depends on. Every problem of the file is
# reported at once.

_SCHEMA_FORM = "give a list of services, each with service_name and slots"


class _Slot(Struct):
    name: str
    is_categorical: bool


class _Service(Struct):
    service_name: str
    slots: list[_Slot]


@dataclass(frozen=True, slots=True)
class Schema:
    """The slots of each service in the order of the file, and whether they are categorical."""

    services: Mapping[str, Mapping[str, bool]]
    digest: str


def read_schema(source: object) -> Schema:
    """Return the schema in a file, or in a parsed document."""
    where = name_source(source, "schema")
    document = json.load(source, _SCHEMA_FORM) if isinstance(source, str | os.PathLike) else source
    problems: list[Problem] = []
    services: dict[str, dict[str, bool]] = {}
    for number, service in enumerate(_convert(document, list[_Service], where, _SCHEMA_FORM)):
        name, slots = service.service_name, Counter(slot.name for slot in service.slots)
        here = f"{where}: [{number}]"
        if name in services:
            problems.append(Problem(here, None, f"the service {name!r} occurs twice", "keep one of them"))
        services[name] = {slot.name: slot.is_categorical for slot in service.slots}
        twice = (f"the slot {slot!r} occurs twice" for slot, times in slots.items() if times > 1)
        problems += [Problem(f"{here}.slots", None, what, "keep one of them") for what in twice]
    if problems:
        raise DataError(problems)
    # The order of slots is part of it, as products are taken in that order.
    return Schema(services, ObjectColumn([[name, list(slots.items())] for name, slots in services.items()]).digest)


SERVICE, DOMAIN, SEEN = "service", "domain", "seen"
"""Fields of a row by which results can be cut into slices."""
SHOWN_UNKNOWN = 20
"""Unknown dialogue ids are named one by one up to this number, and then counted."""

State: TypeAlias = Mapping[str, Any]
"""A state as plain data, as it is in the columns of a system."""


class TrueFrame(NamedTuple):
    """The truth about a service in a user turn."""

    dialogue: str
    turn: int
    service: str
    utterance: str
    state: State
    spans: list[list[str]]


@dataclass(frozen=True, slots=True)
class TrueFrames:
    """The frames of all user turns of the references, in order."""

    where: str
    dialogues: Mapping[str, SGDDialogue]
    frames: Sequence[TrueFrame]


@dataclass(frozen=True, slots=True)
class FramePredictions:
    """One system's rows, and how much of the references it covers."""

    rows: Rows
    dialogues: int
    frames: int
    """Frames of the references that are there."""
    unknown_slots: Mapping[str, int]
    """Slots that the schema does not have, each with its number of frames."""


def read_references(source: object, schema: Schema) -> TrueFrames:
    """Return the true frames of a file, a folder or a parsed document."""
    dialogues, where = read_dialogues(source, "references"), name_source(source, "references")
    frames: list[TrueFrame] = []
    problems: list[Problem] = []
    for name, dialogue in dialogues.items():
        for number, turn in enumerate(dialogue.turns):
            if turn.speaker != USER:
                continue
            here, said = f"{dialogue.where}: {name}[{number}]", turn.utterance or ""
            problems += check_turn(turn, here)
            for frame in turn.frames:
                if frame.service not in schema.services:
                    what = f"the schema has no service {frame.service!r}"
                    problems.append(Problem(here, None, what, "give its own schema"))
                if frame.state is not UNSET:
                    spans = _list_spans(frame, said)
                    frames.append(TrueFrame(name, number, frame.service, said, to_builtins(frame.state), spans))
    if problems:
        raise DataError(problems)
    if not frames:
        raise DataError(Problem(where, None, f"has no frame in a turn of {USER}", TURN_FORM))
    return TrueFrames(where, dialogues, frames)


def read_predictions(
    source: object, true: TrueFrames, schema: Schema, seen: frozenset[str] | None, system: str
) -> FramePredictions:
    """Return one system's frames next to the true ones; `seen`: the services that were there in training."""
    dialogues, where = read_dialogues(source, system), name_source(source, system)
    if problems := [*_check_names(dialogues, true, where), *_check_turns(dialogues, true)]:
        raise DataError(problems)
    predicted = [_find_frame(dialogues, frame) for frame in true.frames]
    states = [None if frame is None else to_builtins(frame.state) for frame in predicted]
    frames = ((frame.service, state) for frame, state in zip(true.frames, states, strict=True) if state is not None)
    slots = ((service, slot) for service, state in frames for slot in state["slot_values"])
    unknown = Counter(f"{service}.{slot}" for service, slot in slots if slot not in schema.services[service])
    spans = [
        None if frame is None or frame.slots is UNSET else _list_spans(frame, reference.utterance)
        for frame, reference in zip(predicted, true.frames, strict=True)
    ]
    rows = make_frame_rows(true, seen, system, where, states, spans)
    covered = sum(state is not None for state in states)
    return FramePredictions(rows, len(dialogues), covered, dict(unknown.most_common()))


def make_frame_rows(
    true: TrueFrames,
    seen: frozenset[str] | None,
    system: str,
    where: str,
    states: Sequence[State | None],
    spans: Sequence[list[list[str]] | None],
) -> Rows:
    """Return the rows of states and spans in the places of the true frames."""
    services = [frame.service for frame in true.frames]
    fields = {SERVICE: services, DOMAIN: [service.split("_")[0] for service in services]}
    if seen is not None:
        fields[SEEN] = ["seen" if service in seen else "unseen" for service in services]
    truth = [{"service": frame.service, "spans": frame.spans, **frame.state} for frame in true.frames]
    columns: dict[Input, ColumnData] = {FRAMES: ObjectColumn(states), TRUE_FRAMES: ObjectColumn(truth)}
    if any(span_list is not None for span_list in spans):
        columns[SPANS] = ObjectColumn(spans)
    shown = {
        "context": [frame.utterance for frame in true.frames],
        "response": ["" if state is None else _write_state(state) for state in states],
        "reference": [_write_state(frame.state) for frame in true.frames],
    }
    names = TextColumn.from_strings([frame.dialogue for frame in true.frames])
    turns = np.array([frame.turn for frame in true.frames], np.int64)
    kept = {name: RaggedColumn.from_lists([[value] for value in values]) for name, values in fields.items()}
    texts = {name: TextColumn.from_strings(column) for name, column in shown.items()}
    return Rows(system, columns, names, turns, where, fields=kept, shown=texts)


def _check_names(dialogues: Mapping[str, SGDDialogue], true: TrueFrames, where: str) -> Iterator[Problem]:
    unknown = [name for name in dialogues if name not in true.dialogues]
    remedy = "check that predictions and references belong together"
    for name in unknown[:SHOWN_UNKNOWN]:
        yield Problem(f"{dialogues[name].where}: {name}", None, "the references have no such dialogue", remedy)
    if len(unknown) > SHOWN_UNKNOWN:
        what = f"and {len(unknown) - SHOWN_UNKNOWN:,} more dialogues that the references do not have"
        yield Problem(where, None, what, remedy)


def _check_turns(dialogues: Mapping[str, SGDDialogue], true: TrueFrames) -> Iterator[Problem]:
    """Yield turns and frames that are not those of the references."""
    for name, dialogue in dialogues.items():
        if name not in true.dialogues:
            continue
        turns = true.dialogues[name].turns
        if len(dialogue.turns) > len(turns):
            what = f"has {len(dialogue.turns)} turns, and the references have {len(turns)}"
            yield Problem(f"{dialogue.where}: {name}", None, what, "give the turns of the references")
        for number, (turn, reference) in enumerate(zip(dialogue.turns, turns, strict=False)):
            where = f"{dialogue.where}: {name}[{number}]"
            if turn.speaker != reference.speaker:
                what = f"the speaker is {turn.speaker!r}, and {reference.speaker!r} in the references"
                yield Problem(where, None, what, "give the turns of the references in their order")
            elif reference.speaker == USER:
                yield from _check_user_turn(turn, reference, where)


def _check_user_turn(turn: Turn, reference: Turn, where: str) -> Iterator[Problem]:
    if turn.utterance is not UNSET and turn.utterance != (reference.utterance or ""):
        yield Problem(where, None, "the utterance is not that of the references", "give the turns in their order")
    yield from check_turn(turn, where)
    services = {frame.service for frame in turn.frames}
    for frame in reference.frames:
        if frame.service not in services:
            what = f"has no frame of the service {frame.service!r}"
            remedy = "predict every service of the turn; give an empty state if nothing is known"
            yield Problem(where, None, what, remedy)


def _find_frame(dialogues: Mapping[str, SGDDialogue], frame: TrueFrame) -> Frame | None:
    """Return what a system has in the place of a true frame."""
    dialogue = dialogues.get(frame.dialogue)
    if dialogue is None or frame.turn >= len(dialogue.turns):
        return None
    return next(other for other in dialogue.turns[frame.turn].frames if other.service == frame.service)


def _list_spans(frame: Frame, utterance: str) -> list[list[str]]:
    """Return slots with their words in a turn; a span without a place, such as a copied one, is left out."""
    return [
        [span.slot, utterance[span.start : span.exclusive_end]]
        for span in frame.slots or ()
        if span.start is not UNSET and span.exclusive_end is not UNSET
    ]


def _write_state(state: State) -> str:
    """Return a state as people read it in a report."""
    values = ", ".join(f"{slot}={' | '.join(values)}" for slot, values in state["slot_values"].items())
    asked = ", ".join(state["requested_slots"])
    return "; ".join([state["active_intent"], *filter(None, [values, asked and f"asks for {asked}"])])
