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
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import datetime, timezone
from hashlib import sha256
from typing import Any, TypeAlias

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
_TURNS = "context", "roles", "response", "reference"


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


def _name_files(run: Run) -> dict[str, str]:
    """Return a file name for each system, all of them different."""
    names: dict[str, str] = {}
    for system in run:
        name = _UNSAFE.sub("-", system).strip("-.") or "system"
        names[system] = name if name not in names.values() else f"{name}-{len(names) + 1}"
    return names


def _list_rows(run: Run) -> Iterator[tuple[str, list[Row]]]:
    """Yield the per-row scores of each system, with what the run knows of the rows."""
    rows: dict[str, list[Row]] = {system: [] for system in run}
    if any(estimate.scores is not None for result in run.values() for estimate in result.values()):
        for line in run.score_table.to_arrow().to_pylist():
            rows[line["system"]].append(line)
    yield from rows.items()


def _list_scores(result: Result, row: Row) -> dict[str, float]:
    """Return the scores of a row."""
    level = Level(row["level"])
    scores = {key: row.get(key) for key, estimate in result.items() if estimate.level is level}
    return {key: float(value) for key, value in scores.items() if value is not None and math.isfinite(value)}


def _list_estimates(result: Result) -> dict[str, Estimate]:
    return {key: estimate for key, estimate in result.items() if math.isfinite(estimate.mean)}


def _name_row(row: Row) -> str:
    place = f"row-{row['row']}" if not row.get("dialog_id") else str(row["dialog_id"])
    return place if row["level"] == "dialogue" or row.get("turn") is None else f"{place}/{row['turn']}"


def _read_turns(row: Row) -> list[tuple[str, str]]:
    """Return role and text of the turns before a reply; where no role is known, they alternate."""
    texts = row.get("context") or []
    roles = row.get("roles") or []
    usual = ["user" if (len(texts) - at) % 2 else "assistant" for at in range(len(texts))]
    return [(role_of_turn or role, text) for role_of_turn, role, text in zip(roles or usual, usual, texts, strict=True)]


def _dump(document: object) -> bytes:
    return orjson.dumps(document, option=orjson.OPT_INDENT_2) + b"\n"


def _dump_lines(rows: Sequence[object]) -> bytes:
    return b"".join(orjson.dumps(row) + b"\n" for row in rows)


def _write_table(columns: Sequence[str], rows: Sequence[Mapping[str, object]]) -> bytes:
    """Return a table as CSV; lists are JSON, and a cell that a spreadsheet would compute begins with an apostrophe."""
    lines = (
        [orjson.dumps(cell).decode() if isinstance(cell, list | dict) else cell for cell in map(row.get, columns)]
        for row in rows
    )
    return format_csv(columns, lines).encode()


# Every Eval Ever.


def _make_records(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    stamp, files = f"{date.timestamp():.0f}", _name_files(run)
    for system, rows in _list_rows(run):
        result, name = run[system], files[system]
        identity = f"{_OVERALL}/{system}/{stamp}"
        estimates = _list_estimates(result)
        samples = [
            {**_make_sample(row), "evaluation": {"score": score, "is_correct": None}}
            | {"evaluation_id": identity, "model_id": system, "evaluation_name": key}
            for row in rows
            if "response" in row
            for key, score in _list_scores(result, row).items()
        ]
        lines = _dump_lines(samples)
        details = {"format": "jsonl", "file_path": f"{name}_samples.jsonl", "hash_algorithm": "sha256"}
        record: Row = {
            "schema_version": _SCHEMA,
            "evaluation_id": identity,
            "evaluation_timestamp": date.isoformat(),
            "retrieved_timestamp": stamp,
            "source_metadata": {
                "source_name": _OVERALL,
                "source_type": "evaluation_run",
                "source_organization_name": "unknown",
                "evaluator_relationship": "other",
            },
            "eval_library": {"name": _OVERALL, "version": run.version},
            "model_info": {"name": system, "id": system},
            "evaluation_results": [_make_result(run, system, key) for key in estimates],
        }
        if samples:
            checksum = sha256(lines).hexdigest()
            record["detailed_evaluation_results"] = {**details, "checksum": checksum, "total_rows": len(samples)}
            yield f"{name}_samples.jsonl", lines
        if estimates:
            yield f"{name}.json", _dump(record)


def _make_result(run: Run, system: str, key: str) -> Row:
    estimate, better = run[system][key], find_better(run, key)
    metric = find_metric(estimate)
    low, high = (-math.inf, math.inf) if metric is None else metric.bounds_of(key)
    values = [estimate.mean]
    if estimate.scores is not None:
        values += estimate.scores[~(estimate.scores != estimate.scores)].tolist()
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
        level = getattr(by, "level", None)
        interval = {"lower": estimate.interval[0], "upper": estimate.interval[1], "method": _name_method(by)}
        uncertainty["confidence_interval"] = interval | ({} if level is None else {"confidence_level": level})
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


def _name_method(by: object) -> str:
    return str(getattr(by, "method", None) or "unknown")


def _make_sample(row: Row) -> Row:
    turns = _read_turns(row)
    reference, response = row.get("reference") or [], row["response"] or ""
    asked = next((text for role, text in reversed(turns) if role == "user"), "")
    sample = {
        "schema_version": f"instance_level_eval_{_SCHEMA}",
        "sample_id": _name_row(row),
        "sample_hash": sha256("\0".join([*(text for _, text in turns), *reference]).encode()).hexdigest(),
        "input": {"raw": asked, "reference": reference},
        "answer_attribution": [],
    }
    if len(turns) < 2:
        return {**sample, "interaction_type": "single_turn", "output": {"raw": [response]}, "messages": None}
    said = [*turns, ("assistant", response)]
    messages = [{"turn_idx": at, "role": role, "content": text} for at, (role, text) in enumerate(said)]
    return {**sample, "interaction_type": "multi_turn", "output": None, "messages": messages}


# inspect_ai.


def _make_logs(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    files, when = _name_files(run), date.isoformat()
    for system, rows in _list_rows(run):
        result = run[system]
        samples = [_make_inspect_sample(result, system, row) for row in rows if "response" in row]
        scores = [
            {"name": key, "scorer": key, "params": {}, "metrics": _make_inspect_metrics(estimate)}
            for key, estimate in _list_estimates(result).items()
        ]
        task = _UNSAFE.sub("-", result.source or _OVERALL)
        identity = sha256(f"{system} {when}".encode()).hexdigest()[:22]
        spec = {"run_id": identity, "task_id": identity, "created": when, "task": task, "task_version": 0}
        log = {
            "version": 2,
            "status": "success",
            "eval": {
                **spec,
                "dataset": {"name": task, "samples": len(samples)},
                "model": system,
                "config": {},
                "packages": {_OVERALL: run.version},
            },
            "plan": {"name": "plan", "steps": [], "config": {}},
            "results": {"total_samples": len(samples), "completed_samples": len(samples), "scores": scores},
            "stats": {"started_at": when, "completed_at": when, "model_usage": {}},
            "samples": samples,
        }
        if scores:
            yield f"{files[system]}.json", _dump(log)


def _make_inspect_metrics(estimate: Estimate) -> Row:
    values = {"mean": estimate.mean, "stderr": _find_error(estimate)}
    if estimate.interval is not None:
        values |= {"ci_low": estimate.interval[0], "ci_high": estimate.interval[1]}
    finite = {name: value for name, value in values.items() if value is not None and math.isfinite(value)}
    return {name: {"name": name, "value": value, "params": {}} for name, value in finite.items()}


def _make_inspect_sample(result: Result, system: str, row: Row) -> Row:
    messages = [{"role": role, "content": text} for role, text in _read_turns(row)]
    reply = {"role": "assistant", "content": row["response"] or ""}
    reference = row.get("reference") or [""]
    return {
        "id": _name_row(row),
        "epoch": 1,
        "input": messages or "",
        "target": reference[0] if len(reference) == 1 else reference,
        "messages": [*messages, reply],
        "output": {"model": system, "choices": [{"message": reply, "stop_reason": "stop"}]},
        "scores": {key: {"value": score} for key, score in _list_scores(result, row).items()},
        "metadata": {},
    }


# Langfuse, MLflow, Weights & Biases, CSV and Label Studio.


def _make_events(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    events = []
    for system, rows in _list_rows(run):
        for row in rows:
            if not row.get("dialog_id"):
                continue
            for key, score in _list_scores(run[system], row).items():
                identity = sha256(f"{system}\0{_name_row(row)}\0{key}".encode()).hexdigest()[:32]
                body = {"id": identity, "traceId": row["dialog_id"], "name": key, "value": score}
                more = {"system": system, "turn": row.get("turn"), "dialeval": run.version}
                scored = {**body, "dataType": "NUMERIC", "metadata": more}
                events.append({"id": identity, "type": "score-create", "timestamp": date.isoformat(), "body": scored})
    if events:
        yield "scores.json", _dump({"batch": events})


def _make_batches(run: Run, date: datetime) -> Iterator[tuple[str, bytes]]:
    stamp = int(date.timestamp() * 1000)
    for system, name in _name_files(run).items():
        flat = run[system].flat()
        metrics = [{"key": key, "value": value, "timestamp": stamp, "step": 0} for key, value in flat.items()]
        facts = {"system": system, "source": run[system].source or "", "dialeval": run.version}
        params = [{"key": key, "value": value[:500]} for key, value in facts.items()]
        if metrics:
            yield f"{name}.json", _dump({"metrics": metrics, "params": params})


def _make_summary(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    if flat := run.flat():
        yield "summary.json", _dump(flat)
    rows = [row for _, lines in _list_rows(run) for row in lines]
    columns = list(dict.fromkeys(column for row in rows for column in row))
    if rows:
        cells = [[_clean(row.get(column)) for column in columns] for row in rows]
        yield "scores.table.json", _dump({"columns": columns, "data": cells})


def _make_tables(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    estimates = run.to_arrow()
    yield "estimates.csv", _write_table(estimates.column_names, estimates.to_pylist())
    rows = [{name: _clean(cell) for name, cell in row.items()} for _, lines in _list_rows(run) for row in lines]
    if rows:
        yield "scores.csv", _write_table(list(rows[0]), rows)


def _clean(cell: object) -> Any:
    return None if isinstance(cell, float) and not math.isfinite(cell) else cell


def _make_tasks(run: Run, _date: datetime) -> Iterator[tuple[str, bytes]]:
    tasks: list[Row] = []
    for system, rows in _list_rows(run):
        for row in rows:
            if "response" not in row:
                continue
            said = [*_read_turns(row), ("assistant", row["response"] or "")]
            data: Row = {"id": _name_row(row), "system": system, "response": row["response"] or ""}
            dialogue = [{"author": role, "text": text} for role, text in said]
            results = [
                {"from_name": key, "to_name": "dialogue", "type": "number", "value": {"number": score}}
                for key, score in _list_scores(run[system], row).items()
            ]
            prediction: Row = {"model_version": f"{_OVERALL} {run.version}", "result": results}
            tasks.append({"data": {**data, "dialogue": dialogue}, "predictions": [prediction] if results else []})
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
