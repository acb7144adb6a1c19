"""Rated rows with the values that metrics give them, from a saved run or from the rated rows themselves.

`score_ratings` scores rated rows: each system's rows apart, as `dialeval score` would. `match_ratings` looks the rated
rows of a file up in a run. Within a system a rated response is the run's row of the same dialogue and text; the same
text twice in a dialogue is matched in order. Where the run knows no dialogues, rows are matched by context and text, or
by the text alone: a text that then fits several rows is left unmatched, unless both sides have the same texts in the
same order. A row that rates a whole dialogue is matched by dialogue alone, and a metric's value is the mean over its
turns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dialeval.core import inputs
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import FieldColumn, RaggedColumn, SharedColumn, TextColumn
from dialeval.core.errors import DataError, DialevalError, Problem, SettingError
from dialeval.core.fold import Estimate, Level
from dialeval.core.inputs import Input
from dialeval.core.result import TRAINED_ON, Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.engine.folding import run_sources
from dialeval.engine.plan import Asked, Settings, make_planner
from dialeval.engine.resources import Resources
from dialeval.io.ratings import DIALOGUE, OVERALL, Ratings, digest_ratings
from dialeval.io.reading import UNNAMED
from dialeval.io.rows import Rows, split_systems
from dialeval.io.sources import wrap_systems
from dialeval.stats.correlation import FEWEST_POINTS, Points, scale_to_unit
from dialeval.text.tokenizers import Tokenizer

_SHOWN = 60
_SHIPPED_ROWS = Path(__file__).parents[1] / "judges" / "checkpoints"
"""The folder with the digests of the rated rows that the shipped judges learned from: six bytes for each row."""


@dataclass(frozen=True, eq=False)
class RatedRows:
    """One row per rated response: what people said, and the value of each metric (NaN: none)."""

    systems: Sequence[str]
    system: Ints
    """The number of each row's system; -1 where it has no name."""
    dialogue: Ints
    """The number of each row's dialogue, the same for all systems that answer it."""
    human: Floats
    whole: npt.NDArray[np.bool_]
    """Whether the whole dialogue was rated."""
    metrics: Mapping[str, Floats]
    of_dialogues: frozenset[str] = frozenset()
    """Metrics that score dialogues and not turns."""
    signatures: Mapping[str, str] = field(default_factory=dict)
    skipped: Mapping[str, str] = field(default_factory=dict)
    unmatched: int = 0
    """Rated rows that the run does not have."""
    learned: Mapping[str, int] = field(default_factory=dict)
    """How many rated rows each metric learned from; it has no value there."""
    warnings: Sequence[str] = ()
    """Remarks of the run that scored the rated rows."""

    def __len__(self) -> int:
        return len(self.human)


def bring_to_one_scale(ratings: Ratings, quality: str) -> tuple[Ratings, str | None]:
    """Bring ratings on different scales to 0..1, so that rows of one set are not above those of another by their scale.

    Args:
        ratings: Rated rows; `scales` are those of `overall`.
        quality: The quality whose ratings are pooled.

    Returns:
        The ratings, and a sentence if they were changed.

    Raises:
        SettingError: Some rows state a scale and others none, a rating is not on its scale, or no scale is stated and
            one set has only values from 0 to 1 while another has larger ones.
    """
    rated = np.flatnonzero(~np.isnan(ratings.values[quality]))
    stated = ratings.scales[rated] if quality == OVERALL else np.full((len(rated), 2), np.nan)
    known = ~np.isnan(stated[:, 0])
    if not known.any():
        _check_ranges(ratings, quality, rated)
        return ratings, None
    scales = np.unique(stated[known], axis=0)
    names = " and ".join(f"{low:g} to {high:g}" for low, high in scales.tolist())
    if not known.all():
        without = ratings.datasets[int(rated[np.argmin(known)])]
        raise SettingError(
            f"some ratings state a scale ({names}) and others, such as those of {without!r}, state none, so that they "
            "cannot be pooled; give every row its scale"
        )
    if len(scales) == 1:
        return ratings, None
    low, high = ratings.scales.T
    annotations = [
        (values - low[row]) / (high[row] - low[row]) for row, values in enumerate(ratings.annotations[quality])
    ]
    values = (ratings.values[quality] - low) / (high - low)
    if ((values[rated] < 0) | (values[rated] > 1)).any():
        raise SettingError(f"a rating of {quality} is not on the scale that its row states; scales are {names}")
    changed = replace(
        ratings, annotations={**ratings.annotations, quality: annotations}, values={**ratings.values, quality: values}
    )
    return changed, f"ratings on the scales {names} were brought to 0 to 1"


def _check_ranges(ratings: Ratings, quality: str, rated: Ints) -> None:
    """Refuse to pool sets without a scale of which one has values from 0 to 1 and another one larger values."""
    largest: dict[str, float] = {}
    for row in rated.tolist():
        name = ratings.datasets[row]
        largest[name] = max(largest.get(name, -np.inf), float(ratings.values[quality][row]))
    small = [name for name, value in largest.items() if value <= 1]
    large = [name for name, value in largest.items() if value > 1]
    if small and large:
        raise SettingError(
            f"ratings of {quality} in {small[0]!r} are between 0 and 1 and those in {large[0]!r} are not, so that they "
            'cannot be pooled; give every row its scale, such as "scale": [0, 1] and "scale": [1, 5]'
        )


def _build_rated_rows(
    ratings: Ratings, quality: str, run: Run, metrics: Mapping[str, Floats], unmatched: int = 0
) -> RatedRows:
    """Return the ratings of one quality next to the values of metrics, both in the order of the ratings."""
    names = list(dict.fromkeys(name for name in ratings.systems if name is not None))
    number = {name: code for code, name in enumerate(names)}
    _, dialogues = np.unique(np.array(ratings.dialogues, object), return_inverse=True)
    estimates = {key: estimate for result in run.values() for key, estimate in result.items()}
    without_items = [key for key in estimates if key not in metrics]
    rated, learned = digest_ratings(ratings), {}
    for key, rows in ((key, find_training_rows(run, key)) for key in metrics):
        seen = (
            np.array([digest in rows for digest in rated]) & ~np.isnan(metrics[key]) if rows else np.zeros(0, np.bool_)
        )
        if seen.any():
            learned[key] = int(seen.sum())
            metrics = {**metrics, key: np.where(seen, np.nan, metrics[key])}
    return RatedRows(
        names,
        np.array([-1 if name is None else number[name] for name in ratings.systems], np.int64),
        dialogues.astype(np.int64),
        ratings.values[quality],
        np.array([level == DIALOGUE for level in ratings.levels], np.bool_),
        metrics,
        of_dialogues=frozenset(key for key, estimate in estimates.items() if estimate.level is Level.DIALOGUE),
        signatures={key: str(est.signature) for key, est in estimates.items() if est.signature is not None},
        skipped=dict.fromkeys(without_items, "is a corpus-level value without per-row scores") | run.skipped,
        unmatched=unmatched,
        learned=learned,
    )


@cache
def _read_shipped_training_rows(judge: str) -> frozenset[str]:
    """Return the digests of the rated rows that a shipped judge learned from, by the digest in its signature."""
    weights = judge.partition("@")[2].partition("+")[0]
    file = _SHIPPED_ROWS / f"{weights}.rows"
    data = file.read_bytes() if weights.isalnum() and file.is_file() else b""
    return frozenset(data[start : start + 6].hex() for start in range(0, len(data), 6))


def find_training_rows(run: Run, key: str) -> frozenset[str]:
    """Return the digests (`digest_ratings`) of the rated rows that the judges of a metric learned from."""
    known = run.details.get(TRAINED_ON)
    signatures = [run[name][key].signature for name in run if key in run[name]]
    judges = {value for signature in signatures if signature is not None for value in signature.values()}
    listed = [known.get(judge, ()) for judge in judges] if isinstance(known, Mapping) else []
    return frozenset().union(*listed, *(_read_shipped_training_rows(judge) for judge in judges))


def score_ratings(
    ratings: Ratings,
    quality: str,
    resources: Resources,
    metrics: Asked,
    settings: Settings | None = None,
    tokenizer: Tokenizer | None = None,
) -> RatedRows:
    """Score rated rows by metrics; None: all, those of conversations only where conversations were rated."""
    columns: dict[Input, Any] = {inputs.RESPONSE: TextColumn.from_strings(ratings.responses)}
    for need, lists in ((inputs.REFERENCE, ratings.references), (inputs.CONTEXT, ratings.contexts)):
        if any(lists):
            columns[need] = RaggedColumn.from_lists(lists)
    for column in dict.fromkeys(chain.from_iterable(ratings.columns)):
        values = [row.get(column) for row in ratings.columns]
        columns[column] = FieldColumn.of(values, is_number=column.kind in ("number", "boolean"))
    rows = Rows(UNNAMED, columns, TextColumn.from_strings(ratings.dialogues), where="ratings")
    sources = wrap_systems(split_systems(rows, ratings.systems, UNNAMED))
    run = run_sources(sources, make_planner("all" if metrics is None else metrics, settings, tokenizer), resources).run
    if metrics is None and DIALOGUE not in ratings.levels:
        turns = {
            name: {key: each for key, each in result.items() if each.level is Level.TURN}
            for name, result in run.items()
        }
        run = replace(run, systems={name: replace(run[name], estimates=own) for name, own in turns.items()})
    systems = np.array([name or UNNAMED for name in ratings.systems], object)
    places = {name: np.flatnonzero(systems == name) for name in run}
    own = {name: np.arange(len(rows)) for name, rows in places.items()}
    scored = _build_rated_rows(ratings, quality, run, _scatter_scores(run, places, own, len(ratings)))
    return replace(scored, warnings=run.warnings)


def find_rated_rows(run: Run, ratings: Ratings) -> dict[str, tuple[Ints, Ints]]:
    """Return, by system of the run, the places of the ratings of its responses, and their rows in the run."""
    found = {}
    for name, places in _group_by_system(run, ratings).items():
        rows = _match_turns(_require_rows(run[name], name), ratings, places)
        found[name] = places[rows >= 0], rows[rows >= 0]
    if not any(len(rows) for _, rows in found.values()):
        raise DataError(_describe_mismatch(run, ratings))
    return found


def match_ratings(run: Run, ratings: Ratings, quality: str) -> RatedRows:
    """Look rated rows up in a run."""
    rows_of, rated_of = {}, {}
    dialogues: dict[str, tuple[Ints, list[Ints]]] = {}
    for name, places in _group_by_system(run, ratings).items():
        whole = np.array([ratings.levels[place] == DIALOGUE for place in places.tolist()], np.bool_)
        table = _require_rows(run[name], name)
        rows = _match_turns(table, ratings, places[~whole])
        rated_of[name], rows_of[name] = places[~whole][rows >= 0], rows[rows >= 0]
        dialogues[name] = _match_dialogues(table, ratings, places[whole])
    metrics = _scatter_scores(run, rated_of, rows_of, len(ratings))
    for name, (places, turns) in dialogues.items():
        for key, estimate in run[name].items():
            if estimate.scores is not None:
                metrics[key][places] = _average_turns(estimate, _require_rows(run[name], name), turns)
    matched = sum(map(len, rated_of.values())) + sum(len(places) for places, _ in dialogues.values())
    if not matched:
        raise DataError(_describe_mismatch(run, ratings))
    return _build_rated_rows(ratings, quality, run, metrics, len(ratings) - matched)


def _scatter_scores(run: Run, rated: Mapping[str, Ints], rows: Mapping[str, Ints], size: int) -> dict[str, Floats]:
    """Copy the per-row scores of each metric from the rows of the run to the places of the rated rows."""
    with_items = {key for result in run.values() for key, est in result.items() if est.scores is not None}
    metrics = {key: np.full(size, np.nan) for key in run.keys_in_order if key in with_items}
    for name, places in rated.items():
        for key, estimate in run[name].items():
            if estimate.scores is None or not len(places):
                continue
            own = rows[name] if estimate.level is Level.TURN else _require_rows(run[name], name).clusters[rows[name]]
            metrics[key][places] = estimate.scores[own]
    return metrics


def _group_by_system(run: Run, ratings: Ratings) -> dict[str, Ints]:
    """Return the rated rows of each system of the run; all are its only system's if the ratings name at most one."""
    named = {name for name in ratings.systems if name is not None}
    real = [name for name in run if name not in run.baselines]
    only = real[0] if len(real) == 1 and len(named) <= 1 else None
    places: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(ratings.systems):
        system = name if only is None else only
        if system is not None and system in run:
            places[system].append(place)
    return {name: np.array(own, np.int64) for name, own in places.items()}


def _require_rows(result: Result, name: str) -> RowTable:
    if result.table is None:
        remedy = "score the system again and save the run: runs of this version know their rows"
        raise DataError(Problem(result.source or name, None, "the run does not identify its rows", remedy))
    return result.table


def _list_dialogue_names(table: RowTable) -> list[str | None]:
    """Return the name of each row's dialogue; None where dialogues have no names."""
    if table.dialogues is None:
        return [None] * len(table)
    return [table.dialogues[cluster] for cluster in table.clusters.tolist()]


def _match_turns(table: RowTable, ratings: Ratings, places: Ints) -> Ints:
    """Return the run's row of each rated response; -1 where there is none."""
    if not len(places):
        return np.empty(0, np.int64)
    if "response" not in table.texts:
        remedy = "pass the rated rows themselves: dialeval agreement RATINGS --human QUALITY -m METRICS"
        what = "it holds no texts (those of very many rows and of rows in chunks are not saved)"
        raise DataError(Problem("run", None, what, remedy))
    texts = [str(text) for text in table.texts["response"]]
    wanted = [ratings.responses[place] for place in places.tolist()]
    contexts = table.texts.get("context")
    here: Sequence[Hashable] = texts
    there: Sequence[Hashable] = wanted
    if table.dialogues is not None:
        here = list(zip(_list_dialogue_names(table), texts, strict=True))
        there = [(_strip_dataset(ratings, place), text) for place, text in zip(places.tolist(), wanted, strict=True)]
    elif texts == wanted:
        return np.arange(len(places))
    elif isinstance(contexts, RaggedColumn | SharedColumn):
        here = [(*turns, text) for turns, text in zip(contexts, texts, strict=True)]
        there = [(*ratings.contexts[place], text) for place, text in zip(places.tolist(), wanted, strict=True)]
    return _match_in_order(here, there, alike=table.dialogues is not None)


def _match_in_order(here: Sequence[Hashable], there: Sequence[Hashable], alike: bool) -> Ints:
    """Match each key of `there` with the next free place of it in `here`; -1 where there is none.

    Unless equal keys are `alike`, a key that occurs several times in `here` is ambiguous and not matched.
    """
    many = {key for key, times in Counter(here).items() if times > 1 and not alike}
    free: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(len(here) - 1, -1, -1):
        if here[place] not in many:
            free[here[place]].append(place)
    return np.array([free[key].pop() if free[key] else -1 for key in there], np.int64)


def _strip_dataset(ratings: Ratings, place: int) -> str:
    """Return the dialogue's name as its file has it: `Ratings` prefixes the data set."""
    return ratings.dialogues[place].removeprefix(f"{ratings.datasets[place]}/")


def _match_dialogues(table: RowTable, ratings: Ratings, places: Ints) -> tuple[Ints, list[Ints]]:
    """Return the rated rows whose dialogue is in the run, and the rows of each such dialogue."""
    rows: dict[str | None, list[int]] = defaultdict(list)
    for row, name in enumerate(_list_dialogue_names(table)):
        rows[name].append(row)
    matched = [(place, rows[name]) for place in places.tolist() if (name := _strip_dataset(ratings, place)) in rows]
    return np.array([place for place, _ in matched], np.int64), [np.array(turns, np.int64) for _, turns in matched]


def _average_turns(estimate: Estimate, table: RowTable, dialogues: Sequence[Ints]) -> Floats:
    """Return the value of each dialogue, given by its rows: its own, or the mean over its scored turns."""
    items = cast("Floats", estimate.scores)
    if estimate.level is Level.DIALOGUE:
        return np.array([items[table.clusters[turns[0]]] for turns in dialogues], np.float64)
    scored = [items[turns][~np.isnan(items[turns])] for turns in dialogues]
    return np.array([values.mean() if len(values) else np.nan for values in scored], np.float64)


def _describe_mismatch(run: Run, ratings: Ratings) -> Problem:
    text = ratings.responses[0]
    rated = f"the first rated response is {text[:_SHOWN]!r} of system {ratings.systems[0]!r}"
    what = f"no rated row is in the run: it has the systems {', '.join(run)}; {rated}"
    return Problem("ratings", None, what, "rate the responses that were scored, under the same names of systems")


# The points that a metric is correlated over: rated turns, dialogues, or systems, each with the metric's value.

LEVELS = ("turn", "dialogue", "system")

FEWEST_SYSTEMS = 6
"""The fewest systems for inference about other systems: intervals, p-values and groups at the level of systems."""
LEAST_SHARE = 0.25
"""Of the rated rows that metrics score, the share that they must have in common."""
MOST_NAMED = 3


class NoPointsError(DialevalError):
    """A metric cannot be correlated over the `n` points of a level; the message is the reason that people read."""

    def __init__(self, reason: str, n: int = 0) -> None:
        super().__init__(reason)
        self.n = n


def keep_common_rows(rows: RatedRows) -> tuple[RatedRows, dict[str, str], list[str]]:
    """Return the rows with values only where all metrics have one, so that all are compared on the same.

    Metrics are taken in from the one that scores most rated rows down. One that would leave fewer than `LEAST_SHARE` of
    them is left out. Also return what was left out: metrics by their reasons, and sentences about rows.
    """
    scored = {key: ~np.isnan(rows.human) & ~np.isnan(values) for key, values in rows.metrics.items()}
    rated = np.any(list(scored.values()), axis=0)
    common, left_out = rated, {}
    for key in sorted(scored, key=lambda key: -int(scored[key].sum())):
        shared, own = common & scored[key], int(scored[key].sum())
        if shared.sum() >= LEAST_SHARE * rated.sum():
            common = shared
        elif own:
            left_out[key] = (
                f"is left out, since it scores {own} of {int(rated.sum())} rated rows, and only {int(shared.sum())} of "
                "those that the other metrics score"
            )
    kept = {key: np.where(common & (key not in left_out), values, np.nan) for key, values in rows.metrics.items()}
    missing = {key: int((rated & ~scored[key]).sum()) for key in kept if key not in left_out and scored[key].any()}
    short = sorted((key for key, count in missing.items() if count), key=lambda key: -missing[key])
    sentences: list[str] = []
    if short:
        more = f" and {len(short) - MOST_NAMED} more" if len(short) > MOST_NAMED else ""
        why = ", ".join(f"{key} cannot score {missing[key]}" for key in short[:MOST_NAMED]) + more
        count = f"{int(rated.sum() - common.sum())} of {int(rated.sum())} rated rows"
        sentences = [f"{count} are left out, so that all metrics have the same: {why}"]
    for n in dict.fromkeys(rows.learned.values()):
        names = ", ".join(key for key, own in rows.learned.items() if own == n)
        sentences.append(f"{n} of {len(rows)} rated rows are not scored by {names}, which learned from them")
    sentences += [f"{key} {reason}" for key, reason in left_out.items()]
    return replace(rows, metrics=kept), left_out, sentences


def find_used_rows(rows: RatedRows, key: str, level: str) -> Ints:
    """Return the rows with both values that count at a level."""
    known = ~np.isnan(rows.human) & ~np.isnan(rows.metrics[key])
    if level == "turn":
        known &= ~rows.whole
    if level == "system":
        known &= rows.system >= 0
    return np.flatnonzero(known)


def make_points(rows: RatedRows, key: str, level: str) -> Points:
    """Return the points of a metric at a level; `NoPointsError` says why there are none."""
    if level == "turn" and key in rows.of_dialogues:
        raise NoPointsError("scores dialogues, not turns")
    used = find_used_rows(rows, key, level)
    if not len(used):
        raise NoPointsError(_explain_unused(rows, key, level))
    points = collect_points(rows, key, used, level)
    if len(points) < FEWEST_POINTS:
        number = f"{len(points)} {level}{'' if len(points) == 1 else 's'}"
        raise NoPointsError(f"{number} cannot be correlated; {FEWEST_POINTS} can", len(points))
    if np.isnan(points.correlate()[0]):
        raise NoPointsError(_describe_constant(points), len(points))
    return points


def collect_points(rows: RatedRows, key: str, used: Ints, level: str) -> Points:
    """Return a metric and the human scores of some rows, their means over the rows of each point.

    Both are divided by a power of two (`scale_to_unit`), which no correlation depends on.
    """
    metric, human = scale_to_unit(rows.metrics[key][used]), scale_to_unit(rows.human[used])
    codes, clusters = number_points(rows, used, level)
    sizes = np.bincount(codes)
    first, second = (np.bincount(codes, column) / sizes for column in (metric, human))
    return Points(first, second, clusters)


def number_points(rows: RatedRows, used: Ints, level: str) -> tuple[Ints, Ints]:
    """Return the point of each row at a level, and the cluster of each point: its dialogue, or its system."""
    if level == "turn":
        return np.arange(len(used)), rows.dialogue[used]
    columns = [rows.system[used]] if level == "system" else [rows.system[used], rows.dialogue[used]]
    distinct, codes = np.unique(np.column_stack(columns), axis=0, return_inverse=True)
    return codes.ravel(), distinct[:, -1].astype(np.int64)


def _explain_unused(rows: RatedRows, key: str, level: str) -> str:
    if np.isnan(rows.metrics[key]).all():
        return "it learned from all rated rows" if key in rows.learned else "no rated row could be scored"
    if level == "turn":
        return "whole dialogues were rated and not turns"
    return "no rated row names its system" if level == "system" else "no row has both values"


def _describe_constant(points: Points) -> str:
    if np.ptp(points.first) == 0:
        return "the metric gives the same value to every row"
    if np.ptp(points.second) == 0:
        return "all human scores are the same"
    return "one of the two is constant (up to rounding)"
