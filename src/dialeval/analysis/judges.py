"""Making a judge: read ratings, train, validate on what was left out, attack; and attacks on the rows of files."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from dialeval import sample
from dialeval.analysis.judge_validation import Validation, validation
from dialeval.core.needs import Need
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.ratings import Ratings, read_ratings, row_digests
from dialeval.data.rows.reading import attach, read_files, read_texts
from dialeval.data.rows.system import Rows
from dialeval.metrics.learned.attack import Attack, Scores, attack
from dialeval.metrics.learned.judge import Judge, files_digest, open_judge, open_vectors
from dialeval.metrics.learned.training.examples import examples_of
from dialeval.metrics.learned.training.fitting import AdemSettings
from dialeval.metrics.learned.training.recipe import Recipe
from dialeval.metrics.learned.weights import Weights
from dialeval.resources.encoder_files import MINILM
from dialeval.resources.progress import Progress

ATTACKED_ROWS = 500
"""Rated rows, drawn by a fixed seed, on which a new judge is attacked."""


@dataclass(frozen=True, eq=False)
class MadeJudge:
    """A trained judge, and everything that its model card reports."""

    weights: Weights
    validation: Validation | None
    attacks: Sequence[Attack]
    data: Sequence[Mapping[str, Any]]
    settings: Mapping[str, Any]
    command: str
    title: str
    trained_on: Sequence[str] = ()
    """Digests of the rated rows that it learned from (`ratings.row_digests`)."""

    def save(self, folder: str | os.PathLike[str], card: str | None = None) -> Path:
        """Write `judge.safetensors`, `judge.json` (with data, settings and results), and a model card if given."""
        facts: dict[str, Any] = {"data": [dict(each) for each in self.data], "settings": dict(self.settings)}
        if self.validation is not None:
            agreement = asdict(self.validation)
            facts["validation"] = plain({name: agreement[name] for name in ("sets", "mean", "resamples")})
        facts["attacks"] = plain([asdict(each) for each in self.attacks])
        facts["trained_on"] = list(self.trained_on)
        return replace(self.weights, facts=facts).save(folder, card)


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
    """Train a judge on files of rated rows; `tests` are files to validate on only. See `dialeval adem train --help`.

    `progress` counts steps: the encoding of all texts, then each fit on what remains when some rows are left out.
    """
    given = {"strength": strength, "response_strength": response_strength, "rank": rank}
    adem = AdemSettings(**{name: value for name, value in given.items() if value is not None})  # type: ignore[arg-type]
    recipe = Recipe(kind, adem, turns=turns, quality=quality)
    rated = read_ratings(ratings, fields)
    every = read_ratings([*ratings, *tests], fields) if tests else rated
    others = every.take(np.arange(len(rated), len(every))) if tests else rated
    vectors = open_vectors(encoder, tokens, device)
    if progress is not None:
        progress(0, None)
    examples = examples_of(every, vectors, turns, quality)
    trained = set(rated.datasets)
    known = examples.of_sets([name for name in examples.names if name in trained])
    weights = replace(
        recipe.fit(known),
        encoder=vectors.encoder.name,
        encoder_digest=files_digest(vectors.encoder),
        tokens=getattr(vectors.encoder, "tokens", 0),
        turns=turns,
    )
    agreement = validation(every, examples, known, recipe, progress) if validate else None
    tried = some_rows(others)
    attacks = attack(Judge(weights, vectors), tried.contexts, tried.responses, tried.references)
    data = _data(rated, licences or {})
    learned_from = sorted(set(row_digests(rated)))
    return MadeJudge(weights, agreement, attacks, data, _settings(recipe, weights), command, title, learned_from)


def attack_files(
    responses: Sequence[PathSource] | None = None,
    references: PathSource | None = None,
    contexts: PathSource | None = None,
    judge: PathSource | None = None,
    encoder: PathSource | None = None,
    device: str = "cpu",
    fields: Mapping[str, str] | None = None,
    opened: Scores | None = None,
) -> list[Attack]:
    """Every attack on every row of files of responses, or of the shipped sample; see `metrics.learned.attack`.

    `opened` is a judge to attack instead of the one in the folder `judge`.
    """
    if responses is None:
        folder = sample.folder()
        responses = sorted((folder / "responses").iterdir())
        references, contexts = folder / "references.txt", folder / "contexts.txt"
    systems = read_files(responses, fields)
    for need, source in ((Need.REFERENCE, references), (Need.CONTEXT, contexts)):
        if source is not None:
            column = read_texts(source, need, fields)
            systems = [attach(rows, need, column, os.fspath(source)) for rows in systems]
    texts = [text for rows in systems for text in rows.responses]
    opened = opened or open_judge(judge, encoder, device)
    return attack(opened, _lists(systems, Need.CONTEXT), texts, _lists(systems, Need.REFERENCE))


def _lists(systems: Sequence[Rows], need: Need) -> list[Sequence[str]]:
    """The texts of a need, row by row over all systems; an empty list where a system has none."""
    lists: list[Any] = []
    for rows in systems:
        lists += list(rows.columns[need]) if need in rows.columns else [()] * len(rows)
    return lists


def some_rows(ratings: Ratings) -> Ratings:
    """Rows with a context and a reference, where there are such; not more than `ATTACKED_ROWS`."""
    both = np.array([bool(c) and bool(r) for c, r in zip(ratings.contexts, ratings.references, strict=True)], np.bool_)
    rows = np.flatnonzero(both) if both.any() else np.arange(len(ratings))
    return ratings.take(np.sort(np.random.default_rng(0).permutation(rows)[:ATTACKED_ROWS]))


def _data(ratings: Ratings, licences: Mapping[str, str]) -> list[dict[str, Any]]:
    """By data set: its name, its rows and its licence."""
    return [
        {"name": name, "rows": rows, "licence": licences.get(name, "not stated")}
        for name, rows in Counter(ratings.datasets).items()
    ]


def _settings(recipe: Recipe, weights: Weights) -> dict[str, Any]:
    """The settings by the names that people read."""
    settings: dict[str, Any] = {
        "kind": recipe.kind,
        "quality": recipe.quality,
        "turns of the context": recipe.turns,
        "encoder": weights.encoder,
        "encoder digest": weights.encoder_digest,
        "tokens of a text": weights.tokens,
    }
    if recipe.kind == "adem":
        adem = recipe.adem
        settings |= {"strength": adem.strength, "response strength": adem.response_strength, "rank": adem.rank}
    return settings


def plain(value: Any) -> Any:
    """Numbers rounded to what a resample can tell, so that the last bits of a machine do not change the file."""
    if isinstance(value, Mapping):
        return {name: plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 4)
    return value
