"""Invented texts with everything that the response metrics need, and word vectors out of a dict."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

import evaluating
from dialeval.core.arrays import Floats
from dialeval.core.fold import Metric
from dialeval.core.result import Result
from dialeval.metrics.registry import registry

WORDS = ["a", "b", "c", "d", "e", "<unk>", "f"]
texts = st.lists(st.sampled_from(WORDS), max_size=6).map(" ".join)
worlds = st.integers(1, 6).flatmap(
    lambda rows: st.fixed_dictionaries(
        {
            "responses": st.lists(texts, min_size=rows, max_size=rows),
            "references": st.lists(texts, min_size=rows, max_size=rows),
            "contexts": st.lists(texts, min_size=rows, max_size=rows),
            "train": st.lists(texts, min_size=1, max_size=5),
            "vocabulary": st.one_of(st.none(), st.lists(st.sampled_from(WORDS), min_size=1)),
            "vectors": st.dictionaries(
                st.sampled_from(WORDS), st.tuples(*[st.sampled_from([-2.0, -0.5, 0.0, 0.5, 2.0])] * 3), min_size=1
            ),
        }
    )
)


class Vectors:
    """Word vectors out of a dict."""

    name, digest, dimension = "dict", "0" * 12, 3

    def __init__(self, table: Mapping[str, tuple[float, ...]]) -> None:
        self.table = table

    def vectors_for(self, words: Sequence[str]) -> tuple[Floats, npt.NDArray[np.bool_]]:
        found = np.array([self.table.get(word, (0.0,) * 3) for word in words]).reshape(-1, 3)
        return found, np.array([word in self.table for word in words], np.bool_)


def evaluated(world: dict[str, Any], **more: Any) -> tuple[Result, set[str], dict[str, Floats]]:
    known = set(world["vocabulary"] or " ".join(world["train"]).split()) | set(world["vectors"])
    run = evaluating.evaluate(
        world["responses"],
        world["references"],
        world["contexts"],
        train=world["train"],
        vectors=Vectors(world["vectors"]),
        **more,
        vocabulary=world["vocabulary"],
    )
    return run["system"], known, {word: np.array(vector) for word, vector in world["vectors"].items()}


def close(result: Result, key: str, expected: list[float]) -> None:
    items = result[key].scores
    assert items is not None
    np.testing.assert_allclose(items, np.array(expected), rtol=1e-9, atol=1e-12, err_msg=key)


def mean(values: list[float]) -> float:
    return sum(values) / len(values) if values else math.nan


VECTORS = Vectors({"a": (1.0, 0.0, 0.0), "b": (0.6, 0.8, 0.0), "c": (-1.0, 0.0, 0.0)})


def unregister(metric: type[Metric[Any]]) -> None:
    """Take a metric class out of the registry again."""
    del registry()._families[metric.family]
    for name in metric.presets:
        del registry()._presets[name]
