"""Text, ragged and token columns, and the batch that hands them out."""

from __future__ import annotations

import errno
import mmap
import os
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import arrays, fingerprint, inputs
from dialeval.core.arrays import offsets_of, ranges, row_numbers, split_clusters
from dialeval.core.batch import Batch
from dialeval.core.columns import (
    ColumnData,
    NumberColumn,
    ObjectColumn,
    RaggedColumn,
    SharedColumn,
    TextColumn,
    join_columns,
)
from dialeval.core.errors import NeedError, SettingError, add_warning, escape_controls, escape_lines
from dialeval.core.fingerprint import Fingerprint
from dialeval.suites.lsdscc.data import GroupedColumn
from dialeval.text.vocabulary import Vocabulary

texts = st.lists(st.text(max_size=12), max_size=12)


@given(texts)
def test_strings_come_back(rows: list[str]) -> None:
    assert list(TextColumn.from_strings(rows)) == rows


@given(texts)
def test_arrow_buffers_hold_the_same_texts_and_digest(rows: list[str]) -> None:
    column = TextColumn.from_arrow(pa.chunked_array([pa.array(rows[:3], pa.string()), pa.array(rows[3:], pa.string())]))
    assert list(column) == rows
    assert column.digest == TextColumn.from_strings(rows).digest


@given(texts, texts)
def test_digests_tell_rows_apart(left: list[str], right: list[str]) -> None:
    same = TextColumn.from_strings(left).digest == TextColumn.from_strings(right).digest
    assert same == (left == right)


@given(st.lists(st.lists(st.text(max_size=5), max_size=3), max_size=8), st.data())
def test_ragged_rows_slice_and_take(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert list(column) == rows
    start = data.draw(st.integers(0, len(rows)))
    assert list(column.slice(start, len(rows))) == rows[start:]
    if rows:
        chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5))
        assert list(column.take(np.array(chosen, np.int64))) == [rows[index] for index in chosen]


@st.composite
def shared_rows(draw: st.DrawFn) -> SharedColumn:
    """Rows of which some begin with the texts of the row before, as those of a chat do."""
    steps = RaggedColumn.from_lists(draw(st.lists(st.lists(st.text(max_size=9), max_size=3), max_size=8)))
    size = len(steps)
    continues = np.array(draw(st.lists(st.booleans(), min_size=size, max_size=size)), np.bool_)
    column = SharedColumn.from_steps(steps, continues)
    rows: list[list[str]] = []
    for step, goes_on in zip(steps, continues.tolist(), strict=True):
        rows.append([*(rows[-1] if goes_on and rows else []), *step])
    assert list(column) == rows
    return column


@given(shared_rows(), st.data())
def test_shared_rows_are_those_of_a_ragged_column(column: SharedColumn, data: st.DataObject) -> None:
    rows = list(column)
    twin = RaggedColumn.from_lists(rows)
    assert column.fingerprint == twin.fingerprint
    assert column.digest == twin.digest
    start, stop = sorted(data.draw(st.tuples(st.integers(0, len(rows)), st.integers(0, len(rows)))))
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=5)) if rows else []
    count = data.draw(st.integers(1, 3))
    parts = {
        "slice": (column.slice(start, stop), rows[start:stop]),
        "take": (column.take(np.array(chosen, np.int64)), [rows[row] for row in chosen]),
        "last": (column.take_last(count), [row[-count:] for row in rows]),
        "steps": (SharedColumn.from_steps(*column.steps()), rows),
    }
    for name, (part, expected) in parts.items():
        assert list(part) == expected, name
        assert part.digest == RaggedColumn.from_lists(expected).digest, name
        used = {place for low, high in zip(part.starts, part.ends, strict=True) for place in range(low, high)}
        assert used == set(range(len(part.values))), f"{name}: texts that no row has"


def test_contexts_are_read_by_their_ends() -> None:
    column = SharedColumn.from_steps(RaggedColumn.from_lists([["a"], ["b"]]), np.array([False, True]))
    for given_ in (column, RaggedColumn.from_lists([["a"], ["a", "b"]])):
        batch = Batch(2, {inputs.CONTEXT: given_}, Vocabulary(), np.array([0, 2]))
        assert list(batch.contexts()) == [["a"], ["a", "b"]]
        assert list(batch.values(inputs.CONTEXT)) == list(given_.values)
        with pytest.raises(NeedError, match=r"rows may share texts of context; read it with Batch\.contexts"):
            batch.lists(inputs.CONTEXT)
    with pytest.raises(NeedError, match="any number of texts"):
        Batch(1, {inputs.CONTEXT: column.values}, Vocabulary(), np.array([0, 1])).contexts()


@given(st.lists(st.lists(st.sampled_from(["a", "bb", "c"]), max_size=3), max_size=5), st.data())
def test_words_of_token_rows(rows: list[list[str]], data: st.DataObject) -> None:
    tokens = Vocabulary().split(TextColumn.from_strings([" ".join(row) for row in rows]))
    assert tokens.words() == rows
    assert tokens.lengths.tolist() == [len(row) for row in rows]
    order = data.draw(st.lists(st.integers(0, len(rows) - 1), max_size=6)) if rows else []
    assert tokens.take(np.array(order, np.int64)).words() == [rows[row] for row in order]


# Text from outside stays in its place.


HOSTILE = [
    ("a\x1b[31mred", r"a\x1b[31mred"),
    ("\x1b]8;;http://x/\x1b\\link", "\\x1b]8;;http://x/\\x1b\\link"),
    ("\x9b31m", r"\x9b31m"),
    ("line\rover", r"line\rover"),
    ("bell\a", r"bell\x07"),
    ("\u202eabc\u2066d", r"\u202eabc\u2066d"),
    ("\u2028", r"\u2028"),
    ("\udcff", r"\udcff"),
    ("\x7f\0", r"\x7f\x00"),
]


@pytest.mark.parametrize(("text", "shown"), HOSTILE)
def test_what_a_terminal_obeys_is_written_out(text: str, shown: str) -> None:
    assert escape_controls(text) == shown
    assert escape_lines(f"{text}\n\tmore\n") == f"{shown}\n\tmore\n"


def test_messages_of_the_python_interface_are_harmless() -> None:
    """As pytest and notebooks print them: the messages of exceptions and of warnings, and comparisons."""
    name = "v1\x1b]0;title\a\u202e"
    references = [["see you at nine"]] * 20
    run = dialeval.evaluate({name: ["see you at nine"] * 20}, references, metrics="rouge-l")
    worse = dialeval.evaluate({name: ["no"] * 20}, references, metrics="rouge-l")
    assert run[name]["rouge-l"].mean == 1, "names are unchanged"
    messages = [str(dialeval.compare({"a": run, "b": worse}))]
    for fail in (
        lambda: dialeval.assert_no_worse(worse, run, "rouge-l"),
        lambda: dialeval.compare(run, baseline=f"{name}0"),
        lambda: dialeval.evaluate(["yes"], metrics=name),
        lambda: run[f"{name}0"],
    ):
        with pytest.raises((AssertionError, dialeval.DialevalError, KeyError)) as caught:
            fail()
        messages.append(str(caught.value))
    with pytest.warns(UserWarning, match="v1") as warned:
        add_warning(name)
    messages += [str(warning.message) for warning in warned]
    assert all(r"v1\x1b]0;title\x07\u202e" in message for message in messages), messages
    assert not any(letter in message for letter in "\x1b\a\u202e" for message in messages)


# Mapped arrays give their memory back and keep their content.


def test_released_pages_are_read_again(tmp_path: Path) -> None:
    content = np.random.default_rng(0).integers(0, 256, 1_000_000).astype(np.uint8)
    (tmp_path / "file").write_bytes(content.tobytes())
    with (tmp_path / "file").open("rb") as file:
        data = np.frombuffer(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ), np.uint8)
    for start, stop in ((0, 1_000_000), (5, 400_000), (4096, 4100), (999_999, 1_000_000), (7, 7)):
        arrays.release(data[start:stop])
        assert (data == content).all()


_ON_A_FULL_DISK = """
from dialeval.core import arrays
arrays.SPILLED_BYTES = 1
try:
    arrays.make_unscored_column(1 << 20)
except arrays.SettingError as error:
    print(error)
"""


def test_a_full_temporary_folder_is_an_error_and_not_the_end_of_the_process(tmp_path: Path) -> None:
    """On a real disk of 1 MB, where the system lets us make one."""
    mounted = f"mount -t tmpfs -o size=1m small {tmp_path}"
    alone = [shutil.which("unshare") or "unshare", "-rm", "sh", "-c"]
    if shutil.which("unshare") is None or subprocess.run([*alone, mounted], check=False).returncode:
        pytest.skip("this system lets nobody make a small disk")
    command = f'{mounted} && TMPDIR={tmp_path} exec "$0" -c "$1"'
    words = [*alone, command, sys.executable, _ON_A_FULL_DISK]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, "SIGBUS before places were reserved"
    assert "no room for 8388608 bytes of temporary data (No space left on device)" in done.stdout
    assert "set TMPDIR" in done.stdout


def test_no_room_is_said_wherever_it_shows(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(arrays, "SPILLED_BYTES", 1)
    monkeypatch.setattr(os, "posix_fallocate", full, raising=False)
    with pytest.raises(SettingError, match=r"no room for 800 bytes.*set TMPDIR"):
        arrays.empty_array((100,), np.float64)


@pytest.mark.parametrize("size", [1, 100, (1 << 20) + 1])
def test_where_no_place_can_be_reserved_zeros_are_written(monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    def unable(*_: object) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    written: list[int] = []
    write = os.write

    def half(file: int, data: bytes) -> int:
        written.append(write(file, data[: 1 << 19]))
        return written[-1]

    monkeypatch.setattr(arrays, "SPILLED_BYTES", 1)
    monkeypatch.setattr(os, "posix_fallocate", unable, raising=False)
    monkeypatch.setattr(os, "write", half)
    array = arrays.empty_array((size,), np.uint8)
    assert array.shape == (size,)
    assert not array.any()
    assert sum(written) == size


# Ragged arrays against loops over lists.

rows = st.lists(st.tuples(st.integers(0, 50), st.integers(0, 4)))


@given(rows)
def test_as_loops(made: list[tuple[int, int]]) -> None:
    starts, lengths = (np.array([row[side] for row in made], np.int64) for side in (0, 1))
    offsets = offsets_of(lengths)
    assert offsets.tolist() == offsets_of(length for _, length in made).tolist()
    assert offsets.tolist() == [sum(length for _, length in made[:row]) for row in range(len(made) + 1)]
    assert row_numbers(offsets).tolist() == [row for row, (_, length) in enumerate(made) for _ in range(length)]
    assert ranges(starts, lengths).tolist() == [start + k for start, length in made for k in range(length)]


@given(st.lists(st.integers(0, 5), max_size=15), st.integers(1, 12))
def test_cut_as_a_loop(lengths: list[int], most: int) -> None:
    expected: list[tuple[int, int]] = []
    first = 0
    while first < len(lengths):
        last = first + 1
        while last < len(lengths) and sum(lengths[first : last + 1]) <= most:
            last += 1
        expected.append((first, last))
        first = last
    assert list(split_clusters(offsets_of(lengths), most)) == expected


# Columns one below the other have the rows of all, and the digest of a column that was made of all at once.


def joined_texts(*given: str) -> TextColumn:
    return TextColumn.from_strings(given)


def shared(values: list[str], starts: list[int], ends: list[int]) -> SharedColumn:
    return SharedColumn(joined_texts(*values), np.array(starts), np.array(ends))


@pytest.mark.parametrize(
    ("parts", "whole"),
    [
        (
            [joined_texts("a", "bé"), joined_texts(), joined_texts("", "c").slice(1, 2)],
            joined_texts("a", "bé", "c"),
        ),
        (
            [RaggedColumn.from_lists([["a"], []]), RaggedColumn.from_lists([["b", "c"]])],
            RaggedColumn.from_lists([["a"], [], ["b", "c"]]),
        ),
        (
            [shared(["x", "y"], [0, 0], [1, 2]), RaggedColumn.from_lists([["z"]]), shared(["q"], [0], [1])],
            RaggedColumn.from_lists([["x"], ["x", "y"], ["z"], ["q"]]),
        ),
        (
            [
                GroupedColumn.of(joined_texts("a", "b", "c"), [2, 1], [2]),
                GroupedColumn.of(joined_texts("d"), [1], [0, 1]),
            ],
            GroupedColumn.of(joined_texts("a", "b", "c", "d"), [2, 1, 1], [2, 0, 1]),
        ),
        ([ObjectColumn([{"a": 1}]), ObjectColumn([None, "x"])], ObjectColumn([{"a": 1}, None, "x"])),
        (
            [NumberColumn(np.array([[1.0, 2.0]])), NumberColumn(np.array([[3.0, 4.0]]))],
            NumberColumn(np.array([[1.0, 2.0], [3.0, 4.0]])),
        ),
    ],
    ids=["texts", "ragged", "shared", "grouped", "objects", "numbers"],
)
def test_joined_columns_are_the_whole_column(parts: list[ColumnData], whole: ColumnData) -> None:
    joined = join_columns(parts)
    assert [np.array(row).tolist() for row in joined] == [np.array(row).tolist() for row in whole]
    assert joined.digest == whole.digest


# The digest of a column is the same wherever it is cut, and tells columns apart.


PRIME = 2**61 - 1
FIRST, SECOND = 0x12D687E5A3B9F04C, 0x0B4C6F9D81E7A253
"""Saved runs have digests of these, so that they never change."""

fingerprint_texts = st.lists(st.text(max_size=20), max_size=12)
lists = st.lists(st.lists(st.text(max_size=9), max_size=3), max_size=8)


def polynomial(rows: list[list[str]], base: int, ragged: bool) -> int:
    """The naive twin: whole numbers, one symbol after the other."""
    total = 0
    for row in rows:
        for text in row:
            data = text.encode()
            symbols = [int.from_bytes(data[start : start + 7], "big") for start in range(0, len(data), 7)]
            for symbol in [*symbols, (1 << 56) + len(data)]:
                total = (total * base + symbol) % PRIME
        if ragged:
            total = (total * base + (1 << 60)) % PRIME
    return total


@given(fingerprint_texts)
def test_texts_against_whole_numbers(rows: list[str]) -> None:
    found = TextColumn.from_strings(rows).fingerprint
    alone = [[row] for row in rows]
    assert found.first == polynomial(alone, FIRST, ragged=False)
    assert found.second == polynomial(alone, SECOND, ragged=False)
    assert found.texts == len(rows)
    assert found.symbols == sum(len(row.encode() + b"123456") // 7 + 1 for row in rows)


@given(lists, st.data())
def test_parts_add_up(rows: list[list[str]], data: st.DataObject) -> None:
    column = RaggedColumn.from_lists(rows)
    assert column.fingerprint.first == polynomial(rows, FIRST, ragged=True)
    assert column.fingerprint.second == polynomial(rows, SECOND, ragged=True)
    assert column.fingerprint.texts == sum(map(len, rows))
    alone = TextColumn.from_strings([text for row in rows for text in row]).fingerprint
    assert column.fingerprint.symbols == alone.symbols + len(rows)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=3)))
    parts = [column.slice(start, stop).fingerprint for start, stop in pairwise([0, *cuts, len(rows)])]
    assert sum(parts, Fingerprint()) == column.fingerprint


@given(lists, lists)
def test_different_columns_have_different_digests(left: list[list[str]], right: list[list[str]]) -> None:
    digests = [RaggedColumn.from_lists(rows).digest for rows in (left, right)]
    assert (digests[0] == digests[1]) == (left == right)


@given(st.binary(max_size=7), st.integers(0, PRIME - 1), st.integers(0, PRIME - 1), st.booleans())
def test_a_step_after_any_sum(content: bytes, first: int, second: int, is_zero: bool) -> None:
    """Also after the one sum that gives 0."""
    symbols = [int.from_bytes(content, "big")] * bool(content) + [(1 << 56) + len(content)]
    if is_zero:
        first = -symbols[0] * pow(FIRST, -1, PRIME) % PRIME
        second = -symbols[0] * pow(SECOND, -1, PRIME) % PRIME
    totals = np.array([first, second, 5], np.uint64)
    data = np.frombuffer(content + b"!", np.uint8)
    fingerprint.add_texts(data, np.array([0]), np.array([len(content)]), totals)
    for symbol in symbols:
        first, second = (first * FIRST + symbol) % PRIME, (second * SECOND + symbol) % PRIME
    assert totals.tolist() == [first, second, 5 + len(symbols)]


def test_many_rows_are_read_in_parts() -> None:
    column = TextColumn.from_strings([f"row {row}" for row in range(140_000)])
    order = np.arange(len(column))
    assert column.take(order).digest == column.digest != column.take(order[::-1]).digest
    whole = Fingerprint.of(column.data, column.starts, column.ends)
    assert column.fingerprint == whole
