from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.text.similarity import partial_ratio, similar

texts = st.text("abc ", max_size=12)


@pytest.mark.parametrize(
    ("one", "other", "historical", "exact"),
    [
        ("inn", "inn", 100, 100),
        ("1", "10", 100, 100),
        ("", "abc", 0, 0),
        ("", "", 0, 0),
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
    assert similar(text, others, least, ratio) == expected  # type: ignore[arg-type]
