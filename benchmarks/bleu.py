"""Speed of bleu-1 to bleu-4 against nltk, side by side: `python benchmarks/bleu.py`.

Both get the same kind of text, about twelve words a line with Zipf's distribution, in which a response shares a stretch
of its words with its reference. nltk has one call of `sentence_bleu` per pair, for bleu-4 alone, on text that is split
before the clock starts. The figures are pairs per CPU second of one thread, best of three.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

from dialeval.core.columns import Batch, Column, RaggedColumn, TextColumn
from dialeval.core.needs import Need
from dialeval.metrics.overlap.bleu import Bleu
from dialeval.metrics.overlap.statistics import tokens
from dialeval.text.tokenise import DEFAULT, tokens
from dialeval.text.vocabulary import Vocabulary

PAIRS = 200_000
NLTK_PAIRS = 3_000
BATCH = 20_000
WORDS = 20_000
MEAN_LENGTH = 12
REPEATS = 3

METRICS = [Bleu(n=n) for n in (1, 2, 3, 4)]
WANTED = {"split before": 200, "splitting included": 50}


def pairs(count: int, seed: int = 7) -> tuple[list[str], list[str]]:
    """Responses and references; the first words of a response, none up to all, stand in its reference too."""
    random = np.random.default_rng(seed)
    chances = 1 / np.arange(1, WORDS + 1)
    words = np.array([f"w{number}" for number in range(WORDS)])
    responses, references = [], []
    for _ in range(count // BATCH + 1):
        sizes = random.poisson(MEAN_LENGTH - 1, (BATCH, 2)) + 1
        drawn = words[random.choice(WORDS, (BATCH, 2, 4 * MEAN_LENGTH), p=chances / chances.sum())]
        shared = (random.random(BATCH) ** 2 * sizes.min(axis=1)).astype(int)
        for row, (size, reference_size) in enumerate(sizes):
            response, reference = drawn[row, 0, :size].tolist(), drawn[row, 1, :reference_size].tolist()
            responses.append(" ".join(response))
            references.append(" ".join(response[: shared[row]] + reference[shared[row] :]))
    return responses[:count], references[:count]


def batches(responses: list[str], references: list[str]) -> list[Batch]:
    made = []
    vocabulary = Vocabulary()
    for start in range(0, len(responses), BATCH):
        texts = TextColumn.from_strings(responses[start : start + BATCH])
        lists = RaggedColumn.single(TextColumn.from_strings(references[start : start + BATCH]))
        columns: dict[Need, Column] = {Need.RESPONSE: texts, Need.REFERENCE: lists}
        made.append(Batch(len(texts), columns, vocabulary, np.arange(len(texts) + 1)))
    return made


def split(made: list[Batch]) -> list[Batch]:
    for batch in made:
        tokens(batch, Need.RESPONSE, DEFAULT)
        tokens(batch, DEFAULT)
    return made


def score(made: list[Batch]) -> float:
    """The mean of bleu-4, all four metrics having been computed."""
    scores = [metric.score(batch) for batch in made for metric in METRICS]
    return float(np.concatenate(scores[len(METRICS) - 1 :: len(METRICS)]).mean())


def by_nltk(responses: list[list[str]], references: list[list[str]]) -> float:
    smooth = SmoothingFunction().method4
    scores = [
        sentence_bleu([reference], response, (0.25, 0.25, 0.25, 0.25), smooth)
        for response, reference in zip(responses, references, strict=True)
    ]
    return float(np.mean(scores))


def seconds(prepare: Callable[[], list[Batch]]) -> float:
    times = []
    for _ in range(REPEATS):
        made = prepare()
        begin = time.process_time()
        score(made)
        times.append(time.process_time() - begin)
    return min(times)


def main() -> None:
    responses, references = pairs(PAIRS)
    few = [[text.split() for text in texts[:NLTK_PAIRS]] for texts in (responses, references)]
    ours = score(batches(responses[:NLTK_PAIRS], references[:NLTK_PAIRS]))  # also loads or compiles the kernels

    begin = time.process_time()
    theirs = by_nltk(*few)
    nltk_rate = NLTK_PAIRS / (time.process_time() - begin)
    print(f"mean bleu-4 of {NLTK_PAIRS:,} pairs: dialeval {ours:.12f}, nltk {theirs:.12f}")
    print(f"nltk, bleu-4, split before:                   {nltk_rate:12,.0f} pairs per CPU second")

    rates = {
        "split before": PAIRS / seconds(lambda: split(batches(responses, references))),
        "splitting included": PAIRS / seconds(lambda: batches(responses, references)),
    }
    for name, rate in rates.items():
        ratio = rate / nltk_rate
        print(
            f"dialeval, bleu-1..4, {name + ':':<24} {rate:12,.0f} pairs per CPU second, {ratio:4.0f} times nltk", end=""
        )
        print(f" (wanted: {WANTED[name]})")


if __name__ == "__main__":
    main()
