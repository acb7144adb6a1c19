"""Digests of prompts and references, against plain lists of texts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import ColumnData, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.inputs import Input
from dialeval.text.ngrams import hash_column
from dialeval.text.row_digests import digest_lists, digest_prompts, digest_rows

TEXTS = st.lists(st.sampled_from(["", "a", "b", "ab", "hello there, how are you?", "é"]), max_size=5)


def _equal_as(digests: Any, keys: Sequence[object]) -> bool:
    """Whether two rows have the same digest exactly where they have the same key."""
    return all((digests[i] == digests[j]) == (keys[i] == keys[j]) for i in range(len(keys)) for j in range(len(keys)))


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_lists_have_one_digest_exactly_where_they_are_equal(rows: list[list[str]]) -> None:
    digests = digest_lists(RaggedColumn.from_lists(rows))
    assert (digests is None) == (not any(rows))
    if digests is None:
        return
    assert _equal_as(digests, rows)
    assert [digest == 0 for digest in digests] == [not row for row in rows]


@given(st.lists(TEXTS, min_size=1, max_size=8))
def test_without_roles_every_second_turn_from_the_end_is_the_users(rows: list[list[str]]) -> None:
    digests = digest_prompts(RaggedColumn.from_lists(rows))
    assert digests is None if not any(rows) else _equal_as(digests, [row[::-1][::2] for row in rows])


@given(
    st.lists(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["user", "assistant", "tool"]))), min_size=1)
)
def test_with_roles_only_the_turns_of_the_user_count(rows: list[list[tuple[str, str]]]) -> None:
    texts, roles = ([[turn[part] for turn in row] for row in rows] for part in (0, 1))
    digests = digest_prompts(RaggedColumn.from_lists(texts), RaggedColumn.from_lists(roles))
    if digests is None:
        return
    asked = [[text for text, role in row if role == "user"] for row in rows]
    known = [at for at, row in enumerate(asked) if row]
    assert _equal_as(digests[known], [asked[at] for at in known])


def test_own_replies_and_shared_turns_do_not_change_a_prompt() -> None:
    steps = [["hi"], ["one reply", "and then?"], ["another", "bye"]]
    continues = np.array([False, True, True])
    shared = SharedColumn.from_steps(RaggedColumn.from_lists(steps), continues)
    plain = RaggedColumn.from_lists([["hi"], ["hi", "X", "and then?"], ["hi", "Y", "and then?", "Z", "bye"]])
    digests = digest_prompts(plain)
    assert digests is not None
    assert np.array_equal(digest_prompts(shared), digests)  # type: ignore[arg-type]
    assert np.array_equal(digest_prompts(TextColumn.from_strings(["hi"])), digests[:1])  # type: ignore[arg-type]


def digested(texts: list[str]) -> int:
    """The digest by its definition; saved runs are aligned by it, so that it never changes."""
    hashes = hash_column(TextColumn.from_strings(texts)).tolist()
    return sum(each * 0x9E3779B97F4A7C15**place for place, each in enumerate(hashes)) % 2**64


def test_digests_by_their_definition() -> None:
    rows = [["a", "b", "c"], [], ["b"], ["a", "b", "c", "d"], ["d", "c", "b", "a", "e"]]
    roles = [["user", "tool", "user"], [], ["user"], ["tool", "assistant", "tool", "tool"], ["user"] * 4 + ["tool"]]
    asked = [["a", "c"], [], ["b"], ["b", "d"], ["d", "c", "b", "a"]]  # the fourth has no user: every second turn
    column, speakers = RaggedColumn.from_lists(rows), RaggedColumn.from_lists(roles)
    of_lists = [digested(row) for row in rows]
    by_turns = [digested(row[::-1][::2][::-1]) for row in rows]
    by_roles = [digested(row) for row in asked]
    trials = RaggedColumn.from_lists([["x"], ["x", "y"], [], ["z"] * 3, ["x"]])
    found = digest_rows({inputs.CONTEXT: column, inputs.REFERENCE: column, inputs.TRIALS: trials})
    assert {name: digests.tolist() for name, digests in found.items()} == {
        "prompt": by_turns,
        "reference": of_lists,
        "trials": [1, 2, 0, 3, 1],
    }
    found = digest_rows({inputs.CONTEXT: column, inputs.ROLES: speakers})
    assert {name: digests.tolist() for name, digests in found.items()} == {"prompt": by_roles}
    assert found["prompt"].dtype == np.uint64
    shorter = RaggedColumn.from_lists([row[:1] for row in roles])  # not a role for each turn
    assert digest_rows({inputs.CONTEXT: column, inputs.ROLES: shorter})["prompt"].tolist() == by_turns


def test_rows_without_texts_have_no_digests() -> None:
    empty = RaggedColumn.from_lists([[], []])
    numbers: Any = np.zeros(2)
    none: list[dict[Input, ColumnData]] = [
        {},
        {inputs.CONTEXT: empty, inputs.REFERENCE: empty},
        {inputs.CONTEXT: numbers, inputs.REFERENCE: numbers, inputs.TRIALS: numbers},
    ]
    assert [digest_rows(columns) for columns in none] == [{}, {}, {}]
    assert digest_lists(TextColumn.from_strings(["a", "b"])).tolist() == [digested(["a"]), digested(["b"])]  # type: ignore[union-attr]
