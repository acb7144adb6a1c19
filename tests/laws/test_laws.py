"""The laws that every registered metric obeys, whoever wrote it.

A new metric is tested here before its author writes a test.
"""

from __future__ import annotations

import pickle
from collections.abc import Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core.columns import Batch, RaggedColumn, TextColumn
from dialeval.core.errors import NeedError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.needs import Need
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry
from dialeval.text.vocabulary import Vocabulary
from laws.worlds import Row, batch, columns, worlds

METRICS = [registry().parse(name) for name in registry().presets]
every_metric = pytest.mark.parametrize("metric", METRICS, ids=str)
AnyMetric = Metric[Any]


def finished(metric: AnyMetric, state: Any) -> str:
    """The results of a state, printed in full: equal strings are equal to the last digit."""
    return repr({key: estimate.with_confidence(1.97) for key, estimate in metric.finish(state).items()})


def scored(metric: AnyMetric, world: list[Row], vocabulary: Vocabulary | None = None) -> tuple[Any, Mapping[str, Any]]:
    partial = metric.partial(batch(world, vocabulary).only(metric.needs))
    return partial.state, partial.items


@every_metric
@given(world=worlds, cuts=st.lists(st.integers(0, 12), max_size=3), own=st.booleans())
@settings(max_examples=30)
def test_cutting_rows_into_batches_changes_nothing(
    metric: AnyMetric, world: list[Row], cuts: list[int], own: bool
) -> None:
    vocabulary = Vocabulary()
    whole, items = scored(metric, world)
    edges = [0, *sorted(min(cut, len(world)) for cut in cuts), len(world)]
    state = metric.empty()
    parts = []
    for start, stop in pairwise(edges):
        part, values = scored(metric, world[start:stop], None if own else vocabulary)
        state = metric.merge(state, part)
        parts.append(values)
    assert finished(metric, state) == finished(metric, whole)
    if metric.level is Level.TURN:
        for key, column in items.items():
            np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), column)


@every_metric
@given(world=worlds, random=st.randoms(use_true_random=False))
@settings(max_examples=30)
def test_order_changes_nothing(metric: AnyMetric, world: list[Row], random: Any) -> None:
    order = list(range(len(world)))
    random.shuffle(order)
    whole, items = scored(metric, world)
    shuffled, moved = scored(metric, [world[index] for index in order])
    assert finished(metric, shuffled) == finished(metric, whole)
    for key, column in items.items():
        np.testing.assert_array_equal(moved[key], column[order])


@every_metric
@given(a=worlds, b=worlds, c=worlds)
@settings(max_examples=30)
def test_merging_is_associative_and_commutative(metric: AnyMetric, a: list[Row], b: list[Row], c: list[Row]) -> None:
    x, y, z = (scored(metric, part)[0] for part in (a, b, c))
    one = metric.merge(metric.merge(x, y), z)
    assert finished(metric, one) == finished(metric, metric.merge(x, metric.merge(y, z)))
    assert finished(metric, one) == finished(metric, metric.merge(z, metric.merge(y, x)))


@every_metric
@given(world=worlds)
@settings(max_examples=20)
def test_empty_is_the_identity(metric: AnyMetric, world: list[Row]) -> None:
    state, _ = scored(metric, world)
    assert finished(metric, metric.merge(metric.empty(), state)) == finished(metric, state)
    assert finished(metric, metric.merge(state, metric.empty())) == finished(metric, state)


@every_metric
@given(a=worlds, b=worlds)
@settings(max_examples=20)
def test_states_survive_a_process_boundary(metric: AnyMetric, a: list[Row], b: list[Row]) -> None:
    vocabulary = Vocabulary()
    x, y = scored(metric, a, vocabulary)[0], scored(metric, b, vocabulary)[0]
    sent = [pickle.loads(pickle.dumps(state)) for state in (x, y)]
    assert finished(metric, metric.merge(*sent)) == finished(metric, metric.merge(x, y))
    assert finished(metric, metric.merge(sent[0], y)) == finished(metric, metric.merge(x, y))
    assert pickle.loads(pickle.dumps(metric)) == metric


@every_metric
@given(a=worlds, b=worlds)
@settings(max_examples=20)
def test_inputs_and_states_are_left_as_they_were(metric: AnyMetric, a: list[Row], b: list[Row]) -> None:
    given_columns = columns(a)
    for column in given_columns.values():
        text = column.values if isinstance(column, RaggedColumn) else column
        for array in (text.data, text.starts, text.ends):
            array.flags.writeable = False
    here = Batch(len(a), given_columns, Vocabulary(), np.arange(len(a) + 1))
    left = metric.partial(here.only(metric.needs)).state
    right = scored(metric, b)[0]
    before = finished(metric, left), finished(metric, right)
    metric.merge(left, right)
    assert (finished(metric, left), finished(metric, right)) == before


@every_metric
@given(world=worlds)
@settings(max_examples=20)
def test_only_declared_needs_are_read(metric: AnyMetric, world: list[Row]) -> None:
    made = columns(world)
    declared = {need: column for need, column in made.items() if need in metric.needs}
    here = Batch(len(world), declared, Vocabulary(), np.arange(len(world) + 1))
    assert finished(metric, metric.partial(here).state) == finished(metric, scored(metric, world)[0])
    for need in metric.needs:
        with pytest.raises(NeedError):
            metric.partial(batch(world).only(metric.needs - {need}))


@every_metric
def test_names_and_signatures_read_back(metric: AnyMetric) -> None:
    assert registry().parse(str(metric)) == metric
    assert registry().select([metric.family]) or metric.family in registry().presets
    signature = metric.signature()
    assert Signature.parse(str(signature)) == signature
    assert signature.metric == metric.name
    for field in metric.setting_names():
        assert field in signature, "every setting stands in the signature"


@every_metric
def test_every_setting_changes_the_signature(metric: AnyMetric) -> None:
    others = {"n": 1, "per": "response", "tokeniser": "lower-words.1", "smooth": 1, "by": "sacre"}
    for field in metric.setting_names():
        if getattr(metric, field) == others[field]:
            continue
        try:
            changed = replace(metric, **{field: others[field]})
        except Exception:
            continue
        assert changed.signature().differences(metric.signature())
        assert registry().parse(str(changed)) == changed


@every_metric
def test_no_rows(metric: AnyMetric) -> None:
    state, items = scored(metric, [])
    assert all(len(column) == 0 for column in items.values())
    assert finished(metric, state) == finished(metric, metric.empty())
    for estimate in metric.finish(state).values():
        assert isinstance(estimate, Estimate)
        assert (estimate.rows, estimate.scored) == (0, 0)
        assert np.isnan(estimate.mean)


@every_metric
@pytest.mark.parametrize("response", ["", " \t ", "one", "one two", "word " * 2000])
def test_one_row(metric: AnyMetric, response: str) -> None:
    row = Row(response, ("one two three",), ("zero",))
    state, items = scored(metric, [row])
    for key, estimate in metric.finish(state).items():
        assert estimate.rows == 1
        assert np.isnan(estimate.mean) == (estimate.scored == 0), "missing is NaN, and only missing is"
        assert key not in items or len(items[key]) == 1


@every_metric
@given(world=worlds)
@settings(max_examples=20)
def test_items_line_up_and_scored_counts_them(metric: AnyMetric, world: list[Row]) -> None:
    state, items = scored(metric, world)
    for key, estimate in metric.finish(state).items():
        assert estimate.rows == len(world)
        assert estimate.scored == int((~np.isnan(items[key])).sum())
        assert items[key].dtype == np.float64


def test_the_world_holds_text_columns_and_lists() -> None:
    kinds = {type(column) for column in columns([Row("a", ("b",), ("c",))]).values()}
    assert kinds == {TextColumn, RaggedColumn}
    assert set(Need) == set(columns([]))
