"""What dialeval writes is as its JSON Schemas say, and what is not so is refused by them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import orjson
import pytest

import dialeval
from dialeval import sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import SettingError
from dialeval.multiwoz import Evaluator
from dialeval.reports.schemas import make_schema
from dialeval.suites.breakdown.judge import detect, save_labels
from dialeval.suites.breakdown.report import with_curves
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses
from judges.tiny_judges import tiny_dialogue_judge

HERE = sample_data.folder()


def fits(name: str, document: Any) -> None:
    jsonschema.Draft202012Validator(make_schema(name)).validate(document)


def read(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def lines(path: Path) -> Iterator[Any]:
    return map(json.loads, path.read_text(encoding="utf-8").splitlines())


@pytest.fixture(scope="module")
def run() -> dialeval.Run:
    """Systems, floors and ceilings; of one row nothing can be said, and null stands for it."""
    return dialeval.evaluate(
        HERE / "responses", HERE / "references.txt", metrics="bleu-4,distinct-2,length,nlg-bleu-4", baselines=True
    )


def test_an_unknown_name_is_refused() -> None:
    with pytest.raises(SettingError, match="no schema 'runs'; did you mean 'run'"):
        make_schema("runs")


def test_saved_and_printed_runs(tmp_path: Path, run: dialeval.Run) -> None:
    evaluator, predictions = Evaluator(data="town", dst=True), HERE / "town" / "predictions"
    talks = HERE / "breakdown"
    runs = [
        run,
        dialeval.evaluate(["one"], ["two"], metrics="bleu-4,length"),
        evaluate_hypotheses({"safe": HERE / "lsdscc" / "safe.txt"}, reference_groups=HERE / "lsdscc" / "groups.json"),
        evaluator.with_transcripts(evaluator.run(predictions), predictions),
        with_curves(evaluate_breakdown(talks / "data", [talks / "keywords"])),
    ]
    for number, each in enumerate(runs):
        each.save(tmp_path / str(number))
        fits("run", read(tmp_path / str(number) / "run.json"))
        fits("printed-run", orjson.loads(orjson.dumps(each.to_dict())))


def test_what_is_no_run_is_refused(tmp_path: Path, run: dialeval.Run) -> None:
    run.save(tmp_path)
    changes: list[dict[str, Any]] = [{"format": 0}, {"systems": []}, {"scores": {"file": "../x"}}, {"warnings": None}]
    for change in changes:
        with pytest.raises(jsonschema.ValidationError):
            fits("run", {**read(tmp_path / "run.json"), **change})
    with pytest.raises(jsonschema.ValidationError):
        fits("run", run.to_dict())


def test_comparisons(run: dialeval.Run) -> None:
    comparison = dialeval.compare(run, detect=0.1, resamples=100)
    assert comparison.differences
    fits("comparison", orjson.loads(orjson.dumps(comparison.to_dict())))


@pytest.fixture(scope="module")
def rated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run, what was drawn from it, and ratings of that."""
    folder = tmp_path_factory.mktemp("rated")
    rows = [
        {"dialog_id": f"d{n // 4}", "system": "xy"[n % 2], "context": ["hi"], "response": "hello " * (n % 5)}
        | {"reference": "hello", "scores": {"overall": [n % 5, n % 3]}}
        for n in range(160)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    made = dialeval.evaluate(folder / "rows.jsonl", metrics="length,rouge-l")
    made.save(folder / "results")
    drawn = dialeval.sample(made, 80)
    drawn.save(folder / "to-rate")
    said = [
        {"id": row.id, "rater": "ann", "scores": {"overall": row.row % 5}, "seconds": 3.5} for row in drawn.responses
    ]
    (folder / "ann.jsonl").write_text("".join(json.dumps(line) + "\n" for line in said))
    return folder


def test_what_people_say(rated: Path) -> None:
    from dialeval.human.merge import make_rated_rows, merge_ratings
    from dialeval.human.sample_files import read_sample

    fits("sample", read(rated / "to-rate" / "sample.json"))
    for row in lines(rated / "to-rate" / "rows.jsonl"):
        fits("sample-row", row)
    for line in lines(rated / "ann.jsonl"):
        fits("rating", line)
    drawn = read_sample(rated / "to-rate")
    for merged in make_rated_rows(merge_ratings([str(rated / "ann.jsonl")], drawn, (), 5), drawn, "overall"):
        fits("rated-row", orjson.loads(orjson.dumps(merged)))
    people = dialeval.estimate_ratings(
        rated / "results", [rated / "ann.jsonl"], judge="rouge-l", sample=rated / "to-rate"
    )
    fits("estimate", orjson.loads(orjson.dumps(people.to_dict())))
    agreed = dialeval.measure_agreement(rated / "rows.jsonl", metrics="length,rouge-l", resamples=50)
    fits("agreement", orjson.loads(orjson.dumps(agreed.to_dict())))
    ranked = dialeval.rank(dialeval.load(rated / "results"), metric="rouge-l")
    fits("ranking", orjson.loads(orjson.dumps(ranked.to_dict())))


def test_task_verdicts_and_labels(tmp_path: Path) -> None:
    from dialeval.suites.multiwoz.evaluation import list_dialogue_rows

    evaluator = Evaluator(data="town")
    for row in list_dialogue_rows(evaluator.run(HERE / "town" / "predictions"), evaluator.task):
        fits("task-verdict", row)
    tiny_dialogue_judge(tmp_path)
    found = detect(data=HERE / "breakdown" / "data", judge_dir=tmp_path / "judge", encoder=tmp_path / "encoder")
    save_labels(found, tmp_path / "labels")
    files = list((tmp_path / "labels").iterdir())
    assert len(files) == 4
    for file in files:
        fits("breakdown-labels", read(file))


def test_packs_and_caches(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dialeval.io.packs import add_pack

    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))
    add_pack("lsdscc", from_folder=HERE / "lsdscc" / "groups.json")
    (manifest,) = tmp_path.rglob("manifest.json")
    fits("pack", read(manifest))
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("a 1 0\nb 0 1\n")
    dialeval.evaluate(["a b"], ["b a"], metrics="embedding-greedy", vectors=vectors, train=["a b"])
    (entry,) = tmp_path.rglob("entry.json")
    fits("vectors", read(entry))


def test_a_model_of_pytorch(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from dialeval.adem import ADEM

    ADEM(4, 4, 4, 0.01).save(tmp_path)
    (facts,) = tmp_path.glob("*.json")
    fits("model", read(facts))
