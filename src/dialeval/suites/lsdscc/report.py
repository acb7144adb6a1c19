"""Alignments in a saved run and in the rows of its report: the query, its references by group, the hypotheses."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping

from msgspec import Struct, convert

from dialeval.core.arrays import Ints
from dialeval.core.result import Run
from dialeval.reports import markup

DIGITS = 4


class AlignedHypothesis(Struct):
    """A hypothesis and the group of references that it is aligned with."""

    group: str | None
    score: float | None
    text: str


class ReferenceGroup(Struct):
    """A group of references."""

    group: str
    references: list[str]


class SavedAlignment(Struct):
    """An entry of the detail `alignments`: one query."""

    query: str | None
    mds: float | None
    hypotheses: list[AlignedHypothesis]
    groups: list[ReferenceGroup]
    unreached: list[str]


class AlignmentDetails(Struct):
    """The alignments of a saved run, by system."""

    alignments: dict[str, list[SavedAlignment]] = {}


def explain_rows(
    systems: Collection[str], rows: Ints, *, details: Mapping[str, object], number: Callable[[str], int]
) -> dict[str, object]:
    """Return the alignments of some rows for the page, texts by their numbers; nothing for systems without any."""
    tables = convert(details, AlignmentDetails).alignments
    if not all(rows.max(initial=0) < len(tables.get(system, ())) for system in systems):
        return {}
    mine = [[tables[system][row] for row in rows.tolist()] for system in systems]
    places = [{group.group: at for at, group in enumerate(entry.groups)} for entry in mine[0]]
    return {
        "context": [[] if entry.query is None else [number(entry.query)] for entry in mine[0]],
        "reference": [[number(text) for group in entry.groups for text in group.references] for entry in mine[0]],
        "groups": [
            [[number(group.group), list(map(number, group.references))] for group in entry.groups] for entry in mine[0]
        ],
        "landed": [
            [
                [
                    # The text of an answer, the place of its group, and how similar it is to that group.
                    [
                        number(hypothesis.text),
                        here.get(hypothesis.group),
                        None if hypothesis.score is None else round(hypothesis.score, DIGITS),
                    ]
                    for hypothesis in entry.hypotheses
                ]
                for entry, here in zip(entries, places, strict=True)
            ]
            for entries in mine
        ],
    }


def describe_reached_groups(run: Run) -> str:
    """Return a line per system: how many groups its answers reached."""
    counts = {
        system: (sum(len(entry.groups) for entry in table), sum(len(entry.unreached) for entry in table))
        for system, table in convert(run.details, AlignmentDetails).alignments.items()
    }
    lines = (f"{markup.name(system)} {every - lost:,} of {every:,}" for system, (every, lost) in counts.items())
    about = "Each answer lands in the group of references that it is most similar to. Groups that were reached: "
    return markup.note(f"{about}{', '.join(lines)}.") if counts else ""
