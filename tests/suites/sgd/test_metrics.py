"""Metrics of frames against a plain version of their definition, and the figures that the original publishes."""

from __future__ import annotations

from math import nan
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dialeval.core.batch import Batch
from dialeval.core.columns import ObjectColumn
from dialeval.core.inputs import Input
from dialeval.metrics.registry import registry
from dialeval.suites import sgd as feature
from dialeval.suites.sgd.data import read_schema
from dialeval.text.vocabulary import Vocabulary

SCHEMA: list[dict[str, Any]] = [
    {
        "service_name": "Inns_1",
        "slots": [
            {"name": "name", "is_categorical": False},
            {"name": "area", "is_categorical": True},
            {"name": "day", "is_categorical": False},
            {"name": "garden", "is_categorical": True},
        ],
    },
    {"service_name": "Ferries_1", "slots": [{"name": "landing", "is_categorical": False}]},
    {"service_name": "Weather_1", "slots": []},
]
WORDS = ["Gull Point", "gull point", "long stairs landing", "gull point landing", "True", "six", ""]
slots = st.sampled_from(["name", "area", "day", "garden", "landing", "unknown"])
spans = st.lists(st.tuples(slots, st.sampled_from(WORDS[:3])).map(list), max_size=4)
states = st.fixed_dictionaries(
    {
        "active_intent": st.sampled_from(["NONE", "FindInn"]),
        "requested_slots": st.lists(slots, max_size=4),
        "slot_values": st.dictionaries(slots, st.lists(st.sampled_from(WORDS), min_size=1, max_size=3)),
    }
)
services = st.sampled_from([service["service_name"] for service in SCHEMA])
true_frames = st.builds(
    lambda state, spans, service: {**state, "spans": spans, "service": service}, states, spans, services
)


def values(name: str, given: list[Any], true: list[Any], spans: list[Any] | None = None) -> list[float]:
    """The values of frames under a metric."""
    metric: Any = registry().parse(name)
    columns: dict[Input, list[Any]] = {feature.FRAMES: given, feature.TRUE_FRAMES: true, feature.SPANS: spans or given}
    batch = Batch(
        len(true),
        {need: ObjectColumn(column) for need, column in columns.items()},
        Vocabulary(),
        np.arange(len(true) + 1),
        {feature.SCHEMA: read_schema(SCHEMA)},
    )
    found: list[float] = metric.score(batch.restrict_to(metric.needs)).tolist()
    return found


# The definition, spelt out. The likeness of values is an argument: tests/text/test_similarity.py holds it.


def plain_slots(given: Any, true: Any, like: Any) -> list[tuple[float, bool, bool]]:
    """Of each slot of the service: its score, whether it is true, whether it is categorical."""
    [service] = [service for service in SCHEMA if service["service_name"] == true["service"]]
    rows = []
    for slot in service["slots"]:
        here = given["slot_values"].get(slot["name"], [])
        there = true["slot_values"].get(slot["name"], [])
        if here and there:
            if slot["is_categorical"]:
                score = 1.0 if here[0] == there[0] else 0.0
            else:
                score = 0.0
                for value in there:
                    if like(value, here[0]) > score:
                        score = like(value, here[0])
        elif here or there:
            score = 0.0
        else:
            score = 1.0
        rows.append((score, bool(there), slot["is_categorical"]))
    return rows


def plain_goal(rows: list[tuple[float, bool, bool]], of: str) -> float:
    if of == "average":
        counted = [score for score, active, _ in rows if active]
        return float(np.mean(counted)) if counted else nan
    return float(np.prod([score for score, _, _ in rows])) if rows else nan


def plain_f1(given: list[Any], true: list[Any]) -> tuple[float, float, float]:
    """F1, precision and recall, each true thing being found at most once."""
    left, right = list(true), 0
    for thing in given:
        if thing in left:
            left.remove(thing)
            right += 1
    precision = right / len(given) if given else 1.0
    recall = right / len(true) if true else 1.0
    both = precision + recall
    return (2 * precision * recall / both if both else 0.0), precision, recall


def equal(one: str, other: str) -> float:
    return 1.0 if one == other else 0.0


KINDS = {"goal": (True, False), "cat": (True,), "noncat": (False,)}


@given(st.lists(st.tuples(st.none() | states, true_frames), max_size=6), st.booleans(), st.booleans())
def test_goal_accuracy_is_that_of_the_definition(pairs: list[tuple[Any, Any]], strict: bool, exact: bool) -> None:
    from dialeval.text.similarity import token_sort_ratio

    like = equal if exact else lambda true, given: token_sort_ratio(true, given) / 100
    given, true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    settings = f"match={'exact' if exact else 'blocks'},missing={'failed' if strict else 'ignored'}"
    for of in ("joint", "average"):
        for slots_of, kinds in (("all", KINDS["goal"]), ("cat", KINDS["cat"]), ("noncat", KINDS["noncat"])):
            expected = [
                (0.0 if strict else nan)
                if frame is None
                else plain_goal([row for row in plain_slots(frame, reference, like) if row[2] in kinds], of)
                for frame, reference in pairs
            ]
            found = values(f"goal-accuracy(of={of},slots={slots_of},{settings})", given, true)
            assert found == pytest.approx(expected, abs=1e-12, nan_ok=True)


@given(st.lists(st.tuples(states, true_frames), max_size=6))
def test_intents_and_requests_are_those_of_the_definition(pairs: list[tuple[Any, Any]]) -> None:
    given, true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    intents = [equal(one["active_intent"], other["active_intent"]) for one, other in pairs]
    assert values("active-intent-accuracy", given, true) == intents
    requests = [plain_f1(one["requested_slots"], other["requested_slots"]) for one, other in pairs]
    for number, of in enumerate(("f1", "precision", "recall")):
        found = values(f"requested-slots-{of}", given, true)
        assert found == pytest.approx([each[number] for each in requests], abs=1e-12)


@given(st.lists(st.tuples(st.none() | spans, true_frames), max_size=6))
def test_slot_tagging_is_that_of_the_definition(pairs: list[tuple[Any, Any]]) -> None:
    given, true = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
    free = {"Inns_1": ["name", "day"], "Ferries_1": ["landing"], "Weather_1": []}
    expected = [
        (nan,) * 3
        if found is None
        else plain_f1(*([span for span in each if span[0] in free[reference["service"]]] for each in (found, other)))
        for found, reference in pairs
        for other in [reference["spans"]]
    ]
    for number, of in enumerate(("f1", "precision", "recall")):
        found_values = values(f"slot-tagging-{of}", [None] * len(true), true, given)
        assert found_values == pytest.approx([each[number] for each in expected], abs=1e-12, nan_ok=True)


def test_the_figures_that_the_original_publishes_for_one_frame() -> None:
    """Four active slots, of which one free value is short of a word and the categorical one is not predicted."""
    free = [{"name": name, "is_categorical": False} for name in ("city", "restaurant_name", "cuisine")]
    schema = [{"service_name": "A_1", "slots": [*free, {"name": "price_range", "is_categorical": True}]}]
    shared = {"city": ["Palo Alto"], "cuisine": ["American"]}
    true = {
        "service": "A_1",
        "spans": [["city", "Palo Alto"], ["restaurant_name", "Bird Dog"]],
        "active_intent": "Reserve",
        "requested_slots": ["phone_number"],
        "slot_values": {**shared, "price_range": ["moderate"], "restaurant_name": ["Bird Dog"]},
    }
    given = {
        "active_intent": "Search",
        "requested_slots": ["phone_number", "street_address"],
        "slot_values": {**shared, "restaurant_name": ["Bird"]},
    }
    tags = [["city", "Palo Alto"], ["restaurant_name", "Bird"]]
    columns: dict[Input, list[Any]] = {feature.FRAMES: [given], feature.TRUE_FRAMES: [true], feature.SPANS: [tags]}
    batch = Batch(
        1,
        {need: ObjectColumn(column) for need, column in columns.items()},
        Vocabulary(),
        np.arange(2),
        {feature.SCHEMA: read_schema(schema)},
    )
    expected = {
        "active-intent-accuracy": 0.0,
        "slot-tagging-f1": 0.5,
        "slot-tagging-precision": 0.5,
        "slot-tagging-recall": 0.5,
        "requested-slots-f1": 2 / 3,
        "requested-slots-precision": 0.5,
        "requested-slots-recall": 1.0,
        "joint-goal-accuracy": 0.0,
        "joint-cat-accuracy": 0.0,
        "joint-noncat-accuracy": 0.67,
        "average-goal-accuracy": 0.6675,
        "average-cat-accuracy": 0.0,
        "average-noncat-accuracy": 0.89,
    }
    for name, value in expected.items():
        metric: Any = registry().parse(name)
        assert metric.score(batch.restrict_to(metric.needs)).tolist() == pytest.approx([value], abs=1e-12), name


def test_the_first_value_counts_and_the_best_true_one() -> None:
    true: dict[str, Any] = {"service": "Ferries_1", "spans": [], "active_intent": "NONE", "requested_slots": []}
    true |= {"slot_values": {"landing": ["six", "Gull Point"]}}
    given = {"active_intent": "NONE", "requested_slots": [], "slot_values": {"landing": ["gull point", "x"]}}
    assert values("joint-goal-accuracy", [given], [true]) == [1.0]
    assert values("goal-accuracy(match=exact)", [given], [true]) == [0.0]
    given["slot_values"] = {"landing": ["x", "gull point"]}
    assert values("joint-goal-accuracy", [given], [true]) < [1.0]
    assert values("requested-slots-f1", [given], [true]) == [1.0]  # nothing is asked for, and nothing predicted


@pytest.mark.parametrize(("match", "value"), [("blocks", 0.54), ("edits", 0.59), ("exact", 0.0)])
def test_how_values_are_compared(match: str, value: float) -> None:
    true: dict[str, Any] = {"service": "Ferries_1", "spans": [], "active_intent": "", "requested_slots": []}
    true |= {"slot_values": {"landing": ["gull point landing"]}}
    given = {"active_intent": "", "requested_slots": [], "slot_values": {"landing": ["long stairs landing"]}}
    assert values(f"goal-accuracy(match={match})", [given], [true]) == [value]
