"""The schemas of what is printed as JSON, where it is not a saved file with a schema of its own.

They say what the `to_dict` of each result gives. A number that could not be computed is null there.
"""

from __future__ import annotations

from typing import Any, Literal

from msgspec import UNSET, Struct, UnsetType

from dialeval.analysis.alignment import Design
from dialeval.analysis.annotators import Ceiling
from dialeval.analysis.difference import Difference, Test
from dialeval.analysis.metric_differences import MetricDifference
from dialeval.analysis.metric_ranking import Place
from dialeval.analysis.ranking import Ranked
from dialeval.analysis.sampling import SampledRow

Interval = tuple[float, float]


class Comparison(Struct):
    """`dialeval compare -f json`."""

    baseline: str
    systems: list[str]
    test: Test
    alpha: float
    level: float
    resamples: int
    trials: int
    seed: int
    detect: float | None
    designs: dict[str, Design]
    panel: list[str]
    adjusted_for: list[str]
    warnings: list[str]
    differences: list[Difference]


class Correlation(Struct):
    """How far one metric agrees with people at one level."""

    n: int
    pearson: float | None
    spearman: float | None
    kendall: float | None
    pearson_interval: Interval | None
    spearman_interval: Interval | None
    kendall_interval: Interval | None
    pearson_p: float | None
    spearman_p: float | None
    kendall_p: float | None
    pearson_adjusted_p: float | None
    spearman_adjusted_p: float | None
    kendall_adjusted_p: float | None
    reason: str | UnsetType = UNSET


class Control(Struct):
    """The length of the response, and which metrics are not above it."""

    metric: str
    level: str
    not_above: list[str]


class MetricRanking(Struct):
    """The metrics, best first."""

    by: str
    level: str
    tests: int
    metrics: list[Place]


class Bootstrap(Struct):
    """How resamples were drawn."""

    resamples: int
    seed: int
    confidence: float


class Jackknife(Struct):
    """How intervals over dialogues were computed."""

    method: Literal["jackknife"]
    level: float


class Agreement(Struct):
    """`dialeval meta -f json`."""

    dialeval: str
    quality: str
    rows: int
    rated: int
    agreement: dict[str, dict[str, Correlation]]
    ceiling: Ceiling
    control: Control
    differences: list[MetricDifference]
    ranking: MetricRanking
    excluded: list[str]
    bootstrap: Bootstrap
    signatures: dict[str, str]
    skipped: dict[str, str]
    warnings: list[str]


class Ranking(Struct):
    """`dialeval rank -f json`; the number of `dialogues` or of `rows`, whichever pairs are of."""

    dialeval: str
    source: str
    systems: list[Ranked]
    groups: list[list[str]]
    between: dict[str, dict[str, list[int]]]
    p: dict[str, dict[str, float]]
    tie: float
    length: float
    length_interval: Interval
    pairs: int
    left_out: int
    intervals: Jackknife


class RatedRow(SampledRow, kw_only=True):
    """A line of `dialeval rate merge -o`, with --sample: a response that was drawn, and what one rater said of it."""

    rater: str
    scores: dict[str, float]


class RatingLine(Struct):
    """A line of what a rater sends back."""

    id: str
    rater: str
    scores: dict[str, float]
    seconds: float | UnsetType = UNSET
    comment: str | UnsetType = UNSET
    again: bool | UnsetType = UNSET


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
