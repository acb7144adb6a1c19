"""The schemas of a folder of rows to rate: `sample.json`, and a line of `rows.jsonl`.

A module of its own, since msgspec is imported with it; who reads such a folder imports it then.
"""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from dialeval.core.gate import FILE_NAME, SHA256

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Identifier = Annotated[str, Meta(min_length=1, max_length=64)]
Probability = Annotated[float, Meta(gt=0, le=1)]


class SavedSystem(Struct):
    """A system of the run that was drawn from."""

    rows: Count
    dialogues: Count
    digest: Annotated[str, Meta(pattern=SHA256)]


class SavedStratum(Struct):
    """How much a stratum has and how much of it was drawn: units of the design, and responses of all systems."""

    units: Count
    drawn_units: Count
    responses: Count
    drawn_responses: Count

    def __post_init__(self) -> None:
        if self.drawn_units > self.units or self.drawn_responses > self.responses:
            raise ValueError("more was drawn from a stratum than it has")


class SavedRows(Struct):
    """The file of the rows."""

    file: Annotated[str, Meta(pattern=FILE_NAME)]
    sha256: Annotated[str, Meta(pattern=SHA256)]


class SavedSample(Struct):
    """`sample.json`."""

    dialeval: str
    format: Annotated[int, Meta(ge=1)]
    seed: Count
    unit: Literal["contexts", "responses", "dialogues"]
    apart: bool
    """Whether systems were drawn from one by one."""
    method: Literal["equal", "unsure"]
    by: list[str]
    unsure: str | None
    systems: Annotated[dict[str, SavedSystem], Meta(min_length=1)]
    strata: Annotated[dict[str, SavedStratum], Meta(min_length=1)]
    rows: SavedRows


class SampledRow(Struct, omit_defaults=True):
    """A line of `rows.jsonl`: a response that people are to rate."""

    id: Identifier
    system: str
    row: Annotated[int, Meta(ge=1, le=1 << 53)]
    """The number of the row among those of its system, from 1 on."""
    probability: Probability
    """Of being drawn."""
    stratum: str
    response: str
    context: list[str] = []
    roles: list[str] = []
    """Who said each turn of the context, where that is known."""
    reference: list[str] = []
    dialog_id: str | None = None
    turn: Count | None = None

    @property
    def place(self) -> int:
        """Where the row is in the items of its system."""
        return self.row - 1
