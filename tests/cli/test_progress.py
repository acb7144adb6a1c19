"""Progress on stderr: bars for people, JSON lines for machines."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Dialeval
from dialeval.cli.progress import Meter, open_meter
from dialeval.engine.folding import Done
from engine.chats import write_shards


def test_a_meter_of_rows_in_memory_knows_the_total() -> None:
    meter = Meter()
    meter.update_run(Done(20, 40, 0.5))
    figures = meter.to_dict()
    assert (figures["rows"], figures["total"], figures["share"]) == (20, 40, 0.5)


def test_a_meter_of_files_knows_the_total_in_the_end() -> None:
    meter = Meter()
    meter.update_run(Done(5, None, 0.25))
    assert (meter.rows, meter.total, meter.share) == (5, None, 0.25)
    meter.update_run(Done(20, None, 1.0))
    assert (meter.rows, meter.total) == (20, 20)


def test_a_meter_of_steps() -> None:
    meter = Meter()
    meter.update_steps(3, None)
    assert (meter.rows, meter.total, meter.share) == (3, None, 0.0)
    meter.update_steps(3, 4)
    assert (meter.rows, meter.total, meter.share) == (3, 4, 0.75)


@pytest.mark.parametrize("mode", ["none", "auto"])
def test_nothing_is_shown_unasked(mode: str, capfd: pytest.CaptureFixture[str]) -> None:
    with open_meter(mode) as meter:
        meter.update_run(Done(10, 10, 1.0))
    assert capfd.readouterr() == ("", "")


def test_progress_for_machines(dialeval: Dialeval, tmp_path: Path) -> None:
    write_shards(tmp_path / "logs", 50, 3)
    for given in (["logs/*.jsonl"], ["whole.jsonl"]):
        done = dialeval("score", *given, "-m", "length,distinct,bleu", "-f", "json", "--progress", "json")
        told = [json.loads(line) for line in done.stderr.splitlines() if line.startswith("{")]
        assert told[-1]["rows"] == told[-1]["total"] == 150
        assert [each["share"] for each in told].count(1) == 1
        assert told[-1]["share"] == 1
        assert set(told[0]) == {"rows", "total", "share", "rate", "eta"}


def test_a_progress_bar_is_for_terminals(tmp_path: Path) -> None:
    """On a terminal something is drawn on stderr, and stdout stays clean."""
    (tmp_path / "a.txt").write_text("one two three\nfour\n")
    controller, terminal = pty.openpty()
    command = [sys.executable, "-c", "from dialeval.cli.main import main; main()", "score", "a.txt", "-f", "json"]
    done = subprocess.run(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=terminal, check=True)
    os.close(terminal)
    drawn = os.read(controller, 100_000)
    os.close(controller)
    assert json.loads(done.stdout)["systems"]["a"]
    assert b"a" in drawn
