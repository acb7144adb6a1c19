"""What programs pass in memory: rows, predictions, hypotheses, dialogues and ratings, as parsed JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import dialeval
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import DataError, Problem
from dialeval.io.ratings import read_ratings
from dialeval.lsdscc import compute_score_on_corpus
from dialeval.multiwoz import Evaluator
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from fuzz.harness import Files, checked_in, target
from fuzz.original_files import coverage_files, evaluator, few_predictions
from fuzz.row_files import only

SAMPLE = sample_data.folder()
LABELS = [json.loads(path.read_bytes()) for path in sorted((SAMPLE / "breakdown" / "keywords").iterdir())]


def _parsed(folder: Path) -> Any:
    """The document of an input; one that is no JSON is not for these targets."""
    try:
        return json.loads(only(folder).read_bytes())
    except (ValueError, RecursionError) as error:
        raise DataError(Problem("input", None, f"not JSON ({error})", "none")) from None


def _documents(lines: list[Files]) -> list[Files]:
    """A list of the rows of each JSONL file."""
    contents = [content for files in lines for name, content in files.items() if name.endswith(".jsonl")]
    return [{"rows.json": b"[" + b",".join(filter(None, content.split(b"\n"))) + b"]"} for content in contents]


@target("python-rows", seeds=lambda: [*_documents(checked_in("jsonl")), *_documents(checked_in("chats"))])
def python_rows(folder: Path) -> None:
    """Rows and chats; and rows that are not chats as references and contexts, too."""
    rows = _parsed(folder)
    dialeval.evaluate(rows, metrics="all", execution=dialeval.Execution(threads=1))
    if not any("messages" in row for row in rows):
        dialeval.evaluate(["a b"] * len(rows), rows, rows, metrics="all", execution=dialeval.Execution(threads=1))


@target("python-ratings", seeds=lambda: _documents(checked_in("ratings")))
def python_ratings(folder: Path) -> None:
    """Rated rows."""
    read_ratings(_parsed(folder))


@target("python-predictions", seeds=few_predictions)
def python_predictions(folder: Path) -> None:
    """Predictions of task dialogues, under all rules."""
    given, task = _parsed(folder), evaluator().task
    evaluator().evaluate(given)
    Evaluator(data=task, strict=True, fallback="turn").failures(given)


@target("python-groups", seeds=lambda: [{"groups.json": coverage_files()[0]["groups.json"]}])
def python_groups(folder: Path) -> None:
    """Hypotheses that are the references, and groups of references."""
    document = _parsed(folder)
    if not isinstance(document, dict):
        raise DataError(Problem("input", None, "no object", "none"))
    groups = [list(each.values()) if isinstance(each, dict) else each for each in document.values()]
    evaluate_hypotheses(
        [["a b", "c"] for _ in groups], reference_groups=groups, execution=dialeval.Execution(threads=1)
    )
    compute_score_on_corpus([each[0] if isinstance(each, list) and each else each for each in groups], groups)


@target("python-dialogues", seeds=lambda: [{"logs.json": _logs()}])
def python_dialogues(folder: Path) -> None:
    """Annotated dialogues, read in both ways, and the same document as labels."""
    given = _parsed(folder)
    evaluate_breakdown(given, LABELS, match="position", lenient=True)
    evaluate_breakdown(given, LABELS)


def _logs() -> bytes:
    paths = sorted((SAMPLE / "breakdown" / "data").iterdir())
    return b"[" + b",".join(path.read_bytes() for path in paths) + b"]"
