"""Runs of the shipped sample: loading the saved ones and evaluating the same inputs again gives equal runs.

The runs in `saved_runs/` were made inside the sample's folder. Their values are those of every version before; where a
metric, a signature or the layout is changed on purpose, run this file as a script to save them again, and check the
difference.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import evaluating
from dialeval import sample_data
from dialeval.analysis.comparison import compare
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.result import Run, load
from dialeval.metrics.registry import GROUPS
from dialeval.multiwoz import Evaluator
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

SAVED = Path(__file__).parent.resolve() / "saved_runs"


def responses() -> Run:
    texts = ("responses", "references.txt", "contexts.txt")
    there = list(load(SAVED / "responses")["careful"])  # warnings about anchors name every metric of a run
    chosen = list(dict.fromkeys("dialog-eval" if name in GROUPS["dialog-eval"] else name for name in there))
    given: dict[str, Any] = {"train": "train.txt", "vectors": "vectors.txt", "metrics": chosen}
    return evaluating.evaluate(*texts, **given, baselines=True, intervals="rows")


def breakdown() -> Run:
    talks = Path("breakdown")
    return evaluate_breakdown(talks / "data", [talks / "keywords", talks / "cautious"], intervals="rows")


def town() -> Run:
    evaluator, predictions = Evaluator(data="town", dst=True), Path("town/predictions")
    return evaluator.with_transcripts(evaluator.run(predictions, intervals="rows"), predictions)


def lsdscc() -> Run:
    groups = Path("lsdscc/groups.json")
    systems = {name: Path(f"lsdscc/{name}.txt") for name in ("varied", "safe")}
    return evaluate_hypotheses(systems, reference_groups=groups, intervals="rows")


RUNS = (responses, breakdown, town, lsdscc)


@pytest.mark.parametrize("make", RUNS, ids=lambda make: make.__name__)
def test_a_saved_run_equals_a_new_one(make: Callable[[], Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(sample_data.folder())
    old, new = load(SAVED / make.__name__), make()
    assert list(old) == list(new)
    for name, result in old.items():
        assert list(result) == list(new[name])
        for key, estimate in result.items():
            assert repr(estimate) == repr(new[name][key]), f"{key} of {name}"
        assert result == new[name], name
    assert old.to_dict() == new.to_dict()


def test_a_saved_run_is_compared(tmp_path: Path) -> None:
    old = load(SAVED / "responses")
    assert set(compare(old, metrics=["bleu-4"]).systems) | {"careful"} == {"careful", "chatty", "generic"}
    assert load(old.save(tmp_path)) == old


if __name__ == "__main__":
    os.chdir(sample_data.folder())
    for make in RUNS:
        make().save(SAVED / make.__name__, force=True)
