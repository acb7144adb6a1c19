"""The laws that every registered metric obeys, whoever wrote it.

A new metric is tested here before its author writes a test.
"""

from __future__ import annotations

import pickle
from dataclasses import fields, replace
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.columns import RaggedColumn
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry
from laws.worlds import Place, Row, columns, worlds

AnyMetric = Metric[Any]
METRICS: list[AnyMetric] = [registry().parse(name) for name in registry().presets]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=str)
few = settings(max_examples=20)


def finished(metric: AnyMetric, state: Any) -> str:
    """The results of a state, printed in full: equal strings are equal to the last digit."""
    return repr({key: estimate.with_confidence(1.97) for key, estimate in metric.finish(state).items()})


@every_metric
@given(world=worlds, cuts=st.lists(st.integers(0, 12), max_size=3), elsewhere=st.booleans())
@few
def test_cutting_rows_into_batches_changes_nothing(
    metric: AnyMetric, world: list[Row], cuts: list[int], elsewhere: bool
) -> None:
    place = Place(world)
    whole = place.scored(metric, world)
    edges = [0, *sorted(min(cut, len(world)) for cut in cuts), len(world)]
    state = metric.empty()
    parts = []
    for start, stop in pairwise(edges):
        part = (Place(world) if elsewhere else place).scored(metric, world[start:stop])
        state = metric.merge(state, part.state)
        parts.append(part.items)
    assert finished(metric, state) == finished(metric, whole.state)
    if metric.level is Level.TURN:
        for key, column in whole.items.items():
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), column)


@every_metric
@given(world=worlds, random=st.randoms(use_true_random=False))
@few
def test_order_changes_nothing(metric: AnyMetric, world: list[Row], random: Any) -> None:
    order = list(range(len(world)))
    random.shuffle(order)
    mixed = [world[index] for index in order]
    whole, shuffled = Place(world).scored(metric, world), Place(mixed).scored(metric, mixed)
    assert finished(metric, shuffled.state) == finished(metric, whole.state)
    for key, column in whole.items.items():
        np.testing.assert_array_equal(shuffled.items[key], column[order])


@every_metric
@given(a=worlds, b=worlds, c=worlds)
@few
def test_merging_is_associative_and_commutative(metric: AnyMetric, a: list[Row], b: list[Row], c: list[Row]) -> None:
    place = Place([*a, *b, *c])
    x, y, z = (place.scored(metric, part).state for part in (a, b, c))
    one = metric.merge(metric.merge(x, y), z)
    assert finished(metric, one) == finished(metric, metric.merge(x, metric.merge(y, z)))
    assert finished(metric, one) == finished(metric, metric.merge(z, metric.merge(y, x)))


@every_metric
@given(world=worlds)
@few
def test_empty_is_the_identity(metric: AnyMetric, world: list[Row]) -> None:
    state = Place(world).scored(metric, world).state
    assert finished(metric, metric.merge(metric.empty(), state)) == finished(metric, state)
    assert finished(metric, metric.merge(state, metric.empty())) == finished(metric, state)


@every_metric
@given(a=worlds, b=worlds)
@few
def test_states_survive_a_process_boundary(metric: AnyMetric, a: list[Row], b: list[Row]) -> None:
    place = Place([*a, *b])
    x, y = place.scored(metric, a).state, place.scored(metric, b).state
    sent = [pickle.loads(pickle.dumps(state)) for state in (x, y)]
    assert finished(metric, metric.merge(*sent)) == finished(metric, metric.merge(x, y))
    assert finished(metric, metric.merge(sent[0], y)) == finished(metric, metric.merge(x, y))
    assert pickle.loads(pickle.dumps(metric)) == metric


@every_metric
@given(a=worlds, b=worlds)
@few
def test_facts_do_not_depend_on_batches_or_order(metric: AnyMetric, a: list[Row], b: list[Row]) -> None:
    place = Place([*a, *b])
    expected = place.scored(metric, [*a, *b]).items
    for fact in metric.facts:
        x, y = (place.gathered(fact, metric, part) for part in (a, b))
        for state in (fact.merge(x, y), fact.merge(y, fact.merge(x, fact.empty()))):
            sent = pickle.loads(pickle.dumps(state))
            for merged in (state, fact.merge(place.gathered(fact, metric, []), sent)):
                ready = replace(place.ready(metric, [*a, *b]), facts={fact: fact.finish(merged)}, kept={})
                if merged is state:
                    for key, column in metric.partial(ready).items.items():
                        np.testing.assert_array_equal(column, expected[key])


@every_metric
@given(a=worlds, b=worlds)
@few
def test_inputs_and_states_are_left_as_they_were(metric: AnyMetric, a: list[Row], b: list[Row]) -> None:
    place = Place([*a, *b])
    ready = place.ready(metric, a)
    for column in ready.columns.values():
        text = column.values if isinstance(column, RaggedColumn) else column
        for array in (text.data, text.starts, text.ends):
            array.flags.writeable = False
    left, right = metric.partial(ready).state, place.scored(metric, b).state
    before = finished(metric, left), finished(metric, right)
    metric.merge(left, right)
    assert (finished(metric, left), finished(metric, right)) == before


@every_metric
@given(world=worlds)
@few
def test_only_declared_needs_are_read(metric: AnyMetric, world: list[Row]) -> None:
    place = Place(world)
    ready = place.ready(metric, world)
    declared = metric.needs | metric.wants
    bare = replace(
        ready,
        columns={need: column for need, column in ready.columns.items() if need in declared},
        resources={need: resource for need, resource in ready.resources.items() if need in declared},
        kept={},
    )
    assert finished(metric, metric.partial(bare).state) == finished(metric, place.scored(metric, world).state)
    for need in metric.needs:
        without = replace(ready, kept={}).only(declared - {need})
        with pytest.raises(NeedError):
            [fact.gather(without) for fact in metric.facts], metric.partial(without)


@every_metric
def test_names_and_signatures_read_back(metric: AnyMetric) -> None:
    assert registry().parse(str(metric)) == metric
    assert metric in registry().select([metric.family])
    signature = metric.signature()
    assert Signature.parse(str(signature)) == signature
    assert signature.metric == metric.name
    for setting in metric.setting_names():
        assert setting in signature, "every setting stands in the signature"


def other_values(metric: AnyMetric, name: str) -> list[Any]:
    """Some other values that a setting might take."""
    hint, value = get_type_hints(type(metric))[name], getattr(metric, name)
    if get_origin(hint) is Literal:
        return [choice for choice in get_args(hint) if choice != value]
    others: dict[str, list[Any]] = {"n": [1, 2], "smooth": [1, 7], "tokeniser": ["lower-words.1"]}
    return [other for other in others[name] if other != value]


@every_metric
def test_every_setting_changes_the_signature(metric: AnyMetric) -> None:
    for field in fields(metric):
        tried = 0
        for value in other_values(metric, field.name):
            try:
                changed = replace(metric, **{field.name: value})
            except SettingError:
                continue
            tried += 1
            assert changed.signature().differences(metric.signature())
            assert registry().parse(str(changed)) == changed
        assert tried, f"no other value of {field.name} could be tried"


@every_metric
def test_no_rows(metric: AnyMetric) -> None:
    partial = Place().scored(metric, [])
    assert all(len(column) == 0 for column in partial.items.values())
    assert finished(metric, partial.state) == finished(metric, metric.empty())
    for estimate in metric.finish(partial.state).values():
        assert isinstance(estimate, Estimate)
        assert (estimate.rows, estimate.scored) == (0, 0)
        assert np.isnan(estimate.mean)


@every_metric
@pytest.mark.parametrize("response", ["", " \t ", "cat", "the cat", "word " * 2000])
def test_one_row(metric: AnyMetric, response: str) -> None:
    world = [Row(response, ("the cat sat",), ("mat",))]
    partial = Place(world).scored(metric, world)
    for key, estimate in metric.finish(partial.state).items():
        assert estimate.rows == 1
        assert np.isnan(estimate.mean) == (estimate.scored == 0), "missing is NaN, and only missing is"
        assert key not in partial.items or len(partial.items[key]) == 1


@every_metric
@given(world=worlds)
@few
def test_items_line_up_and_scored_counts_them(metric: AnyMetric, world: list[Row]) -> None:
    partial = Place(world).scored(metric, world)
    for key, estimate in metric.finish(partial.state).items():
        assert estimate.rows == len(world)
        assert estimate.scored == int((~np.isnan(partial.items[key])).sum())
        assert partial.items[key].dtype == np.float64


@every_metric
def test_something_is_scored(metric: AnyMetric) -> None:
    """The world is rich enough that no law holds for want of a score."""
    first = Row("the cat sat on the mat", ("the cat sat on a mat",), ("the cat",))
    world = [first, Row("cat sat", ("the cat sat",), ("the",))]
    for estimate in metric.finish(Place(world).scored(metric, world).state).values():
        assert estimate.scored == 2


def test_the_world_meets_every_need() -> None:
    assert set(columns([])) | set(Place().resources) == set().union(*(metric.needs for metric in METRICS)) | {
        need for metric in METRICS for need in metric.wants
    }
