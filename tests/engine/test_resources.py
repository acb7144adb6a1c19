"""Resources are opened once, checked against their digests, and named where other processes cannot open them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

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
