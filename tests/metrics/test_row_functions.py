"""A function of rows is a metric wherever a metric is, and its problems name it and the row."""

from __future__ import annotations

import math
import pickle
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import DataError, NeedError, SettingError
from dialeval.core.signature import Signature
from dialeval.metrics.functions import METRIC_MARK, make_class
from dialeval.metrics.registry import Registry, registry


@dialeval.metric_of_rows(name="polite-words", better="higher", bounds=(0, 1))
def polite(response: str) -> bool:
    """Whether a response says please."""
    return "please" in response


@dialeval.metric_of_rows(name="echo-words")
def echo(response: str, context: list[str], references: list[str] | None = None) -> float | None:
    return None if not context else float(response == context[-1]) + 10 * len(references or ["nothing"])


@dialeval.metric_of_rows(name="first-words", better="lower")
def first_words(response: str, reference: str) -> int:
    return abs(len(response.split()) - len(reference.split()))


TEXTS = ["yes please", "no", "please do"]


def test_it_is_the_mean_of_what_the_function_returns() -> None:
    estimate = dialeval.evaluate(TEXTS, metrics=[polite])["system"]["polite-words"]
    assert estimate.scores is not None
    np.testing.assert_array_equal(estimate.scores, [1.0, 0.0, 1.0])
    assert estimate.mean == pytest.approx(2 / 3)
    assert estimate.interval is not None
    assert 0 <= estimate.interval[0] < estimate.interval[1] <= 1
    assert polite("please")  # and stays a function


@pytest.mark.parametrize("asked", [polite, [polite], "polite-words", ["length", "polite-words"], "polite-words,length"])
def test_it_is_asked_for_as_a_function_or_by_its_name(asked: Any) -> None:
    assert dialeval.evaluate(TEXTS, metrics=asked)["system"]["polite-words"].mean == pytest.approx(2 / 3)


def test_parameters_say_what_it_needs() -> None:
    run = dialeval.evaluate(
        ["a", "b", "c"], [["x y"], [], ["x", "z"]], [["b", "a"], ["b"], []], metrics=[echo, first_words]
    )
    items = {key: estimate.scores for key, estimate in run["system"].items()}
    np.testing.assert_array_equal(items["echo-words"], [11.0, 11.0, math.nan])
    np.testing.assert_array_equal(items["first-words"], [1.0, math.nan, 0.0])
    assert run["system"]["first-words"].scored == 2
    alone = dialeval.evaluate(["a"], None, ["a"], metrics=[echo])["system"]["echo-words"]
    assert alone.mean == 11.0  # the default, where no row has references
    for asked in ([echo], "echo-words"):
        with pytest.raises(NeedError, match="echo-words needs contexts"):
            dialeval.evaluate(["a"], metrics=asked)


def test_the_signature_has_the_digest_of_the_source() -> None:
    signature = dialeval.evaluate(TEXTS, metrics=[polite])["system"]["polite-words"].signature
    assert signature is not None
    assert Signature.parse(str(signature)) == signature
    assert len(dict(signature.fields)["code"]) == 12

    def made(source: str) -> str:
        names: dict[str, Any] = {}
        exec(source, names)  # a function that was typed, without a file
        return str(make_class(dialeval.metric_of_rows(name="typed")(names["typed"]))().signature())

    one = made("def typed(response): return 1")
    assert made("def typed(response): return 1") == one
    assert made("def typed(response): return 2") != one


def test_comparisons_know_which_way_is_up() -> None:
    run = dialeval.evaluate({"rude": ["no"] * 30, "kind": ["please"] * 29 + ["no"]}, metrics="polite-words")
    row = dialeval.compare(run).differences[0]
    assert (row.better, row.worse, row.significant) == ("higher", False, True)
    assert (
        dialeval.compare(dialeval.evaluate({"a": ["x"], "b": ["y"]}, ["z"], metrics=first_words)).differences[0].better
        == "lower"
    )


def test_it_travels_with_a_meter_and_by_itself() -> None:
    tally = dialeval.make_tally([polite, "length"])
    tally.update(TEXTS[:1])
    there = pickle.loads(pickle.dumps(tally))
    there.update(TEXTS[1:])
    assert there.run() == dialeval.evaluate(TEXTS, metrics=[polite, "length"])
    metric = make_class(polite)()
    assert pickle.loads(pickle.dumps(metric)) == metric
    assert registry().parse("polite-words") == metric


def test_it_is_not_among_all_unless_it_is_registered() -> None:
    assert "polite-words" not in dialeval.evaluate(TEXTS, metrics="all")["system"]
    own = Registry()
    own.register(polite)
    assert "polite-words" in own.presets


def test_a_function_that_is_defined_again_takes_the_place_of_the_first() -> None:
    def defined(value: int) -> Any:
        @dialeval.metric_of_rows(name="constant")
        def constant(response: str) -> int:
            return value

        return constant

    for value in (1, 2):
        defined(value)
        assert dialeval.evaluate(["a"], metrics="constant")["system"]["constant"].mean == value


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "my_manners.py").write_text(
        "import dialeval\n@dialeval.metric_of_rows(name='rude')\ndef rude(response):\n    return 'no' in response\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    yield "my_manners"
    sys.modules.pop("my_manners", None)


def test_it_is_imported_by_its_place(module: str) -> None:
    run = dialeval.evaluate(TEXTS, metrics=f"{module}:rude,length")
    assert list(run["system"]) == ["rude", "length"]
    assert run["system"]["rude"].mean == pytest.approx(1 / 3)
    with pytest.raises(SettingError, match="the metric my_manners:kind cannot be imported"):
        dialeval.evaluate(TEXTS, metrics=f"{module}:kind")
    with pytest.raises(SettingError, match="No module named 'no_manners'"):
        dialeval.evaluate(TEXTS, metrics="no_manners:rude")


def test_an_exception_names_the_metric_and_the_row() -> None:
    @dialeval.metric_of_rows(name="fussy")
    def fussy(response: str) -> float:
        return 1 / len(response)

    texts = ["a", "b", "", "c"]
    what = r"responses:3: fussy cannot score this row \(ZeroDivisionError: division by zero\)"
    both: list[Any] = ["length", fussy]
    for asked in ([fussy], both):
        with pytest.raises(DataError, match=what) as caught:
            dialeval.evaluate(texts, metrics=asked)
        assert isinstance(caught.value.__cause__, ZeroDivisionError)
    tally = dialeval.make_tally(fussy)
    tally.update(texts)
    with pytest.raises(DataError, match=what):
        tally.compute()


@pytest.mark.parametrize(
    ("value", "what"),
    [
        (b"1", "it returned b'1', and a number is expected"),
        ("x", "it returned 'x', and a number is expected"),
        ([1.0], "it returned .1.0., and"),
        (math.inf, "infinite"),
    ],
)
def test_what_is_no_number_names_the_metric_and_the_row(value: Any, what: str) -> None:
    @dialeval.metric_of_rows(name="odd")
    def odd(response: str) -> Any:
        return value if response == "b" else 1

    with pytest.raises(DataError, match=rf"responses:2: odd cannot score this row \(.*{what}"):
        dialeval.evaluate(["a", "b"], metrics=[odd])


@pytest.mark.parametrize(
    ("function", "what"),
    [
        (lambda *response: 1, r"what is \*response"),
        (lambda response, /: 1, "what is response"),
        (lambda response, **more: 1, r"what is \*\*more"),
        (lambda: 1, "looks at nothing"),
        (int, "metric_of_rows is for functions; wrong is a type"),
    ],
)
def test_functions_that_cannot_be_metrics(function: Any, what: str) -> None:
    with pytest.raises(SettingError, match=what):
        dialeval.metric_of_rows(name="wrong")(function)


def test_settings_that_cannot_be() -> None:
    for name in ("", "a b", "a,b", "a(b", "a)b", "a|b", "a:b", "a=b", "a\tb", " "):
        with pytest.raises(SettingError, match="cannot be the name of a metric"):
            dialeval.metric_of_rows(name=name)
    with pytest.raises(SettingError, match="better is 'higher', 'lower' or None"):
        dialeval.metric_of_rows(name="x", better="more")  # type: ignore[arg-type]


def test_names_that_are_taken() -> None:
    @dialeval.metric_of_rows(name="length")
    def own(response: str) -> int:
        return 0

    with pytest.raises(SettingError, match=r"two metrics are called 'length': .*Length and .*own; rename one"):
        dialeval.evaluate(["a"], metrics=[own])
    with pytest.raises(SettingError, match=r"two metrics are called 'polite-words': .*polite and .*other; rename one"):

        @dialeval.metric_of_rows(name="polite-words")
        def other(response: str) -> int:
            return 0


def test_a_function_that_is_no_metric() -> None:
    def plain(response: str) -> int:
        return 0

    assert not hasattr(plain, METRIC_MARK)
    with pytest.raises(SettingError, match=r"plain is not a metric; a function becomes one by @dialeval"):
        dialeval.evaluate(["a"], metrics=[plain])
