"""Hypothesis sets: files, lines, objects, and what is wrong with them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError, SettingError
from dialeval.suites.lsdscc.data import HypothesisSet, read_hypotheses, split_line


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
