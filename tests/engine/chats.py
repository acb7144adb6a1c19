"""What the tests of the engines share: made-up shards, and runs made comparable."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dialeval.core.arrays import Floats
from dialeval.core.batch import Batch
from dialeval.core.fold import RowMetric
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.engine.evaluate import evaluate
from dialeval.engine.threads import Threads


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


def bare(run: Mapping[str, Result]) -> dict[str, Result]:
    """A run without what a stream does not keep: the texts of its rows, what these add, and where they came from."""
    return {
        name: replace(
            result,
            rows=None if result.rows is None else replace(result.rows, texts={}),
            contributions={},
            source=None,
        )
        for name, result in run.items()
    }


def estimates(run: Run) -> dict[str, list[str]]:
    """The figures of a run without items, printed in full: equal lines are equal to the last digit."""
    return {name: [f"{key} {replace(est, items=None)}" for key, est in result.items()] for name, result in run.items()}


def in_chunks(responses: Any, *given: Any, **options: Any) -> Run:
    """Evaluate files in chunks, also where they are small enough to be read as a whole."""
    return evaluate(responses, *given, **{"engine": Threads(), **options})


@dataclass(frozen=True)
class Delicate(RowMetric):
    """For tests: cannot bear the word `poison`, and dies of `death` in a worker."""

    family = "delicate"
    presets: ClassVar[Mapping[str, Mapping[str, object]]] = {"delicate": {}}
    needs = frozenset({Need.RESPONSE})

    marks: str = ""
    """A folder in which each death leaves a mark, so that there are only so many of them."""
    deaths: int = 0

    def score(self, batch: Batch) -> Floats:
        import os
        import signal
        import uuid

        responses = list(batch.texts(Need.RESPONSE))
        if "poison" in responses:
            raise ValueError("I cannot bear this")
        if "death" in responses and self.marks and len(list(Path(self.marks).iterdir())) < self.deaths:
            Path(self.marks, uuid.uuid4().hex).touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return np.array([float(len(response)) for response in responses])
