"""What is known of a file of true states from earlier, so that most evaluations need not parse it.

The states are the largest file of a task, and only systems that give no states of their own look at them. What every
evaluation asks for is small: the number of turns of each dialogue, and which slots occur. A file that was found sound
once leaves both behind in the cache, under the digest of its bytes. The states themselves are parsed when one is asked
for, and checked then as if for the first time: what lies in the cache may have been changed by anybody.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, NamedTuple

from dialeval.core.cache_root import cache_root
from dialeval.core.errors import DataError, DialevalError, Fault
from dialeval.core.files import write_bytes
from dialeval.core.gate import size_of
from dialeval.data.task.shapes import Shape, shape_faults

FOLDER = "task-states.1"
"""Inside of the cache folder; another number for another content."""

States = Sequence[Mapping[str, Mapping[str, str]]]
"""The states of a dialogue, turn by turn."""

_NAME = Shape((str,), "a text", "")
_FRAME = Shape((list,), "a list of texts", "", _NAME)
_COUNT = Shape((int,), "a whole number", "")
_FACTS = Shape(
    (dict,),
    "an object",
    "",
    {
        "turns": Shape((dict,), "an object of dialogue id -> number of turns", "", _COUNT, required=True),
        "frames": Shape((list,), "a list of frames", "", _FRAME, required=True),
    },
)


class StateFacts(NamedTuple):
    """What an evaluation asks of true states even where it needs none of them."""

    turns: Mapping[str, int]
    """The number of turns of each dialogue."""
    frames: Sequence[Sequence[str]]
    """A domain and the slots that it has in some state; each different one once."""

    @classmethod
    def of(cls, states: Mapping[str, States]) -> StateFacts:
        """The facts of states."""
        given = (state for turns in states.values() for state in turns)
        frames = dict.fromkeys((domain, *slots) for state in given for domain, slots in state.items())
        return cls({dialogue: len(turns) for dialogue, turns in states.items()}, list(frames))


class KnownStates(Mapping[str, States]):
    """True states of which the facts are known; `parse` gives the states, or raises what is wrong with them."""

    def __init__(self, facts: StateFacts, parse: Callable[[], Mapping[str, States]], place: Path) -> None:
        self.facts = facts
        self._parse = parse
        self._place = place

    @cached_property
    def _states(self) -> Mapping[str, States]:
        states = self._parse()
        if {dialogue: len(turns) for dialogue, turns in states.items()} != dict(self.facts.turns):
            raise DataError(Fault(str(self._place), None, "is not what the states have", "delete it"))
        return states

    def __getitem__(self, dialogue: str) -> States:
        return self._states[dialogue]

    def __iter__(self) -> Iterator[str]:
        return iter(self.facts.turns)

    def __len__(self) -> int:
        return len(self.facts.turns)


def with_facts(digest: str, parse: Callable[[], Mapping[str, States]]) -> KnownStates:
    """The states of a file with a digest; they are parsed at once where nothing is known of them yet."""
    place = _place(digest)
    facts = None if place is None else _read(place)
    if facts is not None and place is not None:
        return KnownStates(facts, parse, place)
    states = parse()
    facts = StateFacts.of(states)
    if place is not None:
        _write(place, facts)
    return KnownStates(facts, partial(dict, states), place or Path())


def _place(digest: str) -> Path | None:
    try:
        return cache_root() / FOLDER / f"{digest}.json"
    except DialevalError:  # there is no home folder
        return None


def _read(place: Path) -> StateFacts | None:
    import orjson

    try:
        size_of(place, "delete it")  # a plain file, and no pipe
        document: Any = orjson.loads(place.read_bytes())
    except (OSError, ValueError, DialevalError):
        return None
    if shape_faults(document, _FACTS, "") or min(document["turns"].values(), default=0) < 0:
        return None
    return StateFacts(document["turns"], document["frames"])


def _write(place: Path, facts: StateFacts) -> None:
    """Keep facts where that is possible; else they are made anew each time."""
    import orjson

    try:
        if place.exists() and not place.is_file():  # writing to a pipe would block
            return
        place.parent.mkdir(parents=True, exist_ok=True)
        write_bytes(place, orjson.dumps(facts._asdict()))
    except (OSError, DialevalError):
        return
