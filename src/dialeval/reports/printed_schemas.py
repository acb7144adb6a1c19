"""The schemas of what is printed as JSON, where it is not a saved file with a schema of its own.

They say what the `to_dict` of each result gives. A number that could not be computed is null there.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from dialeval.analysis.sampling import SampledRow

Interval = tuple[float, float]


class RatedRow(SampledRow, kw_only=True):
    """A line of `dialeval rate merge -o`, with --sample: a response that was drawn, and what one rater said of it."""

    rater: str
    scores: dict[str, float]


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


class JournalManifest(Struct):
    """`manifest.json` in the folder of `--resume`: what the run is about."""

    dialeval: str
    metrics: dict[str, str]
    resources: dict[str, str]
    fields: dict[str, Any]
    systems: dict[str, str | None]
    inputs: dict[str, dict[str, Any]]
    chunks: list[list[str]]
