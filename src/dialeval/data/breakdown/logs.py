"""Annotated dialogues of the breakdown challenge: which system turns were judged, and how often as O, T and X.

    {"dialogue-id": ..., "turns": [{"turn-index": 2, "speaker": "S", "annotations": [{"breakdown": "T"}, ...]}, ...]}

Turns of the user and turns without annotations are passed over. Annotations other than O, T and X do not count.

Documents are parsed by orjson. A large folder is skimmed by a kernel instead, which builds no objects and takes only
documents that are beyond doubt; every other one is parsed as well, so that the result and the faults are the same.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dialeval.core.errors import DataError
from dialeval.data.breakdown.faults import (
    MARK,
    NO_REFERENCE,
    REPEATED_DIALOGUE,
    UNREADABLE_LOG,
    Findings,
    named_turns,
)
from dialeval.data.breakdown.files import Document, Folder, Store, open_logs
from dialeval.data.rows.system import NO_TURN

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from dialeval.core.arrays import Floats, Ints
    from dialeval.data.formats.opening import PathSource

SKIMMED_FILES = 2_000
"""A folder from this number of files on is skimmed: below it, loading the compiler costs more than it saves."""

_MARK = b"\xef\xbb\xbf"


class NotJsonError(ValueError):
    """A document that is no JSON; the message says why."""


class Log(NamedTuple):
    """What an annotated dialogue holds."""

    dialogue: str
    turns: list[int]
    counts: list[int]
    """O, T and X of the first annotated turn, of the second, and so on."""
    foreign: int = 0
    """Annotations that are none of the three."""


@dataclass(frozen=True, eq=False, slots=True)
class Annotated:
    """All annotated turns, dialogue after dialogue."""

    where: str
    dialogues: list[str]
    offsets: Ints
    """Dialogue `k` has the turns `offsets[k]` to `offsets[k + 1]`."""
    turns: Ints
    """The turn-index of each; `NO_TURN` where there is none."""
    counts: Floats
    """O, T and X of each."""


@dataclass
class Gathered:
    """Dialogues as they are found: where each stands, and its turns in arrays that are joined in the end."""

    places: list[tuple[str, int | None]] = field(default_factory=list)
    dialogues: list[str] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    turns: list[Ints] = field(default_factory=lambda: [np.empty(0, np.int64)])
    counts: list[Ints] = field(default_factory=lambda: [np.empty((0, 3), np.int64)])
    foreign: int = 0

    def add(self, where: str, line: int | None, log: Log) -> None:
        """One more dialogue."""
        self.places.append((where, line))
        self.dialogues.append(log.dialogue)
        self.sizes.append(len(log.turns))
        self.turns.append(np.array(log.turns, np.int64))
        self.counts.append(np.array(log.counts, np.int64).reshape(-1, 3))
        self.foreign += log.foreign


def read_logs(source: PathSource | Iterable[Mapping[str, Any]], findings: Findings) -> Annotated:
    """The annotated turns of a folder, a file, an archive, or of documents that are parsed already."""
    gathered = Gathered()
    if not isinstance(source, str | os.PathLike):
        for number, document in enumerate(source, 1):
            _add_log(gathered, "data", number, document, findings)
        return _together("data", gathered, findings)
    try:
        for store in open_logs(source):
            _gather(store, gathered, findings)
    except DataError as error:
        findings.refuse(*error.faults)
        raise DataError(findings.faults) from None
    return _together(os.fspath(source), gathered, findings)


def parse(document: Document, findings: Findings) -> Any:
    """The parsed document, NaN and infinities allowed as in Python's own parser."""
    import orjson

    data = document.data
    if data[:3] == _MARK:
        findings.add(MARK, document.where, document.line, "starts with a byte order mark")
        data = data[3:]
    try:
        return orjson.loads(data)
    except orjson.JSONDecodeError as error:
        if b"NaN" in data or b"Infinity" in data:
            return _parsed_by_python(data)
        place = "" if document.line is not None else f", line {error.lineno}"
        raise NotJsonError(f"not JSON ({error.msg.partition(': line')[0]}{place})") from None


def _parsed_by_python(data: bytes) -> Any:
    import json

    try:
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise NotJsonError(f"not JSON ({error})") from None


def _gather(store: Store, gathered: Gathered, findings: Findings) -> None:
    if isinstance(store, Folder) and len(store.names) >= SKIMMED_FILES:
        from dialeval.data.breakdown.skim import skim_folder

        for document in skim_folder(store, gathered):
            add_document(gathered, document, findings)
        return
    for document in store.documents():
        add_document(gathered, document, findings)


def add_document(gathered: Gathered, document: Document, findings: Findings) -> None:
    """Parse a document and add what it holds, or a fault."""
    try:
        parsed = parse(document, findings)
    except NotJsonError as error:
        findings.add(UNREADABLE_LOG, document.where, document.line, str(error))
        return
    _add_log(gathered, document.where, document.line, parsed, findings)


def _add_log(gathered: Gathered, where: str, line: int | None, document: Any, findings: Findings) -> None:
    try:
        gathered.add(where, line, _extracted(document))
    except (KeyError, TypeError, AttributeError) as error:
        what = f"has no {error}" if isinstance(error, KeyError) else _misshapen(document)
        findings.add(UNREADABLE_LOG, where, line, what)


def _extracted(document: Any) -> Log:
    dialogue = document["dialogue-id"]
    if not isinstance(dialogue, str):
        raise TypeError
    turns: list[int] = []
    counts: list[int] = []
    foreign = 0
    for turn in document["turns"]:
        annotations = turn["annotations"]
        if annotations and turn["speaker"] == "S":
            labels = [annotation["breakdown"] for annotation in annotations]
            counted = labels.count("O"), labels.count("T"), labels.count("X")
            foreign += len(labels) - sum(counted)
            index = turn.get("turn-index", NO_TURN)
            if type(index) is not int or not -1 <= index < 1 << 62:
                raise TypeError
            turns.append(index)
            counts += counted
    return Log(dialogue, turns, counts, foreign)


def _misshapen(document: Any) -> str:
    if not isinstance(document, dict):
        return "is no JSON object"
    if not isinstance(document["dialogue-id"], str):
        return f"has the dialogue-id {document['dialogue-id']!r}, which is no text"
    if not isinstance(document.get("turns"), list):
        return 'has no list of "turns"'
    return "has a turn that is no object with a whole turn-index and a list of annotations"


def _together(where: str, gathered: Gathered, findings: Findings) -> Annotated:
    """The columns of all dialogues, and what is wrong with them as a whole."""
    if len(set(gathered.dialogues)) < len(gathered.dialogues):
        first: dict[str, str] = {}
        for (place, line), dialogue in zip(gathered.places, gathered.dialogues, strict=True):
            if dialogue in first:
                what = f"the dialogue {dialogue!r} is also in {first[dialogue]}"
                findings.add(REPEATED_DIALOGUE, place, line, what)
            first.setdefault(dialogue, place)
    if gathered.foreign:
        findings.remarks.append(f"{gathered.foreign} annotations are none of O, T and X and do not count")
    offsets = np.zeros(len(gathered.sizes) + 1, np.int64)
    np.cumsum(gathered.sizes, out=offsets[1:])
    turns, counts = np.concatenate(gathered.turns), np.concatenate(gathered.counts).astype(np.float64)
    bare = counts.sum(axis=1) == 0
    for at in np.unique(np.searchsorted(offsets, np.flatnonzero(bare), side="right") - 1).tolist():
        rows = slice(offsets[at], offsets[at + 1])
        mute = turns[rows][bare[rows]].tolist()
        what = f"{named_turns(mute)}: no annotation is O, T or X"
        place, line = gathered.places[at]
        findings.add(NO_REFERENCE, place, line, what, len(mute))
    return Annotated(where, gathered.dialogues, offsets, turns, counts)
