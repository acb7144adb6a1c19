"""A run of breakdown detectors as text: the lines of the original program, confusion tables, a row per turn.

Curves: breakdown over the turns of dialogues, what annotators said and what each detector expected.

`with_curves` adds `Run.details["curves"]` for a saved run: by detector a list of dialogues. Those in which detectors
and annotators differ most come first, and of many dialogues the rest is left out.

The section of the report draws an area for the fraction of annotators that saw a breakdown (X) and, above it, a
possible one (T). Each detector is a line at its probability of either, with its label at the points. Next to it is what
was said, each turn with the labels of annotators and detectors.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from html import escape
from itertools import groupby
from math import nan
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
from msgspec import Meta, Struct, convert, json

from dialeval.analysis.slices import compare_slices
from dialeval.core.display import Tabular
from dialeval.core.errors import SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Run
from dialeval.core.run_schema import Record
from dialeval.core.validation import JsonObject
from dialeval.metrics.breakdown import LABELS, BreakdownDistance, Tables
from dialeval.reports import markup
from dialeval.reports.documents import Document, Printer, Table, format_csv
from dialeval.reports.formatting import MISSING, plain, shorten, show, show_rounded
from dialeval.reports.markup import Section
from dialeval.stats.resampling import draw_resamples, percentiles
from dialeval.suites.breakdown.documents import Findings
from dialeval.suites.breakdown.plain import Detected, format_lines
from dialeval.suites.breakdown.reading import DATASET, open_data, open_detectors, read_categories

if TYPE_CHECKING:
    from dialeval.suites.breakdown.evaluation import BreakdownRun


_LENIENT = ("O", "T+X")


def format_original(run: BreakdownRun, system: str | None = None, threshold: float | None = None) -> str:
    """Return what `eval.py` of the challenge prints, byte for byte.

    Args:
        run: The run.
        system: The detector; None: the first.
        threshold: The threshold; None: the first.

    Returns:
        The text.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_original
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> format_original(run).splitlines()[8].split()
        ['Accuracy', ':', '0.625000', '(10/16)']
    """
    system = run.detectors[0] if system is None else system
    table = run.tables[system][next(iter(run.tables[system])) if threshold is None else threshold]
    detected = {
        name: Detected(counts.precision, counts.recall, counts.f1, *counts)
        for name, counts in (("X", table.x), ("T+X", table.tx))
    }
    distances = [run[system][key].mean for key in BreakdownDistance.presets]
    counts = table.dialogues, table.turns, table.references, table.correct, table.scored
    return format_lines(*counts, detected, distances)


def format_tables(run: BreakdownRun) -> str:
    """Return both confusion tables of every detector and threshold, labels in rows and references in columns.

    Args:
        run: The run.

    Returns:
        The text.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_tables
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> print(format_tables(run).splitlines()[0])
        keywords, threshold 0.5: 4 dialogues, 16 turns
    """
    blocks = [_write_tables(system, table) for system, by in run.tables.items() for table in by.values()]
    return "\n".join(blocks)


def format_turns(run: BreakdownRun, threshold: float | None = None) -> str:
    """Return a line per detector and annotated turn as CSV, all digits.

    Args:
        run: The run.
        threshold: The threshold of the reference labels; None: the first.

    Returns:
        The text; empty where there are no turns.

    Examples:
        >>> from dialeval import sample_data
        >>> from dialeval.breakdown import evaluate_breakdown, format_turns
        >>> talks = sample_data.folder() / "breakdown"
        >>> run = evaluate_breakdown(talks / "data", talks / "keywords", threshold=0.5)
        >>> format_turns(run).splitlines()[1].split(",")[:5]
        ['keywords', 'library-hours', '2', '0.5', 'O']
    """
    rows = list(run.turns(threshold))
    return format_csv(rows[0], (row.values() for row in rows)) if rows else ""


def _write_tables(system: str, table: Tables) -> str:
    scored = f", {table.turns - table.scored} of them not scored" if table.scored < table.turns else ""
    head = f"{plain(system)}, threshold {table.threshold:g}: {table.dialogues} dialogues, {table.turns} turns{scored}"
    lines = [head, "label   " + _pad_cells(LABELS) + "   |" + _pad_cells(_LENIENT) + "   <- reference"]
    for label in LABELS:
        hard, lenient = table.confusion[label].values(), table.confusion_lenient[label].values()
        lines.append(f"{label:<8}{_pad_cells(hard)}   |{_pad_cells(lenient)}")
    return "\n".join([*lines, ""])


def _pad_cells(values: Iterable[object]) -> str:
    return "".join(f"{value!s:>8}" for value in values)


# Averages of breakdown detection over data sets, and scores of the error categories of later challenges.
#
# average_over_datasets(run)       every data set counts equally, whatever its number of turns
# score_categories(data, labels)   exact match and F1 of the categories that detectors give to turns


class Macro(Struct, frozen=True):
    """The mean of a value over data sets, each counting equally."""

    mean: float
    interval: tuple[float, float] | None
    """From those of the data sets, whose dialogues are independent; None where one has none."""
    by_dataset: dict[str, float]


class MacroAverages(Tabular, Record, frozen=True):
    """Macro averages over data sets, by system and metric."""

    systems: dict[str, dict[str, Macro]]

    def lines(self) -> list[dict[str, object]]:
        return [
            {"system": system, "metric": key, "dataset": name, "value": value}
            for system, by_key in self.systems.items()
            for key, macro in by_key.items()
            for name, value in (("macro average", macro.mean), *macro.by_dataset.items())
        ]


def average_over_datasets(run: Run) -> MacroAverages:
    """Average every value over the data sets of a run; SettingError where it has one."""
    if not all(result.table is not None and DATASET in result.table.fields for result in run.values()):
        raise SettingError("there is one data set; give several (-p NAME=PATH, repeated), or leave --macro out")
    by_dataset = compare_slices(run, DATASET, systems=list(run) if len(run) > 1 else None, compared=False)
    parts = {part.label: part.run for part in by_dataset.slices}
    systems: dict[str, dict[str, Macro]] = {system: {} for system in run}
    for system, averages in systems.items():
        for key in run[system]:
            if estimates := {name: part[system][key] for name, part in parts.items() if key in part[system]}:
                averages[key] = _average(estimates)
    return MacroAverages(systems)


def _average(estimates: Mapping[str, Estimate]) -> Macro:
    values = {name: float(estimate.mean) for name, estimate in estimates.items()}
    mean = float(np.mean(list(values.values())))
    ends = [estimate.interval for estimate in estimates.values() if estimate.interval is not None]
    if len(ends) < len(values):
        return Macro(mean, None, values)
    # Zou and Donner (2008): distances to the ends of independent intervals add up as standard errors do.
    below, above = np.abs(np.array(ends) - np.array([[value] for value in values.values()])).T
    low, high = (float(np.linalg.norm(distances)) / len(ends) for distances in (below, above))
    return Macro(mean, (mean - low, mean + high), values)


class CategoryScores(Struct, frozen=True):
    """How well a detector finds the error categories of turns, with 95% intervals over dialogues."""

    turns: int
    exact_match: float
    exact_match_interval: tuple[float, float]
    f1: float
    """2 tp / (2 tp + fp + fn) over all turns."""
    f1_interval: tuple[float, float]


class ErrorCategories(Tabular, Record, frozen=True):
    """Scores of error categories by detector."""

    field: str
    systems: dict[str, CategoryScores]

    def lines(self) -> list[dict[str, object]]:
        return [
            {"detector": name, "turns": s.turns, "exact_match": s.exact_match, "f1": s.f1}
            for name, s in self.systems.items()
        ]


def score_categories(data: object, labels: object, category_field: str = "error_category") -> ErrorCategories:
    """Score the error categories that detectors give to turns: exact match of the set, and F1.

    Annotations and labels hold them in a field, a text or a list. The true set of a turn are the categories that more
    than half of its annotators gave; turns without any are not scored. Turns are matched by turn-index.
    """
    findings, systems = Findings(), {}
    stores = open_detectors(labels, findings)
    findings.raise_or_count()
    true: dict[tuple[str, object], set[str]] = {}
    for store in open_data(data).values():
        for place, named in read_categories(store, "annotations", category_field, findings):
            votes = Counter(name for names in named for name in names)
            if chosen := {name for name, count in votes.items() if 2 * count > len(named)}:
                true[place] = chosen
    if not true:
        raise SettingError(f"no annotated turn has a category in {category_field!r} that more than half gave")
    numbers = {name: number for number, name in enumerate(dict.fromkeys(dialogue for dialogue, _ in true))}
    for system, store in stores.items():
        labeled = read_categories(store, "labels", category_field, findings)
        predicted = {place: set(names[0]) for place, names in labeled if names}
        counts = np.zeros((len(numbers), 4))  # turns, exact matches, true positives, all categories of both sides
        for place, wanted in true.items():
            got = predicted.get(place, set())
            counts[numbers[place[0]]] += [1, got == wanted, len(got & wanted), len(got) + len(wanted)]
        drawn = np.concatenate([chunk @ counts for chunk in draw_resamples(len(counts))])
        turns, exact, right, every = np.concatenate([counts.sum(axis=0, keepdims=True), drawn]).T
        (em, *em_drawn), (f1, *f1_drawn) = (exact / turns).tolist(), (2 * right / every).tolist()
        ends = [percentiles(np.array(values)) for values in (em_drawn, f1_drawn)]
        systems[system] = CategoryScores(len(true), em, ends[0], f1, ends[1])
    return ErrorCategories(category_field, systems)


def _to_macro_document(averages: MacroAverages) -> Document:
    tables = []
    for by_key in averages.systems.values():
        names = list(dict.fromkeys(name for macro in by_key.values() for name in macro.by_dataset))
        rows = [
            [key, show_rounded(macro.mean, macro.interval), *(show(macro.by_dataset.get(name, nan)) for name in names)]
            for key, macro in by_key.items()
        ]
        tables.append(Table(["metric", "macro average", *names], rows))
    return Document([], tables, ["Each data set counts equally. 95% intervals."], titles=list(averages.systems))


def _to_categories_document(scores: ErrorCategories) -> Document:
    rows = [
        [name, str(s.turns), show_rounded(s.exact_match, s.exact_match_interval), show_rounded(s.f1, s.f1_interval)]
        for name, s in scores.systems.items()
    ]
    return Document([], [Table(["detector", "turns", "exact match", "F1"], rows)], ["95% intervals over dialogues."])


CATEGORIES: Printer[ErrorCategories] = Printer(_to_categories_document)
MACRO: Printer[MacroAverages] = Printer(_to_macro_document)


CURVES = "curves"
MOST = 60
"""Dialogues whose curves are kept."""
DIGITS = 4

Shares = tuple[float | None, float | None, float | None]
"""Fractions or probabilities of O, T and X."""


class Curve(Struct):
    """An entry of the detail `curves`: the turns of a dialogue, with one value of each list per turn."""

    dialogue: str
    turns: Annotated[list[int], Meta(min_length=1)]
    reference: list[str | None]
    label: list[str | None]
    shares: list[Shares]
    probabilities: list[Shares]
    said: list[tuple[int | None, bool, str]] = []
    """The turn-index of each utterance, whether it is the user's, and the text."""

    def __post_init__(self) -> None:
        rest = len(self.reference), len(self.label), len(self.shares), len(self.probabilities)
        if {len(self.turns)} != set(rest):
            raise ValueError("a curve has columns of different lengths")


class BreakdownDetails(Struct):
    """What a saved run of breakdown detectors holds in addition, by detector."""

    breakdown: dict[str, list[JsonObject]] = {}
    """Counts and confusion tables, by threshold."""
    curves: dict[str, list[Curve]] = {}

    def __post_init__(self) -> None:
        turns: dict[str, list[int]] = {}
        for curve in (curve for curves in self.curves.values() for curve in curves):
            if turns.setdefault(curve.dialogue, curve.turns) != curve.turns:
                raise ValueError(f"the curves of {curve.dialogue!r} are of different turns")


def with_curves(run: BreakdownRun, most: int = MOST) -> Run:
    """Return the run with the curves of its detectors."""
    curves: dict[str, dict[str, Curve]] = {}
    for (system, dialogue), turns in groupby(run.turns(), key=lambda row: (row["system"], row["dialogue"])):
        curves.setdefault(system, {})[dialogue] = _make_curve(dialogue, list(turns))
    if not curves:
        return run
    distances: dict[str, list[float]] = {}
    for by_dialogue in curves.values():
        for dialogue, curve in by_dialogue.items():
            distances.setdefault(dialogue, []).append(_distance(curve))
    chosen = sorted(distances, key=lambda dialogue: -float(np.mean(distances[dialogue])))[:most]
    said = {} if run.data is None else run.data.annotated.list_utterances(set(chosen))
    for by_dialogue in curves.values():
        for dialogue, curve in by_dialogue.items():
            curve.said = said.get(dialogue, [])
    chosen_curves = {system: [mine[name] for name in chosen if name in mine] for system, mine in curves.items()}
    # Through JSON: lists in place of tuples, as in a loaded run.
    kept = {system: json.decode(json.encode(entries)) for system, entries in chosen_curves.items()}
    return replace(run, details={**run.details, CURVES: kept})


def _make_curve(dialogue: str, turns: Sequence[Mapping[str, Any]]) -> Curve:
    columns = ([row[name] for row in turns] for name in ("turn", "reference", "label"))
    shares = ([_round_shares(row, kind) for row in turns] for kind in ("share", "prob"))
    return Curve(dialogue, *columns, *shares)


def _round_shares(row: Mapping[str, Any], kind: str) -> Shares:
    values = (row[f"{kind}-{label}"] for label in LABELS)
    o, t, x = (None if np.isnan(value) else round(float(value), DIGITS) for value in values)
    return o, t, x


def _distance(curve: Curve) -> float:
    """Return how far apart the two expectations of a breakdown are, on average over turns."""
    pairs = ((human[0], detector[0]) for human, detector in zip(curve.shares, curve.probabilities, strict=True))
    gaps = [abs(said - expected) for said, expected in pairs if said is not None and expected is not None]
    return float(np.mean(gaps)) if gaps else 0.0


# The section of the report.

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 150, 34, 10, 10, 20
COLORS = 6
"""Lines that have a color of their own; further detectors begin again with the first."""
SHOWN = 12
"""Dialogues that are not folded: the first ones, in which detectors and annotators differ most."""
SHOWN_LENGTH = 1_000
"""Characters of an utterance that are shown."""
BAR = 48


def make_curves_section(run: Run) -> Section | None:
    """Return the section; None for a run without curves."""
    by_system = convert(run.details.get(CURVES, {}), dict[str, list[Curve]])
    dialogues = markup.group_by_dialogue(by_system)
    if not dialogues:
        return None
    note = markup.note(
        "How likely a breakdown is, turn by turn; dialogues in which annotators and detectors differ most come first. "
        "Area: annotators who saw one (X, strong) or a possible one (T, faint). Lines: each detector’s probability of "
        "T or X, with its label. Figures: shares or probabilities of O, T and X."
    )
    colors = {system: f"line-{at % COLORS}" for at, system in enumerate(by_system)}
    legend = "".join(
        f'<li><svg aria-hidden="true" width="26" height="10"><line class="curve {color}" x2="26" y1="5" y2="5"/></svg>'
        f"{markup.name(system)}</li>"
        for system, color in colors.items()
    )
    people = '<li><span class="key-x"></span>X, annotators</li><li><span class="key-t"></span>T, annotators</li>'
    drawn = [_draw_dialogue(name, curves, colors) for name, curves in dialogues.items()]
    more = markup.count(len(drawn) - SHOWN, "further dialogue")
    rest = markup.details(more, "".join(drawn[SHOWN:])) if len(drawn) > SHOWN else ""
    content = f'{note}<ul class="legend">{people}{legend}</ul>{"".join(drawn[:SHOWN])}{rest}'
    return Section("curves", "Breakdown by turn", content)


def _draw_dialogue(name: str, curves: Mapping[str, Curve], colors: Mapping[str, str]) -> str:
    human = next(iter(curves.values()))
    drawing, talk = _draw_curves(name, human, curves, colors), _write_talk(human, curves, colors)
    title = f"<h3>{markup.name(name)}</h3>"
    box = f'<ol class="talk" tabindex="0" aria-label="Transcript of {escape(shorten(plain(name)))}">{talk}</ol>'
    return f'<section class="curves"><div>{title}{drawing}</div>{box}</section>'


def _draw_curves(name: str, human: Curve, curves: Mapping[str, Curve], colors: Mapping[str, str]) -> str:
    turns = len(human.turns)
    xs = [_x(at, turns) for at in range(turns)]
    shares = [_pick_known(share) or [1.0, 0.0, 0.0] for share in human.shares]
    lines = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(level)}" y2="{_y(level)}"/>'
        f'<text class="tick end" x="{LEFT - 6}" y="{_y(level) + 4}">{level:g}</text>'
        for level in (0, 0.5, 1)
    ]
    lines.append(_draw_area("area-t", xs, [share[1] + share[2] for share in shares]))
    lines.append(_draw_area("area-x", xs, [share[2] for share in shares]))
    ticks = zip(xs, human.turns, strict=True)
    lines += [f'<text class="tick" x="{x}" y="{HEIGHT - 4}">{escape(str(turn))}</text>' for x, turn in ticks]
    lines += [_draw_line(curve, xs, colors[system]) for system, curve in curves.items()]
    who = f"annotators and {markup.count(len(curves), 'detector')}"
    label = f"{shorten(plain(name))}: {who} over the turns; figures next to it"
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg class="turns" role="img" aria-label="{escape(label)}" {size}>{"".join(lines)}</svg>'


def _draw_area(kind: str, xs: Sequence[float], values: Sequence[float]) -> str:
    if len(xs) == 1:  # one turn has no area, so it gets a bar
        xs, values = [xs[0] - 6, xs[0] + 6], [values[0], values[0]]
    above = " ".join(f"{x},{_y(value)}" for x, value in zip(xs, values, strict=True))
    return f'<polygon class="{kind}" points="{xs[0]},{_y(0)} {above} {xs[-1]},{_y(0)}"/>'


def _draw_line(curve: Curve, xs: Sequence[float], color: str) -> str:
    """Return the line of a detector, interrupted where it has no value, with its labels."""
    points = [
        (x, _y(values[1] + values[2]), label)
        for x, shares, label in zip(xs, curve.probabilities, curve.label, strict=True)
        if (values := _pick_known(shares))
    ]
    path = " ".join(f"{x},{y}" for x, y, _ in points)
    marks = "".join(
        f'<circle class="dot {color}" cx="{x}" cy="{y}" r="7"/><text class="label" x="{x}" y="{y + 3.5}">'
        f"{escape(plain(label or '')[:1] or '?')}</text>"
        for x, y, label in points
    )
    return f'<polyline class="curve {color}" points="{path}"/>{marks}'


def _pick_known(shares: Shares) -> list[float] | None:
    """Return the values of O, T and X; None where one of them is missing."""
    values = [share for share in shares if share is not None]
    return values if len(values) == len(shares) else None


def _write_talk(human: Curve, curves: Mapping[str, Curve], colors: Mapping[str, str]) -> str:
    """Return every utterance; below those that were judged the labels, with shares or probabilities of O, T and X."""
    places: dict[int | None, int] = {turn: at for at, turn in enumerate(human.turns)}
    said = human.said or [(turn, False, "") for turn in places]
    items = []
    for turn, by_user, text in said:
        who = "User:" if by_user else f"System, turn {markup.text(str(turn))}:"
        line = f'<span class="aside">{who}</span> {markup.text(text, most=SHOWN_LENGTH)}'
        at = None if by_user else places.get(turn)
        if at is not None:
            labels = [_write_label("annotators", "", human.reference[at], human.shares[at])]
            labels += [
                _write_label(system, colors[system], curve.label[at], curve.probabilities[at])
                for system, curve in curves.items()
            ]
            line += f'<div class="judged">{"".join(labels)}</div>'
        items.append(f'<li class="{"by-user" if by_user else "by-system"}">{line}</li>')
    return "".join(items)


def _write_label(who: str, color: str, label: str | None, shares: Shares) -> str:
    """Return a label with a bar of its shares; the figures are text as well."""
    bar, x = "", 0.0
    for kind, share in zip("otx", shares, strict=True):
        bar += f'<rect class="share-{kind}" x="{x:.1f}" width="{BAR * (share or 0):.1f}" height="8"/>'
        x += BAR * (share or 0)
    written = " ".join(MISSING if share is None else f"{share:.2f}" for share in shares)
    key = f'<svg aria-hidden="true" width="14" height="8"><line class="curve {color}" x2="14" y1="4" y2="4"/></svg>'
    said = f"{markup.name(who)} <strong>{markup.text(label or MISSING)}</strong>"
    drawn = f'<svg aria-hidden="true" width="{BAR}" height="8">{bar}</svg>'
    return markup.span("judge", f"{key if color else ''}{said}{drawn}{markup.span('aside', written)}")


def _x(at: int, turns: int) -> float:
    inside = WIDTH - LEFT - RIGHT - 20
    return round(LEFT + 10 + (inside * at / (turns - 1) if turns > 1 else inside / 2), 1)


def _y(value: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value), 1)
