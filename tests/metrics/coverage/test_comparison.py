"""Pairs of hypotheses and groups against nested loops."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.metrics.coverage import comparison as comparison_module
from dialeval.metrics.coverage.comparison import Comparison
from dialeval.text.vocabulary import Vocabulary
from metrics.coverage.twins import Group, Query, Words, queries


def compared(corpus: list[Query]) -> Comparison:
    return Comparison.of_words([texts for texts, _ in corpus], [groups for _, groups in corpus], Vocabulary())


def as_words(comparison: Comparison) -> list[tuple[Words, Group]]:
    """Every pair in words."""
    texts, references = comparison.hypotheses.words(), comparison.references.words()
    bounds = comparison.groups.tolist()
    pairs = zip(comparison.pair_hypotheses.tolist(), comparison.pair_groups.tolist(), strict=True)
    return [(texts[text], references[bounds[group] : bounds[group + 1]]) for text, group in pairs]


@given(st.lists(queries(), max_size=5), st.sampled_from([1, 7, 1 << 16]))
@settings(max_examples=60)
def test_pairs_in_order_however_they_are_cut(corpus: list[Query], most: int) -> None:
    expected = [pair for texts, groups in corpus for pair in itertools.product(texts, groups)]
    whole = compared(corpus)
    assert as_words(whole) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison_module, "PART_PAIRS", most)
        parts = list(whole.parts())
    assert [pair for _, part in parts for pair in as_words(part)] == expected
    assert [text for _, part in parts for text in part.hypotheses.words()] == whole.hypotheses.words()
    assert all(part.queries == 1 or part.pairs[-1] <= most for _, part in parts)
    starts = [start for start, _ in parts]
    assert starts == list(itertools.accumulate([0, *(len(part.hypotheses) for _, part in parts)]))[: len(parts)]


def test_references_among_themselves() -> None:
    comparison = compared([([["h"]], [[["a"], ["b"]], [["c"]]]), ([], [[["d"]]])]).among_references()
    assert as_words(comparison) == [([x], [[y]]) for x in "abc" for y in "abc"] + [(["d"], [["d"]])]
