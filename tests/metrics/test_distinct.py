"""Lengths, distinct-n, entropy and divergence of words, against their definitions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import dialeval
import evaluating
from dialeval.analysis.gates import check_baseline
from dialeval.analysis.values import cut
from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn
from dialeval.core.errors import SettingError
from dialeval.metrics.counting import CountMetric, Flags, Per, corpus_error, sum_by_dialogue
from dialeval.metrics.words import Length
from dialeval.text.vocabulary import Vocabulary
from metrics import twins
from metrics.evaluated import close, evaluated, mean, worlds

responses = st.lists(st.lists(st.sampled_from("abcd"), max_size=8), min_size=1, max_size=8)


def grams(words: list[str], n: int) -> list[tuple[str, ...]]:
    return [tuple(words[start : start + n]) for start in range(len(words) - n + 1)]


@given(responses, st.integers(1, 4))
def test_equals_its_definition(rows: list[list[str]], n: int) -> None:
    run = dialeval.evaluate(
        [" ".join(row) for row in rows], metrics=[f"distinct(n={n})", f"distinct(n={n},per=response)"]
    )["system"]
    corpus, single = run.values()
    every = [gram for row in rows for gram in grams(row, n)]
    each = [len(set(found)) / len(found) if (found := grams(row, n)) else math.nan for row in rows]
    assert corpus.scores is not None
    np.testing.assert_array_equal(corpus.scores, each)
    assert corpus.scored == single.scored == sum(not math.isnan(value) for value in each)
    if every:
        assert corpus.mean == len(set(every)) / len(every)
        assert single.mean == pytest.approx(np.nanmean(each), rel=1e-12)
    else:
        assert math.isnan(corpus.mean)
        assert math.isnan(single.mean)


def test_tokens_count_as_they_are_whatever_the_vocabulary_is() -> None:
    given: dict[str, Any] = {"train": ["a b"], "vocabulary": ["a"], "metrics": ["distinct-1", "distinct(n=1,oov=unk)"]}
    plain, unified = evaluating.evaluate(["a c", "d e"], **given)["system"].values()
    assert (plain.mean, unified.mean) == (4 / 4, 2 / 4)
    alone = dialeval.evaluate(["a c", "d e"], metrics="distinct-1")["system"]["distinct-1"]
    assert (alone.mean, alone.signature) == (plain.mean, plain.signature)


def test_the_group_of_the_original_counts_unknown_tokens_as_one() -> None:
    run = dialeval.evaluate(["a c", "d e"], metrics="dialog-eval", reading=dialeval.Reading(vocabulary=["a"]))["system"]
    assert run["distinct-1"].mean == 2 / 4


def test_a_corpus_value_has_no_spread_over_rows() -> None:
    estimate = dialeval.evaluate(["a a", "a b"], metrics="distinct-1", intervals="rows")["system"]["distinct-1"]
    assert (estimate.mean, estimate.std, estimate.half_width, estimate.interval) == (0.5, 0.0, 0.0, None)


def test_n_grams_that_are_longer_than_any_text() -> None:
    """However long, also with each shorter length next to it."""
    lengths = (*range(3, 200), 10**6)
    metrics = ",".join(f"distinct(n={n})" for n in lengths)
    run = dialeval.evaluate(["a b c", "a b", ""], metrics=metrics)["system"]
    assert [run[f"distinct(n={n})"].scored for n in lengths] == [1] + [0] * (len(lengths) - 1)


@given(worlds)
def test_entropy(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="dialog-eval")
    for n, name in ((1, "unigram"), (2, "bigram")):
        bits = [twins.entropies(response, world["train"], n, known) for response in world["responses"]]
        close(result, f"per-{name}-entropy", [mean(row) for row in bits])
        close(result, f"utterance-{name}-entropy", [sum(row) if row else math.nan for row in bits])


@given(worlds)
def test_entropy_of_words_as_themselves(world: dict[str, Any]) -> None:
    result, _, _ = evaluated(world, metrics="train-entropy")
    bits = [twins.entropies(response, world["train"], 1, None) for response in world["responses"]]
    close(result, "per-unigram-entropy", [mean(row) for row in bits])


@given(worlds)
def test_divergence(world: dict[str, Any]) -> None:
    result, known, _ = evaluated(world, metrics="dialog-eval", batch_rows=2)
    for n, key in ((1, "unigram-kl-div"), (2, "bigram-kl-div")):
        bits = [
            twins.divergences(reference, world["responses"], world["references"], n, known)
            for reference in world["references"]
        ]
        close(result, key, [mean(row) for row in bits])


@given(worlds)
def test_divergence_of_words_as_themselves(world: dict[str, Any]) -> None:
    result, _, _ = evaluated(world, metrics="bigram-kl-div")
    bits = [twins.divergences(text, world["responses"], world["references"], 2, None) for text in world["references"]]
    close(result, "bigram-kl-div", [mean(row) for row in bits])


def test_equal_systems_that_speak_unlike_the_references_do_not_differ() -> None:
    """Both systems draw their words from one distribution: a test that held it fixed found a difference in 90%."""
    rng = np.random.default_rng(1)
    shares = 1 / np.arange(1.0, 201)
    shares /= shares.sum()
    for _ in range(5):
        others = rng.permutation(shares)
        references, first, second = (
            [" ".join(f"w{word}" for word in rng.choice(200, 12, p=p)) for _ in range(100)]
            for p in (shares, others, others)
        )
        run = dialeval.evaluate({"a": first, "b": second}, references, metrics="kl-div")
        comparison = dialeval.compare(run, trials=1000, resamples=100)
        for row in comparison.differences:
            assert row.difference != 0
            assert (row.interval, row.significant, np.isnan(row.p)) == (None, False, True)
            assert row.reason is not None
            assert "of all responses together" in row.reason
        with pytest.raises(SettingError, match="b cannot be compared with a on unigram-kl-div"):
            list(check_baseline(comparison, {}))


def test_there_is_no_interval_but_that_of_the_original() -> None:
    texts = [f"a b w{number}" for number in range(30)]
    run = dialeval.evaluate({"a": texts, "b": texts[::-1]}, ["a b c"] * 30, metrics="unigram-kl-div,length")
    assert run["a"]["unigram-kl-div"].interval is None
    assert run["a"]["length"].interval is not None
    resampled = dialeval.with_intervals(run, resamples=50)
    assert resampled["a"]["unigram-kl-div"].interval is None
    assert any("unigram-kl-div has no resampled interval: it is of the words" in line for line in resampled.warnings)
    assert cut(run["a"], np.arange(20))["unigram-kl-div"].interval is None
    rows = dialeval.evaluate(texts, ["a b c"] * 30, metrics="unigram-kl-div", intervals="rows")["system"]
    assert rows["unigram-kl-div"].interval is not None


def test_counts_words_and_an_empty_response_has_none() -> None:
    estimate = dialeval.evaluate(["one two", "", " \t", "naïve\u00a0café — ok"], metrics=["length"])["system"]["length"]
    assert estimate.scores is not None
    assert estimate.scores.tolist() == [2.0, 0.0, 0.0, 4.0]
    assert (estimate.mean, estimate.units, estimate.scored) == (1.5, 4, 4)
    assert (Length().bounds, Length().tokenizer) == ((0.0, math.inf), "words.1")


@dataclass(frozen=True)
class Share(CountMetric):
    """Part of whole, of rows whose whole is not 0."""

    family = "share"
    presets = {"share": {}}
    needs = frozenset({inputs.ANNOTATIONS})
    width = 2

    per: Per = "corpus"

    @property
    def of_corpus(self) -> bool:
        return self.per == "corpus"

    def count_rows(self, batch: Batch) -> tuple[Ints, Flags]:
        counts: Ints = batch.numbers(inputs.ANNOTATIONS).astype(np.int64)
        return counts, counts[:, 1] > 0

    def formula(self, counts: Ints | Floats) -> Floats:
        return counts[:, 0] / np.maximum(counts[:, 1], 1)


rows = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=1)


def batch_of(made: list[tuple[int, int]]) -> Batch:
    column = NumberColumn(np.array(made, np.float64).reshape(-1, 2))
    return Batch(len(made), {inputs.ANNOTATIONS: column}, Vocabulary(), np.arange(len(made) + 1))


@given(rows, st.integers(0, 5))
def test_corpus_and_mean(made: list[tuple[int, int]], cut: int) -> None:
    scored = [(part, whole) for part, whole in made if whole]
    shares = [part / whole for part, whole in scored]
    corpus, mean = Share(), Share("response")
    for metric, expected in (
        (corpus, sum(part for part, _ in scored) / sum(whole for _, whole in scored) if scored else math.nan),
        (mean, float(np.mean(shares)) if scored else math.nan),
    ):
        parts = [metric.partial(batch_of(each)) for each in (made[:cut], made[cut:])]
        (estimate,) = metric.finish(metric.merge(*(part.state for part in parts))).values()
        assert estimate.mean == pytest.approx(expected, nan_ok=True)
        assert (estimate.units, estimate.scored, estimate.corpus) == (len(made), len(scored), metric is corpus)
        items = np.concatenate([part.scores[metric.name] for part in parts])
        assert items[~np.isnan(items)].tolist() == pytest.approx(shares)


@given(rows, st.lists(st.integers(0, 3)))
@example([(1, 2), (3, 4)], [0, 2])  # as many dialogues as rows, and yet no row alone
@example([(1, 2), (3, 0), (5, 6)], [1, 1, 1])
def test_counts_are_added_up_by_dialogue(made: list[tuple[int, int]], sizes: list[int]) -> None:
    sizes = [*sizes, max(0, len(made) - sum(sizes))]
    made = [*made, *[(1, 1)] * (sum(sizes) - len(made))]
    counts, scored = np.array(made), np.array(made)[:, 1] > 0
    counts[~scored] = 0
    expected: dict[int, list[int]] = {}
    for start, size in zip(np.cumsum([0, *sizes]), sizes, strict=False):
        part, whole = counts[start : start + size].sum(axis=0).tolist()
        if number := int(scored[start : start + size].sum()):
            before = expected.get(number, [0] * 6)
            now = (1, part, whole, part * part, part * whole, whole * whole)
            expected[number] = [each + more for each, more in zip(before, now, strict=True)]
    found = sum_by_dialogue(counts, scored, np.cumsum([0, *sizes]))
    assert found == {number: tuple(sums) for number, sums in expected.items()}


def test_the_error_of_a_corpus_value_is_nearly_that_of_the_jackknife() -> None:
    dice = np.random.default_rng(3)
    wholes = dice.integers(5, 30, 80)
    counts = np.column_stack((dice.binomial(wholes, 0.3), wholes))
    clusters = sum_by_dialogue(counts, np.ones(80, np.bool_), np.arange(81))
    found = corpus_error(lambda sums: sums[:, 0] / sums[:, 1], counts.sum(axis=0).tolist(), clusters)
    without = counts.sum(axis=0) - counts
    values = without[:, 0] / without[:, 1]
    assert found is not None
    assert found.error == pytest.approx(math.sqrt(79 / 80 * ((values - values.mean()) ** 2).sum()), rel=0.02)
