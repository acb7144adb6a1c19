"""The judge of whole conversations: its features and its worst turn, on chats with a tiny judge."""

from __future__ import annotations

import json
from math import log1p
from pathlib import Path

import numpy as np
import pytest

import dialeval
from dialeval.judges.conversation import FEATURES, SHIPPED, ConversationWeights, compute_features
from dialeval.metrics.conversation import SpokenTurn
from judges.tiny_judges import tiny_dialogue_judge

TURNS = [
    SpokenTurn("user", "how do I reset my password"),
    SpokenTurn("assistant", "what is your email"),
    SpokenTurn("user", "how can I reset my password"),
    SpokenTurn("assistant", "what is your email please"),
]


def test_features_by_hand() -> None:
    found = compute_features(TURNS, np.array([3.0, 2.0]), np.array([0.4, 0.2]))
    assert dict(zip(FEATURES, found.tolist(), strict=True)) == pytest.approx(
        {
            "mean": 2.5,
            "last": 2.0,
            "continuity": 0.3,
            "user words": log1p(6),
            "self-repetition": 2 / 3,
            "user-rephrasing": 1.0,
        }
    )
    alone = compute_features(TURNS[:1], np.array([3.0]), np.array([0.4]))
    assert alone.tolist()[4:] == [0.0, 0.0], "what has no value counts as 0"


def test_the_score_is_a_weighted_sum() -> None:
    weights = ConversationWeights((1.0, 0.5), (1.0, 0.0), (2.0, 1.0))
    assert weights.score(np.array([3.0, 4.0])) == 3.0
    assert len(SHIPPED.weight) == len(SHIPPED.center) == len(SHIPPED.scale) == len(FEATURES)
    signs = dict(zip(FEATURES, np.sign(SHIPPED.weight).tolist(), strict=True))
    assert signs == {name: -1.0 if name.endswith(("repetition", "rephrasing")) else 1.0 for name in FEATURES}


def test_a_run_names_the_worst_turn(tmp_path: Path) -> None:
    chats = [
        [("user", "hello there"), ("assistant", "hi how are you"), ("user", "fine"), ("assistant", "the the the the")],
        [("user", "hello"), ("assistant", "good day")],
    ]
    path = tmp_path / "bot.jsonl"
    lines = [json.dumps({"messages": [{"role": role, "content": text} for role, text in chat]}) for chat in chats]
    path.write_text("\n".join(lines) + "\n")
    judge = tiny_dialogue_judge(tmp_path / "judge")
    result = dialeval.evaluate(path, metrics=["judge", "conversation-judge"], judge=judge)["bot"]
    scores, continuity = result["judge"].scores, result["judge/continuity"].scores
    assert scores is not None
    assert continuity is not None
    whole = compute_features([SpokenTurn(*turn) for turn in chats[0]], scores[:2], continuity[:2])
    items, worst = result["conversation-judge"].scores, result["conversation-judge/worst-turn"].scores
    assert items is not None
    assert worst is not None
    assert items[0] == pytest.approx(SHIPPED.score(whole))
    without = [SHIPPED.score(np.array([scores[rest], scores[rest], continuity[rest], *whole[3:]])) for rest in (1, 0)]
    assert worst.tolist() == [1 + int(np.argmax(without)), 1]
    assert result["conversation-judge"].level.value == "dialogue"
