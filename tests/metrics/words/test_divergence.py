"""KL divergence against its naive twin, on any vocabulary."""

from __future__ import annotations

from typing import Any

from hypothesis import given

from metrics import twins
from metrics.evaluated import close, evaluated, mean, worlds


@given(worlds)
def test_divergence(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="dialog-eval", batch_rows=2)
    for n, key in ((1, "unigram-kl-div"), (2, "bigram-kl-div")):
        bits = [
            twins.divergences(reference, world["responses"], world["references"], n, known)
            for reference in world["references"]
        ]
        close(result, key, [mean(row) for row in bits])


@given(worlds)
def test_divergence_of_words_as_themselves(world: dict[str, Any]) -> None:
    result, _, _ = evaluated(world, metrics="bigram-kl-div")
    bits = [twins.divergences(text, world["responses"], world["references"], 2, None) for text in world["references"]]
    close(result, "bigram-kl-div", [mean(row) for row in bits])
