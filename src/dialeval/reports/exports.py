"""Exports: the scores of a run, with their intervals, in the formats of the programs where people look at them.

- `every-eval-ever`: a record of each system by the schema of Every Eval Ever (0.2.2), and its samples;
- `inspect`: a log of inspect_ai for each system, for `inspect view`;
- `langfuse-scores`: events for `POST /api/public/ingestion`, a score for each reply or conversation; their ids are
  those of the traces, and are the same when a run is exported again, so that nothing is there twice;
- `mlflow`: bodies for `POST /api/2.0/mlflow/runs/log-batch`, one for each system;
- `wandb`: a summary (`run.summary.update`) and a table of per-row scores (`columns` and `data` of `wandb.Table`);
- `csv`: estimates and per-row scores;
- `label-studio`: tasks with the scores as predictions.

What could not be computed is left out; a number that is not finite is never written.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import orjson

from dialeval.analysis.values import find_better, find_metric
from dialeval.core.errors import DataError, Problem, SettingError, suggest
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.core.validation import JsonObject
from dialeval.reports.documents import format_csv

Row: TypeAlias = JsonObject

_SCHEMA = "0.2.2"
_OVERALL = "dialeval"
_UNSAFE = re.compile(r"[^\w.-]+")


def export_run(run: Run, to: str, date: datetime | None = None) -> dict[str, bytes]:
    """Return the files of an export, by name.

    Args:
        run: The run; per-row scores are part of the export where the run has kept them.
        to: A format of `EXPORTS`.
        date: The time of the evaluation; None: now.

    Returns:
        The content of each file.

    Raises:
        SettingError: There is no such format.
        DataError: The run has nothing that the format can hold.

    Examples:
        >>> import dialeval
        >>> run = dialeval.evaluate({"old": ["yes"], "new": ["yes please"]}, metrics="length")
        >>> sorted(export_run(run, "mlflow"))
        ['new.json', 'old.json']
    """
    if to not in EXPORTS:
        raise SettingError(f"there is no export {to!r}; {suggest(to, EXPORTS, 'give one of ' + ', '.join(EXPORTS))}")
    files = dict(EXPORTS[to](run, date or datetime.now(timezone.utc)))
    if not files:
        remedy = "score conversations with ids, and keep per-row scores"
        raise DataError(Problem("the run", None, f"has no scores that {to} can hold", remedy))
    return files


class _System(NamedTuple):
    """A system with its rows: per-row scores, with what the run knows of the rows."""

    name: str
    file: str
    """Its name as that of a file; those of different systems differ."""
    result: Result
    rows: list[Row]

    @property
    def replies(self) -> list[Row]:
        """The rows that are replies with their texts."""
        return [row for row in self.rows if "response" in row]

    @property
    def estimates(self) -> dict[str, Estimate]:
        """The values that are numbers."""
        return {key: estimate for key, estimate in self.result.items() if math.isfinite(estimate.mean)}

    def list_scores(self, row: Row) -> dict[str, float]:
        """Return the scores of a row."""
        keys = (key for key, estimate in self.result.items() if estimate.level is Level(row["level"]))
        scores = {key: row.get(key) for key in keys}
        return {key: float(value) for key, value in scores.items() if value is not None and math.isfinite(value)}


def _list_systems(run: Run) -> list[_System]:
    rows: dict[str, list[Row]] = {system: [] for system in run}
    files: dict[str, str] = {}
    if any(estimate.scores is not None for result in run.values() for estimate in result.values()):
        for line in run.score_table.to_arrow().to_pylist():
            rows[line["system"]].append(line)
    for system in run:
        name = _UNSAFE.sub("-", system).strip("-.") or "system"
        files[system] = name if name not in files.values() else f"{name}-{len(files) + 1}"
    return [_System(name, files[name], result, rows[name]) for name, result in run.items()]


def _name_row(row: Row) -> str:
    place = f"row-{row['row']}" if not row.get("dialog_id") else str(row["dialog_id"])
    return place if row["level"] == "dialogue" or row.get("turn") is None else f"{place}/{row['turn']}"


def _read_turns(row: Row) -> list[tuple[str, str]]:
    """Return role and text of the turns of a dialogue up to a reply; where no role is known, they alternate."""
    texts = row.get("context") or []
    usual = ["user" if (len(texts) - at) % 2 else "assistant" for at in range(len(texts))]
    roles = [role or known for role, known in zip(row.get("roles") or usual, usual, strict=True)]
    return [*zip(roles, texts, strict=True), ("assistant", row["response"] or "")]


def _dump(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


# Every Eval Ever.

_SOURCE = {
    "source_name": _OVERALL,
    "source_type": "evaluation_run",
    "source_organization_name": "unknown",
    "evaluator_relationship": "other",
}


def _make_records(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    stamp = f"{date.timestamp():.0f}"
    for system in _list_systems(run):
        identity, samples_file = f"{_OVERALL}/{system.name}/{stamp}", f"{system.file}_samples.jsonl"
        samples = [
            {**_make_sample(row), "evaluation": {"score": score, "is_correct": None}}
            | {"evaluation_id": identity, "model_id": system.name, "evaluation_name": key}
            for row in system.replies
            for key, score in system.list_scores(row).items()
        ]
        record: Row = {
            "schema_version": _SCHEMA,
            "evaluation_id": identity,
            "evaluation_timestamp": date.isoformat(),
            "retrieved_timestamp": stamp,
            "source_metadata": _SOURCE,
            "eval_library": {"name": _OVERALL, "version": run.version},
            "model_info": {"name": system.name, "id": system.name},
            "evaluation_results": [_make_result(run, system.name, key) for key in system.estimates],
        }
        if samples:
            lines = b"".join(orjson.dumps(sample) + b"\n" for sample in samples)
            details: Row = {"format": "jsonl", "file_path": samples_file, "hash_algorithm": "sha256"}
            details |= {"checksum": sha256(lines).hexdigest(), "total_rows": len(samples)}
            record["detailed_evaluation_results"] = details
            yield samples_file, lines
        if system.estimates:
            yield f"{system.file}.json", _dump(record)


def _make_result(run: Run, system: str, key: str) -> Row:
    estimate, better = run[system][key], find_better(run, key)
    metric = find_metric(estimate)
    low, high = (-math.inf, math.inf) if metric is None else metric.bounds_of(key)
    values = [estimate.mean]
    if estimate.scores is not None:
        values += estimate.scores[np.isfinite(estimate.scores)].tolist()
    ends = [low if math.isfinite(low) else min(values), high if math.isfinite(high) else max(values)]
    details = {} if math.isfinite(low) and math.isfinite(high) else {"range": "observed, the metric has no limits"}
    details |= {} if better else {"direction": "neither higher nor lower is better"}
    uncertainty: Row = {"num_samples": estimate.scored}
    if math.isfinite(estimate.std) and not estimate.corpus:
        uncertainty["standard_deviation"] = estimate.std
    if (error := _find_error(estimate)) is not None:
        uncertainty["standard_error"] = {"value": error, "method": "analytic, clustered by dialogue"}
    if estimate.interval is not None and all(map(math.isfinite, estimate.interval)):
        by = estimate.interval_by
        ends_of: Row = {"lower": estimate.interval[0], "upper": estimate.interval[1]}
        ends_of |= {"method": str(getattr(by, "method", None) or "unknown")}
        level = getattr(by, "level", None)
        uncertainty["confidence_interval"] = ends_of | ({} if level is None else {"confidence_level": level})
    counts = {"units": estimate.units, "scored": estimate.scored, "missing": estimate.missing, "level": estimate.level}
    return {
        "evaluation_name": key,
        "source_data": {"dataset_name": run[system].source or "texts in memory", "source_type": "other"},
        "metric_config": {
            "evaluation_description": str(estimate.signature or key),
            "lower_is_better": better == "lower",
            "score_type": "continuous",
            "min_score": ends[0],
            "max_score": ends[1],
            "additional_details": details,
        },
        "score_details": {
            "score": estimate.mean,
            "details": {name: getattr(value, "value", str(value)) for name, value in counts.items()},
            "uncertainty": uncertainty,
        },
    }


def _find_error(estimate: Estimate) -> float | None:
    """Return the clustered standard error; a loaded run has it with the method of its interval."""
    error = getattr(estimate.interval_by, "error", None) if estimate.error is None else estimate.error.error
    return error if error is not None and math.isfinite(error) else None


def _make_sample(row: Row) -> Row:
    turns, reference = _read_turns(row), row.get("reference") or []
    said = [text for _, text in turns[:-1]]
    sample = {
        "schema_version": f"instance_level_eval_{_SCHEMA}",
        "sample_id": _name_row(row),
        "sample_hash": sha256("\0".join([*said, *reference]).encode()).hexdigest(),
        "input": {
            "raw": next((text for role, text in reversed(turns[:-1]) if role == "user"), ""),
            "reference": reference,
        },
        "answer_attribution": [],
    }
    if len(turns) < 3:
        return {**sample, "interaction_type": "single_turn", "output": {"raw": [turns[-1][1]]}, "messages": None}
    messages = [{"turn_idx": at, "role": role, "content": text} for at, (role, text) in enumerate(turns)]
    return {**sample, "interaction_type": "multi_turn", "output": None, "messages": messages}


# inspect_ai.


def _make_logs(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    when = date.isoformat()
    for system in _list_systems(run):
        samples = [_make_inspect_sample(system, row) for row in system.replies]
        scores = [
            {"name": key, "scorer": key, "params": {}, "metrics": _make_inspect_metrics(estimate)}
            for key, estimate in system.estimates.items()
        ]
        task = _UNSAFE.sub("-", system.result.source or _OVERALL)
        identity = sha256(f"{system.name} {when}".encode()).hexdigest()[:22]
        spec = {"run_id": identity, "task_id": identity, "created": when, "task": task, "task_version": 0}
        spec |= {"dataset": {"name": task, "samples": len(samples)}, "model": system.name, "config": {}}
        log = {
            "version": 2,
            "status": "success",
            "eval": {**spec, "packages": {_OVERALL: run.version}},
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores},
            "stats": {"started_at": when, "completed_at": when, "model_usage": {}},
            "samples": samples,
        }
        if scores:
            yield f"{system.file}.json", _dump(log)


def _make_inspect_metrics(estimate: Estimate) -> Row:
    values = {"mean": estimate.mean, "stderr": _find_error(estimate)}
    if estimate.interval is not None:
        values |= {"ci_low": estimate.interval[0], "ci_high": estimate.interval[1]}
    finite = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return {name: {"name": name, "value": value, "params": {}} for name, value in finite.items()}


def _make_inspect_sample(system: _System, row: Row) -> Row:
    messages = [{"role": role, "content": text} for role, text in _read_turns(row)]
    reference = row.get("reference") or [""]
    return {
        "id": _name_row(row),
        "epoch": 1,
        "input": messages[:-1] or "",
        "target": reference[0] if len(reference) == 1 else reference,
        "messages": messages,
        "output": {"model": system.name, "choices": [{"message": messages[-1], "stop_reason": "stop"}]},
        "scores": {key: {"value": score} for key, score in system.list_scores(row).items()},
        "metadata": {},
    }


# Langfuse, MLflow, Weights & Biases, CSV and Label Studio.


def _make_events(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    events = []
    for system in _list_systems(run):
        for row in (row for row in system.rows if row.get("dialog_id")):
            more = {"system": system.name, "turn": row.get("turn"), "dialeval": run.version}
            for key, score in system.list_scores(row).items():
                identity = sha256(f"{system.name}\0{_name_row(row)}\0{key}".encode()).hexdigest()[:32]
                body = {"id": identity, "traceId": row["dialog_id"], "name": key, "value": score}
                scored = {**body, "dataType": "NUMERIC", "metadata": more}
                events.append({"id": identity, "type": "score-create", "timestamp": date.isoformat(), "body": scored})
    if events:
        yield "scores.json", _dump({"batch": events})


def _make_batches(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    stamp = int(date.timestamp() * 1000)
    for system in _list_systems(run):
        values = system.result.flat().items()
        metrics = [{"key": key, "value": value, "timestamp": stamp, "step": 0} for key, value in values]
        facts = {"system": system.name, "source": system.result.source or "", "dialeval": run.version}
        params = [{"key": key, "value": value[:500]} for key, value in facts.items()]
        if metrics:
            yield f"{system.file}.json", _dump({"metrics": metrics, "params": params})


def _list_cells(run: Run) -> tuple[list[str], list[list[Any]]]:
    """Return the columns and the cells of all rows; a number that is not finite is None."""
    rows = [row for system in _list_systems(run) for row in system.rows]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    cells = ([row.get(column) for column in columns] for row in rows)
    return columns, [[None if isinstance(c, float) and not math.isfinite(c) else c for c in line] for line in cells]


def _make_summary(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    if flat := run.flat():
        yield "summary.json", _dump(flat)
    columns, cells = _list_cells(run)
    if cells:
        yield "scores.table.json", _dump({"columns": columns, "data": cells})


def _make_tables(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    estimates = run.to_arrow()
    lines = (line.values() for line in estimates.to_pylist())
    for name, columns, rows in (("estimates", estimates.column_names, lines), ("scores", *_list_cells(run))):
        if columns:
            shown = ([orjson.dumps(c).decode() if isinstance(c, list | dict) else c for c in row] for row in rows)
            yield f"{name}.csv", format_csv(columns, shown).encode()


def _make_tasks(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    tasks: list[Row] = []
    for system in _list_systems(run):
        for row in system.replies:
            data: Row = {"id": _name_row(row), "system": system.name, "response": row["response"] or ""}
            data["dialogue"] = [{"author": role, "text": text} for role, text in _read_turns(row)]
            results = [
                {"from_name": key, "to_name": "dialogue", "type": "number", "value": {"number": score}}
                for key, score in system.list_scores(row).items()
            ]
            prediction: Row = {"model_version": f"{_OVERALL} {run.version}", "result": results}
            tasks.append({"data": data, "predictions": [prediction] if results else []})
    if tasks:
        yield "tasks.json", _dump(tasks)


EXPORTS: dict[str, Callable[[Run, datetime], Iterator[tuple[str, bytes]]]] = {
    "every-eval-ever": _make_records,
    "inspect": _make_logs,
    "langfuse-scores": _make_events,
    "mlflow": _make_batches,
    "wandb": _make_summary,
    "csv": _make_tables,
    "label-studio": _make_tasks,
}
