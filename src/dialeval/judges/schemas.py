"""The schemas of the JSON files of judges and models. What else a document holds are facts for people.

A module of its own, since msgspec is imported with it: the names of metrics are known without it.
"""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta, Struct

from dialeval.io.schemas import Digest, Size
from dialeval.judges.cross_encoder import PairShape
from dialeval.judges.judge import BreakdownScale, Scale


class JudgeEncoder(Struct):
    """The encoder that a judge is for."""

    name: str
    digest: str
    tokens: Annotated[int, Meta(ge=0, le=1 << 24)]


class Calibration(Struct):
    """alpha and beta of each case."""

    both: tuple[float, float]
    context: tuple[float, float]
    reference: tuple[float, float]

    def __post_init__(self) -> None:
        if not all(beta for _, beta in (self.both, self.context, self.reference)):
            raise ValueError("a beta is 0")


class SavedJudge(Struct):
    """`judge.json` of a judge of `dialeval adem`."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    identity: float
    calibration: Calibration
    encoder: JudgeEncoder
    turns: Size
    sha256: Digest
    digest: Digest
    """SHA-256 of all else in the document, see `validation.content_digest`."""


class SavedModel(Struct):
    """The JSON file of a model that PyTorch trained."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    settings: dict[str, Any]
    sha256: Digest
    digest: Digest


class PlainEncoder(Struct):
    """The encoder that a judge of dialogue changes."""

    name: str
    digest: str


class SavedDialogueJudge(Struct):
    """`judge.json` of a judge of dialogue."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    scale: Scale
    shape: PairShape
    encoder: PlainEncoder
    sha256: Digest
    digest: Digest
    breakdown: BreakdownScale = BreakdownScale()
