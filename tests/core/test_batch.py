"""A batch hands out what a metric declared, in the form that it has, and keeps what is derived once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from dialeval.core.batch import Batch, Need
from dialeval.core.columns import NumberColumn, ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.errors import NeedError
from dialeval.text.vocabulary import Vocabulary

COLUMNS: dict[Need, Any] = {
    Need.RESPONSE: TextColumn.from_strings(["a", "b"]),
    Need.REFERENCE: RaggedColumn.from_lists([["x", "y"], []]),
    Need.STATES: ObjectColumn([{}, {"hotel": {}}]),
    Need.LABELS: NumberColumn(np.eye(2)),
}


def batch() -> Batch:
    return Batch(2, COLUMNS, Vocabulary(), np.array([0, 1, 2]), {Need.TRAIN: "train"}, {"fact": 7})


def test_each_kind_of_column_has_its_reader() -> None:
    here = batch()
    assert len(here) == 2
    assert list(here.texts(Need.RESPONSE)) == ["a", "b"]
    assert list(here.lists(Need.REFERENCE)) == [["x", "y"], []]
    assert list(here.lists(Need.RESPONSE)) == [["a"], ["b"]], "one text is a list of one"
    assert list(here.objects(Need.STATES)) == [{}, {"hotel": {}}]
    assert here.numbers(Need.LABELS).tolist() == [[1, 0], [0, 1]]
    assert here.resource(Need.TRAIN) == "train"


@pytest.mark.parametrize(
    ("read", "need", "message"),
    [
        ("texts", Need.REFERENCE, "does not hold one text per row"),
        ("lists", Need.STATES, "holds objects and not texts"),
        ("objects", Need.RESPONSE, "holds texts"),
        ("lists", Need.CONTEXT, "needs contexts: -c on"),
        ("numbers", Need.STATES, "does not hold numbers"),
        ("texts", Need.CONTEXT, "needs contexts: -c on"),
        ("resource", Need.EMBEDDINGS, "needs vectors"),
    ],
)
def test_what_is_not_there_or_of_another_kind_is_an_error(read: str, need: Need, message: str) -> None:
    with pytest.raises(NeedError, match=message):
        getattr(batch(), read)(need)


def test_only_what_is_declared_is_handed_out() -> None:
    some = batch().restrict_to(frozenset({Need.RESPONSE, Need.CONTEXT}))
    assert some.has(Need.RESPONSE)
    assert not some.has(Need.CONTEXT), "declared, and not there"
    assert not some.has(Need.REFERENCE), "there, and not declared"
    with pytest.raises(NeedError, match=r"reads reference but declares context, response; add Need\.REFERENCE"):
        some.lists(Need.REFERENCE)
    with pytest.raises(NeedError, match="declares nothing"):
        batch().restrict_to(frozenset()).texts(Need.RESPONSE)


def test_facts_have_to_be_named() -> None:
    assert batch().fact("fact") == 7
    with pytest.raises(NeedError, match="without declaring it in its facts"):
        batch().fact("other")


def test_what_is_derived_is_made_once_for_all_metrics() -> None:
    here, made = batch(), []
    for each in (here, here.restrict_to(frozenset({Need.RESPONSE})), here):
        assert each.derive("key", lambda: made.append(1) or len(made)) == 1  # type: ignore[func-returns-value]
    assert here.derive("other key", lambda: 2) == 2
    assert made == [1]


# Needs: every one of them can be given by an argument and by an option.


@pytest.mark.parametrize("need", Need)
def test_every_need_says_how_it_is_given(need: Need) -> None:
    assert need.argument in need.remedy
    assert need.flag in need.remedy
    assert str(need) == need.value


def test_the_remedy_names_both_ways() -> None:
    assert Need.TRAIN.remedy == "needs train: --train on the command line, train=... in Python"
