"""Examples: scales, shared contexts, and ratings that are no examples."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.training.fitting import fit_adem
from metrics.learned.judges import invented_ratings, tiny_vectors


def test_rows_of_a_shared_context_are_kept_apart(tmp_path: Path) -> None:
    ratings = invented_ratings(12)
    ratings.contexts[1][-1] = ratings.contexts[0][-1].upper() + " !"  # type: ignore[index]
    examples = examples_of(ratings, tiny_vectors(tmp_path / "e"))
    first, second = examples.of_sets(["set0"]), examples.of_sets(["set1"])
    assert len(second.without(first)) == len(second) - 1
    assert not set(second.without(first).contexts.tolist()) & set(first.contexts.tolist())


def test_ratings_without_what_is_needed_are_refused(tmp_path: Path) -> None:
    ratings = invented_ratings(6)
    vectors = tiny_vectors(tmp_path / "e")
    with pytest.raises(SettingError, match="nobody rated 'taste'"):
        examples_of(ratings, vectors, quality="taste")
    bare = replace(ratings, contexts=[[]] * 6, references=[[]] * 6)
    with pytest.raises(SettingError, match="both a score and a context or a reference"):
        examples_of(bare, vectors)
    equal = replace(ratings, values={"overall": np.full(6, 3.0)})
    with pytest.raises(SettingError, match="nothing to learn"):
        fit_adem(examples_of(equal, vectors))


def test_scores_are_brought_to_the_scale(tmp_path: Path) -> None:
    vectors = tiny_vectors(tmp_path / "e")
    ratings = invented_ratings(4, sets=2)
    values = np.array([0.0, 10.0, 50.0, 30.0])
    scales = np.array([[0.0, 100.0], [np.nan, np.nan], [0.0, 100.0], [np.nan, np.nan]])
    rated = replace(ratings, values={"overall": values, "taste": values}, scales=scales)
    assert examples_of(rated, vectors).scores.tolist() == [1.0, 1.0, 3.0, 5.0], "stated, or the extremes of the set"
    assert examples_of(rated, vectors, quality="taste").scores.tolist() == [1.0, 1.0, 5.0, 5.0]
    values[1] = np.nan
    assert examples_of(rated, vectors).rows.tolist() == [0, 2, 3]


def test_equal_scores_without_a_scale_are_the_lowest(tmp_path: Path) -> None:
    ratings = replace(invented_ratings(3, sets=1), values={"overall": np.full(3, 7.0)}, scales=np.full((3, 2), np.nan))
    assert examples_of(ratings, tiny_vectors(tmp_path / "e")).scores.tolist() == [1, 1, 1]


def test_rows_without_a_context_share_that_of_their_dialogue(tmp_path: Path) -> None:
    ratings = invented_ratings(5, sets=1)
    contexts = [["x", "Same."], ["y", "same"], [], [], ["same", "!?"]]
    changed = replace(ratings, contexts=contexts, dialogues=["d1", "d2", "d3", "d3", "d5"])
    examples = examples_of(changed, tiny_vectors(tmp_path / "e"))
    assert examples.contexts.tolist() == [0, 0, 1, 1, 2]
