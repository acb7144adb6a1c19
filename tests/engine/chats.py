"""What the tests of the engines share: made-up shards, and runs made comparable."""

from __future__ import annotations

import json
import os
import random
import shutil
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest

from dialeval.core import inputs
from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.errors import DataError
from dialeval.core.fold import RowMetric
from dialeval.core.result import Result, Run
from dialeval.engine.folding import Done
from dialeval.engine.worker import Engine, Threads
from evaluating import evaluate


def texts(rows: int, seed: int = 7) -> list[str]:
    dice = random.Random(seed)
    return [" ".join(f"w{int(dice.paretovariate(0.8))}" for _ in range(dice.randrange(12))) for _ in range(rows)]


def rows(count: int, seed: int = 1) -> list[dict[str, object]]:
    """Rows in dialogues of four turns."""
    sides = zip(texts(count, seed), texts(count, seed + 1), texts(count, seed + 2), strict=True)
    return [
        {
            "dialog_id": f"d{number // 4}",
            "turn": number % 4,
            "response": response,
            "reference": reference,
            "context": [turn],
        }
        for number, (response, reference, turn) in enumerate(sides)
    ]


def write_shards(folder: Path, count: int, shards: int, seed: int = 1) -> list[dict[str, object]]:
    """Shards of rows, and one file with all of them."""
    folder.mkdir(exist_ok=True, parents=True)
    everything = []
    for shard in range(shards):
        here = [{**row, "dialog_id": f"s{shard}-{row['dialog_id']}"} for row in rows(count, seed + 10 * shard)]
        (folder / f"part-{shard:02}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in here))
        everything += here
    (folder.parent / "whole.jsonl").write_text("".join(json.dumps(row) + "\n" for row in everything))
    return everything


def _rewrite(path: Path) -> None:
    """Another content of the same size, and the time of change set back."""
    before, content = path.stat(), path.read_bytes()
    middle = len(content) // 2
    with path.open("r+b") as file:
        file.write(content[:middle] + content[middle:].replace(b"w1", b"w2").replace(b"t", b"T"))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def _replace(path: Path) -> None:
    """Another file of the same name, size and time."""
    other = path.parent.parent / f"other-{path.name}"
    shutil.copy2(path, other)
    _rewrite(other)
    other.replace(path)


def _cut_off(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def _lengthen(path: Path) -> None:
    with path.open("ab") as file:
        file.write(path.read_bytes())


CHANGES: dict[str, Callable[[Path], None]] = {
    "rewritten": _rewrite,
    "replaced": _replace,
    "cut off": _cut_off,
    "longer": _lengthen,
    "gone": Path.unlink,
}
"""What may happen to a file while it is read."""


def bare(run: Mapping[str, Result]) -> dict[str, Result]:
    """A run without what a stream does not keep: the texts of its rows, what these add, and where they came from."""
    return {
        name: replace(
            result,
            table=None if result.table is None else replace(result.table, texts={}),
            contributions={},
            source=None,
        )
        for name, result in run.items()
    }


def estimates(run: Run) -> dict[str, list[str]]:
    """The figures of a run without items, printed in full: equal lines are equal to the last digit."""
    return {name: [f"{key} {replace(est, scores=None)}" for key, est in result.items()] for name, result in run.items()}


def figures(run: Run) -> list[str]:
    """The figures of a run printed in full, whatever its metrics are called."""
    return [repr((est.mean, est.std, est.units, est.scored)) for result in run.values() for est in result.values()]


def in_chunks(responses: Any, *given: Any, **options: Any) -> Run:
    """Evaluate files in chunks, also where they are small enough to be read as a whole."""
    return evaluate(responses, *given, **{"engine": Threads(), "metrics": "all", **options})


def changed_in_between(
    folder: Path,
    engine: Engine,
    change: Callable[[Path], None],
    form: Callable[[Path], None] | None = None,
    **options: Any,
) -> None:
    """A run during which the last shard changes when the first chunk is done: refused, and the shard named."""
    write_shards(folder / "shards", 40, 3)
    for path in sorted((folder / "shards").iterdir()):
        if form is not None:
            form(path)
    last = max((folder / "shards").iterdir())
    done: list[Done] = []

    def progress(far: Done) -> None:
        if not done:
            change(last)
        done.append(far)

    given: dict[str, Any] = {"metrics": "length,kl-div", "engine": engine, "progress": progress, "chunk_bytes": 1_500}
    with pytest.raises(DataError, match=f"{last.name}: changed while it was read; run the same command again"):
        in_chunks({"s": f"{folder}/shards/*"}, **{**given, **options})
    assert done


@dataclass(frozen=True)
class Delicate(RowMetric):
    """For tests: cannot bear the word `poison`, sleeps over `lullaby`, and dies of `death` in a worker."""

    family = "delicate"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"delicate": {}}
    needs = frozenset({inputs.RESPONSE})

    marks: str = ""
    """A folder in which each death leaves a mark, so that there are only so many of them."""
    deaths: int = 0
    sending: bool = False
    """Whether it dies only when half of the result is sent."""

    def score(self, batch: Batch) -> Floats:
        import signal
        import uuid

        responses = list(batch.texts(inputs.RESPONSE))
        if "lullaby" in responses:
            time.sleep(600)
        if "poison" in responses:
            raise ValueError("I cannot bear this")
        if "death" in responses and self.marks and len(list(Path(self.marks).iterdir())) < self.deaths:
            Path(self.marks, uuid.uuid4().hex).touch()
            if not self.sending:
                os.kill(os.getpid(), signal.SIGKILL)
            _die_while_sending()
        return np.array([float(len(response)) for response in responses])


def _die_while_sending() -> None:
    """Have this process die in the middle of the next message that it sends."""
    import signal
    from multiprocessing.connection import Connection

    def send(pipe: Any, content: Any) -> None:
        os.write(pipe.fileno(), bytes(content)[: len(content) // 2])
        os.kill(os.getpid(), signal.SIGKILL)

    Connection._send = send  # type: ignore[attr-defined]
