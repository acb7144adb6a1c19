"""BLEU of task dialogues against sacreBLEU."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given, settings
from hypothesis import strategies as st

from dialeval.metrics.overlap.bleu_counts import NO_REFERENCE
from dialeval.metrics.overlap.smoothing import corpus_bleu
from dialeval.metrics.task import bleu
from dialeval.metrics.task.bleu import TaskBleu, counts_of
from dialeval.text.mteval import tokens_13a
from laws.task import WORLD, Row
from laws.worlds import Place

texts = st.lists(st.sampled_from(["the", "cat", "sat", "on", "a", "mat", ".", ",", "1.5"]), max_size=9).map(" ".join)
pairs = st.lists(st.tuples(texts, texts), min_size=1, max_size=6)


def ids_of(lists: list[list[str]]) -> tuple[list[list[int]], int]:
    ids: dict[str, int] = {}
    return [[ids.setdefault(token, len(ids)) for token in tokens] for tokens in lists], len(ids)


@given(pairs, st.sampled_from([62, 8]))
@settings(max_examples=150)
def test_bleu_is_that_of_sacrebleu(both: list[tuple[str, str]], bits: int) -> None:
    responses, references = ([pair[side] for pair in both] for side in (0, 1))
    ids, words = ids_of([tokens_13a(text) for text in (*responses, *references)])
    half = len(responses)
    keys, bleu._KEY_BITS = bleu._KEY_BITS, bits  # few bits: the way for large vocabularies
    try:
        counts = counts_of(ids[:half], ids[half:], words)
    finally:
        bleu._KEY_BITS = keys
    columns = (counts.matches, counts.totals, counts.response_lengths, counts.reference_lengths)
    totals = np.column_stack(columns).sum(axis=0).tolist()
    assert corpus_bleu(*totals) == pytest.approx(sacrebleu.corpus_bleu(responses, [references]).score, abs=1e-6)


@pytest.mark.parametrize("bits", [62, 1])
def test_texts_without_a_word_have_no_matches(bits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bleu, "_KEY_BITS", bits)
    for responses, references, words in (([[]], [[]], 0), ([[], [0]], [[], []], 1), ([], [], 0)):
        counts = counts_of(responses, references, words)
        assert counts.matches.tolist() == [[0, 0, 0, 0]] * len(responses)
        assert counts.response_lengths.tolist() == [len(text) for text in responses]


def test_a_missing_turn_has_no_counts() -> None:
    counts = counts_of([None, [0]], [None, [0]], 1)
    assert counts.reference_lengths.tolist() == [NO_REFERENCE, 1]
    assert counts.matches[0].tolist() == [0, 0, 0, 0]


def test_items_are_sentence_bleu() -> None:
    rows = [Row("d1", "[name] is nice, call [phone]."), Row("d2", None), Row("d3", "")]
    items = Place(WORLD, rows).scored(TaskBleu(), rows).items["bleu/mwz22"]
    expected = sacrebleu.sentence_bleu("NAME is nice, call PHONE.", ["NAME is lovely, call PHONE."]).score
    assert items[0] == pytest.approx(expected, abs=1e-6)
    assert math.isnan(items[1])
    assert items[2] == 0


def test_missing_turns_may_count_as_empty() -> None:
    rows = [Row("d1", "[name] is lovely, call [phone]."), Row("d2", None)]
    loose, strict = (
        metric.finish(Place(WORLD, rows).scored(metric, rows).state)[metric.name]
        for metric in (TaskBleu(), TaskBleu(missing="failed"))
    )
    assert loose.mean == pytest.approx(100)
    assert strict.mean < loose.mean
    assert (loose.scored, strict.scored) == (1, 2)


def test_what_rows_contribute_is_named_by_every_setting_that_changes_it() -> None:
    rows = [Row("d1", "[name] is lovely, call [phone]."), Row("d2", None)]
    metrics = [TaskBleu(), TaskBleu(missing="failed"), TaskBleu(references="other")]
    assert len({metric.contribution for metric in metrics}) == 3
    names = [list(Place(WORLD, rows).scored(metric, rows).contributions) for metric in metrics[:2]]
    assert names == [[metric.contribution] for metric in metrics[:2]]
