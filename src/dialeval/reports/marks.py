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
from dialeval.reports.charts import CHARACTER, ChartScale, Figure, draw_ticks, make_dot, make_line, make_rect, make_text
from dialeval.reports.formatting import plain, shorten

WIDE, NARROW = 770, 350
MOST_DOTS = 400
"""Dialogues that are drawn one by one; of more, bins are."""
_BINS = 40
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


def make_link(href: str, about: str, *elements: str) -> str:
    """Return elements that lead to an address of the page; `about`: the tooltip."""
    title = f"<title>{escape(about)}</title>" if about else ""
    return f'<a href="{href}">{title}{"".join(elements)}</a>'


class Swarm(NamedTuple):
    """Dialogues of one or several systems on a common scale: differences, or values."""

    strips: Sequence[Dots]
    axis: str
    better: str | None
    mean: float | None = None
    """Of differences, with its interval and what it is; None for values."""
    interval: Interval = None
    words: str = ""

    def draw(self) -> str:
        """Return the dialogues of each strip as dots, differences with their mean and interval."""
        return draw_twice(self._draw, f"{self.axis}; {self.words}".removesuffix("; "))

    def _draw(self, width: int) -> tuple[str, float]:
        values, differ = np.concatenate([strip.values for strip in self.strips]), self.mean is not None
        ends = [float(values.min()), float(values.max()), *(self.interval or ()), *([0.0] * differ)]
        scale = ChartScale.from_values(ends, width, 16) or ChartScale(-1, 1, width, 16)
        content, y, gap = "", 34.0, 26 if len(self.strips) > 1 else 0
        for at, strip in enumerate(self.strips):
            y += 16 if strip.name else 0
            content += make_text("k s", 0, y - 12, shorten(strip.name)) if strip.name else ""
            drawn, bottom = self._draw_strip(strip, scale, width, y, "fB" if at else "fA")
            content, y = content + drawn, bottom + gap
        top, bottom = 26.0, y + 30
        below = draw_ticks(scale, 0, top, bottom, zero=differ)
        if differ and self.better is not None:
            below += _draw_sides(values, scale, self.better)
        if self.mean is not None and self.interval is not None:
            low, high, x = scale(self.interval[0]), scale(self.interval[1]), scale(self.mean)
            line = bottom - 12
            below += make_rect("band", low, top, high - low, line - top)
            content += make_line("ci", low, line, high, line) + make_dot("fk", x, line, 6.5)
            room = CHARACTER * len(self.words) + 12
            if low > room:
                content += make_text("k s halo e", low - 12, line + 4.5, self.words)
            elif width - high > room:
                content += make_text("k s halo", high + 12, line + 4.5, self.words)
        return below + content + make_text("e", width, bottom + 38, self.axis), bottom + 46

    def _color(self, value: float, other: str) -> str:
        if self.better is None or self.mean is None:
            return other
        return "fz" if value == 0 else "fg" if (value > 0) == (self.better == "higher") else "fb"

    def _draw_strip(self, dots: Dots, scale: ChartScale, width: int, top: float, color: str) -> tuple[str, float]:
        """Return the dots or bins of a strip, and where it ends."""
        if self.mean is not None and self.better is not None:  # those that did not change are a link above the chart
            dots = dots.select(dots.values != 0)
        most = float(dots.sizes.max(initial=1.0))
        largest = min(11.0, math.sqrt(0.32 * width * 150 / max(1, len(dots.values)) / math.pi))
        radii = np.maximum(largest * np.sqrt(dots.sizes / most), 3.0)
        xs = np.array([scale(value) for value in dots.values.tolist()])
        many = len(dots.values) > MOST_DOTS
        ys = np.zeros(len(xs)) if many else _place_dots(xs, radii)
        reach = float((np.abs(ys) + radii).max(initial=0.0))
        if many or (reach > _TALLEST and len(np.unique(dots.values)) <= _FEW_VALUES):
            return self._draw_bins(dots.values, scale, top, color)
        reach = max(reach, 24.0)
        middle = top + reach + (24.0 if dots.labeled else 4.0)
        shown = ""
        for at in np.argsort(-radii, kind="stable").tolist():
            dot = make_dot(self._color(float(dots.values[at]), color), xs[at], middle + ys[at], radii[at])
            shown += make_link(dots.links[at], plain(dots.titles[at]), dot)
        bottom = middle + reach + 4
        for number, (at, words) in enumerate(dots.labeled):
            x, down = float(xs[at]), number % 2
            text = _cut(words, max(12, int(0.55 * width / CHARACTER)))
            start = min(max(0.0, x - 10), width - CHARACTER * len(text))
            y = bottom + 12 if down else top + 6
            ends = (middle + ys[at] + radii[at], y - 12) if down else (y + 5, middle + ys[at] - radii[at])
            shown += make_link(
                dots.links[at], "", make_line("rule", x, ends[0], x, ends[1]), make_text("k halo", start, y, text)
            )
        return shown, bottom + (18 if len(dots.labeled) > 1 else 0)

    def _draw_bins(self, values: Floats, scale: ChartScale, top: float, color: str) -> tuple[str, float]:
        """Return a histogram whose bins are links to their dialogues; zero is an edge."""
        step, height, shown = (scale.high - scale.low) / _BINS, 130.0, ""
        first = math.floor(scale.low / step)
        edges = np.array([step * at for at in range(first, math.ceil(scale.high / step) + 1)])
        counts = np.histogram(values, edges)[0]
        for low, high, count in zip(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), strict=True):
            if count:
                tall = max(3.0, height * count / counts.max())
                x, size = scale(low) + 0.5, max(1.0, scale(high) - scale(low) - 1)
                bar = make_rect(self._color((low + high) / 2, color), x, top + height - tall, size, tall)
                place = f"#dialogues?low={low:.6g}&amp;high={high:.6g}"
                shown += make_link(place, f"{count:,} dialogues", bar)
        return shown, top + height


def _draw_sides(values: Floats, scale: ChartScale, better: str) -> str:
    """Return how many dialogues are on each side of zero."""
    zero, shown = scale(0), ""
    for right in (False, True):
        count = int(((values > 0) if right else (values < 0)).sum())
        good = right == (better == "higher")
        words = f"{count:,} {'better' if good else 'worse'}"
        words, kind = f"{words} ▶" if right else f"◀ {words}", "s fg" if good else "s fb"
        if (scale.width - zero if right else zero) > CHARACTER * len(words) + 14:
            shown += make_text(kind if right else f"{kind} e", zero + 10 if right else zero - 10, 16, words)
    return shown


def _cut(words: str, most: int) -> str:
    """Return a text that is cut at its end if it is long."""
    words = plain(words)
    return words if len(words) <= most else f"{words[: most - 1].rstrip()}…"


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
    joined = [group for group in groups if len(group) > 1]

    def draw(width: int) -> tuple[str, float]:
        right = 56 + (12 * len(joined) + 8 if joined else 0)
        left = min(0.34 * width, CHARACTER * max((len(shorten(line.name)) for line in lines), default=4) + 16)
        scale = ChartScale.from_values(ends, width - left - right, 8) or ChartScale(0, 1, width - left - right, 8)
        bottom = 26 + 27.0 * len(lines)
        content = draw_ticks(scale, left, 12, bottom)
        places = {line.name: 30 + 27.0 * at for at, line in enumerate(lines)}
        for line in lines:
            y, x = places[line.name], left + scale(line.value) if math.isfinite(line.value) else None
            weight = " s" if line.kind == "k" else ""
            row = make_rect("hit", 0, y - 13, width, 26)
            row += make_text(f"k{weight}", 0, y + 4.5, shorten(line.name, max(6, int((left - 8) / CHARACTER))))
            if line.interval is not None:
                low, high = (left + scale(end) for end in line.interval)
                row += make_line(f"ci {line.kind}", low, y, high, y)
            row += "" if x is None else make_dot(f"f{line.kind}", x, y, 5.5)
            row += make_text(f"k e{weight}", width - right + 48, y + 4.5, line.shown)
            content += make_link(line.link, f"{shorten(line.name)}: {line.shown}", row)
            if line.name == baseline and x is not None:
                content += make_line("dotted", x, 12, x, bottom)
        for number, group in enumerate(joined):
            x = width - right + 62 + 12 * number
            for one, other in pairwise(sorted(places[name] for name in group)):
                content += make_line("join" if other - one < 30 else "join gap", x, one - 4, x, other + 4)
        return content + make_text("e", left + scale.width, bottom + 36, axis), bottom + 44

    return draw_twice(draw, f"{axis}: " + "; ".join(f"{shorten(line.name)} {line.shown}" for line in lines))


def draw_slice_rows(lines: Sequence[tuple[Line, str]], *, drawn: bool = True) -> str:
    """Return slices, each a link; `drawn`: with differences on one axis, an arrow where an interval is cut off."""
    values = [line.value for line, _ in lines]
    halves = sorted((i[1] - i[0]) / 2 for line, _ in lines if (i := line.interval) is not None)
    reach = 1.3 * max(map(abs, values), default=0.0) + (halves[len(halves) // 2] if halves else 0.0) or 1.0
    scale = ChartScale(-reach, reach, 150, 4)
    shown = ""
    for line, count in lines:
        content = make_line("rule", scale(0), -6, scale(0), 30)
        if line.interval is not None:
            low, high = (scale(min(reach, max(-reach, end))) for end in line.interval)
            content += make_line(f"ci thin {line.kind}", low, 12, high, 12)
            content += f'<path class="arrow" d="M{low + 5:.1f} 7l-5 5 5 5"/>' if line.interval[0] < -reach else ""
            content += f'<path class="arrow" d="M{high - 5:.1f} 7l5 5-5 5"/>' if line.interval[1] > reach else ""
        content += make_dot(f"f{line.kind}", scale(line.value), 12, 5)
        figure = f'<svg viewBox="0 0 150 24" width="150" height="24" aria-hidden="true">{content}</svg>'
        shown += (
            f'<a class="slice" href="{line.link}"><b>{line.name}<small>{count}</small></b>'
            f'{figure if drawn else "<span></span>"}<span class="d">{line.shown}</span></a>'
        )
    return f'<div class="slices">{shown}</div>' if lines else ""


def draw_bars(lines: Iterable[tuple[str, int, int | None, str]], baseline: str) -> str:
    """Draw counts as linked bars with the baseline's count as an upright line: name, count, its count, token."""
    lines = list(lines)
    most = max((max(count, other or 0) for _, count, other, _ in lines), default=1) or 1
    shown = ""
    for name, count, other, token in lines:
        end, upright, after = 440 * count / most, 440 * (other or 0) / most, ""
        drawn = make_rect("fb", 0, 3, end, 16)
        if other is not None:
            drawn += make_rect("fk mark", upright, 0, 3, 22)
            after = f'<tspan class="soft"> {escape(baseline)} {other:,}</tspan>'
        x = max(end, 0 if other is None else upright + 3) + 8
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
    ".chart text{font-size:13px;fill:#656e77}.chart .m{text-anchor:middle;font-size:13px;opacity:1}"
    ".chart .e{text-anchor:end}.chart .s{font-weight:620}.fb,.chart .fb{fill:#ab2e0a}.fg,.chart .fg{fill:#00796b}"
    ".fk,.chart .k{fill:#15181c}"
    ".fn{fill:#656e77}.fz{fill:#c3c7c6}.fA{fill:#1d72bd}.fB{fill:#5a2378}.grid{stroke:#e4e5e1}.zero{stroke:#15181c}"
    ".rule{stroke:#c3c7c6;fill:none}.hit{fill:none}"
    ".ci{stroke:#15181c;stroke-width:3}.ci.b{stroke:#ab2e0a}.ci.n{stroke:#656e77}.band{fill:#15181c;opacity:.055}"
    ".join{stroke:#454d55;stroke-width:1.75}.gap,.dotted{stroke:#c3c7c6;stroke-dasharray:2 4}"
)


def draw_card(kind: str, headline: str, lead: str, figure: str, left: str, right: str) -> Figure:
    """Return a card to share, 1200 by 630 pixels: the verdict, a sentence, the first figure, and what it is of."""
    size = 68 if len(headline) <= 32 else 52 if len(headline) <= 56 else 40
    content = f'<style>{_CARD_STYLE}</style><rect width="1200" height="630" fill="#fdfdfc"/>'
    place = f'x="72" y="{60 + 0.16 * size:.0f}" width="{0.74 * size:.0f}" height="{0.74 * size:.0f}"'
    content += f'<svg {place} viewBox="0 0 32 32">{GLYPHS[kind]}</svg>'

    def write(x: float, y: float, size: int, words: str, style: str) -> str:
        return f'<text x="{x}" y="{y:.0f}" style="font-size:{size}px;{style}">{escape(words)}</text>'

    y, lines = 60 + 0.8 * size, textwrap.wrap(plain(headline), int(1900 / size))[:3]
    for at, line in enumerate(lines):
        content += write(72 + size, y + 1.1 * size * at, size, line, "font-weight:700;fill:#15181c")
    y += 1.1 * size * (len(lines) - 1) + 50
    lines = textwrap.wrap(plain(lead), 74, max_lines=3, placeholder=" …")
    for line in lines:
        content += write(72, y, 28, line, "fill:#454d55")
        y += 38
    drawn = re.search(
        r'<svg (viewBox="0 0 [0-9]+ [0-9]+").*?>(.*)</svg>', figure.partition('<div class="n-only">')[0], re.DOTALL
    )
    if drawn is not None:
        content += f'<svg x="72" y="{y:.0f}" width="1056" height="{560 - y:.0f}" {drawn[1]}>{drawn[2]}</svg>'
    content += '<path d="M72 572H1128" stroke="#e4e5e1"/>'
    content += write(72, 604, 20, plain(left), "fill:#656e77")
    content += write(1128, 604, 20, plain(right), "fill:#656e77;text-anchor:end")
    return Figure("card", plain(headline), plain(lead), 1200, 630, content, titled=False)
