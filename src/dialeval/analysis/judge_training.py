"""Training models of a judge with some rated rows left out, so that each row is judged by one that has not seen it.

Stage 1 trains on the dialogues, less those that share a long turn or two turns in a row with a rated context; then the
change of each matrix is cut to thin factors; stage 2 trains those on the ratings (see `training.cross_training`), once
on all rows and once for each fold: without a rated set and without any row that shares its last turn, and without each
system of the set whose annotators gave breakdown labels.

Whatever takes long is kept in a folder when it is done: the state of stage 1 every minute, and each model of stage 2
with what it says of the rows that it judges. The same call goes on from there, also on another machine: where all
models are kept, nothing is trained.
"""

from __future__ import annotations

import copy
import hashlib
import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.data.formats.opening import PathSource
from dialeval.data.rows.dialogues import read_dialogues, read_replies
from dialeval.data.rows.ratings import OVERALL, Ratings
from dialeval.metrics.learned.cross_weights import HEADS, encoder_weights
from dialeval.metrics.learned.pairs import PairTokeniser, dialogue_pairs, rated_pairs, together
from dialeval.metrics.learned.training.examples import context_numbers, on_scale
from dialeval.metrics.learned.weights import Mask
from dialeval.resources.encoder_files import EncoderFiles
from dialeval.resources.judge_settings import PairShape

if TYPE_CHECKING:
    from dialeval.metrics.learned.training.cross_model import CrossModel
    from dialeval.metrics.learned.training.cross_training import Log

_LONG_TURN = 8
"""Words from which on a turn, or two in a row, tell where a dialogue is from."""
_NO_WORD = re.compile(r"\W+")


@dataclass(frozen=True)
class JudgeRecipe:
    """The settings of the training; the defaults are those of the shipped judge."""

    steps: int = 7200
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


class RatedRows:
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

    @property
    def digest(self) -> str:
        """What is learned from the rows and said of them depends on."""
        ratings, texts = self.ratings, hashlib.sha256()
        for context, response in zip(ratings.contexts, ratings.responses, strict=True):
            texts.update(json.dumps([*context, response]).encode())
        for array in (self.sets, self.scores, self.contexts, self.counts):
            texts.update(np.ascontiguousarray(array).tobytes())
        return texts.hexdigest()


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
    """What was learned: what ships, and what the heads say of every row, by a model that has not learned from it."""

    changes: dict[str, Any]
    judged: Floats
    by_system: Floats
    """Of the systems that were left out one by one."""


def left_out_rows(rows: RatedRows, trained: Mask, breakdown: str | None, validate: bool) -> list[Fold]:
    """The model that ships, and one without each rated set and without each system of the set with breakdown labels."""
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
    """The training on a device."""

    def __init__(self, files: EncoderFiles, recipe: JudgeRecipe, device: str, log: Log, folder: Path) -> None:
        self.files, self.recipe, self.device, self.log, self.folder = files, recipe, device, log, folder
        self.shape = PairShape.within(files.most_tokens)
        self.tokeniser, self.base = PairTokeniser(files), encoder_weights(files)

    def learn(self, dialogues: Sequence[PathSource], rows: RatedRows, folds: Sequence[Fold]) -> Learned:
        """All models, as far as they are not kept yet."""
        start = None
        shape = len(rows.sets), sum(HEADS.values())
        found = Learned({}, np.full(shape, np.nan), np.full(shape, np.nan))
        data = rows.digest
        for fold in folds:
            kept = self._kept(fold, data)
            if kept is None:
                start = start or self._start(dialogues, rows)
                self.log(f"{fold.name}: {len(fold.known)} rated rows")
                kept = self._learned(*start, fold)
                place, facts = self._place(fold, data)
                write_bytes(place, _tensor_file(kept, facts))
            (found.by_system if fold.system else found.judged)[fold.test] = kept.pop("judged")
            found.changes = found.changes or kept  # the first is the model that ships
        found.judged[~rows.judged] = np.nan
        return found

    def _place(self, fold: Fold, data: str) -> tuple[Path, dict[str, str]]:
        """Where a model is kept, and what it was made from."""
        made_of = json.dumps({**asdict(self.recipe), "encoder": self.files.digest, "fold": fold.name}, sort_keys=True)
        rows = hashlib.sha256(data.encode())
        for numbers in (fold.known, fold.test):
            rows.update(np.ascontiguousarray(numbers).tobytes())
        name = hashlib.sha256(fold.name.encode()).hexdigest()[:12]
        return self.folder / f"ratings-{name}.safetensors", {"settings": made_of, "rows": rows.hexdigest()}

    def _kept(self, fold: Fold, data: str) -> dict[str, Any] | None:
        from safetensors import safe_open

        place, facts = self._place(fold, data)
        if not place.is_file():
            return None
        with safe_open(place, "np") as saved:
            if saved.metadata() != facts:
                raise SettingError(f"{place} was saved by a run with other settings or data; give another folder")
            return {name: saved.get_tensor(name) for name in saved.keys()}  # noqa: SIM118

    def _start(self, dialogues: Sequence[PathSource], rows: RatedRows) -> tuple[CrossModel, Any, Any]:
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
        train_stage1(Run(model, settings, self.folder, self.log, f"{self.files.digest} {corpus.digest}"), corpus)
        model.factorise(self.base, recipe.rank)
        pairs = rated_pairs(self.tokeniser, ratings.contexts, ratings.responses, self.shape.turns)
        shares = rows.counts / np.maximum(rows.counts.sum(axis=1, keepdims=True), 1)
        return model, corpus, Rated(self._corpus(pairs), rows.sets, rows.scores, shares)

    def _dialogues(self, paths: Sequence[PathSource], ratings: Ratings) -> Any:
        """The pairs of all corpora, less the dialogues that share something with a rated context."""
        by_name: dict[str, list[PathSource]] = {}
        for path in paths:
            by_name.setdefault(corpus_name(path), []).append(path)
        every, shared = [], SharedTurns(ratings)
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

    def _learned(self, start: CrossModel, corpus: Any, rated: Any, fold: Fold) -> dict[str, Any]:
        """Stage 2 on the rows of a fold: what ships of it, and what its heads say of the rows that it judges."""
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
        return {**changes, "judged": heads(shipped, rated.corpus, fold.test).astype(np.float32)}


def _tensor_file(tensors: Mapping[str, Any], facts: dict[str, str]) -> bytes:
    from safetensors.numpy import save

    # safetensors writes the memory of an array as it lies.
    return bytes(save({name: np.ascontiguousarray(array) for name, array in tensors.items()}, facts))


class SharedTurns:
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


def corpus_name(path: PathSource) -> str:
    """The name of a corpus: that of its file, or of its folder where files are called by their split."""
    path = Path(os.fspath(path))
    stem = path.name.partition(".")[0]
    return path.parent.name if stem in ("all", "train", "valid", "test") else stem
