"""Hypotheses, and references in groups, as files and objects have them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.suites.lsdscc.data import (
    GroupedColumn,
    HypothesisSet,
    ReferenceSet,
    attach_groups,
    read_groups,
    read_hypotheses,
    split_line,
)


def test_the_documented_ways_to_make_a_hypothesis_set(tmp_path: Path) -> None:
    assert list(HypothesisSet.from_line("1;2;3", eos=";")) == [["1"], ["2"], ["3"]]
    assert list(HypothesisSet.from_line("This </s> is </s> line 1")) == [["This"], ["is"], ["line", "1"]]
    plain = [["if", "a", "thing", "quakes"], ["then", "it", "must", "be", "a", "duck"]]
    wrapped = HypothesisSet(plain)
    assert list(wrapped) == plain
    assert repr(wrapped) == f"HypothesisSet({plain!r})"
    (tmp_path / "corpus.txt").write_text("a </s> b c\n\nd </s> \n")
    assert HypothesisSet.load_corpus(tmp_path / "corpus.txt") == [
        HypothesisSet([["a"], ["b", "c"]]),
        HypothesisSet([[]]),
        HypothesisSet([["d"], []]),
    ]
    assert HypothesisSet.load_corpus(tmp_path / "corpus.txt", eos=None) == [
        HypothesisSet([["a", "</s>", "b", "c"]]),
        HypothesisSet([[]]),
        HypothesisSet([["d", "</s>"]]),
    ]
    assert HypothesisSet.from_line(" a </s> b", eos=None) == HypothesisSet([["a", "</s>", "b"]])
    assert HypothesisSet.load_corpus(tmp_path / "corpus.txt", eos="b")[0] == HypothesisSet([["a", "</s>"], ["c"]])


@given(
    st.text(st.sampled_from("ab</s>é日 "), max_size=12),
    st.sampled_from(["</s>", "a", "aa", "aba", "é", " ", "<", None]),
)
def test_lines_are_cut_as_str_split_cuts_them(line: str, eos: str | None) -> None:
    assert split_line(line, eos) == ([line] if eos is None else line.split(eos))


def test_separators_that_cannot_be() -> None:
    for eos in ("", "\udc80"):
        with pytest.raises(SettingError, match="separator"):
            HypothesisSet.from_line("a", eos=eos)
    assert split_line("a", "\n") == ["a"]


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
    assert list(rows.columns[inputs.HYPOTHESES]) == ROWS


def test_systems_of_hypotheses(tmp_path: Path) -> None:
    for name in ("b", "a"):
        (tmp_path / f"{name}.txt").write_text("x</s>y\n")
    assert [rows.system for rows in read_hypotheses(tmp_path)] == ["a", "b"]
    found = read_hypotheses({"one": tmp_path / "b.txt", "two": [["x", ["y", "z"]]], "all": tmp_path})
    assert [rows.system for rows in found] == ["one", "two", "all/a", "all/b"]
    assert list(found[1].columns[inputs.HYPOTHESES]) == [["x", "y z"]]


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
def test_problems_of_hypotheses(tmp_path: Path, name: str, content: str, messages: list[str]) -> None:
    (tmp_path / name).write_text(content)
    with pytest.raises(DataError) as caught:
        read_hypotheses(tmp_path / name)
    assert len(caught.value.problems) == len(messages)
    for problem, message in zip(caught.value.problems, messages, strict=True):
        assert message in str(problem)


def test_problems_of_objects_name_their_system() -> None:
    def problems(source: object) -> list[tuple[str, int | None, str]]:
        with pytest.raises(DataError) as caught:
            read_hypotheses(source)
        return [(problem.where, problem.line, problem.what) for problem in caught.value.problems]

    assert problems({}) == [("responses", None, "is an empty mapping")]
    assert problems({"mine": {}}) == [("mine", None, "is an empty mapping")]
    assert problems([["a"], 5, [6]]) == [("responses", 2, "is a number"), ("responses", 3, "a hypothesis is a number")]
    assert problems({"mine": [5]}) == [("mine", 1, "is a number")]
    assert problems(5) == [("responses", None, "a number is not a source of hypotheses")]


Rows = list[list[list[str]]]
texts = st.sampled_from(["", "a", "é b", "longer text"])
rows = st.lists(st.lists(st.lists(texts, max_size=3), max_size=3), max_size=5)


def column(rows: Rows) -> GroupedColumn:
    groups = [group for row in rows for group in row]
    values = TextColumn.from_strings([text for group in groups for text in group])
    return GroupedColumn.of(values, [len(group) for group in groups], [len(row) for row in rows])


def lists(column: GroupedColumn) -> Rows:
    return [column.list_groups(row) for row in range(len(column))]


@given(rows, st.data())
def test_rows_slices_and_selections(rows: Rows, data: st.DataObject) -> None:
    whole = column(rows)
    assert lists(whole) == rows
    assert list(whole) == [[text for group in row for text in group] for row in rows]
    start = data.draw(st.integers(0, len(rows)))
    stop = data.draw(st.integers(start, len(rows)))
    assert lists(whole.slice(start, stop)) == rows[start:stop]
    assert lists(whole.slice(start, stop).slice(0, 1)) == rows[start:stop][:1]
    order = data.draw(st.permutations(range(len(rows))))[: data.draw(st.integers(0, 5))]
    assert lists(whole.take(np.array(order, np.int64))) == [rows[row] for row in order]


@given(st.lists(rows, min_size=1, max_size=3))
def test_joined_columns_have_all_rows(parts: list[Rows]) -> None:
    joined = GroupedColumn.join([column(part) for part in parts])
    assert lists(joined) == [row for part in parts for row in part]


@given(rows, rows)
def test_digests_tell_columns_apart(left: Rows, right: Rows) -> None:
    assert (column(left).digest == column(right).digest) == (left == right)
    assert column(left).slice(0, len(left)).digest == column(left).digest


def test_groups_have_a_digest_and_no_fingerprint() -> None:
    one, other = column([[["a"], ["b"]]]), column([[["a", "b"]]])
    assert one.digest != other.digest
    with pytest.raises(TypeError, match="no fingerprint"):
        _ = one.fingerprint


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
