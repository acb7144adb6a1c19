"""Plots by Altair: interactive in the page, and as files for papers.

Two charts per metric: the mean of each system with its interval, and how the items of each system are spread (bars,
with a line over the middle half and a tick at the median). Items are put into bins here, so that a chart has the same
size for ten rows and for ten million.

In the page, Vega runs from JavaScript that `vl-convert-python` brings along; its expressions are interpreted and not
evaluated, so that the page's policy stays as strict as it is. Colours are the page's variables there, so that dark mode
follows. For files the same charts have fixed colours and sizes. Both need the extra `report`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

import numpy as np

from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.jsondata import null_for_nan
from dialeval.core.plain_text import plain
from dialeval.reports.figures import shorten, show, show_spread
from dialeval.reports.metric_drawings import BINS, Scale, Spread, estimates_of, scale_of_means
from dialeval.reports.page import script

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from dialeval.core.arrays import Floats
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

PlotFormat = Literal["svg", "png", "pdf"]
ROW_HEIGHT = 30
WIDTH = 300
"""Of a chart in a file, in points; in the page a chart fills its element."""
PNG_SCALE = 3.0
TITLES = {"interval": "mean and interval", "spread": "spread over rows"}
"""What stands above the charts in a file."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The version of the language that the charts are written in; it is a name, and never fetched."""


FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "Liberation Sans", sans-serif'
"""As in the page's style: Vega measures text before it draws it, so it must know the font by name."""


class Palette(NamedTuple):
    """The colours and the font of a chart; in the page the colours are its variables."""

    ink: str = "var(--ink)"
    soft: str = "var(--soft)"
    rule: str = "var(--rule)"
    accent: str = "var(--accent)"
    bar: str = "var(--bar)"
    font: str = FONT


PAGE = Palette()
PAPER = Palette("#1b1f23", "#4d545b", "#dddddd", "#1f6f78", "#9fc0c2", "Liberation Sans, Arial, Helvetica, sans-serif")


def can_plot() -> bool:
    """Whether the extra `report` is installed."""
    from importlib.util import find_spec

    return all(find_spec(module) is not None for module in ("altair", "vl_convert"))


@cache
def bundle() -> str:
    """Vega and the script that draws the page's plots with it."""
    import vl_convert

    written: str = vl_convert.javascript_bundle(script("text.js", "plots.js"))
    return written


def page_plots(run: Run) -> dict[str, Any]:
    """What the page's script draws: two charts, and their data for each metric, by the element it is drawn in."""
    filled = {}
    for at, key in enumerate(run.keys_in_order):
        for kind, filling in _fillings(estimates_of(run, key)).items():
            filled[f"{kind}-{at}"] = {"chart": kind, **filling, "width": "container"}
    return {"charts": _charts(PAGE), "filled": filled, "config": _config(PAGE)}


def write_plots(run: Run, folder: str | os.PathLike[str], form: PlotFormat = "svg") -> list[Path]:
    """Write a file per metric into a folder, and give their paths."""
    if form not in get_args(PlotFormat):
        raise SettingError(f"plots are written as {', '.join(get_args(PlotFormat))}, not as {form!r}")
    if not can_plot():
        raise NeedError("plots need Altair and vl-convert-python; install them: pip install 'dialeval[report]'")
    paths: dict[str, Path] = {}
    for key in run.keys_in_order:
        if (spec := _paper_spec(key, estimates_of(run, key))) is not None:
            path = Path(folder) / f"{_file_name(key, paths)}.{form}"
            write_bytes(path, _drawn(spec, form))
            paths[path.stem] = path
    return list(paths.values())


def _paper_spec(key: str, estimates: Mapping[str, Estimate]) -> dict[str, Any] | None:
    """Both charts of a metric beside each other; None where there is nothing to draw."""
    fillings = _fillings(estimates)
    if not fillings:
        return None
    filled = fillings.values()
    views = []
    for kind, filling in fillings.items():
        about = {"text": TITLES[kind], "fontSize": 11, "fontWeight": "normal", "color": PAPER.soft}
        views.append({**_charts(PAPER)[kind], "width": WIDTH, "height": filling["height"], "title": about})
    params = {each["name"]: each for filling in filled for each in filling["params"]}
    return {
        "$schema": SCHEMA,
        "title": shorten(plain(key)),
        "hconcat": views,
        "spacing": 30,
        "params": list(params.values()),
        "datasets": {name: rows for filling in filled for name, rows in filling["datasets"].items()},
        "config": _config(PAPER),
    }


def _drawn(spec: dict[str, Any], form: PlotFormat) -> bytes:
    import vl_convert

    drawn: bytes
    if form == "svg":
        drawn = vl_convert.vegalite_to_svg(spec).encode()
    elif form == "pdf":
        drawn = vl_convert.vegalite_to_pdf(spec)
    else:
        drawn = vl_convert.vegalite_to_png(spec, scale=PNG_SCALE)
    return drawn


def _fillings(estimates: Mapping[str, Estimate]) -> dict[str, dict[str, Any]]:
    """The data of the charts that a metric has."""
    made = {"interval": _means(estimates), "spread": _items(estimates)}
    return {kind: filling for kind, filling in made.items() if filling is not None}


def _filling(
    estimates: Mapping[str, Estimate], prefix: str, scale: Scale, **datasets: list[dict[str, Any]]
) -> dict[str, Any]:
    """Names, ends of the scale and rows; a name is a value and never part of an expression."""
    margin = 0.03 * (scale.high - scale.low)
    values = {"names": [shorten(plain(name)) for name in estimates], "systems": len(estimates)}
    values |= {f"{prefix}_low": scale.low - margin, f"{prefix}_high": scale.high + margin}
    return {
        "params": [{"name": name, "value": value} for name, value in values.items()],
        "datasets": datasets,
        "height": ROW_HEIGHT * len(estimates),
    }


def _means(estimates: Mapping[str, Estimate]) -> dict[str, Any] | None:
    scale = scale_of_means(estimates.values(), WIDTH)
    if scale is None:
        return None
    means = []
    for at, (name, est) in enumerate(estimates.items()):
        low, high = est.interval or (est.mean, est.mean)
        ends = null_for_nan({"mean_at": est.mean, "low": low, "high": high})
        shown = {"system": shorten(plain(name)), "mean": show(est.mean), "interval": show_spread(est) or "none"}
        means.append({"at": at + 0.5, **ends, **shown})
    return _filling(estimates, "mean", scale, means=means)


def _items(estimates: Mapping[str, Estimate]) -> dict[str, Any] | None:
    spread = Spread.of(estimates, WIDTH)
    if spread is None:
        return None
    edges = np.linspace(spread.scale.low, spread.scale.high, BINS + 1).tolist()
    bars, boxes = [], []
    for at, name in enumerate(estimates):
        if name not in spread.items:
            continue
        shown = shorten(plain(name))
        boxes.append(_box(at, shown, spread.items[name]))
        for start, end, share in zip(edges, edges[1:], spread.shares[name], strict=False):
            top = round(at + 0.86 - 0.72 * max(share / spread.tallest, 0.03), 4)
            ends = {"foot": at + 0.86, "top": top, "from": start, "to": end}
            texts = {"system": shown, "items": f"{show(start)} to {show(end)}", "share": f"{100 * share:.1f} %"}
            bars += [{**ends, **texts}] if share else []
    return _filling(estimates, "item", spread.scale, bars=bars, boxes=boxes)


def _box(at: int, name: str, values: Floats) -> dict[str, Any]:
    first, half, third = map(float, np.quantile(values, [0.25, 0.5, 0.75]))
    shown = {"median": show(half), "middle half": f"{show(first)} to {show(third)}"}
    return {"line": at + 0.94, "first": first, "third": third, "half": half, "system": name, **shown}


@cache
def _charts(palette: Palette) -> dict[str, Any]:
    """The two charts without data: rows come as named datasets, names and ends of scales as parameters."""
    import altair as alt

    def along(field: str, prefix: str) -> Any:
        ends = {"domainMin": alt.expr(f"{prefix}_low"), "domainMax": alt.expr(f"{prefix}_high")}
        return alt.X(f"{field}:Q", scale=alt.Scale(**ends, zero=False, nice=False), title=None)

    def down(field: str) -> Any:
        ends = {"domainMin": 0, "domainMax": alt.expr("systems")}
        off = {"grid": False, "ticks": False, "domain": False}
        axis = alt.Axis(values=alt.expr("sequence(0.5, systems)"), labelExpr="names[floor(datum.value)]", **off)
        return alt.Y(f"{field}:Q", scale=alt.Scale(**ends, reverse=True, nice=False, zero=False), axis=axis, title=None)

    means = alt.Chart(alt.NamedData("means")).encode(y=down("at"), tooltip=["system:N", "mean:N", "interval:N"])
    line = means.mark_rule(strokeWidth=2, color=palette.accent).encode(x=along("low", "mean"), x2="high:Q")
    dots = means.mark_point(filled=True, size=90, opacity=1, color=palette.accent).encode(x=along("mean_at", "mean"))
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_rect(color=palette.bar)
        .encode(x=along("from", "item"), x2="to:Q", y=down("foot"), y2="top:Q")
        .encode(tooltip=["system:N", "items:N", "share:N"])
    )
    boxes = alt.Chart(alt.NamedData("boxes")).encode(y=down("line"), tooltip=["system:N", "median:N", "middle half:N"])
    middle = boxes.mark_rule(color=palette.accent, strokeWidth=2).encode(x=along("first", "item"), x2="third:Q")
    median = boxes.mark_tick(color=palette.accent, thickness=2, size=9).encode(x=along("half", "item"))
    drawn = {"interval": line + dots, "spread": bars + middle + median}
    kept = ("data", "layer")  # and not the size and colours that Altair would give them
    specs = {kind: chart.to_dict() for kind, chart in drawn.items()}
    return {kind: {name: spec[name] for name in kept if name in spec} for kind, spec in specs.items()}


def _config(palette: Palette) -> dict[str, Any]:
    text = {"labelColor": palette.soft, "titleColor": palette.soft, "labelFont": palette.font, "labelFontSize": 12}
    return {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {**text, "gridColor": palette.rule, "domainColor": palette.rule, "tickColor": palette.rule},
        "axisX": {"tickCount": 5, "labelFontSize": 11, "ticks": False, "domain": False},
        "axisY": {"labelColor": palette.ink, "labelLimit": 170, "labelPadding": 8},
        "title": {"color": palette.ink, "font": palette.font, "fontSize": 14, "anchor": "start"},
    }


def _file_name(key: str, taken: Mapping[str, Path]) -> str:
    """A file name for a metric, whatever the metric is called."""
    name = re.sub(r"[^\w.()=,-]+", "-", plain(key)).strip("-.")[:80] or "metric"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each not in taken)
