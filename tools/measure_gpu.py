"""Measure how many replies a second the shipped judge judges on a GPU.

    python tools/measure_gpu.py CORPORA_FOLDER [REPLIES]

Replies of dialogues (`*/*.jsonl.gz`), each with the three turns before it. Tokenization is included, and left out.
"""

from __future__ import annotations

import gzip
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path

import numpy as np
import torch

from dialeval.judges import judge
from dialeval.judges.judge import PairTokenizer
from dialeval.metrics.encoder_files import find_encoder

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools.judge_training.cross_training import Corpus, CrossModel, predict_heads
from tools.judge_training.pairs import continuations, rated_pairs


def read_rows(corpora: Path) -> Iterator[list[str]]:
    """Yield every turn of every dialogue with the three turns before it."""
    for file in sorted(corpora.rglob("*.jsonl.gz")):
        with gzip.open(file, "rt", encoding="utf-8") as lines:
            for line in lines:
                turns = json.loads(line)["turns"]
                yield from (turns[at - 3 : at + 1] for at in range(3, len(turns)))


def measure_judge(rows: Sequence[Sequence[str]], device: str) -> dict[str, float]:
    """Return the replies per second from texts to the values of all heads, and from word pieces."""
    weights = judge.load_judge(judge.SHIPPED)
    files = find_encoder(weights.encoder)
    tokenizer, model = PairTokenizer(files), CrossModel(files).to(device)
    model.load(weights.changes)
    marks, going_on = (tokenizer.first, tokenizer.end), continuations(files)

    def judge_rows(rows: Sequence[Sequence[str]]) -> float:
        """Judge all, and return the seconds that it took after the tokenizer."""
        pairs = rated_pairs(tokenizer, [row[:-1] for row in rows], [row[-1] for row in rows])
        corpus = Corpus(pairs, weights.shape, marks, going_on, device)
        start = time.perf_counter()
        predict_heads(model, corpus, np.arange(len(rows)))
        return time.perf_counter() - start

    judge_rows(rows[:4000])
    start = time.perf_counter()
    alone = judge_rows(rows)
    return {
        "judge: replies per second": len(rows) / (time.perf_counter() - start),
        "judge: replies per second, without the tokenizer": len(rows) / alone,
    }


def main(arguments: Sequence[str]) -> None:
    """Measure and print everything."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    rows = list(islice(read_rows(Path(arguments[0])), int(arguments[1]) if len(arguments) > 1 else 200_000))
    figures = {"replies": len(rows), "words of a reply": float(np.mean([len(row[-1].split()) for row in rows]))}
    figures |= measure_judge(rows, device)
    for name, figure in figures.items():
        sys.stdout.write(f"{name}: {figure:,.1f}\n")


if __name__ == "__main__":
    main(sys.argv[1:])
