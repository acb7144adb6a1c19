"""A judge from ratings to a folder: read, train, validate, attack, and write weights, facts and model card together."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.analysis.judges import Progress, Recipe, Validation, train
from dialeval.core.files import write_bytes
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.ratings import Ratings, read_ratings
from dialeval.metrics.learned.attack import Attack, attack
from dialeval.metrics.learned.fitting import AdemSettings
from dialeval.metrics.learned.judge import Judge, open_vectors
from dialeval.metrics.learned.weights import CARD_FILE, Weights
from dialeval.reports import judge_card
from dialeval.reports.judge_card import Rows
from dialeval.resources.encoder_files import MINILM

ATTACKED_ROWS = 500
"""Rated rows, drawn by a fixed seed, on which the card's attacks are tried."""


@dataclass(frozen=True, eq=False)
class MadeJudge:
    """A trained judge with all that its card tells."""

    weights: Weights
    validation: Validation | None
    attacks: Sequence[Attack]
    data: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
    command: str
    title: str

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `judge.safetensors`, `judge.json` and the card."""
        facts = judge_card.facts(self.data, self.settings, self.validation, self.attacks)
        path = replace(self.weights, facts=facts).save(folder)
        write_bytes(path / CARD_FILE, self.card().encode())
        return path

    def card(self) -> str:
        """The model card in Markdown."""
        return judge_card.card(
            self.weights, self.data, self.settings, self.validation, self.attacks, self.command, self.title
        )

    def tables(self) -> list[tuple[str, Rows]]:
        """What the training command prints."""
        found = [("Attacks", judge_card.attack_rows(self.attacks))]
        if self.validation is not None and self.validation.sets:
            found.insert(0, ("Spearman's rho on sets left out", judge_card.validation_rows(self.validation)))
        return found

    def weaknesses(self) -> list[str]:
        """What the attacks show, in plain words."""
        return judge_card.weaknesses(self.attacks)


def make_judge(
    ratings: Sequence[PathSource],
    tests: Sequence[PathSource] = (),
    *,
    encoder: str | os.PathLike[str] = MINILM,
    kind: str = "adem",
    strength: float | None = None,
    response_strength: float | None = None,
    rank: int | None = None,
    turns: int = 3,
    tokens: int | None = None,
    quality: str = "overall",
    licences: Mapping[str, str] | None = None,
    validate: bool = True,
    device: str = "cpu",
    fields: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    command: str = "dialeval.adem.train(...)",
    title: str = "A judge of dialogue responses",
) -> MadeJudge:
    """Train a judge on files of rated rows; `tests` are files to validate on only. See `dialeval adem train --help`."""
    given = {"strength": strength, "response_strength": response_strength, "rank": rank}
    adem = AdemSettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    recipe = Recipe(kind, adem, turns=turns, quality=quality)
    rated = read_ratings(ratings, fields)
    others = read_ratings(tests, fields) if tests else None
    vectors = open_vectors(encoder, tokens, device)
    weights, validation = train(rated, vectors, recipe, others, validate, progress)
    tried = _some(rated if others is None else others)
    attacks = attack(Judge(weights, vectors), tried.contexts, tried.responses, tried.references)
    return MadeJudge(
        weights, validation, attacks, _data(rated, licences or {}), _settings(recipe, weights), command, title
    )


def _some(ratings: Ratings) -> Ratings:
    """Rows with a context and a reference, where there are such; not more than `ATTACKED_ROWS`."""
    both = np.array([bool(c) and bool(r) for c, r in zip(ratings.contexts, ratings.references, strict=True)], np.bool_)
    rows = np.flatnonzero(both) if both.any() else np.arange(len(ratings))
    return ratings.take(np.sort(np.random.default_rng(0).permutation(rows)[:ATTACKED_ROWS]))


def _data(ratings: Ratings, licences: Mapping[str, str]) -> list[dict[str, Any]]:
    names = dict.fromkeys(ratings.datasets)
    counts = {name: sum(each == name for each in ratings.datasets) for name in names}
    return [{"name": name, "rows": counts[name], "licence": licences.get(name, "not stated")} for name in names]


def _settings(recipe: Recipe, weights: Weights) -> dict[str, Any]:
    found: dict[str, Any] = {"kind": recipe.kind, "quality": recipe.quality, "turns of the context": recipe.turns}
    found |= {"encoder": weights.encoder, "encoder digest": weights.encoder_digest, "tokens of a text": weights.tokens}
    if recipe.kind == "adem":
        settings = recipe.adem
        found |= {"strength": settings.strength, "response strength": settings.response_strength, "rank": settings.rank}
    return found
