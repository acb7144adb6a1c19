"""The schemas of the JSON files of judges and models. What else a document holds are facts for people.

A module of its own, since msgspec is imported with it: the names of metrics are known without it.
"""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from dialeval.core.validation import JsonObject
from dialeval.io.schemas import Digest, Size
from dialeval.judges.judge import BreakdownScale, PairShape, Scale


class Saved(Struct, kw_only=True):
    """What the JSON file of every judge and model has."""

    format: Annotated[int, Meta(ge=1)]
    kind: str
    sha256: Digest
    """SHA-256 of the tensors."""
    digest: Digest
    """SHA-256 of all else in the document, see `validation.content_digest`."""


class JudgeEncoder(Struct):
    """The encoder that a judge is for, and the word pieces of a text that count, where the judge says so."""

    name: str
    digest: str
    tokens: Annotated[int, Meta(ge=0, le=1 << 24)] = 0


class Calibration(Struct):
    """alpha and beta of each case."""

    both: tuple[float, float]
    context: tuple[float, float]
    reference: tuple[float, float]

    def __post_init__(self) -> None:
        if not all(beta for _, beta in (self.both, self.context, self.reference)):
            raise ValueError("a beta is 0")


class SavedJudge(Saved, kw_only=True):
    """`judge.json` of a judge of `dialeval adem`."""

    identity: float
    calibration: Calibration
    encoder: JudgeEncoder
    turns: Size


class SavedModel(Saved, kw_only=True):
    """The JSON file of a model that PyTorch trained."""

    settings: JsonObject


class SavedDialogueJudge(Saved, kw_only=True):
    """`judge.json` of a judge of dialogue."""

    scale: Scale
    shape: PairShape
    encoder: JudgeEncoder
    breakdown: BreakdownScale = BreakdownScale()
