"""The aligners of the stand-in for `lsdscc.align`, with the original's defaults."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from dialeval import lsdscc
from dialeval.originals.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.originals.lsdscc.align import BleuAligner, NLTKBleuAligner, NLTKNistAligner

ALIGNERS = {"bleu": BleuAligner(), "nltk-bleu": NLTKBleuAligner(), "nltk-nist-n5": NLTKNistAligner()}
WORDS = ["a", "b", "c", "d", "e", "f"]


def test_defaults() -> None:
    assert BleuAligner() == BleuAligner(None) == BleuAligner(4)  # type: ignore[arg-type]
    assert NLTKBleuAligner().smooth_function is None
    assert NLTKNistAligner() == NLTKNistAligner(5) != NLTKNistAligner(4)
    assert lsdscc.NLTKNistAligner() == lsdscc.NLTKNistAligner(4)
    assert NLTKNistAligner()(WORDS, [WORDS]) == NLTKNistAligner(n=5)(WORDS, [WORDS])


@pytest.mark.parametrize("aligner", ALIGNERS.values(), ids=ALIGNERS)
def test_keywords(aligner: Callable[..., float]) -> None:
    assert aligner(hypothesis_sentence=WORDS, reference_corpus=[WORDS]) == aligner(WORDS, [WORDS])


@pytest.mark.golden
def test_the_defaults_are_those_of_the_original(shared_data: Path) -> None:
    folder = shared_data / "lsdscc"
    golden = json.loads((folder / "retrieval.golden.json").read_text())["aligners"]
    hypotheses = HypothesisSet.load_corpus(folder / "retrieval.txt.gz")
    references = ReferenceSet.load_json_corpus(folder / "test.group.json.gz")
    for name, aligner in ALIGNERS.items():
        expected = golden[name].get("mean_over_the_other_queries_not_from_the_original", golden[name]["corpus"])
        found = compute_score_on_corpus(hypotheses, references, aligner)
        assert found._asdict() == pytest.approx({key: expected[key] for key in found._fields}, rel=1e-9)
