"""KL divergence against its naive twin, on any vocabulary."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given

import dialeval
from dialeval.analysis.gates import check_baseline
from dialeval.analysis.values import cut
from dialeval.core.errors import SettingError
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


def test_equal_systems_that_speak_unlike_the_references_do_not_differ() -> None:
    """Both systems draw their words from one distribution: a test that held it fixed found a difference in 90%."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1.0, 201)
    shares /= shares.sum()
    for _ in range(5):
        others = rng.permutation(shares)
        references, first, second = (
            [" ".join(f"w{word}" for word in rng.choice(200, 12, p=p)) for _ in range(100)]
            for p in (shares, others, others)
        )
        run = dialeval.evaluate({"a": first, "b": second}, references, metrics="kl-div")
        comparison = dialeval.compare(run, trials=1000, resamples=100)
        for row in comparison.rows:
            assert row.difference != 0
            assert (row.interval, row.significant, np.isnan(row.p)) == (None, False, True)
            assert row.reason is not None
            assert "of all responses together" in row.reason
        with pytest.raises(SettingError, match="b cannot be compared with a on unigram-kl-div"):
            list(check_baseline(comparison, {}))


def test_there_is_no_interval_but_that_of_the_original() -> None:
    texts = [f"a b w{number}" for number in range(30)]
    run = dialeval.evaluate({"a": texts, "b": texts[::-1]}, ["a b c"] * 30, metrics="unigram-kl-div,length")
    assert run["a"]["unigram-kl-div"].interval is None
    assert run["a"]["length"].interval is not None
    resampled = dialeval.with_intervals(run, resamples=50)
    assert resampled["a"]["unigram-kl-div"].interval is None
    assert any("unigram-kl-div has no resampled interval: it is of the words" in line for line in resampled.warnings)
    assert cut(run["a"], np.arange(20))["unigram-kl-div"].interval is None
    rows = dialeval.evaluate(texts, ["a b c"] * 30, metrics="unigram-kl-div", intervals="rows")["system"]
    assert rows["unigram-kl-div"].interval is not None
