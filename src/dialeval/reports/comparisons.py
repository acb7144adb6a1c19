"""Reports of a comparison: the verdict in sentences, and tables in every format.

    state_verdict(comparison)           sentences for the terminal, the report and notebooks
    FORMATS["latex"](comparison)        json, csv, md, latex, each a str
    console.print(lay_out(comparison))  the terminal: a table per system, next to the baseline

The headline comes first, what was read and compared (`analysis.alignment`) last. What is better, worse, equivalent or
undecided is decided in `analysis.verdict`. The largest gain and loss are those with the largest effect size. Where
nothing is decided, the sentences state the clearest difference and what difference the comparison could detect.
Metrics that only describe the responses (length, diversity) never make a system better: their differences are stated
separately.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from msgspec import structs

from dialeval.analysis import verdict as verdicts
from dialeval.analysis.alignment import Design
from dialeval.analysis.comparison import MOST_TESTS, Comparison, SystemRanking, compare, dump_comparison
from dialeval.analysis.difference import Difference
from dialeval.analysis.gates import Gate
from dialeval.analysis.pairing import choose_main_keys
from dialeval.analysis.values import find_metric
from dialeval.analysis.verdict import Kind, Standing, Verdict, decide, judge_system
from dialeval.core.account import FAILURES
from dialeval.core.display import list_some
from dialeval.core.errors import DialevalError, SettingError
from dialeval.core.fold import Estimate
from dialeval.core.result import Result, Run
from dialeval.core.signature import Signature
from dialeval.metrics.registry import registry
from dialeval.reports import formatting as fmt
from dialeval.reports import tables
from dialeval.reports.documents import Document, Layout, Table, escape_markdown, make_formats, to_markdown
from dialeval.reports.formatting import plain, shorten, show, show_p, show_rounded, show_value, state_p
from dialeval.reports.tables import ARROWS, PERCENT, list_signatures
from dialeval.stats.resampling import has_all_swaps
from dialeval.stats.significance import POWER, least_p, letter_display

MOST_UNASKED = 60
"""With more tests, only the panel is tested, except by `dialeval compare`."""
_MOST_NAMED = 3
"""Reasons that are given before the rest is left out."""
_MOST_RANKED = 15
"""Systems of a ranking that are named before the rest is counted."""
_MOST_DIFFERENCES = 2
"""Differences that are no evidence of better replies that are named before the rest is counted."""
_MOST_SYSTEMS = 8
"""Systems or metrics that an overview names before the rest is counted."""


@dataclass(frozen=True)
class RunVerdict:
    """The comparison of a run's systems with the first, in sentences; or why there is none."""

    comparison: Comparison | None = None
    reason: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The arguments of `compare`."""

    @property
    def sentences(self) -> list[str]:
        """The verdict, or why there is none."""
        return [self.reason] * bool(self.reason) if self.comparison is None else state_verdict(self.comparison)

    def to_percent(self) -> RunVerdict:
        """Return the verdict with scores from 0 to 1 times 100."""
        return replace(self, comparison=self.comparison and to_percent(self.comparison))

    def dump(self) -> bytes | None:
        """Return the comparison as it is saved with the run; None without one."""
        return None if self.comparison is None else dump_comparison(self.comparison, **self.settings)


def judge_run(run: Run, **chosen: object) -> RunVerdict:
    """Compare the systems of a run with the first; a sentence gives the reason where that is impossible.

    All metrics are tested unless that takes many tests; then only the panel is, if it says which system is better.
    `chosen`: further arguments of `compare`.
    """
    systems = len(run) - len(run.baselines)
    if systems < 2:
        return RunVerdict()
    main = choose_main_keys(run)
    estimates = [result[key] for result in run.values() for key in main if key in result]
    descriptive = all(metric is None or metric.descriptive for metric in map(find_metric, estimates))
    every = descriptive or len(run.keys_in_order) * (systems - 1) <= MOST_UNASKED
    settings: dict[str, Any] = {"metrics": None if every else main, "most_tests": MOST_TESTS, **chosen}
    try:
        return RunVerdict(compare(run, **settings), settings=settings)
    except SettingError as error:
        if chosen.get("margin"):
            raise
        return RunVerdict(reason=f"Not compared: {error}.")


GLYPHS: Mapping[Kind, str] = {
    "better": fmt.BETTER,
    "worse": fmt.WORSE,
    "mixed": fmt.BETTER + fmt.WORSE,
    "equivalent": "=",
    "different": fmt.DIFFERENT,
    "inconclusive": "↔",
    "refused": "✕",
}
"""The mark before the headline of a verdict on one system."""
OFTEN = 0.2
"""The fraction of replies from which a system fails often."""
UNLIKELY, VERY_UNLIKELY = 0.05, 0.01
"""Adjusted p-values below which a difference is (very) unlikely to be chance."""
MCNEMAR = "McNemar's score test"
FEW_UNITS, LARGE = 20, 0.5
"""With fewer units, an effect of this size only looks better or worse."""


def make_verdict(comparison: Comparison) -> Verdict:
    """Return the verdict as data."""
    kinds = {judge_system(comparison.of(system), comparison.panel).kind for system in comparison.systems}
    headline, explanation = _state_headline(comparison)
    caveats = [*list_caveats(comparison), *describe_roughness(comparison)]
    sentences = [explanation, *caveats, *list_what_was_read(comparison)]
    numbers = verdicts.list_numbers(comparison.differences, comparison.panel)
    return Verdict(kinds.pop() if len(kinds) == 1 else "mixed", headline, sentences, numbers)


def state_verdict(comparison: Comparison) -> list[str]:
    """Return the headline with its explanation, caveats, and what was read; names are not escaped."""
    verdict = make_verdict(comparison)
    return [f"{verdict.headline}. {verdict.sentences[0]}", *verdict.sentences[1:]]


def _state_headline(comparison: Comparison) -> tuple[str, str]:
    """Return the headline and its explanation."""
    several = len(comparison.systems) > 1
    return _state_many(comparison) if several else state_system_verdict(comparison, comparison.systems[0])


def list_caveats(comparison: Comparison) -> list[str]:
    """Return what a reader of the verdict must know about it, in sentences."""
    main = [row for row in comparison.differences if row.key in comparison.panel and not math.isnan(row.p)]
    caveats = [_describe_left_out(row, comparison) for row in main if row.left_out is not None]
    for row in main:
        named = f"The weights decide about {shorten(row.key)} of {shorten(row.system)}"
        if verdicts.depends_on_weights(row, comparison.alpha):
            by_reply, by_dialogue = (
                f"{show_value(value, row.interval, signed=True)} per {unit} ({state_p(p)})"
                for value, unit, p in (
                    (row.difference, "reply", row.p),
                    (row.by_dialogue, "dialogue", row.by_dialogue_p),
                )
            )
            caveats.append(f"{named}: {by_reply}, {by_dialogue}; --weight dialogues compares dialogues.")
        if comparison.designs[row.system].whole and row.note is not None:
            caveats.append(f"{named}: {row.note}.")
    if comparison.untested:
        others, systems = len(comparison.untested), "system is" if len(comparison.untested) == 1 else "systems are"
        what = f"{others} more {systems} not tested, from {shorten(comparison.untested[0])} on"
        caveats.append(f"{what}: so many tests take long. `dialeval compare` tests all.")
    return [*caveats, *(f"Warning: {line}." for line in comparison.warnings)]


def describe_roughness(comparison: Comparison) -> list[str]:
    """Return of which metrics of the verdict intervals and p-values are only a guide, in a sentence."""
    rough = [row for row in comparison.differences if row.key in comparison.panel and row.rough]
    what = f"few {comparison.design.unit}, or a few of them dominate"
    optimistic = "so that intervals and p-values may be too optimistic"
    return [f"Rough (~): {_list_keys(rough)}: {what}, {optimistic}."] if rough else []


def list_what_was_read(comparison: Comparison) -> list[str]:
    """Return which units are compared, and what is missing from what was read."""
    estimand = "" if comparison.estimand is None else f" Means are per {comparison.estimand}."
    *designs, last = describe_designs(comparison)
    return [*designs, last + estimand, *(f"{shorten(name)}: {line}." for name, line in comparison.accounts.items())]


def _describe_left_out(row: Difference, comparison: Comparison) -> str:
    """State which side a difference cannot favor, since more of it was left out."""
    names, at = (row.baseline, row.system), int(row.left_out == "system")
    name, other = shorten(names[at]), shorten(names[1 - at])
    failures = [other for other in comparison.of(row.system) if other.key == FAILURES and other.significant]
    more = f"{name} fails more often than {other}" if failures else f"{name} has fewer values than {other}"
    lacking = f"{row.missing[at]:,} of {row.due[at]:,} have no {shorten(row.key)}"
    among = "among replies that both gave" if failures else "among those that both have"
    return f"{more} ({lacking}); {among}, {_show_difference(row)}, which does not make {name} better."


def describe_designs(comparison: Comparison) -> list[str]:
    """State the design of the comparison, in one sentence where it is the same for all systems, or for many systems."""
    by_text: dict[str, list[str]] = {}
    by_name: dict[str, list[str]] = {}
    for system, design in comparison.designs.items():
        name = shorten(system)
        text = " ".join([design.describe(shorten(comparison.baseline), name), *design.notes])
        if len(comparison.designs) > 1 and design.name != "paired":
            text = f"{name}: {text}"
        by_text.setdefault(text, []).append(name)
        by_name.setdefault(design.name, []).append(name)
    if len(by_text) > _MOST_NAMED:
        parts = (f"{design} ({list_some(systems, _MOST_SYSTEMS)})" for design, systems in by_name.items())
        return [f"Designs: {'; '.join(parts)}."]
    return [
        f"{list_some(names, _MOST_SYSTEMS)}: {text}"
        if len(by_text) > 1 and text.startswith("Paired design: ")
        else text
        for text, names in by_text.items()
    ]


def _state_many(comparison: Comparison) -> tuple[str, str]:
    """Return the headline on two or more systems and the baseline: the ranking, or what is better and worse."""
    by_kind: dict[Kind, list[str]] = {}
    panel: Sequence[Difference] = []
    for system in comparison.systems:
        standing = judge_system(comparison.of(system), comparison.panel)
        by_kind.setdefault(standing.kind, []).append(system)
        panel = max(panel, standing.panel, key=len)
    baseline, metrics = shorten(comparison.baseline), _list_keys(panel) or "all metrics"
    parts = []
    for kind, names in by_kind.items():
        words = _MANY[kind].format(are="is" if len(names) == 1 else "are", s="s" * (len(names) == 1))
        parts.append(f"{list_some(list(map(shorten, names)), _MOST_SYSTEMS)} {words}")
    explanation = f"Compared with {baseline} on {metrics}: {'; '.join(parts)}."
    if not panel:
        explanation = " ".join([explanation, *_explain_missing_evidence(comparison.differences)])
    ranking = comparison.ranking
    if ranking is None:
        clear = {"better", "worse", "mixed", "equivalent"} & by_kind.keys()
        return ("; ".join(parts) + f" (against {baseline})" if clear else "Too close to call"), explanation
    explanation = f"{describe_ranking(ranking)} {explanation}"
    leaders = find_leaders(comparison)
    behind = [name for name in ranking.systems if name not in leaders]
    if not behind:
        return f"Too close to call: no two of the {len(ranking.systems)} systems can be told apart", explanation
    others = fmt.list_names(behind) if len(behind) <= _MOST_NAMED else f"the other {len(behind)}"
    lead, are = "leads" if len(leaders) == 1 else "lead", "is" if len(behind) == 1 else "are"
    return f"{fmt.list_names(leaders)} {lead}; {others} {are} clearly behind", explanation


_MANY: Mapping[Kind, str] = {
    "better": "{are} better",
    "worse": "{are} worse",
    "mixed": "{are} better on some metrics, worse on others",
    "equivalent": "{are} as good",
    "different": "differ{s} without being better or worse",
    "inconclusive": "cannot be told from it",
    "refused": "cannot be compared",
}
"""What is said of several systems."""


def find_leaders(comparison: Comparison) -> list[str]:
    """Return the best system and those that cannot be told apart from it."""
    ranking = comparison.ranking
    if ranking is None:
        return []
    first = {name for group in ranking.groups if ranking.systems[0] in group for name in group}
    return [name for name in ranking.systems if name in first]


def describe_ranking(ranking: SystemRanking) -> str:
    """Return the systems in groups, best first: as a chain, or with letters where groups overlap."""
    key, groups = shorten(ranking.key), ranking.groups
    if len(groups) == 1:
        return f"No two of the {len(ranking.systems)} systems differ clearly on {key}."
    if len(ranking.systems) <= _MOST_RANKED and [name for group in groups for name in group] == ranking.systems:
        chain = " > ".join(", ".join(map(shorten, group)) for group in groups)
        return f"Ranking by {key}: {chain} (systems separated by > differ clearly, others do not)."
    letters = letter_display(groups)
    shown = list_some([f"{shorten(name)} ({letters[name]})" for name in ranking.systems], _MOST_RANKED)
    return f"Ranking by {key}, best first: {shown}. Systems differ clearly if they share no letter."


def choose_mark(row: Difference) -> str:
    """Return the mark of what is decided about a difference; nothing if it is inconclusive or equivalent."""
    return fmt.MARK_OF.get(decide(row), "")


def state_system_verdict(comparison: Comparison, system: str) -> tuple[str, str]:
    """Return the headline on a system and the baseline, and the sentences that explain it."""
    rows = comparison.of(system)
    standing = judge_system(rows, comparison.panel)
    name, baseline = shorten(system), shorten(comparison.baseline)
    headline, sentences = _state_kind(standing, comparison, name, baseline)
    failing = next((row for row in rows if row.key == FAILURES and row.significant), None)
    if failing is not None and max(failing.mean, failing.baseline_mean) >= OFTEN:
        often, other = (name, baseline) if failing.worse else (baseline, name)
        low, high = sorted((failing.mean, failing.baseline_mean))
        headline = f"{often} often gives no reply"
        by_dialogue = comparison.estimand == "dialogue"
        share = f"On average {high:.0%} of the replies of a dialogue" if by_dialogue else f"{high:.0%} of its replies"
        lost = f"{share} are missing or failed ({other}: {low:.0%}); other scores cover the rest and"
        sentences = [f"{lost} would flatter it. Look at the failures first.", *sentences]
    if standing.equivalent and standing.kind != "equivalent":
        sentences.append(f"Equivalent within the margin: {_list_keys(standing.equivalent)}.")
    for row in standing.undecided:
        if row.margin is not None:
            outcome = "is excluded, an equal gain is not" if verdicts.is_acceptable(row) else "is not excluded"
            sentences.append(f"A loss of more than {row.margin:g} {outcome}: {_show_difference(row)}.")
    if standing.other:
        largest = sorted(standing.other, key=lambda row: row.size, reverse=True)
        texts = [f"{_name_change(row)} ({_show_values(row)})" for row in largest]
        also = "also " if standing.panel else ""
        sentences.append(f"Its replies are {also}{list_some(texts, _MOST_DIFFERENCES)}.")
    if not standing.panel:
        sentences += _explain_missing_evidence(rows)
    return headline, " ".join(sentences)


def _state_kind(standing: Standing, comparison: Comparison, name: str, baseline: str) -> tuple[str, list[str]]:
    """Return the headline, and sentences about the metrics that it follows from."""
    better, worse, undecided = standing.better, standing.worse, standing.undecided
    if standing.kind in ("better", "worse"):
        rows, panel = better or worse, len(standing.panel)
        largest, what = max(rows, key=lambda row: row.size), "gain" if better else "loss"
        sentences = [_state_change(largest, comparison)]
        if panel > 1:
            start = f"It is {standing.kind} on {len(rows)} of {panel} metrics. Largest {what}: it"
            sentences[0] = sentences[0].replace("It", start, 1)
        if largest.adjusted_p < UNLIKELY:
            very = largest.p < fmt.LEAST_P or (comparison.tests > 1 and largest.adjusted_p < VERY_UNLIKELY)
            sentences.append(f"A {what} this large is {'very ' * very}unlikely to be chance.")
        return f"{name} is {standing.kind} than {baseline}", sentences
    if standing.kind == "mixed":
        gain, loss = (max(rows, key=lambda row: row.size) for rows in (better, worse))
        changes = [_state_change(row, comparison) for row in (gain, loss)]
        chance = "Neither is likely to be chance: the choice is yours."
        return f"{name} is better on {_list_keys(better)}, but worse on {_list_keys(worse)}", [*changes, chance]
    if standing.kind == "equivalent":
        shown = [f"{_show_difference(row)}, margin {row.margin:g}" for row in standing.equivalent]
        return f"{name} is as good as {baseline}", [f"They score the same within the margin: {list_some(shown, 3)}."]
    if standing.kind == "refused":
        return "These two cannot be compared", []
    longer = f": {name} is {_name_change(max(standing.other, key=lambda row: row.size))}" if standing.other else ""
    if not standing.panel:
        return f"No metric says which is better{longer}", []
    if not (compared := [row for row in undecided if not (row.left_out and row.significant)]):
        return f"Not decided: {name} and {baseline} do not have values of the same replies", []
    clearest = min(compared, key=lambda row: (row.p, -row.size))
    design = comparison.designs[clearest.system]
    alone = clearest.p < comparison.alpha
    few = (alone and abs(clearest.difference) < clearest.detectable) or (
        design.clusters < FEW_UNITS and abs(clearest.effect) >= LARGE
    )
    headline = f"Neither is clearly better{longer}" if longer else "Too close to call"
    if few and clearest.better is not None:
        looks = "worse" if clearest.worse else "better"
        headline = f"{name} looks {looks} than {baseline}, but {design.clusters:,} {design.unit} are too few to be sure"
    change = _state_change(clearest, comparison)
    sentences = [f"{change.removesuffix('.')}, which may be chance." if clearest.difference else change]
    sentences += [f"Unadjusted {state_p(clearest.p)}."] if alone else []
    if clearest.detectable > 0:
        size = show_value(clearest.detectable, clearest.interval)
        sentences.append(f"Detectable at {100 * POWER:g}% power: {size}.")
    if comparison.detect is not None and clearest.needed is not None:
        sentences.append(f"About {clearest.needed:,} {design.unit} would detect a difference of {comparison.detect:g}.")
    return headline, sentences


def _state_change(row: Difference, comparison: Comparison) -> str:
    """Return a difference as a sentence, with both values, interval and p-value."""
    size = show_value(abs(row.difference), row.interval)
    way = "lower" if row.difference < 0 else "higher"
    interval = f"{100 * comparison.confidence:g}% CI {fmt.show_interval(row.interval)}, " if row.interval else ""
    values = f"{_show_values(row)}; {interval}{state_p(row.adjusted_p)}"
    much = f"{'about ' * row.rough}{size} {way}" if row.difference else "the same"
    return f"It scores {much} on {shorten(row.key)} ({values})."


def _show_values(row: Difference) -> str:
    decimals = fmt.align_decimals((row.mean, row.baseline_mean), [row.interval])
    return f"{show(row.mean, decimals)}, was {show(row.baseline_mean, decimals)}"


def _name_change(row: Difference) -> str:
    """Return what is different about replies, without being better or worse: `9.1 tokens longer`."""
    size, more = show_value(abs(row.difference), row.interval), row.difference > 0
    if row.key == "length":
        return f"{size} tokens {'longer' if more else 'shorter'}"
    return f"{size} {'higher' if more else 'lower'} in {shorten(row.key)}"


def _explain_missing_evidence(rows: Sequence[Difference]) -> Iterable[str]:
    """Yield which metrics were not compared, and that the others are no evidence of better replies."""
    reasons = dict.fromkeys(f"{row.key}: {row.reason}" for row in rows if row.reason and row.better is not None)
    if reasons:
        yield f"Not compared: {'; '.join(list(reasons)[:_MOST_NAMED])}."
    yield "None of the tested metrics says which replies are better: add references (-r), or score with -m judge."


def _list_keys(rows: Iterable[Difference]) -> str:
    return fmt.list_some_names(dict.fromkeys(row.key for row in rows), _MOST_NAMED)


def _show_difference(row: Difference) -> str:
    return f"{shorten(row.key)} {'~' * row.rough}{show_rounded(row.difference, row.interval, signed=True)}"


def _find_percent_keys(signatures: Mapping[str, object]) -> set[str]:
    """Return the keys whose scores go from 0 or -1 to 1, which papers often print times 100."""
    keys = set()
    for key, line in signatures.items():
        with suppress(DialevalError):  # a metric that is not installed
            bounds = registry().parse(Signature.parse(str(line)).metric).bounds_of(key)
            keys |= {key} if bounds in ((0.0, 1.0), (-1.0, 1.0)) else set()
    return keys


def run_to_percent(run: Run) -> Run:
    """Return a run to be shown, with scores from 0 to 1 times 100; nothing else is computed from it."""
    signed = {key: est.signature for result in run.values() for key, est in result.items() if est.signature is not None}
    keys, names = _find_percent_keys(signed), ("mean", "std", "half_width", "interval")
    systems = {
        system: replace(
            result,
            estimates={
                key: replace(est, **_multiply_by_100(est, names)) if key in keys else est for key, est in result.items()
            },
        )
        for system, result in run.items()
    }
    return replace(run, systems=systems, details={**run.details, PERCENT: True})


def to_percent(comparison: Comparison) -> Comparison:
    """Return a comparison to be shown, with scores from 0 to 1 and their differences times 100."""
    keys = _find_percent_keys(comparison.signatures)
    names = ["baseline_mean", "mean", "difference", "error", "detectable", "interval", "adjusted_interval", "margin"]
    names += ["unadjusted", "unadjusted_interval", "values", "by_dialogue"]
    rows = [
        structs.replace(row, **_multiply_by_100(row, names)) if row.key in keys else row
        for row in comparison.differences
    ]
    margins = {key: margin * (100 if key in keys else 1) for key, margin in comparison.margins.items()}
    return structs.replace(comparison, differences=rows, margins=margins)


def _multiply_by_100(result: Estimate | Difference, names: Iterable[str]) -> dict[str, Any]:
    """Return fields of a result, scores and intervals, times 100; None stays None."""
    values = {name: value for name in names if (value := getattr(result, name)) is not None}
    return {name: tuple(100 * end for end in v) if isinstance(v, tuple) else 100 * v for name, v in values.items()}


def to_document(comparison: Comparison, details: bool = False, percent: bool = False) -> Document:
    """Describe a comparison: the verdict, a table per system, and how it was made; `details`: with further columns.

    `percent`: scores were multiplied by 100 (`to_percent`).
    """
    headline, explanation = _state_headline(comparison)
    shown = [make_system_table(comparison, system, details) for system in comparison.systems]
    method = [describe_method(comparison), *describe_roughness(comparison)]
    notes = [" ".join(method), " ".join(list_what_was_read(comparison)), *explain_rows(comparison)]
    notes += [tables.TIMES_100] if percent else []
    signatures = list_signatures(comparison.signatures[key] for key in comparison.keys if key in comparison.signatures)
    return Document(
        [explanation, *list_caveats(comparison)],
        shown,
        [*notes, *(explain_columns(comparison) if details else [])],
        headline=headline,
        glyph=choose_glyph(comparison),
        details=[*describe_methods(comparison), *signatures],
    )


def choose_glyph(comparison: Comparison) -> str:
    """Return the mark before the headline; nothing where it is about several systems."""
    systems = comparison.systems
    return GLYPHS[judge_system(comparison.of(systems[0]), comparison.panel).kind] if len(systems) == 1 else ""


def lay_out(comparison: Comparison, details: bool = False, percent: bool = False) -> Layout:
    """Lay out the comparison for a rich console."""
    return Layout(to_document(comparison, details, percent))


FORMATS: Mapping[str, Callable[..., str]] = make_formats(to_document)
"""Every format that is a text, by its name on the command line."""


def describe_method(comparison: Comparison) -> str:
    """Return in one line which test there is, and what the marks mean."""
    adjusted = f", adjusted for {comparison.tests} tests" if comparison.tests > 1 else ""
    decided = {decide(row) for row in comparison.differences}
    marks = [f"{mark} {kind}" for kind, mark in fmt.MARK_OF.items() if kind in decided and kind != "untested"]
    shown = f"; {', '.join(marks)} (p < {comparison.alpha:g})" if marks else ""
    untested = f"; {fmt.UNTESTED} not tested" if "untested" in decided else ""
    return f"Tested against {shorten(comparison.baseline)}: {describe_test(comparison)}{adjusted}{shown}{untested}."


def describe_methods(comparison: Comparison) -> list[str]:
    """Return how intervals and p-values were computed, in sentences."""
    tests = comparison.tests
    rest = sum(not math.isnan(row.p) for row in comparison.differences) - tests
    how = "by Holm" if comparison.adjusted_for else "by the same permutations (Westfall and Young's minP)"
    adjusted = f"adjusted {how} for {tests} test{'s' * (tests != 1)}" if tests > 1 else "one test"
    family = f"{adjusted} of {list_some(comparison.panel, _MOST_SYSTEMS)}" if tests > 1 else adjusted
    others = f"; the {rest} tests of other metrics are corrected separately" if rest > 1 else ""
    return [
        f"Intervals of differences: {_name_intervals(comparison)}.",
        f"p-values: {describe_test(comparison)}, seed {comparison.seed}, {family}{others}.",
    ]


def explain_columns(comparison: Comparison) -> list[str]:
    """Return notes that explain the further columns."""
    unit = comparison.design.unit
    lines = [
        f"effect: difference over its standard deviation; won/tied/lost: {unit} with the better value.",
        f"detectable: minimum detectable difference at {100 * POWER:g}% power (one test).",
        f"~: rough approximation, because there are few {unit} or a few of them dominate.",
    ]
    return lines if any(row.rough for row in comparison.differences) else lines[:2]


def explain_rows(comparison: Comparison) -> list[str]:
    """Return remarks on single differences: what was not tested and why, and what could not be significant."""
    designs, tests, lines = list(comparison.designs.values()), comparison.tests, []
    unit = designs[0].unit
    if comparison.detect is not None:
        what = f"about how many {unit} are needed to detect a difference of {comparison.detect:g}"
        lines.append(f"needed: {what} at {100 * POWER:g}% power.")
    least = max(
        1 / math.comb(design.clusters, design.baseline_units) if design.name == "unpaired" else least_p(design.common)
        for design in designs
    )
    # Joint permutations may adjust by nothing.
    if least * (tests if comparison.adjusted_for else 1) >= comparison.alpha:
        why = f"p is at least {least:.2g} with so few {unit}, before it is adjusted for {tests} tests"
        lines.append(f"No difference can be significant: {why}.")
    if comparison.adjusted_for:
        fields = ", ".join(comparison.adjusted_for)
        lines.append(f"Adjusted for {fields}: means are standardized to the mix of both logs (post-stratification).")
        for row in comparison.differences:
            if not math.isnan(row.unadjusted):
                value = show_rounded(row.unadjusted, row.unadjusted_interval, signed=True)
                lines.append(f"{row.key} of {row.system} unadjusted: {value}.")
    reasons = dict.fromkeys(f"{row.key}: not tested, {row.reason}." for row in comparison.differences if row.reason)
    noted = (row for row in comparison.differences if row.note and not comparison.designs[row.system].whole)
    notes = dict.fromkeys(f"{row.key}: {row.note}." for row in noted)
    return [*lines, *reasons, *notes]


def _name_intervals(comparison: Comparison) -> str:
    """Return the methods of the intervals."""
    methods = {row.interval_by for row in comparison.differences if row.interval_by is not None}
    unpaired = all(design.name == "unpaired" for design in comparison.designs.values())
    kind = "studentized" if unpaired else "paired studentized"
    words = {
        "studentized": f"{kind} bootstrap, {comparison.resamples:,} resamples",
        "jackknife": "jackknife for counts of distinct types, or where few dialogues differ",
        "welch": "clustered standard errors with Welch's degrees of freedom",
        "tango": "Tango for yes/no values and values of tasks",
        "crossed": "Student's with the variances of both ways of clustering",
        "constant": "Tango for values that are the same in all dialogues",
        "newcombe": "Newcombe for proportions",
        "post-stratified": "post-stratified means, clustered standard errors",
    }
    return "; ".join(text for method, text in words.items() if method in methods) or "none"


def describe_test(comparison: Comparison) -> str:
    """Return the names of the tests."""
    if any(row.interval_by == "crossed" for row in comparison.differences):
        return "Student's t test with the variances of both ways of clustering"
    counted = {row.interval_by == "tango" for row in comparison.differences if not math.isnan(row.p)}
    if counted == {True}:
        return MCNEMAR
    corpus = any(row.corpus for row in comparison.differences)
    names = dict.fromkeys(_name_test(comparison, design, corpus) for design in comparison.designs.values())
    return "; ".join(names) + f" ({MCNEMAR} for yes/no values and values of tasks)" * (True in counted)


def _name_test(comparison: Comparison, design: Design, corpus: bool) -> str:
    """Return the name of the test for a design; `corpus`: with metrics of the whole corpus."""
    unpaired = design.name == "unpaired"
    if unpaired and comparison.adjusted_for:
        return "Welch's t test of the adjusted means"
    if unpaired:
        whole = f"permutation test of whole {design.unit} between systems with {comparison.trials:,} trials"
        return f"{whole}{' (corpus metrics by independent resampling)' * corpus}"
    if has_all_swaps(design.common, comparison.trials):
        return f"exact randomization test, all {2**design.common:,} permutations"
    return f"approximate randomization test with {comparison.trials:,} trials"


def make_system_table(comparison: Comparison, system: str, details: bool = False) -> Table:
    """Return the differences of one system, a row per metric; `details`: with effect, wins and power."""
    names = [shorten(name) for name in (comparison.baseline, system)]
    p = "p adjusted" if comparison.tests > 1 else "p"
    head = ["metric", *names, f"difference ({100 * comparison.confidence:g}% CI)", p]
    head += ["effect", "won/tied/lost", "detectable"] if details else []
    head += [] if comparison.detect is None else ["needed"]
    return Table(head, [_make_cells(row, comparison, details) for row in comparison.of(system)])


def _make_cells(row: Difference, comparison: Comparison, details: bool) -> list[str]:
    rough, decimals = "~" * row.rough, fmt.align_decimals(row.values, [row.interval])
    scored = f" ({row.units}/{row.of})" if row.units != row.of and not row.corpus else ""
    cells = [
        shorten(row.key) + ARROWS[row.better if row.evidence else None],
        show(row.baseline_mean, decimals),
        show(row.mean, decimals) + scored,
        f"{choose_mark(row)} {rough}{show_rounded(row.difference, row.interval, signed=True)}".strip(),
        show_p(row.adjusted_p),
    ]
    if details:
        won = fmt.MISSING if row.wins is None else f"{row.wins}/{row.ties}/{row.losses}"
        cells += [show(row.effect, 2), won, rough + show_value(row.detectable, row.interval)]
    if comparison.detect is not None:
        cells.append(fmt.MISSING if row.needed is None else f"{rough}{row.needed:,}")
    return cells


def standardize_interval(row: Difference) -> tuple[float, float, float] | None:
    """Return lower bound, difference and upper bound in standard deviations, better above zero; None if unknown."""
    if row.interval is None or not row.difference or not math.isfinite(row.effect):
        return None
    factor = abs(row.effect / row.difference) * (-1 if row.better == "lower" else 1)
    low, high = sorted(factor * end for end in row.interval)
    return low, factor * row.difference, high


# Gates for those who read them: test results for CI, and Markdown for a pull request.
#
#     to_junit(gates, results)             JUnit XML: a test case for each gate, with its failure and signature
#     to_github(gates, subject, results)   Markdown: which gates failed, the verdict, the table, and how it was made
#
# Neither format has a time or a place in it: the same values give the same text.

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that no XML document may hold."""


def to_junit(gates: Sequence[Gate], results: Mapping[str, Result], subject: Run | Comparison | None = None) -> str:
    """Return test results that CI servers read, with the verdict; characters that XML cannot hold are written out."""
    from xml.etree import ElementTree as ET

    def clean(text: str) -> str:
        """Write out what a terminal obeys, and replace characters that XML does not allow."""
        return _NOT_XML.sub("\ufffd", plain(text))

    failed = sum(gate.failure is not None for gate in gates)
    counts = {"tests": str(len(gates)), "failures": str(failed), "errors": "0"}
    root = ET.Element("testsuites", counts)
    suite = ET.SubElement(root, "testsuite", {"name": "dialeval", **counts, "skipped": "0"})
    if isinstance(subject, Comparison):
        properties = ET.SubElement(suite, "properties")
        for name in ("kind", "headline"):
            ET.SubElement(properties, "property", name=f"verdict.{name}", value=clean(getattr(subject.verdict, name)))
    for gate in gates:
        case = ET.SubElement(suite, "testcase", classname=clean(gate.system), name=clean(f"{gate.key} {gate.asked}"))
        if gate.failure is not None:
            ET.SubElement(case, "failure", message=clean(gate.failure)).text = clean(gate.failure)
        if signature := _find_signature(results[gate.system], gate.key):
            ET.SubElement(case, "system-out").text = clean(signature)
    ET.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ET.tostring(root, "unicode")}\n'


def to_github(
    gates: Sequence[Gate], subject: Run | Comparison, results: Mapping[str, Result], sentences: Sequence[str] = ()
) -> str:
    """Return Markdown as GitHub renders it, for a comment on a pull request or the summary of a job.

    `sentences`: the verdict on a run.
    """
    if isinstance(subject, Comparison):
        document = to_document(subject)
        shown, notes = to_markdown(replace(document, notes=[], details=[])), document.notes
    else:
        skipped = (f"skipped {key}: {reason}" for key, reason in subject.skipped.items())
        notes = [*tables.describe_values(subject), *skipped, *subject.warnings]
        above = [f"{escape_markdown(line)}\n" for line in sentences]
        shown = "\n".join([*above, tables.to_markdown(subject, transpose=True, metrics=subject.keys_in_order)])
    failures = "".join(f"- {escape_markdown(gate.failure)}\n" for gate in gates if gate.failure is not None)
    signatures = (_find_signature(result, key) for result in results.values() for key in result)
    details = dict.fromkeys([*notes, *filter(None, signatures)])
    lines = "\n".join(f"- {escape_markdown(line)}" for line in details)
    folded = f"<details><summary>How these values were computed</summary>\n\n{lines}\n\n</details>\n"
    return "\n".join([f"### {_make_heading(gates)}\n", *([failures] if failures else []), shown, folded])


def _make_heading(gates: Sequence[Gate]) -> str:
    failed = sum(gate.failure is not None for gate in gates)
    if not gates:
        return "dialeval"
    if failed:
        return f"dialeval: {failed} of {len(gates)} gate{'s' * (len(gates) > 1)} failed"
    return "dialeval: the gate holds" if len(gates) == 1 else f"dialeval: all {len(gates)} gates hold"


def _find_signature(result: Result, key: str) -> str:
    estimate = result.get(key)
    return "" if estimate is None or estimate.signature is None else str(estimate.signature)
