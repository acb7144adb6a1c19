"""A batch hands out what a metric declared, in the form that it has, and keeps what is derived once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn, ObjectColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import NeedError
from dialeval.core.inputs import Input
from dialeval.suites.multiwoz.feature import STATES
from dialeval.text.vocabulary import Vocabulary

COLUMNS: dict[Input, Any] = {
    inputs.RESPONSE: TextColumn.from_strings(["a", "b"]),
    inputs.REFERENCE: RaggedColumn.from_lists([["x", "y"], []]),
    STATES: ObjectColumn([{}, {"hotel": {}}]),
    inputs.LABELS: NumberColumn(np.eye(2)),
}


def batch() -> Batch:
    return Batch(2, COLUMNS, Vocabulary(), np.array([0, 1, 2]), {inputs.TRAIN: "train"}, {"fact": 7})


def test_each_kind_of_column_has_its_reader() -> None:
    here = batch()
    assert len(here) == 2
    assert list(here.texts(inputs.RESPONSE)) == ["a", "b"]
    assert list(here.lists(inputs.REFERENCE)) == [["x", "y"], []]
    assert list(here.lists(inputs.RESPONSE)) == [["a"], ["b"]], "one text is a list of one"
    assert list(here.objects(STATES)) == [{}, {"hotel": {}}]
    assert here.numbers(inputs.LABELS).tolist() == [[1, 0], [0, 1]]
    assert here.resource(inputs.TRAIN) == "train"


@pytest.mark.parametrize(
    ("read", "need", "message"),
    [
        ("texts", inputs.REFERENCE, "does not hold one text per row"),
        ("lists", STATES, "holds objects and not texts"),
        ("objects", inputs.RESPONSE, "holds texts"),
        ("lists", inputs.CONTEXT, "needs contexts: "),
        ("numbers", STATES, "does not hold numbers"),
        ("texts", inputs.CONTEXT, "needs contexts: "),
        ("resource", inputs.EMBEDDINGS, "needs vectors"),
    ],
)
def test_what_is_not_there_or_of_another_kind_is_an_error(read: str, need: Input, message: str) -> None:
    with pytest.raises(NeedError, match=message):
        getattr(batch(), read)(need)


def test_only_what_is_declared_is_handed_out() -> None:
    some = batch().restrict_to(frozenset({inputs.RESPONSE, inputs.CONTEXT}))
    assert some.has(inputs.RESPONSE)
    assert not some.has(inputs.CONTEXT), "declared, and not there"
    assert not some.has(inputs.REFERENCE), "there, and not declared"
    with pytest.raises(NeedError, match=r"reads reference but declares context, response; add reference to its needs"):
        some.lists(inputs.REFERENCE)
    with pytest.raises(NeedError, match="declares nothing"):
        batch().restrict_to(frozenset()).texts(inputs.RESPONSE)


def test_facts_have_to_be_named() -> None:
    assert batch().fact("fact") == 7
    with pytest.raises(NeedError, match="without declaring it in its facts"):
        batch().fact("other")


def test_what_is_derived_is_made_once_for_all_metrics() -> None:
    here, made = batch(), []
    for each in (here, here.restrict_to(frozenset({inputs.RESPONSE})), here):
        assert each.derive("key", lambda: made.append(1) or len(made)) == 1  # type: ignore[func-returns-value]
    assert here.derive("other key", lambda: 2) == 2
    assert made == [1]


# Needs: every one of them can be given by an argument and by an option.


def test_the_remedy_names_what_provides_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "OPTIONS", {})
    assert inputs.TRAIN.remedy == "needs train: train=... in Python"
    monkeypatch.setitem(inputs.OPTIONS, "train", "--train")
    assert inputs.TRAIN.remedy == "needs train: --train on the command line, train=... in Python"
    assert inputs.Column.of_field("csat").remedy == "needs a field csat in responses"


def test_inputs_survive_pickling() -> None:
    copy = pickle.loads(pickle.dumps(inputs.LATENCY))
    assert (copy, copy.kind, copy.argument) == (inputs.LATENCY, "number", inputs.LATENCY.argument)


def test_what_a_batch_is_unless_it_says_otherwise() -> None:
    plain = Batch(2, COLUMNS, Vocabulary(), np.array([0, 1, 2]))
    assert (plain.whole, plain.ids, plain.allowed) == (True, None, None)
    assert (dict(plain.resources), dict(plain.facts)) == ({}, {})
    assert batch().has(inputs.TRAIN), "a resource"
    assert not plain.has(inputs.TRAIN)
    shared = SharedColumn.from_steps(RaggedColumn.from_lists([["x"], ["y"]]), np.array([False, True]))
    with pytest.raises(NeedError, match="rows may share texts of reference"):
        Batch(2, {inputs.REFERENCE: shared}, Vocabulary(), np.array([0, 2])).lists(inputs.REFERENCE)
