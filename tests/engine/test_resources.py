"""Resources are opened once, checked against their digests, and named where other processes cannot open them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.inputs import Input
from dialeval.core.result import Result
from dialeval.engine.resources import Resources, explain_missing, read_train_texts
from dialeval.io.vectors import load_embeddings
from dialeval.metrics.registry import registry
from dialeval.suites.multiwoz.feature import GOALS
from dialeval.text.vocabulary import Vocabulary


def test_a_resource_that_changed_is_refused(tmp_path: Path) -> None:
    """Workers open resources by path; what they read there must be what the run began with."""
    (tmp_path / "train.txt").write_text("one two\n")
    files = Resources(str(tmp_path / "train.txt"))
    opened = files.open(Vocabulary())
    digests = {need: opened[need].digest for need in (inputs.VOCABULARY, inputs.TRAIN)}
    replace(files, digests=digests).open(Vocabulary())
    (tmp_path / "train.txt").write_text("one two three\n")
    with pytest.raises(DataError, match=r"train.txt: is not the vocabulary that the run began with"):
        replace(files, digests=digests).open(Vocabulary())


def test_the_file_that_changed_is_named(tmp_path: Path) -> None:
    """Words that have a vector are known by the vectors, where nothing else is given."""
    vectors, train = tmp_path / "vectors.txt", tmp_path / "train.txt"
    vectors.write_text("one 1 2\n")
    train.write_text("one\n")
    remedy = "keep it as it is, and the same on every machine"
    cases: list[tuple[dict[str, Any], Input, Path]] = [
        ({"vectors": str(vectors)}, inputs.VOCABULARY, vectors),
        ({"vectors": str(vectors)}, inputs.EMBEDDINGS, vectors),
        ({"vectors": str(vectors), "train": str(train)}, inputs.VOCABULARY, train),
        ({"vectors": str(vectors), "train": str(train)}, inputs.EMBEDDINGS, vectors),
        ({"vocabulary": str(train), "vectors": str(vectors)}, inputs.VOCABULARY, train),
    ]
    for given, need, file in cases:
        with pytest.raises(DataError) as caught:
            Resources(**given, digests={need: "another"}).open(Vocabulary())
        assert str(caught.value) == f"{file}: is not the {need} that the run began with; {remedy}"


def test_spaces_around_listed_words_are_left_out(tmp_path: Path) -> None:
    (tmp_path / "words.txt").write_text(" one \ntwo\n")
    assert known("one two three", vocabulary=tmp_path / "words.txt") == {"one": True, "two": True, "three": False}


def test_in_vocabulary_are_those_listed_else_those_of_the_training_text() -> None:
    words = Vocabulary()
    ids = words.split(TextColumn.from_strings(["one two three"])).ids
    by_text, by_list = Resources(train=["one two"]).open(words), Resources(vocabulary=["three"]).open(words)
    assert by_text[inputs.VOCABULARY].find_known()[ids].tolist() == [True, True, False]
    assert by_list[inputs.VOCABULARY].find_known()[ids].tolist() == [False, False, True]
    assert inputs.TRAIN in by_text
    assert inputs.TRAIN not in by_list
    assert inputs.VOCABULARY not in Resources().open(words)


def known(text: str, **given: Any) -> dict[str, bool]:
    """Return whether each word of a text is known."""
    words = Vocabulary()
    opened = Resources(**given).open(words)
    ids = words.split(TextColumn.from_strings([text])).ids
    return dict(zip(text.split(), opened[inputs.VOCABULARY].find_known()[ids].tolist(), strict=True))


@pytest.mark.parametrize("listed", [{"train": ["one two"]}, {"vocabulary": ["one", "two"], "train": ["three four"]}])
def test_of_vectors_with_a_header_only_listed_words_are_known(tmp_path: Path, listed: dict[str, Any]) -> None:
    """One without a header is what dialog-eval made for a vocabulary; that it takes as a whole."""
    headed, plain = tmp_path / "headed.vec", tmp_path / "plain.txt"
    plain.write_text("one 1 2\nthree 3 4\n")
    headed.write_text("2 2\n" + plain.read_text())
    cut = {"one": True, "two": True, "three": False, "five": False}
    whole = {**cut, "three": True}
    text = "one two three five"
    assert known(text, **listed, vectors=headed) == cut
    assert known(text, **listed, vectors=plain) == whole
    assert known(text, **listed, vectors=headed, in_vocabulary="vectors") == whole
    assert known(text, **listed, vectors=plain, in_vocabulary="listed") == cut
    alone = {**whole, "two": False}
    assert known(text, vectors=headed) == known(text, vectors=plain) == alone


class Bare:
    """Vectors that are open and do not say whether their file had a header."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner

    def __getattr__(self, name: str) -> Any:
        if name == "header":
            raise AttributeError(name)
        return getattr(self.inner, name)


def test_of_vectors_that_are_open_all_words_are_known(tmp_path: Path) -> None:
    headed = tmp_path / "headed.vec"
    headed.write_text("2 2\none 1 2\nthree 3 4\n")
    vectors = load_embeddings(headed)
    text, cut = "one two three", {"one": True, "two": False, "three": False}
    assert known(text, train=["one"], vectors=vectors) == cut
    assert known(text, train=["one"], vectors=Bare(vectors)) == {**cut, "three": True}
    assert known(text, train=["one"], vectors=Bare(vectors), in_vocabulary="listed") == cut


def test_only_what_is_given_is_opened() -> None:
    model = object()
    opened = Resources(llm=model).open(Vocabulary())
    assert opened[inputs.LLM] is model
    assert not {inputs.ASSERTIONS, inputs.TRAIN, inputs.VOCABULARY, inputs.EMBEDDINGS} & set(opened)
    assert inputs.LLM not in Resources(train=["a"]).open(Vocabulary())


@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_adding_a_resource_changes_no_metric_that_does_not_need_it(tmp_path: Path, header: str) -> None:
    """Every metric that can be computed with and without a resource and does not need it, signature included."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(f"{header}one 1 2\nthree 3 -4\nfour 0 1\n")
    texts = (["one two three", "three five"], ["one three", "two four"], ["four one", "three"])
    given: dict[str, Any] = {"train": ["one two <unk>", "one six"], "vocabulary": ["one"], "vectors": vectors}
    names = [(), *combinations(given, 1), *combinations(given, 2), *combinations(given, 3)]
    runs = {
        frozenset(some): dialeval.evaluate(*texts, **{name: given[name] for name in some}, metrics="all")
        for some in names
    }
    compared = set()
    for fewer, more in ((a, b) for a in runs for b in runs if a < b):
        without, result = runs[fewer]["system"], runs[more]["system"]
        for key in without:
            assert not {need.argument for need in registry().parse(key).needs} & (more - fewer)
            one, other = Result({key: without[key]}), Result({key: result[key]})
            assert one == other, f"{key} with {', '.join(more - fewer)}"
            compared.add(key)
    assert {"distinct-2", "bigram-kl-div", "per-unigram-entropy", "coherence", "embedding-greedy"} <= compared


def test_what_in_vocabulary_takes() -> None:
    with pytest.raises(SettingError, match="pass vocabulary= or train="):
        Resources(in_vocabulary="listed").open(Vocabulary())
    with pytest.raises(SettingError, match="listed, vectors, not 'all'"):
        Resources(train=["a"], in_vocabulary="all").open(Vocabulary())  # type: ignore[arg-type]


def test_the_warnings_of_a_vector_file_reach_the_run(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("one 1 2\n\ntwo 3 4\n")
    for _ in range(2):
        run = dialeval.evaluate(["one two"], ["one"], ["two"], train=["one"], vectors=path, metrics="all")
        assert run.warnings == ("v.txt: 1 odd line, the first is 2; left out: 1 blank",)
    assert dialeval.evaluate(["one"], ["one"], metrics="all").warnings == ()


def test_resources_that_are_open_are_taken_as_they_are() -> None:
    goals = object()
    assert Resources(ready={GOALS: goals}).open(Vocabulary()) == {GOALS: goals}


def test_objects_cannot_be_opened_elsewhere() -> None:
    Resources("train.txt", None, Path("vectors.txt")).require_paths()
    Resources(vocabulary="words.txt").require_paths()
    with pytest.raises(SettingError, match="a language model is asked by threads of one process"):
        Resources("train.txt", llm=object()).require_paths()
    for name in ("train", "vectors"):
        with pytest.raises(SettingError, match=f"^{name}: a list is in the memory of this process; save it to a file"):
            replace(Resources(), **{name: ["a"]}).require_paths()  # type: ignore[arg-type]
    with pytest.raises(SettingError, match="vocabulary: a list is in the memory of this process"):
        Resources(vocabulary=["a"]).require_paths()


def test_the_training_text_is_read_once() -> None:
    column = read_train_texts(["one", "two"])
    assert column is not None
    assert list(column) == ["one", "two"]
    assert read_train_texts(column) is column
    assert read_train_texts(None) is None


def test_shipped_judges_are_made_once_a_process() -> None:
    if explain_missing(inputs.JUDGE) is None:
        one, other = (Resources().open(Vocabulary()) for _ in range(2))
        assert one[inputs.DIALOGUE_JUDGE] is other[inputs.DIALOGUE_JUDGE]


def test_only_the_judge_has_to_be_installed() -> None:
    assert explain_missing(inputs.TRAIN) is None
