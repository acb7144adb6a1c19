"""Figures of the page in which every mark is a link: dots, bins and bars of dialogues, systems with intervals.

Each is drawn twice, for wide and for narrow windows, so that texts keep their size. Colors are classes of the page.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from dialeval.core.arrays import Floats, Mask
from dialeval.reports.canvas import ChartScale, Figure, show_tick
from dialeval.reports.formatting import plain, shorten

WIDE, NARROW = 770, 350
MOST_DOTS = 400
"""Dialogues that are drawn one by one; of more, bins are."""
_BINS = 40
_LABEL = 7.0
"""Pixels of a character."""
_TALLEST = 110.0
"""Pixels that a pile of dots of few values may reach above and below the middle; of a taller one, bins are drawn."""
_FEW_VALUES = 12
Interval = tuple[float, float] | None


class Dots(NamedTuple):
    """Dialogues with a value."""

    values: Floats
    sizes: Floats
    """The rows behind each value; the area of its dot."""
    links: Sequence[str]
    titles: Sequence[str]
    labeled: Sequence[tuple[int, str]] = ()
    """Those with a text next to them."""
    name: str = ""

    def select(self, chosen: Mask) -> Dots:
        """Return some of the dialogues."""
        rows = np.flatnonzero(chosen).tolist()
        places = {row: place for place, row in enumerate(rows)}
        return self._replace(
            values=self.values[chosen],
            sizes=self.sizes[chosen],
            links=[self.links[row] for row in rows],
            titles=[self.titles[row] for row in rows],
            labeled=[(places[row], words) for row, words in self.labeled if row in places],
        )


def draw_twice(draw: Callable[[int], tuple[str, float]], label: str) -> str:
    """Return a figure as it is drawn for wide and for narrow windows; `draw` returns content and height."""
    shown = ""
    for kind, width in (("w-only", WIDE), ("n-only", NARROW)):
        content, height = draw(width)
        size = f'viewBox="0 0 {width} {height:.0f}" width="{width}" height="{height:.0f}"'
        shown += f'<div class="{kind}"><svg {size} role="group" aria-label="{escape(label)}">{content}</svg></div>'
    return shown


def draw_swarm(
    strips: Sequence[Dots],
    mean: float,
    interval: Interval,
    axis: str,
    words: str,
    *,
    better: str | None,
    around_zero: bool = True,
    prefix: str = "",
) -> str:
    """Draw the dialogues of each strip as dots; differences (`around_zero`) with their mean and interval.

    `words`: what the mean is; `axis`: the title of the axis; `prefix`: of links to bins of dialogues.
    """
    values = np.concatenate([strip.values for strip in strips])
    ends = [float(values.min()), float(values.max()), *(interval or ()), *([0.0] if around_zero else [])]

    def draw(width: int) -> tuple[str, float]:
        scale = ChartScale.from_values(ends, width, 16) or ChartScale(-1, 1, width, 16)
        content, y = "", 34.0
        for strip in strips:
            kind = "fA" if strip is strips[0] else "fB"
            y += 16 if strip.name else 0
            drawn, bottom = _draw_strip(strip, scale, width, y, (better, kind) if around_zero else (None, kind), prefix)
            name = (
                f'<text class="k s" x="0" y="{y - 12:.0f}">{escape(shorten(strip.name))}</text>' if strip.name else ""
            )
            content, y = content + drawn + name, bottom + (26 if len(strips) > 1 else 0)
        top, bottom = 26.0, y + 30
        grid = "".join(
            f'<line class="{"zero" if around_zero and not tick else "grid"}" x1="{scale(tick)}" x2="{scale(tick)}" '
            f'y1="{top}" y2="{bottom}"/><text class="m" x="{scale(tick)}" y="{bottom + 17}">'
            f"{show_tick(tick, around_zero)}</text>"
            for tick in scale.ticks
        )
        if around_zero and better is not None:
            grid += _draw_sides(values, scale, better)
        if interval is not None and around_zero:
            low, high, x = scale(interval[0]), scale(interval[1]), scale(mean)
            line = bottom - 12
            grid += f'<rect class="band" x="{low}" y="{top}" width="{high - low:.1f}" height="{line - top:.1f}"/>'
            drawn = f'<line class="ci" x1="{low}" x2="{high}" y1="{line}" y2="{line}"/>'
            drawn += f'<circle class="fk" cx="{x}" cy="{line}" r="6.5"/>'
            if low > _LABEL * len(words) + 12:
                drawn += f'<text class="k s halo e" x="{low - 12:.1f}" y="{line + 4.5}">{escape(words)}</text>'
            elif width - high > _LABEL * len(words) + 12:
                drawn += f'<text class="k s halo" x="{high + 12:.1f}" y="{line + 4.5}">{escape(words)}</text>'
            content += drawn
        content += f'<text class="e" x="{width}" y="{bottom + 38}">{escape(axis)}</text>'
        return grid + content, bottom + 46

    return draw_twice(draw, f"{axis}; {words}".removesuffix("; "))


def _draw_sides(values: Floats, scale: ChartScale, better: str) -> str:
    """Return how many dialogues are on each side of zero."""
    sign = 1 if better == "higher" else -1
    zero = scale(0)
    counts = {way: int((sign * way * values > 0).sum()) for way in (-1, 1)}
    texts = {-1: f"{counts[-1]:,} worse", 1: f"{counts[1]:,} better"}
    left, right = (-sign, sign)
    kinds = {-1: "fb", 1: "fg"}
    shown = ""
    for way, anchor, x, write in ((left, " e", zero - 10, "◀ {}"), (right, "", zero + 10, "{} ▶")):
        words = write.format(texts[way])
        room = zero if anchor else scale.width - zero
        if room > _LABEL * len(words) + 14:
            shown += f'<text class="s {kinds[way]}{anchor}" x="{x:.1f}" y="16">{words}</text>'
    return shown


def _draw_strip(
    dots: Dots, scale: ChartScale, width: int, top: float, color: tuple[str | None, str], prefix: str
) -> tuple[str, float]:
    """Return the dots or bins of a strip, and where it ends."""
    if color[0] is not None:  # those that did not change are a link above the chart
        dots = dots.select(dots.values != 0)
    if len(dots.values) > MOST_DOTS:
        return _draw_bins(dots, scale, top, color, prefix)
    most = float(dots.sizes.max(initial=1.0))
    largest = min(11.0, math.sqrt(0.32 * width * 150 / max(1, len(dots.values)) / math.pi))
    radii = np.maximum(largest * np.sqrt(dots.sizes / most), 3.0)
    xs = np.array([scale(value) for value in dots.values.tolist()])
    ys = _place_dots(xs, radii)
    reach = float((np.abs(ys) + radii).max(initial=0.0))
    if reach > _TALLEST and len(np.unique(dots.values)) <= _FEW_VALUES:
        return _draw_bins(dots, scale, top, color, prefix)
    middle = top + max(reach, 24.0) + (24.0 if dots.labeled else 4.0)
    shown = ""
    for at in np.argsort(-radii, kind="stable").tolist():
        kind = _choose_kind(float(dots.values[at]), *color)
        shown += (
            f'<a href="{dots.links[at]}"><title>{escape(plain(dots.titles[at]))}</title><circle class="{kind}" '
            f'cx="{xs[at]:.1f}" cy="{middle + ys[at]:.1f}" r="{radii[at]:.1f}"/></a>'
        )
    bottom = middle + max(reach, 24.0) + 4
    for number, (at, words) in enumerate(dots.labeled):
        x, down = float(xs[at]), number % 2
        text = _cut(words, max(12, int(0.55 * width / _LABEL)))
        room = _LABEL * len(text)
        start = min(max(0.0, x - 10), width - room)
        y = bottom + 12 if down else top + 6
        ends = (middle + ys[at] + radii[at], y - 12) if down else (y + 5, middle + ys[at] - radii[at])
        shown += f'<a href="{dots.links[at]}"><path class="rule" d="M{x:.1f} {ends[0]:.1f}V{ends[1]:.1f}"/>'
        shown += f'<text class="k halo" x="{start:.1f}" y="{y:.1f}">{escape(text)}</text></a>'
    return shown, bottom + (18 if len(dots.labeled) > 1 else 0)


def _cut(words: str, most: int) -> str:
    """Return a text that is cut at its end if it is long."""
    words = plain(words)
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


def _choose_kind(value: float, better: str | None, other: str) -> str:
    if better is None:
        return other
    return "fz" if value == 0 else "fg" if (value > 0) == (better == "higher") else "fb"


def _place_dots(xs: Floats, radii: Floats) -> Floats:
    """Return how far each dot is above or below the middle, so that no two overlap."""
    ys = np.zeros(len(xs))
    placed: list[int] = []
    for at in np.argsort(xs, kind="stable").tolist():
        near = [other for other in placed[-60:] if xs[at] - xs[other] < radii[at] + radii[other] + 1]
        options = [0.0]
        for other in near:
            away = math.sqrt(max(0.0, (radii[at] + radii[other] + 1) ** 2 - (xs[at] - xs[other]) ** 2))
            options += [ys[other] + away, ys[other] - away]
        free = (
            y
            for y in sorted(options, key=abs)
            if all(math.hypot(xs[at] - xs[o], y - ys[o]) >= radii[at] + radii[o] + 0.99 for o in near)
        )
        ys[at] = next(free, 0.0)
        placed.append(at)
    return ys


def _draw_bins(
    dots: Dots, scale: ChartScale, top: float, color: tuple[str | None, str], prefix: str
) -> tuple[str, float]:
    """Return a histogram whose bins are links to their dialogues; zero is an edge."""
    step = (scale.high - scale.low) / _BINS
    first = math.floor(scale.low / step)
    edges = np.array([step * at for at in range(first, math.ceil(scale.high / step) + 1)])
    known = dots.values[dots.values != 0] if color[0] is not None else dots.values
    counts = np.histogram(known, edges)[0]
    height, shown = 130.0, ""
    for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
        if count:
            tall = max(3.0, height * count / counts.max())
            x, size = scale(low), max(1.0, scale(high) - scale(low) - 1)
            kind = _choose_kind((low + high) / 2, *color)
            shown += (
                f'<a href="#{prefix}dialogues?low={low:.6g}&amp;high={high:.6g}"><title>{count:,} dialogues</title>'
                f'<rect class="{kind}" x="{x + 0.5:.1f}" y="{top + height - tall:.1f}" width="{size:.1f}" '
                f'height="{tall:.1f}"/></a>'
            )
    return shown, top + height


class Line(NamedTuple):
    """A system with its value, or a slice with its difference."""

    name: str
    value: float
    interval: Interval
    shown: str
    link: str
    kind: str = "k"


def draw_ranking(lines: Sequence[Line], groups: Sequence[Sequence[str]], axis: str, baseline: str) -> str:
    """Draw systems by their value with intervals; vertical lines join systems that cannot be told apart."""
    ends = [end for line in lines for end in (line.value, *(line.interval or ())) if math.isfinite(end)]

    def draw(width: int) -> tuple[str, float]:
        joined = [group for group in groups if len(group) > 1]
        right = 56 + (12 * len(joined) + 8 if joined else 0)
        left = min(0.34 * width, _LABEL * max((len(shorten(line.name)) for line in lines), default=4) + 16)
        scale = ChartScale.from_values(ends, width - left - right, 8) or ChartScale(0, 1, width - left - right, 8)
        bottom = 26 + 27.0 * len(lines)
        content = "".join(
            f'<line class="grid" x1="{left + scale(tick):.1f}" x2="{left + scale(tick):.1f}" y1="12" y2="{bottom}"/>'
            f'<text class="m" x="{left + scale(tick):.1f}" y="{bottom + 17}">{show_tick(tick)}</text>'
            for tick in scale.ticks
        )
        places = {}
        for at, line in enumerate(lines):
            y = places[line.name] = 30 + 27.0 * at
            name = escape(shorten(line.name, max(6, int((left - 8) / _LABEL))))
            weight = " s" if line.kind == "k" else ""
            content += f'<a href="{line.link}"><title>{escape(shorten(line.name))}: {line.shown}</title>'
            content += f'<rect class="hit" x="0" y="{y - 13}" width="{width}" height="26"/>'
            content += f'<text class="k{weight}" x="0" y="{y + 4.5}">{name}</text>'
            if line.interval is not None:
                low, high = (left + scale(end) for end in line.interval)
                content += f'<line class="ci {line.kind}" x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}"/>'
            if math.isfinite(line.value):
                content += f'<circle class="f{line.kind}" cx="{left + scale(line.value):.1f}" cy="{y}" r="5.5"/>'
            content += f'<text class="k e{weight}" x="{width - right + 48}" y="{y + 4.5}">{line.shown}</text></a>'
            if line.name == baseline and math.isfinite(line.value):
                x = left + scale(line.value)
                content += f'<line class="dotted" x1="{x:.1f}" x2="{x:.1f}" y1="12" y2="{bottom}"/>'
        for number, group in enumerate(joined):
            x, inside = width - right + 62 + 12 * number, sorted(places[name] for name in group)
            for one, other in pairwise(inside):
                kind = "join" if other - one < 30 else "join gap"
                content += f'<line class="{kind}" x1="{x}" x2="{x}" y1="{one - 4}" y2="{other + 4}"/>'
        content += f'<text class="e" x="{left + scale.width:.1f}" y="{bottom + 36}">{escape(axis)}</text>'
        return content, bottom + 44

    return draw_twice(draw, f"{axis}: " + "; ".join(f"{shorten(line.name)} {line.shown}" for line in lines))


def draw_slice_rows(lines: Sequence[tuple[Line, str]]) -> str:
    """Draw differences of slices on one axis, each a link; an arrow is the end of an interval that is cut off."""
    values = [line.value for line, _ in lines if math.isfinite(line.value)]
    if not values:
        return ""
    halves = sorted((i[1] - i[0]) / 2 for line, _ in lines if (i := line.interval) is not None)
    reach = 1.3 * max(map(abs, values)) + (halves[len(halves) // 2] if halves else 0.0) or 1.0
    scale = ChartScale(-reach, reach, 150, 4)
    shown = ""
    for line, count in lines:
        drawn = f'<line class="rule" x1="{scale(0)}" x2="{scale(0)}" y1="-6" y2="30"/>'
        if line.interval is not None:
            low, high = (min(reach, max(-reach, end)) for end in line.interval)
            drawn += f'<line class="ci thin {line.kind}" x1="{scale(low)}" x2="{scale(high)}" y1="12" y2="12"/>'
            drawn += f'<path class="arrow" d="M{scale(low) + 5:.1f} 7l-5 5 5 5"/>' if line.interval[0] < -reach else ""
            drawn += f'<path class="arrow" d="M{scale(high) - 5:.1f} 7l5 5-5 5"/>' if line.interval[1] > reach else ""
        if math.isfinite(line.value):
            drawn += f'<circle class="f{line.kind}" cx="{scale(line.value)}" cy="12" r="5"/>'
        shown += (
            f'<a class="slice" href="{line.link}"><b>{line.name}<small>{count}</small></b><svg viewBox="0 0 150 24" '
            f'width="150" height="24" aria-hidden="true">{drawn}</svg><span class="d">{line.shown}</span></a>'
        )
    return f'<div class="slices">{shown}</div>'


def draw_bars(lines: Iterable[tuple[str, int, int | None, str]], baseline: str) -> str:
    """Draw counts as linked bars with the baseline's count as an upright line: name, count, its count, token."""
    lines = list(lines)
    most = max((max(count, other or 0) for _, count, other, _ in lines), default=1) or 1
    shown = ""
    for name, count, other, token in lines:
        end = 440 * count / most
        mark = (
            "" if other is None else f'<rect class="fk mark" x="{440 * other / most:.1f}" y="0" width="3" height="22"/>'
        )
        after = "" if other is None else f'<tspan class="soft"> {escape(baseline)} {other:,}</tspan>'
        x = max(end, 0 if other is None else 440 * other / most + 3) + 8
        drawn = f'<rect class="fb" y="3" width="{end:.1f}" height="16"/>{mark}'
        drawn += f'<text class="k s" x="{x:.1f}" y="16">{count:,}{after}</text>'
        shown += (
            f'<a class="cause" href="#lost-shown" data-lost="{token}"><b>{name}</b>'
            '<svg viewBox="0 0 600 22" width="600" height="22" '
            f'preserveAspectRatio="xMinYMid meet" role="img" aria-label="{count:,}">{drawn}</svg></a>'
        )
    return f'<div class="causes">{shown}</div>'


GLYPHS: Mapping[str, str] = {
    "better": '<path class="fg" d="M2 27h28L16 3z"/>',
    "worse": '<path class="fb" d="M2 5h28L16 29z"/>',
    "mixed": '<path class="fg" d="M1 18h14L8 4z"/><path class="fb" d="M17 14h14l-7 14z"/>',
    "equivalent": '<path class="fk" d="M3 9h26v5H3zM3 18h26v5H3z"/>',
    "inconclusive": (
        '<path class="fk" d="M15 3h2.5v26H15z"/><path class="fn" d="M2 14h28v4H2z"/>'
        '<circle class="fn" cx="11" cy="16" r="6"/>'
    ),
    "different": '<path class="fn" d="M16 3l13 13-13 13L3 16z"/>',
    "refused": '<path class="fn" d="M3 9h26v5H3zM3 18h26v5H3z"/><path class="fb" d="M22 2l3 1.500-14 28-3-1.500z"/>',
    "ranking": '<path class="fk" d="M2 5h28v5H2zM2 14h19v5H2zM2 23h11v5H2z"/>',
    "single": '<circle class="fk" cx="16" cy="16" r="11"/>',
}


def draw_glyph(kind: str) -> str:
    """Return the mark of a kind of verdict."""
    return f'<svg class="g" viewBox="0 0 32 32" width="34" height="34" aria-hidden="true">{GLYPHS[kind]}</svg>'


_CARD_STYLE = (
    "text{font-family:Inter,'Segoe UI',Roboto,'Noto Sans','Liberation Sans','DejaVu Sans Condensed',sans-serif}"
    ".chart text{font-size:13px;fill:#656e77}.chart .m{text-anchor:middle}.chart .e{text-anchor:end}"
    ".chart .s{font-weight:620}.fb,.chart .fb{fill:#ab2e0a}.fg,.chart .fg{fill:#00796b}.fk,.chart .k{fill:#15181c}"
    ".fn{fill:#656e77}.fz{fill:#c3c7c6}.fA{fill:#1d72bd}.fB{fill:#5a2378}.grid{stroke:#e4e5e1}.zero{stroke:#15181c}.rule{stroke:#c3c7c6;fill:none}.hit{fill:none}"
    ".ci{stroke:#15181c;stroke-width:3}.ci.b{stroke:#ab2e0a}.ci.n{stroke:#656e77}.band{fill:#15181c;opacity:.055}"
    ".join{stroke:#454d55;stroke-width:1.75}.gap,.dotted{stroke:#c3c7c6;stroke-dasharray:2 4}"
)


def draw_card(kind: str, headline: str, lead: str, figure: str, left: str, right: str) -> Figure:
    """Return a card to share, 1200 by 630 pixels: the verdict, a sentence, the first figure, and what it is of."""
    size = 68 if len(headline) <= 32 else 52 if len(headline) <= 56 else 40
    lines = textwrap.wrap(plain(headline), int(1900 / size))[:3]
    content = f'<style>{_CARD_STYLE}</style><rect width="1200" height="630" fill="#fdfdfc"/>'
    place = f'x="72" y="{60 + 0.16 * size:.0f}" width="{0.74 * size:.0f}" height="{0.74 * size:.0f}"'
    content += f'<svg {place} viewBox="0 0 32 32">{GLYPHS[kind]}</svg>'
    y = 60 + 0.8 * size
    for at, line in enumerate(lines):
        style = f'style="font-size:{size}px;font-weight:700;fill:#15181c"'
        content += f'<text x="{72 + size}" y="{y + 1.1 * size * at:.0f}" {style}>{escape(line)}</text>'
    y += 1.1 * size * (len(lines) - 1) + 50
    sentences = textwrap.wrap(plain(lead), 74)
    for at, line in enumerate(sentences[:3]):
        shown = f"{line} …" if at == 2 and len(sentences) > 3 else line
        style = 'style="font-size:28px;fill:#454d55"'
        content += f'<text x="72" y="{y + 38 * at:.0f}" {style}>{escape(shown)}</text>'
    y += 38 * min(3, len(sentences))
    drawn = re.search(
        r'<svg (viewBox="0 0 [0-9]+ [0-9]+").*?>(.*)</svg>', figure.partition('<div class="n-only">')[0], re.DOTALL
    )
    if drawn is not None:
        content += f'<svg x="72" y="{y:.0f}" width="1056" height="{560 - y:.0f}" {drawn[1]}>{drawn[2]}</svg>'
    content += '<path d="M72 572H1128" stroke="#e4e5e1"/>'
    for x, anchor, words in ((72, "start", left), (1128, "end", right)):
        style = f'style="font-size:20px;fill:#656e77;text-anchor:{anchor}"'
        content += f'<text x="{x}" y="604" {style}>{escape(plain(words))}</text>'
    return Figure("card", plain(headline), plain(lead), 1200, 630, content)
