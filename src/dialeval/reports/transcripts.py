"""The section with transcripts of task dialogues: per dialogue the goal, then what each system did, turn by turn.

It is made from the plain data that a run holds under `transcripts` (`engine.transcripts`). Every text is escaped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dialeval.reports import markup
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.result import Run

SHOWN_LENGTH = 2_000
"""Characters of a response that are shown."""
_Entry = Mapping[str, Any]
_YES, _NO = '<span class="yes">✓ yes</span>', '<span class="no">✗ no</span>'


def transcripts(run: Run) -> Section | None:
    """The section; None for a run without transcripts."""
    by_system: Mapping[str, Sequence[_Entry]] = run.details.get("transcripts", {})
    dialogues = markup.by_dialogue(by_system)
    if not dialogues:
        return None
    lost = sum(not all(entry["success"] for entry in systems.values()) for systems in dialogues.values())
    total = max((len(rows.offsets) - 1 for system in by_system if (rows := run[system].rows) is not None), default=0)
    which = f" of {total:,}, lost ones first" if total > len(dialogues) else ""
    note = markup.note(
        f"{markup.count(len(dialogues), 'dialogue')}{which}; {lost} of them lost by some system. What a turn did is "
        "what Inform and Success were read from: an offer counts when its word is said while its domain is active."
    )
    return Section("transcripts", "Task dialogues", note + "".join(map(_dialogue, dialogues, dialogues.values())))


def _dialogue(name: str, systems: Mapping[str, _Entry]) -> str:
    verdicts = "".join(_verdict(system, entry) for system, entry in systems.items())
    goal = next(iter(systems.values()))["domains"]
    inside = _goal(name, goal) + "".join(map(_system, systems, systems.values()))
    return markup.details(f"{markup.name(name)} {verdicts}", inside, "dialogue")


def _verdict(system: str, entry: _Entry) -> str:
    kind, words = (
        ("won", "success")
        if entry["success"]
        else ("half", "inform only")
        if entry["inform"]
        else ("lost", "lost inform")
    )
    return markup.span(f"verdict {kind}", f"{markup.name(system)} {words}")


def _goal(dialogue: str, domains: Sequence[_Entry]) -> str:
    lines = [
        markup.row(markup.text(each["domain"]), markup.cells(_slots(each["wishes"]), _listed(each["asked"])))
        for each in domains
    ]
    caption = f"What the user of {markup.name(dialogue)} wants."
    return markup.table("goal", caption, markup.heads("Domain", "Wishes", "Asks for"), lines)


def _system(system: str, entry: _Entry) -> str:
    before: Mapping[str, Mapping[str, str]] = {}
    lines = []
    for turn in entry["turns"]:
        lines.append(_turn(turn, before))
        before = turn["state"]
    caption = markup.span("hidden", f"What {markup.name(system)} did, turn by turn")
    turns = markup.table("turns", caption, markup.heads("Turn", "Response", "New in the state", "What counts"), lines)
    causes = "".join(
        f"<li>Lost {markup.text(each['lost'])}, {markup.text(each['domain'])}: <strong>{markup.text(each['cause'])}"
        f"</strong>; {markup.text(each['detail'])}</li>"
        for each in entry["causes"]
    )
    why = f'<ul class="causes">{causes}</ul>' if causes else ""
    return f'<section class="system"><h3>{markup.name(system)}</h3>{_domains(system, entry)}{why}{turns}</section>'


def _domains(system: str, entry: _Entry) -> str:
    lines = []
    for each in entry["domains"]:
        verdicts = (_YES if each[name] else _NO for name in ("matched", "complete"))
        lines.append(markup.row(markup.text(each["domain"]), markup.cells(*verdicts, _listed(each["told"]))))
    caption = markup.span("hidden", f"The verdict on {markup.name(system)} by domain")
    heads = markup.heads("Domain", "Offer meets the goal", "All asked was told", "Told")
    return markup.table("verdicts", caption, heads, lines)


def _turn(turn: _Entry, before: Mapping[str, Mapping[str, str]]) -> str:
    changed = {
        domain: new
        for domain, slots in turn["state"].items()
        if (new := {slot: value for slot, value in slots.items() if before.get(domain, {}).get(slot) != value})
    }
    state = "".join(f"<div>{markup.text(domain)}: {_slots(slots)}</div>" for domain, slots in changed.items())
    if gone := _gone(turn["state"], before):
        state += f'<div class="aside">without {_listed(gone)}</div>'
    source = '<div class="aside">the true state</div>' if turn["true_state"] and state else ""
    active = _listed(turn["active"]) if turn["active"] else "none"
    how = " (estimated)" if turn["estimated"] else ""
    steps = "".join(map(_step, turn["steps"])) + f'<div class="aside">active: {active}{how}</div>'
    response = markup.cells(markup.text(turn["response"], most=SHOWN_LENGTH), kind="said")
    return markup.row(str(int(turn["turn"])), response + markup.cells(state + source, steps))


def _gone(state: Mapping[str, Mapping[str, str]], before: Mapping[str, Mapping[str, str]]) -> list[str]:
    return [
        f"{domain} {slot}" for domain, slots in before.items() for slot in slots if slot not in state.get(domain, {})
    ]


def _step(step: _Entry) -> str:
    domain, parts = markup.text(step["domain"]), []
    offer = step.get("offer")
    if offer is not None:
        more = ", …" if offer["venues"] > len(offer["names"]) else ""
        named = f" ({_listed(offer['names'])}{more})" if offer["names"] else ""
        parts.append(f"offers {markup.count(offer['venues'], 'venue') if offer['venues'] else 'no venue'}{named}")
    if step["told"]:
        parts.append(f"tells {_listed(step['told'])}")
    if step["early"]:
        parts.append(f"tells {_listed(step['early'])} before the booking, which does not count")
    return "".join(f"<div>{domain} {part}</div>" for part in parts)


def _slots(slots: Mapping[str, str]) -> str:
    return ", ".join(f"{markup.text(slot)} = {markup.text(value)}" for slot, value in slots.items()) or "nothing"


def _listed(words: Iterable[str]) -> str:
    return ", ".join(map(markup.text, words)) or "nothing"
