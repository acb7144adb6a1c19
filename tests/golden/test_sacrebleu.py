"""Corpus BLEU and chrF against sacreBLEU, and ROUGE against rouge-score, on real responses; the programs run here."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import orjson
import pytest
from rouge_score.rouge_scorer import RougeScorer
from sacrebleu.metrics import BLEU, CHRF

import dialeval
import evaluating
from dialeval.core.fold import Estimate
from dialeval.core.signature import SACREBLEU
from dialeval.metrics.registry import registry

pytestmark = pytest.mark.golden

EXACT = 1e-12
SYSTEMS = ["damd", "tfidf", "constant"]
TOKENIZERS = {"13a": "13a", "lower-13a": "13a", "intl": "intl", "zh": "zh", "char": "char", "words.1": "none"}
ROUGE = {"rouge-score-1": "rouge1", "rouge-score-2": "rouge2", "rouge-score-l": "rougeL"}
ROWS = 1000
"""Of a file, that both programs are given: rouge-score takes a millisecond a row."""


def known_as(estimate: Estimate) -> str:
    assert estimate.signature is not None
    return estimate.signature[SACREBLEU]


def lines(path: Path) -> list[str]:
    return path.read_text(encoding="utf-8").splitlines()


@pytest.mark.parametrize("system", SYSTEMS)
def test_responses_to_one_reference(shared_data: Path, system: str) -> None:
    folder = shared_data / "dialog-eval" / "multiwoz"
    responses, references = lines(folder / "responses" / f"{system}.txt"), lines(folder / "test_target.txt")
    names = [registry().parse(f"bleu(per=corpus,tokenizer={name})").name for name in TOKENIZERS]
    found = dialeval.evaluate({system: responses}, references=references, metrics=[*names, "chrf(per=corpus)"])[system]
    for ours, (own, name) in zip(names, TOKENIZERS.items(), strict=True):
        oracle = BLEU(tokenize=name, lowercase=own.startswith("lower"))
        assert found[ours].mean == pytest.approx(oracle.corpus_score(responses, [references]).score / 100, rel=EXACT)
        assert known_as(found[ours]) == f"BLEU|{oracle.get_signature()}"
    chrf = CHRF()
    expected = chrf.corpus_score(responses, [references]).score / 100
    assert found["chrf(per=corpus)"].mean == pytest.approx(expected, rel=EXACT)
    assert known_as(found["chrf(per=corpus)"]) == f"chrF2|{chrf.get_signature()}"


def test_what_sacrebleu_prints_for_damd(shared_data: Path) -> None:
    folder = shared_data / "dialog-eval" / "multiwoz"
    given: dict[str, Any] = {"references": str(folder / "test_target.txt"), "metrics": "sacrebleu"}
    run = evaluating.evaluate({"damd": str(folder / "responses" / "damd.txt")}, **given)
    assert run["damd"]["sacrebleu"].mean == pytest.approx(0.268, abs=5e-4)


def test_several_references(shared_data: Path) -> None:
    with gzip.open(shared_data / "ratings" / "gupta_dailydialog.jsonl.gz") as file:
        rows = [orjson.loads(line) for line in file]
    rows = [row for row in rows if len(row["reference"]) == len(rows[0]["reference"]) > 1]
    responses, references = [row["response"] for row in rows], [row["reference"] for row in rows]
    names = ["sacrebleu", "chrf(words=2,per=corpus)", *ROUGE]
    found = dialeval.evaluate({"a": responses}, references=references, metrics=names)["a"]
    columns = [list(column) for column in zip(*references, strict=True)]
    for name, oracle in zip(names, (BLEU(), CHRF(word_order=2)), strict=False):
        score = oracle.corpus_score(responses, columns)
        assert found[name].mean == pytest.approx(score.score / 100, rel=EXACT)
        assert known_as(found[name]) == f"{score.name}|{oracle.get_signature()}"
    scorer = RougeScorer(list(ROUGE.values()))
    expected = [scorer.score_multi(texts, response) for response, texts in zip(responses, references, strict=True)]
    for ours, theirs in ROUGE.items():
        items = found[ours].scores
        assert items is not None
        assert items.tolist() == pytest.approx([each[theirs].fmeasure for each in expected], rel=EXACT)


def test_rouge_of_task_responses(shared_data: Path) -> None:
    folder = shared_data / "dialog-eval" / "multiwoz"
    responses, references = lines(folder / "responses" / "damd.txt")[:ROWS], lines(folder / "test_target.txt")[:ROWS]
    found = dialeval.evaluate({"damd": responses}, references=references, metrics=list(ROUGE))["damd"]
    scorer = RougeScorer(list(ROUGE.values()))
    expected = [scorer.score(there, here) for here, there in zip(responses, references, strict=True)]
    for ours, theirs in ROUGE.items():
        values = [each[theirs].fmeasure for each in expected]
        assert found[ours].mean == pytest.approx(sum(values) / len(values), rel=EXACT)
