"""How sources are cut: sizes, edges, and the same boundary for the readers on both sides of it."""

from __future__ import annotations

import io
import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.errors import DataError
from dialeval.io import chunks as chunks_module
from dialeval.io import opening
from dialeval.io.chunks import FileChunk, Span, find_row_boundary, find_row_range, read_blocks, split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import find_sources

NAMES = FieldNames()


def file_chunks(path: Path, chunk_bytes: int | None, references: Path | None = None) -> list[FileChunk]:
    return [c for c in split_sources(find_sources(path, references), 9, chunk_bytes) if isinstance(c, FileChunk)]


@given(st.lists(st.sampled_from([b"\n", b"a", b"bcd"])).map(b"".join), st.integers(1, 4), st.integers(1, 9))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_edges_are_found_in_parts_of_any_size(tmp_path: Path, content: bytes, every: int, read: int) -> None:
    (tmp_path / "a.txt").write_bytes(content)
    feeds = [place + 1 for place, byte in enumerate(content) if byte == ord("\n")]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(chunks_module, "_READ_BYTES", read)
        found = chunks_module._find_line_edges(str(tmp_path / "a.txt"), every)
    edges = [0, *feeds[every - 1 :: every]]
    assert found == (
        edges if edges[-1] == len(content) else [*edges, len(content)],
        len(feeds) + (content[-1:] not in (b"", b"\n")),
    )


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


def test_a_part_of_a_table_may_be_without_rows(tmp_path: Path) -> None:
    path = tmp_path / "a.parquet"
    rows = {"span_kind": ["TOOL", "LLM"], "attributes.output.value": ["a", "b"]}
    pq.write_table(pa.table(rows), path, row_group_size=1)
    assert read_all(path, 1, 1) == ["b"]


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
