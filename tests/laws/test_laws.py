"""The laws that every registered metric obeys, whoever wrote it.

A new metric is tested here before its author writes a test.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from itertools import pairwise
from typing import Any, Literal, get_args, get_origin, get_type_hints

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from conftest import QUICK
from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints, offsets_of
from dialeval.core.columns import ObjectColumn, RaggedColumn, SharedColumn
from dialeval.core.contributions import ClusteredRows, Resamples, join_batches
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Estimate, Level, Metric
from dialeval.core.inputs import Input
from dialeval.core.result import Result
from dialeval.core.signature import Signature
from dialeval.engine.evaluate import Tally
from dialeval.engine.folding import Options, run_sources
from dialeval.engine.plan import make_planner
from dialeval.engine.resources import Resources
from dialeval.io.rows import Rows
from dialeval.io.sources import wrap_systems
from dialeval.metrics.registry import registry
from dialeval.suites.multiwoz import GOALS, STATES, TASK_TURNS
from dialeval.suites.sgd import FRAMES, SPANS
from dialeval.text.vocabulary import Vocabulary
from laws import breakdown, calls, conversations, coverage, frames, log_columns, responses, task, trials
from laws.worlds import Place, World

WORLDS: dict[Input, World] = {
    inputs.RESPONSE: responses.WORLD,
    inputs.CONTEXT: conversations.WORLD,
    inputs.HYPOTHESES: coverage.WORLD,
    inputs.LABELS: breakdown.WORLD,
    TASK_TURNS: task.WORLD,
    inputs.TRIALS: trials.WORLD,
    inputs.CALLS: calls.WORLD,
    inputs.TURN_LABELS: log_columns.WORLD,
    inputs.LATENCY: log_columns.WORLD,
    inputs.OUTCOME: log_columns.WORLD,
    inputs.SCORES: log_columns.WORLD,
    STATES: task.WORLD,
    FRAMES: frames.WORLD,
    SPANS: frames.WORLD,
}
"""By what is measured."""

AnyMetric = Metric[Any]
NAMED: list[AnyMetric] = [registry().parse(name) for name in registry().presets]
AGGREGATES = ("length@dialogue-min", "judge@dialogue-max", "rouge-l@dialogue-last")
"""Metrics over dialogues, which are no family: their settings are those of the metric that they condense."""
LABELS = ("label:breakdown=X", "label:polite(annotators=majority)", "label:error=a(better=lower)@dialogue-mean")
"""Rates of labels, which are called by what rows hold."""
SCORES = ("score:stars", "score:stars(range=-9:9)", "score:stars@dialogue-max")
METRICS: list[AnyMetric] = [*NAMED, *map(registry().parse, (*AGGREGATES, *LABELS, *SCORES))]
if QUICK:  # one preset of each metric
    METRICS = list({type(metric): metric for metric in METRICS}.values())
named_metric = pytest.mark.parametrize("metric", NAMED, ids=str)
every_metric = pytest.mark.parametrize("metric", METRICS, ids=str)
_PER = {"corpus": "response", "response": "corpus"}
TURNED: list[AnyMetric] = [
    replace(metric, per=_PER[per])  # type: ignore[call-arg]
    for metric in METRICS
    if (per := getattr(metric, "per", None)) in _PER
]
"""Those that are of all rows together or a mean over rows, as one likes, each the other way."""
few = settings(max_examples=6)  # for each of more than a hundred metrics


def world_of(metric: AnyMetric) -> World:
    return WORLDS[metric.subject]


def drawn(data: st.DataObject, metric: AnyMetric) -> list[Any]:
    """Some rows of the metric's world."""
    return data.draw(world_of(metric).worlds)


def finished(metric: AnyMetric, state: Any) -> str:
    """The results of a state, printed in full: equal strings are equal to the last digit."""
    estimates = {key: estimate.with_confidence(1.97) for key, estimate in metric.finish(state).items()}
    return repr({(key, each.name): getattr(est, each.name) for key, est in estimates.items() for each in fields(est)})


@every_metric
@given(data=st.data(), elsewhere=st.booleans())
@few
def test_cutting_rows_into_batches_changes_nothing(metric: AnyMetric, data: st.DataObject, elsewhere: bool) -> None:
    rows = drawn(data, metric)
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=3))
    place = Place(world_of(metric), rows)
    whole = place.scored(metric, rows)
    state = metric.empty()
    parts = []
    for start, stop in pairwise([0, *sorted(cuts), len(rows)]):
        part = (Place(world_of(metric), rows) if elsewhere else place).scored(metric, rows[start:stop])
        state = metric.merge(state, part.state)
        parts.append(part.scores)
    assert finished(metric, state) == finished(metric, whole.state)
    for key, column in whole.scores.items():
        np.testing.assert_array_equal(np.concatenate([part[key] for part in parts]), column)


@every_metric
@given(data=st.data())
@few
def test_cutting_between_dialogues_changes_no_error(metric: AnyMetric, data: st.DataObject) -> None:
    """Dialogues of any length, cut into batches of whole ones: the estimates are equal, and so are their errors."""
    if metric.level is Level.DIALOGUE or GOALS in metric.needs:
        return  # their rows say themselves which dialogue they are of
    dialogues = [one for one in data.draw(st.lists(world_of(metric).worlds, max_size=4)) if one]
    cut = data.draw(st.integers(0, len(dialogues)))
    place = Place(world_of(metric), [row for one in dialogues for row in one])

    def state(some: Sequence[Sequence[Any]]) -> Any:
        ready = place.ready(metric, [row for one in some for row in one])
        return metric.partial(replace(ready, dialogues=offsets_of(map(len, some)))).state

    parts = metric.merge(state(dialogues[cut:]), state(dialogues[:cut]))
    assert finished(metric, parts) == finished(metric, state(dialogues))


@dataclass(frozen=True)
class WorldResources(Resources):
    """The resources of a world, over any vocabulary."""

    subject: Input = inputs.RESPONSE
    without: Input | None = None

    def open(self, vocabulary: Vocabulary) -> dict[Input, Any]:
        opened = WORLDS[self.subject].resources(vocabulary).items()
        return {need: resource for need, resource in opened if need != self.without}


GIVEN = frozenset(
    {
        inputs.TRAIN,
        inputs.VOCABULARY,
        inputs.EMBEDDINGS,
        inputs.JUDGE,
        inputs.DIALOGUE_JUDGE,
        inputs.ENCODER,
        inputs.LLM,
    }
)
"""Resources that a user may give or not, each independent of the others."""


@every_metric
@given(data=st.data())
@settings(max_examples=5)
def test_what_a_metric_does_not_need_changes_nothing(metric: AnyMetric, data: st.DataObject) -> None:
    """Neither a resource that is not needed nor a column that is not declared changes a value or a signature."""
    rows = data.draw(st.lists(world_of(metric).rows, min_size=1, max_size=8))
    columns = world_of(metric).columns(rows)

    def result(without: Input | None = None) -> Result:
        rest = {need: column for need, column in columns.items() if need != without}
        resources = WorldResources(subject=metric.subject, without=without)
        sources = wrap_systems([Rows("system", rest)])
        run = run_sources(sources, make_planner([metric]), resources, Options(threads=1)).run
        return replace(run["system"], table=None)

    there = set(world_of(metric).resources(Vocabulary())) & GIVEN | set(columns) - metric.wants
    whole = result()
    for need in there - metric.needs - {inputs.OUTCOME}:  # by outcomes missing values are counted
        assert result(need) == whole, f"{metric} changes with {need}"


@every_metric
@given(data=st.data(), elsewhere=st.booleans())
@settings(max_examples=5)
def test_a_tally_gives_what_an_evaluation_gives(metric: AnyMetric, data: st.DataObject, elsewhere: bool) -> None:
    """Rows that come one batch after the other, some of them in another process, and all rows at once."""
    rows = data.draw(st.lists(world_of(metric).rows, min_size=1, max_size=12))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(rows)), max_size=4)))
    resources = WorldResources(subject=metric.subject)

    def part(start: int, stop: int) -> Rows:
        return Rows("system", world_of(metric).columns(rows[start:stop]))

    here, there = (Tally([metric], resources, Options(threads=1)) for _ in range(2))
    for number, (start, stop) in enumerate(pairwise([0, *cuts, len(rows)])):
        (there if number > 1 else here).add(part(start, stop))
    here.merge(pickle.loads(pickle.dumps(there)) if elsewhere else there)
    whole = run_sources(wrap_systems([part(0, len(rows))]), make_planner([metric]), resources, Options(threads=1)).run
    assert here.run() == whole


@every_metric
@given(data=st.data())
@few
def test_values_lie_within_the_bounds(metric: AnyMetric, data: st.DataObject) -> None:
    rows = drawn(data, metric)
    scored = Place(world_of(metric), rows).scored(metric, rows)
    means = {key: np.array([estimate.mean]) for key, estimate in metric.finish(scored.state).items()}
    for key, column in (*scored.scores.items(), *means.items()):
        least, largest = metric.bounds_of(key)
        assert least < largest
        known = column[~np.isnan(column)]
        assert (known >= least - 1e-9).all()
        assert (known <= largest + 1e-9).all()


@every_metric
@given(data=st.data())
@few
def test_order_changes_nothing(metric: AnyMetric, data: st.DataObject) -> None:
    rows = drawn(data, metric)
    order = data.draw(st.permutations(range(len(rows))))
    mixed = [rows[index] for index in order]
    whole = Place(world_of(metric), rows).scored(metric, rows)
    shuffled = Place(world_of(metric), mixed).scored(metric, mixed)
    assert finished(metric, shuffled.state) == finished(metric, whole.state)
    for key, column in whole.scores.items():
        np.testing.assert_array_equal(shuffled.scores[key], column[list(order)])


@every_metric
@given(data=st.data())
@few
def test_merging_is_associative_and_commutative(metric: AnyMetric, data: st.DataObject) -> None:
    a, b, c = (drawn(data, metric) for _ in range(3))
    place = Place(world_of(metric), [*a, *b, *c])
    x, y, z = (place.scored(metric, part).state for part in (a, b, c))
    one = metric.merge(metric.merge(x, y), z)
    assert finished(metric, one) == finished(metric, metric.merge(x, metric.merge(y, z)))
    assert finished(metric, one) == finished(metric, metric.merge(z, metric.merge(y, x)))


@every_metric
@given(data=st.data())
@few
def test_empty_is_the_identity(metric: AnyMetric, data: st.DataObject) -> None:
    rows = drawn(data, metric)
    state = Place(world_of(metric), rows).scored(metric, rows).state
    assert finished(metric, metric.merge(metric.empty(), state)) == finished(metric, state)
    assert finished(metric, metric.merge(state, metric.empty())) == finished(metric, state)


@every_metric
@given(data=st.data())
@few
def test_states_survive_a_process_boundary(metric: AnyMetric, data: st.DataObject) -> None:
    a, b = drawn(data, metric), drawn(data, metric)
    place = Place(world_of(metric), [*a, *b])
    x, y = place.scored(metric, a).state, place.scored(metric, b).state
    sent = [pickle.loads(pickle.dumps(state)) for state in (x, y)]
    assert finished(metric, metric.merge(*sent)) == finished(metric, metric.merge(x, y))
    assert finished(metric, metric.merge(sent[0], y)) == finished(metric, metric.merge(x, y))
    assert pickle.loads(pickle.dumps(metric)) == metric


@every_metric
@given(data=st.data())
@few
def test_facts_do_not_depend_on_batches_or_order(metric: AnyMetric, data: st.DataObject) -> None:
    a, b = drawn(data, metric), drawn(data, metric)
    place = Place(world_of(metric), [*a, *b])
    expected = place.scored(metric, [*a, *b]).scores
    for fact in metric.facts:
        x, y = (place.gathered(fact, metric, part) for part in (a, b))
        for state in (fact.merge(x, y), fact.merge(y, fact.merge(x, fact.empty()))):
            ready = replace(place.ready(metric, [*a, *b]), facts={fact: fact.finish(state)}, kept={})
            for key, column in metric.partial(ready).scores.items():
                np.testing.assert_array_equal(column, expected[key])


@every_metric
@given(data=st.data())
@few
def test_inputs_and_states_are_left_as_they_were(metric: AnyMetric, data: st.DataObject) -> None:
    a, b = drawn(data, metric), drawn(data, metric)
    place = Place(world_of(metric), [*a, *b])
    ready = place.ready(metric, a)
    digests = {need: column.digest for need, column in ready.columns.items()}
    for column in ready.columns.values():
        text = column.values if isinstance(column, RaggedColumn | SharedColumn) else column
        if not isinstance(text, ObjectColumn):
            for array in (text.data, text.starts, text.ends):
                array.flags.writeable = False
    left, right = metric.partial(ready).state, place.scored(metric, b).state
    before = finished(metric, left), finished(metric, right)
    metric.merge(left, right)
    assert (finished(metric, left), finished(metric, right)) == before
    assert {need: column.digest for need, column in ready.columns.items()} == digests


@every_metric
@given(data=st.data())
@few
def test_only_declared_needs_are_read(metric: AnyMetric, data: st.DataObject) -> None:
    rows = drawn(data, metric)
    place = Place(world_of(metric), rows)
    ready = place.ready(metric, rows)
    declared = metric.needs | metric.wants
    bare = replace(
        ready,
        columns={need: column for need, column in ready.columns.items() if need in declared},
        resources={need: resource for need, resource in ready.resources.items() if need in declared},
        kept={},
    )
    assert finished(metric, metric.partial(bare).state) == finished(metric, place.scored(metric, rows).state)
    for need in metric.needs:
        without = replace(ready, kept={}).restrict_to(declared - {need})
        with pytest.raises(NeedError):
            [fact.gather(without) for fact in metric.facts], metric.partial(without)


@named_metric
def test_names_and_signatures_read_back(metric: AnyMetric) -> None:
    assert registry().parse(str(metric)) == metric
    assert metric in registry().select([metric.family])
    assert metric.subject in metric.needs | metric.wants
    assert metric.better in ("higher", "lower", None)
    signature = metric.signature()
    assert Signature.parse(str(signature)) == signature
    assert signature.metric == metric.name
    for setting in metric.setting_names():
        implied = metric.implied.get(setting) == getattr(metric, setting)
        assert (setting in signature) is not implied, "every setting stands in the signature, or is implied"


def other_values(metric: AnyMetric, name: str) -> list[Any]:
    """Some other values that a setting might take."""
    hint, value = get_type_hints(type(metric))[name], getattr(metric, name)
    if get_origin(hint) is Literal:
        return [choice for choice in get_args(hint) if choice != value]
    others: dict[str, list[Any]] = {
        "tokenizer": ["lower-words.1"],
        "n": [1, 2],
        "k": [1, 2],
        "of": ["polite", "breakdown=X"],
        "percent": [1, 99],
        "smooth": [1, 7],
        "threshold": [0.25],
        "references": ["other"],
        "alpha": [0.5],
        "beta": [1.0],
        "gamma": [0.25],
        "words": [0, 1],
        "tolerance": [0.5],
        "ignore": ["a+b"],
        "text": ["cat"],
        "pattern": ["c.t"],
        "range": ["-1:2"],
        "rubric": ["safety", "conversation"],
        "samples": [3],
        "model": ["other/model-1"],
    }
    if hint is bool:
        return [not value]
    return [other for other in others[name] if other != value]


@named_metric
def test_every_setting_changes_the_signature(metric: AnyMetric) -> None:
    for field in fields(metric):
        if field.name in ("smooth", "by") and getattr(metric, "by", "") == "sacre":
            continue  # sacreBLEU has a smoothing of its own
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
    partial = Place(world_of(metric)).scored(metric, [])
    assert all(len(column) == 0 for column in partial.scores.values())
    assert finished(metric, partial.state) == finished(metric, metric.empty())
    for estimate in metric.finish(partial.state).values():
        assert isinstance(estimate, Estimate)
        assert (estimate.units, estimate.scored) == (0, 0)
        assert np.isnan(estimate.mean)


@every_metric
def test_one_row(metric: AnyMetric) -> None:
    for what, row in world_of(metric).lone.items():
        partial = Place(world_of(metric), [row]).scored(metric, [row])
        for key, estimate in metric.finish(partial.state).items():
            assert np.isnan(estimate.mean) == (estimate.scored == 0), f"missing is NaN, and only missing is: {what}"
            assert key not in partial.scores or len(partial.scores[key]) == 1


@every_metric
@given(data=st.data())
@few
def test_items_line_up_and_scored_counts_them(metric: AnyMetric, data: st.DataObject) -> None:
    rows = drawn(data, metric)
    partial = Place(world_of(metric), rows).scored(metric, rows)
    for key, estimate in metric.finish(partial.state).items():
        if metric.level is Level.TURN:
            assert estimate.units == len(rows)
        if key in partial.scores:
            assert estimate.scored == int((~np.isnan(partial.scores[key])).sum())
            assert partial.scores[key].dtype == np.float64


def resampled(metric: AnyMetric, place: Place, rows: Sequence[Any], offsets: Ints, counts: Ints) -> Floats:
    """The value of all rows together for each resample of clusters, from the contributions of two batches."""
    half = len(rows) // 2
    parts = [place.scored(metric, part).contributions for part in (rows[:half], rows[half:])]
    assert parts[0].keys() == parts[1].keys()
    found = {name: join_batches([part[name] for part in parts]) for name in parts[0]}
    assert all(len(statistic) == len(rows) for statistic in found.values())
    return metric.score_resamples(Resamples(ClusteredRows(found, offsets), counts))


@pytest.mark.parametrize("metric", [*METRICS, *TURNED], ids=str)
@given(data=st.data())
@few
def test_a_resample_is_an_evaluation_of_its_rows(metric: AnyMetric, data: st.DataObject) -> None:
    world = world_of(metric)
    rows = world.in_order(drawn(data, metric))
    place = Place(world, rows)
    (whole,) = [est for key, est in metric.finish(place.scored(metric, rows).state).items() if key == metric.name]
    if not whole.corpus or metric.name in ("msttr", "entropy", "cond-entropy", "task-variance"):
        with pytest.raises(NeedError, match=r"no per-row statistics|depends on all words"):
            resampled(metric, place, rows, np.arange(len(rows) + 1), np.ones((1, len(rows)), np.int64))
        return
    cuts = data.draw(st.lists(st.integers(0, len(rows)), max_size=4)) if rows else []
    offsets = np.unique([0, *cuts, len(rows)])
    clusters = len(offsets) - 1
    taken = data.draw(st.lists(st.integers(0, 3), min_size=clusters, max_size=clusters))
    values = resampled(metric, place, rows, offsets, np.array([[1] * clusters, taken], np.int64).reshape(2, -1))
    again = [
        rows[at] for cluster, times in enumerate(taken) for at in [*range(*offsets[cluster : cluster + 2])] * times
    ]
    anew = metric.finish(place.scored(metric, world.in_order(again)).state)[metric.name]
    np.testing.assert_allclose(values, [whole.mean, anew.mean], rtol=1e-12, atol=1e-12)


@every_metric
def test_something_is_scored(metric: AnyMetric) -> None:
    """The world is rich enough that no law holds for want of a score."""
    rows = list(world_of(metric).rich)
    estimate = metric.finish(Place(world_of(metric), rows).scored(metric, rows).state)[metric.name]
    assert estimate.scored == len(rows)


@pytest.mark.parametrize("subject", list(WORLDS))
def test_the_world_meets_every_need(subject: Input) -> None:
    place = Place(WORLDS[subject])
    there = set(place.batch([]).columns) | set(place.resources)
    assert there >= {need for metric in METRICS if metric.subject is subject for need in metric.needs | metric.wants}
