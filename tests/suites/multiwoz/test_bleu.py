"""BLEU of task dialogues against sacreBLEU."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.suites.multiwoz.data import ReferenceSets
from dialeval.suites.multiwoz.feature import REFERENCE_SETS
from dialeval.suites.multiwoz.metrics import TaskBleu
from dialeval.text.tokenizers import normalize_moses
from laws.task import WORLD, Row
from laws.worlds import Place

texts = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", ",", "1.5"]), max_size=9).map(" ".join)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


@given(pairs)
@settings(max_examples=100)
def test_bleu_is_that_of_sacrebleu(both: list[tuple[str, str]]) -> None:
    # Rows of dialogues that have one turn each, so that the references are those of the first turn.
    names = [f"d{at}" for at in range(len(both))]
    sets = ReferenceSets({"mwz22": {name: [pair[1]] for name, pair in zip(names, both, strict=True)}}, "x")
    world = replace(WORLD, resources=lambda words: {**WORLD.resources(words), REFERENCE_SETS: sets})
    rows = [Row(name, pair[0]) for name, pair in zip(names, both, strict=True)]
    found = TaskBleu().finish(Place(world, rows).scored(TaskBleu(), rows).state)["bleu/mwz22"].mean
    expected = sacrebleu.corpus_bleu([normalize_moses(pair[0]) for pair in both], [[pair[1] for pair in both]]).score
    assert found == pytest.approx(expected, abs=1e-6)


def test_items_are_sentence_bleu() -> None:
    rows = [Row("d1", "[name] is nice, call [phone]."), Row("d2", None), Row("d3", "")]
    items = Place(WORLD, rows).scored(TaskBleu(), rows).scores["bleu/mwz22"]
    expected = sacrebleu.sentence_bleu("NAME is nice, call PHONE.", ["NAME is lovely, call PHONE."]).score
    assert items[0] == pytest.approx(expected, abs=1e-6)
    assert math.isnan(items[1])
    assert items[2] == 0
