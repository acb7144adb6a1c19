from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz import fuzz
from rapidfuzz.distance import LCSseq

from dialeval.text.similarity import find_similar, partial_ratio, token_sort_ratio

texts = st.text("abc ", max_size=12)


@pytest.mark.parametrize(
    ("one", "other", "historical", "exact"),
    [
        ("inn", "inn", 100, 100),
        ("1", "10", 100, 100),
        ("", "abc", 0, 0),
        ("", "", 100, 100),
        ("abc", "xyz", 0, 0),
        # A pair for which the historical windows miss the best one, as the MultiWOZ data has it.
        ("alpha-milton guest house", "acorn guest house", 85, 90),
    ],
)
def test_values(one: str, other: str, historical: int, exact: int) -> None:
    assert partial_ratio(one, other) == historical
    assert partial_ratio(one, other, "exact") == exact
    assert partial_ratio(other, one) == historical


@given(texts, texts)
def test_no_window_is_better_than_the_best(one: str, other: str) -> None:
    assert 0 <= partial_ratio(one, other) <= max(partial_ratio(one, other, "exact"), 0) <= 100


@given(
    texts, st.lists(texts, max_size=8), st.sampled_from([0, 50, 90, 95, 100]), st.sampled_from(["historical", "exact"])
)
def test_similar_is_the_ratio_of_each(text: str, others: list[str], least: int, ratio: str) -> None:
    expected = [other for other in others if partial_ratio(other, text, ratio) >= least]  # type: ignore[arg-type]
    assert find_similar(text, others, least, ratio) == expected  # type: ignore[arg-type]


def plain_words(text: str) -> str:
    """The words of a text in order, character by character."""
    kept = [character for character in text if not 0x80 <= ord(character) <= 0xFF]
    spaced = "".join(character if re.match(r"\w", character) else " " for character in kept)
    return " ".join(sorted(spaced.lower().split()))


def block_matches(one: str, other: str) -> int:
    """Characters of the longest common block, the first of the longest, and of those beside it."""
    sizes = ((i, j) for i in range(len(one)) for j in range(len(other)))
    best, at, there = 0, 0, 0
    for i, j in sizes:
        size = 0
        while i + size < len(one) and j + size < len(other) and one[i + size] == other[j + size]:
            size += 1
        if size > best:
            best, at, there = size, i, j
    if not best:
        return 0
    left = block_matches(one[:at], other[:there])
    return best + left + block_matches(one[at + best :], other[there + best :])


def whole_per_cent(matches: int, characters: int) -> int:
    """Rounded as Python rounds a float: half goes to the even neighbor."""
    return round(100 * (2.0 * matches / characters))


values = st.text("abcAB 1_.-éŁ中", max_size=12)


@given(values, values)
def test_the_token_sort_ratio_of_blocks_is_that_of_the_definition(one: str, other: str) -> None:
    here, there = plain_words(one), plain_words(other)
    if not here or not there or here == there:
        assert token_sort_ratio(one, other) == (100 if here == there else 0)
    else:
        assert token_sort_ratio(one, other) == whole_per_cent(block_matches(here, there), len(here) + len(there))


@given(values, values)
def test_the_token_sort_ratio_of_edits_is_that_of_rapidfuzz(one: str, other: str) -> None:
    here, there = plain_words(one), plain_words(other)
    expected = 100.0 if here == there else fuzz.ratio(here, there)
    assert token_sort_ratio(one, other, "edits") == pytest.approx(expected, abs=0.5 + 1e-9)
    common = LCSseq.similarity(here, there)
    if here != there:
        assert token_sort_ratio(one, other, "edits") == whole_per_cent(common, len(here) + len(there))


@pytest.mark.parametrize(
    ("one", "other", "blocks", "edits"),
    [
        ("Bird Dog", "Bird", 67, 67),  # published with the evaluation of schema_guided_dst
        ("half past seven", "seven, half past", 100, 100),
        ("café", "caf", 100, 100),
        ("", "?!", 100, 100),
        ("", "six", 0, 0),
        ("six", "?", 0, 0),
        ("a\x7fb", "a b", 100, 100),  # this one and those from U+0100 on are not taken out
        ("a\x80\xffb", "ab", 100, 100),
        ("a\u0100", "a", 67, 67),
        ("a_b", "a b", 67, 67),
        ("ab ac", "ba ca", 60, 60),
        ("abcd", "acbd", 75, 75),
        ("gull point landing", "long stairs landing", 54, 59),  # the longest block hides a longer subsequence
        ("long stairs landing", "gull point landing", 59, 59),
        ("14:05", "4:05 pm", 67, 67),
        ("x" * 150 + "ab", "ab" + "x" * 200, 1, 85),  # of 200 characters frequent ones are left out
    ],
)
def test_token_sort_ratios(one: str, other: str, blocks: int, edits: int) -> None:
    assert token_sort_ratio(one, other) == blocks
    assert token_sort_ratio(one, other, "edits") == edits
