"""Embedding metrics and coherence against their naive twins, on any vocabulary."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings

import dialeval
from dialeval.core.arrays import Floats
from dialeval.core.result import Result
from metrics import twins
from metrics.evaluated import VECTORS, close, evaluated, worlds


@settings(max_examples=200)
@given(worlds)
def test_embeddings_and_coherence(world: dict[str, Any]) -> None:
    result, known, vectors = evaluated(world, metrics="dialog-eval")
    compare_with_twins(result, world, known, vectors, twins.shares(world["train"], 1, known))


@given(worlds)
def test_words_with_a_vector_count_whatever_the_vocabulary_is(world: dict[str, Any]) -> None:
    result, _, vectors = evaluated(world, metrics="embedding,coherence")
    compare_with_twins(result, world, set(vectors), vectors, twins.shares(world["train"], 1, None))


def compare_with_twins(
    result: Result,
    world: dict[str, Any],
    known: set[str],
    vectors: dict[str, Floats],
    shares: dict[tuple[str, ...], float],
) -> None:

    def cosines(left: list[Floats | None], right: list[Floats | None]) -> list[float]:
        pairs = zip(left, right, strict=True)
        return [math.nan if a is None or b is None else twins.cosine(a, b) for a, b in pairs]

    averages, ends = (
        {
            side: [made(text, known, vectors, *more) for text in world[side]]
            for side in ("responses", "references", "contexts")
        }
        for made, more in ((twins.average, [shares]), (twins.extrema, []))
    )
    close(result, "embedding-average", cosines(averages["responses"], averages["references"]))
    close(result, "embedding-extrema", cosines(ends["responses"], ends["references"]))
    close(result, "coherence", cosines(averages["contexts"], averages["responses"]))
    pairs = zip(world["responses"], world["references"], strict=True)
    close(result, "embedding-greedy", [twins.greedy(a, b, known, vectors) for a, b in pairs])


@pytest.mark.parametrize("by", ["average", "extrema", "greedy"])
def test_the_best_of_several_references_counts(by: str) -> None:
    several = dialeval.evaluate(["a"], [["c", "b", "", "zz"]], train=["x"], vectors=VECTORS, metrics="embedding")
    single = dialeval.evaluate(["a"], ["b"], train=["x"], vectors=VECTORS, metrics="embedding")
    key = f"embedding-{by}"
    assert several["system"][key].mean == pytest.approx(single["system"][key].mean)
    none = dialeval.evaluate(["a"], [[]], train=["x"], vectors=VECTORS, metrics="embedding")
    assert none["system"][key].scored == 0
