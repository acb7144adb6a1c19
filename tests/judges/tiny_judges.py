"""Invented ratings and small judges for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from tools.judge_training.pairs import in_eight_bits

from dialeval.io.ratings import Ratings
from dialeval.judges.adem import AdemWeights, Judge
from dialeval.judges.judge import HEADS, DialogueJudge, JudgeWeights, PairShape, Scale, list_trained_names, name_weights
from dialeval.metrics.encoder import Encoder, SentenceVectors
from dialeval.metrics.encoder_files import find_encoder
from tiny_encoder import HIDDEN, WORDS, write_encoder

CONSTANTS = {"both": (-2.0, 1.1), "context": (-1.0, 0.9), "reference": (-1.5, 0.7)}


def tiny_vectors(folder: Path, tokens: int = 32) -> SentenceVectors:
    return SentenceVectors(Encoder(find_encoder(write_encoder(folder)), tokens))


def tiny_weights(dimension: int = HIDDEN, rank: int = 2, seed: int = 0) -> AdemWeights:
    dice = np.random.default_rng(seed)
    one, two, three, four = (np.float32(dice.normal(0, 0.2, (dimension, rank))).astype(np.float64) for _ in range(4))
    response = np.float32(dice.normal(0, 0.2, dimension)).astype(np.float64)
    return AdemWeights("adem", 0.75, one, two, three, four, response, CONSTANTS)


def tiny_judge(folder: Path) -> Judge:
    return Judge(tiny_weights(), tiny_vectors(folder))


SHAPE = PairShape(3, 24, 16)
"""As much of a pair as the tiny encoder has positions for."""


def tiny_changes(folder: Path, seed: int = 0) -> dict[str, Any]:
    """Random changes to the layers of the encoder in a folder, and random heads."""
    dice = np.random.default_rng(seed)
    base = name_weights(find_encoder(folder))
    changes: dict[str, Any] = {}
    for name in list_trained_names(base):
        if base[name].ndim == 1:
            changes[name] = dice.normal(0, 0.1, base[name].shape).astype(np.float16)
            continue
        for side, rows in zip(("left", "right"), base[name].shape, strict=True):
            factor = in_eight_bits(dice.normal(0, 0.3, (rows, 2)).astype(np.float32))
            changes[f"{name}.{side}"], changes[f"{name}.{side}.scale"] = factor
    changes["heads.weight"] = dice.normal(size=(sum(HEADS.values()), 2 * HIDDEN)).astype(np.float32)
    changes["heads.bias"] = dice.normal(size=sum(HEADS.values())).astype(np.float32)
    return changes


def tiny_dialogue_judge(folder: Path) -> DialogueJudge:
    encoder = write_encoder(folder / "encoder")
    scale = Scale(0.2, 1.5, -0.1, 0.4, -0.3, 0.3)
    digest = find_encoder(encoder).digest
    JudgeWeights(tiny_changes(encoder), scale, SHAPE, "encoder", digest, facts={"data": []}).save(folder / "judge")
    return DialogueJudge(folder / "judge", encoder)


def invented_ratings(rows: int = 120, sets: int = 3, seed: int = 0) -> Ratings:
    """Replies of which those that repeat words of the reference are liked."""
    dice = np.random.default_rng(seed)
    words = WORDS[4:-1]

    def text() -> str:
        return " ".join(dice.choice(words, 5).tolist())

    references = [text() for _ in range(rows)]
    good = dice.random(rows) < 0.5
    responses = [
        " ".join([*there.split()[:4], "dog"]) if like else text() for there, like in zip(references, good, strict=True)
    ]
    values = np.where(good, 4.0, 2.0) + dice.normal(0, 0.3, rows)
    names = [f"set{row % sets}" for row in range(rows)]
    return Ratings(
        names,
        [f"{name}/{row}" for row, name in enumerate(names)],
        [None] * rows,
        [[text(), f"{text()} {row}"] for row in range(rows)],
        responses,
        [[reference] for reference in references],
        ["turn"] * rows,
        [None] * rows,
        np.tile([1.0, 5.0], (rows, 1)),
        {"overall": [np.array([value]) for value in values]},
        {"overall": values},
    )
