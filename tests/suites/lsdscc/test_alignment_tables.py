"""Hypotheses are aligned once, batch by batch, and the table says where each of them landed."""

from __future__ import annotations

from typing import Any

import pytest

import dialeval
from dialeval.suites.lsdscc.alignment import align
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

GROUPS = {"one?": {"1": ["a b c d", "a b"], "2": ["x y z w"]}, "two?": {"1": ["k l m n"]}}
HYPOTHESES = [["a b c d ", "q"], ["k l m n"]]


def evaluate(**options: Any) -> dialeval.Run:
    return evaluate_hypotheses({"s": HYPOTHESES}, reference_groups=GROUPS, **options)


def test_the_table_names_queries_texts_and_groups() -> None:
    first, second = evaluate().details["alignments"]["s"]
    assert [first["query"], second["query"]] == ["one?", "two?"]
    assert [hypothesis["text"] for hypothesis in first["hypotheses"]] == ["a b c d", "q"]
    assert first["hypotheses"][0]["group"] == "1"


def test_batches_change_nothing() -> None:
    assert evaluate(execution=dialeval.Execution(batch_rows=1, threads=2)).details == evaluate().details


def test_the_metrics_and_the_table_share_one_alignment(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = 0

    def counted(*given: Any) -> Any:
        nonlocal calls
        calls += 1
        return align(*given)

    monkeypatch.setattr("dialeval.suites.lsdscc.alignment.align", counted)
    evaluate()
    assert calls == 1


def test_the_table_is_left_out_on_request() -> None:
    assert "alignments" not in evaluate(alignments=False).details


def test_one_group_per_query_is_warned_of_once() -> None:
    run = evaluate_hypotheses({"a": HYPOTHESES[1:], "b": HYPOTHESES[1:]}, reference_groups=[[["k l m n"]]])
    assert [warning for warning in run.warnings if "more than one group" in warning] == [run.warnings[0]]
