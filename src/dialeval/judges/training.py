"""Train a judge of `adem`: read ratings, fit, validate on data sets left out, attack, and write the model card.

Validation leaves whole data sets out: a set is judged by weights that were fitted to the other training sets, without
any row whose context occurs in it. Sets that were never meant for training (`tests`) are judged likewise. With a single
set there is no other one to learn from; its contexts are then split into `FOLDS` parts, each judged by the others.

The judge is compared with its baselines: the untrained identity, overlap with the reference, averaged word vectors, and
the length of the response. Spearman's correlation is with the mean human score, per set, and its mean is over the sets
that have references; confidence intervals come from a bootstrap over contexts.

Everything in a card comes out of the training command; nothing is written by hand. Numbers are rounded to two digits
for people; `judge.json` next to it holds them in full.
"""

from __future__ import annotations

import math
import os
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from dialeval.analysis.matching import score_ratings
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError, escape_controls
from dialeval.core.validation import parse_toml
from dialeval.engine.resources import Resources
from dialeval.io.opening import PathSource
from dialeval.io.packs import Progress
from dialeval.io.ratings import Ratings, digest_ratings, read_ratings
from dialeval.judges.adem import AdemWeights, Facts, Judge, open_vectors
from dialeval.judges.attacks import Attack, attack, list_attacks
from dialeval.judges.fitting import AdemSettings, Examples, fit_adem, fit_identity, make_examples
from dialeval.metrics.encoder_files import MINILM
from dialeval.reports.documents import escape_markdown
from dialeval.stats.correlation import Points
from dialeval.stats.resampling import DEFAULT_RESAMPLES, DEFAULT_SEED, draw_resamples, percentiles

Rows = list[list[str]]

ATTACKED_ROWS = 500
"""Rated rows, drawn by a fixed seed, on which a new judge is attacked."""
BASELINES = ("bleu-4", "rouge-l", "embedding-average", "length")
FOLDS = 5
_FEWEST_ROWS = 20
_TEXTS = parse_toml((Path(__file__).parent / "cards.toml").read_bytes(), "cards.toml", "install dialeval again")
NOT_VALIDATED = (
    "too few rated rows or contexts to leave any out, so the agreement of this judge with human ratings is unknown."
)


@dataclass(frozen=True)
class HumanCorrelation:
    """Spearman's correlation with mean human ratings on one set, or its mean over sets, with a confidence interval."""

    rows: int
    spearman: float
    spearman_interval: tuple[float, float]


@dataclass(frozen=True)
class Validation:
    """Agreement by set and then by judge or baseline; `mean` is that over the sets with references."""

    sets: Mapping[str, Mapping[str, HumanCorrelation]]
    mean: Mapping[str, HumanCorrelation]
    referenced: Sequence[str]
    resamples: int = DEFAULT_RESAMPLES


def train(
    ratings: Sequence[PathSource],
    tests: Sequence[PathSource] = (),
    *,
    encoder: str | os.PathLike[str] = MINILM,
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
        The judge with its model card: `save(folder)`, `list_tables()` and `to_markdown()`.

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
    used, weights = vectors.encoder, fit_adem(learnable, settings)
    weights = replace(weights, encoder=used.name, encoder_digest=used.files.digest, tokens=used.tokens, turns=turns)
    facts: dict[str, Any] = {
        "data": [
            {"name": name, "rows": rows, "license": (licenses or {}).get(name, "not stated")}
            for name, rows in Counter(rated.datasets).items()
        ],
        "settings": {
            "quality": quality,
            "turns of the context": turns,
            "encoder": weights.encoder,
            "encoder digest": weights.encoder_digest,
            "tokens of a text": weights.tokens,
            **{name.replace("_", " "): value for name, value in asdict(settings).items()},
        },
    }
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
    fitted: dict[bytes, tuple[AdemWeights, AdemWeights]] = {}
    for step, (test, others) in enumerate(splits, 1):
        learned = others.rows.tobytes()
        if learned not in fitted:
            fitted[learned] = fit_identity(others), fit_adem(others, settings)
        for values, weights in zip(columns.values(), fitted[learned], strict=True):
            values[test] = weights.score(examples.take(test))
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
    """Return the agreement of each judge or baseline with people on every set, and the mean.

    A set in which a judge is constant counts as 0 in its mean.
    """
    sets: dict[str, dict[str, HumanCorrelation]] = {}
    resampled: dict[str, dict[str, Floats]] = {}
    for number, name in enumerate(examples.names):
        rows = examples.sets == number
        if not (rows & ~np.isnan(columns["identity"])).any():
            continue
        if examples.has_reference[rows].any():  # the rows without a reference are left out then
            rows = rows & examples.has_reference
            resampled[name] = {}
        sets[name] = {}
        for judge, values in columns.items():
            chosen = rows & ~np.isnan(values)
            correlated = correlate(values[chosen], examples.scores[chosen], examples.contexts[chosen])
            sets[name][judge], resampled.get(name, {})[judge] = correlated
    mean = {}
    for judge in columns if resampled else ():
        of_sets = [sets[name][judge] for name in resampled]
        rho = float(np.mean(np.nan_to_num([correlation.spearman for correlation in of_sets])))
        means = np.nan_to_num(np.stack([row[judge] for row in resampled.values()])).mean(axis=0)
        mean[judge] = HumanCorrelation(sum(correlation.rows for correlation in of_sets), rho, percentiles(means))
    return Validation(sets, mean, list(resampled))


def correlate(values: Floats, scores: Floats, contexts: Ints) -> tuple[HumanCorrelation, Floats]:
    """Return the agreement on one set, and the coefficient of every resample."""
    if len(values) < 3:
        return HumanCorrelation(len(values), math.nan, (math.nan, math.nan)), np.full(DEFAULT_RESAMPLES, np.nan)
    clusters = np.unique(contexts, return_inverse=True)[1].astype(np.int64)
    points = Points(values, scores, clusters)
    resamples = draw_resamples(int(clusters.max()) + 1)
    coefficients = np.concatenate([points.correlate_resamples(counts)[:, 1] for counts in resamples])
    return HumanCorrelation(len(values), float(points.correlate()[1]), percentiles(coefficients)), coefficients


@dataclass(frozen=True, eq=False)
class JudgeCard:
    """A trained judge of `adem` with its model card."""

    weights: AdemWeights
    validation: Validation | None
    attacks: Sequence[Attack]
    command: str
    title: str

    def save(self, folder: str | os.PathLike[str]) -> Path:
        """Write `judge.safetensors`, `judge.json` and the card."""
        return self.weights.save(folder, self.to_markdown())

    def list_tables(self) -> list[tuple[str, Rows]]:
        """Return the tables that the training command prints."""
        tables = [("Attacks", list_attacks(self.attacks))]
        if self.validation is not None and self.validation.sets:
            tables.insert(0, ("Spearman's rho on sets left out", list_validation(self.validation)))
        return tables

    def to_markdown(self) -> str:
        """Return the card, in Markdown."""
        weights, validation = self.weights, self.validation
        data = [[entry["name"], str(entry["rows"]), entry["license"]] for entry in weights.facts["data"]]
        texts = _TEXTS["adem"]
        parts = begin_card(self.title, texts, [["data set", "rows", "license"], *data], weights.facts)
        parts.append(f"Made by: {to_code(self.command)}")
        if validation is not None and validation.sets:
            how = texts["how"].format(resamples=validation.resamples)
            parts += ["## Results", how, write_card_table(list_validation(validation))]
        elif validation is not None:
            parts += ["## Results", f"None: {NOT_VALIDATED}"]
        parts += ["## Weaknesses", texts["attacks"], write_card_table(list_attacks(self.attacks))]
        made_for = f"for vectors of {weights.encoder} ({weights.encoder_digest})"
        parts += [texts["limits"], f"Weights: {weights.kind}@{weights.digest}, {made_for}."]
        return "\n\n".join(parts) + "\n"


def begin_card(title: str, texts: Mapping[str, str], data: Rows, facts: Facts) -> list[str]:
    """Return the parts that every card begins with; the last column of the data is free text."""
    head, *rest = data
    settings = {name.replace("_", " "): str(value) for name, value in facts.get("settings", {}).items()}
    return [
        f"# {escape_markdown(title)}",
        texts["purpose"],
        "## Data",
        write_card_table([head, *([*cells, escape_markdown(free_text)] for *cells, free_text in rest)]),
        texts["stored"],
        "## Settings",
        "\n".join(f"- {escape_controls(name)}: {escape_controls(value)}" for name, value in settings.items()),
    ]


def list_validation(validation: Validation) -> Rows:
    """Return a header, a row per set and the mean: Spearman's rho with its interval, a column per judge or baseline."""
    columns = list(dict.fromkeys(name for row in validation.sets.values() for name in row))
    rows = [["data set", "rows", *columns]]
    for name, row in validation.sets.items():
        shown = name if name in validation.referenced else f"{name} (no references)"
        most = max(correlation.rows for correlation in row.values())
        rows.append([shown, str(most), *(show_spearman(vars(row[column])) for column in columns)])
    if validation.mean:
        means = (show_spearman(vars(validation.mean[column])) for column in columns)
        rows.append(["mean of sets with references", "", *means])
    return rows


def show_spearman(correlation: Facts | None) -> str:
    """Return Spearman's rho with its interval; nothing where it was not computed."""
    if correlation is None:
        return ""
    low, high = correlation["spearman_interval"]
    return f"{show_number(correlation['spearman'])} [{show_number(low)}, {show_number(high)}]"


def show_number(value: float | None) -> str:
    """Return a number with two digits and no leading zero; in a file NaN is null."""
    return "-" if value is None or math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)


def write_card_table(rows: Rows) -> str:
    """Return a table; its head and the first column hold names, the other cells numbers."""
    head, *rest = rows
    named = ([escape_markdown(name), *cells] for name, *cells in rest)
    lines = [list(map(escape_markdown, head)), ["---"] * len(head), *named]
    return "\n".join(f"| {' | '.join(row)} |" for row in lines)


def to_code(text: str) -> str:
    """Return a text as code, between more backticks than are anywhere in it."""
    most = max(map(len, re.findall("`+", text)), default=0)
    fence, space = "`" * (most + 1), " " if most else ""
    return f"{fence}{space}{escape_controls(text)}{space}{fence}"
