"""The world of task dialogues: turns of an invented town with a few venues, goals, true states and references."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from hypothesis import strategies as st

from dialeval.core.columns import ColumnData, ObjectColumn
from dialeval.core.inputs import Input
from dialeval.suites import multiwoz as feature
from dialeval.suites.multiwoz.data import Goals, ReferenceSets, TrueStates
from dialeval.suites.multiwoz.venues import Domain, Ontology, Spelling, Venues, VenueTable
from dialeval.text.vocabulary import Vocabulary
from laws.worlds import World

ONTOLOGY = Ontology(
    name="laws",
    words={"name": "NAME", "phone": "PHONE", "code": "CODE"},
    requested=("PHONE", "CODE"),
    when_booked=frozenset({"CODE"}),
    domains={"inn": Domain("inn", "inns.json", fuzzy=("name",), at_most=("price",)), "cart": Domain("cart")},
    digest="0123456789ab",
    spellings={"name": Spelling("name")},
    booking_prefix="book",
)
INNS = [
    {"id": "1", "name": "willow gate", "price": "3", "area": "hill"},
    {"id": "2", "name": "seven lamps", "price": "5", "area": "harbour"},
]
GOALS: dict[str, dict[str, Any]] = {
    "d1": {"inn": {"informable": {"area": "hill"}, "requestable": ["PHONE"], "booking": {"people": "2"}}},
    "d2": {
        "inn": {"informable": {"price": "4"}, "requestable": ["CODE"], "booking": {"people": "2"}},
        "cart": {"informable": {}, "requestable": [], "booking": {"people": "2"}},
    },
    "d3": {"cart": {"informable": {}, "requestable": ["PHONE"], "booking": {"people": "2"}}},
}
STATES: list[dict[str, dict[str, str]]] = [
    {},
    {"inn": {"area": "hill"}},
    {"inn": {"area": "harbour", "bookday": "sunday"}, "cart": {"leave": "10:00"}},
    {"inn": {"name": "Willow Gate", "day": "sunday"}},
    {"inn": {}, "cart": {"leave": ""}},
]
TEXTS = [
    "[name] is nice. call [phone].",
    "it is booked, the code is [code].",
    "there are [choice] inns, don't you think?",
    "",
    " \t",
    "10:00 - yes, [name]-s",
]


@dataclass(frozen=True)
class Row:
    """One dialogue of one turn; a response of None is a turn that the system lacks."""

    dialogue: str
    response: str | None
    state: int | None = 1
    domains: tuple[str, ...] | None = ("inn",)
    position: int = 0
    listed: bool = False
    """Whether the system gives the dialogue, if without its turn."""


def columns(rows: Sequence[Row]) -> dict[Input, ColumnData]:
    objects: list[dict[str, Any]] = [
        {
            "dialogue": row.dialogue,
            "listed": row.listed or row.response is not None,
            "turn": 0,
            "position": None if row.response is None else row.position,
            "response": row.response,
            "state": None if row.state is None or row.response is None else STATES[row.state],
            "active_domains": None if row.domains is None or row.response is None else list(row.domains),
        }
        for row in rows
    ]
    return {feature.TASK_TURNS: ObjectColumn(objects), feature.STATES: ObjectColumn(objects)}


def resources(_vocabulary: Vocabulary) -> dict[Input, Any]:
    venues = Venues({"inn": VenueTable(ONTOLOGY.domains["inn"], ONTOLOGY, INNS)}, "abcdefabcdef")
    booked: dict[str, list[list[str]]] = {"d1": [["inn"]], "d2": [["inn"]], "d3": [[]]}
    true: dict[str, list[dict[str, dict[str, str]]]] = {"d1": [STATES[1]], "d2": [STATES[2]], "d3": [STATES[0]]}
    texts = {"d1": ["NAME is lovely, call PHONE."], "d2": ["the code is CODE, don't lose it."], "d3": [""]}
    return {
        feature.GOALS: Goals(GOALS, booked, "aaaaaaaaaaaa"),
        feature.TRUE_STATES: TrueStates(true, "bbbbbbbbbbbb"),
        feature.REFERENCE_SETS: ReferenceSets({"mwz22": texts}, "cccccccccccc"),
        feature.ONTOLOGY: ONTOLOGY,
        feature.VENUES: venues,
    }


dialogues = st.sampled_from(sorted(GOALS))

WORLD = World(
    rows=st.builds(
        Row,
        dialogues,
        st.one_of(st.none(), st.sampled_from(TEXTS), st.text(max_size=20)),
        st.one_of(st.none(), st.integers(0, len(STATES) - 1)),
        st.one_of(st.none(), st.lists(st.sampled_from(["inn", "cart"]), max_size=2).map(tuple)),
        st.integers(0, 99),
        st.booleans(),
    ),
    columns=columns,
    resources=resources,
    lone={
        "missing": Row("d1", None),
        "no turns": Row("d1", None, listed=True),
        "empty": Row("d1", ""),
        "blank": Row("d3", " \t"),
        "no state": Row("d2", "[name]", None),
        "no domains": Row("d2", "[name]", 2, None),
        "no active domain": Row("d2", "[name]", 2, ()),
        "empty state": Row("d2", "[name]", 0),
        "2,000 words": Row("d1", "word " * 2000),
    },
    rich=[Row("d1", "[name] is nice, call [phone]."), Row("d2", "the code is [code].", 2)],
    in_order=lambda rows: [replace(row, position=place) for place, row in enumerate(rows)],
)
