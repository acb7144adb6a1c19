"""Facts of states are kept by digest, and never trusted."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Any

import orjson
import pytest

from dialeval.core.errors import DataError
from dialeval.data.task.state_facts import FOLDER, StateFacts, with_facts

STATES: dict[str, Any] = {"d1": [{}, {"inn": {"area": "hill", "day": "sunday"}}], "d2": [{"inn": {"area": "harbour"}}]}
FACTS = StateFacts({"d1": 2, "d2": 1}, [("inn", "area", "day"), ("inn", "area")])


class Parser:
    """Gives states, and counts how often it is asked."""

    def __init__(self, states: Any = STATES) -> None:
        self.asked = 0
        self.states = states

    def __call__(self) -> Any:
        self.asked += 1
        return self.states


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DIALEVAL_CACHE", str(tmp_path))
    return tmp_path / FOLDER / "abc.json"


def plain(facts: StateFacts) -> Any:
    return orjson.loads(orjson.dumps(facts._asdict()))


def test_states_are_parsed_once_and_then_only_when_one_is_asked_for(cache: Path) -> None:
    first = with_facts("abc", Parser())
    assert first.facts == FACTS
    assert orjson.loads(cache.read_bytes()) == plain(FACTS)
    parser = Parser()
    again = with_facts("abc", parser)
    assert (plain(again.facts), list(again), len(again), parser.asked) == (plain(FACTS), ["d1", "d2"], 2, 0)
    assert again["d2"] == STATES["d2"]
    assert dict(again) == dict(first) == STATES
    assert parser.asked == 1


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"{}", b'{"turns": {"d1": "2"}, "frames": []}', b'{"turns": {"d1": -1}, "frames": []}', b"\xff"],
)
def test_what_is_damaged_is_made_anew(cache: Path, content: bytes) -> None:
    with_facts("abc", Parser())
    cache.write_bytes(content)
    parser = Parser()
    assert with_facts("abc", parser).facts == FACTS
    assert parser.asked == 1
    assert orjson.loads(cache.read_bytes()) == plain(FACTS)


def test_a_pipe_in_the_place_of_the_file_is_not_opened(cache: Path) -> None:
    cache.parent.mkdir(parents=True)
    os.mkfifo(cache)
    assert with_facts("abc", Parser()).facts == FACTS


def test_what_was_changed_by_somebody_is_found_out_when_states_are_asked_for(cache: Path) -> None:
    with_facts("abc", Parser())
    cache.write_bytes(b'{"turns": {"d1": 2, "d2": 7}, "frames": []}')
    states = with_facts("abc", Parser())
    with pytest.raises(DataError, match="is not what the states have"):
        states["d2"]


def test_without_a_place_to_write_to_nothing_is_kept(cache: Path) -> None:
    cache.parent.parent.chmod(stat.S_IRUSR | stat.S_IXUSR)
    try:
        assert with_facts("abc", Parser()).facts == FACTS
        cache.parent.parent.chmod(stat.S_IRWXU)
        blocked = cache.parent
        if not blocked.exists():
            blocked.write_text("a file where the folder should be")
        assert with_facts("def", Parser()).facts == FACTS
    finally:
        cache.parent.parent.chmod(stat.S_IRWXU)


def test_an_unsound_file_leaves_nothing_behind(cache: Path) -> None:
    def unsound() -> Any:
        raise DataError([])

    with pytest.raises(DataError):
        with_facts("abc", unsound)
    assert not cache.exists()
