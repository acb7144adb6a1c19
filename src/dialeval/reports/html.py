"""One HTML file that shows runs to people: offline, printable, light or dark.

    report(run, "report.html")
    report([monday, tuesday], "report.html", command="dialeval score ...")

The page holds the verdict and the summary (metrics by systems), a drawing per metric, how metrics go together, every
row with its texts and scores, what a family of metrics has to show beside numbers, and in the end where the numbers
come from. Sections are made by modules of their own; this one puts
them together.

Equal runs give equal bytes: there is no date in the page unless `date` says one.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from dialeval.analysis.slices import Slices, kept_fields, slices
from dialeval.core.arguments import checked
from dialeval.core.errors import SettingError
from dialeval.core.files import write_bytes
from dialeval.core.result import Run
from dialeval.reports import markup, provenance, weak_turns
from dialeval.reports.breakdown import curves
from dialeval.reports.correlations import correlations
from dialeval.reports.explorer import explorer
from dialeval.reports.figures import shorten
from dialeval.reports.metric_drawings import drawings
from dialeval.reports.page import page, script
from dialeval.reports.people import people_section
from dialeval.reports.slices import MOST_TESTS, losses, section
from dialeval.reports.summary import blocks, standing, summary
from dialeval.reports.transcripts import transcripts

if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping, Sequence

    from dialeval.analysis.agreement import Agreement
    from dialeval.analysis.people import People
    from dialeval.analysis.ranking import Ranking
    from dialeval.reports.markup import Section

_MOST_NAMED = 3
"""Systems that the title names before the rest is counted."""
_BY_SYSTEM = ("standing", "alignments", "transcripts", "failures", "curves")
"""Details of a run by system that sections are made of."""


@checked
def report(
    runs: Run | Sequence[Run],
    path: str | os.PathLike[str],
    command: str | None = None,
    *,
    title: str | None = None,
    date: str | None = None,
    compared: bool = True,
    by: str | Sequence[str] | None = None,
    people: People | None = None,
    agreement: Agreement | None = None,
    ranking: Ranking | None = None,
) -> Path:
    """Write the report of one or several runs to a file and give its path.

    `command` is what made the page or the runs, `date` when that was. `title`: the systems unless given.
    `compared`: test the differences to the first system (`analysis.comparison`), which takes a while for many rows.
    `by`: fields to cut the rows into slices by (`analysis.slices`), those that the run kept unless given.
    `people`, `agreement`, `ranking`: what `dialeval.estimate`, `dialeval.agreement` and `dialeval.rank` say, if the
    page is to show it.
    """
    path = Path(path)
    run = together([runs] if isinstance(runs, Run) else runs)
    opinions = people_section(people, agreement, ranking)
    shown = render(run, command, title=title, date=date, compared=compared, by=by, people=opinions)
    write_bytes(path, shown.encode())
    return path


def render(
    run: Run,
    command: str | None = None,
    *,
    title: str | None = None,
    date: str | None = None,
    compared: bool = True,
    by: str | Sequence[str] | None = None,
    people: Section | None = None,
) -> str:
    """The page as text."""
    cut = _slices(run, by, compared)
    rows = explorer(run, cut)
    found = [
        summary(run, compared, [sentence for each in cut for sentence in losses(each)]),
        provenance.warnings(run),
        people,
        section(cut) if cut else None,
        drawings(run),
        correlations(run),
        rows and rows[0],
        weak_turns.section(run),
        *(make(run) for make in (standing, transcripts, curves)),
        provenance.provenance(run, command),
    ]
    scripts, data = [script("page.js")], ""
    if rows is not None:
        scripts.append(script("text.js", "rows.js", "list.js", "detail.js", "explorer.js"))
        data += markup.embedded("explorer-data", rows[1])
    return page(title or _title(run), _lead(run, date), [each for each in found if each is not None], data, scripts)


def _slices(run: Run, by: str | Sequence[str] | None, compared: bool) -> list[Slices]:
    """The slices by some fields of systems that share a metric; without these, by those that they kept, if any."""
    fields = [(block, kept_fields(block) if by is None else by) for block in blocks(run)]
    return [slices(block, each, compared=compared, most_tests=MOST_TESTS) for block, each in fields if each]


def together(runs: Iterable[Run]) -> Run:
    """Several runs as one; a name that another run has already gets the number of its run."""
    runs = [_with_curves(run) for run in runs]
    if not runs:
        raise SettingError("there is nothing to report: pass at least one run")
    systems: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for number, run in enumerate(runs, 1):
        names = {}
        for system, result in run.items():
            name = system
            while name in systems:
                name = f"{name} (run {number})"
            names[system], systems[name] = name, result
        for kind in _BY_SYSTEM:
            by_system = _details_by_system(run, kind).items()
            details.setdefault(kind, {}).update({names[name]: entry for name, entry in by_system if name in names})
        if "command" in run.details:
            details.setdefault(provenance.COMMANDS, []).append(str(run.details["command"]))
    versions = dict.fromkeys(run.version for run in runs)
    warnings = tuple(dict.fromkeys(text for run in runs for text in run.warnings))
    return Run(systems, ", ".join(versions), warnings, {name: value for name, value in details.items() if value})


def _details_by_system(run: Run, kind: str) -> Mapping[str, Any]:
    """Details of a run by system; the shares between floor and ceiling are among those of its anchors."""
    holder = run.details.get("anchors", {}) if kind == "standing" else run.details
    by_system: Mapping[str, Any] = holder.get(kind, {})
    return by_system


def _with_curves(run: Run) -> Run:
    """A run of detectors that was not saved still holds its turns, and the curves are made from them."""
    from dialeval.engine.breakdown import CURVES, BreakdownRun, with_curves

    return with_curves(run) if isinstance(run, BreakdownRun) and CURVES not in run.details else run


def _title(run: Run) -> str:
    """The systems of a run, the first few of them by name."""
    names = [shorten(name) for name, result in run.items() if result.role == "system"] or list(run)
    more = len(names) - _MOST_NAMED
    if more > 0:
        return f"{', '.join(names[:_MOST_NAMED])} and {more} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), *names[-1:]))) or "Evaluation report"


def _lead(run: Run, date: str | None) -> str:
    systems = markup.count(len(run) - len(run.anchors), "system")
    anchors = f" and {markup.count(len(run.anchors), 'anchor')}" if run.anchors else ""
    rows = {(est.level, est.rows) for result in run.values() for est in result.values()}
    alike = len({level for level, _ in rows}) == len(rows)  # systems of several runs may have other rows
    sizes = [markup.count(number, str(level)) for level, number in sorted(rows)] if alike else []
    facts = [systems + anchors, *sizes, markup.count(len(run.keys_in_order), "metric")]
    made = f"Made {f'on {markup.text(date)} ' if date else ''}with dialeval {markup.text(run.version)}."
    many = (
        f' <a class="notice" href="#warnings">{markup.count(len(run.warnings), "warning")}</a>' if run.warnings else ""
    )
    return f'<p class="lead">{", ".join(facts)}. {made}{many}</p>'
