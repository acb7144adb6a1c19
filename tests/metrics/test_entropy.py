"""Entropy against its naive twin, on any vocabulary."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import given

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
