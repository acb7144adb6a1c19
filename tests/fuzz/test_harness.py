"""The harness finds what it is there to find: targets that misbehave in every way are caught."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from fuzz import harness

BAD = '''
import os, tempfile, time, warnings
from pathlib import Path
import numpy as np
from fuzz.harness import target
from dialeval.core.errors import SettingError

def seeds():
    return [{"a.txt": b"sound\\n" * 20}]

def bad(name, seconds=0.3):
    """The seed is read well; what is changed is not."""
    def decorate(misbehave):
        @target(f"bad-{name}", seeds=seeds, seconds=seconds)
        def read(folder):
            path = folder / "a.txt"
            if not path.exists() or path.read_bytes() != seeds()[0]["a.txt"]:
                misbehave(folder)
    return decorate

@bad("exception")
def _(folder):
    raise KeyError("x")

@bad("warning")
def _(folder):
    np.float64(1e308) * np.float64(1e308)

@bad("sleep", seconds=0.1)
def _(folder):
    time.sleep(30)

@bad("death")
def _(folder):
    os.abort()

@bad("memory")
def _(folder):
    bytearray(8 << 30)

held = []

@target("heap", seeds=seeds)
def heap(folder):
    """Whatever is given, memory fills up over many inputs: no problem of the one that is at hand."""
    held.append(bytearray(1200 << 20))

@bad("file")
def _(folder):
    (folder / "left").write_bytes(b"")

@bad("temporary")
def _(folder):
    tempfile.mkstemp()

@bad("change")
def _(folder):
    (folder / "a.txt").write_bytes(b"other")

@bad("exit")
def _(folder):
    raise SystemExit(1)

@target("good", seeds=seeds)
def good(folder):
    if (folder / "a.txt").read_bytes() != seeds()[0]["a.txt"]:
        raise SettingError("refused")

@target("refused-seed", seeds=seeds)
def refused(folder):
    raise SettingError("never")
'''

EXPECTED = {
    "bad-exception": "KeyError in misbehaving_targets.py",
    "bad-warning": "RuntimeWarning",
    "bad-sleep": "took more than 0.1 s",
    "bad-death": "the process died with status -6",
    "bad-memory": "MemoryError",
    "bad-file": "left or changed the file 'left'",
    "bad-temporary": "left 'tmp",
    "bad-change": "left or changed the file 'a.txt'",
    "bad-exit": "SystemExit",
    "refused-seed": "a seed is refused",
}


@pytest.fixture(scope="module")
def attacked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, harness.Attacked]:
    folder = tmp_path_factory.mktemp("misbehaving")
    (folder / "misbehaving_targets.py").write_text(BAD)
    before = dict(harness.TARGETS)
    sys.path.insert(0, str(folder))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", f"{folder}:{':'.join(sys.path)}")
        names = ("good", "heap", *EXPECTED)
        work = harness.Work(names, 1, harness.Budget(inputs=3), str(folder / "findings"), ("misbehaving_targets",))
        try:
            return harness.fuzz(work)
        finally:
            sys.path.remove(str(folder))
            for name in {*harness.TARGETS} - {*before}:
                del harness.TARGETS[name]


@pytest.mark.parametrize("name", EXPECTED)
def test_misbehavior_is_found(attacked: dict[str, harness.Attacked], name: str) -> None:
    first = attacked[name].findings[0]
    assert first.what.startswith(EXPECTED[name])
    assert attacked[name].tally.inputs >= 3


def test_the_input_is_kept(attacked: dict[str, harness.Attacked]) -> None:
    path = Path(attacked["bad-death"].findings[0].path)
    assert path.name.startswith("bad-death-")
    assert set(harness.unpacked(path)) <= {"a.txt"}
    assert harness.unpacked(path) != {"a.txt": b"sound\n" * 20}


def test_a_finding_is_made_smaller(attacked: dict[str, harness.Attacked]) -> None:
    (path,) = {each.path for each in attacked["bad-exception"].findings}
    assert harness.unpacked(Path(path)).get("a.txt", b"") == b""


def test_what_is_refused_is_no_finding(attacked: dict[str, harness.Attacked]) -> None:
    good = attacked["good"]
    assert (good.findings, good.tally.results, good.tally.refused) == ([], 1, 2)


def test_an_input_that_finds_the_memory_full_is_tried_again_in_a_new_process(
    attacked: dict[str, harness.Attacked],
) -> None:
    heap = attacked["heap"]
    assert (heap.findings, heap.tally.inputs, heap.tally.results) == ([], 3, 3)


def test_replay_shows_the_traceback(tmp_path: Path) -> None:
    sound = harness.checked_in("jsonl")[0]
    path = harness.saved(tmp_path, "jsonl", sound)
    command = [sys.executable, "-m", "tests.fuzz", "replay", str(path)]
    done = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("result: ")
    path = harness.saved(tmp_path, "jsonl", {"rows.jsonl": b"{\n"})
    command[-1] = str(path)
    done = subprocess.run(command, cwd=harness.ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.startswith("refused: ")
    assert "not JSON" in done.stdout
