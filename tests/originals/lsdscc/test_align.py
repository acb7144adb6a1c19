"""The aligners of the stand-in for `lsdscc.align`, with the original's defaults."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dialeval.originals.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus
from dialeval.originals.lsdscc.align import BleuAligner, NLTKBleuAligner, NLTKNistAligner

WORDS = ["a", "b", "c", "d", "e", "f"]


def test_defaults() -> None:
    assert BleuAligner() == BleuAligner(None) == BleuAligner(4)  # type: ignore[arg-type]
    assert NLTKBleuAligner().smooth_function is None
    assert NLTKNistAligner() == NLTKNistAligner(5) != NLTKNistAligner(4)
    assert NLTKNistAligner()(WORDS, [WORDS]) == NLTKNistAligner(n=5)(WORDS, [WORDS])


@pytest.mark.golden
def test_the_default_nist_aligner_is_the_original_one(shared_data: Path) -> None:
    folder = shared_data / "lsdscc"
    golden = json.loads((folder / "paper_example.golden.json").read_text())["aligners"]
    hypotheses = HypothesisSet.load_corpus(folder / "paper_example.hypothesis.txt")
    references = ReferenceSet.load_json_corpus(folder / "paper_example.reference.json")
    for name, aligner in {
        "bleu": BleuAligner(),
        "nltk-bleu": NLTKBleuAligner(),
        "nltk-nist-n5": NLTKNistAligner(),
    }.items():
        if not golden[name]["failed_queries"]:
            assert compute_score_on_corpus(hypotheses, references, aligner)._asdict() == pytest.approx(
                golden[name]["corpus"]
            )
