"""`dialeval score` as a user meets it."""

from __future__ import annotations

import csv
import io
import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import dialeval as package
from cli.conftest import Dialeval
from dialeval.reports.tables import METRICS_TXT


def write(folder: Path, **files: str) -> None:
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text, encoding="utf-8")


@pytest.fixture(autouse=True)
def inputs(tmp_path: Path) -> None:
    write(tmp_path, a="one two three\nfour\n", b="one one one\n\n", refs="one two\nfour five\n")


def test_prints_a_table(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "b.txt", "-m", "length,distinct-1")
    assert done.returncode == 0
    assert "length" in done.stdout
    assert "2.0000" in done.stdout
    assert done.stderr == ""


def test_json_is_the_documented_run(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "b.txt", "-m", "length", "-f", "json", "-t", "2")
    run = json.loads(done.stdout)
    assert run["dialeval"] == package.__version__
    assert list(run["systems"]) == ["a", "b"]
    length = run["systems"]["a"]["metrics"]["length"]
    assert {"mean", "std", "confidence", "interval", "rows", "scored", "signature"} <= set(length)
    assert (length["mean"], length["std"], length["rows"], length["scored"]) == (2.0, 1.0, 2, 2)
    assert length["confidence"] == pytest.approx(2 / 2**0.5)
    assert run["systems"]["a"]["skipped"] == {}
    assert run["warnings"] == []


@pytest.mark.parametrize(("format_", "sign"), [("md", "| length"), ("latex", r"\toprule"), ("metrics-txt", "length")])
def test_other_formats(dialeval: Dialeval, format_: str, sign: str) -> None:
    done = dialeval("score", "a.txt", "-m", "length", "-f", format_)
    assert done.returncode == 0
    assert sign in done.stdout


def test_csv_reads_back(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "-m", "length", "-f", "csv")
    (row,) = csv.DictReader(io.StringIO(done.stdout))
    assert (row["system"], row["metric"], float(row["mean"])) == ("a", "length", 2.0)


def test_saves_a_run_that_loads(dialeval: Dialeval, tmp_path: Path) -> None:
    done = dialeval("score", "a.txt", "-o", "out/run")
    assert done.returncode == 0
    assert done.stderr.splitlines()[0] == f"saved in {Path('out/run')}"
    assert package.load(tmp_path / "out" / "run")["a"]["length"].mean == 2.0


def test_a_directory_is_many_systems_and_names_can_be_given(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "outputs").mkdir()
    write(tmp_path / "outputs", x="a\n", y="b c\n")
    run = json.loads(dialeval("score", "outputs", "-f", "json").stdout)
    assert list(run["systems"]) == ["x", "y"]
    run = json.loads(dialeval("score", "best=a.txt", "b.txt", "-f", "json").stdout)
    assert list(run["systems"]) == ["best", "b"]


def test_two_systems_of_one_name(dialeval: Dialeval, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    write(tmp_path / "other", a="x\n")
    done = dialeval("score", "a.txt", "other/a.txt")
    assert done.returncode == 2
    assert "two systems are called 'a'" in done.stderr


def test_rows_need_no_other_flag(dialeval: Dialeval, tmp_path: Path) -> None:
    rows = [
        {"system": "x", "answer": "hi there", "context": ["hello"]},
        {"system": "y", "answer": "hi", "context": ["hello"]},
    ]
    (tmp_path / "rows.jsonl").write_text("\n".join(map(json.dumps, rows)))
    done = dialeval("score", "rows.jsonl", "--field", "response=answer", "-f", "json", "-m", "length")
    systems = json.loads(done.stdout)["systems"]
    assert {name: systems[name]["metrics"]["length"]["mean"] for name in systems} == {"x": 2.0, "y": 1.0}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nowhere.txt"], "nowhere.txt"),
        (["a.txt", "-m", "distnct-2"], "did you mean 'distinct-2'"),
        (["a.txt", "-r", "one.txt"], "one.txt"),
        (["a.txt", "--field", "response"], "NAME=VALUE"),
        (["a.txt", "--fail-under", "length=much"], "KEY=NUMBER"),
        (["a.txt", "-t", "0"], "above 0"),
        ([], "Missing argument"),
        (["bad.txt"], "bad.txt:2"),
        (["empty.txt"], "empty.txt"),
        (["a.txt", "-o", "a.txt/below"], "cannot be written"),
    ],
)
def test_bad_input_is_one_clear_message_and_exit_2(
    dialeval: Dialeval, tmp_path: Path, arguments: list[str], message: str
) -> None:
    write(tmp_path, one="only one line\n", empty="")
    (tmp_path / "bad.txt").write_bytes(b"fine\nnot \xff fine\n")
    done = dialeval("score", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_gates(dialeval: Dialeval) -> None:
    assert dialeval("score", "a.txt", "--fail-under", "length=2").returncode == 0
    done = dialeval("score", "a.txt", "b.txt", "-m", "length", "--fail-under", "length=1.9")
    assert done.returncode == 1
    assert done.stderr == "gate failed: length of b is 1.5, limit 1.9\n"
    assert dialeval("score", "a.txt", "-m", "length", "--fail-under", "distinct-2=0").returncode == 1


def test_a_reader_that_goes_away_is_no_traceback(tmp_path: Path) -> None:
    command = f"{sys.executable} -c 'from dialeval.cli.main import main; main()' score a.txt -f json | true"
    done = subprocess.run(command, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr


def test_control_c_ends_with_130(tmp_path: Path) -> None:
    pipe = tmp_path / "slow.txt"
    os.mkfifo(pipe)
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", str(pipe)]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    time.sleep(1.0)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=20)
    assert process.returncode == 130
    assert errors.strip() == "dialeval: interrupted"


def test_a_progress_bar_is_for_terminals(tmp_path: Path) -> None:
    """On a terminal something is drawn on stderr, and stdout stays clean."""
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", "a.txt", "-f", "json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, check=True)
    os.close(terminal)
    drawn = os.read(controller, 100_000)
    os.close(controller)
    assert json.loads(done.stdout)["systems"]["a"]
    assert b"a" in drawn


def test_words_from_outside(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, train="one two three four five\n", vocab="one\ntwo\n", vectors="one 1 0\ntwo 0.5 1\n")
    outside = ["--train", "train.txt", "--vocab", "vocab.txt", "--vectors", "vectors.txt", "-c", "refs.txt"]
    run = json.loads(dialeval("score", "a.txt", "-r", "refs.txt", *outside, "-f", "json").stdout)["systems"]["a"]
    assert set(METRICS_TXT) < set(run["metrics"])
    assert run["skipped"] == {}
    signature = run["metrics"]["embedding-average"]["signature"]
    assert all(f"|{field}:" in signature for field in ("reference", "train", "vocabulary", "embeddings", "weight"))


def test_what_is_missing_is_one_line_each(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt")
    assert done.returncode == 0
    lines = done.stderr.splitlines()
    assert "skipped bleu-4: needs references: pass references=... (-r on the command line)" in lines
    assert len([line for line in lines if line.startswith("skipped coherence: ")]) == 1


def test_a_smoothing_method_keeps_the_names(dialeval: Dialeval) -> None:
    plain, smoothed = (
        json.loads(dialeval("score", "a.txt", "-r", "refs.txt", "-m", "bleu", "-f", "json", *more).stdout)
        for more in ([], ["--bleu-smoothing", "7"])
    )
    one, other = (run["systems"]["a"]["metrics"]["bleu-4"] for run in (plain, smoothed))
    assert one["mean"] != other["mean"]
    assert "|smooth:7|" in other["signature"]
    assert dialeval("score", "a.txt", "-r", "refs.txt", "--bleu-smoothing", "8").returncode == 2


def test_a_confidence_level(dialeval: Dialeval) -> None:
    done = dialeval("score", "a.txt", "-m", "length", "--confidence", "0.95", "-f", "json")
    length = json.loads(done.stdout)["systems"]["a"]["metrics"]["length"]
    assert length["confidence"] == pytest.approx(12.706 / 2**0.5, rel=1e-4)
    both = dialeval("score", "a.txt", "-t", "2", "--confidence", "0.95")
    assert both.returncode == 2
    assert "not both" in both.stderr
    assert dialeval("score", "a.txt", "--confidence", "95").returncode == 2


def test_several_references(dialeval: Dialeval, tmp_path: Path) -> None:
    write(tmp_path, more="one two three\nnothing\n")
    one = json.loads(dialeval("score", "a.txt", "-r", "refs.txt", "-m", "bleu-1", "-f", "json").stdout)
    two = json.loads(
        dialeval("score", "a.txt", "-r", "refs.txt", "-r", "more.txt", "-m", "bleu-1", "-f", "json").stdout
    )
    means = [run["systems"]["a"]["metrics"]["bleu-1"]["mean"] for run in (one, two)]
    assert means[0] < means[1]
