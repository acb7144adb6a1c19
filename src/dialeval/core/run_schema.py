"""The schema of `run.json`: what a saved run must hold, field by field, before anything is made of it.

Features add details under names of their own, and define their types, which are imported only where a run has the
detail. A report shows details as they are in the file. One that no feature names may be anything.
"""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name
from typing import Annotated, Literal, TypeAlias

from msgspec import UNSET, Meta, Struct, UnsetType, convert, field, to_builtins

from dialeval.core import validation
from dialeval.core.account import Account
from dialeval.core.errors import SettingError
from dialeval.core.features import list_features
from dialeval.core.fold import Analytic, Level, Resampling
from dialeval.core.signature import Signature
from dialeval.core.validation import FILE_NAME, SHA256, JsonObject, nan_to_null

FORMAT = 4
"""Version of the saved layout; a run of another layout is refused with a clear message."""

Count = Annotated[int, Meta(ge=0, le=1 << 53)]
Spread = Annotated[float, Meta(ge=0)]
Role: TypeAlias = Literal["system", "floor", "ceiling"]
"""What a result is of: a system that somebody built, or a floor or ceiling (an anchor) that is scored next to it."""


class Record(Struct, frozen=True):
    """A result whose fields are its JSON document: API, document and schema are one definition."""

    def to_dict(self) -> JsonObject:
        """Return plain data for JSON; NaN is None.

        Returns:
            The data, with the names that the JSON has.
        """
        return nan_to_null(to_builtins(self, enc_hook=float))


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
    half_width: Spread | None
    interval: tuple[float | None, float | None] | None
    interval_by: JsonObject | None
    units: Count
    scored: Count
    of: Literal["corpus", "rows"]
    level: Level
    signature: str | None
    missing: Count = 0

    def __post_init__(self) -> None:
        if self.scored > self.units:
            raise ValueError(f"{self.scored} of {self.units} rows are scored")
        self.read_method()
        if self.signature is not None:
            try:
                Signature.parse(self.signature)
            except SettingError as error:
                raise ValueError(str(error)) from None

    def read_method(self) -> Resampling | Analytic | None:
        """Return how the interval was computed."""
        how = self.interval_by
        return None if how is None else convert(how, Resampling) if "resamples" in how else convert(how, Analytic)


class SavedResult(Struct):
    """The estimates of one system."""

    metrics: dict[str, SavedEstimate]
    skipped: dict[str, str]
    source: str | None
    role: Role
    account: Account | None = None


class SavedStanding(Struct):
    """The position of a system between a floor and a ceiling."""

    share: float
    floor: str
    ceiling: str


class SavedBaselines(Struct):
    """The detail `baselines`."""

    rows_of: str | None = None
    left_out: dict[str, str] = {}
    standing: dict[str, dict[str, SavedStanding]] = {}


class SamplingSplit(Struct):
    """How much of the variance of the grades of a judge is its sampling, and of how many answers per reply."""

    variance: Annotated[float, Meta(ge=0)]
    answers: Annotated[int, Meta(ge=2)]


class SamplingDetails(Struct):
    """The detail about judges that answered repeatedly, by system and metric."""

    judge_sampling: dict[str, dict[str, SamplingSplit]] = field(default_factory=dict)


class SavedRun(Struct):
    """`run.json`."""

    dialeval: str
    systems: dict[str, SavedResult]
    warnings: list[str]
    format: Annotated[int, Meta(ge=1)]
    digest: Annotated[str, Meta(pattern=SHA256)]
    """SHA-256 of all else in the document, see `validation.content_digest`."""
    scores: list[SavedFile]
    """Files of consecutive rows, in order."""
    rows: list[SavedFile] = []
    contributions: list[SavedFile] = []
    comparison: Annotated[list[SavedFile], Meta(max_length=1)] = []
    command: str = ""
    baselines: SavedBaselines | UnsetType = UNSET


def check_details(document: Mapping[str, object], where: str, remedy: str) -> None:
    """Raise DataError where a detail of a feature is not what the feature saves."""
    homes = (feature.details[name] for feature in list_features() for name in feature.details if name in document)
    for home in dict.fromkeys(homes):
        validation.convert(document, resolve_name(home), where, remedy)
