"""Recipes: each kind is its own fit; what is no recipe is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from dialeval.core.errors import SettingError
from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.training.fitting import AdemSettings, fit_adem, fit_identity
from dialeval.metrics.learned.training.recipe import Recipe
from metrics.learned.judges import invented_ratings, tiny_vectors


def test_each_kind_is_its_own_fit(tmp_path: Path) -> None:
    examples = examples_of(invented_ratings(60), tiny_vectors(tmp_path / "e"))
    recipe = Recipe(adem=AdemSettings(strength=2.0))
    assert recipe.fit(examples).digest == fit_adem(examples, AdemSettings(strength=2.0)).digest
    assert recipe.fit(examples, "identity").digest == fit_identity(examples).digest
    assert Recipe("identity").fit(examples).kind == "identity"


def test_what_is_no_recipe() -> None:
    with pytest.raises(SettingError, match="one of identity, adem, paper, not 'odd'"):
        Recipe("odd")
    with pytest.raises(SettingError, match="at least one turn"):
        Recipe(turns=0)
    Recipe(turns=1)
