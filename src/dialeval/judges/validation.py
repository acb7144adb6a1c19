"""Make a judge of `adem`: read ratings, fit, validate on data sets left out, attack; and attack judges on files.

Validation leaves whole data sets out: a set is judged by weights that were fitted to the other training sets, without
any row whose context occurs in it. Sets that were never meant for training (`tests`) are judged likewise. With a single
set there is no other one to learn from; its contexts are then split into `FOLDS` parts, each judged by the others.

The judge is compared with its baselines: the untrained identity, overlap with the reference,
averaged word vectors, and the length of the response. Correlations are with the mean human score, per set, and their
mean over the sets that have references; confidence intervals come from a bootstrap over contexts.

Attacks are responses that a good judge must not like, and the reference, which it must:

    reversed      the words of the response in reverse order
    dull          "i do not know ." whatever was said
    random        the response to another context (to what has another reference, where there are no contexts)
    context       the last turn of the context, repeated
    reference     the first reference itself; it is taken away from the references if there are others

For every attack: its mean score and that of the real responses, how often the attack is scored at least as high as the
real response, and how closely its scores follow those of the real responses (a judge that reads the order of words has
little of that for `reversed`).
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from importlib.util import find_spec
from typing import Any, Protocol

import numpy as np

from dialeval import sample_data
from dialeval.analysis.matching import score_ratings
from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.inputs import Input
from dialeval.engine.resources import Resources
from dialeval.io.opening import PathSource
from dialeval.io.packs import Progress
from dialeval.io.ratings import Ratings, digest_ratings, read_ratings
from dialeval.io.reading import attach, read_files, read_texts
from dialeval.io.rows import Rows
from dialeval.judges.adem import AdemWeights, Judge, Texts, open_vectors
from dialeval.judges.card import DULL, Attack, HumanCorrelation, JudgeCard, Validation
from dialeval.judges.fitting import KINDS, AdemSettings, Examples, fit, make_examples
from dialeval.metrics.encoder_files import MINILM
from dialeval.stats.correlation import Points
from dialeval.stats.resampling import DEFAULT_RESAMPLES, DEFAULT_SEED, draw_resamples, percentiles

ATTACKED_ROWS = 500
"""Rated rows, drawn by a fixed seed, on which a new judge is attacked."""
BASELINES = ("bleu-4", "rouge-l", "embedding-average", "length")
FOLDS = 5
_FEWEST_ROWS = 20


def train(
    ratings: Sequence[PathSource],
    tests: Sequence[PathSource] = (),
    *,
    encoder: str | os.PathLike[str] = MINILM,
    kind: str = "adem",
    turns: int = 3,
    tokens: int | None = None,
    quality: str = "overall",
    licenses: Mapping[str, str] | None = None,
    validate: bool = True,
    fields: Mapping[str, str] | None = None,
    progress: Progress | None = None,
    command: str = "dialeval.adem.train(...)",
    title: str = "A judge of dialogue responses",
    **strengths: Any,
) -> JudgeCard:
    r"""Train a judge of `adem` on files of rated rows. The command is `dialeval adem train`.

    Args:
        ratings: Files of rated rows to learn from.
        tests: Files of rated rows to validate on only.
        encoder: The sentence encoder.
        kind: `"adem"`, or `"identity"`, which is only calibrated.
        turns: Turns of a context that count, from its end.
        tokens: Word pieces of a text that count; None: as many as the encoder takes, at most 128.
        quality: Which of the scores to learn.
        licenses: By data set its license, for the card.
        validate: Validate the judge on data sets that are left out.
        fields: The names of fields in the files, by ours.
        progress: Called with the number of steps done and of all: the encoding of all texts, then each fit on what
            remains when some rows are left out.
        command: The command, for the card.
        title: The title of the card.
        **strengths: `strength`, `response_strength` and `rank`; see `dialeval adem train --help`.

    Returns:
        The judge with its model card: `save(folder)`, `tables()` and `text()`.

    Raises:
        DataError: A file cannot be read.
        SettingError: A setting does not exist, or cannot have this value.

    Examples:
        >>> import json
        >>> from pathlib import Path
        >>> from dialeval.adem import open_judge, train
        >>> rows = [
        ...     {"context": [f"tea {n} ?"], "response": "yes please" if n % 2 else "a train", "reference": "yes",
        ...      "scores": {"overall": 1 + 4 * (n % 2)}}
        ...     for n in range(8)
        ... ]
        >>> _ = Path("ratings.jsonl").write_text("\n".join(map(json.dumps, rows)))
        >>> folder = train(["ratings.jsonl"], validate=False).save("judge")
        >>> scores = open_judge(folder).score([["tea ?"]] * 2, ["yes please", "a train"], [["yes"]] * 2)
        >>> bool(scores[0] > scores[1])
        True
    """
    if kind not in KINDS:
        raise SettingError(f"a judge is one of {', '.join(KINDS)}, not {kind!r}")
    if turns < 1:
        raise SettingError("a context has at least one turn")
    settings = AdemSettings(**strengths)
    rated = read_ratings(ratings, fields)
    every = read_ratings([*ratings, *tests], fields) if tests else rated
    others = every.take(np.arange(len(rated), len(every))) if tests else rated
    vectors = open_vectors(encoder, tokens)
    if progress is not None:
        progress(0, None)
    examples = make_examples(every, vectors, turns, quality)
    trained = set(rated.datasets)
    learnable = examples.select_sets([name for name in examples.names if name in trained])
    used, weights = vectors.encoder, fit(kind, learnable, settings)
    weights = replace(weights, encoder=used.name, encoder_digest=used.files.digest, tokens=used.tokens, turns=turns)
    facts: dict[str, Any] = {
        "data": [
            {"name": name, "rows": rows, "license": (licenses or {}).get(name, "not stated")}
            for name, rows in Counter(rated.datasets).items()
        ],
        "settings": {
            "kind": kind,
            "quality": quality,
            "turns of the context": turns,
            "encoder": weights.encoder,
            "encoder digest": weights.encoder_digest,
            "tokens of a text": weights.tokens,
        },
    }
    if kind == "adem":
        facts["settings"] |= {name.replace("_", " "): value for name, value in asdict(settings).items()}
    agreement = None
    if validate:
        columns = _judge_left_out(examples, learnable, settings, progress)
        columns |= {name: values[examples.rows] for name, values in _score_baselines(every, quality).items()}
        agreement = compare_columns(columns, examples)
        saved = asdict(agreement)
        facts["validation"] = round_numbers({name: saved[name] for name in ("sets", "mean", "resamples")})
    tried = sample_rows(others)
    attacks = attack(Judge(weights, vectors), tried.contexts, tried.responses, tried.references)
    facts["attacks"] = round_numbers([asdict(result) for result in attacks])
    facts["trained_on"] = sorted(set(digest_ratings(rated)))
    return JudgeCard(replace(weights, facts=facts), agreement, attacks, command, title)


def attack_systems(judge: Scores, systems: Sequence[Rows]) -> list[Attack]:
    """Attack a judge on every row of some systems."""
    texts = [text for rows in systems for text in rows.responses]
    return attack(judge, list_texts(systems, inputs.CONTEXT), texts, list_texts(systems, inputs.REFERENCE))


def read_attacked(
    responses: Sequence[PathSource] | None = None,
    references: PathSource | None = None,
    contexts: PathSource | None = None,
    fields: Mapping[str, str] | None = None,
) -> list[Rows]:
    """Read the rows that a judge is attacked on, by system: those of files, or of the shipped sample."""
    if responses is None:
        folder = sample_data.folder()
        responses = sorted((folder / "responses").iterdir())
        references, contexts = folder / "references.txt", folder / "contexts.txt"
    systems = read_files(responses, fields)
    for need, source in ((inputs.REFERENCE, references), (inputs.CONTEXT, contexts)):
        if source is not None:
            column = read_texts(source, need, fields)
            systems = [attach(rows, need, column, os.fspath(source)) for rows in systems]
    return systems


def list_texts(systems: Sequence[Rows], need: Input) -> Texts:
    """Return the texts of a need, row by row over all systems; an empty list where a system has none."""
    columns = (rows.columns[need] if need in rows.columns else [()] * len(rows) for rows in systems)
    return [texts for column in columns for texts in column]


def sample_rows(ratings: Ratings) -> Ratings:
    """Return rows with a context and a reference, where there are such; not more than `ATTACKED_ROWS`."""
    both = np.array([bool(c) and bool(r) for c, r in zip(ratings.contexts, ratings.references, strict=True)], np.bool_)
    rows = np.flatnonzero(both) if both.any() else np.arange(len(ratings))
    return ratings.take(np.sort(np.random.default_rng(0).permutation(rows)[:ATTACKED_ROWS]))


def round_numbers(value: object) -> Any:
    """Round numbers for a file to what resamples can tell, so that the last bits of a machine do not change it."""
    if isinstance(value, Mapping):
        return {name: round_numbers(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [round_numbers(part) for part in value]
    if isinstance(value, float):
        return None if math.isnan(value) else round(value, 4)
    return value


def _judge_left_out(
    examples: Examples, learnable: Examples, settings: AdemSettings, progress: Progress | None
) -> dict[str, Floats]:
    """Return leave-one-dataset-out predictions by kind of judge; `learnable` are the examples to learn from."""
    columns = {name: np.full(len(examples), np.nan) for name in ("identity", "adem")}
    splits = list(_split_sets(examples, learnable))
    fitted: dict[tuple[str, bytes], AdemWeights] = {}
    for step, (test, others) in enumerate(splits, 1):
        learned, judged = np.packbits(np.isin(learnable.rows, others.rows)).tobytes(), examples.take(test)
        for name, values in columns.items():
            if (name, learned) not in fitted:
                fitted[name, learned] = fit(name, others, settings)
            values[test] = fitted[name, learned].score(judged)
        if progress is not None:
            progress(step, len(splits))
    return columns


def _split_sets(examples: Examples, learnable: Examples) -> Iterator[tuple[Ints, Examples]]:
    """Yield rows to judge, a set or a part of one, and the examples to learn from."""
    for number in range(len(examples.names)):
        test: Ints = np.flatnonzero(examples.sets == number)
        if len(test) < _FEWEST_ROWS:
            continue
        others = learnable.take(learnable.sets != number).without_contexts_of(examples.take(test))
        if len(others) >= _FEWEST_ROWS and _has_differences(others):
            yield test, others
            continue
        contexts, place = np.unique(examples.contexts[test], return_inverse=True)
        dealt = np.argsort(np.random.default_rng(DEFAULT_SEED).permutation(len(contexts)))
        for part in range(FOLDS):
            held: Ints = test[dealt[place] % FOLDS == part]
            rest = learnable.without_contexts_of(examples.take(held))
            if len(held) and _has_differences(rest):
                yield held, rest


def _has_differences(examples: Examples) -> bool:
    """Return whether there is anything to learn: some set holds ratings that are not all equal."""
    return any(np.ptp(examples.scores[examples.sets == number]) > 0 for number in np.unique(examples.sets))


def _score_baselines(ratings: Ratings, quality: str) -> dict[str, Floats]:
    """Score every rated row by the `BASELINES`; those that cannot run here are left out."""
    vectors = "wordllama" if find_spec("wordllama") and find_spec("tokenizers") else None
    texts = [turn for context in ratings.contexts for turn in context] or list(ratings.responses)
    names = [name for name in BASELINES if name != "embedding-average" or vectors is not None]
    names = names if any(ratings.references) else ["length"]
    scores = score_ratings(ratings, quality, Resources(train=texts, vectors=vectors), names)
    return {name: values for name, values in scores.metrics.items() if name in BASELINES}


def compare_columns(columns: Mapping[str, Floats], examples: Examples) -> Validation:
    """Return the agreement of each judge or baseline with people on every set, and the mean."""
    sets: dict[str, dict[str, HumanCorrelation]] = {}
    referenced: list[str] = []
    resampled: dict[str, list[Floats]] = {}
    for number, name in enumerate(examples.names):
        rows = examples.sets == number
        if not (rows & ~np.isnan(columns["identity"])).any():
            continue
        if examples.has_reference[rows].any():  # the rows without a reference are left out then
            rows = rows & examples.has_reference
            referenced.append(name)
        sets[name] = {}
        for judge, values in columns.items():
            chosen = rows & ~np.isnan(values)
            correlation, coefficients = correlate(values[chosen], examples.scores[chosen], examples.contexts[chosen])
            sets[name][judge] = correlation
            if name in referenced:
                resampled.setdefault(judge, []).append(coefficients)
    mean = {judge: _average([sets[name][judge] for name in referenced], parts) for judge, parts in resampled.items()}
    return Validation(sets, mean, referenced)


def correlate(values: Floats, scores: Floats, contexts: Ints) -> tuple[HumanCorrelation, Floats]:
    """Return the agreement on one set, and Pearson's and Spearman's coefficients of every resample."""
    if len(values) < 3:
        unknown = math.nan, math.nan
        return HumanCorrelation(len(values), *unknown, unknown, unknown), np.full((DEFAULT_RESAMPLES, 2), np.nan)
    clusters = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
    points = Points(values, scores, clusters)
    pearson, spearman = points.correlate()[:2].tolist()
    resamples = draw_resamples(int(clusters.max()) + 1)
    coefficients = np.concatenate([points.correlate_resamples(counts)[:, :2] for counts in resamples])
    intervals = percentiles(coefficients[:, 0]), percentiles(coefficients[:, 1])
    return HumanCorrelation(len(values), pearson, spearman, *intervals), coefficients


def _average(sets: Sequence[HumanCorrelation], resampled: Sequence[Floats]) -> HumanCorrelation:
    """Return the mean over sets; a set in which a judge is constant counts as 0."""
    means = np.nan_to_num(np.stack(resampled)).mean(axis=0)
    columns = [one.pearson for one in sets], [one.spearman for one in sets]
    pearson, spearman = (float(np.mean(np.nan_to_num(column))) for column in columns)
    ends = percentiles(means[:, 0]), percentiles(means[:, 1])
    return HumanCorrelation(sum(one.rows for one in sets), pearson, spearman, *ends)


class Scores(Protocol):
    """Whatever scores responses: a judge of either kind."""

    def score(self, contexts: Texts, responses: Sequence[str], references: Texts) -> Floats:
        """Return one score per response, NaN where it cannot be judged."""


def attack(judge: Scores, contexts: Texts, responses: Sequence[str], references: Texts, seed: int = 0) -> list[Attack]:
    """Score responses that a judge should not like: reversed words, a dull answer, answers to something else, copies.

    Args:
        judge: The judge, an object with `score`.
        contexts: The turns before each response.
        responses: The responses.
        references: The references of each response.
        seed: The seed of the random answers.

    Returns:
        A result per attack that the rows allow: mean scores, and the fraction of rows scored at least as high as the
        real response.

    Raises:
        SettingError: No row has a context or a reference.

    Examples:
        >>> from dialeval.adem import attack, open_judge
        >>> contexts = [["how are you ?"], ["where to ?"]]
        >>> found = attack(open_judge(), contexts, ["fine , thanks", "the station"], [["i am well"], ["the station"]])
        >>> [each.name for each in found]
        ['reversed', 'dull', 'random', 'context', 'reference']
    """
    real = judge.score(contexts, responses, references)
    if np.isnan(real).all():
        raise SettingError("no row has a context or a reference to judge it by; give rows with them, or -c or -r")
    attacks = []
    for name, replaced in _make_replacements(contexts, responses, references, seed).items():
        rows = [row for row, text in enumerate(replaced) if text is not None and not np.isnan(real[row])]
        if not rows:
            continue
        others = [references[row] for row in rows]
        if name == "reference":
            others = [[text for text in texts if text != texts[0]] or texts for texts in others]
        replies, before = [replaced[row] or "" for row in rows], real[rows]
        scores = judge.score([contexts[row] for row in rows], replies, others)
        constant = min(before.std(), scores.std()) < 1e-9
        correlation = math.nan if constant else float(np.corrcoef(before, scores)[0, 1])
        means = float(before.mean()), float(scores.mean()), float((scores >= before).mean())
        attacks.append(Attack(name, len(rows), *means, correlation))
    return attacks


def _make_replacements(
    contexts: Texts, responses: Sequence[str], references: Texts, seed: int
) -> dict[str, Sequence[str | None]]:
    """Return by attack the text in place of each response, None where there is none."""
    dice = np.random.default_rng(seed)
    asked = contexts if any(contexts) else references
    return {
        "reversed": [_reverse_words(text) for text in responses],
        "dull": [DULL] * len(responses),
        "random": [_sample_elsewhere(row, asked, responses, dice) for row in range(len(responses))],
        "context": [context[-1] if context else None for context in contexts],
        "reference": [texts[0] if texts else None for texts in references],
    }


def _reverse_words(text: str) -> str | None:
    words = text.split()
    return " ".join(reversed(words)) if len(words) > 1 else None


def _sample_elsewhere(row: int, asked: Texts, responses: Sequence[str], dice: np.random.Generator) -> str | None:
    """Sample a response to something else; None where every row has the same context."""
    for _ in range(20):
        other = int(dice.integers(len(responses)))
        if list(asked[other]) != list(asked[row]) and responses[other] != responses[row]:
            return responses[other]
    return None
