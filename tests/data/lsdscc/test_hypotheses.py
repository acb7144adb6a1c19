"""Hypothesis sets and reference groups: files, lines, objects, and what is wrong with them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.needs import Need
from dialeval.data.formats.lines import split
from dialeval.data.lsdscc.hypotheses import HypothesisSet, holds_hypotheses, read_hypotheses, separated
from dialeval.data.lsdscc.reference_groups import ReferenceSet, attach_groups, order_of, read_groups


def test_the_documented_ways_to_make_a_hypothesis_set(tmp_path: Path) -> None:
    assert list(HypothesisSet.from_line("1;2;3", eos=";")) == [["1"], ["2"], ["3"]]
    assert list(HypothesisSet.from_line("This </s> is </s> line 1")) == [["This"], ["is"], ["line", "1"]]
    plain = [["if", "a", "thing", "quakes"], ["then", "it", "must", "be", "a", "duck"]]
    wrapped = HypothesisSet(plain)
    assert list(wrapped) == plain
    assert str(wrapped) == "if a thing quakes\nthen it must be a duck"
    assert repr(wrapped) == f"HypothesisSet({plain!r})"
    (tmp_path / "corpus.txt").write_text("a </s> b c\n\nd </s> \n")
    assert HypothesisSet.load_corpus(tmp_path / "corpus.txt") == [
        HypothesisSet([["a"], ["b", "c"]]),
        HypothesisSet([[]]),
        HypothesisSet([["d"], []]),
    ]
    assert HypothesisSet.load_corpus(tmp_path / "corpus.txt", eos="b")[0] == HypothesisSet([["a", "</s>"], ["c"]])


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


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (["10", "2", "1"], ["1", "2", "10"]),
        (["x", "7", "1"], ["1", "x", "7"]),
        (["b", "a", "1"], ["1", "b", "a"]),
        (["null", "1", "2"], ["1", "2", "null"]),
        (["1.5", "-1", " 2 "], ["-1", " 2 ", "1.5"]),
        ([], []),
    ],
)
def test_groups_are_sorted_by_number(ids: list[str], expected: list[str]) -> None:
    assert [ids[at] for at in order_of(ids)] == expected


@given(
    st.lists(st.text(st.sampled_from("ab</s>é日 "), max_size=12), min_size=1, max_size=5),
    st.sampled_from(["</s>", "a", "aa", "aba", "é", " ", "<"]),
    st.booleans(),
)
def test_lines_are_cut_as_str_split_cuts_them(lines: list[str], eos: str, mapped: bool) -> None:
    content = "".join(f"{line}\n" for line in lines).encode()
    column = TextColumn.from_strings(lines)
    if mapped:
        column = split(np.frombuffer(content, np.uint8))
    assert list(separated(column, eos)) == [line.split(eos) for line in lines]


def test_separators_that_cannot_be() -> None:
    for eos in ("", "\udc80"):
        with pytest.raises(SettingError, match="separator"):
            separated(TextColumn.from_strings(["a"]), eos)
    with pytest.raises(SettingError, match="separator"):
        HypothesisSet.from_line("a", eos="")
    assert list(separated(TextColumn.from_strings(["a", "b"]), "\n")) == [["a"], ["b"]]


ROWS = [["a b", "c"], ["d"]]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.txt", "a b</s>c\nd\n"),
        ("x.json", json.dumps(ROWS)),
        ("x.json", json.dumps({"q1": ROWS[0], "q2": ROWS[1]})),
        ("x.jsonl", "\n".join(map(json.dumps, ROWS))),
        ("x.jsonl", "\n".join(json.dumps({"hypotheses": row}) for row in ROWS)),
        ("x.jsonl", '{"responses": ["a b", "c"]}\n\n{"response": "d"}\n'),
    ],
)
def test_files_of_hypotheses(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content)
    (rows,) = read_hypotheses(tmp_path / name)
    assert rows.system == "x"
    assert list(rows.columns[Need.HYPOTHESES]) == ROWS


def test_systems_of_hypotheses(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.txt").write_text("x</s>y\n")
    assert [rows.system for rows in read_hypotheses(tmp_path)] == ["a", "b"]
    found = read_hypotheses({"one": tmp_path / "b.txt", "two": [["x", ["y", "z"]]], "all": tmp_path})
    assert [rows.system for rows in found] == ["one", "two", "all/a", "all/b"]
    assert list(found[1].columns[Need.HYPOTHESES]) == [["x", "y z"]]


def test_what_counts_as_several_hypotheses() -> None:
    assert holds_hypotheses([["a"], ["b"]])
    assert holds_hypotheses({"x": [["a"]]})
    assert holds_hypotheses([HypothesisSet(["a"])])
    assert not holds_hypotheses(["a", "b"])
    assert not holds_hypotheses("a.txt")
    assert not holds_hypotheses([{"response": "a"}])


@pytest.mark.parametrize(
    ("name", "content", "messages"),
    [
        ("x.json", "[", ["x.json:1: not JSON"]),
        ("x.json", "3", ["x.json:1: is a number"]),
        ("x.json", "[]", ["holds no hypotheses"]),
        (
            "x.json",
            '[["a", 1], 5, {"text": "b"}]',
            ["x.json:1: a hypothesis is a number", "x.json:2", "x.json:3: has none"],
        ),
        ("x.jsonl", '["a"]\n{\n[null]\n', ["x.jsonl:2: not JSON", "x.jsonl:3: a hypothesis is null"]),
        ("x.csv", "a,b\n", ["does not hold hypotheses"]),
        ("x.txt", "", ["is empty"]),
    ],
)
def test_faults_of_hypotheses(tmp_path: Path, name: str, content: str, messages: list[str]) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read_hypotheses(tmp_path / name)
    assert len(caught.value.faults) == len(messages)
    for fault, message in zip(caught.value.faults, messages, strict=True):
        assert message in str(fault)


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
def test_faults_of_groups(source: Any, messages: list[str]) -> None:
    with pytest.raises(DataError) as caught:
        read_groups(source)
    assert len(caught.value.faults) == len(messages)
    for fault, message in zip(caught.value.faults, messages, strict=True):
        assert message in str(fault)


def test_groups_of_every_shape() -> None:
    given_ = [
        {"b": ["x"], "1": ["y", ["two", "words"]]},
        [["x"], []],
        ["x", "y"],
        [],
        ReferenceSet([["x"]], "why", ["k"]),
    ]
    groups = read_groups(given_)
    assert [groups.column.grouped(row) for row in range(5)] == [
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


def test_sets_are_compared_by_what_they_hold() -> None:
    assert HypothesisSet(["a b"]) == HypothesisSet([["a", "b"]]) != HypothesisSet(["a"])
    assert HypothesisSet(["a"]) != ["a"]
    assert ReferenceSet([["a"]]) != ReferenceSet([["a"]], "why")
    assert ReferenceSet([["a"]]) != [["a"]]
    assert "query='why'" in repr(ReferenceSet([["a"]], "why"))
    assert HypothesisSet(["a", "b"])[:1] == [["a"]]
    assert ReferenceSet([["a"], ["b"]])[1:] == [[["b"]]]
