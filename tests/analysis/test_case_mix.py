"""The case mix of two logs: strata, and warnings where slices are distributed differently."""

from __future__ import annotations

import numpy as np
import pytest

from dialeval.analysis.alignment import Alignment, Design
from dialeval.analysis.difference import Settings
from dialeval.analysis.unpaired import check_adjusted, compare_mixes, list_strata
from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import SettingError
from dialeval.core.result import Result
from dialeval.core.rowtable import RowTable


def result(*topics: list[str], rows_each: int = 1) -> Result:
    """A log of dialogues, each with a list of topics in all of its rows."""
    lists = [each for each in topics for _ in range(rows_each)]
    offsets = np.arange(len(topics) + 1, dtype=np.int64) * rows_each
    return Result({}, table=RowTable(offsets, fields={"topic": RaggedColumn.from_lists(lists)}))


def aligned(left: Result, right: Result) -> Alignment:
    return Alignment(Design("unpaired", "dialogues", 1, 1), left, right)


def warn(left: Result, right: Result, *adjusted: str) -> list[str]:
    return list(compare_mixes("a", "b", aligned(left, right), adjusted, Settings()))


def test_strata_are_combinations_of_values() -> None:
    one = result(["x"], [], ["y", "x"])
    strata = list_strata(one, one, ["topic", "topic"])
    assert strata is not None
    assert strata[0] == ["x / x", "(no value) / (no value)", "x, y / x, y"]
    assert check_adjusted("topic", {"a": one}, ["a"]) == ["topic"]
    for adjust, message in (("", "no field is named"), ("channel", "a has no field 'channel'.*it kept topic")):
        with pytest.raises(SettingError, match=message):
            check_adjusted(adjust, {"a": one}, ["a"])


def test_equal_mixes_are_rarely_warned_of() -> None:
    rng = np.random.default_rng(1)
    logs = [result(*[["xyz"[n]] for n in rng.integers(0, 3, 30)]) for _ in range(300)]
    assert sum(bool(warn(left, right)) for left, right in zip(logs[::2], logs[1::2], strict=True)) <= 6
