"""The options that say how rows are read."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import dialeval as package
from conftest import Dialeval


def test_a_separator_a_warning_and_prompts(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "windows.csv").write_bytes("response#reference\r\nGrüße an alle#ja\r\n".encode("cp1252"))
    done = dialeval("score", "windows.csv", "--separator", "#", "-m", "length", "-f", "json")
    assert json.loads(done.stdout)["systems"]["windows"]["metrics"]["length"]["mean"] == 3
    assert "Windows-1252" in done.stderr
    said = [{"role": role, "content": role} for role in ("system", "user", "assistant")]
    (tmp_path / "chats.jsonl").write_text(json.dumps({"messages": said}) + "\n")
    for more, context in (((), ["user"]), (("--system-prompts",), ["system", "user"])):
        assert dialeval("score", "chats.jsonl", "-m", "length", "-o", f"out{len(more)}", *more).returncode == 0
        rows = load(tmp_path / f"out{len(more)}")
        assert rows == [context]


@pytest.mark.parametrize(
    "command",
    [
        "score excel.csv -m length -o run",
        "score a.txt -r excel.csv -m rouge-l",
        "score a.txt -c excel.csv -m length",
        "score a.txt --train words.csv -m length,per-unigram-entropy",
        "score a.txt --vocabulary words.csv -m length",
        "score parts/*.csv -m length -o run",
        "score parts/*.csv -m length --jobs 2",
        "score parts/*.csv -m kl-div,length --resume work",
        "agreement excel.csv --human overall -m length",
        "rank pairs.csv",
    ],
)
def test_windows_1252_is_read_and_told_once_wherever_csv_is(dialeval: Dialeval, tmp_path: Path, command: str) -> None:
    (tmp_path / "parts").mkdir()
    rows = [f"{n % 3};Grüße an {n} alle;ja{' ja' * n};{n % 5}" for n in range(9)]
    table = "\r\n".join(["dialog_id;response;reference;scores", *rows, ""]).encode("cp1252")
    for name in ("excel.csv", "parts/a.csv"):
        (tmp_path / name).write_bytes(table)
    (tmp_path / "parts" / "b.csv").write_bytes(table.decode("cp1252").encode())
    (tmp_path / "a.txt").write_text("Grüße an alle\n" * 9, encoding="utf-8")
    (tmp_path / "words.csv").write_bytes("context\r\nGrüße an alle\r\n".encode("cp1252"))
    pairs = [f"Grüße;Ölung;{'ab'[n % 2]}" for n in range(9)]
    (tmp_path / "pairs.csv").write_bytes("\r\n".join(["a;b;better", *pairs, ""]).encode("cp1252"))
    done = dialeval(*command.split())
    assert done.returncode == 0, done.stderr
    told = [line for line in done.stderr.splitlines() if "Windows-1252" in line]
    assert len(told) == 1, done.stderr
    assert told[0].startswith("warning: ")
    if "-o run" in command:
        assert "Windows-1252" in package.load(tmp_path / "run").warnings[0]
    if "--resume" in command:
        assert dialeval(*command.split()).stderr.count("Windows-1252") == 1


def load(folder: Path) -> list[list[str]]:
    table = package.load(folder)["chats"].rows
    assert table is not None
    roles = [[role for role in turns if role] for turns in table.texts["roles"]]
    assert roles == [list(turns) for turns in table.texts["context"]], "each message here says its role"
    return roles
