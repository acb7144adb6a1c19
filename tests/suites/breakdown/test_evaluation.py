"""Breakdown detectors between floors and ceilings: roles, agreement, thresholds and rows per turn."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval import sample_data
from dialeval.core.errors import SettingError
from dialeval.core.version import __version__
from dialeval.stats.correlation import krippendorff_alpha
from dialeval.suites.breakdown.evaluation import BreakdownRun, evaluate_breakdown
from suites.breakdown.challenge import labeled, log

HERE = sample_data.folder() / "breakdown"


def test_roles(run: BreakdownRun) -> None:
    assert run.detectors == ["keywords", "cautious"]
    assert [name for name in run if run[name].role == "system"] == run.detectors
    assert run["ceiling/annotator"].role == run["ceiling/oracle"].role == "ceiling"
    assert {run[name].role for name in run if name.startswith("floor/")} == {"floor"}


def test_the_ceiling_has_the_agreement_of_annotators(run: BreakdownRun) -> None:
    for key in ("alpha-nominal", "alpha-ordinal"):
        assert math.isfinite(run["ceiling/annotator"][key].mean)
        assert key not in run["keywords"]


def test_several_thresholds_are_scored_in_one_run(run: BreakdownRun) -> None:
    for threshold in (0.0, 0.5):
        one = evaluate_breakdown(HERE / "data", HERE / "keywords", threshold, baselines=False)
        name = f"accuracy(threshold={threshold})" if threshold else "accuracy"
        assert run["keywords"][name].mean == one["keywords"]["accuracy"].mean
        assert run.tables["keywords"][threshold] == one.tables["keywords"][threshold]


def test_turns_repeat_what_the_figures_say(run: BreakdownRun) -> None:
    rows = [row for row in run.turns(0.5) if row["system"] == "cautious"]
    accuracy = run["cautious"]["accuracy(threshold=0.5)"]
    assert len(rows) == accuracy.rows
    assert sum(bool(row["correct"]) for row in rows) / len(rows) == pytest.approx(accuracy.mean)


def test_a_threshold_is_needed() -> None:
    with pytest.raises(SettingError, match="at least one threshold"):
        evaluate_breakdown(HERE / "data", HERE / "keywords", [])


LOGS = [log("d1", (2, "OOT"), (4, "XXX"), (6, "O"), (8, "?"), (9, "OT"))]
LABELS = [
    labeled(
        "d1",
        (2, "T", (0.5, 0.25, 0.25)),
        (4, "x", (0.0, 0.25, 0.75)),
        (6, "O", (1.0, 0.0, 0.0)),
        (8, "X", (0.0, 0.0, 1.0)),
    )
]


@pytest.mark.parametrize("key", ["alpha-nominal", "alpha-ordinal"])
def test_agreement_is_of_turns_with_two_annotators_or_more(key: str) -> None:
    found = evaluate_breakdown(LOGS, LABELS, lenient=True)["ceiling/annotator"][key]
    counts = np.array([[2.0, 1, 0], [0, 0, 3], [1, 0, 0], [0, 0, 0], [1, 1, 0]])
    assert found.mean == krippendorff_alpha(counts, "nominal" if key == "alpha-nominal" else "ordinal")
    assert (found.std, found.rows, found.scored, found.corpus) == (0.0, 5, 3, True)
    assert str(found.signature).startswith(f"{key}|definition:1|dialeval:{__version__}|annotations:")
    # Nobody can agree where all annotations are equal.
    alone = evaluate_breakdown([log("d1", (2, "OO"), (4, "O"))], [labeled()])["ceiling/annotator"][key]
    assert math.isnan(alone.mean)
    assert (alone.rows, alone.scored) == (2, 0)


def test_a_turn_has_labels_references_shares_probabilities_and_distances() -> None:
    run = evaluate_breakdown(LOGS, LABELS, [0.5, 0.9], lenient=True)
    first, second, third, fourth, fifth = run.turns()
    assert first == {
        "system": "labels",
        "dialogue": "d1",
        "turn": 2,
        "threshold": 0.5,
        "label": "T",
        "reference": "O",
        "lenient-reference": "O",
        "correct": False,
        "share-O": 2 / 3,
        "share-T": 1 / 3,
        "share-X": 0.0,
        "prob-O": 0.5,
        "prob-T": 0.25,
        "prob-X": 0.25,
        **{key: float(run["labels"][key].items[0]) for key in ("jsd-o-t-x", "jsd-o-tx", "jsd-ot-x")},  # type: ignore[index]
        **{key: float(run["labels"][key].items[0]) for key in ("mse-o-t-x", "mse-o-tx", "mse-ot-x")},  # type: ignore[index]
    }
    assert first["mse-o-tx"] == pytest.approx((2 / 3 - 1 / 2) ** 2)
    assert [(row["label"], row["reference"], row["correct"]) for row in (second, third, fourth, fifth)] == [
        ("?", "X", False),
        ("O", "O", True),
        ("X", "", None),
        ("", "O", None),
    ]
    assert math.isnan(fifth["prob-O"])
    assert math.isnan(fourth["share-X"])
    assert [row["lenient-reference"] for row in run.turns(0.9)] == ["O", "X", "O", "", "O"]
    assert {row["threshold"] for row in run.turns(0.9)} == {0.9}


def test_runs_are_equal_where_all_that_is_saved_is(run: BreakdownRun, tmp_path: Path) -> None:
    loaded = dialeval.load(run.save(tmp_path / "run"))
    assert run == replace(loaded, details=run.details)
    changes: list[dict[str, Any]] = [{"systems": {}}, {"version": "0"}, {"warnings": ("x",)}, {"details": {}}]
    for change in changes:
        assert run != replace(run, **change)
    assert run != 5
    assert run.__eq__(5) is NotImplemented


def test_by_default_the_threshold_is_0_and_there_are_baselines() -> None:
    data = [log("d1", (2, "OOT"), (4, "XXT"))]
    run = evaluate_breakdown(data, [labeled()])
    assert list(run.tables["labels"]) == [0.0]
    assert list(run) == [
        "labels",
        "floor/best-constant-O",
        "floor/always-X",
        "floor/mean-of-test-set",
        "ceiling/annotator",
        "ceiling/oracle",
    ]
