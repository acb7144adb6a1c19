"""The judge of responses in dialogue: what people would say of a response, read together with its context.

    raw = rating + a rank + b closest        score = 1 + 4 / (1 + exp(-(alpha + beta raw)))

`rating` is what the head that learned from people says, `rank` how well the response follows the context compared with
other responses, `closest` the cosine of the sentence vectors of the response and of the closest reference; that is left
out where there is no reference, and alpha and beta are others then.

    shares of O, T, X = p^w m^(1 - w), made to add up to 1

p are the probabilities of the head for breakdowns, m the mean shares of the systems that it learned from. Systems
differ in how often they break down, and no turn shows that; so the head counts less (w) than among turns of one system.

A folder holds `judge.safetensors` (what training changed in the encoder, see `cross_weights`), `judge.json` and a model
card. Nothing else is ever loaded, and no pickle.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.core import gate
from dialeval.core.arrays import Floats
from dialeval.core.columns import DIGEST_LENGTH
from dialeval.core.errors import DataError, Fault, SettingError
from dialeval.core.files import place_of, reading_together, replacing_together
from dialeval.metrics.learned.cross_encoder import CrossEncoder
from dialeval.metrics.learned.cross_weights import HEADS, Changes
from dialeval.metrics.learned.judge import Texts, closest_cosines, open_vectors
from dialeval.metrics.learned.weights import FACTS_FILE, HIGHEST, LOWEST, TENSORS_FILE, Mask, trained_on
from dialeval.resources.encoder_files import check_libraries, find_encoder
from dialeval.resources.judge_settings import BreakdownScale, PairShape, Scale
from dialeval.resources.sentence_vectors import SentenceVectors

SHIPPED = Path(__file__).parent / "checkpoints" / "judge"
"""The judge that comes with the package."""

FORMAT = 1
KIND = "cross-encoder"
_REMEDY = "give a folder that `dialeval judge train` wrote"


@dataclass(frozen=True, eq=False)
class Verdicts:
    """What the judge says of responses, one entry each; NaN where there is no context."""

    score: Floats
    """From 1 to 5."""
    relevance: Floats
    """How sure it is that the response answers this context and not another one, 0 to 1."""
    fluency: Floats
    """How sure it is that the words are in order, 0 to 1."""
    novelty: Floats
    """How sure it is that the response is no echo of the context, 0 to 1."""
    breakdown: Floats
    """Three columns: the shares of people who would see no breakdown, perhaps one, and one."""


@dataclass(frozen=True, eq=False)
class JudgeWeights:
    """What a folder holds."""

    changes: Changes
    scale: Scale
    shape: PairShape
    encoder: str
    encoder_digest: str
    breakdown: BreakdownScale = field(default_factory=BreakdownScale)
    facts: Mapping[str, Any] = field(default_factory=dict)
    """What else is known: data, settings, results; for people."""

    @cached_property
    def digest(self) -> str:
        """What the verdicts depend on."""
        sha = hashlib.sha256()
        for name in sorted(self.changes):
            sha.update(name.encode() + np.ascontiguousarray(self.changes[name]).tobytes())
        sha.update(repr((self.scale, self.shape, self.breakdown, self.encoder_digest)).encode())
        return sha.hexdigest()[:DIGEST_LENGTH]

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write the folder, made if it is not there."""
        from safetensors.numpy import save

        folder = Path(folder)
        # safetensors writes the memory of an array as it lies.
        content = save({name: np.ascontiguousarray(array) for name, array in sorted(self.changes.items())})
        document: dict[str, Any] = {
            "format": FORMAT,
            "kind": KIND,
            "scale": vars(self.scale),
            "shape": vars(self.shape),
            "breakdown": vars(self.breakdown),
            "encoder": {"name": self.encoder, "digest": self.encoder_digest},
            **self.facts,
        }
        with replacing_together(folder, FACTS_FILE) as files:
            document["sha256"] = files.add_bytes(TENSORS_FILE, content)
            files.add_bytes(FACTS_FILE, gate.with_digest(document))
        return folder


def is_dialogue_judge(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds a judge of this kind and not one of `dialeval adem`."""
    return bool(gate.read_json(Path(folder) / FACTS_FILE, dict[str, Any], _REMEDY).get("kind") == KIND)


def load_judge(folder: str | os.PathLike[str]) -> JudgeWeights:
    """The weights in a folder that `JudgeWeights.save` wrote."""
    return reading_together(Path(folder) / FACTS_FILE, lambda: _load(Path(folder)))


def _load(folder: Path) -> JudgeWeights:
    from dialeval.resources.schemas import DialogueJudge as Schema

    file = folder / FACTS_FILE
    facts = gate.read_json(file, dict[str, Any], _REMEDY)
    if facts.get("kind") != KIND:
        raise DataError(Fault(str(file), None, "is a judge of `dialeval adem`, or none", _REMEDY))
    if isinstance(layout := facts.get("format"), int) and layout > FORMAT:
        what = f"layout {layout} is newer than this dialeval reads ({FORMAT})"
        raise DataError(Fault(str(file), None, what, "upgrade dialeval"))
    saved = gate.fitting(facts, Schema, str(file), _REMEDY)
    with gate.explained(file, _REMEDY):
        gate.check_digest(facts)
    place = place_of(folder / TENSORS_FILE, saved.sha256)
    return JudgeWeights(
        _changes(place, gate.read_bytes(place, _REMEDY, saved.sha256, FACTS_FILE)),
        saved.scale,
        saved.shape,
        saved.encoder.name,
        saved.encoder.digest,
        saved.breakdown,
        {name: value for name, value in facts.items() if name not in Schema.__struct_fields__},
    )


def _changes(place: Path, content: bytes) -> Changes:
    """The tensors of a file, which hold finite floats and whole numbers of eight bits."""
    from safetensors.numpy import load

    with gate.explained(place, _REMEDY):
        try:
            changes = dict(load(content))
        except Exception as error:  # SafetensorError, and what is raised for headers and types that it lets through
            raise gate.UnfitError(f"holds no readable weights ({type(error).__name__}: {error})") from None
        for name, each in changes.items():
            if each.dtype not in (np.int8, np.float16, np.float32) or not np.isfinite(each).all():
                raise gate.UnfitError(f"{name} holds other numbers than weights have")
    return changes


class DialogueJudge:
    """Weights and the encoder they are for, from texts to verdicts. Pickled as the place where they lie."""

    def __init__(
        self, source: str | os.PathLike[str] | None = None, encoder: str | os.PathLike[str] | None = None
    ) -> None:
        self._settings = source, encoder

    def __reduce__(self) -> tuple[type[DialogueJudge], tuple[object, ...]]:
        return type(self), self._settings

    @property
    def shipped(self) -> bool:
        """Whether it is the judge that comes with the package."""
        return self._settings[0] is None

    @cached_property
    def weights(self) -> JudgeWeights:
        """What the folder holds, read when it is first needed."""
        check_libraries()
        source, _ = self._settings
        return load_judge(SHIPPED if source is None else source)

    @cached_property
    def _cross_encoder(self) -> CrossEncoder:
        files = find_encoder(self._settings[1] or self.weights.encoder)
        if files.digest != self.weights.encoder_digest:
            remedy = f"pass the encoder {self.weights.encoder!r} ({self.weights.encoder_digest})"
            raise SettingError(f"the judge was trained on other weights than those of {files.name}; {remedy}")
        try:
            return CrossEncoder(files, self.weights.changes, self.weights.shape)
        except (KeyError, ValueError) as error:
            what = f"its changes do not fit the encoder ({type(error).__name__}: {error})"[:300]
            raise DataError(Fault(str(self._settings[0] or SHIPPED), None, what, _REMEDY)) from None

    @cached_property
    def _vectors(self) -> SentenceVectors:
        return open_vectors(self._settings[1] or self.weights.encoder)

    @property
    def digest(self) -> str:
        """The weights' digest, the encoder's name and digest."""
        weights = self.weights
        return f"{KIND}@{weights.digest}+{weights.encoder}@{weights.encoder_digest}"

    @property
    def trained_on(self) -> list[str]:
        """The digests of the rated rows that it learned from."""
        return trained_on(self.weights.facts)

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """One score per response, 1 to 5; NaN for a response without context."""
        return self.verdicts(contexts, responses, references).score

    def verdicts(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Verdicts:
        """What the judge says of each response."""
        has: Mask = np.array([any(turn.strip() for turn in context) for context in contexts], np.bool_)
        rows = np.flatnonzero(has).tolist()
        heads = np.full((len(responses), sum(HEADS.values())), np.nan)
        if rows:
            heads[has] = self._cross_encoder.heads([contexts[row] for row in rows], [responses[row] for row in rows])
        parts = split_heads(heads)
        closest = closest_cosines(self._vectors, responses, references) if any(references) else None
        true, random, echo, broken = softmax(parts["kind"]).T
        shares = shrunk(self.weights.breakdown, softmax(parts["breakdown"]))
        # Each against the true response alone: a response that is an echo is not therefore irrelevant.
        return Verdicts(
            scores(self.weights.scale, parts["rating"][:, 0], parts["rank"][:, 0], closest),
            true / (true + random),
            true / (true + broken),
            true / (true + echo),
            shares,
        )


def split_heads(heads: Floats) -> dict[str, Floats]:
    """By head: its columns."""
    bounds = np.cumsum(list(HEADS.values()))[:-1]
    return dict(zip(HEADS, np.split(heads, bounds, axis=1), strict=True))


def softmax(values: Floats) -> Floats:
    """Probabilities, row by row."""
    weights = np.exp(values - values.max(axis=1, keepdims=True))
    found: Floats = weights / weights.sum(axis=1, keepdims=True)
    return found


def shrunk(scale: BreakdownScale, said: Floats) -> Floats:
    """The shares of O, T and X, a row per turn; NaN where the head says nothing."""
    logs = scale.weight * np.log(np.maximum(said, 1e-12)) + (1 - scale.weight) * np.log(scale.mean)
    found = np.exp(logs - logs.max(axis=1, keepdims=True, initial=-np.inf))
    made: Floats = found / found.sum(axis=1, keepdims=True)
    return made


def scores(scale: Scale, rating: Floats, rank: Floats, closest: Floats | None) -> Floats:
    """The scores from 1 to 5; `closest` is NaN for a row without a reference."""
    raw = rating + scale.rank * rank
    found = scale.alpha + scale.beta * raw
    if closest is not None:
        both = scale.alpha_closest + scale.beta_closest * (raw + scale.closest * closest)
        found = np.where(np.isnan(closest), found, both)
    on_scale: Floats = LOWEST + (HIGHEST - LOWEST) / (1.0 + np.exp(-found))
    return on_scale
