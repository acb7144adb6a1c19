"""Data of the dialogue breakdown detection challenge: annotated dialogues, and the labels of detectors for them.

    read(data, labels) -> one `Rows` per detector, a row per annotated system turn

The labels of a dialogue are found by its dialogue-id: as the file `<dialogue-id>.labels.json`, or in a JSONL file by
the `dialogue-id` of a line. Within the dialogue they are matched with the annotated turns

- by `turn-index` (the default): an entry belongs to the turn that it names;
- by `position`, as in the original: the n-th entry belongs to the n-th annotated turn, whatever it names. A detector
  that labels turns which nobody annotated is silently shifted by this.

Where the two differ a warning says so. Every fault of every file is raised at once, or counted where reading is lenient
(see `faults`). Of several `labels` of an entry the first counts; probabilities may be numbers in strings.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, get_args

import numpy as np

from dialeval.core.columns import NumberColumn, TextColumn
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.needs import Need
from dialeval.data.breakdown.faults import Findings
from dialeval.data.breakdown.files import Store, open_labels
from dialeval.data.breakdown.labels import LabelsReader, Match
from dialeval.data.breakdown.logs import Annotated, read_logs
from dialeval.data.rows.system import Rows


@dataclass(frozen=True, eq=False, slots=True)
class BreakdownData:
    """What was read: annotated turns, one `Rows` per detector, and what should be said about them."""

    annotated: Annotated
    systems: list[Rows]
    warnings: list[str] = field(default_factory=list)


def read(data: Any, labels: Any, match: Match = "turn-index", lenient: bool = False) -> BreakdownData:
    """Annotated dialogues and the labels of one or several detectors.

    `data`: a folder, a JSONL file or an archive (see `files`), or parsed dialogues. `labels`: the same for
    one detector, a list of paths, or a mapping of names to any of these.
    """
    if match not in get_args(Match):
        raise SettingError(f"labels are matched by {' or by '.join(get_args(Match))}, not by {match!r}")
    findings = Findings(lenient)
    annotated = read_logs(data, findings)
    if not annotated.dialogues:
        fault = Fault(annotated.where, None, "holds no dialogue", "give at least one annotated dialogue")
        raise DataError([*findings.faults, fault])
    names = TextColumn.from_strings(annotated.dialogues)
    # Runs of equal names are one dialogue; a dialogue that is there twice in a row stays whole, which does no harm.
    dialogues = names.take(np.repeat(np.arange(len(names)), np.diff(annotated.offsets)))
    counts = NumberColumn(annotated.counts)
    systems = []
    for name, source in _detectors(labels, findings).items():
        values = LabelsReader(annotated, findings, match, name).read(source)
        columns = {Need.LABELS: NumberColumn(values), Need.ANNOTATIONS: counts}
        systems.append(Rows(name, columns, dialogues, annotated.turns, source.where))
    return BreakdownData(annotated, systems, findings.warnings())


def _detectors(labels: Any, findings: Findings) -> dict[str, Store]:
    """The places with labels by the name of their detector."""
    detectors: dict[str, Store] = {}
    sources = _sources(labels)
    if not sources:
        findings.refuse(Fault("labels", None, "name no detector", "give the labels of at least one"))
    for name, source in sources:
        try:
            stores = open_labels(source)
        except DataError as error:
            # Nothing can be said of a detector that is not there, but the others may have faults too.
            findings.refuse(*error.faults)
            continue
        for inner, store in stores.items():
            called = inner if name is None else name if len(stores) == 1 else f"{name}/{inner}"
            if called in detectors:
                what = f"the detector {called!r} is also in {detectors[called].where}"
                findings.refuse(Fault(store.where, None, what, "name them: NAME=PATH, or {name: path}"))
            detectors.setdefault(called, store)
    return detectors


def _sources(labels: Any) -> list[tuple[str | None, Any]]:
    if isinstance(labels, Mapping):
        return [(str(name), source) for name, source in labels.items()]
    if isinstance(labels, str | os.PathLike) or not isinstance(labels, Iterable):
        return [(None, labels)]
    several = list(labels)
    paths = all(isinstance(source, str | os.PathLike) for source in several)
    return [(None, source) for source in several] if paths and several else [("labels", several)]
