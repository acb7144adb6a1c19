"""MDS, PDS and MaxBLEU against the LSDSCC program: 15 aligners, five data sets, every query and every hypothesis."""

from __future__ import annotations

import gzip
import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.lsdscc import (
    BleuAligner,
    HypothesisSet,
    NLTKBleuAligner,
    NLTKNistAligner,
    ReferenceSet,
    align_corpus,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)
from dialeval.suites.lsdscc.alignment import PairAligner
from dialeval.suites.lsdscc.evaluation import evaluate_hypotheses

pytestmark = pytest.mark.golden

CASES = ("paper_example", "nasty_a", "fake_hypo", "retrieval", "generic")
ALIGNERS: dict[str, PairAligner | None] = {
    "bleu": None,
    **{f"bleu-n{n}": BleuAligner(n) for n in range(1, 6)},
    "nltk-bleu": NLTKBleuAligner(),
    **{f"nltk-bleu-method{method}": NLTKBleuAligner(method) for method in (1, 3, 7)},
    **{f"nltk-nist-n{n}": NLTKNistAligner(n) for n in range(1, 6)},
}
TOLERANCE = 1e-9
FIGURES = ("mds", "pds", "max_bleu")

every_case = pytest.mark.parametrize("case", CASES)
every_aligner = pytest.mark.parametrize("aligner", ALIGNERS)


@pytest.fixture(scope="module")
def folder(shared_data: Path) -> Path:
    return shared_data / "lsdscc"


@lru_cache
def golden(folder: Path, case: str) -> dict[str, Any]:
    loaded: dict[str, Any] = json.loads((folder / f"{case}.golden.json").read_text())
    return loaded


@lru_cache
def per_query(folder: Path, case: str) -> tuple[list[dict[str, Any]], dict[str, list[dict[str, Any]]]]:
    """What is said of the queries, and by aligner what the original made of them."""
    with gzip.open(folder / f"{case}.per-query.jsonl.gz", "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    by_aligner: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if "aligner" in row:
            by_aligner.setdefault(row["aligner"], []).append(row)
    return [row for row in rows if "aligner" not in row], by_aligner


@lru_cache
def corpus(folder: Path, case: str) -> tuple[list[HypothesisSet], list[ReferenceSet]]:
    files = golden(folder, case)
    hypotheses = HypothesisSet.load_corpus(folder / files["hypothesis_file"])
    return hypotheses, ReferenceSet.load_json_corpus(folder / files["reference_file"])


@every_case
def test_files_are_read_as_the_original_reads_them(folder: Path, case: str) -> None:
    hypotheses, references = corpus(folder, case)
    queries, _ = per_query(folder, case)
    assert len(hypotheses) == len(references) == golden(folder, case)["n_queries"]
    assert sum(map(len, hypotheses)) == golden(folder, case)["n_hypotheses"]
    for query, mine, groups in zip(queries, hypotheses, references, strict=True):
        assert groups.names == query["groups"]
        assert [len(group) for group in groups] == query["group_sizes"]
        assert groups.n_references == sum(query["group_sizes"])
        assert len(mine) == query["n_hypotheses"]


@every_case
@every_aligner
def test_every_query_and_hypothesis(folder: Path, case: str, aligner: str) -> None:
    found = align_corpus(*corpus(folder, case), ALIGNERS[aligner])
    _, expected = per_query(folder, case)
    assert len(found) == len(expected[aligner])
    failed = []
    for row in expected[aligner]:
        query = found[row["q"]]
        if "error" in row:
            failed.append(row["q"])
            assert np.isnan([query.mds, query.pds, query.max_bleu]).all()
            continue
        assert list(query.aligned) == row["aligned"]
        np.testing.assert_allclose(query.scores, row["max_scores"], rtol=0, atol=TOLERANCE)
        for figure in FIGURES:
            assert getattr(query, figure) == pytest.approx(row[figure], abs=TOLERANCE)
    assert failed == golden(folder, case)["aligners"][aligner]["failed_queries"]


@every_case
@every_aligner
def test_means_of_the_corpus(folder: Path, case: str, aligner: str) -> None:
    figures = golden(folder, case)["aligners"][aligner]
    expected = figures["corpus"]
    if "error" in expected:  # the original has no figure; the golden data gives the mean over the other queries
        expected = figures["mean_over_the_other_queries_not_from_the_original"] or dict.fromkeys(FIGURES, np.nan)
    found = compute_score_on_corpus(*corpus(folder, case), ALIGNERS[aligner])
    assert found._asdict() == pytest.approx(expected, abs=TOLERANCE, nan_ok=True)


def test_the_example_of_the_paper_one_set_at_a_time(folder: Path) -> None:
    (hypotheses,), (references,) = corpus(folder, "paper_example")
    for name, aligner in ALIGNERS.items():
        figures = golden(folder, "paper_example")["aligners"][name]["corpus"]
        found = compute_score_on_hypothesis_set(hypotheses, references, aligner)
        expected = dict.fromkeys(FIGURES, np.nan) if "error" in figures else figures
        assert found._asdict() == pytest.approx(expected, abs=TOLERANCE, nan_ok=True)


@every_case
@pytest.mark.parametrize(
    ("aligner", "settings"),
    [
        ("bleu", {}),
        ("bleu-n2", {"n": 2}),
        ("nltk-bleu-method3", {"aligner": "nltk-bleu", "smooth": 3}),
        ("nltk-nist-n3", {"aligner": "nltk-nist", "n": 3}),
    ],
)
def test_the_registered_metrics_give_the_same(
    folder: Path, case: str, aligner: str, settings: dict[str, object]
) -> None:
    files = golden(folder, case)
    run = evaluate_hypotheses(
        {"x": folder / files["hypothesis_file"]},
        reference_groups=folder / files["reference_file"],
        settings={"coverage": settings},
        execution=dialeval.Execution(batch_rows=100),
    )
    rows = per_query(folder, case)[1][aligner]
    for key, figure in (("mds", "mds"), ("pds", "pds"), ("max-bleu", "max_bleu")):
        expected = [row.get(figure, np.nan) for row in rows]
        items = run["x"][key].scores
        assert items is not None
        np.testing.assert_allclose(items, expected, rtol=0, atol=TOLERANCE)
        assert run["x"][key].scored == len(rows) - len(files["aligners"][aligner]["failed_queries"])
    table = run.details["alignments"]["x"]
    names = [query["groups"] for query in per_query(folder, case)[0]]
    for row, entry, groups in zip(rows, table, names, strict=True):
        if "error" not in row:
            assert [each["group"] for each in entry["hypotheses"]] == [groups[at] for at in row["aligned"]]
