"""What a judge of dialogue is set to: how much it reads, and how what its heads say becomes scores and labels.

Plain data, which the judge uses and `judge.json` holds; see `schemas`.
"""

from __future__ import annotations

from dataclasses import dataclass

TURNS = 3
CONTEXT_TOKENS = 72
"""Word pieces of a context that count, with [CLS] and every [SEP]."""
RESPONSE_TOKENS = 44
"""Word pieces of a response that count, with its [SEP]."""
_MOST = 1 << 24


@dataclass(frozen=True)
class PairShape:
    """How much of a pair is read."""

    turns: int = TURNS
    context_tokens: int = CONTEXT_TOKENS
    response_tokens: int = RESPONSE_TOKENS

    def __post_init__(self) -> None:
        if not all(1 <= number <= _MOST for number in (self.turns, self.context_tokens, self.response_tokens)):
            raise ValueError("turns and tokens are whole numbers from 1 on")

    @classmethod
    def within(cls, most: int) -> PairShape:
        """Return the usual shape, or a smaller one for an encoder that takes fewer tokens."""
        context = min(CONTEXT_TOKENS, most * CONTEXT_TOKENS // (CONTEXT_TOKENS + RESPONSE_TOKENS))
        return cls(TURNS, context, min(RESPONSE_TOKENS, most - context))


@dataclass(frozen=True)
class Scale:
    """From what the heads say to the score: the weights of rank and closest reference, and the curve onto the scale."""

    rank: float
    closest: float
    alpha: float
    beta: float
    alpha_closest: float
    beta_closest: float


@dataclass(frozen=True)
class BreakdownScale:
    """From what the head says to shares of O, T and X, and to a label; the defaults leave the shares as they are.

    `weight`: how much the head counts next to the mean shares (`mean`). `cut`: the threshold of T
    and X together from which on a turn is labeled T or X.
    """

    weight: float = 1.0
    mean: tuple[float, float, float] = (1 / 3, 1 / 3, 1 / 3)
    cut: float = 0.5

    def __post_init__(self) -> None:
        if not 0 <= self.weight <= 10 or not all(0 < share <= 1 for share in self.mean):
            raise ValueError("the weight is 0 to 10, and shares are above 0")
