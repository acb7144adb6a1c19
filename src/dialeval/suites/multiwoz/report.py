"""The section with task dialogues: what lost them, counted, and each dialogue with its systems side by side.

It is made from what a run holds under `transcripts` and `failures` (`with_transcripts`). A count is a button that
leaves only the dialogues which that system lost by that cause: as many as it says, those without a transcript by their
names. Every text is escaped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

import msgspec

from dialeval.core.result import Run
from dialeval.core.validation import dump
from dialeval.reports import markup
from dialeval.reports.documents import format_csv
from dialeval.reports.formatting import MISSING, plain, show
from dialeval.reports.marks import draw_bars
from dialeval.reports.markup import Section
from dialeval.suites.multiwoz.explanations import (
    Explanation,
    SavedDomain,
    SavedStep,
    SavedTurn,
    TaskDetails,
    Transcript,
    group_by_cause,
)

SHOWN_LENGTH = 2_000
"""Characters of a text that are shown."""
_Colors = Mapping[str, str]
_Failures = Mapping[str, Mapping[str, Sequence[str]]]
"""System -> cause -> the names of the dialogues that it lost."""


def make_transcripts_section(run: Run) -> Section | None:
    """Return the section; None for a run without transcripts."""
    details = msgspec.convert(run.details, TaskDetails)
    by_system, failures = details.transcripts, details.failures
    dialogues = markup.group_by_dialogue(by_system)
    if not dialogues:
        return None
    total = max((len(rows.offsets) - 1 for system in by_system if (rows := run[system].table) is not None), default=0)
    which = f" of {total:,}, some for each cause" if total > len(dialogues) else ""
    tokens = _number_causes(failures)
    lost = _group_tokens(failures, tokens)
    note = markup.note(
        f"{markup.count(len(dialogues), 'dialogue')}{which}. Each turn shows what Inform and Success are computed "
        "from: an offer counts when its word is said while its domain is active."
    )
    colors = markup.assign_colors(run)
    shown = [_write_dialogue(name, systems, lost.get(name, ()), colors) for name, systems in dialogues.items()]
    causes, first = _draw_causes(failures, tokens)
    example = next((at for at, name in enumerate(dialogues) if first in lost.get(name, ())), 0)
    one = shown.pop(example).replace("<details ", "<details open ", 1)
    hidden = ((markup.name(name), " ".join(sorted(mine))) for name, mine in lost.items() if name not in dialogues)
    others = "".join(f'<p class="dialogue" data-lost="{mine}">{name}</p>' for name, mine in hidden)
    if others:
        others = markup.note("Lost too, without a transcript here (dialeval multiwoz explain prints one):") + others
    rest = markup.details(f"{len(shown):,} more dialogues", "".join(shown) + others, "rest") if shown or others else ""
    status = '<p class="note" role="status" id="lost-shown"></p>'
    return Section("transcripts", "Task dialogues", f"{causes}{_draw_domains(run)}{status}{note}{one}{rest}")


def _draw_causes(failures: _Failures, tokens: Mapping[tuple[str, str], str]) -> tuple[str, str]:
    """Return the causes of the system that lost most as bars next to the first system's, and the first one's token."""
    totals = {system: sum(map(len, causes.values())) for system, causes in failures.items()}
    if not any(totals.values()):
        return "", ""
    baseline, system = next(iter(failures)), max(totals, key=lambda name: totals[name])
    causes = sorted(failures[system], key=lambda cause: -len(failures[system][cause]))
    lines = [
        (
            markup.text(cause),
            len(failures[system][cause]),
            None if system == baseline else len(failures[baseline].get(cause, ())),
            tokens[system, cause],
        )
        for cause in causes
    ]
    upright = "" if system == baseline else f" The upright line is {markup.name(baseline)}."
    title = f"<h3>Why {markup.name(system)} failed {markup.count(totals[system], 'time')}</h3>"
    about = markup.note(f"Dialogues with this failure; some have more than one.{upright} Select a bar to read them.")
    return f"{title}{about}{draw_bars(lines, plain(baseline))}", lines[0][3]


def _draw_domains(run: Run) -> str:
    """Return the success by domain and system, shaded by the difference from the first system."""
    systems = [name for name, result in run.items() if any(key.startswith("success/") for key in result)]
    keys = dict.fromkeys(key for name in systems for key in run[name] if key.startswith("success/"))
    lines, places = [], [name for name in run if name not in run.baselines]
    for key in keys:
        cells, first, domain = [], None, key.partition("/")[2]
        for name in systems:
            mean = run[name][key].mean if key in run[name] else math.nan
            first = mean if first is None else first
            change = mean - first
            kind = "" if not abs(change) >= 2 else f"{'g' if change > 0 else 'h'}{min(3, 1 + int(abs(change) // 12))}"
            shown = MISSING if math.isnan(mean) else f"{mean:.0f}%"
            more = f" <small>{'+' * (change > 0)}{show(change, 0)}</small>" if abs(change) >= 0.5 else ""
            system = f"&amp;system={places.index(name)}" if name in places else ""
            link = f"#dialogues?slice={quote(f'domain: {plain(domain)}')}{system}"
            cells.append(f'<a class="{kind}" href="{link}">{shown}{more}</a>')
        count = max(run[name][key].scored for name in systems if key in run[name])
        title = f"{markup.text(domain)}<small>{markup.count(count, 'dialogue')}</small>"
        lines.append(
            (sum(run[name][key].mean for name in systems if key in run[name]), markup.row(title, markup.cells(*cells)))
        )
    if not lines:
        return ""
    heads = markup.heads("", *map(markup.name, systems))
    table = markup.table("heat", "", heads, [line for _, line in sorted(lines, key=lambda line: line[0])])
    about = "Tasks completed, and the difference from the first system in points; select one for its dialogues."
    return f"<h3>By domain</h3>{markup.note(about)}{table}"


def _number_causes(failures: _Failures) -> dict[tuple[str, str], str]:
    """Return a short name for each system and cause, by which the page finds dialogues."""
    causes = list(dict.fromkeys(cause for mine in failures.values() for cause in mine))
    return {(s, c): f"{i}-{j}" for i, s in enumerate(failures) for j, c in enumerate(causes)}


def _group_tokens(failures: _Failures, tokens: Mapping[tuple[str, str], str]) -> dict[str, list[str]]:
    """Return for each lost dialogue the short names of the systems and causes that lost it."""
    lost: dict[str, list[str]] = {}
    for system, causes in failures.items():
        for cause, names in causes.items():
            for name in names:
                lost.setdefault(name, []).append(tokens[system, cause])
    return lost


def _write_dialogue(name: str, systems: Mapping[str, Transcript], lost: Iterable[str], colors: _Colors) -> str:
    verdicts = "".join(_write_verdict(system, entry) for system, entry in systems.items())
    goal = next(iter(systems.values())).domains
    ends = {system: _write_end(entry) for system, entry in systems.items()}
    inside = _write_goal(goal) + _write_sides(ends, colors)
    turns = {system: {turn.turn: turn for turn in entry.turns} for system, entry in systems.items()}
    states: dict[str, Mapping[str, Mapping[str, str]]] = {system: {} for system in systems}
    for at in sorted({at for mine in turns.values() for at in mine}):
        said = {system: _write_turn(mine[at], states[system]) for system, mine in turns.items() if at in mine}
        states |= {system: mine[at].state for system, mine in turns.items() if at in mine}
        user = next((mine[at].user for mine in turns.values() if at in mine), None)
        asked = "" if user is None else f'<p class="user">{markup.text(user, most=SHOWN_LENGTH)}</p>'
        inside += f'<section class="turn"><h3>Turn {at + 1}</h3>{asked}{_write_sides(said, colors)}</section>'
    opening = f'<details class="dialogue" data-lost="{" ".join(sorted(lost))}">'
    return f'{opening}<summary>{markup.name(name)} <span class="verdicts">{verdicts}</span></summary>{inside}</details>'


def _write_sides(parts: Mapping[str, str], colors: _Colors) -> str:
    swatch = markup.span("swatch", "")
    sides = "".join(
        f'<div class="side {colors.get(system, "anchor")}">{swatch}{markup.name(system)}{part}</div>'
        for system, part in parts.items()
    )
    return f'<div class="sides">{sides}</div>'


def _write_verdict(system: str, entry: Transcript) -> str:
    kind, words = (
        ("won", "success") if entry.success else ("half", "inform only") if entry.inform else ("lost", "lost inform")
    )
    return markup.span(kind, f"{markup.name(system)} {words} ")


def _write_goal(domains: Sequence[SavedDomain]) -> str:
    lines = (
        f"<li>{markup.text(domain.domain)}: {_join_slots(domain.wishes)}; asks for {_join_words(domain.asked)}</li>"
        for domain in domains
    )
    return f'<h3>Goal of the user</h3><ul class="goal">{"".join(lines)}</ul>'


def _write_end(entry: Transcript) -> str:
    """Return how a dialogue ended for a system: domain by domain, and why it was lost."""
    domains = ""
    for domain in entry.domains:
        offer = _write_check(domain.matched, "offer meets the goal", "offer misses the goal")
        answers = _write_check(domain.complete, "provided all that was asked", "did not provide all")
        domains += f"<li>{markup.text(domain.domain)}: {offer}, {answers} ({_join_words(domain.provided)})</li>"
    causes = "".join(
        f"<li>Lost {markup.text(domain.lost)}, {markup.text(domain.domain)}: <strong>{markup.text(domain.cause)}"
        f"</strong>; {markup.text(domain.detail)}</li>"
        for domain in entry.causes
    )
    return f"<ul>{domains}</ul>" + (f'<ul class="causes-list">{causes}</ul>' if causes else "")


def _write_check(flag: bool, yes: str, no: str) -> str:
    return markup.span("yes", f"✓ {yes}") if flag else markup.span("no", f"✗ {no}")


def _write_turn(turn: SavedTurn, before: Mapping[str, Mapping[str, str]]) -> str:
    changed = {
        domain: new
        for domain, slots in turn.state.items()
        if (new := {slot: value for slot, value in slots.items() if before.get(domain, {}).get(slot) != value})
    }
    whose = "true state" if turn.true_state else "state"
    notes = [f"{whose}, {markup.text(domain)}: {_join_slots(slots)}" for domain, slots in changed.items()]
    lost = ((domain, slot) for domain, slots in before.items() for slot in slots)
    if gone := [f"{domain} {slot}" for domain, slot in lost if slot not in turn.state.get(domain, {})]:
        notes.append(f"{whose} without {_join_words(gone)}")
    active = _join_words(turn.active) if turn.active else "none"
    notes.append(f"active: {active}{' (estimated)' if turn.estimated else ''}")
    steps = "".join(map(_write_step, turn.steps))
    lines = "".join(f'<div class="aside">{note}</div>' for note in notes)
    return f'<p class="said">{markup.text(turn.response, most=SHOWN_LENGTH)}</p>{steps}{lines}'


def _write_step(step: SavedStep) -> str:
    domain, parts = markup.text(step.domain), []
    if (offer := step.offer) is not None:
        more = ", …" if offer.venues > len(offer.names) else ""
        named = f" ({_join_words(offer.names)}{more})" if offer.names else ""
        parts.append(f"offers {markup.count(offer.venues, 'venue') if offer.venues else 'no venue'}{named}")
    if step.provided:
        parts.append(f"provides {_join_words(step.provided)}")
    if step.early:
        parts.append(f"provides {_join_words(step.early)} before the booking, which does not count")
    return "".join(f'<div class="step">{domain} {part}</div>' for part in parts)


def _join_slots(slots: Mapping[str, str]) -> str:
    return ", ".join(f"{markup.text(slot)} = {markup.text(value)}" for slot, value in slots.items()) or "nothing"


def _join_words(words: Iterable[str]) -> str:
    return ", ".join(map(markup.text, words)) or "nothing"


def make_ceiling_table(run: Run) -> Iterable[tuple[str, list[list[str]]]]:
    """Yield the table of causes by which gold replies fail, for a run with baselines."""
    for system in run.baselines:
        if causes := run.details["failures"].get(system):
            lines = [[cause, f"{len(names):,}"] for cause, names in causes.items()]
            yield f"Dialogues that {system} fails", [["cause", "dialogues"], *lines]


# The table of failed dialogues: how many lost Inform or Success by each cause, and each of them with its detail.

FIELDS = ("system", "dialogue", "lost", "domain", "cause", "detail")


def list_failures(failures: Mapping[str, Sequence[Explanation]]) -> list[dict[str, str]]:
    """Return a row per cause of a failed dialogue."""
    return [
        {"system": system, "dialogue": explanation.dialogue, **msgspec.structs.asdict(cause)}
        for system, explanations in failures.items()
        for explanation in explanations
        for cause in explanation.causes
    ]


def write_failures_table(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """Return for each system the number of dialogues by cause, then all rows by cause, as text."""
    rows = list_failures(failures)
    parts = []
    for system, lost in failures.items():
        lost_rows = [row for row in rows if row["system"] == system]
        causes = group_by_cause(lost)
        number = "1 dialogue" if len(lost) == 1 else f"{len(lost)} dialogues"
        parts.append(f"{plain(system)}: {number} lost inform or success\n\n")
        listed = Counter((row["cause"], row["domain"]) for row in lost_rows)
        domains = sorted({domain for _, domain in listed})
        counts = [
            [cause, str(len(lost_by)), *(str(listed[cause, domain] or "") for domain in domains)]
            for cause, lost_by in causes.items()
        ]
        parts.append(_align_columns(("cause", "dialogues", *map(plain, domains)), counts))
        ordered = sorted(lost_rows, key=lambda row: list(causes).index(row["cause"]))
        heads = FIELDS[1:]
        parts.append("\n" + _align_columns(heads, [[plain(row[head]) for head in heads] for row in ordered]) + "\n")
    return "".join(parts)


def write_failures_csv(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """Return a line per cause as CSV."""
    return format_csv(FIELDS, (row.values() for row in list_failures(failures)))


def write_failures_json(failures: Mapping[str, Sequence[Explanation]]) -> str:
    """Return a list with a row per cause as JSON."""
    return dump(list_failures(failures)).decode()


def _align_columns(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [list(heads), *map(list, rows)]
    widths = [max(len(line[at]) for line in lines) for at in range(len(heads))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)
