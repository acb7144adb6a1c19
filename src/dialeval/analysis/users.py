"""Users compared: are the simulated users of one log like the real users of another?

    compare_users(real, simulated)

- **Two-sample test by a classifier**: a naive Bayes classifier of the words and pairs of words of a dialogue's user
  turns guesses which log a dialogue is from, fitted to the other folds (cross-fitting). Its accuracy is the mean of the
  accuracies in both logs: 0.5 means that it cannot tell them apart. The p-value is that of permuted dialogues, for
  which everything is fitted anew; the interval is Wilson's over dialogues.
- **Habits**: one value per dialogue (turns, words a turn, questions and so on), compared by Welch's interval and
  permuted dialogues, corrected together (Holm).
- **Typical words** of each side: log odds of dialogues with the word, over their standard error, shrunk toward both
  logs together (Monroe, Colaresi and Quinn 2008, "Fightin' Words", Political Analysis).
- **Ranking**: the means of the systems that both logs have, and Kendall's tau.

Paper of the test: Lopez-Paz and Oquab 2017, "Revisiting Classifier Two-Sample Tests", ICLR.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import chain, combinations
from typing import Any

import numpy as np
from rapidfuzz.distance import DamerauLevenshtein

from dialeval.analysis.difference import DEFAULT_ALPHA
from dialeval.analysis.discovery import NO_TEXTS, Features, SideValues, UserTurns, find_phrases, measure_group
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.values import find_better, require_table
from dialeval.core.arrays import Floats, Ints
from dialeval.core.display import Displayable, Tabular
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.core.version import __version__
from dialeval.metrics.conversation import SpokenTurn, UserRephrasing
from dialeval.stats.intervals import DEFAULT_LEVEL, two_sided_t, wilson
from dialeval.stats.resampling import DEFAULT_SEED
from dialeval.stats.significance import holm

LEAST_DIALOGUES, FOLDS, TRIALS = 20, 5, 499
MOST_TESTED, MOST_FEATURES = 1_000, 2_000
"""Dialogues of each log that the classifier sees, and words and pairs of words, the most frequent ones."""
MOST_WORDS = 12
_RARE, _FREQUENT = 2, 20
_WORD = re.compile(r"\w+(?:'\w+)?")
_QUESTION = re.compile("[?？]")
_POLITE = re.compile(r"(?i)\b(?:please|thanks?|thank you|thx|sorry|kindly|bitte|danke|merci|por favor|gracias)\b")
_CORRECTING = re.compile(r"(?i)^(?:no\b|nope|not that|actually|i meant|i said|that'?s not|wrong|sorry,? i meant)")
_CLOSING = re.compile(r"(?i)\b(?:bye|goodbye|thanks?|thank you|thx|that'?s all|that is all|cheers|see you)\b")


class Habit(Record, frozen=True, kw_only=True):
    """A habit of users: its mean over the dialogues of each log.

    Attributes:
        name: What is measured.
        real: The mean over real dialogues.
        simulated: The mean over simulated dialogues.
        interval: The confidence interval of simulated minus real.
        p: The p-value.
        adjusted_p: The p-value adjusted for all habits.
        advice: What to change in a simulator, where the difference is significant.

    Examples:
        >>> import dialeval
        >>> real = [{"context": [f"cud i hav nr {n} pls"], "response": "yes"} for n in range(40)]
        >>> simulated = [{"context": [f"Could I have number {n}?"], "response": "yes"} for n in range(40)]
        >>> runs = [dialeval.evaluate({"bot": rows}, metrics="length") for rows in (real, simulated)]
        >>> users = dialeval.compare_users(*runs)
        >>> users.habits[0].real != users.habits[0].simulated
        True
    """

    name: str
    real: float
    simulated: float
    interval: tuple[float, float]
    p: float
    adjusted_p: float
    advice: str | None = None


class UserComparison(Tabular, Displayable, Record, frozen=True, kw_only=True, rename={"version": "dialeval"}):
    """The result of `dialeval.compare_users`.

    Attributes:
        version: The version of dialeval.
        dialogues: Dialogues with user turns, real and simulated.
        tested: Those of them that the classifier saw.
        accuracy: The balanced accuracy of telling the logs apart; 0.5 is chance.
        interval: Its confidence interval.
        p: The p-value of the test that users are alike.
        habits: The habits, those that differ most surely first.
        real_words: Words and phrases that are typical of real users.
        simulated_words: Those typical of simulated users.
        ranking: By metric the systems of both logs: their means and Kendall's tau.
        alpha: The significance level.

    Examples:
        >>> import dialeval
        >>> real = [{"context": [f"cud i hav nr {n} pls"], "response": "yes"} for n in range(40)]
        >>> simulated = [{"context": [f"Could I have number {n}?"], "response": "yes"} for n in range(40)]
        >>> runs = [dialeval.evaluate({"bot": rows}, metrics="length") for rows in (real, simulated)]
        >>> users = dialeval.compare_users(*runs)
        >>> users.dialogues, users.interval[0] > 0.5
        ((40, 40), True)
    """

    version: str = __version__
    dialogues: tuple[int, int]
    tested: tuple[int, int]
    accuracy: float
    interval: tuple[float, float]
    p: float
    habits: Sequence[Habit]
    real_words: Sequence[str]
    simulated_words: Sequence[str]
    ranking: Mapping[str, Any]
    alpha: float

    def __repr__(self) -> str:
        return f"<UserComparison: told apart with accuracy {self.accuracy:.2f}, p {self.p:.3g}>"

    def lines(self) -> list[JsonObject]:
        """Return a line per habit.

        Returns:
            The lines, as `to_pandas` has them.
        """
        return [habit.to_dict() for habit in self.habits]


def compare_users(
    real: Run,
    simulated: Run,
    *,
    alpha: float = DEFAULT_ALPHA,
    confidence: float = DEFAULT_LEVEL,
    seed: int = DEFAULT_SEED,
) -> UserComparison:
    """Compare the user sides of two logs: whether they can be told apart, and by what.

    Args:
        real: A run of the log of real users; its metrics only matter for the ranking of systems.
        simulated: A run of the log of simulated users.
        alpha: The significance level.
        confidence: The confidence level of the intervals.
        seed: The seed of folds and permutations.

    Returns:
        The comparison.

    Raises:
        SettingError: A run has no texts of users, or too few dialogues.

    Examples:
        >>> import dialeval
        >>> real = [{"context": [f"cud i hav nr {n} pls"], "response": "yes"} for n in range(40)]
        >>> simulated = [{"context": [f"Could I have number {n}?"], "response": "yes"} for n in range(40)]
        >>> runs = [dialeval.evaluate({"bot": rows}, metrics="length") for rows in (real, simulated)]
        >>> dialeval.compare_users(*runs).accuracy
        1.0
    """
    sides = [_collect_turns(run) for run in (real, simulated)]
    sizes = [len(np.unique(side.dialogues)) for side in sides]
    if not min(sizes):
        raise SettingError(NO_TEXTS.removesuffix("."))
    if min(sizes) < LEAST_DIALOGUES:
        counts = f"{sizes[0]} real and {sizes[1]} simulated dialogues have user turns"
        raise SettingError(f"{counts}; {LEAST_DIALOGUES} of each are needed")
    both, labels = _join(sides), np.repeat([0, 1], sizes)
    lot = np.random.default_rng(seed)
    kept = np.concatenate([lot.permutation(np.flatnonzero(labels == at))[:MOST_TESTED] for at in (0, 1)])
    features = find_phrases(both, 2, len(labels), 2)
    hits, p = classify(_make_matrix(features, kept, len(labels)), labels[kept], seed)
    accuracy = float(np.mean([hits[labels[kept] == at].mean() for at in (0, 1)]))
    typical = _find_typical(features, labels)
    return UserComparison(
        dialogues=(sizes[0], sizes[1]),
        tested=(min(sizes[0], MOST_TESTED), min(sizes[1], MOST_TESTED)),
        accuracy=accuracy,
        interval=wilson(accuracy, len(hits), (0.0, 1.0), two_sided_t(confidence, len(hits))),
        p=p,
        habits=_compare_habits(both, labels, alpha, confidence, seed),
        real_words=typical[0],
        simulated_words=typical[1],
        ranking=_compare_rankings(real, simulated),
        alpha=alpha,
    )


def _collect_turns(run: Run) -> UserTurns:
    """Collect the user turns of all systems of a run; dialogues without any are not counted."""
    parts = [UserTurns.of(require_table(result)) for result in run.values() if result.role == "system"]
    joined = _join(parts)
    return UserTurns(joined.texts, np.unique(joined.dialogues, return_inverse=True)[1])


def _join(parts: Sequence[UserTurns]) -> UserTurns:
    return UserTurns.join(parts, [int(part.dialogues.max(initial=-1)) + 1 for part in parts])


def _make_matrix(features: Features, kept: Ints, size: int) -> Floats:
    """Return which of the most frequent features each dialogue has."""
    few = features.select(np.argsort(-np.diff(features.offsets), kind="stable")[:MOST_FEATURES])
    places = np.full(size, -1)
    places[kept] = np.arange(len(kept))
    rows, columns = places[few.dialogues], np.repeat(np.arange(len(few.labels)), np.diff(few.offsets))
    matrix: Floats = np.zeros((len(kept), len(few.labels)), np.float32)
    matrix[rows[rows >= 0], columns[rows >= 0]] = 1
    return matrix


def classify(matrix: Floats, labels: Ints, seed: int) -> tuple[Floats, float]:
    """Return whether cross-fitted naive Bayes finds the log of each dialogue (a half where tied), and p."""
    lot = np.random.default_rng(seed)
    folds = lot.permutation(len(labels)) % FOLDS
    truth = np.column_stack([labels, *(lot.permutation(labels) for _ in range(TRIALS))]).astype(np.float32)
    taken = np.empty_like(truth)
    for fold in range(FOLDS):
        others, labeled = matrix[folds != fold], truth[folds != fold]
        second = others.T @ labeled
        first = others.sum(axis=0)[:, None] - second
        odds = np.log((second + 1) / (second + 1).sum(axis=0)) - np.log((first + 1) / (first + 1).sum(axis=0))
        taken[folds == fold] = (np.sign(matrix[folds == fold] @ odds) + 1) / 2
    hits = np.where(truth == 1, taken, 1 - taken)
    accuracies = sum((hits * (truth == at)).sum(axis=0) / (truth == at).sum(axis=0) for at in (0, 1))
    return hits[:, 0], float(np.mean(accuracies >= accuracies[0] - 1e-6))


# Habits.


def _words(turns: Sequence[str]) -> list[str]:
    return [word for turn in turns for word in _WORD.findall(turn.lower())]


def _share(turns: Sequence[str], holds: Callable[[str], object]) -> float:
    return sum(bool(holds(turn)) for turn in turns) / len(turns) if turns else math.nan


def _measure_variety(turns: Sequence[str]) -> float:
    words = _words(turns)[:100]  # in more words fewer are new
    return len(set(words)) / len(words) if words else math.nan


_HABITS: Mapping[str, Callable[[Sequence[str]], float]] = {
    "user turns": lambda turns: float(len(turns)),
    "words a turn": lambda turns: len(_words(turns)) / len(turns),
    "variety of words": _measure_variety,
    "questions": lambda turns: _share(turns, _QUESTION.search),
    "rephrasing": lambda turns: UserRephrasing().value([SpokenTurn("user", turn) for turn in turns]),
    "corrections": lambda turns: _share(turns[1:], _CORRECTING.search),
    "politeness": lambda turns: _share(turns, _POLITE.search),
    "lower-case starts": lambda turns: _share(turns, lambda turn: turn[:1].islower()),
    "missing final marks": lambda turns: _share(turns, lambda turn: turn.rstrip()[-1:].isalnum()),
    "goodbye at the end": lambda turns: float(bool(_CLOSING.search(turns[-1]))),
}
"""The value of the user turns of a dialogue, by name. A conversation without thanks or goodbye was often abandoned."""
_UNCOUNTED = frozenset({"variety of words", "rephrasing", "politeness", "goodbye at the end"})


def _compare_habits(turns: UserTurns, labels: Ints, alpha: float, confidence: float, seed: int) -> list[Habit]:
    spoken: list[list[str]] = [[] for _ in labels]
    for text, dialogue in zip(turns.texts, turns.dialogues.tolist(), strict=True):
        spoken[dialogue].append(text)
    columns = {name: np.array([measure(said) for said in spoken]) for name, measure in _HABITS.items()}
    columns["misspelled words"] = _find_misspelled(spoken)
    everything, measured = np.ones(len(labels), np.bool_), {}
    for name, values in columns.items():
        scored = ~np.isnan(values)
        sample = SideValues(1, np.where(scored, values, 0.0), scored.astype(np.float64))
        if (result := measure_group([sample], everything, labels == 1, confidence, seed)) is not None:
            measured[name] = result
    habits = []
    for (name, result), p in zip(measured.items(), holm([result["p"] for result in measured.values()]), strict=True):
        means = {"real": result["elsewhere"], "simulated": result["value"]}
        way = "more" if result["difference"] < 0 else "less" if name in _UNCOUNTED else "fewer"
        advice = f"{way} {name}" if p < alpha else None
        habits.append(
            Habit(name=name, **means, interval=result["interval"], p=result["p"], adjusted_p=p, advice=advice)
        )
    return sorted(habits, key=lambda habit: (habit.adjusted_p, habit.p))


def _find_misspelled(spoken: Sequence[Sequence[str]]) -> Floats:
    """Return the fraction of words, by dialogue, that are rare and one letter away from a frequent word."""
    words = [_words(turns) for turns in spoken]
    counts = Counter(word for said in words for word in set(said) if len(word) > 3 and word.isalpha())
    frequent: dict[tuple[int, str], list[str]] = {}
    for word, number in counts.items():
        if number >= _FREQUENT:
            frequent.setdefault((len(word), word[0]), []).append(word)
    wrong = {
        word
        for word, number in counts.items()
        if number <= _RARE
        for other in chain.from_iterable(frequent.get((len(word) + more, word[0]), ()) for more in (-1, 0, 1))
        if DamerauLevenshtein.distance(word.rstrip("s"), other.rstrip("s"), score_cutoff=1) == 1
    }
    return np.array([sum(word in wrong for word in said) / len(said) if said else math.nan for said in words])


# Words and rankings.


def _find_typical(features: Features, labels: Ints) -> tuple[list[str], list[str]]:
    """Return the words that are typical of each side, without those that are parts of a longer one of them."""
    sizes = np.diff(features.offsets)
    second = np.add.reduceat(np.append(labels[features.dialogues], 0).astype(np.float64), features.offsets[:-1])
    counts = np.stack([sizes - second, second])
    prior = sizes / sizes.sum() * 100
    totals = counts.sum(axis=1, keepdims=True) + 100
    odds = np.log((counts + prior) / (totals - counts - prior))
    scores = (odds[1] - odds[0]) / np.sqrt((1 / (counts + prior)).sum(axis=0))
    listed: tuple[list[str], list[str]] = [], []
    for side, sign in enumerate((-1, 1)):
        for at in np.argsort(-sign * scores, kind="stable").tolist():
            word = features.labels[at]
            if sign * scores[at] < 2 or len(listed[side]) == MOST_WORDS:
                break
            if not any(word in other.split() or other in word.split() for other in listed[side]):
                listed[side].append(word)
    return listed


def _compare_rankings(real: Run, simulated: Run) -> dict[str, Any]:
    """Return, by metric, the means of the systems that both runs have, and Kendall's tau of the two orders."""
    systems = [name for name, result in real.items() if name in simulated and result.role == "system"]
    rankings = {}
    for key in choose_main_keys({name: real[name] for name in systems}) if len(systems) > 1 else ():
        if all(key in run[name] for run in (real, simulated) for name in systems):
            means = {name: (real[name][key].mean, simulated[name][key].mean) for name in systems}
            agree = [
                np.sign((means[one][0] - means[other][0]) * (means[one][1] - means[other][1]))
                for one, other in combinations(systems, 2)
            ]
            rankings[key] = {"systems": means, "tau": float(np.mean(agree)), "better": find_better(real, key)}
    return rankings
