"""The first screen of the report and its table of metrics: which system is better, by how much, and where to look.

A block is the systems that share data and metrics; each has a verdict, key figures, a figure whose marks lead to
dialogues, the dialogues, slices, and all metrics. Everything that says better or worse asks the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from dialeval.analysis.alignment import AlignedDialogues, align_dialogues
from dialeval.analysis.comparison import MOST_TESTS, Best, Comparison, SystemRanking, compare, find_best_systems
from dialeval.analysis.difference import Difference
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.slices import Slices
from dialeval.analysis.values import find_better, find_metric
from dialeval.analysis.verdict import decide, judge_system
from dialeval.core.arrays import Floats, Ints
from dialeval.core.errors import SettingError
from dialeval.core.result import Run
from dialeval.metrics.trials import count_trials
from dialeval.reports import formatting as fmt
from dialeval.reports import markup
from dialeval.reports.charts import Figure
from dialeval.reports.comparisons import describe_roughness, find_leaders, list_caveats
from dialeval.reports.drawings import draw_pass_k
from dialeval.reports.formatting import MISSING, list_names, plain, shorten, show_interval, show_p, show_value, state_p
from dialeval.reports.marks import MOST_DOTS, Dots, Line, Swarm, draw_card, draw_glyph, draw_ranking

BY_SYSTEM = ("alignments", "transcripts", "failures", "trials")
"""Details of a run by system that sections are made of."""
ALPHA = 0.05
"""The significance level of differences of human ratings."""
MOST_PAIRS = 20
"""Systems of which a matrix of all pairs is shown."""
_DOTS = "One dot per {}; larger dots have more replies. Select one to read it."
LONG = 12
"""Metrics of a table before the others are folded."""
COLORS = {"better": "good", "worse": "bad"}
"""Classes of what is decided about a difference."""
_READINGS = {
    "equivalent": "= equivalent",
    "different": f"{fmt.DIFFERENT} different",
    "inconclusive": "no clear difference",
    "untested": "not tested",
}


@dataclass(frozen=True)
class Block:
    """Systems with the same data, and what the page shows of them."""

    run: Run
    comparison: Comparison | None
    aligned: AlignedDialogues | None
    """The dialogues of the systems; None where a run does not know its rows."""
    slices: Slices | None = None
    reason: str = ""
    """Why the systems could not be compared."""
    people: Any = field(default=None, repr=False)
    """The estimates of human ratings, if there are some."""

    @property
    def systems(self) -> list[str]:
        """The systems without floors and ceilings, the baseline first."""
        names = [name for name, result in self.run.items() if result.role == "system"] or list(self.run)
        return names if self.comparison is None else [self.comparison.baseline, *self.comparison.systems]

    @property
    def system(self) -> str:
        """The system that is looked at first: the only one that is compared, or the one that lost most."""
        if self.comparison is None:
            return self.systems[-1]
        losses = [(-row.size if row.worse else row.size, row.system) for row in self.rows if row.key == self.key]
        return min(losses, default=(0.0, self.comparison.systems[0]), key=lambda loss: loss[0])[1]

    @property
    def rows(self) -> list[Difference]:
        """The differences to the baseline."""
        return [] if self.comparison is None else self.comparison.differences

    @property
    def key(self) -> str:
        """The metric that the first screen is about: what the verdict follows from."""
        panel = [key for key in choose_main_keys(self.run) if any(key in result for result in self.run.values())]
        if self.comparison is None:
            return next(iter(panel or self.run.keys_in_order), "")
        if self.comparison.ranking is not None:
            return self.comparison.ranking.key
        for system in self.comparison.systems:
            standing = judge_system(self.comparison.of(system), self.comparison.panel)
            decided = sorted([*standing.worse, *standing.better], key=lambda row: -row.size)
            undecided = sorted(standing.undecided, key=lambda row: (row.p, -row.size))
            for row in [*decided, *undecided, *standing.equivalent, *standing.other]:
                return row.key
        return next(iter(self.comparison.keys), "")

    @property
    def dialogue_key(self) -> str:
        """The metric by which dialogues are sorted: that of the first screen if it has a value per dialogue."""
        keys = [self.key, *choose_main_keys(self.run), *self.run.keys_in_order]
        return next((key for key in keys if any(key in r and r[key].scores is not None for r in self.run.values())), "")

    @property
    def main(self) -> Difference | None:
        """The difference that the first screen is about."""
        system = self.system
        return next((row for row in self.rows if (row.system, row.key) == (system, self.key)), None)

    @property
    def unit(self) -> str:
        """What a cluster is called."""
        return "dialogues" if self.comparison is None else self.comparison.design.unit


def make_block(run: Run, compared: bool | Comparison, slices: Slices | None = None, people: object = None) -> Block:
    """Return what the page shows of a run, whose systems are compared with the first."""
    comparison, reason = compared if isinstance(compared, Comparison) else None, ""
    if compared and comparison is None and len(run) - len(run.baselines) > 1:
        try:
            comparison = compare(run, most_tests=MOST_TESTS)
        except SettingError as error:
            reason = str(error)
    real = {name: result for name, result in run.items() if result.role == "system"} or dict(run.items())
    has_rows = all(result.table is not None and len(result.table) for result in real.values())
    aligned = align_dialogues(real, None if comparison is None else comparison.baseline) if has_rows else None
    return Block(run, comparison, aligned, slices, reason, people)


# The verdict.


def write_headline(block: Block) -> tuple[str, str]:
    """Return the kind of the verdict and its headline."""
    comparison = block.comparison
    if block.reason:
        return "refused", "These systems cannot be compared"
    if (rated := _judge_by_people(block)) is not None:
        return rated
    if comparison is None:
        return "single", _describe_alone(block)
    kind = "ranking" if len(comparison.systems) > 1 else comparison.verdict.kind
    return kind, comparison.verdict.headline.rstrip(".")


def _describe_alone(block: Block) -> str:
    """Return the value of the only system, or the names of systems that were not compared."""
    estimate = block.run[block.systems[0]].get(block.key)
    if len(block.systems) > 1 or estimate is None:
        return list_names(block.systems)
    return f"{shorten(block.systems[0])}: {shorten(block.key)} {show_value(estimate.mean, estimate.interval)}"


def write_verdict(block: Block) -> str:
    """Return the verdict as markup: glyph, headline, sentences, and what was read."""
    kind, headline = write_headline(block)
    lead = markup.text(" ".join(filter(None, state_lead(block)))).replace("p = ", "p\u00a0=\u00a0")
    comparison = block.comparison
    caveats = [] if comparison is None else [*list_caveats(comparison), *describe_roughness(comparison)]
    read = " ".join(f"<span>{part}</span>" for part in _describe_reading(block))
    return (
        f'<div class="verdict" id="verdict">{draw_glyph(kind)}'
        f'<h1 class="headline{" long" if len(headline) > 60 else ""}">{markup.text(headline)}</h1>'
        f'<p class="lead">{lead}</p>{markup.bullets(caveats, "caveats")}'
        f'<p class="read"><b>Read:</b> {read}</p></div>'
    )


def state_lead(block: Block) -> Iterator[str]:
    """Yield the sentences below the headline."""
    comparison = block.comparison
    if _judge_by_people(block) is not None:
        yield from _state_people(block)
    if block.reason:
        # The first word may be the name of a system, which keeps its letters.
        yield f"{block.reason.rstrip('.')}."
    elif comparison is not None and comparison.ranking is not None:
        yield from _state_ranking(block, comparison.ranking, find_leaders(comparison))
    elif comparison is not None:
        if (counts := _count_passed(block)) is not None:
            (judged, passed), (others_judged, others_passed) = counts
            before = f"{shorten(comparison.baseline)} {others_passed:,} of {others_judged:,}"
            yield f"It passed {passed:,} of {judged:,} trials, {before}."
        yield comparison.verdict.sentences[0]
    elif (estimate := block.run[block.systems[0]].get(block.key)) is not None and estimate.interval is not None:
        yield f"Likely {show_interval(estimate.interval)} for other {block.unit} of the same kind."


def _state_ranking(block: Block, ranking: SystemRanking, leaders: Sequence[str]) -> Iterator[str]:
    """Yield which systems cannot be told apart from the best, and which is last by how much."""
    behind = [name for name in ranking.systems if name not in leaders]
    if len(leaders) > 1:
        yield f"{list_names(leaders[1:])} cannot be told apart from {shorten(leaders[0])} on {shorten(ranking.key)}."
    if behind:
        first, last = (block.run[name][ranking.key] for name in (ranking.systems[0], ranking.systems[-1]))
        gap = show_value(abs(last.mean - first.mean), first.interval or last.interval)
        way = "lower" if last.mean < first.mean else "higher"
        others = f"The other {len(behind)} are clearly behind; " if len(behind) > 1 else ""
        yield f"{others}{shorten(ranking.systems[-1])} is last on {shorten(ranking.key)}, {gap} {way}."


def _judge_by_people(block: Block) -> tuple[str, str] | None:
    """Return the verdict of human ratings, which no metric outvotes; None without ratings of two systems."""
    rows = [] if block.people is None else [row for row in block.people.differences if row.system in block.systems]
    if not rows:
        return None
    clear = [row for row in rows if row.adjusted_p < ALPHA]
    higher, lower = ([row.system for row in clear if (row.value > 0) == way] for way in (True, False))
    kind = "inconclusive" if not clear else "better" if higher else "worse"
    parts = " and ".join(f"{list_names(names)} {way}" for names, way in ((higher, "higher"), (lower, "lower")) if names)
    baseline = shorten(block.people.baseline)
    if not clear:
        headline = (
            f"People do not clearly rate {list_names([row.system for row in rows])} higher or lower than {baseline}"
        )
    else:
        headline = f"People rate {parts} than {baseline}"
    return kind if len(rows) == 1 else "ranking", headline


def _state_people(block: Block) -> Iterator[str]:
    """Yield the mean human ratings of the systems, and what the metrics say."""
    rated = [f"{shorten(row.system)} {show_value(row.value, row.interval)}" for row in block.people.systems]
    yield f"Mean ratings ({plain(block.people.quality)}): {', '.join(rated[:4])}."
    for row in block.people.differences[:2]:
        size = f"{show_value(row.value, row.interval, True)} ({show_interval(row.interval)})"
        yield f"{shorten(row.system)} minus {shorten(row.baseline or block.people.baseline)}: {size}."
    yield "" if block.comparison is None else f"By metrics: {block.comparison.verdict.headline}."


def _describe_reading(block: Block) -> Iterator[str]:
    """Yield what was read of the systems; parts with a problem are links to the account."""
    accounts = [result.account for name in block.systems if (result := block.run[name]).account is not None]
    if len(block.systems) > 2:
        yield f"{len(block.systems):,} systems"
    if accounts:
        yield markup.count(sum(account.conversations for account in accounts), "conversation")
        replies = sum(account.replies for account in accounts)
        yield f"{replies:,} {'reply' if replies == 1 else 'replies'}"
        failed = sum(account.failed for account in accounts)
        yield f'<a href="#method">{failed:,} without a reply</a>' if failed else "0 without a reply"
    else:
        levels = dict.fromkeys((est.level, est.units) for name in block.systems for est in block.run[name].values())
        yield ", ".join(markup.count(rows, str(level)) for level, rows in sorted(levels)[:4])
    if block.comparison is None or len(block.comparison.systems) > 1:
        return
    design = block.comparison.design
    if design.name == "unpaired":
        yield "different users, compared as independent samples"
    else:
        yield f"{design.common:,} {design.unit} in both"
    for name, only in ((block.comparison.baseline, design.baseline_only), (block.system, design.system_only)):
        if only and design.name != "unpaired":
            link = "#dialogues?show=alone"
            yield f'<a href="{link}">{len(only):,} only in {markup.name(name)}, left out</a>'


# Key figures, and the figure next to them.


def write_hero(block: Block) -> str:
    """Return the key figures and the figure of the first screen."""
    figures = "".join(
        f'<div><dt>{what}<small>{small}</small></dt><dd class="{kind}">{number}</dd></div>'
        for number, what, small, kind in list_key_figures(block)
    )
    title, about, drawn = draw_first_figure(block)
    if not figures and not drawn:
        return ""
    shown = f'<dl class="key">{figures}</dl>' if figures else ""
    caption = f"<figcaption><b>{title}</b>{about}</figcaption>"
    button = '<button type="button" class="png" hidden>Copy as picture</button>'
    shown += f"<figure>{caption}{drawn}{button}</figure>" if drawn else ""
    return f'<div class="hero{"" if figures and drawn else " alone"}">{shown}</div>'


def list_key_figures(block: Block) -> Iterator[tuple[str, str, str, str]]:
    """Yield at most three numbers: markup of the number, what it is, a line of small print, and its color."""
    comparison, row = block.comparison, block.main
    if comparison is None and len(block.systems) == 1:
        for key in list(dict.fromkeys([block.key, *choose_main_keys(block.run)]))[:3]:
            if (estimate := block.run[block.systems[0]].get(key)) is not None:
                small = f"likely {show_interval(estimate.interval)}" if estimate.interval else ""
                yield show_value(estimate.mean, estimate.interval), markup.name(key), small, ""
    if comparison is None or len(comparison.systems) > 1 or row is None:
        return
    counts = _count_passed(block)
    if counts is not None:
        (judged, passed), (others_judged, others_passed) = counts
        before = f"{shorten(row.baseline)}: {others_passed:,} of {others_judged:,}"
        yield f"{passed:,} <small>of {judged:,}</small>", "trials passed", before, ""
    likely = f"{100 * comparison.confidence:g}% interval {show_interval(row.interval)}, " if row.interval else ""
    what = f"on {markup.name(row.key)}{_describe_scale(block.run, row.key)}"
    size = show_value(row.difference, row.interval, True)
    yield size, what, f"{likely}{state_p(row.adjusted_p)}", COLORS.get(decide(row), "")
    if row.wins is not None and row.ties is not None and row.losses is not None:
        sides = [(row.wins, "better", "gains"), (row.losses, "worse", "losses")]
        (most, way, show), (least, other, _) = sides if row.wins > row.losses else sides[::-1]
        rest = f"{least:,} got {other}" + (f", {row.ties:,} did not change" if row.ties else "")
        link = f'<a href="#dialogues?show={show}">{most:,}</a>'
        total = row.wins + row.ties + row.losses
        yield f"{link} <small>of {total:,}</small>", f"{block.unit} got {way}", rest, ""
    if counts is None:
        yield from _show_other_change(comparison, row)


def _show_other_change(comparison: Comparison, row: Difference) -> Iterator[tuple[str, str, str, str]]:
    """Yield the metric of another family that changed most, else what difference would show."""
    others = [other for other in comparison.of(row.system) if other.key.partition("/")[0] != row.key.partition("/")[0]]
    decided = [other for other in others if decide(other) in ("better", "worse", "different")]
    if decided:
        changed = max(decided, key=lambda other: (other.key in comparison.panel, other.size))
        size, interval = show_value(changed.difference, changed.interval, True), changed.interval
        if changed.baseline_mean > 0 and changed.mean > 0:
            size = f"{100 * changed.difference / changed.baseline_mean:+.0f}%".replace("-", fmt.MINUS)
        values = f"{show_value(changed.mean, interval)}, was {show_value(changed.baseline_mean, interval)}"
        yield size, markup.name(changed.key), values, ""
    elif decide(row) == "inconclusive" and row.detectable > 0:
        small = f"with {comparison.design.clusters:,} {comparison.design.unit}, at 80% power"
        yield show_value(row.detectable, row.interval), "difference that would show", small, ""


def _count_passed(block: Block) -> list[tuple[int, int]] | None:
    """Return the trials that have a reward and those that passed, of the system and the baseline."""
    trials: Mapping[str, Sequence[Mapping[str, Any]]] = block.run.details.get("trials", {})
    pair = [block.system, block.systems[0]]
    return [count_trials(trials[name]) for name in pair] if {*pair} <= trials.keys() else None


def _describe_scale(run: Run, key: str) -> str:
    """Return the range of a metric with finite ends, in words."""
    estimate = next((result[key] for result in run.values() if key in result), None)
    metric = None if estimate is None else find_metric(estimate)
    low, high = (-math.inf, math.inf) if metric is None else metric.bounds_of(key)
    return f", {low:g} to {high:g}" if math.isfinite(high - low) else ""


def draw_first_figure(block: Block) -> tuple[str, str, str]:
    """Return the title, an explanation, and the figure of the first screen, all markup."""
    if block.run.details.get("trials", {}).keys() & set(block.systems):
        figure = draw_pass_k(block.run)
        if figure is not None:
            about = "The chance that a task is solved that many times in a row (pass^k). "
            about += '<a href="#dialogues">Read the worst trial</a>.'
            return markup.text("How often a success can be repeated"), about, figure.inline
    if _judge_by_people(block) is not None:
        return _draw_people(block)
    if len(block.systems) > 2:
        return _draw_systems(block)
    if block.aligned is None or not block.dialogue_key:
        return "", "", ""
    if block.comparison is not None and block.comparison.design.name != "unpaired":
        return _draw_differences(block, block.aligned)
    return _draw_values(block, block.aligned)


def _draw_differences(block: Block, aligned: AlignedDialogues) -> tuple[str, str, str]:
    """Return the differences of dialogues with their mean."""
    key, one = block.dialogue_key, block.unit.removesuffix("s")
    dots = _make_dots(block, *aligned.measure(block.system, key))
    if not len(dots.values):
        return "", "", ""
    row = next((row for row in block.rows if (row.system, row.key) == (block.system, key)), None)
    mean = float(np.average(dots.values, weights=dots.sizes)) if row is None else row.difference
    interval, better = None if row is None else row.interval, find_better(block.run, key)
    words = f"average {show_value(mean, interval, True)}" + (f", likely {show_interval(interval)}" if interval else "")
    below, above = (int((way * dots.values > 0).sum()) for way in (-1, 1))
    worse, gained = (above, below) if better == "lower" else (below, above)
    title = f"{worse:,} of {len(dots.values):,} {block.unit} got worse, {gained:,} got better"
    if better is None:
        title = f"{shorten(key)} changed in {worse + gained:,} of {len(dots.values):,} {block.unit}"
    axis = f"{shorten(key)}, {shorten(block.system)} minus {shorten(aligned.systems[0])}"
    drawn = Swarm([dots], axis, better, mean, interval, words).draw()
    binned = "#dialogues?low=" in drawn
    about = f"Select a bar to list its {block.unit}." if binned else _DOTS.format(one)
    ties = len(dots.values) - below - above
    about += f' <a href="#dialogues?show=ties">{ties:,} did not change</a>.' if ties else ""
    return markup.text(title), about, drawn


def _draw_values(block: Block, aligned: AlignedDialogues) -> tuple[str, str, str]:
    """Return the values of dialogues, of each system below each other."""
    key, one, strips = block.dialogue_key, block.unit.removesuffix("s"), []
    for name in aligned.systems:
        dots = _make_dots(block, aligned.list_values(name, key), np.diff(aligned.find_rows(name)[1]))
        if len(dots.values):
            strips.append(dots._replace(name=name if len(aligned.systems) > 1 else ""))
    if not strips:
        return "", "", ""
    drawn = Swarm(strips, shorten(key), find_better(block.run, key)).draw()
    return markup.text(f"{shorten(key)} of each {one}"), _DOTS.format(one), drawn


def _make_dots(block: Block, values: Floats, counts: Ints) -> Dots:
    """Return the dialogues that have a value; the two worst have the user's first words next to them."""
    places = np.flatnonzero(np.isfinite(values))
    sign = -1 if find_better(block.run, block.dialogue_key) == "lower" else 1
    chosen, openings = values[places], [""] * len(places)
    if block.aligned is not None and len(places) <= MOST_DOTS:
        openings = [find_opening(block.aligned, at) for at in places.tolist()]
    titles = [f"{opening}  {fmt.show(value, 2)}" for value, opening in zip(chosen.tolist(), openings, strict=True)]
    worst = np.argsort(sign * chosen, kind="stable")[:2].tolist() if len(places) > 2 else []
    links = [f"#d{at + 1}" for at in places.tolist()]
    sizes = np.maximum(counts[places].astype(np.float64), 1.0)
    return Dots(chosen, sizes, links, titles, [(at, openings[at]) for at in worst if openings[at]])


def find_opening(aligned: AlignedDialogues, dialogue: int) -> str:
    """Return the first words of the user in a dialogue, else its name."""
    for at, name in enumerate(aligned.systems):
        table, place = aligned.results[name].table, int(aligned.places[dialogue, at])
        if table is not None and place >= 0:
            texts = table.texts_at("context", int(table.offsets[place]))
            ids = table.dialogues[place] if table.dialogues is not None else None
            return (texts[0] if texts else ids) or f"{place + 1}"
    return ""


def _draw_systems(block: Block) -> tuple[str, str, str]:
    """Return the dot plot of many systems, sorted, with the groups that tests do not tell apart."""
    key, comparison = block.key, block.comparison
    estimates = {name: block.run[name][key] for name in block.systems if key in block.run[name]}
    if not estimates:
        return "", "", ""
    ranking, leaders = (None, []) if comparison is None else (comparison.ranking, find_leaders(comparison))
    decided = {row.system: decide(row) for row in block.rows if row.key == key}
    sign = 1 if find_better(block.run, key) == "lower" else -1
    order = ranking.systems if ranking is not None else sorted(estimates, key=lambda name: sign * estimates[name].mean)
    decimals = fmt.align_decimals([e.mean for e in estimates.values()], [e.interval for e in estimates.values()])
    lines = []
    for name in order:
        kind = {"worse": "b", "better": "k"}.get(decided.get(name, ""), "n")
        if ranking is not None:
            kind = "k" if name in leaders else "b"
        if (est := estimates.get(name)) is not None:
            shown, link = fmt.show(est.mean, decimals), f"#dialogues?system={block.systems.index(name)}"
            lines.append(Line(name, est.mean, est.interval, shown, link, kind))
    title = f"{len(lines)} systems by {shorten(key)}"
    about = "Value with its 95% interval. Select a system to read its dialogues."
    about += " Lines at the right join systems that cannot be told apart." if ranking is not None else ""
    axis, baseline = (
        f"{shorten(key)}{_describe_scale(block.run, key)}",
        "" if comparison is None else comparison.baseline,
    )
    return markup.text(title), about, draw_ranking(lines, [] if ranking is None else ranking.groups, axis, baseline)


def _draw_people(block: Block) -> tuple[str, str, str]:
    """Return the dot plot of mean human ratings, the highest first."""
    people, lines = block.people, []
    for row in sorted(people.systems, key=lambda row: -row.value):
        link = f"#dialogues?system={block.systems.index(row.system)}"
        lines.append(Line(row.system, row.value, row.interval, show_value(row.value, row.interval), link, "n"))
    about = f"Mean rating with its {100 * people.confidence:g}% interval. Select a system to read its dialogues."
    quality = shorten(people.quality)
    return f"{len(lines)} systems by human ratings", about, draw_ranking(lines, [], quality, people.baseline or "")


def write_card(block: Block, version: str, date: str | None) -> Figure:
    """Return the verdict with the first figure as a picture to share."""
    kind, headline = write_headline(block)
    design = None if block.comparison is None else block.comparison.design
    left = f"{design.clusters:,} {design.unit} · {shorten(block.key)}" if design is not None else shorten(block.key)
    right = " · ".join(filter(None, [f"dialeval {version}", date]))
    return draw_card(kind, headline, " ".join(state_lead(block)), draw_first_figure(block)[2], left, right)


# All metrics.


def write_metrics(block: Block) -> str:
    """Return the section of all metrics: a line per metric for one or two systems, a line per system for more."""
    if not block.run.keys_in_order:
        return ""
    if len(block.systems) > 2:
        return _write_systems(block)
    comparison = block.comparison
    panel = list(comparison.panel) if comparison is not None else choose_main_keys(block.run)
    keys = sorted(block.run.keys_in_order, key=lambda key: key not in panel)
    heads = ["", *(markup.system_name(at, name) for at, name in enumerate(block.systems))]
    heads += ["difference", f"{100 * comparison.confidence:g}% interval", "p", "reading"] if comparison else []
    heads += ["95% interval"] if comparison is None and len(block.systems) == 1 else []
    lines = [_write_metric(block, key, len(heads)) for key in keys]
    cut = max(LONG, len(panel))
    cut = cut if len(lines) > cut + 3 else len(lines)
    head = markup.heads(*heads, sortable=True)
    table = markup.table("metrics", "", head, lines[:cut])
    if folded := lines[cut:]:
        table += markup.details(markup.count(len(folded), "more metric"), markup.table("metrics", "", head, folded))
    if block.run.baselines:
        floors = _write_system_table(block, keys[:8], block.run.baselines, Best({}, 0))
        table += markup.details("Floors and ceilings", floors)
    about = f"{shorten(block.system)} minus {shorten(block.systems[0])}. " if comparison is not None else ""
    tests = f"p-values are corrected for {comparison.tests} tests." if comparison and comparison.tests > 1 else ""
    return markup.section("metrics", "All metrics", table, markup.text(about + tests) if about else "")


def _write_metric(block: Block, key: str, width: int) -> str:
    row = next((row for row in block.rows if (row.system, row.key) == (block.system, key)), None)
    estimates = [block.run[name].get(key) for name in block.systems]
    present = [estimate for estimate in estimates if estimate is not None]
    intervals = [row.interval] if row is not None and row.interval else [estimate.interval for estimate in present]
    decimals = fmt.align_decimals([estimate.mean for estimate in present], intervals)
    values = [math.nan if estimate is None else estimate.mean for estimate in estimates]
    if row is not None and not math.isnan(row.mean):
        values = [row.baseline_mean, row.mean]
    cells = [fmt.show(value, decimals) for value in values]
    if row is not None:
        note = f' title="{markup.attribute(row.reason)}"' if row.reason else ""
        interval = show_interval(row.interval) if row.interval else MISSING
        difference = f"<b>{show_value(row.difference, row.interval, True)}</b>"
        reading = f"<span{note}>{read_difference(row)}</span>"
        cells += [difference, markup.span("iv", interval), show_p(row.adjusted_p), reading]
    elif len(block.systems) == 1:
        cells += [markup.span("iv", (present and fmt.show_spread(present[0], None)) or MISSING)]
    elif block.comparison is None:
        spreads = ["" if estimate is None else fmt.show_spread(estimate) for estimate in estimates]
        cells = [f"{cell} <small>{spread}</small>" for cell, spread in zip(cells, spreads, strict=True)]
    cells += [MISSING] * (width - 1 - len(cells))
    better, small = find_better(block.run, key), [_describe_scale(block.run, key).removeprefix(", ")]
    small += [f"{better} is better"] if better else []
    partly = [estimate for estimate in present if estimate.scored != estimate.units][:1]
    small += [f"{estimate.scored:,} of {estimate.units:,} scored" for estimate in partly]
    return markup.row(f"{markup.name(key)}<small>{'; '.join(filter(None, small))}</small>", markup.cells(*cells))


def read_difference(row: Difference) -> str:
    """Return what is decided about a difference, as markup."""
    kind = decide(row)
    if kind in COLORS:
        return markup.span(COLORS[kind], f"{fmt.MARK_OF[kind]} {kind}")
    if kind == "different" and row.key == "length":
        return "longer" if row.difference > 0 else "shorter"
    if kind == "inconclusive" and row.interval is not None and not row.interval[0] <= 0 <= row.interval[1]:
        return "not clear after correction"  # the interval is that of one test
    return _READINGS[kind]


def _write_systems(block: Block) -> str:
    """Return the table of many systems, and of all pairs on demand."""
    comparison, key, run = block.comparison, block.key, block.run
    tested = (len(block.systems) - 1) * len(run.keys_in_order) <= 60
    unpaired = comparison is not None and any(design.name == "unpaired" for design in comparison.designs.values())
    best = Best({}, 0) if unpaired else find_best_systems(run, run.keys_in_order, tested, comparison)
    keys = [key, *(name for name in run.keys_in_order if name != key)]
    panel = [name for name in keys if name in choose_main_keys(run) or name == key][:8] or keys[:8]
    sign = 1 if find_better(run, key) == "lower" else -1
    values = {name: sign * run[name][key].mean if key in run[name] else math.nan for name in block.systems}
    order = sorted(values, key=lambda name: math.inf if math.isnan(values[name]) else values[name])
    systems = [*order, *run.baselines]
    content = _write_system_table(block, panel, systems, best)
    others = [name for name in keys if name not in panel]
    for part in (others[at : at + 8] for at in range(0, len(others), 8)):
        content += markup.details(
            markup.text(f"Also: {list_names(part, 3)}"), _write_system_table(block, part, systems, best)
        )
    about = f"Sorted by {shorten(key)}. Bold: the best value, and those that cannot be told apart from it."
    if comparison is not None:
        about += f" {fmt.BETTER} {fmt.WORSE}: clearly better or worse than {shorten(comparison.baseline)}."
        if comparison.ranking is not None and len(block.systems) <= MOST_PAIRS:
            content += _write_pairs(block, comparison.ranking, order)
    return markup.section("metrics", "All systems", content, markup.text(about))


def _write_system_table(block: Block, keys: Sequence[str], systems: Sequence[str], best: Best) -> str:
    rows = {(row.system, row.key): row for row in block.rows}
    columns = {}
    for key in keys:
        estimates = {name: block.run[name].get(key) for name in systems}
        present = [estimate for estimate in estimates.values() if estimate is not None]
        decimals = fmt.align_decimals([e.mean for e in present], [e.interval for e in present])
        cells = {}
        for name, estimate in estimates.items():
            shown = MISSING if estimate is None else fmt.show(estimate.mean, decimals)
            shown = f"<b>{shown}</b>" if name in best.systems.get(key, ()) else shown
            kind = decide(rows[name, key]) if (name, key) in rows else ""
            if kind in COLORS:
                shown = f"{markup.span(COLORS[kind], fmt.MARK_OF[kind])} {shown}"
            if estimate is not None and estimate.interval and key == keys[0]:
                half = (estimate.interval[1] - estimate.interval[0]) / 2
                shown += f" <small>±{fmt.show(half, decimals)}</small>" if half else ""
            cells[name] = shown
        columns[key] = cells
    lines, baseline = [], "" if block.comparison is None else block.comparison.baseline
    for name in systems:
        title, role = markup.name(name), "baseline" if name == baseline else block.run[name].role
        if name in block.systems and block.aligned is not None:
            title = f'<a href="#dialogues?system={block.systems.index(name)}">{title}</a>'
        title += f"<small>{role}</small>" if role != "system" else ""
        lines.append(markup.row(title, markup.cells(*(columns[key][name] for key in keys))))
    heads = ["system", *(markup.name(key) + markup.arrow(find_better(block.run, key)) for key in keys)]
    return markup.table("systems", "", markup.heads(*heads, sortable=True), lines)


def _write_pairs(block: Block, ranking: SystemRanking, order: Sequence[str]) -> str:
    """Return the matrix of all pairs: row minus column, and whether tests tell them apart."""
    joined = {frozenset(pair) for group in ranking.groups for pair in combinations(group, 2)}
    sign = -1 if find_better(block.run, ranking.key) == "lower" else 1
    means = {name: block.run[name][ranking.key] for name in order}
    lines = []
    for name in order:
        cells = []
        for other in order:
            gap = means[name].mean - means[other].mean
            mark, kind = (fmt.BETTER, "good") if sign * gap > 0 else (fmt.WORSE, "bad")
            mark, kind = ("", "soft") if name == other or frozenset((name, other)) in joined else (mark, kind)
            shown = "" if name == other else show_value(gap, means[name].interval, True)
            cells.append(markup.span(kind, f"{mark} {shown}"))
        lines.append(markup.row(markup.name(name), markup.cells(*cells)))
    table = markup.table("pairs", "", markup.heads("", *map(markup.name, order)), lines)
    pairs = math.comb(len(order), 2)
    summary = f"{pairs - len(joined):,} of the {pairs:,} pairs can be told apart"
    return markup.details(f"All pairs <span>{summary}</span>", table)
