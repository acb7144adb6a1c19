"""Resources are opened once, checked against their digests, and named where other processes cannot open them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import dialeval
import evaluating
from dialeval.core import inputs
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, SettingError
from dialeval.core.result import Result
from dialeval.engine.resources import Resources
from dialeval.metrics.registry import registry
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


@pytest.mark.parametrize("header", ["", "3 2\n"])
def test_adding_a_resource_changes_no_metric_that_does_not_need_it(tmp_path: Path, header: str) -> None:
    """Every metric that can be computed with and without a resource and does not need it, signature included."""
    vectors = tmp_path / "vectors.txt"
    vectors.write_text(f"{header}one 1 2\nthree 3 -4\nfour 0 1\n")
    texts = (["one two three", "three five"], ["one three", "two four"], ["four one", "three"])
    given: dict[str, Any] = {"train": ["one two <unk>", "one six"], "vocabulary": ["one"], "vectors": vectors}
    names = [(), *combinations(given, 1), *combinations(given, 2), *combinations(given, 3)]
    runs = {
        frozenset(some): evaluating.evaluate(*texts, **{name: given[name] for name in some}, metrics="all")
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
