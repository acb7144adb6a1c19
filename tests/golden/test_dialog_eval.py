"""All 17 metrics against the figures of the original program, to within 1e-9.

The files where the original dies or differs on purpose are named in `dialog_eval` and tested for what happens instead.
"""

from __future__ import annotations

import gzip
import json
import math
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
import evaluating
from dialeval.core.result import Result, Run
from dialeval.reports.tables import METRICS_TXT, to_metrics_txt
from golden.dialog_eval import DIFFERENT_LENGTH, DIFFERENT_ON_PURPOSE, existing, golden, inputs, per_response

pytestmark = pytest.mark.golden

CLOSE = 1e-9
FILES = {
    "multiwoz": ["constant", "damd", "mintl", "tfidf", "ubar"],
    "multiwoz-large": ["damd", "pptod"],
    "dbdc3-en": ["constant", "echo", "shuffled", "tfidf"],
    "nasty-a": ["all_empty", "all_oov", "crlf", "lf", "nofinal", "one_word_each"],
}
KEYS = list(METRICS_TXT)


def evaluate(*given: Any, metrics: str = "dialog-eval", **more: Any) -> Run:
    """Evaluate with the metrics and the intervals of the original."""
    return evaluating.evaluate(*given, metrics=metrics, **{"intervals": "rows", **more})


@pytest.fixture(scope="session")
def dialog_eval(shared_data: Path) -> Path:
    return shared_data / "dialog-eval"


def result_of(folder: Path, file: str) -> Result:
    return evaluate({file: existing(folder / "responses" / f"{file}.txt")}, **inputs(folder))[file]


def agrees(result: Result, summary: dict[str, dict[str, float]]) -> None:
    for key, expected in summary.items():
        found = result[key]
        for name, value in (("mean", found.mean), ("std", found.std), ("confidence", found.half_width)):
            assert value == pytest.approx(expected[name], rel=CLOSE, abs=CLOSE), f"{key} {name}"
        if not found.corpus:
            assert found.scored == expected["n"], f"{key} scored"


def test_every_file_of_the_data_is_tested(dialog_eval: Path) -> None:
    for name, files in FILES.items():
        left_out = DIFFERENT_LENGTH | DIFFERENT_ON_PURPOSE if name == "nasty-a" else set()
        assert set(golden(dialog_eval / name)) == set(files) | left_out


@pytest.mark.parametrize(("name", "file"), [(name, file) for name, files in FILES.items() for file in files])
def test_figures_and_single_responses_agree(dialog_eval: Path, name: str, file: str) -> None:
    folder = dialog_eval / name
    expected, result = golden(folder)[file], result_of(folder, file)
    assert [key for key in result if key in KEYS] == KEYS
    assert not result.skipped
    if expected["summary"] is not None:
        assert set(expected["summary"]) == set(KEYS)
        agrees(result, expected["summary"])
    else:
        assert expected["error"]["type"] == "ZeroDivisionError"
    for key, column in per_response(folder, file).items():
        items = result[key].scores
        assert items is not None
        np.testing.assert_allclose(items, column, rtol=CLOSE, atol=CLOSE, err_msg=key)


def test_where_the_original_divides_by_zero_the_rest_is_scored(dialog_eval: Path) -> None:
    empty = result_of(dialog_eval / "nasty-a", "all_empty")
    assert math.isnan(empty["distinct-1"].mean)
    assert math.isnan(empty["per-unigram-entropy"].mean)
    assert (empty["length"].mean, empty["bleu-4"].mean) == (0.0, 0.0)
    assert empty["embedding-greedy"].scored == 0
    single = result_of(dialog_eval / "nasty-a", "one_word_each")
    assert math.isnan(single["distinct-2"].mean)
    assert single["distinct-1"].mean == pytest.approx(3 / 40)


@pytest.mark.parametrize("file", sorted(DIFFERENT_LENGTH))
def test_unequal_lengths_are_an_error(dialog_eval: Path, file: str) -> None:
    with pytest.raises(dialeval.DataError, match="both must have one line per response"):
        result_of(dialog_eval / "nasty-a", file)


def test_a_byte_order_mark_is_no_word(dialog_eval: Path) -> None:
    folder = dialog_eval / "nasty-a"
    marked, plain = result_of(folder, "bom"), result_of(folder, "lf")
    for key in KEYS:
        assert (marked[key].mean, marked[key].std) == (plain[key].mean, plain[key].std)


def test_a_lone_carriage_return_shifts_no_pair(dialog_eval: Path) -> None:
    folder = dialog_eval / "nasty-a"
    broken, plain = result_of(folder, "lone_cr"), result_of(folder, "lf")
    for key in ("length", "bleu-4", "embedding-greedy"):
        one, other = broken[key].scores, plain[key].scores
        assert one is not None
        assert other is not None
        same = (one == other) | (np.isnan(one) & np.isnan(other))
        assert set(np.flatnonzero(~same)) <= {4}, key


def edge_cases(dialog_eval: Path) -> dict[str, dict[str, object]]:
    cases = json.loads((dialog_eval / "nasty-a" / "edge-cases.json").read_text())["cases"]
    return {case["id"]: case for case in cases}


@pytest.mark.parametrize(
    ("case", "missing"),
    [
        ("no-test-source", ["contexts"]),
        ("no-test-target", ["references"]),
        ("no-train-source", ["train"]),
        ("no-vectors", ["vectors"]),
        ("no-vocab", ["vocabulary"]),
        ("no-vocab-no-vectors", ["vocabulary", "vectors"]),
    ],
)
def test_what_is_missing_switches_off_exactly_what_needs_it(dialog_eval: Path, case: str, missing: list[str]) -> None:
    folder = dialog_eval / "nasty-a"
    given = {name: path for name, path in inputs(folder).items() if name not in missing}
    result = evaluate({"lf": existing(folder / "responses" / "lf.txt")}, **given)["lf"]
    summary = edge_cases(dialog_eval)[case]["summary"]
    assert isinstance(summary, dict)
    assert set(result) & set(KEYS) == set(summary)
    agrees(result, summary)
    assert set(result.skipped) & set(KEYS) == set(KEYS) - set(summary)
    for reason in result.skipped.values():
        assert any(f"{name}=... in Python" in reason for name in missing)


@pytest.mark.parametrize("missing", [["vocabulary", "train"], ["vocabulary", "train", "vectors"]])
def test_where_the_original_dies_for_want_of_words_the_rest_runs(dialog_eval: Path, missing: list[str]) -> None:
    folder = dialog_eval / "nasty-a"
    given = {name: path for name, path in inputs(folder).items() if name not in missing}
    result = evaluate({"lf": existing(folder / "responses" / "lf.txt")}, **given)["lf"]
    assert {"distinct-2", "bigram-kl-div", "bleu-4"} <= set(result)
    assert ("embedding-greedy" in result) == ("vectors" not in missing)


@pytest.mark.parametrize(("case", "t"), [("t-2", 2.0), ("t-2.58", 2.58)])
def test_the_factor_of_the_confidence(dialog_eval: Path, case: str, t: float) -> None:
    folder = dialog_eval / "nasty-a"
    result = evaluate({"lf": existing(folder / "responses" / "lf.txt")}, **inputs(folder), intervals=t)["lf"]
    summary = edge_cases(dialog_eval)[case]["summary"]
    assert isinstance(summary, dict)
    agrees(result, summary)


def test_a_subset_of_metrics(dialog_eval: Path) -> None:
    folder = dialog_eval / "nasty-a"
    names = "distinct-1,coherence,bleu-4,length"
    unknown = {family: {"oov": "unk"} for family in ("distinct", "coherence")}
    responses = {"lf": existing(folder / "responses" / "lf.txt")}
    result = evaluate(responses, **inputs(folder), metrics=names, settings=unknown)["lf"]
    summary = edge_cases(dialog_eval)["subset"]["summary"]
    assert isinstance(summary, dict)
    assert set(result) == set(summary)
    agrees(result, summary)


@pytest.mark.parametrize("method", range(8))
@pytest.mark.parametrize("name", ["dbdc3-en", "nasty-a"])
def test_every_smoothing_method_through_the_front_door(dialog_eval: Path, name: str, method: int) -> None:
    """Method 6 ends the original's run; its figures per response are compared in `test_dialog_eval_bleu`."""
    folder = dialog_eval / name
    files = json.loads((folder / "golden-smoothing.json").read_text())["responses"]
    compared = 0
    for file in FILES[name]:
        expected = files.get(file, {}).get(f"method{method}") or {}
        if "bleu-4" not in expected:  # the original ended before it had a figure
            continue
        settings = {"bleu": {"smooth": method}}
        given = inputs(folder)
        result = evaluate(
            {file: existing(folder / "responses" / f"{file}.txt")},
            given["references"],
            metrics="bleu",
            settings=settings,
        )[file]
        agrees(result, {key: expected[key] for key in ("bleu-1", "bleu-2", "bleu-3", "bleu-4")})
        compared += 1
    assert compared or method == 6


def test_the_table_of_a_directory_is_the_originals(dialog_eval: Path, tmp_path: Path) -> None:
    """Names, order and layout are equal to the letter, every figure to 1e-9; a second run does not read the table."""
    folder = dialog_eval / "multiwoz"
    copied = tmp_path / "responses"
    shutil.copytree(folder / "responses", copied)
    copied.chmod(0o755)
    first = to_metrics_txt(evaluated(copied, folder))
    (copied / "metrics.txt").write_text(first)
    second = evaluated(copied, folder)
    assert to_metrics_txt(second) == first
    assert list(second) == sorted(FILES["multiwoz"])

    ours, theirs = (table_of(text) for text in (first, (folder / "metrics.txt").read_text()))
    assert ours[0] == theirs[0]
    assert {line[0]: line for line in ours[1:]}.keys() == {line[0]: line for line in theirs[1:]}.keys()
    rows = {line[0]: line for line in theirs[1:]}
    for name, *fields in ours[1:]:
        for found, expected in zip(fields, rows[name][1:], strict=True):
            one, other = (
                [float(number) for number in field.split(",")] if field else [] for field in (found, expected)
            )
            assert one == pytest.approx(other, rel=CLOSE, abs=CLOSE)


@pytest.mark.parametrize("listed_by", ["train", "vocab.txt", "vocab.npy"])
@pytest.mark.parametrize("vectors", ["cc.en.300.vec.gz", "vocab.npy"])
def test_of_a_file_with_many_words_those_of_the_vocabulary_are_known(
    dialog_eval: Path, tmp_path: Path, listed_by: str, vectors: str
) -> None:
    """The original cuts a fastText file to its vocabulary, and takes what it wrote of it (`vocab.npy`) again."""
    folder = dialog_eval / "wide-vectors"
    (tmp_path / "vocab.npy").write_bytes(gzip.decompress((folder / "vocab.npy.gz").read_bytes()))
    given: dict[str, Any] = {
        "references": folder / "test_target.txt",
        "contexts": folder / "test_source.txt",
        "train": folder / "train_source.txt.gz",
        "vocabulary": {"train": None, "vocab.txt": folder / "vocab.txt"}.get(listed_by, tmp_path / "vocab.npy"),
        "vectors": tmp_path / vectors if vectors == "vocab.npy" else folder / vectors,
    }
    run = evaluate({"ubar.txt": folder / "responses" / "ubar.txt"}, **given)
    assert not run.warnings
    ours, theirs = (table_of(text) for text in (to_metrics_txt(run), (folder / "metrics.txt").read_text()))
    assert ours[0] == theirs[0]
    assert len(ours) == len(theirs) == 2
    for key, found, expected in zip(KEYS, ours[1][1:-1], theirs[1][1:-1], strict=True):
        one, other = ([float(number) for number in field.split(",")] for field in (found, expected))
        assert one == pytest.approx(other, rel=CLOSE, abs=CLOSE), key
    result = evaluate(folder / "responses" / "ubar.txt", **given, in_vocabulary="vectors")["ubar"]
    wide = vectors != "vocab.npy"
    assert (result["distinct-1"].mean > run["ubar.txt"]["distinct-1"].mean) == wide
    assert (result["distinct-1"].signature == run["ubar.txt"]["distinct-1"].signature) != wide


def evaluated(responses: Path, folder: Path) -> Run:
    return evaluate(responses, **inputs(folder))


def table_of(text: str) -> list[list[str]]:
    return [line.split(" ") for line in text.splitlines()]
