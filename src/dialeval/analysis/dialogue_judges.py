"""Making a judge that reads context and response together: from dialogues and ratings to a folder with its card.

Models are trained with each rated set left out in turn (`judge_training`). From what they say of rows that they have
not learned from come the tables of the card, the scale of the scores, and that of the breakdown labels.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.breakdown_detection import fitted, left_out
from dialeval.analysis.judge_training import JudgeRecipe, JudgeTraining, RatedRows, corpus_name, left_out_rows
from dialeval.analysis.judge_validation import agreed
from dialeval.analysis.judges import ATTACKED_ROWS, plain, some_rows
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.dialogues import read_dialogues
from dialeval.data.rows.ratings import Ratings, read_ratings, row_digests
from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.dialogue_judge import DialogueJudge, JudgeWeights, scores, softmax, split_heads
from dialeval.metrics.learned.judge import closest_cosines, open_vectors
from dialeval.metrics.learned.weights import HIGHEST, LOWEST
from dialeval.resources.encoder_files import MINILM, find_encoder
from dialeval.resources.judge_settings import BreakdownScale, Scale

if TYPE_CHECKING:
    from dialeval.metrics.learned.training.cross_training import Log

RANK_WEIGHT, CLOSEST_WEIGHT = 0.25, 0.5
"""What rank and closest reference count beside the rating, each in its own spread."""


def make_dialogue_judge(
    dialogues: Sequence[PathSource],
    ratings: Sequence[PathSource],
    output: str | os.PathLike[str],
    *,
    tests: Sequence[PathSource] = (),
    attacked: Sequence[PathSource] = (),
    breakdown: str | None = None,
    encoder: str | os.PathLike[str] = MINILM,
    device: str = "cpu",
    licences: Mapping[str, str] | None = None,
    validate: bool = True,
    log: Log = lambda _: None,
    command: str = "",
    **settings: Any,
) -> JudgeWeights:
    """Train a judge and write it into a folder; what is saved on the way lies in `training` there.

    `tests` are rated sets to validate on only. `attacked` are dialogues of people, whose replies are attacked in the
    end (see `attack`), or else those of the rated rows. `breakdown` names the rated set whose annotators said O, T or
    X, as 1, 0.5 and 0. `settings` are those of `JudgeRecipe`.
    """
    recipe, folder, files = JudgeRecipe(**settings), Path(output), find_encoder(encoder)
    rated = read_ratings(ratings)
    every = read_ratings([*ratings, *tests]) if tests else rated
    trained = np.arange(len(every)) < len(rated)
    if breakdown is not None and breakdown not in rated.datasets:
        there = ", ".join(sorted({*rated.datasets}))
        raise SettingError(f"no rated set to train on is called {breakdown!r}; there are {there}")
    training = JudgeTraining(files, recipe, device, log, folder / "training")
    rows = RatedRows(every)
    learned = training.learn(dialogues, rows, left_out_rows(rows, trained, breakdown, validate))
    judged = learned.judged
    vectors = open_vectors(encoder)
    closest = closest_cosines(vectors, every.responses, every.references)
    scale = fitted_scale(split_heads(judged), closest, rows.scores, rows.sets, trained)
    facts: dict[str, Any] = {
        "data": [
            *({"name": name} for name in dict.fromkeys(map(corpus_name, dialogues))),
            *({"name": name, "rows": many} for name, many in Counter(rated.datasets).items()),
        ],
        "settings": asdict(recipe),
        "command": command,
        "trained_on": sorted(set(row_digests(rated))),
    }
    for each in facts["data"]:
        each["licence"] = (licences or {}).get(each["name"], "not stated")
    if validate:
        facts["validation"] = plain(validated(split_heads(judged), closest, rows, scale))
    labels = BreakdownScale()
    if breakdown is not None and validate:
        labels, facts["breakdowns"] = _breakdowns(rows, breakdown, learned.by_system)
    weights = JudgeWeights(learned.changes, scale, training.shape, files.name, files.digest, labels, facts)
    weights.save(folder)
    judge = DialogueJudge(folder, encoder)
    found = attack(judge, *(_replies(attacked) if attacked else _texts(some_rows(every))))
    facts["attacks"] = plain([asdict(each) for each in found])
    weights.save(folder)
    return weights


def _texts(ratings: Ratings) -> tuple[Any, Sequence[str], Any]:
    return ratings.contexts, ratings.responses, ratings.references


def _replies(paths: Sequence[PathSource]) -> tuple[list[list[str]], list[str], list[list[str]]]:
    """Turns of dialogues with what stands before them, drawn by a fixed seed; there are no references."""
    turns = [(turns, at) for turns in read_dialogues(paths) for at in range(1, len(turns)) if turns[at].strip()]
    chosen = np.sort(np.random.default_rng(0).permutation(len(turns))[:ATTACKED_ROWS]).tolist()
    contexts = [turns[number][0][: turns[number][1]] for number in chosen]
    return contexts, [turns[number][0][turns[number][1]] for number in chosen], [[] for _ in chosen]


def _breakdowns(rows: RatedRows, name: str, judged: Floats) -> tuple[BreakdownScale, dict[str, Any]]:
    """The scale of the labels, and what they are worth on systems left out."""
    own = (rows.sets == rows.names.index(name)) & rows.judged & (rows.counts.sum(axis=1) > 0)
    own &= ~np.isnan(judged[:, 0])
    given = np.array([str(rows.ratings.systems[row]) for row in np.flatnonzero(own).tolist()])
    names, systems = np.unique(given, return_inverse=True)
    said, counts = softmax(split_heads(judged[own])["breakdown"]), rows.counts[own]
    found = left_out(said, counts, systems, names.tolist())
    return fitted(said, counts, systems), {"set": name, "systems": plain(found)}


def fitted_scale(heads: Mapping[str, Floats], closest: Floats, given: Floats, sets: Ints, trained: Any) -> Scale:
    """The weights of the parts, each in its own spread, and the curve onto the scale, by what people said.

    Only sets that may be trained on count, each as much as the others. With references the scores of these rows keep
    mean and spread, so that rows with and without can stand side by side.
    """
    rating, rank = heads["rating"][:, 0], heads["rank"][:, 0]
    spread = float(np.nanstd(rating))
    weight = RANK_WEIGHT * spread / max(float(np.nanstd(rank)), 1e-9)
    raw = rating + weight * rank
    rows = trained & ~np.isnan(raw) & ~np.isnan(given)
    shares = 1.0 / np.bincount(sets[rows])[sets[rows]]
    alpha, beta = _logistic(raw[rows], (given[rows] - LOWEST) / (HIGHEST - LOWEST), shares)
    near = CLOSEST_WEIGHT * spread / max(float(np.nanstd(closest)), 1e-9) if (~np.isnan(closest)).any() else 0.0
    both = raw + near * closest
    known = rows & ~np.isnan(both)
    if known.sum() < 2:
        return Scale(weight, near, alpha, beta, alpha, beta)
    slope = beta * float(raw[known].std() / max(both[known].std(), 1e-9))
    level = alpha + beta * float(raw[known].mean()) - slope * float(both[known].mean())
    return Scale(*(round(float(number), 4) for number in (weight, near, alpha, beta, level, slope)))


def _logistic(values: Floats, shares: Floats, weights: Floats) -> tuple[float, float]:
    """The curve 1 / (1 + exp(-(alpha + beta x))) through shares, by Newton's method; a little ridge keeps it finite."""
    table = np.stack((np.ones_like(values), values), axis=1)
    found = np.zeros(2)
    ridge = np.diag([0.0, 1e-3 * float(weights.sum())])
    for _ in range(30):
        curve = 1 / (1 + np.exp(-table @ found))
        slope = table.T @ (weights * (shares - curve)) - ridge @ found
        bend = (table * (weights * curve * (1 - curve))[:, None]).T @ table + ridge + 1e-9 * np.eye(2)
        found = found + np.linalg.solve(bend, slope)
    return float(found[0]), float(found[1])


def validated(heads: Mapping[str, Floats], closest: Floats, rows: RatedRows, scale: Scale) -> dict[str, Any]:
    """By set: agreement with people, without references and with them; and the means over the sets."""
    rating, rank = heads["rating"][:, 0], heads["rank"][:, 0]
    alone, both = scores(scale, rating, rank, None), scores(scale, rating, rank, closest)
    table: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(rows.names):
        own = (rows.sets == number) & rows.judged
        table[name] = {"judge": asdict(agreed(alone[own], rows.scores[own], rows.contexts[own])[0])}
        near = own & ~np.isnan(closest)
        if near.any():
            found = agreed(both[near], rows.scores[near], rows.contexts[near])[0]
            table[name]["judge with references"] = asdict(found)
    means = {
        column: float(np.nanmean([row.get(column, row["judge"])["spearman"] for row in table.values()]))
        for column in ("judge", "judge with references")
    }
    return {"sets": table, "mean": means}
