"""The documents of the breakdown challenge as typed objects: an annotated dialogue, and a detector's labels for one.

    {"dialogue-id": ..., "turns": [{"turn-index": 2, "speaker": "S", "annotations": [{"breakdown": "T"}, ...]}, ...]}
    {"dialogue-id": ..., "turns": [{"turn-index": 2, "labels": [{"breakdown": "O", "prob-O": 0.8, ...}]}, ...]}

Only the fields that matter are decoded; a dialogue of the challenge has twenty times as many bytes as those. What the
quick decoder does not take (NaN, which Python's own `json` writes, or anything that is not as expected) is parsed as a
whole and checked again, without the parts of a dialogue that the original does not look at either. That gives the value
or says what is wrong and where.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct, UnsetType, ValidationError

from dialeval.core.errors import DataError
from dialeval.core.rowtable import NO_TURN
from dialeval.data.breakdown.faults import MARK, Findings
from dialeval.data.formats.json_document import parsed
from dialeval.data.formats.opening import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from dialeval.data.breakdown.files import Document

T = TypeVar("T")

SYSTEM, USER = "S", "U"
"""The speakers."""


class Judgement(str, Enum):
    """What an annotator said of a turn: no breakdown (O), a possible one (T), a breakdown (X), or something else."""

    O = "O"  # noqa: E741
    T = "T"
    X = "X"
    OTHER = "?"

    @classmethod
    def _missing_(cls, value: object) -> Judgement:  # noqa: ARG003
        return cls.OTHER


# Without garbage collection, which would visit nine million annotations again and again; none refers to itself.
class Annotation(Struct, gc=False):
    """What one annotator said of a turn."""

    breakdown: Judgement | None


class Turn(Struct, gc=False, rename={"index": "turn-index"}):
    """A turn of an annotated dialogue; of turns without annotations the other fields do not matter.

    Annotations may be missing only where the speaker is the user.
    """

    annotations: list[Annotation] | UnsetType | None = UNSET
    speaker: Any = UNSET
    index: Any = NO_TURN


class Dialogue(Struct, gc=False, rename={"name": "dialogue-id"}):
    """An annotated dialogue."""

    name: str
    turns: list[Turn]


class Label(Struct, gc=False, rename={"o": "prob-O", "t": "prob-T", "x": "prob-X"}):
    """What a detector says of a turn; `UNSET` where it says nothing."""

    breakdown: Any = UNSET
    o: Any = UNSET
    t: Any = UNSET
    x: Any = UNSET


class Entry(Struct, gc=False, rename={"index": "turn-index"}):
    """The labels of one turn, of which the first counts."""

    labels: list[Label]
    index: Any = None


class Labels(Struct, gc=False, rename={"dialogue": "dialogue-id"}):
    """The labels of a detector for a dialogue."""

    turns: list[Entry]
    dialogue: Any = None


_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {kind: msgspec.json.Decoder(kind) for kind in (Dialogue, Labels)}


def decoded(document: Document, kind: type[T], findings: Findings) -> T:
    """A document as an object of its kind; `ValidationError` says where it is none, `DataError` that it is no JSON."""
    content = document.content
    if isinstance(content, bytes):
        try:
            # The decoder does not look at the bytes of texts that it passes over.
            if content.isascii() or content.decode():
                value: T = _DECODERS[kind].decode(content)
                return value
        except (ValueError, RecursionError):
            pass
    given = parse(document, findings)
    try:
        return msgspec.convert(_looked_at(given) if kind is Dialogue else given, kind)
    except UnicodeEncodeError:
        raise ValidationError("a name holds half a character") from None


def _looked_at(dialogue: Any) -> Any:
    """A parsed dialogue without what the original never looks at, such as the annotations of a user."""
    if not isinstance(dialogue, dict):
        return dialogue
    kept = {key: dialogue[key] for key in ("dialogue-id", "turns") if key in dialogue}
    turns = kept.get("turns")
    if isinstance(turns, list):
        kept["turns"] = [_looked_at_turn(turn) for turn in turns]
    elif turns in ({}, ""):
        kept["turns"] = []
    return kept


def _looked_at_turn(turn: Any) -> Any:
    if not isinstance(turn, dict):
        return turn
    kept = {key: turn[key] for key in ("speaker", "annotations", "turn-index") if key in turn}
    given = kept.get("annotations")
    if kept.get("speaker") == USER:
        kept["annotations"] = None
    elif isinstance(given, list):
        kept["annotations"] = [_looked_at_annotation(each) for each in given]
    return kept


def _looked_at_annotation(annotation: Any) -> Any:
    if not isinstance(annotation, dict) or "breakdown" not in annotation:
        return annotation
    given = annotation["breakdown"]
    return {"breakdown": given if given in ("O", "T", "X") else None}


def parse(document: Document, findings: Findings) -> Any:
    """The parsed document; what only Python's own parser takes is taken too: NaN, halves of characters."""
    data = document.content
    if not isinstance(data, bytes):
        return data
    if data.startswith(BYTE_ORDER_MARK):
        findings.add(MARK, document.where, document.line, "starts with a byte order mark")
    try:
        return parsed(np.frombuffer(data, np.uint8), document.where)
    except DataError as error:
        try:
            return json.loads(data.removeprefix(BYTE_ORDER_MARK).decode())
        except (ValueError, RecursionError):
            raise error from None
