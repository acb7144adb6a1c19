"""Which part of the context coherence looks at; `test_embedding` compares its values with a naive twin."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import dialeval
from metrics.evaluated import VECTORS


def test_a_chat_has_the_values_of_its_rows() -> None:
    said = ["a", "c", "b a", "", "c c a", "a b", "x", "b", "a c", "c"]
    messages = [{"role": ("user", "assistant")[turn % 2], "content": text} for turn, text in enumerate(said)]
    chats = [{"messages": messages}, {"messages": messages[1:]}, {"messages": messages[3:]}]
    rows = [
        {"response": said[turn], "context": said[start:turn]}
        for start in (0, 1, 3)
        for turn in range(start, 10)
        if turn % 2
    ]
    shared, apart = (
        dialeval.evaluate(given, metrics="coherence", train=["x"], vectors=VECTORS)["system"]["coherence"]
        for given in (chats, rows)
    )
    np.testing.assert_array_equal(shared.items, apart.items)
    assert shared.signature == apart.signature, "the digest of the contexts is the same"
    assert shared.mean == apart.mean


def test_coherence_takes_the_last_turn() -> None:
    given: dict[str, Any] = {"metrics": "coherence", "train": ["x"], "vectors": VECTORS}
    for turns, cosine in ((["c", "a a"], 1.0), (["a", "c"], -1.0)):
        run = dialeval.evaluate(["a"], contexts=[turns], **given)
        assert run["system"]["coherence"].mean == pytest.approx(cosine)
