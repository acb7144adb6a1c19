"""The hypothesis sets of the stand-in for `lsdscc`: no separator is the usual one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dialeval.originals.lsdscc import (
    HypothesisSet,
    ReferenceSet,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)

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


def test_keywords_are_those_of_the_original(tmp_path: Path) -> None:
    (tmp_path / "a.json").write_text(f"{LINE}\n")  # lines, whatever the suffix
    (tmp_path / "groups").write_text('{"q": {"1": ["a b"]}}')
    expected = [["a", "b"], ["c"]]
    assert list(HypothesisSet(hypothesis_sentences=expected)) == expected
    (loaded,) = HypothesisSet.load_corpus(filename=tmp_path / "a.json", eos=None)
    assert list(loaded) == expected
    references = ReferenceSet(reference_set=[["a b"]], query="q")
    assert list(references) == list(ReferenceSet.from_json(json_dict={"1": ["a b"]}, query="q")) == [[["a", "b"]]]
    (corpus,) = ReferenceSet.load_json_corpus(filename=tmp_path / "groups")
    assert (list(corpus), corpus.query) == (list(references), references.query)
    found = compute_score_on_corpus(hypothesis_corpus=[loaded], reference_corpus=[references], aligner=None)
    assert found == compute_score_on_hypothesis_set(hypothesis_set=loaded, reference_set=references, aligner=None)


class Indexed:
    """A list that has `__len__` and `__getitem__` and nothing else."""

    def __init__(self, values: list[Any]) -> None:
        self._values = [Indexed(value) if isinstance(value, list) else value for value in values]

    def __len__(self) -> int:
        return len(self._values)

    def __getitem__(self, index: int) -> Any:
        return self._values[index]


def test_objects_with_an_index_and_a_length_are_sets() -> None:
    hypotheses, references = [["a", "b"], ["c"]], [[["a", "b"], ["d"]], [["c", "e"]]]
    expected = compute_score_on_corpus([hypotheses], [references])
    given: tuple[Any, Any] = Indexed([hypotheses]), Indexed([references])
    assert compute_score_on_corpus(*given) == expected
    assert compute_score_on_hypothesis_set(given[0][0], given[1][0]) == expected
    assert list(HypothesisSet(given[0][0])) == hypotheses
    assert list(ReferenceSet(given[1][0])) == references


def test_they_are_scored() -> None:
    found = compute_score_on_corpus([HypothesisSet.from_line(LINE)], [ReferenceSet([["a b"], ["c"], ["d"]])])
    assert found.mds == found.pds == 2 / 3
