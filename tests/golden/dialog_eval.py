"""The golden data of dialog-eval: inputs, and what the original made of them."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core.arrays import Floats

DIFFERENT_LENGTH = frozenset({"fewer", "more", "single"})
"""Response files of nasty-a with more or fewer lines than the references: an error here."""
DIFFERENT_ON_PURPOSE = frozenset({"bom", "lone_cr"})
"""A byte order mark is no part of a word here, and a lone carriage return ends no line."""


def existing(path: Path) -> Path:
    """The file, packed or not."""
    return path if path.exists() else path.with_name(f"{path.name}.gz")


def inputs(folder: Path) -> dict[str, Any]:
    """The arguments of `evaluate` beside the responses."""
    words = folder.with_name("multiwoz") if folder.name == "multiwoz-large" else folder
    return {
        "references": existing(folder / "test_target.txt"),
        "contexts": existing(folder / "test_source.txt"),
        "train": existing(words / "train_source.txt"),
        "vocabulary": existing(words / "vocab.txt"),
        "vectors": existing(words / "vectors.txt"),
    }


def golden(folder: Path) -> dict[str, Any]:
    """What the original gave, by response file."""
    responses: dict[str, Any] = json.loads((folder / "golden.json").read_text())["responses"]
    return responses


def per_response(folder: Path, file: str) -> dict[str, Floats]:
    """What the original gave for every response, NaN where it skipped one; empty where there is no such record."""
    path = folder / "per-response" / f"{file}.jsonl.gz"
    if not path.exists():
        return {}
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        rows = [json.loads(line) for line in lines]
    keys = [key for key in rows[0] if key != "i"]
    return {key: np.array([np.nan if row[key] is None else row[key] for row in rows]) for key in keys}
