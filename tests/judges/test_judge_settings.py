"""What a judge of dialogue is set to: what cannot be is refused."""

from __future__ import annotations

import numpy as np
import pytest
from tools.judge_training.pairs import shape_within

from dialeval.judges.cross_encoder import HEADS, PairShape
from dialeval.judges.judge import BreakdownScale, label_shares, shrink_shares


def test_a_pair_is_cut_to_what_an_encoder_takes() -> None:
    assert shape_within(512) == PairShape()
    small = shape_within(32)
    assert (small.context_tokens + small.response_tokens, small.turns) == (32, 3)
    assert PairShape() == PairShape(3, 72, 44)
    assert HEADS == {"rank": 1, "kind": 4, "rating": 1, "breakdown": 3}
    most = 1 << 24
    assert PairShape(1, 1, 1) != PairShape(most, most, most)
    for wrong in (0, most + 1):
        for place in range(3):
            with pytest.raises(ValueError, match="from 1 on"):
                PairShape(*[wrong if place == at else 1 for at in range(3)])


def test_shares_are_left_as_they_are_by_default() -> None:
    usual = BreakdownScale()
    assert (usual.weight, usual.mean, usual.cut) == (1.0, (1 / 3, 1 / 3, 1 / 3), 0.5)
    assert BreakdownScale(0.0, (1.0, 0.1, 0.1)).weight == 0
    assert BreakdownScale(10.0).weight == 10
    said = np.array([[0.5, 0.3, 0.2], [0.2, 0.3, 0.5], [np.nan] * 3])
    np.testing.assert_allclose(shrink_shares(usual, said), said)
    mean = (0.5, 0.3, 0.2)
    expected = np.sqrt(said * mean)
    np.testing.assert_allclose(
        shrink_shares(BreakdownScale(0.5, mean), said), expected / expected.sum(axis=1, keepdims=True)
    )


def test_a_turn_is_labeled_by_its_shares() -> None:
    shares = np.array([[0.6, 0.1, 0.3], [0.5, 0.3, 0.2], [0.5, 0.25, 0.25], [0.3, 0.5, 0.2], [np.nan] * 3])
    found = label_shares(BreakdownScale(), shares)
    np.testing.assert_array_equal(found[:, 0], [0, 1, 2, 1, np.nan])
    np.testing.assert_array_equal(found[:, 1:], shares)
    # The mean has four times as much of T as of X, half of which is in the shares.
    tilted = label_shares(BreakdownScale(0.5, (0.5, 0.4, 0.1), 0.3), shares)
    np.testing.assert_array_equal(tilted[:, 0], [2, 2, 2, 1, np.nan])


@pytest.mark.parametrize(
    "given", [{"weight": -1.0}, {"weight": 11.0}, {"mean": (0.0, 0.5, 0.5)}, {"mean": (2.0, 1.0, 1.0)}]
)
def test_weights_and_shares_are_what_they_can_be(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="shares"):
        BreakdownScale(**given)  # type: ignore[arg-type]
