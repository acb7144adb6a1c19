"""Typed decoding against a plain reading of the parsed JSON."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import ValidationError

from data.breakdown.challenge import SAMPLE
from dialeval.core.errors import DataError
from dialeval.core.rowtable import NO_TURN
from dialeval.data.breakdown.documents import Dialogue, Labels, decoded
from dialeval.data.breakdown.faults import Findings
from dialeval.data.breakdown.files import Document
from dialeval.data.breakdown.logs import Gathered

Counted = tuple[str, list[int], list[list[int]]]
"""Dialogue, annotated turns, and how often each was judged as O, T, X and other."""


def typed(content: Any) -> Counted:
    gathered = Gathered()
    document = Document("x", None, content)
    gathered.add(document, decoded(document, Dialogue, Findings()), Findings())
    return gathered.dialogues[0], gathered.turns, gathered.count().astype(int).tolist()


def plain(document: Any) -> Counted:
    turns = [turn for turn in document["turns"] if turn["speaker"] != "U" and turn["annotations"]]
    indices = [turn["turn-index"] if isinstance(turn["turn-index"], int) else NO_TURN for turn in turns]
    counts = []
    for turn in turns:
        labels = [each["breakdown"] for each in turn["annotations"]]
        known = [labels.count(label) for label in "OTX"]
        counts.append([*known, len(labels) - sum(known)])
    return document["dialogue-id"], indices, counts


texts = st.text(st.characters(codec="utf-8"), max_size=6)
judged: st.SearchStrategy[Any] = st.lists(
    st.fixed_dictionaries(
        {"breakdown": st.sampled_from(["O", "T", "X", "", "OT", "é", None, 5, []]), "comment": texts}
    ),
    max_size=3,
)
fields: dict[str, st.SearchStrategy[Any]] = {
    "annotations": judged,
    "speaker": st.sampled_from(["S", "S", "U", "u", "", None, 3]),
    "turn-index": st.one_of(st.integers(0, 40), st.sampled_from(["2", None, 1.5])),
    "utterance": st.one_of(texts, st.none(), st.booleans(), st.integers(-5, 5), st.floats()),
}
of_users: st.SearchStrategy[Any] = st.fixed_dictionaries(
    {"speaker": st.just("U")},
    optional={"annotations": st.one_of(judged, st.sampled_from([None, "none", [{}], [5]])), "turn-index": texts},
)
documents = st.fixed_dictionaries(
    {"dialogue-id": texts, "turns": st.lists(st.one_of(st.fixed_dictionaries(fields), of_users), max_size=4)},
    optional={"group-id": st.one_of(texts, st.lists(texts)), "x": st.none()},
)


@given(documents, st.sampled_from([None, 1]), st.booleans())
@settings(max_examples=200)
def test_dialogues_are_those_of_a_plain_reading(document: Any, indent: int | None, ascii_: bool) -> None:
    content = json.dumps(document, indent=indent, ensure_ascii=ascii_).encode()
    assert typed(content) == typed(document) == plain(document)


@given(documents, st.data())
@settings(max_examples=200)
def test_a_changed_byte_or_a_missing_end_is_met_as_by_a_full_parser(document: Any, data: Any) -> None:
    content = bytearray(json.dumps(document, ensure_ascii=False).encode())
    if data.draw(st.booleans()):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    else:
        del content[data.draw(st.integers(0, len(content) - 1)) :]
    try:
        expected = typed(json.loads(content))
    except (ValueError, RecursionError):
        with pytest.raises((DataError, ValidationError)):
            typed(bytes(content))
    else:
        assert typed(bytes(content)) == expected


def test_the_files_of_the_challenge() -> None:
    for path in (SAMPLE / "data").iterdir():
        assert typed(path.read_bytes()) == plain(json.loads(path.read_text()))
    for path in (SAMPLE / "keywords").iterdir():
        labels = decoded(Document("x", None, path.read_bytes()), Labels, Findings())
        entries = json.loads(path.read_text())["turns"]
        assert [entry.index for entry in labels.turns] == [entry["turn-index"] for entry in entries]
        firsts = [(entry.labels[0].breakdown, entry.labels[0].o, entry.labels[0].x) for entry in labels.turns]
        expected = [entry["labels"][0] for entry in entries]
        assert firsts == [(label["breakdown"], label["prob-O"], label["prob-X"]) for label in expected]


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"turns": 5}, "Expected `array`, got `int` - at `$.turns`"),
        ({"turns": [{"annotations": [{}], "speaker": "S"}]}, "missing required field `breakdown`"),
        ({"turns": [{"annotations": [{"breakdown": "O"}]}]}, "missing required field `speaker` - at `$.turns[0]`"),
        ({"turns": [{"speaker": "B"}]}, "missing required field `annotations` - at `$.turns[0]`"),
        (
            {"turns": [{"speaker": "U"}, {"annotations": [5], "speaker": "S"}]},
            "Expected `object`, got `int` - at `$.turns[1].annotations[0]`",
        ),
    ],
)
def test_what_is_no_dialogue_says_where(change: dict[str, Any], what: str) -> None:
    with pytest.raises(ValidationError) as caught:
        typed(json.dumps({"dialogue-id": "d", "turns": [], **change}).encode())
    assert what in str(caught.value)


def test_bytes_that_are_not_utf8_are_a_fault_also_where_they_do_not_matter() -> None:
    with pytest.raises(DataError, match="not UTF-8"):
        typed(b'{"dialogue-id": "d", "turns": [], "comment": "\xff"}')


@pytest.mark.parametrize("turns", [{}, ""])
def test_what_has_no_turns_for_the_original_has_none_here(turns: object) -> None:
    assert typed(json.dumps({"dialogue-id": "d", "turns": turns}).encode()) == ("d", [], [])


def test_half_a_character_in_a_text_is_read_as_the_original_reads_it() -> None:
    turn = {
        "speaker": "S",
        "\ud800": 1,
        "turn-index": "\ud800",
        "annotations": [{"breakdown": "\ud800"}, {"breakdown": "X"}],
    }
    assert typed(json.dumps({"dialogue-id": "d", "turns": [turn]}).encode()) == ("d", [NO_TURN], [[0, 0, 1, 1]])


def test_a_byte_order_mark_is_noted_and_nan_is_read() -> None:
    findings = Findings()
    document = Document("x", None, b'\xef\xbb\xbf{"turns": [{"labels": [{"prob-O": NaN}]}]}')
    [entry] = decoded(document, Labels, findings).turns
    assert entry.labels[0].o != entry.labels[0].o
    assert [fault.what for fault in findings.faults] == ["starts with a byte order mark"]
