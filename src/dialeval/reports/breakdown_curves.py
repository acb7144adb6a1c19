"""The section with breakdown over the turns of dialogues: what annotators said, and what each detector expected.

An area shows the share of annotators that saw a breakdown (X) and, above it, a possible one (T). Each detector is a
line at its probability of either, with its label at the points. It is made from the plain data that a run holds under
`curves` (`engine.breakdown_curves`); the same figures stand in a table below each drawing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from typing import TYPE_CHECKING, Any

from dialeval.reports import markup
from dialeval.reports.figures import MISSING, plain, shorten
from dialeval.reports.markup import Section

if TYPE_CHECKING:
    from dialeval.core.result import Run

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 150, 34, 10, 10, 20
COLOURS = 6
"""Lines that have a colour of their own; further detectors begin again with the first."""
_Curve = Mapping[str, Any]


def curves(run: Run) -> Section | None:
    """The section; None for a run without curves."""
    by_system: Mapping[str, Sequence[_Curve]] = run.details.get("curves", {})
    dialogues = markup.by_dialogue(by_system)
    if not dialogues:
        return None
    note = markup.note(
        "How likely a breakdown is, turn by turn. The area: annotators who saw one (X, strong) or a possible one (T, "
        "faint). The lines: each detector’s probability of T or X, with its label at each turn."
    )
    colours = {system: f"line-{at % COLOURS}" for at, system in enumerate(by_system)}
    legend = "".join(
        f'<li><svg aria-hidden="true" width="26" height="10"><line class="curve {colour}" x2="26" y1="5" y2="5"/></svg>'
        f"{markup.name(system)}</li>"
        for system, colour in colours.items()
    )
    people = '<li><span class="key-x"></span>X, annotators</li><li><span class="key-t"></span>T, annotators</li>'
    drawn = "".join(_dialogue(name, curves, colours) for name, curves in dialogues.items())
    return Section(
        "curves",
        "Breakdown by turn",
        f'{note}<ul class="legend">{people}{legend}</ul><div class="all-curves">{drawn}</div>',
    )


def _dialogue(name: str, curves: Mapping[str, _Curve], colours: Mapping[str, str]) -> str:
    human = next(iter(curves.values()))
    drawing = _drawing(name, human, curves, colours)
    figures = markup.details("Figures", _table(name, human, curves))
    return f'<section class="curves"><h3>{markup.name(name)}</h3>{drawing}{figures}</section>'


def _drawing(name: str, human: _Curve, curves: Mapping[str, _Curve], colours: Mapping[str, str]) -> str:
    turns = len(human["turns"])
    xs = [_x(at, turns) for at in range(turns)]
    shares = [share if None not in share else [1.0, 0.0, 0.0] for share in human["shares"]]
    lines = [
        f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{_y(level)}" y2="{_y(level)}"/>'
        f'<text class="tick end" x="{LEFT - 6}" y="{_y(level) + 4}">{level:g}</text>'
        for level in (0, 0.5, 1)
    ]
    lines.append(_area("area-t", xs, [share[1] + share[2] for share in shares]))
    lines.append(_area("area-x", xs, [share[2] for share in shares]))
    ticks = zip(xs, human["turns"], strict=True)
    lines += [f'<text class="tick" x="{x}" y="{HEIGHT - 4}">{escape(str(turn))}</text>' for x, turn in ticks]
    for system, curve in curves.items():
        lines.append(_line(curve, xs, colours[system]))
    label = (
        f"{shorten(plain(name))}: annotators and {markup.count(len(curves), 'detector')} over the turns; figures below"
    )
    size = f'viewBox="0 0 {WIDTH} {HEIGHT}" width="{WIDTH}" height="{HEIGHT}"'
    return f'<svg class="turns" role="img" aria-label="{escape(label)}" {size}>{"".join(lines)}</svg>'


def _area(kind: str, xs: Sequence[float], values: Sequence[float]) -> str:
    if len(xs) == 1:  # one turn has no area, so it gets a bar
        xs, values = [xs[0] - 6, xs[0] + 6], [values[0], values[0]]
    above = " ".join(f"{x},{_y(value)}" for x, value in zip(xs, values, strict=True))
    return f'<polygon class="{kind}" points="{xs[0]},{_y(0)} {above} {xs[-1]},{_y(0)}"/>'


def _line(curve: _Curve, xs: Sequence[float], colour: str) -> str:
    """The line of a detector, broken where it says nothing, with its labels."""
    points = [
        (x, _y(shares[1] + shares[2]), label)
        for x, shares, label in zip(xs, curve["probabilities"], curve["label"], strict=True)
        if None not in shares
    ]
    path = " ".join(f"{x},{y}" for x, y, _ in points)
    marks = "".join(
        f'<circle class="dot {colour}" cx="{x}" cy="{y}" r="7"/><text class="label" x="{x}" y="{y + 3.5}">'
        f"{escape(plain(label)[:1] or '?')}</text>"
        for x, y, label in points
    )
    return f'<polyline class="curve {colour}" points="{path}"/>{marks}'


def _table(name: str, human: _Curve, curves: Mapping[str, _Curve]) -> str:
    lines = []
    for at, turn in enumerate(human["turns"]):
        said = [(human["reference"][at], human["shares"][at])]
        said += [(curve["label"][at], curve["probabilities"][at]) for curve in curves.values()]
        cells = (f"{markup.text(label or MISSING)} {_triple(shares)}" for label, shares in said)
        lines.append(markup.row(escape(str(turn)), markup.cells(*cells)))
    caption = f"{markup.name(name)}: label, and shares or probabilities of O, T and X."
    return markup.table("", caption, markup.heads("Turn", "Annotators", *map(markup.name, curves)), lines)


def _triple(shares: Sequence[float | None]) -> str:
    return markup.span("aside", " ".join(MISSING if share is None else f"{share:.2f}" for share in shares))


def _x(at: int, turns: int) -> float:
    inside = WIDTH - LEFT - RIGHT - 20
    return round(LEFT + 10 + (inside * at / (turns - 1) if turns > 1 else inside / 2), 1)


def _y(value: float) -> float:
    return round(TOP + (HEIGHT - TOP - BOTTOM) * (1 - value), 1)
