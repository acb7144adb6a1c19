"""The section of the report that shows in which group of references each hypothesis landed, and which have none.

It is made from the plain data that a run holds under `alignments` (`engine.alignments`). Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from dialeval.core.result import Run
from dialeval.reports import markup
from dialeval.reports.figures import show
from dialeval.reports.markup import Section

SHOWN_QUERIES = 50
"""Queries of a system that are shown, the first ones; the JSON holds all."""
SHOWN_LENGTH = 200
"""Characters of a text that are shown."""

_Entry = Mapping[str, Any]


def alignments(run: Run) -> Section | None:
    """The section; None for a run without alignments."""
    tables: Mapping[str, Sequence[_Entry]] = run.details.get("alignments", {})
    if not tables:
        return None
    note = markup.note(
        "Each hypothesis lands in the group of references that it is most similar to. A group without hypotheses is "
        "something one could have answered and nobody did."
    )
    return Section("alignments", "Where hypotheses landed", note + "".join(map(_system, tables, tables.values())))


def _system(name: str, table: Sequence[_Entry]) -> str:
    groups = sum(len(entry["groups"]) for entry in table)
    unreached = sum(len(entry["unreached"]) for entry in table)
    lead = f"{unreached} of {groups} groups were reached by no hypothesis."
    if len(table) > SHOWN_QUERIES:
        lead += f" The first {SHOWN_QUERIES} of {len(table)} queries:"
    queries = "".join(_query(number, entry) for number, entry in enumerate(table[:SHOWN_QUERIES], 1))
    return f'<section class="system"><h3>{markup.name(name)}</h3>{markup.note(lead)}{queries}</section>'


def _query(number: int, entry: _Entry) -> str:
    reached = len(entry["groups"]) - len(entry["unreached"])
    title = _text(entry["query"]) if entry["query"] is not None else f"Query {number}"
    state = f"{reached} of {len(entry['groups'])} groups" if entry["mds"] is not None else "not scored"
    lines = [_group(group, entry["hypotheses"]) for group in entry["groups"]]
    lost = [_hypothesis(each) for each in entry["hypotheses"] if each["group"] is None]
    if lost:
        lines.append(markup.row("none", markup.cells("", _list(lost))))
    caption = markup.span("hidden", f"Groups of references of {title}, and the hypotheses that landed there")
    table = markup.table("groups", caption, markup.heads("Group", "References", "Hypotheses"), lines)
    return markup.details(f"{title} {markup.span('aside', state)}", table)


def _group(group: _Entry, hypotheses: Sequence[_Entry]) -> str:
    here = [_hypothesis(each) for each in hypotheses if each["group"] == group["group"]]
    landed = _list(here) if here else markup.span("aside", "nobody")
    return markup.row(_text(group["group"]), markup.cells(_list(map(_text, group["references"])), landed))


def _hypothesis(hypothesis: _Entry) -> str:
    score = "" if hypothesis["score"] is None else f" {markup.span('aside', show(hypothesis['score']))}"
    return f"{_text(hypothesis['text'])}{score}"


def _list(items: Iterable[str]) -> str:
    return f"<ul>{''.join(f'<li>{item}</li>' for item in items)}</ul>"


def _text(text: str) -> str:
    return markup.text(text, most=SHOWN_LENGTH)
