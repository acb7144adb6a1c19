"""Right-to-left text, emoji, combining marks and lines of 100,000 characters, through every metric of overlap."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from rapidfuzz.distance import LCSseq
from rouge_score.tokenize import tokenize
from sacrebleu.metrics import BLEU, CHRF

import evaluating
from dialeval.core.result import Result
from dialeval.metrics.registry import registry

PAIRS = {
    "right to left": ("שלום, עולם! مرحبا؟", "שלום עולם. مرحبا"),
    "marks of direction": ("\u202eabc\u202c \u200fשלום\u200f", "abc שלום"),
    "emoji": (
        "ok \U0001f44d\U0001f3fd\U0001f469\u200d\U0001f467 \u263a\ufe0f",
        "ok \U0001f44d \U0001f469\u200d\U0001f467",
    ),
    "combining marks": ("e\u0301te\u0301, nai\u0308ve", "été, naïve e\u0301te\u0301"),
    "thai": ("สวัสดีครับ คุณสบายดีไหม", "สวัสดีค่ะ สบายดีไหม"),
    "mixed": ("今天 is 5,000.50$ — “sehr gut”。", "今天 was 5,000$ - 'sehr gut'."),
    "nothing to split": ("\u3000", "\u2028"),
}
LONG = {
    "100,000 characters of English": "it is, isn't it? 1,000.5 - ok \U0001f600 ",
    "100,000 characters of Chinese": "今天天气很好，我不知道。",
    "100,000 characters of Hebrew": "שלום, עולם! ",
}
TOKENIZERS = {"13a": "13a", "intl": "intl", "zh": "zh", "char": "char"}
NAMES = [str(registry().parse(f"bleu(per=corpus,tokenizer={name})")) for name in TOKENIZERS]
OTHERS = ["bleu-4", "nlg-bleu-4", "rouge-l", "rouge-score", "length", "distinct"]


def check(responses: list[str], references: list[str], found: Result) -> None:
    for ours, theirs in zip(NAMES, TOKENIZERS.values(), strict=True):
        expected = BLEU(tokenize=theirs, force=True).corpus_score(responses, [references]).score / 100
        assert found[ours].mean == pytest.approx(expected, rel=1e-12, abs=1e-15)
    expected = CHRF().corpus_score(responses, [references]).score / 100
    assert found["chrf(per=corpus)"].mean == pytest.approx(expected, rel=1e-12, abs=1e-15)
    for estimate in found.values():
        assert estimate.scored in (0, len(responses))


def scored(responses: list[str], references: list[str], **given: Any) -> Result:
    metrics = [*NAMES, "chrf(per=corpus)", *OTHERS]
    return evaluating.evaluate({"a": responses}, references=references, metrics=metrics, **given)["a"]


@pytest.mark.parametrize("kind", PAIRS)
def test_short_texts(kind: str) -> None:
    response, reference = PAIRS[kind]
    check([response, reference], [reference, response], scored([response, reference], [reference, response]))


@pytest.mark.parametrize("kind", LONG)
def test_long_lines(kind: str) -> None:
    piece = LONG[kind]
    response = piece * (100_000 // len(piece) + 1)
    reference = response[7:] + piece
    found = scored([response], [reference])
    check([response], [reference], found)
    words = [tokenize(text, None) for text in (response, reference)]
    common = LCSseq.similarity(*words)
    expected = 2 * common / (len(words[0]) + len(words[1])) if common else 0.0
    assert found["rouge-score-l"].mean == pytest.approx(expected, rel=1e-12)


def test_rows_of_all_kinds_cut_anywhere() -> None:
    responses, references = (list(side) for side in zip(*PAIRS.values(), strict=True))
    whole = scored(responses, references)
    for size in (1, 3):
        cut = scored(responses, references, batch_rows=size)
        for key, estimate in whole.items():
            np.testing.assert_equal(cut[key].mean, estimate.mean)
            np.testing.assert_array_equal(cut[key].scores, estimate.scores)
