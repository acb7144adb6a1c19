"""Documents of the breakdown challenge: typed decoding, where documents are stored, problems of their files."""

from __future__ import annotations

import gzip
import io
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError
from dialeval.core.rowtable import NO_TURN
from dialeval.suites.breakdown.documents import LOGS, Findings, ProblemType, SourceDocument, open_stores, parse
from dialeval.suites.breakdown.reading import read, read_logs
from suites.breakdown.challenge import SAMPLE, labeled, log, problems, write

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
