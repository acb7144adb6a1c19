from __future__ import annotations

from pathlib import Path

import pytest
from tools.judge_training.pairs import read_dialogues

from dialeval.core.errors import DataError


def test_replies_stand_beside_the_dialogues_that_have_them(tmp_path: Path) -> None:
    path = tmp_path / "d.jsonl"
    path.write_text('{"turns": ["a"], "replies": ["b", "c"]}\n{"turns": ["d", "e"]}\n')
    assert read_dialogues([path]) == [(["a"], ["b", "c"]), (["d", "e"], [])]
    path.write_text('{"turns": ["a"], "replies": 3}\n')
    with pytest.raises(DataError, match="replies"):
        read_dialogues([path])
