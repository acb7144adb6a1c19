"""BLEU: bleu-1 to bleu-4 of pairs, against nltk; corpus BLEU and chrF, against sacreBLEU; chrF and ROUGE-L, to BLEU.

Text of about twelve words a line in which a response shares a stretch of words with its reference. nltk makes one call
of `sentence_bleu` per pair, for bleu-4 alone, on text that is split before the clock starts. sacreBLEU gets lines as
people write them, with its default tokenizer, and remembers none of them. The costs of corpus chrF and of ROUGE-L are
also put to that of corpus BLEU, on the rows of `benchmarks.responses`: with the splitting that each does by default (of
BLEU: sacreBLEU's), and with words and characters that are there before.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu
from sacrebleu.metrics import BLEU, CHRF

from benchmarks.measure import cpu_seconds
from benchmarks.responses import inputs, read
from benchmarks.texts import lines, written_lines
from benchmarks.tokenizing import with_empty_memory
from dialeval.core import inputs as column
from dialeval.core.batch import Batch
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.metrics.bleu import Bleu
from dialeval.metrics.chrf import Chrf
from dialeval.metrics.rouge import RougeL
from dialeval.text.tokenizers import tokens
from dialeval.text.vocabulary import Vocabulary

PAIRS, NLTK_PAIRS, SACRE_PAIRS = 200_000, 3_000, 5_000
BATCH = 20_000
METRICS = [Bleu(n=n) for n in (1, 2, 3, 4)]
CORPUS_BLEU, CORPUS_CHRF = Bleu(per="corpus", tokenizer="13a"), Chrf(per="corpus")
COMPARED: dict[str, Chrf | RougeL] = {"chrF": CORPUS_CHRF, "ROUGE-L": RougeL()}
SPLIT = ("tokens", "characters")
"""What the names of a batch's split texts begin with."""
COPIES = 10
ROUNDS = 5


def pairs() -> tuple[list[str], list[str]]:
    """Responses and references; the first words of a response, none up to all, stand in its reference too."""
    dice = np.random.default_rng(7)
    responses, others = (
        [
            line.split()[: int(length)]
            for line, length in zip(lines(PAIRS, seed), dice.integers(6, 13, PAIRS), strict=True)
        ]
        for seed in (1, 2)
    )
    kept = (dice.random(PAIRS) ** 2 * 12).astype(int)
    references = [one[:n] + other[n:] for one, other, n in zip(responses, others, kept, strict=True)]
    return [" ".join(words) for words in responses], [" ".join(words) for words in references]


def batches(responses: list[str], references: list[str]) -> list[Batch]:
    """The pairs as the engine would hand them to metrics."""
    vocabulary = Vocabulary()
    made = []
    for start in range(0, len(responses), BATCH):
        texts = TextColumn.from_strings(responses[start : start + BATCH])
        lists = RaggedColumn.from_texts(TextColumn.from_strings(references[start : start + BATCH]))
        made.append(
            Batch(len(texts), {column.RESPONSE: texts, column.REFERENCE: lists}, vocabulary, np.arange(len(texts) + 1))
        )
    return made


def forget(made: list[Batch], split: bool) -> None:
    """Let batches be new ones, but for their words and characters if these are split before."""
    for batch in made:
        for key in [key for key in batch.kept if not (split and isinstance(key, tuple) and key[0] in SPLIT)]:
            del batch.kept[key]


def scored(made: list[Batch], split: bool) -> float:
    """The mean of bleu-4, all four having been computed; without `split` the texts are split anew."""
    forget(made, split)
    for batch in made:
        for need in (column.RESPONSE, column.REFERENCE):
            tokens(batch, need)
    return float(np.mean([[metric.score(batch).mean() for metric in METRICS][-1] for batch in made]))


def by_nltk(responses: list[list[str]], references: list[list[str]]) -> float:
    """The mean of bleu-4."""
    smooth = SmoothingFunction().method4
    both = zip(responses, references, strict=True)
    return float(np.mean([sentence_bleu([there], here, (0.25,) * 4, smooth) for here, there in both]))


def corpus_of(metric: Bleu | Chrf, responses: list[str], references: list[str]) -> float:
    """The value of all pairs together, from texts that are not split."""
    state = metric.empty()
    for batch in batches(responses, references):
        state = metric.merge(state, metric.partial(batch).state)
    return metric.finish(state)[metric.name].mean


def against_sacrebleu() -> Iterator[tuple[str, str]]:
    """Corpus figures of both programs."""
    here, there = written_lines(SACRE_PAIRS, 1), written_lines(SACRE_PAIRS, 2)
    for name, metric, oracle in (
        ("corpus BLEU, 13a", CORPUS_BLEU, lambda: BLEU(force=True)),
        ("corpus chrF", CORPUS_CHRF, CHRF),
    ):

        def theirs(oracle: Callable[[], Any] = oracle) -> float:
            made = with_empty_memory(oracle())
            return float(made.corpus_score(here, [there]).score) / 100

        def ours(metric: Bleu | Chrf = metric) -> float:
            return corpus_of(metric, here, there)

        assert abs(ours() - theirs()) < 1e-12
        slow, fast = cpu_seconds(theirs), cpu_seconds(ours)
        yield (
            f"pairs per CPU second, {name}, splitting included",
            f"{SACRE_PAIRS / fast:,.0f}, {slow / fast:.0f} times sacreBLEU",
        )


def to_bleu() -> Iterator[tuple[str, str]]:
    """What chrF and ROUGE-L cost, as a share of what BLEU costs on the same rows."""
    responses, given = inputs()
    references = read(given["references"])
    rows = [pair for path in sorted(responses.iterdir()) for pair in zip(read(path), references, strict=True)]
    made = batches(*([pair[side] for pair in rows * COPIES] for side in (0, 1)))
    for split, name in ((False, "splitting included"), (True, "split before")):

        def cost(metric: Bleu | Chrf | RougeL, split: bool = split) -> float:
            forget(made, split)
            return cpu_seconds(lambda: [metric.partial(batch) for batch in made], 1)

        # Side by side, round by round: whatever else the machine does meets all of them.
        rounds = [(cost(CORPUS_BLEU), [cost(metric) for metric in COMPARED.values()]) for _ in range(1 + ROUNDS)][1:]
        bleu = statistics.median(whole for whole, _ in rounds)
        for place, other in enumerate(COMPARED):
            own = statistics.median(costs[place] for _, costs in rounds)
            yield (
                f"{other} : corpus BLEU, {len(rows) * COPIES:,} pairs, {name}",
                f"{own:.3f} : {bleu:.3f} CPU s, {own / bleu:.2f}",
            )


def figures() -> Iterator[tuple[str, str]]:
    """What is measured, and the figure."""
    responses, references = pairs()
    few = [[text.split() for text in texts[:NLTK_PAIRS]] for texts in (responses, references)]
    ours, theirs = scored(batches(responses[:NLTK_PAIRS], references[:NLTK_PAIRS]), split=False), by_nltk(*few)
    assert abs(ours - theirs) < 1e-12, (ours, theirs)
    slow = NLTK_PAIRS / cpu_seconds(lambda: by_nltk(*few))
    yield "pairs per CPU second, nltk, bleu-4, split before", f"{slow:,.0f}"
    made = batches(responses, references)
    for name, split in (("split before", True), ("splitting included", False)):
        fast = PAIRS / cpu_seconds(lambda split=split: scored(made, split))  # type: ignore[misc]
        yield f"pairs per CPU second, dialeval, bleu-1 to bleu-4, {name}", f"{fast:,.0f}, {fast / slow:.0f} times nltk"
    yield from against_sacrebleu()
    yield from to_bleu()
