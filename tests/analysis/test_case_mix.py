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
    return Result({}, rows=RowTable(offsets, fields={"topic": RaggedColumn.from_lists(lists)}))


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


def test_other_mixes_are_warned_of() -> None:
    left, right = result(*[["x"]] * 40, *[["y"]] * 10), result(*[["x"]] * 15, *[["y"]] * 35)
    (line,) = warn(left, right)
    assert line.startswith("topic is distributed differently in a and b ('x' is 80% and 30% of the rows)")
    assert "--adjust topic" in line
    assert warn(left, right, "topic") == []
    assert warn(left, left) == []


def test_few_long_dialogues_are_no_evidence_of_another_mix() -> None:
    """Thirty rows of three dialogues are three draws of a topic."""
    assert warn(result(["x"], ["x"], ["y"], rows_each=10), result(["y"], ["y"], ["x"], rows_each=10)) == []


def test_equal_mixes_are_rarely_warned_of() -> None:
    rng = np.random.default_rng(1)
    logs = [result(*[["xyz"[n]] for n in rng.integers(0, 3, 30)]) for _ in range(300)]
    assert sum(bool(warn(left, right)) for left, right in zip(logs[::2], logs[1::2], strict=True)) <= 6


def test_small_differences_of_large_logs_are_not_warned_of() -> None:
    """The half of the sum of the differences of fractions must be a tenth, however sure it is."""
    left = result(*[["x"]] * 600, *[["y"]] * 600)
    assert warn(left, result(*[["x"]] * 690, *[["y"]] * 510)) == []
    (line,) = warn(left, result(*[["x"]] * 400, *[["y"]] * 800, ["z"], ["z", "x"]))
    assert line == (
        "topic is distributed differently in a and b ('x' is 50% and 33% of the rows); "
        "compare with --adjust topic (adjust='topic')"
    )


def test_fields_of_too_many_or_too_few_values_are_no_slices() -> None:
    some = [[f"t{number:03}"] for number in range(50) for _ in range(4)]
    others = [[f"u{number:03}"] for number in range(50) for _ in range(4)]
    assert len(warn(result(*some), result(*others))) == 1
    assert warn(result(*some), result(*others, ["more"])) == []
    assert warn(result(*[["x"]] * 30), result(*[["x"]] * 30)) == []


def test_other_designs_and_fields_of_one_log_are_not_compared() -> None:
    left, right = result(*[["x"]] * 40), result(*[["y"]] * 40)
    assert len(warn(left, right)) == 1
    paired = Alignment(Design("paired", "dialogues", 1, 1), left, right)
    assert list(compare_mixes("a", "b", paired, [], Settings())) == []
    bare = Result({}, rows=RowTable(np.arange(41)))
    assert warn(left, bare) == warn(bare, right) == []
    assert list(compare_mixes("a", "b", aligned(left, Result({})), [], Settings())) == []
    assert warn(result(["x"], rows_each=40), right) == [], "a single dialogue"
    assert warn(left, result(["y"], rows_each=40)) == []


def test_what_was_kept_is_named() -> None:
    one, none = result(["x"]), Result({}, rows=RowTable(np.arange(2)))
    assert check_adjusted(None, {"a": one}, ["a"]) == []
    assert check_adjusted(["topic"], {"a": one, "b": none}, ["a"]) == ["topic"]
    for known in (none, Result({})):
        with pytest.raises(SettingError) as info:
            check_adjusted("topic", {"a": one, "b": known}, ["a", "b"])
        assert str(info.value) == (
            "b has no field 'topic' to adjust for, it kept none; score it again with --by topic (keep=['topic'])"
        )
    assert list_strata(one, one, []) is None
