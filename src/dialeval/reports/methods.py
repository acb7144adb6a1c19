"""The paragraph about a run for the methods section of a paper, in LaTeX, and its references in BibTeX.

    paragraph, references = describe_methods(run, comparison, agreement)

Everything in it is read from the run, the comparison and the agreement: nothing is stated that they do not hold.
References are those of `assets/papers.bib`, by the families of the metrics; a metric without one is listed without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from dialeval.analysis.comparison import Comparison
from dialeval.analysis.values import find_metric
from dialeval.core.result import Run
from dialeval.core.signature import SACREBLEU
from dialeval.core.version import __version__
from dialeval.reports.comparisons import describe_test
from dialeval.reports.formatting import describe_intervals, show_fixed, show_interval
from dialeval.reports.latex import escape_latex

if TYPE_CHECKING:
    from dialeval.analysis.agreement import Agreement
    from dialeval.core.fold import Estimate

_ENTRY = re.compile(r"@\w+\{(?P<key>\w+),.*?^\}\n", re.DOTALL | re.MULTILINE)
_USED_BY = re.compile(r",\s*metrics = \{([^}]*)\}")
_NAMED = {"length": "response length in tokens", "judge": "the learned judge of dialeval"}
"""Metrics that have no name outside of dialeval, in words."""
_MODELS = ("model", "dialogue-judge", "encoder", "judge", "rubric", "mode")
"""Fields of a signature that name models and rubrics."""


class _References:
    """Collects what is cited."""

    def __init__(self) -> None:
        self.keys: dict[str, None] = {}

    def cite(self, subject: str) -> str:
        """Return a citation of what a subject is defined by; nothing where that is nothing."""
        keys = _read_papers()[0].get(subject, [])
        self.keys |= dict.fromkeys(keys)
        return rf"~\citep{{{','.join(keys)}}}" if keys else ""

    def write(self) -> str:
        """Return the entries in BibTeX."""
        return "\n".join(_read_papers()[1][key] for key in self.keys)


@cache
def _read_papers() -> tuple[Mapping[str, list[str]], Mapping[str, str]]:
    """Return the keys by what is defined there, and the entries by key."""
    text = (Path(__file__).parent / "assets" / "papers.bib").read_text(encoding="utf-8")
    subjects: dict[str, list[str]] = {}
    entries = {}
    for entry in _ENTRY.finditer(text):
        used = _USED_BY.search(entry[0])
        for subject in used[1].split() if used else ():
            subjects.setdefault(subject, []).append(entry["key"])
        entries[entry["key"]] = _USED_BY.sub("", entry[0])
    return subjects, entries


def describe_methods(
    run: Run, comparison: Comparison | None = None, agreement: Agreement | None = None
) -> tuple[str, str]:
    """Return the paragraph and the references of a run.

    Args:
        run: The run.
        comparison: The comparison of its systems, whose test and correction are described.
        agreement: The agreement with human ratings, whose raters are described.

    Returns:
        The paragraph in LaTeX, and the entries in BibTeX.
    """
    references = _References()
    sentences = [
        *_describe_data(run),
        *_describe_metrics(run, references),
        *_describe_statistics(run, comparison, references),
        *([] if agreement is None else _describe_raters(agreement, references)),
    ]
    return " ".join(sentences) + "\n", references.write()


def _describe_data(run: Run) -> Iterator[str]:
    """Yield what was scored, and what failed."""
    systems = {name: result for name, result in run.items() if result.role == "system"}
    sizes = set()
    for result in systems.values():
        units = max((est.units for est in result.values()), default=0)
        dialogues = 0 if result.rows is None else len(result.rows.offsets) - 1
        sizes.add(f"{units:,} responses" + (f" in {dialogues:,} dialogues" if 0 < dialogues < units else ""))
    many = "one system" if len(systems) == 1 else f"{len(systems)} systems"
    names = escape_latex(", ".join(systems))
    each = " each" if len(systems) > 1 and len(sizes) == 1 else ""
    yield f"We scored {many} ({names}; {' or '.join(sorted(sizes))}{each}) with dialeval {escape_latex(__version__)}."
    for name, result in systems.items():
        if result.account is not None and result.account.failed:
            account = result.account
            yield f"Of {account.due:,} replies due from {escape_latex(name)}, {account.failed:,} failed."


def _describe_metrics(run: Run, references: _References) -> Iterator[str]:
    """Yield the metrics with their papers, and the models that compute them."""
    names: list[str] = []
    models: dict[str, str] = {}
    for estimate in _first_estimates(run):
        metric, signature = find_metric(estimate), estimate.signature
        if signature is None:
            continue
        key = signature.metric
        family = key.partition("(")[0] if metric is None else metric.family
        cited = references.cite("sacrebleu") if key == "sacrebleu" else references.cite(family)
        names.append(escape_latex(_NAMED.get(key, key)) + cited)
        found = {name: value for name, value in signature.fields if name in _MODELS}
        models |= {key: ", ".join(f"{name} {value}" for name, value in found.items())} if found else {}
    yield f"Metrics are {_join(dict.fromkeys(names))}."
    signatures = (est.signature for est in _first_estimates(run) if est.signature is not None)
    for line in dict.fromkeys(signature[SACREBLEU] for signature in signatures if SACREBLEU in signature):
        yield rf"The signature of sacreBLEU is \texttt{{{escape_latex(line)}}}."
    for key, model in models.items():
        yield f"{escape_latex(key)} uses {escape_latex(model)}."


def _first_estimates(run: Run) -> Iterator[Estimate]:
    """Yield an estimate of every metric, without parts of others."""
    for key in run.keys_in_order:
        if key.partition("/")[0] not in run.keys_in_order or "/" not in key:
            yield next(result[key] for result in run.values() if key in result)


def _describe_statistics(run: Run, comparison: Comparison | None, references: _References) -> Iterator[str]:
    """Yield the intervals of values, and the tests of differences."""
    words = describe_intervals(est for result in run.values() for est in result.values())
    if words:
        yield f"Confidence intervals: {escape_latex(words)}."
    if comparison is None:
        return
    baseline, design = escape_latex(comparison.baseline), comparison.design
    test = escape_latex(describe_test(comparison)) + references.cite(f"test:{comparison.test}")
    units = f"{design.clusters:,} {design.unit}"
    yield f"Differences to {baseline} were tested on {units} ({design.name} design) by the {test}."
    if comparison.tests > 1:
        by_holm = comparison.test == "bootstrap" or comparison.adjusted_for
        how = "Holm's method" if by_holm else "the minP method of Westfall and Young"
        how += references.cite("test:holm" if by_holm else "test:minp")
        panel = escape_latex(_join(comparison.panel))
        yield f"P-values of {panel} were adjusted for {comparison.tests} tests by {how}."
    yield f"The significance level is {comparison.alpha:g}."


def _describe_raters(agreement: Agreement, references: _References) -> Iterator[str]:
    """Yield the number of ratings, and the agreement of raters with its interval."""
    yield f"Human ratings of {escape_latex(agreement.quality)} cover {agreement.rated:,} responses."
    if agreement.ceiling.reason is None:
        level = f"{100 * agreement.bootstrap.confidence:g}\\% CI"
        alphas = (
            f"{value_level} {show_fixed(value, 2)} ({level} "
            f"{escape_latex(show_interval(agreement.ceiling.alpha_interval[value_level], 2))})"
            for value_level, value in agreement.ceiling.alpha.items()
        )
        yield f"Krippendorff's alpha is {_join(alphas)}{references.cite('alpha')}."


def _join(names: Iterable[str]) -> str:
    """Return names in a sentence: `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
