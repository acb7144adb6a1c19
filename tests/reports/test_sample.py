"""The shipped sample: complete, aligned, and tokenized as it says."""

from __future__ import annotations

import json
import re

import pytest

from dialeval.sample_data import folder

ALIGNED = ["contexts.txt", "references.txt", *(f"responses/{name}.txt" for name in ("careful", "chatty", "generic"))]


def lines(name: str) -> list[str]:
    return (folder() / name).read_text(encoding="utf-8").splitlines()


def test_files_are_aligned() -> None:
    assert {len(lines(name)) for name in ALIGNED} == {60}


@pytest.mark.parametrize("name", [*ALIGNED, "train.txt"])
def test_text_is_lower_case_with_blanks_around_punctuation(name: str) -> None:
    for line in lines(name):
        assert line == " ".join(line.lower().split())
        assert not re.search(r"\w[.,?!]|[.,?!]\w", line)


def test_systems_differ_as_their_names_say() -> None:
    careful, chatty, generic = (lines(name) for name in ALIGNED[2:])
    references = lines("references.txt")
    assert not [line for line, reference in zip(careful, references, strict=True) if line == reference]
    assert len(set(careful)) == len(set(chatty)) == 60
    assert len(set(generic)) < 20
    assert sum(map(len, chatty)) > 1.5 * sum(map(len, careful)) > 3 * sum(map(len, generic))


def test_chats_have_messages() -> None:
    chats = [json.loads(line) for line in lines("chats.jsonl")]
    assert len(chats) == 5
    for chat in chats:
        assert {message["role"] for message in chat["messages"]} <= {"system", "user", "assistant"}
        assert chat["messages"][-1]["role"] == "assistant"
