"""Entropy against its naive twin, on any vocabulary."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given

import dialeval
from dialeval.metrics.registry import registry
from dialeval.metrics.words import TrainEntropy
from metrics import twins
from metrics.evaluated import close, evaluated, mean, worlds


@given(worlds)
def test_entropy(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="dialog-eval")
    for n, name in ((1, "unigram"), (2, "bigram")):
        bits = [twins.entropies(response, world["train"], n, known) for response in world["responses"]]
        close(result, f"per-{name}-entropy", [mean(row) for row in bits])
        close(result, f"utterance-{name}-entropy", [sum(row) if row else math.nan for row in bits])


@given(worlds)
def test_entropy_of_words_as_themselves(world: dict[str, Any]) -> None:
    result, _, _ = evaluated(world, metrics="train-entropy")
    bits = [twins.entropies(response, world["train"], 1, None) for response in world["responses"]]
    close(result, "per-unigram-entropy", [mean(row) for row in bits])


def test_one_word_has_the_share_of_all() -> None:
    result = dialeval.evaluate(["a", "a b", "b"], train=["a"], metrics="train-entropy")["system"]
    close(result, "per-unigram-entropy", [0, 0, math.nan])
    close(result, "utterance-unigram-entropy", [0, 0, math.nan])
    result = dialeval.evaluate(["a b a", "a a"], train=["a b", "", "a"], metrics="train-entropy")["system"]
    close(result, "utterance-bigram-entropy", [0, math.nan])
    close(result, "utterance-unigram-entropy", [2 * math.log2(3 / 2) + math.log2(3), 2 * math.log2(3 / 2)])


def test_what_is_declared() -> None:
    metric = TrainEntropy()
    assert metric == TrainEntropy(1, "word", "self", "words.1")
    assert (metric.bounds, metric.definition) == ((0.0, math.inf), 2)
    presets = {str(each): (each.n, each.per) for each in registry().select("train-entropy")}  # type: ignore[attr-defined]
    assert presets == {
        "per-unigram-entropy": (1, "word"),
        "per-bigram-entropy": (2, "word"),
        "utterance-unigram-entropy": (1, "utterance"),
        "utterance-bigram-entropy": (2, "utterance"),
    }
