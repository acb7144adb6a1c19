"""Plots by Altair as files for papers: SVG, PNG or PDF.

Two charts per metric: the mean of each system with its interval, and how the items of each system are spread (bars,
with a line over the middle half and a tick at the median). Items are put into bins here, so that a chart has the same
size for ten rows and for ten million.

Needs the extra `report`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import count
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from dialeval.core.errors import NeedError, SettingError
from dialeval.core.files import write_bytes
from dialeval.core.jsondata import null_for_nan
from dialeval.reports.figures import plain, shorten
from dialeval.reports.metric_drawings import BINS, Scale, Spread, estimates_of, scale_of_means

if TYPE_CHECKING:
    import os
    from collections.abc import Mapping

    from dialeval.core.arrays import Floats
    from dialeval.core.fold import Estimate
    from dialeval.core.result import Run

PlotFormat = Literal["svg", "png", "pdf"]
ROW_HEIGHT = 30
WIDTH = 300
"""Of a chart, in points."""
PNG_SCALE = 3.0
TITLES = {"interval": "mean and interval", "spread": "spread over rows"}
"""What stands above the charts in a file."""
SCHEMA = "https://vega.github.io/schema/vega-lite/v6.json"
"""The version of the language that the charts are written in; it is a name, and never fetched."""


INK, SOFT, RULE, ACCENT, BAR = "#1b1f23", "#4d545b", "#dddddd", "#1f6f78", "#9fc0c2"
FONT = "Liberation Sans, Arial, Helvetica, sans-serif"
"""Vega measures text before it draws it, so it must know the font by name."""


def can_plot() -> bool:
    """Whether the extra `report` is installed."""
    from importlib.util import find_spec

    return all(find_spec(module) is not None for module in ("altair", "vl_convert"))


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
        about = {"text": TITLES[kind], "fontSize": 11, "fontWeight": "normal", "color": SOFT}
        views.append({**_charts()[kind], "width": WIDTH, "height": filling["height"], "title": about})
    params = {each["name"]: each for filling in filled for each in filling["params"]}
    return {
        "$schema": SCHEMA,
        "title": shorten(plain(key)),
        "hconcat": views,
        "spacing": 30,
        "params": list(params.values()),
        "datasets": {name: rows for filling in filled for name, rows in filling["datasets"].items()},
        "config": _config(),
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
    for at, est in enumerate(estimates.values()):
        low, high = est.interval or (est.mean, est.mean)
        ends = null_for_nan({"mean_at": est.mean, "low": low, "high": high})
        means.append({"at": at + 0.5, **ends})
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
        boxes.append(_box(at, spread.items[name]))
        for start, end, share in zip(edges, edges[1:], spread.shares[name], strict=False):
            top = round(at + 0.86 - 0.72 * max(share / spread.tallest, 0.03), 4)
            bars += [{"foot": at + 0.86, "top": top, "from": start, "to": end}] if share else []
    return _filling(estimates, "item", spread.scale, bars=bars, boxes=boxes)


def _box(at: int, values: Floats) -> dict[str, Any]:
    first, half, third = map(float, np.quantile(values, [0.25, 0.5, 0.75]))
    return {"line": at + 0.94, "first": first, "third": third, "half": half}


@cache
def _charts() -> dict[str, Any]:
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

    means = alt.Chart(alt.NamedData("means")).encode(y=down("at"))
    line = means.mark_rule(strokeWidth=2, color=ACCENT).encode(x=along("low", "mean"), x2="high:Q")
    dots = means.mark_point(filled=True, size=90, opacity=1, color=ACCENT).encode(x=along("mean_at", "mean"))
    bars = (
        alt.Chart(alt.NamedData("bars"))
        .mark_rect(color=BAR)
        .encode(x=along("from", "item"), x2="to:Q", y=down("foot"), y2="top:Q")
    )
    boxes = alt.Chart(alt.NamedData("boxes")).encode(y=down("line"))
    middle = boxes.mark_rule(color=ACCENT, strokeWidth=2).encode(x=along("first", "item"), x2="third:Q")
    median = boxes.mark_tick(color=ACCENT, thickness=2, size=9).encode(x=along("half", "item"))
    drawn = {"interval": line + dots, "spread": bars + middle + median}
    kept = ("data", "layer")  # and not the size and colours that Altair would give them
    specs = {kind: chart.to_dict() for kind, chart in drawn.items()}
    return {kind: {name: spec[name] for name in kept if name in spec} for kind, spec in specs.items()}


def _config() -> dict[str, Any]:
    text = {"labelColor": SOFT, "titleColor": SOFT, "labelFont": FONT, "labelFontSize": 12}
    return {
        "background": "transparent",
        "view": {"stroke": None},
        "axis": {**text, "gridColor": RULE, "domainColor": RULE, "tickColor": RULE},
        "axisX": {"tickCount": 5, "labelFontSize": 11, "ticks": False, "domain": False},
        "axisY": {"labelColor": INK, "labelLimit": 170, "labelPadding": 8},
        "title": {"color": INK, "font": FONT, "fontSize": 14, "anchor": "start"},
    }


def _file_name(key: str, taken: Mapping[str, Path]) -> str:
    """A file name for a metric, whatever the metric is called."""
    name = re.sub(r"[^\w.()=,-]+", "-", plain(key)).strip("-.")[:80] or "metric"
    names = (name if number == 1 else f"{name}-{number}" for number in count(1))
    return next(each for each in names if each not in taken)
