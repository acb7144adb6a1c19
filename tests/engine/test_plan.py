"""What can run, what is skipped and why, what is refused."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.fold import RowMetric
from dialeval.engine.plan import MOST_JUDGED, Plan, find_tokenizer, make_plan
from dialeval.metrics.registry import register
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
