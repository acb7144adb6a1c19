"""Files of the challenge are read with every problem."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError, SettingError
from dialeval.core.rowtable import NO_TURN
from dialeval.suites.breakdown.documents import Findings, ProblemType, SourceDocument, open_stores, parse
from dialeval.suites.breakdown.plain import LOGS
from dialeval.suites.breakdown.reading import read, read_chats, read_logs
from golden import mutations
from suites.breakdown.challenge import SAMPLE, by_the_original, labeled, log, matrix, problems, write


def test_names_of_detectors() -> None:
    found = read([log()], {"mine": [labeled()], "theirs": [labeled()]})
    assert [rows.system for rows in found.systems] == ["mine", "theirs"]
    both = problems(SAMPLE / "data", [SAMPLE / "keywords", SAMPLE / "keywords"])
    assert "the detector 'keywords' is also in" in both[0]
    assert "cannot read labels from int" in problems([log()], 5)[0]
    assert "holds no dialogue" in problems([], [labeled()])[0]
    assert "labels: name no detector" in problems([log()], {}, lenient=True)[0]
    assert "cannot read annotated dialogues from dict" in problems(log(), [labeled()])[0]


@given(st.data())
@settings(max_examples=300)
def test_by_position_and_lenient_all_that_the_original_evaluates_is_read_as_it_reads_it(data: Any) -> None:
    dialogue, labels = log(), labeled()
    if data.draw(st.booleans()):
        dialogue = data.draw(mutations.document(dialogue))
    if data.draw(st.booleans()):
        labels = data.draw(mutations.document(labels))
    try:
        expected = by_the_original(dialogue, labels)
    except (KeyError, IndexError, TypeError, ValueError, OverflowError, AssertionError):
        event("the original ends")
        expected = None
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write(folder, "d1.log.json", dialogue)
        write(folder, f"{dialogue['dialogue-id'] if expected is not None else 'd1'}.labels.json", labels)
        try:
            found = read(folder, folder, match="position", lenient=True)
        except DataError:
            assert expected is None  # a problem, never anything else
            return
    if expected is not None:
        assert matrix(found, inputs.ANNOTATIONS).tolist() == [counts for counts, _ in expected]
        np.testing.assert_array_equal(matrix(found), np.reshape([row for _, row in expected], (-1, 4)))


def test_problems_of_the_dialogues(tmp_path: Path) -> None:
    data = tmp_path / "data"
    bad = log("d1")
    del bad["turns"][0]["annotations"]
    write(data, "a.log.json", bad)
    write(data, "b.log.json", "[]")
    write(data, "c.log.json", log("d3", (2, "??")))
    write(data, "d.log.json", log("d4"))
    write(data, "e.log.json", log("d4"))
    write(data, "f.log.json", {**log(), "dialogue-id": 5})
    found = problems(data, [labeled("d3", (2, "O", (1, 0, 0))), labeled("d4")])
    for what in (
        "is not a dialogue of the challenge: Object missing required field `annotations` - at `$.turns[0]`",
        "is not a dialogue of the challenge: Expected `object`, got `array`",
        "turn 2: no annotation is O, T or X",
        "is also in",
        "is not a dialogue of the challenge: Expected `str`, got `int` - at `$.dialogue-id`",
    ):
        assert any(what in problem for problem in found), what
    lenient = read(data, [labeled("d3", (2, "O", (1, 0, 0))), labeled("d4")], lenient=True)
    assert lenient.annotated.dialogues == ["d3", "d4", "d4"]


def test_turns_that_only_the_original_takes_are_problems_unless_reading_is_lenient() -> None:
    dialogue = log("d1", (0, "OOT"), (2, "XXX"), (4, "T"), (6, "OT"))
    dialogue["turns"][0]["speaker"] = "B"
    dialogue["turns"][1]["turn-index"] = "2"
    dialogue["turns"][2]["speaker"] = None
    dialogue["turns"][3]["speaker"] = "U"
    entries = [(index, "O", (1, 0, 0)) for index in (0, 2, 4)]
    found = problems([dialogue], [labeled("d1", *entries)], match="position")
    assert [problem.split(": ", 1)[1].partition(";")[0] for problem in found] == [
        "turn 1 of the list: the turn-index is not a whole number from 0 on",
        "turns 0, 2 of the list: the speaker is neither S nor U",
    ]
    lenient = read([dialogue], [labeled("d1", *entries)], match="position", lenient=True)
    assert lenient.annotated.turns.tolist() == [0, NO_TURN, 4]
    assert lenient.annotated.counts.tolist() == [[2, 1, 0], [0, 0, 3], [0, 1, 0]]
    assert matrix(lenient)[:, 0].tolist() == [0.0, 0.0, 0.0]
    assert "annotated turns of another speaker: in 1 file (2 turns); counted as the system's" in lenient.warnings


def test_what_the_user_said_needs_no_annotations() -> None:
    dialogue = log()
    del dialogue["turns"][-1]["annotations"]
    assert read([dialogue], [labeled()]).warnings == []
    dialogue["turns"][-1]["annotations"] = [{"breakdown": {}}, 5]
    assert read([dialogue], [labeled()]).annotated.turns.tolist() == [2, 4]


def test_an_id_that_is_no_text_is_a_problem() -> None:
    assert "the dialogue-id holds half of a surrogate pair" in problems([log("\ud800"), log()], [labeled()])[0]


def test_labels_for_unannotated_turns_shift_nothing_unless_matched_by_position() -> None:
    labels = labeled("d1", (0, "T", (0, 1, 0)), (2, "O", (1, 0, 0)), (4, "X", (0, 0, 1)))
    found = read([log()], [labels])
    assert matrix(found)[:, 0].tolist() == [0.0, 2.0]
    assert "MATCHING MATTERS" in found.warnings[0]
    assert "entries that belong to no annotated turn: 1;" in found.warnings[1]
    shifted = read([log()], [labels], match="position")
    assert matrix(shifted)[:, 0].tolist() == [1.0, 0.0]
    assert "Leave --match position out" in shifted.warnings[0]
    with pytest.raises(SettingError, match="by turn-index or by position"):
        read([log()], [labels], match="name")  # type: ignore[arg-type]


def test_every_problem_of_every_file_at_once(tmp_path: Path) -> None:
    data, labels = tmp_path / "data", tmp_path / "labels"
    good = labeled()["turns"]
    for number in range(1, 11):
        write(data, f"d{number}.log.json", log(f"d{number}"))
    write(labels, "d1.labels.json", labeled("d2"))
    write(labels, "d2.labels.json", {"dialogue-id": "d2", "turns": good[:1]})
    write(labels, "d3.labels.json", labeled("d3", (2, "o", (1, 0, 0)), (4, "X", (0.9, 0.9, 0.9))))
    write(labels, "d4.labels.json", labeled("d4", (2, "O", (-0.5, 1, 0.5)), (4, "X", (float("nan"), 0, 1))))
    write(labels, "d5.labels.json", "{broken")
    write(labels, "d6.labels.json", {"dialogue-id": "d6", "turns": [*good, good[0]]})
    write(labels, "d7.labels.json", labeled("d7", (2, "O", ("a", 0, 1)), (4, "X", (0, 0, 1))))
    write(labels, "d8.labels.json", {"dialogue-id": "d8", "turns": [{"turn-index": 2, "labels": []}, good[1]]})
    write(labels, "d9.labels.json", "[" * 100_000)
    found = problems(data, labels)
    expected = [
        ("d1", "holds the labels of the dialogue 'd2', not 'd1'"),
        ("d2", "turn 4: no labels (1 entries for 2 annotated turns)"),
        ("d5", "not JSON"),
        ("d6", "turn 2: labels more than once"),
        ("d8", "entry 0: no labels"),
        ("d9", "not JSON"),
        ("labels", "there are no labels for the dialogue 'd10'"),
        ("d3", "turn 2: the label is none of O, T and X"),
        ("d4", "turns 2, 4: a probability is below 0 or not finite (first: -0.5, 1, 0.5)"),
        ("d7", "turn 2: a probability is below 0 or not finite"),
        ("d3", "turn 4: the probabilities do not add up to 1 (first: 0.9, 0.9, 0.9)"),
    ]
    assert len(found) == len(expected)
    for place, what in expected:
        assert any(what in problem and place in problem.split(": ")[0] for problem in found), what
    lenient = read(data, labels, lenient=True)
    assert len(lenient.warnings) >= 9
    assert "labels other than O, T, X: in 1 file (1 turn); counted as wrong" in lenient.warnings
    codes = matrix(lenient)[:, 0].reshape(-1, 2)
    by_name = dict(zip(lenient.annotated.dialogues, codes.tolist(), strict=True))
    assert by_name["d1"] == [0.0, 2.0]
    assert by_name["d3"] == [3.0, 2.0]
    assert by_name["d2"][0] == 0.0
    assert np.isnan(by_name["d2"][1])
    assert all(np.isnan(by_name[name]).all() for name in ("d5", "d9", "d10"))


def test_of_several_labels_the_first_counts_whatever_the_others_are() -> None:
    labels = labeled()
    labels["turns"][0]["labels"] += [None, {"breakdown": "X"}]
    labels["turns"].append("no entry")
    labels["\ud800"] = labels["turns"][1]["\ud800"] = labels["turns"][1]["labels"][0]["\ud800"] = 1
    found = read([log()], [labels], match="position", lenient=True)
    assert matrix(found).tolist() == [[0.0, 0.7, 0.2, 0.1], [2.0, 0.0, 0.0, 1.0]]
    assert "labels: turns with several labels: 1; the first counts" in found.warnings


def turn(index: int, speaker: str, text: str) -> dict[str, Any]:
    return {"turn-index": index, "speaker": speaker, "utterance": text, "annotations": []}


def test_every_problem_at_once() -> None:
    with pytest.raises(DataError) as caught:
        read_chats(
            [{"dialogue-id": "d", "turns": [turn(3, "S", "hi")]}, {"turns": []}, {"dialogue-id": 1, "turns": []}]
        )
    first, second, third = (problem.what for problem in caught.value.problems)
    assert "turn 3 is the 1. of the list" in first
    assert "dialogue-id" in second
    assert "is not a dialogue of the challenge" in third


def listed(*arguments: Any, **more: Any) -> list[tuple[str, int | None, str]]:
    """Where each problem is, and what it is."""
    with pytest.raises(DataError) as caught:
        read(*arguments, **more)
    return [(problem.where, problem.line, problem.what) for problem in caught.value.problems]


def test_problems_of_a_list_of_labels_name_their_lines(tmp_path: Path) -> None:
    good, other = labeled("d1"), labeled("d2")
    lines = [json.dumps(good), "{broken", json.dumps({"turns": []}), "", json.dumps(good), json.dumps(other)]
    (tmp_path / "labels.jsonl").write_text("\n".join(lines))
    found = listed([log("d1"), log("d3")], tmp_path / "labels.jsonl")
    where = str(tmp_path / "labels.jsonl")
    assert [(place, line) for place, line, _ in found] == [(where, 2), (where, 3), (where, 5), (where, None)]
    assert [what for *_, what in found][1:] == [
        "has no dialogue-id",
        "there are labels for the dialogue 'd1' before",
        "there are no labels for the dialogue 'd3'",
    ]
    lenient = read([log("d1"), log("d3")], tmp_path / "labels.jsonl", lenient=True)
    assert lenient.warnings == [
        "labels files that cannot be used: in 2 files; not scored",
        "labels that occur twice: in 1 file; the first is used",
        "dialogues without labels: in 1 file (2 turns); not scored",
    ]


def test_moved_and_silent_turns_of_chats_are_counted() -> None:
    turns = [turn(0, "S", "hi"), turn(2, "U", "you?"), turn(1, "S", "yes"), {**turn(3, "S", ""), "utterance": None}]
    with pytest.raises(DataError) as caught:
        read_chats([{"dialogue-id": "d", "turns": turns}])
    assert [problem.what for problem in caught.value.problems] == [
        "turn 2 is the 2. of the list, counted from index 0",
        "turn 3 of the list: no utterance",
    ]


Counted = tuple[str, list[int], list[list[int]], int]
"""Dialogue, annotated turns, how often each was judged as O, T and X, and all other judgments."""


def typed(content: Any) -> Counted:
    """The dialogue by typed decoding; DataError where it is none."""
    findings = Findings(lenient=True)
    annotated = read_logs([content], findings)
    if not annotated.dialogues:
        raise DataError(findings.problems)
    others = [int(remark.split()[0]) for remark in findings.remarks]
    return annotated.dialogues[0], annotated.turns.tolist(), annotated.counts.astype(int).tolist(), sum(others)


def plain(document: Any) -> Counted:
    turns = [turn for turn in document["turns"] if turn["speaker"] != "U" and turn["annotations"]]
    indices = [turn["turn-index"] if isinstance(turn["turn-index"], int) else NO_TURN for turn in turns]
    labels = [[each["breakdown"] for each in turn["annotations"]] for turn in turns]
    counts = [[judged.count(label) for label in "OTX"] for judged in labels]
    return document["dialogue-id"], indices, counts, sum(map(len, labels)) - sum(map(sum, counts))


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
    except (ValueError, RecursionError, DataError):
        with pytest.raises(DataError):
            typed(bytes(content))
    else:
        assert typed(bytes(content)) == expected


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
    with pytest.raises(DataError) as caught:
        typed(json.dumps({"dialogue-id": "d", "turns": [], **change}).encode())
    assert what in caught.value.problems[0].what


def test_bytes_that_are_not_utf8_are_a_problem_also_where_they_do_not_matter() -> None:
    with pytest.raises(DataError, match="not UTF-8"):
        typed(b'{"dialogue-id": "d", "turns": [], "comment": "\xff"}')


@pytest.mark.parametrize("turns", [{}, ""])
def test_what_has_no_turns_for_the_original_has_none_here(turns: object) -> None:
    assert typed(json.dumps({"dialogue-id": "d", "turns": turns}).encode()) == ("d", [], [], 0)


def test_half_a_character_in_a_text_is_read_as_the_original_reads_it() -> None:
    turn = {
        "speaker": "S",
        "\ud800": 1,
        "turn-index": "\ud800",
        "annotations": [{"breakdown": "\ud800"}, {"breakdown": "X"}],
    }
    assert typed(json.dumps({"dialogue-id": "d", "turns": [turn]}).encode()) == ("d", [NO_TURN], [[0, 0, 1]], 1)


def test_a_byte_order_mark_is_noted_and_nan_is_read() -> None:
    findings = Findings()
    document = SourceDocument("x", None, b'\xef\xbb\xbf{"turns": [{"labels": [{"prob-O": NaN}]}]}')
    probability = parse(document, findings)["turns"][0]["labels"][0]["prob-O"]
    assert probability != probability
    assert [problem.what for problem in findings.problems] == ["starts with a byte order mark"]


def test_folder_jsonl_and_archive_are_the_same(tmp_path: Path) -> None:
    for kind, ending in (("data", "log"), ("keywords", "labels")):
        lines = [json.dumps(json.loads(path.read_text())) for path in sorted((SAMPLE / kind).glob(f"*.{ending}.json"))]
        (tmp_path / f"{kind}.jsonl").write_text("\n".join(lines) + "\n")
        (tmp_path / f"{kind}.jsonl.gz").write_bytes(gzip.compress("\n".join(lines).encode()))
    with tarfile.open(tmp_path / "all.tar.gz", "w:gz") as archive:
        archive.add(SAMPLE, "sample")
    folder = read(SAMPLE / "data", SAMPLE / "keywords")
    packed = read(tmp_path / "all.tar.gz", tmp_path / "all.tar.gz")
    assert [rows.system for rows in packed.systems] == ["cautious", "keywords"]
    others = [read(tmp_path / f"data.jsonl{end}", tmp_path / f"keywords.jsonl{end}") for end in ("", ".gz")]
    for other in (*(found.systems[0] for found in others), packed.systems[1]):
        assert (other.system, len(other)) == ("keywords", 16)
        for need in (inputs.LABELS, inputs.ANNOTATIONS):
            assert other.columns[need].digest == folder.systems[0].columns[need].digest


def test_hidden_files_are_no_dialogues(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    write(folder, "d1.log.json", log())
    write(folder, "._d1.log.json", "what another system keeps beside a file")
    with tarfile.open(tmp_path / "data.tar.gz", "w:gz") as archive:
        archive.add(folder, "data")
    for source in (folder, tmp_path / "data.tar.gz"):
        assert read(source, [labeled()]).annotated.dialogues == ["d1"]


def test_a_dialogue_id_leads_out_of_no_folder(tmp_path: Path) -> None:
    write(tmp_path, "secret.labels.json", labeled("../secret"))
    write(tmp_path / "data", "a.log.json", log("../secret"))
    write(tmp_path / "labels", "other.labels.json", labeled("other"))
    assert "there are no labels for the dialogue '../secret'" in problems(tmp_path / "data", tmp_path / "labels")[0]


def archive_of(path: Path, *members: tuple[tarfile.TarInfo, bytes]) -> Path:
    with tarfile.open(path, "w:gz") as archive:
        for info, content in members:
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return path


def test_archives_are_not_trusted(tmp_path: Path) -> None:
    link = tarfile.TarInfo("data/d1.log.json")
    link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
    path = archive_of(tmp_path / "link.tar.gz", (link, b""))
    assert "link or a device" in problems(path, [labeled()])[0]
    bomb = archive_of(tmp_path / "bomb.tar.gz", (tarfile.TarInfo("x.bin"), bytes(40 << 20)))
    assert "far more than its declared size" in problems(bomb, [labeled()])[0]
    twice = [(tarfile.TarInfo("data/d1.log.json"), json.dumps(log()).encode()) for _ in range(2)]
    assert "twice" in problems(archive_of(tmp_path / "twice.tar.gz", *twice), [labeled()])[0]
    (tmp_path / "broken.tar.gz").write_bytes(b"\x1f\x8b nothing")
    assert "is damaged" in problems(tmp_path / "broken.tar.gz", [labeled()])[0]
    assert "no such file or folder" in problems(tmp_path / "nowhere", [labeled()])[0]


def test_a_device_is_no_dialogue(tmp_path: Path) -> None:
    (tmp_path / "a.log.json").symlink_to("/dev/zero")
    (store,) = open_stores(tmp_path, LOGS).values()
    with pytest.raises(DataError, match="is a device"):
        list(store.read_all())


def findings(lenient: bool) -> Findings:
    found = Findings(lenient)
    found.add(ProblemType.MISSING_TURNS, ("a.json", None), "no label for turn 3", turns=1)
    found.add(ProblemType.MISSING_TURNS, ("b.json", 7), "no label for turns 1, 5", turns=2)
    found.add(ProblemType.UNKNOWN_LABEL, ("c.json", None), "is not JSON")
    found.remarks.append("a remark")
    return found


def test_strict_reading_raises_every_problem() -> None:
    with pytest.raises(DataError) as caught:
        findings(lenient=False).raise_or_count()
    assert [(problem.where, problem.line) for problem in caught.value.problems] == [
        ("a.json", None),
        ("b.json", 7),
        ("c.json", None),
    ]
    assert caught.value.problems[0].remedy == ProblemType.MISSING_TURNS.remedy


def test_lenient_reading_counts_files_and_turns() -> None:
    assert findings(lenient=True).raise_or_count() == [
        "annotated turns without labels: in 2 files (3 turns); not scored",
        "labels other than O, T, X: in 1 file; counted as wrong",
        "a remark",
    ]
    one = Findings(lenient=True)
    one.add(ProblemType.MISSING_TURNS, ("a.json", None), "no label for turn 3", turns=1)
    assert one.raise_or_count() == ["annotated turns without labels: in 1 file (1 turn); not scored"]
