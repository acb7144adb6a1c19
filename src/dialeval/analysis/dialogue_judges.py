"""Making a judge that reads context and response together: from dialogues and ratings to a folder with its card.

Stage 1 trains on the dialogues, less those that share a long turn or two turns in a row with a rated context; then the
change of each matrix is cut to thin factors; stage 2 trains those on the ratings (see `training.cross_training`). Each
rated set is judged by a model that was trained without it, and without any row that shares its last turn; so are the
sets that were given for validation only, and the systems of the set whose annotators gave breakdown labels. From these
judgements come the tables of the card, the scale of the scores and that of the labels.

Whatever takes long is kept in the folder `training` when it is done: the state of stage 1 every minute, and each model
of stage 2. The same command goes on from there, also on another machine: where all models are kept, nothing is trained.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.breakdown_labels import fitted, left_out
from dialeval.analysis.judge_validation import agreed
from dialeval.analysis.judges import ATTACKED_ROWS, plain, some_rows
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.dialogues import read_dialogues, read_replies
from dialeval.data.rows.ratings import OVERALL, Ratings, read_ratings
from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.cross_weights import encoder_weights
from dialeval.metrics.learned.dialogue_judge import DialogueJudge, JudgeWeights, scores, softmax, split_heads
from dialeval.metrics.learned.judge import closest_cosines, open_vectors
from dialeval.metrics.learned.pairs import PairTokeniser, dialogue_pairs, rated_pairs, together
from dialeval.metrics.learned.training.examples import context_numbers, on_scale
from dialeval.metrics.learned.weights import HIGHEST, LOWEST
from dialeval.resources.encoder_files import MINILM, EncoderFiles, find_encoder
from dialeval.resources.judge_settings import BreakdownScale, PairShape, Scale

if TYPE_CHECKING:
    from dialeval.metrics.learned.training.cross_model import CrossModel
    from dialeval.metrics.learned.training.cross_training import Log

RANK_WEIGHT, CLOSEST_WEIGHT = 0.25, 0.5
"""What rank and closest reference count beside the rating, each in its own spread."""

_LONG_TURN = 8
"""Words from which on a turn, or two in a row, tell where a dialogue is from."""
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True)
class JudgeRecipe:
    """The settings of the training; the defaults are those of the shipped judge."""

    steps: int = 4800
    batch_size: int = 512
    learning_rate: float = 2e-4
    rating_steps: int = 310
    rating_rate: float = 1.5e-4
    rating_rows: int = 128
    beside: int = 192
    """Pairs of dialogues beside the rated rows of a step."""
    rank: int = 64
    """Columns of the factors that ship."""
    seed: int = 0


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
    maker = _Maker(files, recipe, device, log, folder / "training")
    rows = _Rows(every)
    folds = maker.learn(dialogues, rows, _left_out(rows, trained, breakdown, validate))
    judged = folds.judged
    vectors = open_vectors(encoder)
    closest = closest_cosines(vectors, every.responses, every.references)
    scale = fitted_scale(split_heads(judged), closest, rows.scores, rows.sets, trained)
    facts: dict[str, Any] = {
        "data": [
            *({"name": name} for name in dict.fromkeys(map(_stem, dialogues))),
            *({"name": name, "rows": many} for name, many in Counter(rated.datasets).items()),
        ],
        "settings": asdict(recipe),
        "command": command,
    }
    for each in facts["data"]:
        each["licence"] = (licences or {}).get(each["name"], "not stated")
    if validate:
        facts["validation"] = plain(validated(split_heads(judged), closest, rows, scale))
    labels = BreakdownScale()
    if breakdown is not None and validate:
        labels, facts["breakdowns"] = _breakdowns(rows, breakdown, folds.by_system)
    weights = JudgeWeights(folds.changes, scale, maker.shape, files.name, files.digest, labels, facts)
    weights.save(folder)
    judge = DialogueJudge(folder, encoder)
    found = attack(judge, *(_replies(attacked) if attacked else _texts(some_rows(every))))
    facts["attacks"] = plain([asdict(each) for each in found])
    weights.save(folder)
    return weights


class _SharedTurns:
    """The turns of rated contexts by which a dialogue is known: of eight words or more, or two in a row of that length.

    Texts are compared without blanks and punctuation, and only those of rated contexts are counted: the same text has
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
        """Whether a dialogue has such a turn."""
        bare = list(map(_bare, dialogue))
        return not (self.single.isdisjoint(bare) and self.double.isdisjoint(pairwise(bare)))


def _bare(turn: str) -> str:
    return _NO_WORD.sub("", turn.lower())


class _Rows:
    """Rated rows as arrays: scores from 1 to 5, sets, contexts, and how many annotators said good, middling and bad."""

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings
        self.names = list(dict.fromkeys(ratings.datasets))
        self.sets: Ints = np.array([self.names.index(name) for name in ratings.datasets], np.int64)
        self.scores = on_scale(ratings, OVERALL, self.sets, len(self.names))
        self.contexts = context_numbers(ratings)
        self.counts: Floats = np.zeros((len(ratings), 3))
        for row, (values, (low, high)) in enumerate(zip(ratings.annotations[OVERALL], ratings.scales, strict=True)):
            if len(values) and high > low:
                third = (values - low) / (high - low) * 3
                self.counts[row] = (third > 2).sum(), ((third >= 1) & (third <= 2)).sum(), (third < 1).sum()
        self.judged = np.array([any(turn.strip() for turn in context) for context in ratings.contexts], np.bool_)
        self.judged &= ~np.isnan(self.scores)


def _texts(ratings: Ratings) -> tuple[Any, Sequence[str], Any]:
    return ratings.contexts, ratings.responses, ratings.references


def _replies(paths: Sequence[PathSource]) -> tuple[list[list[str]], list[str], list[list[str]]]:
    """Turns of dialogues with what stands before them, drawn by a fixed seed; there are no references."""
    turns = [(turns, at) for turns in read_dialogues(paths) for at in range(1, len(turns)) if turns[at].strip()]
    chosen = np.sort(np.random.default_rng(0).permutation(len(turns))[:ATTACKED_ROWS]).tolist()
    contexts = [turns[number][0][: turns[number][1]] for number in chosen]
    return contexts, [turns[number][0][turns[number][1]] for number in chosen], [[] for _ in chosen]


@dataclass(frozen=True, eq=False)
class _Fold:
    """A model to train on ratings: some rows to learn from, and the ones that it judges."""

    name: str
    known: Ints
    test: Any
    system: bool = False
    """Whether a system is left out, and not a set."""


@dataclass(eq=False)
class _Folds:
    """What was learned: what ships, and what the heads say of every row, by a model that has not learned from it."""

    changes: dict[str, Any]
    judged: Floats
    by_system: Floats
    """Of the systems that were left out one by one."""


def _left_out(rows: _Rows, trained: Any, breakdown: str | None, validate: bool) -> list[_Fold]:
    """The model that ships, and one without each rated set and without each system of the set with breakdown labels."""
    known: Ints = np.flatnonzero(trained & rows.judged)
    if not len(known):
        raise SettingError("no rated row has both a score and a context")
    folds = [_Fold("all", known, np.ones(len(rows.sets), np.bool_))]
    for number, name in enumerate(rows.names) if validate else ():
        test = rows.sets == number
        left: Ints = known[~test[known] & ~np.isin(rows.contexts[known], rows.contexts[test])]
        if len(left) < len(known) and len(left):
            folds.append(_Fold(f"without {name}", left, test))
    if breakdown is not None and validate:
        systems = np.array([str(system) for system in rows.ratings.systems])
        own = rows.sets == rows.names.index(breakdown)
        for system in np.unique(systems[own]).tolist():
            test = own & (systems == system)
            folds.append(_Fold(f"without {breakdown} of {system}", known[~test[known]], test, system=True))
    return folds


class _Maker:
    """The training on a device."""

    def __init__(self, files: EncoderFiles, recipe: JudgeRecipe, device: str, log: Log, folder: Path) -> None:
        self.files, self.recipe, self.device, self.log, self.folder = files, recipe, device, log, folder
        self.shape = PairShape.within(files.most_tokens)
        self.tokeniser, self.base = PairTokeniser(files), encoder_weights(files)

    def learn(self, dialogues: Sequence[PathSource], rows: _Rows, folds: Sequence[_Fold]) -> _Folds:
        """All models, as far as they are not kept yet."""
        start = None
        found: _Folds | None = None
        for fold in folds:
            kept = self._kept(fold)
            if kept is None:
                start = start or self._start(dialogues, rows)
                self.log(f"{fold.name}: {len(fold.known)} rated rows")
                kept = self._learned(*start, fold)
            judged = kept.pop("judged").astype(np.float64)
            if found is None:
                found = _Folds(kept, judged, np.full_like(judged, np.nan))
            (found.by_system if fold.system else found.judged)[fold.test] = judged[fold.test]
        if found is None:
            raise AssertionError("there is always a model that ships")
        found.judged[~rows.judged] = np.nan
        return found

    def _place(self, fold: _Fold) -> tuple[Path, dict[str, str]]:
        """Where a model is kept, and what it was made from."""
        made_of = json.dumps({**asdict(self.recipe), "encoder": self.files.digest, "fold": fold.name}, sort_keys=True)
        rows = hashlib.sha256(np.ascontiguousarray(fold.known).tobytes()).hexdigest()
        name = hashlib.sha256(fold.name.encode()).hexdigest()[:12]
        return self.folder / f"ratings-{name}.safetensors", {"settings": made_of, "rows": rows}

    def _kept(self, fold: _Fold) -> dict[str, Any] | None:
        from safetensors import safe_open

        place, facts = self._place(fold)
        if not place.is_file():
            return None
        with safe_open(place, "np") as saved:
            if saved.metadata() != facts:
                raise SettingError(f"{place} was saved by a run with other settings or data; give another folder")
            return {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118

    def _start(self, dialogues: Sequence[PathSource], rows: _Rows) -> tuple[CrossModel, Any, Any]:
        """The model of stage 1, cut to factors; the pairs of the dialogues, and the rated ones."""
        try:
            from dialeval.metrics.learned.training.cross_model import CrossModel
        except ModuleNotFoundError:
            raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
        from dialeval.metrics.learned.training.cross_training import Rated, Run, Stage1, train_stage1

        recipe, ratings = self.recipe, rows.ratings
        config = self.files.config
        model = CrossModel(self.base, config.num_attention_heads, config.layer_norm_eps, recipe.seed).to(self.device)
        corpus = self._dialogues(dialogues, ratings)
        settings = Stage1(recipe.steps, recipe.batch_size, recipe.learning_rate, seed=recipe.seed)
        train_stage1(Run(model, settings, self.folder, self.log), corpus)
        model.factorise(self.base, recipe.rank)
        pairs = rated_pairs(self.tokeniser, ratings.contexts, ratings.responses, self.shape.turns)
        shares = rows.counts / np.maximum(rows.counts.sum(axis=1, keepdims=True), 1)
        return model, corpus, Rated(self._corpus(pairs), rows.sets, rows.scores, shares)

    def _dialogues(self, paths: Sequence[PathSource], ratings: Ratings) -> Any:
        """The pairs of all corpora, less the dialogues that share something with a rated context."""
        by_name: dict[str, list[PathSource]] = {}
        for path in paths:
            by_name.setdefault(_stem(path), []).append(path)
        every, shared = [], _SharedTurns(ratings)
        for name, files in by_name.items():
            turns, replies = read_dialogues(files), read_replies(files)
            kept = [number for number, dialogue in enumerate(turns) if not shared.are_in(dialogue)]
            self.log(f"{name}: {len(kept)} of {len(turns)} dialogues share nothing with a rated context")
            chosen = [turns[number] for number in kept], [replies[number] for number in kept]
            every.append(dialogue_pairs(self.tokeniser, *chosen, self.shape.turns))
        sizes = [len(pairs) for pairs in every]
        if sum(sizes) < 2:
            raise SettingError("there are fewer than two pairs of context and reply to learn from")
        return self._corpus(together(every), sizes)

    def _corpus(self, pairs: Any, sizes: Sequence[int] | None = None) -> Any:
        from dialeval.metrics.learned.training.candidates import Corpus

        marks = self.tokeniser.first, self.tokeniser.end
        return Corpus(pairs, self.shape, marks, self.tokeniser.continuations(), self.device, sizes)

    def _learned(self, start: CrossModel, corpus: Any, rated: Any, fold: _Fold) -> dict[str, Any]:
        """Stage 2 on the rows of a fold: what ships, and what its heads say of every rated row; kept."""
        from safetensors.numpy import save

        from dialeval.metrics.learned.training.cross_model import CrossModel
        from dialeval.metrics.learned.training.cross_training import Run, Stage2, heads, train_stage2

        recipe, model = self.recipe, copy.deepcopy(start)
        settings = Stage2(
            recipe.rating_steps,
            min(recipe.beside, recipe.batch_size),
            recipe.rating_rate,
            seed=recipe.seed,
            rows=recipe.rating_rows,
            dialogues=1.0,
            order=0.3,
            breakdown=1.0,
        )
        train_stage2(Run(model, settings, None, self.log), corpus, rated, fold.known)
        changes = model.changes(self.base, recipe.rank)
        shipped = CrossModel(self.base, start.attention_heads, start.epsilon).to(self.device)
        shipped.load(self.base, changes)
        judged = heads(shipped, rated.corpus, np.arange(rated.corpus.many)).astype(np.float32)
        place, facts = self._place(fold)
        kept = {**changes, "judged": judged}
        write_bytes(place, save({name: np.ascontiguousarray(array) for name, array in kept.items()}, facts))
        return kept


def _breakdowns(rows: _Rows, name: str, judged: Floats) -> tuple[BreakdownScale, dict[str, Any]]:
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


def validated(heads: Mapping[str, Floats], closest: Floats, rows: _Rows, scale: Scale) -> dict[str, Any]:
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


def _stem(path: PathSource) -> str:
    """The name of a corpus: that of its file, or of its folder where files are called by their split."""
    path = Path(os.fspath(path))
    stem = path.name.partition(".")[0]
    return path.parent.name if stem in ("all", "train", "valid", "test") else stem
