from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tools.judge_training.pairs import read_dialogues

from dialeval.core.errors import DataError, Problem


def test_texts_and_chats_of_several_files(write: Callable[[str, str], Path]) -> None:
    plain = write("a.jsonl", '{"turns": ["hi", {"speaker": "B", "text": "hello"}]}\n')
    chat = write("b.jsonl", '{"messages": [{"role": "user", "content": "yes"}]}\n{"turns": []}\n')
    assert read_dialogues([plain, chat]) == [(["hi", "hello"], []), (["yes"], []), ([], [])]


def test_problems_of_all_files(
    write: Callable[[str, str], Path], problems_of: Callable[[Callable[[], object]], list[Problem]]
) -> None:
    paths = [write("a.jsonl", '{"turns": [3]}\n{}\n'), write("b.jsonl", "{\n"), Path("nowhere.jsonl")]
    problems = problems_of(lambda: read_dialogues(paths))
    assert [(Path(problem.where).name, problem.line) for problem in problems] == [
        ("a.jsonl", 1),
        ("a.jsonl", 2),
        ("b.jsonl", 1),
        ("nowhere.jsonl", None),
    ]


def test_replies_stand_beside_the_dialogues_that_have_them(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"turns": ["a"], "replies": ["b", "c"]}\n{"turns": ["d", "e"]}\n')
    assert read_dialogues([path]) == [(["a"], ["b", "c"]), (["d", "e"], [])]
    path.write_text('{"turns": ["a"], "replies": 3}\n')
    with pytest.raises(DataError, match="replies"):
        read_dialogues([path])
