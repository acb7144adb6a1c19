"""`dialeval validate`."""

from __future__ import annotations

from pathlib import Path

from cli.conftest import Dialeval


def test_validate_lists_every_fault_of_every_file(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a\nb\n")
    (tmp_path / "bad.txt").write_bytes(b"a\n\xff\nb\n\xfe\n")
    (tmp_path / "bad.jsonl").write_text('{"response": "a"}\n{"respons": "b"}\n{broken\n')
    done = dialeval("validate", "good.txt", "bad.txt", "bad.jsonl", "nowhere.txt")
    assert done.returncode == 2
    places = [line.split(": ")[0] for line in done.stdout.splitlines()]
    assert places == ["good.txt", "bad.txt:2", "bad.txt:4", "bad.jsonl:2", "bad.jsonl:3", "nowhere.txt"]
    assert dialeval("validate", "good.txt").returncode == 0


def test_what_was_guessed_is_told(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "excel.csv").write_bytes("response;reference\r\nGrüße;ja\r\n".encode("cp1252"))
    done = dialeval("validate", "excel.csv")
    assert done.returncode == 0
    line, note = done.stdout.splitlines()
    assert line == "excel.csv: csv, 1 row, system excel; response, reference"
    assert "Windows-1252" in note
    assert dialeval("validate", "excel.csv", "--sep", "tab").returncode == 2
