"""Making a judge that reads context and response together: from dialogues and ratings to a folder with its card.

Stage 1 trains on the dialogues, less those that share a long turn or two turns in a row with a rated context; then the
change of each matrix is cut to thin factors; stage 2 trains those on the ratings (see `training.cross_training`). Each
rated set is judged by a model that was trained without it, and without any row that shares its last turn; so are the
sets that were given for validation only. From these judgements come the table of the card and the scale of the scores.
"""

from __future__ import annotations

import copy
import os
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.judge_validation import agreed
from dialeval.analysis.judges import plain, some_rows
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.dialogues import read_dialogues, read_replies
from dialeval.data.rows.ratings import OVERALL, Ratings, read_ratings
from dialeval.metrics.learned.attack import attack
from dialeval.metrics.learned.cross_weights import encoder_weights
from dialeval.metrics.learned.dialogue_judge import DialogueJudge, JudgeWeights, Scale, scores, split_heads
from dialeval.metrics.learned.judge import closest_cosines, open_vectors
from dialeval.metrics.learned.pairs import PairShape, PairTokeniser, dialogue_pairs, rated_pairs
from dialeval.metrics.learned.training.examples import context_numbers, on_scale
from dialeval.metrics.learned.weights import HIGHEST, LOWEST
from dialeval.resources.encoder_files import MINILM, EncoderFiles, find_encoder

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

    steps: int = 4400
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
    encoder: str | os.PathLike[str] = MINILM,
    device: str = "cpu",
    licences: Mapping[str, str] | None = None,
    validate: bool = True,
    log: Log = lambda _: None,
    command: str = "",
    **settings: Any,
) -> JudgeWeights:
    """Train a judge and write it into a folder; what is saved on the way lies in `training` there.

    `tests` are rated sets to validate on only. `settings` are those of `JudgeRecipe`.
    """
    recipe, folder, files = JudgeRecipe(**settings), Path(output), find_encoder(encoder)
    shape = PairShape.within(files.most_tokens)
    rated = read_ratings(ratings)
    every = read_ratings([*ratings, *tests]) if tests else rated
    trained = np.arange(len(every)) < len(rated)
    turns, replies = read_dialogues(dialogues), read_replies(dialogues)
    kept = np.flatnonzero(~shared_dialogues(turns, every)).tolist()
    log(f"{len(kept)} of {len(turns)} dialogues share nothing with a rated context")
    maker = _Maker(files, recipe, shape, device, log, folder / "training")
    maker.learn_dialogues([turns[number] for number in kept], [replies[number] for number in kept])
    rows = _Rows(every)
    judged, final = maker.learn_ratings(rows, trained, validate)
    vectors = open_vectors(encoder)
    closest = closest_cosines(vectors, every.responses, every.references)
    scale = fitted_scale(judged, closest, rows.scores, rows.sets, trained)
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
        facts["validation"] = plain(validated(judged, closest, rows, scale))
    weights = JudgeWeights(final, scale, shape, files.name, files.digest, facts)
    weights.save(folder)
    tried = some_rows(every)
    judge = DialogueJudge(folder, encoder)
    found = attack(judge, tried.contexts, tried.responses, tried.references)
    facts["attacks"] = plain([asdict(each) for each in found])
    weights.save(folder)
    return weights


def shared_dialogues(dialogues: Sequence[Sequence[str]], ratings: Ratings) -> Any:
    """Which dialogues share with a rated context a turn of eight words or more, or two in a row of that length."""
    single: set[str] = set()
    double: set[tuple[str, str]] = set()
    for context in ratings.contexts:
        one, two = _long_turns(context)
        single |= one
        double |= two

    def shares(dialogue: Sequence[str]) -> bool:
        one, two = _long_turns(dialogue)
        return bool(one & single or two & double)

    return np.array([shares(dialogue) for dialogue in dialogues], np.bool_)


def _long_turns(turns: Sequence[str]) -> tuple[set[str], set[tuple[str, str]]]:
    bare, words = [_NO_WORD.sub("", turn.lower()) for turn in turns], [len(turn.split()) for turn in turns]
    one = {text for text, many in zip(bare, words, strict=True) if many >= _LONG_TURN}
    pairs = zip(bare[:-1], bare[1:], words[:-1], words[1:], strict=True)
    return one, {(first, last) for first, last, before, many in pairs if before + many >= _LONG_TURN}


class _Rows:
    """Rated rows as arrays: scores from 1 to 5, sets, contexts, and annotators' shares of good, middling and bad."""

    def __init__(self, ratings: Ratings) -> None:
        self.ratings = ratings
        self.names = list(dict.fromkeys(ratings.datasets))
        self.sets: Ints = np.array([self.names.index(name) for name in ratings.datasets], np.int64)
        self.scores = on_scale(ratings, OVERALL, self.sets, len(self.names))
        self.contexts = context_numbers(ratings)
        self.shares: Floats = np.zeros((len(ratings), 3))
        for row, (values, (low, high)) in enumerate(zip(ratings.annotations[OVERALL], ratings.scales, strict=True)):
            if len(values) and high > low:
                third = (values - low) / (high - low) * 3
                self.shares[row] = (third > 2).mean(), ((third >= 1) & (third <= 2)).mean(), (third < 1).mean()
        self.judged = np.array([any(turn.strip() for turn in context) for context in ratings.contexts], np.bool_)
        self.judged &= ~np.isnan(self.scores)


class _Maker:
    """The training on a device."""

    def __init__(
        self, files: EncoderFiles, recipe: JudgeRecipe, shape: PairShape, device: str, log: Log, folder: Path
    ) -> None:
        try:
            from dialeval.metrics.learned.training.cross_model import CrossModel
        except ModuleNotFoundError:
            raise SettingError("PyTorch is not installed; run: pip install 'dialeval[learned]'") from None
        self.recipe, self.shape, self.device, self.log, self.folder = recipe, shape, device, log, folder
        self.tokeniser, self.base = PairTokeniser(files), encoder_weights(files)
        heads, epsilon = files.config.num_attention_heads, files.config.layer_norm_eps
        self.model: CrossModel = CrossModel(self.base, heads, epsilon, recipe.seed).to(device)

    def _corpus(self, pairs: Any) -> Any:
        from dialeval.metrics.learned.training.candidates import Corpus

        marks = self.tokeniser.first, self.tokeniser.end
        return Corpus(pairs, self.shape, marks, self.tokeniser.continuations(), self.device)

    def learn_dialogues(self, turns: Sequence[Sequence[str]], replies: Sequence[Sequence[str]]) -> None:
        """Stage 1, and the cut to factors."""
        from dialeval.metrics.learned.training.cross_training import Run, Stage1, train_stage1

        pairs = dialogue_pairs(self.tokeniser, turns, replies, self.shape.turns)
        if len(pairs) < 2:
            raise SettingError("there are fewer than two pairs of context and reply to learn from")
        self.corpus = self._corpus(pairs)
        recipe = self.recipe
        settings = Stage1(recipe.steps, recipe.batch_size, recipe.learning_rate, seed=recipe.seed)
        train_stage1(Run(self.model, settings, self.folder, self.log), self.corpus)
        self.model.factorise(self.base, recipe.rank)

    def learn_ratings(self, rows: _Rows, trained: Any, validate: bool) -> tuple[dict[str, Floats], dict[str, Any]]:
        """Stage 2 on all sets, and without each one: what the heads say of every row, and what ships."""
        from dialeval.metrics.learned.training.cross_training import Rated

        ratings = rows.ratings
        pairs = rated_pairs(self.tokeniser, ratings.contexts, ratings.responses, self.shape.turns)
        rated = Rated(self._corpus(pairs), rows.sets, rows.scores, rows.shares)
        known: Ints = np.flatnonzero(trained & rows.judged)
        if not len(known):
            raise SettingError("no rated row has both a score and a context")
        judged, final = self._judged(rated, known)
        for number, name in enumerate(rows.names) if validate else ():
            test = rows.sets == number
            left: Ints = known[~test[known] & ~np.isin(rows.contexts[known], rows.contexts[test])]
            if len(left) < len(known) and len(left):
                self.log(f"without {name}: {len(left)} rated rows")
                judged[test] = self._judged(rated, left)[0][test]
        judged[~rows.judged] = np.nan
        return split_heads(judged), final

    def _judged(self, rated: Any, rows: Ints) -> tuple[Floats, dict[str, Any]]:
        from dialeval.metrics.learned.training.cross_model import CrossModel
        from dialeval.metrics.learned.training.cross_training import Run, Stage2, heads, train_stage2

        model, recipe = copy.deepcopy(self.model), self.recipe
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
        train_stage2(Run(model, settings, None, self.log), self.corpus, rated, rows)
        changes = model.changes(self.base, recipe.rank)
        shipped = CrossModel(self.base, model.attention_heads, model.epsilon).to(self.device)
        shipped.load(self.base, changes)
        return heads(shipped, rated.corpus, np.arange(rated.corpus.many)), changes


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
