"""Results of human evaluation as tables: for the terminal, for papers and pages, for other programs.

- `HumanEstimates`: a line per system and a line per difference: the estimate with its interval, the one from ratings
  alone, and the effective sample size. `RatingPlan`: how many ratings an interval of some width takes.
- `Ranking`: a line per system, best first, with the groups that are not significantly different as letters; then wins,
  ties and losses between all pairs.
- `MergedRatings`: inter-annotator agreement, each rater, and the rows on which raters differ.

JSON and CSV hold every digit. `make_human_section` is the section of the report on human evaluation: the results of
`dialeval.estimate_ratings`, `dialeval.measure_agreement` and `dialeval.rank`, as they are printed in the terminal.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from dialeval.human.estimate import ALPHA, HumanEstimate, HumanEstimates, RatingPlan
from dialeval.human.merge import MergedRatings, merge_ratings
from dialeval.human.rank import Ranking
from dialeval.reports import charts, markup
from dialeval.reports.analyses import describe_agreement
from dialeval.reports.charts import Figure, Mark
from dialeval.reports.documents import Document, Table
from dialeval.reports.formatting import MISSING, plain, shorten, show_fixed, show_interval, show_p, show_rounded
from dialeval.reports.markup import Section
from dialeval.stats.significance import POWER

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement
    from dialeval.human.form import Form
    from dialeval.human.store import RatingStore
    from dialeval.stats.correlation import Ceiling


_MERGED_NOTES = (
    "ordinal alpha: Krippendorff's alpha with distances of ordered values, and its 95% interval over rows "
    "(jackknife); 1 is perfect, 0 is chance. repeated: rows rated twice by the same rater; "
    "intra-rater: the fraction of these with the same answer. r: correlation with the mean of the other raters; "
    "higher: mean difference from them."
)

HASTY = 1.0
"""Median seconds for a row below which a rater is flagged."""
FEWEST_ANSWERS = 5
"""Equal answers from which on a rater who gave no others is flagged."""


def describe_estimates(people: HumanEstimates) -> Document:
    """Describe estimates of mean ratings: a line per system and a line per difference."""
    head = ["system", "estimate", "ratings alone", "ratings", "effective", "r"]
    if not people.judge:
        head = ["system", "ratings alone", "ratings"]
    tables = [Table(head, [_make_estimate_cells(estimate, people) for estimate in people.systems])]
    if people.differences:
        head = ["difference", *head[1:-1], "p adjusted" if people.judge else head[-1]]
        tables.append(Table(head, [_make_estimate_cells(estimate, people) for estimate in people.differences]))
    return Document(state_verdict(people), tables, _explain_estimates(people))


def state_verdict(people: HumanEstimates) -> list[str]:
    """Return which systems differ from the baseline, in a sentence; none where there are no differences."""
    sentences = {
        "higher": "the mean human rating of {} is significantly higher than that of {}",
        "lower": "the mean human rating of {} is significantly lower than that of {}",
        "equal": "no significant difference between {} and {}",
    }
    names: dict[str, list[str]] = {way: [] for way in sentences}
    for difference in people.differences:
        way = ("higher" if difference.value > 0 else "lower") if difference.adjusted_p < ALPHA else "equal"
        names[way].append(plain(difference.system))
    baseline, tests = plain(people.baseline), len(people.differences)
    parts = "; ".join(sentences[way].format(", ".join(some), baseline) for way, some in names.items() if some)
    how = f"{plain(people.quality)}, significance level 0.05" + (f", corrected for {tests} tests" if tests > 1 else "")
    return [f"{parts[0].upper()}{parts[1:]} ({how})."] if parts else []


def _explain_estimates(people: HumanEstimates) -> list[str]:
    """Return what the estimates are, a line each."""
    whom = f"other {people.unit} of the same kind" if people.population == "dialogues" else "the rows of this run only"
    intervals = f"{100 * people.confidence:g}% confidence intervals for mean human ratings of {whom}"
    lines = [f"Quality {plain(people.quality)}; {intervals}."]
    if people.judge:
        judge = " and ".join(plain(key) for key in people.judge)
        lines.append(
            f"estimate: ratings, and {judge} on all rows (prediction-powered). effective: effective sample size, as "
            "many ratings alone would give the same precision. r: correlation of judge and human ratings."
        )
    lines += _describe_raters(people)
    if not people.at_random:
        lines.append(
            "NOT A RANDOM SAMPLE: estimates assume that the rated rows were sampled at random, which is not known."
        )
    return lines


def _make_estimate_cells(estimate: HumanEstimate, people: HumanEstimates) -> list[str]:
    signed = estimate.baseline is not None
    name = " - ".join(shorten(name) for name in (estimate.system, estimate.baseline) if name is not None)
    alone = [_show_known(estimate.alone, estimate.alone_interval, signed), str(estimate.ratings)]
    if not people.judge:
        return [name, *alone]
    both = _show_known(estimate.value, estimate.interval, signed)
    last = show_p(estimate.adjusted_p) if signed else show_fixed(estimate.agreement, 2)
    return [name, both, *alone, show_fixed(estimate.effective_ratings, 0), last]


def _describe_raters(result: HumanEstimates | Ranking) -> list[str]:
    """Return for which raters intervals hold; nothing where no rater is named."""
    number = result.named_raters
    if result.raters == "random":
        return [f"Raters are random: intervals hold for other raters too ({number} raters)."]
    count = f"these {number} raters" if number > 1 else "this one rater"
    return [f"Raters are fixed: intervals are for ratings by {count}, and not for other raters."] if number else []


def _show_known(value: float, interval: tuple[float, float], signed: bool = False) -> str:
    """Return a value, with its interval if that is known."""
    return show_rounded(value, interval if all(map(math.isfinite, interval)) else None, signed)


def describe_plan(plan: RatingPlan) -> Document:
    """Describe how many ratings an interval of some width takes."""

    def show(number: int | None) -> str:
        return "more dialogues" if number is None else f"{number:,}"

    rows = [[shorten(need.system), show(need.with_judge), show(need.alone), f"{need.of:,}"] for need in plan.needed]
    notes = [f"This holds if {'; '.join(plan.assumptions)}."]
    notes += plan.judges
    if any(need.with_judge is None for need in plan.needed):
        notes.append("more dialogues: ratings of all rows would not give that width.")
    if len(plan.needed) > 1:
        what = f"a difference of {plan.detectable:.2g} between two of these systems"
        notes.append(f"With such intervals, {what} is detected with {100 * POWER:g}% power.")
    title = f"Ratings for a {100 * plan.confidence:g}% interval of width {plan.width:g}:"
    return Document([title], [Table(["system", "with the judge", "ratings alone", "of"], rows)], notes)


def describe_ranking(ranking: Ranking) -> Document:
    """Describe a ranking: a line per system, best first, and the wins, ties and losses between all pairs."""
    names, systems, between = {row.system: shorten(row.system) for row in ranking.systems}, [], []
    for row in ranking.systems:
        values = show_rounded(row.strength, row.interval, signed=True), show_rounded(row.score, row.score_interval)
        counts = f"{row.wins}/{row.ties}/{row.losses}"
        systems.append([names[row.system], ranking.letters[row.system], *values, counts])
        against = {other: "/".join(map(str, each)) for other, each in ranking.between[row.system].items()}
        between.append([names[row.system], *(against.get(other, "") for other in names)])
    first = Table(["system", "group", "strength", "score", "won/tied/lost"], systems)
    return Document([], [first, Table(["won/tied/lost against", *names.values()], between)], _explain_ranking(ranking))


def _explain_ranking(ranking: Ranking) -> list[str]:
    """Return what the numbers are, a line each."""
    tests = len(ranking.systems) * (len(ranking.systems) - 1) // 2
    corrected = f", corrected by Holm for {tests} pairs of systems" if tests > 1 else ""
    level, clusters = f"{100 * ranking.confidence:g}%", f"{ranking.dialogues:,} {ranking.unit}"
    lines = [
        f"{ranking.pairs:,} pairs; {level} intervals over {clusters} (jackknife, Student).",
        "strength: Bradley-Terry log odds (ties by Davidson's model).",
        "score: expected fraction of wins against the others, a tie counting half.",
        f"group: systems with a letter in common do not differ significantly (significance level 0.05{corrected}).",
    ]
    for control, to_odds, value, interval in (
        ("length: doubling the length", partial(math.pow, 2.0), ranking.length, ranking.length_interval),
        ("position: being a (shown first)", math.exp, ranking.position, ranking.position_interval),
    ):
        if not math.isnan(value):
            factor, low, high = map(to_odds, (value, *interval))
            odds = f"multiplies the odds by {show_fixed(factor, 2)} ({show_interval((low, high), 2)})"
            lines.append(f"Controlled for {control} {odds}, and the strengths are free of this effect.")
    lines += _describe_raters(ranking)
    if ranking.left_out:
        lines.append(f"{ranking.left_out} pairs without texts are left out.")
    return lines


def describe_merged(merged: MergedRatings) -> Document:
    """Describe inter-annotator agreement, each rater, and the rows on which raters differ."""
    names, rows = ({getattr(line, name) for line in merged.lines} for name in ("rater", "id"))
    summary = f"{len(merged.lines)} ratings of {len(rows)} rows by {len(names)} raters."
    summary += "".join(f" {shorten(rater)} was uncertain {number} times." for rater, number in merged.uncertain.items())
    ceilings, raters, disputed = [], [], []
    for quality, ceiling in merged.ceilings.items():
        interval = ceiling.alpha_interval.get("ordinal", (math.nan, math.nan))
        alpha = _show_known(ceiling.alpha.get("ordinal", math.nan), interval)
        a_row = "-".join(map(str, dict.fromkeys(ceiling.annotators))) if ceiling.n else MISSING
        ceilings.append([shorten(quality), alpha, str(ceiling.n), a_row])
    several = len(merged.ceilings) > 1
    for rater in merged.raters:
        agreement = MISSING if math.isnan(rater.intra_rater_agreement) else f"{rater.intra_rater_agreement:.0%}"
        higher = MISSING if math.isnan(rater.higher) else f"{rater.higher:+.2f}"
        seconds = show_fixed(merged.seconds.get(rater.rater, math.nan), 0)
        cells = [str(rater.rows), str(rater.repeated), agreement, show_fixed(rater.correlation, 2), higher, seconds]
        raters.append([*map(shorten, [rater.rater, rater.quality] if several else [rater.rater]), *cells])
    for row in merged.disputed:
        answers = ", ".join(f"{shorten(name)} {value:g}" for name, value in row.answers.items())
        disputed.append([shorten(row.id), shorten(row.quality), answers])
    heads = ["rater", "quality"] if several else ["rater"]
    columns = ["rows", "repeated", "intra-rater", "r", "higher", "seconds"]
    tables = [
        Table(["quality", "ordinal alpha", "rows with two or more", "raters a row"], ceilings),
        Table([*heads, *columns], raters),
        Table(["to adjudicate", "quality", "answers"], disputed),
    ]
    return Document([summary, *flag_raters(merged)], [table for table in tables if table.cells], [_MERGED_NOTES])


def flag_raters(merged: MergedRatings) -> list[str]:
    """Return a sentence for each rater whose answers look careless: in no time, or always the same."""
    flags = []
    answers: dict[str, dict[str, list[float]]] = {}
    for line in merged.lines:
        for quality, value in line.scores.items():
            answers.setdefault(line.rater, {}).setdefault(quality, []).append(value)
    for rater, qualities in answers.items():
        if merged.seconds.get(rater, math.nan) < HASTY:
            flags.append(f"{shorten(rater)} took less than {HASTY:g} second for half of the rows.")
        for quality, values in qualities.items():
            if len(values) >= FEWEST_ANSWERS and len(set(values)) == 1:
                same = f"{shorten(quality)} {values[0]:g}"
                flags.append(f"{shorten(rater)} gave the same answer {len(values)} times ({same}).")
    return flags


def draw_estimates(estimates: HumanEstimates | None) -> list[Figure]:
    """Draw estimates with and without the judge; nothing where there is no judge."""
    if estimates is None or not estimates.judge:
        return []
    ways = (("with the judge", "value", "interval", "own-0"), ("ratings alone", "alone", "alone_interval", "own-1"))
    marks = [
        Mark(f"{shorten(estimate.system)}, {words}", getattr(estimate, value), getattr(estimate, interval), kind)
        for estimate in estimates.systems
        for words, value, interval, kind in ways
        if math.isfinite(getattr(estimate, value))
    ]
    title = f"Mean human rating ({shorten(estimates.quality)}), with and without the judge"
    note = f"Intervals: {100 * estimates.confidence:g}%. Judge: {' and '.join(map(shorten, estimates.judge))}."
    return [charts.forest(marks, title, "mean rating", notes=[note])]


def make_human_section(
    estimates: HumanEstimates | None,
    agreement: Agreement | None,
    ranking: Ranking | None,
    merged: MergedRatings | None = None,
) -> Section | None:
    """Return the section on human evaluation; None where there are no ratings."""
    parts = ["" if merged is None else markup.notice(flag_raters(merged))]
    shown_figures = "".join(f"<figure>{figure.inline}</figure>" for figure in draw_estimates(estimates))
    parts.append(f'<div class="figures">{shown_figures}</div>' if shown_figures else "")

    def add(title: str, shown: Document, captions: list[str], warnings: Sequence[str] = ()) -> None:
        whole = replace(shown, notes=[*shown.notes, *warnings])
        parts.append(f"<h3>{title}</h3>{markup.document(whole, 'people', captions)}")

    if estimates is not None:
        mean = "Mean rating with its interval: ratings and judge together, and ratings alone."
        add("Mean human ratings", describe_estimates(estimates), [mean, "Differences."], estimates.warnings)
    if agreement is not None:
        parts.append(f"<h3>Inter-annotator agreement</h3><p>{_describe_ceiling(agreement.ceiling)}</p>")
        shown = describe_agreement(agreement)
        shown = replace(shown, sentences=[], tables=shown.titled_tables)
        add("Correlation of metrics with human ratings", shown, ["Correlation coefficients, with their intervals."])
    if ranking is not None:
        captions = ["Strengths, with their intervals.", "Wins between all pairs."]
        add("Ranking by preferences", describe_ranking(ranking), captions, ranking.warnings)
    if merged is not None:
        parts.append(f"<h3>Raters</h3>{_render_raters(merged)}")
    return Section("people", "Human evaluation", "".join(parts)) if any(parts) else None


def _render_raters(merged: MergedRatings) -> str:
    captions = ["Inter-annotator agreement.", "Raters.", "To adjudicate."]
    return markup.document(replace(describe_merged(merged), sentences=[]), "people", captions)


def _describe_ceiling(ceiling: Ceiling) -> str:
    if ceiling.reason is not None:
        return markup.text(f"Not known: {ceiling.reason}.")
    return f"Krippendorff's alpha is {ceiling.alpha['ordinal']:.2f} over {ceiling.n:,} rows with two raters or more."


# The state of a study, which the lead's page draws.


def describe_study(store: RatingStore, form: Form, links: Mapping[str, str]) -> dict[str, Any]:
    """Return the state as plain data: of raters their progress and consistency, of qualities alpha and all answers."""
    raters: dict[str, dict[str, Any]] = {
        name: {"name": name, "link": links[name], "rated": rated, "assigned": assigned}
        for name, (rated, assigned) in store.count_ratings().items()
    }
    if not any(rater["rated"] for rater in raters.values()):
        return {"raters": [*raters.values()], "answers": {}, "alpha": {}, "comments": {}, "flags": []}
    merged = merge_ratings([store.path], form=form)
    answers: dict[str, dict[str, dict[str, float | None]]] = {quality.name: {} for quality in form.quality}
    comments: dict[str, dict[str, str]] = {}
    for line in merged.lines:
        for name, value in (line.scores | dict.fromkeys(line.uncertain)).items():
            answers[name].setdefault(line.id, {})[line.rater] = value
        if line.comment:
            comments.setdefault(line.id, {})[line.rater] = line.comment
    for rater in reversed(merged.raters):  # so that the first quality counts where there are several
        again, same = rater.repeated, rater.intra_rater_agreement
        raters[rater.rater] |= {"again": again, "same": round(same * again) if again else 0, "higher": rater.higher}
    for name, rater_of in raters.items():
        rater_of |= {"seconds": merged.seconds.get(name), "gold": merged.gold.get(name)}
    return {
        "raters": [*raters.values()],
        "answers": answers,
        "alpha": {
            name: [ceiling.alpha.get("ordinal"), *ceiling.alpha_interval.get("ordinal", ())]
            for name, ceiling in merged.ceilings.items()
        },
        "comments": comments,
        "flags": [*merged.warnings, *flag_raters(merged)],
    }
