"""States that are cut, merged part by part in any order and closed give the estimates of the whole, to the last bit."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.core import inputs
from dialeval.core.fold import Metric
from dialeval.engine.plan import make_plan
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Job, Stage, StateSums, SystemStates, Worker, cut_states, merge_states
from dialeval.io.chunks import split_sources
from dialeval.io.reading import read_responses
from dialeval.io.rows import FieldNames
from dialeval.io.sources import wrap_systems
from dialeval.metrics.distinct import Distinct
from dialeval.text.vocabulary import Vocabulary

COLUMNS = frozenset({inputs.RESPONSE, inputs.REFERENCE})
METRICS: list[str | Metric[Any]] = ["length", "bleu-4", Distinct(1), Distinct(2), Distinct(3), "kl-div"]
PLAN = make_plan(METRICS, COLUMNS)
JOB = Job((PLAN,), (COLUMNS,), Resources(ready={}), FieldNames(), 1 << 15)
STAGES: list[Stage] = ["facts", "metrics"]

words = st.sampled_from(["a", "b", "the", "hello", "considerable", "b\u00e4r", "\u4f60\u597d", "."])
turns = st.lists(words, max_size=6).map(" ".join)
dialogues = st.lists(st.tuples(turns, turns), min_size=1, max_size=8)


def states_of(pairs: list[tuple[str, str]], stage: Stage, batch_rows: int) -> list[SystemStates]:
    """The states of chunks, each from a worker with words of its own."""
    rows = [{"response": response, "reference": reference} for response, reference in pairs]
    job = replace(JOB, plans=(make_plan(METRICS[:-1], COLUMNS),)) if stage == "metrics" else JOB
    return [
        Worker(job).fold(stage, chunk)[0] for chunk in split_sources(wrap_systems(read_responses(rows)), batch_rows)
    ]


def finished(stage: Stage, states: SystemStates) -> list[str]:
    """What folds make of the states of the one system, printed in full."""
    found = []
    for fold, state in zip(JOB.list_folds(stage, 0), states[0, "system"].states, strict=False):
        result: Any = fold.finish(state)
        if stage == "facts":  # values of n-grams, whose order is that of a vocabulary
            names = [tuple(result.vocabulary.words(gram)) for gram in result._places().grams]
            result = sorted(zip(names, result.values.tolist(), strict=True))
        found.append(repr(result))
    return found


def whole(job: Job, stage: Stage, several: list[SystemStates]) -> SystemStates:
    sums = StateSums(job, stage, Vocabulary())
    for each in several:
        sums.add(each)
    return sums.finish()


@pytest.mark.parametrize("stage", STAGES)
@settings(max_examples=25)
@given(dialogues, st.integers(1, 5), st.integers(1, 9), st.integers(0, 99))
def test_any_number_of_parts_in_any_order(
    stage: Stage, pairs: list[tuple[str, str]], batch_rows: int, parts: int, seed: int
) -> None:
    job = replace(JOB, plans=(make_plan(METRICS[:-1], COLUMNS),)) if stage == "metrics" else JOB
    several = states_of(pairs, stage, batch_rows)
    expected = whole(job, stage, several)
    cut = [cut_states(job, stage, each, parts) for each in several]
    sums = [rest for rest, _ in cut]
    for part in range(parts):
        pieces = [pieces[part] for _, pieces in cut]
        random.Random(seed).shuffle(pieces)
        middle = len(pieces) // 2
        halves = [merge_states(job, stage, half) for half in (pieces[:middle], pieces[middle:])]
        sums.append(merge_states(job, stage, halves, close=True))
    random.Random(seed).shuffle(sums)
    found = whole(job, stage, sums)
    assert finished(stage, found) == finished(stage, expected)
    assert found[0, "system"].rows == expected[0, "system"].rows == len(pairs)


@settings(max_examples=25)
@given(dialogues, st.integers(2, 4))
def test_parts_have_nothing_in_common(pairs: list[tuple[str, str]], parts: int) -> None:
    """Wherever an n-gram was counted, it goes to the same part."""
    there: dict[tuple[str, ...], set[int]] = {}
    for states in states_of(pairs, "facts", 2):
        _, pieces = cut_states(JOB, "facts", states, parts)
        for number, piece in enumerate(pieces):
            for both in piece[0, "system"].states:
                for side in both:
                    for gram in side.grams:
                        there.setdefault(tuple(side.vocabulary.words(gram)), set()).add(number)
    assert all(len(numbers) == 1 for numbers in there.values())


def test_what_goes_to_the_first_process_does_not_grow() -> None:
    """A hundred times the n-grams, and not a byte more."""
    import pickle

    sizes = []
    for count in (50, 5_000):
        pairs = [(f"w{number} w{number * number}", f"w{number}") for number in range(count)]
        job = replace(JOB, plans=(make_plan([Distinct(2)], COLUMNS),))
        rows = [{"response": response, "reference": reference} for response, reference in pairs]
        (chunk,) = split_sources(wrap_systems(read_responses(rows)), 1 << 15)
        rest, pieces = cut_states(job, "metrics", Worker(job).fold("metrics", chunk)[0], 4)
        closed = [merge_states(job, "metrics", [piece], close=True) for piece in pieces]
        assert sum(each[0, "system"].states[0].ngrams.types for each in closed) == count
        assert min(each[0, "system"].states[0].ngrams.types for each in closed) > count / 10
        sizes.append(len(pickle.dumps([rest, closed])))
    assert sizes[1] < sizes[0] + 100  # larger numbers
