"""Agreement with people as a table: for the terminal, for papers and pages, for other programs.

    FORMATS["csv"](agreement)        json, csv, md, latex, html, each a str
    console.print(table(agreement))  the terminal

The verdict comes first: which metric agrees best with people, and which cannot be told from it. Then a table per level,
a row per metric: the three coefficients with their intervals, `*` where one differs from 0 (its p, corrected for all
coefficients of the table, is below 1 - confidence). At the level of the
ranking the best metric stands first, and metrics that share a letter (`group`) cannot be told apart. Where every
dialogue has one rated turn, the level of dialogues would repeat that of turns and is left out of tables. JSON and CSV
hold every digit.
"""

from __future__ import annotations

import math
from html import escape
from typing import TYPE_CHECKING

from dialeval.analysis.correlation import NAMES
from dialeval.analysis.levels import LEVELS
from dialeval.analysis.metric_differences import CONTROL
from dialeval.analysis.metric_ranking import RANKED_BY, SIGNIFICANT
from dialeval.reports.documents import Document
from dialeval.reports.figures import MISSING, plain, shorten, show_fixed
from dialeval.reports.formats import (
    Table,
    csv_text,
    latex_float,
    markdown,
    markdown_table,
    paragraphs,
    rich_table,
    to_json,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from rich.console import Group

    from dialeval.analysis.agreement import Agreement, Correlation

DIFFERS = "*"
_MOST_NAMED = 4
"""Metrics that a sentence names before the rest is counted."""
HEADS = {"pearson": "Pearson r", "spearman": "Spearman rho", "kendall": "Kendall tau"}


def table(agreement: Agreement) -> Group:
    """The agreement for a rich console."""
    from rich.console import Group
    from rich.text import Text

    parts: list[object] = list(paragraphs(verdict(agreement)))
    for title, (head, rows) in _tables(agreement):
        parts += [Text(title, style="bold"), rich_table(zip(head, *rows, strict=True)), Text()]
    return Group(*parts, *map(Text, notes(agreement)))  # type: ignore[arg-type]


def document(agreement: Agreement) -> Document:
    """Return the verdict, a table per level, and what to read it against."""
    return Document(verdict(agreement), list(titled(agreement)), notes(agreement))


def to_csv(agreement: Agreement) -> str:
    """One line per metric and level."""
    lines = agreement.lines()
    return csv_text(lines[0], (line.values() for line in lines))


def to_markdown(agreement: Agreement) -> str:
    """The verdict, a table per level as GitHub renders it, and what to read it against."""
    said = [f"{markdown(sentence)}\n" for sentence in verdict(agreement)]
    parts = (markdown_table(each, markdown) for each in titled(agreement))
    return "\n".join([*said, *parts, "".join(f"{markdown(note)}  \n" for note in notes(agreement))])


def to_latex(agreement: Agreement) -> str:
    """One table with booktabs rules, the levels below each other, and a caption."""
    tables = list(titled(agreement))
    columns = max((len(each.head) for each in tables), default=1)
    # Groups stand at one level alone; there is an empty column for them at the others.
    even = [Table(_padded(head, columns), [_padded(row, columns) for row in rows]) for head, rows in tables]
    caption = [*verdict(agreement), *(f"{note[:1].upper()}{note[1:]}." for note in notes(agreement))]
    return latex_float(even, caption, "tab:agreement", _latex_figure)


def _padded(cells: Sequence[str], columns: int) -> list[str]:
    return [cells[0], *[""] * (columns - len(cells)), *cells[1:]]


def _latex_figure(cell: str) -> str:
    return cell.replace("-", "$-$").replace(DIFFERS, f"$^{{{DIFFERS}}}$")


def to_html(agreement: Agreement) -> str:
    """A page like those of runs, that opens from disk: the verdict, a table per level, and what to read it against."""
    from dialeval.reports import markup
    from dialeval.reports.page import page, script

    content = "".join(f"<p>{markup.text(sentence)}</p>" for sentence in verdict(agreement))
    for title, (head, rows) in _tables(agreement):
        lines = [
            markup.row(markup.text(name), markup.cells(*map(escape, cells), kind="figure")) for name, *cells in rows
        ]
        heads = f'<th scope="col">{escape(head[0])}</th>'
        heads += "".join(f'<th scope="col" class="figure">{escape(cell)}</th>' for cell in head[1:])
        content += markup.table("agreement", escape(title), f"<tr>{heads}</tr>", lines)
    said = "".join(f"<li>{markup.text(note)}</li>" for note in (*notes(agreement), *agreement.warnings))
    sections = [
        markup.Section("agreement", "Agreement", content),
        markup.Section("about", "How to read it", f"<ul>{said}</ul>"),
    ]
    title = f"Agreement with people: {agreement.quality}"
    counts = f"{markup.count(agreement.rated, 'rated row')}, {markup.count(len(agreement.metrics), 'metric')}"
    return page(title, f'<p class="lead">{counts}.</p>', sections, "", [script("page.js")])


FORMATS: Mapping[str, Callable[[Agreement], str]] = {
    "json": to_json,
    "csv": to_csv,
    "md": to_markdown,
    "latex": to_latex,
    "html": to_html,
}
"""Every format that is a text, by its name on the command line."""


def verdict(agreement: Agreement) -> list[str]:
    """Which metric agrees best with people, what it can be told from, and what is no better than the length.

    A metric is called better only where the corrected test of `metric_ranking` is significant.
    """
    ranking, level = agreement.ranking, agreement.level
    if not ranking.places:
        return [f"No metric could be correlated with what people say of {_name(agreement.quality)}."]
    first, *others = ranking.places
    best = _name(first.metric)
    found = agreement[first.metric][level]
    low, high = found.intervals[RANKED_BY]
    turned = " (turned round: its lower values are rated higher)" if first.turned else ""
    ends = f"[{_bound(-high)}, {_bound(-low)}]" if first.turned else f"[{_bound(low)}, {_bound(high)}]"
    figure = f"{HEADS[RANKED_BY]} {show_fixed(first.value, 2)} {ends}{turned}"
    over = f"{found.n:,} {level}s"
    if not differs(found, RANKED_BY, agreement.confidence):
        highest = f"the highest, {best}, has {figure} over {over}"
        family = f"corrected for {_tests(agreement, level)} coefficients, it does not differ from 0"
        return [f"No metric can be said to agree with people: {highest}; {family}."]
    said = [f"{best} agrees best with people: {figure} over {over}."]
    worse = [place.metric for place in others if ranking.differ(first.metric, place.metric)]
    alike = [place.metric for place in others if place.metric not in worse]
    tests = "test" if ranking.tests == 1 else "tests"
    sure = f"{100 * SIGNIFICANT:g}% level, corrected for {ranking.tests} {tests}"
    if worse and alike:
        said.append(f"It is better than {_names(worse)}; it cannot be told from {_names(alike)} ({sure}).")
    elif worse:
        said.append(f"It is better than {_names(worse)} ({sure}).")
    elif alike:
        said.append(f"It cannot be told from {_names(alike)} ({sure}).")
    if agreement.not_above_control and first.metric != CONTROL:
        said.append(f"Not shown to say more than the length of the response: {_names(agreement.not_above_control)}.")
    return [" ".join(said)]


def differs(each: Correlation, name: str, confidence: float) -> bool:
    """Tell whether a coefficient differs from 0, corrected for all coefficients of the table."""
    return each.adjusted_p.get(name, math.nan) < 1 - confidence


def _tests(agreement: Agreement, level: str) -> int:
    """Return how many coefficients the p-values of a level are corrected for."""
    here = [levels[level] for levels in agreement.metrics.values() if level in levels]
    return sum(not math.isnan(p) for each in here for p in each.adjusted_p.values())


def _name(metric: str) -> str:
    return shorten(plain(metric))


def _names(metrics: Sequence[str]) -> str:
    more = len(metrics) - _MOST_NAMED
    shown = [*map(_name, metrics[:_MOST_NAMED]), *([f"{more} more"] if more > 0 else [])]
    return " and ".join(filter(None, (", ".join(shown[:-1]), shown[-1])))


def notes(agreement: Agreement) -> list[str]:
    """What the figures are to be read against, a line each."""
    level = f"{100 * agreement.confidence:g}%"
    lines = [f"{agreement.rated} rated rows, quality {agreement.quality}; {level} intervals over dialogues"]
    if any(levels["system"].values for levels in agreement.metrics.values() if "system" in levels):
        bootstrap = f"{agreement.resamples} resamples of dialogues, seed {agreement.seed}"
        lines[0] += f" (of systems: {bootstrap})"
    people = agreement.ceiling
    if people.reason is not None:
        lines.append(f"no ceiling: {people.reason}")
    else:
        one = ", ".join(f"{HEADS[name]} {show_fixed(value, 3)}" for name, value in people.one_against_others.items())
        alpha = ", ".join(f"{name} {show_fixed(value, 3)}" for name, value in people.alpha.items())
        lines += [f"one annotator against the others ({people.n} rows): {one}", f"Krippendorff's alpha: {alpha}"]
    tests = ", ".join(f"{_tests(agreement, at)} at {at} level" for at, _ in _shown(agreement))
    alpha = f"{100 * (1 - agreement.confidence):g}% level"
    if tests:
        lines.append(f"{DIFFERS} differs from 0 ({alpha}, corrected by Holm for all coefficients of a table: {tests})")
    if len(agreement.ranking.places) > 1:
        lines.append("group: metrics that share a letter cannot be told apart")
    lines += agreement.excluded
    return [plain(line) for line in lines]


def _shown(agreement: Agreement) -> Iterator[tuple[str, dict[str, Correlation]]]:
    """Yield the levels that some metric has figures for, and that do not repeat another one, with their figures."""
    for level in LEVELS:
        here = {key: levels[level] for key, levels in agreement.metrics.items() if level in levels}
        turns = {key: levels["turn"].n for key, levels in agreement.metrics.items() if "turn" in levels}
        repeated = level == "dialogue" and all(each.n == turns.get(key) for key, each in here.items())
        if any(each.values for each in here.values()) and not repeated:
            yield level, here


def _tables(agreement: Agreement) -> Iterator[tuple[str, Table]]:
    """Yield the table of each level, with its title."""
    for level, here in _shown(agreement):
        n = max(each.n for each in here.values() if each.values)
        places = {p.metric: p.groups for p in agreement.ranking.places} if level == agreement.level else {}
        order = sorted(here, key=lambda key: list(places).index(key) if key in places else len(places))
        group = [[places.get(key, MISSING)] if places else [] for key in order]
        cells = {key: _cells(each, agreement.confidence) for key, each in here.items()}
        rows = [[_name(key), *own, *cells[key]] for key, own in zip(order, group, strict=True)]
        yield f"{level} level, n = {n:,}", Table(["metric", *(["group"] if places else []), *HEADS.values()], rows)


def titled(agreement: Agreement) -> Iterator[Table]:
    """The table of each level, which stands in its head."""
    for title, (head, rows) in _tables(agreement):
        yield Table([f"{title}: {head[0]}", *head[1:]], rows)


def _cells(each: Correlation, confidence: float) -> list[str]:
    if not each.values:
        return [MISSING for _ in NAMES]
    bounds = {name: ", ".join(map(_bound, each.intervals[name])) for name in NAMES}
    marks = {name: DIFFERS if differs(each, name, confidence) else "" for name in NAMES}
    return [f"{show_fixed(each.values[name], 3)}{marks[name]} [{bounds[name]}]" for name in NAMES]


def _bound(value: float) -> str:
    """A bound in few characters, so that three intervals fit a terminal."""
    return MISSING if math.isnan(value) else f"{value:.2f}".replace("0.", ".", 1)
