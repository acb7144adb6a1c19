"""ADEM: replies judged per second of one core, from texts to scores, and the step from vectors to scores alone.

Replies of twelve words, drawn from the words of the shipped sample, each with a context and a reference of its own that
are as long; nothing comes out of a cache.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator

import numpy as np

from benchmarks.measure import cpu_seconds
from dialeval import sample_data
from dialeval.judges.adem import SHIPPED, Encoded, Judge, load_adem, open_vectors
from dialeval.metrics.encoder import SentenceVectors

REPLIES = 300
ROWS = 200_000


def judged() -> float:
    """Replies per CPU second, by the shipped judge."""
    weights = load_adem(SHIPPED)
    encoder = open_vectors(weights.encoder, weights.tokens).encoder
    dice = np.random.default_rng(1)
    words = (sample_data.folder() / "train.txt").read_text(encoding="utf-8").split()
    responses, contexts, references = (
        [" ".join(chosen) for chosen in dice.choice(words, (REPLIES, 12)).tolist()] for _ in range(3)
    )
    Judge(weights, SentenceVectors(encoder)).score([["x"]], ["x"], [["x"]])  # weights are loaded
    alone = [[[text] for text in texts] for texts in (contexts, references)]
    return REPLIES / cpu_seconds(
        lambda: Judge(weights, SentenceVectors(encoder)).score(alone[0], responses, alone[1]), repeats=2
    )


def step() -> float:
    """Rows per CPU second from vectors to scores."""
    weights = load_adem(SHIPPED)
    dice = np.random.default_rng(0)
    context, reference, response = (
        dice.normal(0, 0.05, (ROWS, weights.dimension)).astype(np.float32) for _ in range(3)
    )
    there = np.ones(ROWS, np.bool_)
    return ROWS / cpu_seconds(lambda: weights.score(Encoded(context, reference, response, there, there)))


def figures() -> Iterator[tuple[str, str]]:
    # One core means one thread of the matrix products too, and that is settled before NumPy is loaded.
    code = "from benchmarks import adem; print(adem.judged(), adem.step())"
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True, env=environment)
    replies, rows = map(float, done.stdout.split())
    yield "replies per CPU second, encoding included", f"{replies:,.0f}"
    yield "rows per CPU second, from vectors to scores", f"{rows:,.0f}"
