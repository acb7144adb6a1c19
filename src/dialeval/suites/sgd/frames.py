"""Frames: what a system tracked of each service in each user turn of schema-guided dialogues, beside the truth.

A row is a frame of the references, in their order, so that the rows of all systems line up. Dialogues, and turns at the
end of one, may be missing in predictions: their rows are None. Everything else of the references has to be there, with
the same speakers and the same words of the user. Every fault of every file is reported at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from dialeval.core.batch import Need
from dialeval.core.columns import ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Problem, whole_characters
from dialeval.io.rows import Rows
from dialeval.suites.sgd.data import TURN_FORM, USER, Dialogue, Schema, place_of, read_dialogues, turn_faults

SERVICE, DOMAIN, SEEN = "service", "domain", "seen"
"""Fields of a row by which results can be cut into slices."""
SHOWN_UNKNOWN = 20
"""Unknown dialogue ids are named one by one up to this number, and then counted."""

State = Mapping[str, Any]


class Frame(NamedTuple):
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
    dialogues: Mapping[str, Dialogue]
    frames: Sequence[Frame]


@dataclass(frozen=True, slots=True)
class Predictions:
    """One system's rows, and how much of the references it covers."""

    rows: Rows
    dialogues: int
    frames: int
    """Frames of the references that are there."""
    unknown_slots: Mapping[str, int]
    """Slots that the schema does not have, each with its number of frames."""


def read_references(source: Any, schema: Schema) -> TrueFrames:
    """The true frames of a file, a folder or a parsed document."""
    dialogues, where = read_dialogues(source, "references"), place_of(source, "references")
    frames: list[Frame] = []
    faults: list[Problem] = []
    for name, dialogue in dialogues.items():
        for number, turn in enumerate(dialogue.turns):
            if turn["speaker"] != USER:
                continue
            here = f"{dialogue.where}: {name}[{number}]"
            faults += turn_faults(turn, here)
            for frame in turn.get("frames", ()):
                service = whole_characters(frame["service"])
                if service not in schema.services:
                    faults.append(Problem(here, None, f"the schema has no service {service!r}", "give its own schema"))
                if "state" in frame:
                    said = whole_characters(turn.get("utterance", ""))
                    frames.append(Frame(name, number, service, said, _state(frame["state"]), _spans(frame, said)))
    if faults:
        raise DataError(faults)
    if not frames:
        raise DataError(Problem(where, None, f"has no frame in a turn of {USER}", TURN_FORM))
    return TrueFrames(where, dialogues, frames)


def read_predictions(
    source: Any, true: TrueFrames, schema: Schema, seen: frozenset[str] | None, system: str
) -> Predictions:
    """One system's frames beside the true ones; `seen`: the services that were there in training."""
    dialogues, where = read_dialogues(source, system), place_of(source, system)
    if faults := [*_unknown(dialogues, true, where), *_misfits(dialogues, true)]:
        raise DataError(faults)
    given = [_given(dialogues, frame) for frame in true.frames]
    states = [None if frame is None else _state(frame["state"]) for frame in given]
    unknown = Counter(
        f"{frame.service}.{slot}"
        for frame, state in zip(true.frames, states, strict=True)
        for slot in (() if state is None else state["slot_values"])
        if slot not in schema.services[frame.service]
    )
    services = [frame.service for frame in true.frames]
    fields = {SERVICE: services, DOMAIN: [service.split("_")[0] for service in services]}
    if seen is not None:
        fields[SEEN] = ["seen" if service in seen else "unseen" for service in services]
    columns: dict[Need, Any] = {
        Need.FRAMES: ObjectColumn(states),
        Need.TRUE_FRAMES: ObjectColumn(
            [{"service": frame.service, "spans": frame.spans, **frame.state} for frame in true.frames]
        ),
    }
    spans = [
        None if frame is None or "slots" not in frame else _spans(frame, reference.utterance)
        for frame, reference in zip(given, true.frames, strict=True)
    ]
    if any(each is not None for each in spans):
        columns[Need.SPANS] = ObjectColumn(spans)
    shown = {
        "context": [frame.utterance for frame in true.frames],
        "response": ["" if state is None else _shown(state) for state in states],
        "reference": [_shown(frame.state) for frame in true.frames],
    }
    rows = Rows(
        system,
        columns,
        TextColumn.from_strings([frame.dialogue for frame in true.frames]),
        np.array([frame.turn for frame in true.frames], np.int64),
        where,
        fields={name: RaggedColumn.from_lists([[value] for value in values]) for name, values in fields.items()},
        shown={name: TextColumn.from_strings(texts) for name, texts in shown.items()},
    )
    return Predictions(rows, len(dialogues), sum(state is not None for state in states), dict(unknown.most_common()))


def _unknown(dialogues: Mapping[str, Dialogue], true: TrueFrames, where: str) -> Iterator[Problem]:
    unknown = [name for name in dialogues if name not in true.dialogues]
    remedy = "check that predictions and references belong together"
    for name in unknown[:SHOWN_UNKNOWN]:
        yield Problem(f"{dialogues[name].where}: {name}", None, "the references have no such dialogue", remedy)
    if len(unknown) > SHOWN_UNKNOWN:
        what = f"and {len(unknown) - SHOWN_UNKNOWN:,} more dialogues that the references do not have"
        yield Problem(where, None, what, remedy)


def _misfits(dialogues: Mapping[str, Dialogue], true: TrueFrames) -> Iterator[Problem]:
    """Turns and frames that are not those of the references."""
    for name, dialogue in dialogues.items():
        if name not in true.dialogues:
            continue
        turns = true.dialogues[name].turns
        if len(dialogue.turns) > len(turns):
            what = f"has {len(dialogue.turns)} turns, and the references have {len(turns)}"
            yield Problem(f"{dialogue.where}: {name}", None, what, "give the turns of the references")
        for number, (turn, reference) in enumerate(zip(dialogue.turns, turns, strict=False)):
            where = f"{dialogue.where}: {name}[{number}]"
            if turn["speaker"] != reference["speaker"]:
                what = f"the speaker is {turn['speaker']!r}, and {reference['speaker']!r} in the references"
                yield Problem(where, None, what, "give the turns of the references in their order")
            elif reference["speaker"] == USER:
                yield from _user_misfits(turn, reference, where)


def _user_misfits(turn: Mapping[str, Any], reference: Mapping[str, Any], where: str) -> Iterator[Problem]:
    if "utterance" in turn and turn["utterance"] != reference.get("utterance", ""):
        yield Problem(where, None, "the utterance is not that of the references", "give the turns in their order")
    yield from turn_faults(turn, where)
    services = {frame["service"] for frame in turn.get("frames", ())}
    for frame in reference.get("frames", ()):
        if frame["service"] not in services:
            what = f"has no frame of the service {frame['service']!r}"
            yield Problem(
                where, None, what, "predict every service of the turn; give an empty state if nothing is known"
            )


def _given(dialogues: Mapping[str, Dialogue], frame: Frame) -> Mapping[str, Any] | None:
    """What a system has in the place of a true frame."""
    dialogue = dialogues.get(frame.dialogue)
    if dialogue is None or frame.turn >= len(dialogue.turns):
        return None
    frames: Sequence[Mapping[str, Any]] = dialogue.turns[frame.turn]["frames"]
    return next(each for each in frames if whole_characters(each["service"]) == frame.service)


def _state(state: Mapping[str, Any]) -> State:
    """What figures depend on, as plain data."""
    return {
        "active_intent": whole_characters(state["active_intent"]),
        "requested_slots": [whole_characters(slot) for slot in state["requested_slots"]],
        "slot_values": {
            whole_characters(str(slot)): [whole_characters(value) for value in values]
            for slot, values in state["slot_values"].items()
        },
    }


def _spans(frame: Mapping[str, Any], utterance: str) -> list[list[str]]:
    """Slots with their words in a turn; a span without a place, such as one that was copied from before, is none."""
    placed = [span for span in frame.get("slots", ()) if "start" in span and "exclusive_end" in span]
    return [[whole_characters(span["slot"]), utterance[span["start"] : span["exclusive_end"]]] for span in placed]


def _shown(state: State) -> str:
    """A state as people read it in a report."""
    values = ", ".join(f"{slot}={' | '.join(values)}" for slot, values in state["slot_values"].items())
    asked = ", ".join(state["requested_slots"])
    return "; ".join([state["active_intent"], *filter(None, [values, asked and f"asks for {asked}"])])
