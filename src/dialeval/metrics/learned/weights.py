"""The weights of a judge: ADEM's formula with M and N near the identity, as a value that is saved, loaded and applied.

    score = (c' M r^ + r' N r^ + w' r^ - alpha) / beta        M = s I + A B',  N = s I + C D'

c, r and r^ are the vectors of context, reference and response; A, B, C, D have few columns (low rank). alpha and beta
bring the score to the scale 1 to 5. Where the reference is missing its term is left out (C-ADEM), likewise the
context's; each case has an alpha and beta of its own. With neither there is no score.

`kind` says how they were made: `identity` (A to D empty), `adem` (see `fitting`), `paper` (see `paper`).

A judge's folder holds `judge.safetensors`, `judge.json` and a model card. Nothing else is ever loaded, and no pickle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault
from dialeval.core.files import write_bytes

TENSORS_FILE = "judge.safetensors"
FACTS_FILE = "judge.json"
CARD_FILE = "README.md"
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

    def terms(self, context: Vectors, reference: Vectors, response: Vectors) -> tuple[Floats, Floats, Floats]:
        """The terms of context, reference and response alone, one value per row each."""
        found = np.empty((3, len(response)))
        for start in range(0, len(response), _TILE):
            c, r, said = (_tile(vectors, start) for vectors in (context, reference, response))
            rows = min(_TILE, len(response) - start)
            for number, (left, one, other) in enumerate(
                ((c, self.context_left, self.context_right), (r, self.reference_left, self.reference_right))
            ):
                term = self.identity * _products(left, said) + _products(left @ one, said @ other)
                found[number, start : start + rows] = term[:rows]
            found[2, start : start + rows] = _products(said, np.broadcast_to(self.response, said.shape))[:rows]
        return found[0], found[1], found[2]

    def score(
        self, context: Vectors, reference: Vectors, response: Vectors, has_context: Mask, has_reference: Mask
    ) -> Floats:
        """One score per row on the scale 1 to 5; NaN where there is neither context nor reference."""
        by_context, by_reference, alone = self.terms(context, reference, response)
        scores = np.full(len(response), np.nan)
        raw = np.where(has_context, by_context, 0.0) + np.where(has_reference, by_reference, 0.0) + alone
        for case, there in cases(has_context, has_reference).items():
            alpha, beta = self.calibration[case]
            scores[there] = (raw[there] - alpha) / beta
        clipped: Floats = np.clip(scores, LOWEST, HIGHEST)
        return clipped

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the weights into a folder, made if it is not there."""
        from safetensors.numpy import save

        folder = Path(folder)
        tensors = {name: np.ascontiguousarray(getattr(self, name), np.float32) for name in _TENSORS}
        document = {
            "format": FORMAT,
            "kind": self.kind,
            "identity": self.identity,
            "calibration": {case: list(self.calibration[case]) for case in CASES},
            "encoder": {"name": self.encoder, "digest": self.encoder_digest, "tokens": self.tokens},
            "turns": self.turns,
            **self.facts,
        }
        content = save(tensors)
        write_bytes(folder / TENSORS_FILE, content)
        document["sha256"] = hashlib.sha256(content).hexdigest()
        write_bytes(folder / FACTS_FILE, _dump(document))
        return folder


_OWN_FACTS = frozenset({"format", "kind", "identity", "calibration", "encoder", "turns", "sha256"})


def load(folder: str | os.PathLike[str]) -> Weights:
    """The weights in a folder that `Weights.save` wrote."""
    import orjson

    folder = Path(folder)
    facts, tensors = folder / FACTS_FILE, folder / TENSORS_FILE
    remedy = "give a folder that `dialeval adem train` wrote"
    try:
        document = orjson.loads(facts.read_bytes())
        return _of_document(document, tensors)
    except OSError as error:
        where = str(error.filename or facts)
        raise DataError(Fault(where, None, f"cannot be read ({error.strerror})", remedy)) from None
    except orjson.JSONDecodeError as error:
        raise DataError(Fault(str(facts), error.lineno, f"not JSON ({error.msg})", remedy)) from None
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        what = f"holds no weights of a judge ({type(error).__name__}: {error})"[:300]
        raise DataError(Fault(str(folder), None, what, remedy)) from None


def _of_document(document: Mapping[str, Any], tensors: Path) -> Weights:
    from safetensors import SafetensorError
    from safetensors.numpy import load as read

    content = tensors.read_bytes()
    if document["format"] > FORMAT:
        what = f"layout {document['format']} is newer than this dialeval reads ({FORMAT})"
        raise DataError(Fault(str(tensors.parent), None, what, "upgrade dialeval"))
    if hashlib.sha256(content).hexdigest() != document["sha256"]:
        remedy = "copy the folder again, or train anew"
        raise DataError(Fault(str(tensors), None, f"does not belong to {FACTS_FILE}", remedy))
    try:
        found = read(content)
    except SafetensorError as error:
        raise ValueError(error) from None
    encoder = document["encoder"]
    return Weights(
        document["kind"],
        float(document["identity"]),
        **{name: found[name].astype(np.float64) for name in _TENSORS},
        calibration={case: (float(pair[0]), float(pair[1])) for case, pair in document["calibration"].items()},
        encoder=encoder["name"],
        encoder_digest=encoder["digest"],
        tokens=int(encoder["tokens"]),
        turns=int(document["turns"]),
        facts={name: value for name, value in document.items() if name not in _OWN_FACTS},
    )


def cases(has_context: Mask, has_reference: Mask) -> dict[str, Mask]:
    """Which rows are judged by what."""
    return {
        "both": has_context & has_reference,
        "context": has_context & ~has_reference,
        "reference": has_reference & ~has_context,
    }


def _tile(vectors: Vectors, start: int) -> Floats:
    """Rows from `start` on as float64, filled up with zeros."""
    tile = np.zeros((_TILE, vectors.shape[1]))
    part = vectors[start : start + _TILE]
    tile[: len(part)] = part
    return tile


def _products(left: Floats, right: Floats) -> Floats:
    """The inner product of each row with the row beside it."""
    products: Floats = np.einsum("ij,ij->i", left, right)
    return products


def _dump(document: Mapping[str, Any]) -> bytes:
    import orjson

    return orjson.dumps(document, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
