"""Validation of a judge: nothing that is judged was learned from, and agreement is that of the scores given."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import spearmanr
from tools.judge_training.validation import (
    RatedExamples,
    Validation,
    compare_columns,
    correlate,
    judge_left_out,
    make_rated_examples,
    split_sets,
)

from dialeval.judges.fitting import AdemSettings, fit_adem
from dialeval.stats.resampling import DEFAULT_RESAMPLES
from judges.tiny_judges import invented_ratings, tiny_vectors


def validation(examples: RatedExamples) -> Validation:
    return compare_columns(judge_left_out(examples, examples, AdemSettings()), examples)


def contexts(examples: RatedExamples) -> set[int]:
    return set(examples.contexts.tolist())


@pytest.mark.parametrize("sets", [1, 3])
def test_no_context_is_on_both_sides(tmp_path: Path, sets: int) -> None:
    examples = make_rated_examples(invented_ratings(90, sets), tiny_vectors(tmp_path / "e"))
    splits = list(split_sets(examples, examples))
    assert len(splits) == (5 if sets == 1 else sets)
    assert sorted(row for test, _ in splits for row in test.tolist()) == list(range(90)), "every row is judged once"
    for test, others in splits:
        assert not contexts(examples.take(test)) & contexts(others)
        if sets > 1:
            assert len(set(examples.sets[test].tolist())) == 1
            assert not set(examples.sets[test].tolist()) & set(others.sets.tolist())


def test_agreement_is_that_of_judges_fitted_to_the_other_sets(tmp_path: Path) -> None:
    ratings = invented_ratings(90)
    examples = make_rated_examples(ratings, tiny_vectors(tmp_path / "e"))
    found = validation(examples)
    assert list(found.sets) == found.referenced == ["set0", "set1", "set2"]
    test = examples.select_sets(["set1"])
    scores = fit_adem(examples.select_sets(["set0", "set2"])).score(test)
    agreed = found.sets["set1"]["adem"]
    assert agreed.rows == 30
    assert agreed.spearman == pytest.approx(spearmanr(scores, test.scores)[0])
    low, high = agreed.spearman_interval
    assert low < agreed.spearman < high
    means = [each["adem"].spearman for each in found.sets.values()]
    assert found.mean["adem"].spearman == pytest.approx(np.mean(means))


def test_a_set_that_is_not_judged_has_no_agreement(tmp_path: Path) -> None:
    ratings = invented_ratings(90, 3)
    kept = ratings.take(np.array([row for row in range(90) if row % 3 != 1 or row < 30]))
    examples = make_rated_examples(kept, tiny_vectors(tmp_path / "e"))
    found = validation(examples)
    assert list(found.sets) == found.referenced == ["set0", "set2"]
    assert found.mean["identity"].rows == 60
    alone = replace(examples, has_reference=examples.has_reference & (examples.sets != 2))
    assert validation(alone).referenced == ["set0"]


def test_too_few_values_agree_with_nobody() -> None:
    scores = np.array([1.0, 2.0, 4.0])
    known, coefficients = correlate(scores**2, scores, np.arange(3))
    assert (known.rows, coefficients.shape) == (3, (DEFAULT_RESAMPLES,))
    assert known.spearman == pytest.approx(1)
    unknown, nothing = correlate(scores[:2], scores[:2], np.arange(2))
    assert unknown.rows == 2
    assert np.isnan([unknown.spearman, *unknown.spearman_interval]).all()
    assert nothing.shape == coefficients.shape
    assert np.isnan(nothing).all()
