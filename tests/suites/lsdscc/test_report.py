"""Where answers landed, in the rows of the explorer: the query, references by group, each answer in its group."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.result import Run
from dialeval.reports.html import combine_runs
from dialeval.suites.lsdscc.alignment import align
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses, explain_rows
from reports.test_explorer import data_of
from reports.test_html import HOSTILE, Page, render

GROUPS = {"what is it?": {"letters": ["a b c d", "a b"], "end": ["x y"]}, "and?": {"letters": ["a b"], "end": ["x y"]}}


def run_of(*answers: str, system: str = "one") -> Run:
    given: Any = {system: [list(answers)] * len(GROUPS)}
    return evaluate_hypotheses(given, reference_groups=GROUPS, settings={"coverage": {"aligner": "sacre"}})


def test_a_row_has_the_query_the_groups_and_where_each_answer_landed() -> None:
    run = run_of("a b c d", "zz")
    data = data_of(run)
    (side,), texts = data["sides"], data["texts"]
    assert [[texts[at] for at in row] for row in side["context"]] == [[query] for query in GROUPS]
    shown = [[(texts[name], [texts[at] for at in group]) for name, group in row] for row in side["groups"]]
    assert shown == [list(groups.items()) for groups in GROUPS.values()]
    first, second = side["landed"][0]
    assert (texts[first[0]], first[1]) == ("a b c d", 0)
    assert (texts[second[0]], second[1]) == ("zz", None)
    assert first[2] == 1
    assert "one 2 of 4" in Page(render(run)).text


def test_systems_stand_side_by_side() -> None:
    data = data_of(combine_runs([run_of("a b c d"), run_of("x y")]))
    assert data["systems"] == ["one", "one (run 2)"]
    assert [[answers[0][1] for answers in side["landed"]] for side in data["sides"]] == [[0, 0], [1, 1]]


def test_texts_from_outside_stay_texts() -> None:
    hostile = HOSTILE.replace("\udc80", "")
    run = evaluate_hypotheses({hostile: [[hostile]]}, reference_groups={hostile: {hostile: [hostile], "b": ["c"]}})
    page = Page(render(run))
    assert not page.of("img")
    assert all("<script>" not in text for text in page.scripts)


def test_rows_without_an_alignment_show_none() -> None:
    nothing: list[dict[str, Any]] = [{}, {"a": []}]
    for alignments in nothing:
        assert explain_rows(["a"], np.array([0]), details={"alignments": alignments}, number=len) == {}
    details = run_of("a b").details
    assert explain_rows(["one"], np.array([1]), details=details, number=len) != {}
    assert explain_rows(["one"], np.array([2]), details=details, number=len) == {}
    assert explain_rows(["one", "two"], np.array([0]), details=details, number=len) == {}
    assert "landed" not in data_of(dialeval.evaluate(["a b"], metrics="length"))["sides"][0]


# Hypotheses are aligned once, batch by batch, and the table says where each of them landed.


ALIGNMENT_TABLES_GROUPS = {"one?": {"1": ["a b c d", "a b"], "2": ["x y z w"]}, "two?": {"1": ["k l m n"]}}
HYPOTHESES = [["a b c d ", "q"], ["k l m n"]]


def evaluate(**options: Any) -> dialeval.Run:
    return evaluate_hypotheses({"s": HYPOTHESES}, reference_groups=ALIGNMENT_TABLES_GROUPS, **options)


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
