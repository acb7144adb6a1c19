"""Reference groups: files, objects, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from dialeval.core.errors import DataError
from dialeval.suites.lsdscc.data import ReferenceSet, attach_groups, read_groups, read_hypotheses


def test_the_documented_ways_to_make_a_reference_set(tmp_path: Path) -> None:
    groups = [[["too", "many", "ties"]], [["tik", "tok"], ["on", "the", "clock"]]]
    plain = ReferenceSet(groups)
    assert (list(plain), plain.n_references, plain.query, plain.names) == (groups, 3, None, ["0", "1"])
    document = {"2": ["two b"], "1": ["one a", "uno"], "null": []}
    for made in (ReferenceSet.from_json(document, "why ?"), ReferenceSet.from_json({"why ?": document})):
        assert (made.query, made.names, made.n_references) == ("why ?", ["1", "2", "null"], 3)
        assert list(made) == [[["one", "a"], ["uno"]], [["two", "b"]], []]
    (tmp_path / "groups.json.gz").write_bytes(gzip.compress(json.dumps({"why ?": document}).encode()))
    assert ReferenceSet.load_json_corpus(tmp_path / "groups.json.gz") == [made]


def test_a_printed_set_lists_its_groups() -> None:
    groups = ReferenceSet.from_json({"where is mike ?": {"2": ["somewhere"], "1": ["the  kitchen", "", "gone"]}})
    assert str(groups) == "query: where is mike ?\ngroup 1:\n  the kitchen\n  \n  gone\ngroup 2:\n  somewhere"
    assert str(ReferenceSet([["a b"], []])) == "group 0:\n  a b\ngroup 1:"


@pytest.mark.parametrize(
    ("source", "messages"),
    [
        ({"q": {"1": "a"}}, ["group '1' of query 'q' is a string"]),
        (
            {"q": {"1": ["a", None]}, "r": 5},
            ["a reference in group '1' of query 'q' is null", "query 'r' has a number"],
        ),
        ([[["a"], 3]], ["group '1' of query 1 is a number"]),
        ([], ["holds no queries"]),
        (5, ["is a number"]),
    ],
)
def test_problems_of_groups(source: Any, messages: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_groups(source)
    assert len(caught.value.problems) == len(messages)
    for problem, message in zip(caught.value.problems, messages, strict=True):
        assert message in str(problem)


def test_a_group_that_is_a_text_is_refused() -> None:
    with pytest.raises(DataError, match="group '1' of query 'q' is a string"):
        read_groups({"q": {"1": "hello there", "2": ["hi"]}})


def test_groups_of_every_shape() -> None:
    given_ = [
        {"b": ["x"], "1": ["y", ["two", "words"]]},
        [["x"], []],
        ["x", "y"],
        [],
        ReferenceSet([["x"]], "why", ["k"]),
    ]
    groups = read_groups(given_)
    assert [groups.column.list_groups(row) for row in range(5)] == [
        [["y", "two words"], ["x"]],
        [["x"], []],
        [["x", "y"]],
        [],
        [["x"]],
    ]
    assert list(map(list, groups.names)) == [["1", "b"], ["0", "1"], ["0"], [], ["k"]]
    assert groups.queries == [None, None, None, None, "why"]
    assert isinstance(given_[0], dict)
    assert given_[0]["1"] == ["y", ["two", "words"]]


def test_unequal_numbers_of_queries() -> None:
    (rows,) = read_hypotheses({"x": [["a"], ["b"]]})
    with pytest.raises(DataError, match="x has hypotheses for 2 queries, reference_groups has groups for 1"):
        attach_groups(rows, read_groups([[["a"]]]))


def test_names_of_groups_must_fit() -> None:
    with pytest.raises(DataError, match="1 groups have 2 names"):
        ReferenceSet([["a"]], names=["x", "y"])


def test_sets_are_lists_of_groups() -> None:
    assert ReferenceSet([["a"]]) == [[["a"]]]
    assert "query='why'" in repr(ReferenceSet([["a"]], "why"))
    assert ReferenceSet([["a"], ["b"]])[1:] == [[["b"]]]


def test_a_set_is_made_of_groups_or_of_one_query_with_groups() -> None:
    plain = ReferenceSet.from_json({"a": ["x y"], "b": ["z"]})
    assert (list(plain), plain.query, plain.names) == ([[["x", "y"]], [["z"]]], None, ["a", "b"])
    assert ReferenceSet.from_json({"a": ["x"]}).query is None
    single = ReferenceSet.from_json({"a": ["x"]}, "why ?")
    assert (list(single), single.query, single.names) == ([[["x"]]], "why ?", ["a"])

    def problems(document: Any, query: str | None = None) -> list[str]:
        with pytest.raises(DataError) as caught:
            ReferenceSet.from_json(document, query)
        return [problem.what for problem in caught.value.problems]

    assert problems({"q": {"a": ["x"]}}, "why ?") == ["group 'q' of query 'why ?' is an object"]
    assert problems({"a": [5], "b": 7}) == [
        "a reference in group 'a' of query 1 is a number",
        "group 'b' of query 1 is a number",
    ]
