"""Dialogues of the challenge as chats: who said what, and what cannot be read."""

from __future__ import annotations

from typing import Any

import pytest

from dialeval import sample
from dialeval.core.errors import DataError
from dialeval.data.breakdown.talks import read_chats


def turn(index: int, speaker: str, text: str) -> dict[str, Any]:
    return {"turn-index": index, "speaker": speaker, "utterance": text, "annotations": []}


def test_turns_are_messages() -> None:
    [chat] = read_chats(
        [{"dialogue-id": "d", "turns": [turn(0, "S", "hi"), turn(1, "U", "you?"), turn(2, "S", "yes")]}]
    )
    assert chat["dialog_id"] == "d"
    assert [(each["role"], each["content"]) for each in chat["messages"]] == [
        ("assistant", "hi"),
        ("user", "you?"),
        ("assistant", "yes"),
    ]


def test_a_folder_is_read() -> None:
    chats = read_chats(sample.folder() / "breakdown" / "data")
    assert len(chats) == 4
    assert all(chat["messages"] for chat in chats)


def test_every_fault_at_once() -> None:
    with pytest.raises(DataError) as caught:
        read_chats(
            [{"dialogue-id": "d", "turns": [turn(3, "S", "hi")]}, {"turns": []}, {"dialogue-id": 1, "turns": []}]
        )
    first, second, third = (fault.what for fault in caught.value.faults)
    assert "turn 3 is the 1. of the list" in first
    assert "dialogue-id" in second
    assert "is no dialogue" in third
