"""The fold: settings that are checked by their types, and estimates without an interval."""

from __future__ import annotations

import io
import os
import pickle
from collections import Counter
from dataclasses import dataclass
from typing import Any, Literal, get_origin, get_type_hints
from zipfile import BadZipFile

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import NumberColumn, ObjectColumn, RaggedColumn, TextColumn
from dialeval.core.errors import NeedError, SettingError
from dialeval.core.exact import Moments
from dialeval.core.fold import RowMetric, check_column, from_bytes, to_bytes
from dialeval.core.inputs import Input
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry
from dialeval.suites.multiwoz import STATES
from dialeval.text.ngrams import NgramColumn, NgramCounts
from dialeval.text.tokenizers import tokenize
from dialeval.text.vocabulary import Vocabulary


@dataclass(frozen=True)
class Ends(RowMetric):
    family = "ends"
    presets = {"ends": {}}
    needs = frozenset({inputs.RESPONSE})

    side: Literal["left", "right"] = "left"
    width: Literal[1, 2] = 1

    def score(self, batch: Batch) -> Floats:
        return np.zeros(len(batch))


@dataclass(frozen=True)
class Checked(Ends):
    limit: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.limit < 0:
            raise SettingError("below 0")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": "top"}, r"^ends has side=left\|right, not 'top'$"),
        ({"width": 3}, r"^ends has width=1\|2, not 3$"),
        ({"width": "1"}, r"^ends has width=1\|2, not '1'$"),
    ],
)
def test_other_values_than_those_of_the_type_are_refused(settings: dict[str, Any], message: str) -> None:
    for metric in (Ends, Checked):
        with pytest.raises(SettingError, match=message):
            metric(**settings)
    assert Ends("right", 2).width == 2


@pytest.mark.parametrize("family", registry().families)
def test_every_built_in_metric_checks_its_choices(family: str) -> None:
    metric = registry().families[family]
    hints = get_type_hints(metric)
    for name in metric.setting_names():
        if get_origin(hints[name]) is Literal:
            with pytest.raises(SettingError, match=f"^{family} has {name}=.*, not 'nonsense'$"):
                metric(**{name: "nonsense"})


@pytest.mark.parametrize(
    ("values", "given"),
    [
        (np.zeros(2), r"an array of float64 of the shape \(2,\)"),
        (np.zeros((3, 1)), r"an array of float64 of the shape \(3, 1\)"),
        (np.zeros(3, np.int64), r"an array of int64 of the shape \(3,\)"),
        ([1.0, 2.0, 3.0], "a list"),
        (None, "a NoneType"),
    ],
)
def test_what_is_not_one_number_for_each_row_names_the_metric(values: Any, given: str) -> None:
    check_column("polite", np.zeros(3), 3)
    with pytest.raises(SettingError, match=f"the metric polite gave {given} for 3 rows; an array of 3 float64"):
        check_column("polite", values, 3)


def test_a_row_metric_that_gives_too_few_values_is_named() -> None:
    @dataclass(frozen=True)
    class Short(Ends):
        def score(self, batch: Batch) -> Floats:
            return np.zeros(len(batch) - 1)

    with pytest.raises(SettingError, match=r"the metric ends gave an array of float64 of the shape \(2,\) for 3 rows"):
        dialeval.evaluate(["a", "b", "c"], metrics=[Short()])


# Signatures print, read back, and tell what forbids a comparison.


names = st.text(min_size=1, max_size=8)


@given(names, st.dictionaries(names, st.text(max_size=8), max_size=5))
def test_prints_and_reads_back(metric: str, fields: dict[str, str]) -> None:
    signature = Signature(metric, tuple(fields.items()))
    assert Signature.parse(str(signature)) == signature
    assert "\n" not in str(signature)


def test_reads_as_people_expect() -> None:
    signature = Signature.of("distinct-2", n=2, effective=True, epsilon=0.1)
    assert str(signature) == "distinct-2|n:2|effective:yes|epsilon:0.1"
    assert signature["n"] == "2"


@pytest.mark.parametrize("line", ["", "|n:2", "bleu|n", "bleu|:2"])
def test_what_is_no_signature_is_refused(line: str) -> None:
    with pytest.raises(SettingError, match="not a signature"):
        Signature.parse(line)


# States survive a file without pickles, and nothing but what they may hold comes out of one.


plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda parts: st.lists(parts, max_size=4) | st.tuples(parts, parts) | st.dictionaries(st.text(), parts, max_size=3),
    max_leaves=12,
)


@given(plain)
def test_plain_data_comes_back(value: Any) -> None:
    assert repr(from_bytes(to_bytes(value), None)) == repr(value)


@given(st.lists(st.floats(allow_infinity=False), max_size=5))
def test_exact_sums_come_back(items: list[float]) -> None:
    moments = Moments.of(np.array(items, np.float64))
    assert from_bytes(to_bytes((moments, moments)), (Moments(),)) == (moments, moments)


def counted(texts: list[str], n: int, vocabulary: Vocabulary) -> NgramCounts:
    tokens = tokenize(TextColumn.from_strings(texts), vocabulary)
    return NgramCounts.of(NgramColumn.of(tokens, n), vocabulary)


@dataclass
class Stranger:
    size: int


def test_only_classes_of_the_template_come_out() -> None:
    content = to_bytes([Stranger(3)])
    assert from_bytes(content, Stranger(0)) == [Stranger(3)]
    with pytest.raises(KeyError, match="Stranger"):
        from_bytes(content, Moments())


def test_counters_and_sets_survive_and_objects_are_refused() -> None:
    state = (Counter("abca"), {1, 2}, frozenset({"x"}), {"nested": [Counter({2: 5})]})
    assert from_bytes(to_bytes(state), state) == state
    assert isinstance(from_bytes(to_bytes(state), state)[0], Counter)
    with pytest.raises(SettingError, match="a state that holds a object cannot be sent or saved"):
        to_bytes([object()])


def test_pickles_and_rubbish_are_refused() -> None:
    hidden = io.BytesIO()
    np.savez(hidden, tree=np.array([{"a": 1}], object))
    for content in (b"PK", pickle.dumps([1]), hidden.getvalue(), to_bytes(1)[:-30]):
        with pytest.raises((ValueError, OSError, BadZipFile)):
            from_bytes(content, None)


class Planted:
    """Runs code when it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, ("import os; os.environ['DIALEVAL_PLANTED'] = 'ran'",)


def test_a_pickled_array_is_not_unpickled() -> None:
    target = io.BytesIO()
    np.savez(target, allow_pickle=True, tree=np.array([Planted()], object))
    with pytest.raises(ValueError, match="allow_pickle=False"):
        from_bytes(target.getvalue(), ())
    assert "DIALEVAL_PLANTED" not in os.environ


# A batch hands out what a metric declared, in the form that it has, and keeps what is derived once.


COLUMNS: dict[Input, Any] = {
    inputs.RESPONSE: TextColumn.from_strings(["a", "b"]),
    inputs.REFERENCE: RaggedColumn.from_lists([["x", "y"], []]),
    STATES: ObjectColumn([{}, {"hotel": {}}]),
    inputs.LABELS: NumberColumn(np.eye(2)),
}


def batch() -> Batch:
    return Batch(2, COLUMNS, Vocabulary(), np.array([0, 1, 2]), {inputs.TRAIN: "train"}, {"fact": 7})


@pytest.mark.parametrize(
    ("read", "need", "message"),
    [
        ("texts", inputs.REFERENCE, "does not hold one text per row"),
        ("lists", STATES, "holds objects and not texts"),
        ("objects", inputs.RESPONSE, "holds texts"),
        ("lists", inputs.CONTEXT, "needs contexts"),
        ("numbers", STATES, "does not hold numbers"),
        ("texts", inputs.CONTEXT, "needs contexts"),
        ("resource", inputs.EMBEDDINGS, "needs vectors"),
    ],
)
def test_what_is_not_there_or_of_another_kind_is_an_error(read: str, need: Input, message: str) -> None:
    with pytest.raises(NeedError, match=message):
        getattr(batch(), read)(need)


def test_facts_have_to_be_named() -> None:
    assert batch().fact("fact") == 7
    with pytest.raises(NeedError, match="without declaring it in its facts"):
        batch().fact("other")


# Needs: every one of them can be given by an argument and by an option.


def test_the_remedy_names_what_provides_an_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inputs, "OPTIONS", {})
    assert inputs.TRAIN.remedy == "needs train: train=... in Python"
    monkeypatch.setitem(inputs.OPTIONS, "train", "--train")
    assert inputs.TRAIN.remedy == "needs train: --train on the command line, train=... in Python"
    assert inputs.Column.of_field("csat").remedy == "needs a field csat in responses"


def test_inputs_survive_pickling() -> None:
    copy = pickle.loads(pickle.dumps(inputs.LATENCY))
    assert (copy, copy.kind, copy.argument) == (inputs.LATENCY, "number", inputs.LATENCY.argument)
