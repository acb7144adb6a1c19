"""Conversation judge: predict how people rate a whole conversation, from the judge's scores of its replies.

    conversation-judge              the score, in standard deviations of ratings; 0 is an average conversation
    conversation-judge/worst-turn   the number of the reply without which the score would be highest, from 1 on

    score = sum over features of weight (value - center) / scale

| feature | value |
|---|---|
| mean, last | of `judge` over the replies |
| continuity | mean of `judge/continuity` over the replies |
| user words | log(1 + mean number of words in a user turn) |
| self-repetition, user-rephrasing | those of `dialeval.metrics.conversation`; 0 where they have no value |

Weights are those of a ridge regression on six sets of rated conversations, which count equally. Ratings and features
are standardized within each set, so that neither the scale of a set nor a difference between sets is learned.
`tools/fit_conversation_judge.py` computes them and also leaves out each set in turn.

The number of turns is no feature, although people rate longer chats higher: a system could win by going on.

What it is good for: ordering conversations of one kind, and finding the replies that hurt. What it is not: a judge of
whether a task was done. On six sets left out in turn its Spearman correlation with ratings is
0.208 on the mean, that of the mean of `judge` 0.205 (docs/conversations.md): report both.

Edge cases: a dialogue without a scored reply has no value. A dialogue of one reply has that reply as its worst turn.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import inf, log1p, nan

import numpy as np

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.exact import Moments
from dialeval.core.fold import Bounds, Estimate, Level, Metric, Partial
from dialeval.judges.judge import judge_batch
from dialeval.metrics.conversation import SelfRepetition, SpokenTurn, UserRephrasing, list_conversations

FEATURES = ("mean", "last", "continuity", "user words", "self-repetition", "user-rephrasing")


@dataclass(frozen=True)
class ConversationWeights:
    """What each feature counts, and what it is measured against; in the order of `FEATURES`."""

    weight: tuple[float, ...]
    center: tuple[float, ...]
    scale: tuple[float, ...]

    def score(self, features: Floats) -> float:
        """Return the score of a conversation."""
        return float((features - self.center) / self.scale @ np.array(self.weight))


SHIPPED = ConversationWeights(
    weight=(0.0919, 0.0399, 0.0963, 0.0496, -0.0348, -0.0137),
    center=(3.2231, 3.1177, 0.3504, 2.0716, 0.0987, 0.0189),
    scale=(0.2226, 0.4086, 0.0152, 0.3156, 0.0966, 0.0634),
)
"""As `tools/fit_conversation_judge.py` printed them."""

ConversationState = Mapping[str, Moments]


def compute_features(turns: Sequence[SpokenTurn], scores: Floats, continuity: Floats) -> Floats:
    """Return the features of a conversation; `scores` and `continuity` are those of its replies that have a score."""
    users = [len(turn.text.split()) for turn in turns if turn.speaker == "user"]
    texts = (SelfRepetition().value(turns), UserRephrasing().value(turns))
    words = log1p(sum(users) / len(users)) if users else 0.0
    return np.array([scores.mean(), scores[-1], continuity.mean(), words, *np.nan_to_num(texts)])


@dataclass(frozen=True)
class ConversationJudge(Metric[ConversationState]):
    """A learned judgment of a whole conversation, from the judge's scores of its replies."""

    family = "conversation-judge"
    subject = inputs.CONTEXT
    level = Level.DIALOGUE
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT, inputs.DIALOGUE_JUDGE})
    wants = frozenset({inputs.REFERENCE, inputs.ROLES})
    costly = True
    better = "higher"

    @property
    def _worst(self) -> str:
        return f"{self.name}/worst-turn"

    def bounds_of(self, key: str) -> Bounds:
        return (1.0, inf) if key.endswith("/worst-turn") else self.bounds

    def empty(self) -> ConversationState:
        return {self.name: Moments(), self._worst: Moments()}

    def partial(self, batch: Batch) -> Partial[ConversationState]:
        verdicts = judge_batch(batch)
        values = [
            _judge(turns, verdicts.score[start:stop], verdicts.breakdown[start:stop, 0])
            for turns, (start, stop) in zip(list_conversations(batch), pairwise(batch.dialogues.tolist()), strict=True)
        ]
        columns = np.array(values, np.float64).reshape(-1, 2)
        items = {self.name: columns[:, 0].copy(), self._worst: columns[:, 1].copy()}
        return Partial({key: Moments.of(column) for key, column in items.items()}, items)

    def merge(self, left: ConversationState, right: ConversationState) -> ConversationState:
        return {key: left[key] + right[key] for key in left}

    def finish(self, state: ConversationState) -> Mapping[str, Estimate]:
        return {
            key: replace(Estimate.of_moments(moments, self.bounds_of(key)), level=self.level)
            for key, moments in state.items()
        }


def _judge(turns: Sequence[SpokenTurn], scores: Floats, continuity: Floats) -> tuple[float, float]:
    """Return the score of a conversation and the number of its worst reply."""
    scored = np.flatnonzero(~np.isnan(scores))
    if not len(scored):
        return nan, nan
    features = compute_features(turns, scores[scored], continuity[scored])
    without = []
    for reply in scored.tolist() if len(scored) > 1 else ():
        rest = scored[scored != reply]
        changed = np.array([scores[rest].mean(), scores[rest][-1], continuity[rest].mean()])
        without.append(SHIPPED.score(np.concatenate([changed, features[3:]])))
    return SHIPPED.score(features), float(scored[int(np.argmax(without))] if without else scored[0]) + 1
