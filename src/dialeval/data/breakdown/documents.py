"""The documents of the breakdown challenge as typed objects: an annotated dialogue, and a detector's labels for one.

    {"dialogue-id": ..., "turns": [{"turn-index": 2, "speaker": "S", "annotations": [{"breakdown": "T"}, ...]}, ...]}
    {"dialogue-id": ..., "turns": [{"turn-index": 2, "labels": [{"breakdown": "O", "prob-O": 0.8, ...}]}, ...]}

Only the fields that matter are decoded; a dialogue of the challenge has twenty times as many bytes as those. What the
quick decoder does not take (NaN, which Python's own `json` writes, or anything that is not as expected) is parsed as a
whole and checked again, which gives the value or says what is wrong and where.
"""

from __future__ import annotations

import json
from enum import Enum
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec
import numpy as np
from msgspec import UNSET, Struct

from dialeval.core.errors import DataError
from dialeval.core.rowtable import NO_TURN
from dialeval.data.breakdown.faults import MARK, Findings
from dialeval.data.formats.json_document import parsed
from dialeval.data.formats.opening import BYTE_ORDER_MARK

if TYPE_CHECKING:
    from dialeval.data.breakdown.files import Document

T = TypeVar("T")


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
    """A turn of an annotated dialogue; of turns without annotations the other fields do not matter."""

    annotations: list[Annotation] | None
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
    return msgspec.convert(parse(document, findings), kind)


def parse(document: Document, findings: Findings) -> Any:
    """The parsed document, NaN and infinities allowed as in Python's own parser."""
    data = document.content
    if not isinstance(data, bytes):
        return data
    if data.startswith(BYTE_ORDER_MARK):
        findings.add(MARK, document.where, document.line, "starts with a byte order mark")
    try:
        return parsed(np.frombuffer(data, np.uint8), document.where)
    except DataError as error:
        if b"NaN" not in data and b"Infinity" not in data:
            raise
        try:
            return json.loads(data.removeprefix(BYTE_ORDER_MARK))
        except (ValueError, RecursionError):
            raise error from None
