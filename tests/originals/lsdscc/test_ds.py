"""The hypothesis sets of the stand-in for `lsdscc`: no separator is the usual one."""

from __future__ import annotations

from pathlib import Path

from dialeval.originals.lsdscc import HypothesisSet, ReferenceSet, compute_score_on_corpus

LINE = "a b </s> c"


def test_no_separator_is_the_usual_one(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text(f"{LINE}\n")
    expected = [["a", "b"], ["c"]]
    assert list(HypothesisSet.from_line(LINE)) == list(HypothesisSet.from_line(LINE, None)) == expected
    for corpus in (HypothesisSet.load_corpus(tmp_path / "a.txt"), HypothesisSet.load_corpus(tmp_path / "a.txt", None)):
        assert list(map(list, corpus)) == [expected]
        assert all(isinstance(each, HypothesisSet) for each in corpus)


def test_another_one_is_taken(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("1;2;3\n")
    assert list(HypothesisSet.from_line("1;2;3", eos=";")) == [["1"], ["2"], ["3"]]
    (corpus,) = HypothesisSet.load_corpus(tmp_path / "a.txt", ";")
    assert list(corpus) == [["1"], ["2"], ["3"]]


def test_they_are_scored() -> None:
    found = compute_score_on_corpus([HypothesisSet.from_line(LINE)], [ReferenceSet([["a b"], ["c"], ["d"]])])
    assert found.mds == found.pds == 2 / 3
