"""Discovered groups, survival curves and users compared, as documents of every format."""

from __future__ import annotations

from functools import singledispatch

from dialeval.analysis.discovery import Discovery
from dialeval.analysis.survival import Survival, SurvivalCurve
from dialeval.analysis.users import UserComparison
from dialeval.reports.documents import Document, Layout, Table, make_formats
from dialeval.reports.formatting import (
    BETTER,
    DIFFERENT,
    MISSING,
    WORSE,
    plain,
    shorten,
    show_fixed,
    show_interval,
    show_p,
    show_rounded,
)

_MOST_TURNS = 12


@singledispatch
def to_document(result: object) -> Document:
    """Return sentences, tables and notes about a result."""
    raise TypeError(f"a {type(result).__name__} is not a discovery")


@to_document.register
def _(found: Discovery) -> Document:
    sentences, rows, examples = [], [], []
    for group in found.groups:
        figure = show_rounded(group.difference, group.interval, signed=True)
        way, mark = ("is worse", WORSE) if group.worse else ("is better", BETTER)
        if group.better is None:
            way, mark = "differs", DIFFERENT
        numbers = [shorten(group.system), shorten(group.key), f"{group.dialogues:,}"]
        clear = f"{figure} {mark}" if group.significant else figure
        rows.append([shorten(group.name), *numbers, clear, show_p(group.adjusted_p)])
        if group.significant:
            against = "" if group.baseline is None else f" against {shorten(group.baseline)}"
            where = f"{numbers[0]} {way}{against} in {numbers[2]} dialogues with: {plain(group.name)}"
            sentences.append(f"{where} ({numbers[1]} {figure} to the rest).")
            examples += [f"{plain(group.name)}: “{shorten(group.examples[0])}”." for _ in group.examples[:1]]
    head = ["group", "system", "metric", "dialogues", "group minus rest", "adjusted p"]
    sizes = ", ".join(f"{one:,} and {other:,} of {shorten(name)}" for name, (one, other) in found.halves.items())
    looked = ", ".join(f"{number:,} {kind}" for kind, number in found.candidates.items())
    notes = [
        *examples,
        f"One half of the dialogues ({sizes}) suggests groups, the other tests them; then they change places.",
        "Estimates and dialogues are those of the half that tests.",
        f"Candidates: {looked}. Corrected by Holm for all tests (significance level {found.alpha:g}).",
        *(f"Left out: {plain(reason)}." for reason in dict.fromkeys(found.left_out.values())),
        *found.notes,
    ]
    tables = [Table(head, rows)] if rows else []
    return Document(sentences or ["No group clearly differs from the rest."], tables, notes)


@to_document.register
def _(found: Survival) -> Document:
    sentences, summary = [], []
    for system in found.systems:
        curve = system.curve
        ends = " to ".join(MISSING if end is None else str(end) for end in (curve.median_low, curve.median_high))
        median = MISSING if curve.median is None else f"{curve.median} ({ends})"
        counts = f"{system.conversations:,}", f"{system.failed:,}"
        summary.append([shorten(system.system), *counts, median, show_p(system.adjusted_p)])
        if system.earlier is not None:
            way = "fails earlier than" if system.earlier else "fails later than"
            words = way if system.adjusted_p < 1 - found.confidence else "does not clearly differ from"
            sentences.append(f"{shorten(system.system)} {words} {summary[0][0]} (p {show_p(system.adjusted_p)}).")
    rows = [
        [str(turn), *(_show_at(system.curve, turn) for system in found.systems)]
        for turn in sorted({turn for system in found.systems for turn in system.curve.turns})[:_MOST_TURNS]
    ]
    clusters = "" if found.cluster is None else f", clustered by {plain(found.cluster)}"
    notes = [
        f"A reply fails with {plain(found.key)} {found.fails} {found.limit:g}. Others are censored at their last turn.",
        f"Kaplan-Meier, {100 * found.confidence:g}% intervals (Greenwood{clusters}); p: log-rank test, Holm.",
        *found.notes,
    ]
    names = [shorten(system.system) for system in found.systems]
    head = ["system", "conversations", "failed", "median turn of first failure", "p"]
    return Document(sentences, [Table(head, summary), Table(["without failure after turn", *names], rows)], notes)


def _show_at(curve: SurvivalCurve, turn: int) -> str:
    """Return the fraction without a failure after a turn, with its interval."""
    reached = sum(at <= turn for at in curve.turns) - 1
    if reached < 0 or turn > curve.turns[-1]:
        return MISSING
    low, high = 100 * curve.low[reached], 100 * curve.high[reached]
    return f"{100 * curve.survival[reached]:.0f}% ({low:.0f} to {high:.0f})"


@to_document.register
def _(users: UserComparison) -> Document:
    apart = "cannot be told apart from real ones" if users.p >= users.alpha else "can be told apart from real ones"
    accuracy = f"accuracy {show_fixed(users.accuracy, 2)} ({show_interval(users.interval, 2)})"
    sentences = [f"Simulated users {apart}: {accuracy}, p {show_p(users.p)}; 0.5 is chance."]
    if advice := [habit.advice for habit in users.habits if habit.advice]:
        sentences.append(f"To be more like real users: {', '.join(advice)}.")
    rows = []
    for habit in users.habits:
        values = show_fixed(habit.real, 2), show_fixed(habit.simulated, 2), show_interval(habit.interval, 2)
        rows.append([habit.name, *values, show_p(habit.adjusted_p)])
    tables = [Table(["per dialogue", "real", "simulated", "simulated minus real", "adjusted p"], rows)]
    for key, ranking in users.ranking.items():
        means = [[shorten(name), *(show_fixed(mean, 3) for mean in both)] for name, both in ranking["systems"].items()]
        tables.append(Table([f"{shorten(key)} (tau {show_fixed(ranking['tau'], 2)})", "real", "simulated"], means))
    words = {"real": users.real_words, "simulated": users.simulated_words}
    notes = [f"Typical of {side} users: {plain(', '.join(some))}." for side, some in words.items() if some]
    notes.append(f"{users.dialogues[0]:,} real and {users.dialogues[1]:,} simulated dialogues have user turns.")
    notes.append("Accuracy: naive Bayes on words, cross-fitted, p of permuted dialogues. Habits are corrected by Holm.")
    return Document(sentences, tables, notes)


def lay_out(result: object) -> Layout:
    """Lay a result out for a rich console."""
    return Layout(to_document(result))


FORMATS = make_formats(to_document)
