"""The sampled answers of the shipped sample: complete, aligned, tokenized, and different as their names say."""

from __future__ import annotations

import re

from dialeval.lsdscc import HypothesisSet, ReferenceSet
from dialeval.sample_data import folder
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

HERE = folder() / "lsdscc"


def test_files_are_aligned_and_in_lower_case_with_blanks_around_punctuation() -> None:
    groups = ReferenceSet.load_json_corpus(HERE / "groups.json")
    texts = [" ".join(words) for query in groups for group in query for words in group]
    for name in ("varied", "safe"):
        corpus = HypothesisSet.load_corpus(HERE / f"{name}.txt")
        assert len(corpus) == len(groups)
        assert {len(hypotheses) for hypotheses in corpus} == {3}
        texts += [" ".join(words) for hypotheses in corpus for words in hypotheses]
    for text in texts:
        assert text == text.lower()
        assert not re.search(r"\w[.,?!]|[.,?!]\w", text)


def test_systems_differ_as_their_names_say() -> None:
    run = evaluate_hypotheses(
        {name: HERE / f"{name}.txt" for name in ("varied", "safe")},
        reference_groups=HERE / "groups.json",
        settings={"coverage": {"aligner": "sacre"}},
    )
    assert run["varied"]["mds"].mean > 1.5 * run["safe"]["mds"].mean
    assert run["varied"]["max-bleu"].mean > 2 * run["safe"]["max-bleu"].mean
