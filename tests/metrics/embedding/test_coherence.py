"""Which part of the context coherence looks at; `test_embedding` compares its values with a naive twin."""

from __future__ import annotations

from typing import Any

import pytest

import dialeval
from metrics.evaluated import VECTORS


def test_coherence_takes_the_last_turn_or_all() -> None:
    given_: dict[str, Any] = {"contexts": [["c", "a a"]], "train": ["x"], "embeddings": VECTORS}
    last = dialeval.evaluate(["a"], metrics="coherence", **given_)["system"]["coherence"].mean
    every = dialeval.evaluate(["a"], metrics=["coherence(turns=all)"], **given_)["system"]["coherence(turns=all)"].mean
    assert last == pytest.approx(1.0)
    assert every == pytest.approx(1.0)  # a + a + c points the same way as a
    opposed = dialeval.evaluate(["a"], contexts=[["a", "c"]], metrics="coherence", train=["x"], embeddings=VECTORS)
    assert opposed["system"]["coherence"].mean == pytest.approx(-1.0)
