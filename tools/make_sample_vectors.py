"""Make the word vectors of the shipped sample out of the sample's own texts: `python tools/make_sample_vectors.py`.

Positive pointwise mutual information of words within two words of each other, by a singular value decomposition.
They are good enough to show the embedding metrics at work on the sample and for nothing else.
"""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from dialeval.core.arrays import Floats

SAMPLE = Path(__file__).parent.parent / "src" / "dialeval" / "sample"
DIMENSION = 12
REACH = 2


def vectors(texts: list[list[str]]) -> dict[str, Floats]:
    """A vector for every word of the texts."""
    words = sorted({word for text in texts for word in text})
    number = {word: index for index, word in enumerate(words)}
    near: Counter[tuple[int, int]] = Counter()
    for text in texts:
        for at, word in enumerate(text):
            for other in text[max(0, at - REACH) : at]:
                near[number[word], number[other]] += 1
                near[number[other], number[word]] += 1
    counts = np.zeros((len(words), len(words)))
    for (row, column), count in near.items():
        counts[row, column] = count
    share = counts.sum(axis=1) / counts.sum()
    with np.errstate(divide="ignore", invalid="ignore"):
        information = np.log(counts / counts.sum() / np.outer(share, share))
    left, strengths, _ = np.linalg.svd(np.where(counts > 0, np.maximum(information, 0), 0))
    made = left[:, :DIMENSION] * np.sqrt(strengths[:DIMENSION])
    made *= np.sign(made[np.abs(made).argmax(axis=0), range(DIMENSION)])  # the decomposition leaves signs open
    return dict(zip(words, made, strict=True))


def main() -> None:
    """Write the vectors beside the texts."""
    files = ["train.txt", "references.txt", "contexts.txt"]
    texts = [line.split() for name in files for line in (SAMPLE / name).read_text(encoding="utf-8").splitlines()]
    lines = [f"{word} {' '.join(f'{value:.3f}' for value in vector)}\n" for word, vector in vectors(texts).items()]
    (SAMPLE / "vectors.txt").write_text("".join(lines), encoding="utf-8")
    sys.stdout.write(f"{len(lines)} words\n")


if __name__ == "__main__":
    main()
