"""`dialeval score` in batches: patterns, shards, processes, resuming, and what it tells on the way."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cli.conftest import Dialeval
from engine.chats import write_shards

LINES = "-f", "json", "-m", "length,distinct,bleu"


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_shards(tmp_path / "logs", 50, 3)
    return tmp_path


def means(output: str) -> dict[str, dict[str, float]]:
    document = json.loads(output)
    return {
        name: {key: entry["mean"] for key, entry in system["metrics"].items()}
        for name, system in document["systems"].items()
    }


def test_a_pattern_and_a_folder_of_shards(dialeval: Dialeval, shards: Path) -> None:
    plain = dialeval("score", "bot=whole.jsonl", *LINES)
    assert plain.returncode == 0, plain.stderr
    for given in (["bot=logs", "--shards"], ["bot=logs/part-*.jsonl", "--jobs", "2"]):
        done = dialeval("score", *given, *LINES)
        assert done.returncode == 0, done.stderr
        assert means(done.stdout) == means(plain.stdout)


def test_lines_with_references_beside_them(dialeval: Dialeval, tmp_path: Path) -> None:
    for side in ("responses", "references"):
        (tmp_path / side).mkdir()
        for shard in range(3):
            content = "".join(f"{side[2:4]} is number {row} of {shard}\n" for row in range(20))
            (tmp_path / side / f"{shard}.txt").write_text(content)
    both = [
        "".join((tmp_path / side / f"{shard}.txt").read_text() for shard in range(3))
        for side in ("responses", "references")
    ]
    for name, content in zip(("a.txt", "b.txt"), both, strict=True):
        (tmp_path / name).write_text(content)
    plain = dialeval("score", "s=a.txt", "-r", "b.txt", *LINES)
    done = dialeval("score", "s=responses/*.txt", "-r", "references/*.txt", *LINES)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["systems"]["s"]["metrics"] == json.loads(plain.stdout)["systems"]["s"]["metrics"]


def test_resume_and_report(dialeval: Dialeval, shards: Path) -> None:
    command = ("score", "logs/*.jsonl", *LINES, "--resume", "work", "-o", "out")
    first, second = dialeval(*command), dialeval(*command)
    assert (first.returncode, second.returncode) == (0, 0), first.stderr + second.stderr
    assert first.stdout == second.stdout
    assert "saved in out" in first.stderr
    refused = dialeval("score", "logs/*.jsonl", "-m", "length", "--resume", "work")
    assert refused.returncode == 2
    assert "work belongs to another run: metrics of distinct-1 was" in refused.stderr
    report = dialeval("report", "out", "-o", "report.html")
    assert report.returncode == 0, report.stderr


def test_progress_for_machines(dialeval: Dialeval, shards: Path) -> None:
    for given in (["logs/*.jsonl"], ["whole.jsonl"]):
        done = dialeval("score", *given, *LINES, "--progress", "json")
        told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert told[-1]["rows"] == told[-1]["total"] == 150
        assert [each["share"] for each in told].count(1) == 1
        assert told[-1]["share"] == 1
        assert set(told[0]) == {"rows", "total", "share", "rate", "eta"}


def test_approximate_counts_stand_in_the_signature(dialeval: Dialeval, shards: Path) -> None:
    done = dialeval("score", "s=whole.jsonl", "-m", "distinct", "-f", "json", "--approx")
    assert done.returncode == 0, done.stderr
    signature = json.loads(done.stdout)["systems"]["s"]["metrics"]["distinct-2"]["signature"]
    assert "count:approx" in signature
    assert "error:0.0041" in signature


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing-*.jsonl"], "nothing-*.jsonl: no file matches; check the pattern"),
        (["logs/*.jsonl", "--engine", "ray", "--jobs", "2"], "--jobs is for this machine"),
        (["logs/*.jsonl", "--address", "auto"], "--address and --gpus-per-task go with --engine ray"),
        (["whole.jsonl", "--address", "auto"], "--address and --gpus-per-task go with --engine ray"),
        (["logs/*.jsonl", "-r", "whole.jsonl"], "rows carry their own references"),
        (["logs/*.jsonl", "-m", "coherence"], "coherence needs embeddings"),
        (["nothing.jsonl", "-o", "whole.jsonl/results"], "whole.jsonl/results: cannot be written"),
        (["s3q://bucket/*.jsonl"], "s3q://bucket/*.jsonl cannot be opened"),
    ],
)
def test_what_cannot_be_done(dialeval: Dialeval, shards: Path, arguments: list[str], message: str) -> None:
    done = dialeval("score", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_a_fault_in_a_worker_names_its_line(dialeval: Dialeval, shards: Path) -> None:
    with (shards / "logs" / "part-01.jsonl").open("a") as file:
        file.write('{"response": 7}\n')
    done = dialeval("score", "logs/*.jsonl", "-m", "length", "--jobs", "2")
    assert done.returncode == 2
    assert "part-01.jsonl:51: response is a number; make it a string" in done.stderr
    assert "Traceback" not in done.stderr
