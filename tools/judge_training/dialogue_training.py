"""Make a judge that reads context and response together: from dialogues and ratings to a folder.

Stage 1 trains on the dialogues, less those that share a long turn or two turns in a row with a rated context; stage 2
on the ratings (see `cross_training`), once on all rows and once for each fold: without a rated set and without
any row that shares its last turn, and without each system of the set whose annotators gave breakdown labels. From what
the models predict for rows that they have not learned from come the tables of the card, the scale of the scores, and
that of the breakdown labels.

Whatever takes long is kept in a folder when it is done: the state of stage 1 every minute, and each model of stage 2
with its predictions. The same call goes on from there, also on another machine: where all models are kept, nothing is
trained.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from tools.judge_training import cross_training
from tools.judge_training.breakdown_scale import fit_breakdown_scale, score_left_out_systems
from tools.judge_training.cross_training import Corpus, CrossModel, JudgeRecipe, Log, RatedRows
from tools.judge_training.pairs import (
    Pairs,
    continuations,
    dialogue_pairs,
    rated_pairs,
    read_dialogues,
    shape_within,
    together,
)
from tools.judge_training.validation import correlate

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.io.opening import PathSource
from dialeval.io.ratings import Ratings, digest_ratings, read_ratings
from dialeval.judges.adem import HIGHEST, LOWEST, Mask, Texts, compute_closest_cosines, open_vectors
from dialeval.judges.attacks import attack
from dialeval.judges.judge import (
    HEADS,
    BreakdownScale,
    DialogueJudge,
    JudgeWeights,
    PairTokenizer,
    Scale,
    compute_scores,
    softmax,
    split_heads,
)
from dialeval.judges.training import ATTACKED_ROWS, round_numbers, sample_rows
from dialeval.metrics.encoder_files import MINILM, EncoderFiles, find_encoder

_LONG_TURN = 8
"""Words from which on a turn, or two in a row, identify a dialogue."""
_NO_WORD = re.compile(r"\W+")

RANK_WEIGHT, CLOSEST_WEIGHT = 0.25, 0.5
"""What rank and closest reference count next to the rating, each in its own standard deviation."""


def make_dialogue_judge(
    dialogues: Sequence[PathSource],
    ratings: Sequence[PathSource],
    folder: str | os.PathLike[str],
    *,
    tests: Sequence[PathSource] = (),
    attacked: Sequence[PathSource] = (),
    breakdown: str | None = None,
    encoder: str | os.PathLike[str] = MINILM,
    device: str = "cpu",
    licenses: Mapping[str, str] | None = None,
    validate: bool = True,
    log: Log = lambda _: None,
    command: str = "",
    **settings: Any,
) -> JudgeWeights:
    """Train a judge.

    Args:
        dialogues: Files of plain dialogues.
        ratings: Files of rated rows to train on.
        folder: Where what is done is kept, in `training`, to go on from.
        tests: Files of rated rows to validate on only.
        attacked: Files of human dialogues whose replies are attacked in the end (see `attack`); by default those of
            the rated rows.
        breakdown: The rated set whose annotators said O, T or X, as 1, 0.5 and 0.
        encoder: The sentence encoder to start from.
        device: Where to train.
        licenses: The license of each corpus and rated set, for the card.
        validate: Whether to train models with rows left out.
        log: Called with a line on each step of the way.
        command: The command to report in the card.
        **settings: Those of `JudgeRecipe`.
    """
    recipe, files = JudgeRecipe(**settings), find_encoder(encoder)
    rated = read_ratings(ratings)
    every = read_ratings([*ratings, *tests]) if tests else rated
    trained = np.arange(len(every)) < len(rated)
    if breakdown is not None and breakdown not in rated.datasets:
        there = ", ".join(sorted({*rated.datasets}))
        raise SettingError(f"no rated set to train on is called {breakdown!r}; there are {there}")
    training = JudgeTraining(files, recipe, device, log, Path(folder) / "training")
    rows = RatedRows(every)
    learned = training.learn(dialogues, rows, left_out_rows(rows, trained, breakdown, validate))
    heads = split_heads(learned.judged)
    closest = compute_closest_cosines(open_vectors(encoder), every.responses, every.references)
    scale = fitted_scale(heads, closest, rows.scores, rows.sets, trained)
    facts: dict[str, Any] = {
        "data": [
            *({"name": name} for name in dict.fromkeys(map(corpus_name, dialogues))),
            *({"name": name, "rows": many} for name, many in Counter(rated.datasets).items()),
        ],
        "settings": asdict(recipe),
        "command": command,
        "trained_on": sorted(set(digest_ratings(rated))),
    }
    for each in facts["data"]:
        each["license"] = (licenses or {}).get(each["name"], "not stated")
    if validate:
        facts["validation"] = round_numbers(validated(heads, closest, rows, scale))
    labels = BreakdownScale()
    if breakdown is not None and validate:
        labels, facts["breakdowns"] = _breakdowns(rows, breakdown, learned.by_system)
    weights = JudgeWeights(learned.changes, scale, training.shape, files.name, files.digest, labels, facts)
    if attacked:
        texts = _replies(attacked)
    else:
        some = sample_rows(every)
        texts = some.contexts, some.responses, some.references
    found = attack(DialogueJudge(weights, encoder), *texts)
    return replace(weights, facts={**facts, "attacks": round_numbers([asdict(each) for each in found])})


def _replies(paths: Sequence[PathSource]) -> tuple[Texts, Sequence[str], Texts]:
    """Return turns of dialogues with their contexts, sampled by a fixed seed; there are no references."""
    turns = [(turns, at) for turns, _ in read_dialogues(paths) for at in range(1, len(turns)) if turns[at].strip()]
    chosen = np.sort(np.random.default_rng(0).permutation(len(turns))[:ATTACKED_ROWS]).tolist()
    contexts = [turns[number][0][: turns[number][1]] for number in chosen]
    return contexts, [turns[number][0][turns[number][1]] for number in chosen], [[] for _ in chosen]


def _breakdowns(rows: RatedRows, name: str, judged: Floats) -> tuple[BreakdownScale, dict[str, Any]]:
    """Return the scale of the labels, and their evaluation on systems left out."""
    own = (rows.sets == rows.names.index(name)) & rows.judged & (rows.counts.sum(axis=1) > 0)
    own &= ~np.isnan(judged[:, 0])
    given = np.array([str(rows.ratings.systems[row]) for row in np.flatnonzero(own).tolist()])
    names, systems = np.unique(given, return_inverse=True)
    said, counts = softmax(split_heads(judged[own])["breakdown"]), rows.counts[own]
    found = score_left_out_systems(said, counts, systems, names.tolist())
    return fit_breakdown_scale(said, counts, systems), {"set": name, "systems": round_numbers(found)}


def fitted_scale(heads: Mapping[str, Floats], closest: Floats, given: Floats, sets: Ints, trained: Any) -> Scale:
    """Fit the weights of the parts, each in its own standard deviation, and the curve onto the scale to the ratings.

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
    """Fit 1 / (1 + exp(-(alpha + beta x))) to fractions by Newton's method; a little ridge keeps it finite."""
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
    """Return the agreement with people by set, without references and with them; and the means over the sets."""
    rating, rank = heads["rating"][:, 0], heads["rank"][:, 0]
    alone, both = compute_scores(scale, rating, rank, None), compute_scores(scale, rating, rank, closest)
    table: dict[str, dict[str, Any]] = {}
    for number, name in enumerate(rows.names):
        own = (rows.sets == number) & rows.judged
        table[name] = {"judge": asdict(correlate(alone[own], rows.scores[own], rows.contexts[own])[0])}
        near = own & ~np.isnan(closest)
        if near.any():
            found = correlate(both[near], rows.scores[near], rows.contexts[near])[0]
            table[name]["judge with references"] = asdict(found)
    means = {
        column: float(np.nanmean([row.get(column, row["judge"])["spearman"] for row in table.values()]))
        for column in ("judge", "judge with references")
    }
    return {"sets": table, "mean": means}


@dataclass(frozen=True, eq=False)
class Fold:
    """A model to train on ratings: some rows to learn from, and the ones that it judges."""

    name: str
    known: Ints
    test: Ints
    system: bool = False
    """Whether a system is left out, and not a set."""


@dataclass(eq=False)
class Learned:
    """What ships, and the predictions of all heads for every row, by a model that has not learned from it."""

    changes: dict[str, Any]
    judged: Floats
    by_system: Floats
    """Of the systems that were left out one by one."""


def left_out_rows(rows: RatedRows, trained: Mask, breakdown: str | None, validate: bool) -> list[Fold]:
    """Return the model that ships, and one without each rated set and each system of the set with breakdown labels."""
    known: Ints = np.flatnonzero(trained & rows.judged)
    if not len(known):
        raise SettingError("no rated row has both a score and a context")
    folds = [Fold("all", known, np.arange(len(rows.sets)))]
    for number, name in enumerate(rows.names) if validate else ():
        test = rows.sets == number
        left: Ints = known[~test[known] & ~np.isin(rows.contexts[known], rows.contexts[test])]
        if len(left) < len(known) and len(left):
            folds.append(Fold(f"without {name}", left, np.flatnonzero(test)))
    if breakdown is not None and validate:
        systems = np.array([str(system) for system in rows.ratings.systems])
        own = rows.sets == rows.names.index(breakdown)
        for system in np.unique(systems[own]).tolist():
            test = own & (systems == system)
            left = known[~test[known]]
            folds.append(Fold(f"without {breakdown} of {system}", left, np.flatnonzero(test), system=True))
    return folds


class JudgeTraining:
    """The training of all models on a device; what is done is kept in a folder."""

    def __init__(self, files: EncoderFiles, recipe: JudgeRecipe, device: str, log: Log, folder: Path) -> None:
        self.files, self.recipe, self.device, self.log, self.folder = files, recipe, device, log, folder
        self.shape, self.tokenizer = shape_within(files.most_tokens), PairTokenizer(files)

    def learn(self, dialogues: Sequence[PathSource], rows: RatedRows, folds: Sequence[Fold]) -> Learned:
        """Train the models that are not kept yet, and collect their predictions."""
        start = None
        shape = len(rows.sets), sum(HEADS.values())
        found = Learned({}, np.full(shape, np.nan), np.full(shape, np.nan))
        data = rows.digest
        for fold in folds:
            file, made_of = self._place(fold, data)
            kept = cross_training.take_up(file, made_of)
            if kept is None:
                start = start or self._start(dialogues, rows)
                self.log(f"{fold.name}: {len(fold.known)} rated rows")
                kept = self._learn_fold(*start, rows, fold)
                cross_training.keep(file, kept, made_of)
            (found.by_system if fold.system else found.judged)[fold.test] = kept.pop("judged")
            found.changes = found.changes or kept  # the first is the model that ships
        found.judged[~rows.judged] = np.nan
        return found

    def _place(self, fold: Fold, data: str) -> tuple[Path, str]:
        """Return where a model is kept, and what it is made of."""
        rows = hashlib.sha256(data.encode())
        for numbers in (fold.known, fold.test):
            rows.update(np.ascontiguousarray(numbers).tobytes())
        name = hashlib.sha256(fold.name.encode()).hexdigest()[:12]
        return self.folder / f"ratings-{name}.safetensors", self._made_of(fold=fold.name, rows=rows.hexdigest())

    def _made_of(self, **data: str) -> str:
        return json.dumps({**asdict(self.recipe), "encoder": self.files.digest, **data}, sort_keys=True)

    def _start(self, dialogues: Sequence[PathSource], rows: RatedRows) -> tuple[CrossModel, Corpus, Corpus]:
        """Return the model of stage 1, factorized; the pairs of the dialogues, and the rated ones."""
        recipe, ratings = self.recipe, rows.ratings
        model = CrossModel(self.files, recipe.seed).to(self.device)
        corpus = self._read_dialogues(dialogues, ratings)
        state, made_of = self.folder / "run.safetensors", self._made_of(dialogues=corpus.digest)
        cross_training.train_on_dialogues(model, corpus, recipe, self.log, state, made_of)
        model.factorize(recipe.rank)
        pairs = rated_pairs(self.tokenizer, ratings.contexts, ratings.responses, self.shape.turns)
        return model, corpus, self._corpus(pairs)

    def _read_dialogues(self, paths: Sequence[PathSource], ratings: Ratings) -> Corpus:
        """Read the pairs of all corpora, less the dialogues that share something with a rated context."""
        by_name: dict[str, list[PathSource]] = {}
        for path in paths:
            by_name.setdefault(corpus_name(path), []).append(path)
        every, shared = [], SharedTurns(ratings)
        for name, files in by_name.items():
            read = read_dialogues(files)
            kept = [dialogue for dialogue in read if not shared.are_in(dialogue.turns)]
            self.log(f"{name}: {len(kept)} of {len(read)} dialogues share nothing with a rated context")
            turns, replies = [dialogue.turns for dialogue in kept], [dialogue.replies for dialogue in kept]
            every.append(dialogue_pairs(self.tokenizer, turns, replies, self.shape.turns))
        sizes = [len(pairs) for pairs in every]
        if sum(sizes) < 2:
            raise SettingError("there are fewer than two pairs of context and reply to learn from")
        return self._corpus(together(every), sizes)

    def _corpus(self, pairs: Pairs, sizes: Sequence[int] | None = None) -> Corpus:
        marks = self.tokenizer.first, self.tokenizer.end
        return Corpus(pairs, self.shape, marks, continuations(self.files), self.device, sizes)

    def _learn_fold(
        self, start: CrossModel, corpus: Corpus, rated: Corpus, rows: RatedRows, fold: Fold
    ) -> dict[str, Any]:
        """Train on the rows of a fold; return what ships of it, and its predictions for the rows to judge."""
        model = copy.deepcopy(start)
        cross_training.train_on_ratings(model, corpus, rated, rows, fold.known, self.recipe, self.log)
        changes = model.changes()
        shipped = CrossModel(self.files).to(self.device)
        shipped.load(changes)
        return {**changes, "judged": cross_training.predict_heads(shipped, rated, fold.test).astype(np.float32)}


class SharedTurns:
    """The turns of rated contexts by which a dialogue is known: of eight words or more, or two in a row of that length.

    Texts are compared without spaces and punctuation, and only those of rated contexts are counted: the same text has
    more words where punctuation is detached.
    """

    def __init__(self, ratings: Ratings) -> None:
        self.single: set[str] = set()
        self.double: set[tuple[str, str]] = set()
        for context in ratings.contexts:
            bare, words = list(map(_bare, context)), [len(turn.split()) for turn in context]
            self.single |= {text for text, many in zip(bare, words, strict=True) if many >= _LONG_TURN}
            pairs = zip(pairwise(bare), pairwise(words), strict=True)
            self.double |= {pair for pair, many in pairs if sum(many) >= _LONG_TURN}

    def are_in(self, dialogue: Sequence[str]) -> bool:
        """Return whether a dialogue has such a turn."""
        bare = list(map(_bare, dialogue))
        return not (self.single.isdisjoint(bare) and self.double.isdisjoint(pairwise(bare)))


def _bare(turn: str) -> str:
    return _NO_WORD.sub("", turn.lower())


def corpus_name(path: PathSource) -> str:
    """Return the name of a corpus: that of its file, or of its folder where files are called by their split."""
    path = Path(os.fspath(path))
    stem = path.name.partition(".")[0]
    return path.parent.name if stem in ("all", "train", "valid", "test") else stem
