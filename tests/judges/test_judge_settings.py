"""What a judge of dialogue is set to: what cannot be is refused."""

from __future__ import annotations

import pytest
from tools.judge_training.pairs import shape_within

from dialeval.judges.cross_encoder import PairShape
from dialeval.judges.judge import BreakdownScale


def test_a_pair_is_cut_to_what_an_encoder_takes() -> None:
    assert shape_within(512) == PairShape()
    small = shape_within(32)
    assert (small.context_tokens + small.response_tokens, small.turns) == (32, 3)
    with pytest.raises(ValueError, match="from 1 on"):
        PairShape(0)


@pytest.mark.parametrize(
    "given", [{"weight": -1.0}, {"weight": 11.0}, {"mean": (0.0, 0.5, 0.5)}, {"mean": (2.0, 1.0, 1.0)}]
)
def test_weights_and_shares_are_what_they_can_be(given: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="shares"):
        BreakdownScale(**given)  # type: ignore[arg-type]
