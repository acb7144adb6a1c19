"""Schema-guided dialogues: read references, predictions and schema, fold the metrics of frames, say what is missing.

The defaults give the figures of evaluate.py of schema_guided_dst. `make_original_output` has them in its form: by
group of services, and in each group by metric.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from math import fsum, nan
from pathlib import Path

import numpy as np

from dialeval.core.arrays import offsets_of, row_numbers
from dialeval.core.display import Tabular
from dialeval.core.errors import DataError, Problem, SettingError
from dialeval.core.result import Result, Run
from dialeval.core.run_schema import Record
from dialeval.engine import baselines as common
from dialeval.engine.folding import Options, Progress
from dialeval.engine.intervals import IntervalKind
from dialeval.engine.plan import Asked, make_planner
from dialeval.engine.resources import Resources
from dialeval.io.reading import is_folder
from dialeval.io.rows import read_each
from dialeval.io.sources import name_system
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.formatting import show
from dialeval.suites.sgd import SCHEMA
from dialeval.suites.sgd import data as sgd
from dialeval.suites.sgd.metrics import Match

MAIN = "joint-goal-accuracy,average-goal-accuracy,active-intent-accuracy,requested-slots-f1"
"""What is measured unless something else is asked for."""
FAMILIES = ("goal-accuracy", "intent-accuracy", "requested-slots", "slot-tagging")
UNNAMED = "predictions"
"""The system of predictions that come without a name."""
SCHEMA_FILE = "schema.json"
ALL, SEEN_SERVICES, UNSEEN_SERVICES = "#ALL_SERVICES", "#SEEN_SERVICES", "#UNSEEN_SERVICES"


def evaluate_sgd(
    predictions: object,
    references: object,
    schema: object = None,
    train_schema: object = None,
    *,
    metrics: Asked = None,
    match: Match = "blocks",
    strict: bool = False,
    baselines: bool = False,
    t: float | None = None,
    confidence: float | None = None,
    intervals: IntervalKind | None = None,
    progress: Progress | None = None,
) -> Run:
    """Evaluate predicted frames of schema-guided dialogues as `evaluate.py` of schema_guided_dst does.

    Args:
        predictions: A file or folder of dialogues, or parsed ones; several systems as a mapping of names to these.
        references: The same with the true frames.
        schema: The services; None: `schema.json` in the folder of the references.
        train_schema: The services of the training data; with it, rows have a field `seen` next to `service` and
            `domain`.
        metrics: Names of metrics; None: the four that papers report; `"all"` adds those of single slot types, precision
            and recall, and slot tagging.
        match: How values of non-categorical slots are compared: `"blocks"` (fuzzywuzzy), `"edits"` or `"exact"`.
        strict: Count frames that a system does not have as wrong.
        baselines: Also score gold frames, those of other dialogues and empty ones, as systems called `ceiling/...` and
            `floor/...`.
        t: The factor of `intervals="rows"`, as in `dialeval.evaluate`.
        confidence: The confidence level of the intervals, likewise.
        intervals: How intervals are computed, likewise.
        progress: A function that is called now and then with the work done.

    Returns:
        The run.

    Raises:
        DataError: A file cannot be read or has another form.
        SettingError: There is no schema, or a metric does not exist.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.sgd import evaluate_sgd
        >>> frames = sample_data.folder() / "frames"
        >>> run = evaluate_sgd(frames / "steady", frames / "references")
        >>> round(run["steady"]["joint-goal-accuracy"].mean, 3)
        0.905
    """
    services = sgd.read_schema(_find_schema(references) if schema is None else schema)
    seen = None if train_schema is None else frozenset(sgd.read_schema(train_schema).services)
    true = sgd.read_references(references, services)
    sources = _name_systems(predictions).items()
    systems = read_each(partial(sgd.read_predictions, source, true, services, seen, name) for name, source in sources)
    missing = "failed" if strict else "ignored"
    settings: dict[str, dict[str, object]] = {family: {"missing": missing} for family in FAMILIES}
    settings["goal-accuracy"]["match"] = match
    plans = make_planner(metrics or MAIN, settings)
    # One thread: these metrics are plain Python, and threads would only wait for each other.
    options = Options(t=t, confidence=confidence, intervals=intervals, threads=1, progress=progress)
    made = _make_baselines(systems, true, services, seen) if baselines else None
    resources = Resources(ready={SCHEMA: services})
    run = common.run_with_baselines([system.rows for system in systems], made, plans, resources, options).run
    warnings = [line for system in systems for line in _collect_warnings(system, true, strict)]
    return replace(run, warnings=(*run.warnings, *warnings))


def _make_baselines(
    systems: Sequence[sgd.FramePredictions], true: sgd.TrueFrames, schema: sgd.Schema, seen: frozenset[str] | None
) -> common.Baselines:
    """Return floors and ceilings.

    `ceiling/gold` has the true frames; `floor/shuffled-gold` those of the same service in other dialogues, where there
    are some; `floor/constant` empty states.
    """
    common.check_names(system.rows.system for system in systems)
    empty: sgd.State = {"active_intent": "NONE", "requested_slots": [], "slot_values": {}}
    constant = [empty] * len(true.frames)
    shuffled = list(constant)
    by_service: dict[str, list[int]] = {}
    for row, frame in enumerate(true.frames):
        by_service.setdefault(frame.service, []).append(row)
    for rows in by_service.values():
        sizes = Counter(true.frames[row].dialogue for row in rows)  # in the order of the rows
        order = common.derangement(offsets_of(sizes.values()), common.SEED)
        for row, other in zip(rows, () if order is None else order.tolist(), strict=False):
            shuffled[row] = true.frames[rows[other]].state
    gold = {name: {"turns": dialogue.turns} for name, dialogue in true.dialogues.items()}
    floors = {common.SHUFFLED: shuffled, common.CONSTANT: constant}
    made = [
        sgd.read_predictions(gold, true, schema, seen, common.GOLD).rows,
        *(sgd.make_frame_rows(true, seen, name, name, states, [[]] * len(states)) for name, states in floors.items()),
    ]
    return common.Baselines(made, {}, systems[0].rows.system)


def _find_schema(references: object) -> Path:
    """Return the schema next to the references."""
    if not isinstance(references, str | os.PathLike):
        raise SettingError("give the schema of the references: schema=... in Python, --schema on the command line")
    if not os.path.exists(references):  # noqa: PTH110  (as below)
        raise DataError(Problem(os.fspath(references), None, "there is no such file", "check the path"))
    folder = Path(references) if is_folder(references) else Path(references).parent
    path = folder / SCHEMA_FILE
    if not os.path.isfile(path):  # noqa: PTH113  (Path.is_file raises for names that are too long)
        raise DataError(Problem(str(folder), None, f"holds no {SCHEMA_FILE}", "give the schema: --schema FILE"))
    return path


def _name_systems(predictions: object) -> dict[str, object]:
    if isinstance(predictions, str | os.PathLike):
        return {name_system(os.fspath(predictions)): predictions}
    named = predictions if isinstance(predictions, Mapping) else {}
    if named and not any(isinstance(value, Mapping) and "turns" in value for value in named.values()):  # no dialogues
        return {str(name): value for name, value in named.items()}
    return {UNNAMED: predictions}


def _collect_warnings(system: sgd.FramePredictions, true: sgd.TrueFrames, strict: bool) -> Iterator[str]:
    name, dialogues, frames = system.rows.system, len(true.dialogues), len(true.frames)
    if system.frames < frames:
        covered = f"{system.dialogues:,} of {dialogues:,} dialogues and {system.frames:,} of {frames:,} frames"
        left_out = "" if strict else "as in the original, the others are left out; "
        yield f"{name} covers {covered}; {left_out}--strict counts missing frames as wrong"
    if system.unknown_slots:
        listed = ", ".join(f"{slot} ({count:,})" for slot, count in system.unknown_slots.items())
        yield f"{name}: slots that the schema does not have were ignored, with their frames: {listed}"


def make_original_output(result: Result, across_turns: bool = False) -> dict[str, dict[str, float]]:
    """Return the scores of one system in the form of `evaluate.py`, by group of services and by metric.

    Args:
        result: A system of the run.
        across_turns: Joint accuracies are products over the frames of a turn that are in the group, and means over
            turns, as with the original's flag `--joint_acc_across_turn`.

    Returns:
        The scores.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.sgd import evaluate_sgd, make_original_output
        >>> frames = sample_data.folder() / "frames"
        >>> run = evaluate_sgd(frames / "steady", frames / "references")
        >>> list(make_original_output(run["steady"]))[:3]
        ['#ALL_SERVICES', 'Eateries', 'Eateries_1']
    """
    if result.table is None:
        return {}
    groups: dict[str, list[int]] = {ALL: list(range(len(result.table)))}
    named = {"seen": SEEN_SERVICES, "unseen": UNSEEN_SERVICES}
    for field in (sgd.SERVICE, sgd.DOMAIN, sgd.SEEN):
        column: Sequence[Sequence[str]] = list(result.table.fields.get(field, ()))
        for row, (value,) in enumerate(column):
            groups.setdefault(named[value] if field == sgd.SEEN else value, []).append(row)
    numbers = np.arange(len(result.table)) if result.table.turns is None else result.table.turns
    places = list(zip(row_numbers(result.table.offsets).tolist(), numbers.tolist(), strict=True))
    output: dict[str, dict[str, float]] = {group: {} for group in sorted(groups)}
    for group, means in output.items():
        for key, estimate in result.items():
            items = () if estimate.scores is None else estimate.scores.tolist()
            values = {row: items[row] for row in groups[group] if items and items[row] == items[row]}
            if across_turns and key.startswith("joint"):
                turns: dict[tuple[int, int], float] = {}
                for row, value in values.items():
                    turns[places[row]] = turns.get(places[row], 1.0) * value
                values = dict(enumerate(turns.values()))
            if values:
                means[key.replace("-", "_")] = fsum(values.values()) / len(values)
    return output


class ServiceGroups(Tabular, Record, frozen=True):
    """Scores by system, group of services and metric, as evaluate.py writes them."""

    systems: dict[str, dict[str, dict[str, float]]]

    def lines(self) -> list[dict[str, object]]:
        return [
            {"system": system, "services": group, "metric": metric, "score": score}
            for system, by_group in self.systems.items()
            for group, scores in by_group.items()
            for metric, score in scores.items()
        ]


def _to_document(groups: ServiceGroups) -> Document:
    tables = []
    for by_group in groups.systems.values():
        metrics = list(dict.fromkeys(metric for scores in by_group.values() for metric in scores))
        rows = [[group, *(show(scores.get(metric, nan)) for metric in metrics)] for group, scores in by_group.items()]
        tables.append(Table(["services", *metrics], rows))
    return Document([], tables, [], titles=list(groups.systems))


GROUPS: Printer[ServiceGroups] = Printer(_to_document)
