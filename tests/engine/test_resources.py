"""Resources are opened once, checked against their digests, and named where other processes cannot open them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.needs import Need
from dialeval.engine.resources import Resources, lacking, train_texts
from dialeval.text.vocabulary import Vocabulary


def test_a_resource_that_changed_is_refused(tmp_path: Path) -> None:
    """Workers open resources by path; what they read there must be what the run began with."""
    (tmp_path / "train.txt").write_text("one two\n")
    files = Resources(str(tmp_path / "train.txt"))
    opened = files.opened(Vocabulary())
    digests = {need: opened[need].digest for need in (Need.VOCABULARY, Need.TRAIN)}
    replace(files, digests=digests).opened(Vocabulary())
    (tmp_path / "train.txt").write_text("one two three\n")
    with pytest.raises(DataError, match=r"train.txt: is not the vocabulary that the run began with"):
        replace(files, digests=digests).opened(Vocabulary())


def test_known_words_are_those_listed_else_those_of_the_training_text() -> None:
    words = Vocabulary()
    ids = words.split(TextColumn.from_strings(["one two three"])).ids
    by_text, by_list = Resources(train=["one two"]).opened(words), Resources(vocabulary=["three"]).opened(words)
    assert by_text[Need.VOCABULARY].mask()[ids].tolist() == [True, True, False]
    assert by_list[Need.VOCABULARY].mask()[ids].tolist() == [False, False, True]
    assert Need.TRAIN in by_text
    assert Need.TRAIN not in by_list
    assert Need.VOCABULARY not in Resources().opened(words)


def known(text: str, **given: Any) -> dict[str, tuple[bool, bool]]:
    """Whether each word of a text is known, and whether it has a vector."""
    words = Vocabulary()
    opened = Resources(**given).opened(words)
    ids = words.split(TextColumn.from_strings([text])).ids
    pairs = zip(opened[Need.VOCABULARY].mask()[ids], opened[Need.EMBEDDINGS].arrays()[0][ids] >= 0, strict=True)
    return {word: (bool(a), bool(b)) for word, (a, b) in zip(text.split(), pairs, strict=True)}


@pytest.mark.parametrize("listed", [{"train": ["one two"]}, {"vocabulary": ["one", "two"], "train": ["three four"]}])
def test_of_vectors_with_a_header_only_listed_words_are_known(tmp_path: Path, listed: dict[str, Any]) -> None:
    """One without a header is what dialog-eval made for a vocabulary; that it takes as a whole."""
    headed, plain = tmp_path / "headed.vec", tmp_path / "plain.txt"
    plain.write_text("one 1 2\nthree 3 4\n")
    headed.write_text("2 2\n" + plain.read_text())
    cut = {"one": (True, True), "two": (True, False), "three": (False, False), "five": (False, False)}
    whole = {**cut, "three": (True, True)}
    text = "one two three five"
    assert known(text, **listed, embeddings=headed) == cut
    assert known(text, **listed, embeddings=plain) == whole
    assert known(text, **listed, embeddings=headed, known_words="vectors") == whole
    assert known(text, **listed, embeddings=plain, known_words="listed") == cut
    alone = {**whole, "two": (False, False)}
    assert known(text, embeddings=headed) == known(text, embeddings=plain) == alone


def test_what_known_words_takes() -> None:
    with pytest.raises(SettingError, match="pass vocabulary= or train="):
        Resources(known_words="listed").opened(Vocabulary())
    with pytest.raises(SettingError, match="listed, vectors, not 'all'"):
        Resources(train=["a"], known_words="all").opened(Vocabulary())  # type: ignore[arg-type]


def test_the_warnings_of_a_vector_file_reach_the_run(tmp_path: Path) -> None:
    path = tmp_path / "v.txt"
    path.write_text("one 1 2\n\ntwo 3 4\n")
    for _ in range(2):
        run = dialeval.evaluate(["one two"], ["one"], ["two"], train=["one"], embeddings=path)
        assert run.warnings == ("v.txt: 1 odd line, the first is 2; left out: 1 blank",)
    assert dialeval.evaluate(["one"], ["one"]).warnings == ()


def test_resources_that_are_open_are_taken_as_they_are() -> None:
    goals = object()
    assert Resources(ready={Need.GOALS: goals}).opened(Vocabulary()) == {Need.GOALS: goals}


def test_objects_cannot_be_opened_elsewhere() -> None:
    Resources("train.txt", None, "vectors.txt").require_paths()
    with pytest.raises(SettingError, match="vocabulary: a list lies in the memory of this process"):
        Resources(vocabulary=["a"]).require_paths()


def test_the_training_text_is_read_once() -> None:
    column = train_texts(["one", "two"])
    assert column is not None
    assert list(column) == ["one", "two"]
    assert train_texts(column) is column
    assert train_texts(None) is None


def test_only_the_judge_has_to_be_installed() -> None:
    assert lacking(Need.TRAIN) is None
