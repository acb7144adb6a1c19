"""A run that was killed goes on where it stopped and ends in the same files; a changed one is refused by name."""

from __future__ import annotations

import hashlib
import io
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dialeval
from dialeval.core.errors import DataError, DialevalError, SettingError
from dialeval.core.result import Run
from dialeval.engine.stores import stamp
from dialeval.engine.worker import ChunkResult, Engine, FactValues, Job, Stage, Threads
from engine.chats import Delicate, estimates, in_chunks, write_shards

VICTIM = """
import sys
import dialeval
shards, work, out = sys.argv[1:]
print("ready", flush=True)
dialeval.evaluate(shards, metrics="length,distinct,kl-div,bleu-4", output=out,
    execution=dialeval.Execution(resume=work, chunk_bytes=15_000))
"""


class Counted(Engine):
    """Counts the chunks that are folded and stops after some of them."""

    def __init__(self, most: int = 10**9) -> None:
        self.chunks = 0
        self._most = most

    def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Any, alone: bool) -> Iterator[ChunkResult]:
        assert alone
        for result in Threads().fold(job, facts, stage, chunks, alone):
            if self.chunks == self._most:
                raise KeyboardInterrupt
            self.chunks += 1
            yield result


@pytest.fixture
def shards(tmp_path: Path) -> Path:
    write_shards(tmp_path / "shards", 40, 3)
    return tmp_path


def scored(folder: Path, **changes: Any) -> Run:
    given = {"metrics": "length,distinct-2,kl-div(oov=unk)", "resume": folder / "work", "chunk_bytes": 1_500, **changes}
    return in_chunks({"s": f"{folder}/shards/*"}, output=folder / "out", **given)


def files(folder: Path) -> list[bytes]:
    parts = sorted(path.name for path in folder.glob("*-*.parquet"))
    assert parts
    return [(folder / name).read_bytes() for name in ("run.json", *parts)]


def test_nothing_is_done_twice(shards: Path) -> None:
    expected = scored(shards, resume=None)
    whole = files(shards / "out")
    everything = Counted()
    scored(shards, resume=shards / "other", engine=everything)
    for most in (3, 10, 1):
        part = Counted(most)
        with pytest.raises(KeyboardInterrupt):
            scored(shards, engine=part)
        assert part.chunks == most
    rest = Counted()
    assert estimates(scored(shards, engine=rest)) == estimates(expected)
    assert rest.chunks == everything.chunks - 14
    assert files(shards / "out") == whole
    nothing = Counted(0)
    scored(shards, engine=nothing)
    assert files(shards / "out") == whole


def test_a_damaged_chunk_is_folded_again(shards: Path) -> None:
    scored(shards)
    whole = files(shards / "out")
    chunks = [shards / "work" / f"metrics-{number}.chunk" for number in range(3)]
    content = bytearray(chunks[1].read_bytes())
    content[len(content) // 2] ^= 1
    chunks[1].write_bytes(content)
    chunks[2].write_bytes(chunks[2].read_bytes()[:50])
    (shards / "work" / "metrics-notes.chunk").write_text("of the user's")
    again = Counted()
    scored(shards, engine=again)
    assert again.chunks == 2
    assert files(shards / "out") == whole


def forge(chunk: Path, change: Callable[[Any], Any]) -> None:
    """Write other contents into a chunk, with a digest that fits."""
    tree = np.load(io.BytesIO(chunk.read_bytes()[32:]))
    arrays = {name: tree[name] for name in tree.files}
    document = change(json.loads(arrays.pop("tree").tobytes()))
    target = io.BytesIO()
    np.savez(target, **arrays, tree=np.frombuffer(json.dumps(document).encode(), np.uint8))
    chunk.write_bytes(hashlib.sha256(target.getvalue()).digest() + target.getvalue())


def replaced(tree: Any, old: str, new: Any) -> Any:
    """A tree with another value at the first place where a text or class of that name stands."""
    text = json.dumps(tree)
    assert old in text
    return json.loads(text.replace(old, json.dumps(new) if not isinstance(new, str) else new, 1))


@pytest.mark.parametrize(
    "change",
    [
        lambda old: replaced(old, '[{"tuple": [0, "s"]}', '[{"tuple": [7, "s"]}'),
        lambda old: replaced(old, '{"tuple": [0, "s"]}', '"s"'),
        lambda old: replaced(old, '{"array": "a2"}', "3"),
        lambda old: replaced(old, '{"array": "a2"}', {"array": "a3"}),
        lambda old: replaced(old, '"scores"', '"models"'),
        lambda old: replaced(old, '{"tuple": ["scores", {"bytes": "a0"}]}', '"scores"'),
        lambda old: replaced(old, '{"bytes": "a0"}', "7"),
        lambda _: 7,
        lambda _: {"list": [1]},
        lambda _: {"tuple": [{"list": []}, 7]},
    ],
)
def test_a_forged_chunk_is_named(shards: Path, change: Callable[[Any], Any]) -> None:
    scored(shards)
    chunk = shards / "work" / "metrics-0.chunk"
    forge(chunk, change)
    with pytest.raises(DataError, match=rf"{chunk.name}: is damaged \(.*remove it, and run"):
        scored(shards)


def test_forged_items_are_refused_where_they_are_read(shards: Path) -> None:
    scored(shards)
    forge(shards / "work" / "metrics-0.chunk", lambda old: replaced(old, '{"bytes": "a0"}', {"bytes": "a2"}))
    scored(shards)
    with pytest.raises(DataError, match=r"scores-00000.parquet: .*not a readable Parquet file"):
        dialeval.load(shards / "out")


def test_what_is_no_plain_file_in_a_journal_is_never_opened(shards: Path) -> None:
    scored(shards)
    whole = files(shards / "out")
    work = shards / "work"
    (work / "metrics-0.chunk").unlink()
    os.mkfifo(work / "metrics-0.chunk")
    os.mkfifo(work / "metrics-².chunk")
    (work / "metrics-1.chunk").unlink()
    (work / "metrics-1.chunk").symlink_to("/dev/zero")
    scored(shards)
    assert files(shards / "out") == whole
    (work / "manifest.json").unlink()
    os.mkfifo(work / "manifest.json")
    with pytest.raises(DataError, match="is not a regular file"):
        scored(shards)
    (shards / "locked" / "lock").mkdir(parents=True)
    with pytest.raises(SettingError, match="lock cannot be locked"):
        scored(shards, resume=shards / "locked")


def changed_file(folder: Path) -> dict[str, Any]:
    path = folder / "shards" / "part-01.jsonl"
    path.write_text(path.read_text().replace("w1 ", "w2 ", 1))
    return {}


def rewritten_file(folder: Path) -> dict[str, Any]:
    os.utime(folder / "shards" / "part-01.jsonl", (1, 1))
    return {}


def new_file(folder: Path) -> dict[str, Any]:
    shutil.copy(folder / "shards" / "part-01.jsonl", folder / "shards" / "part-09.jsonl")
    return {}


def lost_file(folder: Path) -> dict[str, Any]:
    (folder / "shards" / "part-02.jsonl").unlink()
    return {}


def train(folder: Path) -> dict[str, Any]:
    return {"train": folder / "whole.jsonl"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (changed_file, r"inputs of .*part-01.jsonl of (changed|sample)"),
        (rewritten_file, r"part-01.jsonl of changed was '\d+' and is '1000000000'"),
        (new_file, r"part-09.jsonl is new"),
        (lost_file, r"part-02.jsonl was .* and is gone"),
        (train, r"resources of vocabulary is new"),
        (lambda _: {"metrics": "length,distinct-2,kl-div(oov=unk),bleu-4"}, r"metrics of bleu-4 is new"),
        (lambda _: {"settings": {"distinct": {"per": "response"}}}, r"metrics of distinct-2 was .* and is gone"),
        (lambda _: {"fields": {"turn": "number"}}, r"fields of turn was 'turn' and is 'number'"),
        (lambda _: {"chunk_bytes": 5_000}, r"chunks was"),
    ],
)
def test_a_change_is_refused_by_name(shards: Path, change: Any, message: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        scored(shards, engine=Counted(2))
    changes = change(shards)
    with pytest.raises(SettingError, match="belongs to another run: .*" + message):
        scored(shards, **changes)


def test_what_tells_contents_apart(tmp_path: Path) -> None:
    path = tmp_path / "large.txt"

    def write_and_stamp(content: bytes, changed: int) -> dict[str, Any]:
        path.write_bytes(content)
        os.utime(path, ns=(changed, changed))
        return stamp(str(path))

    plain = write_and_stamp(bytes(3_000_000), 5)
    assert stamp(str(path)) == plain
    assert write_and_stamp(bytes(3_000_000), 6)["changed"] != plain["changed"]
    assert write_and_stamp(bytes(3_000_001), 5)["bytes"] != plain["bytes"]
    for place in (0, 65_535, 2_999_999):
        assert write_and_stamp(bytes(place) + b"x" + bytes(2_999_999 - place), 5)["sample"] != plain["sample"]
    between = write_and_stamp(bytes(100_000) + b"x" + bytes(2_899_999), 5)
    assert between["touched"] != plain["touched"]
    assert {**between, "touched": ""} == {**plain, "touched": ""}  # nothing else could tell
    small = write_and_stamp(bytes((1 << 20) - 1), 5)
    assert write_and_stamp(bytes((1 << 20) - 1), 5) == small  # all of it is in the sample
    assert write_and_stamp(bytes(1 << 19) + b"x" + bytes((1 << 19) - 2), 5) != small


def test_folders_that_will_not_do(shards: Path) -> None:
    (shards / "file").write_text("")
    with pytest.raises(SettingError, match="cannot be made"):
        scored(shards, resume=shards / "file")
    with pytest.raises(SettingError, match="holds other files"):
        scored(shards, resume=shards / "shards")
    (shards / "strange").mkdir()
    (shards / "strange" / "manifest.json").write_text("[]")
    with pytest.raises(DataError, match=r"manifest\.json: .* got array; remove the folder"):
        scored(shards, resume=shards / "strange")


def test_files_of_others_stay_as_they_are(shards: Path) -> None:
    for name in ("home", "project"):
        (shards / name / ".git").mkdir(parents=True)
        (shards / name / ".profile").write_text("mine")
    (shards / "project" / "manifest.json").write_text("[]")
    (shards / "project" / "lock").write_text("mine")
    for name in ("home", "project"):
        before = {entry.name: entry.is_file() and entry.read_text() for entry in (shards / name).iterdir()}
        with pytest.raises(DialevalError, match=r"holds other files|got array"):
            scored(shards, resume=shards / name)
        assert {entry.name: entry.is_file() and entry.read_text() for entry in (shards / name).iterdir()} == before
    scored(shards, resume=shards / "work")
    (shards / "work" / ".nfs0001").write_text("of the file system")
    left = shards / "work" / ".metrics-0.chunk.0123456789ab.unfinished"
    left.write_text("half")
    os.utime(left, (0, 0))
    scored(shards, resume=shards / "work")
    assert {entry.name for entry in (shards / "work").glob(".*")} == {".nfs0001"}
    (shards / "early").mkdir()
    (shards / "early" / ".manifest.json.0123456789ab.unfinished").write_text("{")  # by a run that was killed
    scored(shards, resume=shards / "early")


def test_one_run_at_a_time(shards: Path) -> None:
    class Second(Engine):
        def fold(self, job: Job, facts: FactValues, stage: Stage, chunks: Any, alone: bool) -> Iterator[ChunkResult]:
            scored(shards)
            raise AssertionError("two runs in one folder")

    with pytest.raises(SettingError, match="in use by another run"):
        scored(shards, engine=Second())


def test_an_error_leaves_what_is_finished(shards: Path) -> None:
    path = shards / "shards" / "part-02.jsonl"
    path.write_text(path.read_text() + '{"response": "poison"}\n')
    for _ in range(2):
        with pytest.raises(DataError, match=r"part-02.jsonl:41"):
            scored(shards, metrics=[Delicate()])
    assert len(list((shards / "work").glob("metrics-*.chunk"))) > 3


@contextmanager
def running(*arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A run in a process of its own that has just begun."""
    command = [sys.executable, "-c", VICTIM, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as victim:
        assert victim.stdout is not None
        assert victim.stdout.readline() == "ready\n"
        yield victim


def killed_and_resumed(folder: Path, kills: int, seed: int) -> None:
    dice = random.Random(seed)
    write_shards(folder / "shards", 1_000, 4)
    pattern = f"{folder}/shards/*"
    start = time.monotonic()
    with running(pattern, str(folder / "whole"), str(folder / "expected")) as run:
        assert run.wait() == 0
        seconds = time.monotonic() - start
    expected = files(folder / "expected")
    done = rounds = 0
    while done < kills:
        work, out = str(folder / f"work{rounds}"), str(folder / f"out{rounds}")
        with running(pattern, work, out) as victim:
            time.sleep(dice.uniform(0, seconds / 2))
            if victim.poll() is None:
                os.kill(victim.pid, signal.SIGKILL)
                done += 1
                continue
        assert victim.returncode == 0, victim.stderr
        assert files(Path(out)) == expected
        rounds += 1
    work, out = str(folder / f"work{rounds}"), str(folder / f"out{rounds}")
    with running(pattern, work, out) as last:
        assert last.wait() == 0
    assert files(Path(out)) == expected


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_at_random_moments(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, 3, seed=11)


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_at_fifty_random_moments(tmp_path: Path) -> None:
    killed_and_resumed(tmp_path, 50, seed=12)
