"""Whatever is passed to a public function: a result or an error of ours, never one of Python's own."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dialeval
import evaluating
from dialeval import multiwoz, sample_data
from dialeval.breakdown import evaluate_breakdown
from dialeval.core.errors import DialevalError
from dialeval.io.ratings import read_ratings
from dialeval.io.vectors import load_embeddings
from dialeval.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.sgd import evaluate_sgd
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

SAMPLE = sample_data.folder()
PREDICTIONS = SAMPLE / "town" / "predictions" / "patient.json"
LINES = SAMPLE / "responses" / "generic.txt"
LABELS = SAMPLE / "breakdown" / "keywords"
GUIDED = SAMPLE / "frames"

WRONG: list[Any] = [
    *(5, -1, 1.5, float("nan"), True, None, object(), len, b"x", 1j),
    *("no such thing", "", "\0", "\udcff"),
    *([], [5], [None], [[]], [b"x"], ("x",), {5}, range(3), iter([5])),
    *({}, {"a": 5}, {"a": None}, {5: 5}, {"a": []}),
]


@cache
def run() -> dialeval.Run:
    return dialeval.evaluate({"a": ["x y", "z"], "b": ["x", "z z"]}, ["x y", "q"], metrics="length,bleu")


RATED = [{"system": "a", "response": "x y", "scores": 3}, {"system": "a", "response": "z", "scores": 4}]


@cache
def town() -> multiwoz.Evaluator:
    return multiwoz.Evaluator(data="town")


def evaluated(**given: Any) -> dialeval.Run:
    return evaluating.evaluate(["a b", "c"], **{"metrics": "length", "threads": 1, **given})


CALLS: dict[str, Callable[[Any], object]] = {
    "load": dialeval.load,
    "evaluate: responses": lambda value: dialeval.evaluate(value, execution=dialeval.Execution(threads=1)),
    "evaluate: name": lambda value: dialeval.evaluate(
        {value: ["a"]} if value.__hash__ else value, execution=dialeval.Execution(threads=1)
    ),
    "evaluate: confidence": lambda value: evaluated(confidence=value),
    "evaluate: engine": lambda value: dialeval.evaluate(
        LINES, metrics="length", execution=dialeval.Execution(engine=value)
    ),
    "evaluate: reference_groups": lambda value: evaluate_hypotheses([["a"]], reference_groups=value),
    "evaluate: eos": lambda value: evaluate_hypotheses([["a"]], reference_groups=[[["a"]]], eos=value),
    "evaluate: chunk_bytes": lambda value: dialeval.evaluate(
        LINES, metrics="length", execution=dialeval.Execution(row_scores=False, chunk_bytes=value)
    ),
    "evaluate: settings of a family": lambda value: evaluated(settings={"length": value}),
    **{
        f"evaluate: {name}": lambda value, name=name: evaluated(**{name: value})  # type: ignore[misc]
        for name in (
            *("references", "contexts", "metrics", "settings", "fields", "t", "train", "vocabulary", "vectors"),
            *("in_vocabulary", "threads", "batch_rows", "baselines", "details", "keep"),
        )
    },
    "report": lambda value: dialeval.report(value, "page.html"),
    "report: title": lambda value: dialeval.report(run(), "page.html", title=value, compared=False),
    "report: by": lambda value: dialeval.report(run(), "page.html", by=value, compared=False),
    "slices": lambda value: dialeval.compare_slices(value, "turn"),
    "slices: by": lambda value: dialeval.compare_slices(run(), value, resamples=9, trials=9),
    "slices: metrics": lambda value: dialeval.compare_slices(run(), "turn", metrics=value, resamples=9, trials=9),
    "slices: settings": lambda value: dialeval.compare_slices(run(), "turn", resamples=value, trials=9),
    "compare": dialeval.compare,
    "compare: baseline": lambda value: dialeval.compare(run(), baseline=value, resamples=9, trials=9),
    "compare: metrics": lambda value: dialeval.compare(run(), metrics=value, resamples=9, trials=9),
    "compare: level": lambda value: dialeval.compare(run(), confidence=value, resamples=9, trials=9),
    "with_intervals": dialeval.with_intervals,
    "with_intervals: level": lambda value: dialeval.with_intervals(run(), value, resamples=9),
    "with_intervals: resamples": lambda value: dialeval.with_intervals(run(), resamples=value),
    "with_intervals: seed": lambda value: dialeval.with_intervals(run(), resamples=9, seed=value),
    "agreement": lambda value: dialeval.measure_agreement(value, resamples=9),
    "agreement: ratings": lambda value: dialeval.measure_agreement(run(), value, resamples=9),
    "read_ratings": read_ratings,
    "sample": lambda value: dialeval.sample(value, 2),
    "sample: n": lambda value: dialeval.sample(run(), value),
    **{
        f"sample: {name}": lambda value, name=name: dialeval.sample(run(), 2, **{name: value})  # type: ignore[misc]
        for name in ("systems", "stratify", "uncertainty", "dialogues", "independent", "seed")
    },
    "estimate": lambda value: dialeval.estimate_ratings(value, RATED, assume_random=True),
    "estimate: human": lambda value: dialeval.estimate_ratings(run(), value, assume_random=True),
    **{
        f"estimate: {name}": lambda value, name=name: dialeval.estimate_ratings(  # type: ignore[misc]
            run(), RATED, **{"assume_random": True, name: value}
        )
        for name in ("judge", "sample", "quality", "population", "confidence", "baseline", "fields", "seed")
    },
    "rank": dialeval.rank,
    **{
        f"rank: {name}": lambda value, name=name: dialeval.rank(  # type: ignore[misc]
            run(), **{"metric": "length", name: value}
        )
        for name in ("metric", "tie", "length", "systems", "confidence", "fields")
    },
    "sequential": dialeval.run_sequential_test,
    "sequential: alpha": lambda value: dialeval.run_sequential_test(run(), alpha=value),
    "sequential: metrics": lambda value: dialeval.run_sequential_test(run(), metrics=value),
    "Evaluator": lambda value: multiwoz.Evaluator(data=value),
    "Evaluator: split": lambda value: multiwoz.Evaluator(data="town", split=value),
    "Evaluator: fallback": lambda value: multiwoz.Evaluator(data=town().task, fallback=value),
    "Evaluator: ratio": lambda value: multiwoz.Evaluator(data=town().task, ratio=value),
    "Evaluator.evaluate": lambda value: town().evaluate(value),
    "Evaluator.explain": lambda value: town().explain(PREDICTIONS, value),
    "Evaluator.failures": lambda value: town().failures(value),
    "add_slot_domains": multiwoz.add_slot_domains,
    "add_slot_domains: ontology": lambda value: multiwoz.add_slot_domains({}, value),
    "breakdown: data": lambda value: evaluate_breakdown(value, LABELS),
    "breakdown: labels": lambda value: evaluate_breakdown(SAMPLE / "breakdown" / "data", value),
    "breakdown: threshold": lambda value: evaluate_breakdown(SAMPLE / "breakdown" / "data", LABELS, value),
    "sgd": lambda value: evaluate_sgd(value, GUIDED / "references"),
    **{
        f"sgd: {name}": lambda value, name=name: evaluate_sgd(  # type: ignore[misc]
            GUIDED / "steady", **{"references": GUIDED / "references", name: value}
        )
        for name in ("references", "schema", "train_schema", "metrics", "match", "strict", "confidence", "intervals")
    },
    "sgd: memory": lambda value: evaluate_sgd([{"dialogue_id": "a", "turns": value}], GUIDED / "references"),
    "lsdscc: hypotheses": lambda value: compute_score_on_corpus(value, [[["a"]]]),
    "lsdscc: references": lambda value: compute_score_on_corpus([["a"]], value),
    "HypothesisSet.load_corpus": HypothesisSet.load_corpus,
    "ReferenceSet.load_json_corpus": ReferenceSet.load_json_corpus,
    "load_embeddings": load_embeddings,
}


@pytest.mark.parametrize("name", CALLS)
def test_no_argument_ends_in_an_error_of_python(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in WRONG:
            with suppress(DialevalError):
                CALLS[name](value)


PATHS: dict[str, Callable[[Any], object]] = {
    "Run.save": lambda value: run().save(value),
    "report": lambda value: dialeval.report(run(), value),
    "evaluate: output": lambda value: evaluated(output=value),
    "evaluate: resume": lambda value: dialeval.evaluate(
        LINES, metrics="length", execution=dialeval.Execution(resume=value)
    ),
}


@pytest.mark.parametrize("name", PATHS)
def test_what_is_no_path_is_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in WRONG:
        if not isinstance(value, str) and value is not None:
            with pytest.raises(DialevalError, match="path"):
                PATHS[name](value)
    assert not list(tmp_path.iterdir())


NUMBER: Any = 5


def test_examples() -> None:
    for call in (lambda: multiwoz.Evaluator(data=NUMBER), lambda: dialeval.load(NUMBER)):
        with pytest.raises(DialevalError, match=r"is 5; a path .*is expected"):
            call()
    with pytest.raises(DialevalError, match="cannot read rows from a number"):
        dialeval.evaluate(NUMBER)


def test_a_run_whose_system_has_half_a_character_in_its_name(tmp_path: Path) -> None:
    dialeval.evaluate({"a\udcff": ["x"]}, metrics="length").save(tmp_path / "run")
    assert list(dialeval.load(tmp_path / "run")) == ["a\\udcff"]
