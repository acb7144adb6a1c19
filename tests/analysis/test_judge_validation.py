"""Validation of a judge: nothing that is judged was learned from, and agreement is that of the scores given."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.analysis.judge_validation import FOLDS, _splits, validation
from dialeval.metrics.learned.training.examples import Examples, examples_of
from dialeval.metrics.learned.training.recipe import Recipe
from metrics.learned.judges import invented_ratings, tiny_vectors


def contexts(examples: Examples) -> set[int]:
    return set(examples.contexts.tolist())


@pytest.mark.parametrize("sets", [1, 3])
def test_no_context_is_on_both_sides(tmp_path: Path, sets: int) -> None:
    examples = examples_of(invented_ratings(90, sets), tiny_vectors(tmp_path / "e"))
    splits = list(_splits(examples, examples))
    assert len(splits) == (FOLDS if sets == 1 else sets)
    assert sorted(row for test, _ in splits for row in test.tolist()) == list(range(90)), "every row is judged once"
    for test, others in splits:
        assert not contexts(examples.take(test)) & contexts(others)
        if sets > 1:
            assert len(set(examples.sets[test].tolist())) == 1
            assert not set(examples.sets[test].tolist()) & set(others.sets.tolist())


def test_agreement_is_that_of_judges_fitted_to_the_other_sets(tmp_path: Path) -> None:
    ratings = invented_ratings(90)
    examples = examples_of(ratings, tiny_vectors(tmp_path / "e"))
    steps: list[tuple[int, int | None]] = []
    found = validation(ratings, examples, examples, Recipe("identity"), lambda *step: steps.append(step))
    assert steps == [(1, 3), (2, 3), (3, 3)]
    assert list(found.sets) == found.referenced == ["set0", "set1", "set2"]
    test = examples.of_sets(["set1"])
    scores = Recipe("adem").fit(examples.of_sets(["set0", "set2"])).score(test)
    agreed = found.sets["set1"]["adem"]
    assert agreed.rows == 30
    assert agreed.pearson == pytest.approx(np.corrcoef(scores, test.scores)[0, 1])
    low, high = agreed.pearson_interval
    assert low < agreed.pearson < high
    means = [each["adem"].pearson for each in found.sets.values()]
    assert found.mean["adem"].pearson == pytest.approx(np.mean(means))
