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


def test_facts_have_to_be_named() -> None:
    assert batch().fact("fact") == 7
    with pytest.raises(NeedError, match="without declaring it in its facts"):
        batch().fact("other")


# Needs: every one of them can be given by an argument and by an option.
