"""Fitting against the normal equations of the whole problem."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from tools.judge_training.validation import make_rated_examples

from dialeval.core.errors import SettingError
from dialeval.judges.fitting import SET_WEIGHT, AdemSettings, fit_adem, make_examples
from judges.tiny_judges import invented_ratings, tiny_vectors


def test_the_fit_is_the_solution_of_the_problem(tmp_path: Path) -> None:
    """Against the normal equations of the full problem, with outer products written out."""
    examples = make_examples(invented_ratings(), tiny_vectors(tmp_path / "e"))
    settings = AdemSettings(strength=3.0, response_strength=5.0, rank=8)
    found = fit_adem(examples, settings)
    c, r, said = (part.astype(np.float64) for part in (examples.context, examples.reference, examples.response))
    features = np.concatenate(
        [
            np.einsum("ij,ik->ijk", c, said).reshape(len(c), -1),
            np.einsum("ij,ik->ijk", r, said).reshape(len(c), -1),
            said,
        ],
        1,
    )
    z = examples.scores.copy()
    weight = np.empty(len(z))
    for each in np.unique(examples.sets):
        mine = examples.sets == each
        features[mine] -= features[mine].mean(0)
        z[mine] = (z[mine] - z[mine].mean()) / z[mine].std()
        weight[mine] = SET_WEIGHT / mine.sum()
    eye = np.concatenate([np.eye(8).ravel(), np.eye(8).ravel(), np.zeros(8)])
    term = features @ eye
    share = (weight * term * z).sum() / (weight * term * term).sum()
    penalty = np.concatenate([np.full(128, 3.0), np.full(8, 5.0)])
    left = features.T @ (weight[:, None] * features) + np.diag(penalty)
    expected = np.linalg.solve(left, features.T @ (weight * (z - share * term)))
    assert found.identity == pytest.approx(share, rel=1e-4)
    np.testing.assert_allclose(found.context_left @ found.context_right.T, expected[:64].reshape(8, 8), atol=5e-3)
    np.testing.assert_allclose(
        found.reference_left @ found.reference_right.T, expected[64:128].reshape(8, 8), atol=5e-3
    )
    np.testing.assert_allclose(found.response, expected[128:], rtol=2e-3, atol=1e-3)
    assert fit_adem(examples, settings).digest == found.digest
    for left in (found.context_left, found.reference_left):
        assert (left[np.abs(left).argmax(axis=0), np.arange(left.shape[1])] > 0).all(), "signs are the same everywhere"
    assert SET_WEIGHT == 1000


@pytest.mark.parametrize("wrong", [{"strength": 0.0}, {"response_strength": 0.0}, {"rank": -1}])
def test_settings_are_checked_one_by_one(wrong: dict[str, float]) -> None:
    with pytest.raises(SettingError):
        AdemSettings(**wrong)  # type: ignore[arg-type]
    AdemSettings(rank=0)
    assert AdemSettings() == AdemSettings(30.0, 100.0, 8)


def test_rows_of_a_shared_context_are_kept_apart(tmp_path: Path) -> None:
    ratings = invented_ratings(12)
    ratings.contexts[1][-1] = ratings.contexts[0][-1].upper() + " !"  # type: ignore[index]
    examples = make_rated_examples(ratings, tiny_vectors(tmp_path / "e"))
    first, second = examples.select_sets(["set0"]), examples.select_sets(["set1"])
    assert len(second.without_contexts_of(first)) == len(second) - 1
    assert not set(second.without_contexts_of(first).contexts.tolist()) & set(first.contexts.tolist())


def test_ratings_without_what_is_needed_are_refused(tmp_path: Path) -> None:
    ratings = invented_ratings(6)
    vectors = tiny_vectors(tmp_path / "e")
    with pytest.raises(SettingError, match="no ratings of 'taste'"):
        make_examples(ratings, vectors, quality="taste")
    bare = replace(ratings, contexts=[[]] * 6, references=[[]] * 6)
    with pytest.raises(SettingError, match="both a score and a context or a reference"):
        make_examples(bare, vectors)
    equal = replace(ratings, values={"overall": np.full(6, 3.0)})
    with pytest.raises(SettingError, match="nothing to learn"):
        fit_adem(make_examples(equal, vectors))


def test_equal_scores_without_a_scale_are_the_lowest(tmp_path: Path) -> None:
    ratings = replace(invented_ratings(3, sets=1), values={"overall": np.full(3, 7.0)}, scales=np.full((3, 2), np.nan))
    assert make_examples(ratings, tiny_vectors(tmp_path / "e")).scores.tolist() == [1, 1, 1]


def test_an_example_has_three_turns_of_context(tmp_path: Path) -> None:
    vectors, ratings = tiny_vectors(tmp_path / "e"), invented_ratings(30)
    longer = replace(ratings, contexts=[["so", "dog", *context] for context in ratings.contexts])
    usual = make_examples(longer, vectors).context
    three, two = (make_examples(longer, vectors, turns).context for turns in (3, 2))
    np.testing.assert_array_equal(usual, three)
    assert (usual != two).any()
