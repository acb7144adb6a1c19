"""Rated rows with the values that metrics give them, from a saved run or from the rated rows themselves.

`score_ratings` scores rated rows: each system's rows apart, as `dialeval score` would. `match_ratings` looks the rated
rows of a file up in a run. Within a system a rated response is the run's row of the same dialogue and text; the same
text twice in a dialogue is matched in order. Where the run knows no dialogues, the context stands for them, or nothing
but the text: what then could be several rows is left unmatched, unless both sides have the same texts in the same
order. A row that rates a whole dialogue is matched by dialogue alone, and a metric's value is the mean over its turns.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import RaggedColumn, TextColumn
from dialeval.core.errors import DataError, Fault
from dialeval.core.fold import Level
from dialeval.core.needs import Need
from dialeval.core.result import Result, Run
from dialeval.core.rowtable import RowTable
from dialeval.data.rows.ratings import DIALOGUE, Ratings
from dialeval.data.rows.reading import UNNAMED
from dialeval.data.rows.system import Rows, by_system
from dialeval.data.shards.sources import memory_sources
from dialeval.engine.folding import run_sources
from dialeval.engine.plan import Asked, Planner, Settings
from dialeval.engine.resources import Resources

_SHOWN = 60


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

    def __len__(self) -> int:
        return len(self.human)


def rated_rows(ratings: Ratings, quality: str, metrics: Mapping[str, Floats], **more: Any) -> RatedRows:
    """Ratings of one quality beside the values of metrics, both in the order of the ratings."""
    names = list(dict.fromkeys(name for name in ratings.systems if name is not None))
    number = {name: code for code, name in enumerate(names)}
    systems = np.array([-1 if name is None else number[name] for name in ratings.systems], np.int64)
    _, dialogues = np.unique(np.array(ratings.dialogues, object), return_inverse=True)
    whole = np.array([level == DIALOGUE for level in ratings.levels], np.bool_)
    return RatedRows(names, systems, dialogues.astype(np.int64), ratings.values[quality], whole, metrics, **more)


def score_ratings(
    ratings: Ratings,
    quality: str,
    resources: Resources,
    metrics: Asked,
    settings: Settings | None = None,
) -> RatedRows:
    """Score rated rows by metrics."""
    columns: dict[Need, Any] = {Need.RESPONSE: TextColumn.from_strings(ratings.responses)}
    for need, lists in ((Need.REFERENCE, ratings.references), (Need.CONTEXT, ratings.contexts)):
        if any(lists):
            columns[need] = RaggedColumn.from_lists(lists)
    names = list(dict.fromkeys(name or UNNAMED for name in ratings.systems))
    codes = np.array([names.index(name or UNNAMED) for name in ratings.systems], np.int64)
    rows = Rows(UNNAMED, columns, TextColumn.from_strings(ratings.dialogues), where="ratings")
    sources = memory_sources(by_system(rows, names, codes))
    run = run_sources(sources, Planner(metrics, settings), resources).run
    places = {name: np.flatnonzero(codes == code) for code, name in enumerate(names)}
    own = {name: np.arange(len(rows)) for name, rows in places.items()}
    return rated_rows(ratings, quality, _scattered(run, places, own, len(ratings)), **_told(run))


def match_ratings(run: Run, ratings: Ratings, quality: str) -> RatedRows:
    """Look rated rows up in a run."""
    rated = _rated_by_system(run, ratings)
    rows_of, rated_of = {}, {}
    dialogue_means: dict[str, tuple[Ints, list[Ints]]] = {}
    for name, places in rated.items():
        whole = np.array([ratings.levels[place] == DIALOGUE for place in places.tolist()], np.bool_)
        table = _table(run[name], name)
        found = _matched_turns(table, ratings, places[~whole])
        rated_of[name], rows_of[name] = places[~whole][found >= 0], found[found >= 0]
        dialogue_means[name] = _matched_dialogues(table, ratings, places[whole])
    metrics = _scattered(run, rated_of, rows_of, len(ratings))
    matched = sum(map(len, rated_of.values()))
    for name, (places, turns) in dialogue_means.items():
        matched += len(places)
        for key, estimate in run[name].items():
            if estimate.items is not None:
                metrics[key][places] = _dialogue_values(run[name], key, turns)
    if not matched:
        raise DataError(_nothing_matches(run, ratings))
    return rated_rows(ratings, quality, metrics, **_told(run), unmatched=len(ratings) - matched)


def _scattered(run: Run, rated: Mapping[str, Ints], rows: Mapping[str, Ints], size: int) -> dict[str, Floats]:
    """The items of each metric, put from the rows of the run to the places of rated rows."""
    metrics = {key: np.full(size, np.nan) for key in run.keys_in_order}
    for name, places in rated.items():
        for key, estimate in run[name].items():
            if estimate.items is None or not len(places):
                continue
            if estimate.level is Level.TURN:
                metrics[key][places] = estimate.items[rows[name]]
            else:
                table = _table(run[name], name)
                metrics[key][places] = estimate.items[table.clusters[rows[name]]]
    return {key: values for key, values in metrics.items() if any(_has_items(run, key))}


def _has_items(run: Run, key: str) -> Iterable[bool]:
    return (key in result and result[key].items is not None for result in run.values())


def _told(run: Run) -> dict[str, Any]:
    estimates = {key: estimate for result in run.values() for key, estimate in result.items()}
    lacking = dict.fromkeys(estimates, "has a value of all rows together and none of single ones")
    return {
        "of_dialogues": frozenset(key for key, estimate in estimates.items() if estimate.level is Level.DIALOGUE),
        "signatures": {key: str(est.signature) for key, est in estimates.items() if est.signature is not None},
        "skipped": {key: lacking[key] for key in estimates if not any(_has_items(run, key))} | run.skipped,
    }


def _rated_by_system(run: Run, ratings: Ratings) -> dict[str, Ints]:
    """Which rated rows belong to which system of the run."""
    named = {name for name in ratings.systems if name is not None}
    real = [name for name in run if name not in run.anchors]
    only = real[0] if len(real) == 1 and len(named) <= 1 else None
    found: dict[str, list[int]] = defaultdict(list)
    for place, name in enumerate(ratings.systems):
        system = only if only is not None else name
        if system is not None and system in run:
            found[system].append(place)
    return {name: np.array(places, np.int64) for name, places in found.items()}


def _table(result: Result, name: str) -> RowTable:
    if result.rows is None:
        remedy = "score the system again and save the run: runs of this version know their rows"
        raise DataError(Fault(result.source or name, None, "the run does not say what its rows are", remedy))
    return result.rows


def _names(table: RowTable) -> list[str | None]:
    """The dialogue of each row, where dialogues have names."""
    if table.dialogues is None:
        return [None] * len(table)
    return [table.dialogues[cluster] for cluster in table.clusters.tolist()]


def _matched_turns(table: RowTable, ratings: Ratings, places: Ints) -> Ints:
    """The run's row of each rated response; -1 where there is none."""
    if not len(places):
        return np.empty(0, np.int64)
    if "response" not in table.texts:
        remedy = "pass the rated rows themselves: dialeval meta RATINGS --human QUALITY -m METRICS"
        raise DataError(Fault("run", None, "texts of so many rows are not saved, so ratings cannot be matched", remedy))
    texts = [str(text) for text in table.texts["response"]]
    wanted = [ratings.responses[place] for place in places.tolist()]
    if table.dialogues is None and texts == wanted:
        return np.arange(len(places))
    belongs: Iterable[Hashable]
    if table.dialogues is not None:
        belongs, beside = _names(table), [_plain(ratings, place) for place in places.tolist()]
        return _in_order(list(zip(belongs, texts, strict=True)), list(zip(beside, wanted, strict=True)))
    contexts = table.texts.get("context")
    if isinstance(contexts, RaggedColumn):
        there = [(*ratings.contexts[place], text) for place, text in zip(places.tolist(), wanted, strict=True)]
        return _in_order([(*turns, text) for turns, text in zip(contexts, texts, strict=True)], there, alike=False)
    return _in_order(texts, wanted, alike=False)


def _in_order(here: Sequence[Hashable], there: Sequence[Hashable], alike: bool = True) -> Ints:
    """For each key of `there` the next place of it in `here` that is still free; -1 where there is none.

    Unless equal keys are `alike`, those that stand several times in `here` are not told apart and are not matched.
    """
    many = {key for key, times in Counter(here).items() if times > 1 and not alike}
    free: dict[Hashable, list[int]] = defaultdict(list)
    for place in range(len(here) - 1, -1, -1):
        if here[place] not in many:
            free[here[place]].append(place)
    return np.array([free[key].pop() if free[key] else -1 for key in there], np.int64)


def _plain(ratings: Ratings, place: int) -> str:
    """The dialogue's name as its file has it: `Ratings` puts the data set before it."""
    return ratings.dialogues[place].removeprefix(f"{ratings.datasets[place]}/")


def _matched_dialogues(table: RowTable, ratings: Ratings, places: Ints) -> tuple[Ints, list[Ints]]:
    """The rated rows that the run knows the dialogue of, and the rows of each such dialogue."""
    rows: dict[str | None, list[int]] = defaultdict(list)
    for row, name in enumerate(_names(table)):
        rows[name].append(row)
    found = [(place, rows[name]) for place in places.tolist() if (name := _plain(ratings, place)) in rows]
    return np.array([place for place, _ in found], np.int64), [np.array(turns, np.int64) for _, turns in found]


def _dialogue_values(result: Result, key: str, dialogues: Sequence[Ints]) -> Floats:
    estimate, table = result[key], result.rows
    if estimate.items is None or table is None:
        return np.full(len(dialogues), np.nan)
    if estimate.level is Level.DIALOGUE:
        clusters = table.clusters
        return np.array([estimate.items[clusters[turns[0]]] for turns in dialogues], np.float64)
    values = [estimate.items[turns] for turns in dialogues]
    scored = [turns[~np.isnan(turns)] for turns in values]
    return np.array([turns.mean() if len(turns) else np.nan for turns in scored], np.float64)


def _nothing_matches(run: Run, ratings: Ratings) -> Fault:
    text = ratings.responses[0]
    rated = f"the first rated response is {text[:_SHOWN]!r} of system {ratings.systems[0]!r}"
    what = f"no rated row stands in the run: it has the systems {', '.join(run)}; {rated}"
    return Fault("ratings", None, what, "rate the responses that were scored, under the same names of systems")
