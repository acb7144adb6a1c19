"""The schema of `run.json`: what a saved run must hold, field by field, before anything is made of it.

Details, which families of metrics add under names of their own, have schemas here too, since a report shows them as
they are in the file. A detail that is not listed may be anything.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, convert, to_builtins

from dialeval.core.errors import SettingError
from dialeval.core.fold import Analytic, Level, Resampling
from dialeval.core.signature import Signature
from dialeval.core.validation import FILE_NAME, SHA256, nan_to_null

FORMAT = 3
"""Version of the saved layout; a run of another layout is refused with a clear message."""

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Spread = Annotated[float, Meta(ge=0)]
Role: TypeAlias = Literal["system", "floor", "ceiling"]
"""What a result is of: a system that somebody built, or a floor or ceiling (an anchor) that is scored next to it."""


class Record(Struct, frozen=True):
    """A result whose fields are its JSON document: API, document and schema are one definition."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data for JSON; NaN is None.

        Returns:
            The data, with the names that the JSON has.
        """
        plain: dict[str, Any] = nan_to_null(to_builtins(self, enc_hook=float))
        return plain


class SavedFile(Struct):
    """A file next to `run.json`."""

    file: Annotated[str, Meta(pattern=FILE_NAME)]
    sha256: Annotated[str, Meta(pattern=SHA256)]
    systems: dict[str, str] = {}
    """The names of systems in the file that are called otherwise in the run, with those of the run."""


class SavedEstimate(Struct):
    """An estimate; null is NaN."""

    mean: float | None
    std: Spread | None
    confidence: Spread | None
    interval: tuple[float | None, float | None] | None
    interval_by: dict[str, Any] | None
    rows: Count
    scored: Count
    of: Literal["corpus", "rows"]
    level: Level
    signature: str | None

    def __post_init__(self) -> None:
        if self.scored > self.rows:
            raise ValueError(f"{self.scored} of {self.rows} rows are scored")
        self.method()
        if self.signature is not None:
            try:
                Signature.parse(self.signature)
            except SettingError as error:
                raise ValueError(str(error)) from None

    def method(self) -> Resampling | Analytic | None:
        """Return how the interval was computed."""
        how = self.interval_by
        return None if how is None else convert(how, Resampling) if "resamples" in how else convert(how, Analytic)


class SavedResult(Struct):
    """The estimates of one system."""

    metrics: dict[str, SavedEstimate]
    skipped: dict[str, str]
    source: str | None
    role: Role


class Standing(Struct):
    """Where a system is between a floor and a ceiling."""

    share: float
    floor: str
    ceiling: str


class Baselines(Struct):
    """The detail `baselines`."""

    rows_of: str | None = None
    left_out: dict[str, str] = {}
    standing: dict[str, dict[str, Standing]] = {}


class Domain(Struct):
    """What a user wants of a domain, and what became of it."""

    domain: str
    wishes: dict[str, str]
    asked: list[str]
    matched: bool
    told: list[str]
    complete: bool


class Offer(Struct):
    """The venues that a turn offers."""

    venues: Count
    names: list[str]


class Step(Struct):
    """What a turn did that counts."""

    domain: str
    told: list[str]
    early: list[str]
    offer: Offer | None = None


class Turn(Struct):
    """A turn of a task dialogue."""

    turn: Count
    response: str
    active: list[str]
    estimated: bool
    state: dict[str, dict[str, str]]
    true_state: bool
    steps: list[Step]
    user: str | None = None
    """What the user said before, where the data has it."""


class Cause(Struct):
    """Why a dialogue was lost."""

    lost: str
    domain: str
    cause: str
    detail: str


class Transcript(Struct):
    """An entry of the detail `transcripts`; see `engine.transcripts`."""

    dialogue: str
    inform: bool
    success: bool
    domains: list[Domain]
    turns: list[Turn]
    causes: list[Cause]


Shares = tuple[float | None, float | None, float | None]


class Curve(Struct):
    """An entry of the detail `curves`; see `engine.breakdown`."""

    dialogue: str
    turns: Annotated[list[int], Meta(min_length=1)]
    reference: list[str | None]
    label: list[str | None]
    shares: list[Shares]
    probabilities: list[Shares]
    said: list[tuple[int | None, bool, str]] = []
    """The turn-index of each utterance, whether it is the user's, and the text."""

    def __post_init__(self) -> None:
        rest = len(self.reference), len(self.label), len(self.shares), len(self.probabilities)
        if {len(self.turns)} != set(rest):
            raise ValueError("a curve has columns of different lengths")


class Hypothesis(Struct):
    """Where a hypothesis landed."""

    group: str | None
    score: float | None
    text: str


class Group(Struct):
    """A group of references."""

    group: str
    references: list[str]


class Alignment(Struct):
    """An entry of the detail `alignments`: one query."""

    query: str | None
    mds: float | None
    hypotheses: list[Hypothesis]
    groups: list[Group]
    unreached: list[str]


class SavedRun(Struct):
    """`run.json`."""

    dialeval: str
    systems: dict[str, SavedResult]
    warnings: list[str]
    format: Annotated[int, Meta(ge=1)]
    digest: Annotated[str, Meta(pattern=SHA256)]
    """SHA-256 of all else in the document, see `validation.content_digest`."""
    items: list[SavedFile]
    """Files of consecutive rows, in order."""
    rows: list[SavedFile] = []
    contributions: list[SavedFile] = []
    comparison: Annotated[list[SavedFile], Meta(max_length=1)] = []
    command: str = ""
    baselines: Baselines | UnsetType = UNSET
    breakdown: dict[str, list[dict[str, Any]]] = {}
    transcripts: dict[str, list[Transcript]] = {}
    failures: dict[str, dict[str, list[str]]] = {}
    curves: dict[str, list[Curve]] = {}
    alignments: dict[str, list[Alignment]] = {}

    def __post_init__(self) -> None:
        turns: dict[str, list[int]] = {}
        for curve in (curve for curves in self.curves.values() for curve in curves):
            if turns.setdefault(curve.dialogue, curve.turns) != curve.turns:
                raise ValueError(f"the curves of {curve.dialogue!r} are of different turns")
