"""BLEU against dialog-eval: every response of four data sets, all smoothing methods, digit for digit.

Left out: response files of another length than their targets (`fewer`, `more`), which are problems here, and the two in
which this project reads a line differently on purpose: `bom` (the mark is no part of a word) and `lone_cr` (a carriage
return ends no line). `single` has one response, which is compared with the first target.
"""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.columns import ColumnData, RaggedColumn, TextColumn
from dialeval.core.exact import Moments
from dialeval.core.inputs import Input
from dialeval.io.opening import read_lines
from dialeval.metrics.bleu import Bleu
from dialeval.text.vocabulary import Vocabulary

pytestmark = pytest.mark.golden

ORDERS = (1, 2, 3, 4)
METHODS = range(8)
DEFAULT_METHOD = 4

SMOOTHED = [
    *(("dbdc3-en", name) for name in ("tfidf", "shuffled", "constant", "echo")),
    *(("nasty-a", name) for name in ("lf", "crlf", "nofinal", "single")),
]
"""Sets and response files with values of every method, per response and in sum."""

PER_RESPONSE = [
    *(("multiwoz", name) for name in ("damd", "ubar", "mintl", "tfidf", "constant")),
    *SMOOTHED,
    ("nasty-a", "all_oov"),
]
SUMMARIES = [*PER_RESPONSE[:-1], ("multiwoz-large", "damd"), ("multiwoz-large", "pptod")]
"""The original ends before it writes a summary of `all_oov`; its BLEU values are there per response."""

RELATIVE = 1e-12


@pytest.fixture(scope="module")
def sets(shared_data: Path) -> Path:
    return shared_data / "dialog-eval"


def load(sets: Path, name: str, file: str) -> Any:
    return json.loads((sets / name / file).read_text())


def rows_of(sets: Path, name: str, file: str) -> list[dict[str, Any]]:
    with gzip.open(sets / name / file, "rt") as lines:
        return [json.loads(line) for line in lines]


def batch_of(sets: Path, name: str, response: str) -> Batch:
    targets, responses = (lines(sets / name / file) for file in ("test_target.txt", f"responses/{response}.txt"))
    targets = targets.slice(0, len(responses))  # fewer in `single` alone
    columns: dict[Input, ColumnData] = {inputs.RESPONSE: responses, inputs.REFERENCE: RaggedColumn.from_texts(targets)}
    return Batch(len(responses), columns, Vocabulary(), np.arange(len(responses) + 1))


def lines(path: Path) -> TextColumn:
    return read_lines(path if path.exists() else path.with_name(path.name + ".gz"))


def summary(items: Floats) -> dict[str, float]:
    moments = Moments.of(items)
    return {"mean": moments.mean, "std": moments.std, "n": moments.scored}


@pytest.mark.parametrize(("name", "response"), SMOOTHED)
@pytest.mark.parametrize("method", METHODS)
def test_every_smoothing_method_per_response(sets: Path, name: str, response: str, method: int) -> None:
    batch = batch_of(sets, name, response)
    golden = [row[f"method{method}"] for row in rows_of(sets, name, f"per-response-bleu/{response}.jsonl.gz")]
    expected = [[np.nan] * 4 if values == "AssertionError" else values for values in golden]
    assert len(expected) == len(batch)
    found = np.transpose([Bleu(n=n, smooth=method).score(batch) for n in ORDERS])  # type: ignore[arg-type]
    np.testing.assert_allclose(found, expected, rtol=RELATIVE)


@pytest.mark.parametrize(("name", "response"), SMOOTHED)
def test_every_smoothing_method_in_sum(sets: Path, name: str, response: str) -> None:
    batch = batch_of(sets, name, response)
    golden = load(sets, name, "golden-smoothing.json")["responses"][response]
    for method in METHODS:
        values = golden.get(f"method{method}") or {}
        if method != 6:  # where the original dies
            assert "bleu-4" in values
        for n in ORDERS:
            if f"bleu-{n}" in values:
                found = summary(Bleu(n=n, smooth=method).score(batch))  # type: ignore[arg-type]
                assert found == pytest.approx({key: values[f"bleu-{n}"][key] for key in found}, rel=RELATIVE, abs=1e-15)


@pytest.mark.parametrize(("name", "response"), PER_RESPONSE)
def test_defaults_per_response(sets: Path, name: str, response: str) -> None:
    batch = batch_of(sets, name, response)
    golden = rows_of(sets, name, f"per-response/{response}.jsonl.gz")
    found = np.transpose([Bleu(n=n).score(batch) for n in ORDERS])  # type: ignore[arg-type]
    np.testing.assert_allclose(found, [[row[f"bleu-{n}"] for n in ORDERS] for row in golden], rtol=RELATIVE)


@pytest.mark.parametrize(("name", "response"), SUMMARIES)
def test_defaults_in_sum(sets: Path, name: str, response: str) -> None:
    batch = batch_of(sets, name, response)
    golden = load(sets, name, "golden.json")["responses"][response]["summary"]
    for n in ORDERS:
        found = summary(Bleu(n=n).score(batch))  # type: ignore[arg-type]
        assert found == pytest.approx({key: golden[f"bleu-{n}"][key] for key in found}, rel=RELATIVE, abs=1e-15)
