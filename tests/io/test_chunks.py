"""How sources are cut: sizes, edges, and the same boundary for the readers on both sides of it."""

from __future__ import annotations

import gzip
import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.account import Account
from dialeval.core.errors import DataError
from dialeval.io import chunks as chunks_module
from dialeval.io import opening
from dialeval.io.chunks import (
    SMALLEST_BYTES,
    FileChunk,
    MemoryChunk,
    Span,
    find_row_boundary,
    find_row_range,
    read_blocks,
    read_dialogue,
    split_sources,
)
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import find_sources, wrap_systems

NAMES = FieldNames()


def file_chunks(path: Path, chunk_bytes: int | None, references: Path | None = None) -> list[FileChunk]:
    return [c for c in split_sources(find_sources(path, references), 9, chunk_bytes) if isinstance(c, FileChunk)]


def test_json_lines_are_cut_at_round_numbers_of_bytes(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * 1049)
    chunks = file_chunks(tmp_path / "a.jsonl", 100)
    assert [(chunk.span.start, chunk.span.stop) for chunk in chunks] == [(100 * n, 100 * n + 100) for n in range(9)] + [
        (900, 1049)
    ], "a rest of less than half a chunk goes with the last one"
    assert {chunk.kind for chunk in chunks} == {"rows"}
    assert sum(chunk.size for chunk in chunks) == 1049
    (tmp_path / "b.jsonl").write_bytes(b"x" * 100)
    assert [chunk.kind for chunk in file_chunks(tmp_path / "b.jsonl", 100)] == ["whole"]


def test_the_number_of_chunks_does_not_grow_without_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {"SMALLEST_BYTES": 100, "LARGEST_BYTES": 200, "CHUNKS": 4, "MOST_CHUNKS": 10}.items():
        monkeypatch.setattr(chunks_module, name, value)
    counts = []
    for size in (300, 800, 1_600, 2_000, 4_000, 40_000):
        (tmp_path / "a.jsonl").write_bytes(b"x" * size)
        counts.append(len(file_chunks(tmp_path / "a.jsonl", None)))
    assert counts == [3, 4, 8, 10, 10, 10]


@pytest.mark.parametrize(
    ("size", "chunk"),
    [
        (8 << 20, 2 << 20),
        (1 << 30, 4 << 20),
        (10 << 30, 40 << 20),
        (100 << 30, 64 << 20),
        (256 << 30, 64 << 20),
        (512 << 30, 128 << 20),
    ],
)
def test_sizes_of_chunks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int, chunk: int) -> None:
    (tmp_path / "a.jsonl").write_text("")
    sources = find_sources(tmp_path / "a.jsonl")
    monkeypatch.setattr(opening, "size_of", lambda _: size)
    chunks = [c for c in split_sources(sources, 9) if isinstance(c, FileChunk)]
    edges = [*range(0, size - chunk // 2, chunk), size]
    first, last = chunks[0].span, chunks[-1].span
    assert (len(chunks), first.start, first.stop) == (len(edges) - 1, 0, edges[1])
    assert (last.start, last.stop) == (edges[-2], size)
    assert all(one.span.stop == other.span.start for one, other in pairwise(chunks))
    assert all(c.size == c.span.stop - c.span.start for c in chunks)


@pytest.mark.parametrize(("size", "last"), [(100, (0, 100)), (101, (0, 101)), (150, (0, 150)), (151, (100, 151))])
def test_a_rest_of_half_a_chunk(tmp_path: Path, size: int, last: tuple[int, int]) -> None:
    (tmp_path / "a.jsonl").write_bytes(b"x" * size)
    chunk = file_chunks(tmp_path / "a.jsonl", 100)[-1]
    assert (chunk.span.start, chunk.span.stop) == last
    assert chunk.kind == ("whole" if size == 100 else "rows")


def test_chunks_know_their_source(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.txt").write_text("four\n" * 4)
    (tmp_path / "r.txt").write_text("x\n" * 4)
    sources = find_sources({"one": tmp_path / "a.txt", "two": tmp_path / "b.txt"}, tmp_path / "r.txt")
    chunks = [c for c in split_sources(sources, 9, 20) if isinstance(c, FileChunk)]
    assert [(c.source, c.system, c.kind, c.size) for c in chunks] == [(0, "one", "whole", 20), (1, "two", "whole", 20)]
    reference = Span(str(tmp_path / "r.txt"), 0, 8)
    assert chunks[1] == FileChunk(
        1, "two", "whole", Span(str(tmp_path / "b.txt"), 0, 20), 20, ((inputs.REFERENCE, (reference,)),)
    )
    assert chunks[1].paths == [str(tmp_path / "b.txt"), str(tmp_path / "r.txt")]
    split = [c for c in split_sources(sources, 9, 19) if isinstance(c, FileChunk)]
    assert [(c.source, c.kind, c.size) for c in split] == [(0, "lines", 20), (1, "lines", 20)]
    assert str(file_chunks(tmp_path / "a.txt", 10)[1]) == f"{tmp_path / 'a.txt'} (bytes 10 to 20)"


@pytest.mark.parametrize(
    ("content", "size", "edges"),
    [
        ("ninechars\n" * 3, 29, [0, 30]),
        ("four\n" * 10, 25, [0, 25, 50]),
        ("x" * 99 + "\n" + "y" * 99 + "\nzz", 10, [0, 100, 200, 202]),
        ("four\n" * 3 + "four", 10, [0, 10, 19]),
    ],
)
def test_edges_of_lines(tmp_path: Path, content: str, size: int, edges: list[int]) -> None:
    (tmp_path / "a.txt").write_text(content)
    chunks = file_chunks(tmp_path / "a.txt", size)
    assert [(c.span.start, c.span.stop) for c in chunks] == list(pairwise(edges))
    assert [c.size for c in chunks] == [stop - start for start, stop in pairwise(edges)]
    assert [c.span.lines_before for c in chunks] == [content[:start].count("\n") for start in edges[:-1]]


def naive_boundary(lines: list[bytes], names: list[str | None], start: int) -> int:
    """The contract, line by line: a first line that is no blank, then one of another dialogue."""
    places = [sum(map(len, lines[:number])) for number in range(len(lines) + 1)]
    if start <= 0:
        return 0
    before: list[str | None] = []
    for place, line, name in zip(places[:-1], lines, names, strict=True):
        if place >= start and line.strip():
            if before and (name is None or name != before[-1]):
                return place
            before.append(name)
    return places[-1]


@given(st.lists(st.sampled_from(["a", "b", None, "blank"]), max_size=9), st.integers(-3, 200))
def test_boundaries_equal_those_of_a_naive_reader(names: list[str | None], start: int) -> None:
    lines = [b" \n" if name == "blank" else json.dumps({"dialog_id": name}).encode() + b"\n" for name in names]
    content = b"".join(lines)
    found = find_row_boundary(io.BytesIO(content), start, len(content), NAMES)
    assert found == naive_boundary(lines, names, start)


def test_every_boundary_and_every_range() -> None:
    names = [None, "a", "a", "blank", "a", "b", "blank", "b", None, None, "c"]
    lines = [b" \n" if name == "blank" else json.dumps({"dialog_id": name}).encode() + b"\n" for name in names]
    content, size = b"".join(lines), sum(map(len, lines))
    expected = [naive_boundary(lines, names, start) for start in range(size + 2)]
    found = [find_row_boundary(io.BytesIO(content), start, size, NAMES) for start in range(size + 2)]
    assert found == expected
    for start in range(0, size, 3):
        for stop in range(start + 1, size + 1, 5):
            first, last = find_row_range(io.BytesIO(content), Span("x", start, stop), size, NAMES)
            assert first <= last
            assert first == last or (first, last) == (expected[start], expected[stop])
            assert (first == last) == (expected[start] == expected[stop])


def test_lines_before_a_boundary_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    counted: list[tuple[int, int, str]] = []
    monkeypatch.setattr(opening, "check_lines", lambda *given: counted.append(given))
    content = b"{}\n{}\n\n{}\n"
    assert find_row_boundary(io.BytesIO(content), 2, len(content), NAMES, where="x") == 7
    assert counted == [(1, 2, "x"), (2, 5, "x"), (3, 6, "x")]


def test_very_many_empty_lines_before_a_boundary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(opening, "MOST_SHORT_LINES", 3)
    content = b"{}\n" + b"\n" * 2 + b"{}\n"
    assert find_row_boundary(io.BytesIO(content), 1, len(content), NAMES) == len(content)
    content = b"{}\n" + b"\n" * 30
    with pytest.raises(DataError, match=r"^the file: has 3 lines of less than 4 bytes on average"):
        find_row_boundary(io.BytesIO(content), 1, len(content), NAMES)


def test_blocks_name_the_lines_of_their_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    rows = [{"response": "x"}] * 5 + [{"response": 3}, {"response": "y"}, {"response": 4}]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    (chunk,) = file_chunks(path, None)
    first, second = read_blocks(chunk, NAMES, 4)
    assert [(len(block), block.line(0), block.line(3)) for block in (first, second)] == [(4, 1, 4), (4, 5, 8)]
    assert [list(rows.responses) for rows in first.rows(1, 3)] == [["x", "x"]]
    assert first.rows(2, 2) == []
    for start, stop, lines in ((0, None, [6, 8]), (1, 3, [6]), (2, 4, [8])):
        with pytest.raises(DataError) as caught:
            second.rows(start, stop)
        assert [problem.line for problem in caught.value.problems] == lines


def test_blocks_of_lines_and_of_memory(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "r.txt").write_text("1\n2\n3\n")
    references = {"a": tmp_path / "r.txt", "b": tmp_path / "r.txt", "c": tmp_path / "r.txt"}
    [chunk] = split_sources(find_sources(tmp_path / "a.txt", references), 9)
    first, second = read_blocks(chunk, NAMES, 2)
    assert [(block.where, len(block), block.line(0)) for block in (first, second)] == [
        (str(tmp_path / "a.txt"), 2, 1),
        (str(tmp_path / "a.txt"), 1, 3),
    ]
    [rows] = first.rows()
    assert list(rows.columns[inputs.REFERENCE]) == [["1"] * 3, ["2"] * 3]
    assert first.rows(1, 1) == []
    [rows] = first.rows(1)
    assert (list(rows.responses), rows.system, rows.where) == (["two"], "a", str(tmp_path / "a.txt"))
    (system,) = read_responses(["a", "b", "c"])
    [block] = [
        block for chunk in split_sources(wrap_systems([system]), 2)[1:] for block in read_blocks(chunk, NAMES, 9)
    ]
    assert (len(block), block.line(0)) == (1, 3)


def test_a_byte_order_mark_is_dropped_at_the_start_alone(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfone\ntwo\n\xef\xbb\xbfthree\n")
    for chunk_bytes in (None, 8):
        assert read_all(tmp_path / "a.txt", chunk_bytes or 1 << 20, 2) == ["one", "two", "\ufeffthree"]
    row = b'\xef\xbb\xbf{"response": "a"}\n'
    (tmp_path / "a.jsonl").write_bytes(row + row[3:])
    assert read_all(tmp_path / "a.jsonl", 1 << 20, 1) == ["a", "a"]
    (tmp_path / "a.jsonl").write_bytes(row * 2)
    with pytest.raises(DataError, match=r"a\.jsonl:2: not JSON"):
        read_all(tmp_path / "a.jsonl", 1 << 20, 1)


def test_lines_beside_that_are_not_text_name_their_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("one\ntwo\n")
    (tmp_path / "r.txt").write_bytes(b"1\n\xff\n")
    [chunk] = split_sources(find_sources(tmp_path / "a.txt", tmp_path / "r.txt"), 9)
    [block] = read_blocks(chunk, NAMES, 2)
    with pytest.raises(DataError) as caught:
        block.rows()
    assert [(problem.where, problem.line) for problem in caught.value.problems] == [(str(tmp_path / "r.txt"), 2)]


def test_spans_in_row_groups_are_read_together(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    kinds, outputs = ["CHAIN", "LLM", "LLM"], ["a", "b", "c"]
    rows = {"context.trace_id": ["t", "t", "u"], "span_kind": kinds, "attributes.output.value": outputs}
    pq.write_table(pa.table(rows), path, row_group_size=1)
    assert read_all(path, 1, 1) == ["b", "c"]


@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_messages_in_rows_of_their_own_are_read_together(tmp_path: Path, suffix: str) -> None:
    roles = ("user", "assistant")
    rows = [{"chat_id": f"c{at % 9}", "role": roles[at // 9], "text": f"{at}"} for at in range(18)]
    path = tmp_path / f"x.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path, row_group_size=4)
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    [chunk] = split_sources(find_sources(str(path)), 4, chunk_bytes=64)
    systems = [rows for block in read_blocks(chunk, FieldNames(), 4) for rows in block.rows()]
    account = sum((rows.account for rows in systems), Account())
    assert (account.conversations, account.replies, account.without_reply) == (9, 9, 0)


def test_where_the_last_dialogue_of_rows_starts() -> None:
    ids: list[list[str | None]] = [["a", None], ["a", "b", "b"], ["b", "b"], ["b"], [""], ["b", "a", "b"]]
    assert [chunks_module._find_last_start(each) for each in ids] == [2, 1, 0, 0, 1, 2]


def test_whole_files_are_read_on_this_machine(tmp_path: Path) -> None:
    chunk = FileChunk(0, "s", "whole", Span("memory://x/a.csv", 0, 5), 5)
    with pytest.raises(DataError, match=r"memory://x/a\.csv: is read as a whole, and that only from this machine"):
        list(read_blocks(chunk, NAMES, 5))
    path = tmp_path / "a.csv"
    path.write_text("response,system\na,s\nb,t\nc,s\nd,s\n")
    (chunk,) = file_chunks(path, None)
    blocks = list(read_blocks(chunk, NAMES, 2))
    assert [(block.line(0), [list(rows.responses) for rows in block.rows()]) for block in blocks] == [
        (1, [["a", "c"]]),
        (3, [["d"]]),
        (1, [["b"]]),
    ]


def test_lines_are_cut_into_equally_many_with_those_beside_them(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("four\n" * 10)
    (tmp_path / "b.txt").write_text("".join(f"{number}\n" for number in range(10)))
    chunks = file_chunks(tmp_path / "a.txt", 20, tmp_path / "b.txt")
    assert [(c.span.start, c.span.stop, c.span.lines_before) for c in chunks] == [(0, 20, 0), (20, 40, 4), (40, 50, 8)]
    beside = [span for chunk in chunks for need, spans in chunk.beside for span in spans if need == inputs.REFERENCE]
    assert [(span.start, span.stop) for span in beside] == [(0, 8), (8, 16), (16, 20)]


def test_row_groups_are_joined_up_to_the_size(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    pq.write_table(pa.table({"response": ["word"] * 40}), path, row_group_size=10)
    size = pq.ParquetFile(path).metadata.row_group(0).total_byte_size
    assert [(c.span.start, c.span.stop) for c in file_chunks(path, 2 * size)] == [(0, 2), (2, 4)]
    assert [(c.span.start, c.span.stop) for c in file_chunks(path, 2 * size + 1)] == [(0, 3), (3, 4)]
    assert str(file_chunks(path, 2 * size)[1]) == f"{path} (row groups 2 to 4)"
    assert [c.size for c in file_chunks(path, 2 * size)] == [2 * size] * 2


def test_lines_beside_that_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("four\n" * 4)
    (tmp_path / "r.txt.gz").write_bytes(gzip.compress(b"x\n" * 4))
    assert [c.kind for c in file_chunks(tmp_path / "a.txt", 10, tmp_path / "r.txt.gz")] == ["whole"]
    storage = pytest.importorskip("fsspec").filesystem("memory")
    storage.pipe_file("/beside/r.txt", b"x\n" * 4)
    sources = find_sources(tmp_path / "a.txt", "memory://beside/r.txt")
    assert [c.kind for c in split_sources(sources, 9, 10) if isinstance(c, FileChunk)] == ["whole"]


@pytest.mark.parametrize("name", ["a.txt.gz", "a.csv", "a.json"])
def test_other_files_are_one_chunk(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"x" * 500)
    (chunk,) = file_chunks(tmp_path / name, 10)
    assert (chunk.kind, chunk.size, str(chunk)) == ("whole", 500, str(tmp_path / name))


def test_small_inputs_are_not_cut_unless_asked(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"response": "x"}\n' * 1000)
    assert len(file_chunks(tmp_path / "a.jsonl", None)) == 1
    (tmp_path / "a.jsonl").write_bytes(b" " * (3 * SMALLEST_BYTES))
    assert len(file_chunks(tmp_path / "a.jsonl", None)) == 3


def test_rows_in_memory_are_cut_into_batches() -> None:
    rows = [{"response": "x", "dialog_id": name} for name in "aabbbc"]
    (system,) = read_responses(rows)
    chunks = [c for c in split_sources(wrap_systems([system]), 2) if isinstance(c, MemoryChunk)]
    assert [(c.first_row, c.first_dialogue, c.size, c.only) for c in chunks] == [
        (0, 0, 2, False),
        (2, 1, 3, False),
        (5, 2, 1, False),
    ]
    (whole,) = split_sources(wrap_systems([system]), 6)
    assert isinstance(whole, MemoryChunk)
    assert (whole.only, whole.first_row, whole.first_dialogue, whole.size) == (True, 0, 0, 6)


@given(st.lists(st.sampled_from(["a", "b", None, ""]), min_size=1, max_size=12), st.data())
def test_a_boundary_is_the_start_of_a_line_with_a_new_dialogue(names: list[str | None], data: st.DataObject) -> None:
    lines = [json.dumps({"response": "x", "dialog_id": name}).encode() + b"\n" for name in names]
    content = b"".join(lines)
    place = data.draw(st.integers(0, len(content)))
    found = find_row_boundary(io.BytesIO(content), place, len(content), NAMES)
    starts = [0, *(sum(map(len, lines[: number + 1])) for number in range(len(lines)))]
    assert found in starts
    assert found >= place
    if found not in (0, len(content)):
        number = starts.index(found)
        assert not names[number] or names[number] != names[number - 1]
    places = sorted(data.draw(st.lists(st.integers(0, len(content)), max_size=4)))
    found_places = [find_row_boundary(io.BytesIO(content), each, len(content), NAMES) for each in places]
    assert all(one <= other for one, other in pairwise(found_places)), "no row belongs to two chunks"
    edges = [0, *places, len(content)]
    spans = [Span("x", start, stop) for start, stop in pairwise(edges) if stop > start]
    ranges = [find_row_range(io.BytesIO(content), span, len(content), NAMES) for span in spans]
    plain = [find_row_boundary(io.BytesIO(content), span.start, len(content), NAMES) for span in spans]
    expected = list(pairwise([*plain, len(content)]))
    assert [each for each in ranges if each[0] < each[1]] == [each for each in expected if each[0] < each[1]]


def test_a_dialogue_over_many_chunks_is_looked_through_once(monkeypatch: pytest.MonkeyPatch) -> None:
    content = b"".join(b'{"dialog_id": "%s"}\n' % (b"one" if row < 900 else b"two") for row in range(1000))
    read = 0
    plain = chunks_module.read_dialogue

    def counted(line: bytes, names: FieldNames) -> str | None:
        nonlocal read
        read += 1
        return plain(line, names)

    monkeypatch.setattr(chunks_module, "read_dialogue", counted)
    spans = [Span("x", start, start + len(content) // 50) for start in range(0, len(content), len(content) // 50)]
    ranges = [find_row_range(io.BytesIO(content), span, len(content), NAMES) for span in spans]
    assert [stop - start for start, stop in ranges if stop > start] == [len(content) * 9 // 10, len(content) // 10]
    assert read < 3 * 1000


def test_the_dialogue_of_a_line() -> None:
    assert read_dialogue(b'\xef\xbb\xbf{"dialog_id": "d"}', NAMES) == "d"
    assert read_dialogue(b'{"dialog_id": 7}', NAMES) == "7"
    for line in (b'{"dialog_id": ""}', b'{"dialog_id": null}', b"[1]", b"no JSON", b"{}"):
        assert read_dialogue(line, NAMES) is None


@pytest.mark.parametrize("suffix", ["txt", "jsonl"])
@pytest.mark.parametrize("chunk_bytes", [None, 4000])
def test_very_many_empty_lines_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str, chunk_bytes: int | None
) -> None:
    monkeypatch.setattr(opening, "MOST_SHORT_LINES", 1000)
    path = tmp_path / f"a.{suffix}"
    row = b'{"response": "yes"}' if suffix == "jsonl" else b"yes, there is"
    path.write_bytes((row + b"\n") * 1500)
    assert len(read_all(path, chunk_bytes)) == 1500
    path.write_bytes((row + b"\n") * 10 + b"\n" * 20_000)
    with pytest.raises(DataError, match="1,000 lines of less than 4 bytes on average"):
        read_all(path, chunk_bytes)


def read_all(path: Path, chunk_bytes: int | None, rows: int = 100) -> list[Any]:
    if chunk_bytes is None:
        return [text for rows in read_responses(path) for text in rows.columns[inputs.RESPONSE]]
    blocks = (block for chunk in file_chunks(path, chunk_bytes) for block in read_blocks(chunk, NAMES, rows))
    return [text for block in blocks for part in block.rows() for text in part.columns[inputs.RESPONSE]]
