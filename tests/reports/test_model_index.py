"""The metadata of a model card: what Hugging Face reads back is what the run has."""

from __future__ import annotations

from dataclasses import replace

import pytest
import yaml
from huggingface_hub.repocard_data import model_index_to_eval_results

import dialeval
from dialeval.core.result import Run
from dialeval.reports.tables import to_model_index

NAME = 'my "bot": #1\n- x\u2028é'


@pytest.fixture(scope="module")
def run() -> Run:
    return dialeval.evaluate(
        {NAME: ["a b c d", "no"], "b": ["x", "y z"]}, ["a b c", "no"], metrics="bleu-1,distinct-2,length"
    )


def test_hugging_face_reads_it(run: Run) -> None:
    index = yaml.safe_load(to_model_index(run))["model-index"]
    assert len(index) == 2
    name, results = model_index_to_eval_results(index[:1])
    assert name == 'my "bot": #1\\n- x\\u2028é'
    found = {result.metric_name or "": result for result in results}
    assert list(found) == list(run[NAME])
    for key, result in found.items():
        estimate, args = run[NAME][key], result.metric_args or {}
        assert result.metric_value == estimate.mean
        assert args["signature"] == str(estimate.signature)
        assert args["scored"] == estimate.scored
        if estimate.interval is not None:
            assert (args["low"], args["high"]) == estimate.interval
    reference = dict(run[NAME]["bleu-1"].signature.fields)["reference"]  # type: ignore[union-attr]
    assert found["bleu-1"].dataset_name == f"2 turns, reference {reference}"
    assert found["bleu-1"].metric_type == "bleu-1"


@pytest.mark.parametrize("mean", [1e-05, 1e22, -3.5e-300, 0.25, 3.0])
def test_numbers_are_numbers(run: Run, mean: float) -> None:
    estimate = replace(run["b"]["length"], mean=mean, interval=None)
    small = Run({"b": replace(run["b"], estimates={"length": estimate})}, run.version)
    (metric,) = yaml.safe_load(to_model_index(small))["model-index"][0]["results"][0]["metrics"]
    assert metric["value"] == mean
    assert "low" not in metric["args"]


def test_floors_and_what_was_not_computed_are_left_out(run: Run) -> None:
    estimates = {"length": replace(run["b"]["length"], mean=float("nan"))}
    some = Run({"b": replace(run["b"], estimates=estimates), "floor/x": replace(run["b"], role="floor")}, run.version)
    assert yaml.safe_load(to_model_index(some)) == {"model-index": [{"name": "b", "results": []}]}
