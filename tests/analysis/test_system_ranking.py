"""The ranking of three or more systems: order, pairwise tests, groups, and the sentence about them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval import sample_data
from dialeval.analysis import difference
from dialeval.analysis.comparison import SystemRanking, compare
from dialeval.core.arrays import Floats
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.core.signature import Signature
from dialeval.stats.significance import find_homogeneous_groups, holm, letter_display

ROWS = 60


def run_of(systems: Mapping[str, Floats] | None = None, key: str = "rouge-l", **more: Floats) -> Run:
    made: dict[str, Result] = {}
    for name, items in {**(systems or {}), **more}.items():
        known = items[~np.isnan(items)]
        estimate = Estimate(float(known.mean()), float(known.std()), len(items), len(known), scores=items)
        estimate = replace(estimate, signature=Signature.of(key, definition=1))
        made[name] = Result({key: estimate}, table=RowTable(np.arange(0, len(items) + 1, 2)))
    return Run(made, "0")


def ranking_of(run: Run) -> SystemRanking:
    found = compare(run).ranking
    assert found is not None
    return found


def noise(seed: int, size: float = 0.1, rows: int = ROWS) -> Floats:
    return np.random.default_rng(seed).normal(0, size, rows)


def test_lower_values_are_first_where_lower_is_better() -> None:
    hard = 2.0 + noise(0)
    found = ranking_of(run_of(key="call-errors", a=hard + 0.5, b=hard, c=hard + 1.0))
    assert found.systems == ["b", "a", "c"]
    assert found.groups == [["b"], ["a"], ["c"]]


def test_equal_systems_are_one_group() -> None:
    run = run_of(a=0.5 + noise(1), b=0.5 + noise(2), c=0.5 + noise(3))
    assert len(ranking_of(run).groups) == 1
    assert compare(run).verdict.headline == "Too close to call: no two of the 3 systems can be told apart"


@pytest.mark.parametrize(("missing", "cells"), [(0, 1 << 24), (7, 1 << 24), (7, 1)])
def test_p_values_are_those_of_the_comparison_of_two(missing: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference, "_MOST_CELLS", cells)
    items = {name: 0.4 + 0.03 * at + noise(at) for at, name in enumerate("abcd")}
    items["c"][:missing] = math.nan
    run, pairs = run_of(items), list(combinations(items, 2))
    two = [compare(run, baseline=one, systems=[other]).differences[0].p for one, other in pairs]
    different = {frozenset(pair) for pair, p in zip(pairs, holm(two), strict=True) if p < 0.05}
    found = ranking_of(run)
    assert 0 < len(different) < len(pairs)
    assert found.groups == find_homogeneous_groups(found.systems, different)


def test_corpus_values_and_independent_samples_are_ranked() -> None:
    random = np.random.default_rng(5)
    references = [" ".join(f"w{n}" for n in random.integers(0, 60, 9)) for _ in range(80)]

    def copy(rate: float, seed: int) -> list[str]:
        own = np.random.default_rng(seed)
        return [" ".join(word if own.random() < rate else "x" for word in text.split()) for text in references]

    run = dialeval.evaluate({"a": copy(0.9, 1), "b": copy(0.5, 2), "c": copy(0.88, 3)}, references, metrics="sacrebleu")
    found = ranking_of(run)
    assert found.key == "sacrebleu"
    assert found.groups == [["c", "a"], ["b"]]
    unpaired = compare(run_of(a=0.9 + noise(1), b=0.5 + noise(2), c=0.1 + noise(3)), design="unpaired")
    assert unpaired.ranking is not None
    assert unpaired.ranking.groups == [["a"], ["b"], ["c"]]
    assert unpaired.verdict.headline == "a leads; b and c are clearly behind"


def test_a_metric_without_a_test_is_passed_over() -> None:
    here = sample_data.folder()
    references, train = here / "references.txt", here / "train.txt"
    run = dialeval.evaluate(here / "responses", references, metrics="unigram-kl-div,rouge-l", train=train)
    compared = compare(run)
    assert all(math.isnan(row.p) for row in compared.differences if row.key == "unigram-kl-div")
    assert compared.ranking is not None
    assert compared.ranking.key == "rouge-l"


def test_designs_of_many_systems_are_one_sentence() -> None:
    run = run_of({f"s{at}": 0.5 + noise(at, rows=ROWS + 2 * at) for at in range(6)})
    found = compare(run, design="unpaired")
    assert "Designs: unpaired (s1, s2, s3, s4, s5)." in found.verdict.sentences[-1]


@given(st.sets(st.sampled_from([frozenset(pair) for pair in combinations("abcdefg", 2)])))
def test_two_share_a_group_exactly_if_they_do_not_differ(different: set[frozenset[str]]) -> None:
    groups = find_homogeneous_groups("abcdefg", different)
    letters = letter_display(groups)
    for pair in map(frozenset, combinations("abcdefg", 2)):
        assert any(pair <= set(group) for group in groups) == (pair not in different)
        one, other = pair
        assert (not set(letters[one]) & set(letters[other])) == (pair in different)
    assert len(groups) == len({frozenset(group) for group in groups})
