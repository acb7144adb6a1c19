"""The paper's recipe."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.weights import load
from metrics.learned.judges import invented_ratings, tiny_vectors


def test_the_papers_recipe_gives_the_same_twice(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from dialeval.metrics.learned.training.paper import PaperSettings, fit_paper

    examples = examples_of(invented_ratings(), tiny_vectors(tmp_path / "e"))
    settings = PaperSettings(components=4, epochs=5)
    one, other = fit_paper(examples, settings), fit_paper(examples, settings)
    assert one.digest == other.digest
    assert one.context_left.shape == (8, 4)
    assert load(one.save(tmp_path / "j")).kind == "paper"
