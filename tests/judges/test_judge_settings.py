"""What a judge of dialogue is set to: what cannot be is refused."""

from __future__ import annotations

import pytest
from tools.judge_training.pairs import shape_within

from dialeval.judges.cross_encoder import HEADS, PairShape


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
