"""The program that makes the shipped judges: its remarks, and the whole way of `judge` on invented data."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tools.make_checkpoint import ATTACKED, CORPORA, JUDGE_TESTED, JUDGE_TRAINED

from dialeval import sample_data
from dialeval.judges.judge import load_judge
from dialeval.metrics.encoder_files import find_install_command

ROOT = Path(__file__).parents[2]
SIZES = ["steps=2", "batch_size=2", "rating_steps=1", "rating_rows=4", "beside=2", "rank=2"]


def _write(path: Path, rows: Sequence[Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("\n".join(map(json.dumps, rows)).encode()))


@pytest.mark.slow
@pytest.mark.skipif(find_install_command() is not None, reason="the weights of minilm are not installed")
def test_one_command_makes_the_judge_and_its_card(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    words = (sample_data.folder() / "train.txt").read_text(encoding="utf-8").split()
    dice = np.random.default_rng(0)

    def texts(many: int) -> list[str]:
        return [" ".join(row) for row in dice.choice(words, (many, 6)).tolist()]

    for file in [*(f"{name}/all.jsonl.gz" for name in CORPORA), ATTACKED]:
        _write(tmp_path / "corpora" / file, [{"turns": texts(4)} for _ in range(3)])
    for name in (*JUDGE_TRAINED, *JUDGE_TESTED):
        rows = [
            {
                "dataset": name,
                "context": texts(2),
                "response": texts(1)[0],
                "system": "ab"[row % 2],
                "scores": {"overall": dice.integers(0, 3, 3).tolist()},
                "scale": [0, 2],
            }
            for row in range(8)
        ]
        _write(tmp_path / "ratings" / f"{name}.jsonl.gz", rows)
    tool = [sys.executable, str(ROOT / "tools" / "make_checkpoint.py"), "judge"]
    places = [str(tmp_path / "corpora"), str(tmp_path / "ratings"), "cpu", str(tmp_path / "work")]
    for output in ("first", "again"):
        command = [*tool, *places, str(tmp_path / output), *SIZES]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        assert ("without conture: 16 rated rows" in done.stdout) == (output == "first")
    made, again = (load_judge(tmp_path / output) for output in ("first", "again"))
    assert made.digest == again.digest
    assert list(made.facts["validation"]["sets"]) == [*JUDGE_TRAINED, *JUDGE_TESTED]
    assert list(made.facts["breakdowns"]["systems"]) == ["a", "b"]
    card = (tmp_path / "first" / "README.md").read_text(encoding="utf-8")
    assert "not stated" not in card
    assert "Attacks: 500 human replies" in card
    assert "were decided earlier with all sets in view" in card
