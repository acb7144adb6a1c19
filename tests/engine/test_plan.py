"""What can run, what is skipped and why, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import orjson
import pytest

import dialeval
import evaluating
from dialeval import lsdscc
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import TextColumn
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.fold import RowMetric
from dialeval.core.result import Result, Run
from dialeval.engine.plan import MOST_JUDGED, Plan, find_tokenizer, make_plan
from dialeval.engine.processes import Processes
from dialeval.engine.resources import Resources
from dialeval.engine.worker import Threads
from dialeval.metrics.registry import register, registry
from dialeval.metrics.words import Length
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
    with pytest.raises(NeedError, match=r"run: pip install 'dialeval\[judge\]' && dialeval judge install"):
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
    path.write_text("one 1 2\nodd\ntwo 3 4\n")
    for _ in range(2):
        run = dialeval.evaluate(["one two"], ["one"], ["two"], train=["one"], vectors=path, metrics="all")
        assert run.warnings == ("v.txt: 1 line left out: no word with its numbers",)
    assert dialeval.evaluate(["one"], ["one"], metrics="all").warnings == ()


# The tokenizer of a run: the default of all metrics, the choice by script, and texts that are left whole.


CHINESE = ["今天天气很好", "我不知道你在说什么"]
THERE = ["今天天气不好", "我知道你在说什么"]
ENGLISH = ["hello there", "it is, isn't it?"]


def run_of(responses: Any, **given: Any) -> Run:
    return evaluating.evaluate(responses, **given)


def splitting_tokenizers(run: Run, system: str) -> dict[str, str]:
    signatures = {key: estimate.signature for key, estimate in run[system].items()}
    return {key: signature["tokenizer"] for key, signature in signatures.items() if signature is not None}


def test_one_for_all_metrics_that_say_none() -> None:
    asked = ["length", "bleu-4", "rouge(beta=1.0)", "distinct(tokenizer=words.1)", Length()]
    run = run_of({"a": CHINESE}, references=THERE, metrics=asked, tokenizer="zh")
    found = splitting_tokenizers(run, "a")
    assert found["distinct-2"] == "words.1"
    assert found["bleu-4"] == found["rouge(beta=1.0)"] == "zh"
    assert run["a"]["bleu-4"].mean > 0.5


def test_a_metric_without_words_is_left_alone() -> None:
    run = run_of({"a": CHINESE}, references=THERE, metrics="chrf", tokenizer="zh")
    assert "tokenizer" not in (run["a"]["chrf"].signature or {})


@pytest.mark.parametrize(("responses", "name", "length"), [(CHINESE, "zh", 7.5), (ENGLISH, "words.1", 3.0)])
def test_auto_chooses_by_script(responses: list[str], name: str, length: float) -> None:
    run = run_of({"a": responses}, metrics="length", tokenizer="auto")
    assert splitting_tokenizers(run, "a") == {"length": name}
    assert run["a"]["length"].mean == length
    assert run.warnings == ()


def test_auto_chooses_one_for_all_systems() -> None:
    run = run_of(
        {"a": CHINESE, "b": ["ok", "yes"]}, references=THERE, metrics="length,unigram-kl-div", tokenizer="auto"
    )
    assert {name for system in run for name in splitting_tokenizers(run, system).values()} == {"zh"}


def test_anchors_do_not_move_the_choice() -> None:
    few = ["好", "不好"]
    run = run_of({"a": few}, references=few, metrics="length", tokenizer="auto", baselines=True)
    assert splitting_tokenizers(run, "a") == splitting_tokenizers(run, "floor/constant") == {"length": "zh"}


def test_auto_for_one_metric() -> None:
    run = run_of({"a": CHINESE}, metrics="length,length(tokenizer=auto)")
    assert splitting_tokenizers(run, "a") == {"length": "words.1", "length(tokenizer=auto)": "zh"}
    assert run["a"]["length(tokenizer=auto)"].mean == 7.5


def test_the_choice_does_not_depend_on_chunks_or_workers(tmp_path: Path) -> None:
    # English rows come first: who looked only at these would choose another one.
    texts = ["hello there my friend"] * 40 + CHINESE * 200
    rows = [{"dialog_id": f"d{at}", "response": text, "reference": text} for at, text in enumerate(texts)]
    (tmp_path / "rows.jsonl").write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    given: dict[str, Any] = {"metrics": "length,bigram-kl-div,distinct-2", "tokenizer": "auto"}
    whole = run_of({"a": str(tmp_path / "rows.jsonl")}, **given)
    assert set(splitting_tokenizers(whole, "a").values()) == {"zh"}
    for engine, size in ((Threads(2), 400), (Processes(2), 4000)):
        cut = run_of({"a": str(tmp_path / "*.jsonl")}, **given, engine=engine, chunk_bytes=size)
        figures = {key: (estimate.mean, str(estimate.signature)) for key, estimate in cut["a"].items()}
        assert figures == {key: (estimate.mean, str(estimate.signature)) for key, estimate in whole["a"].items()}


def test_texts_that_are_left_whole_are_told_once() -> None:
    run = run_of({"a": CHINESE, "b": [*ENGLISH[:1], CHINESE[0]]}, references=THERE, metrics="length,bleu-4,distinct-2")
    what = (
        "words.1 cannot split 3 of 4 responses, whose script puts no spaces between words: each sentence counts as one"
    )
    assert run.warnings == (f"{what} word; choose --tokenizer zh, tokenizer='zh' in Python",)


@pytest.mark.parametrize("name", ["13a", "intl", "lower-words.1"])
def test_other_tokenizers_leave_them_whole_too(name: Any) -> None:
    (warning,) = run_of({"a": CHINESE}, metrics="length", tokenizer=name).warnings
    assert warning.startswith(f"{name} cannot split 2 of 2")


@pytest.mark.parametrize("name", ["zh", "char", "unicode", "ja"])
def test_those_that_split_them_are_not_told_of(name: Any) -> None:
    assert run_of({"a": CHINESE}, metrics="length", tokenizer=name).warnings == ()


def test_nothing_is_told_of_other_scripts() -> None:
    several = ["hello “there” — \U0001f600", "שלום עולם", "今天 天气 很 好", "한국어 좋아요", "a 猫"]
    assert run_of({"a": several}, metrics="length").warnings == ()


def test_hypotheses_are_looked_at_too() -> None:
    groups = {"q": {"1": [THERE[0]], "2": [THERE[1]]}}
    run = lsdscc.evaluate({"a": [CHINESE]}, groups, metrics="mds", tokenizer="auto")
    assert splitting_tokenizers(run, "a") == {"mds": "zh"}
    assert lsdscc.evaluate({"a": [CHINESE]}, groups, metrics="mds").warnings[0].startswith("words.1 cannot")


def test_in_vocabulary_are_split_as_responses_are() -> None:
    train = ["今天天气很好", "我不知道你在说什么"]
    run = run_of({"a": CHINESE}, metrics="dialog-eval", tokenizer="zh", train=train)
    assert run["a"]["distinct-1"].mean == pytest.approx(14 / 15)  # all are known, and one occurs twice
