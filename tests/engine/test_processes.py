"""Processes give the same figures; a worker that dies is replaced, and a chunk that kills is named."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import dialeval
from dialeval.core.errors import DataError, DialevalError
from dialeval.engine.processes import Processes
from dialeval.metrics.learned.judge import LazyJudge
from engine.chats import Delicate, bare, estimates, in_chunks, texts, write_shards
from metrics.learned.judges import tiny_weights
from tiny_encoder import write_encoder


def test_the_same_to_the_last_digit(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 120, 3)
    train = tmp_path / "whole.jsonl"
    expected = dialeval.evaluate({"bot": tmp_path / "whole.jsonl"}, train=train)
    in_chunks(
        {"bot": f"{tmp_path}/shards/*"},
        train=train,
        engine=Processes(2),
        output=tmp_path / "out",
        chunk_bytes=3_000,
        batch_rows=10,
    )
    assert bare(dialeval.load(tmp_path / "out")) == bare(expected)


def test_every_worker_opens_the_judge_for_itself(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 40, 2)
    replace(tiny_weights(), tokens=24).save(tmp_path / "judge")
    judge = LazyJudge(tmp_path / "judge", write_encoder(tmp_path / "encoder"))
    asked: dict[str, Any] = {"metrics": "adem,distinct-2", "judge": judge}
    expected = dialeval.evaluate({"bot": tmp_path / "whole.jsonl"}, **asked)
    run = in_chunks({"bot": f"{tmp_path}/shards/*"}, **asked, engine=Processes(2), chunk_bytes=3_000)
    assert expected["bot"]["adem"].scored
    assert estimates(run) == estimates(expected)


@pytest.fixture
def deadly(tmp_path: Path) -> Path:
    """Shards of which one holds a row that kills its reader, if the metric says so."""
    lines = [json.dumps({"response": text}) for text in texts(60)]
    lines[33] = '{"response": "death"}'
    for shard in range(6):
        (tmp_path / f"{shard}.jsonl").write_text("\n".join(lines[10 * shard : 10 * shard + 10]))
    (tmp_path / "marks").mkdir()
    return tmp_path


@pytest.mark.parametrize("deaths", [1, 2])
def test_a_dead_worker_is_replaced(deadly: Path, deaths: int) -> None:
    metric = Delicate(str(deadly / "marks"), deaths)
    run = in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=[metric], engine=Processes(2), output=deadly / "out")
    assert len(list((deadly / "marks").iterdir())) == deaths
    found = run["s"][metric.name]
    lines = [line for shard in range(6) for line in (deadly / f"{shard}.jsonl").read_text().splitlines()]
    whole = [json.loads(line)["response"] for line in lines]
    assert (found.rows, found.mean) == (60, sum(map(len, whole)) / 60)
    items = dialeval.load(deadly / "out")["s"][metric.name].items
    assert items is not None
    assert items.tolist() == [float(len(response)) for response in whole]


def test_a_chunk_that_kills_again_and_again_is_named(deadly: Path) -> None:
    metric = Delicate(str(deadly / "marks"), 100)
    with pytest.raises(DialevalError, match=r"3.jsonl: a worker died 3 times on this chunk"):
        in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=[metric], engine=Processes(2))
    assert len(list((deadly / "marks").iterdir())) <= 4


def test_an_error_in_the_data_comes_through(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 4)
    with (tmp_path / "shards" / "part-02.jsonl").open("a") as file:
        file.write('{"response": "poison"}\n')
    with pytest.raises(DataError, match=r"part-02.jsonl:21: a metric cannot score this row"):
        in_chunks(f"{tmp_path}/shards/*", metrics=[Delicate()], engine=Processes(2))


KILLED = """
import os, signal, sys
import dialeval
from dialeval.engine.processes import Processes

def kill(done):
    print(*[process.pid for process in __import__("multiprocessing").active_children()], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    dialeval.evaluate(sys.argv[1], metrics="length", engine=Processes(2), progress=kill)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_workers_leave_with_a_run_that_is_killed(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 8)
    program = tmp_path / "program.py"
    program.write_text(KILLED)
    command = [sys.executable, str(program), f"{tmp_path}/shards/*"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as run:
        assert run.stdout is not None
        workers = [int(number) for number in run.stdout.readline().split()]
    assert run.returncode == -9
    assert workers
    until = time.monotonic() + 20
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.1)
    assert not [worker for worker in workers if Path(f"/proc/{worker}").exists()]
