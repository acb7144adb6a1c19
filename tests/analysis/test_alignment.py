"""Alignment of two systems by ids, prompts, references or position; `cli/test_designs.py` has whole commands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.analysis.alignment import align
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result
from dialeval.core.rowtable import PROMPT, REFERENCE, TRIALS, RowTable
from dialeval.core.signature import Signature


def result(sizes: Sequence[int], ids: Sequence[str | None] | None = None, **digests: Sequence[int]) -> Result:
    """A system with dialogues of so many rows; the value of each row is its number."""
    offsets = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    names = {"prompts": PROMPT, "references": REFERENCE, "trials": TRIALS}
    table = RowTable(
        offsets,
        None if ids is None else list(ids),
        digests={names[name]: np.array(each, np.uint64) for name, each in digests.items()},
    )
    items = np.arange(float(offsets[-1]))
    estimate = Estimate(
        float(items.mean()), 0.0, len(items), len(items), scores=items, signature=Signature.of("length")
    )
    return Result({"length": estimate}, table=table)


def rows_of(side: Result) -> list[float]:
    items: Any = side["length"].scores
    return [float(value) for value in items]


def test_ids_come_before_prompts_and_prompts_before_references() -> None:
    everything: dict[str, Any] = {"prompts": [1, 2], "references": [5, 6]}
    named = result([1, 1], ["x", "y"], **everything)
    assert align(named, result([1, 1], ["y", "x"], prompts=[2, 1], references=[5, 6])).design.by == "ids"
    unnamed = result([1, 1], None, **everything)
    assert align(named, unnamed).design.by == "prompts"
    assert align(unnamed, result([1, 1], references=[6, 5])).design.by == "references"
    assert align(unnamed, result([1, 1])).design.by == "position"


@pytest.mark.parametrize("ids", [["0", "1", "2", "3"], ["7", "8", "9", "11"], ["conv-0001", "conv-0002", "x", "y"]])
def test_ids_under_which_users_begin_differently_identify_nothing(ids: list[str]) -> None:
    left, right = result([1] * 4, ids, prompts=[1, 2, 3, 4]), result([1] * 4, ids, prompts=[4, 2, 1, 3])
    found = align(left, right)
    assert (found.design.by, found.design.name, rows_of(found.right)) == ("prompts", "paired", [2, 1, 3, 0])
    assert found.design.notes == (
        (
            "In 3 of 4 dialogues with the same id users begin differently, so ids are not used to match dialogues "
            "(--design ids does)."
        ),
    )
    asked = align(left, right, "ids")
    assert (asked.design.by, asked.design.name, asked.changed) == ("ids", "paired", False)
    half = align(left, result([1] * 4, ids, prompts=[1, 2, 4, 3]))
    assert (half.design.by, half.design.notes) == ("ids", ("User turns differ in 2 of 4 rows with the same id.",))
    with pytest.raises(SettingError, match="not both systems have dialogue ids"):
        align(left, result([1] * 4, prompts=[1, 2, 3, 4]), "ids")


def test_prompts_match_dialogues_whose_ids_few_share() -> None:
    left = result([1] * 4, list("abcd"), prompts=[1, 2, 3, 4])
    found = align(left, result([1] * 4, list("axyz"), prompts=[1, 4, 3, 2]))
    assert (found.design.by, found.design.name, rows_of(found.right)) == ("prompts", "paired", [0, 3, 2, 1])
    assert align(left, result([1] * 4, list("axyz"), prompts=[1, 9, 8, 7])).design.by == "ids"


@given(st.lists(st.integers(1, 4), max_size=12), st.lists(st.integers(1, 4), max_size=12))
def test_a_key_that_occurs_several_times_is_matched_in_order_or_not_at_all(left: list[int], right: list[int]) -> None:
    """The definition, in plain Python."""
    if not left or not right:
        return
    expected = []
    for key in set(left):
        here, there = ([at for at, own in enumerate(side) if own == key] for side in (left, right))
        expected += list(zip(here, there, strict=True)) if len(here) == len(there) else []
    sides = result([1] * len(left), prompts=left), result([1] * len(right), prompts=right)
    if not expected:
        assert align(*sides).design.name == "unpaired"
        with pytest.raises(SettingError, match="0 of"):
            align(*sides, "common")
        return
    found = align(*sides, "common")
    assert list(zip(rows_of(found.left), rows_of(found.right), strict=True)) == sorted(expected)
    automatic = align(*sides)
    enough = len(expected) >= 0.5 * max(len(left), len(right))
    assert (automatic.design.name != "unpaired") == enough
    assert (automatic.design.name == "paired") == (len(expected) == len(left) == len(right))


def test_designs_that_cannot_be_are_refused() -> None:
    left = result([1] * 9, [f"d{at}" for at in range(9)])
    right = result([1] * 6, [f"d{at}" for at in (0, 1, 2, 3, 4, 20)])
    with pytest.raises(SettingError, match="the designs are paired, common, openings, ids, unpaired"):
        align(left, right, "pairs")  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="which rows belong to which dialogue"):
        align(left, replace(right, table=None))


def test_all_user_turns_are_a_prompt() -> None:
    """Contexts may hold one turn, replies may be several; what ends or begins alike is not the same dialogue."""
    left = result([3, 2, 1], prompts=[1, 2, 9, 4, 9, 1])
    ending = result([3, 2, 1], prompts=[1, 3, 9, 5, 9, 7])
    assert align(left, ending).design.common == 0
    twice = result([4, 3, 1], prompts=[0, 1, 2, 9, 4, 4, 9, 1])
    found = align(left, twice)
    assert (found.design.name, found.design.whole) == ("paired", True)
    left_early = result([1, 2, 2], prompts=[1, 4, 9, 1, 2])
    assert align(left, left_early, "common").design.common == 1 + 1, "all turns of two dialogues"


def test_beginnings_are_of_dialogues_in_both_logs() -> None:
    """Dialogues whose user turns agree at first are matched as far as that; on request."""
    prompts: Any = ([1, 2, 3, 7, 8, 9], [5, 6, 1, 2, 7, 4])
    left, right = result([3, 2, 1], prompts=prompts[0]), result([2, 2, 2], prompts=prompts[1])
    assert align(left, right).design.name == "unpaired"
    found = align(left, right, "openings")
    assert (found.design.by, found.design.common) == ("prompts", 2)
    assert (rows_of(found.left), rows_of(found.right)) == ([0, 1, 3], [2, 3, 4])
    assert (found.design.baseline_only, found.design.system_only) == (("dialogue 3",), ("dialogue 1",))
    assert (found.design.compared, found.design.rows) == ((3, 3), (6, 6))
    assert not found.design.compares_few
    named = result([3, 2, 1], list("xyz"), prompts=prompts[0]), result([2, 2, 2], list("zxy"), prompts=prompts[1])
    cut = align(*named, "openings")
    assert (cut.design.by, rows_of(cut.left), rows_of(cut.right)) == ("ids", [0, 1, 3], [2, 3, 4])
    with pytest.raises(SettingError, match="not both systems have user turns"):
        align(left, result([1, 1]), "openings")
    single = align(result([1, 1, 1], prompts=[1, 2, 3]), result([1, 2], prompts=[2, 1, 5]), "openings")
    assert (rows_of(single.left), rows_of(single.right)) == ([0, 1], [1, 0])


def test_dialogues_without_prompts_have_no_opening_in_common() -> None:
    left, right = result([2, 2], prompts=[0, 0, 5, 6]), result([2, 2], prompts=[0, 0, 5, 7])
    found = align(left, right, "openings")
    assert (found.design.common, rows_of(found.left), rows_of(found.right)) == (1, [2], [2])
