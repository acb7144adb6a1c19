"""KL divergence against its naive twin, on any vocabulary."""

from __future__ import annotations

from typing import Any

from hypothesis import given

import dialeval
from metrics import twins
from metrics.evaluated import close, evaluated, mean, worlds


@given(worlds)
def test_divergence(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="kl-div", batch_rows=2)
    for n, key in ((1, "unigram-kl-div"), (2, "bigram-kl-div")):
        bits = [
            twins.divergences(reference, world["responses"], world["references"], n, known)
            for reference in world["references"]
        ]
        close(result, key, [mean(row) for row in bits])


@given(worlds)
def test_divergence_without_a_vocabulary(world: dict[str, Any]) -> None:
    result = dialeval.evaluate(world["responses"], world["references"], metrics="bigram-kl-div")["system"]
    bits = [twins.divergences(text, world["responses"], world["references"], 2, None) for text in world["references"]]
    close(result, "bigram-kl-div", [mean(row) for row in bits])
