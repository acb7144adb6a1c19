"""Evaluate breakdown detectors: read, floors and ceilings next to them, run, tables.

`BreakdownRun` is a `Run` like any other, with the counts behind its scores: counts and both confusion tables per
detector and threshold, and one row per turn.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from itertools import groupby
from operator import itemgetter
from typing import Any, cast

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import NumberColumn, TextColumn
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Metric
from dialeval.core.result import Result, Run
from dialeval.core.run_schema import Role
from dialeval.core.signature import Signature
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.engine.folding import Options, Progress, run_sources
from dialeval.engine.intervals import IntervalKind
from dialeval.engine.plan import Plan
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems
from dialeval.metrics import breakdown as detection
from dialeval.metrics.breakdown import LABELS, BreakdownDistance, Codes, Tables, shares
from dialeval.stats.correlation import Distance, compute_krippendorff_alpha
from dialeval.suites.breakdown.documents import Findings
from dialeval.suites.breakdown.reading import BreakdownData, Match, read, read_logs

_ANNOTATOR, _ORACLE = "ceiling/annotator", "ceiling/oracle"


@dataclass(frozen=True, eq=False, repr=False)
class BreakdownRun(Run):
    """The results of breakdown detectors, with the confusion tables and turns behind them.

    Attributes:
        systems: The results, by detector, floor and ceiling.
        version: The version of dialeval.
        warnings: Remarks about the data.
        details: Further data, by name.
        tables: Statistics and confusion tables, by detector and threshold.
        data: The dialogues and labels.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> run.detectors
        ['keywords']
        >>> next(run.turns())["label"]
        'O'
    """

    tables: dict[str, dict[float, Tables]] = field(default_factory=dict)
    data: BreakdownData | None = None

    def __eq__(self, other: object) -> bool:
        """Return whether two runs have equal values; a loaded one is a plain `Run`, whose tables are in `details`."""
        if not isinstance(other, Run):
            return NotImplemented
        names = ("systems", "version", "warnings", "details")
        return all(getattr(self, name) == getattr(other, name) for name in names)

    __hash__ = None

    def with_report_details(self) -> Run:
        if self.data is None:
            return self
        said = [_write_utterance(text) for text in self.data.annotated.utterances]
        systems = dict(self.systems)
        for system, rows in groupby(self.turns(), key=itemgetter("system")):
            pairs = [(_write_label(row, "label", "prob"), _write_label(row, "reference", "share")) for row in rows]
            columns = {"context": said, "response": [own for own, _ in pairs], "reference": [true for _, true in pairs]}
            texts = {name: TextColumn.from_strings(column) for name, column in columns.items()}
            result = systems[system]
            if result.table is not None:
                systems[system] = replace(result, table=replace(result.table, texts=texts))
        return replace(self, systems=systems)

    @property
    def detectors(self) -> list[str]:
        """The systems that are neither floors nor ceilings."""
        return list(self.tables)

    def turns(self, threshold: float | None = None) -> Iterator[JsonObject]:
        """Yield a row per detector and annotated turn.

        Args:
            threshold: The threshold of the reference labels; None: the first.

        Yields:
            Labels, references and distributions of each turn.
        """
        if self.data is None:
            return
        for rows in self.data.systems:
            at = next(iter(self.tables[rows.system])) if threshold is None else threshold
            yield from _list_turns(rows, at, self[rows.system])


def evaluate_breakdown(
    data: object,
    labels: object,
    threshold: float | Sequence[float] = 0.0,
    *,
    match: Match = "turn-index",
    lenient: bool = False,
    development: object = None,
    baselines: bool = True,
    t: float | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | None = None,
    threads: int | None = None,
    progress: Progress | None = None,
) -> BreakdownRun:
    """Evaluate breakdown detectors as the dialogue breakdown detection challenge (DBDC) does.

    Args:
        data: Annotated dialogues: a folder of `*.log.json`, a JSONL file, a .tar.gz, or parsed documents;
            several data sets as a mapping of names to these (`average_over_datasets`).
        labels: The output of a detector, in the same forms; several as a list, or a mapping of names to them.
        threshold: The fraction of annotators from which T or X is the reference label. Several are evaluated in one
            pass, and their metrics are named `accuracy(threshold=0.5)` and so on.
        match: How labels are matched with turns: `"turn-index"`, or `"position"` as in the original program.
        lenient: Count problems of the data in the warnings, and continue.
        development: Annotated dialogues from which the floor of the mean distribution is computed.
        baselines: Also score floor and ceiling systems, named `floor/...` and `ceiling/...`.
        t: The factor of `intervals="rows"`, as in `dialeval.evaluate`.
        confidence: The confidence level of the intervals, likewise.
        intervals: How intervals are computed, likewise.
        threads: The number of threads; None: one per core.
        progress: A function that is called now and then with the work done.

    Returns:
        The run, with confusion tables.

    Raises:
        DataError: A file cannot be read, or labels and turns do not fit together.
        SettingError: A threshold is not between 0 and 1.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> run["keywords"]["accuracy"].mean
        0.625
    """
    levels = [threshold] if isinstance(threshold, int | float) else list(threshold)
    if not levels:
        raise SettingError("give at least one threshold")
    thresholds = list(dict.fromkeys(map(float, levels)))
    read_data = read(data, labels, match, lenient)
    warnings, systems = list(read_data.warnings), list(read_data.systems)
    if baselines:
        development_counts = None
        if development is not None:
            findings = Findings(lenient)
            development_counts = read_logs(development, findings).counts
            warnings += findings.raise_or_count()
        systems += _make_baselines(read_data, thresholds, development_counts)
    # All needs of these metrics are met; and without the registry, which imports every metric, the start is faster.
    plan, roles = Plan(_make_metrics(thresholds)), dict[str, Role]()
    for rows in systems[len(read_data.systems) :]:
        roles[rows.system] = "ceiling" if rows.system in (_ANNOTATOR, _ORACLE) else "floor"
    options = Options(t=t, confidence=confidence, intervals=intervals, threads=threads, progress=progress)
    run = run_sources(wrap_systems(systems, roles), lambda _source, _available: plan, options=options).run
    results = dict(run.systems)
    if baselines:
        results[_ANNOTATOR] = _with_alpha(results[_ANNOTATOR], read_data.annotated.counts)
    dialogues = len(read_data.annotated.dialogues)
    tables = {
        rows.system: {at: detection.count_tables(_encode_labels(rows, at)[0], dialogues, at) for at in thresholds}
        for rows in read_data.systems
    }
    details = {name: [asdict(table) for table in by.values()] for name, by in tables.items()}
    return BreakdownRun(results, __version__, (*warnings, *run.warnings), {"breakdown": details}, tables, read_data)


def _make_metrics(thresholds: list[float]) -> dict[str, Metric]:
    """Return what to compute by its name: the short ones at one threshold, written out at several."""
    families: tuple[Any, ...] = (detection.LabelAccuracy, detection.BreakdownDetection)
    metrics = {}
    for threshold in thresholds:
        for family in families:
            for name, preset in family.presets.items():
                metric = family(**preset, threshold=threshold)
                metrics[name if len(thresholds) == 1 else metric.name] = metric
    distance: Any = BreakdownDistance
    return metrics | {name: distance(**preset) for name, preset in BreakdownDistance.presets.items()}


def _make_baselines(data: BreakdownData, thresholds: list[float], development: Floats | None) -> Iterator[Rows]:
    """Yield floors over the turns of the data, and ceilings over its annotators."""
    first, counts, where = data.systems[0], data.annotated.counts, data.annotated.where
    for name, labels in detection.make_floors(counts, thresholds, development).items():
        columns = {**first.columns, inputs.LABELS: NumberColumn(labels)}
        yield replace(first, system=name, columns=columns, where=where)
    for name, (rows, labels, rest) in (
        (_ANNOTATOR, detection.make_annotators(counts)),
        (_ORACLE, detection.make_oracle(counts)),
    ):
        columns = {inputs.LABELS: NumberColumn(labels), inputs.ANNOTATIONS: NumberColumn(rest)}
        yield replace(first.take(rows), system=name, columns=columns, where=where)


def _with_alpha(result: Result, counts: Floats) -> Result:
    digest = NumberColumn(counts).digest
    estimates = dict(result.estimates)
    distances: tuple[Distance, ...] = ("nominal", "ordinal")
    for distance in distances:
        key = f"alpha-{distance}"
        alpha = compute_krippendorff_alpha(counts, distance)
        scored = 0 if np.isnan(alpha) else int((counts.sum(axis=1) >= 2).sum())
        signature = Signature.of(key, definition=1, dialeval=__version__, annotations=digest)
        estimates[key] = Estimate(alpha, 0.0, len(counts), scored, corpus=True, signature=signature)
    return replace(result, estimates=estimates)


def _encode_labels(rows: Rows, threshold: float) -> tuple[Codes, Floats, Floats]:
    """Return the codes of a detector's turns, its labels with their probabilities, and the fractions of annotators."""
    labels, counts = (cast("NumberColumn", rows.columns[need]).matrix for need in (inputs.LABELS, inputs.ANNOTATIONS))
    share = shares(counts)
    return Codes.of(labels, share, threshold), labels, share


def _list_turns(rows: Rows, threshold: float, result: Result) -> Iterator[dict[str, object]]:
    codes, labels, share = _encode_labels(rows, threshold)
    correct = np.where(codes.scored, codes.label == codes.reference, np.nan)
    items = {
        key: est.scores for key, est in result.items() if key in BreakdownDistance.presets and est.scores is not None
    }
    turns: Ints = np.arange(len(rows)) if rows.turns is None else rows.turns
    for row, turn in enumerate(turns.tolist()):
        yield {
            "system": rows.system,
            "dialogue": "" if rows.dialogues is None else rows.dialogues[row],
            "turn": turn,
            "threshold": threshold,
            "label": _name_code(codes.label[row]),
            "reference": _name_code(codes.reference[row]),
            "lenient-reference": _name_code(codes.lenient[row]),
            "correct": None if np.isnan(correct[row]) else bool(correct[row]),
            **{f"share-{name}": float(share[row, code]) for code, name in enumerate(LABELS)},
            **{f"prob-{name}": float(labels[row, code + 1]) for code, name in enumerate(LABELS)},
            **{key: float(values[row]) for key, values in items.items()},
        }


def _name_code(code: float) -> str:
    """Return the label of a code; `?` for one that is none of the three, nothing where there is none."""
    return "" if np.isnan(code) else LABELS[int(code)] if code < len(LABELS) else "?"


def _write_utterance(text: object) -> str:
    """Return an utterance as a saved run holds it, without halves of characters."""
    return text.encode("utf-8", "backslashreplace").decode() if isinstance(text, str) else ""


def _write_label(row: JsonObject, label: str, kind: str) -> str:
    """Return a label with its distribution, for the report."""
    shares = ", ".join(f"{name} {row[f'{kind}-{name}']:.2f}" for name in LABELS)
    return f"{row[label] or 'no label'} ({shares})"
