"""The stand-in for the package `lsdscc`: the names, signatures and defaults of the original."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dialeval import lsdscc
from dialeval.originals.lsdscc import (
    HypothesisSet,
    LSDSCCScore,
    ReferenceSet,
    compute_score_on_corpus,
    compute_score_on_hypothesis_set,
)
from dialeval.originals.lsdscc.align import BleuAligner, NLTKBleuAligner, NLTKNistAligner

ALIGNERS = {"bleu": BleuAligner(), "nltk-bleu": NLTKBleuAligner(), "nltk-nist-n5": NLTKNistAligner()}
WORDS = ["a", "b", "c", "d", "e", "f"]


def test_defaults() -> None:
    assert BleuAligner().n is None
    assert BleuAligner(n=2).n == 2
    assert BleuAligner()(WORDS, [WORDS[1:]]) == BleuAligner(0)(WORDS, [WORDS[1:]]) == BleuAligner(4)(WORDS, [WORDS[1:]])
    assert NLTKBleuAligner().smooth_function is None
    assert (NLTKNistAligner().n, lsdscc.NLTKNistAligner().n) == (5, None)
    nist = [
        aligner(WORDS, [WORDS, WORDS[::-1]])
        for aligner in (NLTKNistAligner(), NLTKNistAligner(n=5), NLTKNistAligner(1))
    ]
    assert nist[0] == nist[1] != nist[2]
    later = BleuAligner(1)
    later.n = 2  # attributes can be set, as there
    assert later(WORDS, [WORDS[::-1]]) == BleuAligner(2)(WORDS, [WORDS[::-1]]) < 1


class Constant(BleuAligner):
    def __call__(self, hypothesis_sentence: Any, reference_corpus: Any) -> float:
        return 7.0


class Longer(NLTKBleuAligner):
    """Counts the words of a group, and remembers them as the original passes them."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def __call__(self, hypothesis_sentence: Any, reference_corpus: Any) -> float:
        self.seen.append((hypothesis_sentence, reference_corpus))
        return float(sum(map(len, reference_corpus)))


class Halved(BleuAligner):
    def __call__(self, hypothesis_sentence: Any, reference_corpus: Any) -> float:
        return super().__call__(hypothesis_sentence, reference_corpus) / 2


def test_a_subclass_decides() -> None:
    hypotheses, references = [["a", "b"], ["c"]], [[["a", "b"]], [["c", "d", "e"], ["f"]]]
    assert compute_score_on_hypothesis_set(hypotheses, references, Constant()) == (0.5, 1 / 3, 7.0)
    longer = Longer()
    assert compute_score_on_hypothesis_set(hypotheses, references, longer) == (0.5, 2 / 3, 4.0)
    assert longer.seen == [(hypothesis, group) for hypothesis in hypotheses for group in references]
    plain = compute_score_on_corpus([hypotheses], [references])
    assert compute_score_on_corpus([hypotheses], [references], Halved()).max_bleu == pytest.approx(plain.max_bleu / 2)


def test_modules_have_the_names_of_the_original() -> None:
    from dialeval.originals.lsdscc import __version__, ds, metrics

    assert (ds.HypothesisSet, ds.ReferenceSet, __version__) == (HypothesisSet, ReferenceSet, "0.3.6")
    assert (metrics.LSDSCCScore, metrics.compute_score_on_corpus) == (LSDSCCScore, compute_score_on_corpus)


def test_sets_are_printed_as_there() -> None:
    assert str(HypothesisSet.from_line("tea please </s> no")) == "0: ['tea', 'please']\n1: ['no']"
    references = ReferenceSet.from_json({"7": ["tea"], "2": ["a b", "c"]}, query="what ?")
    lines = ["query: what ?", "group-0:", "  0: ['a', 'b']", "  1: ['c']", "group-1:", "  0: ['tea']", ""]
    assert str(references) == "\n".join(lines)
    assert str(ReferenceSet([["tea"]])).startswith("query: None\n")


def test_numbers_of_words_and_bytes_are_words() -> None:
    import numpy as np

    hypotheses, references = [["a", "b", "c"], ["d"]], [[["a", "b"]], [["d", "e"], ["f"]]]
    expected = compute_score_on_corpus([hypotheses], [references])

    def coded(nested: Any, code: Callable[[str], Any]) -> Any:
        return code(nested) if isinstance(nested, str) else [coded(part, code) for part in nested]

    for code in (ord, lambda word: np.int32(ord(word)), str.encode):
        assert compute_score_on_corpus([coded(hypotheses, code)], [coded(references, code)]) == expected


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


def test_scores_are_a_named_tuple() -> None:
    score = compute_score_on_hypothesis_set([["a"]], [[["a"]]])
    assert type(score) is LSDSCCScore
    assert score == (1.0, 1.0, 1.0)
    assert repr(score) == "LSDSCCScore(mds=1.0, pds=1.0, max_bleu=1.0)"


def test_a_byte_order_mark_is_dropped(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"\xef\xbb\xbfa b </s> c\n")
    (tmp_path / "groups.json").write_bytes(b'\xef\xbb\xbf{"q": {"1": ["a b"]}}')
    assert HypothesisSet.load_corpus(tmp_path / "a.txt")[0][0] == ["a", "b"]
    assert list(ReferenceSet.load_json_corpus(tmp_path / "groups.json")[0]) == [[["a", "b"]]]
