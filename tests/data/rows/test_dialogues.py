from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from dialeval.core.errors import Fault
from dialeval.data.rows.dialogues import read_dialogues


def test_texts_and_chats_of_several_files(write: Callable[[str, str], Path]) -> None:
    plain = write("a.jsonl", '{"turns": ["hi", {"speaker": "B", "text": "hello"}]}\n')
    chat = write("b.jsonl", '{"messages": [{"role": "user", "content": "yes"}]}\n{"turns": []}\n')
    assert read_dialogues([plain, chat]) == [["hi", "hello"], ["yes"], []]


def test_faults_of_all_files(
    write: Callable[[str, str], Path], faults_of: Callable[[Callable[[], object]], list[Fault]]
) -> None:
    paths = [write("a.jsonl", '{"turns": [3]}\n{}\n'), write("b.jsonl", "{\n"), Path("nowhere.jsonl")]
    faults = faults_of(lambda: read_dialogues(paths))
    assert [(Path(fault.where).name, fault.line) for fault in faults] == [
        ("a.jsonl", 1),
        ("a.jsonl", 2),
        ("b.jsonl", 1),
        ("nowhere.jsonl", None),
    ]
