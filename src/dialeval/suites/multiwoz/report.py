"""The section with task dialogues: what lost them, counted, and each dialogue with its systems side by side.

It is made from what a run holds under `transcripts` and `failures` (`with_transcripts`). A count is a button that
leaves only the dialogues which that system lost by that cause: as many as it says, those without a transcript by their
names. Every text is escaped.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import quote

import msgspec

from dialeval.core.display import Tabular
from dialeval.core.result import Run
from dialeval.core.validation import JsonObject
from dialeval.reports import markup
from dialeval.reports.documents import Document, Printer, Table
from dialeval.reports.drawings import assign_colors
from dialeval.reports.formatting import MISSING, plain, show
from dialeval.reports.marks import draw_bars
from dialeval.reports.markup import Section
from dialeval.suites.multiwoz.explanations import Cause, Explanation, TaskDetails, Transcript, group_by_cause

SHOWN_LENGTH = 2_000
"""Characters of a text that are shown."""
_Colors = Mapping[str, str]
_Failures = Mapping[str, Mapping[str, Sequence[str]]]
"""System -> cause -> the names of the dialogues that it lost."""


def make_transcripts_section(run: Run) -> Section | None:
    """Return the section; None for a run without transcripts."""
    details = msgspec.convert(run.details, TaskDetails)
    by_system, failures = details.transcripts, details.failures
    dialogues: dict[str, dict[str, Transcript]] = {}
    for system, transcripts in by_system.items():
        for transcript in transcripts:
            dialogues.setdefault(transcript.dialogue, {})[system] = transcript
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
    colors = assign_colors(run)
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
    goal = next(iter(systems.values())).goal
    inside = f"<h3>Goal of the user</h3>{_write_lines('aside', goal)}"
    inside += _write_sides({system: _write_causes(entry.causes) for system, entry in systems.items()}, colors)
    turns = {system: {turn.turn: turn for turn in entry.turns} for system, entry in systems.items()}
    for at in sorted({at for mine in turns.values() for at in mine}):
        here = {system: mine[at] for system, mine in turns.items() if at in mine}
        user = next(iter(here.values())).user
        asked = "" if user is None else f'<p class="user">{markup.text(user, most=SHOWN_LENGTH)}</p>'
        said = {
            system: f'<p class="said">{markup.text(turn.response, most=SHOWN_LENGTH)}</p>'
            f"{_write_lines('step', turn.steps)}{_write_lines('aside', turn.notes)}"
            for system, turn in here.items()
        }
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


def _write_causes(causes: Iterable[Cause]) -> str:
    items = "".join(f"<li>{markup.text(str(cause))}</li>" for cause in causes)
    return f'<ul class="causes-list">{items}</ul>' if items else ""


def _write_lines(kind: str, lines: Iterable[str]) -> str:
    return "".join(f'<div class="{kind}">{markup.text(line)}</div>' for line in lines)


def make_ceiling_table(run: Run) -> Iterable[tuple[str, list[list[str]]]]:
    """Yield the table of causes by which gold replies fail, for a run with baselines."""
    for system in run.baselines:
        if causes := run.details["failures"].get(system):
            lines = [[cause, f"{len(names):,}"] for cause, names in causes.items()]
            yield f"Dialogues that {system} fails", [["cause", "dialogues"], *lines]


@dataclass(frozen=True)
class FailedDialogues(Tabular):
    """The dialogues that lost Inform or Success, by system; a row for each of their causes."""

    systems: Mapping[str, Sequence[Explanation]]

    def lines(self) -> list[JsonObject]:
        return [
            {"system": system, "dialogue": explanation.dialogue, **msgspec.structs.asdict(cause)}
            for system, explanations in self.systems.items()
            for explanation in explanations
            for cause in explanation.causes
        ]

    def to_dict(self) -> list[JsonObject]:
        """Return the rows for JSON."""
        return self.lines()


def _to_document(failed: FailedDialogues) -> Document:
    """Count the dialogues by cause and domain, and list the rows below."""
    titles, tables = [], []
    for system, lost in failed.systems.items():
        counts = Counter((cause.cause, cause.domain) for explanation in lost for cause in explanation.causes)
        domains = sorted({domain for _, domain in counts})
        rows = [
            [cause, str(len(names)), *(str(counts[cause, domain] or "") for domain in domains)]
            for cause, names in group_by_cause(lost).items()
        ]
        titles.append(f"{system}: {markup.count(len(lost), 'dialogue')} lost inform or success")
        tables.append(Table(["cause", "dialogues", *domains], rows))
    notes = [
        f"{system}, {explanation.dialogue}: {cause}"
        for system, explanations in failed.systems.items()
        for explanation in explanations
        for cause in explanation.causes
    ]
    return Document([], tables, notes, titles)


FAILURES: Printer[FailedDialogues] = Printer(_to_document)
