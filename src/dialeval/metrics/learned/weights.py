"""The weights of a judge: ADEM's formula with M and N near the identity, as a value that is saved, loaded and applied.

    score = (c' M r^ + r' N r^ + w' r^ - alpha) / beta        M = s I + A B',  N = s I + C D'

c, r and r^ are the vectors of context, reference and response; A, B, C, D have few columns (low rank). alpha and beta
bring the score to the scale 1 to 5. Where the reference is missing its term is left out (C-ADEM), likewise the
context's; each case has an alpha and beta of its own. With neither there is no score.

`kind` is the recipe that made them: `identity` (A to D empty), `adem` (`training.fitting`), `paper` (`training.paper`).

A judge's folder holds `judge.safetensors`, `judge.json` and a model card. Nothing else is ever loaded, and no pickle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core import gate
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault
from dialeval.core.files import place_of, reading_together, replacing_together
from dialeval.core.targets import check_files

TENSORS_FILE = "judge.safetensors"
FACTS_FILE = "judge.json"
CARD_FILE = "README.md"
_FILES = (TENSORS_FILE, FACTS_FILE, CARD_FILE)
FORMAT = 1
LOWEST, HIGHEST = 1.0, 5.0
"""The scale of the scores."""

CASES = ("both", "context", "reference")
"""What a response is judged by: context and reference, or one of them."""

_TENSORS = ("context_left", "context_right", "reference_left", "reference_right", "response")
_TILE = 1024
"""Rows that are scored at a time; always as many, so that a row's score does not depend on its neighbours."""

Vectors = npt.NDArray[Any]
Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Encoded:
    """Responses with their contexts and references as vectors, one row each; the vector of a missing text is zero."""

    context: Vectors
    reference: Vectors
    response: Vectors
    has_context: Mask
    has_reference: Mask

    def __len__(self) -> int:
        return len(self.response)


@dataclass(frozen=True, eq=False)
class Weights:
    """The parameters of one judge, and the encoder whose vectors they are for."""

    kind: str
    identity: float
    """s, the share of the identity in M and N."""
    context_left: Floats
    context_right: Floats
    reference_left: Floats
    reference_right: Floats
    response: Floats
    """w, the linear term."""
    calibration: Mapping[str, tuple[float, float]]
    """alpha and beta of each of the `CASES`."""
    encoder: str = ""
    encoder_digest: str = ""
    tokens: int = 0
    turns: int = 3
    """Turns of the context that count, the last ones."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: data, settings, results; for people."""

    @property
    def dimension(self) -> int:
        """Numbers per vector."""
        return len(self.response)

    @cached_property
    def digest(self) -> str:
        """What the scores depend on."""
        sha = hashlib.sha256()
        for name in _TENSORS:
            sha.update(np.ascontiguousarray(getattr(self, name), "<f8").tobytes())
        numbers = [self.identity, *(number for case in CASES for number in self.calibration[case])]
        sha.update(repr((numbers, self.encoder_digest, self.tokens, self.turns)).encode())
        return sha.hexdigest()[:DIGEST_LENGTH]

    def terms(self, rows: Encoded) -> tuple[Floats, Floats, Floats]:
        """The terms of context, reference and response alone, one value per row each."""
        terms = np.empty((3, len(rows)))
        for start in range(0, len(rows), _TILE):
            c, r, said = (_tile(vectors, start) for vectors in (rows.context, rows.reference, rows.response))
            tile = terms[:, start : start + _TILE]
            tile[0] = self._term(c, self.context_left, self.context_right, said)[: tile.shape[1]]
            tile[1] = self._term(r, self.reference_left, self.reference_right, said)[: tile.shape[1]]
            tile[2] = row_products(said, np.broadcast_to(self.response, said.shape))[: tile.shape[1]]
        return terms[0], terms[1], terms[2]

    def _term(self, vectors: Floats, left: Floats, right: Floats, response: Floats) -> Floats:
        """v' (s I + L R') r^ of each row."""
        return self.identity * row_products(vectors, response) + row_products(vectors @ left, response @ right)

    def score(self, rows: Encoded) -> Floats:
        """One score per row on the scale 1 to 5; NaN where there is neither context nor reference."""
        by_context, by_reference, alone = self.terms(rows)
        has_context, has_reference = rows.has_context, rows.has_reference
        raw = np.where(has_context, by_context, 0.0) + np.where(has_reference, by_reference, 0.0) + alone
        masks = has_context & has_reference, has_context & ~has_reference, has_reference & ~has_context
        scores = np.full(len(rows), np.nan)
        for case, mask in zip(CASES, masks, strict=True):
            alpha, beta = self.calibration[case]
            scores[mask] = (raw[mask] - alpha) / beta
        clipped: Floats = np.clip(scores, LOWEST, HIGHEST)
        return clipped

    def save(self, folder: str | os.PathLike[str], card: str | None = None) -> Path:
        """Write the weights into a folder, made if it is not there; with a model card if there is one."""
        from safetensors.numpy import save

        folder = Path(folder)
        check_folder(folder)
        content = save({name: np.ascontiguousarray(getattr(self, name), np.float32) for name in _TENSORS})
        document: dict[str, Any] = {
            "format": FORMAT,
            "kind": self.kind,
            "identity": self.identity,
            "calibration": {case: list(self.calibration[case]) for case in CASES},
            "encoder": {"name": self.encoder, "digest": self.encoder_digest, "tokens": self.tokens},
            "turns": self.turns,
            **self.facts,
        }
        with replacing_together(folder, FACTS_FILE) as files:
            document["sha256"] = files.add_bytes(TENSORS_FILE, content)
            files.add_bytes(FACTS_FILE, gate.with_digest(document))
            if card is not None:
                files.add_bytes(CARD_FILE, card.encode())
        return folder


def check_folder(folder: str | os.PathLike[str], *inputs: Any) -> None:
    """DataError unless a judge may be saved in a folder: a judge may be replaced, other files and inputs not."""
    check_files(folder, _FILES, _own_files, *inputs)


def _own_files(folder: Path) -> Collection[str]:
    """The files of the judge that is saved in a folder; none if there is no judge."""
    try:
        document = gate.read_json(folder / FACTS_FILE, dict[str, Any], "")
    except DataError:
        return ()
    return _FILES if document.keys() >= {"kind", "calibration"} else ()


def load(folder: str | os.PathLike[str]) -> Weights:
    """The weights in a folder that `Weights.save` wrote; what its document has besides are facts."""
    return reading_together(Path(folder) / FACTS_FILE, lambda: _load(Path(folder)))


def _load(folder: Path) -> Weights:
    from dialeval.resources.schemas import Judge

    remedy = "give a folder that `dialeval adem train` wrote, or copy it again"
    file = folder / FACTS_FILE
    facts = gate.read_json(file, dict[str, Any], remedy)
    if isinstance(layout := facts.get("format"), int) and layout > FORMAT:
        what = f"layout {layout} is newer than this dialeval reads ({FORMAT})"
        raise DataError(Fault(str(folder), None, what, "upgrade dialeval"))
    judge = gate.fitting(facts, Judge, str(file), remedy)
    with gate.explained(file, remedy):
        gate.check_digest(facts)
    place = place_of(folder / TENSORS_FILE, judge.sha256)
    tensors = gate.read_tensors(place, remedy, judge.sha256, FACTS_FILE)
    with gate.explained(place, remedy):
        size = len(gate.tensor(tensors, "response", (None,)))
        shapes = {name: (None,) if name == "response" else (size, None) for name in _TENSORS}
        found = {name: gate.tensor(tensors, name, shape).astype(np.float64) for name, shape in shapes.items()}
        for side in ("context", "reference"):
            if found[f"{side}_left"].shape != found[f"{side}_right"].shape:
                raise gate.UnfitError(f"{side}_left and {side}_right have different shapes")
    return Weights(
        judge.kind,
        judge.identity,
        **found,
        calibration={case: getattr(judge.calibration, case) for case in CASES},
        encoder=judge.encoder.name,
        encoder_digest=judge.encoder.digest,
        tokens=judge.encoder.tokens,
        turns=judge.turns,
        facts={name: value for name, value in facts.items() if name not in Judge.__struct_fields__},
    )


def trained_on(facts: Mapping[str, Any]) -> list[str]:
    """Return the digests of the rated rows that a judge learned from, as its document has them; none if it has none."""
    known = facts.get("trained_on")
    return [each for each in known if isinstance(each, str)] if isinstance(known, list) else []


def _tile(vectors: Vectors, start: int) -> Floats:
    """Rows from `start` on as float64, filled up with zeros."""
    tile = np.zeros((_TILE, vectors.shape[1]))
    part = vectors[start : start + _TILE]
    tile[: len(part)] = part
    return tile


def row_products(left: Vectors, right: Vectors) -> Floats:
    """The inner product of each row with the row beside it."""
    products: Floats = np.einsum("ij,ij->i", left, right)
    return products
