"""The challenge's eval.py: 96 golden cases and 22 edge cases, byte for byte where it prints.

Files that the original takes without a word are problems here, and labels are matched by turn-index: the cases that
this concerns are named below, with the flags that ask for the original's way.
"""

from __future__ import annotations

import json
import tarfile
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from dialeval.breakdown import evaluate_breakdown, format_original
from dialeval.cli.main import dialeval_command
from dialeval.core.errors import DataError
from dialeval.suites.breakdown.plain import evaluate_folders

pytestmark = pytest.mark.golden

CLOSE = 1e-12
FLAGS = {
    "e05-label-for-unannotated-turn": ["--match", "position"],
    "e06-wrong-turn-index": ["--match", "position"],
    "e07-probs-sum-2.7": ["--lenient"],
    "e08-probs-all-zero": ["--lenient"],
    "e10-lower-case-label": ["--lenient"],
}
"""What the original does silently and dialeval only when it is told to."""
DIES = {
    "e02-missing-labels-file": "there are no labels for the dialogue 'CIC0202'",
    "e03-too-few-turns": "no labels (8 entries for 10 annotated turns)",
    "e11-negative-prob": "a probability is below 0 or not finite",
    "e13-empty-directory": "holds no annotated dialogues",
    "e16-bom-in-labels": "starts with a byte order mark",
}
SETS = ["en-CIC_50", "en-CIC_50-revised", "en-IRIS_50", "en-YI_50", "en-YI_50-revised", "ja-DCM"]
KEYS = {
    "accuracy": "accuracy",
    **{
        f"{ours}-{of}": f"{theirs}_{of.upper()}"
        for of in ("x", "tx")
        for ours, theirs in (("precision", "precision"), ("recall", "recall"), ("f1", "fmeasure"))
    },
    **{
        f"{measure}-{grouping}": f"{measure}_{grouping.upper().replace('-', '_')}"
        for measure in ("jsd", "mse")
        for grouping in ("o-t-x", "o-tx", "ot-x")
    },
}


@pytest.fixture(scope="session")
def dbdc(shared_data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sets of the challenge, unpacked."""
    folder = tmp_path_factory.mktemp("dbdc")
    for archive in (shared_data / "dbdc").glob("*.tar.gz"):
        with tarfile.open(archive) as opened:
            opened.extractall(folder, filter="data")
    return folder


def cases(shared_data: Path, name: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads((shared_data / "dbdc" / name).read_text())["cases"]
    return found


def printed(*arguments: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(dialeval_command, ["breakdown", *arguments], standalone_mode=False)
    assert done.exception is None, done.exception
    return done.return_value, done.stdout, done.stderr


def test_all_cases_are_here(shared_data: Path) -> None:
    golden = cases(shared_data, "golden.json")
    assert len(golden) == 96
    assert {case["set"] for case in golden} == set(SETS)
    assert len(cases(shared_data, "edge.golden.json")) == 22


@pytest.mark.parametrize("name", SETS)
def test_output_is_equal_byte_for_byte(dbdc: Path, shared_data: Path, name: str) -> None:
    for case in cases(shared_data, "golden.json"):
        if case["set"] == name:
            arguments = [str(dbdc / case["labels"]), "-p", str(dbdc / case["data"]), "-t", case["threshold"]]
            assert printed(*arguments) == (0, case["stdout"], ""), case["labels"]
            data, labels = (str(dbdc / case[key]) for key in ("data", "labels"))
            assert evaluate_folders(data, labels, float(case["threshold"])) == case["stdout"]


@pytest.mark.parametrize("name", SETS)
def test_figures_and_confusions_agree_with_all_thresholds_and_detectors_in_one_pass(
    dbdc: Path, shared_data: Path, name: str
) -> None:
    mine = [case for case in cases(shared_data, "golden.json") if case["set"] == name]
    thresholds = sorted({float(case["threshold"]) for case in mine})
    labels = {case["detector"]: dbdc / case["labels"] for case in mine}
    run = evaluate_breakdown(dbdc / name / "data", labels, thresholds)
    for case in mine:
        threshold, system = float(case["threshold"]), case["detector"]
        for ours, theirs in KEYS.items():
            key = ours if not threshold or "-o" in ours else f"{ours}(threshold={threshold})"
            assert run[system][key].mean == pytest.approx(case["figures"][theirs], rel=CLOSE, abs=CLOSE), key
        table = asdict(run.tables[system][threshold])
        for label in "OTX":
            for reference in "OTX":
                assert table["confusion"][label][reference] == case["confusion"][f"pred{label}_ans{reference}"]
            for reference in "OX":
                expected = case["confusion_lenient"][f"pred{label}_ans{reference}_l"]
                assert table["confusion_lenient"][label][reference] == expected


@pytest.mark.parametrize("name", SETS[:2])
def test_the_archive_is_read_as_it_lies(dbdc: Path, shared_data: Path, name: str) -> None:
    archive = shared_data / "dbdc" / f"{name}.tar.gz"
    packed = evaluate_breakdown(archive, archive, baselines=False)
    assert list(packed) == ["always-x", "majority", "noisy-oracle", "random"]
    for system in packed:
        one = evaluate_breakdown(dbdc / name / "data", dbdc / name / system, baselines=False)
        assert format_original(packed, system) == format_original(one)


def edge_arguments(dbdc: Path, case: dict[str, Any]) -> list[str]:
    arguments = [str(dbdc / case["labels"]), "-p", str(dbdc / case["data"])]
    return arguments if case["threshold"] is None else [*arguments, "-t", case["threshold"]]


def test_edge_cases_where_the_original_prints(dbdc: Path, shared_data: Path) -> None:
    compared = 0
    for case in cases(shared_data, "edge.golden.json"):
        if case["exit_code"] == 0:
            flags = FLAGS.get(case["id"], [])
            status, out, err = printed(*edge_arguments(dbdc, case), *flags)
            assert (status, out) == (0, case["stdout"]), case["id"]
            assert bool(err) == (bool(flags) or case["id"] in ("e04-extra-turn-at-end", "e12-two-labels-per-turn"))
            compared += 1
    assert compared == 22 - len(DIES)


@pytest.mark.parametrize("flag", ["--match", "--lenient"])
def test_what_the_original_takes_silently_is_said_or_refused(dbdc: Path, shared_data: Path, flag: str) -> None:
    for case in cases(shared_data, "edge.golden.json"):
        if FLAGS.get(case["id"], [""])[0] != flag:
            continue
        status, out, err = printed(*edge_arguments(dbdc, case))
        if flag == "--match":
            assert "MATCHING MATTERS" in err
            assert (status, out == case["stdout"]) == (0, False)
        else:
            assert (status, out) == (2, "")
            assert err.count("dialeval: ") == 2, "one problem for each of the two files"


@pytest.mark.parametrize("name", list(DIES))
def test_edge_cases_where_the_original_dies(dbdc: Path, shared_data: Path, name: str) -> None:
    (case,) = [case for case in cases(shared_data, "edge.golden.json") if case["id"] == name]
    assert case["exit_code"] != 0
    status, out, err = printed(*edge_arguments(dbdc, case))
    assert (status, out) == (2, "")
    assert DIES[name] in err


def test_lenient_goes_on_where_the_original_dies(dbdc: Path) -> None:
    for name, scored in (("e02-missing-labels-file", 10), ("e03-too-few-turns", 18), ("e11-negative-prob", 20)):
        folder = dbdc / "edge" / name
        run = evaluate_breakdown(folder / "data", folder / "labels", lenient=True, baselines=False)
        assert (run["labels"]["accuracy"].units, run["labels"]["accuracy"].scored) == (20, scored)
        assert run.warnings
    assert run["labels"]["jsd-o-t-x"].scored == 18
    with pytest.raises(DataError, match="holds no annotated dialogues"):
        evaluate_breakdown(dbdc / "edge/e13-empty-directory/data", "nowhere", lenient=True)
