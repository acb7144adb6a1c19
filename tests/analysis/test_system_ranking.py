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
from dialeval.reports.comparisons import judge_run, state_system_verdicts, state_verdict
from dialeval.reports.summary import make_summary
from dialeval.stats.significance import find_homogeneous_groups, holm, letter_display

ROWS = 60


def run_of(systems: Mapping[str, Floats] | None = None, key: str = "rouge-l", **more: Floats) -> Run:
    made: dict[str, Result] = {}
    for name, items in {**(systems or {}), **more}.items():
        known = items[~np.isnan(items)]
        estimate = Estimate(float(known.mean()), float(known.std()), len(items), len(known), items=items)
        estimate = replace(estimate, signature=Signature.of(key, definition=1))
        made[name] = Result({key: estimate}, rows=RowTable(np.arange(0, len(items) + 1, 2)))
    return Run(made, "0")


def ranking_of(run: Run) -> SystemRanking:
    found = compare(run).ranking
    assert found is not None
    return found


def noise(seed: int, size: float = 0.1, rows: int = ROWS) -> Floats:
    return np.random.default_rng(seed).normal(0, size, rows)


def test_twelve_systems_in_pairs_of_equals_are_a_chain_of_six_groups() -> None:
    hard = 0.5 + noise(0)
    run = run_of({f"s{at}": hard + 0.05 * (at // 2) for at in range(12)})
    found = ranking_of(run)
    assert found.tests == 66
    assert found.groups == [[f"s{at}", f"s{at + 1}"] for at in (10, 8, 6, 4, 2, 0)]
    design, text = state_verdict(compare(run))
    assert design.startswith("Paired design")
    assert text.startswith("Ranking by rouge-l: s10, s11 > s8, s9 > s6, s7 > s4, s5 > s2, s3 > s0, s1. ")
    assert "randomization test of all 66 pairs, significance level 0.05, corrected for 66 tests" in text
    assert "Compared with s0 on rouge-l" in text
    assert judge_run(run).sentences == [design, text], "the terminal says the same, in one paragraph"
    page = make_summary(run).content
    assert page.count('class="figure best') == 2, "bold are s10 and s11, as the ranking says"
    assert "are those of the ranking." in page
    assert page.index("Ranking by rouge-l") < page.index("System by system") < page.index("s11 is better than s0")


def test_groups_overlap_where_only_the_ends_differ() -> None:
    hard = 0.5 + noise(0)
    run = run_of(best=hard + 0.1, unsure=hard + 0.05 + noise(1, 0.6), worst=hard)
    found = ranking_of(run)
    assert [sorted(group) for group in found.groups] == [["best", "unsure"], ["unsure", "worst"]]
    text = state_verdict(compare(run))[1]
    assert text.startswith("Ranking by rouge-l, best first: best (a), unsure (ab), worst (b). ")
    assert "Systems differ significantly if they share no letter" in text


def test_lower_values_are_first_where_lower_is_better() -> None:
    hard = 2.0 + noise(0)
    found = ranking_of(run_of(key="call-errors", a=hard + 0.5, b=hard, c=hard + 1.0))
    assert found.systems == ["b", "a", "c"]
    assert found.groups == [["b"], ["a"], ["c"]]


def test_equal_systems_are_one_group() -> None:
    run = run_of(a=0.5 + noise(1), b=0.5 + noise(2), c=0.5 + noise(3))
    assert len(ranking_of(run).groups) == 1
    assert state_verdict(compare(run))[1].startswith("No two of the 3 systems differ significantly on rouge-l (")


@pytest.mark.parametrize(("missing", "cells"), [(0, 1 << 24), (7, 1 << 24), (7, 1)])
def test_p_values_are_those_of_the_comparison_of_two(missing: int, cells: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(difference, "_MOST_CELLS", cells)
    items = {name: 0.4 + 0.03 * at + noise(at) for at, name in enumerate("abcd")}
    items["c"][:missing] = math.nan
    run, pairs = run_of(items), list(combinations(items, 2))
    two = [compare(run, baseline=one, systems=[other]).rows[0].p for one, other in pairs]
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
    assert "permutation test" in state_verdict(unpaired)[2]


def test_a_system_that_could_hardly_be_scored_is_not_ranked() -> None:
    scarce = np.full(ROWS, math.nan)
    scarce[:2] = 0.9  # of one dialogue
    assert compare(run_of(a=0.5 + noise(1), b=0.9 + noise(2), c=scarce)).ranking is None
    assert compare(run_of({name: np.array([0.1, 0.2 * at]) for at, name in enumerate("abc")})).ranking is None


def test_a_metric_without_a_test_is_passed_over() -> None:
    here = sample_data.folder()
    references, train = here / "references.txt", here / "train.txt"
    run = dialeval.evaluate(here / "responses", references, metrics="unigram-kl-div,rouge-l", train=train)
    compared = compare(run)
    assert all(math.isnan(row.p) for row in compared.rows if row.key == "unigram-kl-div")
    assert compared.ranking is not None
    assert compared.ranking.key == "rouge-l"


def test_designs_of_many_systems_are_one_sentence() -> None:
    run = run_of({f"s{at}": 0.5 + noise(at, rows=ROWS + 2 * at) for at in range(6)})
    found = compare(run, design="unpaired")
    assert state_verdict(found)[0].startswith("Designs: unpaired (s1, s2, s3, s4, s5).")
    assert state_system_verdicts(found)[4].startswith(
        "Unpaired design: 30 dialogues (60 rows) of s0 and 35 (70 rows) of s5 are compared as "
    )


def test_there_is_no_ranking_of_two_or_without_a_metric_that_says_what_is_better() -> None:
    run = run_of(a=0.5 + noise(1), b=0.9 + noise(2))
    assert compare(run).ranking is None
    run = run_of(key="length", a=5 + noise(1), b=9 + noise(2), c=5 + noise(1))
    found = compare(run)
    assert found.ranking is None
    text = state_verdict(found)[1]
    assert "no significant difference: c; different, without being better or worse: b." in text
    assert text.count("None of the tested metrics says which replies are better") == 1
    assert len(state_system_verdicts(found)) == 2
    assert compare(run_of(a=noise(1), b=noise(2), c=noise(3)), pairwise=False).ranking is None


def test_of_many_systems_the_first_are_named() -> None:
    run = run_of({f"s{at}": 0.5 + 0.05 * at + noise(0) for at in range(20)})
    text = state_verdict(compare(run))[1]
    assert "s19 (a), s18 (b)" in text
    assert "s5 (o) and 5 more. Systems differ" in text
    assert compare(run, most_tests=19).ranking is None, "190 pairs are more tests than were allowed"


@given(st.sets(st.sampled_from([frozenset(pair) for pair in combinations("abcdefg", 2)])))
def test_two_share_a_group_exactly_if_they_do_not_differ(different: set[frozenset[str]]) -> None:
    groups = find_homogeneous_groups("abcdefg", different)
    letters = letter_display(groups)
    for pair in map(frozenset, combinations("abcdefg", 2)):
        assert any(pair <= set(group) for group in groups) == (pair not in different)
        one, other = pair
        assert (not set(letters[one]) & set(letters[other])) == (pair in different)
    assert len(groups) == len({frozenset(group) for group in groups})
