"""Results of analyses as documents: agreement with people, labels, preferences, groups, survival, users.

Of the agreement of metrics with human ratings the verdict comes first: which metric agrees best, and which do not
differ significantly from it. Then a table per level, a row per metric: three coefficients with their intervals, `*`
where one differs from 0 (its p, corrected for all coefficients of the table, is below 1 - confidence). Of too few
systems there are no intervals. At the level of the ranking the best metric is first, and metrics that share a letter
(`group`) do not differ significantly. Where every dialogue has one rated turn, the level of dialogues would repeat that
of turns and is left out of tables.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from dialeval.analysis.agreement import CONTROL, RANKED_BY, SIGNIFICANT
from dialeval.analysis.labels import FEWEST_DIALOGUES, SAME_FAMILY
from dialeval.analysis.matching import LEVELS
from dialeval.core.errors import SettingError
from dialeval.io.ratings import TIE
from dialeval.reports import formatting as fmt
from dialeval.reports.charts import COLORS, Figure, Mark, forest
from dialeval.reports.documents import Document, Table
from dialeval.reports.formatting import (
    MISSING,
    list_names,
    plain,
    shorten,
    show_fixed,
    show_interval,
    show_p,
    show_rounded,
)
from dialeval.reports.tables import ARROWS
from dialeval.stats.correlation import NAMES
from dialeval.stats.labels import STATISTICS, plan_pairs

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement, Correlation, Interval
    from dialeval.analysis.discovery import Discovery
    from dialeval.analysis.labels import LabelAgreement, LabelFit, RateEstimate
    from dialeval.analysis.sequential import MetricTrend, SequentialTest, Trend
    from dialeval.analysis.survival import Survival, SurvivalCurve
    from dialeval.analysis.users import UserComparison

DIFFERS = "*"
HEADS = {"pearson": "Pearson r", "spearman": "Spearman rho", "kendall": "Kendall tau"}


def describe_agreement(agreement: Agreement) -> Document:
    """Return the verdict, a table per level, and what to read it against."""
    levels = dict(_make_tables(agreement))
    return Document(state_verdict(agreement), [*levels.values()], list_notes(agreement), titles=[*levels])


def state_verdict(agreement: Agreement) -> list[str]:
    """Return which metric agrees best with human ratings, which it is better than, and which do not beat length.

    A metric is called better only where the corrected test of `rank_metrics` is significant.
    """
    ranking, level = agreement.ranking, agreement.control.level
    if not ranking.metrics:
        return [f"No metric could be correlated with human ratings of {shorten(agreement.quality)}."]
    first, *others = ranking.metrics
    best = shorten(first.metric)
    correlation = agreement[first.metric][level]
    turned = " (sign reversed: lower values are better)" if first.turned else ""
    figure, over = f"{HEADS[RANKED_BY]} {show_fixed(first.value, 2)}", f"{correlation.n:,} {level}s"
    ends = getattr(correlation, f"{RANKED_BY}_interval")
    if ends is None:
        return [f"{best} has the highest {figure}{turned}, but {over} are too few to say anything about other systems."]
    low, high = ends
    figure += f" {_show_ends((-high, -low) if first.turned else (low, high))}{turned}"
    if not _is_significant(correlation, RANKED_BY, agreement):
        highest = f"the highest, {best}, has {figure} over {over}"
        family = f"corrected for {_count_tests(agreement, level)} coefficients, it does not differ from 0"
        return [f"No metric correlates significantly with human ratings: {highest}; {family}."]
    sentences = [f"{best} has the highest correlation with human ratings: {figure} over {over}."]
    worse = [place.metric for place in others if ranking.differ(first.metric, place.metric)]
    alike = [place.metric for place in others if place.metric not in worse]
    tests = "test" if ranking.tests == 1 else "tests"
    sure = f"significance level {SIGNIFICANT:g}, corrected for {ranking.tests} {tests}"
    outcomes = [f"It is better than {list_names(worse)}"] if worse else []
    outcomes += [f"{'n' if worse else 'N'}o significant difference from {list_names(alike)}"] if alike else []
    sentences += [f"{'; '.join(outcomes)} ({sure})."] if outcomes else []
    if agreement.control.not_above and first.metric != CONTROL:
        sentences.append(f"Not significantly better than response length: {list_names(agreement.control.not_above)}.")
    return [" ".join(sentences)]


def _is_significant(correlation: Correlation, name: str, agreement: Agreement) -> bool:
    """Return whether a coefficient differs from 0, corrected for all coefficients of the table."""
    return bool(getattr(correlation, f"{name}_adjusted_p") < 1 - agreement.bootstrap.confidence)


def _count_tests(agreement: Agreement, level: str) -> int:
    """Return how many coefficients the p-values of a level are corrected for."""
    rows = [levels[level] for levels in agreement.metrics.values() if level in levels]
    return sum(not math.isnan(getattr(row, f"{name}_adjusted_p")) for row in rows for name in NAMES)


def list_notes(agreement: Agreement) -> list[str]:
    """Return what the coefficients are to be read against, a line each."""
    bootstrap = agreement.bootstrap
    level = f"{100 * bootstrap.confidence:g}%"
    levels = dict(_select_levels(agreement))
    over = f"{level} intervals over dialogues (or rows without one)"
    lines = [f"{agreement.rated} rated rows, quality {agreement.quality}; {over}"]
    if "system" in levels:
        lines[0] += " (of systems: over systems)"
    people = agreement.ceiling
    if people.reason is not None:
        lines.append(f"no ceiling: {people.reason}")
    else:
        alpha = ", ".join(
            f"{name} {show_fixed(value, 3)} {_show_ends(people.alpha_interval[name])}"
            for name, value in people.alpha.items()
        )
        highest = ", ".join(
            f"{show_fixed(value, 3)} {_show_ends(people.highest_interval[at])} at {at} level"
            for at, value in people.highest.items()
            if at in levels
        )
        lines += [
            f"ceiling (square root of the reliability of the mean rating, {people.n} rows): Pearson r {highest}",
            f"Krippendorff's alpha: {alpha}",
        ]
    for at, keys in agreement.above_ceiling.items():
        if keys and at in levels:
            lines.append(f"ABOVE THE CEILING at {at} level, by chance or as it saw the ratings: {list_names(keys)}")
    tests = ", ".join(f"{count} at {at} level" for at in levels if (count := _count_tests(agreement, at)))
    alpha = f"significance level {1 - bootstrap.confidence:.3g}"
    if tests:
        lines.append(f"{DIFFERS} differs from 0 ({alpha}, corrected by Holm for all coefficients of a table: {tests})")
    if agreement.ranking.tests:
        lines.append(f"group: metrics that share a letter do not differ significantly ({agreement.ranking.test})")
    lines += agreement.excluded
    return [plain(line) for line in lines]


def _select_levels(agreement: Agreement) -> Iterator[tuple[str, dict[str, Correlation]]]:
    """Yield the levels with their correlations that some metric has values for, without those that repeat another."""
    for level in LEVELS:
        here = {key: levels[level] for key, levels in agreement.metrics.items() if level in levels}
        turns = {key: levels["turn"].n for key, levels in agreement.metrics.items() if "turn" in levels}
        repeated = level == "dialogue" and all(correlation.n == turns.get(key) for key, correlation in here.items())
        if any(correlation.reason is None for correlation in here.values()) and not repeated:
            yield level, here


def _make_tables(agreement: Agreement) -> Iterator[tuple[str, Table]]:
    """Yield the table of each level, with its title."""
    for level, here in _select_levels(agreement):
        n = max(correlation.n for correlation in here.values() if correlation.reason is None)
        places = {p.metric: p.groups for p in agreement.ranking.metrics} if level == agreement.control.level else {}
        order = sorted(here, key=lambda key: list(places).index(key) if key in places else len(places))
        rows = [
            [shorten(key), *([places.get(key, MISSING)] if places else []), *_make_cells(here[key], agreement)]
            for key in order
        ]
        yield f"{level} level, n = {n:,}", Table(["metric", *(["group"] if places else []), *HEADS.values()], rows)


def _make_cells(correlation: Correlation, agreement: Agreement) -> list[str]:
    if correlation.reason is not None:
        return [MISSING for _ in NAMES]
    cells = []
    for name in NAMES:
        mark = DIFFERS if _is_significant(correlation, name, agreement) else ""
        ends = getattr(correlation, f"{name}_interval")
        interval = "" if ends is None else f" {_show_ends(ends)}"
        cells.append(f"{show_fixed(getattr(correlation, name), 3)}{mark}{interval}")
    return cells


def _show_ends(ends: Interval) -> str:
    return f"({show_interval(ends, 2)})"


_STATISTICS = ("agreement", "Cohen's kappa", "Gwet's AC1", "alpha", "ordinal alpha")
"""Of the statistics, in order."""


def describe_labels(agreement: LabelAgreement) -> Document:
    """Return a table of statistics, and a confusion matrix per metric."""
    rows = [
        [shorten(key), f"{scores.n:,}", *(show_rate(scores.statistics[name]) for name in STATISTICS)]
        for key, scores in agreement.metrics.items()
    ]
    tables, titles = [Table(["metric", "rows", *_STATISTICS], rows)], [f"Labels of {plain(agreement.quality)}"]
    names = [f"{label:g}" for label in agreement.labels]
    for key, scores in agreement.metrics.items():
        lines = [[name, *map(str, line)] for name, line in zip(names, scores.confusion, strict=True)]
        tables.append(Table(["human label", *names], lines))
        titles.append(f"Confusion matrix of {shorten(key)}: rows are human labels, columns the metric")
        if "tpr" in scores.statistics:
            tables.append(_make_rate_table(scores))
            titles.append(f"Errors of {shorten(key)}, and rates of yes without them")
        if scores.bias:
            biases = [[name, show_rate(bias)] for name, bias in scores.bias.items()]
            tables.append(Table(["reply with", "change"], biases))
            titles.append(f"Bias of {shorten(key)}: change of its value less the human label, by one regression")
    notes = [f"{100 * agreement.level:g}% intervals over dialogues (jackknife, Student); alpha is Krippendorff's."]
    if families := [fit.bias[SAME_FAMILY] for fit in agreement.metrics.values() if SAME_FAMILY in fit.bias]:
        notes.append(f"“{SAME_FAMILY}” (as the judge) compares systems, which may differ in more than their models.")
        if any(math.isnan(each.value) for each in families):
            what = f"takes systems of that family and others, and {FEWEST_DIALOGUES} dialogues"
            notes.append(f"An estimate of it {what}; {MISSING} is none.")
    if agreement.split:
        notes.append(f"{agreement.split:,} rows without a majority of annotators are left out.")
    if agreement.excluded:
        notes.append(f"Not on the scale of the labels: {', '.join(map(shorten, agreement.excluded))}.")
    if any(scores.rates for scores in agreement.metrics.values()):
        notes.append(
            "Corrected rates (Rogan-Gladen) hold if the judge errs alike on all systems; `dialeval estimate` needs no "
            "such assumption (PPI++), but ratings of each system."
        )
    return Document([], tables, notes, titles=titles)


def draw_bias(agreement: LabelAgreement) -> Figure:
    """Draw how the errors of judges depend on length, place and format of replies, and on the family of models.

    Raises:
        SettingError: There is nothing to draw.
    """
    shown = {key: fit for key, fit in agreement.metrics.items() if fit.bias}
    if not shown:
        what = f"takes {FEWEST_DIALOGUES} dialogues and replies that differ in length, place or format"
        raise SettingError(f"no figure: the bias of a judge {what}")
    marks = [
        Mark(name if len(shown) == 1 else f"{name}, {key}", bias.value, bias.interval, f"own-{number % COLORS}")
        for number, (key, fit) in enumerate(shown.items())
        for name, bias in fit.bias.items()
        if math.isfinite(bias.value)
    ]
    rows = ", ".join(f"{fit.n:,} rows of {shorten(key)}" for key, fit in shown.items())
    note = f"{rows}; {100 * agreement.level:g}% intervals over dialogues. Right of 0: graded higher than by people."
    title = f"Bias of {list_names(list(shown))}: one regression of its errors"
    axis = f"change of the value less the human label ({plain(agreement.quality)})"
    return forest(marks, title, axis, zero=True, notes=[note], width=600)


def _make_rate_table(scores: LabelFit) -> Table:
    names = {"tpr": "true positive rate (TPR)", "tnr": "true negative rate (TNR)"}
    rates = {name: scores.statistics[key] for key, name in names.items()}
    for system, both in scores.rates.items():
        rates |= {
            f"yes of {plain(system)}, as judged": both.judged,
            f"yes of {plain(system)}, corrected": both.corrected,
        }
    return Table(["rate", "rows", "value"], [[name, f"{rate.n:,}", show_rate(rate)] for name, rate in rates.items()])


def describe_preferences(preferences: Any) -> Document:
    """Return what a language model prefers, and how far that depends on the order."""
    missing = sum(preferences.missing.values())
    lines = {"verdict depends on the order (counted as a tie)": preferences.flips}
    notes = [f"{preferences.asked:,} pairs, each asked in both orders, by {plain(preferences.judge)}."]
    notes += [f"no verdict: {plain(reason)} ({count:,})" for reason, count in preferences.missing.items()]
    if preferences.agreement is not None:
        lines |= {
            "judge agrees with the human preference": preferences.agreement.judge,
            "longer response agrees with it": preferences.agreement.longer,
            "difference of the two": preferences.agreement.difference,
        }
        notes.append(f"{preferences.agreement.pairs:,} pairs with a human preference; a tie of the judge counts half.")
    rows = [[name, _show_percent(rate)] for name, rate in lines.items() if rate is not None]
    part = f"{missing:,} of {preferences.asked:,} ({100 * missing / preferences.asked:.1f}%)"
    rows.append(["pairs without a verdict", part])
    decided = sum(pair["better"] != TIE for pair in preferences.pairs) / max(len(preferences.pairs), 1)
    if decided:
        what = f"{100 * decided:.0f}% of the pairs are no tie: to show that one of two systems wins 55% of these takes"
        notes.append(f"{what} {plan_pairs(decided):,} pairs (80% power).")
    table = Table(["judge", plain(preferences.judge)], rows)
    return Document([plain(line) for line in preferences.warnings], [table], notes)


def show_rate(rate: RateEstimate | None) -> str:
    """Return a value with its interval."""
    return "-" if rate is None else f"{show_fixed(rate.value, 2)} ({show_interval(rate.interval, 2)})"


def _show_percent(rate: RateEstimate | None) -> str:
    if rate is None:
        return "-"
    low, high = (100 * end for end in rate.interval)
    return f"{100 * rate.value:.1f}% ({show_interval((low, high), 1)})"


_MOST_TURNS = 12


def describe_discovery(discovery: Discovery) -> Document:
    """Describe the discovered groups."""
    sentences, rows, examples = [], [], []
    for group in discovery.groups:
        figure = show_rounded(group.difference, group.interval, signed=True)
        way, mark = ("is worse", fmt.WORSE) if group.worse else ("is better", fmt.BETTER)
        if group.better is None:
            way, mark = "differs", fmt.DIFFERENT
        numbers = [shorten(group.system), shorten(group.key), f"{group.dialogues:,}"]
        clear = f"{figure} {mark}" if group.significant else figure
        rows.append([shorten(group.name), *numbers, clear, show_p(group.adjusted_p)])
        if group.significant:
            against = "" if group.baseline is None else f" against {shorten(group.baseline)}"
            where = f"{numbers[0]} {way}{against} in {numbers[2]} dialogues with: {plain(group.name)}"
            sentences.append(f"{where} ({numbers[1]} {figure} to the rest).")
            examples += [f"{plain(group.name)}: “{shorten(group.examples[0])}”." for _ in group.examples[:1]]
    head = ["group", "system", "metric", "dialogues", "group minus rest", "adjusted p"]
    sizes = ", ".join(f"{one:,} and {other:,} of {shorten(name)}" for name, (one, other) in discovery.halves.items())
    looked = ", ".join(f"{number:,} {kind}" for kind, number in discovery.candidates.items()) or "none"
    notes = [
        *examples,
        f"One half of the dialogues ({sizes}) suggests groups, the other tests them; then they change places.",
        "Estimates and dialogues are those of the half that tests.",
        f"Candidates: {looked}. Corrected by Holm for all tests (significance level {discovery.alpha:g}).",
        *(f"Left out: {plain(reason)}." for reason in dict.fromkeys(discovery.left_out.values())),
        *discovery.notes,
    ]
    tables = [Table(head, rows)] if rows else []
    return Document(sentences or ["No group clearly differs from the rest."], tables, notes)


def describe_survival(result: Survival) -> Document:
    """Describe how many turns conversations go without a failed reply."""
    sentences, summary = [], []
    for system in result.systems:
        curve = system.curve
        ends = " to ".join(MISSING if end is None else str(end) for end in (curve.median_low, curve.median_high))
        median = MISSING if curve.median is None else f"{curve.median} ({ends})"
        counts = f"{system.conversations:,}", f"{system.failed:,}"
        summary.append([shorten(system.system), *counts, median, show_p(system.adjusted_p)])
        if system.earlier is not None:
            way = "fails earlier than" if system.earlier else "fails later than"
            words = way if system.adjusted_p < 1 - result.confidence else "does not clearly differ from"
            sentences.append(f"{shorten(system.system)} {words} {summary[0][0]} (p {show_p(system.adjusted_p)}).")
    rows = [
        [str(turn), *(_show_at(system.curve, turn) for system in result.systems)]
        for turn in sorted({turn for system in result.systems for turn in system.curve.turns})[:_MOST_TURNS]
    ]
    fails = f"{plain(result.key)} {result.fails} {result.limit:g}"
    clusters = "" if result.cluster is None else f", clustered by {plain(result.cluster)}"
    notes = [
        f"A reply fails with {fails}. Others are censored at their last turn.",
        f"Kaplan-Meier, {100 * result.confidence:g}% intervals (Greenwood{clusters}); p: log-rank test, Holm.",
        *result.notes,
    ]
    names = [shorten(system.system) for system in result.systems]
    head = ["system", "conversations", "failed", "median turn of first failure", "p"]
    return Document(sentences, [Table(head, summary), Table(["without failure after turn", *names], rows)], notes)


def _show_at(curve: SurvivalCurve, turn: int) -> str:
    """Return the fraction without a failure after a turn, with its interval."""
    reached = sum(at <= turn for at in curve.turns) - 1
    if reached < 0 or turn > curve.turns[-1]:
        return MISSING
    low, high = 100 * curve.low[reached], 100 * curve.high[reached]
    return f"{100 * curve.survival[reached]:.0f}% ({low:.0f} to {high:.0f})"


def describe_users(users: UserComparison) -> Document:
    """Describe whether simulated users can be told apart from real ones, and by what."""
    apart = "cannot be told apart from real ones" if users.p >= users.alpha else "can be told apart from real ones"
    accuracy = f"accuracy {show_fixed(users.accuracy, 2)} ({show_interval(users.interval, 2)})"
    sentences = [f"Simulated users {apart}: {accuracy}, p {show_p(users.p)}; 0.5 is chance."]
    if advice := [habit.advice for habit in users.habits if habit.advice]:
        sentences.append(f"To be more like real users: {', '.join(advice)}.")
    rows = []
    for habit in users.habits:
        values = show_fixed(habit.real, 2), show_fixed(habit.simulated, 2), show_interval(habit.interval, 2)
        rows.append([habit.name, *values, show_p(habit.adjusted_p)])
    tables = [Table(["per dialogue", "real", "simulated", "simulated minus real", "adjusted p"], rows)]
    for key, ranking in users.ranking.items():
        means = [[shorten(name), *(show_fixed(mean, 3) for mean in both)] for name, both in ranking["systems"].items()]
        tables.append(Table([f"{shorten(key)} (tau {show_fixed(ranking['tau'], 2)})", "real", "simulated"], means))
    words = {"real": users.real_words, "simulated": users.simulated_words}
    notes = [f"Typical of {side} users: {plain(', '.join(some))}." for side, some in words.items() if some]
    notes.append(f"{users.dialogues[0]:,} real and {users.dialogues[1]:,} simulated dialogues have user turns.")
    notes.append("Accuracy: naive Bayes on words, cross-fitted, p of permuted dialogues. Habits are corrected by Holm.")
    return Document(sentences, tables, notes)


def describe_sequential_test(test: SequentialTest) -> Document:
    """Describe the differences at an interim look."""
    designs = (design.describe(plain(test.baseline), plain(name)) for name, design in test.designs.items())
    head = ["metric", "system", test.unit, "difference", "by", "decided after"]
    rows = []
    for row in test.differences:
        mark = {None: fmt.DIFFERENT, True: fmt.BETTER, False: fmt.WORSE}[row.better]
        shown = show_rounded(row.difference, row.interval, signed=True)
        decided = (shown, MISSING) if row.decided is None else (f"{shown} {mark}", f"{row.decided:,}")
        names = [shorten(row.key), shorten(row.system), f"{row.dialogues:,}"]
        rows.append([*names, decided[0], row.by or MISSING, decided[1]])
    what = f"Differences to {plain(test.baseline)}, {test.unit} in the order of the run"
    notes = [
        f"{what}, with {100 * (1 - test.alpha):g}% confidence sequences.",
        "Valid at every interim look, with any stopping rule.",
        "Assumes independent dialogues from one source.",
        "betting: exact for values with bounds where all dialogues count equally.",
    ]
    if any(row.by == "asymptotic" for row in test.differences):
        notes.append("asymptotic: for many dialogues; invalid if rare large differences have not occurred yet.")
    if test.tests > 1:
        notes.append(f"Alpha is divided by {test.tests}, so that all intervals hold simultaneously (Bonferroni).")
    notes += dict.fromkeys(f"{plain(row.key)}: {row.reason}." for row in test.differences if row.reason)
    return Document([*dict.fromkeys(designs)], [Table(head, rows)], notes)


def describe_trend(trend: Trend) -> Document:
    """Describe a trend: sentences, a table with a row per metric, and notes."""
    names = [shorten(name) for name in trend.systems]
    table = Table(["metric", *names, "slope per step", "adjusted p"], [_make_trend_cells(row) for row in trend.metrics])
    tests = sum(not math.isnan(row.p) and row.key in trend.panel for row in trend.metrics)
    family = f", adjusted by Holm for {tests} tests" if tests > 1 else ""
    test = f"* p < {trend.alpha:g}: t test of a linear trend{family}. Change points are not tested."
    notes = [f"Values with {100 * trend.confidence:g}% confidence intervals; {test}"]
    notes += dict.fromkeys(f"{plain(row.key)}: not tested, {row.reason}." for row in trend.metrics if row.reason)
    return Document(_state_trends(trend), [table], notes)


def _state_trends(trend: Trend) -> list[str]:
    design = f"independent samples of {', '.join(f'{units:,}' for units in trend.units)} {trend.unit}"
    if trend.design == "paired":
        design = f"the same {trend.units[0]:,} {trend.unit} in all systems"
    sentences = [f"{trend.design.capitalize()} design: {design}."]
    for row in trend.metrics:
        if row.significant and row.key in trend.panel:
            way = "rises" if row.slope > 0 else "falls"
            good = {"higher": row.slope > 0, "lower": row.slope < 0}.get(row.better or "")
            judged = "" if good is None else " (better)" if good else " (worse)"
            step = show_rounded(row.slope, row.interval, signed=True)
            sentences.append(f"{shorten(row.key)} {way}{judged}: {step} per step.")
    nothing = f"No significant trend (significance level {trend.alpha:g})."
    return sentences if len(sentences) > 1 else [*sentences, nothing]


def _make_trend_cells(row: MetricTrend) -> list[str]:
    values = [show_rounded(value, interval) for value, interval in zip(row.values, row.intervals, strict=True)]
    slope = MISSING if math.isnan(row.slope) else show_rounded(row.slope, row.interval, signed=True)
    slope += "*" if row.significant else ""
    return [shorten(row.key) + ARROWS[row.better], *values, slope, show_p(row.adjusted_p)]
