"""A batch hands out what a metric declared, in the form that it has, and keeps what is derived once."""

from __future__ import annotations

import pickle
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn, ObjectColumn, RaggedColumn, TextColumn
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


@pytest.mark.parametrize(
    ("read", "need", "message"),
    [
        ("texts", inputs.REFERENCE, "does not hold one text per row"),
        ("lists", STATES, "holds objects and not texts"),
        ("objects", inputs.RESPONSE, "holds texts"),
        ("lists", inputs.CONTEXT, "needs contexts"),
        ("numbers", STATES, "does not hold numbers"),
        ("texts", inputs.CONTEXT, "needs contexts"),
        ("resource", inputs.EMBEDDINGS, "needs vectors"),
    ],
)
def test_what_is_not_there_or_of_another_kind_is_an_error(read: str, need: Input, message: str) -> None:
    with pytest.raises(NeedError, match=message):
        getattr(batch(), read)(need)


def test_facts_have_to_be_named() -> None:
    assert batch().fact("fact") == 7
    with pytest.raises(NeedError, match="without declaring it in its facts"):
        batch().fact("other")


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
