"""Where the answers to a query landed, for the rows of the explorer: the query, its references by group, the answers.

It is made from the plain data that a run holds under `alignments` (`engine.alignments`).
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any

from dialeval.core.result import Run
from dialeval.reports import markup

DIGITS = 4
_Tables = Mapping[str, Sequence[Mapping[str, Any]]]


def landed(
    tables: _Tables, systems: Collection[str], rows: Iterable[int], number: Callable[[str], int]
) -> dict[str, Any]:
    """What some rows of a group show beside scores, texts by their numbers; nothing for systems without alignments."""
    rows = list(rows)
    if not all(max(rows, default=0) < len(tables.get(system, ())) for system in systems):
        return {}
    mine = [[tables[system][row] for row in rows] for system in systems]
    places = [{group["group"]: at for at, group in enumerate(entry["groups"])} for entry in mine[0]]
    return {
        "context": [[] if entry["query"] is None else [number(entry["query"])] for entry in mine[0]],
        "reference": [[number(text) for group in entry["groups"] for text in group["references"]] for entry in mine[0]],
        "groups": [
            [[number(group["group"]), list(map(number, group["references"]))] for group in entry["groups"]]
            for entry in mine[0]
        ],
        "landed": [
            [
                [_answer(each, number, here) for each in entry["hypotheses"]]
                for entry, here in zip(entries, places, strict=True)
            ]
            for entries in mine
        ],
    }


def _answer(hypothesis: Mapping[str, Any], number: Callable[[str], int], places: Mapping[str, int]) -> list[Any]:
    """The text of an answer, the place of its group, and how similar it is to that group."""
    score = hypothesis["score"]
    return [
        number(hypothesis["text"]),
        places.get(hypothesis["group"]),
        None if score is None else round(score, DIGITS),
    ]


def reached(run: Run) -> str:
    """A line per system: how many groups its answers reached."""
    tables: _Tables = run.details.get("alignments", {})
    counts = {
        system: [sum(len(entry[name]) for entry in table) for name in ("groups", "unreached")]
        for system, table in tables.items()
    }
    said = (f"{markup.name(system)} {all_ - lost:,} of {all_:,}" for system, (all_, lost) in counts.items())
    about = "Each answer lands in the group of references that it is most similar to. Groups that were reached: "
    return markup.note(f"{about}{', '.join(said)}.") if counts else ""
