"""Processes give the same figures; a worker that dies is replaced, and a chunk that kills is named."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import dialeval
import evaluating
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError, DialevalError, SettingError
from dialeval.core.fold import Partial
from dialeval.engine import processes
from dialeval.engine.processes import Processes
from dialeval.judges.adem import Judge
from engine.chats import CHANGES, Delicate, bare, changed_in_between, estimates, figures, in_chunks, texts, write_shards
from engine.planted import run_among_planted_modules
from judges.tiny_judges import tiny_weights
from tiny_encoder import write_encoder

ENVIRONMENT = {**os.environ, "PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])}
"""For programs that import what tests share."""


def test_the_same_to_the_last_digit(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 120, 3)
    train = tmp_path / "whole.jsonl"
    expected = dialeval.evaluate({"bot": tmp_path / "whole.jsonl"}, train=train, metrics="all")
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
    judge = Judge(tmp_path / "judge", write_encoder(tmp_path / "encoder"))
    asked: dict[str, Any] = {"metrics": "adem,distinct-2", "judge": judge}
    expected = evaluating.evaluate({"bot": tmp_path / "whole.jsonl"}, **asked)
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
    assert (found.units, found.mean) == (60, sum(map(len, whole)) / 60)
    items = dialeval.load(deadly / "out")["s"][metric.name].scores
    assert items is not None
    assert items.tolist() == [float(len(response)) for response in whole]


def test_a_chunk_that_kills_again_and_again_is_named(deadly: Path) -> None:
    metric = Delicate(str(deadly / "marks"), 100)
    with pytest.raises(DialevalError, match=r"3.jsonl: a worker died 3 times on this chunk"):
        in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=[metric], engine=Processes(2))
    assert len(list((deadly / "marks").iterdir())) <= 4


@pytest.mark.parametrize("deaths", [1, 2, 100])
def test_chunks_that_are_folded_together_with_one_that_kills(
    deadly: Path, deaths: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are not lost, and the one that kills is named."""
    monkeypatch.setattr(
        processes, "group_chunks", lambda chunks, *_: [dict(list(chunks.items())[at : at + 3]) for at in (0, 3)]
    )
    metrics: list[Any] = [Delicate(str(deadly / "marks"), deaths), "distinct-1"]
    given: dict[str, Any] = {"engine": Processes(2), "output": deadly / "out"}
    if deaths == 100:
        with pytest.raises(DialevalError, match=r"3.jsonl: a worker died 3 times on this chunk"):
            in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=metrics, **given)
        return
    run = in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=metrics, **given)
    whole = in_chunks({"s": f"{deadly}/*.jsonl"}, metrics=["distinct-1"])
    assert len(list((deadly / "marks").iterdir())) == deaths
    assert estimates(run)["s"][1:] == estimates(whole)["s"]
    assert dialeval.load(deadly / "out")["s"]["distinct-1"].units == 60


@given(st.integers(0, 400), st.integers(1, 20), st.integers(1, 20))
def test_every_chunk_is_in_one_group(count: int, jobs: int, most: int) -> None:
    chunks: dict[int, Any] = {number: str(number) for number in range(count)}
    groups = list(processes.group_chunks(chunks, jobs, most))
    assert {number: chunk for group in groups for number, chunk in group.items()} == chunks
    assert [number for group in groups for number in group] == list(range(count))
    assert all(1 <= len(group) <= most for group in groups)
    sizes = [len(group) for group in groups]
    assert sizes == sorted(sizes, reverse=True)


def test_an_error_in_the_data_comes_through(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 4)
    with (tmp_path / "shards" / "part-02.jsonl").open("a") as file:
        file.write('{"response": "poison"}\n')
    with pytest.raises(DataError, match=r"part-02.jsonl:21: delicate cannot score this row"):
        in_chunks(f"{tmp_path}/shards/*", metrics=[Delicate()], engine=Processes(2))


def test_a_shard_that_changes_in_between_is_refused(tmp_path: Path) -> None:
    changed_in_between(tmp_path, Processes(2), CHANGES["rewritten"])


KILLING = """
import json, os, random, signal, sys, threading
from multiprocessing import forkserver, process, resource_tracker

from dialeval.core.errors import DialevalError
from dialeval.engine.processes import Processes
from engine.chats import Delicate, figures, in_chunks

def kill(dice, most, killed, over):
    # The first one soon: on a fast machine a run is over in a moment.
    while len(killed) < most and not over.wait(dice.uniform(0, 0.4 if killed else 0.02)):
        workers = [worker.pid for worker in list(process._children)]
        others = [forkserver._forkserver._forkserver_pid, resource_tracker._resource_tracker._pid]
        victim = dice.choice([*workers, *workers, *others]) if workers else None
        if victim is not None:
            os.kill(victim, signal.SIGKILL)
            killed.append(victim in workers)

if __name__ == "__main__":
    shards, marks, sending, others, seed = sys.argv[1:]
    killed, over = [], threading.Event()
    threading.Thread(target=kill, args=(random.Random(seed), int(others), killed, over), daemon=True).start()
    try:
        metric = Delicate(marks, int(sending), sending=True)
        run = in_chunks({"s": shards}, metrics=[metric, "distinct-2"], engine=Processes(2), chunk_bytes=1_500)
        said = figures(run)
    except DialevalError as error:
        said = str(error)
    over.set()
    print(json.dumps({"said": said, "workers": sum(killed), "others": len(killed) - sum(killed)}))
"""


def killed_in_rounds(folder: Path, rounds: int, sending: int, others: int) -> tuple[int, int, int]:
    """Runs whose workers are killed, some while they send, and their servers too: how many workers died while they
    sent, how many at random moments, and how many servers. A run ends soon, with the exact result or a clear error.
    """
    program = folder / "program.py"
    program.write_text(KILLING)
    shards = f"{folder}/shards/*"
    write_shards(folder / "shards", 120, 3)
    for shard in (folder / "shards").iterdir():
        shard.write_text(shard.read_text() + '{"response": "death"}\n')
    expected = figures(in_chunks({"s": shards}, metrics=[Delicate(), "distinct-2"]))
    counts, exact = [0, 0, 0], 0
    for number in range(rounds):
        marks = folder / f"marks{number}"
        marks.mkdir()
        command = [sys.executable, str(program), shards, str(marks), str(sending), str(others), str(number)]
        done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=3000, check=True)
        said = json.loads(done.stdout)
        if isinstance(said["said"], list):
            exact += 1
            assert said["said"] == expected
        else:
            assert re.search("a worker died 3 times on this chunk|die before they are ready", said["said"])
        died = len(list(marks.iterdir()))
        counts = [sum(pair) for pair in zip(counts, [died, said["workers"], said["others"]], strict=True)]
    assert exact
    sys.stdout.write(f"killed while sending, at random, servers: {counts}; {exact} of {rounds} runs exact\n")
    return counts[0], counts[1], counts[2]


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_while_they_send_and_at_random(tmp_path: Path) -> None:
    # Two deaths: a chunk is given up after the third, so the run ends with the exact result on a busy machine, too.
    while_sending, at_random, servers = killed_in_rounds(tmp_path, rounds=1, sending=1, others=1)
    assert while_sending
    assert at_random + servers


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_three_hundred_killed_workers(tmp_path: Path) -> None:
    while_sending, at_random, servers = killed_in_rounds(tmp_path, rounds=90, sending=2, others=5)
    assert while_sending > 100
    assert while_sending + at_random >= 300
    assert servers > 50


KILLED = """
import os, signal, sys
import dialeval
from dialeval.engine.processes import Processes

def kill(done):
    print(*[process.pid for process in __import__("multiprocessing").active_children()], flush=True)
    os.kill(os.getpid(), signal.SIGKILL)

if __name__ == "__main__":
    dialeval.evaluate(sys.argv[1], metrics="length", execution=dialeval.Execution(engine=Processes(2), progress=kill))
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
    assert gone(workers)


def gone(workers: list[int]) -> bool:
    """Whether processes are no more, or will be in a moment."""
    until = time.monotonic() + 120
    while any(Path(f"/proc/{worker}").exists() for worker in workers) and time.monotonic() < until:
        time.sleep(0.1)
    return not any(Path(f"/proc/{worker}").exists() for worker in workers)


INTERRUPTED = """
import sys
from multiprocessing import process

from dialeval.engine.processes import Processes
from engine.chats import Delicate, in_chunks

def tell(done):
    print(*[worker.pid for worker in list(process._children)], flush=True)

if __name__ == "__main__":
    try:
        in_chunks({"s": sys.argv[1]}, metrics=[Delicate()], engine=Processes(2), progress=tell)
    except KeyboardInterrupt:
        print("interrupted")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="looks processes up in /proc")
def test_an_interrupt_does_not_wait_for_workers(tmp_path: Path) -> None:
    for number, text in enumerate(["hello", "lullaby", "lullaby"]):
        (tmp_path / f"{number}.txt").write_text(f"{text}\n")
    program = tmp_path / "program.py"
    program.write_text(INTERRUPTED)
    command = [sys.executable, str(program), f"{tmp_path}/*.txt"]
    with subprocess.Popen(
        command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as run:
        assert run.stdout is not None
        workers = [int(number) for number in run.stdout.readline().split()]
        time.sleep(0.5)
        os.killpg(run.pid, signal.SIGINT)  # as a terminal does
        said, complained = run.communicate(timeout=300)
    assert (said, complained, run.returncode) == ("interrupted\n", "", 0)
    assert len(workers) == 2
    assert gone(workers)


UNGUARDED = """
import sys
from dialeval.engine.processes import Processes
from engine.chats import in_chunks

in_chunks(sys.argv[1], metrics="length", engine=Processes(2))
"""


def test_workers_that_cannot_start(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    program = tmp_path / "program.py"
    program.write_text(UNGUARDED)
    command = [sys.executable, str(program), str(tmp_path / "a.txt")]
    done = subprocess.run(command, env=ENVIRONMENT, capture_output=True, text=True, timeout=3000, check=False)
    assert "DialevalError: worker processes die before they are ready" in done.stderr
    assert "if __name__ == '__main__'" in done.stderr


class OpenFile(Delicate):
    """A metric whose state no other process can be sent."""

    family = "open-file"

    def partial(self, batch: Batch) -> Partial[Any]:
        return replace(super().partial(batch), state=sys.stdout)  # type: ignore[arg-type]


def test_a_state_that_cannot_be_sent_names_the_metric(tmp_path: Path) -> None:
    write_shards(tmp_path / "shards", 20, 2)
    with pytest.raises(SettingError, match=r"the metric open-file: a state that holds a .+; use dicts, lists, arrays"):
        in_chunks({"bot": f"{tmp_path}/shards/*"}, metrics=[OpenFile()], engine=Processes(2))


@pytest.mark.parametrize("method", ["forkserver", "spawn"])
def test_modules_of_the_working_folder_are_not_imported(tmp_path: Path, method: str) -> None:
    first = f"from dialeval.engine import processes\nprocesses._choose_start_method = lambda: {method!r}\n"
    printed = run_among_planted_modules(tmp_path, "--jobs", "2", first=first)
    assert "bot" in str(printed["systems"])
