"""Fit the conversation judge, and measure it on each set of rated conversations without that set.

    python tools/fit_conversation_judge.py ../shared/data/ratings --cache work/

Reads the sets of `SETS` (one JSON object per line, gzip), scores every reply with the shipped judge, and prints the
weights for `dialeval.judges.conversation.SHIPPED`, then a table: Spearman correlation with the ratings, with 95%
bootstrap intervals over conversations, of the judge without the set, of the mean of `judge` over the replies, and of
the number of replies. Sets that rate single turns (uss_*) have the mean of a dialogue's ratings, for 300 dialogues
each. At most 60 replies of a conversation are scored. The judge's scores are kept in the folder of `--cache`: they take
an hour of processor time.
"""

from __future__ import annotations

import argparse
import gzip
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import spearmanr

from dialeval.core.arrays import Floats
from dialeval.judges.conversation import FEATURES, ConversationWeights, compute_features
from dialeval.judges.judge import DialogueJudge
from dialeval.metrics.conversation import SpokenTurn

SETS = ("dstc9_interactive", "convai2_dialog", "ji2022_dialog", "uss_mwoz", "uss_sgd", "uss_redial")
DIALOGUES, MOST_REPLIES, CONTEXT_TURNS = 300, 60, 3
RIDGE = 0.1
"""Of standardized features; chosen with the features on all sets but ji2022_dialog."""
RESAMPLES, SEED = 1000, 0


class Conversation(NamedTuple):
    """A conversation: its mean rating, and each reply of the system with what was said before."""

    rating: float
    replies: Sequence[tuple[Sequence[str], str]]


class RatedSet(NamedTuple):
    """The features, ratings and numbers of replies of a set."""

    features: Floats
    ratings: Floats
    replies: Floats


def read_set(path: Path) -> Iterator[Conversation]:
    """Read the conversations of a set."""
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    if path.name.startswith("uss"):
        yield from _read_turns(rows)
        return
    for row in rows:
        turns = [(turn["speaker"], turn["text"]) for turn in row["context"]]
        user = turns[-1][0] if len({speaker for speaker, _ in turns}) > 1 else None
        own = [at for at, (speaker, _) in enumerate(turns) if (speaker != user if user else (len(turns) - at) % 2 == 0)]
        texts = [*(text for _, text in turns), row["response"]]
        replies = [(texts[:at], texts[at]) for at in (*own, len(turns))]
        yield Conversation(float(np.mean(row["scores"]["overall"])), replies[:MOST_REPLIES])


def _read_turns(rows: Sequence[Any]) -> Iterator[Conversation]:
    """Put rated turns together to conversations."""
    dialogues: dict[str, list[Any]] = {}
    for row in rows:
        dialogues.setdefault(row["dialog_id"].rpartition("_")[0], []).append(row)
    names = sorted(dialogues)
    for at in sorted(np.random.default_rng(SEED).permutation(len(names))[:DIALOGUES].tolist()):
        own = sorted(dialogues[names[at]], key=lambda row: int(row["dialog_id"].rpartition("_")[2]))
        rating = float(np.mean([np.mean(row["scores"]["overall"]) for row in own]))
        yield Conversation(rating, [([turn["text"] for turn in row["context"]], row["response"]) for row in own])


def measure(path: Path, cache: Path | None) -> RatedSet:
    """Return the features and ratings of a set."""
    conversations = list(read_set(path))
    flat = [(context[-CONTEXT_TURNS:], reply) for each in conversations for context, reply in each.replies]
    kept = None if cache is None else cache / f"{path.name.partition('.')[0]}.npy"
    if kept is not None and kept.exists():
        values = np.load(kept)
    else:
        judge = DialogueJudge()
        parts = []
        for start in range(0, len(flat), 256):
            contexts, responses = zip(*flat[start : start + 256], strict=True)
            verdicts = judge.verdicts(list(contexts), list(responses), [()] * len(responses))
            parts.append(np.column_stack([verdicts.score, verdicts.breakdown[:, 0]]))
        values = np.concatenate(parts)
        if kept is not None:
            np.save(kept, values)
    features, ratings, replies, first = [], [], [], 0
    for each in conversations:
        own = values[first : first + len(each.replies)]
        first += len(each.replies)
        own = own[~np.isnan(own[:, 0])]
        if len(own):
            turns = [turn for context, reply in each.replies for turn in _turns(context, reply)]
            features.append(compute_features(turns, own[:, 0], own[:, 1]))
            ratings.append(each.rating)
            replies.append(len(each.replies))
    return RatedSet(np.array(features), np.array(ratings), np.array(replies, np.float64))


def _turns(context: Sequence[str], reply: str) -> list[SpokenTurn]:
    return [*(SpokenTurn("user", text) for text in context[-1:]), SpokenTurn("assistant", reply)]


def fit(sets: Sequence[RatedSet]) -> ConversationWeights:
    """Fit the weights to some sets, which count equally."""
    centers = np.mean([each.features.mean(axis=0) for each in sets], axis=0)
    scales = np.mean([each.features.std(axis=0) for each in sets], axis=0)
    products, targets = RIDGE * len(sets) * np.eye(len(FEATURES)), np.zeros(len(FEATURES))
    for each in sets:
        spread = each.features.std(axis=0)
        own = (each.features - each.features.mean(axis=0)) / np.where(spread > 0, spread, 1)
        rated = (each.ratings - each.ratings.mean()) / each.ratings.std()
        products, targets = products + own.T @ own / len(own), targets + own.T @ rated / len(own)
    found = np.linalg.solve(products, targets)
    return ConversationWeights(
        *(tuple(round(float(value), 4) for value in column) for column in (found, centers, scales))
    )


def correlate(predicted: Floats, ratings: Floats) -> tuple[float, float, float]:
    """Return Spearman's correlation and its interval."""
    rng = np.random.default_rng(SEED)
    resampled = []
    for _ in range(RESAMPLES):
        rows = rng.integers(0, len(ratings), len(ratings))
        resampled.append(spearmanr(predicted[rows], ratings[rows])[0])
    low, high = np.quantile(resampled, [0.025, 0.975])
    return float(spearmanr(predicted, ratings)[0]), float(low), float(high)


def main() -> None:
    """Print the weights and the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("ratings", type=Path)
    parser.add_argument("--cache", type=Path)
    given = parser.parse_args()
    sets = {name: measure(given.ratings / f"{name}.jsonl.gz", given.cache) for name in SETS}
    print(fit(list(sets.values())))
    print("\n| set | conversations | conversation-judge | mean of judge | number of replies |\n|---|---|---|---|---|")
    means = np.zeros(3)
    for name, own in sets.items():
        others = fit([each for other, each in sets.items() if other != name])
        judged = np.array([others.score(row) for row in own.features])
        found = [correlate(values, own.ratings) for values in (judged, own.features[:, 0], own.replies)]
        means += [value / len(sets) for value, _, _ in found]
        cells = [f"{value:.3f} [{low:.3f}, {high:.3f}]" for value, low, high in found]
        print(f"| {name} | {len(own.ratings):,} | {' | '.join(cells)} |")
    print(f"| mean | | {' | '.join(f'{value:.3f}' for value in means)} |")


if __name__ == "__main__":
    main()
