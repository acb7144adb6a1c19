"""Attacks: what is said instead, and what is reported."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dialeval.core.errors import SettingError
from dialeval.judges.card import ATTACKS
from dialeval.judges.validation import attack
from judges.tiny_judges import invented_ratings, tiny_judge


def test_attacks(tmp_path: Path) -> None:
    judge = tiny_judge(tmp_path / "e")
    ratings = invented_ratings(40)
    found = {each.name: each for each in attack(judge, ratings.contexts, ratings.responses, ratings.references)}
    assert list(found) == list(ATTACKS)
    assert all(each.rows == 40 for each in found.values())
    real = judge.score(ratings.contexts, ratings.responses, ratings.references)
    turned = [" ".join(reversed(text.split())) for text in ratings.responses]
    other = judge.score(ratings.contexts, turned, ratings.references)
    each = found["reversed"]
    assert each.real == pytest.approx(real.mean())
    assert each.mean == pytest.approx(other.mean())
    assert each.not_worse == pytest.approx((other >= real).mean())
    assert each.correlation == pytest.approx(np.corrcoef(real, other)[0, 1])
    bare = {each.name for each in attack(judge, ratings.contexts, ["word"] * 40, [[]] * 40)}
    assert bare == {"dull", "context"}, "what cannot be tried is left out"
    unasked = {each.name for each in attack(judge, [[]] * 40, ratings.responses, ratings.references)}
    assert unasked == {"reversed", "dull", "random", "reference"}
    with pytest.raises(SettingError, match="no row has a context or a reference"):
        attack(judge, [[]] * 40, ratings.responses, [[]] * 40)
