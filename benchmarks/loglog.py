"""Lines on two logarithmic scales, as an SVG of several panels that needs no style sheet and no font."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from html import escape

Points = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 380, 260
LEFT, RIGHT, TOP, BOTTOM = 52, 24, 34, 40
COLORS = ("#0b6cb3", "#d1641a", "#5b8c2a", "#8a4fa3")
"""The first is ours; all have contrast enough on white and on black."""
GRAY = "#808080"


def drawing(panels: Mapping[str, Mapping[str, Points]], across: str, up: str, columns: int = 2) -> str:
    """Panels of named lines, the first line of each drawn stronger; all panels have the same scales."""
    points = [point for lines in panels.values() for line in lines.values() for point in line]
    low_x, high_x = _decades([x for x, _ in points])
    low_y, high_y = _decades([y for _, y in points])
    rows = -(-len(panels) // columns)
    drawn = []
    for number, (title, lines) in enumerate(panels.items()):
        x, y = WIDTH * (number % columns), HEIGHT * (number // columns)
        inside = _panel(title, lines, (low_x, high_x), (low_y, high_y), across, up)
        drawn.append(f'<g transform="translate({x},{y})">{inside}</g>')
    size = f'viewBox="0 0 {WIDTH * columns} {HEIGHT * rows}" width="{WIDTH * columns}" height="{HEIGHT * rows}"'
    name = f"{up} against {across}, both logarithmic: {', '.join(panels)}; the table has the figures"
    style = 'font-family="sans-serif" font-size="11"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" role="img" aria-label="{escape(name)}" {size} {style}>'
    return f"{head}\n" + "\n".join(drawn) + "\n</svg>\n"


def _decades(values: Sequence[float]) -> tuple[int, int]:
    """The powers of ten around values."""
    low, high = math.floor(math.log10(min(values)) + 1e-9), math.ceil(math.log10(max(values)) - 1e-9)
    return low, max(high, low + 1)


def _panel(
    title: str, lines: Mapping[str, Points], xs: tuple[int, int], ys: tuple[int, int], across: str, up: str
) -> str:
    def place(x: float, y: float) -> tuple[float, float]:
        right = (math.log10(x) - xs[0]) / (xs[1] - xs[0])
        above = (math.log10(y) - ys[0]) / (ys[1] - ys[0])
        return round(LEFT + right * (WIDTH - LEFT - RIGHT), 1), round(HEIGHT - BOTTOM - above * _inside(), 1)

    parts = [f'<text x="{LEFT}" y="16" font-size="13" font-weight="bold" fill="{GRAY}">{escape(title)}</text>']
    for power in range(xs[0], xs[1] + 1):
        x, bottom = place(10.0**power, 10.0 ** ys[0])
        parts.append(_rule(x, TOP, x, bottom))
        parts.append(_label(x, bottom + 14, _power(power), "middle"))
    for power in range(ys[0], ys[1] + 1):
        left, y = place(10.0 ** xs[0], 10.0**power)
        parts.append(_rule(left, y, WIDTH - RIGHT, y))
        parts.append(_label(left - 5, y + 4, _power(power), "end"))
    parts.append(_label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, escape(across), "middle"))
    parts.append(
        f'<g transform="translate(11,{TOP + _inside() / 2}) rotate(-90)">{_label(0, 0, escape(up), "middle")}</g>'
    )
    for number, (name, line) in enumerate(lines.items()):
        parts.append(_line(name, [place(x, y) for x, y in line], COLORS[number % len(COLORS)], number))
    return "".join(parts)


def _inside() -> int:
    return HEIGHT - TOP - BOTTOM


def _line(name: str, points: Sequence[tuple[float, float]], color: str, number: int) -> str:
    path = " ".join(f"{x},{y}" for x, y in points)
    dots = "".join(f'<circle cx="{x}" cy="{y}" r="2.5" fill="{color}"/>' for x, y in points)
    key_y = TOP + 10 + 14 * number
    key = f'<line x1="{LEFT + 8}" x2="{LEFT + 24}" y1="{key_y}" y2="{key_y}" stroke="{color}" stroke-width="3"/>'
    said = f'<text x="{LEFT + 29}" y="{key_y + 4}" fill="{color}">{escape(name)}</text>'
    width = 1.6 if number else 2.6
    return f'<polyline points="{path}" fill="none" stroke="{color}" stroke-width="{width}"/>{dots}{key}{said}'


def _rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GRAY}" stroke-opacity="0.25"/>'


def _label(x: float, y: float, markup: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{GRAY}" text-anchor="{anchor}">{markup}</text>'


def _power(power: int) -> str:
    plain = {-2: "0.01", -1: "0.1", 0: "1", 1: "10", 2: "100"}
    return plain.get(power) or f'10<tspan dy="-4" font-size="8">{power}</tspan>'
