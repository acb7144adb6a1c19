"""Whatever is passed as data: a result, or an error of ours that lists the problems."""

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
from dialeval.lsdscc import compute_score_on_corpus
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


def evaluated(*texts: Any, **options: Any) -> dialeval.Run:
    return evaluating.evaluate(*texts, **{"metrics": "length", "threads": 1, **options})


@cache
def town() -> multiwoz.Evaluator:
    return multiwoz.Evaluator(data="town")


TEXTS = ["a b", "c"]
CALLS: dict[str, Callable[[Any], object]] = {
    "responses": evaluated,
    "name": lambda value: evaluated({value: ["a"]} if value.__hash__ else value),
    "references": lambda value: evaluated(TEXTS, value),
    "contexts": lambda value: evaluated(TEXTS, None, value),
    "train": lambda value: evaluated(TEXTS, train=value),
    "vocabulary": lambda value: evaluated(TEXTS, vocabulary=value),
    "groups": lambda value: evaluate_hypotheses([["a"]], reference_groups=value),
    "predictions": lambda value: town().evaluate(value),
    "failures": lambda value: town().failures(value),
    "slot domains": multiwoz.add_slot_domains,
    "breakdown data": lambda value: evaluate_breakdown(value, LABELS),
    "breakdown labels": lambda value: evaluate_breakdown(SAMPLE / "breakdown" / "data", value),
    "sgd": lambda value: evaluate_sgd(value, GUIDED / "references"),
    "sgd references": lambda value: evaluate_sgd(GUIDED / "steady", value),
    "sgd turns": lambda value: evaluate_sgd([{"dialogue_id": "a", "turns": value}], GUIDED / "references"),
    "hypotheses": lambda value: compute_score_on_corpus(value, [[["a"]]]),
    "reference groups": lambda value: compute_score_on_corpus([["a"]], value),
}


@pytest.mark.parametrize("name", CALLS)
def test_data_of_any_form_is_read_or_refused(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path / "cache"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for value in WRONG:
            with suppress(DialevalError):
                CALLS[name](value)


PATHS: dict[str, Callable[[Any], object]] = {
    "Run.save": lambda value: evaluated(TEXTS).save(value),
    "report": lambda value: dialeval.report(evaluated(TEXTS), value),
    "output": lambda value: evaluated(TEXTS, output=value),
}


@pytest.mark.parametrize("name", PATHS)
def test_nothing_is_written_where_a_path_is_none(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for value in WRONG:
        if not isinstance(value, str) and value is not None:
            with pytest.raises((TypeError, DialevalError)):
                PATHS[name](value)
    assert not list(tmp_path.iterdir())


def test_a_run_whose_system_has_half_a_character_in_its_name(tmp_path: Path) -> None:
    dialeval.evaluate({"a\udcff": ["x"]}, metrics="length").save(tmp_path / "run")
    assert list(dialeval.load(tmp_path / "run")) == ["a\\udcff"]
