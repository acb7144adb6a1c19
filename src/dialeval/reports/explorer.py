"""The rows of a run for the explorer: context, reference, the responses of all systems, and every score.

Systems whose rows are the same (dialogues, turns, prompts, references) are shown next to each other as one group, with
the contexts of the first of them, which may contain its own replies. Each distinct
text is stored once and rows refer to it by number, since contexts repeat from turn to turn and replies from row to row.
Of very many rows a part is shown, in whole dialogues: half of it those in which systems differ most, half of it drawn
at random with a fixed seed.
"""

from __future__ import annotations

import math
from functools import cache
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.values import find_better
from dialeval.core.arrays import Floats, Ints
from dialeval.core.columns import TextColumn
from dialeval.core.errors import escape_surrogates
from dialeval.core.fold import Level
from dialeval.core.rowtable import NO_TURN, PROMPT, REFERENCE, RowTable
from dialeval.core.validation import JsonObject
from dialeval.reports import markup
from dialeval.reports.documents import find_extensions
from dialeval.reports.formatting import plain
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dialeval.analysis.slices import Slices
    from dialeval.core.result import Result, Run

MOST_ROWS = 10_000
"""Rows of a group that are shown."""
MOST_CHARACTERS = 11_000_000
"""Of texts and scores of all groups; of longer ones fewer rows are shown, so that the page opens at once."""
SCORE_CHARACTERS = 7
"""Of a score in the page."""
MOST_OF_A_TEXT = 200_000
MOST_TURNS = 100
"""Of a row's context, from its end: the contexts of a long chat together have the square of its turns."""
DIGITS = 5
SEED = 12345
Columns: TypeAlias = dict[tuple[str, Level], dict[str, Floats]]
"""By key and level, and then by system, a value per row."""


def make_explorer(run: Run, slices: Sequence[Slices] = ()) -> tuple[Section, JsonObject] | None:
    """Return the section and its data, with the slices that rows are in; None for a run that does not know its rows."""
    texts: dict[str, int] = {}
    by_rows = [systems for systems in group_by_rows(run) if any(res.role == "system" for res in systems.values())]
    colors = markup.assign_colors(run)
    groups = [_make_group(systems, texts, slices, colors, MOST_CHARACTERS / len(by_rows)) for systems in by_rows]
    if not groups:
        return None
    for describe in find_extensions(run, "rows"):
        for systems, group in zip(by_rows, groups, strict=True):
            rows = np.array(group["rows"]) - 1
            group |= describe(systems, rows, details=run.details, number=lambda text: _number_text(text, texts))
    notes = "".join(markup.note(_describe_choice(group)) for group in groups if group["shown"] < group["total"])
    no_script = '<noscript><p class="notice">The row explorer needs JavaScript.</p></noscript>'
    above = "".join(describe(run) for describe in find_extensions(run, "note"))
    content = f'{above}{notes}{no_script}<div id="explorer-place"></div>'
    return Section("explorer", "Row by row", content), {"groups": groups, "texts": list(texts)}


def group_by_rows(run: Run) -> list[dict[str, Result]]:
    """Return the systems whose rows are the same, together."""
    groups: dict[tuple[object, ...], dict[str, Result]] = {}
    for system, result in run.items():
        if result.rows is not None and len(result.rows):
            groups.setdefault(_identify_rows(result.rows), {})[system] = result
    return list(groups.values())


def _identify_rows(rows: RowTable) -> tuple[object, ...]:
    # Prompts and not contexts: these contain the replies of each system.
    shared = [
        (text, rows.digests[name].tobytes() if name in rows.digests else rows.texts[text].digest)
        for text, name in (("context", PROMPT), ("reference", REFERENCE))
        if name in rows.digests or text in rows.texts
    ]
    turns = None if rows.turns is None else rows.turns.tobytes()
    names = None if rows.dialogues is None else tuple(rows.dialogues)
    return rows.offsets.tobytes(), names, turns, tuple(shared)


def _number_text(text: str, texts: dict[str, int]) -> int:
    """Return the number of a text among those met so far; a very long one is truncated."""
    if len(text) > MOST_OF_A_TEXT:
        text = f"{text[:MOST_OF_A_TEXT]} … ({len(text) - MOST_OF_A_TEXT:,} characters are left out)"
    return texts.setdefault(text, len(texts))


def _make_group(
    systems: Mapping[str, Result],
    texts: dict[str, int],
    slices: Sequence[Slices],
    colors: Mapping[str, str],
    most_characters: float,
) -> JsonObject:
    rows = next(result.rows for result in systems.values() if result.rows is not None)
    columns = _collect_columns(systems, rows)
    scores = SCORE_CHARACTERS * sum(len(by_system) for (_, level), by_system in columns.items() if level is Level.TURN)
    most = int(most_characters / max(_count_text_bytes(systems) / len(rows) + scores, 1))
    shown = _choose_rows(rows.clusters, columns, max(1, min(MOST_ROWS, most)))
    dialogues, dialogue = np.unique(rows.clusters[shown], return_inverse=True)
    turns = None if rows.turns is None else rows.turns[shown].tolist()
    names = rows.dialogues
    ids = None if names is None else [escape_surrogates(names[number] or "") for number in dialogues.tolist()]
    # Of a dialogue-level key one value per dialogue is enough: that of the dialogue's first row.
    places = {Level.TURN: shown, Level.DIALOGUE: rows.offsets[dialogues]}
    return {
        "systems": [plain(name) for name in systems],
        "colors": [colors[name] for name in systems],
        "numbers": (dialogues + 1).tolist(),
        "rows": (shown + 1).tolist(),
        "dialogues": ids,
        "dialogue": dialogue.tolist(),
        "turns": None if turns is None else [None if turn == NO_TURN else turn for turn in turns],
        "context": _number_texts(rows, "context", shown, texts),
        "roles": _number_texts(rows, "roles", shown, texts),
        "reference": _number_texts(rows, "reference", shown, texts),
        "responses": [_number_responses(result.rows, shown, texts) for result in systems.values()],
        "reasons": [None for _ in systems],
        "key": next((at for at, (key, _) in enumerate(columns) if key in choose_main_keys(systems)), 0),
        "keys": [
            {"name": plain(key), "level": level.value, "better": find_better(systems, key)} for key, level in columns
        ],
        "scores": [
            [_round_values(by_system.get(name), places[level]) for name in systems]
            for (_, level), by_system in columns.items()
        ],
        "slices": _locate_slices(next(iter(systems)), shown, slices),
        "shown": len(shown),
        "total": len(rows),
    }


def _locate_slices(system: str, shown: Ints, slices: Sequence[Slices]) -> list[JsonObject]:
    """Return every slice with the places of its rows among those that are shown."""
    parts = [part for by_field in slices for part in by_field.slices if system in part.places]
    return [
        {
            "name": plain(f"{part.field}: {part.label}"),
            "rows": np.flatnonzero(np.isin(shown, part.places[system])).tolist(),
        }
        for part in parts
    ]


def _collect_columns(systems: Mapping[str, Result], rows: RowTable) -> Columns:
    """Return one value per row by key and level, then by system; the value of a dialogue is that of all its rows."""
    columns: Columns = {}
    clusters = rows.clusters
    for name, result in systems.items():
        for key, est in result.items():
            expected = len(rows) if est.level is Level.TURN else len(rows.offsets) - 1
            if est.scores is not None and len(est.scores) == expected:
                values = est.scores if est.level is Level.TURN else est.scores[clusters]
                columns.setdefault((key, est.level), {})[name] = values
    return columns


def _choose_rows(clusters: Ints, columns: Columns, most: int) -> Ints:
    """Return which rows are shown, in order: whole dialogues, as many as make up the most rows, at least one."""
    total = len(clusters)
    if total <= most:
        return np.arange(total)
    dialogues = int(clusters[-1]) + 1
    sizes, distances = np.bincount(clusters, minlength=dialogues), np.zeros(dialogues)
    np.maximum.at(distances, clusters, _measure_distances(total, columns))
    apart = _take_until(np.argsort(-distances, kind="stable"), sizes, most // 2)
    rest = np.setdiff1d(np.arange(dialogues), apart)
    drawn = _take_until(np.random.default_rng(SEED).permutation(rest), sizes, most - int(sizes[apart].sum()))
    return np.flatnonzero(np.isin(clusters, np.concatenate((apart, drawn))))


def _take_until(order: Ints, sizes: Ints, rows: int) -> Ints:
    """Return the first dialogues of an order that together have no more rows than that; the first one in any case."""
    return order[: max(1, int((np.cumsum(sizes[order]) <= rows).sum()))]


def _measure_distances(total: int, columns: Columns) -> Floats:
    """Return the largest difference between systems in each row, in standard deviations of its metric."""
    distances: Floats = np.zeros(total)
    for by_system in columns.values():
        values: Floats = np.array(list(by_system.values()))
        scored = np.isfinite(values)
        spread = float(values[scored].std()) if scored.any() else 0.0
        if spread > 0:
            low = np.where(scored, values, np.inf).min(axis=0)
            high = np.where(scored, values, -np.inf).max(axis=0)
            distances = np.maximum(distances, np.where(high > low, high - low, 0) / spread)
    return distances


def _count_text_bytes(systems: Mapping[str, Result]) -> int:
    """Return how many bytes the texts of a group have."""
    size = 0
    for result in systems.values():
        for column in result.rows.texts.values() if result.rows is not None else ():
            values = column if isinstance(column, TextColumn) else column.values
            size += int((values.ends - values.starts).sum())
    return size


def _number_texts(rows: RowTable, name: str, shown: Ints, texts: dict[str, int]) -> list[list[int]] | None:
    """Return the numbers of the texts of a column, a list per row."""
    column = rows.texts.get(name)
    if column is None:
        return None
    if isinstance(column, TextColumn):
        return [[_number_text(column[row], texts)] for row in shown.tolist()]
    number = cache(lambda place: _number_text(column.values[place], texts))  # rows share texts: each is read once
    return [
        [*_note_left_out(start, end, texts), *map(number, range(max(start, end - MOST_TURNS), end))]
        for start, end in zip(column.starts[shown].tolist(), column.ends[shown].tolist(), strict=True)
    ]


def _note_left_out(start: int, end: int, texts: dict[str, int]) -> list[int]:
    """Return the number of a text that states how many texts of a row are left out, if any."""
    more = end - start - MOST_TURNS
    return [_number_text(f"… ({more:,} before these are left out)", texts)] if more > 0 else []


def _number_responses(rows: RowTable | None, shown: Ints, texts: dict[str, int]) -> list[list[int]] | None:
    if rows is None:
        return None
    return _number_texts(rows, "response" if "response" in rows.texts else "hypotheses", shown, texts)


def _round_values(values: Floats | None, places: Ints) -> list[float | int | None] | None:
    """Return the values at some places, rounded to `DIGITS` digits; None where there is none."""
    return None if values is None else [_round_value(value) for value in values[places].tolist()]


def _round_value(value: float) -> float | int | None:
    if not math.isfinite(value):
        return None
    return int(value) if value.is_integer() and abs(value) < 1e15 else float(f"{value:.{DIGITS}g}")


def _describe_choice(group: JsonObject) -> str:
    who = ", ".join(map(markup.name, group["systems"]))
    return (
        f"Of the {group['total']:,} rows of {who}, {group['shown']:,} are here, in whole dialogues: half of them those "
        "in which the systems differ most, half of them sampled at random. The saved run holds all."
    )
