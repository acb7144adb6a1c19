"""The first screen of the report and its table of metrics: which system is better, by how much, and where to look.

A block is the systems that share data and metrics; each has a verdict, key figures, a figure whose marks lead to
dialogues, the dialogues, slices, and all metrics. Everything that says better or worse asks the comparison.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from dialeval.analysis.alignment import AlignedDialogues, align_dialogues
from dialeval.analysis.comparison import MOST_TESTS, Best, Comparison, SystemRanking, compare, find_best_systems
from dialeval.analysis.difference import Difference
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.values import find_better, find_metric
from dialeval.analysis.verdict import decide, judge_system
from dialeval.core.errors import SettingError
from dialeval.core.result import Result, Run
from dialeval.metrics.trials import count_trials
from dialeval.reports import formatting as fmt
from dialeval.reports import markup
from dialeval.reports.canvas import Figure
from dialeval.reports.comparisons import describe_roughness, find_leaders, list_caveats
from dialeval.reports.drawings import draw_pass_k
from dialeval.reports.formatting import MISSING, list_names, plain, shorten, show_interval, show_p, show_value, state_p
from dialeval.reports.marks import Dots, Line, draw_card, draw_glyph, draw_ranking, draw_swarm

if TYPE_CHECKING:
    from dialeval.analysis.slices import Slices

DATA_SETS = "data_sets"
"""Where a run of several runs holds the name of the data of each system, if not all have the same."""
BY_SYSTEM = ("standing", "alignments", "transcripts", "failures", "curves", "trials")
"""Details of a run by system that sections are made of."""
ALPHA = 0.05
"""The significance level of differences of human ratings."""
MOST_PAIRS = 20
"""Systems of which a matrix of all pairs is shown."""
_DOTS = "One dot per {}; larger dots have more replies. Select one to read it."
LONG = 12
"""Metrics of a table before the others are folded."""
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
    slices: Sequence[Slices] = ()
    reason: str = ""
    """Why the systems could not be compared."""
    prefix: str = ""
    """Of the addresses of the block."""
    title: str = ""
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


def make_blocks(
    run: Run,
    compared: bool | Comparison,
    sliced: Mapping[int, Sequence[Slices]],
    people: object = None,
) -> list[Block]:
    """Return the blocks of a run, each compared with its first system; `sliced`: slices by the number of the block."""
    blocks = []
    groups = split_blocks(run)
    for at, group in enumerate(groups):
        comparison = compared if isinstance(compared, Comparison) and len(groups) == 1 else None
        reason = ""
        if compared and comparison is None and len(group) - len(group.baselines) > 1:
            try:
                comparison = compare(group, most_tests=MOST_TESTS)
            except SettingError as error:
                reason = str(error)
        real = {name: result for name, result in group.items() if result.role == "system"} or dict(group.items())
        has_rows = all(result.table is not None and len(result.table) for result in real.values())
        first = comparison.baseline if comparison is not None else None
        aligned = align_dialogues(real, first) if has_rows else None
        title = name_block(run, group) if len(groups) > 1 else ""
        prefix = f"{at + 1}-" if at else ""
        blocks.append(Block(group, comparison, aligned, sliced.get(at, ()), reason, prefix, title, people))
    return blocks


def split_blocks(run: Run) -> list[Run]:
    """Group the systems with the same data that share a metric, directly or through others."""
    groups: list[dict[str, Result]] = []
    data: Mapping[str, str] = run.details.get(DATA_SETS, {})

    def is_near(system: str, other: str) -> bool:
        return bool(run[system].keys() & run[other].keys()) and data.get(system) == data.get(other)

    for system, result in run.items():
        near = [at for at, group in enumerate(groups) if any(is_near(system, other) for other in group)]
        first = near[0] if near else len(groups)
        merged = {name: other for at in near for name, other in groups[at].items()} | {system: result}
        groups = [group for at, group in enumerate(groups) if at not in near]
        groups.insert(first, merged)
    return [Run(group, run.version, details=_cut_details(run, group)) for group in groups]


def _cut_details(run: Run, systems: Mapping[str, Result]) -> dict[str, Any]:
    """Return the details of a run, those by system of some systems only."""
    return {
        kind: {name: entry for name, entry in held.items() if name in systems} if kind in BY_SYSTEM else held
        for kind, held in run.details.items()
    }


def name_block(run: Run, block: Run) -> str:
    """Return the data of a block, or its systems."""
    data: Mapping[str, str] = run.details.get(DATA_SETS, {})
    systems = [name for name in block if name not in block.baselines] or list(block)
    return data.get(systems[0]) or list_names(systems)


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


def write_verdict(block: Block, level: int = 1) -> str:
    """Return the verdict as markup: glyph, headline, sentences, and what was read."""
    kind, headline = write_headline(block)
    lead = markup.text(" ".join(filter(None, state_lead(block)))).replace("p = ", "p\u00a0=\u00a0")
    comparison = block.comparison
    caveats = [] if comparison is None else [*list_caveats(comparison), *describe_roughness(comparison)]
    read = " ".join(f"<span>{part}</span>" for part in _describe_reading(block))
    about = f'<p class="about">{markup.name(block.title)}</p>' if block.title else ""
    return (
        f'{about}<div class="verdict" id="{block.prefix}verdict">{draw_glyph(kind)}'
        f'<h{level} class="headline{" long" if len(headline) > 60 else ""}">{markup.text(headline)}</h{level}>'
        f'<p class="lead">{lead}</p>{markup.bullets(caveats, "caveats")}'
        f'<p class="read"><b>Read:</b> {read}</p></div>'
    )


def state_lead(block: Block) -> Iterator[str]:
    """Yield the sentences below the headline."""
    comparison = block.comparison
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
    clear = [row for row in rows if row.adjusted_p < ALPHA]
    if not rows:
        return None
    if len(rows) == 1:
        names = shorten(rows[0].system), shorten(block.people.baseline)
        if not clear:
            return "inconclusive", f"People do not clearly rate {names[0]} higher or lower than {names[1]}"
        higher = rows[0].value > 0
        return (
            "better" if higher else "worse"
        ), f"People rate {names[0]} {'higher' if higher else 'lower'} than {names[1]}"
    parts = [
        ("higher", [row.system for row in clear if row.value > 0]),
        ("lower", [row.system for row in clear if row.value < 0]),
    ]
    shown = " and ".join(f"{list_names(names)} {way}" for way, names in parts if names)
    return (
        "ranking",
        f"People rate {shown or 'no system clearly higher or lower'} than {shorten(block.people.baseline)}",
    )


def _state_people(block: Block) -> Iterator[str]:
    """Yield the mean human ratings of the systems, and what the metrics say."""
    if _judge_by_people(block) is None:
        return
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
            link = f"#{block.prefix}dialogues?show=alone"
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
    if comparison is None:
        for key in [block.key, *(key for key in choose_main_keys(block.run) if key != block.key)][:3]:
            if (estimate := block.run[block.systems[0]].get(key)) is not None and len(block.systems) == 1:
                small = f"likely {show_interval(estimate.interval)}" if estimate.interval else ""
                yield show_value(estimate.mean, estimate.interval), markup.name(key), small, ""
        return
    if len(comparison.systems) > 1 or row is None:
        return
    counts = _count_passed(block)
    if counts is not None:
        (judged, passed), (others_judged, others_passed) = counts
        before = f"{shorten(row.baseline)}: {others_passed:,} of {others_judged:,}"
        yield f"{passed:,} <small>of {judged:,}</small>", "trials passed", before, ""
    kind = {"better": "good", "worse": "bad"}.get(decide(row), "")
    scale = _describe_scale(block.run, row.key)
    likely = f"{100 * comparison.confidence:g}% interval {show_interval(row.interval)}, " if row.interval else ""
    yield (
        show_value(row.difference, row.interval, True),
        f"on {markup.name(row.key)}{scale}",
        f"{likely}{state_p(row.adjusted_p)}",
        kind,
    )
    if row.wins is not None and row.ties is not None and row.losses is not None:
        total, better = row.wins + row.ties + row.losses, row.wins > row.losses
        rest = f"{(row.losses if better else row.wins):,} got {'worse' if better else 'better'}"
        rest += f", {row.ties:,} did not change" if row.ties else ""
        link = f'<a href="#{block.prefix}dialogues?show={"gains" if better else "losses"}">'
        number = f"{link}{row.wins if better else row.losses:,}</a> <small>of {total:,}</small>"
        yield number, f"{block.unit} got {'better' if better else 'worse'}", rest, ""
    if counts is not None:
        return
    others = [other for other in comparison.of(row.system) if other.key.partition("/")[0] != row.key.partition("/")[0]]
    decided = [other for other in others if decide(other) in ("better", "worse", "different")]
    changed = max(decided, key=lambda other: (other.key in comparison.panel, other.size), default=None)
    if changed is not None:
        values = (
            f"{show_value(changed.mean, changed.interval)}, was {show_value(changed.baseline_mean, changed.interval)}"
        )
        unsigned = changed.baseline_mean > 0 and changed.mean > 0
        percent = (
            f"{100 * changed.difference / changed.baseline_mean:+.0f}%".replace("-", fmt.MINUS) if unsigned else ""
        )
        yield percent or show_value(changed.difference, changed.interval, True), markup.name(changed.key), values, ""
    elif decide(row) == "inconclusive" and row.detectable > 0:
        yield (
            show_value(row.detectable, row.interval),
            "difference that would show",
            f"with {comparison.design.clusters:,} {comparison.design.unit}, at 80% power",
            "",
        )


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
    comparison, aligned, key = block.comparison, block.aligned, block.dialogue_key
    if (
        block.run.details.get("trials", {}).keys() & set(block.systems)
        and (figure := draw_pass_k(block.run)) is not None
    ):
        about = "The chance that a task is solved that many times in a row (pass^k). "
        about += f'<a href="#{block.prefix}dialogues">Read the worst trial</a>.'
        return markup.text("How often a success can be repeated"), about, figure.inline
    if _judge_by_people(block) is not None:
        return _draw_people(block)
    if len(block.systems) > 2:
        return _draw_systems(block)
    if aligned is None or not key:
        return "", "", ""
    better, axis = find_better(block.run, key), shorten(key)
    about = _DOTS.format(block.unit.removesuffix("s"))
    design = None if comparison is None else comparison.design
    if comparison is not None and design is not None and design.name != "unpaired":
        values, counts = aligned.measure(block.system, key)
        dots = _make_dots(block, values, counts)
        if not len(dots.values):
            return "", "", ""
        row = next((row for row in block.rows if (row.system, row.key) == (block.system, key)), None)
        mean = float(np.average(dots.values, weights=dots.sizes)) if row is None else row.difference
        interval = None if row is None else row.interval
        words = f"average {show_value(mean, interval, True)}"
        words += f", likely {show_interval(interval)}" if interval else ""
        ties = int((dots.values == 0).sum())
        if ties:
            about += f' <a href="#{block.prefix}dialogues?show=ties">{ties:,} did not change</a>.'
        sign = -1 if better == "lower" else 1
        worse, gained = int((sign * dots.values < 0).sum()), int((sign * dots.values > 0).sum())
        title = f"{worse:,} of {len(dots.values):,} {block.unit} got worse, {gained:,} got better"
        title = (
            title
            if better is not None
            else f"{shorten(key)} changed in {worse + gained:,} of {len(dots.values):,} {block.unit}"
        )
        axis = f"{axis}, {shorten(block.system)} minus {shorten(aligned.systems[0])}"
        drawn = draw_swarm([dots], mean, interval, axis, words, better=better, prefix=block.prefix)
        if f"#{block.prefix}dialogues?low=" in drawn:
            about = about.replace(_DOTS.format(block.unit.removesuffix("s")), f"Select a bar to list its {block.unit}.")
        return markup.text(title), about, drawn
    strips = []
    for name in aligned.systems:
        values = aligned.list_values(name, key)
        counts = np.diff(aligned.find_rows(name)[1])
        strips.append(_make_dots(block, values, counts)._replace(name=name if len(aligned.systems) > 1 else ""))
    strips = [strip for strip in strips if len(strip.values)]
    if not strips:
        return "", "", ""
    title = f"{shorten(key)} of each {block.unit.removesuffix('s')}"
    mean = float(np.mean([strip.values.mean() for strip in strips]))
    drawn = draw_swarm(strips, mean, None, axis, "", better=better, around_zero=False, prefix=block.prefix)
    return markup.text(title), about, drawn


def _make_dots(block: Block, values: np.ndarray, counts: np.ndarray) -> Dots:
    """Return the dialogues that have a value; the two worst have the user's first words next to them."""
    aligned = block.aligned
    places = np.flatnonzero(np.isfinite(values))
    sign = -1 if find_better(block.run, block.dialogue_key) == "lower" else 1
    chosen, titles = values[places], []
    openings = (
        [find_opening(aligned, at) for at in places.tolist()] if aligned is not None and len(places) <= 400 else []
    )
    for value, opening in zip(chosen.tolist(), openings, strict=False):
        titles.append(f"{opening}  {fmt.show(value, 2)}")
    worst = np.argsort(sign * chosen, kind="stable")[:2].tolist() if len(places) > 2 else []
    labeled = [(at, openings[at]) for at in worst if at < len(openings) and openings[at]]
    links = [f"#{block.prefix}d{at + 1}" for at in places.tolist()]
    return Dots(
        chosen, np.maximum(counts[places].astype(np.float64), 1.0), links, titles or [""] * len(places), labeled
    )


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
    sign = 1 if find_better(block.run, key) == "lower" else -1
    ranking = comparison.ranking if comparison is not None and comparison.ranking is not None else None
    order = ranking.systems if ranking is not None else sorted(estimates, key=lambda name: sign * estimates[name].mean)
    leaders = find_leaders(comparison) if comparison is not None else []
    decided = {row.system: decide(row) for row in block.rows if row.key == key}
    kinds = {"worse": "b", "better": "k"} if ranking is None else {}
    decimals = fmt.align_decimals([e.mean for e in estimates.values()], [e.interval for e in estimates.values()])
    lines = [
        Line(
            name,
            estimates[name].mean,
            estimates[name].interval,
            fmt.show(estimates[name].mean, decimals),
            f"#{block.prefix}dialogues?system={block.systems.index(name)}",
            kinds.get(decided.get(name, ""), "n") if ranking is None else "k" if name in leaders else "b",
        )
        for name in order
        if name in estimates
    ]
    groups = ranking.groups if ranking is not None else []
    baseline = comparison.baseline if comparison is not None else ""
    title = f"{len(lines)} systems by {shorten(key)}"
    about = "Value with its 95% interval. Select a system to read its dialogues." + (
        " Lines at the right join systems that cannot be told apart." if groups else ""
    )
    axis = f"{shorten(key)}{_describe_scale(block.run, key)}"
    return markup.text(title), about, draw_ranking(lines, groups, axis, baseline)


def _draw_people(block: Block) -> tuple[str, str, str]:
    """Return the dot plot of mean human ratings, the highest first."""
    people, lines = block.people, []
    for row in sorted(people.systems, key=lambda row: -row.value):
        link = f"#{block.prefix}dialogues?system={block.systems.index(row.system)}"
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
    keys = [key for key in block.run.keys_in_order if key in panel]
    keys += [key for key in block.run.keys_in_order if key not in panel]
    heads = ["", *(markup.system_name(at, name) for at, name in enumerate(block.systems))]
    heads += ["difference", f"{100 * comparison.confidence:g}% interval", "p", "reading"] if comparison else []
    heads += ["95% interval"] if comparison is None and len(block.systems) == 1 else []
    lines = [_write_metric(block, key, len(heads)) for key in keys]
    cut = max(LONG, len(panel))
    folded = lines[cut:] if len(lines) > cut + 3 else []
    head = markup.heads(*heads, sortable=True)
    table = markup.table("metrics", "", head, lines[: cut if folded else None])
    if folded:
        table += markup.details(markup.count(len(folded), "more metric"), markup.table("metrics", "", head, folded))
    if block.run.baselines:
        floors = _write_system_table(block, keys[:8], block.run.baselines, Best({}, 0))
        table += markup.details("Floors and ceilings", floors)
    about = f"{shorten(block.system)} minus {shorten(block.systems[0])}. " if comparison is not None else ""
    tests = f"p-values are corrected for {comparison.tests} tests." if comparison and comparison.tests > 1 else ""
    return markup.section(f"{block.prefix}metrics", "All metrics", table, markup.text(about + tests) if about else "")


def _write_metric(block: Block, key: str, width: int) -> str:
    comparison = block.comparison
    row = next((row for row in block.rows if (row.system, row.key) == (block.system, key)), None)
    estimates = {name: block.run[name].get(key) for name in block.systems}
    present = [estimate for estimate in estimates.values() if estimate is not None]
    intervals = [row.interval] if row is not None and row.interval else [estimate.interval for estimate in present]
    decimals = fmt.align_decimals([estimate.mean for estimate in present], intervals)
    values = {name: math.nan if estimate is None else estimate.mean for name, estimate in estimates.items()}
    if row is not None and not math.isnan(row.mean):
        values |= {row.baseline: row.baseline_mean, row.system: row.mean}
    cells = [fmt.show(value, decimals) for value in values.values()]
    if comparison is None and len(block.systems) > 1:
        spreads = ["" if estimate is None else fmt.show_spread(estimate) for estimate in estimates.values()]
        cells = [f"{cell} <small>{spread}</small>" for cell, spread in zip(cells, spreads, strict=True)]
    if row is not None:
        note = f' title="{markup.attribute(row.reason)}"' if row.reason else ""
        interval = show_interval(row.interval) if row.interval else MISSING
        cells += [
            f"<b>{show_value(row.difference, row.interval, True)}</b>",
            markup.span("iv", interval),
            show_p(row.adjusted_p),
            f"<span{note}>{read_difference(row)}</span>",
        ]
    elif len(block.systems) == 1:
        likely = present[0].interval if present else None
        cells.append(markup.span("iv", show_interval(likely) if likely else MISSING))
    cells += [MISSING] * (width - 1 - len(cells))
    scored = [
        f"{estimate.scored:,} of {estimate.units:,} scored" for estimate in present if estimate.scored != estimate.units
    ]
    better = find_better(block.run, key)
    small = "; ".join(
        filter(
            None,
            [_describe_scale(block.run, key).removeprefix(", "), f"{better} is better" if better else "", *scored[:1]],
        )
    )
    return markup.row(f"{markup.name(key)}<small>{small}</small>", markup.cells(*cells))


def read_difference(row: Difference) -> str:
    """Return what is decided about a difference, as markup."""
    kind = decide(row)
    if kind in ("better", "worse"):
        mark, color = (fmt.BETTER, "good") if kind == "better" else (fmt.WORSE, "bad")
        return markup.span(color, f"{mark} {kind}")
    if kind == "different" and row.key == "length":
        return "longer" if row.difference > 0 else "shorter"
    if kind == "inconclusive" and row.interval is not None and not row.interval[0] <= 0 <= row.interval[1]:
        return "not clear after correction"  # the interval is that of one test
    return _READINGS[kind]


def _write_systems(block: Block) -> str:
    """Return the table of many systems, and of all pairs on demand."""
    comparison, key = block.comparison, block.key
    tested = (len(block.systems) - 1) * len(block.run.keys_in_order) <= 60
    unpaired = comparison is not None and any(design.name == "unpaired" for design in comparison.designs.values())
    best = Best({}, 0) if unpaired else find_best_systems(block.run, block.run.keys_in_order, tested, comparison)
    keys = [key, *(name for name in block.run.keys_in_order if name != key)]
    panel = [name for name in keys if name in choose_main_keys(block.run) or name == key][:8] or keys[:8]
    sign = 1 if find_better(block.run, key) == "lower" else -1
    real = {name: block.run[name][key].mean if key in block.run[name] else math.nan for name in block.systems}
    order = sorted(
        real, key=lambda name: (math.isnan(real[name]), sign * real[name] if real[name] == real[name] else 0)
    )
    content = _write_system_table(block, panel, [*order, *block.run.baselines], best)
    others = [name for name in keys if name not in panel]
    for at in range(0, len(others), 8):
        part = others[at : at + 8]
        title = list_names(part, 3)
        content += markup.details(
            f"Also: {title}", _write_system_table(block, part, [*order, *block.run.baselines], best)
        )
    if comparison is not None and comparison.ranking is not None and len(block.systems) <= MOST_PAIRS:
        content += _write_pairs(block, comparison, order)
    about = f"Sorted by {shorten(key)}. Bold: the best value, and those that cannot be told apart from it."
    about += (
        f" {fmt.BETTER} {fmt.WORSE}: clearly better or worse than {shorten(comparison.baseline)}." if comparison else ""
    )
    return markup.section(f"{block.prefix}metrics", "All systems", content, markup.text(about))


def _write_system_table(block: Block, keys: Sequence[str], systems: Sequence[str], best: Best) -> str:
    rows = {(row.system, row.key): row for row in block.rows}
    decimals = {}
    for key in keys:
        present = [block.run[name][key] for name in systems if key in block.run[name]]
        decimals[key] = fmt.align_decimals([each.mean for each in present], [each.interval for each in present])
    lines = []
    for name in systems:
        cells = []
        for key in keys:
            estimate, row = block.run[name].get(key), rows.get((name, key))
            shown = MISSING if estimate is None else fmt.show(estimate.mean, decimals[key])
            shown = f"<b>{shown}</b>" if name in best.systems.get(key, ()) else shown
            kind = "" if row is None else decide(row)
            color = {"better": "good", "worse": "bad"}.get(kind, "")
            mark = markup.span(color, fmt.MARK_OF[kind]) if color else ""
            half = (
                (estimate.interval[1] - estimate.interval[0]) / 2 if estimate is not None and estimate.interval else 0.0
            )
            spread = f" <small>±{fmt.show(half, decimals[key])}</small>" if half and key == keys[0] else ""
            cells.append(f"{mark} {shown}{spread}".strip())
        role = (
            "baseline" if block.comparison is not None and name == block.comparison.baseline else block.run[name].role
        )
        link = f"#{block.prefix}dialogues?system={block.systems.index(name)}" if name in block.systems else ""
        title = f'<a href="{link}">{markup.name(name)}</a>' if link and block.aligned is not None else markup.name(name)
        lines.append(markup.row(title + (f"<small>{role}</small>" if role != "system" else ""), markup.cells(*cells)))
    heads = ["system", *(markup.name(key) + markup.arrow(find_better(block.run, key)) for key in keys)]
    return markup.table("systems", "", markup.heads(*heads, sortable=True), lines)


def _write_pairs(block: Block, comparison: Comparison, order: Sequence[str]) -> str:
    """Return the matrix of all pairs: row minus column, and whether tests tell them apart."""
    ranking = comparison.ranking
    if ranking is None:
        return ""
    joined = {frozenset(pair) for group in ranking.groups for pair in combinations(group, 2)}
    sign = -1 if find_better(block.run, ranking.key) == "lower" else 1
    means = {name: block.run[name][ranking.key] for name in order}
    marks = {"good": fmt.BETTER, "bad": fmt.WORSE, "": ""}
    lines = []
    for name in order:
        cells = []
        for other in order:
            gap = means[name].mean - means[other].mean
            kind = "" if name == other or frozenset((name, other)) in joined else "good" if sign * gap > 0 else "bad"
            shown = "" if name == other else show_value(gap, means[name].interval, True)
            cells.append(markup.span(kind or "soft", f"{marks[kind]} {shown}"))
        lines.append(markup.row(markup.name(name), markup.cells(*cells)))
    table = markup.table("pairs", "", markup.heads("", *map(markup.name, order)), lines)
    apart = math.comb(len(order), 2) - len(joined)
    summary = f"{apart:,} of the {math.comb(len(order), 2):,} pairs can be told apart"
    return markup.details(f"All pairs <span>{summary}</span>", table)
