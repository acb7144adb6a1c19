"""BLEU of nlg-eval against its definition in plain Python, per response and for the corpus."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.metrics.bleu import NlgBleu
from metrics.test_bleu import batch_of
from metrics.twins import grams

texts = st.lists(st.sampled_from("abc"), max_size=80).map(" ".join)
rows_of_texts = st.lists(st.tuples(texts, st.lists(texts, min_size=1, max_size=3)), min_size=1, max_size=6)
Rows = list[tuple[str, list[str]]]


def counts(response: Sequence[str], references: Sequence[Sequence[str]], n: int) -> list[int]:
    """Length, closest length, then matches and n-grams by order."""
    closest = min((abs(len(reference) - len(response)), len(reference)) for reference in references)[1]
    found = [len(response), closest]
    for order in range(1, n + 1):
        most: Counter[tuple[str, ...]] = Counter()
        for reference in references:
            most |= Counter(grams(reference, order))
        here = Counter(grams(response, order))
        found += [(here & most).total(), here.total()]
    return found


def bleu(length: int, closest: int, *pairs: int) -> float:
    """coco-caption's formula, in its order of operations."""
    value = 1.0
    for matches, total in zip(pairs[::2], pairs[1::2], strict=True):
        value *= (matches + 1e-15) / (total + 1e-9)
    value **= 1 / (len(pairs) // 2)
    ratio = (length + 1e-15) / (closest + 1e-9)
    return float(value * math.exp(1 - 1 / ratio)) if ratio < 1 else value


@given(rows=rows_of_texts, n=st.integers(1, 4))
def test_it_is_the_definition(rows: Rows, n: int) -> None:
    metric = NlgBleu(n=n)  # type: ignore[arg-type]
    batch = batch_of([response for response, _ in rows], [references for _, references in rows])
    partial = metric.partial(batch)
    counted = [counts(response.split(), [text.split() for text in texts], n) for response, texts in rows]
    expected = [bleu(*row) for row in counted]
    np.testing.assert_allclose(partial.scores[metric.name], expected, rtol=1e-13)
    assert metric.finish(partial.state)[metric.name].mean == pytest.approx(np.mean(expected), rel=1e-13)

    corpus = NlgBleu(n=n, per="corpus")  # type: ignore[arg-type]
    whole = corpus.finish(corpus.partial(batch).state)[corpus.name]
    assert whole.corpus
    assert whole.mean == pytest.approx(bleu(*np.sum(counted, axis=0).tolist()), rel=1e-13)


def test_rows_without_a_reference_add_nothing() -> None:
    corpus = NlgBleu(per="corpus")
    some = batch_of(["a b c d", "a b c d", "", ""], [["a b c d"], [], ["a"], []])
    fewer = batch_of(["a b c d", ""], [["a b c d"], ["a"]])
    states = [corpus.partial(batch) for batch in (some, fewer)]
    np.testing.assert_array_equal(np.isnan(states[0].scores[corpus.name]), [False, True, False, True])
    one, other = (corpus.finish(state.state)[corpus.name] for state in states)
    assert one.mean == other.mean
    assert (one.units, one.scored) == (4, 2)
