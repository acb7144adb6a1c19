"""What a user would pick instead: one metric of two files of lines, by each library, as one would call it.

    python -m benchmarks.alternatives sacreBLEU BLEU responses.txt references.txt

prints the value. `sizes` runs each in a process of its own, so that start-up counts, as it does for a user. The last
one is no library: dialog-eval's 17 metrics by the plain twin, for which the original program has to be set up by hand.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean
from typing import Any

Measured = Callable[[list[str], list[str]], float]


def read(path: str) -> list[str]:
    return Path(path).read_text().removesuffix("\n").split("\n")


def sacrebleu_bleu(here: list[str], there: list[str]) -> float:
    from sacrebleu.metrics import BLEU

    return float(BLEU().corpus_score(here, [there]).score) / 100


def sacrebleu_chrf(here: list[str], there: list[str]) -> float:
    from sacrebleu.metrics import CHRF

    return float(CHRF().corpus_score(here, [there]).score) / 100


def torchmetrics_bleu(here: list[str], there: list[str]) -> float:
    from torchmetrics.functional.text import sacre_bleu_score

    return float(sacre_bleu_score(here, [[text] for text in there]))


def torchmetrics_chrf(here: list[str], there: list[str]) -> float:
    from torchmetrics.functional.text import chrf_score

    score: Any = chrf_score(here, [[text] for text in there], n_word_order=0)
    return float(score)


def torchmetrics_rouge(here: list[str], there: list[str]) -> float:
    from torchmetrics.functional.text import rouge_score

    return float(rouge_score(here, there, rouge_keys="rougeL")["rougeL_fmeasure"])


def nltk_bleu(here: list[str], there: list[str]) -> float:
    from nltk.translate.bleu_score import SmoothingFunction, sentence_bleu

    smooth = SmoothingFunction().method4
    both = zip(here, there, strict=True)
    return fmean(sentence_bleu([other.split()], one.split(), smoothing_function=smooth) for one, other in both)


def rouge_score_rouge(here: list[str], there: list[str]) -> float:
    from rouge_score.rouge_scorer import RougeScorer

    scorer = RougeScorer(["rougeL"])
    return fmean(scorer.score(other, one)["rougeL"].fmeasure for one, other in zip(here, there, strict=True))


def plain_twin(here: list[str], there: list[str]) -> float:
    """The mean of bleu-4; all 17 have been computed."""
    import numpy as np

    from benchmarks.plain import Plain
    from benchmarks.responses import inputs
    from benchmarks.responses import read as read_packed
    from dialeval.io.vectors import load_embeddings

    _, given = inputs()
    vectors: Any = load_embeddings(given["vectors"])
    words = vectors.words()
    table = dict(zip(words, np.asarray(vectors.vectors_for(words)[0]), strict=True))
    listed = [line.strip() for line in read_packed(given["vocabulary"])]
    return Plain(read_packed(given["train"]), listed, table).means(here, there, there)["bleu-4"]


PROGRAMS: Mapping[str, Mapping[str, Measured]] = {
    "BLEU": {"sacreBLEU": sacrebleu_bleu, "torchmetrics": torchmetrics_bleu},
    "sentence BLEU": {"nltk": nltk_bleu},
    "ROUGE-L": {"rouge-score": rouge_score_rouge, "torchmetrics": torchmetrics_rouge},
    "chrF": {"sacreBLEU": sacrebleu_chrf, "torchmetrics": torchmetrics_chrf},
    "17 metrics": {"plain twin of dialog-eval": plain_twin},
}
"""By what is measured, the programs that measure it."""
MODULES = {"sacreBLEU": "sacrebleu", "rouge-score": "rouge_score", "plain twin of dialog-eval": "nltk"}
"""The package of a program, where it has another name."""


def missing(program: str) -> bool:
    """Whether a program is not installed."""
    return find_spec(MODULES.get(program, program)) is None


if __name__ == "__main__":
    program, what, here, there = sys.argv[1:]
    print(repr(PROGRAMS[what][program](read(here), read(there))))
