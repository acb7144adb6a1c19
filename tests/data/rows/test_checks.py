from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval.core.errors import SettingError
from dialeval.data.rows.checks import Summary, check, summary

Write = Callable[[str, "bytes | str"], Path]


def test_every_fault_of_every_file(write: Write, tmp_path: Path) -> None:
    paths = [
        write("a.txt", b"ok\n\xff\n\xfe\n"),
        write("good.txt", "x\n"),
        write("b.jsonl", '{"response": 1}\nnope\n{"answer": "x"}\n'),
        write("c.csv", "answer\nx\n"),
        write("d.json", "[1,\n2"),
        write("e.txt", ""),
        write("f.parquet", "x"),
        write("g.txt.gz", "x\n"),
        tmp_path / "missing.txt",
    ]
    paths[7].write_bytes(b"not packed")
    found = [(Path(fault.where).name, fault.line) for fault in check(paths)]
    assert found == [
        ("a.txt", 2),
        ("a.txt", 3),
        ("b.jsonl", 1),
        ("b.jsonl", 2),
        ("b.jsonl", 3),
        ("c.csv", 1),
        ("d.json", 2),
        ("e.txt", None),
        ("f.parquet", None),
        ("g.txt.gz", None),
        ("missing.txt", None),
    ]


def test_good_files_have_no_faults_even_if_they_share_a_name(write: Write, tmp_path: Path) -> None:
    assert check([write("a.txt", "x\n"), write("a.txt.gz", "x\n"), tmp_path]) == []


def test_fields_are_mapped(write: Write) -> None:
    path = write("a.jsonl", '{"answer": "x"}\n')
    assert check([path], {"response": "answer"}) == []
    with pytest.raises(SettingError):
        check([path], {"answers": "answer"})


def test_a_folder_without_files_is_a_fault(tmp_path: Path) -> None:
    [fault] = check([tmp_path])
    assert fault.where == str(tmp_path)


def test_summaries(write: Write, tmp_path: Path) -> None:
    one = summary(write("a.txt", "x\n"))
    assert one == Summary(str(tmp_path / "a.txt"), "txt", 1, ("a",), ("response",))
    assert str(one) == f"{tmp_path / 'a.txt'}: txt, 1 row, system a; response"
    rows = '{"response": "x", "system": "s", "dialog_id": 1, "turn": 2, "reference": "r"}\n{"response": "y"}\n'
    two = summary(write("b.jsonl", rows))
    assert str(two).endswith("b.jsonl: jsonl, 2 rows, 2 systems: s, b; response, reference, dialog_id, turn")
    write("a.txt.gz", "y\n")
    folder = summary(tmp_path)
    assert (folder.format, folder.rows, folder.systems) == ("folder", 4, ("a", "a", "s", "b"))


def test_importing_the_readers_loads_no_heavy_library() -> None:
    heavy = ("pyarrow", "pandas", "polars", "orjson", "datasets", "numba")
    code = f"import sys, dialeval.data; print([name for name in {heavy!r} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"
