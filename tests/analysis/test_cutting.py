"""The result of some rows is what evaluating only these rows gives."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval import sample_data
from dialeval.analysis.values import cut, find_metric, require_table
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.result import Result, Run
from dialeval.multiwoz import Evaluator

FOLDER = sample_data.folder()
SIZE = 4
"""Rows of a dialogue."""


def lines(name: str) -> list[str]:
    return (FOLDER / name).read_text(encoding="utf-8").splitlines()


RESPONSES = min((FOLDER / "responses").iterdir())
PREDICTIONS: dict[str, Any] = json.loads((FOLDER / "town" / "predictions" / "hasty.json").read_text())
ROWS = [
    {"dialog_id": f"d{number // SIZE}", "response": response, "reference": reference, "context": [context]}
    for number, (response, reference, context) in enumerate(
        zip(lines(f"responses/{RESPONSES.name}"), lines("references.txt"), lines("contexts.txt"), strict=True)
    )
]


def scored(rows: list[Any], **options: Any) -> Result:
    given: dict[str, Any] = {"train": str(FOLDER / "train.txt"), "vectors": str(FOLDER / "vectors.txt"), **options}
    return evaluating.evaluate({"bot": rows}, **given)["bot"]


@pytest.fixture(scope="module")
def whole() -> Result:
    return scored(ROWS)


def conditioned(result: Result, key: str) -> bool:
    """Whether a key depends on facts about all rows."""
    metric = find_metric(result[key])
    return metric is not None and bool(metric.facts)


def figures(estimate: Estimate) -> str:
    """All that an estimate says but for its items and the digests of the data: those of a part are the whole's."""
    return repr(replace(estimate, scores=None, signature=None))


def test_all_rows_are_the_run_itself(whole: Result) -> None:
    found = cut(whole, np.arange(len(ROWS)))
    assert list(found) == list(whole)
    assert found.table == whole.table
    assert dict(found.contributions) == dict(whole.contributions)
    for key, estimate in whole.items():
        if estimate.corpus:
            assert found[key].mean == pytest.approx(estimate.mean, rel=1e-12)
            assert (found[key].units, found[key].scored) == (estimate.units, estimate.scored)
        else:
            assert repr(replace(found[key], scores=None)) == repr(replace(estimate, scores=None)), key


@pytest.mark.parametrize(
    "rows",
    [np.arange(20, 40), np.array([0, 1, 2, 9, 17, 18, 30, 55]), np.arange(3, 60, 4)],
    ids=["dialogues", "some", "turn"],
)
def test_some_rows_are_an_evaluation_of_these(whole: Result, rows: Any) -> None:
    found, anew = cut(whole, rows), scored([ROWS[row] for row in rows])
    assert found.table == anew.table
    compared = 0
    for key, estimate in anew.items():
        if conditioned(whole, key):
            np.testing.assert_array_equal(found[key].scores, whole[key].scores[rows])  # type: ignore[index]
            continue
        if estimate.level is Level.DIALOGUE:  # a dialogue of which a part is left has the value of the whole
            dialogues = list(dict.fromkeys((rows // SIZE).tolist()))
            np.testing.assert_array_equal(found[key].scores, whole[key].scores[dialogues])  # type: ignore[index]
            continue
        compared += 1
        if estimate.corpus:
            assert found[key].mean == pytest.approx(estimate.mean, rel=1e-12)
            assert (found[key].units, found[key].scored) == (estimate.units, estimate.scored)
            interval, by = found[key].interval, found[key].interval_by
            assert interval is not None
            assert interval[0] <= found[key].mean <= interval[1]
            assert by is not None
            assert by.method == "jackknife"
        else:
            assert figures(found[key]) == figures(estimate), key
    assert compared > 10


@pytest.mark.parametrize("options", [{"intervals": "rows"}, {"intervals": 3.0}, {"confidence": 0.8}])
def test_intervals_are_of_the_kind_of_the_run(options: dict[str, Any]) -> None:
    rows = np.arange(10, 30)
    result = scored(ROWS, metrics="length,rouge-l", **options)
    found, anew = cut(result, rows), scored([ROWS[row] for row in rows], metrics="length,rouge-l", **options)
    assert [found[key].interval for key in found] == [anew[key].interval for key in anew]
    saved = dialeval.with_intervals(Run({"bot": result}, "0"), resamples=50)["bot"]
    assert cut(saved, rows)["length"].interval_by is not None


def town(names: list[str] | None = None) -> Result:
    some = PREDICTIONS if names is None else {name: PREDICTIONS[name] for name in names}
    return Evaluator(data="town").run({"hasty": some})["hasty"]


def test_task_dialogues() -> None:
    whole = town()
    table = require_table(whole)
    given = [
        name
        for name in table.dialogues or ()
        if name in json.loads((FOLDER / "town/predictions/hasty.json").read_text())
    ]
    names = [str(name) for name in given[:4]]
    inside = [at for at, name in enumerate(table.dialogues or ()) if name in names]
    rows = np.concatenate([np.arange(table.offsets[at], table.offsets[at + 1]) for at in inside])
    found, anew = cut(whole, rows), town(names)
    assert {found.skipped[key] for key in set(anew) - set(found)} == {
        "it depends on all words together",
    }
    for key, estimate in anew.items():
        if key not in found:
            continue
        assert found[key].mean == pytest.approx(estimate.mean, rel=1e-12), key
        assert found[key].scored == estimate.scored, key
    assert found["inform"].units == 4
    assert found["inform"].level is Level.DIALOGUE


def test_a_part_of_a_dialogue_has_values_of_turns_and_of_the_dialogues_it_is_of() -> None:
    whole = town()
    firsts = require_table(whole).offsets[:-1][1:] + 1
    found = cut(whole, firsts)
    assert "combined" not in found
    assert found.skipped["combined"] == "it needs whole dialogues, and the slice has parts of some"
    np.testing.assert_array_equal(found["success"].scores, whole["success"].scores[1:])  # type: ignore[index]
    assert "combined" in cut(whole, np.arange(int(require_table(whole).offsets[3])))


def test_what_cannot_be_cut_says_why(whole: Result) -> None:
    estimates = dict(whole.estimates)
    lacking = replace(
        whole,
        estimates={
            "length": replace(estimates["length"], scores=None),
            "rouge-l": replace(estimates["rouge-l"], scores=np.zeros(3)),
            "distinct-1": estimates["distinct-1"],
        },
        contributions={},
    )
    found = cut(lacking, np.arange(8))
    assert list(found) == []
    assert "no per-row scores" in found.skipped["length"]
    assert "3 values for 60 turns" in found.skipped["rouge-l"]
    assert "score the responses again" in found.skipped["distinct-1"]
    with pytest.raises(SettingError, match="which rows belong to which dialogue"):
        cut(replace(whole, table=None), np.arange(3))


def test_one_dialogue_has_figures_without_intervals(whole: Result) -> None:
    found = cut(whole, np.arange(SIZE))
    assert found["distinct-1"].interval is None
    assert math.isnan(found["distinct-1"].half_width)
    assert found["length"].interval is None
